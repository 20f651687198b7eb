"""Networks at the sizes that people deploy, whose time in ONNX Runtime is held against float's: language models, segmentation, detection. Random
weights, seeded. Small ones of the same build serve tests that need no clock."""
import numpy as np
import onnx

from pylib import architectures as arch
from pylib.builder import F

SAMPLES = 12


def llama(n, ids, wide=768, heads=12, inner=2048, layers=4):
    """RMS normalisation, rotary positions, SwiGLU, the table of words for the last product, as exporters leave them."""
    length, d = n.shape(ids)[1], wide // heads
    words = n.const(n.rng.normal(0, 0.05, (8000 if wide > 256 else 500, wide)))
    angle = np.arange(length)[:, None] * 1e4 ** (-np.arange(d // 2) / (d // 2))
    cos, sin = (n.const(np.concatenate([f(angle)] * 2, -1)) for f in (np.cos, np.sin))

    def turned(y):
        a, b = n.slice(y, [0], [d // 2], [3]), n.slice(y, [d // 2], [1 << 40], [3])
        return n.op("Add", n.op("Mul", y, cos), n.op("Mul", n.op("Concat", n.op("Neg", b), a, axis=-1), sin))

    x = n.op("Gather", words, ids)
    for _ in range(layers):
        y = arch.rms_norm(n, x)
        q, k, v = (arch.heads_of(n, n.matmul(y, wide, bias=False), heads) for _ in range(3))
        x = n.op("Add", x, n.matmul(arch.attend(n, turned(q), turned(k), v, arch.causal(n, length)), wide, bias=False))
        y = arch.rms_norm(n, x)
        y = n.op("Mul", n.act(n.matmul(y, inner, bias=False), "silu"), n.matmul(y, inner, bias=False))
        x = n.op("Add", x, n.matmul(y, wide, bias=False))
    return n.op("MatMul", arch.rms_norm(n, x), n.op("Transpose", words, perm=[1, 0]))


def tokens(n, x):
    """[batch][c][h][w] as [batch][h w][c]."""
    _, c, h, w = n.shape(x)
    return n.op("Transpose", n.reshape(x, -1, c, h * w), perm=[0, 2, 1])


def picture(n, x, h, w):
    return n.reshape(n.op("Transpose", x, perm=[0, 2, 1]), -1, n.shape(x)[2], h, w)


def segformer(n, image, widths=(32, 64, 160, 256), depths=(2, 2, 2, 2), head=256):
    """Overlapping patches, attention of fewer keys, Mix-FFN with a depthwise convolution, a head of all levels: MiT-B0."""
    x, levels = image, []
    for level, (c, depth) in enumerate(zip(widths, depths)):
        reduce, heads = (8, 4, 2, 1)[level], max(1, c // widths[0])
        heads = heads if c % heads == 0 else 5
        x = n.conv(x, c, 7 if level == 0 else 3, 4 if level == 0 else 2, bn=False)
        h, w = n.shape(x)[2:]
        x = arch.layer_norm(n, tokens(n, x))
        for _ in range(depth):
            y = arch.layer_norm(n, x)
            k = y
            if reduce > 1:
                k = arch.layer_norm(n, tokens(n, n.conv(picture(n, y, h, w), c, reduce, reduce, bn=False, pad=[0] * 4)))
            q, k, v = (arch.heads_of(n, n.matmul(z, c), heads) for z in (y, k, k))
            x = n.op("Add", x, n.matmul(arch.attend(n, q, k, v), c))
            y = n.matmul(arch.layer_norm(n, x), 4 * c)
            y = tokens(n, n.conv(picture(n, y, h, w), 4 * c, 3, group="dw", bn=False))
            x = n.op("Add", x, n.matmul(n.act(y, "gelu"), c))
        x = picture(n, arch.layer_norm(n, x), h, w)
        levels.append(x)
    h, w = n.shape(levels[0])[2:]
    parts = []
    for y in levels:
        y = picture(n, n.matmul(tokens(n, y), head), *n.shape(y)[2:])
        scale = h // n.shape(y)[2]
        parts.append(n.resize(y, float(scale), "linear") if scale > 1 else y)
    y = n.conv(n.op("Concat", *reversed(parts), axis=1), head, 1, act="relu")
    return n.conv(y, 19, 1, bn=False)


def yolo(n, image, wide=16, deep=1, act="silu"):
    """Stages of split, chained and joined convolutions, pyramid down and up, a head of boxes and scores: YOLOv8 nano."""
    def c2f(x, c, times, add=True):
        parts = list(n.split(n.conv(x, c, 1, act=act), [c // 2, c // 2]))
        for _ in range(times):
            y = n.conv(n.conv(parts[-1], c // 2, 3, act=act), c // 2, 3, act=act)
            parts.append(n.op("Add", parts[-1], y) if add else y)
        return n.conv(n.op("Concat", *parts, axis=1), c, 1, act=act)

    x = n.conv(image, wide, 3, 2, act=act)
    levels = []
    for i in range(1, 5):
        x = c2f(n.conv(x, wide << i, 3, 2, act=act), wide << i, deep * (2 if i in (2, 3) else 1))
        levels.append(x)
    y = n.conv(x, 8 * wide, 1, act=act)
    pools = [y]
    for _ in range(3):
        pools.append(n.pool(pools[-1], 5, 1, 2))
    p5 = n.conv(n.op("Concat", *pools, axis=1), 16 * wide, 1, act=act)
    p4 = c2f(n.op("Concat", n.resize(p5, 2.0), levels[2], axis=1), 8 * wide, deep, False)
    p3 = c2f(n.op("Concat", n.resize(p4, 2.0), levels[1], axis=1), 4 * wide, deep, False)
    p4 = c2f(n.op("Concat", n.conv(p3, 4 * wide, 3, 2, act=act), p4, axis=1), 8 * wide, deep, False)
    p5 = c2f(n.op("Concat", n.conv(p4, 8 * wide, 3, 2, act=act), p5, axis=1), 16 * wide, deep, False)
    rows = []
    for p in (p3, p4, p5):
        box = n.conv(n.conv(n.conv(p, 64, 3, act=act), 64, 3, act=act), 64, 1, bn=False)
        score = n.conv(n.conv(n.conv(p, 80, 3, act=act), 80, 3, act=act), 80, 1, bn=False)
        rows.append(n.reshape(n.op("Concat", box, score, axis=1), 1, 144, -1))
    box, score = n.split(n.op("Concat", *rows, axis=2), [64, 80])
    box = n.op("Softmax", n.op("Transpose", n.reshape(box, 1, 4, 16, -1), perm=[0, 2, 1, 3]), axis=1)
    box = n.conv(box, 1, 1, bn=False, weight=n.const(np.arange(16).reshape(1, 16, 1, 1)))
    return n.op("Concat", n.reshape(box, 1, 4, -1), n.op("Sigmoid", score), axis=1)


def bert(n, ids, wide=384, heads=12, inner=1536, layers=6):
    """MiniLM's shapes."""
    x = n.op("Gather", n.const(n.rng.normal(0, 0.05, (30522 if wide > 256 else 500, wide))), ids)
    x = arch.layer_norm(n, n.op("Add", x, n.const(n.rng.normal(0, 0.05, (n.shape(ids)[1], wide)))))
    for _ in range(layers):
        x = arch.layer_norm(n, n.op("Add", x, arch.self_attention(n, x, heads)))
        x = arch.layer_norm(n, n.op("Add", x, arch.perceptron(n, x, inner)))
    return x


def texts(length):
    return lambda rng: rng.integers(0, 500, (1, length))


def pictures(size):
    def make(rng):
        x = rng.normal(size=(1, 3, size // 8, size // 8)).repeat(8, 2).repeat(8, 3)
        return (x + rng.normal(0, 0.3, x.shape)).astype(F)
    return make


# Of each: what makes it, with what, and a sample.
REAL = {
    "llama_64": (llama, {}, texts(64)),
    "llama_128": (llama, {"wide": 512, "heads": 8, "inner": 1376}, texts(128)),
    "llama_1": (llama, {}, texts(1)),
    "segformer_128": (segformer, {}, pictures(128)),
    "segformer_256": (segformer, {}, pictures(256)),
    "yolo_256": (yolo, {}, pictures(256)),
    "yolo_320": (yolo, {}, pictures(320)),
    "yolo_wide_256": (yolo, {"wide": 32}, pictures(256)),
    "yolo_relu_256": (yolo, {"act": "relu"}, pictures(256)),
    "bert_128": (bert, {}, texts(128)),
}
SMALL = {
    "llama": (llama, {"wide": 128, "heads": 4, "inner": 320, "layers": 2}, texts(16)),
    "segformer": (segformer, {"widths": (16, 32, 48, 64), "depths": (1, 1, 1, 1), "head": 48}, pictures(64)),
    "yolo": (yolo, {"wide": 8}, pictures(64)),
    "bert": (bert, {"wide": 128, "heads": 4, "inner": 512, "layers": 2}, texts(16)),
}
ALL = {**REAL, **SMALL}


def write(name, path):
    """Writes the model, and samples beside it as .npy."""
    make, sizes, sample = ALL[name]
    rng = np.random.default_rng([ord(c) for c in name])
    data = np.stack([sample(rng) for _ in range(SAMPLES)])
    n = arch.Built(name, 17)
    n.batch = 1
    n.output(make(n, n.input("x", data[0]), **sizes), "y")
    onnx.save(n.done(), path)
    np.save(path.with_suffix(".npy"), data[:, 0])
