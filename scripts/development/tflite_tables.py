#!/usr/bin/env python3
"""Measures .tflite files in the runtimes that read them, and writes the numbers down.

    tflite_tables.py --twins [--only WORD] [--runtimes litert,tflm] [--samples 1000]
    tflite_tables.py --accuracy [--only WORD]
    tflite_tables.py --page      only docs/tflite.md anew

--twins: the networks of tests/checks/check_twins.py, made and trained, with activations of 8 and of 16 bits. Every tensor of integers that a
runtime shows is compared with its twin, over so many samples: those that there are, then the same with noise. tests/accuracy/twins.csv has a
line for each network and runtime, which grows with every few samples: a run that was stopped goes on where it was. A file that is written
differently begins anew. So does a line of other code of lib/twins, unless that computes the same of the first samples, every byte; until this
was seen, the page calls such lines older. --samples 0 does this alone. Cheap runtimes come first.

--accuracy: the models of pylib/zoo.py that can be written, with their labelled data: the float model and the .onnx of a conversion in ONNX
Runtime, the .tflite of the same conversion in LiteRT, with XNNPACK's kernels and with the reference kernels. tests/accuracy/litert.csv has a
line for each model.

Needs what check_twins.py needs; one thread, at low priority.
"""
import argparse
import datetime
import hashlib
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy is loaded
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/checks")]
import check_litert_accuracy
import check_tflite
import check_twins
import numpy as np

from pylib import cost, packages, tflite_page, tool, zoo

CHUNK = 20  # samples that are compared at once: their tensors are in memory
PACKAGES = {"litert": "ai-edge-litert", "litert-reference": "ai-edge-litert", "tflm": "tflite-micro", "tosa": "tosa-converter-for-tflite"}


def version(runtime):
    name = PACKAGES[runtime]
    return f"{name} {packages.version(name)}"


def is_wanted(args, name):
    return not args.only or any(word in name for word in args.only.split(","))


# ---- twins ----

def refusal(twin, file, samples):
    """What the runtime itself says of a file that it does not take."""
    try:
        list(check_twins.RUNTIMES[twin](file, samples[:1]))
    except (RuntimeError, ValueError) as e:
        return f"{version(twin)}: {e}"
    return None


def first_bytes(args, twin, file, samples):
    """A digest of what the twin computes of the first samples; of nothing where it refuses."""
    got, digest = check_twins.run_twin(args, twin, file, check_twins.varied(file, samples, 0, CHUNK)), hashlib.sha256()
    for one in [] if isinstance(got, str) else got:
        for i in file.made():
            digest.update(one[i].tobytes())
    return digest.hexdigest()[:12]


def compare(args, name, more, twin):
    """The line of a network and a runtime, brought to so many samples; written whenever there are more."""
    samples = check_twins.written_network(args, name, *more)
    if samples is None:
        return
    data = (args.folder / "net.tflite").read_bytes()
    key = {"network": name, "activations": "int16" if more else "int8", "twin": twin}
    same = {"made": hashlib.sha256(data).hexdigest()[:12], "by": version(twin)}
    file = check_twins.File(data)
    code, first = tflite_page.twin_code(), first_bytes(args, twin, file, samples)
    known = [r for r in tflite_page.read("twins.csv") if all(r[k] == v for k, v in key.items())]
    line = known[0] if known and all(known[0][k] == v for k, v in same.items()) and not known[0]["refused"] else {}
    line = line if line and (line["code"] == code or line.get("first") == first) else {}
    if not line and not args.samples:
        return
    same |= {"code": code, "first": first}
    done = {k: int(line.get(k) or 0) for k in ("samples", "bytes", "differ")} | {"largest": float(line.get("largest") or 0), "refused": ""}
    if line:
        tflite_page.write("twins.csv", tflite_page.TWINS, [line | same], tuple(key))
    while done["samples"] < args.samples and not done["refused"]:
        n = min(CHUNK, args.samples - done["samples"])
        some = check_twins.varied(file, samples, done["samples"], n)
        try:
            found = check_twins.difference(args, twin, file, some)
        except (RuntimeError, ValueError) as e:
            found = f"{version(twin)}: {e}"
        if isinstance(found, str):
            found = refusal(twin, file, some) or found
            done |= {"refused": " ".join(found.split())[-200:]}
        else:
            differ, compared, worst, _ = found
            done |= {"samples": done["samples"] + n, "bytes": done["bytes"] + compared, "differ": done["differ"] + differ, "largest": max(done["largest"], worst)}
        today = {"cpu": cost.cpu_name(), "date": datetime.date.today().isoformat()}
        tflite_page.write("twins.csv", tflite_page.TWINS, [key | done | same | today], tuple(key))
    print(*key.values(), done, flush=True)


def measure_twins(args):
    wanted = [(name, more) for name in [*check_twins.MADE, *check_tflite.NETWORKS] for more in ([], ["--target", "litert-int16"])
              if not more or name in check_twins.WIDE]
    for twin in args.runtimes.split(",") if args.runtimes else check_twins.RUNTIMES:
        for name, more in wanted:
            if is_wanted(args, name):
                compare(args, name, more, twin)


# ---- accuracy ----

def measure_accuracy(args):
    for name, m in zoo.MODELS.items():
        if not m.paths(tool.SHARED)[0].exists() or not is_wanted(args, name):
            continue
        found = check_litert_accuracy.measured(args, m)
        line = {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in found.items()}
        line |= {"by": f"{version('litert')}, onnxruntime {packages.version('onnxruntime')}", "cpu": cost.cpu_name(), "date": datetime.date.today().isoformat()}
        tflite_page.write("litert.csv", tflite_page.ACCURACY, [line], ("model",))
        print(line, flush=True)


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--twins", action="store_true", help="compare runtimes with their twins")
    p.add_argument("--accuracy", action="store_true", help="judge conversions in LiteRT")
    p.add_argument("--page", action="store_true", help="only write docs/tflite.md anew")
    p.add_argument("--only", help="networks whose name has one of these words, joined by commas")
    p.add_argument("--runtimes", help=f"which, joined by commas [{','.join(check_twins.RUNTIMES)}]")
    p.add_argument("--samples", type=int, default=1000, help="of each network [%(default)s]")
    p.add_argument("--qconvert", default=tool.find("qconvert"))
    p.add_argument("--values", default=str(ROOT / "build/tests/tools/twin_values"), help="the program that runs a twin")
    return p.parse_args()


def main():
    args = parse()
    os.setpriority(os.PRIO_PROCESS, 0, max(10, os.getpriority(os.PRIO_PROCESS, 0)))
    with tempfile.TemporaryDirectory() as folder:
        args.folder = Path(folder)
        if args.twins:
            measure_twins(args)
        if args.accuracy:
            measure_accuracy(args)
    tflite_page.write_page()
    return 0


if __name__ == "__main__":
    sys.exit(main())
