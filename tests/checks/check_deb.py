#!/usr/bin/env python3
"""The Debian packages that scripts/package makes, as somebody has them who has nothing else.

    check_deb.py BUILD [--built FOLDER] [--root FOLDER] [-v]

scripts/package deb twice: the same names and bytes; lintian finds no error and no warning. In a clean root, which debootstrap lays from the
distribution's archive, `apt install ./octet*.deb` brings no compiler, and the programs calibrate, convert and evaluate the demo there: what they write
are the bytes that those of BUILD write. So does the Python module, when its package and the library's are installed. Purged, they leave nothing.

--built names a folder of packages that were made from this source, the first of the two; --root a folder with a clean root, which is copied.
Needs root, debootstrap, lintian, and the distribution's archive. Exit: 0 when all hold, 1 when not, 77 where something is missing.
"""
import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import installed

ROOT = Path(__file__).resolve().parents[2]
NAMES = {"liboctet-dev", "liboctet0", "octet", "onnxruntime-ep-octet", "python3-octet"}
PLACE = Path("/srv")  # of files in the clean root
COMPILERS = ("cc", "gcc", "clang", "tcc", "c99")


def packages_of(folder):
    """{package: file}"""
    return {p.name.split("_")[0]: p for p in folder.glob("*.deb")}


def made(folder):
    installed.must(ROOT / "scripts/package", "deb", folder)
    return packages_of(folder)


def check_bytes(c, one, two):
    c.hold("the five packages", set(one) == NAMES, sorted(one))
    c.hold("the same bytes twice", set(one) == set(two) and all(one[n].name == two[n].name and one[n].read_bytes() == two[n].read_bytes() for n in one),
           [n for n in one if n not in two or one[n].read_bytes() != two[n].read_bytes()])


def check_lintian(c, packages):
    done = installed.ran("lintian", "--allow-root", "--fail-on", "error,warning", *packages.values())
    c.hold("lintian: neither errors nor warnings", done.returncode == 0, done.stdout + done.stderr)


class Clean:
    """A root of the distribution's smallest system."""

    def __init__(self, at, copied):
        self.at, self.place = at, at / PLACE.relative_to("/")
        if copied:
            installed.must("cp", "-a", copied, at)
            return
        # As this machine has it in /etc/os-release.
        suite = installed.must("sh", "-c", '. /etc/os-release; echo "$VERSION_CODENAME"').strip()
        done = installed.ran("debootstrap", "--variant=minbase", suite, at)
        if done.returncode:
            raise installed.MissingError(f"debootstrap {suite}: {(done.stdout + done.stderr).strip().splitlines()[-1:]}")

    def run(self, *words, status=0):
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "HOME": str(PLACE)}
        done = installed.ran("chroot", self.at, *words, env=env)
        if done.returncode != status:
            raise RuntimeError(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def install(self, *files):
        for f in files:
            shutil.copy(f, self.place / f.name)
        self.run("apt-get", "install", "-y", "--no-install-recommends", *(PLACE / f.name for f in files))

    def files(self):
        """What is there that packages bring."""
        return {p.relative_to(self.at) for p in (self.at / "usr").rglob("*") if "octet" in p.name or p.name in installed.PROGRAMS}


def check_clean(c, clean, packages, build, folder):
    shutil.copy("/etc/resolv.conf", clean.at / "etc/resolv.conf")
    clean.run("apt-get", "update")
    clean.install(packages["octet"])
    there = [n for n in COMPILERS if (clean.at / "usr/bin" / n).exists()]
    c.hold("clean root: apt installs octet, and no compiler", not there, there)
    want = folder / "want"
    want.mkdir()
    (want / "testdata").symlink_to(ROOT / "testdata")
    data = Path("testdata")
    installed.walk(want, lambda at, name, *words: installed.must(build / "tools" / name / name, *words, cwd=at), data)
    shutil.copytree(ROOT / "testdata/images", clean.place / "testdata/images")
    shutil.copy(ROOT / "testdata/demo.onnx", clean.place / "testdata/demo.onnx")
    installed.walk(PLACE, lambda at, name, *words: clean.run("sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", at, name, *words), data)
    for name in installed.WRITTEN:
        c.hold(f"clean root: {name} is what the programs of the build write", (clean.place / name).read_bytes() == (want / name).read_bytes())
    clean.install(*packages.values())
    c.hold("clean root: the other packages bring no compiler", not [n for n in COMPILERS if (clean.at / "usr/bin" / n).exists()])
    clean.run("sh", "-c", 'cd "$1" && shift && exec python3 -c "$@"', "sh", PLACE, installed.MODULE, "testdata/demo.onnx", "testdata/images/calib.csv", "testdata/images/eval.csv",
              installed.STEPS, "module.onnx")
    c.hold("clean root: the module writes the same", (clean.place / "module.onnx").read_bytes() == (want / "direct.onnx").read_bytes())
    clean.run("apt-get", "purge", "-y", *packages)
    c.hold("clean root: purged, nothing is left", not clean.files(), sorted(map(str, clean.files())))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--built", type=Path, help="packages made already, the first of the two")
    parser.add_argument("--root", type=Path, help="a clean root, which is copied")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    missing = [n for n in ("debootstrap", "lintian", "chroot", "apt-get", "dpkg-buildpackage") if not shutil.which(n)]
    if missing or os.geteuid() != 0:
        print("skipped:", ", ".join(missing + ["root"] * (os.geteuid() != 0)), "is needed")
        return 77
    c = installed.Count(args.verbose)
    with tempfile.TemporaryDirectory(prefix="octet-deb-") as name:
        folder = Path(name)
        try:
            clean = Clean(folder / "root", args.root)
        except installed.MissingError as e:
            print(f"skipped: {e}")
            return 77
        one = packages_of(args.built) if args.built else made(folder / "one")
        check_bytes(c, one, made(folder / "two"))
        check_lintian(c, one)
        check_clean(c, clean, one, args.build.resolve(), folder)
    return c.finish()


if __name__ == "__main__":
    sys.exit(main())
