"""Models whose weights are stored in unusual ways: constants that several layers share, or that the graph computes from smaller ones; denormal
numbers; tables of words; small networks of the usual shapes."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Net:
    """Nodes from input x on; constants get names."""
    def __init__(self, seed, *shape):
        self.rng, self.shape = np.random.default_rng(seed), shape
        self.nodes, self.constants, self.outputs = [], [], {}

    def const(self, value, name=None):
        value = np.asarray(value)
        value = value.astype(np.float32) if value.dtype == np.float64 else value
        name = name or f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value.copy(), name))
        return name

    def weight(self, *dims, scale=None):
        return self.const(self.rng.standard_normal(dims) * (scale or 1 / np.sqrt(np.prod(dims[1:]))))

    def op(self, kind, *inputs, **attributes):
        out = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], f"{kind.lower()}{len(self.nodes)}", **attributes))
        return out

    def ints(self, *values):
        return self.const(np.array(values, np.int64))

    def show(self, value, *dims):
        self.outputs[value] = dims

    def model(self, dtype=TensorProto.FLOAT):
        infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in self.outputs.items()]
        graph = helper.make_graph(self.nodes, "sized", [helper.make_tensor_value_info("x", dtype, self.shape)], infos, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


# ---- constants that several layers have

def shared_conv(norms=False, biases=True):
    """One kernel in six convolutions: each with a bias of its own, a BatchNormalization of its own, or neither."""
    n = Net(1, 1, 64, 8, 8)
    w, y, c = n.weight(64, 64, 3, 3), "x", 64
    for _ in range(6):
        own = [n.weight(c, scale=0.1)] if biases else []
        y = n.op("Conv", y, w, *own, pads=[1, 1, 1, 1])
        if norms:
            y = n.op("BatchNormalization", y, n.const(n.rng.uniform(0.5, 1.5, c)), n.weight(c, scale=0.1), n.weight(c, scale=0.1),
                     n.const(n.rng.uniform(0.5, 1.5, c)))
        y = n.op("Relu", y)
    n.show(y, 1, 64, 8, 8)
    return n.model()


def copied_biases():
    """Three convolutions, two of which read copies of the bias of the first, as torch's exporter writes equal parameters."""
    n = Net(2, 1, 64, 8, 8)
    bias, y = n.weight(64, scale=0.1), "x"
    for i in range(3):
        y = n.op("Conv", y, n.weight(64, 64, 3, 3), n.op("Identity", bias) if i else bias, pads=[1, 1, 1, 1])
    n.show(y, 1, 64, 8, 8)
    return n.model()


def shared_product(kind):
    """One matrix in five products."""
    wide = 128
    n = Net(2, *([1, 9, wide] if kind == "MatMul" else [9, wide]))
    w, y = n.weight(wide, wide), "x"
    for _ in range(5):
        bias = n.weight(wide, scale=0.1)
        if kind == "Gemm":
            y = n.op("Gemm", y, w, bias, transB=1)
        else:
            y = n.op("MatMul", y, w)
            y = n.op("Add", y, bias) if kind != "plain" else y
        y = n.op("Tanh", y)
    n.show(y, *n.shape)
    return n.model()


def scaled_product():
    """One matrix in five products, each of which scales its channels: as one product each that would be five matrices."""
    n = Net(3, 9, 128)
    w, y = n.weight(128, 128), "x"
    for _ in range(5):
        y = n.op("Tanh", n.op("Mul", n.op("MatMul", y, w), n.const(n.rng.uniform(0.5, 1.5, 128))))
    n.show(y, 9, 128)
    return n.model()


# ---- constants that the graph computes

def repeated(how):
    """A product by a matrix that repeats a smaller one."""
    n = Net(4, 9, 192)
    w = n.weight(192, 96)
    if how == "Tile":
        big = n.op("Tile", w, n.ints(1, 4))
    elif how == "Concat":
        big = n.op("Concat", w, w, w, w, axis=1)
    else:
        wide = n.op("Expand", n.op("Unsqueeze", w, n.ints(1)), n.ints(192, 4, 96))
        big = n.op("Reshape", wide, n.ints(192, 384))
    y = n.op("MatMul", n.op("MatMul", "x", n.weight(192, 192)), big)
    n.show(y, 9, 384)
    return n.model()


def filled():
    """Sums with what ConstantOfShape, Expand and Range make, and one layer."""
    n = Net(5, 1, 400, 96)
    y = n.op("MatMul", "x", n.weight(96, 192))
    shape = n.ints(400, 192)
    y = n.op("Add", y, n.op("ConstantOfShape", shape, value=numpy_helper.from_array(np.array([0.25], np.float32))))
    y = n.op("Mul", y, n.op("Expand", n.const(n.rng.uniform(0.5, 1.5, (1, 192))), shape))
    places = n.op("Range", n.const(np.float32(0)), n.const(np.float32(400)), n.const(np.float32(1)))
    angles = n.op("Mul", n.op("Reshape", places, n.ints(400, 1)), n.const(np.exp(-np.arange(192) / 20).reshape(1, 192)))
    y = n.op("Add", n.op("Add", y, n.op("Sin", angles)), n.op("Cos", angles))
    n.show(y, 1, 400, 192)
    return n.model()


def one_table(layer=True, kept=False):
    """Several functions of one table; kept: what reads the table itself reads it, too."""
    n = Net(6, 1, 256, 128)
    t = n.const(n.rng.uniform(0.5, 2, (256, 128)), "table")
    y = n.op("MatMul", "x", n.weight(128, 128)) if layer else "x"
    for kind in ("Neg", "Exp", "Sqrt", "Log"):
        y = n.op("Add", y, n.op(kind, t))
    y = n.op("Mul", y, t) if kept else y
    n.show(y, 1, 256, 128)
    return n.model()


def widened():
    """Weights that are stored in 16 bits and cast, in two layers and a sum."""
    n = Net(7, 1, 200, 128)
    half = lambda *dims: n.op("Cast", n.const((n.rng.standard_normal(dims) / 12).astype(np.float16)), to=TensorProto.FLOAT)
    y = n.op("Add", "x", half(200, 128))
    y = n.op("MatMul", n.op("Relu", n.op("MatMul", y, half(128, 128))), half(128, 128))
    n.show(y, 1, 200, 128)
    return n.model()


def turned():
    """One matrix as it is and transposed, as layers whose weights are tied have it; and a folded product of two thin ones."""
    n = Net(8, 9, 256)
    w = n.weight(256, 256)
    y = n.op("Relu", n.op("MatMul", "x", w))
    y = n.op("Relu", n.op("MatMul", y, n.op("Transpose", w, perm=[1, 0])))
    y = n.op("MatMul", y, n.op("MatMul", n.weight(256, 16), n.weight(16, 256)))
    n.show(y, 9, 256)
    return n.model()


def branches(kinds=("Neg", "Exp")):
    """If whose branches compute constants from a table outside."""
    n = Net(9, 1, 128, 128)
    t, y = n.const(n.rng.uniform(0.5, 2, (128, 128)), "table"), n.op("MatMul", "x", n.weight(128, 128))
    cond = n.op("Greater", n.op("ReduceSum", y, keepdims=0), n.const(np.float32(0)))
    graphs = []
    for kind in kinds:
        nodes = [helper.make_node(kind, [t], [f"{kind}_made"]), helper.make_node("MatMul", [y, f"{kind}_made"], [f"{kind}_out"])]
        graphs.append(helper.make_graph(nodes, kind, [], [helper.make_tensor_value_info(f"{kind}_out", TensorProto.FLOAT, [1, 128, 128])]))
    y = n.op("If", cond, then_branch=graphs[0], else_branch=graphs[1])
    n.show(y, 1, 128, 128)
    return n.model()


# ---- weights that are denormal numbers

def denormal():
    """Half of one matrix and a column of it, every other row of another one, and the weights of an LSTM."""
    n = Net(10, 9, 1, 128)
    draw = lambda *dims: (n.rng.standard_normal(dims) / 11).astype(np.float32)
    w, v, r = draw(128, 128), draw(128, 128), draw(1, 512, 128)
    w[n.rng.random(w.shape) < 0.5] = 3e-41
    w[:, 7] = 2e-40
    v[::2] = -1e-42
    r[..., ::3] = 1e-39
    y = n.op("MatMul", n.op("Relu", n.op("MatMul", "x", n.const(w))), n.const(v))
    y = n.op("LSTM", y, n.const(draw(1, 512, 128)), n.const(r), hidden_size=128)
    n.show(y, 9, 1, 1, 128)
    return n.model()


def held():
    """Weights and biases as nodes that hold them, as some exporters write all constants."""
    n = Net(13, 1, 128)
    hold = lambda *dims: n.op("Constant", value=numpy_helper.from_array((n.rng.standard_normal(dims) / np.sqrt(dims[0])).astype(np.float32)))
    y = n.op("Relu", n.op("Gemm", "x", hold(128, 256), hold(256)))
    n.show(n.op("Gemm", y, hold(256, 128), hold(128)), 1, 128)
    return n.model()


# ---- recurrent layers that have no integer form

def recurrent(kind, gates, hidden=96, inputs=64, length=9):
    """Forwards and backwards, then one more."""
    n = Net(12, 1, length, inputs)
    y, wide = n.op("Transpose", "x", perm=[1, 0, 2]), inputs
    for directions, attributes in ((2, {"direction": "bidirectional"}), (1, {})):
        y = n.op(kind, y, n.weight(directions, gates * hidden, wide, scale=0.1), n.weight(directions, gates * hidden, hidden, scale=0.1),
                 n.weight(directions, 2 * gates * hidden, scale=0.1), hidden_size=hidden, **attributes)
        wide = directions * hidden
        y = n.op("Reshape", n.op("Transpose", y, perm=[0, 2, 1, 3]), n.ints(length, 1, wide))
    n.show(y, length, 1, wide)
    return n.model()


# ---- language models, small ones of the usual shape

def attention(n, y, heads, turn=lambda v: v, linear=None):
    """Over [1, length, wide]; turn: what is done to queries and keys; linear: a layer of n, from and to wide."""
    length, wide = n.shape[1], n.wide
    split = lambda v: n.op("Transpose", n.op("Reshape", v, n.ints(1, length, heads, wide // heads)), perm=[0, 2, 1, 3])
    q, k, v = (split(linear(y, wide, wide)) for _ in range(3))
    scores = n.op("Div", n.op("MatMul", turn(q), n.op("Transpose", turn(k), perm=[0, 1, 3, 2])), n.const(np.float32(np.sqrt(wide // heads))))
    mixed = n.op("MatMul", n.op("Softmax", scores, axis=-1), v)
    return linear(n.op("Reshape", n.op("Transpose", mixed, perm=[0, 2, 1, 3]), n.ints(1, length, wide)), wide, wide)


def llama(layers=2, wide=256, inner=768, words=6000, heads=4, length=12):
    """RMS normalization, turned queries and keys, gated layers, and a last product by the table of words."""
    n = Net(11, 1, length)
    n.wide = wide
    half = wide // heads // 2
    table = n.const(n.rng.standard_normal((words, wide)) / 16, "words")
    places = n.op("Reshape", n.op("Range", *(n.const(np.float32(v)) for v in (0, length, 1))), n.ints(length, 1))
    angles = n.op("Mul", places, n.const(1e4 ** (-np.arange(half) / half)))
    cos, sin = (n.op("Concat", n.op(kind, angles), n.op(kind, angles), axis=1) for kind in ("Cos", "Sin"))
    linear = lambda v, ins, outs: n.op("MatMul", v, n.weight(ins, outs))

    def norm(v):
        mean = n.op("ReduceMean", n.op("Mul", v, v), axes=[-1], keepdims=1)
        return n.op("Mul", n.op("Div", v, n.op("Sqrt", n.op("Add", mean, n.const(np.float32(1e-6))))), n.const(n.rng.uniform(0.5, 1.5, wide)))

    def turn(v):
        low, high = (n.op("Slice", v, n.ints(a), n.ints(b), n.ints(3)) for a, b in ((0, half), (half, 2 * half)))
        return n.op("Add", n.op("Mul", v, cos), n.op("Mul", n.op("Concat", n.op("Neg", high), low, axis=3), sin))

    y = n.op("Gather", table, "x")
    for _ in range(layers):
        y = n.op("Add", y, attention(n, norm(y), heads, turn, linear))
        z = norm(y)
        gate = linear(z, wide, inner)
        y = n.op("Add", y, linear(n.op("Mul", n.op("Mul", gate, n.op("Sigmoid", gate)), linear(z, wide, inner)), inner, wide))
    n.show(n.op("MatMul", norm(y), n.op("Transpose", table, perm=[1, 0])), 1, length, words)
    return n.model(TensorProto.INT64)


def tied(how, words=6000, wide=128, length=6):
    """One layer between a table of words and a product by it: as a Transpose (of 16-bit floats that are cast), or as a Gemm that transposes."""
    n = Net(14, 1, length)
    table = n.rng.standard_normal((words, wide)) / np.sqrt(wide)
    table = n.op("Cast", n.const(table.astype(np.float16)), to=TensorProto.FLOAT) if how == "cast" else n.const(table)
    y = n.op("Relu", n.op("MatMul", n.op("Gather", table, "x"), n.weight(wide, wide)))
    if how == "Gemm":
        n.show(n.op("Gemm", n.op("Reshape", y, n.ints(length, wide)), table, transB=1), length, words)
    else:
        n.show(n.op("MatMul", y, n.op("Transpose", table, perm=[1, 0])), 1, length, words)
    return n.model(TensorProto.INT64)


def bert(layers=2, wide=384, inner=1536, words=5000, heads=12, length=12):
    """Two tables, layer normalization, GELU: MiniLM's shapes, with fewer words and layers."""
    n = Net(12, 1, length)
    n.wide = wide
    linear = lambda v, ins, outs: n.op("Add", n.op("MatMul", v, n.weight(ins, outs)), n.weight(outs, scale=0.02))
    norm = lambda v: n.op("LayerNormalization", v, n.const(n.rng.uniform(0.5, 1.5, wide)), n.weight(wide, scale=0.02), axis=-1)
    places = n.op("Gather", n.const(n.rng.standard_normal((512, wide)) / 20), n.ints(*range(length)))
    y = norm(n.op("Add", n.op("Gather", n.const(n.rng.standard_normal((words, wide)) / 20), "x"), places))
    for _ in range(layers):
        y = norm(n.op("Add", y, attention(n, y, heads, linear=linear)))
        up = linear(y, wide, inner)
        gelu = n.op("Mul", n.op("Mul", up, n.op("Add", n.op("Erf", n.op("Div", up, n.const(np.float32(2**0.5)))), n.const(np.float32(1)))),
                    n.const(np.float32(0.5)))
        y = norm(n.op("Add", y, linear(gelu, inner, wide)))
    n.show(y, 1, length, wide)
    return n.model(TensorProto.INT64)


# ---- a convolutional network

def convolutions(width=48, blocks=4, side=32, classes=100):
    """Inverted residuals with norms, as of MobileNet, whose channels differ in size; and a last product."""
    n = Net(15, 1, 3, side, side)
    wide = 2 * width

    def conv(y, ins, outs, kernel, clamp, **more):
        grouped = more.get("group", 1)
        y = n.op("Conv", y, n.const(n.rng.standard_t(5, (outs, ins // grouped, kernel, kernel)) / np.sqrt(ins // grouped * kernel**2)), pads=[kernel // 2] * 4, **more)
        y = n.op("BatchNormalization", y, n.const(n.rng.lognormal(0, 0.5, outs)), n.weight(outs, scale=0.3), n.weight(outs, scale=0.1), n.const(n.rng.uniform(0.5, 1.5, outs)))
        return n.op("Clip", y, n.const(np.float32(0)), n.const(np.float32(6))) if clamp else y

    y = conv("x", 3, width, 3, True, strides=[2, 2])
    for _ in range(blocks):
        z = conv(conv(y, width, wide, 1, True), wide, wide, 3, True, group=wide)
        y = n.op("Add", y, conv(z, wide, width, 1, False))
    y = conv(y, width, 4 * width, 1, True)
    y = n.op("Flatten", n.op("GlobalAveragePool", y))
    n.show(n.op("Gemm", y, n.weight(classes, 4 * width), n.weight(classes, scale=0.1), transB=1), 1, classes)
    return n.model()


MODELS = {
    "one kernel, biases": shared_conv,
    "one kernel, no biases": lambda: shared_conv(biases=False),
    "one kernel, norms": lambda: shared_conv(norms=True),
    "one bias, copies": copied_biases,
    "one matrix, MatMul": lambda: shared_product("MatMul"),
    "one matrix, 2-D MatMul": lambda: shared_product("2-D"),
    "one matrix, no biases": lambda: shared_product("plain"),
    "one matrix, Gemm": lambda: shared_product("Gemm"),
    "one matrix, scaled": scaled_product,
    "Tile": lambda: repeated("Tile"),
    "Concat": lambda: repeated("Concat"),
    "Expand": lambda: repeated("Expand"),
    "filled": filled,
    "one table": one_table,
    "one table, read": lambda: one_table(kept=True),
    "one table, no layer": lambda: one_table(layer=False),
    "16-bit weights": widened,
    "transposed": turned,
    "branches": branches,
    "denormal": denormal,
    "held by nodes": held,
    "GRU": lambda: recurrent("GRU", 3),
    "RNN": lambda: recurrent("RNN", 1),
    "Llama": llama,
    "BERT": bert,
    "tied": lambda: tied("Transpose"),
    "tied, 16 bits": lambda: tied("cast"),
    "tied, Gemm": lambda: tied("Gemm"),
    "tied, large": lambda: tied("Transpose", words=36000),
}


def float_bytes(model):
    """Bytes of a model's constants of floats."""
    arrays = [numpy_helper.to_array(t) for t in model.graph.initializer]
    return sum(a.nbytes for a in arrays if a.dtype.kind == "f")


def denormals(array):
    return int(np.count_nonzero((np.abs(array) < np.finfo(array.dtype).tiny) & (array != 0)))


def samples(model, count=8, seed=0):
    given = model.graph.input[0].type.tensor_type
    dims, rng = (count, *(d.dim_value for d in given.shape.dim)), np.random.default_rng(seed)
    if given.elem_type == TensorProto.INT64:
        return rng.integers(0, 5000, dims)
    x = rng.standard_normal(dims)
    if len(dims) == 5 and min(dims[3:]) >= 32:  # pictures: coarse shapes, some brighter than others
        coarse = rng.standard_normal((*dims[:3], dims[3] // 8, dims[4] // 8)) + rng.standard_normal((*dims[:3], 1, 1))
        x = 0.3 * x + np.kron(coarse * rng.uniform(0.3, 1.5, (count, 1, 1, 1, 1)), np.ones((8, 8)))
    return x.astype(np.float32)


def save(name, path):
    model = MODELS[name]()
    onnx.save(model, path)
    return model
