#!/usr/bin/env python3
"""Runs the commands that warnings of a loss name, and judges their files with ONNX Runtime.

    check_cures.py [--models N] [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Small seeded networks of kinds that 8 bits do not hold are converted with default options: values of two scales in front of every layer; such values and weights, so that stored weights lose
as well; layers that amplify each error; spectra of loud and quiet samples, of which dynamic layers make something of use by default. Where the conversion warns that its outputs are of little use, it has to name a command; that command, run as
it stands, has to give a file whose outputs are of use on other samples; or, where it names a number below that, the number has to be that of the file, and no scheme may do better by more than
a little. Outputs that are numbers, with more error than half a percent, come with such a command without a warning, and with a goal or a scheme that was asked for without one.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import re
import shlex
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
from onnx import TensorProto, helper

from pylib import tool
from pylib.judge import Checker, options, run_ort, sqnr
from pylib.smallnets import Net

OF_USE = 20     # dB at the outputs, the limit of the warning
FINE = 46       # dB at outputs that are numbers: above, nothing is named
NEAR = 3        # dB between other samples and those that judged
SCHEMES = ("dynamic", "stored", "fp16")
WIDTH = 96
GAIN = 4        # of the layers that amplify


def scales(n, kind, layer):
    """By channel: what the values of a layer's input are multiplied with, and its weights divided by."""
    s = np.ones(WIDTH)
    if kind == "two scales":
        s[n.rng.choice(WIDTH, 3, replace=False)] = 1000
    elif kind == "many scales":
        s = 10 ** n.rng.uniform(-2, 2, WIDTH)
    return s


def make(path, kind, seed):
    """A chain of layers; samples float32[1][96]."""
    n, layers = Net(seed), 10 if kind == "amplifying" else 5
    x, before = "x", None
    for i in range(layers):
        s = scales(n, kind, i)
        w = n.weights(WIDTH, WIDTH) * (GAIN if kind == "amplifying" else 1.4) / s[:, None]
        if i == 0:
            before = s
        else:   # the layer before it makes the values that this one reads
            x = n.node("Mul", [x, n.const(s.astype(np.float32))])
        x = n.node("Gemm", [x, n.const(w.astype(np.float32)), n.const(n.small(WIDTH))], f"layer{i}")
        if i + 1 < layers:
            x = n.node("Tanh" if kind == "amplifying" else "Relu", [x])
    n.save(path, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, WIDTH])], [x])
    x = n.rng.standard_normal((160, 1, WIDTH)) * before
    if kind == "loud and quiet":
        x = x ** 2 * 10 ** n.rng.uniform(-4, 1, (160, 1, 1))
    return list(x.astype(np.float32))


def commands(report):
    return [(a["text"], a["command"]) for a in report["answer"] if a.get("about") == "try" and a.get("command")]


def run_named(c, text, folder):
    """Runs a command as it stands, with the programs that are tested, and returns the file that it writes."""
    words = shlex.split(text.replace("\\\n", " "))
    out = folder / "named.onnx"
    if "-o" in words:
        at = words.index("-o")
        del words[at:at + 2]
    tool.run([c.qconvert, *words[1:], "-o", out])
    return out


def check_finer(c, what, model, data, has, named, want, tests):
    """Where nothing is warned of."""
    c.hold(f"{what}: named below {FINE} dB alone", bool(named) == (has < FINE), f"{has:.1f} dB, {named}")
    if not named:
        return
    promised = re.search(r"\(([\d.]+) dB when", named[0][0])
    got = sqnr(want, run_ort(run_named(c, named[0][1], c.folder), tests))
    c.hold(f"{what}: the command loses less", got > has + NEAR, f"{has:.1f} dB, then {got:.1f}")
    c.hold(f"{what}: as was said", promised and abs(got - float(promised[1])) < NEAR + 0.1 * got, f"{got:.1f} dB; {named[0][0]}")
    for more in (["--scheme", "static"], ["--min-sqnr", "10"]) if what.startswith("plain") else ():  # of other kinds these are warned of
        report = c.convert(model, c.folder / "other.onnx", "--data", data, *more)
        c.hold(f"{what}: not with {more[0]}", not [t for t, _ in commands(report) if "lose less" in t], str(report["answer"])[:300])


def check(c, kind, seed):
    what = f"{kind} {seed}"
    model, data, out = (c.folder / f"cure.{end}" for end in ("onnx", "npy", "q.onnx"))
    samples = make(model, kind, seed)
    np.save(data, np.stack(samples[:64]))
    tests, report = samples[64:], c.convert(model, out, "--data", data)
    want = run_ort(model, tests)
    has = report.get("output_sqnr_db")
    warned = any(re.search(r"output SQNR .* is below", w) for w in report["warnings"])
    c.hold(f"{what}: warned where outputs are of little use", warned == (has < OF_USE), f"{has} dB, {report['warnings']}")
    if not warned:
        check_finer(c, what, model, data, has, commands(report), want, tests)
        return False
    named = commands(report)
    c.hold(f"{what}: a command is named", len(named) >= 1, json.dumps(report["answer"])[:300])
    if not named:
        return True
    text, command = named[0]
    got = sqnr(want, run_ort(run_named(c, command, c.folder), tests))
    promised = re.search(r"\((-?[\d.]+) dB when", text)
    if promised and float(promised[1]) < OF_USE:
        others = []
        for scheme in SCHEMES:
            c.convert(model, out, "--data", data, "--scheme", scheme)
            others.append(sqnr(want, run_ort(out, tests)))
        c.hold(f"{what}: no scheme does better", max(others) < max(got + NEAR, OF_USE), f"{got:.1f} dB by {command}; {np.round(others, 1)}")
    else:
        c.hold(f"{what}: the command repairs it", got > OF_USE - NEAR, f"{got:.1f} dB, {has:.1f} without; {text} {command}")
    if promised:
        c.hold(f"{what}: with the number that was named", abs(got - float(promised[1])) < NEAR + 0.1 * got, f"{got:.1f} dB; {text}")
    return True


def main():
    parser = options(__doc__)
    parser.add_argument("--models", type=int, default=3, help="of each kind")
    args = parser.parse_args()
    with Checker(args) as c:
        for kind in ("two scales", "many scales", "loud and quiet", "amplifying", "plain"):
            warned = sum([check(c, kind, seed) for seed in range(args.models)])
            if kind in ("loud and quiet", "plain"):    # layers of the first are dynamic by default, which check_dynamic.py judges
                c.hold(f"{kind}: none is warned of", warned == 0, f"{warned} are")
            else:
                c.hold(f"{kind}: some are warned of", warned > 0, "none is: the case is too easy")
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
