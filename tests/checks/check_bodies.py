#!/usr/bin/env python3
"""Converts models whose weights are inside If, Loop and Scan, and judges them with ONNX Runtime.

    check_bodies.py [--qconvert PROGRAM] [--qeval PROGRAM] [--shared FOLDER] [-v]

Small networks with random weights are made: both branches of an If (once with the same names in both), a Loop, a Scan, an LSTM
inside an If inside a Loop, an LSTM spelled out in a Loop, branches that read one matrix, two products in each kind of body, all of them in float16, bodies that capture what was only moved, and bodies that capture a count; with --shared also silero_vad_16k. Each is converted by every scheme. The output must pass the ONNX checker, its
bodies must hold the operators of the scheme, and no product in them may have kept float weights that the scheme quantizes; the report
must list every node of every body; ONNX Runtime's outputs must be near to those of the float model, and ours to ONNX Runtime's; the
file must not depend on the number of threads.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import collections
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx

from pylib import bodies, tool
from pylib.judge import Checker, options, run_ort, sqnr

# Least dB against float, and against ONNX Runtime of the same file. Integers of ours are those of ONNX Runtime but for codes that the
# last bit of a float before them moves; it drops Casts of 16-bit floats that meet.
SCHEMES = {"dynamic": (30.0, 30.0), "weight-only": (18.0, 90.0), "fp16": (55.0, 50.0), "bf16": (38.0, 34.0), "static": (22.0, 25.0),
           "operators": (22.0, 25.0)}  # static, as operators on integers
WEIGHTED = ("MatMul", "Gemm", "Conv", "LSTM")
# What becomes of an operator with weights in a body: {scheme: {operator: count of it in the written bodies}}
NETS = {
    "branches": (bodies.branches, {
        "dynamic": {"MatMulInteger": 2, "Conv": 2, "MatMul": 0, "DynamicQuantizeLinear": 2},
        "weight-only": {"MatMulNBits": 2, "Conv": 2, "MatMul": 0},
        "fp16": {"Conv": 2, "Gemm": 2}, "bf16": {"Conv": 2, "Gemm": 2},
        "static": {"Conv": 2, "Gemm": 2}, "operators": {"QLinearConv": 2, "Conv": 0, "QGemm": 2, "Gemm": 0}}),
    "loop": (bodies.loop, {
        "dynamic": {"MatMulInteger": 2, "MatMul": 0, "Gemm": 0}, "weight-only": {"MatMulNBits": 2, "MatMul": 0, "Gemm": 0},
        "fp16": {"MatMul": 1, "Gemm": 1}, "bf16": {"MatMul": 1, "Gemm": 1},
        "static": {"MatMul": 0, "Gemm": 2}, "operators": {"QGemm": 2, "Gemm": 0}}),
    "scan": (bodies.scan, {
        "dynamic": {"MatMulInteger": 2, "MatMul": 0}, "weight-only": {"MatMulNBits": 2, "MatMul": 0},
        "fp16": {"Gemm": 2}, "bf16": {"Gemm": 2}, "static": {"Gemm": 2},
        "operators": {"QGemm": 2, "Gemm": 0}}),
    "nested": (bodies.nested, {
        "dynamic": {"MatMulInteger": 1, "MatMul": 0, "DynamicQuantizeLSTM": 1, "LSTM": 0},
        "weight-only": {"MatMulNBits": 1, "MatMul": 0, "LSTM": 1},
        "fp16": {"MatMul": 1, "LSTM": 1}, "bf16": {"MatMul": 1, "LSTM": 1}, "static": {"MatMul": 1, "LSTM": 1},
        "operators": {"QuantizeLinear": 1, "LSTM": 1}}),
}
NETS["lstm"] = (bodies.lstm, {
    "dynamic": {"MatMulInteger": 2, "MatMul": 0}, "weight-only": {"MatMulNBits": 2, "MatMul": 0}, "fp16": {"MatMul": 2}, "bf16": {"MatMul": 2},
    "static": {"MatMul": 0, "Gemm": 2}, "operators": {"MatMul": 0, "Gemm": 0}})
NETS["one matrix"] = (bodies.one_matrix, {
    "dynamic": {"MatMulInteger": 2, "MatMul": 0}, "weight-only": {"MatMulNBits": 2, "MatMul": 0}, "fp16": {"MatMul": 2}, "bf16": {"MatMul": 2},
    "static": {"MatMul": 2}, "operators": {"MatMul": 2}})
# The largest file, of the float one's: no matrix lies beside its quantized values, and none is quantized twice.
LARGEST = {"lstm": 0.45, "one matrix": 0.4}
SMALL = {"dynamic", "weight-only", "static", "operators"}
NETS["same names"] = (lambda path: bodies.branches(path, same_names=True, seed=15), NETS["branches"][1])


def in_bodies(model):
    return [(path, node) for path, node in bodies.each_node(model.graph) if path]


def all_constants(graph):
    """{name: element type} of all constants, nested ones included."""
    found = {t.name: t.data_type for t in graph.initializer}
    for _, node in bodies.each_node(graph):
        for a in node.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                found |= {t.name: t.data_type for t in a.g.initializer}
    return found


def check_weights(c, name, scheme, model):
    """The weights of the products that are left in bodies have the scheme's type."""
    constants = all_constants(model.graph)
    want = {"fp16": onnx.TensorProto.FLOAT16, "bf16": onnx.TensorProto.BFLOAT16}.get(scheme)
    for path, node in in_bodies(model):
        if node.op_type not in WEIGHTED or node.domain:
            continue
        if want:
            c.hold(f"{name} {scheme}: weights of {path}{node.name}", constants.get(node.input[1]) == want)
        elif scheme == "static" and node.op_type != "LSTM":
            made = {o: n.op_type for p, n in in_bodies(model) if p == path for o in n.output}
            c.hold(f"{name} static: inputs of {path}{node.name}", [made.get(i) for i in node.input[:2]] == ["DequantizeLinear"] * 2)


def check_report(c, name, scheme, report, before):
    """Every node of the bodies as the passes left them stands in the report, with a reason."""
    listed = {layer["name"]: layer for layer in report["layers"]}
    for path, node in in_bodies(before):
        layer = listed.get(f"{path}{node.name}")
        c.hold(f"{name} {scheme}: report of {path}{node.name}", layer is not None and layer["op"] == node.op_type and bool(layer["why"]))


def check(c, name, make, expected):
    model = c.folder / f"{name}.onnx"
    samples = make(model)
    data = c.folder / "calibration.npy"
    np.save(data, np.stack(samples[:16]))
    tests = samples[16:]
    prepared = c.folder / f"{name}.float.onnx"
    c.convert(model, prepared, "--scheme", "float")
    before, want = onnx.load(prepared), run_ort(model, tests)
    for scheme, (least, agree) in SCHEMES.items():
        out, again = c.folder / f"{name}.{scheme}.onnx", c.folder / f"{name}.{scheme}.again.onnx"
        static = scheme in ("static", "operators")
        how = ["--scheme", "static" if static else scheme]
        how += ["--bits", "8"] if scheme == "weight-only" else ["--format", "qoperator" if scheme == "operators" else "qdq"]
        how += ["--data", data] if static else ["--target", "octet"] if scheme == "bf16" else []  # elsewhere weights alone are bfloat16
        report = c.convert(model, out, *how, "--threads", "1")
        c.convert(model, again, *how, "--threads", "2")
        made = onnx.load(out)
        onnx.checker.check_model(made, full_check=not any(n.domain for _, n in bodies.each_node(made.graph)))
        if name in LARGEST and scheme in SMALL:
            share = out.stat().st_size / model.stat().st_size
            c.hold(f"{name} {scheme}: size", share < LARGEST[name], f"{share:.2f} of the float file")
        counts = collections.Counter(n.op_type for _, n in in_bodies(made))
        for op, count in expected[scheme].items():
            c.hold(f"{name} {scheme}: {op} in bodies", counts[op] == count, f"{counts[op]}, expected {count}")
        check_weights(c, name, scheme, made)
        check_report(c, name, scheme, report, before)
        same = [n.SerializeToString() for n in made.graph.node] == [n.SerializeToString() for n in onnx.load(again).graph.node]
        c.hold(f"{name} {scheme}: the same with two threads", same)
        if scheme == "bf16":  # ONNX Runtime's CPU kernels do not take it
            got = c.run_ours(out, tests)
            c.hold(f"{name} {scheme}: ours against float", sqnr(want, got) > least, f"{sqnr(want, got):.1f} dB")
            continue
        got = run_ort(out, tests)
        c.hold(f"{name} {scheme}: against float", sqnr(want, got) > least, f"{sqnr(want, got):.1f} dB")
        ours = c.run_ours(out, tests)
        c.hold(f"{name} {scheme}: ours", sqnr(got, ours) > agree, f"{sqnr(got, ours):.1f} dB")


def check_halves(c):
    """A model of 16-bit floats in blocks stays what it is, in bodies and at their ends: no Cast of a float, scales in the type."""
    float16, bfloat16 = onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16
    nets = {name: NETS[name][0] for name in ("branches", "loop", "scan", "lstm", "one matrix")}
    nets |= {f"two in {place}": lambda path, place=place: bodies.two_products(path, place) for place in ("if", "branches", "loop", "scan")}
    for name, make in nets.items():
        model, half, out = (c.folder / f"{name}.{end}.onnx" for end in ("wide", "half", "half.q"))
        tests = make(model)[:8]
        c.convert(model, c.folder / "wide.q.onnx", "--scheme", "weight-only")
        want = run_ort(c.folder / "wide.q.onnx", tests)
        for to, least in ((float16, 30.0), (bfloat16, 20.0)):
            if to == bfloat16 and name == "branches":
                continue  # its convolutions would need opset 22
            what = f"{name} in {'float16' if to == float16 else 'bfloat16'}"
            net = onnx.load(model)
            bodies.narrow(net.graph, to)
            onnx.save(net, half)
            c.convert(half, out, "--scheme", "weight-only", *(["--target", "octet"] if to == bfloat16 else []))
            made = onnx.load(out)
            left = [f"{path}{n.name}" for path, n in bodies.each_node(made.graph) if n.op_type == "Cast"]
            c.hold(f"{what}: no Cast", not left, str(left))
            constants = all_constants(made.graph)
            c.hold(f"{what}: scales", {t for n, t in constants.items() if re.search(r"_scale(_\d+)?$", n)} == {to}, str(constants))
            c.hold(f"{what}: no float32", onnx.TensorProto.FLOAT not in constants.values(), str(constants))
            if to == bfloat16:  # .npy has none
                bodies.widen_outputs(made)
                onnx.save(made, out)
            got = c.run_ours(out, tests)
            c.hold(f"{what}: ours as float32 in the same bits", sqnr(want, got) > least, f"{sqnr(want, got):.1f} dB")
            if to == float16:
                theirs = [x.astype(np.float32) for x in run_ort(out, [x.astype(np.float16) for x in tests])]
                c.hold(f"{what}: ONNX Runtime", sqnr(want, theirs) > least, f"{sqnr(want, theirs):.1f} dB")


def check_forecast(c):
    """Without samples the size with them is foretold: a matrix that two branches read is counted once."""
    model, out = c.folder / "one matrix.onnx", c.folder / "forecast.onnx"
    samples = bodies.one_matrix(model)
    np.save(c.folder / "calibration.npy", np.stack(samples[:16]))
    said = tool.run([c.qconvert, model, "-o", out])
    found = re.search(r"a file of about ([\d.]+) kB|file would be about as large", " ".join(said.split()))
    foretold = float(found[1]) if found and found[1] else out.stat().st_size / 1000
    c.convert(model, out, "--data", c.folder / "calibration.npy")
    size = out.stat().st_size / 1000
    c.hold("forecast of the size", found and abs(foretold / size - 1) < 0.25, f"{found and found[0]}, it is {size:.1f} kB")


def check_rounding(c):
    """With samples, weights in blocks lose in a body what they lose outside of it, and both branches keep one matrix."""
    lost, sizes = {}, {}
    for place in ("main", "if", "branches", "loop", "scan"):
        model, out, data = (c.folder / f"rounded.{place}.{end}" for end in ("onnx", "q.onnx", "npy"))
        samples = bodies.two_products(model, place)
        np.save(data, np.stack(samples[:64]))
        c.convert(model, out, "--scheme", "weight-only")
        nearest = sqnr(run_ort(model, samples[64:]), run_ort(out, samples[64:]))
        report = c.convert(model, out, "--scheme", "weight-only", "--data", data, "--threads", "1")
        c.convert(model, c.folder / "again.onnx", "--scheme", "weight-only", "--data", data, "--threads", "2")
        c.hold(f"rounding in {place}: the same with two threads", constants_of(out) == constants_of(c.folder / "again.onnx"))
        lost[place] = sqnr(run_ort(model, samples[64:]), run_ort(out, samples[64:]))
        sizes[place] = out.stat().st_size
        c.hold(f"rounding in {place}: better than to the nearest", lost[place] > nearest + 3, f"{nearest:.1f} dB, then {lost[place]:.1f} dB")
        c.hold(f"rounding in {place}: as outside", abs(lost[place] - lost["main"]) < 0.5, f"{lost[place]:.1f} dB, outside {lost['main']:.1f} dB")
        ran = {m["name"]: m for m in report["methods"]}.get("block-rounding", {})
        c.hold(f"rounding in {place}: is reported", ran.get("ran") is True, str(ran))
    c.hold("rounding: branches keep one matrix", sizes["branches"] < sizes["if"] + 1500, str(sizes))


def check_compensated(c):
    """Weights of integer layers are rounded on their inputs in a body too, and made safe from saturation as outside of it."""
    types = {}
    for place in ("main", "if", "branches", "loop", "scan"):
        model, out, data = (c.folder / f"compensated.{place}.{end}" for end in ("onnx", "q.onnx", "npy"))
        samples = bodies.two_products(model, place)
        np.save(data, np.stack(samples[:64]))
        want, noise = run_ort(model, samples[64:]), {}
        for way, words in (("with", ["--threads", "1"]), ("again", ["--threads", "2"]), ("without", ["--no-method", "compensated-rounding"])):
            report = c.convert(model, out, "--data", data, "--scheme", "static", *words)
            noise[way] = sqnr(want, run_ort(out, samples[64:]))
            if way == "with":
                first = constants_of(out)
                types[place] = {layer["weights"] for layer in report["layers"] if layer["name"].endswith(("first", "second"))}
            elif way == "again":
                c.hold(f"compensated in {place}: the same with two threads", constants_of(out) == first)
        c.hold(f"compensated in {place}: better than to the nearest", noise["with"] > noise["without"] + 1, f"{noise['without']:.1f} dB, then {noise['with']:.1f} dB")
    c.hold("compensated: weights are safe in bodies as outside", all(t == types["main"] for t in types.values()), str(types))


def constants_of(path):
    return sorted(t.raw_data for t in onnx.load(path).graph.initializer)


def check_inside(c):
    """Reports, rules and evaluations name the nodes of bodies alike, and a branch counts that few samples take."""
    model, out, rules, data = c.folder / "inside.onnx", c.folder / "inside.q.onnx", c.folder / "rules.txt", c.folder / "inside.npy"
    samples = np.stack(bodies.branches(model))
    means = samples.mean(axis=(1, 2, 3, 4), keepdims=True)
    for count, taken in ((15, 2), (16, 1), (17, 2), (24, 2), (16, 0)):  # samples that take the branch `then`, all in front
        side = np.where(np.arange(24) < taken, np.float32(0.2), np.float32(-0.2)).reshape(-1, 1, 1, 1, 1)
        np.save(data, (samples - means + side)[:count])
        layers = {layer["name"]: layer for layer in c.convert(model, out, "--data", data)["layers"]}
        schemes = [layers[f"choose/{branch}"]["scheme"] for branch in ("then_branch/a/conv", "then_branch/a/fc", "else_branch/b/conv", "else_branch/b/fc")]
        want = ["static"] * 4 if taken else ["float", "dynamic", "static", "static"]  # a convolution has no dynamic form
        c.hold(f"inside: {taken} of {count} samples", schemes == want, f"{schemes}")
    np.save(data, samples)
    rules.write_text("# octet policy 1\nname:choose/then_branch/a/conv float - - -\nname:choose/else_branch/* dynamic - - -\n")
    layers = {layer["name"]: layer for layer in c.convert(model, out, "--data", data, "--policy", rules)["layers"]}
    got = [layers[f"choose/{n}"]["scheme"] for n in ("then_branch/a/conv", "then_branch/a/fc", "else_branch/b/fc")]
    c.hold("inside: rules by name", got == ["float", "static", "dynamic"], f"{got}")
    c.convert(model, out, "--data", data)
    report = c.folder / "layers.json"
    tool.run([c.qeval, model, out, "--data", data, "--layers", "-q", "--json", report])
    found = {layer["name"]: layer["scheme"] for m in json.loads(report.read_text())["models"] for layer in m.get("layers", [])}
    for name in ("then_branch/a/conv", "then_branch/a/fc", "else_branch/b/conv", "else_branch/b/fc"):
        c.hold(f"inside: qeval --layers of {name}", found.get(f"choose/{name}") == "int8", f"{found.get(f'choose/{name}')}")
        said = tool.run([c.qconvert, "explain", out, f"choose/{name}"])
        c.hold(f"inside: explain {name}", re.search(r"^decision +static, runs on integers", said, re.MULTILINE), said)
    said = tool.run([c.qconvert, model, "-o", out])
    c.hold("inside: hint of the size", re.search(r"a file of about [1-9][\d.]* kB", said), said[-300:])


def check_delicate(c):
    """A product in a body whose input 8 bits do not hold stays float, alone; without that choice the outputs are of little use."""
    for place in ("if", "nested", "loop", "scan"):
        model, out, data = (c.folder / f"delicate.{place}.{end}" for end in ("onnx", "q.onnx", "npy"))
        samples, where = bodies.delicate(model, place)
        np.save(data, np.stack(samples[:64]))
        tests = samples[64:]
        want = run_ort(model, tests)
        layers = {layer["name"]: layer["scheme"] for layer in c.convert(model, out, "--data", data)["layers"]}
        got = [layers.get(f"{where}{n}") for n in ("delicate", "second", "third")]
        c.hold(f"delicate in {place}: it alone stays float", got == ["float", "static", "static"], f"{got}")
        rounded = {n.op_type for path, n in in_bodies(onnx.load(out)) if set(n.output) & set(inputs_of(out, "part/delicate"))}
        c.hold(f"delicate in {place}: reads no rounded value", "DequantizeLinear" not in rounded, str(rounded))
        with_it = sqnr(want, run_ort(out, tests))
        c.convert(model, out, "--data", data, "--no-method", "mixed-precision")
        without = sqnr(want, run_ort(out, tests))
        c.hold(f"delicate in {place}: of use only with it", without < 20 < 26 < with_it, f"{with_it:.1f} dB, {without:.1f} dB without")
        report = c.convert(model, out, "--data", data, "--no-method", "mixed-precision", "--min-sqnr", "30")
        layers, reached = {layer["name"]: layer["scheme"] for layer in report["layers"]}, sqnr(want, run_ort(out, tests))
        got = [layers.get(f"{where}{n}") for n in ("delicate", "second", "third")]
        c.hold(f"delicate in {place}: a goal leaves it float, alone", report["goal_met"] and got == ["float", "static", "static"] and reached > 26, f"{got}, {reached:.1f} dB")


def check_shifted(c):
    """Biases make up for the mean error of rounded inputs in a body as they do outside."""
    for place in ("main", "if", "loop", "scan"):
        model, out, data = (c.folder / f"shifted.{place}.{end}" for end in ("onnx", "q.onnx", "npy"))
        samples = bodies.shifted(model, place)
        np.save(data, np.stack(samples[:64]))
        want = run_ort(model, samples[64:])
        got = []
        for without in ([], ["--no-method", "bias-inputs"]):
            report = c.convert(model, out, "--data", data, "--scheme", "static", "--no-method", "mixed-precision", "--no-method", "bias-sequence", *without)
            got.append(sqnr(want, run_ort(out, samples[64:])))
        c.hold(f"shifted in {place}: biases", got[0] > 40 > 28 > got[1], f"{got[0]:.1f} dB, {got[1]:.1f} dB without")
        c.hold(f"shifted in {place}: alike everywhere", report["layers"] and sum(y["scheme"] == "static" for y in report["layers"] if y["op"] == "Gemm") == 2)
    report = c.convert(model, out, "--data", data, "--scheme", "static")
    told = next(m for m in report["methods"] if m["name"] == "bias-sequence")
    c.hold("shifted in scan: the sequence says what it leaves out", "If, Loop or Scan" in told.get("why", ""), str(told))


def inputs_of(path, name):
    return next(list(n.input) for _, n in in_bodies(onnx.load(path)) if n.name == name)


# What ONNX Runtime moves a DequantizeLinear across, or removes; and the bodies that capture the result.
MOVED = [(("Transpose",), "if"), (("Reshape", "Transpose"), "nested"), (("Transpose", "Slice"), "loop"), (("Unsqueeze", "Squeeze"), "scan"),
         (("MaxPool", "Dropout", "Transpose"), "if"), (("Transpose", "Reshape"), "inside")]
MOVED_WAYS = {"default": [], "moves float": ["--set", "name:*move_*=float"]}      # each has these, and two of the others in turn
MORE_WAYS = {"operators": ["--format", "qoperator"], "rounded": ["--no-recover"],
             "stored": ["--scheme", "stored"], "fp16": ["--scheme", "fp16"], "vnni": ["--target", "onnxruntime-vnni"], "bytes": ["--input-type", "u8"],
             "openvino": ["--target", "openvino"]}
LOADS = "import sys, onnxruntime as o\nfor p in sys.argv[1:]: o.InferenceSession(p, providers=['CPUExecutionProvider']); print(p, flush=True)"


def loads(path):
    """Whether ONNX Runtime loads a file, in a process of its own, which it may end."""
    return subprocess.run([sys.executable, "-c", LOADS, str(path)], capture_output=True, check=False).returncode == 0


def check_moved(c):
    """What bodies capture behind nodes that move it loads in ONNX Runtime, which ends its process for a DequantizeLinear before such nodes."""
    made, turns = [], itertools.cycle(MORE_WAYS.items())
    for k, (moves, body) in enumerate(MOVED):
        for outputs in (False, True)[: 1 + (body == "if")]:
            model, data = c.folder / f"moved{k}{outputs}.onnx", c.folder / "moved.npy"
            samples = bodies.moved(model, moves, body, outputs, seed=30 + k)
            np.save(data, np.stack(samples[:16]))
            for way, words in (*MOVED_WAYS.items(), next(turns), next(turns)):
                out = c.folder / f"moved{k}{outputs}.{way}.onnx"
                c.convert(model, out, "--data", data, *words)
                made.append((f"moved by {' and '.join(moves)}, {body}{', outputs' if outputs else ''}, {way}", model, out, samples[16:], way))
    for what, model, out, tests, way in made:
        loaded = loads(out)
        c.hold(f"{what}: loads", loaded)
        if loaded and way != "bytes":
            want, got, ours = run_ort(model, tests), run_ort(out, tests), c.run_ours(out, tests)
            c.hold(f"{what}: against float", sqnr(want, got) > 22, f"{sqnr(want, got):.1f} dB")
            c.hold(f"{what}: ours", sqnr(got, ours) > 25, f"{sqnr(got, ours):.1f} dB")


def check_counted(c):
    """A count that is known as soon as another Loop has run, and that a body reads from around it. (ONNX Runtime 1.32 ends its process for this model.)"""
    model = c.folder / "counted.onnx"
    samples, wanted = bodies.counted(model)
    got = c.run_ours(model, samples)[0].reshape(wanted.shape)
    c.hold("counted: ours", np.abs(got - wanted).max() < 1e-5, f"{np.abs(got - wanted).max():.2g}")


def check_silero(c, path):
    """A detector of voices: its LSTM is outside, its Ifs choose between forms of shapes."""
    rng = np.random.default_rng(5)
    feeds = [{"input": np.asarray(rng.standard_normal((1, 576)) * 0.1, np.float32),
              "state": np.asarray(rng.standard_normal((2, 1, 128)) * 0.2, np.float32), "sr": np.array(16000, np.int64)} for _ in range(8)]
    data = c.folder / "silero.npz"
    np.savez(data, **{k: np.stack([f[k] for f in feeds]) for k in feeds[0]})
    prepared = c.folder / "silero.float.onnx"
    c.convert(path, prepared, "--scheme", "float")
    want, before = run_ort(path, feeds), onnx.load(prepared)
    c.hold("silero: bodies", len(in_bodies(before)) > 10)
    for scheme, least in (("dynamic", 25.0), ("weight-only", 30.0), ("fp16", 45.0), ("static", 15.0)):
        out = c.folder / f"silero.{scheme}.onnx"
        report = c.convert(path, out, "--scheme", scheme, *(["--data", str(data)] if scheme == "static" else []))
        onnx.checker.check_model(onnx.load(out))
        check_report(c, "silero", scheme, report, before)
        got = run_ort(out, feeds)
        c.hold(f"silero {scheme}: against float", sqnr(want, got) > least, f"{sqnr(want, got):.1f} dB")


def main():
    parser = options(__doc__)
    parser.add_argument("--shared", type=Path, default=tool.SHARED, help="where models/silero_vad_16k.onnx may lie")
    args = parser.parse_args()
    with Checker(args) as c:
        for name, (make, expected) in NETS.items():
            check(c, name, make, expected)
        check_halves(c)
        check_forecast(c)
        check_rounding(c)
        check_compensated(c)
        check_inside(c)
        check_delicate(c)
        check_shifted(c)
        check_moved(c)
        check_counted(c)
        silero = args.shared / "models" / "silero_vad_16k.onnx"
        if silero.exists():
            check_silero(c, silero)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
