"""Adds up meson's test results: count.py [--broken N] BUILD... prints "N passed, N failed, N skipped".

--broken N counts N builds that failed as failures. Skipped tests are listed with their reasons before. Exit: 1 when
anything failed, or nothing passed.
"""
import argparse
import sys
import xml.etree.ElementTree as ET
from pathlib import Path


def results(build):
    """(name, "passed" | "failed" | "skipped", reason) of each test and TAP subtest"""
    log = Path(build) / "meson-logs/testlog.junit.xml"
    if not log.exists():
        return
    for suite in ET.parse(log).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            skipped = case.find("skipped")
            failed = case.find("failure") is not None or case.find("error") is not None
            state = "failed" if failed else "skipped" if skipped is not None else "passed"
            reason = (skipped.get("message") or "") if skipped is not None else ""
            if state == "skipped" and not reason:
                reason = " ".join((case.findtext("system-out") or suite.findtext("system-out") or "").split())[-160:]
            yield f"{suite.get('name')}: {case.get('name')}", state, reason


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--broken", type=int, default=0)
    p.add_argument("builds", nargs="+")
    a = p.parse_args()
    count = {"passed": 0, "failed": a.broken, "skipped": 0}
    for build in a.builds:
        for name, state, reason in results(build):
            count[state] += 1
            if state != "passed":
                print(f"{state}: {build}: {name}{': ' + reason if reason else ''}")
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] or not count["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
