#!/usr/bin/env python3
"""Scripts in the style of ONNX Runtime's examples, run twice: as they are, and with octet.quantization in place of onnxruntime.quantization. The second
model must lose no more than the first, judged in ONNX Runtime on samples that no script saw.

    check_migration.py BUILD [-v] [NAME...]

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import installed, packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 300
SLACK = 0.3  # dB that a script's model may lose to the original's: what is measured on 256 samples

# ---- models ----


def net(nodes, inputs, outputs, weights):
    ports = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in some] for some in (inputs, outputs)]
    graph = helper.make_graph(nodes, "g", *ports, [numpy_helper.from_array(w.astype(np.float32), name) for name, w in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def convolutions():
    r = np.random.default_rng(1)
    w = {f"w{i}": r.normal(size=s) * np.exp(r.normal(size=(s[0], 1, 1, 1))) / np.sqrt(np.prod(s[1:])) for i, s in
         enumerate([(16, 3, 3, 3), (16, 1, 3, 3), (32, 16, 1, 1)])}
    w |= {"b0": r.normal(size=16) / 4, "scale": r.uniform(0.5, 2, 32), "shift": r.normal(size=32) / 4, "mean": r.normal(size=32) / 4,
          "var": r.uniform(0.5, 2, 32), "head": r.normal(size=(32, 10)) / 5}
    nodes = [helper.make_node("Conv", ["image", "w0", "b0"], ["a"], name="/stem/conv", pads=[1] * 4), helper.make_node("Relu", ["a"], ["b"], name="/stem/act"),
             helper.make_node("Conv", ["b", "w1"], ["c"], name="/depth/conv", pads=[1] * 4, group=16),
             helper.make_node("Conv", ["c", "w2"], ["d"], name="/point/conv"),
             helper.make_node("BatchNormalization", ["d", "scale", "shift", "mean", "var"], ["e"], name="/point/norm"),
             helper.make_node("Relu", ["e"], ["f"], name="/point/act"), helper.make_node("GlobalAveragePool", ["f"], ["g"], name="/pool"),
             helper.make_node("Flatten", ["g"], ["h"], name="/flat"), helper.make_node("MatMul", ["h", "head"], ["logits"], name="/head")]
    return net(nodes, [("image", ["N", 3, 16, 16])], [("logits", ["N", 10])], w)


def perceptron():
    r = np.random.default_rng(2)
    sizes = [(24, 64), (64, 64), (64, 8)]
    w = {f"w{i}": r.normal(size=s) / np.sqrt(s[0]) for i, s in enumerate(sizes)} | {f"b{i}": r.normal(size=s[1]) / 4 for i, s in enumerate(sizes)}
    nodes, at = [], "x"
    for i in range(3):
        nodes.append(helper.make_node("Gemm", [at, f"w{i}", f"b{i}"], ["y" if i == 2 else f"g{i}"], name=f"fc{i}"))
        if i < 2:
            nodes.append(helper.make_node("Relu", [f"g{i}"], [f"r{i}"], name=f"act{i}"))
        at = f"r{i}"
    return net(nodes, [("x", ["N", 24])], [("y", ["N", 8])], w)


def pair():
    r = np.random.default_rng(3)
    w = {"wa": r.normal(size=(12, 32)) / 3, "wb": r.normal(size=(20, 32)) / 4, "head": r.normal(size=(32, 6)) / 5}
    nodes = [helper.make_node("MatMul", ["left", "wa"], ["a"], name="ma"), helper.make_node("MatMul", ["right", "wb"], ["b"], name="mb"),
             helper.make_node("Add", ["a", "b"], ["c"], name="sum"), helper.make_node("Sigmoid", ["c"], ["d"], name="gate"),
             helper.make_node("MatMul", ["d", "head"], ["y"], name="out")]
    return net(nodes, [("left", ["N", 12]), ("right", ["N", 20])], [("y", ["N", 6])], w)


def projections():
    r = np.random.default_rng(4)
    sizes = [(64, 96), (96, 128), (128, 16)]
    w = {f"w{i}": r.standard_t(5, size=s) / np.sqrt(s[0]) for i, s in enumerate(sizes)}
    nodes, at = [], "x"
    for i in range(3):
        nodes.append(helper.make_node("MatMul", [at, f"w{i}"], ["y" if i == 2 else f"m{i}"], name=f"proj{i}"))
        if i < 2:
            nodes.append(helper.make_node("Tanh", [f"m{i}"], [f"t{i}"], name=f"act{i}"))
        at = f"t{i}"
    return net(nodes, [("x", ["N", 64])], [("y", ["N", 16])], w)


def samples(model, count, seed):
    """Dictionaries of one sample each. No value is far out: otherwise chance would decide which model clips most."""
    r = np.random.default_rng(seed)
    shapes = {i.name: [1, *(d.dim_value for d in i.type.tensor_type.shape.dim[1:])] for i in model.graph.input}
    return [{name: r.uniform(-2, 2, dims).astype(np.float32) for name, dims in shapes.items()} for _ in range(count)]


MODELS = {"convolutions": convolutions, "perceptron": perceptron, "pair": pair, "projections": projections}

# ---- scripts ----

READER = """
class Reader(CalibrationDataReader):
    def __init__(self, folder):
        self.files = iter(sorted(os.listdir(folder)))
        self.folder = folder

    def get_next(self):
        name = next(self.files, None)
        return None if name is None else dict(np.load(os.path.join(self.folder, name)))
"""
HEAD = "import os\nimport numpy as np\nimport onnx\n"
SCRIPTS = {
    "static_qdq": ("convolutions", """
from PACKAGE import CalibrationDataReader, QuantFormat, QuantType, quantize_static
READER
quantize_static("model.onnx", "quantized.onnx", Reader("samples"), quant_format=QuantFormat.QDQ, per_channel=True,
                activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
"""),
    "static_operators": ("convolutions", """
from PACKAGE import CalibrationDataReader, QuantFormat, QuantType, quantize_static
READER
quantize_static("model.onnx", "quantized.onnx", calibration_data_reader=Reader("samples"), quant_format=QuantFormat.QOperator,
                activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, reduce_range=True)
"""),
    "static_defaults": ("perceptron", """
import PACKAGE as quantization
class Reader(quantization.CalibrationDataReader):
    def __init__(self):
        self.rewind()
    def get_next(self):
        return next(self.rows, None)
    def rewind(self):
        self.rows = iter([dict(np.load(f"samples/{n}")) for n in sorted(os.listdir("samples"))])
quantization.quantize_static("model.onnx", "quantized.onnx", Reader())
"""),
    "proto_in_memory": ("convolutions", """
from PACKAGE import CalibrationDataReader, quantize_static
READER
model = onnx.load("model.onnx")
quantize_static(model, "quantized.onnx", Reader("samples"), calibration_providers=["CPUExecutionProvider"])
"""),
    "preprocessed": ("convolutions", """
from PACKAGE import CalibrationDataReader, QuantFormat, quant_pre_process, quantize_static
READER
quant_pre_process("model.onnx", "prepared.onnx", skip_symbolic_shape=True)
quantize_static("prepared.onnx", "quantized.onnx", Reader("samples"), quant_format=QuantFormat.QDQ, per_channel=True)
"""),
    "only_some_operators": ("convolutions", """
from PACKAGE import CalibrationDataReader, QuantType, quantize_static
READER
quantize_static("model.onnx", "quantized.onnx", Reader("samples"), op_types_to_quantize=["MatMul"], weight_type=QuantType.QInt8)
"""),
    "without_some_nodes": ("convolutions", """
from PACKAGE import CalibrationDataReader, quantize_static
READER
quantize_static("model.onnx", "quantized.onnx", Reader("samples"), nodes_to_exclude=["/stem/conv", "/head"])
"""),
    "entropy": ("perceptron", """
from PACKAGE import CalibrationDataReader, CalibrationMethod, QuantFormat, quantize_static
READER
quantize_static("model.onnx", "quantized.onnx", Reader("samples"), quant_format=QuantFormat.QDQ, calibrate_method=CalibrationMethod.Entropy)
"""),
    "percentile_and_options": ("convolutions", """
from PACKAGE import CalibrationDataReader, CalibrationMethod, quantize_static
READER
quantize_static("model.onnx", "quantized.onnx", Reader("samples"), per_channel=True, calibrate_method=CalibrationMethod.Percentile,
                extra_options={"CalibPercentile": 99.99, "WeightSymmetric": True, "ActivationSymmetric": True})
"""),
    "two_inputs": ("pair", """
from PACKAGE import CalibrationDataReader, QuantType, quantize_static
READER
quantize_static("model.onnx", "quantized.onnx", Reader("samples"), activation_type=QuantType.QUInt8)
"""),
    "sixteen_bits": ("perceptron", """
from PACKAGE import CalibrationDataReader, QuantFormat, QuantType, quantize_static
READER
quantize_static("model.onnx", "quantized.onnx", Reader("samples"), QuantFormat.QDQ, activation_type=QuantType.QUInt16, weight_type=QuantType.QInt8)
"""),
    "dynamic": ("perceptron", """
from PACKAGE import QuantType, quantize_dynamic
quantize_dynamic("model.onnx", "quantized.onnx", weight_type=QuantType.QUInt8)
"""),
    "dynamic_some": ("pair", """
import pathlib
from PACKAGE import quantize_dynamic
quantize_dynamic(pathlib.Path("model.onnx"), pathlib.Path("quantized.onnx"), op_types_to_quantize=["MatMul"], per_channel=True, nodes_to_exclude=["out"])
"""),
    "by_configuration": ("perceptron", """
from PACKAGE import CalibrationDataReader, CalibrationMethod, StaticQuantConfig, quantize
READER
quantize("model.onnx", "quantized.onnx", StaticQuantConfig(Reader("samples"), calibrate_method=CalibrationMethod.MinMax, per_channel=True))
"""),
    "by_qdq_config": ("convolutions", """
from PACKAGE import CalibrationDataReader, QuantType, quantize
from PACKAGE.quantize import get_qdq_config
READER
config = get_qdq_config("model.onnx", Reader("samples"), activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, per_channel=True,
                        nodes_to_exclude=lambda model, node: node.op_type == "MatMul", extra_options={"ForceQuantizeNoInputCheck": True})
assert config.per_channel and config.nodes_to_exclude == ["/head"]
quantize("model.onnx", "quantized.onnx", config)
"""),
    "moving_average": ("perceptron", """
from PACKAGE.calibrate import CalibrationDataReader, CalibrationMethod
from PACKAGE.quant_utils import QuantFormat, QuantType
from PACKAGE.quantize import quantize_static
READER
quantize_static("model.onnx", "quantized.onnx", Reader("samples"), quant_format=QuantFormat.QDQ, activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
                per_channel=False, calibrate_method=CalibrationMethod.MinMax,
                extra_options={"CalibMovingAverage": True, "CalibMovingAverageConstant": 0.01, "CalibTensorRangeSymmetric": True, "ActivationSymmetric": True})
"""),
    "distribution": ("perceptron", """
from PACKAGE import CalibrationDataReader, CalibrationMethod, QuantFormat, quantize_static
READER
quantize_static("model.onnx", "quantized.onnx", Reader("samples"), quant_format=QuantFormat.QDQ, calibrate_method=CalibrationMethod.Distribution)
"""),
    "a_reader_of_parts": ("convolutions", """
from PACKAGE import CalibrationDataReader, QuantFormat, quantize_static
class Reader(CalibrationDataReader):
    def __init__(self):
        self.rows = [dict(np.load(f"samples/{n}")) for n in sorted(os.listdir("samples"))]
        self.at, self.end = 0, len(self.rows)
    def __len__(self):
        return len(self.rows)
    def set_range(self, start_index, end_index):
        self.at, self.end = start_index, end_index
    def get_next(self):
        if self.at >= self.end:
            return None
        self.at += 1
        return self.rows[self.at - 1]
quantize_static("model.onnx", "quantized.onnx", Reader(), quant_format=QuantFormat.QDQ, nodes_to_quantize=["/stem/conv", "/point/conv"],
                extra_options={"CalibStridedMinMax": 32})
"""),
    "external_data": ("perceptron", """
from PACKAGE import CalibrationDataReader, QuantFormat, QuantType, quantize_static
READER
quantize_static("model.onnx", "quantized.onnx", Reader("samples"), quant_format=QuantFormat.QDQ, activation_type=QuantType.QInt16, weight_type=QuantType.QInt8,
                use_external_data_format=True)
"""),
    "four_bits": ("projections", """
from PACKAGE import QuantFormat
from PACKAGE.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer
quant = MatMulNBitsQuantizer(onnx.load("model.onnx"), algo_config=DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=False, accuracy_level=4, quant_format=QuantFormat.QOperator))
quant.process()
quant.model.save_model_to_file("quantized.onnx", True)
"""),
    "eight_bits_but_one": ("projections", """
from PACKAGE.matmul_nbits_quantizer import MatMulNBitsQuantizer
quant = MatMulNBitsQuantizer(onnx.load("model.onnx"), bits=8, block_size=64, is_symmetric=True, nodes_to_exclude=["proj2"])
quant.process()
assert sum(n.op_type == "MatMulNBits" for n in quant.model.model.graph.node) == 2
onnx.save(quant.model.model, "quantized.onnx")
"""),
}

# ---- judging ----


def outputs(path, rows):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return np.concatenate([session.run(None, row)[0] for row in rows]).astype(np.float64)


def sqnr(want, got):
    return 10 * np.log10((want ** 2).sum() / max(((want - got) ** 2).sum(), 1e-30))


def quantized_ops(path):
    """Names of nodes that are quantized, in either form, by the names that both tools keep."""
    graph = onnx.load(path).graph
    made = {o: n for n in graph.node for o in n.output}
    found = set()
    for n in graph.node:
        inner = n.op_type.startswith("QLinear") or n.op_type.endswith("Integer") or n.op_type == "MatMulNBits"
        if inner or (n.op_type in ("Conv", "MatMul", "Gemm") and any(i in made and made[i].op_type == "DequantizeLinear" for i in n.input[:1])):
            found.add(n.name)
    return found


def run(c, name, env):
    kind, text = SCRIPTS[name]
    tools = ["onnxruntime.quantization", "octet.quantization"]
    if "nbits" in text and importlib.util.find_spec("onnx_ir") is None:
        print(f"skipped: {name}: as onnxruntime does it, which needs the package onnx_ir")
        tools = tools[1:]
    with tempfile.TemporaryDirectory(prefix="octet-migration-") as place:
        folder = Path(place)
        model = MODELS[kind]()
        onnx.save(model, folder / "model.onnx")
        (folder / "samples").mkdir()
        for i, row in enumerate(samples(model, 128, 5)):
            np.savez(folder / f"samples/{i:04}.npz", **row)
        rows = samples(model, 256, 6)
        want = outputs(folder / "model.onnx", rows)
        found = {}
        for package in tools:
            script = folder / f"{package.split('.', 1)[0]}_script.py"
            script.write_text(HEAD + text.replace("READER", READER).replace("PACKAGE", package))
            done = subprocess.run([sys.executable, script], cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT, check=False)
            if done.returncode or not (folder / "quantized.onnx").exists():
                c.hold(f"{name}: {package} runs", False, done.stdout + done.stderr)
                return
            found[package] = sqnr(want, outputs(folder / "quantized.onnx", rows)), len(quantized_ops(folder / "quantized.onnx"))
            (folder / "quantized.onnx").unlink()
        (theirs, _), (ours, integer) = found[tools[0]], found["octet.quantization"]
        if len(tools) > 1:
            c.hold(f"{name}: {ours:.1f} dB, not less than {theirs:.1f} dB", ours >= theirs - SLACK, found)
        c.hold(f"{name}: something is quantized", integer > 0 and ours < 120, found)


REFUSED = """
import numpy as np
import octet
from octet.quantization import *
from octet import quantization as q
class Reader(CalibrationDataReader):
    def get_next(self): return None
def refused(word, call):
    try:
        call()
    except octet.Error as e:
        assert e.status == 2 and word in str(e), str(e)
        return
    raise SystemExit(f"{word}: nothing was raised")
for word, options in (("weight-only", {"weight_type": QuantType.QInt4}), ("fp16", {"activation_type": QuantType.QFLOAT8E4M3FN}),
                      ("octet.calibrate", {"calibration_cache_path": "x"}), ("set=", {"extra_options": {"TensorQuantOverrides": {"x": []}}}),
                      ("tensorrt", {"extra_options": {"DedicatedQDQPair": True}}), ("not known", {"extra_options": {"Nonsense": 1}}),
                      ("no samples", {}), ("tensorrt", {"extra_options": {"QuantizeBias": False}})):
    refused(word, lambda: quantize_static("model.onnx", "q.onnx", Reader(), **options))
from octet.quantization import matmul_nbits_quantizer as nbits
for word, call in (("target_bits", lambda: nbits.KQuantWeightOnlyQuantConfig()), ("GPTQ", lambda: nbits.HQQWeightOnlyQuantConfig(block_size=64)),
                   ("samples", lambda: nbits.GPTQWeightOnlyQuantConfig()), ("AWQ", lambda: nbits.NVAWQWeightOnlyQuantConfig("folder")),
                   ("set=", lambda: nbits.RTNWeightOnlyQuantConfig(customized_weight_config={"a": 1})),
                   ("16, 32", lambda: nbits.MatMulNBitsQuantizer("model.onnx", block_size=48).process()),
                   ("4 and 8", lambda: nbits.MatMulNBitsQuantizer("model.onnx", bits=2).process()),
                   ("accuracy_level 2", lambda: nbits.MatMulNBitsQuantizer("model.onnx", accuracy_level=2).process()),
                   ("stored", lambda: nbits.MatMulNBitsQuantizer("model.onnx", channel_wised_quantize=True).process()),
                   ("lie along", lambda: nbits.MatMulNBitsQuantizer("model.onnx", quant_axes=(("Gather", 0),)).process()),
                   ("set=", lambda: q.get_qdq_config("model.onnx", Reader(), tensor_quant_overrides={"x": []}))):
    refused(word, call)
for name in ("create_calibrator", "CalibraterBase", "QDQQuantizer", "write_calibration_table"): # the message says what to call
    try:
        exec(f"from octet.quantization import {name}")
        raise SystemExit(f"{name} is there")
    except ImportError as e:
        assert "octet." in str(e).split(":", 1)[1], str(e)
refused("calibration_data_reader", lambda: quantize_static("model.onnx", "q.onnx", None))
refused("no-such", lambda: quantize_dynamic("model.onnx", "q.onnx", nodes_to_exclude=["no-such"]))
def mistaken(word, call): # what cannot be meant is a TypeError that says so
    try:
        call()
    except TypeError as e:
        assert word in str(e), (word, str(e))
        return
    raise SystemExit(f"{word}: nothing was raised")
def rows():
    for i in range(32):
        yield {"x": np.random.default_rng(i).uniform(-2, 2, (1, 24)).astype("f4")}
mistaken("the class Reader", lambda: quantize_static("model.onnx", "q.onnx", Reader))
mistaken("the function rows", lambda: quantize_static("model.onnx", "q.onnx", rows))
mistaken("model_output is the name", lambda: quantize_static("model.onnx", Reader(), "q.onnx"))
mistaken("model_input is None", lambda: quantize_static(None, "q.onnx", Reader()))
mistaken("nodes_to_exclude is a list", lambda: quantize_static("model.onnx", "q.onnx", Reader(), nodes_to_exclude="fc0"))
mistaken("op_types_to_quantize is a list", lambda: quantize_dynamic("model.onnx", "q.onnx", "MatMul"))
mistaken("op_types_to_quantize is a list", lambda: quantize_static("model.onnx", "q.onnx", Reader(), op_types_to_quantize=(["MatMul", "Gemm"],))) # a comma too many
mistaken("takes no samples", lambda: quantize_dynamic("model.onnx", "q.onnx", Reader()))
mistaken("extra_options is a dictionary", lambda: quantize_static("model.onnx", "q.onnx", Reader(), extra_options=["x"]))
quantize_static("model.onnx", "q.onnx", rows()) # beside readers, what octet.convert takes
quantize_static("model.onnx", "r.onnx", list(rows()))
assert open("q.onnx", "rb").read() == open("r.onnx", "rb").read()
import inspect, onnxruntime, onnxruntime.quantization as theirs
for config in ("StaticQuantConfig", "DynamicQuantConfig"): # theirs do, too
    found = []
    for classes in (q, theirs):
        given = (rows(),) if config == "StaticQuantConfig" else ()
        made = quantize("model.onnx", "r.onnx", getattr(classes, config)(*given, nodes_to_exclude=["fc0"]))
        found.append(open("r.onnx", "rb").read())
        assert [layer.integer for layer in made.layers if layer.op == "Gemm"] == [False, True, True], (config, classes, made.layers)
    assert found[0] == found[1], config
mistaken("no StaticQuantConfig", lambda: quantize("model.onnx", "q.onnx", {"op_types": []}))
from octet.quantization.execution_providers.qnn import get_qnn_qdq_config, qnn_preprocess_model
from onnxruntime.quantization.execution_providers import qnn as their_qnn
for ours, other in ((get_qnn_qdq_config, their_qnn.get_qnn_qdq_config), (qnn_preprocess_model, their_qnn.qnn_preprocess_model)):
    assert [*inspect.signature(ours).parameters] == [*inspect.signature(other).parameters], ours
assert qnn_preprocess_model("model.onnx", "p.onnx", fuse_layernorm=True) is False
asked = {"x": np.stack([row["x"][0] for row in rows()])}
def run(path): return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, asked)[0].astype(float)
for kind, least in ((QuantType.QUInt8, 25), (QuantType.QUInt16, 35)):
    made = quantize("model.onnx", "r.onnx", get_qnn_qdq_config("model.onnx", rows(), activation_type=kind, weight_type=QuantType.QUInt8))
    assert made["target"] == "qnn" and [layer.scheme for layer in made.layers if layer.op == "Gemm"] == ["static"] * 3, (kind, made.layers)
    error = run("r.onnx") - run("model.onnx")
    assert 10 * np.log10((run("model.onnx") ** 2).sum() / (error ** 2).sum()) > least, kind
refused("set=", lambda: get_qnn_qdq_config("model.onnx", rows(), init_overrides={"x": []}))
refused("input_layout", lambda: qnn_preprocess_model("model.onnx", "p.onnx", inputs_to_make_channel_last=["x"]))
import onnx
from octet.quantization.matmul_4bits_quantizer import MatMul4BitsQuantizer # the module of older releases
four = onnx.load("model.onnx")
for node in four.graph.node: # one as MatMul
    if node.name == "fc0":
        node.op_type = "MatMul"
        del node.input[2:]
old = MatMul4BitsQuantizer(four, 16, True, 4)
old.process()
got = [n for n in old.model.model.graph.node if n.op_type == "MatMulNBits"]
attributes = {a.name: a.i for a in got[0].attribute}
assert [n.name for n in got][0] == "fc0" and (attributes["K"], attributes["N"], attributes["bits"], attributes["block_size"], attributes["accuracy_level"]) == (24, 64, 4, 16, 4), got
packed, steps = (onnx.numpy_helper.to_array(t) for name in got[0].input[1:3] for t in old.model.model.graph.initializer if t.name == name)
codes = np.stack([packed & 15, packed >> 4], -1).reshape(64, 2, 16).astype(float) - 8 # symmetric: there are no zero points
weights = (codes * steps.reshape(64, 2, 1)).reshape(64, 32)[:, :24].T
float_weights = next(onnx.numpy_helper.to_array(t) for t in four.graph.initializer if t.name == "w0")
assert np.abs(weights - float_weights).max() <= np.abs(steps).max() and len(got[0].input) == 3, (weights, float_weights)
for name in ("quantize_static", "quantize_dynamic", "quant_pre_process", "quantize", "StaticQuantConfig", "DynamicQuantConfig", "get_qdq_config"):
    wanted = [n for n in inspect.signature(getattr(theirs, name)).parameters]
    ours = [n for n in inspect.signature(getattr(q, name)).parameters]
    assert ours[:len(wanted)] == wanted or set(ours) - set(wanted) == {"calibration_cache_path"}, (name, wanted, ours)
import importlib, subprocess, sys
for module, names in (("calibrate", "CalibrationDataReader CalibrationMethod"), ("quant_utils", "QuantFormat QuantType QuantizationMode"),
                      ("quantize", "quantize quantize_static quantize_dynamic StaticQuantConfig DynamicQuantConfig"),
                      ("shape_inference", "quant_pre_process"), ("preprocess", "quant_pre_process")):
    for name in names.split(): # in the modules where ONNX Runtime has them
        there = importlib.import_module("onnxruntime.quantization." + module)
        assert hasattr(there, name) and getattr(importlib.import_module("octet.quantization." + module), name) is getattr(q, name), (module, name)
for status, given in ((0, "model.onnx"), (3, "none.onnx")):
    done = subprocess.run([sys.executable, "-m", "octet.quantization.preprocess", "--input", given, "--output", "p.onnx", "--skip_optimization", "True", "--auto_merge"],
                          capture_output=True, text=True)
    assert done.returncode == status and ("p.onnx" in done.stdout or "No such file" in done.stderr), done
for name in ("QuantType", "QuantFormat", "CalibrationMethod"):
    assert {e.name: e.value for e in getattr(theirs, name)} == {e.name: e.value for e in getattr(q, name)}, name
import onnx
for name in ("a b,c=d", "x*[1]", "n#1", "/m/fc & op:Gemm", "\u00e4:1", "a;b"): # a name is one node, whatever is in it
    model = onnx.load("model.onnx")
    model.graph.node[0].name = name
    made = quantize_dynamic(model, "q.onnx", nodes_to_exclude=[name])
    assert [layer.scheme for layer in made.layers if layer.op == "Gemm"] == ["float", "dynamic", "dynamic"], (name, made.layers)
assert isinstance(theirs.CalibrationDataReader, type) and issubclass(Reader, CalibrationDataReader)
assert q.quantize_dynamic("model.onnx", "q.onnx", weight_type=theirs.QuantType.QInt8).output == "q.onnx" # their enumerations do, too
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a script; without any, all run")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_intermixed_args()
    c = installed.Count(args.verbose)
    env = dict(os.environ, OCTET_LIBRARY=str(args.build.resolve() / "tools/library/liboctet.so.0"), PYTHONPATH=os.pathsep.join(filter(None, (str(ROOT / "python"), os.environ.get("PYTHONPATH")))))
    for name in args.names or SCRIPTS:
        run(c, name, env)
    if not args.names:
        with tempfile.TemporaryDirectory(prefix="octet-migration-") as folder:
            onnx.save(perceptron(), Path(folder, "model.onnx"))
            done = subprocess.run([sys.executable, "-c", REFUSED], cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT, check=False)
            c.hold("what cannot be done is refused with the way that can", done.returncode == 0, done.stdout + done.stderr)
    return c.finish()


if __name__ == "__main__":
    sys.exit(main())
