#!/usr/bin/env python3
"""Converts the real models to 16-bit floats and judges the result.

    check_half.py [NAME...] [--shared ../shared] [--scheme fp16|bf16] [--samples 8] [--write]

Prints a line a model, in the fields of tests/accuracy/half.csv, which --write updates; accuracy.py --page makes a table of it.
size is that before by that after; layers those with weights that became 16-bit of all; casts those written; the rest SQNR in dB,
the smallest over several outputs: ours, in our runtime against float; ort, the same in ONNX Runtime (which has no bfloat16);
same, between the two. Each result must pass the ONNX checker. Exit: 0 all well, 1 some failed.
"""
import argparse
import json
import sys
import tempfile
from pathlib import Path

import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import peer, table_file, tool, zoo
from pylib.judge import sqnr
from pylib.samples import open_samples

FILE = zoo.ROOT / "tests/accuracy/half.csv"
FIELDS = ("model", "scheme", "samples", "size", "layers", "casts", "ours", "ort", "same")


def casts(path):
    return sum(node.op_type == "Cast" for node in onnx.load(path).graph.node)


def check(name, args, work):
    qconvert, qeval = tool.find("qconvert"), tool.find("qeval")
    model, calib, data, _ = zoo.MODELS[name].paths(args.shared)
    steps, half = zoo.MODELS[name].preprocess, work / "half.onnx"
    command = [qconvert, model, "--scheme", args.scheme, "-o", half, "--json", work / "r.json", "-q", "--data", calib]
    command += ["--target", "octet"] if args.scheme == "bf16" else []  # elsewhere weights alone are bfloat16
    tool.run(command + ["--samples", args.samples] + (["--preprocess", steps] if steps else []))
    onnx.checker.check_model(str(half), full_check=True)
    report = json.loads((work / "r.json").read_text())
    samples = open_samples(data, steps)
    samples.count = min(samples.count, args.samples)
    extra = ["--samples", str(args.samples), "--first"]
    got = tool.run_qeval(qeval, half, data, work / "h.npz", steps, extra)
    row = {"model": name, "scheme": args.scheme, "samples": samples.count, "casts": casts(half) - casts(model),
           "size": f"{model.stat().st_size / half.stat().st_size:.2f}",
           "layers": f"{report['half_layers']} of {report['layers_with_weights']}",
           "ours": f"{sqnr(tool.run_qeval(qeval, model, data, work / 'f.npz', steps, extra), got):.1f}"}
    if args.scheme == "fp16":
        theirs = peer.run_all(peer.session(half), samples, batch=1)
        row |= {"ort": f"{sqnr(peer.run_all(peer.session(model), samples, batch=1), theirs):.1f}", "same": f"{sqnr(theirs, got):.1f}"}
    return row


def write(rows):
    """Replaces the lines of what was measured, in the order of the zoo."""
    done = {(r["model"], r["scheme"]) for r in rows}
    rows = [r for r in table_file.read(FILE) if (r["model"], r["scheme"]) not in done] + rows
    place = list(zoo.MODELS)
    table_file.write(FILE, FIELDS, sorted(rows, key=lambda r: (place.index(r["model"]), r["scheme"] == "bf16")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--shared", type=Path, default=tool.SHARED)
    parser.add_argument("--scheme", choices=("fp16", "bf16"), default="fp16")
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    rows, failed = [], 0
    for name in args.names or zoo.MODELS:
        with tempfile.TemporaryDirectory() as work:
            try:
                rows.append(check(name, args, Path(work)))
                print(*(f"{k} {v}" for k, v in rows[-1].items()), flush=True)
            except Exception as error:
                failed += 1
                print(f"{name} failed: {type(error).__name__}: {str(error)[:300]}", flush=True)
    if args.write:
        write(rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
