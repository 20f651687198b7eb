#!/usr/bin/env python3
"""Converts small models without samples -- weights in blocks, dynamic quantization -- and judges them with NumPy and ONNX Runtime.

    check_schemes.py [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

An encoder, a perceptron and recurrent networks with random weights are made and converted; all must pass the ONNX checker.

In blocks: the weights, decoded here, must have the SQNR that the report names, above that of rounding between smallest and
largest; ONNX Runtime's outputs must be those of the float model with the decoded weights, and ours those of ONNX Runtime. The
file does not depend on threads or instruction set.

Dynamic: codes must be the weights within half a step; each product must be one operator in ONNX Runtime, with its bias; nothing may
saturate there (its exact kernels give the same); outputs must be as near to float as the table below says, nearer than those
of its own quantize_dynamic, and ours near to its.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
from onnx import helper, numpy_helper

from pylib import smallnets
from pylib.judge import Checker, options, run_ort, sqnr

CLOSE = 100.0  # dB: the same but for the order of float sums
NEAR = 30.0    # dB: the same but for codes that a last bit moves by one


# ---- weights in blocks, decoded

def unpack(data, bits, count):
    """The first `count` codes of each row of bytes, the lowest bits first."""
    codes = data[..., None] >> np.arange(0, 8, bits, dtype=np.uint8) & (2**bits - 1)
    return codes.reshape(*data.shape[:-1], -1)[..., :count]


def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def decode_operator(node, constants):
    """float32[K][N] of a MatMulNBits."""
    a = attributes(node)
    k, n, bits, block = a["K"], a["N"], a["bits"], a["block_size"]
    blocks = -(-k // block)
    q = unpack(constants[node.input[1]].reshape(n, -1), bits, k)
    scale = constants[node.input[2]].reshape(n, blocks)
    zero = np.full((n, blocks), 2 ** (bits - 1))
    if len(node.input) > 3 and node.input[3]:
        zero = unpack(constants[node.input[3]].reshape(n, -1), bits, blocks)
    of = np.arange(k) // block
    return ((q.astype(np.float32) - zero[:, of].astype(np.float32)) * scale[:, of]).T


def decode_dequantize(node, constants):
    a = attributes(node)
    q, scale = constants[node.input[0]], constants[node.input[1]]
    zero = constants[node.input[2]] if len(node.input) > 2 else np.zeros(scale.shape)
    of = np.arange(q.shape[a["axis"]]) // a["block_size"]
    zero, scale = (np.take(np.asarray(v, np.float32), of, a["axis"]) for v in (zero, scale))
    return (np.asarray(q, np.float32) - zero) * scale


def plain(w, bits, block, symmetric):
    """w[K][N] rounded between the smallest and the largest of each block."""
    k, n = w.shape
    x = np.pad(w, ((0, -k % block), (0, 0))).T.reshape(n, -1, block).astype(np.float64)
    top = 2**bits - 1
    if symmetric:
        middle = (top + 1) // 2
        far = np.take_along_axis(x, np.abs(x).argmax(-1, keepdims=True), -1)
        scale, zero = far / -middle, middle
    else:
        lo, hi = np.minimum(x.min(-1, keepdims=True), 0), np.maximum(x.max(-1, keepdims=True), 0)
        scale = (hi - lo) / top
        zero = np.rint(-lo / scale)
    q = np.clip(np.rint(x / scale) + zero, 0, top)
    return ((q - zero) * scale).reshape(n, -1)[:, :k].T


def substituted(model, weights, path):
    """The float model with other matrices."""
    m = onnx.load(model)
    for t in m.graph.initializer:
        if t.name in weights:
            t.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(weights[t.name], np.float32), t.name))
    onnx.save(m, path)


def products(model):
    """{name of MatMul or Gemm with a constant matrix: (name of the matrix, transposed)}"""
    constants = {t.name for t in model.graph.initializer}
    return {n.name: (n.input[1], attributes(n).get("transB", 0) == 1) for n in model.graph.node
            if n.op_type in ("MatMul", "Gemm") and n.input[1] in constants}


def decode(path, layers):
    """{matrix: float32 as the model has it}"""
    m = onnx.load(path)
    constants = {t.name: numpy_helper.to_array(t) for t in m.graph.initializer}
    made = {n.output[0]: n for n in m.graph.node}
    out = {}
    for n in m.graph.node:
        if n.name not in layers:
            continue
        matrix, turned = layers[n.name]
        if n.op_type == "MatMulNBits":
            w = decode_operator(n, constants)
            out[matrix] = w.T if turned else w
        else:
            out[matrix] = decode_dequantize(made[n.input[1]], constants)
    return out


def check_blocks(c, name, model, samples):
    layers = products(onnx.load(model))
    floats = {t.name: numpy_helper.to_array(t) for t in onnx.load(model).graph.initializer}
    for bits in (4, 8):
        for form in ("", "--symmetric"):
            for block in (16, 32, 128):
                for written in ((), ("--format", "qdq"))[: 1 + (block == 32)]:
                    how = ["--scheme", "weight-only", "--bits", str(bits), "--block-size", str(block), *([form] if form else []), *written]
                    what = f"{name} {' '.join(how[2:])}"
                    out = c.folder / f"{name}.blocks.onnx"
                    report = c.convert(model, out, *how)
                    onnx.checker.check_model(str(out), full_check=not written)
                    weights = decode(out, layers)
                    told = {r["name"]: r for r in report["layers"] if r["scheme"] == "weight-only"}
                    c.hold(f"{what}: layers", set(told) == set(layers) and set(weights) == {m for m, _ in layers.values()})
                    for layer, (matrix, turned) in layers.items():
                        mine = sqnr([floats[matrix]], [weights[matrix]])
                        w = floats[matrix].T if turned else floats[matrix]
                        usual = sqnr([w], [plain(w, bits, block, bool(form))])
                        c.hold(f"{what}: {layer}", abs(told[layer]["sqnr_weights_db"] - mine) < 0.01 and mine > usual,
                               f"{mine:.2f} dB, plain {usual:.2f}")
                    substituted(model, weights, c.folder / "float.onnx")
                    want = run_ort(c.folder / "float.onnx", samples)
                    theirs, ours = run_ort(out, samples), c.run_ours(out, samples)
                    c.hold(f"{what}: ONNX Runtime", sqnr(want, theirs) > CLOSE, f"{sqnr(want, theirs):.0f} dB")
                    c.hold(f"{what}: ours", sqnr(theirs, ours) > CLOSE, f"{sqnr(theirs, ours):.0f} dB")
    a, b = c.folder / "a.onnx", c.folder / "b.onnx"
    c.convert(model, a, "--scheme", "weight-only", "--threads", "1")
    c.convert(model, b, "--scheme", "weight-only", "--threads", "3", "--isa", "scalar")
    c.hold(f"{name}: the same bytes", a.read_bytes() == b.read_bytes())


# ---- dynamic quantization

def half_steps(path, model):
    """The largest distance of a weight from its code, in steps of its scale; and how many matrices there are."""
    m = onnx.load(path)
    floats = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    turned = {matrix for matrix, transposed in products(model).values() if transposed}
    constants = {t.name: numpy_helper.to_array(t) for t in m.graph.initializer}
    worst, count = 0.0, 0
    for name, scale in constants.items():
        matrix = name.removesuffix("_scale")
        if name == matrix or matrix not in floats:
            continue
        q = constants[f"{matrix}_quantized"].astype(np.float64)
        stored = f"{matrix}_zero_point" not in constants  # made real again: [dirs][rows][k], a scale a row around zero
        zero = np.float64(0) if stored else constants[f"{matrix}_zero_point"].astype(np.float64)
        w = floats[matrix].astype(np.float64)
        if q.ndim == 3 and not stored:  # [dirs][k][rows], a grid a row
            w, scale, zero = w.transpose(0, 2, 1), scale[:, None], zero[:, None]
        w = w.T if matrix in turned else w
        worst = max(worst, float(np.abs(w / scale - (q - zero)).max()))
        count += 1
    return worst, count


def check_dynamic(c, name, model, samples, expected, least):
    """expected: operators that ONNX Runtime's optimizer leaves; least: dB to float."""
    from onnxruntime.quantization import quantize_dynamic

    m = onnx.load(model)
    out, theirs, optimized = c.folder / f"{name}.dynamic.onnx", c.folder / "theirs.onnx", c.folder / "optimized.onnx"
    c.convert(model, out, "--scheme", "dynamic")
    onnx.checker.check_model(str(out), full_check=False)
    worst, count = half_steps(out, m)
    c.hold(f"{name} dynamic: codes", worst <= 0.5001 and count == len(products(m)) + 2 * sum(n.op_type in ("LSTM", "GRU") for n in m.graph.node),
           f"{worst:.3f} steps, {count} matrices")
    want = run_ort(model, samples)
    default, exact = run_ort(out, samples, optimized=optimized), run_ort(out, samples, exact=True)
    ours = c.run_ours(out, samples)
    kinds = [n.op_type for n in onnx.load(optimized).graph.node]
    for op, number in expected.items():
        c.hold(f"{name} dynamic: {op}", kinds.count(op) == number, f"{kinds.count(op)}, expected {number}")
    c.hold(f"{name} dynamic: nothing saturates", sqnr(exact, default) > CLOSE, f"{sqnr(exact, default):.0f} dB")
    logging.disable(logging.WARNING)
    quantize_dynamic(model, theirs)
    peer = sqnr(want, run_ort(theirs, samples))
    c.hold(f"{name} dynamic: near float", sqnr(want, default) > max(least, peer), f"{sqnr(want, default):.1f} dB, quantize_dynamic {peer:.1f}")
    c.hold(f"{name} dynamic: ours", sqnr(default, ours) > NEAR, f"{sqnr(default, ours):.1f} dB")


def left(path, tail):
    """Two products of one value whose constant is the first factor, and what reads their sum."""
    rng = np.random.default_rng(5)
    inits = [numpy_helper.from_array((rng.standard_normal(size) * 0.2).astype(np.float32), name) for name, size in (("v", (120, 110)), ("w", (120, 110)), ("c", (1,)))]
    nodes = [helper.make_node("MatMul", ["v", "x"], ["a"]), helper.make_node("MatMul", ["w", "x"], ["b"]), helper.make_node("Add", ["a", "b"], ["s"]),
             helper.make_node("Mul", ["s", "s"], ["q"]), helper.make_node(tail, ["q"], ["y"])]
    ends = [[helper.make_tensor_value_info(name, 1, [1, rows, 30])] for name, rows in (("x", 110), ("y", 120))]
    onnx.save(helper.make_model(helper.make_graph(nodes, "left", *ends, inits), opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return [rng.standard_normal((1, 110, 30)).astype(np.float32) for _ in range(3)]


def check_left(c):
    """They are turned, dynamic, and the same in both runtimes; not where a logarithm keeps them float."""
    for tail, dynamic in (("Relu", 2), ("Log", 0)):
        model, out = c.folder / "left.onnx", c.folder / "left.dynamic.onnx"
        samples = left(model, tail)
        c.convert(model, out, "--scheme", "dynamic")
        kinds = [n.op_type for n in onnx.load(out).graph.node]
        c.hold(f"left, {tail}: form", kinds.count("MatMulInteger") == dynamic and kinds.count("Transpose") == (3 if dynamic else 0), " ".join(kinds))
        want, got = run_ort(model, samples), run_ort(out, samples)
        c.hold(f"left, {tail}: near float", sqnr(want, got) > 30, f"{sqnr(want, got):.1f} dB")
        c.hold(f"left, {tail}: ours", sqnr(got, c.run_ours(out, samples)) > 120, f"{sqnr(got, c.run_ours(out, samples)):.0f} dB")


def steps_off(path, model):
    """How many steps of its block a weight behind DequantizeLinear is off the transposed one, at most: half of one, more where clipping costs less."""
    tensors = {t.name: numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}
    real = {t.name: numpy_helper.to_array(t) for t in onnx.load(model).graph.initializer}
    worst = 0.0
    for n in onnx.load(path).graph.node:
        if n.op_type == "DequantizeLinear":
            q, scale, zero = (tensors[i].astype(np.float64) for i in n.input)
            block = next(a.i for a in n.attribute if a.name == "block_size")
            s, z = (np.repeat(v, block, 0)[:len(q)] for v in (scale, zero))
            worst = max(worst, min(abs(((q - z) * s - real[w].T) / s).max() for w in ("v", "w")))
    return worst


def check_left_blocks(c):
    """Turned with weights in blocks, too, as MatMulNBits or behind DequantizeLinear."""
    for more, kind in (([], "MatMulNBits"), (["--format", "qdq"], "DequantizeLinear")):
        model, out = c.folder / "left.onnx", c.folder / "left.blocks.onnx"
        samples = left(model, "Relu")
        c.convert(model, out, "--scheme", "weight-only", "--bits", "8", *more)
        kinds = [n.op_type for n in onnx.load(out).graph.node]
        c.hold(f"left, {kind}: form", kinds.count(kind) == 2 and kinds.count("Transpose") == 3, " ".join(kinds))
        c.hold(f"left, {kind}: size", out.stat().st_size < 0.35 * model.stat().st_size, f"{out.stat().st_size / model.stat().st_size:.3f}")
        c.hold(f"left, {kind}: within a step", steps_off(out, model) < 1, f"{steps_off(out, model):.4f}")
        want, got = run_ort(model, samples), run_ort(out, samples)
        c.hold(f"left, {kind}: near float", sqnr(want, got) > 38, f"{sqnr(want, got):.1f} dB")
        c.hold(f"left, {kind}: ours", sqnr(got, c.run_ours(out, samples)) > 90, f"{sqnr(got, c.run_ours(out, samples)):.0f} dB")


def main():
    args = options(__doc__).parse_args()
    with Checker(args) as c:
        for name, make in (("encoder", smallnets.encoder), ("perceptron", smallnets.perceptron)):
            model = c.folder / f"{name}.onnx"
            samples = make(model)
            check_blocks(c, name, model, samples)
            if name == "encoder":
                # Query, key and value read one value, quantized once; the others quantize in the product. The Adds left are of Gelu.
                check_dynamic(c, name, model, samples, least=30.0, expected={"MatMulIntegerToFloat": 6, "DynamicQuantizeMatMul": 7,
                                                                           "DynamicQuantizeLinear": 2, "Add": 2, "MatMulInteger": 0})
        check_left(c)
        check_left_blocks(c)
        for kinds, lstms in ((("LSTM", "LSTM"), 2), (("GRU", "LSTM"), 1)):
            name = "-".join(kinds).lower()
            model = c.folder / f"{name}.onnx"
            samples = smallnets.recurrent(model, kinds)
            check_dynamic(c, name, model, samples, least=30.0,
                          expected={"DynamicQuantizeLSTM": lstms, "LSTM": 0, "GRU": 2 - lstms, "DynamicQuantizeMatMul": 1, "Add": 0})
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
