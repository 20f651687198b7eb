"""Classes of layers: which kernels a network's time goes to, and what they reach."""
import collections

PRODUCTS = ("MatMul", "Gemm", "MatMulInteger", "QLinearMatMul")
RECURRENT = ("LSTM", "GRU", "RNN")
FEW_CHANNELS = 4      # a first layer folds its taps into the depth
# Which peak of bench/peaks a step is compared with, by its scheme; the others have none.
PEAK = {"float": "float", "weight-only": "float", "fp16": "float", "int8": "bytes", "bf16": "bf16"}


def class_of(op, weight, groups=1):
    """The class of a node; weight is the shape of its second operand, None where that is computed."""
    if op in ("Conv", "ConvTranspose"):
        if not weight or op == "ConvTranspose":
            return op
        window = "x".join(map(str, weight[2:]))
        if groups > 1:
            return f"depthwise {window}" if weight[1] == 1 else f"grouped {window}"
        return f"first layer {window}" if weight[1] <= FEW_CHANNELS else f"conv {window}"
    if op in PRODUCTS:
        return "product" if weight else "product of activations"
    return "recurrent" if op in RECURRENT else op


def of_model(path):
    """{name of a node: class} of an ONNX file, of the graphs inside its nodes too."""
    import onnx
    classes, constants = {}, {}

    def walk(graph):
        constants.update((t.name, list(t.dims)) for t in graph.initializer)
        for node in graph.node:
            constant = next((a.t for a in node.attribute if a.name == "value"), None) if node.op_type == "Constant" else None
            if constant is not None:
                constants[node.output[0]] = list(constant.dims)
            elif node.op_type in ("DequantizeLinear", "Identity", "Reshape", "Transpose") and node.input[0] in constants:
                constants[node.output[0]] = constants[node.input[0]]
            groups = next((a.i for a in node.attribute if a.name == "group"), 1)
            weight = constants.get(node.input[1]) if len(node.input) > 1 else None
            classes[node.name] = class_of(node.op_type, weight, groups)
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    walk(attribute.g)

    walk(onnx.load(path, load_external_data=False).graph)
    return classes


def least(profiles):
    """The steps of several profiles of one plan, each with the least of its times."""
    return [(*steps[0][:3], min(s[3] for s in steps), *steps[0][4:]) for steps in zip(*profiles)]


def summed(steps, classes, peaks):
    """[(class, scheme, nodes, ms, GMAC/s, share of the peak or None)], the slowest first; steps without multiplications are one class."""
    groups = collections.defaultdict(list)
    for name, op, scheme, ms, macs, _ in steps:
        groups[(classes.get(name, op), scheme) if macs else ("other steps", "")].append((ms, macs))
    rows = []
    for (kind, scheme), of in groups.items():
        ms, macs = sum(o[0] for o in of), sum(o[1] for o in of)
        rate = macs / ms / 1e6 if ms else 0
        peak = peaks.get(PEAK.get(scheme), 0)
        rows.append((kind, scheme, len(of), ms, rate, rate / peak if peak and macs else None))
    return sorted(rows, key=lambda r: -r[3])


def show(rows):
    total = sum(r[3] for r in rows)
    for kind, scheme, count, ms, rate, share in rows:
        reached = f" {rate:8.1f} GMAC/s" + (f" {share:5.0%} of the peak" if share is not None else "") if rate else ""
        print(f"    {f'{kind} {scheme} x{count}':40s} {ms:9.3f} ms {ms / total:6.1%}{reached}")
