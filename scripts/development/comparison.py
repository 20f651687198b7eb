#!/usr/bin/env python3
"""Writes docs/comparison.md from the measured tables tests/accuracy/results.csv, tests/accuracy/cost.csv and bench/results.csv.

    scripts/development/comparison.py [--check]

--check writes nothing, and exits 1 where the page is not what the tables give (a test does so).
"""
import math
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))  # for pylib
from pylib import table_file

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
    return table_file.read(ROOT / path)


def table(head, lines):
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] + ["---:"] * (len(head) - 1), *lines])


def accuracy():
    """Each tool over the models of which it has a figure: drops in points, and Octet's over the same models."""
    of = {}
    for r in read("tests/accuracy/results.csv"):
        if r["calib"] == SAMPLES and r["metric"] in SHARES and r["value"]:
            of.setdefault(r["model"], {})[r["row"]] = float(r["value"])
    lines, drops = [], {}
    for name, rows in TOOLS.items():
        both = [(m["float"] - max(m[r] for r in rows if r in m), m["float"] - m["ours"]) for m in of.values() if "float" in m and "ours" in m and any(r in m for r in rows)]
        theirs, ours = ([100 * pair[i] for pair in both] for i in (0, 1))
        lines.append([name, str(len(both)), f"{statistics.median(theirs):.2f}", f"{max(theirs):.2f}", str(sum(d > 1 for d in theirs)), f"{statistics.median(ours):.2f}"])
        for model, m in of.items():
            there = [m[r] for r in rows if r in m]
            if "float" in m and "ours" in m:
                drops.setdefault(model, []).append(f"{100 * (m['float'] - max(there)):.2f}" if there else "-")
    return (table(["tool", "models", "median drop", "largest drop", "models that lose more than 1 point", "Octet's median drop on the same models"], lines),
            table(["model", "ONNX Runtime", "exact, MinMax", "exact, best", "NNCF", "Octet"], [[model, *row] for model, row in drops.items()]))


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
    return len(pairs), table(["Octet / quantize_static", "mean", "smallest", "largest"], lines)


def latency(machine):
    rows = [r for r in read("bench/results.csv") if (r["cpu"], r["class"]) == machine and r["threads"] == "1" and r["runner"] in RUNNERS]
    models = list(dict.fromkeys(r["model"] for r in rows))
    ratio = {(r["model"], r["runner"]): f"{float(r['ratio']):.2f}" for r in rows}
    lines = [[name, *[ratio.get((m, runner), "-") for m in models]] for runner, name in RUNNERS.items() if any((m, runner) in ratio for m in models)]
    return ", ".join(machine), table(["runtime", *models], lines)


def page():
    count, spent = costs()
    tools, models = accuracy()
    machines = dict.fromkeys((r["cpu"], r["class"]) for r in read("bench/results.csv"))
    times = "\n\n".join(f"{where}:\n\n{lines}" for where, lines in map(latency, machines))
    return f"""# Comparison with other tools

Written by `scripts/development/comparison.py` from `tests/accuracy/results.csv`, `tests/accuracy/cost.csv` and `bench/results.csv`; do not edit it. A test compares it with them.
[methods.md](methods.md) has each model, with intervals, and [accuracy.md](accuracy.md) more models; [bench/README.md](../bench/README.md) says how times are measured.

## Accuracy

The table shows how many points of top-1, AP50 or agreement quantized models lose against float, with {SAMPLES} calibration samples and each tool's defaults. Less is better; a number below zero is a gain. The networks are small: differences of a point or less are
mostly within noise. Each tool is compared with Octet over the models for which it has a figure. The figures of NNCF were recorded at another time, with other versions; where there are two, the better one counts. "The best of its
calibrations" is chosen on the evaluation samples themselves, which favours that line.

{tools}

Each model, in the same order of tools:

{models}

Where the kernels are exact (`session.x64quantprecision`, or a CPU with VNNI), ONNX Runtime's own quantization comes close on most models if its calibration is chosen well, and NNCF's figures are as good as Octet's. Without VNNI, the CPU adds two
products in 16 bits, where the sum can saturate. Sensitive models then fail, unless the tool prevents it.

## What a conversion takes

`qconvert --data`, including all its measuring, compared with `quantize_static` over {count} models. Ratios below 1 are in Octet's favour; the mean is geometric.

{spent}

## Speed of the quantized models

The time of each quantized model, divided by the float model's time in ONNX Runtime; one thread, batch 1. Less is better. The weights of these networks are random, so the table tells about speed alone.

{times}

Octet's own runtime, as `qeval` runs it, is for comparing models. To serve them, ONNX Runtime with [Octet's provider](provider.md) has its kernels: sessions, threads and
memory are ONNX Runtime's. `bench/provider` measures it beside ONNX Runtime's own provider on your machine. With one thread, on an AMD EPYC (Zen 5) with AVX-512 and VNNI, 22 files
that `qconvert` or ONNX Runtime's quantizer wrote took 0.59 of the time in the geometric mean, and 0.38 to 0.91 each. Without VNNI, where ONNX Runtime saturates, results are exact besides.

## Which tool to choose

- **Octet**: you want no Python, the same bytes on every machine, a reason for every decision, gates and intervals for a pipeline, models that are safe on CPUs without VNNI, or many targets from one ONNX file.
- **ONNX Runtime's quantization module**: you work in Python, and want to write your own calibration there.
- **NNCF with OpenVINO**, and a GPU vendor's own tool for its GPUs: you deploy on that runtime alone, and want what only its tool has, such as quantization-aware training or formats of its own.
- **llama.cpp and similar projects**: you run large language models, in a runtime made for them.

## What Octet does not do

- It does not train, so it offers no quantization-aware training. It does read, run and evaluate models that were trained that way.
- It runs on CPUs only. For GPUs and NPUs, its rules were taken from documents and source code: `qconvert --list-targets` says `rules only`.
- It reads ONNX and .tflite. Models in other formats must be exported to ONNX first.
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
