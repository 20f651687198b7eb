#!/usr/bin/env python3
"""Runs and converts models of tables as exporters of scikit-learn write them: ZipMap, strings, the operators of ai.onnx.ml; samples from .npz, CSV and JSON lines.

    check_tabular.py [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

What qeval computes is held against ONNX Runtime's outputs: equal labels, scores within 1e-5. The same samples in each kind of file give the same bytes. Converted
models keep ZipMap and run in ONNX Runtime, and what qeval says of both is NumPy's of ONNX Runtime's outputs. Broken models and samples end with a message.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import csv
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pylib import peer, tool
from pylib.judge import Checker, options, sqnr

ROWS = 120
CITIES = ["Bern", "Basel", "Zürich", "La Chaux-de-Fonds"]
NAMES = ["no", "yes", "maybe"]
ANSWERS = {"ints": dict(classlabels_int64s=[3, 5, 9]), "names": dict(classlabels_strings=NAMES)}


class Table:
    """A model being made, its nodes named, with random weights."""

    def __init__(self, seed):
        self.rng, self.nodes, self.weights, self.inputs, self.outputs = np.random.default_rng(seed), [], [], [], []

    def input(self, name, kind, *dims):
        self.inputs.append(helper.make_tensor_value_info(name, kind, [None, *dims]))
        return name

    def weight(self, array):
        self.weights.append(numpy_helper.from_array(array, f"c{len(self.weights)}"))
        return self.weights[-1].name

    def op(self, op, *ins, outs=None, ml=True, **attributes):
        outs = outs or [f"v{len(self.nodes)}"]
        self.nodes.append(helper.make_node(op, ins, outs, f"{op}_{len(self.nodes)}", domain="ai.onnx.ml" if ml else "", **attributes))
        return outs[0]

    def layers(self, x, *sizes):
        for k, (a, b) in enumerate(zip(sizes, sizes[1:])):
            w = (self.rng.normal(size=(a, b)) / np.sqrt(a)).astype(np.float32)
            x = self.op("Add", self.op("MatMul", x, self.weight(w), ml=False), self.weight((self.rng.normal(size=b) * 0.2).astype(np.float32)), ml=False)
            x = self.op("Relu", x, ml=False) if k < len(sizes) - 2 else x
        return x

    def output(self, name, kind, rank):
        self.outputs.append(helper.make_tensor_value_info(name, kind, [None] * rank))

    def zip(self, scores, answers):
        self.op("ZipMap", scores, outs=["output_probability"], **answers)
        key = TensorProto.STRING if "classlabels_strings" in answers else TensorProto.INT64
        self.outputs.append(helper.make_value_info("output_probability", helper.make_sequence_type_proto(
            helper.make_map_type_proto(key, helper.make_tensor_type_proto(TensorProto.FLOAT, None)))))

    def save(self, path):
        graph = helper.make_graph(self.nodes, "g", self.inputs, self.outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8)
        onnx.checker.check_model(model)
        onnx.save(model, path)
        return path


def columns(rng):
    """Rows of a table with numbers, some missing, texts and whole numbers, each [ROWS, 1]."""
    age, pay = rng.normal(40, 12, (ROWS, 1)).astype(np.float32), rng.normal(3000, 900, (ROWS, 1)).astype(np.float32)
    age[rng.random(ROWS) < 0.1] = np.nan
    return {"age": age, "pay": pay, "city": rng.choice([*CITIES, "Chur", ""], (ROWS, 1)), "kids": rng.integers(0, 5, (ROWS, 1))}


def mixed(t, answers):
    """A column transformer in front of a network, as of a DataFrame: one input a column."""
    numbers = t.op("Concat", t.input("age", TensorProto.FLOAT, 1), t.input("pay", TensorProto.FLOAT, 1), ml=False, axis=1)
    filled = t.op("Imputer", numbers, imputed_value_floats=[40.0, 3000.0], replaced_value_float=float("nan"))
    scaled = t.op("Scaler", filled, offset=[40.0, 3000.0], scale=[0.08, 0.001])
    city = t.op("OneHotEncoder", t.input("city", TensorProto.STRING, 1), cats_strings=CITIES, zeros=1)
    kids = t.op("OneHotEncoder", t.input("kids", TensorProto.INT64, 1), cats_int64s=[0, 1, 2, 3], zeros=1)
    flat = [t.op("Reshape", x, t.weight(np.array([-1, 4], np.int64)), ml=False) for x in (city, kids)]
    x = t.layers(t.op("Concat", scaled, *flat, ml=False, axis=1), 10, 32, 32, 3)
    scores = t.op("Softmax", x, ml=False, axis=1)
    best = t.op("ArgMax", scores, ml=False, axis=1)
    row = t.op("ArrayFeatureExtractor", t.weight(np.array([0, 1, 2], np.int64)), best)
    label = t.op("Reshape", row, t.weight(np.array([-1], np.int64)), ml=False)
    values = dict(values_strings=NAMES) if "classlabels_strings" in answers else dict(values_int64s=answers["classlabels_int64s"])
    t.op("LabelEncoder", label, outs=["label"], keys_int64s=[0, 1, 2], **values)
    t.output("label", TensorProto.STRING if "classlabels_strings" in answers else TensorProto.INT64, 1)
    t.zip(scores, answers)


def linear(t, kind, **how):
    """Features side by side, and a linear model behind a layer."""
    x = t.op("FeatureVectorizer", t.input("a", TensorProto.FLOAT, 4), t.input("b", TensorProto.FLOAT, 3), inputdimensions=[4, 3])
    x = t.op("Relu", t.layers(t.op("Normalizer", x, norm="L2"), 7, 16), ml=False)
    n = how.pop("products", 3)
    numbers = dict(coefficients=t.rng.normal(size=16 * n).astype(np.float32).tolist(), intercepts=t.rng.normal(size=n).astype(np.float32).tolist())
    if kind == "regressor":
        t.op("LinearRegressor", x, outs=["y"], targets=n, **numbers, **how)
        t.output("y", TensorProto.FLOAT, 2)
    else:
        t.op("LinearClassifier", x, outs=["label", "scores"], **numbers, **how)
        t.output("label", TensorProto.STRING if "classlabels_strings" in how else TensorProto.INT64, 1)
        t.output("scores", TensorProto.FLOAT, 2)


def grown(rng, trees, depth, results):
    """Nodes of random trees, and the weights of their leaves: (attributes, [(tree, node, result, weight)])."""
    nodes, leaves = [], []

    def grow(tree, level):
        at = len([n for n in nodes if n[0] == tree])
        leaf = level == depth or (level and rng.random() < 0.2)
        nodes.append([tree, at, int(rng.integers(0, 4)), float(np.float32(rng.normal())), "LEAF" if leaf else ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE"][tree % 4],
                      0, 0, int(rng.integers(0, 2))])
        mine = len(nodes) - 1
        if leaf:
            leaves.extend((tree, at, r, float(np.float32(w))) for r, w in zip(range(results), rng.dirichlet(np.ones(results))))
        else:
            nodes[mine][5], nodes[mine][6] = grow(tree, level + 1), grow(tree, level + 1)
        return at

    for tree in range(trees):
        grow(tree, 0)
    keys = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true")
    return {f"nodes_{k}": [n[i] for n in nodes] for i, k in enumerate(keys)}, leaves


def forest(t, kind, results, **how):
    """Random trees; `binary`: the weights of class 0 alone tell two classes apart."""
    binary, shift = how.pop("binary", False), how.pop("shift", 0.0)
    attributes, leaves = grown(t.rng, 7, 4, 1 if binary else results)
    prefix = "target" if kind == "regressor" else "class"
    named = {f"{prefix}_{k}": [leaf[i] + (shift if i == 3 else 0) for leaf in leaves] for i, k in enumerate(("treeids", "nodeids", "ids", "weights"))}
    if binary:
        named["class_weights"] = [float(np.float32(w)) for w in t.rng.normal(size=len(leaves)) * 0.1 + shift]
    x = t.input("X", TensorProto.FLOAT, 4)
    if kind == "regressor":
        t.op("TreeEnsembleRegressor", x, outs=["y"], n_targets=results, **attributes, **named, **how)
        t.output("y", TensorProto.FLOAT, 2)
    else:
        t.op("TreeEnsembleClassifier", x, outs=["label", "scores"], **attributes, **named, **how)
        t.output("label", TensorProto.STRING if "classlabels_strings" in how else TensorProto.INT64, 1)
        t.zip("scores", {"classlabels_" + ("strings" if "classlabels_strings" in how else "int64s"): next(v for k, v in how.items() if k.startswith("classlabels"))})


def ort(path, arrays):
    """Outputs of all rows by name; a ZipMap's as the table of its values, in the order of its labels (ONNX Runtime sorts texts)."""
    session = peer.session(path)
    zips = {n.output[0]: [x.decode() if isinstance(x, bytes) else x for a in n.attribute for x in helper.get_attribute_value(a)] for n in onnx.load(path).graph.node if n.op_type == "ZipMap"}
    got = dict(zip([o.name for o in session.get_outputs()], session.run(None, {k: v.astype(object) if v.dtype.kind == "U" else v for k, v in arrays.items()})))
    return {k: np.array([[row[label] for label in zips[k]] for row in v], np.float32) if isinstance(v, list) else v for k, v in got.items()}


def unequal(want, got):
    """What differs, a sentence each."""
    for name, w in want.items():
        g = got[name].reshape(w.shape)
        if w.dtype.kind == "f":
            worst = np.abs(w - g).max()
            if not worst <= 1e-5:
                yield f"'{name}' is {worst:.1e} off"
        elif not (w.astype(str) == g.astype(str)).all():
            yield f"'{name}': {(w.astype(str) != g.astype(str)).sum()} labels differ"


def check_computed(c, name, path, arrays, spec=None):
    data = spec or c.folder / f"{name}.npz"
    if not spec:
        np.savez(data, **arrays)
    bad = list(unequal(ort(path, arrays), tool.run_qeval(c.qeval, path, data, c.folder / "out.npz")))
    c.hold(f"{name}: outputs are ONNX Runtime's", not bad, "; ".join(bad))
    return data


def check_converted(c, name, path, data, arrays):
    out = c.folder / f"{name}.int8.onnx"
    report = c.convert(path, out, "--data", data)
    model = onnx.load(out)
    onnx.checker.check_model(model)
    zips = [n.op_type for n in onnx.load(path).graph.node].count("ZipMap")
    c.hold(f"{name}: ZipMap is kept", [n.op_type for n in model.graph.node].count("ZipMap") == zips)
    c.hold(f"{name}: layers are int8", any(n.op_type in ("QuantizeLinear", "DynamicQuantizeLinear") for n in model.graph.node), report["warnings"])
    want, got = ort(path, arrays), ort(out, arrays)
    c.hold(f"{name}: accuracy", sqnr({k: v for k, v in want.items() if v.dtype.kind == "f"}, got) > 25)
    tool.run([c.qeval, path, out, "--data", data, "--json", c.folder / "eval.json", "-q"])
    said = json.loads((c.folder / "eval.json").read_text())["models"][1]["metrics"]["agreement"]
    labels = next(v for v in want.values() if v.dtype.kind != "f"), next(v for v in got.values() if v.dtype.kind != "f")
    share = float((labels[0] == labels[1]).mean())
    c.hold(f"{name}: agreement", abs(said["value"] if isinstance(said, dict) else said) - share < 0.02, f"{said}, of ONNX Runtime's outputs {share}")


RUNNER = f"{sys.executable} {Path(__file__).resolve().parents[2] / 'share/runners/onnxruntime_runner.py'}"


def check_in_runner(c, name, path, data, arrays, quant=None):
    """Texts go to a command and come from it, and maps as the table of their scores, in the order that the command has them in."""
    quant, outs = quant or c.folder / f"{name}.int8.onnx", {}
    for model in (path, quant):
        tool.run([c.qeval, model, "--data", data, "--runner", RUNNER, "--outputs", c.folder / "out.npz", "-q"])
        outs[model] = dict(np.load(c.folder / "out.npz"))
        session = peer.session(str(model))
        feeds = {k: v.astype(object) if v.dtype.kind == "U" else v for k, v in arrays.items()}
        rows = [session.run(None, {k: v[i:i + 1] for k, v in feeds.items()}) for i in range(ROWS)]  # one by one: dynamic scales are of a batch
        want = {o.name: np.concatenate([np.array([list(m.values()) for m in r[k]], np.float32) if isinstance(r[k], list) else r[k] for r in rows])
                for k, o in enumerate(session.get_outputs())}
        bad = list(unequal(want, outs[model]))
        c.hold(f"{name}: a runner's outputs are ONNX Runtime's", not bad and want.keys() == outs[model].keys(), "; ".join(bad))
    tool.run([c.qeval, path, quant, "--data", data, "--runner", RUNNER, "--json", c.folder / "eval.json", "-q", "--no-latency"])
    said = json.loads((c.folder / "eval.json").read_text())["models"][1]["metrics"].get("agreement")
    texts = [next((v for v in outs[m].values() if v.dtype.kind == "U"), None) for m in (path, quant)]
    if texts[0] is not None:
        share = float((texts[0] == texts[1]).mean())
        c.hold(f"{name}: agreement in a runner", abs((said["value"] if isinstance(said, dict) else said) - share) < 1e-6, f"{said}, of the outputs {share}")


def support_vectors(rng, kind, classes, chances=False, **more):
    """Attributes of a classifier of four features, or (classes 0) of a regressor."""
    per = [int(n) for n in rng.integers(1, 4, classes)] if classes else [6]
    count, pairs = sum(per), max(classes * (classes - 1) // 2, 1)
    drawn = lambda n: rng.normal(size=n).astype(np.float32).tolist()  # noqa: E731
    made = dict(kernel_type=kind, kernel_params=[0.1, 0.5, 3.0], support_vectors=drawn(4 * count), coefficients=drawn(max(classes - 1, 1) * count),
                rho=drawn(pairs), post_transform="NONE", **({"vectors_per_class": per} if classes else {"n_supports": count}))
    if chances:
        made.update(prob_a=(-np.abs(rng.normal(size=pairs))).tolist(), prob_b=drawn(pairs))
    return {**made, **more}


def svm(classes, layers=(), **attributes):
    t = Table(4)
    y = t.input("X", TensorProto.FLOAT, 4)
    if layers:
        y = t.layers(y, *layers)
    if classes:
        t.op("SVMClassifier", y, outs=["label", "p"], classlabels_strings=[f"class {i}" for i in range(classes)], **attributes)
        t.output("label", TensorProto.STRING, 1)
        t.output("p", TensorProto.FLOAT, 2)
    else:
        t.op("SVMRegressor", y, outs=["y"], **attributes)
        t.output("y", TensorProto.FLOAT, 2)
    return t


def check_svm(c):
    """Support vectors: every kernel, votes of pairs, probabilities; kept by a conversion, and judged here and in a runner."""
    rng, four = np.random.default_rng(8), {"X": np.random.default_rng(9).normal(size=(ROWS, 4)).astype(np.float32)}
    for kind in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        for name, classes, more in (("regressor", 0, {}), ("one class", 0, {"one_class": 1}), ("two", 2, {}), ("two, by chance", 2, {"chances": True}),
                                    ("two, sigmoid", 2, {"post_transform": "LOGISTIC"}), ("five", 5, {}), ("five, by chance", 5, {"chances": True, "post_transform": "SOFTMAX"})):
            made = svm(classes, **support_vectors(rng, kind, classes, **more))
            check_computed(c, f"svm {kind}: {name}", made.save(c.folder / "svm.onnx"), four)
    for name, classes in (("regressor", 0), ("classifier", 2)):
        path, data, out = c.folder / f"svm-{name}.onnx", c.folder / "svm.npy", c.folder / "svm.int8.onnx"
        svm(classes, (4, 16, 4), **support_vectors(rng, "RBF", classes, chances=classes > 0)).save(path)
        np.save(data, four["X"])
        c.convert(path, out, "--scheme", "dynamic")
        ops = [[n.op_type for n in onnx.load(p).graph.node] for p in (path, out)]
        c.hold(f"svm {name}: it is kept", all(sum("SVM" in o for o in x) == 1 for x in ops) and "MatMulInteger" in ops[1], str(ops[1]))
        check_in_runner(c, f"svm {name}", path, data, four, out)
    path = svm(2, **support_vectors(rng, "RBF", 2, post_transform="SOFTMAX")).save(c.folder / "svm.onnx")
    done = subprocess.run([c.qeval, path, "--data", c.folder / "svm.npy"], capture_output=True, text=True)
    c.hold("svm: what cannot be run", done.returncode == 5 and "(SVMClassifier" in done.stderr and "runtimes give other scores" in done.stderr, done.stderr)


def write_rows(c, arrays):
    """The same samples as .npz, deflated .npz of bytes, CSV and JSON lines."""
    specs = [c.folder / f"rows{end}" for end in (".npz", ".z.npz", ".csv", ".jsonl")]
    np.savez(specs[0], **arrays)
    np.savez_compressed(specs[1], **{k: np.char.encode(v, "utf-8") if v.dtype.kind == "U" else v for k, v in arrays.items()})
    rows = [{k: v[i, 0] for k, v in arrays.items()} for i in range(ROWS)]
    with open(specs[2], "w", newline="") as f:
        writer = csv.writer(f)
        writer.writerow(sorted(arrays))
        writer.writerows([["" if isinstance(r[k], np.float32) and r[k] != r[k] else r[k] for k in sorted(arrays)] for r in rows])
    specs[3].write_text("".join(json.dumps({k: None if v != v else v.item() for k, v in r.items()}) + "\n" for r in rows))
    return specs


def check_rows(c, path, arrays):
    got = []
    for spec in write_rows(c, arrays):
        check_computed(c, f"samples of {spec.name}", path, arrays, spec)
        c.convert(path, c.folder / "rows.onnx", "--data", spec)
        got.append(numpy_helper.to_array(next(i for i in onnx.load(c.folder / "rows.onnx").graph.initializer if i.data_type == TensorProto.INT8)).tobytes())
    c.hold("samples in each kind of file convert alike", len(set(got)) == 1)


def check_wide(c):
    """A CSV whose columns are the features of one input."""
    t = Table(5)
    t.layers(t.input("X", TensorProto.FLOAT, 6), 6, 16, 2)
    t.nodes[-1].output[0] = "y"
    t.output("y", TensorProto.FLOAT, 2)
    path, x = t.save(c.folder / "wide.onnx"), t.rng.normal(size=(ROWS, 6)).astype(np.float32)
    for label in (0, 6):
        lines = [[repr(float(v)) for v in row] for row in x]
        for k, line in enumerate([list("abcdef"), *lines]):
            line.insert(label, "label" if k == 0 else "1")
            lines[k - 1:k] = [line] if k else []
        (c.folder / "wide.csv").write_text("\n".join(",".join(line) for line in [[*list("abcdef")[:label], "label", *list("abcdef")[label:]], *lines]) + "\n")
        check_computed(c, f"columns of a CSV, label in {label}", path, {"X": x}, c.folder / "wide.csv")


def refused(c, what, path, spec, words, codes=(4, 5, 6)):
    run = subprocess.run([c.qeval, path, "--data", spec, "--outputs", c.folder / "none.npz"], capture_output=True, text=True)
    c.hold(f"{what} is refused", run.returncode in codes and words in run.stderr, f"exit {run.returncode}: {run.stderr[-300:]}")


def check_broken(c, path, arrays):
    bad = arrays | {"city": np.full((ROWS, 1), "x", "<U1")}
    np.savez(c.folder / "bad.npz", **bad)
    raw = (c.folder / "bad.npz").read_bytes()
    (c.folder / "bad.npz").write_bytes(raw.replace(b"x\0\0\0" * ROWS, b"\0\xd8\0\0" * ROWS))  # half of a pair
    refused(c, "a text of no characters", path, c.folder / "bad.npz", "no character")
    np.savez(c.folder / "swapped.npz", **arrays | {"city": arrays["pay"]})
    refused(c, "numbers for texts", path, c.folder / "swapped.npz", "the model's input is string")
    np.savez(c.folder / "swapped.npz", **arrays | {"pay": arrays["city"]})
    refused(c, "texts for numbers", path, c.folder / "swapped.npz", "values are string")
    np.savez(c.folder / "objects.npz", **arrays | {"city": arrays["city"].astype(object)})
    refused(c, "an array of objects", path, c.folder / "objects.npz", "astype(str)")
    for what, line, words in (("no city", {"age": 1, "pay": 2, "kids": 0}, "nothing for input 'city'"), ("a list too long", {"age": [[1], [2, 3]], "pay": 1, "city": "", "kids": 0}, "differ in length"),
                              ("a huge list", {"age": [[[0] * 900] + [0]] * 900, "pay": 1, "city": "", "kids": 0}, "differ in length"),
                              ("half a child", {"age": 1, "pay": 2, "city": "a", "kids": 0.5}, "no whole number"), ("a number for a text", {"age": 1, "pay": 2, "city": 7, "kids": 0}, "no text")):
        (c.folder / "bad.jsonl").write_text(json.dumps(line) + "\n")
        refused(c, f"JSON with {what}", path, c.folder / "bad.jsonl", words)
    for what, text, words in (("a word for a number", "age,pay,city,kids\n1,2,a,0\nold,2,a,0\n", "no number"), ("half a child", "age,pay,city,kids\n1,2,a,0.5\n", "no whole number")):
        (c.folder / "bad.csv").write_text(text)
        refused(c, f"a CSV with {what}", path, c.folder / "bad.csv", words)


def broken_nodes(c):
    """Attributes that contradict each other, in models that no checker looks at."""
    tree = dict(nodes_treeids=[0] * 3, nodes_nodeids=[0, 1, 2], nodes_featureids=[0] * 3, nodes_values=[0.0] * 3, nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
                nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0], target_treeids=[0], target_nodeids=[1], target_ids=[0], target_weights=[1.0], n_targets=1)
    yield "a tree that leads in a circle", "TreeEnsembleRegressor", tree | dict(nodes_modes=["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"], nodes_truenodeids=[1, 1, 0], nodes_falsenodeids=[2, 2, 0]), "circle"
    yield "a tree with two roots", "TreeEnsembleRegressor", tree | dict(nodes_truenodeids=[2, 0, 0]), "roots"
    yield "a child that is not there", "TreeEnsembleRegressor", tree | dict(nodes_truenodeids=[9, 0, 0]), "not there"
    yield "a feature too many", "TreeEnsembleRegressor", tree | dict(nodes_featureids=[4, 0, 0]), "feature 4 of 4"
    yield "a node twice", "TreeEnsembleRegressor", tree | dict(nodes_nodeids=[0, 1, 1]), "twice"
    yield "a target too many", "TreeEnsembleRegressor", tree | dict(target_ids=[1]), "result 1 of 1"
    yield "a mode of no test", "TreeEnsembleRegressor", tree | dict(nodes_modes=["BRANCH_XOR", "LEAF", "LEAF"]), "BRANCH_XOR"
    yield "lists of two lengths", "TreeEnsembleRegressor", tree | dict(nodes_values=[0.0] * 2), "nodes_values"
    yield "coefficients too few", "LinearRegressor", dict(coefficients=[1.0] * 3, targets=1), "coefficients"
    yield "targets too many", "LinearRegressor", dict(coefficients=[1.0] * 4, targets=2**40), "coefficients"
    yield "PROBIT", "LinearRegressor", dict(coefficients=[1.0] * 4, targets=1, post_transform="PROBIT"), "PROBIT"
    yield "two kinds of categories", "OneHotEncoder", dict(cats_strings=["a"], cats_int64s=[1]), "each of the lists"
    yield "categories of texts for numbers", "OneHotEncoder", dict(cats_strings=["a"]), "categories of string"
    yield "an unknown category", "OneHotEncoder", dict(cats_int64s=[77], zeros=0), "none of the 1 categories"
    yield "sizes below 0", "FeatureVectorizer", dict(inputdimensions=[-1]), "inputdimensions"
    yield "labels too few", "ZipMap", dict(classlabels_int64s=[1, 2]), "2 class labels for 4 scores"


def check_broken_nodes(c):
    np.save(c.folder / "four.npy", np.zeros((3, 4), np.float32))
    for what, op, attributes, words in broken_nodes(c):
        node = helper.make_node(op, ["X"], ["y"], domain="ai.onnx.ml", **attributes)
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, 4])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
        path = c.folder / "broken.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8), path)
        refused(c, what, path, c.folder / "four.npy", words)


def main():
    args = options(__doc__).parse_args()
    with Checker(args) as c:
        rng = np.random.default_rng(1)
        table = columns(rng)
        for kind, answers in ANSWERS.items():
            t = Table(len(kind))
            mixed(t, answers)
            path = t.save(c.folder / f"mixed-{kind}.onnx")
            data = check_computed(c, f"mixed, {kind}", path, table)
            check_converted(c, f"mixed-{kind}", path, data, table)
            check_in_runner(c, f"mixed-{kind}", path, data, table)
        check_svm(c)
        check_rows(c, path, table)
        check_broken(c, path, table)
        check_wide(c)
        check_broken_nodes(c)
        sides = {"a": rng.normal(size=(ROWS, 4)).astype(np.float32), "b": rng.normal(size=(ROWS, 3)).astype(np.float32)}
        cases = [(f"linear {post}, {n} products", linear, sides, ("classifier",), dict(products=n, post_transform=post, **labels))
                 for post in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO") for n, labels in ((3, dict(classlabels_strings=NAMES)), (1, dict(classlabels_ints=[4, 7])))]
        cases += [(f"linear regressor {post}", linear, sides, ("regressor",), dict(products=2, post_transform=post)) for post in ("NONE", "SOFTMAX")]
        four = {"X": rng.normal(size=(ROWS, 4)).astype(np.float32)}
        holes = {"X": np.where(rng.random((ROWS, 4)) < 0.1, np.nan, four["X"]).astype(np.float32)}
        for post in ("NONE", "SOFTMAX", "LOGISTIC"):
            cases.append((f"forest {post}, 3 classes", forest, holes, ("classifier", 3), dict(classlabels_strings=NAMES, post_transform=post)))
            for shift in (0.0, 0.5):
                cases.append((f"forest {post}, two classes, weights around {shift}", forest, four, ("classifier", 2),
                              dict(classlabels_int64s=[0, 1], binary=True, shift=shift, post_transform=post)))
        cases.append(("forest with base values", forest, four, ("classifier", 3), dict(classlabels_int64s=[2, 1, 0], base_values=[0.5, 0.25, -1.0])))
        cases += [(f"forest {how}", forest, four, ("regressor", 2), dict(aggregate_function=how, base_values=[0.5, -0.25])) for how in ("SUM", "AVERAGE", "MIN", "MAX")]
        for k, (name, make, arrays, where, how) in enumerate(cases):
            t = Table(k)
            make(t, *where, **how)
            path = t.save(c.folder / "model.onnx")
            data = check_computed(c, name, path, arrays)
            if make is linear and k in (0, 1, 8):
                check_converted(c, f"linear{k}", path, data, arrays) if "classifier" in where else None
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
