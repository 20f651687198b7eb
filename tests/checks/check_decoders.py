#!/usr/bin/env python3
"""Converts decoders as exporters write them, with keys and values that go out and caches that come in, and judges them with ONNX Runtime.

    check_decoders.py [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Small decoders with random weights are made in the forms of exporters. Heads have 8 bits and nothing else has; a matrix that both branches
of a merged decoder read is in the file once.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import onnx

from pylib import decoders
from pylib.judge import Checker, options


def heads(check):
    """The head has 8 bits, also of a decoder that is given embeddings; keys and values that go out have 4."""
    sizes = {}
    for form in ("first", "past", "merged", "keys", "embeds"):
        model, out = check.folder / f"heads.{form}.onnx", check.folder / f"heads.{form}.q.onnx"
        decoders.Decoder().write(model, form)
        check.convert(model, out, "--scheme", "weight-only")
        found = decoders.bits(out)
        wrong = {name: b for name, b in found.items() if b != (8 if "lm_head" in name else 4)}
        check.hold(f"{form}: bits", found and not wrong, str(wrong))
        sizes[form] = sum(len(t.raw_data) for t in onnx.load(out).graph.initializer)
    check.hold("merged: each matrix once", sizes["merged"] < 1.02 * sizes["past"] + 4096, str(sizes))


def main():
    args = options(__doc__).parse_args()
    with tempfile.TemporaryDirectory(prefix="octet-decoders-") as folder:
        check = Checker(args, Path(folder))
        heads(check)
        return check.finish()


if __name__ == "__main__":
    sys.exit(main())
