#!/usr/bin/env python3
"""Writes testdata/folders/: folders of a small decoder with random weights, as onnxruntime-genai and transformers.js load them, and prompts for it."""
import json
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx")
import numpy as np

from pylib import folders

SHAPE = {"words": 128, "width": 32, "heads": 2, "layers": 2}


def main():
    top = Path(__file__).resolve().parents[2] / "testdata/folders"
    shutil.rmtree(top, ignore_errors=True)
    folders.genai(top / "genai", **SHAPE)
    folders.transformers_js(top / "web", **SHAPE)
    rng = np.random.default_rng(1)
    lines = [json.dumps({"input_ids": rng.integers(50, SHAPE["words"], rng.integers(6, 16)).tolist()}) for _ in range(24)]
    folders.put(top / "prompts.jsonl", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
