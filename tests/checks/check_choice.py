#!/usr/bin/env python3
"""Converts networks by default and holds what qconvert expects of them, by the target's tables of costs, to its promise: no slower than float, and where costs chose
no slower than all of it static or dynamic. Models whose run is so short that nothing is chosen are named.

    check_choice.py                      # small networks of pylib/paced.py, for some of which costs must choose; nothing is timed
    check_choice.py --real [NAME...]     # those at deployed sizes

--time also runs each in ONNX Runtime, in turns: the fastest of 20 must be no slower than float, and at most 5 % slower than the better of all static and all dynamic.

Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np

from pylib import paced, peer, tool

NEAR = 1.05  # of the better of all static and all dynamic
SHORT, LOSS = 500, 50  # microseconds: below this time in float as much may be lost
WAYS = {"default": [], "static": ["--scheme", "static"], "dynamic": ["--scheme", "dynamic"]}


def converted(qconvert, folder, name, way):
    """The report of a conversion without recovery of accuracy, which may leave layers float for the loss alone."""
    report = folder / "r.json"
    subprocess.run([qconvert, folder / f"{name}.onnx", "--data", folder / f"{name}.npy", "-o", folder / f"{name}.{way}.onnx", "-q", "--no-recover",
                    "--json", report, *WAYS[way]], check=True)
    return json.loads(report.read_text())


def faults(name, reports):
    expected = {way: r["expected"] for way, r in reports.items()}
    chose = any(layer["why"].startswith("by cost") for layer in reports["default"]["layers"])
    for i, own in enumerate(expected["default"]):
        limit = min([own["float_us"], *(expected[way][i]["us"] for way in expected if chose)])
        room = LOSS if own["float_us"] < SHORT else 0
        if own["us"] > limit * (1 + 1e-6) + room:
            yield f"{name}: {own['us']:.0f} us are expected by {own['costs']}, {limit:.0f} us are possible"
    for layer in reports["default"]["layers"]:
        if layer["why"].startswith("by cost") and layer["scheme"] not in ("float", "dynamic", "stored"):
            yield f"{name}: {layer['name']} is {layer['scheme']}, {layer['why']}"


def times(folder, name, rounds=20):
    """Least milliseconds of a run on one thread, in turns."""
    files = {"float": folder / f"{name}.onnx", **{way: folder / f"{name}.{way}.onnx" for way in WAYS}}
    sessions = {way: peer.session(path) for way, path in files.items()}
    x, least = np.load(folder / f"{name}.npy")[:1], {}
    for _ in range(rounds + 2):
        for way, s in sessions.items():
            began = time.process_time()
            s.run(None, {"x": x})
            least[way] = min(least.get(way, 1e9), 1e3 * (time.process_time() - began))
    return least


def slow(name, least):
    """Whether measured times miss the bars."""
    limit = min(least["float"], NEAR * min(least["static"], least["dynamic"]))
    if least["default"] > limit:
        yield f"{name}: {least['default']:.2f} ms were measured, {limit:.2f} ms are allowed"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*")
    p.add_argument("--real", action="store_true", help="networks at deployed sizes")
    p.add_argument("--time", action="store_true", help="also run them in ONNX Runtime: processor time, least of 20")
    p.add_argument("--qconvert", help="our qconvert [default: $OCT_BUILD or build/, then PATH]")
    args = p.parse_args()
    qconvert, bad, chose = tool.find("qconvert", args.qconvert), [], 0
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for name in args.names or (paced.REAL if args.real else paced.SMALL):
            paced.write(name, folder / f"{name}.onnx")
            reports = {way: converted(qconvert, folder, name, way) for way in WAYS}
            bad += faults(name, reports)
            by_cost = sum(layer["why"].startswith("by cost") for layer in reports["default"]["layers"])
            chose += by_cost > 0
            shares = [f"{e['costs']}: {e['us'] / e['float_us']:.2f} of {e['float_us']:.0f} us" for e in reports["default"]["expected"]]
            print(f"{name}: {by_cost} nodes by cost; {', '.join(shares)}")
            if args.time:
                least = times(folder, name)
                print(" ", ", ".join(f"{way} {ms:.2f} ms ({ms / least['float']:.2f})" for way, ms in least.items()), flush=True)
                bad += slow(name, least)
    if not (chose or args.names or args.real):
        bad.append("costs chose nothing for any of these networks, though they are such that they should")
    print(*bad, sep="\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
