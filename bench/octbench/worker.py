"""One peer in a process of its own: python -m octbench.worker KIND MODEL DATA THREADS

Speaks as bench/runner.c does: reads a number of seconds a line, answers with the milliseconds of each run as a JSON list.
"""
import json
import os
import sys
import time

import numpy as np

from octbench import forms

LEAST, WARM_SECONDS = 3, 0.3


def sample(data):
    return next(forms.feeds(data, 1))


def onnxruntime_of(model, data, threads, exact=False, feed=None):
    import onnxruntime
    feed = feed or sample(data)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 4
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feed)


def plugin_of(name, library, options=()):
    """A runner of ONNX Runtime with a provider from a library of its own."""
    def runner(model, data, threads):
        import onnxruntime
        feed = dict(np.load(data))
        onnxruntime.register_execution_provider_library(name, library())
        session_options = onnxruntime.SessionOptions()
        session_options.intra_op_num_threads, session_options.inter_op_num_threads, session_options.log_severity_level = threads, 1, 4
        devices = [d for d in onnxruntime.get_ep_devices() if d.ep_name == name and d.device.type == onnxruntime.OrtHardwareDeviceType.CPU]
        if not devices: # OpenVINO's takes processors of Intel only
            raise RuntimeError(f"{name} does not take this processor")
        session_options.add_provider_for_devices(devices, {k: str(v(threads)) for k, v in options})
        session = onnxruntime.InferenceSession(model, session_options)
        return lambda: session.run(None, feed)
    return runner


def openvino_plugin():
    import onnxruntime_ep_openvino
    return onnxruntime_ep_openvino.get_library_path()


def openvino_of(model, data, threads):
    import openvino
    feed = sample(data)
    settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
    request = openvino.Core().compile_model(model, "CPU", settings).create_infer_request()
    return lambda: request.infer(feed)


def torch_of(make):
    """A runner of what make(path of the model, samples as tensors) returns."""
    def runner(model, data, threads):
        import torch
        torch.set_num_threads(threads)
        samples = [tuple(torch.from_numpy(v) for v in f.values()) for f in forms.feeds(data, forms.CALIB)]
        with torch.no_grad():
            net = make(model, samples)

        def run():
            with torch.no_grad():
                net(*samples[0])
        return run
    return runner


def torch_float(model, samples):
    from octbench import torchnet
    return torchnet.load(model)


def torch_fx(model, samples):
    """Static int8 through FX and the x86 engine (FBGEMM and oneDNN)."""
    import torch
    from torch.ao.quantization import get_default_qconfig_mapping
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx
    torch.backends.quantized.engine = "x86"
    net = prepare_fx(torch_float(model, samples), get_default_qconfig_mapping("x86"), samples[0])
    for feed in samples:
        net(*feed)
    return convert_fx(net)


def torch_pt2e(model, samples):
    """Static int8 through export and Inductor."""
    import torch
    import torch._inductor.config
    import torchao.quantization.pt2e.quantizer.x86_inductor_quantizer as x86
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
    net = prepare_pt2e(torch.export.export(torch_float(model, samples), samples[0]).module(), quantizer)
    for feed in samples:
        net(*feed)
    torch._inductor.config.freezing = True
    return torch.compile(convert_pt2e(net))


def torch_dynamic(model, samples):
    import torch
    torch.backends.quantized.engine = "x86"
    return torch.ao.quantization.quantize_dynamic(torch_float(model, samples), {torch.nn.Linear, torch.nn.LSTM}, dtype=torch.qint8)


def litert_of(model, data, threads):
    from ai_edge_litert.interpreter import Interpreter
    net = Interpreter(model, num_threads=threads)
    net.allocate_tensors()
    for detail, x in zip(net.get_input_details(), sample(data).values()):
        if x.ndim == 4:
            x = forms.channels_last(x)
        scale, zero = detail["quantization"]
        if scale:
            x = np.clip(np.round(x / scale + zero), -128, 127)
        net.set_tensor(detail["index"], x.astype(detail["dtype"]))
    return net.invoke


KINDS = {
    "ort": onnxruntime_of,
    "ort-exact": lambda *a: onnxruntime_of(*a, exact=True),
    "ort-whole": lambda model, data, threads: onnxruntime_of(model, data, threads, feed=dict(np.load(data))),
    "ort-octet": plugin_of("OctetExecutionProvider", lambda: os.environ["OCT_BENCH_PROVIDER"]),
    "ort-openvino": plugin_of("OpenVINOExecutionProvider", openvino_plugin, [("num_of_threads", int)]),
    "openvino": openvino_of,
    "torch": torch_of(torch_float),
    "torch-fx": torch_of(torch_fx),
    "torch-pt2e": torch_of(torch_pt2e),
    "torch-dynamic": torch_of(torch_dynamic),
    "litert": litert_of,
}


def time_start(kind, model, data, threads):
    """Milliseconds that a session takes to be made, and its first run."""
    __import__({"ort": "onnxruntime"}.get(kind.partition("-")[0], "numpy"))  # what a program has loaded before it makes sessions
    clock = time.process_time if os.environ.get("OCT_BENCH_CLOCK") == "cpu" else time.perf_counter
    began = clock()
    run = KINDS[kind](model, data, threads)
    made = clock()
    run()
    print(json.dumps([(made - began) * 1e3, (clock() - made) * 1e3]))


def main():
    kind, model, data, threads, *more = sys.argv[1:]
    if more:
        return time_start(kind, model, data, int(threads))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)                              # what peers print must not come between the answers
    run = KINDS[kind](model, data, int(threads))
    clock = time.process_time if os.environ.get("OCT_BENCH_CLOCK") == "cpu" else time.perf_counter
    start = time.perf_counter()
    while time.perf_counter() - start < WARM_SECONDS:
        run()
    for line in sys.stdin:
        took = []
        run()                                  # brings the weights back into the caches
        end = time.perf_counter() + float(line)
        while len(took) < LEAST or time.perf_counter() < end:
            start = clock()
            run()
            took.append((clock() - start) * 1e3)
        print(json.dumps(took), file=answers, flush=True)


if __name__ == "__main__":
    main()
