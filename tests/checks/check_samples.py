#!/usr/bin/env python3
"""Converts networks without samples and with them: no layer is lost by samples but for a loss that was measured, and that the report names.

    check_samples.py [--all] [--only GLOB] [--qconvert PROGRAM] [-v]

Networks: small ones of products, recurrent layers and control flow, and a third of the architectures (--all: all of them), each with all its samples
and with two. A layer with weights that is quantized without samples must be with them, or be left float for what it costs at the outputs.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import sys
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "generate"))  # digest_models asks for its networks
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np

from pylib import architectures, digest_models
from pylib.judge import Checker, options

WEIGHTED = {"Conv", "ConvTranspose", "MatMul", "Gemm", "Einsum", "LSTM", "GRU", "RNN", "Gather"}
MEASURED = ("left float: rounding", "left float: little time", "by cost")  # what the target's costs choose they choose with ranges given, too


def measured(layer):
    return any(reason in layer["why"] for reason in MEASURED)


def networks(folder, every, only):
    """(name, model, {input: samples})."""
    for m in digest_models.small(folder, lambda _: True):
        yield m.name, m.path, np.load(m.data)
    for number, (name, write) in enumerate(architectures.ALL.items()):
        if fnmatch(name, only) and (every or only != "*" or number % 3 == 0):
            model = folder / f"{name}.onnx"
            yield name, model, write(model)


def first(data, count):
    return data[:count] if isinstance(data, np.ndarray) else {name: a[:count] for name, a in data.items()}


def save(folder, data):
    path = folder / ("data.npy" if isinstance(data, np.ndarray) else "data.npz")
    np.save(path, data) if isinstance(data, np.ndarray) else np.savez(path, **data)
    return path


def check(c, name, model, data):
    out = c.folder / "out.onnx"
    before = {layer["name"] for layer in c.convert(model, out)["layers"] if layer["op"] in WEIGHTED and layer["scheme"] != "float"}
    for count in (2, None):
        layers = c.convert(model, out, "--data", save(c.folder, first(data, count)))["layers"]
        now = {layer["name"]: layer for layer in layers}
        lost = [n for n in before if n not in now or (now[n]["scheme"] == "float" and not measured(now[n]))]
        c.hold(f"{name}, {count or 'all'} samples", not lost, f"{[(n, now.get(n, {}).get('why')) for n in lost]}")
        with_weights = sum(layer["op"] in WEIGHTED and (layer["scheme"] != "float" or measured(layer)) for layer in layers)
        c.hold(f"{name}, {count or 'all'} samples: as many", with_weights >= len(before), f"{with_weights} of {len(before)}")


def main():
    parser = options(__doc__)
    parser.add_argument("--only", metavar="GLOB", default="*")
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    with Checker(args) as c:
        work = c.folder / "models"
        work.mkdir()
        for name, model, data in networks(work, args.all, args.only):
            check(c, name, model, data)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
