#!/usr/bin/env python3
"""Writes docs/comparison.md from the measured tables tests/accuracy/results.csv, tests/accuracy/cost.csv and bench/results.csv.

    scripts/development/comparison.py [--check]

--check writes nothing, and exits 1 where the page is not what the tables give (a test does so).
"""
import csv
import math
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/comparison.md"
SAMPLES = "64"
SHARES = ("top1", "ap50", "agreement")  # metrics that are shares of one; the others have units of their own
TOOLS = {"ONNX Runtime, quantize_static, on a CPU without VNNI": ("ort",),
         "the same with exact kernels, MinMax": ("ort exact minmax",),
         "the same with exact kernels, the best of its calibrations": ("ort exact minmax", "ort exact entropy", "ort exact percentile"),
         "NNCF, recorded apart": ("nncf openvino", "nncf ort exact"),
         "Octet's model in ONNX Runtime": ("ours",)}
RUNNERS = {"ort-static": "ONNX Runtime, static", "ort-dynamic": "ONNX Runtime, dynamic", "openvino-int8": "OpenVINO, NNCF", "torch-static-inductor": "PyTorch, static",
           "torch-dynamic": "PyTorch, dynamic", "litert-static": "LiteRT, static", "litert-dynamic": "LiteRT, dynamic", "octet-static": "Octet's runtime, static",
           "octet-dynamic": "Octet's runtime, dynamic"}


def read(path):
    with open(ROOT / path, newline="") as file:
        return list(csv.DictReader(file))


def table(head, lines):
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] + ["---:"] * (len(head) - 1), *lines])


def accuracy():
    """Each tool over the models of which it has a figure: drops in points, and Octet's over the same models."""
    of = {}
    for r in read("tests/accuracy/results.csv"):
        if r["calib"] == SAMPLES and r["metric"] in SHARES and r["value"]:
            of.setdefault(r["model"], {})[r["row"]] = float(r["value"])
    lines = []
    for name, rows in TOOLS.items():
        both = [(m["float"] - max(m[r] for r in rows if r in m), m["float"] - m["ours"]) for m in of.values() if "float" in m and "ours" in m and any(r in m for r in rows)]
        theirs, ours = ([100 * pair[i] for pair in both] for i in (0, 1))
        lines.append([name, str(len(both)), f"{sum(theirs) / len(both):.2f}", f"{max(theirs):.2f}", str(sum(d > 1 for d in theirs)), f"{sum(ours) / len(both):.2f}"])
    return table(["tool", "models", "mean drop", "largest drop", "models that lose more than 1 point", "Octet's mean drop on the same models"], lines)


def costs():
    of = {}
    for r in read("tests/accuracy/cost.csv"):
        of.setdefault(r["model"], {})[r["tool"]] = r
    pairs = [(m["qconvert"], m["quantize_static"]) for m in of.values() if "qconvert" in m and "quantize_static" in m]

    def ratios(value):
        found = [value(a) / value(b) for a, b in pairs]
        return [f"{math.exp(sum(map(math.log, found)) / len(found)):.2f}", f"{min(found):.2f}", f"{max(found):.2f}"]

    lines = [["seconds", *ratios(lambda r: float(r["seconds"]))], ["peak memory", *ratios(lambda r: float(r["peak_mb"]))],
             ["size of the file", *ratios(lambda r: float(r["size_after"]))]]
    return len(pairs), table(["Octet's part of quantize_static's", "mean", "smallest", "largest"], lines)


def latency(machine):
    rows = [r for r in read("bench/results.csv") if (r["cpu"], r["class"]) == machine and r["threads"] == "1" and r["runner"] in RUNNERS]
    models = list(dict.fromkeys(r["model"] for r in rows))
    ratio = {(r["model"], r["runner"]): f"{float(r['ratio']):.2f}" for r in rows}
    lines = [[name, *[ratio.get((m, runner), "-") for m in models]] for runner, name in RUNNERS.items() if any((m, runner) in ratio for m in models)]
    return ", ".join(machine), table(["runtime", *models], lines)


def page():
    count, spent = costs()
    machines = dict.fromkeys((r["cpu"], r["class"]) for r in read("bench/results.csv"))
    times = "\n\n".join(f"{where}:\n\n{lines}" for where, lines in map(latency, machines))
    return f"""# Comparison with other tools

Written by `scripts/development/comparison.py` from `tests/accuracy/results.csv`, `tests/accuracy/cost.csv` and `bench/results.csv`; do not edit. A test compares.
[accuracy.md](accuracy.md) has each model, with intervals; [bench/README.md](../bench/README.md) says how times are measured.

## Accuracy

How many points of top-1, AP50 or agreement quantized models lose against float, with {SAMPLES} samples for calibration and each tool's defaults. Less is better; below zero is a gain. Networks are small: differences of a point or less are mostly
within noise. Each tool is compared over those models for which it has a figure. Figures of NNCF were recorded apart from the others, with other versions; of two figures the better one counts. "The best of its calibrations" is chosen by the evaluation
samples themselves, which favours that line.

{accuracy()}

Where the kernels are exact (`session.x64quantprecision`, or a CPU with VNNI), ONNX Runtime's own quantization comes near on most models if its calibration is chosen well, and NNCF's figures are as good as Octet's. Without VNNI, sums of two
products saturate in 16 bits, and models that are sensitive to it fail unless the tool prevents it.

## What a conversion takes

Over {count} models, `qconvert --data` with all its measuring beside `quantize_static`; ratios below 1 are in Octet's favour (the mean is geometric).

{spent}

## Speed of the quantized models

Time as a part of ONNX Runtime's float time, one thread, batch 1. Weights of these networks are random, so this is about speed alone. Less is better.

{times}

Octet is no server: its runtime is for comparing models. Its models are made to run in other runtimes, and there the speed is that runtime's.

## Which tool to choose

- **Octet**: no Python; the same bytes everywhere; every decision with its reason; gates and intervals for a pipeline; models for CPUs without VNNI; many targets from one ONNX file.
- **ONNX Runtime's quantization module**: you are in Python, and want to write your own calibration in it.
- **NNCF with OpenVINO**, and a GPU vendor's own tool for its GPUs: you deploy on that runtime alone and want what only it has, such as quantization-aware training or formats of its own.
- **llama.cpp and its kin**: large language models, in a runtime made for them.

## What Octet does not do

- It does not train: no quantization-aware training. Models that were trained so are read, run and judged.
- It runs on CPUs. What it knows of GPUs and NPUs was read in documents and sources, where `qconvert --list-targets` says `untested on the device`.
- It reads ONNX alone. Other formats must be exported first.
"""


def main():
    made = page()
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text() != made:
            print("docs/comparison.md is not what its tables give; scripts/development/comparison.py writes it")
            return 1
        return 0
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
