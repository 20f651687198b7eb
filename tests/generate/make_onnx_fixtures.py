#!/usr/bin/env python3
"""Makes testdata/onnx/: small models that hold every construct of the format, for tests of loading and saving.

Each file is what protobuf's Python serialiser writes, so that an unchanged save must give the same bytes.
types.txt lists the tensors of types.onnx: name, element type, dimensions, and the bytes of the decoded data.
Seeded; no file depends on the date or the machine.
"""
from pathlib import Path

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper

OUT = Path(__file__).resolve().parents[2] / "testdata" / "onnx"
F32 = TensorProto.FLOAT
rng = np.random.default_rng(20)


def info(name, dims, t=F32):
    return helper.make_tensor_value_info(name, t, dims)


def floats(name, *dims):
    values = rng.integers(-8, 9, size=dims).astype(np.float32)
    return onnx.numpy_helper.from_array(values, name)


def wrap(graph, ir=10, opset=21, **more):
    return helper.make_model(graph, ir_version=ir, opset_imports=[helper.make_opsetid("", opset)],
                             producer_name="fixtures", producer_version="1", **more)


def save(name, model):
    # Through bytes once: the form that the serialiser gives to what it has read.
    raw = type(model).FromString(model.SerializeToString()).SerializeToString()
    (OUT / name).write_bytes(raw)


def identity(inits=(), name="g", **more):
    return helper.make_graph([helper.make_node("Identity", ["x"], ["y"], name="only")], name, [info("x", ["N", 3])],
                             [info("y", ["N", 3])], list(inits), **more)


# Bits, typed field, numbers of that field per element (a fraction: elements packed in one byte).
TYPES = {
    "FLOAT": (32, "float_data"), "UINT8": (8, "int32_data"), "INT8": (8, "int32_data"), "UINT16": (16, "int32_data"),
    "INT16": (16, "int32_data"), "INT32": (32, "int32_data"), "INT64": (64, "int64_data"), "BOOL": (8, "int32_data"),
    "FLOAT16": (16, "int32_data"), "DOUBLE": (64, "double_data"), "UINT32": (32, "uint64_data"),
    "UINT64": (64, "uint64_data"), "COMPLEX64": (64, "float_data"), "COMPLEX128": (128, "double_data"),
    "BFLOAT16": (16, "int32_data"), "FLOAT8E4M3FN": (8, "int32_data"), "FLOAT8E4M3FNUZ": (8, "int32_data"),
    "FLOAT8E5M2": (8, "int32_data"), "FLOAT8E5M2FNUZ": (8, "int32_data"), "UINT4": (4, "int32_data"),
    "INT4": (4, "int32_data"), "FLOAT4E2M1": (4, "int32_data"), "FLOAT8E8M0": (8, "int32_data"),
    "UINT2": (2, "int32_data"), "INT2": (2, "int32_data"),
}


def typed_numbers(raw, bits, field):
    """The numbers that the typed field holds for these bytes; sub-byte types go byte by byte."""
    if field == "float_data":
        return np.frombuffer(raw, "<f4")
    if field == "double_data":
        return np.frombuffer(raw, "<f8")
    return np.frombuffer(raw, "<u%d" % max(1, bits // 8)).astype(np.uint64 if field == "uint64_data" else np.int64)


def types():
    inits, lines = [], []
    for type_name, (bits, field) in TYPES.items():
        for form in ("raw", "typed"):
            t = TensorProto(name=f"{type_name}_{form}", data_type=getattr(TensorProto, type_name), dims=[3, 5])
            if field in ("float_data", "double_data"):
                raw = rng.integers(-99, 99, size=15 * bits // (32 if field == "float_data" else 64)).astype(
                    "<f4" if field == "float_data" else "<f8").tobytes()
            elif type_name == "BOOL":
                raw = rng.integers(0, 2, size=15).astype(np.uint8).tobytes()
            else:
                raw = rng.bytes((15 * bits + 7) // 8)
            if form == "raw":
                t.raw_data = raw
            else:
                numbers = typed_numbers(raw, bits, field)
                if field == "int32_data":
                    numbers = numbers.astype(np.int64)
                    numbers = np.where(numbers >= 2**31, numbers - 2**32, numbers)
                getattr(t, field).extend(numbers.tolist())
            inits.append(t)
            lines.append(f"{t.name} {t.data_type} 3x5 {raw.hex()}")
    inits.append(TensorProto(name="STRING", data_type=TensorProto.STRING, dims=[2], string_data=[b"a\0b", b"\xff"]))
    for n in (0, 1, 7, 8, 9, 15, 16, 17, 200):
        raw = rng.bytes(n)
        inits.append(TensorProto(name=f"raw_{n}", data_type=TensorProto.UINT8, dims=[n], raw_data=raw))
        lines.append(f"raw_{n} 2 {n} {raw.hex() or '-'}")
    inits.append(TensorProto(name="scalar", data_type=F32, float_data=[2.5]))
    lines.append("scalar 1 - " + np.float32(2.5).tobytes().hex())
    inits.append(TensorProto(name="future", data_type=27, dims=[4], raw_data=b"abc"))
    save("types.onnx", wrap(identity(inits), ir=13))
    (OUT / "types.txt").write_text("\n".join(lines) + "\n")


def external():
    data = np.arange(64, dtype=np.float32)
    (OUT / "external").mkdir(exist_ok=True)
    (OUT / "external" / "weights.bin").write_bytes(b"\0" * 16 + data.tobytes())

    def outside(name, first, count, location="weights.bin", dims=None):
        t = TensorProto(name=name, data_type=F32, dims=dims or [count], data_location=TensorProto.EXTERNAL)
        for key, value in (("location", location), ("offset", 16 + 4 * first), ("length", 4 * count)):
            t.external_data.add(key=key, value=str(value))
        return t

    constant = helper.make_node("Constant", [], ["c"], name="const")
    constant.attribute.add(name="value", type=AttributeProto.TENSOR).t.CopyFrom(outside("", 8, 3))
    nodes = [constant, helper.make_node("Add", ["x", "w"], ["a"], name="add"),
             helper.make_node("Add", ["a", "c"], ["y"], name="add2")]
    small = floats("embedded", 3)

    def made(weight):
        return wrap(helper.make_graph(nodes, "g", [info("x", ["N", 3])], [info("y", ["N", 3])], [weight, small]))

    good = outside("w", 0, 3)
    save("external/model.onnx", made(good))
    for name, location in (("dots", "../types.txt"), ("inner_dots", "a/../../types.txt"), ("absolute", "/etc/hostname"),
                           ("missing", "nowhere.bin"), ("folder", "."), ("link", "link.bin")):
        save(f"external/bad_{name}.onnx", made(outside("w", 0, 3, location)))
    save("external/bad_range.onnx", made(outside("w", 63, 3)))
    save("external/bad_length.onnx", made(outside("w", 0, 4, dims=[3])))
    huge = outside("w", 0, 3)
    huge.external_data[1].value = str(2**64 - 4)
    save("external/bad_offset.onnx", made(huge))


def sparse():
    s = onnx.SparseTensorProto(dims=[4, 5])
    s.values.CopyFrom(TensorProto(name="s", data_type=F32, dims=[2], float_data=[1, 2]))
    s.indices.CopyFrom(TensorProto(data_type=TensorProto.INT64, dims=[2], int64_data=[3, 17]))
    g = helper.make_graph([helper.make_node("MatMul", ["x", "s"], ["y"], name="mm")], "g", [info("x", ["N", 4])],
                          [info("y", ["N", 5])])
    g.sparse_initializer.append(s)
    save("sparse.onnx", wrap(g))


def unknown(model):
    """Fields with numbers that no version has, on several levels."""
    def add(message, tail):
        message.MergeFromString(tail)
    extra = b"\xfa\x7f\x03new" + b"\xf0\x7f\x2a" + b"\xfd\x7f\1\2\3\4" + b"\xf9\x7f12345678"
    for message in (model, model.graph, model.graph.node[0], model.graph.initializer[0], model.graph.input[0].type,
                    model.graph.input[0].type.tensor_type.shape.dim[0]):
        add(message, extra)


def everything():
    """Functions, training information, devices, annotations, metadata, non-tensor types, all attribute types."""
    body = helper.make_graph([helper.make_node("Relu", ["x"], ["r"])], "sub", [], [info("r", None)], [floats("si", 2, 3)])
    node = helper.make_node("Twice", ["x"], ["t"], name="call", domain="local", doc_string="doc")
    node.overload = "v"
    every = helper.make_node("Custom", ["t", "", "w"], ["c", "", "z"], name="custom", domain="ai.example", f=1.5, i=-7,
                             s="text", floats=[1.0, -2.0], ints=[3, -4, 2**40], strings=["a", "b"], t=floats("", 2, 2),
                             tensors=[floats("p", 20), floats("q", 1)], g=body, graphs=[body, body])
    every.attribute.add(name="sp", type=AttributeProto.SPARSE_TENSOR).sparse_tensor.values.CopyFrom(floats("", 3))
    every.attribute.add(name="tp", type=AttributeProto.TYPE_PROTO).tp.CopyFrom(info("", [1]).type)
    every.attribute.add(name="old_untyped").ints.extend([1, 2])
    device = every.device_configurations.add(configuration_id="d", pipeline_stage=1)
    sharding = device.sharding_spec.add(tensor_name="w", device=[0, 1])
    sharding.sharded_dim.add(axis=0).simple_sharding.add(dim_value=2, num_shards=2)
    sharding.index_to_device_group_map.add(key=1, value=[0, 1])
    relu = helper.make_node("Relu", ["c"], ["y"], name="relu")
    relu.domain = "ai.onnx"
    relu.metadata_props.add(key="k", value="v")
    seq = helper.make_tensor_sequence_value_info("seq", F32, None)
    opt = helper.make_value_info("opt", helper.make_optional_type_proto(info("", [2]).type))
    mapped = helper.make_value_info("map", helper.make_map_type_proto(TensorProto.INT64, info("", None).type))
    spt = helper.make_sparse_tensor_value_info("spt", F32, [2, 2])
    opaque = onnx.ValueInfoProto(name="opaque")
    opaque.type.opaque_type.domain = "d"
    x = info("x", ["N", 3, None])
    x.type.tensor_type.shape.dim[1].denotation = "DATA_CHANNEL"
    g = helper.make_graph([node, every, relu], "everything", [x, seq, opt, mapped, spt, opaque],
                          [info("y", ["N", 3]), info("z", None)], [floats("w", 4, 4), floats("unused", 50)],
                          doc_string="graph \u00fc", value_info=[info("t", ["N", 3]), info("nowhere", [1])])
    g.quantization_annotation.add(tensor_name="w").quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="s")
    g.metadata_props.add(key="gk", value="gv")
    twice = helper.make_function("local", "Twice", ["a"], ["b"],
                                 [helper.make_node("Mul", ["a", "a"], ["b"], name="mul")],
                                 [helper.make_opsetid("", 21)], attributes=["alpha"])
    twice.overload = "v"
    twice.node[0].attribute.add(name="k", ref_attr_name="alpha", type=AttributeProto.INT)
    twice.attribute_proto.add(name="beta", f=1, type=AttributeProto.FLOAT)
    model = wrap(g, ir=11, functions=[twice], doc_string="", domain="org", model_version=3)
    model.opset_import.extend([helper.make_opsetid("local", 1), helper.make_opsetid("ai.example", 2)])
    model.metadata_props.add(key="author", value="x")
    model.training_info.add().algorithm.CopyFrom(identity([floats("tw", 9)]))
    model.configuration.add(name="d", num_devices=2, device=["a", "b"])
    unknown(model)
    save("everything.onnx", model)
    save("small.onnx", wrap(identity([floats("w", 2, 3)])))


def ir3():
    nodes = [helper.make_node("Add", ["x", "w"], ["a"], name="add"), helper.make_node("Relu", ["a"], ["y"], name="relu")]
    g = helper.make_graph(nodes, "g", [info("x", ["N", 3]), info("w", [3])], [info("y", ["N", 3])], [floats("w", 3)],
                          value_info=[info("a", ["N", 3])])
    save("ir3.onnx", wrap(g, ir=3, opset=7))


def subgraphs():
    """If in a Loop's body; the body uses an outer initializer, and a name of its own that shadows nothing."""
    def branch(op):
        return helper.make_graph([helper.make_node(op, ["acc", "w"], ["b"]), helper.make_node("Add", ["b", "far"], ["bo"])],
                                 op, [], [info("bo", None)])
    body = helper.make_graph(
        [helper.make_node("If", ["go"], ["next"], name="if", then_branch=branch("Add"), else_branch=branch("Mul")),
         helper.make_node("Identity", ["go"], ["go_out"])],
        "body", [info("i", [], TensorProto.INT64), info("go", [], TensorProto.BOOL), info("acc", None)],
        [info("go_out", [], TensorProto.BOOL), info("next", None)])
    nodes = [helper.make_node("Loop", ["trip", "", "x"], ["y"], name="loop", body=body),
             helper.make_node("Relu", ["x"], ["far"], name="relu")]
    g = helper.make_graph(nodes, "g", [info("x", ["N", 3])], [info("y", ["N", 3])],
                          [floats("w", 3), onnx.numpy_helper.from_array(np.array(2, np.int64), "trip")])
    save("subgraph_unsorted.onnx", wrap(g))


def bad_graphs():
    def put(name, nodes, inits=(), inputs=None, outputs=None):
        save(f"bad_{name}.onnx", wrap(helper.make_graph(nodes, "g", inputs or [info("x", [3])], outputs or [info("y", [3])],
                                                       list(inits))))
    n = helper.make_node
    put("cycle", [n("Add", ["x", "b"], ["a"], name="one"), n("Relu", ["a"], ["b"], name="two"), n("Relu", ["b"], ["y"])])
    put("undefined_input", [n("Add", ["x", "ghost"], ["y"], name="add")])
    put("undefined_output", [n("Relu", ["x"], ["z"], name="relu")])
    put("two_producers", [n("Relu", ["x"], ["y"], name="one"), n("Abs", ["x"], ["y"], name="two")])
    put("produces_input", [n("Relu", ["x"], ["x"], name="one")], outputs=[info("x", [3])])
    put("twice_initializer", [n("Relu", ["x"], ["y"])], [floats("w", 1), floats("w", 2)])
    put("twice_input", [n("Relu", ["x"], ["y"])], inputs=[info("x", [3]), info("x", [3])])
    put("short_raw", [n("Add", ["x", "w"], ["y"])], [TensorProto(name="w", data_type=F32, dims=[3], raw_data=b"12345678")])
    put("long_raw", [n("Add", ["x", "w"], ["y"])], [TensorProto(name="w", data_type=F32, dims=[1], raw_data=b"12345678")])
    put("short_typed", [n("Add", ["x", "w"], ["y"])], [TensorProto(name="w", data_type=F32, dims=[3], float_data=[1])])
    put("no_type", [n("Add", ["x", "w"], ["y"])], [TensorProto(name="w", dims=[1], float_data=[1])])
    put("negative_dim", [n("Add", ["x", "w"], ["y"])], [TensorProto(name="w", data_type=F32, dims=[-1, -1], float_data=[1])])
    put("huge_dims", [n("Add", ["x", "w"], ["y"])],
        [TensorProto(name="w", data_type=F32, dims=[2**31, 2**31, 4], float_data=[1])])
    put("huge_dims2", [n("Add", ["x", "w"], ["y"])], [TensorProto(name="w", data_type=F32, dims=[2**62], float_data=[1])])
    put("subgraph_name", [n("If", ["x"], ["y"], name="if", then_branch=helper.make_graph(
        [n("Relu", ["ghost"], ["b"])], "t", [], [info("b", None)]))])
    put("no_op", [n("", ["x"], ["y"], name="nameless")])
    old = wrap(identity(), ir=2)
    save("unsupported_ir2.onnx", old)
    save("unsupported_ir99.onnx", wrap(identity(), ir=99))
    save("tensor.pb", floats("t", 2, 3))


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    types()
    external()
    sparse()
    everything()
    ir3()
    subgraphs()
    bad_graphs()


if __name__ == "__main__":
    main()
