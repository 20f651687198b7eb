#!/usr/bin/env python3
"""Writes a wheel, with the licenses of what is linked in: "octet" has the three programs, their manual pages, and the module octet with the library and the
provider for ONNX Runtime in it, "provider" has that provider alone.

    make_wheel.py [--provider] SOURCE BUILD LICENSES OUT

OCT_MACHINE names the machine that BUILD is for, if it is another one; its binutils are then used.
SOURCE is the checkout, BUILD its build folder, LICENSES what static_deps.py laid. The wheel's tag names the glibc that its files need, as their
symbols have it. Its bytes depend on what is in it and on SOURCE_DATE_EPOCH alone. Exit: 1 when a file needs a library that a manylinux
system need not have.
"""
import base64
import hashlib
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

PROGRAMS = ("qcalib", "qconvert", "qeval")
# What the manylinux policy lets a wheel find on the system; none of the others is needed.
SYSTEM = re.compile(r"lib(c|m|dl|pthread|rt)\.so\.\d+|ld-linux-.*")
OLDEST = (2, 17)
MACHINE = os.environ.get("OCT_MACHINE") or platform.machine()


def binutil(name):
    return name if MACHINE == platform.machine() else f"{MACHINE}-linux-gnu-{name}"


def asked(*words):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, check=True, env=dict(os.environ, LC_ALL="C")).stdout


def needed_glibc(path):
    """The newest version of glibc's symbols that a file asks for; raises when it needs other libraries."""
    others = [n for n in re.findall(r"NEEDED\s+(\S+)", asked(binutil("objdump"), "-p", path)) if not SYSTEM.fullmatch(n)]
    if others:
        raise ValueError(f"{path.name} needs {', '.join(others)}")
    versions = re.findall(r"\*UND\*.*\(?GLIBC_(\d+)\.(\d+)", asked(binutil("objdump"), "-T", path))
    return max([(int(a), int(b)) for a, b in versions], default=OLDEST)


def stripped(path):
    with tempfile.TemporaryDirectory(prefix="octet-wheel-") as folder:
        to = Path(folder, "stripped")
        asked(binutil("strip"), "--strip-unneeded", "-o", to, path)
        return to.read_bytes()


# Folders of the source whose files users need beside programs and module, and where they go in share/.
SHARED = (("docs", "doc/octet"), ("share/schema", "octet/schema"), ("share/runners", "octet/runners"))
# What the build writes for shells, and where these look for it in share/; there is none where the programs are those of another machine.
COMPLETIONS = (("*.bash", "bash-completion/completions"), ("_q*", "zsh/site-functions"), ("*.fish", "fish/vendor_completions.d"))
PROVIDER = "provider/libonnxruntime_ep_octet.so"
# What each wheel is called, and says of itself. (octet-quantize: docs/install.md says why.)
NAMES = {"octet": ("octet_quantize", "Post-training quantization of ONNX models", "Requires-Dist: numpy\n", "README.md"),
         "provider": ("onnxruntime_ep_octet", "Octet's execution provider for ONNX Runtime", "", "docs/provider.md")}
# Of what a provider links in: it reads ONNX and nothing else.
PROVIDER_LICENSES = ("libprotobuf-c-dev",)


def alone(text):
    """A page without the links that only a checkout has: their texts stay."""
    return re.sub(r"!?\[([^\]]*)\]\((?!https?://|#)[^)]*\)", r"\1", text)


def metadata(source, version, kind):
    name, summary, needs, text = NAMES[kind]
    return (f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\nSummary: {summary}\nLicense: Apache-2.0\n"
            "Classifier: License :: OSI Approved :: Apache Software License\nClassifier: Operating System :: POSIX :: Linux\n"
            f"Requires-Python: >=3.8\n{needs}Description-Content-Type: text/markdown\n\n" + alone((source / text).read_text(encoding="utf-8")))


def binaries(kind, build, version):
    """Files of the build that the wheel takes."""
    if kind == "provider":
        return [build / PROVIDER]
    return [*(build / "tools" / name / name for name in PROGRAMS), build / f"tools/library/liboctet.so.{version}", build / PROVIDER]


def contents(kind, source, build, licenses, version, tag):
    """Names in the wheel, with bytes and whether they are programs."""
    name = NAMES[kind][0]
    info, data = f"{name}-{version}.dist-info", f"{name}-{version}.data"
    module = source / ("python/octet" if kind == "octet" else f"packaging/provider/{name}")
    files = [(f"{module.name}/{p.relative_to(module).as_posix()}", p.read_bytes(), False) for p in sorted([*module.rglob("*.py"), *module.glob("py.typed")])]
    files.append((f"{module.name}/{Path(PROVIDER).name}", stripped(build / PROVIDER), True))
    if kind == "octet":
        files.append(("octet/liboctet.so", stripped(build / f"tools/library/liboctet.so.{version}"), True))
        files += [(f"{data}/scripts/{p}", stripped(build / "tools" / p / p), True) for p in PROGRAMS]
        files += [(f"{data}/data/share/man/man{p.suffix[1:]}/{p.name}", p.read_bytes(), False) for p in sorted((source / "man").glob("*.[1-9]"))]
        files.append((f"{data}/data/share/octet/SKILL.md", (source / "SKILL.md").read_bytes(), False))
        files += [(f"{data}/data/share/{to}/{p.name}", p.read_bytes(), False) for folder, to in SHARED for p in sorted((source / folder).iterdir()) if p.is_file()]
        files += [(f"{data}/data/share/{to}/{p.name}", p.read_bytes(), False) for pattern, to in COMPLETIONS for p in sorted((build / "tools").glob(pattern)) if p.is_file()]
    files.append((f"{info}/licenses/LICENSE", (source / "LICENSE").read_bytes(), False))
    files += [(f"{info}/licenses/{p.name}", p.read_bytes(), False) for p in sorted(licenses.iterdir()) if kind == "octet" or p.name in PROVIDER_LICENSES]
    files.append((f"{info}/METADATA", metadata(source, version, kind).encode(), False))
    files.append((f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: octet\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), False))
    record = "".join(f"{n},sha256={base64.urlsafe_b64encode(hashlib.sha256(b).digest()).decode().rstrip('=')},{len(b)}\n" for n, b, _ in files)
    files.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), False))
    return files


def write(path, files):
    # A zip file knows no time before 1980.
    date = max(time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", "0")))[:6], (1980, 1, 1, 0, 0, 0))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data, program in files:
            entry = zipfile.ZipInfo(name, date)
            entry.create_system, entry.compress_type = 3, zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if program else 0o100644) << 16
            archive.writestr(entry, data)


def main():
    words = sys.argv[1:]
    kind = "provider" if words[:1] == ["--provider"] else "octet"
    source, build, licenses, out = (Path(a).resolve() for a in words[kind == "provider":][:4])
    version = re.search(r"^  version: '(.*)',", (source / "meson.build").read_text(encoding="utf-8"), re.MULTILINE).group(1)
    try:
        glibc = max(OLDEST, *map(needed_glibc, binaries(kind, build, version)))
    except ValueError as e:
        print(f"make_wheel.py: {e}\n  hint: build with the static libraries of static_deps.py", file=sys.stderr)
        return 1
    tag = f"py3-none-manylinux_{glibc[0]}_{glibc[1]}_{MACHINE}"
    write(out / f"{NAMES[kind][0]}-{version}-{tag}.whl", contents(kind, source, build, licenses, version, tag))
    return 0


if __name__ == "__main__":
    sys.exit(main())
