#!/usr/bin/env python3
"""Checks the include layering against the table in docs/design.md, that of the folders of lib/ops against the one in its README, what
programs see through headers of lib/api, and that libraries neither print nor exit.

usage: layers.py CHECKOUT
"""
import re
import sys
from collections import Counter
from pathlib import Path

ROW = re.compile(r"^\| `(lib/)?(\w+|tools/library)` \| .* \| ([^|]+) \|$")
FOLDER = re.compile(r"^\| `(\w+)/` \| .* \| ([^|]+) \|$", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
SPEAKS = re.compile(r"(?<![\w.>])(printf|puts|putchar|perror|exit|_exit|abort|_Exit)\s*\(")
# What only those who decide may read and write; all others ask for it (quant/job/placed.h).
FEW = {"quant/job/records.h": 12, "quant/job/job.h": 12}
# The guard against files that shrink while they are mapped ends the process: it runs in a signal handler.
MAY_EXIT = {"lib/base/io_guard.c"}


def read_table(design):
    """{layer: set of layers it may include}"""
    rows = [m.groups() for m in map(ROW.match, design.read_text().splitlines()) if m]
    layers = [name for lib, name, _ in rows if lib]
    table = {}
    for lib, name, uses in rows:
        if not lib and name.split("/")[0] != "tools":
            continue
        uses = uses.strip()
        if uses == "all":
            allowed = set(layers)
        elif uses == "all of lib but cli":
            allowed = set(layers) - {"cli"}
        else:
            allowed = set(re.findall(r"\w+", uses))
        unknown = allowed - set(layers)
        if unknown:
            sys.exit(f"{design}: layer '{name}' uses unknown {sorted(unknown)}")
        table[name] = allowed | {name}
    return table


def read_folders(page):
    """{folder: set of folders it may include, itself among them}; a row may name those above it alone, so there are no circles"""
    table = {}
    for name, uses in FOLDER.findall(page.read_text()):
        allowed = set(re.findall(r"\w+", uses))
        if allowed - set(table):
            sys.exit(f"{page}: folder '{name}' uses {sorted(allowed - set(table))}, not above it")
        table[name] = allowed | {name}
    return table


def folder_faults(ops):
    """What files of lib/ops include of its folders, against the table of its README."""
    table = read_folders(ops / "README.md")
    have = {p.name for p in ops.iterdir() if p.is_dir()}
    yield from (f"lib/ops: folder '{d}' is there or in the table of its README.md, not both" for d in sorted(have ^ set(table)))
    for path in sorted(p for p in ops.rglob("*") if p.suffix in (".c", ".h", ".inc")):
        rel = path.relative_to(ops).parts
        allowed = table.get(rel[0], set()) if len(rel) > 1 else set()
        for name in INCLUDE.findall(strip_comments(path.read_text())):
            parts = name.split("/")
            if len(parts) == 3 and parts[0] == "ops" and parts[1] not in allowed:
                yield f'{path.relative_to(ops.parent.parent)}: includes "{name}", but may use only {" ".join(sorted(allowed)) or "files beside the folders"}'


# Tools print texts from files by oct_print and tables, which make them safe; what they hand to a stream as it is are literals.
RAW = re.compile(r'(?<![\w.>])(?:(v?f?printf|puts|putchar|fwrite|write)\s*\(|(fputs|fputc|putc)\s*\((?!\s*(?:["\']|[\w>.\s=-]+\?\s*"[^"]*"\s*:\s*")))')


def strip_comments(text):
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', lambda m: m[0] if m[0][0] == '"' else " ", text, flags=re.S)


def faults_of(path, root, layer, table):
    text = path.read_text(errors="replace")
    rel = path.relative_to(root).as_posix()
    code = strip_comments(text)
    tool = layer.split("/")[0] == "tools"
    for name in INCLUDE.findall(code):
        target = name.split("/")[0]
        if "/" not in name:
            # Without a folder: a generated header, or one beside the file.
            if not name.endswith(".pb-c.h") and not (path.parent / name).exists():
                yield f'{rel}: "{name}" is not beside the file: write "layer/{name}"'
        elif target in table and target not in table[layer]:
            yield f'{rel}: includes "{name}", but {layer} may use only {" ".join(sorted(table[layer] - {layer}))}'
        elif target != layer and name.endswith("_int.h"):
            yield f'{rel}: includes "{name}", which is private to {target}'
        elif target not in table and not tool and (layer, name) != ("api", "octet/octet.h"):
            yield f'{rel}: includes "{name}", which is in no layer'
    if tool:
        for m in RAW.finditer(code):
            yield f"{rel}: calls {m[1] or m[2]}(): texts are printed by oct_print (cli/textfmt.h)"
    if not tool and layer != "cli" and rel not in MAY_EXIT:
        for m in SPEAKS.finditer(re.sub(r'"(?:\\.|[^"\\\n])*"', '""', code)):
            yield f"{rel}: calls {m[1]}(): libraries neither print nor exit"


def seen_by_programs(root):
    """What the three programs see of the inside of the library, though they include headers of base, cli and api alone."""
    seen, files = set(), [p for folder in ("common", "qcalib", "qconvert", "qeval") for p in sorted((root / "tools" / folder).iterdir()) if p.suffix in (".c", ".h")]
    for path in files:
        for name in INCLUDE.findall(strip_comments(path.read_text())):
            inside = root / "lib" / name
            if not inside.exists() or name in seen:
                continue
            seen.add(name)
            files.append(inside)
            if name.split("/")[0] not in ("base", "cli", "api") or name.endswith("_int.h"):
                yield f'{path.relative_to(root).as_posix()}: includes "{name}", which programs would see through it'


def crowds(root):
    """Headers of FEW that too many files include, those of tests among them."""
    of = Counter(name for path in [*root.glob("lib/**/*"), *root.glob("tools/**/*"), *root.glob("tests/**/*")] if path.suffix in (".c", ".h", ".inc")
                 for name in INCLUDE.findall(path.read_text(errors="replace")))
    yield from (f"{name}: {of[name]} files include it, {most} are the most" for name, most in FEW.items() if of[name] > most)


def main():
    root = Path(sys.argv[1]).resolve()
    table = read_table(root / "docs/design.md")
    have = {p.name for p in (root / "lib").iterdir() if p.is_dir()}
    faults = [f"lib/{d}: not in the table of docs/design.md" for d in sorted(have - set(table))]
    count = 0
    for path in sorted([*root.glob("lib/*/**/*"), *root.glob("tools/**/*")]):
        if path.suffix not in (".c", ".h", ".inc"):
            continue
        rel = path.relative_to(root).parts
        layer = rel[1] if rel[0] == "lib" else "tools/library" if rel[1] == "library" else "tools"
        if layer in table:
            faults += faults_of(path, root, layer, table)
        count += 1
    faults += [*folder_faults(root / "lib/ops"), *crowds(root), *seen_by_programs(root)]
    print(*faults, sep="\n")
    print(f"{count} files, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
