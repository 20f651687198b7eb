#!/usr/bin/env python3
"""Compares how many products qconvert announces on integers with those that ONNX Runtime runs so.

    check_deployed.py [--zoo FOLDER] [--shared FOLDER] [--only GLOB]... [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Models are converted for ONNX Runtime, and its optimizer is asked for the graph that it would run. Conv, Gemm, MatMul and LSTM on integers
are counted there, in nested graphs too, and in the report; also where every second product stays float between integer ones ("halves"), whose constants
ONNX Runtime would quantize. The models: those of testdata/, small networks, dense layers in the forms in which
ONNX Runtime fuses a sum, with --zoo those that make_zoo.py made there, with --shared the trained ones.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
sys.path.append(str(Path(__file__).resolve().parents[1] / "generate"))  # for make_zoo
import numpy as np
import onnx

from pylib import every_model, peer
from pylib.digest_models import Model
from pylib.plainnet import Net

WAYS = {"qdq": (), "qoperator": ("--format", "qoperator"), "dynamic": ("--scheme", "dynamic"), "halves": (), "halves, qoperator": ("--format", "qoperator")}
INTEGER = peer.INTEGER | {"DynamicQuantizeLSTM"}
ANNOUNCED = {"Conv", "Gemm", "MatMul", "LSTM", "QLinearConv", "QLinearMatMul", "QGemm", "MatMulInteger", "ConvInteger"}


def dense(path, rank, act, row):
    """Two dense layers with biases, as a vector or as a matrix of one row."""
    net = Net(3)
    y = net.node("MatMul", ["x", net.const("w1", 24, 16, scale=0.2)], "a")
    y = net.node("Add", [y, net.const("b1", *((1, 16) if row else (16,)))], "b")
    y = net.node(act, [y], "c") if act else y
    y = net.node("MatMul", [y, net.const("w2", 16, 8, scale=0.2)], "d")
    net.node("Add", [y, net.const("b2", 8)], "y")
    return net.save(path, [1, 24] if rank == 2 else [1, 5, 24])


def clamped(path, act, readers):
    """A product behind which a clamp stands that nothing reads as integers."""
    net = Net(3)
    y = net.node("MatMul", ["x", net.const("w", 24, 16, scale=0.2)], "a")
    y = net.node(act, [y, *([net.const("least", value=np.float32(0)), net.const("most", value=np.float32(6))] if act == "Clip" else [])], "b")
    z = net.node("Exp", [y], "c" if readers > 1 else "y")
    if readers > 1:
        net.node("Sub", [z, y], "y")
    return net.save(path, [1, 24])


def pooled(path):
    """Convs with a MaxPool between each two: quantizers are moved over it."""
    net, y = Net(3), "x"
    for i, (n, m) in enumerate(((3, 8), (8, 8), (8, 12), (12, 8), (8, 8))):
        y = net.node("Conv", [y, net.const(f"w{i}", m, n, 3, 3, scale=0.2), net.const(f"b{i}", m)], f"c{i}", pads=[1, 1, 1, 1])
        y = net.node("Relu", [y], f"r{i}")
        y = net.node("MaxPool", [y], "y" if i == 4 else f"p{i}", kernel_shape=[2, 2], strides=[2, 2])
    return net.save(path, [1, 3, 64, 64])


def own_models(folder):
    path = folder / "pooled.onnx"
    np.save(path.with_suffix(".npy"), np.stack(pooled(path)))
    yield Model("pooled", path, path.with_suffix(".npy"))
    yield from dense_layers(folder)


def dense_layers(folder):
    for act in ("Relu", "Clip"):
        for readers in (1, 2):
            path = folder / f"clamped{act}{readers}.onnx"
            np.save(path.with_suffix(".npy"), np.stack(clamped(path, act, readers)))
            yield Model(f"dense/{act}, {readers} readers", path, path.with_suffix(".npy"))
    for rank in (2, 3):
        for act in (None, "Relu", "Sigmoid", "Tanh"):
            for row in (False, True):
                name = f"rank {rank}, {act}, {'row' if row else 'vector'}"
                path = folder / f"{name.replace(' ', '')}.onnx"
                np.save(path.with_suffix(".npy"), np.stack(dense(path, rank, act, row)))
                yield Model(f"dense/{name}", path, path.with_suffix(".npy"))


def twins(path):
    """How many products have the operands of another one: ONNX Runtime computes these once."""
    operands = [tuple(n.input) for n in onnx.load(path).graph.node if n.op_type == "MatMulInteger"]
    return len(operands) - len(set(operands))


def check(c, model, way):
    out, data = c.folder / "out.onnx", ("--data", model.data, *model.options)
    try:
        args = ("--no-recover", *WAYS[way], *(() if way == "dynamic" else data))
        report = c.convert(model.path, out, *args)
        if way.startswith("halves"):
            said = [x["name"] for x in report["layers"] if x["integer"] and x["op"] in ANNOUNCED]
            (c.folder / "halves.policy").write_text("".join(f"name:{name} float\n" for name in said[::2]))
            report = c.convert(model.path, out, *args, "--policy", c.folder / "halves.policy")
        counts = peer.node_counts(out)
    except Exception as error:  # refused by one of them: nothing is announced, or nothing runs
        if "exit -" in str(error):
            c.hold(f"{model.name}, {way}", False, f"it crashed: {error}")
        if c.verbose:
            print(f"left out: {model.name}, {way}: {str(error)[:160]}")
        return
    said = [x["name"] for x in report["layers"] if x["integer"] and x["op"] in ANNOUNCED]
    run = sum(n for op, n in counts.items() if op in INTEGER)
    c.hold(f"{model.name}, {way}", len(said) - twins(out) <= run <= len(said), f"{len(said)} announced, {run} run: {said[:8]}, {counts}")


if __name__ == "__main__":
    sys.exit(every_model.run(__doc__, own_models, WAYS, check, every=2))
