#!/usr/bin/env python3
"""Converts decoders as exporters write them, with keys and values that go out and caches that come in, and judges them with ONNX Runtime.

    check_decoders.py [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Small decoders with random weights are made in the forms of exporters. Heads have 8 bits and nothing else has; a matrix that both branches
of a merged decoder read is in the file once. Caches that samples leave out are empty, and those that they give are taken, in every form of
samples: perplexity and outputs are those of ONNX Runtime. What is float16 stays float16: in blocks of either form a decoder has no more Casts
than ONNX Runtime's own quantizer leaves, and in operators no more nodes. On texts that no conversion has seen, its perplexity rises half as
much as by rounding to nearest at most, if samples are given, in the branches of an If as outside.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from pylib import decoders, peer, tokennet, tool
from pylib.judge import Checker, options, sqnr


def heads(check):
    """The head has 8 bits, also of a decoder that is given embeddings; keys and values that go out have 4."""
    sizes = {}
    for form in ("first", "past", "merged", "keys", "embeds"):
        model, out = check.folder / f"heads.{form}.onnx", check.folder / f"heads.{form}.q.onnx"
        decoders.Decoder().write(model, form)
        check.convert(model, out, "--scheme", "weight-only")
        found = decoders.bits(out)
        wrong = {name: b for name, b in found.items() if b != (8 if "lm_head" in name else 4)}
        check.hold(f"{form}: bits", found and not wrong, str(wrong))
        sizes[form] = sum(len(t.raw_data) for t in onnx.load(out).graph.initializer)
    check.hold("merged: each matrix once", sizes["merged"] < 1.02 * sizes["past"] + 4096, str(sizes))


def texts(net, count=96, length=24, seed=5):
    """Rows of ids that the decoder itself wrote, so that it expects them."""
    session = peer.session(str(net))
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, 400, (count, 1))
    while ids.shape[1] < length:
        logits = session.run(["logits"], {"input_ids": ids})[0][:, -1]
        noise = rng.gumbel(size=logits.shape)
        ids = np.concatenate([ids, (logits + noise).argmax(-1)[:, None]], 1)
    return ids


def empty(count, layers=2):
    return {f"past_key_values.{layer}.{kind}": np.zeros((count, 4, 0, 16), np.float32) for layer in range(layers) for kind in ("key", "value")}


def write_samples(check, ids):
    """The texts in every form: {what: path}, with and without caches that are empty."""
    folder = check.folder
    with (folder / "texts.jsonl").open("w") as f:
        f.writelines(json.dumps({"input_ids": row.tolist()}) + "\n" for row in ids)
    np.savez(folder / "texts.npz", input_ids=ids)
    np.savez(folder / "empty.npz", input_ids=ids, **empty(len(ids)))
    np.savez_compressed(folder / "packed.npz", input_ids=ids, **empty(len(ids)))
    (folder / "arrays").mkdir()
    np.save(folder / "arrays" / "input_ids.npy", ids)
    for k, row in enumerate(ids):
        case = folder / "cases" / f"test_data_set_{k}"
        case.mkdir(parents=True)
        (case / "input_0.pb").write_bytes(onnx.numpy_helper.from_array(row[None], "input_ids").SerializeToString())
    return {form: folder / form for form in ("texts.jsonl", "texts.npz", "empty.npz", "packed.npz", "arrays", "cases")}


def perplexity(check, model, data, *more):
    report = check.folder / "eval.json"
    said = subprocess.run([check.qeval, model, "--data", data, "--metric", "perplexity", "-q", "--json", report, *more],
                          capture_output=True, text=True)
    return json.loads(report.read_text())["models"][0]["metrics"]["perplexity"] if said.returncode == 0 else said.stderr


def caches(check):
    model, first, merged = (check.folder / f"{form}.onnx" for form in ("past", "first", "merged"))
    for form in (model, first, merged):
        decoders.Decoder().write(form, form.stem)
    ids = texts(first)
    want = tokennet.perplexity(peer.session(str(first)).run(["logits"], {"input_ids": ids})[0], ids)
    for form, path in write_samples(check, ids).items():
        got = perplexity(check, model, path)
        check.hold(f"perplexity of {form}", isinstance(got, float) and abs(got / want - 1) < 1e-4, f"{got}, ONNX Runtime {want:.6g}")
        got = perplexity(check, model, path, "--batch", "4")
        check.hold(f"perplexity of {form} in batches", isinstance(got, float) and abs(got / want - 1) < 1e-4, f"{got}")
    got = perplexity(check, merged, check.folder / "texts.jsonl")
    check.hold("perplexity of a merged decoder", isinstance(got, float) and abs(got / want - 1) < 1e-4, f"{got}")
    conversions(check, model, merged)
    given(check, model, ids)
    left_out(check, ids)


def conversions(check, model, merged):
    """Samples round the weights of each form; what was empty is said once."""
    for path in (model, merged):
        out, near = check.folder / "given.onnx", check.folder / "near.onnx"
        said = subprocess.run([check.qconvert, path, "--scheme", "weight-only", "--data", check.folder / "texts.jsonl", "-o", out],
                              capture_output=True, text=True, check=True)
        told, said = " ".join(said.stdout.split()), said.stderr
        check.hold(f"{path.stem}: the answer names layers with weights alone", "times smaller" in told and "Softmax" not in told, told[-300:])
        check.hold(f"{path.stem}: empty caches are said once", said.count("are empty, as nothing was given") == 1, said[-300:])
        check.convert(path, near, "--scheme", "weight-only")
        base = perplexity(check, path, check.folder / "texts.jsonl")
        rise, plain = (perplexity(check, q, check.folder / "texts.jsonl") - base for q in (out, near))
        check.hold(f"{path.stem}: perplexity rises less with samples", rise < plain, f"{plain:.3f} without, {rise:.3f}")


def given(check, model, ids):
    """A cache that samples give, and states that grow from nothing: outputs as those of ONNX Runtime."""
    session = peer.session(str(model))
    names = [o.name for o in session.get_outputs()]
    before = session.run(None, {"input_ids": ids[:, :6], **empty(len(ids))})
    cache = {name.replace("present", "past_key_values"): array for name, array in zip(names[1:], before[1:])}
    want = session.run(None, {"input_ids": ids[:, 6:], **cache})[0]
    data, out = check.folder / "cache.npz", check.folder / "out.npz"
    np.savez(data, input_ids=ids[:, 6:], **cache)
    got = tool.run_qeval(check.qeval, model, data, out)["logits"].reshape(want.shape)
    check.hold("a cache that is given", sqnr([want], [got]) > 90, f"{sqnr([want], [got]):.1f} dB")
    steps = check.folder / "steps.npz"
    np.savez(steps, input_ids=ids[0].reshape(-1, 1))
    grown = [v for name in names[1:] for v in ("--state", f"{name}={name.replace('present', 'past_key_values')}")]
    tool.run([check.qeval, model, "--data", steps, "--outputs", out, "-q", *grown])
    want = session.run(None, {"input_ids": ids[:1], **empty(1)})[0]
    got = np.load(out)["logits"].reshape(want.shape)
    check.hold("states that begin empty and grow", sqnr([want], [got]) > 90, f"{sqnr([want], [got]):.1f} dB")
    report = check.convert(model, check.folder / "grown.onnx", "--scheme", "weight-only", "--data", steps, *grown)
    ran = {m["name"]: m for m in report["methods"]}.get("block-rounding", {})
    check.hold("states that grow prepare a conversion", ran.get("ran") is True, str(ran))


def left_out(check, ids):
    """Masks, positions and types that arrays leave out are those that a caller of ONNX Runtime writes; padding is what `lengths` says."""
    model, out, folder = check.folder / "padded.onnx", check.folder / "out.npz", check.folder
    decoders.Decoder().write(model, "padded")
    session = peer.session(str(model))
    places = np.arange(ids.shape[1])[None].repeat(len(ids), 0)
    whole = {"input_ids": ids, "attention_mask": np.ones_like(ids), "position_ids": places}
    want = session.run(None, whole | empty(len(ids)))[0]
    np.save(folder / "ids.npy", ids)
    for form in ("texts.npz", "ids.npy", "arrays", "texts.jsonl"):
        got = tool.run_qeval(check.qeval, model, folder / form, out)["logits"].reshape(want.shape)
        check.hold(f"{form}: mask and positions that are left out", sqnr([want], [got]) > 90, f"{sqnr([want], [got]):.1f} dB")
        said = subprocess.run([check.qeval, model, "--data", folder / form, "--batch", "4"], capture_output=True, text=True, check=True).stderr
        told = "attention_mask (ones), position_ids (counted)" in " ".join(said.split())
        check.hold(f"{form}: it is said of arrays", told == (form != "texts.jsonl"), said[-300:])

    # A cache of six positions: the mask covers it, positions go on behind it.
    first = session.run(None, {n: a[:, :6] for n, a in whole.items()} | empty(len(ids)))
    cache = {o.name.replace("present", "past_key_values"): a for o, a in zip(session.get_outputs()[1:], first[1:])}
    want = session.run(None, {"input_ids": ids[:, 6:], "attention_mask": whole["attention_mask"], "position_ids": places[:, 6:], **cache})[0]
    np.savez(folder / "behind.npz", input_ids=ids[:, 6:], **cache)
    got = tool.run_qeval(check.qeval, model, folder / "behind.npz", out)["logits"].reshape(want.shape)
    check.hold("mask and positions behind a cache", sqnr([want], [got]) > 90, f"{sqnr([want], [got]):.1f} dB")

    np.savez(folder / "masked.npz", input_ids=ids, attention_mask=(places < 9).astype(np.int64))
    want = session.run(None, whole | {"attention_mask": (places < 9).astype(np.int64)} | empty(len(ids)))[0]
    got = tool.run_qeval(check.qeval, model, folder / "masked.npz", out)["logits"].reshape(want.shape)
    check.hold("a mask that is given stays", sqnr([want], [got]) > 90, f"{sqnr([want], [got]):.1f} dB")
    said = subprocess.run([check.qeval, model, "--data", folder / "masked.npz"], capture_output=True, text=True, check=True).stderr
    check.hold("only what is left out is said", "for position_ids (counted)" in " ".join(said.split()), said[-300:])
    np.savez(folder / "no_ids.npz", attention_mask=np.ones_like(ids))
    said = subprocess.run([check.qeval, model, "--data", folder / "no_ids.npz"], capture_output=True, text=True)
    check.hold("no ids, no mask", said.returncode != 0 and "no array for input 'input_ids'" in said.stderr, said.stderr[-300:])


def casts(path):
    return decoders.count(path, "Cast")


def nodes(path):
    return sum(1 for _ in decoders.each_node(onnx.load(path, load_external_data=False).graph))


def theirs(model, out):
    """The Casts that remain when ONNX Runtime's quantizer writes 4 bits; None where it does not run."""
    try:
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    except ImportError:
        return None
    quantizer = MatMulNBitsQuantizer(onnx.load(model), block_size=32, is_symmetric=False)
    quantizer.process()
    quantizer.model.save_model_to_file(str(out))
    return casts(out)


def halves(check):
    """float16 stays float16."""
    feeds = {"input_ids": np.random.default_rng(2).integers(0, 400, (3, 10))}
    cases = [(form, form, False) for form in ("first", "past", "merged", "genai")]
    cases += [(f"{form}, norms in float32", form, True) for form in ("past", "merged")]
    for name, form, wide in cases:
        model, peers, out = (check.folder / f"half.{end}.onnx" for end in ("float", "peer", "blocks"))
        decoders.Decoder(dtype="float16", wide_norms=wide).write(model, form)
        before = casts(model)
        peers.unlink(missing_ok=True)
        most = theirs(model, peers)
        most = before if most is None else most
        feed = dict(feeds)
        if form != "first":
            feed |= {k: v.astype(np.float16) for k, v in empty(3).items()}
        if form == "genai":
            feed["attention_mask"] = np.ones((3, 10), np.int64)
        if form == "merged":
            feed["use_cache_branch"] = np.array([True])
        want = peer.session(str(model)).run(None, feed)
        for kind in ([], ["--format", "qdq"]):
            check.convert(model, out, "--scheme", "weight-only", *kind)
            what = f"float16, {name}{' qdq' if kind else ''}"
            made = onnx.load(out)
            check.hold(f"{what}: Casts", casts(out) <= most, f"{casts(out)}, ONNX Runtime's quantizer {most}, before {before}")
            if not kind and peers.exists():
                check.hold(f"{what}: nodes", nodes(out) <= nodes(peers), f"{nodes(out)}, ONNX Runtime's quantizer {nodes(peers)}")
            scales = {t.data_type for t in made.graph.initializer if re.search(r"_scale(_\d+)?$", t.name)}
            check.hold(f"{what}: scales", scales == {onnx.TensorProto.FLOAT16}, str(scales))
            ends = [[v.type.tensor_type.elem_type for v in side] for m in (onnx.load(model), made) for side in (m.graph.input, m.graph.output)]
            check.hold(f"{what}: inputs and outputs", ends[:2] == ends[2:], str(ends))
            got = peer.session(str(out)).run(None, feed)
            near = sqnr([want[0].astype(np.float32)], [got[0].astype(np.float32)])
            check.hold(f"{what}: logits", near > 14, f"{near:.1f} dB")
            np.savez(check.folder / "half.npz", **feed)
            ours = tool.run_qeval(check.qeval, out, check.folder / "half.npz", check.folder / "half.out.npz")["logits"].reshape(got[0].shape)
            near = sqnr([got[0].astype(np.float32)], [ours])
            check.hold(f"{what}: logits here", near > 40, f"{near:.1f} dB")
            wide_out = check.folder / "half.wide.onnx"
            decoders.Decoder(wide_norms=wide).write(check.folder / "wide.onnx", form)
            check.convert(check.folder / "wide.onnx", wide_out, "--scheme", "weight-only", *kind)
            full = peer.session(str(wide_out)).run(None, {k: v.astype(np.float32) if v.dtype == np.float16 else v for k, v in feed.items()})
            same = sqnr([full[0]], [got[0].astype(np.float32)])
            check.hold(f"{what}: as float32 in the same bits", same > 30, f"{same:.1f} dB")


def to_nearest(path, out, block=32):
    """The decoder with matrices rounded to 4 bits, with zero points, between the extremes of each block; its head stays as it is."""
    model = onnx.load(path)
    products = {n.input[1] for _, n in decoders.each_node(model.graph) if n.op_type == "MatMul" and "lm_head" not in n.name}
    for t in model.graph.initializer:
        if t.name in products:
            w = onnx.numpy_helper.to_array(t)
            parts = w.astype(np.float32).reshape(-1, block, w.shape[1])
            lo, hi = np.minimum(parts.min(1, keepdims=True), 0), np.maximum(parts.max(1, keepdims=True), 0)
            scale = (hi - lo) / 15
            zero = np.round(-lo / scale)
            real = (np.clip(np.round(parts / scale) + zero, 0, 15) - zero) * scale
            t.CopyFrom(onnx.numpy_helper.from_array(real.reshape(w.shape).astype(w.dtype), t.name))
    onnx.save(model, out)


def run_form(path, form, ids):
    feed = {"input_ids": ids}
    if form != "first":
        feed |= {k: v.astype(np.float16) for k, v in empty(len(ids)).items()}
    if form == "genai":
        feed["attention_mask"] = np.ones_like(ids)
    if form == "merged":
        feed["use_cache_branch"] = np.array([True])
    return peer.session(str(path)).run(["logits"], feed)[0].astype(np.float32)


def written(path, form, count, seed, length=24):
    """Texts that a decoder writes, as `texts`."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, 400, (count, 1))
    while ids.shape[1] < length:
        logits = run_form(path, form, ids)[:, -1]
        ids = np.concatenate([ids, (logits + rng.gumbel(size=logits.shape)).argmax(-1)[:, None]], 1)
    return ids


def rises(check):
    """Perplexity of three float16 decoders together: by 4 bits with samples, and by rounding to nearest. All judged texts are new."""
    total = {}
    for seed in range(3):
        for form in ("first", "merged", "genai"):
            model, near, out = (check.folder / f"rise.{end}.onnx" for end in ("float", "near", "blocks"))
            decoders.Decoder(dtype="float16", seed=seed).write(model, form)
            seen, new = (written(model, form, count, text_seed) for count, text_seed in ((96, 5), (200, 77)))
            np.savez(check.folder / "seen.npz", input_ids=seen)
            to_nearest(model, near)
            check.convert(model, out, "--scheme", "weight-only", "--data", check.folder / "seen.npz")
            base, plain, ours = (tokennet.perplexity(run_form(path, form, new), new) for path in (model, near, out))
            sums = total.setdefault(form, [0, 0])
            sums[0] += plain - base
            sums[1] += ours - base
    for form, (plain, ours) in total.items():
        check.hold(f"{form}: perplexity's rise is half of rounding to nearest at most", 0 < ours <= plain / 2, f"{ours:.3f}, to nearest {plain:.3f}")
    outside, inside = total["first"][1], total["merged"][1]
    check.hold("perplexity inside an If is as outside", abs(inside - outside) < 0.1 * outside, f"{inside:.3f}, outside {outside:.3f}")


def masks(check):
    """What a float16 model computes in float32 stays so: a row whose mask is -1e9 throughout is even there, and NaN in float16."""
    width, words, f16, f32 = 64, 5, onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT
    g = decoders.Graph()
    q, k, v = (g.node("MatMul", ["x", g.const(name, np.random.default_rng(i).normal(0, 0.15, (width, width)).astype(np.float16))], name=name) for i, name in enumerate("qkv"))
    scores = g.node("Cast", [g.node("MatMul", [q, g.node("Transpose", [k], perm=[0, 2, 1])])], to=f32)
    low = g.node("Mul", [g.node("Sub", ["mask", g.const("one", np.float32(1))]), g.const("most", np.float32(1e9))])
    shares = g.node("Cast", [g.node("Softmax", [g.node("Add", [scores, low])], axis=-1)], to=f16)
    g.node("MatMul", [shares, v], out="y")
    ends = [onnx.helper.make_tensor_value_info(*e) for e in (("x", f16, [1, words, width]), ("mask", f32, [1, words, words]), ("y", f16, [1, words, width]))]
    held = [onnx.numpy_helper.from_array(a, n) for n, a in g.constants.items()]
    model, out = check.folder / "masks.onnx", check.folder / "masks.q.onnx"
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph(g.nodes, "g", ends[:2], ends[2:], held), opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), model)
    feed = {"x": np.random.default_rng(9).normal(size=(1, words, width)).astype(np.float16), "mask": np.tril(np.ones((1, words, words), np.float32), -1)}
    want = peer.session(str(model)).run(None, feed)[0].astype(np.float32)
    check.hold("masks: the float16 model's rows are finite", np.isfinite(want).all())
    for kind in ([], ["--format", "qdq"]):
        check.convert(model, out, "--scheme", "weight-only", *kind)
        got = peer.session(str(out)).run(None, feed)[0].astype(np.float32)
        check.hold(f"masks {kind}: values", sqnr([want], [got]) > 14, f"{got[0, :, 0]}")
        check.hold(f"masks {kind}: Casts", casts(out) == casts(model), f"{casts(out)}, before {casts(model)}")
    with np.errstate(all="ignore"):  # ONNX Runtime computes float16 in float32 on CPUs, the reference does not
        got = ReferenceEvaluator(str(out)).run(None, feed)[0].astype(np.float32)
    check.hold("masks: finite in float16, too", np.isfinite(got).all() and sqnr([want], [got]) > 14, f"{got[0, :, 0]}")


def main():
    args = options(__doc__).parse_args()
    with Checker(args) as check:
        heads(check)
        caches(check)
        halves(check)
        rises(check)
        masks(check)
        return check.finish()


if __name__ == "__main__":
    sys.exit(main())
