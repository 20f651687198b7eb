#!/usr/bin/env python3
"""Converts and runs models that come quantized, in the spellings of those that train or quantize elsewhere, and judges them with ONNX Runtime.

    check_trained.py [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Torch's QAT export: fake quantization becomes pairs of QuantizeLinear and DequantizeLinear whose scales per tensor have one dimension of one element. What is
written has scalars, says so in the report, loads in ONNX Runtime in every opset, runs there on as many integers as with scalars from the start, and gives
what the model itself gives.

ONNX Runtime's quantizer makes QAttention of the Attention that its optimizer has fused, with a scale that the model makes or, written here, a constant one. Ours
runs it as ONNX Runtime does, and every scheme keeps it and quantizes what stands around it.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import collections
import logging
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from pylib import tool
from pylib.judge import Checker, options, run_ort, sqnr


class Trained:
    """A network between fake quantizers. row: scales of activations, of weights are of one dimension; channels: weights have a scale a channel."""

    def __init__(self, row=(True, True), channels=False, axis=None):
        self.rng = np.random.default_rng(4)
        self.nodes, self.constants = [], []
        self.row, self.channels, self.axis = row, channels, axis

    def const(self, name, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def rounded(self, x, scale, zero, row, **more):
        scale = np.asarray(scale, np.float32)
        scale = scale.reshape(1) if row and scale.ndim == 0 else scale
        ends = [self.const(f"{x}.scale", scale), self.const(f"{x}.zero", np.full_like(scale, zero, dtype=np.int8 if zero == 0 and more.get("signed") else np.uint8))]
        axis = more.get("axis", self.axis)
        how = {} if axis is None else {"axis": axis}
        self.nodes.append(helper.make_node("QuantizeLinear", [x, *ends], [f"{x}.q"], f"{x}.quant", **how))
        self.nodes.append(helper.make_node("DequantizeLinear", [f"{x}.q", *ends], [f"{x}.dq"], f"{x}.dequant", **how))
        return f"{x}.dq"

    def weights(self, name, *dims):
        w = np.asarray(self.rng.standard_normal(dims) / np.sqrt(np.prod(dims[1:])), np.float32)
        self.const(name, w)
        largest = np.abs(w).reshape(dims[0], -1).max(1) if self.channels else np.abs(w).max()
        return self.rounded(name, largest / 127, 0, self.row[1], signed=True, axis=0 if self.channels else self.axis)

    def act(self, x, scale, zero):
        return self.rounded(x, scale, zero, self.row[0])

    def conv(self, x, name, outs, ins):
        bias = self.const(f"{name}.bias", np.asarray(self.rng.standard_normal(outs) * 0.1, np.float32))
        self.nodes.append(helper.make_node("Conv", [x, self.weights(f"{name}.weight", outs, ins, 3, 3), bias], [name], name, kernel_shape=[3, 3], pads=[1] * 4))
        return name

    def save(self, path, opset):
        x = self.act("x", 0.03, 128)
        self.nodes.append(helper.make_node("Relu", [self.conv(x, "first", 16, 3)], ["r"], "relu"))
        x = self.act("r", 0.02, 0)
        other = self.act(self.conv(x, "second", 16, 16), 0.03, 128)
        self.nodes.append(helper.make_node("Add", [x, other], ["sum"], "sum"))
        self.nodes.append(helper.make_node("GlobalAveragePool", [self.act("sum", 0.04, 100)], ["mean"], "mean"))
        x = self.act("mean", 0.01, 128)
        self.conv(x, "last", 1 if self.channels else 10, 16)  # one channel keeps its scale
        self.nodes.append(helper.make_node("Identity", [self.act("last", 0.02, 128)], ["y"]))
        ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])], [helper.make_empty_tensor_value_info("y")]
        graph = helper.make_graph(self.nodes, "trained", *ends, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)


def operators(c, path):
    """Counts of what ONNX Runtime runs; the fault where it refuses the model."""
    how = onnxruntime.SessionOptions()
    how.log_severity_level, how.optimized_model_filepath = 4, str(c.folder / "optimized.onnx")
    try:
        onnxruntime.InferenceSession(str(path), how, providers=["CPUExecutionProvider"])
    except Exception as fault:  # its exceptions have no common class
        return str(fault)
    return collections.Counter(n.op_type for n in onnx.load(how.optimized_model_filepath).graph.node)


def per_tensor(model):
    """Dimensions of the scales and zero points of one element, by the names of the nodes that read them."""
    dims = {t.name: list(t.dims) for t in model.graph.initializer}
    return {n.name: [dims[i] for i in n.input[1:] if i in dims] for n in model.graph.node if n.op_type in ("QuantizeLinear", "DequantizeLinear")}


def check_qat(c):
    samples = [np.asarray(np.random.default_rng(k).standard_normal((1, 3, 16, 16)), np.float32) for k in range(6)]
    model, out = c.folder / "qat.onnx", c.folder / "qat.out.onnx"
    Trained(row=(False, False)).save(model, 13)
    best = operators(c, model)
    for what, how, opset in (("all", {}, 13), ("of activations", {"row": (True, False)}, 13), ("of weights", {"row": (False, True)}, 13),
                             ("opset 10", {}, 10), ("axis 0", {"axis": 0}, 17), ("channels", {"channels": True}, 13)):
        Trained(**how).save(model, opset)
        if what == "opset 10":
            c.hold("qat: the trap is there, opset 10 is refused", isinstance(operators(c, model), str))
        ours = c.run_ours(model, samples)
        for form in ("qdq", "qoperator"):
            report = c.convert(model, out, "--format", form)
            made = onnx.load(out)
            onnx.checker.check_model(made)
            ranks = {name: d for name, d in per_tensor(made).items() if [1] in d}
            c.hold(f"qat {what}, {form}: scalars", set(ranks) <= ({"last.weight.dequant"} if what == "channels" else set()), f"{ranks}")
            c.hold(f"qat {what}, {form}: the report says it", any(p["pass"] == "scalar" for p in report["passes"]), f"{report.get('passes')}")
            found = operators(c, out)
            fused = {op: n for op, n in best.items() if op.startswith("QLinear")}
            c.hold(f"qat {what}, {form}: integers in ONNX Runtime", not isinstance(found, str) and all(found[op] >= n for op, n in fused.items()), f"{found}")
            if not isinstance(found, str):
                theirs = run_ort(out, samples, exact=True)
                c.hold(f"qat {what}, {form}: as the model itself", sqnr(ours, theirs) > 60, f"{sqnr(ours, theirs):.1f} dB")


def attention_net(path):
    """Two layers of an encoder over float32[1][12][64], whose attention is one node. Samples."""
    rng, wide, n = np.random.default_rng(6), 64, 12
    nodes, constants, x = [], [], "x"

    def weights(name, *dims):
        constants.append(numpy_helper.from_array(np.asarray(rng.standard_normal(dims) / np.sqrt(dims[0]), np.float32), name))
        return name

    for k in range(2):
        bias = weights(f"{k}.bias", 3 * wide)
        nodes.append(helper.make_node("Attention", [x, weights(f"{k}.qkv", wide, 3 * wide), bias], [f"{k}.a"], f"{k}.attention", domain="com.microsoft", num_heads=4))
        nodes.append(helper.make_node("MatMul", [f"{k}.a", weights(f"{k}.out", wide, wide)], [f"{k}.o"], f"{k}.out"))
        nodes.append(helper.make_node("Add", [f"{k}.o", x], [f"{k}.sum"], f"{k}.sum"))
        nodes.append(helper.make_node("LayerNormalization", [f"{k}.sum", weights(f"{k}.gamma", wide)], [f"{k}.y"], f"{k}.norm"))
        x = f"{k}.y"
    nodes.append(helper.make_node("MatMul", [x, weights("head", wide, 20)], ["y"], "head"))
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, n, d])] for name, d in (("x", wide), ("y", 20))]
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(helper.make_graph(nodes, "encoder", *ends, constants), opset_imports=imports, ir_version=8), path)
    return [np.asarray(rng.standard_normal((1, n, wide)), np.float32) for _ in range(24)]


def with_constants(model):
    """Constant parameters where the model has those of the tensor that runs."""
    for node in model.graph.node:
        if node.op_type == "DynamicQuantizeLinear":
            qvals, scale, zero = node.output
            model.graph.initializer.extend([numpy_helper.from_array(np.array(0.035, np.float32), scale), numpy_helper.from_array(np.array(120, np.uint8), zero)])
            node.CopyFrom(helper.make_node("QuantizeLinear", [node.input[0], scale, zero], [qvals], node.name))
    return model


def check_attention(c):
    logging.disable(logging.WARNING)  # ONNX Runtime's quantizer wishes for another tool before it
    model, source, out = c.folder / "attention.onnx", c.folder / "qattention.onnx", c.folder / "qattention.out.onnx"
    samples = attention_net(model)
    np.save(c.folder / "data.npy", np.stack(samples))
    want, tests = run_ort(model, samples[:6]), samples[:6]
    for what, how in (("per tensor", {}), ("per channel", {"per_channel": True, "weight_type": QuantType.QInt8}), ("constant scales", {})):
        quantize_dynamic(model, source, op_types_to_quantize=["Attention"], extra_options={"DefaultTensorType": TensorProto.FLOAT}, **how)
        if what == "constant scales":
            onnx.save(with_constants(onnx.load(source)), source)
        theirs = run_ort(source, tests, exact=True)
        c.hold(f"qattention {what}: near the float model", sqnr(want, theirs) > 25, f"{sqnr(want, theirs):.1f} dB")
        ours = c.run_ours(source, tests)
        c.hold(f"qattention {what}: as ONNX Runtime", sqnr(theirs, ours) > 100, f"{sqnr(theirs, ours):.1f} dB")
        for scheme, least in (("dynamic", 25), ("static", 25), ("weight-only", 12), ("fp16", 50), ("float", 190)):
            report = c.convert(source, out, "--scheme", scheme, *(["--data", c.folder / "data.npy"] if scheme == "static" else []))
            made = onnx.load(out)
            kept = [n for n in made.graph.node if n.op_type == "QAttention"]
            types = {t.name: t.data_type for t in made.graph.initializer}
            c.hold(f"qattention {what}, {scheme}: kept", len(kept) == 2 and all(types[n.input[1]] in (TensorProto.UINT8, TensorProto.INT8) for n in kept))
            around = {layer["name"]: layer["scheme"] for layer in report["layers"] if layer["op"] in ("MatMul", "Gemm")}
            c.hold(f"qattention {what}, {scheme}: what is around", around == dict.fromkeys(("0.out", "1.out", "head"), scheme), f"{around}")
            got, again = run_ort(out, tests, exact=True), c.run_ours(out, tests)
            c.hold(f"qattention {what}, {scheme}: near the source", sqnr(theirs, got) > least, f"{sqnr(theirs, got):.1f} dB")
            c.hold(f"qattention {what}, {scheme}: ours as theirs", sqnr(got, again) > (45 if scheme in ("static", "fp16") else 90), f"{sqnr(got, again):.1f} dB")


def check_inputs(c):
    """QLinearConv whose scales are inputs of the model."""
    rng, model, data = np.random.default_rng(8), c.folder / "inputs.onnx", c.folder / "inputs.npz"
    constants = {"xz": np.uint8(120), "w": rng.integers(-100, 100, (8, 3, 3, 3)).astype(np.int8), "wz": np.int8(0), "yz": np.uint8(128)}
    scales = {"xs": 0.02, "ws": 0.01, "ys": 0.2}
    node = helper.make_node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["y"], "conv", pads=[1] * 4)
    inputs = [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 3, 8, 8]), *(helper.make_tensor_value_info(n, TensorProto.FLOAT, [1]) for n in scales)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.UINT8, [1, 8, 8, 8])]
    graph = helper.make_graph([node], "inputs", inputs, outputs, [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), model)
    feeds = [{"x": rng.integers(0, 256, (1, 3, 8, 8)).astype(np.uint8)} | {n: np.full(1, s * k, np.float32) for n, s in scales.items()} for k in (0.5, 1, 2)]
    np.savez(data, **{n: np.stack([f[n] for f in feeds]) for n in feeds[0]})
    theirs = run_ort(model, feeds, exact=True)[0]
    ours = tool.run_qeval(c.qeval, model, data, c.folder / "inputs.out.npz", extra=["--batch", "1"])["y"].reshape(theirs.shape)
    apart = np.abs(ours.astype(int) - theirs.astype(int))
    c.hold("scales as inputs: codes as ONNX Runtime's", apart.max() <= 1 and (apart > 0).mean() < 0.01, f"{apart.max()}, {(apart > 0).mean():.4f} of them")
    layers = {layer["name"]: layer for layer in c.convert(model, c.folder / "inputs.out.onnx")["layers"]}
    c.hold("scales as inputs: said", layers["conv"]["scheme"] != "float" or "its scales are not constants" in layers["conv"]["why"], f"{layers}")
    c.hold("scales as inputs: lint", re.search(r"^conv +QLinearConv +int8", tool.run([c.qconvert, "lint", "-v", model]), re.MULTILINE))


def main():
    args = options(__doc__).parse_args()
    with Checker(args) as c:
        check_qat(c)
        check_attention(c)
        check_inputs(c)
    return c.finish()


if __name__ == "__main__":
    sys.exit(main())
