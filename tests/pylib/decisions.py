"""Small networks whose outputs are decisions on real numbers: masks, classes, rows above a threshold or sorted, lengths that depend on values. Weights and forms
follow from a seed, so that any number of models of a kind can be made."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Net:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants, self.outputs = [], [], []

    def const(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, *v):
        return self.const(np.array(v, np.int64))

    def node(self, op, *inputs, n=1, **attributes):
        outs = [f"{op.lower()}_{len(self.nodes)}_{k}" for k in range(n)]
        self.nodes.append(helper.make_node(op, list(inputs), outs, name=f"{op}_{len(self.nodes)}", **attributes))
        return outs[0] if n == 1 else outs

    def conv(self, x, ins, outs, relu=True):
        w = self.rng.normal(size=(outs, ins, 3, 3)) / np.sqrt(9 * ins) * (1.4 if relu else 2)
        y = self.node("Conv", x, self.const(w.astype(np.float32)), self.const((self.rng.normal(size=outs) * 0.1).astype(np.float32)), kernel_shape=[3, 3], pads=[1] * 4)
        return self.node("Relu", y) if relu else y

    def dense(self, x, ins, outs, relu=True):
        y = self.node("MatMul", x, self.const((self.rng.normal(size=(ins, outs)) / np.sqrt(ins) * (1.4 if relu else 2)).astype(np.float32)))
        y = self.node("Add", y, self.const((self.rng.normal(size=outs) * 0.1).astype(np.float32)))
        return self.node("Relu", y) if relu else y

    def out(self, value, name, kind, *dims):
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, kind, list(dims)))

    def save(self, path, *dims):
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", F, list(dims))], self.outputs, self.constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8), path)


def trunk(n, outs):
    """[1,outs,12,12] of a picture [1,3,12,12]."""
    width, x, ins = int(n.rng.choice([8, 16, 24])), "x", 3
    for _ in range(int(n.rng.integers(1, 4))):
        x, ins = n.conv(x, ins, width), width
    return n.conv(x, ins, outs, False)


def mask(n):
    form, classes = n.rng.integers(0, 6), int(n.rng.integers(2, 6))
    s = trunk(n, 1 if form in (0, 2, 4) else classes)
    half = n.const(np.float32(n.rng.normal() * 0.3))
    if form == 0:
        n.out(n.node("Greater", s, half), "mask", B, 1, 1, 12, 12)
    elif form == 1:
        n.out(n.node("ArgMax", s, axis=1, keepdims=0), "mask", I, 1, 12, 12)
    elif form == 2:
        n.out(n.node("Cast", n.node("Not", n.node("Less", n.node("Sigmoid", s), n.const(np.float32(0.5)))), to=TensorProto.UINT8), "mask", TensorProto.UINT8, 1, 1, 12, 12)
    elif form == 3:
        n.out(n.node("Cast", n.node("ArgMax", n.node("Softmax", s, axis=1), axis=1, keepdims=1), to=F), "mask", F, 1, 1, 12, 12)
    elif form == 4:
        n.out(n.node("Where", n.node("Greater", s, half), n.const(np.float32(255)), n.const(np.float32(0))), "mask", F, 1, 1, 12, 12)
    else:
        n.out(n.node("And", n.node("Greater", s, half), n.node("Less", s, n.const(np.float32(2)))), "mask", B, 1, classes, 12, 12)


def flat(n, s, columns):
    """[1,144,columns]"""
    return n.node("Transpose", n.node("Reshape", s, n.ints(1, columns, 144)), perm=[0, 2, 1])


def boxes(n):
    """boxes [1,144,4] around the cells, scores [1,144,classes]"""
    classes = int(n.rng.integers(1, 4))
    x, ins = "x", 3
    for _ in range(int(n.rng.integers(1, 3))):
        x, ins = n.conv(x, ins, 16), 16
    d = n.node("Sigmoid", flat(n, n.conv(x, ins, 4, False), 4))
    y, x0 = np.mgrid[:12, :12].reshape(2, -1).astype(np.float32) + 0.5
    centre = n.const(np.stack([x0, y], 1)[None])
    first, last = (n.node("Mul", n.node("Slice", d, n.ints(a), n.ints(b), n.ints(2)), n.const(np.float32(3))) for a, b in ((0, 2), (2, 4)))
    return n.node("Concat", n.node("Sub", centre, first), n.node("Add", centre, last), axis=2), n.node("Sigmoid", flat(n, n.conv(x, ins, classes, False), classes)), classes


def suppressed(n):
    b, s, classes = boxes(n)
    selected = n.node("NonMaxSuppression", b, n.node("Transpose", s, perm=[0, 2, 1]), n.ints(50), n.const(np.array([0.5], np.float32)),
                      n.const(np.array([0.6], np.float32)))
    which, of = (n.node("Gather", selected, n.const(np.int64(k)), axis=1) for k in (2, 1))
    b = n.node("Gather", n.node("Squeeze", b, n.ints(0)), which, axis=0)
    s = n.node("Gather", n.node("Reshape", s, n.ints(-1)), n.node("Add", n.node("Mul", which, n.const(np.int64(classes))), of))
    if n.rng.integers(0, 2):
        n.out(b, "boxes", F, "n", 4)
        n.out(of, "labels", I, "n")
        n.out(s, "scores", F, "n")
    else:
        n.out(n.node("Concat", b, n.node("Unsqueeze", s, n.ints(1)), n.node("Unsqueeze", n.node("Cast", of, to=F), n.ints(1)), axis=1), "detections", F, "n", 6)
    if n.rng.integers(0, 2):
        n.out(selected, "selected", I, "n", 3)


def picked(n):
    """Rows above a threshold, by each of the operators that pick."""
    form, h = n.rng.integers(0, 4), n.dense(n.node("Reshape", "x", n.ints(1, 12, 36)), 36, 32)
    s = n.node("Sigmoid", n.dense(h, 32, 1, False))
    row = n.node("Reshape", s, n.ints(-1))
    above = n.node("Greater", row, n.const(np.float32(0.5)))
    if form == 0:
        n.out(n.node("Compress", row, above), "scores", F, "n")
        n.out(n.node("Compress", n.node("Reshape", h, n.ints(12, 32)), above, axis=0), "states", F, "n", 32)
    elif form == 1:
        at = n.node("NonZero", above)
        n.out(at, "where", I, 1, "n")
        n.out(n.node("GatherND", row, n.node("Transpose", at)), "scores", F, "n")
    elif form == 2:
        k = n.node("Reshape", n.node("ReduceSum", n.node("Cast", above, to=I), n.ints(0), keepdims=0), n.ints(1))
        v, at = n.node("TopK", row, k, n=2)
        n.out(v, "scores", F, "n")
        n.out(at, "where", I, "n")
    else:
        n.out(n.node("Gather", n.node("Reshape", h, n.ints(12, 32)), n.node("Reshape", n.node("NonZero", above), n.ints(-1)), axis=0), "states", F, "n", 32)


def duration(n):
    """A length that is computed: frames repeated, a Range, or a Loop that ends by its values."""
    form, h = n.rng.integers(0, 3), n.dense(n.node("Reshape", "x", n.ints(12, 36)), 36, 24)
    sum_ = n.node("ReduceSum", n.node("Exp", n.node("Mul", n.dense(h, 24, 1, False), n.const(np.float32(0.5)))), keepdims=0)
    k = n.node("Reshape", n.node("Cast", n.node("Ceil", sum_), to=I), n.ints(1))
    y = n.dense(n.node("ReduceMean", h, axes=[0], keepdims=1), 24, 8, False)
    if form == 0:
        n.out(n.node("Tile", y, n.node("Concat", n.ints(1), k, axis=0)), "wav", F, 1, "n")
    elif form == 1:
        r = n.node("Range", n.const(np.int64(0)), n.node("Squeeze", k, n.ints(0)), n.const(np.int64(1)))
        n.out(n.node("Gather", n.node("Reshape", h, n.ints(-1)), r), "wav", F, "n")
    else:
        body = helper.make_graph([helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("Identity", ["row"], ["same"]), helper.make_node("Identity", ["row"], ["scan"])],
                                 "body", [helper.make_tensor_value_info("i", I, []), helper.make_tensor_value_info("go", B, []), helper.make_tensor_value_info("row", F, [1, 8])],
                                 [helper.make_tensor_value_info("go_on", B, []), helper.make_tensor_value_info("same", F, [1, 8]), helper.make_tensor_value_info("scan", F, [1, 8])])
        _, scan = n.node("Loop", n.node("Squeeze", k, n.ints(0)), "", y, n=2, body=body)
        n.out(scan, "frames", F, "n", 1, 8)


def ranked(n):
    """Rows sorted by score, in the forms of end-to-end detectors; or queries that are chosen first and decoded then."""
    form, k = n.rng.integers(0, 3), int(n.rng.integers(5, 30))
    b, s, classes = boxes(n)
    if form == 2:
        h = n.dense(n.node("Reshape", "x", n.ints(1, 12, 36)), 36, 24)
        _, at = n.node("TopK", n.node("ReduceMax", n.dense(h, 24, 3, False), axes=[2], keepdims=0), n.ints(6), n=2, axis=1)
        q = n.node("GatherElements", h, n.node("Expand", n.node("Unsqueeze", at, n.ints(2)), n.ints(1, 6, 24)), axis=1)
        q = n.dense(q, 24, 24)
        n.out(n.dense(q, 24, 5, False), "logits", F, 1, 6, 5)
        n.out(n.node("Sigmoid", n.dense(q, 24, 4, False)), "boxes", F, 1, 6, 4)
        return
    v, at = n.node("TopK", n.node("Reshape", s, n.ints(1, -1)), n.ints(k), n=2, axis=1)
    row, label = n.node("Div", at, n.const(np.int64(classes))), n.node("Mod", at, n.const(np.int64(classes)))
    rows = n.node("GatherElements", b, n.node("Expand", n.node("Unsqueeze", row, n.ints(2)), n.ints(1, k, 4)), axis=1)
    if form == 0:
        n.out(label, "labels", I, 1, k)
        n.out(n.node("Mul", rows, n.const(np.float32(8))), "boxes", F, 1, k, 4)
        n.out(v, "scores", F, 1, k)
    else:
        n.out(n.node("Concat", rows, n.node("Unsqueeze", v, n.ints(2)), n.node("Unsqueeze", n.node("Cast", label, to=F), n.ints(2)), axis=2), "output0", F, 1, k, 6)


def classified(n):
    """A class itself, with its scores before or behind it; or the best of a list."""
    form, c = n.rng.integers(0, 5), int(n.rng.integers(3, 12))
    s = n.dense(n.dense(n.node("Reshape", "x", n.ints(1, 432)), 432, 32), 32, c, False)
    label = n.node("ArgMax", s, axis=1, keepdims=0)
    if form == 0:
        n.out(label, "label", I, 1)
    elif form == 1:
        n.out(label, "label", I, 1)
        n.out(n.node("Softmax", s, axis=1), "probabilities", F, 1, c)
    elif form == 2:
        v, at = n.node("TopK", n.node("Softmax", s, axis=1), n.ints(3), n=2, axis=1)
        n.out(v, "values", F, 1, 3)
        n.out(at, "indices", I, 1, 3)
    elif form == 3:
        n.out(n.node("LabelEncoder", label, domain="ai.onnx.ml", keys_int64s=list(range(c)), values_strings=[f"class {k}" for k in range(c)]), "name", TensorProto.STRING, 1)
        n.out(n.node("Softmax", s, axis=1), "probabilities", F, 1, c)
    else:
        n.out(n.node("Hardmax", s, axis=1), "one_hot", F, 1, c)


def stepwise(n):
    """A class for each step, the steps first or behind the batch."""
    form, c = n.rng.integers(0, 3), int(n.rng.integers(4, 20))
    s = n.dense(n.dense(n.node("Reshape", "x", n.ints(1, 12, 36)), 36, 32), 32, c, False)
    if form == 0:
        n.out(n.node("LogSoftmax", n.node("Transpose", s, perm=[1, 0, 2]), axis=2), "logits", F, 12, 1, c)
    elif form == 1:
        n.out(n.node("Softmax", s, axis=-1), "logits", F, 1, 12, c)
    else:
        n.out(n.node("ArgMax", s, axis=-1, keepdims=0), "tags", I, 1, 12)


KINDS = {"mask": mask, "suppressed": suppressed, "picked": picked, "duration": duration, "ranked": ranked, "classified": classified, "stepwise": stepwise}


def make(kind, seed, path):
    n = Net([seed, list(KINDS).index(kind)])
    KINDS[kind](n)
    n.save(path, 1, 3, 12, 12)


def samples(seed, n):
    """[n,3,12,12]: smooth pictures."""
    return np.kron(np.random.default_rng(seed).normal(size=(n, 3, 4, 4)), np.ones((1, 1, 3, 3))).astype(np.float32)
