#!/usr/bin/env python3
"""Judges what conversions with default options leave float because it costs little, with ONNX Runtime.

    check_finer.py [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Seeded networks whose outputs are numbers. Of "late" the last layers, which take nearly no time, cause most of the loss: many small products beside convolutions, half of which read cubes. Their file has to have float products
beside int8 convolutions, as many bytes, and to lose less on other samples; with a budget, a scheme or rules that were asked for, nothing may change, and the answer's option has to keep all on integers.
Of "early" the convolutions themselves lose, whose float form takes twice the time: all stay int8, and a command is named that loses less.
"brief" is a perceptron whose float form takes a third longer, but 10 microseconds as a whole: all becomes float, in as many bytes.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
from onnx import TensorProto, helper

from pylib.judge import Checker, options, run_ort, sqnr
from pylib.smallnets import Net

GAIN = 3        # dB that is worth it
SIDE, CHANNELS, HEADS = 24, 80, 16
SAMPLES = 96    # the first 64 for the conversion


def cube(n, x):
    """Values with long tails, which 8 bits do not hold."""
    return n.node("Mul", [n.node("Mul", [x, x]), x])


def conv(n, x, channels, name):
    w = n.weights(channels * 9, CHANNELS).T.reshape(CHANNELS, channels, 3, 3) * 1.4
    return n.node("Relu", [n.node("Conv", [x, n.const(w.astype(np.float32)), n.const(n.small(CHANNELS))], name, pads=[1, 1, 1, 1])])


def gemm(n, x, inputs, outputs, name):
    return n.node("Gemm", [x, n.const((n.weights(inputs, outputs) * 1.4).astype(np.float32)), n.const(n.small(outputs))], name)


def make(path, kind, seed):
    n, y, shape = Net(seed), "x", [1, 8, SIDE, SIDE]
    if kind == "brief":
        shape = [1, 1024]
        for i, (inputs, outputs) in enumerate(((1024, 128), (128, 128), (128, 4))):
            y = gemm(n, n.node("Relu", [y]) if i else y, inputs, outputs, f"product{i}")
    for i in range(3 if kind != "brief" else 0):
        y = conv(n, cube(n, y) if i == 2 and kind == "early" else y, CHANNELS if i else 8, f"conv{i}")
    if kind == "late":
        heads = [gemm(n, n.node("Flatten", [n.node("GlobalAveragePool", [y])]), CHANNELS, 2, "mean")]
        y = n.node("Slice", [n.node("Flatten", ["x"]), *(n.const(np.array([k])) for k in (0, CHANNELS, 1))])
        for i in range(HEADS):  # each causes too little of the loss to be looked for
            h = gemm(n, y, CHANNELS, CHANNELS, f"product{i}")
            heads.append(gemm(n, cube(n, h), CHANNELS, 2, f"head{i}"))
        y = n.node("Concat", heads, axis=1)
    n.save(path, [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], [y])
    return list(n.rng.standard_normal((SAMPLES, *shape)).astype(np.float32) ** (3 if kind == "brief" else 1))


def integer_layers(path):
    """Names of the layers between quantizers: their first input is dequantized."""
    graph = onnx.load(path).graph
    made = {o: node for node in graph.node for o in node.output}
    return {node.name for node in graph.node if node.op_type in ("Conv", "Gemm", "MatMul") and made.get(node.input[0]) is not None and made[node.input[0]].op_type == "DequantizeLinear"}


def named(report):
    return [a["command"] for a in report["answer"] if a.get("about") == "try" and a.get("command")]


class Case:
    def __init__(self, c, kind, seed):
        self.c, self.what = c, f"{kind} {seed}"
        self.model, self.data = c.folder / f"{kind}.onnx", c.folder / f"{kind}.npy"
        samples = make(self.model, kind, seed)
        np.save(self.data, np.stack(samples[:64]))
        self.tests = samples[64:]
        self.want = run_ort(self.model, self.tests)

    def hold(self, what, holds, found):
        self.c.hold(f"{self.what}: {what}", holds, str(found))

    def convert(self, name, *more):
        """(file, report, dB on samples that the conversion did not have)"""
        out = self.c.folder / f"{name}.onnx"
        report = self.c.convert(self.model, out, "--data", self.data, *more)
        return out, report, sqnr(self.want, run_ort(out, self.tests))


def check_taken(c, kind, seed, integers):
    x = Case(c, kind, seed)
    out, report, has = x.convert("default")
    plain, other, had = x.convert("plain", "--budget", "3")
    everything = integer_layers(plain)
    x.hold("these stay on integers", integer_layers(out) >= integers and not any("head" in k for k in integer_layers(out)), integer_layers(out))
    x.hold("that loses less", has >= had + GAIN, f"{has:.1f} dB, {had:.1f} without")
    x.hold("the file is as small", out.stat().st_size <= 1.1 * plain.stat().st_size, f"{out.stat().st_size} bytes, {plain.stat().st_size} without")
    x.hold("the report has it", "finer" in report and report["finer"]["sqnr_db"] >= report["finer"]["without_sqnr_db"] + GAIN, report.get("finer"))
    x.hold("with a budget it has not", other.get("finer") is None, other.get("finer"))
    for asked in (["--scheme", "static"], ["--min-sqnr", "10"]):
        file, report, _ = x.convert("asked", *asked)
        x.hold(f"{asked[0]} is an answer", integer_layers(file) == everything and report.get("finer") is None, integer_layers(file))
    kept = max(everything - integer_layers(out), default="")
    file, _, _ = x.convert("ruled", "--set", f"name:{kept}=static")
    x.hold("a rule holds", kept in integer_layers(file), integer_layers(file))


def check_dear(c, kind, seed):
    x = Case(c, kind, seed)
    out, report, has = x.convert("default")
    x.hold("all stays on integers", report.get("finer") is None and len(integer_layers(out)) == 3, integer_layers(out))
    x.hold("a command is named", any(re.search(r"--scheme (stored|fp16)", k) for k in named(report)), named(report))
    _, _, better = x.convert("named", "--scheme", "stored")
    x.hold("which loses less", better > has + GAIN, f"{has:.1f} dB, then {better:.1f}")


def check_brief(c, kind, seed):
    x = Case(c, kind, seed)
    out, report, has = x.convert("default")
    plain, other, had = x.convert("plain", "--budget", "3")
    counts = report["int8_layers"], other["int8_layers"]
    x.hold("all is float, and was on integers", counts == (0, 3), counts)
    x.hold("that loses less", has >= had + GAIN, f"{has:.1f} dB, {had:.1f} without")
    x.hold("the file is as small", out.stat().st_size <= 1.1 * plain.stat().st_size, f"{out.stat().st_size} bytes, {plain.stat().st_size} without")
    x.hold("the price is more than what layers of a longer run may take", "finer" in report and report["finer"]["time"] > 1.25, report.get("finer"))


def main():
    args = options(__doc__).parse_args()
    with Checker(args) as c:
        for seed in range(2):
            check_taken(c, "late", seed, {"conv1", "conv2"})
            check_dear(c, "early", seed)
            check_brief(c, "brief", seed)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
