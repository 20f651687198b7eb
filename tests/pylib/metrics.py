"""Scores per sample, their paired comparison, and the output SQNR."""
import math

import numpy as np


class Sqnr:
    """10 log10(sum y^2 / sum (y - yq)^2) over everything fed; inf when equal, -inf when a value was not finite."""

    def __init__(self):
        self.signal = self.noise = 0.0

    def add(self, reference, other):
        reference, other = np.asarray(reference, np.float64), np.asarray(other, np.float64)
        self.signal += float((reference ** 2).sum())
        self.noise += float(((reference - other) ** 2).sum())

    @property
    def db(self):
        if self.noise == 0:
            return math.inf
        ratio = self.signal / self.noise
        return 10 * math.log10(ratio) if ratio > 0 else -math.inf


def top_k(scores, labels, k):
    """0 or 1 per sample. A tie counts for the class with the smaller index, as a stable sort has it."""
    order = np.argsort(-scores.reshape(len(scores), -1), axis=1, kind="stable")[:, :k]
    return (order == np.asarray(labels)[:, None]).any(1).astype(np.float64)


def squared_error(x, y):
    """Mean squared error of each sample's reconstruction."""
    return ((np.asarray(x, np.float64) - np.asarray(y, np.float64)) ** 2).reshape(len(x), -1).mean(1)


def score_interval(n, up, down):
    """The interval of (up - down) / n that qeval gives: Tango's, its statistic a tenth of a sample nearer to 0 (lib/eval/metrics/difference_interval.c)."""
    def upper(up, down):
        low, high = (up - down) / n, 1.0
        for _ in range(60):
            d = (low + high) / 2
            # For d < 0 the same from the other side, where what is left open is the smaller of the two rates.
            more, less, e = (up, down, d) if d >= 0 else (down, up, -d)
            b, c = (2 * n - more + less) * e - more - less, less * e * (1 - e)
            rate = (math.sqrt(b * b + 8 * n * c) - b) / (4 * n)
            beyond = max(0.0, n * d - (up - down) - 0.1)
            if beyond ** 2 <= 1.9599639845400545 ** 2 * n * (2 * rate + e * (1 - e)):
                low = d
            else:
                high = d
        return (low + high) / 2

    return -upper(down, up), upper(up, down)


def paired_interval(a, b, rounds=10000, seed=7):
    """Mean of a - b over the samples, and the 95 % interval of it: Tango's for scores of 0 and 1, else by a paired bootstrap."""
    diff = np.asarray(a, np.float64) - np.asarray(b, np.float64)
    if np.isin(np.asarray([a, b]), (0, 1)).all():
        return float(diff.mean()), *score_interval(len(diff), int((diff > 0).sum()), int((diff < 0).sum()))
    rng = np.random.default_rng(seed)
    values, counts = np.unique(diff, return_counts=True)
    if len(values) <= 8:            # few distinct differences: draw their counts at once
        means = rng.multinomial(len(diff), counts / len(diff), rounds) @ values / len(diff)
    else:
        means = np.array([diff[rng.integers(0, len(diff), len(diff))].mean() for _ in range(rounds)])
    low, high = np.percentile(means, [2.5, 97.5])
    return float(diff.mean()), float(low), float(high)


def mcnemar(a, b):
    """Exact two-sided p of 'the two are right equally often', from 0/1 scores of the same samples."""
    a, b = np.asarray(a) > 0.5, np.asarray(b) > 0.5
    gained, lost = int((a & ~b).sum()), int((~a & b).sum())
    n = gained + lost
    if n == 0:
        return 1.0
    tail = sum(math.comb(n, i) for i in range(min(gained, lost) + 1)) / 2 ** n
    return min(1.0, 2 * tail)
