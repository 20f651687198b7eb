#!/usr/bin/env python3
"""Writes testdata/ops/runs.txt as make_op_cases.py does: operators that work on runs of elements, with runs longer than what they take
at once (1024), rows of one element and none, ends of axes, ties and NaN. NumPy computed the outputs, mostly from plain loops over
elements (needs onnx, onnxruntime, numpy)."""
import operator
from itertools import product

import numpy as np

import make_family_cases as fam
import make_op_cases as cases
from make_family_cases import own, s64

F, NAN, INF = np.float32, np.nan, np.inf


def whole(*dims, lo=-4, hi=5, dtype=F):
    """Small whole numbers: sums of them are exact, and there are many ties."""
    return fam.ints(*dims, lo=lo, hi=hi, dtype=dtype)


def odd(*dims):
    x = whole(*dims).reshape(-1)
    x[:: 7], x[3:: 11], x[5:: 13], x[6:: 17] = NAN, INF, -INF, -0.0
    return x.reshape(dims)


def cumulated(x, axis, exclusive, reverse):
    y = np.empty_like(x)
    for at in product(*(range(n) for n in x.shape)):
        k = at[axis]
        row = x[at[:axis] + (slice(None),) + at[axis + 1:]]
        y[at] = row[k + exclusive:].sum() if reverse else row[:k + 1 - exclusive].sum()
    return y


def cumulate():
    for dims, axis, exclusive, reverse in (((1, 1030), 1, 0, 0), ((1, 1030), -1, 1, 1), ((400, 3), 0, 1, 0), ((400, 3), -2, 0, 1), ((2, 1030), 0, 1, 1),
                                           ((3, 4, 5), 1, 1, 1), ((3, 1, 5), 1, 0, 1), ((3, 1), 1, 1, 0), ((0, 3), 1, 0, 0), ((3, 0), 1, 0, 0), ((3, 0), 0, 0, 0)):
        x = whole(*dims)
        own("CumSum", 14, [x, np.array(axis)], [cumulated(x, axis % len(dims), exclusive, reverse)], exclusive=exclusive, reverse=reverse)


def triangles():
    for dims, k, upper in product(((2, 3, 5), (4, 2), (1, 1), (0, 3), (3, 0)), (-9, -1, 0, 2, 9), (0, 1)):
        x = whole(*dims, dtype=np.int16)
        own("Trilu", 14, [x, np.array(k)], [np.triu(x, k) if upper else np.tril(x, k)], upper=upper)


def topk(x, k, largest):
    """NaN is above all numbers, or below where its sign is set."""
    order = []
    for row in x:
        up = [-np.copysign(1, v) * INF if v != v else v for v in row.tolist()]
        rank = [(-2 if np.signbit(v) else 2) if v != v else 0 for v in row]
        key = [(-r, v) if v != v else (r, v) for r, v in zip(rank, up)]
        key = [(r, 0 if r else v) for r, v in key] if any(rank) else key
        order.append(sorted(range(len(row)), key=lambda i: (-key[i][0], -key[i][1], i) if largest else (key[i][0], key[i][1], i))[:k])
    order = np.array(order, np.int64).reshape(len(x), k)
    return np.take_along_axis(x, order, 1), order


def sort():
    special = np.array([[1, NAN, -0.0, 0.0, INF, -NAN, -INF, NAN, 1, -2, -NAN]], F)
    for x, k, largest in ((special, 11, 1), (special, 5, 0), (whole(1, 1100, dtype=np.int8), 30, 1), (whole(1, 1100, dtype=np.int8), 30, 0),
                          (whole(1, 1100, lo=-90, hi=90, dtype=np.int8), 1050, 1), (whole(1, 2100, lo=-90, hi=90, dtype=np.int16), 1, 0),
                          (whole(3, 1), 1, 1), (whole(3, 4), 0, 1), (whole(4, 30, lo=-2**60, hi=2**60, dtype=np.int64), 7, 0)):
        v, i = topk(x, k, largest)
        own("TopK", 11, [x, s64(k)], [v, i], largest=largest)
        if x.size < 100:
            own("TopK", 11, [np.ascontiguousarray(x.T), s64(k)], [np.ascontiguousarray(v.T), np.ascontiguousarray(i.T)], largest=largest, axis=0)


def extremes():
    for op, last in product(("ArgMax", "ArgMin"), (0, 1)):
        better = operator.gt if op == "ArgMax" else operator.lt
        for x, axis in ((whole(2, 1030), 0), (whole(3, 57), 1), (odd(3, 9, 4), 1), (odd(6, 5), -1), (np.full((2, 3), -INF, F), 1),
                        (np.array([[0.0, -0.0], [-0.0, 0.0]], F), 1), (whole(3, 1, 2), 1)):
            rows = np.moveaxis(x, axis, -1)
            best = np.empty(rows.shape[:-1], np.int64)
            for at in np.ndindex(best.shape):
                k = 0
                for i, v in enumerate(rows[at]):
                    if better(v, rows[at][k]) or (last and v == rows[at][k]):
                        k = i
                best[at] = k
            own(op, 13, [x], [np.expand_dims(best, axis)], axis=axis, select_last_index=last)


def tests():
    a, b = odd(3, 71), odd(71)
    for op, f in (("Equal", operator.eq), ("Less", operator.lt), ("Greater", operator.gt), ("LessOrEqual", operator.le), ("GreaterOrEqual", operator.ge)):
        for x, y in ((a, b), (a, a[:, :1].copy()), (np.array(0, F), a)):
            own(op, 19 if op == "Equal" else 16 if "Or" in op else 13, [x, y], [f(x, y)])
        x, y = (whole(2, 1050, dtype=np.int8) for _ in range(2))
        own(op, 19 if op == "Equal" else 16 if "Or" in op else 13, [x, y], [f(x, y)])
    p, q = (whole(3, 71, lo=0, hi=2, dtype=bool) for _ in range(2))
    for op, f in (("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor)):
        for x, y in ((p, q), (p, q[:1]), (p, q[:, :1].copy()), (p[:0], q[:0])):
            own(op, 7, [x, y], [f(x, y)])
    own("Not", 1, [p], [~p])
    for dt in (F, np.float64):
        x = odd(3, 71).astype(dt)
        own("IsNaN", 13, [x], [np.isnan(x)])
        for up, down in product((0, 1), (0, 1)):
            own("IsInf", 10, [x], [(np.isposinf(x) & bool(up)) | (np.isneginf(x) & bool(down))], detect_positive=up, detect_negative=down)
    for dt in (np.int8, np.int16, F, np.int64, np.complex128):
        x, y = whole(3, 71).astype(dt), whole(71).astype(dt)
        own("Where", 16, [p, x, y], [np.where(p, x, y)])
        own("Where", 16, [p[:, :1].copy(), x[:1], y], [np.where(p[:, :1], x[:1], y)])


def casts():
    """To integers: truncated, the lowest bits; NaN is 0, and what 64 bits do not hold their end."""
    inside = np.concatenate([whole(60, lo=-70000, hi=70000) / 4, [2147483520.0, -2147483520.0, -0.75, 0.5, -0.0]]).astype(F)
    beyond = np.concatenate([inside, [2147483648.0, -2147483648.0, 4294967296.0, 1e30, -1e30, NAN, INF, -INF]]).astype(F)
    ints = [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.int64]

    def truncated(x):
        ends = [0 if v != v else min(max(int(np.clip(v, -1e19, 1e19)), -2**63), 2**63 - 1) for v in x.tolist()]
        return np.array(ends, np.int64)
    code = lambda dt: cases.helper.np_dtype_to_tensor_dtype(np.dtype(dt))  # noqa: E731
    for x in (inside, beyond):
        for dt in ints:
            own("Cast", 13, [x], [truncated(x).astype(dt)], to=code(dt))
        own("Cast", 13, [x], [x != 0], to=code(bool))
        own("Cast", 13, [x], [x.astype(np.float64)], to=code(np.float64))
    for dt in (np.bool_, np.uint8, np.int8, np.uint16, np.int16, np.int32):
        lo, hi = (0, 2) if dt is np.bool_ else (np.iinfo(dt).min, np.iinfo(dt).max + 1)
        x = fam.ints(67, lo=lo, hi=hi, dtype=dt)
        for to in (*ints, np.uint64, F, np.float64, np.bool_):
            own("Cast", 13, [x], [x.astype(to)], to=code(to))


def pads():
    def padded(x, begin, end, value):
        y = np.full([n + b + e for n, b, e in zip(x.shape, begin, end)], value, x.dtype)
        for at in np.ndindex(x.shape):
            to = tuple(k + b for k, b in zip(at, begin))
            if all(0 <= k < n for k, n in zip(to, y.shape)):
                y[to] = x[at]
        return y
    for dims, begin, end in (((2, 3, 4), (1, 0, 2), (0, 2, 1)), ((2, 3, 4), (-1, 2, -1), (1, -2, 0)), ((2, 3), (2, 1), (-2, 0)), ((2, 3), (5, 1), (-4, 0)),
                             ((2, 3), (-3, 0), (6, 1)), ((0, 3), (1, 1), (1, 0)), ((1,), (3,), (0,)), ((2, 1100), (1, 1), (0, 0)), ((1, 4, 5, 6), (0, 0, 1, 1), (0, 0, 1, 1))):
        for dt in (np.int8, np.int16, np.float64) if np.prod(dims) < 1000 else (np.int8,):
            x = whole(*dims, dtype=dt)
            own("Pad", 18, [x, s64(*begin, *end), np.array(7, dt)], [padded(x, begin, end, 7)])


def places():
    for dims, count, axis in (((2, 3, 5), (2, 3, 300), 2), ((2, 3, 5), (1, 7, 4), 1), ((4, 3, 5), (9, 2, 3), -3), ((3, 4), (3, 1), 1), ((3, 4), (0, 4), 0), ((7,), (1200,), 0)):
        n = dims[axis]
        for dt, index_type in ((np.int8, np.int64), (np.int16, np.int32), (F, np.int64), (np.complex128, np.int32)) if np.prod(count) < 100 else ((np.int8, np.int32),):
            x, index = whole(*dims).astype(dt), fam.ints(*count, lo=-n, hi=n, dtype=index_type)
            y, z, u = np.empty(count, dt), x.copy(), whole(*count).astype(dt)
            for at in np.ndindex(count):
                to = list(at)
                to[axis] = index[at] % n
                y[at] = x[tuple(to)]
                z[tuple(to)] = u[at]
            own("GatherElements", 13, [x, index], [y], axis=axis)
            own("ScatterElements", 18, [x, index, u], [z], axis=axis)


def repeats():
    x = whole(1, 300, 1, dtype=np.int8)
    own("Expand", 13, [x, s64(3, 300, 20)], [np.broadcast_to(x, (3, 300, 20)).copy()])
    own("Expand", 13, [x[:, :3], s64(2, 3, 1100)], [np.broadcast_to(x[:, :3], (2, 3, 1100)).copy()])
    y = whole(5, 7, 9, dtype=np.int8)
    own("Tile", 13, [y, s64(2, 3, 11)], [np.tile(y, (2, 3, 11))])
    own("Tile", 13, [y, s64(2, 0, 1)], [np.tile(y, (2, 0, 1))])


def groups():
    x = whole(1100, lo=-90, hi=90, dtype=np.int8)
    for ordered, (v, axis) in product((1, 0), ((x, None), (x[:600].reshape(3, 200) // 60, 1), (np.array([1.5, -0.0, 0.0, -INF, 1.5], F), None))):
        _, first, inverse, counts = np.unique(v, return_index=True, return_inverse=True, return_counts=True, axis=axis)
        inverse = inverse.reshape(-1)
        if not ordered:
            by_place = np.argsort(first)
            first, counts, inverse = first[by_place], counts[by_place], np.argsort(by_place)[inverse]
        own("Unique", 11, [v], [np.take(v, first, axis), first, inverse, counts], free_shape=True, sorted=ordered, **({} if axis is None else {"axis": axis}))


def pools():
    for dims, kernel, strides, dilations, pad in (((1, 3, 4, 5, 6), (2, 3, 2), (1, 2, 2), (1, 1, 2), (1, 0, 1, 0, 1, 0)), ((2, 2, 3, 3, 3), (3, 3, 3), (1, 1, 1), (1, 1, 1), (1,) * 6),
                                                  ((1, 5, 7, 4, 4), (3, 1, 1), (2, 1, 1), (2, 1, 1), (2, 0, 0, 2, 0, 0)), ((1, 1, 1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), (0,) * 6)):
        for dt in (F, np.int8, np.uint8, np.float64):
            x = whole(*dims) if np.dtype(dt).kind == "f" else whole(*dims, lo=0, hi=100)
            x = x.astype(dt)
            if dt is F and x.size > 1:
                x.reshape(-1)[:: 29], x.reshape(-1)[3:: 5] = NAN, -INF
            low = -np.finfo(dt).max if np.dtype(dt).kind == "f" else np.iinfo(dt).min
            out = [(n + pad[i] + pad[i + 3] - d * (k - 1) - 1) // s + 1 for i, (n, k, s, d) in enumerate(zip(dims[2:], kernel, strides, dilations))]
            y = np.full((*dims[:2], *out), low, dt)
            for at in np.ndindex(y.shape):
                taps = ([o * s - p + k * d for k in range(size)] for o, s, p, size, d in zip(at[2:], strides, pad, kernel, dilations))
                seen = [x[at[:2] + to] for to in product(*taps) if all(0 <= t < n for t, n in zip(to, dims[2:]))]
                if seen:
                    y[at] = np.max(np.array(seen, dt))
            own("MaxPool", 12, [x], [y], kernel_shape=kernel, strides=strides, dilations=dilations, pads=pad)


def folds():
    x = whole(1, 2, 2 * 1104, dtype=np.int8)
    y = np.zeros((1, 1, 2, 1105), np.int8)
    y[0, 0, :, :-1] += x[0, 0].reshape(2, 1104)
    y[0, 0, :, 1:] += x[0, 1].reshape(2, 1104)
    own("Col2Im", 18, [x, s64(2, 1105), s64(1, 2)], [y])


if __name__ == "__main__":
    fam.family = "runs"
    fam.rng = np.random.default_rng(20261130)
    with np.errstate(invalid="ignore"):
        for part in (cumulate, triangles, sort, extremes, tests, casts, pads, places, repeats, groups, pools, folds):
            part()
    for f in cases.files.values():
        f.close()
    print(cases.counts)
