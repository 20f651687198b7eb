#!/usr/bin/env python3
"""Runs models whose states pass from sample to sample over recordings, and holds what qeval says of them against ONNX Runtime.

    check_states.py [--shared ../shared] [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

A small recurrent network over two recordings, and silero's voice detector over its minute of speech where the trained models are there. Recordings are read
by Python's wave module and cut by NumPy; ONNX Runtime runs a window at a time, and what a window leaves goes into the next one. Outputs must be the same, of
float and of quantized models; so must agreement and SQNR, where each model has states of its own. What conversions see are the float model's states: as
from a file that holds them.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import json
import sys
import wave
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pylib import peer, tool
from pylib.judge import Checker, options

ROOT = Path(__file__).resolve().parents[2]
rng = np.random.default_rng(5)
FRAME, HOP, LEAD, STATE = 40, 32, 8, 16


def small(path):
    """probability, state' = f(window, state), in one step of tanh over both."""
    def const(name, *dims):
        return numpy_helper.from_array((rng.normal(0, 1, dims) / np.sqrt(dims[0])).astype(np.float32), name)
    f32 = TensorProto.FLOAT
    nodes = [helper.make_node("Cast", ["rate"], ["rate_f"], to=f32), helper.make_node("Div", ["rate_f", "khz"], ["scale"]),
             helper.make_node("Mul", ["x", "scale"], ["louder"]), helper.make_node("MatMul", ["louder", "w"], ["a"]),
             helper.make_node("MatMul", ["state", "u"], ["b"]), helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Tanh", ["c"], ["next"]),
             helper.make_node("MatMul", ["next", "v"], ["d"]), helper.make_node("Sigmoid", ["d"], ["p"])]
    graph = helper.make_graph(
        nodes, "steps", [helper.make_tensor_value_info("x", f32, ["n", FRAME]), helper.make_tensor_value_info("state", f32, ["n", STATE]),
                         helper.make_tensor_value_info("rate", TensorProto.INT64, [])],
        [helper.make_tensor_value_info("p", f32, ["n", 1]), helper.make_tensor_value_info("next", f32, ["n", STATE])],
        [const("w", FRAME, STATE), const("u", STATE, STATE), const("v", STATE, 1), numpy_helper.from_array(np.float32(2000), "khz")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def record(path, n):
    loud = np.repeat(rng.random(n // 500 + 1), 500)[:n]
    q = np.rint(np.clip(rng.normal(0, 0.3, n) * loud, -1, 1) * 32767).astype("<i2")
    with wave.open(str(path), "wb") as w:
        w.setnchannels(1)
        w.setsampwidth(2)
        w.setframerate(8000)
        w.writeframes(q.tobytes())


def windows(path, lead, frame, hop):
    with wave.open(str(path)) as w:
        x = np.frombuffer(w.readframes(w.getnframes()), "<i2").astype(np.float32) / 32768
    x = np.concatenate([np.zeros(lead, np.float32), x])
    count = 1 + max(0, -(-(len(x) - frame) // hop))
    x = np.concatenate([x, np.zeros(count * hop + frame, np.float32)])
    return np.stack([x[k * hop:k * hop + frame] for k in range(count)])


def run(model, recordings, states, fixed):
    """{output: array} over all windows, and the states that they found."""
    session = peer.session(model)
    names = [o.name for o in session.get_outputs()]
    data = next(i.name for i in session.get_inputs() if i.name not in fixed and i.name not in states.values())
    rows, found = [], []
    for recording in recordings:
        state = {i.name: np.zeros([d if isinstance(d, int) else 1 for d in i.shape], np.float32) for i in session.get_inputs() if i.name in states.values()}
        for x in recording:
            found.append(state)
            out = dict(zip(names, session.run(None, {data: x[None], **state, **fixed}), strict=True))
            rows.append(out)
            state = {i: out[o] for o, i in states.items()}
    return {n: np.concatenate([r[n] for r in rows]) for n in names}, found


def decibels(want, got):
    want, got = want.astype(np.float64), got.astype(np.float64)
    return 10 * np.log10((want ** 2).sum() / ((want - got) ** 2).sum())


def same(c, what, ours, theirs):
    worst = max(float(np.abs(ours[n] - theirs[n]).max()) if ours[n].shape == theirs[n].shape else np.inf for n in theirs)
    c.hold(f"{what}: outputs", worst < 2e-4, f"{worst:.1e} off")


def evaluate(c, model, quantized, data, steps, recordings, states, fixed, what, layers):
    """Both models with their own states: what qeval prints against ONNX Runtime's outputs."""
    report = c.folder / "eval.json"
    tool.run([c.qeval, model, quantized, *data, *steps, "--metric", "agreement,sqnr", *(["--layers"] if layers else []), "-q", "--json", report])
    r = json.loads(report.read_text())
    real, _ = run(model, recordings, states, fixed)
    other, _ = run(quantized, recordings, states, fixed)
    first = next(iter(real))
    agreement = float(((real[first] > 0.5) == (other[first] > 0.5)).mean())
    c.hold(f"{what}: samples", r["samples"] == len(real[first]), f"{r['samples']}")
    c.hold(f"{what}: agreement", abs(r["models"][1]["metrics"]["agreement"] - agreement) < 2.5 / len(real[first]), f"{r['agreement']} and {agreement}")
    worst = min(decibels(real[n], other[n]) for n in real)
    c.hold(f"{what}: SQNR", abs(r["output_sqnr_db"] - worst) < 0.5, f"{r['output_sqnr_db']:.2f} and {worst:.2f} dB")
    if layers:
        found = {layer["value"]: layer["sqnr_db"] for layer in r["layers"] if layer.get("value") in real}
        c.hold(f"{what}: layers", found and all(abs(db - decibels(real[n], other[n])) < 0.5 for n, db in found.items()), f"{found}")


def check(c, what, model, data, steps, recordings, states, fixed, layers=False):
    """data: options that name the recordings; steps: those that cut them."""
    for o, i in states.items():
        steps = [*steps, "--state", f"{o}={i}"]
    out = c.folder / "out.npz"
    tool.run([c.qeval, model, *data, *steps, "-q", "--outputs", out])
    theirs, found = run(model, recordings, states, fixed)
    same(c, what, dict(np.load(out)), theirs)
    quantized = c.folder / "int8.onnx"
    c.convert(model, quantized, *data, *steps)
    evaluate(c, model, quantized, data, steps, recordings, states, fixed, what, layers)
    return quantized, found


def recorded(c, what, model, quantized, recordings, states, fixed, found):
    """The same samples from a file that has the states: the conversion is the same, but for what says where samples came from."""
    data, again = c.folder / "recorded.npz", c.folder / "again.onnx"
    name = next(i.name for i in peer.session(model).get_inputs() if i.name not in fixed and i.name not in states.values())
    np.savez(data, **{name: np.concatenate(recordings)[:, None]}, **{i: np.stack([f[i] for f in found]) for i in states.values()}, **fixed)
    c.convert(model, again, "--data", data)
    one, two = onnx.load(quantized), onnx.load(again)
    for m in (one, two):
        del m.metadata_props[:]
    def scales(m):
        return {t.name: float(numpy_helper.to_array(t).ravel()[0]) for t in m.graph.initializer if t.name.endswith("_scale")}
    a, b = scales(one), scales(two)
    near = a.keys() == b.keys() and all(abs(a[n] - b[n]) <= 0.02 * a[n] for n in a)
    c.hold(f"{what}: conversion from recorded states", near, f"{len(a)} scales")


def main():
    parser = options(__doc__)
    parser.add_argument("--shared", type=Path, default=tool.SHARED)
    args = parser.parse_args()
    with Checker(args) as c:
        model, files = c.folder / "small.onnx", [c.folder / "a.wav", c.folder / "b.wav"]
        small(model)
        for file, n in zip(files, (6000, 4321), strict=True):
            record(file, n)
        steps = ["-p", f"lead={LEAD}:frame={FRAME}:hop={HOP}", "-p", "rate/value=8000"]
        fixed, states = {"rate": np.array(8000)}, {"next": "state"}
        recordings = [windows(f, LEAD, FRAME, HOP) for f in files]
        quantized, found = check(c, "small", model, ["--data", files[0], "--data", files[1]], steps, recordings, states, fixed, layers=True)
        recorded(c, "small", model, quantized, recordings, states, fixed, found)
        silero, speech = args.shared / "models/silero_vad_16k.onnx", args.shared / "data/silero"
        if silero.is_file():
            steps = ["-p", "rate=16000:lead=64:frame=576:hop=512", "-p", "sr/value=16000"]
            recordings, fixed = [windows(speech / "test_16k.wav", 64, 576, 512)], {"sr": np.array(16000)}
            quantized, found = check(c, "silero", silero, ["--data", speech / "test_16k.wav"], steps, recordings, {"stateN": "state"}, fixed)
            stored = np.load(speech / "silero_vad_16k_frames.npz")
            same(c, "silero: recorded", {"p": np.load(c.folder / "out.npz")["output"][:len(stored["prob"]), 0]}, {"p": stored["prob"]})
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
