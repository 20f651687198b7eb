"""bench/recurrent: GRU and RNN as float operators and as quantized bodies, in ONNX Runtime; and as qconvert writes them."""
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from octbench import places  # noqa: F401 -- for pylib
from pylib import metrics, tool

F, FLOAT = np.float32, TensorProto.FLOAT
GATES = {"GRU": 3, "RNN": 1}
FORMS = ("operator", "Scan", "Loop", "Scan, fixed")
SEED = 7


class Graph:
    def __init__(self, name):
        self.name, self.nodes, self.inits, self.n = name, [], [], 0

    def const(self, value):
        self.n += 1
        self.inits.append(numpy_helper.from_array(np.asarray(value), f"{self.name}_c{self.n}"))
        return self.inits[-1].name

    def op(self, kind, *inputs, outputs=1, **attrs):
        self.n += 1
        names = [f"{self.name}_v{self.n}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attrs))
        return names[0] if outputs == 1 else names

    def done(self, inputs, outputs):
        return helper.make_graph(self.nodes, self.name, inputs, outputs, self.inits)


def value(name, dims, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, dims)


def product(g, x, w, bias, fixed=False):
    """x [..., k] times w [n][k] transposed: on integers, weights of 7 bits with a scale a row (exact on every CPU)."""
    scale = (abs(w).max(1) / 63).astype(F)
    q = np.ascontiguousarray(np.rint(w / scale[:, None]).astype(np.int8).T)
    if fixed:
        xs, xz = g.const(F(1 / 127)), g.const(np.uint8(128))
        xq = g.op("QuantizeLinear", x, xs, xz)
    else:
        xq, xs, xz = g.op("DynamicQuantizeLinear", x, outputs=3)
    acc = g.op("Cast", g.op("MatMulInteger", xq, g.const(q), xz, g.const(np.zeros(len(w), np.int8))), to=FLOAT)
    return g.op("Add", g.op("Mul", acc, g.op("Mul", xs, g.const(scale))), g.const(bias))


def step(g, kind, xp, h, r, bias, fixed):
    """One step; xp: the products of X with their bias. A GRU resets behind its product (linear_before_reset)."""
    hp = product(g, h, r, bias, fixed)
    if kind == "RNN":
        return g.op("Tanh", g.op("Add", xp, hp))
    xz, xr, xh = g.op("Split", xp, outputs=3, axis=-1, num_outputs=3)
    hz, hr, hh = g.op("Split", hp, outputs=3, axis=-1, num_outputs=3)
    z, reset = g.op("Sigmoid", g.op("Add", xz, hz)), g.op("Sigmoid", g.op("Add", xr, hr))
    new = g.op("Tanh", g.op("Add", xh, g.op("Mul", reset, hh)))
    return g.op("Add", new, g.op("Mul", z, g.op("Sub", h, new)))


def scan(g, kind, xp, h0, shape, r, bias, fixed):
    _, batch, hidden = shape
    b = Graph("body")
    h = step(b, kind, "bx", "bh", r, bias, fixed)
    out = b.op("Identity", h)
    body = b.done([value("bh", [batch, hidden]), value("bx", [batch, len(r)])], [value(h, [batch, hidden]), value(out, [batch, hidden])])
    return g.op("Scan", h0, xp, outputs=2, num_scan_inputs=1, body=body)[1]


def loop(g, kind, xp, h0, shape, r, bias):
    steps, batch, hidden = shape
    b = Graph("body")
    h = step(b, kind, b.op("Gather", xp, "i", axis=0), "bh", r, bias, False)
    out, again = b.op("Identity", h), b.op("Identity", "c")
    body = b.done([value("i", [], TensorProto.INT64), value("c", [], TensorProto.BOOL), value("bh", [batch, hidden])],
                  [value(again, [], TensorProto.BOOL), value(h, [batch, hidden]), value(out, [batch, hidden])])
    return g.op("Loop", g.const(np.int64(steps)), g.const(np.bool_(True)), h0, outputs=2, body=body)[1]


def model(kind, form, steps, batch, hidden):
    rng, rows, g = np.random.default_rng(SEED), GATES[kind] * hidden, Graph("g")
    w, r, bias = (rng.uniform(-1, 1, size).astype(F) / F(np.sqrt(hidden)) for size in ((rows, hidden), (rows, hidden), 2 * rows))
    shape = (steps, batch, hidden)
    if form == "operator":
        more = {"linear_before_reset": 1} if kind == "GRU" else {}
        y = g.op(kind, "x", *(g.const(c[None]) for c in (w, r, bias)), hidden_size=hidden, outputs=2, **more)[0]
        y = g.op("Squeeze", y, g.const(np.array([1])))
    else:
        xp, h0 = product(g, "x", w, bias[:rows]), g.const(np.zeros((batch, hidden), F))
        y = loop(g, kind, xp, h0, shape, r, bias[rows:]) if form == "Loop" else scan(g, kind, xp, h0, shape, r, bias[rows:], "fixed" in form)
    return helper.make_model(g.done([value("x", list(shape))], [value(y, list(shape))]), opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def session(made):
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return ort.InferenceSession(made, options, providers=["CPUExecutionProvider"])


def times(kind, steps, batch, hidden, rounds):
    """({form: least milliseconds}, {form: largest deviation from the operator's outputs})."""
    x = np.random.default_rng(SEED + 1).standard_normal((steps, batch, hidden)).astype(F)
    sessions = {form: session(model(kind, form, steps, batch, hidden).SerializeToString()) for form in FORMS}
    outputs = {form: s.run(None, {"x": x})[0] for form, s in sessions.items()}
    return in_turns(sessions, x, rounds), {form: float(abs(y - outputs["operator"]).max()) for form, y in outputs.items()}


def in_turns(sessions, x, rounds):
    """{name: least milliseconds} of processor time."""
    least = dict.fromkeys(sessions, np.inf)
    for _ in range(rounds):
        for name, s in sessions.items():
            start = time.process_time_ns()
            s.run(None, {"x": x})
            least[name] = min(least[name], (time.process_time_ns() - start) / 1e6)
    return least


def converted(folder, kind, steps, batch, hidden, args):
    """A row: what the float operator takes in ONNX Runtime; then of both forms that qconvert writes bytes, time and dB beside those of float, and
    the dB of the body against the stored form."""
    paths = {name: folder / f"{name}.onnx" for name in ("float", "stored", "body")}
    paths["float"].write_bytes(model(kind, "operator", steps, batch, hidden).SerializeToString())
    for name, scheme in (("stored", "weight-only"), ("body", "dynamic")):
        tool.run([args.build / "tools/qconvert/qconvert", paths["float"], "-o", paths[name], "-q", "--target", args.target, "--set", f"op:{kind}={scheme}"])
    x = np.random.default_rng(SEED + 1).standard_normal((steps, batch, hidden)).astype(F)
    sessions = {name: session(path.read_bytes()) for name, path in paths.items()}
    y = {name: s.run(None, {"x": x})[0] for name, s in sessions.items()}
    least, size = in_turns(sessions, x, args.rounds), {name: path.stat().st_size for name, path in paths.items()}
    return [least["float"], *(size[n] / size["float"] for n in ("stored", "body")), *(least[n] / least["float"] for n in ("stored", "body")),
            *(db(y["float"], y[n]) for n in ("stored", "body")), db(y["stored"], y["body"])]


def db(want, got):
    one = metrics.Sqnr()
    one.add(want, got.reshape(want.shape))
    return one.db


def write_table(args):
    print(f"ONNX Runtime {ort.__version__}")
    print("| | float, ms | size: stored | body | time: stored | body | dB: stored | body | body to stored |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for kind in args.kinds.split(","):
            for hidden in args.hidden:
                for batch in args.batch:
                    for steps in args.steps:
                        row = converted(Path(folder), kind, steps, batch, hidden, args)
                        cells = (f"{v:.{n}f}" for v, n in zip(row, (3, 2, 2, 2, 2, 1, 1, 1), strict=True))
                        print(f"| {kind} {hidden}, batch {batch}, {steps} steps | {' | '.join(cells)} |", flush=True)
    return 0


def main(args):
    if args.converted:
        return write_table(args)
    print(f"ONNX Runtime {ort.__version__}")
    print(f"{'':4s} {'hidden':>6s} {'batch':>5s} {'steps':>5s} {'float, ms':>9s}  {'  '.join(FORMS[1:])}  deviates by")
    for kind in args.kinds.split(","):
        for hidden in args.hidden:
            for batch in args.batch:
                for steps in args.steps:
                    least, off = times(kind, steps, batch, hidden, args.rounds)
                    quotients = "  ".join(f"{least[form] / least['operator']:{len(form)}.2f}" for form in FORMS[1:])
                    print(f"{kind:4s} {hidden:6d} {batch:5d} {steps:5d} {least['operator']:9.3f}  {quotients}  {max(off.values()):.3f}", flush=True)
    return 0
