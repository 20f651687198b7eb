"""Small networks written node by node, with seeded constants; nothing is run, shapes are inferred when it is saved."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Nodes:
    """Nodes named by what they make, and named constants; seeded."""

    def __init__(self, seed):
        self.rng, self.nodes, self.inits = np.random.default_rng(seed), [], []

    def const(self, name, a):
        self.inits.append(numpy_helper.from_array(np.asarray(a), name))
        return name

    def node(self, op, inputs, out, name=None, **attributes):
        """out: a name, or a list of names."""
        outs = out if isinstance(out, list) else [out]
        self.nodes.append(helper.make_node(op, inputs, outs, name=name or f"{op}_{outs[0]}", **attributes))
        return out

    def save(self, path, inputs, outputs, opset=17, domains=()):
        """Inputs and outputs: (name, type, shape)."""
        ends = [[helper.make_tensor_value_info(*x) for x in end] for end in (inputs, outputs)]
        g = helper.make_graph(self.nodes, "made", *ends, self.inits)
        imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
        onnx.save(helper.make_model(g, ir_version=8, opset_imports=imports), path)


class Net(Nodes):
    """A network of one input x."""

    def __init__(self, seed, opset=13):
        super().__init__(seed)
        self.opset = opset

    def const(self, name, *shape, scale=1.0, value=None):
        a = self.rng.standard_normal(shape) * scale if value is None else value
        return super().const(name, np.asarray(a, np.float32 if value is None else value.dtype))

    def save(self, path, shape, out="y"):
        kind = TensorProto.FLOAT
        g = helper.make_graph(self.nodes, "net", [helper.make_tensor_value_info("x", kind, shape)],
                              [helper.make_tensor_value_info(out, kind, None)], self.inits)
        made = helper.make_model(g, ir_version=8, opset_imports=[helper.make_opsetid("", self.opset)])
        onnx.save(onnx.shape_inference.infer_shapes(made, strict_mode=True), path)
        return [self.rng.standard_normal(shape[1:]).astype(np.float32) for _ in range(20)]
