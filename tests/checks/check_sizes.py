#!/usr/bin/env python3
"""Converts models whose files could grow, by every scheme, and sees that none is larger than the float model.

    check_sizes.py [--only GLOB] [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Models: constants that several layers share, also as a table of rows, and constants that the graph computes from smaller ones (pylib/sized.py). What is written must pass the
ONNX checker, load in ONNX Runtime and in ours and give the same there, be near the float model, and take no more bytes than it (in 16 bits: but for a few Casts). A result that is no smaller says so. Denormal weights are counted,
and zeros where a layer is quantized.

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
from onnx import numpy_helper

from pylib import sized, tool
from pylib.judge import Checker, options, run_ort, sqnr

# Options, and the least SQNR to the float model.
WAYS = {
    "static": (["--scheme", "static"], 18),
    "QOperator": (["--scheme", "static", "--format", "qoperator"], 18),
    "dynamic": (["--scheme", "dynamic"], 18),
    "4 bits": (["--scheme", "weight-only"], 10),
    "8 bits": (["--scheme", "weight-only", "--bits", "8"], 30),
    "blocks QDQ": (["--scheme", "weight-only", "--format", "qdq"], 10),
    "stored": (["--scheme", "stored"], 30),
    "fp16": (["--scheme", "fp16"], 45),
    "bf16": (["--scheme", "bf16"], 20),
    "float": (["--scheme", "float"], 90),
}
LEAST = 64 << 10  # bytes of floats, from which on a file must not grow
TIED = {"static": 0.3, "QOperator": 0.3, "dynamic": 0.275, "4 bits": 0.17, "8 bits": 0.27, "blocks QDQ": 0.275, "stored": 0.275, "fp16": 0.502, "bf16": 0.502}
BARS = {  # of the float file
    "held by nodes": {"fp16": 0.52, "bf16": 0.52, "dynamic": 0.3, "4 bits": 0.2}, "GRU": {"dynamic": 0.27, "8 bits": 0.27, "4 bits": 0.27}, "RNN": {"dynamic": 0.28},
    "Llama": {"dynamic": 0.27, "8 bits": 0.27, "4 bits": 0.17, "stored": 0.27}, "BERT": {"dynamic": 0.27, "static": 0.27, "8 bits": 0.27, "stored": 0.27},
    "tied": TIED, "tied, Gemm": TIED, "tied, large": TIED, "tied, 16 bits": {way: 2 * bar for way, bar in TIED.items()},
}
LARGE = {"tied, large": ("static", "dynamic", "4 bits", "8 bits", "fp16")}  # what is tried of large files
SMALLER = 0.995   # less than that is said to be smaller
CASTS = {"fp16": 1.005, "bf16": 1.005}  # where there are no float weights that could become 16 bits: the Casts around them


def check_denormals(c, what, model, written, report):
    """Counted as NumPy counts them; none is left where all layers are quantized."""
    rows = report.get("denormal_weights", [])
    had = sum(sized.denormals(a) for t in model.graph.initializer if (a := numpy_helper.to_array(t)).dtype == np.float32)
    left = sum(sized.denormals(a) for t in written.graph.initializer if (a := numpy_helper.to_array(t)).dtype == np.float32)
    kept = sum(row["denormal"] for row in rows if not row["zeros"])
    c.hold(f"{what}: denormal weights", sum(row["denormal"] for row in rows) == had and left == kept, f"{had}, {kept} stay, {left} left")


def check_one(c, name, path, model, inputs, want, way):
    """inputs: of the float model in `path`, which gives `want`."""
    more, least = WAYS[way]
    what, out, data = f"{name}, {way}", c.folder / "out.onnx", c.folder / "data.npy"
    np.save(data, inputs)
    try:
        report = c.convert(path, out, *more, *(["--data", data] if "static" in more else []))
    except tool.ToolError as error:
        c.hold(f"{what}: converts", False, str(error))
        return
    onnx.checker.check_model(onnx.load(out), full_check=True)
    before, after = path.stat().st_size, out.stat().st_size
    c.hold(f"{what}: size", after <= before * BARS.get(name, {}).get(way, CASTS.get(way, 1)) or sized.float_bytes(model) < LEAST, f"{after / before:.3f} of the float file")
    if "static" not in more and way != "float":
        said = any("neither smaller nor faster" in w or "not smaller" in w for w in report["warnings"])
        grown = path.stat().st_size >= LEAST and out.stat().st_size >= SMALLER * path.stat().st_size
        c.hold(f"{what}: says that nothing is gained", said == grown, f"{report['warnings']}")
    check_denormals(c, what, model, onnx.load(out), report)
    theirs, ours = run_ort(out, inputs), c.run_ours(out, list(inputs))
    c.hold(f"{what}: as in ONNX Runtime", sqnr(theirs, ours) > 30, f"{sqnr(theirs, ours):.1f} dB")
    c.hold(f"{what}: near the float model", sqnr(want, theirs) > least, f"{sqnr(want, theirs):.1f} dB")


def main():
    parser = options(__doc__)
    parser.add_argument("--only", default="*", help="models whose names match")
    args = parser.parse_args()
    with Checker(args) as c:
        for name in sized.MODELS:
            path = c.folder / "float.onnx"
            if not fnmatch(name, args.only):
                continue
            model = sized.save(name, path)
            inputs = sized.samples(model)
            want = run_ort(path, inputs)
            for way in LARGE.get(name, WAYS):
                check_one(c, name, path, model, inputs, want, way)
    return c.finish()


if __name__ == "__main__":
    sys.exit(main())
