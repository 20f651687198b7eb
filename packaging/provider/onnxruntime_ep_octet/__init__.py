"""Octet's execution provider for ONNX Runtime, 1.23 and later: quantized layers on kernels that are exact on every CPU.

    import onnxruntime as ort, onnxruntime_ep_octet
    options = ort.SessionOptions()
    options.add_provider_for_devices(onnxruntime_ep_octet.register(), {})
    session = ort.InferenceSession("model.int8.onnx", options)
"""
from pathlib import Path

__all__ = ["ep_name", "library_path", "register"]

ep_name = "OctetExecutionProvider"


def library_path():
    """The plug-in, for register_execution_provider_library, from any language."""
    return str(Path(__file__).with_name("libonnxruntime_ep_octet.so"))


def register(name="octet"):
    """Registers the plug-in with ONNX Runtime if that is not done yet; its devices, for SessionOptions.add_provider_for_devices."""
    import onnxruntime # pylint: disable=import-outside-toplevel # other languages want the path alone
    def devices():
        return [d for d in onnxruntime.get_ep_devices() if d.ep_name == ep_name]
    if not devices():
        onnxruntime.register_execution_provider_library(name, library_path())
    return devices()
