"""A small convolutional network with its training, in plain numpy (NHWC, float32).

Layers have forward(x, train) and backward(gradient); parameters are [value, gradient] pairs in .params.
"""
import numpy as np

F = np.float32


class Param:
    def __init__(self, value):
        self.value = np.asarray(value, F)
        self.grad = np.zeros_like(self.value)
        self.m, self.v = np.zeros_like(self.value), np.zeros_like(self.value)


def _pad(x, p):
    return np.pad(x, ((0, 0), (p, p), (p, p), (0, 0))) if p else x


class Conv:
    """k x k convolution without bias, padding k // 2; weight [k*k*ic][oc]."""

    def __init__(self, rng, ic, oc, k=1, stride=1):
        self.ic, self.oc, self.k, self.stride = ic, oc, k, stride
        self.w = Param(rng.normal(0, np.sqrt(2 / (k * k * ic)), (k * k * ic, oc)))
        self.params = [self.w]

    def _columns(self, x):
        if self.k == 1:
            return x[:, ::self.stride, ::self.stride]
        windows = np.lib.stride_tricks.sliding_window_view(_pad(x, self.k // 2), (self.k, self.k), (1, 2))
        return windows[:, ::self.stride, ::self.stride].transpose(0, 1, 2, 4, 5, 3)

    def forward(self, x, train):
        cols = self._columns(x)
        self.shape, self.out = x.shape, cols.shape[:3]
        self.cols = np.ascontiguousarray(cols).reshape(-1, self.w.value.shape[0])
        return (self.cols @ self.w.value).reshape(*self.out, self.oc)

    def backward(self, g):
        g = g.reshape(-1, self.oc)
        self.w.grad += self.cols.T @ g
        n, h, w, _ = self.shape
        s, p = self.stride, self.k // 2
        taps = (g @ self.w.value.T).reshape(*self.out, self.k, self.k, self.ic)
        dx = np.zeros((n, h + 2 * p, w + 2 * p, self.ic), F)
        for i in range(self.k):
            for j in range(self.k):
                dx[:, i:i + s * self.out[1]:s, j:j + s * self.out[2]:s] += taps[:, :, :, i, j]
        return dx[:, p:p + h, p:p + w]

    def onnx_weight(self):
        return self.w.value.reshape(self.k, self.k, self.ic, self.oc).transpose(3, 2, 0, 1)


class Depthwise:
    """3x3 convolution of each channel on its own; weight [3][3][c]."""

    def __init__(self, rng, c, stride=1):
        self.ic = self.oc = c
        self.k, self.stride = 3, stride
        self.w = Param(rng.normal(0, np.sqrt(2 / 9), (3, 3, c)))
        self.params = [self.w]

    def _tap(self, x, i, j):
        s, (_, h, w) = self.stride, self.out
        return x[:, i:i + s * h:s, j:j + s * w:s]

    def forward(self, x, train):
        self.padded, self.shape = _pad(x, 1), x.shape
        self.out = (x.shape[0], -(-x.shape[1] // self.stride), -(-x.shape[2] // self.stride))
        return sum(self._tap(self.padded, i, j) * self.w.value[i, j] for i in range(3) for j in range(3))

    def backward(self, g):
        dx = np.zeros_like(self.padded)
        for i in range(3):
            for j in range(3):
                self.w.grad[i, j] += np.einsum("nhwc,nhwc->c", self._tap(self.padded, i, j), g)
                self._tap(dx, i, j)[...] += g * self.w.value[i, j]
        return dx[:, 1:-1, 1:-1]

    def onnx_weight(self):
        return self.w.value.transpose(2, 0, 1)[:, None]


class BatchNorm:
    def __init__(self, gamma, momentum=0.95):
        self.gamma, self.beta = Param(gamma), Param(np.zeros(len(gamma)))
        self.mean, self.var = np.zeros(len(gamma), F), np.ones(len(gamma), F)
        self.momentum, self.eps = F(momentum), F(1e-5)
        self.params = [self.gamma, self.beta]

    def forward(self, x, train):
        if train:
            mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
            self.mean = self.momentum * self.mean + (1 - self.momentum) * mean
            self.var = self.momentum * self.var + (1 - self.momentum) * var
        else:
            mean, var = self.mean, self.var
        self.inv = 1 / np.sqrt(var + self.eps)
        self.xhat = (x - mean) * self.inv
        return self.xhat * self.gamma.value + self.beta.value

    def backward(self, g):
        dgamma, dbeta = np.einsum("nhwc,nhwc->c", g, self.xhat), g.sum((0, 1, 2))
        self.gamma.grad += dgamma
        self.beta.grad += dbeta
        count = F(g.size // g.shape[-1])
        return self.gamma.value * self.inv * (g - dbeta / count - self.xhat * (dgamma / count))


class Clamp:
    """ReLU, or Clip(0, top)."""
    params = ()

    def __init__(self, top=np.inf):
        self.top = F(top)

    def forward(self, x, train):
        self.open = (x > 0) & (x < self.top)
        return np.clip(x, F(0), self.top)

    def backward(self, g):
        return g * self.open


class MaxPool2:
    params = ()

    def forward(self, x, train):
        n, h, w, c = x.shape
        tiles = x.reshape(n, h // 2, 2, w // 2, 2, c)
        y = tiles.max((2, 4))
        self.mask = tiles == y[:, :, None, :, None]
        return y

    def backward(self, g):
        n, h, w, c = g.shape
        return (self.mask * g[:, :, None, :, None]).reshape(n, 2 * h, 2 * w, c)


class Chain:
    def __init__(self, *layers):
        self.layers = layers
        self.params = [p for layer in layers for p in layer.params]

    def forward(self, x, train):
        for layer in self.layers:
            x = layer.forward(x, train)
        return x

    def backward(self, g):
        for layer in reversed(self.layers):
            g = layer.backward(g)
        return g


class Residual:
    """x + chain(x)."""

    def __init__(self, chain):
        self.chain, self.params = chain, chain.params

    def forward(self, x, train):
        return x + self.chain.forward(x, train)

    def backward(self, g):
        return g + self.chain.backward(g)


class Branches:
    """Concat of several chains on the channel axis."""

    def __init__(self, *chains):
        self.chains = chains
        self.params = [p for chain in chains for p in chain.params]

    def forward(self, x, train):
        ys = [chain.forward(x, train) for chain in self.chains]
        self.cuts = np.cumsum([y.shape[-1] for y in ys])[:-1]
        return np.concatenate(ys, axis=-1)

    def backward(self, g):
        return sum(chain.backward(part) for chain, part in zip(self.chains, np.split(g, self.cuts, axis=-1)))


class Head:
    """Global average, then a dense layer with bias."""

    def __init__(self, rng, c, classes):
        self.w, self.b = Param(rng.normal(0, np.sqrt(1 / c), (c, classes))), Param(np.zeros(classes))
        self.params = [self.w, self.b]

    def forward(self, x, train):
        self.shape, self.x = x.shape, x.mean((1, 2))
        return self.x @ self.w.value + self.b.value

    def backward(self, g):
        self.w.grad += self.x.T @ g
        self.b.grad += g.sum(0)
        n, h, w, c = self.shape
        dx = (g @ self.w.value.T) / F(h * w)
        return np.broadcast_to(dx[:, None, None], self.shape).astype(F)


def softmax_loss(logits, labels, smoothing=0.05):
    """Mean cross entropy and its gradient."""
    z = logits - logits.max(1, keepdims=True)
    p = np.exp(z)
    p /= p.sum(1, keepdims=True)
    rows, classes = np.arange(len(labels)), logits.shape[1]
    target = np.full_like(p, smoothing / classes)
    target[rows, labels] += F(1 - smoothing)
    loss = -(target * np.log(p + F(1e-12))).sum(1).mean()
    return loss, (p - target) / F(len(labels))


def adam(params, step, rate, decay=2e-4, b1=0.9, b2=0.99):
    scale = rate * np.sqrt(1 - b2 ** step) / (1 - b1 ** step)
    for p in params:
        p.m += F(1 - b1) * (p.grad - p.m)
        p.v += F(1 - b2) * (p.grad ** 2 - p.v)
        p.value -= F(scale) * p.m / (np.sqrt(p.v) + F(1e-8))
        if p.value.ndim > 1:
            p.value -= F(rate * decay) * p.value
        p.grad[...] = 0


def train(net, images, labels, rng, epochs, batch=32, peak=5e-3, log=None):
    """Adam with a one-cycle rate; pictures are mirrored and turned by right angles at random."""
    steps, step = epochs * (len(images) // batch), 0
    for epoch in range(epochs):
        order, total = rng.permutation(len(images)), 0.0
        for at in range(0, len(order) - batch + 1, batch):
            pick = order[at:at + batch]
            x = np.rot90(images[pick], rng.integers(4), (1, 2))
            x = np.ascontiguousarray(x[:, :, ::-1] if rng.integers(2) else x)
            step += 1
            phase = step / steps
            rate = peak * min(1.0, phase / 0.15) * 0.5 * (1 + np.cos(np.pi * max(0.0, phase - 0.15) / 0.85))
            loss, g = softmax_loss(net.forward(x, True), labels[pick])
            net.backward(g)
            adam(net.params, step, rate)
            total += float(loss)
        if log:
            log(f"epoch {epoch + 1}/{epochs}: loss {total / (len(order) // batch):.3f}")
