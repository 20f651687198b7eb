#!/usr/bin/env python3
"""Converts many models to 16-bit floats, without samples, and sees that each result loads and stays finite.

    check_half_loads.py [--mixes N] [--only GLOB] [--shared DIR] [--qconvert PROGRAM] [-v]

Models: those of testdata/, small networks, and N mixes of nodes whose types converters lose (pylib/mixes.py); --shared: trained ones. Of each that
ONNX Runtime loads, what --scheme fp16 and bf16 write, with float32 and with 16-bit inputs and outputs, must load, too, and pass the ONNX checker where
the model does. Foreign operators stand for ones that take float32 alone. Of mixes the outputs of fp16 must be finite where the float model's are,
with samples and without. Operators of com.microsoft compute in float16 where ONNX Runtime has them so. The traps of lib/targets/traps.inc are tried as they are: where the installed version loads one, this is said; what is
written in their place for ONNX Runtime must load.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.append(str(Path(__file__).resolve().parents[1] / "generate"))  # for make_zoo
from pylib import digest_models, mixes, peer, tool
from pylib.judge import Checker, options, sqnr

WAYS = (("fp16",), ("fp16", "--no-keep-io-types"), ("bf16",), ("bf16", "--no-keep-io-types"))
REFUSED = (4, 5)  # exit codes: nothing is written


class Loader:
    """A process that checks and loads models, and is started anew when one crashes it."""
    def __init__(self):
        self.process = None

    def ask(self, path):
        """{"load": why it does not load, "check": why it does not pass the checker}, "" where it does."""
        if not self.process:
            self.process = subprocess.Popen([sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, text=True)
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if answer:
            return json.loads(answer)
        code, self.process = self.process.wait(), None
        return {"load": f"ONNX Runtime ended with {code}", "check": ""}


def why_not(act):
    try:
        act()
    except Exception as error:
        return " ".join(str(error).split())[:300] or type(error).__name__
    return ""


def serve():
    for line in sys.stdin:
        path = line.strip()
        print(json.dumps({"check": why_not(lambda: onnx.checker.check_model(path, full_check=True)), "load": why_not(lambda: peer.session(path))}),
              flush=True)


# ---- what is written

def convert(c, model, out, *more):
    """The exit code."""
    return subprocess.run([c.qconvert, model, "-o", out, "-q", "--scheme", *more], stderr=subprocess.DEVNULL, check=False).returncode


def check_written(c, loader, name, model, way, before, define=None):
    """Whether a model was written; it must load."""
    out = c.folder / "half.onnx"
    code = convert(c, model, out, *way)
    if code:
        c.hold(f"{name} {' '.join(way[:2])}: exit", code in REFUSED, f"{code}")
        return None
    if define:
        onnx.save(define(onnx.load(out)), c.folder / "defined.onnx")
        out = c.folder / "defined.onnx"
    after = loader.ask(out)
    c.hold(f"{name} {' '.join(way[:2])}: loads", not after["load"], after["load"])
    c.hold(f"{name} {' '.join(way[:2])}: checker", before["check"] or not after["check"], after["check"])
    return None if after["load"] else out


def check_file(c, loader, name, path):
    before = loader.ask(path)
    for way in () if before["load"] else WAYS:
        check_written(c, loader, name, path, way, before)


# ---- mixes

def outputs(path, samples):
    session = peer.session(path)
    runs = [session.run(None, peer.feed(session, x)) for x in samples]
    return [np.stack(part).astype(np.float64) for part in zip(*runs, strict=True)]


def check_mix(c, loader, seed, samples, data):
    model, defined = c.folder / "mix.onnx", c.folder / "mix-defined.onnx"
    made = mixes.make(seed)
    onnx.save(made, model)
    onnx.save(mixes.defined(made), defined)
    before = loader.ask(defined)
    if before["load"] or why_not(lambda: outputs(defined, samples)):
        return
    want = outputs(defined, samples)
    for way in (*WAYS, ("fp16", "--data", str(data))):
        out = check_written(c, loader, f"mix {seed}", model, way, before, mixes.defined)
        if out and way[0] == "fp16" and "--no-keep-io-types" not in way:
            lost = sum(int(np.sum(np.isfinite(a) & ~np.isfinite(b))) for a, b in zip(want, outputs(out, samples), strict=True))
            c.hold(f"mix {seed} {' '.join(way[:2])}: finite", not lost, f"{lost} elements are not")


def check_cancelling(c, samples, data):
    """With samples what is lost in float16, though it holds all values, is found and stays float32."""
    model, out = c.folder / "cancelling.onnx", c.folder / "cancelling-half.onnx"
    onnx.save(mixes.cancelling(), model)
    report = c.convert(model, out, "--scheme", "fp16", "--data", data)
    float32 = {layer["op"] for layer in report["layers"] if "infinite or NaN for a sample" in layer["why"]}
    c.hold("cancelling: Sub and Div stay float32", {"Sub", "Div"} <= float32, f"{float32}")
    found = sqnr(outputs(model, samples), outputs(out, samples))
    c.hold("cancelling: SQNR", found > 60, f"{found:.1f} dB")


# ---- operators of com.microsoft, as ONNX Runtime's transformer tools and model builders write them

VECTOR, HEADS = "vector", "heads"  # constants of 64 values, and (for Attention) the weights and biases of queries, keys and values
MICROSOFT = {  # operator: its inputs after the data, its attributes; "x": the data again
    "SkipLayerNormalization": (["x", VECTOR, VECTOR], {"epsilon": 1e-5}),
    "SkipSimplifiedLayerNormalization": (["x", VECTOR], {"epsilon": 1e-5}),
    "BiasGelu": ([VECTOR], {}),
    "FastGelu": ([], {}),
    "QuickGelu": ([], {}),
    "Gelu": ([], {}),
    "MultiHeadAttention": (["x", "x"], {"num_heads": 4}),
    "Attention": ([HEADS, HEADS], {"num_heads": 4}),
    "GroupQueryAttention": (["x", "x", "", "", "last", "total"], {"num_heads": 4, "kv_num_heads": 4}),
    "RotaryEmbedding": (["positions", "cosines", "sines"], {"num_heads": 4}),
}


def microsoft(op):
    """Two products of [1,8,64] with the operator between them."""
    rng = np.random.default_rng(7)
    inputs, attributes = MICROSOFT[op]
    angles = rng.normal(size=(8, 8))
    constants = {"w0": rng.normal(0, 0.1, (64, 64)), "w1": rng.normal(0, 0.1, (64, 64)), VECTOR: rng.normal(1, 0.1, 64), "cosines": np.cos(angles),
                 "sines": np.sin(angles), "heads1": rng.normal(0, 0.1, (64, 192)), "heads2": rng.normal(0, 0.1, 192)}
    constants = {k: v.astype(np.float32) for k, v in constants.items()}
    constants |= {"last": np.array([7], np.int32), "total": np.array(8, np.int32), "positions": np.arange(8)[None]}
    names = ["m", *("m" if i == "x" else f"heads{k}" if i == HEADS else i for k, i in enumerate(inputs, 1))]
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["m"]), helper.make_node(op, names, ["o"], domain="com.microsoft", **attributes),
             helper.make_node("MatMul", ["o", "w1"], ["y"])]
    used = {i for n in nodes for i in n.input}
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 64])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 64])],
                              [numpy_helper.from_array(v, k) for k, v in constants.items() if k in used])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8)


def check_microsoft(c):
    """They compute in float16, too, so that only the ends have a Cast."""
    samples = [np.random.default_rng(k).normal(size=(1, 8, 64)).astype(np.float32) for k in range(4)]
    for op in MICROSOFT:
        model, out = c.folder / "microsoft.onnx", c.folder / "microsoft-half.onnx"
        onnx.save(microsoft(op), model)
        report = c.convert(model, out, "--scheme", "fp16")
        wide = [f"{layer['op']}: {layer['why']}" for layer in report["layers"] if layer["scheme"] != "fp16"]
        c.hold(f"{op}: all is float16", not wide, f"{wide}")
        casts = sum(n.op_type == "Cast" for n in onnx.load(out).graph.node)
        c.hold(f"{op}: a Cast at each end", casts == 2, f"{casts}")
        found = sqnr(outputs(model, samples), outputs(out, samples))
        c.hold(f"{op}: SQNR", found > 60, f"{found:.1f} dB")


# ---- models of float16

def check_own(c):
    """A float16 model keeps its operators without a Cast, norms and Softmax too, but where the user asks for float32."""
    rng = np.random.default_rng(3)
    constants = {k: rng.normal(0, 0.2, (64, 64)).astype(np.float16) for k in ("w0", "w1", "w2")} | {"ones": np.ones(64, np.float16), "zeros": np.zeros(64, np.float16)}
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["a"]), helper.make_node("LayerNormalization", ["a", "ones", "zeros"], ["b"]), helper.make_node("MatMul", ["b", "w1"], ["c"]),
             helper.make_node("Softmax", ["c"], ["d"]), helper.make_node("MatMul", ["d", "w2"], ["y"])]
    model, out = c.folder / "own.onnx", c.folder / "own-half.onnx"
    onnx.save(_model(nodes, [4, 64], constants.items()), model)
    for more, casts in (((), 0), (("--set", "op:Softmax=float"), 2)):
        report = c.convert(model, out, "--scheme", "fp16", *more)
        got = [n.op_type for n in onnx.load(out).graph.node]
        c.hold(f"float16 model {' '.join(more)}: {casts} Casts", got.count("Cast") == casts and [o for o in got if o != "Cast"] == [n.op_type for n in nodes], f"{got}")
        wide = sorted(layer["op"] for layer in report["layers"] if layer["scheme"] != "fp16" and layer["op"] != "Cast")  # those of the ends are gone in the file
        c.hold(f"float16 model {' '.join(more)}: what the report says", wide == (["Softmax"] if more else []), f"{wide}")
        samples = [rng.normal(size=(4, 64)).astype(np.float16) for _ in range(3)]
        found = sqnr(outputs(model, samples), outputs(out, samples))
        c.hold(f"float16 model {' '.join(more)}: SQNR", found > 50, f"{found:.1f} dB")


# ---- traps

def _model(nodes, shape, constants=(), opset=17):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT16, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT16, None)],
                              [numpy_helper.from_array(np.asarray(v), k) for k, v in constants])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


TRAPS = {
    "float16-turned-batch": lambda: _model([helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2]), helper.make_node("MatMul", ["t", "w"], ["y"])],
                                           [4, 8, 16], [("w", np.ones((16, 16), np.float16))]),
    "float16-mean-variance": lambda: _model([helper.make_node("MeanVarianceNormalization", ["x"], ["n"]), helper.make_node("MatMul", ["n", "w"], ["y"])],
                                            [2, 3, 4, 16], [("w", np.ones((16, 16), np.float16))], opset=13),
    "float16-scatter-reduction": lambda: _model([helper.make_node("ScatterND", ["x", "at", "x"], ["y"], reduction="add")], [2, 3],
                                                [("at", np.array([[0], [0]]))]),
}


def in_float32(model):
    model = onnx.ModelProto.FromString(model.SerializeToString())
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT
    for k in model.graph.initializer:
        k.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(k).astype(np.float32), k.name))
    return model


def check_traps(c, loader):
    names = re.findall(r'OCT_TRAP\("([\w-]+)"', (tool.ROOT / "lib/targets/traps.inc").read_text())
    c.hold("traps: each has a model here", sorted(names) == sorted(TRAPS), f"{names}")
    for name, make in TRAPS.items():
        trap, model = c.folder / "trap.onnx", c.folder / "float.onnx"
        onnx.save(make(), trap)
        onnx.save(in_float32(make()), model)
        if not loader.ask(trap)["load"]:
            print(f"{name}: the installed ONNX Runtime loads it")
        check_file(c, loader, name, model)


def main():
    parser = options(__doc__)
    parser.add_argument("--mixes", type=int, default=60)
    parser.add_argument("--only", metavar="GLOB", default="*")
    parser.add_argument("--shared", type=Path)
    args = parser.parse_args()
    with Checker(args) as c:
        loader, work = Loader(), c.folder / "models"
        work.mkdir()
        models = [*digest_models.bundled(work), *digest_models.small(work, lambda _: True)]
        models += digest_models.trained(work, args.shared, lambda _: True) if args.shared else []
        for m in models:
            if fnmatch(m.name, args.only):
                check_file(c, loader, m.name, m.path)
        samples, data = mixes.samples(4), c.folder / "samples.npy"
        np.save(data, np.stack(samples))
        for seed in range(args.mixes):
            if fnmatch(f"mix/{seed}", args.only):
                check_mix(c, loader, seed, samples, data)
        check_cancelling(c, samples, data)
        check_microsoft(c)
        check_own(c)
        check_traps(c, loader)
        return c.finish()


if __name__ == "__main__":
    sys.exit(serve() if sys.argv[1:] == ["--serve"] else main())
