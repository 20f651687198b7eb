"""Small language models in plain numpy: a transformer with its training, and a made language that it learns.

`Tape` differentiates: each operation appends a function that hands gradients back. Parameters are numpy arrays in a dictionary; their names
are those of the written model's constants.
"""
import numpy as np

F = np.float32


# ---- the language ----

class Language:
    """Stories of words. A story gives each of its few names a thing and a place (random, so that they must be remembered), and then tells of
    them: who goes where, who holds what. Verbs come in two kinds that agree with their subject; adjectives follow a chain whose probabilities
    depend on the last two of them; the story's mood, which its first word tells, prefers some words all along."""
    NAMES, THINGS, PLACES, ADJECTIVES, VERBS, MOODS = 16, 16, 12, 16, 12, 4
    GLUE = ("<pad>", "has", "is", "in", "goes", "to", "holds", "the", "and", ".", "not", "then")

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        at = len(self.GLUE)
        self.mood, at = np.arange(at, at + self.MOODS), at + self.MOODS
        self.name, at = np.arange(at, at + self.NAMES), at + self.NAMES
        self.thing, at = np.arange(at, at + self.THINGS), at + self.THINGS
        self.place, at = np.arange(at, at + self.PLACES), at + self.PLACES
        self.adjective, at = np.arange(at, at + self.ADJECTIVES), at + self.ADJECTIVES
        self.verb, at = np.arange(at, at + self.VERBS), at + self.VERBS
        self.words = at
        self.word = {w: i for i, w in enumerate(self.GLUE)}
        self.chain = rng.dirichlet(np.full(self.ADJECTIVES, 0.12), (self.ADJECTIVES + 1, self.ADJECTIVES + 1))
        self.liked = rng.dirichlet(np.full(self.VERBS // 2, 0.3), self.MOODS)

    def _adjectives(self, rng):
        a = b = self.ADJECTIVES
        out = []
        for _ in range(1 + rng.integers(3)):
            a, b = b, rng.choice(self.ADJECTIVES, p=self.chain[a, b])
            out.append(self.adjective[b])
        return out

    def _sentence(self, rng, mood, thing, place):
        who, w = rng.choice(list(thing)), self.word
        kind = rng.integers(4)
        if kind == 0:
            return [self.name[who], w["holds"], w["the"], *self._adjectives(rng), self.thing[thing[who]], w["."]]
        if kind == 1:
            return [self.name[who], w["goes"], w["to"], self.place[place[who]], w["."]]
        if kind == 2:    # verbs of even names are the first half
            verb = rng.choice(self.VERBS // 2, p=self.liked[mood]) + who % 2 * (self.VERBS // 2)
            other = rng.choice([n for n in thing if n != who])
            return [self.name[who], self.verb[verb], self.name[other], w["and"], self.thing[thing[other]], w["."]]
        return [w["the"], *self._adjectives(rng), self.thing[thing[who]], w["is"], w["in"], self.place[place[who]], w["."]]

    def story(self, rng, length):
        mood, w = rng.integers(self.MOODS), self.word
        names = rng.choice(self.NAMES, 3, replace=False)
        thing = dict(zip(names, rng.choice(self.THINGS, 3, replace=False)))
        place = dict(zip(names, rng.choice(self.PLACES, 3, replace=False)))
        out = [self.mood[mood]]
        for n in names:
            out += [self.name[n], w["has"], self.thing[thing[n]], w["in"], self.place[place[n]], w["."]]
        while len(out) < length:
            out += self._sentence(rng, mood, thing, place)
        return out[:length]

    def stories(self, seed, n, length):
        """int64[n][length]"""
        rng = np.random.default_rng(seed)
        return np.array([self.story(rng, length) for _ in range(n)], np.int64)


# ---- differentiation ----

class Tape:
    def __init__(self):
        self.back = []

    def node(self, value, back):
        x = Value(value)
        self.back.append((x, back))
        return x

    def run(self, loss):
        loss.grad = F(1)
        for x, back in reversed(self.back):
            if x.grad is not None:
                back(x.grad)

    def matmul(self, a, w):
        def back(g):
            a.add(g @ w.v.T)
            w.add(a.v.reshape(-1, a.v.shape[-1]).T @ g.reshape(-1, g.shape[-1]))
        return self.node(a.v @ w.v, back)

    def add(self, a, b):
        def back(g):
            a.add(g)
            b.add(g.sum(tuple(range(g.ndim - b.v.ndim))) if b.v.ndim < g.ndim else g)
        return self.node(a.v + b.v, back)

    def mul(self, a, b):
        def back(g):
            a.add(g * b.v)
            b.add(g * a.v)
        return self.node(a.v * b.v, back)

    def silu(self, a):
        s = 1 / (1 + np.exp(-a.v))
        return self.node(a.v * s, lambda g: a.add(g * (s + a.v * s * (1 - s))))

    def relu(self, a):
        return self.node(np.maximum(a.v, 0), lambda g: a.add(g * (a.v > 0)))

    def rows(self, table, ids):
        def back(g):
            t = np.zeros_like(table.v)
            np.add.at(t, ids.reshape(-1), g.reshape(-1, g.shape[-1]))
            table.add(t)
        return self.node(table.v[ids], back)

    def norm(self, a, gain, shift=None):
        """RMS normalization, or (with a shift) layer normalization."""
        c = a.v - a.v.mean(-1, keepdims=True) if shift else a.v
        r = 1 / np.sqrt((c * c).mean(-1, keepdims=True) + F(1e-5))
        y = c * r

        def back(g):
            gain.add((g * y).reshape(-1, y.shape[-1]).sum(0))
            if shift:
                shift.add(g.reshape(-1, y.shape[-1]).sum(0))
            d = g * gain.v
            d = r * (d - y * (d * y).mean(-1, keepdims=True) - (d.mean(-1, keepdims=True) if shift else 0))
            a.add(d)
        return self.node(y * gain.v + (shift.v if shift else 0), back)

    def attention(self, q, k, v, heads):
        """Causal; all [n][l][d]."""
        n, l, d = q.v.shape
        split = lambda x: x.reshape(n, l, heads, d // heads).transpose(0, 2, 1, 3)
        join = lambda x: x.transpose(0, 2, 1, 3).reshape(n, l, d)
        a, b, c, scale = split(q.v), split(k.v), split(v.v), F(1 / np.sqrt(d // heads))
        s = a @ b.transpose(0, 1, 3, 2) * scale + np.triu(np.full((l, l), -1e9, F), 1)
        p = np.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)

        def back(g):
            g = split(g)
            dp = g @ c.transpose(0, 1, 3, 2)
            ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * scale
            v.add(join(p.transpose(0, 1, 3, 2) @ g))
            q.add(join(ds @ b))
            k.add(join(ds.transpose(0, 1, 3, 2) @ a))
        return self.node(join(p @ c), back)

    def transpose(self, a):
        return self.node(a.v.T, lambda g: a.add(g.T))

    def loss(self, logits, ids):
        """Mean negative log-likelihood of the next word."""
        x, want = logits.v[:, :-1], ids[:, 1:]
        e = np.exp(x - x.max(-1, keepdims=True))
        p = e / e.sum(-1, keepdims=True)
        i, j = np.ogrid[:x.shape[0], :x.shape[1]]

        def back(g):
            d = p.copy()
            d[i, j, want] -= 1
            full = np.zeros_like(logits.v)
            full[:, :-1] = d * (g / F(want.size))
            logits.add(full)
        return self.node(F(-np.log(p[i, j, want]).mean()), back)


class Value:
    def __init__(self, v):
        self.v, self.grad = v, None

    def add(self, g):
        self.grad = g if self.grad is None else self.grad + g


# ---- the networks ----

class Llama:
    """RMS normalization, gated feed-forward layers, a head of its own."""
    tied, inputs = False, ("input_ids", "attention_mask")

    def __init__(self, seed, words, length, wide=64, inner=112, layers=2, heads=4):
        self.words, self.length, self.wide, self.inner, self.layers, self.heads = words, length, wide, inner, layers, heads
        rng = np.random.default_rng(seed)
        self.p = {name: self.first(rng, name, dims) for name, dims in self.shapes().items()}

    @staticmethod
    def first(rng, name, dims):
        if name.endswith(("gain", "shift", "bias")):
            return np.full(dims, F(name.endswith("gain")))
        return rng.normal(0, 0.3 if name in ("embedding", "positions") else np.sqrt(1 / dims[0]), dims).astype(F)

    def shapes(self):
        d, s = self.wide, {"embedding": (self.words, self.wide), "positions": (self.length, self.wide)}
        for i in range(self.layers):
            s |= {f"{i}.norm1.gain": (d,), f"{i}.q": (d, d), f"{i}.k": (d, d), f"{i}.v": (d, d), f"{i}.o": (d, d), f"{i}.norm2.gain": (d,),
                  f"{i}.gate": (d, self.inner), f"{i}.up": (d, self.inner), f"{i}.down": (self.inner, d)}
        return s | {"norm.gain": (d,), "head": (d, self.words)}

    def normalize(self, t, p, x, name):
        return t.norm(x, p[f"{name}.gain"])

    def feed_forward(self, t, p, x, i):
        return t.matmul(t.mul(t.silu(t.matmul(x, p[f"{i}.gate"])), t.matmul(x, p[f"{i}.up"])), p[f"{i}.down"])

    def logits(self, t, p, ids):
        x = t.add(t.rows(p["embedding"], ids), t.rows(p["positions"], np.broadcast_to(np.arange(ids.shape[1]), ids.shape)))
        for i in range(self.layers):
            y = self.normalize(t, p, x, f"{i}.norm1")
            y = t.attention(*(t.matmul(y, p[f"{i}.{w}"]) for w in "qkv"), self.heads)
            x = t.add(x, t.matmul(y, p[f"{i}.o"]))
            x = t.add(x, self.feed_forward(t, p, self.normalize(t, p, x, f"{i}.norm2"), i))
        return t.matmul(self.normalize(t, p, x, "norm"), t.transpose(p["embedding"]) if self.tied else p["head"])

    def train(self, data, steps, batch=32, rate=4e-3, seed=0, say=None):
        """Adam with a rate that rises and falls."""
        rng, moments = np.random.default_rng(seed), {k: (np.zeros_like(v), np.zeros_like(v)) for k, v in self.p.items()}
        for step in range(steps):
            ids = data[rng.integers(0, len(data), batch)]
            t, p = Tape(), {k: Value(v) for k, v in self.p.items()}
            loss = t.loss(self.logits(t, p, ids), ids)
            t.run(loss)
            now = rate * min(1, (step + 1) / 50) * (0.5 + 0.5 * np.cos(np.pi * step / steps))
            for k, v in self.p.items():
                m, s = moments[k]
                m += F(0.1) * (p[k].grad - m)
                s += F(0.02) * (p[k].grad ** 2 - s)
                a, b = 1 - 0.9 ** (step + 1), 1 - 0.98 ** (step + 1)
                v -= F(now) * (m / F(a)) / (np.sqrt(s / F(b)) + F(1e-8))
            if say and step % 100 == 99:
                say(step + 1, float(loss.v))


class Gpt(Llama):
    """Layer normalization, feed-forward layers with a ReLU, the embedding as its head, positions as an input."""
    tied, inputs = True, ("input_ids", "attention_mask", "position_ids")

    def shapes(self):
        d, s = self.wide, {"embedding": (self.words, self.wide), "positions": (self.length, self.wide)}
        for i in range(self.layers):
            s |= {f"{i}.norm1.gain": (d,), f"{i}.norm1.shift": (d,), f"{i}.q": (d, d), f"{i}.k": (d, d), f"{i}.v": (d, d), f"{i}.o": (d, d),
                  f"{i}.norm2.gain": (d,), f"{i}.norm2.shift": (d,), f"{i}.up": (d, self.inner), f"{i}.up.bias": (self.inner,),
                  f"{i}.down": (self.inner, d)}
        return s | {"norm.gain": (d,), "norm.shift": (d,)}

    def normalize(self, t, p, x, name):
        return t.norm(x, p[f"{name}.gain"], p[f"{name}.shift"])

    def feed_forward(self, t, p, x, i):
        return t.matmul(t.relu(t.add(t.matmul(x, p[f"{i}.up"]), p[f"{i}.up.bias"])), p[f"{i}.down"])


# ---- quality ----

def perplexity(logits, ids, mask=None):
    """exp of the mean negative log-likelihood of the next word, where both it and the one before it count."""
    x = logits[:, :-1].astype(np.float64)
    top = x.max(-1, keepdims=True)
    log = x - top - np.log(np.exp(x - top).sum(-1, keepdims=True))
    i, j = np.ogrid[:x.shape[0], :x.shape[1]]
    counts = np.ones(ids[:, 1:].shape, bool) if mask is None else (mask[:, 1:] != 0) & (mask[:, :-1] != 0)
    return float(np.exp(-log[i, j, ids[:, 1:]][counts].sum() / counts.sum()))
