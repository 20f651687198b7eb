#!/usr/bin/env python3
"""Runs decoders step by step with --generate, and holds samples, tables and what qeval says of two models against ONNX Runtime.

    check_generate.py [--qcalib PROGRAM] [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Small decoders with random weights, in the forms of exporters, write tokens after prompts: with masks that grow and positions that go on, with a flag
that says whether there is a cache, with the keys and values of an encoder, and in float16. ONNX Runtime runs the same steps, one by one, in a loop of
NumPy. Outputs of every step are the same; perplexity of the prompts and agreement of the tokens are those of two models that read the float model's
tokens and have caches of their own; what a calibration sees is what the steps hold. Texts end where the folder's eos_token_id says.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx

from pylib import decoders, peer, tokennet, tool
from pylib.judge import Checker, options, sqnr

STEPS = 5
FLAG = "use_cache_branch"


def continued(name):
    return name.replace("present", "past_key_values")


def write(session, prompt, steps, tokens=None, ends=()):
    """[(feed, {output: array})] of the prompt and of `steps` tokens behind it: the likeliest ones, or those given. One of `ends` is the last."""
    inputs, names = session.get_inputs(), [o.name for o in session.get_outputs()]
    feed = {i.name: np.zeros([d if isinstance(d, int) else 1 if k == 0 else 0 for k, d in enumerate(i.shape)],
                             np.float16 if "float16" in i.type else np.float32) for i in inputs if i.name.startswith("past")}
    feed |= prompt
    if any(i.name == FLAG for i in inputs):
        feed[FLAG] = np.array([False])
    done = []
    for step in range(steps + 1):
        out = dict(zip(names, session.run(None, feed), strict=True))
        done.append((feed, out))
        token = tokens[step] if tokens and step < len(tokens) else int(out["logits"][0, -1].astype(np.float32).argmax())
        if token in ends:
            break
        cache = {continued(n): (feed[continued(n)] if a.size == 0 else a) for n, a in out.items() if n != "logits"}
        feed = {**feed, **cache, "input_ids": np.array([[token]])}
        if "attention_mask" in feed:
            feed["attention_mask"] = np.concatenate([feed["attention_mask"], [[1]]], 1)
        if "position_ids" in feed:
            feed["position_ids"] = feed["position_ids"][:, -1:] + 1
        if FLAG in feed:
            feed[FLAG] = np.array([True])
    return done


def tokens_of(done):
    return [int(out["logits"][0, -1].astype(np.float32).argmax()) for _, out in done]


def rows(rng, n=6):
    return [rng.integers(0, 400, int(rng.integers(4, 12))) for _ in range(n)]


def stored(path, n):
    """[{output: array}] of n samples from the .npz of qeval."""
    with np.load(path) as z:
        names = {f.split("/")[0] for f in z.files}
        return [{name: z[f"{name}/{k:06}"] if f"{name}/{k:06}" in z.files else z[name][k:k + 1] for name in names} for k in range(n)]


def outputs(check, what, model, data, prompts, *more, least=90, ends=()):
    """Every step's outputs; what ONNX Runtime ran."""
    out = check.folder / "out.npz"
    tool.run([check.qeval, model, "--data", data, "--generate", STEPS, "--outputs", out, "-q", *more])
    session = peer.session(str(model))
    runs = [write(session, p, STEPS, ends=ends) for p in prompts]
    want = [o for run in runs for _, o in run]
    got = stored(out, len(want))
    worst = min(sqnr([w[n].astype(np.float32)], [g[n].astype(np.float32)]) for w, g in zip(want, got, strict=True) for n in w if "encoder" not in n)
    shapes = [n for w, g in zip(want, got, strict=True) for n in w if "encoder" not in n and w[n].shape != g[n].shape]
    check.hold(f"{what}: outputs of {len(want)} steps", worst > least and not shapes, f"{worst:.1f} dB {shapes[:3]}")
    return runs


def judged(check, what, model, data, runs, *more):
    """A quantized model beside the float one: both read the tokens of the float one, each with its own cache."""
    quantized, report = check.folder / "judged.onnx", check.folder / "eval.json"
    check.convert(model, quantized, "--scheme", "weight-only", "--data", data, "--generate", STEPS, *more)
    tool.run([check.qeval, model, quantized, "--data", data, "--generate", STEPS, *more, "--metric", "perplexity,agreement", "-q", "--no-latency", "--json", report])
    session = peer.session(str(quantized))
    theirs = [write(session, {k: v for k, v in run[0][0].items() if not k.startswith("past")}, len(run) - 1, tokens_of(run)) for run in runs]
    agree, logs = [], []
    for a, b in zip(runs, theirs, strict=True):
        for (_, x), (_, y) in zip(a, b, strict=True):
            agree.append(float((x["logits"].argmax(-1) == y["logits"].argmax(-1)).mean()))
        ids = a[0][0]["input_ids"]
        logs.append([(len(ids[0]) - 1) * np.log(tokennet.perplexity(r[0][1]["logits"], ids)) for r in (a, b)])
    count = sum(len(a[0][0]["input_ids"][0]) - 1 for a in runs)
    want = [float(np.exp(sum(one[k] for one in logs) / count)) for k in (0, 1)]
    r = json.loads(report.read_text())
    got = [m["metrics"]["perplexity"] for m in r["models"]]
    check.hold(f"{what}: perplexity of the prompts", all(abs(g / w - 1) < 1e-4 for g, w in zip(got, want, strict=True)), f"{got}, ONNX Runtime {want}")
    got, want = r["models"][1]["metrics"]["agreement"], float(np.mean(agree))
    check.hold(f"{what}: agreement", abs(got - want) < 0.5 / len(agree) and want < 1, f"{got}, ONNX Runtime {want}")
    check.hold(f"{what}: samples", r["samples"] == len(agree), str(r["samples"]))


def forms(check):
    rng = np.random.default_rng(8)
    texts = rows(rng)
    data = check.folder / "texts.jsonl"
    data.write_text("".join(json.dumps({"input_ids": t.tolist()}) + "\n" for t in texts))
    for form in ("past", "padded", "merged", "genai"):
        model = check.folder / f"{form}.onnx"
        decoders.Decoder().write(model, form)
        more = {"padded": ("attention_mask", "position_ids"), "genai": ("attention_mask",)}.get(form, ())
        made = {"attention_mask": lambda n: np.ones((1, n), np.int64), "position_ids": lambda n: np.arange(n)[None]}
        prompts = [{"input_ids": t[None], **{m: made[m](len(t)) for m in more}} for t in texts]
        runs = outputs(check, form, model, data, prompts)
        judged(check, form, model, data, runs)
        if form == "past":
            calibrated(check, model, data, runs)
    half = check.folder / "half.onnx"
    decoders.Decoder(dtype="float16").write(half, "past")
    outputs(check, "float16", half, data, [{"input_ids": t[None]} for t in texts[:1]], "--samples", "1", "--first", least=30)
    crossed(check, texts)
    single(check, texts)
    padding(check, texts)


def crossed(check, texts):
    """A merged decoder with the rows of an encoder, and texts of one length and of several in .npz."""
    model, data = check.folder / "crossed.onnx", check.folder / "crossed.npz"
    decoders.Decoder().write(model, "crossed")
    rng = np.random.default_rng(9)
    encoded = rng.normal(size=(len(texts), 7, 64)).astype(np.float32)
    width = max(map(len, texts))
    ids = np.stack([np.pad(t, (0, width - len(t))) for t in texts])
    lengths = np.array([len(t) for t in texts])
    for save in (np.savez, np.savez_compressed):
        save(data, input_ids=ids, encoder_hidden_states=encoded, lengths=lengths)
        runs = outputs(check, f"encoder's rows, {save.__name__}", model, data, [{"input_ids": t[None], "encoder_hidden_states": e[None]}
                                                                             for t, e in zip(texts, encoded, strict=True)])
    judged(check, "encoder's rows", model, data, runs)


def single(check, texts):
    """A decoder that takes one token at a time reads each text in as many steps as it has tokens, and then those that are asked for."""
    model, data, out = check.folder / "single.onnx", check.folder / "texts.jsonl", check.folder / "out.npz"
    m = onnx.load(check.folder / "padded.onnx")
    for v in m.graph.input:
        if v.name in ("input_ids", "position_ids"):
            v.type.tensor_type.shape.dim[1].dim_value = 1
    onnx.save(m, model)
    session = peer.session(str(model))
    first = {"attention_mask": np.ones((1, 1), np.int64), "position_ids": np.zeros((1, 1), np.int64)}
    want = [o for t in texts for _, o in write(session, {"input_ids": t[None, :1], **first}, len(t) - 1 + STEPS, t[1:].tolist())]
    tool.run([check.qeval, model, "--data", data, "--generate", STEPS, "--outputs", out, "-q"])
    got = stored(out, len(want))
    worst = min(sqnr([w[n]], [g[n]]) for w, g in zip(want, got, strict=True) for n in w)
    shapes = [n for w, g in zip(want, got, strict=True) for n in w if w[n].shape != g[n].shape]
    check.hold(f"one token at a time: outputs of {len(want)} steps", worst > 90 and not shapes, f"{worst:.1f} dB {shapes[:3]}")
    report = check.convert(model, check.folder / "single.q.onnx", "--scheme", "weight-only", "--data", data, "--generate", STEPS)
    check.hold("one token at a time: samples round the weights", any(m["name"] == "block-rounding" and m["ran"] for m in report["methods"]))
    refuse(check, "texts for single tokens", 4, ["takes 1", "--generate N"], check.qconvert, model, "--data", data, "-o", out)


def padding(check, texts):
    """Tokens that the mask leaves out: at the end they are dropped, in front they stay."""
    model, data = check.folder / "padded.onnx", check.folder / "masked.npz"
    width = max(map(len, texts)) + 2
    for side, pad in (("end", lambda t: (0, width - len(t))), ("front", lambda t: (width - len(t), 0))):
        ids = np.stack([np.pad(t, pad(t)) for t in texts])
        mask = np.stack([np.pad(np.ones(len(t), np.int64), pad(t)) for t in texts])
        places = np.maximum(mask.cumsum(1) - 1, 0)
        np.savez(data, input_ids=ids, attention_mask=mask, position_ids=places)
        cut = (lambda row, t: row[None, :len(t)]) if side == "end" else (lambda row, t: row[None])
        prompts = [{"input_ids": cut(i, t), "attention_mask": cut(m, t), "position_ids": cut(p, t)}
                   for t, i, m, p in zip(texts, ids, mask, places, strict=True)]
        outputs(check, f"padding at the {side}", model, data, prompts)


def calibrated(check, model, data, runs):
    """The table is that of the same steps as test cases with caches, and parts join to the whole."""
    differs = tables(check, model, data, runs)
    check.hold("a calibration sees the steps, and parts join to the whole", differs is None, str(differs))
    first = check.folder / "recorded.onnx"
    report = check.convert(model, first, "--data", data, "--generate", STEPS, "--samples", "3", "--first")
    command = {p.key: p.value for p in onnx.load(first).metadata_props}
    check.hold("the command is recorded", any(f"--generate {STEPS}" in v for v in command.values()), str(command)[:200])
    seen = (report["samples"], report["judged_on"]["samples"])
    check.hold("N samples are N texts, and others judge", seen == (3 * (STEPS + 1), STEPS + 1), str(seen))


def ended(check):
    """A text ends at the ids that the folder names: the token that ends it is not run, nor is anything behind it."""
    folder, data = check.folder / "ends", check.folder / "texts.jsonl"
    (folder / "onnx").mkdir(parents=True)
    flat, inner = folder / "model.onnx", folder / "onnx" / "model.onnx"
    shutil.copy(check.folder / "past.onnx", flat)
    shutil.copy(flat, inner)
    prompts = [{"input_ids": np.array([json.loads(line)["input_ids"]])} for line in data.read_text().splitlines()]
    session = peer.session(str(flat))
    told = [tokens_of(write(session, p, STEPS)) for p in prompts]
    seen = {t for text in told for t in text}
    first, middle, never = sorted({text[0] for text in told}), told[0][2], min(set(range(400)) - seen)
    last = next(text[STEPS] for text in told if text[STEPS] not in text[:STEPS])  # what would follow the last run ends nothing
    generation, genai, plain = (folder / f"{name}.json" for name in ("generation_config", "genai_config", "config"))
    cases = (  # the ids, the files that are there, the one that says so
        ("at the first token", flat, first, {generation: {"eos_token_id": first}}, generation),
        ("never", flat, [never], {generation: {"eos_token_id": never}, plain: {"eos_token_id": first}}, generation),
        ("one id", flat, [middle], {generation: {"max_length": 20}, plain: {"eos_token_id": middle}}, plain),
        ("a list", flat, [middle, never, told[1][3]], {genai: {"model": {"eos_token_id": [middle, never, told[1][3]]}}}, genai),
        ("behind the last", flat, [last], {generation: {"eos_token_id": [last, -1]}}, generation),
        ("a folder onnx", inner, [told[1][1]], {generation: {"eos_token_id": None}, plain: {"text_config": {"eos_token_id": told[1][1]}}}, plain))
    for what, model, ids, files, source in cases:
        for file, holds in files.items():
            file.write_text(json.dumps(holds))
        runs = outputs(check, f"ended {what}", model, data, prompts, ends=ids)
        lengths, report = [len(run) for run in runs], check.folder / "ended.json"
        early = sum(any(t in ids for t in text[:STEPS]) for text in told)
        check.hold(f"ended {what}: the case is one", early == len(runs) if ids == first else early == 0 if ids == [never] else sum(lengths) < len(runs) * (STEPS + 1) or ids == [last],
                   f"{lengths}")
        tool.run([check.qeval, model, "--data", data, "--generate", STEPS, "--json", report, "--no-latency", "-q"])
        r = json.loads(report.read_text())
        told_of = {"texts": len(runs), "ended_early": early, "ended_by": source.name}
        check.hold(f"ended {what}: report", (r["samples"], r["generated"]) == (sum(lengths), told_of), f"{r['samples']} {r['generated']} {lengths}")
        recorded = tables(check, model, data, runs)
        check.hold(f"ended {what}: a calibration sees no more", recorded is None, str(recorded))
        if len(set(lengths)) > 1:
            judged(check, f"ended {what}", model, data, runs)
            report = check.convert(model, check.folder / "ended.onnx", "--data", data, "--generate", STEPS, "--samples", "3", "--first")
            check.hold(f"ended {what}: N texts, and others judge", (report["samples"], report["judged_on"]["samples"], report["generated"]["texts"]) == (sum(lengths[:3]), lengths[3], 4),
                       f"{report['samples']} {report['judged_on']} {report['generated']} {lengths}")
        for file in files:
            file.unlink()
    run = (check.qeval, flat, "--data", data, "--generate", 2, "--json", check.folder / "none.json")
    for what, text, says in (("no JSON", "{", ["generation_config.json:1"]), ("a word", '{"eos_token_id": "</s>"}', ["generation_config.json", "neither the id of a token"]),
                             ("half an id", '{"eos_token_id": [1, 2.5]}', ["neither the id"])):
        generation.write_text(text)
        refuse(check, f"ends: {what}", 4, says, *run)


def tables(check, model, data, runs):
    """None where the table of a calibration, and the one joined from its parts, are those of the same steps as test cases; else what differs."""
    cases = check.folder / "steps"
    shutil.rmtree(cases, ignore_errors=True)
    for k, (feed, _) in enumerate(step for run in runs for step in run):
        case = cases / f"test_data_set_{k:03}"
        case.mkdir(parents=True)
        for i, (name, array) in enumerate(feed.items()):
            (case / f"input_{i}.pb").write_bytes(onnx.numpy_helper.from_array(array, name).SerializeToString())
    whole, other, parts = check.folder / "whole.calib", check.folder / "cases.calib", [check.folder / f"part{k}.calib" for k in (0, 1)]
    tool.run([check.qcalib, model, "--data", data, "--generate", STEPS, "-o", whole, "-q"])
    tool.run([check.qcalib, model, "--data", cases, "-o", other, "-q"])
    for k, part in enumerate(parts):
        tool.run([check.qcalib, model, "--data", data, "--generate", STEPS, "--shard", f"{k}/2", "-o", part, "-q"])
    joined = check.folder / "joined.calib"
    tool.run([check.qcalib, "merge", *parts, "-o", joined, "-q"])
    shown = [json.loads(tool.run([check.qcalib, "show", path, "--json", "-"])) for path in (whole, other, joined)]
    ranges = [{t["name"]: (t["min"], t["max"], t["values"]) for t in s["tensors"]} for s in shown]
    far = [n for n in ranges[0] if not np.allclose(ranges[0][n], ranges[1].get(n, (0, 0, 0)), rtol=1e-3, atol=1e-4)]
    count = sum(len(run) for run in runs)
    if shown[0]["samples"] != count or far or ranges[0].keys() != ranges[1].keys():
        return shown[0]["samples"], count, far[:3]
    return None if ranges[2] == ranges[0] else "the joined table"


def growing(check):
    """With --state, lines of tokens are one text: the mask grows by what the cache holds, and positions go on."""
    model, data, out = check.folder / "padded.onnx", check.folder / "pieces.jsonl", check.folder / "out.npz"
    pieces = rows(np.random.default_rng(10), 4)
    data.write_text("".join(json.dumps({"input_ids": t.tolist()}) + "\n" for t in pieces))
    session = peer.session(str(model))
    names = [o.name for o in session.get_outputs()]
    states = [v for n in names[1:] for v in ("--state", f"{n}={continued(n)}")]
    feed = {i.name: np.zeros((1, 4, 0, 16), np.float32) for i in session.get_inputs() if i.name.startswith("past")}
    want, at = [], 0
    for t in pieces:
        feed |= {"input_ids": t[None], "attention_mask": np.ones((1, at + len(t)), np.int64), "position_ids": at + np.arange(len(t))[None]}
        done = dict(zip(names, session.run(None, feed), strict=True))
        want.append(done["logits"])
        feed |= {continued(n): a for n, a in done.items() if n != "logits"}
        at += len(t)
    tool.run([check.qeval, model, "--data", data, "--outputs", out, "-q", *states])
    got = [s["logits"] for s in stored(out, len(pieces))]
    check.hold("--state: the mask grows", min(sqnr([w], [g]) for w, g in zip(want, got, strict=True)) > 90)
    report = check.convert(model, check.folder / "state.onnx", "--scheme", "weight-only", "--data", data, *states)
    check.hold("--state: a conversion runs", any(m["name"] == "block-rounding" and m["ran"] for m in report["methods"]), str(report["methods"])[:200])


def refuse(check, what, code, says, *command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    check.hold(f"refused: {what}", done.returncode == code and all(s in done.stderr for s in says), f"{done.returncode} {done.stderr[-300:]}")


def refused(check):
    data, out = check.folder / "texts.jsonl", check.folder / "none.onnx"
    first, past, fixed, odd = (check.folder / f"{name}.onnx" for name in ("first", "past", "fixed", "odd"))
    decoders.Decoder().write(first, "first")
    m = onnx.load(past)
    m.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 8
    onnx.save(m, fixed)
    m = onnx.load(past)
    for node in m.graph.node:
        node.output[:] = ["kept" if o == "present.1.key" else o for o in node.output]
        node.input[:] = ["kept" if i == "present.1.key" else i for i in node.input]
    next(o for o in m.graph.output if o.name == "present.1.key").name = "kept"
    onnx.save(m, odd)
    run = ("--data", data, "--generate", STEPS, "-o", out)
    refuse(check, "no cache", 2, ["no output of the model is seen to continue a cache", "--state OUT=IN"], check.qconvert, first, *run)
    refuse(check, "a fixed length", 2, ["'input_ids' is of 8 tokens", "free length"], check.qconvert, fixed, *run)
    refuse(check, "a cache without an output", 2, ["'past_key_values.1.key'", "--state OUT=past_key_values.1.key"], check.qconvert, odd, *run)
    refuse(check, "broken samples", 2, ["--skip-bad"], check.qconvert, past, *run, "--skip-bad")
    refuse(check, "parts of an evaluation", 2, ["--shard"], check.qeval, past, "--data", data, "--generate", "2", "--shard", "0/2", "--json", out)
    tool.run([check.qconvert, odd, *run, "-q", "--scheme", "weight-only", "--state", "kept=past_key_values.1.key"])
    check.hold("--state names an output", out.is_file())
    short = check.folder / "short.npz"
    np.savez(short, input_ids=np.zeros((3, 4), np.int64), lengths=np.array([2, 5, 1]))
    refuse(check, "a length beyond the array", 4, ["lengths", "5"], check.qconvert, past, "--data", short, "--generate", "2", "-o", out)


def main():
    parser = options(__doc__)
    parser.add_argument("--qcalib", default=tool.find("qcalib"))
    args = parser.parse_args()
    with Checker(args) as check:
        check.qcalib = Path(args.qcalib).resolve()
        forms(check)
        ended(check)
        growing(check)
        refused(check)
        return check.finish()


if __name__ == "__main__":
    sys.exit(main())
