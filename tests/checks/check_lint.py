#!/usr/bin/env python3
"""Compares what qconvert lint says of each node of a file, integer or float, with the graph that ONNX Runtime's optimizer leaves, and with
OpenVINO's execution graph where its package is installed.

    check_lint.py [--all] [--zoo FOLDER] [--shared FOLDER] [--only GLOB]... [--kind KIND]... [--runtime onnxruntime|openvino] [--jobs N]
                  [--qconvert PROGRAM] [-v]

Each model is taken as it is, as qconvert writes it (QDQ, operators on integers, dynamic), as ONNX Runtime's quantizer does (QDQ, operators on
integers, dynamic), and as NNCF does where that is installed; for OpenVINO all but the dynamic ones, and as qconvert writes it for both runtimes' targets.
Conv, Gemm, MatMul, LSTM, pooling and Add are compared, in nested graphs too where the runtime's graph shows these. Quick: the
bundled model and small networks; --all: all that tests hold and what make_zoo.py makes; --shared: the trained models too. Each file is made once for both
runtimes, in processes apart, as a runtime or a quantizer may crash: that is told, and the other files are compared (all of it: 11 minutes with --jobs 2).
It also holds that lint names models that a runtime does not load, or computes wrongly, for a reason that is known (lib/targets/traps.inc).

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when at least 99 % are right, 1 when not, 77 without the packages.
"""
import argparse
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

from pylib import digest_models, isolated, peer, quantizers, stands, tool

LEAST = 0.99
KINDS_IN = {"onnxruntime": tuple(k for k in quantizers.KINDS if k != "ours, openvino"), "openvino": tuple(k for k in quantizers.KINDS if "dynamic" not in k)}


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

    def join(self, other):
        for name, mine in vars(self).items():
            (mine.update if isinstance(mine, Counter) else mine.extend)(getattr(other, name))

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
        for kind in quantizers.KINDS:
            count, share = self.share(kind)
            if count or self.gone[kind]:
                print(f"{kind:18} {100 * share:6.2f} % of {count:6} nodes; {self.gone[kind]} went")
                self.print_mistakes(kind)
        count, share = self.share()
        print(f"{'all':18} {100 * share:6.2f} % of {count:6} nodes; {len(self.skipped)} files could not be made or loaded")
        for (refused, named), n in sorted(self.loads.items()):
            print(f"{n} files {'are refused' if refused else 'load'}, lint names {'a' if named else 'no'} trap")
        return share


def layers_of(path):
    """(node's path, node, readers) of what is compared of a file."""
    graph = onnx.load(path, load_external_data=False).graph
    readers = stands.readers_of(graph)
    return [(name, node, readers) for name, node, _ in stands.walk(graph) if node.op_type in stands.KINDS]


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
    for name, node, readers in layers_of(path):
        is_so = made.of(node, readers) if name in said else None
        if is_so is None:
            figures.gone[kind] += name in said
        else:
            runs = "float" if said[name]["runs"] == "blocks" else said[name]["runs"]
            what = f"{model.name}, {kind}: {name} ({node.op_type} -> {sorted(made.found(node, readers))})"
            figures.add(kind, what, node, said[name] | {"runs": runs}, is_so)


def compare(args, figures, model, kind, path, folder):
    opt = stands.optimized(path)
    said = {x["name"]: x for x in lint(args, path, folder)["nodes"]}
    for name, node, readers in layers_of(path):
        found = opt.of(node, readers) if name in said else None
        if found is None:
            figures.gone[kind] += name in said
        else:
            figures.add(kind, f"{model.name}, {kind}: {name} ({node.op_type} -> {found.op_type})", node, said[name], opt.runs(found))


HOW = {"onnxruntime": compare, "openvino": compare_openvino}


def check_file(task):
    """{runtime: Figures} of a model as one quantizer writes it; in a process of its own."""
    args, model, kind, runtimes = task
    figures = {r: Figures() for r in runtimes}
    with tempfile.TemporaryDirectory(prefix="octet-lint-") as folder:
        try:
            path = quantizers.write(args.qconvert, model, kind, Path(folder) / "made.onnx")
        except Exception as error:  # the quantizer refuses it: there is nothing to compare
            for f in figures.values():
                f.skipped.append(f"{model.name}, {kind}, not made: {type(error).__name__}: {str(error)[:200]}")
            return figures
        for runtime, f in figures.items():
            try:
                HOW[runtime](args, f, model, kind, path, Path(folder))
            except Exception as error:
                f.skipped.append(f"{model.name}, {kind}, {runtime}: {type(error).__name__}: {str(error)[:200]}")
    return figures


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


def gemm_bias(path, factor):
    """A Gemm on integers whose bias has `factor` times the scale that it should have: unless that is 1, lib/targets/traps.inc calls it gemm-bias."""
    rng = np.random.default_rng(6)
    constants = {"s": np.float32(0.02), "z": np.uint8(120), "w": rng.integers(-127, 128, (6, 4)).astype(np.int8), "sw": np.float32(0.01), "zw": np.int8(0),
                 "b": rng.integers(-9000, 9000, 4).astype(np.int32), "sb": np.float32(0.0002 * factor), "zb": np.int32(0)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["a"]), helper.make_node("DequantizeLinear", ["a", "s", "z"], ["xd"]),
             helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["wd"]), helper.make_node("DequantizeLinear", ["b", "sb", "zb"], ["bd"]),
             helper.make_node("Gemm", ["xd", "wd", "bd"], ["y"], name="gemm")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 6])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 4])], [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def check_biases(args, folder):
    """Whether ONNX Runtime adds a bias of another scale wrongly, and only that, and lint says so."""
    x, found = np.random.default_rng(4).standard_normal((3, 6)).astype(np.float32), {}
    for factor in (1, 4):
        path = gemm_bias(folder / "trap.onnx", factor)
        want, got = (peer.session(path, optimize=o).run(None, {"x": x})[0] for o in (False, True))
        found[factor] = bool(np.abs(want - got).max() > 0.1), [t["node"] for t in lint(args, path, folder)["traps"]]
    ok = found == {1: (False, []), 4: (True, ["gemm"])}
    print(f"{'ok' if ok else 'FAILED'}  gemm-bias: by the factor of its scale (wrong in ONNX Runtime, lint names): {found}")
    return ok


def cubic_behind_conv(path, by):
    """Two Convs on integers and a cubic Resize between them: where it makes less, lib/targets/traps.inc calls it cubic-behind-conv."""
    rng = np.random.default_rng(7)
    constants = {"s": np.float32(0.02), "z": np.uint8(120), "w": rng.integers(-127, 128, (4, 4, 3, 3)).astype(np.int8), "sw": np.float32(0.005), "zw": np.int8(0),
                 "by": np.array([1, 1, by, by], np.float32)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["a"]), helper.make_node("DequantizeLinear", ["a", "s", "z"], ["xd"]),
             helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["wd"]), helper.make_node("Conv", ["xd", "wd"], ["c"], name="conv", pads=[1] * 4),
             helper.make_node("QuantizeLinear", ["c", "s", "z"], ["q"]), helper.make_node("DequantizeLinear", ["q", "s", "z"], ["cd"]),
             helper.make_node("Resize", ["cd", "", "by"], ["r"], mode="cubic"), helper.make_node("QuantizeLinear", ["r", "s", "z"], ["rq"]),
             helper.make_node("DequantizeLinear", ["rq", "s", "z"], ["rd"]), helper.make_node("Conv", ["rd", "wd"], ["d"], name="next", pads=[1] * 4),
             helper.make_node("QuantizeLinear", ["d", "s", "z"], ["dq"]), helper.make_node("DequantizeLinear", ["dq", "s", "z"], ["y"])]
    size = int(8 * by)
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 8, 8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, size, size])], [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def check_cubic(args, folder):
    """Whether ONNX Runtime refuses a cubic Resize to less behind a Conv on integers, and only that, and lint says so."""
    found = {}
    for by in (2, 0.5):
        path = cubic_behind_conv(folder / "trap.onnx", by)
        try:
            peer.session(path)
            loads = True
        except Exception:
            loads = False
        found[by] = loads, [t["node"] for t in lint(args, path, folder)["traps"]]
    ok = found == {2: (True, []), 0.5: (False, ["conv"])}
    print(f"{'ok' if ok else 'FAILED'}  cubic-behind-conv: by the factor of the size (loads, lint names): {found}")
    return ok


def dequantized_states(path, quantizer):
    """A GRU by matrices of 8 bits; quantizer: with one behind it, which lib/targets/traps.inc calls dequantized-states."""
    rng, constants, nodes = np.random.default_rng(5), {"s": np.float32(0.02), "zs": np.int8(0), "zy": np.uint8(128)}, []
    for name, columns in (("w", 6), ("r", 8)):
        constants[f"{name}_8"] = rng.integers(-127, 128, (1, 24, columns)).astype(np.int8)
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}_8", "s", "zs"], [name]))
    nodes.append(helper.make_node("GRU", ["x", "w", "r"], ["a"], name="gru", hidden_size=8))
    nodes += ([helper.make_node("QuantizeLinear", ["a", "s", "zy"], ["b"]), helper.make_node("DequantizeLinear", ["b", "s", "zy"], ["c"])] if quantizer
              else [helper.make_node("Identity", ["a"], ["c"])])
    nodes.append(helper.make_node("Relu", ["c"], ["y"]))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 1, 6])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 1, 1, 8])], [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def check_states(args, folder):
    """Whether OpenVINO refuses a layer with dequantized matrices beside a quantizer, and that alone, and lint says so."""
    from pylib.execution import compiled

    found = {}
    for quantizer in (False, True):
        path = dequantized_states(folder / "trap.onnx", quantizer)
        try:
            compiled(path)
            loads = True
        except RuntimeError:
            loads = False
        found[quantizer] = loads, [t["node"] for t in lint(args, path, folder, "openvino")["traps"]]
    ok = found == {False: (True, []), True: (False, ["gru"])}
    print(f"{'ok' if ok else 'FAILED'}  dequantized-states: without a quantizer and with one (loads, lint names): {found}")
    return ok


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


def tasks(args, runtimes, them):
    """(args, model, kind, the runtimes that it is compared in)"""
    for model in them:
        for kind in args.kind or quantizers.KINDS:
            where = [r for r in runtimes if kind in KINDS_IN[r]]
            if where and (model.data or kind in quantizers.WITHOUT_SAMPLES) and (kind != "NNCF" or packages.has("nncf")):
                yield args, model, kind, where


def check_all(args, runtimes, them):
    """Whether lint is right of enough nodes of all models, in each runtime."""
    figures = {r: Figures() for r in runtimes}
    for (_, model, kind, where), found, error in isolated.call_all(check_file, tasks(args, runtimes, them), args.jobs):
        for runtime in where:
            if error:
                figures[runtime].skipped.append(f"{model.name}, {kind}: {type(error).__name__}: {error}")
            else:
                figures[runtime].join(found[runtime])
    ok = True
    for runtime, f in figures.items():
        print(f"-- {runtime}")
        ok &= f.print() >= LEAST and bool(f.found)
        for line in (f.wrong + f.skipped) if args.verbose else f.wrong[:20]:
            print(line)
    return ok


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--qconvert", default=tool.find("qconvert"))
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--zoo", type=Path)
    parser.add_argument("--shared", type=Path)
    parser.add_argument("--only", action="append", metavar="GLOB")
    parser.add_argument("--kind", action="append", choices=quantizers.KINDS)
    parser.add_argument("--runtime", choices=tuple(HOW), help="with this alone")
    parser.add_argument("--jobs", type=int, default=1, help="files at once [default: 1]")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    runtimes = [r for r in HOW if args.runtime in (None, r) and packages.has(r)]
    for missing in (r for r in HOW if args.runtime in (None, r) and not packages.has(r)):
        print(f"skipped: the package {missing} is not installed")
    with tempfile.TemporaryDirectory(prefix="octet-lint-") as folder:
        work = Path(folder) / "models"
        work.mkdir()
        them = [m for m in models(args, work) if not args.only or any(fnmatch(m.name, g) for g in args.only)]
        ok = check_traps(args, Path(folder)) & check_biases(args, Path(folder)) & check_cubic(args, Path(folder))
        ok &= "openvino" not in runtimes or (check_openvino_traps(args, Path(folder)) & check_states(args, Path(folder)))
        ok &= not runtimes or check_all(args, runtimes, them)
    return 77 if not runtimes else 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
