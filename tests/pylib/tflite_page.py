"""tests/accuracy/twins.csv and litert.csv, and the parts of docs/tflite.md that are made from them."""
import fcntl
import hashlib
import re

from pylib import table_file, tool

FOLDER = tool.ROOT / "tests/accuracy"
PAGE = tool.ROOT / "docs/tflite.md"
TWINS = ("network", "activations", "twin", "samples", "bytes", "differ", "largest", "refused", "made", "code", "first", "by", "cpu", "date")
ACCURACY = ("model", "metric", "samples", "float", "onnx", "xnnpack", "xnnpack_diff", "xnnpack_low", "xnnpack_high", "reference", "reference_diff",
            "reference_low", "reference_high", "onnx_bytes", "tflite_bytes", "by", "cpu", "date")


def twin_code():
    """Which code of the twins it is: a digest of lib/twins without comments and white space."""
    digest = hashlib.sha256()
    for path in sorted((tool.ROOT / "lib/twins").rglob("*.[ch]")):
        digest.update(re.sub(r"/\*.*?\*/|\s+", "", path.read_text(), flags=re.DOTALL).encode())
    return digest.hexdigest()[:12]


def read(name):
    return table_file.read(FOLDER / name)


def write(name, fields, lines, key):
    """Adds lines; one with the same key as a line of the file takes its place. Several may write at a time."""
    with open(__file__) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        every = {tuple(r[k] for k in key): r for r in read(name)}
        every |= {tuple(str(r[k]) for k in key): r for r in lines}
        table_file.write(FOLDER / name, fields, every.values())


def table(head, lines):
    return "\n".join(["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1), *("| " + " | ".join(line) + " |" for line in lines)]) + "\n"


def accuracy_table():
    def shown(r, key):
        return f"{100 * float(r[key]):.2f} %" if r["metric"] == "top1" else f"{float(r[key]):.3f}"

    def apart(r, kernels):
        scale, digits = (100, 2) if r["metric"] == "top1" else (1, 3)
        return " to ".join(f"{scale * float(r[f'{kernels}_{end}']):+.{digits}f}" for end in ("low", "high"))

    return table(["model", "metric", "samples", "float", ".onnx", "LiteRT, XNNPACK", "better by, 95 %", "LiteRT, reference", "better by, 95 %", "size of the .onnx"],
                 [[r["model"], r["metric"], r["samples"], shown(r, "float"), shown(r, "onnx"), shown(r, "xnnpack"), apart(r, "xnnpack"), shown(r, "reference"),
                   apart(r, "reference"), f"{int(r['tflite_bytes']) / int(r['onnx_bytes']):.3f}"] for r in read("litert.csv")])


RUNTIMES = ("litert", "litert-reference", "tflm", "tosa")


def twins_table():
    def cell(r):
        if r is None:
            return "not run"
        return "refused" if r["refused"] else f"{int(r['differ'])} of {int(r['bytes']) / 1e6:.1f} ({r['samples']}{'' if r['code'] == code else ', older'})"

    rows, code = read("twins.csv"), twin_code()
    found = {(r["network"], r["activations"], r["twin"]): r for r in rows}
    return table(["network", "activations", *RUNTIMES], [[n, a, *(cell(found.get((n, a, t))) for t in RUNTIMES)]
                                                         for n, a in dict.fromkeys((r["network"], r["activations"]) for r in rows)])


def page():
    """docs/tflite.md with the tables of these files."""
    text = PAGE.read_text()
    for heading, made in (("## Accuracy in LiteRT", accuracy_table()), ("## Bytes that differ", twins_table())):
        before, _, rest = text.partition(heading + "\n")
        prose, _, behind = rest.partition("\n| ")
        behind = behind[behind.index("\n## "):] if "\n## " in behind else "\n"
        text = f"{before}{heading}\n{prose}\n{made}{behind}"
    return text


def write_page():
    PAGE.write_text(page())
