#!/usr/bin/env python3
"""Checks scripts/development/instructions: its counts are those that AVX2 allows, the same again to a thousandth, and fewer for a quantized model; growth is told.

usage: instructions.py CHECKOUT QCONVERT QEVAL
Exit: 0 when all hold, 1 when not, 77 without valgrind.
"""
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LANES = 8  # of float32 in AVX2: multiply-accumulates of one instruction, at most


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)


def main():
    root, qconvert, qeval = map(Path, sys.argv[1:])
    if not shutil.which("valgrind"):
        print("valgrind is not installed")
        return 77
    data = ["--data", root / "testdata/images/eval.csv", "--preprocess", "mean=127.5:std=127.5"]
    model, faults = root / "testdata/demo.onnx", []
    with tempfile.TemporaryDirectory() as folder:
        int8, kept, grown, report = (Path(folder) / n for n in ("int8.onnx", "kept.json", "grown.json", "report.json"))
        script = [root / "scripts/development/instructions", "--qeval", qeval, *data]
        for made in (run(qconvert, model, "-o", int8, "-q", "--no-recover", *data), run(qeval, model, *data, "--first", "--samples", 1, "--profile", "-q", "--json", report),
                     run(*script, model, int8, "--json", kept)):
            if made.returncode:
                sys.exit(f"exit {made.returncode}: {made.stdout}{made.stderr}")
        counts = json.loads(kept.read_text())["instructions"]
        macs = sum(s["macs"] for s in json.loads(report.read_text())["models"][0]["profile"])
        real, quant = counts["demo.onnx"], counts["int8.onnx"]
        if not macs / LANES <= real <= macs:
            faults.append(f"{real} instructions for {macs} multiply-accumulates")
        if not 0 < quant < real:
            faults.append(f"{quant} instructions quantized, {real} in float")
        grown.write_text(json.dumps({"instructions": {"int8.onnx": quant * 10 // 11}}))
        same, more = run(*script, int8, "--against", kept, "--max-growth", "0.1"), run(*script, int8, "--against", grown)
        again = re.search(r"int8.onnx: (\d+) instructions", same.stdout)
        if same.returncode or not again or abs(int(again[1]) - quant) > quant / 1000:  # addresses decide how a few bytes are copied
            faults.append(f"again, exit {same.returncode}: {same.stdout}{same.stderr}")
        if more.returncode != 1 or " % more" not in more.stdout:
            faults.append(f"a tenth more, exit {more.returncode}: {more.stdout}{more.stderr}")
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
