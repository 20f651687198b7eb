"""bench/models: models in float and int8, in our runtime and in ONNX Runtime."""
import fnmatch
import subprocess
import sys

import numpy as np

from octbench import latency, tools
from octbench.places import BENCH, OUT, ROOT
from octbench.race import Runner, means, quotients, race


def found(args):
    """Files, those of folders by name."""
    files = []
    for path in args.models or [ROOT.parent / "shared/models"]:
        files += sorted(path.glob("*.onnx")) if path.is_dir() else [path]
    return [f for f in files if any(fnmatch.fnmatch(f.stem, p) for p in args.only.split(","))]


def feeds(model, sizes):
    """Random inputs; integers are 1, or 16000 where there is one of no dimension (a sampling rate)."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    rng, made = np.random.default_rng(7), {}
    for i in onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"]).get_inputs():
        shape = [d if isinstance(d, int) else sizes.get(d, 1) for d in i.shape]
        kind = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}[i.type]
        value = rng.standard_normal(shape) if kind is np.float32 else np.full(shape, 1 if shape else 16000)
        made[i.name] = np.asarray(value).astype(kind)
    return made


def converted(model, data):
    """The model in int8, calibrated with what it is timed with; None, and a line, where qconvert cannot."""
    out = OUT / "models" / f"{model.stem}.int8.onnx"
    done = subprocess.run([tools.OURS["qconvert"], model, "--data", data, "--samples", "1", "--no-recover", "-q", "-o", out],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{model.stem}: no int8: {(done.stderr.strip().splitlines() or ['no message'])[-1][:200]}", file=sys.stderr)
    return None if done.returncode else out


def started(args, model):
    """{name: Runner}: both runtimes on the float file and on our int8 file; only ours to profile."""
    data = OUT / "models" / f"{model.stem}.npz"
    data.parent.mkdir(parents=True, exist_ok=True)
    np.savez(data, **feeds(model, dict(args.dim)))
    cpus, int8 = latency.cpus_for(args, args.threads), converted(model, data)
    runners = {}
    for form, path in (("float", model.resolve()), ("int8", int8)):
        if path:
            runners[f"octet-{form}"] = Runner([tools.OURS["runner"], path, data, args.threads], cpus)
        if path and not args.profile:
            peer = [sys.executable, "-m", "octbench.worker", "ort-whole", path, data, args.threads]
            runners[f"ort-{form}"] = Runner(peer, cpus, {"OMP_NUM_THREADS": str(args.threads)}, cwd=BENCH)
    return runners


# Quotients of fastest times that are printed: title, above, below.
QUOTIENTS = (("float/ORT", "octet-float", "ort-float"), ("int8/ORT float", "octet-int8", "ort-float"),
             ("int8/own float", "octet-int8", "octet-float"), ("int8/ORT int8", "octet-int8", "ort-int8"))
TIMES = ("ort-float", "octet-float", "ort-int8", "octet-int8")


def timed(args, runners):
    """{runner: the least of its times} of those that answer; says which do not."""
    alive = {}
    for name, runner in runners.items():
        try:
            runner.turn(0)
            alive[name] = runner
        except RuntimeError as why:
            print(f"  {name}: {why}", file=sys.stderr)
    return {name: min(map(min, turns)) for name, turns in race(alive, args.rounds, args.seconds).items()} if alive else {}


def line(name, least, ratios):
    cells = [f"{least[t]:10.4f}" if t in least else f"{'-':>10s}" for t in TIMES]
    cells += [f"{ratios[q]:{len(q)}.3f}" if q in ratios else f"{'-':>{len(q)}s}" for q, _, _ in QUOTIENTS]
    print(f"{name:24s} {'  '.join(cells)}", flush=True)


def main(args):
    tools.build()
    each = []
    if not args.profile:
        print(f"{'fastest, ms':24s} {'  '.join(f'{t:>10s}' for t in TIMES)}  {'  '.join(q for q, _, _ in QUOTIENTS)}")
    for model in found(args):
        runners = started(args, model)
        if args.profile:
            for name, runner in runners.items():
                nodes = latency.show_profile(f"{model.stem} {name}, {args.threads} threads", runner, 10)
                latency.show_classes(name, nodes, model, args.threads)
        else:
            least = timed(args, runners)
            each.append(quotients(least, QUOTIENTS))
            line(model.stem, least, each[-1])
        for runner in runners.values():
            runner.close()
    if each:
        line("geometric mean", {}, means(each))
    return 0
