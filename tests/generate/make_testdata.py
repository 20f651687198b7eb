#!/usr/bin/env python3
"""Makes testdata/demo.onnx and its pictures: draws them, trains the network, exports it, measures it in ONNX Runtime.

Needs numpy, onnx, onnxruntime and pillow; takes a few minutes on one core.
"""
import os
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"    # one order of additions

import argparse
import csv
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import shapes, tinynet as nn

ROOT = Path(__file__).resolve().parents[2]
N_CALIB, N_EVAL, N_TRAIN = 64, 400, 6000
SEEDS = {"calib": 101, "eval": 202, "train": 303, "weights": 404, "order": 505}


def gains(rng, channels, clipped):
    """First values of BatchNormalization's scale. They differ a lot between channels, as in networks trained on
    large data: under Clip(0, 6) every eighth channel acts almost as a switch. Once folded, the weights of one
    channel are then tens of times larger than another's, and a single scale for all of them is poor."""
    g = np.exp(rng.uniform(np.log(0.4), np.log(1.6), channels))
    if clipped:
        g[::8] = rng.uniform(18, 30, len(g[::8]))
    return g


def unit(rng, conv, act=None):
    """Conv, BN and an activation: None, 'relu' or 'relu6'."""
    layers = [conv, nn.BatchNorm(gains(rng, conv.oc, act == "relu6"))]
    if act:
        layers.append(nn.Clamp(6 if act == "relu6" else np.inf))
    return nn.Chain(*layers)


def inverted(rng, ic, mid, oc, stride):
    return nn.Chain(unit(rng, nn.Conv(rng, ic, mid), "relu6"), unit(rng, nn.Depthwise(rng, mid, stride), "relu6"),
                    unit(rng, nn.Conv(rng, mid, oc)))


def make_net(rng):
    return nn.Chain(
        unit(rng, nn.Conv(rng, 3, 16, 3), "relu"), nn.MaxPool2(),
        nn.Residual(inverted(rng, 16, 48, 16, 1)),
        inverted(rng, 16, 48, 32, 2),
        nn.Branches(unit(rng, nn.Conv(rng, 32, 24, 3), "relu"), unit(rng, nn.Conv(rng, 32, 24), "relu")),
        nn.Residual(unit(rng, nn.Conv(rng, 48, 48, 3))), nn.Clamp(),
        unit(rng, nn.Conv(rng, 48, 64), "relu"),
        nn.Head(rng, 64, len(shapes.CLASSES)))


class Exporter:
    """Writes the layers as ONNX nodes; names tell the layer."""

    def __init__(self):
        self.nodes, self.inits, self.count = [], [], {}

    def name(self, kind):
        self.count[kind] = self.count.get(kind, 0) + 1
        return f"{kind}{self.count[kind]}"

    def const(self, name, value):
        self.inits.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, op, inputs, label, **attrs):
        self.nodes.append(helper.make_node(op, inputs, [label + "_out"], name=label, **attrs))
        return label + "_out"

    def conv(self, layer, x):
        group = layer.ic if isinstance(layer, nn.Depthwise) else 1
        label, pad = self.name("dwconv" if group > 1 else "conv"), layer.k // 2
        weight = self.const(label + "_w", layer.onnx_weight())
        return self.node("Conv", [x, weight], label, kernel_shape=[layer.k] * 2, pads=[pad] * 4,
                         strides=[layer.stride] * 2, group=group)

    def batch_norm(self, layer, x):
        label = self.name("bn")
        parts = {"scale": layer.gamma.value, "bias": layer.beta.value, "mean": layer.mean, "var": layer.var}
        names = [self.const(f"{label}_{part}", value) for part, value in parts.items()]
        return self.node("BatchNormalization", [x] + names, label, epsilon=float(layer.eps))

    def clamp(self, layer, x):
        if np.isinf(layer.top):
            return self.node("Relu", [x], self.name("relu"))
        if "clip_lo" not in self.count:
            self.count["clip_lo"] = 1
            self.const("clip_lo", np.float32(0)), self.const("clip_hi", np.float32(6))
        return self.node("Clip", [x, "clip_lo", "clip_hi"], self.name("clip"))

    def head(self, layer, x):
        x = self.node("GlobalAveragePool", [x], "pool")
        x = self.node("Flatten", [x], "flatten", axis=1)
        x = self.node("Gemm", [x, self.const("fc_w", layer.w.value.T), self.const("fc_b", layer.b.value)], "fc", transB=1)
        self.nodes.append(helper.make_node("Softmax", [x], ["prob"], name="softmax", axis=-1))
        return "prob"

    def layer(self, layer, x):
        if isinstance(layer, nn.Chain):
            for part in layer.layers:
                x = self.layer(part, x)
            return x
        if isinstance(layer, nn.Residual):
            return self.node("Add", [x, self.layer(layer.chain, x)], self.name("add"))
        if isinstance(layer, nn.Branches):
            return self.node("Concat", [self.layer(c, x) for c in layer.chains], self.name("concat"), axis=1)
        if isinstance(layer, nn.MaxPool2):
            return self.node("MaxPool", [x], self.name("maxpool"), kernel_shape=[2, 2], strides=[2, 2])
        table = {nn.Conv: self.conv, nn.Depthwise: self.conv, nn.BatchNorm: self.batch_norm, nn.Clamp: self.clamp,
                 nn.Head: self.head}
        return table[type(layer)](layer, x)


def export(net, path):
    ex = Exporter()
    ex.layer(net, "image")
    shape_in, shape_out = ["N", 3, shapes.SIZE, shapes.SIZE], ["N", len(shapes.CLASSES)]
    graph = helper.make_graph(
        ex.nodes, "demo", [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape_in)],
        [helper.make_tensor_value_info("prob", TensorProto.FLOAT, shape_out)], ex.inits)
    model = helper.make_model(graph, producer_name="octet make_testdata", ir_version=7,
                              opset_imports=[helper.make_opsetid("", 13)])
    model.doc_string = "Ten textured shapes, 32x32 RGB, (x - 127.5) / 127.5."
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def save_pictures(folder, kind, images, labels):
    """PNG; every second calibration picture is a JPEG, so that both readers are used."""
    where = folder / kind
    where.mkdir(parents=True)
    with open(folder / f"{kind}.csv", "w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["file", "label"])
        for i, (image, label) in enumerate(zip(images, labels)):
            jpeg = kind == "calib" and i % 2
            name = f"{i:03d}_{shapes.CLASSES[label]}.{'jpg' if jpeg else 'png'}"
            how = {"quality": 92, "subsampling": 0} if jpeg else {"optimize": True}
            Image.fromarray(image).save(where / name, **how)
            rows.writerow([f"{kind}/{name}", int(label)])


def normalise(images):
    return ((images.astype(np.float32) - 127.5) / 127.5).astype(np.float32)


def ort_accuracy(path, images, labels):
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    prob = session.run(None, {"image": np.ascontiguousarray(normalise(images).transpose(0, 3, 1, 2))})[0]
    return float((prob.argmax(1) == labels).mean())


README = """# Test data

Made by `tests/generate/make_testdata.py` and `tests/generate/make_test_models.py` (seeded; nothing comes from elsewhere).

| path | what |
|---|---|
| demo.onnx | a network trained on the pictures' kind: {params} weights, {size} KB; stem, two inverted residual blocks (depthwise, Clip 0..6), Concat of two branches, residual 3x3, GlobalAveragePool, Gemm, Softmax; BatchNormalization kept apart; input `image` [N,3,32,32], output `prob` [N,10]; opset 13 |
| images/calib.csv, images/calib/ | {calib} pictures for calibration, half PNG, half JPEG |
| images/eval.csv, images/eval/ | {eval} pictures for evaluation, PNG |
| models/ | a tiny model per feature, NAME.onnx, with inputs and ONNX Runtime's outputs in NAME.npz (`in/...`, `out/...`); models/README.md lists them |

Pictures: 32x32 RGB, ten classes ({classes}). Preprocessing: RGB, (x - 127.5) / 127.5, NCHW
(`--preprocess mean=127.5:std=127.5`).

Float accuracy of demo.onnx on images/eval.csv, by ONNX Runtime {ort}: **{acc:.2f} %** top-1.

The pictures are the same wherever the script runs; the trained weights may differ in the last bits with another BLAS.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "testdata")
    parser.add_argument("--epochs", type=int, default=26)
    parser.add_argument("--train", type=int, default=N_TRAIN)
    args = parser.parse_args()
    start = time.time()

    def log(text):
        print(f"[{time.time() - start:5.0f} s] {text}", flush=True)

    sets = {kind: shapes.make_set(SEEDS[kind], count)
            for kind, count in (("calib", N_CALIB), ("eval", N_EVAL), ("train", args.train))}
    log("pictures drawn")
    shutil.rmtree(args.out / "images", ignore_errors=True)
    for kind in ("calib", "eval"):
        save_pictures(args.out / "images", kind, *sets[kind])
    net = make_net(np.random.default_rng(SEEDS["weights"]))
    images, labels = sets["train"]
    nn.train(net, normalise(images), labels, np.random.default_rng(SEEDS["order"]), args.epochs, log=log)
    path = args.out / "demo.onnx"
    export(net, path)
    acc = 100 * ort_accuracy(path, *sets["eval"])
    params = sum(p.value.size for p in net.params)
    (args.out / "README.md").write_text(README.format(
        params=params, size=path.stat().st_size // 1024, calib=N_CALIB, eval=N_EVAL,
        classes=", ".join(shapes.CLASSES), ort=ort.__version__, acc=acc))
    log(f"demo.onnx: top-1 {acc:.2f} % on {N_EVAL} pictures")
    return 0 if 90 <= acc <= 99 else 1


if __name__ == "__main__":
    sys.exit(main())
