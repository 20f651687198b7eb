#!/usr/bin/env python3
"""Compares the layers that qconvert announces to run on integers in our runtime with those that do.

    check_integers.py [--zoo FOLDER] [--shared FOLDER] [--only GLOB]... [--all] [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Every model is converted for the target octet in every third of the schemes and forms in turn; --all: in each. Layer by layer three must agree: the report of the conversion,
`qconvert lint` of what was written, and the steps of the runtime that `qeval --profile` lists; and so must the numbers of layers with
weights that both count. The models: those of testdata/, small networks, single layers with unusual attributes, with --zoo those that
make_zoo.py made there, with --shared the trained ones.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
sys.path.append(str(Path(__file__).resolve().parents[1] / "generate"))  # for make_zoo
import numpy as np
import onnx

from pylib import every_model, singles, tool
from pylib.digest_models import Model

WAYS = {
    "qdq": (), "qoperator": ("--format", "qoperator"),
    "dynamic": ("--scheme", "dynamic"),
    "blocks": ("--scheme", "weight-only"), "blocks, QDQ": ("--scheme", "weight-only", "--format", "qdq", "--bits", "8"),
}
STATIC = ("qdq", "qoperator")
UNFIT = {
    "models/custom_op": "the runtime does not know its operator", "models/scan_op8_lengths": "qconvert refuses its opset",
    "models/sparse_initializer": "it has no values to run on", "onnx/sparse": "it has no values to run on",
    "models/ml_labels": "its samples are NaN", "models/ml_trees": "its samples are NaN",
    "models/ml_prepared": "its samples are NaN",
}
# Steps that convert between reals and codes, or between layouts, are no layers.
PRODUCTS = {"Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU", "RNN"}
BETWEEN = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "Reorder", "Cast", ""}


def named(path, out):
    """A copy in which every node has a name of its own, so that layers can be told apart; bodies of If, Loop and Scan too."""
    model, taken = onnx.load(path, load_external_data=True), set()

    def visit(graph):
        for n in graph.node:
            first = next((o for o in n.output if o), n.op_type)
            n.name = n.name or f"{first}.node"
            while n.name in taken:
                n.name += "'"
            taken.add(n.name)
            for a in n.attribute:
                visit(a.g)
                for g in a.graphs:
                    visit(g)
    visit(model.graph)
    onnx.save(model, out)
    return out


def own_name(name):
    """Without the path to a body, as steps have it, and without what the dynamic form adds."""
    return name.rpartition("_branch/")[2].rpartition("/body/")[2].removesuffix("_integer_MatMulInteger")


def layers(report, key):
    """{name: (integer, op, why)}"""
    return {own_name(x["name"]): (x["integer"], x["op"], x["why"]) for x in report[key]}


def steps(profile):
    """{name: schemes of the steps of that name}, and the operator of each."""
    found = {}
    for s in profile:
        if s["op"] not in BETWEEN:
            found.setdefault(own_name(s["name"]), []).append((s["scheme"], s["op"]))
    return found


def differences(said, linted, ran):
    """Sentences on the layers of which not all say the same."""
    for name, (integer, op, why) in said.items():
        schemes = [s for s, _ in ran.get(name, ())]
        if not schemes and op not in PRODUCTS:
            continue  # a clamp that another step does, a change of layout that a plan has no use for
        if integer and "int8" not in schemes:
            yield f"{name} ({op}): announced on integers, runs {schemes or 'nowhere'}"
        if not integer and "int8" in schemes:
            yield f"{name} ({op}): announced float ({why}), runs {schemes}"
        if name in linted and linted[name][0] != integer:
            yield f"{name} ({op}): announced {'integer' if integer else 'float'}, lint says {linted[name][0]} ({linted[name][2]})"
        if name not in linted and integer:
            yield f"{name} ({op}): announced on integers, lint does not know it"
    for name, (integer, op, why) in linted.items():
        schemes = [s for s, _ in ran.get(name, ())]
        if name not in said and integer != ("int8" in schemes):
            yield f"{name} ({op}): lint says {'integer' if integer else 'float'} ({why}), runs {schemes or 'nowhere'}"
    for name, found in ran.items():
        if name and name not in said and name not in linted and any(s == "int8" for s, _ in found):
            yield f"{name} ({found[0][1]}): runs on integers, and nobody announced it"


def check(c, model, way):
    out, data = c.folder / "out.onnx", ("--data", model.data, *model.options)
    what = f"{model.name}, {way}"
    lint, ran = c.folder / "lint.json", c.folder / "ran.json"
    report = c.convert(model.path, out, "--target", "octet", "--no-recover", *WAYS[way], *(data if way in STATIC else ()))
    tool.run([c.qconvert, "lint", out, "--target", "octet", "--scheme", "float", "-q", "--json", lint])
    tool.run([c.qeval, out, *data, "--profile", "--no-latency", "--no-layers", "--threads", "1", "-q", "--json", ran])
    run = json.loads(ran.read_text())["models"][0]
    found = list(differences(layers(report, "layers"), layers(json.loads(lint.read_text()), "nodes"), steps(run.get("profile", []))))
    c.hold(f"{what}: layers", not found, "; ".join(found[:6]))
    counts = (report["int8_layers"], report["layers_with_weights"]), (run["integer_layers"], run["weighted_layers"])
    c.hold(f"{what}: counts", counts[0] == counts[1], f"qconvert {counts[0]}, qeval {counts[1]}")


def single_layers(folder):
    for name, make in singles.LAYERS.items():
        path, data = folder / f"{name.replace(' ', '-').replace('/', '-')}.onnx", folder / "single.npz"
        samples = make(path)
        np.savez(data, **{k: np.stack([s[k] for s in samples]) for k in samples[0]})
        yield Model(f"single/{name}", path, data)


def check_named(c, m, way):
    """Of a model whose nodes have names."""
    try:
        if m.name not in UNFIT:
            check(c, Model(m.name, named(m.path, c.folder / "in.onnx"), m.data, m.options), way)
    except tool.ToolError as error:
        c.hold(f"{m.name}, {way}", False, str(error))


if __name__ == "__main__":
    sys.exit(every_model.run(__doc__, single_layers, WAYS, check_named, every=5))
