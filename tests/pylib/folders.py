"""Small folders of models in the shapes that the programs which load them want: seeded random weights, configurations, tokenizers."""
import json

import numpy as np
import onnx
from onnx import TensorProto, helper

from pylib.decoders import Decoder
from pylib.smallnets import Net

WORDS = 400
BLANK = "\u0120"


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def vocabulary(words):
    """Syllables behind a blank, which is the letter G with a dot above as GPT-2 writes it, and the pieces that make them: (tokens, merges)."""
    consonants, vowels = "bcdfghjklmnpqrstvwxz", "aeiou"
    longer = [(f"G{a}{b}", c) for a in consonants for b in vowels for c in consonants]
    merges = [("G", a) for a in consonants] + [(f"G{a}", b) for a in consonants for b in vowels] + longer
    tokens = ["<unk>", "</s>", "G", *sorted(consonants + vowels + "y")]
    merges = [(a.replace("G", BLANK), b) for a, b in merges][:words - len(tokens)]
    return [t.replace("G", BLANK) for t in tokens] + [a + b for a, b in merges], merges


def text_of(ids, words=WORDS):
    """What the tokenizer makes these ids of, but for the first blank."""
    tokens = vocabulary(words)[0]
    return "".join(tokens[i] for i in ids if i > 1).replace(BLANK, " ").strip()


def tokenizer(folder, words=WORDS):
    """A BPE of bytes in the form of GPT-2's, as the library `tokenizers` writes it."""
    tokens, merges = vocabulary(words)
    special = [{"id": i, "content": c, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
               for i, c in enumerate(tokens[:2])]
    level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    put(folder / "tokenizer.json", {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
                                    "pre_tokenizer": level, "post_processor": None, "decoder": level,
                                    "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                                              "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                                              "vocab": {t: i for i, t in enumerate(tokens)}, "merges": [" ".join(m) for m in merges]}})
    put(folder / "tokenizer_config.json", {"tokenizer_class": "GPT2Tokenizer", "unk_token": "<unk>", "eos_token": "</s>", "bos_token": "</s>", "pad_token": "</s>",
                                           "model_max_length": 512, "add_prefix_space": True})


def encoder(path, words=WORDS, width=64, layers=2, seed=3, pooled=False, ids="input_ids", classes=0):
    """As exporters write it: input_ids and attention_mask in, last_hidden_state out; with classes, logits of these."""
    n = Net(seed)
    mask = n.node("Unsqueeze", [n.node("Cast", ["attention_mask"], to=TensorProto.FLOAT), n.const(np.array([2]))])
    x = n.node("Mul", [n.node("Gather", [n.const(n.weights(words, width, fan=1), "embeddings"), ids]), mask])
    for i in range(layers):
        q, k, v = (n.linear(x, width, width, f"layer{i}.{c}") for c in "qkv")
        low = n.node("Mul", [n.node("Sub", [n.node("Transpose", [mask], perm=[0, 2, 1]), n.const(np.float32(1))]), n.const(np.float32(10000))])
        p = n.node("Softmax", [n.node("Add", [n.node("Mul", [n.node("MatMul", [q, n.node("Transpose", [k], perm=[0, 2, 1])]), n.const(np.float32(0.1))]), low])])
        o = n.node("Add", [x, n.linear(n.node("MatMul", [p, v]), width, width, f"layer{i}.out")])
        x = n.node("LayerNormalization", [o, n.const(np.ones(width, np.float32)), n.const(n.small(width))], axis=-1)
        x = n.node("Add", [x, n.linear(n.node("Relu", [n.linear(x, width, 4 * width, f"layer{i}.up")]), 4 * width, width, f"layer{i}.down")])
    out, dims = "last_hidden_state", ["batch", "sequence", width]
    if classes:
        x = n.linear(n.node("ReduceMean", [x], axes=[1], keepdims=0), width, classes, "classifier")
        out, dims = "logits", ["batch", classes]
    n.nodes.append(helper.make_node("Identity", [x], [out]))
    ends = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"]) for name in (ids, "attention_mask")]
    graph = helper.make_graph(n.nodes, "encoder", ends, [helper.make_tensor_value_info(out, TensorProto.FLOAT, dims)], n.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)


def share_data(paths, name):
    """The models' constants in one file beside them, equal ones once."""
    places, data = {}, bytearray()
    for path in paths:
        model = onnx.load(path)
        for t in model.graph.initializer:
            if len(t.raw_data) < 1024:
                continue
            if t.raw_data not in places:
                data += bytes(-len(data) % 4096)
                places[t.raw_data] = len(data)
                data += t.raw_data
            at, length = places[t.raw_data], len(t.raw_data)
            t.ClearField("raw_data")
            t.data_location = TensorProto.EXTERNAL
            for key, value in (("location", name), ("offset", str(at)), ("length", str(length))):
                t.external_data.add(key=key, value=value)
        onnx.save(model, path)
    (paths[0].parent / name).write_bytes(data)


# ---- the folders; each function makes one, and returns it ----

def genai(folder, dtype="float32", external=False, words=WORDS, **shape):
    net = Decoder(dtype=dtype, words=words, **shape)
    folder.mkdir(parents=True)
    how = {"save_as_external_data": True, "location": "model.onnx.data", "size_threshold": 1024} if external else {}
    net.write(folder / "model.onnx", "genai", **how)
    names = {f"{when}_{kind}_names": f"{prefix}.%d.{kind}" for when, prefix in (("past", "past_key_values"), ("present", "present"))
             for kind in ("key", "value")}
    put(folder / "genai_config.json", {
        "model": {"bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0, "context_length": 64, "type": "llama", "vocab_size": net.words,
                  "decoder": {"filename": "model.onnx", "head_size": net.width // net.heads, "hidden_size": net.width,
                              "num_attention_heads": net.heads, "num_key_value_heads": net.heads, "num_hidden_layers": net.layers,
                              "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
                              "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask",
                                         **{k: v for k, v in names.items() if k.startswith("past")}},
                              "outputs": {"logits": "logits", **{k: v for k, v in names.items() if k.startswith("present")}}}},
        "search": {"max_length": 64, "do_sample": False, "past_present_share_buffer": False, "repetition_penalty": 1.0, "temperature": 1.0}})
    tokenizer(folder, words)
    put(folder / "special_tokens_map.json", {"eos_token": "</s>"})
    return folder


def llama_config(net):
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": net.width, "num_attention_heads": net.heads,
            "num_key_value_heads": net.heads, "num_hidden_layers": net.layers, "vocab_size": net.words, "bos_token_id": 1, "eos_token_id": 1,
            "rms_norm_eps": 1e-06, "rope_theta": 10000.0}


def transformers_js(folder, dtype="float32", words=WORDS, **shape):
    """A decoder with its cache, mask and positions."""
    net = Decoder(dtype=dtype, words=words, **shape)
    (folder / "onnx").mkdir(parents=True)
    net.write(folder / "onnx" / ("model.onnx" if dtype == "float32" else "model_fp16.onnx"), "padded")
    put(folder / "config.json", llama_config(net) | {"transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16", "fp16": "float16"}}})
    put(folder / "generation_config.json", {"eos_token_id": 1, "max_new_tokens": 8})
    tokenizer(folder, words)
    return folder


def optimum(folder, shared=False):
    """An encoder, and a decoder in three files, as for a model that translates."""
    net = Decoder(words=WORDS)
    encoder(folder / "encoder_model.onnx")
    for name, form in (("decoder_model", "first"), ("decoder_with_past_model", "past"), ("decoder_model_merged", "merged")):
        net.write(folder / f"{name}.onnx", form)
    if shared:
        share_data([folder / "decoder_model.onnx", folder / "decoder_with_past_model.onnx"], "decoder.onnx_data")
    put(folder / "config.json", {"architectures": ["T5ForConditionalGeneration"], "model_type": "t5", "is_encoder_decoder": True, "d_model": net.width,
                                 "num_layers": net.layers, "num_heads": net.heads, "vocab_size": net.words})
    put(folder / "generation_config.json", {"eos_token_id": 1})
    tokenizer(folder)
    return folder


def sentence_transformers(folder):
    encoder(folder / "onnx/model.onnx")
    put(folder / "modules.json", [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                                  {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])
    put(folder / "1_Pooling/config.json", {"word_embedding_dimension": 64, "pooling_mode_mean_tokens": True})
    put(folder / "config.json", {"architectures": ["BertModel"], "model_type": "bert", "hidden_size": 64, "vocab_size": WORDS,
                                 "num_hidden_layers": 2, "num_attention_heads": 1, "intermediate_size": 256})
    put(folder / "sentence_bert_config.json", {"max_seq_length": 64, "do_lower_case": False})
    (folder / "model.safetensors").write_bytes(bytes(4096))
    tokenizer(folder)
    return folder


def sherpa(folder, width=80, hidden=64, words=50, seed=7):
    """A transducer: encoder, decoder, joiner, and what sherpa-onnx reads from their metadata."""
    folder.mkdir(parents=True)

    def save(net, name, inputs, outputs, metadata):
        for made, (out, kind, dims) in outputs.items():
            net.nodes.append(helper.make_node("Identity", [made], [out]))
        graph = helper.make_graph(net.nodes, name, [helper.make_tensor_value_info(*i) for i in inputs],
                                  [helper.make_tensor_value_info(*o) for o in outputs.values()], net.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        helper.set_model_props(model, {k: str(v) for k, v in metadata.items()})
        onnx.checker.check_model(model)
        onnx.save(model, folder / f"{name}-epoch-99-avg-1.onnx")
    f, i = TensorProto.FLOAT, TensorProto.INT64
    n = Net(seed)
    x = n.node("Relu", [n.linear("x", width, 4 * hidden, "up")])
    for k in range(3):
        x = n.node("Relu", [n.linear(x, 4 * hidden, 4 * hidden, f"layer{k}")])
    lens = n.node("Add", ["x_lens", n.const(np.array([0]))])
    save(n, "encoder", [("x", f, ["N", "T", width]), ("x_lens", i, ["N"])],
         {n.linear(x, 4 * hidden, hidden, "down"): ("encoder_out", f, ["N", "T", hidden]), lens: ("encoder_out_lens", i, ["N"])},
         {"model_type": "zipformer2", "version": 1, "model_author": "k2-fsa", "comment": "made"})
    n = Net(seed + 1)
    table = n.node("Gather", [n.const(n.weights(words, hidden, fan=1), "table"), "y"])
    joined = n.node("Reshape", [table, n.const(np.array([-1, 2 * hidden]))])
    save(n, "decoder", [("y", i, ["N", 2])], {n.linear(joined, 2 * hidden, hidden, "proj"): ("decoder_out", f, ["N", hidden])},
         {"vocab_size": words, "context_size": 2})
    n = Net(seed + 2)
    x = n.node("Tanh", [n.node("Add", ["encoder_out", "decoder_out"])])
    save(n, "joiner", [("encoder_out", f, ["N", hidden]), ("decoder_out", f, ["N", hidden])],
         {n.linear(x, hidden, words, "out"): ("logit", f, ["N", words])}, {"joiner_dim": hidden})
    put(folder / "tokens.txt", "".join(f"t{k} {k}\n" for k in range(words)))
    return folder


def piper(folder, seed=9):
    """Numbers of sounds in, samples of sound out."""
    folder.mkdir(parents=True)
    n, f, i = Net(seed), TensorProto.FLOAT, TensorProto.INT64
    x = n.node("Transpose", [n.node("Gather", [n.const(n.weights(130, 64, fan=1), "table"), "input"])], perm=[0, 2, 1])
    for k in range(3):
        x = n.node("Relu", [n.node("Conv", [x, n.const(n.weights(64, 64, 5, fan=320), f"conv{k}.weight")], f"conv{k}", pads=[2, 2])])
    noise = n.node("Gather", ["scales", n.const(np.array(0))])
    length = n.node("Cast", [n.node("ReduceSum", ["input_lengths"], keepdims=0)], to=f)
    x = n.node("Mul", [n.node("Conv", [x, n.const(n.weights(1, 64, 5, fan=320), "post.weight")], "post", pads=[2, 2]), noise])
    x = n.node("Add", [x, n.node("Mul", [length, n.const(np.float32(0))])])
    n.nodes.append(helper.make_node("Unsqueeze", [x, n.const(np.array([1]))], ["output"]))
    graph = helper.make_graph(n.nodes, "voice", [helper.make_tensor_value_info("input", i, ["batch", "phonemes"]),
                                                 helper.make_tensor_value_info("input_lengths", i, ["batch"]),
                                                 helper.make_tensor_value_info("scales", f, [3])],
                              [helper.make_tensor_value_info("output", f, ["batch", 1, 1, "time"])], n.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, folder / "en_US-made-low.onnx")
    put(folder / "en_US-made-low.onnx.json", {"audio": {"sample_rate": 16000}, "num_speakers": 1, "num_symbols": 130, "phoneme_type": "text", "espeak": {"voice": "en-us"},
                                              "phoneme_id_map": {chr(97 + k): [k + 3] for k in range(26)} | {"_": [0], "^": [1], "$": [2]},
                                              "inference": {"noise_scale": 0.667, "length_scale": 1, "noise_w": 0.8}})
    put(folder / "MODEL_CARD", "A voice without a speaker.\n")
    return folder


ALL = {"genai": genai, "transformers.js": transformers_js, "optimum": optimum, "sentence-transformers": sentence_transformers,
       "sherpa-onnx": sherpa, "piper": piper}
