#!/usr/bin/env python3
"""Runs a model in ONNX Runtime for qeval: --runner 'python3 onnxruntime_runner.py [--provider LIBRARY]'

--provider LIBRARY: an execution provider that is a plug-in, such as libonnxruntime_ep_octet.so. What it does not take, ONNX Runtime's own runs.
OCT_PROVIDERS names execution providers of ONNX Runtime instead, separated by commas (default: CPUExecutionProvider).
"""
import os
import sys
import time

import onnxruntime as ort

import octet_runner


def devices_of(library):
    """What a plug-in runs on."""
    if not hasattr(ort, "register_execution_provider_library"):
        raise RuntimeError(f"ONNX Runtime {ort.__version__} takes no plug-ins; 1.23 and later do")
    before = {d.ep_name for d in ort.get_ep_devices()}
    ort.register_execution_provider_library("plug-in", os.path.abspath(library))  # it looks for others in its own folder
    devices = [d for d in ort.get_ep_devices() if d.ep_name not in before]
    if not devices:
        raise RuntimeError(f"{library} has no execution provider for this machine")
    return devices


def load(path, threads, library=None):
    o = ort.SessionOptions()
    o.intra_op_num_threads, o.inter_op_num_threads, o.log_severity_level = threads, 1, 3
    if library:
        o.add_provider_for_devices(devices_of(library), {})
        session = ort.InferenceSession(path, o)
    else:
        session = ort.InferenceSession(path, o, providers=os.environ.get("OCT_PROVIDERS", "CPUExecutionProvider").split(","))
    names = [v.name for v in session.get_outputs()]

    def run(arrays):
        began = time.perf_counter()
        values = session.run(names, arrays)
        return time.perf_counter() - began, dict(zip(names, values))

    return run


def main():
    library, version = None, ort.__version__
    if len(sys.argv) > 2 and sys.argv[1] == "--provider":
        library = sys.argv[2]
        version += f" with {os.path.basename(library)}"
        del sys.argv[1:3]
    octet_runner.serve("onnxruntime", version, lambda path, threads: load(path, threads, library))


if __name__ == "__main__":
    main()
