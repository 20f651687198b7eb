#!/usr/bin/env python3
"""Makes testdata/data/: small sample files of every kind, with the values that Pillow and numpy read from them.

Seeded. PIL's resampling is the definition of interp=bilinear, bicubic and nearest: NAME.FILTER.WxH.npy holds its result.
"""
import gzip
import io
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

OUT = Path(__file__).resolve().parents[2] / "testdata" / "data"
rng = np.random.default_rng(7)


def picture(w, h):
    """Slopes, an edge and noise, so that no two filters agree."""
    y, x = np.mgrid[0:h, 0:w].astype(float)
    p = np.stack([255 * x / w, 255 * y / h, 127 + 120 * np.sin(x / 3) * np.cos(y / 5)], -1)
    p[h // 3:h // 2, w // 4:w // 2] = (250, 5, 5)
    return np.clip(p + rng.normal(0, 25, p.shape), 0, 255).astype(np.uint8)


def npy(name, a):
    np.save(OUT / name, a)


def pictures():
    rgb = picture(37, 29)
    im = Image.fromarray(rgb)
    im.save(OUT / "rgb.png")
    npy("rgb.npy", rgb)
    filters = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "nearest": Image.NEAREST}
    for name, f in filters.items():
        for size in ((16, 11), (37, 12), (50, 61), (9, 40), (34, 20), (50, 20)):
            npy(f"rgb.{name}.{size[0]}x{size[1]}.npy", np.asarray(im.resize(size, f)))
    npy("rgb.gray.npy", np.asarray(im.convert("L")))
    f32 = Image.fromarray(rgb[..., 0].astype(np.float32) / 3, mode="F")
    npy("f32.npy", np.asarray(f32)[None, None])
    npy("f32.bilinear.16x11.npy", np.asarray(f32.resize((16, 11), Image.BILINEAR)))
    im.convert("L").save(OUT / "gray.png")
    im.quantize(16).save(OUT / "palette.png")
    im.quantize(16).save(OUT / "transparent.png", transparency=0)
    npy("palette.npy", np.asarray(im.quantize(16).convert("RGB")))
    Image.fromarray(np.dstack([rgb, rgb[..., 0]])).save(OUT / "rgba.png")
    Image.fromarray((rgb[..., 1].astype(np.uint16) << 8) | 77).save(OUT / "deep.png")
    for name, image, more in (("rgb", im, {}), ("gray", im.convert("L"), {}), ("progressive", im, {"progressive": True}),
                              ("cmyk", im.convert("CMYK"), {})):
        image.save(OUT / f"{name}.jpg", quality=80, **more)
        back = Image.open(OUT / f"{name}.jpg")
        npy(f"{name}.jpg.npy", np.asarray(back.convert("RGB")))


def shortest_sides():
    """resize=12:crop=WxH of a wide and of a tall picture: the short side becomes 12, the other is cut off to a whole number; then the centre."""
    wide = Image.open(OUT / "rgb.png")
    tall = wide.transpose(Image.ROTATE_90)
    tall.save(OUT / "tall.png")
    for name, im, (w, h) in (("rgb", wide, (7, 9)), ("tall", tall, (9, 7))):
        size = (12, 12 * im.height // im.width) if im.width <= im.height else (12 * im.width // im.height, 12)
        x, y = (size[0] - w) // 2, (size[1] - h) // 2
        npy(f"{name}.short12.crop{w}x{h}.npy", np.asarray(im.resize(size, Image.BILINEAR).crop((x, y, x + w, y + h))))
    f = np.asarray(wide, np.float32)[:4, :5] / 3
    npy("rgb_f32.npy", f.transpose(2, 0, 1)[None])
    npy("rgb_f32.gray.npy", (f.astype(np.float64) @ [0.299, 0.587, 0.114]).astype(np.float32))


def windows():
    """precrop=0.875:resize=14x15, precrop=20x10, letterbox=30x40:pad=9 of a wide and of a tall picture, by Pillow."""
    wide = Image.open(OUT / "rgb.png")
    for name, im in (("rgb", wide), ("tall", Image.open(OUT / "tall.png"))):
        def middle(w, h):
            x, y = (im.width - w) // 2, (im.height - h) // 2
            return im.crop((x, y, x + w, y + h))
        npy(f"{name}.precrop.14x15.npy", np.asarray(middle(round(im.width * 0.875), round(im.height * 0.875)).resize((14, 15), Image.BILINEAR)))
        npy(f"{name}.precrop20x10.npy", np.asarray(middle(20, 10)))
        r = min(30 / im.width, 40 / im.height)
        small = im.resize((round(im.width * r), round(im.height * r)), Image.BILINEAR)
        box = Image.new("RGB", (30, 40), (9, 9, 9))
        box.paste(small, ((30 - small.width) // 2, (40 - small.height) // 2))
        npy(f"{name}.letterbox.30x40.npy", np.asarray(box))


def arrays():
    values = np.arange(24).reshape(4, 3, 2)
    for t in ("f2", "f4", "f8", "u1", "i1", "i2", "i4", "i8", "u2", "u4", "u8", "b1"):
        npy(f"x_{t}.npy", (values % 2 == 0) if t == "b1" else values.astype(t))
    npy("fortran.npy", np.asfortranarray(values.astype(np.float32)))
    npy("big.npy", values.astype(">f4"))
    nan = values.astype(np.float32)
    nan[2, 1, 0] = np.nan
    npy("nan.npy", nan)
    with open(OUT / "v2.npy", "wb") as f:
        np.lib.format.write_array(f, values.astype(np.float32), version=(2, 0))
    state = rng.integers(-9, 9, (4, 2, 1, 3)).astype(np.float32)
    npy("state.npy", state)
    both = {"x": values.astype(np.float32), "state": state, "sr": np.array(16000)}
    np.savez(OUT / "stored.npz", **both)
    np.savez_compressed(OUT / "deflated.npz", **both)
    turned = {name: np.array(a, order="F") for name, a in both.items()}
    np.savez(OUT / "fortran.npz", **turned)
    np.savez_compressed(OUT / "fortran_deflated.npz", **turned)
    with zipfile.ZipFile(OUT / "zip64.npz", "w") as z:
        for name, a in both.items():
            with z.open(name + ".npy", "w", force_zip64=True) as f:
                np.lib.format.write_array(f, a)


def varint(v):
    v &= (1 << 64) - 1
    out = b""
    while v > 127:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def field(number, kind, payload):
    return varint(number << 3 | kind) + (varint(len(payload)) + payload if kind == 2 else payload)


def protos():
    """TensorProto by hand: raw bytes, packed values, values one by one."""
    for i in range(3):
        d = OUT / "case" / f"test_data_set_{i}"
        d.mkdir(parents=True, exist_ok=True)
        x = (np.arange(6).reshape(1, 3, 2) + 10 * i).astype(np.float32)
        dims = b"".join(field(1, 0, varint(v)) for v in x.shape)
        if i == 0:
            data = field(9, 2, x.tobytes())
        elif i == 1:
            data = field(4, 2, x.tobytes())
        else:
            data = b"".join(field(4, 5, struct.pack("<f", v)) for v in x.ravel())
        (d / "input_0.pb").write_bytes(dims + field(2, 0, varint(1)) + data + field(8, 2, b"x"))
        y = field(1, 2, varint(2)) + field(2, 0, varint(7)) + field(7, 2, varint(-1) + varint(300))
        (d / "output_0.pb").write_bytes(y + field(8, 2, b"y"))


def shard(name, mode):
    with tarfile.open(OUT / name, mode, format=tarfile.PAX_FORMAT) as t:
        for i, file in enumerate(("rgb.png", "rgb.jpg", "gray.png")):
            for suffix, data in ((file[-3:], (OUT / file).read_bytes()), ("cls", str(i + 3).encode())):
                member = tarfile.TarInfo(f"d/{i:03d}.{suffix}")
                member.size = len(data)
                t.addfile(member, io.BytesIO(data))


def links():
    """First inputs of the fuzz target of archives: links of every kind, plain and compressed."""
    seeds = OUT.parent / "fuzz" / "tar"
    seeds.mkdir(parents=True, exist_ok=True)
    plain = io.BytesIO()
    data = io.BytesIO()
    np.save(data, np.arange(12, dtype=np.float32).reshape(1, 3, 2, 2))
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.GNU_FORMAT) as t:
        for name, kind, to in (("a/0.npy", tarfile.REGTYPE, ""), ("a/1.npy", tarfile.LNKTYPE, "a/0.npy"), ("a/2.npy", tarfile.SYMTYPE, "../b/3.npy"),
                               ("b", tarfile.SYMTYPE, "./a"), ("a/3.npy", tarfile.REGTYPE, ""), ("4.npy", tarfile.SYMTYPE, "4.npy"), ("5.cls", tarfile.SYMTYPE, "../x")):
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.size = kind, to, len(data.getvalue()) if kind == tarfile.REGTYPE else 0
            t.addfile(member, io.BytesIO(data.getvalue()))
    (seeds / "links").write_bytes(plain.getvalue())
    (seeds / "links.gz").write_bytes(gzip.compress(plain.getvalue(), mtime=0))


def tokens():
    """First inputs of the fuzz target of token files: steps, a zero, l for lines and d for a stream, the file."""
    seeds = OUT.parent / "fuzz" / "tokens"
    seeds.mkdir(parents=True, exist_ok=True)
    ids = np.array([1, 2, 3, 40, 500, 6, 7])
    for name, data in (("json", b'length=4:pad-id=0\0l{"input_ids": [1, 2, 3], "attention_mask": [1, 1, 0], "label": 2}\n\n{"input_ids":[4e0]}\n'),
                       ("lists", b"pad-id=7\0l\xef\xbb\xbf[1, 2]\r\n3 4\t5,6\n"), ("u16", b"ids=u16:length=4:pad-id=2\0d" + ids.astype("<u2").tobytes()),
                       ("i64", b"ids=i64:length=2\0d" + ids.astype("<i8").tobytes())):
        (seeds / name).write_bytes(data)


def bitmap(name, rows, bits, palette=b"", masks=b"", core=False, top_down=False):
    """A BMP of rows of bytes, upper one first, which Pillow does not write in these forms; NAME.npy is what it reads."""
    h, w = len(rows), len(rows[0]) * 8 // bits
    body = b"".join(r + bytes(-len(r) % 4) for r in (rows if top_down else rows[::-1]))
    info = struct.pack("<IHHHH", 12, w, h, 1, bits) if core else struct.pack(
        "<IiiHHIIiiII", 40, w, -h if top_down else h, 1, bits, 3 if masks else 0, len(body), 2835, 2835, len(palette) // 4, 0)
    at = 14 + len(info) + len(masks) + len(palette)
    (OUT / name).write_bytes(b"BM" + struct.pack("<IHHI", at + len(body), 0, 0, at) + info + masks + palette + body)
    npy(f"{name}.npy", np.asarray(Image.open(OUT / name).convert("RGB")))


def other_pictures():
    im = Image.open(OUT / "rgb.png")
    im.save(OUT / "rgb.bmp")
    im.convert("L").save(OUT / "gray.bmp")
    im.quantize(16).save(OUT / "palette.bmp")
    own = np.random.default_rng(8)
    deep = own.integers(0, 1 << 16, (6, 10)).astype("<u2")
    bitmap("555.bmp", [r.tobytes() for r in deep], 16)
    bitmap("565.bmp", [r.tobytes() for r in deep], 16, masks=struct.pack("<III", 0xF800, 0x7E0, 0x1F))
    bitmap("down.bmp", [r.tobytes() for r in own.integers(0, 1 << 32, (5, 7)).astype("<u4")], 32, top_down=True)
    colours = own.integers(0, 256, (16, 4)).astype(np.uint8)
    bitmap("nibbles.bmp", [r.tobytes() for r in own.integers(0, 256, (5, 3)).astype(np.uint8)], 4, palette=colours.tobytes())
    bitmap("bits.bmp", [r.tobytes() for r in own.integers(0, 256, (5, 3)).astype(np.uint8)], 1, palette=colours[:2].tobytes())
    bitmap("core.bmp", [r.tobytes() for r in own.integers(0, 256, (5, 6)).astype(np.uint8)], 24, core=True)
    im.save(OUT / "lossless.webp", lossless=True)
    Image.open(OUT / "rgba.png").save(OUT / "rgba.webp", lossless=True, exact=True)
    im.save(OUT / "rgb.webp", quality=80)
    npy("rgb.webp.npy", np.asarray(Image.open(OUT / "rgb.webp").convert("RGB")))
    im.save(OUT / "film.webp", lossless=True, save_all=True, append_images=[Image.new("RGB", im.size)])


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    pictures()
    shortest_sides()
    windows()
    other_pictures()
    arrays()
    protos()
    tokens()
    links()
    shard("shard-000.tar", "w")
    (OUT / "list.csv").write_text('file,label,name\r\nrgb.png,3,"a, b"\r\n"rgb.jpg",5,c\r\ngray.png,,d\r\n')
    for c, file in (("cat", "rgb.png"), ("dog", "gray.png"), ("dog", "rgb.jpg")):
        (OUT / "classes" / c).mkdir(parents=True, exist_ok=True)
        (OUT / "classes" / c / file).write_bytes((OUT / file).read_bytes())


if __name__ == "__main__":
    main()
