"""Samples of a model as it takes them."""
import numpy as np

from pylib import peer


class Rows:
    """Of a model of digest_models: get(i) is all inputs of a run, {name: array}."""

    def __init__(self, model):
        with np.load(model.data) if model.data.suffix == ".npz" else open(model.data, "rb") as f:
            arrays = {k: f[k] for k in f.files} if model.data.suffix == ".npz" else {"": np.load(f)}
        inputs = peer.session(model.path).get_inputs()
        if "" in arrays:
            arrays = {inputs[0].name: arrays[""]}
        self.arrays, self.ranks = arrays, {i.name: len(i.shape) for i in inputs}
        self.types = {i.name: np.float32 if i.type == "tensor(float)" else None for i in inputs}
        self.count = min(len(a) for a in arrays.values() if a.ndim)  # a number alone is the same for all

    def get(self, i):
        def one(name):
            row = self.arrays[name][i] if self.arrays[name].ndim else self.arrays[name]
            row = row if row.ndim == self.ranks[name] else row[None]
            return row.astype(self.types[name]) if self.types[name] else row
        return {name: one(name) for name in self.ranks}
