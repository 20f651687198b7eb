#!/usr/bin/env python3
"""Converts folders of models in the shapes that loaders want, and loads what was made as they do.

    check_folders.py [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Small folders with random weights (`pylib/folders.py`) are converted by their recipes. Each result has the names, types and shapes that the float models
have, computes what they compute in ONNX Runtime, and is what a conversion of the model alone gives; configurations and other files are copied; data files
stay shared. Then what people do wrong: a folder that is there already, a file that is missing, links, names that leave the folder, a run that is killed.
Where onnxruntime-genai, sherpa-onnx, piper or sentence-transformers are in this Python or one that OCT_LOADERS names (with : between them), and node with
@huggingface/transformers and onnxruntime-web in the folder OCT_NODE, these load the folders and compute the same; else a line says so.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx

from pylib import folders, peer, stands
from pylib.judge import Checker, options, sqnr

RESULTS = {  # the files of each, and the operator that says what was done
    "genai": {"model.onnx": "MatMulNBits"},
    "transformers.js": {"onnx/model_q4.onnx": "MatMulNBits"},
    "optimum": {"encoder_model.onnx": "MatMulInteger", "decoder_model.onnx": "MatMulNBits", "decoder_with_past_model.onnx": "MatMulNBits",
                "decoder_model_merged.onnx": "MatMulNBits"},
    "sentence-transformers": {"onnx/model.onnx": "MatMulInteger"},
    "sherpa-onnx": {f"{n}-epoch-99-avg-1.int8.onnx": "MatMulInteger" for n in ("encoder", "decoder", "joiner")},
    "piper": {"en_US-made-low.onnx": "Cast"}}


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def call(check, *arguments, **how):
    return subprocess.run([check.qconvert, *map(str, arguments)], capture_output=True, text=True, **how)


def ends(model):
    """(name, type, dimensions) of the inputs and outputs; what ONNX Runtime says of them."""
    s = peer.session(str(model))
    return [[(v.name, v.type, [d if isinstance(d, int) else None for d in v.shape]) for v in side] for side in (s.get_inputs(), s.get_outputs())]


def feed_of(model, seed=1):
    """Numbers for each input: few tokens, an empty cache."""
    rng, sizes = np.random.default_rng(seed), {"batch": 1, "N": 1, "past": 0, "sequence": 8, "total": 8, "all": 8, "encoder": 5, "T": 20, "phonemes": 12, "past_encoder": 0}
    feed = {}
    for v in peer.session(str(model)).get_inputs():
        dims = [d if isinstance(d, int) else sizes[d] for d in v.shape]
        if v.name in ("attention_mask", "use_cache_branch"):
            feed[v.name] = np.full(dims, v.name == "attention_mask", np.int64 if v.name == "attention_mask" else bool)
        elif v.name == "position_ids":
            feed[v.name] = np.arange(dims[1])[None]
        elif v.name in ("x_lens", "input_lengths"):
            feed[v.name] = np.array([12])
        elif v.type == "tensor(int64)":
            feed[v.name] = rng.integers(2, 45, dims)
        else:
            feed[v.name] = rng.standard_normal(dims).astype(np.float16 if "float16" in v.type else np.float32)
    return feed


def first_output(model, feed):
    return peer.session(str(model)).run(None, feed)[0].astype(np.float32)


def kinds(check):
    for kind, make in folders.ALL.items():
        source, new = make(check.folder / kind), check.folder / f"{kind}.new"
        before = files(source)
        report = check.convert(source, new, *(["--recipe", kind] if kind == "piper" else []))
        check.hold(f"{kind}: recipe", report["recipe"] == kind, report["recipe"])
        check.hold(f"{kind}: the folder that is read stays", files(source) == before)
        check.hold(f"{kind}: the report names no place that is gone", ".octet-" not in json.dumps(report) and
                   all(f"{new}/{m['result']}" in m["text"] for m in report["models"]), str([m["text"] for m in report["models"]])[:300])
        made = files(new)
        check.hold(f"{kind}: results", {m["result"] for m in report["models"]} == {n for n in made if n.endswith(".onnx")} == set(RESULTS[kind]), str(sorted(made)))
        for m in report["models"]:
            was, now = source / m["file"], new / m["result"]
            check.hold(f"{kind}: {m['result']}: operators", RESULTS[kind][m["result"]] in {n.op_type for _, n, _ in stands.walk(onnx.load(now).graph)})
            check.hold(f"{kind}: {m['result']}: ends", ends(was) == ends(now), f"{ends(was)} {ends(now)}")
            check.hold(f"{kind}: {m['result']}: metadata",
                       {(p.key, p.value) for p in onnx.load(was).metadata_props} <= {(p.key, p.value) for p in onnx.load(now).metadata_props})
            floats = [b["largest"] for b in m["float_bytes"]]
            check.hold(f"{kind}: {m['result']}: scales are not named as float", not any("_scale" in f for f in floats), str(floats))
            feed = feed_of(was)
            db = sqnr([first_output(was, feed)], [first_output(now, feed)])
            check.hold(f"{kind}: {m['result']}: SQNR", db > 12, f"{db:.1f} dB")
            check.hold(f"{kind}: {m['result']}: bytes", m["bytes_after"] == now.stat().st_size < m["bytes_before"] == was.stat().st_size)
            alone = check.folder / "alone.onnx"
            check.convert(was, alone, "--scheme", m["scheme"])
            check.hold(f"{kind}: {m['result']}: the same alone", alone.read_bytes() == now.read_bytes())
        kept = {n for n, c in made.items() if before.get(n) == c and not n.endswith(".onnx")}
        amended = {f["file"] for f in report["files"] if f["what"] == "amended"}
        check.hold(f"{kind}: copies", kept | amended == {n for n in before if not n.endswith((".onnx", ".safetensors"))}, str(kept))
        check.hold(f"{kind}: as many bytes", report["bytes_after"] == sum(len(made[n]) for n in RESULTS[kind]))
        dry = call(check, source, "-o", check.folder / "dry", "--dry-run")
        check.hold(f"{kind}: a dry run writes nothing", dry.returncode == 0 and not (check.folder / "dry").exists() and report["recipe"] in dry.stdout, dry.stderr)


def configuration(check):
    source = check.folder / "transformers.js"
    was, now = (json.loads((f / "config.json").read_text()) for f in (source, check.folder / "transformers.js.new"))
    was["transformers.js_config"]["dtype"] = {"model": "q4"}
    check.hold("transformers.js: config.json", was == now, str(now))
    check.hold("transformers.js: only that changed", (check.folder / "transformers.js.new/config.json").read_text().startswith(
        (source / "config.json").read_text().split('"kv_cache_dtype"')[0]))
    for scheme, bits, name, word in (("fp16", (), "model_fp16", "fp16"), ("dynamic", (), "model_quantized", "q8"), ("weight-only", ("--bits", "8"), "model_quantized", "q8")):
        out = check.folder / f"tjs.{scheme}{len(bits)}"
        check.convert(source, out, "--scheme", scheme, *bits)
        said = json.loads((out / "config.json").read_text())["transformers.js_config"]["dtype"]
        check.hold(f"transformers.js: {scheme}", (out / f"onnx/{name}.onnx").exists() and said == {"model": word}, str(said))
    done = call(check, source, "-o", check.folder / "tjs.bf16", "--scheme", "bf16")
    check.hold("transformers.js: no name for bf16", done.returncode == 5 and "has no name for a model of bf16" in done.stderr, done.stderr)
    stale = check.folder / "stale"  # the float model's data files have names of their own, and its configuration says so
    shutil.copytree(source, stale)
    model = onnx.load(stale / "onnx/model.onnx")
    onnx.save(model, stale / "onnx/model.onnx", save_as_external_data=True, location="model.onnx_data", size_threshold=1024)
    said = json.loads((stale / "config.json").read_text())
    said["transformers.js_config"]["use_external_data_format"] = True
    (stale / "config.json").write_text(json.dumps(said))
    check.convert(stale, check.folder / "stale.new")
    said = json.loads((check.folder / "stale.new/config.json").read_text())["transformers.js_config"]
    check.hold("transformers.js: external data that are no more", said["use_external_data_format"] == {"model_q4.onnx": False} and
               sorted(p.name for p in (check.folder / "stale.new/onnx").iterdir()) == ["model_q4.onnx"], str(said))
    half = folders.transformers_js(check.folder / "half", "float16")
    check.convert(half, check.folder / "half.new")
    check.hold("transformers.js: of float16", (check.folder / "half.new/onnx/model_q4f16.onnx").exists())
    check.hold("transformers.js: caches of float16", ends(half / "onnx/model_fp16.onnx") == ends(check.folder / "half.new/onnx/model_q4f16.onnx"))


def sharing(check):
    """Two of four models share a data file, and so do their results; what is in it is what the models alone have."""
    source, new = folders.optimum(check.folder / "shared", shared=True), check.folder / "shared.new"
    report = check.convert(source, new)
    both = ["decoder_model.onnx", "decoder_with_past_model.onnx"]
    check.hold("shared: who shares", [m["result"] for m in report["models"] if m["shared_data"] == "decoder.onnx_data"] == both)
    alone = {n: (check.folder / "optimum.new" / n) for n in both}
    sizes = [p.stat().st_size for p in alone.values()]
    data = (new / "decoder.onnx_data").stat().st_size
    check.hold("shared: stored once", max(sizes) * 0.5 < data < max(sizes) * 1.7, f"{data} {sizes}")
    for n, p in alone.items():
        check.hold(f"shared: {n}: small", (new / n).stat().st_size < 0.5 * p.stat().st_size)
        check.hold(f"shared: {n}: same constants", constants(new / n) == constants(p))
        feed = feed_of(p)
        check.hold(f"shared: {n}: same outputs", np.array_equal(first_output(new / n, feed), first_output(p, feed)))
    check.hold("shared: no other files", sorted(n for n in files(new) if "onnx" in n) == sorted(
        ["decoder.onnx_data", *both, "decoder_model_merged.onnx", "encoder_model.onnx"]))
    check.hold("shared: bytes", report["bytes_after"] == sum(len(c) for n, c in files(new).items() if "onnx" in n), str(report["bytes_after"]))
    external, out = folders.genai(check.folder / "external", external=True), check.folder / "external.new"
    check.convert(external, out)
    check.hold("external: the float data stay behind", sorted(n for n in files(out) if "onnx" in n) == ["model.onnx"], str(sorted(files(out))))
    check.hold("external: as without", constants(out / "model.onnx") == constants(check.folder / "genai.new/model.onnx"))


def constants(model):
    return {t.name: onnx.numpy_helper.to_array(t).tobytes() for t in onnx.load(model).graph.initializer}


def floats(check):
    """What of a result's bytes stayed float, counted by NumPy, in the report and on the screen."""
    source, new = check.folder / "transformers.js", check.folder / "floats.new"
    for rules, why in (([], "the table is small"), (["--set", "op:Gather=float"], "by the rule op:Gather")):
        shutil.rmtree(new, ignore_errors=True)
        said = call(check, source, "-o", new, "--json", check.folder / "floats.json", *rules).stdout
        m, = json.loads((check.folder / "floats.json").read_text())["models"]
        path = new / m["result"]
        graph, want = onnx.load(path).graph, {}
        for t in graph.initializer:
            reader = next((n for n in graph.node if t.name in n.input), None)
            if t.data_type == onnx.TensorProto.FLOAT and reader and reader.op_type in ("Gather", "MatMul"):
                want[reader.op_type] = want.get(reader.op_type, 0) + 4 * int(np.prod(t.dims))
        want = {op: n for op, n in want.items() if n >= 0.05 * path.stat().st_size}
        check.hold(f"floats {len(rules)}: rows", {x["op"]: x["bytes"] for x in m["float_bytes"]} == want and want, f"{m['float_bytes']} {want}")
        share = sum(want.values()) / path.stat().st_size
        check.hold(f"floats {len(rules)}: why", all(x["why"].startswith(why) for x in m["float_bytes"]), str(m["float_bytes"]))
        check.hold(f"floats {len(rules)}: screen", f"{m['result']}: {100 * share:.0f} % of the file is float: Gather (" in said and why in said, said)


def texts(check):
    """Texts become ids by the folder's own tokenizer, where none is given; lines of ids stay ids."""
    rng = np.random.default_rng(5)
    for kind in ("transformers.js", "genai"):
        rows = [rng.integers(20, 200, 8).tolist() for _ in range(12)]
        said, models = {}, {}
        for name, lines in (("ids.jsonl", [json.dumps({"input_ids": r}) for r in rows]), ("ids.txt", [" ".join(map(str, r)) for r in rows]),
                            ("texts.txt", [folders.text_of(r) for r in rows]), ("texts.jsonl", [json.dumps({"text": folders.text_of(r)}) for r in rows])):
            data, new = check.folder / name, check.folder / "texts.new"
            data.write_text("\n".join(lines) + "\n")
            shutil.rmtree(new, ignore_errors=True)
            said[name] = call(check, check.folder / kind, "-o", new, "--data", data).stderr
            models[name] = [t.SerializeToString() for p in sorted(new.rglob("*.onnx")) for t in onnx.load(p).graph.initializer]
        check.hold(f"texts: {kind}: the same weights as from ids", models["ids.jsonl"] and all(m == models["ids.jsonl"] for m in models.values()), str(said))
        line = "tokenizer.json, as no tokenizer is given"
        check.hold(f"texts: {kind}: a line says so", [line in s for s in said.values()] == [False, False, True, True], str(said))


def samples(check):
    """Of a folder with several models each may have its own."""
    source = check.folder / "optimum"
    rng = np.random.default_rng(3)
    texts = check.folder / "texts.jsonl"
    texts.write_text("".join(json.dumps({"input_ids": row.tolist()}) + "\n" for row in rng.integers(2, 400, (40, 12))))
    report = check.convert(source, check.folder / "sampled", "--data", f"encoder_model={texts}")
    by = {m["result"]: m for m in report["models"]}
    check.hold("samples: of one", by["encoder_model.onnx"]["samples"] > 0 and by["encoder_model.onnx"]["scheme"] == "auto" and by["decoder_model.onnx"]["samples"] == 0, str(by))
    check.hold("samples: judged", by["encoder_model.onnx"].get("output_sqnr_db", 0) > 15)
    report = check.convert(check.folder / "genai", check.folder / "sampled.genai", "--data", texts)
    check.hold("samples: of the only one", report["models"][0]["output_sqnr_db"] > 12, str(report["models"]))
    check.convert(check.folder / "genai/model.onnx", check.folder / "alone.onnx", "--scheme", "weight-only", "--data", texts)
    check.hold("samples: as alone", (check.folder / "alone.onnx").read_bytes() == (check.folder / "sampled.genai/model.onnx").read_bytes())
    done = call(check, source, "-o", check.folder / "wrong", "--data", texts)
    check.hold("samples: that do not suit all", done.returncode != 0 and "hint: samples for one model alone are given as --data" in done.stderr
               or done.returncode == 0, done.stderr)
    done = call(check, check.folder / "genai", "-o", check.folder / "goal", "--data", texts, "--min-sqnr", "90", "--trials", "0")
    check.hold("a goal that is missed", done.returncode == 1 and "nothing was written" in done.stderr and not (check.folder / "goal").exists(), done.stderr)


def again(check):
    """A folder that was converted is given again: it is said what it is. Generated samples are counted for each model."""
    folder, once, twice, report = (check.folder / f"again.{end}" for end in ("float", "once", "twice", "json"))
    folders.genai(folder, dtype="float16")
    (check.folder / "again.jsonl").write_text('{"input_ids": [1, 2, 3]}\n{"input_ids": [4, 5]}\n')
    call(check, folder, "-o", once, "--data", check.folder / "again.jsonl", "--generate", 3, "-q", "--json", report)
    made = json.loads(report.read_text())["models"][0].get("generated", {})
    check.hold("again: generated texts are counted", made.get("texts") == 2, str(made))
    said = call(check, once, "-o", twice, "--json", report)
    told = " ".join(said.stdout.split())
    check.hold("again: the answer says that it was quantized", "1 of them was quantized already" in told and "convert the folder of float models" in told, told[-300:])
    warnings = json.loads(report.read_text())["models"][0]["warnings"]
    check.hold("again: warnings name files as they will be", ".octet-" not in said.stderr + str(warnings) and f"{twice.name}/model.onnx" in said.stderr,
               said.stderr[-400:])


def mistakes(check):
    top, source = check.folder, check.folder / "genai"

    def fails(what, code, said, *arguments, **how):
        before = set(top.iterdir())
        done = call(check, *arguments, **how)
        check.hold(f"mistakes: {what}", done.returncode == code and all(s in done.stderr for s in said), f"{done.returncode} {done.stderr}")
        check.hold(f"mistakes: {what}: nothing is left", set(top.iterdir()) == before, str(set(top.iterdir()) - before))

    def changed(name, change):
        folder = top / f"wrong-{name}"
        shutil.copytree(source, folder)
        change(folder)
        return folder
    fails("a recipe's name", 2, ["genaj", "did you mean 'genai'"], source, "-o", top / "o", "--recipe", "genaj")
    fails("another recipe", 2, ["is not one of piper, which has *.onnx.json", "hint: it is one of genai: leave --recipe out"], source, "-o", top / "o", "--recipe", "piper")
    (top / "empty").mkdir()
    fails("no recipe fits", 2, ["genai has genai_config.json", "hint:"], top / "empty", "-o", top / "o")
    fails("no such folder", 3, ["none: No such file"], top / "none", "-o", top / "o")
    fails("the new folder is there", 2, ["exists and is not empty", "nothing is overwritten"], source, "-o", top / "optimum")
    fails("a file is there", 2, ["a file is there"], source, "-o", top / "texts.jsonl")
    fails("in itself", 2, ["would lie in the one that is read"], source, "-o", source / "new")
    fails("no name", 2, ["hint: give it with -o"], source)
    fails("the name of a model", 2, ["a folder becomes a folder", "hint: name a folder"], source, "-o", top / "new.onnx")
    fails("a folder that is missing", 3, ["mkdir -p"], source, "-o", top / "none/new")
    fails("an option of one model", 2, ["--dump-policy is for one model"], source, "-o", top / "o", "--dump-policy", top / "p")
    no_model = changed("no-model", lambda f: (f / "model.onnx").unlink())
    fails("a model that is missing", 3, ["genai_config.json: model/decoder/filename names 'model.onnx', which is not in the folder", "hint:"], no_model, "-o", top / "o")
    broken = changed("broken", lambda f: (f / "genai_config.json").write_text('{"model": '))
    fails("a broken configuration", 4, ["genai_config.json:1:"], broken, "-o", top / "o")
    for path in ("../optimum/encoder_model.onnx", "/etc/passwd", str(top / "optimum/encoder_model.onnx")):
        config = json.loads((source / "genai_config.json").read_text())
        config["model"]["decoder"]["filename"] = path
        escape = changed(f"escape{len(path)}", lambda f, c=config: (f / "genai_config.json").write_text(json.dumps(c)))
        fails(f"out of the folder: {path}", 3, ["which is not in the folder"], escape, "-o", top / "o")
    data = top / "wrong-data"
    shutil.copytree(top / "external", data)
    (data / "model.onnx.data").unlink()
    fails("data that are missing", 3, ["model.onnx.data"], data, "-o", top / "o")
    (top / "secret").write_text("secret")
    link = changed("link", lambda f: (f / "notes.txt").symlink_to(top / "secret"))
    fails("a link out of the folder", 4, ["notes.txt: the link leads out of the folder", "cp -rL"], link, "-o", top / "o")
    circle = changed("circle", lambda f: (f / "deep").symlink_to(f))
    fails("a link to a folder", 4, ["a link to a file is expected"], circle, "-o", top / "o")
    two = top / "wrong-two"
    shutil.copytree(top / "half", two)
    shutil.copy(two / "onnx/model_fp16.onnx", two / "onnx/model_bf16.onnx")
    (top / "two.recipe").write_text("# octet recipe 1\nfound config.json\nmodel onnx/*.onnx weight-only\nvariant _fp16 fp16 fp16\nvariant _bf16 bf16 bf16\n")
    fails("two float models", 2, ["there are two float models, onnx/model_bf16.onnx and onnx/model_fp16.onnx"], two, "-o", top / "o", "--recipe", top / "two.recipe")
    (top / "bad.recipe").write_text("# octet recipe 1\nfound x\nmodel /a/b dynamik\n")
    fails("a broken recipe", 4, ["bad.recipe:3:", "did you mean 'dynamic'"], source, "-o", top / "o", "--recipe", top / "bad.recipe")
    if os.geteuid():
        (top / "locked").mkdir(mode=0o500)
        fails("no right to write", 3, ["locked/new"], source, "-o", top / "locked/new")
    os.symlink(source / "tokenizer.json", source / "again.json")  # in the folder: a file as any other
    (source / ".git").mkdir()
    (source / ".git/x").write_text("x")
    (top / "there").mkdir()
    done = call(check, f"{source}/", "-o", f"{top / 'there'}/", "-q")
    check.hold("mistakes: links within, folders that are hidden, an empty folder", done.returncode == 0 and "again.json" in files(top / "there") and not (top / "there/.git").exists()
               and not (top / "there/again.json").is_symlink(), done.stderr)
    shutil.rmtree(source / ".git")
    (source / "again.json").unlink()


def broken(check):
    """Configurations and tokenizers that are broken before: a line names each and says why, and the folder is made with them as they are."""
    words = {"unk_token": "<unk>", "vocab": {"<unk>": 0, "b": 1}}
    cases = {  # file: (its text, what is said of it; None: nothing, as loaders read it)
        "transformers.js": {"tokenizer.json": (None, ":"), "config.json": ('{"model_type": "gpt2",', "1:"), "special_tokens_map.json": ("", "the file is empty"),
                            "vocab.json": ('{"a": 1, "a": 2, "n": [Infinity]}', "Infinity"), "added_tokens.json": ('[1, 2]', None), "twice.json": ('{"a": 1, "a": 2}', None),
                            "nul.json": ('{"\\u0000": 1, "a": "\\u0000"}', None), "notes.txt": ("{", None)},
        "genai": {"tokenizer.json": (json.dumps({"model": {"type": "BPE", **words, "merges": ["q b"]}}), "q"), "tokenizer_config.json": ("{}}", "1:3")},
        "sentence-transformers": {"tokenizer.json": (json.dumps({"model": {"type": "of another program", **words}}), None), "modules.json": ("[{]", "1:3")}}
    for kind, given in cases.items():
        source, new = check.folder / f"broken.{kind}", check.folder / f"broken.{kind}.new"
        shutil.copytree(check.folder / kind, source)
        for name, (text, _) in given.items():
            whole = (check.folder / kind / name).read_text() if text is None else text
            (source / name).write_text(whole[:len(whole) // 2] if text is None else whole, encoding="utf-8")
        for more in (["--dry-run"], []):
            done = call(check, source, "-o", new, "--json", check.folder / "broken.json", *more)
            said = {w.split(": ")[0]: w for w in json.loads((check.folder / "broken.json").read_text())["warnings"]}
            want = {name: why for name, (_, why) in given.items() if why}
            check.hold(f"broken: {kind} {more}: what is said", done.returncode == 0 and said.keys() == want.keys() and
                       all(f"{w}" in done.stderr and "copied as it is" in w and want[n] in w for n, w in said.items()), f"{done.returncode} {done.stderr}")
            check.hold(f"broken: {kind} {more}: no place", str(check.folder) not in str(said), str(said))
        check.hold(f"broken: {kind}: as they were", all((new / name).read_bytes() == (source / name).read_bytes() for name in given))


def cache(check):
    """A snapshot in the cache of Hugging Face has links to blobs."""
    for kind in ("sentence-transformers", "external", "shared"):
        snapshot, blobs = check.folder / f"models--{kind}/snapshots/0123", check.folder / f"models--{kind}/blobs"
        blobs.mkdir(parents=True)
        for i, (name, content) in enumerate(files(check.folder / kind).items()):
            (blobs / f"{i:040x}").write_bytes(content)
            (snapshot / name).parent.mkdir(parents=True, exist_ok=True)
            (snapshot / name).symlink_to(os.path.relpath(blobs / f"{i:040x}", (snapshot / name).parent))
        check.convert(snapshot, check.folder / f"cache.{kind}")
        got, want = files(check.folder / f"cache.{kind}"), files(check.folder / f"{kind}.new")
        check.hold(f"cache: {kind}: as without links", got == want or kind == "external" and sorted(got) == sorted(want), str(sorted(got)))


def noise(array, rng):
    return (rng.standard_normal(array.shape) * array.std()).astype(array.dtype)


def publish(path, change):
    """A variant of a model, as somebody has published it: change(model) damages it."""
    model = onnx.load(path.parent / "model.onnx")
    change(model)
    onnx.save(model, path)


def constant(model, end):
    return next(t for t in model.graph.initializer if t.name.endswith(end))


def audits(check):
    """What others published: near chance, Casts that do not fit, data that are missing, other ends, cut short; each is found, and nothing else."""
    rng, source = np.random.default_rng(8), check.folder / "published"
    shutil.copytree(check.folder / "transformers.js", source)
    onnxs = source / "onnx"
    shutil.copy(check.folder / "transformers.js.new/onnx/model_q4.onnx", onnxs)
    check.convert(onnxs / "model.onnx", onnxs / "model_fp16.onnx", "--scheme", "fp16", "--no-keep-io-types")

    def near_chance(model):
        for t in model.graph.initializer:
            if len(t.dims) == 2 and t.dims[0] * t.dims[1] > 1000:
                t.CopyFrom(onnx.numpy_helper.from_array(noise(onnx.numpy_helper.to_array(t), rng), t.name))

    def without_cast(model):
        t = constant(model, "0.up_proj.weight")
        t.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(t).astype(np.float16), t.name))

    def renamed(model):
        for node in model.graph.node:
            for i, name in enumerate(node.output):
                node.output[i] = "scores" if name == "logits" else name
        model.graph.output[0].name = "scores"
    publish(onnxs / "model_quantized.onnx", near_chance)
    publish(onnxs / "model_q4f16.onnx", without_cast)
    publish(onnxs / "model_uint8.onnx", renamed)
    onnx.save(onnx.load(onnxs / "model.onnx"), onnxs / "model_int8.onnx", save_as_external_data=True, location="model_int8.onnx_data", size_threshold=1024)
    (onnxs / "model_int8.onnx_data").unlink()
    (onnxs / "model_bnb4.onnx").write_bytes((onnxs / "model.onnx").read_bytes()[:5000])
    for word in ("q4f16", "int8", "bnb4"):  # ONNX Runtime says the same
        try:
            peer.session(str(onnxs / f"model_{word}.onnx"))
            check.hold(f"audit: {word} does not load in ONNX Runtime", False)
        except Exception:  # pylint: disable=broad-except
            check.hold(f"audit: {word} does not load in ONNX Runtime", True)
    want = {"q4": "loads", "fp16": "loads", "q8": "loads", "q4f16": "does not load", "int8": "does not load", "bnb4": "does not load", "uint8": "other ends"}
    texts = check.folder / "texts.jsonl"
    for data, said in (([], want), (["--data", texts, "--samples", "20"], want | {"q4": "fits", "fp16": "fits", "q8": "near chance"})):
        report = check.folder / "audit.json"
        done = subprocess.run([check.qeval, "audit", source, *data, "--json", report], capture_output=True, text=True)
        got = json.loads(report.read_text())["variants"]
        check.hold(f"audit: verdicts {len(data)}", {v["variant"]: v["verdict"] for v in got} == said, str({v["variant"]: (v["verdict"], v["why"]) for v in got}))
        check.hold(f"audit: exit {len(data)}", done.returncode == 1 and "variants cannot be used" in done.stderr, done.stderr)
        why = {v["variant"]: v["why"] or "" for v in got}
        check.hold("audit: why", "up_proj" in why["q4f16"] and "float16" in why["q4f16"] and "model_int8.onnx_data" in why["int8"] and "'logits'" in why["uint8"], str(why))
    by = {v["variant"]: v for v in got}
    feed = [feed_of(onnxs / "model.onnx") | {"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(ids)), np.int64), "position_ids": np.arange(len(ids))[None]}
            for ids in (json.loads(line)["input_ids"] for line in texts.read_text().splitlines())]
    worst = min(sqnr([np.stack([peer.session(str(onnxs / "model.onnx")).run(None, f)[k] for f in feed])],
                     [np.stack([peer.session(str(onnxs / "model_q4.onnx")).run(None, f)[k] for f in feed])]) for k in range(5))
    check.hold("audit: SQNR", abs(by["q4"]["output_sqnr_db"] - worst) < 1.5, f"{by['q4']['output_sqnr_db']} {worst}")
    report = check.folder / "pair.json"
    pair = [check.qeval, check.folder / "transformers.js", check.folder / "transformers.js.new", "--data", texts, "-q", "--json", report]
    done = subprocess.run(pair, capture_output=True, text=True)
    check.hold("audit: two folders", done.returncode == 0 and [v["verdict"] for v in json.loads(report.read_text())["variants"]] == ["fits"], done.stderr)
    done = subprocess.run([*pair, "--min-sqnr", "60"], capture_output=True, text=True)
    check.hold("audit: a gate", done.returncode == 1 and [v["verdict"] for v in json.loads(report.read_text())["variants"]] == ["misses a gate"], done.stderr)
    words = check.folder / "words.txt"
    words.write_text("4 5 6\nbo bu ba\n")
    done = subprocess.run([*pair[:3], "--data", words], capture_output=True, text=True)
    check.hold("audit: samples that suit none", done.returncode == 4 and "not a token id" in done.stderr and "hint: tokenizer=" in done.stderr, done.stderr)
    done = subprocess.run([*pair[:3], "--json", report], capture_output=True, text=True)
    check.hold("audit: two folders without samples", done.returncode == 0 and [v["verdict"] for v in json.loads(report.read_text())["variants"]] == ["loads"], done.stderr)
    for more, said in ((["--max-drop", "1%"], "--max-drop needs --data"), (["--data", texts, "--outputs", check.folder / "y.npz"], "--outputs is for models")):
        done = subprocess.run([*pair[:3], *more], capture_output=True, text=True)
        check.hold(f"audit: two folders, {more[0]}", done.returncode == 2 and said in done.stderr, done.stderr)
    done = subprocess.run([check.qeval, pair[1], "--data", texts], capture_output=True, text=True)
    check.hold("audit: one folder", done.returncode == 2 and "hint: two folders are compared by" in done.stderr, done.stderr)
    half = check.folder / "halfway"
    shutil.copytree(check.folder / "optimum.new", half)
    (half / "encoder_model.onnx").unlink()
    done = subprocess.run([check.qeval, check.folder / "optimum", half, "--data", f"decoder_model={texts}", "-q", "--json", report], capture_output=True, text=True)
    got = {v["model"]: v["verdict"] for v in json.loads(report.read_text())["variants"]}
    check.hold("audit: one is missing", done.returncode == 1 and got == {"encoder_model.onnx": "missing", "decoder_model.onnx": "fits", "decoder_model_merged.onnx": "loads",
                                                                         "decoder_with_past_model.onnx": "loads"}, str(got))
    done = subprocess.run([check.qeval, "audit", check.folder / "optimum"], capture_output=True, text=True)
    check.hold("audit: no variants", done.returncode == 2 and "there are no variants beside its float models" in done.stderr, done.stderr)
    strange = check.folder / "strange"
    shutil.copytree(check.folder / "optimum", strange)
    shutil.copy(strange / "decoder_model.onnx", strange / "q4.onnx")
    done = subprocess.run([check.qeval, "audit", strange], capture_output=True, text=True)
    check.hold("audit: a name of no line, alone", done.returncode == 2 and f"hint: no line of the recipe optimum names 'q4.onnx': compare it by 'qeval FLOAT.onnx {strange}/q4.onnx'" in " ".join(done.stderr.split()), done.stderr)
    shutil.copy(strange / "decoder_model.onnx", strange / "decoder_model_int8.onnx")
    done = subprocess.run([check.qeval, "audit", strange], capture_output=True, text=True)
    check.hold("audit: a name of no line", done.returncode == 0 and "warning: q4.onnx: no line of the recipe optimum names this model: it is not judged" in done.stderr, done.stderr)


def killed(check):
    """A run that ends early leaves neither a folder nor what it was written in."""
    big = folders.genai(check.folder / "big", width=512, layers=4, heads=8)
    top = check.folder / "killed"
    top.mkdir()
    for delay in (0.05, 0.2, 0.5, 1.0):
        run = subprocess.Popen([check.qconvert, big, "-o", top / "new", "-q"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        run.send_signal(signal.SIGTERM)
        if run.wait() == 0:
            shutil.rmtree(top / "new")
        check.hold(f"killed after {delay} s", not list(top.iterdir()), str(list(top.iterdir())))


PROMPT = [60, 75, 90, 105]
GENAI = """import sys
import onnxruntime_genai as og
for folder in sys.argv[2:]:
    model = og.Model(folder)
    params = og.GeneratorParams(model)
    params.set_search_options(max_length=12, do_sample=False)
    g = og.Generator(model, params)
    g.append_tokens(og.Tokenizer(model).encode(sys.argv[1]))
    while not g.is_done():
        g.generate_next_token()
    print(*map(int, g.get_sequence(0)))
"""
NODE = """import { pipeline, env } from '@huggingface/transformers';
env.allowRemoteModels = false; env.localModelPath = process.argv[2] + '/';
const write = await pipeline('text-generation', process.argv[3]);
console.log((await write(process.argv[4], { max_new_tokens: 8, do_sample: false }))[0].generated_text);
"""


def greedy(model, prompt, count):
    """The likeliest tokens by ONNX Runtime, step by step without a cache."""
    session, ids = peer.session(str(model)), list(prompt)
    for _ in range(count):
        feed = feed_of(model)
        feed["input_ids"] = np.array([ids])
        feed["attention_mask"] = np.ones((1, len(ids)), np.int64)
        if "position_ids" in feed:
            feed["position_ids"] = np.arange(len(ids))[None]
        ids.append(int(session.run(None, feed)[0][0, -1].argmax()))
    return ids


def python_with(module):
    """A Python that has the module: this one, or one that OCT_LOADERS names; None: there is none, and it says so."""
    for python in (sys.executable, *filter(None, os.environ.get("OCT_LOADERS", "").split(":"))):
        if subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0:
            return python
    print(f"not tried: {module} (in the Pythons that OCT_LOADERS names)")
    return None


def node_with(package):
    """A folder that has it in node_modules, as OCT_NODE names it; None: there is none, and it says so."""
    folder = os.environ.get("OCT_NODE")
    if folder and shutil.which("node") and (Path(folder) / "node_modules" / package).is_dir():
        return Path(folder)
    print(f"not tried: {package} (OCT_NODE names a folder that has it in node_modules)")
    return None


def said_by(python, program, *arguments):
    """The last line that a program prints, or its complaint."""
    done = subprocess.run([python, "-c", program, *map(str, arguments)], capture_output=True, text=True)
    return (done.stdout.strip().splitlines() or [done.stderr[-500:]])[-1].strip()


def node_says(node, program, *arguments):
    script = Path(node, f"check_folders_{os.getpid()}.mjs")  # node looks for packages from where the script is
    script.write_text(program)
    try:
        done = subprocess.run(["node", script, *map(str, arguments)], cwd=node, capture_output=True, text=True)
    finally:
        script.unlink()
    return (done.stdout.strip().splitlines() or [done.stderr[-500:]])[-1].strip()


SHERPA = """import sys
import numpy as np
import sherpa_onnx
folder, end = sys.argv[1:]
files = {n: f"{folder}/{n}-epoch-99-avg-1{end}.onnx" for n in ("encoder", "decoder", "joiner")}
heard = sherpa_onnx.OfflineRecognizer.from_transducer(tokens=f"{folder}/tokens.txt", **files)
stream = heard.create_stream()
stream.accept_waveform(16000, np.random.default_rng(0).standard_normal(16000).astype(np.float32) * 0.1)
heard.decode_stream(stream)
print(len(stream.result.tokens))
"""
PIPER = """import sys
import piper
sound = piper.PiperVoice.load(f"{sys.argv[1]}/en_US-made-low.onnx").phoneme_ids_to_audio([1, 0, 4, 0, 5, 0, 6, 0, 2])
print(*(f"{x:.6f}" for x in (sound[0] if isinstance(sound, tuple) else sound)))
"""
SENTENCES = """import sys
import sentence_transformers
model = sentence_transformers.SentenceTransformer(sys.argv[1], backend="onnx")
print(*(f"{x:.6f}" for x in model.encode([sys.argv[2]])[0]))
"""
WEB = """import * as ort from 'onnxruntime-web';
import fs from 'fs';
const session = await ort.InferenceSession.create(fs.readFileSync(process.argv[2]));
const ids = process.argv[3].split(',').map(BigInt), feed = {};
const given = { input_ids: ids, attention_mask: ids.map(() => 1n), position_ids: ids.map((_, i) => BigInt(i)) };
for (const m of session.inputMetadata)
  feed[m.name] = m.name in given ? new ort.Tensor('int64', BigInt64Array.from(given[m.name]), [1, ids.length])
                                 : new ort.Tensor(m.type, m.type === 'float16' ? new Uint16Array(0) : new Float32Array(0), [1, m.shape[1], 0, m.shape[3]]);
const logits = (await session.run(feed)).logits;
console.log((await logits.getData()).length);
"""


def loaders(check):
    """The programs that the folders are for."""
    of_js = (("transformers.js.new", "model_q4"), ("stale.new", "model_q4"), ("half.new", "model_q4f16"), ("tjs.dynamic0", "model_quantized"))
    if python := python_with("onnxruntime_genai"):
        for name in ("genai.new", "external.new"):
            said = said_by(python, GENAI, f" {folders.text_of(PROMPT)}", check.folder / name)
            want = " ".join(map(str, greedy(check.folder / name / "model.onnx", PROMPT, 8)))
            check.hold(f"loaders: onnxruntime-genai: {name}", said == want, f"{said} {want}")
    if python := python_with("sherpa_onnx"):
        counts = [said_by(python, SHERPA, check.folder / name, end) for name, end in (("sherpa-onnx", ""), ("sherpa-onnx.new", ".int8"))]
        check.hold("loaders: sherpa-onnx", all(c.isdigit() and int(c) > 0 for c in counts), str(counts))
    if python := python_with("piper"):
        sounds = [said_by(python, PIPER, check.folder / name).split() for name in ("piper", "piper.new")]
        check.hold("loaders: piper", len(sounds[0]) == len(sounds[1]) > 4 and sqnr(*([np.array(s, float)] for s in sounds)) > 20, str(sounds))
    if python := python_with("sentence_transformers, optimum.onnxruntime"):
        rows = [said_by(python, SENTENCES, check.folder / name, folders.text_of(PROMPT)).split() for name in ("sentence-transformers", "sentence-transformers.new")]
        check.hold("loaders: sentence-transformers", len(rows[0]) == len(rows[1]) == 64 and sqnr(*([np.array(r, float)] for r in rows)) > 20, str(rows)[:900])
    if node := node_with("@huggingface/transformers"):
        for name, file in of_js:
            said = node_says(node, NODE, check.folder, name, folders.text_of(PROMPT))
            want = folders.text_of(greedy(check.folder / name / f"onnx/{file}.onnx", PROMPT, 8))
            exact = file != "model_quantized"  # products that round what they read to scales of a whole prompt give other tokens step by step
            check.hold(f"loaders: transformers.js: {name}", said == want if exact else said.startswith(folders.text_of(PROMPT)), f"{said} | {want}")
    if node := node_with("onnxruntime-web"):
        for name, file in of_js:
            said = node_says(node, WEB, check.folder / name / f"onnx/{file}.onnx", ",".join(map(str, PROMPT)))
            check.hold(f"loaders: onnxruntime-web: {name}", said == str(len(PROMPT) * folders.WORDS), said)


def tutorial(check):
    """What docs/tutorial-language.md shows beside the commands, which another test runs: the programs that serve."""
    root = Path(__file__).resolve().parents[2]
    blocks = re.findall(r"^```(python|js)\n(.*?)^```", (root / "docs/tutorial-language.md").read_text(), re.S | re.M)
    top = check.folder / "tutorial"
    (top / "build").mkdir(parents=True)
    for source, new in (("genai", "genai-int4"), ("web", "web-q4")):
        check.convert(root / "testdata/folders" / source, top / "build" / new)
    said = {}
    for kind, text in blocks:
        loader = "js" if kind == "js" else "genai" if "genai" in text else "onnxruntime"
        check.hold(f"tutorial: {loader}: at most a dozen lines", len(text.splitlines()) <= 12)
        if loader == "js":
            if node := node_with("@huggingface/transformers"):
                said[loader] = node_says(node, text.replace("'build/'", f"'{top}/build/'"))
        elif python := python_with("onnxruntime_genai" if loader == "genai" else "tokenizers"):
            said[loader] = said_by(python, f"import os\nos.chdir({str(top)!r})\n{text}")
    check.hold("tutorial: three programs", len(blocks) == 3)
    tokens, prompt = folders.vocabulary(128)[0], "de he le pe"
    ids = [tokens.index(folders.BLANK + word) for word in prompt.split()]
    for loader, (folder, file) in {"genai": ("genai-int4", "model.onnx"), "js": ("web-q4", "onnx/model_q4.onnx"), "onnxruntime": ("web-q4", "onnx/model_q4.onnx")}.items():
        if loader in said:
            count = 12 if loader == "genai" else 8
            want = folders.text_of(greedy(top / "build" / folder / file, ids, count), 128)
            check.hold(f"tutorial: {loader}", said[loader] == want, f"{said[loader]} | {want}")


def main():
    args = options(__doc__).parse_args()
    with Checker(args) as check:
        for part in (kinds, configuration, sharing, floats, texts, samples, audits, again, mistakes, broken, cache, killed, loaders, tutorial):
            part(check)
        return check.finish()


if __name__ == "__main__":
    sys.exit(main())
