#!/usr/bin/env python3
"""Which operators take 16-bit floats: the records of lib/ops against the schemas of the onnx package.

    half_types.py SOURCE

Skipped unless $OCT_PYTHON names a Python with onnx."""
import os
import re
import subprocess
import sys
from pathlib import Path

LEAST = {"float16": 13, "bfloat16": 22}
QUANTIZERS = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul"}
BITS = {"BitCast"}  # in another type they would be others
ANY_TYPE = {("Resize", "roi"), ("Resize", "scales"), ("Upsample", "scales"), ("Dropout", "ratio")}  # stay float32


def takes(schema, kind):
    """Whether every float input may be of that type; None: it has none."""
    types = {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}
    params = [types.get(p.type_str, {p.type_str}) for p in schema.inputs if (schema.name, p.name) not in ANY_TYPE]
    real = [t for t in params if "tensor(float)" in t]
    return all(f"tensor({kind})" in t for t in real) if real else None


def main():
    from onnx import defs
    source = Path(sys.argv[1])
    text = "".join(p.read_text() for p in sorted((source / "lib/ops").glob("*/op_*.c")))
    table = {}
    for record in text.split(";\n"):
        name = re.search(r'(?:OCT_SCHEMA\(|^[A-Z]+\(\w+, )"(\w+)"', record, re.M)
        for trait, kind in (("f16", "float16"), ("bf16", "bfloat16")):
            first = re.search(rf"\.{trait} = (-?\d+)", record)
            if name and first:
                table.setdefault(name[1], {})[kind] = max(0, int(first[1]))
    ops = {name for name in re.findall(r'"([A-Z]\w+)"', text) if defs.has(name)} | set(table)
    wrong, compared = [], 0
    for op in sorted(ops - QUANTIZERS - BITS):
        if op.startswith("Optional") or ("Sequence" in op and op != "ReverseSequence"):
            continue
        for kind, least in LEAST.items():
            for opset in range(least, defs.onnx_opset_version() + 1):
                try:
                    schema = defs.get_schema(op, opset, "")
                except defs.SchemaError:
                    continue
                want = takes(schema, kind)
                if schema.deprecated or want is None:
                    continue
                first = table.get(op, {}).get(kind, least)
                compared += 1
                if want != bool(first and opset >= first):
                    wrong.append(f"{op} of opset {opset} {'takes' if want else 'does not take'} {kind}")
    print("\n".join(wrong + [f"{compared} compared, {len(wrong)} wrong"]))
    return 1 if wrong or compared < 1000 else 0


if __name__ == "__main__":
    python = os.environ.get("OCT_PYTHON")
    if not python:
        print("skipped: OCT_PYTHON names no Python with the onnx package")
        sys.exit(77)
    if len(sys.argv) == 2:
        sys.exit(subprocess.run([python, *sys.argv, "inner"], check=False).returncode)
    sys.exit(main())
