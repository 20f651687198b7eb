#!/usr/bin/env python3
"""Converts models that are larger than the memory they may take, and samples the memory.

    check_large.py --qconvert PROGRAM [--gb N] [-v]

A chain of products with external data (mostly holes of a sparse file) is converted without samples in every form. The private
memory of the process (RssAnon: not what is mapped from files) may depend on the largest tensor, not on the model: at most
PRIVATE_TENSORS of them and what a small conversion takes. The written integers and floats are compared with NumPy's. In blocks, a
model of float16 becomes what one of float32 with the same numbers becomes, and its numbers take no more room than they do there.

Without --gb a model of 0.4 GB; with --gb 3 also what is beyond 2 GB (or the environment variable OCT_LARGE=3). Skipped where the
temporary folder has no room. Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 when skipped.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx")
import numpy as np
import onnx
from onnx import TensorProto, helper

MB = 1 << 20
WIDTH = 2048              # of each product: 16 MB of weights
TENSOR = 4 * WIDTH * WIDTH
ROWS = 16                 # of each matrix that are not holes
BASE_MB = 96              # what any conversion may take: the program, its tables, the first results
PRIVATE_TENSORS = 3       # the matrix, its codes, its transposition
FORMS = [["--scheme", "dynamic"], ["--scheme", "weight-only"], ["--scheme", "weight-only", "--bits", "8", "--format", "qdq"],
         ["--scheme", "fp16"], ["--scheme", "float"], []]


def rows_of(layer):
    """Numbers of float16, as float32."""
    return np.random.default_rng(layer).standard_normal((ROWS, WIDTH)).astype(np.float16).astype(np.float32)


def make(folder, layers, kind=TensorProto.FLOAT):
    """x -> MatMul, Relu, MatMul, Relu, ... with the data in one sparse file."""
    numbers = helper.tensor_dtype_to_np_dtype(kind)
    data, size = folder / f"{numbers}.bin", WIDTH * WIDTH * numbers.itemsize
    with open(data, "wb") as f:
        for i in range(layers):
            f.seek(i * size)
            f.write(rows_of(i).astype(numbers).tobytes())
        f.truncate(layers * size)
    nodes, weights = [], []
    for i in range(layers):
        w = TensorProto(name=f"w{i}", data_type=kind, dims=[WIDTH, WIDTH], data_location=TensorProto.EXTERNAL)
        for key, value in (("location", data.name), ("offset", str(i * size)), ("length", str(size))):
            w.external_data.add(key=key, value=value)
        weights.append(w)
        nodes.append(helper.make_node("MatMul", [f"r{i}", f"w{i}"], [f"p{i}"], f"product{i}"))
        nodes.append(helper.make_node("Relu", [f"p{i}"], [f"r{i + 1}"], f"relu{i}"))
    ends = [helper.make_tensor_value_info(f"r{k}", kind, ["n", WIDTH]) for k in (0, layers)]
    graph = helper.make_graph(nodes, "large", ends[:1], ends[1:], weights)
    path = folder / f"{numbers}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def run(command):
    """(exit code, what it said, the most private MB, the most MB with what is mapped from files, seconds)."""
    begin, most, mapped = time.monotonic(), 0, 0
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
        while process.poll() is None:
            try:
                with open(f"/proc/{process.pid}/status") as f:
                    status = dict(line.split(":") for line in f)
                most = max(most, int(status.get("RssAnon", "0").split()[0]))
                mapped = max(mapped, int(status.get("VmHWM", "0").split()[0]))
            except OSError:
                pass
            time.sleep(0.004)
        said.seek(0)
        return process.returncode, said.read().decode(), most / 1024, mapped / 1024, time.monotonic() - begin


def tensor_bytes(folder, t, most):
    """The first `most` bytes of an initializer."""
    if t.data_location != TensorProto.EXTERNAL:
        return t.raw_data[:most]
    at = {e.key: e.value for e in t.external_data}
    with open(folder / at["location"], "rb") as f:
        f.seek(int(at.get("offset", 0)))
        return f.read(most)


def wrong_values(folder, model, layer, form):
    """What does not follow from the rows of a layer, or ''."""
    want = rows_of(layer)
    found = {t.name: t for t in model.graph.initializer}
    t = found.get(f"w{layer}") or found.get(f"w{layer}_quantized")
    if "weight-only" in form:
        return "" if any("MatMulNBits" == n.op_type or "DequantizeLinear" == n.op_type for n in model.graph.node) else "no blocks"
    if t is None:
        return f"there is no w{layer}"
    kinds = {TensorProto.FLOAT: np.float32, TensorProto.FLOAT16: np.float16, TensorProto.INT8: np.int8, TensorProto.UINT8: np.uint8}
    kind = np.dtype(kinds[t.data_type])
    got = np.frombuffer(tensor_bytes(folder, t, ROWS * WIDTH * kind.itemsize), kind).reshape(ROWS, WIDTH)
    if kind.kind == "f":
        return "" if np.array_equal(got, want.astype(kind)) else "the values differ"
    scale = np.abs(want).max(0) / np.float32(127)
    codes = got.astype(np.int16) - (128 if kind == np.uint8 else 0)
    return "" if np.abs(codes - want / scale).max() <= 0.5001 else "the codes are not the rounded weights"


def check(program, path, form, folder, layers, verbose):
    out = folder / "converted"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    code, said, most, _, seconds = run([program, str(path), "-o", str(out / "out.onnx"), *form])
    name, bound = " ".join(form) or "(no scheme)", BASE_MB + PRIVATE_TENSORS * TENSOR / MB
    faults = []
    if code:
        faults.append(f"exit {code}: {said.strip().splitlines()[-1:]}")
    else:
        model = onnx.load(out / "out.onnx", load_external_data=False)
        faults += filter(None, (wrong_values(out, model, i, form) for i in (0, layers - 1)))
    if most > bound:
        faults.append(f"{most:.0f} MB of private memory, expected {bound:.0f} at most")
    if faults or verbose:
        print(f"{'FAILED' if faults else 'ok'}  {name}: {most:.0f} MB private, {seconds:.1f} s {'; '.join(faults)}", flush=True)
    return not faults


def codes_of(path):
    """The codes in blocks, by the name of the weights."""
    model = onnx.load(path, load_external_data=False)
    tensors = {t.name: t for t in model.graph.initializer}
    codes = [tensors[n.input[1]] for n in model.graph.node if n.op_type == "MatMulNBits"]
    return [tensor_bytes(path.parent, t, -1) for t in codes]


def check_narrow(program, folder, layers, verbose):
    """A model of float16 gets the codes of one of float32 with the same numbers, in half of that one's room."""
    out, codes, mapped, faults = folder / "converted", {}, 0, []
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    for kind in (TensorProto.FLOAT, TensorProto.FLOAT16):
        path = make(folder, layers, kind)
        code, said, _, mapped, seconds = run([program, str(path), "-o", str(out / path.name), "--scheme", "weight-only"])
        faults += [f"exit {code}: {said.strip().splitlines()[-1:]}"] if code else []
        codes[kind] = [] if code else codes_of(out / path.name)
    bound = BASE_MB + layers * TENSOR / 2 / MB
    if codes[TensorProto.FLOAT] != codes[TensorProto.FLOAT16] or len(codes[TensorProto.FLOAT]) != layers:
        faults.append("the codes are not those of float32")
    if mapped > bound:
        faults.append(f"{mapped:.0f} MB of memory with what is mapped, expected {bound:.0f} at most")
    if faults or verbose:
        print(f"{'FAILED' if faults else 'ok'}  float16 in blocks: {mapped:.0f} MB, {seconds:.1f} s {'; '.join(faults)}", flush=True)
    return not faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--qconvert", required=True)
    parser.add_argument("--gb", type=float, default=float(os.environ.get("OCT_LARGE", 0.4)))
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    if not Path("/proc/self/status").exists():
        print("skipped: there is no /proc to sample memory from")
        return 77
    layers = int(args.gb * (1 << 30) / TENSOR)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        need = 2.2 * layers * TENSOR  # the input's holes take nothing, results and their scratch file do
        if shutil.disk_usage(folder).free < need:
            print(f"skipped: {need / (1 << 30):.1f} GB of room needed in {folder}")
            return 77
        path = make(folder, layers)
        good = [check(args.qconvert, path, form, folder, layers, args.verbose) for form in FORMS]
        good.append(check_narrow(args.qconvert, folder, layers, args.verbose))
    print(f"{len(good)} conversions of {layers * TENSOR / MB:.0f} MB: {sum(good)} hold")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
