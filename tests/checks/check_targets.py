#!/usr/bin/env python3
"""Checks models made for each built-in target against rules of its runtime, written down here apart from the target files.

    check_targets.py [--qconvert PROGRAM] [--qeval PROGRAM] [--target NAME]... [--all] [--shared FOLDER] [-v]

Small networks (convolutions with a residual sum, depthwise ones with a clamp, pooling with Concat and Resize, a transposed convolution, gates, an
encoder, a perceptron) are converted for each target; --all adds a recurrent network, --shared the detector that is there. Each model passes the ONNX checker. RULES has what the
runtimes' documents and sources say of types, zero points, granularity, biases, where quantizers stand, scales that are fixed or shared, domains and shapes.

Lint of each model finds what the conversion has announced. Models for ONNX Runtime run there, and outputs are near ours; those for OpenVINO run in OpenVINO where its package is installed: layers run on
integers by its execution graph. Outputs of every model are near those of the float model.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
sys.path.append(str(Path(__file__).resolve().parents[1] / "generate"))  # for make_zoo
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from generate import make_nasty
from pylib import digest_models, smallnets, tool
from pylib.judge import Checker, options, run_ort, sqnr

WEIGHTED = {"Conv", "ConvTranspose", "Gemm", "MatMul"}
RUNS_IN_ORT = {"onnxruntime-x86", "onnxruntime-vnni", "onnxruntime-arm64", "generic"}

# act: types of activations; w: of weights; middle: zero points in the middle of the type; bias: int32 or float; pc: operators whose weights may have a
# scale per channel; matmul: the type of weights of MatMul; narrow: operators whose inputs behind the first have 8 bits beside one of 16; output: operators with a quantizer behind each result; after: whether products may have a quantizer straight behind them;
# readers: at most so many readers of a DequantizeLinear of activations; foreign: whether com.microsoft may be used; all: operators that
# stand between quantizers, wherever they are; one: operators whose inputs share a scale; same: operators between quantizers whose result has the
# parameters of the input; fixed: {(operator, type): parameters} of results between quantizers; least: the smallest range of real numbers; static:
# whether inputs must have fixed dimensions; takes_clamps: operators whose Relu or Clip has no quantizer in front; written: attributes of convolutions and pools have
# no defaults left out, and no BatchNormalization or bfloat16 is left; pairs: weights may not saturate 16 bits, and two activations are not multiplied on integers; rounds: layers of floats are quantized behind a dequantizer of one scale; powers: scales are powers of two; only: operators on integers; nothing: none are; whole: no layer has
# quantized weights alone, or activations.
MOVES = {"MaxPool", "Reshape", "Transpose", "Slice", "Squeeze", "Unsqueeze", "Flatten"}
# What the quantizer of AMD's tool for convolutional networks puts pairs around, by its registry and those of ONNX Runtime's that it calls for the rest.
AMD = WEIGHTED | MOVES | {"Add", "Mul", "Sub", "Div", "Min", "Max", "Relu", "Clip", "PRelu", "LeakyRelu", "Sigmoid", "HardSigmoid", "Tanh", "Concat", "Split", "Gather",
                          "AveragePool", "GlobalAveragePool", "Resize", "DepthToSpace", "SpaceToDepth", "ReduceMean", "Softmax", "LayerNormalization",
                          "LpNormalization", "InstanceNormalization", "Erf"}
ORT = {"act": {"uint8", "int8"}, "w": {"uint8", "int8"}, "bias": "int32", "pc": WEIGHTED, "output": {"Conv"}, "foreign": True, "same": MOVES, "rounds": True,
       "fixed": {("Softmax", "uint8"): (1 / 256, 0), ("Softmax", "int8"): (1 / 256, -128)}}
RULES = {
    "onnxruntime-x86": ORT,
    "onnxruntime-vnni": ORT,
    "onnxruntime-arm64": ORT | {"w": {"int8"}},
    "openvino": {"pairs": True, "act": {"uint8", "int8"}, "w": {"int8"}, "bias": "float", "pc": WEIGHTED, "foreign": False, "same": MOVES | {"Split"}, "one": {"Concat"}},
    "openvino-vnni": {"act": {"uint8", "int8"}, "w": {"int8"}, "bias": "float", "pc": WEIGHTED, "foreign": False, "same": MOVES | {"Split"}, "one": {"Concat"}},
    "openvino-npu": {"act": {"uint8", "int8"}, "w": {"int8"}, "bias": "float", "pc": WEIGHTED, "foreign": False, "same": MOVES | {"Split"}, "static": True,
                     "one": {"Add", "Mul", "Sub", "Div", "Min", "Max", "Concat"}},
    "openvino-gpu": {"act": {"uint8", "int8"}, "w": {"int8"}, "bias": "float", "pc": WEIGHTED, "foreign": False, "same": MOVES | {"Split"}, "one": {"Concat"}},
    "tensorrt": {"act": {"int8"}, "w": {"int8"}, "middle": True, "bias": "float", "pc": WEIGHTED, "foreign": False, "readers": 1, "residual": True,
                 "own_quantizer": True},
    "qnn": {"rounds": True, "act": {"uint8", "uint16"}, "w": {"uint8", "int8"}, "bias": "int32", "pc": {"Conv", "ConvTranspose"}, "matmul": "uint8",
            "narrow": {"MatMul", "LayerNormalization"},
            "output": WEIGHTED | {"Add", "Mul", "Concat", "Resize", "Softmax", "Sigmoid", "LayerNormalization", "MaxPool", "AveragePool"},
            "foreign": True, "around": True, "static": True, "least": 1e-4,
            "fixed": {("Sigmoid", "uint16"): (1 / 65536, 0), ("Tanh", "uint16"): (1 / 32768, 32768)}},
    "xnnpack": {"rounds": True, "static": True, "act": {"int8"}, "w": {"int8"}, "bias": "int32", "pc": {"Conv"}, "output": {"Conv"}, "foreign": False, "readers": 1},
    "vitisai": {"rounds": True, "act": {"int8"}, "w": {"int8"}, "middle": True, "powers": True, "bias": "int8", "pc": set(), "foreign": False, "readers": 1,
                "own_quantizer": True, "static": True, "one": {"Concat"}, "same": MOVES | {"Concat", "AveragePool", "GlobalAveragePool"}, "all": AMD, "written": True,
                "takes_clamps": {"Conv", "ConvTranspose", "Gemm", "MatMul", "Add", "MaxPool", "AveragePool", "GlobalAveragePool"}},
    "nnapi": {"rounds": True, "act": {"uint8"}, "w": {"uint8", "int8"}, "bias": "int32", "pc": {"Conv"}, "foreign": False, "static": True,
              "only": WEIGHTED - {"ConvTranspose"} | {"Resize", "AveragePool", "Add", "Mul", "Transpose", "Reshape", "Softmax", "Concat", "MaxPool"}},
    "coreml": {"act": set(), "foreign": False, "static": True, "nothing": True},
    "litert": {"rounds": True, "act": {"int8"}, "w": {"int8"}, "bias": "int32", "pc": {"Conv", "ConvTranspose"}, "foreign": False, "one": {"Concat"},
               "same": {"AveragePool", "MaxPool", "Concat", "Reshape", "Resize", "Pad", "Gather", "Slice", "Transpose", "Squeeze", "SpaceToDepth"},
               "fixed": {("Sigmoid", "int8"): (1 / 256, -128), ("Softmax", "int8"): (1 / 256, -128), ("Tanh", "int8"): (1 / 128, 0),
                         ("LogSoftmax", "int8"): (16 / 256, 127)}},
    "litert-int16": {"rounds": True, "act": {"int16", "int8"}, "w": {"int8"}, "narrow": {"MatMul"}, "middle": True, "bias": "int32", "pc": {"Conv", "ConvTranspose"}, "foreign": True, "one": {"Concat"},
                     "same": {"AveragePool", "MaxPool", "Concat", "Reshape", "Pad", "Slice", "Transpose", "Squeeze"}, "least": 1e-4,
                     "takes_clamps": {"Conv", "ConvTranspose", "Gemm", "MatMul", "Add", "MaxPool", "AveragePool", "GlobalAveragePool"},
                     "fixed": {("Sigmoid", "int16"): (1 / 32768, 0), ("Softmax", "int16"): (1 / 32768, 0), ("Tanh", "int16"): (1 / 32768, 0)}},
    "st-neuralart": {"rounds": True, "act": {"int8"}, "w": {"int8"}, "bias": "int32", "pc": WEIGHTED, "foreign": False, "static": True, "whole": True},
    "onnxruntime-octet": ORT | {"output": set()},
    "octet": ORT | {"output": set(), "rounds": False},
    "octet-avx2": ORT | {"output": set(), "rounds": False},
    "generic": {"rounds": True, "act": {"uint8"}, "w": {"int8"}, "bias": "int32", "pc": {"Conv"}, "output": {"Conv", "Gemm", "MatMul"}, "foreign": False},
}


# ---- networks

def fixed(shape):
    return [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]


def pictures(n, shape, count=24):
    return [n.rng.standard_normal(shape).astype(np.float32) for _ in range(count)]


def conv(n, x, ic, oc, k=3, group=1, stride=1, name=None):
    w = n.weights(oc, ic // group, k, k, fan=ic // group * k * k)
    return n.node("Conv", [x, n.const(w), n.const(n.small(oc))], name, pads=[k // 2] * 4, group=group, strides=[stride] * 2)


def residual(path):
    n = smallnets.Net(11)
    x = n.node("Relu", [conv(n, "x", 3, 16)])
    for _ in range(2):
        y = n.node("Relu", [conv(n, x, 16, 16)])
        x = n.node("Relu", [n.node("Add", [conv(n, y, 16, 16), x])])
    x = n.node("Relu", [n.node("Add", [conv(n, x, 16, 32, stride=2), conv(n, x, 16, 32, k=1, stride=2)])])
    x = n.node("Flatten", [n.node("GlobalAveragePool", [x])])
    x = n.node("Gemm", [x, n.const(n.weights(32, 10)), n.const(n.small(10))])
    n.save(path, fixed([1, 3, 16, 16]), [n.node("Softmax", [x])])
    return pictures(n, (1, 3, 16, 16), 40)  # enough that ranges are chosen tensor by tensor, with a quantizer at the end that no layer reads


def depthwise(path):
    n = smallnets.Net(12)
    six = [n.const(np.float32(v)) for v in (0, 6)]
    x = n.node("Clip", [conv(n, "x", 3, 16), *six])
    for _ in range(2):
        y = n.node("Clip", [conv(n, x, 16, 48, k=1), *six])
        y = n.node("Clip", [conv(n, y, 48, 48, group=48), *six])
        x = n.node("Add", [conv(n, y, 48, 16, k=1), x])
    n.save(path, fixed([1, 3, 16, 16]), [conv(n, x, 16, 8, k=1)])
    return pictures(n, (1, 3, 16, 16))


def pooled(path):
    n = smallnets.Net(13)
    x = n.node("Relu", [conv(n, "x", 3, 16)])
    small = n.node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    a, b = n.node("Relu", [conv(n, small, 16, 8)]), conv(n, small, 16, 8)
    x = n.node("Concat", [a, b], axis=1)
    x = n.node("Resize", [x, "", n.const(np.array([1, 1, 2, 2], np.float32))], mode="nearest", coordinate_transformation_mode="asymmetric",
               nearest_mode="floor")
    x = n.node("AveragePool", [n.node("Relu", [conv(n, x, 16, 16)])], kernel_shape=[2, 2], strides=[2, 2])
    n.save(path, fixed([1, 3, 16, 16]), [conv(n, x, 16, 8, k=1)])
    return pictures(n, (1, 3, 16, 16))


def upsampled(path):
    n = smallnets.Net(13)
    x = n.node("Relu", [conv(n, "x", 3, 16, stride=2)])
    w = n.weights(16, 8, 2, 2, fan=64)
    x = n.node("Relu", [n.node("ConvTranspose", [x, n.const(w), n.const(n.small(8))], strides=[2, 2])])
    n.save(path, fixed([1, 3, 16, 16]), [conv(n, x, 8, 4)])
    return pictures(n, (1, 3, 16, 16))


def gates(path):
    n = smallnets.Net(15)
    x = n.node("Relu", [conv(n, "x", 3, 8)])
    x = n.node("Mul", [n.node("Sigmoid", [conv(n, x, 8, 8)]), n.node("Tanh", [conv(n, x, 8, 8)])])
    n.save(path, fixed([1, 3, 12, 12]), [conv(n, x, 8, 8, k=1)])
    return pictures(n, (1, 3, 12, 12))


def encoder(path):
    return smallnets.encoder(path) * 6


def perceptron(path):
    return smallnets.perceptron(path)


def norms(path):
    """BatchNormalization that nothing takes, and operators without an integer form."""
    n = smallnets.Net(16)

    def norm(x, channels):
        return n.node("BatchNormalization", [x, *(n.const(v) for v in (1 + n.small(channels), n.small(channels), n.small(channels), 1 + np.abs(n.small(channels))))])

    x = n.node("Relu", [norm(n.node("Relu", [conv(n, "x", 3, 8)]), 8)])
    x = n.node("PRelu", [conv(n, x, 8, 8), n.const(np.abs(n.small(8, 1, 1)))])
    x = n.node("Mul", [x, n.node("HardSigmoid", [conv(n, x, 8, 8, k=1)])])
    x = n.node("Resize", [x, "", n.const(np.array([1, 1, 2, 2], np.float32))], mode="linear")
    x = n.node("LayerNormalization", [norm(x, 8), n.const(1 + n.small(32)), n.const(n.small(32))], axis=-1)
    x = n.node("DepthToSpace", [n.node("Add", [x, n.node("LeakyRelu", [conv(n, x, 8, 8)])])], blocksize=2)
    x = n.node("Sub", [x, n.node("Max", [x, n.node("MaxPool", [x], kernel_shape=[1, 1])])])
    x = n.node("ReduceMean", [conv(n, n.node("AveragePool", [x], kernel_shape=[2, 2], strides=[2, 2]), 2, 12)], axes=[2, 3], keepdims=0)
    n.save(path, fixed([1, 3, 16, 16]), [n.node("Gemm", [x, n.const(n.weights(12, 5)), n.const(n.small(5))])])
    return pictures(n, (1, 3, 16, 16))


# For targets with a rule `all` alone.
WHOLE = {"norms": norms}
NETS = {"residual": residual, "depthwise": depthwise, "pooled": pooled, "upsampled": upsampled, "gates": gates, "encoder": encoder, "perceptron": perceptron}
MORE = {"recurrent": smallnets.recurrent}
# Activations that a target has in 16 bits where rules ask for it.
WIDE = {"qnn": ("--set", "any=- - u16/tensor/asym -")}


# ---- what stands in a model

class Model:
    def __init__(self, path):
        self.proto = onnx.load(path)
        onnx.checker.check_model(self.proto, full_check=True)
        g = self.proto.graph
        self.constants = {t.name: numpy_helper.to_array(t) for t in g.initializer}
        self.maker = {o: n for n in g.node for o in n.output if o}
        self.readers = {}
        for n in g.node:
            for i in n.input:
                self.readers.setdefault(i, []).append(n)
        self.outputs = {o.name for o in g.output}
        self.nodes = list(g.node)

    def dequantized(self, value):
        """The DequantizeLinear that makes a value, or None."""
        n = self.maker.get(value)
        return n if n is not None and n.op_type == "DequantizeLinear" else None

    def weights(self, node):
        d = self.dequantized(node.input[1]) if len(node.input) > 1 else None
        return d if d is not None and d.input[0] in self.constants else None

    def on_integers(self, node):
        d = self.dequantized(node.input[0])
        return d is not None and d.input[0] not in self.constants and (node.op_type not in WEIGHTED or self.dequantized(node.input[1]) is not None)

    def quantized(self, value):
        """Whether nothing but quantizers reads a value."""
        readers = self.readers.get(value, [])
        return bool(readers) and all(r.op_type == "QuantizeLinear" for r in readers)


def through_clamp(m, value):
    """Where a Relu or Clip alone reads it, what that makes."""
    readers = m.readers.get(value, [])
    return readers[0].output[0] if len(readers) == 1 and readers[0].op_type in ("Relu", "Clip") else value


def parameters(m, node):
    """(scale, zero point, type) of a quantizer or dequantizer of one scale."""
    zero = m.constants[node.input[2]]
    return float(m.constants[node.input[1]]), int(zero), str(zero.dtype)


def check_scales(c, what, m, rule):
    """Of results between quantizers: those that are fixed, and those that are the input's."""
    bad = {"fixed": [], "shared": [], "small": [], "powers": []}
    for n in m.nodes:
        if rule.get("powers") and n.op_type in ("QuantizeLinear", "DequantizeLinear") and (np.frexp(m.constants[n.input[1]])[0] != 0.5).any():
            bad["powers"].append(n.name)
        if n.op_type == "QuantizeLinear" and parameters(m, n)[0] * (np.iinfo(parameters(m, n)[2]).max - np.iinfo(parameters(m, n)[2]).min) < rule.get("least", 0):
            bad["small"].append(n.name)
        source, readers = m.dequantized(n.input[0]) if n.input else None, m.readers.get(n.output[0], [])
        if source is None or n.op_type == "QuantizeLinear" or not m.quantized(n.output[0]):
            continue
        for q in readers:
            want = rule.get("fixed", {}).get((n.op_type, parameters(m, q)[2]))
            if want and (not np.isclose(parameters(m, q)[0], want[0], rtol=1e-6, atol=0) or parameters(m, q)[1] != want[1]):
                bad["fixed"].append((n.name, parameters(m, q)))
            if n.op_type in rule.get("same", ()) and parameters(m, q) != parameters(m, source):
                bad["shared"].append((n.name, parameters(m, source), parameters(m, q)))
    for key, found in bad.items():
        c.hold(f"{what}: {key} scales", not found, found[:3])


def check_shapes(c, what, path, report, rule):
    """Whether free dimensions are named where the target wants fixed ones, and only there."""
    free = any(not d.HasField("dim_value") for v in onnx.load(path).graph.input for d in v.type.tensor_type.shape.dim)
    named = any("fixed shapes" in w for w in report["warnings"])
    c.hold(f"{what}: free dimensions are named", named == (free and rule.get("static", False)), report["warnings"])


def is_real(m, node):
    """A layer with weights of float numbers."""
    return node.op_type in WEIGHTED and m.dequantized(node.input[1]) is None


def is_kept_real(m, dequantizer, scale, zero):
    """One number for all channels, before a layer that the runtime would quantize behind one of a single scale."""
    readers = m.readers.get(dequantizer.output[0], [])
    return len(readers) == 1 and is_real(m, readers[0]) and scale.ndim == 1 and (scale == scale[0]).all() and (zero == zero[0]).all() and zero.shape == scale.shape


def is_rounded(m, node):
    """Whether the runtime quantizes the layer when it loads the model: constant weights of floats between a dequantizer of one scale and a quantizer."""
    source = m.dequantized(node.input[0]) if node.input else None
    if node.op_type == "MatMul" or source is None or not is_real(m, node) or node.input[1] not in m.constants or m.constants[source.input[1]].size > 1:
        return False
    end = through_clamp(m, node.output[0])
    return m.quantized(end) and len(m.readers[end]) == 1


def check_quantizers(c, what, m, rule):
    bad = {k: [] for k in ("type", "zero", "scale", "readers", "domain", "rounded")}
    for n in m.nodes:
        if rule.get("rounds") and is_rounded(m, n):
            bad["rounded"].append(n.name)
        if n.op_type not in ("QuantizeLinear", "DequantizeLinear"):
            continue
        zero, scale = m.constants[n.input[2]], m.constants[n.input[1]]
        constant = n.op_type == "DequantizeLinear" and n.input[0] in m.constants
        kind = str(zero.dtype)
        if constant:  # weights, biases, or operands of arithmetic
            continue
        if kind not in rule["act"]:
            bad["type"].append((n.name, kind))
        if rule.get("middle") and int(zero) != (0 if kind.startswith("i") else 1 << (zero.dtype.itemsize * 8 - 1)):
            bad["zero"].append((n.name, int(zero)))
        kept = rule.get("rounds") and n.op_type == "DequantizeLinear" and is_kept_real(m, n, scale, zero)
        if not kept and (scale.ndim or zero.ndim or not scale > 0):
            bad["scale"].append(n.name)
        if n.op_type == "DequantizeLinear" and len(m.readers.get(n.output[0], [])) > rule.get("readers", 1 << 30):
            bad["readers"].append(n.name)
        if n.op_type == "QuantizeLinear" and rule.get("own_quantizer") and len(m.readers.get(n.output[0], [])) > 1:
            bad["readers"].append(n.name)
    for key, found in bad.items():
        c.hold(f"{what}: {key} of quantizers", not found, found[:3])


def most_of_pair(q, n):
    """The largest sum of magnitudes of two weights of one sign that are multiplied together: channels 2i and 2i + 1 of a tap, or in groups neighbours of (ky, kx, ic)."""
    group = next((a.i for a in n.attribute if a.name == "group"), 1)
    if n.op_type == "Conv":
        rows = q.reshape(*q.shape[:2], -1).swapaxes(1, 2).astype(int)  # [outs][taps][ins]
        if group > 1:
            if q.shape[1] == 1 and q.shape[0] == group:
                return 0
            rows = rows.reshape(len(rows), 1, -1)
    elif n.op_type == "ConvTranspose":
        rows = q.reshape(*q.shape[:2], -1).transpose(1, 2, 0).astype(int)
    else:
        rows = (q if any(a.name == "transB" and a.i for a in n.attribute) else q.T).astype(int)[:, None]
    if rows.shape[-1] % 2:
        rows = np.concatenate([rows, np.zeros((*rows.shape[:-1], 1), int)], -1)
    return max(int(np.maximum(sign * rows, 0).reshape(-1, 2).sum(1).max()) for sign in (1, -1))


def check_layer(m, rule, n):
    """What is wrong with a layer on integers."""
    w = m.weights(n)
    if w is None:
        return "two activations" if rule.get("pairs") else None
    if rule.get("pairs") and most_of_pair(m.constants[w.input[0]], n) > 128:
        return "weights of a pair"
    q, scale, zero = (m.constants[i] for i in w.input)
    axis = {"Conv": 0, "ConvTranspose": 1, "MatMul": 1}.get(n.op_type, None)
    if n.op_type == "Gemm":
        axis = 0 if any(a.name == "transB" and a.i for a in n.attribute) else 1
    if str(q.dtype) not in rule["w"]:
        return f"weights are {q.dtype}"
    if n.op_type == "MatMul" and str(q.dtype) != rule.get("matmul", q.dtype):
        return f"weights of MatMul are {q.dtype}"
    if str(m.constants[m.dequantized(n.input[0]).input[2]].dtype) == "int8" and q.dtype != np.int8:
        return "u8 weights beside s8 activations"
    middle = 0 if q.dtype == np.int8 else 128
    if (zero != middle).any() or abs(q.astype(int) - middle).max() > 127:
        return "weights are not narrow around the middle"
    if scale.ndim == 1:
        stated = next((a.i for a in w.attribute if a.name == "axis"), 1)
        if n.op_type not in rule["pc"] or stated % q.ndim != axis or len(scale) != q.shape[axis]:
            return f"scales of axis {stated}"
    return check_bias(m, rule, n, scale)


def is_narrow(m, n):
    """Whether the inputs behind the first, which has 16 bits or 8, have 8."""
    them = [m.dequantized(i) for i in n.input[1:]]
    return all(d is not None and m.constants[d.input[2]].dtype.itemsize == 1 for d in them)


def check_bias(m, rule, n, scale):
    if len(n.input) < 3 or not n.input[2]:
        return None
    if rule["bias"] == "float":
        return None if n.input[2] in m.constants and m.constants[n.input[2]].dtype == np.float32 else "the bias is not float"
    b = m.dequantized(n.input[2])
    if rule["bias"] == "int8":
        return None if b is not None and m.constants[b.input[0]].dtype == np.int8 and m.constants[b.input[1]].size == 1 else "the bias is not int8"
    if b is None or m.constants[b.input[0]].dtype != np.int32:
        return "the bias is not int32"
    sx = m.constants[m.dequantized(n.input[0]).input[1]]
    return None if (m.constants[b.input[1]] == sx * scale).all() and not m.constants[b.input[2]].any() else "the bias has another scale"


def check_placement(c, what, m, rule, left):
    """left: names of layers that the report says to be float for the loss at the outputs."""
    bare, apart, sums, around = [], [], [], []
    for n in (n for n in m.nodes if n.name not in left):
        runs = m.on_integers(n) or (rule.get("around") and n.op_type not in WEIGHTED)
        if n.op_type in rule.get("output", ()) and runs and not m.quantized(through_clamp(m, n.output[0])):
            bare.append(n.name)
        if n.op_type in rule.get("one", ()) and m.on_integers(n):
            d = [m.dequantized(i) for i in n.input]
            if all(d) and len({(float(m.constants[x.input[1]]), int(m.constants[x.input[2]])) for x in d}) > 1:
                apart.append(n.name)
        if rule.get("residual") and n.op_type == "Add":
            layers = [m.maker.get(i) is not None and m.maker[i].op_type == "Conv" and len(m.readers[i]) == 1 for i in n.input]
            if any(layers) and sum(m.dequantized(i) is not None for i in n.input) != 1:
                sums.append(n.name)
        if rule.get("around") and n.op_type in rule["output"] and m.maker.get(n.input[0]) is not None and not m.on_integers(n):
            around.append(n.name)
    c.hold(f"{what}: quantizers behind results", not bare, bare[:3])
    c.hold(f"{what}: one scale for inputs", not apart, apart[:3])
    c.hold(f"{what}: sums have one quantized input", not sums, sums[:3])
    c.hold(f"{what}: quantizers before operators", not around, around[:3])


ATTRIBUTES = {"Conv": {"kernel_shape", "strides", "pads", "dilations", "group"}, "MaxPool": {"kernel_shape", "strides", "pads"},
              "AveragePool": {"kernel_shape", "strides", "pads"}}


def check_written(c, what, m):
    short = [n.name for n in m.nodes if ATTRIBUTES.get(n.op_type, set()) - {a.name for a in n.attribute}]
    c.hold(f"{what}: all attributes are written", not short, short[:3])
    c.hold(f"{what}: no BatchNormalization", "BatchNormalization" not in {n.op_type for n in m.nodes})
    c.hold(f"{what}: no bfloat16", TensorProto.BFLOAT16 not in {t.data_type for t in m.proto.graph.initializer})


def check_all(c, what, m, rule, left):
    """Every operator that the target knows stands between quantizers; a clamp and its layer together."""
    def clamp_of(node):
        readers = m.readers.get(node.output[0], [])
        takes = node.op_type in rule["takes_clamps"] and len(readers) == 1 and readers[0].op_type in ("Relu", "Clip") and node.output[0] not in m.outputs
        return readers[0] if takes else None

    bare, torn = [], []
    owned = {clamp.name for n in m.nodes if (clamp := clamp_of(n)) is not None}
    for n in m.nodes:
        if n.op_type not in rule["all"] or n.name in left or (n.op_type == "Gather" and n.input[0] in m.constants):
            continue
        floats = [i for i in n.input if i and i not in m.constants] if n.name not in owned else []
        clamp = clamp_of(n)
        if not all(m.dequantized(i) for i in floats) or (clamp is None and not all(m.quantized(o) for o in n.output)):
            bare.append((n.name, n.op_type))
        if n.op_type in ("Relu", "Clip") and (source := m.dequantized(n.input[0])) is not None and source.input[0] in m.maker:
            before = m.maker.get(m.maker[source.input[0]].input[0])
            if before is not None and before.op_type in rule["takes_clamps"] and len(m.readers[before.output[0]]) == 1:
                torn.append(n.name)
    c.hold(f"{what}: all between quantizers", not bare, bare[:4])
    c.hold(f"{what}: clamps at their layers", not torn, torn[:3])


def check_model(c, what, path, rule, left=()):
    m = Model(path)
    if "all" in rule:
        check_all(c, what, m, rule, left)
    if rule.get("written"):
        check_written(c, what, m)
    layers = [n for n in m.nodes if n.op_type in WEIGHTED and m.on_integers(n)]
    wrong = [(n.name, w) for n in layers if (w := check_layer(m, rule, n))]
    c.hold(f"{what}: layers on integers", len(layers) > 0)
    broad = [n.name for n in m.nodes if n.op_type in rule.get("narrow", ()) and m.on_integers(n) and not is_narrow(m, n)]
    c.hold(f"{what}: one input of 16 bits", not broad, broad[:3])
    mixed = [n.name for n in m.nodes if n.op_type in WEIGHTED and n.name not in left and not m.on_integers(n) and any(m.dequantized(i) for i in n.input[:2])]
    c.hold(f"{what}: layers of reals and integers", not (rule.get("whole") and mixed), mixed[:3])
    c.hold(f"{what}: weights and biases", not wrong, wrong[:3])
    domains = {o.domain for o in m.proto.opset_import} - {"", "ai.onnx"}
    c.hold(f"{what}: domains", rule["foreign"] or not domains, domains)
    check_quantizers(c, what, m, rule)
    check_scales(c, what, m, rule)
    check_placement(c, what, m, rule, left)
    return m


# ---- runtimes

def run_openvino(path, samples):
    """The outputs, and [(type, precision)] of the layers that its execution graph has."""
    import openvino as ov

    compiled = ov.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    info = [op.get_rt_info() for op in compiled.get_runtime_model().get_ops()]
    kinds = [(str(i["layerType"].astype(str) if hasattr(i["layerType"], "astype") else i["layerType"]),
              str(i["runtimePrecision"].astype(str) if hasattr(i["runtimePrecision"], "astype") else i["runtimePrecision"])) for i in info]
    runs = [list(compiled([x]).values()) for x in samples]
    return [np.stack(part) for part in zip(*runs, strict=True)], kinds


def check_openvino(c, what, path, samples, ours, layers):
    got, kinds = run_openvino(path, samples)
    products = [p for t, p in kinds if t in ("Convolution", "FullyConnected", "MatMul", "Deconvolution")]
    integers = sum(p.lower() in ("i8", "u8") for p in products)
    c.hold(f"{what}: {integers} of {layers} layers on integers in OpenVINO", integers >= layers, products)
    for a, b in zip(got, ours, strict=True):
        near = sqnr(a, b)
        c.hold(f"{what}: ours and OpenVINO's outputs", near > 25, f"{near:.1f} dB")


def check_runs(c, what, target, path, out, samples, m, openvino):
    """Whether ours, ONNX Runtime and OpenVINO come near the float model and each other."""
    floats, ours = run_ort(path, samples), c.run_ours(out, samples)
    for a, b in zip(floats, ours, strict=True):
        c.hold(f"{what}: near float", sqnr(a, b) > 15, f"{sqnr(a, b):.1f} dB")
    if target in RUNS_IN_ORT:
        for a, b in zip(run_ort(out, samples, exact=target != "onnxruntime-x86"), ours, strict=True):
            c.hold(f"{what}: ours and ONNX Runtime's outputs", sqnr(a, b) > 25, f"{sqnr(a, b):.1f} dB")
    if target == "openvino" and openvino:
        check_openvino(c, what, out, samples, ours, sum(n.op_type in ("Conv", "Gemm") and m.on_integers(n) for n in m.nodes))


def real_between(path, kind):
    """Three layers, of which the middle one has channels of very different sizes, so that one scale for its weights would cost much."""
    n = smallnets.Net(16)
    spread = np.exp(1.5 * n.rng.standard_normal(24)).astype(np.float32)
    if kind == "Gemm":
        first, last = (n.const(n.weights(*shape)) for shape in ((12, 24), (24, 6)))
        x = n.node("Gemm", ["x", first, n.const(n.small(24))], "first")
        x = n.node("Gemm", [x, n.const(n.weights(24, 24) * spread), n.const(n.small(24))], "middle")
        n.save(path, fixed([4, 12]), [n.node("Gemm", [x, last, n.const(n.small(6))], "last")])
        return pictures(n, (4, 12), 16)
    x = conv(n, "x", 3, 24, name="first")
    w = n.weights(24, 24, 3, 3, fan=216) * (spread[:, None, None, None] if kind == "Conv" else spread[None, :, None, None])
    x = n.node(kind, [x, n.const(w), n.const(n.small(24))], "middle", pads=[1] * 4)
    x = n.node("Relu", [x])
    n.save(path, fixed([1, 3, 12, 12]), [conv(n, x, 24, 4, name="last")])
    return pictures(n, (1, 3, 12, 12), 16)


def check_real(c, target):
    """A layer that stays float between others is not rounded by ONNX Runtime when it loads the file. The weights have 7 bits, so that no CPU saturates."""
    for kind in ("Conv", "ConvTranspose", "Gemm"):
        path, data, out = (c.folder / f"{target}-real.{end}" for end in ("onnx", "npy", "int8.onnx"))
        samples = real_between(path, kind)
        np.save(data, np.stack(samples))
        for wide in ((), WIDE[target]) if target in WIDE else ((),):
            report = c.convert(path, out, "--target", target, "--data", data, "--set", "any=- s7/channel/sym - -", *wide, "--set", "name:middle=float",
                               "--no-method", "mixed-precision")
            near = sqnr(run_ort(out, samples), c.run_ours(out, samples))
            c.hold(f"{target}: a real {kind} stays so in ONNX Runtime{', 16 bits' if wide else ''}", near > 40 and report["int8_layers"] < 3, f"{near:.1f} dB")


# Whether OpenVINO generates a sum together with quantizers depends on the nodes around it (docs/formats.md), which no placement asks.
BY_NEIGHBOURS = {target: {"Add"} for target in RULES if target.startswith("openvino")}


def check_announced(c, what, target, report, out):
    """Lint of a file that was made for a target finds what the conversion has announced: the same layers on integers, and no other operator in float that was
    announced there. It may find more: what the target moves bytes through, and what it computes in the layer before."""
    found_in = c.folder / "found.json"
    tool.run([c.qconvert, "lint", out, "--target", target, "-q", "--json", found_in])
    found = json.loads(found_in.read_text())
    nodes, bad = {x["name"]: x for x in found["nodes"]}, []
    for x in report["layers"]:
        n = nodes.get(x["name"])
        if n is None or x["op"] in BY_NEIGHBOURS.get(target, ()):
            continue
        more = n["integer"] and x["op"] not in WEIGHTED and ("with" in n or x["op"] in MOVES)
        if n["integer"] != x["integer"] and not more:
            bad.append(f"{x['name']} ({x['op']}): announced {'int8' if x['integer'] else 'float'}, found {n['runs']}: {n['why']}")
    c.hold(f"{what}: lint finds what was announced", not bad, bad[:3])
    fits = [t for t in found["targets"] if t["name"] == target]
    c.hold(f"{what}: it fits its target", target not in {t["name"] for t in found["targets"]} or fits[0]["fits"], fits)


def check_target(c, target, nets, openvino):
    for name, (path, samples, data) in nets.items():
        what, out = f"{target}: {name}", c.folder / f"{target}-{name}.onnx"
        report = c.convert(path, out, "--target", target, "--data", *data)
        if name != "recurrent" and any(x["scheme"] == "dynamic" for x in report["layers"]):  # the rules are those of static layers
            report = c.convert(path, out, "--target", target, "--scheme", "static", "--data", *data)
        c.hold(f"{what}: the report names it", report["target"] == target)
        check_announced(c, what, target, report, out)
        check_shapes(c, what, path, report, RULES[target])
        placed = {x["op"] for x in report["layers"] if x["integer"]} - {"Relu", "Clip"}
        c.hold(f"{what}: operators on integers", "only" not in RULES[target] or placed <= RULES[target]["only"], placed)
        if RULES[target].get("nothing"):
            c.hold(f"{what}: nothing is quantized", not {"QuantizeLinear", "DequantizeLinear"} & {n.op_type for n in onnx.load(out).graph.node})
        if name == "recurrent" or not report["int8_layers"]:
            onnx.checker.check_model(onnx.load(out))
            continue
        m = check_model(c, what, out, RULES[target], {p["layer"] for p in report["promotions"]})
        if samples:
            check_runs(c, what, target, path, out, samples[:4], m, openvino)


def check_wide(c, target, nets):
    """Activations of 16 bits, their fixed scales, and what has 8 bits beside them."""
    wide = set()
    for name in ("gates", "encoder"):
        path, _, data = nets[name]
        out = c.folder / f"{target}-wide.onnx"
        c.convert(path, out, "--target", target, "--data", *data, *WIDE[target])
        m = check_model(c, f"{target}: {name} in 16 bits", out, RULES[target])
        wide |= {n.op_type for n in m.nodes if m.quantized(n.output[0]) and parameters(m, m.readers[n.output[0]][0])[2] == "uint16"}
    c.hold(f"{target}: results in 16 bits", {"Sigmoid", "Tanh", "MatMul", "LayerNormalization"} <= wide, wide)


SLOW_16 = "".join(f"cost {kind} {how} mac={mac} out={mac}\n" for kind in ("conv", "conv-few", "conv-1x1", "conv-depthwise", "product", "GlobalAveragePool", "Flatten")
                  for how, mac in (("float", 10), ("static", 5), ("static16", 20)))


def check_widened(c, target):
    """What loses too much in 8 bits gets 16, unless the target's costs say that they take longer than floats; decisions that are written give the same."""
    make_nasty.build("silent_recording", c.folder)
    path, data, out = (c.folder / f"{target}-{name}" for name in ("loss.onnx", "loss.npy", "loss-out.onnx"))
    (c.folder / "silent_recording.onnx").rename(path)
    (c.folder / "silent_recording.calib.npy").rename(data)
    samples = [x[None] for x in np.load(c.folder / "silent_recording.eval.npy")[:16]]
    floats = run_ort(path, samples)
    c.convert(path, out, "--target", target, "--data", data, "--no-method", "mixed-precision")
    narrow = sqnr(floats[0], run_ort(out, samples, exact=True)[0])
    report = c.convert(path, out, "--target", target, "--data", data, "--dump-policy", c.folder / "loss.txt")
    got, them = run_ort(out, samples, exact=True), {p["layer"] for p in report["promotions"]}
    m = check_model(c, f"{target}: 16 bits for the loss", out, RULES[target])
    wide = {n.name for n in m.nodes if m.quantized(n.output[0]) and parameters(m, m.readers[n.output[0]][0])[2] == "uint16"}
    c.hold(f"{target}: 16 bits for the loss", them and {p["bits"] for p in report["promotions"]} == {16} and them & wide, (them, wide))
    c.hold(f"{target}: all layers stay on integers", report["int8_layers"] == report["layers_with_weights"])
    c.hold(f"{target}: 16 bits win", sqnr(floats[0], got[0]) > narrow + 2, f"{narrow:.1f} dB, {sqnr(floats[0], got[0]):.1f} dB")
    c.hold(f"{target}: ours and ONNX Runtime's outputs", sqnr(got[0], c.run_ours(out, samples)[0]) > 25)
    first = onnx.load(out).graph.SerializeToString()
    c.convert(path, out, "--target", target, "--data", data, "--policy", c.folder / "loss.txt")
    c.hold(f"{target}: the decisions give the same", onnx.load(out).graph.SerializeToString() == first)
    (c.folder / "slow.target").write_text(f"name slow\nsummary 16 bits are slow\ninherits {target}\n{SLOW_16}")
    report = c.convert(path, out, "--target", c.folder / "slow.target", "--data", data)
    c.hold(f"{target}: float where 16 bits are slower", report["promotions"] and {p["bits"] for p in report["promotions"]} == {32}, report["promotions"])


def detector(shared, folder):
    """The detector among the trained models, with samples; its batch is fixed."""
    for m in digest_models.trained(folder, shared, lambda name: "nanodet" in name):
        yield m.path.stem, (m.path, None, (m.data, *m.options))


def main():
    parser = options(__doc__)
    parser.add_argument("--all", action="store_true", help="all networks")
    parser.add_argument("--shared", type=Path)
    parser.add_argument("--target", action="append", choices=RULES)
    args = parser.parse_args()
    try:
        import openvino
    except ImportError:
        openvino = None
        print("skipped: the package openvino is not installed")
    with Checker(args) as c:
        nets = {}
        for name, make in (NETS | WHOLE | (MORE if args.all else {})).items():
            path, data = c.folder / f"{name}.onnx", c.folder / f"{name}.npy"
            samples = make(path)
            np.save(data, np.stack(samples))
            nets[name] = path, samples, (data,)
        nets |= dict(detector(args.shared, c.folder)) if args.shared else {}
        for target in args.target or RULES:
            check_target(c, target, nets if "all" in RULES[target] else {k: v for k, v in nets.items() if k not in WHOLE}, openvino)
            if RULES[target].get("rounds"):
                check_real(c, target)
            if target in WIDE:
                check_wide(c, target, nets)
                check_widened(c, target)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
