"""bench/blocks: one product with weights in blocks, in our runtime and in ONNX Runtime."""
import subprocess
import sys

import numpy as np
import onnx

from octbench import latency, tools
from octbench.places import BENCH, OUT
from octbench.race import Runner, quotients, race
from pylib.builder import Net

BLOCK = 32
LEVELS = (0, 4)


def made(size, rows):
    """(model, samples) of one float product."""
    folder = OUT / "blocks"
    folder.mkdir(parents=True, exist_ok=True)
    model, data = folder / f"{size}.{rows}.onnx", folder / f"{size}.{rows}.npz"
    n = Net(f"blocks{size}")
    n.batch = rows
    x = n.rng.standard_normal((rows, size)).astype(np.float32)
    n.output(n.matmul(n.input("x", x), size, bias=False), "y")
    onnx.save(n.done(), model)
    np.savez(data, x=x)
    return model, data


def converted(model, bits, level):
    out = model.with_suffix(f".{bits}bits.{level}.onnx")
    subprocess.run([tools.OURS["qconvert"], model, "--scheme", "weight-only", "--bits", str(bits), "--block-size", str(BLOCK),
                    "--accuracy-level", str(level), "-q", "-o", out], check=True)
    return out


def started(args, model, data, bits):
    """{name: Runner}."""
    cpus, env = latency.cpus_for(args, args.threads), {"OMP_NUM_THREADS": str(args.threads)}
    files = {f"level{level}": converted(model, bits, level) for level in LEVELS} | {"float": model}
    runners = {}
    for form, path in files.items():
        runners[f"octet-{form}"] = Runner([tools.OURS["runner"], path.resolve(), data, args.threads], cpus)
        peer = [sys.executable, "-m", "octbench.worker", "ort-whole", path.resolve(), data, args.threads]
        runners[f"ort-{form}"] = Runner(peer, cpus, env, cwd=BENCH)
    return runners


# Quotients of fastest times that are printed: title, above, below.
QUOTIENTS = (("level 4/ORT level 4", "octet-level4", "ort-level4"), ("level 0/ORT level 0", "octet-level0", "ort-level0"),
             ("level 4/own level 0", "octet-level4", "octet-level0"), ("level 4/ORT float", "octet-level4", "ort-float"))


def main(args):
    tools.build()
    print(f"{'fastest':20s} {'ours, ms':>9s}  {'  '.join(q for q, _, _ in QUOTIENTS)}")
    for rows in args.rows:
        model, data = made(args.size, rows)
        for bits in args.bits:
            runners = started(args, model, data, bits)
            least = {name: min(map(min, turns)) for name, turns in race(runners, args.rounds, args.seconds).items()}
            for runner in runners.values():
                runner.close()
            ratios = quotients(least, QUOTIENTS)
            print(f"{rows:4d} rows, {bits} bits    {least['octet-level4']:9.3f}  {'  '.join(f'{ratios[q]:{len(q)}.3f}' for q, _, _ in QUOTIENTS)}",
                  flush=True)
    return 0
