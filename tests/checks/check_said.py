#!/usr/bin/env python3
"""Checks that nothing is lost without a word: small seeded models of the kinds in which a part of the result may vanish while the whole looks good.

    check_said.py [--models N] [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Heads that join boxes in pixels with scores, and the ends of detectors' families (chosen rows, masks, keypoints, levels), are converted for every target: each part of the output keeps what it says, or a warning names a node. So do
columns in units of their own, and coordinates as the mean of many cells. Layers that stay
float between others give in ONNX Runtime what they give here, and the float layers are those that were announced. Goals reach operators without weights. A
model that came quantized, with weights that may saturate, and one with operators that the target lacks are converted with a warning, which --strict counts, and whose option makes the weights safe.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import shlex
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
from onnx import TensorProto, helper

from pylib import heads, smallnets
from pylib.judge import Checker, options, run_ort, sqnr

TARGETS = ("qnn", "litert", "st-neuralart", "onnxruntime-x86", "openvino", "tensorrt", "vitisai", "xnnpack", "nnapi", "octet", "generic")
EVERYWHERE = TARGETS[:3]  # quantize all that has a form
LEAST_DB = 12    # of a part, around its mean
FAULTS = ("collapse: ", "saturates: ", "rounds: ", "wraps: ", "trap: ")


def said(report):
    return [w for w in report["warnings"] if w.startswith(FAULTS)]


def part_db(want, got):
    """dB of the signal, around its mean, to the error."""
    want, got = want.astype(np.float64), got.astype(np.float64)
    noise = ((want - got) ** 2).sum()
    return 99.0 if noise == 0 else float(10 * np.log10(max(((want - want.mean()) ** 2).sum(), 1e-30) / noise))


def same_classes(want, got):
    """The share of each sample's numbers of classes that are found again, whole numbers alone."""
    whole = np.where(np.abs(got - np.round(got)) < 0.01, np.round(got), -1).astype(int)
    return np.mean([sum(min((w == k).sum(), (g == k).sum()) for k in np.unique(w)) / w.size for w, g in zip(want.astype(int), whole, strict=True)])


def check_heads(c, seed):
    h = heads.head(c.folder / "head.onnx", seed)
    data, out = c.folder / "head.npy", c.folder / "head.int8.onnx"
    np.save(data, np.stack(h.samples))
    floats = np.concatenate(run_ort(h.path, h.samples)[0])
    for target in {*EVERYWHERE, TARGETS[3 + seed % 8]}:
        report = c.convert(h.path, out, "--target", target, "--data", data)
        got = c.run_ours(out, h.samples)[0].reshape(floats.shape)
        for part, where in h.parts.items():
            index = (slice(None),) * h.axis + (where,)
            db = part_db(floats[index], got[index])
            c.hold(f"head {seed} for {target}: {part} are there", db > LEAST_DB or said(report), f"{db:.1f} dB, wanted {LEAST_DB}; warnings {report['warnings']}")


def check_end(c, name, seed):
    """The ends of detectors' families, for every target: each part keeps what it says. Where the graph chooses rows, another order of nearly equal ones is no loss, so values are compared sorted.
    What keeps a part in float is told with its reason."""
    h = heads.end(c.folder / "end.onnx", name, seed)
    data, out = c.folder / "end.npy", c.folder / "end.int8.onnx"
    np.save(data, np.stack(h.samples))
    floats, rows = np.concatenate(run_ort(h.path, h.samples)[0]), 3 - h.axis
    for target in TARGETS:
        report = c.convert(h.path, out, "--target", target, "--data", data)
        ours, theirs = c.run_ours(out, h.samples)[0].reshape(floats.shape), np.concatenate(run_ort(out, h.samples)[0])
        for part, where in h.parts.items():
            index = (slice(None),) * h.axis + (where,)
            for who, got in (("ours", ours), ("ONNX Runtime", theirs)):
                if part == "ids":   # scores that are nearly equal choose others
                    share = same_classes(floats[index], got[index])
                    c.hold(f"{name} {seed} for {target}, {who}: classes are there", share > 0.8, f"{share:.2f} of them; {report['warnings']}")
                    continue
                db = part_db(np.sort(floats[index], rows), np.sort(got[index], rows))
                c.hold(f"{name} {seed} for {target}, {who}: {part} are there", db > LEAST_DB, f"{db:.1f} dB, wanted {LEAST_DB}; {report['warnings']}")
        joins = [x for x in report["layers"] if x["op"] == "Concat"]
        c.hold(f"{name} {seed} for {target}: float joins have a reason", all(x["integer"] or x["why"] for x in joins), str(joins))


def check_columns(c, seed):
    """Outputs in units of their own: a product by a constant at the end, which also could be a part of the layer before it. Each column keeps what it says."""
    r = np.random.default_rng(seed)
    path, data, out = c.folder / "columns.onnx", c.folder / "columns.npy", c.folder / "columns.int8.onnx"
    units, shift = np.float32([1e-3, 1, 100, 1e4]), np.float32([0, 10, 0, 5e4])
    consts = {"w1": r.normal(size=(16, 64)).astype(np.float32) / 4, "b1": r.normal(size=64).astype(np.float32), "w2": r.normal(size=(64, 4)).astype(np.float32) / 8,
              "units": 1 / units if seed % 2 else units, "shift": shift, "shape": np.array([0, 2, 2])}
    nodes = [helper.make_node("Gemm", ["x", "w1", "b1"], ["a"]), helper.make_node("Relu", ["a"], ["b"]), helper.make_node("MatMul", ["b", "w2"], ["c"]),
             helper.make_node("Div" if seed % 2 else "Mul", ["c", "units"], ["d"])]
    nodes += [helper.make_node("Add", ["d", "shift"], ["y"])] if seed < 2 else [helper.make_node("Reshape", ["d", "shape"], ["y"])]
    put = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 16])]
    got = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4] if seed < 2 else ["n", 2, 2])]
    graph = helper.make_graph(nodes, "columns", put, got, [onnx.numpy_helper.from_array(v, k) for k, v in consts.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    samples = list(r.normal(size=(96, 1, 16)).astype(np.float32))
    np.save(data, np.concatenate(samples))
    floats = np.concatenate(run_ort(path, samples)[0]).reshape(-1, 4)
    for target in TARGETS:
        c.convert(path, out, "--target", target, "--data", data)
        for who, got in (("ours", c.run_ours(out, samples)[0]), ("ONNX Runtime", np.concatenate(run_ort(out, samples)[0]))):
            db = [part_db(w, g) for w, g in zip(floats.T, got.reshape(-1, 4).T, strict=True)]
            c.hold(f"columns {seed} for {target}, {who}: all are there", min(db) > LEAST_DB, str(np.round(db, 1)))


def check_expectation(c, seed):
    """Coordinates as the mean under a Softmax over cells, each of which is a few steps of 1/256: where the product stays float for them, so does what makes them."""
    r = np.random.default_rng(seed)
    path, data, out = c.folder / "mean.onnx", c.folder / "mean.npy", c.folder / "mean.int8.onnx"
    side = 12 + 4 * seed
    cells = np.stack(np.meshgrid(np.arange(side), np.arange(side)), -1).reshape(-1, 2).astype(np.float32) / side
    consts = {"w1": r.normal(size=(8, 1, 3, 3)).astype(np.float32) / 3, "w2": r.normal(size=(4, 8, 3, 3)).astype(np.float32) / 4, "cells": cells, "shape": np.array([1, 4, side * side])}
    nodes = [helper.make_node("Conv", ["x", "w1"], ["a"], pads=[1] * 4), helper.make_node("Relu", ["a"], ["b"]), helper.make_node("Conv", ["b", "w2"], ["c"], pads=[1] * 4),
             helper.make_node("Reshape", ["c", "shape"], ["d"]), helper.make_node("Softmax", ["d"], ["e"], axis=-1), helper.make_node("MatMul", ["e", "cells"], ["y"])]
    graph = helper.make_graph(nodes, "mean", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, side, side])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 2])],
                              [onnx.numpy_helper.from_array(v, k) for k, v in consts.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    samples = list(r.normal(size=(96, 1, 1, side, side)).astype(np.float32))
    np.save(data, np.concatenate(samples))
    floats = np.concatenate(run_ort(path, samples)[0])
    for target in TARGETS:
        c.convert(path, out, "--target", target, "--data", data)
        db = part_db(floats, c.run_ours(out, samples)[0].reshape(floats.shape))
        c.hold(f"mean of {side} x {side} cells for {target}", db > LEAST_DB, f"{db:.1f} dB")


def check_mixture(c, seed):
    """The weights have 7 bits, so that no CPU saturates."""
    path, data, out = c.folder / "mix.onnx", c.folder / "mix.npy", c.folder / "mix.int8.onnx"
    samples, between = heads.mixture(path, seed)
    np.save(data, np.stack(samples))
    real = between[seed % len(between)]
    for target in ("qnn", "generic", TARGETS[seed % len(TARGETS)]):
        report = c.convert(path, out, "--target", target, "--data", data, "--set", "any=- s7/channel/sym - -", "--set", f"name:{real}=float", "--no-method", "mixed-precision")
        near = sqnr(run_ort(out, samples), c.run_ours(out, samples))
        c.hold(f"mixture {seed} for {target}: ONNX Runtime and ours", near > 35, f"{near:.1f} dB")
        c.hold(f"mixture {seed} for {target}: {real} is announced as float", not next(x for x in report["layers"] if x["name"] == real)["integer"])
        c.hold(f"mixture {seed} for {target}: nothing else is said", not said(report), said(report))


SCORE = """import sys, numpy as np
with np.load(sys.argv[-1]) as a:
    y = a["out0"].reshape(-1, 5, 64)
print(np.unique(np.round(y[:, 4], 4)).size)
"""


def check_goal(c):
    """The last operator moves boxes by the size of the picture and leaves scores alone: in its result with one scale all scores are one number. The metric counts them."""
    n = smallnets.Net(3)
    x = n.node("Relu", [heads.conv(n, "x", 3, 12, stride=2)])
    y = n.node("Sigmoid", [n.node("Reshape", [heads.conv(n, x, 12, 5, 1), n.const(np.array([1, 5, 64]))])])
    y = n.node("Sub", [y, n.const(np.array([640, 640, 640, 640, 0], np.float32)[None, :, None])], "moved")
    path, data, out = c.folder / "goal.onnx", c.folder / "goal.npy", c.folder / "goal.int8.onnx"
    n.save(path, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])], [y])
    np.save(data, np.stack([n.rng.random((1, 3, 16, 16)).astype(np.float32) for _ in range(24)]))
    (c.folder / "score.py").write_text(SCORE)
    for best in (out, c.folder / "goal.int8.best.onnx"):
        best.unlink(missing_ok=True)
    done = subprocess.run([c.qconvert, path, "-o", out, "-q", "--target", "qnn", "--data", data, "--metric-cmd", f"{sys.executable} {c.folder / 'score.py'}",
                           "--max-drop", "command=80r%", "--json", c.folder / "goal.json", "--no-method", "mixed-precision"], capture_output=True, text=True, check=False)
    report = json.loads((c.folder / "goal.json").read_text())
    why = next(x["why"] for x in report["layers"] if x["name"] == "moved")
    c.hold("a goal moves operators without weights", done.returncode == 0 and why.startswith("left float to reach the goal"), f"exit {done.returncode}, {done.stderr[-300:]}, {why}")
    c.hold("its trials are told", len(report["trials"]) > 1, report["trials"])


def check_quantized(c):
    """Weights of one sign and full size for CPUs that add in 32 bits, converted for those that add pairs in 16."""
    n = smallnets.Net(4)
    w = np.abs(n.weights(64, 16)) + np.float32(1)
    y = n.node("Gemm", [n.node("Relu", [n.node("Gemm", ["x", n.const(w), n.const(n.small(16))], "wide")]), n.const(n.weights(16, 4)), n.const(n.small(4))], "last")
    path, data, qat, out = (c.folder / name for name in ("plain.onnx", "plain.npy", "qat.onnx", "qat.x86.onnx"))
    n.save(path, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64])], [y])
    np.save(data, np.stack([n.rng.random((1, 64)).astype(np.float32) for _ in range(24)]))
    c.convert(path, qat, "--target", "onnxruntime-vnni", "--data", data)
    for target, saturates in (("onnxruntime-x86", True), ("onnxruntime-vnni", False)):
        report = c.convert(qat, out, "--target", target)
        got = [w for w in said(report) if w.startswith("saturates: 'wide'")]
        c.hold(f"a model that came quantized, for {target}", bool(got) == saturates, report["warnings"])
    strict = subprocess.run([c.qconvert, qat, "-o", out, "-q", "--target", "onnxruntime-x86", "--data", data, "--strict"], capture_output=True, text=True, check=False)
    c.hold("--strict counts what saturates", strict.returncode == 1, f"exit {strict.returncode}: {strict.stderr[-200:]}")
    fresh = c.convert(path, out, "--target", "onnxruntime-x86", "--data", data)
    c.hold("the float model is made safe, and nothing is said", not said(fresh), said(fresh))


def products(x, w, pairs):
    """u8 [n,k] by weights [k,m]. pairs: as vpmaddubsw adds u8 and s8, two products in 16 bits, which saturate; else as vpmaddwd adds both widened, exactly."""
    p = x.astype(np.int64)[:, :, None] * w.astype(np.int64)[None]
    if not pairs:
        return p.sum(1)
    return np.clip(p[:, 0::2] + p[:, 1::2], -32768, 32767).sum(1)


def trained(path, form):
    """A layer as a framework writes it that trained it with weights of 8 bits, named with a space: 64 u8 inputs, s8 weights of which many lie at the ends."""
    rng = np.random.default_rng(5)
    w = rng.choice(np.array([-128, -127, -90, -3, 0, 77, 126, 127], np.int8), (64, 8))
    scale = rng.uniform(0.001, 0.003, 8).astype(np.float32) if form == "QDQ" else np.float32(0.002)
    zero = np.zeros_like(scale, np.int8)
    const = lambda v, name: onnx.numpy_helper.from_array(np.asarray(v), name)
    consts = [const(w, "w"), const(scale, "ws"), const(zero, "wz"), const(np.float32(1 / 255), "xs"), const(np.uint8(0), "xz"), const(np.float32(0.1), "ys"), const(np.uint8(128), "yz")]
    node = helper.make_node
    q = [node("QuantizeLinear", ["x", "xs", "xz"], ["xq"], "quantize")]
    if form == "QDQ":
        q += [node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"], "dx"), node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], "dw", axis=1), node("MatMul", ["xd", "wd"], ["p"], "the layer"),
              node("QuantizeLinear", ["p", "ys", "yz"], ["yq"], "qy")]
    else:
        q += [node("QLinearMatMul", ["xq", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["yq"], "the layer")]
    q += [node("DequantizeLinear", ["yq", "ys", "yz"], ["y"], "dy")]
    onnx.save(helper.make_model(helper.make_graph(q, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 64])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 8])],
                                                  consts), opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return w, np.broadcast_to(scale, 8)


def layer_of(path):
    """The quantized weights of the file, their scales and zero points."""
    model = onnx.load(path)
    consts = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    node = next(n for n in model.graph.node if n.name == "the layer")
    by = {o: n for n in model.graph.node for o in n.output}
    names = node.input[3:6] if node.op_type == "QLinearMatMul" else by[node.input[1]].input
    w, scale, zero = (consts[n] for n in names)
    return w, np.broadcast_to(scale, 8), zero, consts


def check_given_weights(c):
    """Weights that came quantized are made safe by the option that the warning prints: what CPUs without VNNI compute is what the numbers say. Without it nothing changes."""
    x = np.random.default_rng(6).integers(0, 256, (64, 64)).astype(np.uint8)
    x[0] = 255
    path, out = c.folder / "given.onnx", c.folder / "given.x86.onnx"
    for form in ("QDQ", "QOperator"):
        w, scale = trained(path, form)
        want = products(x, w, False) * scale
        c.hold(f"{form}: the given weights saturate", np.abs(products(x, w, True) * scale - want).max() > 1, "they do not")
        report = c.convert(path, out, "--target", "onnxruntime-x86")
        same = layer_of(out)[0]
        c.hold(f"{form}: the default keeps them", same.dtype == np.int8 and (same == w).all(), same.dtype)
        got = [s for s in said(report) if s.startswith("saturates: 'the layer'")]
        option = shlex.split(got[0].split("; ", 1)[1])[:2] if got and "; --set" in got[0] else []
        c.hold(f"{form}: the warning has an option", len(option) == 2, got)
        for how, rule in (("u8", option), ("s7", ["--set", "op:MatMul,QLinearMatMul=- s7/channel/sym"])):
            made = c.convert(path, out, "--target", "onnxruntime-x86", *rule)
            v, s, zero, consts = layer_of(out)
            real = products(x, v.astype(np.int64) - zero.astype(np.int64), False) * s  # as the file says
            cpu = (products(x, v, v.dtype == np.int8) - x.astype(np.int64).sum(1)[:, None] * zero.astype(np.int64)) * s  # as a CPU computes
            c.hold(f"{form}, {how}: nothing saturates", np.abs(cpu - real).max() == 0 and not said(made), f"{np.abs(cpu - real).max()}, {said(made)}")
            layer = next(e for e in made["layers"] if e["name"] == "the layer")
            near = 10 * np.log10((w.astype(float) ** 2).sum() / max(((w - (v.astype(float) - zero) * s / scale) ** 2).sum(), 1e-30))
            if how == "u8":
                c.hold(f"{form}: the same numbers", v.dtype == np.uint8 and (v.astype(int) - zero == w).all() and (s == scale).all(), near)
                c.hold(f"{form}: it is told", "written as u8 (exact)" in layer.get("remedy", "") and layer["weights"] == "uint8" and layer["per_channel"] == (form == "QDQ"), layer)
            else:
                c.hold(f"{form}: 7 bits", np.abs(v.astype(int)).max() <= 64 and near > 35, near)
                c.hold(f"{form}: what they cost is told", abs(layer["sqnr_weights_db"] - near) < 0.01 and f"SQNR {near:.1f} dB" in layer["remedy"], f"{near}: {layer}")
            c.hold(f"{form}, {how}: no weights are left behind", len(consts) <= 7, list(consts))
            c.hold(f"{form}, {how}: ONNX Runtime loads it", sqnr(run_ort(out, [x[:1] / np.float32(255)]), c.run_ours(out, [x[:1] / np.float32(255)])) > 60, "it differs")


def with_bias(path, form):
    """A convolution that came quantized, with a bias whose step is that of its products."""
    rng = np.random.default_rng(8)
    const = lambda v, name: onnx.numpy_helper.from_array(np.asarray(v), name)
    w, ws = rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8), rng.uniform(0.002, 0.004, 4).astype(np.float32)
    xs, b = np.float32(1 / 255), rng.integers(-20000, 20000, 4).astype(np.int32)
    consts = [const(w, "w"), const(ws, "ws"), const(np.zeros(4, np.int8), "wz"), const(xs, "xs"), const(np.uint8(0), "xz"), const(b, "b"), const(ws * xs, "bs"),
              const(np.zeros(4, np.int32), "bz"), const(np.float32(0.02), "ys"), const(np.uint8(128), "yz")]
    node = helper.make_node
    q = [node("QuantizeLinear", ["x", "xs", "xz"], ["xq"], "quantize")]
    if form == "QDQ":
        q += [node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"], "dx"), node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], "dw", axis=0),
              node("DequantizeLinear", ["b", "bs", "bz"], ["bd"], "db", axis=0), node("Conv", ["xd", "wd", "bd"], ["p"], "the layer"), node("QuantizeLinear", ["p", "ys", "yz"], ["yq"], "qy")]
    else:
        q += [node("QLinearConv", ["xq", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["yq"], "the layer")]
        consts = [k for k in consts if k.name not in ("bs", "bz")]
    q += [node("DequantizeLinear", ["yq", "ys", "yz"], ["y"], "dy")]
    onnx.save(helper.make_model(helper.make_graph(q, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
                                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 6, 6])], consts),
                                opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def check_given_bias(c):
    """A bias has the step of its layer's products: where weights get 7 bits and twice the step, so does the bias."""
    path, out = c.folder / "biased.onnx", c.folder / "biased.s7.onnx"
    x = np.random.default_rng(9).random((1, 3, 8, 8)).astype(np.float32) / 8  # small, so that the bias is much of the result
    for form in ("QDQ", "QOperator"):
        with_bias(path, form)
        c.convert(path, out, "--target", "onnxruntime-x86", "--set", "op:Conv,QLinearConv=- s7/channel/sym")
        consts = [onnx.numpy_helper.to_array(t) for t in onnx.load(out).graph.initializer]
        c.hold(f"{form}: a convolution gets 7 bits", any(v.dtype == np.int8 and v.ndim == 4 and 40 < np.abs(v.astype(int)).max() <= 64 for v in consts), [v.dtype for v in consts])
        for name, run in (("ONNX Runtime", run_ort), ("ours", c.run_ours)):
            db = sqnr(run(path, [x]), run(out, [x]))
            c.hold(f"{form}: its bias follows, {name}", db > 25, f"{db:.1f} dB")


def check_foreign(c):
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["p"], "product"), helper.make_node("FastGelu", ["p"], ["y"], "gelu", domain="com.microsoft")], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 64])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 64])],
                              [onnx.numpy_helper.from_array(np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32), "w")])
    path, out = c.folder / "foreign.onnx", c.folder / "foreign.int8.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8), path)
    for target, lacks in (("onnxruntime-x86", False), ("qnn", False), ("tensorrt", True), ("litert", True), ("generic", True), ("coreml", True)):
        for scheme in ("auto", "weight-only"):
            report = c.convert(path, out, "--target", target, "--scheme", scheme)
            c.hold(f"FastGelu for {target}, {scheme}", lacks == any("'gelu'" in w for w in said(report)), report["warnings"])
            found = c.folder / "found.json"
            subprocess.run([c.qconvert, "lint", out, "--target", target, "-q", "--json", found], check=True)
            fits = {t["name"]: t["fits"] for t in json.loads(found.read_text())["targets"]}
            c.hold(f"FastGelu for {target}, {scheme}: what fits", fits[target] != lacks, fits)


def check_missing(c):
    """NaN is a value for an Imputer, also behind what moves elements, and for nothing else."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((64, 8)).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    path, data, out = c.folder / "missing.onnx", c.folder / "missing.npy", c.folder / "missing.int8.onnx"
    np.save(data, x)
    weights = [onnx.numpy_helper.from_array(np.asarray(rng.standard_normal(dims) * 0.4, np.float32), name) for name, dims in (("w1", (8, 32)), ("w2", (32, 4)))]
    for fills in (True, False):
        first = helper.make_node("Imputer", ["xt"], ["f"], "fill", domain="ai.onnx.ml", imputed_value_floats=[0.5] * 8, replaced_value_float=float("nan"))
        first = first if fills else helper.make_node("Identity", ["xt"], ["f"], "fill")
        nodes = [helper.make_node("Identity", ["x"], ["xt"], "same"), first, helper.make_node("MatMul", ["f", "w1"], ["p"], "p"),
                 helper.make_node("Relu", ["p"], ["r"], "r"), helper.make_node("MatMul", ["r", "w2"], ["y"], "y")]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])], weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8), path)
        run = subprocess.run([c.qconvert, path, "--data", data, "-o", out, "-q"], capture_output=True, text=True)
        c.hold(f"NaN {'for' if fills else 'without'} an Imputer", (run.returncode == 0) == fills, f"exit {run.returncode}: {run.stderr[-200:]}")
        if fills and run.returncode == 0:
            batch = [x[i:i + 1] for i in range(16)]
            db = sqnr(run_ort(path, batch), run_ort(out, batch))
            c.hold("NaN for an Imputer: accuracy", db > 25, f"{db:.1f} dB")


def main():
    parser = options(__doc__)
    parser.add_argument("--models", type=int, default=20, help="of each kind")
    args = parser.parse_args()
    with Checker(args) as c:
        check_goal(c)
        check_quantized(c)
        check_given_weights(c)
        check_given_bias(c)
        check_foreign(c)
        for seed, name in enumerate(heads.ENDS):
            check_end(c, name, seed)
        check_missing(c)
        for seed in range(4):
            check_columns(c, seed)
        for seed in range(2):
            check_expectation(c, seed)
        for seed in range(args.models):
            check_heads(c, seed)
            check_mixture(c, seed)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
