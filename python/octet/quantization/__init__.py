"""The functions of onnxruntime.quantization, made by Octet: one import is changed, and scripts run as they are.

    from octet.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

Names, arguments and their order are ONNX Runtime's. What Octet decides from samples or by the target is accepted and left to it: per_channel, the signs of
8-bit types, calibrate_method, calibration_providers, use_external_data_format. The model is made for ONNX Runtime on this machine's processor; with
reduce_range for any x86-64 processor, where 16-bit sums must not saturate; with 16-bit activations for QNN. Arguments that ask for something that these calls
cannot give raise octet.Error, whose hint says how octet.convert does it. The functions return what octet.convert returns.

The modules of onnxruntime.quantization are here, too: calibrate, matmul_nbits_quantizer (and matmul_4bits_quantizer, its name of old), preprocess, quant_utils, quantize, shape_inference.
"""
from typing import Any

from .calibrate import CalibrationDataReader, CalibrationMethod
from .quant_utils import QuantFormat, QuantizationMode, QuantType
from .quantize import DynamicQuantConfig, StaticQuantConfig, get_qdq_config, quantize, quantize_dynamic, quantize_static # quantize: the function, not its module
from .shape_inference import quant_pre_process

__all__ = ["CalibrationDataReader", "CalibrationMethod", "DynamicQuantConfig", "QuantFormat", "QuantType", "QuantizationMode", "StaticQuantConfig", "get_qdq_config",
           "quant_pre_process", "quantize", "quantize_dynamic", "quantize_static"]

_NOT_HERE = {"create_calibrator": "octet.calibrate(model, data, output='m.calib') writes what calibration finds",
             "CalibraterBase": "octet.calibrate(model, data, output='m.calib') writes what calibration finds",
             "MinMaxCalibrater": "octet.calibrate(model, data, output='m.calib') writes what calibration finds",
             "TensorsData": "octet.calibrate(model, data, output='m.calib') writes what calibration finds",
             "write_calibration_table": "octet.calibrate(model, data, output='m.calib'), and qcalib(1) writes it for other tools",
             "QDQQuantizer": "octet.convert(model, data) decides for each layer; its options are those of qconvert(1)"}


def __getattr__(name: str) -> Any:
    if name in _NOT_HERE:
        raise ImportError(f"octet.quantization has no {name}: {_NOT_HERE[name]}")
    raise AttributeError(f"module 'octet.quantization' has no attribute {name!r}")
