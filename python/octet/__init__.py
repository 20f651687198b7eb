"""Octet: post-training quantization of ONNX models, and running them. A module over liboctet.

    import octet
    made = octet.convert("model.onnx", samples, output="model.int8.onnx", max_drop="1%")
    print(made.text, [layer.name for layer in made.layers if not layer.integer])
    judged = octet.evaluate("model.onnx", made, data=others, labels=labels)
    print(judged.metrics["top1"].drop)
    y, = octet.Model("model.int8.onnx")(x)

Models are files (.onnx, .tflite), onnx.ModelProto or bytes. Samples are NumPy arrays, dictionaries of them, lists, generators, data sets or files. Options
are called as those of the commands qconvert, qcalib and qeval, with _ for -. A fault is an octet.Error with .status, .hint and, of a missed goal, .report.

Names of files are names and nothing else, whatever they begin with. Samples from the output of a command are data=octet.Pipe("tar c photos").

octet.quantization has the functions of onnxruntime.quantization, and onnxruntime_devices() gives the provider for ONNX Runtime:
options.add_provider_for_devices(octet.onnxruntime_devices(), {}).
"""
from ._call import Error
from ._calls import (calibrate, convert, convert_folder, convert_targets, evaluate, evaluate_folder, explain, lint, sensitivity, use_isa,
                     verify, version)
from ._inputs import Pipe
from ._model import Model
from ._onnxruntime import onnxruntime_devices
from ._results import Calibration, Command, Comparison, Conversion, Evaluation, Gate, Layer, LayerError, Metric, ModelResult, Result, TargetResult, Tensor

__version__ = version()
__all__ = ["Calibration", "Command", "Comparison", "Conversion", "Error", "Evaluation", "Gate", "Layer", "LayerError", "Metric", "Model", "ModelResult", "Pipe",
           "Result", "TargetResult", "Tensor", "calibrate", "convert", "convert_folder", "convert_targets", "evaluate", "evaluate_folder", "explain", "lint",
           "onnxruntime_devices", "sensitivity", "use_isa", "verify", "version"]

for _one in (Error, Model, Pipe, Result, Calibration, Command, Comparison, Conversion, Evaluation, Gate, Layer, LayerError, Metric, ModelResult, TargetResult,
             Tensor):
    _one.__module__ = __name__ # where users find it
del _one


def __dir__():
    return sorted([*__all__, "__doc__", "__version__"])
