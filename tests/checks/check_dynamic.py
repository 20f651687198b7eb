#!/usr/bin/env python3
"""A conversion with samples makes layers dynamic where that was measured to lose less and costs nothing; --scheme static names the option, and the named command reaches the number.

    check_dynamic.py [--only GLOB] [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Networks of products behind spectra whose loudness differs from sample to sample, and which they normalize at the end: no given range fits all of them.
By default their layers are dynamic, in a file as large, and lose less on other samples in ONNX Runtime; by --scheme static the notice or warning must name the option, and its number is within 1 dB of what the command prints, and makes of the model in ONNX Runtime on other samples,
also where the simulation looks before a Softmax.
A network in a body of If is one of them. Detectors of rare events, whose samples go beyond all that calibrated, gain on nearly all seeds where the default changes them, and a
warning of such samples names only what loses less. Networks where given ranges are as good, or where most of the work has no dynamic form, or that were asked for another scheme, must not have it.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import os
import re
import shlex
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pylib import smallnets
from pylib.judge import Checker, options, run_ort, sqnr

CALIB, JUDGE, BINS = 64, 64, 64
NEAR, GAIN = 1.0, 3.0   # dB
TAKEN = "layers are dynamic: "
SAYS = re.compile(r"--scheme dynamic has ([\d.]+) dB when it was tried, instead of ([\d.]+), in a file (.*)")


def spectra(rng, n, steps, spread):
    """[n, steps, BINS] of smooth positive spectra, whose loudness differs by `spread` decades."""
    x = np.abs(rng.normal(size=(n, steps, BINS)) + 1.5 * np.sin(np.arange(BINS) / 9 + rng.uniform(0, 6, (n, 1, 1))))
    return (x * 10 ** rng.uniform(-spread / 2, spread / 2, (n, 1, 1))).astype(np.float32)


class Net:
    def __init__(self):
        self.rng, self.nodes, self.given, self.at = np.random.default_rng(5), [], [], "x"

    def const(self, a):
        self.given.append(numpy_helper.from_array(np.asarray(a), f"c{len(self.given)}"))
        return self.given[-1].name

    def weights(self, *shape):
        return self.const((self.rng.normal(size=shape) / np.sqrt(shape[-2] if len(shape) < 4 else np.prod(shape[1:]))).astype(np.float32))

    def add(self, op, *more, **attributes):
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [self.at, *more], [out], name=f"n{len(self.nodes)}", **attributes))
        self.at = out
        return self

    def save(self, path, shape):
        self.nodes[-1].output[0] = "y"
        value = helper.make_tensor_value_info
        graph = helper.make_graph(self.nodes, "net", [value("x", TensorProto.FLOAT, shape)], [value("y", TensorProto.FLOAT, None)], self.given)
        onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)


def products(path, spread, depth=3, gemm=False):
    n = Net()
    steps = 1 if gemm else 12
    if gemm:
        n.add("Flatten")
    for i in range(depth):
        k = BINS if i == 0 else 128
        n.add(*(("Gemm", n.weights(k, 128), n.const(np.zeros(128, np.float32))) if gemm else ("MatMul", n.weights(k, 128)))).add("Relu")
    n.add("MatMul", n.weights(128, 32)).add("LpNormalization", axis=-1, p=2)
    n.save(path, [1, steps, BINS])
    return spectra(n.rng, CALIB + JUDGE, steps, spread)


def recurrent(path, spread):
    """Products in front of an LSTM, which is dynamic in any case, and behind it."""
    n = Net()
    for i in range(6):
        n.add("MatMul", n.weights(BINS if i == 0 else 256, 256)).add("Relu")
    n.add("LpNormalization", axis=-1, p=2)
    n.add("Transpose", perm=[1, 0, 2])
    n.add("LSTM", n.weights(1, 128, 256), n.weights(1, 128, 32), hidden_size=32)
    n.add("MatMul", n.weights(32, 16))
    n.save(path, [1, 12, BINS])
    return spectra(n.rng, CALIB + JUDGE, 12, spread)


def attention(path, spread, classes=30, seed=7):
    """A transformer's layer whose residual stream has channels far larger than others, and a Softmax at the end, behind which little noise is left."""
    n = Net()
    n.rng = np.random.default_rng(seed)
    width, heads = 128, 4

    def linear(v, k, m, by=1.0):
        n.at = v
        n.add("MatMul", n.weights(k, m) if by == 1.0 else n.const((n.rng.normal(size=(k, m)) * by / np.sqrt(k)).astype(np.float32)))
        return n.at

    x = linear("x", BINS, width)
    for _ in range(2):
        n.at = x
        y = n.add("LayerNormalization", n.const(np.exp(n.rng.normal(size=width) * 1.2).astype(np.float32)), axis=-1).at
        parts = []
        for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
            linear(y, width, width)
            n.add("Reshape", n.const(np.int64([0, 0, heads, width // heads]))).add("Transpose", perm=perm)
            parts.append(n.at)
        n.at = parts[0]
        n.add("MatMul", parts[1]).add("Mul", n.const(np.float32(0.05))).add("Softmax", axis=-1).add("MatMul", parts[2])
        n.add("Transpose", perm=[0, 2, 1, 3]).add("Reshape", n.const(np.int64([0, 0, width])))
        o = linear(n.at, width, width)
        n.at = x
        x = n.add("Add", o).at
        u = linear(x, width, 256)
        n.at = u
        n.add("Relu")
        o = linear(n.at, 256, width)
        n.at = x
        x = n.add("Add", o).at
    n.at = x
    n.add("LpNormalization", axis=-1, p=2)
    linear(n.at, width, classes, 60.0)
    n.add("Softmax", axis=-1)
    n.save(path, [1, 12, BINS])
    return spectra(n.rng, CALIB + JUDGE, 12, spread)


def branch(path, spread):
    """Products in a branch of an If that every sample takes."""
    n = Net()
    for i in range(5):
        n.add("MatMul", n.weights(BINS if i == 0 else 128, 128)).add("Relu")
    n.add("MatMul", n.weights(128, 32)).add("LpNormalization", axis=-1, p=2)
    n.nodes[-1].output[0] = "inside"
    for node in n.nodes:    # names are those of the whole model
        node.input[:] = [f"then_{v}" if v.startswith("v") else v for v in node.input]
        node.output[:] = [f"then_{v}" if v.startswith("v") else v for v in node.output]
    value = helper.make_tensor_value_info
    then = helper.make_graph(n.nodes, "then", [], [value("inside", TensorProto.FLOAT, None)], n.given)
    other = helper.make_graph([helper.make_node("MatMul", ["x", "small"], ["outside"])], "else", [], [value("outside", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(np.zeros((BINS, 32), np.float32), "small")])
    n.nodes, n.given, n.at = [], [numpy_helper.from_array(np.float32(-1), "low")], "x"
    n.add("ReduceMean", keepdims=0).add("Greater", "low").add("If", then_branch=then, else_branch=other)
    n.nodes[-1].input[:] = n.nodes[-1].input[:1]
    n.save(path, [1, 12, BINS])
    return spectra(n.rng, CALIB + JUDGE, 12, spread)


def convolutions(path, spread):
    n = Net()
    n.add("Conv", n.weights(16, 1, 3, 3), pads=[1] * 4).add("Relu").add("Conv", n.weights(32, 16, 3, 3), pads=[1] * 4).add("Relu")
    n.add("Conv", n.weights(32, 32, 3, 3), pads=[1] * 4).add("GlobalAveragePool").add("Flatten").add("Gemm", n.weights(32, 10)).add("LpNormalization", axis=-1, p=2)
    n.save(path, [1, 1, 12, BINS])
    return spectra(n.rng, CALIB + JUDGE, 12, spread)[:, None]


# name: (maker, whether dynamic is taken, and named for static layers; "if static": by default mixed precision suffices)
NETS = {
    "products_loudness": (lambda p: products(p, 2.5, depth=5), True),
    "products_louder": (lambda p: products(p, 3.5, depth=5), True),
    "products_deep": (lambda p: products(p, 2, depth=8), True),
    "gemm_loudness": (lambda p: products(p, 2.5, depth=6, gemm=True), True),
    "products_notice": (lambda p: products(p, 1, depth=5), True),
    "lstm_loudness": (lambda p: recurrent(p, 2.5), True),
    "branch_loudness": (lambda p: branch(p, 2.5), "if static"),
    "softmax_notice": (lambda p: attention(p, 2.5, seed=2), True),
    "products_alike": (lambda p: products(p, 0), False),
    "convolutions_loudness": (lambda p: convolutions(p, 3), False),
    "convolutions_alike": (lambda p: convolutions(p, 0), False),
}


def convert(c, model, out, *more):
    """What was said, and the report."""
    done = subprocess.run([c.qconvert, model, "-o", out, "--data", "calib.npy", "--json", "report.json", *more], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr, json.loads(Path("report.json").read_text())


def decibels(model, out, rows):
    return sqnr(run_ort(model, rows), run_ort(out, rows, exact=True))


def check(c, name, made, named):
    model, chosen, out, other = (c.folder / f"{name}{end}.onnx" for end in ("", "-default", "-int8", "-dynamic"))
    x = made(model)
    np.save(c.folder / "calib.npy", x[:CALIB])
    rows = list(x[CALIB:, None])
    said, report = convert(c, model, chosen)
    if named != "if static":
        c.hold(f"{name}: {'taken' if named else 'not taken'} by default", (TAKEN in said) == named and not SAYS.search(said), said[-1500:])
    if not named:
        return
    said, report = convert(c, model, out, "--scheme", "static")
    found = SAYS.search(said)
    before, after = decibels(model, out, rows), decibels(model, chosen, rows)
    c.hold(f"{name}: by default it gains", after >= before + GAIN, f"{before:.1f} dB, dynamic {after:.1f} dB")
    c.hold(f"{name}: by default it is as large", chosen.stat().st_size < 1.06 * out.stat().st_size, f"{chosen.stat().st_size} bytes, static {out.stat().st_size}")
    c.hold(f"{name}: not with static layers", TAKEN not in said)
    c.hold(f"{name}: named", bool(found), "" if found else said[-1500:])
    c.hold(f"{name}: warned", any("--scheme dynamic" in w for w in report["warnings"]) == ("notice" not in name), str(report["warnings"]))
    command = next((y["command"] for y in report["answer"] if y["about"] == "try" and "command" in y), "")
    c.hold(f"{name}: the command", "--scheme dynamic" in command, command)
    if not found or "--scheme dynamic" not in command:
        return
    words = shlex.split(command)
    subprocess.run([c.qconvert, *words[1:words.index("-o")], "-o", other, "--json", "other.json"], capture_output=True, check=True)
    printed = json.loads(Path("other.json").read_text())["output_sqnr_db"]
    c.hold(f"{name}: what the command prints", abs(printed - float(found[1])) <= NEAR, f"{found[1]} dB was said, {printed:.1f} dB is")
    before, after, told = decibels(model, out, rows), decibels(model, other, rows), float(found[1])
    c.hold(f"{name}: gains", after >= before + GAIN, f"{before:.1f} dB, dynamic {after:.1f} dB")
    c.hold(f"{name}: reaches", abs(after - told) <= NEAR, f"{told} dB was said, {after:.1f} dB is")
    ratio = other.stat().st_size / out.stat().st_size
    c.hold(f"{name}: size", (0.9 < ratio < 1.06) == found[3].startswith("as large"), f"{ratio:.2f} times, '{found[3]}'")
    for scheme in ("dynamic", "stored", "fp16"):
        c.hold(f"{name}, {scheme}: not named", not SAYS.search(convert(c, model, c.folder / "x.onnx", "--scheme", scheme)[0]))


def check_rare(c, seeds):
    """Static layers whose ranges new samples leave: dynamic ones are taken, and lose less on samples that neither chose nor judged."""
    gains = []
    for seed in range(seeds):
        model, out, fixed = (c.folder / f"rare{end}.onnx" for end in ("", "-default", "-static"))
        x = smallnets.rare(model, seed, CALIB + 200)
        np.save(c.folder / "calib.npy", x[:CALIB])
        rows = list(x[CALIB:])
        said, report = convert(c, model, out)
        for number in re.findall(r"has ([\d.]+) dB when it was tried", " ".join(report["warnings"])):
            c.hold(f"rare {seed}: what is named loses less", float(number) > report["output_sqnr_db"] + GAIN - 0.1, str(report["warnings"]))
        if TAKEN in said:
            convert(c, model, fixed, "--scheme", "static")
            gains.append(decibels(model, out, rows) - decibels(model, fixed, rows))
    c.hold("rare: some are dynamic", len(gains) >= seeds // 4, f"{len(gains)} of {seeds}")
    c.hold("rare: they gain", np.mean(gains) > GAIN and np.mean(np.array(gains) > 0) >= 0.8, str(np.round(gains, 1)))


def main():
    parser = options(__doc__)
    parser.add_argument("--only", metavar="GLOB", default="*")
    args = parser.parse_args()
    with Checker(args) as c:
        os.chdir(c.folder)
        for name, (made, named) in NETS.items():
            if fnmatch(name, args.only):
                check(c, name, made, named)
        if fnmatch("rare", args.only):
            check_rare(c, 16)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
