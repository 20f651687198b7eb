#!/usr/bin/env python3
"""Converts networks of pictures to models that take a camera's bytes, and holds what folded preprocessing costs to half a decibel.

    check_ends.py [--shared FOLDER] [--own] [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Networks: the demo and small ones with random weights, on its pictures; with --shared also the trained ones there, on theirs. Some begin with the nodes
that normalise pixels, in the orders of exporters, or with nodes that move pixels. Each is
converted as it is and with --input-type u8. Where mean and std are whole and equal in all channels, both must compute the same; elsewhere each output
of the second may have 0.5 dB less than the first, or it must be the first with Sub and Div in front of it. That holds on the samples that the report was
made from (its figures), and, as samples differ, on others: to 0.5 dB and twice the standard error of the difference. Both in our runtime and
in ONNX Runtime's exact kernels, where the float model gets preprocessed pictures and the converted one gets bytes.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime", "PIL")
import numpy as np
import onnx

from pylib import peer, tool, zoo
from pylib.builder import Net
from pylib.judge import Checker, options
from pylib.samples import open_samples, parse_steps

MOST_LOSS = 0.5
EVALUATED = 96   # pictures that judge
MEASURED = re.compile(r"SQNR of ([-\d.]+|inf) dB, and would have ([-\d.]+|inf) dB with")
STEPS = {
    "exact": "mean=128:std=64",
    "half": "mean=127.5:std=127.5",
    "caffe": "order=bgr:mean=104,117,123:std=1",
    "imagenet": "mean=123.675,116.28,103.53:std=58.395,57.12,57.375",
    "spread": "order=bgr:mean=90,120,150:std=40,60,100",
}
TRAINED = ("squeezenet_v10_227", "mobilenet_v1_025_224", "mobilenet_v2_100_224", "nanodet_m_416", "ultraface_rfb_320", "resnet8_cifar10", "vww_mobilenet_96")


# ---- networks

def plain(n, x):
    y = n.conv(x, 16, 3, 2, act="relu")
    return n.conv(n.conv(y, 24, 3, 2, act="relu"), 32, 3, act="relu")


def unpadded(n, x):
    y = n.op("Relu", n.op("Conv", x, n.const(n.weight(16, 3, 5, 5) / 4), kernel_shape=[5, 5], auto_pad="VALID"))
    return n.conv(y, 24, 3, 2, act="relu6")


def two_stems(n, x):
    y = n.op("Concat", n.conv(x, 8, 3, 2, act="relu"), n.conv(x, 8, 1, 2, act="relu"), axis=1)
    return n.op("Add", y, n.conv(y, 16, 3, act="relu"))


NETS = {"plain": plain, "unpadded": unpadded, "two_stems": two_stems}


def pad(n, x, value, last, mode="constant", by=3):
    """A Pad of height and width; value None: none is given, which is 0."""
    if n.opset < 11:
        return n.pad(x, [0, 0, by, by] * 2)
    if n.opset >= 18:
        return n.op("Pad", x, n.ints(by, by, by, by), n.const(np.float32(value)), n.ints(-1, 2))
    pads = n.ints(*([0, by, by, 0] if last else [0, 0, by, by]) * 2)
    more = [] if value is None else [n.const(np.float32(value))]
    return n.op("Pad", x, pads, *more, mode=mode)


def turned(n, x):
    return n.op("Transpose", x, perm=[0, 3, 1, 2])


def stem(n, x):
    y = n.op("Conv", x, n.const(n.weight(16, 3, 7, 7) / 7), kernel_shape=[7, 7], strides=[2, 2])
    return n.conv(n.op("Relu", y), 24, 3, 2, act="relu")


def two_readers(n, x):
    padded = pad(n, x, 0, False, by=1)
    y = [n.conv(padded, 8, 3, 2, pad=[0] * 4, act="relu"), n.op("Relu", n.op("Conv", padded, n.const(n.weight(8, 3, 3, 3) / 3), kernel_shape=[3, 3], strides=[2, 2]))]
    return n.op("Add", n.op("Concat", *y, axis=1), n.conv(x, 16, 3, 2, act="relu"))


# What stands between a picture and its first convolution: whether channels are last, the nodes, and the steps that can be folded.
STEM_STEPS = ("exact", "half", "caffe", "imagenet")
STEMS = {
    "channels last": (True, lambda n, x: plain(n, turned(n, x)), set(STEM_STEPS)),
    "channels last, Pad behind": (True, lambda n, x: stem(n, pad(n, turned(n, x), 0, False)), set(STEM_STEPS)),
    "channels last, Pad before": (True, lambda n, x: stem(n, turned(n, pad(n, x, None, True))), set(STEM_STEPS)),
    "Pad": (False, lambda n, x: stem(n, pad(n, x, 0, False)), set(STEM_STEPS)),
    "Pad that repeats": (True, lambda n, x: stem(n, turned(n, pad(n, x, None, True, "reflect"))), set(STEM_STEPS)),
    "two readers": (True, lambda n, x: two_readers(n, turned(n, x)), set(STEM_STEPS)),
    "Pad, opset 10": (False, lambda n, x: stem(n, pad(n, x, 0, False)), set(STEM_STEPS)),
    "Pad of two axes, opset 18": (False, lambda n, x: stem(n, pad(n, x, 0, False)), set(STEM_STEPS)),
    "grey Pad": (False, lambda n, x: stem(n, pad(n, x, (114 - 127.5) / 127.5, False)), {"half"}),
    "Pad of no pixel": (True, lambda n, x: stem(n, pad(n, turned(n, x), -5, False)), set()),
}


# What stands in front, and the steps of --preprocess that it is; None: the numbers are no pixels.
MEAN, STD = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)
OWN = {
    "exact": ([("Sub", 128), ("Mul", 1 / 64)], STEPS["exact"]),
    "exact, NHWC": ([("Transpose",), ("Add", -128), ("Div", 64)], STEPS["exact"]),
    "exact bytes": ([("Transpose",), ("Cast",), ("Sub", 128), ("Div", 64)], STEPS["exact"]),
    "half": ([("Div", 127.5), ("Sub", 1)], STEPS["half"]),
    "imagenet": ([("Transpose",), ("Div", 255), ("Sub", MEAN), ("Div", STD)], STEPS["imagenet"]),
    "imagenet bytes": ([("Cast",), ("Mul", 1 / 255), ("Sub", MEAN), ("Div", STD), ("Transpose",)], STEPS["imagenet"]),
    "exact, Pad": ([("Sub", 128), ("Mul", 1 / 64), ("Pad",), ("Transpose",)], STEPS["exact"]),
    "imagenet, Pad": ([("Mul", 1 / 255), ("Sub", MEAN), ("Div", STD), ("Transpose",), ("Pad",)], STEPS["imagenet"]),
    "caffe": ([("Gather",), ("Sub", np.array([104, 117, 123])), ("Transpose",)], STEPS["caffe"]),
    "reals": ([("Sub", MEAN), ("Div", STD)], None),
}


def own(n, chain, pictures):
    """The input and the nodes of a chain behind it; channels are last where a Transpose follows."""
    last, kinds = "Transpose" in [c[0] for c in chain], [c[0] for c in chain]
    x = n.input("image", pictures.transpose(0, 2, 3, 1) if last else pictures)
    if "Cast" in kinds:
        n.inputs[0].type.tensor_type.elem_type = onnx.TensorProto.UINT8
    for kind, *by in chain:
        if kind == "Transpose":
            x, last = n.op(kind, x, perm=[0, 3, 1, 2]), False
        elif kind == "Cast":
            x = n.op(kind, x, to=onnx.TensorProto.FLOAT)
        elif kind == "Pad":
            x = pad(n, x, 0, last)
        elif kind == "Gather":
            x = n.op(kind, x, n.ints(2, 1, 0), axis=3 if last else 1)
        else:
            c = np.asarray(by[0], np.float32)
            x = n.op(kind, x, n.const(c if last or c.ndim == 0 else c.reshape(-1, 1, 1)))
    return x


def write(name, pictures, path, chain=()):
    n = Net(name, 13)
    y = NETS[name](n, own(n, chain, pictures))
    finish(n, y, name, path)


def finish(n, y, name, path):
    n.output(n.fc(n.op("Flatten", n.gap(y)), 8, deviation=3))
    graph = onnx.helper.make_graph(n.nodes, name, n.inputs, n.outputs, n.inits)
    onnx.save(onnx.helper.make_model(graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", n.opset)]), path)


# ---- judging

def squares(want, got):
    """[samples] of the signal and of the noise."""
    want, got = (np.asarray(x, np.float64).reshape(len(x), -1) for x in (want, got))
    return (want ** 2).sum(1), ((want - got) ** 2).sum(1)


def loss(want, plain, folded):
    """dB that an output has less when preprocessing is folded, and the standard error of that, by a paired bootstrap."""
    _, a = squares(want, plain)
    _, b = squares(want, folded)
    if a.sum() == 0 or b.sum() == 0:
        return 0.0 if b.sum() == 0 else np.inf, 0.0
    draws = np.random.default_rng(1).integers(0, len(a), (1000, len(a)))
    return 10 * np.log10(b.sum() / a.sum()), float(np.std(10 * np.log10(b[draws].sum(1) / a[draws].sum(1))))


def in_ort(model, samples):
    session = peer.session(model, exact=True)
    runs = [session.run(None, {session.get_inputs()[0].name: x[None]}) for x in samples]
    return [np.concatenate(part) for part in zip(*runs, strict=True)]


def raw_of(steps):
    """The same without what becomes part of the model."""
    return ":".join(f"{k}={v}" for k, v in parse_steps(steps).items() if k in ("resize", "crop", "interp"))


def is_exact(steps):
    s = parse_steps(steps)
    means, stds = (set(s.get(k, d).split(",")) for k, d in (("mean", "0"), ("std", "1")))
    return len(means) == len(stds) == 1 and float(*means).is_integer() and s.get("order") != "bgr"


def check(c, name, model, calib, data, steps, more=()):
    one, two = c.folder / "float_ends.onnx", c.folder / "bytes.onnx"
    c.convert(model, one, "--data", calib, "-p", steps, *more)
    (end,) = c.convert(model, two, "--data", calib, "-p", steps, "--input-type", "u8", *more)["ends"]
    folded = "go in as they are" in end["how"]
    found = MEASURED.search(end["how"])
    c.hold(f"{name}: compared", is_exact(steps) or found or "normalised in front" in end["how"], end["how"])
    if found:
        so, other = (float(x) for x in found.groups())
        c.hold(f"{name}: chosen by what outputs lose", (so >= other - MOST_LOSS or so >= 90) == folded if folded else other < so - MOST_LOSS, end["how"])
    real, raw = open_samples(data, steps), open_samples(data, raw_of(steps))
    count = min(EVALUATED, real.count)
    real, raw = ([s.get(i) for i in range(count)] for s in (real, raw))
    extra = ("--samples", count, "--first")
    ours = [list(tool.run_qeval(c.qeval, m, data, c.folder / "y.npz", p, extra).values()) for m, p in ((model, steps), (one, steps), (two, raw_of(steps)))]
    theirs = [in_ort(m, x) for m, x in ((model, real), (one, real), (two, [np.rint(x).astype(np.uint8) for x in raw]))]
    for where, (want, plain_, bytes_) in (("ours", ours), ("ONNX Runtime", theirs)):
        for i, (w, p, b) in enumerate(zip(want, plain_, bytes_, strict=True)):
            lost, error = loss(w, p, b)
            if not folded or is_exact(steps):
                same = np.array_equal(p, b) if where == "ours" else abs(lost) < 0.05
                c.hold(f"{name}, {where}, output {i}: the same without folding", same, f"{lost:.3f} dB")
            else:
                c.hold(f"{name}, {where}, output {i}: folded", lost <= MOST_LOSS + 2 * error, f"{lost:.2f} dB lost, standard error {error:.2f}")


def check_own(c, name, chain, steps, pictures):
    """A model with nodes of its own in front, on pictures as they are."""
    model, plain_, one, two, three = (c.folder / f"{n}.onnx" for n in ("own", "plain", "own_float", "own_bytes", "plain_bytes"))
    last, data = "Transpose" in [k[0] for k in chain], c.folder / "own.npy"
    write("plain", pictures[:8], model, chain)
    raw = pictures.transpose(0, 2, 3, 1) if last else pictures
    if steps is None:
        raw = raw / np.float32(255)
    if "Cast" in [k[0] for k in chain]:
        raw = raw.astype(np.uint8)
    np.save(data, raw[:, None])
    c.convert(model, one, "--data", data)
    (end,) = c.convert(model, two, "--data", data, "--input-type", "u8")["ends"] or [{"how": ""}]
    onnx.checker.check_model(onnx.load(two), full_check=True)
    kinds = {n.op_type for n in onnx.load(two).graph.node}
    if steps is None:
        c.hold(f"{name}: left alone", "Sub" in kinds and "go in as they are" not in (end["how"] or ""), end["how"])
        return
    folded = "go in as they are" in end["how"]
    bytes_ = raw.astype(np.uint8)
    c.hold(f"{name}: takes bytes", onnx.load(two).graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.UINT8)
    c.hold(f"{name}: no nodes of reals in front" if folded else f"{name}: the nodes stay", folded != ("Sub" in kinds), f"{end['how']}: {sorted(kinds)}")
    want, real, got = (in_ort(m, x)[0] for m, x in ((model, raw), (one, raw), (two, bytes_)))
    ours = c.run_ours(two, [x[None] for x in bytes_])[0].reshape(got.shape)
    c.hold(f"{name}: ours", squares(got, ours)[1].sum() <= 1e-4 * squares(want, got)[1].sum() + 1e-9, "")
    if not is_exact(steps):
        lost, error = loss(want, real, got)
        c.hold(f"{name}: loss", lost <= MOST_LOSS + 2 * error, f"{lost:.2f} dB lost, standard error {error:.2f}")
        return
    unfolded = c.run_ours(one, [x[None] for x in raw])[0].reshape(got.shape)
    c.hold(f"{name}: bit for bit what it gives with its nodes", folded and np.array_equal(ours, unfolded))
    if last:
        return
    write("plain", (pictures[:8] - np.float32(128)) / np.float32(64), plain_)  # the same weights
    c.convert(model, two, "--data", data, "--input-type", "u8", "--no-recover")
    np.save(data, pictures[:, None])
    c.convert(plain_, three, "--data", data, "-p", steps, "--input-type", "u8", "--no-recover")
    own_, plain_ = (c.run_ours(m, [x[None] for x in bytes_])[0] for m in (two, three))
    c.hold(f"{name}: and what the model without them gives", np.array_equal(own_.ravel(), plain_.ravel()))


def check_stem(c, name, step, pictures):
    """A model with nodes that only move pixels in front: its bytes go through them, and a border is what it is in the float model."""
    model, one, two = (c.folder / f"{n}.onnx" for n in ("stem", "stem_float", "stem_bytes"))
    last, build, folds = STEMS[name]
    steps, data = STEPS[step], c.folder / "stem.npy"
    of = parse_steps(steps)
    mean, std = (np.array([float(v) for v in of[k].split(",")], np.float32).reshape(-1, 1, 1) for k in ("mean", "std"))
    raw = np.rint(pictures)
    real = ((raw[:, ::-1] if of.get("order") == "bgr" else raw) - mean) / std
    raw, real = (np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if last else x for x in (raw, real.astype(np.float32)))
    n = Net("stem", int(name.split("opset ")[1]) if "opset" in name else 13)
    y = build(n, n.input("image", real[:8]))
    finish(n, y, "stem", model)
    np.save(data, raw[:, None])
    c.convert(model, one, "--data", data, "-p", steps)
    (end,) = c.convert(model, two, "--data", data, "-p", steps, "--input-type", "u8")["ends"] or [{"how": ""}]
    onnx.checker.check_model(onnx.load(two), full_check=True)
    name, kinds = f"stem {name}, {step}", {n.op_type for n in onnx.load(two).graph.node}
    folded = "go in as they are" in end["how"]
    measured = step != "exact" and "lose more than" in end["how"]  # the border is no reason
    c.hold(f"{name}: folded" if step in folds else f"{name}: not folded, and said",
           folded or measured if step in folds else not folded and "value of a Pad" in end["how"], end["how"])
    c.hold(f"{name}: no nodes of reals in front" if folded else f"{name}: nodes of reals in front", folded != bool({"Sub", "Cast"} & kinds), sorted(kinds))
    bytes_ = raw.astype(np.uint8)
    want, plain_, got = (in_ort(m, x)[0] for m, x in ((model, real), (one, real), (two, bytes_)))
    ours = c.run_ours(two, [x[None] for x in bytes_])[0].reshape(got.shape)
    c.hold(f"{name}: ours", squares(got, ours)[1].sum() <= 1e-4 * squares(want, got)[1].sum() + 1e-9, "")
    lost, error = loss(want, plain_, got)
    c.hold(f"{name}: loss", lost <= MOST_LOSS + 2 * error, f"{lost:.2f} dB lost, standard error {error:.2f}")


def main():
    parser = options(__doc__)
    parser.add_argument("--shared", type=Path)
    parser.add_argument("--own", action="store_true", help="only models with nodes of their own in front")
    args = parser.parse_args()
    with Checker(args) as c:
        demo, calib, data, _ = zoo.MODELS["demo"].paths(None)
        for step, text in STEPS.items() if not args.own else ():
            check(c, f"demo, {step}", demo, calib, data, text)
        for name in NETS if not args.own else ():
            for step in ("caffe", "imagenet", "spread"):
                shown = open_samples(calib, STEPS[step])
                write(name, np.stack([shown.get(i) for i in range(8)]), c.folder / "m.onnx")
                check(c, f"{name}, {step}", c.folder / "m.onnx", calib, data, STEPS[step])
        shown = open_samples(calib, raw_of(STEPS["exact"]))
        pictures = np.stack([np.asarray(shown.get(i), np.float32) for i in range(min(64, shown.count))])
        for name, (chain, steps) in OWN.items():
            check_own(c, f"own nodes, {name}", chain, steps, pictures)
        for name, (_, _, folds) in STEMS.items():
            for step in ("half",) if folds != set(STEM_STEPS) else ("caffe",) if "opset" in name else STEM_STEPS:
                check_stem(c, name, step, pictures)
        for name in TRAINED if args.shared else ():
            model, calib, data, _ = zoo.MODELS[name].paths(args.shared)
            check(c, name, model, calib, data, zoo.MODELS[name].preprocess)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
