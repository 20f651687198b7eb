#!/usr/bin/env python3
"""Writes testdata/ops/nbits.txt as make_op_cases.py does: com.microsoft.MatMulNBits. ONNX Runtime computed the outputs (needs onnx,
onnxruntime, numpy), but where it ignores an input (integer zero points beside g_idx): those come from the definition, in float64."""
import numpy as np
from onnx import helper

import make_op_cases as cases
from make_recurrent_cases import MS, contrib

rng = np.random.default_rng(20261121)


def packed(codes, bits):
    """Codes along the last axis in bytes, the first in the lowest bits."""
    per = 8 // bits
    pad = -codes.shape[-1] % per
    codes = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, pad)]).astype(np.uint32)
    return (codes.reshape(*codes.shape[:-1], -1, per) << np.arange(per) * bits).sum(-1).astype(np.uint8)


def in_bytes(a, block):
    """What quantizing by block leaves of activations: 127 steps to a block's largest magnitude, in float32."""
    k = a.shape[-1]
    x = np.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, -k % block)]).reshape(*a.shape[:-1], -1, block)
    most = np.abs(x).max(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(most > 0, np.rint(x * (np.float32(127) / most)), 0)
    return (steps.astype(np.float64) * (most / np.float32(127))).reshape(*a.shape[:-1], -1)[..., :k]


def inputs(a, n, bits, block, zero, bias, groups, in_blocks=False):
    """The node's inputs, and the product by its definition; in_blocks: of activations as in_bytes leaves them."""
    k = a.shape[-1]
    blocks = -(-k // block)
    q = rng.integers(0, 2**bits, (n, blocks, block))
    scale = np.asarray(rng.uniform(0.02, 0.1, (n, blocks)) * rng.choice([-1, 1], (n, blocks)), np.float32)
    z = {None: np.full((n, blocks), 2 ** (bits - 1)), "u8": rng.integers(0, 2**bits, (n, blocks)),
         "f32": np.asarray(rng.uniform(0, 2**bits, (n, blocks)), np.float32)}[zero]
    g = rng.integers(0, blocks, k).astype(np.int32) if groups else np.arange(k) // block
    b = np.asarray(rng.standard_normal(n), np.float32) if bias else None
    w = (q.reshape(n, -1)[:, :k] - z[:, g].astype(np.float64)) * scale[:, g]
    y = (in_bytes(a, block) if in_blocks else a.astype(np.float64)) @ w.T + (b if bias else 0)
    x = [a, packed(q, bits), scale, None if zero is None else z if zero == "f32" else packed(z, bits), g if groups else None, b]
    while x[-1] is None:
        x.pop()
    return x, y.astype(np.float32)


def product(shape, n, bits, block, zero=None, bias=False, groups=False, by_definition=False, **attrs):
    a = np.asarray(rng.standard_normal(shape), np.float32)
    x, y = inputs(a, n, bits, block, zero, bias, groups, attrs.get("accuracy_level") == 4 and zero != "f32" and not groups)
    attrs.update(K=shape[-1], N=n, bits=bits, block_size=block)
    if by_definition:
        node = helper.make_node("MatMulNBits", [f"x{i}" if v is not None else "" for i, v in enumerate(x)], ["y0"], domain=MS, **attrs)
        cases.emit("nbits", node, 1, x, [y], tol=(1e-4, 1e-5))
    else:
        contrib("MatMulNBits", x, family="nbits", tol=(1e-4, 1e-5), **attrs)


def refused():
    def no(x, y, **attrs):
        node = helper.make_node("MatMulNBits", [f"x{i}" if v is not None else "" for i, v in enumerate(x)], ["y0"], domain=MS, **attrs)
        cases.emit("nbits", node, 1, x, [y], refuses=True)

    a, kw = np.ones((2, 40), np.float32), {"K": 40, "N": 3, "bits": 4, "block_size": 16}
    x, y = inputs(a, 3, 4, 16, "u8", True, True)
    for slot, bad in ((0, a[:, :39]), (1, x[1][:, :, :7]), (1, x[1][:2]), (2, x[2][:, :2]), (3, x[3][:, :1]), (4, x[4][:39]),
                      (4, np.full(40, 3, np.int32)), (4, np.full(40, -1, np.int32)), (5, x[5][:2])):
        no([*x[:slot], bad, *x[slot + 1:]], y, **kw)
    for odd in ({"K": 0}, {"N": -1}, {"bits": 3}, {"bits": 5}, {"block_size": 8}, {"block_size": 512}, {"block_size": 0},
                {"K": 1 << 40, "N": 1 << 40}):
        no(x, y, **{**kw, **odd})


if __name__ == "__main__":
    for bits in (2, 4, 8):
        for block in (16, 32, 64, 128, 256):
            for zero in (None, "u8") if bits == 8 else (None, "u8", "f32"):
                product((2, 40 if block < 64 else block + 9), 3, bits, block, zero, bias=block % 64 == 0)
    product((1, 70), 37, 4, 32, "u8", bias=True)
    product((1, 33), 35, 8, 16, "u8")
    product((2, 3, 40), 5, 4, 16, "u8", bias=True)
    product((7, 64), 9, 4, 32, None, groups=True)
    product((2, 50), 4, 4, 16, "f32", groups=True, bias=True)
    product((2, 50), 4, 4, 16, "u8", groups=True, by_definition=True)
    product((2, 50), 4, 8, 16, "u8", groups=True, bias=True, by_definition=True)
    product((2, 50), 4, 8, 32, "f32", by_definition=True)
    product((3, 64), 6, 4, 32, "u8", by_definition=True, accuracy_level=4)
    product((1, 300), 40, 4, 32, None, bias=True, by_definition=True, accuracy_level=4)
    product((2, 5, 70), 7, 8, 16, "u8", bias=True, by_definition=True, accuracy_level=4)
    product((2, 130), 5, 2, 64, None, by_definition=True, accuracy_level=4)
    product((2, 50), 4, 4, 16, "f32", by_definition=True, accuracy_level=4)
    product((2, 50), 4, 4, 16, "u8", groups=True, by_definition=True, accuracy_level=4)
    refused()
    for f in cases.files.values():
        f.close()
    print(cases.counts)
