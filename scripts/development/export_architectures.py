#!/usr/bin/env python3
"""Exports architectures with random weights from torch, torchvision, timm, transformers, Keras and scikit-learn, as far as these are installed.

    export_architectures.py FOLDER [NAME...] [--seed N]

FOLDER gets NAME.onnx and its samples NAME.npz, as `tests/checks/check_architectures.py --models FOLDER` reads them. Needs no network: nothing
is fetched. Best in environments of their own, one for each framework; FOLDER may be the same (versions: those it was last tried with):

    python3 -m venv torch && torch/bin/pip install torch==2.13.0 torchvision==0.28.0 timm==1.0.31 transformers==5.23.0 onnx==1.23.2 onnxscript==0.7.2
    python3 -m venv keras && keras/bin/pip install tensorflow-cpu==2.21.0 keras==3.15.1 tf2onnx==1.17.0
    python3 -m venv scikit && scikit/bin/pip install scikit-learn==1.9.1 skl2onnx==1.20.0
    torch/bin/python scripts/development/export_architectures.py models

Sequences have one fixed length, pictures one size, batches one sample. A model that does not export is named, and the others are made.
Exit: 0 when any was made, 1 when none.
"""
import argparse
import importlib
import logging
from pathlib import Path

import numpy as np

COUNT = 48
FRAMEWORKS = ("torch", "keras", "scikit")  # exports/of_NAME.py: EXPORTS, and write(name, path, count, seed), which gives samples


def installed():
    """{name: module that writes it}."""
    makers = {}
    for framework in FRAMEWORKS:
        try:
            module = importlib.import_module(f"exports.of_{framework}")
        except ImportError as error:
            print(f"{framework} is left out: {error}")
            continue
        makers |= dict.fromkeys(module.EXPORTS, module)
    return makers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seed", type=int, default=0, help="other random weights and samples")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    logging.disable(logging.WARNING)
    makers, made = installed(), 0
    for name in args.names or makers:
        model = args.folder / f"{name}.onnx"
        try:
            np.savez(model.with_suffix(".npz"), **makers[name].write(name, model, COUNT, args.seed))
            made += 1
            print(name, flush=True)
        except Exception as error:
            model.unlink(missing_ok=True)
            print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:200]}", flush=True)
    print(f"{made} of {len(args.names or makers)} made")
    return 0 if made else 1


if __name__ == "__main__":
    raise SystemExit(main())
