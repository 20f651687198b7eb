"""Octet: post-training quantization of ONNX models, and running them. A thin module over liboctet.

    import octet
    octet.convert("model.onnx", data="samples.npz", output="model.int8.onnx")
    report = octet.evaluate("model.onnx", "model.int8.onnx", data="samples.npz")
    y = octet.Model("model.int8.onnx")(x)[0]

convert, calibrate and evaluate take what the commands qconvert, qcalib and qeval take: files in their order, options by their names with _ for -,
True and False for what has no value, lists for what may be repeated. Samples may be NumPy arrays: data=x or data={"input": x}. They return the
command's JSON report as a dictionary; a fault is an octet.Error with .status, .hint and, of a missed goal, .report.

Names of files are names and nothing else, whatever they begin with. Samples from the output of a command are data=octet.Pipe("tar c photos").

onnxruntime_devices() gives the provider for ONNX Runtime: options.add_provider_for_devices(octet.onnxruntime_devices(), {}).

progress=f: f(what, done, total) is called on the way. What it raises, and Ctrl-C, end the call and are raised from it; no file is left half written.
"""
import contextvars
import ctypes
import json
import operator
import os
import sys
import tempfile
import threading
import zipfile
from pathlib import Path

import numpy as np
from numpy import ma # here: a child must not find it half imported

__all__ = ["Error", "Model", "Pipe", "calibrate", "convert", "evaluate", "onnxruntime_devices", "version"]

RANK = 8
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
            ("octet_version", text), ("octet_open", place), ("octet_close", None, place), ("octet_stop", None, place), ("octet_error", text, place),
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

    def __reduce__(self):
        return type(self), (self.args[0], self.status, self.hint, self.report)


class Pipe:
    """Samples that a shell command writes to its standard output, as the commands' pipe:CMD."""

    def __init__(self, command):
        self.command = command

    def __repr__(self):
        return f"Pipe({self.command!r})"


def _bytes(text):
    """A text for C, where it ends at the first NUL: one that holds a NUL would become another text."""
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    if b"\0" in raw:
        raise ValueError(f"{text!r} has a NUL in it")
    return raw


def _text(raw):
    """A name of a file, in which any byte may be."""
    return raw.decode("utf-8", "surrogateescape")


def _name(path):
    """The name of a file, in a form that cannot be read as an option, a command of the tool or of the shell, or a stream."""
    path = os.fspath(path)
    name = os.fsdecode(path) if isinstance(path, bytes) else path
    word = name and "/" not in name and (":" in name or "." not in name)
    return f"./{name}" if word or name.startswith("-") else name


class _Place:
    """An `octet` of the library, for one call or one model."""

    def __init__(self):
        self.at = _lib.octet_open()
        if not self.at:
            raise MemoryError

    def close(self):
        at, self.at = self.at, None
        _lib.octet_close(at)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def fault(self, status, report=None):
        return Error(_lib.octet_error(self.at).decode("utf-8", "replace"), status, _lib.octet_hint(self.at).decode("utf-8", "replace"), report)


def _plain(x):
    """An array without hidden values."""
    if isinstance(x, ma.MaskedArray):
        if ma.is_masked(x):
            raise TypeError("a masked array has values that are hidden; give x.filled(value) or x.compressed()")
        x = x.data
    x = np.asarray(x)
    if x.dtype.hasobject:
        raise TypeError(f"arrays of type {x.dtype} cannot be given")
    return x


def _samples(value, folder):
    """A data option: arrays become a file."""
    path = Path(folder, f"samples{len(os.listdir(folder))}")
    if isinstance(value, Pipe):
        return f"pipe:{value.command}"
    if isinstance(value, np.ndarray):
        path = path.with_suffix(".npy")
        np.save(path, _plain(value))
        return str(path)
    if isinstance(value, dict):
        path = path.with_suffix(".npz")
        with zipfile.ZipFile(path, "w") as out: # savez takes names as its own parameters
            for name, x in value.items():
                with out.open(f"{name}.npy", "w", force_zip64=True) as f:
                    np.lib.format.write_array(f, _plain(x), allow_pickle=False)
        return str(path)
    name = os.fsdecode(value) if isinstance(value, (bytes, os.PathLike)) else value
    return f"./{name}" if isinstance(name, str) and name.startswith("pipe:") else name


def _words(files, options, folder):
    words = [_name(f) for f in files]
    for name, value in options.items():
        name = name.replace("_", "-")
        if isinstance(value, bool) or value is None:
            words += [f"--{name}"] if value else [] if value is None else [f"--no-{name}"]
            continue
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if name == "data":
                one = _samples(one, folder)
            words.append(f"--{name}={os.fsdecode(one) if isinstance(one, (bytes, os.PathLike)) else one}")
    return [_bytes(w) for w in words]


def _warn(_, is_warning, text):
    if is_warning:
        print(f"octet: warning: {text.decode('utf-8', 'replace')}", file=sys.stderr)


class _Call:
    """A call whose callbacks may raise, and which Ctrl-C ends: Python runs the handlers of signals in the main thread alone, between its own instructions. So
    there the library works in a thread of its own."""

    def __init__(self, place):
        self.place, self.raised = place, None

    def guard(self, function):
        def guarded(*arguments):
            if self.raised is None:
                try:
                    function(*arguments)
                except BaseException as e: # pylint: disable=broad-exception-caught
                    self.stop(e)
        return guarded

    def stop(self, why):
        self.raised = self.raised or why
        _lib.octet_stop(self.place.at)

    def run(self, function, *arguments):
        """The status. Raises what a callback has raised, or a handler of a signal, after the call has ended."""
        if threading.current_thread() is not threading.main_thread():
            status = function(self.place.at, *arguments)
        else:
            status = self._run_beside(function, arguments)
        if self.raised is not None:
            raise self.raised
        return status

    def _run_beside(self, function, arguments):
        result, done = [], threading.Event()

        def work():
            try:
                result.append(function(self.place.at, *arguments))
            finally:
                done.set()

        thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), name="octet", daemon=True)
        try:
            thread.start() # it waits for the thread, and a signal may come meanwhile
        except RuntimeError as e:
            if thread.ident is None: # there is no thread
                raise
            self.stop(e)
        except BaseException as e: # pylint: disable=broad-exception-caught
            self.stop(e)
        while True:
            try:
                while not done.wait(0.05 if self.raised is not None else None):
                    _lib.octet_stop(self.place.at) # again: the call may have begun after it was first asked to stop
                break
            except BaseException as e: # pylint: disable=broad-exception-caught
                self.stop(e)
        thread.join()
        return result[0]


# tempfile takes a lock of its own when it is first used. A process forked meanwhile would wait for it without end: a fork waits until no thread is in there.
_making = threading.RLock()
os.register_at_fork(before=_making.acquire, after_in_parent=_making.release, after_in_child=_making.release)


def _folder():
    with _making:
        return tempfile.TemporaryDirectory(prefix="octet-")


def _command(function, files, options):
    progress = options.pop("progress", None)
    with _folder() as folder, _Place() as place:
        call = _Call(place)
        told = MESSAGE(call.guard(_warn))
        shown = PROGRESS(call.guard(lambda _, what, done, total: progress(what.decode(), done, total))) if progress else PROGRESS()
        words = _words(files, options, folder)
        _lib.octet_on_message(place.at, told, None)
        _lib.octet_on_progress(place.at, shown, None)
        status = call.run(function, (ctypes.c_char_p * (len(words) + 1))(*words, None))
        text = _lib.octet_report(place.at).decode()
        report = json.loads(text) if text else None
        if status:
            raise place.fault(status, report)
        return report


def calibrate(model, *, data, output, **options):
    """Writes a calibration table; qcalib(1)."""
    return _command(_lib.octet_calibrate, [model], {"data": data, "output": output} | options)


def convert(model, **options):
    """Converts a model; qconvert(1). onnxruntime_devices() gives the provider for ONNX Runtime: options.add_provider_for_devices(octet.onnxruntime_devices(), {}).

progress=f: f(what, done, total) is called on the way."""
    return _command(_lib.octet_convert, [model], options)


def evaluate(model, *others, data, **options):
    """Compares models with the first over samples; qeval(1)."""
    return _command(_lib.octet_evaluate, [model, *others], {"data": data} | options)


def _port(p):
    """(name, NumPy type or ONNX's number, shape with None for what is free, or None)."""
    dims = None if p.rank < 0 else tuple(d if d >= 0 else None for d in p.dims[:p.rank])
    return _text(p.name), TYPES.get(p.type, p.type), dims


class Model:
    """A model that runs on arrays: Model("m.onnx")(x, ...) or (name=x), gives a list of outputs. Threads take turns. A copy, also one that is sent to another
    process, loads the file again."""

    def __init__(self, path, threads=0):
        self._place = None # for __del__, if the next lines raise
        self._path, self._threads = os.path.abspath(path), threads
        name, at = _bytes(os.fspath(path)), ctypes.c_void_p()
        count = ctypes.c_int(max(-1, min(operator.index(threads), 1 << 30))) # c_int would take the low bits alone
        place = _Place()
        status = _lib.octet_model_load(place.at, name, count, ctypes.byref(at))
        if status:
            with place:
                raise place.fault(status)
        self._place, self._at = place, at
        self._turn, self._process = threading.Lock(), os.getpid()

    def __del__(self):
        if getattr(self, "_place", None):
            _lib.octet_model_free(self._at)
            self._place.close()

    def __reduce__(self):
        return type(self), (self._path, self._threads)

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
        text = _lib.octet_model_metadata(self._at, _bytes(key))
        return None if text is None else _text(text)

    def __call__(self, *arrays, **named):
        given = [(None, a) for a in arrays] + [(_bytes(k), a) for k, a in named.items()]
        held = [np.require(_plain(a), requirements=["C", "A"]) for _, a in given]
        fed = (Array * max(1, len(given)))()
        for f, (name, _), a in zip(fed, given, held):
            if a.dtype not in NUMBERS or a.ndim > RANK:
                raise TypeError(f"arrays of type {a.dtype} and rank {a.ndim} cannot be given")
            f.name, f.type, f.rank, f.data = name, NUMBERS[a.dtype], a.ndim, a.ctypes.data
            f.dims[:a.ndim] = a.shape
        if self._process != os.getpid(): # who held the lock when the process was forked is not here
            self._turn, self._process = threading.Lock(), os.getpid()
        with self._turn:
            out, n = ctypes.POINTER(Array)(), ctypes.c_size_t()
            status = _lib.octet_model_run(self._place.at, self._at, fed, len(given), ctypes.byref(out), ctypes.byref(n))
            if status:
                raise self._place.fault(status)
            return [_copy(out[i]) for i in range(n.value)]


def _copy(a):
    """An output, which the library keeps until the next run, as an array of its own."""
    if a.type not in TYPES:
        raise TypeError(f"output '{_text(a.name)}' has ONNX's type {a.type}, which NumPy lacks")
    shape, kind = tuple(a.dims[:a.rank]), np.dtype(TYPES[a.type])
    count = int(np.prod(shape, dtype=np.int64))
    raw = ctypes.string_at(a.data, count * kind.itemsize)
    return np.frombuffer(raw, kind, count).reshape(shape).copy()


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


def onnxruntime_devices():
    """The devices of the provider for ONNX Runtime, for SessionOptions.add_provider_for_devices. Registers it if that is not done yet: the library that
    OCTET_PROVIDER names, the one in the package, or the system's."""
    import onnxruntime # pylint: disable=import-outside-toplevel # most users of this module need none
    def devices():
        return [d for d in onnxruntime.get_ep_devices() if d.ep_name == PROVIDER]
    if not devices():
        onnxruntime.register_execution_provider_library("octet", _provider())
    return devices()
