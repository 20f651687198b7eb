#!/usr/bin/env python3
"""Makes the first inputs of fuzz targets whose input is a message, of sequences of calls, of files of gates, of earlier reports, of records and of ranges in
other tools' forms, and of tokenizers: testdata/fuzz/baseline/, calls/, external/, functions/, gates/, record/, stored/, encodings/ and tokenizer/.

With a built qeval as argument also parts of evaluations: part/. No file depends on the date or the machine. tests/fuzz/fuzz_external.c says how a model tells what files lie beside it."""
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from onnx import AttributeProto, OptionalProto, SequenceProto, TensorProto, helper, numpy_helper

OUT = Path(__file__).resolve().parents[2] / "testdata" / "fuzz"
F32 = TensorProto.FLOAT


def info(name, dims):
    return helper.make_tensor_value_info(name, F32, dims)


def wrap(graph, **more):
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("f", 1)], **more)


def save(name, model):
    path = OUT / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString())


def weights(name, dims, **where):
    """A tensor outside; where: location, offset, length."""
    t = TensorProto(name=name, dims=dims, data_type=F32, data_location=TensorProto.EXTERNAL)
    for key, value in where.items():
        t.external_data.add(key=key, value=str(value))
    return t


def outside(name, files, *tensors):
    """Adds the tensors, all of shape [4], to the input one after the other."""
    nodes = [helper.make_node("Add", [f"v{i}", t.name], [f"v{i + 1}"]) for i, t in enumerate(tensors)]
    graph = helper.make_graph(nodes, "g", [info("v0", [4])], [info(f"v{len(tensors)}", [4])], list(tensors))
    model = wrap(graph)
    helper.set_model_props(model, files)
    save(f"external/{name}.onnx", model)


def stored():
    """Values of test cases."""
    tensor = numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "t")
    numbers = [numpy_helper.from_array(np.arange(n), f"t{n}") for n in (0, 1, 3)]
    typed = helper.make_tensor("typed", TensorProto.FLOAT16, [3], [1, 2, 3])
    packed = helper.make_tensor("packed", TensorProto.INT4, [3], [1, -2, 3])
    words = helper.make_tensor("words", TensorProto.STRING, [2], [b"a", b""])
    sequence = SequenceProto(name="s", elem_type=SequenceProto.TENSOR, tensor_values=numbers)
    files = {"tensor": tensor, "typed": typed, "packed": packed, "words": words, "sequence": sequence,
             "mixed": SequenceProto(name="m", elem_type=SequenceProto.TENSOR, tensor_values=[tensor, typed, packed, words]),
             "nested": SequenceProto(name="n", elem_type=SequenceProto.SEQUENCE, sequence_values=[sequence, sequence]),
             "nothing": OptionalProto(name="o", elem_type=OptionalProto.TENSOR),
             "optional": OptionalProto(name="o", elem_type=OptionalProto.TENSOR, tensor_value=tensor),
             "optional_sequence": OptionalProto(name="o", elem_type=OptionalProto.SEQUENCE, sequence_value=sequence)}
    for name, value in files.items():
        save(f"stored/{name}.pb", value)


def encodings():
    """Ranges of testdata/demo.onnx, as other tools write them."""
    def array(v):
        return {"data": v, "dtype": "float32", "CLS": "numpy.array"}

    ort = {n: {"lowest": array(lo), "highest": array(hi), "CLS": "TensorData"} for n, lo, hi in (("image", -1.0, [0.5]), ("relu1_out", 0, 4.5))}
    method = {"CLS": "CalibrationMethod", "value": "CalibrationMethod.MinMax"}
    old = {"image": [{"bitwidth": 8, "dtype": "int", "is_symmetric": "False", "max": 1.0, "min": -1.0, "offset": -128, "scale": 0.0078125}],
           "clip1_out": [{"bitwidth": 16, "is_symmetric": "True", "offset": -32767, "scale": 0.001}], "relu1_out": [{"bitwidth": 16, "dtype": "float"}],
           "relu2_out": [{"bitwidth": 4, "min": -1, "max": 2}] * 2}
    first = [{"name": "image", "dtype": "INT", "enc_type": "PER_TENSOR", "bw": 8, "is_sym": True, "scale": [0.5], "offset": [-128]},
             {"name": "relu1_out", "dtype": "INT", "enc_type": "PER_CHANNEL", "bw": 8, "is_sym": False, "scale": [0.5, 0.25], "offset": [0, -3]}]
    second = [{"name": "image", "output_dtype": "int8", "y_scale": 0.5, "y_zero_point": -3}, {"name": "relu1_out", "output_dtype": "float16"}]
    texts = {"ort.json": json.dumps(ort), "ort_data.json": json.dumps({"CLS": "TensorsData", "data": ort, "calibration_method": method}),
             "aimet_0_6_1.json": json.dumps({"version": "0.6.1", "activation_encodings": old, "param_encodings": {"conv1_w": []}}),
             "aimet_1_0_0.json": json.dumps({"version": "1.0.0", "activation_encodings": first, "param_encodings": []}),
             "aimet_2_0_0.json": json.dumps({"version": "2.0.0", "encodings": second}),
             "ort.cache": "image 1.0\nrelu1_out 4.5\n", "tensorrt.cache": "TRT-8601-EntropyCalibration2\nimage: 3c010204\nrelu1_out: 3d03f043\n",
             "ncnn.table": "conv1_param_0 12.5 127.0 \nfc_param_0 1 2\nconv1 127.0 \n#conv2 30.5\nfc 52.781685 26 \n"}
    for name, text in texts.items():
        path = OUT / "encodings" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def gates():
    """Files of gates: every kind, values at the edges of what is read, and mistakes."""
    texts = {"all": "# what ships\nmax-drop top1 0.5%\nmax-drop mse=10r%\nmax-drop 0.1\nmin-agreement 99%\nmin-sqnr 30dB\nmin-speedup 1.2\n"
                    "max-latency 4.5ms\nmax-size 25%\nmax-memory 12MB\n",
             "edges": "max-drop -1e308\r\nmax-drop sqnr 1e-320\r\nmin-sqnr -1e308\r\nmax-size 1e15\nmax-memory 1000%\nmin-speedup 1e-300\nmin-agreement 0",
             "twice": "min-sqnr 3\nmin-sqnr 4\n", "unknown": "min-spedup 2\n", "missing": "max-drop", "more": "max-drop top1 1 2\n", "metric": "max-drop top9 1%\n"}
    (OUT / "gates").mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (OUT / "gates" / name).write_bytes(text.encode())


def baselines():
    """Reports of earlier runs: whole, with numbers that JSON cannot hold, of several models, and cut short."""
    def model(path, **more):
        return {"path": path, "size_bytes": 1000, "peak_bytes": 5000, "output_sqnr_db": 30.5, "drop": {"top1": {"value": 0.01}, "top5": {"value": None}}, **more}
    whole = {"schema": "octet-eval-1", "samples": 400, "models": [model("m.onnx"), model("d/q.onnx")]}
    texts = {"whole": json.dumps(whole), "cut": json.dumps(whole)[:150], "exact": json.dumps({**whole, "models": [{}, model("q.onnx", output_sqnr_db=None, exact=True)]}),
             "several": json.dumps({**whole, "models": [{}, model("a"), model("q.onnx", size_bytes=10 ** 300), model("b", drop=[])]}),
             "types": json.dumps({"schema": "octet-eval-1", "samples": "x", "models": [1, {"path": 1}]})}
    (OUT / "baseline").mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (OUT / "baseline" / name).write_text(text)


def records():
    '''What a written model says of its inputs, and the command that made it: what conversions write, and texts that none writes.'''
    def line(part, more=""):
        return f"{part} sha256:{hashlib.sha256(part.encode()).hexdigest()}{more}"

    source, samples, image = line("source"), line("samples", " 000000000064"), "--preprocess mean=127.5:std=127.5"
    files = [source, *map(line, ("source-data", "table", "policy", "target", "labels")), samples]
    texts = {"source": ([source], "qconvert m.onnx"),
             "samples": ([source, samples], f"qconvert m.onnx --data calib.csv {image} --samples 64"),
             "files": (files, "qconvert m.onnx --data calib.csv --target t.target --calib t.calib --policy p.txt --max-drop 1% --labels l.npy"),
             "choices": ([source], "qconvert m.onnx --target onnxruntime-x86 --scheme weight-only --bits 4 --block-size 32 --set 'name:a b=float' --disable-pass scalar"),
             "goals": ([source, samples], f"qconvert m.onnx --data 'a b.npy' {image} --min-sqnr 30 --metric-cmd 'cat >/dev/null; echo '\\''0.5'\\''' --less-is-better --max-drop 1"),
             "unknown": ([source, "samples -", "labels -"], "qconvert -- --data pipe:cat --data -"),
             "twice": ([source, source], "qconvert m.onnx --json x.json -o y.onnx"), "cut": ([source[:50]], "qconvert 'm.onnx")}
    (OUT / "record").mkdir(parents=True, exist_ok=True)
    for name, (lines, command) in texts.items():
        (OUT / "record" / name).write_text("\n".join(lines) + "\n\n" + command)


def parts(qeval):
    """Parts of evaluations of testdata/demo.onnx beside itself: without a sample, of two, with layers."""
    data = OUT.parent
    compare = [qeval, "demo.onnx", "demo.onnx", "--data", "images/eval.csv", "--preprocess", "mean=127.5:std=127.5", "--threads", "1", "-q"]
    (OUT / "part").mkdir(parents=True, exist_ok=True)
    for name, more in (("none", ["-n", "1", "--shard", "1/2"]), ("two", ["-n", "2", "--shard", "0/1", "--per-class", "--no-layers"]),
                       ("layers", ["-n", "1", "--shard", "0/1", "--layers", "--metric", "psnr,f1"])):
        subprocess.run([*compare, *more, "-o", OUT / "part" / name], check=True, cwd=data)


def calls():
    """Sequences of calls, as tests/fuzz/fuzz_calls.c reads them: a byte for the call, then what it takes."""
    opened, loaded = [0, 0], [1, 0, 0, 0, 0, 2, 0]  # octet 0; model 0 with it: Identity of float32, one thread, from memory
    from_file = [1, 1, 0, 2, 0, 1, 1]               # model 1: Relu, from m.onnx
    array = [0, 2, 3, 2, 4, 0] + list(range(32)) + [0]  # no name, float32, [2,4], no shift; then data
    run = [2, 0, 0, 1] + array
    moved = [2, 0, 0, 1] + [0, 2, 3, 2, 4, 1] + list(range(33)) + [0]
    huge = [2, 0, 0, 1] + [0, 2, 3, 7, 4, 0]
    words = ["m.onnx", "--data=x.csv", "--output=o.onnx", "-o-", "--", "--json=r.json", "lint", "--scheme=dynamic", "--help"]

    def command(which, *arguments):
        return [4, 0, which, len(arguments)] + [words.index(a) for a in arguments] + [0]

    sequences = {
        "run": opened + loaded + run + [7, 0, 0, 0, 0] + run + moved + [8, 0] + run,
        "misuse": [2, 2, 3, 0] + [4, 2, 1, 0, 16] + opened + [2, 0, 3, 1] + array + loaded + huge + [5, 0] + [9, 0],
        "convert": opened + from_file + command(1, "m.onnx", "--scheme=dynamic", "--output=o.onnx") + command(1, "m.onnx", "-o-") + command(1, "--", "m.onnx"),
        "callbacks": opened + [0, 1] + from_file + [6, 0, 1, 1] + command(1, "m.onnx", "--scheme=dynamic") + [4, 1, 1, 1, 0, 0] + [5, 0] + command(1, "lint", "m.onnx"),
        "evaluate": opened + from_file + command(2, "m.onnx", "m.onnx", "--data=x.csv") + command(0, "--help") + [7, 0, 1, 2, 1],
    }
    for name, sequence in sequences.items():
        path = OUT / "calls" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(sequence))


def tokenizers():
    """A text, a zero, and the file; one of each model, and of each stage."""
    def plain(type_, **more):
        return {"type": type_, **more}

    def model(type_, vocab, **more):
        return plain(type_, vocab=vocab if isinstance(vocab, list) else {w: i for i, w in enumerate(vocab.split(" "))}, **more)

    bert = {"normalizer": plain("BertNormalizer", clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True),
            "pre_tokenizer": plain("BertPreTokenizer"), "post_processor": plain("BertProcessing", sep=["[SEP]", 3], cls=["[CLS]", 2]),
            "truncation": {"max_length": 12, "direction": "Left"}, "padding": {"pad_id": 0},
            "added_tokens": [{"id": 4, "content": "[MASK]", "special": True, "lstrip": True, "rstrip": True}],
            "model": model("WordPiece", "[PAD] [UNK] [CLS] [SEP] [MASK] a b ##b ##c ab , \u4e2d", unk_token="[UNK]", continuing_subword_prefix="##", max_input_chars_per_word=20)}
    gpt = {"pre_tokenizer": plain("Sequence", pretokenizers=[plain("Split", pattern={"Regex": "\\p{N}{1,3}|'s"}, behavior="Isolated"), plain("ByteLevel", add_prefix_space=True)]),
           "normalizer": plain("Sequence", normalizers=[plain("NFC"), plain("Replace", pattern={"String": "  "}, content=" ")]),
           "post_processor": plain("Sequence", processors=[plain("ByteLevel"), plain("RobertaProcessing", sep=["b", 1], cls=["a", 0])]),
           "added_tokens": [{"id": 9, "content": "new", "single_word": True}],
           "model": model("BPE", "a b c \u0120 \u0120a ab abc", merges=["\u0120 a", ["a", "b"], "ab c"], ignore_merges=True)}
    clip = {"normalizer": plain("Lowercase"), "pre_tokenizer": plain("Punctuation", behavior="MergedWithPrevious"),
            "model": model("BPE", "a b a</w> b</w> ab</w> ? <0x41> <0xC3> <0xA9>", merges=["a b</w>"], unk_token="?", fuse_unk=True, end_of_word_suffix="</w>", byte_fallback=True)}
    t5 = {"normalizer": plain("Sequence", normalizers=[plain("Nmt"), plain("NFKC"), plain("Strip"), plain("StripAccents"), plain("Prepend", prepend="\u2581")]),
          "pre_tokenizer": plain("Metaspace", replacement="\u2581", prepend_scheme="first", split=True),
          "post_processor": plain("TemplateProcessing", single=[{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
                                  pair=[{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}], special_tokens={"</s>": {"ids": [0]}}),
          "model": model("Unigram", [["</s>", 0], ["<unk>", 0], ["a", -1.5], ["\u2581a", -2], ["ab", -3], ["<0x62>", -9]], unk_id=1, byte_fallback=True)}
    mapped = {"normalizer": plain("Precompiled", precompiled_charsmap="EAAAAAAEAAAAAAAAAAAAAAAAAABhAA=="), "pre_tokenizer": plain("Digits", individual_digits=True),
              "model": model("WordLevel", "a b ?", unk_token="?")}
    words = {"pre_tokenizer": plain("Sequence", pretokenizers=[plain("Whitespace"), plain("WhitespaceSplit"), plain("CharDelimiterSplit", delimiter="-")]),
             "model": model("WordLevel", "a b ?", unk_token="?")}
    text = "ab [MASK] a-b's  new \u00e9\u4e2d 123, \u2603".encode() + b"\0"
    folder = OUT / "tokenizer"
    folder.mkdir(parents=True, exist_ok=True)
    for name, one in {"bert": bert, "gpt": gpt, "clip": clip, "t5": t5, "mapped": mapped, "words": words}.items():
        (folder / name).write_bytes(text + json.dumps(one, separators=(",", ":")).encode())


def main():
    calls()
    if len(sys.argv) > 1:
        parts(Path(sys.argv[1]).resolve())
    stored()
    encodings()
    tokenizers()
    gates()
    baselines()
    records()
    outside("two", {"w.bin": "64", "v.bin": "32"}, weights("a", [4], location="w.bin", offset=0, length=16),
            weights("b", [4], location="v.bin", offset=16, length=16))
    outside("short", {"w.bin": "8"}, weights("a", [4], location="w.bin", length=16))
    outside("whole", {"w.bin": "16"}, weights("a", [4], location="w.bin"))
    outside("overlap", {"w.bin": "4096"}, weights("a", [4], location="w.bin", offset=3, length=16),
            weights("b", [4], location="w.bin", offset=4080, length=16), weights("c", [4], location="./w.bin", offset=4080))
    outside("folder", {"w.bin": "dir", "dir": "dir"}, weights("a", [4], location="w.bin"), weights("b", [4], location="dir/x"))
    outside("fifo", {"w.bin": "fifo"}, weights("a", [4], location="w.bin", length=16))
    for i in range(9):
        outside(f"link{i}", {"l": f"l{i}", "w.bin": "16", "dir": "dir"}, weights("a", [4], location="l", length=16))
    outside("upwards", {"w.bin": "16"}, weights("a", [4], location="../w.bin", length=16), weights("b", [4], location="/etc/passwd", length=16))
    outside("numbers", {"w.bin": "16"}, weights("a", [4], location="w.bin", offset="18446744073709551615", length="-1"))
    outside("constant", {"w.bin": "32"}, weights("a", [4], location="w.bin", length=16, checksum="00"))

    x, y = [info("x", ["N", 4])], [info("y", ["N", 4])]
    opset = [helper.make_opsetid("", 21), helper.make_opsetid("f", 1)]

    def function(name, ins, outs, nodes, attrs=()):
        return helper.make_function("f", name, ins, outs, nodes, opset, list(attrs))

    def call(name, ins, outs, **attrs):
        return helper.make_node(name, ins, outs, domain="f", **attrs)

    relu = helper.make_node("Relu", ["a"], ["b"])
    leaky = helper.make_node("LeakyRelu", ["a"], ["b"])
    leaky.attribute.append(AttributeProto(name="alpha", type=AttributeProto.FLOAT, ref_attr_name="alpha"))
    leaf = function("leaf", ["a"], ["b"], [relu])
    twice = function("twice", ["a"], ["c"], [call("leaf", ["a"], ["b"]), call("leaf", ["b"], ["c"])])
    slope = function("slope", ["a"], ["b"], [leaky], ["alpha"])
    main_graph = helper.make_graph([call("twice", ["x"], ["m"]), call("slope", ["m"], ["y"], alpha=0.25)], "g", x, y)
    save("functions/nested.onnx", wrap(main_graph, functions=[leaf, twice, slope]))

    tower = [leaf] + [function(f"f{i}", ["a"], ["c"], [call(f"f{i - 1}" if i else "leaf", ["a"], ["b"]), call(f"f{i - 1}" if i else "leaf", ["b"], ["c"])])
                      for i in range(31)]
    save("functions/tower.onnx", wrap(helper.make_graph([call("f30", ["x"], ["y"])], "g", x, y), functions=tower))
    loop = [function("p", ["a"], ["b"], [call("q", ["a"], ["b"])]), function("q", ["a"], ["b"], [call("p", ["a"], ["b"])])]
    save("functions/loop.onnx", wrap(helper.make_graph([call("p", ["x"], ["y"])], "g", x, y), functions=loop))
    branch = helper.make_graph([call("leaf", ["a"], ["inner"])], "branch", [], [helper.make_empty_tensor_value_info("inner")])
    choose = function("choose", ["c", "a"], ["b"], [helper.make_node("If", ["c"], ["b"], then_branch=branch, else_branch=branch)])
    cond = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    save("functions/branch.onnx", wrap(helper.make_graph([call("choose", ["c", "x"], ["y"])], "g", [cond, *x], y), functions=[leaf, choose]))
    # Outputs that nobody takes, inputs that are not there, an output that is an input.
    odd = function("odd", ["a", "b"], ["a", "d"], [helper.make_node("Identity", ["b"], ["d"])])
    save("functions/odd.onnx", wrap(helper.make_graph([call("odd", ["x"], ["y"])], "g", x, y), functions=[odd]))


if __name__ == "__main__":
    main()
