#!/usr/bin/env python3
"""Converts small models rebuilt from public reports about quantizers, and judges them with ONNX Runtime at each of its levels of optimization.

    check_reports.py [NAME...] [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Each case is a function with @case(least, ways): it saves a model and returns samples, {input: array} each; least is what the worst output has to keep, in dB, in ways
(options of qconvert). The file must pass the checker, load without optimizations and with all, keep names and types of the ends, and qeval must measure
what NumPy does on ONNX Runtime's outputs. A case of another kind has a function of its own below.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import shlex
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
from onnx import TensorProto, helper

from pylib import isolated, peer, tool
from pylib.judge import Checker, options, sqnr
from pylib.plainnet import Nodes

F, LOWEST = np.float32, np.finfo(np.float32).min
CALIBRATE, JUDGE = 24, 12
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
CASES = {}


def case(least, *ways):
    def register(make):
        CASES[make.__name__] = (make, least, ways)
        return make
    return register


class Net(Nodes):
    """Constants without names of their own."""

    def value(self, a):
        return self.const(f"k{len(self.inits)}", a)

    def linear(self, x, ins, outs, out):
        y = self.node("MatMul", [x, self.value((self.rng.standard_normal((ins, outs)) / ins ** 0.5).astype(F))], f"{out}_product")
        return self.node("Add", [y, self.value((self.rng.standard_normal(outs) * 0.1).astype(F))], out)

    def conv(self, x, ins, outs, out, **attributes):
        w = self.value((self.rng.standard_normal((outs, ins, 3, 3)) / (9 * ins) ** 0.5).astype(F))
        return self.node("Conv", [x, w, self.value((self.rng.standard_normal(outs) * 0.1).astype(F))], out, pads=[1] * 4, **attributes)


def vectors(rng, *shape):
    return rng.standard_normal(shape).astype(F)


# ---- cases

LENGTH, WIDE = 8, 32


def attend(n, mask):
    """Attention over x whose scores `mask` changes, and a product behind it."""
    q, k, v = (n.linear("x", WIDE, WIDE, name) for name in "qkv")
    scores = n.node("MatMul", [q, n.node("Transpose", [k], "turned", perm=[0, 2, 1])], "plain_scores")
    scores = mask(n.node("Div", [scores, n.value(F(WIDE ** 0.5))], "scores"))
    share = n.node("Softmax", [scores], "share", axis=-1)
    return share, v


def finish(n, y, path, *more):
    n.node("Add", [n.linear(y, WIDE, WIDE, "projected"), "x"], "y")
    n.save(path, [("x", FLOAT, [1, LENGTH, WIDE]), *more], [("y", FLOAT, [1, LENGTH, WIDE])])


@case(20, "--target qnn", "--target qnn --scheme static", "--target openvino --scheme static", "")
def causal_mask_of_the_lowest_float(path):
    """transformers since 4.20 adds the lowest float32, where it added -10000 before: steps of 1e36 beside steps of 0.1."""
    n = Net(3)
    causal = np.triu(np.full((LENGTH, LENGTH), LOWEST, F), 1)
    share, v = attend(n, lambda s: n.node("Add", [s, n.value(causal)], "masked"))
    finish(n, n.node("MatMul", [share, v], "mixed"), path)
    return [{"x": vectors(n.rng, 1, LENGTH, WIDE)} for _ in range(CALIBRATE + JUDGE)]


@case(20, "--target qnn", "--target qnn --no-recover", "--target vitisai --no-recover", "")
def causal_mask_of_infinity(path):
    """What torch's exports add: no range holds it, and the range of the zeros beside it loses the mask."""
    n = Net(2)
    causal = np.triu(np.full((LENGTH, LENGTH), -np.inf, F), 1)
    share, v = attend(n, lambda s: n.node("Add", [s, n.value(causal)], "masked"))
    finish(n, n.node("MatMul", [share, v], "mixed"), path)
    return [{"x": vectors(n.rng, 1, LENGTH, WIDE)} for _ in range(CALIBRATE + JUDGE)]


@case(20, "--target qnn", "--target qnn --scheme static", "--target litert --scheme static", "--target litert-int16", "--target vitisai", "")
def mask_of_an_input(path):
    """(1 - mask) * lowest, one for two layers, as BERT's exports have it."""
    n = Net(4)
    hidden = n.node("Sub", [n.value(F(1)), n.node("Cast", ["mask"], "mask_float", to=FLOAT)], "hidden")
    wide = n.node("Reshape", [n.node("Mul", [hidden, n.value(LOWEST)], "addend"), n.value(np.array([1, 1, LENGTH]))], "addends")
    share, v = attend(n, lambda s: n.node("Add", [s, wide], "masked"))
    y = n.linear(n.node("MatMul", [share, v], "mixed"), WIDE, WIDE, "between")
    again = n.node("Add", [n.node("MatMul", [y, n.node("Transpose", [y], "y_turned", perm=[0, 2, 1])], "again"), wide], "masked_again")
    finish(n, n.node("MatMul", [n.node("Softmax", [again], "share_again", axis=-1), y], "mixed_again"), path, ("mask", INT64, [1, LENGTH]))
    return [{"x": vectors(n.rng, 1, LENGTH, WIDE), "mask": (np.arange(LENGTH) < n.rng.integers(3, LENGTH + 1)).astype(np.int64)[None]}
            for _ in range(CALIBRATE + JUDGE)]


@case(20, "--target litert", "--target litert-int16", "--target qnn")
def mask_of_floats(path):
    """The same without conversions of types, so that it can be a .tflite file."""
    n = Net(4)
    hidden = n.node("Sub", [n.value(F(1)), "mask"], "hidden")
    addend = n.node("Mul", [hidden, n.value(LOWEST)], "addend")
    share, v = attend(n, lambda s: n.node("Add", [s, addend], "masked"))
    finish(n, n.node("MatMul", [share, v], "mixed"), path, ("mask", FLOAT, [1, 1, LENGTH]))
    return [{"x": vectors(n.rng, 1, LENGTH, WIDE), "mask": (np.arange(LENGTH) < n.rng.integers(3, LENGTH + 1)).astype(F)[None, None]}
            for _ in range(CALIBRATE + JUDGE)]


@case(20, "", "--target qnn", "--target tensorrt", "--target vitisai", "--target onnxruntime-x86 --scheme static", "--scheme fp16", "--scheme dynamic")
def rows_that_a_mask_hides(path):
    """torch's scaled_dot_product_attention: a row with nothing to attend to is NaN, and IsNaN and Where make it 0."""
    n = Net(5)
    share, v = attend(n, lambda s: n.node("Where", ["mask", s, n.value(F(-np.inf))], "masked"))
    safe = n.node("Where", [n.node("IsNaN", [share], "is_nan"), n.value(F(0)), share], "safe")
    finish(n, n.node("MatMul", [safe, v], "mixed"), path, ("mask", TensorProto.BOOL, [1, LENGTH, LENGTH]))
    made = [{"x": vectors(n.rng, 1, LENGTH, WIDE), "mask": n.rng.random((1, LENGTH, LENGTH)) > 0.4} for _ in range(CALIBRATE + JUDGE)]
    for sample in made:
        sample["mask"][0, n.rng.integers(LENGTH)] = False
    return made


@case(20, "", "--target qnn --min-sqnr 22", "--scheme fp16", "--scheme dynamic")
def missing_features(path):
    """torch.nan_to_num of the input, and which values were missing, as a network of a table has it."""
    n = Net(6)
    missing = n.node("IsNaN", ["x"], "missing")
    known = n.node("Where", [n.node("Not", [missing], "present"), "x", n.value(F(0))], "known")
    both = n.node("Concat", [known, n.node("Cast", [missing], "flags", to=FLOAT)], "both", axis=1)
    n.linear(n.node("Relu", [n.linear(both, 20, 32, "inner")], "active"), 32, 4, "y")
    n.save(path, [("x", FLOAT, ["N", 10])], [("y", FLOAT, ["N", 4])])
    made = [{"x": vectors(n.rng, 1, 10)} for _ in range(CALIBRATE + JUDGE)]
    for sample in made:
        sample["x"][0, n.rng.integers(10)] = np.nan
    return made


@case(20, "", "--scheme static", "--scheme static --format qoperator", "--target onnxruntime-arm64")
def cubic_to_a_smaller_size(path):
    """ONNX Runtime makes the channels the last behind Convs on integers, and then has no kernel for this Resize."""
    n = Net(7)
    y = n.node("Relu", [n.conv("x", 4, 8, "one")], "one_active")
    y = n.node("Relu", [n.conv(y, 8, 8, "two")], "two_active")
    y = n.node("Resize", [n.node("Sigmoid", [y], "gate"), "", n.value(np.array([1, 1, 0.5, 0.5], F))], "small", mode="cubic")
    n.conv(y, 8, 3, "y")
    n.save(path, [("x", FLOAT, [1, 4, 16, 16])], [("y", FLOAT, [1, 3, 8, 8])])
    return [{"x": vectors(n.rng, 1, 4, 16, 16)} for _ in range(CALIBRATE + JUDGE)]


# ---- judging

def run(path, samples, **how):
    """{output: array of all samples}"""
    session = peer.session(path, **how)
    runs = [session.run(None, peer.feed(session, x)) for x in samples]
    return {o.name: np.stack([y[i] for y in runs]) for i, o in enumerate(session.get_outputs())}


def save(folder, samples):
    folder.mkdir()
    for i, x in enumerate(samples):
        np.savez(folder / f"{i:03d}.npz", **x)
    return folder


def ends(path):
    graph = onnx.load(path).graph
    return [(v.name, v.type.SerializeToString()) for v in (*graph.input, *graph.output)]


def measured(c, model, out, data):
    tool.run([c.qeval, model, out, "--data", data, "--metric", "sqnr", "--json", c.folder / "eval.json", "-q"])
    return json.loads((c.folder / "eval.json").read_text())["quant"]["metrics"]["sqnr"]


def check_way(c, what, model, samples, data, least, way):
    out = c.folder / "out.onnx"
    c.convert(model, out, "--data", data[0], *shlex.split(way))
    onnx.checker.check_model(str(out), full_check=True)
    c.hold(f"{what}: the ends stay", ends(out) == ends(model), ends(out))
    want, lowest = run(model, samples, optimize=False), {}
    for name, how in (("plain", {"optimize": False}), ("optimized", {"exact": True})):
        lowest[name] = sqnr(want, run(out, samples, **how))
        c.hold(f"{what}: {name}", lowest[name] >= least, f"{lowest[name]:.1f} dB")
    said = measured(c, model, out, data[1])
    c.hold(f"{what}: qeval's own figure", min(said, 60) > min(lowest["optimized"], 60) - 1.5, f"{said:.1f} dB, {lowest['optimized']:.1f} in ONNX Runtime")


def check_case(c, name):
    make, least, ways = CASES[name]
    model = c.folder / f"{name}.onnx"
    samples = make(model)
    data = [save(c.folder / f"{name}.{part}", x) for part, x in (("calib", samples[:CALIBRATE]), ("eval", samples[CALIBRATE:]))]
    for way in ways:
        check_way(c, f"{name} {way}", model, samples[CALIBRATE:], data, least, way)


def in_litert(task):
    """Outputs of LiteRT, which ends the process where a factor of fixed point is too large for it."""
    from ai_edge_litert.interpreter import Interpreter

    path, samples = task
    runtime = Interpreter(model_path=path)
    runtime.allocate_tensors()
    outputs = []
    for sample in samples:
        for given in runtime.get_input_details():
            x = next(x for x in sample.values() if sorted(x.shape) == sorted(given["shape"]))
            runtime.set_tensor(given["index"], x.reshape(given["shape"]))
        runtime.invoke()
        outputs.append(runtime.get_tensor(runtime.get_output_details()[0]["index"]))
    return np.stack(outputs)


def check_litert(c):
    """Masks in .tflite files, in LiteRT."""
    if not packages.has("ai_edge_litert"):
        print("skipped: LiteRT is not installed")
        return
    model, worker = c.folder / "tflite.onnx", isolated.Worker(in_litert, 60)
    samples = CASES["mask_of_floats"][0](model)
    data = save(c.folder / "tflite", samples[:CALIBRATE])
    want = run(model, samples[CALIBRATE:])["y"]
    for target in ("litert", "litert-int16"):
        out = c.folder / f"{target}.tflite"
        c.convert(model, out, "--data", data, "--target", target)
        try:
            db = sqnr([want], [worker.call((str(out), samples[CALIBRATE:]))])
        except isolated.Died:
            db = -np.inf
        c.hold(f"masks of {target}: in LiteRT", db >= 20, f"{db:.1f} dB")
    worker.stop()


def check_samples_apart(c):
    """A model with an open batch that says a batch of 1 inside: its samples must not be run together."""
    n, model, out = Net(8), c.folder / "apart.onnx", c.folder / "apart.npz"
    y = n.node("Relu", [n.conv("x", 3, 4, "one")], "active")
    y = n.node("Resize", [y, "", "", n.value(np.array([1, 4, 5, 5]))], "resized", mode="linear")
    n.node("Softmax", [n.conv(y, 4, 2, "two")], "y", axis=0)
    n.save(model, [("x", FLOAT, ["N", 3, 8, 8])], [("y", FLOAT, ["N", 2, 5, 5])])
    samples = [{"x": vectors(n.rng, 1, 3, 8, 8)} for _ in range(JUDGE)]
    got = tool.run_qeval(c.qeval, model, save(c.folder / "apart", samples), out)["y"]
    want = run(model, samples)["y"][:, 0]
    c.hold("samples apart: outputs of each", got.shape == want.shape and np.abs(got - want).max() < 1e-5, f"{list(got.shape)}, expected {list(want.shape)}")


def check_foreign(c):
    """A model with an operator that Octet does not have: the comparison that is proposed is for another runtime, not one that fails."""
    n, model = Net(9), c.folder / "foreign.onnx"
    y = n.node("Relu", [n.conv("x", 3, 8, "one")], "active")
    y = n.node("SparseToDenseMatMul", [n.node("Flatten", [y], "flat"), n.value(n.rng.standard_normal((200, 4)).astype(F))], "joined", domain="com.microsoft")
    n.linear(y, 4, 4, "y")
    n.save(model, [("x", FLOAT, [1, 3, 5, 5])], [("y", FLOAT, [1, 4])], domains=("com.microsoft",))
    data = save(c.folder / "foreign", [{"x": vectors(n.rng, 1, 3, 5, 5)} for _ in range(CALIBRATE)])
    for more in ((), ("--data", data)):
        (then,) = [s for s in c.convert(model, c.folder / "out.onnx", *more)["next"] if s["about"] == "next"]
        c.hold(f"foreign {len(more)}: what is proposed", then["command"].endswith(" --runner COMMAND") and not then["complete"], then)


def main():
    parser = options(__doc__)
    parser.add_argument("names", nargs="*", help="only these")
    args = parser.parse_args()
    with Checker(args) as c:
        for name in args.names or CASES:
            check_case(c, name)
        if not args.names:
            check_litert(c)
            check_samples_apart(c)
            check_foreign(c)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
