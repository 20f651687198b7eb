#!/usr/bin/env python3
"""Holds the ids that a tokenizer.json makes of texts against those of the library `tokenizers`.

    check_tokenizers.py [--qeval PROGRAM] [--only GLOB] [-v]

Tokenizers are trained here, by that library, on words made from a seed: WordPiece, BPE, Unigram and WordLevel, each with the normalizers, pre-tokenizers and special
tokens that published models have (BERT, GPT-2, RoBERTa, CLIP, Llama, Qwen, T5, XLM-RoBERTa, DeBERTa). Texts are of many scripts, with accents in both normal
forms, emoji, control characters, runs of white space, numbers, code, and special tokens in the middle. qeval runs a model whose outputs are its inputs.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages or in a build without tokenizers.
"""
import base64
import csv
import json
import random
import struct
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages

packages.need("numpy", "onnx", "tokenizers")
import numpy as np
import onnx
from onnx import TensorProto, helper
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from pylib.judge import Checker, options

del decoders  # ids alone are compared

TEXTS = [
    "Hello, world!", "the quick brown fox jumps over the lazy dog", "don't we'll they're I'm he'd you've it's DON'T WE'LL", "  leading and   many    spaces  ",
    "tabs\tand\x0bother\u00a0white\u2003space\u3000here", "naïve café résumé Ångström ﬁne ﬂow ½ ² ℌ", "naïve café résumé", "İstanbul IĞDIR ß ẞ ΣΑΣ ς",
    "中文字符和 English 混合", "日本語のテキスト、カタカナ。", "한국어 텍스트 입니다", "مرحبا بالعالم", "שלום עולם", "हिन्दी में पाठ", "ไทยภาษา", "Привет, мир! Ёлка",
    "emoji 👍🏽 👨\u200d👩\u200d👧 🇩🇪 ❤️ done", "3.14159 1,000,000 12 345 x86_64 ①②③ ٣٤٥ Ⅷ", "a.b-c_d/e\\f (g) [h] {i} <j> k@l #m $n %o ^p &q *r", "def f(x):\n    return x ** 2\n\n\n# end",
    "https://example.org/path?query=1&other=2", "CamelCaseWords and snake_case_words", "zero\u200bwidth\ufeffbom soft\u00adhyphen", "combining e\u0301 o\u0308 n\u0303",
    "[MASK] in the middle [SEP] and <mask> too </s> end", "word[MASK]word  <mask>  word", "@@@@ ####  !!!! ....", "ﷺ ㎏ Å ﬀ Ⅳ ｆｕｌｌ ｗｉｄｔｈ", "x" * 120, "aaaaaaaaaaaaaaaa bababababab",
    "\u2581 already there\u2581twice", "…ellipsis—dash–en ‘quotes’ “double”", "a", "ZWNJ \u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "mixed ĞÜŞİÖÇ ğüşıöç", "𝒳 𝔄 𝕏 \U0001f600 \U00020000",
    "unknown ☃ snowman ☂☃☄ row", "new <extra> token", "newtoken inside", "Zero 0 and 00 and 007",
]


def made_texts(n):
    """Characters of many kinds beside each other, from a seed."""
    r = random.Random(11)
    kinds = [" ", "  ", "\n", "\t", "a", "B", "the", "ing", "'s", "é", "e\u0301", "中", "文", "か\u3099", "ﬁ", "½", "7", "123", "٣", "Ⅷ", ".", "--", "_", "#", "€", "👍", "\u200d",
             "\ufe0f", "\u00a0", "\u2003", "\u00ad", "İ", "ß", "ж", "ẞ", "ا", "\u0650", "नि", "ไ", "한", "<mask>", "[MASK]", "▁", "☃", "ǅ", "ʼ", "²", "Å", "‿", "Ⓐ", "newtoken"]
    return ["".join(r.choices(kinds, k=r.randint(1, 24))) for _ in range(n)]


def corpus():
    r = random.Random(7)
    syllables = ["ba", "ke", "ri", "to", "mu", "the", "ing", "er", "an", "qu", "st", "on", "é", "ü", "ж", "ла", "中", "文", "日", "本"]
    words = ["".join(r.choices(syllables, k=r.randint(1, 4))) for _ in range(400)]
    lines = [" ".join(r.choices(words, k=12)) for _ in range(300)]
    return lines + [t for t in TEXTS if "☃" not in t] * 2


def trained(model, trainer, normalizer=None, splitter=None, post=None, added=()):
    t = Tokenizer(model)
    if normalizer:
        t.normalizer = normalizer
    if splitter:
        t.pre_tokenizer = splitter
    t.train_from_iterator(corpus(), trainer)
    for token in added:
        t.add_tokens([token]) if not token.special else t.add_special_tokens([token])
    if post:
        t.post_processor = post(t)
    return t


def template(first, last, types=True):
    def make(t):
        a, b = t.token_to_id(first) if first else None, t.token_to_id(last)
        single = (f"{first} " if first else "") + f"$A {last}"
        pair = single + (f" $B:1 {last}:1" if types else f" {last} $B {last}")
        return processors.TemplateProcessing(single=single, pair=pair, special_tokens=[(n, i) for n, i in ((first, a), (last, b)) if n])
    return make


def charsmap():
    """A precompiled map of characters as SentencePiece stores it: a double array over the bytes of a few keys, made by the plainest search for free places."""
    rules = {"ﬁ": "fi", "²": "2", "\u00a0": " ", "\u3000": " ", "ｆ": "f", "\u200b": "", "é": "é", "Å": "A", "℀": "a/c"}
    texts, where = b"", {}
    for key, to in rules.items():
        where[key.encode()] = len(texts)
        texts += to.encode() + b"\0"
    tree = {}
    for key in where:
        node = tree
        for byte in key:
            node = node.setdefault(byte, {})
        node[None] = where[key]
    units, used = {0: 0}, {0}

    def place(node, at):
        labels = [0 if b is None else b for b in node]
        offset = next(o for o in range(1, 1 << 16) if all((at ^ o ^ b) not in used for b in labels))
        base = at ^ offset
        for b in labels:
            used.add(base ^ b)
        units[at] = units[at] | offset << 10 | (1 << 8 if None in node else 0)
        for b, child in node.items():
            if b is None:
                units[base] = 1 << 31 | child
            else:
                units[base ^ b] = b
                place(child, base ^ b)

    place(tree, 0)
    size = (max(units) + 256) & ~255
    trie = b"".join(struct.pack("<I", units.get(i, 0)) for i in range(size))
    return base64.b64encode(struct.pack("<I", len(trie)) + trie + texts).decode()


LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = LLAMA3.replace("{1,3}", "")
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def all_tokenizers():
    """(name, tokenizer)"""
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe = dict(vocab_size=900, show_progress=False)

    def wordpiece(**norm):
        return trained(models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(vocab_size=700, special_tokens=BERT, show_progress=False),
                       normalizers.BertNormalizer(**norm), pre_tokenizers.BertPreTokenizer(), template("[CLS]", "[SEP]"))
    yield "bert-uncased", wordpiece(lowercase=True)
    yield "bert-cased", wordpiece(lowercase=False)
    yield "bert-accents", wordpiece(lowercase=True, strip_accents=False, handle_chinese_chars=False)
    yield "bert-processing", trained(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=12), trainers.WordPieceTrainer(vocab_size=500, special_tokens=BERT, show_progress=False),
                                     normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()]), pre_tokenizers.Whitespace(),
                                     lambda t: processors.BertProcessing(("[SEP]", t.token_to_id("[SEP]")), ("[CLS]", t.token_to_id("[CLS]"))))

    def bytes_(added=(), post=None, splitter=None, normalizer=None, **model):
        return trained(models.BPE(**model), trainers.BpeTrainer(initial_alphabet=alphabet, special_tokens=ROBERTA, **bpe), normalizer,
                       splitter or pre_tokenizers.ByteLevel(add_prefix_space=False), post, added)
    yield "gpt2", bytes_(post=lambda t: processors.ByteLevel(trim_offsets=False))
    yield "gpt2-prefix", bytes_(splitter=pre_tokenizers.ByteLevel(add_prefix_space=True))
    yield "roberta", bytes_([AddedToken("<mask>", lstrip=True, special=True)],
                            lambda t: processors.RobertaProcessing(("</s>", 2), ("<s>", 0)))
    yield "llama3", bytes_([AddedToken("<extra>", special=True)], splitter=pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
        post=lambda t: processors.Sequence([processors.ByteLevel(), template("<s>", "</s>")(t)]), ignore_merges=True)
    yield "qwen", bytes_([AddedToken("newtoken", normalized=True)], splitter=pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(QWEN), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]), normalizer=normalizers.NFC())
    yield "starcoder", bytes_(splitter=pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]))
    yield "clip", trained(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"), trainers.BpeTrainer(end_of_word_suffix="</w>", special_tokens=ROBERTA, **bpe),
                          normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]),
                          pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True)]))
    fallback = [f"<0x{i:02X}>" for i in range(256)]
    yield "llama2", trained(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True), trainers.BpeTrainer(special_tokens=ROBERTA + fallback, limit_alphabet=120, vocab_size=1100, show_progress=False),
                            normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None, template("<s>", "</s>", False),
                            [AddedToken("<extra>", rstrip=True, special=True)])
    yield "fused", trained(models.BPE(unk_token="<unk>", fuse_unk=True), trainers.BpeTrainer(special_tokens=ROBERTA, limit_alphabet=60, **bpe), None, pre_tokenizers.WhitespaceSplit())
    yield "unfused", trained(models.BPE(unk_token="<unk>"), trainers.BpeTrainer(special_tokens=ROBERTA, limit_alphabet=60, **bpe), normalizers.NFKD(), pre_tokenizers.Punctuation("merged_with_previous"))
    yield "mistral", trained(models.BPE(unk_token="<unk>", byte_fallback=True), trainers.BpeTrainer(special_tokens=ROBERTA + fallback, limit_alphabet=120, vocab_size=1100, show_progress=False),
                             None, pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False), None, [AddedToken("newtoken", single_word=True)])

    def unigram(normalizer, splitter, **more):
        return trained(models.Unigram(), trainers.UnigramTrainer(vocab_size=500, special_tokens=ROBERTA, unk_token="<unk>", show_progress=False), normalizer, splitter, **more)
    yield "t5", unigram(normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]), pre_tokenizers.Metaspace(), post=template(None, "</s>"))
    yield "xlm-roberta", unigram(normalizers.NFKC(), pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]), post=template("<s>", "</s>", False),
                                 added=[AddedToken("<mask>", lstrip=True, special=True)])
    yield "deberta", unigram(normalizers.Sequence([normalizers.Strip(), normalizers.NFKC()]), pre_tokenizers.Sequence([pre_tokenizers.Punctuation(), pre_tokenizers.Metaspace(prepend_scheme="never")]))
    mapped = json.loads(unigram(normalizers.NFKC(), pre_tokenizers.Metaspace()).to_str())
    mapped["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": charsmap()}
    yield "precompiled", Tokenizer.from_str(json.dumps(mapped))
    mapped["model"] |= {"byte_fallback": True, "vocab": mapped["model"]["vocab"] + [[b, -9.0] for b in fallback]}
    yield "bytes of a unigram", Tokenizer.from_str(json.dumps(mapped))
    yield "words", trained(models.WordLevel(unk_token="[UNK]"), trainers.WordLevelTrainer(vocab_size=300, special_tokens=BERT, show_progress=False),
                           normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()]), pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.CharDelimiterSplit("-")]))
    for how in ("merged_with_next", "contiguous", "isolated"):
        yield f"split {how}", trained(models.WordLevel(unk_token="[UNK]"), trainers.WordLevelTrainer(vocab_size=900, special_tokens=BERT, show_progress=False), None,
                                      pre_tokenizers.Split(Regex(r"[\s,.]"), how))


def copies(path):
    """A model whose outputs are its inputs."""
    names = ("input_ids", "attention_mask", "token_type_ids")
    nodes = [helper.make_node("Identity", [n], ["out_" + n]) for n in names]
    put = [helper.make_tensor_value_info(n, TensorProto.INT64, ["n", "tokens"]) for n in names]
    out = [helper.make_tensor_value_info("out_" + n, TensorProto.INT64, ["n", "tokens"]) for n in names]
    onnx.save(helper.make_model(helper.make_graph(nodes, "copies", put, out), opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def ours(c, model, data, steps):
    """For each sample (ids, mask, types), or the error as a text."""
    out = c.folder / "out.npz"
    out.unlink(missing_ok=True)
    r = subprocess.run([str(c.qeval), str(model), "--data", str(data), "--preprocess", steps, "--outputs", str(out), "--batch", "1", "--no-latency", "-q"], capture_output=True, text=True)
    if r.returncode or not out.exists():
        return r.stderr
    arrays = np.load(out)

    def rows(name):
        if name in arrays:
            return [list(map(int, row)) for row in arrays[name]]
        return [list(map(int, row)) for k in sorted(k for k in arrays if k.startswith(name + "/")) for row in arrays[k]]
    return list(zip(rows("out_input_ids"), rows("out_attention_mask"), rows("out_token_type_ids"), strict=True))


def hold(c, name, got, want):
    """want: encodings of the library."""
    if isinstance(got, str):
        c.hold(name, False, got[-300:])
        return
    want = [(e.ids, e.attention_mask, e.type_ids) for e in want]
    wrong = [i for i, (a, b) in enumerate(zip(got, want, strict=False)) if tuple(a) != tuple(b)]
    c.hold(name, len(got) == len(want) and not wrong, f"{len(got)} of {len(want)} texts; {wrong}: " + "; ".join(f"{got[i][0]} for {want[i][0]}" for i in wrong[:2]))


def check(c, name, t, model):
    path, lines, plain = c.folder / "tokenizer.json", c.folder / "texts.jsonl", c.folder / "texts.txt"
    t.save(str(path))
    texts = [x for x in TEXTS + made_texts(150) if t.encode(x).ids]
    lines.write_text("".join(json.dumps({"text": x}) + "\n" for x in texts), encoding="utf-8")
    hold(c, f"{name}: texts", ours(c, model, lines, f"tokenizer={path}"), t.encode_batch(texts))
    pairs = list(zip(texts, texts[1:], strict=False))
    lines.write_text("".join(json.dumps({"text": a, "text_pair": b}) + "\n" for a, b in pairs), encoding="utf-8")
    hold(c, f"{name}: pairs", ours(c, model, lines, f"tokenizer={path}"), t.encode_batch(pairs))
    with open(c.folder / "texts.csv", "w", encoding="utf-8", newline="") as f:
        table = csv.writer(f)
        table.writerows([("label", "text", "text_pair"), *[(i % 3, a, b) for i, (a, b) in enumerate(pairs)]])
    hold(c, f"{name}: a table", ours(c, model, c.folder / "texts.csv", f"tokenizer={path}"), t.encode_batch(pairs))
    one_line = [x for x in texts if not set(x) & set("\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029") and x.strip(" \t\r")]
    plain.write_text("\n".join(one_line) + "\n", encoding="utf-8")
    t.enable_truncation(9)
    t.enable_padding(length=9, pad_id=3)
    hold(c, f"{name}: cut and filled up", ours(c, model, plain, f"tokenizer={path}:length=9:pad-id=3"), t.encode_batch(one_line))
    lines.write_text("".join(json.dumps({"text": a, "text_pair": b}) + "\n" for a, b in pairs), encoding="utf-8")
    hold(c, f"{name}: pairs cut", ours(c, model, lines, f"tokenizer={path}:length=9:pad-id=3"), t.encode_batch(pairs))
    t.save(str(path))
    hold(c, f"{name}: length and padding of the file", ours(c, model, plain, f"tokenizer={path}:length=9"), t.encode_batch(one_line))


def check_nul(c, model):
    """U+0000 in words, merges and added tokens, beside U+FDD0, which stands for it inside, and a backslash in front of u0000."""
    path, plain = c.folder / "tokenizer.json", c.folder / "texts.txt"
    chars = ["\0", "\ufdd0", "0", "1", "a", "b", "\\", "u", "\ufdd00", "\\u0000"]
    words = {w: i for i, w in enumerate(["[UNK]", *chars, "\0\0", "a\0", "\0\ufdd0", "a\0b"])}
    texts = ["a\0b", "\0\0\0", "ab\0\ufdd00", "\ufdd0\0", "0\0001", "\\u0000 a\0", "\\\0", "a\0\0b \0", "z\0"]
    scores = [(w, -1.0 - i / 7) for w, i in words.items()]
    split = pre_tokenizers.Split(Regex("."), "isolated")
    for name, t in (("words", Tokenizer(models.WordLevel(words, unk_token="[UNK]"))),
                    ("merges", Tokenizer(models.BPE(words, [("\0", "\0"), ("a", "\0"), ("\0", "\ufdd0"), ("a\0", "b")], unk_token="[UNK]"))),
                    ("pieces", Tokenizer(models.WordPiece(words, unk_token="[UNK]"))),
                    ("scores", Tokenizer(models.Unigram(scores, 0, False)))):
        if name == "words":
            t.pre_tokenizer = split
        for added in (False, True):
            if added:
                t.add_tokens([AddedToken("b \0", special=False)])
            for escaped in (True, False):
                path.write_text(json.dumps(json.loads(t.to_str()), ensure_ascii=escaped), encoding="utf-8")
                plain.write_text("\n".join(texts) + "\n", encoding="utf-8")
                hold(c, f"U+0000 in {name}{', added' if added else ''}{', escaped' if escaped else ''}", ours(c, model, plain, f"tokenizer={path}"), t.encode_batch(texts))
    t.normalizer = normalizers.Replace("\0", "a")
    t.save(str(path))
    said = ours(c, model, plain, f"tokenizer={path}")
    c.hold("U+0000 in a pattern", isinstance(said, str) and "'normalizer' has the character U+0000" in said, said)


def main():
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--only", default="*", help="tokenizers whose names match")
    args = parser.parse_args()
    with Checker(args) as c:
        model = copies(c.folder / "copies.onnx")
        for name, t in all_tokenizers():
            if fnmatch(name, args.only):
                check(c, name, t, model)
        if fnmatch("U+0000", args.only):
            check_nul(c, model)
        return c.finish()


if __name__ == "__main__":
    sys.exit(main())
