#!/usr/bin/env python3
"""Converts networks behind spectral front ends in every scheme, with samples and without, and holds what they keep.

    check_spectral.py [--only GLOB] [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Networks: those of pylib/spectral.py: raw audio through a transform, powers, bands, logarithms; the report of static 8 bits must say what of that stays
float, and a rule that names a layer must override it. On samples that did not calibrate, in ONNX Runtime's exact
kernels, outputs must be finite and keep 20 dB in 8 bits and 40 dB in float16; our runtime must be as near to it.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import sys
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
from onnx import helper, numpy_helper

from pylib import peer, spectral
from pylib.judge import Checker, options, sqnr

CALIB, JUDGE = 40, 20
LEAST = {"8 bits": 20, "float16": 40}
SCHEMES = {
    "static": ("8 bits", [], True),
    "no samples": ("8 bits", [], False),
    "dynamic": ("8 bits", ["--scheme", "dynamic"], False),
    "fp16": ("float16", ["--scheme", "fp16"], False),
    "fp16, samples": ("float16", ["--scheme", "fp16"], True),
}


def run_ort(model, rows):
    session = peer.session(model, exact=True)
    runs = [session.run(None, {session.get_inputs()[0].name: x[None]}) for x in rows]
    return [np.concatenate(part) for part in zip(*runs, strict=True)]


def check(c, name):
    model, out = c.folder / f"{name}.onnx", c.folder / "out.onnx"
    x = spectral.write(name, model, CALIB + JUDGE)
    calib, rows = x[:CALIB], x[CALIB:]
    np.save(c.folder / "calib.npy", calib)
    want = run_ort(model, rows)
    for scheme, (kind, how, samples) in SCHEMES.items():
        report = c.convert(model, out, *how, *(["--data", c.folder / "calib.npy"] if samples else []))
        got = run_ort(out, rows)
        kept = sqnr(want, got)
        layers = [y for y in report["layers"] if y["scheme"] != "float" and y["op"] in ("Conv", "ConvTranspose", "MatMul", "Gemm")]
        c.hold(f"{name}, {scheme}: keeps enough", kept >= LEAST[kind], f"{kept:.1f} dB, {len(layers)} layers")
        if scheme == "static" and name != "raw_waveform":
            why = [y["why"] for y in report["layers"] if "goes into a logarithm or a quotient" in y["why"]]
            c.hold(f"{name}, {scheme}: says why", why and not any(y["scheme"] != "float" for y in report["layers"] if y["why"] in why))
        same = sqnr(got, c.run_ours(out, list(rows)))
        c.hold(f"{name}, {scheme}: the same in both", same >= min(60, kept - (6 if kind == "float16" else -10)), f"{same:.1f} dB")


def check_named(c):
    model, policy = c.folder / "named.onnx", c.folder / "named.policy"
    np.save(c.folder / "calib.npy", spectral.write("conv_mel_log", model, CALIB))
    policy.write_text("name:/Conv_1 static\n")
    report = c.convert(model, c.folder / "out.onnx", "--data", c.folder / "calib.npy", "--policy", policy)
    (scheme,) = (y["scheme"] for y in report["layers"] if y["name"] == "/Conv_1")
    c.hold("a rule that names the transform", scheme == "static", scheme)


def pooled_variance(c):
    """A normalization whose mean is GlobalAveragePool, which is no LayerNormalization since the factor comes after a Tanh: the layers before it stay in 8 bits, as with ReduceMean."""
    rng = np.random.default_rng(3)
    for reduces in ("ReduceMean", "GlobalAveragePool"):
        more = {"axes": [2]} if reduces == "ReduceMean" else {}
        nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], name="layer"), helper.make_node("Mul", ["h", "h"], ["s"]), helper.make_node(reduces, ["s"], ["v"], **more),
                 helper.make_node("Add", ["v", "eps"], ["e"]), helper.make_node("Sqrt", ["e"], ["r"]), helper.make_node("Reciprocal", ["r"], ["i"]), helper.make_node("Mul", ["i", "g"], ["t"]),
                 helper.make_node("Tanh", ["t"], ["f"]), helper.make_node("Mul", ["h", "f"], ["y"])]
        given = {"w": rng.normal(0, 0.2, (32, 48)), "eps": np.array(1e-6), "g": rng.normal(1, 0.1, 48)}
        value = helper.make_tensor_value_info
        graph = helper.make_graph(nodes, "net", [value("x", 1, ["n", 8, 32])], [value("y", 1, ["n", 8, 48])], [numpy_helper.from_array(v.astype(np.float32), k) for k, v in given.items()])
        onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)]), c.folder / "pooled.onnx")
        np.save(c.folder / "calib.npy", rng.normal(0, 1, (CALIB, 8, 32)).astype(np.float32))
        for how in ([], ["--data", c.folder / "calib.npy"]):
            report = c.convert(c.folder / "pooled.onnx", c.folder / "out.onnx", *how)
            kept = [y["scheme"] for y in report["layers"] if y["name"] == "layer"]
            c.hold(f"variance by {reduces}, {'samples' if how else 'no samples'}", kept and kept[0] != "float", str(kept))


def main():
    parser = options(__doc__)
    parser.add_argument("--only", metavar="GLOB", default="*")
    args = parser.parse_args()
    with Checker(args) as c:
        for name in spectral.NETS:
            if fnmatch(name, args.only):
                check(c, name)
        check_named(c)
        pooled_variance(c)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
