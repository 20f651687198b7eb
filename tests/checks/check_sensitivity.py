#!/usr/bin/env python3
"""Measures what each value and each layer of models quantized by ONNX Runtime costs, and compares qeval --sensitivity with it.

    check_sensitivity.py [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Here a value alone is rounded by a QuantizeLinear and DequantizeLinear put into the float model, and a layer alone has the numbers that its
quantized weights and bias stand for; ONNX Runtime runs these models in float. Both forms that quantize_static writes are read, with scales
per tensor and per channel, symmetric and not, and a model whose normalization it leaves as it is.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

from pylib import peer, samples, tool
from pylib.judge import Checker, options, run_ort, sqnr
from pylib.plainnet import Net

NEAR = 0.05     # dB: sums in another order, and a value on the edge between two steps
COUNT = 16      # samples: all are measured


def residual(path, normalized=False):
    """A stem, a depthwise and a pointwise convolution around which the stem's result goes, and a classifier."""
    net = Net(11)
    net.node("Conv", ["x", net.const("w1", 8, 3, 3, 3, scale=0.3), net.const("b1", 8)], "c1", pads=[1, 1, 1, 1])
    if normalized:
        net.node("BatchNormalization", ["c1", *(net.const(n, 8, scale=0.2) for n in ("g", "h", "m")), net.const("v", value=np.full(8, 2, np.float32))], "n1")
    net.node("Relu", ["n1" if normalized else "c1"], "r1")
    net.node("Conv", ["r1", net.const("w2", 8, 1, 3, 3, scale=0.5), net.const("b2", 8)], "c2", pads=[1, 1, 1, 1], group=8)
    net.node("Conv", ["c2", net.const("w3", 8, 8, 1, 1, scale=0.4)], "c3")
    net.node("Add", ["c3", "r1"], "a")
    net.node("GlobalAveragePool", ["a"], "p")
    net.node("Flatten", ["p"], "f")
    net.node("Gemm", ["f", net.const("w4", 8, 5), net.const("b4", 5)], "y")
    return net.save(path, [1, 3, 10, 10])


# ---- what it should be ----

class Quantized:
    """Scales and weights of a quantized model, by the names of the float model."""

    def __init__(self, path):
        self.model = onnx.load(path)
        self.constant = {t.name: numpy_helper.to_array(t) for t in self.model.graph.initializer}

    def scale_of(self, value):
        """(scale, zero point) of an activation: those of its quantizer, or of the operator on integers that makes it."""
        for n in self.model.graph.node:
            if n.op_type == "QuantizeLinear" and n.input[0] in (value, f"{value}_QuantizeLinear_Input"):
                return n.input[1:3]
            if n.output[0] == f"{value}_quantized":
                at = {"QLinearConv": 6, "QLinearAdd": 6, "QGemm": 7, "QLinearGlobalAveragePool": 3}.get(n.op_type)
                if at:
                    return n.input[at:at + 2]
        raise KeyError(value)

    def bias_scale(self, name):
        if f"{name}_quantized_scale" in self.constant:
            return self.constant[f"{name}_quantized_scale"]
        reader = next(n for n in self.model.graph.node if f"{name}_quantized" in n.input)   # of integers: the input's times the weights'
        return self.constant[reader.input[1]] * self.constant[reader.input[4]]

    def real(self, name):
        """The real numbers of quantized weights or a bias; None where they are not quantized."""
        q = self.constant.get(f"{name}_quantized")
        if q is None:
            return None
        if q.dtype == np.int32:
            return (q * self.bias_scale(name).astype(np.float64)).astype(np.float32)
        scale, zero = self.constant[f"{name}_scale"], self.constant[f"{name}_zero_point"]
        shape = (-1,) + (1,) * (q.ndim - 1) if scale.size > 1 else ()
        if scale.size > 1 and name == "w4":     # columns of the classifier
            shape = (1, -1)
        return ((q.astype(np.float64) - zero.reshape(shape)) * scale.reshape(shape)).astype(np.float32)


def with_rounded_value(model, quantized, value):
    g, (scale, zero) = model.graph, quantized.scale_of(value)
    for name in (scale, zero):
        g.initializer.append(numpy_helper.from_array(quantized.constant[name], name))
    given = value in [i.name for i in g.input]
    source, rounded = (value, value + "/rounded") if given else (value + "/real", value)
    at = 0
    for i, n in enumerate(g.node):
        if given:
            n.input[:] = [rounded if x == value else x for x in n.input]
        elif value in n.output:
            n.output[:] = [source if x == value else x for x in n.output]
            at = i + 1
    g.node.insert(at, helper.make_node("DequantizeLinear", [value + "/codes", scale, zero], [rounded]))
    g.node.insert(at, helper.make_node("QuantizeLinear", [source, scale, zero], [value + "/codes"]))


def with_rounded_weights(model, quantized, layer):
    node = next(n for n in model.graph.node if n.name == layer)
    for t in model.graph.initializer:
        if t.name in node.input and (real := quantized.real(t.name)) is not None:
            t.CopyFrom(numpy_helper.from_array(real.reshape(t.dims), t.name))


def expected(path, quantized, cause, data):
    """dB of the outputs where this alone is quantized."""
    model = onnx.load(path)
    if cause["value"]:
        with_rounded_value(model, quantized, cause["value"])
    else:
        with_rounded_weights(model, quantized, cause["layer"])
    return sqnr(run_ort(path, data), run_ort(model.SerializeToString(), data, optimize=False))


# ---- the models ----

FORMS = (("qdq", {"quant_format": QuantFormat.QDQ, "per_channel": True, "weight_type": QuantType.QInt8}),
         ("qdq, unsigned weights", {"quant_format": QuantFormat.QDQ, "per_channel": False, "weight_type": QuantType.QUInt8}),
         ("operators", {"quant_format": QuantFormat.QOperator, "per_channel": False, "weight_type": QuantType.QInt8}))


def quantize(path, out, data, how):
    each = samples.Samples(len(data), lambda i: data[i][0])
    with peer.quiet():
        quantize_static(str(path), str(out), peer.reader(each, len(data), "x"), activation_type=QuantType.QUInt8, **how)


def compare(check, path, what, data, how):
    out, report = check.folder / "quantized.onnx", check.folder / "report.json"
    quantize(path, out, data, how)
    spec = check.folder / "samples.npy"
    np.save(spec, np.concatenate(data))
    tool.run([check.qeval, path, out, "--data", spec, "--skip-bad", "--sensitivity", "--json", report, "-q"])
    r = json.loads(report.read_text())
    s, quantized = r["sensitivity"], Quantized(out)
    layers = sum(quantized.real(n) is not None for n in ("w1", "w2", "w3", "w4"))
    check.hold(f"{what}: all layers pair", r["layers"] == layers == 4 and r["layers_without_counterpart"] == 0, str(r["layers"]))
    check.hold(f"{what}: all samples are measured", s["samples"] == COUNT)
    for cause in s["causes"]:
        want = expected(path, quantized, cause, data)
        check.hold(f"{what}: {cause['layer'] or 'input'} {cause['value'] or '(weights)'}", abs(cause["sqnr_db"] - want) < NEAR,
                   f"{cause['sqnr_db']:.3f} dB, expected {want:.3f}")
    shares = [c["share"] for c in s["causes"]]
    check.hold(f"{what}: shares are parts of a whole, the worst first", sum(shares) <= 1 + 1e-9 and shares == sorted(shares, reverse=True) and shares[0] > 0)
    check.hold(f"{what}: values and weights are there", {bool(c["value"]) for c in s["causes"]} == {True, False} and len(shares) >= 6, str(len(shares)))


def main():
    args = options(__doc__).parse_args()
    rng = np.random.default_rng(5)
    data = [rng.normal(size=(1, 3, 10, 10)).astype(np.float32) for _ in range(COUNT)]
    with Checker(args) as check:
        for normalized in (False, True):
            path = check.folder / "float.onnx"
            residual(path, normalized)
            for name, how in FORMS:
                compare(check, path, f"{name}{', normalized' if normalized else ''}", data, how)
        return check.finish()


if __name__ == "__main__":
    sys.exit(main())
