#!/usr/bin/env python3
"""Asks the library which parts of a graph it would take from another runtime (octet_graph_parts), and holds what such parts must be.

    check_parts.py [--shared FOLDER] [--only GLOB]... [--kind KIND]... [--jobs N] [--qconvert PROGRAM] [--library FILE] [-v]

Models as they are, as qconvert writes them (QDQ, operators on integers, dynamic) and as ONNX Runtime's quantizer does; whole, and with a node in three places that
nobody knows. When each part is one node, the graph must still have an order; every other node has a reason; a node that can run on integers is in a part with
what dequantizes its operands; an unknown node divides a graph, and does not lose it. Each part is then run as a model of its own, from the values that ONNX
Runtime has at its border, and must make what ONNX Runtime has behind it, but for rounding. lint must say the same of the file. --shared: the trained models, too.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all holds, 1 when not, 77 without the packages.
"""
import argparse
import ctypes
import json
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
sys.path.append(str(Path(__file__).resolve().parents[1] / "generate"))  # for make_zoo
import numpy as np
import onnx
from onnx import helper, shape_inference

from pylib import digest_models, peer, quantizers, tool
from pylib.rows import Rows

KINDS = ("float", "ours, QDQ", "ours, operators", "ours, dynamic", "ORT, QDQ", "ORT, dynamic")
SPELLING = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear")
MOST_ERROR = 0.3   # of a part's output, relative to its norm: rounding differs where the runtimes join other nodes, by up to 0.25 at the end of NanoDet; a wrong value by 1


class Array(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("rank", ctypes.c_int), ("dims", ctypes.c_int64 * 8), ("data", ctypes.c_void_p)]


class Claim(ctypes.Structure):
    _fields_ = [("part", ctypes.c_int), ("reason", ctypes.c_char_p)]


class Library:
    def __init__(self, path):
        self.lib = lib = ctypes.CDLL(str(path))
        lib.octet_open.restype = lib.octet_error.restype = ctypes.c_void_p
        lib.octet_error.argtypes = lib.octet_close.argtypes = lib.octet_model_free.argtypes = [ctypes.c_void_p]
        lib.octet_error.restype = ctypes.c_char_p
        lib.octet_graph_parts.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        lib.octet_model_load_memory.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
        lib.octet_model_run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]
        self.o = lib.octet_open()

    def must(self, status, what):
        if status:
            raise RuntimeError(f"{what}: status {status}: {self.lib.octet_error(self.o).decode()}")

    def parts(self, model, with_float=False):
        """[(part, reason)] by node."""
        data, claims, n = model.SerializeToString(), ctypes.POINTER(Claim)(), ctypes.c_size_t()
        self.must(self.lib.octet_graph_parts(self.o, data, len(data), None, 0, with_float, ctypes.byref(claims), ctypes.byref(n)), "parts")
        return [(claims[i].part, claims[i].reason.decode()) for i in range(n.value)]

    def run(self, model, inputs):
        """The outputs of a model, by position."""
        data, m = model.SerializeToString(), ctypes.c_void_p()
        self.must(self.lib.octet_model_load_memory(self.o, data, len(data), 1, ctypes.byref(m)), "load")
        try:
            given, kept = (Array * len(inputs))(), [np.asarray(v, order="C") for v in inputs.values()]
            for a, name, v in zip(given, inputs, kept):
                a.name, a.type, a.rank, a.data = name.encode(), helper.np_dtype_to_tensor_dtype(v.dtype), v.ndim, v.ctypes.data
                a.dims[:v.ndim] = v.shape
            out, n = ctypes.POINTER(Array)(), ctypes.c_size_t()
            self.must(self.lib.octet_model_run(self.o, m, given, len(inputs), ctypes.byref(out), ctypes.byref(n)), "run")
            made = []
            for a in out[:n.value]:
                dtype, dims = helper.tensor_dtype_to_np_dtype(a.type), list(a.dims[:a.rank])
                size = int(np.prod(dims)) * dtype.itemsize
                made.append(np.frombuffer(ctypes.string_at(a.data, size), dtype).reshape(dims))
            return made
        finally:
            self.lib.octet_model_free(m)


# ---- graphs

def read_by(node):
    """Names that a node reads, with those that its nested graphs take from outside."""
    names = [n for n in node.input if n]
    for a in node.attribute:
        for g in [a.g] if a.HasField("g") else list(a.graphs):
            inside = {v.name for v in g.input} | {t.name for t in g.initializer} | {o for n in g.node for o in n.output}
            names += [n for m in g.node for n in read_by(m) if n not in inside] + [o.name for o in g.output if o.name not in inside]
    return names


def has_order(model, claims):
    """Whether the graph has an order in which each part is one node."""
    group = [c[0] if c[0] >= 0 else f"node {i}" for i, c in enumerate(claims)]
    maker = {o: g for g, n in zip(group, model.graph.node) for o in n.output if o}
    before = {g: set() for g in group}
    for g, n in zip(group, model.graph.node):
        before[g] |= {maker[x] for x in read_by(n) if x in maker} - {g}
    while ready := [g for g in before if not before[g]]:
        for g in ready:
            del before[g]
        before = {g: b - set(ready) for g, b in before.items()}
    return not before


def part_model(model, members, types):
    """The nodes as a model, and the names at its border. None: a type is not known."""
    nodes = [model.graph.node[i] for i in members]
    made = {o for n in nodes for o in n.output if o}
    constants = {t.name: t for t in model.graph.initializer}
    outside = {x for i, n in enumerate(model.graph.node) if i not in set(members) for x in read_by(n)} | {o.name for o in model.graph.output}
    read = list(dict.fromkeys(x for n in nodes for x in read_by(n)))
    inputs = [x for x in read if x not in made and x not in constants]
    outputs = [o for n in nodes for o in n.output if o in outside]
    if any(x not in types for x in inputs):
        return None
    known = [onnx.ValueInfoProto(name=o) if o not in types else types[o] for o in outputs]
    graph = helper.make_graph(nodes, "part", [types[x] for x in inputs], known, [constants[x] for x in read if x in constants])
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version, functions=model.functions), inputs, outputs


def typed(model):
    made = shape_inference.infer_shapes(model)
    return {v.name: v for v in (*made.graph.value_info, *made.graph.input, *made.graph.output) if v.type.tensor_type.elem_type}


# ---- what must hold

class Faults:
    def __init__(self, what):
        self.what, self.list, self.counts = what, [], Counter()

    def hold(self, said, ok):
        if not ok:
            self.list.append(f"{self.what}: {said}")


def values_of(model, path, rows):
    """What ONNX Runtime has of every value that it can give, for one sample, without changing the graph."""
    types = typed(model)
    more = onnx.ModelProto.FromString(model.SerializeToString())
    have = {o.name for o in more.graph.output}
    more.graph.output.extend(types[o] for n in more.graph.node for o in n.output if o in types and o not in have)
    onnx.save(more, path)
    feeds = rows.get(0)
    names = [o.name for o in more.graph.output]
    return feeds | dict(zip(names, peer.session(path, optimize=False).run(names, feeds)))


def check_part(f, library, model, members, types, values):
    made = part_model(model, members, types)
    if not made or any(x not in values for x in made[1]):
        f.counts["parts whose types are not known"] += 1
        return
    part, inputs, outputs = made
    try:
        got = library.run(part, {x: values[x] for x in inputs})
    except RuntimeError as error:
        f.hold(f"a part of {len(members)} nodes does not run: {error}", False)
        return
    f.counts["parts that were run"] += 1
    for name, g in zip(outputs, got):
        if name not in values or not isinstance(values[name], np.ndarray):
            continue
        w = values[name]
        f.hold(f"'{name}' has shape {g.shape} and not {w.shape}", g.shape == w.shape)
        if g.shape == w.shape and w.size and w.dtype.kind == "f" and np.isfinite(w).all():
            error = np.linalg.norm(g.astype(float) - w) / max(np.linalg.norm(w), 1e-6 * w.size)
            f.hold(f"'{name}' of a part of {len(members)} nodes differs by {error:.3f}", error <= MOST_ERROR)


def check_claims(f, model, claims):
    nodes = model.graph.node
    f.hold(f"{len(claims)} claims for {len(nodes)} nodes", len(claims) == len(nodes))
    f.hold("a reason without need, or none", all((part < 0) == bool(why) for part, why in claims))
    n_parts = 1 + max((part for part, _ in claims), default=-1)
    f.hold("parts are not counted up", {part for part, _ in claims} >= set(range(n_parts)))
    f.hold("parts wait for each other", has_order(model, claims))
    maker = {o: i for i, n in enumerate(nodes) for o in n.output}
    readers = {i: [] for i in range(len(nodes))}
    for i, n in enumerate(nodes):
        for x in read_by(n):
            if x in maker:
                readers[maker[x]].append(i)
    ends = {o.name for o in model.graph.output}
    for i, n in enumerate(nodes):
        if claims[i][0] < 0:
            continue
        if n.op_type in ("Conv", "MatMul", "Gemm"):
            apart = [x for x in n.input if x in maker and nodes[maker[x]].op_type == "DequantizeLinear" and claims[maker[x]][0] != claims[i][0]]
            f.hold(f"{n.op_type} '{n.output[0]}' is claimed without what dequantizes {apart}", not apart)
        if n.op_type == "DequantizeLinear" and n.output[0] not in ends and readers[i]:
            f.hold(f"nobody in its part reads '{n.output[0]}'", any(claims[r][0] == claims[i][0] for r in readers[i]))
    return n_parts


def mutated(model, at, types):
    """The model with a node that nobody knows."""
    other = onnx.ModelProto.FromString(model.SerializeToString())
    other.graph.node[at].domain, other.graph.node[at].op_type = "com.foo", "Bar"
    other.opset_import.append(helper.make_opsetid("com.foo", 1))
    known = {v.name for v in (*other.graph.value_info, *other.graph.output)}
    other.graph.value_info.extend(types[o] for n in other.graph.node for o in n.output if o in types and o not in known)
    return other


def check_lint(f, args, path, model, claims, folder):
    """lint says of each node what the library says. It judges the folded graph, so some nodes have none."""
    report = folder / "lint.json"
    try:
        tool.run([args.qconvert, "lint", path, "--target", "onnxruntime-octet", "-q", "--json", report])
    except tool.ToolError:  # qconvert refuses opsets that the runtime takes
        f.counts["refused by lint"] += 1
        return
    said = {n["name"]: n["runs"] for n in json.loads(report.read_text())["nodes"]}
    for n, (part, why) in zip(model.graph.node, claims):
        if n.name in said and n.op_type not in SPELLING:
            f.counts["nodes that lint names"] += 1
            f.hold(f"lint says '{said[n.name]}' of '{n.name}', the library {part} {why}", (said[n.name] == "left") == (part < 0))


def check_file(task):
    args, model, kind = task
    f = Faults(f"{model.name}, {kind}")
    with tempfile.TemporaryDirectory(prefix="octet-parts-") as folder:
        folder = Path(folder)
        try:
            path = quantizers.write(args.qconvert, model, kind, folder / "made.onnx")
            proto = onnx.load(path)
            types = typed(proto)
        except Exception as error:  # the quantizer refuses it, or it is no model: there is nothing to ask
            f.counts["not made"] += 1
            f.skipped = f"{type(error).__name__}: {str(error)[:150]}"
            return f
        library = Library(args.library)
        try:
            claims = library.parts(proto)
        except RuntimeError as error:
            f.counts["not asked"] += 1
            f.skipped = str(error)[:150]
            return f
        n_parts = check_claims(f, proto, claims)
        f.counts["graphs"] += 1
        f.counts["graphs with parts"] += n_parts > 0
        f.hold("float is claimed", kind != "float" or n_parts == 0 or any(n.op_type in (*SPELLING, "MatMulInteger", "ConvInteger") or n.domain or "Q" in n.op_type for n in proto.graph.node))
        f.hold("a graph without faults is divided", n_parts < 2 or any("unknown" in why or "cannot" in why for _, why in claims) or any("not faster" in why for _, why in claims))
        f.counts["nodes with float"] += sum(part >= 0 for part, _ in library.parts(proto, True))
        check_lint(f, args, path, proto, claims, folder)
        if not n_parts:
            return f
        try:
            values = values_of(proto, folder / "all.onnx", Rows(model))
        except Exception as error:
            f.counts["without ONNX Runtime"] += 1
            f.skipped = f"{type(error).__name__}: {str(error)[:150]}"
            values = {}
        for p in range(n_parts):
            check_part(f, library, proto, [i for i, c in enumerate(claims) if c[0] == p], types, values)
        places = [i for i, n in enumerate(proto.graph.node) if n.op_type not in SPELLING and n.op_type != "Constant" and all(o in types for o in n.output if o)]
        for k in (1, 2, 3):
            if not places:
                break
            at = places[len(places) * k // 4]
            divided = mutated(proto, at, types)
            claims = library.parts(divided)
            n_parts = check_claims(f, divided, claims)
            f.hold(f"the unknown node is {claims[at]}", claims[at] == (-1, "operator com.foo.Bar is unknown"))
            f.counts[f"divided in {min(n_parts, 3)}{' or more' if n_parts > 2 else ''}"] += 1
            for p in range(n_parts):
                check_part(f, library, proto, [i for i, c in enumerate(claims) if c[0] == p], types, values)
    return f


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--shared", type=Path, help="folder of the trained models")
    p.add_argument("--only", action="append", default=[], metavar="GLOB", help="only models with such a name")
    p.add_argument("--kind", action="append", default=[], choices=KINDS)
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--qconvert", help="our qconvert [default: $OCT_BUILD or build/, then PATH]")
    p.add_argument("--library", type=Path, help="our shared library [default: build/tools/library/liboctet.so]")
    p.add_argument("-v", "--verbose", action="store_true")
    args = p.parse_args()
    args.qconvert = tool.find("qconvert", args.qconvert)
    args.library = args.library or tool.ROOT / "build/tools/library/liboctet.so"

    def wanted(name):
        return not args.only or any(fnmatch(name, g) for g in args.only)

    counts, faults = Counter(), []
    with tempfile.TemporaryDirectory(prefix="octet-parts-") as folder:
        folder = Path(folder)
        models = [m for m in digest_models.bundled(folder) if wanted(m.name)] + list(digest_models.small(folder, wanted))
        if args.shared:
            models += digest_models.trained(folder, args.shared, wanted)
        # The many files of one operator are asked about as they are; what each of them needs to be quantized is tested elsewhere.
        tasks = [(args, m, k) for m in models for k in args.kind or KINDS if k == "float" or m.data and (m.group not in ("models", "onnx") or args.only)]
        with ProcessPoolExecutor(args.jobs) as pool:
            for f in pool.map(check_file, tasks):
                counts.update(f.counts)
                faults += f.list
                if args.verbose:
                    print(f"{f.what}: {dict(f.counts)}{' ' + f.skipped if hasattr(f, 'skipped') else ''}", flush=True)
    for line in faults[:50]:
        print("FAILED ", line)
    print(", ".join(f"{k}: {v}" for k, v in sorted(counts.items())))
    short = [k for k, least in (("graphs with parts", 10), ("parts that were run", 20), ("divided in 2", 5), ("nodes that lint names", 200)) if counts[k] < least] if not args.only and not args.kind else []
    if short:
        print(f"FAILED  too few: {short}")
    sys.exit(bool(faults or short))


if __name__ == "__main__":
    main()
