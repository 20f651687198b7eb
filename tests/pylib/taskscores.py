"""Task metrics in NumPy, apart from our own code: what qeval prints is held against them.

Boxes are [n][6]: x1 y1 x2 y2 score class. COCO's average precision is written here after its definition; check_metrics.py also asks pycocotools, where it
is installed.
"""
import numpy as np


# ---- classes ----

def shares(labels, found, macro=False):
    """(precision, recall, f1): of two classes the second's, else means over the classes that are there or were found."""
    labels, found = np.asarray(labels), np.asarray(found)
    rows = []
    for c in np.union1d(labels, found):
        hit, extra, missed = ((labels == c) & (found == c)).sum(), ((labels != c) & (found == c)).sum(), ((labels == c) & (found != c)).sum()
        rows.append((c, hit / max(hit + extra, 1), hit / max(hit + missed, 1), 2 * hit / (2 * hit + extra + missed)))
    if not macro and max(labels.max(), found.max()) < 2:
        return next((row[1:] for row in rows if row[0] == 1), (0.0, 0.0, 0.0))
    return tuple(np.mean([row[1:] for row in rows], axis=0))


def top(scores, labels, k):
    order = np.argsort(-scores.reshape(len(scores), -1), axis=1, kind="stable")[:, :k]
    return float((order == np.asarray(labels)[:, None]).any(1).mean())


def miou(maps, truth, classes, ignore=255):
    both, either = np.zeros(classes), np.zeros(classes)
    for found, wanted in zip(maps, truth):
        counted = wanted != ignore
        for c in range(classes):
            both[c] += ((found == c) & (wanted == c) & counted).sum()
            either[c] += (((found == c) | (wanted == c)) & counted).sum()
    return float((both[either > 0] / either[either > 0]).mean())


# ---- beside float ----

def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def kl(reference, other, logits):
    p, q = (softmax(a.astype(np.float64)) if logits else np.clip(a.astype(np.float64), 1e-7, 1) for a in (reference, other))
    return float((p * np.log(p / q)).sum(-1).mean())


def psnr(reference, other):
    y, z = reference.astype(np.float64), other.astype(np.float64)
    return float(10 * np.log10((y.max() - y.min()) ** 2 / ((y - z) ** 2).mean()))


# ---- pairs ----

def ranks(v):
    _, place, size = np.unique(v, return_inverse=True, return_counts=True)
    return (np.cumsum(size) - (size - 1) / 2)[place]


def correlations(embeddings, scores):
    """(Spearman's, Pearson's) of the cosines of consecutive embeddings with scores."""
    e = embeddings.astype(np.float64)
    a, b = e[0::2], e[1::2]
    cosine = (a * b).sum(1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
    return float(np.corrcoef(ranks(cosine), ranks(scores))[0, 1]), float(np.corrcoef(cosine, scores)[0, 1])


# ---- decoding: outputs of one picture by name, the input's width and height ----

def corners(cx, cy, w, h):
    return np.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], -1)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def grid(width, height, stride):
    y, x = np.mgrid[: -(-height // stride), : -(-width // stride)]
    return x.ravel().astype(np.float64), y.ravel().astype(np.float64)


def by_level(outputs, columns, width, height, strides):
    """The output of so many columns for each stride."""
    found = [o.astype(np.float64) for o in outputs.values() if o.shape[-1] == columns]
    return [next(o for o in found if len(o) == len(grid(width, height, s)[0])) for s in strides]


def nanodet(outputs, width, height):
    strides, boxes, scores = (8, 16, 32), [], []
    for s, d, c in zip(strides, by_level(outputs, 32, width, height, strides), by_level(outputs, 80, width, height, strides)):
        x, y = (v * s + s / 2 - 0.5 for v in grid(width, height, s))
        d = softmax(d.reshape(-1, 4, 8)) @ np.arange(8) * s
        boxes.append(np.stack([x - d[:, 0], y - d[:, 1], x + d[:, 2], y + d[:, 3]], 1))
        scores.append(c)
    return np.concatenate(boxes), np.concatenate(scores)


def only(outputs):
    return next(iter(outputs.values())).astype(np.float64)


def yolov5(outputs, width, height):
    o = only(outputs)
    return corners(*o[:, :4].T), o[:, 5:] * o[:, 4:5]


def yolov8(outputs, width, height):
    o = only(outputs).T
    return corners(*o[:, :4].T), o[:, 4:]


def yolox(outputs, width, height):
    o, at, boxes = only(outputs), 0, []
    for s in (8, 16, 32):
        x, y = grid(width, height, s)
        p = o[at: at + len(x)]
        boxes.append(corners((p[:, 0] + x) * s, (p[:, 1] + y) * s, np.exp(p[:, 2]) * s, np.exp(p[:, 3]) * s))
        at += len(x)
    return np.concatenate(boxes), o[:, 5:] * o[:, 4:5]


ANCHORS = {8: [(10, 13), (16, 30), (33, 23)], 16: [(30, 61), (62, 45), (59, 119)], 32: [(116, 90), (156, 198), (373, 326)]}


def yolov7_raw(outputs, width, height):
    boxes, scores = [], []
    for o in outputs.values():
        o = sigmoid(o.astype(np.float64))
        s = width // o.shape[2]
        x, y = (v.reshape(o.shape[1:3]) for v in grid(width, height, s))
        for a, (w, h) in enumerate(ANCHORS[s]):
            p = o[a]
            boxes.append(corners((2 * p[..., 0] - 0.5 + x) * s, (2 * p[..., 1] - 0.5 + y) * s, (2 * p[..., 2]) ** 2 * w, (2 * p[..., 3]) ** 2 * h).reshape(-1, 4))
            scores.append((p[..., 5:] * p[..., 4:5]).reshape(-1, o.shape[-1] - 5))
    return np.concatenate(boxes), np.concatenate(scores)


PYRAMID = (8, 16, 32, 64, 128)


def moved(anchors, deltas):
    """What shifts and logarithms make of anchors, both [n][4]; corners."""
    size, centre = anchors[:, 2:] - anchors[:, :2], (anchors[:, :2] + anchors[:, 2:]) / 2
    half = np.exp(deltas[:, 2:]) * size / 2
    centre = centre + deltas[:, :2] * size
    return np.concatenate([centre - half, centre + half], 1)


def retinanet(outputs, width, height):
    """As torchvision: anchors about a cell's corner, whole pixels, three sizes of each ratio; those of a cell are adjacent."""
    tables, parts = [o.astype(np.float64) for o in outputs.values()], []
    deltas, logits = sorted(tables, key=lambda t: t.shape[1] != 4)
    for s in PYRAMID:
        sizes = np.array([int(4 * s * 2 ** (i / 3)) for i in range(3)])
        tall = np.sqrt(np.array([0.5, 1, 2]))
        h, w = (tall[:, None] * sizes).ravel(), (sizes / tall[:, None]).ravel()
        base = np.round(np.stack([-w, -h, w, h], 1) / 2)
        x, y = grid(width, height, s)
        parts.append((np.stack([x, y, x, y], 1)[:, None] * s + base).reshape(-1, 4))
    return moved(np.concatenate(parts), deltas), sigmoid(logits)


def retinanet_levels(outputs, width, height):
    """As the ONNX zoo: sides of anchors count the last pixel, as those of the boxes do."""
    boxes, scores = [], []
    for s in PYRAMID:
        x, y = grid(width, height, s)
        shape = (9, -1, len(x))
        of_level = [o.astype(np.float64).reshape(shape) for o in outputs.values() if o.shape[1] * o.shape[2] == len(x)]
        deltas, levels = sorted(of_level, key=lambda t: t.shape[1] != 4)
        for a in range(9):
            scale, ratio = 4 * 2 ** (a // 3 / 3), (1, 2, 0.5)[a % 3]
            half = np.array([np.sqrt(s * s / ratio), np.sqrt(s * s / ratio) * ratio]) * scale / 2
            low = np.stack([x, y], 1) * s + s / 2 - half
            boxes.append(moved(np.concatenate([low, low + 2 * half + 1], 1), deltas[a].T))
            scores.append(levels[a].T)
    return np.concatenate(boxes), np.concatenate(scores)


def ssd(outputs, width, height):
    boxes, scores = (next(o for o in outputs.values() if (o.shape[-1] == 4) == four).astype(np.float64) for four in (True, False))
    return boxes * [width, height, width, height], scores[:, 1:]


def detr(outputs, width, height):
    boxes, scores = (next(o for o in outputs.values() if (o.shape[-1] == 4) == four).astype(np.float64) for four in (True, False))
    return corners(*(boxes * [width, height, width, height]).T), softmax(scores)[:, :-1]


def yolov10(outputs, width, height):
    """Rows that the graph has chosen: [n][6], best first."""
    o = only(outputs)
    return o[np.argsort(-o[:, 4], kind="stable")]


def rtdetr(outputs, width, height):
    boxes, logits = (next(o for o in outputs.values() if (o.shape[-1] == 4) == four).astype(np.float64) for four in (True, False))
    return corners(*(boxes * [width, height, width, height]).T), sigmoid(logits)


def blazeface(outputs, width, height):
    """Anchors of a cell are the same point: two of stride 8, six of stride 16."""
    raw, logits = (next(o for o in outputs.values() if (o.shape[-1] == 16) == wide).astype(np.float64) for wide in (True, False))
    points = []
    for s, times in ((8, 2), (16, 6)):
        x, y = grid(width, height, s)
        points.append(np.repeat((np.stack([x, y], 1) + 0.5) * s, times, axis=0))
    centre = np.concatenate(points) + raw[:, :2]
    return corners(*centre.T, raw[:, 2], raw[:, 3]), sigmoid(logits)


# ---- suppression ----

def overlaps(box, boxes):
    low, high = np.maximum(box[:2], boxes[:, :2]), np.minimum(box[2:4], boxes[:, 2:4])
    width, height = np.maximum(high - low, 0).T
    both = width * height
    return both / ((box[2] - box[0]) * (box[3] - box[1]) + (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]) - both)


def suppress(boxes, scores, least, limit, most, most_of_class=False, best_alone=False):
    """[n][6], best first."""
    if best_alone:
        scores = np.where(np.arange(scores.shape[1]) == scores.argmax(1)[:, None], scores, -1)
    rows, classes = np.nonzero(scores >= least)
    table = np.column_stack([boxes[rows], scores[rows, classes], classes]) if len(rows) else np.zeros((0, 6))
    kept, of_class = [], {}
    for row in table[np.argsort(-table[:, 4], kind="stable")]:
        if not most_of_class and len(kept) == most:
            break
        same, count = of_class.get(row[5], (None, 0))
        if (most_of_class and count == most) or (limit is not None and count and (overlaps(row, same[:count]) > limit).any()):
            continue
        if same is None or count == len(same):     # grows by halves
            same = np.concatenate([same, np.empty_like(same)]) if count else np.empty((16, 6))
        same[count] = row
        of_class[row[5]] = same, count + 1
        kept.append(row)
    return np.array(kept) if kept else np.zeros((0, 6))


# ---- average precision ----

def overlaps_of(boxes, objects):
    """Of each box with each of the objects, x1 y1 x2 y2 crowd; with a crowd, the share of the box."""
    rows = []
    for x1, y1, x2, y2 in boxes[:, :4].tolist():
        own, row = (x2 - x1) * (y2 - y1), []
        for o in objects:
            both = max(min(x2, o[2]) - max(x1, o[0]), 0) * max(min(y2, o[3]) - max(y1, o[1]), 0)
            row.append(both / (own if o[4] else own + (o[2] - o[0]) * (o[3] - o[1]) - both))
        rows.append(row)
    return rows


def match(rows, crowds, least):
    """For boxes of one class, best first: 1 right, 0 wrong, -1 on a crowd. rows: their overlaps; crowds: which objects are crowds, those last."""
    result, taken = [], set()
    for row in rows:
        best, most = None, least
        for i, overlap in enumerate(row):
            if overlap < most or (i in taken and not crowds[i]):
                continue
            if best is not None and not crowds[best] and crowds[i]:
                break
            best, most = i, overlap
        taken.add(best)
        result.append(0 if best is None else -1 if crowds[best] else 1)
    return result


def of_one_class(boxes, objects, c, most=None):
    """(scores, overlaps, crowds) of a picture's boxes of a class with its objects of that class; crowds come last."""
    found = boxes[boxes[:, 5] == c][:most]
    them = sorted((tuple(map(float, (*o[:4], o[5]))) for o in objects if o[4] == c), key=lambda o: o[4])
    return found[:, 4].tolist(), overlaps_of(found, them), [bool(o[4]) for o in them]


def average_precisions(found, wanted, levels=np.linspace(0.5, 0.95, 10)):
    """[classes with objects][levels]. found: a table of boxes per picture; wanted: [n][6] per picture, x1 y1 x2 y2 class crowd."""
    result = []
    for c in sorted({int(o[4]) for objects in wanted for o in objects if not o[5]}):
        total = sum(o[4] == c and not o[5] for objects in wanted for o in objects)
        pictures = [of_one_class(boxes, objects, c, 100) for boxes, objects in zip(found, wanted)]
        scores = np.array([s for picture in pictures for s in picture[0]])
        row, order = [], np.argsort(-scores, kind="stable")
        for level in levels:
            right = np.array([r for _, rows, crowds in pictures for r in match(rows, crowds, level)], int)[order]
            hits = np.cumsum(right[right >= 0])
            precision = hits / np.arange(1, len(hits) + 1)
            best = np.maximum.accumulate(precision[::-1])[::-1] if len(hits) else precision
            at = np.searchsorted(hits / total, np.arange(101) * 0.01)
            row.append(np.append(best, 0)[np.minimum(at, len(hits))].mean())
        result.append(row)
    return np.array(result)


def matches(found, wanted):
    """score, right and class of each box, at an overlap of one half."""
    rows = []
    for boxes, objects in zip(found, wanted):
        for c in np.unique(boxes[:, 5]) if len(boxes) else ():
            scores, overlap, crowds = of_one_class(boxes, objects, c)
            rows += ((s, r, c) for s, r in zip(scores, match(overlap, crowds, 0.5)))
    return np.array(rows).reshape(-1, 3).T


def best_f1(found, wanted, least=None):
    """F1 of all classes, and the score where it is best, or that is given; of equal ones the highest."""
    scores, right, _ = matches(found, wanted)
    total = sum(not o[5] for objects in wanted for o in objects)
    levels = np.unique(scores)[::-1] if least is None else np.array([least])
    hits, misses = (np.searchsorted(np.sort(-scores[right == kind]), -levels, side="right") for kind in (1, 0))
    if not len(levels) or (least is None and not hits.any()):
        return 0.0, np.inf
    all_f1 = 2 * hits / (hits + misses + total)
    at = int(all_f1.argmax())     # the first
    return float(all_f1[at]), levels[at]


def f1(found, wanted, least=None):
    """Of all classes at an overlap of one half: at the score that is given, or where it is best."""
    return best_f1(found, wanted, least)[0]


def class_rows(found, wanted, least=None):
    """{class: (objects, precision, recall, f1, ap50 or None)} of those that are there or were found at the score that counts for f1."""
    scores, right, classes = matches(found, wanted)
    at, ap, rows = best_f1(found, wanted, least)[1], average_precisions(found, wanted), {}
    there = sorted({int(o[4]) for objects in wanted for o in objects if not o[5]})
    for c in sorted({int(c) for c in classes} | set(there)):
        objects = sum(o[4] == c and not o[5] for o in (o for objects in wanted for o in objects))
        hits, extra = (((right == kind) & (scores >= at) & (classes == c)).sum() for kind in (1, 0))
        if hits + extra + objects:
            rows[c] = (int(objects), hits / (hits + extra) if hits + extra else 0, hits / objects if objects else 0, 2 * hits / (hits + extra + objects),
                       float(ap[there.index(c), 0]) if c in there else None)
    return rows
