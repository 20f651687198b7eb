"""Small networks of products and recurrent layers with random weights, in the forms that exporters write, and samples for them."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Net:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants = [], []

    def const(self, array, name=None):
        name = name or f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weights(self, *dims, fan=None):
        """Heavier tails than the bell's, as trained weights have them."""
        return np.asarray(self.rng.standard_t(5, dims) * 0.77 / np.sqrt(fan or dims[0]), np.float32)

    def small(self, *dims):
        return np.asarray(self.rng.standard_normal(dims) * 0.1, np.float32)

    def node(self, op, inputs, name=None, **attributes):
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [out], name=name or f"{op}_{len(self.nodes)}", **attributes))
        return out

    def linear(self, x, k, n, name):
        product = self.node("MatMul", [x, self.const(self.weights(k, n), f"{name}.weight")], name)
        return self.node("Add", [product, self.const(self.small(n))], f"{name}.bias")

    def save(self, path, inputs, outputs, opset=17):
        for i, o in enumerate(outputs):
            self.nodes.append(helper.make_node("Identity", [o], [f"out{i}"]))
        graph = helper.make_graph(self.nodes, "net", inputs, [helper.make_empty_tensor_value_info(f"out{i}") for i in range(len(outputs))],
                                  self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        model = onnx.shape_inference.infer_shapes(model)
        onnx.checker.check_model(model)
        onnx.save(model, path)


def rare(path, seed, count, width=256):
    """Gemms that detect what few samples have, behind a Sigmoid: samples of correlated channels and of different loudness, of which a part goes beyond all that
    64 of them show. Samples float32[1][16][width / 16]."""
    n = Net(seed)
    x = n.node("Flatten", ["x"])
    for i, (a, b) in enumerate(((width, 64), (64, 64), (64, 1))):
        x = n.node("Gemm", [x, n.const(n.weights(a, b) * (1.6 if i < 2 else 12)), n.const(n.small(b) - (6 if i == 2 else 0))])
        x = n.node("Relu", [x]) if i < 2 else x
    n.save(path, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, width // 16])], [n.node("Sigmoid", [x])])
    base = n.rng.standard_normal((8, width))
    x = n.rng.standard_normal((count, 8)) @ base / 2.8 + 0.3 * n.rng.standard_normal((count, width))
    return np.asarray(x * np.exp(n.rng.standard_normal((count, 1)) * 0.5), np.float32).reshape(count, 1, 16, width // 16)


def encoder(path, layers=2, width=64, inner=160, words=50, heads=4, length=12, seed=1):
    """A transformer's encoder over token numbers, with a pooler that is a Gemm. Samples int64[1][length]."""
    n = Net(seed)

    def norm(x):
        return n.node("LayerNormalization", [x, n.const(1 + n.small(width)), n.const(n.small(width))], axis=-1)

    split, back = n.const(np.array([0, 0, heads, width // heads])), n.const(np.array([0, 0, width]))
    shrink, half, one, root = (n.const(np.float32(v)) for v in ((heads / width) ** 0.5, 0.5, 1.0, 0.5**0.5))
    x = norm(n.node("Gather", [n.const(n.small(words, width)), "ids"]))
    for i in range(layers):
        q, k, v = (n.node("Transpose", [n.node("Reshape", [n.linear(x, width, width, f"layer{i}.{c}"), split])],
                          perm=[0, 2, 3, 1] if c == "key" else [0, 2, 1, 3]) for c in ("query", "key", "value"))
        p = n.node("Softmax", [n.node("Mul", [n.node("MatMul", [q, k]), shrink])], axis=-1)
        o = n.node("Reshape", [n.node("Transpose", [n.node("MatMul", [p, v])], perm=[0, 2, 1, 3]), back])
        x = norm(n.node("Add", [x, n.linear(o, width, width, f"layer{i}.out")]))
        u = n.linear(x, width, inner, f"layer{i}.up")
        gelu = n.node("Mul", [n.node("Mul", [u, n.node("Add", [n.node("Erf", [n.node("Mul", [u, root])]), one])]), half])
        x = norm(n.node("Add", [x, n.linear(gelu, inner, width, f"layer{i}.down")]))
    first = n.node("Gather", [x, n.const(np.array(0))], axis=1)
    pooled = n.node("Gemm", [first, n.const(n.weights(width, width), "pooler.weight"), n.const(n.small(width))], "pooler", transB=1)
    n.save(path, [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"])], [x, n.node("Tanh", [pooled])])
    return [n.rng.integers(0, words, (1, length)) for _ in range(4)]


def recurrent(path, kinds=("LSTM", "LSTM"), words=40, inputs=24, hidden=32, classes=7, length=15, seed=3):
    """Recurrent layers in both directions but the last, which walks backwards from a given state; then a MatMul and Add.
    Samples int64[1][length]."""
    n = Net(seed)
    x = n.node("Gather", [n.const(n.weights(words, inputs, fan=1)), n.node("Transpose", ["ids"], perm=[1, 0])])
    width = inputs
    for i, kind in enumerate(kinds):
        last = i + 1 == len(kinds)
        gates, dirs = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind], 1 if last else 2
        w, r = n.weights(dirs, gates * hidden, width, fan=width), n.weights(dirs, gates * hidden, hidden, fan=hidden)
        b, h = n.weights(dirs, 2 * gates * hidden, fan=hidden), n.small(dirs, 1, hidden)
        state = [n.const(v) for v in ([h, n.small(dirs, 1, hidden)] if kind == "LSTM" else [h])] if last else []
        x = n.node(kind, [x, *(n.const(v, f"{kind.lower()}{i}.{part}") for v, part in ((w, "w"), (r, "r"), (b, "b"))), *([""] + state if last else [])],
                   f"{kind.lower()}{i}", hidden_size=hidden, direction="reverse" if last else "bidirectional")
        x = n.node("Reshape", [n.node("Transpose", [x], perm=[0, 2, 1, 3]), n.const(np.array([0, 0, dirs * hidden]))])
        width = dirs * hidden
    y = n.node("Transpose", [n.linear(x, width, classes, "head")], perm=[1, 0, 2])
    n.save(path, [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "length"])], [y])
    return [n.rng.integers(0, words, (1, length)) for _ in range(6)]


def perceptron(path, sizes=(100, 70, 50, 9), seed=2):
    """Layers of Gemm, the weights of every second one transposed, the last a MatMul and Add. Samples float32[1][inputs]."""
    n = Net(seed)
    x = "x"
    for i, (k, m) in enumerate(zip(sizes, sizes[1:], strict=False)):
        if i + 2 == len(sizes):
            x = n.linear(x, k, m, "last")
        else:
            w = n.const(n.weights(*((m, k) if i % 2 else (k, m)), fan=k), f"w{i}")
            x = n.node("Relu", [n.node("Gemm", [x, w, n.const(n.small(m))], f"layer{i}", transB=i % 2)])
    n.save(path, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", sizes[0]])], [x], opset=13)
    return [np.asarray(n.rng.standard_normal((1, sizes[0])), np.float32) for _ in range(4)]
