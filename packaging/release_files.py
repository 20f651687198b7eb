#!/usr/bin/env python3
"""Writes what accompanies the files of a release, beside them: SHA256SUMS; octet-VERSION.cdx.json, the list of what is in them (SBOM, CycloneDX 1.5); and
octet-VERSION.intoto.json, an unsigned statement (in-toto, with the predicate of SLSA provenance) of which commit they were made from.

    release_files.py FOLDER VERSION COMMIT

What wheels bring with them is what static_deps.py names, in the versions that dpkg knows. The bytes depend on these, on the files, and on SOURCE_DATE_EPOCH.
"""
import datetime
import hashlib
import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "wheel"))
import static_deps

# SPDX identifiers of the licences of what is linked in; Debian's copyright files, which wheels have, tell them at length.
LICENSES = {"libprotobuf-c": "BSD-2-Clause", "zlib": "Zlib", "jansson": "MIT", "libjpeg": "IJG AND BSD-3-Clause AND Zlib", "libpng": "libpng-2.0",
            "libwebp": "BSD-3-Clause", "libutf8proc": "MIT", "libpcre2-8": "BSD-3-Clause", "libarchive": "BSD-2-Clause", "bzip2": "bzip2-1.0.6",
            "liblzma": "LicenseRef-public-domain", "libzstd": "BSD-3-Clause", "liblz4": "BSD-2-Clause"}
SPACE = uuid.UUID("6f5a4f0e-2c0b-5d8f-9a57-0c7e1e1f0c7e")  # of the identifiers that are made from hashes


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def packaged(package):
    """The version of an installed Debian package; "": it is not installed, as on another distribution."""
    try:
        done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def linked_in(name):
    """pkg-config names of the libraries that a file of the release brings with it."""
    if not name.endswith(".whl"):
        return ()
    return static_deps.PROVIDER_NEEDS if name.startswith("onnxruntime_ep") else tuple(static_deps.DEPS)


def library(name):
    package, version = static_deps.DEPS[name][0], packaged(static_deps.DEPS[name][0])
    licenses = [{"expression": LICENSES[name]}]
    found = {"type": "library", "bom-ref": f"library:{name}", "name": name, "licenses": licenses}
    return found | ({"version": version, "purl": f"pkg:deb/debian/{package}@{version.replace('+', '%2B').replace(':', '%3A')}"} if version else {})


def sbom(files, version, commit, date):
    names = sorted({name for f in files for name in linked_in(f.name)})
    whole = {"type": "application", "bom-ref": "octet", "name": "octet", "version": version, "licenses": [{"license": {"id": "Apache-2.0"}}],
             "properties": [{"name": "octet:commit", "value": commit}]}
    parts = [{"type": "file", "bom-ref": f"file:{f.name}", "name": f.name, "version": version, "hashes": [{"alg": "SHA-256", "content": sha256(f)}],
              "licenses": [{"license": {"id": "Apache-2.0"}}]} for f in files]
    needs = [{"ref": "octet", "dependsOn": [f"file:{f.name}" for f in files]}]
    needs += [{"ref": f"file:{f.name}", "dependsOn": [f"library:{n}" for n in sorted(linked_in(f.name))]} for f in files]
    needs += [{"ref": f"library:{n}", "dependsOn": []} for n in names]
    serial = uuid.uuid5(SPACE, "".join(sha256(f) for f in files))
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": f"urn:uuid:{serial}", "version": 1,
            "metadata": {"timestamp": date, "component": whole}, "components": [*parts, *(library(n) for n in names)], "dependencies": needs}


def provenance(files, version, commit):
    return {"_type": "https://in-toto.io/Statement/v1", "subject": [{"name": f.name, "digest": {"sha256": sha256(f)}} for f in files],
            "predicateType": "https://slsa.dev/provenance/v1",
            "predicate": {"buildDefinition": {"buildType": "urn:octet:release:1", "externalParameters": {"command": "scripts/release", "version": version},
                                              "resolvedDependencies": [{"uri": "git:octet", "digest": {"gitCommit": commit}}]},
                          "runDetails": {"builder": {"id": "urn:octet:scripts/release"}}}}


def main():
    folder, version, commit = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    seconds = int(os.environ["SOURCE_DATE_EPOCH"])
    date = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    files = sorted(p for p in folder.iterdir() if p.is_file())
    for name, made in (("cdx", sbom(files, version, commit, date)), ("intoto", provenance(files, version, commit))):
        (folder / f"octet-{version}.{name}.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    every = sorted(p for p in folder.iterdir() if p.is_file())
    (folder / "SHA256SUMS").write_text("".join(f"{sha256(p)}  {p.name}\n" for p in every), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
