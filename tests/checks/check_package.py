#!/usr/bin/env python3
"""What scripts/package makes.

    check_package.py BUILD [--wheel] [-v]

Without --wheel, in seconds: the static libraries that a wheel brings link into a shared library whose streams are the process's own; a wheel of
small programs has the form that pip takes, true hashes, a tag of the symbols that its files ask for, and the same bytes twice; programs that
need other libraries are refused. With --wheel (minutes): scripts/package wheel twice, in two folders: the same bytes; installed with numpy into
a fresh environment, programs and module write what those of BUILD write.

Needs Python packages: runs itself with OCT_PYTHON when that is set.
Exit: 0 when all hold, 1 when not, 77 without the packages, a compiler, or the static libraries.
"""
import argparse
import base64
import csv
import hashlib
import io
import os
import platform
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import installed, packages
from pylib.installed import PROGRAMS, must, ran

packages.need("numpy", "pip")

ROOT = Path(__file__).resolve().parents[2]
PARTS = ROOT / "packaging/wheel"
PROVIDER = "provider/libonnxruntime_ep_octet.so"

READER = """
#include <jansson.h>
#include <stdio.h>
#include <string.h>
int read_stdin(void) {
  json_error_t e;
  json_t *j = json_loadf(stdin, 0, &e);
  return !j && !strcmp(e.source, "<stdin>");
}
"""


def check_static(c, folder):
    """Whether the libraries are there: without them nothing can be held."""
    laid = ran(PARTS / "static_deps.py", folder / "static")
    if laid.returncode:
        print(laid.stderr, end="")
        return False
    (folder / "reader.c").write_text(READER)
    (folder / "reader.map").write_text("{ global: read_stdin; local: *; };\n")
    env = dict(os.environ, PKG_CONFIG_LIBDIR=str(folder / "static/lib/pkgconfig"))
    flags = must("pkg-config", "--static", "--cflags", "--libs", "jansson", "libpng", env=env).split()
    must("cc", "-shared", "-fPIC", folder / "reader.c", "-Wl,--whole-archive", *flags, "-Wl,--no-whole-archive", "-lm",
         f"-Wl,--version-script={folder}/reader.map", "-o", folder / "reader.so")
    said = ran(sys.executable, "-c", f"import ctypes, sys; sys.exit(7 * ctypes.CDLL('{folder}/reader.so').read_stdin())", input="no JSON")
    c.hold("a shared library reads the process's own stdin", said.returncode == 7, said.stderr)
    return True


def small_build(folder):
    """A build folder with programs that say their names, and a small library."""
    for name in PROGRAMS:
        (folder / "tools" / name).mkdir(parents=True)
        (folder / f"{name}.c").write_text(f'#include <stdio.h>\nint main(void) {{ return puts("{name}") < 0; }}\n')
        must("cc", folder / f"{name}.c", "-o", folder / "tools" / name / name)
    (folder / "tools/library").mkdir()
    (folder / "provider").mkdir()
    (folder / "library.c").write_text("int answer(void) { return 42; }\n")
    must("cc", "-shared", "-fPIC", folder / "library.c", "-o", folder / PROVIDER)
    version = must("sed", "-n", "s/^  version: '\\(.*\\)',/\\1/p", ROOT / "meson.build").strip()
    must("cc", "-shared", "-fPIC", folder / "library.c", "-o", folder / f"tools/library/liboctet.so.{version}")


def newest_glibc(folder):
    """As readelf has it, which make_wheel.py does not ask."""
    found = [(0, 0)]
    for path in folder.rglob("tools/*/*"):
        if path.name.startswith(("q", "lib")):
            words = must("readelf", "-W", "--version-info", path).replace("Name: GLIBC_", "\nGLIBC_").splitlines()
            found += [tuple(int(n) for n in w.split()[0][6:].split(".")[:2]) for w in words if w.startswith("GLIBC_2")]
    return max(found)


def check_form(c, folder):
    build, made = folder / "small", []
    small_build(build)
    for name in ("qeval.bash", "_qeval", "qeval.fish"):
        (build / "tools" / name).write_text(name)
    for name in ("one", "two"):
        (folder / name).mkdir()
        env = dict(os.environ, SOURCE_DATE_EPOCH="1700000000")
        must(PARTS / "make_wheel.py", ROOT, build, folder / "static/licenses", folder / name, env=env)
        made += (folder / name).iterdir()
    c.hold("wheel: the same bytes twice", made[0].read_bytes() == made[1].read_bytes() and made[0].name == made[1].name)
    glibc = max((2, 17), newest_glibc(build))
    c.hold("wheel: its tag is what its symbols need", f"-py3-none-manylinux_{glibc[0]}_{glibc[1]}_" in made[0].name, f"{made[0].name} {glibc}")
    with zipfile.ZipFile(made[0]) as archive:
        record = next(n for n in archive.namelist() if n.endswith("/RECORD"))
        rows = {r[0]: r[1] for r in csv.reader(io.StringIO(archive.read(record).decode()))}
        c.hold("wheel: every file is recorded", set(rows) == set(archive.namelist()))
        wrong = [n for n, h in rows.items() if n != record
                 and h != "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(archive.read(n)).digest()).decode().rstrip("=")]
        c.hold("wheel: hashes are true", not wrong, wrong)
        places = ("bash-completion/completions/qeval.bash", "zsh/site-functions/_qeval", "fish/vendor_completions.d/qeval.fish")
        c.hold("wheel: what shells complete by", all(any(n.endswith(f"/data/share/{p}") for n in rows) for p in places), list(rows))
        c.hold("wheel: licenses of what is linked in", sum("/licenses/" in n for n in rows) == 14, [n for n in rows if "/licenses/" in n])
    must(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", folder / "site", made[0])
    for name in PROGRAMS:
        c.hold(f"wheel: {name} is installed and runs", must(folder / "site/bin" / name).strip() == name)
    c.hold("wheel: the module has its library", (folder / "site/octet/liboctet.so").exists() and (folder / "site/octet/__init__.py").exists())


def check_provider_form(c, folder):
    """The wheel of the provider alone, from the same build folder."""
    (folder / "provider").mkdir()
    must(PARTS / "make_wheel.py", "--provider", ROOT, folder / "small", folder / "static/licenses", folder / "provider", env=dict(os.environ, SOURCE_DATE_EPOCH="1700000000"))
    made = next((folder / "provider").iterdir())
    with zipfile.ZipFile(made) as archive:
        names = set(archive.namelist())
    c.hold("provider's wheel: the plug-in, its module, its licenses, and nothing else", made.name.startswith("onnxruntime_ep_octet-") and
           {n.split("/", 1)[1] for n in names} == {"__init__.py", "libonnxruntime_ep_octet.so", "METADATA", "WHEEL", "RECORD", "licenses/LICENSE", "licenses/libprotobuf-c-dev"}, names)
    must(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", folder / "site", made)
    said = must(sys.executable, "-c", "import onnxruntime_ep_octet as o, os; print(o.ep_name, os.path.exists(o.library_path()))", env=dict(os.environ, PYTHONPATH=str(folder / "site")))
    c.hold("provider's wheel: the module finds its library", said.split() == ["OctetExecutionProvider", "True"], said)


def check_foreign(c, folder):
    """A wheel for another machine: from its libraries, by its compiler and binutils."""
    machine = "aarch64"
    if platform.machine() == machine or not shutil.which(f"{machine}-linux-gnu-gcc"):
        print(f"skipped: there is no cross compiler for {machine}")
        return
    tool, root = f"{machine}-linux-gnu-", folder / "foreign"
    for package in ("libprotobuf-c-dev", "zlib1g-dev"):
        (root / "usr/share/doc" / package).mkdir(parents=True)
        (root / "usr/share/doc" / package / "copyright").write_text(package)
    (root / "usr/include").mkdir()
    (root / "usr/include/zlib.h").write_text("/* a header */\n")
    place = root / f"usr/lib/{machine}-linux-gnu"
    place.mkdir(parents=True)
    (root / "small.c").write_text("#include <stdio.h>\nint small(void) { return puts(\"small\") + fputs(\"\", stdout); }\n")
    must(f"{tool}gcc", "-fPIC", "-c", root / "small.c", "-o", root / "small.o")
    for name in ("protobuf-c", "z"):
        must(f"{tool}ar", "rcs", place / f"lib{name}.a", root / "small.o")
    must(PARTS / "static_deps.py", folder / "laid", machine, root)
    c.hold("foreign: the two libraries that the provider needs, and their headers",
           sorted(p.name for p in (folder / "laid/lib").glob("*.a")) == ["liboctet_own.a", "libprotobuf-c.a", "libz.a"] and (folder / "laid/include/zlib.h").exists())
    (root / "build/provider").mkdir(parents=True)
    must(f"{tool}gcc", "-shared", root / "small.o", "-o", root / "build" / PROVIDER)
    (folder / "for").mkdir()
    must(PARTS / "make_wheel.py", "--provider", ROOT, root / "build", folder / "laid/licenses", folder / "for", env=dict(os.environ, OCT_MACHINE=machine))
    made = next((folder / "for").iterdir())
    with zipfile.ZipFile(made) as archive:
        head = archive.read("onnxruntime_ep_octet/libonnxruntime_ep_octet.so")[:20]
    c.hold("foreign: the wheel is for that machine", made.name.endswith(f"_{machine}.whl") and head[18] == 183, made.name)  # EM_AARCH64


def check_refused(c, build, folder):
    (folder / "no").mkdir()
    done = ran(PARTS / "make_wheel.py", ROOT, build, folder / "static/licenses", folder / "no")
    c.hold("wheel: programs that need other libraries are refused", done.returncode == 1 and "needs lib" in done.stderr and "hint:" in done.stderr
           and not list((folder / "no").iterdir()), done.stderr)


def check_wheel(c, build, folder, built):
    """scripts/package wheel, twice; built: one that is there already."""
    wheels = [built] if built else []
    while len(wheels) < 2:
        out = folder / f"wheel{len(wheels)}"
        must(ROOT / "scripts/package", "wheel", out)
        wheels += out.glob("*.whl")
    c.hold("package wheel: the same bytes twice", wheels[0].name == wheels[1].name and wheels[0].read_bytes() == wheels[1].read_bytes())
    c.hold("package wheel: for glibc 2.17", "-manylinux_2_17_" in wheels[0].name, wheels[0].name)
    must(sys.executable, "-m", "venv", folder / "venv")
    there = folder / "venv/bin"
    must(there / "pip", "install", "--quiet", wheels[0])
    for name, tool in (("ours", lambda t: build / "tools" / t / t), ("wheel", lambda t: there / t)):
        at = folder / name
        at.mkdir()
        installed.walk(at, lambda at, program, *words, tool=tool: must(tool(program), *words, cwd=at), ROOT / "testdata")
    for name in installed.WRITTEN:
        c.hold(f"package wheel: {name} is what the programs of the build write", (folder / "ours" / name).read_bytes() == (folder / "wheel" / name).read_bytes())
    images = ROOT / "testdata/images"
    must(there / "python", "-c", installed.MODULE, ROOT / "testdata/demo.onnx", images / "calib.csv", images / "eval.csv", installed.STEPS, "module.onnx", cwd=folder)
    c.hold("package wheel: the module writes the same", (folder / "module.onnx").read_bytes() == (folder / "ours/direct.onnx").read_bytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--wheel", action="store_true", help="make wheels and install one")
    parser.add_argument("--built", type=Path, help="with --wheel: a wheel made already, the first of the two")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    if not all(map(shutil.which, ("cc", "pkg-config", "objcopy", "dpkg-query", "dpkg-architecture"))):
        print("no compiler, or no distribution with dpkg")
        return 77
    c = installed.Count(args.verbose)
    with tempfile.TemporaryDirectory(prefix="octet-package-") as name:
        folder = Path(name)
        if not check_static(c, folder):
            return 77
        check_form(c, folder)
        check_provider_form(c, folder)
        check_foreign(c, folder)
        check_refused(c, args.build.resolve(), folder)
        if args.wheel:
            check_wheel(c, args.build.resolve(), folder, args.built)
    return c.finish()


if __name__ == "__main__":
    sys.exit(main())
