#!/usr/bin/env python3
"""What qconvert writes for the target qnn, on the simulator of Qualcomm's HTP that the package onnxruntime-qnn has for x86-64.

    tests/checks/check_qnn.py [--qconvert PROGRAM] [--only WORD] [--samples N] [-v]

Small models of pylib/zoo.py, with a batch of 1: a session opens in which the CPU may compute nothing, so the HTP takes each node; and the metric
is not below that of the same file in ONNX Runtime on the CPU by more than chance. Prints both, and how many steps outputs are apart.

Needs Python packages, onnxruntime-qnn among them: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime", "onnxruntime_qnn", "PIL")
import importlib.util

import check_tflite
import numpy as np
import onnx
import onnxruntime

from pylib import peer, tasks, tool, zoo
from pylib.judge import Checker, options
from pylib.samples import open_samples

MODELS = ["demo", "resnet8_cifar10", "vww_mobilenet_96", "kws_dscnn", "mnist_cnn"]
LIBRARIES = Path(importlib.util.find_spec("onnxruntime_qnn").submodule_search_locations[0])


def one_sample(model, to):
    """The same model with a batch of 1."""
    m = onnx.load(model)
    for v in [*m.graph.input, *m.graph.output]:
        v.type.tensor_type.shape.dim[0].dim_value = 1
    del m.graph.value_info[:]
    onnx.save(m, to)


def htp_session(path):
    """Fails where the HTP does not take all nodes."""
    how = onnxruntime.SessionOptions()
    how.log_severity_level = 4
    how.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    devices = [d for d in onnxruntime.get_ep_devices() if d.ep_name == "QNNExecutionProvider"][:1]
    how.add_provider_for_devices(devices, {"backend_path": str(LIBRARIES / "libQnnHtp.so")})
    return onnxruntime.InferenceSession(str(path), how)


def run_each(session, samples, n):
    names = [o.name for o in session.get_outputs()]
    runs = [session.run(None, {session.get_inputs()[0].name: x}) for k, (_, x) in enumerate(samples.batches(1)) if k < n]
    return {name: np.concatenate([r[i] for r in runs]) for i, name in enumerate(names)}


def hold_model(c, m):
    model, calib, data, labels = m.paths(tool.SHARED)
    fixed, out = c.folder / "fixed.onnx", c.folder / "qnn.onnx"
    one_sample(model, fixed)
    check_tflite.write(c, fixed, out, "--target", "qnn", "--data", calib, "--samples", m.calib_samples, *(["--preprocess", m.preprocess] if m.preprocess else []))
    try:
        session = htp_session(out)
    except Exception as e:  # what the provider raises has no type of its own
        c.hold(f"{m.name}: the HTP takes all nodes", False, str(e)[-300:])
        return
    c.hold(f"{m.name}: the HTP takes all nodes", True)
    samples, task = open_samples(data, m.preprocess, labels), tasks.TASKS[m.metric]
    n = min(c.samples, samples.count)
    got, want, real = (run_each(s, samples, n) for s in (session, peer.session(out, exact=True), peer.session(fixed)))
    truth = m.truth(tool.SHARED, samples)
    truth = truth[:n] if truth is not None else None
    on_htp, on_cpu, float_ = (task(y, samples, truth, real) for y in (got, want, real))
    apart = tasks.difference(on_htp, on_cpu)
    first = next(iter(got))
    steps = np.abs(got[first] - want[first]).max() / (check_tflite.output_scale(out) or 1)
    print(f"{m.name}: {m.metric} of {n}: float {float_.value():.4f}, CPU {on_cpu.value():.4f}, HTP {on_htp.value():.4f}; at most {steps:.1f} steps apart", flush=True)
    c.hold(f"{m.name}: as accurate as on the CPU", max(apart[1:]) >= 0, f"{apart}")


def main():
    parser = options(__doc__)
    parser.add_argument("--only", help="models whose name has this word")
    parser.add_argument("--samples", type=int, default=200, help="of each model [%(default)s]")
    args = parser.parse_args()
    onnxruntime.register_execution_provider_library("QNNExecutionProvider", str(LIBRARIES / "libonnxruntime_providers_qnn.so"))
    with Checker(args) as c:
        c.samples = args.samples
        for name in MODELS:
            m = zoo.MODELS[name]
            if m.paths(tool.SHARED)[0].exists() and (not args.only or args.only in name):
                hold_model(c, m)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
