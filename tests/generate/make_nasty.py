#!/usr/bin/env python3
"""Makes small networks that 8 bits hurt, each for a reason that trained networks have too, and samples.

    make_nasty.py FOLDER [NAME...]

FOLDER gets NAME.onnx (below 300 kB), NAME.calib.npy and NAME.eval.npy, 64 samples each. Seeded; nothing here is committed.
tests/checks/check_nasty.py converts them all and judges the result. To add a network write a function with @net(...): it gets
the network and its input, returns the output, and says what should be to blame in n.cause (nodes) and n.parts (slices of the
output that are judged apart, as one of them drowns the others).
"""
import sys
from pathlib import Path

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib.builder import F, Net, build_named

COUNT = 64
NETS = {}


def net(data, opset=17):
    """Registers a maker of a network; data: rng -> all samples, first those for calibration."""
    def register(make):
        NETS[make.__name__] = (make, data, opset)
        return make
    return register


# ---- samples: f32[2 * COUNT][...]

def smooth(rng, count, channels, height, width):
    """Cosines whose amplitude falls with their frequency, as in photographs, and a rectangle with sharp edges; within 0..1."""
    y, x = np.linspace(0, np.pi, height), np.linspace(0, np.pi, width)
    basis = np.einsum("fy,gx->fgyx", np.cos(np.outer(np.arange(12), y)), np.cos(np.outer(np.arange(12), x)))
    fall = 1 / (1 + np.hypot(*np.mgrid[:12, :12])) ** 1.3
    made = np.einsum("ncfg,fgyx->ncyx", rng.normal(size=(count, channels, 12, 12)) * fall, basis)
    made -= made.min((1, 2, 3), keepdims=True)
    made /= made.max((1, 2, 3), keepdims=True)
    for picture in made:
        top, left = rng.integers(0, height - 6), rng.integers(0, width - 6)
        part = picture[:, top:top + rng.integers(4, height // 2), left:left + rng.integers(4, width // 2)]
        part[:] = 0.3 * part + 0.7 * rng.uniform(0, 1, (channels, 1, 1))
    return made.astype(F)


def photographs(side, channels=3):
    """Of zero mean and a deviation of about one."""
    return lambda rng: (smooth(rng, 2 * COUNT, channels, side, side) - F(0.5)) * F(4)


def tones(rng, count, length):
    """Harmonics of a voice with a slow envelope, in noise 30 dB below."""
    t = np.arange(length) / 8000
    made = []
    for _ in range(count):
        pitch = rng.uniform(90, 250) * (1 + 0.1 * np.sin(2 * np.pi * rng.uniform(2, 6) * t))
        phase = 2 * np.pi * np.cumsum(pitch) / 8000
        voice = sum(np.sin(k * phase + rng.uniform(0, 6)) * rng.uniform(0.2, 1) / k for k in range(1, 12))
        envelope = np.clip(np.sin(2 * np.pi * (rng.uniform(1, 3) * t + rng.uniform())), 0, 1)
        made.append(voice * envelope / 3 + rng.normal(0, 0.01, length))
    return np.array(made)


def speech(rng):
    """From a whisper to a shout: 40 dB between them."""
    loud = 10 ** rng.uniform(-2, 0, (2 * COUNT, 1))
    return (tones(rng, 2 * COUNT, 1600) * loud).astype(F)[:, None]


def silence(rng):
    """Windows of a recording in which one of ten has a voice, the others the noise of the room."""
    made = rng.normal(0, 1e-3, (2 * COUNT, 1600))
    spoken = np.concatenate([rng.choice(COUNT, COUNT // 10, replace=False) + at for at in (0, COUNT)])
    made[spoken] += tones(rng, len(spoken), 1600)
    return made.astype(F)[:, None]


def text(rng):
    """Lines of eight of ten glyphs, 5 x 7 dots each, drawn twice as large on grey paper with noise and a shift."""
    glyphs = np.random.default_rng(5).random((10, 7, 5)) < 0.5
    made = np.full((2 * COUNT, 1, 16, 96), 0.8) + rng.normal(0, 0.03, (2 * COUNT, 1, 16, 96))
    for line in made[:, 0]:
        for i in range(8):
            glyph = np.kron(glyphs[rng.integers(10)], np.ones((2, 2)))
            line[1:15, 12 * i + rng.integers(0, 2):][:, :10] -= glyph * rng.uniform(0.5, 0.8)
    return made.astype(F)


# ---- weights

def filters(n, oc, ic, k, spread=0.3):
    """Smooth ones: windowed waves of all directions and a few wavelengths, mixed over the inputs."""
    y, x = np.mgrid[:k, :k] - (k - 1) / 2
    w = np.empty((oc, ic, k, k))
    for f in w:
        angle, wave = n.rng.uniform(0, np.pi), n.rng.uniform(0, 1.6)
        form = np.exp(-(x * x + y * y) / (k / 1.5) ** 2) * np.cos(wave * (x * np.cos(angle) + y * np.sin(angle)) + n.rng.uniform(0, 3))
        f[:] = n.rng.normal(size=(ic, 1, 1)) * form
    w *= np.exp(n.rng.normal(0, spread, (oc, 1, 1, 1))) / np.sqrt((w ** 2).sum((1, 2, 3), keepdims=True))
    return w.astype(F)


def last(n, kind):
    """The name of the newest node of a type."""
    return next(node.name for node in reversed(n.nodes) if node.op_type == kind)


def plain(n, x, w, stride=1, group=1, bias=None):
    """A convolution that keeps the size but for its stride."""
    k = w.shape[2]
    return n.op("Conv", x, n.const(w), *([] if bias is None else [n.const(bias)]), kernel_shape=[k, k], strides=[stride] * 2,
                pads=[k // 2] * 4, group=group)


def normalized(n, x, scale, bias, var=None):
    """BatchNormalization with the statistics of x, but for the variance where it is given."""
    v = n.value[x]
    var = v.var((0, 2, 3)) if var is None else var
    return n.op("BatchNormalization", x, *(n.const(t) for t in (scale, bias, v.mean((0, 2, 3)), var)), epsilon=1e-5)


def windows(x):
    """[n][c][h][w][3][3] of what is zero outside."""
    return np.lib.stride_tricks.sliding_window_view(np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)]), (3, 3), (2, 3))


def fitted(x, y, ridge=1e-5):
    """W, b of the y = x W + b of least squares, columns of x damped by their own size."""
    mean = x.mean(0)
    a = x - mean
    gram = a.T @ a
    w = np.linalg.solve(gram + ridge * np.diag(np.diag(gram) + 1e-6), a.T @ (y - y.mean(0)))
    return w.astype(F), (y.mean(0) - mean @ w).astype(F)


def classify(n, x, classes=10):
    return n.fc(n.op("Flatten", n.gap(x)), classes, deviation=3)


# ---- networks

@net(photographs(32))
def stem_outliers(n, x):
    """Two of the stem's channels reach from -100 to 113, 90 % of its values stay below 4; the depthwise layer behind evens them out."""
    w = filters(n, 16, 3, 3)
    y = windows(n.value[x])[:, :, ::2, ::2]
    y = np.einsum("oikl,nihwkl->nohw", w, y)
    gain = 2.2 / y.std((0, 2, 3))
    for c, end in ((3, 113), (11, -100)):
        gain[c] = end / max(y[:, c].min(), y[:, c].max(), key=abs)
    x = plain(n, x, w * gain[:, None, None, None], 2, bias=n.rng.normal(0, 0.3, 16))
    n.cause = [last(n, "Conv")]
    x = n.act(x, "silu")
    x = n.conv(x, 16, group="dw", act="silu")
    n.cause.append(last(n, "Conv"))
    x = n.conv(x, 24, 1)
    for c, stride in ((24, 1), (32, 2), (32, 1)):
        y = n.conv(n.conv(n.conv(x, 3 * c, 1, act="silu"), 3 * c, 3, stride, group="dw", act="silu"), c, 1)
        x = n.op("Add", x, y) if stride == 1 and n.channels(x) == c else y
    return classify(n, n.conv(x, 64, 1, act="silu"))


@net(photographs(32))
def dead_channels(n, x):
    """A third of the channels never leave zero; the variances of some are tiny, so that folding blows up what is left of them."""
    for c, stride in ((24, 2), (32, 1), (32, 2), (48, 1)):
        w = n.weight(c, n.channels(x), 3, 3)
        w[::6] = 0
        w[1::6] *= F(1e-6)
        x = plain(n, x, w, stride)
        bias = np.where(np.arange(c) % 6 == 2, -9, n.rng.normal(0, 0.4, c))
        var = np.where(np.arange(c) % 6 == 0, 1e-12, n.value[x].var((0, 2, 3)))
        x = n.op("Relu", normalized(n, x, np.exp(n.rng.normal(0, 0.3, c)), bias, var))
    return classify(n, x)


@net(photographs(64))
def concat_head(n, x):
    """A detector's one output: boxes in pixels, to 400, beside scores in 0..1."""
    for c in (16, 24, 32):
        x = n.conv(x, c, 3, 2, act="silu")
    x = n.conv(x, 32, 3, act="silu")
    boxes = n.conv(n.conv(x, 32, 3, act="silu"), 4, 1, bn=False)
    scores = n.conv(n.conv(x, 32, 3, act="silu"), 12, 1, bn=False)
    flat = n.ints(0, 0, -1)
    boxes, scores = (n.op("Transpose", n.op("Reshape", v, flat), perm=[0, 2, 1]) for v in (boxes, scores))
    grid = np.stack(np.mgrid[:8, :8][::-1], -1).reshape(64, 2) + 0.5
    centre, size = n.split(boxes, [2, 2], axis=2)
    centre = n.op("Mul", n.op("Add", n.op("Tanh", centre), n.const(grid)), n.const(50))
    size = n.op("Mul", n.op("Sigmoid", size), n.const(400))
    scores = n.op("Sigmoid", n.op("Sub", scores, n.const(2)))
    y = n.op("Concat", centre, size, scores, axis=2)
    n.cause = [last(n, "Concat")]
    n.parts = {"boxes": np.s_[..., :4], "scores": np.s_[..., 4:]}
    return y


@net(photographs(32))
def leaky_chain(n, x):
    """LeakyReLU behind every layer, and channels whose ranges differ hundreds of times: scaling the layers against each other would undo it."""
    for c, stride, group in ((24, 2, 1), (24, 1, "dw"), (24, 1, 1), (24, 1, "dw"), (32, 2, 1), (32, 1, "dw"), (32, 1, 1), (32, 1, "dw")):
        k = 3 if group == "dw" or stride == 2 else 1
        group = c if group == "dw" else 1
        x = plain(n, x, n.weight(c, n.channels(x) // group, k, k), stride, group)
        spread = np.exp(n.rng.normal(0, 1.5, c))
        x = n.act(normalized(n, x, spread, spread * n.rng.normal(0, 0.4, c)), "leaky")
    return classify(n, x)


def log_mel(n, x, window=160, step=80, bands=32):
    """Log-mel spectrogram [N][1][bands][time] of waves [N][1][samples]."""
    bins = window // 2 + 1
    wave = np.outer(np.arange(bins), np.arange(window)) * 2 * np.pi / window
    basis = np.concatenate([np.cos(wave), np.sin(wave)]) * np.hanning(window)
    x = n.op("Conv", x, n.const(basis[:, None]), kernel_shape=[window], strides=[step])
    n.cause = [last(n, "Conv")]
    real, imaginary = n.split(x, [bins, bins])
    two = n.const(2)
    power = n.op("Add", n.op("Pow", real, two), n.op("Pow", imaginary, two))
    edges = 80 * (np.exp(np.linspace(0, np.log(4000 / 80), bands + 2)) - 1)
    at = np.arange(bins)[:, None] * 4000 / (bins - 1)
    mel = np.clip(np.minimum((at - edges[:-2]) / (edges[1:-1] - edges[:-2]), (edges[2:] - at) / (edges[2:] - edges[1:-1])), 0, None)
    mel[0] = 1e-3
    mel = n.op("MatMul", n.op("Transpose", power, perm=[0, 2, 1]), n.const(mel + 1e-4))
    n.cause.append(last(n, "MatMul"))
    log = n.op("Log", n.op("Add", mel, n.const(1e-6)))
    return n.unsqueeze(n.op("Transpose", log, perm=[0, 2, 1]), [1])


@net(speech)
def log_mel_cnn(n, x):
    """STFT as Conv, its power over eight decades, and the logarithm of that."""
    x = log_mel(n, x)
    x = n.op("BatchNormalization", x, *(n.const([v]) for v in (1, 0, float(n.value[x].mean()), float(n.value[x].var()))), epsilon=1e-5)
    for c in (12, 24, 32):
        x = n.conv(x, c, 3, 2, act="relu")
    return classify(n, x)


@net(silence)
def silent_recording(n, x):
    """Waves that calibration sees almost only silent: a range that drops the rare values drops the voice."""
    for c, k, stride in ((16, 31, 8), (24, 9, 4), (32, 5, 2)):
        w = n.weight(c, n.channels(x), k)
        x = n.conv(x, c, [k], stride, weight=n.const(w), pad=[k // 2] * 2, act="relu")
    return classify(n, x)


@net(photographs(32))
def shared_weights(n, x):
    """One kernel for the heads of three levels whose ranges differ, and once more for what it made itself."""
    x = n.conv(x, 24, 3, 2, act="relu")
    kernel, heads = n.const(n.weight(24, 24, 3, 3)), []
    score = n.const(n.unit(n.weight(6, 24, 1, 1), x, lambda w: np.einsum("oihw,nixy->noxy", w, n.value[x])))
    for gain in (0.2, 1.0, 6.0):
        level = n.op("Mul", x, n.const(gain))
        for _ in range(2):
            level = n.op("Relu", n.op("Conv", level, kernel, n.const(n.rng.normal(0, 0.1, 24)), kernel_shape=[3, 3], pads=[1] * 4))
            level = n.op("Mul", level, n.const(float(gain / n.value[level].std())))
        heads.append(n.op("Flatten", n.op("Conv", level, score, kernel_shape=[1, 1])))
        x = n.pool(n.conv(x, 24, 3, act="relu"))
    n.parts, at = {}, 0
    for i, h in enumerate(heads):
        n.parts[f"level {i}"] = np.s_[:, at:at + n.shape(h)[1]]
        at += n.shape(h)[1]
    return n.op("Concat", *heads, axis=1)


@net(photographs(24))
def residual_tower(n, x):
    """Twenty blocks whose sums grow: the trunk's variance is a hundred times that of the first branch."""
    x = n.conv(x, 16, 3, 2)
    for i in range(20):
        y = n.op("Relu", n.bn(x))
        y = n.conv(n.conv(y, 16, 3, act="relu"), 16, 1, bn=False)
        x = n.op("Add", x, n.op("Mul", y, n.const(0.6 * 1.12 ** i)))
    return classify(n, n.op("Relu", n.bn(x)))


@net(lambda rng: smooth(rng, 2 * COUNT, 1, 48, 48)[:, :, ::2, ::2] / 2 + smooth(rng, 2 * COUNT, 1, 24, 24) / 2)
def super_resolution(n, x):
    """Pixels to pixels, twice as many: four convolutions, the last fitted to a smooth enlargement."""
    for c, k in ((24, 5), (16, 3), (16, 3)):
        x = n.op("Relu", plain(n, x, filters(n, c, n.channels(x), k), bias=n.rng.normal(0, 0.2, c)))
    source = next(iter(n.value.values()))[:, 0]
    fine = enlarged(source)
    want = np.stack([fine[:, i::2, j::2] for i in (0, 1) for j in (0, 1)], -1)
    seen = windows(n.value[x]).transpose(0, 2, 3, 1, 4, 5).reshape(-1, 16 * 9)
    w, b = fitted(seen.astype(np.float64), want.reshape(-1, 4))
    return n.op("DepthToSpace", plain(n, x, w.T.reshape(4, 16, 3, 3), bias=b), blocksize=2, mode="CRD")


def enlarged(x):
    """Twice as large, by the cubic of four neighbours."""
    for axis in (1, 2):
        near = [np.roll(np.pad(x, [(2, 2) if a == axis else (0, 0) for a in range(3)], mode="edge"), s, axis) for s in (1, 0, -1, -2)]
        middle = sum(c * v for c, v in zip((-0.0625, 0.5625, 0.5625, -0.0625), near))
        inside = [slice(2, -2) if a == axis else slice(None) for a in range(3)]
        pair = np.stack([x, middle[tuple(inside)]], axis + 1)
        x = pair.reshape([s * 2 if a == axis else s for a, s in enumerate(x.shape)])
    return x


@net(text)
def text_attention(n, x):
    """Convolutions, then two blocks of attention; two channels of each LayerNorm are twenty times the others, as in language models."""
    for c, stride in ((16, 2), (32, 2), (48, 2)):
        x = n.conv(x, c, 3, stride, act="relu")
    x = n.conv(x, 48, [2, 1], bn=True, pad=[0, 0, 0, 0])
    x = n.op("Transpose", n.squeeze(x, [2]), perm=[0, 2, 1])
    width, heads = 48, 3

    def norm(v):
        gamma, beta = np.exp(n.rng.normal(0, 0.2, width)), n.rng.normal(0, 0.1, width)
        gamma[[7, 30]] *= 20
        return n.op("LayerNormalization", v, n.const(gamma), n.const(beta), axis=-1)

    def linear(v, oc):
        """Trained rows of loud channels are small. What reads a LayerNorm is to blame, if it reads it as integers."""
        w = n.weight(oc, n.shape(v)[-1], spread=0.2) * np.minimum(1, 2 / (n.value[v].std((0, 1)) + 1e-3))
        w = n.unit(w, v, lambda u: n.value[v] @ u.T).T.copy()
        y = n.op("MatMul", v, n.const(w))
        if any(v in node.output and node.op_type == "LayerNormalization" for node in n.nodes):
            n.cause.append(last(n, "MatMul"))
        return n.op("Add", y, n.const(n.rng.normal(0, 0.1, oc)))

    x = norm(x)
    for _ in range(2):
        q, k, v = (n.op("Transpose", n.reshape(linear(x, width), 0, 0, heads, width // heads), perm=p)
                   for p in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        p = n.op("Softmax", n.op("Mul", n.op("MatMul", q, k), n.const((heads / width) ** 0.5)), axis=-1)
        o = n.reshape(n.op("Transpose", n.op("MatMul", p, v), perm=[0, 2, 1, 3]), 0, 0, width)
        x = norm(n.op("Add", x, linear(o, width)))
        x = norm(n.op("Add", x, linear(n.act(linear(x, 96), "gelu"), width)))
    return linear(x, 11)


def build(name, folder):
    """Writes the model and its samples; the network, for its cause and parts."""
    make, data, opset = NETS[name]
    n = Net(name, opset)
    n.cause, n.parts = [], {}
    samples = data(np.random.default_rng([ord(c) for c in name] + [7]))
    with np.errstate(over="ignore", invalid="ignore"):      # of the evaluator's Sigmoid, far from 0
        n.output(make(n, n.input("x", samples, keep=16)))
    made = n.done()
    assert len(made.SerializeToString()) < 300000, name
    onnx.save(made, folder / f"{name}.onnx")
    np.save(folder / f"{name}.calib.npy", samples[:COUNT])
    np.save(folder / f"{name}.eval.npy", samples[COUNT:])
    return n


if __name__ == "__main__":
    build_named(__doc__, NETS, build)
