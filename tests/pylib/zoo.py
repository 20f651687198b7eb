"""The trained models that the project is judged on, with their data and preprocessing; and the bundled one."""
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pylib.tool import ROOT


@dataclass(frozen=True)
class Model:
    name: str
    calib: str                  # SPECs, relative to the data folder
    data: str
    preprocess: str = ""
    labels: str = ""            # .npy, when the SPEC carries none; .npz:NAME for numbers that are not one per sample
    boxes: str = ""             # folder of NAME.txt with a line "class x_centre y_centre width height" an object, in 0..1
    metric: str = "top1"        # of pylib/tasks.py (top1 with top5 for 1000 classes)
    expect: tuple = ()          # the float metrics of the models' README, in percent or as they are
    calib_samples: int = 64

    def paths(self, shared):
        """(model, calibration SPEC, evaluation SPEC, labels or None) as paths."""
        if self.name == "demo":
            base = ROOT / "testdata"
            return base / "demo.onnx", base / self.calib, base / self.data, None
        data = Path(shared) / "data"
        return (Path(shared) / "models" / f"{self.name}.onnx", data / self.calib, data / self.data,
                data / self.labels if self.labels and ":" not in self.labels else None)

    def truth(self, shared, samples):
        """What the task of the metric compares outputs with."""
        data = Path(shared) / "data"
        if ":" in self.labels:
            path, name = self.labels.split(":")
            with np.load(data / path) as arrays:
                return arrays[name]
        if not self.boxes:
            return samples.labels

        def boxes(picture):
            path = data / self.boxes / Path(picture).with_suffix(".txt").name
            rows = np.array([line.split() for line in path.read_text().splitlines()] if path.exists() else [], float).reshape(-1, 5)
            return np.concatenate([rows[:, :1], rows[:, 1:3] - rows[:, 3:] / 2, rows[:, 1:3] + rows[:, 3:] / 2], 1)
        return boxes


IMAGENET = {"calib": "imagenet500/calib.csv", "data": "imagenet500/eval.csv"}

MODELS = {m.name: m for m in (
    Model("demo", "images/calib.csv", "images/eval.csv", "mean=127.5:std=127.5"),
    Model("mobilenet_v2_100_224", **IMAGENET, preprocess="crop=224:mean=127.5:std=127.5", expect=(86.2, 96.6)),
    Model("mobilenet_v1_025_224", **IMAGENET, preprocess="crop=224:mean=127.5:std=127.5", expect=(56.2, 79.8)),
    Model("squeezenet_v10_227", **IMAGENET, preprocess="crop=227:order=bgr:mean=104,117,123:std=1", expect=(62.4, 81.7)),
    Model("resnet8_cifar10", "cifar10/calib.csv", "cifar10/eval.csv", "order=rgb:mean=0:std=1", expect=(76.2,)),
    Model("vww_mobilenet_96", "vww/calib.csv", "vww/eval.csv", "mean=0:std=255", expect=(82.8,)),
    Model("kws_dscnn", "kws/calib_x.npy", "kws/eval_x.npy", labels="kws/eval_y.npy", expect=(91.8,)),
    Model("ad01_autoencoder", "ad/calib_x.npy", "ad/eval_x.npy", metric="mse", expect=(9.53,)),
    Model("mnist_cnn", "mnist/calib_x.npy", "mnist/eval_x.npy", "mean=0:std=255", labels="mnist/eval_y.npy", expect=(96.8,)),
    Model("mnist_cntk_op8", "mnist/calib_x.npy", "mnist/eval_x.npy", labels="mnist/eval_y.npy", expect=(98.9,)),
    Model("nanodet_m_416", "coco/calib/images", "coco/eval/images",
          "resize=416x416:order=bgr:mean=103.53,116.28,123.675:std=57.375,57.12,58.395", boxes="coco/eval/labels",
          metric="ap50", expect=(41.9,)),
    Model("ultraface_rfb_320", "coco/calib/images", "faces", "resize=320x240:mean=127:std=128", metric="f1"),
)}
# Samples that are all inputs of a run, as they are: these models are compared in float alone.
WHOLE = {m.name: m for m in (
    Model("silero_vad_16k", "silero/silero_vad_16k_frames.npz", "silero/silero_vad_16k_frames.npz", metric="agreement"),
)}
# Files that are not kept but written by a script beside the others; the metric is of pairs of rows.
MADE = {m.name: m for m in (
    Model("minilm_l6_v2", "stsb/calib.npz", "stsb/eval.npz", labels="stsb/eval.npz:scores", metric="spearman", expect=(81.94,)),
)}
