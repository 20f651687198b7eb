#!/usr/bin/env python3
"""Converts small models with samples, for every target and in both forms, and judges them with NumPy and ONNX Runtime.

    check_static.py [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

What the trained models of the other tests lack: constants beside data, transposed and grouped convolutions, Softmax and Where along
other axes, biases that make a channel's scale larger. The ONNX checker must pass what is written; the codes of each constant must be
its values within half a step, or at an end of their type; outputs must be near float, and ours those of ONNX Runtime with its
exact kernels.

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
import onnx.version_converter
from onnx import numpy_helper

from pylib.judge import Checker, options, run_ort, sqnr
from pylib.plainnet import Net

TARGETS = ("onnxruntime-x86", "onnxruntime-vnni", "octet")
# They leave values further away or scaled, and layers float.
NEAREST = [w for m in ("compensated-rounding", "equalize", "mixed-precision") for w in ("--no-method", m)]
NEAR = 50.0  # dB: the same but for a code in a thousand that a last bit moves by one


def constants(path):
    """Constants added, multiplied and joined to data."""
    net = Net(3)
    net.node("Conv", ["x", net.const("w1", 8, 3, 3, 3, scale=0.3), net.const("b1", 8)], "c", pads=[1, 1, 1, 1])
    net.node("Add", ["c", net.const("place", 1, 8, 10, 10, scale=2)], "a")
    net.node("Concat", ["a", net.const("extra", 1, 4, 10, 10)], "k", axis=1)
    net.node("Conv", ["k", net.const("w2", 6, 12, 3, 3, scale=0.2)], "d")
    net.node("Mul", [net.const("m", 1, 6, 8, 8), "d"], "e")
    net.node("Conv", ["e", net.const("w3", 5, 6, 1, 1)], "y")
    return net.save(path, [1, 3, 10, 10])


def transposed(path):
    """Transposed convolutions with and without groups, a grouped one."""
    net = Net(4)
    net.node("Conv", ["x", net.const("w1", 8, 2, 3, 3, scale=0.3), net.const("b1", 8)], "c", group=2, pads=[1, 1, 1, 1])
    net.node("Relu", ["c"], "r")
    net.node("ConvTranspose", ["r", net.const("w2", 8, 3, 2, 2, scale=0.4), net.const("b2", 6)], "t", group=2, strides=[2, 2])
    net.node("Relu", ["t"], "s")
    net.node("ConvTranspose", ["s", net.const("w3", 6, 5, 3, 3, scale=0.3), net.const("b3", 5)], "u", strides=[2, 1], output_padding=[1, 0])
    net.node("Conv", ["u", net.const("w4", 4, 5, 1, 1)], "y")
    return net.save(path, [1, 4, 6, 7])


def wide_bias(path):
    """A channel of tiny weights with a bias that its scale cannot hold in 32 bits."""
    net = Net(5)
    w = net.rng.standard_normal((6, 3, 3, 3)).astype(np.float32) * np.float32(0.3)
    w[2] *= np.float32(1e-9)
    w[4] = 0
    net.node("Conv", ["x", net.const("w1", value=w), net.const("b1", 6, scale=4)], "c")
    net.node("Conv", ["c", net.const("w2", 4, 6, 1, 1)], "y")
    return net.save(path, [1, 3, 8, 8])


def axes(path):
    """Softmax along channels, Where between data, Concat of three, Split."""
    net = Net(6)
    net.node("Conv", ["x", net.const("w1", 6, 3, 1, 1)], "c")
    net.node("Softmax", ["c"], "p", axis=1)
    net.node("Conv", ["x", net.const("w2", 6, 3, 1, 1)], "d")
    net.node("Where", [net.const("mask", value=net.rng.integers(0, 2, (1, 6, 7, 8)).astype(bool)), "p", "d"], "e")
    net.node("Concat", ["e", "c", "d"], "k", axis=1)
    net.node("Conv", ["k", net.const("w3", 4, 18, 3, 3, scale=0.2)], "y")
    return net.save(path, [1, 3, 7, 8])


def line(path):
    """One dimension: convolutions with groups and strides, a pool, a product with a transposed matrix."""
    net = Net(7)
    net.node("Conv", ["x", net.const("w1", 8, 1, 5, scale=0.4), net.const("b1", 8)], "c", group=4, strides=[2], pads=[2, 2])
    net.node("Relu", ["c"], "r")
    net.node("MaxPool", ["r"], "m", kernel_shape=[2], strides=[2])
    net.node("Flatten", ["m"], "f")
    net.node("Gemm", ["f", net.const("w2", 12, 64, scale=0.2), net.const("b2", 12)], "g", transB=1)
    net.node("Add", ["g", net.const("more", 12)], "h")
    net.node("MatMul", ["h", net.const("w3", 12, 5, scale=0.4)], "y")
    return net.save(path, [1, 4, 32])


def solid(path):
    """Three dimensions: pools with and without pads, of windows and of all, and a transposed convolution."""
    net = Net(9)
    net.node("Conv", ["x", net.const("w1", 6, 3, 2, 3, 3, scale=0.2), net.const("b1", 6)], "c")
    net.node("AveragePool", ["c"], "a", kernel_shape=[2, 2, 2], pads=[0, 1, 0, 1, 1, 1])
    net.node("AveragePool", ["a"], "b", kernel_shape=[2, 3, 1], pads=[1, 1, 0, 0, 1, 0], count_include_pad=1)
    net.node("MaxPool", ["b"], "m", kernel_shape=[2, 2, 2], strides=[1, 2, 1])
    net.node("ConvTranspose", ["m", net.const("w2", 6, 5, 2, 2, 2, scale=0.3), net.const("b2", 5)], "t", strides=[2, 1, 1])
    net.node("GlobalAveragePool", ["t"], "g")
    net.node("Conv", ["g", net.const("w3", 4, 5, 1, 1, 1)], "y")
    return net.save(path, [1, 3, 7, 8, 9])


def left(path):
    """Products whose first factor is the constant, between layers."""
    net = Net(10)
    net.node("Relu", [net.node("MatMul", ["x", net.const("w1", 12, 10, scale=0.3)], "a")], "r")
    net.node("Relu", [net.node("MatMul", [net.const("w2", 9, 16, scale=0.3), "r"], "b")], "s")
    net.node("Transpose", ["s"], "t", perm=[0, 2, 1])
    net.node("MatMul", ["t", net.const("w3", 9, 6, scale=0.3)], "y")
    return net.save(path, [1, 16, 12])


def left_gemm(path):
    """The same of Gemm, with a bias of rows, and turned."""
    net = Net(12)
    net.node("Reshape", ["x", net.const("shape", value=np.array([16, 12]))], "m")
    net.node("Relu", [net.node("Gemm", [net.const("w1", 9, 16, scale=0.3), "m", net.const("b1", 9, 1)], "a")], "r")
    net.node("Relu", [net.node("Gemm", [net.const("w2", 9, 7, scale=0.3), "r"], "b", transA=1)], "s")
    net.node("MatMul", ["s", net.const("w3", 12, 6, scale=0.3)], "z")
    net.node("Reshape", ["z", net.const("back", value=np.array([1, 42]))], "y")
    return net.save(path, [1, 192])


def equations(path):
    """Einsum with a constant, as attention has it."""
    net = Net(11)
    net.node("Einsum", ["x", net.const("w1", 12, 3, 8, scale=0.3)], "h", equation="bsd,dhk->bshk")
    net.node("Relu", ["h"], "r")
    net.node("Einsum", ["r", net.const("w2", 3, 8, 10, scale=0.3)], "y", equation="bshk,hkd->bsd")
    return net.save(path, [1, 7, 12])


def clamped(path):
    """Relu, a Clip and a pool behind convolutions, joined: what quantizers do for clamps elsewhere."""
    net = Net(8)
    net.node("Relu", [net.node("Conv", ["x", net.const("w1", 8, 3, 3, 3, scale=0.3), net.const("b1", 8)], "c")], "r")
    net.node("MaxPool", ["r"], "m", kernel_shape=[2, 2], strides=[2, 2])
    net.node("Clip", [net.node("Conv", ["m", net.const("w2", 8, 8, 1, 1, scale=0.3)], "d"), net.const("lo", value=np.zeros((), np.float32)),
                      net.const("hi", value=np.full((), 6, np.float32))], "e")
    net.node("Sigmoid", ["d"], "s")
    net.node("Concat", ["e", "m", "s"], "k", axis=1)
    net.node("Relu", [net.node("Add", ["k", net.const("more", 1, 24, 1, 1)], "a")], "f")
    net.node("Conv", ["f", net.const("w3", 5, 24, 1, 1, scale=0.3)], "y")
    return net.save(path, [1, 3, 10, 10])


def zero_points(path, behind=None):
    """Those of activations, all or those behind an operator."""
    m = onnx.load(path)
    have = {t.name: numpy_helper.to_array(t) for t in m.graph.initializer}
    maker = {o: n.op_type for n in m.graph.node for o in n.output}
    return {int(have[n.input[2]]) for n in m.graph.node if n.op_type == "QuantizeLinear" and behind in (None, maker.get(n.input[0]))}


def check_symmetric(c):
    """Symmetric is zero point 0, or 128 of u8, behind clamps, in shared grids, and with every observer."""
    model, policy, out = c.folder / "clamped.onnx", c.folder / "sym.policy", c.folder / "out.onnx"
    samples = clamped(model)
    np.save(c.folder / "x.npy", np.stack(samples))
    want = run_ort(model, [s[None] for s in samples])
    for rule, zero in (("any - - s8/tensor/sym", 0), ("any - - u8/tensor/sym", 128), ("op:Conv - - s8/tensor/sym", 0)):
        for observer in ("minmax", "avg-minmax", "hist-percentile", "hist-entropy", "hist-mse"):
            what = f"symmetric, {rule}, {observer}"
            policy.write_text(f"{rule} {observer}\n")
            report = c.convert(model, out, "--data", c.folder / "x.npy", "--policy", policy, *NEAREST)
            onnx.checker.check_model(str(out), full_check=True)
            zeros = zero_points(out, None if rule.startswith("any") else "Conv")
            c.hold(f"{what}: zero points", zeros == {zero}, f"{zeros}")
            integer = [x["integer"] for x in report["layers"] if x.get("weights")]
            c.hold(f"{what}: layers", len(integer) == 3 and all(integer), f"{sum(integer)} of {len(integer)} on integers")
            theirs, ours = run_ort(out, [s[None] for s in samples], exact=True), c.run_ours(out, samples)
            c.hold(f"{what}: near float", sqnr(want, theirs) > 25.0, f"{sqnr(want, theirs):.1f} dB")
            c.hold(f"{what}: ours", sqnr(theirs, ours) > NEAR, f"{sqnr(theirs, ours):.1f} dB")


def worst_code(path, floats):
    """The largest distance of a constant from its code in steps, of those that are at no end of their type; and how many constants."""
    m = onnx.load(path)
    have = {t.name: numpy_helper.to_array(t) for t in m.graph.initializer}
    worst, seen = 0.0, set()
    for n in m.graph.node:
        name = n.input[0].removesuffix("_quantized") if n.op_type == "DequantizeLinear" and n.input[0] in have else ""
        if name in floats and have[n.input[0]].dtype != np.int32:  # biases make up for what rounding the weights costs
            q, scale, zero = (have[i].astype(np.float64) for i in n.input[:3])
            ends = np.iinfo(have[n.input[0]].dtype)
            axis = next((a.i for a in n.attribute if a.name == "axis"), 1)
            if scale.ndim:
                scale, zero = (v.reshape([-1 if i == axis else 1 for i in range(q.ndim)]) for v in (scale, zero))
            off = np.abs(floats[name] / scale - (q - zero))
            worst = max(worst, float(off[(q > ends.min) & (q < ends.max)].max(initial=0)))
            seen.add(name)
    return worst, seen


def check(c, name, make, least):
    model = c.folder / f"{name}.onnx"
    samples = make(model)
    np.save(c.folder / "x.npy", np.stack(samples))
    floats = {t.name: numpy_helper.to_array(t).astype(np.float64) for t in onnx.load(model).graph.initializer}
    want = run_ort(model, [s[None] for s in samples])
    for target in TARGETS:
        for form in ("qdq", "qoperator"):
            what, out = f"{name} for {target}, {form}", c.folder / "out.onnx"
            report = c.convert(model, out, "--data", c.folder / "x.npy", "--target", target, "--format", form, "--scheme", "static", *NEAREST)
            onnx.checker.check_model(str(out), full_check=form == "qdq")
            integer = [x["integer"] for x in report["layers"] if x.get("weights")]
            c.hold(f"{what}: layers", integer and all(integer), f"{sum(integer)} of {len(integer)} on integers")
            if form == "qdq":
                worst, seen = worst_code(out, floats)
                merged = name in ("equations", "left_gemm")  # constants of other shapes, under other names
                c.hold(f"{what}: codes", worst <= 0.5001 and (merged or len(seen) >= len(integer)), f"{worst:.3f} steps, of {sorted(seen)}")
            theirs, ours = run_ort(out, [s[None] for s in samples], exact=True), c.run_ours(out, samples)
            c.hold(f"{what}: near float", sqnr(want, theirs) > least, f"{sqnr(want, theirs):.1f} dB")
            c.hold(f"{what}: ours", sqnr(theirs, ours) > NEAR, f"{sqnr(theirs, ours):.1f} dB")


def of_range(lo, hi, dtype):
    """(scale, zero point) of a range in an integer type, as the specification of QuantizeLinear has them."""
    ends = np.iinfo(dtype)
    scale = (max(hi, 0.0) - min(lo, 0.0)) / (int(ends.max) - int(ends.min))
    return np.float32(scale), int(np.rint(ends.min - min(lo, 0.0) / scale))


def check_wide(c):
    """Activations of 16 bits: their grids by NumPy from what ONNX Runtime's float run gives, codes of ONNX Runtime by these, domains by the opset."""
    for opset, dtype in ((13, np.uint16), (13, np.int16), (21, np.uint16), (21, np.int16)):
        word = {np.uint16: "u16", np.int16: "s16"}[dtype]
        what, model, out = f"{word}, opset {opset}", c.folder / "wide.onnx", c.folder / "out.onnx"
        samples = clamped(model)
        for s in samples:  # whichever of them calibrate
            s[0, 0, :2] = -4, 5
        made = onnx.version_converter.convert_version(onnx.load(model), opset) if opset != 13 else onnx.load(model)
        onnx.save(made, model)
        np.save(c.folder / "x.npy", np.stack(samples))
        (c.folder / "wide.policy").write_text(f"any - - {word} minmax\n")
        (c.folder / "wide.target").write_text(f"name wide\nsummary 16 bits\ninherits onnxruntime-x86\ntypes u8*s8 u8*u8 {word}*s8\n")
        report = c.convert(model, out, "--data", c.folder / "x.npy", "--policy", c.folder / "wide.policy", "--target", c.folder / "wide.target", *NEAREST)
        onnx.checker.check_model(str(out), full_check=True)
        integer = [x["integer"] for x in report["layers"] if x.get("weights")]
        c.hold(f"{what}: layers", len(integer) == 3 and all(integer), f"{sum(integer)} of {len(integer)} on integers")
        quantized = onnx.load(out)
        have = {t.name: numpy_helper.to_array(t) for t in quantized.graph.initializer}
        wide = [n for n in quantized.graph.node if n.op_type in ("QuantizeLinear", "DequantizeLinear") and have[n.input[2]].dtype == dtype]
        domains = {n.domain for n in wide}
        c.hold(f"{what}: domain", wide and domains == {"com.microsoft" if opset < 21 else ""}, f"{domains}")
        others = {n.domain for n in quantized.graph.node if n.op_type == "DequantizeLinear" and n not in wide}
        c.hold(f"{what}: domain of weights", others == {""}, f"{others}")
        first = next(n for n in wide if n.op_type == "QuantizeLinear" and n.input[0] == "x")
        x = np.stack(samples)
        scale, zero = of_range(float(x.min()), float(x.max()), dtype)
        got = have[first.input[1]], int(have[first.input[2]])
        c.hold(f"{what}: grid of the input", np.isclose(got[0], scale, rtol=1e-6) and got[1] == zero, f"{got} for {scale}, {zero}")
        quantized.graph.output.append(onnx.helper.make_tensor_value_info(first.output[0], onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None))
        onnx.save(quantized, c.folder / "shown.onnx")
        ends = np.iinfo(dtype)
        codes = np.clip(np.rint(x[:, None] / got[0]) + got[1], ends.min, ends.max)
        shown = run_ort(c.folder / "shown.onnx", list(x[:, None]), optimize=False)[-1]
        c.hold(f"{what}: codes of the input", shown.dtype == dtype and np.array_equal(shown, codes), "")
        worst, _ = worst_code(out, {t.name: numpy_helper.to_array(t).astype(np.float64) for t in made.graph.initializer})
        c.hold(f"{what}: codes of constants", worst <= 0.5001, f"{worst:.3f} steps")
        want, theirs, ours = run_ort(model, list(x[:, None])), run_ort(out, list(x[:, None]), exact=True), c.run_ours(out, samples)
        c.hold(f"{what}: near float", sqnr(want, theirs) > 38.0, f"{sqnr(want, theirs):.1f} dB")
        c.hold(f"{what}: ours", sqnr(theirs, ours) > NEAR, f"{sqnr(theirs, ours):.1f} dB")
        (c.folder / "wide.policy").write_text(f"any - - {word}/tensor/asym -\n")
        c.convert(model, out, "--data", c.folder / "x.npy", "--policy", c.folder / "wide.policy", "--target", c.folder / "wide.target", *NEAREST)
        x = x * np.float32(1.5)
        got = sqnr(run_ort(model, list(x[:, None])), run_ort(out, list(x[:, None]), exact=True))
        c.hold(f"{what}: beyond the samples", got > 34.0, f"{got:.1f} dB")


def given_scales(path):
    """Operators on integers whose scales the model makes from its input; {output: the value that has its scale}."""
    net = Net(17)
    ms, zero, middle = {"domain": "com.microsoft"}, net.const("zero", value=np.int8(0)), net.const("middle", value=np.uint8(128))
    net.node("ReduceMax", [net.node("Abs", ["x"], "size")], "most", keepdims=0)
    sx = net.node("Div", ["most", net.const("codes", value=np.float32(127))], "sx")
    sy = net.node("Mul", [sx, net.const("wider", value=np.float32(2.9))], "sy")
    q = net.node("QuantizeLinear", ["x", sx, middle], "q")
    w = net.const("w", value=net.rng.integers(-127, 128, (6, 3, 3, 3)).astype(np.int8))
    sw = net.node("Mul", [net.const("ratio", value=np.linspace(0.004, 0.012, 6).astype(np.float32)), net.node("Div", [sx, sx], "one")], "sw")
    zeros = net.const("zeros", value=np.zeros(6, np.int8))
    bias = net.const("b", value=net.rng.integers(-9000, 9000, 6).astype(np.int32))
    conv = net.node("QLinearConv", [q, sx, middle, w, sw, zeros, sy, middle, bias], "conv", pads=[1, 1, 1, 1])
    pool = net.node("QLinearAveragePool", [q, sx, middle, sy, middle], "pool", kernel_shape=[2, 2], strides=[2, 2], **ms)
    add = net.node("QLinearAdd", [q, sx, middle, q, sy, middle, sy, middle], "add", **ms)
    unit = net.const("unit", value=np.float32(1 / 256))
    soft = net.node("QLinearSigmoid", [q, sx, middle, unit, net.const("low", value=np.uint8(0))], "soft", **ms)
    join = net.node("QLinearConcat", [sy, middle, q, sx, middle, q, sy, middle], "join", axis=1, **ms)
    flat = net.node("Flatten", [q], "flat")
    m = net.const("m", value=net.rng.integers(-20, 21, (3 * 8 * 8, 5)).astype(np.int8))
    product = net.node("QLinearMatMul", [flat, sx, middle, m, net.const("sm", value=np.float32(0.01)), zero, sy, middle], "product")
    gemm = net.node("QGemm", [flat, sx, middle, net.const("n", value=net.rng.integers(-20, 21, (4, 3 * 8 * 8)).astype(np.int8)), net.const("sn", value=np.float32(0.01)),
                              zero, net.const("bn", value=net.rng.integers(-500, 500, 4).astype(np.int32)), sy, middle], "gemm", transB=1, **ms)
    scales = {conv: sy, pool: sy, add: sy, soft: unit, join: sy, product: sy, gemm: sy}
    made = onnx.helper.make_model(onnx.helper.make_graph(
        net.nodes, "net", [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 8, 8])],
        [onnx.helper.make_tensor_value_info(v, onnx.TensorProto.UINT8, None) for v in scales], net.inits), ir_version=8,
        opset_imports=[onnx.helper.make_opsetid("", 13), onnx.helper.make_opsetid("com.microsoft", 1)])
    onnx.save(made, path)
    return net.rng.standard_normal((6, 1, 3, 8, 8)).astype(np.float32)


def check_given_scales(c):
    model, out = c.folder / "given.onnx", c.folder / "out.onnx"
    samples = given_scales(model)
    names = [o.name for o in onnx.load(model).graph.output]
    want, ours = run_ort(model, list(samples), exact=True), c.run_ours(model, [s[0] for s in samples])
    for name, theirs, got in zip(names, want, ours, strict=True):
        apart = np.abs(theirs.reshape(got.shape).astype(int) - got)
        c.hold(f"scales that are made, {name}: codes", apart.max() <= 1 and (apart > 0).mean() < 0.02 and np.ptp(theirs) > 30,
               f"{apart.max()} apart, {(apart > 0).mean():.3f} not the same, over {np.ptp(theirs)}")
    np.save(c.folder / "x.npy", samples[:, 0])
    c.convert(model, out, "--data", c.folder / "x.npy")
    kept = run_ort(out, list(samples), exact=True)
    c.hold("scales that are made: converted", all(np.array_equal(a, b) for a, b in zip(want, kept, strict=True)))


def check_domain(c):
    """QuantizeLinear and DequantizeLinear of com.microsoft in each of their types, per tensor and per channel, by NumPy."""
    kinds, T = {}, onnx.TensorProto
    for kind, lo, hi in ((T.UINT4, 0, 15), (T.INT4, -8, 7), (T.UINT8, 0, 255), (T.INT8, -128, 127), (T.UINT16, 0, 65535), (T.INT16, -32768, 32767)):
        kinds[kind] = lo, hi
    rng, model = np.random.default_rng(8), c.folder / "domain.onnx"
    x = rng.standard_normal((4, 3, 5)).astype(np.float32)
    for kind, (lo, hi) in kinds.items():
        for axis in (None, 1):
            count = () if axis is None else (3,)
            scale = (rng.uniform(0.5, 1, count) * 4 / (hi - lo)).astype(np.float32)
            zero = rng.integers((3 * lo + hi) // 4, (lo + 3 * hi) // 4 + 1, count)
            inits = [numpy_helper.from_array(np.asarray(scale), "s"), onnx.helper.make_tensor("z", kind, zero.shape, np.atleast_1d(zero).tolist())]
            along = {} if axis is None else {"axis": axis}
            nodes = [onnx.helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], domain="com.microsoft", **along),
                     onnx.helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], domain="com.microsoft", **along)]
            ends = [[onnx.helper.make_tensor_value_info(v, T.FLOAT, ["n", 3, 5])] for v in ("x", "y")]
            onnx.save(onnx.helper.make_model(onnx.helper.make_graph(nodes, "net", *ends, inits), ir_version=10, opset_imports=[
                onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]), model)
            s, z = (scale, zero) if axis is None else (scale[:, None], zero[:, None])
            want = ((np.clip(np.rint(x / s) + z, lo, hi) - z) * s).astype(np.float32)
            what = f"com.microsoft, {T.DataType.Name(kind)}, {'tensor' if axis is None else 'channel'}"
            (ours,) = c.run_ours(model, list(x))
            c.hold(f"{what}: ours", np.array_equal(ours, want), f"{np.abs(ours - want).max()}")
            (theirs,) = run_ort(model, [x])
            c.hold(f"{what}: ONNX Runtime", np.array_equal(theirs[0], want), f"{np.abs(theirs[0] - want).max()}")


def check_domain_weights(c):
    """A product by 4-bit constants behind DequantizeLinear of com.microsoft, by NumPy; converted it loads, and is the same or near."""
    rng, T, (k, n) = np.random.default_rng(9), onnx.TensorProto, (47, 33)
    model, out, data = (c.folder / f for f in ("domain.onnx", "out.onnx", "x.npy"))
    x = rng.standard_normal((6, 5, k)).astype(np.float32)
    np.save(data, x)
    for kind, lo in ((T.INT4, -8), (T.UINT4, 0)):
        for axis in (None, 0, 1):
            count = () if axis is None else ((k, n)[axis],)
            q, zero, scale = rng.integers(lo, lo + 16, (k, n)), rng.integers(lo, lo + 16, count), rng.uniform(0.02, 0.08, count).astype(np.float32)
            inits = [onnx.helper.make_tensor("q", kind, q.shape, q.ravel().tolist()), numpy_helper.from_array(np.asarray(scale), "s"),
                     onnx.helper.make_tensor("z", kind, zero.shape, np.atleast_1d(zero).tolist())]
            nodes = [onnx.helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w"], domain="com.microsoft", **({} if axis is None else {"axis": axis})),
                     onnx.helper.make_node("MatMul", ["x", "w"], ["y"])]
            ends = [[onnx.helper.make_tensor_value_info(v, T.FLOAT, ["n", m])] for v, m in (("x", k), ("y", n))]
            onnx.save(onnx.helper.make_model(onnx.helper.make_graph(nodes, "net", *ends, inits), ir_version=10, opset_imports=[
                onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]), model)
            s, z = (v[:, None] if axis == 0 else v for v in (scale, zero))
            want = [x.astype(np.float64) @ ((q - z) * s.astype(np.float64))]
            what = f"com.microsoft, constants of {T.DataType.Name(kind)}, {'tensor' if axis is None else f'axis {axis}'}"
            c.hold(f"{what}: ours", sqnr(want, c.run_ours(model, list(x))) > 110)
            for more in (["--data", data], ["--scheme", "dynamic"], ["--scheme", "weight-only"], ["--scheme", "fp16"]):
                c.convert(model, out, *more)
                theirs, ours = run_ort(out, list(x)), c.run_ours(out, list(x))
                c.hold(f"{what}, {' '.join(map(str, more[:2])) if more[0] != '--data' else 'static'}: near", min(sqnr(want, theirs), sqnr(want, ours)) > 28,
                       f"{sqnr(want, theirs):.1f} dB, ours {sqnr(want, ours):.1f} dB")


def check_whole(c):
    """A first dimension that is fixed and no batch: all rows of a sample count."""
    model, out = c.folder / "whole.onnx", c.folder / "out.onnx"
    net = Net(13)
    net.node("MatMul", ["x", net.const("w", 12, 9, scale=0.3)], "y")
    net.save(model, [256, 12])
    samples = net.rng.standard_normal((8, 256, 12)).astype(np.float32)
    np.save(c.folder / "x.npy", samples)
    c.convert(model, out, "--data", c.folder / "x.npy")
    quality = sqnr(run_ort(model, list(samples)), run_ort(out, list(samples), exact=True))
    c.hold("samples that are no rows: near float", quality > 35.0, f"{quality:.1f} dB")


def main():
    args = options(__doc__).parse_args()
    with Checker(args) as c:
        for name, make, least in (("constants", constants, 30.0), ("clamped", clamped, 30.0), ("transposed", transposed, 30.0), ("wide_bias", wide_bias, 40.0), ("axes", axes, 30.0),
                                  ("line", line, 30.0), ("solid", solid, 30.0), ("left", left, 30.0), ("left_gemm", left_gemm, 30.0), ("equations", equations, 30.0)):
            check(c, name, make, least)
        check_symmetric(c)
        check_wide(c)
        check_given_scales(c)
        check_domain(c)
        check_domain_weights(c)
        check_whole(c)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
