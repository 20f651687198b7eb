#!/usr/bin/env python3
"""Writes testdata/ops/types.txt as make_op_cases.py does: operators in the element types that the other cases leave out. NumPy computed
the outputs, in the type itself, from the formulas below. Integers reach the ends of their types and numbers that doubles do not hold, float64
is compared to a few of its last digits; what only moves elements is also tried with complex numbers, 8-bit floats and packed 4 and 2 bits.
Types are those that ONNX allows (needs onnx, onnxruntime, numpy)."""
import math

import numpy as np
import onnx
from onnx import TensorProto, helper

import make_family_cases as fam
import make_op_cases as cases

SIGNED, UNSIGNED = [np.int8, np.int16, np.int32, np.int64], [np.uint8, np.uint16, np.uint32, np.uint64]
INTS = SIGNED + UNSIGNED
D = np.float64
F64 = (1e-14, 1e-15)

# Types that NumPy has no name for, of which cases hold codes: of a byte, and (with the bits of an element) of several to a byte.
CODED = [TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ]
PACKED = {TensorProto.UINT4: 4, TensorProto.INT4: 4, TensorProto.FLOAT4E2M1: 4, TensorProto.UINT2: 2, TensorProto.INT2: 2}
REAL = [np.bool_, D, *INTS]
WIDE = [*REAL, np.complex64, np.complex128]


def qval_of(dt):
    return dt if isinstance(dt, int) else int(helper.np_dtype_to_tensor_dtype(np.dtype(dt)))


def allowed(op, k=0, out=False):
    """Element types that ONNX's newest version of the operator takes for input (or output) k."""
    s = onnx.defs.get_schema(op)
    args = s.outputs if out else s.inputs
    words = args[min(k, len(args) - 1)].types
    names = {"float": 1, "double": 11, **{n.lower(): v for n, v in TensorProto.DataType.items()}}
    return {names[w[7:-1]] for w in words if w.startswith("tensor(")}


def version(op):
    return onnx.defs.get_schema(op).since_version


def whole(dt, *dims, lo=-9, hi=10):
    """Small whole numbers of any type."""
    lo = max(lo, 0) if np.dtype(dt).kind in "ub" else lo
    return fam.ints(*dims, lo=lo, hi=hi).astype(dt)


def ends(dt):
    """The ends of an integer type, their neighbours, and what a double or a float would round."""
    i = np.iinfo(dt)
    more = [v + d for v in (2 ** 24, 2 ** 53) for d in (0, 1) if v + d <= i.max]
    return np.array([i.min, i.min + 1, i.max, i.max - 1, 0, 1, 7] + more, dt)


def anything(dt, *dims):
    """Elements of any type, by all of its bits."""
    if dt in PACKED:
        return fam.rng.integers(0, 1 << PACKED[dt], dims).astype(np.uint8)
    if dt in CODED:
        return fam.rng.integers(0, 256, dims).astype(np.uint8)
    if np.dtype(dt).kind in "iu":
        i = np.iinfo(dt)
        return fam.rng.integers(i.min, i.max, dims, dtype=dt, endpoint=True)
    if np.dtype(dt).kind == "b":
        return fam.rng.integers(0, 2, dims).astype(dt)
    x = fam.rng.standard_normal(dims)
    return (x + 1j * fam.rng.standard_normal(dims)).astype(dt) if np.dtype(dt).kind == "c" else x.astype(dt)


def typed(a, dt):
    """The codes a as a tensor of type dt; arrays of NumPy's types stay as they are."""
    if dt not in CODED and dt not in PACKED:
        return np.ascontiguousarray(a, dt)
    data = np.ascontiguousarray(a).reshape(-1)
    if dt in PACKED:
        per = 8 // PACKED[dt]
        data = np.concatenate([data, np.zeros(-len(data) % per, np.uint8)]).reshape(-1, per)
        data = sum(data[:, k].astype(np.uint8) << (k * PACKED[dt]) for k in range(per)).astype(np.uint8)
    return TensorProto(data_type=dt, dims=a.shape, raw_data=data.tobytes())


def own(op, inputs, outputs, tol=None, opset=0, free_shape=False, **attrs):
    outputs = outputs if isinstance(outputs, list) else [outputs]
    cases.emit(fam.family, fam.node_of(op, inputs, len(outputs), **attrs), opset or version(op), inputs, outputs, tol=tol, free_shape=free_shape)


def each(op, dtypes, k=0, out=False):
    ok = allowed(op, k, out)
    return [dt for dt in dtypes if qval_of(dt) in ok]


# ------------------------------------------------------------------ arithmetic

def erf(x):
    return np.vectorize(math.erf, otypes=[D])(x)


def unary():
    x = np.concatenate([fam.f32(30, scale=3).astype(D) + 1e-9, [0.0, -0.0, 1e-12, 0.5, 1.5, -2.5, 30.0, -30.0]])
    # Attributes are floats: these are numbers that floats hold.
    sigmoid, softplus = lambda v: 1 / (1 + np.exp(-v)), lambda v: np.maximum(v, 0) + np.log1p(np.exp(-np.abs(v)))
    for op, f, attrs in (("Ceil", np.ceil, {}), ("Floor", np.floor, {}), ("Round", np.rint, {}), ("Relu", lambda v: np.maximum(v, 0), {}),
                         ("Reciprocal", lambda v: 1 / v, {}), ("Softsign", lambda v: v / (1 + np.abs(v)), {}), ("Tanh", np.tanh, {}),
                         ("Sigmoid", sigmoid, {}), ("Softplus", softplus, {}), ("Erf", erf, {}),
                         ("Elu", lambda v: np.where(v < 0, 0.75 * np.expm1(v), v), {"alpha": 0.75}),
                         ("Celu", lambda v: np.maximum(v, 0) + np.minimum(0, 0.75 * np.expm1(v / 0.75)), {"alpha": 0.75}),
                         ("Selu", lambda v: 1.125 * np.where(v > 0, v, 1.5 * np.expm1(v)), {"alpha": 1.5, "gamma": 1.125}),
                         ("Gelu", lambda v: 0.5 * v * (1 + erf(v / math.sqrt(2))), {}),
                         ("Gelu", lambda v: 0.5 * v * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ** 3))), {"approximate": "tanh"}),
                         ("HardSigmoid", lambda v: np.clip(0.25 * v + 0.5, 0, 1), {"alpha": 0.25}), ("HardSwish", lambda v: v * np.clip(v / 6 + 0.5, 0, 1), {}),
                         ("LeakyRelu", lambda v: np.where(v < 0, 0.25 * v, v), {"alpha": 0.25}), ("Mish", lambda v: v * np.tanh(softplus(v)), {}),
                         ("ThresholdedRelu", lambda v: np.where(v > 1.25, v, 0), {"alpha": 1.25}),
                         ("Shrink", lambda v: np.where(v < -0.75, v + 0.25, np.where(v > 0.75, v - 0.25, 0)), {"lambd": 0.75, "bias": 0.25})):
        a = x[x != 0] if op == "Reciprocal" else x
        own(op, [a], f(a), tol=(4e-15, 4e-16) if op not in ("Gelu", "Mish", "Erf", "Celu") else (1e-13, 1e-15), **attrs)
    for op, f in (("Log", np.log), ("Sqrt", np.sqrt)):
        own(op, [np.abs(x) + 1e-300], f(np.abs(x) + 1e-300), tol=(4e-15, 4e-16))
    odd = np.array([np.inf, -np.inf, np.nan, 0.0, 1e308])
    own("IsInf", [odd], np.isinf(odd))
    own("IsInf", [odd], np.isposinf(odd), detect_negative=0)
    own("IsNaN", [odd], np.isnan(odd))
    with np.errstate(over="ignore"):
        for dt in INTS:
            e = ends(dt)
            for op, f in (("Abs", np.abs), ("Neg", np.negative), ("Sign", np.sign), ("Relu", lambda v: np.maximum(v, v.dtype.type(0)))):
                if qval_of(dt) in allowed(op):
                    own(op, [e], f(e))
            own("Erf", [np.array([0, 1, 2, 3, 100], dt)], np.array([0, 0, 0, 0, 1], dt))
            v = np.arange(-6 if dt in SIGNED else 0, 7).astype(dt)
            own("Shrink", [v], np.where(v < -2.5, v + 1, np.where(v > 2.5, v - 1, 0)).astype(dt), lambd=2.5, bias=1.0)
            i = np.iinfo(dt)
            own("Clip", [e, np.array(i.min + 1, dt), np.array(i.max - 1, dt)], np.clip(e, dt(i.min + 1), dt(i.max - 1)))
            own("BitwiseNot", [e], ~e)
    own("Sign", [np.array([-3.5, 0.0, 1e-300, np.inf])], np.array([-1.0, 0, 1, 1]))


def binary():
    with np.errstate(all="ignore"):
        for dt in INTS:
            a, b = np.meshgrid(ends(dt), ends(dt))
            for op, f in (("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Max", np.maximum), ("Min", np.minimum),
                          ("BitwiseAnd", np.bitwise_and), ("BitwiseOr", np.bitwise_or), ("BitwiseXor", np.bitwise_xor), ("Equal", np.equal),
                          ("Greater", np.greater), ("GreaterOrEqual", np.greater_equal), ("Less", np.less), ("LessOrEqual", np.less_equal)):
                own(op, [a, b], f(a, b))
            e = ends(dt)
            for op, f in (("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply)):  # what is known of elements before the run
                own(op, [e, e[::-1]], f(e, e[::-1]))
            n, d = np.meshgrid(e, e[e != 0])
            trunc = np.array([int(abs(int(p)) // abs(int(q))) * (1 if (p < 0) == (q < 0) else -1) for p, q in zip(n.flat, d.flat)], object)
            wrap = lambda v: np.array([int(t) & (2 ** (8 * np.dtype(dt).itemsize) - 1) for t in v], np.uint64).astype(dt).reshape(n.shape)  # noqa: E731, B023
            own("Div", [n, d], wrap(trunc))
            own("Mod", [n, d], wrap([int(p) % int(q) for p, q in zip(n.flat, d.flat)]))
            own("Mod", [n, d], wrap([int(p) - int(q) * int(t) for p, q, t in zip(n.flat, d.flat, trunc)]), fmod=1)
            if qval_of(dt) in allowed("Pow"):
                p, q = np.meshgrid(whole(dt, 4), np.arange(4).astype(dt))
                own("Pow", [p, q], (p ** q).astype(dt))
            if qval_of(dt) in allowed("PRelu"):
                x, s = whole(dt, 3, 4), whole(dt, 4, lo=1, hi=4)
                own("PRelu", [x, s], np.where(x < 0, x * s, x).astype(dt))
    for k in range(2):
        a, b = fam.f32(3, 4).astype(D) + 1e-10, fam.f32(3 - 2 * k, 4).astype(D) + 1e-10
        for op, f in (("Equal", np.equal), ("Greater", np.greater), ("GreaterOrEqual", np.greater_equal), ("Less", np.less),
                      ("LessOrEqual", np.less_equal)):
            c = np.where(np.arange(4) % 2, b, a)
            own(op, [a, c], f(a, c))
            own(op, [a, a + 1e-13], f(a, a + 1e-13))
        own("Max", [a, b], np.maximum(a, b))
        own("Min", [a, b], np.minimum(a, b))
        own("Mean", [a, b, a + 1], (a + b + (a + 1)) / 3, tol=F64)
        own("Sum", [a, b, a + 1], a + b + (a + 1), tol=F64)
        own("Mod", [a, b], np.fmod(a, b), tol=F64, fmod=1)
        own("Pow", [np.abs(a), b], np.abs(a) ** b, tol=(1e-13, 0))
        own("PRelu", [a, b], np.where(a < 0, a * b, a), tol=F64)


def reduce():
    for dt in INTS + [D]:
        x = (fam.f32(2, 3, 4).astype(D) + 1e-10) if dt is D else whole(dt, 2, 3, 4)
        axes = np.array([1], np.int64)
        for op, f in (("ReduceL1", lambda v: np.abs(v).sum(1)), ("ReduceSum", lambda v: v.sum(1)), ("ReduceProd", lambda v: v.prod(1)),
                      ("ReduceSumSquare", lambda v: (v * v).sum(1))):
            if qval_of(dt) in allowed(op):
                own(op, [x, axes], f(x).astype(dt), tol=F64, keepdims=0)
        for op, f in (("ReduceMax", lambda v: v.max(1)), ("ReduceMin", lambda v: v.min(1))):
            if qval_of(dt) in allowed(op):
                e = x if dt is D else np.resize(ends(dt), (2, 3, 4))
                own(op, [e, axes], f(e), keepdims=0)
    p = np.abs(fam.f32(2, 5).astype(D)) + 1e-10
    axes = np.array([1], np.int64)
    own("ReduceL2", [p, axes], np.sqrt((p * p).sum(1)), tol=F64, keepdims=0)
    own("ReduceLogSum", [p, axes], np.log(p.sum(1)), tol=F64, keepdims=0)
    own("ReduceLogSumExp", [p + 1000, axes], 1000 + np.log(np.exp(p).sum(1)), tol=F64, keepdims=0)
    own("ReduceMean", [p, axes], p.mean(1), tol=F64, keepdims=0)
    for dt in each("ReduceMean", INTS):  # no whole numbers, but no halves either: quotients are cut off, roots and logarithms as well
        own("ReduceMean", [np.array([[3, 4, 6], [1, 1, 2]], dt), axes], np.array([4, 1], dt), keepdims=0)
        own("ReduceL2", [np.array([[3, 4], [6, 8]], dt), axes], np.array([5, 10], dt), keepdims=0)
        own("ReduceLogSum", [np.array([[10, 20], [1, 0]], dt), axes], np.array([3, 0], dt), keepdims=0)
        own("ReduceLogSumExp", [np.array([[3, 3], [5, 1]], dt), axes], np.array([3, 5], dt), keepdims=0)
        if np.iinfo(dt).max > 2000:  # exponentials beyond doubles; more numbers than are taken at a time
            own("ReduceLogSumExp", [np.array([[1000, 1000], [2000, 7]], dt), axes], np.array([1000, 2000], dt), keepdims=0)
            own("ReduceLogSumExp", [np.full((1, 1500), 3, dt), axes], np.array([3 + np.log(1500)]).astype(dt), keepdims=0)
    for dt in each("CumSum", INTS + [D]):
        x = whole(dt, 3, 4)
        own("CumSum", [x, np.array(1, np.int32)], np.cumsum(x, 1, dtype=dt))
    for dt in each("CumProd", INTS):
        x = whole(dt, 3, 4)
        own("CumProd", [x, np.array(0, np.int64)], np.cumprod(x, 0, dtype=dt))


    # A line of integers, as computations of shapes reduce them: known before the run.
    for dt in (np.int64, np.int32):
        line = np.array([4, -3, 7, 2], dt)
        for op, v in (("ReduceMax", 7), ("ReduceMin", -3), ("ReduceSum", 10), ("ReduceProd", -168)):
            own(op, [line, fam.s64(0)], np.array([v], dt))
            own(op, [line], np.array(v, dt), keepdims=0)
        own("Expand", [np.array([5], dt), fam.s64(3)], np.full(3, 5, dt))
        own("Expand", [line, fam.s64(4)], line)
        own("Tile", [line, fam.s64(2)], np.tile(line, 2))


def products():
    for dt in each("Einsum", INTS):
        a, b = whole(dt, 2, 3), whole(dt, 3, 4)
        own("Einsum", [a, b], np.einsum("ij,jk->ki", a, b).astype(dt), equation="ij,jk->ki")
    for dt in each("Col2Im", WIDE):
        if np.dtype(dt).kind in "iuf":
            x = whole(dt, 1, 4, 4)
            want = np.zeros((1, 1, 3, 3), dt)
            for k in range(16):
                want[0, 0, k % 4 // 2 + k // 8, k % 2 + k // 4 % 2] += x[0, k // 4, k % 4]
            own("Col2Im", [x, fam.s64(3, 3), fam.s64(2, 2)], want)
    x = fam.f32(1, 2, 4, 4).astype(D) + 1e-10
    own("MaxRoiPool", [x, np.array([[0, 0, 0, 3, 3]], D)], x.reshape(1, 2, 2, 2, 2, 2).max((3, 5)), pooled_shape=[2, 2])
    own("Upsample", [x, np.array([1, 1, 2, 2], np.float32)], x.repeat(2, 2).repeat(2, 3), opset=9)
    z, t = np.log(np.abs(fam.f32(4, 3).astype(D)) + 1e-10), fam.s64(2, 0, 1, 1)
    own("NegativeLogLikelihoodLoss", [z, t], np.array(-z[np.arange(4), t].mean()), tol=F64)
    s, w = fam.f32(1, 12, 1).astype(D) + 1e-10, np.hanning(8)
    f = np.stack([np.fft.rfft(s[0, k:k + 8, 0] * w) for k in (0, 4)])
    own("STFT", [s, np.array(4, np.int64), w], np.stack([f.real, f.imag], -1)[None], tol=(1e-13, 1e-14))


def scatter():
    """Reductions of updates that meet at one place."""
    at = fam.s64(1, 1, 0, 1).reshape(4, 1)
    for dt in INTS + [D]:
        x, u = whole(dt, 3, 2), whole(dt, 4, 2)
        for reduction, f in (("add", np.add), ("mul", np.multiply), ("max", np.maximum), ("min", np.minimum)):
            want = x.copy()
            f.at(want, at[:, 0], u)
            own("ScatterND", [x, at, u], want, reduction=reduction)
            own("ScatterElements", [x, np.broadcast_to(at, (4, 2)), u], want, reduction=reduction)
    x = np.array([-2.5, 0.1, 0.7, 3.0, np.inf])
    own("Clip", [x], np.clip(x, -0.5, 0.75), opset=7, min=-0.5, max=0.75)
    own("Clip", [x], np.maximum(x, -0.5), opset=7, min=-0.5)
    q, k, v = (fam.f32(1, 2, 3, 4).astype(D) + 1e-10 for _ in range(3))
    s = 2.0 * np.tanh(q @ k.swapaxes(2, 3) / 2 / 2.0)
    p = np.exp(s - s.max(-1, keepdims=True))
    own("Attention", [q, k, v], (p / p.sum(-1, keepdims=True)) @ v, tol=(1e-13, 1e-14), opset=24, softcap=2.0)


def order():
    """What compares or counts: the ends, numbers that doubles do not hold, equal ones."""
    for dt in INTS + [D]:
        x = np.resize(ends(dt) if dt is not D else np.array([1.0, 1 + 2 ** -50, -1, -1 - 2 ** -50, 0, 1.0]), (2, 9))
        if qval_of(dt) in allowed("ArgMax"):
            own("ArgMax", [x], x.argmax(1)[:, None], axis=1)
            own("ArgMin", [x], x.shape[1] - 1 - x[:, ::-1].argmin(1)[:, None], axis=1, select_last_index=1)
        if qval_of(dt) in allowed("TopK"):
            at = np.argsort(x, 1, kind="stable")[:, :5]
            own("TopK", [x, fam.s64(5)], [np.take_along_axis(x, at, 1), at], axis=1, largest=0)
        if qval_of(dt) in allowed("Unique"):
            u, first, back, n = np.unique(x[0], return_index=True, return_inverse=True, return_counts=True)
            own("Unique", [x[0]], [u, first, back, n], free_shape=True)
        if qval_of(dt) in allowed("NonZero"):
            own("NonZero", [x], np.stack(np.nonzero(x)), free_shape=True)
        if qval_of(dt) in allowed("OneHot", 2):
            own("OneHot", [fam.s64(1, -1, 2), np.array(3, np.int64), np.array([5, 7], dt)],
                np.where(np.array([1, 2, 2])[:, None] == np.arange(3), dt(7), dt(5)))
        if qval_of(dt) in allowed("EyeLike", 0, True):
            own("EyeLike", [np.zeros((3, 4), np.float32)], np.eye(3, 4, 1, dtype=dt), k=1, dtype=qval_of(dt))
        if qval_of(dt) in allowed("Range"):
            own("Range", [np.array(v, dt) for v in (3, 20, 4)], np.arange(3, 20, 4, dtype=dt))
        if qval_of(dt) in allowed("Multinomial", 0, True):
            own("Multinomial", [np.array([[-1e30, 0, -1e30]], np.float32)], np.ones((1, 4), dt), sample_size=4, dtype=qval_of(dt))
        if qval_of(dt) in allowed("Bernoulli", 0, True):
            own("Bernoulli", [np.array([0, 1, 1, 0], np.float32)], np.array([0, 1, 1, 0], dt), dtype=qval_of(dt))


# ------------------------------------------------------------------ moving

PACKED_MOVES = ("Dropout", "Flatten", "Identity", "Reshape", "Resize", "Squeeze", "Unsqueeze")


def moving():
    moves = [
        ("CenterCropPad", (3, 4), lambda x: [fam.s64(2, 2)], lambda x: x[:2, 1:3], {}),
        ("Compress", (3, 4), lambda x: [np.array([True, False, True])], lambda x: x[[0, 2]], {"axis": 0, "free_shape": True}),
        ("Concat", (3, 4), lambda x: [x], lambda x: np.concatenate([x, x], 1), {"axis": 1}),
        ("DepthToSpace", (1, 4, 2, 2), lambda x: [], lambda x: x.reshape(1, 2, 2, 1, 2, 2).transpose(0, 3, 4, 1, 5, 2).reshape(1, 1, 4, 4), {"blocksize": 2}),
        ("Dropout", (3, 5), lambda x: [], lambda x: x, {}),
        ("Expand", (3, 1), lambda x: [fam.s64(3, 4)], lambda x: np.broadcast_to(x, (3, 4)), {}),
        ("Flatten", (3, 5), lambda x: [], lambda x: x.reshape(1, 15), {"axis": 0}),
        ("Gather", (3, 4), lambda x: [fam.s64(2, 0)], lambda x: x[:, [2, 0]], {"axis": 1}),
        ("GatherElements", (3, 4), lambda x: [fam.s64(3, 0, 1).reshape(3, 1)], lambda x: np.take_along_axis(x, fam.s64(3, 0, 1).reshape(3, 1), 1), {"axis": 1}),
        ("GatherND", (3, 4), lambda x: [fam.s64(2, 1, 0, 3).reshape(2, 2)], lambda x: x[[2, 0], [1, 3]], {}),
        ("Identity", (3, 5), lambda x: [], lambda x: x, {}),
        ("Pad", (3, 4), lambda x: [fam.s64(0, 1, 0, 2), x[:1, :1].reshape(())], lambda x: np.pad(x, ((0, 0), (1, 2)), constant_values=x[0, 0]), {}),
        ("Pad", (3, 4), lambda x: [fam.s64(0, 1, 1, 2)], lambda x: np.pad(x, ((0, 1), (1, 2)), mode="edge"), {"mode": "edge"}),
        ("Reshape", (3, 4), lambda x: [fam.s64(2, -1)], lambda x: x.reshape(2, 6), {}),
        ("Resize", (1, 3), lambda x: [None, None, fam.s64(2, 6)], lambda x: x.repeat(2, 0).repeat(2, 1), {"mode": "nearest"}),
        ("ReverseSequence", (3, 2), lambda x: [fam.s64(3, 2)], lambda x: np.stack([x[[2, 1, 0], 0], x[[1, 0, 2], 1]], 1), {}),
        ("ScatterElements", (3, 4), lambda x: [fam.s64(3, 0).reshape(1, 2), x[1:2, :2]], lambda x: scattered(x), {"axis": 1}),
        ("ScatterND", (3, 4), lambda x: [fam.s64(2, 0).reshape(2, 1), x[:2]], lambda x: np.stack([x[1], x[1], x[0]]), {}),
        ("Slice", (3, 4), lambda x: [fam.s64(3), fam.s64(-10), fam.s64(1), fam.s64(-2)], lambda x: x[:, 3::-2], {}),
        ("SpaceToDepth", (1, 1, 2, 4), lambda x: [], lambda x: x.reshape(1, 1, 1, 2, 2, 2).transpose(0, 3, 5, 1, 2, 4).reshape(1, 4, 1, 2), {"blocksize": 2}),
        ("Squeeze", (3, 1), lambda x: [fam.s64(1)], lambda x: x[:, 0], {}),
        ("TensorScatter", (1, 3, 2), lambda x: [x[:, :1], fam.s64(2)], lambda x: x[:, [0, 1, 0]], {}),
        ("Tile", (3, 1), lambda x: [fam.s64(2, 3)], lambda x: np.tile(x, (2, 3)), {}),
        ("Transpose", (3, 4), lambda x: [], lambda x: x.T, {}),
        ("Unsqueeze", (3,), lambda x: [fam.s64(1)], lambda x: x[:, None], {}),
    ]
    for op, dims, rest, f, attrs in moves:
        for dt in each(op, WIDE + CODED + ([*PACKED] if op in PACKED_MOVES else [])):
            x = anything(dt, *dims)
            more = [typed(v, dt) if v is not None and v.dtype == x.dtype and v.dtype not in (np.dtype(np.int64), np.dtype(np.bool_)) else v for v in rest(x)]
            own(op, [typed(x, dt)] + more, typed(f(x), dt), **attrs)
    for dt in each("Trilu", REAL):
        x = anything(dt, 4, 4)
        own("Trilu", [x], np.triu(x))
    for dt in each("Split", WIDE + CODED):
        x = anything(dt, 3, 5)
        own("Split", [typed(x, dt), fam.s64(2, 3)], [typed(x[:, :2], dt), typed(x[:, 2:], dt)], axis=1)
    for dt in each("Where", WIDE + CODED, 1):
        x, y, c = anything(dt, 3, 4), anything(dt, 4), np.array([[True], [False], [True]])
        own("Where", [c, typed(x, dt), typed(y, dt)], typed(np.where(c, x, y), dt))
    for dt in each("Scatter", WIDE + CODED):
        x = anything(dt, 3, 4)
        own("Scatter", [typed(x, dt), fam.s64(3, 0).reshape(1, 2), typed(x[1:2, :2], dt)], typed(scattered(x), dt), opset=9, axis=1)
    for dt in each("Shape", WIDE + CODED + [*PACKED]):
        x = typed(anything(dt, 3, 5), dt)
        own("Shape", [x], fam.s64(3, 5))
        own("Size", [x], np.array(15, np.int64))
    for dt in each("Constant", WIDE + CODED + [*PACKED], 0, True):
        x = anything(dt, 3)
        own("Constant", [], typed(x, dt), value=as_proto(x, dt))
    for dt in each("ConstantOfShape", WIDE + CODED + [*PACKED], 0, True):
        x = anything(dt, 1)
        own("ConstantOfShape", [fam.s64(2, 3)], typed(np.broadcast_to(x, (2, 3)), dt), value=as_proto(x, dt))


def scattered(x):
    y = x.copy()
    y[0, 3], y[0, 0] = x[1, 0], x[1, 1]
    return y


def as_proto(x, dt):
    t = typed(x, dt)
    return t if isinstance(t, TensorProto) else onnx.numpy_helper.from_array(t)


if __name__ == "__main__":
    fam.family = "types"
    fam.rng = np.random.default_rng(20251121)
    for part in (unary, binary, reduce, products, scatter, order, moving):
        part()
    for f in cases.files.values():
        f.close()
    print(cases.counts)
