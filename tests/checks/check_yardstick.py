#!/usr/bin/env python3
"""Runs scripts/yardstick over a list of its own, and holds its page against NumPy's numbers.

    check_yardstick.py [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

A classifier of which the labels are known, as .csv and as .toml: values, drops, counts and sizes of each tool are those of its files. A model that cannot be read fails the run and not the others; rows whose
samples are not there are left out and told.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import shlex
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pylib import peer
from pylib import yardstick_page as pages
from pylib.judge import Checker, options

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/yardstick"
WIDTH, CLASSES = 24, 6


def write_model(folder):
    rng = np.random.default_rng(1)
    w = [rng.normal(0, 0.3, s).astype(np.float32) for s in ((WIDTH, 40), (40, CLASSES))]
    nodes = [helper.make_node("MatMul", ["x", "a"], ["h"], name="first"), helper.make_node("Relu", ["h"], ["r"]), helper.make_node("MatMul", ["r", "b"], ["y"], name="last")]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "net", [value("x", TensorProto.FLOAT, ["n", WIDTH])], [value("y", TensorProto.FLOAT, ["n", CLASSES])],
                              [numpy_helper.from_array(v, n) for v, n in zip(w, "ab")])
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)]), folder / "net.onnx")
    for name, n in (("calib", 64), ("eval", 300)):
        np.save(folder / f"{name}.npy", rng.normal(0, 1, (n, WIDTH)).astype(np.float32))
    x = np.load(folder / "eval.npy")
    y = np.maximum(x @ w[0], 0) @ w[1]
    labels = np.where(rng.random(len(x)) < 0.85, y.argmax(1), rng.integers(0, CLASSES, len(x)))
    np.save(folder / "labels.npy", labels)
    return x, labels


def run(c, *words):
    page = c.folder / "page.md"
    page.unlink(missing_ok=True)
    done = subprocess.run([sys.executable, SCRIPT, "--qconvert", c.qconvert, "--qeval", c.qeval, "--tools", "octet,ort-static,ort-dynamic", "-o", page, *map(str, words)],
                          capture_output=True, text=True, check=False)
    return done, page.read_text() if page.exists() else ""


def rows_of(page, of_tools):
    """The rows of the table of tools, or of that of models; both have eight columns."""
    cells = [[w.strip() for w in line.strip("| \n").split(" | ")] for line in page.splitlines() if line.startswith("| ")]
    return [r for r in cells if len(r) == 8 and not r[0].startswith("---") and r[0] != "model" and (r[1] in pages.TOOLS.values()) == of_tools]


def shares(c, x, folder):
    """Where the float model, Octet's file and that of quantize_dynamic agree, by NumPy."""
    want = peer.session(folder / "net.onnx").run(None, {"x": x})[0].argmax(1)
    script = [sys.executable, SCRIPT, "--quantize", "ort-dynamic", folder / "net.onnx", "none", folder / "dynamic.onnx"]
    subprocess.run([str(w) for w in script], check=True, capture_output=True)
    return [np.mean([peer.session(p, exact=True).run(None, {"x": row[None]})[0].argmax() == w for row, w in zip(x, want)]) for p in (folder / "ours.onnx", folder / "dynamic.onnx")]


def numbers(c, x, out):
    """Agreement is compared in pairs, with the file of results, which the page is made of."""
    (c.folder / "agree.csv").write_text("name,model,calib,data,metric\nnet,net.onnx,calib.npy,eval.npy,agreement\n")
    results = c.folder / "results.csv"
    done, page = run(c, c.folder / "agree.csv", "--results", results, "--tools", "octet,ort-dynamic")
    c.hold("agreement: exit", done.returncode == 0, done.stderr[-400:])
    rows = pages.read(results)
    ours, theirs = shares(c, x, c.folder)
    c.hold("agreement: values", [r["value"] for r in rows] == [f"{ours:.6g}", f"{theirs:.6g}"], f"{rows} for {ours} and {theirs}")
    first = rows[0]
    c.hold("agreement: against the best", first["against"] == "ort-dynamic" and abs(float(first["against_drop"] or 9) - (theirs - ours)) < 1e-5 and first["against_low"] != "", str(first))
    before = results.read_text()
    done, again = run(c, "--results", results)
    c.hold("the page alone", done.returncode == 0 and again == page and results.read_text() == before, done.stderr[-300:])
    twice = pages.merged(rows, [r | {"value": "1"} for r in rows])
    c.hold("rows are replaced", len(twice) == len(rows) and all(r["value"] == "1" for r in twice), str(twice))
    kept = c.folder / "likeness"
    kept.mkdir()
    want, found = np.array([[0.2, 0.8], [1, 0], [0.5, 0.1]], np.float32), np.array([[0.9, 0.1], [1, 0], [0.5, 0.3]], np.float32)
    np.savez(kept / "a.npz", y=want, sample_names=np.arange(3).astype(str))
    np.savez(kept / "b.npz", y=found, sample_names=np.arange(3).astype(str))
    for metric, right in (("agreement", [0, 1, 1]), ("mse", ((want - found) ** 2).mean(1)), ("cosine", (want * found).sum(1) / np.linalg.norm(want, axis=1) / np.linalg.norm(found, axis=1))):
        said = subprocess.run([sys.executable, SCRIPT, "--likeness", metric, kept / "a.npz", kept / "b.npz"], capture_output=True, text=True, check=True).stdout
        c.hold(f"likeness: {metric}", np.allclose([float(w) for w in said.split()], right, atol=1e-6), said)
    np.savez(kept / "a.npz", **{f"y/{i:06}": np.float32(v) for i, v in enumerate((1, 2, 4))})     # numbers without axes
    np.savez(kept / "b.npz", y=np.float32([1, 2.5, 3]), sample_names=np.arange(3).astype(str))
    said = subprocess.run([sys.executable, SCRIPT, "--likeness", "mse", kept / "a.npz", kept / "b.npz"], capture_output=True, text=True, check=True).stdout
    c.hold("likeness: of numbers without axes", np.allclose([float(w) for w in said.split()], [0, 0.25, 1]), said)


def write_convolutions(path):
    """Of vectors as pictures of one pixel: layers that have no dynamic form."""
    rng = np.random.default_rng(1)
    held = {"a": rng.normal(0, 0.3, (40, WIDTH, 1, 1)).astype(np.float32), "b": rng.normal(0, 0.3, (CLASSES, 40, 1, 1)).astype(np.float32), "shape": np.array([0, WIDTH, 1, 1])}
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["p"]), helper.make_node("Conv", ["p", "a"], ["h"], name="one"), helper.make_node("Relu", ["h"], ["r"]),
             helper.make_node("Conv", ["r", "b"], ["s"], name="two"), helper.make_node("Flatten", ["s"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name, size in (("x", WIDTH), ("y", CLASSES))]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], [numpy_helper.from_array(v, n) for n, v in held.items()])
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)]), path)


def advice(c):
    """Samples of which some are a thousand times as loud: static ranges fit none, and Octet's answer names what does. Its file has a row of its own, with the numbers of the file that the command makes."""
    rng = np.random.default_rng(3)
    write_convolutions(c.folder / "loud.onnx")
    for name, n in (("calib", 64), ("eval", 120)):
        np.save(c.folder / f"loud_{name}.npy", (rng.normal(0, 1, (n, WIDTH)) * 10 ** rng.uniform(-3, 0, (n, 1))).astype(np.float32))
    (c.folder / "loud.csv").write_text("name,model,calib,data,metric\nnet,loud.onnx,loud_calib.npy,loud_eval.npy,cosine\n")
    results = c.folder / "loud_results.csv"
    done, page = run(c, c.folder / "loud.csv", "--results", results, "--tools", "octet,ort-static")
    rows = {r["tool"]: r for r in pages.read(results)}
    c.hold("advice: has a row", pages.NAMED in rows and "--samples 64" in rows[pages.NAMED]["command"], f"{rows} {done.stderr[-300:]}")
    if pages.NAMED not in rows:
        return
    out, row = c.folder / "named.onnx", rows[pages.NAMED]
    words = shlex.split(row["command"])
    c.convert(c.folder / "loud.onnx", out, "--data", c.folder / "loud_calib.npy", "-n", 64, *words[words.index("--samples") + 2:])
    x = np.load(c.folder / "loud_eval.npy")
    want, got = (np.concatenate([peer.session(p, exact=True).run(None, {"x": row[None]})[0] for row in x]) for p in (c.folder / "loud.onnx", out))
    value = ((want * got).sum(1) / np.linalg.norm(want, axis=1) / np.linalg.norm(got, axis=1)).mean()
    c.hold("advice: value", abs(float(row["value"]) - value) < 1e-5 and row["against"] == "ort-static" and row["against_low"] != "", f"{value} {row}")
    c.hold("advice: the page", "## Advice" in page and f"| net | {row['warned']}: `{row['command']}` |" in page, page[-900:])


def repaired(c):
    """A model on which another tool is better counts apart if the command that was named mends it."""
    row = dict.fromkeys(pages.FIELDS, "") | {"metric": "mse", "against": "ort-dynamic", "against_drop": "1", "against_low": "0.5", "against_high": "2"}
    even = {"against_drop": "0", "against_low": "-1", "against_high": "1"}
    rows = [row | {"model": m, "tool": "octet"} for m in ("mended", "named", "bare")] + [row | {"model": "mended", "tool": pages.NAMED} | even, row | {"model": "named", "tool": pages.NAMED}]
    said = pages.verdicts(rows)
    c.hold("advice: what it mends", all(t in said for t in ("Of 3 models", "worse on 3", "On 1 of the 3 where it is worse (mended) the conversion named", "It did not on 2 (named, bare).")), said)


def published(c):
    """docs/accuracy.md is what the script writes of tests/accuracy/yardstick.csv."""
    root = SCRIPT.parent.parent
    wanted = pages.page(pages.read(root / "tests/accuracy/yardstick.csv"))
    c.hold("docs/accuracy.md", (root / "docs/accuracy.md").read_text(encoding="utf-8") == wanted, "run scripts/yardstick --results tests/accuracy/yardstick.csv -o docs/accuracy.md")


def main():
    args = options(__doc__).parse_args()
    with Checker(args) as c:
        x, labels = write_model(c.folder)
        header = "name,model,calib,data,labels,metric\n"
        (c.folder / "list.csv").write_text(header + "net,net.onnx,calib.npy,eval.npy,labels.npy,top1\n")
        (c.folder / "list.toml").write_text('[[model]]\nname = "net"\nmodel = "net.onnx"\ncalib = "calib.npy"\ndata = "eval.npy"\nlabels = "labels.npy"\nmetric = "top1"\n')
        exact = float((peer.session(c.folder / "net.onnx").run(None, {"x": x})[0].argmax(1) == labels).mean())
        pages = []
        for path, more in (("list.csv", ()), ("list.toml", ("--tools", "octet"))):
            done, page = run(c, c.folder / path, *more)
            c.hold(f"{path}: exit", done.returncode == 0, done.stderr[-400:])
            pages.append(rows_of(page, True))
            head = next(iter(rows_of(page, False)), [""] * 8)
            c.hold(f"{path}: float and n", head[2:5] == ["top1", "300", f"{100 * exact:.2f} %"], str(head))
        c.hold("each tool has a row", [r[1] for r in pages[0]] == ["Octet", "ONNX Runtime, static", "ONNX Runtime, dynamic"], str(pages[0]))
        c.hold("both lists say the same", [[r[i] for i in (0, 1, 2, 3, 4, 5)] for r in pages[0][:1]] == [[r[i] for i in (0, 1, 2, 3, 4, 5)] for r in pages[1]], str(pages))
        out = c.folder / "ours.onnx"
        c.convert(c.folder / "net.onnx", out, "--data", c.folder / "calib.npy", "-n", 64)
        session = peer.session(out, exact=True)  # one sample at a time, since layers may be dynamic
        value = float(np.mean([session.run(None, {"x": x[i:i + 1]})[0].argmax() == labels[i] for i in range(len(x))]))
        size = out.stat().st_size / (c.folder / "net.onnx").stat().st_size
        ours = pages[0][0]
        c.hold("ours: value, drop and layers", ours[2] == f"{100 * value:.2f} %" and ours[3].startswith(f"{100 * (exact - value):+.2f} % [") and ours[5] == "2 of 2", str(ours))
        c.hold("ours: size", abs(float(ours[4]) - size) < 0.1, f"{ours[4]} for {size}")
        numbers(c, x, out)
        advice(c)
        repaired(c)
        (c.folder / "bad.onnx").write_bytes(b"no model")
        (c.folder / "worse.csv").write_text(header + "bad,bad.onnx,calib.npy,eval.npy,labels.npy,top1\nnet,net.onnx,calib.npy,eval.npy,labels.npy,top1\n"
                                            + "far,net.onnx,imagenet:calib,imagenet:eval,labels.npy,top1\n")
        done, page = run(c, c.folder / "worse.csv", "--tools", "octet")
        c.hold("a model that cannot be read", done.returncode == 1 and "bad: " in done.stderr and len(rows_of(page, True)) == 1, done.stderr[-300:])
        c.hold("what is not there is left out", "far: left out, for want of imagenet:calib" in done.stderr, done.stderr[-300:])
        published(c)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
