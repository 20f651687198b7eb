#!/usr/bin/env python3
"""Converts models of float16, bfloat16 and float64 beside the same models in float32: as much is quantized, and as little is lost.

    check_floats.py [--only GLOB] [--all] [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Networks: those of pylib/architectures.py that are valid in the type, each in one of the types; --all: in all. Their constants are rounded to the type
first, so that both models have the same numbers.

What is written must pass the ONNX checker, load in ONNX Runtime and keep the types of inputs and outputs. As many layers are quantized as from
float32. The outputs in ONNX Runtime lose at most 0.5 dB more in the mean, 2 dB in each (rounded inputs move codes), beyond 60 dB any number, and where nothing
is quantized (costs may ask for that) beyond the 50 dB that 16 bits have. It is no larger than the model,
where its floats exceed 64 kB.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import copy
import sys
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime", "ml_dtypes")
import numpy as np
import onnx

from pylib import architectures, peer, retype
from pylib.judge import Checker, options, sqnr

CALIB = 16         # of the samples calibrate, the others judge
LARGE = 64 << 10
LEAST = {"float16": 30, "bfloat16": 5, "float64": 30}  # networks that can be had in each type
SCHEMES = {"static": [], "dynamic": ["--scheme", "dynamic"], "weights-8": ["--scheme", "weight-only", "--bits", "8"]}


def run_ort(path, data):
    """{output: array of all samples}; floats as float64."""
    session = peer.session(path, exact=True)
    taken = {i.name: {"tensor(float16)": np.float16, "tensor(double)": np.float64}.get(i.type) for i in session.get_inputs()}
    runs, ranks = [], {i.name: len(i.shape) for i in session.get_inputs()}
    for i in range(len(next(iter(data.values())))):
        x = {k: data[k][i:i + 1] if data[k].ndim == ranks[k] else data[k][i] for k in taken}
        runs.append(session.run(None, {k: v.astype(taken[k]) if taken[k] else v for k, v in x.items()}))
    floats = [k for k, o in enumerate(session.get_outputs()) if "float" in o.type or "double" in o.type]
    return {session.get_outputs()[k].name: np.concatenate([np.asarray(r[k], np.float64) for r in runs]) for k in floats}


def typed(data, kind):
    """Samples whose floats are of the type, as NumPy has it."""
    numpy_type = retype.TYPES[kind][1] if kind != "bfloat16" else np.float32
    return {k: v.astype(numpy_type) if v.dtype == np.float32 else v for k, v in data.items()}


def ends(path):
    graph = onnx.load(path).graph
    return [(v.name, v.type.tensor_type.elem_type) for v in (*graph.input, *graph.output)]


def quantized(report):
    return sum(layer["scheme"] != "float" for layer in report["layers"])


def valid(model, kind):
    """The checker does not look at the types of an operator's version: before opset 22 convolution and pooling were not of bfloat16."""
    if kind == "bfloat16" and any("Conv" in n.op_type or "Pool" in n.op_type for n in model.graph.node) and model.opset_import[0].version < 22:
        return False
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception:
        return False
    return True


def check(c, name, base, model, data, kind, losses):
    """base: in float32, with the same numbers."""
    plain, narrow, out = (c.folder / f"{n}.onnx" for n in ("plain", "narrow", "out"))
    onnx.save(base, plain)
    onnx.save(model, narrow)
    calib, rows = ({k: v[part] for k, v in data.items()} for part in (slice(0, CALIB), slice(CALIB, None)))
    np.savez(c.folder / "plain.npz", **calib)
    np.savez(c.folder / "narrow.npz", **typed(calib, kind))
    want = run_ort(plain, rows)
    large = sum(t.ByteSize() for t in model.graph.initializer) > LARGE
    for scheme, more in SCHEMES.items():
        what = f"{name} {kind} {scheme}"
        said, kept = [], []
        for path in (plain, narrow):
            samples = ["--data", c.folder / f"{path.stem}.npz"] if scheme == "static" else []
            try:
                said.append(quantized(c.convert(path, out, *more, *samples)))
                onnx.checker.check_model(str(out), full_check=True)
                kept.append(sqnr(want, run_ort(out, rows)))
            except Exception as error:
                c.hold(f"{what}: {path.stem}", False, " ".join(str(error).split())[:250])
                return
        c.hold(f"{what}: layers", said[1] >= said[0] and (said[0] > 0) == (said[1] > 0), f"{said[1]}, of float32 {said[0]}")
        enough = 60 if said[0] else 50
        c.hold(f"{what}: loss", kept[1] > min(kept[0] - 2, enough), f"{kept[1]:.1f} dB, of float32 {kept[0]:.1f}")
        losses.append(min(kept[0], enough) - min(kept[1], enough))
        c.hold(f"{what}: ends", ends(out) == ends(narrow))
        c.hold(f"{what}: size", not large or out.stat().st_size <= narrow.stat().st_size, f"{out.stat().st_size} of {narrow.stat().st_size}")


def main():
    parser = options(__doc__)
    parser.add_argument("--only", metavar="GLOB", default="*")
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    with Checker(args) as c:
        had, losses = dict.fromkeys(retype.TYPES, 0), []
        for number, (name, write) in enumerate(architectures.ALL.items()):
            if not fnmatch(name, args.only):
                continue
            path = c.folder / "model.onnx"
            data = write(path)
            for kind in list(retype.TYPES) if args.all else [list(retype.TYPES)[number % 3]]:
                base = onnx.load(path)
                retype.rounded(base, kind)
                model = copy.deepcopy(base)
                retype.retype(model, kind)
                if valid(model, kind):
                    had[kind] += 1
                    check(c, name, base, model, data, kind, losses)
                elif args.verbose:
                    print(f"{name} {kind}: not valid in the type")
        if args.only == "*":
            c.hold("networks", all(had[k] >= LEAST[k] // (1 if args.all else 4) for k in had), f"{had}")
            c.hold("loss, in the mean", np.mean(losses) < 0.5, f"{np.mean(losses):.2f} dB")
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
