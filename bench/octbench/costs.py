"""Costs of ONNX Runtime's operators by kind: small models, kernel times, fits."""
import json
import os
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

F, RUNS = np.float32, 25
TERMS = ("call", "mac", "out", "in", "weight")  # picoseconds: once, and for each of these
# Kernels that do an operator's work, in the order in which a model is searched for them; layout changes around them do not count.
BESIDE = {"QuantizeLinear", "DequantizeLinear", "ReorderInput", "ReorderOutput", "Identity"}


class Case:
    """A model of one operator. how: float, static (quantizers at data inputs and the output) or dynamic."""

    def __init__(self, how):
        self.how, self.nodes, self.inits, self.inputs, self.feed = how, [], [], [], {}
        self.rng = np.random.default_rng(len(how))
        self.keeps = False  # the output has the parameters of the input, as data movement wants it

    def const(self, value, kind=None):
        name = f"c{len(self.inits)}"
        self.inits.append(numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def op(self, kind, *inputs, domain="", **attrs):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], domain=domain, **attrs))
        return name

    def quantized(self, x, scale=0.04):
        pair = [self.const(scale, F), self.const(128, np.uint8)]
        return self.op("DequantizeLinear", self.op("QuantizeLinear", x, *pair), *pair)

    def data(self, *shape):
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        self.feed[name] = self.rng.normal(size=shape).astype(F)
        return self.quantized(name) if self.how == "static" else name

    def weights(self, w, axis, bias=None):
        """Of a layer, and its bias: quantized by channel."""
        w, more = np.asarray(w, F), [] if bias is None else [np.asarray(bias, F)]
        if self.how != "static":
            return [self.const(w), *(self.const(b) for b in more)]
        others = tuple(i for i in range(w.ndim) if i != axis)
        scale = (abs(w).max(others) / 64 + 1e-9).astype(F)  # of 7 bits: exact on every CPU
        shape = [-1 if i == axis else 1 for i in range(w.ndim)]
        zero = np.zeros(len(scale), np.int8)
        made = [self.op("DequantizeLinear", self.const(np.rint(w / scale.reshape(shape)).astype(np.int8)), self.const(scale), self.const(zero), axis=axis)]
        for b in more:
            step = (scale * F(0.04)).astype(F)
            made.append(self.op("DequantizeLinear", self.const(np.rint(b / step).astype(np.int32)), self.const(step), axis=0))
        return made

    def times(self, y):
        """Microseconds of the kernels by operator, but for those beside it."""
        y = self.quantized(y, 0.04 if self.keeps else 0.05) if self.how == "static" else y
        y = self.op("Identity", y)
        out = helper.make_empty_tensor_value_info(y)
        graph = helper.make_graph(self.nodes, "cost", self.inputs, [out], self.inits)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8)
        return kernel_times(model, self.feed)


def kernel_times(model, feed):
    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 4
        options.enable_profiling, options.profile_file_prefix = True, str(Path(folder) / "p")
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        for _ in range(RUNS):
            session.run(None, feed)
        events = json.loads(Path(session.end_profiling()).read_text())
    least = {}
    for e in events:
        if e.get("cat") == "Node" and e["name"].endswith("kernel_time"):
            op = e["args"]["op_name"]
            least[e["name"]] = (op, min(e["dur"], least.get(e["name"], (op, 1e12))[1]))
    return [(op, max(0.0, t - overhead())) for op, t in least.values()]


def overhead():
    """Microseconds that profiling adds to a kernel: of one that does nothing to speak of."""
    if not hasattr(overhead, "least"):
        overhead.least = 0.0
        case = Case("float")
        overhead.least = min(t for _, t in case.times(case.op("Neg", case.data(1)))) - 0.3
    return overhead.least


# ---- kinds: each gives (quantities of macs, outputs, inputs, weights; microseconds) for its sizes

def conv(how, c, o, space, k=3, stride=1, group=1):
    """Inputs count once for each tap that reads them: that is what is gathered of them."""
    space = [space] * 2 if isinstance(space, int) else list(space)
    k = [k] * len(space) if isinstance(k, int) else list(k)
    pad = [0 if stride == n else n // 2 for n in k]
    case = Case(how)
    w = case.rng.normal(size=(o, c // group, *k)) / np.sqrt(c // group * np.prod(k))
    x = case.data(1, c, *space)
    y = case.op("Conv", x, *case.weights(w, 0, case.rng.normal(size=o)), kernel_shape=k, strides=[stride] * len(k), pads=pad * 2, group=group)
    to = np.prod([(n + 2 * p - q) // stride + 1 for n, p, q in zip(space, pad, k)])
    return (to * w.size, to * o, to * c * np.prod(k), w.size), took(case, y)


def product(how, m, k, n):
    case = Case(how)
    w, x = case.rng.normal(size=(k, n)) / np.sqrt(k), case.data(m, k)
    if how == "dynamic":
        scale = (abs(w).max(0) / 64).astype(F)
        q = case.const(np.rint(w / scale).astype(np.int8))
        case.nodes.append(helper.make_node("DynamicQuantizeLinear", [x], ["xq", "xs", "xz"]))
        y = case.op("Cast", case.op("MatMulInteger", "xq", q, "xz", case.const(np.zeros(n, np.int8))), to=1)
        y = case.op("Add", case.op("Mul", y, case.op("Mul", "xs", case.const(scale))), case.const(case.rng.normal(size=n), F))
    elif how.startswith("blocks"):
        y = in_blocks(case, x, k, n, int(how[len("blocks")]), 4 if how.endswith("bytes") else 0)
    else:
        y = case.op("Gemm", x, *case.weights(w, 1, case.rng.normal(size=n)))
    return (m * k * n, m * n, m * k, k * n), took(case, y)


def in_blocks(case, x, k, n, bits, level):
    """MatMulNBits as qconvert writes it: blocks of 32 in 4 bits, of 128 where these divide the depth in 8, with a zero point each. level: accuracy_level."""
    block = 32 if bits == 4 else next(b for b in (128, 64, 32) if k % b == 0)
    blocks = -(-k // block)
    packed = case.rng.integers(0, 256, (n, blocks, block * bits // 8), np.uint8)
    scale, zero = np.full(n * blocks, 0.01, F), np.full((n, -(-blocks * bits // 8)), 0x88 if bits == 4 else 128, np.uint8)
    extra = ["", case.const(case.rng.normal(size=n), F)]  # no order of groups; a bias
    return case.op("MatMulNBits", x, case.const(packed), case.const(scale), case.const(zero.reshape(-1)), *extra, domain="com.microsoft", K=k, N=n, bits=bits,
                   block_size=block, accuracy_level=level)


def computed(how, b, m, k, n):
    case = Case(how)
    y = case.op("MatMul", case.data(b, m, k), case.data(b, k, n))
    return (b * m * k * n, b * m * n, b * m * k, b * k * n), took(case, y)


def each(kind, inputs=1, domain="", **attrs):
    def make(how, *shape):
        case = Case(how)
        case.keeps = kind == "Concat"  # inputs and output share parameters, as qconvert places them
        y = case.op(kind, *(case.data(*shape) for _ in range(inputs)), domain=domain, **attrs)
        return (0, np.prod(shape) * (inputs if kind == "Concat" else 1), 0, 0), took(case, y)
    return make


def swish(how, *shape):
    case = Case(how)
    x = case.data(*shape)
    return (0, np.prod(shape), 0, 0), took(case, case.op("Mul", x, case.op("Sigmoid", x)))


def pool(kind, k=2, stride=2):
    def make(how, *shape):
        case = Case(how)
        more = {} if kind.startswith("Global") else {"kernel_shape": [k] * 2, "strides": [stride] * 2, "pads": [k // 2 if stride == 1 else 0] * 4}
        case.keeps = kind == "MaxPool"
        y = case.op(kind, case.data(*shape), **more)
        out = shape[0] * shape[1] * (1 if kind.startswith("Global") else shape[2] // stride * shape[3] // stride)
        return (0, out, np.prod(shape) if kind.startswith("Global") else out * k * k, 0), took(case, y)
    return make


def resize(how, *shape):
    case = Case(how)
    case.keeps = True
    y = case.op("Resize", case.data(*shape), "", case.const([1, 1, 2, 2], F), mode="nearest", coordinate_transformation_mode="asymmetric",
                nearest_mode="floor")
    return (0, 4 * np.prod(shape), 0, 0), took(case, y)


def moved(kind):
    """Data movement on bytes where it is static: quantizers have the same parameters on both sides."""
    def make(how, *shape):
        case = Case(how)
        x, c = case.data(*shape), shape[1]
        if kind == "Transpose":
            y = case.op("Transpose", x, perm=[0, 2, 1, 3][:len(shape)] if len(shape) > 3 else [0, 2, 1])
        else:
            y = case.op("Slice", x, *(case.const([v], np.int64) for v in (0, c // 2, 1)))
        case.keeps = True
        size = np.prod(shape) // (1 if kind == "Transpose" else 2)
        return (0, size, 0, 0), took(case, y)
    return make


def border(kind):
    def make(how, *shape):
        case, took.ran = Case("float"), ""
        y = case.op("Transpose" if kind != "dynamic" else "Identity", case.quantized(case.data(*shape)), **({"perm": [0, 1]} if kind != "dynamic" else {}))
        least = dict(case.times(y))
        return (0, np.prod(shape), 0, 0), least["QuantizeLinear" if kind == "quantize" else "DequantizeLinear"]
    return make


def took(case, y):
    own = [(op, t) for op, t in case.times(y) if op not in BESIDE]
    turned = [t for op, t in own if op == "Transpose"]
    own = [(op, t) for op, t in own if op != "Transpose"] or [("Transpose", sum(turned))]
    took.ran = "+".join(op for op, _ in own)
    return sum(t for _, t in own)


TWO, ALL = ("float", "static"), ("float", "static", "dynamic", "blocks4", "blocks8", "blocks4-bytes", "blocks8-bytes")
MAPS = ((1, 16, 32, 32), (1, 64, 32, 32), (1, 32, 64, 64), (1, 128, 40, 40), (1, 96, 56, 56), (1, 64, 112, 112))
FLAT = ((1, 32, 256), (1, 128, 384), (1, 128, 1536), (12, 128, 128), (64, 96, 128))
BATCHED = ((1, 4, 64, 32), (1, 12, 128, 32), (1, 8, 64, 64), (1, 128, 12, 32), (1, 256, 5, 32), (2, 1024, 2, 32))
KINDS = {
    "conv": (conv, TWO, ((16, 16, 64), (32, 32, 32), (64, 64, 32), (128, 128, 16), (256, 256, 8), (64, 128, 32, 3, 2), (160, 256, 16, 3, 2), (32, 64, 64, 3, 2), (16, 24, 12),
                         (48, 48, 20), (80, 80, 32), (32, 32, 64, 8, 8), (64, 64, 32, 4, 4), (32, 32, 28, 5))),
    "conv-few": (conv, TWO, ((3, 16, 128, 3, 2), (3, 32, 224, 7, 4), (3, 32, 160, 3, 2), (1, 32, 64, 3, 1), (3, 64, 112, 7, 2), (3, 16, 64, 3, 1), (4, 24, 96, 5, 2), (1, 12, 28, 5, 2), (3, 16, 32, 3, 2),
                             (3, 16, 64, 3, 2), (3, 64, 64, 16, 16), (3, 192, 128, 16, 16), (3, 64, 16, 4, 4))),
    "conv-1x1": (conv, TWO, ((16, 64, 64, 1), (64, 64, 32, 1), (64, 256, 28, 1), (256, 64, 28, 1), (128, 128, 16, 1), (512, 128, 14, 1), (32, 16, 56, 1),
                             (24, 144, 40, 1), (256, 512, 8, 1), (1024, 256, 64, 1), (192, 128, 32, 1), (144, 24, 40, 1), (16, 32, 8, 1), (64, 16, 1, 1))),
    "conv-depthwise": (conv, TWO, tuple((c, c, h, k, s, c) for c, h, k, s in ((32, 112, 3, 1), (96, 56, 3, 1), (144, 28, 3, 1), (384, 14, 3, 1), (576, 14, 5, 1),
                                                                            (1024, 8, 3, 1), (128, 64, 3, 1), (96, 56, 3, 2), (640, 8, 3, 1)))),
    "conv-grouped": (conv, TWO, ((64, 64, 28, 3, 1, 8), (128, 128, 14, 3, 1, 32), (32, 32, 56, 3, 1, 4), (256, 256, 14, 3, 2, 32), (96, 96, 20, 3, 1, 2), (16, 16, 16, 3, 1, 4))),
    "conv-1d": (conv, TWO, ((64, 64, (1000,)), (128, 128, (400,)), (40, 128, (300,), 5), (64, 128, (500,), 3, 2), (256, 256, (100,)), (1, 64, (4000,), 16, 8))),
    "conv-3d": (conv, TWO, ((8, 16, (8, 32, 32)), (16, 32, (8, 16, 16)), (32, 32, (4, 16, 16)), (3, 16, (8, 32, 32)), (32, 64, (4, 14, 14)))),
    "product": (product, ALL, ((1, 768, 768), (1, 768, 3072), (1, 2048, 768), (1, 512, 512), (1, 1024, 256), (8, 768, 768), (8, 768, 2048), (128, 768, 768), (64, 768, 2048), (128, 384, 1536),
                               (128, 384, 384), (128, 1536, 384), (16, 256, 256), (4096, 32, 128), (1024, 64, 256), (256, 160, 640), (64, 256, 1024),
                               (197, 192, 768), (1024, 32, 32), (64, 768, 8000), (256, 160, 160), (32, 64, 64), (1, 128, 64))),
    "product-computed": (computed, TWO, ((12, 128, 32, 128), (12, 128, 128, 32), (8, 64, 64, 64), (1, 1024, 32, 64), (1, 1024, 64, 32), (12, 64, 64, 64), (4, 16, 16, 16),
                                         (5, 64, 32, 64), (2, 1024, 32, 64))),
    "Add": (each("Add", 2), TWO, MAPS + FLAT),
    "Mul": (each("Mul", 2), TWO, MAPS + FLAT),
    "Sigmoid": (each("Sigmoid"), TWO, MAPS + FLAT),
    "Swish": (swish, TWO, MAPS + FLAT),
    "LeakyRelu": (each("LeakyRelu", alpha=0.1), TWO, MAPS),
    "Softmax": (each("Softmax", axis=-1), TWO, FLAT),
    "Concat": (each("Concat", 2, axis=1), TWO, MAPS),
    "AveragePool": (pool("AveragePool"), TWO, MAPS),
    "GlobalAveragePool": (pool("GlobalAveragePool"), TWO, MAPS),
    "Resize": (resize, TWO, MAPS[:4]),
    "Transpose": (moved("Transpose"), TWO, BATCHED + FLAT),
    "Slice": (moved("Slice"), TWO, MAPS),
    "quantize": (border("quantize"), ("float",), FLAT_2 := ((64, 256), (128, 384), (128, 1536), (1024, 256), (1024, 1024))),
    "dequantize": (border("dequantize"), ("float",), FLAT_2),
}


def fit(rows, times):
    """Nonnegative costs that lessen the squares of the relative errors: coordinate descent."""
    a, t = np.array(rows, float), np.array(times, float)
    a = np.concatenate([np.ones((len(a), 1)), a], 1) / t[:, None]
    size = np.maximum(np.linalg.norm(a, axis=0), 1e-30)
    a /= size
    x = np.zeros(a.shape[1])
    for _ in range(20000):
        for j in range(len(x)):
            x[j] = max(0, x[j] + a[:, j] @ (1 - a @ x)) if size[j] > 1e-29 else 0
    return x / size, a @ x


def measured(kind):
    make, ways, sizes = KINDS[kind]
    for how in ways:
        rows, times, ran = [], [], []
        for size in sizes:
            quantities, took_us = make(how, *size)
            rows.append(quantities)
            times.append(max(took_us, 0.5) * 1e6)
            ran.append(getattr(took, "ran", ""))
        costs, ratio = fit(rows, times)
        print(f"{kind:18} {how:13}", " ".join(f"{n}={c:.4g}" for n, c in zip(TERMS, costs) if c), f"| fitted/measured {ratio.min():.2f}..{ratio.max():.2f}",
              sorted(set(ran)), flush=True)
        yield how, costs


def cpu_name():
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    facts = dict(line.split(":", 1) for line in lines[:30] if ":" in line)
    facts = {k.strip(): v.strip() for k, v in facts.items()}
    return f"{facts.get('vendor_id')} family {facts.get('cpu family')} model {facts.get('model')}"


def main(args):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0)) if args.cpu is None else args.cpu})
    ort.set_default_logger_severity(4)
    only = [k for k in args.only.split(",") if k]
    lines = []
    for kind in only or KINDS:
        for how, costs in measured(kind):
            lines.append(" ".join([f"cost {kind:17} {how:8}", *(f"{n}={c:.4g}" for n, c in zip(TERMS, costs) if c >= 0.005)]).rstrip())
    if not only:
        narrowed = ", narrowed to AVX2" if args.narrow else ""
        head = ["# octet costs 1 -- picoseconds of ONNX Runtime's kernels, one thread. docs/formats.md describes this format; bench/costs writes it.",
                f"name       {args.table.stem}", "runtime    ONNX Runtime", f"cpus       {'AVX2' if narrowed else 'AVX-512 VNNI'}", f"measured   ONNX Runtime {ort.__version__} on {cpu_name()}{narrowed}", ""]
        args.table.write_text("\n".join(head + lines) + "\n")
    return 0
