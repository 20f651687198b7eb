#!/usr/bin/env python3
"""Checks that no file name occurs twice in lib/ and tools/: a compiler's message and a search by name then tell which file is meant.

usage: filenames.py CHECKOUT
"""
import sys
from collections import defaultdict
from pathlib import Path

# What each folder has one of.
EVERYWHERE = {"README.md", "meson.build", "main.c"}


def main():
    root = Path(sys.argv[1]).resolve()
    places = defaultdict(list)
    for path in sorted(p for top in ("lib", "tools") for p in (root / top).rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        places[path.name].append(path.relative_to(root).as_posix())
    faults = [f"{name}: {' '.join(at)}" for name, at in places.items() if len(at) > 1 and name not in EVERYWHERE]
    print(*faults, sep="\n")
    print(f"{len(places)} names, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
