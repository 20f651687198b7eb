"""Which nodes of a file OpenVINO computes on integers, by its execution graph on CPUs: nodes paired by the names that it keeps of the file's."""
import re

import openvino

from pylib import stands

SUFFIX = re.compile(r"(/WithoutBiases|/DequantizationMultiply.*|_original)$")
INTEGERS = {"u8", "i8"}
# What passes values on and computes nothing.
PASSES = {"Const", "Reorder", "Input", "Output", "Convert"}
PRODUCTS = {"FullyConnected", "MatMul"}
POOLS = {"Pooling", "Reduce", "AdaptivePooling"}
# The layers that compute what a node of the file does, or that it became part of.
ALIKE = {"Conv": {"Convolution", "GroupConvolution"}, "Gemm": PRODUCTS, "MatMul": PRODUCTS, "MaxPool": POOLS, "AveragePool": POOLS, "GlobalAveragePool": POOLS,
         "GlobalMaxPool": POOLS, "LSTM": {"LSTMSequence", "LSTMCell", "RNNSeq", "RNNCell"},
         "Add": PRODUCTS | {"Eltwise", "Subgraph", "Convolution", "Add"}}


def _field(op, key):
    info = op.get_rt_info()
    if key not in info:
        return ""
    value = info[key]
    return str(value.value if hasattr(value, "value") else value.astype(str))


class Execution:
    """What OpenVINO makes of a file: of() a node -> "int8", "float", or None where it went."""

    def __init__(self, path):
        compiled = openvino.Core().compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        self.layers = {}
        for op in compiled.get_runtime_model().get_ordered_ops():
            kind, runs = _field(op, "layerType"), _field(op, "runtimePrecision").lower()
            if kind in PASSES:
                continue
            for name in (*_field(op, "originalLayersNames").split(","), op.get_friendly_name()):
                self.layers.setdefault(SUFFIX.sub("", name.strip()), set()).add((kind, runs))

    def found(self, node):
        """{(kind of layer, type)} that compute the node."""
        them = set().union(*(self.layers.get(name, set()) for name in {node.name, *node.output} - {""}))
        return {(kind, runs) for kind, runs in them if kind in ALIKE[stands.KINDS[node.op_type]]}

    def of(self, node):
        on = {runs in INTEGERS for _, runs in self.found(node)}
        return None if len(on) != 1 else "int8" if on.pop() else "float"
