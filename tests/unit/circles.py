#!/usr/bin/env python3
"""Checks by the symbols of object files which files of lib/ need each other in circles: whoever changes one of them has to know them all.

usage: circles.py BUILD [NM]

A file needs another if its object uses a symbol that the other's defines. Includes would show less: private headers are shared by many.
"""
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

MOST_FILES = 60     # in circles of more than one file, all together
MOST_IN_ONE = 8
# Circles that reach over folders of a layer: their files, and the reason.
ACROSS = {
    frozenset({"lib/ops/ops.c", "lib/ops/core/quantized.c", "lib/ops/quantized/op_quantize.c"}):
        "the quantizers' records compute borders, for which the record of the operator between them is looked up",
}


def objects(build):
    """{object: source below the root} of lib/."""
    root = build.resolve().parent
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = (Path(entry["directory"]) / entry["file"]).resolve()
        out = Path(entry["directory"]) / entry["output"]
        if out.is_file() and source.is_relative_to(root / "lib") and out.parent.name in ("liboctet.a.p", "liboctbase.a.p", "liboctkernels.a.p"):
            found[str(out)] = source.relative_to(root).as_posix()
    return found


def needs(files, nm):
    """{source: {source that it needs: one of the symbols}}"""
    listed = subprocess.run([nm, "-A", "-g", *files], capture_output=True, text=True, check=True).stdout
    defined, used = {}, defaultdict(set)
    for line in listed.splitlines():
        name, rest = line.split(":", 1)
        word = rest.split()
        if len(word) == 2 and word[0] == "U":
            used[files[name]].add(word[1])
        elif len(word) == 3 and word[1] in "TDBRVWCG":
            defined[word[2]] = files[name]
    return {source: {defined[s]: s for s in sorted(used[source]) if defined.get(s, source) != source} for source in files.values()}


def circles(graph):
    """Strongly connected components of more than one file (Tarjan 1972), largest first."""
    index, low, stack, found = {}, {}, [], []
    work = []
    for start in graph:
        if start in index:
            continue
        work.append((start, iter(graph[start])))
        index[start] = low[start] = len(index)
        stack.append(start)
        while work:
            at, rest = work[-1]
            for to in rest:
                if to not in index:
                    index[to] = low[to] = len(index)
                    stack.append(to)
                    work.append((to, iter(graph[to])))
                    break
                if to in stack:
                    low[at] = min(low[at], index[to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[at])
                if low[at] == index[at]:
                    cut = stack.index(at)
                    if len(stack) - cut > 1:
                        found.append(frozenset(stack[cut:]))
                    del stack[cut:]
    return sorted(found, key=lambda c: (-len(c), min(c)))


def told(circle, graph):
    """The files, each with what it needs of the others."""
    return "".join(f"\n  {f}: " + ", ".join(f"{graph[f][t]} of {Path(t).name}" for t in sorted(graph[f]) if t in circle) for f in sorted(circle))


def main():
    build, nm = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "nm"
    files = objects(build)
    graph = needs(files, nm)
    found = circles(graph)
    faults = [f"a circle of {len(c)} files, {MOST_IN_ONE} are the most:{told(c, graph)}" for c in found if len(c) > MOST_IN_ONE]
    across = {c for c in found if len({Path(f).parent for f in c}) > 1}
    faults += [f"a circle over folders, for which no reason is listed:{told(c, graph)}" for c in across - set(ACROSS)]
    faults += [f"no such circle: {', '.join(sorted(c))}; take it from the list" for c in set(ACROSS) - across]
    total = sum(map(len, found))
    if total > MOST_FILES:
        faults.append(f"{total} files stand in circles, {MOST_FILES} are the most: " + "; ".join(" ".join(sorted(c)) for c in found))
    print(*faults, sep="\n")
    print(f"{len(graph)} files, {total} in {len(found)} circles, {len(faults)} faults")
    return 1 if faults or len(graph) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
