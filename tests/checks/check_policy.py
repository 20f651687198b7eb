#!/usr/bin/env python3
"""Reads dumped policies back, and asks for sizes.

    check_policy.py [--quick | --targets] [--target GLOB] [--only GLOB] [--all] [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Networks: those of pylib/bodies.py, and of pylib/architectures.py, each in one way or two; --all: in all. --quick: none of them, and a smaller Llama-like network.

--dump-policy must make the same bytes when it is read back with --policy on the same samples with the same options, goals apart, but for octet.command, octet.record
and octet.trials of the metadata. The size that --dry-run foretells must be that of the file, and the memory within a factor of two of what a run takes.

--targets: the same of a conversion by default for the built-in targets, over the networks of pylib/smallnets.py and pylib/bodies.py, those of make_nasty.py
and the models of testdata, each network for every eighth target; of those with tables of words (pylib/sized.py) with 4 bits, too. --all: for all targets. Models
that a target refuses are counted.

--target-size: the file must not be larger, must load in ONNX Runtime, and at the size of 4 and of 8 bits in blocks a Llama-like network must
lose no more than they do (a tenth of a dB is for which samples tell); twice the same bytes; what cannot be reached is exit 1, and a file of the least size that it names can be asked for.
With 1 and 2 threads and with AVX2 the same bytes. --target-bits: 8 times the file's growth from 5 to 7 bits must be 2 bits a weight.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx

from generate import make_nasty
from pylib import architectures, bodies, sized, smallnets
from pylib.judge import Checker, options, run_ort, sqnr

SHRINKS = ["--scheme", "weight-only", "--bits"]
# Options, whether samples are given, and the options with which the table is read back.
WAYS = {
    "static": ([], True, []),
    "dynamic": (["--scheme", "dynamic"], False, ["--scheme", "dynamic"]),
    "QOperator": (["--format", "qoperator"], True, ["--format", "qoperator"]),
    "4 bits": ([*SHRINKS, "4"], False, [*SHRINKS, "4"]),
    "goal": (["--min-sqnr", "60", "--trials", "3"], True, []),
    "8 bits": ([*SHRINKS, "8"], False, [*SHRINKS, "8"]),
    "fp16": (["--scheme", "fp16"], True, ["--scheme", "fp16"]),
    "high": (["--effort", "high"], True, ["--effort", "high"]),
    "bf16": (["--scheme", "bf16"], False, ["--scheme", "bf16"]),
    "stored": (["--scheme", "stored"], False, ["--scheme", "stored"]),
}
THIN = 6
EVERY = 8  # of the targets
TABLES = ("Llama", "tied")  # of words, which a product multiplies by, too
BODIES = ("branches", "loop", "lstm", "nested", "one_matrix", "scan")
TESTDATA = Path(__file__).resolve().parents[2] / "testdata" / "models"
SPREAD = np.linspace(0.5, 1, 8, dtype=np.float32)  # what the inputs of testdata are multiplied by, a sample each
ORIGIN = ("octet.command", "octet.record", "octet.trials")


def run(c, *args):
    return subprocess.run([c.qconvert, *map(str, args)], capture_output=True, text=True, timeout=300)


def peak(c, *args):
    """Bytes that a run takes at most; started by a process that is smaller, as Linux counts what starts it, too."""
    code = "import os, sys; print(os.wait4(os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:]), 0)[2].ru_maxrss)"
    return 1024 * int(subprocess.run([sys.executable, "-S", "-E", "-c", code, c.qconvert, *map(str, args)], capture_output=True, text=True, timeout=300).stdout.splitlines()[-1])


def without_origin(path):
    m = onnx.load(path)
    kept = [p for p in m.metadata_props if p.key not in ORIGIN]
    del m.metadata_props[:]
    m.metadata_props.extend(kept)
    return m.SerializeToString(deterministic=True)


def made(c, what, out, *args):
    """Whether there is a file; one that missed its goal is one, too."""
    best = out.with_suffix(".best.onnx")
    for path in (out, best):
        path.unlink(missing_ok=True)
    r = run(c, *args, "-o", out, "-q")
    if r.returncode == 1 and best.exists():
        best.rename(out)
    c.hold(f"{what}: converts", out.exists(), r.stderr[-300:])
    return out.exists()


def check_round_trip(c, name, model, data, way):
    what, (more, samples, again) = f"{name}, {way}", WAYS[way]
    a, b, policy, report = (c.folder / f for f in ("a.onnx", "b.onnx", "p.txt", "r.json"))
    data = ["--data", data] if samples else []
    if not made(c, what, a, model, *data, *more, "--dump-policy", policy) or not made(c, f"{what}, read back", b, model, *data, *again, "--policy", policy):
        return
    c.hold(f"{what}: the same bytes", without_origin(a) == without_origin(b))
    if way != "goal":
        r = run(c, model, *data, *more, "--dry-run", "--json", report, "-o", a, "--dump-policy", policy, "-q")
        told = json.loads(report.read_text())["size_bytes"]["after"] if r.returncode == 0 else r.stderr
        c.hold(f"{what}: a dry run tells the size", told == a.stat().st_size, f"{told}, {a.stat().st_size}")


def small_llama():
    return sized.llama(layers=1, wide=128, inner=256, words=5000, heads=2)


def small_networks(folder, matches):
    """(name, model, samples) of the small networks."""
    for name in ("encoder", "perceptron", "recurrent"):
        if matches(name):
            np.save(folder / f"{name}.npy", np.concatenate(getattr(smallnets, name)(folder / f"{name}.onnx"))[:, None])
            yield name, folder / f"{name}.onnx", folder / f"{name}.npy"
    for name in BODIES:
        if matches(name):
            np.save(folder / f"{name}.npy", np.stack(getattr(bodies, name)(folder / f"{name}.onnx")[:8]))
            yield name, folder / f"{name}.onnx", folder / f"{name}.npy"
    for name in TABLES:
        if matches(name):
            model = small_llama() if name == "Llama" else sized.MODELS[name]()
            onnx.save(model, folder / f"{name}.onnx")
            np.save(folder / f"{name}.npy", sized.samples(model))
            yield name, folder / f"{name}.onnx", folder / f"{name}.npy"
    for name in make_nasty.NETS:
        if matches(name):
            make_nasty.build(name, folder)
            yield name, folder / f"{name}.onnx", folder / f"{name}.calib.npy"
    for model in sorted(TESTDATA.glob("*.onnx")):
        arrays = model.with_suffix(".npz")
        if matches(model.stem) and arrays.exists():
            with np.load(arrays) as z:
                inputs = {k[3:]: z[k] for k in z if k.startswith("in/")}
            if not inputs:
                continue
            np.savez(folder / arrays.name, **{k: np.stack([x * f if x.dtype.kind == "f" else x for f in SPREAD]) for k, x in inputs.items()})
            yield model.stem, model, folder / arrays.name


def targets_of(c):
    return [line.split()[0] for line in run(c, "--list-targets").stdout.splitlines()[2:]]


def check_target(c, target, name, model, data, *more):
    """Whether the target took the model; more: options."""
    a, b, policy = (c.folder / f for f in ("a.onnx", "b.onnx", "p.txt"))
    for path in (a, b, policy):
        path.unlink(missing_ok=True)
    first = run(c, model, "--data", data, "--target", target, *more, "--dump-policy", policy, "-o", a, "-q")
    if first.returncode and not policy.exists():
        return False
    again = run(c, model, "--data", data, "--target", target, *more, "--policy", policy, "-o", b, "-q")
    c.hold(f"{name}, {target}: ends alike", again.returncode == first.returncode, first.stderr[-200:] + again.stderr[-300:])
    if a.exists() and b.exists():
        c.hold(f"{name}, {target}{' '.join(['', *more])}: the same bytes", without_origin(a) == without_origin(b))
    return a.exists()


def check_targets(c, args):
    each, taken = targets_of(c), {}
    c.hold("targets are listed", len(each) > 10, str(each))
    for i, (name, model, data) in enumerate(small_networks(c.folder, lambda n: fnmatch(n, args.only))):
        for k, target in enumerate(each):
            if fnmatch(target, args.target) and (args.all or (i + k) % EVERY == 0):
                taken.setdefault(target, []).append(check_target(c, target, name, model, data))
                if name in TABLES:
                    check_target(c, target, name, model, data, *SHRINKS, "4")
    for target, made_ in taken.items():
        print(f"{target}: {sum(made_)} of {len(made_)} networks convert")
        c.hold(f"{target}: converts", any(made_))


def files(path):
    return sum(f.stat().st_size for f in path.parent.glob(path.name + "*") if not f.name.endswith(".json"))


def check_sizes(c, name, model, data, inputs):
    want, sizes = run_ort(model, inputs), {}
    for bits in ("4", "8"):
        for samples in ([], ["--data", data]):
            uniform, mixed = c.folder / "u.onnx", c.folder / "m.onnx"
            what = f"{name}, size of {bits} bits" + (", samples" if samples else "")
            if not made(c, what, uniform, model, *samples, *SHRINKS, bits):
                continue
            room = files(uniform) + 64  # the command in the metadata is longer
            if not made(c, what, mixed, model, *samples, "--target-size", room):
                continue
            c.hold(f"{what}: is kept", files(mixed) <= room, f"{files(mixed)} of {room}")
            least, got = (sqnr(want, run_ort(m, inputs)) for m in (uniform, mixed))
            c.hold(f"{what}: loses no more", got >= least - 0.1, f"{got:.2f} dB, all alike {least:.2f} dB")
    for bits in (5, 7):
        if made(c, f"{name}, {bits} bits a weight", c.folder / "m.onnx", model, "--target-bits", bits):
            sizes[bits] = files(c.folder / "m.onnx")
    foretold = c.folder / "r.json"
    run(c, model, "--data", data, "--dry-run", "--json", foretold, "-q")
    memory, told = peak(c, model, "--data", data, "-o", c.folder / "m.onnx", "-q"), json.loads(foretold.read_text())["estimate"]
    c.hold(f"{name}: a dry run tells the memory", memory / 2 < told["memory_bytes"] < memory * 2 and told["seconds"] > 0, f"{told}, {memory}")
    r = run(c, model, "--target-size", "1kB", "-o", c.folder / "none.onnx")
    least = re.search(r"fewest that were found are (\d+)", r.stderr)
    c.hold(f"{name}: what cannot be reached", r.returncode == 1 and least and not (c.folder / "none.onnx").exists(), r.stderr)
    if least:
        small, twice = c.folder / "m.onnx", c.folder / "n.onnx"
        size = int(least[1]) + 64  # the command in the metadata is longer
        good = made(c, name, small, model, "--target-size", size) and made(c, name, twice, model, "--target-size", size)
        c.hold(f"{name}: the least size is reached", good and files(small) <= size and small.read_bytes() == twice.read_bytes())
    weights = sum(np.prod(t.dims) for t in onnx.load(model).graph.initializer if len(t.dims) == 2)
    if len(sizes) == 2:
        grown = 8 * (sizes[7] - sizes[5]) / float(weights)
        c.hold(f"{name}: bits a weight", 1.7 < grown < 2.3, f"{grown:.2f} more")


def check_same(c, name, model, data):
    """What computes, and how often, tells nothing."""
    first, again = c.folder / "s.onnx", c.folder / "t.onnx"
    args = [model, "--data", data, "--target-bits", "5.5"]
    if made(c, f"{name}, 5.5 bits", first, *args, "--threads", "1"):
        for more in (["--threads", "2"], ["--threads", "1", "--isa", "avx2"]):
            good = made(c, f"{name}, {more}", again, *args, *more)
            c.hold(f"{name}: the same with {' '.join(more)}", good and without_origin(first) == without_origin(again))


def main():
    parser = options(__doc__)
    parser.add_argument("--only", default="*", help="networks whose names match")
    parser.add_argument("--all", action="store_true", help="each in all ways")
    parser.add_argument("--quick", action="store_true", help="sizes of a small network alone")
    parser.add_argument("--targets", action="store_true", help="small networks for each target, alone")
    parser.add_argument("--target", default="*", help="targets whose names match")
    args = parser.parse_args()
    with Checker(args) as c:
        if args.targets:
            check_targets(c, args)
            return c.finish()
        for i, name in enumerate(architectures.NETS):
            if args.quick or not fnmatch(name, args.only):
                continue
            model, data = c.folder / f"{name}.onnx", c.folder / f"{name}.npz"
            np.savez(data, **architectures.write(name, model))
            for k, way in enumerate(WAYS):
                if args.all or (i + k) % THIN == 0:
                    check_round_trip(c, name, model, data, way)
        for name in BODIES:
            if args.quick or not fnmatch(name, args.only):
                continue
            model, data = c.folder / f"{name}.onnx", c.folder / "bodies.npy"
            np.save(data, np.stack(getattr(bodies, name)(model)[:16]))
            for way in ("static", "dynamic", "stored"):
                check_round_trip(c, name, model, data, way)
        if fnmatch("Llama", args.only):
            model, data = c.folder / "llama.onnx", c.folder / "rows.npy"
            net = small_llama() if args.quick else sized.llama()
            onnx.save(net, model)
            inputs = sized.samples(net, 16)
            np.save(data, inputs)
            check_sizes(c, "Llama", model, data, inputs)
            check_same(c, "Llama", model, data)
    return c.finish()


if __name__ == "__main__":
    sys.exit(main())
