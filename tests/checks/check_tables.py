#!/usr/bin/env python3
"""Compares models whose embeddings are stored in 8 bits with what NumPy makes of the same numbers, and with ONNX Runtime.

    check_tables.py [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

A table by itself, and one that a product multiplies by, too (tied embeddings), behind a Transpose or as Gemm has it, which must be stored once, also by
conversions to 16-bit floats and of models of other floats. Those of EmbedLayerNormalization, which is taken apart. Layer by layer their rows are compared as the reals that they stand for.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pylib import tool
from pylib.judge import Checker, options, run_ort, sqnr

ROWS, WIDE, LENGTH = 700, 96, 9


def model(path, tied, table):
    """The rows of a table, and with tied a product by all of them, in the table's type."""
    kind = helper.np_dtype_to_tensor_dtype(table.dtype)
    nodes = [helper.make_node("Gather", ["table", "ids"], ["rows"])]
    outputs = [("rows", [LENGTH, WIDE])]
    if tied:
        outputs = [("logits", [LENGTH, ROWS])]
        nodes.append(helper.make_node("Tanh", ["rows"], ["y"]))
    if tied == "Gemm":
        nodes.append(helper.make_node("Gemm", ["y", "table"], ["logits"], transB=1))
    elif tied:
        nodes += [helper.make_node("Transpose", ["table"], ["turned"], perm=[1, 0]), helper.make_node("MatMul", ["y", "turned"], ["logits"])]
    infos = [helper.make_tensor_value_info(n, kind, d) for n, d in outputs]
    graph = helper.make_graph(nodes, "tables", [helper.make_tensor_value_info("ids", TensorProto.INT64, [LENGTH])], infos,
                              [numpy_helper.from_array(table, "table")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def stored(path):
    return sum(len(numpy_helper.to_array(t).tobytes()) for t in onnx.load(path).graph.initializer if numpy_helper.to_array(t).size >= ROWS * WIDE // 2)


def check_one(check, scheme, tied, table, ids):
    size = ROWS * WIDE // (2 if tied and scheme == "weight-only" else 1)  # tied in blocks: in 4 bits
    what, path, out = f"{scheme}, tied by {tied}", check.folder / "float.onnx", check.folder / "out.onnx"
    model(path, tied, table)
    check.convert(path, out, "--scheme", scheme, *(["--data", check.folder / "ids.npy"] if scheme == "static" else []))
    onnx.checker.check_model(onnx.load(out), full_check=True)
    check.hold(f"{what}: quantized, once", stored(out) == size, f"{stored(out)} bytes")
    want, theirs, ours = run_ort(str(path), [ids]), run_ort(str(out), [ids]), check.run_ours(out, [ids])
    check.hold(f"{what}: as in ONNX Runtime", sqnr(theirs, ours) > 55, f"{sqnr(theirs, ours):.1f} dB")
    check.hold(f"{what}: near the float model", sqnr(want, theirs) > (25 if size == ROWS * WIDE else 12), f"{sqnr(want, theirs):.1f} dB")
    if not tied:
        step = np.abs(table).max(1, keepdims=True) / np.float32(127)
        rows = (np.rint(table / step) * step)[ids]
        check.hold(f"{what}: rows as NumPy rounds them", np.array_equal(rows, theirs[0][0]) and np.array_equal(rows, ours[0].reshape(rows.shape)))


def check_rule(check, table):
    """A rule that asks for blocks of a table alone is told what a table gets."""
    path, out = check.folder / "float.onnx", check.folder / "out.onnx"
    model(path, None, table)
    report = check.convert(path, out, "--set", "op:Gather=weight-only u4/block32/asym")
    why = [x["why"] for x in report["layers"] if x["op"] == "Gather"]
    check.hold("a rule of blocks: the reason says what the table has", len(why) == 1 and "stored in 8 bits, or in blocks if a product shares its numbers" in why[0] and stored(out) == ROWS * WIDE, why)


def check_pairs(check, table):
    """Layer by layer the rows are compared as reals, by the name that they keep; under other names the integers are compared with nothing."""
    path, out, report = check.folder / "float.onnx", check.folder / "out.onnx", check.folder / "layers.json"
    model(path, "Transpose", table)
    check.convert(path, out, "--scheme", "dynamic")
    step = np.abs(table).max(1, keepdims=True) / np.float32(127)
    ids = np.load(check.folder / "ids.npy")
    want = sqnr([table[ids]], [(np.rint(table / step) * step)[ids]])
    for other in ("rows", "renamed"):
        m = onnx.load(out)
        for node in m.graph.node:
            for names in (node.input, node.output):
                names[:] = [n.replace("rows", other) for n in names]
        onnx.save(m, out)
        tool.run([check.qeval, path, out, "--data", check.folder / "ids.npy", "--layers", "--no-latency", "-q", "--json", report])
        found = [layer["sqnr_db"] for layer in json.loads(report.read_text())["models"][1]["layers"] if layer["value"] == "rows"]
        right = len(found) == 1 and abs(found[0] - want) < 0.01 if other == "rows" else all(db > 20 for db in found)
        check.hold(f"layers, {other}: rows are reals", right, f"{found}, NumPy {want:.2f} dB")


def check_types(check, kind, table):
    path, out = check.folder / "typed.onnx", check.folder / "typed.out.onnx"
    model(path, "Transpose", table.astype(kind))
    for scheme, item in (("fp16", 2), ("bf16", 2), ("dynamic", 1)):
        check.convert(path, out, "--scheme", scheme)
        check.hold(f"{kind.__name__} to {scheme}: once", stored(out) == ROWS * WIDE * item, f"{stored(out) / ROWS / WIDE:.2f} bytes an element")


def embedded(path, inputs, table):
    """Embeddings that ONNX Runtime's optimizer made one operator."""
    rng, names = np.random.default_rng(5), [n if n in inputs else "" for n in ("segments", "mask", "places")]
    constants = {"words": table, "positions": table[:300] / 2, "kinds": table[:2], "gamma": 1 + table[5] / 9, "beta": table[6]}
    node = helper.make_node("EmbedLayerNormalization", ["ids", names[0], "words", "positions", "kinds" if names[0] else "", "gamma", "beta", *names[1:]],
                            ["y", "counts", "sum"], name="embeddings", domain="com.microsoft", epsilon=1e-5)
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", LENGTH, WIDE]) for n in ("y", "sum")]
    outputs += [helper.make_tensor_value_info("counts", TensorProto.INT32, ["n"])] if "mask" in inputs else []
    graph = helper.make_graph([node], "tables", [helper.make_tensor_value_info(n, TensorProto.INT32, ["n", LENGTH]) for n in ("ids", *inputs)],
                              outputs, [numpy_helper.from_array(a.astype(np.float32), n) for n, a in constants.items()])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    most = {"ids": ROWS, "segments": 2, "mask": 2, "places": 300}
    return {n: rng.integers(0, most[n], (2, LENGTH)).astype(np.int32) for n in ("ids", *inputs)}


def check_embedded(check, table):
    for inputs in ((), ("segments",), ("mask",), ("segments", "places"), ("segments", "mask", "places")):
        what, path, out = f"embedded with {', '.join(inputs) or 'ids'}", check.folder / "embedded.onnx", check.folder / "out.onnx"
        samples = embedded(path, inputs, table)
        check.convert(path, out, "--scheme", "stored")
        onnx.checker.check_model(onnx.load(out), full_check=True)
        kept = [n.op_type for n in onnx.load(out).graph.node if n.op_type == "EmbedLayerNormalization"]
        floats = [t.name for t in onnx.load(out).graph.initializer if t.data_type == TensorProto.FLOAT and numpy_helper.to_array(t).size > LENGTH * WIDE]
        check.hold(f"{what}: taken apart, its tables in integers", not kept and not floats, f"{kept} {floats}")
        np.savez(check.folder / "embedded.npz", **samples)
        want, theirs = (run_ort(str(p), [samples]) for p in (path, out))
        ours = tool.run_qeval(check.qeval, out, check.folder / "embedded.npz", check.folder / "embedded.out.npz")
        ours = [ours[o.name] for o in onnx.load(out).graph.output]
        check.hold(f"{what}: as in ONNX Runtime", sqnr(theirs, ours) > 100, f"{sqnr(theirs, ours):.1f} dB")
        check.hold(f"{what}: near the float model", sqnr(want, theirs) > 30, f"{sqnr(want, theirs):.1f} dB")
        if "mask" in inputs:
            check.hold(f"{what}: the mask is counted", np.array_equal(theirs[2][0], samples["mask"].sum(1)), theirs[2])


def main():
    args = options(__doc__).parse_args()
    rng = np.random.default_rng(11)
    table = (rng.standard_normal((ROWS, WIDE)) * np.exp(rng.standard_normal((ROWS, 1)))).astype(np.float32)
    ids = np.array([0, ROWS - 1, 3, -1, 3, 77, 512, 6, -ROWS], np.int64)
    with Checker(args) as check:
        np.save(check.folder / "ids.npy", rng.integers(0, ROWS, (24, LENGTH)))
        for scheme, tied in (("dynamic", None), ("weight-only", None), ("dynamic", "Transpose"), ("static", "Transpose"), ("static", "Gemm"),
                             ("weight-only", "Transpose"), ("weight-only", "Gemm")):
            check_one(check, scheme, tied, table, ids)
        check_rule(check, table)
        check_pairs(check, table)
        check_embedded(check, table)
        for kind in (np.float16, np.float32, np.float64):
            check_types(check, kind, table)
    return check.finish()


if __name__ == "__main__":
    sys.exit(main())
