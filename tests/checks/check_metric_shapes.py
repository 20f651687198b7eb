#!/usr/bin/env python3
"""Runs every metric of qeval over outputs of all usual shapes: each value must be NumPy's on the same outputs, and where a metric is not defined it must be refused.

    check_metric_shapes.py [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

The models compute little more than their inputs, so that both runtimes have the same outputs; the second one adds a constant to what the first one computes.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx")
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pylib import taskscores
from pylib.judge import Checker, options

SAMPLES, CLASSES = 24, 6
METRICS = ("top1", "top3", "top5", "f1", "precision", "recall", "agreement", "matched", "mse", "cosine", "sqnr", "maxerr", "psnr", "kl", "perplexity",
           "ap50", "map", "miou", "spearman", "pearson")


class Case:
    """A shape: nodes from input x to output y, what NumPy computes of one sample's x [1,...], and the metrics that are defined."""

    def __init__(self, name, sample, shape, defined, nodes=(), of=lambda x: x, kind=TensorProto.FLOAT, noise=0.3, single=False):
        self.name, self.sample, self.shape, self.defined, self.nodes, self.of, self.kind, self.noise = name, sample, shape, set(defined.split()), nodes, of, kind, noise
        self.single = single


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs, [output], **attributes)


def reshaped(*dims):
    return [node("Constant", [], "dims", value=numpy_helper.from_array(np.array(dims, np.int64))), node("Reshape", ["scores", "dims"], "y")]


def top_rows(x):
    """[1,k,4]: the rows of the three largest first values."""
    order = np.argsort(-x[0, :, 0], kind="stable")[:3]
    return x[:, order]


NUMBERS = "mse cosine sqnr maxerr psnr"
CLASS = "top1 top3 top5 f1 precision recall agreement kl " + NUMBERS
T, L = 5, 4
CASES = (
    Case("[N,C]", [CLASSES], ["N", CLASSES], CLASS, reshaped(-1, CLASSES)),
    Case("[N,1,C]", [CLASSES], ["N", 1, CLASSES], CLASS, reshaped(-1, 1, CLASSES), lambda x: x[:, None]),
    Case("[N,C,1,1]", [CLASSES], ["N", CLASSES, 1, 1], CLASS, reshaped(-1, CLASSES, 1, 1), lambda x: x[:, :, None, None]),
    Case("[N,1]", [1], ["N", 1], CLASS, reshaped(-1, 1), single=True),
    Case("[N]", [1], ["N"], CLASS, reshaped(-1), lambda x: x[:, 0], single=True),
    Case("[N,L,C]", [L, CLASSES], ["N", L, CLASSES], "agreement kl " + NUMBERS, reshaped(-1, L, CLASSES)),
    Case("[T,1,C]", [T, CLASSES], [T, 1, CLASSES], "agreement kl " + NUMBERS, reshaped(T, 1, CLASSES), lambda x: x[0][:, None]),
    Case("[N,C,H,W]", [3, 4, 4], ["N", 3, 4, 4], NUMBERS, reshaped(-1, 3, 4, 4)),
    Case("picture to picture", [3, 4, 4], ["N", 3, 4, 4], NUMBERS, [node("Identity", ["scores"], "y")]),
    Case("mask [N,1,H,W]", [1, 6, 6], ["N", 1, 6, 6], "matched", [node("Greater", ["scores", "half"], "y")], lambda x: x > 0.5, TensorProto.BOOL),
    Case("mask of floats", [1, 6, 6], ["N", 1, 6, 6], "matched", [node("Greater", ["scores", "half"], "m"), node("Cast", ["m"], "y", to=TensorProto.FLOAT)],
         lambda x: (x > 0.5).astype(np.float32)),
    Case("classes [N,H,W]", [3, 6, 6], ["N", 6, 6], "matched", [node("ArgMax", ["scores"], "y", axis=1, keepdims=0)], lambda x: x.argmax(1), TensorProto.INT64),
    Case("class [N]", [CLASSES], ["N"], "top1 top3 top5 f1 precision recall agreement matched", [node("ArgMax", ["scores"], "y", axis=1, keepdims=0)],
         lambda x: x.argmax(1), TensorProto.INT64, single=True),
    Case("sorted [N,k]", [CLASSES], ["N", 4], NUMBERS, [node("TopK", ["scores", "four"], "y")], lambda x: -np.sort(-x, 1)[:, :4]),
    Case("rows [N,k,4]", [9, 4], ["N", 3, 4], "matched",
         [node("Gather", ["scores", "first"], "key", axis=2), helper.make_node("TopK", ["key", "three"], ["best", "at"], axis=1),
          node("Unsqueeze", ["at", "last"], "at3"), node("Expand", ["at3", "four_wide"], "index"), node("GatherElements", ["scores", "index"], "y", axis=1)],
         top_rows, noise=0.6),
)


def save(case, path, noise):
    """scores = x + noise"""
    constant = lambda name, a: numpy_helper.from_array(np.asarray(a), name)
    nodes = [node("Add", ["x", "noise"], "scores"), *case.nodes]
    for n in nodes:
        if n.op_type == "TopK" and len(n.output) == 1:
            n.output.append("unused")
    constants = [constant("noise", noise), constant("half", np.float32(0.5)), constant("first", np.int64(0)), constant("three", np.array([3], np.int64)),
                 constant("four", np.array([4], np.int64)), constant("last", np.array([2], np.int64)), constant("four_wide", np.array([1, 1, 4], np.int64))]
    used = {i for n in nodes for i in n.input}
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *case.sample])],
                              [helper.make_tensor_value_info("y", case.kind, case.shape)], [c for c in constants if c.name in used])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def found_rows(ref, other):
    """Greedy, as output_match.h describes it, for few rows."""
    ref, other, most = ref.astype(np.float64), other.astype(np.float64), np.abs(ref).max(0).astype(np.float64)
    taken, found = set(), 0
    for i, row in enumerate(ref):
        at = next((j for j in sorted(range(len(other)), key=lambda j: (abs(j - i), j < i)) if j not in taken and np.sqrt((((other[j] - row) / most) ** 2).mean()) <= 0.1), None)
        if at is not None:
            taken.add(at)
            found += 1
    return found / len(ref)


def wanted(case, ref, other, labels):
    """{metric: value of the second model}; ref, other: [SAMPLES][1,...]"""
    a, b = (np.stack([np.asarray(o).reshape(-1) for o in outputs]) for outputs in (ref, other))
    want = {}
    if case.kind != TensorProto.FLOAT or case.name == "mask of floats":
        want["matched"] = np.mean(a == b)
        if case.name == "class [N]":
            want |= {"agreement": np.mean(a == b), "top1": np.mean(b[:, 0] == labels), "top3": np.mean(b[:, 0] == labels), "top5": np.mean(b[:, 0] == labels)}
        return want
    if case.name.startswith("rows"):
        return {"matched": np.mean([found_rows(r[0], o[0]) for r, o in zip(ref, other)])}
    p, q = a.astype(np.float64), b.astype(np.float64)
    norm = np.sqrt((p**2).sum(1) * (q**2).sum(1))
    want = {"cosine": np.mean((p * q).sum(1) / norm), "sqnr": 10 * np.log10((p**2).sum() / ((p - q) ** 2).sum()), "maxerr": np.abs(p - q).max(),
            "mse": np.mean((p - q) ** 2), "psnr": taskscores.psnr(a, b)}
    if case.name == "picture to picture":
        want["mse"] = np.mean([np.mean((o - x) ** 2) for o, x in zip(q, case.data.reshape(SAMPLES, -1).astype(np.float64))])
    if case.single:
        up, up_b = a[:, 0] > 0.5, b[:, 0] > 0.5
        want |= {"agreement": np.mean(up == up_b), "top1": np.mean(up_b == labels), "top3": 1.0, "top5": 1.0}
    elif {"agreement", "top1"} <= case.defined:
        want |= {"agreement": np.mean(a.argmax(1) == b.argmax(1)), **{f"top{k}": taskscores.top(b, labels, k) for k in (1, 3, 5)}}
    elif "agreement" in case.defined:
        steps_a, steps_b = (v.reshape(SAMPLES, -1, CLASSES) for v in (a, b))
        want |= {"agreement": np.mean(steps_a.argmax(2) == steps_b.argmax(2)), "kl": taskscores.kl(steps_a, steps_b, True)}
    return want


def hold_case(c, case, rng):
    case.data = rng.normal(size=(SAMPLES, *case.sample)).astype(np.float32)
    noise = (rng.normal(size=case.sample) * case.noise).astype(np.float32)
    classes = 2 if case.single and case.kind == TensorProto.FLOAT else CLASSES
    labels = rng.integers(0, classes, SAMPLES)
    folder = c.folder
    save(case, folder / "a.onnx", np.zeros(case.sample, np.float32))
    save(case, folder / "b.onnx", noise)
    np.save(folder / "x.npy", case.data)
    np.save(folder / "labels.npy", labels)
    ref, other = ([case.of(x[None] + n) for x in case.data] for n in (np.float32(0), noise))
    want = wanted(case, ref, other, labels)
    for metric in METRICS:
        report = folder / "r.json"
        report.unlink(missing_ok=True)
        run = subprocess.run([c.qeval, "a.onnx", "b.onnx", "--data", "x.npy", "--labels", "labels.npy", "--metric", metric, "--no-latency", "--no-layers", "-q",
                              "--json", "r.json"], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
        what = f"{metric} of {case.name}"
        if metric not in case.defined:
            c.hold(what, run.returncode == 2 and metric in run.stderr, f"is not defined, but exit {run.returncode}: {run.stderr.strip()}")
        elif run.returncode:
            c.hold(what, False, f"exit {run.returncode}: {run.stderr.strip()}")
        else:
            got = json.loads(report.read_text())["models"][1]["metrics"].get(metric)
            expected = want.get(metric)
            c.hold(what, got is not None and np.isfinite(got) and (expected is None or abs(got - expected) <= 1e-5 * max(1, abs(expected))), f"is {got}, NumPy's {expected}")


def hold_usual(c, rng):
    """Which outputs of positions have agreement without being asked: logits that were trained, not features, coordinates, or what is always the same."""
    n, length, depth = 8, 6, 10
    x = rng.normal(size=(n, length, depth)).astype(np.float32)
    trained = rng.normal(size=(depth, 12)).astype(np.float32) * 4
    kinds = {"logits": (trained, True), "logits, steps first": (trained, True), "features": (trained / 40, False), "of a norm": (trained, False), "coordinates": (trained[:, :4], False),
             "always one": (trained * 0.1, False)}
    for kind, (weights, has) in kinds.items():
        bias = np.full(weights.shape[1], 0.5, np.float32)
        if kind == "always one":
            bias = np.where(np.arange(12) == 3, 30, 0).astype(np.float32)
        other = weights + rng.normal(size=weights.shape).astype(np.float32) * weights.std() * 0.05
        for name, w in (("a", weights), ("b", other)):
            last = {"logits, steps first": [node("Transpose", ["b"], "y", perm=[1, 0, 2])], "of a norm": [node("Sigmoid", ["b"], "y")]}.get(kind, [node("Identity", ["b"], "y")])
            graph = helper.make_graph([node("MatMul", ["x", "w"], "p"), node("Add", ["p", "bias"], "b"), *last], "g",
                                      [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, length, depth])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                                      [numpy_helper.from_array(w, "w"), numpy_helper.from_array(bias, "bias")])
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), c.folder / f"{name}.onnx")
        np.save(c.folder / "x.npy", x)
        run = subprocess.run([c.qeval, "a.onnx", "b.onnx", "--data", "x.npy", "--no-latency", "--no-layers", "-q", "--json", "r.json"], cwd=c.folder, capture_output=True, text=True,
                             timeout=60, check=False)
        got = json.loads((c.folder / "r.json").read_text())["models"][1]["metrics"].get("agreement") if run.returncode == 0 else run.stderr
        want = np.mean((x @ weights + bias).argmax(2) == (x @ other + bias).argmax(2)) if has else None
        c.hold(f"agreement of {kind}", got == want if want is None or isinstance(got, str) or got is None else abs(got - want) < 1e-6, f"is {got}, NumPy's {want}")


def hold_tokens(c, rng):
    """Perplexity is about the tokens that the logits foretell: a decoder's, where there is an encoder, too."""
    v, n, length = 11, 16, 7
    table = rng.normal(size=(v, v)).astype(np.float32)
    names = {"plain": ("input_ids", None), "decoder": ("decoder_input_ids", "input_ids"), "by symbol": ("target", "source"), "unknown": (None, ("a", "b"))}
    for kind, (own, other) in names.items():
        of = own or other[0]
        more = [other] if isinstance(other, str) else list(other[1:]) if other else []
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["N", "S" if own else length]) for name in more]
        inputs.append(helper.make_tensor_value_info(of, TensorProto.INT64, ["N", "T" if own else length]))
        nodes = [node("Gather", ["table", of], "g")]
        for k, name in enumerate(more):  # reads the other ids, and adds nothing
            nodes += [node("Cast", [name], f"f{k}", to=TensorProto.FLOAT), node("ReduceSum", [f"f{k}"], f"s{k}", keepdims=0), node("Mul", [f"s{k}", "zero"], f"z{k}"),
                      node("Add", ["g" if k == 0 else f"o{k - 1}", f"z{k}"], f"o{k}")]
        nodes.append(node("Identity", [nodes[-1].output[0]], "logits"))
        graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", "T" if own else length, v])],
                                  [numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.float32(0), "zero")])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), c.folder / "t.onnx")
        ids = {name: rng.integers(0, v, (n, length)) for name in (of, *more)}
        np.savez(c.folder / "t.npz", **ids)
        run = subprocess.run([c.qeval, "t.onnx", "--data", "t.npz", "--metric", "perplexity", "--no-latency", "-q", "--json", "r.json"], cwd=c.folder, capture_output=True,
                             text=True, timeout=60, check=False)
        if not own:
            c.hold(f"perplexity, {kind} inputs", run.returncode == 2 and "'a'" in run.stderr and "'b'" in run.stderr, f"exit {run.returncode}: {run.stderr.strip()}")
            continue
        logits = table[ids[of]].astype(np.float64)
        p = taskscores.softmax(logits)[:, :-1]
        want = np.exp(-np.log(np.take_along_axis(p, ids[of][:, 1:, None], 2)).mean())
        got = json.loads((c.folder / "r.json").read_text())["models"][0]["metrics"]["perplexity"] if run.returncode == 0 else None
        c.hold(f"perplexity, {kind} inputs", got is not None and abs(got - want) <= 1e-5 * want, f"is {got}, NumPy's {want}; exit {run.returncode}: {run.stderr.strip()}")


def main():
    args = options(__doc__).parse_args()
    if not args.qeval:
        print("there is no qeval")
        return 77
    with Checker(args) as c:
        for k, case in enumerate(CASES):
            hold_case(c, case, np.random.default_rng(k))
        hold_usual(c, np.random.default_rng(98))
        hold_tokens(c, np.random.default_rng(99))
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
