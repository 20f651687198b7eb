#!/usr/bin/env python3
"""The ways of docs/migration.md from optimum, Olive and Ultralytics, followed to their end with models that seeds make: nothing is fetched.

    check_recipes.py BUILD [-v] [optimum|olive|ultralytics...]

The commands and calls are the document's own lines; only names are replaced. What comes out is judged by ONNX Runtime on the float model's outputs: it loses no
more than by the other tool's own quantization. The detector is trained on drawn shapes for some minutes, so that it finds something that could be lost.
A recipe is skipped where its package is not installed.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 when no recipe could run.
"""
import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import installed, packages

packages.need("numpy", "onnxruntime", "PIL")
import numpy as np
import onnxruntime
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 1200
SLACK = 0.3  # dB

# A classifier of texts, with a tokenizer of syllables.
MAKE_BERT = """
import torch
from pathlib import Path
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast
torch.manual_seed(0)
Path("bert").mkdir()
words = "[PAD] [UNK] [CLS] [SEP] [MASK]".split() + [p + a + b for p in ("", "##") for a in "bdfgklmnprst" for b in "aeiou"]
Path("bert/vocab.txt").write_text("\\n".join(words) + "\\n")
BertTokenizerFast("bert/vocab.txt").save_pretrained("bert")
config = BertConfig(vocab_size=len(words), hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, max_position_embeddings=64,
                    num_labels=5, initializer_range=0.2)
BertForSequenceClassification(config).eval().save_pretrained("bert")
"""
EXPORT_BERT = """
from optimum.exporters.onnx import main_export
main_export("bert", output="model", task="text-classification")
"""
LOADED = """
import sys
import numpy as np
from optimum.onnxruntime import ORTModelForSequenceClassification
from transformers import AutoTokenizer
x = AutoTokenizer.from_pretrained("new")("badego kulimo sata", return_tensors="np")
print(ORTModelForSequenceClassification.from_pretrained("new")(**x).logits.shape)
"""


def lines_of(section):
    """The document's lines of code under a heading, without their notes behind #."""
    text = (ROOT / "docs/migration.md").read_text()
    part = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", text, re.M | re.S)[1]
    return [re.split(r"  +#", line)[0].strip() for line in part.splitlines() if line.startswith("    ")]


class Place:
    """A folder in which a recipe is followed."""

    def __init__(self, folder, build):
        self.folder = Path(folder)
        tools = ":".join(str(build / "tools" / t) for t in installed.PROGRAMS)
        self.env = dict(os.environ, OCTET_LIBRARY=str(build / "tools/library/liboctet.so.0"), PYTHONPATH=str(ROOT / "python"), HF_HUB_OFFLINE="1",
                        YOLO_OFFLINE="true",
                        HOME=str(self.folder), PATH=f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}")

    def run(self, *words):
        done = subprocess.run(words, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=LIMIT, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)[:200]}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
        return done.stdout

    def python(self, code):
        return self.run(sys.executable, "-c", code)


def sqnr(want, got):
    return 10 * np.log10((want ** 2).sum() / max(((want - got) ** 2).sum(), 1e-30))


def outputs(path, rows):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return np.concatenate([session.run(None, {n: row[n] for n in names})[0] for row in rows]).astype(np.float64)


def texts():
    """Rows of token ids."""
    r = np.random.default_rng(3)
    for _ in range(128):
        ids = np.concatenate([[2], r.integers(5, 125, r.integers(4, 30)), [3]]).astype(np.int64)[None]
        yield {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}


def optimum(c, place):
    theirs, ours = lines_of("optimum")
    place.python(MAKE_BERT)
    place.python(EXPORT_BERT)
    place.python("from optimum.onnxruntime import ORTQuantizer\nfrom optimum.onnxruntime.configuration import AutoQuantizationConfig\n" +
                 theirs.replace('"new/"', '"theirs/"'))
    place.python(f"import octet\n{ours}")
    at = place.folder
    c.hold("optimum: the same files", {p.name for p in (at / "new").iterdir()} == {p.name for p in (at / "model").iterdir()}, list((at / "new").iterdir()))
    c.hold("optimum: its class loads the folder", "(1, 5)" in place.python(LOADED))
    rows = list(texts())
    want, got, other = (outputs(at / name, rows) for name in ("model/model.onnx", "new/model.onnx", "theirs/model_quantized.onnx"))
    c.hold(f"optimum: {sqnr(want, got):.1f} dB, not less than {sqnr(want, other):.1f} dB", sqnr(want, got) >= sqnr(want, other) - SLACK)
    c.hold("optimum: weights are quantized", (at / "new/model.onnx").stat().st_size < 0.6 * (at / "model/model.onnx").stat().st_size and sqnr(want, got) < 100)


def olive(c, place):
    theirs, ours = lines_of("Olive")
    place.python(MAKE_BERT)
    place.run(*shlex.split(theirs.replace(" ID ", " bert ")), "--disable_telemetry")
    place.run(*shlex.split(ours))
    rows = list(texts())
    want, got = (outputs(place.folder / name, rows) for name in ("model/model.onnx", "model.int8.onnx"))
    c.hold(f"Olive: {sqnr(want, got):.1f} dB", 20 < sqnr(want, got) < 100)
    c.hold("Olive: labels stay, but for some near a tie", np.mean(want.argmax(1) == got.argmax(1)) >= 0.85)


# Discs, squares and triangles on noise, with their truth as YOLO writes it: train/, images/ and labels/ to convert with, held/ to judge.
TRAIN_YOLO = """
import numpy as np
from pathlib import Path
from PIL import Image, ImageDraw
r, side = np.random.default_rng(7), 160
def drawn(picture, text):
    page, lines, taken = Image.fromarray(r.normal(110, 12, (side, side, 3)).clip(0, 255).astype("u1")), [], []
    pen = ImageDraw.Draw(page)
    for _ in range(r.integers(1, 4)):
        s, k = int(r.integers(28, 60)), int(r.integers(3))
        x, y = (int(v) for v in r.integers(2, side - s - 2, 2))
        if any(abs(x - u) < 0.6 * (s + t) and abs(y - v) < 0.6 * (s + t) for u, v, t in taken):
            continue
        taken.append((x, y, s))
        color = tuple(int(v) for v in (np.array([(220, 60, 50), (60, 200, 70), (70, 90, 230)][k]) + r.normal(0, 15, 3)).clip(0, 255))
        box = [x, y, x + s, y + s]
        if k < 2:
            (pen.ellipse, pen.rectangle)[k](box, fill=color)
        else:
            pen.polygon([(x, y + s), (x + s, y + s), (x + s / 2, y)], fill=color)
        lines.append(f"{k} {(x + s / 2) / side:.6f} {(y + s / 2) / side:.6f} {s / side:.6f} {s / side:.6f}")
    page.save(picture)
    Path(text).write_text("\\n".join(lines) + "\\n")
for folder, n in (("train", 200), (".", 96), ("held", 64)):
    for kind in ("images", "labels"):
        Path(folder, kind).mkdir(parents=True, exist_ok=True)
    for i in range(n):
        drawn(f"{folder}/images/{i:03}.png", f"{folder}/labels/{i:03}.txt")
Path("data.yaml").write_text(f"path: {Path.cwd()}\\ntrain: train/images\\nval: held/images\\nnames: [disc, square, triangle]\\n")
from ultralytics import YOLO
model = YOLO("yolo11n.yaml")
model.train(data="data.yaml", epochs=12, imgsz=side, batch=8, optimizer="AdamW", lr0=0.003, lrf=0.1, warmup_epochs=1, mosaic=0, amp=False, plots=False,
            val=False, workers=0, seed=0, device="cpu", verbose=False, project=str(Path.cwd() / "runs"), name="r")
Path("runs/r/weights/last.pt").rename("yolo11n.pt")
"""
THEIRS_YOLO = """
import numpy as np
from pathlib import Path
from PIL import Image
from onnxruntime.quantization import CalibrationDataReader, quantize_static
class Reader(CalibrationDataReader):
    def __init__(self):
        self.rows = ({"images": np.asarray(Image.open(p), "f4").transpose(2, 0, 1)[None] / 255} for p in sorted(Path("images").iterdir()))
    def get_next(self):
        return next(self.rows, None)
quantize_static("yolo11n.onnx", "theirs.onnx", Reader())
"""


def overlap(a, b):
    """Of a box with boxes, as corners."""
    inner = np.clip(np.minimum(a[2:], b[:, 2:]) - np.maximum(a[:2], b[:, :2]), 0, None).prod(1)
    return inner / ((a[2:] - a[:2]).prod() + (b[:, 2:] - b[:, :2]).prod(1) - inner)


def found(out):
    """[(class, box)] of an output [4 + classes, places]: those of score 0.25 that no better one of the class covers by half."""
    kind, score = out[4:].argmax(0), out[4:].max(0)
    corners = np.concatenate([out[:2] - out[2:4] / 2, out[:2] + out[2:4] / 2]).T
    kept = []
    for i in np.argsort(-score, kind="stable"):
        if score[i] >= 0.25 and not any(k == kind[i] and overlap(corners[i], b[None])[0] > 0.5 for k, b in kept):
            kept.append((kind[i], corners[i]))
    return kept


def f1(path, folder, side):
    """Of the boxes that a model finds in the pictures of a folder, at an overlap of a half."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    right = wrong = missed = 0
    for picture in sorted((folder / "images").iterdir()):
        x = np.asarray(Image.open(picture), np.float32).transpose(2, 0, 1)[None] / 255
        truth = [line.split() for line in (folder / "labels" / f"{picture.stem}.txt").read_text().splitlines()]
        left = [(int(k), side * np.array([x - w / 2, y - h / 2, x + w / 2, y + h / 2])) for k, x, y, w, h in (map(float, t) for t in truth)]
        for kind, box in found(session.run(None, {"images": x})[0][0].astype(np.float64)):
            hit = next((i for i, (k, b) in enumerate(left) if k == kind and overlap(box, b[None])[0] >= 0.5), None)
            right, wrong = right + (hit is not None), wrong + (hit is None)
            if hit is not None:
                left.pop(hit)
        missed += len(left)
    return 2 * right / max(2 * right + wrong + missed, 1)


def ultralytics(c, place):
    theirs, ours = lines_of("Ultralytics")
    place.python(TRAIN_YOLO)
    place.run(*shlex.split(theirs.replace("640", "160")))
    place.run(*shlex.split(ours.replace("640", "160")))
    place.python(THEIRS_YOLO)
    at = place.folder
    want, got, other = (f1(at / name, at / "held", 160) for name in ("yolo11n.onnx", "yolo11n.int8.onnx", "theirs.onnx"))
    c.hold(f"Ultralytics: the float model finds what was drawn: F1 {want:.3f}", want > 0.8)
    c.hold(f"Ultralytics: F1 {got:.3f}, float {want:.3f}, ONNX Runtime's quantizer {other:.3f}", got >= max(want - 0.02, other - 0.005))
    c.hold("Ultralytics: weights are quantized", (at / "yolo11n.int8.onnx").stat().st_size < 0.4 * (at / "yolo11n.onnx").stat().st_size)


RECIPES = {"ultralytics": (ultralytics, ("ultralytics", "torch")),
           "optimum": (optimum, ("optimum.onnxruntime", "torch")), "olive": (olive, ("olive", "transformers"))}


def lacks(names):
    """A package that is not there."""
    for name in names:
        try:
            if not packages.has(name):
                return name
        except ModuleNotFoundError:
            return name.split(".", 1)[0]
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(RECIPES)}; without any, all")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_intermixed_args()
    c = installed.Count(args.verbose)
    for name in args.names or RECIPES:
        recipe, needed = RECIPES[name]
        if missing := lacks(needed):
            print(f"skipped: the recipe of {name} needs the Python package {missing}, which is not installed")
            continue
        with tempfile.TemporaryDirectory(prefix="octet-recipes-") as folder:
            try:
                recipe(c, Place(folder, args.build.resolve()))
            except RuntimeError as e:
                c.hold(f"{name}: its commands run", False, e)
    return c.finish() if c.all else 77


if __name__ == "__main__":
    sys.exit(main())
