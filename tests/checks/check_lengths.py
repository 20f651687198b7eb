#!/usr/bin/env python3
"""Files of one sample each whose arrays have other lengths along an open first dimension: read, run one by one, and exact.

    check_lengths.py [--qconvert PROGRAM] [--qeval PROGRAM] [--qcalib PROGRAM] [-v]

Networks: one whose output has a length that its values decide, as of speech, and one of attention along the open dimension. What qeval computes for
each file is ONNX Runtime's; a calibration and a conversion have the same bytes with any number of threads, from the folder, a list and an archive,
and in parts that are merged. A folder of stacked pictures is refused as before.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import sys
import tarfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pylib import peer, tool
from pylib.judge import Checker, options

CLOSE = 1e-4  # of the largest value
LENGTHS = [1 + 7 * k % 13 for k in range(24)]


class Graph:
    def __init__(self, seed):
        self.rng, self.nodes, self.constants = np.random.default_rng(seed), [], []

    def const(self, a):
        self.constants.append(numpy_helper.from_array(np.asarray(a), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def weight(self, *shape):
        return self.const((self.rng.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32))

    def op(self, kind, *inputs, out=None, **attributes):
        out = out or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [out], name=f"{kind}_{len(self.nodes)}", **attributes))
        return out

    def save(self, path, out_dims):
        made = helper.make_graph(self.nodes, path.stem, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["t", 16])],
                                 [helper.make_tensor_value_info("y", TensorProto.FLOAT, out_dims)], self.constants)
        onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
        return path


def speech(path):
    """An output as long as the values say."""
    g = Graph(1)
    hidden = g.op("Relu", g.op("MatMul", "x", g.weight(16, 32)))
    duration = g.op("ReduceSum", g.op("Exp", g.op("MatMul", hidden, g.weight(32, 1))), keepdims=0)
    times = g.op("Reshape", g.op("Cast", g.op("Ceil", duration), to=TensorProto.INT64), g.const(np.array([1], np.int64)))
    frame = g.op("MatMul", g.op("ReduceMean", hidden, axes=[0], keepdims=1), g.weight(32, 8))
    g.op("Tile", frame, g.op("Concat", g.const(np.array([1], np.int64)), times, axis=0), out="y")
    return g.save(path, [1, "n"])


def attention(path):
    """A product whose input has as many channels as the sample is long."""
    g = Graph(2)
    q, k, v = (g.op("MatMul", "x", g.weight(16, 16)) for _ in range(3))
    share = g.op("Softmax", g.op("MatMul", q, g.op("Transpose", k, perm=[1, 0])), axis=-1)
    g.op("MatMul", g.op("MatMul", share, v), g.weight(16, 8), out="y")
    return g.save(path, ["t", 8])


def samples(folder):
    rng = np.random.default_rng(3)
    folder.mkdir()
    for i, n in enumerate(LENGTHS):
        np.save(folder / f"{i:02}.npy", (2 * rng.normal(size=(n, 16))).astype(np.float32))
    files = sorted(folder.glob("*.npy"))
    (folder.parent / "list.csv").write_text("file\n" + "".join(f"{f}\n" for f in files))
    with tarfile.open(folder.parent / "all.tar", "w") as t:
        for f in files:
            t.add(f, arcname=f.name)
    return files


def outputs(c, model, data, *more):
    """[array] of the output: one for each sample, or all joined where they differ in the first dimension alone."""
    got = tool.run_qeval(c.qeval, model, data, c.folder / "out.npz", extra=["-q", *more])
    return [got[name] for name in sorted(got)]


def written(c, program, model, data, suffix, *more):
    out = c.folder / f"out{suffix}"
    tool.run([program, model, "--data", data, "-o", out, "-q", *more])
    return out.read_bytes()


def check(c, model, files, qcalib):
    folder, name = files[0].parent, model.stem
    session = peer.session(model)
    want = [session.run(None, {"x": np.load(f)})[0] for f in files]
    want = [np.concatenate(want)] if len({y.shape[1:] for y in want}) == 1 else want
    for more in ([], ["--batch", "4"]):
        got = outputs(c, model, folder, *more)
        c.hold(f"{name}: outputs {more}", len(got) == len(want) and all(
            a.shape == b.shape and np.abs(a - b).max() <= CLOSE * np.abs(b).max() for a, b in zip(got, want, strict=True)),
            f"{[a.shape for a in got]}, {[a.shape for a in want]}")
    table = written(c, qcalib, model, folder, ".calib", "--threads", "1")
    converted = written(c, c.qconvert, model, folder, ".onnx", "--threads", "1")
    for threads in ("2", "5"):
        c.hold(f"{name}: table, {threads} threads", written(c, qcalib, model, folder, ".calib", "--threads", threads) == table)
        c.hold(f"{name}: model, {threads} threads", written(c, c.qconvert, model, folder, ".onnx", "--threads", threads) == converted)
    for data in ("list.csv", "all.tar"):
        again = [line for line in written(c, qcalib, model, folder.parent / data, ".calib").splitlines() if not line.startswith(b"shard ")]
        c.hold(f"{name}: table of {data}", again == [line for line in table.splitlines() if not line.startswith(b"shard ")])
    parts = [c.folder / f"{i}.calib" for i in range(3)]
    for i, part in enumerate(parts):
        tool.run([qcalib, model, "--data", folder, "-o", part, "-q", "--shard", f"{i}/3"])
    tool.run([qcalib, "merge", *parts, "-o", c.folder / "merged.calib", "-q"])
    c.hold(f"{name}: parts merged", (c.folder / "merged.calib").read_bytes() == table)


def main():
    parser = options(__doc__)
    parser.add_argument("--qcalib", default=tool.find("qcalib"))
    args = parser.parse_args()
    with Checker(args) as c:
        work = c.folder
        files = samples(work / "data")
        for network in (speech, attention):
            check(c, network(work / f"{network.__name__}.onnx"), files, Path(args.qcalib).resolve())
        (work / "stacked").mkdir()
        np.save(work / "stacked/0.npy", np.zeros((5, 3, 32, 32), np.float32))
        try:
            outputs(c, tool.ROOT / "testdata/demo.onnx", work / "stacked")
            c.hold("stacked pictures are refused", False)
        except tool.ToolError as e:
            c.hold("stacked pictures are refused", "every row is a sample" in str(e), str(e))
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
