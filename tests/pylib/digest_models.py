"""The models of tests/checks/digests, each with samples: those of testdata/, small networks, those of make_zoo.py, the trained ones of zoo.py.

Samples that are made here come from integers and exact arithmetic, so that they are the same with every version of numpy."""
import sys
import zipfile
import zlib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import onnx

import make_zoo
from pylib import bodies, smallnets, zoo
from pylib.tool import ROOT

COUNT = 8                                   # samples made for a model that has none
PICTURE_STEPS = ("mean", "std")             # what is left of the preprocessing of pictures that are arrays already
SMALL = {
    "encoder": smallnets.encoder, "perceptron": smallnets.perceptron,
    "lstm": smallnets.recurrent, "lstm-gru": partial(smallnets.recurrent, kinds=("LSTM", "GRU")),
    "rnn": partial(smallnets.recurrent, kinds=("RNN",)),
    "branches": bodies.branches, "branches-same-names": partial(bodies.branches, same_names=True), "loop": bodies.loop,
    "scan": bodies.scan, "nested": bodies.nested,
}


@dataclass(frozen=True)
class Model:
    name: str               # group/stem; the bundled model is its own group
    path: Path
    data: Path | None       # None: it has inputs that no sample can be made for
    options: tuple = ()     # of --data: preprocessing, number of samples

    @property
    def group(self):
        return self.name.partition("/")[0]


def _varied(arrays):
    """COUNT samples from one: floats are moved along and scaled, all else stays, as it may be an index or a shape."""
    def one(a, i):
        return (np.roll(a, 3 * i) * (1 - i / 16)).astype(a.dtype) if a.dtype.kind == "f" else a
    return {name: np.stack([one(a, i) for i in range(COUNT)]) for name, a in arrays.items()}


def _noise(name, shape):
    """Uniform in [0, 1): noise, over patches where it has the size of a picture. RandomState's stream of bits never changes."""
    rng = np.random.RandomState(zlib.crc32(name.encode()))
    x = rng.randint(0, 256, shape) / 256
    if len(shape) < 2 or min(shape[-2:]) < 32:
        return x
    h, w = shape[-2:]
    patches = rng.randint(0, 256, (*shape[:-2], h // 16 + 1, w // 16 + 1)).repeat(16, -2).repeat(16, -1) / 256
    return 0.75 * patches[..., :h, :w] + 0.25 * x


def _drawn(path, pictures):
    """COUNT samples for the inputs that the model declares, free dimensions being 1; None where one is no tensor of numbers.
    Pictures have values from 0 to 255, other floats from -2 to 2."""
    graph = onnx.load(path, load_external_data=False).graph
    given, made = {t.name for t in graph.initializer}, {}
    for value in (v for v in graph.input if v.name not in given):
        kind = value.type.tensor_type
        if not kind.elem_type or not kind.HasField("shape"):
            return None
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        if dtype.kind not in "fiub":
            return None
        x = _noise(value.name, (COUNT, *(d.dim_value or 1 for d in kind.shape.dim)))
        if dtype.kind == "f":
            x = np.floor(x * 256) if pictures else x * 4 - 2
        else:
            x = x * 2
        made[value.name] = x.astype(dtype)
    return made or None


def _stored(path):
    """The inputs of NAME.npz beside a model of testdata/models; None without it."""
    if not path.with_suffix(".npz").exists():
        return None
    with np.load(path.with_suffix(".npz")) as arrays:
        return {k[3:]: arrays[k] for k in arrays.files if k.startswith("in/")}


def _save(arrays, folder, name):
    if not arrays:
        return None
    out = folder / f"{name.replace('/', '-')}.npz"
    np.savez(out, **arrays)
    return out


def _loads(path):
    return not path.stem.startswith(("bad_", "unsupported_"))


def bundled(folder):
    """Those of testdata/."""
    base = ROOT / "testdata"
    found = [("demo", base / "demo.onnx"), *((f"models/{p.stem}", p) for p in sorted((base / "models").glob("*.onnx"))),
             *((f"onnx/{p.stem}", p) for p in sorted((base / "onnx").glob("*.onnx")) if _loads(p)),
             ("onnx/external", base / "onnx/external/model.onnx")]
    for name, path in found:
        stored = _stored(path)
        yield Model(name, path, _save(_varied(stored) if stored else _drawn(path, pictures=name == "demo"), folder, name),
                    ("--preprocess", "mean=127.5:std=127.5") if name == "demo" else ())


def small(folder, wanted):
    """Encoders, recurrent networks, and networks of control flow."""
    for name in (n for n in SMALL if wanted(f"small/{n}")):
        path = folder / f"{name}.onnx"
        data = path.with_suffix(".npy")
        np.save(data, np.stack(SMALL[name](path)))
        yield Model(f"small/{name}", path, data)


def networks(folder, made, jobs, wanted):
    """Those of make_zoo.py, from the folder `made` when it is given, else made anew in `folder`."""
    names = [n for n in make_zoo.NETS if wanted(f"zoo/{n}")]
    if not made and names:
        with ProcessPoolExecutor(jobs) as pool:
            list(pool.map(make_zoo.build, names, [folder] * len(names)))
    for name in names:
        path = (made or folder) / f"{name}.onnx"
        data = next((p for p in (path.with_suffix(".calib.npy"), path.with_suffix(".calib.npz")) if p.exists()), None)
        if not path.exists() or not data:
            sys.exit(f"digests: {made} has no network '{name}'; make_zoo.py makes it")
        yield Model(f"zoo/{name}", path, data, ("--samples", "16"))


def trained(folder, shared, wanted):
    """Those of zoo.py with a file in `shared`; in the place of pictures, whose decoding may differ, samples are made."""
    for m in (zoo.MODELS | zoo.WHOLE).values():
        path, data, _, _ = m.paths(shared)
        name = f"shared/{m.name}"
        if m.name == "demo" or not path.exists() or not wanted(name):
            continue
        steps, options = m.preprocess, ("--samples", "16")
        if data.suffix not in (".npy", ".npz"):
            data, options = _save(_drawn(path, pictures=True), folder, name), ()
            steps = ":".join(s for s in steps.split(":") if s.startswith(PICTURE_STEPS))
        yield Model(name, path, data, (*options, *(("--preprocess", steps) if steps else ())))


def content(path):
    """The bytes of samples, without the times that an .npz holds."""
    if path.suffix != ".npz":
        return path.read_bytes()
    with zipfile.ZipFile(path) as parts:
        return b"".join(name.encode() + parts.read(name) for name in sorted(parts.namelist()))
