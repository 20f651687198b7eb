"""quant_pre_process as a command: python -m octet.quantization.preprocess --input model.onnx --output prepared.onnx"""
import argparse
import sys

from .._call import Error
from .shape_inference import quant_pre_process

__all__ = ["quant_pre_process"]
# Accepted, as by the function.
_FLAGS = ("skip_optimization", "skip_onnx_shape", "skip_symbolic_shape", "auto_merge", "guess_output_rank", "save_as_external_data",
          "all_tensors_to_one_file")


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m octet.quantization.preprocess",
                                     description="Writes the float model with shapes, and with nodes folded. quantize_static does that itself.")
    parser.add_argument("--input", required=True, help="the float model")
    parser.add_argument("--output", required=True, help="the file to write")
    for name in _FLAGS:
        parser.add_argument(f"--{name}", nargs="?", const=True, help=argparse.SUPPRESS)
    for name in ("int_max", "verbose", "external_data_location", "external_data_size_threshold"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    args = parser.parse_args()
    try:
        print(quant_pre_process(args.input, args.output).text)
    except Error as e:
        print(f"{parser.prog}: {e}", file=sys.stderr)
        return e.status
    return 0


if __name__ == "__main__":
    sys.exit(main())
