#!/usr/bin/env python3
"""Runs a model in OpenVINO for qeval: --runner 'python3 openvino_runner.py'

OCT_DEVICE names the device (default: CPU). What ONNX says is float32 is computed so, not in the 16 bits that the device may prefer.
"""
import os
import time

import openvino as ov

import octet_runner


def load(path, threads):
    core = ov.Core()
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1}
    device = os.environ.get("OCT_DEVICE", "CPU")
    model = core.compile_model(core.read_model(path), device, settings if device == "CPU" else {})
    request = model.create_infer_request()

    def run(arrays):
        inputs = {port.index: arrays[next(n for n in port.get_names() if n in arrays)] for port in model.inputs}
        began = time.perf_counter()
        result = request.infer(inputs, share_inputs=True)
        seconds = time.perf_counter() - began
        return seconds, {name: result[port] for port in model.outputs for name in port.get_names()}

    return run


if __name__ == "__main__":
    octet_runner.serve("openvino", ov.__version__.split("-")[0], load)
