#!/usr/bin/env python3
"""What tests/pylib/count.py counts, on test logs written here; and that no unit test skips as cmocka does, which some versions report as a failure."""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SKIPPED = """1..3
ok 1 - first
# skipped: no models in ../shared/models
ok 2 - second
# a word
ok 3 - third
"""
PLAIN = "1..2\nok 1 - a # SKIP no such CPU\nok 2 - b\n"
FAILED = "1..2\n# skipped: this is not so\nnot ok 1 - a\nok 2 - b\n"
# (entries of a log, arguments, the last lines, the exit status)
CASES = (
    ([("t", "OK", SKIPPED)], [], "t: second: no models in ../shared/models\n2 passed, 0 failed, 1 skipped", 0),
    ([("t", "OK", PLAIN), ("u", "OK", "")], [], "2 passed, 0 failed, 1 skipped", 0),
    ([("t", "FAIL", FAILED)], [], "1 passed, 1 failed, 0 skipped", 1),
    ([("t", "OK", SKIPPED)], ["--skipped", "kernels for AArch64"], "2 passed, 0 failed, 2 skipped", 0),
    ([("t", "OK", "")], ["--broken", "1"], "1 passed, 1 failed, 0 skipped", 1),
    ([], [], "0 passed, 0 failed, 0 skipped", 1),
)


def main():
    faults = []
    for entries, arguments, wanted, status in CASES:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "meson-logs/testlog.json"
            log.parent.mkdir()
            log.write_text("".join(json.dumps({"name": n, "result": r, "returncode": 0, "stdout": s}) + "\n" for n, r, s in entries))
            got = subprocess.run([sys.executable, str(ROOT / "tests/pylib/count.py"), *arguments, folder], capture_output=True, text=True)
        if not got.stdout.endswith(wanted + "\n") or got.returncode != status:
            faults.append(f"{entries}: got {got.stdout + got.stderr!r}, exit {got.returncode}; wanted {wanted!r}, exit {status}")
    for source in sorted((ROOT / "tests/unit").glob("*.c")):
        if re.search(r"(?<!\w)skip\(\)", source.read_text()):
            faults.append(f'{source.name} calls skip(): print "# skipped: WHY" and return')
    print(*faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
