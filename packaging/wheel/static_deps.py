#!/usr/bin/env python3
"""Lays the distribution's static libraries and their headers into a folder, with pkg-config files that know nothing else.

    static_deps.py FOLDER                 FOLDER/include, FOLDER/lib, FOLDER/lib/pkgconfig, FOLDER/licenses
    static_deps.py FOLDER MACHINE ROOT    those that the provider for ONNX Runtime needs, of packages for another machine that were unpacked in ROOT

A shared library may be linked from them too (own_streams.c). Exit: 1 when a package is missing.
"""
import shutil
import subprocess
import sys
from pathlib import Path

# pkg-config name: (Debian package, libraries in the order of linking, further headers' folder, private names)
DEPS = {
    "libprotobuf-c": ("libprotobuf-c-dev", ["protobuf-c"], "", []),
    "zlib": ("zlib1g-dev", ["z"], "", []),
    "jansson": ("libjansson-dev", ["jansson"], "", []),
    "libjpeg": ("libjpeg62-turbo-dev", ["jpeg"], "", []),
    "libpng": ("libpng-dev", ["png16"], "/libpng16", ["zlib"]),
    "libwebp": ("libwebp-dev", ["webp"], "", []),
    "libutf8proc": ("libutf8proc-dev", ["utf8proc"], "", []),
    "libpcre2-8": ("libpcre2-dev", ["pcre2-8"], "", []),
    "libarchive": ("libarchive-dev", ["archive"], "", ["zlib", "bzip2", "liblzma", "libzstd", "liblz4"]),
    "bzip2": ("libbz2-dev", ["bz2"], "", []),
    "liblzma": ("liblzma-dev", ["lzma"], "", []),
    "libzstd": ("libzstd-dev", ["zstd"], "", []),
    "liblz4": ("liblz4-dev", ["lz4"], "", []),
}
PROVIDER_NEEDS = ("libprotobuf-c", "zlib")
STREAMS = ("stdin", "stdout", "stderr")
OWN = ("old_glibc", "own_streams")


def asked(*words):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, check=True).stdout


class System:
    """Where packages are, and the programs that work on them."""

    def __init__(self, machine=None, root=None):
        self.root = Path(root) if root else None
        self.prefix = f"{machine}-linux-gnu-" if machine else ""
        self.cc = f"{machine}-linux-gnu-gcc" if machine else "cc"
        triplet = f"{machine}-linux-gnu" if machine else asked("dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip()
        self.place = Path(self.root or "/", "usr/lib", triplet)

    def files(self, package):
        if not self.root:
            return map(Path, asked("dpkg", "-L", package).splitlines())
        return sorted((self.root / "usr/include").rglob("*"))

    def licence(self, package):
        return Path(self.root or "/", "usr/share/doc", package, "copyright")


def lay_headers(system, package, to):
    for name in system.files(package):
        if "include" in name.parts and name.suffix == ".h" and name.is_file():
            inside = [p for p in name.parts[name.parts.index("include") + 1:] if not p.endswith("-linux-gnu")]
            (to / Path(*inside)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(name, to / Path(*inside))


def lay_library(system, source, to):
    asked(system.prefix + "objcopy", *[f"--redefine-sym={name}=octet_{name}" for name in STREAMS], source, to)


def lay_own(system, lib):
    """liboctet_own.a, of what stands beside this script."""
    made = []
    for name in OWN:
        made.append(lib / f"{name}.o")
        asked(system.cc, "-O2", "-fPIC", "-fvisibility=hidden", "-c", Path(__file__).with_name(f"{name}.c"), "-o", made[-1])
    asked(system.prefix + "ar", "rcsD", lib / "liboctet_own.a", *made)
    for one in made:
        one.unlink()


def lay(folder, system, deps):
    include, lib, licenses = folder / "include", folder / "lib", folder / "licenses"
    (lib / "pkgconfig").mkdir(parents=True, exist_ok=True)
    licenses.mkdir(exist_ok=True)
    lay_own(system, lib)
    for package in [d[0] for d in deps.values()]:
        lay_headers(system, package, include)
        shutil.copyfile(system.licence(package), licenses / package)
    for name, (package, libraries, further, private) in deps.items():
        for one in libraries:
            lay_library(system, system.place / f"lib{one}.a", lib / f"lib{one}.a")
        version = asked("dpkg-query", "-W", "-f", "${source:Upstream-Version}", package).strip().split("+")[0]
        (lib / "pkgconfig" / f"{name}.pc").write_text(
            f"Name: {name}\nDescription: {package}\nVersion: {version}\nCflags: -I{include}{further}\n"
            f"Libs: -L{lib} {' '.join('-l' + one for one in libraries)} -loctet_own\nlibdir={lib}\nincludedir={include}\n"
            + (f"Requires: {' '.join(private)}\n" if private else ""))


def main():
    folder, *other = sys.argv[1:]
    deps = {name: d for name, d in DEPS.items() if name in PROVIDER_NEEDS} if other else DEPS
    try:
        lay(Path(folder).resolve(), System(*other), deps)
    except (subprocess.CalledProcessError, OSError) as e:
        print(f"static_deps.py: {e}\n{getattr(e, 'stderr', '') or ''}  hint: install {' '.join(d[0] for d in DEPS.values())}",
              file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
