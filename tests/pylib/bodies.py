"""Networks of which the weights are inside If, Loop and Scan, with random weights, and samples for them."""
import numpy as np
import onnx
from onnx import TensorProto, helper

from pylib.smallnets import Net

F32, BOOL = TensorProto.FLOAT, TensorProto.BOOL


class Body(Net):
    """A nested graph. Names of values and nodes start with `prefix`; weights are drawn from the generator of the net around it."""

    def __init__(self, outer, prefix):
        self.rng, self.prefix = outer.rng, prefix
        self.nodes, self.constants = [], []

    def const(self, array, name=None):
        return super().const(array, f"{self.prefix}{name or f'c{len(self.constants)}'}")

    def node(self, op, inputs, name=None, outputs=1, **attributes):
        outs = [f"{self.prefix}v{len(self.nodes)}{f'_{k}' if k else ''}" for k in range(outputs)]
        name = f"{self.prefix}{name or f'{op}_{len(self.nodes)}'}"
        self.nodes.append(helper.make_node(op, inputs, outs, name=name, **attributes))
        return outs[0] if outputs == 1 else outs

    def graph(self, inputs, outputs):
        """outputs: (name, type, dimensions)."""
        ends = [helper.make_tensor_value_info(*o) for o in outputs]
        return helper.make_graph(self.nodes, self.prefix.rstrip("/"), inputs, ends, self.constants)


class Outer(Net):
    def save_shaped(self, path, inputs, outputs):
        """The shapes of outputs are said: of what a loop carries they cannot be inferred. outputs: (name, dimensions; None: inferred)."""
        for i, (name, _) in enumerate(outputs):
            self.nodes.append(helper.make_node("Identity", [name], [f"out{i}"]))
        ends = [helper.make_tensor_value_info(f"out{i}", F32, dims) for i, (_, dims) in enumerate(outputs)]
        graph = helper.make_graph(self.nodes, "net", inputs, ends, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        model = onnx.shape_inference.infer_shapes(model)
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, path)


def floats(name, *dims):
    return helper.make_tensor_value_info(name, F32, dims)


def _samples(n, count, *dims):
    return [np.asarray(n.rng.standard_normal(dims) * n.rng.uniform(0.5, 1.5) + n.rng.uniform(-0.3, 0.3), np.float32)
            for _ in range(count)]


def _is_high(n, x):
    """A condition that about half of the samples hold."""
    mean = n.node("ReduceMean", [x], keepdims=0)
    return n.node("Greater", [mean, n.const(np.float32(0))])


def _branch(n, prefix, x, channels, filters, width):
    b = Body(n, prefix)
    y = b.node("Conv", [x, b.const(b.weights(filters, channels, 3, 3, fan=9 * channels), "conv.weight"), b.const(b.small(filters))], "conv",
               kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    y = b.node("Relu", [y])
    y = b.node("Reshape", [b.node("GlobalAveragePool", [y]), b.const(np.array([1, filters]))])
    return b.graph([], [(b.linear(y, filters, width, "fc"), F32, [1, width])])


def branches(path, same_names=False, seed=11):
    """An If with a convolution and a product in either branch, over a value that a convolution outside makes; the names in both
    may be the same. Samples float32[1][3][12][12]."""
    n = Outer(seed)
    x = n.node("Conv", ["x", n.const(n.weights(16, 3, 3, 3, fan=27)), n.const(n.small(16))], "stem", kernel_shape=[3, 3])
    x = n.node("Relu", [x])
    then = _branch(n, "a/", x, 16, 64, 40)
    other = _branch(n, "a/" if same_names else "b/", x, 16, 48, 40)
    y = n.node("If", [_is_high(n, "x")], "choose", then_branch=then, else_branch=other)
    y = n.linear(y, 40, 32, "head")
    n.save_shaped(path, [floats("x", 1, 3, 12, 12)], [(y, [1, 32])])
    return _samples(n, 24, 1, 3, 12, 12)


def _moves(n, v, moves):
    """Values of [1][16][8][8] after nodes that only move them; their names."""
    made = [v]
    for move in moves:
        more = {"Transpose": [], "Dropout": [], "MaxPool": [], "Reshape": [np.array([1, 32, 4, 8])], "Unsqueeze": [np.array([0])],
                "Squeeze": [np.array([0])], "Slice": [np.array([0]), np.array([8]), np.array([1])]}[move]
        attributes = {"MaxPool": {"kernel_shape": [2, 2]}, "Transpose": {"perm": [0, 2, 3, 1]}}.get(move, {})
        made.append(n.node(move, [made[-1], *(n.const(a) for a in more)], f"move_{n.prefix if isinstance(n, Body) else ''}{len(made)}", **attributes))
    return made[1:]


def _of_captured(n, prefix, v, op):
    """A body that reads v from outside."""
    b = Body(n, prefix)
    return b.graph([], [(b.node(op, [b.node("ReduceMean", [v], keepdims=0)]), F32, [])])


def moved(path, moves, body="if", outputs=False, seed=18):
    """A layer whose moved result a body captures: of an If, a Loop or a Scan, an If inside an If, or (`inside`) one that moves it itself.
    outputs: what moves make is an output, too. Samples float32[1][3][10][10]."""
    n = Outer(seed)
    x = n.node("Conv", ["x", n.const(n.weights(16, 3, 3, 3, fan=27)), n.const(n.small(16))], "stem", kernel_shape=[3, 3])
    x = n.node("Relu", [x])
    made, high = [] if body == "inside" else _moves(n, x, moves), _is_high(n, "x")
    if body == "loop":
        b = Body(n, "loop/")
        y = b.graph(_loop_inputs(floats("h")), [(b.node("Identity", ["go"]), BOOL, []), (b.node("Add", ["h", b.node("ReduceMean", [made[-1]], keepdims=0)]), F32, [])])
        y = n.node("Loop", [n.const(np.int64(3)), n.const(np.array(True)), n.const(np.float32(0))], "steps", body=y)
    elif body == "scan":
        b = Body(n, "cell/")
        y = b.graph([floats("xt", 3, 10, 10)], [(b.node("Add", [b.node("ReduceMean", ["xt"], keepdims=0), b.node("ReduceMax", [made[-1]], keepdims=0)]), F32, [])])
        y = n.node("Scan", ["x"], "over", body=y, num_scan_inputs=1)
    else:
        b = Body(n, "part/")
        v = _moves(b, b.node("Conv", [x, b.const(b.weights(16, 16, 1, 1, fan=16), "w")], "layer"), moves)[-1] if body == "inside" else made[-1]
        then = _of_captured(n, "a/", v, "Neg")
        if body != "if":
            b.nodes.append(helper.make_node("If", [high], ["part/y"], name="part/choose", then_branch=then, else_branch=_of_captured(n, "b/", v, "Abs")))
            then = b.graph([], [("part/y", F32, [])])
        y = n.node("If", [high], "choose", then_branch=then, else_branch=_of_captured(n, "c/", x if body == "inside" else v, "Abs"))
    n.save_shaped(path, [floats("x", 1, 3, 10, 10)], [(n.node("Reshape", [y, n.const(np.array([1, 1]))]), [1, 1]), *((v, None) for v in made if outputs)])
    return _samples(n, 24, 1, 3, 10, 10)


def loop(path, seed=12):
    """h = tanh(h W + x V + b), five times; W is a constant outside. Samples float32[1][64]."""
    n = Outer(seed)
    w = n.const(n.weights(64, 64), "loop.hidden")
    b = Body(n, "loop/")
    h = b.node("MatMul", ["h", w], "hidden")
    u = b.node("Gemm", ["x", b.const(b.weights(64, 64), "in.weight"), b.const(b.small(64))], "in", transB=1)
    h = b.node("Tanh", [b.node("Add", [h, u])])
    body = b.graph([helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", BOOL, []),
                    floats("h", 1, 64)], [(b.node("Identity", ["go"]), BOOL, []), (h, F32, [1, 64])])
    y = n.node("Loop", [n.const(np.int64(5)), n.const(np.array(True)), "x"], "steps", body=body)
    n.save_shaped(path, [floats("x", 1, 64)], [(n.linear(y, 64, 32, "head"), [1, 32])])
    return _samples(n, 24, 1, 64)


def counted(path, seed=20):
    """Two Loops over as many rows as come in, h = tanh(x[i] W + h): of the input, and of the first one's results. Bodies capture their rows, which are quantized and moved, and the count, an
    int32 that they compare with. Returns samples float32[n][1][8], and what NumPy says of each."""
    n = Outer(seed)
    scale, zero, first, one = n.const(np.float32(0.02)), n.const(np.uint8(128)), n.const(np.array([0])), n.const(np.array([1]))
    matrices, x = [n.weights(8, 8) for _ in range(2)], "x"
    for k, w in enumerate(matrices):
        for _ in range(2):
            rounded = n.node("DequantizeLinear", [n.node("QuantizeLinear", [x, scale, zero]), scale, zero])
            x = n.node("Transpose", [rounded], perm=[1, 0, 2])
        count = n.node("Squeeze", [n.node("Slice", [n.node("Cast", [n.node("Shape", [x])], to=TensorProto.INT32), first, one, first]), first])
        b = Body(n, f"loop{k}/")
        h = b.node("Tanh", [b.node("Add", [b.node("MatMul", [b.node("Gather", [x, "i"], axis=0), b.const(w)]), "h"])])
        go = b.node("Less", [b.node("Cast", ["i"], to=F32), b.node("Cast", [count], to=F32)])
        body = b.graph(_loop_inputs(floats("h", 1, 8)), [(go, BOOL, []), (h, F32, [1, 8]), (b.node("Identity", [h]), F32, [1, 8])])
        start = [n.node("Cast", [count], to=TensorProto.INT64), n.const(np.array(True)), n.const(np.zeros((1, 8), np.float32))]
        n.nodes.append(helper.make_node("Loop", start, [f"last{k}", f"each{k}"], f"steps{k}", body=body))
        x = f"each{k}"
    n.save_shaped(path, [floats("x", "n", 1, 8)], [("last1", [1, 8])])
    samples, wanted = _samples(n, 12, 5, 1, 8), []
    for rows in samples:
        for w in matrices:
            rows, h, each = (np.clip(np.rint(rows / np.float32(0.02)), -128, 127) * np.float32(0.02)), 0, []
            for row in rows:
                each.append(h := np.tanh(row @ w + h))
            rows = np.stack(each)
        wanted.append(rows[-1])
    return samples, np.stack(wanted)


def scan(path, seed=13):
    """A recurrent cell spelled out. Samples float32[10][48]."""
    n = Outer(seed)
    b = Body(n, "cell/")
    h = b.node("Tanh", [b.node("Add", [b.linear("h", 64, 64, "hidden"), b.linear("xt", 48, 64, "in")])])
    body = b.graph([floats("h", 1, 64), floats("xt", 1, 48)], [(h, F32, [1, 64]), (b.node("Identity", [h]), F32, [1, 64])])
    start = n.const(np.zeros((1, 64), np.float32))
    steps = n.node("Unsqueeze", ["x", n.const(np.array([1]))])
    n.nodes.append(helper.make_node("Scan", [start, steps], ["last", "each"], "over", body=body, num_scan_inputs=1))
    n.save_shaped(path, [floats("x", 10, 48)], [(n.linear("each", 64, 24, "head"), [10, 1, 24]), ("last", [1, 64])])
    return _samples(n, 24, 10, 48)


def nested(path, seed=14):
    """A Loop of an If that has an LSTM in one branch and a product in the other. Samples float32[6][1][32]."""
    n = Outer(seed)
    b = Body(n, "loop/")
    then, other = Body(n, "then/"), Body(n, "else/")
    y = then.node("LSTM", ["h", then.const(then.weights(1, 128, 32, fan=32), "w"), then.const(then.weights(1, 128, 32, fan=32), "r"),
                           then.const(then.small(1, 256))], "lstm", hidden_size=32)
    y = then.node("Squeeze", [y, then.const(np.array([1]))])
    first = then.graph([], [(y, F32, [6, 1, 32])])
    second = other.graph([], [(other.node("Tanh", [other.linear("h", 32, 32, "step")]), F32, [6, 1, 32])])
    odd = b.node("Equal", [b.node("Mod", ["i", b.const(np.int64(2))]), b.const(np.int64(1))])
    y = b.node("If", [odd], "choose", then_branch=first, else_branch=second)
    y = b.node("Add", ["h", y])
    body = b.graph([helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", BOOL, []),
                    floats("h", 6, 1, 32)], [(b.node("Identity", ["go"]), BOOL, []), (y, F32, [6, 1, 32])])
    y = n.node("Loop", [n.const(np.int64(4)), n.const(np.array(True)), "x"], "steps", body=body)
    n.save_shaped(path, [floats("x", 6, 1, 32)], [(y, [6, 1, 32])])
    return _samples(n, 24, 6, 1, 32)


def _loop_inputs(*states):
    return [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", BOOL, []), *states]


def lstm(path, seed=16):
    """An LSTM spelled out in a Loop, whose matrices go round as states, and whose results are appended to one. Samples float32[12][48]."""
    n = Outer(seed)
    b = Body(n, "loop/")
    gates = b.node("Add", [b.node("MatMul", [b.node("Gather", ["x", "i"], axis=0), "w"], "in"), b.node("MatMul", ["h", "r"], "hidden")])
    gates = b.node("Split", [b.node("Add", [gates, b.const(b.small(256))])], outputs=4, axis=1)
    let_in, forget, out = (b.node("Sigmoid", [gates[k]]) for k in (0, 1, 3))
    c = b.node("Add", [b.node("Mul", [forget, "c"]), b.node("Mul", [let_in, b.node("Tanh", [gates[2]])])])
    h = b.node("Mul", [out, b.node("Tanh", [c])])
    rows = b.node("Concat", ["rows", h], axis=0)
    body = b.graph(_loop_inputs(floats("h", 1, 64), floats("c", 1, 64), floats("w", 48, 256), floats("r", 64, 256), floats("rows", "n", 64)),
                   [(b.node("Identity", ["go"]), BOOL, []), (h, F32, [1, 64]), (c, F32, [1, 64]), (b.node("Identity", ["w"]), F32, [48, 256]),
                    (b.node("Identity", ["r"]), F32, [64, 256]), (rows, F32, ["m", 64])])
    zero = n.const(np.zeros((1, 64), np.float32))
    rounds = [n.const(np.int64(12)), "", zero, zero, n.const(n.weights(48, 256)), n.const(n.weights(64, 256)), n.const(np.zeros((0, 64), np.float32))]
    steps = n.node("Unsqueeze", ["x_all", n.const(np.array([1]))])
    n.nodes.append(helper.make_node("Identity", [steps], ["x"]))
    n.nodes.append(helper.make_node("Loop", rounds, ["last", "cell", "w_left", "r_left", "each"], "steps", body=body))
    n.save_shaped(path, [floats("x_all", 12, 48)], [("each", ["m", 64]), ("last", [1, 64])])
    return _samples(n, 24, 12, 48)


def one_matrix(path, seed=17):
    """A Loop of an If both of whose branches read one matrix outside of all. Samples float32[1][96]."""
    n = Outer(seed)
    w = n.const(n.weights(96, 96), "all.weight")
    b, then, other = Body(n, "loop/"), Body(n, "then/"), Body(n, "else/")
    first = then.graph([], [(then.node("Tanh", [then.node("MatMul", ["h", w], "p")]), F32, [1, 96])])
    second = other.graph([], [(other.node("Tanh", [other.node("Neg", [other.node("MatMul", ["h", w], "p")])]), F32, [1, 96])])
    odd = b.node("Equal", [b.node("Mod", ["i", b.const(np.int64(2))]), b.const(np.int64(1))])
    y = b.node("If", [odd], "choose", then_branch=first, else_branch=second)
    body = b.graph(_loop_inputs(floats("h", 1, 96)), [(b.node("Identity", ["go"]), BOOL, []), (y, F32, [1, 96])])
    y = n.node("Loop", [n.const(np.int64(4)), "", "x"], "steps", body=body)
    n.save_shaped(path, [floats("x", 1, 96)], [(y, [1, 96])])
    return _samples(n, 24, 1, 96)


def _rows(n, path, place, layers, low):
    """Saves a net of layers(body, x), in the main graph, a branch of an If that samples with a mean below `low` take, both of its branches, or the body of a Loop or
    a Scan, in which they see a row at a time."""
    if place in ("if", "branches"):
        then, other = Body(n, "then/"), Body(n, "else/")
        y = other.node("Neg", [layers(other, "x")]) if place == "branches" else other.node("Neg", ["x"])
        ends = then.graph([], [(layers(then, "x"), F32, [8, 64])]), other.graph([], [(y, F32, [8, 64])])
        low = n.node("Less", [n.node("ReduceMean", ["x"], keepdims=0), n.const(np.float32(low))])
        y = n.node("If", [low], "choose", then_branch=ends[0], else_branch=ends[1])
    elif place == "loop":  # one row in each iteration
        body = Body(n, "loop/")
        row = layers(body, body.node("Gather", ["x", body.node("Unsqueeze", ["i", body.const(np.array([0]))])], axis=0))
        graph = body.graph(_loop_inputs(), [(body.node("Identity", ["go"]), BOOL, []), (row, F32, [1, 64])])
        y = n.node("Squeeze", [n.node("Loop", [n.const(np.int64(8)), ""], "rows", body=graph), n.const(np.array([1]))])
    elif place == "scan":
        body = Body(n, "row/")
        row = layers(body, body.node("Unsqueeze", ["r", body.const(np.array([0]))]))
        graph = body.graph([floats("r", 64)], [(row, F32, [1, 64])])
        y = n.node("Squeeze", [n.node("Scan", ["x"], "rows", body=graph, num_scan_inputs=1), n.const(np.array([1]))])
    else:
        y = layers(n, "x")
    n.save_shaped(path, [floats("x", 8, 64)], [(y, [8, 64])])


def two_products(path, place, seed=18):
    """Relu(x A) B, in the main graph, a branch of an If, both of its branches, or the body of a Loop or a Scan (`place`). The channels of
    the samples are correlated, as those of real layers are. Samples float32[8][64]."""
    n = Outer(seed)
    turn = np.linalg.qr(n.rng.standard_normal((64, 64)))[0]
    mix = (turn * np.geomspace(10, 0.01, 64)) @ turn.T
    a, b = n.const(n.weights(64, 64), "first.weight"), n.const(n.weights(64, 64), "second.weight")

    def layers(body, x):
        return body.node("MatMul", [body.node("Relu", [body.node("MatMul", [x, a], "first")]), b], "second")

    _rows(n, path, place, layers, 0 if place == "branches" else 1e6)
    return [np.asarray(n.rng.standard_normal((8, 64)) @ mix, np.float32) for _ in range(96)]


def shifted(path, place, seed=19):
    """Two products of positive weights whose input is, but for one element of a row, less than half of a step of 8 bits: rounding shifts the means of what they
    give. Of an If, half of the samples take the branch. Samples float32[8][64]."""
    n = Outer(seed)
    a, b = (n.const(np.abs(n.weights(64, 64)), f"{name}.weight") for name in ("first", "second"))
    zero = n.const(np.zeros(64, np.float32), "zero")

    def layers(body, x):
        return body.node("Gemm", [body.node("Relu", [body.node("Gemm", [x, a, zero], "first")]), b, zero], "second")

    _rows(n, path, place, layers, 0.01565)
    made = n.rng.uniform(0, 0.45 / 255, (160, 8, 64))
    np.put_along_axis(made, n.rng.integers(0, 64, (160, 8, 1)), n.rng.uniform(0.9, 1, (160, 8, 1)), 2)
    return list(made.astype(np.float32))


def narrow(graph, to):
    """Makes a graph of float32 and its bodies one of float16 or bfloat16 (`to`)."""
    for t in [t for t in graph.initializer if t.data_type == F32]:
        x = onnx.numpy_helper.to_array(t)
        if to == TensorProto.FLOAT16:
            t.CopyFrom(onnx.numpy_helper.from_array(x.astype(np.float16), t.name))
        else:  # half to even
            bits = np.frombuffer(x.tobytes(), np.uint32)
            bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
            t.CopyFrom(TensorProto(name=t.name, data_type=to, dims=t.dims, raw_data=bits.astype(np.uint16).tobytes()))
    for v in [*graph.input, *graph.output, *graph.value_info]:
        if v.type.tensor_type.elem_type == F32:
            v.type.tensor_type.elem_type = to
    for a in (a for node in graph.node for a in node.attribute if a.type == onnx.AttributeProto.GRAPH):
        narrow(a.g, to)


def widen_outputs(model):
    for v in model.graph.output:
        for node in model.graph.node:
            node.output[:] = [f"{o}_own" if o == v.name else o for o in node.output]
            node.input[:] = [f"{i}_own" if i == v.name else i for i in node.input]
        model.graph.node.append(helper.make_node("Cast", [f"{v.name}_own"], [v.name], to=F32))
        v.type.tensor_type.elem_type = F32


def each_node(graph, path=""):
    """(path of the graph, node) of a graph and those nested in it."""
    for node in graph.node:
        yield path, node
        for a in node.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                yield from each_node(a.g, f"{path}{node.name or node.output[0]}/{a.name}/")


def _three_products(b, x):
    """The first reads four values that are a thousand times larger than the others, with weights a thousand times smaller, so that 8 bits for all of them are too few."""
    w = b.weights(64, 64)
    w[:4] *= 1e-3
    y = b.node("Relu", [b.node("Gemm", [x, b.const(w), b.const(b.small(64))], "delicate")])
    y = b.node("Relu", [b.node("Gemm", [y, b.const(b.weights(64, 64)), b.const(b.small(64))], "second")])
    return b.node("Gemm", [y, b.const(b.weights(64, 64)), b.const(b.small(64))], "third")


def delicate(path, place, seed=19):
    """Three products in the branch of an If that half of the samples take, of an If inside an If, in a Loop or a Scan; the first must not be rounded.
    Samples float32[1][64], of which the first four values are large, and the prefix of the names of the body's nodes."""
    n = Outer(seed)
    b, e = Body(n, "part/"), Body(n, "other/")
    shape, where = [1, 64], "choose/then_branch/part/"
    small = n.node("Mul", ["x", n.const(np.float32(np.r_[np.full(4, 1e-3), np.ones(60)]))])  # what the other branch and the loops carry on is not delicate
    other = e.graph([], [(e.node("Tanh", [small]), F32, shape)])
    if place in ("if", "nested"):
        then = b.graph([], [(_three_products(b, "x"), F32, shape)])
        if place == "nested":
            outer = Body(n, "outer/")
            outer.nodes.append(helper.make_node("If", [_is_high(outer, small)], ["outer/y"], name="outer/choose", then_branch=then, else_branch=other))
            then, where = outer.graph([], [("outer/y", F32, shape)]), "choose/then_branch/outer/choose/then_branch/part/"
            other_of = Body(n, "last/")
            other = other_of.graph([], [(other_of.node("Tanh", [small]), F32, shape)])
        y = n.node("If", [_is_high(n, small)], "choose", then_branch=then, else_branch=other)
    elif place == "loop":
        y = b.node("Add", ["h", _three_products(b, "x")])
        body = b.graph(_loop_inputs(floats("h", *shape)), [(b.node("Identity", ["go"]), BOOL, []), (y, F32, shape)])
        y, where = n.node("Loop", [n.const(np.int64(3)), n.const(np.array(True)), small], "steps", body=body), "steps/body/part/"
    else:
        y = b.node("Identity", [_three_products(b, b.node("Unsqueeze", ["xt", b.const(np.array([0]))]))])
        body = b.graph([floats("xt", 64)], [(y, F32, shape)])
        y, where = n.node("Scan", ["x"], "over", body=body, num_scan_inputs=1), "over/body/part/"
        y = n.node("Reshape", [y, n.const(np.array(shape))])
    n.save_shaped(path, [floats("x", *shape)], [(y, shape)])
    samples = []
    for _ in range(160):
        x = n.rng.standard_normal(shape) + n.rng.uniform(-0.3, 0.3)
        x[:, :4] *= 1000
        samples.append(np.asarray(x, np.float32))
    return samples, where
