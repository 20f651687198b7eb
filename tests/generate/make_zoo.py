#!/usr/bin/env python3
"""Makes a zoo of convolutional networks in the forms that exporters write, with random but sane weights, and samples.

    make_zoo.py FOLDER [NAME...]

FOLDER gets NAME.onnx, and NAME.calib.npy and NAME.eval.npy (.npz for several inputs). Seeded; nothing here is committed.
tests/checks/check_zoo.py converts them all and judges the result. To add a network write a function with @net(...).
"""
import sys
from pathlib import Path

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib.builder import F, Net, build_named

CALIB, EVAL = 32, 16
NETS = {}


def net(opset, size=(3, 64, 64), **options):
    """Registers a maker of a network with one input 'image'; it returns the names of the outputs."""
    def register(make):
        NETS[make.__name__] = (make, opset, size, options)
        return make
    return register


# ---- samples

def texture(rng, channels, *space):
    """Noise of several octaves and a grating: f32[channels][space...], deviation about one."""
    x = np.zeros((channels, *space))
    for octave in (2, 4, 8, 16, 64):
        coarse = rng.normal(size=(channels, *[min(octave, s) for s in space]))
        for axis, s in enumerate(space, 1):
            at = np.linspace(0, coarse.shape[axis] - 1, s)
            lo = np.minimum(at.astype(int), max(0, coarse.shape[axis] - 2))
            part = (at - lo).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
            hi = np.minimum(lo + 1, coarse.shape[axis] - 1)
            coarse = coarse.take(lo, axis) * (1 - part) + coarse.take(hi, axis) * part
        x += coarse * rng.uniform(0.1, 1.0) / np.sqrt(octave)
    wave = sum(np.arange(s).reshape([-1 if a == i else 1 for a in range(len(space))]) * rng.uniform(-0.8, 0.8)
               for i, s in enumerate(space))
    x += np.sin(wave) * rng.normal(size=(channels,) + (1,) * len(space)) * 0.7
    return (x / x.std() * rng.uniform(0.5, 1.3) + rng.normal(0, 0.4)).astype(F)


def samples(name, size):
    rng = np.random.default_rng([ord(c) for c in name] + [7])
    return np.stack([texture(rng, *size) for _ in range(CALIB + EVAL)])


# ---- classifiers

def classify(n, x, classes=40, softmax=False):
    x = n.fc(n.op("Flatten", n.gap(x)), classes, deviation=3)
    return n.op("Softmax", x, axis=1) if softmax else x


def basic_block(n, x, c, stride, **more):
    y = n.conv(n.conv(x, c, 3, stride, act="relu", **more), c, 3)
    if stride != 1 or n.channels(x) != c:
        x = n.conv(x, c, 1, stride)
    return n.op("Relu", n.op("Add", y, x))


def bottleneck(n, x, c, stride, group=1, **more):
    y = n.conv(x, c, 1, act="relu")
    y = n.conv(n.conv(y, c, 3, stride, group=group, act="relu", **more), 2 * c, 1)
    if stride != 1 or n.channels(x) != 2 * c:
        x = n.conv(x, 2 * c, 1, stride)
    return n.op("Relu", n.op("Add", x, y))


@net(13)
def resnet18(n, x):
    x = n.pool(n.conv(x, 16, 7, 2, act="relu"), 3, 2, 1)
    for c, stride in ((16, 1), (16, 1), (24, 2), (24, 1), (32, 2), (32, 1), (64, 2), (64, 1)):
        x = basic_block(n, x, c, stride)
    return [classify(n, x)]


@net(11, ir=3, constants="inputs")
def resnet50(n, x):
    x = n.pool(n.conv(x, 16, 7, 2, act="relu"), 3, 2, 1)
    for c, stride, times in ((16, 1, 3), (32, 2, 4), (48, 2, 6), (64, 2, 3)):
        for i in range(times):
            x = bottleneck(n, x, c, stride if i == 0 else 1)
    return [classify(n, x, softmax=True)]


@net(9)
def resnext(n, x):
    x = n.pool(n.conv(x, 32, 7, 2, act="relu"), 3, 2, 1)
    for c, stride in ((32, 1), (64, 2), (64, 1), (128, 2)):
        x = bottleneck(n, x, c, stride, group=8)
    return [classify(n, x)]


def inverted(n, x, c, stride, expand=4, act="relu6", k=3, se=None):
    y = n.conv(x, n.channels(x) * expand, 1, act=act) if expand > 1 else x
    y = n.conv(y, n.channels(y), k, stride, group="dw", act=act)
    if se:
        y = n.se(y, **se)
    y = n.conv(y, c, 1)
    return n.op("Add", x, y) if stride == 1 and n.channels(x) == c else y


@net(10)
def mobilenet_v2(n, x):
    x = n.conv(x, 16, 3, 2, act="relu6")
    for e, c, stride in ((1, 8, 1), (6, 12, 2), (6, 12, 1), (6, 16, 2), (6, 16, 1), (6, 24, 1), (6, 32, 2), (6, 32, 1)):
        x = inverted(n, x, c, stride, e)
    x = n.conv(x, 128, 1, act="relu6")
    x = n.mean(x, [2, 3], keep=0)
    return [n.fc(n.dropout(x), 40, deviation=3)]


@net(12)
def mobilenet_v3(n, x):
    x = n.conv(x, 16, 3, 2, act="hswish")
    for e, c, stride, k, act, se in ((1, 16, 2, 3, "relu", True), (4, 24, 2, 3, "relu", False), (3, 24, 1, 3, "relu", False),
                                     (4, 40, 2, 5, "hswish", True), (6, 40, 1, 5, "hswish", True)):
        x = inverted(n, x, c, stride, e, act, k, {"gate": "hsigmoid"} if se else None)
    x = n.gap(n.conv(x, 160, 1, act="hswish"))
    x = n.conv(x, 128, 1, bn=False, act="hswish")
    return [n.fc(n.op("Flatten", x), 40, deviation=3)]


@net(15)
def mobilenet_v3_hardswish(n, x):
    x = n.conv(x, 16, 3, 2, act="hswish")
    for e, c, stride, act in ((2, 16, 2, "relu"), (4, 24, 2, "hswish"), (4, 24, 1, "hswish_div")):
        x = inverted(n, x, c, stride, e, act, 5, {"gate": "hsigmoid", "how": "mean"})
    return [classify(n, n.conv(x, 96, 1, act="hswish"))]


@net(15)
def efficientnet(n, x):
    x = n.conv(x, 16, 3, 2, act="silu")
    for e, c, stride, k in ((1, 12, 1, 3), (6, 16, 2, 3), (6, 16, 1, 3), (6, 24, 2, 5), (6, 24, 1, 5), (6, 32, 2, 3)):
        x = inverted(n, x, c, stride, e, "silu", k, {"gate": "sigmoid", "act": "silu", "how": "mean"})
    return [classify(n, n.conv(x, 128, 1, act="silu"))]


@net(18)
def efficientnet_op18(n, x):
    x = n.conv(x, 16, 3, 2, act="silu")
    for e, c, stride in ((1, 12, 1), (4, 16, 2), (4, 16, 1)):
        x = inverted(n, x, c, stride, e, "silu", 3, {"gate": "sigmoid", "act": "silu", "how": "mean"})
    return [classify(n, x, softmax=True)]


def shuffle(n, x, groups=2):
    c, h, w = n.shape(x)[1:]
    x = n.op("Transpose", n.reshape(x, -1, groups, c // groups, h, w), perm=[0, 2, 1, 3, 4])
    return n.reshape(x, -1, c, h, w)


@net(12)
def shufflenet_v2(n, x):
    x = n.pool(n.conv(x, 24, 3, 2, act="relu"), 3, 2, 1)
    for c, times in ((48, 3), (96, 2)):
        a = n.conv(n.conv(x, n.channels(x), 3, 2, group="dw"), c // 2, 1, act="relu")
        b = n.conv(x, c // 2, 1, act="relu")
        b = n.conv(n.conv(b, c // 2, 3, 2, group="dw"), c // 2, 1, act="relu")
        x = shuffle(n, n.op("Concat", a, b, axis=1))
        for _ in range(times):
            a, b = n.split(x, [c // 2, c // 2])
            b = n.conv(b, c // 2, 1, act="relu")
            b = n.conv(n.conv(b, c // 2, 3, group="dw"), c // 2, 1, act="relu")
            x = shuffle(n, n.op("Concat", a, b, axis=1))
    return [classify(n, n.conv(x, 128, 1, act="relu"))]


@net(12)
def densenet(n, x):
    x = n.pool(n.conv(x, 24, 7, 2, act="relu"), 3, 2, 1)
    for block in range(3):
        for _ in range(4):
            y = n.conv(n.act(n.bn(x), "relu"), 32, 1, act="relu")
            w = n.const(n.weight(12, 32, 3, 3))
            y = n.op("Conv", y, w, kernel_shape=[3, 3], pads=[1] * 4)
            x = n.op("Concat", x, y, axis=1)
        if block < 2:
            w = n.const(n.weight(n.channels(x) // 2, n.channels(x), 1, 1))
            x = n.pool(n.op("Conv", n.act(n.bn(x), "relu"), w), 2, kind="AveragePool")
    return [classify(n, n.act(n.bn(x), "relu"))]


@net(9, size=(3, 67, 67))
def inception(n, x):
    x = n.conv(n.conv(x, 16, 3, 2, act="relu", pad=[0] * 4), 24, 3, act="relu")
    for c, stride in ((16, 1), (24, 2), (24, 1)):
        a = n.conv(x, c, 1, act="relu")
        b = n.conv(n.conv(n.conv(x, c, 1, act="relu"), c, (1, 7), act="relu"), c, (7, 1), act="relu")
        d = n.conv(n.conv(x, c, 1, act="relu"), c, 3, act="relu")
        d = n.op("Concat", n.conv(d, c, (1, 3), act="relu"), n.conv(d, c, (3, 1), act="relu"), axis=1)
        e = n.conv(n.pool(x, 3, 1, 1, "AveragePool"), c, 1, act="relu")
        x = n.op("Concat", a, b, d, e, axis=1)
        if stride == 2:
            x = n.op("Concat", n.conv(x, 32, 3, 2, pad=[0] * 4, act="relu"), n.pool(x, 3, 2), axis=1)
    x = n.op("AveragePool", x, kernel_shape=list(n.shape(x)[2:]))
    return [n.fc(n.reshape(n.dropout(x), 0, -1), 40, deviation=3)]


@net(10)
def squeezenet(n, x):
    x = n.pool(n.conv(x, 24, 3, 2, bn=False, act="relu", pad=[0] * 4), 3, 2, ceil_mode=1)
    for s, e in ((8, 16), (8, 24), (12, 32)):
        q = n.conv(x, s, 1, bn=False, act="relu")
        x = n.op("Concat", n.conv(q, e, 1, bn=False, act="relu"), n.conv(q, e, 3, bn=False, act="relu"), axis=1)
    x = n.conv(n.dropout(x), 40, 1, bn=False, act="relu")
    return [n.squeeze(n.op("AveragePool", x, kernel_shape=list(n.shape(x)[2:])), [2, 3])]


@net(7, size=(3, 67, 67))
def alexnet(n, x):
    x = n.conv(x, 24, 11, 4, bn=False, act="relu", pad=[2] * 4)
    x = n.pool(n.op("LRN", x, size=5, alpha=1e-2, beta=0.75, bias=1.0), 3, 2)
    x = n.conv(x, 32, 5, group=2, bn=False, act="relu")
    x = n.op("LRN", x, size=5, alpha=1e-2, beta=0.75, bias=1.0)
    x = n.conv(n.conv(x, 48, 3, bn=False, act="relu"), 32, 3, group=2, bn=False, act="relu")
    x = n.dropout(n.fc(n.op("Flatten", x), 64, act="relu"))
    return [n.op("Softmax", n.fc(x, 40, deviation=3))]


@net(8)
def vgg(n, x):
    for c, times in ((12, 2), (24, 2), (32, 3)):
        for _ in range(times):
            x = n.conv(x, c, 3, bn=False, act="relu")
        x = n.pool(x, 2)
    x = n.dropout(n.fc(n.reshape(x, -1, int(np.prod(n.shape(x)[1:]))), 64, act="relu"))
    return [n.fc(x, 40, deviation=3)]


@net(14)
def repvgg(n, x):
    for c, stride in ((16, 2), (16, 1), (32, 2), (32, 1), (48, 2)):
        y = n.op("Add", n.conv(x, c, 3, stride), n.conv(x, c, 1, stride))
        if stride == 1 and n.channels(x) == c:
            y = n.op("Add", y, n.bn(x))
        x = n.op("Relu", y)
    return [classify(n, x)]


@net(17)
def convnext(n, x):
    x = n.conv(x, 24, 4, 4, bn=False, pad=[0] * 4)
    for form in ("op", "parts", "op"):
        y = n.op("Transpose", n.conv(x, 24, 7, group="dw", bn=False), perm=[0, 2, 3, 1])
        scale, bias = n.const(n.rng.uniform(0.5, 1.5, 24)), n.const(n.rng.normal(0, 0.2, 24))
        if form == "op":
            y = n.op("LayerNormalization", y, scale, bias, axis=-1, epsilon=1e-6)
        else:
            d = n.op("Sub", y, n.mean(y, [-1]))
            v = n.op("Sqrt", n.op("Add", n.mean(n.op("Pow", d, n.const(2)), [-1]), n.const(1e-6)))
            y = n.op("Add", n.op("Mul", n.op("Div", d, v), scale), bias)
        y = n.matmul(n.act(n.matmul(y, 96), "gelu"), 24)
        y = n.op("Mul", y, n.const(n.rng.uniform(0.2, 0.6, 24)))
        x = n.op("Add", x, n.op("Transpose", y, perm=[0, 3, 1, 2]))
    return [classify(n, x)]


# ---- dense prediction

@net(11)
def unet_transposed(n, x):
    skips = []
    for c in (12, 24, 32):
        x = n.conv(n.conv(x, c, 3, act="relu"), c, 3, act="relu")
        skips.append(x)
        x = n.pool(x, 2)
    x = n.conv(x, 48, 3, act="relu")
    for skip in reversed(skips):
        c = n.channels(skip)
        w = n.const(n.rng.normal(0, np.sqrt(1 / n.channels(x)), (n.channels(x), c, 2, 2)))
        x = n.op("ConvTranspose", x, w, n.const(n.rng.normal(0, 0.1, c)), kernel_shape=[2, 2], strides=[2, 2])
        x = n.conv(n.conv(n.op("Concat", skip, x, axis=1), c, 3, act="relu"), c, 3, act="relu")
    return [n.conv(x, 3, 1, bn=False)]


@net(13)
def unet_resize(n, x):
    skips = []
    for c in (12, 24, 32):
        x = n.conv(x, c, 3, act="leaky")
        skips.append(x)
        x = n.conv(x, c, 3, 2, act="leaky")
    x = n.conv(x, 48, 3, act="leaky")
    side = n.conv(x, 4, 1, bn=False)
    for i, skip in enumerate(reversed(skips)):
        x = n.resize(x, 2.0, "linear", coordinate_transformation_mode="align_corners" if i else "half_pixel")
        x = n.conv(n.op("Concat", x, skip, axis=1), n.channels(skip), 3, act="leaky")
    return [n.op("Sigmoid", n.conv(x, 1, 3, bn=False)), side]


@net(13)
def deeplab(n, x):
    x = n.conv(n.conv(x, 16, 3, 2, act="relu"), 32, 3, 2, act="relu")
    x = basic_block(n, x, 32, 1)
    parts = [n.conv(x, 16, 1, act="relu")] + [n.conv(x, 16, 3, dilation=d, act="relu") for d in (2, 4, 6)]
    g = n.conv(n.gap(x), 16, 1, act="relu")
    parts.append(n.op("Resize", g, "", n.const([1, 1, 16, 16]), mode="linear", coordinate_transformation_mode="half_pixel"))
    x = n.conv(n.op("Concat", *parts, axis=1), 32, 1, act="relu")
    x = n.conv(x, 6, 1, bn=False)
    sizes = n.op("Concat", n.op("Slice", n.op("Shape", x), n.ints(0), n.ints(2)), n.ints(64, 64), axis=0)
    return [n.op("Resize", x, "", "", sizes, mode="linear", coordinate_transformation_mode="half_pixel")]


@net(11, size=(1, 48, 48))
def superres(n, x):
    y = n.conv(x, 32, 5, bn=False, act="tanh")
    y = n.conv(n.conv(y, 24, 3, bn=False, act="relu"), 4, 3, bn=False)
    y = n.op("DepthToSpace", y, blocksize=2, mode="CRD")
    return [n.op("Add", y, n.resize(x, 2.0, "cubic", coordinate_transformation_mode="half_pixel"))]


@net(9, size=(3, 48, 48))
def superres_reshape(n, x):
    """Pixel shuffle as PyTorch exported it: Reshape, Transpose, Reshape."""
    head = x = n.conv(x, 24, 3, bn=False)
    for _ in range(3):
        x = n.op("Add", x, n.conv(n.conv(x, 24, 3, bn=False, act="relu"), 24, 3, bn=False))
    x = n.conv(n.op("Add", x, head), 48, 3, bn=False)
    h, w = n.shape(x)[2:]
    x = n.op("Transpose", n.reshape(x, -1, 12, 2, 2, h, w), perm=[0, 1, 4, 2, 5, 3])
    x = n.reshape(x, -1, 12, 2 * h, 2 * w)
    return [n.conv(x, 3, 3, bn=False)]


@net(9)
def style(n, x):
    def layer(x, c, k, stride=1, norm=True, act="relu"):
        p = k // 2
        x = n.conv(n.pad(x, [0, 0, p, p, 0, 0, p, p], "reflect"), c, k, stride, bn=False, pad=[0] * 4)
        if norm:
            x = n.op("InstanceNormalization", x, n.const(n.rng.uniform(0.5, 1.5, c)), n.const(n.rng.normal(0, 0.3, c)))
        return n.act(x, act)
    x = layer(layer(layer(x, 12, 9), 16, 3, 2), 24, 3, 2)
    for _ in range(2):
        x = n.op("Add", x, layer(layer(x, 24, 3), 24, 3, act=None))
    x = layer(n.resize(x, 2.0), 16, 3)
    x = layer(n.resize(x, 2.0), 12, 3)
    return [layer(x, 3, 9, norm=False, act=None)]


@net(7)
def hourglass(n, x):
    """Upsample of opset 7, skips by Add, two heads, Convs that are outputs."""
    x = n.conv(x, 16, 3, 2, act="relu")
    a = n.conv(n.pool(x, 2), 16, 3, act="relu")
    b = n.conv(n.pool(a, 2), 16, 3, act="relu")
    a = n.op("Add", a, n.resize(n.conv(b, 16, 3, act="relu"), 2))
    x = n.op("Add", x, n.resize(n.conv(a, 16, 3, act="relu"), 2))
    heat = n.op("Sigmoid", n.conv(x, 4, 1, bn=False))
    offset = n.conv(n.conv(x, 16, 3, act="relu"), 2, 1, bn=False)
    return [heat, offset]


# ---- detectors

def grid(n, h, w):
    y, x = np.mgrid[0:h, 0:w]
    return np.stack([x, y], -1).reshape(1, 1, h, w, 2)


def csp(n, x, c, act, shortcut=True):
    a = n.conv(x, c // 2, 1, act=act)
    y = n.conv(n.conv(a, c // 2, 1, act=act), c // 2, 3, act=act)
    a = n.op("Add", a, y) if shortcut else y
    return n.conv(n.op("Concat", a, n.conv(x, c // 2, 1, act=act), axis=1), c, 1, act=act)


def spp(n, x, c, act):
    x = n.conv(x, c // 2, 1, act=act)
    a = n.pool(x, 5, 1, 2)
    b = n.pool(a, 5, 1, 2)
    return n.conv(n.op("Concat", x, a, b, n.pool(b, 5, 1, 2), axis=1), c, 1, act=act)


@net(12, size=(3, 96, 96))
def yolov5(n, x):
    parts = [n.slice(n.slice(x, [i], [2 ** 31], [2], [2]), [j], [2 ** 31], [3], [2]) for j in (0, 1) for i in (0, 1)]
    x = n.conv(n.op("Concat", *parts, axis=1), 16, 3, act="silu")
    p3 = csp(n, n.conv(x, 24, 3, 2, act="silu"), 24, "silu")
    p4 = csp(n, n.conv(p3, 32, 3, 2, act="silu"), 32, "silu")
    p5 = spp(n, n.conv(p4, 48, 3, 2, act="silu"), 48, "silu")
    h5 = n.conv(p5, 32, 1, act="silu")
    p4 = csp(n, n.op("Concat", n.resize(h5, 2.0), p4, axis=1), 32, "silu", False)
    h4 = n.conv(p4, 24, 1, act="silu")
    p3 = csp(n, n.op("Concat", n.resize(h4, 2.0), p3, axis=1), 24, "silu", False)
    rows = []
    for p, stride in ((p3, 4), (p4, 8), (p5, 16)):
        h, w = n.shape(p)[2:]
        y = n.op("Transpose", n.reshape(n.conv(p, 3 * 9, 1, bn=False), -1, 3, 9, h, w), perm=[0, 1, 3, 4, 2])
        y = n.op("Sigmoid", y)
        xy, wh, score = n.split(y, [2, 2, 5], axis=4)
        xy = n.op("Mul", n.op("Add", n.op("Mul", xy, n.const(2)), n.const(grid(n, h, w) - 0.5)), n.const(stride))
        wh = n.op("Mul", n.op("Pow", n.op("Mul", wh, n.const(2)), n.const(2)),
                  n.const(n.rng.uniform(1, 6, (1, 3, 1, 1, 2)) * stride))
        rows.append(n.reshape(n.op("Concat", xy, wh, score, axis=4), -1, 3 * h * w, 9))
    return [n.op("Concat", *rows, axis=1)]


@net(17, size=(3, 96, 96))
def yolov8(n, x):
    x = n.conv(n.conv(x, 16, 3, 2, act="silu"), 24, 3, 2, act="silu")

    def c2f(x, c):
        a, b = n.split(n.conv(x, c, 1, act="silu"), [c // 2, c // 2])
        d = n.op("Add", b, n.conv(n.conv(b, c // 2, 3, act="silu"), c // 2, 3, act="silu"))
        return n.conv(n.op("Concat", a, b, d, axis=1), c, 1, act="silu")
    p3 = c2f(x, 24)
    p4 = c2f(n.conv(p3, 32, 3, 2, act="silu"), 32)
    p5 = spp(n, n.conv(p4, 48, 3, 2, act="silu"), 48, "silu")
    p4 = c2f(n.op("Concat", n.resize(p5, 2.0), p4, axis=1), 32)
    p3 = c2f(n.op("Concat", n.resize(p4, 2.0), p3, axis=1), 24)
    rows, anchors, strides = [], [], []
    for p, stride in ((p3, 4), (p4, 8), (p5, 16)):
        h, w = n.shape(p)[2:]
        box = n.conv(n.conv(p, 32, 3, act="silu"), 64, 1, bn=False)
        score = n.conv(n.conv(p, 16, 3, act="silu"), 5, 1, bn=False)
        rows.append(n.reshape(n.op("Concat", box, score, axis=1), -1, 69, h * w))
        y, xx = np.mgrid[0:h, 0:w]
        anchors.append(np.stack([xx, y]).reshape(1, 2, -1) + 0.5)
        strides.append(np.full((1, 1, h * w), stride))
    x = n.op("Concat", *rows, axis=2)
    box, score = n.split(x, [64, 5])
    count = n.shape(x)[2]
    box = n.op("Softmax", n.op("Transpose", n.reshape(box, -1, 4, 16, count), perm=[0, 2, 1, 3]), axis=1)
    box = n.op("Conv", box, n.const(np.arange(16).reshape(1, 16, 1, 1)), kernel_shape=[1, 1])
    lt, rb = n.split(n.reshape(box, -1, 4, count), [2, 2])
    at = n.const(np.concatenate(anchors, 2))
    a, b = n.op("Sub", at, lt), n.op("Add", at, rb)
    centre = n.op("Div", n.op("Add", a, b), n.const(2))
    box = n.op("Mul", n.op("Concat", centre, n.op("Sub", b, a), axis=1), n.const(np.concatenate(strides, 2)))
    return [n.op("Concat", box, n.op("Sigmoid", score), axis=1)]


@net(11, size=(3, 96, 96))
def yolov3_tiny(n, x):
    for c in (12, 16, 24):
        x = n.pool(n.conv(x, c, 3, act="leaky"), 2)
    skip = x = n.conv(x, 32, 3, act="leaky")
    x = n.pool(x, 2)
    x = n.op("MaxPool", n.conv(x, 48, 3, act="leaky"), kernel_shape=[2, 2], strides=[1, 1], auto_pad="SAME_UPPER")
    x = n.conv(x, 32, 1, act="leaky")
    heads = [n.conv(n.conv(x, 48, 3, act="leaky"), 18, 1, bn=False)]
    x = n.op("Concat", n.resize(n.conv(x, 16, 1, act="leaky"), 2.0), skip, axis=1)
    heads.append(n.conv(n.conv(x, 32, 3, act="leaky"), 18, 1, bn=False))
    boxes, scores = [], []
    for y, stride in zip(heads, (16, 8)):
        h, w = n.shape(y)[2:]
        y = n.reshape(n.op("Transpose", y, perm=[0, 2, 3, 1]), -1, h * w * 2, 9)
        xy, wh, s = (n.slice(y, [a], [b], [2]) for a, b in ((0, 2), (2, 4), (4, 9)))
        cells = grid(n, h, w).reshape(1, -1, 1, 2).repeat(2, 2).reshape(1, -1, 2)
        xy = n.op("Mul", n.op("Add", n.op("Sigmoid", xy), n.const(cells)), n.const(stride))
        wh = n.op("Mul", n.op("Exp", wh), n.const([stride, 2 * stride]))
        boxes.append(n.op("Concat", xy, wh, axis=2))
        scores.append(n.op("Sigmoid", s))
    return [n.op("Concat", *boxes, axis=1), n.op("Concat", *scores, axis=1)]


@net(11, size=(3, 96, 96))
def yolov4_mish(n, x):
    x = n.conv(n.conv(x, 12, 3, act="mish"), 24, 3, 2, act="mish")
    x = csp(n, n.conv(x, 32, 3, 2, act="mish"), 32, "mish")
    return [n.conv(spp(n, x, 32, "leaky"), 18, 1, bn=False)]


@net(10, size=(3, 96, 96))
def ssd(n, x):
    x = n.conv(x, 16, 3, 2, act="relu6")
    x = inverted(n, inverted(n, x, 16, 2, 4), 24, 2, 4)
    maps = [x]
    for c in (32, 32):
        x = n.conv(n.conv(x, c // 2, 1, act="relu6"), c, 3, 2, act="relu6")
        maps.append(x)
    boxes, scores = [], []
    for m in maps:
        for out, width in ((boxes, 4), (scores, 6)):
            y = n.conv(n.conv(m, n.channels(m), 3, group="dw", act="relu6"), 3 * width, 1, bn=False)
            y = n.op("Transpose", y, perm=[0, 2, 3, 1])
            out.append(n.reshape(y, 0, -1, width))
    boxes = n.op("Concat", *boxes, axis=1)
    count = n.shape(boxes)[1]
    prior = n.rng.uniform(0, 1, (1, count, 2))
    centre = n.op("Add", n.op("Mul", n.slice(boxes, [0], [2], [2]), n.const(0.1)), n.const(prior))
    size = n.op("Mul", n.op("Exp", n.op("Mul", n.slice(boxes, [2], [4], [2]), n.const(0.2))), n.const([0.2, 0.3]))
    return [n.op("Concat", centre, size, axis=2), n.op("Softmax", n.op("Concat", *scores, axis=1), axis=2)]


@net(16, size=(3, 96, 96))
def fpn(n, x):
    c2 = basic_block(n, n.conv(x, 16, 3, 2, act="relu"), 16, 2)
    c3 = basic_block(n, c2, 24, 2)
    c4 = basic_block(n, c3, 32, 2)
    p4 = n.conv(c4, 24, 1, bn=False)
    p3 = n.op("Add", n.conv(c3, 24, 1, bn=False), n.resize(p4, 2.0))
    p2 = n.op("Add", n.conv(c2, 24, 1, bn=False), n.resize(p3, 2.0))
    weight = n.const(n.weight(24, 24, 3, 3, spread=0.2))
    bias = n.const(n.rng.normal(0, 0.1, 24))
    outs = []
    for p in (p2, p3, p4):     # the head's weights are shared
        y = n.op("Relu", n.op("Conv", p, weight, bias, kernel_shape=[3, 3], pads=[1] * 4))
        outs.append(n.conv(y, 5, 3, bn=False))
    return outs


# ---- other domains and exporters

@net(11, size=(64, 64, 3))
def tf_mobilenet(n, x):
    x = n.op("Transpose", x, perm=[0, 3, 1, 2])

    def layer(x, c, k, stride=1, group=1):
        if stride == 2:
            x, pad = n.pad(x, [0, 0, 0, 0, 0, 0, 1, 1]), {"auto_pad": "VALID", "pads": None}
        else:
            pad = {"pads": [k // 2] * 4}
        attrs = {"kernel_shape": [k, k], "strides": [stride] * 2, "group": group, **pad}
        attrs = {a: v for a, v in attrs.items() if v is not None}
        y = n.op("Conv", x, n.const(n.weight(c, n.channels(x) // group, k, k)), **attrs)
        return n.op("Min", n.op("Max", n.bn(y, "mul"), n.const(0)), n.const(6))
    x = layer(x, 16, 3, 2)
    x = layer(x, 32, 3, 1, 16)          # depth multiplier 2
    x = layer(layer(x, 24, 1), 24, 3, 2, 24)
    x = layer(layer(x, 48, 1), 48, 3, 1, 48)
    x = n.mean(layer(x, 64, 1), [2, 3])
    x = n.conv(x, 40, 1, bn=False)
    x = n.squeeze(n.op("Transpose", x, perm=[0, 2, 3, 1]), [1, 2])
    return [n.op("Softmax", x, axis=-1)]


@net(13, size=(32, 32, 12))
def nhwc_blocks(n, x):
    """Transposes around every layer, as a careless exporter writes them."""
    for c in (16, 24):
        y = n.conv(n.op("Transpose", x, perm=[0, 3, 1, 2]), c, 3, 2, act="relu")
        x = n.op("Transpose", y, perm=[0, 2, 3, 1])
    x = n.mean(x, [1, 2], keep=0)
    return [n.matmul(n.act(n.matmul(x, 32), "relu"), 20)]


@net(13, size=(1, 4000), batch=1)
def audio1d(n, x):
    x = n.conv(x, 16, 15, 4, act="relu")
    for c, d in ((24, 1), (24, 2), (32, 4)):
        y = n.conv(n.conv(x, c, 3, dilation=d, act="relu"), c, 1)
        y = n.se(y, gate="sigmoid", how="mean")
        x = n.op("Relu", n.op("Add", y, x if n.channels(x) == c else n.conv(x, c, 1)))
        x = n.pool(x, 4)
    return [n.fc(n.mean(x, [2], keep=0), 12, deviation=3)]


@net(11, size=(2, 1024))
def wavenet(n, x):
    """Gated: Tanh times Sigmoid, causal padding, skips summed."""
    x, skips = n.conv(x, 16, 1, bn=False), []
    for d in (1, 2, 4, 8):
        p = n.pad(x, [0, 0, d, 0, 0, 0])
        y = n.op("Mul", n.conv(p, 16, 2, dilation=d, pad=[0, 0], bn=False, act="tanh"),
                 n.conv(p, 16, 2, dilation=d, pad=[0, 0], bn=False, act="sigmoid"))
        skips.append(n.conv(y, 16, 1, bn=False))
        x = n.op("Add", x, n.conv(y, 16, 1, bn=False))
    x = n.op("Relu", n.op("Sum", *skips))
    return [n.conv(x, 8, 1, bn=False)]


@net(12, size=(1, 12, 24, 24))
def video3d(n, x):
    x = n.pool(n.conv(x, 12, 3, act="relu"), 2)
    x = n.conv(n.conv(x, 16, (1, 3, 3), act="relu"), 16, (3, 1, 1), act="relu")
    x = n.conv(x, 24, 3, 2, act="relu")
    return [classify(n, x, 12)]


@net(11, size=(3, 56, 56))
def face_prelu(n, x):
    x = n.conv(x, 16, 3, act="prelu")
    for c, stride in ((16, 2), (24, 2), (24, 1), (32, 2)):
        y = n.conv(n.conv(n.bn(x), c, 3, act="prelu"), c, 3, stride)
        x = n.op("Add", y, x if stride == 1 else n.conv(x, c, 1, stride))
    x = n.fc(n.op("Flatten", n.dropout(n.bn(x))), 64)
    x = n.bn(x)
    return [n.op("Div", x, n.op("ReduceL2", x, axes=[1], keepdims=1))]


@net(21, constants="nodes", ir=10)
def odd_outputs(n, x):
    """A Conv that is an output and goes on, a Relu that is an output, an Add with the input itself."""
    a = n.conv(x, 3, 3, bn=False)
    b = n.op("Add", a, x)
    c = n.conv(b, 16, 3, act="relu")
    d = n.conv(c, 16, 3, act="relu")
    e = n.op("Sub", n.conv(d, 16, 3), c)
    f = n.conv(n.act(e, "elu"), 8, 1, bn=False, act="sigmoid")
    return [a, d, f]


@net(18)
def attention_gate(n, x):
    """Spatial and channel attention (ReduceMean, ReduceMax, Concat, Sigmoid), Where free, opset 18 axes."""
    x = n.conv(x, 24, 3, 2, act="relu")
    shared = [n.const(n.weight(6, 24, 1, 1)), n.const(n.weight(24, 6, 1, 1))]
    ways = [n.op("Conv", n.op("Relu", n.op("Conv", g, shared[0])), shared[1])
            for g in (n.gap(x), n.op("GlobalMaxPool", x))]
    x = n.op("Mul", x, n.op("Sigmoid", n.op("Add", *ways)))
    m = n.op("Concat", n.mean(x, [1]), n.op("ReduceMax", x, n.ints(1), keepdims=1), axis=1)
    x = n.op("Mul", x, n.conv(m, 1, 7, bn=False, act="sigmoid"))
    return [classify(n, n.conv(x, 32, 3, 2, act="relu"))]


@net(14, size={"image": (3, 48, 48), "depth": (1, 48, 48), "vector": (10,)})
def multi_input(n, x):
    image, depth, vector = x
    a = n.conv(image, 16, 3, 2, act="relu")
    b = n.conv(depth, 16, 3, 2, act="relu")
    x = n.conv(n.op("Concat", a, b, axis=1), 24, 3, 2, act="relu")
    v = n.fc(vector, 24, act="relu")
    x = n.op("Mul", x, n.unsqueeze(v, [2, 3]))
    x = n.op("Concat", n.op("Flatten", n.gap(x)), v, axis=1)
    return [n.fc(x, 20, deviation=3), n.fc(x, 1)]


@net(13, size={"left": (3, 40, 40), "right": (3, 40, 40)})
def siamese(n, x):
    kernels = [n.weight(16, 3, 3, 3), n.weight(24, 16, 3, 3)]
    names = [n.const(k) for k in kernels]
    ends = []
    for image in x:
        for k in names:
            image = n.op("Relu", n.op("Conv", image, k, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4))
        ends.append(image)
    x = n.op("Abs", n.op("Sub", *ends))
    return [n.fc(n.op("Flatten", n.pool(x, 5, kind="AveragePool")), 2)]


@net(13, size=(3, 32, 32))
def vit_hybrid(n, x):
    """Conv stem, then attention over the cells: MatMul of activations, Softmax, LayerNormalization in parts."""
    x = n.conv(n.conv(x, 16, 3, 2, act="relu"), 32, 3, 2)
    x = n.op("Transpose", n.reshape(x, -1, 32, 64), perm=[0, 2, 1])
    q, k, v = (n.op("Transpose", n.reshape(n.matmul(x, 32), -1, 64, 4, 8), perm=[0, 2, 1, 3]) for _ in range(3))
    s = n.op("Mul", n.op("MatMul", q, n.op("Transpose", k, perm=[0, 1, 3, 2])), n.const(8 ** -0.5))
    y = n.op("MatMul", n.op("Softmax", s, axis=-1), v)
    x = n.op("Add", x, n.matmul(n.reshape(n.op("Transpose", y, perm=[0, 2, 1, 3]), -1, 64, 32), 32))
    x = n.op("Add", x, n.matmul(n.act(n.matmul(x, 64), "gelu"), 32))
    return [n.fc(n.mean(x, [1], keep=0), 20, deviation=3)]


@net(13, size=(3, 32, 32))
def dead_channels(n, x):
    """Channels that are always zero or constant, tiny and huge weights, a Clip that never clips, a Relu twice."""
    w = n.weight(16, 3, 3, 3)
    w[0], w[1], w[2] = 0, w[1] * 1e-7, w[2] * 30
    y = n.op("Conv", x, n.const(w), n.const([0, -1, 0, 5] + [0.1] * 12), kernel_shape=[3, 3], pads=[1] * 4)
    y = n.op("Relu", n.op("Relu", y))
    w = n.weight(16, 16, 3, 3)
    w[5] = 0
    y = n.clip(n.conv(y, 16, 3, weight=n.const(w)), -1000, 1000)
    y = n.op("Concat", y, n.op("Mul", y, n.const(1e-3)), axis=1)
    return [classify(n, n.conv(y, 24, 3, act="relu"), 10)]


def build(name, folder):
    make, opset, size, options = NETS[name]
    options = dict(options)
    batch = options.pop("batch", "N")
    n = Net(name, opset, **options)
    n.batch = batch
    sizes = size if isinstance(size, dict) else {"image": size}
    data = {k: samples(name + k, s if len(s) > 1 else (1, *s)).reshape(CALIB + EVAL, *s) for k, s in sizes.items()}
    inputs = [n.input(k, v) for k, v in data.items()]
    for i, y in enumerate(make(n, inputs if isinstance(size, dict) else inputs[0])):
        n.output(y)
    onnx.save(n.done(), folder / f"{name}.onnx")
    for part, rows in (("calib", slice(0, CALIB)), ("eval", slice(CALIB, None))):
        if isinstance(size, dict):
            np.savez(folder / f"{name}.{part}.npz", **{k: v[rows] for k, v in data.items()})
        else:
            np.save(folder / f"{name}.{part}.npy", data["image"][rows])


if __name__ == "__main__":
    build_named(__doc__, NETS, build)
