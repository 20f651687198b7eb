#!/usr/bin/env python3
"""Asks qconvert to convert each model of the zoo to a goal, and writes down what it took.

    goals.py [--models 'mobilenet*'] [--again] [--trials N] [--shared ../shared] [--work FOLDER]

The goal is --max-drop 0.5% of the model's own metric (0.5r% of the MSE), on the samples that the 64 for calibration leave. Metrics that
qconvert has not are given to it by --metric-cmd: this script with --score. Where these are of a whole set (AP, F1, rank correlation), it prints
the jackknife's pseudo-value of each sample, moved so that their mean is the metric: so differences have an interval.
tests/accuracy/goals.csv has a line a model: the metric before and after, with the drop and its paired 95 % interval, the layers with weights
that the goal left float (and all that are float), their share of the multiply-accumulates, and, where the limit lies in the interval, how
many samples would decide. A line is kept while version and options stay the same, so that a run that was stopped goes on. Low priority.
"""
import argparse
import csv
import fnmatch
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")      # read when numpy is loaded

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))  # for pylib
from pylib import peer, samples, tasks, tool, zoo
from pylib.methods_page import MODELS, read, write

RESULT = ("model", "metric", "limit", "samples", "before", "after", "drop", "low", "high", "met", "enough_samples", "trials", "layers",
          "promoted", "float", "promoted_macs", "judge", "by")
BUILT_IN = {"top1", "mse"}
CALIBRATION = 64


# ---- samples: for calibration and the rest for judging, together ----

def joined_folder(folder, parts):
    folder.mkdir(parents=True, exist_ok=True)
    for part in parts:
        for picture in sorted(Path(part).iterdir()):
            if picture.suffix.lower() in samples.PICTURES and not (folder / picture.name).exists():
                (folder / picture.name).symlink_to(picture.resolve())
    return folder


def joined_list(path, parts):
    with open(path, "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(("file", "label"))
        for part in parts:
            with open(part, newline="") as rows:
                out.writerows(((part.parent / r["file"]).resolve(), r["label"]) for r in csv.DictReader(rows))
    return path


def prepared(m, args):
    """(SPEC of all samples, labels or None)."""
    _, calib, data, labels = m.paths(args.shared)
    if data.suffix == ".npz":       # the inputs alone, and no positions that all samples mask
        names = [i.name for i in peer.session(path_of(m, args)).get_inputs()]
        with np.load(data) as arrays:
            kept = {n: arrays[n] for n in names}
        if "attention_mask" in kept:
            length = int(kept["attention_mask"].any(0).nonzero()[0].max()) + 1
            kept = {n: a[:, :length] for n, a in kept.items()}
        data = args.work / f"{m.name}.npz"
        np.savez(data, **kept)
    elif data.is_dir():
        data = joined_folder(args.work / m.name, {calib, data, args.shared / "data/coco/eval/images"})
    elif data.suffix == ".csv" and len(samples.open_samples(data, m.preprocess).names) < 3 * CALIBRATION:
        data = joined_list(args.work / f"{m.name}.csv", (calib, data))
    elif m.metric == "mse":         # few, and without labels
        joined = np.concatenate([np.load(calib), np.load(data)])
        data = args.work / f"{m.name}.npy"
        np.save(data, joined)
    return data, labels


def path_of(m, args):
    model = m.paths(args.shared)[0]
    return model if model.exists() or not args.made else args.made / model.name


# ---- the metric as a command ----

def index_of(name, all_names):
    """The place of a sample that qconvert names: a picture's path, or FILE[i]."""
    return int(name[name.rindex("[") + 1:-1]) if name.endswith("]") else all_names[Path(name).name]


def pair_rows(got, want, where):
    """Embeddings in pairs: what the set holds of them, and where it holds one of two, the float model's other one."""
    rows = {k: i for i, k in enumerate(where)}
    pairs = sorted({k // 2 for k in where})
    take = lambda k: got[rows[k]] if k in rows else want[k]
    return np.stack([take(k) for p in pairs for k in (2 * p, 2 * p + 1)]), pairs


def pseudo_values(score):
    """A number a sample, whose mean is the score and whose spread is the score's."""
    n, whole = score.count, score.value()
    without = np.array([score.value((np.arange(n) != i).astype(int)) for i in range(n)])
    each = n * whole - (n - 1) * without
    return each - each.mean() + whole


def print_score(m, args, path):
    with np.load(path) as arrays:
        outputs = {k: arrays[k] for k in arrays.files}
    names = [str(n) for n in outputs.pop("sample_names")]
    outputs.pop("sample_labels")
    data, _ = prepared_once(m, args)
    every = samples.open_samples(data, m.preprocess)
    where = [index_of(n, {k: i for i, k in enumerate(every.names)}) for n in names]
    with np.load(args.work / f"{m.name}.float.npz") as arrays:
        want = {k: arrays[k] for k in arrays.files}
    if m.metric == "spearman":
        e, pairs = pair_rows(outputs["sentence_embedding"], want["sentence_embedding"], where)
        each = pseudo_values(tasks.spearman({"sentence_embedding": e}, None, m.truth(args.shared, every)[pairs], None))
        by_pair = dict(zip(pairs, each))
        each = [by_pair.pop(k // 2, np.nan) for k in where]     # a pair counts once
    else:
        chosen = every.chosen(where)
        reference = {k: v[where] for k, v in want.items()}
        score = tasks.TASKS[m.metric](outputs, chosen, boxes_of(m, args), reference)
        each = score.each if isinstance(score, tasks.Mean) else pseudo_values(score)
    print("\n".join(f"{v:.17g}" for v in each))


def boxes_of(m, args):
    """Truth of the pictures of both halves."""
    if not m.boxes:
        return None
    first, other = (m.truth(args.shared, None), zoo.Model(**{**m.__dict__, "boxes": m.boxes.replace("eval", "calib")}).truth(args.shared, None))
    return lambda picture: first(picture) if len(first(picture)) else other(picture)


def prepared_once(m, args):
    note = args.work / f"{m.name}.spec"
    if not note.exists():
        data, labels = prepared(m, args)
        note.write_text(f"{data}\n{labels or ''}\n")
    data, labels = note.read_text().splitlines()
    return Path(data), Path(labels) if labels else None


def need_float_outputs(m, args):
    path = args.work / f"{m.name}.float.npz"
    if not path.exists():
        data, _ = prepared_once(m, args)
        outputs = peer.run_all(peer.session(path_of(m, args)), samples.open_samples(data, m.preprocess), whole=m.name in zoo.WHOLE)
        np.savez(path, **outputs)


# ---- a conversion to the goal ----

def convert(m, args):
    data, labels = prepared_once(m, args)
    limit = "0.5r%" if m.metric == "mse" else "0.5%"
    report = args.work / f"{m.name}.json"
    command = [args.qconvert, path_of(m, args), "-o", args.work / f"{m.name}.onnx", "--data", data, "--samples", CALIBRATION, "--max-drop", limit,
               "--trials", args.trials, "--json", report, "-q", *(["--preprocess", m.preprocess] if m.preprocess else []),
               *(["--labels", labels] if labels else [])]
    if m.metric in BUILT_IN:
        command += ["--metric", m.metric]
    else:
        need_float_outputs(m, args)
        made = f" --made {args.made}" if args.made else ""
        command += ["--metric-cmd", f"{sys.executable} {Path(__file__).resolve()} --shared {args.shared} --work {args.work}{made} --score {m.name}"]
    report.unlink(missing_ok=True)
    fault = ""
    try:
        tool.run(command)
    except tool.ToolError as error:
        fault = str(error)
    return (json.loads(report.read_text()) if report.exists() else None), limit, fault


def line_of(m, args, known):
    r, limit, fault = convert(m, args)
    if not r or not r.get("goals"):
        print(f"{m.name}: {fault}", file=sys.stderr)
        return None
    goal, taken = r["goals"][0], next((t for t in r["trials"] if t["taken"]), {"layers_left_float": 0, "macs_share": 0})
    number = lambda v: "" if v is None else f"{v:.6g}"
    judged = "others" if r["trials_on_other_samples"] else "the same" if len(r["trials"]) > 1 else "all"
    return known | {"limit": limit, "samples": r["judged_on"]["samples"], "before": number(r["metric"]["float"]), "after": number(goal["value"]),
                    "drop": number(goal["drop"]), "low": number(goal.get("low")), "high": number(goal.get("high")), "met": "yes" if goal["met"] else "no",
                    "enough_samples": str(r.get("samples_needed", "")) if goal["unsure"] else "yes" if goal.get("low") is not None else "unknown",
                    "trials": str(len(r["trials"]) - 1), "layers": r["layers_with_weights"], "promoted": taken["layers_left_float"],
                    "float": r["layers_with_weights"] - r["int8_layers"], "promoted_macs": number(taken["macs_share"]), "judge": judged}


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", default="*", metavar="GLOB", help="which, joined by commas [all]")
    p.add_argument("--again", action="store_true", help="also what is known")
    p.add_argument("--trials", type=int, default=16, help="of qconvert [%(default)s]")
    p.add_argument("--shared", type=Path, default=zoo.ROOT.parent / "shared", help="folder with models/ and data/ [%(default)s]")
    p.add_argument("--made", type=Path, metavar="FOLDER", help="where models are that a script of models/ writes")
    p.add_argument("--work", type=Path, default=Path("/tmp/octet-goals"), help="folder for what is made on the way [%(default)s]")
    p.add_argument("--qconvert", help="our qconvert [$OCT_BUILD or build/, then PATH]")
    p.add_argument("--score", nargs=2, metavar=("MODEL", "NPZ"), help="print the metric of these outputs instead")
    return p.parse_args()


def main():
    args = parse()
    args.work.mkdir(parents=True, exist_ok=True)
    if args.score:
        print_score(MODELS[args.score[0]], args, args.score[1])
        return 0
    os.nice(10)
    args.qconvert = tool.find("qconvert", args.qconvert) or sys.exit("goals: qconvert was not found; build first")
    by = "octet " + tool.run([args.qconvert, "--version"]).split()[1] + f", {args.trials} trials"
    for name, m in MODELS.items():
        known = dict.fromkeys(RESULT, "") | {"model": name, "metric": m.metric, "by": by}
        lines = read("goals.csv")
        if not any(fnmatch.fnmatch(name, glob) for glob in args.models.split(",")) or not path_of(m, args).exists():
            continue
        if not args.again and any(r["model"] == name and r["by"] == by for r in lines):
            continue
        if line := line_of(m, args, known):
            write("goals.csv", RESULT, lines + [{k: str(v) for k, v in line.items()}], ("model",))
            print(" ".join(f"{k}={v}" for k, v in line.items() if v != ""), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
