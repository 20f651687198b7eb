#!/usr/bin/env python3
"""Judges what qconvert writes on a CPU without VNNI, where ONNX Runtime and OpenVINO add products in 16 bits that saturate.

    check_saturation.py [--shared ../shared] [--qconvert PROGRAM] [--qeval PROGRAM] [-v] [NETWORK ...]

Models of one layer each, of every shape that ONNX Runtime multiplies in a way of its own, with the weights that hurt most: all at the
end of their range, and large beside small ones in either order of the taps. They are converted for the default target. ONNX Runtime
runs them on an emulated CPU that has AVX2 alone (qemu-x86_64), and must give what our runtime gives, which adds in 32 bits. The same
layers converted for CPUs with VNNI must not: else nothing would have been tested.

Whole networks (`multipliers`, with channel multipliers and correlated weights, and trained ones of --shared, if there) are converted with
samples, so that most of their multiply-accumulates have s8 weights, and must give the same bytes on the emulated CPU as on this one, in every tensor
that is quantized. Converted for CPUs with VNNI they must not. With names of networks these alone are judged. Of a network whose weights alone cost
much, the share of s8 weights is judged alone: there only a part of the layers may take them.

Where its package is installed, OpenVINO runs the same layers, and transposed convolutions, on this CPU by its kernels for AVX2 (ONEDNN_MAX_CPU_ISA): those for
the target `openvino` must be as exact, and those for `openvino-vnni` must not. Of trained networks it prints how often the class is that of the float model; for
`openvino` it must be that of our runtime in nearly all samples.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages or the emulator.
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pylib import execution, tool, zoo
from pylib.judge import Checker, options, run_ort, sqnr
from pylib.samples import open_samples

# Of one input for each output, in OpenVINO also with one input for all: nothing is added in pairs.
UNPAIRED = ("depthwise", "depthwise 5x5", "depthwise 1-D", "one channel, one output", "conv of one channel")
EXACT = 45.0  # dB: a step more or less in some outputs; a saturated sum costs tens of dB
SAMPLES = 6
NETWORKS = ("multipliers", "kws_dscnn", "resnet8_cifar10")
FRAIL = ("mobilenet_v2_100_224",)
CLASSIFIERS = ("kws_dscnn", "resnet8_cifar10", "mobilenet_v1_025_224", "mobilenet_v2_100_224", "squeezenet_v10_227")
CLASSIFIED, ALIKE = 300, 0.95
NETWORK_SAMPLES, SHARE = 8, 0.6
RUN, RUN_OPENVINO = "--run", "--run-openvino"


def weights(order, outs, ins, taps, rng):
    """[outs, ins, *taps]: `same` all at the end of the range; `mixed` of both signs; the others large and small in turn, along k with
    the channels innermost (`last`) or outermost (`first`)."""
    n = int(np.prod(taps))
    if order == "mixed":
        w = rng.choice([-1.0, 1.0], (outs, ins, n))
    else:
        w = np.ones((outs, ins * n))
        if order != "same":
            w[:, 1::2] = 1 / 127
        w = w.reshape(outs, n, ins).transpose(0, 2, 1) if order == "last" else w.reshape(outs, ins, n)
    return (w.reshape(outs, ins, *taps) * 0.5).astype(np.float32)


def conv(outs, ins, taps, group=1, **attrs):
    """outs and ins are of a group."""
    def make(order, rng):
        w = weights(order, outs * group, ins, taps, rng)
        return "Conv", [w], {"group": group, **attrs}, (ins * group, *(t + 4 for t in taps))
    return make


def product(op, k, n, batch=(), **attrs):
    def make(order, rng):
        w = weights(order, n, k, (1,), rng).reshape(n, k)
        return op, [w if attrs.get("transB") else w.T.copy()], attrs, (*batch, k)
    return make


def transposed(outs, ins, taps, **attrs):
    def make(order, rng):
        w = weights(order, outs, ins, taps, rng)
        return "ConvTranspose", [w.swapaxes(0, 1).copy()], attrs, (ins, *(t + 4 for t in taps))
    return make


LAYERS = {
    "conv 1x1": conv(8, 21, (1, 1)),
    "conv 3x3": conv(8, 5, (3, 3)),
    "conv 3x3, even channels": conv(8, 8, (3, 3)),
    "conv of one channel": conv(8, 1, (3, 3)),
    "conv with strides": conv(8, 3, (3, 3), strides=[2, 2], pads=[1, 1, 1, 1]),
    "conv with dilations": conv(8, 3, (3, 3), dilations=[2, 2]),
    "conv 1-D": conv(8, 5, (3,)),
    "conv 3-D": conv(8, 3, (2, 3, 2)),
    "groups": conv(6, 3, (3, 3), group=4),
    "groups, even channels": conv(6, 4, (3, 3), group=2),
    "depthwise": conv(1, 1, (3, 3), group=16),
    "depthwise 5x5": conv(1, 1, (5, 5), group=32, strides=[2, 2]),
    "depthwise 1-D": conv(1, 1, (9,), group=12),
    "depthwise, 2 outputs a channel": conv(2, 1, (3, 3), group=16),
    "depthwise, 4 outputs a channel, 1-D": conv(4, 1, (9,), group=8),
    "one channel, one output": conv(1, 1, (3, 3)),
    "MatMul": product("MatMul", 21, 16, (4,)),
    "MatMul of one row": product("MatMul", 64, 16, (1,)),
    "MatMul of rank 3": product("MatMul", 33, 16, (3, 4)),
    "MatMul, long": product("MatMul", 1030, 16, (4,)),
    "Gemm": product("Gemm", 33, 16, ()),
    "Gemm with transB": product("Gemm", 33, 16, (), transB=1),
}
# Of these OpenVINO has integer forms, too.
TRANSPOSED = {
    "transposed conv 3x3": transposed(8, 5, (3, 3)),
    "transposed conv with strides": transposed(8, 6, (2, 2), strides=[2, 2]),
}
ORDERS = ("same", "mixed", "last", "first")


def save(path, layer, order, rng):
    """The layer between x and y; returns samples near the upper end, where sums saturate."""
    op, consts, attrs, shape = (LAYERS | TRANSPOSED)[layer](order, rng)
    names = [f"w{i}" for i in range(len(consts))]
    g = helper.make_graph([helper.make_node(op, ["x", *names], ["y"], name="layer", **attrs)], "g",
                          [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, *shape])],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                          [numpy_helper.from_array(c, n) for c, n in zip(consts, names, strict=True)])
    onnx.save(onnx.shape_inference.infer_shapes(helper.make_model(g, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])), path)
    return samples(rng, shape)


def samples(rng, shape):
    x = [np.where(rng.random(shape) < 0.85, 1.0, rng.random(shape)).astype(np.float32) for _ in range(SAMPLES)]
    x[0].flat[0] = 0
    return x


def save_lstm(path, order, rng):
    """Hidden states saturate at 1, so the recurrent products are large as well."""
    seq, size, hidden = 5, 21, 12
    w, r = (weights(order, 4 * hidden, k, (1,), rng).reshape(1, 4 * hidden, k) * 0.2 for k in (size, hidden))
    g = helper.make_graph([helper.make_node("LSTM", ["x", "w", "r"], ["y"], name="layer", hidden_size=hidden)], "g",
                          [helper.make_tensor_value_info("x", TensorProto.FLOAT, [seq, 1, size])],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, [seq, 1, 1, hidden])],
                          [numpy_helper.from_array(w, "w"), numpy_helper.from_array(r, "r")])
    onnx.save(helper.make_model(g, ir_version=8, opset_imports=[helper.make_opsetid("", 14)]), path)
    return [rng.choice([0.0, 1.0], (1, size), p=[0.1, 0.9]).astype(np.float32) for _ in range(SAMPLES * seq)]


def save_both(path, rng, twice=False):
    """A product of two activations, behind products of their own. twice: the second is read by another product, too."""
    eye = np.eye(16, dtype=np.float32)
    nodes = [helper.make_node("MatMul", ["x", "wa"], ["a"], name="a"), helper.make_node("MatMul", ["x", "wb"], ["b"], name="b"),
             helper.make_node("Transpose", ["b"], ["bt"], name="t", perm=[0, 2, 1]), helper.make_node("MatMul", ["a", "bt"], ["c"], name="layer"),
             helper.make_node("MatMul", ["c", "wc"], ["y"], name="y")]
    ends = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 8])]
    if twice:
        nodes.append(helper.make_node("MatMul", ["bt", "wc"], ["z"], name="z"))
        ends.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 16, 8]))
    g = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 16])],
                          ends,
                          [numpy_helper.from_array(v, n) for n, v in (("wa", eye), ("wb", eye), ("wc", np.eye(8, dtype=np.float32)))])
    onnx.save(onnx.shape_inference.infer_shapes(helper.make_model(g, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])), path)
    return samples(rng, (8, 16))


def run_named(model, **how):
    """{output: array} on the samples of NAME.npy, as many at once as the model takes."""
    g, x = onnx.load(model).graph, np.load(model.with_suffix(".npy"))
    batch = g.input[0].type.tensor_type.shape.dim[0].dim_value or 1
    outputs = run_ort(model, list(x.reshape(-1, batch, *x.shape[1:])), **how)
    return {o.name: y for o, y in zip(g.output, outputs, strict=True)}


def emulated(folder):
    """Runs every NAME.onnx of the folder on the samples of NAME.npy, as many at once as it takes; writes NAME.avx2.npz."""
    for model in sorted(Path(folder).glob("*.onnx")):
        np.savez(model.with_suffix(".avx2.npz"), **run_named(model))
    return 0


def save_multipliers(path, rng):
    """A network whose depthwise layers have two outputs a channel, of smooth inputs, so that weights' errors compensate each other."""
    shapes = {"w0": (16, 3, 3, 3), "w1": (32, 1, 3, 3), "w2": (24, 32, 1, 1), "w3": (48, 1, 3, 3), "w4": (10, 48)}
    nodes = [helper.make_node("Conv", ["x", "w0"], ["c0"], name="c0"), helper.make_node("Relu", ["c0"], ["r0"], name="r0"),
             helper.make_node("Conv", ["r0", "w1"], ["r1"], name="c1", group=16), helper.make_node("Conv", ["r1", "w2"], ["c2"], name="c2"),
             helper.make_node("Relu", ["c2"], ["r2"], name="r2"), helper.make_node("Conv", ["r2", "w3"], ["r3"], name="c3", group=24),
             helper.make_node("GlobalAveragePool", ["r3"], ["p"], name="p"), helper.make_node("Flatten", ["p"], ["f"], name="f"),
             helper.make_node("Gemm", ["f", "w4"], ["y"], name="g", transB=1)]
    g = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 20, 20])],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                          [numpy_helper.from_array(rng.normal(0, np.prod(s[1:]) ** -0.5, s).astype(np.float32), n) for n, s in shapes.items()])
    onnx.save(onnx.shape_inference.infer_shapes(helper.make_model(g, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])), path)
    return list(np.cumsum(rng.normal(size=(24, 3, 20, 20)), axis=-1).astype(np.float32))


def first_of(spec, preprocess):
    return next(open_samples(spec, preprocess).batches(NETWORK_SAMPLES))[1]


def show_quantized(source, path):
    """A copy whose outputs are also all tensors behind QuantizeLinear."""
    m = onnx.load(source)
    there = {o.name for o in m.graph.output}
    m.graph.output.extend(helper.make_empty_tensor_value_info(n.output[0]) for n in m.graph.node
                          if n.op_type == "QuantizeLinear" and n.output[0] not in there)
    onnx.save(m, path)


def in_openvino(folder):
    """As emulated(), in OpenVINO."""
    for model in sorted(Path(folder).glob("*.onnx")):
        run = execution.compiled(model)
        rows = [[np.array(y) for y in run([x]).values()] for x in np.load(model.with_suffix(".npy"))[:, None]]
        np.savez(model.with_suffix(".avx2.npz"), **{f"out{i}": np.concatenate(ys) for i, ys in enumerate(zip(*rows, strict=True))})
    return 0


class Cases:
    """Converted models in a folder, with what ours makes of them."""

    def __init__(self, c, name):
        self.c, self.folder, self.made, self.networks = c, c.folder / name, [], []
        self.folder.mkdir()

    def add(self, what, source, x, *how, safe=True):
        """safe: ONNX Runtime must agree with ours; else it must not."""
        at = self.folder / f"{len(self.made):03}.onnx"
        np.save(at.with_suffix(".npy"), np.stack(x))
        more = () if "dynamic" in how else ("--data", at.with_suffix(".npy"))
        report = self.c.convert(source, at, *more, *how)
        layer = next((v for v in report.get("layers", []) if v.get("name") == "layer"), {})
        ours = self.c.run_ours(at, x)[0]
        self.made.append((what, at, ours, layer.get("remedy") or layer.get("scheme") or "", safe))

    def add_network(self, name, source, data, samples, *how):
        """Converted by default, with most multiply-accumulates on s8 weights, and for CPUs with VNNI."""
        out = self.c.folder / f"{name}.onnx"
        for vnni in (False, True):
            at = self.folder / f"{name}{'.vnni' if vnni else ''}.onnx"
            report = self.c.convert(source, out, "--data", data, *how, *(["--target", "onnxruntime-vnni"] if vnni else []))
            show_quantized(out, at)
            np.save(at.with_suffix(".npy"), samples)
            self.networks.append((name, at, vnni))
            if not vnni:
                self.judge_share(name, report)

    def judge_share(self, name, report):
        layers = [v for v in report["layers"] if v.get("weights") and v["scheme"] != "float"]
        share = next(m["after"] for m in report["methods"] if m["name"] == "safe-pairs")
        self.c.hold(f"{name}: s8 weights", share >= SHARE, f"{share:.2f} of the multiply-accumulates of {len(layers)} layers")

    def judge_networks(self):
        for name, at, vnni in self.networks:
            here = run_named(at, exact=True)  # which matters where this CPU has no VNNI either
            with np.load(at.with_suffix(".avx2.npz")) as theirs:
                integers = [n for n, y in here.items() if y.dtype.kind in "iu"]
                wrong = [n for n in integers if not np.array_equal(here[n], theirs[n])]
            if vnni:
                self.c.hold(f"{name} for VNNI: other bytes without VNNI", wrong, f"{len(wrong)} of {len(integers)} tensors")
            else:
                self.c.hold(f"{name}: the same bytes without VNNI", integers and not wrong, f"{len(integers)} tensors {' '.join(wrong[:4])}")

    def judge(self):
        for what, at, ours, remedy, safe in self.made:
            theirs = next(iter(np.load(at.with_suffix(".avx2.npz")).values()))
            db = sqnr([ours], [theirs])
            self.c.hold(f"{what}: {'exact' if safe else 'saturates'} without VNNI", db >= EXACT if safe else db < EXACT,
                        f"{db:.1f} dB, {remedy}")


def add_layers(cases):
    source, signed = cases.c.folder / "source.onnx", cases.c.folder / "signed.policy"
    signed.write_text("any - - s8/tensor/asym -\n")
    for layer in LAYERS:
        for order in reversed(ORDERS):  # the worst last: once more, below
            x = save(source, layer, order, np.random.default_rng(7))
            cases.add(f"{layer}, {order}", source, x)
        cases.add(f"{layer}, signed activations", source, x, "--policy", signed)
        if layer.startswith(("MatMul", "Gemm")):
            cases.add(f"{layer}, dynamic", source, x, "--scheme", "dynamic")
    for order in ("same", "first"):
        x = save_lstm(source, order, np.random.default_rng(9))
        cases.add(f"LSTM, {order}, dynamic", source, x, "--scheme", "dynamic")
    x = save_both(source, np.random.default_rng(8))
    cases.add("two activations", source, x)
    cases.add("two signed activations", source, x, "--policy", signed)
    x = save_both(source, np.random.default_rng(8), twice=True)
    cases.add("two activations, one read twice", source, x)
    cases.add("two signed activations, one read twice", source, x, "--policy", signed)
    cases.add("two signed activations, one read twice, for VNNI", source, x, "--policy", signed, "--target", "onnxruntime-vnni", safe=False)
    for layer in ("conv 3x3", "groups", "MatMul", "depthwise, 2 outputs a channel"):
        x = save(source, layer, "same", np.random.default_rng(7))
        cases.add(f"{layer}, operator form", source, x, "--format", "qoperator")
        cases.add(f"{layer} for VNNI", source, x, "--target", "onnxruntime-vnni", safe=False)


def add_openvino(cases):
    source, signed = cases.c.folder / "source.onnx", cases.c.folder / "signed.policy"
    signed.write_text("any - - s8/tensor/sym -\n")
    for layer in LAYERS | TRANSPOSED:
        for order in reversed(ORDERS):
            x = save(source, layer, order, np.random.default_rng(7))
            cases.add(f"OpenVINO: {layer}, {order}", source, x, "--target", "openvino")
        cases.add(f"OpenVINO: {layer}, signed activations", source, x, "--target", "openvino", "--policy", signed)
        if layer not in UNPAIRED:
            cases.add(f"OpenVINO: {layer} for VNNI", source, x, "--target", "openvino-vnni", safe=False)
    x = save_both(source, np.random.default_rng(8))
    cases.add("OpenVINO: two activations", source, x, "--target", "openvino")
    cases.add("OpenVINO: two signed activations", source, x, "--target", "openvino", "--policy", signed)
    cases.add("OpenVINO: two signed activations for VNNI", source, x, "--target", "openvino-vnni", "--policy", signed, safe=False)


def run_openvino(folder):
    if subprocess.run([sys.executable, __file__, RUN_OPENVINO, folder], env=os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX2"}, check=False).returncode:
        sys.exit("check_saturation.py: OpenVINO failed")


def classes(ys):
    return ys.reshape(len(ys), -1).argmax(1)


def judge_classes(c, shared):
    """Of trained networks: the share of samples with the class of the float model."""
    folder, made = c.folder / "classes", []
    folder.mkdir()
    for name in CLASSIFIERS:
        known = zoo.MODELS[name]
        model, calib, data, _ = known.paths(shared)
        if not model.exists():
            continue
        samples = open_samples(str(data), known.preprocess)
        x = np.stack([samples.get(int(i)) for i in np.linspace(0, samples.count - 1, min(samples.count, CLASSIFIED)).astype(int)])
        floats = classes(run_ort(model, list(x[:, None]))[0])
        for target in ("openvino", "openvino-vnni"):
            at = folder / f"{name}.{target}.onnx"
            c.convert(model, at, "--data", calib, "--samples", "64", *(["--preprocess", known.preprocess] if known.preprocess else []), "--target", target)
            np.save(at.with_suffix(".npy"), x)
            made.append((name, target, at, floats, classes(c.run_ours(at, list(x))[0])))
    run_openvino(folder)
    for name, target, at, floats, ours in made:
        theirs = classes(next(iter(np.load(at.with_suffix(".avx2.npz")).values())))
        same = 100 * float((theirs == floats).mean())
        print(f"  {name}, {target}: the class of the float model in {same:.1f} % of {len(floats)} samples in OpenVINO without VNNI, {100 * float((ours == floats).mean()):.1f} % in ours")
        if target == "openvino":
            c.hold(f"{name}: the classes of our runtime", (theirs == ours).mean() >= ALIKE, f"{100 * float((theirs == ours).mean()):.1f} %")


def judge_openvino(c, shared):
    if not packages.has("openvino"):
        print("OpenVINO is not installed: its sums are not judged")
        return
    cases = Cases(c, "openvino")
    add_openvino(cases)
    run_openvino(cases.folder)
    cases.judge()
    judge_classes(c, shared)


def add_networks(cases, names, shared):
    """By name; a trained one whose model is not in `shared` is left out."""
    for name in names:
        if name == "multipliers":
            source, data = cases.c.folder / "source.onnx", cases.c.folder / "smooth.npy"
            x = save_multipliers(source, np.random.default_rng(10))
            np.save(data, np.stack(x))
            cases.add_network(name, source, data, np.stack(x[:NETWORK_SAMPLES]))
            continue
        model, data, _, _ = zoo.MODELS[name].paths(shared)
        preprocess = zoo.MODELS[name].preprocess
        how = ["--samples", "64", *(["--preprocess", preprocess] if preprocess else [])]
        if model.exists() and name in FRAIL:
            cases.judge_share(name, cases.c.convert(model, cases.c.folder / f"{name}.onnx", "--data", data, *how))
        elif model.exists():
            cases.add_network(name, model, data, first_of(data, preprocess), *how)


def main():
    parser = options(__doc__)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help="judge these, and no single layers")
    parser.add_argument("--shared", type=Path, default=tool.SHARED)
    args = parser.parse_args()
    if unknown := set(args.networks) - {"multipliers", *zoo.MODELS}:
        parser.error(f"no network {unknown.pop()}; there are multipliers, {', '.join(zoo.MODELS)}")
    if not shutil.which("qemu-x86_64"):
        print("skipped: no qemu-x86_64 (Debian package qemu-user)")
        return 77
    with Checker(args) as c:
        cases = Cases(c, "run")
        if not args.networks:
            add_layers(cases)
        add_networks(cases, args.networks or NETWORKS + FRAIL, args.shared)
        if tool.run_emulated(RUN, cases.folder):
            sys.exit("check_saturation.py: ONNX Runtime failed on the emulated CPU")
        cases.judge()
        cases.judge_networks()
        if not args.networks:
            judge_openvino(c, args.shared)
        return c.finish()


if __name__ == "__main__":
    run = {RUN: emulated, RUN_OPENVINO: in_openvino}.get(sys.argv[1] if len(sys.argv) > 1 else "")
    sys.exit(run(sys.argv[2]) if run else main())
