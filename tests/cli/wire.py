"""Just enough of the protobuf wire format and of NumPy's files to look into models and results, and to make small ones, with Python alone."""
import ast
import struct
import zipfile

TYPES = {1: "f", 2: "B", 3: "b", 6: "i", 7: "q"}  # TensorProto.DataType: struct's letter
KINDS = {"<f4": "f", "<i8": "q", "|u1": "B", "|i1": "b", "<i4": "i"}


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """(number, value) of a message: integers, or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if key & 7 == 2 else (4 if key & 7 == 5 else 8, at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def all_of(data, number):
    return [v for k, v in fields(data) if k == number]


def tensor(data):
    """(name, type, dims, values) of a TensorProto."""
    dims, kind, name, values = [], 0, "", []
    for k, v in fields(data):
        if k == 1:
            dims += [v] if isinstance(v, int) else ints(v)
        elif k == 2:
            kind = v
        elif k == 8:
            name = v.decode()
        elif k == 9:
            values += struct.unpack(f"<{len(v) // struct.calcsize(TYPES[kind])}{TYPES[kind]}", v)
        elif k == 4:
            values += struct.unpack(f"<{len(v) // 4}f", v)
        elif k in (5, 7):
            values += [v - (v >> 63 << 64)] if isinstance(v, int) else [w - (w >> 63 << 64) for w in ints(v)]
    return name, kind, dims, values


def ints(data):
    out, at = [], 0
    while at < len(data):
        v, at = varint(data, at)
        out.append(v)
    return out


class Model:
    """nodes: (op, inputs, outputs); weights: name -> (type, dims, values)."""

    def __init__(self, path):
        graph, = all_of(path.read_bytes(), 7)
        self.nodes = [(all_of(n, 4)[0].decode(), [i.decode() for i in all_of(n, 1)], [o.decode() for o in all_of(n, 2)]) for n in all_of(graph, 1)]
        self.weights = {t[0]: t[1:] for t in map(tensor, all_of(graph, 5))}

    def count(self, op):
        return sum(n[0] == op for n in self.nodes)

    def grid(self, name):
        """(scale, zero point) of the QuantizeLinear that reads a value."""
        (_, inputs, _), = [n for n in self.nodes if n[0] == "QuantizeLinear" and n[1][0] == name]
        return self.weights[inputs[1]][2][0], self.weights[inputs[2]][2][0]


def message(*parts):
    """A message of (number, integer, text or bytes)."""
    out = b""
    for k, v in parts:
        v = v.encode() if isinstance(v, str) else v
        out += packed(k << 3) + packed(v) if isinstance(v, int) else packed(k << 3 | 2) + packed(len(v)) + v
    return out


def packed(v):
    out = b""
    while v > 127:
        out, v = out + bytes([v & 127 | 128]), v >> 7
    return out + bytes([v])


def tensor_message(name, dims, values, kind=1):
    return message(*[(1, d) for d in dims], (2, kind), (8, name), (9, struct.pack(f"<{len(values)}{TYPES[kind]}", *values)))


def value_message(name, dims, kind=1):
    """A ValueInfoProto; dimensions of 0 are open."""
    shape = message(*[(1, message((1, d) if d else (2, "N"))) for d in dims])
    return message((1, name), (2, message((1, message((1, kind), (2, shape))))))


def array(data):
    """(dims, values) of an .npy's bytes."""
    size, = struct.unpack("<H", data[8:10])
    head = ast.literal_eval(data[10:10 + size].decode())
    body = data[10 + size:]
    if head["descr"].startswith("<U"):
        width = 4 * int(head["descr"][2:])
        return head["shape"], [body[i:i + width].decode("utf-32-le").rstrip("\0") for i in range(0, len(body), width)]
    kind = KINDS[head["descr"]]
    return head["shape"], struct.unpack(f"<{len(body) // struct.calcsize(kind)}{kind}", body)


def arrays(path):
    """name -> (dims, values) of an .npz."""
    with zipfile.ZipFile(path) as z:
        return {n[:-4]: array(z.read(n)) for n in z.namelist()}
