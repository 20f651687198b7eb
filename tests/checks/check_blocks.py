#!/usr/bin/env python3
"""Compares products with weights in blocks, activations in float or by block, with ONNX Runtime's of the same files.

    check_blocks.py [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

With accuracy_level 4 both quantize activations: what that loses must not be more than in ONNX Runtime. The loss is that of the outputs, to
those of the same weights with float activations.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
import onnxruntime

from pylib.judge import Checker, options, run_ort, sqnr
from pylib.plainnet import Net

ROWS, WIDE, INNER = 24, 320, 144
SLACK = 0.3   # dB
FORMS = (["--bits", "4"], ["--bits", "4", "--symmetric"], ["--bits", "8", "--block-size", "64"], ["--bits", "8", "--block-size", "128", "--symmetric"])


def two_products(path):
    """Activations whose channels differ in size, a product, a Relu, a product."""
    net = Net(4)
    net.node("Mul", ["x", net.const("s", value=np.exp(net.rng.standard_normal(WIDE)).astype(np.float32))], "scaled")
    net.node("MatMul", ["scaled", net.const("w1", WIDE, INNER)], "p1")
    net.node("Relu", ["p1"], "r1")
    net.node("MatMul", ["r1", net.const("w2", INNER, 100)], "y")
    return net.save(path, [ROWS, WIDE])


def levels(path):
    return [{a.name: a.i for a in n.attribute}.get("accuracy_level", 0) for n in onnx.load(path).graph.node if n.op_type == "MatMulNBits"]


def weights(path):
    return [t.raw_data for t in onnx.load(path).graph.initializer]


def compare(check, path, data, form):
    what, outs = " ".join(form), {}
    for level in (0, 4):
        out = check.folder / f"level{level}.onnx"
        check.convert(path, out, "--scheme", "weight-only", *form, "--accuracy-level", str(level))
        check.hold(f"{what}: level {level} is written", levels(out) == [level, level], str(levels(out)))
        outs[level] = run_ort(str(out), data), check.run_ours(out, data)
    check.hold(f"{what}: weights are the same", weights(check.folder / "level0.onnx") == weights(check.folder / "level4.onnx"))
    real = outs[0][0]
    check.hold(f"{what}: float activations", sqnr(real, outs[0][1]) > 100, f"{sqnr(real, outs[0][1]):.1f} dB")
    theirs, ours = (sqnr(real, o) for o in outs[4])
    check.hold(f"{what}: activations by block", theirs - SLACK < ours < 60, f"{ours:.2f} dB, ONNX Runtime {theirs:.2f} dB")


def dequantized(check, path, data):
    """In the form of DequantizeLinear ONNX Runtime rounds activations to 8 bits unless its session says otherwise: that is said."""
    out = check.folder / "dequantized.onnx"
    said = {}
    for form in ("qdq", "qoperator"):
        run = subprocess.run([check.qconvert, path, "--scheme", "weight-only", "--format", form, "-o", out if form == "qdq" else check.folder / "other.onnx"],
                             capture_output=True, text=True, check=True)
        said[form] = "session.qdq_matmulnbits_accuracy_level 1" in " ".join(run.stderr.split())
    check.hold("8-bit activations are said where they are", said == {"qdq": True, "qoperator": False}, str(said))
    np.save(check.folder / "x.npy", np.stack(data))
    for form, file in (("qdq", out), ("qoperator", check.folder / "other.onnx")):
        lint = subprocess.run([check.qconvert, "lint", file, "--target", "onnxruntime-x86", "--json", "-", "-q"], capture_output=True, text=True, check=False)
        kinds = [f["kind"] for f in json.loads(lint.stdout)["findings"] if "accuracy_level" in f["text"]]
        check.hold(f"{form}: lint", kinds == (["rounds"] if form == "qdq" else []), f"{kinds} {lint.stderr[-200:]}")
        run = subprocess.run([check.qeval, path, file, "--data", check.folder / "x.npy", "--no-latency"], capture_output=True, text=True, check=True)
        told = "session.qdq_matmulnbits_accuracy_level 1" in " ".join(run.stderr.split())
        check.hold(f"{form}: qeval", told == (form == "qdq"), run.stderr[-300:])
    ours = check.run_ours(out, data)
    real = run_ort(str(out), data)  # with the option
    session = onnxruntime.InferenceSession(str(out), providers=["CPUExecutionProvider"])
    plain = [np.stack([session.run(None, {"x": x})[0] for x in data])]
    check.hold("with the option ONNX Runtime computes what is measured here", sqnr(ours, real) > 90, f"{sqnr(ours, real):.1f} dB")
    check.hold("without it activations are rounded", sqnr(ours, plain) < 60, f"{sqnr(ours, plain):.1f} dB")


def conformer(path, width=144, layers=2):
    """Of the shape of a conformer's convolution modules: pointwise, gate, depthwise, pointwise, between Transposes."""
    net = Net(6)
    x = net.node("Transpose", ["x"], "first", perm=[0, 2, 1])
    for i in range(layers):
        a = net.node("Conv", [x, net.const(f"u{i}", 2 * width, width, 1, scale=0.1), net.const(f"ub{i}", 2 * width)], f"up{i}")
        half, gate = (net.node("Slice", [a, *(net.const(f"{c}{n}{i}", value=np.array([v], np.int64)) for n, v in (("from", at), ("to", at + width), ("axis", 1)))], f"{c}{i}")
                      for c, at in (("half", 0), ("gate", width)))
        b = net.node("Mul", [half, net.node("Sigmoid", [gate], f"open{i}")], f"gated{i}")
        c = net.node("Conv", [b, net.const(f"d{i}", width, 1, 5, scale=0.5)], f"deep{i}", group=width, pads=[2, 2])
        x = net.node("Add", [x, net.node("Conv", [c, net.const(f"p{i}", width, width, 1, scale=0.1), net.const(f"pb{i}", width)], f"down{i}")], f"sum{i}")
    net.node("Transpose", [x], "y", perm=[0, 2, 1])
    return net.save(path, [1, ROWS, width])


def pointwise(check):
    """Pointwise convolutions in blocks, in ONNX Runtime; their errors are those of the same layers of the float model."""
    path, rng = check.folder / "conformer.onnx", np.random.default_rng(9)
    conformer(path)
    data = [rng.standard_normal((1, ROWS, 144)).astype(np.float32) for _ in range(6)]
    real = run_ort(str(path), data)
    np.save(check.folder / "c.npy", np.concatenate(data))
    for form in (["--bits", "4"], ["--bits", "4", "--data", check.folder / "c.npy"], ["--bits", "8", "--format", "qdq"], ["--bits", "8"]):
        out, what = check.folder / "conformer4.onnx", " ".join(map(str, form[:3]))
        check.convert(path, out, "--scheme", "weight-only", *form)
        kinds = [n.op_type for n in onnx.load(out).graph.node]
        check.hold(f"pointwise {what}: four products, the others stay", (kinds.count("MatMulNBits") or kinds.count("MatMul"), kinds.count("Conv")) == (4, 2), str(kinds))
        theirs, ours = run_ort(str(out), data), check.run_ours(out, data)
        least = 38 if "8" in form else 15
        check.hold(f"pointwise {what}: ONNX Runtime", least < sqnr(real, theirs) < 60, f"{sqnr(real, theirs):.1f} dB")
        check.hold(f"pointwise {what}: as here", sqnr(theirs, ours) > 90, f"{sqnr(theirs, ours):.1f} dB")
    check.hold("pointwise: a fourth of the bytes", out.stat().st_size < 0.4 * path.stat().st_size, f"{out.stat().st_size} {path.stat().st_size}")
    report = check.folder / "pairs.json"
    subprocess.run([check.qeval, path, out, "--data", check.folder / "c.npy", "--no-latency", "-v", "--json", report], capture_output=True, check=True)
    worst = {layer["name"]: layer["sqnr_db"] for layer in json.loads(report.read_text())["models"][-1]["layers"] if layer["sqnr_db"] is not None}
    check.hold("pointwise: layers are compared in one order of dimensions", len(worst) > 10 and min(worst.values()) > 30, str(worst))


def main():
    args = options(__doc__).parse_args()
    rng = np.random.default_rng(8)
    data = [rng.standard_normal((ROWS, WIDE)).astype(np.float32) for _ in range(4)]
    with Checker(args) as check:
        path = check.folder / "float.onnx"
        two_products(path)
        for form in FORMS:
            compare(check, path, data, form)
        dequantized(check, path, data)
        pointwise(check)
        return check.finish()


if __name__ == "__main__":
    sys.exit(main())
