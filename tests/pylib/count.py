"""Adds up meson's test results: count.py [--broken N] [--skipped WHAT] BUILD... prints "N passed, N failed, N skipped".

A test that reports in TAP counts each of its parts; one that says "# skipped: WHY" before its line is skipped. (cmocka's own word for that is a failure in
versions before 1.1.6, so that no test here uses it.) --broken N counts N builds that failed as failures; --skipped names one
that could not be tried. What failed or was skipped is listed before, with the reason. Exit: 1 when anything failed, or nothing passed.
"""
import argparse
import json
import re
import sys
from pathlib import Path

POINT = re.compile(r"^(not )?ok\b[ \t]*(\d*)[ \t]*(?:- )?(.*?)(?:[ \t]+#[ \t]*(?i:(SKIP|TODO))\S*[ \t]*(.*))?$|^# skipped: (.*)$", re.M)


def parts(test):
    """(name, "passed" | "failed" | "skipped", reason) of one entry of testlog.json"""
    name, result, said = test["name"], test["result"], test.get("stdout", "")
    found = []
    if re.search(r"^1\.\.\d+", said, re.M):
        left_out = ""
        for no, _, what, directive, why, announced in POINT.findall(said):
            if announced:
                left_out = announced
                continue
            state = "skipped" if directive.upper() == "SKIP" or left_out and not no else "failed" if no else "passed"
            found.append((f"{name}: {what}", state, why or left_out))
            left_out = ""
    bad = result not in ("OK", "SKIP", "EXPECTEDFAIL")
    if bad and not any(state == "failed" for _, state, _ in found):
        # It crashed, or stopped before its end: that is one failure more than its parts show.
        found.append((name, "failed", f"{result.lower()}, exit status {test.get('returncode')}"))
    if not found:
        found.append((name, "skipped" if result == "SKIP" else "passed", " ".join(said.split())[-160:]))
    return found


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--broken", type=int, default=0)
    p.add_argument("--skipped", default="")
    p.add_argument("builds", nargs="+")
    a = p.parse_args()
    count = {"passed": 0, "failed": a.broken, "skipped": 1 if a.skipped else 0}
    if a.skipped:
        print(f"skipped: {a.skipped}")
    for build in a.builds:
        log = Path(build) / "meson-logs/testlog.json"
        for line in log.read_text().splitlines() if log.exists() else []:
            for name, state, reason in parts(json.loads(line)):
                count[state] += 1
                if state != "passed":
                    print(f"{state}: {build}: {name}{': ' + reason if reason else ''}")
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] or not count["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
