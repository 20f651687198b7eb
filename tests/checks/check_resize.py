#!/usr/bin/env python3
"""Pictures of random sizes, up and down, prepared by qeval and by Pillow: the same bytes.

    tests/checks/check_resize.py [--qeval PROGRAM] [--sizes N] [--seed N] [-v]

A model that gives its input back shows what preparation made. Pictures are PNG, so that no decoder has a part in it: RGB and gray, of odd sizes, of one pixel's
width, and several times as large as what they become. Filters are those that Pillow has: bilinear, bicubic and nearest.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "onnxruntime", "PIL")
import numpy as np
import onnx
from onnx import TensorProto, helper
from PIL import Image

from pylib import tool
from pylib.judge import Checker, options

FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC, "nearest": Image.Resampling.NEAREST}
KNOWN = [((320, 240), (96, 96)), ((96, 96), (320, 240)), ((640, 480), (320, 240)), ((1, 37), (5, 3)), ((37, 1), (3, 5)), ((7, 9), (7, 40)), ((500, 333), (33, 333))]


def model(path, channels):
    def value(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", channels, "h", "w"])
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "same", [value("x")], [value("y")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def picture(rng, size, channels):
    """Edges, slopes and noise."""
    w, h = size
    y, x = np.mgrid[:h, :w]
    parts = [(x * 5 + y * 3) % 256, 255 * ((x // 3 + y // 5) % 2), rng.integers(0, 256, (h, w))]
    return Image.fromarray(np.stack(parts, -1).astype(np.uint8) if channels == 3 else parts[2].astype(np.uint8))


def prepared(c, path, steps, channels):
    """What qeval gives the model, [h][w][channels]."""
    out = next(iter(tool.run_qeval(c.qeval, c.folder / f"same{channels}.onnx", path, c.folder / "out.npz", steps).values()))
    return out[0].transpose(1, 2, 0)


def hold(c, what, got, want):
    want = np.asarray(want, np.float32)
    want = want[:, :, None] if want.ndim == 2 else want
    same = got.shape == want.shape and (got == want).all()
    c.hold(what, same, f"{got.shape} for {want.shape}" if got.shape != want.shape else f"{(got != want).mean():.1%} differ, by {np.abs(got - want).max():g} at most")


def shorter_side(image, side, kind):
    """As torchvision's Resize: the other side is rounded down."""
    w, h = image.size
    return image.resize((side, int(side * h / w)) if w <= h else (int(side * w / h), side), kind)


def ways(c, image, path, channels, at, name, kind):
    """The three ways to come to a size other than resize=WxH."""
    w, h = image.size
    side = max(1, min(w, h) * 2 // 3)
    hold(c, f"{at}, resize={side}, {name}", prepared(c, path, f"interp={name}:resize={side}", channels), shorter_side(image, side, kind))
    cut_w, cut_h = max(1, round(w * 0.875)), max(1, round(h * 0.875))
    left, top = int((w - cut_w) / 2.0), int((h - cut_h) / 2.0)
    part = image.crop((left, top, left + cut_w, top + cut_h))
    hold(c, f"{at}, precrop, {name}", prepared(c, path, f"interp={name}:precrop=0.875:resize=40x31", channels), part.resize((40, 31), kind))
    r = min(64 / w, 48 / h)
    small = image.resize((max(1, round(w * r)), max(1, round(h * r))), kind)
    whole = Image.new(image.mode, (64, 48), (114,) * 3 if channels == 3 else 114)
    whole.paste(small, ((64 - small.width) // 2, (48 - small.height) // 2))
    hold(c, f"{at}, letterbox, {name}", prepared(c, path, f"interp={name}:letterbox=64x48", channels), whole)


def main():
    parser = options(__doc__)
    parser.add_argument("--sizes", type=int, default=40, help="random sizes [%(default)s]")
    parser.add_argument("--seed", type=int, default=1, help="of these [%(default)s]")
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    sizes = KNOWN + [tuple(tuple(int(v) for v in rng.integers(1, most, 2)) for most in (rng.choice([40, 200, 700]), rng.choice([40, 200, 400]))) for _ in range(args.sizes)]
    with Checker(args) as c:
        for channels in (1, 3):
            model(c.folder / f"same{channels}.onnx", channels)
        for i, (size, to) in enumerate(sizes):
            channels = 1 if i % 4 == 3 else 3
            image, path = picture(rng, size, channels), c.folder / "picture.png"
            image.save(path)
            at = f"{size[0]}x{size[1]} {'gray' if channels == 1 else 'RGB'}"
            for name, kind in FILTERS.items():
                hold(c, f"{at} to {to[0]}x{to[1]}, {name}", prepared(c, path, f"interp={name}:resize={to[0]}x{to[1]}", channels), image.resize(to, kind))
            if i % 5 == 0:
                ways(c, image, path, channels, at, *list(FILTERS.items())[i // 5 % 3])
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
