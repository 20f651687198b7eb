"""Small networks in the style of what runs on devices, with weights by chance: those that check_twins.py compares in all runtimes."""
import numpy as np

from pylib import plainnet


class Made(plainnet.Net):
    """A network with weights by chance: each layer adds to the last one's result."""

    def __init__(self, seed, channels):
        super().__init__(seed, opset=14)
        self.x, self.channels, self.count = "x", channels, 0

    def then(self, op, *more, **attributes):
        self.count += 1
        self.x = self.node(op, [self.x, *more], f"{op.lower()}{self.count}", **attributes)
        return self.x

    def conv(self, out, kernel=3, op="Conv", **attributes):
        group = attributes.get("group", 1)
        inside = self.channels // group
        shape = (self.channels, out, kernel, kernel) if op == "ConvTranspose" else (out, inside, kernel, kernel)
        weights = self.const(f"w{self.count}", *shape, scale=(2 / (inside * kernel * kernel)) ** 0.5)
        self.channels = out
        return self.then(op, weights, self.const(f"b{self.count}", out, scale=0.1), **{"pads": [kernel // 2] * 4, **attributes})

    def prelu(self):
        return self.then("PRelu", self.const(f"s{self.count}", self.channels, 1, 1, scale=0.3))

    def classes(self, n):
        self.then("GlobalAveragePool")
        self.then("Flatten")
        self.then("Gemm", self.const("wd", self.channels, n, scale=self.channels ** -0.5), self.const("bd", n, scale=0.1))
        self.then("Softmax", axis=1)

    def ints(self, name, *n):
        return self.const(name, value=np.array(n, np.int64))

    def end(self):
        self.nodes[-1].output[0] = "y"
        return self


def unet():
    net, kept = Made(1, 3), []
    for width in (8, 12):
        net.conv(width)
        kept.append((net.then("Relu"), width))
        net.then("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    net.conv(16)
    net.then("Relu")
    for side, width in reversed(kept):
        net.conv(width, 2, "ConvTranspose", strides=[2, 2], pads=[0] * 4)
        net.then("Concat", side, axis=1)
        net.channels += width
        net.conv(width)
        net.then("Relu")
    net.conv(1, 1)
    net.then("Sigmoid")
    return net.end(), (3, 24, 32)


def residual():
    net = Made(2, 3)
    net.conv(8, strides=[2, 2])
    x = net.prelu()
    for _ in range(2):
        net.conv(8)
        net.prelu()
        net.conv(8)
        net.then("Add", x)
        x = net.prelu()
    net.classes(7)
    return net.end(), (3, 33, 33)


def wake_word():
    net = Made(3, 1)
    net.conv(12, 5, strides=[2, 2])
    net.then("HardSwish")
    for _ in range(2):
        net.conv(12, group=12)
        net.then("Relu")
        net.conv(12, 1)
        net.then("HardSwish")
    net.classes(2)
    return net.end(), (1, 49, 13)


def odd(seed):
    """Kernels, strides, pads, groups and sizes by chance."""
    net, rng = Made(seed, 3), np.random.default_rng(seed)
    for _ in range(4):
        kernel, group = int(rng.integers(1, 5)), int(rng.choice([1, 1, net.channels]))
        net.conv(net.channels if group > 1 else int(rng.integers(1, 14)), kernel, group=group, strides=[int(n) for n in rng.integers(1, 3, 2)],
                 pads=[int(n) for n in rng.integers(0, kernel, 4)], dilations=[1, 1])
        net.then(str(rng.choice(["Relu", "Sigmoid", "Tanh", "HardSwish", "LeakyRelu"])))
    net.classes(int(rng.integers(2, 9)))
    return net.end(), (3, int(rng.integers(29, 47)), int(rng.integers(29, 47)))


def lstm():
    """Two layers over sequences, of which the second gives its last step."""
    net = Made(5, 12)
    net.then("Transpose", perm=[1, 0, 2])
    for k, (inside, units) in enumerate(((12, 20), (20, 9))):
        weights = [net.const(f"{n}{k}", 1, *shape, scale=inside ** -0.5) for n, shape in (("w", (4 * units, inside)), ("r", (4 * units, units)), ("b", (8 * units,)))]
        net.node("LSTM", [net.x, *weights], [f"steps{k}"] if k == 0 else ["", f"last{k}"], name=f"lstm{k}", hidden_size=units)
        net.x = net.node("Squeeze", [f"steps{k}" if k == 0 else f"last{k}", net.ints(f"axis{k}", 1 - k)], f"squeezed{k}")
    net.then("Gemm", net.const("wd", 9, 6, scale=1 / 3), net.const("bd", 6, scale=0.1))
    net.then("Softmax", axis=1)
    return net.end(), (25, 12)


def squeezed():
    """Inverted residuals as in MobileNetV3: squeeze-and-excitation by HardSigmoid, and h-swish as exporters write it."""
    net = Made(21, 3)

    def hard_swish():
        x = net.x
        net.then("Add", net.const(f"three{net.count}", value=np.float32(3)))
        net.then("Clip", net.const(f"lo{net.count}", value=np.float32(0)), net.const(f"hi{net.count}", value=np.float32(6)))
        net.then("Mul", x)
        net.then("Div", net.const(f"six{net.count}", value=np.float32(6)))

    net.conv(8, strides=[2, 2])
    hard_swish()
    for out, wide, kernel, stride, excited in ((8, 16, 3, 1, True), (12, 24, 5, 2, False), (12, 36, 5, 1, True)):
        x, inside = net.x, net.channels
        net.conv(wide, 1)
        net.then("Relu")
        y = net.conv(wide, kernel, group=wide, strides=[stride, stride])
        if excited:
            net.then("GlobalAveragePool")
            net.conv(8, 1)
            net.then("Relu")
            net.conv(wide, 1)
            net.then("HardSigmoid", alpha=1 / 6, beta=0.5)
            net.then("Mul", y)
        hard_swish()
        net.conv(out, 1)
        if stride == 1 and inside == out:
            net.then("Add", x)
    net.classes(6)
    return net.end(), (3, 40, 36)


def causal():
    """Convolutions of one axis over the past, ever further apart, beside residuals; the last step decides."""
    net = Made(22, 6)
    for dilation in (1, 2, 4):
        x, inside = net.x, net.channels
        for _ in range(2):
            net.then("Pad", net.ints(f"pads{net.count}", 0, 0, 2 * dilation, 0, 0, 0))
            weights, bias = net.const(f"w{net.count}", 12, net.channels, 3, scale=(2 / (3 * net.channels)) ** 0.5), net.const(f"b{net.count}", 12, scale=0.1)
            net.then("Conv", weights, bias, dilations=[dilation])
            net.then("Relu")
            net.channels = 12
        if inside == net.channels:
            net.then("Add", x)
            net.then("Relu")
    net.then("Slice", *(net.ints(name, n) for name, n in (("begin", -1), ("behind", 2**40), ("along", 2))))
    net.then("Squeeze", net.ints("gone", 2))
    net.then("Gemm", net.const("wd", 12, 4, scale=0.3), net.const("bd", 4, scale=0.1))
    return net.end(), (6, 40)


def detector():
    """As small YOLOs: a Focus layer, swish, channels that part and meet, pools of stride 1, and a finer grid from a coarser one."""
    net = Made(23, 3)

    def every_other(x, k, axis):
        bounds = [net.ints(f"{name}{axis}{k}{net.count}", n) for name, n in (("from", k), ("to", 2**40), ("axis", axis), ("step", 2))]
        net.count += 1
        return net.node("Slice", [x, *bounds], f"slice{net.count}")

    def swish():
        x = net.x
        net.then("Sigmoid")
        net.then("Mul", x)

    parts = [every_other(every_other("x", row, 2), column, 3) for row, column in ((0, 0), (1, 0), (0, 1), (1, 1))]
    net.x, net.channels = net.node("Concat", parts, "focused", axis=1), 12
    net.conv(8)
    swish()
    fine = net.conv(16, strides=[2, 2])
    halves = net.node("Split", [fine, net.ints("halves", 8, 8)], ["left", "right"], axis=1)
    net.x, net.channels = halves[1], 8
    net.conv(8)
    swish()
    net.then("Add", halves[1])
    net.then("Concat", halves[0], axis=1)
    net.channels = 16
    x = net.x
    net.then("MaxPool", kernel_shape=[5, 5], strides=[1, 1], pads=[2] * 4)
    side = net.then("Concat", x, axis=1)
    net.channels = 32
    net.conv(16, strides=[2, 2])
    swish()
    net.then("Resize", "", net.const("larger", value=np.array([1, 1, 2, 2], np.float32)), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    net.then("Concat", side, axis=1)
    net.channels = 48
    net.conv(10, 1)
    net.then("Sigmoid")
    return net.end(), (3, 32, 40)


def resized():
    """A UNet that grows by interpolation, with LeakyRelu."""
    net = Made(24, 3)
    net.conv(8)
    side = net.then("LeakyRelu", alpha=0.1)
    net.then("AveragePool", kernel_shape=[2, 2], strides=[2, 2])
    net.conv(12, dilations=[2, 2], pads=[2] * 4)
    net.then("LeakyRelu", alpha=0.1)
    net.then("Resize", "", net.const("larger", value=np.array([1, 1, 2, 2], np.float32)), mode="linear", coordinate_transformation_mode="half_pixel")
    net.then("Concat", side, axis=1)
    net.channels = 20
    net.conv(8)
    net.then("LeakyRelu", alpha=0.1)
    net.conv(2, 1)
    net.then("Softmax", axis=1)
    return net.end(), (3, 24, 28)


def encoder():
    """Attention of two heads and a dense part, without normalizations, which runtimes sum up each in its own order."""
    net, wide, heads, steps = Made(25, 16), 16, 2, 10

    def dense(x, out, name):
        inside = wide if name != "down" else 2 * wide
        x = net.node("MatMul", [x, net.const(f"w{name}", inside, out, scale=inside ** -0.5)], f"product_{name}")
        return net.node("Add", [x, net.const(f"b{name}", out, scale=0.1)], f"dense_{name}")

    def parted(x, name, *perm):
        x = net.node("Reshape", [x, net.ints(f"heads_{name}", -1, steps, heads, wide // heads)], f"parted_{name}")
        return net.node("Transpose", [x], f"turned_{name}", perm=list(perm))

    q, k, v = (dense("x", wide, name) for name in "qkv")
    scores = net.node("MatMul", [parted(q, "q", 0, 2, 1, 3), parted(k, "k", 0, 2, 3, 1)], "scores")
    scores = net.node("Div", [scores, net.const("root", value=np.float32((wide / heads) ** 0.5))], "scaled")
    mixed = net.node("MatMul", [net.node("Softmax", [scores], "shares", axis=-1), parted(v, "v", 0, 2, 1, 3)], "mixed")
    mixed = net.node("Transpose", [mixed], "back", perm=[0, 2, 1, 3])
    mixed = net.node("Reshape", [mixed, net.ints("whole", -1, steps, wide)], "joined")
    x = net.node("Add", ["x", dense(mixed, wide, "o")], "residual")
    up = net.node("Relu", [dense(x, 2 * wide, "up")], "bent")
    net.x = net.node("Add", [x, dense(up, wide, "down")], "sum")
    net.then("ReduceMean", axes=[1], keepdims=0)
    net.then("Gemm", net.const("wd", wide, 5, scale=0.3), net.const("bd", 5, scale=0.1))
    return net.end(), (steps, wide)


def both_ways():
    """A bidirectional LSTM."""
    net, units = Made(26, 8), 10
    net.then("Transpose", perm=[1, 0, 2])
    weights = [net.const(name, 2, *shape, scale=0.3) for name, shape in (("w", (4 * units, 8)), ("r", (4 * units, units)), ("b", (8 * units,)))]
    net.node("LSTM", [net.x, *weights], ["", "last"], name="lstm", hidden_size=units, direction="bidirectional")
    net.x = "last"
    net.then("Transpose", perm=[1, 0, 2])
    net.then("Reshape", net.ints("flat", -1, 2 * units))
    net.then("Gemm", net.const("wd", 2 * units, 6, scale=0.3), net.const("bd", 6, scale=0.1))
    return net.end(), (15, 8)


MADE = {"an LSTM": lstm, "a UNet": unet, "residual with PRelu": residual, "a wake word": wake_word, **{f"odd shapes {k}": lambda k=k: odd(k) for k in (11, 12, 13)},
        "squeeze and excitation": squeezed, "causal convolutions": causal, "a detector": detector, "a resizing UNet": resized, "an encoder": encoder,
        "an LSTM both ways": both_ways}

# Networks that are also written with activations of 16 bits; what of them has no such kernel stays float.
WIDE = ["a wake word", "a UNet", "odd shapes 11", "odd shapes 13", "mnist_cnn", "kws_dscnn", "resnet8_cifar10", "ad01_autoencoder", "mobilenet_v1_025_224"]
