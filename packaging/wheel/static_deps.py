#!/usr/bin/env python3
"""Lays the distribution's static libraries and their headers into a folder, with pkg-config files that know nothing else.

    static_deps.py FOLDER     FOLDER/include, FOLDER/lib, FOLDER/lib/pkgconfig, FOLDER/licenses

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
STREAMS = ("stdin", "stdout", "stderr")
OWN = ("old_glibc", "own_streams")


def asked(*words):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, check=True).stdout


def lay_headers(package, to):
    for name in map(Path, asked("dpkg", "-L", package).splitlines()):
        if "include" in name.parts and name.suffix == ".h" and name.is_file():
            inside = [p for p in name.parts[name.parts.index("include") + 1:] if not p.endswith("-linux-gnu")]
            (to / Path(*inside)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(name, to / Path(*inside))


def lay_library(source, to):
    asked("objcopy", *[f"--redefine-sym={name}=octet_{name}" for name in STREAMS], source, to)


def lay_own(lib):
    """liboctet_own.a, of what stands beside this script."""
    made = []
    for name in OWN:
        made.append(lib / f"{name}.o")
        asked("cc", "-O2", "-fPIC", "-fvisibility=hidden", "-c", Path(__file__).with_name(f"{name}.c"), "-o", made[-1])
    asked("ar", "rcsD", lib / "liboctet_own.a", *made)
    for one in made:
        one.unlink()


def lay(folder):
    include, lib, licenses = folder / "include", folder / "lib", folder / "licenses"
    (lib / "pkgconfig").mkdir(parents=True, exist_ok=True)
    licenses.mkdir(exist_ok=True)
    place = Path("/usr/lib", asked("dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip())
    lay_own(lib)
    for package in [d[0] for d in DEPS.values()]:
        lay_headers(package, include)
        shutil.copyfile(Path("/usr/share/doc", package, "copyright"), licenses / package)
    for name, (package, libraries, further, private) in DEPS.items():
        for one in libraries:
            lay_library(place / f"lib{one}.a", lib / f"lib{one}.a")
        version = asked("dpkg-query", "-W", "-f", "${source:Upstream-Version}", package).strip().split("+")[0]
        (lib / "pkgconfig" / f"{name}.pc").write_text(
            f"Name: {name}\nDescription: {package}\nVersion: {version}\nCflags: -I{include}{further}\n"
            f"Libs: -L{lib} {' '.join('-l' + one for one in libraries)} -loctet_own\nlibdir={lib}\nincludedir={include}\n"
            + (f"Requires: {' '.join(private)}\n" if private else ""))


def main():
    try:
        lay(Path(sys.argv[1]).resolve())
    except (subprocess.CalledProcessError, OSError) as e:
        print(f"static_deps.py: {e}\n{getattr(e, 'stderr', '') or ''}  hint: install {' '.join(d[0] for d in DEPS.values())}",
              file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
