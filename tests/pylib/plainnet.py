"""Small networks written node by node, with seeded constants; nothing is run, shapes are inferred when it is saved."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Net:
    """Nodes named by what they make, and constants; seeded."""

    def __init__(self, seed, opset=13):
        self.rng, self.opset = np.random.default_rng(seed), opset
        self.nodes, self.inits = [], []

    def const(self, name, *shape, scale=1.0, value=None):
        a = self.rng.standard_normal(shape) * scale if value is None else value
        self.inits.append(numpy_helper.from_array(np.asarray(a, np.float32 if value is None else value.dtype), name))
        return name

    def node(self, op, inputs, out, **attrs):
        self.nodes.append(helper.make_node(op, inputs, [out], name=f"{op}_{out}", **attrs))
        return out

    def save(self, path, shape, out="y"):
        kind = TensorProto.FLOAT
        g = helper.make_graph(self.nodes, "net", [helper.make_tensor_value_info("x", kind, shape)],
                              [helper.make_tensor_value_info(out, kind, None)], self.inits)
        made = helper.make_model(g, ir_version=8, opset_imports=[helper.make_opsetid("", self.opset)])
        onnx.save(onnx.shape_inference.infer_shapes(made, strict_mode=True), path)
        return [self.rng.standard_normal(shape[1:]).astype(np.float32) for _ in range(20)]
