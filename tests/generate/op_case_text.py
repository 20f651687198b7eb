"""Writes operator cases in the text form that tests/unit/test_ops_cases.c reads."""
import numpy as np
import onnx
from onnx import numpy_helper

RAW = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
       10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64}


def tensor_text(t, q=None):
    """t: TensorProto or numpy array; q: (scale, zero point) of a quantized tensor."""
    if t is None:
        return "absent"
    if isinstance(t, onnx.TensorProto):
        dtype, dims = t.data_type, list(t.dims)
        data = numpy_helper.to_array(t)
        data = data.astype(RAW[dtype]) if dtype in RAW else np.frombuffer(t.raw_data or data.tobytes(), np.uint8)
    else:
        data = np.asarray(t)
        dtype, dims = int(onnx.helper.np_dtype_to_tensor_dtype(data.dtype)), list(data.shape)
    text = data.tobytes().hex()
    parts = [dtype, len(dims), *dims, text or "-"]
    if q is not None:
        parts += ["q", repr(float(q[0])), int(q[1])]
    return " ".join(str(p) for p in parts)


def attr_text(a):
    t = onnx.AttributeProto
    if a.type == t.INT:
        return f"{a.name} int {a.i}"
    if a.type == t.FLOAT:
        return f"{a.name} float {float(a.f)!r}"
    if a.type == t.STRING:
        return f"{a.name} string {a.s.decode()}"
    if a.type == t.INTS:
        return f"{a.name} ints {' '.join(map(str, a.ints))}"
    if a.type == t.FLOATS:
        return f"{a.name} floats {' '.join(repr(float(x)) for x in a.floats)}"
    if a.type == t.STRINGS:
        return f"{a.name} strings {' '.join(x.decode() for x in a.strings)}"
    if a.type == t.TENSOR:
        return f"{a.name} tensor {tensor_text(a.t)}"
    raise ValueError(f"attribute type {a.type}")


def write_case(f, name, node, opset, inputs, outputs, tol=None, free_shape=False, refuses=False):
    lines = [f"case {name} {node.op_type} {opset} {node.domain}".rstrip()]
    lines += ["attr " + attr_text(a) for a in node.attribute]
    if tol is not None:
        lines.append(f"tol {tol[0]} {tol[1]}")
    if free_shape:
        lines.append("free_shape")
    if refuses:
        lines.append("refuses")
    for kind, tensors in (("in", inputs), ("out", outputs)):
        for t in tensors:
            t, q = t if isinstance(t, tuple) else (t, None)
            lines.append(f"{kind} {tensor_text(t, q)}")
    f.write("\n".join(lines + ["end", "", ""]))
