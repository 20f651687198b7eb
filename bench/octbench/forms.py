"""The forms of a model, by every tool: a table of name -> how it is made.

form(name, model) makes one in a process of its own (`python -m octbench.forms`), so that a failure or a missing package stops
nothing else. Peers are driven as their manuals say, with the same samples for all.
"""
import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np

from octbench.networks import ALL, ENCODERS, VISION, data_file, model_file
from octbench.places import BENCH, OUT

CALIB = 20           # samples to calibrate with
SEVEN = "any - s7/channel/sym - -\n"


class Failed(Exception):
    pass


def feeds(data, count):
    """The first samples, one dictionary each, batch 1; copied one at a time."""
    arrays = {"input": np.load(data, mmap_mode="r")} if Path(data).suffix == ".npy" else dict(np.load(data))
    return ({k: np.array(v[i:i + 1]) for k, v in arrays.items()} for i in range(count))


def channels_last(x):
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1))


# ---- ONNX Runtime

def ort_static(model, data, out, count, weights="QInt8", seven=False):
    """quant_pre_process and quantize_static: QDQ, per channel, MinMax."""
    from onnxruntime.quantization import (CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quant_pre_process,
                                          quantize_static)

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.rest = feeds(data, count)

        def get_next(self):
            return next(self.rest, None)

    prepared = out.with_suffix(".pre.onnx")
    quant_pre_process(str(model), str(prepared), skip_symbolic_shape=True)
    quantize_static(str(prepared), str(out), Reader(), quant_format=QuantFormat.QDQ, per_channel=True, reduce_range=seven,
                    activation_type=QuantType.QUInt8, weight_type=QuantType[weights], calibrate_method=CalibrationMethod.MinMax)
    prepared.unlink()


def ort_dynamic(model, data, out, count, seven=False):
    from onnxruntime.quantization import QuantType, quantize_dynamic
    quantize_dynamic(str(model), str(out), per_channel=True, weight_type=QuantType.QInt8, reduce_range=seven)


# ---- OpenVINO

def openvino_int8(model, data, out, count):
    import nncf
    import openvino
    options = {"model_type": nncf.ModelType.TRANSFORMER} if model.stem in ENCODERS else {}
    samples = nncf.Dataset(list(feeds(data, count)), lambda f: f)
    openvino.save_model(nncf.quantize(openvino.convert_model(str(model)), samples, subset_size=count, **options), str(out))


# ---- LiteRT

def litert_float(model, data, out, count):
    import litert_torch
    import torch
    from octbench import torchnet
    net, feed = torchnet.load(str(model)), tuple(torch.from_numpy(v) for v in next(feeds(data, 1)).values())
    if model.stem in VISION:                                  # its own layout is channels-last
        net, feed = litert_torch.to_channel_last_io(net, args=[0]).eval(), (feed[0].permute(0, 2, 3, 1).contiguous(),)
    litert_torch.convert(net, feed).export(str(out))


def litert_int8(model, data, out, count, static):
    from ai_edge_quantizer import quantizer, recipe
    from ai_edge_quantizer.utils import tfl_interpreter_utils as interpreter
    source = form("litert-float", model.stem)
    made = quantizer.Quantizer(str(source))
    if not static:
        made.load_quantization_recipe(recipe.dynamic_wi8_afp32())
        made.quantize().export_model(str(out), overwrite=True)
        return
    made.load_quantization_recipe(recipe.static_wi8_ai8())
    signature, detail = next(iter(interpreter.create_tfl_interpreter(str(source)).get_signature_list().items()))
    samples = [{detail["inputs"][0]: channels_last(next(iter(f.values())))} for f in feeds(data, count)]
    made.quantize(made.calibrate({signature: samples})).export_model(str(out), overwrite=True)


# ---- ours

def octet(model, data, out, count, scheme, policy=None, target="octet"):
    """Accuracy recovery is left out: it takes time here and changes no latency."""
    from octbench.tools import OURS
    command = [OURS["qconvert"], model, "-o", out, "--target", target, "--scheme", scheme, "--no-recover", "-q"]
    if scheme == "static":
        command += ["--data", data, "--samples", count]
    if policy:
        table = out.with_suffix(".policy")
        table.write_text(policy)
        command += ["--policy", table]
    subprocess.run([str(c) for c in command], check=True)


FORMS = {
    "ort-static": (".onnx", ort_static),
    "ort-static-7bit": (".onnx", lambda *a: ort_static(*a, seven=True)),
    "ort-static-u8u8": (".onnx", lambda *a: ort_static(*a, weights="QUInt8")),
    "ort-dynamic": (".onnx", ort_dynamic),
    "ort-dynamic-7bit": (".onnx", lambda *a: ort_dynamic(*a, seven=True)),
    "openvino-int8": (".xml", openvino_int8),
    "litert-float": (".tflite", litert_float),
    "litert-static": (".tflite", lambda *a: litert_int8(*a, static=True)),
    "litert-dynamic": (".tflite", lambda *a: litert_int8(*a, static=False)),
    "octet-static": (".onnx", lambda *a: octet(*a, "static")),
    "octet-static-7bit": (".onnx", lambda *a: octet(*a, "static", SEVEN)),
    "octet-portable": (".onnx", lambda *a: octet(*a, "static", target="onnxruntime-x86")),
    "octet-dynamic": (".onnx", lambda *a: octet(*a, "dynamic")),
    "octet-dynamic-7bit": (".onnx", lambda *a: octet(*a, "dynamic", SEVEN)),
}


def path_of(name, model):
    """Where the form lies; the float model for "float"."""
    return model_file(model) if name == "float" else OUT / f"{model}.{name}{FORMS[name][0]}"


def form(name, model):
    """The path of the form, made now if it is not there. Failed says why not."""
    out = path_of(name, model)
    if not out.exists():
        part = out.with_name("part." + out.name)
        done = subprocess.run([sys.executable, "-m", "octbench.forms", name, model, str(part)], cwd=BENCH, capture_output=True,
                              text=True, check=False)
        if done.returncode:
            said = done.stderr.strip().splitlines() or ["no message"]
            raise Failed(said[-1][:200])
        for made in part.parent.glob(part.stem + "*"):
            made.rename(made.with_name(made.name[5:]))
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("form", choices=FORMS)
    parser.add_argument("model", choices=ALL)
    parser.add_argument("out", type=Path)
    parser.add_argument("--samples", type=int, default=CALIB)
    args = parser.parse_args()
    FORMS[args.form][1](model_file(args.model), data_file(args.model), args.out, args.samples)
