#!/usr/bin/env python3
"""Checks that no file name occurs twice in lib/ and tools/: a compiler's message and a search by name then tell which file is meant; that
what git tracks in the root is what ROOT names: debris of a trial is noticed there; that no folder of lib/ holds more than MOST source files;
and that the README of each layer with rooms names every source file.

usage: filenames.py CHECKOUT
"""
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

# What each folder has one of.
EVERYWHERE = {"README.md", "meson.build", "main.c"}

ROOT = set(""".ci .clang-format .clang-tidy .editorconfig .git-blame-ignore-revs .github .gitignore .pre-commit-hooks.yaml CHANGELOG.md CITATION.cff
    CONTRIBUTING.md LICENSE README.md SECURITY.md SKILL.md
    action.yml bench cross docs examples include lib man meson.build meson_options.txt packaging provider python scripts share testdata tests
    tools""".split())


MOST = 25

ROOMS = ["quant", "eval", "data", "passes", "forms", "kernels/elem"]


def large_folders(root):
    folders = defaultdict(int)
    for path in (root / "lib").rglob("*.c"):
        folders[path.parent.relative_to(root).as_posix()] += 1
    return [f"{folder} holds {n} source files, {MOST} are the most" for folder, n in sorted(folders.items()) if n > MOST]


def left_out_of_readmes(root):
    for layer in (root / "lib" / room for room in ROOMS):
        text = (layer / "README.md").read_text()
        unnamed = [path for path in sorted(layer.rglob("*.c")) if f"`{path.name}`" not in text and f"/{path.name}`" not in text]
        yield from (f"{path.relative_to(root)}: {layer.relative_to(root)}/README.md does not name it" for path in unnamed)


def tracked_in_root(root):
    if not (root / ".git").exists():
        return set()
    listed = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True, check=True).stdout.splitlines()
    return {path.split("/")[0] for path in listed}


def main():
    root = Path(sys.argv[1]).resolve()
    places = defaultdict(list)
    for path in sorted(p for top in ("lib", "tools") for p in (root / top).rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        places[path.name].append(path.relative_to(root).as_posix())
    faults = [f"{name}: {' '.join(at)}" for name, at in places.items() if len(at) > 1 and name not in EVERYWHERE]
    faults += large_folders(root)
    faults += left_out_of_readmes(root)
    faults += [f"{name} lies in the root, and the list in {Path(__file__).name} has no such name" for name in sorted(tracked_in_root(root) - ROOT)]
    print(*faults, sep="\n")
    print(f"{len(places)} names, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
