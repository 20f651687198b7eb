#!/usr/bin/env python3
"""Runs a model in ONNX Runtime for qeval: --runner 'python3 onnxruntime_runner.py'

OCT_PROVIDERS names execution providers, separated by commas (default: CPUExecutionProvider).
"""
import os
import time

import onnxruntime as ort

import octet_runner


def load(path, threads):
    o = ort.SessionOptions()
    o.intra_op_num_threads, o.inter_op_num_threads, o.log_severity_level = threads, 1, 3
    session = ort.InferenceSession(path, o, providers=os.environ.get("OCT_PROVIDERS", "CPUExecutionProvider").split(","))
    names = [v.name for v in session.get_outputs()]

    def run(arrays):
        began = time.perf_counter()
        values = session.run(names, arrays)
        return time.perf_counter() - began, dict(zip(names, values))

    return run


if __name__ == "__main__":
    octet_runner.serve("onnxruntime", ort.__version__, load)
