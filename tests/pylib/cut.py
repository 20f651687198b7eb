"""Cuts a quantized model into pieces between its integer tensors, and one in float16 without these between its operators.

An integer tensor is what a QuantizeLinear or a QLinear* operator makes from data (not from constants). A piece computes
one of them, or one float output of the model, from the nearest such tensors above it and the model's inputs. Where there is none, tensors of
float16 stand for them: runtimes may keep more digits between operators than the file says, so that whole models differ.
"""
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, shape_inference

CODES = (onnx.TensorProto.UINT8, onnx.TensorProto.INT8, onnx.TensorProto.UINT16, onnx.TensorProto.INT16)
REALS = 1e-4   # of their range, by which real outputs of a piece may differ
BODIES = 2e-3  # where the body of a node computes in float16: it is not cut

def gap(want, got):
    """How far values are apart: integers in LSB, reals in parts of their range. Those of float16 are not apart that are neighbours."""
    real = want.astype(np.float64)
    apart = np.abs(real - got)
    if want.dtype.kind != "f" or not want.size:
        return apart
    if want.dtype == np.float16:
        apart[apart <= np.abs(real) * 2.0 ** -10] = 0
    return apart / (float(real.max() - real.min()) or float(np.abs(real).max()) or 1.0)


def makes_integers(node):
    if node.op_type == "QGemm":  # without a scale of the output it gives reals
        return len(node.input) > 7 and node.input[7] != ""
    return node.op_type in ("QuantizeLinear", "ConvInteger", "MatMulInteger") or node.op_type.startswith("QLinear")


def bodies(graph):
    """Graphs that its nodes hold, and those within."""
    for node in graph.node:
        for a in node.attribute:
            for body in ([a.g] if a.HasField("g") else []) + list(a.graphs):
                yield body
                yield from bodies(body)


def is_half(graph):
    """Whether a graph turns something to float16 or has it among its constants."""
    half = onnx.TensorProto.FLOAT16
    to = any(a.name == "to" and a.i == half for n in graph.node for a in n.attribute)
    return to or any(t.data_type == half for t in graph.initializer)


def captured(node):
    """Names that the graphs of a node read from outside of them."""
    found = set()
    for a in node.attribute:
        for graph in ([a.g] if a.HasField("g") else []) + list(a.graphs):
            own = {v.name for v in graph.input} | {t.name for t in graph.initializer} | {o for n in graph.node for o in n.output}
            found |= {name for n in graph.node for name in (*n.input, *captured(n))} | {o.name for o in graph.output}
            found -= own
    return found - {""}


@dataclass
class Piece:
    name: str                    # the tensor it computes, as the model names it
    op: str                      # its main operator
    inputs: list                 # model's names of what it is fed
    model: onnx.ModelProto       # inputs renamed in0, in1...; output renamed out
    is_float: bool

    @property
    def reals(self):
        """How far real outputs may be apart."""
        return BODIES if any(is_half(body) for body in bodies(self.model.graph)) else REALS


class Cutter:
    def __init__(self, model):
        self.model = shape_inference.infer_shapes(model)
        graph = self.model.graph
        self.inits = {t.name: t for t in graph.initializer}
        self.sparse = {t.values.name: t for t in graph.sparse_initializer}
        self.producer = {out: node for node in graph.node for out in node.output if out}
        self.inputs = {v.name: v for v in graph.input if v.name not in self.inits}
        self.info = {v.name: v for v in (*graph.input, *graph.value_info, *graph.output)}
        self.varying = self._varying(graph)
        self.integers = [n.output[0] for n in graph.node if makes_integers(n) and n.output[0] in self.varying]
        self.halves = [] if self.integers else self._halves(graph)
        self.cuts = self.integers + self.halves

    def _varying(self, graph):
        found = set(self.inputs)
        for node in graph.node:
            if any(name in found for name in node.input):
                found.update(node.output)
        return found

    def _halves(self, graph):
        made = [o for n in graph.node for o in n.output if o in self.varying and o in self.info]
        return [o for o in made if self.info[o].type.tensor_type.elem_type == onnx.TensorProto.FLOAT16]

    def targets(self):
        cut = set(self.cuts)
        return self.cuts + [o.name for o in self.model.graph.output if o.name in self.varying and o.name not in cut]

    def exposed(self):
        """The model with every tensor where it is cut among its outputs."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        have = {o.name for o in model.graph.output}
        model.graph.output.extend(self._typed(name) for name in self.cuts if name not in have)
        return model

    def _typed(self, name):
        if name in self.info and self.info[name].type.tensor_type.elem_type:
            return self.info[name]
        return helper.make_tensor_value_info(name, self._element(name), None)

    def _element(self, name):
        """Integer type of a tensor from the zero point of its maker."""
        node = self.producer[name]
        last = node.input[2] if node.op_type == "QuantizeLinear" and len(node.input) > 2 else node.input[-1]
        kind = self.inits[last].data_type if last in self.inits else onnx.TensorProto.UINT8
        return kind if kind in CODES else onnx.TensorProto.UINT8

    def piece(self, target):
        stop = set(self.cuts) | set(self.inputs)
        nodes, feeds, seen, stack = [], [], set(), [target]
        while stack:
            name = stack.pop()
            if not name or name in seen:
                continue
            seen.add(name)
            if name in stop and name != target:
                feeds.append(name)
            elif name in self.producer:
                node = self.producer[name]
                if node not in nodes:
                    nodes.append(node)
                stack.extend((*node.input, *captured(node)))
        order = {id(n): i for i, n in enumerate(self.model.graph.node)}
        nodes.sort(key=lambda n: order[id(n)])
        feeds.sort()
        return self._build(target, nodes, feeds, seen)

    def _build(self, target, nodes, feeds, seen):
        rename = {name: f"in{i}" for i, name in enumerate(feeds)} | {target: "out"}
        # Graphs of nodes know these by their own names.
        copies = [helper.make_node("Identity", [rename[name]], [name]) for name in sorted(set().union(*map(captured, nodes)) & set(feeds))]
        for node in nodes:
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            copy.input[:] = [rename.get(n, n) for n in node.input]
            copy.output[:] = [rename.get(n, n) for n in node.output]
            copies.append(copy)

        def renamed(name):
            value = onnx.ValueInfoProto()
            value.CopyFrom(self._typed(name))
            value.name = rename[name]
            return value

        graph = helper.make_graph(copies, "piece", [renamed(n) for n in feeds], [renamed(target)],
                                  [self.inits[n] for n in sorted(seen) if n in self.inits])
        graph.sparse_initializer.extend(self.sparse[n] for n in sorted(seen) if n in self.sparse)
        model = helper.make_model(graph, opset_imports=self.model.opset_import, ir_version=self.model.ir_version,
                                  functions=self.model.functions)
        work = [n for n in nodes if n.op_type not in ("QuantizeLinear", "DequantizeLinear") and set(n.output) & self.varying]
        ops = "+".join(n.op_type for n in work[:3]) or nodes[-1].op_type
        return Piece(target, ops, feeds, model, target not in self.integers)
