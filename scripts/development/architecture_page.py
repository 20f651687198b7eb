#!/usr/bin/env python3
"""Writes docs/architectures.md from tests/accuracy/architectures.csv, and that table from lines of tests/checks/check_architectures.py.

    scripts/development/architecture_page.py [--check] [SOURCE=LINES...]

SOURCE names where the networks of a file of lines come from: generated, torch, keras, trained. Given some, the table is written anew from them. --check writes
nothing, and exits 1 where the page is not what the table gives (a test does so).
"""
import json
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))  # for pylib
from pylib import table_file

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE, TABLE = ROOT / "docs/architectures.md", ROOT / "tests/accuracy/architectures.csv"
FIELDS = ("source", "name", "scheme", "weights", "ratio", "layers", "converted", "kept", "same", "agrees", "turns", "theirs", "within", "failed")
SOURCES = {"generated": "written by `tests/pylib/architectures.py`, in the forms of exporters",
           "torch": "exported by `scripts/development/export_architectures.py` from torchvision, timm and transformers",
           "keras": "exported by the same script from Keras and scikit-learn",
           "trained": "trained, of the zoo in `tests/pylib/zoo.py`"}
SCHEMES = ("float", "static", "static-operators", "static-s8", "static-16", "dynamic", "weights-8", "weights-4", "fp16", "bf16")
LARGE = 64 << 10


def collected(pairs):
    """Rows of the last lines of each network and scheme."""
    last = {}
    for source, path in pairs:
        for text in Path(path).read_text().splitlines():
            line = json.loads(text)
            last[source, line["name"], SCHEMES.index(line["scheme"])] = line | {"source": source, "failed": "; ".join(line["failed"])}
    rows = [last[key] for key in sorted(last)]
    return [{f: round(r[f], 2 if f in ("turns", "theirs", "within") else 1) if isinstance(r.get(f), float) and f != "ratio" else r.get(f, "") for f in FIELDS} for r in rows]


def table(head, lines):
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in [head, ["---"] + ["---:"] * (len(head) - 1), *lines])


def numbers(rows, field):
    return [float(r[field]) for r in rows if r[field] != ""]


def by_scheme(rows, weights):
    lines = []
    for scheme in SCHEMES[1:]:
        of = [r for r in rows if r["scheme"] == scheme]
        if not of:
            continue
        ratios = numbers([r for r in of if weights[r["source"], r["name"]] > LARGE], "ratio")
        kept, agree = numbers(of, "kept"), [sum(r["agrees"] == how for r in of) for how in ("nearly equal", "moves", "layers")]
        lines.append([scheme, len(of), len(kept), *agree, f"{statistics.median(ratios):.3f}", f"{max(ratios):.3f}", f"{statistics.median(kept):.1f}", f"{min(kept):.1f}",
                      sum(r["failed"] != "" for r in of)])
    head = ["scheme", "networks", "load and run", "agree: nearly equal", "as moved inputs", "layer by layer", "size: median", "largest", "SQNR: median", "smallest", "do not hold"]
    return table(head, lines)


def low(rows):
    """Static 8 bits below 20 dB, and what all of them together say."""
    of = [r for r in rows if r["scheme"] == "static" and r["turns"] != ""]
    more = [float(r["turns"]) - float(r["theirs"]) for r in of]
    lines = [[r["name"], r["turns"], r["theirs"], f"{by:+.2f}", f"{by - float(r['within']):+.2f} to {by + float(r['within']):+.2f}"] for r, by in zip(of, more)]
    of_all = f"In the mean of these {len(of)} networks ours keeps {statistics.mean(more):+.2f} dB, with a standard error of {statistics.stdev(more) / len(of) ** 0.5:.2f}."
    return table(["network", "ours, mean of eight turns", "quantize_static's", "difference", "95 % interval"], lines) + "\n\n" + of_all


def failing(rows):
    lines = [f"- {r['name']}, {r['scheme']}: {r['failed']}" for r in rows if r["failed"]]
    return "\n".join(lines) or "All networks hold in all schemes."


def page():
    rows = table_file.read(TABLE)
    weights = {(r["source"], r["name"]): int(r["weights"]) for r in rows if r["scheme"] == "float" and r["weights"]}
    rows = [r for r in rows if (r["source"], r["name"]) in weights]
    found = "\n".join(f"- {source}: {what}" for source, what in SOURCES.items() if any(r["source"] == source for r in rows))
    return f"""# Architectures

Written by `scripts/development/architecture_page.py` from `tests/accuracy/architectures.csv`; do not edit it. A test compares it with them.

`tests/checks/check_architectures.py` converts {len(weights)} networks in nine schemes, and judges each file with ONNX Runtime's exact kernels and with ours. Most networks have random
weights: the table tells whether operators and forms are converted rightly, and [accuracy.md](accuracy.md) what quantization costs trained models in their tasks.

- **Agreement.** Both runtimes run the same converted file. Outputs are *nearly equal* where their distance is at least 20 dB (dynamic: 10) below that of the converted model to the
  float one. In fp16 and bf16, runtimes round at different places: there it is 40 dB below the outputs, or at most twice the distance to the float model. Deep networks of random weights are
  chaotic: a last bit moves one quantized value by one, and that moves others behind it. There the measure is ONNX Runtime itself, with inputs multiplied by numbers 2e-7 from 1 (eight such moves), or for dynamic
  quantization with its optimizer switched off: outputs agree *as moved inputs* where they are no further apart than that. Otherwise the file is cut, and each
  part gets the same numbers in both runtimes. The parts agree *layer by layer*: integers within 1, float16 in one unit in the last place, other reals within 1e-4 of their range.
  Networks with an operator that our runtime does not know (of ai.onnx.ml) are run by ONNX Runtime alone.
- **Size** is that of the converted file in parts of the float file, of networks with more than 64 kB of float weights. None may be
  larger.
- **SQNR** is the distance of the outputs to the float model's, in dB, on samples that did not calibrate. Where static 8 bits keep less than 20 dB, they must keep 20 dB in the
  mean of eight turns, or as much as ONNX Runtime's `quantize_static` does with exact kernels.

## By scheme

{by_scheme(rows, weights)}

## Static 8 bits below 20 dB

{low(rows)}

In each turn another eighth of the samples judges and the others calibrate. What is kept of so little is chance to a large part, as the intervals show: a last bit of
a scale moves codes, and each layer behind moves more of them. Ours keeps less than theirs where the difference is below 0 by more than half a dB and by more than its interval.
In sklearn_scaled `quantize_static` does not know the types behind the Scaler of ai.onnx.ml and leaves all activations float.

## What does not hold

{failing(rows)}

## The networks

`tests/accuracy/architectures.csv` has size, SQNR and agreement of each network in each scheme. Its column `source` says where the network is from:

{found}
"""


def main():
    given = [a.split("=", 1) for a in sys.argv[1:] if a != "--check"]
    if any(len(pair) < 2 or pair[0] not in SOURCES for pair in given):
        sys.exit(__doc__)
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text() != page():
            print("docs/architectures.md is not what its table gives; scripts/development/architecture_page.py writes it")
            return 1
        return 0
    if given:
        table_file.write(TABLE, FIELDS, collected(given))
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
