"""ONNX Runtime as peer and judge: sessions, its static quantizer, and what its optimizer makes of a model."""
import contextlib
import io
import logging
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnx.version_converter
import onnxruntime as ort

ort.set_default_logger_severity(4)
INTEGER = {"QLinearConv", "QGemm", "QLinearMatMul", "MatMulIntegerToFloat", "DynamicQuantizeMatMul", "MatMulInteger",
           "ConvInteger"}
INTEGER_WEIGHTS = {"QLinearConv": (3, 5), "QLinearMatMul": (3, 5), "QGemm": (3, 5)}  # inputs of weights and zero points
FLOAT = {"Conv", "FusedConv", "NhwcFusedConv", "Gemm", "FusedGemm", "MatMul", "FusedMatMul", "ConvTranspose"}


def unshared(path):
    """The model with quantized weights of its own for each layer, or None: with x64quantprecision ONNX Runtime 1.32 turns those of a layer, and their
    zero points, into u8 under names made of theirs, and refuses a model where several layers have them, in either form. A product in a body whose zero points are a
    constant of the graph around it is left as it is, so the body gets a copy of them."""
    model = onnx.load_from_string(path) if isinstance(path, bytes) else onnx.load(path)
    tensors, nodes, seen = {t.name: t for t in model.graph.initializer}, list(model.graph.node), set()
    makers = {n.output[0]: n for n in nodes if n.op_type == "DequantizeLinear" and n.input[0] in tensors and tensors[n.input[0]].data_type == onnx.TensorProto.INT8}

    def copy_of(name, reader):
        own = model.graph.initializer.add()
        own.CopyFrom(tensors[name])
        own.name = f"{name}_of_{reader.output[0]}"
        return own.name

    for node in nodes:
        for i, name in enumerate(node.input):
            if name not in makers:
                continue
            maker = makers[name]
            if maker.input[0] in seen:
                real = f"{name}_of_{node.output[0]}"
                inputs = [copy_of(maker.input[0], node), maker.input[1], *(copy_of(zero, node) for zero in maker.input[2:])]
                again = onnx.helper.make_node("DequantizeLinear", inputs, [real])
                again.attribute.extend(maker.attribute)
                model.graph.node.insert(0, again)
                node.input[i] = real
            seen.add(maker.input[0])
    for node in nodes:
        for i in INTEGER_WEIGHTS.get(node.op_type, ()):
            name = node.input[i] if i < len(node.input) else ""
            if name in tensors and tensors[name].data_type == onnx.TensorProto.INT8:
                node.input[i] = copy_of(name, node) if name in seen else name
                seen.add(name)
    copied = False
    for body in _bodies(model.graph):
        for node in (n for n in body.node if n.op_type == "MatMulInteger" and n.input[3:] and n.input[3] in tensors):
            own = body.initializer.add()
            own.CopyFrom(tensors[node.input[3]])
            own.name = node.input[3] = f"{node.input[3]}_of_{node.output[0]}"
            copied = True
    return model if copied or len(tensors) < len(model.graph.initializer) else None


def _bodies(graph):
    """All graphs nested in it."""
    for attribute in (a for n in graph.node for a in n.attribute if a.HasField("g")):
        yield attribute.g
        yield from _bodies(attribute.g)


def session(path, exact=False, optimized=None, threads=1, optimize=True):
    """optimized: a file for the graph as its optimizer leaves it."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    if optimized:
        options.optimized_model_filepath = str(optimized)
    if not optimize:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")  # float sums
    own = unshared(path) if exact else None
    source = own.SerializeToString() if own else path if isinstance(path, bytes) else str(path)
    return ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def feed(sess, x):
    return x if isinstance(x, dict) else {sess.get_inputs()[0].name: x}


def fixed_batch(sess):
    """The batch a model asks for, or None when it is free."""
    shape = sess.get_inputs()[0].shape
    return shape[0] if shape and isinstance(shape[0], int) else None


def _types(graph):
    """Operator types of all nodes, of those in nested graphs too."""
    for node in graph.node:
        yield node.op_type
        for a in node.attribute:
            for nested in (a.g, *a.graphs):
                yield from _types(nested)


def node_counts(path, exact=False):
    """Operator types that are left after ONNX Runtime's optimizer, sorted by name."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "optimized.onnx"
        session(path, exact, out)
        graph = onnx.load(out, load_external_data=False).graph
    return dict(sorted(Counter(_types(graph)).items()))


def integer_share(counts):
    """(integer, float) numbers of the matrix operators among the counts."""
    return sum(counts.get(t, 0) for t in INTEGER), sum(counts.get(t, 0) for t in FLOAT)


def reader(samples, limit, name, whole=False):
    """Its calibration reader over the first samples. whole: a sample is all inputs of a run, without a batch axis to be put before."""
    from onnxruntime.quantization import CalibrationDataReader

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.set_range(0, min(limit, samples.count))

        def __len__(self):
            return min(limit, samples.count)

        def set_range(self, start_index, end_index):
            self.at, self.end = start_index, end_index

        def get_next(self):
            if self.at >= self.end:
                return None
            row = samples.get(self.at)
            self.at += 1
            if isinstance(row, dict):
                return row if whole else {k: v[None] for k, v in row.items()}
            return {name: row[None]}

    return Reader()


def modern(path):
    """The model at opset 13, which its per-channel DequantizeLinear needs, without constants among the inputs. Models that
    have this already are left alone."""
    made = onnx.load(path)
    version = next(o.version for o in made.opset_import if o.domain in ("", "ai.onnx"))
    if version >= 13:
        return made
    constant = {t.name for t in made.graph.initializer}
    inputs = [v for v in made.graph.input if v.name not in constant]
    del made.graph.input[:]
    made.graph.input.extend(inputs)
    made.ir_version = max(made.ir_version, 7)
    return onnx.version_converter.convert_version(made, 13)


@contextlib.contextmanager
def quiet():
    """Its quantizer prints progress and warnings; results go through our table."""
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(logging.NOTSET)


@contextlib.contextmanager
def one_thread():
    """The sessions that its quantizer makes for itself have one thread too."""
    options = ort.SessionOptions

    def limited():
        made = options()
        made.intra_op_num_threads = 1
        return made

    ort.SessionOptions = limited
    try:
        yield
    finally:
        ort.SessionOptions = options


def quantize(model, out, samples, limit, method="minmax", whole=False, operators=False):
    """ONNX Runtime's documented way: quant_pre_process, then quantize_static (QDQ, u8 x s8, per channel).
    Where that fails, once more without the pre-processing. method: minmax, entropy, percentile; or dynamic, for its quantize_dynamic
    (s8 weights per channel), which needs no samples. operators: QLinear operators instead of QDQ."""
    from onnxruntime.quantization import (CalibrationMethod, QuantFormat, QuantType, quant_pre_process, quantize_dynamic,
                                          quantize_static)
    methods = {"minmax": CalibrationMethod.MinMax, "entropy": CalibrationMethod.Entropy,
               "percentile": CalibrationMethod.Percentile}
    name = session(model).get_inputs()[0].name
    # Eight samples at a time bound the memory of its histograms; the result is the merged one.
    options = {"CalibStridedMinMax": 8} if samples and min(limit, samples.count) % 8 == 0 and method != "minmax" else {}

    def convert(source):
        if method == "dynamic":
            quantize_dynamic(str(source), str(out), per_channel=True, weight_type=QuantType.QInt8)
            return
        quantize_static(str(source), str(out), reader(samples, limit, name, whole),
                        quant_format=QuantFormat.QOperator if operators else QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                        calibrate_method=methods[method], extra_options=options)

    with tempfile.TemporaryDirectory() as folder, quiet():
        raw, prepared = Path(folder) / "raw.onnx", Path(folder) / "prepared.onnx"
        onnx.save(modern(model), raw)               # its own way with loaded models fails on small ones
        try:
            quant_pre_process(str(raw), str(prepared), skip_symbolic_shape=True)
            convert(prepared)
        except Exception:
            convert(raw)
    return out


def run_all(sess, samples, limit=None, batch=16, whole=False):
    """Every output of every sample: {name: array}. whole: a sample is all inputs of a run, and may hold more than them."""
    names, wanted = [o.name for o in sess.get_outputs()], [i.name for i in sess.get_inputs()]
    parts = {name: [] for name in names}
    if whole:
        each = ({k: samples.get(i)[k] for k in wanted} for i in range(min(samples.count, limit or samples.count)))
    else:
        each = (x for _, x in samples.batches(fixed_batch(sess) or batch, limit))
    for x in each:
        for name, y in zip(names, sess.run(None, feed(sess, x))):
            parts[name].append(np.asarray(y))
    return {name: np.concatenate(ys) if ys[0].ndim else np.stack(ys) for name, ys in parts.items()}
