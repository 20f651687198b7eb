#!/usr/bin/env python3
"""Runs the test cases of the `onnx` package with `qeval --check` and compares with what is kept:

    conformance.py QEVAL RUNNER SOURCE CACHE [--write] [--list] [--op NAME]

RUNNER is run_cases, SOURCE the source folder, CACHE where the cases are made (tests/checks/make_conformance.py, by the Python that
$OCT_PYTHON names; without it the test is skipped). Every case passes but those of tests/conformance/exceptions.txt: a case that is
listed there and passes is an error, as is one that does not pass and is not listed (for the version of the package that the list
names; another one may bring other cases, which are printed). A case passes when the tool ends with 0 for each of its data sets and
the runner finds nothing wrong with it. --write rewrites docs/conformance.md. --list prints what does not pass, --op one operator's.
"""
import argparse
import collections
import csv
import os
import subprocess
import sys

PER_CALL = 100  # cases a process
KINDS = {"node": "made for one operator, or for the nodes of its function", "simple": "small models",
         "pytorch-operator": "PyTorch's operators, exported", "pytorch-converted": "PyTorch's modules, exported"}
MOST = 0.03  # exceptions, as a part of all


def cases(cache):
    """The package's version, and (name, operator, rtol, atol) of each case."""
    with open(os.path.join(cache, "index.csv")) as f:
        version = f.readline()[2:].split(",")[0].strip()
        return version, [(r[0], r[1], r[3], r[4]) for r in csv.reader(f)]


def exceptions(path):
    """The version that the list is for, and name -> reason. A line in brackets is the reason of the names that follow."""
    version, reason, names = "", None, {}
    for n, line in enumerate(open(path), 1):
        line = line.strip()
        if n == 1:
            version = line.lstrip("# ")
        elif line.startswith("[") and line.endswith("]"):
            reason = line[1:-1]
        elif line and not line.startswith("#"):
            if reason is None or line in names:
                sys.exit("%s:%d: a case without a reason, or twice" % (path, n))
            names[line] = reason
    return version, names


UNSUPPORTED = 5  # the tool's exit status


def check(qeval, cache, case):
    """(result, reason) of a case by the tool."""
    name, _, rtol, atol = case
    folder = os.path.join(cache, name)
    for data in sorted(d for d in os.listdir(folder) if d.startswith("test_data_set_")):
        args = [qeval, os.path.join(folder, "model.onnx"), "--data", os.path.join(folder, data), "--check", "--rtol", rtol, "--atol", atol, "--quiet"]
        try:
            p = subprocess.run(args, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300)
        except subprocess.TimeoutExpired:
            return "fail", "it took more than 300 seconds"
        if p.returncode:
            lines = p.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
            return "unsupported" if p.returncode == UNSUPPORTED else "fail", "exit %d: %s" % (p.returncode, lines[0])
    return "pass", ""


def run_ways(runner, cache, todo):
    """name -> what is wrong with the ways that the tool has not run. A case that ends the runner is wrong; the rest goes on without it."""
    wrong = {}
    while todo:
        part = todo[:PER_CALL]
        args = [x for c in part for x in (c[0], c[2], c[3])]
        try:
            p = subprocess.run([runner, cache] + args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
            end, text = p.returncode, p.stdout
            crash = "the runner ended with %d" % end
        except subprocess.TimeoutExpired as e:
            end, text, crash = -1, e.stdout or b"", "it took more than 300 seconds"
        lines = [x.split("\t") for x in text.decode(errors="replace").splitlines() if x.count("\t") == 2]
        wrong.update((name, reason) for name, result, reason in lines if result != "pass")
        if len(lines) < len(part):
            wrong[part[len(lines)][0]] = crash
            todo = todo[len(lines) + 1:]
        else:
            todo = todo[PER_CALL:]
        if end == 2:
            sys.exit("the runner did not take its arguments")
    return wrong


def run(qeval, runner, cache, todo):
    """name -> (result, reason)."""
    got = {c[0]: check(qeval, cache, c) for c in todo}
    for name, reason in run_ways(runner, cache, todo).items():
        if got[name][0] == "pass":
            got[name] = ("fail", reason)
    return got


def table(all_cases, got, key):
    """Rows of counts: (key, passed, failed, not supported)."""
    rows = collections.defaultdict(lambda: [0, 0, 0])
    for c in all_cases:
        rows[key(c)]["pass fail unsupported".split().index(got[c[0]][0])] += 1
    return [(k, *n) for k, n in rows.items()]


def kind_of(case):
    return case[0].split("/")[0]


def operator_of(case):
    return case[1]


def package_operators(cache, source):
    """(domain, name, is a function, has a record) of the package's operators, those in preview and for training apart."""
    here = set()
    domain = None
    for line in open(os.path.join(source, "docs", "operators.md")):
        if line.startswith("## "):
            domain = line[3:].strip().replace("Default domain", "")
        elif domain is not None and line.startswith("| ") and not line.startswith("| operator"):
            here.add((domain, line.split("|")[1].strip()))
    with open(os.path.join(cache, "operators.csv")) as f:
        return [(r[0], r[1], r[3] == "1", (r[0], r[1]) in here) for r in csv.reader(f) if "preview" not in r[0]]


def operators_text(operators):
    out = ["## The package's operators", "",
           "Of the newest versions, without training and preview. An operator that ONNX defines by a function of others has a record of",
           "its own here, so that no function needs to be put in its place.", ""]
    for domain, title in (("", "default domain"), ("ai.onnx.ml", "ai.onnx.ml")):
        own = [o for o in operators if o[0] == domain]
        functions = [o for o in own if o[2]]
        lacking = [o[1] for o in own if not o[3]]
        out.append("- %s: %d operators, %d of them functions; without a record: %s." % (title, len(own), len(functions), ", ".join(lacking) or "none"))
    return out


def page(version, all_cases, got, listed, operators):
    ops = sorted(table(all_cases, got, operator_of))
    total = [sum(r[k] for r in ops) for k in (1, 2, 3)]
    out = ["# Conformance", "",
           "Written by `tests/conformance/conformance.py --write`: the test cases of the `onnx` package (%s), by `qeval --check`, with the" % version,
           "tolerances that the package gives them. A case passes when the tool ends with 0, and is not supported when it ends with 5",
           "(an unknown operator, a type, a shape that depends on data). No case may give a wrong result when all inputs but the",
           "first are constant, or when all are. Results must have the same bytes on every instruction set, with one thread and with two.",
           "16-bit floats may differ by two units in the last place: the expected values are rounded at each step inside an operator,",
           "ours after it.", "",
           "%d cases: %d passed, %d failed, %d not supported: %.1f %% are exceptions." % (len(all_cases), *total, 100 * (total[1] + total[2]) / len(all_cases)),
           "", "| kind | what | passed | failed | not supported |", "|---|---|---|---|---|"]
    out += ["| %s | %s | %d | %d | %d |" % (r[0], KINDS[r[0]], *r[1:]) for r in sorted(table(all_cases, got, kind_of), key=lambda r: list(KINDS).index(r[0]))]
    out += ["", "## Exceptions", "", "From `tests/conformance/exceptions.txt`, which the test compares with what it finds.", ""]
    reasons = collections.defaultdict(list)
    for name, *_ in all_cases:
        if got[name][0] != "pass":
            reasons[listed.get(name, got[name][1])].append(name)
    for reason, names in sorted(reasons.items(), key=lambda x: (-len(x[1]), x[0])):
        failed = sum(got[n][0] == "fail" for n in names)
        what = "failed" if failed == len(names) else "not supported" if not failed else "%d failed, the others not supported" % failed
        out += ["- **%d, %s**: %s" % (len(names), what, reason) + "".join("\n  `%s`" % n for n in names)]
    out += [""] + operators_text(operators)
    odd, alone = [r for r in ops if r[2] or r[3]], [r for r in ops if r[0] != "several"]
    out += ["", "## By operator", "", "Of %d operators, %d pass all their cases. The others, and cases of several operators:" % (len(alone), sum(r not in odd for r in alone)),
            "", "| operator | passed | failed | not supported |", "|---|---|---|---|"]
    out += ["| %s | %d | %d | %d |" % r for r in odd]
    return "\n".join(out) + "\n"


def faults(version, chosen, got, listed_for, listed):
    """Lines of what differs from the list."""
    names = {c[0] for c in chosen}
    out = ["passes, but is an exception of the list: " + n for n in listed if n in names and got[n][0] == "pass"]
    if version != listed_for:
        return out
    out += ["does not pass, and is not in the list: %s: %s" % (n, got[n][1]) for n in sorted(names) if got[n][0] != "pass" and n not in listed]
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("qeval"), p.add_argument("runner"), p.add_argument("source"), p.add_argument("cache")
    p.add_argument("--write", action="store_true"), p.add_argument("--list", action="store_true"), p.add_argument("--op")
    a = p.parse_args()
    python = os.environ.get("OCT_PYTHON")
    if not python:
        print("skipped: OCT_PYTHON names no Python with the onnx package")
        return 77
    made = subprocess.run([python, os.path.join(a.source, "tests", "checks", "make_conformance.py"), a.cache])
    if made.returncode:
        print("the cases could not be made" if made.returncode != 77 else "skipped: $OCT_PYTHON has no onnx package")
        return made.returncode
    version, every = cases(a.cache)
    listed_for, listed = exceptions(os.path.join(a.source, "tests", "conformance", "exceptions.txt"))
    chosen = [c for c in every if not a.op or c[1] == a.op]
    got = run(a.qeval, a.runner, a.cache, chosen)
    for row in sorted(table(chosen, got, operator_of)):
        print("%-28s %4d passed %4d failed %4d not supported" % row)
    for name, *_ in chosen:
        if got[name][0] != "pass" and (a.list or version != listed_for):
            print("%s: %s: %s" % (name, *got[name]))
    operators = package_operators(a.cache, a.source)
    if a.write and not a.op:
        with open(os.path.join(a.source, "docs", "conformance.md"), "w") as f:
            f.write(page(version, every, got, listed, operators))
    wrong = faults(version, chosen, got, listed_for, listed)
    if not a.op and version == listed_for:
        wrong += ["in the list, but no case: " + n for n in listed if n not in got]
        wrong += ["a function without a record: " + o[1] for o in operators if o[0] == "" and o[2] and not o[3]]
        wrong += ["more than %g %% are exceptions" % (100 * MOST)] * (len(listed) > MOST * len(every))
    print("\n".join(wrong))
    count = collections.Counter(got[c[0]][0] for c in chosen)
    print("%d passed, %d failed, %d not supported, %d unlike the list" % (count["pass"], count["fail"], count["unsupported"], len(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
