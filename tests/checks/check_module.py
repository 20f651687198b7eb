#!/usr/bin/env python3
"""The Python module, used wrongly and in processes that fork, set a locale, get signals and run threads. Each case is a process of its own with a time limit,
so that a crash or a wait without end is a case that fails.

    check_module.py BUILD [-v] [NAME...]

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import installed, packages

packages.need("numpy", "onnx")

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60
# What each case may use. Samples are [64, 8]; the network is small enough to convert in milliseconds, and runs on threads where a case asks for them.
HEAD = """
import collections, copy, json, locale, multiprocessing, os, pathlib, pickle, signal, subprocess, sys, tarfile, threading, time
import numpy as np, onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh
import octet

def model(nodes, ins, outs, init=()):
    return h.make_model(h.make_graph(nodes, "g", ins, outs, list(init)), opset_imports=[h.make_opsetid("", 17)], ir_version=8)

def values(name, *dims, kind=T.FLOAT):
    return h.make_tensor_value_info(name, kind, dims)

def network():
    r = np.random.default_rng(0)
    w = [nh.from_array(r.normal(size=s).astype("f4"), f"w{i}") for i, s in enumerate([(8, 64), (64, 4)])]
    return model([h.make_node("MatMul", ["x", "w0"], ["a"], name="first"), h.make_node("Relu", ["a"], ["b"], name="act"),
                  h.make_node("MatMul", ["b", "w1"], ["y"], name="last")], [values("x", "N", 8)], [values("y", "N", 4)], w)

def refused(call, *words, kind=octet.Error, status=None):
    try:
        call()
    except kind as e:
        assert all(w in str(e) for w in words), str(e)
        assert status is None or e.status == status, (e.status, str(e))
        return e
    raise SystemExit(f"nothing was raised, wanted {kind.__name__} {words}")

x = np.random.default_rng(1).normal(size=(64, 8)).astype("f4")
if not os.path.exists("net.onnx"): # a spawned process comes here, too
    onnx.save(network(), "net.onnx")
want = np.maximum(x @ nh.to_array(network().graph.initializer[0]), 0) @ nh.to_array(network().graph.initializer[1])
"""
CASES = {
    # ---- names ----
    "names_start_nothing": """
for name in ("--runner=touch pwned;true", "--metric-cmd=touch pwned;echo 1 #.onnx", "-ofile", "--help", "pipe:touch pwned", "cmd:touch pwned"):
    refused(lambda: octet.evaluate("net.onnx", name, data=x), name, status=3)
    refused(lambda: octet.convert(name, data=x), name, status=3)
    refused(lambda: octet.evaluate("net.onnx", "net.onnx", data=name), status=3 if ":" in name else None)
assert not os.path.exists("pwned") and not os.path.exists("file")
""",
    "names_of_files_work": """
for name in ("--json.onnx", "-o-", "--metric-cmd=touch pwned;echo 1 #.onnx", "pipe:touch pwned", "lint", "verify"):
    onnx.save(network(), "./" + name)
    assert octet.convert(name, output="out.onnx", scheme="bf16")["layers"], name
np.save("./pipe:x.npy", x)
assert octet.convert("net.onnx", data="pipe:x.npy", output="out.onnx")
assert octet.convert("net.onnx", data=pathlib.Path("pipe:x.npy"), output="out.onnx") and not os.path.exists("pwned")
""",
    "a_pipe_is_asked_for": """
np.save("a.npy", x)
with tarfile.open("x.tar", "w") as t:
    for i, row in enumerate(x):
        np.save(f"{i:03}.npy", row)
        t.add(f"{i:03}.npy")
octet.convert("net.onnx", data=octet.Pipe("cat x.tar"), output="piped.onnx")
octet.convert("net.onnx", data="x.tar", output="plain.onnx")
y, z = octet.Model("piped.onnx")(x)[0], octet.Model("plain.onnx")(x)[0]
assert y.tobytes() == z.tobytes()
""",
    "streams_stay": """
before = os.dup(1)
os.dup2(os.open("stdout", os.O_WRONLY | os.O_CREAT), 1)
for name in ("-", "/dev/stdout", "/dev/fd/1", "/dev/stderr"):
    refused(lambda: octet.convert("net.onnx", data=x, output=name), "streams", status=2)
    refused(lambda: octet.convert("net.onnx", data=x, html=name), "streams", status=2)
os.dup2(before, 1)
assert os.path.getsize("stdout") == 0
""",
    "nul_is_refused": """
for call in (lambda: octet.convert("net.onnx", data=x, output="short.onnx\\0/../long.onnx"), lambda: octet.convert("net.onnx\\0", data=x),
             lambda: octet.Model("net.onnx\\0.txt"), lambda: octet.Model(b"net.onnx\\0.txt"), lambda: octet.evaluate("net.onnx", "net.onnx", data="a\\0b"),
             lambda: octet.Model("net.onnx")(**{"x\\0": x}), lambda: octet.Model("net.onnx").metadata("a\\0b")):
    refused(call, kind=ValueError)
assert not os.path.exists("short.onnx")
""",
    "names_of_any_bytes": """
name = os.fsdecode(b"no\\xff.onnx")
for _ in range(3):
    assert "no" in str(refused(lambda: octet.Model(name), status=3))
    refused(lambda: octet.convert(name, data=x), status=3)
onnx.save(network(), name)
assert octet.Model(name)(x)[0].shape == (64, 4) and octet.convert(name, data=x, output=os.fsdecode(b"out\\xfe.onnx"))
assert os.path.exists(b"out\\xfe.onnx") and octet.Model(b"out\\xfe.onnx")
""",
    # ---- errors ----
    "errors_are_text": """
for n in range(440, 490): # the text is cut in the middle of a character by some of them
    onnx.save(model([h.make_node("Foo", ["x"], ["y"], name="\\u00e4" * n)], [values("x", "N", 4)], [values("y", "N", 4)]), "foo.onnx")
    e = refused(lambda: octet.Model("foo.onnx"))
    assert "\\ufffd" not in str(e) and "\\\\x" not in str(e), str(e)
""",
    "errors_are_sent": """
octet.convert("net.onnx", data=x, output="o.onnx")
e = refused(lambda: octet.evaluate("net.onnx", "o.onnx", data=x, min_sqnr=1000), status=1)
f = pickle.loads(pickle.dumps(e))
assert type(f) is octet.Error and str(f) == str(e) and (f.status, f.hint, f.report) == (e.status, e.hint, e.report) and f.report
with multiprocessing.Pool(1) as pool:
    refused(lambda: pool.map(octet.Model, ["missing.onnx"]), "missing.onnx", status=3)
""",
    # ---- models ----
    "copies_are_models": """
m = octet.Model("net.onnx", threads=1)
c, d, p = copy.copy(m), copy.deepcopy(m), pickle.loads(pickle.dumps(m))
del m
for other in (c, d, p):
    assert np.abs(other(x)[0] - want).max() < 1e-4
""",
    "failed_models_are_released": """
for path, threads in (("missing.onnx", 0), ("net.onnx", -1), ("net.onnx", 100000), ("net.onnx", 2**32 + 1), (".", 0), ("/dev/stdin", 0), ("", 0)):
    refused(lambda: octet.Model(path, threads))
refused(lambda: octet.Model("net.onnx", "two"), kind=TypeError)
for wrong, what in ((None, "None"), (object(), "object"), (["net.onnx"], "list"), (onnx.ModelProto, "the class ModelProto")):
    refused(lambda: octet.Model(wrong), "a model cannot be " + what, kind=TypeError)
    refused(lambda: octet.convert(wrong), "a model cannot be " + what, kind=TypeError)
assert octet.Model("net.onnx", threads=2)(x)[0].shape == (64, 4)
""",
    "outputs_are_own": """
onnx.save(model([h.make_node("Identity", ["x"], ["y"])], [values("x", "N")], [values("y", "N")]), "id.onnx")
m = octet.Model("id.onnx")
for n in range(1, 2000, 97):
    a = np.arange(n, dtype="f4")
    y, = m(a)
    a[:] = -1
    m(a)
    assert y.tolist() == list(range(n))
""",
    "values_stay": """
onnx.save(model([h.make_node("Identity", ["x"], ["y"])], [values("x", "N")], [values("y", "N")]), "id.onnx")
m = octet.Model("id.onnx")
refused(lambda: m(np.array([0, 1e300])), "index 1", "float32", status=6)
refused(lambda: m(np.array([0, 0, 2**24 + 1])), "16777217", "index 2", status=6)
for a in (np.array([2**24]), np.array([0.1, np.inf, -np.inf, 3e38]), np.array([True, False]), np.array([255], "u1"), np.array([65504], "f2")):
    y, = m(a)
    assert y.tobytes() == a.astype("f4").tobytes(), a
""",
    "hidden_values_are_refused": """
m = octet.Model("net.onnx")
hidden = np.ma.masked_array(x, mask=np.arange(x.size).reshape(x.shape) == 9)
for call in (lambda: m(hidden), lambda: octet.convert("net.onnx", data=hidden), lambda: octet.convert("net.onnx", data={"x": hidden}),
             lambda: m(np.array([[object()]])), lambda: octet.convert("net.onnx", data=np.array([[None]]))):
    refused(call, kind=TypeError)
open_ = np.ma.masked_array(x, mask=False)
assert m(open_)[0].tobytes() == m(x)[0].tobytes() and octet.convert("net.onnx", data=open_, output="o.onnx")
assert m(hidden.filled(0))[0].shape == (64, 4)
""",
    "arrays_of_any_kind": """
m = octet.Model("net.onnx")
y = m(x)[0].tobytes()
raw = np.zeros(x.nbytes + 1, "u1")
raw[1:] = x.view("u1").ravel()
for a in (np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2], raw[1:].view("f4").reshape(x.shape), x.astype("f8"), x.astype(">f4")):
    assert m(a)[0].tobytes() == y
assert m(x[:0])[0].shape == (0, 4)
for a in (x.astype("c8"), np.zeros((1,) * 9, "f4"), np.array(["a"]), "text", None, np.zeros(1, "M8[s]")):
    refused(lambda: m(a), kind=TypeError)
for call in (lambda: m(), lambda: m(x, x), lambda: m(none=x), lambda: m(x, x=x), lambda: m(x[0]), lambda: m(x[:, :3]), lambda: m(np.float32(1))):
    refused(call, status=4)
""",
    "names_of_arrays": """
net = network()
for name in ("file", "args", "x/y", "\\u00e4", "--x"):
    net.graph.input[0].name = net.graph.node[0].input[0] = name
    onnx.save(net, "named.onnx")
    assert octet.convert("named.onnx", data={name: x}, output="o.onnx") and octet.Model("o.onnx")(**{name: x})[0].shape == (64, 4), name
refused(lambda: octet.convert("named.onnx", data={"a\\0b": x}), kind=(octet.Error, ValueError))
""",
    "several_arrays": """
octet.convert("net.onnx", data=[x[:40], x[40:]], output="two.onnx")
octet.convert("net.onnx", data=x, output="one.onnx")
assert octet.Model("two.onnx")(x)[0].tobytes() == octet.Model("one.onnx")(x)[0].tobytes()
""",
    # ---- what may be given ----
    "samples_of_any_kind": """
class Set:
    def __init__(self, of): self.of, self.asked = of, []
    def __len__(self): return len(self.of)
    def __getitem__(self, i):
        self.asked.append(i)
        return self.of[i]
class Reader:
    def __init__(self, of): self.of = iter(of)
    def get_next(self): return next(self.of, None)
np.save("x.npy", x)
wanted = None
rows = Set(x)
for data in ("x.npy", pathlib.Path("x.npy"), b"x.npy", ["x.npy"], x, {"x": x}, [x], (x[:40], x[40:]), list(x), [{"x": row} for row in x], (row for row in x),
             (x[i:i + 1] for i in range(len(x))), Reader({"x": row[None]} for row in x), rows, Set([{"x": row[None]} for row in x]), x.tolist(),
             collections.UserDict(x=x), [collections.UserDict(x=row) for row in x], Reader(collections.UserDict(x=row[None]) for row in x), # as a tokenizer's result
             Set([collections.UserDict(x=row[None]) for row in x]), x.astype(">f4"), {"x": x.astype(">f4")}, {"x": np.asfortranarray(x)}):
    got = octet.convert("net.onnx", data, in_memory=True)
    y = octet.Model(got.model)(x)[0]
    wanted = y if wanted is None else wanted
    assert y.tobytes() == wanted.tobytes() and got["samples"] > 40, type(data)
    judged = octet.evaluate("net.onnx", got, data=x, latency=False)
assert sorted(set(rows.asked)) == list(range(64))
for data, kind in (([], octet.Error), (iter([]), octet.Error), (3, TypeError), ((3 for _ in x), TypeError), (Set([3]), TypeError), (Set([{"z": x}]), KeyError),
                   ([x, "x.npy", None], TypeError), (Set([]), octet.Error), (Set([x[0, :3]]), octet.Error), (Set(list(np.full((9, 8), "a"))), TypeError)):
    refused(lambda: octet.convert("net.onnx", data, in_memory=True), kind=kind)
for pairs in (((row, 1) for row in x), Set([(row, 1) for row in x])): # as for training
    refused(lambda: octet.convert("net.onnx", pairs, in_memory=True), "(one[0] for one in data)", kind=TypeError)
ml = [h.make_node("LabelEncoder", ["cat"], ["c"], domain="ai.onnx.ml", keys_strings=["a", "b"], values_floats=[-1.0, 1.0]),
                  h.make_node("Concat", ["x", "c"], ["xc"], axis=1), h.make_node("MatMul", ["xc", "w"], ["y"], name="only")]
words = model(ml, [values("x", "N", 8), h.make_tensor_value_info("cat", T.STRING, ["N", 1])], [values("y", "N", 4)],
              [nh.from_array(np.random.default_rng(1).normal(size=(9, 4)).astype("f4"), "w")])
words.opset_import.append(h.make_opsetid("ai.onnx.ml", 3))
named = np.array([["a"], ["b"]] * 32)
found = [octet.convert(words, given, in_memory=True).model for given in ({"x": x, "cat": named}, {"x": x, "cat": named.astype(object)},
                                                                         [{"x": x[i:i + 1], "cat": named[i:i + 1].astype(object)} for i in range(64)])]
assert found[0] == found[1] and len(found[2]) == len(found[0])
refused(lambda: octet.convert(words, {"x": x, "cat": np.array([["a"], [3]] * 32, dtype=object)}), kind=TypeError)
def broken():
    yield x[:9]
    raise ZeroDivisionError("own")
refused(lambda: octet.convert("net.onnx", broken(), output="broken.onnx"), "own", kind=ZeroDivisionError)
class Broken(Set):
    def __getitem__(self, i): return self.of[i] if i < 50 else 1 // 0
refused(lambda: octet.convert("net.onnx", Broken(x), output="broken.onnx"), kind=ZeroDivisionError)
assert not os.path.exists("broken.onnx")
""",
    "models_of_any_kind": """
proto, raw = network(), network().SerializeToString()
files = set(os.listdir())
made = [octet.convert(one, x) for one in (proto, raw, bytearray(raw), memoryview(raw))]
assert set(os.listdir()) == files and len({m.model for m in made}) == 1 and made[0].output is None
onnx.load_from_string(made[0].model)
on_file = octet.convert(raw, x, output="o.onnx")
assert on_file.model is None and on_file.output == "o.onnx" and pathlib.Path("o.onnx").read_bytes() == made[0].model
beside = octet.convert("net.onnx", data=x)
assert beside.output == "./net.int8.onnx" or beside.output == "net.int8.onnx", beside.output
for one in (proto, raw, "net.onnx", pathlib.Path("net.onnx")):
    assert np.abs(octet.Model(one)(x)[0] - want).max() < 1e-4
    for other in (made[0], on_file, made[0].model, onnx.load("o.onnx"), "o.onnx"):
        e = octet.evaluate(one, other, data=x, latency=False)
        assert e.quantized.metrics["sqnr"].value == octet.evaluate("net.onnx", "o.onnx", data=x, latency=False).metrics["sqnr"].value
c = pickle.loads(pickle.dumps(octet.Model(made[0])))
assert c(x)[0].tobytes() == octet.Model("o.onnx")(x)[0].tobytes()
table = octet.calibrate(proto, x, "t.calib")
assert {t.name for t in table.tensors} >= {"x", "b"}, table.tensors
assert table.samples == 64, table.samples
low = {t.name: t.min for t in table.tensors}["x"]
assert abs(low - x.min()) < 1e-6
assert octet.convert("net.onnx", calib="t.calib", in_memory=True).model
lite = octet.convert("net.onnx", x, output="o.tflite")
assert lite.output == "o.tflite" and octet.lint("o.tflite")["target"] == "litert"
in_memory = octet.convert("net.onnx", x, format="tflite", in_memory=True).model
assert in_memory == pathlib.Path("o.tflite").read_bytes()
for one in (in_memory, bytearray(in_memory), lite, "o.tflite"):
    assert np.abs(octet.Model(one)(x)[0] - octet.Model("o.tflite")(x)[0]).max() == 0 and np.abs(octet.Model(one)(x)[0] - want).max() < 1
refused(lambda: octet.convert(b"\\x08 no model", x), status=4)
os.mkdir("beside")
onnx.save(network(), "beside/m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
apart = onnx.load("beside/m.onnx", load_external_data=False)
try:
    octet.convert(apart, x)
    raise SystemExit("the data were found")
except octet.Error as e:
    assert e.status == 3 and "m.data" in str(e) and "give the file's name" in e.hint, e
os.chdir("beside")
assert octet.Model(octet.convert(apart, x))(x)[0].tobytes() == octet.Model(made[0])(x)[0].tobytes()
os.chdir("..")
refused(lambda: octet.convert(None, x), kind=TypeError)
refused(lambda: octet.convert(3, x), kind=TypeError)
""",
    "inputs_with_default_values": """
net = network()
names = [i.name for i in net.graph.initializer]
assert not [n for n in octet.convert(net, x).notes if "default value" in n]
net.graph.input.append(h.make_tensor_value_info(names[0], T.FLOAT, list(net.graph.initializer[0].dims)))
note, = [n for n in octet.convert(net, x).notes if "default value" in n]
assert f"input '{names[0]}' has" in note, note
for name, tensor in zip(names[1:], net.graph.initializer[1:]): # all: a habit of exporters
    net.graph.input.append(h.make_tensor_value_info(name, T.FLOAT, list(tensor.dims)))
assert not [n for n in octet.convert(net, x).notes if "default value" in n]
""",
    "labels_of_arrays": """
labels = want.argmax(1)
np.save("labels.npy", labels)
octet.convert("net.onnx", data=x, output="o.onnx")
of_file = octet.evaluate("net.onnx", "o.onnx", data=x, labels="labels.npy", latency=False)
y = octet.Model("o.onnx")(x)[0]
right = float((y.argmax(1) == labels).mean())
for given in (labels, labels.tolist(), labels.astype("i4")):
    e = octet.evaluate("net.onnx", "o.onnx", data=x, labels=given, latency=False)
    assert e.metrics["top1"].value == right and e.metrics["top1"].float_value == 1 and e["quant"]["metrics"] == of_file["quant"]["metrics"]
goal = octet.convert("net.onnx", x, labels=labels, max_drop="50%", in_memory=True)
assert goal.goals_met and goal.metrics["top1"].samples and "top1" in goal.text
for given in (labels + 0.5, [["a"]], [1, 2]):
    refused(lambda: octet.evaluate("net.onnx", "o.onnx", data=x, labels=given), kind=(TypeError, octet.Error))
""",
    # ---- options and results ----
    # The members of the structures, in their order and with their types, from the header's text.
    "structures_are_the_headers": """
import ctypes, re
from octet import _library as l
header = pathlib.Path(os.environ["OCTET_HEADER"]).read_text()
types = {"size_t": ctypes.c_size_t, "const char *": ctypes.c_char_p, "const void *": ctypes.c_void_p, "void *": ctypes.c_void_p, "bool": ctypes.c_bool,
         "int": ctypes.c_int, "int64_t": ctypes.c_int64, "double": ctypes.c_double, "octet_texts": l.Texts, "octet_samples": l.Samples, "octet_sample_fn": l.SAMPLE}
for kind, name in ((l.Samples, "octet_samples"), (l.CalibrateOptions, "octet_calibrate_options"), (l.ConvertOptions, "octet_convert_options"),
                   (l.EvaluateOptions, "octet_evaluate_options")):
    body = re.search(r"typedef struct " + name + r" \\{(.*?)\\n\\} " + name + ";", header, re.DOTALL).group(1)
    members = []
    for line in re.sub(r"/\\*.*?\\*/", "", body, flags=re.DOTALL).split(";"):
        if not line.strip():
            continue
        of, names = re.match(r"\\s*((?:const )?\\w+ \\*?)(.*)", line, re.DOTALL).groups()
        members += [(n.strip(" *\\n"), types[of.strip() if "*" not in of else of]) for n in names.split(",")]
    assert kind._fields_ == members, (name, [p for p in zip(kind._fields_, members) if p[0] != p[1]])
""",
    "each_option_is_set": """
from octet import _calls, _library as l
import inspect
own = {"model", "data", "others", "progress", "json", "unknown", "shard"}
for call, kind in ((octet.convert, l.ConvertOptions), (octet.calibrate, l.CalibrateOptions), (octet.evaluate, l.EvaluateOptions)):
    members = {n for n, _ in kind._fields_} | {n for n, _ in l.Samples._fields_}
    named = {_calls.RENAMED.get(n, n) for n in inspect.signature(call).parameters if n not in own}
    if call is octet.evaluate:
        named = named - {"metric"} | {"metrics"}
    without = {"size", "model", "model_data", "model_size", "get", "get_arg", "count", "data", "shards", "shard", "quantized"}
    labels = {"labels"} if call is octet.calibrate else set() # a calibration needs none
    assert named == members - without - labels - {"samples"} | {"samples"}, named ^ (members - without)
    assert all(p.annotation is not p.empty for n, p in inspect.signature(call).parameters.items()), call
    assert len(call.__doc__) > 300
""",
    "without_the_library": """
alone = subprocess.run([sys.executable, "-c", "import octet"], env={**os.environ, "OCTET_LIBRARY": "/none/liboctet.so"}, capture_output=True, text=True)
assert alone.returncode and "ImportError: /none/liboctet.so" in alone.stderr and "OCTET_LIBRARY" in alone.stderr, alone.stderr
""",
    "names_of_arrays_in_texts": """
rows, temporary = [row for row in x], "octet-"
made = octet.convert("net.onnx", x, output="o.onnx", json="o.json")
judged = octet.evaluate("net.onnx", "o.onnx", data=x, labels=want.argmax(1), latency=False)
for one in (made, judged):
    assert one.next and any(" --data data" in c.command for c in one.next) and not any(c.complete for c in one.next if " --data " in c.command), one.next
    assert temporary not in json.dumps(one.report["next"]) + json.dumps(one.report.get("answer"))
assert json.loads(pathlib.Path("o.json").read_text())["next"] == made["next"]
np.save("kept.npy", x)
of_file = octet.convert("net.onnx", "kept.npy", output="o.onnx")
assert [c.complete for c in of_file.next if "--data kept.npy" in c.command], of_file.next
rows[3] = x[0, :3]
for data, said in ((rows, "data[3]"), (x[:, :3], ": data["), ((row for row in rows), "data[3]")):
    e = refused(lambda: octet.convert("net.onnx", data, in_memory=True), said)
    assert temporary not in str(e), e
e = refused(lambda: octet.evaluate("net.onnx", "o.onnx", data=x, labels=[1, 2]), "labels: 2 labels")
assert temporary not in str(e), e
""",
    "as_another_runtime": """
octet.convert("net.onnx", x, output="o.tflite")
plain, twin = (octet.evaluate("net.onnx", "o.tflite", data=x, latency=False, **more) for more in ({}, {"as_": "tflm"}))
assert twin.quantized.metrics["sqnr"].value > 15 and twin["quant"] != plain["quant"]
refused(lambda: octet.evaluate("net.onnx", "o.tflite", data=x, as_="tfl"), "tflm", status=2)
refused(lambda: octet.evaluate("net.onnx", "o.tflite", data=x, **{"as": "tflm"}), "as_", status=2)
""",
    "options_are_values": """
for name, value, words in (("scheme", "int9", "int9"), ("bits", 2.5, "whole number"), ("bits", "x", "whole number"), ("threads", 1 << 40, "out of range"),
                           ("budget", "x", "number"), ("budget", 101, "range"), ("no_such", 1, "no-such"), ("min_sqrn", 1, "min_sqnr"), ("isa", "avx2", "use_isa")):
    refused(lambda: octet.convert("net.onnx", x, **{name: value}), words, status=2)
refused(lambda: octet.evaluate("net.onnx", "net.onnx", data=x, shard="3/2"), "3/2", status=2)
for value in ("--help", "-o pwned", "--output=pwned"):
    refused(lambda: octet.convert("net.onnx", x, scheme=value), status=2)
    refused(lambda: octet.convert("net.onnx", x, set=value), status=2)
    octet.convert("net.onnx", x, output=value)
    assert os.path.exists(value) and not os.path.exists("pwned") and not os.path.exists(" pwned")
one = octet.convert("net.onnx", x, set=["op:MatMul=float"], in_memory=True)
assert all(layer.scheme == "float" for layer in one.layers if layer.op == "MatMul")
assert octet.convert("net.onnx", x, set="op:MatMul=float", in_memory=True).model == one.model
four = octet.convert("net.onnx", scheme="weight-only", bits="4", block_size=16, in_memory=True, symmetric=True)
assert four["weight_only_layers"] == 2
assert octet.convert("net.onnx", x, dry_run=True, in_memory=True).model is None
a = octet.calibrate("net.onnx", x, "a.calib", shard=(0, 2))
b = octet.calibrate("net.onnx", x, "b.calib", shard="1/2")
assert a.samples + b.samples == 64
octet.use_isa("scalar")
refused(lambda: octet.use_isa("mmx9"), status=2)
""",
    "results_are_objects": """
got = octet.convert("net.onnx", x, output="o.onnx", html="o.html", json="o.json")
assert got.report_html == pathlib.Path("o.html").read_text() and got.report_html.startswith("<!")
assert json.load(open("o.json")) == got.report == dict(got)
assert [layer.name for layer in got.layers][:1] == ["first"] and got.layers[0].integer and got.layers[0].op == "MatMul" and got.layers[0].weight_count == 512
assert got.size_bytes == os.path.getsize("o.onnx") and got.text.startswith("o.onnx") and isinstance(got.warnings, list)
y = np.concatenate([octet.Model("o.onnx")(x[i:i + 1])[0] for i in range(len(x))])  # layers may be dynamic
sqnr = 10 * np.log10((want.astype("f8") ** 2).sum() / ((want.astype("f8") - y) ** 2).sum())
files = set(os.listdir())
judged = octet.evaluate("net.onnx", got, data=x, html=True, latency=False)
assert set(os.listdir()) == files and judged.report_html.startswith("<!")
assert abs(judged.metrics["sqnr"].value - sqnr) < 0.1, (judged.metrics["sqnr"], sqnr)
assert [m.path for m in judged.models] == ["net.onnx", "o.onnx"] and judged.models[1].size_bytes == got.size_bytes and judged.quantized.layers
assert octet.convert("net.onnx", x, in_memory=True).report_html is None
e = refused(lambda: octet.evaluate("net.onnx", "o.onnx", data=x, min_sqnr=200, latency=False), status=1)
assert isinstance(e.report, octet.Evaluation) and not e.report.gates[0].met and e.report.gates[0].gate == "min-sqnr"
for one in (got, judged, octet.convert(network(), x)):
    other = pickle.loads(pickle.dumps(one))
    assert type(other) is type(one) and other == one and getattr(other, "model", 0) == getattr(one, "model", 0) and other.report_html == one.report_html
try:
    got.layers[0].name = "other"
    raise SystemExit("layers can be changed")
except AttributeError:
    pass
""",
    "notes_are_kept": """
picture = model([h.make_node("Conv", ["p", "w"], ["y"], name="conv")], [values("p", "N", 3, 8, 8)], [values("y", "N", 4, 8, 6)],
                [nh.from_array(np.random.default_rng(0).normal(size=(4, 3, 1, 3)).astype("f4"), "w")])
turned = np.random.default_rng(2).random((32, 8, 8, 3)).astype("f4")
got = octet.convert(picture, turned)
assert any("height, width, channels" in n and "turned" in n for n in got.notes), got.notes
assert not any("turned" in n for n in octet.convert(picture, turned.transpose(0, 3, 1, 2)).notes) and pickle.loads(pickle.dumps(got)).notes == got.notes
same = octet.convert(picture, turned.transpose(0, 3, 1, 2))
assert same.model == got.model
assert octet.calibrate(picture, turned, "p.calib").notes and octet.evaluate(picture, got, data=turned, latency=False).notes
""",
    "samples_without_an_end": """
asked = 0
def forever():
    global asked
    while True:
        asked += 1
        yield x[asked % 64:asked % 64 + 1]
got = octet.calibrate("net.onnx", forever(), "t.calib", samples=20, first=True)
assert got.samples == asked == 20, (got.samples, asked)
assert octet.convert("net.onnx", forever(), samples=30, first=True, in_memory=True).model and asked == 50, asked
from octet import _inputs
_inputs.MANY, _inputs.MOST = 40, 100
asked = 0
refused(lambda: octet.convert("net.onnx", forever(), in_memory=True), "100 samples", "has not ended", "samples=N with first=True", status=2)
assert asked == 100
_inputs.shutil.disk_usage = lambda _: type("Usage", (), {"free": 4000}) # a disk that is nearly full
asked = 0
refused(lambda: octet.convert("net.onnx", forever(), in_memory=True), "half full", status=2)
assert asked == 2000 // (128 + 32) + 1 # a file has a head of 128 bytes and eight floats
""",
    "several_targets": """
made = octet.convert_targets("net.onnx", x, targets=["octet", "trt", "qnn"], output="t.TARGET.onnx")
assert [t.target for t in made.targets] == ["octet", "tensorrt", "qnn"], made.targets
for t in made.targets:
    one = octet.convert("net.onnx", x, target=t.target, output="one.onnx")
    assert t.size == os.path.getsize(t.output) == os.path.getsize("one.onnx") and t.output == f"t.{t.target}.onnx", t
    assert t.int8_layers == one["int8_layers"] and t.layers_with_weights == 2 and t.accuracy and made.measured, t
    y, = octet.Model(t.output)(x[:3])
    assert np.abs(y - want[:3]).max() < 0.1 * np.abs(want).max()
files = sorted(os.listdir("."))
dry = octet.convert_targets(network(), x, targets=["octet", "tensorrt"], dry_run=True)
assert [t.output for t in dry.targets] == [None, None] and sorted(os.listdir(".")) == files
assert [t.accuracy for t in dry.targets] == [t.accuracy for t in made.targets[:2]]
refused(lambda: octet.convert_targets("net.onnx", x, targets=["octet"], target="qnn", dry_run=True), "target", status=2)
refused(lambda: octet.convert_targets("net.onnx", x, targets=["octet", "qnn"], output="x.onnx"), "TARGET", status=2)
refused(lambda: octet.convert_targets("net.onnx", x, targets=[]), "no target", status=2)
refused(lambda: octet.convert_targets("net.onnx", x, targets=["octet", "nowhere"], dry_run=True), "nowhere", status=2)
""",
    "models_are_inspected": """
before = octet.lint("net.onnx", target="octet")
assert before["schema"] == "octet-lint-2" and not before["quantized"] and {n["name"] for n in before["conversion"]} >= {"first", "last"}
np.save("x.npy", x)
got = octet.convert("net.onnx", "x.npy", output="o.onnx")
after = octet.lint(got)
assert after.text.startswith(f"{got.output} fits ") and after.text in repr(after) and before.text.startswith("net.onnx is a float model.")
said = octet.explain("net.onnx", "first"); assert said.text.startswith("first (") and said.text.endswith(": " + said["decision"]["why"]), said.text
assert after["quantized"] and after["integer_nodes"] > 0 and octet.lint(onnx.load("o.onnx"))["integer_nodes"] == after["integer_nodes"]
node = octet.explain("net.onnx", "first", x)
causes = octet.sensitivity("net.onnx", got, x, file="kept")
assert causes["schema"] == "octet-sensitivity-1" and {c["layer"] for c in causes["sensitivity"]["causes"]} <= {"", "act", "first", "last"}, causes.report
assert os.path.exists("kept") and octet.sensitivity(onnx.load("net.onnx"), "o.onnx", "x.npy", file="kept")["sensitivity"] == causes["sensitivity"]
judged = octet.evaluate("net.onnx", "o.onnx", data=x, latency=False)
assert abs(judged["output_sqnr_db"] - causes["sensitivity"]["all_db"]) < 0.5, (judged["output_sqnr_db"], causes["sensitivity"])
refused(lambda: octet.sensitivity("net.onnx", "net.onnx", x, labels="y.npy"), "labels", status=2)
assert node["schema"] == "octet-explain-1" and "first" in json.dumps(node.report)
refused(lambda: octet.explain("net.onnx", "frist"), "first", status=2)
refused(lambda: octet.lint("net.onnx", output="x"), "output", status=2)
assert octet.verify("o.onnx", "net.onnx", "x.npy")["schema"] == "octet-verify-1"
assert octet.verify(got, network(), "x.npy").report
np.save("x.npy", x + 1)
refused(lambda: octet.verify("o.onnx", "net.onnx", "x.npy"), status=2)
""",
    "folders_of_models": """
import pathlib
folder = pathlib.Path("f")
folder.mkdir()
(folder / "config.json").write_text("{}")
(folder / "model.onnx").write_bytes(pathlib.Path("net.onnx").read_bytes())
made = octet.convert_folder(folder, "g", x, scheme="static")
assert made["schema"] == "octet-folder-1" and made["recipe"] == "optimum" and made["models"][0]["samples"] > 0, made.report
octet.convert(folder / "model.onnx", x, output="alone.onnx", scheme="static")
assert pathlib.Path("g/model.onnx").read_bytes() == pathlib.Path("alone.onnx").read_bytes()
refused(lambda: octet.convert_folder(folder, "g"), "not empty", status=2)
refused(lambda: octet.convert_folder(folder, "h", recipe="piiper"), "piper", status=2)
refused(lambda: octet.convert_folder(folder, "h", shceme="static"), "scheme", status=2)
refused(lambda: octet.convert_folder(folder), "-o", status=2)
refused(lambda: octet.convert_folder(folder, "h", x, min_sqnr=200, trials=0), status=1)
assert not pathlib.Path("h").exists()
judged = octet.evaluate_folder(folder, "g", x, metric="sqnr")
assert judged["schema"] == "octet-audit-1" and judged["variants"][0]["verdict"] == "fits" and judged["variants"][0]["output_sqnr_db"] > 20
(folder / "model_quantized.onnx").write_bytes(b"cut")
try:
    octet.evaluate_folder(folder)
    assert False
except octet.Error as e:
    assert e.status == 1 and e.report["variants"][0]["verdict"] == "does not load"
""",
    "names_of_the_module": """
assert octet.__version__ == octet.version() and set(dir(octet)) == set(octet.__all__) | {"__doc__", "__version__"}
for name in octet.__all__:
    one = getattr(octet, name)
    assert not name.startswith("_") and one.__doc__ and not getattr(one, "__module__", "").endswith("._results"), name
assert pathlib.Path(octet.__file__).with_name("py.typed").exists()
""",
    # ---- callbacks and signals ----
    "exceptions_end_the_call": """
for kind in (KeyboardInterrupt, ZeroDivisionError, SystemExit, octet.Error):
    def progress(*a):
        raise kind("own", 0, "") if kind is octet.Error else kind("own")
    refused(lambda: octet.convert("net.onnx", data=x, output="o.onnx", progress=progress), kind=kind)
    assert not os.path.exists("o.onnx")
refused(lambda: octet.convert("net.onnx", data=x, progress=lambda: None), kind=TypeError)
assert octet.convert("net.onnx", data=x, output="o.onnx", progress=lambda *a: None)
""",
    "a_call_in_a_callback": """
seen = []
def progress(*a):
    if not seen:
        seen.append(refused(lambda: octet.evaluate("net.onnx", "net.onnx", data=x), "callback", status=2))
        seen.append(octet.Model("net.onnx")(x)[0])
assert octet.convert("net.onnx", data=x, output="o.onnx", progress=progress)
assert len(seen) == 2 and np.abs(seen[1] - want).max() < 1e-4
refused(lambda: octet.convert("net.onnx", data=x, output="p.onnx", progress=lambda *a: octet.convert("net.onnx", data=x)), "callback", status=2)
assert not os.path.exists("p.onnx")
""",
    # The signal comes from outside any callback. So many samples take longer than it.
    "ctrl_c_ends_the_call": """
many = np.repeat(x, 20000, axis=0)
begun = threading.Event()
def interrupt():
    begun.wait()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
refused(lambda: octet.convert("net.onnx", data=many, output="o.onnx", progress=lambda *a: begun.set()), kind=KeyboardInterrupt)
assert not os.path.exists("o.onnx")
""",
    # What is waited for would take ten minutes.
    "ctrl_c_cuts_a_wait": """
os.mkdir("passing")
os.environ["TMPDIR"] = "passing"
for option in ({"runner": "echo $$ > began; trap '' TERM; sleep 600; sleep 600 #"}, {"metric_cmd": "echo $$ > began; trap '' TERM; sleep 600; sleep 600 #"}):
    def interrupt():
        while not os.path.exists("began") or not open("began").read().endswith("\\n"):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt, daemon=True).start()
    start = time.monotonic()
    refused(lambda: octet.evaluate("net.onnx", "net.onnx", data=x, **option), kind=KeyboardInterrupt)
    assert time.monotonic() - start < 20, option
    pid = int(open("began").read())
    left = open(f"/proc/{pid}/cmdline").read() if os.path.exists(f"/proc/{pid}") else ""
    assert not left, (option, left)
    os.unlink("began")
assert not [f for f in os.listdir("passing") if not f.startswith("octet-") or os.listdir("passing/" + f)], os.listdir("passing")
""",
    "handlers_of_signals_run": """
seen = []
signal.signal(signal.SIGUSR1, lambda *a: seen.append(threading.current_thread() is threading.main_thread()))
def progress(*a):
    if not seen:
        os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(0.05)
assert octet.convert("net.onnx", data=x, output="o.onnx", progress=progress) and seen and all(seen)
""",
    # ---- locale ----
    "locale": """
octet.convert("net.onnx", data=x, output="point.onnx", min_sqnr=3.5)
os.mkdir("locales")
made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", "locales/de_DE.UTF-8"], capture_output=True, check=False) if os.path.exists("/usr/bin/localedef") else None
os.environ["LOCPATH"] = os.path.abspath("locales")
try:
    locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
except locale.Error:
    sys.exit("skip: there is no locale de_DE.UTF-8, and none can be made")
assert locale.str(0.5) == "0,5"
octet.convert("net.onnx", data=x, output="comma.onnx", min_sqnr=3.5)
report = octet.evaluate("point.onnx", "comma.onnx", data=x, json="r.json", min_sqnr=3.5)
json.load(open("r.json"))
assert pathlib.Path("point.onnx").read_bytes() == pathlib.Path("comma.onnx").read_bytes() and locale.str(0.5) == "0,5"
""",
    # ---- processes and threads ----
    "children": """
m = octet.Model("net.onnx", threads=2)
big = np.repeat(x, 500, axis=0)
y = m(big)[0]
for how in ("fork", "spawn"):
    with multiprocessing.get_context(how).Pool(2) as pool:
        for z in pool.map(m, [big] * 4): # a copy in a spawned process loads the file again
            assert z[0].tobytes() == y.tobytes(), how
""",
    "a_child_of_a_run": """
big = np.repeat(x, 500, axis=0)
m = octet.Model("net.onnx", threads=2)
over = threading.Event()
def work():
    while not over.is_set():
        m(big)
        octet.convert("net.onnx", data=x, output="beside.onnx")
t = threading.Thread(target=work)
def child(i):
    signal.alarm(20)
    for call in (lambda: m(big), lambda: octet.convert("net.onnx", data=x, output=f"child{i}.onnx")):
        try:
            call()
        except octet.Error as e: # what the thread was using, is in use
            if e.status != 2:
                return 1
    return 0
t.start()
ends = []
for i in range(10):
    time.sleep(0.01)
    if (process := os.fork()) == 0:
        os._exit(child(i))
    ends.append(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
over.set()
t.join()
assert ends == [0] * 10, ends
""",
    "threads_take_turns": """
m = octet.Model("net.onnx", threads=2)
wrong = []
def work(k):
    for _ in range(50):
        if np.abs(m(x[k:k + 8])[0] - want[k:k + 8]).max() > 1e-4:
            wrong.append(k)
    octet.convert("net.onnx", data=x, output=f"{k}.onnx")
threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
assert not wrong and all(pathlib.Path(f"{k}.onnx").read_bytes() == pathlib.Path("0.onnx").read_bytes() for k in range(4)), wrong
""",
    "small_stacks": """
threading.stack_size(128 << 10)
done = []
def work():
    done.append(octet.Model("net.onnx")(x)[0].shape)
    done.append(octet.convert("net.onnx", data=x, output="o.onnx", html="o.html"))
    done.append(octet.evaluate("net.onnx", "o.onnx", data=x, html="e.html"))
t = threading.Thread(target=work)
t.start()
t.join()
assert len(done) == 3
octet.convert("net.onnx", data=x, output="main.onnx")
""",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a case; without any, all run")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_intermixed_args()
    c = installed.Count(args.verbose)
    env = dict(os.environ, OCTET_LIBRARY=str(args.build.resolve() / "tools/library/liboctet.so.0"), PYTHONPATH=str(ROOT / "python"),
               OCTET_HEADER=str(ROOT / "include/octet/octet.h"))
    for name in args.names or CASES:
        with tempfile.TemporaryDirectory(prefix="octet-module-") as folder:
            script = Path(folder, "case.py") # spawned processes load it
            script.write_text(HEAD + "\nif __name__ == '__main__':\n" + "".join(f"    {line}\n" for line in CASES[name].splitlines()))
            try:
                done = subprocess.run([sys.executable, script], cwd=folder, env=env, capture_output=True, text=True, errors="replace", timeout=LIMIT, check=False)
            except subprocess.TimeoutExpired:
                c.hold(name, False, f"still running after {LIMIT} s")
                continue
            if done.stderr.startswith("skip: "):
                print(name, done.stderr.strip())
            else:
                c.hold(name, done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}")
    return c.finish()


if __name__ == "__main__":
    sys.exit(main())
