"""Small networks behind spectral front ends, in the styles of shipped audio models, on made audio. Seeded; what follows the front end has random
weights."""
import numpy as np
import onnx

from pylib.architectures import Built

LENGTH, RATE, WINDOW, HOP, BINS, MELS = 4096, 16000, 256, 128, 129, 40
FRAMES = 1 + (LENGTH - WINDOW) // HOP
NETS = {}


def net(opset, length=LENGTH):
    def register(make):
        NETS[make.__name__] = (make, opset, length)
        return make
    return register


# ---- audio

def voice(rng, length):
    """Harmonics of a gliding pitch under an envelope, with noise, over three orders of loudness; x in -1..1."""
    t = np.arange(length) / RATE
    pitch = rng.uniform(80, 400) * (1 + 0.2 * np.sin(2 * np.pi * rng.uniform(1, 4) * t + rng.uniform(0, 6)))
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    x = sum(rng.uniform(0.2, 1) / k * np.sin(k * phase + rng.uniform(0, 6)) for k in range(1, 20))
    x = x * np.maximum(0, np.sin(2 * np.pi * rng.uniform(2, 9) * t + rng.uniform(0, 6)))
    x = x + 10 ** rng.uniform(-3, -1) * rng.normal(size=length)
    return (x / np.abs(x).max() * 10 ** rng.uniform(-2, 0)).astype(np.float32)


def audio(name, count, length=LENGTH):
    rng = np.random.default_rng([ord(c) for c in name] + [3])
    return np.stack([voice(rng, length) for _ in range(count)])


# ---- parts

def waves():
    """Windowed cosines and sines [2 * BINS][WINDOW]."""
    angle = 2 * np.pi * np.arange(BINS)[:, None] * np.arange(WINDOW) / WINDOW
    return np.concatenate([np.cos(angle), -np.sin(angle)]) * np.hanning(WINDOW)


def mel():
    """Triangles [MELS][BINS], of about equal area."""
    top = 2595 * np.log10(1 + RATE / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0, top, MELS + 2) / 2595) - 1) / (RATE / 2) * (BINS - 1)
    at = np.arange(BINS)[None]
    rise = (at - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    fall = (edges[2:, None] - at) / (edges[2:] - edges[1:-1])[:, None]
    bands = np.maximum(0, np.minimum(rise, fall))
    return bands / np.maximum(1, bands.sum(1, keepdims=True)) + 1e-9 * (bands.sum(1, keepdims=True) == 0)


def conv_dft(n, x):
    """(re, im), [N][BINS][FRAMES] each."""
    y = n.op("Conv", n.unsqueeze(x, [1]), n.const(waves()[:, None]), kernel_shape=[WINDOW], strides=[HOP])
    return n.split(y, [BINS, BINS])


def power(n, re, im, how="Mul"):
    square = (lambda v: n.op("Pow", v, n.const(2))) if how == "Pow" else (lambda v: n.op("Mul", v, v))
    return n.op("Add", square(re), square(im))


def mels(n, p):
    """Of [N][BINS][FRAMES]: the filters stand on the left."""
    return n.op("MatMul", n.const(mel()), p)


def log(n, x, floor=1e-6, clip=False):
    return n.op("Log", n.op("Clip", x, n.const(floor)) if clip else n.op("Add", x, n.const(floor)))


def classify(n, y, classes=10):
    """A small network over [N][bands][frames]."""
    y = n.unsqueeze(y, [1])
    for c in (16, 24, 32):
        y = n.conv(y, c, 3, 2, act="relu")
    return [n.fc(n.op("Flatten", n.gap(y)), classes, deviation=3)]


# ---- networks

@net(13)
def conv_mel_log(n, x):
    return classify(n, log(n, mels(n, power(n, *conv_dft(n, x)))))


@net(13)
def voice_detector(n, x):
    """Magnitudes, clipped in front of the logarithm, normalised by their mean, a few convolutions along time."""
    y = log(n, n.op("Sqrt", power(n, *conv_dft(n, x), "Pow")), 1e-5, clip=True)
    y = n.op("Sub", y, n.mean(y, [1, 2]))
    for c in (32, 32):
        y = n.conv(y, c, 3, 2, act="relu")
    return [n.op("Sigmoid", n.fc(n.op("Flatten", n.gap(y)), 1, deviation=2))]


@net(17)
def stft_operator(n, x):
    y = n.op("STFT", n.unsqueeze(x, [2]), n.const(HOP, np.int64), n.const(np.hanning(WINDOW)), n.const(WINDOW, np.int64), onesided=1)
    p = n.op("ReduceSum", n.op("Pow", y, n.const(2)), n.ints(-1), keepdims=0)
    y = n.op("MatMul", p, n.const(mel().T))
    return classify(n, n.op("Transpose", log(n, y), perm=[0, 2, 1]))


@net(14)
def framed_decibels(n, x):
    """Frames by Gather, the transform as two products, decibels below the loudest as librosa has them."""
    places = np.arange(FRAMES)[:, None] * HOP + np.arange(WINDOW)
    frames = n.op("Mul", n.op("Gather", x, n.const(places, np.int64), axis=1), n.const(np.hanning(WINDOW)))
    angle = 2 * np.pi * np.arange(BINS) * np.arange(WINDOW)[:, None] / WINDOW
    p = power(n, n.op("MatMul", frames, n.const(np.cos(angle))), n.op("MatMul", frames, n.const(np.sin(angle))))
    y = n.op("MatMul", p, n.const(mel().T))
    db = n.op("Mul", n.op("Log", n.op("Max", y, n.const(1e-10))), n.const(10 / np.log(10)))
    top = n.op("ReduceMax", db, axes=[1, 2], keepdims=1)
    db = n.op("Max", db, n.op("Sub", top, n.const(80)))
    y = n.op("Div", n.op("Add", n.op("Sub", db, top), n.const(40)), n.const(40))
    return classify(n, n.op("Transpose", y, perm=[0, 2, 1]))


@net(13)
def pcen(n, x):
    """Energies divided by a power of their running mean."""
    e = mels(n, power(n, *conv_dft(n, x)))
    taps = 0.7 * 0.3 ** np.arange(5)[::-1]
    smooth = n.op("Conv", n.pad(e, [0, 0, 4, 0, 0, 0]), n.const(np.tile(taps, (MELS, 1, 1))), kernel_shape=[5], group=MELS)
    gain = n.op("Pow", n.op("Add", smooth, n.const(1e-6)), n.const(0.98))
    y = n.op("Pow", n.op("Add", n.op("Div", e, gain), n.const(2)), n.const(0.5))
    return classify(n, n.op("Sub", y, n.const(2 ** 0.5)))


@net(13)
def pitch_tracker(n, x):
    """Log magnitudes, a network over frequencies, for each frame the mean of pitches weighted by Softmax."""
    y = log(n, n.op("Sqrt", power(n, *conv_dft(n, x))), 1e-4)
    y = n.unsqueeze(y, [1])
    for c in (8, 16, 8):
        y = n.conv(y, c, [5, 3], 1, act="relu")
    y = n.conv(y, 1, 1, bn=False)
    p = n.op("Softmax", n.op("Mul", n.squeeze(y, [1]), n.const(4)), axis=1)
    pitches = np.linspace(5.5, 10, BINS)[:, None]
    return [n.op("ReduceSum", n.op("Mul", p, n.const(pitches)), n.ints(1), keepdims=0)]


@net(13, length=1024)
def denoiser(n, x):
    """A mask for each bin from log power, applied to the spectrum, and back to samples. Of short audio, as the way back takes long."""
    re, im = conv_dft(n, x)
    y = log(n, power(n, re, im), 1e-8)
    for c in (48, 48):
        y = n.conv(y, c, 3, 1, act="relu")
    mask = n.op("Sigmoid", n.conv(y, BINS, 1, bn=False))
    y = n.op("Concat", n.op("Mul", re, mask), n.op("Mul", im, mask), axis=1)
    scale = np.full(BINS, 2.0)
    scale[[0, -1]] = 1
    back = waves() * np.tile(scale, 2)[:, None] / WINDOW
    return [n.op("ConvTranspose", y, n.const(back[:, None]), kernel_shape=[WINDOW], strides=[HOP])]


@net(13)
def raw_waveform(n, x):
    """No transform: frames are centred and scaled by their deviation."""
    x = n.op("Sub", x, n.mean(x, [1]))
    deviation = n.op("Sqrt", n.op("Add", n.mean(n.op("Mul", x, x), [1]), n.const(1e-8)))
    y = n.unsqueeze(n.op("Div", x, deviation), [1])
    for c, k, stride in ((16, 64, 8), (24, 16, 4), (32, 8, 4)):
        y = n.conv(y, c, [k], stride, act="relu", pad=[k // 2, k // 2])
    return [n.fc(n.op("Flatten", n.gap(y)), 8, deviation=3)]


def write(name, path, count):
    """Writes the model; its samples [count][length]."""
    make, opset, length = NETS[name]
    x = audio(name, count, length)
    n = Built(name, opset)
    for y in make(n, n.input("audio", x, keep=8)):
        n.output(y)
    onnx.save(n.done(), path)
    return x
