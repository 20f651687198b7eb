"""Which nodes of a file a runtime computes on integers, by the graph that its optimizer leaves: nodes paired by name and by the names of what they make."""
import re
import tempfile
from pathlib import Path

import onnx

from pylib import peer

TOKEN = re.compile(r"(_token_\d+|/MatMulAddFusion|_nchwc)+$")
PRODUCTS = {"Gemm", "FusedGemm", "MatMul", "FusedMatMul", "QGemm", "QLinearMatMul", "MatMulIntegerToFloat", "DynamicQuantizeMatMul", "MatMulInteger",
            "MatMulNBits", "TransposeMatMul"}
CONVS = {"Conv", "FusedConv", "NhwcFusedConv", "QLinearConv", "ConvInteger"}
ADDS = {"Add", "QLinearAdd", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "BiasGelu", "FastGelu"}
ALIKE = {"Conv": CONVS, "Gemm": PRODUCTS, "MatMul": PRODUCTS, "LSTM": {"LSTM", "DynamicQuantizeLSTM"}, "Add": ADDS | PRODUCTS | CONVS,
         "MaxPool": {"MaxPool", "NhwcMaxPool"}, "AveragePool": {"AveragePool", "QLinearAveragePool"},
         "GlobalAveragePool": {"GlobalAveragePool", "QLinearGlobalAveragePool"}, "GlobalMaxPool": {"GlobalMaxPool"}}
# What one becomes part of that stands before it.
JOINED_SUM = {"Relu", "Clip", "QuantizeLinear"}
JOINED = JOINED_SUM | {"Add", "Cast", "Mul", "BatchNormalization", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid"}
# Operators on integers, by the operator that they compute.
KINDS = {op: op for op in ALIKE} | {
    "QLinearConv": "Conv", "ConvInteger": "Conv", "QGemm": "Gemm", "QLinearMatMul": "MatMul", "MatMulInteger": "MatMul", "MatMulNBits": "MatMul",
    "DynamicQuantizeMatMul": "MatMul", "MatMulIntegerToFloat": "MatMul", "DynamicQuantizeLSTM": "LSTM", "QLinearAdd": "Add",
    "QLinearAveragePool": "AveragePool", "QLinearGlobalAveragePool": "GlobalAveragePool"}
INTEGER = peer.INTEGER | {"DynamicQuantizeLSTM", "QLinearAdd", "QLinearAveragePool", "QLinearGlobalAveragePool", "NhwcMaxPool", "QAttention"}
MOVES = {"MaxPool", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Slice", "Flatten", "Gather", "Split", "DepthToSpace", "Resize", "Expand", "Tile",
         "GatherElements", "Identity", "NhwcMaxPool", "ReduceMax", "ReduceMin", "Where"}
BYTES = {onnx.TensorProto.UINT8, onnx.TensorProto.INT8}
FLOATS = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE, onnx.TensorProto.BFLOAT16}


def own_name(node):
    return node.name or next((o for o in node.output if o), "")


def nested(node):
    """(attribute, graph) of those that a node holds."""
    for a in node.attribute:
        for g in ([a.g] if a.HasField("g") else []) + list(a.graphs):
            yield a.name, g


def walk(graph, where=""):
    """(path, node, graph) of all nodes, those of nested graphs too, as lint names them."""
    for node in graph.node:
        yield where + own_name(node), node, graph
        for name, g in nested(node):
            yield from walk(g, f"{where}{own_name(node)}/{name}/")


class Optimized:
    """What a runtime makes of a file: node -> "int8", "blocks" or "float"."""

    def __init__(self, graph):
        self.by_name, self.by_output, self.bytes = {}, {}, set()
        self._read(graph)

    def _read(self, graph):
        self.bytes |= {v.name for v in graph.input if v.type.tensor_type.elem_type in BYTES}
        for node in graph.node:
            for name in {node.name, TOKEN.sub("", node.name)} - {""}:
                self.by_name.setdefault(name, []).append(node)
            for o in (*node.output, node.name.removesuffix("_nchwc")):
                self.by_output[o] = node
            moved = node.op_type in MOVES and any(i in self.bytes for i in node.input)
            if moved or (node.op_type in {"QuantizeLinear", "DynamicQuantizeLinear"}) or node.op_type.startswith("QLinear"):
                self.bytes.update(o for o in node.output)
            for _, g in nested(node):
                self._read(g)

    def runs(self, node):
        """What a node of the optimized graph computes on."""
        if node.op_type == "MatMulNBits":
            return "blocks"
        return "int8" if node.op_type in INTEGER or (node.op_type == "MaxPool" and node.input[0] in self.bytes) else "float"

    def of(self, node, readers):
        """What became of a node of the file; None where it went."""
        alike = ALIKE[KINDS[node.op_type]] | {node.op_type}
        named = [n for n in self.by_name.get(node.name, ()) if n.op_type in alike]
        if len({self.runs(n) for n in named}) == 1:
            return named[0]
        value = node.output[0]
        for _ in range(8):
            found = self.by_output.get(value)
            if found is not None and found.op_type in alike:
                return found
            them = readers.get(value, ())
            if len(them) != 1 or not them[0].output or them[0].op_type not in (JOINED_SUM if node.op_type in ("Add", "QLinearAdd") else JOINED):
                return None
            value = readers[value][0].output[0]
        return None


def optimized(path):
    """ONNX Runtime's graph of a file."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "optimized.onnx"
        peer.session(path, optimized=out)
        return Optimized(onnx.load(out, load_external_data=False).graph)


def readers_of(graph):
    found = {}
    for node in graph.node:
        for i in {*node.input} - {""}:
            found.setdefault(i, []).append(node)
        for _, g in nested(node):
            for name, them in readers_of(g).items():
                found.setdefault(name, []).extend(them)
    return found
