#!/usr/bin/env python3
"""Compares the float outputs of our runtime with ONNX Runtime's on the real models and their data.

    check_models.py [MODEL...] [--shared ../shared] [--samples N] [--qeval PATH]
    check_models.py --tiny [NAME...]          the models of testdata/models and the results stored beside them

Per output: the largest absolute difference relative to the range of ONNX Runtime's output, at most 1e-4 (16-bit floats: 2e-3; integers: at
most 1 apart); top-1 and top-5 at most 0.2 points apart. Runs `qeval MODEL --data SPEC --preprocess P --outputs OUT.npz`.
Exit: 0 when all hold, 1 when not.
"""
import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import metrics, peer, tool, zoo
from pylib.judge import faults, relative_error, stored_case
from pylib.samples import open_samples

POINTS = 0.2


def accuracy(model, x_of, first, labels):
    if model.metric == "mse":
        return {"mse": float(np.mean([metrics.squared_error(x_of(i)[None], y[None])[0] for i, y in enumerate(first)]))}
    if labels is None:
        return {}
    found = {"top1": 100 * float(metrics.top_k(first, labels, 1).mean())}
    if first.reshape(len(first), -1).shape[1] >= 100:
        found["top5"] = 100 * float(metrics.top_k(first, labels, 5).mean())
    return found


def check(model, args, binary, folder):
    path, _, spec, labels_path = model.paths(args.shared)
    samples = open_samples(spec, model.preprocess, labels_path)
    want = peer.run_all(peer.session(path, threads=args.threads), samples, args.samples, whole=model.name in zoo.WHOLE)
    extra = list(args.qeval_arg) + ([f"--samples={args.samples}", "--first"] if args.samples else [])
    count = len(next(iter(want.values())))
    labels = None if samples.labels is None else samples.labels[:count]
    theirs = accuracy(model, samples.get, next(iter(want.values())), labels)
    shown = ", ".join(f"{k} {v:.2f}" for k, v in theirs.items()) or "no metric"
    if not binary:
        expected = ", ".join(str(v) for v in model.expect) or "-"
        print(f"{model.name:<24}ONNX Runtime: {shown} (README: {expected})", flush=True)
        return True
    try:
        got = tool.run_qeval(binary, path, spec, Path(folder) / "out.npz", model.preprocess, extra)
    except tool.ToolError as error:
        print(f"{model.name:<24}FAIL: {error}", flush=True)
        return False
    whole = all(n in got and got[n].shape == w.shape for n, w in want.items())
    ours = accuracy(model, samples.get, got[next(iter(want))], labels) if whole else {}
    wrong = [*faults(want, got), *(f"{k} is {ours[k]:.2f}, ONNX Runtime has {theirs[k]:.2f}" for k in ours
                                   if k.startswith("top") and abs(ours[k] - theirs[k]) > POINTS)]
    worst = max(relative_error(w, got[n]) for n, w in want.items()) if whole else float("nan")
    print(f"{model.name:<24}{'FAIL: ' + '; '.join(wrong) if wrong else 'ok'}; largest error {worst:.1e} of range; {shown}", flush=True)
    return not wrong


def check_tiny(path, args, binary, folder):
    """One model of testdata/models against NAME.npz."""
    feeds, want = stored_case(path)
    np.savez(Path(folder) / "feeds.npz", **feeds)
    try:
        got = tool.run_qeval(binary, path, Path(folder) / "feeds.npz", Path(folder) / "out.npz", extra=args.qeval_arg)
    except tool.ToolError as error:
        print(f"{path.stem:<28}FAIL: {error}", flush=True)
        return False
    wrong = list(faults(want, got))
    print(f"{path.stem:<28}{'FAIL: ' + '; '.join(wrong) if wrong else 'ok'}", flush=True)
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="names [all CNNs and the bundled model]")
    parser.add_argument("--shared", type=Path, default=tool.SHARED)
    parser.add_argument("--samples", type=int, help="only the first N of each set")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--ort-only", action="store_true", help="only ONNX Runtime's numbers")
    tool.add_option(parser)
    parser.add_argument("--tiny", action="store_true", help="the models of testdata/models instead")
    args = parser.parse_args()
    known = zoo.MODELS | zoo.WHOLE
    unknown = [n for n in args.models if n not in known]
    if unknown and not args.tiny:
        parser.error(f"unknown model '{unknown[0]}'; known: {', '.join(known)}")
    binary = None if args.ort_only else tool.find("qeval", args.qeval)
    if not binary and (args.tiny or not args.ort_only):
        sys.exit("check_models: qeval was not found; give --qeval, or --ort-only")
    with tempfile.TemporaryDirectory() as folder:
        if args.tiny:
            tiny = sorted(p.with_suffix(".onnx") for p in (zoo.ROOT / "testdata/models").glob("*.npz"))
            good = [check_tiny(p, args, binary, folder) for p in tiny if not args.models or p.stem in args.models]
        else:
            good = [check(known[n], args, binary, folder) for n in args.models or known]
    print(f"{sum(good)} of {len(good)} models hold")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
