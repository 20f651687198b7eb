#!/usr/bin/env python3
"""Compares each layer of quantized models, given the same codes, in our runtime, in ONNX Runtime, and in OpenVINO where its package is installed.

    check_agreement.py [--zoo FOLDER] [--shared FOLDER] [--only GLOB]... [--target NAME]... [--qconvert PROGRAM] [--qeval PROGRAM] [-v]

Models are converted as QDQ for the target and cut at every QuantizeLinear (pylib/cut.py); and to float16, and cut at every operator. A piece gets codes that
come from a run of the whole model in ONNX Runtime, by its exact kernels, so that what is compared is the layer's own error, none that has grown on the way. OpenVINO gets the real numbers of these codes and a
QuantizeLinear before each, as it has them in whole models, since it looks for such pairs. For each kind of layer a line has the number of pieces, the share of
equal codes and the largest difference, of OpenVINO also how many of them its execution graph shows on integers. Codes are at most 1 apart, but in pieces that
REASONS has, which are counted apart. Real outputs are at most 1e-4 of their range apart, those in float16 also
where they are neighbours, and 2e-3 where the body of a loop or branch computes in it.

The models: those of digest_models.small, or those of the folders that are given.
Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import sys
from collections import defaultdict
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime")
sys.path.append(str(Path(__file__).resolve().parents[1] / "generate"))  # for make_zoo
import numpy as np
import onnx
from onnx import helper, numpy_helper

from pylib import digest_models, execution, peer, stands, tool
from pylib.cut import Cutter, gap
from pylib.judge import Checker, options
from pylib.rows import Rows

# (runtime, operator that a piece has among others): why it may differ by more.
REASONS = {("openvino", op): "rounded to whole numbers before it is quantized" for op in ("ReduceMax", "ReduceMin")}
SAMPLES = 4
DYNAMIC = {"DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "DynamicQuantizeLinear", "MatMulIntegerToFloat"}
TARGETS = ("onnxruntime-vnni", "openvino")
HALF = "float16"  # in place of a target: converted to it


class Row:
    """What is known of the pieces of one kind."""

    def __init__(self):
        self.pieces = self.integer = self.values = self.differ = self.most = 0

    def add(self, want, got, integer):
        """The largest difference: of codes, or of reals in parts of their range."""
        apart = gap(want, got)
        self.pieces += 1
        self.integer += integer
        self.values += apart.size
        self.differ += int((apart > 0).sum())
        self.most = max(self.most, float(apart.max(initial=0)))
        return float(apart.max(initial=0))

    def __str__(self):
        return f"{self.pieces:5} pieces, {100 * (1 - self.differ / max(1, self.values)):8.4f} % of {self.values:9} equal, at most {self.most:.2g} apart"


def quantized_inputs(model):
    """{input of codes: (scale, zero point)}, constants, by the DequantizeLinear that read it; None where one is read otherwise."""
    constant = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    found = {}
    for value in model.graph.input:
        readers = [n for n in model.graph.node if value.name in n.input]
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            continue
        if not readers or any(n.op_type != "DequantizeLinear" or n.input[1] not in constant or len(n.input) < 3 for n in readers):
            return None
        found[value.name] = readers[0].input[1], readers[0].input[2], constant
    return found


def with_quantizers(model):
    """(the piece whose inputs are real numbers that a QuantizeLinear makes codes of, {input: what makes codes real}); None where it has none."""
    inputs = quantized_inputs(model)
    if inputs is None:
        return None
    made, real = onnx.ModelProto(), {}
    made.CopyFrom(model)
    for value in made.graph.input:
        if value.name not in inputs:
            continue
        scale, zero, constant = inputs[value.name]
        made.graph.node.insert(0, helper.make_node("QuantizeLinear", [f"{value.name}_real", scale, zero], [value.name], name=f"{value.name}_quantized"))
        real[value.name] = lambda x, s=constant[scale], z=constant[zero]: ((x.astype(np.int32) - z.astype(np.int32)) * s).astype(np.float32)
        value.name = f"{value.name}_real"
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return made, real


def on_integers(compiled):
    """Whether a product of the execution graph reads codes."""
    return any(layer["layerType"] in ("Convolution", "FullyConnected", "MatMul") and layer["reads"] in ("u8", "i8") for layer in execution.layers_of(compiled))


def run_openvino(piece, feeds, folder):
    """(the output for each feed, whether a product is on integers); None where inputs are codes that no quantizer makes, or something is quantized when it
    runs: OpenVINO computes that on real numbers."""
    made = with_quantizers(piece.model)
    if not made or any(node.op_type in DYNAMIC for _, node, _ in stands.walk(piece.model.graph)):
        return None
    path = folder / "openvino.onnx"
    onnx.save(made[0], path)
    compiled = execution.compiled(path)
    given = {v.any_name: v.any_name.removesuffix("_real") for v in compiled.inputs}
    runs = [next(iter(compiled({name: made[1].get(of, lambda x: x)(feed[of]) for name, of in given.items()}).values())).copy() for feed in feeds]
    return runs, on_integers(compiled)


def run_all(c, piece, feeds):
    """({runtime: output of each feed}, whether OpenVINO has a product on integers)"""
    path, data = c.folder / "piece.onnx", c.folder / "feeds.npz"
    onnx.save(piece.model, path)
    np.savez(data, **{name: np.stack([f[name] for f in feeds]) for name in feeds[0]})
    session = peer.session(path, exact=True)
    found = {"ours": tool.run_qeval(c.qeval, path, data, c.folder / "out.npz")["out"], "onnxruntime": np.stack([session.run(None, f)[0] for f in feeds])}
    other = run_openvino(piece, feeds, c.folder) if packages.has("openvino") else None
    if other:
        found["openvino"] = np.stack(other[0])
    return found, bool(other and other[1])


def reason_of(runtime, piece):
    ops = {node.op_type for node in piece.model.graph.node}
    return next((f"{of}: {why}" for (where, of), why in REASONS.items() if where == runtime and of in ops), None)


def check_piece(c, table, what, piece, feeds):
    found, integer = run_all(c, piece, feeds)
    for runtime in found.keys() - {"ours"}:
        within = f" (reals, {piece.reals})" if piece.is_float else ""
        kind = reason_of(runtime, piece) or piece.op + within
        most = table[what[0], runtime, kind].add(found[runtime], found["ours"].reshape(found[runtime].shape), integer and runtime == "openvino")
        if most > (piece.reals if piece.is_float else 1):
            print(f"  {', '.join(what)}: {piece.name} ({piece.op}), {runtime}: {most:.2g} apart")


def check(c, table, model, target):
    out, rows = c.folder / "out.onnx", Rows(model)
    how = ["--scheme", "fp16"] if target == HALF else ["--target", target, "--no-recover", *model.options]
    c.convert(model.path, out, "--data", model.data, *how)
    cutter = Cutter(onnx.load(out))
    session, given = peer.session(cutter.exposed().SerializeToString(), exact=True), [rows.get(i) for i in range(min(SAMPLES, rows.count))]
    names = [o.name for o in session.get_outputs()]
    tensors = [dict(zip(names, session.run(None, x), strict=True)) | x for x in given]
    for value in cutter.targets():
        piece = cutter.piece(value)
        try:
            check_piece(c, table, (target, model.name), piece, [{f"in{i}": t[name] for i, name in enumerate(piece.inputs)} for t in tensors])
        except Exception as error:  # one of the runtimes refuses it
            print(f"left out: {model.name}, {target}, {value} ({piece.op}): {type(error).__name__}: {str(error)[:160]}")


def models(args, folder):
    if not args.zoo and not args.shared:
        yield from digest_models.small(folder, lambda _: True)
    if args.zoo:
        yield from digest_models.networks(folder, args.zoo, 1, lambda _: True)
    if args.shared:
        yield from digest_models.trained(folder, args.shared, lambda _: True)


def main():
    parser = options(__doc__)
    parser.add_argument("--zoo", type=Path)
    parser.add_argument("--shared", type=Path)
    parser.add_argument("--only", action="append", metavar="GLOB")
    parser.add_argument("--target", action="append")
    args = parser.parse_args()
    table = defaultdict(Row)
    with Checker(args) as c:
        (c.folder / "models").mkdir()
        for m in models(args, c.folder / "models"):
            if args.only and not any(fnmatch(m.name, g) for g in args.only):
                continue
            if args.verbose:
                print(f"-- {m.name}", flush=True)
            for target in args.target or (*TARGETS, HALF):
                try:
                    check(c, table, m, target)
                except Exception as error:
                    print(f"left out: {m.name}, {target}: {type(error).__name__}: {str(error)[:160]}")
        for (target, runtime, op), row in sorted(table.items()):
            print(f"{target:17} {runtime:12} {op:40} {row}" + (f", {row.integer} on integers" if runtime == "openvino" else ""))
            most = float(op.rstrip(")").split("(reals, ")[1]) if "(reals, " in op else 1
            c.hold(f"{target}, {runtime}: {op}", any(op.startswith(f"{of}: ") for _, of in REASONS) or row.most <= most, str(row))
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
