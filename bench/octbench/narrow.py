"""ONNX Runtime without AVX-512, on a CPU that has it: a copy of the installed library, never of anything else, whose reads of the register that says
which vector state the system saves (xgetbv) answer: AVX, no more. Its kernels are then those of a CPU with AVX2. It knows no option for that.

Import this before onnxruntime, and call narrow()."""
import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path

XGETBV = b"\x0f\x01\xd0"
ANSWER = b"\xb0\x07\x90"  # mov $7, %al; nop: x87, SSE and AVX state; AVX-512's three bits clear
# A read: ecx is cleared before it, or what follows joins edx and eax. The same bytes stand inside of other instructions, too.
BEFORE, AFTER = b"\x31\xc9", b"\x48\xc1\xe2\x20"


def _patched(code):
    code, at, found = bytearray(code), -1, 0
    while (at := code.find(XGETBV, at + 1)) >= 0:
        if code[at - 2:at] == BEFORE or code[at + 3:at + 7] == AFTER:
            code[at:at + 3] = ANSWER
            found += 1
    if not found:
        sys.exit("onnxruntime: its library reads no vector state where it is looked for; it cannot be narrowed")
    return bytes(code)


def narrow(folder=None):
    """Lets `import onnxruntime` find a narrowed copy, in a folder that goes at the end."""
    installed = Path(importlib.util.find_spec("onnxruntime").origin).parent
    folder = Path(folder or tempfile.mkdtemp(prefix="octet-narrow-"))
    shutil.copytree(installed, folder / "onnxruntime", dirs_exist_ok=True)
    for library in (folder / "onnxruntime" / "capi").glob("onnxruntime_pybind11_state*.so"):
        library.write_bytes(_patched(library.read_bytes()))
    sys.path.insert(0, str(folder))
    import atexit
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return os.fspath(folder)
