"""The files of tests/accuracy, and docs/methods.md made from them."""
from pylib import table_file, tasks, zoo

FOLDER = zoo.ROOT / "tests/accuracy"
PAGE = zoo.ROOT / "docs/methods.md"
MODELS = zoo.MODELS | zoo.WHOLE | zoo.MADE
WITHOUT = "ours without "
FRACTIONS = {"mse", "spearman", "f1"}       # shown as they are; the rest in percent


def read(name):
    return table_file.read(FOLDER / name)


def write(name, fields, lines, key):
    """In the order of the zoo; of lines with the same key the last stays in the place of the first."""
    place = {model: i for i, model in enumerate(MODELS)}
    kept = {tuple(r[k] for k in key): r for r in lines if r["model"] in place}
    FOLDER.mkdir(parents=True, exist_ok=True)
    table_file.write(FOLDER / name, fields, sorted(kept.values(), key=lambda r: (place[r["model"]], int(r.get("calib") or 0))))


def best_exact(rows):
    """The peer's best way with exact kernels: by the metric, by SQNR where it ties."""
    found = [r for r in rows if r["row"].startswith("ort exact") and not r["failed"]]
    sign = -1 if rows[0]["metric"] in tasks.LOWER_IS_BETTER else 1
    return max(found, key=lambda r: (sign * float(r["value"] or 0), db(r)), default=None)


def db(r):
    return float("inf") if r["sqnr_db"] == "exact" else float(r["sqnr_db"] or "-inf")


def shown(r):
    if r is None:
        return "-"
    if r["failed"]:
        return "failed"
    if not r["value"]:
        return "-"
    return f"{float(r['value']):.3f}" if r["metric"] in FRACTIONS else f"{100 * float(r['value']):.2f} %"


def shown_interval(r):
    if r is None or not r["low"]:
        return "-"
    scale, digits = (1, 3) if r["metric"] in FRACTIONS else (100, 2)
    return f"{scale * float(r['low']):+.{digits}f} to {scale * float(r['high']):+.{digits}f}"


def shown_db(r):
    return "-" if r is None else "failed" if r["failed"] else r["sqnr_db"]


def layers(r):
    return "-" if r is None or not r["integer"] else f"{r['integer']} / {r['float']}"


def table(head, lines):
    return "\n".join(["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1),
                      *("| " + " | ".join(map(str, line)) + " |" for line in lines)]) + "\n"


def accuracy_tables(results):
    metric, noise, gains = [], [], []
    results = [r for r in results if r["calib"] == "64"]
    methods = list(dict.fromkeys(r["row"][len(WITHOUT):] for r in results if r["row"].startswith(WITHOUT)))
    for model in dict.fromkeys(r["model"] for r in results):
        rows = [r for r in results if r["model"] == model]
        by = {r["row"]: r for r in rows}
        if "float" not in by:
            continue
        picked = [by.get("ort"), best_exact(rows), by.get("ours"), by.get("ours runtime")]
        recorded = max((by[r] for r in ("nncf openvino", "nncf ort exact") if r in by), default=None,
                       key=lambda r: float(r["value"]) * (-1 if r["metric"] in tasks.LOWER_IS_BETTER else 1))
        metric.append([model, by["float"]["metric"], by["float"]["samples"], shown(by["float"]), *map(shown, picked[:2]), shown(recorded),
                       *map(shown, picked[2:]), shown_interval(by.get("ours"))])
        noise.append([model, *map(shown_db, picked), layers(by.get("ort")), layers(by.get("ours"))])
        gains.append([model, shown_db(by.get("ours")), *(gain(by.get("ours"), by.get(WITHOUT + m)) for m in methods)])
    peers = ["quantize_static", "the same, exact kernels"]
    own = ["Octet in ONNX Runtime", "Octet in its runtime"]
    return (table(["model", "metric", "samples", "float", *peers, "NNCF, recorded", *own, "difference to float, 95 %"], metric),
            table(["model", *peers, *own, "integer / float layers, quantize_static", "the same, Octet"], noise),
            table(["model", "SQNR, dB", *methods], gains))


def gain(ours, without):
    """What a method is worth, in dB."""
    if not ours or not without or ours["failed"] or without["failed"]:
        return "-"
    return "0" if ours["made"] == without["made"] else f"{db(ours) - db(without):+.2f}"


def cost_table(costs):
    lines = []
    for model in dict.fromkeys(r["model"] for r in costs):
        by = {r["tool"]: r for r in costs if r["model"] == model}
        ours, theirs = by["qconvert"], by["quantize_static"]
        cells = [(f"{r['seconds']} s", f"{r['peak_mb']} MB", f"{int(r['size_after']) / int(r['size_before']):.3f}") if r["seconds"]
                 else ("failed", "-", "-") for r in (ours, theirs)]
        lines.append([model, ours["calib_samples"], *(cell for pair in zip(*cells) for cell in pair)])
    where = "; ".join(dict.fromkeys(f"{r['cpu']}, {r['date']}" for r in costs))
    return table(["model", "samples", "qconvert", "quantize_static", "memory", "memory, quantize_static", "size of float",
                  "size, quantize_static"], lines), where


def half_table():
    rows = read("half.csv")
    lines = []
    for model in dict.fromkeys(r["model"] for r in rows):
        by = {r["scheme"]: r for r in rows if r["model"] == model}
        f, b = by["fp16"], by["bf16"]
        lines.append([model, f["layers"], f["casts"], f"{1 / float(f['size']):.2f}", f["ours"], f["ort"], f["same"], b["ours"]])
    return table(["model", "layers in 16 bits", "Casts", "size", "fp16 in its runtime", "fp16 in ONNX Runtime", "between the two", "bf16"], lines)


def write_page():
    results, costs = read("results.csv"), read("cost.csv")
    metric, noise, gains = accuracy_tables(results)
    spent, where = cost_table(costs)
    saturating = ", ".join(dict.fromkeys(f"{r['cpu']}, {r['by']}" for r in results if r["row"] == "ort"))
    others = ", ".join(dict.fromkeys(f"{r['cpu']}, {r['by']}" for r in results if r["row"].startswith("ort exact")))
    PAGE.write_text(f"""# What methods gain and conversions cost

Written by `scripts/development/accuracy.py` from `tests/accuracy/results.csv`, `cost.csv` and `half.csv`; do not edit.

This page compares `qconvert MODEL --data CALIBRATION`, without further options, with `quantize_static` of ONNX Runtime (MinMax, QDQ, u8 activations, s8 weights
per channel) on the same calibration samples ({saturating}: no VNNI, so 16-bit sums saturate). The samples for evaluation are different ones. "Exact
kernels" is the best of ONNX Runtime's MinMax, entropy and percentile calibrations, and for transformers and recurrent networks also of `quantize_dynamic`. These models run with
`session.x64quantprecision=1`, so that no 16-bit sum saturates ({others}). "NNCF, recorded" is the better of two figures that
were measured separately, with other versions.

## Metric

Higher is better for top1, agreement, spearman, ap50 and f1, lower for mse. For detectors, ap50 is AP at an overlap of one half, and F1 compares with the float model's boxes;
agreement compares with the float model's decisions. `results.csv` has all paired 95 % intervals, other numbers of calibration samples, and top-5 for models of 100 classes or more.

{metric}
## Noise

SQNR of the outputs against float, in dB; higher is better. If a model has several outputs, the worst one counts. Layers are Conv, Gemm and MatMul in the graph
that ONNX Runtime runs after its own optimization.

{noise}
## Methods

What each method gains: the SQNR in dB with the defaults, minus the SQNR without the method. 0 means that the file is the same.

{gains}
## 16-bit floats

`qconvert MODEL --scheme fp16 --data CALIBRATION`: SQNR against float over eight evaluation samples, in dB, and the size of the file divided by that of the float
file. ONNX Runtime keeps float32 between operators that have no 16-bit kernel ([arithmetic.md](arithmetic.md)), and has none for bfloat16.

{half_table()}
## Cost

Seconds and peak memory of the whole command, and the size of the file divided by that of the float file. {where}.

{spent}""")
