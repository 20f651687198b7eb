"""ONNX Runtime as peer and judge: sessions, its static quantizer, and what its optimizer makes of a model."""
import os
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

ort.set_default_logger_severity(4)
INTEGER = {"QLinearConv", "QGemm", "QLinearMatMul", "MatMulIntegerToFloat", "DynamicQuantizeMatMul", "MatMulInteger",
           "ConvInteger"}
FLOAT = {"Conv", "FusedConv", "NhwcFusedConv", "Gemm", "FusedGemm", "MatMul", "FusedMatMul", "ConvTranspose"}


def session(path, exact=False, optimized=None, threads=1):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    if optimized:
        options.optimized_model_filepath = str(optimized)
    source = path if isinstance(path, bytes) else str(path)
    return ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def feed(sess, x):
    return x if isinstance(x, dict) else {sess.get_inputs()[0].name: x}


def fixed_batch(sess):
    """The batch a model asks for, or None when it is free."""
    shape = sess.get_inputs()[0].shape
    return shape[0] if shape and isinstance(shape[0], int) else None


def node_counts(path, exact=False):
    """Operator types that are left after ONNX Runtime's optimizer, sorted by name."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "optimized.onnx"
        session(path, exact, out)
        graph = onnx.load(out, load_external_data=False).graph
    return dict(sorted(Counter(node.op_type for node in graph.node).items()))


def integer_share(counts):
    """(integer, float) numbers of the matrix operators among the counts."""
    return sum(counts.get(t, 0) for t in INTEGER), sum(counts.get(t, 0) for t in FLOAT)


def _reader(samples, limit, name):
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
            return {k: v[None] for k, v in row.items()} if isinstance(row, dict) else {name: row[None]}

    return Reader()


def quantize(model, out, samples, limit, method="minmax"):
    """ONNX Runtime's documented way: quant_pre_process, then quantize_static (QDQ, u8 x s8, per channel)."""
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quant_pre_process, quantize_static
    methods = {"minmax": CalibrationMethod.MinMax, "entropy": CalibrationMethod.Entropy,
               "percentile": CalibrationMethod.Percentile}
    prepared = f"{out}.pre.{os.getpid()}.onnx"
    name = session(model).get_inputs()[0].name
    # Eight samples at a time bound the memory of its histograms; the result is the merged one.
    options = {"CalibStridedMinMax": 8} if min(limit, samples.count) % 8 == 0 and method != "minmax" else {}
    try:
        quant_pre_process(str(model), prepared, skip_symbolic_shape=True)
        quantize_static(prepared, str(out), _reader(samples, limit, name), quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                        calibrate_method=methods[method], extra_options=options)
    finally:
        Path(prepared).unlink(missing_ok=True)
    return out


def run_all(sess, samples, limit=None, batch=16):
    """Every output of every sample: {name: array}."""
    names = [o.name for o in sess.get_outputs()]
    parts = {name: [] for name in names}
    for _, x in samples.batches(fixed_batch(sess) or batch, limit):
        for name, y in zip(names, sess.run(None, feed(sess, x))):
            parts[name].append(np.asarray(y))
    return {name: np.concatenate(ys) if ys[0].ndim else np.stack(ys) for name, ys in parts.items()}
