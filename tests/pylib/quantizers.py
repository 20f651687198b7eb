"""A model as each quantizer writes it: ours, ONNX Runtime's and NNCF's."""
import contextlib
import io

import onnx

from pylib import peer, tool
from pylib.rows import Rows

OURS = {"ours, QDQ": (), "ours, operators": ("--format", "qoperator"), "ours, dynamic": ("--scheme", "dynamic"), "ours, openvino": ("--target", "openvino")}
THEIRS = {"ORT, QDQ": "qdq", "ORT, operators": "qoperator", "ORT, dynamic": "dynamic"}
KINDS = ("float", *OURS, *THEIRS, "NNCF")
WITHOUT_SAMPLES = ("float", "ours, dynamic", "ORT, dynamic")
SAMPLES = 4


def _nncf(model, out):
    import nncf
    nncf.set_log_level(50)
    rows = Rows(model)
    made = peer.modern(model.path)
    with contextlib.redirect_stdout(io.StringIO()):  # progress
        onnx.save(nncf.quantize(made, nncf.Dataset([rows.get(i) for i in range(min(SAMPLES, rows.count))]), subset_size=SAMPLES), out)


def write(qconvert, model, kind, out):
    """Writes a model of digest_models as one of KINDS, if it is not the file itself; the path."""
    if kind == "float":
        return model.path
    if kind in OURS:
        data = ("--data", model.data, *model.options) if kind not in WITHOUT_SAMPLES else ()
        tool.run([qconvert, model.path, "-o", out, "-q", "--no-recover", *OURS[kind], *data])
    elif kind in THEIRS:
        dynamic = kind == "ORT, dynamic"
        peer.quantize(model.path, out, None if dynamic else Rows(model), SAMPLES, "dynamic" if dynamic else "minmax", whole=True, operators=kind == "ORT, operators")
    else:
        _nncf(model, out)
    return out
