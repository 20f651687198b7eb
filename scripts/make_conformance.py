#!/usr/bin/env python3
"""Writes the operator test cases that come with the `onnx` package, for tests/conformance:

    scripts/make_conformance.py OUT

OUT/NAME/model.onnx and OUT/NAME/test_data_set_0/{input_0.pb,output_0.pb,...}; a sequence is a folder input_0 of 0.pb, 1.pb, ..., an
empty optional a file input_0.none. OUT/index.csv lists name, operator, opset and tolerances. A folder that is complete for the
installed version is left as it is. About a minute; needs onnx and numpy.
"""
import argparse
import os
import shutil
import sys
import warnings


FORM = 2  # of the folder; a newer one is made anew


def proto(v, name, numpy_helper, onnx, np):
    """A tensor's bytes; TypeError for values that are none."""
    if not isinstance(v, (np.ndarray, np.generic, onnx.TensorProto)):
        raise TypeError(type(v))
    return (v if isinstance(v, onnx.TensorProto) else numpy_helper.from_array(np.asarray(v), name)).SerializeToString()


def values(case, numpy_helper, onnx, np):
    """(file name, bytes) of every value of a case; the bytes of a folder are None."""
    for k, (inputs, outputs) in enumerate(case.data_sets):
        for kind, list_, infos in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
            for i, v in enumerate(list_):
                path = "test_data_set_%d/%s_%d" % (k, kind, i)
                if isinstance(v, list):
                    yield path, None
                    for e, x in enumerate(v):
                        yield "%s/%d.pb" % (path, e), proto(x, "", numpy_helper, onnx, np)
                elif v is None:
                    yield path + ".none", b""
                else:
                    yield path + ".pb", proto(v, infos[i].name, numpy_helper, onnx, np)


def operator(case):
    """The operator a case is about: its only one, else the one its name starts with, else 'several'."""
    ops = {n.op_type for n in case.model.graph.node}
    if len(ops) == 1:
        return ops.pop()
    name = case.name[len("test_"):].replace("_", "")
    fits = [o for o in ops if name.startswith(o.lower())]
    return max(fits, key=len) if fits else "several"


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("out")
    out = p.parse_args().out
    warnings.simplefilter("ignore")
    import numpy as np
    import onnx
    from onnx import numpy_helper
    from onnx.backend.test.case import node

    index = os.path.join(out, "index.csv")
    first = "# onnx %s, form %d\n" % (onnx.__version__, FORM)
    if os.path.exists(index) and open(index).readline() == first:
        return 0
    shutil.rmtree(out, ignore_errors=True)
    rows = []
    for case in node.collect_testcases(None):
        if case.model is None:
            continue
        try:
            files = list(values(case, numpy_helper, onnx, np))
        except (TypeError, ValueError, IndexError, RuntimeError):
            continue
        opset = max([o.version for o in case.model.opset_import if o.domain in ("", "ai.onnx")] or [0])
        for name, data in files + [("model.onnx", case.model.SerializeToString())]:
            path = os.path.join(out, case.name, name)
            if data is None:
                os.makedirs(path, exist_ok=True)
                continue
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(data)
        rows.append("%s,%s,%d,%g,%g\n" % (case.name, operator(case), opset, case.rtol, case.atol))
    with open(index + ".part", "w") as f:
        f.write(first + "".join(sorted(rows)))
    os.rename(index + ".part", index)
    print(len(rows), "cases in", out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
