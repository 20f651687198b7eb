"""What users give: names of files, models, samples and labels; and what the library takes."""
import glob
import inspect
import itertools
import os
import shutil
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ma # here: a child must not find it half imported

from ._call import Error
from ._library import RANK, SAMPLE, to_bytes, to_text

TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16,
         11: np.float64, 12: np.uint32, 13: np.uint64}
NUMBERS = {np.dtype(t): n for n, t in TYPES.items()}


class Pipe:
    """Samples that a shell command writes to its standard output, as a tar stream: Pipe("tar c photos")."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __repr__(self) -> str:
        return f"Pipe({self.command!r})"


def is_name(value: Any) -> bool:
    """Whether it is the name of a file."""
    return isinstance(value, (str, bytes, os.PathLike))


def _what(value):
    """What a value is, for the message that it does not fit."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return "None" if value is None else f"the function {value.__name__}" if inspect.isfunction(value) else type(value).__name__


def name_of(path):
    """The name of a file, in a form that is no option, no command of the tool or of the shell, and no stream."""
    path = os.fspath(path)
    name = os.fsdecode(path) if isinstance(path, bytes) else path
    word = name and "/" not in name and (":" in name or "." not in name)
    return f"./{name}" if word or name.startswith("-") else name


# ---- arrays ----

def plain(x):
    """An array without hidden values, in this machine's byte order."""
    if isinstance(x, ma.MaskedArray):
        if ma.is_masked(x):
            raise TypeError("a masked array has values that are hidden; give x.filled(value) or x.compressed()")
        x = x.data
    x = np.asarray(x)
    if x.dtype.kind == "O" and all(isinstance(one, str) for one in x.flat): # texts as ONNX Runtime takes them
        x = x.astype(str)
    if x.dtype.hasobject:
        raise TypeError(f"arrays of type {x.dtype} cannot be given")
    return x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))


def held(x):
    """The array as C reads it."""
    return np.require(plain(x), requirements=["C", "A"])


def fill(slot, x):
    """Sets an Array of the library to x, which must stay alive."""
    if x.dtype not in NUMBERS or x.ndim > RANK:
        raise TypeError(f"arrays of type {x.dtype} and rank {x.ndim} cannot be given")
    slot.type, slot.rank, slot.data = NUMBERS[x.dtype], x.ndim, x.ctypes.data
    slot.dims[:x.ndim] = x.shape


def is_array(value):
    """Whether it is an array: of NumPy, or of a library whose arrays NumPy takes, as tensors of PyTorch."""
    return isinstance(value, np.ndarray) or hasattr(value, "__array__")


# ---- models ----

def _is_content(model):
    """Whether bytes are a model and no name of a file: a message that begins with its field 1, or a .tflite file."""
    return model.startswith(b"\x08") or model[4:8] == b"TFL3"


def content_of(model):
    """The bytes of a model that is no name of a file, else None: of bytes, of a Result, or of an onnx.ModelProto."""
    if isinstance(model, (bytearray, memoryview)) or (isinstance(model, bytes) and _is_content(model)):
        return bytes(model)
    if getattr(model, "model", None) is not None:
        return model.model
    if isinstance(model, type) or not hasattr(model, "SerializeToString"):
        return None
    try:
        return model.SerializeToString()
    except ValueError as e: # more than protobuf's 2 GB
        raise Error(f"the model cannot be serialized: {e}", 5, "save it to a file with external data, and give the file's name") from e


def file_of(model):
    """The name of the file of a model that is not given as bytes."""
    output = getattr(model, "output", None)
    name = model if output is None else output
    if not is_name(name):
        raise TypeError(f"a model cannot be {_what(model)}: give the name of a file, its bytes, an onnx.ModelProto or a Result")
    return name_of(name)


def written(model, folder, number):
    """The name of a file that holds the model."""
    content = content_of(model)
    if content is None:
        return file_of(model)
    path = Path(folder, f"model{number}.onnx")
    path.write_bytes(content)
    return str(path)


# ---- samples ----

def _write(path, arrays):
    """A file of arrays: of one, or of a dictionary of them. Its name."""
    if not isinstance(arrays, Mapping):
        path = path.with_suffix(".npy")
        np.save(path, plain(arrays), allow_pickle=False)
        return str(path)
    path = path.with_suffix(".npz")
    with zipfile.ZipFile(path, "w") as out: # savez takes names as its own parameters
        for name, x in arrays.items():
            to_bytes(name)
            with out.open(f"{name}.npy", "w", force_zip64=True) as f:
                np.lib.format.write_array(f, plain(x), allow_pickle=False)
    return str(path)


def _without_label(one):
    """What helps with a sample that a data set for training gives."""
    return ": (one[0] for one in data) leaves its label out" if isinstance(one, (tuple, list)) and len(one) == 2 else ""


# Of samples that come one after the other: so many, or so many bytes, may be without an end, which is said; more must be. Nor may they fill a disk.
MANY, MANY_BYTES, MOST = 10_000, 4 << 30, 1_000_000


def _write_all(path, arrays, most=None):
    """A file for each of them, or of the first `most`. A pattern of their names."""
    count = size = 0
    room, said = shutil.disk_usage(path.parent).free // 2, False
    for one in itertools.islice(arrays, most):
        if not isinstance(one, Mapping) and not is_array(one):
            raise TypeError(f"samples are arrays, or dictionaries of arrays by the names of inputs; {type(one).__name__} is neither{_without_label(one)}")
        size += os.path.getsize(_write(path.with_name(f"{path.name}-{count:09}"), one))
        count += 1
        so_far = f"data has given {count:,} samples, {size / 1e6:,.0f} MB, and has not ended"
        hint = "samples=N with first=True takes the first N; so does itertools.islice(data, N)"
        if count >= MOST or size > room:
            raise Error(f"{so_far}: " + ("that is too much" if count >= MOST else f"{path.parent.parent} is half full of them"), 2, hint)
        if not said and (count >= MANY or size >= MANY_BYTES):
            said = True
            print(f"octet: warning: {so_far}: is it endless? {hint}", file=sys.stderr)
    if not count:
        raise Error("there are no samples: what was given as data is empty", 2, "")
    return f"{glob.escape(str(path))}-*"


def _read(reader):
    """The samples of a reader of ONNX Runtime's kind."""
    while (one := reader.get_next()) is not None:
        yield one


def _spec(value, folder, most):
    """Samples as the library names them: arrays become files."""
    path = Path(folder, f"samples{len(os.listdir(folder))}")
    if isinstance(value, type) or inspect.isfunction(value):
        raise TypeError(f"data cannot be {_what(value)}: give what it makes, {value.__name__}(...)")
    if isinstance(value, Pipe):
        return f"pipe:{value.command}"
    if isinstance(value, Mapping) or is_array(value):
        return _write(path, value)
    if hasattr(value, "get_next"):
        return _write_all(path, _read(value), most)
    if is_name(value):
        name = os.fsdecode(value)
        return f"./{name}" if name.startswith("pipe:") else name
    if isinstance(value, (list, tuple)):
        return _write(path, np.asarray(value))
    if hasattr(value, "__iter__"):
        return _write_all(path, value, most)
    raise TypeError(f"data cannot be {_what(value)}: give arrays, a dictionary or a list of arrays, an iterator, or names of files")


def specs(data, folder, most=None):
    """All samples of data=, as texts. most: of what comes one after the other no more are asked for."""
    if not isinstance(data, (list, tuple)) or not data:
        return [_spec(data, folder, most)]
    if all(isinstance(one, Mapping) or is_array(one) for one in data):
        return [_write_all(Path(folder, f"samples{len(os.listdir(folder))}"), data)]
    if any(isinstance(one, (int, float, list, tuple)) for one in data):
        return [_spec(data, folder, most)]
    return [_spec(one, folder, most) for one in data]


def is_indexed(data):
    """Whether it is a sequence of samples that are asked for one by one, as a data set of PyTorch is."""
    return (hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, (list, tuple, Mapping)) and not is_name(data) and
            not is_array(data))


def giver(data, guard):
    """Such a sequence as a function of the library."""
    kept = [] # the arrays of the last sample

    def give(_, i, slots, n):
        one = data[i]
        kept.clear()
        for slot in slots[:n]:
            name = to_text(slot.name)
            if isinstance(one, Mapping):
                if name not in one:
                    raise KeyError(f"sample {i} has no array for the input '{name}'")
                x = one[name]
            elif n == 1 and is_array(one):
                x = one
            else:
                raise TypeError(f"sample {i} is {type(one).__name__}: give " + ("an array" if n == 1 else "a dictionary by the names of inputs") + _without_label(one))
            kept.append(held(x))
        for k, x in enumerate(kept):
            fill(slots[k], x)
        return 0

    return SAMPLE(guard(give, 1))


def labels_of(value, folder):
    """The name of a file with the labels."""
    if is_name(value):
        return name_of(value)
    x = plain(value)
    if x.dtype.kind not in "iu" or x.ndim > 2:
        raise TypeError(f"labels are whole numbers, one for each sample; these are {x.dtype} of rank {x.ndim}")
    path = Path(folder, "labels.npy")
    np.save(path, x, allow_pickle=False)
    return str(path)
