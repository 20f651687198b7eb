#!/usr/bin/env python3
"""Converts small networks of many architectures in every scheme that applies, and judges them with ONNX Runtime.

    check_architectures.py [--only GLOB] [--all] [--models FOLDER] [--json FILE] [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Networks: those of pylib/architectures.py, each in a third of the schemes; --all: in all; --models: NAME.onnx with its samples
NAME.npz in a folder instead (scripts/development/export_architectures.py fills one).

Our float outputs must be those of ONNX Runtime. What is written must pass the ONNX checker where the model does, load in ONNX Runtime, stay
finite and be no larger than the float file where float weights exceed 64 kB; where no layer is converted it may have 1 kB more, as it says what made it.

Our runtime and ONNX Runtime's exact kernels must agree: their distance must be 20 dB (dynamic: 10) below that of the converted model to the float
one, or below what moves ONNX Runtime's own outputs when inputs are multiplied by 1 + 2e-7, and dynamic ones when its optimizer is switched off. Where
static ones do not, since a code that a last bit of float parts moves by one moves others behind it, scripts/development/agree must find no layer
that differs. In 16 bits, where runtimes round at different places, 40 dB do, or twice the distance to the float model.

Static 8 bits must keep 20 dB, or as much as ONNX Runtime's quantize_static does: the mean of three turns, in each of which another third of the
samples judges and the others calibrate. (One turn says little: of networks of random weights that keep 5 to 10 dB it is 2 dB off.) It may be below
theirs by 0.5 dB, or by as much as theirs moves, up or down, when the samples that calibrate it are multiplied by 1 + 2e-7: in chaotic networks a
last bit of a scale moves codes, each layer behind moves more of them, and what is kept is luck within these bounds. Networks with operators that
our runtime does not know are judged by ONNX Runtime alone.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import subprocess
import sys
import tempfile
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx

from pylib import architectures, peer, tool
from pylib.judge import Checker, options, sqnr

MOVED = np.float32(1 + 2e-7)
CLOSE = 0.5       # dB: as much as ONNX Runtime's quantizer
TURNS = 3         # a third of the samples judges, the others calibrate
LARGE = 64 << 10  # bytes of float weights from which on a file may not grow
STATIC = ("static", "static-operators", "static-s8", "static-16")
SCHEMES = {
    "static": [],
    "dynamic": ["--scheme", "dynamic"],
    "fp16": ["--scheme", "fp16"],
    "static-operators": ["--format", "qoperator"],
    "weights-4": ["--scheme", "weight-only", "--bits", "4"],
    "bf16": ["--scheme", "bf16"],
    "static-s8": ["--policy", "s8.policy"],
    "weights-8": ["--scheme", "weight-only", "--bits", "8"],
    "static-16": ["--policy", "u16.policy", "--target", "wide.target"],
}
FILES = {
    "s8.policy": "any - - s8/tensor/sym -\n",
    "u16.policy": "any - - u16/tensor/asym -\n",
    "wide.target": "name wide\nsummary activations of 16 bits\ninherits onnxruntime-x86\ntypes u8*u8 u8*s8 s8*s8 u16*s8\n",
}
MADE_BY = 1 << 10  # bytes of metadata
UNLIKE = 40.0     # dB: bf16 and fp16 differ by this where runtimes round at different places


def why_not(act):
    try:
        act()
    except Exception as error:
        return " ".join(str(error).split())[:250] or type(error).__name__
    return ""


def constants(graph):
    for node in graph.node:
        for a in node.attribute:
            if a.HasField("t"):
                yield a.t
            if a.HasField("g"):
                yield from constants(a.g)
    yield from graph.initializer


def float_bytes(path):
    return sum(4 * int(np.prod(t.dims)) for t in constants(onnx.load(path).graph) if t.data_type == onnx.TensorProto.FLOAT)


def batch_of(path):
    """Whether the first axis of the inputs is of samples; otherwise a sample is the whole input."""
    dims = onnx.load(path, load_external_data=False).graph.input[0].type.tensor_type.shape.dim
    return not dims or not dims[0].HasField("dim_value") or dims[0].dim_value == 1


def times(data, factor):
    """The inputs of floats multiplied."""
    return {k: v * factor if v.dtype == np.float32 else v for k, v in data.items()}


def run_ort(model, data, batched, factor=None, optimize=True):
    """[array of all samples] of the outputs of floats."""
    session = peer.session(model, exact=True, optimize=optimize)
    names = [i.name for i in session.get_inputs()]
    rows = []
    for i in range(len(data[names[0]])):
        x = {k: data[k][i:i + 1] if batched else data[k][i] for k in names}
        if factor:
            x = times(x, factor)
        rows.append(session.run(None, x))
    return {o.name: np.stack([np.asarray(r[k]) for r in rows]) for k, o in enumerate(session.get_outputs()) if "float" in o.type}


def run_exact(model, data, batched):
    """The same without ONNX Runtime's optimizer where it fails with it, as it does on some models of its own quantizer."""
    try:
        return run_ort(model, data, batched)
    except Exception:
        return run_ort(model, data, batched, optimize=False)


def run_ours(c, model, data, like):
    rows = c.folder / "rows.npz"
    np.savez(rows, **data)
    got = tool.run_qeval(c.qeval, model, rows, c.folder / "out.npz")
    return {k: got[k].reshape(v.shape) for k, v in like.items()}


def unknown(c, model, rows):
    """What our runtime says of an operator that it does not know, "" if there is none."""
    np.savez(c.folder / "rows.npz", **rows)
    said = why_not(lambda: tool.run_qeval(c.qeval, model, c.folder / "rows.npz", c.folder / "out.npz"))
    return said if said.endswith("is unknown") else ""


def apart(c, model, rows):
    """The first layers that differ where each gets the same inputs, "" if none."""
    np.savez(c.folder / "rows.npz", **rows)
    found = c.folder / "agree.json"
    found.unlink(missing_ok=True)
    agree = tool.ROOT / "scripts/development/agree"
    done = subprocess.run([sys.executable, agree, model, "--data", c.folder / "rows.npz", "--samples", "4", "--json", found], capture_output=True,
                          text=True, check=False)
    if done.returncode not in (0, 1) or not found.exists():
        return "agree: " + " ".join(done.stderr.split())[-200:]
    return "; ".join(f"{p['op'][:40]} at {p['name']}" for p in json.loads(found.read_text()) if not p["agrees"])


class Rows:
    """Calibration samples as peer.quantize reads them."""

    def __init__(self, data, batched):
        self.data, self.batched, self.count = data, batched, len(next(iter(data.values())))

    def get(self, i):
        return {k: v[i:i + 1] if self.batched else v[i] for k, v in self.data.items()}


def parts(data, turn):
    """(samples that calibrate, samples that judge)."""
    count = len(next(iter(data.values())))
    judges = np.arange(count) // -(-count // TURNS) == TURNS - 1 - turn
    return {k: v[~judges] for k, v in data.items()}, {k: v[judges] for k, v in data.items()}


def kept_by(c, model, data, batched, make):
    """dB of each turn, as make(calibration samples, out) quantizes the model; None where one fails."""
    kept, out = [], c.folder / "turn.onnx"
    for turn in range(TURNS):
        calib, rows = parts(data, turn)
        try:
            make(calib, out)
            kept.append(sqnr(run_ort(model, rows, batched), run_exact(out, rows, batched)))
        except Exception:
            return None
    return np.array(kept)


def ours_and_theirs(c, model, data, batched):
    """What is kept with the defaults and with ONNX Runtime's quantizer, means of the turns in dB or None, and how far ours may be below theirs."""
    def ours(calib, out):
        np.savez(c.folder / "calib.npz", **calib)
        c.convert(model, out, "--data", c.folder / "calib.npz")

    def theirs(calib, out):
        samples = Rows(calib, batched)
        peer.quantize(model, out, samples, samples.count, whole=True)

    kept = [kept_by(c, model, data, batched, make) for make in (ours, theirs)]
    mean = [None if k is None else float(k.mean()) for k in kept]
    if None in mean or mean[0] >= mean[1] - CLOSE:
        return *mean, CLOSE
    moved = kept_by(c, model, data, batched, lambda calib, out: theirs(times(calib, MOVED), out))
    return *mean, CLOSE if moved is None else max(CLOSE, float(np.abs(moved - kept[1]).mean()))


def check(c, name, model, data, schemes, table):
    batched = batch_of(model)
    calib, rows = parts(data, 0)
    want = run_ort(model, rows, batched)
    moved = sqnr(want, run_ort(model, rows, batched, MOVED))
    foreign = unknown(c, model, rows)
    if not foreign:
        ours = sqnr(want, run_ours(c, model, rows, want))
        c.hold(f"{name}: float", ours > min(80, moved - 6), f"{ours:.0f} dB, ONNX Runtime with moved inputs {moved:.0f}")
    loose = why_not(lambda: onnx.checker.check_model(str(model), full_check=True))
    large, before = float_bytes(model) > LARGE, model.stat().st_size
    np.savez(c.folder / "calib.npz", **calib)
    out = c.folder / "out.onnx"
    for scheme in schemes:
        what = f"{name} {scheme}"
        more = [c.folder / m if m in FILES else m for m in SCHEMES[scheme]]
        more += ["--data", c.folder / "calib.npz"] if scheme in STATIC else []
        report = []
        failed = why_not(lambda more=more, report=report: report.append(c.convert(model, out, *more)))
        c.hold(f"{what}: converts", not failed, failed)
        if failed:
            table.append({"name": name, "scheme": scheme, "failed": failed})
            continue
        bad = "" if loose else why_not(lambda: onnx.checker.check_model(str(out), full_check=True))
        c.hold(f"{what}: checker", not bad, bad)
        bad = why_not(lambda: peer.session(out))
        c.hold(f"{what}: loads", not bad, bad)
        row = {"name": name, "scheme": scheme, "ratio": round(out.stat().st_size / before, 3)}
        table.append(row)
        none = not any(layer["scheme"] != "float" for layer in report[0]["layers"])
        most = before + (MADE_BY if none else 0)
        c.hold(f"{what}: size", not large or out.stat().st_size <= most, f"{row['ratio']:.3f} of the float file")
        if bad:
            row["failed"] = bad
            continue
        deployed = run_ort(out, rows, batched)
        row["kept"] = sqnr(want, deployed)
        c.hold(f"{what}: finite", row["kept"] > -200, "")
        if foreign:
            continue
        bad = why_not(lambda: row.update(ours=run_ours(c, out, rows, deployed)))
        c.hold(f"{what}: runs in ours", not bad, bad)
        if bad:
            row["failed"] = bad
            continue
        row["same"] = sqnr(deployed, row.pop("ours"))
        apart_by = {"dynamic": 10, "fp16": -6, "bf16": -6}.get(scheme, 20)
        enough = min(row["kept"] + apart_by, UNLIKE if scheme in ("fp16", "bf16") else 60, moved - 6)
        if row["same"] <= enough:  # integers that a last bit moves by one may move others behind them
            shifted = sqnr(deployed, run_ort(out, rows, batched, MOVED))
            if scheme == "dynamic":
                shifted = min(shifted, sqnr(deployed, run_ort(out, rows, batched, optimize=False)))
            enough = min(enough, shifted - 6)
        bad = "" if row["same"] > enough or scheme not in STATIC else apart(c, out, rows)
        good = row["same"] > enough or (scheme in STATIC and not bad)
        c.hold(f"{what}: the same in both", good, f"{row['same']:.1f} dB, {row['kept']:.1f} to float, {enough:.1f} needed {bad}")
        if scheme == "static" and row["kept"] < 20:
            row["turns"], row["theirs"], row["below"] = ours_and_theirs(c, model, data, batched)
            enough = None not in (row["turns"], row["theirs"]) and row["turns"] >= row["theirs"] - row["below"]
            c.hold(f"{what}: keeps enough", enough, f"{row['turns']} dB, theirs {row['theirs']}, may be {row['below']:.1f} below")


def networks(args, folder):
    """(name, model, samples) of each."""
    if args.models:
        for model in sorted(args.models.glob("*.onnx")):
            if fnmatch(model.stem, args.only):
                with np.load(model.with_suffix(".npz")) as arrays:
                    yield model.stem, model, dict(arrays)
        return
    for name, write in architectures.ALL.items():
        if fnmatch(name, args.only):
            model = folder / f"{name}.onnx"
            yield name, model, write(model)


def main():
    parser = options(__doc__)
    parser.add_argument("--only", metavar="GLOB", default="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--models", type=Path)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="octet-architectures-") as folder:
        c, table = Checker(args, Path(folder)), []
        for name, text in FILES.items():
            (c.folder / name).write_text(text)
        for number, (name, model, data) in enumerate(networks(args, c.folder)):
            schemes = list(SCHEMES) if args.all or args.models else list(SCHEMES)[number % 3::3]
            bad = why_not(lambda name=name, model=model, data=data, schemes=schemes: check(c, name, model, data, schemes, table))
            c.hold(f"{name}: checked", not bad, bad)
        if args.json:
            args.json.write_text(json.dumps(table, indent=1) + "\n")
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
