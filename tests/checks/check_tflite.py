#!/usr/bin/env python3
"""Models written as .tflite, run by LiteRT with its default kernels (XNNPACK) and with its reference kernels, against ONNX Runtime on the
same conversion written as .onnx.

    tests/checks/check_tflite.py [--qconvert PROGRAM] [--only WORD] [-v]

- all of these are also read, and compute in ONNX Runtime what LiteRT computes of the file
- layers: one layer or few, in many shapes (pads, strides, dilations, groups, one axis, orders of axes): as floats, equal but for rounding; as
  int8, at most so many steps of the output's scale apart as the case says, and with no operator left on reals
- weights that are stored in 8 bits for layers on reals
- models: those of testdata/models: each is written and computes the same, or is refused with node and remedy
- networks: trained ones, where there are any: agreement and noise against ONNX Runtime; the file is no larger than 1.03 times the .onnx
- refusals: what cannot be written, before anything is; a batch of another size; what the file says of itself
- docs/tflite.md has the table of operators

Needs Python packages (ai_edge_litert among them): runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
packages.need("numpy", "onnx", "onnxruntime", "ai_edge_litert")
import numpy as np
import onnx
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from pylib import metrics, peer, plainnet, tflite_page, tool
from pylib.judge import RELATIVE, Checker, options, relative_error, run_ort, stored_case

KERNELS = {"xnnpack": OpResolverType.AUTO, "reference": OpResolverType.BUILTIN_REF}
LEAST_MODELS = 80  # of testdata/models that can be written


# ---- running ----

def moved(said, end, name):
    """Whether the conversion says that an input or output has its channels last."""
    return re.search(rf"{end} '{re.escape(name)}' is \[[-\d,]*\]: (NHWC|channels last)", said) is not None


made = {}  # {(path, kernels): (what tells one file of that path from the next, interpreter)}


def interpreter_of(path, kernels):
    file = Path(path).stat()
    stamp = file.st_mtime_ns, file.st_ino, file.st_size
    if made.get((path, kernels), (None,))[0] != stamp:
        made[path, kernels] = stamp, Interpreter(model_path=str(path), experimental_op_resolver_type=KERNELS[kernels])
    interpreter = made[path, kernels][1]
    interpreter.allocate_tensors()  # variables are reset where they lie
    interpreter.reset_all_variables()
    return interpreter


def run_theirs(path, feeds, kernels, said):
    """{output: array} in ONNX's order of axes, for {input: array} in it. LiteRT gets the batch that the arrays have."""
    interpreter = interpreter_of(path, kernels)
    signature = interpreter.get_signature_list()["serving_default"]
    assert sorted(signature["inputs"]) == sorted(feeds), signature
    runner = interpreter.get_signature_runner()
    given = {name: np.moveaxis(x, 1, -1) if moved(said, "input", name) else x for name, x in feeds.items()}
    got = runner(**{name: np.ascontiguousarray(x) for name, x in given.items()})
    return {name: np.moveaxis(y, -1, 1) if moved(said, "output", name) else y for name, y in got.items()}


def run_micro(path, x, said, name, output=None):
    """The first output in tflite-micro's interpreter, of one input; in ONNX's order of axes where it is named."""
    from tflite_micro.python.tflite_micro import runtime
    interpreter = runtime.Interpreter.from_file(str(path), arena_size=16 << 20)
    interpreter.set_input(np.ascontiguousarray(np.moveaxis(x, 1, -1) if moved(said, "input", name) else x), 0)
    interpreter.invoke()
    y = interpreter.get_output(0)
    return np.moveaxis(y, -1, 1) if output and moved(said, "output", output) else y


def write(c, model, out, *more, fails=False):
    """What qconvert says; with `fails` (status, text) of a run that fails."""
    done = subprocess.run([c.qconvert, model, "-o", out, *map(str, more)], capture_output=True, text=True, check=False)
    if fails:
        return done.returncode, done.stderr
    if done.returncode:
        raise tool.ToolError(f"qconvert exit {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout + done.stderr


def output_scale(path):
    """The scale of what the last quantizer before the first output makes; 0 where it is none."""
    model = onnx.load(path)
    values = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer}
    makers = {o: n for n in model.graph.node for o in n.output}
    name = model.graph.output[0].name
    while name in makers and makers[name].op_type in ("DequantizeLinear", "Reshape", "Transpose", "Identity"):
        node = makers[name]
        if node.op_type == "DequantizeLinear":
            return float(values[node.input[1]])
        name = node.input[0]
    return 0.0


def real_operators(path):
    """Names of the operators of a file that compute on float32, other than those that quantize."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(Path(path).read_bytes(), 0))
    graph = model.subgraphs[0]
    names = {v: k for k, v in vars(schema.BuiltinOperator).items() if not k.startswith("_")}
    found = []
    for op in graph.operators:
        name = names[model.operatorCodes[op.opcodeIndex].builtinCode]
        if name not in ("QUANTIZE", "DEQUANTIZE") and any(graph.tensors[t].type == schema.TensorType.FLOAT32 for t in op.outputs):
            found.append(name)
    return found


# ---- reading ----

def first(said, end, name):
    """Whether reading a file gives an input or output the channels first."""
    return re.search(rf"{end} '{re.escape(name)}' is \[[-\d,]*\], with the channels first", said) is not None


def hold_read(c, name, path, feeds, said, least):
    """A file that is read computes in ONNX Runtime, whose optimizer is off, what LiteRT computes of the file. least: dB; or a number of steps, as
    text, with 0 for floats."""
    back = c.folder / "back.onnx"
    read = write(c, path, back, "--scheme", "float", "--target", "litert")
    session = peer.session(back, optimize=False)
    of, worst, same = {}, 0.0, True
    for feed in feeds:
        want = run_theirs(path, feed, "xnnpack", said)
        given = {n: np.moveaxis(x, 1, -1) if moved(said, "input", n) else x for n, x in feed.items()}
        given = {n: np.ascontiguousarray(np.moveaxis(x, -1, 1)) if first(read, "input", n) else x for n, x in given.items()}
        for output, y in zip(session.get_outputs(), session.run(None, given), strict=True):
            theirs = np.moveaxis(want[output.name], 1, -1) if moved(said, "output", output.name) else want[output.name]
            y = np.moveaxis(y, 1, -1) if first(read, "output", output.name) else y
            same = same and y.shape == theirs.shape
            if same:
                of.setdefault(output.name, metrics.Sqnr()).add(theirs, y)
                step = output_scale(back) or float(theirs.max() - theirs.min()) / 255
                worst = max(worst, relative_error(theirs, y) if least == "0" else float(np.abs(theirs - y).max()) / step)
    if isinstance(least, str):
        c.hold(f"{name}: read", same and worst <= (RELATIVE if least == "0" else int(least) + 0.01), f"{worst:.2g} apart, shapes are equal: {same}")
    else:
        db = min(s.db for s in of.values())
        c.hold(f"{name}: read", same and db >= least, f"{db:.1f} dB, at least {least}")


def hold_lstm_counts(c):
    """Layers that the runtimes compute on int8 count as such: LSTMs are in a .tflite file, and computed in float here."""
    net, report = plainnet.Net(3, opset=14), c.folder / "counts.json"
    lstm_ways("bidirectional", True)[1](net)
    model, data, file = (c.folder / f"counts.{end}" for end in ("onnx", "npy", "tflite"))
    np.save(data, np.stack(net.save(model, ("n", 7, 6))))
    said = write(c, model, file, "--data", data, "--json", report)
    c.hold("an LSTM of int8 is a layer of int8", "3 of 3 layers with weights are int8" in " ".join(said.split()), said[:300])
    done = subprocess.run([c.qconvert, "lint", "--target", "litert", file], capture_output=True, text=True, check=False)
    c.hold("lint counts it so", "3 of 3 layers with weights" in " ".join(done.stdout.split()), done.stdout[:300])


def hold_mutations(c, path):
    """Damaged files: a model, or an error with a remedy."""
    whole, rng, odd = path.read_bytes(), np.random.default_rng(7), []
    bad = c.folder / "bad.tflite"
    for _ in range(200):
        data = bytearray(whole)
        for at in rng.integers(0, len(data), rng.integers(1, 8)):
            data[at] = rng.choice([0, 1, 0x7f, 0x80, 0xff, rng.integers(256)])
        bad.write_bytes(data[:rng.integers(8, len(data))] if rng.random() < 0.2 else data)
        done = subprocess.run([c.qconvert, "lint", bad], capture_output=True, text=True, errors="replace", check=False)
        if done.returncode not in (0, 1) and not (done.returncode in (4, 5, 6) and "hint:" in done.stderr):
            odd.append(f"{done.returncode} {done.stderr.strip()[-200:]}")
    c.hold("200 damaged files", not odd, "\n".join(odd[:5]))


def hold_axes(c):
    """qeval compares a model and its .tflite file whichever has the channels last: their numbers are equal but for rounding."""
    for name in ("keras", "conv of one axis", "conv"):
        (shape, build), _ = LAYERS[name]
        net = plainnet.Net(3, opset=14)
        build(net)
        model, data, file, report = (c.folder / n for n in ("axes.onnx", "axes.npy", "axes.tflite", "axes.json"))
        np.save(data, np.stack(net.save(model, ("n", *shape[1:]))))
        write(c, model, file, "--scheme", "float")
        for first, second in ((model, file), (file, model)):
            if first == file and name == "keras":  # the samples have the model's order
                continue
            done = subprocess.run([c.qeval, first, second, "--data", data, "--no-latency", "-q", "--json", report], capture_output=True, text=True, check=False)
            found = json.loads(report.read_text()) if done.returncode == 0 else {}
            db = found["models"][1]["metrics"]["sqnr"] if found else -1
            c.hold(f"{name}: qeval of {first.suffix} and {second.suffix}", found and (db is None or db > 100), f"{done.returncode} {done.stderr[-300:]} {db} dB")


# ---- layers ----

def conv(shape, kernel, out=6, group=1, **attrs):
    def build(n):
        n.node("Conv", ["x", n.const("w", out, shape[1] // group, *kernel, scale=0.3), n.const("b", out)], "y", group=group, **attrs)
    return shape, build


def transposed(shape, kernel, out=5, **attrs):
    def build(n):
        n.node("ConvTranspose", ["x", n.const("w", shape[1], out, *kernel, scale=0.3), n.const("b", out)], "y", **attrs)
    return shape, build


def one(op, shape, *constants, **attrs):
    """One node; constants: arrays."""
    def build(n):
        n.node(op, ["x", *("" if a is None else n.const(f"c{i}", value=np.asarray(a)) for i, a in enumerate(constants))], "y", **attrs)
    return shape, build


def behind_conv(op, *constants, channels=6, twice=False, size=8, **attrs):
    """A node behind a convolution, so that the order of axes is the layer's. twice: it has two such operands."""
    shape = (1, 4, size, size + 1)

    def build(n):
        for name in ("a", "b") if twice else ("a",):
            n.node("Conv", ["x", n.const("w" + name, channels, 4, 3, 3, scale=0.3), n.const("s" + name, channels)], name, pads=[1, 1, 1, 1])
        operands = ["a", "b"] if twice else ["a"]
        n.node(op, operands + [n.const(f"c{i}", value=np.asarray(a)) for i, a in enumerate(constants)], "y", **attrs)
    return shape, build


def between_convs(op, *constants, apart=False, **attrs):
    """A node whose operand and result are a layer's; apart: so that it is not fused into the layer before it."""
    def build(n):
        n.node("Conv", ["x", n.const("w", 6, 4, 3, 3, scale=0.3), n.const("b", 6)], "a", pads=[1, 1, 1, 1])
        x = n.node("MaxPool", ["a"], "m", kernel_shape=[2, 2]) if apart else "a"
        n.node(op, [x, *(n.const(f"c{i}", value=np.asarray(a)) for i, a in enumerate(constants))], "e", **attrs)
        n.node("Conv", ["e", n.const("w2", 5, 6, 3, 3, scale=0.3), n.const("b2", 5)], "y")
    return (1, 4, 8, 9), build


def shuffled(n):
    n.node("Conv", ["x", n.const("w", 6, 4, 1, 1), n.const("b", 6)], "a")
    n.node("Reshape", ["a", n.const("s", value=np.array([0, 2, 3, 8, 9]))], "r")
    n.node("Transpose", ["r"], "t", perm=[0, 2, 1, 3, 4])
    n.node("Reshape", ["t", n.const("u", value=np.array([0, 6, 8, 9]))], "v")
    n.node("Conv", ["v", n.const("w2", 5, 6, 3, 3, scale=0.3), n.const("b2", 5)], "y")


def keras(n):
    """As exporters of TensorFlow write: pictures come with the channels last, and leave so."""
    n.node("Transpose", ["x"], "a", perm=[0, 3, 1, 2])
    n.node("Conv", ["a", n.const("w", 6, 4, 3, 3, scale=0.3), n.const("b", 6)], "c")
    n.node("Relu", ["c"], "r")
    n.node("Transpose", ["r"], "y", perm=[0, 2, 3, 1])


def dense(n):
    n.node("Conv", ["x", n.const("w", 6, 4, 3, 3, scale=0.3), n.const("b", 6)], "c")
    n.node("Clip", ["c", n.const("lo", value=np.float32(0)), n.const("hi", value=np.float32(6))], "r")
    n.node("Flatten", ["r"], "f")
    n.node("Gemm", ["f", n.const("v", 7, 252, scale=0.1), n.const("d", 7)], "y", transB=1)


def attention(n):
    n.node("MatMul", ["x", n.const("q", 8, 8, scale=0.4)], "a")
    n.node("Transpose", ["x"], "t", perm=[0, 2, 1])
    n.node("MatMul", ["a", "t"], "m")
    n.node("Softmax", ["m"], "y", axis=-1)


def halves(n):
    """Split and Concat along channels behind a convolution."""
    n.node("Conv", ["x", n.const("w", 6, 4, 1, 1), n.const("b", 6)], "a")
    n.nodes.append(onnx.helper.make_node("Split", ["a", n.const("s", value=np.array([2, 4]))], ["p", "q"], axis=1, name="Split_p"))
    n.node("Relu", ["q"], "r")
    n.node("Concat", ["r", "p"], "y", axis=1)


def gelu(n):
    """As exporters before opset 20 write it, on rows whose batch is open."""
    n.node("MatMul", ["x", n.const("w", 8, 12, scale=0.4)], "a")
    n.node("Erf", [n.node("Div", ["a", n.const("root", value=np.float32(2 ** 0.5))], "d")], "e")
    n.node("Mul", [n.node("Mul", ["a", n.node("Add", ["e", n.const("one", value=np.float32(1))], "p")], "m"), n.const("half", value=np.float32(0.5))], "g")
    n.node("MatMul", ["g", n.const("v", 12, 5, scale=0.4)], "y")


def normalized(op, axes, *channels):
    """A normalization between two convolutions, or between products of rows."""
    def build(n):
        n.node("Conv", ["x", n.const("w", 6, 4, 3, 3, scale=0.3), n.const("b", 6)], "a", pads=[1, 1, 1, 1])
        x = n.node("Transpose", ["a"], "t", perm=[0, 2, 3, 1]) if axes else "a"
        x = n.node(op, [x, n.const("s", *channels), n.const("c", *channels)], "z", **({"axis": axes} if axes else {}))
        x = n.node("Transpose", [x], "u", perm=[0, 3, 1, 2]) if axes else x
        n.node("Conv", [x, n.const("w2", 5, 6, 3, 3, scale=0.3), n.const("b2", 5)], "y")
    return (1, 4, 8, 9), build


F = np.float32
# name: (shape and builder, steps that int8 may differ by; None: some of it stays on reals)
def lstm(last, turns=True):
    """An LSTM over the second axis: all its steps, or the last one. turns: sequences stand in front, as in most exports."""
    def build(n):
        x = n.node("Transpose", ["x"], "t", perm=[1, 0, 2]) if turns else n.node("Reshape", ["x", n.const("s", value=np.array([7, -1, 6]))], "t")
        weights = [n.const("w", 1, 20, 6, scale=0.6), n.const("r", 1, 20, 5, scale=0.5), n.const("b", 1, 40, scale=0.3)]
        outs = ["", "a"] if last else ["a"]
        n.nodes.append(onnx.helper.make_node("LSTM", [x, *weights], outs, name="LSTM_a", hidden_size=5))
        axis = n.const("axis", value=np.array([0 if last else 1]))
        n.node("Squeeze", ["a", axis], "y" if last else "q")
        if not last:
            n.node("Transpose", ["q"], "y", perm=[1, 0, 2])
    return (1, 7, 6), build


def lstm_ways(direction, last):
    """An LSTM of another direction: all its steps, or the last one of each direction."""
    def build(n):
        ways = 2 if direction == "bidirectional" else 1
        x = n.node("Transpose", ["x"], "t", perm=[1, 0, 2])
        weights = [n.const("w", ways, 20, 6, scale=0.6), n.const("r", ways, 20, 5, scale=0.5), n.const("b", ways, 40, scale=0.3)]
        n.nodes.append(onnx.helper.make_node("LSTM", [x, *weights], ["", "a"] if last else ["a"], name="LSTM_a", hidden_size=5, direction=direction))
        n.node("Transpose", ["a"], "p", perm=[1, 0, 2] if last else [2, 0, 1, 3])
        n.node("Reshape", ["p", n.const("s", value=np.array([-1, 5 * ways] if last else [-1, 7, 5 * ways]))], "f")
        n.node("MatMul", ["f", n.const("v", 5 * ways, 4, scale=0.4)], "y")
    return (1, 7, 6), build


LAYERS = {
    "conv": (conv((1, 4, 9, 8), (3, 3)), 1),
    "conv same": (conv((1, 4, 9, 8), (3, 3), pads=[1, 1, 1, 1]), 1),
    "conv stride 2, pads 1": (conv((1, 4, 8, 8), (3, 3), pads=[1, 1, 1, 1], strides=[2, 2]), 1),
    "conv stride 2, pads as same": (conv((1, 4, 8, 8), (3, 3), pads=[0, 0, 1, 1], strides=[2, 2]), 1),
    "conv uneven": (conv((1, 3, 11, 7), (5, 2), pads=[0, 1, 3, 0], strides=[3, 1]), 1),
    "conv dilated": (conv((1, 4, 12, 12), (3, 3), pads=[2, 2, 2, 2], dilations=[2, 2]), 1),
    "conv dilated valid": (conv((1, 4, 12, 11), (3, 2), dilations=[3, 2]), 1),
    "conv auto_pad": (conv((1, 4, 9, 8), (3, 4), auto_pad="SAME_UPPER", strides=[2, 2]), 1),
    "conv auto_pad lower": (conv((1, 4, 9, 8), (4, 4), auto_pad="SAME_LOWER", strides=[1, 2]), 1),
    "conv groups": (conv((1, 8, 7, 7), (3, 3), out=6, group=2), 1),
    "conv depthwise": (conv((1, 6, 9, 9), (3, 3), out=6, group=6, pads=[1, 1, 1, 1]), 1),
    "conv depthwise x2": (conv((1, 6, 9, 9), (3, 3), out=12, group=6, strides=[2, 2]), 1),
    "conv depthwise dilated": (conv((1, 6, 9, 9), (3, 3), out=6, group=6, pads=[2, 2, 2, 2], dilations=[2, 2]), 1),
    "conv of one channel": (conv((1, 1, 9, 9), (3, 3), out=6), 1),
    "conv of one axis": (conv((1, 4, 20), (5,), pads=[2, 2]), 1),
    "conv of one axis, stride": (conv((1, 4, 21), (4,), pads=[3, 0], strides=[2], dilations=[2]), 1),
    "conv of square": (conv((1, 4, 4, 4), (3, 3), out=4, pads=[1, 1, 1, 1]), 1),
    "transposed": (transposed((1, 4, 5, 6), (3, 3), strides=[2, 2]), 1),
    "transposed same": (transposed((1, 4, 5, 6), (4, 4), strides=[2, 2], pads=[1, 1, 1, 1]), 1),
    "transposed, more behind": (transposed((1, 4, 5, 6), (3, 3), strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1]), 1),
    "transposed uneven": (transposed((1, 4, 5, 6), (3, 2), strides=[1, 3], pads=[2, 0, 0, 1]), 1),
    "transposed of one axis": (transposed((1, 4, 9), (4,), strides=[2], pads=[1, 1]), 1),
    "gemm": (one("Gemm", (1, 12), np.random.default_rng(1).normal(size=(12, 7)).astype(F), np.arange(7, dtype=F)), 1),
    "matmul": (one("MatMul", (1, 5, 12), np.random.default_rng(1).normal(size=(12, 7)).astype(F)), 1),
    "max pool": (behind_conv("MaxPool", kernel_shape=[2, 2], strides=[2, 2]), 1),
    "max pool, pads": (behind_conv("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), 1),
    "max pool, ceil": (behind_conv("MaxPool", kernel_shape=[3, 2], strides=[2, 2], ceil_mode=1), 1),
    "average pool": (behind_conv("AveragePool", kernel_shape=[2, 3], strides=[2, 1]), 1),
    "average pool, same": (behind_conv("AveragePool", kernel_shape=[3, 3], pads=[1, 1, 1, 1]), 1),
    "average pool, pads counted": (behind_conv("AveragePool", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1), 1),
    "global average": (behind_conv("GlobalAveragePool"), 1),
    "global max": (behind_conv("GlobalMaxPool"), 1),
    "mean": (behind_conv("ReduceMean", axes=[2, 3], keepdims=0), 1),
    "mean of channels": (behind_conv("ReduceMean", axes=[1], keepdims=1), 1),
    "sum": (behind_conv("ReduceSum", [2], keepdims=0), None),
    "add": (behind_conv("Add", twice=True), 1),
    "add by channel": (behind_conv("Add", np.arange(6, dtype=F).reshape(6, 1, 1)), 1),
    "add one": (behind_conv("Add", F(0.5)), 1),
    "sub": (behind_conv("Sub", twice=True), 1),
    "mul": (behind_conv("Mul", twice=True), 1),
    "mul by row": (behind_conv("Mul", np.linspace(-1, 1, 9, dtype=F)), 1),
    "div": (behind_conv("Div", np.linspace(1, 2, 6, dtype=F).reshape(6, 1, 1)), None),
    "div by one": (behind_conv("Div", F(1.7)), 1),
    "div by less than 0": (behind_conv("Div", F(-0.3)), 1),
    "max": (behind_conv("Max", twice=True), 1),
    "pow": (behind_conv("Pow", F(2)), None),
    "relu": (one("Relu", (1, 4, 6, 5)), None),
    "clip 0.5": (behind_conv("Clip", F(-0.5), F(0.5)), 1),
    "clip from below": (one("Clip", (1, 4, 6), F(-0.25)), None),
    "clip between": (between_convs("Clip", F(-0.3), F(0.4)), 2),
    "clip 6 alone": (between_convs("Clip", F(0), F(6), apart=True), 2),
    "clip 1 alone": (between_convs("Clip", F(-1), F(1), apart=True), 2),
    "relu alone": (between_convs("Relu", apart=True), 2),
    "sigmoid": (one("Sigmoid", (1, 4, 6, 5)), 1),
    "tanh": (one("Tanh", (1, 4, 6, 5)), 1),
    "hard swish": (behind_conv("HardSwish"), 1),
    "hard sigmoid": (behind_conv("HardSigmoid"), 2),
    "leaky": (behind_conv("LeakyRelu", alpha=0.2), 2),
    "elu": (between_convs("Elu"), 2),
    "abs": (between_convs("Abs"), 2),
    "neg": (between_convs("Neg"), 2),
    "exp": (behind_conv("Exp"), None),
    "prelu": (behind_conv("PRelu", np.linspace(0, 1, 6, dtype=F).reshape(6, 1, 1)), 1),
    "prelu of one": (behind_conv("PRelu", np.full((1,), 0.25, F)), 1),
    "softmax": (one("Softmax", (1, 10), axis=-1), 1),
    "softmax of channels": (behind_conv("Softmax", axis=1), 1),
    "softmax of rows": (behind_conv("Softmax", axis=2), 1),
    "log softmax": (one("LogSoftmax", (1, 10), axis=-1), 2),
    "concat": (behind_conv("Concat", twice=True, axis=1), 1),
    "concat of rows": (behind_conv("Concat", twice=True, axis=-1), 1),
    "slice": (behind_conv("Slice", [1, 2], [5, 100], [1, 2]), 1),
    "slice with steps": (behind_conv("Slice", [0, -1], [8, -100], [2, 3], [2, -1]), 1),
    "slice from behind": (one("Slice", (1, 12), [-3], [2**40], [1]), 1),
    "pad": (behind_conv("Pad", [0, 1, 0, 2, 0, 0, 3, 1]), 1),
    "pad with a value": (behind_conv("Pad", [0, 0, 1, 1, 0, 0, 1, 1], F(1.5)), 1),
    "pad, reflected": (behind_conv("Pad", [0, 0, 2, 1, 0, 0, 1, 2], mode="reflect"), 1),
    "gather": (one("Gather", (1, 12), [3, -1, 0], axis=1), 1),
    "reshape": (behind_conv("Reshape", [0, 3, -1]), 1),
    "transpose": (behind_conv("Transpose", perm=[0, 3, 1, 2]), 1),
    "flatten": (behind_conv("Flatten"), 1),
    "unsqueeze": (behind_conv("Unsqueeze", [1, 3]), 1),
    "depth to space": (behind_conv("DepthToSpace", channels=8, blocksize=2), 1),
    "space to depth": (behind_conv("SpaceToDepth", channels=3, size=8, blocksize=1), 1),
    "resize nearest": (behind_conv("Resize", np.array([], F), np.array([1, 1, 2, 2], F), mode="nearest",
                                   coordinate_transformation_mode="asymmetric", nearest_mode="floor"), 1),
    "resize nearest, half": (behind_conv("Resize", np.array([], F), np.array([1, 1, 2, 3], F), mode="nearest"), 1),
    "resize linear": (behind_conv("Resize", np.array([], F), np.array([1, 1, 2, 2], F), mode="linear"), 1),
    "resize linear, corners": (behind_conv("Resize", np.array([], F), np.array([1, 1, 2.5, 2], F), mode="linear",
                                           coordinate_transformation_mode="align_corners"), 1),
    "resize linear, smaller": (behind_conv("Resize", np.array([], F), np.array([1, 1, 0.5, 1], F), mode="linear",
                                           coordinate_transformation_mode="asymmetric"), 1),
    "channel shuffle": (((1, 4, 8, 9), shuffled), 2),
    "keras": (((1, 9, 8, 4), keras), 1),
    "dense behind pictures": (((1, 4, 8, 9), dense), 2),
    "attention": (((1, 5, 8), attention), None),
    "halves": (((1, 4, 6, 7), halves), None),
    "lstm": (lstm(False), 2),
    "lstm, last step": (lstm(True), 2),
    "lstm, steps in front": (lstm(True, False), 2),
    # A case's place is the seed of its numbers: new ones stand last.
    "depth to space by columns": (behind_conv("DepthToSpace", channels=12, blocksize=2, mode="CRD"), 1),
    "gelu by erf": (((1, 5, 8), gelu), 2),
    "layer norm": (normalized("LayerNormalization", -1, 6), None),
    "instance norm": (normalized("InstanceNormalization", None, 6), None),
    "slice of every other row": (behind_conv("Slice", [1], [2**31 - 1], [2], [2]), 1),
    "reciprocal": (behind_conv("Reciprocal"), None),
    "lstm, both directions": (lstm_ways("bidirectional", False), 2),
    "lstm, both directions, last steps": (lstm_ways("bidirectional", True), 2),
    "lstm, reversed": (lstm_ways("reverse", False), 2),
    "lstm, reversed, last step": (lstm_ways("reverse", True), 2),
}


# Reference kernels round sums twice, so that a convolution's result is sometimes one step off; what makes more of a step needs more here.
REFERENCE_STEPS = {"hard swish": 4, "softmax of channels": 4, "softmax of rows": 5, "hard sigmoid": 4, "dense behind pictures": 3, "channel shuffle": 3,
                   "prelu of one": 2}
NOT_IN_REFERENCE = {"elu"}  # they have no such kernel


def hold_layer(c, name, case, steps, number):
    shape, build = case
    net = plainnet.Net(number, opset=17 if name == "layer norm" else 14)
    build(net)
    model, data = c.folder / "layer.onnx", c.folder / "samples.npy"
    samples = net.save(model, ("n", *shape[1:]))
    np.save(data, np.stack(samples))
    ours = {"float": c.folder / "float.tflite", "int8": c.folder / "int8.tflite"}
    said = write(c, model, ours["float"], "--scheme", "float")
    want = run_ort(model, [x[None] for x in samples[:3]])
    every = [k for k in KERNELS if k != "reference" or name not in NOT_IN_REFERENCE]
    for kernels in every:
        for x, y in zip(samples, want[0], strict=False):
            got = run_theirs(ours["float"], {"x": x[None]}, kernels, said)["y"]
            error = relative_error(y, got) if got.shape == y.shape else np.inf
            if not error <= RELATIVE:
                break
        c.hold(f"{name}: floats, {kernels}", error <= RELATIVE, f"{error:.1e} of the range off, shape {got.shape} for {y.shape}")
    hold_read(c, f"{name}: floats", ours["float"], [{"x": x[None]} for x in samples[:3]], said, "0")
    write(c, model, c.folder / "int8.onnx", "--target", "litert", "--data", data)
    said = write(c, model, ours["int8"], "--data", data)
    hold_read(c, f"{name}: int8", ours["int8"], [{"x": x[None]} for x in samples[:8]], said, str(steps or 2))
    want = run_ort(c.folder / "int8.onnx", [x[None] for x in samples[:8]], exact=True)[0]  # where no 16-bit sum saturates
    scale = output_scale(c.folder / "int8.onnx") or float(want.max() - want.min()) / 255
    for kernels in every:
        allowed = REFERENCE_STEPS.get(name, steps or 2) if kernels == "reference" else steps or 2
        got = np.stack([run_theirs(ours["int8"], {"x": x[None]}, kernels, said)["y"] for x in samples[:8]])
        most = float(np.abs(got - want).max()) / scale if got.shape == want.shape else np.inf
        c.hold(f"{name}: int8, {kernels}", most <= allowed + 0.01, f"{most:.2f} steps apart, shape {got.shape} for {want.shape}")
    real = real_operators(ours["int8"])
    c.hold(f"{name}: int8 operators", steps is None or not real, f"on reals: {' '.join(real)}")


# Layers that have kernels on int16, and others that stay float between quantizers.
WIDE = ["conv", "conv depthwise", "conv dilated", "transposed", "dense behind pictures", "halves", "channel shuffle", "keras", "softmax of rows", "mean", "attention",
        "depth to space", "depth to space by columns", "space to depth", "pad, reflected", "pad with a value", "slice with steps", "gather",
        "lstm, both directions, last steps", "lstm, reversed"]
WIDE_ERROR = 3e-4  # of the range: some ten steps of 16 bits


def hold_wide(c, name, case, number):
    """With activations of 16 bits, beside ONNX Runtime on the same conversion as .onnx."""
    shape, build = case
    net = plainnet.Net(number, opset=14)
    build(net)
    model, data, out = c.folder / "layer.onnx", c.folder / "samples.npy", c.folder / "int16.tflite"
    samples = net.save(model, ("n", *shape[1:]))
    np.save(data, np.stack(samples))
    said = write(c, model, out, "--target", "litert-int16", "--data", data)
    write(c, model, c.folder / "int16.onnx", "--target", "litert-int16", "--data", data)
    want = run_ort(c.folder / "int16.onnx", [x[None] for x in samples[:3]], exact=True)[0]
    for kernels in KERNELS:
        got = np.stack([run_theirs(out, {"x": x[None]}, kernels, said)["y"] for x in samples[:3]])
        error = relative_error(want, got) if got.shape == want.shape else np.inf
        c.hold(f"{name}: int16, {kernels}", error <= WIDE_ERROR, f"{error:.1e} of the range off, shape {got.shape} for {want.shape}")
    hold_read(c, f"{name}: int16", out, [{"x": x[None]} for x in samples[:8]], said, 50)  # attention has a factor of 8 bits


# ---- stored weights ----

STORED = {  # large enough for 8 bits to make the file smaller
    "conv": conv((1, 32, 7, 6), (3, 3), out=48),
    "conv depthwise x2": conv((1, 256, 7, 6), (3, 3), out=512, group=256, pads=[1, 1, 1, 1]),
    "conv of one axis": conv((1, 32, 20), (5,), out=64, pads=[2, 2], strides=[2]),
    "transposed same": transposed((1, 32, 5, 6), (4, 4), out=24, strides=[2, 2], pads=[1, 1, 1, 1]),
    "gemm": one("Gemm", (1, 120), np.random.default_rng(1).normal(size=(120, 70)).astype(F), np.arange(70, dtype=F)),
    "matmul": one("MatMul", (1, 5, 120), np.random.default_rng(1).normal(size=(120, 70)).astype(F)),
}


def hold_stored(c, name, case, number):
    """Weights in 8 bits for layers on reals stay so in the file, and runtimes with one scale a DEQUANTIZE compute what those with several do."""
    shape, build = case
    net = plainnet.Net(number, opset=14)
    build(net)
    model, out = c.folder / "layer.onnx", c.folder / "stored.tflite"
    samples = net.save(model, ("n", *shape[1:]))[:3]
    said = write(c, model, out, "--target", "litert", "--scheme", "stored")
    write(c, model, c.folder / "stored.onnx", "--target", "litert", "--scheme", "stored")
    want = run_ort(c.folder / "stored.onnx", [x[None] for x in samples])[0]
    graph = schema.ModelT.InitFromObj(schema.Model.GetRootAs(out.read_bytes(), 0)).subgraphs[0]
    weights = [t for t in graph.tensors if t.type == schema.TensorType.INT8]
    c.hold(f"{name}: stored in 8 bits, with one scale", weights and all(len(t.quantization.scale) == 1 for t in weights), f"{len(weights)} tensors of int8")
    runs = {kernels: lambda x, kernels=kernels: run_theirs(out, {"x": x[None]}, kernels, said)["y"] for kernels in KERNELS}
    if packages.has("tflite_micro"):
        runs["tflite-micro"] = lambda x: run_micro(out, x[None], said, "x", "y")
    for kernels, run in runs.items():
        got = np.stack([run(x) for x in samples])
        error = relative_error(want, got) if got.shape == want.shape else np.inf
        c.hold(f"{name}: stored, {kernels}", error <= RELATIVE, f"{error:.1e} of the range off, shape {got.shape} for {want.shape}")
    hold_read(c, f"{name}: stored", out, [{"x": x[None]} for x in samples], said, "0")


# ---- models of testdata ----

def hold_models(c, only):
    written = 0
    for path in sorted((tool.ROOT / "testdata" / "models").glob("*.onnx")):
        case = stored_case(path)
        if not case or not case[0] or (only and only not in path.stem):
            continue
        status, said = write(c, path, c.folder / "t.tflite", "--scheme", "float", fails=True)
        if status:
            named = "cannot be written to .tflite" in said and "hint:" in said
            c.hold(f"{path.stem}: refused with a remedy", status == 5 and (named or "opset 8" in said), f"{status} {said.strip()[-300:]}")
            continue
        written += 1
        session = peer.session(path)
        feeds = {n: x[:1] if "the batch is 1" in said else x for n, x in case[0].items()}
        want = dict(zip((o.name for o in session.get_outputs()), session.run(None, feeds), strict=True))
        for kernels in KERNELS:
            got = run_theirs(c.folder / "t.tflite", feeds, kernels, said)
            worst = max((relative_error(want[n], got[n]) if got[n].shape == want[n].shape else np.inf) for n in want if want[n].size)
            c.hold(f"{path.stem}: {kernels}", worst <= RELATIVE, f"{worst:.1e} of the range off")
    c.hold("models that can be written", bool(only) or written >= LEAST_MODELS, f"{written} of at least {LEAST_MODELS}")


# ---- trained networks ----

# name: how far below the outputs, in dB, the difference from ONNX Runtime has to be, with XNNPACK's kernels and with the reference ones
NETWORKS = {
    "ad01_autoencoder": (30, 20),
    "kws_dscnn": (30, 15),
    "mnist_cnn": (30, 20),
    "resnet8_cifar10": (30, 20),
    "vww_mobilenet_96": (30, 15),
    "mobilenet_v1_025_224": (30, 15),
    "mobilenet_v2_100_224": (20, 12),
    "squeezenet_v10_227": (30, 15),
    "ultraface_rfb_320": (30, 15),
    "nanodet_m_416": (12, 8),
}


# Recorded samples, of networks that say nothing of others.
RECORDED = {"ad01_autoencoder": "ad", "kws_dscnn": "kws"}


def model_input(model):
    graph = onnx.load(model, load_external_data=False).graph
    constants = {i.name for i in graph.initializer}
    return next(i for i in graph.input if i.name not in constants)


def network_samples(model, name):
    shape = [d.dim_value or 1 for d in model_input(model).type.tensor_type.shape.dim]
    rng = np.random.default_rng(3)
    recorded = tool.SHARED / "data" / RECORDED.get(name, "") / "calib_x.npy"
    return list(np.load(recorded)[:8]) if name in RECORDED else [smooth(rng, shape[1:], 0, 1) for _ in range(8)]


def hold_network(c, name):
    model = tool.SHARED / "models" / f"{name}.onnx"
    inputs, samples = [model_input(model)], network_samples(model, name)
    data = c.folder / "samples.npy"
    np.save(data, np.stack(samples))
    said = write(c, model, c.folder / "net.tflite", "--data", data, "--no-recover")  # both files have the same weights, however they are rounded
    write(c, model, c.folder / "net.onnx", "--target", "litert", "--data", data, "--no-recover")
    size, other = ((c.folder / f).stat().st_size for f in ("net.tflite", "net.onnx"))
    c.hold(f"{name}: size", size <= 1.03 * other, f"{size} for {other}")
    session = peer.session(c.folder / "net.onnx", exact=True)
    outputs = [o.name for o in session.get_outputs()]
    for kernels, least, some in zip(KERNELS, NETWORKS[name], (8, 2), strict=True):  # the reference kernels take seconds for a sample
        of = {o: metrics.Sqnr() for o in outputs}
        same = total = 0
        for x in samples[:some]:
            want = dict(zip(outputs, session.run(None, {inputs[0].name: x[None]}), strict=True))
            got = run_theirs(c.folder / "net.tflite", {inputs[0].name: x[None]}, kernels, said)
            for o in outputs:
                of[o].add(want[o], got[o])
            same += int(want[outputs[0]].argmax() == got[outputs[0]].argmax())
            total += 1
        worst = min(s.db for s in of.values())
        c.hold(f"{name}: {kernels}", worst >= least, f"{worst:.1f} dB, at least {least}; {same} of {total} have the same largest value")
    hold_read(c, name, c.folder / "net.tflite", [{inputs[0].name: x[None]} for x in samples], said, NETWORKS[name][0])


def smooth(rng, shape, low, high):
    """A picture of slopes and noise, or a vector of such."""
    coarse = rng.uniform(low, high, [max(1, n // 8) if i else n for i, n in enumerate(shape)])
    for i, n in enumerate(shape):
        coarse = np.take(coarse, np.arange(n) * coarse.shape[i] // n, axis=i)
    return np.clip(coarse + rng.normal(0, 0.05 * (high - low), shape), low, high).astype(np.float32)


# ---- refusals, the file itself ----

def hold_refusals(c):
    net = plainnet.Net(1)
    net.node("Conv", ["x", net.const("w", 3, 2, 3, 3, 3), net.const("b", 3)], "y")
    model = c.folder / "cube.onnx"
    net.save(model, ("n", 2, 5, 5, 5))
    out = c.folder / "refused.tflite"
    status, said = write(c, model, out, fails=True)
    c.hold("a convolution over three axes is refused", status == 5 and "Conv_y" in said and "hint:" in said and not out.exists(), said)
    net = plainnet.Net(1)
    net.node("Conv", ["x", net.const("w", 3, 2, 3, 3), net.const("b", 3)], "y")
    model = c.folder / "plain.onnx"
    samples = net.save(model, ("n", 2, 9, 9))
    data = c.folder / "samples.npy"
    np.save(data, np.stack(samples))
    for what, words, more in (("activations without a sign", "--target litert", ["--target", "generic", "--data", data]),
                              ("a form of .onnx", "form of .onnx", ["--format", "qdq"])):
        status, said = write(c, model, out, *more, fails=True)
        c.hold(f"{what}: refused", status in (2, 5) and words in said and not out.exists(), f"{status} {said}")
    open_height = onnx.load(model)
    open_height.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "h"
    onnx.save(open_height, c.folder / "open.onnx")
    status, said = write(c, c.folder / "open.onnx", out, fails=True)
    c.hold("an open height is refused", status == 5 and "'x' is [n,2,h,9]" in said and not out.exists(), f"{status} {said}")
    said = write(c, model, c.folder / "p.tflite", "--data", data, "--input-type", "s8", "--output-type", "s8")
    interpreter = Interpreter(model_path=str(c.folder / "p.tflite"))
    ends = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    c.hold("int8 at both ends", all(e["dtype"] == np.int8 and e["quantization"][0] > 0 for e in ends), f"{[e['dtype'] for e in ends]}")
    said = write(c, model, c.folder / "p.tflite", "--data", data)
    write(c, model, c.folder / "p.onnx", "--target", "litert", "--data", data)
    x = np.stack(samples[:3])
    want = peer.session(c.folder / "p.onnx", exact=True).run(None, {"x": x})[0]
    scale = output_scale(c.folder / "p.onnx")
    for kernels in KERNELS:
        got = run_theirs(c.folder / "p.tflite", {"x": x}, kernels, said)["y"]
        c.hold(f"a batch of 3, {kernels}", got.shape == want.shape and np.abs(got - want).max() <= 1.01 * scale, f"{got.shape} for {want.shape}")
    hold_file(c, c.folder / "p.tflite")
    hold_mutations(c, c.folder / "p.tflite")
    if packages.has("tflite_micro"):
        want = run_theirs(c.folder / "p.tflite", {"x": x[:1]}, "reference", "input 'x' is [1,9,9,2]: NHWC")["y"]
        got = run_micro(c.folder / "p.tflite", x[:1], said, "x")
        c.hold("tflite-micro", got.shape == want.shape and np.abs(got - want).max() <= 1.01 * scale, f"{np.abs(got - want).max() / scale:.2f} steps")


def hold_file(c, path):
    """What stands in a file, by a reader that is not ours."""
    bytes_ = path.read_bytes()
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(bytes_, 0))
    graph = model.subgraphs[0]
    runtime = next(bytes(model.buffers[m.buffer].data) for m in model.metadata if m.name == b"min_runtime_version")
    weights = next(t for t in graph.tensors if t.shape is not None and list(t.shape) == [3, 3, 3, 2])
    c.hold("identifier and version", bytes_[4:8] == b"TFL3" and model.version == 3, f"{bytes_[4:8]} {model.version}")
    c.hold("the first runtime that has its operators", runtime == b"1.14.0" + bytes(10), str(runtime))
    c.hold("buffer 0 is empty", model.buffers[0].data is None)
    c.hold("an open batch", any(t.shapeSignature is not None and t.shapeSignature[0] == -1 for t in graph.tensors))
    c.hold("weights by channel", len(weights.quantization.scale) == 3 and weights.quantization.quantizedDimension == 0 and
           not np.any(weights.quantization.zeroPoint), str(weights.quantization.scale))
    aligned = all((bytes_.find(bytes(b.data)) % 16) == 0 for b in model.buffers if b.data is not None and len(b.data) > 32)
    c.hold("constants are aligned", aligned)


PAGE = tool.ROOT / "docs" / "tflite.md"


def page_with_table():
    """docs/tflite.md with the tables of operators as lib/tflite has them."""
    text = (tool.ROOT / "lib" / "tflite" / "tfl_operators.inc").read_text()
    rows = ["| ONNX | .tflite | what is refused |", "|---|---|---|"] + [f"| {o} | {t} | {r} |" for o, t, r in re.findall(r'RULE\((\w+),\s*"([^"]*)",\s*"([^"]*)"', text)]
    text = (tool.ROOT / "lib" / "tflite" / "read" / "read_operators.inc").read_text()
    read = ["| .tflite | ONNX | what is refused |", "|---|---|---|"] + [f"| {t} | {o} | {r} |" for t, o, r in re.findall(r'READING\((\w+),\s*"([^"]*)",\s*"([^"]*)"', text)]
    page = re.sub(r"(?s)(## Operators\n\n)\|.*?(?=\n## |\Z)", lambda m: m[1] + "\n".join(rows) + "\n", PAGE.read_text())
    return re.sub(r"(?s)(## Operators that are read\n\n)\|.*\Z", lambda m: m[1] + "\n".join(read) + "\n", page)


def hold_docs(c):
    c.hold("docs/tflite.md has the tables of operators (--page writes them)", PAGE.read_text() == page_with_table())
    c.hold("docs/tflite.md has the tables of tests/accuracy (scripts/development/tflite_tables.py --page writes them)", PAGE.read_text() == tflite_page.page())


def main():
    parser = options(__doc__)
    parser.add_argument("--only", help="cases whose name has this word")
    parser.add_argument("--page", action="store_true", help="write the table of docs/tflite.md and end")
    args = parser.parse_args()
    if args.page:
        return PAGE.write_text(page_with_table()) and 0
    with Checker(args) as c:
        for number, (name, (case, steps)) in enumerate(LAYERS.items()):
            if not args.only or args.only in name:
                try:
                    hold_layer(c, name, case, steps, number)
                    if name in WIDE:
                        hold_wide(c, name, case, number)
                except (tool.ToolError, RuntimeError, ValueError) as e:
                    c.hold(name, False, str(e)[-400:])
        for number, (name, case) in enumerate(STORED.items()):
            if not args.only or args.only in f"{name}: stored":
                hold_stored(c, name, case, number)
        hold_models(c, args.only)
        for name in NETWORKS:
            if (tool.SHARED / "models" / f"{name}.onnx").exists() and (not args.only or args.only in name):
                hold_network(c, name)
        if not args.only or args.only == "axes":
            hold_axes(c)
        if not args.only or args.only == "counts":
            hold_lstm_counts(c)
        if not args.only:
            hold_refusals(c)
            hold_docs(c)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
