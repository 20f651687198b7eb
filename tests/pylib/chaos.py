"""How far ONNX Runtime's outputs move when inputs move in their last bits: in chaotic networks that is what two runtimes may differ by."""
import numpy as np

from pylib import peer
from pylib.judge import sqnr

STEP = 2e-7
MOVES = 8


def times(data, factor):
    """The inputs of floats multiplied: by a number, or by an array of each shape that factor makes."""
    return {k: v * (factor(v.shape) if callable(factor) else np.float32(factor)) if v.dtype == np.float32 else v for k, v in data.items()}


def moves(data):
    """The inputs times 1 + STEP, times 1 - STEP, and with signs drawn for each value."""
    yield times(data, 1 + STEP)
    yield times(data, 1 - STEP)
    for seed in range(MOVES - 2):
        rng = np.random.default_rng(seed)
        yield times(data, lambda shape, rng=rng: (1 + STEP * rng.choice((-1, 1), shape)).astype(np.float32))


def in_a_run(sess, data, i):
    """Inputs of sample i. Samples that have an axis less than the input stand for a batch of one, others are the whole input."""
    return {v.name: data[v.name][i:i + 1] if data[v.name].ndim == len(v.shape) else np.asarray(data[v.name][i]) for v in sess.get_inputs()}


def run_ort(model, data, optimize=True):
    """{output of floats: array of all samples}, by ONNX Runtime's exact kernels."""
    sess = peer.session(model, exact=True, optimize=optimize)
    rows = [sess.run(None, in_a_run(sess, data, i)) for i in range(len(next(iter(data.values()))))]
    return {o.name: np.stack([np.asarray(r[k]) for r in rows]) for k, o in enumerate(sess.get_outputs()) if "float" in o.type}


def run_exact(model, data):
    """The same without ONNX Runtime's optimizer where it fails with it, as it does on some models of its own quantizer."""
    try:
        return run_ort(model, data)
    except Exception:
        return run_ort(model, data, optimize=False)


def moved(model, data, want, enough=-200.0):
    """dB between the outputs wanted and those of the move that changes most; moves end where one is at most enough."""
    worst = 200.0
    for inputs in moves(data):
        worst = min(worst, sqnr(want, run_ort(model, inputs)))
        if worst <= enough:
            break
    return worst
