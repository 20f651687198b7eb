#!/usr/bin/env python3
"""Compares what qeval tells of each layer of models that another tool made with what NumPy finds in ONNX Runtime's tensors.

    check_layers.py [--qeval PROGRAM] [-v]

A small network is quantized by ONNX Runtime in both of its forms, as it is and after changes that quantizers and their preparations make: normalizations
folded, a product and its sum joined to one node and the other way round, transposes and identities put in. Then all names but those of inputs and
outputs are replaced by others, drawn with a fixed seed. Every value must be found with the one that it became, and errors, ranges, shares of codes,
histograms, dead channels and weights must be those of the tensors.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import logging
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

from pylib import peer, tool
from pylib.judge import Checker, options
from pylib.plainnet import Net

COUNT = 12
NEAR = 0.06   # dB: a value on the edge between two codes
FEW = 2e-3    # of the elements: the same
VALUES = ("c1", "n1", "r1", "c2", "n2", "k2", "c3", "a", "s", "m", "p", "f", "mm", "ma", "r3", "y")
OUT_SCALE = {"QLinearConv": 6, "QLinearAdd": 6, "QLinearMul": 6, "QGemm": 7, "QLinearMatMul": 6, "QLinearGlobalAveragePool": 3, "QLinearSigmoid": 3}


def network(path):
    net = Net(5)

    def normalized(x, y, gamma):
        net.node("BatchNormalization", [x, net.const(y + "_g", value=gamma), net.const(y + "_h", 8, scale=0.2), net.const(y + "_m", 8, scale=0.2),
                                        net.const(y + "_v", value=np.full(8, 2, np.float32))], y)

    gamma = np.linspace(0.5, 1.5, 8).astype(np.float32)
    net.node("Conv", ["x", net.const("w1", 8, 3, 3, 3, scale=0.3), net.const("b1", 8)], "c1", pads=[1, 1, 1, 1])
    normalized("c1", "n1", gamma)
    net.node("Relu", ["n1"], "r1")
    small = gamma.copy()
    small[3] = 1e-5  # a channel that codes for all of them cannot tell from a constant
    net.node("Conv", ["r1", net.const("w2", 8, 1, 3, 3, scale=0.5)], "c2", pads=[1, 1, 1, 1], group=8)
    normalized("c2", "n2", small)
    net.node("Clip", ["n2", net.const("zero", value=np.float32(-0.7)), net.const("six", value=np.float32(6))], "k2")
    net.node("Conv", ["k2", net.const("w3", 8, 8, 1, 1, scale=0.4)], "c3")
    net.node("Add", ["c3", "r1"], "a")
    net.node("Sigmoid", ["a"], "s")
    net.node("Mul", ["a", "s"], "m")
    net.node("GlobalAveragePool", ["m"], "p")
    net.node("Flatten", ["p"], "f")
    net.node("MatMul", ["f", net.const("w4", 8, 16)], "mm")
    net.node("Add", ["mm", net.const("b4", 16)], "ma")
    net.node("Relu", ["ma"], "r3")
    net.node("Gemm", ["r3", net.const("w5", 16, 5), net.const("b5", 5)], "y")
    return net.save(path, [1, 3, 12, 12])


# ---- what other tools make of it ----

def changed(model):
    """Normalizations folded, MatMul and Add joined, Gemm split, Sigmoid among transposed pictures, an identity."""
    g = model.graph
    const = {t.name: numpy_helper.to_array(t) for t in g.initializer}
    out = []

    def keep(name, array):
        const[name] = np.asarray(array, np.float32)

    nodes = {n.output[0]: n for n in g.node}
    for n in g.node:
        if n.op_type == "BatchNormalization":
            conv, (gamma, shift, mean, var) = nodes[n.input[0]], (const[i] for i in n.input[1:5])
            factor = gamma / np.sqrt(var + 1e-5)
            w, b = const[conv.input[1]], const[conv.input[2]] if len(conv.input) > 2 else 0
            keep(conv.input[1] + "_folded", w * factor[:, None, None, None])
            keep(n.output[0] + "_bias", (b - mean) * factor + shift)
            folded = helper.make_node("Conv", [conv.input[0], conv.input[1] + "_folded", n.output[0] + "_bias"], list(n.output), name=conv.name)
            folded.attribute.extend(conv.attribute)
            out[out.index(conv)] = folded
        elif n.op_type == "MatMul":
            continue
        elif n.output[0] == "ma":
            out.append(helper.make_node("Gemm", ["f", "w4", "b4"], ["ma"], name="joined"))
        elif n.op_type == "Gemm":
            out += [helper.make_node("MatMul", ["r3", "w5"], ["y_product"], name="split"), helper.make_node("Add", ["y_product", "b5"], ["y"], name="split_sum")]
        elif n.op_type == "Sigmoid":
            out += [helper.make_node("Transpose", ["a"], ["a_last"], perm=[0, 2, 3, 1], name="there"), helper.make_node("Sigmoid", ["a_last"], ["s_last"], name="gate"),
                    helper.make_node("Transpose", ["s_last"], ["s"], perm=[0, 3, 1, 2], name="back")]
        elif n.op_type == "Add" and n.output[0] == "a":
            out += [helper.make_node("Identity", ["c3"], ["c3_again"], name="same"), helper.make_node("Add", ["c3_again", "r1"], ["a"], name="sum")]
        else:
            out.append(n)
    made = helper.make_model(helper.make_graph(out, "changed", g.input, g.output, [numpy_helper.from_array(v, k) for k, v in const.items()]),
                             opset_imports=model.opset_import, ir_version=model.ir_version)
    onnx.checker.check_model(made)
    return made


def renamed(model, seed):
    """Its names replaced; and {old: new}."""
    draw, made, names = random.Random(seed), onnx.ModelProto(), {}
    made.CopyFrom(model)
    keep = {v.name for v in (*made.graph.input, *made.graph.output)} | {""}

    def new(name):
        return name if name in keep else names.setdefault(name, f"{draw.choice('abcxyz')}{draw.randrange(10 ** 9)}")

    for t in made.graph.initializer:
        t.name = new(t.name)
    for n in made.graph.node:
        n.name = f"{draw.randrange(10 ** 9)}"
        for k, name in enumerate(n.input):
            n.input[k] = new(name)
        for k, name in enumerate(n.output):
            n.output[k] = new(name)
    del made.graph.value_info[:]
    return made, names


# ---- what ONNX Runtime computes ----

def sqnr(want, got):
    noise = np.square(np.float64(want) - np.float64(got)).sum()
    return 10 * np.log10(np.square(np.float64(want)).sum() / noise) if noise else np.inf


PRODUCTS = ("QLinearConv", "QLinearMatMul", "QGemm")  # input 3 is the weights, 5 their zero point


def with_u8_weights(model):
    """The model with weights and zero points 128 higher: the same sums, and no CPU's kernels for them saturate."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    tensors = {t.name: t for t in made.graph.initializer}
    names = {n.input[i] for n in made.graph.node if n.op_type in PRODUCTS for i in (3, 5)}
    for t in (tensors[name] for name in names & tensors.keys()):
        codes = numpy_helper.to_array(t)
        if codes.dtype == np.int8:
            t.CopyFrom(numpy_helper.from_array((codes.astype(np.int16) + 128).astype(np.uint8), t.name))
    return made


def tensors(model, xs):
    """{name: all its values over the samples}"""
    made = with_u8_weights(model)
    known = {o.name for o in made.graph.output}
    names = [o for n in made.graph.node for o in n.output if o and o not in known]
    made.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names)
    session = peer.session(made.SerializeToString(), optimize=False)
    runs = [session.run(None, {"x": x[None]}) for x in xs]
    return {o.name: np.concatenate(part) for o, part in zip(made.graph.output, zip(*runs, strict=True), strict=True)}


class Quantized:
    def __init__(self, model, xs):
        self.model, self.tensor = model, tensors(model, xs)
        self.const = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        self.maker = {n.output[0]: n for n in model.graph.node}
        self.readers = {}
        for n in model.graph.node:
            for name in n.input:
                self.readers.setdefault(name, []).append(n)

    def codes(self, name):
        """(codes, scale, zero point) of a value, None where it is not quantized."""
        n = self.maker[name]
        if n.op_type in OUT_SCALE:
            at = OUT_SCALE[n.op_type]
            return self.tensor[name], self.const[n.input[at]], self.const[n.input[at + 1]]
        quantizers = [r for r in self.readers.get(name, []) if r.op_type == "QuantizeLinear"]
        if quantizers and len(quantizers) == len(self.readers[name]):
            q = quantizers[0]
            return self.tensor[q.output[0]], self.const[q.input[1]], self.const[q.input[2]]
        return None

    def real(self, name):
        """What readers of a value read."""
        found = self.codes(name)
        if found is None and self.tensor[name].dtype != np.float32:  # moved codes: parameters are those of what was moved
            return self.real_moved(name)
        return self.tensor[name] if found is None else (found[0].astype(np.float32) - np.float32(found[2])) * found[1]

    def real_moved(self, name):
        n = self.maker[name]
        _, scale, zero = self.codes(n.input[0])
        return (self.tensor[name].astype(np.float32) - np.float32(zero)) * scale


# ---- what must hold ----

def check_codes(check, label, layer, real, found):
    codes, scale, zero = found
    info = np.iinfo(codes.dtype)
    lo, hi = (np.float32(info.min - int(zero)) * scale, np.float32(info.max - int(zero)) * scale)
    beyond = (real < lo - scale / 2) | (real > hi + scale / 2)
    r = layer["range"]
    check.hold(f"{label} range", r["type"] == codes.dtype.name.replace("uint", "u").replace("int", "s") or r["type"] == codes.dtype.name, r["type"])
    check.hold(f"{label} scale", r["scale"] == float(scale) and r["zero_point"] == int(zero) and r["low"] == float(lo) and r["high"] == float(hi), (r, scale, zero))
    check.hold(f"{label} clipped", abs(r["clipped"] - beyond.mean()) <= FEW / 4, (r["clipped"], beyond.mean()))
    saturated = (beyond & ((codes == info.min) | (codes == info.max))).mean()
    check.hold(f"{label} saturated", abs(r["saturated"] - saturated) <= FEW, (r["saturated"], saturated))
    used = len(np.unique(codes)) / 256
    check.hold(f"{label} codes used", abs(r["codes_used"] - used) <= 2 / 256, (r["codes_used"], used))


def check_histogram(check, label, h, real):
    check.hold(f"{label} histogram", h["values"] == real.size and np.allclose([h["min"], h["max"]], [real.min(), real.max()], rtol=1e-5, atol=1e-6) and
               sum(h["bins"]) + h["below"] + h["above"] == real.size, (h["values"], h["min"], h["max"]))
    edges = np.linspace(h["low"], h["high"], 65)
    got = np.cumsum([h["below"], *h["bins"]])
    want = np.array([(real <= e).sum() for e in edges])  # up to each edge; a clamp's point lies on one
    wide = np.array([(real <= e + (h["high"] - h["low"]) / 64).sum() for e in edges])
    near = np.array([(real <= e - (h["high"] - h["low"]) / 64).sum() for e in edges])
    check.hold(f"{label} bins", bool(np.all((got >= near) & (got <= wide)) and np.abs(got - want).mean() < 0.01 * real.size), np.abs(got - want).max())


def check_dead(check, label, layer, real, here):
    def extremes(x):
        flat = np.moveaxis(x, 1, 0).reshape(x.shape[1], -1)
        return flat.min(1), flat.max(1)

    (a, b), (c, d) = extremes(real), extremes(here)
    dead = int(((a < b) & (c == d)).sum())
    check.hold(f"{label} channels", layer.get("channels") == real.shape[1] and layer["dead_channels"] == dead, (layer.get("channels"), layer.get("dead_channels"), dead))
    return dead


def check_weights(check, label, layer, q, reals):
    """reals: {name before renaming: float weights}, of which one has the shape and is nearest."""
    w = layer["weights"]
    codes = q.const[w["name"]] if w["name"] in q.const else None
    reader = q.readers[w["name"]][0] if codes is not None else q.maker[w["name"]]
    if codes is None:
        codes = q.const[reader.input[0]]
    at = 1 if reader.op_type == "DequantizeLinear" else list(reader.input).index(w["name"]) + 1
    scale, zero = q.const[reader.input[at]], q.const[reader.input[at + 1]]
    axis = 0 if codes.ndim == 4 else 1
    shape = [1] * codes.ndim
    if np.size(scale) > 1:
        shape[axis] = -1
    scale, zero = np.reshape(scale, shape), np.reshape(zero, shape).astype(np.float64)
    real = (codes.astype(np.float64) - zero) * scale
    near = max((x for x in reals.values() if x.shape == real.shape), key=lambda x: sqnr(x, real))
    info = np.iinfo(codes.dtype)
    beyond = (near < (info.min - 0.5 - zero) * scale) | (near > (info.max + 0.5 - zero) * scale)
    rows = np.moveaxis(near, axis, 0).reshape(near.shape[axis], -1), np.moveaxis(real, axis, 0).reshape(near.shape[axis], -1)
    each = [sqnr(a, b) for a, b in zip(*rows, strict=True)]
    check.hold(f"{label} weights", abs(w["sqnr_db"] - sqnr(near, real)) < 0.01 and w["count"] == real.size, (w["sqnr_db"], sqnr(near, real)))
    got = w["channels"]
    check.hold(f"{label} weights by channel", len(got["sqnr_db"]) == len(each) and np.allclose(got["sqnr_db"], each, atol=0.02), (got["sqnr_db"], each))
    check.hold(f"{label} scales", np.allclose(got["scale"], np.broadcast_to(scale.ravel(), len(each))), got["scale"])
    check.hold(f"{label} clipped weights", abs(w["clipped"] - beyond.mean()) < 1e-3, (w["clipped"], beyond.mean()))


def truth(model, names, gone):
    """{value of the float model: what it became}, by the names before they were replaced."""
    made = {o: n.op_type for n in model.graph.node for o in n.output}
    pairs = {}
    for value in VALUES:
        now = gone.get(value, value)
        for name in (f"{now}_QuantizeLinear_Input", f"{now}_quantized", now):  # the first: an output, before it is rounded
            if name in made and made[name] != "QuantizeLinear":
                pairs[value] = names.get(name, name)
                break
    return pairs


def check_one(check, label, real, model, names, gone, xs, reals):
    """qeval's layers of one model against the tensors; returns the layers by value."""
    path, report, data = check.folder / "quant.onnx", check.folder / "report.json", check.folder / "x.npy"
    onnx.save(model, path)
    np.save(data, xs)
    tool.run([check.qeval, check.folder / "float.onnx", path, "--data", data, "--layers", "-q", "--json", report])
    layers = {layer["value"]: layer for layer in json.loads(report.read_text())["models"][1]["layers"]}
    q = Quantized(model, xs)
    want = truth(model if not names else check.before, names, gone)
    check.hold(f"{label}: layers", want.keys() <= layers.keys(), sorted(want.keys() - layers.keys()))
    dead = 0
    for value, layer in layers.items():
        what = f"{label} {value}"
        others = {want.get(value), *(n.output[0] for n in q.readers.get(want.get(value), []) if n.op_type in ("Identity", "DequantizeLinear"))}
        check.hold(f"{what} is {want.get(value)}", layer["other"] in others, (layer["other"], layer["paired_by"]))
        if layer["other"] not in q.tensor:
            continue
        here, was = q.real(layer["other"]), real[value]
        if here.shape != was.shape:
            here = np.transpose(here, [0, 3, 1, 2])
        db = sqnr(was, here)
        check.hold(f"{what} SQNR", abs(layer["sqnr_db"] - db) <= NEAR or (db > 120 and layer["sqnr_db"] > 120), (layer["sqnr_db"], db))
        found = q.codes(layer["other"])
        if found is not None:
            codes = found[0] if found[0].shape == was.shape else np.transpose(found[0], [0, 3, 1, 2])
            check_codes(check, what, layer, was, (codes, *found[1:]))
        check_histogram(check, what, layer["histogram"], was)
        dead += check_dead(check, what, layer, was, here) if was.ndim >= 2 else 0
        if "weights" in layer:
            check_weights(check, what, layer, q, reals)
    check.hold(f"{label}: a channel died", dead > 0)
    check.hold(f"{label}: values are clipped", any(layer["range"] and layer["range"]["saturated"] > 0 for layer in layers.values()))
    check.hold(f"{label}: weights", sum("weights" in layer for layer in layers.values()) == 5, [v for v, x in layers.items() if "weights" in x])
    return layers


def check_all(check):
    network(check.folder / "float.onnx")
    model = onnx.load(check.folder / "float.onnx")
    rng = np.random.default_rng(3)
    xs = rng.standard_normal((COUNT, 3, 12, 12)).astype(np.float32)
    outputs = tensors(model, xs)
    other = changed(model)
    reals = {t.name: numpy_helper.to_array(t) for m in (model, other) for t in m.graph.initializer if len(t.dims) >= 2}
    for form in (QuantFormat.QDQ, QuantFormat.QOperator):
        for label, source in (("plain", model), ("changed", other)):
            onnx.save(source, check.folder / "source.onnx")
            quantize_static(check.folder / "source.onnx", check.folder / "made.onnx", Reader(xs[:4] * np.float32(0.7)), quant_format=form, per_channel=True,
                            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
            check.before = onnx.load(check.folder / "made.onnx")
            gone = lost(check.before, source)
            name = f"{label} {form.name}"
            first = check_one(check, name, outputs, check.before, {}, gone, xs, reals)
            after, names = renamed(check.before, 17)
            second = check_one(check, f"{name} renamed", outputs, after, names, gone, xs, reals)
            same = [v for v in first if v not in second or any(first[v].get(k) != second[v].get(k) for k in ("sqnr_db", "own_sqnr_db", "histogram"))]
            check.hold(f"{name}: renaming changes nothing", not same, same)
    check_by_weights(check, other, xs)


def check_by_weights(check, source, xs):
    """Behind an operator that is another one in the quantized model, layers are found by their weights, and what follows these by structure."""
    other = onnx.ModelProto()
    other.CopyFrom(source)
    for n in other.graph.node:
        if n.op_type == "GlobalAveragePool":
            n.CopyFrom(helper.make_node("ReduceMean", list(n.input), list(n.output), name="mean", axes=[2, 3], keepdims=1))
    onnx.save(other, check.folder / "source.onnx")
    quantize_static(check.folder / "source.onnx", check.folder / "made.onnx", Reader(xs[:4]), quant_format=QuantFormat.QDQ, activation_type=QuantType.QUInt8,
                    weight_type=QuantType.QInt8)
    made = onnx.load(check.folder / "made.onnx")
    after, names = renamed(made, 19)
    now = names[lost(made, other).get("r3", "r3")]
    onnx.save(after, check.folder / "quant.onnx")
    tool.run([check.qeval, check.folder / "float.onnx", check.folder / "quant.onnx", "--data", check.folder / "x.npy", "--layers", "-q", "--json", check.folder / "report.json"])
    layers = {x["value"]: x for x in json.loads((check.folder / "report.json").read_text())["models"][1]["layers"]}
    check.hold("by weights: the mean has no counterpart", "p" not in layers, layers.get("p", {}).get("other"))
    check.hold("by weights: the layer behind it", layers.get("r3", {}).get("paired_by") == "weights" and layers["r3"]["other"] == now, layers.get("r3"))
    check.hold("by weights: what follows", layers.get("y", {}).get("paired_by") in ("name", "structure") and layers["r3"]["sqnr_db"] > 15, layers.get("y"))


def check_constants(check):
    """Values that the graph computes of constants alone, as exporters leave them: nothing stands before them."""
    net = Net(7)
    net.node("Cast", [net.const("half", value=np.arange(8, dtype=np.float16))], "shift", to=onnx.TensorProto.FLOAT)
    net.node("Conv", ["x", net.const("w", 8, 3, 3, 3, scale=0.3)], "c")
    net.node("GlobalAveragePool", ["c"], "p")
    net.node("Flatten", ["p"], "f")
    net.node("Add", ["f", "shift"], "y")
    net.save(check.folder / "constants.onnx", [1, 3, 12, 12])
    tool.run([check.qeval, check.folder / "constants.onnx", check.folder / "constants.onnx", "--data", check.folder / "x.npy", "--layers", "-q", "--json", check.folder / "report.json"])
    layers = {x["value"]: x for x in json.loads((check.folder / "report.json").read_text())["models"][1]["layers"]}
    check.hold("constants alone: all layers are found", {"c", "p", "y"} <= set(layers), sorted(layers))


def lost(quantized, source):
    """{value of the float model: the one that holds it}: clamps that the quantizer left to the codes, and what `changed` renamed."""
    made = {o.removesuffix("_quantized") for n in quantized.graph.node for o in n.output}
    gone = {}
    for n in source.graph.node:
        if n.op_type in ("Relu", "Clip") and n.output[0] not in made:
            gone[n.output[0]] = n.input[0]
            gone[n.input[0]] = ""
    if any(n.op_type == "Transpose" for n in source.graph.node):
        gone["s"] = "s_last"
    return gone


class Reader:
    def __init__(self, xs):
        self.rows = iter(xs)

    def get_next(self):
        x = next(self.rows, None)
        return None if x is None else {"x": x[None]}


def main():
    args = options(__doc__).parse_args()
    logging.disable(logging.CRITICAL)  # the quantizer's advice
    with Checker(args) as check:
        check_all(check)
        check_constants(check)
        return check.finish()


if __name__ == "__main__":
    sys.exit(main())
