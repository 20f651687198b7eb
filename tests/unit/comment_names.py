#!/usr/bin/env python3
"""Checks that comments in the sources name only files that exist, by path or by a name that is one in the repository.

usage: comment_names.py CHECKOUT
"""
import re
import sys
from pathlib import Path

FOLDERS = ("lib", "tools", "tests", "bench")
SOURCES = {".c", ".h", ".inc"}
COMMENT = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
NAME = re.compile(r"(?<![\w.<>*/-])((?:[\w.-]+/)*[\w.-]+\.(?:c|h|inc|md|py))(?![\w/])")
# Made by the build.
BUILT = {"onnx/onnx.pb-c.h"}


def is_there(name, at, root, names):
    return name in BUILT or (name in names if "/" not in name else any((base / name).is_file() for base in (root, root / "lib", at.parent)))


def main():
    root = Path(sys.argv[1]).resolve()
    hidden = lambda path: any(part.startswith((".", "build")) for part in path.relative_to(root).parts)
    files = [p for p in root.rglob("*.*") if not hidden(p) and p.is_file()]
    names = {p.name for p in files}
    sources = [p for p in files if p.suffix in SOURCES and p.relative_to(root).parts[0] in FOLDERS]
    faults = []
    for path in sorted(sources):
        text = path.read_text()
        for comment in COMMENT.finditer(text):
            if comment.group().startswith("/*"):
                faults += [f"{path.relative_to(root)}:{text.count(chr(10), 0, comment.start()) + 1}: no {name}"
                           for name in NAME.findall(comment.group()) if not is_there(name, path, root, names)]
    print(*faults, sep="\n")
    print(f"{len(sources)} files, {len(faults)} faults")
    return 1 if faults or len(sources) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
