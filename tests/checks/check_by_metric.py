#!/usr/bin/env python3
"""Where labels say what is right, ranges are chosen by the metric: a network of which SQNR sees only what decides nothing.

    check_by_metric.py [--qconvert PROGRAM] [-v]

One input of the network is rare and large, and moves a class that is never chosen: by SQNR a range that holds it is best, in which the other inputs
round to 0. With labels, and with the metric asked for, the observer that the record names is one that clips it, the record has the metric, and
ONNX Runtime finds the accuracy of float in the result, on samples that the conversion never saw. Without, nothing tells.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pylib.judge import Checker, options, run_ort

WIDTH, CLASSES, COUNT = 32, 8, 320


def make(path, seed):
    """Writes the network; returns its samples and their classes."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal((WIDTH, CLASSES)).astype(np.float32)
    w[:, 0] = -0.3 * np.abs(w[:, 0])
    w[0] = 0
    w[0, 0] = -3    # of the rare input
    x = rng.standard_normal((COUNT, WIDTH)).astype(np.float32)
    x[:, 0] = np.where(np.arange(COUNT) % 61 == seed, 700 + 100 * seed, 0.1)
    graph = helper.make_graph([helper.make_node("Gemm", ["x", "w"], ["y"], name="product")], "labelled",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, WIDTH])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, CLASSES])], [numpy_helper.from_array(w, "w")])
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)
    return x, (x @ w).argmax(1)


def check(c, seed):
    model, out, data, truth = (c.folder / f"{seed}{end}" for end in (".onnx", ".q.onnx", ".npz", ".labels.npy"))
    x, labels = make(model, seed)
    np.savez(data, x=x[:256])
    np.save(truth, labels[:256])
    others = [{"x": a[None]} for a in x[256:]]
    for what, more in (("labels", ["--labels", truth]), ("labels and a metric", ["--labels", truth, "--metric", "top1"])):
        report = c.convert(model, out, "--data", data, "--no-method", "mixed-precision", *more)
        search = next(m for m in report["methods"] if m["name"] == "observer-search")
        right = np.mean(np.concatenate(run_ort(out, others)).reshape(-1, CLASSES).argmax(1) == labels[256:])
        c.hold(f"{seed}, {what}: the observer", search["choice"].startswith("hist-percentile"), str(search))
        c.hold(f"{seed}, {what}: what was measured", search["measure"] == "top1" and search["after"] > search["before"] + 0.2 and
               search["next_value"] <= search["after"], str(search))
        c.hold(f"{seed}, {what}: accuracy on other samples", right > 0.9, f"{right:.3f}")


def main():
    args = options(__doc__).parse_args()
    with Checker(args) as c:
        for seed in range(1, 4):
            check(c, seed)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
