"""Octet: post-training quantization of ONNX models, and running them. A thin module over liboctet.

    import octet
    octet.convert("model.onnx", data="samples.npz", output="model.int8.onnx")
    report = octet.evaluate("model.onnx", "model.int8.onnx", data="samples.npz")
    y = octet.Model("model.int8.onnx")(x)[0]

convert, calibrate and evaluate take what the commands qconvert, qcalib and qeval take: files in their order, options by their names with _ for -,
True and False for what has no value, lists for what may be repeated. Samples may be NumPy arrays: data=x or data={"input": x}. They return the
command's JSON report as a dictionary; a fault is an octet.Error with .status, .hint and, of a missed goal, .report.
"""
import ctypes
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

__all__ = ["Error", "Model", "calibrate", "convert", "evaluate", "version"]

RANK = 8
GOAL = 1
TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16,
         11: np.float64, 12: np.uint32, 13: np.uint64}
NUMBERS = {np.dtype(t): n for n, t in TYPES.items()}


class Array(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("rank", ctypes.c_int), ("dims", ctypes.c_int64 * RANK),
                ("data", ctypes.c_void_p)]


class Port(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("rank", ctypes.c_int), ("dims", ctypes.c_int64 * RANK)]


PROGRESS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)
MESSAGE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)


def _open():
    """The library: that of OCTET_LIBRARY, the one in the package, or the system's."""
    inside = Path(__file__).with_name("liboctet.so")
    lib = ctypes.CDLL(os.environ.get("OCTET_LIBRARY") or (str(inside) if inside.exists() else "liboctet.so.0"))
    text, place, model = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p
    words = ctypes.POINTER(text)
    for name, result, *arguments in (
            ("octet_version", text), ("octet_open", place), ("octet_close", None, place), ("octet_error", text, place),
            ("octet_hint", text, place), ("octet_report", text, place), ("octet_text", text, place),
            ("octet_on_progress", None, place, PROGRESS, ctypes.c_void_p), ("octet_on_message", None, place, MESSAGE, ctypes.c_void_p),
            ("octet_calibrate", ctypes.c_int, place, words), ("octet_convert", ctypes.c_int, place, words),
            ("octet_evaluate", ctypes.c_int, place, words),
            ("octet_model_load", ctypes.c_int, place, text, ctypes.c_int, ctypes.POINTER(model)),
            ("octet_model_free", None, model), ("octet_model_input", ctypes.POINTER(Port), model, ctypes.c_size_t),
            ("octet_model_output", ctypes.POINTER(Port), model, ctypes.c_size_t), ("octet_model_metadata", text, model, text),
            ("octet_model_run", ctypes.c_int, place, model, ctypes.POINTER(Array), ctypes.c_size_t,
             ctypes.POINTER(ctypes.POINTER(Array)), ctypes.POINTER(ctypes.c_size_t))):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


_lib = _open()


def version():
    """That of the library."""
    return _lib.octet_version().decode()


class Error(Exception):
    """A call that failed. status: the command's exit code; hint: what to do, or ""; report: of a goal that is not met, else None."""

    def __init__(self, text, status, hint, report=None):
        super().__init__(text)
        self.status, self.hint, self.report = status, hint, report

    def __str__(self):
        return super().__str__() + (f"\n  hint: {self.hint}" if self.hint else "")


class _Place:
    """An `octet` of the library, for one call or one model."""

    def __init__(self):
        self.at = _lib.octet_open()
        if not self.at:
            raise MemoryError

    def __enter__(self):
        return self

    def __exit__(self, *_):
        _lib.octet_close(self.at)

    def fault(self, status, report=None):
        return Error(_lib.octet_error(self.at).decode(), status, _lib.octet_hint(self.at).decode(), report)


def _samples(value, folder):
    """A data option: arrays become a file."""
    if isinstance(value, np.ndarray):
        path = Path(folder, "samples.npy")
        np.save(path, value)
        return str(path)
    if isinstance(value, dict):
        path = Path(folder, "samples.npz")
        np.savez(path, **value)
        return str(path)
    return value


def _words(files, options, folder):
    words = [os.fspath(f) for f in files]
    for name, value in options.items():
        name = name.replace("_", "-")
        if name == "data":
            value = _samples(value, folder)
        if isinstance(value, bool) or value is None:
            words += [f"--{name}"] if value else [] if value is None else [f"--no-{name}"]
            continue
        for one in value if isinstance(value, (list, tuple)) else [value]:
            words.append(f"--{name}={os.fspath(one) if isinstance(one, os.PathLike) else one}")
    return words


def _warn(_, is_warning, text):
    if is_warning:
        print(f"octet: warning: {text.decode()}", file=sys.stderr)


def _command(function, files, options):
    progress = options.pop("progress", None)
    told = MESSAGE(_warn)
    shown = PROGRESS(lambda _, what, done, total: progress(what.decode(), done, total)) if progress else PROGRESS()
    with tempfile.TemporaryDirectory(prefix="octet-") as folder, _Place() as place:
        words = [w.encode() for w in _words(files, options, folder)]
        _lib.octet_on_message(place.at, told, None)
        _lib.octet_on_progress(place.at, shown, None)
        status = function(place.at, (ctypes.c_char_p * (len(words) + 1))(*words, None))
        text = _lib.octet_report(place.at).decode()
        report = json.loads(text) if text else None
        if status:
            raise place.fault(status, report)
        return report


def calibrate(model, *, data, output, **options):
    """Writes a calibration table; qcalib(1)."""
    return _command(_lib.octet_calibrate, [model], {"data": data, "output": output} | options)


def convert(model, **options):
    """Converts a model; qconvert(1). progress=f: f(what, done, total) is called on the way."""
    return _command(_lib.octet_convert, [model], options)


def evaluate(model, *others, data, **options):
    """Compares models with the first over samples; qeval(1)."""
    return _command(_lib.octet_evaluate, [model, *others], {"data": data} | options)


def _port(p):
    """(name, NumPy type or ONNX's number, shape with None for what is free, or None)."""
    dims = None if p.rank < 0 else tuple(d if d >= 0 else None for d in p.dims[:p.rank])
    return p.name.decode(), TYPES.get(p.type, p.type), dims


class Model:
    """A model that runs on arrays: Model("m.onnx")(x, ...) or (name=x), gives a list of outputs. For one thread at a time."""

    def __init__(self, path, threads=0):
        self._place, self._at = _Place(), ctypes.c_void_p()
        status = _lib.octet_model_load(self._place.at, os.fsencode(path), threads, ctypes.byref(self._at))
        if status:
            with self._place as place:
                fault = place.fault(status)
            self._place = None
            raise fault

    def __del__(self):
        if getattr(self, "_place", None):
            _lib.octet_model_free(self._at)
            _lib.octet_close(self._place.at)

    def _ports(self, function):
        found, i = [], 0
        while p := function(self._at, i):
            found.append(_port(p.contents))
            i += 1
        return found

    @property
    def inputs(self):
        """[(name, type, shape)]"""
        return self._ports(_lib.octet_model_input)

    @property
    def outputs(self):
        """[(name, type, shape)]"""
        return self._ports(_lib.octet_model_output)

    def metadata(self, key):
        """An entry of the model's metadata, or None."""
        text = _lib.octet_model_metadata(self._at, key.encode())
        return None if text is None else text.decode()

    def __call__(self, *arrays, **named):
        given = [(None, a) for a in arrays] + [(k.encode(), a) for k, a in named.items()]
        held = [np.require(a, requirements="C") for _, a in given]
        fed = (Array * max(1, len(given)))()
        for f, (name, _), a in zip(fed, given, held):
            if a.dtype not in NUMBERS or a.ndim > RANK:
                raise TypeError(f"arrays of type {a.dtype} and rank {a.ndim} cannot be given")
            f.name, f.type, f.rank, f.data = name, NUMBERS[a.dtype], a.ndim, a.ctypes.data
            f.dims[:a.ndim] = a.shape
        out, n = ctypes.POINTER(Array)(), ctypes.c_size_t()
        status = _lib.octet_model_run(self._place.at, self._at, fed, len(given), ctypes.byref(out), ctypes.byref(n))
        if status:
            raise self._place.fault(status)
        return [_copy(out[i]) for i in range(n.value)]


def _copy(a):
    """An output, which the library keeps until the next run, as an array of its own."""
    if a.type not in TYPES:
        raise TypeError(f"output '{a.name.decode()}' has ONNX's type {a.type}, which NumPy lacks")
    shape, kind = tuple(a.dims[:a.rank]), np.dtype(TYPES[a.type])
    count = int(np.prod(shape, dtype=np.int64))
    raw = ctypes.string_at(a.data, count * kind.itemsize)
    return np.frombuffer(raw, kind, count).reshape(shape).copy()
