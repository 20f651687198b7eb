#!/usr/bin/env python3
"""The archive of `meson dist`.

    check_dist.py [--suite NAME]... [-v]

Packed twice from the last commit, with time between: the same bytes. Unpacked where there is no version control, it configures, builds, and passes the tests
of its suites (unit, unless others are named). Minutes: everything is compiled.

Exit: 0 when all hold, 1 when not, 77 without version control or meson.
"""
import argparse
import shutil
import sys
import tarfile
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import installed

ROOT = Path(__file__).resolve().parents[2]


def packed(source, folder):
    installed.must("meson", "setup", folder, source)
    installed.must("meson", "dist", "-C", folder, "--no-tests", "--allow-dirty")
    return next((folder / "meson-dist").glob("*.tar.xz"))


def check_built(c, archive, folder, suites):
    with tarfile.open(archive) as a:
        a.extractall(folder / "unpacked")
    (source,) = (folder / "unpacked").iterdir()
    build = source / "build"
    for what, words in (("configures", ("meson", "setup", build, source)), ("builds", ("ninja", "-C", build)),
                        ("passes its tests", ("meson", "test", "-C", build, "--no-rebuild", *(w for s in suites for w in ("--suite", s))))):
        done = installed.ran(*words, cwd=source)
        c.hold(f"archive: {what}", done.returncode == 0, (done.stdout + done.stderr)[-3000:])
        if done.returncode:
            return


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", action="append", help="tests that the unpacked archive passes (unit)")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    if not shutil.which("meson") or installed.ran("git", "-C", ROOT, "rev-parse", "HEAD").returncode:
        print("skipped: meson and version control are needed")
        return 77
    c = installed.Count(args.verbose)
    with tempfile.TemporaryDirectory(prefix="octet-dist-") as name:
        folder = Path(name)
        one = packed(ROOT, folder / "one")
        time.sleep(1.1)  # dates of files have seconds
        two = packed(ROOT, folder / "two")
        c.hold("the same bytes twice", one.read_bytes() == two.read_bytes())
        check_built(c, one, folder, args.suite or ["unit"])
    return c.finish()


if __name__ == "__main__":
    sys.exit(main())
