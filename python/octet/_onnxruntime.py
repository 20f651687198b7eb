"""The provider for ONNX Runtime."""
import ctypes
import os
from pathlib import Path
from typing import Any, List

PROVIDER = "OctetExecutionProvider"


def _provider():
    """The absolute path of the provider: ONNX Runtime looks for another one in its own folder."""
    name = "libonnxruntime_ep_octet.so"
    if given := os.environ.get("OCTET_PROVIDER"):
        return os.path.abspath(given)
    inside = Path(__file__).with_name(name)
    if inside.exists():
        return str(inside)
    ctypes.CDLL(name) # the system's: its place is known once it is loaded
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return next(line.split(maxsplit=5)[5].strip() for line in maps if name in line)


def onnxruntime_devices() -> List[Any]:
    """The devices of the provider for ONNX Runtime, for SessionOptions.add_provider_for_devices. Registers it if that is not done yet: the library that
    OCTET_PROVIDER names, the one in the package, or the system's."""
    import onnxruntime # type: ignore # pylint: disable=import-outside-toplevel # most users of this module need none
    def devices():
        return [d for d in onnxruntime.get_ep_devices() if d.ep_name == PROVIDER]
    if not devices():
        onnxruntime.register_execution_provider_library("octet", _provider())
    return devices()
