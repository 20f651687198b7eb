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

FIELDS = ("model", "samples", "tool", "seconds", "fastest", "slowest", "ratio", "cpu_seconds", "cpu_ratio", "peak_mb", "rounds", "load", "version")
TOOLS = ("onnxruntime", "octet", "octet-recover")
RESULTS = Results(BENCH / "convert.csv", FIELDS, ("model", "samples", "tool"), lambda r: (
    networks.ALL.index(r["model"]), int(r["samples"]), TOOLS.index(r["tool"])))


def command(tool, model, out, samples):
    source, data = networks.model_file(model), networks.data_file(model)
    if tool == "onnxruntime":
        return [sys.executable, "-m", "octbench.forms", "ort-static", model, out, "--samples", str(samples)]
    more = ["--observer", "minmax", "--no-recover"] if tool == "octet" else []
    return [tools.OURS["qconvert"], source, "--data", data, "--samples", str(samples), "--first", "-o", out, "-q", *more]


def measure(args, model):
    took = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for r in range(args.rounds):
            first = r % len(TOOLS)
            for tool in TOOLS[first:] + TOOLS[:first]:
                took[tool].append(cost.measured(command(tool, model, Path(folder) / "made.onnx", args.samples), cwd=BENCH))
    return [row(args, model, tool, took) for tool in TOOLS]


def row(args, model, tool, took):
    seconds, megabytes, processor = zip(*took[tool])
    ratio, cpu_ratio = (statistics.median(c[i] / b[i] for c, b in zip(took[tool], took[TOOLS[0]])) for i in (0, 2))
    made = {"model": model, "samples": args.samples, "tool": tool, "seconds": f"{statistics.median(seconds):.2f}",
            "fastest": f"{min(seconds):.2f}", "slowest": f"{max(seconds):.2f}", "ratio": f"{ratio:.3f}",
            "cpu_seconds": f"{statistics.median(processor):.2f}", "cpu_ratio": f"{cpu_ratio:.3f}",
            "peak_mb": f"{statistics.median(megabytes):.0f}", "rounds": args.rounds, "load": f"{os.getloadavg()[0]:.1f}",
            "version": version("onnxruntime" if tool == TOOLS[0] else None), **machine()}
    print("  ".join(f"{k} {made[k]}" for k in FIELDS[:10]), flush=True)
    return made


def main(args):
    tools.build()
    rows = []
    for model in networks.chosen(args.models):
        models.make(model)
        rows += measure(args, model)
        if not args.no_keep:
            RESULTS.keep(rows)
    return 0
