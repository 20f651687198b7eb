#!/usr/bin/env python3
"""Writes lib/ops/signatures.inc: the operators that ONNX and ONNX Runtime know, and the types they take.

    make_signatures.py [--check]

From the schemas of the packages onnx (the default domain, every version) and onnxruntime (operators of com.microsoft that Octet
has, and those that it adds to the default domain). --check: exit 1 when the file is out of date; exit 77 when it was made with
other versions of these packages, since new ones bring new operators.
Needs Python packages: runs itself with OCT_PYTHON when that is set. Exit 77 without them.
"""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("onnx", "onnxruntime")
import onnxruntime.capi.onnxruntime_pybind11_state as ort
from onnx import TensorProto, defs

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "lib/ops/signatures.inc"
HEAD = """/* Operators and the types they take, by tests/generate/make_signatures.py: OCT_SIGNATURE(domain, operator, since, inputs, outputs, sets). */
"""
VERSIONS = f"onnx {packages.version('onnx')} and onnxruntime {packages.version('onnxruntime')}"
NAMES = {"float": "FLOAT", "double": "DOUBLE"}


def bit(kind):
    """Of an element type; sequences, optionals and types that Octet has no number for have none."""
    m = re.fullmatch(r"tensor\((\w+)\)", kind)
    name = NAMES.get(m[1], m[1].upper()) if m else ""
    number = getattr(TensorProto, name, None)
    return 1 << number if number is not None and number <= 26 else 0


def signature(kinds, inputs, outputs):
    """(inputs, outputs, masks): a letter for each type; behind the last '*' when it repeats with one type, '~' with any."""
    letters, masks = {}, []

    def part(params):
        text = ""
        for name, variadic, same in params:
            if name not in letters:
                letters[name] = chr(ord("A") + len(letters))
                mask = 0
                for k in kinds.get(name, [name]):
                    mask |= bit(k)
                masks.append(mask)
            text += letters[name] + (("*" if same else "~") if variadic else "")
        return text

    return part(inputs), part(outputs), masks


def of_onnx(s):
    variadic = defs.OpSchema.FormalParameterOption.Variadic
    params = [[(p.type_str, p.option == variadic, p.is_homogeneous) for p in side] for side in (s.inputs, s.outputs)]
    return signature({c.type_param_str: c.allowed_type_strs for c in s.type_constraints}, *params)


def of_ort(s):
    def is_variadic(p):
        return "Variadic" in str(p.option)

    params = [[(p.typeStr, is_variadic(p), p.isHomogeneous) for p in side] for side in (s.inputs, s.outputs)]
    return signature({c.type_param_str: c.allowed_type_strs for c in s.type_constraints}, *params)


def line(domain, op, since, inputs, outputs, masks):
    sets = ", ".join(f"0x{m:x}" for m in masks) or "0"
    return f'OCT_SIGNATURE("{domain}", "{op}", {since}, "{inputs}", "{outputs}", {sets})\n'


def table():
    known = [s for s in defs.get_all_schemas_with_history() if s.domain == ""]
    first = {}
    for s in known:
        first[s.name] = min(first.get(s.name, s.since_version), s.since_version)
    rows = [("", s.name, s.since_version, *of_onnx(s)) for s in known]
    ours = re.findall(r'"(\w+)"', "".join(p.read_text() for p in sorted((ROOT / "lib/ops").glob("*/op_*.c"))))
    for s in ort.get_all_operator_schema():
        if s.domain == "com.microsoft" and s.name in ours:
            rows.append((s.domain, s.name, s.since_version, *of_ort(s)))
        elif s.domain == "" and s.since_version < first.get(s.name, 1 << 30):
            rows.append(("", s.name, s.since_version, "", "", []))  # what old exporters and optimizers write
    text = HEAD + f"/* Made with {VERSIONS}. */\n" + f"#define OCT_SIGNATURES_OPSET {defs.onnx_opset_version()} /* of the default domain: the newest that is all here */\n"
    return text + "".join(line(*r) for r in sorted(rows, key=lambda r: r[:3]))


def main():
    text = table()
    if "--check" not in sys.argv:
        OUT.write_text(text)
        return 0
    if VERSIONS not in OUT.read_text():
        print(f"skipped: {OUT.relative_to(ROOT)} was not made with {VERSIONS}, which are here")
        return 77
    if OUT.read_text() != text:
        print(f"{OUT.relative_to(ROOT)} is out of date: run tests/generate/make_signatures.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
