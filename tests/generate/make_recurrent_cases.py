#!/usr/bin/env python3
"""Writes testdata/ops/recurrent.txt and contrib.txt as make_op_cases.py does: recurrent operators, and those of com.microsoft that
dynamically quantized and optimized models hold. ONNX Runtime computed the outputs (needs onnx, onnxruntime, numpy)."""
import numpy as np
import onnxruntime as ort
from onnx import helper

import make_op_cases as cases

rng = np.random.default_rng(20260107)
MS = "com.microsoft"


def f32(*dims, scale=1.0):
    return np.asarray(rng.standard_normal(dims) * scale, np.float32)


def codes(dtype, *dims):
    lo, hi = (0, 256) if dtype == np.uint8 else (-128, 128)
    return rng.integers(lo, hi, dims).astype(dtype)


def recurrent(op, gates, T=5, B=3, I=4, H=6, opset=14, lens=None, state=False, bias=True, peephole=False, absent=(), tol=(1e-4, 1e-5),
              **attrs):
    D = 2 if attrs.get("direction") == "bidirectional" else 1
    x = [f32(T, B, I), f32(D, gates * H, I, scale=0.5), f32(D, gates * H, H, scale=0.5), f32(D, 2 * gates * H, scale=0.5) if bias else None,
         np.array(lens, np.int32) if lens else None, f32(D, B, H) if state else None]
    if op == "LSTM":
        x += [f32(D, B, H) if state else None, f32(D, 3 * H) if peephole else None]
    n_out = 3 if op == "LSTM" else 2
    names = [f"x{i}" if a is not None else "" for i, a in enumerate(x)]
    while names[-1] == "":
        names.pop()
    node = helper.make_node(op, names, [f"y{i}" for i in range(n_out)], hidden_size=H, **attrs)
    feed = {f"x{i}": a for i, a in enumerate(x) if a is not None}
    out = cases.session([node], x, n_out, opset).run(None, feed)
    cases.emit("recurrent", node, opset, x[:len(names)], out, tol=tol)


def all_recurrent():
    for direction in ("forward", "reverse", "bidirectional"):
        for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
            recurrent(op, gates, direction=direction)
            recurrent(op, gates, direction=direction, state=True, lens=[5, 2, 4])
            recurrent(op, gates, direction=direction, lens=[3, 1, 2], bias=False)
        recurrent("LSTM", 4, direction=direction, peephole=True, state=True)
        recurrent("GRU", 3, direction=direction, linear_before_reset=1, state=True)
        recurrent("GRU", 3, direction=direction, linear_before_reset=1, lens=[1, 5, 3])
    recurrent("LSTM", 4, B=1, H=33, T=9, opset=7)
    recurrent("GRU", 3, B=1, H=17, T=9, opset=7)
    recurrent("LSTM", 4, B=18, H=24, T=3)
    recurrent("LSTM", 4, clip=0.7, peephole=True)
    recurrent("LSTM", 4, clip=0.7)
    recurrent("LSTM", 4, input_forget=1)
    recurrent("GRU", 3, clip=0.5)
    recurrent("RNN", 1, clip=0.5)
    recurrent("LSTM", 4, activations=["HardSigmoid", "Softsign", "Relu"], activation_alpha=[0.3], activation_beta=[0.4])
    recurrent("LSTM", 4, direction="bidirectional", activations=["Sigmoid", "ScaledTanh", "Tanh", "HardSigmoid", "LeakyRelu", "Affine"],
              activation_alpha=[0.8, 0.25, 0.1, 0.9], activation_beta=[0.7, 0.45, 0.05])
    recurrent("GRU", 3, activations=["sigmoid", "Softplus"])
    recurrent("RNN", 1, activations=["Elu"], activation_alpha=[0.6])
    recurrent("RNN", 1, activations=["ThresholdedRelu"], activation_alpha=[0.2])


def contrib(op, x, n_out=1, tol=(1e-5, 1e-6), family="contrib", **attrs):
    names = [f"x{i}" if a is not None else "" for i, a in enumerate(x)]
    node = helper.make_node(op, names, [f"y{i}" for i in range(n_out)], domain=MS, **attrs)
    vi = [helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
          for i, a in enumerate(x) if a is not None]
    vo = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(n_out)]
    m = helper.make_model(helper.make_graph([node], "g", vi, vo), ir_version=8,
                          opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)])
    o = ort.SessionOptions()
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    o.intra_op_num_threads = 1
    feed = {f"x{i}": a for i, a in enumerate(x) if a is not None}
    out = ort.InferenceSession(m.SerializeToString(), o, providers=["CPUExecutionProvider"]).run(None, feed)
    cases.emit(family, node, 1, x, out, tol=tol)


def weights(dtype, k, n, small):
    """Codes that do not saturate ONNX Runtime's 16-bit sums on CPUs without VNNI."""
    return rng.integers(64, 193, (k, n)).astype(np.uint8) if dtype == np.uint8 else rng.integers(-small, small + 1, (k, n)).astype(np.int8)


def dynamic():
    for dtype in (np.int8, np.uint8):
        zero = np.array(0 if dtype == np.int8 else 128, dtype)
        b, bias = weights(dtype, 20, 9, 63), f32(9)
        one, each = np.array(0.013, np.float32), np.asarray(rng.uniform(0.005, 0.02, 9), np.float32)
        zeros = np.full(9, zero, dtype)
        for a in (f32(4, 20), f32(2, 3, 20)):
            contrib("DynamicQuantizeMatMul", [a, b, one, zero])
            contrib("DynamicQuantizeMatMul", [a, b, one])
            contrib("DynamicQuantizeMatMul", [a, b, each, zeros, bias])
            q = codes(np.uint8, *a.shape)
            contrib("MatMulIntegerToFloat", [q, b, np.array(0.02, np.float32), one, np.array(77, np.uint8), zero])
            contrib("MatMulIntegerToFloat", [q, b, np.array(0.02, np.float32), each, np.array(77, np.uint8), zeros, bias])
            contrib("MatMulIntegerToFloat", [q, b, np.array(0.02, np.float32), one])
    a, b = codes(np.int8, 3, 8), weights(np.int8, 8, 5, 63)
    contrib("MatMulIntegerToFloat", [a, b, np.array(0.02, np.float32), np.array(0.03, np.float32), np.array(-3, np.int8), np.array(0, np.int8)])
    contrib("MatMulIntegerToFloat", [codes(np.uint8, 2, 4, 8), rng.integers(-63, 64, (2, 8, 5)).astype(np.int8), np.array(0.02, np.float32),
                                     np.array(0.03, np.float32), np.array(9, np.uint8), None])


def dynamic_lstm():
    for direction in ("forward", "reverse", "bidirectional"):
        for per_channel in (False, True):
            for dtype in (np.int8, np.uint8):
                D, T, B, I, H = (2 if direction == "bidirectional" else 1), 4, 1 if per_channel else 2, 7, 8
                w, r = weights(dtype, D * I, 4 * H, 63).reshape(D, I, 4 * H), weights(dtype, D * H, 4 * H, 63).reshape(D, H, 4 * H)
                shape = (D, 4 * H) if per_channel else (D,)
                sw, sr = (np.asarray(rng.uniform(0.004, 0.01, shape), np.float32) for _ in range(2))
                z = np.full(shape, 0 if dtype == np.int8 else 128, dtype)
                contrib("DynamicQuantizeLSTM", [f32(T, B, I), w, r, f32(D, 8 * H, scale=0.3), None, f32(D, B, H, scale=0.3), f32(D, B, H),
                                                f32(D, 3 * H) if dtype == np.int8 else None, sw, z, sr, z], n_out=3, hidden_size=H,
                        direction=direction, tol=(2e-3, 2e-3))
    D, T, B, I, H = 1, 5, 3, 4, 8
    contrib("DynamicQuantizeLSTM", [f32(T, B, I), weights(np.int8, I, 4 * H, 63)[None], weights(np.int8, H, 4 * H, 63)[None], None,
                                    np.array([4, 2, 3], np.int32), None, None, None, np.array([0.01], np.float32), np.zeros(1, np.int8),
                                    np.array([0.01], np.float32), np.zeros(1, np.int8)], n_out=3, hidden_size=H, tol=(2e-3, 2e-3))


def fused():
    a, b = f32(2, 3, 4, 5), f32(2, 3, 5, 6)
    t = lambda x: np.ascontiguousarray(np.swapaxes(x, -1, -2))  # noqa: E731
    contrib("FusedMatMul", [a, b], alpha=0.25)
    contrib("FusedMatMul", [t(a), b], transA=1)
    contrib("FusedMatMul", [a, t(b)], transB=1, alpha=2.0)
    contrib("FusedMatMul", [t(a), t(b)], transA=1, transB=1)
    contrib("FusedMatMul", [f32(2, 3, 4), f32(4, 5)], alpha=-1.5)
    contrib("FusedMatMul", [f32(2, 3, 4), f32(5, 4)], transB=1)
    x, bias = f32(2, 3, 8, scale=3.0), f32(8)
    contrib("Gelu", [x])
    contrib("BiasGelu", [x, bias])
    contrib("FastGelu", [x, bias], tol=(1e-4, 1e-5))
    contrib("FastGelu", [x], tol=(1e-4, 1e-5))
    contrib("QuickGelu", [x], tol=(1e-4, 1e-5))
    contrib("QuickGelu", [x], alpha=0.7, tol=(1e-4, 1e-5))
    skip, gamma, beta = f32(2, 3, 8), f32(8), f32(8)
    contrib("SkipLayerNormalization", [x, skip, gamma, beta, bias], tol=(1e-4, 1e-5))
    contrib("SkipLayerNormalization", [x, skip, gamma], tol=(1e-4, 1e-5), epsilon=1e-3)
    contrib("SkipLayerNormalization", [x, skip[:1], gamma, beta], tol=(1e-4, 1e-5))
    contrib("SkipLayerNormalization", [x, skip[0], gamma, beta, bias], tol=(1e-4, 1e-5))
    contrib("SkipLayerNormalization", [x, skip, gamma, beta, bias], n_out=4, tol=(1e-4, 1e-5))
    contrib("SkipSimplifiedLayerNormalization", [x, skip, gamma, bias], tol=(1e-4, 1e-5))
    contrib("SkipSimplifiedLayerNormalization", [x, skip, gamma], tol=(1e-4, 1e-5), epsilon=1e-3)
    cases.case("contrib", "SimplifiedLayerNormalization", 17, [x, gamma], tol=(1e-4, 1e-5), epsilon=1e-3)
    cases.case("contrib", "SimplifiedLayerNormalization", 17, [x, gamma], n_out=2, tol=(1e-4, 1e-5), axis=-1, stash_type=1)
    ids, seg = rng.integers(0, 11, (2, 5)).astype(np.int32), rng.integers(0, 2, (2, 5)).astype(np.int32)
    word, pos, typ = f32(11, 8), f32(9, 8), f32(2, 8)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    contrib("EmbedLayerNormalization", [ids, seg, word, pos, typ, gamma, beta, mask], n_out=2, tol=(1e-4, 1e-5))
    contrib("EmbedLayerNormalization", [ids, None, word, pos, None, gamma, beta], n_out=2, tol=(1e-4, 1e-5), epsilon=1e-3)
    place = np.array([[3, 1, 0, 8, 2]] * 2, np.int32)
    contrib("EmbedLayerNormalization", [ids, seg, word, pos, typ, gamma, beta, mask, place], n_out=2, tol=(1e-4, 1e-5))


def packed(w, bits, block):
    """w[experts][n][k] as QMoE has it: whole numbers with the lowest bits first, scales and zero points of blocks; block 0: of rows,
    with the zero point in the middle."""
    most = (1 << bits) - 1
    parts = w.reshape(*w.shape[:2], -1, block or w.shape[2])
    if block:
        lo, hi = np.minimum(parts.min(-1), 0), np.maximum(parts.max(-1), 0)
        scale = ((hi - lo) / most).astype(np.float32)
        zero = np.clip(np.round(-lo / scale), 0, most).astype(np.uint8)
    else:
        scale = (abs(parts).max(-1) / (most // 2)).astype(np.float32)
        zero = np.full(scale.shape, (most + 1) // 2, np.uint8)
    whole = np.clip(np.round(parts / scale[..., None]) + zero[..., None], 0, most).astype(np.uint8).reshape(w.shape)
    even = lambda a: np.pad(a, [(0, 0), (0, 0), (0, a.shape[-1] % 2)])  # noqa: E731
    pair = lambda a: a if bits == 8 else even(a)[..., ::2] | even(a)[..., 1::2] << 4  # noqa: E731
    return (pair(whole), scale, pair(zero)) if block else (pair(whole), scale[..., 0], None)


def experts():
    E, K, I, tol = 4, 32, 64, (1e-4, 1e-5)
    x, score, fc1, b1 = f32(3, K), f32(3, E), f32(E, I, K, scale=0.3), f32(E, I)
    fc2, b2, pairs, b3 = f32(E, K, I, scale=0.3), f32(E, K), f32(E, 2 * I, K, scale=0.3), f32(E, 2 * I)
    for act in ("relu", "gelu", "silu", "identity"):
        contrib("MoE", [x, score, fc1, b1, fc2, b2], k=2, activation_type=act, tol=tol)
    contrib("MoE", [x[None], score, fc1, None, fc2], k=3, activation_type="silu", normalize_routing_weights=1, tol=tol)
    contrib("MoE", [x, score, fc1, None, fc2], k=1, tol=tol)
    contrib("MoE", [x, score, pairs, b3, fc2, b2], k=2, activation_type="swiglu", swiglu_fusion=1, tol=tol)
    contrib("MoE", [x, score, pairs, b3, fc2, b2], k=4, activation_type="swiglu", swiglu_fusion=1, swiglu_limit=0.5, activation_alpha=1.702,
            activation_beta=1.0, tol=tol)
    for bits, block in ((4, 16), (4, 32), (4, 0), (8, 0)):
        (q1, s1, z1), (q2, s2, z2) = packed(fc1, bits, block), packed(fc2, bits, block)
        zeros = [None] * 3 + [z1, z2] if block else []
        more = {"block_size": block} if block else {}
        for normalized in (0, 1):  # both divide the weights of the experts by their sum
            contrib("QMoE", [x, score, q1, s1, b1, q2, s2, b2, *zeros], k=2, activation_type="silu", expert_weight_bits=bits,
                    normalize_routing_weights=normalized, tol=tol, **more)
    for bad in ([x, score, fc1, None, fc1], [x, score[:2], fc1, None, fc2], [x, score, fc1[:3], None, fc2], [x, score, fc1, b2, fc2]):
        no("contrib", "MoE", 1, bad, [x], MS, k=2)
    no("contrib", "MoE", 1, [x, score, fc1, None, fc2], [x], MS, k=5)
    q, s, _ = packed(fc1, 4, 16)
    no("contrib", "QMoE", 1, [x, score, q, s[..., :1], None, q, s], [x], MS, k=1, block_size=16)


def blocks():
    ids, scale = np.array([[1, 9, -1], [0, 4, 4]], np.int64), f32(10, 2)
    for bits, per in ((4, 2), (8, 1)):
        data, zero = codes(np.uint8, 10, 64 // per), codes(np.uint8, 10, 2 // per)
        kw = {"gather_axis": 0, "quantize_axis": 1, "block_size": 32, "bits": bits}
        contrib("GatherBlockQuantized", [data, ids, scale], **kw)
        contrib("GatherBlockQuantized", [data, ids.astype(np.int32), scale, zero], **kw)
    contrib("GatherBlockQuantized", [codes(np.uint8, 6, 3, 8), ids[0] % 6, f32(6, 3, 1), codes(np.uint8, 6, 3, 1)], gather_axis=0, quantize_axis=2,
            block_size=16, bits=4)


def linear():
    """4 and 16 bits of com.microsoft."""
    x, s = f32(3, 4, 5, scale=3.0), np.abs(f32(4)) + np.float32(0.01)
    for t in (np.uint8, np.int8, np.uint16, np.int16):
        lo, hi = (0, 256) if np.iinfo(t).bits == 8 else (0, 30000)
        z = rng.integers(lo, hi, 4).astype(t)
        contrib("QuantizeLinear", [x, s, z], axis=1)
        contrib("QuantizeLinear", [x, np.array(s[0]), np.array(z[0])])
        contrib("DequantizeLinear", [codes(t, 3, 4, 5) if np.iinfo(t).bits == 8 else rng.integers(lo, hi, (3, 4, 5)).astype(t), s, z], axis=1)
    contrib("DequantizeLinear", [codes(np.uint8, 3, 5, 4), s, rng.integers(0, 256, 4).astype(np.uint8)], axis=2)


def no(family, op, opset, x, y, domain="", **attrs):
    node = helper.make_node(op, [f"x{i}" if a is not None else "" for i, a in enumerate(x)], [f"y{i}" for i in range(len(y))],
                            domain=domain, **attrs)
    cases.emit(family, node, opset, x, y, refuses=True)


def refused():
    """What must fail: a careless plan would read or write beyond a tensor, or compute something else."""
    T, B, I, H = 3, 2, 4, 5
    x, w, r, y = f32(T, B, I), f32(1, 4 * H, I), f32(1, 4 * H, H), [f32(T, 1, B, H)]
    kw = {"hidden_size": H}
    lens = lambda *v: np.array(v, np.int32)  # noqa: E731
    for bad in ([x, f32(1, 4 * H, I + 1), r], [x, w, f32(1, 4 * H, H + 1)], [x, f32(2, 4 * H, I), r], [x, w, r, f32(1, 4 * H)],
                [x, w, r, None, lens(4, 1)], [x, w, r, None, lens(-1, 1)], [x, w, r, None, lens(1, 1, 1)],
                [x, w, r, None, None, f32(1, B + 1, H)], [x, w, r, None, None, None, f32(1, B, H - 1)],
                [x, w, r, None, None, None, None, f32(1, 2 * H)]):
        no("recurrent", "LSTM", 14, bad, y, **kw)
    no("recurrent", "LSTM", 14, [x, w, r], y, direction="sideways", **kw)
    no("recurrent", "LSTM", 14, [x, w, r], y, activations=["Sigmoid", "Tanh", "Wave"], **kw)
    no("recurrent", "LSTM", 14, [x, w, r], y, activations=["Sigmoid", "Tanh"], **kw)
    q, s, z = codes(np.int8, 1, I, 4 * H), f32(1), np.zeros(1, np.int8)
    for bad in ([q, codes(np.int8, 1, H + 1, 4 * H), s, z, s, z], [q, codes(np.int8, 1, H, 4 * H), s, z, f32(7), z],
                [q, codes(np.int8, 1, 4 * H, H), s, z, s, np.zeros(1, np.uint8)]):
        no("contrib", "DynamicQuantizeLSTM", 1, [x, bad[0], bad[1], None, None, None, None, None, *bad[2:]], y, MS, **kw)
    a, b = codes(np.uint8, 3, 8), codes(np.int8, 8, 5)
    for bad in ([a, b, f32(1), f32(4)], [a, b, f32(2), f32(1)], [a, b, f32(1), f32(5), None, np.zeros(3, np.int8)],
                [a, b, f32(1), f32(5), None, None, f32(6)]):
        no("contrib", "MatMulIntegerToFloat", 1, bad, [f32(3, 5)], MS)
    no("contrib", "BiasGelu", 1, [f32(3, 4), f32(3)], [f32(3, 4)], MS)
    no("contrib", "SkipLayerNormalization", 1, [f32(2, 3, 4), f32(2, 1, 4), f32(4)], [f32(2, 3, 4)], MS)
    for ids in ([0, 9], [-1, 0]):
        no("contrib", "EmbedLayerNormalization", 1, [lens(*ids)[None], None, f32(9, 4), f32(9, 4), None, f32(4), f32(4)],
           [f32(1, 2, 4), lens(0)], MS)
    no("contrib", "EmbedLayerNormalization", 1, [lens(0, 1)[None], None, f32(9, 4)], [f32(1, 2, 4), lens(0)], MS)


if __name__ == "__main__":
    all_recurrent()
    dynamic()
    dynamic_lstm()
    fused()
    refused()
    blocks()
    linear()
    experts()
    for f in cases.files.values():
        f.close()
    print(cases.counts)
