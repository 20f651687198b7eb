"""Small seeded networks of the kinds in which a conversion may lose a part without a word: heads that join values of very different size, and layers that stay
float between others."""
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper

from pylib import smallnets

CELLS = 64


@dataclass
class Head:
    path: object
    samples: list
    parts: dict   # part of the output -> its slice along the last axis but for `axis`
    axis: int     # along which the parts stand beside each other


def conv(n, x, ic, oc, k=3, name=None, bias=None, stride=1):
    b = n.small(oc) if bias is None else np.full(oc, bias, np.float32)
    return n.node("Conv", [x, n.const(n.weights(oc, ic, k, k, fan=ic * k * k)), n.const(b)], name, pads=[k // 2] * 4, strides=[stride] * 2)


def _part(n, x, kind, size, rows):
    """[1, rows, CELLS] values of a kind: boxes in pixels, boxes as shares of the picture, scores, angles, or points in pixels."""
    y = n.node("Reshape", [conv(n, x, 12, rows, 1, bias={"scores": -2, "boxes": 2, "points": 2}.get(kind, 0)), n.const(np.array([1, rows, CELLS]))])
    if kind in ("scores", "angles", "shares"):
        return n.node("Tanh" if kind == "angles" else "Sigmoid", [y])
    if kind == "boxes":
        grid = np.stack(np.divmod(np.arange(CELLS), 8)).astype(np.float32)
        grid = np.tile(grid, (rows // 2, 1))[None]
        return n.node("Mul", [n.node("Add", [y, n.const(grid)]), n.const(np.float32(size / 8))])
    return n.node("Mul", [y, n.const(np.float32(size))])


def head(path, seed):
    """A backbone, and a head of two or three parts, joined along channels or along the last axis, with movement or selection behind."""
    n = smallnets.Net(seed)
    rng = np.random.default_rng(1000 + seed)
    x = n.node("Relu", [conv(n, "x", 3, 12, stride=2)])
    size = float(rng.choice([160, 320, 640, 1280]))
    unit = rng.random() < 0.35  # boxes are shares of the picture, which become pixels behind the join
    kinds = [("boxes", 4), ("scores", int(rng.integers(1, 6)))] + ([("angles", 1)] if rng.random() < 0.3 else []) + ([("points", 2)] if rng.random() < 0.3 else [])
    order = rng.permutation(len(kinds))
    made, parts, at = [], {}, 0
    last = rng.random() < 0.4  # parts are turned before they are joined
    for i in order:
        kind, rows = kinds[i]
        y = _part(n, x, "shares" if unit and kind == "boxes" else kind, size, rows)
        made.append(n.node("Transpose", [y], perm=[0, 2, 1]) if last else y)
        parts[kind] = slice(at, at + rows)
        at += rows
    if len(made) == 3 and rng.random() < 0.5:  # in two steps
        made = [n.node("Concat", made[:2], axis=2 if last else 1), made[2]]
    y, axis = n.node("Concat", made, axis=2 if last else 1), 2 if last else 1
    if unit:
        by = np.concatenate([np.full(rows, size if kind == "boxes" else 1) for kind, rows in (kinds[i] for i in order)]).astype(np.float32)
        y = n.node("Mul", [y, n.const(by[None, None, :] if last else by[None, :, None])])
    behind = rng.choice(["nothing", "turned", "gathered", "deeper"])
    if behind == "turned":
        y, axis = n.node("Transpose", [y], perm=[0, 2, 1]), 3 - axis
    elif behind == "gathered":
        y = n.node("Gather", [y, n.const(np.arange(0, CELLS, 3))], axis=3 - axis)
    elif behind == "deeper":
        y, axis = n.node("Unsqueeze", [y, n.const(np.array([1]))]), axis + 1
    n.save(path, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])], [y])
    return Head(path, [_picture(n.rng, 16) for _ in range(24)], parts, axis)


# ---- ends as the families of detectors have them ----

def _decoded(n, x, cells, kind, columns, size):
    """[1, columns, cells] of a map [1, 12, ., .]: what a head of that kind gives."""
    bias = {"scores": -2, "ids": 0, "logits": -4}.get(kind, 0)
    y = n.node("Reshape", [conv(n, x, 12, columns, 1, bias=bias), n.const(np.array([1, columns, cells]))])
    if kind in ("scores", "shares"):
        return n.node("Sigmoid", [y])
    if kind == "logits":  # of one side and far from the boxes' size
        return n.node("Mul", [y, n.const(np.float32(6))])
    if kind in ("coefficients", "angles"):
        return n.node("Tanh", [y])
    if kind == "corners":   # a centre less and plus what the map says, as distances of sides are decoded
        grid = np.stack(np.divmod(np.arange(cells), int(round(cells ** 0.5))))[None].astype(np.float32) + 0.5
        n.nodes.append(helper.make_node("Split", [y, n.const(np.array([2, 2]))], [f"{y}_first", f"{y}_last"], axis=1))
        ends = [n.node(op, [n.const(grid), f"{y}_{which}"]) for op, which in (("Sub", "first"), ("Add", "last"))]
        return n.node("Mul", [n.node("Concat", ends, axis=1), n.const(np.float32(size / cells ** 0.5))])
    side = int(round(cells ** 0.5))
    at = np.tile(np.stack(np.divmod(np.arange(cells), side))[:, :], (columns // 2, 1))[None].astype(np.float32)
    return n.node("Mul", [n.node("Add", [y, n.const(at)]), n.const(np.float32(size / side))])


def _turned(n, x):
    return n.node("Transpose", [x], perm=[0, 2, 1])


def _best(n, parts, k):
    """The rows with the best scores, as the graphs of YOLOv10, YOLO26 and RT-DETR choose them; parts: kind -> [1, columns, CELLS]."""
    scores = _turned(n, parts.pop("scores"))
    best = n.node("ReduceMax", [scores], axes=[2], keepdims=0)
    n.nodes.append(helper.make_node("TopK", [best, n.const(np.array([k]))], ["best_of_rows", "rows"], axis=1))
    at = n.node("Unsqueeze", ["rows", n.const(np.array([2]))])
    made = {}
    for kind, x in parts.items():
        columns = n.columns[kind]
        made[kind] = n.node("GatherElements", [_turned(n, x), n.node("Tile", [at, n.const(np.array([1, 1, columns]))])], axis=1)
    made["scores"] = n.node("Unsqueeze", ["best_of_rows", n.const(np.array([2]))])
    return made


def _best_classes(n, parts, k):
    """The best of all classes of all rows: its row, its score and its class."""
    scores, classes = parts.pop("scores"), n.columns["scores"]
    flat = n.node("Reshape", [_turned(n, scores), n.const(np.array([1, -1]))])
    n.nodes.append(helper.make_node("TopK", [flat, n.const(np.array([k]))], ["best_of_all", "at"], axis=1))
    last = n.const(np.array([2]))
    rows = n.node("Unsqueeze", [n.node("Div", ["at", n.const(np.array(classes))]), last])
    made = {kind: n.node("GatherElements", [_turned(n, x), n.node("Tile", [rows, n.const(np.array([1, 1, n.columns[kind]]))])], axis=1) for kind, x in parts.items()}
    made["scores"] = n.node("Unsqueeze", ["best_of_all", last])
    made["ids"] = n.node("Unsqueeze", [n.node("Cast", [n.node("Mod", ["at", n.const(np.array(classes))])], to=TensorProto.FLOAT), last])
    return made


def _over_levels(n, x, kinds, size):
    """kind -> [1, columns, cells of both levels]."""
    found = {kind: [] for kind, _ in kinds}
    for cells in (64, 16):
        for kind, columns in kinds:
            found[kind].append(_decoded(n, x, cells, kind, columns, size))
        x = n.node("Relu", [conv(n, x, 12, 12, stride=2)])
    return {kind: n.node("Concat", each, axis=2) for kind, each in found.items()}


def _levels(n, x, kinds, size):
    """Each level joins its parts, and all levels are joined."""
    joined = []
    for cells in (64, 16):
        joined.append(n.node("Concat", [_decoded(n, x, cells, kind, columns, size) for kind, columns in kinds], axis=1))
        x = n.node("Relu", [conv(n, x, 12, 12, stride=2)])
    return n.node("Concat", joined, axis=2)


def _nested(n, x, kinds, size):
    """Joined two by two, moved between."""
    y = _turned(n, _decoded(n, x, CELLS, *kinds[0], size))
    for kind, columns in kinds[1:]:
        y = n.node("Concat", [y, _turned(n, _decoded(n, x, CELLS, kind, columns, size))], axis=2)
        y = n.node("Reshape", [n.node("Unsqueeze", [y, n.const(np.array([0]))]), n.const(np.array([1, CELLS, -1]))])
    return _turned(n, y)


ENDS = {
    "end to end": (("boxes", 4), ("scores", 5)),
    "end to end with masks": (("boxes", 4), ("scores", 5), ("coefficients", 8)),
    "end to end with keypoints": (("boxes", 4), ("scores", 1), ("points", 10)),
    "masks": (("boxes", 4), ("scores", 5), ("coefficients", 8)),
    "keypoints": (("boxes", 4), ("scores", 1), ("points", 10)),
    "levels": (("boxes", 4), ("scores", 5)),
    "levels with masks": (("boxes", 4), ("scores", 5), ("coefficients", 8)),
    "nested": (("boxes", 4), ("scores", 3), ("points", 4), ("coefficients", 4)),
    "pair": (("logits", 5), ("shares", 4)),
    "pair, chosen": (("scores", 5), ("shares", 4), ("logits", 5)),
    "end to end with classes": (("boxes", 4), ("scores", 8)),
    "end to end of levels": (("boxes", 4), ("scores", 5)),
    "end to end in shares": (("shares", 4), ("scores", 5)),
    "end to end with angles": (("boxes", 4), ("scores", 3), ("angles", 1)),
    "end to end of corners, with classes": (("corners", 4), ("scores", 8)),
}


def end(path, name, seed):
    """The end of that name. Rows that a graph chooses are the best of all."""
    n = smallnets.Net(seed)
    x = n.node("Relu", [conv(n, "x", 3, 12, stride=2)])
    size, kinds = float(np.random.default_rng(3000 + seed).choice([320, 640, 1280])), ENDS[name]
    n.columns, order, axis = dict(kinds), [k for k, _ in kinds], 1
    if "end to end" in name or "chosen" in name:
        found = _over_levels(n, x, kinds, size) if "levels" in name else {kind: _decoded(n, x, CELLS, kind, columns, size) for kind, columns in kinds}
        made = (_best_classes if "classes" in name else _best)(n, found, 20)
        order, axis, n.columns["scores"], n.columns["ids"] = list(made), 2, 1, 1
        y = n.node("Concat", list(made.values()), axis=2)
    elif "levels" in name:
        y = _levels(n, x, kinds, size)
    elif name == "nested":
        y = _nested(n, x, kinds, size)
    else:
        y = n.node("Concat", [_decoded(n, x, CELLS, kind, columns, size) for kind, columns in kinds], axis=1)
    parts, at = {}, 0
    for kind in order:
        parts[kind] = slice(at, at + n.columns[kind])
        at += n.columns[kind]
    n.save(path, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])], [y])
    return Head(path, [_picture(n.rng, 16) for _ in range(24)], parts, axis)


def _picture(rng, size):
    """A blurred picture, so that not all cells are alike."""
    return np.kron(rng.random((1, 3, 4, 4)), np.ones((1, 1, size // 4, size // 4))).astype(np.float32)


def mixture(path, seed):
    """Convolutions, some behind clamps or pools, and a product at the end. (samples, names of the layers between the first and the last)"""
    n = smallnets.Net(seed)
    rng = np.random.default_rng(2000 + seed)
    width, x, between = int(rng.choice([8, 12, 16])), "x", []
    x = conv(n, x, 3, width, name="first")
    for i in range(int(rng.integers(2, 4))):
        x = n.node("Relu", [x]) if rng.random() < 0.6 else x
        spread = np.exp(1.2 * rng.standard_normal(width)).astype(np.float32)
        name, kind = f"between{i}", rng.choice(["Conv", "ConvTranspose", "depthwise"])
        group = width if kind == "depthwise" else 1
        w = n.weights(width, width // group, 3, 3, fan=9 * width // group) * (spread[None, :, None, None] if kind == "ConvTranspose" else spread[:, None, None, None])
        x = n.node("Conv" if group > 1 else str(kind), [x, n.const(w), n.const(n.small(width))], name, pads=[1] * 4, group=group)
        between.append(name)
    x = conv(n, n.node("Relu", [x]), width, 6, name="last")
    n.save(path, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 12, 12])], [x])
    return [_picture(n.rng, 12) for _ in range(16)], between
