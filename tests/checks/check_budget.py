#!/usr/bin/env python3
"""Asks for sizes, and compares with one scheme for all layers that takes as many bytes.

    check_budget.py [--only GLOB] [--quick] [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Networks: a Llama-like one with tied embeddings, one of MiniLM's shapes, and a convolutional one, seeded (pylib/sized.py). Each is written by every scheme, form of
blocks and width of them alike for all layers, with samples and without; then the size of each such file is asked for. What is chosen must be no larger, and its outputs
in ONNX Runtime lose at most 0.5 dB more, beside those of the float model, than those of the best of the files that are no larger, on inputs that no conversion has seen.
--quick: the first network, made smaller, and some sizes of it.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import sys
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx

from pylib import sized, tool
from pylib.judge import Checker, options, run_ort, sqnr

MARGIN = 0.5  # dB
MORE = (0, 2)  # % above the sizes of these files
NETS = {
    "Llama": sized.llama,
    "MiniLM": sized.bert,
    "convolutions": sized.convolutions,
}
QUICK = {"Llama": lambda: sized.llama(layers=1, wide=128, inner=256, words=5000, heads=2)}
ALIKE = {
    "static": ["--scheme", "static"], "dynamic": ["--scheme", "dynamic"], "stored": ["--scheme", "stored"], "fp16": ["--scheme", "fp16"],
    **{f"{bits} bits, {block}": ["--scheme", "weight-only", "--bits", bits, "--block-size", block] for bits, blocks in (("8", "32 64 128"), ("4", "16 32 64 128"))
       for block in blocks.split()},
}
LONGER, SHARE = 512, 0.001  # bytes, and of the file: the command in the metadata; Casts, and small constants between them that stay float


def convert(c, what, model, out, *more):
    """Whether it does."""
    try:
        c.convert(model, out, *more)
    except tool.ToolError as error:
        c.hold(f"{what}: converts", False, str(error))
        return False
    return True


def check_net(c, name, model, data, ways):
    inputs = sized.samples(onnx.load(model), 16, seed=1)
    want, out, seen = run_ort(model, inputs), c.folder / "out.onnx", [] if data is None else ["--data", data]
    alike = {}
    for way in ways:
        if (way != "static" or seen) and convert(c, f"{name}, {way}", model, out, *seen, *ALIKE[way]):
            alike[way] = out.stat().st_size, sqnr(want, run_ort(out, inputs))
    for way, size in ((f"{way} and {more} %", int(size * (1 + more / 100))) for way, (size, _) in sorted(alike.items(), key=lambda item: item[1]) for more in (MORE[:1] if len(ways) < len(ALIKE) else MORE)):
        room = int(size * (1 + SHARE)) + LONGER
        best = max((db, other) for other, (bytes_, db) in alike.items() if bytes_ <= size)
        if not convert(c, f"{name}, size of {way}", model, out, *seen, "--target-size", room):
            continue
        got = sqnr(want, run_ort(out, inputs))
        c.hold(f"{name}, size of {way}", out.stat().st_size <= room and got >= best[0] - MARGIN,
               f"{out.stat().st_size} of {room}, {got:.1f} dB, {best[1]} for all {best[0]:.1f} dB")


def main():
    parser = options(__doc__)
    parser.add_argument("--only", default="*", help="networks whose names match")
    parser.add_argument("--quick", action="store_true", help="one small network alone")
    args = parser.parse_args()
    with Checker(args) as c:
        for name, make in (QUICK if args.quick else NETS).items():
            if not fnmatch(name, args.only):
                continue
            model, data = c.folder / "float.onnx", c.folder / "data.npy"
            net = make()
            onnx.save(net, model)
            np.save(data, sized.samples(net, 24))
            for with_samples in (False, True):
                check_net(c, f"{name}, {'samples' if with_samples else 'no samples'}", model, data if with_samples else None,
                          ("dynamic", "stored", "8 bits, 32", "4 bits, 32") if args.quick else ALIKE)
    return c.finish()


if __name__ == "__main__":
    sys.exit(main())
