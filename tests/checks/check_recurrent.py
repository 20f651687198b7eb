#!/usr/bin/env python3
"""Compares GRU and RNN that are written as quantized bodies with what NumPy makes of the same numbers, and with ONNX Runtime.

    check_recurrent.py [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Every direction, a reset in front of and behind the product, clips, functions, sequences that are shorter, given states and layouts. The products are
MatMulInteger, that of X in front of the Scan; what a body cannot say, and what would gain no time, is stored in 8 bits with its reason.

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

from pylib.judge import Checker, options, run_ort, sqnr

F = np.float32
STEPS, BATCH, INPUTS, HIDDEN = 7, 3, 13, 17
GATES = {"GRU": 3, "RNN": 1}
FUNCTIONS = {"Sigmoid": lambda x: F(1) / (F(1) + np.exp(-x)), "Tanh": np.tanh, "Relu": lambda x: np.maximum(x, F(0)),
             "Softsign": lambda x: x / (F(1) + abs(x)), "Softplus": lambda x: np.log1p(np.exp(x))}


CASES = [
    ("GRU", {}), ("GRU", {"linear_before_reset": 1}), ("RNN", {}), ("GRU", {"direction": "reverse", "bias": False}),
    ("GRU", {"direction": "bidirectional", "linear_before_reset": 1, "state": True}), ("RNN", {"direction": "bidirectional", "state": True}),
    ("GRU", {"direction": "bidirectional", "lens": [7, 2, 5], "state": True}), ("RNN", {"lens": [1, 6, 4], "bias": False}),
    ("RNN", {"direction": "reverse", "lens": [3, 6, 4]}), ("GRU", {"clip": 0.4}), ("RNN", {"clip": 0.3, "activations": ["Relu"]}),
    ("GRU", {"linear_before_reset": 1, "bias": False, "direction": "bidirectional", "activations": ["Sigmoid", "Softsign", "Tanh", "Softplus"]}),
]


class Layer:
    """A GRU or RNN with random weights; attributes and optional inputs as they are given."""

    def __init__(self, kind, seed, *, bias=True, lens=None, state=False, hidden=HIDDEN, **attrs):
        rng, self.kind, self.attrs, self.hidden = np.random.default_rng(seed), kind, attrs, hidden
        self.dirs = 2 if attrs.get("direction") == "bidirectional" else 1
        rows, self.first = GATES[kind] * hidden, attrs.get("layout", 0)
        draw = lambda *size: rng.uniform(-1, 1, size).astype(F) / F(np.sqrt(size[-1]))
        self.w, self.r = draw(self.dirs, rows, INPUTS), draw(self.dirs, rows, hidden)
        self.b = rng.uniform(-0.5, 0.5, (self.dirs, 2 * rows)).astype(F) if bias else None
        self.lens = None if lens is None else np.array(lens, np.int32)
        self.h = rng.uniform(-1, 1, (BATCH, self.dirs, hidden) if self.first else (self.dirs, BATCH, hidden)).astype(F) if state else None
        self.x = rng.standard_normal((BATCH, STEPS, INPUTS) if self.first else (STEPS, BATCH, INPUTS)).astype(F)

    def save(self, path, symbols=False):
        names = ["x", "w", "r", "b" if self.b is not None else "", "lens" if self.lens is not None else "", "h" if self.h is not None else ""]
        inits = [numpy_helper.from_array(v, n) for n, v in (("w", self.w), ("r", self.r), ("b", self.b), ("lens", self.lens), ("h", self.h)) if v is not None]
        node = helper.make_node(self.kind, names, ["y", "y_h"], "layer", hidden_size=self.hidden, **self.attrs)
        dims = ["batch", "steps"] if self.first else ["steps", "batch"]
        info = lambda name, d: helper.make_tensor_value_info(name, TensorProto.FLOAT, d)
        x = info("x", [*dims, INPUTS] if symbols else list(self.x.shape))
        y, y_h = ([*dims, "directions", "hidden"], ["batch", "directions", "hidden"]) if self.first else \
            ([dims[0], "directions", dims[1], "hidden"], ["directions", "batch", "hidden"])
        graph = helper.make_graph([node], "recurrent", [x], [info("y", y), info("y_h", y_h)], inits)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), path)


def rows_of(w):
    """Matrix columns as int32 and their scales."""
    scale = (abs(w).max(1) / F(127)).astype(F)
    return np.rint(w / scale[:, None]).astype(np.int32).T, scale


def product(x, quantized):
    """DynamicQuantizeLinear, MatMulInteger and what makes that real."""
    q, scales = quantized
    low, high = min(x.min(), F(0)), max(x.max(), F(0))
    step = F(high - low) / F(255) if high > low else F(1)
    zero = F(np.clip(np.rint(-low / step), 0, 255))
    codes = np.clip(np.rint(x / step) + zero, 0, 255).astype(np.int32) - np.int32(zero)
    return (codes @ q).astype(F) * (step * scales)


def reference(l):
    """y and y_h, by loops."""
    n, h, late = GATES[l.kind], l.hidden, l.attrs.get("linear_before_reset", 0)
    x = l.x.transpose(1, 0, 2) if l.first else l.x
    y, last = np.zeros((STEPS, l.dirs, BATCH, h), F), np.zeros((l.dirs, BATCH, h), F)
    usual = ["Sigmoid", "Tanh"] if l.kind == "GRU" else ["Tanh"]
    names, clip = l.attrs.get("activations", usual * l.dirs), l.attrs.get("clip", np.inf)
    for d in range(l.dirs):
        f = [lambda v, name=name: FUNCTIONS[name](np.clip(v, -clip, clip).astype(F)).astype(F) for name in names[d * len(usual):]]
        b = l.b[d] if l.b is not None else np.zeros(2 * n * h, F)
        mine, state_bias = b[:n * h].copy(), b[n * h:].copy()
        apart = 2 * h if late else n * h
        mine[:apart] += state_bias[:apart]
        xp = product(x, rows_of(l.w[d])) + mine
        r, r_new = rows_of(l.r[d] if late or n == 1 else l.r[d, :2 * h]), rows_of(l.r[d, 2 * h:]) if n == 3 else None
        state = (l.h[:, d] if l.first else l.h[d]).copy() if l.h is not None else np.zeros((BATCH, h), F)
        down = d == 1 or l.attrs.get("direction") == "reverse"
        for t in range(STEPS - 1, -1, -1) if down else range(STEPS):
            hp = product(state, r)
            if n == 1:
                new = f[0](hp + xp[t])
            else:
                z, reset = np.split(f[0](hp[:, :2 * h] + xp[t][:, :2 * h]), 2, -1)
                part = reset * (hp[:, 2 * h:] + state_bias[2 * h:]) if late else product(reset * state, r_new)
                new = f[1](part + xp[t][:, 2 * h:])
                new = new + z * (state - new)
            on = (t < l.lens)[:, None] if l.lens is not None else np.ones((BATCH, 1), bool)
            state = np.where(on, new, state)
            y[t, d] = np.where(on, new, F(0))
        last[d] = state
    return (y.transpose(2, 0, 1, 3), last.transpose(1, 0, 2)) if l.first else (y, last)


def counts(graph, kinds):
    return [sum(n.op_type == k for n in graph.node) for k in kinds]


def body_of(scan):
    return next(a.g for a in scan.attribute if a.name == "body")


def check_structure(check, what, model, l):
    scans = [n for n in model.graph.node if n.op_type == "Scan"]
    products = 2 if l.kind == "GRU" and not l.attrs.get("linear_before_reset", 0) else 1
    outside = counts(model.graph, ("MatMulInteger", "MatMul", l.kind))
    inside = [counts(body_of(s), ("MatMulInteger", "MatMul")) for s in scans]
    check.hold(f"{what}: products on integers", outside == [l.dirs, 0, 0] and inside == [[products, 0]] * l.dirs, f"{outside}, {inside}")
    graphs = (model.graph, *(body_of(s) for s in scans))
    large = [t.name for g in graphs for t in g.initializer if t.data_type == TensorProto.FLOAT and len(t.dims) > 1 and t.name != "h"]
    check.hold(f"{what}: no matrix of reals", not large, large)


def check_one(check, what, l, target="onnxruntime-vnni", symbols=False, asked=True):
    path, out = check.folder / "float.onnx", check.folder / "out.onnx"
    l.save(path, symbols)
    check.convert(path, out, *(("--set", f"op:{l.kind}=dynamic") if asked else ("--scheme", "dynamic")), "--target", target)
    model = onnx.load(out)
    onnx.checker.check_model(model, full_check=True)
    check_structure(check, what, model, l)
    want, theirs, ours = reference(l), run_ort(str(out), [l.x], exact=True), check.run_ours(out, [l.x])
    for i, name in enumerate(("y", "y_h")):
        check.hold(f"{what}: {name} as NumPy", sqnr([want[i]], [theirs[i][0]]) > 60, f"{sqnr([want[i]], [theirs[i][0]]):.1f} dB")
        check.hold(f"{what}: {name} as ONNX Runtime", sqnr([theirs[i]], [ours[i]]) > 60, f"{sqnr([theirs[i]], [ours[i]]):.1f} dB")


def check_stored(check, what, l, reason, *more):
    """What stays an operator on reals says why, and has matrices of 8 bits."""
    path, out = check.folder / "float.onnx", check.folder / "out.onnx"
    l.save(path)
    layer = check.convert(path, out, "--scheme", "dynamic", *more)["layers"][0]
    model = onnx.load(out)
    check.hold(f"{what}: stored", counts(model.graph, (l.kind, "Scan", "Cast")) == [1, 0, 2] and reason in layer["why"], layer["why"])
    if not l.first:  # ONNX Runtime has no operator with the batch in front
        want, theirs = run_ort(str(path), [l.x]), run_ort(str(out), [l.x])
        check.hold(f"{what}: near the float model", sqnr(want, theirs) > 30, f"{sqnr(want, theirs):.1f} dB")


def main():
    args = options(__doc__).parse_args()
    with Checker(args) as check:
        for seed, (kind, given) in enumerate(CASES):
            check_one(check, f"{kind} {given}", Layer(kind, seed, **given), symbols=seed % 2 == 1)
        check_one(check, "one direction, batch in front", Layer("GRU", 31, layout=1, lens=[2, 7, 4], state=True))
        check_one(check, "both directions, batch in front", Layer("RNN", 32, layout=1, direction="bidirectional", state=True), symbols=True)
        check_one(check, "weights that saturate", Layer("GRU", 33, linear_before_reset=1), "onnxruntime-x86")
        check_one(check, "wide", Layer("GRU", 34, hidden=256, linear_before_reset=1), "octet", asked=False)
        check_stored(check, "narrow", Layer("GRU", 35, hidden=255), "too narrow to gain time")
        check_stored(check, "coefficients", Layer("RNN", 36, hidden=256, activations=["LeakyRelu"], activation_alpha=[0.1]), "no coefficients")
        check_stored(check, "another target", Layer("GRU", 37, hidden=256), "no integer form", "--target", "openvino")
    return check.finish()


if __name__ == "__main__":
    sys.exit(main())
