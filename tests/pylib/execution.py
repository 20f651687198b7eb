"""Which nodes of a file OpenVINO computes on integers, by its execution graph on CPUs: nodes paired by the names that it keeps of the file's."""
import functools
import re

from pylib import stands

SUFFIX = re.compile(r"(/WithoutBiases|/DequantizationMultiply.*|_original)$")
INTEGERS = {"u8", "i8"}
# What passes values on and computes nothing.
PASSES = {"Const", "Reorder", "Input", "Output", "Convert"}
PRODUCTS = {"FullyConnected", "MatMul"}
POOLS = {"Pooling", "Reduce", "AdaptivePooling"}
CONVS = {"Convolution", "GroupConvolution"}
# The layers that compute what a node of the file does, or that it became part of.
ALIKE = {"Conv": CONVS, "Gemm": PRODUCTS, "MatMul": PRODUCTS, "MaxPool": POOLS, "AveragePool": POOLS, "GlobalAveragePool": POOLS,
         "GlobalMaxPool": POOLS, "LSTM": {"LSTMSequence", "LSTMCell", "RNNSeq", "RNNCell"}, "Add": PRODUCTS | CONVS | {"Eltwise", "Subgraph", "Add"}}
# Of these the type is OpenVINO's runtimePrecision, the smallest one that is read. Of all others it is that of the first input, since a product of float
# activations and weights of 8 bits computes on floats, though its runtimePrecision is u8. The first input also decides about a sum that has no name in its
# layer and stands before a quantizer that has one, with more behind it: the smallest type may be that of what the layer reads there.
ELEMENTWISE = {"Eltwise", "Subgraph", "Add"}
FIELDS = ("layerType", "runtimePrecision", "originalLayersNames")


def _text(value):
    return str(value.value if hasattr(value, "value") else value.astype(str))


def layers_of(compiled):
    """The layers of its execution graph, in order: name, FIELDS, and "reads", the type of the first input, of each."""
    for op in compiled.get_runtime_model().get_ordered_ops():
        info = op.get_rt_info()
        reads = op.input(0).get_element_type().get_type_name() if op.get_input_size() else ""
        yield {"name": op.get_friendly_name(), "reads": reads} | {key: _text(info[key]) if key in info else "" for key in FIELDS}


@functools.cache
def _core():
    import openvino

    return openvino.Core()


def compiled(path):
    """A file for one thread, on floats of 32 bits where it is on floats."""
    return _core().compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})


def graph_of(path):
    """layers_of() a file."""
    return layers_of(compiled(path))


class Execution:
    """What OpenVINO makes of a file, by the layers of graph_of(): of() a node -> "int8", "float", or None where it went."""

    def __init__(self, layers):
        self.layers = {}
        for layer in layers:
            kind = layer["layerType"]
            runs = (layer["runtimePrecision"].lower() if kind in ELEMENTWISE else layer["reads"], layer["reads"])
            own = [SUFFIX.sub("", name.strip()) for name in layer.get("originalLayersNames", "").split(",")]
            for name in {*own, SUFFIX.sub("", layer["name"])} - {""} if kind not in PASSES else ():
                self.layers.setdefault(name, set()).add((kind, *runs, name == own[-1]))

    def _named(self, node, kinds, before):
        """before: what stands before the node, and has no name itself."""
        them = set().union(*(self.layers.get(name, set()) for name in {node.name, *node.output} - {""}))
        return {(kind, reads if before and not last else runs) for kind, runs, reads, last in them if kind in kinds}

    def found(self, node, readers):
        """{(kind of layer, type)} that compute the node: those of its name, or of the node behind it that it became part of."""
        kinds = ALIKE[stands.KINDS[node.op_type]]
        joined = stands.JOINED_SUM if stands.KINDS[node.op_type] == "Add" else stands.JOINED
        for _ in range(8):
            them = self._named(node, kinds, node.op_type == "QuantizeLinear")
            behind = readers.get(node.output[0], ())
            if them or len(behind) != 1 or behind[0].op_type not in joined:
                return them
            node = behind[0]
        return set()

    def of(self, node, readers):
        on = {runs in INTEGERS for _, runs in self.found(node, readers)}
        return None if len(on) != 1 else "int8" if on.pop() else "float"
