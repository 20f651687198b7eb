"""Files that Octet writes for itself, as sections: docs/formats.md, "Files of sections"."""
import struct


def fnv1a(data):
    h = 0xcbf29ce484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001b3 & (1 << 64) - 1
    return h


def read(data):
    """The first line, and a list of [tag, bytes] without that of the checksum."""
    first, rest = data.split(b"\n", 1)
    found = []
    while rest:
        tag, size = struct.unpack_from("<IQ", rest)
        found.append([tag, rest[12:12 + size]])
        rest = rest[12 + size:]
    tag, checksum = found.pop()
    assert tag == 0 and checksum == struct.pack("<Q", fnv1a(data[:-8])), "the checksum is another one"
    return first, found


def write(first, sections):
    data = first + b"\n" + b"".join(struct.pack("<IQ", tag, len(body)) + body for tag, body in sections) + struct.pack("<IQ", 0, 8)
    return data + struct.pack("<Q", fnv1a(data))
