"""Metrics of sequences, texts and retrieval in Python; by seqeval and jiwer, too, where they are installed."""
import numpy as np


def token_f1(truth, found, outside=()):
    """Mean over labels that occur; truth below 0 does not count."""
    counts = {}
    for t, f in zip(truth, found):
        for a, b in zip(t, f):
            if a < 0:
                continue
            for label, k in ((a, 0 if a == b else 2), (b, 0 if a == b else 1)):
                counts.setdefault(int(label), [0, 0, 0])[k] += 0.5 if a == b else 1
    values = [2 * hit / (2 * hit + extra + missed) for label, (hit, extra, missed) in counts.items() if label not in outside]
    return float(np.mean(values))


def entities(tags):
    """By a walk over the tags: an entity goes on while its type stays and no B begins another."""
    found, open_type, first = set(), None, 0
    for i, tag in enumerate([*tags, "O"]):
        letter, kind = tag[0], tag[2:]
        if open_type is not None and (letter in "BO" or kind != open_type):
            found.add((open_type, first, i - 1))
            open_type = None
        if letter != "O" and open_type is None:
            open_type, first = kind, i
    return found


def entity_f1(truth, found):
    """Lists of tags. (by the walk above, by seqeval or None)"""
    pairs = [(entities(t), entities(f)) for t, f in zip(truth, found)]
    hit, a, b = (sum(len(x) for x in s) for s in ([t & f for t, f in pairs], [t for t, _ in pairs], [f for _, f in pairs]))
    try:
        from seqeval.metrics import f1_score
    except ImportError:
        return 2 * hit / (a + b), None
    return 2 * hit / (a + b), float(f1_score(truth, found))


def distance(a, b):
    table = np.zeros((len(a) + 1, len(b) + 1), int)
    table[:, 0], table[0] = np.arange(len(a) + 1), np.arange(len(b) + 1)
    for i, x in enumerate(a, 1):
        for k, y in enumerate(b, 1):
            table[i, k] = min(table[i - 1, k - 1] + (x != y), table[i - 1, k] + 1, table[i, k - 1] + 1)
    return int(table[-1, -1])


def errors(truth, found):
    """((wer, cer) here, by jiwer or None)"""
    def rate(cut):
        return sum(distance(cut(t), cut(f)) for t, f in zip(truth, found)) / sum(len(cut(t)) for t in truth)
    mine = rate(str.split), rate(lambda s: list(s.strip()))
    try:
        import jiwer
    except ImportError:
        return mine, None
    return mine, (jiwer.wer(truth, found), jiwer.cer(truth, found))


def ctc(labels, blank=0):
    return [c for i, c in enumerate(labels) if c != blank and (i == 0 or c != labels[i - 1])]


def retrieval(embeddings, pairs):
    """{metric: value}; pairs: (query, document, relevance)."""
    e = embeddings.astype(np.float64)
    e = e / np.linalg.norm(e, axis=1, keepdims=True)
    documents = np.array(sorted({b for _, b, _ in pairs}))
    rows = {}
    for query in sorted({a for a, _, _ in pairs}):
        gain = {b: s for a, b, s in pairs if a == query and s > 0 and a != b}
        if not gain:
            continue
        others = documents[documents != query]
        order = others[np.argsort(-(e[others] @ e[query]), kind="stable")]
        gains = np.array([gain.get(d, 0) for d in order], float)
        best = np.sort(gains)[::-1]
        by_rank = 1 / np.log2(np.arange(len(order)) + 2)
        for k in (1, 5, 10, 100):
            rows.setdefault(f"recall@{k}", []).append((gains[:k] > 0).sum() / len(gain))
        for k in (10, 100):
            rows.setdefault(f"ndcg@{k}", []).append((gains * by_rank)[:k].sum() / (best * by_rank)[:k].sum())
        rows.setdefault("mrr", []).append(1 / (1 + np.flatnonzero(gains > 0)[0]))
    return {name: float(np.mean(v)) for name, v in rows.items()}
