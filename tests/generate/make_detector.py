#!/usr/bin/env python3
"""Makes testdata/detector/: a small detector, trained on drawn scenes, with scenes to calibrate and to judge it, and what is in them.

    make_detector.py [--out FOLDER] [--seed N] [--epochs N]

Scenes are pictures of 96x64 pixels with one to four disks, squares and plus signs over clutter. The network takes 64x64, letterboxed, and its output is that of
YOLOv8's exports: [1,7,64], centre, size and the scores of three classes for each of 8x8 cells. labels/ has the truth of each scene as YOLO's text.

Needs numpy, onnx and Pillow; takes some minutes on one core.
"""
import os
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"    # one order of additions

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
import numpy as np
import onnx
from onnx import helper, numpy_helper
from PIL import Image

from pylib import shapes
from pylib import tinynet as nn

CLASSES = ("disk", "square", "plus")
WIDTH, HEIGHT, SIZE, STRIDE, CELLS, REACH = 96, 64, 64, 8, 8, 32
TRAIN, CALIB, EVAL = 1500, 48, 80
SCALE, TOP = SIZE / WIDTH, (SIZE - round(HEIGHT * SIZE / WIDTH)) // 2
F = np.float32


def scene(rng):
    """A picture, and its objects as [(class, left, top, right, bottom)]."""
    y, x = np.mgrid[:HEIGHT, :WIDTH] + 0.5
    a, b, angle = rng.uniform(0, 255, 3), rng.uniform(0, 255, 3), rng.uniform(0, 2 * np.pi)
    slope = ((x - WIDTH / 2) * np.cos(angle) + (y - HEIGHT / 2) * np.sin(angle)) / 120 + 0.5
    image, found = a + (b - a) * slope[..., None], []
    for _ in range(rng.integers(2, 7)):         # thin strokes, which are no objects
        cx, cy, angle = rng.uniform(0, WIDTH), rng.uniform(0, HEIGHT), rng.uniform(0, np.pi)
        along, across = (x - cx) * np.cos(angle) + (y - cy) * np.sin(angle), (y - cy) * np.cos(angle) - (x - cx) * np.sin(angle)
        cover = np.clip(np.minimum(rng.uniform(2, 12) - np.abs(along), rng.uniform(0.5, 1.3) - np.abs(across)) + 0.5, 0, 1)[..., None]
        image = image * (1 - cover) + rng.uniform(0, 255, 3) * cover
    for _ in range(rng.integers(1, 5)):
        radius, kind = rng.uniform(7, 16), int(rng.integers(len(CLASSES)))
        cx, cy = rng.uniform(radius, WIDTH - radius), rng.uniform(radius, HEIGHT - radius)
        if any(np.hypot(cx - (l + r) / 2, cy - (t + b) / 2) < 1.1 * (radius + (r - l) / 2) for _, l, t, r, b in found):
            continue
        field = shapes.shape_field(CLASSES[kind], (x - cx) / radius, (y - cy) / radius)
        cover = np.clip(field * radius + 0.5, 0, 1)[..., None]
        colour = rng.uniform(0, 255, 3)
        while np.abs(colour - image[int(cy), int(cx)]).max() < 70:
            colour = rng.uniform(0, 255, 3)
        image = image * (1 - cover) + colour * cover
        reach = radius * {"disk": 0.92, "square": 0.8, "plus": 1.0}[CLASSES[kind]]
        found.append((kind, cx - reach, cy - reach, cx + reach, cy + reach))
    return np.clip(image + rng.normal(0, 2, image.shape), 0, 255).round().astype(np.uint8), found


def letterboxed(image):
    inner = Image.fromarray(image).resize((SIZE, round(HEIGHT * SCALE)), Image.BILINEAR)
    canvas = np.full((SIZE, SIZE, 3), 114, np.uint8)
    canvas[TOP:TOP + inner.height] = np.asarray(inner)
    return canvas.astype(F) / F(255)


def target(objects):
    """Of each cell: its class or -1, and the distances of the box's sides in pixels of the input."""
    kinds, sides = np.full((CELLS, CELLS), -1), np.zeros((CELLS, CELLS, 4), F)
    points = (np.arange(CELLS) + 0.5) * STRIDE
    for kind, *box in objects:
        left, top, right, bottom = (v * SCALE + (TOP if i % 2 else 0) for i, v in enumerate(box))
        near = (np.abs(points - (left + right) / 2) <= 6)[None] & (np.abs(points - (top + bottom) / 2) <= 6)[:, None]
        for i, j in zip(*np.nonzero(near)):
            kinds[i, j], sides[i, j] = kind, (points[j] - left, points[i] - top, right - points[j], bottom - points[i])
    return kinds, sides


class Bias:
    def __init__(self, start):
        self.b = nn.Param(start)
        self.params = [self.b]

    def forward(self, x, train):
        return x + self.b.value

    def backward(self, g):
        self.b.grad += g.sum((0, 1, 2))
        return g


def unit(rng, ic, oc, stride=1):
    return [nn.Conv(rng, ic, oc, 3, stride), nn.BatchNorm(np.ones(oc)), nn.Clamp()]


def network(rng):
    return nn.Chain(*unit(rng, 3, 16, 2), *unit(rng, 16, 24, 2), *unit(rng, 24, 32), *unit(rng, 32, 48, 2), *unit(rng, 48, 48), *unit(rng, 48, 48),
                    nn.Conv(rng, 48, 4 + len(CLASSES)), Bias([0, 0, 0, 0] + [-3] * len(CLASSES)))


def loss_of(y, kinds, sides):
    """Cross entropy of the scores and distance of the sides, for each cell with an object, and the gradient."""
    p, has = 1 / (1 + np.exp(-y)), kinds >= 0
    want = (kinds[..., None] == np.arange(len(CLASSES))).astype(F)
    count, scores = max(1, has.sum()), p[..., 4:]
    loss = -(want * np.log(scores + 1e-9) + (1 - want) * np.log(1 - scores + 1e-9)).sum() / count
    apart = (p[..., :4] * REACH - sides) * has[..., None] / STRIDE
    g = np.empty_like(y)
    g[..., 4:] = (scores - want) / count
    g[..., :4] = np.tanh(4 * apart) * has[..., None] * p[..., :4] * (1 - p[..., :4]) * REACH / STRIDE / count
    return loss + np.abs(apart).sum() / count, g.astype(F)


def train(net, images, kinds, sides, rng, epochs, batch=32, peak=4e-3):
    steps, step = epochs * (len(images) // batch), 0
    for epoch in range(epochs):
        order, total = rng.permutation(len(images)), 0.0
        for at in range(0, len(order) - batch + 1, batch):
            pick, step = order[at:at + batch], step + 1
            x, k, s = images[pick], kinds[pick], sides[pick]
            if rng.integers(2):                 # mirrored
                x, k, s = x[:, :, ::-1], k[:, :, ::-1], s[:, :, ::-1][..., [2, 1, 0, 3]]
            loss, g = loss_of(net.forward(np.ascontiguousarray(x), True), k, s)
            net.backward(g)
            phase = step / steps
            nn.adam(net.params, step, peak * min(1.0, phase / 0.1) * 0.5 * (1 + np.cos(np.pi * max(0.0, phase - 0.1) / 0.9)))
            total += float(loss)
        print(f"epoch {epoch + 1}/{epochs}: loss {total / (len(order) // batch):.3f}", flush=True)


def save(net, path):
    nodes, constants, x, layers = [], [], "images", list(net.layers)

    def constant(name, value):
        constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def add(op, inputs, name, **attributes):
        nodes.append(helper.make_node(op, inputs, [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    convolutions = [i for i, layer in enumerate(layers) if isinstance(layer, nn.Conv)]
    for number, i in enumerate(convolutions, 1):
        conv, after, weights = layers[i], layers[i + 1], layers[i].onnx_weight().astype(np.float64)
        if isinstance(after, Bias):
            name, bias = "head", after.b.value
        else:
            name, gain = f"conv{number}", after.gamma.value / np.sqrt(after.var.astype(np.float64) + after.eps)
            weights, bias = weights * gain[:, None, None, None], after.beta.value - after.mean * gain
        x = add("Conv", [x, constant(f"{name}_w", weights.astype(F)), constant(f"{name}_b", bias.astype(F))], name, kernel_shape=[conv.k] * 2,
                strides=[conv.stride] * 2, pads=[conv.k // 2] * 4)
        if name != "head":
            x = add("Relu", [x], f"relu{number}")
    rows = add("Reshape", [x, constant("shape", np.array([1, 4 + len(CLASSES), CELLS * CELLS]))], "rows")
    constant("sizes", np.array([2, 2, len(CLASSES)]))
    nodes.append(helper.make_node("Split", [rows, "sizes"], ["near", "far", "logits"], name="split", axis=1))
    reach, half = constant("reach", F(REACH)), constant("half", F(0.5))
    points = (np.arange(CELLS, dtype=F) + F(0.5)) * STRIDE
    grid = constant("points", np.stack([np.tile(points, CELLS), np.repeat(points, CELLS)])[None])
    near, far = (add("Mul", [add("Sigmoid", [side], f"{side}_share"), reach], f"{side}_pixels") for side in ("near", "far"))
    centre = add("Add", [grid, add("Mul", [add("Sub", [far, near], "shift"), half], "half_shift")], "centre")
    boxes = [centre, add("Add", [far, near], "size"), add("Sigmoid", ["logits"], "scores")]
    nodes.append(helper.make_node("Concat", boxes, ["output0"], name="concat", axis=1))
    ends = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in (("images", [1, 3, SIZE, SIZE]), ("output0", [1, 4 + len(CLASSES), CELLS * CELLS]))]
    model = helper.make_model(helper.make_graph(nodes, "detector", ends[:1], ends[1:], constants), producer_name="octet make_detector", ir_version=8,
                              opset_imports=[helper.make_opsetid("", 13)])
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parents[2] / "testdata" / "detector")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=30)
    args = parser.parse_args()
    for folder in ("calib", "eval", "labels"):
        (args.out / folder).mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(100 + args.seed)
    for kind, count in (("calib", CALIB), ("eval", EVAL)):
        for i in range(count):
            image, found = scene(rng)
            Image.fromarray(image).save(args.out / kind / f"{kind}{i:03d}.jpg", quality=88)
            (args.out / "labels" / f"{kind}{i:03d}.txt").write_text("".join(
                f"{k} {(l + r) / 2 / WIDTH:.5f} {(t + b) / 2 / HEIGHT:.5f} {(r - l) / WIDTH:.5f} {(b - t) / HEIGHT:.5f}\n" for k, l, t, r, b in found))
    scenes = [scene(rng) for _ in range(TRAIN)]
    kinds, sides = (np.stack(part) for part in zip(*(target(found) for _, found in scenes)))
    net = network(np.random.default_rng(args.seed))
    train(net, np.stack([letterboxed(image) for image, _ in scenes]), kinds, sides, rng, args.epochs)
    save(net, args.out / "detector.onnx")


if __name__ == "__main__":
    main()
