#!/usr/bin/env python3
"""Converts the models of the zoo, judges each beside ONNX Runtime, and writes the numbers down.

    accuracy.py [--models 'mobilenet*'] [--samples 1,8,64] [--rows ours,float] [--again] [--shared ../shared]
    accuracy.py --cost [--models GLOB]      seconds and memory of conversions instead
    accuracy.py --page                      only docs/methods.md anew

The models are those of pylib/zoo.py, with the metric that each is for (pylib/tasks.py). Converters get --samples N of the calibration
data, the same for all, spread over it as qconvert spreads them; it keeps a fifth of the data aside where the others use all.
Evaluation samples are others: where the data has no second set, the first half is for calibration and the other to judge.
tests/accuracy/results.csv has a line per model, number of samples and row:
  float              the model in ONNX Runtime
  ort                its quantize_static as it ships (MinMax, QDQ, u8 activations, s8 weights per channel), on CPUs without VNNI alone:
                     elsewhere nothing saturates, and the line that is there stays
  ort exact METHOD   the same with each calibration method, in kernels that do not saturate (session.x64quantprecision=1)
  ort exact dynamic  its quantize_dynamic, for transformers and recurrent networks
  ours               qconvert with its defaults, in ONNX Runtime
  ours runtime       the same file in our runtime
  ours without NAME  the same without one of the methods of qconvert --list-methods, in ONNX Runtime: what the method gains
  nncf ...           as recorded in PEERS.md of the shared folder: not measured here
value is the metric; diff is its difference to float with the paired 95 % interval low..high; sqnr_db is the smallest over the outputs of
10 log10(sum y^2 / sum (y - yq)^2) over all evaluation samples, as qeval has it. `made` is a digest of what was judged (for the peer: of the
model, samples, settings and version), so a line whose `made`, `by` and `cpu` are the same is kept: a run that was stopped goes on where
it was, and one after a change judges what the change has altered. --again judges all. One thread, at low priority.
tests/accuracy/cost.csv has seconds, peak memory and size of both conversions, on this machine with its threads; docs/methods.md the
tables, made from both files and from half.csv (check_half.py).
"""
import argparse
import datetime
import fnmatch
import functools
import hashlib
import os
import re
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")      # read when numpy is loaded

import numpy as np
import onnx
import onnxruntime as ort

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))  # for pylib
from pylib import cost, metrics, peer, tasks, tool, zoo
from pylib.methods_page import MODELS, WITHOUT, read, write, write_page
from pylib.samples import open_samples, spread

RESULT = ("model", "calib", "row", "samples", "metric", "value", "top5", "diff", "low", "high", "sqnr_db", "integer", "float", "failed",
          "made", "by", "cpu")
COST = ("model", "tool", "calib_samples", "seconds", "peak_mb", "size_before", "size_after", "cpu", "date")
PEER = f"onnxruntime {ort.__version__}"
STATIC = ("minmax", "entropy", "percentile")
DYNAMIC = {"LSTM", "GRU", "RNN", "LayerNormalization"}      # networks that users quantize dynamically


def number(v, form):
    return "" if v is None else format(v, form)


# ---- judging ----

def uses_operators(graph, types):
    return any(node.op_type in types or any(uses_operators(a.g, types) for a in node.attribute if a.HasField("g")) for node in graph.node)


def file_digest(path):
    """Without metadata, which names the options: methods that changed nothing leave the same model."""
    model = onnx.load(path)
    del model.metadata_props[:]
    return hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest()[:12]


class Judge:
    """One model with its data, and the lines of it."""

    def __init__(self, args, m, folder):
        self.args, self.m, self.folder, self.task = args, m, Path(folder), tasks.TASKS[m.metric]
        self.whole = m.name in zoo.WHOLE
        self.model, calib, data, labels = m.paths(args.shared)
        if not self.model.exists() and args.made:
            self.model = args.made / self.model.name
        self.calib, self.data = self.prepared(calib, data)
        self.samples = open_samples(self.data, m.preprocess, labels)
        self.truth = m.truth(args.shared, self.samples)
        self.found = {}         # what was judged already, by digest

    @functools.cached_property
    def want(self):
        return peer.run_all(peer.session(self.model), self.samples, whole=self.whole)

    @functools.cached_property
    def float_score(self):
        return self.score(self.want)

    def prepared(self, calib, data):
        """Where .npz files have more than the inputs, or both are one file: files of the inputs alone, halved; and without positions
        that all samples mask."""
        if calib.suffix != ".npz":
            return calib, data
        names = [i.name for i in peer.session(self.model).get_inputs()]
        paths = []
        for part, spec in (("calib", calib), ("eval", data)):
            with np.load(spec) as arrays:
                kept = {n: arrays[n] for n in names}
            count = max(len(a) for a in kept.values() if a.ndim)
            if calib == data:
                half = slice(0, count // 2) if part == "calib" else slice(count // 2, None)
                kept = {n: a[half] if a.ndim and len(a) == count else a for n, a in kept.items()}
            if "attention_mask" in kept:
                length = int(kept["attention_mask"].any(0).nonzero()[0].max()) + 1
                kept = {n: a[:, :length] for n, a in kept.items()}
            paths.append(self.folder / f"{part}.npz")
            np.savez(paths[-1], **kept)
        return paths

    def run(self, path, exact):
        return self.want if path == self.model else peer.run_all(peer.session(path, exact), self.samples, whole=self.whole)

    def score(self, outputs):
        return self.task(outputs, self.samples, self.truth, self.want)

    def line(self, row, calib, **more):
        return dict.fromkeys(RESULT, "") | {"model": self.m.name, "calib": calib, "row": row, "samples": self.samples.count,
                                            "metric": self.m.metric, "cpu": self.args.cpu} | more

    def is_known(self, line):
        """Whether the file of results has this already."""
        same = ("model", "row", "made", "by", "cpu")
        return not self.args.again and any(str(r["calib"]) == str(line["calib"]) and all(r[k] == line[k] for k in same)
                                           for r in read("results.csv"))

    def judged(self, line, path, exact=False, outputs=None):
        """The line with what was measured. outputs: of our runtime, made when called."""
        key = (line["made"], exact, outputs is not None)
        if key not in self.found:
            try:
                self.found[key] = self.measured(path, exact, outputs)
            except Exception as error:      # a peer that cannot run its own model is a result
                self.found[key] = {"failed": " ".join(str(error).split())[-160:]}
        return line | self.found[key]

    def measured(self, path, exact, outputs):
        got = outputs() if outputs else self.run(path, exact)
        noise = {n: metrics.Sqnr() for n, w in self.want.items() if w.dtype.kind == "f"}
        for n, s in noise.items():
            s.add(self.want[n], got[n])
        worst = min(s.db for s in noise.values())
        score = self.float_score if path == self.model else self.score(got)
        line = {"value": number(score.value(), ".6g"), "sqnr_db": "exact" if worst == np.inf else number(worst, ".2f")}
        if self.m.metric == "top1" and next(iter(got.values())).reshape(score.count, -1).shape[1] >= 100:
            line["top5"] = number(float(metrics.top_k(next(iter(got.values())), self.truth, 5).mean()), ".6g")
        if path != self.model:
            line |= {k: number(v, ".6g") for k, v in zip(("diff", "low", "high"), tasks.difference(score, self.float_score))}
        if not outputs:
            integer, left = peer.integer_share(peer.node_counts(path, exact))
            line |= {"integer": number(integer, "d"), "float": number(left, "d")}
        return line

    # ---- rows: generators of (line, what measures it)

    def float_rows(self, calib):
        line = self.line("float", calib, made=file_digest(self.model), by=PEER)
        yield line, lambda: self.judged(line, self.model)

    def peer_rows(self, calib):
        methods = STATIC + (("dynamic",) if uses_operators(onnx.load(self.model).graph, DYNAMIC) else ())
        for row, method, exact in (*([] if self.args.has_vnni else [("ort", "minmax", False)]), *((f"ort exact {m}", m, True) for m in methods)):
            text = f"{self.calib.name}{calib}{method}{ort.__version__}"
            key = hashlib.sha256(self.model.read_bytes() + text.encode()).hexdigest()[:12]
            line = self.line(row, calib, made=key, by=PEER)
            yield line, lambda line=line, method=method, exact=exact: self.judge_peer(line, method, exact)

    def judge_peer(self, line, method, exact):
        out = self.folder / f"{line['made']}.onnx"
        try:
            if not out.exists():
                samples = open_samples(self.calib, self.m.preprocess)
                samples = samples.chosen(spread(samples.count, line["calib"]))
                with peer.one_thread():
                    peer.quantize(self.model, out, samples, samples.count, method, self.whole)
        except Exception as error:
            return line | {"failed": " ".join(str(error).split())[-160:]}
        return self.judged(line, out, exact)

    def our_rows(self, calib):
        for name in ("", *self.args.methods):
            row = WITHOUT + name if name else "ours"
            if not self.args.wants(row) and (name or not self.args.wants("ours runtime")):
                continue
            out = self.folder / f"{row}.{calib}.onnx"
            command = [self.args.qconvert, self.model, "-o", out, "--data", self.calib, "--samples", calib, "--threads", 1, "-q",
                       *(["--preprocess", self.m.preprocess] if self.m.preprocess else []), *(["--no-method", name] if name else [])]
            try:
                tool.run(command)
            except tool.ToolError as error:
                line = self.line(row, calib, made="", by=self.args.version, failed=str(error)[-160:])
                yield line, lambda line=line: line
                continue
            line = self.line(row, calib, made=file_digest(out), by=self.args.version)
            yield line, lambda line=line, out=out: self.judged(line, out)
            if not name:
                line = self.line("ours runtime", calib, made=file_digest(out), by=self.args.version)
                yield line, lambda line=line, out=out: self.judged(line, out, outputs=lambda: tool.run_qeval(
                    self.args.qeval, out, self.data, self.folder / "out.npz", self.m.preprocess, ["--threads", "1"]))

    def recorded_rows(self, calib):
        """NNCF's, of the table of PEERS.md, whose calibration is of 64 samples."""
        path = self.args.shared / "PEERS.md"
        if calib != 64 or not path.exists():
            return
        text = path.read_text()
        table = [[c.strip() for c in row.strip("| \n").split("|")] for row in text.splitlines() if row.startswith("| ")]
        head = next(r for r in table if r[0] == "model" and any(c.startswith("NNCF") for c in r))
        column = next(i for i, c in enumerate(head) if c.startswith("NNCF"))
        cells = next((r[column] for r in table if len(r) == len(head) and self.m.name.startswith(r[0].split()[0].lower())), "")
        by = "recorded: nncf " + re.search(r"nncf ([\d.]+)", text).group(1)
        percent = self.m.metric in ("top1", "ap50")
        for row, cell in zip(("nncf openvino", "nncf ort exact"), filter(None, cells.split(", "))):
            line = self.line(row, calib, value=number(float(cell) / (100 if percent else 1), ".6g"), by=by, cpu="")
            yield line, lambda line=line: line

    def rows(self):
        for calib in self.args.samples:
            for part in (self.float_rows, self.our_rows, self.peer_rows, self.recorded_rows):
                yield from ((line, measure) for line, measure in part(calib) if self.args.wants(line["row"]))


def judge(args, m):
    """Writes each line when it is there."""
    with tempfile.TemporaryDirectory() as folder:
        j = Judge(args, m, folder)
        for line, measure in j.rows():
            if line["made"] and j.is_known(line):
                continue
            done = measure()
            write("results.csv", RESULT, read("results.csv") + [{k: str(v) for k, v in done.items()}], ("model", "calib", "row"))
            print(f"{m.name:<22}{done['calib']:>4} {done['row']:<32}{done['value']:>10} {done['diff']:>11} "
                  f"[{done['low']}, {done['high']}] {done['sqnr_db']:>8} dB {done['failed']}", flush=True)


# ---- cost ----

def measured(command, may_fail=False):
    """As cost.measured; a failure stops this script, or gives None where it may fail."""
    try:
        return cost.measured(command)
    except cost.CommandError as fault:
        return None if may_fail else sys.exit(f"accuracy: {fault}")


def cost_line(name, who, samples, spent, model, out):
    line = {"model": name, "tool": who, "calib_samples": samples, "cpu": cost.cpu_name(), "date": datetime.date.today().isoformat()}
    if not spent:       # a peer that fails at a model is a result
        return dict.fromkeys(COST, "") | line
    return line | {"seconds": f"{spent[0]:.2f}", "peak_mb": f"{spent[1]:.0f}",
                   "size_before": Path(model).stat().st_size, "size_after": Path(out).stat().st_size}


def convert(args, m, out):
    model, calib, _, _ = m.paths(args.shared)
    command = [args.qconvert, str(model), "-o", str(out), "--data", str(calib), "--samples", str(m.calib_samples)]
    if m.preprocess:
        command += ["--preprocess", m.preprocess]
    return cost_line(m.name, "qconvert", m.calib_samples, measured(command), model, out)


def convert_as_peer(args, m, out):
    """In a process of its own, as its memory is measured: quantize_static with MinMax, as it ships."""
    model, calib, _, _ = m.paths(args.shared)
    code = ("import sys; from pylib import peer; from pylib.samples import open_samples; "
            "peer.quantize(sys.argv[1], sys.argv[2], open_samples(sys.argv[3], sys.argv[4]), int(sys.argv[5]), 'minmax')")
    command = [sys.executable, "-c", code, str(model), str(out), str(calib), m.preprocess, str(m.calib_samples)]
    os.environ["PYTHONPATH"] = str(zoo.ROOT / "tests")
    return cost_line(m.name, "quantize_static", m.calib_samples, measured(command, may_fail=True), model, out)


def write_cost(args, m):
    with tempfile.TemporaryDirectory() as folder:
        lines = [convert(args, m, Path(folder) / "ours.onnx"), convert_as_peer(args, m, Path(folder) / "peer.onnx")]
    write("cost.csv", COST, read("cost.csv") + lines, ("model", "tool"))


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", default="*", metavar="GLOB", help="which, joined by commas [all]")
    p.add_argument("--samples", type=lambda t: [int(v) for v in t.split(",")], default=[64], metavar="N,...", help="calibration samples [64]")
    p.add_argument("--rows", default="*", metavar="GLOB", help="which, joined by commas [all]")
    p.add_argument("--again", action="store_true", help="also what is known")
    p.add_argument("--shared", type=Path, default=zoo.ROOT.parent / "shared", help="folder with models/ and data/ [%(default)s]")
    p.add_argument("--made", type=Path, metavar="FOLDER", help="where models are that a script of models/ writes")
    p.add_argument("--qconvert", help="our qconvert [$OCT_BUILD or build/, then PATH]")
    p.add_argument("--qeval", help="our qeval, likewise")
    p.add_argument("--cost", action="store_true", help="measure cost.csv instead")
    p.add_argument("--page", action="store_true", help="only write docs/methods.md anew")
    args = p.parse_args()
    if args.page:
        return args
    args.qconvert, args.qeval = tool.find("qconvert", args.qconvert), tool.find("qeval", args.qeval)
    if not args.qconvert or not args.qeval:
        sys.exit("accuracy: qconvert or qeval was not found; build first")
    wants = args.rows.split(",")
    args.wants = lambda row: any(fnmatch.fnmatch(row, glob) for glob in wants)
    args.names = [n for n in MODELS if any(fnmatch.fnmatch(n, glob) for glob in args.models.split(","))]
    if not args.names:
        sys.exit(f"accuracy: there is no model '{args.models}'")
    args.methods = [line.split()[0] for line in tool.run([args.qconvert, "--list-methods"]).splitlines()[2:]]
    args.version = "octet " + tool.run([args.qconvert, "--version"]).split()[1]
    args.cpu = cost.cpu_name()
    args.has_vnni = bool({"avx512_vnni", "avx_vnni"} & set(cost.cpu_features()))
    return args


def main():
    args = parse()
    if not args.page:
        if not args.cost:
            os.nice(10)
        for name in args.names:
            model = MODELS[name].paths(args.shared)[0]
            if model.exists() or (args.made and (args.made / model.name).exists()):
                (write_cost if args.cost else judge)(args, MODELS[name])
            else:
                print(f"accuracy: {model} is not there: {name} is left out", file=sys.stderr)
    write_page()
    return 0


if __name__ == "__main__":
    sys.exit(main())
