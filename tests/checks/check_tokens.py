#!/usr/bin/env python3
"""Converts the token models of testdata/tokens to weights in blocks, and holds what that costs in perplexity.

    check_tokens.py [--qconvert PROGRAM] [--qeval PROGRAM] [--qcalib PROGRAM] [--models FOLDER] [-v]

Perplexities come from qeval and, of the logits of ONNX Runtime on the same file, from NumPy: they must be the same to the digits that qeval prints.
With samples 4 bits may cost at most half of what they cost to the nearest value: of our own conversion without samples, and of plain rounding between the
smallest and the largest weight of each block, made here.
Texts of unequal length come as files of token ids too (lines of JSON and of ids, a stream): ONNX Runtime gets the arrays that these stand for, made here,
and its logits are those of qeval. Calibration tables and converted models are those of the arrays.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx

from pylib import peer, tokenmodel, tokennet, tool
from pylib.judge import Checker, options

FORMS = {"llama": (["--format", "qdq"], ["--bits", "4"]),
         "gpt": (["--bits", "4"], ["--bits", "4", "--symmetric", "--block-size", "64"], ["--bits", "8"])}
BLOCK = 32


def theirs(model, data):
    """Perplexity of ONNX Runtime's logits."""
    session = peer.session(str(model))
    named = {i.name: data[i.name] for i in session.get_inputs()}
    return tokennet.perplexity(session.run(None, named)[0], data["input_ids"], data["attention_mask"])


def ours(check, models, data, *more):
    """By qeval, a model each."""
    report = check.folder / "eval.json"
    tool.run([check.qeval, *models, "--data", data, "--metric", "perplexity", "-q", "--json", report, *(more or ["--batch", "16", "--threads", "1"])])
    return [m["metrics"]["perplexity"] for m in json.loads(report.read_text())["models"]]


def plainly_rounded(path, out):
    """Every matrix of a product in 4 bits between the ends of each block along its rows."""
    model = onnx.load(path)
    consts = {t.name: t for t in model.graph.initializer}
    for node in model.graph.node:
        t = consts.get(node.input[1]) if node.op_type == "MatMul" else None
        if t is None:
            continue
        w = onnx.numpy_helper.to_array(t).copy()
        for at in range(0, len(w), BLOCK):
            b = w[at:at + BLOCK]
            lo, hi = np.minimum(b.min(0), 0), np.maximum(b.max(0), 0)
            step = np.maximum((hi - lo) / 15, 1e-20)
            zero = np.rint(-lo / step)
            w[at:at + BLOCK] = (np.clip(np.rint(b / step) + zero, 0, 15) - zero) * step
        t.CopyFrom(onnx.numpy_helper.from_array(w.astype(np.float32), t.name))
    onnx.save(model, out)


def same(printed, value):
    return f"{printed:.6g}" == f"{value:.6g}" or abs(printed - value) < 5e-6 * value


def agree(check, what, model, score, data):
    check.hold(f"{what}: perplexity is that of ONNX Runtime's logits", same(score, theirs(model, data)), f"{score:.7g}, {theirs(model, data):.7g}")


def convert(check, path, calib, form):
    """(nearest, compensated, report of the second)"""
    made = [check.folder / f"{kind}.onnx" for kind in ("nearest", "compensated")]
    check.convert(path, made[0], "--scheme", "weight-only", *form)
    report = check.convert(path, made[1], "--scheme", "weight-only", *form, "--data", calib)
    return *made, report


def compare(check, path, folder, data, form):
    what = f"{path.stem} {' '.join(form)}".strip()
    nearest, compensated, report = convert(check, path, folder / "calib.npz", form)
    real, near, comp = ours(check, (path, nearest, compensated), folder / "eval.npz")
    for kind, model, score in (("float", path, real), ("nearest", nearest, near), ("compensated", compensated, comp)):
        agree(check, f"{what}: {kind}", model, score, data)
    method = {m["name"]: m for m in report["methods"]}["block-rounding"]
    check.hold(f"{what}: the method says what it won", method["ran"] and method["after"] > method["before"] + 2, str(method))
    detail = f"nearest {near - real:+.4f}, compensated {comp - real:+.4f}"
    if form[-2:] == ["--bits", "8"]:
        check.hold(f"{what}: hardly anything is lost", comp - real < 0.002, detail)
        return
    check.hold(f"{what}: at most half is lost", near - real > 0.01 and comp - real <= 0.5 * (near - real), detail)
    if form == ["--bits", "4"]:
        plain = check.folder / "plain.onnx"
        plainly_rounded(path, plain)
        lost = theirs(plain, data) - real
        check.hold(f"{what}: at most half of plain rounding's", comp - real <= 0.5 * lost, f"plain {lost:+.4f}, {detail}")


def bits_of(model):
    nodes = [n for n in onnx.load(model).graph.node if n.op_type == "MatMulNBits"]
    return [next(a.i for a in n.attribute if a.name == "bits") for n in nodes]


def heads(check, folder):
    """A head of its own has 8 bits unless told; one whose numbers are a quantized table, too, has 4, and serves as that table, so it is not compensated."""
    out, wide = check.folder / "head.onnx", check.folder / "wide.onnx"
    check.convert(folder / "llama.onnx", out, "--scheme", "weight-only")
    check.hold("a head of its own", bits_of(out)[-1] == 8 and set(bits_of(out)[:-1]) == {4}, str(bits_of(out)))
    net = tokennet.Gpt(3, 512, 64)
    onnx.save(tokenmodel.Writer(net).model(), wide)
    ids = np.random.default_rng(4).integers(0, 512, (24, 64))
    np.savez(check.folder / "wide.npz", **tokenmodel.arrays(net, ids))
    check.convert(wide, check.folder / "near.onnx", "--scheme", "weight-only")
    check.convert(wide, out, "--scheme", "weight-only", "--data", check.folder / "wide.npz")
    made = [onnx.load(m) for m in (check.folder / "near.onnx", out)]
    head = [[n for n in m.graph.node if n.op_type == "MatMulNBits"][-1].input[1] for m in made]
    stored = [next(t.raw_data for t in m.graph.initializer if t.name == name) for m, name in zip(made, head)]
    picks = any(n.op_type == "GatherBlockQuantized" for n in made[1].graph.node)
    check.hold("a tied head", set(bits_of(out)) == {4} and picks and stored[0] == stored[1], str(bits_of(out)))
    session = peer.session(str(out))
    got = session.run(None, {k: v for k, v in tokenmodel.arrays(net, ids).items() if k in {i.name for i in session.get_inputs()}})[0]
    said = ours(check, (out,), check.folder / "wide.npz")[0]
    check.hold("a tied head in ONNX Runtime", same(said, tokennet.perplexity(got, ids)), f"{said:.7g}")


def stand_out(source, out):
    """The same function, with a tenth of the normalized channels 32 times larger, and the weights that read them smaller."""
    model, rng = onnx.load(source), np.random.default_rng(6)
    consts = {t.name: t for t in model.graph.initializer}

    def scale(name, by):
        consts[name].CopyFrom(onnx.numpy_helper.from_array((onnx.numpy_helper.to_array(consts[name]) * by).astype(np.float32), name))

    for norm, layers in ((f"{i}.{n}", [f"{i}.{w}" for w in ws]) for i in range(2) for n, ws in (("norm1", "qkv"), ("norm2", ("gate", "up")))):
        factor = np.exp2(np.where(rng.random(64) < 0.1, 5, 0))
        scale(f"{norm}.gain", factor)
        for w in layers:
            scale(w, 1 / factor[:, None])
    onnx.save(model, out)


def channels_that_stand_out(check, folder, data):
    """Scales by what the inputs are, alone and with rounding."""
    source, out, lost = check.folder / "out.onnx", check.folder / "scaled.onnx", {}
    stand_out(folder / "llama.onnx", source)
    real = theirs(source, data)
    check.hold("channels that stand out: the same function", abs(real - theirs(folder / "llama.onnx", data)) < 1e-4, f"{real:.6g}")
    for what, without in (("none", ("block-scaling", "block-rounding")), ("scaling", ("block-rounding",)), ("rounding", ("block-scaling",)), ("both", ())):
        methods = [w for m in without for w in ("--no-method", m)]
        check.convert(source, out, "--scheme", "weight-only", "--bits", "4", "--data", folder / "calib.npz", *methods)
        lost[what] = theirs(out, data) - real
    check.hold("channels that stand out", lost["scaling"] < 0.5 * lost["none"] and lost["both"] < 0.6 * min(lost["scaling"], lost["rounding"]), str(lost))


def batches_and_threads(check, path, folder):
    """The same digits, and the same bytes."""
    scores = [ours(check, (path,), folder / "eval.npz", *more)[0] for more in ([], ["--batch", "7"], ["--batch", "64", "--threads", "2"])]
    check.hold(f"{path.stem}: perplexity is the same however it is run", len(set(scores)) == 1, str(scores))
    made = set()
    for more in ([], ["--threads", "1"], ["--isa", "scalar"]):
        check.convert(path, check.folder / "same.onnx", "--scheme", "weight-only", "--data", folder / "calib.npz", "--samples", "16", *more)
        made.add(b"".join(t.raw_data for t in onnx.load(check.folder / "same.onnx").graph.initializer))
    check.hold(f"{path.stem}: the same weights on any threads and instruction set", len(made) == 1)


def texts(data, seed=3):
    """Ids of each text, cut to lengths that were drawn."""
    rng = np.random.default_rng(seed)
    return [row[:n] for row, n in zip(data["input_ids"][:24], rng.integers(2, data["input_ids"].shape[1] + 1, 24))]


def filled(rows, length, pad):
    """The arrays that the files stand for: cut or filled up to a length."""
    ids = np.full((len(rows), length), pad, np.int64)
    mask = np.zeros_like(ids)
    for i, row in enumerate(rows):
        n = min(len(row), length)
        ids[i, :n], mask[i, :n] = row[:n], 1
    return {"input_ids": ids, "attention_mask": mask, "position_ids": np.broadcast_to(np.arange(length), ids.shape)}


def token_files(folder, rows):
    """{name: (file, steps)}: the same texts, but for the stream."""
    with open(folder / "t.jsonl", "w") as f:
        for i, row in enumerate(rows):
            f.write(json.dumps({"text": f"number {i}", "input_ids": row.tolist(), **({"attention_mask": [1] * len(row)} if i % 2 else {})}) + "\n")
    (folder / "t.txt").write_text("".join(" ".join(map(str, row)) + "\n" for row in rows))
    np.concatenate(rows).astype("<u2").tofile(folder / "t.bin")
    return {"lines of JSON": (folder / "t.jsonl", "pad-id=1"), "lines of ids": (folder / "t.txt", "pad-id=1"),
            "a stream": (folder / "t.bin", "ids=u16:pad-id=1")}


def logits(check, model, data, steps, *more):
    out = check.folder / "logits.npz"
    tool.run([check.qeval, model, "--data", data, "--preprocess", steps, "--outputs", out, "-q", *more])
    with np.load(out) as arrays:
        return [arrays[name] for name in arrays.files]


def as_bytes(check, model, data, steps):
    """A table and a model of these samples. Words that name the data are not compared."""
    table, out = check.folder / "t.calib", check.folder / "t.onnx"
    more = ["--preprocess", steps] if steps else []
    tool.run([check.qcalib, model, "--data", data, *more, "-o", table, "-q"])
    check.convert(model, out, "--data", data, *more)
    made = onnx.load(out)
    return [line for line in table.read_text().splitlines() if line.startswith(("tensor", "channel"))], [t.raw_data for t in made.graph.initializer]


def from_files(check, path, data):
    rows = texts(data)
    length = data["input_ids"].shape[1]
    for what, (file, steps) in token_files(check.folder, rows).items():
        stream = np.concatenate(rows)
        want = filled(rows if what != "a stream" else [stream[i:i + length] for i in range(0, len(stream), length)], length, 1)
        session = peer.session(str(path))
        wanted = {i.name: np.ascontiguousarray(want[i.name]) for i in session.get_inputs()}
        real, got = session.run(None, wanted)[0], logits(check, path, file, steps)[0]
        check.hold(f"{path.stem}, {what}: logits are those of ONNX Runtime on the arrays", real.shape == got.shape and np.allclose(real, got, rtol=1e-4, atol=1e-4),
                   f"{real.shape}, {np.abs(real - got).max() if real.shape == got.shape else got.shape}")
        np.savez(check.folder / "want.npz", **wanted)
        ours_, theirs_ = as_bytes(check, path, file, steps), as_bytes(check, path, check.folder / "want.npz", None)
        check.hold(f"{path.stem}, {what}: table and model of the arrays", len(ours_[0]) > 5 and ours_ == theirs_, str(len(ours_[0])))


def ragged(check):
    """A model that takes any length: each text keeps its own, and equal ones that follow each other share batches."""
    net = onnx.helper.make_model(onnx.helper.make_graph(
        [onnx.helper.make_node("Gather", ["table", "input_ids"], ["e"]), onnx.helper.make_node("MatMul", ["e", "head"], ["logits"])], "ragged",
        [onnx.helper.make_tensor_value_info("input_ids", onnx.TensorProto.INT64, ["N", "L"])],
        [onnx.helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["N", "L", 512])],
        [onnx.numpy_helper.from_array(np.random.default_rng(1).normal(size=shape).astype(np.float32), name) for name, shape in
         (("table", (512, 16)), ("head", (16, 512)))]), opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    path = check.folder / "ragged.onnx"
    onnx.save(net, path)
    session, rng = peer.session(str(path)), np.random.default_rng(8)
    rows = [rng.integers(0, 512, n) for n in (3, 3, 5, 3, 1, 5, 5)]
    for what, (file, _) in token_files(check.folder, rows).items():
        if what == "a stream":
            continue
        for batch in ("1", "4"):
            got = logits(check, path, file, "length=none", "--batch", batch)
            got = [row for chunk in got for row in chunk]
            want = [session.run(None, {"input_ids": row[None]})[0][0] for row in rows]
            check.hold(f"ragged, {what}, batch {batch}", len(got) == len(want) and all(a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=1e-4)
                                                                                     for a, b in zip(got, want)), str([g.shape for g in got]))


def main():
    parser = options(__doc__)
    parser.add_argument("--qcalib", default=tool.find("qcalib"))
    parser.add_argument("--models", type=Path, default=tool.ROOT / "testdata" / "tokens", help="folder of make_token_models.py")
    args = parser.parse_args()
    with np.load(args.models / "eval.npz") as arrays:
        data = dict(arrays)
    with Checker(args) as check:
        check.qcalib = args.qcalib
        for name, forms in FORMS.items():
            for form in forms:
                compare(check, args.models / f"{name}.onnx", args.models, data, form)
        batches_and_threads(check, args.models / "llama.onnx", args.models)
        heads(check, args.models)
        channels_that_stand_out(check, args.models, data)
        for name in FORMS:
            from_files(check, args.models / f"{name}.onnx", data)
        ragged(check)
        return check.finish()


if __name__ == "__main__":
    sys.exit(main())
