#!/usr/bin/env python3
"""Runs the operator test cases of the `onnx` package and compares with what is kept:

    conformance.py RUNNER SOURCE CACHE [--write] [--list] [--op NAME]

RUNNER is run_cases, SOURCE the source folder, CACHE where the cases are made (scripts/make_conformance.py, by the Python that
$OCT_PYTHON names; without it the test is skipped). A case that tests/conformance/passing.txt lists and that does not pass
is a failure; --write rewrites that list and docs/conformance.md. --list prints what does not pass, --op one operator's.
"""
import argparse
import collections
import csv
import os
import subprocess
import sys

PER_CALL = 100  # cases a process

# Cases whose expected values we do not follow, and why.
ALIGN = "the expected values come from the unrounded output size; computed as ONNX Runtime does, from the rounded one"
RANDOM = "what is expected are NumPy's random numbers"
NOISE = "what is expected is the rounding noise of another transform, where the exact result is 0"
DIFFERENT = {
    "test_bernoulli": RANDOM,
    "test_bernoulli_double": RANDOM,
    "test_bernoulli_seed": RANDOM,
    "test_bernoulli_expanded": RANDOM,
    "test_bernoulli_double_expanded": RANDOM,
    "test_bernoulli_seed_expanded": RANDOM,
    "test_dft_inverse": NOISE,
    "test_dft_inverse_opset19": NOISE,
    "test_resize_downsample_scales_cubic_align_corners": ALIGN,
    "test_resize_downsample_scales_linear_align_corners": ALIGN,
}


def cases(cache):
    with open(os.path.join(cache, "index.csv")) as f:
        version = f.readline()[2:].split(",")[0].strip()
        return version, [(r[0], r[1], r[3], r[4]) for r in csv.reader(f)]


def run(runner, cache, todo):
    """name -> (result, ways, reason). A case that ends the runner is a failure; the rest goes on without it."""
    got = {}
    while todo:
        part = todo[:PER_CALL]
        args = [x for c in part for x in (c[0], c[2], c[3])]
        try:
            p = subprocess.run([runner, cache] + args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
            end, text = p.returncode, p.stdout
            crash = "the runner ended with %d" % end
        except subprocess.TimeoutExpired as e:
            end, text, crash = -1, e.stdout or b"", "it took more than 300 seconds"
        lines = [x.split("\t") for x in text.decode(errors="replace").splitlines() if x.count("\t") == 3]
        for name, result, ways, reason in lines:
            got[name] = (result, ways, reason)
        if len(lines) < len(part):
            got[part[len(lines)][0]] = ("fail", "", crash)
            todo = todo[len(lines) + 1:]
        else:
            todo = todo[PER_CALL:]
        if end == 2:
            sys.exit("the runner did not take its arguments")
    return got


def table(all_cases, got):
    """Rows of counts an operator: (operator, passed, failed, not supported)."""
    rows = collections.defaultdict(lambda: [0, 0, 0])
    for name, op, _, _ in all_cases:
        rows[op]["pass fail unsupported".split().index(got[name][0])] += 1
    return sorted((op, *n) for op, n in rows.items())


def short(reason):
    """Without the node's name, which says nothing in these models."""
    while reason.startswith("node ") and ": " in reason:
        reason = reason.split(": ", 1)[1]
    return reason.replace("|", "\\|")


def page(version, all_cases, got):
    rows = table(all_cases, got)
    total = [sum(r[k] for r in rows) for k in (1, 2, 3)]
    known = [r for r in rows if r[1] + r[2]]
    out = ["# Conformance", "",
           "Written by `tests/conformance/conformance.py --write`: the operator test cases of the `onnx` package (%s), through" % version,
           "the runtime. Each case is run with its inputs given when running, with all but the first constant, and with all",
           "constant. It passes when at least one of these can be run and none gives a wrong result; it is not supported when",
           "the library says so (an unknown operator, a type, a shape that depends on data) for each of them. 16-bit floats may",
           "differ by two units in the last place: the expected values are rounded at each step inside an operator, ours after it.", "",
           "%d cases: %d passed, %d failed, %d not supported." % (len(all_cases), *total), "",
           "| operator | passed | failed | not supported |", "|---|---|---|---|"]
    out += ["| %s | %d | %d | %d |" % r for r in known]
    out += ["", "No case of these operators can be run: " + ", ".join("%s (%d)" % (r[0], r[3]) for r in rows if not r[1] + r[2]) + "."]
    for result, title in (("fail", "Failed"), ("unsupported", "Not supported, of operators above")):
        names = [c for c in all_cases if got[c[0]][0] == result and c[1] in {r[0] for r in known}]
        out += ["", "## " + title, ""]
        out += ["- %s: %s" % (c[0], DIFFERENT.get(c[0]) or short(got[c[0]][2])) for c in names] or ["None."]
    return "\n".join(out) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("runner"), p.add_argument("source"), p.add_argument("cache")
    p.add_argument("--write", action="store_true"), p.add_argument("--list", action="store_true"), p.add_argument("--op")
    a = p.parse_args()
    python = os.environ.get("OCT_PYTHON")
    if not python:
        print("skipped: OCT_PYTHON names no Python with the onnx package")
        return 77
    made = subprocess.run([python, os.path.join(a.source, "scripts", "make_conformance.py"), a.cache])
    if made.returncode:
        print("skipped: the cases could not be made")
        return 77
    version, every = cases(a.cache)
    chosen = [c for c in every if not a.op or c[1] == a.op]
    got = run(a.runner, a.cache, chosen)
    for row in table(chosen, got):
        print("%-28s %4d passed %4d failed %4d not supported" % row)
    for name, *_ in chosen:
        if a.list and got[name][0] != "pass":
            print("%s: %s: %s" % (name, got[name][0], got[name][2]))
    kept = os.path.join(a.source, "tests", "conformance", "passing.txt")
    if a.write and not a.op:
        with open(kept, "w") as f:
            f.write("".join(c[0] + "\n" for c in every if got[c[0]][0] == "pass"))
        with open(os.path.join(a.source, "docs", "conformance.md"), "w") as f:
            f.write(page(version, every, got))
    want = set(open(kept).read().split()) if os.path.exists(kept) else set()
    lost = [c[0] for c in chosen if c[0] in want and got[c[0]][0] != "pass"]
    for name in lost:
        print("no longer passes: %s: %s" % (name, got[name][2]))
    count = collections.Counter(got[c[0]][0] for c in chosen)
    print("%d passed, %d failed, %d not supported, %d no longer pass" % (count["pass"], count["fail"], count["unsupported"], len(lost)))
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
