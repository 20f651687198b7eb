"""What calls return: reports, and the objects in them."""
import dataclasses
from collections.abc import Mapping
from typing import Any, Dict, Iterator, List, Optional


def _taken(kind, values, **names):
    """An object of that class from a part of a report; names: members that the report calls otherwise."""
    known = {f.name: values.get(names.get(f.name, f.name), f.default) for f in dataclasses.fields(kind)}
    return kind(**known)


@dataclasses.dataclass(frozen=True)
class Layer:
    """A node of a converted model."""
    name: str = ""
    op: str = ""
    scheme: str = "" #: "static", "dynamic", "weight-only", "fp16", "bf16" or "float"
    integer: bool = False #: it computes on integers
    why: str = "" #: the reason for the scheme
    weight_count: int = 0
    macs: Optional[int] = None #: multiply-accumulates of a run; None: unknown
    weights: Optional[str] = None #: their type in the file, such as "int8"
    per_channel: Optional[bool] = None
    observer: Optional[str] = None #: what has found the range of the output
    scale: Optional[float] = None #: of the output
    zero_point: Optional[int] = None
    expected_us: Optional[float] = None #: microseconds of a run by the target's table of costs
    expected_float_us: Optional[float] = None
    sqnr_weights_db: Optional[float] = None #: signal to quantization noise of the weights, in dB
    sqnr_output_db: Optional[float] = None #: of the output


@dataclasses.dataclass(frozen=True)
class Metric:
    """A metric of a model, beside the float model's."""
    name: str = ""
    value: Optional[float] = None #: shares are 0 to 1, "sqnr" is in dB; None: infinitely good
    float_value: Optional[float] = None #: None: the metric compares with the float model
    drop: Optional[float] = None #: how much worse than the float model, as max_drop counts it: in units of the metric; of "sqnr" noise to signal
    low: Optional[float] = None #: the 95 % interval of the drop
    high: Optional[float] = None
    within_noise: Optional[bool] = None #: the interval holds 0
    samples: Optional[int] = None #: that counted


@dataclasses.dataclass(frozen=True)
class LayerError:
    """What quantization costs at a node, as an evaluation measures it."""
    name: str = ""
    op: str = ""
    scheme: str = ""
    sqnr_db: Optional[float] = None #: with the error of everything before; None: there is none, or nothing differs
    own_sqnr_db: Optional[float] = None #: with inputs as in the float model


@dataclasses.dataclass(frozen=True)
class Gate:
    """A limit that was asked for."""
    gate: str = "" #: "max-drop" and the like
    metric: Optional[str] = None
    limit: Optional[float] = None
    estimate: Optional[float] = None
    met: bool = False
    unsure: bool = False #: the samples cannot tell
    samples_needed: Optional[int] = None #: that could
    text: str = ""


@dataclasses.dataclass(frozen=True)
class TargetResult:
    """What became of a model for one of several targets."""
    target: str = ""
    output: Optional[str] = None #: the file; None: nothing was written
    layers_with_weights: int = 0
    int8_layers: int = 0
    integer_share: Optional[float] = None #: of the multiply-accumulates; None: shapes are not known
    accuracy: Optional[str] = None #: "96.20 % (-0.40)" or "32.9 dB": Comparison.measured says of what; None: there were no samples
    output_sqnr_db: Optional[float] = None
    size: Optional[int] = None #: bytes
    findings: int = 0 #: what goes wrong in this target, as lint finds it
    not_loaded: int = 0 #: of these, nodes that it does not load
    untested_on_device: bool = False
    lossy: bool = False #: a warning says that it has lost much
    goal_met: Optional[bool] = None #: None: there were no goals


@dataclasses.dataclass(frozen=True)
class Tensor:
    """The range of a tensor in a calibration table."""
    name: str = ""
    min: Optional[float] = None
    max: Optional[float] = None
    values: int = 0
    zeros: int = 0


@dataclasses.dataclass(frozen=True)
class Command:
    """What to do next, as a command line."""
    about: str = "" #: "next", or "try" for a remedy of a warning
    command: str = ""
    complete: bool = False #: it works as it stands; else it has names that stand for what only the user has


class Result(Mapping):
    """The report of a call: as a mapping, of the keys that the JSON report of the command has (share/schema); and as attributes.

    report: the same as a dictionary. text: a summary in one sentence, or "". warnings: texts. notes: what the commands say on the way, such as how samples
    were prepared, and that arrays were turned. report_html: the page for a browser, where html= asked for one, else None."""

    report: Dict[str, Any]
    report_html: Optional[str]
    notes: List[str]

    def __init__(self, report: Dict[str, Any], report_html: Optional[str] = None) -> None:
        self.report, self.report_html, self.notes = report, report_html, []

    def __getitem__(self, key: str) -> Any:
        return self.report[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.report)

    def __len__(self) -> int:
        return len(self.report)

    @property
    def text(self) -> str:
        """The result in a sentence or two, or ""."""
        first = [one["text"] for one in self.report.get("answer") or [] if not one.get("command")][:1]
        node = self.report.get("decision")  # what explain is about
        if not first and node:
            first = [f"{node['name']} ({node['op']}): {node['scheme']}: {node['why']}"]
        return self.report.get("text") or "".join(first)

    @property
    def warnings(self) -> List[str]:
        """What may be wrong with the result, a text each."""
        return list(self.report.get("warnings") or [])

    @property
    def next(self) -> List[Command]:
        """The commands that help now. "data" and "labels" in them stand for arrays that the call was given."""
        return [_taken(Command, one) for one in self.report.get("next") or []]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.text or self.report.get('schema', '')}>"


class Conversion(Result):
    """What convert has made. A Conversion can be given as a model to the other calls."""

    model: Optional[bytes] #: the bytes of the model, where it was made in memory

    def __init__(self, report: Dict[str, Any], report_html: Optional[str] = None, model: Optional[bytes] = None) -> None:
        super().__init__(report, report_html)
        self.model = model

    @property
    def output(self) -> Optional[str]:
        """The file of the model; None: there is none."""
        return self.report.get("output") if self.model is None else None

    @property
    def layers(self) -> List[Layer]:
        """All nodes, in the order of the model."""
        return [_taken(Layer, one) for one in self.report.get("layers", [])]

    @property
    def metrics(self) -> Dict[str, Metric]:
        """By name: what was measured on samples that calibration did not see. "sqnr": of the worst output, in dB."""
        found = {}
        if self.report.get("output_sqnr_db") is not None:
            found["sqnr"] = Metric("sqnr", self.report["output_sqnr_db"], samples=(self.report.get("judged_on") or {}).get("samples"))
        for one in [*self.report.get("goals", []), *([self.report["metric"]] if self.report.get("metric") else [])]:
            quant = "quant" if "quant" in one else "value"
            found[one["metric"] if "metric" in one else one["name"]] = _taken(Metric, {"name": one.get("metric", one.get("name")), **one}, value=quant,
                                                                              float_value="float")
        return found

    @property
    def size_bytes(self) -> Optional[int]:
        """Of the file that was made, or would be."""
        return (self.report.get("size_bytes") or {}).get("after")

    @property
    def goals_met(self) -> Optional[bool]:
        """Whether all goals are met; None: there are none."""
        return self.report.get("goal_met")


class Comparison(Result):
    """What convert_targets has made."""

    @property
    def targets(self) -> List[TargetResult]:
        """In the order in which they were asked for."""
        return [_taken(TargetResult, {**one, "size": one["size_bytes"]["after"]}) for one in self.report["targets"]]

    @property
    def measured(self) -> Optional[str]:
        """What TargetResult.accuracy is of; None: there were no samples."""
        return self.report.get("measured")


class ModelResult:
    """What an evaluation says of one model.

    path: its file. metrics: Metric by name. size_bytes: of the file; peak_bytes: of memory for weights and intermediate tensors. latency_ms: the median
    time of a run, None where it was not measured. layers: LayerError, of quantized models. report: all as a dictionary."""

    def __init__(self, report: Dict[str, Any]) -> None:
        self.report = report

    @property
    def path(self) -> str:
        return self.report["path"]

    @property
    def metrics(self) -> Dict[str, Metric]:
        drops = self.report.get("drop") or {}
        return {name: _taken(Metric, {**(drops.get(name) or {}), "name": name, "of_model": value, "drop": (drops.get(name) or {}).get("value")},
                             value="of_model", float_value="float") for name, value in self.report["metrics"].items()}

    @property
    def size_bytes(self) -> Optional[int]:
        return self.report.get("size_bytes")

    @property
    def peak_bytes(self) -> Optional[int]:
        return self.report.get("peak_bytes")

    @property
    def latency_ms(self) -> Optional[float]:
        return (self.report.get("latency_ms") or {}).get("median")

    @property
    def layers(self) -> List[LayerError]:
        return [_taken(LayerError, one) for one in self.report.get("layers", [])]

    def __repr__(self) -> str:
        return f"<ModelResult of {self.path}: {', '.join(f'{n} {m.value}' for n, m in self.metrics.items())}>"


class Evaluation(Result):
    """What evaluate has measured."""

    @property
    def models(self) -> List[ModelResult]:
        """All models, the float one first."""
        return [ModelResult(one) for one in self.report["models"]]

    @property
    def quantized(self) -> Optional[ModelResult]:
        """The first quantized model; None: there is only the float one."""
        models = self.models
        return models[1] if len(models) > 1 else None

    @property
    def metrics(self) -> Dict[str, Metric]:
        """Of the first quantized model, else of the float one."""
        return (self.quantized or self.models[0]).metrics

    @property
    def layers(self) -> List[LayerError]:
        """Of the first quantized model, the worst first."""
        return [_taken(LayerError, one) for one in self.report.get("layers", [])]

    @property
    def gates(self) -> List[Gate]:
        return [_taken(Gate, one) for one in self.report.get("gates", [])]

    @property
    def text(self) -> str:
        """The change of each metric in one sentence."""
        drops = (self.report.get("quant") or {}).get("drop") or {}
        return "; ".join(f"{name} {drop['text']}" for name, drop in drops.items() if drop and drop.get("text"))


class Calibration(Result):
    """What calibrate has found."""

    @property
    def tensors(self) -> List[Tensor]:
        return [_taken(Tensor, one) for one in self.report["tensors"]]

    @property
    def samples(self) -> int:
        return self.report["samples"]
