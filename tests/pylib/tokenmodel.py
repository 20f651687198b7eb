"""Networks of tokennet.py as ONNX models, in the nodes that exporters write. Inputs are int64 [N, L], L fixed; the output is logits [N, L, V]."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F = np.float32


class Writer:
    def __init__(self, net):
        self.net, self.nodes, self.constants, self.n = net, [], {}, 0

    def const(self, value, name=None):
        name = name or f"c{len(self.constants)}"
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def param(self, name):
        return self.const(self.net.p[name], name)

    def op(self, kind, *inputs, name=None, **attributes):
        out = name or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], f"/{out}", **attributes))
        return out

    def norm(self, x, name):
        """As torch writes it: Pow, ReduceMean, Sqrt, Div, Mul."""
        shift = f"{name}.shift" in self.net.p
        if shift:
            x = self.op("Sub", x, self.op("ReduceMean", x, axes=[-1], keepdims=1))
        v = self.op("ReduceMean", self.op("Pow", x, self.const(F(2))), axes=[-1], keepdims=1)
        y = self.op("Div", x, self.op("Sqrt", self.op("Add", v, self.const(F(1e-5)))))
        y = self.op("Mul", y, self.param(f"{name}.gain"), name=f"{name}.scaled")
        return self.op("Add", y, self.param(f"{name}.shift"), name=f"{name}.out") if shift else y

    def attention(self, x, i, bias):
        n = self.net
        d, h = n.wide, n.heads
        shape = self.const(np.array([0, n.length, h, d // h], np.int64), "by_heads")
        q, k, v = (self.op("Reshape", self.op("MatMul", x, self.param(f"{i}.{w}"), name=f"{i}.{w}.out"), shape) for w in "qkv")
        q, v = (self.op("Transpose", t, perm=[0, 2, 1, 3]) for t in (q, v))
        s = self.op("Mul", self.op("MatMul", q, self.op("Transpose", k, perm=[0, 2, 3, 1])), self.const(F(1 / np.sqrt(d // h)), "scale"))
        y = self.op("MatMul", self.op("Softmax", self.op("Add", s, bias), axis=-1), v)
        y = self.op("Reshape", self.op("Transpose", y, perm=[0, 2, 1, 3]), self.const(np.array([0, n.length, d], np.int64), "joined"))
        return self.op("MatMul", y, self.param(f"{i}.o"), name=f"{i}.o.out")

    def feed_forward(self, x, i):
        up = self.op("MatMul", x, self.param(f"{i}.up"), name=f"{i}.up.out")
        if f"{i}.gate" in self.net.p:
            gate = self.op("MatMul", x, self.param(f"{i}.gate"), name=f"{i}.gate.out")
            up = self.op("Mul", self.op("Mul", gate, self.op("Sigmoid", gate)), up)
        else:
            up = self.op("Relu", self.op("Add", up, self.param(f"{i}.up.bias")))
        return self.op("MatMul", up, self.param(f"{i}.down"), name=f"{i}.down.out")

    def bias(self):
        """Added to scores: what lies behind, and what the mask leaves out."""
        future = self.const(np.triu(np.full((self.net.length, self.net.length), -1e9, F), 1), "future")
        kept = self.op("Cast", self.op("Unsqueeze", "attention_mask", self.const(np.array([1, 2], np.int64))), to=TensorProto.FLOAT)
        return self.op("Add", self.op("Mul", self.op("Sub", self.const(F(1)), kept), self.const(F(-1e9))), future)

    def model(self):
        n = self.net
        x = self.op("Gather", self.param("embedding"), "input_ids")
        where = self.op("Gather", self.param("positions"), "position_ids") if "position_ids" in n.inputs else self.param("positions")
        x, bias = self.op("Add", x, where), self.bias()
        for i in range(n.layers):
            x = self.op("Add", x, self.attention(self.norm(x, f"{i}.norm1"), i, bias))
            x = self.op("Add", x, self.feed_forward(self.norm(x, f"{i}.norm2"), i))
        head = self.op("Transpose", self.param("embedding"), perm=[1, 0]) if n.tied else self.param("head")
        self.op("MatMul", self.norm(x, "norm"), head, name="logits")
        infos = [helper.make_tensor_value_info(name, TensorProto.INT64, ["N", n.length]) for name in n.inputs]
        out = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", n.length, n.words])
        graph = helper.make_graph(self.nodes, "tokens", infos, [out], list(self.constants.values()))
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        onnx.checker.check_model(made, full_check=True)
        return made


def arrays(net, ids, mask=None):
    """{input: array} for ids [N][L]."""
    made = {"input_ids": ids, "attention_mask": np.ones_like(ids) if mask is None else mask.astype(np.int64),
            "position_ids": np.broadcast_to(np.arange(ids.shape[1], dtype=np.int64), ids.shape)}
    return {name: np.ascontiguousarray(made[name]) for name in net.inputs}
