"""The five networks that are timed, with seeded random weights, and samples for them.

They are written in the form PyTorch's exporter gives (opset 17, batch 1, Conv and BatchNormalization not fused). Times are valid,
accuracies are not. make(name) writes the model and its samples.
"""
import math

import numpy as np
import onnx

from octbench.networks import ENCODERS, SAMPLES, VISION, data_file, model_file
from octbench.places import OUT
from make_zoo import texture
from pylib.builder import Net

VOCABULARY, TOKENS = 30522, 128
TAGGER_VOCABULARY, TAGGER_TOKENS = 10000, 64
NORM_SAMPLES = 2      # pictures that batch normalisation takes its statistics from


# ---- convolutional networks

def resnet50(n, x):
    """He et al. 2015, with the stride in the 3x3 convolution, as is usual today. 4.1 GMAC."""
    x = n.pool(n.conv(x, 64, 7, 2, act="relu"), 3, 2, 1)
    for c, times, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(times):
            s = stride if i == 0 else 1
            y = n.conv(n.conv(x, c, 1, act="relu"), c, 3, s, act="relu")
            y = n.conv(y, 4 * c, 1)
            x = n.op("Relu", n.op("Add", y, n.conv(x, 4 * c, 1, s) if i == 0 else x))
    return n.fc(n.op("Flatten", n.gap(x)), 1000)


def mobilenetv2(n, x):
    """Sandler et al. 2018, width 1.0. 0.3 GMAC."""
    x = n.conv(x, 32, 3, 2, act="relu6")
    for expand, c, times, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                                     (6, 320, 1, 1)):
        for i in range(times):
            s = stride if i == 0 else 1
            y = n.conv(x, n.channels(x) * expand, 1, act="relu6") if expand > 1 else x
            y = n.conv(y, n.channels(y), 3, s, group="dw", act="relu6")
            y = n.conv(y, c, 1)
            x = n.op("Add", x, y) if s == 1 and n.channels(x) == c else y
    x = n.conv(x, 1280, 1, act="relu6")
    return n.fc(n.op("Flatten", n.gap(x)), 1000)


# ---- encoders

def linear(n, x, oc, deviation):
    """A layer on [1][tokens][channels], with its weights as exporters leave them: [in][out]."""
    w = n.const(n.rng.normal(0, deviation, (n.shape(x)[-1], oc)))
    return n.op("Add", n.const(np.zeros(oc)), n.op("MatMul", x, w))


def layer_norm(n, x):
    d = n.shape(x)[-1]
    return n.op("LayerNormalization", x, n.const(np.ones(d)), n.const(np.zeros(d)), axis=-1, epsilon=1e-12)


def attention(n, x, mask, heads):
    tokens, d = n.shape(x)[1:]
    split = [n.reshape(linear(n, x, d, 0.02), 1, tokens, heads, d // heads) for _ in "qkv"]
    q, v = (n.op("Transpose", t, perm=[0, 2, 1, 3]) for t in (split[0], split[2]))
    k = n.op("Transpose", split[1], perm=[0, 2, 3, 1])
    scores = n.op("Div", n.op("MatMul", q, k), n.const(math.sqrt(d // heads)))
    weights = n.op("Softmax", n.op("Add", scores, mask), axis=-1)
    mixed = n.op("Transpose", n.op("MatMul", weights, v), perm=[0, 2, 1, 3])
    return linear(n, n.reshape(mixed, 1, tokens, d), d, 0.02)


def encoder(n, ids, mask, layers, d, heads, inner):
    """BERT (Devlin et al. 2018): post-norm layers, pooler."""
    table = [n.const(n.rng.normal(0, 0.02, (rows, d))) for rows in (VOCABULARY, TOKENS, TOKENS)]
    x = n.op("Add", n.op("Add", n.op("Gather", table[0], ids, axis=0), table[1]), table[2])
    x = layer_norm(n, x)
    m = n.op("Cast", n.unsqueeze(n.unsqueeze(mask, [1]), [2]), to=onnx.TensorProto.FLOAT)
    m = n.op("Mul", n.op("Sub", n.const(1), m), n.const(-10000))
    for _ in range(layers):
        x = layer_norm(n, n.op("Add", x, attention(n, x, m, heads)))
        y = linear(n, n.act(linear(n, x, inner, 0.02), "gelu"), d, 0.02)
        x = layer_norm(n, n.op("Add", x, y))
    first = n.op("Gather", x, n.const(0, np.int64), axis=1)
    pooled = n.op("Gemm", first, n.const(n.rng.normal(0, 0.02, (d, d))), n.const(np.zeros(d)), transB=1)
    return x, n.op("Tanh", pooled)


# ---- recurrent network

def lstm(n, x, hidden):
    """One direction over [tokens][1][channels]; the initial state is zero."""
    def uniform(*shape):
        return n.const(n.rng.uniform(-1, 1, shape) / math.sqrt(hidden))
    zero = [n.const(np.zeros((1, 1, hidden))) for _ in "hc"]
    y = n.op("LSTM", x, uniform(1, 4 * hidden, n.shape(x)[-1]), uniform(1, 4 * hidden, hidden), uniform(1, 8 * hidden), "",
             *zero, hidden_size=hidden)
    return n.squeeze(y, [1])


def tagger(n, ids):
    """Embedding of 128, two LSTM layers of 512, 32 tags."""
    x = n.op("Gather", n.const(n.rng.normal(0, 0.5, (TAGGER_VOCABULARY, 128))), ids, axis=0)
    x = n.op("Transpose", x, perm=[1, 0, 2])
    x = lstm(n, lstm(n, x, 512), 512)
    return linear(n, n.op("Transpose", x, perm=[1, 0, 2]), 32, 0.05)


# ---- files

def pictures(n, data, body):
    return [("logits", body(n, n.input("input", data["input"], NORM_SAMPLES)))]


def texts(n, data, *sizes):
    made = encoder(n, n.input("input_ids", data["input_ids"]), n.input("attention_mask", data["attention_mask"]), *sizes)
    return list(zip(("hidden", "pooled"), made))


MODELS = {
    "resnet50": lambda n, data: pictures(n, data, resnet50),
    "mobilenetv2": lambda n, data: pictures(n, data, mobilenetv2),
    "minilm_l6": lambda n, data: texts(n, data, 6, 384, 12, 1536),
    "bert_base": lambda n, data: texts(n, data, 12, 768, 12, 3072),
    "lstm_tagger": lambda n, data: [("tags", tagger(n, n.input("input_ids", data["input_ids"])))],
}


def samples(name, count):
    """{input: array of `count` samples}; seeded."""
    rng = np.random.default_rng([ord(c) for c in name] + [count])
    if name in VISION:
        return {"input": np.stack([texture(rng, 3, 224, 224) for _ in range(count)])}
    if name in ENCODERS:
        ids = rng.integers(0, VOCABULARY, (count, TOKENS), dtype=np.int64)
        return {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    return {"input_ids": rng.integers(0, TAGGER_VOCABULARY, (count, TAGGER_TOKENS), dtype=np.int64)}


def make(name):
    """Writes the model and its samples into OUT. What is there already stays."""
    OUT.mkdir(exist_ok=True)
    model, data = model_file(name), data_file(name)
    if data.exists() and model.exists():
        return
    arrays = samples(name, SAMPLES)
    if not data.exists():
        np.save(data, arrays["input"]) if name in VISION else np.savez(data, **arrays)
    if not model.exists():
        n = Net(name, opset=17)
        if name not in VISION:
            n.batch = 1
        for output, value in MODELS[name](n, arrays):
            n.output(value, output)
        made = n.done()
        for value in (*made.graph.input, *made.graph.output):
            value.type.tensor_type.shape.dim[0].dim_value = 1
        onnx.save(made, model.with_suffix(".part"))
        model.with_suffix(".part").rename(model)
