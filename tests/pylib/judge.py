"""What the checks of converted models share: what must hold, counted; running qconvert and both runtimes; comparing outputs."""
import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
import onnx

from pylib import metrics, peer, tool

RELATIVE = 1e-4  # of the range of an output of floats
HALF = 2e-3      # of one of 16-bit floats


def options(doc):
    """Parser of the options that all of them take."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--qconvert", default=tool.find("qconvert"))
    parser.add_argument("--qeval", default=tool.find("qeval"))
    parser.add_argument("-v", "--verbose", action="store_true")
    return parser


class Checker:
    """Counts what holds; has a folder that exists inside `with`."""

    def __init__(self, args):
        self.failed, self.cases = 0, 0
        self.qconvert, self.qeval = (Path(p).resolve() if p else p for p in (args.qconvert, args.qeval))  # checks run them in other folders
        self.verbose = args.verbose

    def __enter__(self):
        self._made = tempfile.TemporaryDirectory(prefix="octet-")
        self.folder = Path(self._made.name)
        return self

    def __exit__(self, *how):
        self._made.cleanup()

    def hold(self, what, condition, detail=""):
        self.cases += 1
        self.failed += not condition
        if not condition or self.verbose:
            print(f"{'ok' if condition else 'FAILED'}  {what} {detail}")

    def finish(self):
        """Says how many hold; the exit code."""
        print(f"{self.cases - self.failed} of {self.cases} hold")
        return 1 if self.failed or not self.cases else 0

    def convert(self, model, out, *more):
        """The report, as JSON."""
        report = self.folder / "report.json"
        tool.run([self.qconvert, model, "-o", out, "-q", "--json", report, *more])
        return json.loads(report.read_text())

    def run_ours(self, model, samples):
        """[array] of the outputs, each of all samples one after the other."""
        data = self.folder / "samples.npy"
        np.save(data, np.stack(samples))
        got = tool.run_qeval(self.qeval, model, data, self.folder / "out.npz")
        return [got[o.name] for o in onnx.load(model).graph.output]


def run_ort(model, samples, **how):
    """[array] of the outputs in ONNX Runtime, stacked over the samples: an array or {name: array} each, as the model takes them."""
    session = peer.session(model, **how)
    runs = [session.run(None, peer.feed(session, x)) for x in samples]
    return [np.stack(part) for part in zip(*runs, strict=True)]


def sqnr(want, got):
    """dB, the smallest over the outputs, both lists or {name: array}; 200 when all are equal, -200 where one is not finite."""
    worst = 200.0
    for w, g in ((w, got[n]) for n, w in want.items()) if isinstance(want, dict) else zip(want, got, strict=True):
        one = metrics.Sqnr()
        one.add(w, g.reshape(w.shape))
        worst = min(worst, one.db)
    return max(worst, -200.0)


def relative_error(want, got):
    """The largest difference, as a part of the range of what is wanted; NaN where one is not finite."""
    want, got = want.astype(np.float64), got.astype(np.float64)
    return float(np.abs(want - got).max()) / (float(want.max() - want.min()) or 1.0)


def faults(want, got):
    """Sentences about the outputs that are not as wanted: floats within RELATIVE, integers at most 1 apart."""
    for name, w in want.items():
        g = got.get(name)
        if g is None or g.shape != w.shape or g.dtype != w.dtype:
            yield f"'{name}' is {'missing' if g is None else f'{g.dtype}{list(g.shape)}'}, expected {w.dtype}{list(w.shape)}"
        elif w.dtype.kind == "f" and w.size:
            if not (error := relative_error(w, g)) <= (HALF if w.dtype == np.float16 else RELATIVE):
                yield f"'{name}' is {error:.1e} of its range off"
        elif w.size and np.abs(w.astype(np.int64) - g.astype(np.int64)).max() > 1:
            yield f"'{name}' differs by more than 1"


def stored_case(path):
    """(inputs, outputs) by name, from NAME.npz beside a model of testdata/models; None without it."""
    if not path.with_suffix(".npz").exists():
        return None
    with np.load(path.with_suffix(".npz")) as arrays:
        return tuple({k[len(part):]: arrays[k] for k in arrays.files if k.startswith(part)} for part in ("in/", "out/"))
