#!/usr/bin/env python3
"""Models whose outputs have as many elements as the values say: they convert, reach goals and are evaluated, and reports count the samples.

    check_changing_lengths.py [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

A decoder that stops at its end token, with what it wrote as scan outputs; a detector with NonMaxSuppression; scores above a threshold (NonZero,
Compress, TopK of a computed number); durations that say how many rows there are, for devices; a quantized row that is repeated as often as a computed number says; a loop that stops when a sum is reached; a classifier beside such an output; and the other ways to such a
length: what stands before an end token, the classes that occur, rows that a product reads, elements at places, a Range, and the branches of an If. For each, ONNX Runtime says on
how many samples the lengths differ. A conversion writes a file, by default, with goals, with labels and with a command as metric, and it and qeval
say that number; a sample that no metric can compare counts as disagreeing.

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
from onnx import TensorProto, helper

from pylib import peer, plainnet, tool
from pylib.judge import Checker, options

F, I64, COUNT = TensorProto.FLOAT, TensorProto.INT64, 48
info = helper.make_tensor_value_info


class Made(plainnet.Nodes):
    def weights(self, name, *shape, by=1.0):
        return self.const(name, (self.rng.standard_normal(shape) * by / np.sqrt(np.prod(shape[1:]) if len(shape) > 2 else shape[0])).astype(np.float32))

    def features(self, x="x"):
        """8 x 8 places with 16 channels."""
        self.node("Conv", [x, self.weights("w1", 16, 3, 3, 3, by=2)], "f1", pads=[1] * 4, strides=[2, 2])
        self.node("Relu", ["f1"], "f2")
        self.node("Conv", ["f2", self.weights("w2", 16, 16, 3, 3, by=2)], "f3", pads=[1] * 4)
        return self.node("Relu", ["f3"], "f4")

    def scores(self):
        """64 of them."""
        self.node("Conv", [self.features(), self.weights("ws", 1, 16, 1, 1, by=2)], "s1")
        return self.node("Reshape", ["s1", self.const("flat", np.int64([-1]))], "scores")

    def save(self, path, outputs):
        super().save(path, [("x", F, [1, 3, 16, 16])], outputs)


def decoder(path):
    """As of table recognisers: a Loop whose state and last token make the next one, until that is 0; logits and tokens are scan outputs."""
    m = Made(1)
    m.node("ReduceMean", [m.features()], "g", axes=[2, 3], keepdims=0)
    m.node("MatMul", ["g", m.weights("w0", 16, 32, by=4)], "h0")
    m.weights("wh", 32, 32, by=1.6)
    m.weights("wv", 32, 8, by=3)
    m.weights("emb", 8, 32)
    m.const("zero", np.int64([0]))
    nodes = [helper.make_node("Gather", ["emb", "token"], ["e"], name="embed"), helper.make_node("MatMul", ["h", "wh"], ["i1"], name="inner"),
             helper.make_node("Add", ["i1", "e"], ["i2"], name="add"), helper.make_node("Tanh", ["i2"], ["h1"], name="tanh"),
             helper.make_node("MatMul", ["h1", "wv"], ["logits1"], name="vocabulary"), helper.make_node("ArgMax", ["logits1"], ["next"], axis=1, keepdims=0, name="argmax"),
             helper.make_node("Equal", ["next", "zero"], ["same"], name="equal"), helper.make_node("Not", ["same"], ["on1"], name="not"),
             helper.make_node("Squeeze", ["on1", "zero"], ["on"], name="squeeze")]
    nodes += [helper.make_node("Identity", ["next"], ["wrote"], name="wrote")]
    g = helper.make_graph(nodes, "body", [info("n", I64, []), info("c", TensorProto.BOOL, []), info("h", F, [1, 32]), info("token", I64, [1])],
                          [info("on", TensorProto.BOOL, []), info("h1", F, [1, 32]), info("next", I64, [1]), info("logits1", F, [1, 8]), info("wrote", I64, [1])])
    m.const("first", np.int64([1]))
    m.node("Loop", [m.const("most", np.int64(20)), m.const("yes", np.array(True)), "h0", "first"], ["hn", "tn", "logits", "tokens"], body=g)
    m.save(path, [("logits", F, ["n", 1, 8]), ("tokens", I64, ["n", 1])])


def detector(path):
    m = Made(2)
    m.node("Conv", [m.features(), m.weights("wb", 5, 16, 1, 1, by=1.5)], "o")
    m.node("Reshape", ["o", m.const("rows", np.int64([1, 5, -1]))], "r")
    m.node("Split", ["r", m.const("parts", np.int64([4, 1]))], ["b", "s"], axis=1)
    m.node("Transpose", ["b"], "boxes", perm=[0, 2, 1])
    m.node("Sigmoid", ["s"], "p")
    m.node("NonMaxSuppression", ["boxes", "p", m.const("most", np.int64([50])), m.const("iou", np.float32([0.5])), m.const("least", np.float32([0.5]))], "chosen",
           center_point_box=1)
    m.node("Gather", ["chosen", m.const("two", np.int64(2))], "i", axis=1)
    m.node("Squeeze", ["boxes", m.const("zero", np.int64([0]))], "b2")
    m.node("Gather", ["b2", "i"], "out_boxes", axis=0)
    m.node("Reshape", ["p", m.const("flat", np.int64([-1]))], "p2")
    m.node("Gather", ["p2", "i"], "out_scores", axis=0)
    m.save(path, [("out_boxes", F, ["n", 4]), ("out_scores", F, ["n"])])


def above(path):
    """The places of scores above a threshold, and these."""
    m = Made(3)
    m.node("Greater", [m.scores(), m.const("least", np.float32(0.4))], "which")
    m.node("NonZero", ["which"], "places")
    m.node("Compress", ["scores", "which"], "picked", axis=0)
    m.save(path, [("places", I64, [1, "n"]), ("picked", F, ["n"])])


def top(path):
    """As many of the largest as lie above a threshold."""
    m = Made(4)
    m.node("Greater", [m.scores(), m.const("least", np.float32(0.4))], "which")
    m.node("Cast", ["which"], "one", to=I64)
    m.node("ReduceSum", ["one"], "k0", keepdims=1)
    m.node("TopK", ["scores", "k0"], ["best", "where"], axis=0)
    m.save(path, [("best", F, ["n"]), ("where", I64, ["n"])])


def stopping(path):
    """A loop that adds a product until its sum is large, and tells each sum."""
    m = Made(5)
    m.node("ReduceMean", [m.features()], "g", axes=[2, 3], keepdims=0)
    m.weights("wa", 16, 16)
    m.const("large", np.float32(60))
    nodes = [helper.make_node("MatMul", ["g", "wa"], ["p"], name="inside"), helper.make_node("Relu", ["p"], ["p1"], name="relu"),
             helper.make_node("Add", ["h", "p1"], ["h1"], name="add"), helper.make_node("ReduceSum", ["h1"], ["sum"], keepdims=0, name="sum"),
             helper.make_node("Less", ["sum", "large"], ["on"], name="less"), helper.make_node("Identity", ["h1"], ["o"], name="copy")]
    g = helper.make_graph(nodes, "body", [info("n", I64, []), info("c", TensorProto.BOOL, []), info("h", F, [1, 16])],
                          [info("on", TensorProto.BOOL, []), info("h1", F, [1, 16]), info("o", F, [1, 16])])
    m.node("Loop", [m.const("most", np.int64(40)), m.const("yes", np.array(True)), m.const("zeros", np.zeros((1, 16), np.float32))], ["hn", "y"], body=g)
    m.save(path, [("y", F, ["n", 1, 16])])


def classifier(path):
    """Classes, and beside them the scores above a threshold."""
    m = Made(6)
    m.node("Greater", [m.scores(), m.const("least", np.float32(0.4))], "which")
    m.node("Compress", ["scores", "which"], "picked", axis=0)
    m.node("ReduceMean", ["f4"], "g", axes=[2, 3], keepdims=0)
    m.node("MatMul", ["g", m.weights("wc", 16, 6, by=4)], "classes")
    m.save(path, [("classes", F, [1, 6]), ("picked", F, ["n"])])


def places(m, classes):
    """Logits of the classes at 64 places: [64, classes]."""
    m.node("Conv", [m.features(), m.weights("wl", classes, 16, 1, 1, by=3)], "l1")
    m.node("Reshape", ["l1", m.const("as_columns", np.int64([classes, 64]))], "l2")
    return m.node("Transpose", ["l2"], "l3", perm=[1, 0])


def before_end(path):
    """What a reader of lines has written before its end token, the class 0."""
    m = Made(7)
    m.node("ArgMax", [places(m, 6)], "read", axis=1, keepdims=0)
    m.node("Equal", ["read", m.const("end", np.int64(0))], "ends")
    m.node("Cast", ["ends"], "ends1", to=I64)
    m.node("ArgMax", ["ends1"], "first", axis=0, keepdims=1)
    m.node("Slice", ["l3", m.const("from", np.int64([0])), "first", m.const("rows", np.int64([0]))], "y")
    m.save(path, [("y", F, ["n", 6])])


def occurring(path):
    """The classes that occur, and how often."""
    m = Made(8)
    m.node("ArgMax", [places(m, 24)], "read", axis=1, keepdims=0)
    m.node("Unique", ["read"], ["classes", "", "", "times"], sorted=1)
    m.save(path, [("classes", I64, ["n"]), ("times", I64, ["n"])])


def rows_read(path):
    """Places with a large score, which a product reads: a layer behind the length that values tell."""
    m = Made(9)
    m.node("Slice", [places(m, 12), m.const("from", np.int64([0])), m.const("one", np.int64([1])), m.const("columns", np.int64([1]))], "s")
    m.node("Greater", ["s", m.const("least", np.float32(0.3))], "which")
    m.node("Reshape", ["which", m.const("flat", np.int64([-1]))], "which1")
    m.node("Compress", ["l3", "which1"], "kept", axis=0)
    m.node("MatMul", ["kept", m.weights("wk", 12, 8)], "y")
    m.save(path, [("y", F, ["n", 8])])


def at_places(path):
    """Elements at the places of large ones."""
    m = Made(10)
    m.node("Greater", [places(m, 4), m.const("least", np.float32(1))], "which")
    m.node("NonZero", ["which"], "where")
    m.node("Transpose", ["where"], "where1", perm=[1, 0])
    m.node("GatherND", ["l3", "where1"], "y")
    m.save(path, [("y", F, ["n"])])


def counted(path):
    """A Range as long as scores are large, times their mean."""
    m = Made(11)
    m.node("Greater", [m.scores(), m.const("least", np.float32(0.4))], "which")
    m.node("Cast", ["which"], "one", to=I64)
    m.node("ReduceSum", ["one"], "count", keepdims=0)
    m.node("Range", [m.const("from", np.int64(0)), "count", m.const("by", np.int64(1))], "steps")
    m.node("Cast", ["steps"], "steps1", to=F)
    m.node("ReduceMean", ["scores"], "mean", keepdims=0)
    m.node("Mul", ["steps1", "mean"], "y")
    m.save(path, [("y", F, ["n"])])


def branching(path):
    """Branches of an If, and of one inside, read some of the rows, which Reshape and Transpose have moved: ONNX Runtime must load the file."""
    m = Made(12)
    m.node("ReduceMax", [places(m, 8)], "most", keepdims=0)
    m.node("ReduceMean", ["l3"], "mean", keepdims=0)

    def part(name, n):
        return helper.make_graph([helper.make_node("Slice", ["l3", "from", m.const(f"to{n}", np.int64([n]))], [f"{name}_y"], name=f"first_{n}")], name, [], [info(f"{name}_y", F, None)])

    m.const("from", np.int64([0]))
    m.node("Greater", ["most", m.const("large", np.float32(17.5))], "is_large")
    m.node("Greater", ["mean", m.const("usual", np.float32(-0.44))], "is_above")
    inner = helper.make_graph([helper.make_node("If", ["is_above"], ["inner_y"], name="inner", then_branch=part("a", 8), else_branch=part("b", 16))], "other", [], [info("inner_y", F, None)])
    m.node("If", ["is_large"], "y", then_branch=part("c", 24), else_branch=inner)
    m.save(path, [("y", F, ["n", 8])])


CASES = {f.__name__: f for f in (decoder, detector, above, top, stopping, classifier)}
MORE = {f.__name__: f for f in (before_end, occurring, rows_read, at_places, counted, branching)}     # in fewer ways
NUMBERS = ("decoder", "stopping", "classifier")     # their first output is one of numbers in fixed places, if its length is the same
CLOSE = 1       # samples on which the two runtimes may differ, because a value lies at a threshold
COMMAND = "print(1)\n"


def runs(model, samples):
    session = peer.session(model)
    return [session.run(None, {"x": x[None]}) for x in samples]


def run(c, *command):
    done = subprocess.run([str(w) for w in command], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def agreement(want, got):
    """The mean share of positions with the same class; none of a sample of another length."""
    return np.mean([(w[0].argmax(-1) == g[0].argmax(-1)).mean() if w[0].shape == g[0].shape else 0 for w, g in zip(want, got, strict=True)])


def check_result(c, what, model, out, data, samples, want, metric):
    got = runs(out, samples)
    apart = [sum(g[k].shape != w[k].shape for g, w in zip(got, want, strict=True)) for k in range(len(want[0]))]
    rc, said = run(c, c.qeval, model, out, "--data", data, "--json", c.folder / "e.json", *(["--metric", "agreement"] if metric else []))
    c.hold(f"{what}: qeval", rc == 0, f"{rc}: {said[-400:]}")
    if rc:
        return
    result = json.loads((c.folder / "e.json").read_text())["models"][1]
    told = [o["other_length"] for o in result["outputs"]]
    c.hold(f"{what}: samples of another length", all(abs(a - b) <= CLOSE for a, b in zip(told, apart, strict=True)), f"{told}, in ONNX Runtime {apart}")
    c.hold(f"{what}: said", "other length" in said or not any(apart), said[:300])
    if metric:
        expected = agreement(want, got)
        c.hold(f"{what}: agreement", abs(result["metrics"]["agreement"] - expected) < 0.03, f"{result['metrics']['agreement']:.3f}, in ONNX Runtime {expected:.3f}")


def check_case(c, name, made):
    model, out = c.folder / f"{name}.onnx", c.folder / f"{name}.q.onnx"
    made(model)
    samples = np.random.default_rng(9).standard_normal((COUNT, 3, 16, 16)).astype(np.float32)
    data, labels = c.folder / "x.npy", c.folder / "labels.npy"
    np.save(data, samples)
    want = runs(model, samples)
    np.save(labels, np.int64([np.argmax(w[0]) % 6 if w[0].size else 0 for w in want]))
    c.hold(f"{name}: lengths differ", len({w[-1].shape for w in want}) > 2, str({w[-1].shape for w in want}))
    ways = {"default": [], "rounded": ["--no-recover"], "dynamic": ["--scheme", "dynamic"], "goal": ["--max-drop", "0.3", "--trials", "3"],
            "command": ["--metric-cmd", f"{sys.executable} {c.folder / 'score.py'}", "--max-drop", "command=0.5"]}
    if name in MORE:
        ways = {"default": []}
    if name in NUMBERS:
        ways |= {"agreement": ["--min-agreement", "0.4"], "decibels": ["--min-sqnr", "3", "--trials", "2"]}
    if name == "classifier":
        ways["labels"] = ["--labels", labels, "--metric", "top1", "--max-drop", "top1=0.5"]
    for way, words in ways.items():
        out.unlink(missing_ok=True)
        rc, said = run(c, c.qconvert, model, "--data", data, "-o", out, *words)
        c.hold(f"{name}, {way}: converted", rc in (0, 1) and out.exists(), f"{rc}: {said[-400:]}")
        if out.exists():
            check_result(c, f"{name}, {way}", model, out, data, samples, want, name in NUMBERS)
    for words in () if name in NUMBERS or name in MORE else (["--min-agreement", "0.4"],):      # refused before the work, with what takes its place
        rc, said = run(c, c.qconvert, model, "--data", data, "-o", out, *words)
        c.hold(f"{name}: {words[0]}", rc == 2 and "'matched'" in said, f"{rc}: {said[-200:]}")


def durations(path):
    """As of voices that are given times: a row for each of as many frames as the longest duration has."""
    m = plainnet.Nodes(22)
    m.node("ReduceMax", [m.node("Cast", ["x"], "f", to=F)], "longest", axes=[0, 1], keepdims=0)
    m.node("Cast", [m.node("Max", ["longest", m.const("zero", np.float32(0))], "frames")], "count", to=TensorProto.INT32)
    m.node("Range", [m.const("from", np.int32(0)), "count", m.const("by", np.int32(1))], "at")
    m.node("Unsqueeze", [m.node("Cast", ["at"], "times", to=F), m.const("one", np.int64([1]))], "column")
    m.node("MatMul", [m.node("Mul", ["column", m.const("small", np.float32(0.01))], "scaled"), m.const("w", m.rng.standard_normal((1, 16)).astype(np.float32))], "p")
    m.node("MatMul", [m.node("Tanh", ["p"], "t"), m.const("v", m.rng.standard_normal((16, 4)).astype(np.float32))], "y")
    m.save(path, [("x", I64, [1, 5])], [("y", F, ["frames", 4])])


def check_durations(c):
    """A device wants quantizers around all: not around a number that becomes a count."""
    model, data = c.folder / "durations.onnx", c.folder / "durations.npy"
    durations(model)
    samples = list(np.random.default_rng(23).integers(3, 900, (COUNT, 5)))
    np.save(data, np.stack(samples))
    for target in ("qnn", "litert"):
        out = c.folder / f"durations.{target}.onnx"
        c.convert(model, out, "--data", data, "--target", target)
        c.hold(f"durations, {target}: quantized", any(n.op_type == "QuantizeLinear" for n in onnx.load(out).graph.node))
        for y, x in zip(runs(out, samples), samples):
            c.hold(f"durations, {target}: rows", len(y[0]) == x.max(), f"{len(y[0])} for {x}")


def tiled(path):
    """A quantized row that is repeated as often as the other input has numbers that are not zero, and rounded again."""
    m = plainnet.Nodes(24)
    for k, (scale, zero) in enumerate(((0.02, 100), (0.015, 90))):
        m.const(f"s{k}", np.float32(scale)), m.const(f"z{k}", np.uint8(zero))
    m.node("DequantizeLinear", [m.node("QuantizeLinear", ["x", "s0", "z0"], "q"), "s0", "z0"], "r")
    m.node("Tile", ["r", m.node("Shape", [m.node("NonZero", ["m"], "at")], "times")], "t")
    m.node("DequantizeLinear", [m.node("QuantizeLinear", ["t", "s1", "z1"], "tq"), "s1", "z1"], "tr")
    m.node("Relu", ["tr"], "y")
    m.save(path, [("x", F, [1, 8]), ("m", F, [1, 6])], [("y", F, [2, "n"])])


def check_tiled(c):
    """What a computed number repeats is rounded, too, where no plan can hold it: to the bit what NumPy says."""
    model, data, found = c.folder / "tiled.onnx", c.folder / "tiled.npz", c.folder / "tiled.out.npz"
    tiled(model)
    rng = np.random.default_rng(25)
    x, mask = rng.standard_normal((COUNT, 1, 8)).astype(np.float32), rng.integers(0, 2, (COUNT, 1, 6)).astype(np.float32)
    np.savez(data, x=x, m=mask)
    tool.run_qeval(c.qeval, model, data, found)
    with np.load(found) as got:
        for i in range(COUNT):
            y = np.tile(x[i], (2, int(mask[i].sum())))
            for scale, zero in ((np.float32(0.02), 100), (np.float32(0.015), 90)):
                y = (np.clip(np.rint(y / scale) + zero, 0, 255) - zero).astype(np.float32) * scale
            c.hold(f"tiled: sample {i}", np.array_equal(got[f"y/{i:06}"].reshape(y.shape), np.maximum(y, 0)))


def main():
    args = options(__doc__).parse_args()
    with Checker(args) as c:
        (c.folder / "score.py").write_text(COMMAND)
        for name, made in (CASES | MORE).items():
            check_case(c, name, made)
        check_durations(c)
        check_tiled(c)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
