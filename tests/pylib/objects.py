"""Detectors that give masks or keypoints beside boxes, and what NumPy and pycocotools say of these."""
import contextlib
import io
import json

import numpy as np

from pylib import detectors, taskscores

PROTOTYPES, POINTS, STEP = 32, 17, 4
SIGMAS = np.array([.26, .25, .25, .35, .35, .79, .79, .72, .72, .62, .62, 1.07, 1.07, .87, .87, .89, .89]) / 10
LEVELS = np.linspace(0.5, 0.95, 10)


# ---- models ----

def prototypes(net):
    net.out(net.add("Relu", net.head(STEP, PROTOTYPES)))


def points(net, x):
    """[1,3 * POINTS,n]: about each cell in pixels, and a share."""
    at = list(detectors.cells())
    raw = net.add("Reshape", x, net.constant(np.array([1, POINTS, 3, -1])))
    grow = np.array([1, 1, 0])[None, None, :, None] * at[2][None, None, None]
    base = np.stack([at[0], at[1], np.full(len(at[0]), 0.5)])[None, None]
    moved = net.add("Add", net.add("Mul", raw, net.constant(np.float32(grow))), net.constant(np.float32(base)))
    return net.add("Reshape", moved, net.constant(np.array([1, 3 * POINTS, -1])))


def rows(net, more):
    boxes, rest = detectors.around_cells(net, 4 + classes_of(more) + more)
    def part(a, b):
        return net.add("Slice", rest, net.constant(np.array([a])), net.constant(np.array([b])), net.constant(np.array([1])))
    n = classes_of(more)
    extra = part(n, n + more)
    return boxes, part(0, n), points(net, extra) if more == 3 * POINTS else net.scaled(extra, 1, 0.5)


def classes_of(more):
    return 1 if more == 3 * POINTS else detectors.CLASSES


def joined(more):
    def build(net):
        boxes, scores, extra = rows(net, more)
        net.out(net.add("Concat", boxes, net.scores(scores), extra, axis=1))
        if more == PROTOTYPES:
            prototypes(net)
    return build


def end_to_end(more):
    def build(net):
        boxes, scores, extra = rows(net, more)
        detectors.end_to_end(net, boxes, scores, [(extra, more)], classes_of(more))
        if more == PROTOTYPES:
            prototypes(net)
    return build


def of_yolov8(outputs, more):
    """(boxes and their rows, best first; columns of all rows): kept as yolov8's are."""
    o = next(v for v in outputs.values() if v.ndim == 2).astype(np.float64).T
    n = o.shape[1] - 4 - more
    boxes = taskscores.corners(*o[:, :4].T)
    row_of = {tuple(box): i for i, box in enumerate(boxes)}
    kept = taskscores.suppress(boxes, o[:, 4:4 + n], 0.05, 0.7, 300)
    return np.column_stack([kept[:, :4], [row_of[tuple(row[:4])] for row in kept], kept[:, 4:]]), o[:, 4 + n:]


def of_end_to_end(outputs, more):
    o = next(v for v in outputs.values() if v.ndim == 2).astype(np.float64)
    order = np.argsort(-o[:, 4], kind="stable")
    order = order[o[order, 4] >= 0.05]
    table = np.column_stack([o[order, :4], order, o[order, 4:6]])
    return table, o[:, 6:]


class Family:
    def __init__(self, rule, build, found, more):
        self.rule, self.build, self.found, self.more = rule, build, found, more

    @property
    def masks(self):
        return self.more == PROTOTYPES


FAMILIES = [
    Family("yolov8-seg", joined(PROTOTYPES), of_yolov8, PROTOTYPES),
    Family("yolov8-pose", joined(3 * POINTS), of_yolov8, 3 * POINTS),
    Family("yolo26-seg", end_to_end(PROTOTYPES), of_end_to_end, PROTOTYPES),
    Family("yolo26-pose", end_to_end(3 * POINTS), of_end_to_end, 3 * POINTS),
]


# ---- masks ----

def mask_of(coefficients, outputs, box, size, scale, shift):
    """Pixels of a picture of size (w, h): the prototypes' sum, interpolated, above 0 and inside the box, which is in pixels of the picture."""
    p = next(v for v in outputs.values() if v.ndim == 3).astype(np.float64)
    total = np.tensordot(coefficients, p, 1)
    def places(n, k, side, places_n):
        at = np.clip(((np.arange(n) + 0.5) * scale[k] + shift[k]) * places_n / side - 0.5, 0, places_n - 1)
        low = np.floor(at).astype(int)
        return low, np.minimum(low + 1, places_n - 1), at - low
    x0, x1, fx = places(size[0], 0, detectors.WIDTH, p.shape[2])
    y0, y1, fy = places(size[1], 1, detectors.HEIGHT, p.shape[1])
    def across(r):
        return total[r][:, x0] * (1 - fx) + total[r][:, x1] * fx
    value = across(y0) * (1 - fy)[:, None] + across(y1) * fy[:, None]
    x, y = np.arange(size[0]) + 0.5, np.arange(size[1]) + 0.5
    inside = ((y >= box[1]) & (y < box[3]))[:, None] & ((x >= box[0]) & (x < box[2]))[None]
    return (value > 0) & inside


def runs_of(mask):
    """Lengths down the columns, the first of what is not set."""
    flat = mask.T.ravel()
    turns = np.flatnonzero(np.diff(np.concatenate([[0], flat.astype(np.int8), [2]])))
    return np.diff(np.concatenate([[0], turns])).tolist()


def text_of(runs):
    """COCO's text of runs."""
    out = []
    for i, run in enumerate(runs):
        x = run - runs[i - 2] if i > 2 else run
        while True:
            low, x = x & 31, x >> 5
            done = x == (-1 if low & 16 else 0)
            out.append(chr(48 + (low if done else low | 32)))
            if done:
                break
    return "".join(out)


def overlap(a, b, crowd):
    both = (a & b).sum()
    whole = a.sum() if crowd else (a | b).sum()
    return both / whole if both else 0.0


def similarity(found, o):
    """OKS of [k][2] with an annotation of COCO's."""
    truth = np.array(o["keypoints"], float).reshape(-1, 3)
    visible = truth[:, 2] > 0
    sigmas = SIGMAS if len(truth) == POINTS else np.full(len(truth), 1 / len(truth))
    if visible.any():
        d = found - truth[:, :2]
    else:
        x, y, w, h = o["bbox"]
        d = np.maximum(0, [x - w, y - h] - found) + np.maximum(0, found - [x + 2 * w, y + 2 * h])
        visible[:] = True
    e = (d ** 2).sum(1) / (2 * sigmas) ** 2 / (o["area"] + np.spacing(1)) / 2
    return np.exp(-e[visible]).mean()


# ---- average precision ----

def matched(overlaps, ignored, crowd, least):
    """For detections, best first: 1 right, 0 wrong, -1 of no account."""
    order, taken, result = np.argsort(ignored, kind="stable"), set(), []
    for row in overlaps:
        best, most = None, least
        for k in order:
            if k in taken and not crowd[k]:
                continue
            if best is not None and not ignored[best] and ignored[k]:
                break
            if row[k] < most:
                continue
            best, most = k, row[k]
        if best is not None:
            taken.add(best)
        result.append(0 if best is None else -1 if ignored[best] else 1)
    return result


def precisions(pictures, most):
    """[class][level] of [(scores, classes, overlaps[found][objects], classes, ignored, crowd of objects)]"""
    all_classes = sorted({int(c) for p in pictures for c, ignored in zip(p[3], p[4]) if not ignored})
    table = np.zeros((len(all_classes), len(LEVELS)))
    for row, c in enumerate(all_classes):
        for t, least in enumerate(LEVELS):
            found, wanted = [], 0
            for scores, classes, overlaps, of, ignored, crowd in pictures:
                mine, theirs = np.flatnonzero(classes == c)[:most], np.flatnonzero(of == c)
                wanted += (~ignored[theirs]).sum()
                found += zip(scores[mine], matched(overlaps[np.ix_(mine, theirs)], ignored[theirs], crowd[theirs], least))
            found = [f for f in sorted(found, key=lambda f: -f[0]) if f[1] >= 0]
            right = np.cumsum([f[1] for f in found]) if found else np.zeros(0)
            precision = right / (np.arange(len(right)) + 1)
            best = np.maximum.accumulate(precision[::-1])[::-1]
            at = np.searchsorted(right / wanted, np.linspace(0, 1, 101), side="left")
            table[row, t] = np.mean([best[i] if i < len(best) else 0 for i in at])
    return table


def coco_says(truth, results, kind):
    """(map, ap50) by pycocotools; None without it."""
    try:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval
    except ImportError:
        return None
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(str(truth))
        e = COCOeval(coco, coco.loadRes(results), kind)
        e.evaluate()
        e.accumulate()
        precision = e.eval["precision"][:, :, :, 0, -1]
    return precision[precision > -1].mean(), precision[0][precision[0] > -1].mean()


def pixels_of_polygons(polygons, size):
    """By pycocotools; None without it."""
    try:
        from pycocotools import mask
    except ImportError:
        return None
    return mask.decode(mask.merge(mask.frPyObjects(polygons, size[1], size[0]))).astype(bool)


def save(path, value):
    path.write_text(json.dumps(value))
    return path
