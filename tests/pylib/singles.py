"""Single layers with unusual attributes: LAYERS maps a name to a function that saves the model and returns samples, {input: array}."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

COUNT = 6
LAYERS = {}


class _Single:
    def __init__(self, opset):
        self.rng, self.opset, self.nodes, self.inits, self.inputs = np.random.default_rng(11), opset, [], [], {}

    def input(self, name, *shape):
        self.inputs[name] = shape
        return name

    def const(self, value):
        name = f"c{len(self.inits)}"
        self.inits.append(numpy_helper.from_array(value, name))
        return name

    def weights(self, *shape):
        return self.const((self.rng.standard_normal(shape) * 0.3).astype(np.float32))

    def node(self, op, *inputs, outs=1, **attrs):
        """Constants are given as arrays or lists of integers."""
        ins = [i if isinstance(i, str) else self.const(np.asarray(i, np.int64) if isinstance(i, list) else i) for i in inputs]
        made = [f"v{len(self.nodes)}.{k}" for k in range(outs)]
        self.nodes.append(helper.make_node(op, ins, made, name=f"{op}{len(self.nodes)}", **attrs))
        return made[0] if outs == 1 else made

    def save(self, path, outputs):
        kind = TensorProto.FLOAT
        g = helper.make_graph(self.nodes, "single", [helper.make_tensor_value_info(k, kind, s) for k, s in self.inputs.items()],
                              [helper.make_tensor_value_info(o, kind, None) for o in outputs], self.inits)
        model = helper.make_model(g, ir_version=8, opset_imports=[helper.make_opsetid("", self.opset)])
        onnx.save(onnx.shape_inference.infer_shapes(model), path)
        return [{k: self.rng.standard_normal(s).astype(np.float32) for k, s in self.inputs.items()} for _ in range(COUNT)]


def _add(name, opset, make):
    def save(path):
        net = _Single(opset)
        made = make(net)
        return net.save(path, made if isinstance(made, list) else [made])
    LAYERS[name] = save


# ---- layers with weights ----

def _kernel(op, name, shape, kernel, bias=True, behind=None, opset=13, **attrs):
    """A Conv or ConvTranspose with weights of the shape `kernel`, and with a Clip or LeakyRelu behind it."""
    def make(net):
        outs = kernel[0] if op == "Conv" else kernel[1] * attrs.get("group", 1)
        y = net.node(op, net.input("x", *shape), net.weights(*kernel), *([net.weights(outs)] if bias else []), **attrs)
        return net.node(behind[0], y, *behind[1:]) if behind else y
    _add(f"{op} {name}", opset, make)


IMAGE, LINE, SPACE = (1, 4, 9, 8), (1, 4, 17), (1, 4, 5, 6, 7)
HALF, SIX = np.float32(-0.5), np.float32(6)

for _op, _w in (("Conv", (6, 4, 3, 3)), ("ConvTranspose", (4, 6, 3, 3))):
    _kernel(_op, "plain", IMAGE, _w)
    _kernel(_op, "without bias", IMAGE, _w, bias=False)
    _kernel(_op, "asymmetric pads", IMAGE, _w, pads=[0, 2, 1, 0])
    _kernel(_op, "strides", IMAGE, _w, strides=[3, 1])
    _kernel(_op, "dilations", IMAGE, _w, dilations=[2, 1])
    for _pad in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        _kernel(_op, _pad, IMAGE, _w, auto_pad=_pad, strides=[2, 2])
    _kernel(_op, "groups", IMAGE, (6, 2, 3, 3) if _op == "Conv" else (4, 3, 3, 3), group=2)
    _kernel(_op, "depthwise", IMAGE, (4, 1, 3, 3), group=4)
    _kernel(_op, "depthwise, two outputs", IMAGE, (8, 1, 2, 2) if _op == "Conv" else (4, 2, 2, 2), group=4)
    _kernel(_op, "1-D", LINE, _w[:3], strides=[2])
    _kernel(_op, "3-D", SPACE, (*_w, 2))
    _kernel(_op, "one output", IMAGE, (1, 4, 1, 1) if _op == "Conv" else (4, 1, 1, 1))
    _kernel(_op, "LeakyRelu", IMAGE, _w, behind=("LeakyRelu",))
    _kernel(_op, "Relu", IMAGE, _w, behind=("Relu",))
    _kernel(_op, "Clip below zero", IMAGE, _w, behind=("Clip", HALF, SIX))
    _kernel(_op, "Clip above zero", IMAGE, _w, behind=("Clip", -HALF, SIX))
    _kernel(_op, "Clip", IMAGE, _w, behind=("Clip", np.float32(0), SIX))
_kernel("ConvTranspose", "output_padding", IMAGE, (4, 6, 3, 3), strides=[2, 3], output_padding=[1, 2])
_kernel("ConvTranspose", "output_shape", IMAGE, (4, 6, 3, 3), strides=[2, 2], output_shape=[19, 16])


def _gemm(name, a, b, c=None, behind=None, **attrs):
    def make(net):
        y = net.node("Gemm", net.input("x", *a), net.weights(*b), *([net.weights(*c)] if c is not None else []), **attrs)
        return net.node(behind, y) if behind else y
    _add(f"Gemm {name}", 13, make)


_gemm("plain", (3, 32), (32, 40), (40,))
_gemm("without bias", (3, 32), (32, 40))
_gemm("alpha", (3, 32), (32, 40), (40,), alpha=0.5)
_gemm("beta", (3, 32), (32, 40), (40,), beta=0.25)
_gemm("alpha and beta", (3, 32), (32, 40), (40,), alpha=2.0, beta=3.0)
_gemm("alpha without bias", (3, 32), (32, 40), alpha=0.5)
_gemm("transA", (32, 3), (32, 40), (40,), transA=1)
_gemm("transB", (3, 32), (40, 32), (40,), transB=1)
_gemm("transA and transB", (32, 3), (40, 32), (40,), transA=1, transB=1)
_gemm("bias of a row", (3, 32), (32, 40), (1, 40))
_gemm("bias of a number", (3, 32), (32, 40), ())
_gemm("bias of one", (3, 32), (32, 40), (1,))
_gemm("bias of a column", (3, 32), (32, 40), (3, 1))
_gemm("bias of a matrix", (3, 32), (32, 40), (3, 40))
_gemm("one row", (1, 32), (32, 40), (40,))
_gemm("Relu", (3, 32), (32, 40), (40,), behind="Relu")
_gemm("LeakyRelu", (3, 32), (32, 40), (40,), behind="LeakyRelu")


def _matmul(name, a, b, bias=None, swapped=False):
    def make(net):
        x, w = net.input("x", *a), net.weights(*b)
        y = net.node("MatMul", w, x) if swapped else net.node("MatMul", x, w)
        return net.node("Add", y, net.weights(*bias)) if bias is not None else y
    _add(f"MatMul {name}", 13, make)


_matmul("of rank 2", (3, 32), (32, 40))
_matmul("of a vector", (32,), (32, 40))
_matmul("by a vector", (3, 32), (32,))
_matmul("of two vectors", (32,), (32,))
_matmul("of rank 3", (2, 3, 32), (32, 40))
_matmul("of rank 4", (2, 2, 3, 32), (32, 40))
_matmul("by a batch of matrices", (2, 3, 32), (2, 32, 40))
_matmul("by a batch of one", (2, 3, 32), (1, 32, 40))
_matmul("by rank 4", (2, 2, 3, 32), (2, 2, 32, 40))
_matmul("of a constant by data", (32, 5), (3, 32), swapped=True)
for _bias in ((40,), (1, 40), (3, 40), ()):
    _matmul(f"and Add of {list(_bias)}", (3, 32), (32, 40), _bias)
    _matmul(f"of rank 3 and Add of {list(_bias)}", (2, 3, 32), (32, 40), _bias)


def _two(name, a, b, weighted):
    def make(net):
        x, y = net.input("x", *a), net.input("y", *b)
        if weighted:
            x, y = net.node("MatMul", x, net.weights(a[-1], a[-1])), net.node("MatMul", y, net.weights(b[-1], b[-1]))
        return net.node("MatMul", x, y)
    _add(f"MatMul of two inputs, {name}", 13, make)


for _name, _a, _b in (("rank 2", (3, 8), (8, 5)), ("rank 3", (2, 3, 8), (2, 8, 5)), ("rank 4", (1, 2, 3, 8), (1, 2, 8, 5)),
                      ("different ranks", (2, 3, 8), (8, 5))):
    _two(_name, _a, _b, False)
    _two(f"{_name}, behind products", _a, _b, True)


def _gemm_of_two(net):
    return net.node("Gemm", net.input("x", 3, 8), net.input("y", 8, 5))


def _computed_bias(net):
    return net.node("Conv", net.input("x", *IMAGE), net.weights(6, 4, 1, 1), net.input("b", 6))


def _computed_weights(net):
    return net.node("Conv", net.input("x", *IMAGE), net.input("w", 6, 4, 1, 1))


_add("Gemm of two inputs", 13, _gemm_of_two)
_add("Conv with a computed bias", 13, _computed_bias)
_add("Conv with computed weights", 13, _computed_weights)


def _recurrent(op, gates, name, dirs=1, inputs=3, **attrs):
    def make(net):
        x, hidden, size = net.input("x", 5, 2, 16), 12, 16
        ins = [net.weights(dirs, gates * hidden, size), net.weights(dirs, gates * hidden, hidden), net.weights(dirs, 2 * gates * hidden)]
        return net.node(op, x, *ins[:inputs - 1], hidden_size=hidden, **attrs)
    _add(f"{op} {name}", 14, make)


for _op, _gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
    _recurrent(_op, _gates, "plain")
    _recurrent(_op, _gates, "with biases", inputs=4)
    _recurrent(_op, _gates, "backwards", direction="reverse")
    _recurrent(_op, _gates, "in both directions", dirs=2, direction="bidirectional")
    _recurrent(_op, _gates, "batch first", layout=1)
_recurrent("LSTM", 4, "with a clip", clip=1.0)
_recurrent("LSTM", 4, "with coupled gates", input_forget=1)


# ---- layers without weights, between convolutions or matrix products ----

def _between(op, name, *more, shape=IMAGE, copies=1, outs=1, opset=13, product=False, **attrs):
    """copies: products whose results it takes; more: its other inputs."""
    def make(net):
        x = net.input("x", *shape)
        ways = [net.node("MatMul", x, net.weights(shape[-1], 8)) if product else net.node("Conv", x, net.weights(8, shape[1], *[1] * (len(shape) - 2)))
                for _ in range(copies)]
        made = net.node(op, *ways, *more, outs=outs, **attrs)
        ends = []
        for y in made if outs > 1 else [made]:
            given = onnx.shape_inference.infer_shapes(_draft(net, y), data_prop=True).graph.output[0].type.tensor_type.shape.dim
            dims = [d.dim_value for d in given]
            convolves = len(dims) in (3, 4, 5) and dims[1] > 0 and not product
            weights = net.weights(4, dims[1], *[1] * (len(dims) - 2)) if convolves else net.weights(dims[-1] or 1, 4) if dims else None
            ends.append(net.node("Conv" if convolves else "MatMul", y, weights) if dims and (convolves or dims[-1]) else y)
        return ends
    _add(f"{op} {name}", opset, make)


def _draft(net, y):
    kind = TensorProto.FLOAT
    g = helper.make_graph(net.nodes, "draft", [helper.make_tensor_value_info(k, kind, s) for k, s in net.inputs.items()],
                          [helper.make_tensor_value_info(y, kind, None)], net.inits)
    return helper.make_model(g, ir_version=8, opset_imports=[helper.make_opsetid("", net.opset)])


EMPTY = np.zeros(0, np.float32)
for _op in ("AveragePool", "MaxPool"):
    _between(_op, "plain", kernel_shape=[2, 2])
    _between(_op, "with pads", kernel_shape=[3, 3], pads=[1, 0, 1, 2])
    _between(_op, "with auto_pad", kernel_shape=[3, 3], auto_pad="SAME_UPPER", strides=[2, 2])
    _between(_op, "ceil_mode", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    _between(_op, "1-D", kernel_shape=[3], shape=LINE)
    _between(_op, "3-D", kernel_shape=[2, 2, 2], shape=SPACE)
_between("AveragePool", "count_include_pad", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
_between("AveragePool", "dilations", kernel_shape=[2, 2], dilations=[2, 1], opset=19)
_between("MaxPool", "dilations", kernel_shape=[2, 2], dilations=[2, 1])
_between("MaxPool", "storage_order", kernel_shape=[2, 2], storage_order=1)
for _op in ("GlobalAveragePool", "GlobalMaxPool"):
    _between(_op, "plain")
    _between(_op, "1-D", shape=LINE)
    _between(_op, "3-D", shape=SPACE)
for _mode in ("nearest", "linear", "cubic"):
    for _how in ("asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel"):
        _between("Resize", f"{_mode}, {_how}", EMPTY, np.float32([1, 1, 2, 2]), mode=_mode, coordinate_transformation_mode=_how)
_between("Resize", "nearest, ceil, smaller", EMPTY, np.float32([1, 1, 0.5, 0.7]), nearest_mode="ceil")
_between("Resize", "of channels", EMPTY, np.float32([1, 2, 1, 1]))
_between("Resize", "to sizes", EMPTY, EMPTY, [1, 8, 18, 5])
_between("Resize", "1-D", EMPTY, np.float32([1, 1, 3]), shape=LINE)
for _axis in (0, 1, 2, 3, -1):
    _between("Concat", f"axis {_axis}", copies=3, axis=_axis)
    _between("Softmax", f"axis {_axis}", axis=_axis)
    _between("Split", f"axis {_axis}", outs=2, axis=_axis, shape=(2, 4, 6, 8))
for _op in ("Add", "Mul", "Sub", "Div", "Max", "Min"):
    _between(_op, "of two", copies=2)
    _between(_op, "of a number", np.float32(1.5))
    _between(_op, "of channels", np.linspace(0.5, 2, 8, dtype=np.float32).reshape(1, 8, 1, 1))
    _between(_op, "of a row", np.linspace(0.5, 2, 8, dtype=np.float32))
    _between(_op, "rank 3", copies=2, shape=(2, 3, 16), product=True)
    _between(_op, "of more dimensions", np.ones((2, 1, 1, 1, 1), np.float32))
for _op in ("Sigmoid", "LeakyRelu", "Tanh", "Elu", "HardSigmoid", "Relu", "Erf", "Softplus", "Exp", "Neg", "Abs"):
    _between(_op, "plain")
    _between(_op, "rank 3", shape=(2, 3, 16), product=True)
_between("LeakyRelu", "negative", alpha=-0.5)
_between("HardSwish", "plain", opset=14)
_between("PRelu", "plain", np.full((8, 1, 1), 0.25, np.float32))
_between("Clip", "below zero", HALF, SIX)
_between("Clip", "above zero", -HALF, SIX)
_between("Clip", "without bounds")
_between("Reshape", "to rows", [1, -1, 8])
_between("Reshape", "with zeros", [0, 0, -1])
_between("Flatten", "axis 1")
_between("Flatten", "axis 2", axis=2)
_between("Transpose", "plain", perm=[0, 2, 3, 1])
_between("Transpose", "without perm")
_between("Unsqueeze", "front", [0])
_between("Squeeze", "front", [0])
_between("Slice", "plain", [1, 2], [5, 7], [2, 3])
_between("Slice", "backwards", [-1], [-100], [2], [-1])
_between("Gather", "channels", [0, 2, 5, -1], axis=1)
_between("Gather", "one", np.int64(2), axis=1)
_between("DepthToSpace", "plain", blocksize=2)
_between("DepthToSpace", "CRD", blocksize=2, mode="CRD")
_between("SpaceToDepth", "plain", blocksize=2, shape=(1, 4, 8, 6))
_between("Pad", "zeros", [0, 0, 1, 1, 0, 0, 1, 1])
_between("Pad", "reflect", [0, 0, 1, 1, 0, 0, 1, 1], mode="reflect")
_between("Expand", "plain", [3, 8, 9, 8])
_between("Tile", "plain", [1, 1, 2, 1])
_between("ReduceMean", "axes", axes=[2, 3])
_between("ReduceMax", "axes", axes=[2, 3])
_between("InstanceNormalization", "plain", np.ones(8, np.float32), np.zeros(8, np.float32))
_between("LayerNormalization", "plain", np.ones(8, np.float32), opset=17)
_between("Identity", "plain")
_between("Dropout", "plain")
