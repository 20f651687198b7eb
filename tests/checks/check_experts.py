#!/usr/bin/env python3
"""Converts models with a mixture of experts, whose weights are nearly all of the file, and judges them with NumPy and ONNX Runtime.

    check_experts.py [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

The experts are operands of com.microsoft's MoE, matrices [experts, inputs, outputs] of a batched MatMul, picked from such a constant for each
token, or picked by constants one by one. Whichever form they have, each conversion stores them in integers.

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

from pylib import stands
from pylib.judge import Checker, options, run_ort, sqnr

E, D, I, V, LENGTH = 8, 64, 128, 100, 16
KINDS = ("MoE", "batched", "picked", "unrolled")


class Graph:
    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, array, name=None):
        self.constants.append(numpy_helper.from_array(np.asarray(array), name or f"constant_{len(self.constants)}"))
        return self.constants[-1].name

    def __call__(self, op, *inputs, out=None, n_out=1, **attrs):
        outs = [out] if out else [f"{op.lower()}_{len(self.nodes)}_{i}" for i in range(n_out)]
        names = [x if isinstance(x, str) else self.constant(x) for x in inputs]
        self.nodes.append(helper.make_node(op, names, outs, name=f"{op}_{len(self.nodes)}", **attrs))
        return outs[0] if n_out == 1 else outs


def mixture(g, kind, x, fc1, fc2, router):
    """fc1[E, D, I], fc2[E, I, D]."""
    one = lambda *v: np.array(v, np.int64)  # noqa: E731
    scores = g("MatMul", x, router)
    if kind == "MoE":
        turned = [g.constant(np.ascontiguousarray(w.swapaxes(1, 2)), n) for w, n in ((fc1, "fc1"), (fc2, "fc2"))]
        return g("MoE", x, g("Reshape", scores, one(-1, E)), turned[0], "", turned[1], domain="com.microsoft", k=2, activation_type="silu",
                 normalize_routing_weights=1)
    fc1, fc2, shares = g.constant(fc1, "fc1"), g.constant(fc2, "fc2"), g("Softmax", scores, axis=-1)
    silu = lambda v: g("Mul", v, g("Sigmoid", v))  # noqa: E731
    if kind == "batched":
        y = g("MatMul", silu(g("MatMul", g("Unsqueeze", x, one(1)), fc1)), fc2)
        return g("ReduceSum", g("Mul", y, g("Unsqueeze", g("Transpose", shares, perm=[0, 2, 1]), one(3))), one(1), keepdims=0)
    if kind == "picked":
        _, best = g("TopK", shares, one(1), axis=-1, n_out=2)
        best = g("Squeeze", best, one(-1))
        y = silu(g("MatMul", g("Unsqueeze", x, one(2)), g("Gather", fc1, best, axis=0)))
        return g("Squeeze", g("MatMul", y, g("Gather", fc2, best, axis=0)), one(2))
    total = None
    for e in range(E):
        own = lambda w: g("Squeeze", g("Gather", w, one(e), axis=0), one(0))  # noqa: B023, E731
        y = g("Mul", g("MatMul", silu(g("MatMul", x, own(fc1))), own(fc2)), g("Gather", shares, one(e), axis=-1))
        total = y if total is None else g("Add", total, y)
    return total


def model(path, kind, fc1, fc2, rng):
    g, matrix = Graph(), lambda *d: (rng.standard_normal(d) / np.sqrt(d[0])).astype(np.float32)
    x = g("Gather", g.constant(rng.standard_normal((V, D)).astype(np.float32), "embed"), "ids")
    x = g("Add", x, mixture(g, kind, x, fc1, fc2, matrix(D, E)))
    g("MatMul", x, matrix(D, V), out="logits")
    graph = helper.make_graph(g.nodes, "experts", [helper.make_tensor_value_info("ids", TensorProto.INT64, ["n", LENGTH])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", LENGTH, V])], g.constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=9), path)


def constants(path):
    return {t.name: numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}


def float_bytes(path):
    """Bytes of the constants that are float, but for scales and what is small in the model."""
    return sum(a.nbytes for n, a in constants(path).items() if a.dtype == np.float32 and a.size > V * D)


def check_rows(check, what, path, name, w, axis):
    """The stored numbers are those that NumPy rounds, with a scale for each output of each expert (or each row)."""
    found = constants(path)
    step = np.abs(w).max(axis, keepdims=True) / np.float32(127)
    whole, scale = found.get(f"{name}_quantized"), found.get(f"{name}_scale")
    right = whole is not None and scale is not None and np.array_equal(scale, step) and np.array_equal(whole, np.rint(w / step))
    check.hold(f"{what}: {name} as NumPy rounds it", right, "" if whole is None or scale is None else f"scales {scale.shape}, wanted {step.shape}")


def check_one(check, kind, scheme, experts, ids):
    what, path, out = f"{kind}, {scheme}", check.folder / f"{kind}.onnx", check.folder / "out.onnx"
    report = check.convert(path, out, "--scheme", scheme, *(["--data", check.folder / "ids.npy"] if scheme == "static" else []))
    check.hold(f"{what}: no expert is float", float_bytes(out) == 0, f"{float_bytes(out)} bytes")
    stays = [x["name"] for x in report["layers"] if x["op"] == "MoE" and x["scheme"] == "float"]
    check.hold(f"{what}: the layer of experts is no float one", not stays, stays)
    if scheme == "weight-only" and kind in ("MoE", "batched"):
        size = sum(len(t.raw_data) for t in onnx.load(out).graph.initializer if t.name.startswith("fc"))
        check.hold(f"{what}: in blocks of 4 bits", size < 2 * E * D * I * 0.7, f"{size} bytes")
    want, theirs, ours = run_ort(str(path), [ids]), run_ort(str(out), [ids]), check.run_ours(out, [ids])
    check.hold(f"{what}: as in ONNX Runtime", sqnr(theirs, ours) > (100 if scheme in ("weight-only", "stored") else 25), f"{sqnr(theirs, ours):.1f} dB")
    least = 0 if kind == "picked" else 15 if scheme == "weight-only" else 28  # picked: another expert may be the best one
    check.hold(f"{what}: near the float model", sqnr(want, theirs) > least, f"{sqnr(want, theirs):.1f} dB")
    if scheme == "stored" and kind != "unrolled":
        for name, w in experts.items():
            if kind == "MoE":
                w = w.swapaxes(1, 2)
            check_rows(check, what, out, name, w, 1 if kind == "batched" else 2)


def layer(path, act, kind, normalized, rng, unused=None):
    """A layer of experts by itself, with biases. unused: an expert that the router never takes for tokens whose first value is positive."""
    wide, more = (2 * I, {"swiglu_fusion": 1, "swiglu_limit": 2.0}) if act == "swiglu" else (I, {})
    matrix = lambda *d: (rng.standard_normal(d) / np.sqrt(d[-1])).astype(kind)  # noqa: E731
    constants = {"fc1": matrix(E, wide, D), "b1": matrix(E, wide), "fc2": matrix(E, D, I), "b2": matrix(E, D), "router": matrix(D, E)}
    if unused is not None:
        constants["router"][0, unused] = -1e4
    nodes = [helper.make_node("MatMul", ["x", "router"], ["scores"]),
             helper.make_node("MoE", ["x", "scores", "fc1", "b1", "fc2", "b2"], ["y"], domain="com.microsoft", k=2, activation_type=act,
                              normalize_routing_weights=normalized, **more)]
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), [LENGTH, D]) for n in ("x", "y")]
    graph = helper.make_graph(nodes, "layer", infos[:1], infos[1:], [numpy_helper.from_array(a, n) for n, a in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=9), path)


def check_blocks(check, rng):
    """Experts in blocks of 4 bits: QMoE, or DequantizeLinear where that form is asked for, or where QMoE computes something else."""
    for act in ("silu", "gelu", "relu", "identity", "swiglu"):
        for kind, normalized, options, op in ((np.float32, 1, (), "QMoE"), (np.float32, 1, ("--symmetric", "--block-size", "64"), "QMoE"),
                                              (np.float32, 0, (), "MoE"), (np.float32, 1, ("--format", "qdq"), "MoE"),
                                              (np.float32, 0, ("--bits", "8"), "MoE"), (np.float16, 1, (), None)):
            what, path, out = f"{act} of {kind.__name__}, normalized {normalized} {' '.join(options)}", check.folder / "layer.onnx", check.folder / "layer.out.onnx"
            layer(path, act, kind, normalized, rng)
            check.convert(path, out, "--scheme", "weight-only", "--set", "op:MatMul=float", *options)
            ops = [n.op_type for n in onnx.load(out).graph.node if n.op_type.endswith("MoE")]
            check.hold(f"{what}: {op}", len(ops) == 1 and op in (None, ops[0]), ops)
            size = sum(t.size for t in constants(out).values() if t.dtype in (np.float32, np.float16) and t.size > 2 * E * I * D / 16)
            check.hold(f"{what}: no expert is float", size == 0, f"{size} elements")
            x = [(rng.standard_normal((LENGTH, D)) * 2).astype(kind)]
            want, theirs, ours = run_ort(str(path), x), run_ort(str(out), x), check.run_ours(out, x)
            check.hold(f"{what}: as in ONNX Runtime", sqnr(theirs, ours) > (100 if kind == np.float32 else 50), f"{sqnr(theirs, ours):.1f} dB")
            check.hold(f"{what}: near the float model", sqnr(want, theirs) > (35 if "8" in options else 12), f"{sqnr(want, theirs):.1f} dB")


def check_rounded(check, rng):
    """The matrices of a batched product are rounded with samples, whether they multiply the same data or each its own. Those of data whose
    dimensions are not known stay one constant in blocks."""
    mix = rng.standard_normal((D, D)) * np.exp(rng.standard_normal(D))
    draw = lambda *d: (rng.standard_normal((*d, D)) @ mix).astype(np.float32)  # noqa: E731
    w = (rng.standard_normal((E, D, I)) / 8).astype(np.float32)
    for dims in ((1, LENGTH, D), (E, LENGTH, D), (2, E, LENGTH, D), ("e", LENGTH, D)):
        known = dims[0] != "e"
        path, out, plain = (check.folder / f"product.{n}.onnx" for n in ("float", "rounded", "plain"))
        infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims), helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
        graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"], name="product")], "product", infos[:1], infos[1:],
                                  [numpy_helper.from_array(w, "w")])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
        fixed = [d if isinstance(d, int) else E for d in dims]
        x = [draw(*fixed[:-1]) for _ in range(33)]
        np.save(check.folder / "product.npy", np.stack(x[1:]))
        check.convert(path, plain, "--scheme", "weight-only")
        check.convert(path, out, "--scheme", "weight-only", *(["--data", check.folder / "product.npy"] if known else []))
        ops = [n.op_type for n in onnx.load(out).graph.node]
        check.hold(f"data of {dims}: unrolled", ops.count("MatMulNBits") == (E if known else 0) and ops.count("MatMul") == (not known), ops)
        want, theirs, before, ours = (run_ort(str(path), x[:1]), run_ort(str(out), x[:1]), run_ort(str(plain), x[:1]), check.run_ours(out, x[:1]))
        gain = sqnr(want, theirs) - sqnr(want, before)
        check.hold(f"data of {dims}: as in ONNX Runtime", sqnr(theirs, ours) > 100, f"{sqnr(theirs, ours):.1f} dB")
        check.hold(f"data of {dims}: rounded with samples", gain > 2 if known else sqnr(want, theirs) > 15, f"{gain:.1f} dB of {sqnr(want, theirs):.1f} dB")


def check_rounded_experts(check, rng):
    """The experts of a MoE are rounded with samples, each on the tokens that it computes: what no token takes stays rounded to the nearest."""
    mix = rng.standard_normal((D, D)) * np.exp(rng.standard_normal(D)) / 8
    path, out, plain, data = (check.folder / f"rounded.{n}" for n in ("float.onnx", "out.onnx", "plain.onnx", "npy"))

    def draw(n):
        x = (rng.standard_normal((n, LENGTH, D)) @ mix).astype(np.float32)
        x[..., 0] = np.abs(x[..., 0]) + 1
        return x

    cases = [(act, 1, ()) for act in ("silu", "gelu", "relu")] + [("silu", 1, ("--symmetric", "--block-size", "64")), ("silu", 0, ()), ("relu", 1, ("--format", "qdq"))]
    for act, normalized, more in cases:
        what = f"experts with {act}, normalized {normalized} {' '.join(more)}"
        layer(path, act, np.float32, normalized, rng, unused=3)
        np.save(data, draw(48))
        more = ("--scheme", "weight-only", "--set", "op:MatMul=float", *more)
        check.convert(path, plain, *more)
        report = check.convert(path, out, *more, "--data", data, "--threads", "1")
        method = {m["name"]: m for m in report["methods"]}["block-rounding"]
        check.hold(f"{what}: the method ran", method["ran"] is True, method)
        bytes_of_one = out.read_bytes()
        check.convert(path, out, *more, "--data", data, "--threads", "2")
        check.hold(f"{what}: the same file with two threads", out.read_bytes() == bytes_of_one)
        x = draw(16)
        want, near, theirs, ours = (np.concatenate([run(p, [one])[0] for one in x]) for run, p in
                                    ((run_ort, str(path)), (run_ort, str(plain)), (run_ort, str(out)), (check.run_ours, out)))
        before, after = sqnr([want], [near]), sqnr([want], [theirs])
        check.hold(f"{what}: nearer with samples, on tokens that they do not have", after - before > 2, f"{before:.1f} dB, {after:.1f} dB")
        check.hold(f"{what}: as in ONNX Runtime", sqnr([theirs], [ours]) > 100, f"{sqnr([theirs], [ours]):.1f} dB")
        one, other = onnx.load(plain).graph.initializer, onnx.load(out).graph.initializer
        kept = {t.name: t for t in one}
        numbers = [(kept[t.name], t) for t in other if t.name.startswith("fc") and not t.name.endswith("_scale")]
        parts = [(a.raw_data[e * len(a.raw_data) // E:(e + 1) * len(a.raw_data) // E], b.raw_data[e * len(b.raw_data) // E:(e + 1) * len(b.raw_data) // E], e)
                 for a, b in numbers if "zero" not in a.name for e in range(E)]
        check.hold(f"{what}: only experts that compute tokens are rounded again", len(parts) == 2 * E and all((a == b) == (e == 3) for a, b, e in parts),
                   [(e, a == b) for a, b, e in parts])
        scales = [(kept[t.name], t) for t in other if t.name.startswith("fc") and ("scale" in t.name or "zero" in t.name)]
        check.hold(f"{what}: scales and zero points stay", len(scales) > 1 and all(a.raw_data == b.raw_data for a, b in scales), len(scales))


def gated(path, act, biased, rng):
    """A layer with a third matrix, act(x W1 + b1) * (x W3 + b3), as NumPy computes it."""
    matrix = lambda *d: (rng.standard_normal(d) / np.sqrt(d[-1])).astype(np.float32)  # noqa: E731
    k = {"fc1": matrix(E, I, D), "fc3": matrix(E, I, D), "fc2": matrix(E, D, I), "router": matrix(D, E)}
    if biased:
        k |= {"b1": matrix(E, I), "b2": matrix(E, D), "b3": matrix(E, I)}
    at = lambda name: name if biased else ""  # noqa: E731
    more = {"swiglu_fusion": 0, "activation_alpha": 1.5, "activation_beta": 1.0} if act == "swiglu" else {}
    nodes = [helper.make_node("MatMul", ["x", "router"], ["scores"]),
             helper.make_node("MoE", ["x", "scores", "fc1", at("b1"), "fc2", at("b2"), "fc3", at("b3")], ["y"], domain="com.microsoft", k=2, activation_type=act,
                              normalize_routing_weights=1, **more)]
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [LENGTH, D]) for n in ("x", "y")]
    graph = helper.make_graph(nodes, "layer", infos[:1], infos[1:], [numpy_helper.from_array(a, n) for n, a in k.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=9), path)

    def run(x):
        alpha, beta = (1.5, 1.0) if act == "swiglu" else (1.0, 0.0)
        y = np.zeros_like(x)
        for t, row in enumerate(x.astype(np.float64)):
            scores = row @ k["router"]
            best = np.argsort(-scores)[:2]
            shares = np.exp(scores[best] - scores.max())
            for e, share in zip(best, shares / shares.sum()):
                gate, up = (k[w][e] @ row + (k[b][e] if biased else 0) for w, b in (("fc1", "b1"), ("fc3", "b3")))
                y[t] += share * (k["fc2"][e] @ (gate / (1 + np.exp(-alpha * gate)) * (up + beta)) + (k["b2"][e] if biased else 0))
        return y
    return run


def check_gated(check, rng):
    """ONNX Runtime has no third matrix on CPUs: what is written has the rows of both in the first, and QMoE runs it."""
    for act in ("silu", "swiglu"):
        for biased in (False, True):
            what, path, out = f"third matrix, {act}, biased {biased}", check.folder / "gated.onnx", check.folder / "gated.out.onnx"
            run = gated(path, act, biased, rng)
            x = [(rng.standard_normal((LENGTH, D)) * 2).astype(np.float32) for _ in range(3)]
            want = [np.stack([run(v) for v in x])]
            check.hold(f"{what}: here", sqnr(want, check.run_ours(path, x)) > 100, f"{sqnr(want, check.run_ours(path, x)):.1f} dB")
            for scheme, op, least in (("float", "MoE", 100), ("weight-only", "QMoE", 12), ("stored", "MoE", 30)):
                check.convert(path, out, "--scheme", scheme, "--set", "op:MatMul=float")
                kinds = [n.op_type for n in onnx.load(out).graph.node]
                theirs = run_ort(str(out), x)
                check.hold(f"{what}, {scheme}: {op}", op in kinds, str(kinds))
                check.hold(f"{what}, {scheme}: as NumPy computes it", sqnr(want, theirs) > least, f"{sqnr(want, theirs):.1f} dB")
                check.hold(f"{what}, {scheme}: as in ONNX Runtime", sqnr(theirs, check.run_ours(out, x)) > 100)


def in_body(path, kind, rng):
    """Experts in a branch that is taken, or in a loop of two steps."""
    matrix = lambda *d: (rng.standard_normal(d) / np.sqrt(d[-1])).astype(np.float32)  # noqa: E731
    own = [numpy_helper.from_array(a, n) for n, a in (("fc1", matrix(E, I, D)), ("fc2", matrix(E, D, I)), ("router", matrix(D, E)))]
    info = lambda n, *dims, t=TensorProto.FLOAT: helper.make_tensor_value_info(n, t, dims)  # noqa: E731
    start = "x" if kind == "If" else "state"
    nodes = [helper.make_node("Identity", [start], ["tokens"]), helper.make_node("MatMul", ["tokens", "router"], ["scores"], name="route"),
             helper.make_node("MoE", ["tokens", "scores", "fc1", "", "fc2"], ["made"], domain="com.microsoft", k=2, activation_type="silu", normalize_routing_weights=1, name="moe"),
             helper.make_node("Add", ["made", "tokens"], ["next"])]
    if kind == "If":
        bodies = {"then_branch": helper.make_graph(nodes, "then", [], [info("next", LENGTH, D)], own),
                  "else_branch": helper.make_graph([helper.make_node("Identity", ["x"], ["same"])], "else", [], [info("same", LENGTH, D)])}
        outer = [helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0), helper.make_node("Greater", ["most", "zero"], ["taken"]), helper.make_node("If", ["taken"], ["y"], **bodies)]
        constants = [numpy_helper.from_array(np.float32(-1e9), "zero")]
    else:
        body = helper.make_graph([helper.make_node("Identity", ["go"], ["on"]), *nodes], "body",
                                 [info("step", t=TensorProto.INT64), info("go", t=TensorProto.BOOL), info("state", LENGTH, D)], [info("on", t=TensorProto.BOOL), info("next", LENGTH, D)], own)
        outer, constants = [helper.make_node("Loop", ["steps", "", "x"], ["y"], body=body)], [numpy_helper.from_array(np.int64(2), "steps")]
    graph = helper.make_graph(outer, "outer", [info("x", LENGTH, D)], [info("y", LENGTH, D)], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=9), path)


def check_bodies(check, rng):
    """In bodies experts have the form that they have outside, and samples round them."""
    mix = rng.standard_normal((D, D)) * np.exp(rng.standard_normal(D)) / 8
    x = [(rng.standard_normal((LENGTH, D)) @ mix).astype(np.float32) for _ in range(48)]
    np.save(check.folder / "tokens.npy", np.stack(x[8:]))
    for kind in ("If", "Loop"):
        path, outs, db = check.folder / f"{kind}.onnx", [check.folder / f"{kind}.{n}.onnx" for n in ("plain", "rounded")], []
        in_body(path, kind, rng)
        want = run_ort(str(path), x[:8])
        for out, more in zip(outs, ((), ("--data", check.folder / "tokens.npy"))):
            check.convert(path, out, "--scheme", "weight-only", "--set", "op:MatMul=float", *more)
            kinds, theirs = [n.op_type for _, n, _ in stands.walk(onnx.load(out).graph)], run_ort(str(out), x[:8])
            check.hold(f"experts in {kind} {more[:1]}: QMoE", "QMoE" in kinds and "MoE" not in kinds, str(kinds))
            check.hold(f"experts in {kind} {more[:1]}: as in ONNX Runtime", sqnr(theirs, check.run_ours(out, x[:8])) > 100)
            db.append(sqnr(want, theirs))
        check.hold(f"experts in {kind}: rounded with samples", db[1] > db[0] + 1.5 > 12, str(db))
        check.hold(f"experts in {kind}: a fifth of the bytes", outs[0].stat().st_size < 0.22 * path.stat().st_size, str(outs[0].stat().st_size))


def main():
    args = options(__doc__).parse_args()
    rng = np.random.default_rng(39)
    experts = {n: (rng.standard_normal(d) * np.exp(rng.standard_normal((d[0], 1, d[2])) / 2) / np.sqrt(d[1])).astype(np.float32)
               for n, d in (("fc1", (E, D, I)), ("fc2", (E, I, D)))}
    ids = rng.integers(0, V, (1, LENGTH))
    with Checker(args) as check:
        np.save(check.folder / "ids.npy", rng.integers(0, V, (24, LENGTH)))
        for kind in KINDS:
            model(check.folder / f"{kind}.onnx", kind, experts["fc1"], experts["fc2"], rng)
            for scheme in ("static", "dynamic", "stored", "weight-only"):
                check_one(check, kind, scheme, experts, ids)
        check_blocks(check, rng)
        check_rounded(check, rng)
        check_rounded_experts(check, rng)
        check_gated(check, rng)
        check_bodies(check, rng)
    return check.finish()


if __name__ == "__main__":
    sys.exit(main())
