"""Who runs what: a table of runners, and starting one."""
import fnmatch
import sys

from octbench.networks import ALL, ENCODERS, VISION, WORDS, data_file
from octbench.places import BENCH
from octbench.race import Runner
from octbench.tools import OURS

# name: (kind of worker, form, models). "octet" is bench/runner.c, the others are kinds of worker.py. An ONNX Runtime form in our
# runner shows what the runtime makes of models that it did not convert.
RUNNERS = {
    "ort-float": ("ort", "float", ALL),
    "ort-static": ("ort", "ort-static", VISION + ENCODERS),
    "ort-static-7bit": ("ort", "ort-static-7bit", VISION),
    "ort-static-u8u8": ("ort", "ort-static-u8u8", VISION),
    "ort-static-exact": ("ort-exact", "ort-static", VISION),
    "ort-dynamic": ("ort", "ort-dynamic", WORDS),
    "ort-dynamic-7bit": ("ort", "ort-dynamic-7bit", WORDS),
    "openvino-float": ("openvino", "float", ALL),
    "openvino-int8": ("openvino", "openvino-int8", ALL),
    "torch-float": ("torch", "float", ALL),
    "torch-static-fx": ("torch-fx", "float", VISION),
    "torch-static-inductor": ("torch-pt2e", "float", VISION),
    "torch-dynamic": ("torch-dynamic", "float", WORDS),
    "litert-float": ("litert", "litert-float", ALL),
    "litert-static": ("litert", "litert-static", VISION),
    "litert-dynamic": ("litert", "litert-dynamic", WORDS),
    "octet-float": ("octet", "float", ALL),
    "octet-static": ("octet", "octet-static", VISION + ENCODERS),
    "octet-static-7bit": ("octet", "octet-static-7bit", VISION + ENCODERS),
    "octet-portable": ("octet", "octet-portable", VISION),
    "octet-dynamic": ("octet", "octet-dynamic", WORDS),
    "octet-dynamic-7bit": ("octet", "octet-dynamic-7bit", WORDS),
    "octet-runs-ort-static": ("octet", "ort-static", VISION),
    "octet-runs-ort-dynamic": ("octet", "ort-dynamic", WORDS),
    "octet-runs-ort-dynamic-7bit": ("octet", "ort-dynamic-7bit", WORDS),
}
BASE = "ort-float"
# Which packages a kind of worker needs (venv.py).
PEERS = {"ort": "onnxruntime", "ort-exact": "onnxruntime", "openvino": "openvino", "litert": "litert"}

# What narrows a kind of worker to one of our instruction sets: the name that its variables take. OpenVINO needs both: its plugin asks
# OV_CPU_MAX_ISA (bf16 is chosen by that), and oneDNN inside it ONEDNN_MAX_CPU_ISA.
NARROWING = {
    "openvino": (("OV_CPU_MAX_ISA", "ONEDNN_MAX_CPU_ISA"), {
        "avx2": "AVX2", "avxvnni": "AVX2_VNNI", "avx512": "AVX512_CORE", "avx512vnni": "AVX512_CORE_VNNI", "amx": "AVX512_CORE_AMX"}),
}


def narrowed(kind, isa):
    """Variables that narrow a kind of worker to an instruction set ("": to none); None where it cannot be."""
    if not isa:
        return {}
    if kind == "octet":
        return {"OCT_ISA": isa}
    variables, values = NARROWING.get(kind, ((), {}))
    return dict.fromkeys(variables, values[isa]) if isa in values else None


def peer_of(name):
    """The group of packages a runner needs, or None for ours."""
    kind = RUNNERS[name.partition("@")[0]][0]
    return None if kind == "octet" else PEERS.get(kind, "torch")


def names(model, patterns, isas):
    """The runners of a model that match one of the patterns, with @ISA or without. Those that can be narrowed to one of `isas` come as NAME@ISA, too."""
    each = [n for n, (_, _, models) in RUNNERS.items() if model in models]
    each += [f"{n}@{isa}" for n in each for isa in isas if narrowed(RUNNERS[n][0], isa) is not None]
    return [n for n in each if n == BASE or any(fnmatch.fnmatch(name, p) for p in patterns for name in (n, n.partition("@")[0]))]


def start(name, model, threads, cpus, clock="wall"):
    """A Runner, its set-up begun. forms.Failed when the peer cannot make its form of the model."""
    from octbench import forms      # here, since the table alone needs no numpy
    plain, _, isa = name.partition("@")
    kind, form, _ = RUNNERS[plain]
    path, data = forms.form(form, model), data_file(model)
    if kind == "octet":
        command = [OURS["runner"], path, data, threads]
    else:
        command = [sys.executable, "-m", "octbench.worker", kind, path, data, threads]
    env = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), "TF_CPP_MIN_LOG_LEVEL": "3",
           "OCT_BENCH_CLOCK": clock}
    return Runner(command, cpus, env | narrowed(kind, isa), cwd=BENCH)
