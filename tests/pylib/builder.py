"""Builds ONNX networks with random but sane weights: every node is run on a few samples as it is added (numpy), so that
batch normalisation gets the statistics that training would have left, and shapes are known."""
import argparse
import math
from pathlib import Path

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

F = np.float32


def _windows(x, attrs, fill):
    """([n][c][out...][kernel...], ones of the same form without n, c) or None where the form is not the common one."""
    k = attrs["kernel_shape"]
    r = len(k)
    if attrs.get("ceil_mode") or attrs.get("auto_pad", "NOTSET") != "NOTSET":
        return None
    pads, strides, dil = attrs.get("pads", [0] * 2 * r), attrs.get("strides", [1] * r), attrs.get("dilations", [1] * r)
    x = np.pad(x, [(0, 0), (0, 0)] + [(pads[i], pads[r + i]) for i in range(r)], constant_values=fill)
    span = [d * (s - 1) + 1 for d, s in zip(dil, k)]
    w = sliding_window_view(x, span, tuple(range(2, 2 + r)))
    return w[(slice(None),) * 2 + tuple(slice(None, None, s) for s in strides) + tuple(slice(None, None, d) for d in dil)]


def _conv(attrs, x, w, b=None):
    attrs = {"kernel_shape": list(w.shape[2:]), **attrs}
    if attrs.get("auto_pad") == "VALID":
        attrs = {k: v for k, v in attrs.items() if k != "auto_pad"}
    g, r = attrs.get("group", 1), w.ndim - 2
    win = _windows(x, attrs, 0)
    if win is None:
        return None
    n, c, out = x.shape[0], x.shape[1], win.shape[2:2 + r]
    win = win.reshape(n, g, c // g, *win.shape[2:]).transpose(0, 1, *range(3, 3 + r), 2, *range(3 + r, 3 + 2 * r))
    cols = np.ascontiguousarray(win).reshape(n, g, math.prod(out), -1)
    y = cols @ w.reshape(g, w.shape[0] // g, -1).transpose(0, 2, 1)
    y = y.transpose(0, 1, 3, 2).reshape(n, w.shape[0], *out)
    return y if b is None else y + b.reshape(1, -1, *[1] * r)


def _max_pool(attrs, x):
    win = _windows(x, attrs, -np.inf)
    return None if win is None else win.max(tuple(range(x.ndim, win.ndim)))


def _average_pool(attrs, x):
    win = _windows(x, attrs, 0)
    if win is None:
        return None
    axes = tuple(range(x.ndim, win.ndim))
    if attrs.get("count_include_pad"):
        return win.mean(axes)
    return win.sum(axes) / _windows(np.ones_like(x[:1, :1]), attrs, 0).sum(axes)


def _column(t, rank):
    return t.reshape(-1, *[1] * (rank - 2))


def _batch_norm(attrs, x, scale, bias, mean, var):
    a = scale / np.sqrt(var + attrs["epsilon"])
    return x * _column(a, x.ndim) + _column(bias - mean * a, x.ndim)


def _instance_norm(attrs, x, scale, bias):
    axes = tuple(range(2, x.ndim))
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + attrs.get("epsilon", 1e-5))
    return y * _column(scale, x.ndim) + _column(bias, x.ndim)


FAST = {"BatchNormalization": _batch_norm, "InstanceNormalization": _instance_norm, "Conv": _conv, "MaxPool": _max_pool, "AveragePool": _average_pool, "MatMul": lambda _, a, b: a @ b,
        "Erf": lambda _, x: np.vectorize(math.erf, otypes=[F])(x)}


class Net:
    def __init__(self, name, opset=13, ir=8, constants="initializers"):
        """constants: initializers, inputs (initializers listed as inputs too, IR 3) or nodes (Constant nodes)."""
        self.name, self.opset, self.ir, self.constants = name, opset, ir, constants
        self.rng = np.random.default_rng([ord(c) for c in name])
        self.nodes, self.inits, self.inputs, self.outputs, self.value = [], [], [], [], {}
        self.batch = "N"

    # ---- values

    def input(self, name, data, keep=6):
        """data: all samples; the network is run on the first few."""
        shape = [self.batch, *data.shape[1:]]
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(data.dtype), shape))
        self.value[name] = data[:self.batch if isinstance(self.batch, int) else keep]
        return name

    def const(self, value, kind=F, name=None):
        value = np.asarray(value, kind)
        name = name or f"{self.name}.c{len(self.value)}"
        tensor = numpy_helper.from_array(value, name)
        if self.constants == "nodes":
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        else:
            self.inits.append(tensor)
        self.value[name] = value
        return name

    def ints(self, *values):
        return self.const(values, np.int64)

    def shape(self, x):
        return self.value[x].shape

    def channels(self, x):
        return self.value[x].shape[1]

    def output(self, x, name=None):
        if name:
            x = self.op("Identity", x, out=name)
        v = self.value[x]
        free = v.shape[0] == len(next(iter(self.value.values()))) and self.batch == "N"
        self.outputs.append(helper.make_tensor_value_info(x, helper.np_dtype_to_tensor_dtype(v.dtype),
                                                          ["N" if free else v.shape[0], *v.shape[1:]]))
        return x

    # ---- nodes

    def _run(self, node, inputs, attrs):
        fast = FAST.get(node.op_type)
        made = fast(attrs, *[self.value[i] for i in inputs if i]) if fast else None
        if made is not None:
            return [np.asarray(made, F)]
        infos = [helper.make_tensor_value_info(i, helper.np_dtype_to_tensor_dtype(self.value[i].dtype), self.value[i].shape)
                 for i in dict.fromkeys(i for i in inputs if i)]
        outs = [helper.make_tensor_value_info(o, TensorProto.UNDEFINED, None) for o in node.output]
        graph = helper.make_graph([node], "one", infos, outs)
        one = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        return ReferenceEvaluator(one).run(None, {i: self.value[i] for i in inputs if i})

    def op(self, kind, *inputs, outs=1, out=None, **attrs):
        """Adds a node and runs it; returns its output name, or a list of them when outs > 1."""
        number = len(self.nodes)
        names = [out] if out else [f"{self.name}.{kind.lower()}{number}" + (f".{i}" if outs > 1 else "") for i in range(outs)]
        node = helper.make_node(kind, list(inputs), names, name=f"/{kind}_{number}", **attrs)
        for name, value in zip(names, self._run(node, inputs, attrs)):
            value = np.asarray(value)
            self.value[name] = value.astype(F) if value.dtype == np.float64 else value
        self.nodes.append(node)
        return names[0] if outs == 1 else names

    # ---- forms that depend on the opset

    def clip(self, x, lo, hi):
        if self.opset < 11:
            return self.op("Clip", x, min=float(lo), max=float(hi))
        return self.op("Clip", x, self.const(lo), self.const(hi))

    def pad(self, x, pads, mode="constant"):
        if self.opset < 11:
            name = f"{self.name}.pad{len(self.nodes)}"
            v, r = self.value[x], len(pads) // 2
            how = {"constant_values": 0} if mode == "constant" else {}
            self.value[name] = np.pad(v, [(pads[i], pads[r + i]) for i in range(r)], mode=mode, **how)
            self.nodes.append(helper.make_node("Pad", [x], [name], name=f"/Pad_{len(self.nodes)}", pads=pads, mode=mode))
            return name
        return self.op("Pad", x, self.ints(*pads), mode=mode)

    def slice(self, x, starts, ends, axes, steps=None):
        if self.opset < 10:
            return self.op("Slice", x, starts=starts, ends=ends, axes=axes)
        more = [self.ints(*steps)] if steps else []
        return self.op("Slice", x, self.ints(*starts), self.ints(*ends), self.ints(*axes), *more)

    def resize(self, x, factor, mode="nearest", **attrs):
        scales = [1, 1] + [factor] * (len(self.shape(x)) - 2)
        if self.opset < 11:
            name = f"{self.name}.up{len(self.nodes)}"
            assert mode == "nearest"
            v = self.value[x]
            for axis in range(2, v.ndim):
                v = v.repeat(int(factor), axis)
            self.value[name] = v
            if self.opset < 9:
                node = helper.make_node("Upsample", [x], [name], mode=mode, scales=[float(s) for s in scales])
            else:
                node = helper.make_node("Upsample" if self.opset < 10 else "Resize", [x, self.const(scales)], [name], mode=mode)
            node.name = f"/{node.op_type}_{len(self.nodes)}"
            self.nodes.append(node)
            return name
        if mode == "nearest":
            attrs = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor", **attrs}
        roi = "" if self.opset >= 13 else self.const([])
        return self.op("Resize", x, roi, self.const(scales), mode=mode, **attrs)

    def _axes(self, kind, since, x, axes, **attrs):
        if self.opset < since:
            return self.op(kind, x, axes=axes, **attrs)
        return self.op(kind, x, self.ints(*axes), **attrs)

    def squeeze(self, x, axes):
        return self._axes("Squeeze", 13, x, axes)

    def unsqueeze(self, x, axes):
        return self._axes("Unsqueeze", 13, x, axes)

    def mean(self, x, axes, keep=1):
        return self._axes("ReduceMean", 18, x, axes, keepdims=keep)

    def split(self, x, sizes, axis=1):
        if self.opset < 13:
            return self.op("Split", x, outs=len(sizes), axis=axis, split=sizes)
        return self.op("Split", x, self.ints(*sizes), outs=len(sizes), axis=axis)

    def dropout(self, x):
        if self.opset < 12:
            name = f"{self.name}.drop{len(self.nodes)}"
            self.value[name] = self.value[x]
            self.nodes.append(helper.make_node("Dropout", [x], [name], ratio=0.5))
            return name
        return self.op("Dropout", x, self.const(0.5))

    def reshape(self, x, *shape):
        return self.op("Reshape", x, self.ints(*shape))

    # ---- layers

    def weight(self, *shape, spread=0.5):
        """He initialisation, each output channel with a range of its own."""
        w = self.rng.normal(0, np.sqrt(2 / max(1, math.prod(shape[1:]))), shape)
        w *= np.exp(self.rng.normal(0, spread, (shape[0],) + (1,) * (len(shape) - 1)))
        return w.astype(F)

    def unit(self, w, x, y_of):
        """w scaled so that the layer's output has a deviation of about one."""
        return (w / max(1e-3, float(y_of(w).std()))).astype(F)

    def bn(self, x, form="bn", gamma=1.0):
        v, c = self.value[x], self.channels(x)
        axes = tuple(i for i in range(v.ndim) if i != 1)
        scale = gamma * np.exp(self.rng.normal(0, 0.3, c))
        bias = self.rng.normal(0, 0.4, c)
        mean = v.mean(axes) + self.rng.normal(0, 0.05, c) * v.std(axes)
        var = v.var(axes) * np.exp(self.rng.normal(0, 0.15, c)) + 1e-4
        if form == "mul":          # as TensorFlow's exporters fold it
            a = scale / np.sqrt(var + 1e-3)
            shape = (1, c) + (1,) * (v.ndim - 2)
            x = self.op("Mul", x, self.const(a.reshape(shape)))
            return self.op("Add", x, self.const((bias - mean * a).reshape(shape)))
        return self.op("BatchNormalization", x, *[self.const(t) for t in (scale, bias, mean, var)], epsilon=1e-5)

    def act(self, x, kind):
        if not kind:
            return x
        if kind == "relu6":
            return self.clip(x, 0, 6)
        if kind == "silu":
            return self.op("Mul", x, self.op("Sigmoid", x))
        if kind == "hswish":
            if self.opset >= 14:
                return self.op("HardSwish", x)
            return self.op("Mul", x, self.op("HardSigmoid", x, alpha=1 / 6, beta=0.5))
        if kind == "hswish_div":   # as PyTorch's older exporter writes it
            y = self.clip(self.op("Add", x, self.const(3)), 0, 6)
            return self.op("Div", self.op("Mul", x, y), self.const(6))
        if kind == "leaky":
            return self.op("LeakyRelu", x, alpha=0.1)
        if kind == "prelu":
            slope = np.abs(self.rng.normal(0.2, 0.1, self.channels(x)))
            return self.op("PRelu", x, self.const(slope.reshape(-1, *[1] * (len(self.shape(x)) - 2))))
        if kind == "gelu":
            y = self.op("Add", self.op("Erf", self.op("Div", x, self.const(math.sqrt(2)))), self.const(1))
            return self.op("Mul", self.op("Mul", x, y), self.const(0.5))
        if kind == "gelu_tanh":
            y = self.op("Add", x, self.op("Mul", self.op("Pow", x, self.const(3)), self.const(0.044715)))
            y = self.op("Add", self.op("Tanh", self.op("Mul", y, self.const(math.sqrt(2 / math.pi)))), self.const(1))
            return self.op("Mul", self.op("Mul", x, y), self.const(0.5))
        if kind == "mish":
            return self.op("Mul", x, self.op("Tanh", self.op("Softplus", x)))
        return self.op({"relu": "Relu", "tanh": "Tanh", "elu": "Elu", "sigmoid": "Sigmoid"}[kind], x)

    def conv(self, x, oc, k=3, stride=1, group=1, dilation=1, act=None, bn=True, pad=None, bias=False, weight=None, **attrs):
        v = self.value[x]
        r = v.ndim - 2
        k = [k] * r if isinstance(k, int) else list(k)
        group = v.shape[1] if group == "dw" else group
        if pad is None:
            pad = [dilation * (s // 2) for s in k] * 2
        attrs = {"kernel_shape": k, "strides": [stride] * r, "dilations": [dilation] * r, "group": group, "pads": pad, **attrs}
        if weight is None:
            w = self.weight(oc, v.shape[1] // group, *k)
            weight = self.const(w if bn else self.unit(w, x, lambda u: _conv(attrs, v, u)))
        more = [self.const(self.rng.normal(0, 0.2, oc))] if bias or not bn else []
        y = self.op("Conv", x, weight, *more, **attrs)
        if bn:
            y = self.bn(y, bn if isinstance(bn, str) else "bn")
        return self.act(y, act)

    def fc(self, x, oc, act=None, deviation=1.0):
        w = self.weight(oc, self.shape(x)[1], spread=0.2)
        w = self.unit(w, x, lambda u: self.value[x] @ u.T) * F(deviation)
        return self.act(self.op("Gemm", x, self.const(w), self.const(self.rng.normal(0, 0.2, oc)), transB=1), act)

    def matmul(self, x, oc, bias=True):
        w = self.weight(oc, self.shape(x)[-1], spread=0.2)
        w = self.unit(w, x, lambda u: self.value[x] @ u.T).T.copy()
        y = self.op("MatMul", x, self.const(w))
        return self.op("Add", y, self.const(self.rng.normal(0, 0.2, oc))) if bias else y

    def gap(self, x, how="pool"):
        return self.op("GlobalAveragePool", x) if how == "pool" else self.mean(x, list(range(2, len(self.shape(x)))))

    def se(self, x, gate="hsigmoid", act="relu", how="pool"):
        c = self.channels(x)
        s = self.conv(self.gap(x, how), max(4, c // 4), 1, bn=False, act=act)
        s = self.conv(s, c, 1, bn=False)
        s = self.op("HardSigmoid", s, alpha=1 / 6, beta=0.5) if gate == "hsigmoid" else self.op("Sigmoid", s)
        return self.op("Mul", x, s)

    def pool(self, x, k=2, stride=None, pad=0, kind="MaxPool", **attrs):
        r = len(self.shape(x)) - 2
        return self.op(kind, x, kernel_shape=[k] * r, strides=[stride or k] * r, pads=[pad] * 2 * r, **attrs)

    def done(self):
        inputs = list(self.inputs)
        if self.constants == "inputs":
            inputs += [helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in self.inits]
        graph = helper.make_graph(self.nodes, self.name, inputs, self.outputs, self.inits)
        made = helper.make_model(graph, ir_version=self.ir, producer_name="octet make_zoo",
                                 opset_imports=[helper.make_opsetid("", self.opset)])
        onnx.checker.check_model(made, full_check=True)
        return made


def build_named(doc, nets, build):
    """The program around a table of networks: build(name, folder) for those that the command line names, or for all."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="only these")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in args.names or nets:
        build(name, args.folder)
        print(name)
