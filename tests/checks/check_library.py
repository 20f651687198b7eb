#!/usr/bin/env python3
"""The library as its users have it: installed in an empty root, found by pkg-config, by C programs and by the Python module.

    check_library.py BUILD [-v]

The example programs are compiled against the installed header, shared and static, and call each of its functions. They and the module write the same
bytes as the programs. Outputs are those of ONNX Runtime and, bit for bit, those of qeval. Faults come with their status, text and hint.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages, a compiler or pkg-config.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import installed, packages

packages.need("numpy", "onnxruntime")
import numpy as np
import onnx
import onnxruntime

ROOT = Path(__file__).resolve().parents[2]
MODEL, STEPS = ROOT / "testdata/demo.onnx", "mean=127.5:std=127.5"
CALIB, EVAL = ROOT / "testdata/images/calib.csv", ROOT / "testdata/images/eval.csv"
CC = os.environ.get("CC", "cc").split()


def command(*words, cwd, env=None, status=0):
    done = subprocess.run([str(w) for w in words], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode != status:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def install(build, folder):
    """The root, and the environment in which compilers and programs find what is in it."""
    root = folder / "root"
    command("meson", "install", "-C", build, "--no-rebuild", "--destdir", root, cwd=folder)
    pc = next(root.rglob("octet.pc"))
    env = dict(os.environ, PKG_CONFIG_PATH=str(pc.parent), PKG_CONFIG_SYSROOT_DIR=str(root), LD_LIBRARY_PATH=str(pc.parent.parent))
    return root, env


def flags(env, *more):
    text = subprocess.run(["pkg-config", *more, "--cflags", "--libs", "octet"], env=env, capture_output=True, text=True, check=True).stdout
    # Only what is of the installed root has moved; the system's libraries are in their places.
    root = env["PKG_CONFIG_SYSROOT_DIR"]
    return [w.replace(root, "", 1) if root in w and not Path(w.lstrip("-LI")).exists() else w for w in text.split()]


def compiled(env, folder, static):
    """The example programs, by name."""
    made = {}
    for source in sorted((ROOT / "examples").glob("*.c")):
        out = folder / f"{source.stem}{'-static' if static else ''}"
        libs = flags(env, "--static") if static else flags(env)
        if static:
            libs = [f"{env['LD_LIBRARY_PATH']}/liboctet.a" if w == "-loctet" else w for w in libs]
        command(*CC, "-std=c11", "-Wall", "-Wextra", "-Werror", source, *libs, "-o", out, cwd=folder)
        made[source.stem] = out
    return made


def with_programs(build, folder):
    """What the programs write for the same commands."""
    at = folder / "programs"
    at.mkdir()
    tool = {t: build / "tools" / t / t for t in ("qcalib", "qconvert", "qeval")}
    command(tool["qcalib"], MODEL, "--data", CALIB, "--preprocess", STEPS, "-o", "out.onnx.calib", cwd=at)
    command(tool["qconvert"], MODEL, "--calib", "out.onnx.calib", "-o", "out.onnx", cwd=at)
    command(tool["qeval"], MODEL, "out.onnx", "--data", CALIB, "--preprocess", STEPS, "--no-latency", "--json", "out.onnx.json", cwd=at)
    command(tool["qconvert"], MODEL, "--data", CALIB, "--preprocess", STEPS, "-o", "direct.onnx", cwd=at)
    command(tool["qeval"], "out.onnx", "--data", EVAL, "--preprocess", STEPS, "--outputs", "y.npz", "--batch", "1", cwd=at)
    return at


def results(path):
    """A report, without what it says of the machine, whose clock rate and load change between two runs, and of the call."""
    report = json.loads(path.read_text())
    del report["environment"]
    for name in ("command", "seconds"):
        report.pop(name, None)
    return report


def check_examples(c, made, env, folder, want, kind):
    at = folder / f"examples-{kind}"
    at.mkdir()
    said = command(made["quantize"], MODEL, CALIB, STEPS, "out.onnx", cwd=at, env=env)
    for name in ("out.onnx", "out.onnx.calib"):
        c.hold(f"{kind}: {name} is what the programs write", (at / name).read_bytes() == (want / name).read_bytes())
    c.hold(f"{kind}: the report is that of the programs", results(at / "out.onnx.json") == results(want / "out.onnx.json"))
    c.hold(f"{kind}: progress and a report", "calibrating: 64 of 64" in said and "SQNR" in said, said)
    worst = [line.removeprefix("most is lost by ") for line in said.splitlines() if line.startswith("most is lost by ")]
    c.hold(f"{kind}: the layer that costs most", len(worst) == 1 and worst[0] in {n.name for n in onnx.load(MODEL).graph.node}, said)
    for name in ("out.onnx", MODEL):
        said = command(made["run"], name, cwd=at, env=env).split()
        session = onnxruntime.InferenceSession(str(at / name), providers=["CPUExecutionProvider"])
        (i,) = session.get_inputs()
        (y,) = session.run(None, {i.name: np.zeros([d if isinstance(d, int) else 1 for d in i.shape], np.float32)})
        c.hold(f"{kind}: run {Path(name).name}", np.allclose(np.array(said[2:], float), y.ravel(), atol=1e-5), said)
        c.hold(f"{kind}: run {Path(name).name} with two threads", command(made["run"], name, 2, cwd=at, env=env).split() == said)
        c.hold(f"{kind}: run {Path(name).name} in plain C, measured", command(made["run"], name, 1, "scalar", cwd=at, env=env).split() == said)
        answers = command(made["serve"], name, 3, cwd=at, env=env).splitlines()
        nodes = len(onnx.load(at / name).graph.node)
        first = f"{0 if name == MODEL else nodes} of {nodes} nodes are worth taking over"
        c.hold(f"{kind}: serve {Path(name).name}", answers == [first] + [f"request {i}: {said[2]}" for i in range(3)], answers)
        said = command(made["inspect"], name, cwd=at, env=env).splitlines()
        how = "another tool" if name == MODEL else "qconvert demo.onnx --calib out.onnx.calib"
        c.hold(f"{kind}: inspect {Path(name).name}", said[1:3] == ["input image float32 [?,3,32,32]", "output prob float32 [?,10]"] and
               said[3].startswith(f"made by {how}"), said)
    published = ROOT / "testdata/folders/genai"
    said = command(made["folder"], published, "new", ROOT / "testdata/folders/prompts.jsonl", cwd=at, env=env).splitlines()
    sizes = [(f / "model.onnx").stat().st_size for f in (published, at / "new")]
    c.hold(f"{kind}: a folder", said == [f"genai: {sizes[0]} bytes of models become {sizes[1]}", "new/model.onnx: fits"], said)
    said = command(made["convert"], MODEL, "memory.onnx", cwd=at, env=env)
    layers = {n.name for n in onnx.load(MODEL).graph.node}
    c.hold(f"{kind}: convert from memory", onnx.load(at / "memory.onnx") and f"to {(at / 'memory.onnx').stat().st_size} bytes" in said and
           {w[2:].split(":")[0] for w in said.splitlines() if w.startswith("  ")} <= layers, said)
    before = sorted(at.iterdir())
    said = command(made["targets"], MODEL, CALIB, "octet", "tensorrt", cwd=at, env=env)
    c.hold(f"{kind}: two targets compared, and nothing written", sorted(at.iterdir()) == before and
           re.fullmatch(r"octet: 100 % of the work on integers, \d+ bytes, 0 findings\ntensorrt: \d+ % of the work on integers, \d+ bytes, 0 findings\n", said), said)
    refused = subprocess.run([made["quantize"], "none.onnx", CALIB, STEPS, "no.onnx"], cwd=at, env=env, capture_output=True, text=True, check=False)
    c.hold(f"{kind}: a model that is not there", refused.returncode == 3 and "none.onnx" in refused.stderr and not (at / "no.onnx").exists(),
           refused.stderr)


def check_all_shown(c):
    """Each function of the header is in an example."""
    header = (ROOT / "include/octet/octet.h").read_text()
    examples = "".join(p.read_text() for p in (ROOT / "examples").glob("*.c"))
    functions = set(re.findall(r"^OCTET_API .*?(octet_\w+)\(", header, re.MULTILINE))
    missing = sorted(f for f in functions if not re.search(rf"\b{f}\(", examples))
    c.hold("the examples call each function of the header", len(functions) > 10 and not missing, missing)


MODULE = """
import sys, pathlib, numpy as np
sys.path.insert(0, sys.argv[1])
import octet
model, calib, steps, direct, outputs, programs = sys.argv[2:]
seen = []
report = octet.convert(model, data=calib, preprocess=steps, output="direct.onnx", progress=lambda what, done, total: seen.append(what))
assert pathlib.Path("direct.onnx").read_bytes() == pathlib.Path(direct).read_bytes(), "other bytes"
assert report["layers"] and "calibrating" in seen, (list(report), seen)
y = np.load(outputs)
m = octet.Model(programs + "/out.onnx")
(name, kind, shape), = m.inputs
assert kind is np.float32 and shape[1:] == (3, 32, 32), m.inputs
x = np.random.default_rng(1).standard_normal((4, 3, 32, 32)).astype(np.float32)
octet.convert(model, data={name: x}, output="arrays.onnx")
r = octet.evaluate(model, "arrays.onnx", data=x, latency=False, metric="sqnr,agreement")
assert set(r["quant"]["metrics"]) == {"sqnr", "agreement"}, r
one, = m(x[:1])
same, = m(**{name: x[:1]})
assert one.tobytes() == same.tobytes() and one.dtype == np.float32
import onnxruntime
want, = onnxruntime.InferenceSession(programs + "/out.onnx", providers=["CPUExecutionProvider"]).run(None, {name: x[:1]})
assert np.abs(one - want).max() < 1e-4, np.abs(one - want).max()
for call, status, word in ((lambda: octet.convert("none.onnx"), 3, "none.onnx"), (lambda: octet.convert(model, no_such=1), 2, "no-such"),
                           (lambda: m(x[:1, :2]), 4, name), (lambda: m(), 4, "missing"), (lambda: m(none=x), 4, "none"),
                           (lambda: octet.convert(model, output="-"), 2, "-"), (lambda: octet.Model(calib), 4, "calib.csv"),
                           (lambda: octet.evaluate(model, "arrays.onnx", data=x, min_sqnr=200), 1, "sqnr")):
    try:
        call()
        raise SystemExit(f"{word}: nothing was raised")
    except octet.Error as e:
        assert e.status == status and word in str(e), (e.status, str(e))
        assert status != 1 or e.report["quant"], e.report
assert octet.convert(model, data=calib, preprocess=steps, output="direct.onnx") and octet.version()
"""


def check_module(c, env, build, folder, want):
    at = folder / "module"
    at.mkdir()
    env = dict(env, OCTET_LIBRARY=str(next((folder / "root").rglob("liboctet.so.0"))))
    done = subprocess.run([sys.executable, "-c", MODULE, str(ROOT / "python"), str(MODEL), str(CALIB), STEPS, str(want / "direct.onnx"), str(want / "y.npz"),
                           str(want)], cwd=at, env=env, capture_output=True, text=True, check=False)
    c.hold("module: convert, evaluate, run and faults", done.returncode == 0, done.stdout + done.stderr)
    c.hold("module: prints nothing", done.stdout == "", done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    if not shutil.which("pkg-config") or not shutil.which(CC[0]):
        print("no compiler or no pkg-config")
        return 77
    c = installed.Count(args.verbose)
    with tempfile.TemporaryDirectory(prefix="octet-library-") as name:
        folder, build = Path(name), args.build.resolve()
        _, env = install(build, folder)
        want = with_programs(build, folder)
        for static in (False, True):
            check_examples(c, compiled(env, folder, static), env, folder, want, "static" if static else "shared")
        check_all_shown(c)
        check_module(c, env, build, folder, want)
    return c.finish()


if __name__ == "__main__":
    sys.exit(main())
