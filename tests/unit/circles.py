#!/usr/bin/env python3
"""Checks that subjects do not include each other in circles within a layer of lib/, or within a tool: whoever reads one of them would have to
read all.

usage: circles.py CHECKOUT

A subject is x.c (or x.inc) with its header x.h and its private header x_int.h, by which the files of the folder share what x is made of.
"""
import re
import sys
from collections import defaultdict
from pathlib import Path

from layers import INCLUDE, strip_comments

# Includes that close a circle: (who, whom) within lib/, and why. What is listed and not needed is a fault, too.
EXCEPTIONS = {
    ("kernels/simd_portable", "kernels/simd"): "replaces intrinsics of the header that includes it",
}


def subject_of(path, top):
    return re.sub(r"_int$", "", path.relative_to(top).with_suffix("").as_posix())


def read_includes(folder, top):
    """{subject: subjects of the same folder whose headers it includes}"""
    uses = defaultdict(set)
    for path in sorted(p for p in folder.rglob("*") if p.suffix in (".c", ".h", ".inc")):
        for name in INCLUDE.findall(strip_comments(path.read_text())):
            target = next((t for t in (top / name, path.parent / name) if t.is_file()), None)
            if target and folder in target.parents and subject_of(target, top) != subject_of(path, top):
                uses[subject_of(path, top)].add(subject_of(target, top))
    return uses


def way(uses, start, end):
    """The subjects on a shortest way along includes, or None."""
    before, queue = {start: None}, [start]
    for at in queue:
        if at == end:
            path = [at]
            while before[path[0]]:
                path.insert(0, before[path[0]])
            return path
        for to in sorted(uses[at] if at in uses else ()):
            if to not in before:
                before[to] = at
                queue.append(to)
    return None


def faults_of(uses, exceptions):
    """Circles that are left without the exceptions, and exceptions that are no include, or whose circle is open without them."""
    left = {a: {b for b in to if (a, b) not in exceptions} for a, to in uses.items()}
    seen = set()
    for a, to in sorted(left.items()):
        for b in sorted(to):
            circle = way(left, b, a)
            if circle and frozenset(circle) not in seen:
                seen.add(frozenset(circle))
                yield "circle: " + " -> ".join([a, *circle])
    for a, b in exceptions:
        if b not in uses.get(a, ()) or not way(left, b, a):
            yield f"{a} -> {b} closes no circle: take it from the exceptions"


def main():
    root = Path(sys.argv[1]).resolve()
    faults, count = [], 0
    for top in (root / "lib", root / "tools"):
        for folder in sorted(p for p in top.iterdir() if p.is_dir()):
            uses = read_includes(folder, top)
            layer = {e for e in EXCEPTIONS if top.name == "lib" and e[0].split("/")[0] == folder.name}
            faults += faults_of(uses, layer)
            count += len(uses)
    print(*faults, sep="\n")
    print(f"{count} subjects, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
