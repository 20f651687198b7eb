#!/usr/bin/env python3
"""Converts the networks of make_nasty.py by default, from 64 samples each, and judges them on 64 others.

    check_nasty.py [NAME...] [--bar DB] [--peer] [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Columns: int/flt, layers with weights that became integers, and those that stayed float; output SQNR against float in dB, in ONNX Runtime
(with kernels that do not saturate), in our runtime, and as qeval itself has it; --peer: of ONNX Runtime's quantize_static in the first. Where the
network names parts of its output, the worst of them. A network holds when both runtimes reach the bar, or the report names each
node that is to blame as float, with a reason; and when qeval's own figure is that of the whole output of our runtime.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np

from generate import make_nasty
from pylib import peer, tool
from pylib.judge import Checker, options, run_ort, sqnr
from pylib.samples import open_samples

HEAD = f"{'network':<20}{'int/flt':>8}{'in ORT':>8}{'ours':>7}{'qeval':>7}{'peer':>7}  worst part, nodes to blame left float"


def parts(n, y):
    return {name: np.ascontiguousarray(y[0][at]) for name, at in n.parts.items()} or {"all": y[0]}


def left_float(n, report):
    """{node: reason} of the nodes that are to blame, when all of them stayed float."""
    found = {layer["name"]: layer["why"] for layer in report["layers"] if layer["name"] in n.cause and layer["scheme"] == "float"}
    return found if n.cause and len(found) == len(n.cause) else {}


def in_ort(model, samples):
    return [np.concatenate(y) for y in run_ort(model, samples, exact=True)]


def by_peer(c, model, calib, samples):
    """What its quantizer makes, if it runs."""
    try:
        return {"peer": in_ort(peer.quantize(model, c.folder / "peer.onnx", open_samples(calib), len(samples)), samples)}
    except Exception as error:
        print(f"{model.stem}: quantize_static failed: {' '.join(str(error).split())[-90:]}")
        return {}


def judge(c, n, name, args):
    """One line of the table."""
    model, ours, calib = (c.folder / f"{name}{end}" for end in (".onnx", ".int8.onnx", ".calib.npy"))
    spec = c.folder / f"{name}.eval.npy"
    samples = [x[None] for x in np.load(spec)]
    report = c.convert(model, ours, "--data", calib)
    want = in_ort(model, samples)
    runs = {"in ORT": in_ort(ours, samples), "ours": list(tool.run_qeval(c.qeval, ours, spec, c.folder / "out.npz").values())}
    if args.peer:
        runs |= by_peer(c, model, calib, samples)
    db = {run: {p: sqnr([w], [parts(n, y)[p]]) for p, w in parts(n, want).items()} for run, y in runs.items()}
    tool.run([c.qeval, model, ours, "--data", spec, "--metric", "sqnr", "--json", c.folder / "e.json", "-q"])
    said = json.loads((c.folder / "e.json").read_text())["quant"]["metrics"]["sqnr"]
    worst = {run: min(by.values()) for run, by in db.items()}
    blamed = left_float(n, report)
    which = min(db["ours"], key=db["ours"].get)
    left = report["layers_with_weights"] - report["int8_layers"]
    print(f"{name:<20}{report['int8_layers']:>4}/{left:<3}{worst['in ORT']:>8.1f}{worst['ours']:>7.1f}"
          f"{said:>7.1f}{format(worst['peer'], '.1f') if 'peer' in worst else '-':>7}  {'' if which == 'all' else which + '; '}"
          f"{', '.join(f'{k}: {v}' for k, v in blamed.items()) or 'none'}", flush=True)
    c.hold(f"{name}: output SQNR or the node to blame", min(worst["in ORT"], worst["ours"]) >= args.bar or blamed,
           f"{min(worst['in ORT'], worst['ours']):.1f} dB is below {args.bar:g}")
    c.hold(f"{name}: qeval's own figure", abs(said - sqnr(want, runs["ours"])) < 0.05, f"{said:.2f} dB")


def main():
    parser = options(__doc__)
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--bar", type=float, default=20, help="dB [%(default)s]")
    parser.add_argument("--peer", action="store_true", help="also ONNX Runtime's quantize_static")
    args = parser.parse_args()
    print(HEAD)
    with Checker(args) as c:
        for name in args.names or make_nasty.NETS:
            judge(c, make_nasty.build(name, c.folder), name, args)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
