#!/usr/bin/env python3
"""The provider in ONNX Runtime: models of testdata/ and small networks, as they are and as quantizers write them, at each level of its optimizer, from a file and
from bytes, with the oldest ONNX Runtime that takes plug-ins and with the installed one.

    check_provider.py BUILD [-v] [--only PATTERN] [--whole]

A graph that the provider claims as a whole gives what our runtime gives, to the bit, where ONNX Runtime does not rewrite it first (level 0); everything else agrees
with ONNX Runtime's own provider as the integers of docs/arithmetic.md do. The installed one gets each model in four forms, in turn, the oldest in
one of these. --whole: all forms, also all networks of make_zoo.py, those of ../shared, and NNCF.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import argparse
import contextlib
import fnmatch
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[0]), str(HERE.parents[1] / "python"), str(HERE.parents[0] / "generate")]  # pylib, the module, make_zoo
from pylib import installed, packages  # noqa: E402

packages.need("numpy", "onnx", "onnxruntime")

OLDEST = "1.23.0"
NAME = "OctetExecutionProvider"
KINDS = ("float", "ours, QDQ", "ours, operators", "ours, dynamic", "ORT, QDQ", "ORT, operators", "ORT, dynamic")
LEVELS = (0, 1, 2, 99)
NETWORKS = ("zoo/alexnet", "zoo/mobilenet_v3", "zoo/style", "zoo/video3d", "zoo/vit_hybrid")  # without --whole
LEAST_DB = 40.0  # between sessions that both compute on integers and round some of them to the other neighbour
SAID = re.compile(r"octet claims (\d+) of (\d+) nodes")


def oldest(build):
    """A folder with the oldest wheel, made if necessary; None where there is no index to get it from."""
    at = build / f"onnxruntime-{OLDEST}"
    if not all((at / package).exists() for package in ("onnxruntime", "sympy", "mpmath")):  # its quantizer needs the other two
        got = installed.ran(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--upgrade", "--target", at, f"onnxruntime=={OLDEST}", "sympy", "mpmath")
        if got.returncode:
            return None
    return at


# ---- inside a process with one ONNX Runtime ----

@contextlib.contextmanager
def errors_to(path):
    """What the process writes on standard error, ONNX Runtime's log too, goes to a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(path, "wb") as f:
        os.dup2(f.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def session(ort, model, level, ours, options=None):
    o = ort.SessionOptions()
    o.graph_optimization_level = ort.GraphOptimizationLevel(level)
    o.intra_op_num_threads = 1
    o.log_severity_level = 1 if ours else 4
    if not ours:
        return ort.InferenceSession(model, o, providers=["CPUExecutionProvider"])
    devices = [d for d in ort.get_ep_devices() if d.ep_name == NAME]
    o.add_provider_for_devices(devices, options or {})
    s = ort.InferenceSession(model, o)
    s.disable_fallback()  # a run that fails is to be seen
    return s


def sqnr(want, got):
    import numpy as np
    if want.dtype.kind not in "fiub" or want.size == 0:
        return np.inf if np.array_equal(want, got) else -np.inf
    a, b = want.astype("f8").ravel(), got.astype("f8").ravel()
    if np.array_equal(a, b, equal_nan=True):
        return np.inf
    error, signal = np.sum((a - b) ** 2), np.sum(a * a)
    return 10 * np.log10(signal / error) if signal > 0 and np.isfinite(error) else -np.inf


def least_sqnr(want, got):
    """The least over all outputs of all samples."""
    return min((sqnr(w, g) for ws, gs in zip(want, got) for w, g in zip(ws, gs)), default=float("inf"))


def outputs_alone(path, row):
    """What our runtime gives; None for a file with sparse constants, which it does not read, and ONNX Runtime makes dense."""
    import octet
    try:
        return octet.Model(path, threads=1)(**row)
    except octet.Error as e:
        if "sparse" not in str(e):
            raise
    return None


def may_be_given(path):
    """Whether a file of the old form lets its constants be given as inputs: then ONNX Runtime must not fold them, as our runtime does."""
    import onnx
    graph = onnx.load(path, load_external_data=False).graph
    return bool({t.name for t in graph.initializer} & {i.name for i in graph.input})


def in_one_file(path):
    import onnx
    return not any(t.data_location == onnx.TensorProto.EXTERNAL for t in onnx.load(path, load_external_data=False).graph.initializer)


class Judges:
    """What ONNX Runtime's own provider gives at each level, and our runtime alone, for one file: both are asked once."""

    def __init__(self, ort, path, rows, levels):
        self.ort, self.path, self.rows, self.alone, self.want = ort, path, rows, None, {}
        for level in levels:
            self.theirs(level)  # what ONNX Runtime refuses is no case: who makes this is told so

    def theirs(self, level):
        if level not in self.want:
            s = session(self.ort, str(self.path), level, False)
            self.want[level] = [s.run(None, r) for r in self.rows]
        return self.want[level]

    def ours_alone(self):
        if self.alone is None:
            self.alone = [outputs_alone(self.path, r) for r in self.rows]
        return None if None in self.alone else self.alone


class Look:
    """What one model did at one level."""

    def __init__(self, ort, judges, level, source, log, options):
        import numpy as np
        path = judges.path
        with errors_to(log):
            ours = session(ort, str(path) if source == "path" else Path(path).read_bytes(), level, True, options)
        text = log.read_text(errors="replace")
        said = [tuple(map(int, m)) for m in SAID.findall(text)]
        self.claimed, self.nodes = said[-1] if said and "claims nothing more" not in text else (0, -1)
        got = [ours.run(None, r) for r in judges.rows]
        self.db = least_sqnr(judges.theirs(level), got)
        if self.db < LEAST_DB and level > 1:  # a provider gets the graph of level 1; ONNX Runtime's own levels can differ by as much
            self.db = max(self.db, least_sqnr(judges.theirs(1), got))
        self.least = LEAST_DB
        if self.db < LEAST_DB and level > 0:  # a model that doubles every rounding: ONNX Runtime need not agree better with itself
            self.least = min(LEAST_DB, least_sqnr(judges.theirs(0), judges.theirs(level)))
        self.same = None
        if self.claimed == self.nodes and not may_be_given(path) and (alone := judges.ours_alone()):
            self.same = all(w.tobytes() == np.asarray(g).tobytes() for ws, gs in zip(alone, got) for w, g in zip(ws, gs))


def threads_agree(ort, path, name, inputs, runs):
    """Whether 8 threads on one session get what one gets, with changing shapes."""
    import threading
    s = session(ort, path, 99, True)
    want, wrong = [s.run(None, {name: x})[0].tobytes() for x in inputs], []

    def work(k):
        wrong.extend(k for i in range(runs) if s.run(None, {name: inputs[(i * 7 + k) % len(inputs)]})[0].tobytes() != want[(i * 7 + k) % len(inputs)])
    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return not wrong


def grown(call, n):
    """Megabytes by which the process has grown after n calls, behind some that fill what is kept."""
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6
    for _ in range(50):
        call()
    before = resident()
    for _ in range(n):
        call()
    return resident() - before


def external_data(count, ort, made, at, inputs, want):
    """A model whose constants lie in a file beside it: the file is mapped as long as the session lives."""
    import onnx
    (at / "external").mkdir()
    model = str(at / "external/m.onnx")
    onnx.save(onnx.load(made), model, save_as_external_data=True, all_tensors_to_one_file=True, location="constants.bin", size_threshold=64)
    def mapped():
        return "/external/constants.bin" in Path("/proc/self/maps").read_text()
    s = session(ort, model, 99, True)
    same, while_alive = s.run(None, inputs)[0].tobytes() == want, mapped()
    del s
    count.hold("constants in a file are mapped", same and while_alive and not mapped() and not in_one_file(model), f"same bits: {same}, mapped: {while_alive}, afterwards: {mapped()}")


def divide(model, path):
    """Puts an operator that Octet does not know, and that returns its input, behind the middle one of the model's quantized tensors."""
    import onnx
    m = onnx.load(model)
    made = {name for node in m.graph.node for name in node.output}
    ends = [i for i, node in enumerate(m.graph.node) if node.op_type == "DequantizeLinear" and node.input[0] in made]
    at = ends[len(ends) // 2]
    value = m.graph.node[at].output[0]
    for node in m.graph.node:
        node.input[:] = [value + "_same" if name == value else name for name in node.input]
    m.graph.node.insert(at + 1, onnx.helper.make_node("SampleOp", [value], [value + "_same"], domain="com.microsoft"))
    m.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    onnx.save(m, path)


def contexts(count, ort, made, at, inputs, want):
    """EPContext models, with the context in a file and in the node, loaded from a path and from bytes: the same bits. A file that is damaged or missing is named."""
    import onnx
    folder = at / "contexts"
    folder.mkdir()

    def made_or_read(model, entries):
        o = ort.SessionOptions()
        o.log_severity_level = 4
        for key, value in entries.items():
            o.add_session_config_entry(f"ep.{key}", value)
        o.add_provider_for_devices([d for d in ort.get_ep_devices() if d.ep_name == NAME], {})
        return ort.InferenceSession(model, o)

    def error(model):
        with errors_to(at / "log"):  # the module of 1.23 tries again without the provider
            try:
                return made_or_read(model, {}) and ""
            except Exception as e:
                return str(e) + (at / "log").read_text(errors="replace")
    for embed in "01":
        model = str(folder / f"c{embed}.onnx")
        sessions = [made_or_read(made, {"context_enable": "1", "context_file_path": model, "context_embed_mode": embed}), made_or_read(model, {}),
                    made_or_read(Path(model).read_bytes(), {"context_file_path": model})]
        files = sorted(folder.glob(f"c{embed}_*.octet"))
        same = [s.run(None, inputs)[0].tobytes() == want and s.get_providers()[0] == NAME for s in sessions]
        count.hold(f"contexts, embedded: {embed}", all(same) and len(files) == (embed == "0"), f"{same}, {files}")
        again = str(folder / f"again{embed}.onnx")  # from a context model another one
        made_or_read(model, {"context_enable": "1", "context_file_path": again})
        count.hold(f"a context model of a context model, embedded: {embed}", made_or_read(again, {}).run(None, inputs)[0].tobytes() == want)
    divided = str(folder / "divided.onnx")
    divide(made, divided)
    alone = made_or_read(divided, {}).run(None, inputs)[0].tobytes()
    made_or_read(divided, {"context_enable": "1"})
    if ort.__version__ != OLDEST:  # which claims a graph as a whole, or nothing of it, and then writes no model
        again = str(folder / "divided_ctx.onnx")
        kinds = [n.op_type for n in onnx.load(again).graph.node]
        count.hold("a context for each part, beside nodes that are ONNX Runtime's", kinds.count("EPContext") == 2 and "SampleOp" in kinds and made_or_read(again, {}).run(None, inputs)[0].tobytes() == alone, str(kinds))
    o = ort.SessionOptions()
    o.add_provider_for_devices([d for d in ort.get_ep_devices() if d.ep_name == NAME], {})
    compiled = ort.ModelCompiler(o, made, embed_compiled_data_into_model=True).compile_to_bytes()
    count.hold("a context model that ONNX Runtime compiles to bytes", made_or_read(compiled, {}).run(None, inputs)[0].tobytes() == want)
    file = next(folder.glob("c0_*.octet"))
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    said = error(str(folder / "c0.onnx"))
    count.hold("a damaged context", file.name in said and "checksum" in said and "ep.context_enable" in said, said)
    file.unlink()
    said = error(str(folder / "c0.onnx"))
    count.hold("a missing context", file.name in said and "cannot be read" in said, said)


def programs(count, ort, library, made, at):
    """The example in C, which is C++, too, with the library of this wheel."""
    import shutil
    import numpy as np
    capi = Path(ort.__file__).parent / "capi"
    shared = next(iter(sorted(capi.glob("libonnxruntime.so*"))), None)
    if shared:
        (at / "libonnxruntime.so.1").symlink_to(shared)  # as it is installed elsewhere
    s = session(ort, made, 99, True)
    name = s.get_inputs()[0].name
    want = float(np.sum(s.run(None, {name: np.zeros((1, 3, 32, 32), "f4")})[0], dtype="f8"))
    for compiler in (("cc", "-std=c11"), ("c++", "-x", "c++", "-std=c++17")):
        if not shared or not shutil.which(compiler[0]):
            print(f"skipped: {compiler[0]}, or the library of the wheel, is missing")
            continue
        installed.must(*compiler, "-Wall", "-Wextra", "-Werror", f"-I{HERE.parent / 'provider'}", HERE.parents[1] / "examples/onnxruntime/session.c", "-x", "none", shared, "-o", at / "example")
        done = subprocess.run([str(at / "example"), library, made], env=os.environ | {"LD_LIBRARY_PATH": f"{at}:{capi}"}, capture_output=True, text=True, check=False)
        count.hold(f"the example by {compiler[0]}", done.returncode == 0 and abs(float(done.stdout) - want) <= 1e-6 * abs(want), f"{done.stdout}{done.stderr[:300]}, not {want}")


def same_steps(count, args, ort, made, data, at):
    """A graph as ONNX Runtime rewrites it is computed in the steps that our runtime takes for the file."""
    import collections
    import json
    import numpy as np
    profile, table = at / "steps.tsv", at / "steps.json"
    s = session(ort, made, 99, True, {"profile": str(profile)})
    s.run(None, {s.get_inputs()[0].name: np.zeros((1, 3, 32, 32), "f4")})
    del s  # which writes the profile
    head, *lines = (line.split("\t") for line in profile.read_text().splitlines())
    at_columns = [head.index(c) for c in ("operator", "algorithm", "kernel")]
    got = collections.Counter(tuple(line[c] for c in at_columns) for line in lines)
    installed.must(args.build / "tools/qeval/qeval", made, *data, "--profile", "--threads", "1", "--samples", "2", "--json", table, "-q")
    steps = json.loads(table.read_text())["models"][0]["profile"]
    want = collections.Counter((k["op"], k.get("algorithm") or "", k.get("kernel") or "") for k in steps)
    count.hold("the steps are those of our runtime", got == want and len(steps) > 5, f"more: {got - want}, less: {want - got}")


def unread_input(count, ort, made, feed, want):
    """An input that no node reads is no input of the node that a whole graph becomes."""
    import numpy as np
    import onnx
    model = onnx.load(made)
    model.graph.input.append(onnx.helper.make_tensor_value_info("unread", onnx.TensorProto.FLOAT, [2]))
    s = session(ort, model.SerializeToString(), 99, True)
    got = s.run(None, feed | {"unread": np.zeros(2, np.float32)})[0]
    count.hold("an input that no node reads", s.get_providers()[0] == NAME and got.tobytes() == want)


def uses(args, count, ort, library, at):
    """What an application does with a session: threads, many sessions and runs, a child, registering again; wrong options."""
    import numpy as np
    made = str(at / "demo.onnx")
    qconvert = str(args.build / "tools/qconvert/qconvert")
    data = ("--data", HERE.parents[1] / "testdata/images/calib.csv", "--preprocess", "mean=127.5:std=127.5")
    installed.must(qconvert, HERE.parents[1] / "testdata/demo.onnx", *data, "-o", made, "-q")
    r = np.random.default_rng(1)
    inputs = [r.standard_normal((n, 3, 32, 32)).astype(np.float32) for n in (1, 2, 3, 5, 4, 7)]
    with errors_to(at / "log"):
        s = session(ort, made, 99, True)
    name = s.get_inputs()[0].name
    want = s.run(None, {name: inputs[0]})[0].tobytes()
    said = SAID.findall((at / "log").read_text(errors="replace"))
    count.hold("the demo is claimed as a whole", said != [] and said[-1][0] == said[-1][1] and s.get_providers()[0] == NAME, str(said))
    with errors_to(at / "log"):
        session(ort, str(HERE.parents[1] / "testdata/models/function.onnx"), 99, True, {"claim": "all"})
    said = SAID.findall((at / "log").read_text(errors="replace"))
    count.hold("a model with functions is asked about twice, and claimed", len(said) == 2 and said[1][0] == said[1][1], str(said))
    unread_input(count, ort, made, {name: inputs[0]}, want)
    same_steps(count, args, ort, made, data, at)
    if tuple(map(int, ort.__version__.split(".")[:2])) >= (1, 25):
        count.hold("by its name alone", ort.InferenceSession(made, providers=[NAME]).get_providers()[0] == NAME)
    programs(count, ort, library, made, at)
    external_data(count, ort, made, at, {name: inputs[0]}, want)
    contexts(count, ort, made, at, {name: inputs[0]}, want)
    count.hold("threads on one session", threads_agree(ort, made, name, inputs, 1000 if args.whole else 100))
    more = grown(lambda: session(ort, made, 99, True).run(None, {name: inputs[0]}), 200)
    count.hold("200 sessions keep nothing", more < 4, f"{more:.1f} MB")
    more = grown(lambda: s.run(None, {name: inputs[0]}), 5000)
    count.hold("5000 runs keep nothing", more < 1, f"{more:.1f} MB")
    if (child := os.fork()) == 0:
        os._exit(s.run(None, {name: inputs[0]})[0].tobytes() != want)
    count.hold("a child", os.waitpid(child, 0)[1] == 0)
    for options, words in (({"thread": "2"}, "thread='2'"), ({"threads": "x"}, "threads: 'x'"), ({"claim": "most"}, "claim: 'most'")):
        with errors_to(at / "log"):  # the module of 1.23 goes on without the provider
            try:
                said, providers = "", session(ort, made, 99, True, options).get_providers()
            except Exception as e:
                said, providers = str(e), []
        count.hold(f"wrong options {options}", NAME not in providers and (words in said or not said), said)
    del s
    ort.unregister_execution_provider_library("octet")
    count.hold("unregistered", not [d for d in ort.get_ep_devices() if d.ep_name == NAME])
    ort.register_execution_provider_library("octet", library)
    count.hold("registered again", session(ort, made, 99, True).run(None, {name: inputs[0]})[0].tobytes() == want)


def stored(folder, kind):
    """The arrays of a case's first data set; None where one is no tensor."""
    import onnx
    found = []
    for path in sorted(folder.glob(f"{kind}_*.pb"), key=lambda p: int(p.stem.rpartition("_")[2])):
        t = onnx.TensorProto()
        try:
            t.ParseFromString(path.read_bytes())
            found.append(onnx.numpy_helper.to_array(t))
        except Exception:  # a sequence, an optional, a type that NumPy lacks
            return None
    return found


def case_holds(ort, folder, rtol, atol):
    """Whether a case of ONNX's own gives what it must with everything claimed; None where ONNX Runtime does not run it, or nothing was claimed."""
    import numpy as np
    given, want = stored(folder / "test_data_set_0", "input"), stored(folder / "test_data_set_0", "output")
    model = str(folder / "model.onnx")
    if given is None or want is None:
        return None
    try:
        theirs = session(ort, model, 0, False)
        feed = {i.name: x for i, x in zip(theirs.get_inputs(), given)}
        theirs.run(None, feed)
    except Exception:
        return None
    ours = session(ort, model, 0, True, {"claim": "all"})
    if NAME not in ours.get_providers():
        return None
    got = ours.run(None, feed)
    return all(alike(np.asarray(g), w, rtol, atol) for g, w in zip(got, want))


def alike(got, want, rtol, atol):
    """float16 may differ by a unit in the last place more: sums are added in another order."""
    import numpy as np
    if got.shape != want.shape:
        return False
    if got.dtype != want.dtype and got.dtype.itemsize == want.dtype.itemsize:  # float8 comes as its bytes
        got = got.view(want.dtype)
    if want.dtype.kind in "iubOUS":
        return np.array_equal(got, want)
    return np.allclose(got.astype("f8"), want.astype("f8"), rtol=max(rtol, 2e-3 if want.dtype == np.float16 else 0), atol=atol, equal_nan=True)


def onnx_cases(args, count, ort):
    """The cases that tests/conformance has made, where it has."""
    import csv
    cache, ran = args.build / "conformance", 0
    if not (cache / "index.csv").exists():
        print("skipped: ONNX's cases are not made (meson test --suite conformance)")
        return
    excepted = {line.strip() for line in (HERE.parent / "conformance/exceptions.txt").read_text().splitlines()}
    with open(cache / "index.csv", encoding="utf-8") as f:
        for row in list(csv.reader(f))[1:]:
            if row[0].startswith("node/") and row[0] not in excepted:
                good = case_holds(ort, cache / row[0], float(row[3]), float(row[4]))
                ran += good is not None
                if good is False:
                    count.hold(row[0], False)
    count.hold(f"{ran} cases of ONNX", ran > 500)


def inside(args, count):
    import numpy as np
    import onnxruntime as ort
    from pylib import digest_models, quantizers
    from pylib.rows import Rows
    ort.set_default_logger_severity(4)
    library = str(args.build / "provider/libonnxruntime_ep_octet.so")
    ort.register_execution_provider_library("octet", library)
    qconvert = str(args.build / "tools/qconvert/qconvert")
    with tempfile.TemporaryDirectory(prefix="octet-provider-") as folder:
        at = Path(folder)
        if args.only == "*":
            uses(args, count, ort, library, at)
            with errors_to(at / "log"):
                onnx_cases(args, count, ort)
        def wanted(name):
            return fnmatch.fnmatch(name, args.only)
        models = [*digest_models.bundled(at), *digest_models.small(at, wanted)]
        models += digest_models.networks(at, None, 2, lambda name: wanted(name) and (args.whole or name in NETWORKS))
        if args.whole:
            models += [*digest_models.trained(at, HERE.parents[2] / "shared", wanted)]
        for i, m in enumerate(models):
            if not m.data or not wanted(m.name):
                continue
            given_rows = None
            for kind in (*KINDS, "NNCF") if args.whole else [KINDS[(i + k) % len(KINDS)] for k in range(args.turns or len(KINDS))]:
                levels = LEVELS if kind == "ours, QDQ" or args.whole else (0, 99)
                try:
                    given_rows = given_rows or Rows(m)
                    rows = [{k: np.asarray(v) for k, v in given_rows.get(r).items()} for r in range(2)]
                    with errors_to(at / "log"):
                        path = Path(quantizers.write(qconvert, m, kind, str(at / "made.onnx")))
                    judges = Judges(ort, path, rows, levels)
                except (Exception, SystemExit) as e:  # what ONNX Runtime or a quantizer does not take says nothing about the provider
                    if args.verbose:
                        print(f"    {m.name}, {kind}: {str(e)[:100]}")
                    continue
                given = "bytes" if in_one_file(path) else "path"
                for level, claim in [(level, "paying") for level in levels] + [(level, "all") for level in levels]:
                    judge(count, ort, (m.name, kind, level, claim), judges, given if level == 1 else "path", at / "log")
    return count.finish()


def on_integers(path):
    """Whether a model of testdata/ is a quantized one already."""
    import onnx
    return any("Quant" in n.op_type or "QLinear" in n.op_type or "Integer" in n.op_type for n in onnx.load(path, load_external_data=False).graph.node)


def judge(count, ort, names, judges, source, log):
    name, kind, level, claim = names
    what = f"{name}, {kind}, level {level}, {claim}"
    try:
        look = Look(ort, judges, level, source, log, {"claim": claim})
    except Exception as e:
        count.hold(what, False, f"{type(e).__name__}: {str(e)[:300]}")
        return
    told = f"{look.claimed} of {look.nodes} claimed, {look.db:.1f} dB to ONNX Runtime's, {'same' if look.same else 'other'} bits as ours"
    if claim == "paying" and kind == "float" and not on_integers(judges.path):
        good = look.claimed == 0 and look.db == float("inf")
    elif look.same is not None and level == 0:
        good = look.same
    else:
        good = look.same or look.db >= look.least
    count.hold(what, good, told)
    if count.verbose:
        print(f"    {told}")


# ---- both ----

def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("build", type=Path)
    p.add_argument("-v", "--verbose", action="store_true")
    p.add_argument("--only", default="*")
    p.add_argument("--whole", action="store_true")
    p.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--turns", type=int, help=argparse.SUPPRESS)
    args = p.parse_args()
    args.build = args.build.resolve()
    os.environ["OCTET_LIBRARY"] = str(args.build / "tools/library/liboctet.so.0")
    if args.inside:
        return inside(args, installed.Count(args.verbose))
    words = [sys.executable, __file__, args.build, "--inside", "--only", args.only, *(["-v"] * args.verbose), *(["--whole"] * args.whole)]
    old, failed = oldest(args.build), 0
    for version, path, turns in (("installed", None, 4), (OLDEST, old, 1)):
        if version == OLDEST and not old:
            print(f"skipped: ONNX Runtime {OLDEST} cannot be installed here")
            continue
        print(f"ONNX Runtime, {version}:", flush=True)
        env = dict(os.environ, PYTHONPATH=str(path)) if path else None
        failed += subprocess.run(list(map(str, [*words, *(["--turns", turns] if args.only == "*" else [])])), env=env, check=False).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
