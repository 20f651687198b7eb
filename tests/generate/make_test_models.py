#!/usr/bin/env python3
"""Makes testdata/models/: a tiny model per feature, with inputs and ONNX Runtime's outputs.

NAME.onnx comes with NAME.npz whose arrays are `in/INPUT` and `out/OUTPUT`. Models that ONNX Runtime cannot run (a custom
operator) come without the .npz. Run tests/generate/make_testdata.py first: two models are quantized from its demo.onnx.
Each model is a function below, registered by @model; its docstring's first line becomes its line in README.md.
"""
import argparse
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import peer
from pylib.samples import open_samples

ROOT = Path(__file__).resolve().parents[2]
F32 = TensorProto.FLOAT
MODELS = []


def model(name, runs=True):
    """Registers a maker. It returns (model, feeds) or (model, None) for random feeds; `runs`: ONNX Runtime can run it."""
    def register(make):
        MODELS.append((name, make, runs))
        return make
    return register


class Net:
    """Collects nodes and constants; seeded by its name, so that models do not depend on each other."""

    def __init__(self, name, opset=13, ir=7):
        self.name, self.opset, self.ir = name, opset, ir
        self.rng = np.random.default_rng([ord(c) for c in name])
        self.nodes, self.inits, self.inputs, self.outputs = [], [], [], []
        self.more_opsets, self.functions, self.sparse = [], [], []

    def input(self, name, shape, kind=F32):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def const(self, name, value, kind=np.float32):
        self.inits.append(numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def weight(self, name, *shape):
        fan = max(1, int(np.prod(shape[1:])))
        return self.const(name, self.rng.normal(0, 1 / np.sqrt(fan), shape))

    def node(self, op, inputs, outputs, domain=None, **attrs):
        outputs = [outputs] if isinstance(outputs, str) else outputs
        self.nodes.append(helper.make_node(op, inputs, outputs, name=f"{op.lower()}_{len(self.nodes)}", domain=domain, **attrs))
        return outputs[0]

    def batch_norm(self, x, channels, y, **attrs):
        names = [self.const(y + "_scale", self.rng.uniform(0.5, 2, channels)), self.const(y + "_bias", self.rng.normal(0, 1, channels)),
                 self.const(y + "_mean", self.rng.normal(0, 0.3, channels)), self.const(y + "_var", self.rng.uniform(0.3, 2, channels))]
        return self.node("BatchNormalization", [x] + names, y, **attrs)

    def output(self, name, shape, kind=F32):
        self.outputs.append(helper.make_tensor_value_info(name, kind, shape))

    def done(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.inits)
        graph.sparse_initializer.extend(self.sparse)
        made = helper.make_model(graph, ir_version=self.ir, producer_name="octet make_test_models", functions=self.functions,
                                 opset_imports=[helper.make_opsetid("", self.opset), *self.more_opsets])
        return made


def simple(name, opset, op, shape, out_shape, consts=(), ir=7, **attrs):
    """x -> op -> y, with constants as further inputs; '' leaves an input out."""
    net = Net(name, opset, ir)
    names = [net.input("x", shape)]
    for i, value in enumerate(consts):
        names.append("" if value is None else net.const(f"c{i}", value, getattr(value, "dtype", np.float32)))
    net.node(op, names, "y", **attrs)
    net.output("y", out_shape)
    return net.done(), None


def ints(*values):
    return np.array(values, np.int64)


# ---- operators whose form changed with the opset

for _name, _args in {
    "clip_op6": (7, "Clip", ["N", 3, 4, 4], ["N", 3, 4, 4], (), {"min": -0.5, "max": 0.75}),
    "clip_op11": (11, "Clip", ["N", 3, 4, 4], ["N", 3, 4, 4], (np.float32(-0.5), np.float32(0.75)), {}),
    "clip_op11_max_only": (11, "Clip", ["N", 3, 4, 4], ["N", 3, 4, 4], (None, np.float32(0.25)), {}),
    "pad_op2": (10, "Pad", [1, 2, 3, 4], [1, 2, 6, 7], (), {"pads": [0, 0, 1, 2, 0, 0, 2, 1], "value": 0.5}),
    "pad_op2_reflect": (10, "Pad", [1, 2, 4, 4], [1, 2, 6, 7], (), {"pads": [0, 0, 1, 2, 0, 0, 1, 1], "mode": "reflect"}),
    "pad_op2_negative": (10, "Pad", [1, 2, 5, 5], [1, 2, 4, 6], (), {"pads": [0, 0, -1, 1, 0, 0, 0, 0]}),
    "pad_op11_edge": (11, "Pad", [1, 2, 3, 4], [1, 2, 5, 7], (ints(0, 0, 1, 2, 0, 0, 1, 1),), {"mode": "edge"}),
    "slice_op1": (9, "Slice", [2, 5, 6], [2, 3, 2], (), {"axes": [1, 2], "starts": [1, -3], "ends": [4, -1]}),
    "slice_op1_no_axes": (7, "Slice", [4, 5], [2, 5], (), {"starts": [1], "ends": [3]}),
    "slice_op10_steps": (10, "Slice", [4, 7], [4, 4], (ints(6), ints(-100), ints(1), ints(-2)), {}),
    "squeeze_op1": (11, "Squeeze", [2, 1, 3, 1], [2, 3], (), {"axes": [1, 3]}),
    "squeeze_op1_all": (11, "Squeeze", [2, 1, 3, 1], [2, 3], (), {}),
    "squeeze_op11_negative": (11, "Squeeze", [2, 1, 3, 1], [2, 1, 3], (), {"axes": [-1]}),
    "unsqueeze_op1": (11, "Unsqueeze", [2, 3], [1, 2, 3, 1], (), {"axes": [0, 3]}),
    "softmax_op1": (9, "Softmax", [2, 3, 4], [2, 3, 4], (), {}),
    "softmax_op11_axis2": (11, "Softmax", [2, 3, 4], [2, 3, 4], (), {"axis": 2}),
    "softmax_op11_axis0": (11, "Softmax", [2, 3, 4], [2, 3, 4], (), {"axis": 0}),
    "softmax_op11_negative": (11, "Softmax", [2, 3, 2, 2], [2, 3, 2, 2], (), {"axis": -2}),
    "logsoftmax_op11": (11, "LogSoftmax", [2, 3, 4], [2, 3, 4], (), {"axis": 1}),
    "softmax_op13_axis1": (13, "Softmax", [2, 3, 4], [2, 3, 4], (), {"axis": 1}),
    "reducemean_op1": (11, "ReduceMean", ["N", 3, 4, 5], ["N", 3], (), {"axes": [2, 3], "keepdims": 0}),
    "reducesum_op1": (11, "ReduceSum", [2, 3, 4], [2, 1, 4], (), {"axes": [1], "keepdims": 1}),
    "reducesum_op1_negative": (12, "ReduceSum", [2, 3, 4], [2, 3], (), {"axes": [-1], "keepdims": 0}),
    "reducemax_op11_all": (11, "ReduceMax", [2, 3, 4], [1, 1, 1], (), {"keepdims": 1}),
    "reducel2_op11": (11, "ReduceL2", [2, 3, 4], [2, 3, 1], (), {"axes": [2]}),
    "reducesum_op13": (13, "ReduceSum", [2, 3, 4], [2, 4], (ints(1),), {"keepdims": 0}),
    "upsample_op7": (8, "Upsample", [1, 2, 3, 3], [1, 2, 6, 6], (), {"mode": "nearest", "scales": [1.0, 1.0, 2.0, 2.0]}),
    "upsample_op9": (9, "Upsample", [1, 2, 3, 3], [1, 2, 6, 9], (np.array([1, 1, 2, 3], np.float32),), {"mode": "nearest"}),
    "upsample_op9_linear": (9, "Upsample", [1, 2, 3, 3], [1, 2, 6, 6], (np.array([1, 1, 2, 2], np.float32),), {"mode": "linear"}),
    "resize_op10": (10, "Resize", [1, 2, 4, 4], [1, 2, 8, 6], (np.array([1, 1, 2, 1.5], np.float32),), {"mode": "nearest"}),
    "resize_op10_linear": (10, "Resize", [1, 2, 4, 4], [1, 2, 8, 8], (np.array([1, 1, 2, 2], np.float32),), {"mode": "linear"}),
    "resize_op11_half_pixel": (11, "Resize", [1, 2, 4, 4], [1, 2, 8, 8], (np.zeros(0, np.float32), np.array([1, 1, 2, 2], np.float32)),
                               {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}),
    "resize_op11_sizes": (11, "Resize", [1, 2, 4, 4], [1, 2, 7, 5], (np.zeros(0, np.float32), np.zeros(0, np.float32), ints(1, 2, 7, 5)),
                          {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}),
    "resize_op11_align": (11, "Resize", [1, 2, 4, 4], [1, 2, 7, 7], (np.zeros(0, np.float32), np.zeros(0, np.float32), ints(1, 2, 7, 7)),
                          {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
    "resize_op13_cubic": (13, "Resize", [1, 2, 5, 5], [1, 2, 10, 10], (None, np.array([1, 1, 2, 2], np.float32)),
                          {"mode": "cubic", "cubic_coeff_a": -0.5}),
    "flatten_op9": (9, "Flatten", [2, 3, 4, 5], [6, 20], (), {"axis": 2}),
    "leakyrelu_op6": (7, "LeakyRelu", ["N", 4], ["N", 4], (), {"alpha": 0.1}),
    "prelu_op9": (9, "PRelu", ["N", 3, 2, 2], ["N", 3, 2, 2], (np.array([[[0.1]], [[0.2]], [[0.3]]], np.float32),), {}),
    "depthtospace_op11_crd": (11, "DepthToSpace", [1, 8, 2, 3], [1, 2, 4, 6], (), {"blocksize": 2, "mode": "CRD"}),
    "gather_op11_negative": (11, "Gather", [4, 3], [4, 2], (ints(-1, 0),), {"axis": -1}),
    "averagepool_ceil": (11, "AveragePool", [1, 2, 6, 6], [1, 2, 3, 3], (), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    "averagepool_count_pad": (10, "AveragePool", [1, 2, 5, 5], [1, 2, 3, 3], (),
                              {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    "maxpool_ceil": (10, "MaxPool", ["N", 2, 6, 6], ["N", 2, 3, 3], (), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    "maxpool_dilated": (11, "MaxPool", [1, 2, 7, 7], [1, 2, 3, 3], (), {"kernel_shape": [3, 3], "dilations": [2, 2]}),
    "maxpool_same_lower": (8, "MaxPool", [1, 2, 5, 5], [1, 2, 3, 3], (),
                           {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    "lrn": (13, "LRN", [1, 6, 3, 3], [1, 6, 3, 3], (), {"size": 3, "alpha": 0.01, "beta": 0.75, "bias": 1.0}),
}.items():
    def _make(name=_name, args=_args):
        *positional, attrs = args
        return simple(name, *positional[:4], consts=positional[4], **attrs)
    _make.__doc__ = f"{_args[1]} of opset {_args[0]}" + (": " + ", ".join(f"{k} {v}" for k, v in _args[5].items()) if _args[5] else "")
    model(_name)(_make)


@model("split_op2")
def split_op2():
    """Split of opset 11 with sizes as an attribute; one output is used twice."""
    net = Net("split_op2", 11)
    net.node("Split", [net.input("x", ["N", 7])], ["a", "b", "c"], axis=1, split=[2, 3, 2])
    net.node("Add", ["a", "c"], "y")
    net.output("y", ["N", 2]), net.output("b", ["N", 3]), net.output("a", ["N", 2])
    return net.done(), None


@model("split_op11_equal")
def split_op11_equal():
    """Split of opset 11 into equal parts, negative axis."""
    net = Net("split_op11_equal", 11)
    net.node("Split", [net.input("x", [2, 6])], ["a", "b"], axis=-1)
    net.output("a", [2, 3]), net.output("b", [2, 3])
    return net.done(), None


@model("split_op13")
def split_op13():
    """Split of opset 13, sizes as an input."""
    net = Net("split_op13", 13)
    net.node("Split", [net.input("x", [2, 6]), net.const("sizes", [4, 2], np.int64)], ["a", "b"], axis=1)
    net.output("a", [2, 4]), net.output("b", [2, 2])
    return net.done(), None


@model("dropout_op7")
def dropout_op7():
    """Dropout of opset 7 between two Conv, ratio as an attribute."""
    net = Net("dropout_op7", 7, ir=3)
    net.node("Conv", [net.input("x", [1, 3, 5, 5]), net.weight("w1", 4, 3, 3, 3)], "a", pads=[1, 1, 1, 1])
    net.node("Dropout", ["a"], "b", ratio=0.4)
    net.node("Conv", ["b", net.weight("w2", 2, 4, 1, 1)], "y")
    net.output("y", [1, 2, 5, 5])
    made = net.done()
    made.graph.input.extend(helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in made.graph.initializer)
    return made, None


@model("dropout_op10_mask")
def dropout_op10_mask():
    """Dropout of opset 10 whose mask is named but unused."""
    net = Net("dropout_op10_mask", 10)
    net.node("Dropout", [net.input("x", ["N", 4])], ["a", "mask"], ratio=0.5)
    net.node("Relu", ["a"], "y")
    net.output("y", ["N", 4])
    return net.done(), None


@model("dropout_op12")
def dropout_op12():
    """Dropout of opset 12 with ratio and training_mode (false) as inputs."""
    net = Net("dropout_op12", 12)
    ratio, mode = net.const("ratio", np.float32(0.3)), net.const("training", np.bool_(False), np.bool_)
    net.node("Dropout", [net.input("x", ["N", 4]), ratio, mode], "a")
    net.node("Neg", ["a"], "y")
    net.output("y", ["N", 4])
    return net.done(), None


@model("bn_op7")
def bn_op7():
    """Conv and BatchNormalization of opset 7."""
    net = Net("bn_op7", 7, ir=3)
    net.node("Conv", [net.input("x", ["N", 3, 6, 6]), net.weight("w", 4, 3, 3, 3), net.weight("b", 4)], "a")
    net.batch_norm("a", 4, "y", epsilon=1e-3, momentum=0.9)
    net.output("y", ["N", 4, 4, 4])
    made = net.done()
    made.graph.input.extend(helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in made.graph.initializer)
    return made, None


@model("bn_op9_first")
def bn_op9_first():
    """BatchNormalization of opset 9 in front of a padded Conv: must not be folded where the padding shows."""
    net = Net("bn_op9_first", 9)
    net.batch_norm(net.input("x", ["N", 3, 6, 6]), 3, "a")
    net.node("Conv", ["a", net.weight("w", 4, 3, 3, 3)], "y", pads=[1, 1, 1, 1])
    net.output("y", ["N", 4, 6, 6])
    return net.done(), None


@model("bn_first_unpadded")
def bn_first_unpadded():
    """BatchNormalization in front of a Conv without padding: may be folded."""
    net = Net("bn_first_unpadded")
    net.batch_norm(net.input("x", ["N", 3, 6, 6]), 3, "a")
    net.node("Conv", ["a", net.weight("w", 4, 3, 3, 3), net.weight("b", 4)], "y")
    net.output("y", ["N", 4, 4, 4])
    return net.done(), None


@model("bn_2d_gemm")
def bn_2d_gemm():
    """Gemm, BatchNormalization on [N,C], Relu."""
    net = Net("bn_2d_gemm")
    net.node("Gemm", [net.input("x", ["N", 6]), net.weight("w", 5, 6), net.weight("b", 5)], "a", transB=1)
    net.batch_norm("a", 5, "c")
    net.node("Relu", ["c"], "y")
    net.output("y", ["N", 5])
    return net.done(), None


@model("bn_op15")
def bn_op15():
    """Conv and BatchNormalization of opset 15."""
    net = Net("bn_op15", 15, ir=8)
    net.node("Conv", [net.input("x", ["N", 3, 6, 6]), net.weight("w", 4, 3, 3, 3)], "a")
    net.batch_norm("a", 4, "y", training_mode=0)
    net.output("y", ["N", 4, 4, 4])
    return net.done(), None


@model("add_op7_broadcast")
def add_op7_broadcast():
    """Conv, then Mul and Add with constants per channel: all of it folds into the Conv."""
    net = Net("add_op7_broadcast", 7)
    net.node("Conv", [net.input("x", ["N", 3, 5, 5]), net.weight("w", 4, 3, 3, 3)], "a")
    net.node("Mul", ["a", net.const("scale", net.rng.uniform(0.5, 2, (4, 1, 1)))], "b")
    net.node("Add", [net.const("shift", net.rng.normal(0, 1, (1, 4, 1, 1))), "b"], "y")
    net.output("y", ["N", 4, 3, 3])
    return net.done(), None


# ---- convolutions

def _conv(name, ic, oc, group, shape, out, kernel=(3, 3), opset=13, doc="", **attrs):
    def make():
        net = Net(name, opset)
        w = net.weight("w", oc, ic // group, *kernel)
        net.node("Conv", [net.input("x", ["N", ic, *shape]), w, net.weight("b", oc)], "y", group=group, kernel_shape=list(kernel), **attrs)
        net.output("y", ["N", oc, *out])
        return net.done(), None
    make.__doc__ = doc
    model(name)(make)


_conv("conv_depthwise", 6, 6, 6, (7, 5), (7, 5), pads=[1, 1, 1, 1], doc="depthwise 3x3")
_conv("conv_depthwise_x2", 3, 6, 3, (7, 7), (3, 3), strides=[2, 2], doc="depthwise with two outputs a channel, stride 2")
_conv("conv_grouped", 8, 12, 4, (5, 5), (5, 5), pads=[1, 1, 1, 1], doc="4 groups of 2 -> 3 channels")
_conv("conv_dilated", 3, 4, 1, (9, 9), (5, 5), dilations=[2, 2], doc="dilation 2")
_conv("conv_same_upper", 3, 4, 1, (6, 7), (3, 4), strides=[2, 2], auto_pad="SAME_UPPER", doc="auto_pad SAME_UPPER, stride 2")
_conv("conv_same_lower", 3, 4, 1, (6, 7), (3, 4), strides=[2, 2], auto_pad="SAME_LOWER", doc="auto_pad SAME_LOWER, stride 2")
_conv("conv_valid", 3, 4, 1, (6, 7), (4, 5), auto_pad="VALID", doc="auto_pad VALID")
_conv("conv_asymmetric_pads", 3, 4, 1, (6, 6), (5, 7), pads=[0, 2, 1, 1], doc="different padding on each side")
_conv("conv_1x1_stride2", 5, 7, 1, (6, 6), (3, 3), kernel=(1, 1), strides=[2, 2], doc="1x1, stride 2")
_conv("conv_5x1", 3, 4, 1, (8, 4), (8, 4), kernel=(5, 1), pads=[2, 0, 2, 0], doc="5x1 kernel")
_conv("conv_1d", 3, 4, 1, (9,), (9,), kernel=(3,), pads=[1, 1], doc="one spatial dimension")
_conv("conv_3d", 2, 3, 1, (4, 4, 4), (2, 2, 2), kernel=(3, 3, 3), doc="three spatial dimensions")


@model("conv_transpose")
def conv_transpose():
    """ConvTranspose, stride 2, output padding."""
    net = Net("conv_transpose")
    net.node("ConvTranspose", [net.input("x", ["N", 3, 4, 4]), net.weight("w", 3, 5, 3, 3), net.weight("b", 5)], "y",
             strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1])
    net.output("y", ["N", 5, 8, 8])
    return net.done(), None


@model("pad_conv")
def pad_conv():
    """Pad with zeros in front of Conv: folds into its pads."""
    net = Net("pad_conv")
    net.node("Pad", [net.input("x", ["N", 3, 5, 5]), net.const("pads", [0, 0, 1, 1, 0, 0, 1, 1], np.int64)], "a")
    net.node("Conv", ["a", net.weight("w", 4, 3, 3, 3)], "b")
    net.node("Relu", ["b"], "y")
    net.output("y", ["N", 4, 5, 5])
    return net.done(), None


@model("pad_one_conv")
def pad_one_conv():
    """Pad with ones in front of Conv: must not be folded."""
    net = Net("pad_one_conv")
    pads, one = net.const("pads", [0, 0, 1, 1, 0, 0, 1, 1], np.int64), net.const("one", np.float32(1))
    net.node("Pad", [net.input("x", ["N", 3, 5, 5]), pads, one], "a")
    net.node("Conv", ["a", net.weight("w", 4, 3, 3, 3)], "y")
    net.output("y", ["N", 4, 5, 5])
    return net.done(), None


@model("nhwc_transposes")
def nhwc_transposes():
    """NHWC outside: Transpose, Conv, Relu, Transpose back, as exported from other frameworks."""
    net = Net("nhwc_transposes")
    net.node("Transpose", [net.input("x", ["N", 6, 6, 3])], "a", perm=[0, 3, 1, 2])
    net.node("Conv", ["a", net.weight("w", 4, 3, 3, 3), net.weight("b", 4)], "c", pads=[1, 1, 1, 1])
    net.node("Relu", ["c"], "d")
    net.node("Transpose", ["d"], "y", perm=[0, 2, 3, 1])
    net.output("y", ["N", 6, 6, 4])
    return net.done(), None


@model("channel_shuffle")
def channel_shuffle():
    """Conv, channel shuffle (Reshape, Transpose, Reshape), Split, Concat."""
    net = Net("channel_shuffle", 13)
    net.node("Conv", [net.input("x", [1, 4, 4, 4]), net.weight("w", 6, 4, 1, 1)], "a")
    net.node("Reshape", ["a", net.const("s1", [1, 2, 3, 4, 4], np.int64)], "b")
    net.node("Transpose", ["b"], "c", perm=[0, 2, 1, 3, 4])
    net.node("Reshape", ["c", net.const("s2", [0, -1, 4, 4], np.int64)], "d")
    net.node("Split", ["d", net.const("sizes", [2, 4], np.int64)], ["e", "f"], axis=1)
    net.node("Concat", ["f", "e"], "y", axis=1)
    net.output("y", [1, 6, 4, 4])
    return net.done(), None


@model("residual_shared")
def residual_shared():
    """Two Conv that share one weight, an Add of them, and an output in the middle."""
    net = Net("residual_shared")
    net.input("x", ["N", 4, 5, 5]), net.weight("w", 4, 4, 3, 3), net.weight("b", 4)
    net.node("Conv", ["x", "w", "b"], "a", pads=[1, 1, 1, 1])
    net.node("Relu", ["a"], "middle")
    net.node("Conv", ["middle", "w", "b"], "c", pads=[1, 1, 1, 1])
    net.node("Add", ["c", "x"], "d")
    net.node("Relu", ["d"], "y")
    net.output("middle", ["N", 4, 5, 5]), net.output("y", ["N", 4, 5, 5])
    return net.done(), None


@model("matmul_add")
def matmul_add():
    """MatMul with a constant, Add of a bias, Relu: becomes Gemm."""
    net = Net("matmul_add")
    net.node("MatMul", [net.input("x", ["N", 6]), net.weight("w", 6, 5)], "a")
    net.node("Add", ["a", net.weight("b", 5)], "c")
    net.node("Relu", ["c"], "y")
    net.output("y", ["N", 5])
    return net.done(), None


@model("matmul_rank3")
def matmul_rank3():
    """MatMul of rank 3 with a constant and a bias in front of it in Add."""
    net = Net("matmul_rank3")
    net.node("MatMul", [net.input("x", ["N", 3, 6]), net.weight("w", 6, 5)], "a")
    net.node("Add", [net.weight("b", 5), "a"], "y")
    net.output("y", ["N", 3, 5])
    return net.done(), None


@model("gemm_alpha_beta")
def gemm_alpha_beta():
    """Gemm with alpha, beta and transA."""
    net = Net("gemm_alpha_beta", 11)
    net.node("Gemm", [net.input("x", [6, 2]), net.weight("w", 6, 5), net.weight("b", 1, 5)], "y", alpha=0.5, beta=2.0, transA=1)
    net.output("y", [2, 5])
    return net.done(), None


@model("shape_chain")
def shape_chain():
    """Flatten written as Shape, Gather, Unsqueeze, Concat, Reshape with a free batch."""
    net = Net("shape_chain", 11)
    net.node("Conv", [net.input("x", ["N", 3, 4, 4]), net.weight("w", 2, 3, 3, 3)], "a")
    net.node("Shape", ["a"], "s")
    net.node("Gather", ["s", net.const("zero", np.int64(0), np.int64)], "n", axis=0)
    net.node("Unsqueeze", ["n"], "n1", axes=[0])
    net.node("Concat", ["n1", net.const("rest", [-1], np.int64)], "shape", axis=0)
    net.node("Reshape", ["a", "shape"], "y")
    net.output("y", ["N", 8])
    return net.done(), None


@model("constant_nodes")
def constant_nodes():
    """Constant nodes (tensor, value_float, value_ints), Identity and Cast: fold away."""
    net = Net("constant_nodes", 13)
    value = numpy_helper.from_array(net.rng.normal(0, 1, (3, 4)).astype(np.float32))
    net.node("Constant", [], "w0", value=value)
    net.node("Constant", [], "half", value_float=0.5)
    net.node("Constant", [], "axes", value_ints=[0])
    net.node("Mul", ["w0", "half"], "w1")
    net.node("Identity", ["w1"], "w")
    net.node("MatMul", [net.input("x", ["N", 3]), "w"], "a")
    net.node("Identity", ["a"], "b")
    net.node("Unsqueeze", ["b", "axes"], "y")
    net.output("y", [1, "N", 4])
    return net.done(), None


@model("relu6_variants")
def relu6_variants():
    """Conv followed by Min(Max(x, 0), 6), and by Clip whose limits are Constant nodes."""
    net = Net("relu6_variants")
    net.node("Conv", [net.input("x", ["N", 3, 5, 5]), net.weight("w1", 4, 3, 3, 3)], "a")
    net.node("Max", ["a", net.const("zero", np.float32(0))], "b")
    net.node("Min", ["b", net.const("six", np.float32(6))], "c")
    net.node("Conv", ["c", net.weight("w2", 4, 4, 1, 1)], "d")
    net.node("Constant", [], "lo", value_float=0.0)
    net.node("Constant", [], "hi", value_float=6.0)
    net.node("Clip", ["d", "lo", "hi"], "y")
    net.output("y", ["N", 4, 3, 3])
    return net.done(), None


@model("activations")
def activations():
    """Sigmoid, Tanh, HardSigmoid, HardSwish, Elu, Softplus, Erf and x * Sigmoid(x) on one input."""
    net = Net("activations", 14)
    net.input("x", ["N", 16])
    for op in ("Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Elu", "Softplus", "Erf"):
        net.node(op, ["x"], op.lower())
        net.output(op.lower(), ["N", 16])
    net.node("Mul", ["x", "sigmoid"], "silu")
    net.output("silu", ["N", 16])
    return net.done(), {"x": np.linspace(-9, 9, 48, dtype=np.float32).reshape(3, 16)}


# ---- operators that exporters spell with several nodes

class Speller:
    """Nodes in the notation of the operators: s("Mul", x, 0.5). Numbers become constants."""

    def __init__(self, net):
        self.net, self.made = net, 0

    def __call__(self, op, *inputs, **attrs):
        names = []
        for value in inputs:
            if not isinstance(value, str):
                self.made += 1
                value = self.net.const(f"c{self.made}", value, getattr(value, "dtype", np.float32))
            names.append(value)
        self.made += 1
        return self.net.node(op, names, f"v{self.made}", **attrs)

    def show(self, name, value, shape):
        self.net.node("Identity", [value], name)
        self.net.output(name, shape)


@model("spelled_activations")
def spelled_activations():
    """Gelu, HardSwish, Swish and Mish as PyTorch, TensorFlow and others spell them."""
    net = Net("spelled_activations", 13)
    s, x = Speller(net), net.input("x", ["N", 16])
    half, root = np.float32(0.5), np.float32(2 ** 0.5)
    cube, lift = s("Pow", x, 3), s("Add", x, 3)
    u = s("Mul", s("Add", x, s("Mul", cube, 0.044715)), 0.7978845834732056)
    fast = s("Mul", s("Mul", x, 0.7978845608), s("Add", s("Mul", s("Mul", x, 0.044715), x), 1))
    unit = s("HardSigmoid", x, alpha=1 / 6)
    for name, value in {
            "gelu_torch": s("Mul", s("Mul", x, s("Add", s("Erf", s("Div", x, root)), 1)), half),
            "gelu_tensorflow": s("Mul", s("Mul", half, x), s("Add", 1, s("Erf", s("Mul", x, 1 / root)))),
            "gelu_tanh": s("Mul", s("Mul", x, half), s("Add", s("Tanh", u), 1)),
            "gelu_fast": s("Mul", s("Mul", half, x), s("Add", 1, s("Tanh", fast))),
            "gelu_quick": s("Mul", x, s("Sigmoid", s("Mul", x, 1.702))),
            "silu": s("Mul", x, s("Sigmoid", x)),
            "hard_swish": s("Div", s("Mul", x, s("Clip", lift, 0, 6)), 6),
            "hard_swish_unit": s("Mul", x, unit),
            "mish": s("Mul", x, s("Tanh", s("Softplus", x)))}.items():
        s.show(name, value, ["N", 16])
    return net.done(), {"x": np.linspace(-9, 9, 96, dtype=np.float32).reshape(6, 16)}


@model("spelled_norms")
def spelled_norms():
    """Layer and RMS normalisation as PyTorch, TensorFlow and Llama spell them, and sums before them."""
    net = Net("spelled_norms", 13)
    s, x, y = Speller(net), net.input("x", ["N", 6, 32]), net.input("y", ["N", 6, 32])
    gamma, beta = net.weight("gamma", 32), net.weight("beta", 32)

    def mean(v):
        return s("ReduceMean", v, axes=[-1], keepdims=1)

    def torch(v):
        d = s("Sub", v, mean(v))
        return s("Add", s("Mul", s("Div", d, s("Sqrt", s("Add", mean(s("Pow", d, 2)), 1e-12))), gamma), beta)

    m = mean(x)
    d = s("Sub", x, m)
    r = s("Mul", s("Reciprocal", s("Sqrt", s("Add", mean(s("Mul", d, d)), 1e-3))), gamma)
    rms = s("Mul", gamma, s("Mul", x, s("Div", 1, s("Sqrt", s("Add", mean(s("Pow", x, 2)), 1e-6)))))
    total = s("Add", x, y)
    for name, value in {
            "torch": torch(x), "tensorflow": s("Add", s("Mul", x, r), s("Sub", beta, s("Mul", m, r))), "llama": rms,
            "skip": torch(s("Add", y, x)), "skip_shown": torch(total), "total": total}.items():
        s.show(name, value, ["N", 6, 32])
    return net.done(), {n: (net.rng.normal(0.5, 2, (3, 6, 32))).astype(np.float32) for n in ("x", "y")}


@model("spelled_attention")
def spelled_attention():
    """Attention as BERT, PyTorch's scaled_dot_product_attention and older PyTorch modules spell it, masked by numbers."""
    net = Net("spelled_attention", 13)
    s, b, n, h, d = Speller(net), 2, 6, 4, 8
    x, mask = net.input("x", [b, n, h * d]), net.input("mask", [b, 1, 1, n])

    def heads(v, *perm):
        split = s("Reshape", s("MatMul", v, net.weight(f"w{s.made}", h * d, h * d)), ints(0, 0, h, d))
        return s("Transpose", split, perm=perm)

    def joined(v):
        return s("Reshape", s("Transpose", v, perm=[0, 2, 1, 3]), ints(b, n, h * d))

    def softmax(v):
        return s("Softmax", v, axis=-1)

    scores = s("Add", s("Div", s("MatMul", heads(x, 0, 2, 1, 3), heads(x, 0, 2, 3, 1)), np.float32(d ** 0.5)), mask)
    bert = joined(s("MatMul", softmax(scores), heads(x, 0, 2, 1, 3)))
    root = np.float32(d ** -0.25)
    keys = s("Mul", s("Transpose", heads(x, 0, 2, 1, 3), perm=[0, 1, 3, 2]), root)
    sdpa = joined(s("MatMul", softmax(s("MatMul", s("Mul", heads(x, 0, 2, 1, 3), root), keys)), heads(x, 0, 2, 1, 3)))
    flat = [s("Reshape", heads(x, 0, 2, 1, 3), ints(b * h, n, d)) for _ in range(3)]
    older = s("MatMul", softmax(s("MatMul", s("Mul", flat[0], np.float32(d ** -0.5)), s("Transpose", flat[1], perm=[0, 2, 1]))), flat[2])
    s.show("bert", bert, [b, n, h * d])
    s.show("sdpa", sdpa, [b, n, h * d])
    s.show("older", older, [b * h, n, d])
    masked = np.where(np.arange(n)[None, None, None, :] < np.array([n, n - 2])[:, None, None, None], 0, -10000)
    return net.done(), {"x": net.rng.normal(0, 2, (b, n, h * d)).astype(np.float32), "mask": masked.astype(np.float32)}


# ---- forms of the file

@model("inits_as_inputs")
def inits_as_inputs():
    """Initializers listed among the graph inputs, IR 3: they count as constants."""
    net = Net("inits_as_inputs", 8, ir=3)
    net.node("Conv", [net.input("x", [1, 3, 5, 5]), net.weight("w", 4, 3, 3, 3), net.weight("b", 4)], "a")
    net.node("Relu", ["a"], "y")
    net.output("y", [1, 4, 3, 3])
    made = net.done()
    made.graph.input.extend(helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in made.graph.initializer)
    return made, None


@model("external_data")
def external_data():
    """Weights in external_data.bin beside the model, at offsets."""
    net = Net("external_data")
    net.node("Conv", [net.input("x", ["N", 3, 8, 8]), net.weight("w", 16, 3, 3, 3), net.weight("b", 16)], "a")
    net.node("Conv", ["a", net.weight("w2", 4, 16, 1, 1)], "y")
    net.output("y", ["N", 4, 6, 6])
    return net.done(), None


@model("sparse_initializer")
def sparse_initializer():
    """Weight as a sparse initializer (COO, linear indices)."""
    net = Net("sparse_initializer", 13)
    dense = np.zeros((6, 5), np.float32)
    at = np.sort(net.rng.choice(30, 9, replace=False)).astype(np.int64)
    dense.reshape(-1)[at] = net.rng.normal(0, 1, 9)
    values = numpy_helper.from_array(dense.reshape(-1)[at], "w")
    net.sparse.append(helper.make_sparse_tensor(values, numpy_helper.from_array(at, "w_indices"), [6, 5]))
    net.node("MatMul", [net.input("x", ["N", 6]), "w"], "y")
    net.output("y", ["N", 5])
    return net.done(), None


@model("custom_op", runs=False)
def custom_op():
    """An operator of an unknown domain between two Conv: must survive unchanged."""
    net = Net("custom_op")
    net.more_opsets.append(helper.make_opsetid("org.example.custom", 2))
    net.node("Conv", [net.input("x", ["N", 3, 5, 5]), net.weight("w1", 4, 3, 3, 3)], "a")
    net.node("Swirl", ["a"], "b", domain="org.example.custom", turns=1.5, mode="left", knots=[1, 2, 3])
    net.node("Conv", ["b", net.weight("w2", 2, 4, 1, 1)], "y")
    net.output("y", ["N", 2, 3, 3])
    return net.done(), None


@model("function")
def function():
    """A local function (leaky scale) with an attribute, called twice."""
    net = Net("function", 16, ir=8)
    domain = "org.example.fn"
    net.more_opsets.append(helper.make_opsetid(domain, 1))
    scale = helper.make_node("Constant", [], ["k"])
    scale.attribute.append(onnx.AttributeProto(name="value_float", type=onnx.AttributeProto.FLOAT, ref_attr_name="k"))
    body = [scale, helper.make_node("Mul", ["a", "k"], ["m"]), helper.make_node("Relu", ["m"], ["b"])]
    net.functions.append(helper.make_function(domain, "ScaledRelu", ["a"], ["b"], body, [helper.make_opsetid("", 16)], ["k"]))
    net.node("Conv", [net.input("x", ["N", 3, 5, 5]), net.weight("w1", 4, 3, 3, 3)], "c1")
    net.node("ScaledRelu", ["c1"], "r1", domain=domain, k=0.5)
    net.node("Conv", ["r1", net.weight("w2", 4, 4, 1, 1)], "c2")
    net.node("ScaledRelu", ["c2"], "y", domain=domain, k=2.0)
    net.output("y", ["N", 4, 3, 3])
    return net.done(), None


@model("fp16_weights")
def fp16_weights():
    """Weights stored as float16 and cast to float."""
    net = Net("fp16_weights")
    net.const("w16", net.rng.normal(0, 0.2, (4, 3, 3, 3)), np.float16)
    net.node("Cast", ["w16"], "w", to=F32)
    net.node("Conv", [net.input("x", ["N", 3, 5, 5]), "w"], "y")
    net.output("y", ["N", 4, 3, 3])
    return net.done(), None


@model("fp16_model")
def fp16_model():
    """A whole model in float16."""
    net = Net("fp16_model")
    half = TensorProto.FLOAT16
    net.const("w", net.rng.normal(0, 0.3, (6, 5)), np.float16)
    net.node("MatMul", [net.input("x", [2, 6], half), "w"], "a")
    net.node("Relu", ["a"], "y")
    net.output("y", [2, 5], half)
    return net.done(), None


@model("empty_graph")
def empty_graph():
    """No node at all: the output is the input."""
    net = Net("empty_graph")
    net.input("x", ["N", 4])
    net.output("x", ["N", 4])
    return net.done(), None


@model("constant_output")
def constant_output():
    """One output is an initializer, another comes from constants only."""
    net = Net("constant_output")
    net.const("table", net.rng.normal(0, 1, (2, 3)))
    net.node("Neg", ["table"], "minus")
    net.node("Relu", [net.input("x", ["N", 4])], "y")
    net.output("y", ["N", 4]), net.output("table", [2, 3]), net.output("minus", [2, 3])
    return net.done(), None


@model("odd_names")
def odd_names():
    """Names with slashes, spaces, colons, brackets and letters beyond ASCII."""
    net = Net("odd_names")
    x = net.input("a b/c:0", ["N", 3, 5, 5])
    net.node("Conv", [x, net.weight("größe/重み [0]", 4, 3, 3, 3)], "/model.0/конв ñ/out")
    net.node("Relu", ["/model.0/конв ñ/out"], "выход/y 0")
    net.nodes[0].name, net.nodes[1].name = "/model.0/конв ñ", "re lu\"'"
    net.output("выход/y 0", ["N", 4, 3, 3])
    return net.done(), None


@model("no_names")
def no_names():
    """Nodes without names; two of them alike."""
    net = Net("no_names")
    net.node("Conv", [net.input("x", ["N", 3, 5, 5]), net.weight("w", 3, 3, 3, 3)], "a", pads=[1, 1, 1, 1])
    net.node("Conv", ["a", "w"], "y", pads=[1, 1, 1, 1])
    for node in net.nodes:
        node.name = ""
    net.output("y", ["N", 3, 5, 5])
    return net.done(), None


@model("metadata")
def metadata():
    """Metadata, doc strings, a dimension's name, value_info and an unused initializer: all must survive."""
    net = Net("metadata")
    net.node("Conv", [net.input("x", ["batch", 3, "h", "w"]), net.weight("k", 4, 3, 3, 3)], "a", pads=[1, 1, 1, 1])
    net.node("Sigmoid", ["a"], "y")
    net.weight("unused", 2, 2)
    net.output("y", ["batch", 4, "h", "w"])
    made = net.done()
    made.doc_string, made.domain, made.model_version = "a model", "org.example", 42
    made.graph.doc_string, made.graph.node[0].doc_string = "its graph", "its first node"
    made.graph.value_info.append(helper.make_tensor_value_info("a", F32, ["batch", 4, "h", "w"]))
    helper.set_model_props(made, {"author": "nobody", "key with space": "ünïcode"})
    return made, {"x": np.random.default_rng(1).normal(0, 1, (2, 3, 5, 4)).astype(np.float32)}


@model("if_subgraph")
def if_subgraph():
    """If whose branches use a value of the outer graph."""
    net = Net("if_subgraph")
    out = helper.make_tensor_value_info("r", F32, ["N", 4])
    then = helper.make_graph([helper.make_node("Relu", ["a"], ["r"])], "then", [], [out])
    other = helper.make_graph([helper.make_node("Neg", ["a"], ["r"])], "else", [], [out])
    net.node("MatMul", [net.input("x", ["N", 3]), net.weight("w", 3, 4)], "a")
    net.node("ReduceSum", ["a"], "sum", keepdims=0)
    net.node("Greater", ["sum", net.const("zero", np.float32(0))], "positive")
    net.node("If", ["positive"], "y", then_branch=then, else_branch=other)
    net.output("y", ["N", 4])
    return net.done(), None


def info(name, shape=None, kind=F32):
    return helper.make_tensor_value_info(name, kind, shape)


def initializer(net, name, *shape):
    """A weight for a nested graph: kept out of the outer one."""
    net.weight(name, *shape)
    return net.inits.pop()


@model("loop_layers")
def loop_layers():
    """Loop over a residual Conv and a MatMul, one with weights of its own, one with captured ones; trips given when it runs."""
    net = Net("loop_layers")
    net.weight("fc", 6, 6), net.const("one", 1, np.int64)
    node = helper.make_node
    body = helper.make_graph(
        [node("Conv", ["h", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]), node("Relu", ["c"], ["r"], name="relu"),
         node("MatMul", ["r", "fc"], ["m"], name="fc_in_body"), node("Add", ["m", "h"], ["h2"], name="residual"),
         node("ReduceMean", ["m"], ["mean"], name="mean", axes=[2, 3], keepdims=0), node("Identity", ["go"], ["go2"])],
        "body", [info("i", [], TensorProto.INT64), info("go", [], TensorProto.BOOL), info("h", [1, 4, 5, 6])],
        [info("go2", [], TensorProto.BOOL), info("h2", [1, 4, 5, 6]), info("mean", [1, 4])],
        [initializer(net, "w", 4, 4, 3, 3), initializer(net, "b", 4)])
    net.node("Loop", [net.input("trips", [], TensorProto.INT64), "", net.input("x", [1, 4, 5, 6])], ["y", "means"], body=body)
    net.output("y", [1, 4, 5, 6]), net.output("means", ["T", 1, 4])
    feeds = {"trips": np.array(3, np.int64), "x": net.rng.normal(0, 1, (1, 4, 5, 6)).astype(np.float32)}
    return net.done(), feeds


@model("scan_rnn")
def scan_rnn():
    """Scan as a recurrent layer: Tanh of two Gemm, over axis 1 and backwards."""
    net = Net("scan_rnn", 16)
    node = helper.make_node
    body = helper.make_graph(
        [node("Gemm", ["t", "wx", "bx"], ["a"], name="input_gate"), node("MatMul", ["h", "wh"], ["b"], name="state_gate"),
         node("Add", ["a", "b"], ["s"]), node("Tanh", ["s"], ["h2"]), node("Identity", ["h2"], ["o"])],
        "body", [info("h", [2, 8]), info("t", [2, 5])], [info("h2", [2, 8]), info("o", [2, 8])],
        [initializer(net, "wx", 5, 8), initializer(net, "bx", 8), initializer(net, "wh", 8, 8)])
    net.node("Scan", [net.const("h0", np.zeros((2, 8))), net.input("x", [2, "T", 5])], ["h_end", "y"], body=body, num_scan_inputs=1,
             scan_input_axes=[1], scan_input_directions=[1], scan_output_axes=[1], scan_output_directions=[1])
    net.output("h_end", [2, 8]), net.output("y", [2, "T", 8])
    return net.done(), {"x": net.rng.normal(0, 1, (2, 7, 5)).astype(np.float32)}


@model("nested_functions")
def nested_functions():
    """A function that calls another, hands attributes on, has an If inside, and inputs that calls leave out."""
    net, domain, node = Net("nested_functions", 17, ir=8), "org.example.fn", helper.make_node
    net.more_opsets.append(helper.make_opsetid(domain, 1))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]

    def refer(made, name, kind, to):
        made.attribute.append(onnx.AttributeProto(name=name, type=kind, ref_attr_name=to))
        return made

    leaky = refer(node("LeakyRelu", ["a"], ["l"]), "alpha", onnx.AttributeProto.FLOAT, "slope")
    net.functions.append(helper.make_function(domain, "Leaky", ["a", "low"], ["b"], [leaky, node("Clip", ["l", "low"], ["b"])],
                                              opsets, ["slope"]))
    then = helper.make_graph([refer(node("Elu", ["c"], ["e"]), "alpha", onnx.AttributeProto.FLOAT, "slope")], "then", [], [info("e")])
    other = helper.make_graph([node("Neg", ["c"], ["e"])], "else", [], [info("e")])
    call = refer(node("Leaky", ["x"], ["c"], domain=domain), "slope", onnx.AttributeProto.FLOAT, "slope")
    net.functions.append(helper.make_function(
        domain, "Choose", ["x", "k"], ["y"],
        [call, node("ReduceSum", ["c"], ["s"], keepdims=0), node("Greater", ["s", "k"], ["p"]),
         node("If", ["p"], ["y"], then_branch=then, else_branch=other)], opsets, ["slope"]))
    net.node("Conv", [net.input("x", ["N", 3, 4, 4]), net.weight("w", 4, 3, 3, 3)], "c")
    net.node("Choose", ["c", net.const("zero", np.float32(0))], "d", domain=domain, slope=0.25)
    net.node("Choose", ["d", net.const("large", np.float32(1e6))], "y", domain=domain, slope=0.5)
    net.output("y", ["N", 4, 2, 2])
    return net.done(), None


@model("found_rows")
def found_rows():
    """Rows that NonZero finds go through a layer: shapes that depend on data, and a Reshape to a computed size."""
    net = Net("found_rows")
    net.node("ReduceMax", [net.input("x", [9, 6])], "most", axes=[1], keepdims=0)
    net.node("Greater", ["most", net.const("limit", np.float32(1))], "wanted")
    net.node("NonZero", ["wanted"], "indices")
    net.node("Squeeze", ["indices", net.const("zero", [0], np.int64)], "rows")
    net.node("Gather", ["x", "rows"], "found", axis=0)
    net.node("Gemm", ["found", net.weight("w", 6, 4), net.weight("b", 4)], "g")
    net.node("Relu", ["g"], "r")
    net.node("Shape", ["r"], "shape"), net.node("ReduceProd", ["shape"], "count", keepdims=1)
    net.node("Reshape", ["r", "count"], "y")
    net.output("y", ["M"]), net.output("rows", ["R"], TensorProto.INT64)
    return net.done(), {"x": net.rng.normal(0, 1, (9, 6)).astype(np.float32)}


@model("sequence_parts")
def sequence_parts():
    """SplitToSequence, a Loop that appends to a sequence, ConcatFromSequence."""
    net, node = Net("sequence_parts"), helper.make_node
    kind = helper.make_sequence_type_proto(info("", None).type)
    seq = [helper.make_value_info("s", kind), helper.make_value_info("s2", kind)]
    body = helper.make_graph(
        [node("SequenceAt", ["parts", "i"], ["p"]), node("MatMul", ["p", "w"], ["q"], name="layer"),
         node("SequenceInsert", ["s", "q"], ["s2"]), node("Identity", ["go"], ["go2"])],
        "body", [info("i", [], TensorProto.INT64), info("go", [], TensorProto.BOOL), seq[0]],
        [info("go2", [], TensorProto.BOOL), seq[1]], [initializer(net, "w", 4, 3)])
    net.node("SplitToSequence", [net.input("x", [7, 4]), net.const("two", 2, np.int64)], "parts", axis=0)
    net.node("SequenceLength", ["parts"], "n"), net.node("SequenceEmpty", [], "empty")
    net.node("Loop", ["n", "", "empty"], "done", body=body)
    net.node("ConcatFromSequence", ["done"], "y", axis=0)
    net.output("y", [7, 3])
    return net.done(), None


@model("two_inputs")
def two_inputs():
    """Two inputs of different shapes, two outputs."""
    net = Net("two_inputs")
    net.node("Conv", [net.input("image", ["N", 3, 4, 4]), net.weight("w", 2, 3, 3, 3)], "a")
    net.node("Flatten", ["a"], "b")
    net.node("Concat", ["b", net.input("extra", ["N", 3])], "both", axis=1)
    net.node("Gemm", ["both", net.weight("fc", 4, 11)], "y", transB=1)
    net.output("y", ["N", 4]), net.output("b", ["N", 8])
    return net.done(), None


@model("wide_weights")
def wide_weights():
    """Conv whose weights saturate 16-bit pair sums at 8 bits: every one is +-largest; codes reach 255."""
    net = Net("wide_weights")
    w = np.where(net.rng.random((8, 16, 3, 3)) < 0.8, 1.0, -1.0)
    net.node("Conv", [net.input("x", ["N", 16, 6, 6]), net.const("w", w)], "a")
    net.node("Relu", ["a"], "y")
    net.output("y", ["N", 8, 4, 4])
    return net.done(), {"x": np.random.default_rng(2).choice([0.0, 1.0], (4, 16, 6, 6), p=[0.1, 0.9]).astype(np.float32)}


# ---- quantized models

def _quantized(form):
    """demo.onnx quantized by ONNX Runtime's quantize_static, 16 pictures, MinMax."""
    import tempfile
    from onnxruntime.quantization import QuantFormat, QuantType, quant_pre_process, quantize_static
    data = ROOT / "testdata"
    samples = open_samples(data / "images/calib.csv", "mean=127.5:std=127.5")
    with tempfile.TemporaryDirectory() as folder:
        prepared, out = Path(folder) / "p.onnx", Path(folder) / "q.onnx"
        quant_pre_process(str(data / "demo.onnx"), str(prepared), skip_symbolic_shape=True)
        quantize_static(str(prepared), str(out), peer.reader(samples, 16, "image"), quant_format=getattr(QuantFormat, form),
                        per_channel=True, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
        made = onnx.load(out)
    del made.metadata_props[:]
    return made, {"image": np.stack([samples.get(i) for i in range(60, 64)])}


@model("demo_qdq")
def demo_qdq():
    """demo.onnx quantized by ONNX Runtime, QDQ form."""
    return _quantized("QDQ")


@model("demo_qoperator")
def demo_qoperator():
    """demo.onnx quantized by ONNX Runtime, operator form (QLinearConv, QLinearAdd, QGemm...)."""
    return _quantized("QOperator")


@model("qdq_s8_per_tensor")
def qdq_s8_per_tensor():
    """A QDQ Conv by hand: s8 activations with zero points, per-tensor u8 weights with zero point, int32 bias, Relu."""
    net = Net("qdq_s8_per_tensor")
    sx, sw, sy = np.float32(0.02), np.float32(0.01), np.float32(0.03)
    for name, value, kind in (("sx", sx, np.float32), ("zx", -5, np.int8), ("sw", sw, np.float32), ("zw", 120, np.uint8),
                              ("sb", sx * sw, np.float32), ("zb", 0, np.int32), ("sy", sy, np.float32), ("zy", -128, np.int8)):
        net.const(name, np.asarray(value), kind)
    net.const("wq", net.rng.integers(60, 180, (4, 3, 3, 3)), np.uint8)
    net.const("bq", net.rng.integers(-3000, 3000, 4), np.int32)
    net.node("QuantizeLinear", [net.input("x", ["N", 3, 6, 6]), "sx", "zx"], "xq")
    net.node("DequantizeLinear", ["xq", "sx", "zx"], "xf")
    net.node("DequantizeLinear", ["wq", "sw", "zw"], "wf")
    net.node("DequantizeLinear", ["bq", "sb", "zb"], "bf")
    net.node("Conv", ["xf", "wf", "bf"], "c", pads=[1, 1, 1, 1])
    net.node("Relu", ["c"], "r")
    net.node("QuantizeLinear", ["r", "sy", "zy"], "yq")
    net.node("DequantizeLinear", ["yq", "sy", "zy"], "y")
    net.output("y", ["N", 4, 6, 6])
    return net.done(), None


@model("integer_io")
def integer_io():
    """u8 in, u8 out: DequantizeLinear, Conv with per-channel s8 weights, QuantizeLinear, as a cut of a quantized model."""
    net = Net("integer_io")
    net.const("sx", np.float32(0.05)), net.const("zx", 100, np.uint8), net.const("sy", np.float32(0.11)), net.const("zy", 60, np.uint8)
    net.const("sw", net.rng.uniform(0.002, 0.02, 5)), net.const("zw", np.zeros(5), np.int8)
    net.const("wq", net.rng.integers(-127, 128, (5, 4, 3, 3)), np.int8)
    net.node("DequantizeLinear", [net.input("x", ["N", 4, 6, 6], TensorProto.UINT8), "sx", "zx"], "xf")
    net.node("DequantizeLinear", ["wq", "sw", "zw"], "wf", axis=0)
    net.node("Conv", ["xf", "wf"], "c", strides=[2, 2], pads=[1, 1, 1, 1])
    net.node("QuantizeLinear", ["c", "sy", "zy"], "y")
    net.output("y", ["N", 5, 3, 3], TensorProto.UINT8)
    return net.done(), None


@model("dynamic_quantize")
def dynamic_quantize():
    """DynamicQuantizeLinear, MatMulInteger, Cast, Mul, Add: a dynamically quantized dense layer."""
    net = Net("dynamic_quantize")
    net.const("wq", net.rng.integers(-127, 128, (8, 5)), np.int8)
    net.const("sw", net.rng.uniform(0.002, 0.02, 5)), net.const("zw", np.zeros(5), np.int8)
    net.node("DynamicQuantizeLinear", [net.input("x", [3, 8])], ["xq", "sx", "zx"])
    net.node("MatMulInteger", ["xq", "wq", "zx", "zw"], "acc")
    net.node("Cast", ["acc"], "f", to=F32)
    net.node("Mul", ["sx", "sw"], "s")
    net.node("Mul", ["f", "s"], "m")
    net.node("Add", ["m", net.weight("b", 5)], "y")
    net.output("y", [3, 5])
    return net.done(), None


# ---- operators of com.microsoft

MS = "com.microsoft"


def ms_net(name, opset=17):
    net = Net(name, opset, ir=8)
    net.more_opsets.append(helper.make_opsetid(MS, 1))
    return net


def fused_convs(name, opset, activations):
    """Each activation behind a convolution, and behind one with a sum."""
    net = ms_net(name, opset)
    x, z = net.input("x", [1, 4, 6, 6]), net.input("z", [1, 5, 6, 6])
    w, b = net.weight("w", 5, 4, 3, 3), net.weight("b", 5)
    for i, (activation, params) in enumerate(activations):
        attrs = {"activation": activation} if activation else {}
        attrs |= {"activation_params": params} if params else {}
        net.node("FusedConv", [x, w, b, z] if i % 2 else [x, w, b], f"y{i}", MS, pads=[1, 1, 1, 1], **attrs)
        net.output(f"y{i}", [1, 5, 6, 6])
    net.node("FusedConv", [x, w, "", z], "last", MS, pads=[1, 1, 1, 1])
    net.output("last", [1, 5, 6, 6])
    return net.done(), None


@model("fused_conv")
def fused_conv():
    """FusedConv with every activation that ONNX Runtime has for it, with and without a sum."""
    return fused_convs("fused_conv", 17, [("Relu", None), ("LeakyRelu", [0.3]), ("Sigmoid", None), ("Tanh", None), ("Clip", [-0.5, 0.7]),
                                          ("HardSigmoid", [0.3, 0.4]), ("HardSwish", None), ("Relu", None), (None, None)])


@model("fused_conv_op10")
def fused_conv_op10():
    """FusedConv in opset 10, where Clip has attributes."""
    return fused_convs("fused_conv_op10", 10, [("Relu", None), ("Clip", [-0.5, 0.7]), ("LeakyRelu", [0.3])])


@model("fused_gemm")
def fused_gemm():
    """FusedGemm with activations and their parameters, transposed and scaled operands."""
    net = ms_net("fused_gemm")
    x, w, v, b = net.input("x", [3, 4]), net.weight("w", 4, 5), net.weight("v", 5, 4), net.weight("b", 5)
    for i, attrs in enumerate(({"activation": "Relu"}, {"activation": "LeakyRelu", "activation_alpha": 0.2}, {"activation": "Tanh", "beta": 0.5},
                               {"activation": "HardSigmoid", "activation_alpha": 0.3, "activation_beta": 0.4},
                               {"activation": "Sigmoid", "alpha": 0.7}, {"activation": "Elu", "activation_alpha": 0.8})):
        net.node("FusedGemm", [x, v if i % 2 else w, b], f"y{i}", MS, transB=i % 2, **attrs)
        net.output(f"y{i}", [3, 5])
    return net.done(), None


def qlinear(name, op, extra=(), shape=(2, 4, 6, 5), out=None, **attrs):
    """One operator of 8-bit numbers, unsigned and signed; extra: of each type, further (data, scale, zero point) in front of the output's."""
    net = ms_net(name)
    for kind, letter, zero in ((np.uint8, "u", (120, 7)), (np.int8, "s", (-9, 31))):
        x = net.input("x" + letter, list(shape), helper.np_dtype_to_tensor_dtype(np.dtype(kind)))
        names = [x, net.const("sx" + letter, np.float32(0.03)), net.const("zx" + letter, np.asarray(zero[0]), kind)]
        for i, (data, scale) in enumerate(extra):
            data = data if isinstance(data, str) else net.const(f"d{i}{letter}", net.rng.integers(0, 120, data), kind)
            names += [data + letter if len(data) == 1 else data, net.const(f"s{i}{letter}", np.float32(scale)),
                      net.const(f"z{i}{letter}", np.asarray(zero[1] + 3), kind)]
        grid = [net.const("sy" + letter, np.float32(attrs.get("scale", 0.04))), net.const("zy" + letter, np.asarray(zero[1]), kind)]
        names = grid + names if op == "QLinearConcat" else names + grid
        if op == "QLinearWhere":
            names = ["c"] + names
        net.node(op, names, "y" + letter, MS, **{k: v for k, v in attrs.items() if k != "scale"})
        net.output("y" + letter, out or list(shape), helper.np_dtype_to_tensor_dtype(np.dtype(kind)))
    if op == "QLinearWhere":
        net.input("c", [2, 1, 6, 1], TensorProto.BOOL)
    return net.done(), None


def _qlinear(name, op, what, *args, **kw):
    def make():
        return qlinear(name, op, *args, **kw)
    make.__doc__ = f"{what}, unsigned and signed."
    model(name)(make)


_qlinear("qlinear_add", "QLinearAdd", "QLinearAdd with broadcasting", [((4, 1, 1), 0.05)])
_qlinear("qlinear_mul", "QLinearMul", "QLinearMul", [((2, 4, 6, 5), 0.02)], scale=0.08)
_qlinear("qlinear_leaky_relu", "QLinearLeakyRelu", "QLinearLeakyRelu", alpha=0.2)
_qlinear("qlinear_sigmoid", "QLinearSigmoid", "QLinearSigmoid", scale=1 / 256)
_qlinear("qlinear_softmax", "QLinearSoftmax", "QLinearSoftmax", scale=1 / 256, opset=13, axis=-1)
_qlinear("qlinear_average_pool", "QLinearAveragePool", "QLinearAveragePool with pads", out=[2, 4, 3, 3], kernel_shape=[3, 3], strides=[2, 2],
         pads=[1, 1, 1, 1])
_qlinear("qlinear_global_average_pool", "QLinearGlobalAveragePool", "QLinearGlobalAveragePool", out=[2, 4, 1, 1])
_qlinear("qlinear_concat", "QLinearConcat", "QLinearConcat of two grids", [((2, 2, 6, 5), 0.05)], out=[2, 6, 6, 5], axis=1)
_qlinear("qlinear_where", "QLinearWhere", "QLinearWhere of two grids, broadcast", [((4, 1, 5), 0.05)])


@model("qgemm")
def qgemm():
    """QGemm with a bias: to codes, and to float."""
    net = ms_net("qgemm")
    names = [net.input("x", [3, 9], TensorProto.UINT8), net.const("sx", np.float32(0.03)), net.const("zx", np.asarray(120), np.uint8),
             net.const("w", net.rng.integers(-64, 64, (5, 9)), np.int8), net.const("sw", net.rng.uniform(0.002, 0.02, 5)),
             net.const("zw", np.zeros(5), np.int8), net.const("b", net.rng.integers(-3000, 3000, 5), np.int32)]
    grid = [net.const("sy", np.float32(0.05)), net.const("zy", np.asarray(100), np.uint8)]
    net.node("QGemm", names + grid, "y", MS, transB=1)
    net.node("QGemm", names, "f", MS, transB=1)
    net.output("y", [3, 5], TensorProto.UINT8), net.output("f", [3, 5])
    return net.done(), None


@model("nhwc")
def nhwc():
    """Operators with channels last as ONNX Runtime's optimizer writes them: QLinearConv, pools; two in a row, one and two dimensions."""
    net = ms_net("nhwc")
    u8 = TensorProto.UINT8
    x, line = net.input("x", [2, 7, 6, 3], u8), net.input("line", [1, 9, 2], u8)
    grid = [net.const("s", np.float32(0.05)), net.const("z", np.asarray(110), np.uint8)]

    def conv(name, data, oc, ic, kernel, **attrs):
        w = [net.const(name + "w", net.rng.integers(-60, 60, (oc, ic, *kernel)), np.int8), net.const(name + "s", net.rng.uniform(0.002, 0.02, oc)),
             net.const(name + "z", np.zeros(oc), np.int8)]
        return net.node("QLinearConv", [data, *grid, *w, *grid, net.const(name + "b", net.rng.integers(-900, 900, oc), np.int32)], name, MS,
                        channels_last=1, **attrs)

    conv("a", x, 8, 3, (3, 3), pads=[1, 1, 1, 1])
    conv("b", "a", 8, 1, (3, 3), group=8, strides=[2, 2], pads=[1, 1, 1, 1])
    net.node("NhwcMaxPool", ["b"], "m", MS, kernel_shape=[2, 2])
    net.node("QLinearAveragePool", ["b", *grid, *grid], "p", MS, kernel_shape=[2, 2], channels_last=1)
    net.node("QLinearGlobalAveragePool", ["m", *grid, *grid], "g", MS, channels_last=1)
    conv("l", line, 4, 2, (3,))
    for name, shape in (("b", [2, 4, 3, 8]), ("m", [2, 3, 2, 8]), ("p", [2, 3, 2, 8]), ("g", [2, 1, 1, 8]), ("l", [1, 7, 4])):
        net.output(name, shape, u8)
    return net.done(), None


# ---- operators of ai.onnx.ml

ML = "ai.onnx.ml"


def tensor(values, kind):
    return numpy_helper.from_array(np.asarray(values, kind))


def random_forest(rng, trees, depth, features, targets, modes):
    """Attributes of TreeEnsemble: full trees, leaves in order."""
    node = {k: [] for k in ("featureids", "falseleafs", "falsenodeids", "trueleafs", "truenodeids")}
    mode, split, weights, target, roots = [], [], [], [], []

    def grow(level):
        at = len(mode)
        mode.append(int(rng.choice(modes))), split.append(float(np.round(rng.normal(), 1)))
        node["featureids"].append(int(rng.integers(features)))
        for side in ("false", "true"):
            node[side + "leafs"].append(0), node[side + "nodeids"].append(0)
        for side in ("false", "true"):
            if level + 1 == depth:
                node[side + "leafs"][at], node[side + "nodeids"][at] = 1, len(weights)
                weights.append(float(rng.normal())), target.append(int(rng.integers(targets)))
            else:
                node[side + "nodeids"][at] = grow(level + 1)
        return at

    for _ in range(trees):
        roots.append(grow(0))
    return {f"nodes_{k}": v for k, v in node.items()} | {
        "nodes_modes": tensor(mode, np.uint8), "nodes_splits": tensor(split, np.float32), "leaf_weights": tensor(weights, np.float32),
        "leaf_targetids": target, "tree_roots": roots, "n_targets": targets}


@model("ml_trees")
def ml_trees():
    """TreeEnsemble: every aggregation, comparisons of all kinds, missing values."""
    net = Net("ml_trees", 17, ir=8)
    net.more_opsets.append(helper.make_opsetid(ML, 5))
    x = net.input("x", [12, 4])
    for i, (aggregate, transform, modes) in enumerate(((1, 0, [0]), (0, 0, [1]), (2, 0, [2]), (3, 0, [3]), (1, 3, [0]), (1, 0, [0, 1, 2, 3]),
                                                       (1, 0, [4, 5, 0]))):
        forest = random_forest(net.rng, 5, 3, 4, 3, modes)
        if i % 2:
            forest["nodes_missing_value_tracks_true"] = [int(v) for v in net.rng.integers(0, 2, len(forest["nodes_featureids"]))]
        net.node("TreeEnsemble", [x], f"y{i}", ML, aggregate_function=aggregate, post_transform=transform, **forest)
        net.output(f"y{i}", [12, 3])
    values = np.round(net.rng.normal(0, 1, (12, 4)), 1).astype(np.float32)
    values[0, :2] = values[5] = np.nan
    return net.done(), {"x": values}


@model("ml_labels")
def ml_labels():
    """LabelEncoder between numbers: keys that are missing, NaN."""
    net = Net("ml_labels", 17, ir=8)
    net.more_opsets.append(helper.make_opsetid(ML, 4))
    net.input("i", [3, 4], TensorProto.INT64), net.input("f", [6])
    net.node("LabelEncoder", ["i"], "yif", ML, keys_int64s=[5, -7, 2, 900], values_floats=[0.5, 1.5, -2.5, 3.5], default_float=9.25)
    net.node("LabelEncoder", ["i"], "yii", ML, keys_int64s=[5, -7, 2, 900], values_int64s=[1, 2, 3, 4])
    net.node("LabelEncoder", ["f"], "yfi", ML, keys_floats=[0.5, float("nan"), -2.0, 0.0], values_int64s=[7, 8, 9, 10], default_int64=-5)
    net.output("yif", [3, 4]), net.output("yii", [3, 4], TensorProto.INT64), net.output("yfi", [6], TensorProto.INT64)
    return net.done(), {"i": np.array([[5, 2, 3, -7], [900, 901, 5, 5], [0, -1, 2, 7]], np.int64),
                        "f": np.array([0.5, np.nan, -2, 1, 0.0, -0.5], np.float32)}


@model("scan_op8_lengths")
def scan_op8_lengths():
    """Scan of opset 8: a batch of sequences of different lengths, forwards and backwards."""
    net = Net("scan_op8_lengths", 8, ir=7)
    info = lambda name, shape: helper.make_tensor_value_info(name, F32, shape)  # noqa: E731
    body = helper.make_graph([helper.make_node("Add", ["h", "a"], ["s"]), helper.make_node("Mul", ["s", "b"], ["o"]), helper.make_node("Tanh", ["s"], ["t"])],
                             "body", [info("h", [2]), info("a", [2]), info("b", [2])], [info("t", [2]), info("o", [2])])
    lens, h = net.input("lens", [3], TensorProto.INT64), net.input("h", [3, 2])
    x, z = net.input("x", [3, 4, 2]), net.input("z", [3, 4, 2])
    net.node("Scan", [lens, h, x, z], ["last", "all"], body=body, num_scan_inputs=2, directions=[0, 1])
    net.output("last", [3, 2]), net.output("all", [3, 4, 2])
    draw = lambda *dims: net.rng.normal(0, 1, dims).astype(np.float32)  # noqa: E731
    return net.done(), {"lens": np.array([4, 2, 1], np.int64), "h": draw(3, 2), "x": draw(3, 4, 2), "z": draw(3, 4, 2)}


@model("function_lists")
def function_lists():
    """A function that hands lists of strings, floats and integers on to its nodes: numbers to words to scores."""
    net = Net("function_lists", 17, ir=8)
    domain, kinds = "org.example.fn", onnx.AttributeProto
    net.more_opsets += [helper.make_opsetid(ML, 4), helper.make_opsetid(domain, 1)]
    words = helper.make_node("LabelEncoder", ["i"], ["w"], domain=ML, default_string="none")
    scores = helper.make_node("LabelEncoder", ["w"], ["s"], domain=ML, default_float=-1.0)
    for node, name, given, kind in ((words, "keys_int64s", "numbers", kinds.INTS), (words, "values_strings", "words", kinds.STRINGS),
                                    (scores, "keys_strings", "words", kinds.STRINGS), (scores, "values_floats", "scores", kinds.FLOATS)):
        node.attribute.append(kinds(name=name, type=kind, ref_attr_name=given))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 4)]
    net.functions.append(helper.make_function(domain, "Score", ["i"], ["s"], [words, scores], opsets, ["numbers", "words", "scores"]))
    net.node("Score", [net.input("i", [3, 4], TensorProto.INT64)], "v", domain, numbers=[5, -7, 2], words=["five", "less seven", ""], scores=[0.5, 1.5, -2.5])
    net.node("MatMul", ["v", net.weight("m", 4, 5)], "y")
    net.output("y", [3, 5])
    return net.done(), {"i": np.array([[5, 2, 3, -7], [900, -7, 5, 5], [0, -1, 2, 7]], np.int64)}


@model("clamped_products")
def clamped_products():
    """Products of float64 and integers, with the Relu or Clip that follows them."""
    net = Net("clamped_products", 14, ir=8)
    kinds = {"d": (TensorProto.DOUBLE, np.float64), "l": (TensorProto.INT64, np.int64), "i": (TensorProto.INT32, np.int32)}
    feeds = {}
    for k, (kind, dtype) in kinds.items():
        net.input(k, [3, 4], kind)
        feeds[k] = (net.rng.normal(0, 3, (3, 4))).astype(dtype)
        w = net.const(k + "w", net.rng.normal(0, 4, (4, 5)), dtype)
        net.node("Gemm" if k == "d" else "MatMul", [k, w], k + "p")
        net.node("Relu" if k != "l" else "Clip", [k + "p"] + ([net.const("lo", -20, dtype), net.const("hi", 15, dtype)] if k == "l" else []), k + "y")
        net.output(k + "y", [3, 5], kind)
    return net.done(), feeds


@model("ml_features")
def ml_features():
    """Binarizer and ArrayFeatureExtractor."""
    net = Net("ml_features", 17, ir=8)
    net.more_opsets.append(helper.make_opsetid(ML, 1))
    x = net.input("x", [3, 5])
    net.node("Binarizer", [x], "b", ML, threshold=0.3)
    net.node("ArrayFeatureExtractor", [x, net.const("at", [4, 0, 0, 2], np.int64)], "e", ML)
    net.output("b", [3, 5]), net.output("e", [3, 4])
    return net.done(), None


@model("ml_prepared")
def ml_prepared():
    """Scaler, Normalizer and Imputer: a number for all features or one for each, rows of zeros, missing values."""
    net = Net("ml_prepared", 17, ir=8)
    net.more_opsets.append(helper.make_opsetid(ML, 1))
    x, i, gaps = net.input("x", [4, 5]), net.input("i", [2, 3], TensorProto.INT64), net.input("gaps", [3, 4])
    net.node("Scaler", [x], "all", ML, offset=[0.5], scale=[-1.75])
    net.node("Scaler", [x], "each", ML, offset=[0.5, -2.0, 0.0, 8.5, 1e-3], scale=[1.0, 0.3, -7.0, 0.0, 12.5])
    net.node("Scaler", [i], "whole", ML, offset=[3.5, -2.0, 0.0], scale=[0.25, 1.5, -3.0])
    net.output("all", [4, 5]), net.output("each", [4, 5]), net.output("whole", [2, 3])
    for norm in ("MAX", "L1", "L2"):
        net.node("Normalizer", [x], f"by_{norm}", ML, norm=norm)
        net.output(f"by_{norm}", [4, 5])
    net.node("Imputer", [gaps], "filled", ML, imputed_value_floats=[1.5, -2.5, 0.25, 9.0], replaced_value_float=float("nan"))
    net.node("Imputer", [x], "raised", ML, imputed_value_floats=[0.125], replaced_value_float=0.0)
    net.output("filled", [3, 4]), net.output("raised", [4, 5])
    values = net.rng.normal(0, 2, (4, 5)).astype(np.float32)
    values[1], values[2] = 0, np.abs(values[2])
    holes = np.round(net.rng.normal(0, 1, (3, 4)), 1).astype(np.float32)
    holes[0, 1] = holes[2] = np.nan
    holes[1, :2] = 0
    return net.done(), {"x": values, "i": np.array([[5, -2, 3], [16777217, 7, 0]], np.int64), "gaps": holes}


# ---- writing

NUMPY = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(bool)": np.bool_}


def random_feeds(sess, name):
    """Two samples where the batch is free."""
    rng = np.random.default_rng([ord(c) for c in "feed " + name])
    feeds = {}
    for value in sess.get_inputs():
        shape = [d if isinstance(d, int) else 2 for d in value.shape]
        kind = NUMPY[value.type]
        if kind is np.uint8:
            feeds[value.name] = rng.integers(0, 256, shape).astype(kind)
        elif kind is np.int8 or kind is np.bool_:
            feeds[value.name] = rng.integers(-128 if kind is np.int8 else 0, 128 if kind is np.int8 else 2, shape).astype(kind)
        else:
            feeds[value.name] = rng.normal(0, 1, shape).astype(kind)
    return feeds


def write(name, make, runs, folder):
    made, feeds = make()
    path = folder / f"{name}.onnx"
    if name == "external_data":
        onnx.save(made, path, save_as_external_data=True, location="external_data.bin", size_threshold=32)
    else:
        onnx.save(made, path)
    onnx.checker.check_model(str(path))
    if not runs:
        return
    sess = peer.session(path)
    feeds = feeds or random_feeds(sess, name)
    outputs = sess.run(None, feeds)
    arrays = {f"in/{k}": v for k, v in feeds.items()}
    arrays |= {f"out/{o.name}": y for o, y in zip(sess.get_outputs(), outputs)}
    np.savez(folder / f"{name}.npz", **arrays)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "testdata" / "models")
    args = parser.parse_args()
    shutil.rmtree(args.out, ignore_errors=True)
    args.out.mkdir(parents=True)
    lines = ["# Test models", "", "Made by `tests/generate/make_test_models.py`. NAME.npz holds the inputs (`in/...`) and ONNX Runtime's outputs (`out/...`).",
             "", "| model | what |", "|---|---|"]
    for name, make, runs in MODELS:
        try:
            write(name, make, runs, args.out)
        except Exception as error:
            sys.exit(f"make_test_models: {name}: {error}")
        lines.append(f"| {name} | {make.__doc__.splitlines()[0].rstrip('.')}{'' if runs else ' (not run: no .npz)'} |")
    (args.out / "README.md").write_text("\n".join(lines) + "\n")
    print(f"{len(MODELS)} models, largest {max(p.stat().st_size for p in args.out.iterdir()) // 1024} KB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
