#!/usr/bin/env python3
"""Makes testdata/tokens/: two small language models, trained on a made language, and its stories as token ids.

    make_token_models.py [--out FOLDER] [--seed N] [--steps N]

llama.onnx has RMS normalization, gated feed-forward layers and a head of its own; gpt.onnx layer normalization, ReLU, positions as an input, and the
embedding as its head. calib.npz has stories of those they were trained on, eval.npz others, of which some are padded. Other seeds make other models, to see
whether what holds for one is luck.

Needs numpy and onnx; takes two minutes on one core.
"""
import os
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"    # one order of additions

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
import numpy as np
import onnx

from pylib import tokenmodel, tokennet

LENGTH, TRAIN, CALIB, EVAL, PADDED = 64, 4000, 256, 400, 60


def padded(rng, ids):
    """The same with the ends of the last PADDED stories cut off, and the mask that says so."""
    ids, mask = ids.copy(), np.ones_like(ids)
    for i in range(len(ids) - PADDED, len(ids)):
        end = rng.integers(LENGTH // 4, LENGTH)
        ids[i, end:] = mask[i, end:] = 0
    return ids, mask


def save(path, ids, mask):
    positions = np.broadcast_to(np.arange(LENGTH, dtype=np.int64), ids.shape)
    np.savez_compressed(path, input_ids=ids, attention_mask=mask, position_ids=positions)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parents[2] / "testdata" / "tokens")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1500)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    language = tokennet.Language(1)
    train = language.stories(2 + args.seed, TRAIN, LENGTH)
    ids, mask = padded(np.random.default_rng(5), language.stories(977, EVAL, LENGTH))
    for kind, inner in ((tokennet.Llama, 112), (tokennet.Gpt, 192)):
        name = kind.__name__.lower()
        net = kind(args.seed, language.words, LENGTH, inner=inner)
        net.train(train, args.steps, seed=args.seed, say=lambda step, loss, name=name: print(f"{name}: step {step}, loss {loss:.3f}", flush=True))
        onnx.save(tokenmodel.Writer(net).model(), args.out / f"{name}.onnx")
    save(args.out / "calib.npz", train[:CALIB], np.ones_like(train[:CALIB]))
    save(args.out / "eval.npz", ids, mask)


if __name__ == "__main__":
    main()
