#!/usr/bin/env python3
"""What scripts/release makes of the last commit.

    check_release.py [--all] [-v]

The source archive twice: the same bytes; it has what version control has, and nothing else. Checksums are true. The SBOM and the statement name the files by
their hashes, have the form of CycloneDX 1.5 and of in-toto, and name the libraries that a wheel brings. Where the Python packages are installed (also in the
Python that OCT_PYTHON names), cyclonedx and in_toto_attestation must accept them. With --all everything is made twice, as root, with the network: most of an hour.

Exit: 0 when all hold, 1 when not, 77 without version control or xz.
"""
import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import installed

ROOT = Path(__file__).resolve().parents[2]
# What the two packages say of a file; nothing where they are not installed.
CYCLONEDX = """import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
fault = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())
sys.exit(str(fault) if fault else 0)"""
IN_TOTO = """import sys
from google.protobuf.json_format import ParseDict
import in_toto_attestation.v1.statement_pb2 as pb
from in_toto_attestation.v1.statement import Statement
import json
p = ParseDict(json.load(open(sys.argv[1])), pb.Statement())
Statement.copy_from_pb(p).validate()"""


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def accepted(c, what, module, script, path):
    for python in filter(None, (os.environ.get("OCT_PYTHON"), sys.executable)):
        if subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0:
            done = subprocess.run([python, "-c", script, path], capture_output=True, text=True)
            c.hold(f"{what}: {module} accepts it", done.returncode == 0, done.stderr[-2000:])
            return
    print(f"skipped: no Python package {module}")


def check_archive(c, archive):
    with tarfile.open(archive) as a:
        names = {m.name.split("/", 1)[1] for m in a if not m.isdir()}
        modes = {m.mode for m in a if m.isfile()}
    wanted = set(installed.must("git", "-C", ROOT, "ls-tree", "-r", "-z", "--name-only", "HEAD").split("\0")) - {""}
    c.hold("archive: what version control has", names == wanted, sorted(names ^ wanted)[:5])
    c.hold("archive: plain modes", modes <= {0o644, 0o755}, modes)


def check_sbom(c, folder, files):
    (path,) = folder.glob("*.cdx.json")
    made = json.loads(path.read_text())
    parts = {p["bom-ref"]: p for p in made["components"]}
    c.hold("SBOM: form", made["bomFormat"] == "CycloneDX" and made["specVersion"] == "1.5" and re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", made["serialNumber"]) and
           re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made["metadata"]["timestamp"]), made)
    c.hold("SBOM: every file by its hash", {p["name"]: p["hashes"] for p in parts.values() if p["type"] == "file"} ==
           {f.name: [{"alg": "SHA-256", "content": sha256(f)}] for f in files}, list(parts))
    refs = {"octet", *parts}
    c.hold("SBOM: what depends on what is there", {d["ref"] for d in made["dependencies"]} == refs and all(r in refs for d in made["dependencies"] for r in d["dependsOn"]), made["dependencies"])
    wheels = [d for d in made["dependencies"] if d["ref"].endswith(".whl")]
    c.hold("SBOM: wheels name what they bring", all("library:libprotobuf-c" in d["dependsOn"] and "library:zlib" in d["dependsOn"] for d in wheels), wheels)
    accepted(c, "SBOM", "cyclonedx", CYCLONEDX, path)
    return parts


def check_statement(c, folder, files, commit):
    (path,) = folder.glob("*.intoto.json")
    made = json.loads(path.read_text())
    c.hold("statement: the files and the commit", made["_type"] == "https://in-toto.io/Statement/v1" and made["subject"] == [{"name": f.name, "digest": {"sha256": sha256(f)}} for f in files]
           and made["predicate"]["buildDefinition"]["resolvedDependencies"][0]["digest"] == {"gitCommit": commit}, made)
    accepted(c, "statement", "in_toto_attestation", IN_TOTO, path)


def check_files(c, folder):
    """What is beside the files of a release."""
    files = sorted(p for p in folder.iterdir() if not p.name.endswith(".json") and p.name != "SHA256SUMS")
    done = installed.ran("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=folder)
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    c.hold("checksums: all files, and true", done.returncode == 0 and len(lines) == len(files) + 2, done.stdout + done.stderr)
    check_statement(c, folder, files, installed.must("git", "-C", ROOT, "rev-parse", "HEAD").strip())
    return check_sbom(c, folder, files)


def check_with_wheel(c, folder):
    """A wheel brings libraries: the list of a folder in which there is one."""
    other = folder / "other"
    other.mkdir()
    (other / "octet_quantize-1-py3-none-any.whl").write_bytes(b"wheel")
    installed.must(ROOT / "packaging/release_files.py", other, "1", "0" * 40, env=dict(os.environ, SOURCE_DATE_EPOCH="1700000000"))
    made = json.loads(next(other.glob("*.cdx.json")).read_text())
    named = {p["name"]: p for p in made["components"] if p["type"] == "library"}
    c.hold("SBOM: thirteen libraries with licences", len(named) == 13 and all(p["licenses"][0]["expression"] for p in named.values()), list(named))
    if shutil.which("dpkg-query"):
        there = installed.ran("dpkg-query", "-W", "-f", "${Version}", "zlib1g-dev").stdout
        c.hold("SBOM: versions are those that are linked in", named["zlib"].get("version", "") == there, named["zlib"])
    accepted(c, "SBOM of a wheel", "cyclonedx", CYCLONEDX, next(other.glob("*.cdx.json")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="packages and wheels, too")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    if not shutil.which("xz") or installed.ran("git", "-C", ROOT, "rev-parse", "HEAD").returncode:
        print("skipped: version control and xz are needed")
        return 77
    c = installed.Count(args.verbose)
    with tempfile.TemporaryDirectory(prefix="octet-release-") as name:
        folder = Path(name)
        done = installed.ran(ROOT / "scripts/release", *([] if args.all else ["--only", "archive"]), "--twice", folder / "made")
        c.hold("the same bytes twice", done.returncode == 0 and "the same to the last byte" in done.stdout, (done.stdout + done.stderr)[-3000:])
        if done.returncode == 0:
            check_archive(c, next((folder / "made").glob("*.tar.xz")))
            parts = check_files(c, folder / "made")
            c.hold("all parts", not args.all or sum(p["type"] == "file" for p in parts.values()) == 1 + 3 + 5, list(parts))
        check_with_wheel(c, folder)
        for words in (["--only", "nothing"], ["--only"], [folder]):
            c.hold(f"refused: {words}", installed.ran(ROOT / "scripts/release", *words).returncode == 2)
    return c.finish()


if __name__ == "__main__":
    sys.exit(main())
