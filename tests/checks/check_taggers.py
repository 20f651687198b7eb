#!/usr/bin/env python3
"""Converts taggers of sequences as exporters of Keras write them, and holds how they are decided and what they keep.

    check_taggers.py [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Each layer is a Conv over one dimension (Unsqueeze, Conv, Squeeze, Add of the bias, Relu), the last one a small Conv with logits far below 0, of which Softmax sees the largest. All Add and Relu
become parts of the integer layers. The last Conv's logits are rounded in steps that the lowest of them need, which alone decides the classes: it stays float if it costs nearly nothing, and not if
it costs much, or without a budget. On samples that did not calibrate, in ONNX Runtime's exact kernels, the probabilities must be near those of the float model.
Only targets with tables of costs know that a layer in float takes nearly nothing: for others the same network has all its Conv on integers.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pylib import peer
from pylib.judge import Checker, options, sqnr

LENGTH, INPUT, CLASSES = 24, 16, 9
LEAST = 30      # dB behind Softmax
COSTS = ("onnxruntime-x86", "onnxruntime-vnni", "onnxruntime-arm64")     # targets with tables of costs, their own or inherited
WITHOUT = ("generic", "openvino", "litert", "tensorrt")


def write(path, wide, hidden):
    """wide: how far the logits of classes that are never chosen lie below the others."""
    rng = np.random.default_rng(5)
    nodes, constants, x, channels = [], [], "x", INPUT

    def const(name, a):
        constants.append(numpy_helper.from_array(a, name))
        return name

    const("axis", np.array([2], np.int64))
    for i, (outs, kernel) in enumerate(((hidden, 5), (hidden, 5), (CLASSES, 1))):
        last = i == 2
        w = rng.normal(0, (2 if last else 1.4) / np.sqrt(channels * kernel), (outs, channels, 1, kernel)).astype(np.float32)
        bias = rng.normal(0, 0.1, (1, outs, 1)).astype(np.float32)
        if last:
            w[CLASSES // 2:] *= 2
            bias[:, CLASSES // 2:] -= wide
        nodes += [helper.make_node("Unsqueeze", [x, "axis"], [f"u{i}"]),
                  helper.make_node("Conv", [f"u{i}", const(f"w{i}", w)], [f"c{i}"], name=f"conv{i}", pads=[0, kernel // 2, 0, kernel // 2]),
                  helper.make_node("Squeeze", [f"c{i}", "axis"], [f"s{i}"]), helper.make_node("Add", [f"s{i}", const(f"b{i}", bias)], [f"a{i}"], name=f"add{i}")]
        x, channels = f"a{i}", outs
        if not last:
            nodes.append(helper.make_node("Relu", [x], [f"r{i}"], name=f"relu{i}"))
            x = f"r{i}"
    nodes.append(helper.make_node("Softmax", [x], ["y"], axis=1))
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "tagger", [value("x", TensorProto.FLOAT, ["n", INPUT, LENGTH])], [value("y", TensorProto.FLOAT, ["n", CLASSES, LENGTH])], constants)
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)]), path)


def run_ort(model, rows):
    session = peer.session(model, exact=True)
    return [np.concatenate([session.run(None, {"x": x[None]})[0] for x in rows])]


def main():
    args = options(__doc__).parse_args()
    with Checker(args) as c:
        rng = np.random.default_rng(2)
        calib, rows = (rng.normal(0, 1, (n, INPUT, LENGTH)).astype(np.float32) for n in (64, 40))
        np.save(c.folder / "calib.npy", calib)
        model, out = c.folder / "float.onnx", c.folder / "out.onnx"
        cases = [("small and wide", 150, 200, [], ["conv2"]), ("no budget", 150, 200, ["--budget", "0"], []), ("of some work", 150, 4, [], [])]
        cases += [(f"for {t}", 150, 200, ["--target", t], ["conv2"]) for t in COSTS] + [(f"for {t}", 150, 200, ["--target", t], []) for t in WITHOUT]
        for name, wide, hidden, more, floats in cases:
            write(model, wide, hidden)
            want = run_ort(model, rows)
            report = c.convert(model, out, "--data", c.folder / "calib.npy", *more)
            got = sqnr(want, run_ort(out, rows))
            convs = [y["name"] for y in report["layers"] if y["op"] == "Conv" and y["scheme"] == "float"]
            c.hold(f"{name}: what stays float", convs == floats, str(convs))
            c.hold(f"{name}: no bias is left", not any(y["op"] == "Add" for y in report["layers"]), str([y["name"] for y in report["layers"]]))
            if floats:
                c.hold(f"{name}: keeps enough", got >= LEAST, f"{got:.1f} dB")
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
