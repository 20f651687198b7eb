"""The functions of onnxruntime.quantization.execution_providers.qnn: models for Qualcomm's NPU, whose rules Octet's target qnn holds."""
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from ..calibrate import CalibrationMethod
from ..quant_utils import QuantFormat, QuantType
from ..quantize import Model, StaticQuantConfig, _extra, _refuse


def get_qnn_qdq_config(model_input: Model, calibration_data_reader: Any, calibrate_method: Any = CalibrationMethod.MinMax, activation_type: Any = QuantType.QUInt8,
                       weight_type: Any = QuantType.QUInt8, per_channel: bool = False, init_overrides: Optional[Dict[str, Any]] = None,
                       add_qtype_converts: bool = True, activation_symmetric: bool = False, weight_symmetric: Optional[bool] = None,
                       keep_removable_activations: bool = False, stride: Optional[int] = None, calibration_providers: Optional[Sequence[str]] = None,
                       op_types_to_quantize: Optional[Sequence[str]] = None, nodes_to_exclude: Optional[Sequence[str]] = None) -> StaticQuantConfig:
    """The configuration for quantize, whose target is then qnn. What the target says (types, scales of Sigmoid and Tanh, per_channel) is left to it, and so is
    what quantize_static leaves to Octet. Raises octet.Error."""
    del model_input, add_qtype_converts, weight_symmetric, keep_removable_activations, stride
    options = {"ActivationSymmetric": activation_symmetric, "TensorQuantOverrides": init_overrides}
    _extra(options)
    config = StaticQuantConfig(calibration_data_reader, calibrate_method, QuantFormat.QDQ, activation_type, weight_type, op_types_to_quantize, None, nodes_to_exclude,
                               per_channel, False, False, calibration_providers, options)
    config.target = "qnn"
    return config


def qnn_preprocess_model(model_input: Model, model_output: Union[str, "os.PathLike[str]"], exclude_initializer_from_input: bool = False, fuse_layernorm: bool = False,
                         save_as_external_data: bool = False, all_tensors_to_one_file: bool = False, external_data_location: Optional[str] = None,
                         external_data_size_threshold: int = 1024, external_data_convert_attribute: bool = False,
                         inputs_to_make_channel_last: Optional[List[str]] = None, outputs_to_make_channel_last: Optional[List[str]] = None,
                         dynamic_input_shapes: Optional[List[Tuple[str, str]]] = None) -> bool:
    """Whether the model was changed: no, since a conversion fuses and folds itself; nothing is written. Raises octet.Error for what changes inputs and outputs."""
    del model_input, model_output, exclude_initializer_from_input, fuse_layernorm, save_as_external_data, all_tensors_to_one_file, external_data_location
    del external_data_size_threshold, external_data_convert_attribute
    if inputs_to_make_channel_last or outputs_to_make_channel_last:
        _refuse("inputs and outputs keep their layout", "octet.convert(model, data, target='qnn', input_type='u8', input_layout='nhwc') changes that of pictures")
    if dynamic_input_shapes:
        _refuse("dynamic_input_shapes are not set by this call", "export the model with whole numbers for all dimensions")
    return False
