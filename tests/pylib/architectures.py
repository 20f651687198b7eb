"""Small networks in the styles of exporters beyond the convolutional ones of make_zoo.py: transformers, recurrent, spectral, graphs, tables,
detectors, generators, and what ONNX Runtime's optimizer leaves of them. Random weights, seeded; samples come with them."""
import math
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper

from pylib import bodies, peer
from pylib.builder import F, Net

COUNT = 24  # samples of each
DOMAINS = {"ai.onnx.ml": 3, "com.microsoft": 1}
NETS = {}


@dataclass
class Input:
    shape: tuple
    below: int = 0      # token numbers or indices below it; 0: floats
    make: object = None  # samples from a generator and a shape


def net(opset, **inputs):
    """Registers a maker of a network with these inputs, which it gets as arguments; it returns the names of its outputs. Inputs have no
    free dimension but the first, of samples."""
    def register(make):
        NETS[make.__name__] = (make, opset, inputs)
        return make
    return register


def smooth(rng, *shape):
    """Noise of which neighbours along the last axis resemble each other, with a level and a spread of its own."""
    x = rng.normal(size=shape)
    x = x + np.roll(x, 1, -1) + np.roll(x, 2, -1)
    return (x / 1.7 * rng.uniform(0.6, 1.4) + rng.normal(0, 0.3)).astype(F)


def draw(rng, form):
    if form.make:
        return form.make(rng, *form.shape)
    if form.below:
        return rng.integers(0, form.below, form.shape)
    return smooth(rng, *form.shape)


class Built(Net):
    """Runs each node in ONNX Runtime."""

    def _run(self, node, inputs, attrs):
        infos = [helper.make_tensor_value_info(i, helper.np_dtype_to_tensor_dtype(self.value[i].dtype), self.value[i].shape)
                 for i in dict.fromkeys(i for i in inputs if i)]
        graph = helper.make_graph([node], "one", infos, [helper.make_empty_tensor_value_info(o) for o in node.output])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset), *(helper.make_opsetid(d, v) for d, v in DOMAINS.items())],
                                  ir_version=self.ir)
        return peer.session(model.SerializeToString(), optimize=False).run(None, {i: self.value[i] for i in inputs if i})

    def done(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.inits)
        domains = sorted({node.domain for node in self.nodes} - {""})
        imports = [helper.make_opsetid("", self.opset), *(helper.make_opsetid(d, DOMAINS[d]) for d in domains)]
        made = helper.make_model(graph, ir_version=self.ir, producer_name="octet architectures", opset_imports=imports)
        onnx.checker.check_model(made, full_check=True)
        return made


# ---- parts

def table(n, rows, width):
    return n.const(n.rng.standard_t(5, (rows, width)) * 0.5)


def layer_norm(n, x, form="op"):
    width = n.shape(x)[-1]
    scale, bias = n.const(n.rng.uniform(0.6, 1.4, width)), n.const(n.rng.normal(0, 0.2, width))
    if form == "op":
        return n.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)
    d = n.op("Sub", x, n.mean(x, [-1]))
    v = n.op("Sqrt", n.op("Add", n.mean(n.op("Pow", d, n.const(2)), [-1]), n.const(1e-5)))
    return n.op("Add", n.op("Mul", n.op("Div", d, v), scale), bias)


def rms_norm(n, x):
    v = n.op("Add", n.mean(n.op("Pow", x, n.const(2)), [-1]), n.const(1e-6))
    x = n.op("Mul", x, n.op("Reciprocal", n.op("Sqrt", v)))
    return n.op("Mul", n.const(n.rng.uniform(0.6, 1.4, n.shape(x)[-1])), x)


def heads_of(n, x, heads):
    _, length, width = n.shape(x)
    return n.op("Transpose", n.reshape(x, -1, length, heads, width // heads), perm=[0, 2, 1, 3])


def attend(n, q, k, v, bias=None, scaled=True):
    """[batch][heads][length][d] each; bias is added to the scores. Gives [batch][length][width]."""
    _, heads, length, d = n.shape(q)
    s = n.op("MatMul", q, n.op("Transpose", k, perm=[0, 1, 3, 2]))
    s = n.op("Mul", s, n.const(d ** -0.5)) if scaled else s
    s = n.op("Add", s, bias) if bias else s
    y = n.op("MatMul", n.op("Softmax", s, axis=-1), v)
    return n.reshape(n.op("Transpose", y, perm=[0, 2, 1, 3]), -1, length, heads * d)


def self_attention(n, x, heads, bias=None, **how):
    width = n.shape(x)[-1]
    q, k, v = (heads_of(n, n.matmul(x, width), heads) for _ in range(3))
    return n.matmul(attend(n, q, k, v, bias, **how), width)


def perceptron(n, x, inner, act="gelu"):
    return n.matmul(n.act(n.matmul(x, inner), act), n.shape(x)[-1])


def block(n, x, heads, inner, norm="op"):
    x = n.op("Add", x, self_attention(n, layer_norm(n, x, norm), heads))
    return n.op("Add", x, perceptron(n, layer_norm(n, x, norm), inner))


def causal(n, length, total=None):
    """Zero where a position may look, very negative elsewhere, computed as torch's exporter writes it."""
    total = total or length
    mask = n.op("Trilu", n.const(np.full((length, total), -1e9)), n.const(total - length + 1, np.int64), upper=1)
    return n.unsqueeze(mask, [0, 1])


def nhwc(n, x):
    return n.op("Transpose", x, perm=[0, 2, 3, 1])


def nchw(n, x):
    return n.op("Transpose", x, perm=[0, 3, 1, 2])


def recurrent(n, kind, x, hidden, directions=2):
    """x[length][batch][width] -> [length][batch][directions x hidden]."""
    length, _, width = n.shape(x)
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    w, r, b = (n.const(n.rng.normal(0, spread, s)) for spread, s in (
        (1.2 / math.sqrt(width), (directions, gates * hidden, width)), (1 / math.sqrt(hidden), (directions, gates * hidden, hidden)),
        (0.1, (directions, 2 * gates * hidden))))
    more = {"linear_before_reset": 1} if kind == "GRU" else {}
    y, *_ = n.op(kind, x, w, r, b, outs=2, hidden_size=hidden, direction=("forward", "bidirectional")[directions - 1], **more)
    return n.reshape(n.op("Transpose", y, perm=[0, 2, 1, 3]), length, -1, directions * hidden)


# ---- vision

@net(18, image=Input((3, 32, 32)))
def vit(n, x):
    """Patches by a Conv, a class token that is expanded and put in front."""
    x = n.conv(x, 64, 8, 8, bn=False, pad=[0] * 4)
    x = n.op("Transpose", n.reshape(x, -1, 64, 16), perm=[0, 2, 1])
    rows = n.op("Shape", x, start=0, end=1)
    token = n.op("Expand", n.const(n.rng.normal(size=(1, 1, 64))), n.op("Concat", rows, n.ints(1, 64), axis=0))
    x = n.op("Add", n.op("Concat", token, x, axis=1), n.const(n.rng.normal(0, 0.3, (1, 17, 64))))
    for _ in range(2):
        x = block(n, x, 4, 128)
    return [n.fc(n.op("Gather", layer_norm(n, x), n.const(0, np.int64), axis=1), 20, deviation=3)]


@net(17, image=Input((3, 32, 32)))
def swin(n, x):
    """Windows of cells, in every second block rolled by slices, with relative biases; then cells are merged."""
    x = nhwc(n, n.conv(x, 32, 4, 4, bn=False, pad=[0] * 4))

    def roll(y, by):
        for axis in (1, 2):
            y = n.op("Concat", n.slice(y, [by], [1 << 40], [axis]), n.slice(y, [0], [by], [axis]), axis=axis)
        return y
    for shifted in (0, 2):
        y = layer_norm(n, x)
        y = roll(y, shifted) if shifted else y
        y = n.op("Transpose", n.reshape(y, -1, 2, 4, 2, 4, 32), perm=[0, 1, 3, 2, 4, 5])
        y = self_attention(n, n.reshape(y, -1, 16, 32), 4, n.const(n.rng.normal(0, 0.3, (1, 4, 16, 16))))
        y = n.reshape(n.op("Transpose", n.reshape(y, -1, 2, 2, 4, 4, 32), perm=[0, 1, 3, 2, 4, 5]), -1, 8, 8, 32)
        y = roll(y, -shifted) if shifted else y
        x = n.op("Add", x, y)
        x = n.op("Add", x, perceptron(n, layer_norm(n, x), 96))
    parts = [n.slice(x, [i, j], [8, 8], [1, 2], [2, 2]) for i in (0, 1) for j in (0, 1)]
    x = n.matmul(layer_norm(n, n.op("Concat", *parts, axis=-1)), 64, bias=False)
    return [n.fc(n.mean(x, [1, 2], keep=0), 20, deviation=3)]


@net(13, image=Input((3, 32, 32)))
def mlp_mixer(n, x):
    x = n.op("Transpose", n.reshape(n.conv(x, 64, 8, 8, bn=False, pad=[0] * 4), -1, 64, 16), perm=[0, 2, 1])
    for _ in range(3):
        y = n.op("Transpose", layer_norm(n, x, "parts"), perm=[0, 2, 1])
        x = n.op("Add", x, n.op("Transpose", perceptron(n, y, 32), perm=[0, 2, 1]))
        x = n.op("Add", x, perceptron(n, layer_norm(n, x, "parts"), 128))
    return [n.fc(n.mean(x, [1], keep=0), 20, deviation=3)]


@net(15, image=Input((32, 32, 3)))
def keras_separable(n, x):
    """tf2onnx: Transposes at the borders, folded normalisation as Mul and Add, Reshape of depthwise kernels, Squeeze."""
    x = n.conv(nchw(n, x), 24, 3, 2, bn="mul", act="relu6", pad=[0, 0, 1, 1])
    for c, stride in ((32, 2), (64, 1), (64, 2)):
        x = n.conv(x, n.channels(x), 3, stride, group="dw", bn="mul", act="relu6")
        x = n.conv(x, c, 1, bn="mul", act="relu6")
    x = n.squeeze(n.mean(nhwc(n, x), [1, 2]), [1, 2])
    return [n.op("Softmax", n.matmul(x, 20), axis=-1)]


@net(15, image=Input((28, 28, 1)))
def keras_autoencoder(n, x):
    x = n.conv(nchw(n, x), 16, 3, 2, bn=False, act="relu")
    x = n.conv(x, 24, 3, 2, bn=False, act="relu")
    x = n.matmul(n.reshape(nhwc(n, x), -1, 7 * 7 * 24), 32)
    x = nchw(n, n.reshape(n.act(n.matmul(x, 7 * 7 * 24), "relu"), -1, 7, 7, 24))
    for c in (24, 16):
        x = n.conv(n.resize(x, 2.0), c, 3, bn=False, act="relu")
    return [nhwc(n, n.conv(x, 1, 3, bn=False, act="sigmoid"))]


@net(11, image=Input((3, 32, 96)))
def paddle_ocr(n, x):
    """PaddlePaddle: scale as Mul and Add, gates as Clip and Div, sizes by Shape and Slice, a Softmax over the width."""
    def scaled(y, a, b):
        return n.op("Add", n.op("Mul", y, n.const([a])), n.const([b]))
    x = n.conv(x, 16, 3, 2, act="hswish_div")
    for c in (24, 32):
        y = n.conv(n.conv(x, n.channels(x) * 2, 1, act="hswish_div"), n.channels(x) * 2, 3, group="dw", act="hswish_div")
        s = n.conv(n.conv(n.gap(y), 8, 1, bn=False, act="relu"), n.channels(y), 1, bn=False)
        y = n.op("Mul", y, n.clip(scaled(s, 0.2, 0.5), 0, 1))
        x = n.pool(n.conv(y, c, 1), 2)
    x = n.squeeze(n.op("MaxPool", x, kernel_shape=[4, 1], strides=[4, 1]), [2])
    x = n.matmul(n.op("Transpose", x, perm=[0, 2, 1]), 64)
    return [n.op("Softmax", n.matmul(n.op("Relu", x), 40), axis=2)]


@net(12, image=Input((1, 32, 64)))
def crnn(n, x):
    for c, k in ((16, 2), (32, 2)):
        x = n.pool(n.conv(x, c, 3, act="relu"), k)
    x = n.conv(x, 64, (8, 1), pad=[0] * 4, act="relu")
    x = n.op("Transpose", n.squeeze(x, [2]), perm=[2, 0, 1])
    x = recurrent(n, "LSTM", x, 32)
    return [n.op("Transpose", n.matmul(recurrent(n, "LSTM", x, 32), 30), perm=[1, 0, 2])]


@net(12, image=Input((3, 64, 64)))
def detector(n, x):
    """Heads on two levels, boxes decoded with Exp."""
    levels = []
    for c in (16, 24, 32, 48):
        x = n.conv(x, c, 3, 2, act="relu")
        levels.append(x)
    top = n.conv(levels[3], 32, 1)
    low = n.op("Add", n.conv(levels[2], 32, 1), n.resize(top, 2.0))
    scores, boxes = [], []
    for y in (low, top):
        h, w = n.shape(y)[2:]
        y = n.conv(y, 32, 3, act="relu")
        for out, channels in ((scores, 3), (boxes, 4)):
            out.append(n.reshape(nhwc(n, n.conv(y, channels, 3, bn=False)), -1, h * w, channels))
    scores = n.op("Sigmoid", n.op("Concat", *scores, axis=1))
    boxes = n.op("Concat", *boxes, axis=1)
    center, size = n.split(boxes, [2, 2], 2)
    half = n.op("Mul", n.op("Exp", n.clip(size, -3, 3)), n.const(4.0))
    boxes = n.op("Concat", n.op("Sub", center, half), n.op("Add", center, half), axis=2)
    return [boxes, scores]


@net(16, image=Input((3, 32, 32)))
def spatial_transformer(n, x):
    """A small network says how a grid is turned, GridSample reads the picture there."""
    y = n.pool(n.conv(x, 12, 5, 2, bn=False, act="relu"), 2)
    y = n.fc(n.op("Flatten", y), 6)
    y = n.op("Add", n.op("Mul", y, n.const(0.1)), n.const([1, 0, 0, 0, 1, 0]))
    at = np.linspace(-1, 1, 24)
    grid = np.stack([*np.meshgrid(at, at), np.ones((24, 24))], -1).reshape(-1, 3).T
    g = n.op("MatMul", n.reshape(y, -1, 2, 3), n.const(grid))
    g = n.reshape(n.op("Transpose", g, perm=[0, 2, 1]), -1, 24, 24, 2)
    x = n.op("GridSample", x, g, align_corners=1)
    return [n.fc(n.op("Flatten", n.gap(n.conv(n.conv(x, 24, 3, 2, act="relu"), 48, 3, 2, act="relu"))), 10, deviation=3)]


@net(13, noise=Input((1, 48)))
def gan(n, x):
    """A generator: a product, then transposed convolutions with normalisation, Tanh."""
    x = n.reshape(n.matmul(n.squeeze(x, [1]), 32 * 16, bias=False), -1, 32, 4, 4)
    x = n.op("Relu", n.bn(x))
    for c, act in ((24, "relu"), (16, "relu"), (3, "tanh")):
        w = n.const(n.rng.normal(0, np.sqrt(0.6 / n.channels(x)), (n.channels(x), c, 4, 4)))
        x = n.op("ConvTranspose", x, w, kernel_shape=[4, 4], strides=[2, 2], pads=[1] * 4)
        x = n.act(n.bn(x) if c > 3 else x, act)
    return [x]


@net(17, image=Input((1, 28, 28)))
def vae(n, x):
    x = n.fc(n.op("Flatten", x), 128, act="relu")
    mean, log = n.fc(x, 16), n.fc(x, 16)
    noise = n.const(n.rng.normal(size=(1, 16)))
    z = n.op("Add", mean, n.op("Mul", n.op("Exp", n.op("Mul", log, n.const(0.5))), noise))
    y = n.op("Sigmoid", n.fc(n.fc(z, 128, act="relu"), 784))
    return [n.reshape(y, -1, 1, 28, 28), mean, log]


# ---- language

@net(14, ids=Input((16,), 100), kinds=Input((16,), 2), mask=Input((16,), make=lambda rng, k: (np.arange(k) < rng.integers(8, k + 1)).astype(np.int64)))
def bert(n, ids, kinds, mask):
    """Normalisation in parts, the mask as Unsqueeze, Cast, Sub, Mul; a pooler."""
    x = n.op("Add", n.op("Gather", table(n, 100, 64), ids), n.op("Gather", table(n, 2, 64), kinds))
    x = layer_norm(n, n.op("Add", x, table(n, 16, 64)), "parts")
    m = n.op("Cast", n.unsqueeze(mask, [1, 2]), to=1)
    m = n.op("Mul", n.op("Sub", n.const(1.0), m), n.const(-1e4))
    for _ in range(2):
        x = layer_norm(n, n.op("Add", x, self_attention(n, x, 4, m)), "parts")
        x = layer_norm(n, n.op("Add", x, perceptron(n, x, 160)), "parts")
    first = n.op("Gather", x, n.const(0, np.int64), axis=1)
    return [x, n.op("Tanh", n.fc(first, 64))]


@net(17, ids=Input((16,), 100), mask=Input((16,), make=lambda rng, k: (np.arange(k) < rng.integers(8, k + 1)).astype(np.int32)))
def packed_attention(n, ids, mask):
    """What ONNX Runtime's transformer tools make of an encoder: com.microsoft's Attention with the weights of queries, keys and values, the second with
    sizes of its own and causal."""
    x = n.op("Gather", table(n, 100, 64), ids)
    for sizes, more in ([64, 64, 64], {}), ([32, 32, 64], {"unidirectional": 1, "scale": 0.3}):
        w = n.const(n.rng.normal(0, 0.15, (64, sum(sizes))))
        y = n.op("Attention", layer_norm(n, x), w, n.const(n.rng.normal(0, 0.2, sum(sizes))), mask, domain="com.microsoft", num_heads=4,
                 qkv_hidden_sizes=sizes, **more)
        x = n.op("Add", x, n.matmul(y, 64))
        x = n.op("Add", x, perceptron(n, layer_norm(n, x), 160))
    return [x]


@net(17, ids=Input((6,), 200), past_key=Input((4, 10, 16)), past_value=Input((4, 10, 16)))
def gpt(n, ids, past_key, past_value):
    """One layer with a cache of keys and values, a causal mask and a Split of one product; the table of tokens is the last product's."""
    words = n.rng.standard_t(5, (200, 64)) * 0.4
    x = n.op("Add", n.op("Gather", n.const(words), ids), table(n, 6, 64))
    q, k, v = (heads_of(n, part, 4) for part in n.split(n.matmul(layer_norm(n, x), 192), [64] * 3, 2))
    k, v = n.op("Concat", past_key, k, axis=2), n.op("Concat", past_value, v, axis=2)
    x = n.op("Add", x, n.matmul(attend(n, q, k, v, causal(n, 6, 16)), 64))
    x = n.op("Add", x, perceptron(n, layer_norm(n, x), 256, "gelu_tanh"))
    return [n.op("MatMul", layer_norm(n, x), n.const(words.T.copy())), k, v]


@net(17, ids=Input((12,), 300))
def llama(n, ids):
    """RMS normalisation, rotary positions, fewer keys than queries, SwiGLU, no biases; the table is turned for the last product."""
    words = n.const(n.rng.standard_t(5, (300, 64)) * 0.4)
    x = n.op("Gather", words, ids)
    angle = np.arange(12)[:, None] * 100.0 ** (-np.arange(8) / 8)
    cos, sin = (n.const(np.concatenate([f(angle)] * 2, -1)) for f in (np.cos, np.sin))

    def turned(y):
        a, b = n.slice(y, [0], [8], [3]), n.slice(y, [8], [1 << 40], [3])
        return n.op("Add", n.op("Mul", y, cos), n.op("Mul", n.op("Concat", n.op("Neg", b), a, axis=-1), sin))

    def repeated(y):
        y = n.op("Expand", n.unsqueeze(y, [2]), n.ints(1, 1, 2, 1, 1))
        return n.reshape(y, -1, 4, 12, 16)
    for _ in range(2):
        y = rms_norm(n, x)
        q = turned(heads_of(n, n.matmul(y, 64, bias=False), 4))
        k = repeated(turned(heads_of(n, n.matmul(y, 32, bias=False), 2)))
        v = repeated(heads_of(n, n.matmul(y, 32, bias=False), 2))
        x = n.op("Add", x, n.matmul(attend(n, q, k, v, causal(n, 12)), 64, bias=False))
        y = rms_norm(n, x)
        y = n.op("Mul", n.act(n.matmul(y, 160, bias=False), "silu"), n.matmul(y, 160, bias=False))
        x = n.op("Add", x, n.matmul(y, 64, bias=False))
    return [n.op("MatMul", rms_norm(n, x), n.op("Transpose", words, perm=[1, 0]))]


@net(14, ids=Input((10,), 80), target=Input((7,), 80))
def t5(n, ids, target):
    """Encoder and decoder; biases by distance, picked from a table by computed buckets; scores that are not scaled."""
    words = table(n, 80, 48)

    def distances(length):
        at = n.const(np.clip(np.arange(length)[None] - np.arange(length)[:, None] + 8, 0, 15), np.int64)
        return n.unsqueeze(n.op("Transpose", n.op("Gather", table(n, 16, 4), at), perm=[2, 0, 1]), [0])

    def stack(x, bias, memory=None):
        y = rms_norm(n, x)
        x = n.op("Add", x, self_attention(n, y, 4, bias, scaled=False))
        if memory:
            q = heads_of(n, n.matmul(rms_norm(n, x), 48, bias=False), 4)
            k, v = (heads_of(n, n.matmul(memory, 48, bias=False), 4) for _ in range(2))
            x = n.op("Add", x, n.matmul(attend(n, q, k, v, scaled=False), 48, bias=False))
        y = n.op("Relu", n.matmul(rms_norm(n, x), 128, bias=False))
        return n.op("Add", x, n.matmul(y, 48, bias=False))
    memory = rms_norm(n, stack(n.op("Gather", words, ids), distances(10)))
    y = stack(n.op("Gather", words, target), n.op("Add", distances(7), causal(n, 7)), memory)
    return [n.matmul(rms_norm(n, y), 80, bias=False)]


@net(17, ids=Input((12,), 60))
def experts(n, ids):
    """A mixture of experts: TopK of a gate's Softmax, put back with ScatterElements; all experts run as a batch of matrices."""
    x = n.op("Gather", table(n, 60, 48), ids)
    for _ in range(2):
        y = layer_norm(n, x)
        gate = n.op("Softmax", n.matmul(y, 4, bias=False), axis=-1)
        best, at = n.op("TopK", gate, n.ints(2), outs=2, axis=-1)
        best = n.op("Div", best, n.op("ReduceSum", best, n.ints(-1), keepdims=1))
        gate = n.op("ScatterElements", n.op("Mul", gate, n.const(0.0)), at, best, axis=-1)
        h = n.unsqueeze(y, [1])
        for k, m, act in ((48, 64, "silu"), (64, 48, None)):
            h = n.act(n.op("MatMul", h, n.const(n.rng.normal(0, 1.3 / np.sqrt(k), (4, k, m)))), act)
        h = n.op("Mul", h, n.unsqueeze(n.op("Transpose", gate, perm=[0, 2, 1]), [3]))
        x = n.op("Add", x, n.op("ReduceSum", h, n.ints(1), keepdims=0))
    return [n.matmul(layer_norm(n, x), 60)]


@net(13, ids=Input((14,), 80))
def lstm_tagger(n, ids):
    x = n.op("Gather", table(n, 80, 32), n.op("Transpose", ids, perm=[1, 0]))
    x = recurrent(n, "LSTM", recurrent(n, "LSTM", x, 40), 40)
    return [n.op("LogSoftmax", n.op("Transpose", n.matmul(x, 12), perm=[1, 0, 2]), axis=-1)]


@net(13, ids=Input((14,), 80))
def gru_tagger(n, ids):
    x = n.op("Gather", table(n, 80, 32), n.op("Transpose", ids, perm=[1, 0]))
    return [n.op("Transpose", n.matmul(recurrent(n, "GRU", x, 48), 12), perm=[1, 0, 2])]


@net(13, ids=Input((20,), 90))
def text_cnn(n, ids):
    x = n.op("Transpose", n.op("Gather", table(n, 90, 48), ids), perm=[0, 2, 1])
    parts = [n.op("ReduceMax", n.conv(x, 32, k, pad=[0, 0], bn=False, act="relu"), axes=[2], keepdims=0) for k in (3, 4, 5)]
    return [n.fc(n.dropout(n.op("Concat", *parts, axis=1)), 6, deviation=3)]


# ---- sound

def group_norm(n, x, groups):
    c = n.channels(x)
    shape = n.shape(x)[1:]
    y = n.reshape(x, -1, groups, math.prod(shape) // groups)
    y = n.op("InstanceNormalization", y, n.const(np.ones(groups)), n.const(np.zeros(groups)), epsilon=1e-5)
    column = (c,) + (1,) * (len(shape) - 1)
    y = n.op("Mul", n.reshape(y, -1, *shape), n.const(n.rng.uniform(0.6, 1.4, column)))
    return n.op("Add", y, n.const(n.rng.normal(0, 0.2, column)))


@net(13, audio=Input((1, 1600)))
def wav2vec(n, x):
    x = n.act(group_norm(n, n.conv(x, 48, 10, 5, bn=False, pad=[0, 0]), 48), "gelu")
    for k in (8, 4, 4):
        x = n.act(n.conv(x, 48, k, 2 if k == 4 else 4, bn=False, pad=[0, 0]), "gelu")
    x = layer_norm(n, n.op("Transpose", x, perm=[0, 2, 1]), "parts")
    x = n.matmul(x, 64)
    y = n.op("Transpose", n.conv(n.op("Transpose", x, perm=[0, 2, 1]), 64, 5, group=8, bn=False, act="relu"), perm=[0, 2, 1])
    x = block(n, n.op("Add", x, y), 4, 128, "parts")
    return [n.matmul(x, 30)]


@net(17, features=Input((40, 32)))
def conformer(n, x):
    x = n.matmul(n.op("Transpose", x, perm=[0, 2, 1]), 48)
    for _ in range(2):
        x = n.op("Add", x, n.op("Mul", perceptron(n, layer_norm(n, x), 96, "silu"), n.const(0.5)))
        x = n.op("Add", x, self_attention(n, layer_norm(n, x), 4))
        y = n.conv(n.op("Transpose", layer_norm(n, x), perm=[0, 2, 1]), 96, 1, bn=False)
        a, b = n.split(y, [48, 48])
        y = n.op("Mul", a, n.op("Sigmoid", b))
        y = n.conv(n.conv(y, 48, 7, group="dw", act="silu"), 48, 1, bn=False)
        x = n.op("Add", x, n.op("Transpose", y, perm=[0, 2, 1]))
        x = layer_norm(n, n.op("Add", x, n.op("Mul", perceptron(n, layer_norm(n, x), 96, "silu"), n.const(0.5))))
    return [n.op("LogSoftmax", n.matmul(x, 30), axis=-1)]


@net(13, mixture=Input((1, 800)))
def conv_tasnet(n, x):
    coded = n.conv(x, 48, 16, 8, bn=False, pad=[0, 0], act="relu")
    y = n.conv(group_norm(n, coded, 1), 32, 1, bn=False)
    for d in (1, 2, 4):
        z = group_norm(n, n.conv(y, 64, 1, bn=False, act="prelu"), 1)
        z = group_norm(n, n.conv(z, 64, 3, group="dw", dilation=d, bn=False, act="prelu"), 1)
        y = n.op("Add", y, n.conv(z, 32, 1, bn=False))
    t = n.shape(y)[2]
    masks = n.reshape(n.conv(y, 96, 1, bn=False, act="sigmoid"), -1, 2, 48, t)
    y = n.reshape(n.op("Mul", masks, n.unsqueeze(coded, [1])), -1, 48, t)
    y = n.op("ConvTranspose", y, n.const(n.rng.normal(0, 0.1, (48, 1, 16))), kernel_shape=[16], strides=[8])
    return [n.reshape(y, -1, 2, 800)]


@net(11, series=Input((8, 128)))
def tcn(n, x):
    for d in (1, 2, 4):
        y = x
        for _ in range(2):
            y = n.pad(y, [0, 0, 2 * d, 0, 0, 0])
            y = n.conv(y, 32, 3, dilation=d, pad=[0, 0], bn=False, act="relu")
        x = n.op("Relu", n.op("Add", y, x if n.channels(x) == 32 else n.conv(x, 32, 1, bn=False)))
    return [n.fc(n.op("Gather", x, n.const(-1, np.int64), axis=2), 5)]


@net(13, audio=Input((1, 1024)))
def spectrogram(n, x):
    """Sines and cosines as a Conv, power, bands as a product, Log, a small network."""
    at = np.arange(128)
    window = np.hanning(128)
    waves = np.concatenate([f(2 * np.pi * np.arange(65)[:, None] * at / 128) * window for f in (np.cos, np.sin)])
    y = n.op("Conv", x, n.const(waves[:, None]), kernel_shape=[128], strides=[32])
    re, im = n.split(y, [65, 65])
    power = n.op("Add", n.op("Mul", re, re), n.op("Mul", im, im))
    centers = np.linspace(0, 64, 26)
    bands = np.maximum(0, 1 - np.abs(np.arange(65)[None] - centers[1:-1, None]) / (centers[1] - centers[0]))
    y = n.op("MatMul", n.const(bands), power)
    y = n.op("Log", n.op("Add", y, n.const(1e-5)))
    y = n.unsqueeze(y, [1])
    for c in (16, 32, 48):
        y = n.conv(y, c, 3, 2, act="relu")
    return [n.fc(n.op("Flatten", n.gap(y)), 10, deviation=3)]


# ---- tables, points, graphs

@net(13, points=Input((3, 96)))
def pointnet(n, x):
    y = n.conv(n.conv(x, 32, 1, act="relu"), 64, 1, act="relu")
    y = n.fc(n.op("ReduceMax", y, axes=[2], keepdims=0), 9)
    turn = n.op("Add", n.reshape(n.op("Mul", y, n.const(0.2)), -1, 3, 3), n.const(np.eye(3)))
    x = n.op("Transpose", n.op("MatMul", n.op("Transpose", x, perm=[0, 2, 1]), turn), perm=[0, 2, 1])
    x = n.conv(n.conv(n.conv(x, 32, 1, act="relu"), 64, 1, act="relu"), 128, 1)
    x = n.op("ReduceMax", x, axes=[2], keepdims=0)
    return [n.op("LogSoftmax", n.fc(n.dropout(n.fc(x, 64, act="relu")), 10, deviation=3), axis=-1)]


@net(16, nodes=Input((20, 24)))
def graph_conv(n, x):
    """Messages along fixed edges: Gather of the sources, ScatterND that adds at the targets, divided by how many there are."""
    x = n.op("Transpose", x, perm=[1, 0, 2])
    source, target = n.rng.integers(0, 20, 60), n.rng.integers(0, 20, 60)
    degree = n.const((1 + np.bincount(target, minlength=20))[:, None, None])
    for c in (48, 48):
        y = n.matmul(x, c)
        sent = n.op("Gather", y, n.const(source, np.int64), axis=0)
        y = n.op("ScatterND", y, n.const(target[:, None], np.int64), sent, reduction="add")
        x = n.op("Relu", n.op("Div", y, degree))
    return [n.fc(n.mean(x, [0], keep=0), 7, deviation=3)]


@net(12, numbers=Input((13,)), kinds=Input((4,), 50))
def recommender(n, numbers, kinds):
    """Tables of kinds, a perceptron of numbers, products of all pairs."""
    y = n.fc(n.fc(numbers, 64, act="relu"), 16, act="relu")
    parts = [n.op("Gather", table(n, 50, 16), n.op("Gather", kinds, n.const(i, np.int64), axis=1)) for i in range(4)]
    z = n.op("Concat", *(n.unsqueeze(p, [1]) for p in (y, *parts)), axis=1)
    z = n.reshape(n.op("MatMul", z, n.op("Transpose", z, perm=[0, 2, 1])), -1, 25)
    z = n.op("Gather", z, n.const([5 * i + j for i in range(5) for j in range(i)], np.int64), axis=1)
    x = n.op("Concat", y, z, axis=1)
    return [n.op("Sigmoid", n.fc(n.fc(n.fc(x, 128, act="relu"), 64, act="relu"), 1))]


@net(15, features=Input((20,)))
def sklearn_scaled(n, x):
    """sklearn-onnx: a Scaler of its own domain, MatMul and Add with biases as rows, labels by ArgMax and ArrayFeatureExtractor."""
    x = n.op("Scaler", x, domain="ai.onnx.ml", offset=n.rng.normal(0, 0.3, 20).tolist(), scale=n.rng.uniform(0.5, 2, 20).tolist())
    for width in (100, 100):
        x = n.op("Relu", n.matmul(x, width))
    p = n.op("Softmax", n.op("Mul", n.matmul(x, 8), n.const(3.0)), axis=-1)
    return [p, n.op("ArgMax", p, axis=1, keepdims=0)]


# ---- writing them

def _samples(name, inputs):
    rng = np.random.default_rng([ord(c) for c in name] + [9])
    return {k: np.stack([draw(rng, form) for _ in range(COUNT)]) for k, form in inputs.items()}


def write(name, path):
    """Writes the model; its samples, {input: [sample][...]}."""
    make, opset, inputs = NETS[name]
    n = Built(name, opset, constants="nodes" if opset == 17 else "initializers")
    data = _samples(name, inputs)
    ends = make(n, *(n.input(k, v) for k, v in data.items()))
    for y in ends:
        n.output(y)
    onnx.save(n.done(), path)
    return data


def write_optimized(name, path):
    """The same behind ONNX Runtime's optimizer, with its fused operators."""
    plain = path.with_suffix(".plain.onnx")
    data = write(name, plain)
    options = ort.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED  # not the layouts of this CPU
    options.optimized_model_filepath = str(path)
    ort.InferenceSession(str(plain), options, providers=["CPUExecutionProvider"])
    return data


def write_body(make):
    def write_it(path):
        samples = make(path)
        name = onnx.load(path).graph.input[0].name
        return {name: np.concatenate(samples) if len(samples[0]) == 1 else np.stack(samples)}
    return write_it


OPTIMIZED = ("vit", "bert", "gpt", "conformer", "keras_separable", "lstm_tagger")
ALL = {name: lambda path, name=name: write(name, path) for name in NETS}
ALL |= {f"optimized-{name}": lambda path, name=name: write_optimized(name, path) for name in OPTIMIZED}
ALL |= {f"body-{make.__name__}": write_body(make) for make in (bodies.branches, bodies.loop, bodies.scan, bodies.nested)}
