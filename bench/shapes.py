#!/usr/bin/env python3
"""Writes the shapes of a network's products and convolutions as CSV, for `check_kernels --bench FILE`.

    bench/shapes.py MODEL.onnx... [-o bench/shapes]

One line for each shape, `times` says how often it comes. A product of [m][k] and [k][n] is a 1x1 convolution of m pixels: h = m,
w = 1, c = k, oc = n; batch counts products side by side. weights: constant, or computed when both operands are activations. An
LSTM or GRU is two products, all inputs at once and one step for each. Free dimensions count as 1.
"""
import argparse
import collections
import csv
import math
from pathlib import Path

import onnx
from onnx import helper, numpy_helper

FIELDS = ("op", "times", "weights", "batch", "h", "w", "c", "oc", "kh", "kw", "sh", "sw", "dh", "dw", "pt", "pl", "oh", "ow", "groups")
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def pair(values, default, last=False):
    """The two numbers of an attribute; one-dimensional ones get `default` in front."""
    values = list(values or [])
    half = values[:len(values) // 2] if last else values
    return [default] * (2 - len(half)) + half


def product(op, m, k, n, batch=1, weights="constant"):
    return dict(op=op, weights=weights, batch=batch, h=m, w=1, c=k, oc=n, kh=1, kw=1, sh=1, sw=1, dh=1, dw=1, pt=0, pl=0, oh=m, ow=1,
                groups=1)


class Graph:
    def __init__(self, path):
        model = onnx.load(path)
        for value in (*model.graph.input, *model.graph.output):
            for d in value.type.tensor_type.shape.dim:
                if d.WhichOneof("value") != "dim_value":
                    d.dim_value = 1
        self.graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
        self.shape = {t.name: list(t.dims) for t in self.graph.initializer}
        self.constant = set(self.shape)
        for v in (*self.graph.input, *self.graph.value_info, *self.graph.output):
            self.shape.setdefault(v.name, [max(1, d.dim_value) for d in v.type.tensor_type.shape.dim])
        for node in self.graph.node:
            if node.op_type == "Constant":
                value = next((a.t for a in node.attribute if a.name == "value"), None)
                self.constant.add(node.output[0])
                self.shape[node.output[0]] = list(numpy_helper.to_array(value).shape) if value is not None else []

    def dims(self, name):
        if not self.shape.get(name):
            raise SystemExit(f"shapes: shape inference does not tell the shape of '{name}'")
        return self.shape[name]

    def convolution(self, node, attrs):
        x, w, y = (self.dims(n) for n in (node.input[0], node.input[1], node.output[0]))
        transposed = node.op_type == "ConvTranspose"
        groups, kernel = attrs.get("group", 1), pair(w[2:], 1)
        (h, width), (oh, ow) = pair(x[2:], 1), pair(y[2:], 1)
        strides, dilations = pair(attrs.get("strides", [1] * (len(x) - 2)), 1), pair(attrs.get("dilations", [1] * (len(x) - 2)), 1)
        pads = pair(attrs.get("pads", [0] * 2 * (len(x) - 2)), 0, last=True)
        if attrs.get("auto_pad", b"NOTSET").startswith(b"SAME"):
            span = [max(0, (o - 1) * s + (k - 1) * d + 1 - i)
                    for o, s, k, d, i in zip((oh, ow), strides, kernel, dilations, (h, width))]
            pads = [(p + (attrs["auto_pad"] == b"SAME_LOWER")) // 2 for p in span]
        yield dict(op=node.op_type, weights="constant" if node.input[1] in self.constant else "computed", batch=x[0], h=h, w=width,
                   c=x[1], oc=w[1] * groups if transposed else w[0], kh=kernel[0], kw=kernel[1], sh=strides[0], sw=strides[1],
                   dh=dilations[0], dw=dilations[1], pt=pads[0], pl=pads[1], oh=oh, ow=ow, groups=groups)

    def matmul(self, node, attrs):
        a, b = self.dims(node.input[0]), self.dims(node.input[1])
        constant = node.input[1] in self.constant
        if len(b) == 2:                     # one product of all rows
            yield product("MatMul", math.prod(a[:-1]), a[-1], b[-1], weights="constant" if constant else "computed")
        else:
            yield product("MatMul", a[-2], a[-1], b[-1], math.prod(self.dims(node.output[0])[:-2]),
                          "constant" if constant else "computed")

    def gemm(self, node, attrs):
        a, b = self.dims(node.input[0]), self.dims(node.input[1])
        m, k = reversed(a) if attrs.get("transA") else a
        yield product("Gemm", m, k, b[0] if attrs.get("transB") else b[1])

    def recurrent(self, node, attrs):
        (steps, batch, inputs), hidden = self.dims(node.input[0]), attrs["hidden_size"]
        directions, gates = self.dims(node.input[1])[0], GATES[node.op_type] * attrs["hidden_size"]
        for _ in range(directions):
            yield product(node.op_type, steps * batch, inputs, gates)
            yield product(node.op_type, batch, hidden, gates) | {"times": steps}

    def rows(self):
        """{shape as a tuple of FIELDS without times: times}"""
        of = {"Conv": self.convolution, "ConvTranspose": self.convolution, "MatMul": self.matmul, "Gemm": self.gemm,
              "LSTM": self.recurrent, "GRU": self.recurrent, "RNN": self.recurrent}
        count = collections.Counter()
        for node in self.graph.node:
            if node.op_type not in of:
                continue
            attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            for row in of[node.op_type](node, attrs):
                times = row.pop("times", 1)
                count[tuple(row[f] for f in FIELDS if f != "times")] += times
        return count


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("models", nargs="+", type=Path)
    p.add_argument("-o", "--output", type=Path, default=Path(__file__).resolve().parent / "shapes", help="folder [default: bench/shapes]")
    args = p.parse_args()
    for model in args.models:
        rows = Graph(model).rows()
        with open(args.output / f"{model.stem}.csv", "w", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(FIELDS)
            for row, times in rows.items():
                out.writerow([row[0], times, *row[1:]])
        at = {f: i for i, f in enumerate(f for f in FIELDS if f != "times")}
        macs = sum(t * r[at["batch"]] * (r[at["oh"]] * r[at["ow"]] if r[0] != "ConvTranspose" else r[at["h"]] * r[at["w"]])
                   * r[at["oc"]] * r[at["c"]] // r[at["groups"]] * r[at["kh"]] * r[at["kw"]] for r, t in rows.items())
        print(f"{model.stem}: {len(rows)} shapes, {macs / 1e9:.3f} GMAC")


if __name__ == "__main__":
    main()
