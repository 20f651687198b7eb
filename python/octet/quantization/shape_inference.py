"""What prepares a float model, where that is a step of its own."""
import os
from typing import Any, Optional, Union

from .._calls import convert
from .._results import Conversion

Model = Union[str, "os.PathLike[str]", Any] # Any: onnx.ModelProto


def quant_pre_process(input_model: Optional[Model] = None, output_model_path: Optional[Union[str, "os.PathLike[str]"]] = None,
                      skip_optimization: bool = False, skip_onnx_shape: bool = False, skip_symbolic_shape: bool = False, auto_merge: bool = False,
                      int_max: int = 2**31 - 1, guess_output_rank: bool = False, verbose: int = 0, save_as_external_data: bool = False,
                      all_tensors_to_one_file: bool = False, external_data_location: Optional[str] = None, external_data_size_threshold: int = 1024,
                      **deprecated_kwargs: Any) -> Conversion:
    """Writes the float model with shapes, and with nodes folded as a conversion folds them. quantize_static does that itself: the step is not needed. The
    other arguments are accepted, and change nothing: a file has external data where it would exceed 2 GB. Raises octet.Error."""
    del skip_optimization, skip_onnx_shape, skip_symbolic_shape, auto_merge, int_max, guess_output_rank, verbose, save_as_external_data
    del all_tensors_to_one_file, external_data_location, external_data_size_threshold
    given = input_model if input_model is not None else deprecated_kwargs.pop("input_model_path", None)
    if deprecated_kwargs:
        raise TypeError(f"quant_pre_process() got an unexpected argument {next(iter(deprecated_kwargs))!r}")
    if given is None or output_model_path is None:
        raise TypeError("quant_pre_process() needs input_model and output_model_path")
    return convert(given, output=output_model_path, set="any=float")
