#!/usr/bin/env python3
"""What lib/twins computes of .tflite files, against the runtimes themselves: LiteRT with XNNPACK's kernels and with its reference kernels,
and tflite-micro where it is installed. Every tensor that a runtime shows is compared byte by byte.

    tests/checks/check_twins.py [--qconvert PROGRAM] [--values PROGRAM] [--whole] [--only WORD] [-v]

- layers: those of check_tflite.py, as qconvert writes them
- operators: files of one operator on int8, made here, with scales and shapes by chance, also of operators that qconvert does not write
- products: files of one layer whose sums lie beside the places where roundings differ
- networks: made ones; trained ones, where there are any
- qeval --as, and the layers that it names; what twins refuse

Operators on float32 have the runtime's order of sums and its elementary functions: they and what follows from them are not held to the bit,
but for moves, QUANTIZE and DEQUANTIZE. --whole: 1,000 samples each, in place of few.

Needs Python packages (ai_edge_litert among them): runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
packages.need("numpy", "onnx", "onnxruntime", "ai_edge_litert")
import check_tflite
import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from pylib import judge, plainnet, tool
from pylib.devicenets import MADE, WIDE, Made
from pylib.judge import Checker, options

TYPES = {schema.TensorType.FLOAT32: np.float32, schema.TensorType.INT32: np.int32, schema.TensorType.INT64: np.int64,
         schema.TensorType.INT8: np.int8, schema.TensorType.UINT8: np.uint8, schema.TensorType.BOOL: np.bool_, schema.TensorType.INT16: np.int16}
CODES = {v: k for k, v in vars(schema.BuiltinOperator).items() if not k.startswith("_")}
# Operators whose results on float32 are the same everywhere, because they round nothing or once.
EXACT_ON_REALS = {"QUANTIZE", "DEQUANTIZE", "RESHAPE", "TRANSPOSE", "CONCATENATION", "SPLIT", "SPLIT_V", "SLICE", "STRIDED_SLICE", "PAD", "PADV2",
                  "MIRROR_PAD", "GATHER", "DEPTH_TO_SPACE", "SPACE_TO_DEPTH", "RESIZE_NEAREST_NEIGHBOR", "RELU", "RELU6", "RELU_N1_TO_1", "MAXIMUM",
                  "MINIMUM", "ABS", "NEG", "ADD", "SUB", "MUL", "DIV", "LEAKY_RELU", "PRELU"}


# Networks that few seconds suffice for.
FEW = ["ad01_autoencoder", "kws_dscnn", "mnist_cnn", "resnet8_cifar10", "vww_mobilenet_96", "mobilenet_v1_025_224"]
# Operators that twins refuse; on integers of 8 bits LOG_SOFTMAX alone.
NOT_THERE = {"LOG_SOFTMAX", "MEAN", "SUM", "REDUCE_MAX", "POW"}
NOT_IN_TOSA = {"GELU", "LOG", "ABS"}


# ---- files ----

class File:
    """A .tflite file: its bytes, tensors and operators."""

    def __init__(self, data):
        self.data = data
        self.model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
        self.graph = self.model.subgraphs[0]

    def code(self, op):
        return CODES[self.model.operatorCodes[op.opcodeIndex].builtinCode]

    def is_constant(self, i):
        return self.model.buffers[self.graph.tensors[i].buffer].data is not None

    def shape(self, i):
        t = self.graph.tensors[i]
        return [] if t.shape is None else [int(n) for n in t.shape]

    def type(self, i):
        return np.dtype(TYPES[self.graph.tensors[i].type])

    def made(self):
        """Tensors that operators make of what is given: XNNPACK unpacks constants by itself, and shows nothing of it."""
        known = {i for i in range(len(self.graph.tensors)) if self.is_constant(i)} | {-1}
        for op in self.graph.operators:
            if known.issuperset(op.inputs):
                known.update(op.outputs)
        return list(dict.fromkeys(t for op in self.graph.operators for t in op.outputs if t not in known))

    def showing_all(self):
        """The same file with everything that operators make as outputs: XNNPACK shows nothing else."""
        other = File(self.data)
        other.graph.outputs = list(dict.fromkeys([*other.graph.outputs, *other.made()]))
        other.model.signatureDefs = None
        return packed(other.model)

    def samples(self, n, rng, given=None):
        """n lists of arrays, one for each input."""
        return [[self.sample(i, k, rng, given) for i in self.graph.inputs] for k in range(n)]

    def sample(self, i, k, rng, given):
        shape, kind = self.shape(i), self.type(i)
        if given is not None and kind == np.float32 and given[0].size == np.prod(shape):
            x = given[k % len(given)]
            if list(x.shape) != shape[1:]:
                x = np.moveaxis(x, 0, -1)
            return np.ascontiguousarray(x.reshape(shape), np.float32)
        if kind == np.float32:
            return (rng.standard_normal(shape) * rng.choice([0.5, 1, 2])).astype(np.float32)
        if kind == np.int16:
            return rng.integers(-32768, 32768, shape).astype(kind)
        return rng.integers(-128 if kind == np.int8 else 0, 128, shape).astype(kind)


def packed(model):
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


# ---- runtimes ----

def run_litert(file, samples, reference):
    if reference:
        run = Interpreter(model_content=file.data, experimental_op_resolver_type=OpResolverType.BUILTIN_REF, experimental_preserve_all_tensors=True)
    else:
        run = Interpreter(model_content=file.showing_all())
    run.allocate_tensors()
    for sample in samples:
        run.reset_all_variables()
        for i, x in zip(file.graph.inputs, sample, strict=True):
            run.set_tensor(i, x)
        run.invoke()
        yield {i: run.get_tensor(i).copy() for i in file.made()}


def run_micro(file, samples):
    from tflite_micro.python.tflite_micro import runtime
    run = runtime.Interpreter.from_bytes(file.data, arena_size=64 << 20, intrepreter_config=runtime.InterpreterConfig.kPreserveAllTensors)
    for sample in samples:
        run.reset()
        for k, x in enumerate(sample):
            run.set_input(x, k)
        run.invoke()
        yield {i: np.array(run.GetTensor(i, 0)["tensor_data"]) for i in file.made()}


def tosa_graph(shown):
    """What the converter makes of a file: TOSA's binary, and for each output the value that it is."""
    def run(*words):
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode or re.search("error|UNPREDICTABLE", done.stdout + done.stderr):
            raise RuntimeError((done.stdout + done.stderr)[-300:])

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "m.tflite").write_bytes(packed(shown.model))
        run(TOSA[0], "m.tflite", "--text", "-o", "m.mlir")
        run(TOSA[1], "m.mlir", "--tosa-serialize", "--tosa-flatbuffer-filename=m.tosa", "-o", os.devnull)
        values = re.findall(r"^ *return (.*) : ", (Path(folder) / "m.mlir").read_text(), re.MULTILINE)[-1].split(", ")
        return (Path(folder) / "m.tosa").read_bytes(), values


def run_tosa(file, samples):
    """TOSA's reference model on what the converter makes of the file, with all that operators make as outputs."""
    import tosa_reference_model as reference
    shown = File(file.showing_all())
    for t in shown.graph.tensors:
        t.shapeSignature = None
    every = shown.graph.outputs
    graph, values = tosa_graph(shown)
    if len(set(values)) < len(values):  # what is computed twice is one value, and the serializer mistakes outputs that are the same one
        first = {v: t for t, v in reversed(list(zip(every, values, strict=True)))}
        shown.graph.outputs = list(first.values())
        graph, once = tosa_graph(shown)
        if len(set(once)) < len(once):
            raise RuntimeError("outputs of the converter are the same value")
    else:
        first = dict(zip(values, every, strict=True))
    for sample in samples:
        made, status = reference.run(graph, sample)
        if status != reference.GraphStatus.TOSA_VALID or len(made) != len(shown.graph.outputs):
            raise RuntimeError(f"the reference model says {status.name}, with {len(made)} of {len(shown.graph.outputs)} outputs")
        of = dict(zip(shown.graph.outputs, made, strict=True))
        yield {t: of[first[v]].astype(file.type(t)) for t, v in zip(every, values, strict=True)}


RUNTIMES = {"litert": lambda f, s: run_litert(f, s, False), "litert-reference": lambda f, s: run_litert(f, s, True)}
if packages.has("tflite_micro"):
    RUNTIMES["tflm"] = run_micro
MISSING = {"tflm": "tflite-micro", "tosa": "the converter, or the reference model, of TOSA"}
TOSA = [tool.beside(name) for name in ("tosa-converter-for-tflite", "tosa-opt")]
if all(TOSA) and packages.has("tosa_reference_model"):
    RUNTIMES["tosa"] = run_tosa


def run_twin(c, twin, file, samples):
    """The same from our twin; a text where it refuses."""
    (c.folder / "model.tflite").write_bytes(file.data)
    (c.folder / "in").write_bytes(b"".join(x.tobytes() for s in samples for x in s))
    done = subprocess.run([c.values, twin, c.folder / "model.tflite", c.folder / "in", c.folder / "out"], capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip()
    raw, at, all_ = (c.folder / "out").read_bytes(), 0, []
    for _ in samples:
        one = {}
        for i in range(len(file.graph.tensors)):
            if not file.is_constant(i):
                shape, kind = file.shape(i), file.type(i)
                count = int(np.prod(shape))
                one[i] = np.frombuffer(raw, kind, count, at).reshape(shape)
                at += count * kind.itemsize
        all_.append(one)
    return all_ if at == len(raw) else f"{len(raw)} bytes for {at}"


# ---- comparison ----

class Compared:
    """What was compared with a runtime."""

    def __init__(self):
        self.files, self.operators, self.bytes = {}, set(), 0

    def add(self, kind, name, operators, count):
        self.files.setdefault(kind, set()).add(name.partition(" #")[0])
        self.operators |= operators
        self.bytes += count

    def text(self):
        files = "".join(f"{len(names)} {kind}, " for kind, names in self.files.items())
        return f"{files}{len(self.operators)} operators, {self.bytes} bytes compared"


def loose(file):
    """Tensors that are not held to the bit: made of reals in the runtime's own way, or following from those."""
    found = set()
    for op in file.graph.operators:
        real = file.type(op.outputs[0]) == np.float32 and file.code(op) not in EXACT_ON_REALS
        if real or any(i in found for i in op.inputs):
            found.update(op.outputs)
    return found


REALS = 1e-4  # of the largest value: by how much tensors of float32 may differ


def close(file):
    """Tensors of float32 that are held to rounding: those made of reals, as long as no integers follow from such reals before them."""
    made, exact = {}, loose(file)
    for op in file.graph.operators:
        whole = file.type(op.outputs[0]) != np.float32 and any(i in exact for i in op.inputs)
        for i in op.outputs:
            made[i] = whole or any(made.get(k, False) for k in op.inputs)
    return [i for i, moved in made.items() if not moved and i in exact and file.type(i) == np.float32]


def refuses(runtime, file, samples):
    """Whether the runtime itself does not take the file."""
    try:
        list(RUNTIMES[runtime](file, samples[:1]))
    except (RuntimeError, ValueError):
        return True
    return False


def difference(c, twin, file, samples):
    """(bytes that differ, of how many, the largest difference of an element, the same of reals as a part of the largest) between a runtime and
    its twin; a text where the twin refuses. RuntimeError or ValueError where the runtime does."""
    got = run_twin(c, twin, file, samples)
    if isinstance(got, str):
        return got
    spared, reals = loose(file), close(file)
    differ, compared, worst, apart = 0, 0, 0.0, 0.0
    for want, have in zip(RUNTIMES[twin](file, samples), got, strict=True):
        for i in file.made():
            if i in spared:
                continue
            a, b = want[i].reshape(have[i].shape), have[i]
            wrong = np.frombuffer(a.tobytes(), np.uint8) != np.frombuffer(b.tobytes(), np.uint8)
            compared += wrong.size
            if wrong.any():
                differ += int(wrong.sum())
                worst = max(worst, float(np.abs(a.astype(np.float64) - b).max()))
        for i in reals:
            a, b = want[i].reshape(have[i].shape), have[i]
            apart = max(apart, float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-6)))
    return differ, compared, worst, apart


def hold_equal(c, kind, name, file, samples):
    """Each runtime and its twin. tflite-micro does not have all operators: what it refuses is not compared. kind: what the file is, for the counts."""
    spared = loose(file)
    makers = {t: file.code(op) for op in file.graph.operators for t in op.outputs}
    for twin in RUNTIMES:
        try:
            found = difference(c, twin, file, samples)
        except (RuntimeError, ValueError) as e:
            if twin == "litert":
                c.hold(f"{name}: {twin}", False, str(e)[-300:])
            continue
        if isinstance(found, str):
            lacks = sorted({k for k in makers.values() if f": {k} that" in found and (k in NOT_THERE or (twin == "tosa" and k in NOT_IN_TOSA))})
            if not lacks and refuses(twin, file, samples):
                continue
            c.hold(f"{name}: {twin}", lacks, found[-300:])
            c.lacking.update(lacks)
            continue
        differ, compared, worst, apart = found
        if compared:
            c.compared[twin].add(kind, name, {makers[i] for i in makers if i not in spared}, compared)
        c.hold(f"{name}: {twin}", differ == 0 and apart < REALS, f"{differ} of {compared} bytes, at most {worst:g} apart; reals {apart:.2g} of the largest")


def hold_layers(c, only):
    for number, (name, (case, _)) in enumerate(check_tflite.LAYERS.items()):
        if only and only not in name:
            continue
        shape, build = case
        net = plainnet.Net(number, opset=17 if name == "layer norm" else 14)
        build(net)
        model, data, out = c.folder / "layer.onnx", c.folder / "samples.npy", c.folder / "layer.tflite"
        np.save(data, np.stack(net.save(model, ("n", *shape[1:]))))
        check_tflite.write(c, model, out, "--data", data)
        file = File(out.read_bytes())
        hold_equal(c, "layers", name, file, file.samples(c.samples, np.random.default_rng(number)))


# ---- files of one operator ----

class Maker:
    """A file of one operator on int8, with scales by chance."""

    def __init__(self, rng):
        self.rng, self.tensors, self.buffers = rng, [], [schema.BufferT()]

    def scale(self):
        return float(np.float32(self.rng.uniform(0.004, 0.09)))

    def tensor(self, shape, scale=None, zero=0, kind=np.int8, data=None):
        t = schema.TensorT()
        t.shape, t.name = list(shape), f"t{len(self.tensors)}"
        t.type = next(k for k, v in TYPES.items() if v == kind)
        if scale is not None:
            t.quantization = schema.QuantizationParametersT()
            t.quantization.scale, t.quantization.zeroPoint = [float(scale)], [int(zero)]
        t.buffer = 0
        if data is not None:
            t.buffer = len(self.buffers)
            self.buffers.append(schema.BufferT())
            self.buffers[-1].data = list(np.frombuffer(np.asarray(data, kind).tobytes(), np.uint8))
        self.tensors.append(t)
        return len(self.tensors) - 1

    def activation(self, shape, like=None):
        if like is not None:
            q = self.tensors[like].quantization
            return self.tensor(shape, q.scale[0], q.zeroPoint[0])
        return self.tensor(shape, self.scale(), self.rng.integers(-128, 128))

    def file(self, code, ins, out, option=None, version=2):
        model, graph, op, oc = schema.ModelT(), schema.SubGraphT(), schema.OperatorT(), schema.OperatorCodeT()
        oc.builtinCode = getattr(schema.BuiltinOperator, code)
        oc.deprecatedBuiltinCode, oc.version = min(oc.builtinCode, 127), version
        op.opcodeIndex, op.inputs, op.outputs = 0, ins, [out]
        if option is not None:
            op.builtinOptions = option
            op.builtinOptionsType = getattr(schema.BuiltinOptions, type(option).__name__[:-1])
        graph.tensors, graph.operators = self.tensors, [op]
        graph.inputs, graph.outputs = [i for i in dict.fromkeys(ins) if self.tensors[i].buffer == 0], [out]
        model.version, model.operatorCodes, model.subgraphs, model.buffers = 3, [oc], [graph], self.buffers
        return File(packed(model))


def with_options(kind, **values):
    option = kind()
    for key, value in values.items():
        setattr(option, key, value)
    return option


def one_operators():
    """(name, function that makes a file from a generator)"""
    def unary(code, fixed=None, like=False, option=None, version=1, shape=(1, 3, 5, 7)):
        def make(rng):
            m = Maker(rng)
            x = m.activation(shape)
            y = m.activation(shape, x if like else None) if fixed is None else m.tensor(shape, *fixed)
            return m.file(code, [x], y, option(rng) if option else None, version)
        return make

    def binary(code, kind, other=(1, 3, 5, 7), like=False, version=2, activations=(0,)):
        def make(rng):
            m = Maker(rng)
            a = m.activation((1, 3, 5, 7))
            b = m.activation(other, a if like else None)
            y = m.activation((1, 3, 5, 7), a if like else None)
            option = kind() if kind else None
            if option is not None and hasattr(option, "fusedActivationFunction"):
                option.fusedActivationFunction = int(rng.choice(activations))
            return m.file(code, [a, b], y, option, version)
        return make

    def reduced(code, axes, keep, like, version=2, shape=(1, 5, 6, 7)):
        def make(rng):
            m = Maker(rng)
            x = m.activation(shape)
            out = [1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes]
            y = m.activation(out, x if like else None)
            return m.file(code, [x, m.tensor([len(axes)], kind=np.int32, data=axes)], y, with_options(schema.ReducerOptionsT, keepDims=keep), version)
        return make

    def pooled(code, **values):
        def make(rng):
            m = Maker(rng)
            x = m.activation((1, 9, 8, 5))
            option = with_options(schema.Pool2DOptionsT, fusedActivationFunction=int(rng.choice([0, 1, 3])), **values)
            step = (values["strideH"], values["strideW"])
            window = (values["filterHeight"], values["filterWidth"])
            out = [-(-n // s) if values["padding"] == 0 else (n - w) // s + 1 for n, s, w in zip((9, 8), step, window, strict=True)]
            return m.file(code, [x], m.activation((1, *out, 5), x), option)
        return make

    def matrices(zero):
        def make(rng):
            m, (rows, inner, columns), turned = Maker(rng), (int(n) for n in rng.integers(20, 40, 3)), bool(rng.integers(2))
            x = m.activation((2, rows, inner))
            y = m.tensor((2, columns, inner) if turned else (1, inner, columns), m.scale(), 0 if zero else int(rng.integers(1, 128)))
            of_x, of_y = (m.tensors[t].quantization.scale[0] for t in (x, y))
            out = m.tensor((2, rows, columns), float(of_x * of_y * inner ** 0.5 * rng.uniform(20, 100)), int(rng.integers(-50, 50)))
            return m.file("BATCH_MATMUL", [x, y], out, with_options(schema.BatchMatMulOptionsT, adjX=False, adjY=turned))
        return make

    yield "hard swish", unary("HARD_SWISH", option=lambda _: schema.HardSwishOptionsT())
    yield "logistic", unary("LOGISTIC", (1 / 256, -128), version=2)
    yield "tanh", unary("TANH", (1 / 128, 0), version=2)
    yield "leaky", unary("LEAKY_RELU", option=lambda rng: with_options(schema.LeakyReluOptionsT, alpha=float(rng.uniform(0.01, 0.9))), version=2)
    yield "relu", unary("RELU", version=2)
    yield "relu6", unary("RELU6", version=2)
    yield "abs", unary("ABS", option=lambda _: schema.AbsOptionsT())
    yield "abs, same scale", unary("ABS", option=lambda _: schema.AbsOptionsT(), like=True)
    yield "elu", unary("ELU", version=1)
    yield "gelu", unary("GELU", option=lambda rng: with_options(schema.GeluOptionsT, approximate=bool(rng.integers(2))))
    yield "exp", unary("EXP", option=lambda _: schema.ExpOptionsT())
    yield "log", unary("LOG")
    yield "quantize", unary("QUANTIZE", option=lambda _: schema.QuantizeOptionsT(), version=2)
    yield "softmax", unary("SOFTMAX", (1 / 256, -128), option=lambda _: with_options(schema.SoftmaxOptionsT, beta=1.0), version=2, shape=(3, 19))
    for code, kind in (("ADD", schema.AddOptionsT), ("SUB", schema.SubOptionsT), ("MUL", schema.MulOptionsT)):
        yield code.lower(), binary(code, kind, activations=(0, 1, 3))
        yield code.lower() + " by row", binary(code, kind, other=(1, 1, 1, 7))
        yield code.lower() + " by column", binary(code, kind, other=(1, 3, 5, 1))
    yield "prelu by channel", binary("PRELU", None, other=(1, 1, 7), version=1)
    yield "prelu of one", binary("PRELU", None, other=(1, 1, 1), version=1)
    yield "prelu of each", binary("PRELU", None, other=(3, 5, 7), version=1)
    yield "maximum", binary("MAXIMUM", schema.MaximumMinimumOptionsT, like=True)
    yield "minimum", binary("MINIMUM", schema.MaximumMinimumOptionsT, like=True, other=(1, 1, 1, 7))
    yield "mean of pictures", reduced("MEAN", [1, 2], True, False)
    yield "mean, flat", reduced("MEAN", [1, 2], False, False)
    yield "mean of channels", reduced("MEAN", [3], True, False)
    yield "mean, same scale", reduced("MEAN", [1, 2], True, True)
    yield "largest", reduced("REDUCE_MAX", [1, 2], True, True)
    yield "least", reduced("REDUCE_MIN", [3], False, True)
    for code in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        yield code.lower(), pooled(code, padding=0, strideW=2, strideH=1, filterWidth=3, filterHeight=2)
        yield code.lower() + " valid", pooled(code, padding=1, strideW=1, strideH=2, filterWidth=2, filterHeight=4)


    yield "matrices", matrices(False)
    yield "matrices without a zero point", matrices(True)


def lstms():
    """(name, function that makes a file of an LSTM from a generator)"""
    def make(rng, major, cell, wide):
        m = Maker(rng)
        steps, batch, inside, units = (int(rng.integers(1, n)) for n in (12, 4, 9, 12))
        shape = (steps, batch) if major else (batch, steps)
        x = m.activation((*shape, inside))
        of_x, of_y, zero = np.float32(m.tensors[x].quantization.scale[0]), float(rng.uniform(1 / 300, 1 / 90)), int(rng.integers(-40, 40))
        of_w = [np.float32(rng.uniform(0.002, wide)) for _ in range(8)]
        weights = [m.tensor((units, inside if k < 4 else units), of_w[k], 0, data=rng.integers(-127, 128, (units, inside if k < 4 else units))) for k in range(8)]
        biases = [m.tensor((units,), of_x * of_w[k], 0, np.int32, rng.integers(-4000, 4000, units)) for k in range(4)]
        state, cells = m.tensor((batch, units), of_y, zero), m.tensor((batch, units), 2.0 ** cell, 0, np.int16)
        m.tensors[state].isVariable = m.tensors[cells].isVariable = True
        y = m.tensor((*shape, units), of_y, zero)
        within = [m.tensor((0,), 2.0 ** -12, 0, np.int16) for _ in range(4)] + [m.tensor((0,), of_y, zero)]
        option = with_options(schema.UnidirectionalSequenceLSTMOptionsT, fusedActivationFunction=4, timeMajor=major)
        file = m.file("UNIDIRECTIONAL_SEQUENCE_LSTM", [x, *weights, -1, -1, -1, *biases, -1, -1, state, cells, -1, -1, -1, -1], y, option, 1)
        file.graph.inputs, file.graph.operators[0].intermediates = [x], within
        return File(packed(file.model))

    for cell in range(-15, -8):
        yield f"lstm, cells of 2^{cell}", lambda rng, cell=cell: make(rng, True, cell, 0.02)
    yield "lstm, sequences in front", lambda rng: make(rng, False, -11, 0.02)
    yield "lstm, sums that saturate", lambda rng: make(rng, True, -11, 0.3)


def wide_operators():
    """(name, function that makes a file from a generator): the same on int16, whose zero points are 0."""
    def scale(rng):
        return float(np.float32(10 ** rng.uniform(-5, -3)))

    def unary(code, fixed=None, option=None, version=3, shape=(1, 3, 5, 7), kind=np.int16):
        def make(rng):
            m = Maker(rng)
            x = m.tensor(shape, None if kind == np.float32 else scale(rng), 0, kind)
            y = m.tensor(shape, fixed or scale(rng), 0, np.int16)
            return m.file(code, [x], y, option(rng) if option else None, version)
        return make

    def binary(code, kind, other=(1, 3, 5, 7), version=3, activations=(0,), **values):
        def make(rng):
            m = Maker(rng)
            a, b = (m.tensor(s, scale(rng), 0, np.int16) for s in ((1, 3, 5, 7), other))
            of_a, of_b = (m.tensors[t].quantization.scale[0] for t in (a, b))
            of_y = of_a * of_b * 10 ** rng.uniform(3, 5) if code == "MUL" else (of_a + of_b) * rng.uniform(0.5, 2)
            y = m.tensor((1, 3, 5, 7), float(np.float32(of_y)), 0, np.int16)
            return m.file(code, [a, b], y, with_options(kind, fusedActivationFunction=int(rng.choice(activations)), **values), version)
        return make

    def pooled(code, **values):
        def make(rng):
            m = Maker(rng)
            of_x = scale(rng)
            x = m.tensor((1, 9, 8, 5), of_x, 0, np.int16)
            step = (values["strideH"], values["strideW"])
            y = m.tensor((1, *(-(-n // s) for n, s in zip((9, 8), step, strict=True)), 5), of_x, 0, np.int16)
            return m.file(code, [x], y, with_options(schema.Pool2DOptionsT, fusedActivationFunction=int(rng.choice([0, 1, 3])), **values), 3)
        return make

    def product(code, each):
        def make(rng):
            m = Maker(rng)
            of_x, n, inside = scale(rng), int(rng.integers(2, 9)), int(rng.integers(1, 40))
            shape, wanted, out = {"FULLY_CONNECTED": ([3, inside], [n, inside], [3, n]), "CONV_2D": ([2, 7, 6, inside], [n, 3, 2, inside], [2, 5, 5, n]),
                                  "DEPTHWISE_CONV_2D": ([2, 7, 6, n], [1, 3, 2, n], [2, 5, 5, n])}[code]
            x = m.tensor(shape, of_x, 0, np.int16)
            of_w = np.float32(rng.uniform(0.001, 0.02, n if each else 1))
            w = m.tensor(wanted, of_w[0], 0, data=rng.integers(-127, 128, wanted))
            b = m.tensor([n], of_x * of_w[0], 0, np.int64, rng.integers(-2 ** 20, 2 ** 20, n))
            for t, of in ((w, of_w), (b, of_w * np.float32(of_x))) if each else ():
                q = m.tensors[t].quantization
                q.scale, q.zeroPoint, q.quantizedDimension = [float(s) for s in of], [0] * n, 3 if t == w and code == "DEPTHWISE_CONV_2D" else 0
            many = np.prod(wanted) / n
            y = m.tensor(out, float(np.float32(of_x * of_w[0] * 70 * many ** 0.5)), 0, np.int16)
            kind, version = {"FULLY_CONNECTED": (schema.FullyConnectedOptionsT, 7), "CONV_2D": (schema.Conv2DOptionsT, 4),
                             "DEPTHWISE_CONV_2D": (schema.DepthwiseConv2DOptionsT, 5)}[code]
            window = {} if code == "FULLY_CONNECTED" else {"strideW": 1, "strideH": 1, "padding": 1}
            option = with_options(kind, fusedActivationFunction=int(rng.choice([0, 1, 3])), **window, **({"depthMultiplier": 1} if code.startswith("DEPTH") else {}))
            return m.file(code, [x, w, b], y, option, version)
        return make

    yield "wide logistic", unary("LOGISTIC", 2.0 ** -15)
    yield "wide tanh", unary("TANH", 2.0 ** -15)
    yield "wide softmax", unary("SOFTMAX", 2.0 ** -15, option=lambda _: with_options(schema.SoftmaxOptionsT, beta=1.0), shape=(3, 19))
    yield "wide quantize", unary("QUANTIZE", option=lambda _: schema.QuantizeOptionsT(), version=2)
    yield "wide quantize, reals", unary("QUANTIZE", None, lambda _: schema.QuantizeOptionsT(), 2, kind=np.float32)
    yield "wide quantize, ties", unary("QUANTIZE", 2.0 ** -13, lambda _: schema.QuantizeOptionsT(), 2, kind=np.float32)
    def mean(axes):
        def make(rng):
            m, shape = Maker(rng), (1, 5, 6, 7)
            x = m.tensor(shape, scale(rng), 0, np.int16)
            y = m.tensor([1 if i in axes else n for i, n in enumerate(shape)], float(m.tensors[x].quantization.scale[0] * rng.uniform(0.2, 2)), 0, np.int16)
            return m.file("MEAN", [x, m.tensor([len(axes)], kind=np.int32, data=axes)], y, with_options(schema.ReducerOptionsT, keepDims=True), 3)
        return make

    def requantized(wide, narrow):
        def make(rng):
            m, of = Maker(rng), scale(rng)
            ends = [(of, 0, np.int16), (float(of * rng.uniform(100, 300)), int(rng.integers(-99, 99)), np.int8)]
            x, y = (m.tensor((1, 3, 5, 7), *ends[k]) for k in ((1, 0) if narrow else (0, 1)))
            return m.file("QUANTIZE", [x], y, schema.QuantizeOptionsT(), 2)
        return make

    yield "wide mean of pictures", mean([1, 2])
    yield "wide mean of rows", mean([2])
    yield "wide mean of channels", mean([3])
    yield "quantize to 8 bits", requantized(True, False)
    yield "quantize to 16 bits", requantized(True, True)
    for code, kind in (("ADD", schema.AddOptionsT), ("SUB", schema.SubOptionsT)):
        yield "wide " + code.lower(), binary(code, kind, activations=(0, 1, 3), potScaleInt16=False)
        yield f"wide {code.lower()} by row", binary(code, kind, other=(1, 1, 1, 7), potScaleInt16=False)
    yield "wide mul", binary("MUL", schema.MulOptionsT, version=4, activations=(0, 1, 3))
    for code in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        yield f"wide {code.lower()}", pooled(code, padding=0, strideW=2, strideH=1, filterWidth=3, filterHeight=2)
    for code in ("FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D"):
        yield f"wide {code.lower()}", product(code, False)
        if code != "FULLY_CONNECTED":
            yield f"wide {code.lower()}, a scale each", product(code, True)


def hold_operators(c, only):
    for number, (name, make) in enumerate([*one_operators(), *lstms(), *wide_operators()]):
        if only and only not in name:
            continue
        for turn in range(c.turns):
            rng = np.random.default_rng(1000 * number + turn)
            file = make(rng)
            hold_equal(c, "files of one operator", f"{name} #{turn}", file, file.samples(c.samples, rng))


# ---- products ----

def sums_beside_ties(factor):
    """Sums that times the factor lie beside a half, where ways to round differ: by the factor's last bits, or by rounding twice."""
    near = np.rint((np.arange(-120, 120) + 0.5) / factor)
    return np.unique(near[:, None] + np.arange(-3, 4)).astype(np.int32)


def one_products():
    """(name, function that makes a file from a generator): layers whose biases are such sums, on inputs that mean 0."""
    def product(code, option, version, each):
        def make(rng):
            m = Maker(rng)
            x = m.tensor([1, 1] if code == "FULLY_CONNECTED" else [1, 1, 1, 1], rng.uniform(0.004, 0.09), int(rng.integers(-128, 128)))
            of_x = np.float32(m.tensors[x].quantization.scale[0])
            of_w = np.float32(rng.uniform(0.001, 0.02))
            of_y = np.float32(float(of_x) * float(of_w) * 10 ** rng.uniform(2, 6))  # beyond 2^28, LiteRT's reference kernels round dense layers otherwise
            sums = sums_beside_ties(float(of_x) * float(of_w) / float(of_y))
            n = len(sums)
            shape = {"FULLY_CONNECTED": [n, 1], "CONV_2D": [n, 1, 1, 1], "DEPTHWISE_CONV_2D": [1, 1, 1, n], "TRANSPOSE_CONV": [n, 1, 1, 1]}[code]
            w = m.tensor(shape, of_w, 0, data=np.ones(shape))
            b = m.tensor([n], of_x * of_w, 0, np.int32, sums)
            for t in (w, b) if each else ():
                q = m.tensors[t].quantization
                q.scale, q.zeroPoint, q.quantizedDimension = q.scale * n, q.zeroPoint * n, 3 if t == w and code == "DEPTHWISE_CONV_2D" else 0
            out = [1, n] if code == "FULLY_CONNECTED" else [1, 1, 1, n]
            y = m.tensor(out, of_y, int(rng.integers(-8, 9)))
            ins = [m.tensor([4], kind=np.int32, data=out), w, x, b] if code == "TRANSPOSE_CONV" else [x, w, b]
            return m.file(code, ins, y, option(n), version)
        return make

    def wide_dense(rng):
        """Sums that a factor of float64 rounds otherwise than one of 31 bits."""
        m = Maker(rng)
        of_x, of_w = np.float32(10 ** rng.uniform(-5, -3)), np.float32(rng.uniform(0.001, 0.02))
        of_y = np.float32(float(of_x) * float(of_w) * 10 ** rng.uniform(2, 4))
        factor = float(of_x) * float(of_w) / float(of_y)
        near = np.rint((np.arange(-32000, 32000) + 0.5) / factor).astype(np.int64)
        mantissa, shift = np.frexp(factor)
        fixed = [(int(v) * round(float(mantissa) * 2**31) + (1 << (30 - int(shift)))) >> (31 - int(shift)) for v in near]
        sums = near[np.floor(near * factor + 0.5) != fixed][:4000]
        sums = sums if len(sums) else near[:10]
        n = len(sums)
        ins = [m.tensor([1, 1], of_x, 0, np.int16), m.tensor([n, 1], of_w, 0, np.int8, np.ones((n, 1))), m.tensor([n], of_x * of_w, 0, np.int64, sums)]
        return m.file("FULLY_CONNECTED", ins, m.tensor([1, n], of_y, 0, np.int16), with_options(schema.FullyConnectedOptionsT), 7)

    layers = {
        "FULLY_CONNECTED": (lambda _: schema.FullyConnectedOptionsT(), 4),
        "CONV_2D": (lambda _: with_options(schema.Conv2DOptionsT, strideW=1, strideH=1), 3),
        "DEPTHWISE_CONV_2D": (lambda n: with_options(schema.DepthwiseConv2DOptionsT, strideW=1, strideH=1, depthMultiplier=n), 3),
        "TRANSPOSE_CONV": (lambda _: with_options(schema.TransposeConvOptionsT, strideW=1, strideH=1), 3),
    }
    yield "fully_connected on int16", wide_dense
    for code, (option, version) in layers.items():
        yield code.lower(), product(code, option, version, False)
        yield f"{code.lower()}, a scale each", product(code, option, version, True)


def hold_products(c, only):
    for number, (name, make) in enumerate(one_products()):
        if only and only not in name:
            continue
        for turn in range(4 * c.turns):
            file = make(np.random.default_rng(1000 * number + turn))
            x = file.graph.inputs[0]
            zero = file.graph.tensors[x].quantization.zeroPoint[0]
            hold_equal(c, "files of one product", f"{name} #{turn}", file, [[np.full(file.shape(x), zero, file.type(x))]])


# ---- networks ----

def written_network(c, name, *more):
    """The samples of a network, which is written as net.tflite; None where there is no such network."""
    if name in MADE:
        model = c.folder / "made.onnx"
        net, shape = MADE[name]()
        samples = net.save(model, ("n", *shape))
    else:
        model = tool.SHARED / "models" / f"{name}.onnx"
        if not model.exists():
            return None
        samples = check_tflite.network_samples(model, name)
    data = c.folder / "samples.npy"
    np.save(data, np.stack(samples))
    check_tflite.write(c, model, c.folder / "net.tflite", "--data", data, *more)
    return samples


def varied(file, samples, begin, n):
    """n samples of a network from the begin-th on: those that there are, then the same with noise."""
    rng = np.random.default_rng(begin)
    chosen = [samples[k % len(samples)] for k in range(begin, begin + n)]
    noisy = [x if k < len(samples) else x + rng.normal(0, 0.05 * (x.std() or 1), x.shape).astype(np.float32) for k, x in enumerate(chosen, begin)]
    return file.samples(n, rng, noisy)


def hold_network(c, name, *more):
    samples = written_network(c, name, *more)
    if samples is None:
        return
    file = File((c.folder / "net.tflite").read_bytes())
    for begin in range(0, c.networks, 10):
        hold_equal(c, "networks on int16" if more else "networks", f"{name} {' '.join(more)}", file, varied(file, samples, begin, min(10, c.networks - begin)))


def hold_qeval(c):
    """qeval --as: a .tflite file, and the .onnx of the same conversion, give what LiteRT gives of the file, in ONNX's order of axes."""
    for name in ("conv stride 2, pads 1", "conv of square", "dense behind pictures", "keras", "transposed", "attention"):
        (shape, build), _ = check_tflite.LAYERS[name]
        net = plainnet.Net(5, opset=14)
        build(net)
        model, data = c.folder / "layer.onnx", c.folder / "samples.npy"
        samples = np.stack(net.save(model, ("n", *shape[1:])))[:6]
        np.save(data, samples)
        said = check_tflite.write(c, model, c.folder / "q.tflite", "--data", data)
        check_tflite.write(c, model, c.folder / "q.onnx", "--target", "litert", "--data", data)
        for twin, kernels in (("litert", "xnnpack"), ("litert-reference", "reference")):
            want = np.stack([check_tflite.run_theirs(c.folder / "q.tflite", {"x": x[None]}, kernels, said)["y"][0] for x in samples])
            for file in ("q.tflite", "q.onnx"):
                done = subprocess.run([c.qeval, c.folder / file, "--data", data, "--as", twin, "--outputs", c.folder / "y.npz", "-q"],
                                      capture_output=True, text=True, check=False)
                got = np.load(c.folder / "y.npz")["y"] if done.returncode == 0 else np.zeros(0)
                if file == "q.tflite" and name == "keras":  # what is read of a file has the channels first
                    got = np.moveaxis(got, 1, -1)
                c.hold(f"qeval {name}, {file} as {twin}", got.shape == want.shape and np.array_equal(got, want),
                       f"{done.stderr.strip()[-200:]} shape {got.shape} for {want.shape}")
    done = subprocess.run([c.qeval, model, c.folder / "q.tflite", "--data", data, "--as", "lite", "-q"], capture_output=True, text=True, check=False)
    c.hold("qeval with a twin that is not there", done.returncode == 2 and "litert" in done.stderr, f"{done.returncode} {done.stderr}")
    report = c.folder / "r.json"
    done = subprocess.run([c.qeval, model, c.folder / "q.tflite", "--data", data, "--as", "tflm", "--no-latency", "-q", "--json", report],
                          capture_output=True, text=True, check=False)
    twin = json.loads(report.read_text())["quant"] if done.returncode == 0 else {}
    c.hold("the report says whose arithmetic it is", "microcontrollers" in str(twin.get("runner")), f"{done.stderr} {twin.get('runner')}")


def hold_floats(c):
    """Layers that stay float, as goals leave them."""
    for name in ("attention", "resize linear"):
        (shape, build), _ = check_tflite.LAYERS[name]
        net = plainnet.Net(5, opset=14)
        build(net)
        net.save(c.folder / "float.onnx", ("n", *shape[1:]))
        hold_float(c, name)
    for name, make in MADE.items():
        net, shape = make()
        net.save(c.folder / "float.onnx", ("n", *shape))
        hold_float(c, name)


def hold_float(c, name):
    check_tflite.write(c, c.folder / "float.onnx", c.folder / "float.tflite", "--scheme", "float")
    file = File((c.folder / "float.tflite").read_bytes())
    hold_equal(c, "networks on reals", name, file, file.samples(1, np.random.default_rng(3)))


def hold_device(c):
    """The layers that qeval --as names: where LiteRT's reference kernels, which round twice, and XNNPACK's, which round once as ONNX Runtime does,
    have other integers in the same file."""
    net = plainnet.Net(7, opset=14)
    net.node("Conv", ["x", net.const("w1", 8, 4, 3, 3, scale=0.2), net.const("b1", 8)], "c1", pads=[1, 1, 1, 1])
    net.node("Relu", ["c1"], "r1")
    net.node("Conv", ["r1", net.const("w2", 8, 8, 3, 3, scale=0.2), net.const("b2", 8)], "y", pads=[1, 1, 1, 1])
    model, data, out, report = c.folder / "two.onnx", c.folder / "two.npy", c.folder / "two.tflite", c.folder / "two.json"
    samples = np.stack(net.save(model, ("n", 4, 16, 16)))[:6]
    np.save(data, samples)
    check_tflite.write(c, model, out, "--data", data)
    file = File(out.read_bytes())
    made = {i: file.code(op) for op in file.graph.operators for i in op.outputs}
    once, twice = ([run for run in run_litert(file, [[np.moveaxis(x[None], 1, -1)] for x in samples], reference)] for reference in (False, True))
    found = {}
    for twin in ("litert", "litert-reference"):
        done = subprocess.run([c.qeval, model, out, "--data", data, "--as", twin, "--layers", "-q", "--json", report], capture_output=True, text=True, check=False)
        found[twin] = json.loads(report.read_text())["models"][1]["device"] if done.returncode == 0 else {"layers": None, "text": done.stderr}
    c.hold("XNNPACK's layers are alike", found["litert"]["layers"] == [], found["litert"]["text"])
    layers = [i for i, code in made.items() if code == "CONV_2D"]
    differ = [sum(int((a[i] != b[i]).sum()) for a, b in zip(once, twice, strict=True)) for i in layers]
    steps = [max(int(np.abs(a[i].astype(int) - b[i]).max()) for a, b in zip(once, twice, strict=True)) for i in layers]
    told = found["litert-reference"]["layers"] or []
    c.hold("both layers are named", [t["op"] for t in told] == ["CONV_2D"] * 2 and all(differ), f"{told} {differ}")
    c.hold("by how much they differ", [(t["differ_in_all"], t["most_steps_in_all"]) for t in told] == list(zip(differ, steps, strict=True)), f"{told} {differ} {steps}")
    c.hold("the first layer's own", told and told[0]["differ"] == differ[0] and told[0]["values"] == samples.shape[0] * once[0][layers[0]].size, f"{told}")
    c.hold("the second layer's own is less", len(told) == 2 and 0 < told[1]["differ"] < told[1]["differ_in_all"] and told[1]["most_steps"] == 1, f"{told}")
    y = file.graph.outputs[0]
    apart = np.stack([np.abs(a[y] - b[y]) for a, b in zip(once, twice, strict=True)])
    at_end = (found["litert-reference"].get("outputs") or [{}])[0]
    c.hold("the outputs", at_end.get("values") == apart.size and at_end.get("differ") == int((apart != 0).sum()) and at_end.get("max_abs") == float(apart.max()),
           f"{at_end} {apart.max()}")


def hold_goal(c):
    """qconvert --as judges as LiteRT computes the file that it writes, and a goal leaves layers float for it."""
    net = Made(4, 2)
    for _ in range(4):
        net.conv(8)
        net.then("Relu")
    net.conv(4, 1)
    net.end()
    model, data, out, report = c.folder / "goal.onnx", c.folder / "goal.npy", c.folder / "goal.tflite", c.folder / "goal.json"
    samples = np.stack(net.save(model, ("n", 2, 12, 12)))
    np.save(data, samples)

    def convert(*more):
        done = subprocess.run([c.qconvert, model, "--data", data, "-o", out, "-q", "--json", report, *more], capture_output=True, text=True, check=False)
        return done.returncode, (json.loads(report.read_text()) if done.returncode in (0, 1) else {}), done.stderr

    def apart():
        """dB of LiteRT's reference kernels against ONNX Runtime on the float model, over all samples."""
        file, want = File(out.read_bytes()), judge.run_ort(model, [x[None] for x in samples])[0]
        y = file.graph.outputs[0]
        got = [np.moveaxis(run[y], -1, 1) for run in run_litert(file, [[np.moveaxis(x[None], 1, -1)] for x in samples], True)]
        return judge.sqnr([want], [np.stack(got)])

    code, told, said = convert("--as", "litert-reference")
    c.hold("qconvert --as says whose arithmetic it is", code == 0 and "reference" in told["judged_on"].get("as", ""), said)
    alone = apart()
    limit = alone + 3
    code, told, said = convert("--as", "litert-reference", "--min-sqnr", f"{limit:.2f}")
    c.hold("a goal is reached by layers in float", code == 0 and apart() >= limit - 1.5, f"{code} {said[-300:]} {alone:.2f} dB, {apart():.2f} of {limit:.2f}")
    code, told, said = convert("--as", "tflmicro")
    c.hold("qconvert with a twin that is not there", code == 2 and "--as" in said and "tflm" in said, said)


def read_alone():
    """(operator, inputs, outputs, options): of float32, which other tools write, with tables of options, and qconvert does not."""
    shape, S = [1, 3, 1, 5], schema
    yield "SQUEEZE", [shape], [[1, 3, 5]], with_options(S.SqueezeOptionsT, squeezeDims=[2]), []
    yield "EXPAND_DIMS", [shape], [[1, 3, 1, 1, 5]], S.ExpandDimsOptionsT(), [np.array([3], np.int32)]
    yield "PACK", [[3, 4], [3, 4]], [[3, 2, 4]], with_options(S.PackOptionsT, valuesCount=2, axis=1), []
    yield "UNPACK", [[3, 2, 4]], [[3, 4], [3, 4]], with_options(S.UnpackOptionsT, num=2, axis=1), []
    yield "TILE", [[2, 3]], [[4, 9]], S.TileOptionsT(), [np.array([2, 3], np.int32)]
    yield "SQUARED_DIFFERENCE", [[2, 3], [2, 3]], [[2, 3]], S.SquaredDifferenceOptionsT(), []
    yield "L2_NORMALIZATION", [[2, 6]], [[2, 6]], with_options(S.L2NormOptionsT, fusedActivationFunction=0), []
    yield "CEIL", [[2, 6]], [[2, 6]], None, []
    yield "SQUARE", [[2, 6]], [[2, 6]], S.SquareOptionsT(), []
    yield "REDUCE_PROD", [[2, 6]], [[2, 1]], with_options(S.ReducerOptionsT, keepDims=True), [np.array([1], np.int32)]


def hold_reading(c):
    """Operators that are read and never written."""
    rng = np.random.default_rng(11)
    for code, shapes, made, option, constants in read_alone():
        m = Maker(rng)
        ins = [m.tensor(s, kind=np.float32) for s in shapes] + [m.tensor(list(a.shape), kind=np.int32, data=a) for a in constants]
        outs = [m.tensor(s, kind=np.float32) for s in made]
        model = m.file(code, ins, outs[0], option, 1).model
        model.subgraphs[0].operators[0].outputs = model.subgraphs[0].outputs = outs
        file = File(packed(model))
        (c.folder / "alone.tflite").write_bytes(file.data)
        done = subprocess.run([c.qconvert, c.folder / "alone.tflite", "--scheme", "float", "-o", c.folder / "alone.onnx", "-q"], capture_output=True, text=True, check=False)
        c.hold(f"{code} is read", done.returncode == 0, done.stderr[-300:])
        if done.returncode:
            continue
        sample = file.samples(1, rng)[0]
        want = next(iter(run_litert(file, [sample], False)))
        got = judge.run_ort(c.folder / "alone.onnx", [{m.tensors[i].name: x for i, x in zip(file.graph.inputs, sample, strict=True)}])
        same = all(np.allclose(want[t], np.asarray(y).reshape(want[t].shape), rtol=1e-5, atol=1e-6) for t, y in zip(outs, got, strict=True))
        c.hold(f"{code}: the same as LiteRT", same, f"{[np.asarray(y).shape for y in got]}")


def hold_refusals(c):
    m = Maker(np.random.default_rng(1))
    shape = (1, 4, 4, 3)
    file = m.file("RSQRT", [m.activation(shape)], m.activation(shape))
    said = run_twin(c, "litert", file, file.samples(1, np.random.default_rng(1)))
    c.hold("an operator that is not there is named", isinstance(said, str) and "RSQRT" in said and "'t1'" in said, str(said)[-300:])
    said = run_twin(c, "lite-rt", file, file.samples(1, np.random.default_rng(1)))
    c.hold("a twin that is not there", isinstance(said, str) and "no twin 'lite-rt'" in said, str(said)[-300:])


def main():
    parser = options(__doc__)
    parser.add_argument("--only", help="cases whose name has this word")
    parser.add_argument("--values", default=str(tool.ROOT / "build/tests/tools/twin_values"), help="the program that runs a twin")
    parser.add_argument("--twin", help="this twin alone")
    parser.add_argument("--whole", action="store_true", help="1,000 samples each")
    args = parser.parse_args()
    for name in [name for name in RUNTIMES if args.twin and name != args.twin]:
        del RUNTIMES[name]
    with Checker(args) as c:
        c.values, c.compared, c.lacking = args.values, {twin: Compared() for twin in RUNTIMES}, set()
        c.samples, c.turns, c.networks = (1000, 5, 1000) if args.whole else (2, 1, 1)
        networks = [*MADE, *(check_tflite.NETWORKS if args.whole or args.only else FEW)]
        hold_layers(c, args.only)
        hold_operators(c, args.only)
        hold_products(c, args.only)
        for name in networks:
            if not args.only or args.only in name:
                hold_network(c, name)
            if name in WIDE and (not args.only or args.only in f"{name} on int16"):
                hold_network(c, name, "--target", "litert-int16")
        if not args.only:
            hold_qeval(c)
            hold_floats(c)
            hold_device(c)
            hold_goal(c)
            hold_refusals(c)
        if not args.only or args.only == "read":
            hold_reading(c)
        for twin in ("litert", "litert-reference", "tflm", "tosa"):
            print(f"{twin}: {c.compared[twin].text()}" if twin in RUNTIMES else f"{twin}: skipped, {MISSING.get(twin, 'it')} is not installed")
        print(f"not twinned: {' '.join(sorted(c.lacking))}")
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
