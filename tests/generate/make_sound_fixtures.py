#!/usr/bin/env python3
"""Makes testdata/sound/: short recordings of every form, with the values that they hold, and what resampling and features make of them. And testdata/fuzz/sound/:
such files behind steps.

Seeded. Plain PCM is written by Python's wave module. The resampled values are the formula of lib/data/sound/resample.h by NumPy's sinc and i0,
the features those of tests/checks/check_features.py.
"""
import io
import math
import struct
import sys
import tarfile
import wave
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "checks"))
from check_features import kaldi, log_mel

OUT = Path(__file__).resolve().parents[2] / "testdata" / "sound"
GUID = bytes([0, 0, 0, 0, 16, 0, 128, 0, 0, 170, 0, 56, 155, 113])
rng = np.random.default_rng(11)


def speech(n, channels=1):
    """Tones under noise, with full scale at places."""
    t = np.arange(n)[:, None]
    x = 0.4 * np.sin(t * (0.05 + 0.11 * np.arange(channels))) + 0.3 * np.sin(t * t / (3.0 * n)) + rng.normal(0, 0.05, (n, channels))
    x[n // 3], x[n // 2] = 1, -1
    return np.clip(x, -1, 1)


def codes(x, width):
    top = 1 << (8 * width - 1)
    return np.clip(np.rint(x * top), -top, top - 1).astype(np.int64)


def packed(q, width):
    if width == 1:
        q = q + 128
    return b"".join(int(v).to_bytes(width, "little", signed=width > 1) for v in q.ravel())


def pcm(name, x, width, rate):
    q = codes(x, width)
    with wave.open(str(OUT / name), "wb") as w:
        w.setnchannels(x.shape[1])
        w.setsampwidth(width)
        w.setframerate(rate)
        w.writeframes(packed(q, width))
    return q / (1 << (8 * width - 1))


def chunks(name, rate, form, channels, width, data, bits=None, extended=False, length=None, before=b""):
    tag = 0xfffe if extended else form
    fmt = struct.pack("<HHIIHH", tag, channels, rate, rate * channels * width, channels * width, bits or 8 * width)
    if extended:
        fmt += struct.pack("<HHIH", 22, bits or 8 * width, 0, form) + GUID
    body = b"WAVE" + b"fmt " + struct.pack("<I", len(fmt)) + fmt + before + b"data" + struct.pack("<I", len(data) if length is None else length) + data
    (OUT / name).write_bytes(b"RIFF" + struct.pack("<I", min(len(body), 0xffffffff)) + body)


def resampled(x, source, target):
    """Output n at time n * source / target of the input, under Kaiser's window: sums over the whole recording."""
    zeros, rolloff, beta = 64, 0.9475937167399596, 14.769656459379492
    b = rolloff * min(1, target / source)
    n = np.arange(math.ceil(len(x) * target / source))[:, None]
    u = b * (np.arange(len(x))[None] - n * source / target)
    window = np.where(np.abs(u) < zeros, np.i0(beta * np.sqrt(np.clip(1 - (u / zeros) ** 2, 0, 1))) / np.i0(beta), 0)
    return (b * np.sinc(u) * window) @ x


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    values = {}
    for width in (1, 2, 3, 4):
        values[f"stereo{8 * width}"] = pcm(f"stereo{8 * width}.wav", speech(97, 2), width, 8000)
    mono = pcm("mono16.wav", speech(701), 2, 22050)
    values["mono16"] = mono
    for target in (16000, 44100, 8000):
        np.save(OUT / f"mono16.{target}.npy", resampled(mono[:, 0], 22050, target))
    made = resampled(mono[:, 0], 22050, 16000)
    np.save(OUT / "mono16.log-mel.npy", log_mel(made, 10))
    np.save(OUT / "mono16.fbank.npy", kaldi(made, 10, snip=False, high=-400, scale=1))
    np.save(OUT / "mono16.mfcc.npy", kaldi(mono[:, 0], 15, rate=22050, cepstra=5, length=20, shift=4))
    x = speech(97, 2)
    chunks("real32.wav", 8000, 3, 2, 4, x.astype("<f4").tobytes())
    chunks("real64.wav", 8000, 3, 2, 8, x.astype("<f8").tobytes(), extended=True, before=b"LIST" + struct.pack("<I", 3) + b"abc\0")
    values["real32"], values["real64"] = x.astype(np.float32), x
    q = codes(x, 3) >> 4 << 4  # 20 bits in the upper part of three bytes
    chunks("bits20.wav", 8000, 1, 2, 3, packed(q, 3), bits=20, extended=True)
    values["bits20"] = q / (1 << 23)
    q = codes(speech(50), 2)
    chunks("piped.wav", 8000, 1, 1, 2, packed(q, 2), length=0xffffffff)
    values["piped"] = q / 32768
    chunks("alaw.wav", 8000, 6, 1, 1, bytes(40))
    chunks("short.wav", 8000, 1, 1, 2, packed(q, 2), length=120)
    chunks("none.wav", 8000, 1, 1, 2, b"")
    for name, v in values.items():
        np.save(OUT / f"{name}.npy", v)
    seeds = OUT.parent / "fuzz" / "sound"
    seeds.mkdir(parents=True, exist_ok=True)
    for i, (file, steps) in enumerate((("stereo8", "channel=1"), ("stereo24", "frame=10:hop=3"), ("stereo32", "rate=9000"), ("real32", "lead=5"),
                                       ("real64", "rate=4000:frame=16:lead=4:hop=32"), ("bits20", ""), ("piped", "frame=7"), ("alaw", ""), ("short", ""),
                                       ("mono16", "rate=16000:log-mel=3"), ("mono16", "frame=500:fbank=3:snip-edges=no"), ("stereo16", "rate=900:mfcc=2:frame-length=3"))):
        (seeds / f"{i}").write_bytes(steps.encode() + b"\0" + (OUT / f"{file}.wav").read_bytes())
    with tarfile.open(OUT / "shard.tar", "w", format=tarfile.USTAR_FORMAT) as t:
        for i, file in enumerate(("mono16.wav", "piped.wav")):
            for suffix, data in (("wav", (OUT / file).read_bytes()), ("cls", str(i + 5).encode())):
                member = tarfile.TarInfo(f"r{i}.{suffix}")
                member.size = len(data)
                t.addfile(member, io.BytesIO(data))


if __name__ == "__main__":
    main()
