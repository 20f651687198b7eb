"""The functions of liboctet, and its structures as octet.h has them."""
import ctypes
import os
from pathlib import Path

RANK = 8


class Array(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("rank", ctypes.c_int), ("dims", ctypes.c_int64 * RANK),
                ("data", ctypes.c_void_p)]


class Port(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("rank", ctypes.c_int), ("dims", ctypes.c_int64 * RANK)]


class Texts(ctypes.Structure):
    _fields_ = [("v", ctypes.POINTER(ctypes.c_char_p)), ("n", ctypes.c_size_t)]


PROGRESS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)
MESSAGE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
SAMPLE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(Array), ctypes.c_size_t)


def _fields(text):
    """The members of a structure, from lines "type name, name"."""
    types = {"text": ctypes.c_char_p, "data": ctypes.c_void_p, "size": ctypes.c_size_t, "bool": ctypes.c_bool, "int": ctypes.c_int,
             "long": ctypes.c_int64, "double": ctypes.c_double, "texts": Texts, "samples": globals().get("Samples"), "sample": SAMPLE}
    lines = [line.split(None, 1) for line in text.strip().splitlines()]
    return [(name, types[kind]) for kind, names in lines for name in names.split(", ")]


class Samples(ctypes.Structure):
    _fields_ = _fields("""
        texts data
        sample get
        data get_arg
        long count
        texts preprocess
        long samples, seed
        bool first, skip_bad
        texts states
        text labels
        long generate""")


class CalibrateOptions(ctypes.Structure):
    _fields_ = _fields("""
        size size
        text model
        data model_data
        size model_size
        samples samples
        long shard, shards
        text output
        bool resume
        int threads""")


class ConvertOptions(ctypes.Structure):
    _fields_ = _fields("""
        size size
        text model
        data model_data
        size model_size
        text output
        bool in_memory, dry_run
        samples samples
        text calib, policy
        texts rules
        text target, scheme, format, observer, effort
        int bits, block_size, accuracy_level
        bool symmetric
        texts disabled_passes, methods, no_methods
        double budget
        bool recover, bias_correction
        text target_size
        double target_bits
        texts max_drop
        double min_sqnr
        text min_agreement, metric, decode, truth, metric_command
        bool less_is_better
        double metric_timeout
        long trials
        double time_limit
        bool strict, sensitivity
        text sensitivity_file
        texts input_types, output_types
        text input_layout
        bool keep_io_types
        text dump_policy, html
        int threads
        text twin""")


class EvaluateOptions(ctypes.Structure):
    _fields_ = _fields("""
        size size
        text model
        texts quantized
        samples samples
        long shard, shards
        texts metrics
        text decode, truth, metric_command
        bool less_is_better
        double metric_timeout
        texts max_drop
        text min_agreement, min_sqnr, min_speedup, max_latency, max_size, max_memory, gates, baseline
        long batch, runs
        text compute, runner, runner_for
        double runner_timeout
        int layers, latency
        bool per_class, sweep, profile
        text html
        int threads
        text markdown, junit, twin""")


def _open():
    """The library: that of OCTET_LIBRARY, the one in the package, or the system's."""
    inside = Path(__file__).with_name("liboctet.so")
    name = os.environ.get("OCTET_LIBRARY") or (str(inside) if inside.exists() else "liboctet.so.0")
    try:
        opened = ctypes.CDLL(name)
    except OSError as e:
        raise ImportError(f"{e}: the module needs Octet's library; install it, or name its file by OCTET_LIBRARY "
                          "(in a build folder tools/library/liboctet.so.0)") from None
    text, place, model, result = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
    size, number = ctypes.c_size_t, ctypes.c_int
    known = [
        ("octet_version", text), ("octet_open", place), ("octet_close", None, place), ("octet_stop", None, place), ("octet_error", text, place),
        ("octet_hint", text, place), ("octet_use_isa", number, place, text),
        ("octet_on_progress", None, place, PROGRESS, ctypes.c_void_p), ("octet_on_message", None, place, MESSAGE, ctypes.c_void_p),
        ("octet_result_free", None, result), ("octet_result_json", text, result),
        ("octet_result_model", ctypes.c_void_p, result, ctypes.POINTER(size)),
        ("octet_model_load", number, place, text, number, ctypes.POINTER(model)),
        ("octet_model_load_memory", number, place, ctypes.c_void_p, size, number, ctypes.POINTER(model)),
        ("octet_model_free", None, model), ("octet_model_input", ctypes.POINTER(Port), model, size),
        ("octet_model_output", ctypes.POINTER(Port), model, size), ("octet_model_metadata", text, model, text),
        ("octet_model_run", number, place, model, ctypes.POINTER(Array), size, ctypes.POINTER(ctypes.POINTER(Array)), ctypes.POINTER(size))]
    for word, options in (("calibrate", CalibrateOptions), ("convert", ConvertOptions), ("evaluate", EvaluateOptions)):
        known += [(f"octet_{word}_init", None, ctypes.POINTER(options), size),
                  (f"octet_{word}_model", number, place, ctypes.POINTER(options), ctypes.POINTER(result))]
    converting = ctypes.POINTER(ConvertOptions)
    known += [("octet_measure_sensitivity", number, place, ctypes.POINTER(EvaluateOptions), text, ctypes.POINTER(result)),
              ("octet_lint_model", number, place, converting, ctypes.POINTER(result)),
              ("octet_convert_targets", number, place, converting, Texts, ctypes.POINTER(result)),
              ("octet_explain_node", number, place, converting, text, ctypes.POINTER(result)),
              ("octet_verify_model", number, place, converting, text, ctypes.POINTER(result)),
              ("octet_convert_folder", number, place, converting, text, ctypes.POINTER(result)),
              ("octet_evaluate_folder", number, place, ctypes.POINTER(EvaluateOptions), text, ctypes.POINTER(result))]
    for name, returned, *arguments in known:
        function = getattr(opened, name)
        function.restype, function.argtypes = returned, arguments
    return opened


lib = _open()


def to_bytes(text):
    """A text for C, where it ends at the first NUL: one that holds a NUL would become another text."""
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    if b"\0" in raw:
        raise ValueError(f"{text!r} has a NUL in it")
    return raw


def to_text(raw):
    """A name of a file, in which any byte may be."""
    return raw.decode("utf-8", "surrogateescape")
