"""calibrate, convert and evaluate: from the values of Python to the typed options of the library."""
import ctypes
import difflib
import inspect
import json as _json
import operator
import os
import re
import sys
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence, Tuple, Union

from . import _inputs as inputs
from ._call import Call, Error, Place, folder as _folder
from ._library import MESSAGE, PROGRESS, CalibrateOptions, ConvertOptions, EvaluateOptions, Texts, lib, to_bytes
from ._results import Calibration, Comparison, Conversion, Evaluation, Result

Name = Union[str, bytes, "os.PathLike[str]"]
Texts_ = Union[str, Sequence[str]]
Number = Union[int, float]
Model_ = Union[Name, bytearray, memoryview, Conversion, Any] # Any: onnx.ModelProto, without which this module works, too
Data = Union[Any, Mapping[str, Any], Iterable[Any], Name, inputs.Pipe]
Progress = Callable[[str, int, int], Any]

# Names that differ from those of octet.h: options are called as in the programs, with _ for -.
RENAMED = {"set": "rules", "disable_pass": "disabled_passes", "method": "methods", "no_method": "no_methods", "input_type": "input_types",
           "output_type": "output_types", "metric_cmd": "metric_command", "state": "states", "as_": "twin"}
# What the samples of a call have.
OF_SAMPLES = ("preprocess", "samples", "first", "seed", "skip_bad", "states", "labels", "generate")
# What the library has elsewhere, so that the message can say where.
ELSEWHERE = {"isa": "call octet.use_isa(name)", "quiet": "warnings go to standard error; they and notes are in the result", "verbose": "the result has all details",
             "check": "compare what octet.Model(model)(...) returns with what is wanted", "as": "in Python it is as_",
             "outputs": "octet.Model(model)(...) returns them"}


class _Options:
    """The options of a call as a structure of the library, and what its pointers point to."""

    def __init__(self, kind, init):
        self.c, self.kept = kind(), []
        init(ctypes.byref(self.c), ctypes.sizeof(self.c))

    def set(self, name, value):
        """Sets the option of that name. None: it stays as it is."""
        member = RENAMED.get(name, name)
        within = self.c.samples if member in OF_SAMPLES else self.c
        kind = dict(type(within)._fields_).get(member)
        if kind is Texts:
            setattr(within, member, self.texts([value] if inputs.is_name(value) or isinstance(value, (int, float)) else value))
        elif kind is ctypes.c_char_p:
            setattr(within, member, to_bytes(_text(value)))
        elif kind is ctypes.c_bool:
            setattr(within, member, bool(value))
        else:
            setattr(within, member, _number(name, value, kind))

    def texts(self, values):
        texts = [to_bytes(_text(one)) for one in values]
        array = (ctypes.c_char_p * max(1, len(texts)))(*texts)
        self.kept.append(array)
        return Texts(ctypes.cast(array, ctypes.POINTER(ctypes.c_char_p)), len(texts))

    def bytes(self, content):
        """Where they are, and how many."""
        self.kept.append(content)
        return ctypes.cast(ctypes.c_char_p(content), ctypes.c_void_p), len(content)


def _text(value):
    return os.fsdecode(value) if inputs.is_name(value) else str(value)


def _number(name, value, kind):
    try:
        if kind is ctypes.c_double:
            return float(value)
        number = int(value) if isinstance(value, str) else operator.index(value)
    except (TypeError, ValueError):
        raise Error(f"--{name.replace('_', '-')}: {value!r} is not a {'number' if kind is ctypes.c_double else 'whole number'}", 2, "") from None
    most = 1 << (8 * ctypes.sizeof(kind) - 1)
    if not -most <= number < most:
        raise Error(f"--{name.replace('_', '-')}: {number} is out of range", 2, "")
    return number


def _check_known(unknown, known):
    for name in unknown:
        like = difflib.get_close_matches(name, known, 1)
        hint = ELSEWHERE.get(name) or (f"did you mean {like[0]}?" if like else "")
        raise Error(f"there is no option --{name.replace('_', '-')}", 2, hint)


def _hear(is_warning, text, notes):
    """Warnings are printed, and are in the report; notes are kept for the result."""
    if is_warning:
        print(f"octet: warning: {text}", file=sys.stderr)
    elif text not in notes:
        notes.append(text)


def _shard(value):
    """Part i, counted from 0, of n."""
    try:
        part, parts = (int(x) for x in (value.split("/") if isinstance(value, str) else value))
    except (TypeError, ValueError):
        raise Error(f"--shard {value!r}: give a part, counted from 0, and how many there are: '0/4' or (0, 4)", 2, "") from None
    if not 0 <= part < parts:
        raise Error(f"--shard {part}/{parts} is out of range: the first is 0/{max(parts, 1)}", 2, "")
    return part, parts


def _put_model(options, model):
    content = inputs.content_of(model)
    if content is None:
        options.set("model", inputs.file_of(model))
        return
    options.set("model", "model.onnx")
    options.c.model_data, options.c.model_size = options.bytes(content)


def _put_samples(options, call, data, folder, of):
    if inputs.is_indexed(data):
        options.kept.append(inputs.giver(data, call.guard))
        options.c.samples.get, options.c.samples.count = options.kept[-1], len(data)
    else:
        most = of.get("samples") if of.get("first") else None
        options.c.samples.data = options.texts(inputs.specs(data, folder, most if isinstance(most, int) and most > 0 else None))


def _options_of(function, options):
    """Keyword arguments that are some of another function's."""
    known = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
    _check_known([name for name in options if name not in known], known)
    return options


class _Given:
    """The values of a call that are no members of the structure."""

    def __init__(self, given):
        self.progress, self.html, self.json, self.data = (given.pop(name, None) for name in ("progress", "html", "json", "data"))
        _check_known(given.pop("unknown"), [n for n in given if n not in ("model", "others")])
        self.options = {name: value for name, value in given.items() if value is not None or name == "model"}


class _Names:
    """What texts call the files of a call's folder, which ends with the call: as the user gave what is in them."""

    def __init__(self, folder):
        at = re.escape(folder + os.sep)
        self.command = re.compile(rf'("command": "(?:[^"\\]|\\.)*{at}(?:[^"\\]|\\.)*",\s*"complete": )true')
        self.one = re.compile(rf"{at}samples\d+-0*(\d+)\.np[yz]")
        self.file = re.compile(rf"{at}(samples|labels|model|page)[\w.*-]*")
        self.words = {"samples": "data"}

    def plain(self, text):
        """A text without them: sample 3 of data is "data[3]"."""
        return self.file.sub(lambda m: self.words.get(m[1], m[1]), self.one.sub(r"data[\1]", text))

    def report(self, text):
        """The same of a report. A command that names them does not work as it stands."""
        return self.plain(self.command.sub(r"\1false", text))


def _take_bytes(result):
    size = ctypes.c_size_t()
    at = lib.octet_result_model(result, ctypes.byref(size))
    return ctypes.string_at(at, size.value) if at else None


def _run(word, kind, given, fill, make, function=None):
    """Calls octet_WORD_model, or the function that takes its options. fill(options, of, folder) sets what is particular to it and returns the text or
    the texts that such a function takes between options and result, or None; make(report, page, model) makes the result."""
    of = _Given(given)
    with _folder() as folder, Place() as place:
        call = Call(place)
        options = _Options(kind, getattr(lib, f"octet_{word}_init"))
        names = _Names(folder)
        notes = []
        told = MESSAGE(call.guard(lambda _, is_warning, text: _hear(is_warning, names.plain(text.decode("utf-8", "replace")), notes)))
        shown = PROGRESS(call.guard(lambda _, what, done, total: of.progress(what.decode(), done, total))) if of.progress else PROGRESS()
        page = str(Path(folder, "page.html")) if of.html is True else of.html or None
        if page:
            options.set("html", page)
        if of.data is not None:
            _put_samples(options, call, of.data, folder, of.options)
        if "labels" in of.options:
            of.options["labels"] = inputs.labels_of(of.options["labels"], folder)
        if "shard" in of.options:
            options.c.shard, options.c.shards = _shard(of.options.pop("shard"))
        name = fill(options, of.options, folder)
        for option, value in of.options.items():
            options.set(option, value)
        lib.octet_on_message(place.at, told, None)
        lib.octet_on_progress(place.at, shown, None)
        result = ctypes.c_void_p()
        try:
            between = [] if name is None else [name if isinstance(name, Texts) else to_bytes(name)]
            status = call.run(function or getattr(lib, f"octet_{word}_model"), ctypes.byref(options.c), *between, ctypes.byref(result))
            made = None
            if result:
                text = names.report(lib.octet_result_json(result).decode("utf-8", "surrogateescape"))
                if of.json:
                    Path(os.fsdecode(of.json)).write_bytes(text.encode("utf-8", "surrogateescape"))
                html = Path(os.fsdecode(page)).read_text(encoding="utf-8") if page and os.path.exists(page) else None
                made = make(_json.loads(text), html, _take_bytes(result))
                made.notes = notes
        finally:
            lib.octet_result_free(result)
        if status:
            raise place.fault(status, made, names.plain)
        return made


def calibrate(model: Model_, data: Data, output: Name, *, preprocess: Optional[Texts_] = None, samples: Optional[int] = None,
              first: Optional[bool] = None, seed: Optional[int] = None, skip_bad: Optional[bool] = None, state: Optional[Texts_] = None,
              generate: Optional[int] = None, shard: Union[str, Tuple[int, int], None] = None, resume: Optional[bool] = None, threads: Optional[int] = None,
              json: Optional[Name] = None, progress: Optional[Progress] = None, **unknown: Any) -> Calibration:
    """Runs samples through a float model and writes a calibration table, from which convert takes ranges: convert(model, calib=output).

    model, data, preprocess and other options about samples: as for convert. output: the file of the table. shard: use part i, counted from 0, of n parts:
    (i, n). resume: keep a checkpoint beside the table, and go on from one that is there. json: a file for the report. The manual qcalib(1) has the details.

    Raises Error."""
    given = dict(locals())

    def fill(options, of, _):
        _put_model(options, of.pop("model"))
    return _run("calibrate", CalibrateOptions, given, fill, lambda report, *_: Calibration(report))


# The options are in the order of qconvert(1).
def convert(model: Model_, data: Optional[Data] = None, *, output: Optional[Name] = None, in_memory: Optional[bool] = None,
            dry_run: Optional[bool] = None, calib: Optional[Name] = None, preprocess: Optional[Texts_] = None, samples: Optional[int] = None,
            first: Optional[bool] = None, seed: Optional[int] = None, skip_bad: Optional[bool] = None, state: Optional[Texts_] = None,
            generate: Optional[int] = None, labels: Union[Name, Sequence[int], Any, None] = None, policy: Optional[Name] = None, set: Optional[Texts_] = None, # pylint: disable=redefined-builtin
            target: Optional[Name] = None, scheme: Optional[str] = None, bits: Optional[int] = None, block_size: Optional[int] = None,
            accuracy_level: Optional[int] = None, symmetric: Optional[bool] = None, observer: Optional[str] = None,
            disable_pass: Optional[Texts_] = None, effort: Optional[str] = None, method: Optional[Texts_] = None, no_method: Optional[Texts_] = None,
            budget: Optional[Number] = None, recover: Optional[bool] = None, bias_correction: Optional[bool] = None,
            target_size: Union[str, int, None] = None, target_bits: Optional[Number] = None, max_drop: Union[Texts_, Number, None] = None,
            min_sqnr: Optional[Number] = None, min_agreement: Union[str, Number, None] = None, metric: Optional[str] = None,
            decode: Optional[Name] = None, truth: Optional[Name] = None, metric_cmd: Optional[str] = None, less_is_better: Optional[bool] = None,
            metric_timeout: Optional[Number] = None, trials: Optional[int] = None, time_limit: Optional[Number] = None,
            strict: Optional[bool] = None, sensitivity: Optional[bool] = None, sensitivity_file: Optional[Name] = None, format: Optional[str] = None, # pylint: disable=redefined-builtin
            input_type: Optional[Texts_] = None, output_type: Optional[Texts_] = None, input_layout: Optional[str] = None,
            keep_io_types: Optional[bool] = None, dump_policy: Optional[Name] = None, html: Union[Name, bool, None] = None,
            as_: Optional[str] = None, json: Optional[Name] = None, threads: Optional[int] = None, progress: Optional[Progress] = None, **unknown: Any) -> Conversion:
    """Quantizes a float ONNX model.

    model: the name of a file, an onnx.ModelProto, or the bytes of one.

    data: samples, as many as a few hundred. An array [N, ...] has N samples along axis 0: the shape of the model's input with N in place of its first
    dimension, or before it. A dictionary {input: array} is for several inputs. A list, a generator or a CalibrationDataReader gives such arrays or
    dictionaries one after the other, of one sample or more; what has __len__ and __getitem__ is asked for one sample at a time, which needs no copy. Names
    are folders, .csv, .npy, .npz, tar shards or patterns; Pipe(command) is a stream. Values are taken as they are, without preprocess: pixels 0 to 255 stay
    so. preprocess: steps such as "imagenet" or "resize=256:crop=224:mean=127.5:std=127.5". labels: one whole number for each sample, or a file.

    output: the file to write; without it a name beside the model's. in_memory=True, and a model that is no file, write none: Conversion.model has the bytes.

    Options that are not given leave the choice to the library. The names are those of qconvert(1), which has the details, with _ for -. Of the ones most used:
    target: where the model will run, such as "onnxruntime-x86"; max_drop: how much worse the metric may be ("1%", "top1=0.5%"); min_sqnr: dB of the worst
    output; target_size: "25%" or bytes; scheme: "static", "dynamic", "weight-only", "fp16", "bf16"; budget: percent of the multiply-accumulates that may stay
    float; as_: results are judged as that runtime computes them; time_limit, metric_timeout: seconds; html: a file for the page, or True: Conversion.report_html has it; json: a file for the report.

    progress(what, done, total): is called on the way; total is 0 where it is not known. What it raises, and Ctrl-C, end the call and are raised from it; no
    file is left half written.

    Raises Error; with status 1 a goal was missed, and Error.report is the Conversion."""
    given = dict(locals())

    def fill(options, of, _):
        _put_model(options, of.pop("model"))
    return _run("convert", ConvertOptions, given, fill, Conversion)


def convert_targets(model: Model_, data: Optional[Data] = None, *, targets: Sequence[Name], **options: Any) -> Comparison:
    """Quantizes a float model for each of several targets, as `qconvert --target a,b,c`, and compares what became of it: layers on integers, their share
    of the work, accuracy, size, and what the target would stumble over. The options are those of convert; in output, TARGET stands for the target's name:
    output="model.TARGET.onnx". With dry_run=True all is made and measured, and nothing is written.

    Raises Error; with status 1 a goal was missed for a target, and Error.report is the Comparison."""
    given = {"model": model, "data": data, "unknown": {}, **_options_of(convert, options)}

    def fill(held, of, _):
        _put_model(held, of.pop("model"))
        return held.texts([targets] if inputs.is_name(targets) else targets)
    return _run("convert", ConvertOptions, given, fill, lambda report, *_: Comparison(report), lib.octet_convert_targets)


def evaluate(model: Model_, *others: Model_, data: Data, preprocess: Optional[Texts_] = None, samples: Optional[int] = None,
             first: Optional[bool] = None, seed: Optional[int] = None, skip_bad: Optional[bool] = None, state: Optional[Texts_] = None,
             generate: Optional[int] = None, labels: Union[Name, Sequence[int], Any, None] = None, shard: Union[str, Tuple[int, int], None] = None, metric: Optional[Texts_] = None,
             decode: Optional[Name] = None, truth: Optional[Name] = None, metric_cmd: Optional[str] = None, less_is_better: Optional[bool] = None,
             metric_timeout: Optional[Number] = None, max_drop: Union[Texts_, Number, None] = None, min_agreement: Union[str, Number, None] = None,
             min_sqnr: Union[str, Number, None] = None, min_speedup: Union[str, Number, None] = None, max_latency: Union[str, Number, None] = None,
             max_size: Union[str, Number, None] = None, max_memory: Union[str, Number, None] = None, gates: Optional[Name] = None,
             baseline: Optional[Name] = None, batch: Optional[int] = None, runs: Optional[int] = None, compute: Optional[str] = None,
             runner: Optional[str] = None, runner_for: Optional[str] = None, runner_timeout: Optional[Number] = None, layers: Optional[bool] = None,
             as_: Optional[str] = None, latency: Optional[bool] = None, per_class: Optional[bool] = None, sweep: Optional[bool] = None,
             profile: Optional[bool] = None, html: Union[Name, bool, None] = None, markdown: Optional[Name] = None, junit: Optional[Name] = None, json: Optional[Name] = None,
             threads: Optional[int] = None, progress: Optional[Progress] = None, **unknown: Any) -> Evaluation:
    """Compares quantized models with a float one over the same samples: metrics with intervals, errors of layers, latency, memory, size.

    model: the float model; others: the quantized ones. Each is the name of a file, an onnx.ModelProto, bytes or what convert returned. data, preprocess,
    labels, progress: as for convert. metric: names, such as "top1,sqnr"; without them those that apply. Gates: max_drop, min_agreement, min_sqnr (dB),
    min_speedup (times), max_latency, max_size, max_memory. as_="litert": quantized models are computed to the bit as that runtime does.
    latency=False does not time the models; layers=False does not compare layers. The names of options are those of qeval(1), which has the details.

    Raises Error; with status 1 a gate was missed, and Error.report is the Evaluation."""
    given = dict(locals())

    def fill(options, of, folder):
        of["model"] = inputs.written(of["model"], folder, 0)
        options.c.quantized = options.texts([inputs.written(one, folder, i + 1) for i, one in enumerate(of.pop("others"))])
        if "metric" in of:
            names = of.pop("metric")
            options.c.metrics = options.texts([one for text in ([names] if isinstance(names, str) else names) for one in text.split(",")])
    return _run("evaluate", EvaluateOptions, given, fill, lambda report, page, _: Evaluation(report, page))


def sensitivity(model: Model_, quantized: Model_, data: Data, *, file: Optional[Name] = None, preprocess: Optional[Texts_] = None,
                samples: Optional[int] = None, first: Optional[bool] = None, seed: Optional[int] = None, skip_bad: Optional[bool] = None,
                state: Optional[Texts_] = None, generate: Optional[int] = None, json: Optional[Name] = None, threads: Optional[int] = None,
                progress: Optional[Progress] = None, **unknown: Any) -> Result:
    """Measures the error at the outputs that quantizing each value and each layer of a model alone causes, whichever tool made the model. The result is the
    report of `qeval --sensitivity` (schema octet-sensitivity-1). model, quantized: the float model and the quantized one, as for evaluate; file: what is
    measured is kept there, and not measured again. Raises Error."""
    given = dict(locals())

    def fill(options, of, folder):
        of["model"] = inputs.written(of["model"], folder, 0)
        options.c.quantized = options.texts([inputs.written(of.pop("quantized"), folder, 1)])
        return of.pop("file", None)
    return _run("evaluate", EvaluateOptions, given, fill, lambda report, *_: Result(report), lib.octet_measure_sensitivity)


def lint(model: Model_, *, calib: Optional[Name] = None, policy: Optional[Name] = None, set: Optional[Texts_] = None, # pylint: disable=redefined-builtin
         target: Optional[Name] = None, scheme: Optional[str] = None, json: Optional[Name] = None, threads: Optional[int] = None,
         progress: Optional[Progress] = None, **unknown: Any) -> Result:
    """Says how the target runs each node of a model, and what goes wrong there; of a float model, what a conversion would make of it. The result is the
    report of `qconvert lint` (schema octet-lint-2): result["nodes"], ["findings"], ["targets"]. model, target and the like: as for convert. Nothing is
    written. Raises Error."""
    given = dict(locals())

    def fill(options, of, _):
        _put_model(options, of.pop("model"))
    return _run("convert", ConvertOptions, given, fill, lambda report, *_: Result(report), lib.octet_lint_model)


def explain(model: Model_, node: str, data: Optional[Data] = None, *, calib: Optional[Name] = None, preprocess: Optional[Texts_] = None,
            samples: Optional[int] = None, policy: Optional[Name] = None, set: Optional[Texts_] = None, # pylint: disable=redefined-builtin
            target: Optional[Name] = None, scheme: Optional[str] = None, json: Optional[Name] = None, threads: Optional[int] = None,
            progress: Optional[Progress] = None, **unknown: Any) -> Result:
    """Says all that is known of a node, by its name or that of a value that it computes, in a conversion with these options (as for convert). The result is
    the report of `qconvert explain` (schema octet-explain-1). Nothing is written. Raises Error."""
    given = dict(locals())

    def fill(options, of, _):
        _put_model(options, of.pop("model"))
        return of.pop("node")
    return _run("convert", ConvertOptions, given, fill, lambda report, *_: Result(report), lib.octet_explain_node)


def verify(model: Model_, source: Model_, data: Union[Name, Sequence[Name], inputs.Pipe, None] = None, *, calib: Optional[Name] = None,
           policy: Optional[Name] = None, target: Optional[Name] = None, labels: Optional[Name] = None, decode: Optional[Name] = None,
           truth: Optional[Name] = None, metric_cmd: Optional[str] = None, metric_timeout: Optional[Number] = None, json: Optional[Name] = None,
           threads: Optional[int] = None, progress: Optional[Progress] = None, **unknown: Any) -> Result:
    """Makes a model that Octet has written again, from the files that its record names, and compares all bytes. model, source: the model and the float one;
    data, calib, policy and the like: the files that it was made from. The result is the report of `qconvert verify` (schema octet-verify-1).

    Raises Error; with status 1 another model was made, and Error.report is the report."""
    given = dict(locals())

    def fill(options, of, folder):
        _put_model(options, inputs.written(of.pop("model"), folder, 0))
        return inputs.written(of.pop("source"), folder, 1)
    return _run("convert", ConvertOptions, given, fill, lambda report, *_: Result(report), lib.octet_verify_model)


def convert_folder(folder: Name, output: Optional[Name] = None, data: Union[Name, Sequence[Name], inputs.Pipe, Any, None] = None, *, recipe: Name = "auto",
                   **options: Any) -> Result:
    """Converts a folder of models into a new folder, as `qconvert FOLDER -o NEW`: for onnxruntime-genai, transformers.js, sentence-transformers, optimum,
    sherpa-onnx, piper, or by the file of a recipe. The new folder appears complete, or not at all. data: as for convert; "NAME=FILE" is for the model of
    that name. The other options are those of convert, and hold for each model; scheme is in place of the recipe's. The result is the report (schema
    octet-folder-1): result["models"], ["files"], ["text"].

    Raises Error; with status 1 a goal was missed: nothing was written, and Error.report is the report."""
    given = {"model": folder, "output": output, "data": data, "unknown": {}, **_options_of(convert, options)}

    def fill(held, of, _):
        held.set("model", of.pop("model"))
        return recipe
    return _run("convert", ConvertOptions, given, fill, lambda report, *_: Result(report), lib.octet_convert_folder)


def evaluate_folder(folder: Name, other: Optional[Name] = None, data: Union[Name, Sequence[Name], inputs.Pipe, Any, None] = None, *, recipe: Name = "auto",
                    **options: Any) -> Result:
    """Judges variants of the models of a folder: those of another folder, or without one those beside the models, as `qeval audit FOLDER`. Without data only
    whether they load, and have the float model's inputs and outputs. data: as for convert_folder; the other options are those of evaluate. The result is
    the report (schema octet-audit-1): result["variants"], with a verdict each.

    Raises Error; with status 1 a variant cannot be used, and Error.report is the report."""
    given = {"model": folder, "data": data, "unknown": {}, **_options_of(evaluate, options)}

    def fill(held, of, _):
        held.set("model", of.pop("model"))
        held.c.quantized = held.texts([other] if other is not None else [])
        if "metric" in of:
            names = of.pop("metric")
            held.c.metrics = held.texts([one for text in ([names] if isinstance(names, str) else names) for one in text.split(",")])
        return recipe
    return _run("evaluate", EvaluateOptions, given, fill, lambda report, *_: Result(report), lib.octet_evaluate_folder)


def use_isa(name: str) -> None:
    """Restricts the instruction sets of the process to a level and those that it includes, such as "avx2"; "scalar": plain C; "native": all. Results do
    not depend on it. Raises Error."""
    with Place() as place:
        status = lib.octet_use_isa(place.at, to_bytes(name))
        if status:
            raise place.fault(status)


def version() -> str:
    """That of the library."""
    return lib.octet_version().decode()


