"""The protocol of docs/runner.md, for a runtime that Python can call. A script beside this one says what a runtime does:

    octet_runner.serve("name", "1.2", load)

load(path, threads) returns run; run(arrays), arrays by input name, returns (seconds, arrays by output name).
"""
import io
import os
import sys

import numpy as np

VERSION = 1


def read_exactly(stream, n):
    data = stream.read(n)
    if len(data) != n:
        raise EOFError
    return data


def read_arrays(stream, count):
    found = {}
    for _ in range(count):
        _, size, name = stream.readline().decode("utf-8", "surrogateescape").rstrip("\n").split(" ", 2)
        array = np.load(io.BytesIO(read_exactly(stream, int(size))), allow_pickle=False)
        found[name] = array.astype(object) if array.dtype.kind == "U" else array
    return found


def as_array(name, value):
    """What .npy holds: maps from classes to scores become the table of these, in the order of the classes; texts have a type of their own."""
    if isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
        if any(list(v) != list(value[0]) for v in value):
            raise ValueError(f"the maps of output '{name}' have different keys")
        value = [list(v.values()) for v in value]
        return np.array(value, np.float32 if isinstance(value[0][0], float) else None)
    unlike = f"output '{name}' is neither a tensor of numbers or texts nor a list of maps"
    try:
        array = np.asarray(value, order="C")
    except ValueError as ragged:
        raise ValueError(unlike) from ragged
    if array.dtype != object:
        return array
    if not all(isinstance(v, str) for v in array.flat):
        raise ValueError(unlike)
    return array.astype(str)


def write_arrays(stream, seconds, arrays):
    stream.write(f"done {seconds!r} {len(arrays)}\n".encode())
    for name, array in arrays.items():
        held = io.BytesIO()
        np.save(held, as_array(name, array), allow_pickle=False)
        stream.write(f"array {held.tell()} {name}\n".encode("utf-8", "surrogateescape") + held.getvalue())
    stream.flush()


def converse(ask, answer, name, version, load):
    word, number, threads = ask.readline().decode().split()
    if word != "hello" or int(number) != VERSION:
        raise ValueError(f"this speaks version {VERSION} of the protocol")
    run = load(sys.argv[1], int(threads))
    answer.write(f"runner {VERSION} {name} {version}\n".encode())
    answer.flush()
    while (line := ask.readline().split()) and line[0] == b"run":
        write_arrays(answer, *run(read_arrays(ask, int(line[1]))))


def serve(name, version, load):
    """Answers until the end of the input; what goes wrong is said in a line."""
    if len(sys.argv) != 2:
        sys.exit(f"usage: qeval FLOAT QUANT ... --runner 'python3 {sys.argv[0]}'")
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    try:
        converse(sys.stdin.buffer, answer, name, version, load)
    except (BrokenPipeError, EOFError):
        return
    except Exception as fault:  # whatever the runtime throws is its answer
        text = " ".join(f"{type(fault).__name__}: {fault}".split())
        answer.write(f"error {text[:2000]}\n".encode("utf-8", "replace"))
        answer.flush()
        sys.exit(1)
