#!/usr/bin/env python3
"""Converts small networks of many architectures in every scheme that applies, and judges them with ONNX Runtime.

    check_architectures.py [--only GLOB] [--all] [--models FOLDER | --shared FOLDER] [--lines FILE] [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Networks: those of pylib/architectures.py, each in a third of the schemes; --all: in all; --models: NAME.onnx with its samples
NAME.npz in a folder instead (scripts/development/export_architectures.py fills one); --shared: the trained models of that folder with their data.

--lines: each network and scheme that is judged becomes a line of JSON at the end of FILE. What has a line of the same programs there, in which all holds, is not
done again: a run that was stopped goes on. What failed is tried again. scripts/development/architecture_page.py makes a page of such files.

Our float outputs must be those of ONNX Runtime. What is written must pass the ONNX checker where the model does, load in ONNX Runtime, stay
finite and be no larger than the float file where float weights exceed 64 kB.

Our runtime and ONNX Runtime's exact kernels must agree: their distance must be 20 dB (dynamic: 10) below that of the converted model to the float
one, or no more than ONNX Runtime's own outputs move by one of the moves of inputs of pylib/chaos.py, and dynamic ones when its optimizer is switched off.
In 16 bits, where runtimes round at different places, 40 dB do, or twice the distance to the float model. Where static and 16-bit ones do not agree so, since
a value that a last bit of float parts moves by one moves others behind it, scripts/development/agree must find no layer that differs.

Static 8 bits must keep 20 dB, or as much as ONNX Runtime's quantize_static does. What of so little is kept is chance to a large part: in deep networks of
random weights a last bit moves codes, and each layer behind moves more of them. So both quantize in eight turns, in each of which another eighth of the samples judges
and the others calibrate, and ours keeps less where the mean difference is below 0 by more than its 95 % interval (Student's t of the eight differences)
and by more than half a dB. A mean of 20 dB over the turns is enough, too: then chance made the first samples keep less. Networks with operators that our runtime does not know are judged by ONNX Runtime alone.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import hashlib
import json
import subprocess
import sys
import time
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx

from pylib import architectures, chaos, peer, tool, zoo
from pylib.chaos import run_exact, run_ort
from pylib.judge import Checker, options, sqnr
from pylib.samples import open_samples

LEAST = 20.0      # dB of static 8 bits
CLOSE = 0.5       # dB: as much as ONNX Runtime's quantizer
SHARED = 24       # samples of a trained model
PARTS = 3         # a third of the samples judges, the others calibrate
TURNS, T_95 = 8, 2.365  # of a comparison with ONNX Runtime's quantizer; Student's t of 7 degrees of freedom
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
HALVES = ("fp16", "bf16")
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
    done = subprocess.run([sys.executable, agree, model, "--exact", "--qeval", c.qeval, "--data", c.folder / "rows.npz", "--samples", "4", "--json", found], capture_output=True,
                          text=True, check=False)
    if done.returncode not in (0, 1) or not found.exists():
        return "agree: " + " ".join(done.stderr.split())[-200:]
    return "; ".join(f"{p['op'][:40]} at {p['name']}" for p in json.loads(found.read_text()) if not p["agrees"])


class Rows:
    """Calibration samples as peer.quantize reads them."""

    def __init__(self, model, data):
        self.data, self.count, self.session = data, len(next(iter(data.values()))), peer.session(model)

    def get(self, i):
        return chaos.in_a_run(self.session, self.data, i)


def parts(data, turn, turns=PARTS):
    """(samples that calibrate, samples that judge)."""
    count = len(next(iter(data.values())))
    judges = np.arange(count) * turns // count == turns - 1 - turn
    return {k: v[~judges] for k, v in data.items()}, {k: v[judges] for k, v in data.items()}


def kept_by(c, model, data, make):
    """dB of each turn, as make(calibration samples, out) quantizes the model; None where one fails."""
    kept, out = [], c.folder / "turn.onnx"
    for turn in range(TURNS):
        calib, rows = parts(data, turn, TURNS)
        try:
            make(calib, out)
            kept.append(sqnr(run_ort(model, rows), run_exact(out, rows)))
        except Exception:
            return None
    return np.array(kept)


def ours_and_theirs(c, model, data):
    """What is kept in each turn with the defaults and with ONNX Runtime's quantizer, in dB; None where one of them fails."""
    def ours(calib, out):
        np.savez(c.folder / "calib.npz", **calib)
        c.convert(model, out, "--data", c.folder / "calib.npz")

    def theirs(calib, out):
        samples = Rows(model, calib)
        peer.quantize(model, out, samples, samples.count, whole=True)

    return [kept_by(c, model, data, make) for make in (ours, theirs)]


class Line:
    """What is found of a network in a scheme: kept in the file as soon as it is known."""

    def __init__(self, c, name, scheme):
        self.c, self.what, self.row, self.bad = c, f"{name} {scheme}", {"name": name, "scheme": scheme}, []

    def hold(self, what, condition, detail=""):
        self.c.hold(f"{self.what}: {what}", condition, detail)
        if not condition:
            self.bad.append(f"{what} {detail}".strip())
        return condition


class Network:
    """A float model with samples, and what both runtimes make of them."""

    def __init__(self, c, name, model, data):
        self.c, self.name, self.model, self.data = c, name, model, data
        self.calib, self.rows = parts(data, 0)
        np.savez(c.folder / "calib.npz", **self.calib)
        self.want = run_ort(model, self.rows)
        self.foreign = unknown(c, model, self.rows)
        self.loose = why_not(lambda: onnx.checker.check_model(str(model), full_check=True))
        self.large, self.bytes = float_bytes(model) > LARGE, model.stat().st_size

    def float_line(self):
        line = Line(self.c, self.name, "float")
        line.row |= {"bytes": self.bytes, "weights": float_bytes(self.model)}
        if self.foreign:
            line.row["foreign"] = self.foreign
            return line
        same = line.row["same"] = sqnr(self.want, run_ours(self.c, self.model, self.rows, self.want))
        moved = 0 if same >= 80 else chaos.moved(self.model, self.rows, self.want, same)
        line.row["agrees"] = "nearly equal" if same >= 80 else "moves"
        line.hold("the same in both", same >= 80 or same >= moved, f"{same:.0f} dB, ONNX Runtime with moved inputs {moved:.0f}")
        return line

    def line(self, scheme):
        """Converts and judges it in a scheme."""
        c, line, out = self.c, Line(self.c, self.name, scheme), self.c.folder / "out.onnx"
        more = [c.folder / m if m in FILES else m for m in SCHEMES[scheme]]
        more += ["--data", c.folder / "calib.npz"] if scheme in STATIC else []
        report = []
        failed = why_not(lambda: report.append(c.convert(self.model, out, *more)))
        if not line.hold("converts", not failed, failed):
            return line
        self._judge_file(line, out, report[0]["layers"])
        bad = why_not(lambda: peer.session(out))
        if not line.hold("loads", not bad, bad):
            return line
        deployed = run_ort(out, self.rows)
        line.row["kept"] = sqnr(self.want, deployed)
        line.hold("finite", line.row["kept"] > -200)
        if not self.foreign:
            self._judge_agreement(line, out, deployed)
        if scheme == "static" and line.row["kept"] < LEAST:
            self._judge_loss(line)
        return line

    def _judge_file(self, line, out, layers):
        bad = "" if self.loose else why_not(lambda: onnx.checker.check_model(str(out), full_check=True))
        line.hold("checker", not bad, bad)
        converted = sum(layer["scheme"] != "float" for layer in layers)
        size = out.stat().st_size
        line.row |= {"ratio": round(size / self.bytes, 3), "layers": len(layers), "converted": converted}
        line.hold("size", not self.large or size <= self.bytes, f"{line.row['ratio']:.3f} of the float file")

    def _judge_agreement(self, line, out, deployed):
        scheme, found = line.row["scheme"], []
        bad = why_not(lambda: found.append(run_ours(self.c, out, self.rows, deployed)))
        if not line.hold("runs in ours", not bad, bad):
            return
        same = line.row["same"] = sqnr(deployed, found[0])
        far = {"dynamic": 10, "fp16": -6, "bf16": -6}.get(scheme, 20)
        enough = min(line.row["kept"] + far, UNLIKE if scheme in HALVES else 60)
        line.row["agrees"], moved, layers = "nearly equal", enough, ""
        if same < enough:
            line.row["agrees"], moved = "moves", chaos.moved(out, self.rows, deployed, same)
            if scheme == "dynamic" and same < moved:
                moved = min(moved, sqnr(deployed, run_ort(out, self.rows, optimize=False)))
        if same < moved and (scheme in STATIC or scheme in HALVES):
            line.row["agrees"], layers = "layers", apart(self.c, out, self.rows)
            moved = moved if layers else same
        line.hold("the same in both", same >= moved, f"{same:.1f} dB, {line.row['kept']:.1f} to float, {enough:.1f} needed, {moved:.1f} when moved {layers}")

    def _judge_loss(self, line):
        ours, theirs = ours_and_theirs(self.c, self.model, self.data)
        if not line.hold("quantizes in all turns", ours is not None) or theirs is None:
            return
        more = ours - theirs
        by, within = float(more.mean()), float(T_95 * more.std(ddof=1) / TURNS ** 0.5)
        line.row |= {"turns": float(ours.mean()), "theirs": float(theirs.mean()), "within": within}
        line.hold("keeps enough", ours.mean() >= LEAST or by >= -max(CLOSE, within), f"{ours.mean():.2f} dB, theirs {theirs.mean():.2f}: {by:+.2f} within {within:.2f}")


class Lines:
    """The file of lines, and what is known from an earlier run of the same programs."""

    def __init__(self, path, programs):
        self.path, self.good = path, set()
        self.programs = hashlib.sha256(b"".join(Path(p).read_bytes() for p in programs)).hexdigest()[:16]
        if path and path.exists():
            rows = [json.loads(text) for text in path.read_text().splitlines()]
            self.good = {(r["name"], r["scheme"]) for r in rows if not r["failed"] and r["programs"] == self.programs}

    def add(self, row):
        if self.path:
            with self.path.open("a") as file:
                file.write(json.dumps(row | {"programs": self.programs}) + "\n")


def check(c, name, open_it, schemes, lines):
    """open_it() gives the model and its samples."""
    left = [s for s in ("float", *schemes) if (name, s) not in lines.good]
    if not left:
        return
    network = Network(c, name, *open_it())
    for scheme in left:
        line, start = None, time.monotonic()
        try:
            line = network.float_line() if scheme == "float" else network.line(scheme)
        except Exception as error:
            line = Line(c, name, scheme)
            line.hold("judged", False, " ".join(f"{type(error).__name__}: {error}".split())[:250])
        lines.add(line.row | {"seconds": round(time.monotonic() - start, 1), "failed": line.bad})


def shared_samples(known, shared):
    """The samples that calibrate a trained model, as many as the others have."""
    spec = known.paths(shared)[1]
    samples = open_samples(str(spec), known.preprocess)
    rows = [samples.get(int(i)) for i in np.linspace(0, samples.count - 1, min(samples.count, SHARED)).astype(int)]
    rows = rows if isinstance(rows[0], dict) else [{"": r} for r in rows]
    inputs = {i.name: i for i in peer.session(known.paths(shared)[0]).get_inputs()}
    return {k or next(iter(inputs)): np.stack([r[k] for r in rows]) for k in rows[0] if not k or k in inputs}


def stored(model):
    with np.load(model.with_suffix(".npz")) as arrays:
        return dict(arrays)


def networks(args, folder):
    """(name, function that gives the model and its samples) of each."""
    if args.models:
        for model in sorted(args.models.glob("*.onnx")):
            yield model.stem, lambda model=model: (model, stored(model))
    elif args.shared:
        for name, known in (zoo.MODELS | zoo.WHOLE | zoo.MADE).items():
            if name != "demo" and known.paths(args.shared)[0].exists():
                yield name, lambda known=known: (known.paths(args.shared)[0], shared_samples(known, args.shared))
    else:
        for name, write in architectures.ALL.items():
            model = folder / f"{name}.onnx"
            yield name, lambda model=model, write=write: (model, write(model))


def main():
    parser = options(__doc__)
    parser.add_argument("--only", metavar="GLOB", default="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--models", type=Path)
    parser.add_argument("--shared", type=Path)
    parser.add_argument("--lines", type=Path)
    args = parser.parse_args()
    with Checker(args) as c:
        lines = Lines(args.lines, (args.qconvert, args.qeval))
        for name, text in FILES.items():
            (c.folder / name).write_text(text)
        for number, (name, open_it) in enumerate(networks(args, c.folder)):
            if not fnmatch(name, args.only):
                continue
            schemes = list(SCHEMES) if args.all or args.models or args.shared else list(SCHEMES)[number % 3::3]
            bad = why_not(lambda name=name, open_it=open_it, schemes=schemes: check(c, name, open_it, schemes, lines))
            c.hold(f"{name}: checked", not bad, bad)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
