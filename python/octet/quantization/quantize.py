"""quantize_static, quantize_dynamic, quantize with their configurations, and get_qdq_config."""
import inspect
import os
import re
from typing import Any, Dict, List, Optional, Sequence, Union

from .._call import Error
from .._calls import convert
from .._results import Conversion
from .calibrate import CalibrationMethod
from .quant_utils import QuantFormat, QuantType

Model = Union[str, "os.PathLike[str]", Any] # Any: onnx.ModelProto

# Keys of extra_options that say how ONNX Runtime's calibrators and quantizers work inside, or what Octet does anyway.
_LEFT_TO_OCTET = {"CalibMaxIntermediateOutputs", "CalibMovingAverage", "CalibMovingAverageConstant", "CalibPercentile", "CalibStridedMinMax",
                  "CalibTensorRangeSymmetric", "DefaultTensorType", "EnableSubgraph", "ForceQuantizeNoInputCheck", "MatMulConstBOnly", "MinimumRealRange",
                  "QDQDisableWeightAdjustForInt32Bias", "QDQKeepRemovableActivations", "QDQOpTypePerChannelSupportToAxis", "SmoothQuant",
                  "SmoothQuantAlpha", "SmoothQuantFolding", "WeightSymmetric"}
_ELSEWHERE = {"TensorQuantOverrides": "give rules for layers: octet.convert(..., set=['name:/head/*=float']), or policy=FILE",
              "DedicatedQDQPair": "name the runtime that wants it so: octet.convert(..., target='tensorrt')",
              "AddQDQPairToWeight": "name the runtime that wants it so: octet.convert(..., target='tensorrt')",
              "OpTypesToExcludeOutputQuantization": "name the runtime that wants it so: octet.convert(..., target='tensorrt')",
              "UseQDQContribOps": "octet.convert writes them where the model's opset needs them",
              "QuantizeBias": "name the runtime that wants it so: octet.convert(..., target='tensorrt')"}
_EIGHT = (QuantType.QInt8, QuantType.QUInt8)
_SIXTEEN = (QuantType.QInt16, QuantType.QUInt16)
_RECURRENT = ("LSTM", "GRU", "RNN")


def _same(value: Any, kind: Any) -> Any:
    """The value of our enumeration, also where ONNX Runtime's own is given."""
    name = getattr(value, "name", value)
    return value if isinstance(value, kind) else kind.from_string(name)


def _refuse(what: str, hint: str) -> None:
    raise Error(f"octet.quantization: {what}", 2, hint)


def _extra(options: Optional[Dict[str, Any]]) -> bool:
    """Checks extra_options; whether activations are to be symmetric."""
    if options is not None and not isinstance(options, dict):
        raise TypeError(f"extra_options is a dictionary; this is {options!r}")
    given = dict(options or {})
    symmetric = bool(given.pop("ActivationSymmetric", False))
    for name, value in given.items():
        asked = value is False if name == "QuantizeBias" else value not in (None, False, [], {})
        if name in _ELSEWHERE and asked:
            _refuse(f"extra_options[{name!r}] is not done by this call", _ELSEWHERE[name])
        if name not in _ELSEWHERE and name not in _LEFT_TO_OCTET:
            _refuse(f"extra_options[{name!r}] is not known", "octet.convert(...) has the options of qconvert(1)")
    return symmetric


def _of_names(names: Sequence[str]) -> str:
    """What matches nodes of these names: a character that means something in a rule matches as any one."""
    return ",".join("name:" + re.sub(r"[^\w/.:+-]", "?", name) for name in names)


def _check_names(**given: Any) -> None:
    """A text would be taken for a list of letters, and a misplaced argument for names."""
    for name, value in given.items():
        names = None if isinstance(value, (str, bytes)) or not isinstance(value, (list, tuple, set, frozenset)) else value
        if value is not None and (names is None or not all(isinstance(name, str) for name in names)):
            raise TypeError(f"{name} is a list of names, as ['Conv']; this is {value!r}")


def _check_files(model_input: Any, model_output: Any) -> None:
    """The first two arguments: the second is the name of a file, or what a caller meant for another."""
    if not isinstance(model_output, (str, os.PathLike)):
        raise TypeError(f"model_output is the name of the file to write; this is {model_output!r}")
    if model_input is None:
        raise TypeError("model_input is None: give the name of a file or an onnx.ModelProto")


def _rules(scheme: str, op_types: Optional[Sequence[str]], nodes: Optional[Sequence[str]], excluded: Optional[Sequence[str]]) -> List[str]:
    """What stays float."""
    rules = []
    if op_types or nodes:
        rules.append("any=float")
    if op_types and not nodes:
        recurrent = [op for op in op_types if op in _RECURRENT]
        others = [op for op in op_types if op not in _RECURRENT]
        rules += [f"op:{','.join(others)}={scheme}"] if others else []
        rules += [f"op:{','.join(recurrent)}=dynamic"] if recurrent else []
    for name in nodes or []:
        rules.append(f"{_of_names([name])}{' & op:' + ','.join(op_types) if op_types else ''}={scheme}")
    return rules + [f"{_of_names([name])}=float" for name in excluded or []]


def _target(reduce_range: bool) -> str:
    """For which processors: weights that cannot saturate cost a little accuracy, and some need none."""
    return "onnxruntime-x86" if reduce_range else "auto"


def _check_weights(weight_type: Any) -> None:
    kind = _same(weight_type, QuantType)
    if kind in (QuantType.QInt4, QuantType.QUInt4):
        _refuse(f"weights of type {kind} are no form of this call", "octet.convert(model, data, scheme='weight-only', bits=4)")
    if kind not in _EIGHT:
        _refuse(f"weights of type {kind} are not written", "octet.convert(model, scheme='fp16') writes 16-bit floats")


def quantize_static(model_input: Model, model_output: Union[str, "os.PathLike[str]"], calibration_data_reader: Optional[Any] = None,
                    quant_format: Any = QuantFormat.QDQ, op_types_to_quantize: Optional[Sequence[str]] = None, per_channel: bool = False,
                    reduce_range: bool = False, activation_type: Any = QuantType.QInt8, weight_type: Any = QuantType.QInt8,
                    nodes_to_quantize: Optional[Sequence[str]] = None, nodes_to_exclude: Optional[Sequence[str]] = None,
                    use_external_data_format: bool = False, calibrate_method: Any = CalibrationMethod.MinMax,
                    calibration_providers: Optional[Sequence[str]] = None, extra_options: Optional[Dict[str, Any]] = None,
                    calibration_cache_path: Optional[Any] = None) -> Conversion:
    """Quantizes a model to 8 bits by samples.

    model_input: a file or an onnx.ModelProto. calibration_data_reader: has get_next(), as CalibrationDataReader. quant_format: QDQ or QOperator.
    op_types_to_quantize, nodes_to_quantize: all else stays float. nodes_to_exclude: stay float. activation_type: 8 bits of either sign, or 16 bits.
    extra_options: ActivationSymmetric puts zero points in the middle; see the module for what is left to Octet. Raises octet.Error."""
    if calibration_cache_path is not None:
        _refuse("calibration_cache_path is another tool's file", "octet.calibrate(model, data, output='m.calib'), then octet.convert(model, calib='m.calib')")
    return _static(model_input, model_output,
                   StaticQuantConfig(calibration_data_reader, calibrate_method, quant_format, activation_type, weight_type, op_types_to_quantize, nodes_to_quantize,
                                     nodes_to_exclude, per_channel, reduce_range, use_external_data_format, calibration_providers, extra_options))


def _static(model_input: Model, model_output: Any, c: Any) -> Conversion:
    """What a StaticQuantConfig says, which may be ONNX Runtime's. per_channel, use_external_data_format and calibration_providers are not looked at: Octet decides,
    or needs none."""
    _check_files(model_input, model_output)
    _check_names(op_types_to_quantize=c.op_types_to_quantize, nodes_to_quantize=c.nodes_to_quantize, nodes_to_exclude=c.nodes_to_exclude)
    _same(c.calibrate_method, CalibrationMethod)
    if c.calibration_data_reader is None:
        _refuse("there is no calibration_data_reader", "give samples: an object with get_next(), or octet.convert(model, data)")
    kind = _same(c.activation_type, QuantType)
    if kind not in _EIGHT + _SIXTEEN:
        _refuse(f"activations of type {kind} are not written", "octet.convert(model, scheme='fp16') writes 16-bit floats")
    _check_weights(c.weight_type)
    symmetric = _extra(c.extra_options)
    rules = []
    if symmetric or kind in _SIXTEEN:
        rules.append(f"any=- - {'u16' if kind in _SIXTEEN else 'u8'}/tensor/{'sym' if symmetric else 'asym'} -")
    rules += _rules("static", c.op_types_to_quantize, c.nodes_to_quantize, c.nodes_to_exclude)
    form = "qdq" if _same(c.quant_format, QuantFormat) is QuantFormat.QDQ else "qoperator"
    target = getattr(c, "target", None) or ("qnn" if kind in _SIXTEEN else _target(c.reduce_range))
    return convert(model_input, c.calibration_data_reader, output=model_output, target=target, format=form, set=rules or None)


def _chosen(nodes: Any, model: Model) -> Optional[Sequence[str]]:
    """Names of nodes, also where a function of model and node chooses them."""
    if not callable(nodes):
        return nodes
    if isinstance(model, (str, os.PathLike)):
        import onnx # pylint: disable=import-outside-toplevel
        model = onnx.load(os.fspath(model), load_external_data=False)
    return [node.name for node in model.graph.node if nodes(model, node)]


def get_qdq_config(model_input: Model, calibration_data_reader: Any, calibrate_method: Any = CalibrationMethod.MinMax, calibrate_args: Optional[Dict[str, Any]] = None,
                   activation_type: Any = QuantType.QUInt8, weight_type: Any = QuantType.QInt8, activation_symmetric: bool = False,
                   weight_symmetric: Optional[bool] = None, per_channel: bool = False, reduce_range: bool = False, keep_removable_activations: bool = False,
                   min_real_range: Optional[float] = None, tensor_quant_overrides: Optional[Dict[str, Any]] = None,
                   calibration_providers: Optional[Sequence[str]] = None, op_types_to_quantize: Optional[Sequence[str]] = None, nodes_to_exclude: Any = None,
                   extra_options: Optional[Dict[str, Any]] = None) -> "StaticQuantConfig":
    """The configuration of a model with QuantizeLinear and DequantizeLinear, for quantize. nodes_to_exclude: names, or a function of model and node. What
    quantize_static leaves to Octet is left to it here. Raises octet.Error."""
    del calibrate_args, weight_symmetric, keep_removable_activations, min_real_range
    options = {**(extra_options or {}), "ActivationSymmetric": activation_symmetric, "TensorQuantOverrides": tensor_quant_overrides}
    _extra(options)
    return StaticQuantConfig(calibration_data_reader, calibrate_method, QuantFormat.QDQ, activation_type, weight_type, op_types_to_quantize, None,
                             _chosen(nodes_to_exclude, model_input), per_channel, reduce_range, False, calibration_providers, options)


def quantize_dynamic(model_input: Model, model_output: Union[str, "os.PathLike[str]"], op_types_to_quantize: Optional[Sequence[str]] = None,
                     per_channel: bool = False, reduce_range: bool = False, weight_type: Any = QuantType.QInt8,
                     nodes_to_quantize: Optional[Sequence[str]] = None, nodes_to_exclude: Optional[Sequence[str]] = None,
                     use_external_data_format: bool = False, extra_options: Optional[Dict[str, Any]] = None) -> Conversion:
    """Quantizes weights to 8 bits now, and activations when the model runs; there are no samples. Arguments: as of quantize_static. Raises octet.Error."""
    del per_channel, use_external_data_format
    _check_files(model_input, model_output)
    if hasattr(op_types_to_quantize, "get_next"):
        raise TypeError("quantize_dynamic takes no samples: the third argument is op_types_to_quantize; quantize_static reads a reader")
    _check_names(op_types_to_quantize=op_types_to_quantize, nodes_to_quantize=nodes_to_quantize, nodes_to_exclude=nodes_to_exclude)
    _check_weights(weight_type)
    _extra(extra_options)
    rules = _rules("dynamic", op_types_to_quantize, nodes_to_quantize, nodes_to_exclude)
    return convert(model_input, output=model_output, target=_target(reduce_range), scheme=None if rules else "dynamic",
                   set=["any=dynamic", *rules] if rules else None)


class StaticQuantConfig:
    """The arguments of quantize_static, for quantize."""

    target: Optional[str] = None # where the model will run, if quantize is not to choose

    def __init__(self, calibration_data_reader: Any, calibrate_method: Any = CalibrationMethod.MinMax, quant_format: Any = QuantFormat.QDQ,
                 activation_type: Any = QuantType.QInt8, weight_type: Any = QuantType.QInt8, op_types_to_quantize: Optional[Sequence[str]] = None,
                 nodes_to_quantize: Optional[Sequence[str]] = None, nodes_to_exclude: Optional[Sequence[str]] = None, per_channel: bool = False,
                 reduce_range: bool = False, use_external_data_format: bool = False, calibration_providers: Optional[Sequence[str]] = None,
                 extra_options: Optional[Dict[str, Any]] = None) -> None:
        vars(self).update({name: value for name, value in locals().items() if name != "self"})


class DynamicQuantConfig:
    """The arguments of quantize_dynamic, for quantize."""

    def __init__(self, weight_type: Any = QuantType.QInt8, op_types_to_quantize: Optional[Sequence[str]] = None,
                 nodes_to_quantize: Optional[Sequence[str]] = None, nodes_to_exclude: Optional[Sequence[str]] = None, per_channel: bool = False,
                 reduce_range: bool = False, use_external_data_format: bool = False, extra_options: Optional[Dict[str, Any]] = None) -> None:
        vars(self).update({name: value for name, value in locals().items() if name != "self"})


def quantize(model_input: Model, model_output: Union[str, "os.PathLike[str]"], quant_config: Union[StaticQuantConfig, DynamicQuantConfig]) -> Conversion:
    """quantize_static or quantize_dynamic, by the kind of the configuration, which may be of ONNX Runtime's classes. Raises octet.Error."""
    kinds = [of.__name__ for of in type(quant_config).__mro__]
    if "StaticQuantConfig" in kinds:
        return _static(model_input, model_output, quant_config)
    if "DynamicQuantConfig" in kinds:
        return quantize_dynamic(model_input, model_output, **{name: getattr(quant_config, name) for name in inspect.signature(DynamicQuantConfig).parameters})
    raise TypeError(f"quant_config is {type(quant_config).__name__}, no StaticQuantConfig or DynamicQuantConfig")
