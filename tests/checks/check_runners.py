#!/usr/bin/env python3
"""Has ONNX Runtime, and OpenVINO where it is installed, run models for qeval (share/runners), and holds the report against NumPy on the runtime's own outputs.

    check_runners.py [--qconvert PROGRAM] [--qeval PROGRAM] [--provider LIBRARY] [-v]

--provider LIBRARY: Octet's provider for ONNX Runtime; then models also run in ONNX Runtime with it.
Outputs must be the runtime's to the bit. Metrics must be what NumPy computes of them, to nine digits.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import csv
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime", "PIL")
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper
from PIL import Image

from pylib import tool
from pylib.judge import Checker, options

DATA = tool.ROOT / "testdata"
RUNNERS = tool.ROOT / "share/runners"
STEPS = ["--preprocess", "mean=127.5:std=127.5"]


def samples(table):
    """Pictures as the model takes them, and their labels."""
    rows = list(csv.reader((DATA / table).open()))
    rows = rows[1:] if not rows[0][-1].strip().isdigit() else rows
    pictures = [np.asarray(Image.open((DATA / table).parent / r[0]).convert("RGB"), np.float32) for r in rows]
    return (np.stack(pictures).transpose(0, 3, 1, 2) - np.float32(127.5)) / np.float32(127.5), np.array([int(r[1]) for r in rows])


def in_onnxruntime(path, x, devices=None):
    o = ort.SessionOptions()
    o.intra_op_num_threads = 1
    if devices:
        o.add_provider_for_devices(devices, {})
    session = ort.InferenceSession(path, o, providers=None if devices else ["CPUExecutionProvider"])
    return np.concatenate([session.run(None, {session.get_inputs()[0].name: row[None]})[0] for row in x])


def in_openvino(path, x):
    import openvino as ov
    core = ov.Core()
    model = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1})
    return np.concatenate([model(row[None])[0] for row in x])


def expected(real, quant, labels):
    """What the report must say of outputs [samples, classes]."""
    a, b = real.astype(np.float64), quant.astype(np.float64)
    cosine = (a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1))
    return {"top1": np.mean(b.argmax(1) == labels), "agreement": np.mean(a.argmax(1) == b.argmax(1)), "cosine": cosine.mean(),
            "sqnr": 10 * np.log10((a * a).sum() / ((a - b)**2).sum()), "maxerr": np.abs(a - b).max()}


def judge(check, runtime, version, x, labels, runs, more=""):
    real, quant = DATA / "demo.onnx", check.folder / "q.onnx"
    command = ["--threads", "1", "--runner", f"{sys.executable} {RUNNERS / runtime}_runner.py{more}"]
    given = tool.run_qeval(check.qeval, quant, DATA / "images/eval.csv", check.folder / "y.npz", STEPS[1], [*command, "--batch", "1"])
    theirs = [runs(str(m), x) for m in (real, quant)]
    (name, outputs), = given.items()
    check.hold(f"{runtime}: outputs '{name}' are those of the runtime", np.array_equal(outputs, theirs[1]), f"{np.abs(outputs - theirs[1]).max()}")
    tool.run([check.qeval, real, quant, "--data", DATA / "images/eval.csv", *STEPS, *command, "-q", "--json", check.folder / "r.json"])
    report = json.loads((check.folder / "r.json").read_text())
    want, got = expected(*theirs, labels), report["models"][1]["metrics"]
    for metric, value in want.items():
        check.hold(f"{runtime}: {metric}", abs(got[metric] - value) <= 1e-9 * abs(value), f"{got[metric]!r}, NumPy {value!r}")
    ran, times = [m["runner"] for m in report["models"]], [m["latency_ms"] for m in report["models"]]
    check.hold(f"{runtime}: its name", ran == [f"{runtime} {version}"] * 2, str(ran))
    check.hold(f"{runtime}: top1 of the float model", report["models"][0]["metrics"]["top1"] == np.mean(theirs[0].argmax(1) == labels))
    check.hold(f"{runtime}: times", all(t["runs"] >= 9 and 0 < t["q1"] <= t["median"] <= t["q3"] for t in times), str(times))


def plugged(check, provider, x, labels):
    """With our provider: what a session with it gives, of a quantized model what our runtime gives."""
    ort.register_execution_provider_library("octet", str(provider))
    devices = [d for d in ort.get_ep_devices() if d.ep_name == "OctetExecutionProvider"]
    judge(check, "onnxruntime", f"{ort.__version__} with {provider.name}", x, labels, lambda path, x: in_onnxruntime(path, x, devices), f" --provider {os.path.relpath(provider)}")
    with_provider, = np.load(check.folder / "y.npz").values()
    ours, = tool.run_qeval(check.qeval, check.folder / "q.onnx", DATA / "images/eval.csv", check.folder / "ours.npz", STEPS[1]).values()
    check.hold("onnxruntime with the provider: outputs are those of our runtime", np.array_equal(with_provider, ours), f"{np.abs(with_provider - ours).max()}")
    done = subprocess.run([check.qeval, check.folder / "q.onnx", "--data", DATA / "images/eval.csv", *STEPS, "--runner",
                           f"{sys.executable} {RUNNERS}/onnxruntime_runner.py --provider {check.folder}/none.so"], capture_output=True, text=True, check=False)
    check.hold("onnxruntime: a plug-in that does not exist", done.returncode == 3 and "the command said: " in done.stderr and "none.so" in done.stderr, done.stderr)


def faults(check):
    """What the runtime says of an operator that it does not know."""
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Odd", ["x"], ["y"], domain="their.own")], "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("their.own", 1)]), check.folder / "odd.onnx")
    np.save(check.folder / "x.npy", np.zeros((1, 4), np.float32))
    done = subprocess.run([check.qeval, check.folder / "odd.onnx", "--data", check.folder / "x.npy", "--runner", f"{sys.executable} {RUNNERS}/onnxruntime_runner.py"],
                          capture_output=True, text=True, check=False)
    check.hold("onnxruntime: an operator that it does not know", done.returncode == 3 and "the command said: " in done.stderr and "their.own" in done.stderr, done.stderr)


def main():
    parser = options(__doc__)
    parser.add_argument("--provider", type=Path)
    args = parser.parse_args()
    x, labels = samples("images/eval.csv")
    with Checker(args) as check:
        check.convert(DATA / "demo.onnx", check.folder / "q.onnx", "--data", DATA / "images/calib.csv", *STEPS)
        judge(check, "onnxruntime", ort.__version__, x, labels, in_onnxruntime)
        if packages.has("openvino"):
            judge(check, "openvino", packages.version("openvino"), x, labels, in_openvino)
        if args.provider and hasattr(ort, "register_execution_provider_library"):
            plugged(check, args.provider.resolve(), x, labels)
        faults(check)
        return check.finish()


if __name__ == "__main__":
    sys.exit(main())
