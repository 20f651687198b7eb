#!/usr/bin/env python3
"""Sees in the built tools themselves that they are hardened; reports in TAP.

    tests/tools/hardened.py PROGRAM... [--fortify]

Reads ELF's program headers, dynamic section and dynamic symbols, for 64-bit little-endian machines. --fortify: calls that check
the size of what they write are expected too, which only an optimised build has."""
import argparse
import struct
import sys
from pathlib import Path

ET_DYN = 3
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_GNU_STACK, PT_GNU_RELRO = 1, 2, 3, 0x6474E551, 0x6474E552
PF_X, PF_W = 1, 2
DT_NULL, DT_STRTAB, DT_SYMTAB, DT_RPATH, DT_TEXTREL, DT_BIND_NOW, DT_FLAGS, DT_RUNPATH, DT_FLAGS_1 = 0, 5, 6, 15, 22, 24, 30, 29, 0x6FFFFFFB
DF_TEXTREL, DF_BIND_NOW, DF_1_NOW = 4, 8, 1
SYMBOL = struct.Struct("<IBBHQQ")


class Elf:
    def __init__(self, path):
        self.raw = Path(path).read_bytes()
        if self.raw[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not a 64-bit little-endian ELF file")
        self.type, = struct.unpack_from("<H", self.raw, 16)
        at, = struct.unpack_from("<Q", self.raw, 32)
        size, n = struct.unpack_from("<HH", self.raw, 54)
        fields = [struct.unpack_from("<IIQQQQQQ", self.raw, at + i * size) for i in range(n)]
        self.segments = [dict(zip(("type", "flags", "offset", "addr", "paddr", "filesz", "memsz"), f)) for f in fields]
        self.dynamic = dict(self.entries())

    def of_type(self, kind):
        return [s for s in self.segments if s["type"] == kind]

    def entries(self):
        for s in self.of_type(PT_DYNAMIC):
            for tag, value in struct.iter_unpack("<qQ", self.raw[s["offset"]:s["offset"] + s["filesz"]]):
                if tag == DT_NULL:
                    return
                yield tag, value

    def offset(self, addr):
        return next(s["offset"] + addr - s["addr"] for s in self.of_type(PT_LOAD) if 0 <= addr - s["addr"] < s["filesz"])

    def imports(self):
        """Names of undefined dynamic symbols. (Linkers put the table of names behind that of symbols.)"""
        names, symbols = self.offset(self.dynamic[DT_STRTAB]), self.offset(self.dynamic[DT_SYMTAB])
        for at in range(symbols, names, SYMBOL.size):
            name, _, _, section, _, _ = SYMBOL.unpack_from(self.raw, at)
            if section == 0 and name:
                yield self.raw[names + name:self.raw.index(0, names + name)].decode()


def checks(elf, fortify):
    flags, flags_1 = elf.dynamic.get(DT_FLAGS, 0), elf.dynamic.get(DT_FLAGS_1, 0)
    imports = set(elf.imports())
    yield "position-independent, and started by the dynamic linker", elf.type == ET_DYN and elf.of_type(PT_INTERP)
    yield "relocated data becomes read-only", elf.of_type(PT_GNU_RELRO)
    yield "all symbols are bound at the start", DT_BIND_NOW in elf.dynamic or flags & DF_BIND_NOW or flags_1 & DF_1_NOW
    yield "the stack is not executable", [s for s in elf.of_type(PT_GNU_STACK) if not s["flags"] & PF_X]
    yield "nothing is both writable and executable", all(s["flags"] & (PF_W | PF_X) != PF_W | PF_X for s in elf.of_type(PT_LOAD))
    yield "code is a segment of its own", all(s["offset"] > 0 for s in elf.of_type(PT_LOAD) if s["flags"] & PF_X)
    yield "no relocations in code", DT_TEXTREL not in elf.dynamic and not flags & DF_TEXTREL
    yield "no search path for libraries", DT_RPATH not in elf.dynamic and DT_RUNPATH not in elf.dynamic
    yield "stack protector", "__stack_chk_fail" in imports
    if fortify:
        yield "calls of the C library that know the size of what they write", {"__memcpy_chk", "__snprintf_chk"} & imports


def main():
    p = argparse.ArgumentParser()
    p.add_argument("programs", nargs="+")
    p.add_argument("--fortify", action="store_true")
    a = p.parse_args()
    rows = [(Path(path).name, what, good) for path in a.programs for what, good in checks(Elf(path), a.fortify)]
    print(f"1..{len(rows)}")
    for i, (name, what, good) in enumerate(rows, 1):
        print(f"{'ok' if good else 'not ok'} {i} {name}: {what}")
    return 0 if all(good for _, _, good in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
