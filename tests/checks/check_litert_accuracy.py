#!/usr/bin/env python3
"""The accuracy of .tflite files in LiteRT, on labelled data, beside the .onnx of the same conversion in ONNX Runtime.

    tests/checks/check_litert_accuracy.py [--qconvert PROGRAM] [--all] [-v]

Each model of pylib/zoo.py is converted twice by the same command, but for the file: to .onnx and to .tflite. The metric of the .tflite, with
XNNPACK's kernels and with the reference kernels, must not be below that of the .onnx by more than chance (the paired 95 % interval), and the
file must be no larger than 1.03 times the .onnx. The demo; where ../shared is there, those of its models that take seconds (--all: all of
them). scripts/development/tflite_tables.py writes the table of docs/tflite.md with these functions.

Needs Python packages (ai_edge_litert among them): runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime", "ai_edge_litert", "PIL")
import check_tflite
import numpy as np

from pylib import peer, tasks, tool, zoo
from pylib.judge import Checker, options
from pylib.samples import open_samples

QUICK = ["demo", "resnet8_cifar10", "vww_mobilenet_96", "kws_dscnn", "ad01_autoencoder", "mnist_cnn", "mnist_cntk_op8"]
LARGEST = 1.03  # of the .onnx


def outputs(path, samples, kernels, said, name):
    """{output: array}, as peer.run_all has them, of a .tflite file in LiteRT."""
    parts = {}
    for _, x in samples.batches(1):
        for output, y in check_tflite.run_theirs(path, {name: x}, kernels, said).items():
            parts.setdefault(output, []).append(y)
    return {output: np.concatenate(ys) for output, ys in parts.items()}


def measured(c, m):
    """What is known of a model: sizes and metrics; differences to the .onnx with their intervals, of which positive ones are better."""
    model, calib, data, labels = m.paths(tool.SHARED)
    words = ["--target", "litert", "--data", calib, "--samples", m.calib_samples, *(["--preprocess", m.preprocess] if m.preprocess else [])]
    files = {kind: c.folder / f"accuracy.{kind}" for kind in ("onnx", "tflite")}
    said = {kind: check_tflite.write(c, model, path, *words) for kind, path in files.items()}
    samples, task = open_samples(data, m.preprocess, labels), tasks.TASKS[m.metric]
    truth, name = m.truth(tool.SHARED, samples), check_tflite.model_input(model).name
    reference = peer.run_all(peer.session(model), samples)
    scores = {"float": task(reference, samples, truth, reference),
              "onnx": task(peer.run_all(peer.session(files["onnx"], exact=True), samples), samples, truth, reference)}
    sign = -1 if m.metric in tasks.LOWER_IS_BETTER else 1
    found = {"model": m.name, "metric": m.metric, "samples": samples.count, **{k: s.value() for k, s in scores.items()},
             **{f"{kind}_bytes": path.stat().st_size for kind, path in files.items()}}
    for kernels in check_tflite.KERNELS:
        got = outputs(files["tflite"], samples, kernels, said["tflite"], name)
        score = task(got, samples, truth, reference)
        apart = [sign * v for v in tasks.difference(score, scores["onnx"])]
        found |= {kernels: score.value(), f"{kernels}_diff": apart[0], f"{kernels}_low": min(apart[1:]), f"{kernels}_high": max(apart[1:])}
    return found


def hold_model(c, m):
    found = measured(c, m)
    c.hold(f"{m.name}: size", found["tflite_bytes"] <= LARGEST * found["onnx_bytes"], f"{found['tflite_bytes']} for {found['onnx_bytes']}")
    for kernels in check_tflite.KERNELS:
        c.hold(f"{m.name}: {m.metric}, {kernels}", found[f"{kernels}_high"] >= 0,
               f"{found[kernels]:.6g} for {found['onnx']:.6g} of the .onnx; better by {found[f'{kernels}_diff']:.3g} [{found[f'{kernels}_low']:.3g}, {found[f'{kernels}_high']:.3g}]")


def main():
    parser = options(__doc__)
    parser.add_argument("--all", action="store_true", help="also models that take minutes")
    parser.add_argument("--only", help="models whose name has this word")
    args = parser.parse_args()
    with Checker(args) as c:
        for name, m in zoo.MODELS.items():
            if m.paths(tool.SHARED)[0].exists() and (args.all or name in QUICK) and (not args.only or args.only in name):
                hold_model(c, m)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
