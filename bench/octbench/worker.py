"""One peer in a process of its own: python -m octbench.worker KIND MODEL DATA THREADS

Speaks as bench/runner.c does: reads a number of seconds a line, answers with the milliseconds of each run as a JSON list.
"""
import json
import os
import sys
import time

import numpy as np

LEAST, WARM_SECONDS = 3, 0.3


def sample(data):
    return {k: v[:1] for k, v in np.load(data).items()}


def onnxruntime_of(model, feed, threads, exact=False):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 4
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feed)


def openvino_of(model, feed, threads):
    import openvino
    settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
    request = openvino.Core().compile_model(model, "CPU", settings).create_infer_request()
    return lambda: request.infer(feed)


KINDS = {
    "ort": onnxruntime_of,
    "ort-exact": lambda *a: onnxruntime_of(*a, exact=True),
    "openvino": openvino_of,
}


def main():
    kind, model, data, threads = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)                              # what peers print must not come between the answers
    run = KINDS[kind](model, sample(data), int(threads))
    start = time.perf_counter()
    while time.perf_counter() - start < WARM_SECONDS:
        run()
    for line in sys.stdin:
        took = []
        run()                                  # brings the weights back into the caches
        end = time.perf_counter() + float(line)
        while len(took) < LEAST or time.perf_counter() < end:
            start = time.perf_counter()
            run()
            took.append((time.perf_counter() - start) * 1e3)
        print(json.dumps(took), file=answers, flush=True)


if __name__ == "__main__":
    main()
