"""What a model is judged by: its task turns outputs into a score over a set of samples, whose parts can be drawn again.

A score has `count` samples and value(draws): the metric where sample i counts draws[i] times. TASKS has the tasks by the metric's name.
"""
import numpy as np

from pylib import metrics

DRAWS = 1000


class Mean:
    """A number per sample."""

    def __init__(self, each):
        self.each = np.asarray(each, np.float64)
        self.count = len(self.each)

    def value(self, draws=None):
        return float(np.average(self.each, weights=draws))


class AveragePrecision:
    """The mean over the classes that occur of precision at the best, interpolated at 101 recalls."""

    def __init__(self, count, found, truth):
        """found: {class: [(sample, score, is true)]}; truth: {class: [sample of each object]}"""
        self.count, self.classes = count, []
        for c, objects in truth.items():
            rows = sorted(found.get(c, ()), key=lambda r: -r[1])
            self.classes.append((np.array([r[0] for r in rows], int), np.array([r[2] for r in rows], float), np.array(objects, int)))

    def value(self, draws=None):
        draws = np.ones(self.count) if draws is None else draws
        each = []
        for where, right, objects in self.classes:
            total = draws[objects].sum()
            if not total:
                continue
            hits, seen = np.cumsum(right * draws[where]), np.cumsum(draws[where])
            precision = np.maximum.accumulate((hits / np.maximum(seen, 1))[::-1])[::-1]
            at = np.searchsorted(hits / total, np.linspace(0, 1, 101) - 1e-12)
            each.append(np.append(precision, 0)[np.minimum(at, len(precision))].mean())
        return float(np.mean(each)) if each else 0.0


class Overlap:
    """F1 from the numbers of boxes per sample: those found, those wanted, and those that are both."""

    def __init__(self, both, found, wanted):
        self.both, self.sum = np.asarray(both, float), np.asarray(found, float) + np.asarray(wanted, float)
        self.count = len(self.both)

    def value(self, draws=None):
        draws = np.ones(self.count) if draws is None else draws
        total = (self.sum * draws).sum()
        return float(2 * (self.both * draws).sum() / total) if total else 1.0


class RankCorrelation:
    """Spearman's, of two numbers per sample; ties have their mean rank."""

    def __init__(self, x, y):
        self.x, self.y, self.count = np.asarray(x), np.asarray(y), len(x)

    def value(self, draws=None):
        draws = np.ones(self.count, int) if draws is None else draws
        def ranks(v):
            _, place, size = np.unique(np.repeat(v, draws), return_inverse=True, return_counts=True)
            return (np.cumsum(size) - (size - 1) / 2)[place]
        return float(np.corrcoef(ranks(self.x), ranks(self.y))[0, 1])


def difference(a, b, seed=7):
    """(a - b, low, high): the paired 95 % interval; Tango's or a bootstrap of means, else a bootstrap of the whole metric."""
    if isinstance(a, Mean):
        return metrics.paired_interval(a.each, b.each)
    rng = np.random.default_rng(seed)
    drawn = [rng.multinomial(a.count, np.full(a.count, 1 / a.count)) for _ in range(DRAWS)]
    low, high = np.percentile([a.value(d) - b.value(d) for d in drawn], [2.5, 97.5])
    return a.value() - b.value(), float(low), float(high)


# ---- boxes: [n][4] as x1 y1 x2 y2

def overlap(box, boxes):
    """Intersection over union of one box with each of many."""
    low, high = np.maximum(box[:2], boxes[:, :2]), np.minimum(box[2:], boxes[:, 2:])
    both = np.prod(np.maximum(high - low, 0), axis=1)
    return both / np.maximum(np.prod(box[2:] - box[:2]) + np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) - both, 1e-12)


def suppress(boxes, scores, limit, most=None):
    """Indices of the boxes that stay, best first: none overlaps a better one by more than limit."""
    order, kept = np.argsort(-scores, kind="stable"), []
    while len(order) and len(kept) != most:
        kept.append(order[0])
        order = order[1:][overlap(boxes[order[0]], boxes[order[1:]]) <= limit]
    return kept


def matches(boxes, wanted, at=0.5):
    """For each box, best first, whether it meets a wanted one that no better one has taken."""
    free, right = np.ones(len(wanted), bool), []
    for box in boxes:
        with_free = np.where(free, overlap(box, wanted), -1) if len(wanted) else np.array([-1.0])
        best = int(with_free.argmax())
        right.append(with_free[best] >= at)
        if right[-1]:
            free[best] = False
    return right


# ---- tasks: (outputs {name: array}, samples, labels, outputs of float) -> score

def _first(outputs):
    return next(iter(outputs.values()))


def top1(outputs, samples, labels, reference):
    return Mean(metrics.top_k(_first(outputs), labels, 1))


def mse(outputs, samples, labels, reference):
    x = np.stack([samples.get(i) for i in range(samples.count)])
    return Mean(metrics.squared_error(x, _first(outputs)))


def agreement(outputs, samples, labels, reference):
    """Of decisions at one half."""
    y, want = (_first(o).reshape(samples.count, -1)[:, 0] > 0.5 for o in (outputs, reference))
    return Mean(y == want)


def spearman(outputs, samples, labels, reference):
    """Of the cosines of consecutive embeddings with the pairs' labels."""
    e = outputs["sentence_embedding"].astype(np.float64)
    a, b = e[0::2], e[1::2]
    return RankCorrelation((a * b).sum(1) / np.maximum(np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1), 1e-12), labels)


def _nanodet_boxes(outputs, i):
    """(boxes in pixels of the input, scores [n][classes]) of one sample."""
    names, boxes, scores = list(outputs), [], []
    for stride, name in zip((8, 16, 32), sorted(n for n in names if outputs[n].shape[-1] == 80)):
        s = outputs[name][i]
        side = round(len(s) ** 0.5)
        sides = next(outputs[n][i] for n in names if outputs[n].shape[1:] == (len(s), 32)).reshape(len(s), 4, 8).astype(np.float64)
        e = np.exp(sides - sides.max(-1, keepdims=True))
        d = (e / e.sum(-1, keepdims=True)) @ np.arange(8) * stride
        y, x = (v.ravel() for v in np.mgrid[:side, :side])
        centre = (np.stack([x, y], 1) + 0.5) * stride - 0.5
        boxes.append(np.concatenate([centre - d[:, :2], centre + d[:, 2:]], 1))
        scores.append(s)
    return np.concatenate(boxes), np.concatenate(scores)


def ap50(outputs, samples, labels, reference):
    """labels: per sample [n][5]: class and box in 0..1, by the name of the picture."""
    found, truth = {}, {}
    for i in range(samples.count):
        wanted = labels(samples.names[i])
        for row in wanted:
            truth.setdefault(int(row[0]), []).append(i)
        boxes, scores = _nanodet_boxes(outputs, i)
        height, width = samples.get(i).shape[-2:]
        boxes = boxes / [width, height, width, height]
        for c in np.flatnonzero((scores > 0.05).any(0)):
            which = np.flatnonzero(scores[:, c] > 0.05)
            which = which[suppress(boxes[which], scores[which, c], 0.6, 100)]
            right = matches(boxes[which], wanted[wanted[:, 0] == c, 1:])
            found.setdefault(int(c), []).extend((i, float(scores[k, c]), r) for k, r in zip(which, right))
    return AveragePrecision(samples.count, found, truth)


def _faces(outputs, i):
    scores, boxes = outputs["scores"][i][:, 1], outputs["boxes"][i]
    which = np.flatnonzero(scores > 0.7)
    return boxes[which[suppress(boxes[which], scores[which], 0.3)]]


def f1(outputs, samples, labels, reference):
    """Against the boxes of float."""
    rows = []
    for i in range(samples.count):
        found, wanted = _faces(outputs, i), _faces(reference, i)
        rows.append((sum(matches(found, wanted)), len(found), len(wanted)))
    return Overlap(*zip(*rows))


TASKS = {t.__name__: t for t in (top1, mse, agreement, spearman, ap50, f1)}
LOWER_IS_BETTER = {"mse"}
