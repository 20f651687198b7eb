"""Models of one node each, of opsets from 7 on, for every operator whose form changed in a later one: (name, model, feeds)."""
import numpy as np
import onnx
from onnx import TensorProto, ValueInfoProto, helper, shape_inference

F = np.float32


def _values(*shape, seed=0, kind=F):
    return (np.random.default_rng(seed + len(shape)).permutation(int(np.prod(shape))).reshape(shape) / 3 - 2).astype(kind)


def _model(op, opset, feeds, attrs, outputs, constants):
    names = sorted([*feeds, *constants])
    inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in feeds.items()]
    made = [ValueInfoProto(name=f"out{i}") for i in range(outputs)]
    kept = [helper.make_tensor(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape, v.ravel()) for n, v in constants.items()]
    node = helper.make_node(op, names, [m.name for m in made], op.lower(), **attrs)
    graph = helper.make_graph([node], op, inputs, made, kept)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=4 if opset < 13 else 8)
    model = shape_inference.infer_shapes(model)
    for out in model.graph.output:  # of operators that are functions nothing is inferred
        if out.type.WhichOneof("value") is None:
            out.type.CopyFrom(inputs[0].type)
    return model


def write(folder):
    """A file and its inputs (NAME.npz) for each; the paths."""
    paths = []
    for name, model, feeds in models():
        paths.append(folder / f"{name}.onnx")
        onnx.save(model, paths[-1])
        np.savez(paths[-1].with_suffix(".npz"), **{f"in/{n}": v for n, v in feeds.items()})
    return paths


X = {"a": _values(2, 3, 4, 5)}
REDUCTIONS = ["ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
              "ReduceLogSumExp"]
ROIS = {"a": np.abs(_values(1, 2, 8, 8)), "b": np.array([[0, 0, 6, 6], [1, 2, 5, 7]], F), "c": np.array([0, 0], np.int64)}

# operator, opset, feeds, attributes[, outputs[, constants]]
CASES = [
    ("Clip", 7, X, {"min": -1.0, "max": 1.5}), ("Clip", 7, X, {"max": 0.25}), ("Clip", 10, X, {}), ("Clip", 11, X, {}),
    ("Pad", 7, X, {"pads": [0, 0, 1, 2, 0, 0, 0, 1], "value": 0.5}), ("Pad", 10, X, {"pads": [0, 0, 1, 0, 0, 0, 1, 0], "mode": "edge"}),
    ("Pad", 9, X, {"pads": [0, 0, -1, 0, 0, 0, 1, 0], "mode": "constant"}),
    ("Slice", 7, X, {"starts": [1, -3], "ends": [2, 1000], "axes": [1, 3]}), ("Slice", 9, X, {"starts": [1], "ends": [2]}),
    ("Squeeze", 7, {"a": _values(1, 3, 1)}, {"axes": [0]}), ("Squeeze", 11, {"a": _values(1, 3, 1)}, {}),
    ("Squeeze", 12, {"a": _values(1, 3, 1)}, {"axes": [-1]}),
    ("Unsqueeze", 7, X, {"axes": [0, 5]}), ("Unsqueeze", 12, X, {"axes": [-1]}),
    ("Split", 7, X, {"axis": 3, "split": [1, 4]}, 2), ("Split", 11, X, {"axis": 2}, 2), ("Split", 13, X, {"axis": 2}, 2),
    ("Split", 7, X, {"axis": -1, "split": [2, 3]}, 2),
    ("TopK", 7, X, {"axis": 3, "k": 2}, 2), ("TopK", 9, X, {"k": 3}, 2),
    ("TopK", 10, X, {"axis": 1}, 2, {"b": np.array([2], np.int64)}),
    ("Dropout", 7, X, {"ratio": 0.25}), ("Dropout", 10, X, {}), ("Dropout", 11, X, {"ratio": 0.5}),
    ("Upsample", 7, X, {"scales": [1.0, 1.0, 2.0, 2.0], "mode": "nearest"}),
    ("Upsample", 7, X, {"scales": [1.0, 1.0, 2.0, 3.0], "mode": "linear"}),
    ("Upsample", 9, X, {"mode": "nearest"}, 1, {"b": np.array([1, 1, 2, 1.5], F)}),
    ("Resize", 10, X, {"mode": "linear"}, 1, {"b": np.array([1, 1, 2, 2], F)}),
    ("Resize", 10, X, {"mode": "nearest"}, 1, {"b": np.array([1, 1, 0.5, 2], F)}),
    ("BatchNormalization", 7, X, {"epsilon": 1e-3}, 1,
     {"b": np.array([1, 2, 3], F), "c": np.array([0, 1, 2], F), "d": np.array([0.5, 0, -0.5], F), "e": np.array([1, 0.5, 2], F)}),
    *[(op, opset, X, attrs) for op in ("Softmax", "LogSoftmax", "Hardmax") for opset in (7, 11, 12)
      for attrs in ({}, {"axis": 2}, {"axis": 3})],
    *[("Softmax", 11, X, {"axis": axis}) for axis in (0, -1)],
    *[(op, opset, {"a": np.abs(_values(2, 3, 4)) + 1}, attrs) for op in REDUCTIONS for opset in (7, 11, 13)
      for attrs in ({"axes": [0, 2], "keepdims": 0}, {}) if opset < 13 or op != "ReduceSum"],
    ("Scatter", 9, {"a": _values(3, 4), "b": np.array([[0, 2], [1, 1]], np.int64), "c": _values(2, 2, seed=9)}, {"axis": 1}),
    ("RoiAlign", 10, ROIS, {"output_height": 3, "output_width": 3, "sampling_ratio": 2}),
    ("RoiAlign", 16, ROIS, {"output_height": 2, "output_width": 3, "sampling_ratio": 2}),
    *[("GridSample", 16, {"a": _values(1, 2, 4, 5), "b": np.sin(_values(1, 3, 3, 2))}, {"mode": mode, "align_corners": align})
      for mode in ("bilinear", "bicubic", "nearest") for align in (0, 1)],
    ("GridSample", 16, {"a": _values(1, 2, 4, 5), "b": np.sin(_values(1, 3, 3, 2))}, {}),
    ("GroupNormalization", 18, {"a": _values(2, 6, 4)}, {"num_groups": 3}, 1, {"b": np.array([1, 2, 3], F), "c": np.array([0, 1, -1], F)}),
    ("GroupNormalization", 18, {"a": _values(2, 6, 4), "b": np.array([1, 2], F), "c": np.array([0, 1], F)}, {"num_groups": 2}),
    ("DFT", 17, {"a": _values(1, 4, 6, 1)}, {"axis": 2}), ("DFT", 17, {"a": _values(1, 4, 6, 1)}, {}),
    ("Reshape", 7, X, {}, 1, {"b": np.array([0, -1], np.int64)}), ("Reshape", 13, X, {}, 1, {"b": np.array([2, 0, -1], np.int64)}),
    ("AveragePool", 7, X, {"kernel_shape": [2, 2], "pads": [1, 1, 0, 0]}),
    ("AveragePool", 10, X, {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1}),
    ("MaxPool", 7, X, {"kernel_shape": [2, 3], "auto_pad": "SAME_UPPER"}), ("MaxPool", 8, X, {"kernel_shape": [2, 2]}, 2),
    ("Gemm", 7, {"a": _values(3, 4), "b": _values(4, 2), "c": _values(2)}, {"beta": 0.5}),
    ("Flatten", 7, X, {"axis": 2}), ("Gather", 7, {"a": _values(4, 3), "b": np.array([1, 3], np.int64)}, {}),
    ("Cast", 7, X, {"to": TensorProto.INT32}), ("ArgMax", 7, X, {"axis": 1}), ("ArgMin", 11, X, {"axis": 2, "keepdims": 0}),
    ("DepthToSpace", 7, {"a": _values(1, 8, 2, 3)}, {"blocksize": 2}), ("SpaceToDepth", 7, {"a": _values(1, 2, 4, 6)}, {"blocksize": 2}),
    ("PRelu", 7, {**X, "b": np.array([0.1, 0.2, 0.3], F).reshape(3, 1, 1)}, {}), ("Pow", 7, {"a": np.abs(_values(2, 3)), "b": _values(3)}, {}),
    ("Shape", 13, X, {}), ("ScatterND", 11, {"a": _values(4, 3), "b": np.array([[1], [3]], np.int64), "c": _values(2, 3)}, {}),
    ("GatherND", 11, {"a": _values(2, 3, 4), "b": np.array([[0, 1], [1, 2]], np.int64)}, {}),
    ("QuantizeLinear", 10, X, {}, 1, {"b": np.array(0.1, F), "c": np.array(3, np.uint8)}),
    ("DequantizeLinear", 10, {"a": np.arange(12, dtype=np.uint8).reshape(3, 4)}, {}, 1, {"b": np.array(0.1, F), "c": np.array(3, np.uint8)}),
    ("LpPool", 11, X, {"kernel_shape": [2, 2], "p": 2}), ("LSTM", 7, {"a": _values(3, 1, 2), "b": _values(1, 12, 2) / 4,
                                                                 "c": _values(1, 12, 3) / 8}, {"hidden_size": 3}),
    ("Mean", 7, {"a": _values(2, 3), "b": _values(2, 3, seed=5)}, {}), ("Tile", 7, X, {}, 1, {"b": np.array([1, 2, 1, 1], np.int64)}),
    ("CumSum", 11, X, {}, 1, {"b": np.array(1, np.int32)}), ("IsInf", 10, X, {}), ("OneHot", 9, {"a": np.array([0, 2], np.int64)}, {}, 1,
                                                                       {"b": np.array(3, np.int64), "c": np.array([0, 1], F)}),
]


def models():
    for at, (op, opset, feeds, attrs, *rest) in enumerate(CASES):
        outputs, constants = [*rest, 1, None][:2] if not rest else [*rest, None][:2]
        yield f"{op.lower()}_{opset}_{at}", _model(op, opset, feeds, attrs, outputs, constants or {}), feeds
