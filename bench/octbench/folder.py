"""bench/models: float models in our runtime and in ONNX Runtime."""
import fnmatch
import statistics
import sys

import numpy as np

from octbench import latency, tools
from octbench.places import BENCH, OUT, ROOT
from octbench.race import Runner, race


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


def started(args, model):
    data = OUT / "models" / f"{model.stem}.npz"
    data.parent.mkdir(parents=True, exist_ok=True)
    np.savez(data, **feeds(model, dict(args.dim)))
    cpus = latency.cpus_for(args, args.threads)
    ours = Runner([tools.OURS["runner"], model.resolve(), data, args.threads], cpus)
    if args.profile:
        return {"octet": ours}
    peer = [sys.executable, "-m", "octbench.worker", "ort-whole", model.resolve(), data, args.threads]
    return {"octet": ours, "ort": Runner(peer, cpus, {"OMP_NUM_THREADS": str(args.threads)}, cwd=BENCH)}


def main(args):
    tools.build()
    ratios = []
    for model in found(args):
        runners = started(args, model)
        try:
            if args.profile:
                latency.show_profile(f"{model.stem}, {args.threads} threads", runners["octet"], 10)
            else:
                least = {name: min(min(t) for t in turns) for name, turns in race(runners, args.rounds, args.seconds).items()}
                ratios.append(least["octet"] / least["ort"])
                print(f"{model.stem:28s} {least['ort']:10.4f} ms {least['octet']:10.4f} ms {ratios[-1]:8.3f}", flush=True)
        except RuntimeError as why:
            print(f"{model.stem}: {why}", file=sys.stderr)
        for runner in runners.values():
            runner.close()
    if ratios:
        print(f"{'geometric mean':28s} {'':29s} {statistics.geometric_mean(ratios):8.3f}")
    return 0
