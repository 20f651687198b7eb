"""bench/convert: what conversions cost."""
import collections
import os
import statistics
import sys
import tempfile
from pathlib import Path

from octbench import models, networks, tools
from octbench.places import BENCH
from octbench.results import Results, machine, version
from pylib import cost

FIELDS = ("model", "samples", "tool", "seconds", "fastest", "slowest", "peak_mb", "ratio", "rounds", "load", "version")
TOOLS = ("onnxruntime", "octet", "octet-recover")
RESULTS = Results(BENCH / "convert.csv", FIELDS, ("model", "samples", "tool"), lambda r: (
    networks.ALL.index(r["model"]), int(r["samples"]), TOOLS.index(r["tool"])))


def command(tool, model, out, samples):
    source, data = networks.model_file(model), networks.data_file(model)
    if tool == "onnxruntime":
        return [sys.executable, "-m", "octbench.forms", "ort-static", model, out, "--samples", str(samples)]
    more = ["--observer", "minmax", "--no-recover"] if tool == "octet" else []
    return [tools.OURS["qconvert"], source, "--data", data, "--samples", str(samples), "-o", out, "-q", *more]


def measure(args, model):
    took = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for r in range(args.rounds):
            first = r % len(TOOLS)
            for tool in TOOLS[first:] + TOOLS[:first]:
                took[tool].append(cost.measured(command(tool, model, Path(folder) / "made.onnx", args.samples), cwd=BENCH))
    rows = []
    for tool in TOOLS:
        seconds = [s for s, _ in took[tool]]
        ratio = statistics.median(s / b for s, (b, _) in zip(seconds, took[TOOLS[0]]))
        rows.append({"model": model, "samples": args.samples, "tool": tool, "seconds": f"{statistics.median(seconds):.2f}",
                     "fastest": f"{min(seconds):.2f}", "slowest": f"{max(seconds):.2f}",
                     "peak_mb": f"{statistics.median(mb for _, mb in took[tool]):.0f}", "ratio": f"{ratio:.3f}", "rounds": args.rounds,
                     "load": f"{os.getloadavg()[0]:.1f}", "version": version("onnxruntime" if tool == TOOLS[0] else None), **machine()})
        print("  ".join(f"{k} {rows[-1][k]}" for k in FIELDS[:8]), flush=True)
    return rows


def main(args):
    tools.build()
    rows = []
    for model in networks.chosen(args.models):
        models.make(model)
        rows += measure(args, model)
        if not args.no_keep:
            RESULTS.keep(rows)
    return 0
