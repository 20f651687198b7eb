"""A model of models.py as a PyTorch module with the same weights, for peers that start from PyTorch."""
import operator

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from torch import fx, nn
from torch.nn import functional


class Recurrent(nn.Module):
    """ONNX's LSTM, one direction, zero initial state: [tokens][1][channels] to [tokens][1][1][hidden]."""

    def __init__(self, w, r, b):
        super().__init__()
        hidden = r.shape[-1]
        self.lstm = nn.LSTM(w.shape[-1], hidden)
        ours = (w[0], r[0], b[0][:4 * hidden], b[0][4 * hidden:])
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        for name, value in zip(names, ours):
            i, o, f, c = np.split(value, 4)          # PyTorch orders the gates i, f, c, o
            getattr(self.lstm, name).data = torch.from_numpy(np.concatenate([i, f, c, o]))

    def forward(self, x):
        return self.lstm(x)[0].unsqueeze(1)


def parameter(module, name, value):
    getattr(module, name).data = torch.from_numpy(np.array(value))
    return module


def convolution(w, bias, attrs):
    top, left, bottom, right = attrs["pads"]
    assert (top, left) == (bottom, right)
    groups = attrs["group"]
    made = nn.Conv2d(w.shape[1] * groups, w.shape[0], attrs["kernel_shape"], attrs["strides"], (top, left), attrs["dilations"],
                     groups, bias is not None)
    return parameter(parameter(made, "weight", w), "bias", bias) if bias is not None else parameter(made, "weight", w)


def dense(w, bias):
    made = parameter(nn.Linear(w.shape[1], w.shape[0], bias is not None), "weight", w)
    return parameter(made, "bias", bias) if bias is not None else made


def normalisation(scale, bias, mean, var, epsilon):
    made = nn.BatchNorm2d(len(scale), epsilon)
    for name, value in zip(("weight", "bias", "running_mean", "running_var"), (scale, bias, mean, var)):
        parameter(made, name, value)
    return made


class Builder:
    def __init__(self, model):
        self.model = onnx.load(model).graph
        self.const = {t.name: numpy_helper.to_array(t) for t in self.model.initializer}
        self.readers = {}
        for node in self.model.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        self.root, self.graph, self.value, self.skipped = nn.Module(), fx.Graph(), {}, set()

    # ---- pieces of a graph

    def module(self, made, *inputs):
        name = f"m{len(self.root._modules)}"
        self.root.add_module(name, made)
        return self.graph.call_module(name, tuple(inputs))

    def get(self, name):
        """The value of that name; a constant becomes a buffer."""
        if name not in self.value:
            buffer = f"c{len(self.root._buffers)}"
            self.root.register_buffer(buffer, torch.from_numpy(np.array(self.const[name])))
            self.value[name] = self.graph.get_attr(buffer)
        return self.value[name]

    def call(self, function, *args, **more):
        return self.graph.call_function(function, args, more)

    def chain(self, node, kinds):
        """The nodes of these types, each the first that reads the one before; None when they are not there."""
        found = [node]
        for kind in kinds:
            after = [n for n in self.readers.get(found[-1].output[0], []) if n.op_type == kind]
            if not after:
                return None
            found.append(after[0])
        return found

    def skip(self, nodes, result):
        self.skipped.update(n.output[0] for n in nodes)
        self.value[nodes[-1].output[0]] = result

    # ---- operators

    def matmul(self, node):
        if node.input[1] not in self.const:
            return self.call(torch.matmul, self.get(node.input[0]), self.get(node.input[1]))
        found, bias = self.chain(node, ["Add"]), None
        if found:
            bias = self.const[next(i for i in found[1].input if i != node.output[0])]
        made = self.module(dense(self.const[node.input[1]].T, bias), self.get(node.input[0]))
        if found:
            self.skip(found[1:], made)
        return made

    def division(self, node):
        found = self.chain(node, ["Erf", "Add", "Mul", "Mul"])
        if not found:
            return self.call(operator.truediv, self.get(node.input[0]), float(self.const[node.input[1]]))
        made = self.call(functional.gelu, self.get(node.input[0]))
        self.skip(found[1:], made)
        return made

    def plain(self, node, attrs):
        """Operators that PyTorch has as they are."""
        at = node.input
        name = {"Add": operator.add, "Sub": operator.sub, "Mul": operator.mul}.get(node.op_type)
        if name:
            return self.call(name, self.get(at[0]), self.get(at[1]))
        x = self.get(at[0])
        ints = [int(v) for v in np.ravel(self.const[at[1]])] if len(at) > 1 and at[1] in self.const else []
        return {
            "Softmax": lambda: self.call(torch.softmax, x, -1),
            "Tanh": lambda: self.call(torch.tanh, x),
            "Flatten": lambda: self.call(torch.flatten, x, 1),
            "Cast": lambda: self.graph.call_method("to", (x, torch.float32)),
            "Reshape": lambda: self.graph.call_method("reshape", (x, ints)),
            "Transpose": lambda: self.graph.call_method("permute", (x, *attrs.get("perm", []))),
            "Squeeze": lambda: self.graph.call_method("squeeze", (x, ints[0])),
            "Unsqueeze": lambda: self.graph.call_method("unsqueeze", (x, ints[0])),
        }[node.op_type]()

    def gather(self, node):
        if node.input[0] in self.const:
            table = self.const[node.input[0]]
            return self.module(parameter(nn.Embedding(*table.shape), "weight", table), self.get(node.input[1]))
        return self.call(torch.select, self.get(node.input[0]), 1, int(self.const[node.input[1]]))

    def node(self, node):
        attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        const = [self.const.get(i) for i in node.input[1:]]
        kind = node.op_type
        if kind == "MatMul":
            return self.matmul(node)
        if kind == "Div":
            return self.division(node)
        if kind == "Gather":
            return self.gather(node)
        if kind == "Identity":
            return self.get(node.input[0])
        layer = {
            "Conv": lambda: convolution(const[0], const[1] if len(const) > 1 else None, attrs),
            "BatchNormalization": lambda: normalisation(*const, attrs["epsilon"]),
            "Relu": lambda: nn.ReLU(),
            "Clip": lambda: nn.ReLU6(),
            "MaxPool": lambda: nn.MaxPool2d(attrs["kernel_shape"], attrs["strides"], attrs["pads"][0]),
            "GlobalAveragePool": lambda: nn.AdaptiveAvgPool2d(1),
            "Gemm": lambda: dense(const[0], const[1]),
            "LSTM": lambda: Recurrent(*const[:3]),
            "LayerNormalization": lambda: parameter(parameter(nn.LayerNorm(len(const[0]), attrs["epsilon"]), "weight", const[0]),
                                                    "bias", const[1]),
        }.get(kind)
        return self.module(layer(), self.get(node.input[0])) if layer else self.plain(node, attrs)

    def build(self):
        for value in self.model.input:
            self.value[value.name] = self.graph.placeholder(value.name)
        for node in self.model.node:
            if node.output[0] not in self.skipped:
                self.value[node.output[0]] = self.node(node)
        outputs = [self.value[o.name] for o in self.model.output]
        self.graph.output(outputs[0] if len(outputs) == 1 else tuple(outputs))
        return fx.GraphModule(self.root, self.graph).eval()


def load(model):
    """The ONNX file as a module in evaluation mode, its inputs in the model's order."""
    return Builder(model).build()
