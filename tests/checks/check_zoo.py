#!/usr/bin/env python3
"""Converts every network of a zoo (make_zoo.py) and judges the result against ONNX Runtime; prints one table.

    check_zoo.py FOLDER [NAME...] [--no-agree] [--json FILE]

Columns: float, largest error of our float outputs relative to the range; int/flt, integer and float Conv, Gemm and MatMul that
ONNX Runtime's optimizer leaves (QDQ form); agree, pieces that disagree of all (scripts/development/agree); SQNR in dB of the outputs
against float, ours in our runtime and in ONNX Runtime, and that of its own quantize_static on the same samples; same, SQNR
between our runtime and ONNX Runtime on our model. A model with several outputs has the smallest over them.
A line ends with what failed. Exit: 0 none, 1 some.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import peer, tool
from pylib.judge import relative_error, sqnr
from pylib.samples import open_samples


def data_of(folder, name, part):
    return next(p for p in (folder / f"{name}.{part}.npy", folder / f"{name}.{part}.npz") if p.exists())


def products(counts):
    """(integer, float) Conv, Gemm and MatMul; ConvTranspose has no integer kernel there."""
    integer, floating = peer.integer_share(counts)
    return integer, floating - counts.get("ConvTranspose", 0)


def float_products(report):
    """Products that qconvert itself left float, with the reason."""
    return {layer["name"]: layer["why"] for layer in report["layers"]
            if layer["op"] in ("Conv", "Gemm", "MatMul") and not layer.get("integer")}


def check(folder, name, args, work):
    qconvert, qeval = tool.find("qconvert"), tool.find("qeval")
    model, calib, rows = folder / f"{name}.onnx", data_of(folder, name, "calib"), data_of(folder, name, "eval")
    ours, theirs, again = work / "ours.onnx", work / "theirs.onnx", work / "again.onnx"
    row, failed = {"name": name}, []
    row["failed"] = failed

    samples = open_samples(rows)
    want = peer.run_all(peer.session(model), samples, batch=8)
    got = tool.run_qeval(qeval, model, rows, work / "f.npz")
    row["float"] = max(relative_error(w, got[n]) for n, w in want.items())
    if not row["float"] <= 1e-4:
        failed.append("float differs")

    tool.run([qconvert, model, "--data", calib, "-o", ours, "--json", work / "r.json", "--threads", 2, "-q"])
    tool.run([qconvert, model, "--data", calib, "-o", again, "--threads", 1, "-q"])
    a, b = onnx.load(ours), onnx.load(again)
    for m in (a, b):
        del m.metadata_props[:]
    if a.SerializeToString() != b.SerializeToString():
        failed.append("threads matter")
    onnx.checker.check_model(str(ours), full_check=True)
    counts = peer.node_counts(ours)
    row["integer"], row["floating"] = products(counts)
    left = float_products(json.loads((work / "r.json").read_text()))
    row["left"] = left
    if row["floating"] > len(left):
        failed.append(f"{row['floating']} float products in ONNX Runtime, {len(left)} meant")

    quant = tool.run_qeval(qeval, ours, rows, work / "q.npz")
    tool.run([qeval, model, ours, "--data", rows, "--layers", "-q"])
    one = tool.run_qeval(qeval, ours, rows, work / "q1.npz", extra=["--threads", "1"])
    if any(not np.array_equal(quant[n], one[n]) for n in quant):
        failed.append("threads matter in the runtime")
    deployed = peer.run_all(peer.session(ours), samples, batch=8)
    row["ours"], row["deployed"], row["same"] = sqnr(want, quant), sqnr(want, deployed), sqnr(deployed, quant)
    if row["same"] < row["deployed"] + 20 and row["same"] < 60:
        failed.append("runtimes apart")
    try:
        peer.quantize(model, theirs, open_samples(calib), 1000)
        exact = peer.run_all(peer.session(theirs, exact=True), samples, batch=8)
        row["theirs"] = sqnr(want, exact)
        counts = peer.node_counts(theirs)
        row["their_integer"], row["their_floating"] = products(counts)
    except Exception as error:
        row["theirs"] = float("nan")
        row["their_error"] = str(error)[:100]
    if min(row["ours"], row["deployed"]) < row["theirs"]:
        failed.append("below quantize_static")
    if not args.no_agree:
        command = [sys.executable, tool.ROOT / "scripts/development/agree", ours, "--data", rows, "--samples", "4", "--json", work / "a.json"]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1) or not (work / "a.json").exists():
            failed.append("agree: " + (done.stderr.strip().splitlines() or ["failed"])[-1][:100])
        else:
            pieces = json.loads((work / "a.json").read_text())
            row["pieces"], row["disagree"] = len(pieces), [p for p in pieces if not p["agrees"]]
            for p in row["disagree"]:
                failed.append(f"{p['op'][:40]} at {p['name']}: {p.get('failed') or (p['equal'], p['max'])}")
    if not args.no_twice:
        tool.run([qconvert, ours, "--data", calib, "-o", work / "twice.onnx", "-q"])
        twice = tool.run_qeval(qeval, work / "twice.onnx", rows, work / "t.npz")
        peer.session(work / "twice.onnx")
        row["twice"] = sqnr(want, twice)
        if row["twice"] < row["ours"] - 3:
            failed.append(f"quantized twice: {row['twice']:.1f} dB")
        tool.run([qconvert, model, "--data", calib, "-o", work / "op.onnx", "--format", "qoperator", "-q"])
        onnx.checker.check_model(str(work / "op.onnx"))
        form = tool.run_qeval(qeval, work / "op.onnx", rows, work / "o.npz")
        if sqnr(quant, form) < 60:
            failed.append(f"operator form: {sqnr(quant, form):.1f} dB")
        row["form"] = sqnr(deployed, peer.run_all(peer.session(work / "op.onnx"), samples, batch=8))
        if row["form"] < row["deployed"] + 15:
            failed.append(f"operator form in ONNX Runtime: {row['form']:.1f} dB")
    return row


HEAD = f"{'network':<24}{'float':>8}{'int/flt':>9}{'theirs':>9}{'agree':>8}{'ours':>7}{'in ORT':>8}{'ORT own':>8}{'same':>7}  failed"


def print_row(r):
    def number(key):
        return f"{r[key]:.1f}" if key in r else "-"
    print(f"{r['name']:<24}{r.get('float', float('nan')):8.0e}{r.get('integer', '-')!s:>5}/{r.get('floating', '-')!s:<3}"
          f"{r.get('their_integer', '-')!s:>5}/{r.get('their_floating', '-')!s:<3}"
          f"{len(r.get('disagree', ())):>4}/{r.get('pieces', '-')!s:<3}"
          f"{number('ours'):>7}{number('deployed'):>8}{number('theirs'):>8}{number('same'):>7}  {'; '.join(r['failed'])}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--no-agree", action="store_true"), parser.add_argument("--no-twice", action="store_true")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    names = args.names or sorted(p.stem for p in args.folder.glob("*.onnx"))
    table = []
    print(HEAD)
    for name in names:
        with tempfile.TemporaryDirectory() as work:
            try:
                table.append(check(args.folder, name, args, Path(work)))
            except Exception as error:
                table.append({"name": name, "failed": [f"{type(error).__name__}: {error}"[:300]]})
        print_row(table[-1])
    if args.json:
        args.json.write_text(json.dumps(table, indent=1, default=str) + "\n")
    bad = sum(bool(r["failed"]) for r in table)
    print(f"{len(table)} networks, {bad} with failures")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
