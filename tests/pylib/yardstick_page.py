"""What scripts/yardstick has measured, as a file with a row for each model and tool, and as a page."""
import re

from pylib import table_file

FIELDS = ("model", "source", "metric", "samples", "float", "float_bytes", "tool", "value", "drop", "low", "high", "bytes", "integer", "in_float", "seconds", "peak_mb", "failed", "warned",
          "against", "against_drop", "against_low", "against_high", "calibration", "published", "command", "by", "cpu", "day")
NAMED = "octet-named"       # what Octet's answer to the first conversion named
OURS = ("octet", NAMED)
TOOLS = {"octet": "Octet", NAMED: "Octet, as it advised", "ort-static": "ONNX Runtime, static", "ort-dynamic": "ONNX Runtime, dynamic", "nncf": "NNCF"}
PLAIN = ("mse", "spearman", "pearson", "mrr", "sqnr", "psnr", "cosine", "kl", "perplexity", "maxerr")     # not shown in percent


def read(path):
    return [dict.fromkeys(FIELDS, "") | r for r in table_file.read(path)]


def merged(old, new):
    """Rows of a model that was measured anew replace its old ones, in their place."""
    fresh = {}
    for r in new:
        fresh.setdefault(r["model"], []).append(r)
    out = []
    for r in old:
        if r["model"] in fresh:
            out += fresh.pop(r["model"])
        elif r["model"] not in {n["model"] for n in new}:
            out.append(r)
    return out + [r for rows in fresh.values() for r in rows]


def write(path, rows):
    table_file.write(path, FIELDS, rows)


def number(text, metric, sign=""):
    if text == "":
        return "-"
    return f"{float(text):{sign}.4g}" if metric in PLAIN else f"{100 * float(text):{sign}.2f} %"


def difference(r, prefix=""):
    drop, low, high = (r[prefix + k] for k in ("drop", "low", "high"))
    return number(drop, r["metric"], "+") + (f" [{number(low, r['metric'], '+')}, {number(high, r['metric'], '+')}]" if low != "" else "")


def line(r):
    if r["failed"]:
        return [r["model"], TOOLS[r["tool"]], r["failed"].replace("|", "/"), *[""] * 5]
    layers = f"{r['integer']} of {int(r['integer']) + int(r['in_float'])}" if r["integer"] != "" else "-"
    return [r["model"], TOOLS[r["tool"]], number(r["value"], r["metric"]), difference(r), f"{int(r['bytes']) / int(r['float_bytes']):.2f}", layers, f"{float(r['seconds']):.1f}",
            f"{float(r['peak_mb']):.0f}"]


def table(head, lines):
    return "\n".join("| " + " | ".join(words) + " |" for words in [head, ["---"] * 2 + ["---:"] * (len(head) - 2), *lines])


def repairs(rows, worse):
    """(models whose file by the command that the conversion named is not significantly worse than the best other tool's, models where it is, or where none was named)."""
    named = {r["model"]: r for r in rows if r["tool"] == NAMED and r["against_low"] != ""}
    mended = [r for r in worse if r["model"] in named and float(named[r["model"]]["against_low"]) <= 0]
    return mended, [r for r in worse if r not in mended]


def names(rows):
    return f" ({', '.join(r['model'] for r in rows)})" if rows else ""


def verdicts(rows):
    """How often the best other tool is significantly better than Octet, and the other way round."""
    ours = [r for r in rows if r["tool"] == "octet"]
    paired = [r for r in ours if r["against_low"] != ""]
    worse, better = [r for r in paired if float(r["against_low"]) > 0], [r for r in paired if float(r["against_high"]) < 0]
    alone = [r for r in ours if not r["failed"] and not r["against"]]
    failed = [r["model"] for r in ours if r["failed"]]
    apart = len([r for r in ours if r["against"]]) - len(paired)
    text = f"Of {len(ours)} models, {len(paired)} were compared in pairs with the best other tool's file, on the same samples. Octet is significantly better (95 %) on {len(better)}, worse on {len(worse)}, and undecided on {len(paired) - len(better) - len(worse)}. The best is chosen on these samples, which favours the others."
    if worse:
        mended, left = repairs(rows, worse)
        text += f" On {len(mended)} of the {len(worse)} where it is worse{names(mended)} the conversion named a command whose file is not worse than the best."
        text += f" It did not on {len(left)}{names(left)}." if left else ""
    if apart:
        text += f" Of {apart} the files were judged apart, so that their difference has no interval."
    if alone:
        text += f" No other tool has a file that runs for {', '.join(r['model'] for r in alone)}."
    return text + (f" Octet fails on {', '.join(failed)}." if failed else "")


def page(rows):
    """The page of all rows; without any, it says so."""
    if not rows:
        return "# Accuracy: models beside other tools\n\nNo model was measured.\n"
    heads = [[r["model"], r["source"] or "-", r["metric"], r["samples"] or "-", number(r["float"], r["metric"]), f"{int(r['float_bytes']) / 1e6:.2f}",
              f"{TOOLS[r['against']]}: {difference(r, 'against_')}" if r["against"] else "-", r["day"] or "-"] for r in rows if r["tool"] == "octet"]
    warnings = [[r["model"], re.sub(r"\S*/octet-yardstick-\w+/", "", r["warned"]).replace("|", "/")] for r in rows if r["tool"] == "octet" and r["warned"]]
    commands = [list(x) for x in dict.fromkeys((TOOLS[r["tool"]], f"`{r['command']}`") for r in rows if r["tool"] not in OURS)]
    advised = [[r["model"], f"{r['warned'].replace('|', '/')}: `{r['command']}`", difference(r, "against_") if r["against"] else "-"] for r in rows if r["tool"] == NAMED]
    ours = [[f"Octet, {r['model']}", f"`{r['command']}`"] for r in rows if r["tool"] == "octet"]
    known = [[r["model"], r["published"], number(r["float"], r["metric"]), number(r["value"], r["metric"]), difference(r)] for r in rows if r["tool"] == "octet" and r["published"]]
    others = "\n## Published figures\n\nWhat others have published of these networks, from float to 8 bits, and what was measured here; they had other samples, and some of them other weights.\n\n" + \
        table(["model", "published", "float", "Octet", "drop"], known) + "\n" if known else ""
    said = "\n## Warnings\n\nWhat the conversions by Octet said of their results.\n\n" + table(["model", "warnings"], warnings) + "\n" if warnings else ""
    said += "\n## Advice\n\nCommands that the answers of these conversions named, and what their files lose.\n\n" + table(["model", "command", "against the best other tool"], advised) + "\n" if advised else ""
    return f"""# Accuracy: models beside other tools

Written by `scripts/yardstick`; do not edit. {'; '.join(dict.fromkeys(r['cpu'] for r in rows))}. {', '.join(dict.fromkeys(v for r in rows for v in r['by'].split(', ')))}.

Each tool has {', '.join(dict.fromkeys(r['calibration'] for r in rows))} calibration samples and its defaults. All files run in ONNX Runtime with exact kernels, and all are judged on the same samples, which are others. A drop is positive
when the model is worse; its 95 % interval is paired over the samples. Agreement, cosine, mse and kl compare with the float model's outputs, and so does F1 of boxes where no truth is known. Size is a share of the float
model's. Layers are Conv, Gemm, MatMul and the like on integers behind ONNX Runtime's optimizer. Seconds and megabytes are those of the whole conversion, on a machine with other work.

{verdicts(rows)}

{table(["model", "from", "metric", "n", "float", "MB", "Octet against the best other tool: drop", "measured"], heads)}

{table(["model", "tool", "value", "drop", "size", "integer layers", "s", "MB"], [line(r) for r in rows])}
{others}{said}
## Commands

{table(["tool", "command"], commands + ours)}
"""
