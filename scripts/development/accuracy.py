#!/usr/bin/env python3
"""Converts the models of the zoo, judges each beside ONNX Runtime, and writes the numbers down.

    accuracy.py [--models demo,kws_dscnn] [--shared ../shared] [--quick]

For each model: qconvert makes ours from the calibration samples of the table in pylib/zoo.py, compare_ort.py judges
it on the evaluation samples. Writes
    tests/accuracy/results.csv   a line per model and row of compare_ort's table: no times, so that a diff is a change
    tests/accuracy/cost.csv      seconds, peak memory and size of both conversions, on this machine
    docs/accuracy.md             the tables, made from both files and from half.csv (check_half.py)
Models that are not asked for keep their lines. The number of threads is that of each tool's default.
"""
import argparse
import csv
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import cost, tool, zoo

FOLDER = zoo.ROOT / "tests/accuracy"
PAGE = zoo.ROOT / "docs/accuracy.md"
RESULT = ("model", "row", "samples", "metric", "value", "top5", "sqnr_db", "vs_float", "low", "high", "integer", "float", "failed")
COST = ("model", "tool", "calib_samples", "seconds", "peak_mb", "size_before", "size_after", "cpu", "date")


def measured(command, may_fail=False):
    """As cost.measured; a failure stops this script, or gives None where it may fail."""
    try:
        return cost.measured(command)
    except cost.CommandError as fault:
        return None if may_fail else sys.exit(f"accuracy: {fault}")


def cost_line(name, who, samples, spent, model, out):
    line = {"model": name, "tool": who, "calib_samples": samples, "cpu": cost.cpu_name(), "date": datetime.date.today().isoformat()}
    if not spent:       # a peer that fails at a model is a result
        return dict.fromkeys(COST, "") | line
    return line | {"seconds": f"{spent[0]:.2f}", "peak_mb": f"{spent[1]:.0f}",
                   "size_before": Path(model).stat().st_size, "size_after": Path(out).stat().st_size}


def convert(args, m, out):
    model, calib, _, _ = m.paths(args.shared)
    command = [args.qconvert, str(model), "-o", str(out), "--data", str(calib), "--samples", str(m.calib_samples)]
    if m.preprocess:
        command += ["--preprocess", m.preprocess]
    return cost_line(m.name, "qconvert", m.calib_samples, measured(command), model, out)


def convert_as_peer(args, m, out):
    """In a process of its own, as its memory is measured: quantize_static with MinMax, as it ships."""
    model, calib, _, _ = m.paths(args.shared)
    code = ("import sys; from pylib import peer; from pylib.samples import open_samples; "
            "peer.quantize(sys.argv[1], sys.argv[2], open_samples(sys.argv[3], sys.argv[4]), int(sys.argv[5]), 'minmax')")
    command = [sys.executable, "-c", code, str(model), str(out), str(calib), m.preprocess, str(m.calib_samples)]
    os.environ["PYTHONPATH"] = str(zoo.ROOT / "scripts")
    return cost_line(m.name, "quantize_static", m.calib_samples, measured(command, may_fail=True), model, out)


def judge(args, m, ours, folder):
    """compare_ort's report."""
    report = Path(folder) / f"{m.name}.json"
    command = [sys.executable, str(zoo.ROOT / "scripts/development/compare_ort.py"), m.name, "--shared", str(args.shared), "--ours", str(ours),
               "--run-ours", "--calib-samples", str(m.calib_samples), "--json", str(report)] + ["--quick"] * args.quick
    done = subprocess.run(command, check=False)
    if not report.exists():
        sys.exit(f"accuracy: {' '.join(command)} gave no report (exit {done.returncode})")
    return json.loads(report.read_text())


def number(v, form):
    return "" if v is None else format(v, form)


def result_lines(report):
    metric = report["metric"]
    for r in report["rows"]:
        line = dict.fromkeys(RESULT, "") | {"model": report["model"], "row": r["name"], "samples": report["samples"], "metric": metric}
        if "failed" in r:
            yield line | {"failed": " ".join(r["failed"].split())[-160:]}
            continue
        gap = r.get("vs_float", {})
        yield line | {"value": number(r["metrics"].get(metric), ".6g"), "top5": number(r["metrics"].get("top5"), ".6g"),
                      "sqnr_db": "exact" if r["exact"] else number(r["sqnr_db"], ".2f"), "vs_float": number(gap.get("diff"), ".6g"),
                      "low": number(gap.get("low"), ".6g"), "high": number(gap.get("high"), ".6g"),
                      "integer": number(r.get("integer"), "d"), "float": number(r.get("float"), "d")}


# ---- the files ----

def read(name):
    path = FOLDER / name
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def write(name, fields, old, new, done):
    """Replaces the lines of the models `done`, in the order of the zoo."""
    place = {model: i for i, model in enumerate(zoo.MODELS)}
    lines = [r for r in old if r["model"] not in done and r["model"] in place] + new
    lines.sort(key=lambda r: place[r["model"]])
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / name, "w", newline="") as file:
        out = csv.DictWriter(file, fields, lineterminator="\n")
        out.writeheader()
        out.writerows(lines)


# ---- the page ----

def best_exact(rows):
    """The peer's best calibration with exact kernels, as compare_ort chooses it."""
    found = [r for r in rows if r["row"].startswith("ort exact") and not r["failed"]]
    sign = -1 if rows[0]["metric"] == "mse" else 1
    return max(found, key=lambda r: (sign * float(r["value"] or 0), db(r)), default=None)


def db(r):
    return float("inf") if r["sqnr_db"] == "exact" else float(r["sqnr_db"] or "-inf")


def shown(r):
    if r is None:
        return "-"
    if r["failed"]:
        return "failed"
    if not r["value"]:
        return "-"
    return f"{float(r['value']):.3f}" if r["metric"] == "mse" else f"{100 * float(r['value']):.2f} %"


def shown_db(r):
    return "-" if r is None else "failed" if r["failed"] else r["sqnr_db"]


def layers(r):
    return "-" if r is None or not r["integer"] else f"{r['integer']} / {r['float']}"


def table(head, lines):
    return "\n".join(["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1),
                      *("| " + " | ".join(map(str, line)) + " |" for line in lines)]) + "\n"


def accuracy_tables(results):
    metric, noise = [], []
    for model in dict.fromkeys(r["model"] for r in results):
        rows = [r for r in results if r["model"] == model]
        by = {r["row"]: r for r in rows}
        picked = [by.get("ort"), best_exact(rows), by.get("ours"), by.get("ours runtime")]
        metric.append([model, by["float"]["metric"], by["float"]["samples"], shown(by["float"]), *map(shown, picked)])
        noise.append([model, *map(shown_db, picked), layers(by.get("ort")), layers(by.get("ours"))])
    peers = ["quantize_static", "the same, exact kernels", "Octet in ONNX Runtime", "Octet in its runtime"]
    return (table(["model", "metric", "samples", "float", *peers], metric),
            table(["model", *peers, "integer / float layers, quantize_static", "the same, Octet"], noise))


def cost_table(costs):
    lines = []
    for model in dict.fromkeys(r["model"] for r in costs):
        by = {r["tool"]: r for r in costs if r["model"] == model}
        ours, peer = by["qconvert"], by["quantize_static"]
        cells = [(f"{r['seconds']} s", f"{r['peak_mb']} MB", f"{int(r['size_after']) / int(r['size_before']):.3f}") if r["seconds"]
                 else ("failed", "-", "-") for r in (ours, peer)]
        lines.append([model, ours["calib_samples"], *(cell for pair in zip(*cells) for cell in pair)])
    where = "; ".join(dict.fromkeys(f"{r['cpu']}, {r['date']}" for r in costs))
    return table(["model", "samples", "qconvert", "quantize_static", "memory", "memory, quantize_static", "size of float",
                  "size, quantize_static"], lines), where


def half_table():
    rows = read("half.csv")
    lines = []
    for model in dict.fromkeys(r["model"] for r in rows):
        by = {r["scheme"]: r for r in rows if r["model"] == model}
        f, b = by["fp16"], by["bf16"]
        lines.append([model, f["layers"], f["casts"], f"{1 / float(f['size']):.2f}", f["ours"], f["ort"], f["same"], b["ours"]])
    return table(["model", "layers in 16 bits", "Casts", "size", "fp16 in its runtime", "fp16 in ONNX Runtime", "between the two", "bf16"], lines)


def write_page():
    results, costs = read("results.csv"), read("cost.csv")
    metric, noise = accuracy_tables(results)
    cost, where = cost_table(costs)
    PAGE.write_text(f"""# Accuracy and cost of conversion

Written by `scripts/development/accuracy.py` from `tests/accuracy/results.csv`, `cost.csv` and `half.csv`; do not edit.

`qconvert MODEL --data CALIBRATION` with nothing else, beside `quantize_static` of ONNX Runtime (MinMax, QDQ, u8 activations, s8 weights
per channel) with the same samples. Evaluation samples are others. "Exact kernels": the best of its MinMax, entropy and percentile
calibrations, run with `session.x64quantprecision=1`, so that no 16-bit sum saturates.

## Metric

top1 is higher when better, mse lower. `results.csv` has the paired 95 % intervals, and top-5 where there are 100 classes or more.

{metric}
## Noise

SQNR of the outputs against float, in dB, higher is better; the worst output where there are several. Layers: Conv, Gemm and MatMul of the graph
that ONNX Runtime runs after its own optimization.

{noise}
## 16-bit floats

`qconvert MODEL --scheme fp16 --data CALIBRATION`: SQNR against float over eight evaluation samples, in dB, and size as a part of the float
file's. ONNX Runtime keeps float32 between operators that have no kernel of 16 bits ([arithmetic.md](arithmetic.md)), and has none for bfloat16.

{half_table()}
## Cost

Seconds and peak memory of the whole command, size of the file as a part of the float file's. {where}.

{cost}""")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", type=lambda t: t.split(","), default=list(zoo.MODELS), help="names, joined by commas [all]")
    p.add_argument("--shared", type=Path, default=zoo.ROOT.parent / "shared", help="folder with models/ and data/ [%(default)s]")
    p.add_argument("--quick", action="store_true", help="only MinMax of the peer")
    p.add_argument("--qconvert", help="our qconvert [$OCT_BUILD or build/, then PATH]")
    p.add_argument("--page", action="store_true", help="only write docs/accuracy.md anew")
    args = p.parse_args()
    args.qconvert = tool.find("qconvert", args.qconvert)
    if not args.page:
        unknown = [m for m in args.models if m not in zoo.MODELS]
        if unknown or not args.qconvert:
            sys.exit(f"accuracy: there is no model '{unknown[0]}'" if unknown else "accuracy: qconvert was not found; build first")
        for name in args.models:        # written after each model: a stop loses one
            m = zoo.MODELS[name]
            with tempfile.TemporaryDirectory() as folder:
                ours = Path(folder) / f"{name}.int8.onnx"
                costs = [convert(args, m, ours), convert_as_peer(args, m, Path(folder) / f"{name}.peer.onnx")]
                results = list(result_lines(judge(args, m, ours, folder)))
            write("results.csv", RESULT, read("results.csv"), results, {name})
            write("cost.csv", COST, read("cost.csv"), costs, {name})
    write_page()
    return 0


if __name__ == "__main__":
    sys.exit(main())
