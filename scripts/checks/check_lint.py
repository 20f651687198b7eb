#!/usr/bin/env python3
"""Compares what qconvert lint says of each node of a file, integer or float, with the graph that ONNX Runtime's optimizer leaves, and with
OpenVINO's execution graph where its package is installed.

    check_lint.py [--all] [--zoo FOLDER] [--shared FOLDER] [--only GLOB]... [--kind KIND]... [--runtime onnxruntime|openvino] [--qconvert PROGRAM] [-v]

Each model is taken as it is, as qconvert writes it (QDQ, operators on integers, dynamic), as ONNX Runtime's quantizer does (QDQ, operators on
integers, dynamic), and as NNCF does where that is installed; for OpenVINO all but the dynamic ones, and as qconvert writes it for both runtimes' targets.
Conv, Gemm, MatMul, LSTM, pooling and Add are compared, in nested graphs too where the runtime's graph shows these. Quick: the
bundled model and small networks; --all: all that tests hold and what make_zoo.py makes; --shared: the trained models too. It also holds
that lint names models that a runtime does not load, or computes wrongly, for a reason that is known (lib/targets/traps.inc).

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when at least 99 % are right, 1 when not, 77 without the packages.
"""
import argparse
import contextlib
import io
import json
import sys
import tempfile
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
sys.path.append(str(Path(__file__).resolve().parents[1] / "generate"))  # for make_zoo
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pylib import digest_models, peer, stands, tool
from pylib.rows import Rows

LEAST = 0.99
OURS = {"ours, QDQ": (), "ours, operators": ("--format", "qoperator"), "ours, dynamic": ("--scheme", "dynamic")}
THEIRS = {"ORT, QDQ": "qdq", "ORT, operators": "qoperator", "ORT, dynamic": "dynamic"}
KINDS = ("float", *OURS, *THEIRS, "NNCF")
FOR_OPENVINO = {"ours, openvino": ("--target", "openvino")}
OURS_IN = OURS | FOR_OPENVINO
KINDS_IN_OPENVINO = ("float", *FOR_OPENVINO, "ours, QDQ", "ours, operators", "ORT, QDQ", "ORT, operators", "NNCF")


def nncf_model(model, out):
    import nncf
    nncf.set_log_level(50)
    rows = Rows(model)
    made = peer.modern(model.path)
    with contextlib.redirect_stdout(io.StringIO()):  # progress
        onnx.save(nncf.quantize(made, nncf.Dataset([rows.get(i) for i in range(min(4, rows.count))]), subset_size=4), out)


def make(args, model, kind, out):
    """Writes the model as `kind` says."""
    if kind == "float":
        return model.path
    if kind in OURS_IN:
        data = ("--data", model.data, *model.options) if kind != "ours, dynamic" else ()
        tool.run([args.qconvert, model.path, "-o", out, "-q", "--no-recover", *OURS_IN[kind], *data])
    elif kind in THEIRS:
        peer.quantize(model.path, out, None if kind == "ORT, dynamic" else Rows(model), 4, "dynamic" if kind == "ORT, dynamic" else "minmax", whole=True,
                      operators=kind == "ORT, operators")
    else:
        nncf_model(model, out)
    return out


def lint(args, path, folder, target="onnxruntime-x86"):
    report = folder / "lint.json"
    tool.run([args.qconvert, "lint", path, "--target", target, "-q", "--json", report])
    return json.loads(report.read_text())


class Figures:
    def __init__(self):
        self.found, self.gone, self.loads, self.wrong, self.skipped = Counter(), Counter(), Counter(), [], []

    def add(self, kind, what, node, said, is_so):
        self.found[kind, stands.KINDS[node.op_type], said["runs"], is_so] += 1
        if said["runs"] != is_so:
            self.wrong.append(f"{what}: lint says {said['runs']} ({said['why']}), it is {is_so}")

    def share(self, kind=None, op=None):
        """(of how many nodes, the share that is right)"""
        these = {k: n for k, n in self.found.items() if kind in (None, k[0]) and op in (None, k[1])}
        return sum(these.values()), sum(n for k, n in these.items() if k[2] == k[3]) / max(1, sum(these.values()))

    def print_mistakes(self, kind):
        """One line for each operator that lint was wrong of."""
        for op in sorted({k[1] for k in self.found if k[0] == kind and k[2] != k[3]}):
            of = {k[2:]: n for k, n in self.found.items() if k[:2] == (kind, op)}
            print(f"    {op}: {100 * self.share(kind, op)[1]:.2f} % of {self.share(kind, op)[0]}; "
                  + ", ".join(f"{n} {said} is {so}" for (said, so), n in sorted(of.items())))

    def print(self):
        for kind in dict.fromkeys((*KINDS, *KINDS_IN_OPENVINO)):
            count, share = self.share(kind)
            if count or self.gone[kind]:
                print(f"{kind:18} {100 * share:6.2f} % of {count:6} nodes; {self.gone[kind]} went")
                self.print_mistakes(kind)
        count, share = self.share()
        print(f"{'all':18} {100 * share:6.2f} % of {count:6} nodes; {len(self.skipped)} files could not be made or loaded")
        for (refused, named), n in sorted(self.loads.items()):
            print(f"{n} files {'are refused' if refused else 'load'}, lint names {'a' if named else 'no'} trap")
        return share


def compare_openvino(args, figures, model, kind, path, folder):
    from pylib.execution import Execution, graph_of

    report = lint(args, path, folder, "openvino")
    try:
        made = Execution(graph_of(path))
    except Exception:
        figures.loads[True, bool(report["traps"])] += 1
        raise
    figures.loads[False, bool(report["traps"])] += 1
    said = {x["name"]: x for x in report["nodes"]}
    graph = onnx.load(path, load_external_data=False).graph
    readers = stands.readers_of(graph)
    for name, node, _ in stands.walk(graph):
        if node.op_type not in stands.KINDS or name not in said:
            continue
        is_so = made.of(node, readers)
        if is_so is None:
            figures.gone[kind] += 1
        else:
            runs = "float" if said[name]["runs"] == "blocks" else said[name]["runs"]
            what = f"{model.name}, {kind}: {name} ({node.op_type} -> {sorted(made.found(node, readers))})"
            figures.add(kind, what, node, said[name] | {"runs": runs}, is_so)


def compare(args, figures, model, kind, path, folder):
    opt = stands.optimized(path)
    said = {x["name"]: x for x in lint(args, path, folder)["nodes"]}
    graph = onnx.load(path, load_external_data=False).graph
    readers = stands.readers_of(graph)
    for name, node, _ in stands.walk(graph):
        if node.op_type not in stands.KINDS or name not in said:
            continue
        found = opt.of(node, readers)
        if found is None:
            figures.gone[kind] += 1
        else:
            figures.add(kind, f"{model.name}, {kind}: {name} ({node.op_type} -> {found.op_type})", node, said[name], opt.runs(found))


def check_model(args, figures, model, kinds, folder, compare):
    for kind in kinds:
        if not model.data and kind not in ("float", "ours, dynamic", "ORT, dynamic"):
            continue
        out = folder / "made.onnx"
        try:
            path = make(args, model, kind, out)
            compare(args, figures, model, kind, path, folder)
        except Exception as error:  # one of the tools refuses it: there is nothing to compare
            figures.skipped.append(f"{model.name}, {kind}: {type(error).__name__}: {str(error)[:200]}")
        for rest in folder.glob("made.onnx*"):
            rest.unlink()


def pool_of_lists(path):
    """A model that lib/targets/traps.inc calls pool-of-lists."""
    one, zero = np.array([0.02], np.float32), np.array([0], np.uint8)
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["a"]), helper.make_node("DequantizeLinear", ["a", "s", "z"], ["b"]),
             helper.make_node("AveragePool", ["b"], ["c"], name="pool", kernel_shape=[2, 2]), helper.make_node("QuantizeLinear", ["c", "s", "z"], ["d"]),
             helper.make_node("DequantizeLinear", ["d", "s", "z"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 8, 8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(one, "s"), numpy_helper.from_array(zero, "z")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def qlinear_channels(path):
    """A model that lib/targets/traps.inc calls qlinear-channels, with as many channels before as behind, so that it loads."""
    rng = np.random.default_rng(3)
    constants = {"sx": np.float32(0.02), "zx": np.uint8(120), "w": rng.integers(-127, 127, (4, 4, 1, 1)).astype(np.int8),
                 "sw": np.array([0.001, 0.01, 0.1, 0.02], np.float32), "zw": np.zeros(4, np.int8), "sy": np.float32(0.3), "zy": np.uint8(128)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["a"]),
             helper.make_node("QLinearConv", ["a", "sx", "zx", "w", "sw", "zw", "sy", "zy"], ["b"], name="conv"),
             helper.make_node("DequantizeLinear", ["b", "sy", "zy"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 3, 3])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def check_openvino_traps(args, folder):
    """Whether OpenVINO computes the model wrongly and lint says so."""
    import openvino

    path = qlinear_channels(folder / "trap.onnx")
    x = np.random.default_rng(4).standard_normal((1, 4, 3, 3)).astype(np.float32)
    want = peer.session(path).run(None, {"x": x})[0]
    got = next(iter(openvino.Core().compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([x]).values()))
    wrong = float(np.abs(got - want).max()) > 2 * 0.3
    named = [t["node"] for t in lint(args, path, folder, "openvino")["traps"]]
    print(f"{'ok' if wrong and named == ['conv'] else 'FAILED'}  qlinear-channels: OpenVINO computes {'something else' if wrong else 'it'}, lint names {named}")
    return wrong and named == ["conv"]


def check_traps(args, folder):
    """Whether ONNX Runtime refuses the model and lint says so."""
    path = pool_of_lists(folder / "trap.onnx")
    report = lint(args, path, folder)
    fits = {t["name"]: t["fits"] for t in report["targets"]}
    try:
        peer.session(path)
        loads = True
    except Exception:
        loads = False
    ok = not loads and [t["node"] for t in report["traps"]] == ["pool"] and not fits["onnxruntime-x86"]
    print(f"{'ok' if ok else 'FAILED'}  pool-of-lists: ONNX Runtime {'loads' if loads else 'refuses'} it, lint names {report['traps']}")
    return ok


def models(args, folder):
    yield from (m for m in digest_models.bundled(folder) if args.all or m.name == "demo")
    yield from digest_models.small(folder, lambda _: True)
    if args.all or args.zoo:
        yield from digest_models.networks(folder, args.zoo, 1, lambda _: True)
    if args.shared and args.shared.is_dir():
        yield from digest_models.trained(folder, args.shared, lambda _: True)
    elif args.shared:
        print(f"the trained models are not there ({args.shared}): skipped")


def check_runtime(args, runtime, kinds, how, them, folder):
    """Whether lint is right of enough nodes of all models."""
    figures = Figures()
    kinds = [k for k in kinds if k in (args.kind or kinds) and (k != "NNCF" or packages.has("nncf"))]
    for m in them:
        check_model(args, figures, m, kinds, folder, how)
    print(f"-- {runtime}")
    share = figures.print()
    for line in (figures.wrong + figures.skipped) if args.verbose else figures.wrong[:20]:
        print(line)
    return share >= LEAST and bool(figures.found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--qconvert", default=tool.find("qconvert"))
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--zoo", type=Path)
    parser.add_argument("--shared", type=Path)
    parser.add_argument("--only", action="append", metavar="GLOB")
    parser.add_argument("--kind", action="append", choices=(*KINDS, *FOR_OPENVINO))
    parser.add_argument("--runtime", choices=("onnxruntime", "openvino"), help="with this alone")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="octet-lint-") as folder:
        work = Path(folder) / "models"
        work.mkdir()
        them = [m for m in models(args, work) if not args.only or any(fnmatch(m.name, g) for g in args.only)]
        ran, ok = 0, check_traps(args, Path(folder))
        for runtime, kinds, how in (("onnxruntime", KINDS, compare), ("openvino", KINDS_IN_OPENVINO, compare_openvino)):
            if args.runtime not in (None, runtime):
                continue
            if packages.has(runtime):
                ran += 1
                ok &= runtime != "openvino" or check_openvino_traps(args, Path(folder))
                ok &= check_runtime(args, runtime, kinds, how, them, Path(folder))
            else:
                print(f"skipped: the package {runtime} is not installed")
    return 77 if not ran else 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
