"""What badinput and options share: a case is a function of a Box, a folder of its own with the tools in reach. Reports in TAP."""
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "testdata"
PREPROCESS = ["--preprocess", "mean=127.5:std=127.5"]
CALIB = ["--data", str(DATA / "images/calib.csv"), *PREPROCESS, "--samples", "4", "--first"]
CASES = []


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def slowness(build):
    """How many times longer than usual the tools of a build may take: sanitizers check every access."""
    tool = (build / "tools/qconvert/qconvert").read_bytes()
    return 10 if b"__tsan_init" in tool else 5 if b"__asan_init" in tool else 1


def case(f):
    CASES.append((f.__name__.replace("_", "-"), f))
    return f


def case_of_numbers(f):
    """A case that compares what code computes that other tests run under sanitizers: left out there, unless OCT_ALL is set."""
    def unless_checked(b):
        if b.slow > 1 and not os.environ.get("OCT_ALL"):
            raise Skipped("compares numbers: without sanitizers, or with OCT_ALL=1")
        f(b)

    CASES.append((f.__name__.replace("_", "-"), unless_checked))
    return f


def need(condition, text):
    if not condition:
        raise Failed(text)


class Box:
    """A folder and the tools."""

    def __init__(self, folder, build):
        self.folder, self.build, self.slow = Path(folder), build, slowness(build)

    def limits_memory(self):
        """Of a case that gives the tools an address space of some size: the shadow memory of sanitizers does not fit into it."""
        if self.slow > 1:
            raise Skipped("sanitizers need more address space")

    def copy(self, source, name):
        shutil.copy(DATA / source, self.folder / name)

    def listing(self):
        return {str(p.relative_to(self.folder)): (p.read_bytes() if p.is_file() and os.access(p, os.R_OK) else None)
                for p in self.folder.rglob("*")}

    def call(self, tool, *args, **kw):
        binary = self.build / "tools" / tool / tool
        kw.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([binary, *args], cwd=self.folder, capture_output=True, text=True, errors="replace", timeout=120 * self.slow, **kw)

    def works(self, tool, *args, **kw):
        """The call must succeed; what it prints."""
        r = self.call(tool, *args, **kw)
        need(r.returncode == 0, f"{tool} {' '.join(args)}: exit {r.returncode}: {r.stderr.strip()}")
        return r.stdout

    def fails(self, status, patterns, tool, *args, **kw):
        """The call must fail as said and change nothing."""
        before = self.listing()
        r = self.call(tool, *args, **kw)
        need(r.returncode == status, f"{tool} {' '.join(args)}: exit {r.returncode}, expected {status}: {r.stderr.strip()}")
        for p in [patterns] if isinstance(patterns, str) else patterns:
            need(re.search(p, r.stderr), f"'{p}' is not in: {r.stderr.strip()}")
        after = self.listing()
        need(after == before, f"files changed: {sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k))}")
        return r

    def survives(self, model, what):
        """Any documented end, but no crash and no half-written file."""
        before = set(self.listing())
        r = self.call("qconvert", model, *CALIB, "-o", "out.onnx", "-q")
        need(r.returncode in (0, 3, 4, 5, 6, 7), f"{what}: exit {r.returncode}: {r.stderr.strip()[-300:]}")
        need(r.returncode == 0 or "m.onnx" in r.stderr, f"{what}: the message names no file: {r.stderr.strip()}")
        left = set(self.listing()) - before
        need(left <= ({"out.onnx"} if r.returncode == 0 else set()), f"{what}: left behind: {left}")
        (self.folder / "out.onnx").unlink(missing_ok=True)


def npy(path, shape, values=None, kind="<f4"):
    """Writes an array; values: all of them, default 0.5."""
    count = 1
    for n in shape:
        count *= n
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    head += " " * (63 - (len(head) + 10) % 64) + "\n"
    body = struct.pack(f"<{count}{'q' if kind == '<i8' else 'f'}", *(values or [0.5] * count))
    Path(path).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + body)


MASK = (1 << 64) - 1


def place_hash(x):
    """SplitMix64."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & MASK
    return x ^ x >> 31


def strata(total, n):
    """One place of each of n strata: what --samples N chooses of so many, where that is at most half."""
    places, at = [], 0
    for k in range(n):
        size = total // n + (k < total % n)
        places.append(at + place_hash(k) % size)
        at += size
    return places


def run_cases(tools):
    """Runs the cases that the command line names, or all: SCRIPT BUILD [NAME...]. The exit status."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup has it ignored, and what the cases start would inherit that
    build, names = Path(sys.argv[1]).resolve(), sys.argv[2:]
    for tool in tools:
        if not (build / "tools" / tool / tool).is_file():
            print(f"1..0 # SKIP {tool} is not built")
            return 0
    chosen = [c for c in CASES if not names or c[0] in names]
    print(f"1..{len(chosen)}")
    bad = 0
    for i, (name, f) in enumerate(chosen, 1):
        with tempfile.TemporaryDirectory(prefix="octet-cli-") as folder:
            try:
                f(Box(folder, build))
                print(f"ok {i} {name}", flush=True)
            except Skipped as e:
                print(f"ok {i} {name} # SKIP {e}", flush=True)
            except (Failed, subprocess.TimeoutExpired) as e:
                bad += 1
                print(f"not ok {i} {name}")
                for line in str(e).splitlines():
                    print(f"# {line}")
                sys.stdout.flush()
    return 1 if bad else 0
