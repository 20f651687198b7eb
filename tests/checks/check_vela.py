#!/usr/bin/env python3
"""Arm's compiler Vela takes what qconvert writes: the networks of check_twins.py on int8 and int16, for Ethos-U55 and Ethos-U85.

    tests/checks/check_vela.py [--qconvert PROGRAM] [--only WORD] [-v]

Each network compiles, and each operator that Vela leaves to the CPU stands in a table here, with Vela's reason: either its list of supported
operators (vela --supported-ops-report) does not have it, or it misses a constraint of that list.

Needs Python packages (ai_edge_litert among them) and Vela (the package ethos-u-vela, its program in PATH or beside the Python).
Exit: 0 when all hold, 1 when not, 77 without them.
"""
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime", "ai_edge_litert")
import check_tflite
import check_twins

from pylib import tool
from pylib.judge import Checker, options

DEVICES = ("ethos-u55-128", "ethos-u85-256")
FLOAT = r"unsupported DataType Float32"
# What may stay on the CPU in each network: operator, what Vela says of it, and why it is written so.
EVERYWHERE = [
    ("DEQUANTIZE", r"Unsupported opType", "the list does not have it: outputs are reals"),
    ("QUANTIZE", FLOAT, "inputs are reals"),
]
IN = {
    # Layers that are left float because the accuracy asks for it.
    "a wake word": [(op, FLOAT, "a layer that stays float") for op in ("FULLY_CONNECTED", "RESHAPE", "AVERAGE_POOL_2D", "MUL", "ADD", "RELU6")],
    "ultraface_rfb_320": [("EXP", FLOAT, "runtimes for microcontrollers have no EXP of int8")],
    "nanodet_m_416": [("RESIZE_BILINEAR", r"unsupported scale-factor=0.5|scale-factor must be an integer power of two", "the model halves pictures so")],
}


WIDE = [(op, FLOAT, "LiteRT has no such kernel on int16, or none is written") for op in ("MEAN", "LEAKY_RELU", "MUL", "ADD", "RELU6")]


def left_to_cpu(said):
    """(operator, result, reason) of each."""
    return re.findall(r"operator: (\w+), ofm: '([^']*)'\s*\n\s*Reason: ([^\n]*)", said)


def hold_network(c, name, *more):
    if check_twins.written_network(c, name, *more) is None:
        return
    known = EVERYWHERE + IN.get(name, []) + (WIDE if more else [])
    name = f"{name} {' '.join(more)}".strip()
    for device in DEVICES:
        done = subprocess.run([c.vela, c.folder / "net.tflite", "--accelerator-config", device, "--output-dir", c.folder / "vela"],
                              capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        c.hold(f"{name}: {device} takes it", done.returncode == 0 and "NPU operators" in said, said[-300:])
        odd = [found for found in left_to_cpu(said) if not any(op == found[0] and re.search(why, found[2]) for op, why, _ in known)]
        c.hold(f"{name}: {device}, operators on the CPU", not odd, str(odd[:5]))
        counted = re.search(r"CPU operators = (\d+)", said)
        c.hold(f"{name}: {device}, each has its reason", counted and int(counted[1]) == len(left_to_cpu(said)), f"{counted} for {left_to_cpu(said)}")


def main():
    parser = options(__doc__)
    parser.add_argument("--only", help="networks whose name has this word")
    args = parser.parse_args()
    vela = tool.beside("vela")
    if not vela:
        print("skipped: Vela (ethos-u-vela) is not installed")
        return 77
    with Checker(args) as c:
        c.vela = vela
        for name in [*check_twins.MADE, *check_tflite.NETWORKS]:
            if not args.only or args.only in name:
                hold_network(c, name)
                if name in check_twins.WIDE:
                    hold_network(c, name, "--target", "litert-int16")
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
