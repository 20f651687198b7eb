#!/usr/bin/env python3
"""Dimensions that a model leaves open have the sizes of the samples wherever work counts: a model converts as if they were fixed.

    check_open_shapes.py [--qconvert PROGRAM] [-v]

Each network exists with open dimensions (height, width, batch, time, all of them, one inside a body, and sizes that depend on values) and with
those of its samples. The multiply-accumulates of the layers are those that follow from the shapes; what mixed precision leaves float, and its
share, is the same for both; --budget 0 leaves nothing float. Without samples, and where values tell a size, a count is unknown, and not 0.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx")
import numpy as np
from onnx import TensorProto, helper

from pylib import plainnet, tool
from pylib.judge import Checker, options

F, COUNT = TensorProto.FLOAT, 24
info = helper.make_tensor_value_info


class Made(plainnet.Nodes):
    def weights(self, name, *shape):
        """One input channel in ten is a hundredth as large, and what feeds it as much larger: its values take the range of the others."""
        return self.const(name, (self.rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32))

    def save(self, path, shape):
        super().save(path, [("x", F, shape)], [("y", F, None)])


def loud(m, name, *shape):
    """Weights one of whose output channels is 60 times as large: its range costs the others precision."""
    w = m.rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
    w[0] *= 60
    return m.const(name, w.astype(np.float32))


def pictures(path, shape):
    m = Made(1)
    m.node("Conv", ["x", loud(m, "w1", 32, 8, 3, 3)], "a", pads=[1] * 4, name="small")
    m.node("LeakyRelu", ["a"], "b", alpha=0.1)
    m.node("Conv", ["b", m.weights("w2", 64, 32, 7, 7)], "y", name="large")
    m.save(path, shape)


def strided(path, shape):
    m = Made(2)
    m.node("Conv", ["x", loud(m, "w1", 32, 8, 3, 3)], "a", pads=[1] * 4, strides=[2, 2], name="small")
    m.node("Relu", ["a"], "b")
    m.node("Resize", ["b", "", m.const("s", np.float32([1, 1, 2, 2]))], "c", mode="nearest")
    m.node("Conv", ["c", m.weights("w2", 48, 32, 5, 5)], "y", name="large")
    m.save(path, shape)


def recording(path, shape):
    m = Made(3)
    m.node("Conv", ["x", loud(m, "w1", 32, 8, 3)], "a", pads=[1, 1], name="small")
    m.node("LeakyRelu", ["a"], "b", alpha=0.1)
    m.node("Conv", ["b", m.weights("w2", 64, 32, 15)], "y", name="large")
    m.save(path, shape)


def rows(path, shape):
    m = Made(4)
    m.node("MatMul", ["x", m.const("w1", loud_columns(m, 24, 96))], "a", name="small")
    m.node("LeakyRelu", ["a"], "b", alpha=0.1)
    m.node("MatMul", ["b", m.weights("w2", 96, 512)], "y", name="large")
    m.save(path, shape)


def loud_columns(m, k, n):
    w = m.rng.standard_normal((k, n)) / np.sqrt(k)
    w[:, 0] *= 60
    return w.astype(np.float32)


def lengths(path, shape):
    """The size of the second product follows from how many rows are not negative."""
    m = Made(5)
    m.node("Squeeze", ["x", m.const("axis", np.int64([0]))], "r")
    m.node("MatMul", ["r", m.const("w1", loud_columns(m, 24, 96))], "a", name="small")
    m.node("LeakyRelu", ["a"], "b", alpha=0.1)
    m.node("ReduceSum", ["r", m.const("last", np.int64([1]))], "sum", keepdims=0)
    m.node("Greater", ["sum", m.const("zero", np.float32(0))], "which")
    m.node("Compress", ["b", "which"], "c", axis=0)
    m.node("MatMul", ["c", m.weights("w2", 96, 512)], "y", name="large")
    m.save(path, shape)


def body(path, shape):
    m = Made(6)
    m.node("Conv", ["x", loud(m, "w1", 32, 8, 3, 3)], "a", pads=[1] * 4, name="small")
    m.weights("w2", 16, 32, 3, 3)
    then = helper.make_graph([helper.make_node("Conv", ["a", "w2"], ["t"], name="inner")], "then", [], [info("t", F, None)])
    other = helper.make_graph([helper.make_node("Conv", ["a", "w2"], ["e"], name="other")], "else", [], [info("e", F, None)])
    m.node("ReduceMax", ["x"], "max", keepdims=0)
    m.node("Greater", ["max", m.const("zero", np.float32(0))], "if")
    m.node("If", ["if"], "y", then_branch=then, else_branch=other, name="holder")
    m.save(path, shape)


# name: (maker, open shape, shape of a sample, multiply-accumulates of the layers with that shape; None: unknown)
PICTURE = {"small": 32 * 8 * 9 * 20 * 28, "large": 64 * 32 * 49 * 14 * 22}
CASES = {
    "height_width": (pictures, [1, 8, "h", "w"], [1, 8, 20, 28], PICTURE),
    "width": (pictures, [1, 8, 20, "w"], [1, 8, 20, 28], PICTURE),
    "height": (pictures, [1, 8, "h", 28], [1, 8, 20, 28], PICTURE),
    "batch_too": (pictures, ["n", 8, "h", "w"], [1, 8, 20, 28], PICTURE),
    "batch": (pictures, ["n", 8, 20, 28], [1, 8, 20, 28], PICTURE),
    "channels_known": (strided, ["n", 8, None, None], [1, 8, 24, 24], {"small": 32 * 8 * 9 * 12 * 12, "large": 48 * 32 * 25 * 20 * 20}),
    "samples_of_audio": (recording, [1, 8, "t"], [1, 8, 300], {"small": 32 * 8 * 3 * 300, "large": 64 * 32 * 15 * 286}),
    "time": (rows, [1, "t", 24], [1, 50, 24], {"small": 50 * 24 * 96, "large": 50 * 96 * 512}),
    "time_and_batch": (rows, ["n", "t", 24], [1, 50, 24], {"small": 50 * 24 * 96, "large": 50 * 96 * 512}),
    "by_values": (lengths, [1, "t", 24], [1, 50, 24], {"small": 50 * 24 * 96, "large": None}),
    "in_a_body": (body, [1, 8, "h", "w"], [1, 8, 20, 28], {"small": 32 * 8 * 9 * 20 * 28}),
}


def convert(c, model, data, *more):
    report = c.folder / "r.json"
    tool.run([c.qconvert, model, "--data", data, "-o", c.folder / "q.onnx", "-q", "--json", report, "--no-method", "equalize", *more])
    return json.loads(report.read_text())


def promoted(report):
    return [(p["layer"], p["macs_share"] and round(p["macs_share"], 9), p["beyond_budget"]) for p in report.get("promotions", [])]


def work(c, model, layer, *more):
    """What `explain` says of a layer's work."""
    said = tool.run([c.qconvert, "explain", model, layer, *more])
    return next((line.partition("work")[2].split()[0].rstrip(":") for line in said.splitlines() if line.startswith("work")), None)


def check_case(c, name, maker, shape, real, macs):
    samples = np.random.default_rng(0).standard_normal((COUNT, *real)).astype(np.float32)
    data = c.folder / f"{name}.npz"
    np.savez(data, x=samples[:, 0] if real[0] == 1 else samples)
    opened, fixed = c.folder / f"{name}_open.onnx", c.folder / f"{name}_fixed.onnx"
    maker(opened, shape)
    maker(fixed, real)
    for scheme in ([], ["--scheme", "dynamic"]):
        what = " ".join([name, *scheme[1:]])
        o, f = (convert(c, m, data, *scheme) for m in (opened, fixed))
        got = {x["name"]: x.get("macs") for x in o["layers"] if x["name"] in macs}
        c.hold(f"{what}: multiply-accumulates", got == macs, f"{got}, not {macs}")
        c.hold(f"{what}: what stays float", promoted(o) == promoted(f), f"{promoted(o)}, with fixed shapes {promoted(f)}")
        none = promoted(convert(c, opened, data, "--budget", "0", *scheme))
        c.hold(f"{what}: --budget 0", none == [], str(none))
        c.hold(f"{what}: schemes", [x["scheme"] for x in o["layers"]] == [x["scheme"] for x in f["layers"]])
    for layer, count in macs.items():
        said = work(c, opened, layer, "--data", data)
        c.hold(f"{name}: explain {layer}", said == "unknown" if count is None else said not in ("unknown", None), str(said))
    if maker is not lengths and any(not isinstance(d, int) for d in shape[1:]):     # an open first dimension is the batch
        c.hold(f"{name}: without samples", work(c, opened, "small") == "unknown", str(work(c, opened, "small")))


def main():
    args = options(__doc__).parse_args()
    with Checker(args) as c:
        for name, case in CASES.items():
            check_case(c, name, *case)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
