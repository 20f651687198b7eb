#!/usr/bin/env python3
"""Converts small networks whose outputs are decisions (masks, classes, rows above a threshold or sorted, lengths that depend on values), and holds what qconvert and
qeval say of the results against the outputs in ONNX Runtime.

    check_decisions.py [--models N] [--kind KIND] [--seed SEED] [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Of each kind N models are made [default: 2]. What must hold of each, for the default and for some targets: qconvert writes a model, with --strict also; no layer stays
float because a decision looked like noise; a loss is warned of; qeval compares what can be compared, and says how much that was.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx

from pylib import decisions, peer
from pylib.judge import Checker, options

SAMPLES = 40
TARGETS = ("", "onnxruntime-x86", "qnn", "tensorrt", "litert", "st-neuralart")
GROSS = 0.6  # a share found again below which a loss must have been warned of


def run(c, *command):
    return subprocess.run([str(x) for x in command], cwd=c.folder, capture_output=True, text=True, timeout=120, check=False)


def outputs(path, data):
    session = peer.session(path, optimize=False)  # as written: the optimizer would choose kernels that saturate on some CPUs
    return [session.run(None, {"x": x[None]}) for x in data]


def rows_of(a, declared):
    """The elements of an output as rows: along the dimension that is open, or else the first of more than 1."""
    dims = [d.dim_value for d in declared.type.tensor_type.shape.dim]
    axis = next((k for k, d in enumerate(dims) if d == 0), next((k for k, d in enumerate(dims) if d > 1), 0))
    return np.moveaxis(a, axis, 0).reshape(a.shape[axis], a.size // max(a.shape[axis], 1)).astype(np.float64)


def share(ref, other):
    """How many rows of two sets have a partner within a tenth of the columns' largest magnitudes: apart from our code, by sorting out pairs greedily."""
    if not len(ref) and not len(other):
        return None
    most = np.abs(ref).max(0, initial=0) + 1e-9
    left, found = list(range(len(other))), 0
    for i, row in enumerate(ref):
        at = min((j for j in left if np.sqrt((((other[j] - row) / most) ** 2).mean()) <= 0.1), key=lambda j: abs(j - i), default=None)
        if at is not None:
            left.remove(at)
            found += 1
    return found / max(len(ref), len(other))


def lost(model, kind, ref, other):
    """The smallest mean share over the outputs: of equal elements where each has its place, else of rows."""
    means = []
    for k, o in enumerate(model.graph.output):
        if kind in ("mask", "classified") and o.type.tensor_type.elem_type != onnx.TensorProto.FLOAT or kind == "mask":
            shares = [np.mean(a[k] == b[k]) for a, b in zip(ref, other)]
        else:
            shares = [share(rows_of(a[k], o), rows_of(b[k], o)) for a, b in zip(ref, other)]
        shares = [s for s in shares if s is not None]
        if shares:
            means.append(np.mean(shares))
    return min(means, default=1.0)


def hold_model(c, kind, seed):
    folder, name = c.folder, f"{kind} {seed}"
    decisions.make(kind, seed, folder / "m.onnx")
    data = decisions.samples(seed, SAMPLES)
    np.save(folder / "x.npy", data)
    model = onnx.load(folder / "m.onnx")
    ref = outputs(folder / "m.onnx", data)
    for target in ("", TARGETS[1 + seed % (len(TARGETS) - 1)]):
        what, more = f"{name} {target}", ["--target", target] if target else ["--budget", "3"]  # by default tiny layers may become float for nothing
        for f in ("q.onnx", "q.best.onnx"):
            (folder / f).unlink(missing_ok=True)
        done = run(c, c.qconvert, "m.onnx", "--data", "x.npy", "-o", "q.onnx", "--json", "r.json", "-q", *more)
        c.hold(f"{what}: written", done.returncode == 0 and (folder / "q.onnx").exists(), f"exit {done.returncode}: {done.stderr.strip()}")
        if done.returncode:
            continue
        report = json.loads((folder / "r.json").read_text())
        warned = "warning" in done.stderr
        c.hold(f"{what}: no false alarm", "not finite" not in done.stderr, done.stderr.strip())
        if not target:
            layers, whole = report["int8_layers"], report["layers_with_weights"]
            c.hold(f"{what}: layers", layers >= whole - 1, f"{layers} of {whole} are int8: {done.stderr.strip()}")
        found = lost(model, kind, ref, outputs(folder / "q.onnx", data))
        if kind in ("mask", "suppressed", "picked", "ranked", "classified"):
            c.hold(f"{what}: loss", found >= GROSS or warned, f"{100 * found:.1f} % found again, and no warning")
        strict = run(c, c.qconvert, "m.onnx", "--data", "x.npy", "-o", "s.onnx", "-q", "--strict", *more)
        c.hold(f"{what}: strict", strict.returncode == (1 if report["lossy"] else 0), f"exit {strict.returncode}, lossy {report['lossy']}: {strict.stderr.strip()}")
        done = run(c, c.qeval, "m.onnx", "q.onnx", "--data", "x.npy", "-q", "--no-latency", "--json", "e.json")
        c.hold(f"{what}: qeval", done.returncode == 0, f"exit {done.returncode}: {done.stderr.strip()}")
        if done.returncode:
            continue
        for k, o in enumerate(json.loads((folder / "e.json").read_text())["models"][1]["outputs"]):
            said = not any(a[k].size for a in ref) or o["sqnr_db"] is not None or o.get("exact") or o["matched"] is not None or o["other_length"] > 0
            c.hold(f"{what}: output {o['name']}", said, f"nothing is said of it: {o}")
            c.hold(f"{what}: samples of {o['name']}", o["compared"] + o["other_length"] >= SAMPLES, f"{o['compared']} compared, {o['other_length']} of another length")


def hold_decoded(c):
    """Boxes after suppression, judged as boxes by a rule: their number differs, and is no fault."""
    decisions.make("suppressed", next(s for s in range(20) if has_output(c, s, "boxes")), c.folder / "m.onnx")
    np.save(c.folder / "x.npy", decisions.samples(5, SAMPLES))
    done = run(c, c.qconvert, "m.onnx", "--data", "x.npy", "-o", "d.onnx", "-q", "--strict", "--decode", "torchvision:score=0.5")
    c.hold("decoded boxes: strict", done.returncode == 0 and "not finite" not in done.stderr, f"exit {done.returncode}: {done.stderr.strip()}")


def has_output(c, seed, name):
    decisions.make("suppressed", seed, c.folder / "m.onnx")
    return any(o.name == name for o in onnx.load(c.folder / "m.onnx").graph.output)


def hold_regression(c):
    """Many nearly equal values: no class is meant, and the float model's own squared error to itself is no reference."""
    n = decisions.Net(3)
    n.out(n.node("Add", n.node("Mul", n.dense(n.dense("x", 48, 64), 64, 24, False), n.const(np.float32(0.1))), n.const(np.float32(10))), "forecast", decisions.F, "N", 24)
    n.save(c.folder / "m.onnx", "N", 48)
    data = np.random.default_rng(3).normal(size=(400, 48)).astype(np.float32)
    np.save(c.folder / "x.npy", data)
    done = run(c, c.qconvert, "m.onnx", "--data", "x.npy", "-o", "f.onnx", "-q", "--strict", "--metric", "mse", "--json", "r.json")
    c.hold("forecast: --strict --metric mse", done.returncode == 0, f"exit {done.returncode}: {done.stderr.strip()}")
    done = run(c, c.qeval, "m.onnx", "f.onnx", "--data", "x.npy", "-q", "--no-latency", "--no-layers", "--metric", "mse,sqnr", "--json", "e.json")
    got = json.loads((c.folder / "e.json").read_text())["models"][1] if done.returncode == 0 else None
    ref = np.concatenate([o[0] for o in outputs(c.folder / "m.onnx", data)]).astype(np.float64)
    want = (ref**2).mean() / 10 ** (got["metrics"]["sqnr"] / 10) if got else None
    c.hold("forecast: mse", got and abs(got["drop"]["mse"]["value"] - want) <= 1e-6 * want, f"{got and got['drop']['mse']}, wanted {want}")


def hold_refusals(c):
    """A goal that is not defined for the outputs is refused, and so is one of classes for a mask; nothing is written."""
    decisions.make("mask", 0, c.folder / "m.onnx")
    np.save(c.folder / "x.npy", decisions.samples(5, SAMPLES))
    for goal in (["--min-sqnr", "30"], ["--min-agreement", "90%"], ["--max-drop", "cosine=0.1"]):
        done = run(c, c.qconvert, "m.onnx", "--data", "x.npy", "-o", "g.onnx", *goal)
        c.hold(f"mask: {goal[0]}", done.returncode == 2 and "matched" in done.stderr and "bias" not in done.stdout, f"exit {done.returncode}: {done.stderr.strip()}")
    done = run(c, c.qconvert, "m.onnx", "--data", "x.npy", "-o", "g.onnx", "-q", "--max-drop", "matched=10%")
    c.hold("mask: --max-drop matched", done.returncode == 0, f"exit {done.returncode}: {done.stderr.strip()}")


def main():
    parser = options(__doc__)
    parser.add_argument("--models", type=int, default=2, metavar="N")
    parser.add_argument("--kind", choices=list(decisions.KINDS))
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if not args.qconvert or not args.qeval:
        print("there is no qconvert or qeval")
        return 77
    with Checker(args) as c:
        for kind in [args.kind] if args.kind else decisions.KINDS:
            for seed in range(args.seed, args.seed + args.models):
                hold_model(c, kind, seed)
        if not args.kind:
            hold_decoded(c)
            hold_regression(c)
            hold_refusals(c)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
