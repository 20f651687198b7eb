"""bench/provider: quantized models in ONNX Runtime, by provider."""
import fnmatch
import json
import os
import statistics
import subprocess
import sys

import numpy as np

from octbench import folder, forms, latency, models, networks, tools
from octbench.places import BENCH, OUT, ROOT
from octbench.race import Runner, means, quotients, race

# Providers by kind of worker.
KINDS = {"cpu": "ort-whole", "octet": "ort-octet", "openvino": "ort-openvino"}
FORMS = {**dict.fromkeys(networks.VISION, ("octet-portable", "ort-static")), **dict.fromkeys(networks.WORDS, ("octet-dynamic", "ort-dynamic"))}
QUOTIENTS = (("octet/cpu", "octet", "cpu"), ("octet/openvino", "octet", "openvino"))
STARTS = 5  # processes of each provider whose start is timed


def usual(args):
    """(name, quantized file, inputs)."""
    for path in sorted((ROOT.parent / "shared/models").glob("*.onnx")):
        if wanted(args, path.stem):
            data = OUT / "models" / f"{path.stem}.npz"
            data.parent.mkdir(parents=True, exist_ok=True)
            np.savez(data, **folder.feeds(path, {"sequence": 576}))
            made = folder.converted(path, data)
            if made:
                yield path.stem, made, data
    for name in (n for n in networks.ALL if wanted(args, n)):
        models.make(name)
        data = OUT / "models" / f"{name}.npz"
        np.savez(data, **next(forms.feeds(networks.data_file(name), 1)))
        for form in FORMS[name]:
            try:
                yield f"{name}.{form}", forms.form(form, name), data
            except forms.Failed as why:
                print(f"{name}: no {form}: {why}", file=sys.stderr)


def wanted(args, name):
    return any(fnmatch.fnmatch(name, p) for p in args.only.split(","))


def worker(kind, path, data, threads, cpus):
    command = [sys.executable, "-m", "octbench.worker", KINDS[kind], path, data, threads]
    return Runner(command, cpus, {"OMP_NUM_THREADS": str(threads), "OCT_BENCH_PROVIDER": str(tools.OURS["provider"])}, cwd=BENCH)


def timed(args, kinds, path, data, threads):
    """{provider: [times of each turn]}, and "native": our runtime without ONNX Runtime."""
    cpus, alive = latency.cpus_for(args, threads), {}
    if not cpus:
        return {}
    runners = {k: worker(k, path, data, threads, cpus) for k in kinds}
    runners["native"] = Runner([tools.OURS["runner"], path, data, threads], cpus)
    for kind, runner in runners.items():
        try:
            runner.turn(0.05)
            alive[kind] = runner
        except RuntimeError as why:
            print(f"  {kind}: {why}", file=sys.stderr)
    turns = race(alive, args.rounds, args.seconds) if alive else {}
    for runner in runners.values():
        runner.close()
    return turns


def starts(kinds, path, data):
    """{provider: (ms to make a session, ms of the first run)}: the least of several processes, in turns."""
    found = {}
    for _ in range(STARTS):
        for kind in kinds:
            words = [sys.executable, "-m", "octbench.worker", KINDS[kind], str(path), str(data), "1", "--start"]
            done = subprocess.run(words, cwd=BENCH, env=os.environ | {"OCT_BENCH_PROVIDER": str(tools.OURS["provider"])}, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                found.setdefault(kind, []).append(json.loads(done.stdout.splitlines()[-1]))
    return {kind: tuple(min(t[i] for t in times) for i in range(2)) for kind, times in found.items()}


def show(name, cells):
    print(f"{name:40s} " + "  ".join(cells), flush=True)


def ratio_cells(fast, median):
    return [f"{fast.get(t, float('nan')):5.2f} ({median.get(t, float('nan')):5.2f})" for t, _, _ in QUOTIENTS]


def latencies(args, kinds, threads):
    fasts, medians = [], []
    print(f"\n{threads} thread{'s' * (threads > 1)}, ms of the fastest run; ratios of the fastest runs (of medians)")
    show("", [f"{k:>9s}" for k in (*kinds, "native")] + [f"{t:>14s}" for t, _, _ in QUOTIENTS] + ["over native, us"])
    for name, path, data in chosen(args):
        turns = timed(args, kinds, path, data, threads)
        fast = {k: min(map(min, t)) for k, t in turns.items()}
        median = {k: statistics.median(statistics.median(x) for x in t) for k, t in turns.items()}
        fasts.append(quotients(fast, QUOTIENTS))
        medians.append(quotients(median, QUOTIENTS))
        over = f"{(fast['octet'] - fast['native']) * 1e3:15.1f}" if {"octet", "native"} <= fast.keys() else ""
        show(name, [f"{fast.get(k, float('nan')):9.3f}" for k in (*kinds, "native")] + ratio_cells(fasts[-1], medians[-1]) + [over])
    if fasts:
        show("geometric mean", [" " * 9] * (len(kinds) + 1) + ratio_cells(means(fasts), means(medians)))


def start_times(args, kinds):
    each = []
    print("\nms of session start, first run; ratios of the sums")
    for name, path, data in chosen(args):
        found = starts(kinds, path, data)
        each.append(quotients({k: sum(t) for k, t in found.items()}, QUOTIENTS))
        show(name, [f"{k} {s:8.1f} {r:8.1f}" for k, (s, r) in found.items()] + [f"{t} {q:5.2f}" for t, q in each[-1].items()])
    if each:
        show("geometric mean", [f"{t} {q:5.2f}" for t, q in means(each).items()])


def chosen(args):
    return [(m.stem, m.resolve(), m.with_suffix(".npz").resolve()) for m in args.models] or usual(args)


def main(args, have):
    tools.build()
    kinds = [k for k in KINDS if k != "openvino" or "openvino-plugin" in have]
    if args.starts:
        start_times(args, kinds)
        return 0
    for threads in map(int, args.threads.split(",")):
        latencies(args, kinds, threads)
    return 0
