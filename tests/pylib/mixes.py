"""Random mixes of nodes whose types converters lose: operators of other domains with and without a declared type, Casts in a row, nested
graphs, sequences, optional values and outputs, parts in other float types. All floats are [4, 16, 16], so that anything may follow anything."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SHAPE = (4, 16, 16)
F32, F16, F64, S64, BOOL = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.BOOL
FOREIGN = "example.foreign"
FUNCTIONS = ("Relu", "Sigmoid", "Tanh", "Identity", "Neg", "Abs", "Softmax", "Erf", "Softplus", "Celu", "Floor")


def foreign(net, x):
    """Takes and gives float32; what it gives may have a declared type."""
    many = net.rng.integers(1, 3)
    others = [net.any() for _ in range(net.rng.integers(0, 2))]
    outs = net.node("Swirl", [x, *others], many, domain=FOREIGN)
    if net.rng.random() < 0.5:
        net.declared += outs
    return outs[-1]


def known_elsewhere(net, x):
    """Of com.microsoft: ONNX Runtime has it."""
    op = net.pick("Trilu", "TransposeMatMul")
    return net.node(op, [x, net.any()] if op == "TransposeMatMul" else [x], domain="com.microsoft")[0]


def product(net, x):
    return net.node("MatMul", [x, net.weights()])[0]


def pair(net, x):
    return net.node("MatMul", [x, net.any()])[0]


def binary(net, x):
    op, y = net.pick("Add", "Sub", "Mul", "Max", "Min"), net.any()
    return net.node(op, [x, net.node("Sigmoid", [y])[0] if op == "Mul" else y])[0]


def function(net, x):
    return net.node(net.pick(*FUNCTIONS), [x])[0]


def turned(net, x):
    perm = net.rng.permutation(3)
    y = net.node("Transpose", [x], perm=perm.tolist())[0]
    if net.rng.random() < 0.5:
        y = net.node("MatMul", [y, net.weights(SHAPE[perm[2]])])[0]
    return net.node("Reshape", [y, net.ints(*SHAPE)])[0]


def casts(net, x):
    for t in net.rng.choice([F16, F64, F32, TensorProto.INT32], net.rng.integers(1, 4)):
        x = net.node("Cast", [x], to=int(t))[0]
    return net.node("Cast", [x], to=F32)[0]


def of_other_type(net, x):
    """A product in float16 or float64."""
    t = net.pick(F16, F64)
    w = net.const(net.rng.standard_normal((16, 16)) / 4, helper.tensor_dtype_to_np_dtype(t))
    y = net.node("MatMul", [net.node("Cast", [x], to=t)[0], w])[0]
    return net.node("Cast", [y], to=F32)[0]


def optional_output(net, x):
    kind = net.pick("Dropout", "Dropout mask", "Split", "TopK", "LayerNormalization")
    if kind == "Dropout":
        return net.node("Dropout", [x])[0]
    if kind == "Dropout mask":
        y, mask = net.node("Dropout", [x], 2)
        return net.node("Where", [mask, y, x])[0]
    if kind == "TopK":
        y, where = net.node("TopK", [x, net.ints(16)], 2)
        return net.node("Add", [y, net.node("Cast", [where], to=F32)[0]])[0]
    if kind == "LayerNormalization" and net.opset >= 17:
        y, mean, inverse = net.node(kind, [x, net.const(np.ones(16))], 3)
        return net.node("Add", [net.node("Mul", [y, inverse])[0], mean])[0]
    return net.node("Concat", net.node("Split", [x, net.ints(8, 8)], 2, axis=1)[::-1], axis=1)[0]


def sequence(net, x):
    if net.rng.random() < 0.5:
        parts = net.node("SequenceConstruct", [x, net.any()])[0]
        return net.node("SequenceAt", [parts, net.ints(net.rng.integers(0, 2), scalar=True)])[0]
    parts = net.node("SplitToSequence", [x], axis=1, keepdims=1)[0]
    return net.node("ConcatFromSequence", [parts], axis=1)[0]


def optional(net, x):
    if net.opset < 15:
        return function(net, x)
    return net.node("OptionalGetElement", [net.node("Optional", [x])[0]])[0]


def _inner(net):
    return net.pick(function, product, binary, foreign, risky, casts)


def branches(net, x):
    """An If; its branches take x from outside."""
    high = net.node("Greater", [net.node("ReduceMax", [x], keepdims=0)[0], net.const(0.5)])[0]
    graphs = {}
    for name in ("then_branch", "else_branch"):
        body = Net(net.rng, net.opset, net.counter, [x, net.any()])
        y = body.node("Identity", [_inner(net)(body, x)])[0]
        graphs[name] = body.graph([], [helper.make_tensor_value_info(y, F32, SHAPE)])
    return net.node("If", [high], **graphs)[0]


def loop(net, x):
    """Two trips that carry a tensor."""
    body = Net(net.rng, net.opset, net.counter, [])
    count, go, carried = (body.fresh() for _ in range(3))
    body.values = [carried, x]
    y = body.node("Tanh", [_inner(net)(body, carried)])[0]
    still = body.node("Identity", [go])[0]
    ends = [helper.make_tensor_value_info(still, BOOL, []), helper.make_tensor_value_info(y, F32, SHAPE)]
    starts = [helper.make_tensor_value_info(count, S64, []), helper.make_tensor_value_info(go, BOOL, []),
              helper.make_tensor_value_info(carried, F32, SHAPE)]
    return net.node("Loop", [net.ints(2, scalar=True), "", x], body=body.graph(starts, ends))[0]


def risky(net, x):
    """What float16 turns into 0, infinity or NaN."""
    size, kind = net.node("Abs", [x])[0], net.rng.integers(0, 8)
    tiny = net.const(10.0 ** -net.rng.integers(5, 13))
    if kind == 0:
        return net.node("Log", [net.node("Add", [size, tiny])[0]])[0]
    if kind == 1:
        return net.node("Log", [net.node("Add", [net.node("Softmax", [net.node("Mul", [x, net.const(20.0)])[0]])[0], tiny])[0]])[0]
    if kind == 2:
        return net.node("Div", [x, net.node("Add", [size, tiny])[0]])[0]
    if kind == 3:
        mean = net.node("ReduceMean", [net.node("Mul", [x, x])[0]], **net.axes_of_last())[0]
        return net.node("Div", [x, net.node("Sqrt", [net.node("Add", [mean, tiny])[0]])[0]])[0]
    if kind == 4:
        mean = net.node("ReduceMean", [net.node("Pow", [x, net.const(2.0)])[0]], **net.axes_of_last())[0]
        return net.node("Mul", [x, net.node("Reciprocal", [net.node("Sqrt", [net.node("Add", [mean, tiny])[0]])[0]])[0]])[0]
    if kind == 5:
        power = net.node("Mul", [size, net.const(1000.0)])[0]
        power = net.node("MatMul", [net.node("Mul", [power, power])[0], net.weights(positive=True)])[0]
        return net.node("Log", [net.node("Max", [power, tiny])[0]])[0]
    if kind == 6:
        e = net.node("Exp", [net.node("Clip", [net.node("Mul", [x, net.const(4.0)])[0], "", net.const(20.0)])[0]])[0]
        return net.node("Log", [net.node("Add", [e, net.const(1.0)])[0]])[0]
    masked = net.node("Add", [x, net.node("Mul", [net.node("Sigmoid", [x])[0], net.const(-1e9)])[0]])[0]
    return net.node("Softmax", [masked])[0]


KINDS = (foreign, known_elsewhere, product, product, pair, binary, function, turned, casts, of_other_type, optional_output, sequence, optional,
         branches, loop, risky, risky)


class Net:
    def __init__(self, rng, opset, counter=None, values=()):
        self.rng, self.opset, self.counter, self.values = rng, opset, counter if counter is not None else [0], list(values)
        self.nodes, self.constants, self.declared = [], [], []

    def pick(self, *items):
        return items[self.rng.integers(0, len(items))]

    def any(self):
        return self.pick(*self.values)

    def fresh(self):
        self.counter[0] += 1
        return f"v{self.counter[0]}"

    def const(self, value, kind=np.float32):
        name = self.fresh()
        self.constants.append(numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def ints(self, *values, scalar=False):
        return self.const(values[0] if scalar else values, np.int64)

    def weights(self, size=16, positive=False):
        w = self.rng.standard_normal((size, size)) / 4
        return self.const(np.abs(w) if positive else w)

    def axes_of_last(self):
        return {"axes": [-1]} if self.opset < 18 else {}

    def node(self, op, inputs, count=1, **attributes):
        outs = [self.fresh() for _ in range(count)]
        if op.startswith("ReduceMean") and self.opset >= 18:
            inputs = [*inputs, self.ints(-1)]
        self.nodes.append(helper.make_node(op, inputs, outs, name=f"{op}_{self.counter[0]}", **attributes))
        return outs

    def graph(self, inputs, outputs):
        declared = [helper.make_tensor_value_info(v, F32, SHAPE) for v in self.declared]
        return helper.make_graph(self.nodes, "g", inputs, outputs, self.constants, value_info=declared)


def make(seed):
    """(model, whether ONNX Runtime knows all its operators)"""
    rng = np.random.default_rng(seed)
    net = Net(rng, int(rng.choice([13, 14, 15, 17, 18, 20, 21, 22])), None, ["x"])
    for _ in range(rng.integers(4, 14)):
        y = net.pick(*KINDS)(net, net.values[-1] if rng.random() < 0.7 else net.any())
        net.values.append(y)
    ends = [net.node("Identity", [v])[0] for v in dict.fromkeys([net.values[-1], net.any()])]
    if rng.random() < 0.3:
        ends[-1] = net.values[-1] if net.values[-1] != "x" else ends[-1]
        ends = list(dict.fromkeys(ends))
    graph = net.graph([helper.make_tensor_value_info("x", F32, SHAPE)], [helper.make_tensor_value_info(v, F32, SHAPE) for v in ends])
    domains = [helper.make_opsetid(*d) for d in (("", net.opset), (FOREIGN, 1), ("com.microsoft", 1))]
    return helper.make_model(graph, opset_imports=domains, ir_version=8 if net.opset < 21 else 10)


def cancelling():
    """Divides by a difference of numbers around 1000: float16 holds all of its values, and loses the difference."""
    net = Net(np.random.default_rng(0), 17, None, ["x"])
    size = net.node("MatMul", ["x", net.weights()])[0]
    high = net.node("Add", [net.node("Sigmoid", [size])[0], net.const(1000.0)])[0]
    ratio = net.node("Div", [size, net.node("Sub", [high, net.const(999.9)])[0]])[0]
    y = net.node("MatMul", [net.node("Tanh", [ratio])[0], net.weights()])[0]
    graph = net.graph([helper.make_tensor_value_info("x", F32, SHAPE)], [helper.make_tensor_value_info(y, F32, SHAPE)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", net.opset)], ir_version=8)


def samples(count, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(SHAPE).astype(np.float32) for _ in range(count)]


def defined(model):
    """The model with each foreign node as nodes of ONNX that take float32 alone: any other type beside it is an error when it is loaded."""
    model = onnx.ModelProto.FromString(model.SerializeToString())

    def define(graph):
        nodes = []
        for node in graph.node:
            for a in node.attribute:
                if a.type == onnx.AttributeProto.GRAPH:
                    define(a.g)
            if node.domain != FOREIGN:
                nodes.append(node)
                continue
            for i, x in enumerate(node.input[1:]):
                nodes.append(helper.make_node("Celu", [x], [f"{node.name}/ignored_{i}"]))
            nodes += [helper.make_node("Celu", [node.input[0]], [y]) for y in node.output]
        kept = [onnx.NodeProto.FromString(n.SerializeToString()) for n in nodes]
        del graph.node[:]
        graph.node.extend(kept)

    define(model.graph)
    return model
