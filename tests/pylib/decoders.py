"""Small decoders as exporters write them: keys and values given out, a cache taken in, both in the branches of an If."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BOOL, I64 = TensorProto.BOOL, TensorProto.INT64
FLOATS = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16}


class Graph:
    """Nodes and constants of a graph; a nested one writes its constants into the graph around it."""

    def __init__(self, prefix="", outer=None):
        self.prefix, self.nodes = prefix, []
        self.constants = outer.constants if outer else {}

    def const(self, name, array):
        self.constants[name] = np.asarray(array)
        return name

    def node(self, op, inputs, out=None, name=None, outputs=1, **attributes):
        at = f"{self.prefix}{op.lower()}{len(self.nodes)}"
        outs = [out] if out else [f"{at}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, outs, name=f"{self.prefix}{name}" if name else at, **attributes))
        return outs[0] if outputs == 1 else outs


class Decoder:
    """A transformer of `layers` with a head of its own. Weights are those of `seed`, whatever the form."""

    def __init__(self, width=64, heads=4, words=400, layers=2, seed=0, dtype="float32", wide_norms=False):
        """wide_norms: normalization and logits are computed in float32 between Casts, as exporters of float16 write them."""
        self.width, self.heads, self.words, self.layers, self.seed = width, heads, words, layers, seed
        self.wide_norms = wide_norms
        self.padded, self.crossed = False, False
        self.type, self.dtype = FLOATS[dtype], np.dtype(dtype)

    def weights(self, layer, kind, k, n, gain=1.0):
        """Correlated along the inputs and of heavy tails, as trained ones are."""
        rng = np.random.default_rng([self.seed, layer, sum(map(ord, kind))])
        return np.asarray(gain * rng.standard_t(5, (k, n)) * 0.77 / np.sqrt(k), self.dtype)

    def linear(self, g, x, layer, kind, k, n, gain=1.0):
        name = f"model.layers.{layer}.{kind}.weight" if layer < self.layers else f"{kind}.weight"
        return g.node("MatMul", [x, g.const(name, self.weights(layer, kind, k, n, gain))], name=f"/model/layers.{layer}/{kind}/MatMul")

    def norm(self, g, x):
        if self.wide_norms:
            wide = g.node("Cast", [x], to=TensorProto.FLOAT)
            mean = g.node("ReduceMean", [g.node("Pow", [wide, g.const("two", np.float32(2))])], axes=[-1], keepdims=1)
            root = g.node("Sqrt", [g.node("Add", [mean, g.const("epsilon", np.float32(1e-6))])])
            normal = g.node("Mul", [wide, g.node("Div", [g.const("one32", np.float32(1)), root])])
            return g.node("Mul", [g.const("norm.scale", np.ones(self.width, self.dtype)), g.node("Cast", [normal], to=self.type)])
        one, zero = np.ones(self.width, self.dtype), np.zeros(self.width, self.dtype)
        return g.node("LayerNormalization", [x, g.const("norm.scale", one), g.const("norm.shift", zero)], axis=-1)

    def split(self, g, x, out=None):
        shape = g.const("heads", np.array([0, 0, self.heads, self.width // self.heads]))
        return g.node("Transpose", [g.node("Reshape", [x, shape])], out=out, perm=[0, 2, 1, 3])

    def attend(self, g, x, layer, past, suffix):
        q, k, v = (self.linear(g, x, layer, f"{c}_proj", self.width, self.width) for c in "qkv")
        q, ends = self.split(g, q), [f"present.{layer}.{kind}{suffix}" for kind in ("key", "value")]
        k, v = (self.split(g, t, None if past else end) for t, end in zip((k, v), ends))
        if past:
            k, v = (g.node("Concat", [f"past_key_values.{layer}.{kind}", t], out=end, axis=2)
                    for kind, t, end in zip(("key", "value"), (k, v), ends))
        root = g.const("root", np.array(np.sqrt(self.width // self.heads), self.dtype))
        scores = g.node("Div", [g.node("MatMul", [q, g.node("Transpose", [k], perm=[0, 1, 3, 2])]), root])
        scores = g.node("Add", [scores, self.mask(g, scores)])  # a position sees those before it
        if self.padded:  # and none that attention_mask leaves out
            seen = g.node("Unsqueeze", [g.node("Cast", ["attention_mask"], to=self.type), g.const("axes12", np.array([1, 2]))])
            absent = g.node("Sub", [g.const("one_f", np.array(1, self.dtype)), seen])
            scores = g.node("Add", [scores, g.node("Mul", [absent, g.const("low", np.array(-10000, self.dtype))])])
        o = g.node("Transpose", [g.node("MatMul", [g.node("Softmax", [scores], axis=-1), v])], perm=[0, 2, 1, 3])
        o = g.node("Reshape", [o, g.const("joined", np.array([0, 0, self.width]))])
        return self.linear(g, o, layer, "o_proj", self.width, self.width)

    def mask(self, g, scores):
        """-10000 where a key comes after its query; queries are the last of all positions."""
        dims = g.node("Shape", [scores])
        queries, keys = (g.node("Gather", [dims, g.const(f"dim{d}", np.array(d))]) for d in (2, 3))
        zero, one = g.const("zero", np.array(0)), g.const("one", np.array(1))
        axis = g.const("axis0", np.array([0]))
        at = g.node("Range", [g.node("Sub", [keys, queries]), keys, one])
        later = g.node("Less", [g.node("Unsqueeze", [at, g.const("axis1", np.array([1]))]), g.node("Unsqueeze", [g.node("Range", [zero, keys, one]), axis])])
        return g.node("Where", [later, g.const("low", np.array(-10000, self.dtype)), g.const("none", np.array(0, self.dtype))])

    def attend_across(self, g, x, layer, past, suffix):
        """Attention to the encoder's rows. With a past, their keys and values come from it, and what is given out has no rows, as optimum
        writes merged decoders."""
        q = self.split(g, self.linear(g, x, layer, "cross_q_proj", self.width, self.width))
        ends = [f"present.{layer}.encoder.{kind}{suffix}" for kind in ("key", "value")]
        if past:
            k, v = (f"past_key_values.{layer}.encoder.{kind}" for kind in ("key", "value"))
            for t, end in zip((k, v), ends):
                g.node("Slice", [t, g.const("zeros1", np.array([0])), g.const("zeros1", np.array([0])), g.const("axis0", np.array([0]))], out=end)
        else:
            k, v = (self.split(g, self.linear(g, "encoder_hidden_states", layer, f"cross_{c}_proj", self.width, self.width), end)
                    for c, end in zip("kv", ends))
        scores = g.node("MatMul", [q, g.node("Transpose", [k], perm=[0, 1, 3, 2])])
        o = g.node("Transpose", [g.node("MatMul", [g.node("Softmax", [scores], axis=-1), v])], perm=[0, 2, 1, 3])
        o = g.node("Reshape", [o, g.const("joined", np.array([0, 0, self.width]))])
        return self.linear(g, o, layer, "cross_o_proj", self.width, self.width)

    def layers_of(self, g, x, past, suffix="", out="logits"):
        for layer in range(self.layers):
            x = g.node("Add", [x, self.attend(g, self.norm(g, x), layer, past, suffix)])
            if self.crossed:
                x = g.node("Add", [x, self.attend_across(g, self.norm(g, x), layer, past, suffix)])
            u = self.linear(g, self.norm(g, x), layer, "up_proj", self.width, 4 * self.width)
            u = g.node("Mul", [u, g.node("Sigmoid", [u])])
            x = g.node("Add", [x, self.linear(g, u, layer, "down_proj", 4 * self.width, self.width)])
        head = g.const("lm_head.weight", self.weights(self.layers, "lm_head", self.width, self.words, 4.0))
        y = g.node("MatMul", [self.norm(g, x), head], out=None if self.wide_norms else out, name="/lm_head/MatMul")
        return g.node("Cast", [y], out=out, to=TensorProto.FLOAT) if self.wide_norms else y

    def genai_layers(self, g):
        """As onnxruntime-genai's builder writes them: fused attention with its cache, fused sums and norms."""
        one = g.const("norm.scale", np.ones(self.width, self.dtype))
        valid = g.node("ReduceSum", ["attention_mask", g.const("last", np.array([1]))], keepdims=0)
        lengths = g.node("Cast", [g.node("Sub", [valid, g.const("one", np.array(1))])], to=TensorProto.INT32)
        total = g.node("Cast", [g.node("Gather", [g.node("Shape", ["attention_mask"]), g.const("second", np.array(1))])], to=TensorProto.INT32)
        x, n = self.embed(g), None
        for layer in range(self.layers):
            if layer == 0:
                n = g.node("SimplifiedLayerNormalization", [x, one], axis=-1, epsilon=1e-6)
            else:
                n, x = self.add_norm(g, x, d, one)
            q, k, v = (self.linear(g, n, layer, f"{c}_proj", self.width, self.width) for c in "qkv")
            past = [f"past_key_values.{layer}.{kind}" for kind in ("key", "value")]
            outs = [f"attended{layer}", f"present.{layer}.key", f"present.{layer}.value"]
            g.nodes.append(helper.make_node("GroupQueryAttention", [q, k, v, *past, lengths, total], outs, name=f"/attn{layer}", domain="com.microsoft",
                                            num_heads=self.heads, kv_num_heads=self.heads))
            n, x = self.add_norm(g, x, self.linear(g, outs[0], layer, "o_proj", self.width, self.width), one)
            u = self.linear(g, n, layer, "up_proj", self.width, 4 * self.width)
            d = self.linear(g, g.node("Mul", [u, g.node("Sigmoid", [u])]), layer, "down_proj", 4 * self.width, self.width)
        n, _ = self.add_norm(g, x, d, one)
        head = g.const("lm_head.weight", self.weights(self.layers, "lm_head", self.width, self.words, 4.0))
        g.node("MatMul", [n, head], out="logits", name="/lm_head/MatMul")

    def add_norm(self, g, x, y, scale):
        """The normalized sum, and the sum."""
        at = f"skip{len(g.nodes)}"
        g.nodes.append(helper.make_node("SkipSimplifiedLayerNormalization", [x, y, scale], [f"{at}_n", "", "", f"{at}_sum"], name=at,
                                        domain="com.microsoft", epsilon=1e-6))
        return f"{at}_n", f"{at}_sum"

    def embed(self, g, ids="input_ids"):
        table = np.asarray(np.random.default_rng([self.seed, 99]).standard_normal((self.words, self.width)), self.dtype)
        return g.node("Gather", [g.const("model.embed_tokens.weight", table), ids])

    def value(self, name, dims):
        return helper.make_tensor_value_info(name, self.type, dims)

    def caches(self, prefix, length, suffix=""):
        rows = {"": length, "encoder.": f"{'past_' if length == 'past' else ''}encoder"} if self.crossed else {"": length}
        return [self.value(f"{prefix}.{layer}.{of}{kind}{suffix}", ["batch", self.heads, n, self.width // self.heads])
                for layer in range(self.layers) for of, n in rows.items() for kind in ("key", "value")]

    def save(self, g, path, inputs, outputs, **how):
        constants = [numpy_helper.from_array(a, n) for n, a in g.constants.items()]
        graph = helper.make_graph(g.nodes, "decoder", inputs, outputs, constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8)
        if not any(n.domain or n.op_type == "SimplifiedLayerNormalization" for n in g.nodes):
            onnx.checker.check_model(model)
        onnx.save(model, path, **how)

    def write(self, path, form="past", **how):
        """form: `first` (the prompt alone), `past` (a cache goes in and out), `merged` (an If of both), `keys` (an encoder that gives out the
        keys and values of attention in another file), `embeds` (rows of the table are given), `genai`
        (operators of com.microsoft), `padded` (as `past`, with attention_mask and position_ids), `crossed` (as `merged`, and attends to the
        rows of an encoder)."""
        g = Graph()
        self.padded, self.crossed = form == "padded", form == "crossed"
        ids = helper.make_tensor_value_info("input_ids", I64, ["batch", "sequence"])
        logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT if self.wide_norms else self.type, ["batch", "sequence", self.words])
        ends = [logits, *self.caches("present", "total")]
        past = self.caches("past_key_values", "past")
        if form in ("merged", "crossed"):
            flag = helper.make_tensor_value_info("use_cache_branch", BOOL, [1])
            bodies = []
            for with_past in (True, False):
                b = Graph("with/" if with_past else "first/", g)
                suffix = ".with" if with_past else ".first"
                self.layers_of(b, self.embed(b), with_past, suffix, f"logits{suffix}")
                outs = [helper.make_tensor_value_info(f"logits{suffix}", logits.type.tensor_type.elem_type, ["batch", "sequence", self.words]),
                        *self.caches("present", "total", suffix)]
                bodies.append(helper.make_graph(b.nodes, b.prefix.rstrip("/"), [], outs))
            g.nodes.append(helper.make_node("If", ["use_cache_branch"], [e.name for e in ends], name="branch", then_branch=bodies[0], else_branch=bodies[1]))
            rows = [self.value("encoder_hidden_states", ["batch", "encoder", self.width])] if self.crossed else []
            return self.save(g, path, [ids, *rows, *past, flag], ends, **how)
        if form == "keys":
            x = g.node("Relu", [self.linear(g, self.embed(g), 0, "up_proj", self.width, self.width)])
            for layer in range(self.layers):
                for c, kind in (("k", "key"), ("v", "value")):
                    self.split(g, self.linear(g, x, layer, f"{c}_proj", self.width, self.width), f"cross.{layer}.{kind}")
            return self.save(g, path, [ids], self.caches("cross", "sequence"), **how)
        if form == "genai":
            self.genai_layers(g)
            mask = helper.make_tensor_value_info("attention_mask", I64, ["batch", "total"])
            return self.save(g, path, [ids, mask, *past], ends, **how)
        if form == "padded":
            places = np.asarray(np.random.default_rng([self.seed, 98]).standard_normal((64, self.width)), self.dtype)
            self.layers_of(g, g.node("Add", [self.embed(g), g.node("Gather", [g.const("places", places), "position_ids"])]), True)
            more = [helper.make_tensor_value_info(name, I64, ["batch", n]) for name, n in (("attention_mask", "all"), ("position_ids", "sequence"))]
            return self.save(g, path, [ids, *more, *past], ends, **how)
        if form == "embeds":
            self.layers_of(g, "inputs_embeds", True)
            return self.save(g, path, [self.value("inputs_embeds", ["batch", "sequence", self.width]), *past], ends, **how)
        self.layers_of(g, self.embed(g), form == "past")
        return self.save(g, path, [ids, *(past if form == "past" else [])], ends, **how)


def each_node(graph, path=""):
    """(path of the graph, node) of a graph and those nested in it."""
    for node in graph.node:
        yield path, node
        for a in node.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                yield from each_node(a.g, f"{path}{node.name}/{a.name}/")


def count(path, op):
    return sum(node.op_type == op for _, node in each_node(onnx.load(path, load_external_data=False).graph))


def bits(path):
    """{path and name of a product in blocks: its bits}"""
    return {where + node.name: next(a.i for a in node.attribute if a.name == "bits")
            for where, node in each_node(onnx.load(path, load_external_data=False).graph) if node.op_type == "MatMulNBits"}
