#!/usr/bin/env python3
"""Whatever a conversion decides is in its measurements: what --sensitivity says of everything together is what ONNX Runtime finds in the result.

    check_simulated.py [--qconvert PROGRAM] [--qeval PROGRAM] [--shared FOLDER] [-v]

Small networks whose loss is in a part that is not a static layer: recurrent layers and products that quantize their inputs when they run, tables
of rows, stored weights, weights in blocks, 16-bit floats and activations, and bodies of If, Loop and Scan. For each scheme the SQNR "together" is
within 3 dB of that of the model in ONNX Runtime against the float model there, on the same samples, and no node is left out. Where one layer was
made to lose, it is the first cause, and the conversion with its methods repairs it at the same size, or names it; so does a goal.
No node is left out of the models of testdata/, of small networks, and of those of --shared, either.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
sys.path.append(str(Path(__file__).resolve().parents[1] / "generate"))  # for make_zoo
import numpy as np
import onnx
from onnx import TensorProto, helper

from pylib import digest_models, plainnet, tool
from pylib.judge import Checker, options, run_ort, sqnr

NEAR = 3.0      # dB between what is measured part by part and the result
FINE = 58       # dB: above this, what is left depends on how a runtime fuses 16-bit floats
COUNT, TIMES = 4, 16    # samples, each several times: so the measurements see all of them, whichever are used for what


class Made(plainnet.Nodes):
    def weights(self, name, *shape, scale=1.0):
        return self.const(name, (self.rng.standard_normal(shape) * scale).astype(np.float32))

    def save(self, path, inputs):
        super().save(path, inputs, [("y", F, None)])


def spectra(rng, *shape):
    """Like the power of a spectrogram: most values are small."""
    return np.exp(rng.normal(size=shape) * 2.5 - 6).astype(np.float32)


def plain(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def outliers(rng, *shape):
    """A few channels a hundred times as large, as in the residual streams of language models."""
    scale = np.ones(shape[-1], np.float32)
    scale[3::23] = 60
    return (plain(rng, *shape) * scale).astype(np.float32)


F = TensorProto.FLOAT


def recurrent(op, path, values=spectra, gain=3.0, directions=1, hidden=64, more=0):
    """Rows of values through one recurrent layer (and `more` after it) to a product."""
    m, steps, width = Made(1), 30, 40
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    at = m.node("Transpose", ["x"], "t", perm=[1, 0, 2])
    for i in range(1 + more):
        k = width if i == 0 else directions * hidden
        made = m.node(op, [at, m.weights(f"W{i}", directions, gates * hidden, k, scale=gain if i == 0 else 0.2),
                           m.weights(f"R{i}", directions, gates * hidden, hidden, scale=0.12)], [f"s{i}", f"h{i}"], hidden_size=hidden,
                      name="worst" if i == 0 else f"after{i}", **({"direction": "bidirectional"} if directions == 2 else {}))
        turned = m.node("Transpose", [made[0]], f"u{i}", perm=[0, 2, 1, 3])
        at = m.node("Reshape", [turned, m.const(f"to{i}", np.int64([steps, 1, directions * hidden]))], f"v{i}")
    m.node("MatMul", [at, m.weights("L", directions * hidden, 32, scale=0.12)], "y", name="last")
    m.save(path, [("x", F, [1, steps, width])])
    return {"x": values(m.rng, steps, width)[None]}


def products(path, values=spectra, gain=3.0, gemm=False):
    m = Made(2)
    first = [m.weights("A", 40, 256, scale=gain)] + ([m.weights("b", 256)] if gemm else [])
    m.node("Gemm" if gemm else "MatMul", ["x", *first], "p", name="worst")
    m.node("Tanh", ["p"], "t")
    m.node("MatMul", ["t", m.weights("B", 256, 128, scale=0.06)], "q", name="second")
    m.node("Relu", ["q"], "r")
    m.node("MatMul", ["r", m.weights("C", 128, 48, scale=0.09)], "y", name="last")
    m.save(path, [("x", F, [40, 40])])
    return {"x": values(m.rng, 40, 40)}


def attention(path, values=outliers, heads=4, width=64, steps=24):
    """The projections read a stream with outliers; behind them attention and a product."""
    m = Made(3)
    each = width // heads
    m.const("apart", np.int64([1, steps, heads, each]))
    for part in "qkv":
        m.node("MatMul", ["x", m.weights(f"W{part}", width, width, scale=0.02)], f"{part}0", name=f"project_{part}")
        m.node("Reshape", [f"{part}0", "apart"], f"{part}1")
        m.node("Transpose", [f"{part}1"], part, perm=[0, 2, 3, 1] if part == "k" else [0, 2, 1, 3])
    m.node("MatMul", ["q", "k"], "s", name="scores")
    m.node("Mul", ["s", m.const("by", np.float32(0.1))], "s1")
    m.node("Softmax", ["s1"], "p", axis=-1)
    m.node("MatMul", ["p", "v"], "c", name="context")
    m.node("Transpose", ["c"], "c1", perm=[0, 2, 1, 3])
    m.node("Reshape", ["c1", m.const("joined", np.int64([1, steps, width]))], "c2")
    m.node("MatMul", ["c2", m.weights("Wo", width, width, scale=0.1)], "y", name="out")
    m.save(path, [("x", F, [1, steps, width])])
    return {"x": values(m.rng, steps, width)[None]}


def tables(path):
    """Rows of a table whose numbers differ much in size, summed, and two products."""
    m = Made(4)
    m.const("E", (m.rng.standard_normal((400, 64)) * np.exp(m.rng.normal(size=(1, 64)) * 2)).astype(np.float32))
    m.node("Gather", ["E", "x"], "e", name="rows")
    m.node("ReduceMean", ["e"], "g", axes=[1], keepdims=0)
    m.node("MatMul", ["g", m.weights("A", 64, 128, scale=0.1)], "p", name="first")
    m.node("Relu", ["p"], "r")
    m.node("MatMul", ["r", m.weights("B", 128, 32, scale=0.1)], "y", name="last")
    m.save(path, [("x", TensorProto.INT64, [1, 12])])
    return {"x": m.rng.integers(0, 400, (1, 12))}


def convolutions(path, values=plain):
    m = Made(5)
    m.node("Conv", ["x", m.weights("A", 16, 3, 3, 3, scale=0.3)], "a", name="first", pads=[1] * 4)
    m.node("Relu", ["a"], "r")
    m.node("Conv", ["r", m.weights("B", 24, 16, 3, 3, scale=0.1)], "b", name="second", pads=[1] * 4)
    m.node("Sigmoid", ["b"], "s")
    m.node("Mul", ["b", "s"], "w")
    m.node("Conv", ["w", m.weights("C", 8, 24, 1, 1, scale=0.2)], "y", name="last")
    m.save(path, [("x", F, [1, 3, 16, 16])])
    return {"x": values(m.rng, 3, 16, 16)[None]}


def body(op, path):
    """Products inside If, Loop or Scan, whose state comes back as their input."""
    m = Made(6)
    a, b = m.weights("A", 32, 64, scale=0.2), m.weights("B", 64, 32, scale=0.15)
    inner = [helper.make_node("MatMul", ["h", a], ["i1"], name="inside1"), helper.make_node("Tanh", ["i1"], ["i2"], name="tanh"),
             helper.make_node("MatMul", ["i2", b], ["i3"], name="inside2")]
    info = helper.make_tensor_value_info
    if op == "Loop":
        inner += [helper.make_node("Identity", ["c"], ["c1"], name="go_on")]
        g = helper.make_graph(inner, "body", [info("n", TensorProto.INT64, []), info("c", TensorProto.BOOL, []), info("h", F, [8, 32])],
                              [info("c1", TensorProto.BOOL, []), info("i3", F, [8, 32])])
        m.node("Loop", [m.const("trips", np.int64(3)), m.const("yes", np.array(True)), "x"], "z", body=g, name="holder")
    elif op == "Scan":
        inner += [helper.make_node("Add", ["i3", "s"], ["i4"], name="add"), helper.make_node("Identity", ["i4"], ["o"], name="copy")]
        g = helper.make_graph(inner, "body", [info("h", F, [8, 32]), info("s", F, [32])], [info("i4", F, [8, 32]), info("o", F, [8, 32])])
        m.node("Scan", ["x", m.weights("seq", 4, 32)], ["z0", "z"], body=g, num_scan_inputs=1, name="holder")
    else:
        inner[0].input[0] = "x"
        g = helper.make_graph(inner, "then", [], [info("i3", F, [8, 32])])
        e = helper.make_graph([helper.make_node("Identity", ["x"], ["o"], name="pass")], "else", [], [info("o", F, [8, 32])])
        m.node("ReduceSum", ["x"], "sum", keepdims=0)
        m.node("Greater", ["sum", m.const("least", np.float32(-1e9))], "if")
        m.node("If", ["if"], "z", then_branch=g, else_branch=e, name="holder")
    m.node("MatMul", ["z", m.weights("C", 32, 16, scale=0.2)], "y", name="last")
    m.save(path, [("x", F, [8, 32])])
    return {"x": plain(m.rng, 8, 32)}


# name: (maker, whether `worst` was made to lose)
CASES = {
    "lstm_spectra": (lambda p: recurrent("LSTM", p), True),
    "lstm_both_ways": (lambda p: recurrent("LSTM", p, directions=2), True),
    "lstm_three": (lambda p: recurrent("LSTM", p, more=2), True),
    "lstm_plain": (lambda p: recurrent("LSTM", p, values=plain, gain=0.3), False),
    "lstm_outliers": (lambda p: recurrent("LSTM", p, values=outliers, gain=0.3), True),
    "gru_spectra": (lambda p: recurrent("GRU", p, hidden=256), True),
    "gru_both_ways": (lambda p: recurrent("GRU", p, directions=2, hidden=256), True),
    "gru_narrow": (lambda p: recurrent("GRU", p), False),
    "gru_two": (lambda p: recurrent("GRU", p, hidden=256, more=1), True),
    "gru_outliers": (lambda p: recurrent("GRU", p, hidden=256, values=outliers, gain=0.3), True),
    "rnn_spectra": (lambda p: recurrent("RNN", p, hidden=320), True),
    "matmul_spectra": (lambda p: products(p), True),
    "matmul_plain": (lambda p: products(p, values=plain, gain=0.2), False),
    "matmul_outliers": (lambda p: products(p, values=outliers, gain=0.2), True),
    "gemm_spectra": (lambda p: products(p, gemm=True), True),
    "gemm_outliers": (lambda p: products(p, values=outliers, gain=0.2, gemm=True), True),
    "attention_outliers": (attention, False),
    "attention_plain": (lambda p: attention(p, values=plain), False),
    "attention_wide": (lambda p: attention(p, width=128, steps=12), False),
    "attention_one_head": (lambda p: attention(p, heads=1), False),
    "attention_spectra": (lambda p: attention(p, values=spectra), False),
    "table": (tables, False),
    "convolutions": (convolutions, False),
    "convolutions_outliers": (lambda p: convolutions(p, values=outliers), False),
    "loop": (lambda p: body("Loop", p), False),
    "scan": (lambda p: body("Scan", p), False),
    "if": (lambda p: body("If", p), False),
}
SCHEMES = {
    "default": [],
    "dynamic": ["--scheme", "dynamic"],
    "weight-only": ["--scheme", "weight-only"],
    "weight-only-8": ["--scheme", "weight-only", "--bits", "8"],
    "fp16": ["--scheme", "fp16"],
    "stored": ["--set", "any=stored"],
    "a16": ["--set", "any=- - u16/tensor/asym -", "--target", "./wide.target"],
    "a16-partly": ["--set", "last=- - u16/tensor/asym -", "--target", "./wide.target"],
}
EVERYWHERE = ("default", "dynamic", "weight-only", "fp16", "stored", "a16-partly")
WIDE = "name wide\nsummary activations of 16 bits\ninherits onnxruntime-x86\ntypes u8*u8 u8*s8 s8*s8 u16*s8\n"


def archive(path, sample):
    np.savez(path, **{n: np.stack([a] * TIMES) for n, a in sample.items()})
    return path


def convert(c, model, data, out, *more):
    report = c.folder / "r.json"
    tool.run([c.qconvert, model, "--data", data, "-o", out, "-q", "--json", report, "--threads", "1", *more])
    return json.loads(report.read_text())


def measure(model, out, sample):
    """dB between the two models in ONNX Runtime."""
    return sqnr(run_ort(model, [sample]), run_ort(out, [sample]))


def check_case(c, name, scheme, made, loses):
    model, out = c.folder / f"{name}.onnx", c.folder / f"{name}_{scheme}.onnx"
    sample = made(model)
    data = archive(c.folder / f"{name}.npz", sample)
    r = convert(c, model, data, out, "--sensitivity", "--no-recover", *SCHEMES[scheme])
    s = r.get("sensitivity")
    what = f"{name}, {scheme}"
    got = measure(model, out, sample)
    if not s:
        c.hold(f"{what}: nothing is rounded", got > 100, f"{got:.1f} dB")
        return
    together = s["all_db"] if s["all_db"] is not None else 200.0
    c.hold(f"{what}: together", abs(together - got) <= NEAR or min(together, got) > FINE, f"{together:.1f} dB, in ONNX Runtime {got:.1f} dB")
    c.hold(f"{what}: nothing is left out", s["not_simulated"] == [], str(s["not_simulated"]))
    if loses and any(x["name"] == "worst" and x["scheme"] == "dynamic" for x in r["layers"]):
        check_loser(c, what, model, data, out, sample, s, got, SCHEMES[scheme])


def check_loser(c, what, model, data, out, sample, s, got, how):
    first = s["causes"][0]
    inputs = {n.name: n.input[0] for n in onnx.load(model).graph.node}
    c.hold(f"{what}: the cause", first["layer"] == "worst" or first["value"] == inputs["worst"], str(first))
    repaired = out.with_suffix(".repaired.onnx")
    warned = any("worst" in w for w in convert(c, model, data, repaired, *how)["warnings"])
    after = measure(model, repaired, sample)
    larger = repaired.stat().st_size / out.stat().st_size
    c.hold(f"{what}: repaired", got > 20 or after >= got + 6 or warned, f"{got:.1f} dB, then {after:.1f} dB{', warned' * warned}")
    c.hold(f"{what}: size", larger < 1.06, f"{larger:.2f} times")
    if got < 20:    # a goal reaches the same without that method
        reached = out.with_suffix(".goal.onnx")
        subprocess.run([c.qconvert, model, "--data", data, "-o", reached, "-q", "--no-method", "mixed-precision", "--min-sqnr", str(int(got + 6)),
                        "--trials", "4", *how], capture_output=True, check=False)
        now, larger = measure(model, reached, sample), reached.stat().st_size / out.stat().st_size
        c.hold(f"{what}: goal", now > got + 5, f"{got:.1f} dB, then {now:.1f} dB")
        c.hold(f"{what}: size with the goal", larger < 1.06, f"{larger:.2f} times")


def check_models(c, folder, shared):
    """That no scheme leaves out a node, on models that are there anyway."""
    folder.mkdir()
    found = [*digest_models.bundled(folder), *digest_models.small(folder, lambda _: True)]
    if shared.is_dir():
        found += digest_models.trained(folder, shared, lambda _: True)
    for m in found:
        for scheme in EVERYWHERE if m.data else ():
            (c.folder / "r.json").unlink(missing_ok=True)
            subprocess.run([c.qconvert, m.path, "--data", m.data, *m.options, "-n", "2", "-o", c.folder / "out.onnx", "-q", "--json", c.folder / "r.json",
                          "--sensitivity", "--no-recover", *SCHEMES[scheme]], capture_output=True, check=False)
            if (c.folder / "r.json").exists():
                left = json.loads((c.folder / "r.json").read_text()).get("sensitivity", {}).get("not_simulated", [])
                c.hold(f"{m.name}, {scheme}: nothing is left out", left == [], str(left))


def main():
    parser = options(__doc__)
    parser.add_argument("--only", action="append", help="a case or a scheme")
    parser.add_argument("--shared", type=Path, default=tool.SHARED)
    args = parser.parse_args()
    args.shared = args.shared.resolve()
    with Checker(args) as c:
        os.chdir(c.folder)
        Path("wide.target").write_text(WIDE)
        for name, (made, loses) in CASES.items():
            for scheme in SCHEMES:
                if not args.only or any(o in (name, scheme) for o in args.only):
                    check_case(c, name, scheme, made, loses)
        if not args.only:
            check_models(c, c.folder / "models", args.shared)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
