#!/usr/bin/env python3
"""Judges a quantized model against ONNX Runtime: metric, output SQNR, paired intervals, integer operators.

    compare_ort.py mobilenet_v2_100_224 --ours mobilenet_v2.int8.onnx [--shared ../shared] [--json FILE]
    compare_ort.py model.onnx --data eval.csv --calib calib.csv --preprocess STEPS --metric top1 --ours ours.onnx

Rows of the table:
  float         the model in ONNX Runtime
  ort           its quantize_static as it ships (MinMax, QDQ, u8 activations, s8 weights per channel)
  ort exact     the same file and those of the other calibration methods with session.x64quantprecision=1
  ours          the model given by --ours, in ONNX Runtime ("ours exact": with x64quantprecision=1)
  ours runtime  outputs that our own runtime made of --ours (--outputs FILE.npz, or --run-ours to run qeval here)
Output SQNR is the smallest over the outputs of 10 log10(sum y^2 / sum (y - yq)^2) over the whole evaluation set.
The interval is of the metric's difference to float (and, for ours, to the bar: the worse of float and the best "ort exact"),
95 %, paired (Tango's for top1, else a bootstrap); p is McNemar's exact test. ORT rows are kept in --cache between runs.
ONNX Runtime's own u8 x s8 kernels saturate on CPUs without VNNI; on others the rows "ort" and "ort exact minmax" are equal.
--avx2 emulates such a CPU, so that every machine can judge both.
Exit 0 when ours passes (metric not significantly below the bar, SQNR not below "ort", no float Conv/Gemm), 1 when not.
"""
import argparse
import hashlib
import json
import math
import os
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))  # for pylib
from pylib import metrics, peer, tool, zoo
from pylib.samples import open_samples

METHODS = ("minmax", "entropy", "percentile")


@dataclass
class Row:
    name: str
    path: object = None             # model file, or None when the outputs come from a file
    exact: bool = False
    outputs: dict = None            # of our runtime
    failed: str = ""
    sqnr: dict = field(default_factory=dict)
    scores: dict = field(default_factory=dict)
    counts: dict = field(default_factory=dict)

    @property
    def worst_sqnr(self):
        return min((s.db for s in self.sqnr.values()), default=math.inf)

    def metric(self, name):
        return float(np.mean(self.scores[name])) if self.scores.get(name) else None


def score(metric, x, outputs, labels):
    """The metrics of one batch, per sample; the first output counts."""
    first = next(iter(outputs.values()))
    if metric == "mse":
        return {"mse": metrics.squared_error(x, first)}
    if metric == "none" or labels is None:
        return {}
    found = {"top1": metrics.top_k(first, labels, 1)}
    if first.reshape(len(first), -1).shape[1] >= 100:
        found["top5"] = metrics.top_k(first, labels, 5)
    return found


def evaluate(rows, samples, metric, limit, batch, threads):
    """Runs the rows side by side over the samples, keeping scores and sums only."""
    live = []
    for row in rows:
        try:
            sess = None if row.outputs else peer.session(row.path, row.exact, threads=threads)
            if row.path:
                row.counts = peer.node_counts(row.path, row.exact)
            live.append((row, sess))
        except Exception as error:          # a peer that cannot load its own model is a result, not our failure
            row.failed = str(error).strip().splitlines()[-1]
    reference = peer.session(rows[0].path)
    names = [o.name for o in reference.get_outputs()]
    for at, x in samples.batches(peer.fixed_batch(reference) or batch, limit):
        want = None
        count = len(next(iter(x.values()))) if isinstance(x, dict) else len(x)
        labels = None if samples.labels is None else samples.labels[at:at + count]
        for row, sess in live:
            if sess:
                got = dict(zip(names, sess.run(names, peer.feed(sess, x))))
            else:
                got = {n: row.outputs[n][at:at + count] for n in names}
            want = want or got
            for name in names:
                if got[name].dtype.kind == "f":
                    row.sqnr.setdefault(name, metrics.Sqnr()).add(want[name], got[name])
            for key, values in score(metric, x, got, labels).items():
                row.scores.setdefault(key, []).extend(values)


def quantized_by_peer(model, calib, limit, method, cache):
    """The peer's file for this model, made once. None and a reason when it fails."""
    key = hashlib.sha256(Path(model).read_bytes() + f"{calib.names}{calib.count}{limit}{method}{ort.__version__}".encode())
    out = Path(cache) / f"{Path(model).stem}.{method}.{key.hexdigest()[:12]}.onnx"
    if not out.exists():
        try:
            peer.quantize(model, out, calib, limit, method)
        except Exception as error:
            out.unlink(missing_ok=True)
            return None, str(error).strip().splitlines()[-1]
    return out, ""


def make_rows(args, model, calib):
    rows = [Row("float", model)]
    for i, method in enumerate(args.methods if calib else ()):
        path, why = quantized_by_peer(model, calib, args.calib_samples, method, args.cache)
        if i == 0:
            rows.append(Row("ort", path, failed=why))
        rows.append(Row(f"ort exact {method}", path, exact=True, failed=why))
    if args.ours:
        rows += [Row("ours", args.ours), Row("ours exact", args.ours, exact=True)]
    if args.outputs:
        with np.load(args.outputs) as arrays:
            rows.append(Row("ours runtime", outputs={n: arrays[n] for n in arrays.files}))
    return rows


def is_exact(row):
    """Whether its kernels give the same everywhere, with VNNI or without."""
    return row.name == "float" or row.name.startswith("ort exact")


def judge_as_avx2(args, rows, samples):
    """Runs the exact rows here, where it is fast, and the rest on the emulated CPU."""
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            if is_exact(row) and not row.failed:
                outputs = peer.run_all(peer.session(row.path, row.exact, threads=args.threads), samples, args.samples, args.batch)
                np.savez(Path(folder) / f"{row.name}.npz", **outputs)
        return tool.run_as_avx2("--avx2", OCT_EXACT_ROWS=folder)


def take_exact_rows(rows):
    """Under emulation: what judge_as_avx2 has left."""
    for row in rows if "OCT_EXACT_ROWS" in os.environ else ():
        path = Path(os.environ["OCT_EXACT_ROWS"]) / f"{row.name}.npz"
        if path.exists():
            with np.load(path) as arrays:
                row.outputs = {n: arrays[n] for n in arrays.files}


def run_ours(args, spec, preprocess):
    binary = tool.find("qeval", args.qeval)
    if not binary:
        sys.exit("compare_ort: qeval was not found; give --qeval")
    extra = args.qeval_arg + ([f"--samples={args.samples}", "--first"] if args.samples else [])
    with tempfile.TemporaryDirectory() as folder:
        try:
            return Row("ours runtime", outputs=tool.run_qeval(binary, args.ours, spec, Path(folder) / "out.npz", preprocess, extra))
        except tool.ToolError as error:
            return Row("ours runtime", failed=str(error))


def check_file(rows, path):
    """The ONNX checker's word on our model; its refusal fails the rows of that file."""
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except Exception as error:
        for row in rows:
            if row.path == path:
                row.failed = "ONNX checker: " + str(error).strip().splitlines()[0]


def best_exact(rows, metric):
    """The peer's best calibration: by the metric, by SQNR where there is none or it ties."""
    found = [r for r in rows if r.name.startswith("ort exact") and not r.failed]
    if not found:
        return None
    sign = -1 if metric == "mse" else 1
    return max(found, key=lambda r: (sign * (r.metric(metric) or 0), r.worst_sqnr) if metric != "none" else r.worst_sqnr)


def verdict(row, rows, metric):
    """What the issue asks of ours: (passed, reasons)."""
    reasons = []
    if row.failed:
        return False, [row.failed]
    ours_float = peer.integer_share(row.counts)[1]
    if row.path and ours_float:
        reasons.append(f"{ours_float} Conv/Gemm/MatMul stay float")
    shipped = next((r for r in rows if r.name == "ort" and not r.failed), None)
    if shipped and row.worst_sqnr < shipped.worst_sqnr:
        reasons.append(f"SQNR {row.worst_sqnr:.2f} dB is below quantize_static's {shipped.worst_sqnr:.2f}")
    if metric == "top1" and row.scores.get("top1"):
        exact = best_exact(rows, metric)
        bar = min([rows[0]] + ([exact] if exact else []), key=lambda r: r.metric("top1"))
        _, _, high = metrics.paired_interval(row.scores["top1"], bar.scores["top1"])
        if high < 0:
            reasons.append(f"top-1 is significantly below '{bar.name}' ({100 * bar.metric('top1'):.2f} %)")
    return not reasons, reasons


def describe(row, rows, metric):
    """The row as plain numbers, for JSON and for the table."""
    out = {"name": row.name}
    if row.failed:
        return out | {"failed": row.failed}
    db = row.worst_sqnr
    out |= {"metrics": {k: row.metric(k) for k in row.scores}, "sqnr_db": None if math.isinf(db) else db,
            "exact": db == math.inf, "sqnr_by_output": {n: None if math.isinf(s.db) else s.db for n, s in row.sqnr.items()}}
    if row.path:
        integer, left = peer.integer_share(row.counts)
        out |= {"integer": integer, "float": left, "nodes": row.counts, "size_bytes": Path(row.path).stat().st_size}
    if metric in row.scores and row is not rows[0]:
        out["vs_float"] = dict(zip(("diff", "low", "high"), metrics.paired_interval(row.scores[metric], rows[0].scores[metric])))
        if metric == "top1":
            out["mcnemar_p"] = metrics.mcnemar(row.scores[metric], rows[0].scores[metric])
    if row.name.startswith("ours"):
        out["passed"], out["reasons"] = verdict(row, rows, metric)
    return out


def print_table(title, found, metric):
    scale, unit = (1, "") if metric == "mse" else (100, " %")
    print(f"{title}\n{'row':<22}{'metric':>10}{'top-5':>9}{'SQNR dB':>9}  {'difference to float, 95 %':<32}{'p':>6}  int/float")
    for r in found:
        if "failed" in r:
            print(f"{r['name']:<22}failed: {r['failed'][-160:]}")
            continue
        m = r["metrics"]
        main = f"{scale * m[metric]:.2f}{unit}" if metric in m else "-"
        top5 = f"{100 * m['top5']:.2f} %" if "top5" in m else "-"
        db = "exact" if r["exact"] else f"{r['sqnr_db']:.2f}"
        gap, v = "-", r.get("vs_float")
        if v:
            gap = f"{scale * v['diff']:+.2f} [{scale * v['low']:+.2f}, {scale * v['high']:+.2f}]"
        p = f"{r['mcnemar_p']:.3f}" if "mcnemar_p" in r else "-"
        kinds = f"{r['integer']}/{r['float']}" if "integer" in r else "-"
        print(f"{r['name']:<22}{main:>10}{top5:>9}{db:>9}  {gap:<32}{p:>6}  {kinds}")
    for r in found:
        if "passed" in r:
            print(f"{r['name']}: {'PASS' if r['passed'] else 'FAIL: ' + '; '.join(r['reasons'])}")


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a name of the table (" + ", ".join(zoo.MODELS) + ") or an .onnx file")
    parser.add_argument("--shared", type=Path, default=zoo.ROOT.parent / "shared", help="folder with models/ and data/ [%(default)s]")
    parser.add_argument("--ours", type=Path, help="our converted model")
    parser.add_argument("--outputs", type=Path, help="outputs of --ours by our runtime (qeval --outputs)")
    parser.add_argument("--run-ours", action="store_true", help="make them now with qeval")
    parser.add_argument("--data"), parser.add_argument("--calib"), parser.add_argument("--labels")
    parser.add_argument("--preprocess"), parser.add_argument("--metric", choices=("top1", "mse", "none"))
    parser.add_argument("--calib-samples", type=int, default=64)
    parser.add_argument("--samples", type=int, help="evaluate only the first")
    parser.add_argument("--methods", type=lambda t: t.split(","), default=list(METHODS), help="calibrations of 'ort exact' [all]")
    parser.add_argument("--quick", action="store_true", help="only MinMax")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "octet-peers")
    parser.add_argument("--avx2", action="store_true", help="on an emulated CPU without VNNI (qemu-x86_64; tens of times slower)")
    parser.add_argument("--json", help="file, or - (then the table goes to stderr)")
    tool.add_option(parser)
    args = parser.parse_args(argv)
    args.methods = ["minmax"] if args.quick else args.methods
    return args


def settle(args):
    """Model, calibration samples, evaluation SPEC, labels, preprocessing and metric from the table or the options."""
    known = zoo.MODELS.get(args.model)
    model, calib, data, labels = known.paths(args.shared) if known else (Path(args.model), None, None, None)
    preprocess = args.preprocess if args.preprocess is not None else known.preprocess if known else ""
    calib, data, labels = args.calib or calib, args.data or data, args.labels or labels
    if not data:
        sys.exit("compare_ort: --data is needed for a model that is not in the table")
    return model, calib and open_samples(calib, preprocess), data, labels, preprocess, args.metric or (known.metric if known else "top1")


def main():
    args = parse()
    model, calib, spec, labels, preprocess, metric = settle(args)
    args.cache.mkdir(parents=True, exist_ok=True)
    samples = open_samples(spec, preprocess, labels)
    rows = make_rows(args, model, calib)
    if args.avx2:
        return judge_as_avx2(args, rows, samples)
    if args.ours:
        check_file(rows, args.ours)
    if args.run_ours and args.ours:
        rows.append(run_ours(args, spec, preprocess))
    take_exact_rows(rows)
    ready = [r for r in rows if not r.failed]
    evaluate(ready, samples, metric, args.samples, args.batch, args.threads)
    found = [describe(r, rows, metric) for r in rows]
    best = best_exact(rows, metric)
    if args.json == "-":
        sys.stdout, stdout = sys.stderr, sys.stdout
    count = min(samples.count, args.samples or samples.count)
    print_table(f"{args.model}: {count} samples, metric {metric}" + (f", best of the peer: {best.name}" if best else ""), found, metric)
    if args.json:
        text = json.dumps({"schema": 1, "model": args.model, "metric": metric, "samples": count, "ort": ort.__version__,
                           "best_exact": best.name if best else None, "rows": found}, indent=1) + "\n"
        stdout.write(text) if args.json == "-" else Path(args.json).write_text(text)
    return 0 if all(r.get("passed") for r in found if r["name"] in ("ours", "ours runtime")) else 1


if __name__ == "__main__":
    sys.exit(main())
