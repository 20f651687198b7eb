"""Weights in blocks of 4 or 8 bits, by the classes of onnxruntime.quantization.matmul_nbits_quantizer.

The algorithms are Octet's: rounding that searches the scale of each block, and GPTQ where the configuration has samples. What asks for another algorithm, or for
weights that Octet writes in another way, raises octet.Error, whose hint says how octet.convert does it."""
import os
from typing import Any, List, Optional, Sequence, Tuple, Union

from .._calls import convert
from .._results import Conversion
from .quant_utils import QuantFormat
from .quantize import Model, _check_names, _refuse, _rules, _same

_BLOCKS = (16, 32, 64, 128, 256)
_LEVELS = {None: 0, 0: 0, 1: 0, 4: 4} # 0 and 1 leave activations float32
_AXES = {"MatMul": 0, "Gather": 1}


class WeightOnlyQuantConfig:
    """What is common to the configurations."""

    def __init__(self, algorithm: str, quant_format: Any = QuantFormat.QOperator, op_types_to_quantize: Optional[Sequence[str]] = None,
                 quant_axes: Optional[Sequence[Tuple[str, int]]] = None, customized_weight_config: Optional[dict] = None) -> None:
        self.algorithm, self.quant_format, self.op_types_to_quantize, self.quant_axes = algorithm, quant_format, op_types_to_quantize, quant_axes
        self.bits, self.block_size, self.is_symmetric, self.accuracy_level, self.calibration_data_reader = 4, 32, False, None, None
        if customized_weight_config:
            _refuse("customized_weight_config is another tool's dictionary", "give rules for layers: octet.convert(model, scheme='weight-only', set=['name:/head/*=float'])")


class DefaultWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Rounding, without samples."""

    def __init__(self, block_size: int = 128, is_symmetric: bool = False, accuracy_level: Optional[int] = None, quant_format: Any = QuantFormat.QOperator,
                 op_types_to_quantize: Optional[Sequence[str]] = None, quant_axes: Optional[Sequence[Tuple[str, int]]] = None, bits: int = 4,
                 channel_wised_quantize: bool = False) -> None:
        super().__init__("DEFAULT", quant_format, op_types_to_quantize, quant_axes)
        self.block_size, self.is_symmetric, self.accuracy_level, self.bits, self.channel_wised_quantize = block_size, is_symmetric, accuracy_level, bits, channel_wised_quantize


class RTNWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """The same: rounding, without samples."""

    def __init__(self, ratios: Optional[dict] = None, quant_format: Any = QuantFormat.QOperator, op_types_to_quantize: Optional[Sequence[str]] = None,
                 customized_weight_config: Optional[dict] = None) -> None:
        del ratios # of a search for clipping, which Octet does for each block
        super().__init__("RTN", quant_format, op_types_to_quantize, None, customized_weight_config)


class GPTQWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Rounding that compensates errors, by samples."""

    def __init__(self, calibration_data_reader: Any = None, percdamp: float = 0.01, block_size: int = 128, actorder: bool = False, mse: bool = False,
                 perchannel: bool = True, quant_format: Any = QuantFormat.QOperator, op_types_to_quantize: Optional[Sequence[str]] = None) -> None:
        del percdamp, actorder, mse, perchannel # how GPTQ works inside
        super().__init__("GPTQ", quant_format, op_types_to_quantize)
        if calibration_data_reader is None:
            _refuse("GPTQ needs a calibration_data_reader", "give samples, or DefaultWeightOnlyQuantConfig() rounds without them")
        self.calibration_data_reader, self.block_size = calibration_data_reader, block_size


class HQQWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Not done."""

    def __init__(self, *unused: Any, **others: Any) -> None: # pylint: disable=super-init-not-called
        del unused, others
        _refuse("HQQ is not done", "octet.convert(model, samples, scheme='weight-only') is GPTQ; DefaultWeightOnlyQuantConfig() needs no samples")


class KQuantWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Not done."""

    def __init__(self, *unused: Any, **others: Any) -> None: # pylint: disable=super-init-not-called
        del unused, others
        _refuse("k-quants are not done", "octet.convert(model, target_bits=4.5) chooses 4 or 8 bits for each layer")


class NVAWQWeightOnlyQuantConfig(WeightOnlyQuantConfig):
    """Not done."""

    def __init__(self, *unused: Any, **others: Any) -> None: # pylint: disable=super-init-not-called
        del unused, others
        _refuse("AWQ is not done", "octet.convert(model, samples, scheme='weight-only') is GPTQ")


class QuantizedModel:
    """What MatMulNBitsQuantizer.model is after process()."""

    def __init__(self, model: Model, options: dict) -> None:
        self._model, self._options, self._proto = model, options, None
        self.conversion: Optional[Conversion] = None

    @property
    def model(self) -> Any:
        """The quantized onnx.ModelProto."""
        if self._proto is None:
            import onnx # pylint: disable=import-outside-toplevel
            self.conversion = convert(self._model, in_memory=True, **self._options)
            self._proto = onnx.load_from_string(self.conversion.model)
        return self._proto

    def save_model_to_file(self, output_path: Union[str, "os.PathLike[str]"], use_external_data_format: bool = False) -> Conversion:
        """Converts the model into a file; one of more than 2 GB has its data beside it, whatever is asked for."""
        del use_external_data_format
        self.conversion = convert(self._model, output=output_path, **self._options)
        return self.conversion


class MatMulNBitsQuantizer:
    """Arguments as in onnxruntime.quantization.matmul_nbits_quantizer. process() checks them; model.save_model_to_file(NAME) converts, and model.model gives the
    onnx.ModelProto. bits: 4 or 8; block_size: 16 to 256. Raises octet.Error."""

    def __init__(self, model: Model, bits: int = 4, block_size: int = 128, is_symmetric: bool = False, accuracy_level: Optional[int] = None,
                 nodes_to_exclude: Optional[Sequence[str]] = None, nodes_to_include: Optional[List[str]] = None, quant_format: Any = QuantFormat.QOperator,
                 op_types_to_quantize: Optional[Sequence[str]] = None, quant_axes: Optional[Sequence[Tuple[str, int]]] = None,
                 channel_wised_quantize: bool = False, algo_config: Optional[WeightOnlyQuantConfig] = None) -> None:
        self.model_path, self.nodes_to_exclude, self.nodes_to_include = model, nodes_to_exclude, nodes_to_include
        self.algo_config = algo_config or DefaultWeightOnlyQuantConfig(block_size, is_symmetric, accuracy_level, quant_format, op_types_to_quantize, quant_axes, bits,
                                                                       channel_wised_quantize)
        self.model: Any = None

    def process(self) -> None:
        """Checks what is asked for; then `model` can be saved."""
        a = self.algo_config
        if not isinstance(a, WeightOnlyQuantConfig):
            raise TypeError(f"algo_config is {type(a).__name__}: take a configuration of octet.quantization.matmul_nbits_quantizer")
        _check_names(nodes_to_exclude=self.nodes_to_exclude, nodes_to_include=self.nodes_to_include, op_types_to_quantize=a.op_types_to_quantize)
        if a.bits not in (4, 8):
            _refuse(f"{a.bits} bits are not written", "4 and 8 are; octet.convert(model, target_bits=4.5) mixes them")
        if a.block_size not in _BLOCKS:
            _refuse(f"blocks of {a.block_size} weights are not written", f"block_size is one of {', '.join(map(str, _BLOCKS))}")
        if a.accuracy_level not in _LEVELS:
            _refuse(f"accuracy_level {a.accuracy_level} is not written", "0 keeps activations float32, 4 lets the runtime round them to 8 bits")
        if getattr(a, "channel_wised_quantize", False):
            _refuse("channel_wised_quantize is not done by this call", "octet.convert(model, scheme='stored') writes weights of 8 bits with a scale for each channel")
        if any(_AXES.get(op, axis) != axis for op, axis in a.quant_axes or ()):
            _refuse(f"quant_axes {a.quant_axes!r} are not written", f"blocks lie along these: {_AXES!r}")
        rules = _rules("weight-only", a.op_types_to_quantize, self.nodes_to_include, self.nodes_to_exclude)
        form = "qdq" if _same(a.quant_format, QuantFormat) is QuantFormat.QDQ else None
        self.model = QuantizedModel(self.model_path, {"scheme": "weight-only", "bits": a.bits, "block_size": a.block_size, "symmetric": a.is_symmetric or None,
                                                      "accuracy_level": _LEVELS[a.accuracy_level], "format": form, "set": rules or None,
                                                      "data": a.calibration_data_reader})
