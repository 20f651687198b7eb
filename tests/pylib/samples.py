"""Reads samples and preprocesses them as qeval's --data and --preprocess do, with Pillow and numpy.

A SPEC is a CSV (`file,label`), a folder of pictures, an .npy or an .npz; a preprocessing is the text given to
--preprocess (steps joined by ':'). Pictures become NCHW float32 unless layout=nhwc.
"""
import csv
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

PICTURES = {".jpg", ".jpeg", ".png"}
PRESETS = {
    "imagenet": "resize=256:crop=224:mean=123.675,116.28,103.53:std=58.395,57.12,57.375",
    "imagenet-tf": "resize=256:crop=224:mean=127.5:std=127.5",
    "caffe": "resize=256:crop=224:order=bgr:mean=103.939,116.779,123.68:std=1",
    "unit": "mean=0:std=255",
}
FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC,
           "nearest": Image.Resampling.NEAREST}


def parse_steps(text):
    """'resize=256:mean=1,2,3' -> {'resize': '256', 'mean': '1,2,3'}; later keys win, presets expand in place."""
    steps = {}
    for part in filter(None, (text or "").split(":")):
        if part in PRESETS:
            steps.update(parse_steps(PRESETS[part]))
        else:
            key, _, value = part.partition("=")
            if key not in {"resize", "interp", "crop", "order", "mean", "std", "layout"} or not value:
                raise ValueError(f"preprocessing step '{part}' is not known")
            steps[key] = value
    return steps


def _resize(image, steps):
    if "resize" not in steps:
        return image
    how = FILTERS[steps.get("interp", "bilinear")]
    if "x" in steps["resize"]:
        return image.resize(tuple(int(v) for v in steps["resize"].split("x")), how)
    side, (w, h) = int(steps["resize"]), image.size
    short = min(w, h)
    return image.resize((round(w * side / short), round(h * side / short)), how)


def _crop(image, steps):
    if "crop" not in steps:
        return image
    side, (w, h) = int(steps["crop"]), image.size
    left, top = (w - side) // 2, (h - side) // 2
    return image.crop((left, top, left + side, top + side))


def read_picture(path, steps):
    """f32[3][h][w] (or [h][w][3]) of one file."""
    order = steps.get("order", "rgb")
    image = Image.open(path).convert("L" if order == "gray" else "RGB")
    image = np.asarray(_crop(_resize(image, steps), steps), np.float32)
    image = image[..., None] if image.ndim == 2 else image
    return _finish(image[..., ::-1] if order == "bgr" else image, steps, channels_last=True)


def _numbers(text):
    return np.array([float(v) for v in text.split(",")], np.float32)


def _finish(x, steps, channels_last):
    mean, std = _numbers(steps.get("mean", "0")), _numbers(steps.get("std", "1"))
    if not channels_last and len(mean) > 1:
        mean = mean[:, None, None]
    if not channels_last and len(std) > 1:
        std = std[:, None, None]
    x = (x.astype(np.float32) - mean) / std
    if channels_last and steps.get("layout", "nchw") == "nchw":
        x = np.moveaxis(x, -1, 0)
    return np.ascontiguousarray(x, np.float32)


@dataclass
class Samples:
    """A set of samples of a model with one float input, or (feeds) of any inputs."""
    count: int
    get: object                       # index -> f32 array without batch axis, or {name: array}
    labels: object = None             # i64[count] or None
    names: list = field(default_factory=list)

    def chosen(self, places):
        """The samples at these places, as a set."""
        return Samples(len(places), lambda i: self.get(places[i]), None if self.labels is None else self.labels[places],
                       [self.names[i] for i in places] if self.names else [])

    def batches(self, size, limit=None):
        """Yields (first index, array or {name: array}) with a batch axis."""
        total = min(self.count, limit or self.count)
        for at in range(0, total, size):
            rows = [self.get(i) for i in range(at, min(total, at + size))]
            if isinstance(rows[0], dict):
                yield at, {name: np.stack([row[name] for row in rows]) for name in rows[0]}
            else:
                yield at, np.stack(rows)


def spread(total, n):
    """The places of n of total samples that our tools choose (lib/data/source/choice.h): in each of n strata the one that a hash picks."""
    def picked(n):
        at = 0
        for k in range(n):
            size = total // n + (k < total % n)
            x = (k + 0x9e3779b97f4a7c15) % 2**64
            x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 % 2**64
            x = (x ^ x >> 27) * 0x94d049bb133111eb % 2**64
            yield at + (x ^ x >> 31) % size
            at += size

    if not 0 < n < total:
        return list(range(total))
    return sorted(set(range(total)) - set(picked(total - n))) if n > total // 2 else list(picked(n))


def _pictures(paths, labels, steps):
    return Samples(len(paths), lambda i: read_picture(paths[i], steps), labels, [p.name for p in paths])


def _from_csv(path, steps):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    labels = np.array([int(r["label"]) for r in rows]) if rows and "label" in rows[0] else None
    return _pictures([path.parent / r["file"] for r in rows], labels, steps)


def _from_npy(path, steps):
    x = np.load(path, mmap_mode="r")
    # As qeval does: arrays take mean and std too; without steps they pass as they are.
    return Samples(len(x), lambda i: _finish(x[i], steps, channels_last=False))


def _from_npz(path):
    arrays = dict(np.load(path))
    count = max(len(a) for a in arrays.values() if a.ndim)
    return Samples(count, lambda i: {k: a[i] if a.ndim and len(a) == count else a for k, a in arrays.items()})


def open_samples(spec, preprocess="", labels=None):
    path, steps = Path(spec), parse_steps(preprocess)
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.suffix.lower() in PICTURES)
        found = _pictures(files, None, steps)
    else:
        found = {".csv": lambda: _from_csv(path, steps), ".npy": lambda: _from_npy(path, steps),
                 ".npz": lambda: _from_npz(path)}[path.suffix]()
    if labels:
        found.labels = np.load(labels)[:found.count]
    return found
