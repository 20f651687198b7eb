"""A float32 model as exporters write it in another float type: constants, declared types and the attributes that name one."""
import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

TYPES = {"float16": (TensorProto.FLOAT16, np.float16), "bfloat16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16), "float64": (TensorProto.DOUBLE, np.float64)}
ALWAYS_FLOAT = {"Resize": (2,), "Upsample": (1,), "Dropout": (1,)}  # inputs that have a type of their own
NAMED = ("to", "dtype")


def _tensor(t, kind):
    number, numpy_type = TYPES[kind]
    if t.data_type != TensorProto.FLOAT:
        return
    values = numpy_helper.to_array(t).astype(numpy_type)
    t.CopyFrom(helper.make_tensor(t.name, number, values.shape, values.tobytes(), raw=True))


def _apart(graph):
    """Names of values that keep float32."""
    return {n.input[i] for n in graph.node for i in ALWAYS_FLOAT.get(n.op_type, ()) if i < len(n.input) and n.input[i]}


def _graph(graph, kind, ends):
    number, apart = TYPES[kind][0], _apart(graph)
    for t in graph.initializer:
        if t.name not in apart:
            _tensor(t, kind)
    for v in (*graph.value_info, *(() if ends else (*graph.input, *graph.output))):
        if v.type.tensor_type.elem_type == TensorProto.FLOAT and v.name not in apart:
            v.type.tensor_type.elem_type = number
    for node in graph.node:
        keeps = any(o in apart for o in node.output)
        for a in node.attribute:
            if a.HasField("t") and not keeps:
                _tensor(a.t, kind)
            elif a.HasField("g"):
                _graph(a.g, kind, False)
            elif a.name in NAMED and a.i == TensorProto.FLOAT and not keeps:
                a.i = number


def _cast_ends(graph, kind):
    """Inputs and outputs stay float32, with Casts, as those of bfloat16 do that NumPy knows nothing of."""
    number = TYPES[kind][0]
    first, last = [], []
    floats = [v.name for v in graph.input if v.type.tensor_type.elem_type == TensorProto.FLOAT]
    made = [v.name for v in graph.output if v.type.tensor_type.elem_type == TensorProto.FLOAT]
    for name in floats:
        first.append(helper.make_node("Cast", [name], [f"{name}.narrow"], to=number))
    for name in made:
        last.append(helper.make_node("Cast", [f"{name}.narrow"], [name], to=TensorProto.FLOAT))
    ends = {*floats, *made}
    _rename(graph, ends)
    nodes = [*first, *graph.node, *last]
    del graph.node[:]
    graph.node.extend(nodes)


def _rename(graph, ends):
    for node in graph.node:
        node.input[:] = [f"{i}.narrow" if i in ends else i for i in node.input]
        node.output[:] = [f"{o}.narrow" if o in ends else o for o in node.output]
        for a in node.attribute:
            if a.HasField("g"):
                _rename(a.g, ends)


def rounded(model, kind):
    """In place: constants have numbers of the type, in float32."""
    def walk(graph):
        for t in graph.initializer:
            if t.data_type == TensorProto.FLOAT:
                t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(TYPES[kind][1]).astype(np.float32), t.name))
        for node in graph.node:
            for a in node.attribute:
                if a.HasField("t") and a.t.data_type == TensorProto.FLOAT:
                    a.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(a.t).astype(TYPES[kind][1]).astype(np.float32), a.t.name))
                if a.HasField("g"):
                    walk(a.g)
    walk(model.graph)


def retype(model, kind):
    """In place. Inputs and outputs of bfloat16 stay float32, behind Casts."""
    ends = kind == "bfloat16"
    _graph(model.graph, kind, ends)
    if ends:
        _cast_ends(model.graph, kind)
