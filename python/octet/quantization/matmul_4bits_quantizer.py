"""Weights in blocks of 4 bits, by the names that onnxruntime.quantization.matmul_4bits_quantizer had until ONNX Runtime 1.21."""
from typing import Any, List, Optional, Sequence, Tuple

from .matmul_nbits_quantizer import (DefaultWeightOnlyQuantConfig, GPTQWeightOnlyQuantConfig, HQQWeightOnlyQuantConfig, MatMulNBitsQuantizer, RTNWeightOnlyQuantConfig,
                                     WeightOnlyQuantConfig)
from .quant_utils import QuantFormat
from .quantize import Model

__all__ = ["DefaultWeightOnlyQuantConfig", "GPTQWeightOnlyQuantConfig", "HQQWeightOnlyQuantConfig", "MatMul4BitsQuantizer", "RTNWeightOnlyQuantConfig", "WeightOnlyQuantConfig"]


class MatMul4BitsQuantizer(MatMulNBitsQuantizer):
    """MatMulNBitsQuantizer without `bits`, in the old order of arguments."""

    def __init__(self, model: Model, block_size: int = 128, is_symmetric: bool = False, accuracy_level: Optional[int] = None,
                 nodes_to_exclude: Optional[Sequence[str]] = None, nodes_to_include: Optional[List[str]] = None, quant_format: Any = QuantFormat.QOperator,
                 op_types_to_quantize: Optional[Sequence[str]] = None, quant_axes: Optional[Sequence[Tuple[str, int]]] = None,
                 algo_config: Optional[WeightOnlyQuantConfig] = None) -> None:
        super().__init__(model, 4, block_size, is_symmetric, accuracy_level, nodes_to_exclude, nodes_to_include, quant_format, op_types_to_quantize, quant_axes,
                         algo_config=algo_config)
