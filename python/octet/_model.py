"""A model that runs on arrays."""
import ctypes
import operator
import os
import threading
from typing import Any, List, Optional, Tuple

import numpy as np

from . import _inputs as inputs
from ._call import Place
from ._library import Array, lib, to_bytes, to_text


def _port(p):
    """(name, NumPy type or ONNX's number, shape with None for what is free, or None)."""
    dims = None if p.rank < 0 else tuple(d if d >= 0 else None for d in p.dims[:p.rank])
    return to_text(p.name), inputs.TYPES.get(p.type, p.type), dims


class Model:
    """A model that runs on arrays.

    Model("m.onnx")(x, ...) takes arrays in the order of the model's inputs, or (name=x) by their names, of the shapes and types of `inputs`, and returns a
    list of arrays, one for each of `outputs`. A model is the name of a file, an onnx.ModelProto, or bytes. threads: how many run it; 0: one for each
    processor. Threads that call one Model take turns. A copy, also one that is sent to another process, loads the model again. Raises Error."""

    def __init__(self, path: Any, threads: int = 0) -> None:
        self._place: Any = None # for __del__, if the next lines raise
        self._content = inputs.content_of(path) # the library reads it as long as the model lives
        self._path, self._threads = None if self._content is not None else os.path.abspath(inputs.file_of(path)), threads
        at = ctypes.c_void_p()
        count = ctypes.c_int(max(-1, min(operator.index(threads), 1 << 30))) # c_int would take the low bits alone
        place = Place()
        if self._content is not None:
            status = lib.octet_model_load_memory(place.at, ctypes.cast(ctypes.c_char_p(self._content), ctypes.c_void_p), len(self._content), count,
                                                 ctypes.byref(at))
        else:
            status = lib.octet_model_load(place.at, to_bytes(inputs.file_of(path)), count, ctypes.byref(at))
        if status:
            with place:
                raise place.fault(status)
        self._place, self._at = place, at
        self._turn, self._process = threading.Lock(), os.getpid()

    def __del__(self):
        if getattr(self, "_place", None):
            lib.octet_model_free(self._at)
            self._place.close()

    def __reduce__(self):
        return type(self), (self._path if self._content is None else self._content, self._threads)

    def _ports(self, function):
        found, i = [], 0
        while p := function(self._at, i):
            found.append(_port(p.contents))
            i += 1
        return found

    @property
    def inputs(self) -> List[Tuple[str, Any, Optional[Tuple[Optional[int], ...]]]]:
        """[(name, type, shape)]: NumPy's type, or ONNX's number where there is none; None in place of a dimension that is free, and of a shape that is not
        known."""
        return self._ports(lib.octet_model_input)

    @property
    def outputs(self) -> List[Tuple[str, Any, Optional[Tuple[Optional[int], ...]]]]:
        """The same of the outputs."""
        return self._ports(lib.octet_model_output)

    def metadata(self, key: str) -> Optional[str]:
        """An entry of the model's metadata, or None."""
        text = lib.octet_model_metadata(self._at, to_bytes(key))
        return None if text is None else to_text(text)

    def __call__(self, *arrays: Any, **named: Any) -> List[np.ndarray]:
        given = [(None, a) for a in arrays] + [(to_bytes(k), a) for k, a in named.items()]
        held = [inputs.held(a) for _, a in given]
        fed = (Array * max(1, len(given)))()
        for f, (name, _), a in zip(fed, given, held):
            f.name = name
            inputs.fill(f, a)
        if self._process != os.getpid(): # who held the lock when the process was forked is not here
            self._turn, self._process = threading.Lock(), os.getpid()
        with self._turn:
            out, n = ctypes.POINTER(Array)(), ctypes.c_size_t()
            status = lib.octet_model_run(self._place.at, self._at, fed, len(given), ctypes.byref(out), ctypes.byref(n))
            if status:
                raise self._place.fault(status)
            return [_copy(out[i]) for i in range(n.value)]


def _copy(a):
    """An output, which the library keeps until the next run, as an array of its own."""
    if a.type not in inputs.TYPES:
        raise TypeError(f"output '{to_text(a.name)}' has ONNX's type {a.type}, which NumPy lacks")
    own = np.empty(tuple(a.dims[:a.rank]), inputs.TYPES[a.type])
    ctypes.memmove(own.ctypes.data, a.data, own.nbytes)
    return own
