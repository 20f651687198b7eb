#!/usr/bin/env python3
"""Writes testdata/ops/*.txt: operator cases whose outputs ONNX Runtime computed (seeded; needs onnx, onnxruntime, numpy).

Each file is one family. tests/unit/test_ops_cases.c reads and runs them. Run from the repository root."""
import os
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper

from op_case_text import write_case

OUT = Path(__file__).resolve().parents[2] / "testdata/ops"
rng = np.random.default_rng(20240229)
ort.set_default_logger_severity(4)
files = {}
counts = {}


def f32(*dims, scale=3.0):
    return np.asarray(rng.standard_normal(dims) * scale, np.float32)


def ints(*dims, lo=-50, hi=50, dtype=np.int64):
    return np.asarray(rng.integers(lo, hi, dims)).astype(dtype)


def session(nodes, inputs, n_out, opset):
    vi = [helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
          for i, a in enumerate(inputs) if a is not None]
    vo = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(n_out)]
    m = helper.make_model(helper.make_graph(nodes, "g", vi, vo), ir_version=8,
                          opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)])
    o = ort.SessionOptions()
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(m.SerializeToString(), o, providers=["CPUExecutionProvider"])


def emit(family, node, opset, inputs, outputs, **kw):
    os.makedirs(OUT, exist_ok=True)
    if family not in files:
        files[family] = open(os.path.join(OUT, family + ".txt"), "w")
    counts[family] = counts.get(family, 0) + 1
    write_case(files[family], f"{family}_{counts[family]}", node, opset, inputs, outputs, **kw)


def case(family, op, opset, inputs, n_out=1, tol=None, free_shape=False, **attrs):
    """Runs one node in ONNX Runtime and writes the case. None stands for an absent input."""
    names = [f"x{i}" if a is not None else "" for i, a in enumerate(inputs)]
    while names and names[-1] == "":
        names.pop()
    node = helper.make_node(op, names, [f"y{i}" for i in range(n_out)], **attrs)
    feed = {f"x{i}": a for i, a in enumerate(inputs) if a is not None}
    out = session([node], inputs, n_out, opset).run(None, feed)
    emit(family, node, opset, inputs[:len(names)], out, tol=tol, free_shape=free_shape)


def quantized(family, op, opset, inputs, grids, out_grid, dtype=np.uint8, tol=0, n_out=1, direct=None, rest=(), **attrs):
    """Integers with a grid each. `direct`: the QLinear operator that defines the result; else the chain of
    DequantizeLinear, the operator and QuantizeLinear does. rest: inputs that are not quantized."""
    node = helper.make_node(op, [f"x{i}" for i in range(len(inputs) + len(rest))], [f"y{i}" for i in range(n_out)], **attrs)
    k = len(inputs)
    feed = {f"x{i}": a for i, a in enumerate(list(inputs) + list(rest))}
    consts = []

    def scalar(v, t):
        consts.append(helper.make_node("Constant", [], [f"c{len(consts)}"],
                                       value=onnx.numpy_helper.from_array(np.array(v, t))))
        return f"c{len(consts) - 1}"

    pairs = [(scalar(s, np.float32), scalar(z, dtype)) for s, z in grids]
    outp = (scalar(out_grid[0], np.float32), scalar(out_grid[1], dtype))
    if direct == "QLinearConcat":
        flat = [n for i in range(k) for n in (f"x{i}", *pairs[i])]
        nodes = consts + [helper.make_node(direct, [*outp, *flat], ["y0"], domain="com.microsoft", **attrs)]
    elif direct:
        flat = [n for i in range(k) for n in (f"x{i}", *pairs[i])]
        nodes = consts + [helper.make_node(direct, [*flat, *outp], ["y0"], domain="com.microsoft", **attrs)]
        if direct == "QLinearSoftmax":
            nodes[-1].attribute.append(helper.make_attribute("opset", opset))
    else:
        nodes = list(consts)
        for i in range(k):
            nodes.append(helper.make_node("DequantizeLinear", [f"x{i}", *pairs[i]], [f"r{i}"]))
        mid = [f"r{i}" for i in range(k)] + [f"x{k + i}" for i in range(len(rest))]
        nodes.append(helper.make_node(op, mid, [f"s{i}" for i in range(n_out)], **attrs))
        for i in range(n_out):
            nodes.append(helper.make_node("QuantizeLinear", [f"s{i}", *outp], [f"y{i}"]))
    out = session(nodes, list(inputs) + list(rest), n_out, opset).run(None, feed)
    emit(family, node, opset, [(a, g) for a, g in zip(inputs, grids)] + list(rest), [(o, out_grid) for o in out], tol=(0, tol))


def unary():
    x = f32(2, 3, 2, 3)
    x[0, 0, 0, :3] = [0.0, -0.0, 100.0]
    plain = ["Relu", "LeakyRelu", "Sigmoid", "HardSigmoid", "Tanh", "Elu", "Selu", "Softplus", "Softsign", "Exp", "Abs",
             "Neg", "Floor", "Ceil", "Reciprocal", "Sin", "Cos", "Tan"]
    for op in plain:
        a = x if op != "Reciprocal" else x + np.float32(20)
        case("unary", op, 7, [a], tol=(1e-5, 1e-6))
    for op, v in (("Erf", 9), ("Sign", 9), ("Round", 11), ("Celu", 12), ("HardSwish", 14), ("ThresholdedRelu", 10),
                  ("Mish", 18), ("Gelu", 20), ("IsNaN", 9)):
        case("unary", op, v, [x], tol=(1e-5, 1e-6))
    case("unary", "Gelu", 20, [x], tol=(1e-5, 1e-6), approximate="tanh")
    for op in ("Log", "Sqrt"):
        case("unary", op, 13, [np.abs(x) + np.float32(0.01)])
    case("unary", "LeakyRelu", 16, [x], alpha=0.3)
    case("unary", "Elu", 6, [x], alpha=0.7)
    case("unary", "Celu", 12, [x], alpha=0.7, tol=(1e-5, 1e-6))
    case("unary", "HardSigmoid", 7, [x], alpha=0.3, beta=0.1)
    case("unary", "Selu", 7, [x], alpha=1.2, gamma=0.8, tol=(1e-5, 1e-6))
    case("unary", "ThresholdedRelu", 10, [x], alpha=2.0)
    for dt in (np.int32, np.int8, np.int64, np.float64):
        case("unary", "Abs", 13, [ints(3, 4, dtype=dt)])
        case("unary", "Neg", 13, [ints(3, 4, dtype=dt)])
    case("unary", "Sign", 13, [ints(3, 4, dtype=np.int32)])
    case("unary", "Exp", 13, [f32(5).astype(np.float64)], tol=(1e-12, 0))
    case("unary", "Not", 7, [ints(3, 4, lo=0, hi=2).astype(bool)])
    case("unary", "Relu", 14, [ints(3, 4, dtype=np.int32)])


def clip():
    x = f32(2, 3, 2, 2, scale=5)
    lo, hi = np.array(-2, np.float32), np.array(3, np.float32)
    case("clip", "Clip", 7, [x], min=-1.0, max=6.0)
    case("clip", "Clip", 10, [x], max=2.0)
    case("clip", "Clip", 10, [x])
    for v in (11, 12, 13):
        case("clip", "Clip", v, [x, lo, hi])
        case("clip", "Clip", v, [x, None, hi])
        case("clip", "Clip", v, [x, lo])
        case("clip", "Clip", v, [x])
    case("clip", "Clip", 12, [ints(4, 5), np.array(-7, np.int64), np.array(9, np.int64)])
    case("clip", "Clip", 12, [ints(4, 5, dtype=np.int8), np.array(-7, np.int8), None])
    case("clip", "Clip", 12, [ints(4, 5, lo=0, dtype=np.uint64), None, np.array(9, np.uint64)])
    case("clip", "Clip", 12, [f32(5).astype(np.float64), np.array(-1, np.float64), np.array(1, np.float64)])


def binary():
    shapes = [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (4,)), ((3, 1), (2, 1, 4)), ((), (2, 3)), ((2, 3, 2, 2), (3, 1, 1)),
              ((1, 5), (5, 1)), ((2, 0), (1,))]
    for op in ("Add", "Sub", "Mul", "Div"):
        for a, b in shapes:
            case("binary", op, 7, [f32(*a), f32(*b)])
        for dt in (np.int32, np.int64, np.float64):
            case("binary", op, 13, [ints(2, 3, lo=1, dtype=dt), ints(3, lo=1, dtype=dt)])
    case("binary", "Div", 14, [ints(12, dtype=np.int32), np.array([7], np.int32)])
    case("binary", "Pow", 13, [np.abs(f32(2, 3, 4)), f32(4)], tol=(2e-5, 1e-6))
    for e in (2.0, 0.5, 3.0, -1.0):
        case("binary", "Pow", 12, [np.abs(f32(2, 3)), np.array(e, np.float32)], tol=(1e-5, 1e-6))
    case("binary", "Pow", 13, [f32(2, 3), ints(3, lo=0, hi=4)], tol=(1e-5, 1e-6))
    case("binary", "Pow", 13, [ints(6, lo=-4, hi=5), ints(6, lo=0, hi=4)])
    case("binary", "PRelu", 9, [f32(2, 3, 2, 2), f32(3, 1, 1)])
    case("binary", "PRelu", 16, [f32(2, 3, 2), f32(1)])
    case("binary", "Mod", 10, [ints(20), ints(20, lo=1, hi=9)])
    case("binary", "Mod", 13, [ints(20), ints(20, lo=-9, hi=-1)])
    case("binary", "Mod", 13, [ints(20), ints(20, lo=1, hi=9)], fmod=1)
    case("binary", "Mod", 13, [f32(20), f32(20)], fmod=1)
    for op in ("Min", "Max", "Sum", "Mean"):
        case("binary", op, 8, [f32(2, 3, 4), f32(4), f32(3, 1)])
        case("binary", op, 13, [f32(2, 3)])
        case("binary", op, 13, [f32(2, 3, 1, 2), f32(3, 2, 1)])
    for op in ("Min", "Max"):
        case("binary", op, 12, [ints(5), ints(1)])
    for op in ("And", "Or", "Xor"):
        case("binary", op, 7, [ints(3, 4, lo=0, hi=2).astype(bool), ints(4, lo=0, hi=2).astype(bool)])
    for op, v in (("Equal", 11), ("Less", 9), ("Greater", 9), ("LessOrEqual", 12), ("GreaterOrEqual", 12)):
        a = np.round(f32(3, 2, 4, scale=1))
        case("binary", op, v, [a, np.round(f32(4, scale=1))])
        case("binary", op, 13 if v < 12 else v, [ints(9, lo=0, hi=3), ints(9, lo=0, hi=3)])
    c = ints(2, 1, 4, lo=0, hi=2).astype(bool)
    case("binary", "Where", 9, [c, f32(3, 4), f32(2, 3, 1)])
    case("binary", "Where", 16, [c, ints(3, 4), ints(4)])
    case("binary", "Where", 9, [c, ints(3, 4, lo=0, dtype=np.uint8), ints(4, lo=0, dtype=np.uint8)])


def shapes():
    x = f32(2, 3, 4)
    s = lambda *v: np.array(v, np.int64)  # noqa: E731
    for to in (s(6, 4), s(-1), s(0, -1), s(2, 0, 2, 2), s(4, -1, 1)):
        for v in (7, 13):
            case("shape", "Reshape", v, [x, to])
    case("shape", "Reshape", 14, [np.zeros((0, 3), np.float32), s(3, 0)], allowzero=1)
    for axis in (0, 1, 2, 3):
        case("shape", "Flatten", 9, [x], axis=axis)
    case("shape", "Flatten", 11, [x], axis=-1)
    y = f32(1, 3, 1, 2)
    case("shape", "Squeeze", 7, [y], axes=[0, 2])
    case("shape", "Squeeze", 11, [y], axes=[-2])
    case("shape", "Squeeze", 11, [y])
    case("shape", "Squeeze", 13, [y, s(0, -2)])
    case("shape", "Squeeze", 13, [y])
    case("shape", "Unsqueeze", 7, [x], axes=[0, 4])
    case("shape", "Unsqueeze", 11, [x], axes=[-1])
    case("shape", "Unsqueeze", 13, [x, s(1, -1)])
    case("shape", "Identity", 7, [x])
    case("shape", "Dropout", 7, [x])
    case("shape", "Dropout", 10, [x], ratio=0.3)
    case("shape", "Dropout", 12, [x, np.array(0.3, np.float32)], n_out=2)
    case("shape", "Dropout", 13, [x, np.array(0.3, np.float32), np.array(False)])
    case("shape", "Shape", 7, [x])
    for a in ({"start": 1}, {"end": -1}, {"start": -2, "end": 3}, {"start": 2, "end": 1}):
        case("shape", "Shape", 15, [x], **a)
    case("shape", "Size", 7, [x])
    case("shape", "ConstantOfShape", 9, [s(2, 3)])
    case("shape", "ConstantOfShape", 9, [s(4)], value=helper.make_tensor("v", 7, [1], [-1]))
    case("shape", "ConstantOfShape", 9, [s()])
    case("shape", "Range", 11, [np.array(1, np.int64), np.array(11, np.int64), np.array(3, np.int64)])
    case("shape", "Range", 11, [np.array(5, np.int32), np.array(-3, np.int32), np.array(-2, np.int32)])
    case("shape", "Range", 11, [np.array(0, np.float32), np.array(1, np.float32), np.array(0.3, np.float32)], free_shape=True)
    case("shape", "Constant", 7, [], value=helper.make_tensor("v", 1, [2, 2], [1.0, 2.0, 3.0, 4.0]))
    case("shape", "Constant", 12, [], value_ints=[3, -1, 4])
    case("shape", "Constant", 12, [], value_float=2.5)


def movement():
    x = f32(2, 3, 4, 5)
    s = lambda *v: np.array(v, np.int64)  # noqa: E731
    case("movement", "Transpose", 7, [x])
    for p in ([0, 2, 3, 1], [0, 3, 1, 2], [3, 2, 0, 1], [1, 0, 2, 3]):
        case("movement", "Transpose", 13, [x], perm=p)
    case("movement", "Transpose", 13, [ints(3, 4, dtype=np.int8)], perm=[1, 0])
    case("movement", "Expand", 8, [f32(3, 1), s(2, 1, 4)])
    case("movement", "Expand", 13, [ints(1, 3), s(1)])
    case("movement", "Tile", 7, [f32(2, 3, 2), s(2, 1, 3)])
    case("movement", "Tile", 13, [ints(3, dtype=np.int64), s(3)])
    for opset, mode in ((7, None), (11, "DCR"), (11, "CRD"), (13, "CRD")):
        case("movement", "DepthToSpace", opset, [f32(2, 8, 2, 3)], blocksize=2, **({"mode": mode} if mode else {}))
    case("movement", "SpaceToDepth", 7, [f32(2, 3, 4, 6)], blocksize=2)
    for axis, v in ((0, 7), (1, 7), (-1, 11), (3, 13)):
        parts = [f32(*[k + 1 if i == axis % 4 else n for i, n in enumerate((2, 3, 2, 3))]) for k in range(3)]
        case("movement", "Concat", v, parts, axis=axis)
    case("movement", "Concat", 13, [s(1, 2), s(3)], axis=0)
    case("movement", "Split", 7, [x], n_out=2, axis=2)
    case("movement", "Split", 7, [x], n_out=3, axis=3, split=[1, 3, 1])
    case("movement", "Split", 11, [x], n_out=2, axis=-2, split=[3, 1])
    case("movement", "Split", 13, [x, s(2, 1)], n_out=2, axis=1)
    case("movement", "Split", 13, [x], n_out=2, axis=0)
    case("movement", "Split", 18, [x], n_out=3, axis=3, num_outputs=3)
    case("movement", "Slice", 7, [x], starts=[1, 0], ends=[3, -1], axes=[1, 3])
    case("movement", "Slice", 9, [x], starts=[0, -2], ends=[1000, 1000])
    case("movement", "Slice", 10, [x, s(1, -1), s(3, -1000), s(1, 3), s(1, -2)])
    case("movement", "Slice", 13, [x, s(-1), s(-(2 ** 63)), s(2), s(-1)])
    case("movement", "Slice", 13, [x, s(3), s(1), s(2)])
    case("movement", "Slice", 13, [ints(6), s(1), s(5), s(0), s(2)])
    case("movement", "Slice", 11, [x, np.array([1], np.int32), np.array([2], np.int32)])
    p = [0, 0, 1, 2, 0, 1, 0, 1]
    for mode in ("constant", "reflect", "edge"):
        case("movement", "Pad", 7, [x], pads=p, mode=mode)
        case("movement", "Pad", 11, [x, s(*p)], mode=mode)
    case("movement", "Pad", 10, [x], pads=p, value=1.5)
    case("movement", "Pad", 13, [x, s(0, 1, -1, 2, 0, 0, 2, -2), np.array(2.5, np.float32)])
    case("movement", "Pad", 18, [x, s(1, 2, 1, 0), np.array(-1, np.float32), s(-1, 2)])
    case("movement", "Pad", 19, [x, s(1, 2, 1, 0), None, s(3, 2)], mode="wrap")
    case("movement", "Pad", 13, [ints(2, 3), s(1, 0, 0, 1), np.array(7, np.int64)])
    for axis in (0, 1, -1):
        case("movement", "Gather", 7, [x, s(0, 1, 1)], axis=axis)
    case("movement", "Gather", 11, [x, s(-1, 0).reshape(1, 2)], axis=2)
    case("movement", "Gather", 13, [s(5, 6, 7), np.array(1, np.int64)])
    case("movement", "Gather", 13, [s(5, 6, 7), s(2, 0)])
    case("movement", "GatherElements", 11, [f32(3, 4), ints(2, 4, lo=-3, hi=3)], axis=0)
    case("movement", "GatherElements", 13, [f32(2, 3, 4), ints(2, 3, 2, lo=0, hi=4)], axis=-1)
    case("movement", "OneHot", 11, [ints(2, 3, lo=-4, hi=5), np.array(4, np.int64), f32(2)])
    case("movement", "OneHot", 11, [ints(2, 3, lo=0, hi=4), np.array([4], np.int64), s(0, 1)], axis=1)


def cast():
    x = np.array([0.0, -0.0, 1.5, -2.7, 100.2, 3.0], np.float32)
    for to in (10, 11, 6, 7, 9, 16, 5):
        if to != 16:
            case("cast", "Cast", 13, [x], to=to)
    for to in (2, 4, 12, 13):
        case("cast", "Cast", 9, [np.abs(x)], to=to)
    for src in (np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64, np.float64, np.float16):
        for to in (1, 7, 9, 3):
            case("cast", "Cast", 13, [np.array([0, 1, 7, 100], src)], to=to)
    case("cast", "Cast", 13, [np.array([True, False])], to=1)
    case("cast", "Cast", 7, [ints(2, 3, 4)], to=1)
    case("cast", "CastLike", 15, [x, np.zeros(1, np.int32)])


def reduce():
    x = f32(2, 3, 4, 5, scale=1)
    ops = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
           "ReduceLogSumExp"]
    for op in ops + ["ReduceLogSum"]:
        a = np.abs(x) + np.float32(0.1) if op == "ReduceLogSum" else x
        case("reduce", op, 7, [a], axes=[2, 3], keepdims=1)
        case("reduce", op, 11, [a], axes=[-3], keepdims=0)
        case("reduce", op, 11, [a], keepdims=0, tol=(2e-5, 1e-5))
        case("reduce", op, 18, [a, np.array([1, 3], np.int64)], keepdims=1)
        case("reduce", op, 18, [a, np.array([0, -2], np.int64)], keepdims=0)
    case("reduce", "ReduceSum", 13, [x, np.array([1], np.int64)])
    case("reduce", "ReduceSum", 13, [x, np.array([], np.int64)], noop_with_empty_axes=1)
    case("reduce", "ReduceSum", 13, [x], keepdims=1, tol=(2e-5, 1e-5))
    case("reduce", "ReduceMean", 17, [f32(1, 7, 9, 9)], axes=[2, 3])
    for dt in (np.int32, np.int64, np.float64):
        case("reduce", "ReduceSum", 13, [ints(3, 4, 2, dtype=dt), np.array([1], np.int64)])
        case("reduce", "ReduceMax", 13, [ints(3, 4, 2, dtype=dt)], axes=[0, 2])
    case("reduce", "ReduceMax", 13, [ints(3, 4, lo=0, dtype=np.uint8)], axes=[1])
    case("reduce", "ReduceProd", 13, [ints(4, lo=1, hi=6)], keepdims=0)
    for op in ("ArgMax", "ArgMin"):
        for axis in (0, 1, -1):
            case("reduce", op, 11, [np.round(x)], axis=axis, keepdims=1)
        case("reduce", op, 7, [x], keepdims=0)
        case("reduce", op, 12, [np.round(x)], axis=2, select_last_index=1)
        case("reduce", op, 13, [ints(3, 5, lo=0, dtype=np.uint8)], axis=1)


def softmax():
    x = f32(2, 3, 4, 5)
    for op in ("Softmax", "LogSoftmax"):
        for axis in (0, 1, 2, 3):
            case("softmax", op, 7, [x], axis=axis, tol=(1e-5, 1e-6))
            case("softmax", op, 13, [x], axis=axis, tol=(1e-5, 1e-6))
        case("softmax", op, 11, [x], tol=(1e-5, 1e-6))
        case("softmax", op, 13, [x], tol=(1e-5, 1e-6))
        case("softmax", op, 13, [f32(3, 7).astype(np.float64)], tol=(1e-12, 1e-13))
    case("softmax", "Softmax", 13, [f32(2, 100, scale=40)], tol=(1e-5, 1e-6))
    for axis in (-1, 1):
        case("softmax", "LayerNormalization", 17, [f32(2, 3, 4), f32(*(2, 3, 4)[axis:]), f32(*(2, 3, 4)[axis:])], axis=axis,
             tol=(1e-4, 1e-5))
    case("softmax", "LayerNormalization", 17, [f32(5, 9), f32(9)], n_out=3, epsilon=1e-3, tol=(1e-4, 1e-5))


def sort():
    x = np.round(f32(3, 4, 5))
    case("sort", "TopK", 11, [x, np.array([3], np.int64)], n_out=2)
    case("sort", "TopK", 11, [x, np.array([2], np.int64)], n_out=2, axis=1, largest=0)
    case("sort", "TopK", 10, [f32(20), np.array([20], np.int64)], n_out=2)
    case("sort", "TopK", 7, [x], n_out=2, k=2, axis=0)
    case("sort", "TopK", 11, [ints(4, 9), np.array([4], np.int64)], n_out=2)
    for e in (0, 1):
        for r in (0, 1):
            case("sort", "CumSum", 11, [f32(3, 4), np.array(1 - e, np.int32)], exclusive=e, reverse=r, tol=(1e-5, 1e-5))
    case("sort", "CumSum", 14, [ints(2, 3, 2), np.array(-2, np.int64)])
    case("sort", "Trilu", 14, [f32(2, 3, 4), np.array(1, np.int64)])
    case("sort", "Trilu", 14, [ints(4, 3)], upper=0)


def integer():
    for dt, lo, hi in ((np.uint8, 0, 256), (np.int8, -128, 128)):
        q = lambda *d: rng.integers(lo, hi, d).astype(dt)  # noqa: E731,B023
        mid = (lo + hi) // 2
        g1, g2, g3 = (0.037, mid - 7), (0.021, mid + 11), (0.05, mid + 3)
        kw = {"dtype": dt}
        for op in ("Add", "Mul"):
            for a, b in (((2, 3, 4, 2), (2, 3, 4, 2)), ((2, 3, 4, 2), (3, 1, 1)), ((1,), (40,))):
                quantized("integer", op, 13, [q(*a), q(*b)], [g1, g2], g3, direct="QLinear" + op,
                          tol=1 if op == "Add" else 0, **kw)  # ties of the rounded sum
        quantized("integer", "Sigmoid", 13, [q(2, 3, 5, 4)], [(0.04, mid)], (1 / 256, lo), direct="QLinearSigmoid", **kw)
        quantized("integer", "LeakyRelu", 13, [q(2, 3, 5, 4)], [g1], g3, direct="QLinearLeakyRelu", alpha=0.1, **kw)
        quantized("integer", "Concat", 13, [q(2, 3, 4, 2), q(2, 2, 4, 2)], [g1, g2], g3, direct="QLinearConcat", axis=1, **kw)
        quantized("integer", "Concat", 13, [q(2, 3), q(2, 3)], [g3, g3], g3, direct="QLinearConcat", axis=-1, **kw)
        quantized("integer", "Softmax", 13, [q(3, 10)], [(0.06, mid)], (1 / 256, lo), direct="QLinearSoftmax", axis=-1, **kw)
        for op, v in (("Tanh", 13), ("Relu", 13), ("HardSigmoid", 13), ("HardSwish", 14), ("Elu", 13), ("Softplus", 13), ("Exp", 13)):
            quantized("integer", op, v, [q(2, 3, 5, 4)], [(0.03, mid)], (0.05, mid), tol=1 if op in ("Tanh", "Softplus") else 0, **kw)
        for op in ("Transpose", "Relu"):
            quantized("integer", op, 13, [q(2, 3, 4, 2)], [g1], g1, **kw)
        quantized("integer", "Transpose", 13, [q(2, 3, 4, 2)], [g1], g2, perm=[0, 2, 3, 1], **kw)
        quantized("integer", "Reshape", 13, [q(2, 3, 4)], [g1], g1, rest=[np.array([6, -1], np.int64)], **kw)
        quantized("integer", "Slice", 13, [q(4, 5)], [g1], g1, rest=[np.array([1], np.int64), np.array([3], np.int64)], **kw)
        quantized("integer", "Pad", 13, [q(2, 3, 4)], [g1], g2,
                  rest=[np.array([0, 1, 2, 0, 0, 1], np.int64), np.array(0.4, np.float32)], **kw)
        quantized("integer", "Pad", 13, [q(2, 3, 4)], [g1], g1, rest=[np.array([0, 1, 2, 0, 0, 1], np.int64)], mode="edge", **kw)
        quantized("integer", "Split", 13, [q(2, 6)], [g1], g1, n_out=2, axis=1, **kw)
        quantized("integer", "Gather", 13, [q(5, 3)], [g1], g2, rest=[np.array([3, 0], np.int64)], **kw)
        quantized("integer", "DepthToSpace", 13, [q(1, 4, 2, 3)], [g1], g1, blocksize=2, **kw)
        quantized("integer", "Expand", 13, [q(3, 1)], [g1], g1, rest=[np.array([2, 3, 4], np.int64)], **kw)
        quantized("integer", "Tile", 13, [q(3, 2)], [g1], g1, rest=[np.array([2, 2], np.int64)], **kw)
        quantized("integer", "ReduceMax", 13, [q(2, 3, 4)], [g1], g1, axes=[1], **kw)
        quantized("integer", "Clip", 13, [q(3, 7)], [g1], g3, rest=[np.array(-1, np.float32), np.array(1.5, np.float32)], **kw)


def refused():
    """What must fail: (operator, opset, inputs, an output of the shape that a careless plan would give it, attributes)."""
    x, one = f32(3, 4), np.array(1, np.int64)
    s = lambda *v: np.array(v, np.int64)  # noqa: E731
    for op, opset, inputs, out, attrs in (
            ("Gather", 13, [x, s(3)], f32(1, 4), {}), ("Gather", 13, [x, s(-4)], f32(1, 4), {}),
            ("GatherElements", 13, [x, s(0, 5).reshape(1, 2)], f32(1, 2), {"axis": 1}),
            ("Clip", 13, [ints(4), np.array(1, np.float32)], ints(4), {}),
            ("Range", 13, [s(), s(3), s(1)], ints(3), {}), ("Range", 13, [one, one, one - 1], ints(3), {}),
            ("Add", 13, [x, ints(3, 4)], x, {}), ("Sum", 13, [x, None, x], x, {}),
            ("Concat", 13, [x, None], x, {"axis": 0}), ("Concat", 13, [one, one], one, {"axis": 0}),
            ("Slice", 13, [x, s(0), s(1), s(0), s(0)], x, {}), ("Slice", 13, [x, s(0, 1), s(1)], x, {}),
            ("Pad", 13, [x, s(1, 1)], x, {}), ("Pad", 13, [x, s(0, 0, 0, 0), one], x, {}),
            ("Pad", 13, [x, s(0, 0, 0, 0)], x, {"mode": "other"}),
            ("Pad", 13, [x, s(2 ** 62, 0, 2 ** 62, 0)], x, {}), ("Tile", 13, [x, s(1)], x, {}),
            ("Transpose", 13, [x], x, {"perm": [0, 0]}), ("Reshape", 13, [x, s(5, 5)], f32(5, 5), {}),
            ("TopK", 13, [x, s(9)], f32(3, 9), {}), ("Softmax", 13, [x], x, {"axis": 2}),
            ("ReduceSum", 13, [x, s(7)], f32(1, 1), {}), ("Cast", 13, [x], x, {"to": 99}),
            ("CumSum", 14, [x, s(0, 1)], x, {}), ("DepthToSpace", 13, [f32(1, 3, 2, 2)], f32(1, 1, 4, 4), {"blocksize": 2}),
            ("ConstantOfShape", 13, [s(-2)], f32(2), {}), ("Split", 13, [x, s(1, 1)], f32(1, 4), {})):
        node = helper.make_node(op, [f"x{i}" if a is not None else "" for i, a in enumerate(inputs)], ["y0"], **attrs)
        emit("refused", node, opset, inputs, [out], refuses=True)


if __name__ == "__main__":
    for family in (unary, clip, binary, shapes, movement, cast, reduce, softmax, sort, integer,
                   refused):
        family()
    for f in files.values():
        f.close()
    print(counts)
