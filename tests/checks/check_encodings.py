#!/usr/bin/env python3
"""Compares ranges that go from and to other tools with NumPy, and with ONNX Runtime's own writer and reader.

    check_encodings.py [--qconvert PROGRAM] [--qeval PROGRAM] [--qcalib PROGRAM] [-v]

ONNX Runtime calibrates a network; a conversion by its caches has the scales that follow from its numbers, and it reads what `qcalib export` writes.
Encodings of AIMET and QNN, TensorRT's cache and ncnn's table are written here, digit by digit, and read back.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import logging
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, calibrate, create_calibrator, quant_utils, quantize_static

from pylib import tool
from pylib.judge import Checker, options

SIDE = 8
F32 = np.float32
MOVES = ("MaxPool", "Flatten")  # what they read and make has one scale; the clamps that Concat reads differ


def network(path):
    """Convolutions with and without clamps, data that is moved, a sum and a product."""
    rng = np.random.default_rng(5)
    weights = {"w1": (8, 3, 3, 3), "w2": (8, 8, 3, 3), "w3": (16, 16, 1, 1), "w4": (16, 16, 3, 3), "w5": (5, 16)}
    inits = [numpy_helper.from_array((rng.standard_normal(d) * 0.3).astype(F32), n) for n, d in weights.items()]
    inits += [numpy_helper.from_array(np.array(v, F32), n) for n, v in (("zero", 0), ("six", 6))]
    node = helper.make_node
    nodes = [node("Conv", ["x", "w1"], ["c1"], "conv1", pads=[1] * 4), node("Relu", ["c1"], ["r1"], "relu1"),
             node("MaxPool", ["r1"], ["m"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
             node("Conv", ["m", "w2"], ["c2"], "conv2", pads=[1] * 4), node("Clip", ["c2", "zero", "six"], ["k"], "clip"),
             node("Concat", ["m", "k"], ["cat"], "cat", axis=1), node("Conv", ["cat", "w3"], ["c3"], "conv3"),
             node("Conv", ["c3", "w4"], ["c4"], "conv4", pads=[1] * 4), node("Add", ["c3", "c4"], ["sum"], "add"),
             node("GlobalAveragePool", ["sum"], ["mean"], "mean"), node("Flatten", ["mean"], ["flat"], "flat"),
             node("Gemm", ["flat", "w5"], ["y"], "fc", transB=1)]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, [1, 3, SIDE, SIDE])], [value("y", TensorProto.FLOAT, [1, 5])], inits)
    model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))
    onnx.save(model, path)
    return model


class Samples(CalibrationDataReader):
    def __init__(self, x):
        self.left = [{"x": v[None]} for v in x]

    def get_next(self):
        return self.left.pop(0) if self.left else None


def calibrated(folder, model, x):
    """ONNX Runtime's ranges, and the files that it writes of them."""
    one = create_calibrator(model, augmented_model_path=str(folder / "augmented.onnx"), calibrate_method=CalibrationMethod.MinMax)
    one.collect_data(Samples(x))
    data = one.compute_data()
    calibrate.save_tensors_data(data, folder / "saved" / "cache.json")
    (folder / "table").mkdir()
    quant_utils.write_calibration_table(data.data, str(folder / "table"))
    (folder / "table/calibration.json").rename(folder / "table/cache.json")
    pairs = {n: (float(np.min(t.lowest)), float(np.max(t.highest))) for n, t in data.items()}  # as releases up to 1.14 write them
    (folder / "table/pairs.json").write_text(json.dumps(pairs))
    return pairs


def groups(model):
    """{tensor: all that share its parameters}"""
    of = {n: {n} for n in ["x"] + [o for v in model.graph.node for o in v.output]}
    for v in model.graph.node:
        if v.op_type in MOVES:
            for name in list(v.input):
                both = of[name] | of[v.output[0]]
                for member in both:
                    of[member] = both
    return of


def clamped(model, name, lo, hi):
    """Behind a Relu or a Clip the quantizer ends where it does."""
    made = {v.output[0]: v.op_type for v in model.graph.node}.get(name)
    return (max(lo, 0), min(hi, 6) if made == "Clip" else hi) if made in ("Relu", "Clip") else (lo, hi)


def parameters(lo, hi):
    lo, hi = np.float64(F32(min(lo, 0))), np.float64(F32(max(hi, 0)))
    scale = (hi - lo) / 255
    return F32(scale), int(np.rint(-lo / scale))


def stored(path):
    """{tensor: (scale, zero point)} of the activations of a model that qconvert has written"""
    arrays = {i.name: numpy_helper.to_array(i) for i in onnx.load(path).graph.initializer}
    return {n[:-len("_scale")]: (a, arrays[n[:-len("_scale")] + "_zero_point"]) for n, a in arrays.items()
            if n.endswith("_scale") and a.ndim == 0 and n[:-len("_scale")] + "_zero_point" in arrays and not n.startswith("w")}


def check_ort_read(check, model, ranges):
    """From ONNX Runtime's caches to scales."""
    float_model, folder, of = check.folder / "float.onnx", check.folder, groups(model)
    for cache in ("saved/cache.json", "table/cache.json", "table/pairs.json", "table/calibration.cache"):
        report = check.convert(float_model, folder / "out.onnx", "--calib", folder / cache, "--target", "octet")
        got = stored(folder / "out.onnx")
        check.hold(f"{cache}: all layers are static", report["int8_layers"] == 5 and report["pinned"]["missing"] == 0, report["pinned"])
        check.hold(f"{cache}: scales are there", len(got) >= 6, len(got))
        for name, (scale, zero) in got.items():
            members = [ranges[n] for n in of[name]]
            if cache.endswith(".cache"):
                members = [(-max(lo, hi), max(lo, hi)) for lo, hi in members]
            both = min(lo for lo, _ in members), max(hi for _, hi in members)
            for n in of[name]:
                both = clamped(model, n, *both)
            want = parameters(*both)
            check.hold(f"{cache}: {name}", scale == want[0] and zero == want[1], f"{scale} {zero} {want}")
    same = {f: (check.convert(float_model, folder / "out.onnx", "--calib", folder / f), without_record(folder / "out.onnx"))[1]
            for f in ("saved/cache.json", "table/cache.json")}
    check.hold("both kinds of JSON give the same model", len(set(same.values())) == 1)


def check_ort_write(check, qcalib, model, x):
    """From our table to ONNX Runtime's reader, and to the scales of its quantizer."""
    folder, table, cache = check.folder, check.folder / "t.calib", check.folder / "ours.json"
    tool.run([qcalib, folder / "float.onnx", "--data", folder / "x.npy", "-o", table, "-q"])
    tool.run([qcalib, "export", table, "--format", "ort", "--observer", "minmax", "-o", cache, "-q"])
    tool.run([qcalib, "show", table, "-q", "--json", folder / "t.json"])
    want = {t["name"]: (t["min"], t["max"]) for t in json.loads((folder / "t.json").read_text())["tensors"]}
    data = calibrate.load_tensors_data(cache)
    check.hold("ONNX Runtime reads our cache", data.calibration_method == CalibrationMethod.MinMax and set(data.keys()) == set(want))
    for name, t in data.items():
        lo, hi = want[name]
        check.hold(f"our cache: {name}", (t.lowest, t.highest) == (F32(min(lo, 0)), F32(max(hi, 0))) and t.lowest.dtype == F32, f"{t.to_dict()} {want[name]}")
    quantize_static(folder / "float.onnx", folder / "theirs.onnx", None, calibration_cache_path=cache, op_types_to_quantize=["MaxPool", "Add"])
    arrays = {i.name: numpy_helper.to_array(i) for i in onnx.load(folder / "theirs.onnx").graph.initializer}
    got = {n[:-len("_scale")]: a for n, a in arrays.items() if n.endswith("_scale") and n[:-len("_scale")] in want}
    check.hold("ONNX Runtime quantizes by our cache", len(got) >= 3, sorted(got))
    for name, scale in got.items():
        source = {"m": "r1"}.get(name, name)  # MaxPool keeps the scale of what it reads
        check.hold(f"its scale of {name}", np.isclose(scale, parameters(*want[source])[0], rtol=3e-7), f"{scale} {parameters(*want[source])}")


def aimet_files(params):
    """The same encodings in each version; params: {tensor: (scale, zero point of u8)}"""
    old = {n: [{"bitwidth": 8, "dtype": "int", "is_symmetric": str(z == 128), "scale": float(s), "offset": -z, "min": -z * float(s),
                "max": (255 - z) * float(s)}] for n, (s, z) in params.items()}
    first = [{"name": n, "dtype": "INT", "enc_type": "PER_TENSOR", "bw": 8, "is_sym": z == 128, "scale": [float(s)], "offset": [-z]}
             for n, (s, z) in params.items()]
    second = [{"name": n, "output_dtype": "int8", "y_scale": float(s), "y_zero_point": z - 128} for n, (s, z) in params.items()]
    return {"0.6.1": {"version": "0.6.1", "activation_encodings": old, "param_encodings": {"w1": []}},
            "1.0.0": {"version": "1.0.0", "activation_encodings": first, "param_encodings": [{"name": "w1"}]},
            "2.0.0": {"version": "2.0.0", "encodings": [*second, {"name": "w1", "output_dtype": "int8", "y_scale": [1.0] * 8, "axis": 0}]}}


def check_scales(check, what, path, params, *more, zero_less=0):
    """A conversion by a file has the scales that it says, for one tensor at least of each that share them."""
    report = check.convert(check.folder / "float.onnx", check.folder / "out.onnx", "--calib", path, "--target", "octet", *more)
    got = stored(check.folder / "out.onnx")
    check.hold(f"{what}: scales are there", len(got) >= 6 and report["pinned"]["exact"] >= 6, f"{len(got)} {report['pinned']}")
    for name, (scale, zero) in got.items():
        check.hold(f"{what}: {name}", (scale, zero) == (params[name][0], params[name][1] - zero_less), f"{scale} {zero} {params[name]}")
    return (check.folder / "out.onnx").read_bytes()


def check_encodings(check, qcalib, model):
    """AIMET's and QNN's, and through a table of our own and back."""
    rng, of, folder = np.random.default_rng(9), groups(model), check.folder
    params = {}
    for n in of:
        first = min(of[n])
        if first not in params:
            clamp = bool(of[n] & {"r1", "k"})
            params[first] = (F32(6 / 255 if "k" in of[n] else rng.uniform(0.01, 0.1)), 0 if clamp else int(rng.integers(1, 255)))
        params[n] = params[first]
    for version, content in aimet_files(params).items():
        (folder / version).mkdir()
        path, table = folder / version / "e.encodings", folder / version / "t.calib"
        path.write_text(json.dumps(content))
        check_scales(check, f"encodings {version}", path, params)
        tool.run([qcalib, "import", path, "--model", folder / "float.onnx", "-o", table, "-q"])
        check_scales(check, f"encodings {version}, imported", table, params)
    for form, version in (("qnn", "0.6.1"), ("aimet", "1.0.0")):
        tool.run([qcalib, "export", table, "--format", form, "-o", folder / form, "-q"])
        got, want = json.loads((folder / form).read_text()), aimet_files(params)[version]
        for content in (got, want):
            content["param_encodings"] = None
            entries = content["activation_encodings"]
            content["activation_encodings"] = entries if form == "qnn" else {e["name"]: e for e in entries}
        check.hold(f"{form}: what is written is what was read", got == want, f"{got} {want}")


def check_symmetric(check, qcalib, model):
    """TensorRT's cache and ncnn's table: int8 around zero."""
    rng, of, folder = np.random.default_rng(10), groups(model), check.folder
    params = {}
    for n in of:
        params[n] = params.get(min(of[n])) or (F32(rng.uniform(0.01, 0.1)), 128)
    path = folder / "trt.cache"
    path.write_text("TRT-10300-EntropyCalibration2\n" + "".join(f"{n}: {struct.pack('>f', s).hex()}\n" for n, (s, _) in params.items()))
    symmetric = folder / "policy.txt"
    symmetric.write_text("any - - s8/tensor/sym -\n")
    check_scales(check, "TensorRT", path, params, "--policy", symmetric, zero_less=128)
    tool.run([qcalib, "import", path, "--model", folder / "float.onnx", "-o", folder / "s.calib", "-q"])
    tool.run([qcalib, "export", folder / "s.calib", "--format", "tensorrt", "-o", folder / "again.cache", "-q"])
    lines = [v.rsplit(": ", 1) for v in (folder / "again.cache").read_text().splitlines()[1:]]
    check.hold("TensorRT: what is written is what was read", {n: struct.unpack(">f", bytes.fromhex(h))[0] for n, h in lines} ==
               {n: float(s) for n, (s, _) in params.items()})
    tool.run([qcalib, "export", folder / "s.calib", "--format", "ncnn", "--model", folder / "float.onnx", "-o", folder / "n.table", "-q"])
    rows = {v.split()[0]: np.array(v.split()[1:], F32) for v in (folder / "n.table").read_text().splitlines()}
    weights = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    layers = {v.name: v.input for v in model.graph.node if v.op_type in ("Conv", "Gemm")}
    check.hold("ncnn: two lines of each layer", set(rows) == set(layers) | {f"{n}_param_0" for n in layers}, sorted(rows))
    for name, (x, w, *_) in layers.items():
        top = np.abs(weights[w]).reshape(len(weights[w]), -1).max(1)
        check.hold(f"ncnn: weights of {name}", np.allclose(rows[f"{name}_param_0"], 127 / top, rtol=1e-6))
        check.hold(f"ncnn: input of {name}", np.allclose(rows[name], 1 / np.float64(params[x][0]), rtol=1e-6))
    report = check.convert(folder / "float.onnx", folder / "out.onnx", "--calib", folder / "n.table", "--target", "octet", "--policy", symmetric)
    got = stored(folder / "out.onnx")
    check.hold("ncnn: layers whose results have no range leave these real", report["int8_layers"] == 5 and report["pinned"]["missing"] > 0, report["pinned"])
    for name in {x for x, *_ in layers.values()}:
        near = [s for n, s in got.items() if n in of[name]]
        check.hold(f"ncnn: {name} read", len(near) == 1 and np.isclose(near[0][0], params[name][0], rtol=3e-7) and near[0][1] == 0, f"{near} {params[name]}")


def without_record(path):
    """A model but for what it says of the files that it was made from."""
    model = onnx.load(path)
    kept = [p for p in model.metadata_props if p.key not in ("octet.record", "octet.command")]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    return model.SerializeToString(deterministic=True)


def main():
    parser = options(__doc__)
    parser.add_argument("--qcalib", default=tool.find("qcalib"))
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    x = np.random.default_rng(6).standard_normal((6, 3, SIDE, SIDE)).astype(F32)
    with Checker(args) as check:
        np.save(check.folder / "x.npy", x)
        model = network(check.folder / "float.onnx")
        check_ort_read(check, model, calibrated(check.folder, str(check.folder / "float.onnx"), x))
        check_ort_write(check, args.qcalib, model, x)
        check_encodings(check, args.qcalib, model)
        check_symmetric(check, args.qcalib, model)
    return check.finish()


if __name__ == "__main__":
    sys.exit(main())
