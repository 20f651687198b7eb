#!/usr/bin/env python3
"""Counts the names of operators in quotes where none belong: what is known of an operator is in its record (lib/ops).

usage: operator_names.py CHECKOUT

A file may have as many as CEILING says, 0 where it is not listed. A count that grows is a fault: add what you want to know to the record
(docs/extending.md) and ask that. A count that fell is reported, so that its ceiling follows.
"""
import re
import sys
from pathlib import Path

# Layers that may name operators: the records, graph passes (each is about certain operators), how files spell quantized values, what
# deployment targets run, and how operators are written to .tflite.
FREE = ("lib/ops/", "lib/passes/", "lib/forms/", "lib/targets/", "lib/tflite/")

CEILING = {
    "lib/eval/run/measure_machine.c": (4, "a product in float and in integers, to measure the machine by"),
    "lib/eval/pairs/pair_behind.c": (1, "a normalization that one of two models has folded into the layer before it"),
    "lib/data/text/tokenizer_split.c": (1, "a pre-tokenizer that is called Split"),
    "lib/quant/job/annotate.c": (3, "puts the borders of the quantized graph, which have ONNX's names (forms/forms.h)"),
    "lib/quant/inputs/input_fold.c": (4, "puts the border of an input's means in front of Conv, the one operator that pads and has weights by channel"),
    "lib/quant/methods/correct.c": (2, "puts borders into a copy of the graph, and copies of what bodies take from outside"),
    "lib/quant/inputs/norm_draw.c": (4, "makes a value of drawn numbers in a copy of the graph"),
    "lib/quant/simulate/sim_graph.c": (1, "copies a value by a product with 1, which no plan leaves out"),
    "lib/quant/methods/smoothquant.c": (1, "puts a product by the factors in front of layers"),
    "lib/runtime/lower.c": (1, "what Gemm adds to a product that cannot: a step of Add"),
    "lib/runtime/plan.c": (1, "what DequantizeLinear makes is shown to taps as reals"),
    "lib/quant/convert/conversion.c": (5, "counts what stands in quantized models alone"),
    "lib/quant/weights/given_weights.c": (6, "the forms in which files spell weights that came quantized"),
}

ROW = re.compile(r"^\| (\w+) \| \d+-")
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|("(?:\\.|[^"\\\n])*")', re.S)
LITERAL = re.compile(r'"((?:\\.|[^"\\\n])*)"')
# The beginning of a name, compared with an operator's.
PREFIX = re.compile(r'\bstrn?cmp\(\s*[^,"]*\b(?:op|type)\s*,\s*"(\w+)"|\bstrstr\(\s*(?:op|type)\s*,\s*"(\w+)"')


def read_names(page):
    names = {m[1] for m in map(ROW.match, page.read_text().splitlines()) if m}
    if "Conv" not in names or len(names) < 100:
        sys.exit(f"{page}: the table of operators was not understood")
    return names


def names_in(text, names):
    """Names of operators in string literals, of which a literal may list several."""
    code = COMMENT.sub(lambda m: m[1] or " ", text)
    for m in LITERAL.finditer(code):
        words = m[1].split()
        if words and all(w in names for w in words):
            yield from words
    for m in PREFIX.finditer(code):
        if (m[1] or m[2]) not in names:
            yield m[1] or m[2]


def main():
    root = Path(sys.argv[1]).resolve()
    names = read_names(root / "docs/operators.md")
    faults, files = [], 0
    for path in sorted([*root.glob("lib/**/*"), *root.glob("tools/**/*")]):
        rel = path.relative_to(root).as_posix()
        if path.suffix not in (".c", ".h", ".inc") or rel.startswith(FREE):
            continue
        files += 1
        found = list(names_in(path.read_text(errors="replace"), names))
        ceiling, reason = CEILING.get(rel, (0, ""))
        if len(found) > ceiling:
            faults.append(f"{rel}: {len(found)} names of operators, at most {ceiling} may be ({' '.join(found)}): ask their records")
        elif len(found) < ceiling:
            print(f"{rel}: {len(found)} names of operators are left: lower the ceiling of {ceiling} ({reason})")
    print(*faults, sep="\n")
    print(f"{files} files, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
