#!/usr/bin/env python3
"""Converts real models to 16-bit floats and judges the result; prints a table in Markdown.

    check_half.py [NAME...] [--shared ../shared] [--scheme fp16|bf16] [--samples 8]

Columns: size, before by after; layers with weights in 16 bits of all; Casts written; SQNR of the outputs against float in our
runtime and in ONNX Runtime (which has no bfloat16), in dB; same, SQNR between the two. The smallest over several outputs.
Each result must pass the ONNX checker. Exit: 0 all well, 1 some failed.
"""
import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx

from check_zoo import run, sqnr
from pylib import peer, tool, zoo
from pylib.samples import open_samples

SILERO = "silero_vad_16k"



def paths(name, shared, work):
    """(model, calibration SPEC, evaluation SPEC, preprocessing)"""
    if name == SILERO:
        return Path(shared) / "models" / f"{name}.onnx", None, None, ""
    model, calib, data, _ = zoo.MODELS[name].paths(shared)
    return model, calib, data, zoo.MODELS[name].preprocess


def outputs(model, samples):
    return peer.run_all(peer.session(model), samples, batch=1)


def check(name, args, work):
    qconvert, qeval = tool.find("qconvert"), tool.find("qeval")
    model, calib, data, steps = paths(name, args.shared, work)
    half, row = work / "half.onnx", {}
    command = [qconvert, model, "--scheme", args.scheme, "-o", half, "--json", work / "r.json", "-q"]
    if calib:
        command += ["--data", calib, "--samples", args.samples] + (["--preprocess", steps] if steps else [])
    run(command)
    onnx.checker.check_model(str(half), full_check=True)
    report = json.loads((work / "r.json").read_text())
    row["layers"] = f"{report['half_layers']} of {report['layers_with_weights']}"
    row["size"] = model.stat().st_size / half.stat().st_size
    row["casts"] = sum(n.op_type == "Cast" for n in onnx.load(half).graph.node) - sum(n.op_type == "Cast" for n in onnx.load(model).graph.node)
    if not data:
        if args.scheme == "fp16":
            peer.session(half)
        return row
    samples = open_samples(data, steps)
    samples.count = min(samples.count, args.samples)
    extra = ["--samples", str(args.samples)]
    want = tool.run_qeval(qeval, model, data, work / "f.npz", steps, extra)
    got = tool.run_qeval(qeval, half, data, work / "h.npz", steps, extra)
    row["ours"] = sqnr(want, got)
    if args.scheme == "fp16":
        theirs = outputs(half, samples)
        row["ort"], row["same"] = sqnr(outputs(model, samples), theirs), sqnr(theirs, got)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--shared", type=Path, default=zoo.ROOT.parent / "shared")
    parser.add_argument("--scheme", choices=("fp16", "bf16"), default="fp16")
    parser.add_argument("--samples", type=int, default=8)
    args = parser.parse_args()
    failed = 0
    print("| model | size | layers | Casts | ours | ONNX Runtime | same |\n|---|---|---|---|---|---|---|")
    for name in args.names or [*zoo.CNNS, SILERO]:
        with tempfile.TemporaryDirectory() as work:
            try:
                r = check(name, args, Path(work))
                db = [f"{r[k]:.1f}" if k in r else "" for k in ("ours", "ort", "same")]
                print(f"| {name} | {r['size']:.2f} | {r['layers']} | {r['casts']} | {' | '.join(db)} |", flush=True)
            except Exception as error:
                failed += 1
                print(f"| {name} | failed: {type(error).__name__}: {str(error)[:300]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
