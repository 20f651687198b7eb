#!/usr/bin/env python3
"""Writes the operator test cases that come with the `onnx` package, for tests/conformance:

    tests/checks/make_conformance.py OUT

OUT/KIND/NAME/model.onnx and its test_data_set_0/{input_0.pb,output_0.pb,...}. KIND is node (made here by the package's code), simple, pytorch-operator or pytorch-converted
(copied from the package). OUT/index.csv lists KIND/NAME, operator, opset and tolerances; OUT/operators.csv the package's operators:
domain, name, newest version, whether it is defined by a function of others. A folder that is complete for the
installed version is left as it is. About a minute; ends with 77 where Python has no onnx.
"""
import argparse
import os
import shutil
import sys
import warnings


FORM = 5  # of the folder; a newer one is made anew


def proto(v, info, numpy_helper, onnx):
    """A value's message, as the type of the input or output says."""
    kind = info.type.WhichOneof("value")
    if isinstance(v, onnx.TensorProto) and kind == "tensor_type":
        return v
    if kind == "sequence_type":
        return numpy_helper.from_list(list(v), info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(v, info.name)
    return numpy_helper.from_array(v, info.name)


def values(case, numpy_helper, onnx):
    """(file name, bytes) of every value of a case, as the package's own generator stores them."""
    for k, (inputs, outputs) in enumerate(case.data_sets):
        for kind, list_, infos in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
            for i, v in enumerate(list_):
                yield "test_data_set_%d/%s_%d.pb" % (k, kind, i), proto(v, infos[i], numpy_helper, onnx).SerializeToString()


def operator(name, model):
    """The operator a case is about: its only one, else the one its name starts with, else 'several'."""
    ops = {n.op_type for n in model.graph.node}
    if len(ops) == 1:
        return ops.pop()
    name = name[len("test_"):].replace("_", "")
    fits = [o for o in ops if name.startswith(o.lower())]
    return max(fits, key=len) if fits else "several"


def row(kind, case, model):
    opset = max([o.version for o in model.opset_import if o.domain in ("", "ai.onnx")] or [0])
    return "%s/%s,%s,%d,%g,%g\n" % (kind, case.name, operator(case.name, model), opset, case.rtol, case.atol)


def node_cases(out, onnx):
    """Writes the cases that the package makes by code; a line of the index each."""
    from onnx import numpy_helper
    from onnx.backend.test.case import node
    for case in node.collect_testcases(None):
        if case.model is None:
            continue
        for name, data in [*values(case, numpy_helper, onnx), ("model.onnx", case.model.SerializeToString())]:
            path = os.path.join(out, "node", case.name, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(data)
        yield row("node", case, case.model)


def model_cases(out, kind, onnx):
    """Copies the cases that the package brings as files."""
    from onnx.backend.test.loader import load_model_tests
    for case in load_model_tests(kind=kind):
        shutil.copytree(case.model_dir, os.path.join(out, kind, case.name))
        yield row(kind, case, onnx.load(os.path.join(case.model_dir, "model.onnx")))


def operators(onnx):
    """Lines of the operators of all domains that are not deprecated; first the newest versions."""
    newest = {}
    for s in onnx.defs.get_all_schemas_with_history():
        key = (s.domain, s.name)
        if key not in newest or newest[key].since_version < s.since_version:
            newest[key] = s
    return ["%s,%s,%d,%d\n" % (s.domain, s.name, s.since_version, s.has_function or s.has_context_dependent_function)
            for _, s in sorted(newest.items()) if not s.deprecated]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("out")
    out = p.parse_args().out
    warnings.simplefilter("ignore")
    try:
        import onnx
    except ImportError as e:
        print(e)
        return 77

    index = os.path.join(out, "index.csv")
    first = "# onnx %s, form %d\n" % (onnx.__version__, FORM)
    if os.path.exists(index) and open(index).readline() == first:
        return 0
    shutil.rmtree(out, ignore_errors=True)
    rows = list(node_cases(out, onnx))
    for kind in ("simple", "pytorch-operator", "pytorch-converted"):
        rows += model_cases(out, kind, onnx)
    with open(os.path.join(out, "operators.csv"), "w") as f:
        f.writelines(operators(onnx))
    with open(index + ".part", "w") as f:
        f.write(first + "".join(sorted(rows)))
    os.rename(index + ".part", index)
    print(len(rows), "cases in", out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
