#!/usr/bin/env python3
"""Log-mel spectra and cepstra that qeval makes of recordings, against their definitions by NumPy, and against the reference libraries where they are installed.

    tests/checks/check_features.py [--qeval PROGRAM] [--seed N] [-v]

A model that gives its input back shows what preparation made. Whisper's definition is that of transformers' WhisperFeatureExtractor, Kaldi's that of
compute-fbank-feats and compute-mfcc-feats as in kaldi-native-fbank. Recordings are speech-like, noise, silence, one tone, and short; time is free or fixed, first
or last, beside a dimension of one; rates are others, too. All values must be equal to 1e-4.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages.
"""
import sys
import wave
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx")
import numpy as np
import onnx
from onnx import TensorProto, helper

from pylib import tool
from pylib.judge import Checker, options

LARGEST = 1e-4


def recordings(rng):
    def speech(n, rate):
        t = np.arange(n) / rate
        pitch = 2 * np.pi * np.cumsum(120 + 40 * np.sin(3 * t)) / rate
        voiced = sum(np.sin(k * pitch) / k for k in range(1, 25)) * (0.6 + 0.4 * np.sin(11 * t)) * (np.sin(2.1 * t) > -0.5)
        return 0.2 * voiced + 0.004 * rng.normal(size=n)
    t = np.arange(16000)
    return {"speech": (speech(37123, 16000), 16000), "noise": (rng.uniform(-1, 1, 8000), 16000), "silence": (np.zeros(5000), 16000),
            "tone": (0.7 * np.sin(0.2 * t), 16000), "short": (rng.normal(0, 0.1, 171), 16000), "slow": (speech(9000, 8000), 8000), "fast": (speech(31000, 44100), 44100)}


def store(path, x, rate):
    """The values that the file holds, -1 to 1."""
    codes = np.clip(np.rint(x * 32768), -32768, 32767).astype("<i2")
    with wave.open(str(path), "wb") as w:
        w.setnchannels(1)
        w.setsampwidth(2)
        w.setframerate(rate)
        w.writeframes(codes.tobytes())
    return codes / 32768


# ---- definitions ----

def triangles(corners, places):
    """[filter][place]; corners: [filters + 2]."""
    left, middle, right = corners[:-2, None], corners[1:-1, None], corners[2:, None]
    return np.maximum(0, np.minimum((places - left) / (middle - left), (right - places) / (right - middle)))


def log_mel(x, n):
    """[n][frames]"""
    def hertz(m):
        return np.where(m < 15, m * 200 / 3, 1000 * np.exp((m - 15) * np.log(6.4) / 27))
    corners = hertz(np.linspace(0, 15 + 27 * np.log(8) / np.log(6.4), n + 2))
    filters = triangles(corners, np.arange(201) * 40.0) * (2 / (corners[2:] - corners[:-2]))[:, None]
    padded = np.pad(x, 200, mode="reflect")
    frames = np.stack([padded[160 * k:160 * k + 400] for k in range(len(x) // 160)])
    power = np.abs(np.fft.rfft(frames * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)), axis=1)) ** 2
    y = np.log10(np.maximum(filters @ power.T, 1e-10))
    return (np.maximum(y, y.max() - 8) + 4) / 4


def kaldi(x, n, rate=16000, cepstra=0, length=25, shift=10, high=0, snip=True, energy=True, scale=32768):
    """[frames][n or cepstra]"""
    length, shift = rate * length // 1000, rate * shift // 1000
    if snip:
        starts = np.arange(max(0, 1 + (len(x) - length) // shift)) * shift
    else:
        starts = np.arange((len(x) + shift // 2) // shift) * shift + shift // 2 - length // 2
    frames = np.pad(x * scale, length, mode="symmetric")[starts[:, None] + np.arange(length) + length]
    frames = frames - frames.mean(1, keepdims=True)
    loudness = np.log(np.maximum((frames ** 2).sum(1), 2.0 ** -23))
    frames = frames - 0.97 * np.concatenate([frames[:, :1], frames[:, :-1]], 1)
    size = 1 << (length - 1).bit_length()
    power = np.abs(np.fft.rfft(frames * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / (length - 1))) ** 0.85, size, axis=1)) ** 2
    def mel(f):
        return 1127 * np.log(1 + f / 700)
    top = high if high > 0 else rate / 2 + high
    filters = triangles(np.linspace(mel(20), mel(top), n + 2), mel(np.arange(size // 2) * rate / size))
    y = np.log(np.maximum(power[:, :-1] @ filters.T, 2.0 ** -23))
    if not cepstra:
        return y
    k, i = np.arange(cepstra)[:, None], np.arange(n)[None]
    basis = np.sqrt(np.where(k == 0, 1, 2) / n) * np.cos(np.pi / n * (i + 0.5) * k) * (1 + 11 * np.sin(np.pi * k / 22))
    c = y @ basis.T
    if energy:
        c[:, 0] = loudness
    return c


# ---- what qeval makes ----

def model(path, dims):
    def value(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "same", [value("x")], [value("y")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def prepared(c, dims, path, steps):
    model(c.folder / "same.onnx", dims)
    return tool.run_qeval(c.qeval, c.folder / "same.onnx", path, c.folder / "out.npz", steps)["y"]


def hold(c, what, got, want, slack=0):
    got, want = np.squeeze(got), np.squeeze(want)
    apart = np.abs(got - want) if got.shape == want.shape else np.full(1, np.inf)
    c.hold(what, (apart <= LARGEST + np.squeeze(slack)).all(), f"{got.shape} for {want.shape}: {apart.max():.2g} at most")


KALDI = {
    "fbank=80": {"n": 80}, "fbank=23": {"n": 23}, "fbank=40:frame-length=32:frame-shift=16": {"n": 40, "length": 32, "shift": 16},
    "fbank=80:snip-edges=no:high-freq=-400:normalize-samples=yes": {"n": 80, "snip": False, "high": -400, "scale": 1},
    "fbank=64:high-freq=7600": {"n": 64, "high": 7600}, "mfcc=13": {"n": 23, "cepstra": 13}, "mfcc=13:use-energy=no": {"n": 23, "cepstra": 13, "energy": False},
    "mfcc=40:num-mel-bins=40:high-freq=-400:use-energy=no:snip-edges=no": {"n": 40, "cepstra": 40, "high": -400, "energy": False, "snip": False},
}


def references(c, name, path, x):
    """The libraries whose definitions these are. kaldi-native-fbank computes in float32, so that what is far below the loudest in a frame is known to a few digits:
    as far as it is from the definition in double, we may be from it."""
    try:
        from transformers import WhisperFeatureExtractor
        for n in (80, 128):
            want = WhisperFeatureExtractor(feature_size=n)(x.astype(np.float32), sampling_rate=16000, return_tensors="np")["input_features"]
            hold(c, f"{name}, log-mel={n}, transformers", prepared(c, ["n", n, 3000], path, f"log-mel={n}"), want)
    except ImportError:
        pass
    try:
        import kaldi_native_fbank as knf
    except ImportError:
        return
    for steps, p in KALDI.items():
        o = knf.MfccOptions() if "cepstra" in p else knf.FbankOptions()
        o.frame_opts.dither, o.frame_opts.snip_edges = 0, p.get("snip", True)
        o.frame_opts.frame_length_ms, o.frame_opts.frame_shift_ms = p.get("length", 25), p.get("shift", 10)
        o.mel_opts.num_bins, o.mel_opts.high_freq = p["n"], p.get("high", 0)
        if "cepstra" in p:
            o.num_ceps, o.use_energy = p["cepstra"], p.get("energy", True)
        f = (knf.OnlineMfcc if "cepstra" in p else knf.OnlineFbank)(o)
        f.accept_waveform(16000, (x * p.get("scale", 32768)).astype(np.float32).tolist())
        f.input_finished()
        if f.num_frames_ready:
            want = np.stack([f.get_frame(k) for k in range(f.num_frames_ready)])
            hold(c, f"{name}, {steps}, kaldi-native-fbank", prepared(c, ["n", "t", want.shape[1]], path, steps), want, np.abs(want - kaldi(x, **p)))


def shapes(c, path, x):
    """Which dimension is time; a fixed one cuts and fills up."""
    w, k = log_mel(x, 80), kaldi(x, 80)
    for dims in (["n", 80, "t"], ["n", "f", "t"], ["n", 1, 80, "t"], ["n", 80, "t", 1], [80, "t"]):
        hold(c, f"log-mel in {dims}", prepared(c, dims, path, "log-mel=80"), w)
        hold(c, f"fbank in {dims}", prepared(c, dims, path, "fbank=80"), k if "f" in dims else k.T)
    for dims in (["n", "t", 80], ["n", 1, "t", 80], ["t", 80]):
        hold(c, f"log-mel in {dims}", prepared(c, dims, path, "log-mel=80"), w.T)
        hold(c, f"fbank in {dims}", prepared(c, dims, path, "fbank=80"), k)
    hold(c, "log-mel filled up to 3000", prepared(c, ["n", 80, 3000], path, "log-mel=80"), log_mel(np.pad(x, (0, 480000 - len(x))), 80))
    hold(c, "log-mel cut to 100", prepared(c, ["n", 80, 100], path, "log-mel=80"), log_mel(x[:16000], 80))
    hold(c, "log-mel in windows", prepared(c, ["n", 80, 100], path, "log-mel=80:frame=16000"),
         np.stack([log_mel(part, 80) for part in np.pad(x, (0, -len(x) % 16000)).reshape(-1, 16000)]))
    hold(c, "fbank filled up to 300", prepared(c, ["n", 300, 80], path, "fbank=80"), kaldi(np.pad(x, (0, 50000)), 80)[:300])
    hold(c, "fbank cut to 45", prepared(c, ["n", 45, 80], path, "fbank=80"), k[:45])
    hold(c, "mirrored fbank cut to 45", prepared(c, ["n", 45, 80], path, "fbank=80:snip-edges=no"), kaldi(x[:45 * 160 - 80], 80, snip=False)[:45])
    hold(c, "mean and std of features", prepared(c, ["n", "t", 80], path, "fbank=80:mean=4:std=2"), (k - 4) / 2)


def main():
    parser = options(__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the recordings [%(default)s]")
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    with Checker(args) as c:
        for name, (wanted, rate) in recordings(rng).items():
            path = c.folder / f"{name}.wav"
            x = store(path, wanted, rate)
            if rate == 44100:  # what rate= makes is a test of its own
                model(c.folder / "wave.onnx", ["n", "t"])
                x = tool.run_qeval(c.qeval, c.folder / "wave.onnx", path, c.folder / "out.npz", "rate=16000")["y"][0].astype(float)
            for n in (80, 128) if rate != 8000 and len(x) > 200 else ():
                hold(c, f"{name}, log-mel={n}", prepared(c, ["n", n, "t"], path, f"rate=16000:log-mel={n}"), log_mel(x, n))
            for steps, p in KALDI.items():
                at = 8000 if rate == 8000 else 16000
                want = kaldi(x, rate=at, **p | ({"high": min(p.get("high", 0), 0)} if at == 8000 else {}))
                steps = steps.replace("high-freq=7600", "high-freq=0") if at == 8000 else steps
                if len(want):
                    hold(c, f"{name}, {steps}", prepared(c, ["n", "t", want.shape[1]], path, f"rate={at}:{steps}"), want)
            if rate == 16000 and len(x) > 1000:
                references(c, name, path, x)
            if name == "speech":
                shapes(c, path, x)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
