#!/usr/bin/env python3
"""Writes further files of testdata/ops/ as make_op_cases.py does, a function a file: operators of the default domain beyond those of
most networks. ONNX Runtime computed the outputs, or NumPy where it has no such operator or type. Names on the command line choose
files (needs onnx, onnxruntime, numpy)."""
import sys
import zlib

import numpy as np
import onnx
from onnx import helper

import make_op_cases as cases

rng = None
family = ""


def f32(*dims, scale=1.0):
    return np.asarray(rng.standard_normal(dims) * scale, np.float32)


def ints(*dims, lo=-50, hi=50, dtype=np.int64):
    return np.asarray(rng.integers(lo, hi, dims)).astype(dtype)


def s64(*v):
    return np.array(v, np.int64)


def ort(op, opset, inputs, n_out=1, **kw):
    cases.case(family, op, opset, inputs, n_out, **kw)


def node_of(op, inputs, n_out, domain="", **attrs):
    names = [f"x{i}" if a is not None else "" for i, a in enumerate(inputs)]
    return helper.make_node(op, names, [f"y{i}" for i in range(n_out)], domain=domain, **attrs)


def own(op, opset, inputs, outputs, tol=None, domain="", free_shape=False, **attrs):
    """A case whose outputs NumPy computed."""
    cases.emit(family, node_of(op, inputs, len(outputs), domain, **attrs), opset, inputs, outputs, tol=tol, free_shape=free_shape)


def ref(op, opset, inputs, n_out=1, tol=None, **attrs):
    """A case whose outputs the reference implementation of the onnx package computed."""
    from onnx.reference import ReferenceEvaluator
    node = node_of(op, inputs, n_out, **attrs)
    vi = [helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for i, a in enumerate(inputs) if a is not None]
    m = helper.make_model(helper.make_graph([node], "g", vi, [helper.make_empty_tensor_value_info(f"y{i}") for i in range(n_out)]),
                          opset_imports=[helper.make_opsetid("", opset)])
    out = ReferenceEvaluator(m).run(None, {f"x{i}": a for i, a in enumerate(inputs) if a is not None})
    own(op, opset, inputs, [np.asarray(o) for o in out], tol=tol, **attrs)


def no(op, opset, inputs, out, domain="", **attrs):
    """What must fail, with an output of the shape that a careless plan would give it."""
    out = out if isinstance(out, list) else [out]
    cases.emit(family, node_of(op, inputs, len(out), domain, **attrs), opset, inputs, out, refuses=True)


def math():
    x, unit, above = f32(2, 3, 4), np.asarray(rng.uniform(-1, 1, (2, 3, 4)), np.float32), np.abs(f32(2, 3, 4)) + np.float32(1)
    for op, a in (("Asin", unit), ("Acos", unit), ("Atanh", unit), ("Acosh", above), ("Atan", x), ("Sinh", x), ("Cosh", x), ("Asinh", x)):
        ort(op, 9, [a])
        own(op, 22, [a.astype(np.float64)], [getattr(np, "arc" + op[1:].lower() if op[0] == "A" else op.lower())(a.astype(np.float64))],
            tol=(1e-15, 1e-17))
    d = f32(3, 5, scale=100).astype(np.float64)
    for op in ("Sin", "Cos", "Tan"):
        own(op, 22, [d], [getattr(np, op.lower())(d)], tol=(1e-15, 1e-17))
    own("Sin", 7, [np.array([1e9, -3e15, 1e22, 1e300, 0.0])], [np.sin(np.array([1e9, -3e15, 1e22, 1e300, 0.0]))], tol=(1e-15, 0))
    ort("Shrink", 9, [f32(4, 5)])
    ort("Shrink", 9, [f32(4, 5)], lambd=0.9, bias=0.3)
    ort("Shrink", 9, [ints(4, 5, lo=-6, hi=7, dtype=np.int8)], lambd=2.5, bias=1.0)
    no("Asin", 7, [ints(3)], ints(3))


def bits():
    for dt in (np.int32, np.int64, np.uint8, np.uint64, np.int16):
        a, b = ints(2, 3, 4, lo=-2000 if np.dtype(dt).kind == "i" else 0, hi=2000).astype(dt), ints(4, lo=0, hi=100, dtype=dt)
        own("BitwiseAnd", 18, [a, b], [a & b])
        own("BitwiseOr", 18, [a, b], [a | b])
        own("BitwiseXor", 18, [a, b], [a ^ b])
        own("BitwiseNot", 18, [a], [~a])
    for dt in (np.uint8, np.uint16, np.uint32, np.uint64):
        a, b = ints(3, 5, lo=0, hi=200, dtype=dt), ints(5, lo=0, hi=7, dtype=dt)
        for direction in ("LEFT", "RIGHT"):
            own("BitShift", 11, [a, b], [a << b if direction == "LEFT" else a >> b], direction=direction)
    a, b = ints(3, 5, dtype=np.int16), ints(5, lo=0, hi=15, dtype=np.int16)
    own("BitShift", 28, [a, b], [a >> b], direction="RIGHT")
    own("BitShift", 28, [a, b], [a << b], direction="LEFT")
    x = f32(2, 3, 4)
    own("BitCast", 26, [x], [x.view(np.int32)], to=6)
    own("BitCast", 26, [x.view(np.uint32)], [x], to=1)
    no("BitwiseAnd", 18, [x, x], x)
    no("BitwiseNot", 18, [x], x)
    no("BitShift", 11, [ints(3, lo=0, dtype=np.uint8), ints(3, lo=0, dtype=np.uint8)], ints(3, dtype=np.uint8))
    no("BitCast", 26, [x], x.astype(np.float64), to=11)
    no("BitCast", 26, [x], x, to=99)


def arrange():
    x = f32(4, 3, 5)
    ort("ReverseSequence", 10, [x, s64(4, 2, 1)])
    ort("ReverseSequence", 10, [x, s64(1, 2, 3, 0)], batch_axis=0, time_axis=1)
    ort("ReverseSequence", 10, [ints(4, 3, dtype=np.uint8), s64(3, 4, 0)])
    no("ReverseSequence", 10, [x, s64(4, 2, 5)], x)
    no("ReverseSequence", 10, [x, s64(4, 2)], x)
    no("ReverseSequence", 10, [x, s64(4, 2, -1)], x)
    no("ReverseSequence", 10, [x, s64(4, 2, 1)], x, batch_axis=0)
    ort("CenterCropPad", 18, [x, s64(2, 5, 4)])
    ort("CenterCropPad", 18, [x, s64(7, 2)], axes=[0, -1])
    ort("CenterCropPad", 18, [f32(2, 3, 4, 5), s64(2, 7)], axes=[3, 2])
    no("CenterCropPad", 18, [x, s64(2, 5)], f32(2, 5, 5))
    no("CenterCropPad", 18, [x, s64(2, -5)], x, axes=[0, 1])
    no("CenterCropPad", 18, [x, s64(2, 5)], f32(2, 5, 5), axes=[1, -2])
    past, new = f32(2, 3, 6, 2), f32(2, 3, 2, 2)
    for mode, at in (("linear", s64(1, 4)), ("circular", s64(5, 13)), ("linear", None)):
        want = past.copy()
        for b in range(2):
            for k in range(2):
                want[b, :, ((0 if at is None else at[b]) + k) % 6] = new[b, :, k]
        own("TensorScatter", 24, [past, new] + ([at] if at is not None else []), [want], mode=mode)
    no("TensorScatter", 24, [past, new, s64(1, 5)], past)
    no("TensorScatter", 24, [past, new, s64(1, -1)], past)
    no("TensorScatter", 24, [past, new, s64(1)], past)
    no("TensorScatter", 24, [past, new], past, axis=0)
    no("TensorScatter", 24, [past, f32(2, 3, 7, 2)], past)
    no("TensorScatter", 24, [past, new], past, mode="other")
    for e in (0, 1):
        v = f32(3, 4)
        p = np.cumprod(v[:, ::-1], axis=1)[:, ::-1]
        own("CumProd", 26, [v, np.array(1, np.int64)], [np.concatenate([p[:, 1:], np.ones((3, 1), np.float32)], 1) if e else p],
            exclusive=e, reverse=1)
    no("CumProd", 26, [x, np.array(3, np.int64)], x)
    ort("Col2Im", 18, [f32(2, 3 * 6, 12), s64(5, 5), s64(2, 3)])
    ort("Col2Im", 18, [f32(1, 2 * 4, 9), s64(5, 5), s64(2, 2)], strides=[2, 2], pads=[0, 1, 1, 0])
    ort("Col2Im", 18, [f32(1, 4, 9), s64(5, 5), s64(2, 2)], dilations=[2, 2])
    ort("Col2Im", 18, [f32(1, 2 * 8, 12), s64(3, 3, 4), s64(2, 2, 2)])
    no("Col2Im", 18, [f32(2, 3 * 6, 11), s64(5, 5), s64(2, 3)], f32(2, 3, 5, 5))
    no("Col2Im", 18, [f32(2, 7, 12), s64(5, 5), s64(2, 3)], f32(2, 3, 5, 5))
    no("Col2Im", 18, [f32(2, 3 * 6, 12), s64(5, 5), s64(2, 9)], f32(2, 3, 5, 5))
    no("Col2Im", 18, [f32(2, 3 * 6, 12), s64(5, 5), s64(2, 3)], f32(2, 3, 5, 5), strides=[0, 1])
    no("Col2Im", 18, [f32(1, 1, 1), s64(2 ** 40, 2 ** 40), s64(1, 1)], f32(1, 1, 1, 1))


def matrix():
    ort("EyeLike", 9, [f32(3, 4)])
    ort("EyeLike", 9, [ints(4, 3)], k=-2, dtype=1)
    own("EyeLike", 22, [f32(2, 5)], [np.eye(2, 5, 3, dtype=np.uint8)], k=3, dtype=2)
    ort("EyeLike", 9, [f32(2, 3)], k=100)
    no("EyeLike", 9, [f32(2, 3, 4)], f32(2, 3, 4))
    no("EyeLike", 9, [f32(2, 3)], f32(2, 3), dtype=77)
    ort("Det", 11, [f32(5, 5)])
    ort("Det", 11, [f32(2, 3, 4, 4)])
    ort("Det", 11, [f32(1, 1)])
    own("Det", 22, [np.array([[0.0, 2, 1], [1, 1, 0], [3, 0, 1]])], [np.array(-5.0)])
    ort("Det", 11, [np.ones((3, 3), np.float32)])
    no("Det", 11, [f32(3, 4)], f32())
    no("Det", 11, [f32(3)], f32())


def einsum():
    pairs = [("ij,jk->ik", (3, 4), (4, 5)), ("ij,jk", (3, 4), (4, 5)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("bij,bkj->bki", (2, 3, 4), (2, 5, 4)),
             ("ij,ij->ij", (3, 4), (3, 4)), ("ij,ij->i", (3, 4), (3, 4)), ("ij,j->i", (3, 4), (4,)), ("i,j->ij", (3,), (4,)),
             ("i,j->ji", (3,), (4,)), ("i,i->", (7,), (7,)), ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)),
             ("bqhd,bkhd->bhqk", (2, 3, 2, 4), (2, 5, 2, 4)), ("bhqk,bkhd->bqhd", (2, 2, 3, 5), (2, 5, 2, 4)),
             ("bsd,dhk->bshk", (2, 3, 4), (4, 2, 5)), ("bshk,hkd->bsd", (2, 3, 2, 5), (2, 5, 4)), ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 3)),
             ("...ij,jk->...ik", (2, 2, 3, 4), (4, 5)), ("ijk,k->", (2, 3, 4), (4,)), ("ij,kl->", (2, 3), (4, 2)), ("ij,kl->il", (2, 3), (4, 2)),
             ("ab,cb->ca", (3, 2), (4, 2)), ("nchw,c->nchw", (1, 3, 2, 2), (3,)), ("nchw,nc->nhwc", (2, 3, 2, 2), (2, 3)),
             ("Ab,bA->A", (3, 2), (2, 3)), ("a...,a...->...", (3, 2, 2), (3, 1, 2)), ("ii,ij->ij", (3, 3), (3, 4))]
    for eq, *dims in pairs:
        x = [f32(*d) for d in dims]
        own("Einsum", 12, x, [np.asarray(np.einsum(eq, *x), np.float32)], tol=(1e-5, 1e-5), equation=eq)
    for eq, d in (("ij->ji", (3, 4)), ("ii->i", (3, 3)), ("ii->", (3, 3)), ("ii", (3, 3)), ("ij->", (3, 4)), ("bijk->bki", (2, 3, 4, 5)), ("...ij->...ji", (2, 3, 4)),
                  ("ijj->i", (2, 3, 3)), ("abc->cab", (2, 3, 4)), ("ba", (2, 3)), ("i->i", (5,)), ("ij->j", (70, 2))):
        x = f32(*d)
        own("Einsum", 12, [x], [np.asarray(np.einsum(eq, x), np.float32)], tol=(1e-5, 1e-5), equation=eq)
    for eq, *dims in (("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)), ("a,b,c->cab", (2,), (3,), (4,)), ("ij,jk,ik->ik", (2, 3), (3, 4), (2, 4)),
                      ("bi,bj,bk,bl->bijkl", (2, 2), (2, 3), (2, 2), (2, 3)), ("ijk,jl,lm->im", (2, 3, 4), (3, 2), (2, 5))):
        x = [f32(*d) for d in dims]
        own("Einsum", 12, x, [np.asarray(np.einsum(eq, *x), np.float32)], tol=(1e-5, 1e-5), equation=eq)
    for dt in (np.float64, np.int32, np.int64, np.uint8):
        x = [ints(2, 3, 4, lo=0, dtype=dt), ints(2, 5, 4, lo=0, dtype=dt)]
        own("Einsum", 28, x, [np.einsum("bij,bkj->bik", *x)], equation="bij,bkj->bik")
        own("Einsum", 28, x[:1], [np.asarray(np.einsum("bij->j", x[0]), dt)], equation="bij->j")
    a, b, e = f32(3, 4), f32(4, 5), np.zeros((3, 0), np.float32)
    own("Einsum", 12, [e, np.zeros((0, 2), np.float32)], [np.zeros((3, 2), np.float32)], equation="ij,jk->ik")
    for eq, *x in (("ij,jk->ik", a, a), ("ij->ik", a), ("ij,jk->ik", a), ("ij,jk->ik", a, b, b), ("ijk,jk->i", a, b), ("i.j->i", a), ("ij->ii", a),
                   ("ij>ji", a), ("ij-ji", a), ("i$->i", a), ("ij...k->i", a), ("ij,ij->ij", e, a), ("", a), ("ij->ji,", a), ("......->i", a)):
        no("Einsum", 12, x, f32(3, 5), equation=eq)


def attention():
    B, H, S, L, D = 2, 3, 4, 5, 8
    q, k, v = f32(B, H, S, D), f32(B, H, L, D), f32(B, H, L, 6)
    tol = {"tol": (1e-5, 1e-6)}
    ref("Attention", 23, [q, k, v], **tol)
    ref("Attention", 23, [q, k, v], scale=0.5, softcap=2.0, is_causal=1, **tol)
    ref("Attention", 23, [q, k, v, f32(S, L)], **tol)
    ref("Attention", 24, [q, k, v, f32(B, 1, S, L - 2)], **tol)
    ref("Attention", 23, [q, k, v, ints(H, S, L, lo=0, hi=2).astype(bool) | (np.arange(L) == 0)], **tol)
    for mode in range(4):
        ref("Attention", 23, [q, k, v, f32(B, H, S, L + 2), f32(B, H, 2, D), f32(B, H, 2, 6)], 4, is_causal=1, softcap=3.0 if mode else 0.0,
            qk_matmul_output_mode=mode, **tol)
    ref("Attention", 23, [f32(B, S, 4 * D), f32(B, L, 2 * D), f32(B, L, 2 * 3)], q_num_heads=4, kv_num_heads=2, **tol)
    ref("Attention", 23, [f32(1, 70, 2 * D), f32(1, 90, 2 * D), f32(1, 90, 2 * D)], 3, q_num_heads=2, kv_num_heads=2, is_causal=1, **tol)
    ref("Attention", 24, [q, k, v, None, None, None, s64(5, 2)], is_causal=1, **tol)
    ref("Attention", 25, [q, k, v], left_window_size=1, right_window_size=2, **tol)
    ref("Attention", 23, [x.astype(np.float64) for x in (q, k, v, f32(S, L))], is_causal=1, tol=(1e-12, 1e-13))
    y = f32(B, H, S, 6)
    no("Attention", 23, [q, f32(B, H, L, 7), v], y)
    no("Attention", 23, [q, f32(B, 2, L, D), f32(B, 2, L, 6)], y)
    no("Attention", 23, [q, k, v, f32(S, L + 1)], y)
    no("Attention", 23, [q, k, v, f32(3, L)], y)
    no("Attention", 23, [q, k, v, None, f32(B, H, 2, D)], y)
    no("Attention", 23, [q, k, v, None, f32(B, H, 2, 7), f32(B, H, 2, 6)], y)
    no("Attention", 24, [q, k, v, None, None, None, s64(6, 2)], y)
    no("Attention", 24, [q, k, v, None, None, None, s64(2)], y)
    no("Attention", 25, [q, k, v], y, left_window_size=-2)
    no("Attention", 23, [f32(B, S, 3 * D + 1), f32(B, L, 3 * D), f32(B, L, 3 * D)], f32(B, S, 3 * D), q_num_heads=3, kv_num_heads=3)
    no("Attention", 23, [f32(B, S, 3 * D), f32(B, L, 3 * D), f32(B, L, 3 * D)], f32(B, S, 3 * D))

    x, cos, sin = f32(2, 4, 3 * 8), np.cos(f32(10, 4)), np.sin(f32(10, 4))
    at = ints(2, 4, lo=0, hi=10)
    ref("RotaryEmbedding", 23, [x, cos, sin, at], num_heads=3)
    ref("RotaryEmbedding", 23, [f32(2, 3, 4, 8), cos, sin, at], interleaved=1)
    ref("RotaryEmbedding", 23, [f32(2, 3, 4, 8), cos[:, :2], sin[:, :2], at], rotary_embedding_dim=4)
    ref("RotaryEmbedding", 23, [x, np.cos(f32(2, 4, 4)), np.sin(f32(2, 4, 4))], num_heads=3, interleaved=1)
    no("RotaryEmbedding", 23, [x, cos, sin, at + 8], x, num_heads=3)
    no("RotaryEmbedding", 23, [x, cos, sin, at - 9], x, num_heads=3)
    no("RotaryEmbedding", 23, [x, cos, sin[:, :3], at], x, num_heads=3)
    no("RotaryEmbedding", 23, [x, cos, sin, at], x)
    no("RotaryEmbedding", 23, [x, cos, sin, at], x, num_heads=3, rotary_embedding_dim=16)
    no("RotaryEmbedding", 23, [x, cos, sin], x, num_heads=3)
    own("SwiGLU", 28, [x, cos_like(x)], [np.float32(x / (1 + np.exp(-1.5 * x.astype(np.float64))) * cos_like(x))], alpha=1.5, tol=(1e-5, 1e-6))
    d = x.astype(np.float64)
    own("SwiGLU", 28, [d, d], [d / (1 + np.exp(-d)) * d], tol=(1e-13, 0))
    no("SwiGLU", 28, [x, x[:1]], x)
    for rule in ("linear", "gated", "delta", "gated_delta"):
        g = -np.abs(f32(2, 5, 2 if rule == "gated_delta" else 2 * 4)) if "gated" in rule else None
        ref("LinearAttention", 27, [f32(2, 5, 4 * 4), f32(2, 5, 2 * 4, scale=0.4), f32(2, 5, 2 * 3), f32(2, 2, 4, 3), g,
                                    np.abs(f32(2, 5, 2, scale=0.3)) if "delta" in rule else None], 2, q_num_heads=4, kv_num_heads=2,
            update_rule=rule, tol=(2e-5, 1e-5))
    q3, k3 = f32(1, 2, 8), f32(1, 2, 8)
    no("LinearAttention", 27, [q3, k3, k3, None, None, f32(1, 2, 2)], [q3, f32(1, 2, 4, 4)], q_num_heads=2, kv_num_heads=2)
    no("LinearAttention", 27, [q3, k3, k3], [q3, f32(1, 2, 4, 4)], q_num_heads=2, kv_num_heads=2, update_rule="other")
    no("LinearAttention", 27, [q3, k3, f32(1, 3, 8)], [q3, f32(1, 2, 4, 4)], q_num_heads=2, kv_num_heads=2, update_rule="linear")
    no("LinearAttention", 27, [q3, k3, k3], [q3, f32(1, 2, 4, 4)], q_num_heads=3, kv_num_heads=2, update_rule="linear")
    ref("CausalConvWithState", 27, [f32(2, 3, 6), f32(3, 1, 4), f32(3), f32(2, 3, 3)], 2, activation="silu", tol=(1e-5, 1e-6))
    ref("CausalConvWithState", 27, [f32(2, 3, 2), f32(3, 1, 4)], 2, tol=(1e-5, 1e-6))
    no("CausalConvWithState", 27, [f32(2, 3, 2), f32(4, 1, 4)], [f32(2, 3, 2), f32(2, 3, 3)])
    no("CausalConvWithState", 27, [f32(2, 3, 2), f32(3, 1, 4), f32(2)], [f32(2, 3, 2), f32(2, 3, 3)])
    no("CausalConvWithState", 27, [f32(2, 3, 2), f32(3, 1, 4), None, f32(2, 3, 4)], [f32(2, 3, 2), f32(2, 3, 3)])


def cos_like(x):
    return np.cos(x)


MS = {"domain": "com.microsoft"}


def heads():
    """Attention as ONNX Runtime's optimizer and model builder write it."""
    B, S, L, N, D = 2, 4, 6, 3, 8
    W = N * D
    tol = {"tol": (1e-4, 1e-5), **MS}
    s32 = lambda *v: np.array(v, np.int32)  # noqa: E731
    q, k, v = f32(B, S, W), f32(B, L, W), f32(B, L, N * 5)
    ort("MultiHeadAttention", 1, [q, k, v], num_heads=N, **tol)
    ort("MultiHeadAttention", 1, [q, k, f32(B, L, W), f32(3 * W)], num_heads=N, scale=0.3, **tol)
    ort("MultiHeadAttention", 1, [q, k, f32(B, L, W), None, s32(4, 6)], num_heads=N, **tol)
    ort("MultiHeadAttention", 1, [q, k, f32(B, L, W), None, ints(B, L, lo=0, hi=2, dtype=np.int32)], num_heads=N, mask_filter_value=-100.0, **tol)
    ort("MultiHeadAttention", 1, [q, k, f32(B, L, W), None, None, f32(B, N, S, L)], num_heads=N, **tol)
    ort("MultiHeadAttention", 1, [q, k, f32(B, L, W), f32(3 * W), ints(B, S, L, lo=0, hi=2, dtype=np.int32), f32(1, 1, S, L)], num_heads=N, **tol)
    ort("MultiHeadAttention", 1, [q, f32(B, S, W), f32(B, S, W)], num_heads=N, unidirectional=1, **tol)
    ort("MultiHeadAttention", 1, [f32(B, 1, W), f32(B, 1, W), f32(B, 1, W), f32(3 * W), None, None, f32(B, N, 5, D), f32(B, N, 5, D)], 3, num_heads=N, **tol)
    ort("MultiHeadAttention", 1, [q, f32(B, N, L, D), f32(B, N, L, D)], num_heads=N, **tol)
    qkv = f32(B, S, N, 3, D)
    rows = [np.ascontiguousarray(qkv[:, :, :, i].reshape(B, S, W)) for i in range(3)]
    node = node_of("MultiHeadAttention", rows, 1, "com.microsoft", num_heads=N)
    want = cases.session([node], rows, 1, 1).run(None, {f"x{i}": a for i, a in enumerate(rows)})
    own("MultiHeadAttention", 1, [qkv], want, tol=(1e-4, 1e-5), num_heads=N, **MS)
    y = f32(B, S, W)
    no("MultiHeadAttention", 1, [q, k, f32(B, L + 1, W)], y, num_heads=N, **MS)
    no("MultiHeadAttention", 1, [q, k, f32(B, L, W)], y, **MS)
    no("MultiHeadAttention", 1, [q, k, f32(B, L, W)], y, num_heads=5, **MS)
    no("MultiHeadAttention", 1, [q, k, f32(B, L, W), f32(3 * W - 1)], y, num_heads=N, **MS)
    no("MultiHeadAttention", 1, [q, k, f32(B, L, W), None, ints(B, L + 1, dtype=np.int32)], y, num_heads=N, **MS)
    no("MultiHeadAttention", 1, [q, k, f32(B, L, W), None, None, f32(B, N, S, L + 1)], y, num_heads=N, **MS)

    x, w, b = f32(B, S, 10), f32(10, 3 * W, scale=0.3), f32(3 * W)
    ort("Attention", 1, [x, w, b], num_heads=N, **tol)
    ort("Attention", 1, [x, w, b, s32(3, 4)], num_heads=N, **tol)
    ort("Attention", 1, [x, w, b, s32(3, 4, 0, 1)], num_heads=N, **tol)
    ort("Attention", 1, [x, w, b, ints(B, S, lo=0, hi=2, dtype=np.int32)], num_heads=N, **tol)
    ort("Attention", 1, [x, w, b], num_heads=N, unidirectional=1, **tol)
    ort("Attention", 1, [x, w, b, None, f32(2, B, N, 3, D)], 2, num_heads=N, unidirectional=1, **tol)
    ort("Attention", 1, [x, w, b, None, None, f32(1, N, S, S)], num_heads=N, scale=0.2, **tol)
    ort("Attention", 1, [x, f32(10, 2 * W + 2 * N, scale=0.3), f32(2 * W + 2 * N)], num_heads=N, qkv_hidden_sizes=[W, W, 2 * N], **tol)
    no("Attention", 1, [x, w, f32(3 * W + 1)], y, num_heads=N, **MS)
    no("Attention", 1, [x, f32(9, 3 * W), b], y, num_heads=N, **MS)
    no("Attention", 1, [x, w, b], y, num_heads=7, **MS)
    no("Attention", 1, [x, w, b, None, f32(2, B, N, 3, D + 1)], [y, f32(2, B, N, 7, D)], num_heads=N, **MS)
    no("Attention", 1, [x, w, b], y, num_heads=N, qkv_hidden_sizes=[W, W], **MS)

    for n, g in ((4, 2), (4, 4), (2, 1)):
        for extra in ({}, {"local_window_size": 2}, {"softcap": 5.0}, {"scale": 0.7}):
            new = [f32(B, 5, n * D), f32(B, 5, g * D), f32(B, 5, g * D)]
            ort("GroupQueryAttention", 1, new + [None, None, s32(4, 4), np.array(5, np.int32)], 3, num_heads=n, kv_num_heads=g, **extra, **tol)
            one = [f32(B, 1, n * D), f32(B, 1, g * D), f32(B, 1, g * D), f32(B, g, 6, D), f32(B, g, 6, D)]
            ort("GroupQueryAttention", 1, one + [s32(6, 6), np.array(7, np.int32)], 3, num_heads=n, kv_num_heads=g, **extra, **tol)
    D = 16
    cos, sin = np.cos(f32(12, D // 2)), np.sin(f32(12, D // 2))
    for inter in (0, 1):
        ort("GroupQueryAttention", 1, [f32(1, 3, 4 * D), f32(1, 3, 2 * D), f32(1, 3, 2 * D), f32(1, 2, 4, D), f32(1, 2, 4, D), s32(6), np.array(7, np.int32),
                                       cos, sin], 3, num_heads=4, kv_num_heads=2, do_rotary=1, rotary_interleaved=inter, **tol)
    ort("GroupQueryAttention", 1, [f32(B, 5, 8 * D), None, None, None, None, s32(4, 4), np.array(5, np.int32), cos, sin], 3, num_heads=4, kv_num_heads=2,
        do_rotary=1, **tol)
    ort("GroupQueryAttention", 1, [f32(B, 5, 8 * D), None, None, None, None, s32(4, 4), np.array(5, np.int32), None, None, None, None, f32(4)], 3,
        num_heads=4, kv_num_heads=2, **tol)
    ort("GroupQueryAttention", 1, [f32(B, 5, 8 * D), None, None, None, None, s32(4, 4), np.array(5, np.int32), None, None, None, f32(1, 4, 5, 5)], 3,
        num_heads=4, kv_num_heads=2, **tol)
    D = 8
    cos, sin = np.cos(f32(12, D // 2)), np.sin(f32(12, D // 2))
    new, out = [f32(B, 5, 4 * D), f32(B, 5, 2 * D), f32(B, 5, 2 * D)], [f32(B, 5, 4 * D), f32(B, 2, 5, D), f32(B, 2, 5, D)]
    for lens, total in ((s32(4, 5), 5), (s32(-2, 4), 5), (s32(4), 5), (s32(4, 4), 3)):
        no("GroupQueryAttention", 1, new + [None, None, lens, np.array(total, np.int32)], out, num_heads=4, kv_num_heads=2, **MS)
    no("GroupQueryAttention", 1, new + [None, None, s32(4, 4), np.array(5, np.int32)], out, num_heads=4, kv_num_heads=3, **MS)
    no("GroupQueryAttention", 1, new + [f32(B, 2, 4, D + 1), f32(B, 2, 4, D + 1), s32(8, 8), np.array(9, np.int32)],
       [out[0], f32(B, 2, 9, D), f32(B, 2, 9, D)], num_heads=4, kv_num_heads=2, **MS)
    no("GroupQueryAttention", 1, new + [None, None, s32(4, 4), np.array(5, np.int32), cos[:3], sin[:3]], out, num_heads=4, kv_num_heads=2, do_rotary=1, **MS)

    ort("RotaryEmbedding", 1, [f32(B, 4, 3 * 8), ints(B, 4, lo=0, hi=12), cos, sin], **MS)
    ort("RotaryEmbedding", 1, [f32(B, 4, 3 * 8), s64(5), cos, sin], interleaved=1, **MS)
    ort("RotaryEmbedding", 1, [f32(B, 4, 3 * 8), ints(B, 4, lo=0, hi=12), cos[:, :2], sin[:, :2]], num_heads=3, rotary_embedding_dim=4, **MS)
    ort("RotaryEmbedding", 1, [f32(B, 3, 4, 8), ints(B, 4, lo=0, hi=12), cos, sin], **MS)
    no("RotaryEmbedding", 1, [f32(B, 4, 3 * 8), s64(9), cos, sin], f32(B, 4, 3 * 8), **MS)
    no("RotaryEmbedding", 1, [f32(B, 4, 3 * 8), s64(2 ** 63 - 1), cos, sin], f32(B, 4, 3 * 8), **MS)


def vision():
    x, g = f32(2, 3, 4, 5), np.asarray(rng.uniform(-1.4, 1.4, (2, 3, 4, 2)), np.float32)
    tol = {"tol": (1e-4, 2e-5)}
    for mode in ("linear", "nearest", "cubic"):
        for pad in ("zeros", "border", "reflection"):
            for align in (0, 1):
                ort("GridSample", 20, [x, g], mode=mode, padding_mode=pad, align_corners=align, **tol)
    ort("GridSample", 16, [x, g], **tol)
    ort("GridSample", 16, [x, g * 9], mode="bicubic", padding_mode="reflection", **tol)
    ort("GridSample", 20, [f32(1, 2, 3, 4, 5), np.asarray(rng.uniform(-1.3, 1.3, (1, 2, 3, 2, 3)), np.float32)], **tol)
    ort("GridSample", 20, [f32(1, 2, 3, 4, 5), np.asarray(rng.uniform(-1.3, 1.3, (1, 2, 3, 2, 3)), np.float32)], mode="nearest", padding_mode="border", **tol)
    ref("GridSample", 20, [f32(2, 3, 7), np.asarray(rng.uniform(-1.3, 1.3, (2, 5, 1)), np.float32)], mode="cubic", **tol)
    ref("GridSample", 22, [x.astype(np.float64), g.astype(np.float64)], align_corners=1, tol=(1e-6, 1e-6))
    ref("GridSample", 22, [ints(2, 3, 4, 5, dtype=np.int32), g], mode="nearest")
    wild = g.copy()
    wild[0, 0, 0] = [np.nan, np.inf]
    wild[0, 0, 1] = [1e30, -1e30]
    own("GridSample", 20, [np.zeros_like(x), wild], [np.zeros((2, 3, 3, 4), np.float32)], padding_mode="border")
    y = f32(2, 3, 3, 4)
    no("GridSample", 20, [x, f32(2, 3, 4, 3)], y)
    no("GridSample", 20, [x, f32(1, 3, 4, 2)], y)
    no("GridSample", 20, [x, g], y, mode="other")
    no("GridSample", 20, [x, g], y, padding_mode="other")
    no("GridSample", 20, [np.zeros((2, 3, 0, 5), np.float32), g], y)
    for align in (0, 1):
        ort("AffineGrid", 20, [f32(2, 2, 3), s64(2, 3, 4, 5)], align_corners=align, **tol)
        ort("AffineGrid", 20, [f32(2, 3, 4), s64(2, 3, 2, 4, 3)], align_corners=align, **tol)
    own("AffineGrid", 20, [np.array([[[1.0, 0, 0], [0, 1, 0]]]), s64(1, 1, 1, 2)], [np.array([[[[-0.5, 0], [0.5, 0]]]])])
    no("AffineGrid", 20, [f32(2, 2, 3), s64(2, 3, 4)], f32(2, 4, 5, 2))
    no("AffineGrid", 20, [f32(2, 2, 4), s64(2, 3, 4, 5)], f32(2, 4, 5, 2))
    no("AffineGrid", 20, [f32(2, 2, 3), s64(2, 3, 4, -5)], f32(2, 4, 5, 2))
    no("AffineGrid", 20, [f32(2, 2, 3), s64(3, 3, 4, 5)], f32(3, 4, 5, 2))

    rois, at = np.array([[0, 0, 3, 4], [1.3, 0.7, 9, 6], [2, 2, 2.2, 2.1], [-4, -3, 2, 20], [5, 5, 1, 2]], np.float32), s64(0, 1, 1, 0, 0)
    m = f32(2, 3, 6, 7)
    for v, kw in ((10, {}), (16, {}), (16, {"coordinate_transformation_mode": "output_half_pixel"}), (16, {"mode": "max"}), (10, {"mode": "max"})):
        ort("RoiAlign", v, [m, rois, at], output_height=2, output_width=3, spatial_scale=0.8, **kw, **tol)
        ort("RoiAlign", v, [m, rois, at], output_height=3, output_width=2, sampling_ratio=2, **kw, **tol)
    own("RoiAlign", 16, [np.ones((1, 1, 4, 4), np.float32), np.array([[np.nan, 0, 1, 1], [1e30, 0, 2e30, 1], [0, 0, np.inf, 1]], np.float32), s64(0, 0, 0)],
        [np.zeros((3, 1, 1, 1), np.float32)])
    own("RoiAlign", 16, [np.ones((1, 1, 4, 4), np.float32), np.array([[0, 0, 2e9, 4]], np.float32), s64(0)], [np.full((1, 1, 1, 1), 4 / 2e9, np.float32)], tol=(0.3, 0))
    ref("RoiAlign", 22, [m.astype(np.float64), rois.astype(np.float64), at], output_height=2, output_width=2, tol=(1e-6, 1e-7))
    z = f32(5, 3, 1, 1)
    no("RoiAlign", 16, [m, rois, at + 1], z)
    no("RoiAlign", 16, [m, rois, at - 1], z)
    no("RoiAlign", 16, [m, rois, at[:4]], z)
    no("RoiAlign", 16, [m, rois[:, :3], at], z)
    no("RoiAlign", 16, [m, rois, at], z, mode="other")
    no("RoiAlign", 16, [m, rois, at], z, sampling_ratio=100000)
    no("RoiAlign", 16, [m, rois, at], f32(5, 3, 0, 1), output_height=0)
    five = np.concatenate([at[:, None].astype(np.float32), rois[:, :4]], 1)
    ort("MaxRoiPool", 1, [m, five], pooled_shape=[2, 3], spatial_scale=0.8)
    ort("MaxRoiPool", 1, [m, five], pooled_shape=[3, 1])
    no("MaxRoiPool", 1, [m, rois], z, pooled_shape=[1, 1])
    no("MaxRoiPool", 1, [m, five], z)
    no("MaxRoiPool", 1, [m, five + np.float32(1)], z, pooled_shape=[1, 1])

    k = s64(*np.arange(12).reshape(3, 4)[:2, :2].ravel())
    for args, kw in (((f32(1, 1, 2, 2), s64(5, 7, 13, 15).reshape(1, 1, 2, 2)), {"kernel_shape": [2, 2], "strides": [2, 2]}),
                     ((f32(1, 2, 3), s64(0, 3, 5, 6, 8, 11).reshape(1, 2, 3)), {"kernel_shape": [2], "strides": [2]}),
                     ((f32(1, 1, 2, 2, 2), s64(0, 3, 5, 9, 17, 20, 26, 22).reshape(1, 1, 2, 2, 2)), {"kernel_shape": [2, 2, 2]})):
        ort("MaxUnpool", 11, list(args), **kw)
    ref("MaxUnpool", 11, [f32(1, 1, 2, 2), s64(5, 7, 13, 15).reshape(1, 1, 2, 2), s64(1, 1, 5, 6)], kernel_shape=[2, 2], strides=[2, 2])
    p = f32(1, 1, 2, 2)
    no("MaxUnpool", 11, [p, s64(5, 7, 13, 16).reshape(1, 1, 2, 2)], f32(1, 1, 4, 4), kernel_shape=[2, 2], strides=[2, 2])
    no("MaxUnpool", 11, [p, s64(5, 7, 13, -1).reshape(1, 1, 2, 2)], f32(1, 1, 4, 4), kernel_shape=[2, 2], strides=[2, 2])
    no("MaxUnpool", 11, [p, k.reshape(1, 1, 2, 2), s64(1, 1, 3, 4)], f32(1, 1, 3, 4), kernel_shape=[2, 2], strides=[2, 2])
    no("MaxUnpool", 11, [p, k[:2].reshape(1, 1, 1, 2)], f32(1, 1, 4, 4), kernel_shape=[2, 2], strides=[2, 2])

    def deform(x, w, groups, og, n, **kw):
        size = [(x[2 + i] + 2 * kw.get("pads", [0] * 2 * n)[i] - kw.get("dilations", [1] * n)[i] * (w[2 + i] - 1) - 1) // kw.get("strides", [1] * n)[i] + 1
                for i in range(n)]
        taps = int(np.prod(w[2:]))
        return [f32(*x), f32(*w), f32(x[0], og * taps * n, *size, scale=0.8), f32(w[0]), np.abs(f32(x[0], og * taps, *size, scale=0.4))], \
            dict(group=groups, offset_group=og, **kw)

    for args in (((2, 4, 6, 5), (6, 4, 3, 3), 1, 1, 2), ((1, 4, 6, 5), (6, 2, 3, 2), 2, 1, 2), ((1, 4, 6, 5), (6, 4, 3, 3), 1, 2, 2),
                 ((1, 6, 6, 7), (4, 3, 2, 2), 2, 3, 2)):
        ins, kw = deform(*args)
        ref("DeformConv", 19, ins, **kw, **tol)
    ins, kw = deform((1, 3, 7, 9), (20, 3, 3, 3), 1, 1, 2, pads=[1, 1, 1, 1], strides=[2, 1], dilations=[1, 2])
    ref("DeformConv", 19, ins, **kw, **tol)
    ref("DeformConv", 22, ins[:3], **kw, **tol)
    off = ins[2]
    out = np.zeros((1, 20) + off.shape[2:], np.float32)
    no("DeformConv", 19, [ins[0], ins[1], off[:, 1:]], out, **kw)
    no("DeformConv", 19, [ins[0], ins[1], off[:, :, 1:]], out, **kw)
    no("DeformConv", 19, [ins[0], ins[1], off, f32(19)], out, **kw)
    no("DeformConv", 19, [ins[0], f32(20, 2, 3, 3), off], out, **kw)
    no("DeformConv", 19, ins[:4] + [ins[4][:, 1:]], out, **kw)
    no("DeformConv", 19, ins, out, **{**kw, "offset_group": 2})


def select():
    kw = {"free_shape": True}
    x = np.round(f32(3, 4, 2, scale=0.6))
    ort("NonZero", 13, [x], **kw)
    ort("NonZero", 9, [ints(2, 7, lo=0, hi=2).astype(bool)], **kw)
    ort("NonZero", 13, [np.array(3, np.int64)], **kw)
    ort("NonZero", 13, [np.zeros((2, 3), np.int32)], **kw)
    keep = np.array([1, 0, 1, 1], bool)
    ort("Compress", 11, [x, keep], axis=1, **kw)
    ort("Compress", 11, [x, keep[:2]], axis=-3, **kw)
    ort("Compress", 9, [x, ints(24, lo=0, hi=2).astype(bool)], **kw)
    ort("Compress", 9, [ints(3, 4, dtype=np.int8), np.zeros(2, bool)], axis=0, **kw)
    no("Compress", 11, [x, np.ones(5, bool)], x, axis=1)
    no("Compress", 11, [x, keep], x, axis=3)
    no("Compress", 11, [x, keep[None]], x, axis=1)
    for sorted_ in (0, 1):
        ort("Unique", 11, [np.round(f32(40))], 4, sorted=sorted_, **kw)
        ort("Unique", 11, [ints(3, 5, lo=-3, hi=3)], 4, sorted=sorted_, **kw)
        ort("Unique", 11, [ints(6, 2, lo=0, hi=2)], 4, sorted=sorted_, axis=0, **kw)
        ort("Unique", 11, [ints(2, 6, 2, lo=0, hi=2, dtype=np.int64)], 4, sorted=sorted_, axis=-2, **kw)
    ort("Unique", 11, [np.zeros(0, np.float32)], 4, **kw)
    no("Unique", 11, [x], [x, s64(0), s64(0), s64(0)], axis=3)
    centre = np.asarray(rng.uniform(0, 4, (2, 30, 4)), np.float32)
    corner = np.concatenate([centre[:, :, :2], centre[:, :, :2] + centre[:, :, 2:]], 2)
    corner[0, ::3] = corner[0, ::3, [2, 1, 0, 3]].T
    score = np.asarray(rng.uniform(0, 1, (2, 3, 30)), np.float32)
    score[0, 0, :6] = 0.75
    one, half, least = s64(5)[0:1], np.array([0.4], np.float32), np.array([0.3], np.float32)
    ort("NonMaxSuppression", 11, [corner, score, one, half, least], **kw)
    ort("NonMaxSuppression", 11, [centre, score, s64(30), half], center_point_box=1, **kw)
    ort("NonMaxSuppression", 10, [corner, score, one], **kw)
    ort("NonMaxSuppression", 11, [corner, score], **kw)
    ort("NonMaxSuppression", 11, [corner, score, one, half, np.array([2.0], np.float32)], **kw)
    none = np.zeros((1, 3), np.int64)
    no("NonMaxSuppression", 11, [corner, score[:1], one], none)
    no("NonMaxSuppression", 11, [corner[:, :, :3], score, one], none)
    no("NonMaxSuppression", 11, [corner[:, :29], score, one], none)
    no("NonMaxSuppression", 11, [corner, score, one], none, center_point_box=2)


def signal():
    def fft(x, n, axis, inverse=False, half=False):
        v = x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0]
        if half and inverse:
            return np.fft.irfft(v, n, axis=axis)[..., None].astype(x.dtype)
        y = np.fft.rfft(v, n, axis=axis) if half else (np.fft.ifft if inverse else np.fft.fft)(v, n, axis=axis)
        return np.stack([y.real, y.imag], -1).astype(x.dtype)

    for n in (8, 12, 15, 67):
        x, z = f32(2, n, 1), f32(2, n, 2)
        own("DFT", 17, [x], [fft(x, n, 1)], tol=(1e-5, 1e-5))
        own("DFT", 17, [z], [fft(z, n, 1)], tol=(1e-5, 1e-5))
        own("DFT", 20, [z], [fft(z, n, 1, True)], inverse=1, tol=(1e-5, 1e-6))
        own("DFT", 20, [x], [fft(x, n, 1, half=True)], onesided=1, tol=(1e-5, 1e-5))
    z = f32(2, 7, 3, 2)
    own("DFT", 20, [z, np.array(10, np.int64), np.array(-3, np.int64)], [fft(z, 10, 1)], tol=(1e-5, 1e-5))
    own("DFT", 20, [z, np.array(5, np.int32), np.array(1, np.int64)], [fft(z, 5, 1)], tol=(1e-5, 1e-5))
    own("DFT", 19, [z], [fft(z, 3, 2)], axis=2, tol=(1e-5, 1e-5))
    own("DFT", 20, [z, None, np.array(1, np.int64)], [fft(z, 12, 1, True, True)], inverse=1, onesided=1, tol=(1e-5, 1e-6))
    own("DFT", 20, [z, np.array(9, np.int64), np.array(1, np.int64)], [fft(z, 9, 1, True, True)], inverse=1, onesided=1, tol=(1e-5, 1e-6))
    d = f32(1, 30, 2).astype(np.float64)
    own("DFT", 20, [d], [fft(d, 30, 1)], tol=(1e-13, 1e-13))
    no("DFT", 20, [z, None, np.array(3, np.int64)], z)
    no("DFT", 20, [z, np.array(0, np.int64), np.array(1, np.int64)], z)
    no("DFT", 20, [z, np.array(-4, np.int64), np.array(1, np.int64)], z)
    no("DFT", 20, [z, np.array(2 ** 40, np.int64), np.array(1, np.int64)], z)
    no("DFT", 20, [z], f32(2, 7, 2, 2), onesided=1)
    no("DFT", 20, [f32(2, 7, 3)], f32(2, 7, 2))
    x = f32(2, 50, 1)
    win = np.hanning(16).astype(np.float32)
    step, frame = np.array(7, np.int64), np.array(16, np.int64)
    ort("STFT", 17, [x, step, win, frame], tol=(1e-4, 2e-5))
    ort("STFT", 17, [x, step, win], onesided=0, tol=(1e-4, 2e-5))
    ort("STFT", 17, [x, step, None, frame], tol=(1e-4, 2e-5))
    ort("STFT", 17, [x[..., 0], step, win, frame], tol=(1e-4, 2e-5))
    no("STFT", 17, [x, np.array(0, np.int64), win, frame], f32(2, 5, 9, 2))
    no("STFT", 17, [x, step, win, np.array(15, np.int64)], f32(2, 5, 8, 2))
    no("STFT", 17, [x, step, None, np.array(51, np.int64)], f32(2, 1, 26, 2))
    no("STFT", 17, [f32(2, 50, 2), step, win], f32(2, 5, 9, 2))
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        for periodic in (0, 1):
            ort(op, 17, [np.array(11, np.int64)], periodic=periodic, tol=(1e-5, 1e-6))
        ort(op, 17, [np.array(8, np.int32)], output_datatype=11, tol=(1e-6, 1e-7))
        no(op, 17, [np.array(-3, np.int64)], f32(3))
    mel = [np.array(v, np.int64) for v in (8, 64, 16000)] + [np.array(v, np.float32) for v in (20, 7600)]
    ref("MelWeightMatrix", 17, mel, tol=(1e-6, 1e-7))
    ref("MelWeightMatrix", 17, [np.array(20, np.int32), np.array(400, np.int32), np.array(16000, np.int32)] + mel[3:], tol=(1e-6, 1e-7))
    no("MelWeightMatrix", 17, mel[:4] + [np.array(90000, np.float32)], f32(33, 8))
    no("MelWeightMatrix", 17, [mel[0], mel[1], np.array(0, np.int64)] + mel[3:], f32(33, 8))
    no("MelWeightMatrix", 17, [np.array(-8, np.int64)] + mel[1:], f32(33, 8))


def mixed(x):
    x = np.asarray(x, np.uint64)
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xbf58476d1ce4e5b9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94d049bb133111eb)
    return x ^ x >> np.uint64(31)


def draw(seed, n, every=1, shift=0):
    """n uniform numbers, as lib/ops/tensor/op_random.c describes them."""
    with np.errstate(over="ignore"):
        i = np.arange(n, dtype=np.uint64) * np.uint64(every) + np.uint64(shift + 1)
        key = mixed(np.float32(seed).view(np.uint32))
        return (mixed(key + i * np.uint64(0x9e3779b97f4a7c15)) >> np.uint64(11)).astype(np.float64) * 2.0 ** -53


def noise():
    u = draw(3.0, 40)
    z = np.sqrt(-2 * np.log(1 - draw(3.0, 40, 2))) * np.cos(2 * np.pi * draw(3.0, 40, 2, 1))
    assert 0.3 < u.mean() < 0.7 and abs(z.mean()) < 0.5 and 0.6 < z.std() < 1.4
    own("RandomUniform", 1, [], [(-1 + 3 * u).astype(np.float32).reshape(5, 8)], shape=[5, 8], low=-1.0, high=2.0, seed=3.0, tol=(1e-6, 1e-6))
    own("RandomNormal", 22, [], [(2 + 0.5 * z).reshape(5, 8)], shape=[5, 8], mean=2.0, scale=0.5, seed=3.0, dtype=11, tol=(1e-12, 1e-12))
    own("RandomUniformLike", 1, [ints(5, 8)], [u.astype(np.float32).reshape(5, 8)], seed=3.0, dtype=1, tol=(1e-6, 1e-6))
    own("RandomNormalLike", 1, [f32(4, 10).astype(np.float64)], [z.reshape(4, 10)], seed=3.0, tol=(1e-12, 1e-12))
    p = np.asarray(rng.uniform(0, 1, (5, 8)), np.float32)
    own("Bernoulli", 15, [p], [(u.reshape(5, 8) < p).astype(np.int32)], seed=3.0, dtype=6)
    own("Bernoulli", 15, [p.astype(np.float64)], [(u.reshape(5, 8) < p).astype(np.float64)], seed=3.0)
    logits = f32(4, 6).astype(np.float64)
    w = np.exp(logits - logits.max(1, keepdims=True)).cumsum(1)
    want = np.array([[np.searchsorted(w[r], draw(3.0, 40)[r * 10 + k] * w[r, -1], side="right") for k in range(10)] for r in range(4)])
    own("Multinomial", 7, [logits], [want.astype(np.int64)], seed=3.0, sample_size=10, dtype=7)
    no("RandomUniform", 1, [], f32(2))
    no("RandomUniform", 1, [], f32(2), shape=[-2])
    no("RandomNormal", 1, [], f32(2), shape=[2], dtype=60)
    no("Multinomial", 7, [f32(3)], ints(3, 1, dtype=np.int32))
    no("Multinomial", 7, [f32(3, 0)], ints(3, 1, dtype=np.int32))


def loss():
    x, t, w = f32(3, 5, 2), ints(3, 2, lo=0, hi=5), np.abs(f32(5))
    for r in ("none", "sum", "mean"):
        ref("NegativeLogLikelihoodLoss", 13, [x, t], reduction=r, tol=(1e-5, 1e-6))
        ref("NegativeLogLikelihoodLoss", 13, [x, t, w], reduction=r, ignore_index=2, tol=(1e-5, 1e-6))
        ref("SoftmaxCrossEntropyLoss", 13, [x, t, w], 2, reduction=r, tol=(1e-5, 1e-6))
    ref("SoftmaxCrossEntropyLoss", 12, [f32(4, 7), ints(4, lo=0, hi=7, dtype=np.int32)], ignore_index=3, tol=(1e-5, 1e-6))
    ref("SoftmaxCrossEntropyLoss", 13, [x.astype(np.float64), t], 2, tol=(1e-12, 1e-12))
    own("NegativeLogLikelihoodLoss", 13, [x, np.full((3, 2), -1)], [np.float32(np.nan)], ignore_index=-1)
    y = np.float32(0)
    for op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"):
        no(op, 13, [x, t + 5], y)
        no(op, 13, [x, t - 6], y)
        no(op, 13, [x, t[:2]], y)
        no(op, 13, [x, t, w[:4]], y)
        no(op, 13, [x, t], y, reduction="other")
        no(op, 13, [x, t.astype(np.float32)], y)


def ngrams():
    pool = dict(ngram_counts=[0, 4, 10], ngram_indexes=[0, 1, 2, 3, 6, 5, 4, 7], pool_int64s=[2, 3, 5, 4, 5, 6, 7, 8, 6, 7, 5, 6, 7], min_gram_length=1,
                max_gram_length=3)
    x = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8], [5, 6, 7, 8, 6, 7]], np.int64)
    for mode in ("TF", "IDF", "TFIDF"):
        for skips in (0, 2):
            ref("TfIdfVectorizer", 9, [x], mode=mode, max_skip_count=skips, weights=[float(i) / 2 for i in range(8)], **pool)
    ref("TfIdfVectorizer", 9, [x[2].astype(np.int32)], mode="TF", max_skip_count=1, **{**pool, "min_gram_length": 2, "max_gram_length": 2})
    y = f32(3, 8)
    no("TfIdfVectorizer", 9, [x], y, mode="TF", max_skip_count=0, **{**pool, "ngram_counts": [0, 4, 3]})
    no("TfIdfVectorizer", 9, [x], y, mode="TF", max_skip_count=0, **{**pool, "ngram_counts": [0, 4, 30]})
    no("TfIdfVectorizer", 9, [x], y, mode="TF", max_skip_count=0, **{**pool, "ngram_indexes": [0, 1, 2]})
    no("TfIdfVectorizer", 9, [x], y, mode="TF", max_skip_count=0, **{**pool, "ngram_indexes": [0, 1, 2, 3, 6, 5, -4, 7]})
    no("TfIdfVectorizer", 9, [x], y, mode="TF", max_skip_count=-1, **pool)
    no("TfIdfVectorizer", 9, [x], y, mode="other", max_skip_count=1, **pool)
    no("TfIdfVectorizer", 9, [x.astype(np.float32)], y, mode="TF", max_skip_count=1, **pool)


def basic():
    """Products, pools, norms, resizing: what networks are made of is also tested as networks; here are types, ranks and refusals."""
    tol = {"tol": (1e-4, 1e-5)}
    for dims, w, kw in (((2, 4, 9), (6, 4, 3), {}), ((1, 4, 6, 7), (6, 2, 3, 2), {"group": 2, "pads": [1, 0, 1, 1], "strides": [2, 1]}),
                        ((1, 2, 4, 5, 3), (3, 2, 2, 2, 2), {"dilations": [1, 2, 1]}), ((2, 3, 5, 5), (3, 1, 3, 3), {"group": 3, "auto_pad": "SAME_UPPER"})):
        ort("Conv", 11, [f32(*dims), f32(*w), f32(w[0])], **kw, **tol)
        ort("Conv", 11, [f32(*dims), f32(*w)], **kw, **tol)
    for dims, w, kw in (((1, 4, 6, 7), (6, 2, 3, 2), {"group": 2, "pads": [1, 0, 1, 1], "strides": [2, 1]}), ((1, 2, 4, 5, 3), (3, 2, 2, 2, 2), {"dilations": [1, 2, 1]})):
        d = [f32(*dims).astype(np.float64), f32(*w).astype(np.float64), f32(w[0]).astype(np.float64)]
        ref("Conv", 22, d, tol=(1e-6, 1e-6), **kw)
    d = [f32(1, 4, 3, 4).astype(np.float64), f32(4, 3, 2, 3).astype(np.float64)]
    ref("ConvTranspose", 22, d, pads=[0, 1, 0, 1], strides=[2, 1], tol=(1e-6, 1e-6))
    for dims, w, kw in (((2, 4, 5), (4, 3, 3), {"strides": [2]}), ((1, 4, 3, 4), (4, 3, 2, 3), {"group": 2, "pads": [0, 1, 0, 1], "output_padding": [0, 0]}),
                        ((1, 2, 2, 3, 2), (2, 2, 2, 2, 2), {"strides": [2, 1, 2]})):
        ort("ConvTranspose", 11, [f32(*dims), f32(*w), f32(w[1] * kw.get("group", 1))], **kw, **tol)
    no("Conv", 11, [f32(1, 3, 5, 5), f32(2, 4, 3, 3)], f32(1, 2, 3, 3))
    no("Conv", 11, [f32(1, 3, 5, 5), f32(2, 3, 3, 3), f32(3)], f32(1, 2, 3, 3))
    no("Conv", 11, [f32(1, 3, 2, 5), f32(2, 3, 3, 3)], f32(1, 2, 1, 3))
    no("ConvTranspose", 11, [f32(1, 3, 5, 5), f32(2, 3, 3, 3)], f32(1, 3, 7, 7))
    u8, s8 = ints(1, 3, 5, 6, lo=0, hi=256, dtype=np.uint8), ints(2, 3, 2, 3, lo=-128, hi=128, dtype=np.int8)
    own("ConvInteger", 10, [np.array([[[[1, 2], [3, 4]]]], np.uint8), np.array([[[[1, -1], [2, -3]]]], np.int8), np.array(1, np.uint8)],
        [np.array([[[[0 - 1 + 4 - 9]]]], np.int32)])
    no("ConvInteger", 10, [u8, s8, np.array([1, 2], np.uint8)], ints(1, 2, 4, 4, dtype=np.int32))
    for a, b in (((3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((4,), (4, 3)), ((3, 4), (4,)), ((2, 3, 4), (2, 4, 70))):
        ort("MatMul", 13, [f32(*a), f32(*b)], **tol)
    for dt in (np.float64, np.int32, np.int64, np.uint32, np.uint64):
        ort("MatMul", 13, [ints(2, 3, 4, lo=0, dtype=dt), ints(4, 5, lo=0, dtype=dt)])
        x = [ints(3, 4, lo=0, dtype=dt), ints(4, 5, lo=0, dtype=dt), ints(5, lo=0, dtype=dt)]
        own("Gemm", 13, x, [x[0] @ x[1] + x[2]])
        own("Gemm", 13, [x[0].T.copy(), x[1].T.copy(), x[2]], [2 * (x[0] @ x[1]) + 3 * x[2]], transA=1, transB=1, alpha=2.0, beta=3.0)
    no("MatMul", 13, [f32(3, 4), f32(5, 4)], f32(3, 4))
    no("MatMul", 13, [f32(), f32(4)], f32(4))
    ort("Gemm", 13, [f32(3, 4), f32(4, 5), f32(3, 1)], alpha=0.5, beta=2.0, **tol)
    ort("Gemm", 7, [f32(4, 3), f32(5, 4), f32(5)], transA=1, transB=1, **tol)
    ort("Gemm", 11, [f32(3, 4), f32(4, 5)], **tol)
    no("Gemm", 13, [f32(3, 4), f32(5, 4)], f32(3, 4))
    no("Gemm", 13, [f32(3, 4), f32(4, 5), f32(4)], f32(3, 5))
    a, b = ints(2, 3, 4, lo=0, hi=256, dtype=np.uint8), ints(4, 5, lo=-128, hi=128, dtype=np.int8)
    za, zb = np.array(7, np.uint8), ints(5, lo=-9, hi=9, dtype=np.int8)
    own("MatMulInteger", 10, [a, b, za, zb], [((a.astype(np.int32) - 7) @ (b.astype(np.int32) - zb)).astype(np.int32)])
    own("MatMulInteger", 10, [a, b], [(a.astype(np.int32) @ b.astype(np.int32)).astype(np.int32)])
    rows = ints(3, lo=0, hi=256, dtype=np.uint8)
    own("MatMulInteger", 10, [a[0], b, rows], [((a[0].astype(np.int32) - rows[:, None]) @ b.astype(np.int32)).astype(np.int32)])
    many = ints(2, 3, 1, lo=0, hi=256, dtype=np.uint8)
    own("MatMulInteger", 10, [a, b, many, zb], [((a.astype(np.int32) - many) @ (b.astype(np.int32) - zb)).astype(np.int32)])
    no("MatMulInteger", 10, [a, b, rows[:2]], ints(2, 3, 5, dtype=np.int32))
    no("MatMulInteger", 10, [a, b, za, zb[:3]], ints(2, 3, 5, dtype=np.int32))

    x = f32(2, 3, 7, 6)
    for op, v in (("MaxPool", 12), ("AveragePool", 11), ("LpPool", 11)):
        for kw in ({"kernel_shape": [3, 2]}, {"kernel_shape": [2, 3], "strides": [2, 2], "pads": [1, 1, 0, 1]}, {"kernel_shape": [3, 3], "auto_pad": "SAME_LOWER"}):
            ort(op, v, [x], **kw, **tol)
        ort(op, v, [f32(1, 2, 9)], kernel_shape=[4], strides=[3], **tol)
        no(op, v, [f32(2, 3, 2, 6)], f32(2, 3, 1, 4), kernel_shape=[3, 3])
        no(op, v, [x], x, kernel_shape=[3])
        no(op, v, [x], x)
    for op in ("MaxPool", "AveragePool"):
        ort(op, 12, [f32(1, 2, 5, 4, 6)], kernel_shape=[2, 3, 2], strides=[2, 1, 2], ceil_mode=1, **tol)
        ref(op, 22, [x.astype(np.float64)], kernel_shape=[3, 2], pads=[1, 0, 1, 1], strides=[2, 1], tol=(1e-6, 1e-7))
    ref("LpPool", 22, [x.astype(np.float64)], kernel_shape=[3, 2], strides=[2, 1], p=3, tol=(1e-6, 1e-7))
    ort("MaxPool", 12, [ints(1, 2, 5, 6, lo=0, dtype=np.uint8)], kernel_shape=[2, 2], pads=[1, 0, 0, 1])
    ref("MaxPool", 12, [ints(1, 2, 4, 5, 6, dtype=np.int8)], kernel_shape=[2, 3, 2], strides=[1, 2, 1])
    ort("MaxPool", 12, [x], n_out=2, kernel_shape=[2, 2], strides=[2, 2])
    ort("Resize", 19, [ints(1, 2, 3, 4, dtype=np.int32), None, np.array([1, 1, 2, 4], np.float32)], mode="linear", coordinate_transformation_mode="asymmetric")
    for op, want in (("GlobalAveragePool", x.mean((2, 3), keepdims=True)), ("GlobalMaxPool", x.max((2, 3), keepdims=True)),
                     ("GlobalLpPool", np.sqrt((x ** 2).sum((2, 3), keepdims=True)))):
        own(op, 2, [x], [want], **tol)
        d = x.astype(np.float64)
        own(op, 22, [d], [d.mean((2, 3), keepdims=True) if "Av" in op else d.max((2, 3), keepdims=True) if "Max" in op
                          else np.sqrt((d ** 2).sum((2, 3), keepdims=True))], tol=(1e-12, 1e-12))

    c = [f32(3), f32(3), f32(3), np.abs(f32(3))]
    for dt in (np.float32, np.float64):
        t = {"tol": (1e-4, 1e-5) if dt == np.float32 else (1e-6, 1e-7)}
        y, p = x.astype(dt), [v.astype(dt) for v in c]
        ref("BatchNormalization", 15, [y, *p], epsilon=1e-3, **t)
        ref("InstanceNormalization", 6, [y, p[0], p[1]], epsilon=1e-3, **t)
        square = np.pad(y.astype(np.float64) ** 2, ((0, 0), (1, 1), (0, 0), (0, 0)))
        square = square[:, :-2] + square[:, 1:-1] + square[:, 2:]
        own("LRN", 13, [y], [(y / (1.5 + 0.02 / 3 * square) ** 0.6).astype(dt)], size=3, alpha=0.02, beta=0.6, bias=1.5, **t)
        own("LpNormalization", 1, [y], [(y / np.abs(y).sum(1, keepdims=True)).astype(dt)], axis=1, p=1, **t)
        own("LpNormalization", 1, [y], [(y / np.sqrt((y ** 2).sum(-1, keepdims=True))).astype(dt)], axis=-1, **t)
        own("MeanVarianceNormalization", 13, [y], [((y - y.mean((0, 2, 3), keepdims=True)) / y.std((0, 2, 3), keepdims=True)).astype(dt)], axes=[0, 2, 3], **t)
        ref("GroupNormalization", 21, [f32(2, 4, 3, 3).astype(dt), f32(4).astype(dt), f32(4).astype(dt)], num_groups=2, **t)
        ref("RMSNormalization", 23, [y, f32(7, 6).astype(dt)], axis=2, **t)
        ref("Hardmax", 13, [y], axis=2)
        ref("Swish", 24, [y], alpha=1.3, **t)
        ref("LayerNormalization", 17, [y, f32(6).astype(dt), f32(6).astype(dt)], tol=(1e-4, 1e-5))
    no("BatchNormalization", 15, [x, f32(4), *c[1:]], x)
    no("InstanceNormalization", 6, [x, f32(4), f32(3)], x)
    no("LRN", 13, [x], x)
    no("LpNormalization", 1, [x], x, axis=5)
    no("GroupNormalization", 21, [x, c[0], c[1]], x, num_groups=2)
    no("RMSNormalization", 23, [x, f32(5)], x)
    no("Hardmax", 13, [x], x, axis=4)

    s = np.array([1, 1, 1.7, 0.6], np.float32)
    for mode in ("nearest", "linear", "cubic"):
        ort("Resize", 13, [x, None, s], mode=mode, **tol)
        ort("Resize", 13, [x, None, None, s64(2, 3, 4, 9)], mode=mode, coordinate_transformation_mode="align_corners", **tol)
    ref("Resize", 19, [x.astype(np.float64), None, s], mode="linear", tol=(1e-5, 1e-6))
    ref("Resize", 19, [x.astype(np.float64), None, s], mode="cubic", tol=(1e-5, 1e-5))
    ort("Upsample", 9, [x, np.array([1, 1, 2, 3], np.float32)], mode="nearest")
    no("Resize", 13, [x, None, s[:3]], x)
    no("Resize", 13, [x, None, None, s64(2, 3, -4, 9)], x)
    own("IsInf", 20, [np.array([1, np.inf, -np.inf, np.nan], np.float32)], [np.array([False, True, False, False])], detect_negative=0)
    for dt in (np.int32, np.uint8, np.int64, np.uint64):
        empty, info = np.zeros((2, 0, 3), dt), np.iinfo(dt)
        own("ReduceMax", 20, [empty, s64(1)], [np.full((2, 1, 3), info.min, dt)])
        own("ReduceMin", 20, [empty, s64(1)], [np.full((2, 1, 3), info.max, dt)])
    i = s64(1, 0, 2, 2, 1, 3).reshape(3, 2)
    ort("ScatterElements", 16, [f32(3, 4), s64(1, 0, 2, 3, 1, 3).reshape(3, 2), f32(3, 2)], axis=1, reduction="add")
    ort("ScatterElements", 11, [f32(3, 4), i % 3, f32(3, 2)])
    ort("Scatter", 9, [f32(3, 4), i % 3, f32(3, 2)])
    ort("ScatterND", 16, [f32(4, 3), s64(1, 3).reshape(2, 1), f32(2, 3)])
    ort("GatherND", 13, [f32(4, 3), s64(1, 2, 3, 0).reshape(2, 2)])
    no("ScatterElements", 16, [f32(3, 4), i + 9, f32(3, 2)], f32(3, 4), axis=1)
    no("ScatterND", 16, [f32(4, 3), s64(1, 4).reshape(2, 1), f32(2, 3)], f32(4, 3))
    no("GatherND", 13, [f32(4, 3), s64(1, 2, 4, 0).reshape(2, 2)], f32(2))
    q, one = f32(2, 3, 4), np.array(0.05, np.float32)
    for dt in (np.uint8, np.int8, np.uint16, np.int16):
        z = np.array(5, dt)
        ort("QuantizeLinear", 21, [q, one, z])
        ort("DequantizeLinear", 21, [ints(2, 3, 4, lo=0, hi=99, dtype=dt), one, z])
    ort("DynamicQuantizeLinear", 11, [q], 3)
    no("QuantizeLinear", 13, [q, f32(2), np.zeros(2, np.uint8)], ints(2, 3, 4, lo=0, dtype=np.uint8))
    no("DequantizeLinear", 13, [ints(2, 3, 4, lo=0, dtype=np.uint8), one, np.array(0, np.int8)], q)


def trees():
    """ai.onnx.ml by its text: TreeEnsemble (ONNX Runtime takes the transforms SOFTMAX and LOGISTIC for each other), Binarizer, Scaler and others."""
    ml = {"domain": "ai.onnx.ml"}
    t = lambda v, kind: onnx.numpy_helper.from_array(np.array(v, kind))  # noqa: E731
    # tree 0: x0 <= 0.5 ? (x1 > -1 ? leaf 0 : leaf 1) : leaf 2; tree 1: x1 in {1, 2.5} ? leaf 3 : leaf 4
    forest = {"nodes_modes": t([0, 3, 6], np.uint8), "nodes_splits": t([0.5, -1, 0], np.float32), "nodes_featureids": [0, 1, 1],
              "nodes_trueleafs": [0, 1, 1], "nodes_truenodeids": [1, 0, 3], "nodes_falseleafs": [1, 1, 1], "nodes_falsenodeids": [2, 1, 4],
              "leaf_weights": t([1.5, -2, 0.25, 4, -1], np.float32), "leaf_targetids": [0, 1, 2, 1, 0], "tree_roots": [0, 2], "n_targets": 3,
              "membership_values": t([1, 2.5, np.nan], np.float32)}
    x = np.array([[0, 1], [0, -3], [0.5, 2.5], [2, 0], [np.nan, np.nan]], np.float32)
    sums = np.array([[1.5, 4, 0], [-1, -2, 0], [1.5, 4, 0], [-1, 0, 0.25], [-1, 0, 0.25]])
    e = np.exp(sums)
    z = np.where(sums == 0, 0, e)
    for transform, want in ((0, sums), (1, e / e.sum(1, keepdims=True)), (2, 1 / (1 + 1 / e)), (3, z / z.sum(1, keepdims=True))):
        own("TreeEnsemble", 5, [x], [want.astype(np.float32)], tol=(1e-6, 1e-7), post_transform=transform, **forest, **ml)
        own("TreeEnsemble", 5, [x.astype(np.float64)], [want], tol=(1e-14, 1e-15), post_transform=transform, **forest, **ml)
    own("TreeEnsemble", 5, [x], [(sums / 2).astype(np.float32)], aggregate_function=0, **forest, **ml)
    nan_true = {**forest, "nodes_missing_value_tracks_true": [1, 0, 1]}
    own("TreeEnsemble", 5, [x], [np.concatenate([sums[:4], [[0, 2, 0]]]).astype(np.float32)], **nan_true, **ml)
    y = np.zeros((5, 3), np.float32)
    for bad in ({"nodes_truenodeids": [0, 0, 3]}, {"nodes_falsenodeids": [5, 1, 4]}, {"nodes_truenodeids": [3, 0, 3]}, {"nodes_featureids": [0, 2, 1]},
                {"nodes_featureids": [0, -1, 1]}, {"tree_roots": [0, 3]}, {"leaf_targetids": [0, 1, 3, 1, 0]}, {"leaf_targetids": [0, 1, 2]},
                {"nodes_modes": t([0, 3, 7], np.uint8)}, {"nodes_splits": t([0.5, -1], np.float32)}, {"aggregate_function": 4},
                {"post_transform": 4}, {"membership_values": t([], np.float32)}, {"nodes_missing_value_tracks_true": [1]}):
        no("TreeEnsemble", 5, [x], y, **{**forest, **bad}, **ml)
    no("TreeEnsemble", 5, [x[0]], y, **forest, **ml)
    no("TreeEnsemble", 5, [ints(5, 2)], y.astype(np.int64), **forest, **ml)

    for dt in (np.float32, np.float64, np.int32, np.int64):
        v = ints(3, 4, lo=-4, hi=5, dtype=dt)
        own("Binarizer", 1, [v], [(v > 1.5).astype(dt)], threshold=1.5, **ml)
        at = s64(3, 0, 0)
        own("ArrayFeatureExtractor", 1, [v, at], [v[:, at]], **ml)
        own("ArrayFeatureExtractor", 1, [v[0], at], [v[:1, at]], **ml)
    own("Binarizer", 1, [np.array([np.nan, 0, 1e-9], np.float32)], [np.array([0, 0, 1], np.float32)], **ml)
    no("ArrayFeatureExtractor", 1, [f32(2, 3), s64(0, 3)], f32(2, 2), **ml)
    no("ArrayFeatureExtractor", 1, [f32(2, 3), s64(-1)], f32(2, 1), **ml)
    no("ArrayFeatureExtractor", 1, [f32(2, 3), ints(1, dtype=np.int32)], f32(2, 1), **ml)
    no("ArrayFeatureExtractor", 1, [np.array(1, np.float32), s64(0)], f32(1, 1), **ml)

    each = {"offset": [1.5, -2.0, 0.0, 0.25], "scale": [2.0, -0.5, 4.0, 0.0]}
    for dt in (np.float32, np.float64, np.int32, np.int64):
        v = ints(3, 4, lo=-4, hi=5, dtype=dt)
        real = v.astype(np.float64)
        own("Scaler", 1, [v], [((real - each["offset"]) * each["scale"]).astype(np.float32)], **each, **ml)
        own("Scaler", 1, [v[0]], [((real[0] - 0.5) * 3).astype(np.float32)], offset=[0.5], scale=[3.0], **ml)
        for norm, by in (("MAX", real.max(1)), ("L1", np.abs(real).sum(1)), ("L2", np.sqrt((real * real).sum(1)))):
            by[by == 0] = 1
            own("Normalizer", 1, [v], [(real / by[:, None]).astype(np.float32)], tol=(1e-6, 1e-7), norm=norm, **ml)
    own("Normalizer", 1, [np.zeros((1, 2), np.float32)], [np.zeros((1, 2), np.float32)], norm="L2", **ml)
    gaps = np.array([[np.nan, 1, 0], [2, np.nan, np.nan]], np.float32)
    own("Imputer", 1, [gaps], [np.array([[5, 1, 0], [2, 6, 7]], np.float32)], imputed_value_floats=[5.0, 6.0, 7.0], replaced_value_float=float("nan"), **ml)
    own("Imputer", 1, [gaps], [np.array([[np.nan, 1, 9], [2, np.nan, np.nan]], np.float32)], imputed_value_floats=[9.0], replaced_value_float=0.0, **ml)
    y = f32(2, 3)
    for bad in ({"offset": [1.0]}, {"offset": [1.0, 2.0], "scale": [1.0]}, {"offset": [1.0], "scale": [1.0] * 4}):
        no("Scaler", 1, [y], y, **bad, **ml)
    no("Scaler", 1, [np.array(1, np.float32)], np.array(1, np.float32), offset=[1.0], scale=[1.0], **ml)
    no("Normalizer", 1, [y], y, norm="L3", **ml)
    no("Imputer", 1, [y], y, **ml)
    no("Imputer", 1, [y], y, imputed_value_floats=[1.0, 2.0], **ml)
    table()
    old_trees()


def table():
    """What stands around features: FeatureVectorizer, LinearRegressor, and ZipMap, whose maps are held as the table of their values."""
    ml = {"domain": "ai.onnx.ml"}
    a, b = f32(3, 4), ints(3, 2)
    own("FeatureVectorizer", 1, [a, b], [np.concatenate([a, b.astype(np.float32)], 1)], inputdimensions=[4, 2], **ml)
    own("FeatureVectorizer", 1, [b, a], [np.concatenate([b, np.zeros((3, 1)), a[:, :2]], 1).astype(np.float32)], inputdimensions=[3, 2], **ml)
    own("FeatureVectorizer", 1, [a[0]], [a[:1]], inputdimensions=[4], **ml)
    no("FeatureVectorizer", 1, [a, b[:2]], a, inputdimensions=[4, 2], **ml)
    no("FeatureVectorizer", 1, [a], a, inputdimensions=[4, 2], **ml)
    w, t = f32(2, 4), f32(2)
    sums = a.astype(np.float64) @ w.astype(np.float64).T + t
    grown = np.exp(sums - sums.max(-1, keepdims=True))
    for post, want in (("NONE", sums), ("LOGISTIC", 1 / (1 + np.exp(-sums))), ("SOFTMAX", grown / grown.sum(-1, keepdims=True))):
        own("LinearRegressor", 1, [a], [want.astype(np.float32)], tol=(1e-6, 1e-7), targets=2, coefficients=w.ravel().tolist(), intercepts=t.tolist(), post_transform=post, **ml)
    own("LinearRegressor", 1, [b], [(b @ np.array([[0.5], [2.0]])).astype(np.float32)], coefficients=[0.5, 2.0], **ml)
    own("LinearRegressor", 1, [b[0]], [(b[:1] @ np.array([[0.5], [2.0]])).astype(np.float32)], coefficients=[0.5, 2.0], **ml)
    no("LinearRegressor", 1, [a], a, coefficients=[1.0] * 3, **ml)
    no("LinearRegressor", 1, [a], a, coefficients=[1.0] * 4, intercepts=[1.0] * 2, **ml)
    no("LinearRegressor", 1, [a], a, coefficients=[1.0] * 4, post_transform="CUBE", **ml)
    v, c = f32(3, 4), f32(3)
    svm = {"support_vectors": v.ravel().tolist(), "n_supports": 3, "coefficients": c.tolist(), "rho": [0.25], "kernel_params": [0.5, 1.0, 3.0], **ml}
    dots, far = a.astype(np.float64) @ v.T.astype(np.float64), ((a[:, None].astype(np.float64) - v) ** 2).sum(-1)
    for kind, k in (("LINEAR", dots), ("POLY", (dots / 2 + 1) ** 3), ("RBF", np.exp(-far / 2)), ("SIGMOID", np.tanh(dots / 2 + 1))):
        want = k @ c.astype(np.float64)[:, None] + 0.25
        own("SVMRegressor", 1, [a], [want.astype(np.float32)], tol=(1e-6, 1e-6), kernel_type=kind, **svm)
        own("SVMRegressor", 1, [a], [np.where(want > 0, 1, -1).astype(np.float32)], kernel_type=kind, one_class=1, **svm)
    own("SVMRegressor", 1, [b], [(b @ np.array([[0.5], [2.0]]) - 1).astype(np.float32)], coefficients=[0.5, 2.0], rho=[-1.0], **ml)
    for bad in ({"coefficients": [1.0] * 4}, {"rho": [1.0] * 2}, {"kernel_params": [0.5]}, {"kernel_type": "CUBE"}, {"n_supports": 4}, {"post_transform": "LOGISTIC"},
                {"kernel_type": "POLY", "kernel_params": [0.5, 1.0, 2.5]}):
        no("SVMRegressor", 1, [a], a[:, :1], **{"kernel_type": "RBF", **svm, **bad})
    own("ZipMap", 1, [a], [a], classlabels_int64s=[3, 1, 4, 1], **ml)
    own("ZipMap", 1, [a[0]], [a[0]], classlabels_int64s=[3, 1, 4, 1], **ml)
    no("ZipMap", 1, [a], a, classlabels_int64s=[3, 1, 4], **ml)
    no("ZipMap", 1, [a], a, **ml)


def old_trees():
    """Two trees by their node lists; a value that is missing goes to the right in the first, to the left in the second."""
    ml = {"domain": "ai.onnx.ml"}
    forest = dict(nodes_treeids=[0, 0, 0, 1, 1, 1], nodes_nodeids=[7, 2, 5, 0, 1, 2], nodes_featureids=[0, 0, 0, 1, 0, 0], nodes_values=[0.5, 0.0, 0.0, -1.0, 0.0, 0.0],
                  nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"], nodes_truenodeids=[2, 0, 0, 1, 0, 0], nodes_falsenodeids=[5, 0, 0, 2, 0, 0],
                  nodes_missing_value_tracks_true=[0, 0, 0, 1, 0, 0], target_treeids=[0, 0, 0, 1, 1], target_nodeids=[2, 5, 5, 1, 2], target_ids=[0, 0, 1, 0, 1],
                  target_weights=[1.0, 2.0, 4.0, 8.0, 16.0], n_targets=2)
    x = np.array([[0.5, -1.0], [0.6, 0.0], [np.nan, np.nan], [-9.0, np.inf]], np.float32)
    sums = np.array([[1, 16], [10, 4], [10, 4], [9, 0]], np.float64)
    own("TreeEnsembleRegressor", 1, [x], [sums.astype(np.float32)], **forest, **ml)
    own("TreeEnsembleRegressor", 3, [x.astype(np.float64)], [(sums / 2 + [0.5, -3]).astype(np.float32)], aggregate_function="AVERAGE", base_values=[0.5, -3.0], **forest, **ml)
    own("TreeEnsembleRegressor", 1, [x], [np.array([[1, 16], [2, 4], [2, 4], [1, 0]], np.float32)], aggregate_function="MIN", **forest, **ml)
    own("TreeEnsembleRegressor", 1, [x], [np.array([[1, 16], [8, 4], [8, 4], [8, 0]], np.float32)], aggregate_function="MAX", **forest, **ml)
    for bad in ({"nodes_truenodeids": [2, 0, 0, 9, 0, 0]}, {"nodes_featureids": [0, 0, 0, 2, 0, 0]}, {"target_ids": [0, 0, 2, 0, 1]}, {"target_nodeids": [2, 5, 6, 1, 2]},
                {"nodes_modes": ["BRANCH_LEQ"] * 6}, {"nodes_values": [0.5]}, {"nodes_nodeids": [7, 2, 2, 0, 1, 2]}, {"base_values": [1.0]}):
        no("TreeEnsembleRegressor", 1, [x], sums.astype(np.float32), **{**forest, **bad}, **ml)


def cell(op, gates, h, c, p, lbr, clip, forget):
    """One step of every sequence: the new state. gates: x W + b and h R + b apart, each [B, gates * H]."""
    sig = lambda v: 1 / (1 + np.exp(-np.clip(v, -clip, clip)))  # noqa: E731
    tanh = lambda v: np.tanh(np.clip(v, -clip, clip))  # noqa: E731
    x, r, product = gates
    H = h.shape[1]
    part = lambda v, k: v[:, k * H:(k + 1) * H]  # noqa: E731
    if op == "RNN":
        return tanh(x + r), c
    if op == "GRU":
        z, reset = sig(part(x, 0) + part(r, 0)), sig(part(x, 1) + part(r, 1))
        own = reset * part(r, 2) if lbr else product(reset * h)
        return (1 - z) * tanh(part(x, 2) + own) + z * h, c
    s = x + r
    i = sig(part(s, 0) + p[0] * c)
    f = 1 - i if forget else sig(part(s, 2) + p[2] * c)
    c = f * c + i * tanh(part(s, 3))
    return sig(part(s, 1) + p[1] * c) * np.tanh(c), c


def doubles_of(op, x, w, r, b, lens, h0, c0, p, direction, lbr=0, clip=np.inf, input_forget=0):
    """RNN, GRU and LSTM of float64, by steps."""
    (T, B, _), (D, n, _), H = x.shape, w.shape, r.shape[2]
    lens = np.full(B, T) if lens is None else lens
    y, hs, cs = np.zeros((T, D, B, H)), np.zeros((D, B, H)), np.zeros((D, B, H))
    for d in range(D):
        bias = b[d] if b is not None else np.zeros(2 * n)
        peep = np.split(p[d], 3) if p is not None else np.zeros((3, H))
        for s in range(B):
            h, c = (a[d, s][None] if a is not None else np.zeros((1, H)) for a in (h0, c0))
            for t in reversed(range(lens[s])) if direction == "reverse" or d == 1 else range(lens[s]):
                product = lambda v: v @ r[d, 2 * H:].T + bias[n + 2 * H:]  # noqa: E731
                h, c = cell(op, (x[t, s] @ w[d].T + bias[:n] + np.zeros((1, n)), h @ r[d].T + bias[n:], product), h, c, peep, lbr, clip, input_forget)
                y[t, d, s] = h
            hs[d, s], cs[d, s] = h, c
    return [y, hs, cs][:3 if op == "LSTM" else 2]


def recurrent64():
    """Recurrent operators of float64, for which ONNX Runtime has no kernel: NumPy computes, and float32 checks that."""
    T, B, I, H = 4, 2, 3, 4
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for direction in ("forward", "reverse", "bidirectional"):
            D = 2 if direction == "bidirectional" else 1
            variants = [{}, {"lens": np.array([4, 2], np.int32), "state": True}, {"clip": 0.6}, {"bias": False}]
            variants += [{"linear_before_reset": 1, "state": True}] * (op == "GRU") + [{"peephole": True}, {"input_forget": 1}] * (op == "LSTM")
            for v in variants:
                a = [f32(T, B, I), f32(D, gates * H, I, scale=0.5), f32(D, gates * H, H, scale=0.5), f32(D, 2 * gates * H, scale=0.5) if v.get("bias", True) else None,
                     v.get("lens"), f32(D, B, H) if v.get("state") else None]
                a += [f32(D, B, H) if v.get("state") else None, f32(D, 3 * H) if v.get("peephole") else None] if op == "LSTM" else []
                kw = {"hidden_size": H, "direction": direction}
                kw |= {k: v[k] for k in ("clip", "linear_before_reset", "input_forget") if k in v}
                wide = [t.astype(np.float64) if t is not None and t.dtype == np.float32 else t for t in a]
                state = wide + [None] * (8 - len(wide))
                want = doubles_of(op, *state, direction, v.get("linear_before_reset", 0), np.float32(v.get("clip", np.inf)), v.get("input_forget", 0))
                node = node_of(op, a, len(want), **kw)
                for got, w in zip(cases.session([node], a, len(want), 14).run(None, {f"x{i}": t for i, t in enumerate(a) if t is not None}), want):
                    assert np.abs(got - w).max() < 1e-5, (op, direction, v)
                own(op, 22, wide, want, tol=(1e-13, 1e-14), **kw)
    x, w, r = f32(T, B, I).astype(np.float64), f32(1, 4 * H, I).astype(np.float64), f32(1, 4 * H, H).astype(np.float64)
    y = np.zeros((T, 1, B, H))
    no("LSTM", 22, [x, w.astype(np.float32), r], y, hidden_size=H)
    no("LSTM", 22, [x, w, r.astype(np.float32)], y, hidden_size=H)
    no("LSTM", 22, [x, w, r, f32(1, 8 * H)], y, hidden_size=H)
    no("LSTM", 22, [x, w, r, None, np.array([1, 5], np.int32)], y, hidden_size=H)
    first = [np.ascontiguousarray(x.swapaxes(0, 1)), w, r]
    want = doubles_of("LSTM", x, w, r, None, None, None, None, None, "forward")
    own("LSTM", 22, first, [want[0].transpose(2, 0, 1, 3)] + [v.swapaxes(0, 1) for v in want[1:]], tol=(1e-13, 1e-14), hidden_size=H, layout=1)
    own("RNN", 22, [x, w[:, :H], r[:, :H]], doubles_of("RNN", x, w[:, :H] , r[:, :H], None, None, None, None, None, "forward")[:1],
        tol=(1e-13, 1e-14), hidden_size=H, activations=["Tanh"])


def where8():
    """QLinearWhere."""
    for dt, lo, hi, zeros in ((np.uint8, 0, 256, (3, 120, 77)), (np.int8, -128, 128, (-3, 60, 0))):
        z = [np.array(v, dt) for v in zeros]
        s = [np.array(v, np.float32) for v in (0.03, 0.05, 0.04)]
        c, x, y = ints(3, 1, lo=0, hi=2, dtype=np.bool_), ints(2, 3, 5, lo=lo, hi=hi, dtype=dt), ints(5, lo=lo, hi=hi, dtype=dt)
        ort("QLinearWhere", 1, [c, x, s[0], z[0], y, s[1], z[1], s[2], z[2]], **MS)
        ort("QLinearWhere", 1, [c, x, s[2], z[2], y, s[1], z[1], s[2], z[2]], **MS)
        out = np.zeros((2, 3, 5), dt)
        no("QLinearWhere", 1, [c, x, s[0], z[0], y, s[1], np.array(0, np.int16), s[2], z[2]], out, **MS)
        no("QLinearWhere", 1, [c, x, np.array(0, np.float32), z[0], y, s[1], z[1], s[2], z[2]], out, **MS)
        no("QLinearWhere", 1, [c, x, f32(2), z[0], y, s[1], z[1], s[2], z[2]], out, **MS)
        no("QLinearWhere", 1, [c.astype(np.uint8), x, s[0], z[0], y, s[1], z[1], s[2], z[2]], out, **MS)
        no("QLinearWhere", 1, [c, x, s[0], z[0], y[:3], s[1], z[1], s[2], z[2]], out, **MS)


def softmax8():
    """Softmax on codes along any axis, also of the flattened form before opset 13; a last bit of float32 may move a code by one."""
    for dt, lo, hi, zero, least in ((np.uint8, 0, 256, 120, 0), (np.int8, -128, 128, -3, -128)):
        for opset, axis in ((13, 1), (13, 0), (13, -2), (13, 3), (11, 1), (11, 2), (11, 3)):
            x = ints(2, 5, 3, 4, lo=lo, hi=hi, dtype=dt)
            cases.quantized(family, "Softmax", opset, [x], [(0.04, zero)], (1 / 256, least), dtype=dt, tol=1, axis=axis)


def heads8():
    """Attention on integers, as ONNX Runtime's quantizer writes it: QAttention."""
    B, S, N, D, K = 2, 4, 3, 8, 10
    W = N * D
    tol = {"tol": (1e-4, 1e-5), **MS}
    s32 = lambda *v: np.array(v, np.int32)  # noqa: E731
    scale, one, each = np.array(0.02, np.float32), np.array(0.003, np.float32), np.abs(f32(3 * W, scale=0.002)) + np.float32(0.001)
    x = {np.uint8: ints(B, S, K, lo=0, hi=256, dtype=np.uint8), np.int8: ints(B, S, K, lo=-128, hi=128, dtype=np.int8)}
    # Weights of half the range: what ONNX Runtime's kernels for AVX2 add in 16 bits does not saturate.
    w = {np.uint8: ints(K, 3 * W, lo=64, hi=192, dtype=np.uint8), np.int8: ints(K, 3 * W, lo=-64, hi=64, dtype=np.int8)}
    b, z = f32(3 * W), {np.uint8: 128, np.int8: -3}
    zeros = lambda kx, kw: [np.array(z[kx], kx), np.array(z[kw], kw)]  # noqa: E731
    for kw in w:
        ort("QAttention", 1, [x[np.uint8], w[kw], b, scale, one, None, *zeros(np.uint8, kw)], num_heads=N, **tol)
    real = [(a[np.int8].astype(np.float32) - z[np.int8]) * k for a, k in ((x, scale), (w, one))] + [b]  # it takes no int8 there
    want = cases.session([node_of("Attention", real, 1, "com.microsoft", num_heads=N)], real, 1, 1).run(None, {f"x{i}": a for i, a in enumerate(real)})
    own("QAttention", 1, [x[np.int8], w[np.int8], b, scale, one, None, *zeros(np.int8, np.int8)], want, tol=(1e-4, 1e-5), num_heads=N, **MS)
    u, s, zu = x[np.uint8], w[np.int8], zeros(np.uint8, np.int8)
    ort("QAttention", 1, [u, s, b, scale, one], num_heads=N, **tol)
    ort("QAttention", 1, [u, s, b, scale, each, None, zu[0], np.zeros(3 * W, np.int8)], num_heads=N, **tol)
    ort("QAttention", 1, [u, s, b, scale, each, s32(3, 4), zu[0]], num_heads=N, unidirectional=1, **tol)
    ort("QAttention", 1, [u, s, b, scale, one, ints(B, S, lo=0, hi=2, dtype=np.int32), *zu], num_heads=N, mask_filter_value=-50.0, **tol)
    ort("QAttention", 1, [u, s, b, scale, one, None, *zu, f32(2, B, N, 3, D)], 2, num_heads=N, unidirectional=1, **tol)
    y, present = f32(B, S, W), f32(2, B, N, 7, D)
    no("QAttention", 1, [u, s, b[1:], scale, one], y, num_heads=N, **MS)
    no("QAttention", 1, [u, s[1:], b, scale, one], y, num_heads=N, **MS)
    no("QAttention", 1, [u, s, b, scale, each[1:]], y, num_heads=N, **MS)
    no("QAttention", 1, [u, s, b, f32(2), one], y, num_heads=N, **MS)
    no("QAttention", 1, [u, s, b, scale, one, None, np.array(3, np.int8)], y, num_heads=N, **MS)
    no("QAttention", 1, [u, s, b, scale, one, None, zu[0], np.zeros(5, np.int8)], y, num_heads=N, **MS)
    no("QAttention", 1, [u, s, b, scale, one, None, *zu, f32(2, B, N, 3, D + 1)], [y, present], num_heads=N, **MS)
    no("QAttention", 1, [u, s, b, scale, one], y, num_heads=7, **MS)


FAMILIES = [softmax8, heads8, basic, noise, loss, ngrams, signal, select, vision, attention, heads, einsum, math, bits, arrange, matrix, recurrent64, trees, where8]


if __name__ == "__main__":
    for f in FAMILIES:
        if sys.argv[1:] and f.__name__ not in sys.argv[1:]:
            continue
        family = f.__name__
        rng = np.random.default_rng(zlib.crc32(family.encode()))
        f()
    for f in cases.files.values():
        f.close()
    print(cases.counts)
