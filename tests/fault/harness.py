"""What tests/fault/faults and scripts/development/torture share: the jobs, how one is run under a fault, and what must hold after it.

A job reads from in/ and writes to out/ of its folder. Before each run out/ holds for every output an older file, or nothing;
afterwards it must hold that or, whole, what the undisturbed run writes, and nothing else.
"""
import copy
import itertools
import json
import os
import queue
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DATA = ROOT / "testdata"
sys.path.insert(0, str(ROOT / "tests/cli"))
from box import npy  # noqa: E402

OLD = b"what an earlier run left\n"
SECONDS = 20  # a run that has not ended by then hangs; undisturbed ones take a tenth of a second
SCALE = ["--preprocess", "mean=127.5:std=127.5"]

# What each class of calls fails with, and the exit status that this may lead to. None: the call can be made again, so the
# run has to succeed. A run that succeeds with the same bytes is right in any case.
ACTIONS = {
    "alloc": [("ENOMEM", 7)],
    "open": [("EMFILE", 3), ("EACCES", 3), ("EINTR", 3)],
    "read": [("EIO", 3), ("EINTR", None), ("short", None)],
    "write": [("ENOSPC", 3), ("EIO", 3), ("EINTR", None), ("short", None), ("zero", 3)],
    "sync": [("EIO", 3), ("ENOSPC", 3)],
    "rename": [("EIO", 3), ("EACCES", 3)],
    "mmap": [("ENOMEM", 7), ("EACCES", 3)],
    "close": [("EIO", 3), ("EINTR", 3)],
    "trunc": [("ENOSPC", 3)],
    "stat": [("EIO", 3), ("EACCES", 3)],
    "thread": [("EAGAIN", 7)],
}
NEEDS = {3: r"(in|out)/|standard (in|out)put", 7: r"memory|thread"}  # what the message of an exit status names


class Job:
    def __init__(self, name, tool, args, out, threads=1):
        self.name, self.tool, self.args, self.out = name, tool, [*args, "--threads", str(threads), "-q"], out


def jobs():
    q, pictures = ["in/m.onnx", "-o", "out/m.onnx"], ["--data", "in/pictures", *SCALE]
    report = ["--json", "out/r.json", "--html", "out/r.html", "--junit", "out/r.xml"]
    return [
        Job("npy", "qconvert", [*q, "--data", "in/x.npy"], ["m.onnx"]),
        Job("pictures", "qconvert", [*q, *pictures, "--json", "out/r.json"], ["m.onnx", "r.json"]),
        Job("skip-bad", "qconvert", [*q, *pictures, "--skip-bad"], ["m.onnx"]),
        Job("shard", "qconvert", [*q, "--data", "in/s.tar", *SCALE], ["m.onnx"]),
        Job("pipe", "qconvert", [*q, "--data", "pipe:cat in/s.tar", *SCALE], ["m.onnx"]),
        Job("lists", "qconvert", [*q, "--data", "in/list.csv", *SCALE, "--policy", "in/rules.policy"], ["m.onnx"]),
        Job("threads", "qconvert", [*q, *pictures], ["m.onnx"], threads=3),
        Job("calib", "qconvert", [*q, "--calib", "in/t.calib"], ["m.onnx"]),
        Job("external", "qconvert", ["in/external_data.onnx", "-o", "out/m.onnx", "--scheme", "dynamic"], ["m.onnx"]),
        Job("fp16", "qconvert", [*q, "--scheme", "fp16"], ["m.onnx"]),
        Job("weights", "qconvert", [*q, "--scheme", "weight-only"], ["m.onnx"]),
        Job("table", "qcalib", ["in/m.onnx", "--data", "in/x.npy", "-o", "out/t.calib.gz"], ["t.calib.gz"]),
        Job("merge", "qcalib", ["merge", "in/0.calib", "in/1.calib.gz", "-o", "out/t.calib"], ["t.calib"]),
        Job("report", "qeval", ["in/m.onnx", "in/q.onnx", "--data", "in/x.npy", "--labels", "in/y.npy", *report],
            ["r.json", "r.html", "r.xml"]),
        Job("outputs", "qeval", ["in/q.onnx", "--data", "in/x.npy", "--outputs", "out/y.npz"], ["y.npz"]),
    ]


# ---------------------------------------------------------------- what is written


# Denormals are looked for where a speed is suspicious, which it may be on a busy machine.
MEASURED = re.compile(r"second|time|latency|(^|_)ms$|^costs$|^wide$|_us|load|speed|memory|bytes_per|faster|runs|peak|spread|denormals|^command$")


def known(v, path=""):
    """What a report as JSON says but for what was timed or measured of the machine, and for the command: pairs of path and value."""
    if isinstance(v, dict):
        timed = {"share", "roof"} if "ms" in v else {"text"} if "load" in v else set()  # what is said of a time, or of the machine
        return [p for k, x in v.items() if not MEASURED.search(k) and k not in timed for p in known(x, f"{path}/{k}")]
    return [p for i, x in enumerate(v) for p in known(x, f"{path}/{i}")] if isinstance(v, list) else [(path, v)]


def difference(a, b):
    """The first place where two reports as JSON differ; None: they say the same."""
    try:
        old, new = known(json.loads(b)), known(json.loads(a))
    except ValueError:
        return "no JSON"
    return next((f"{x} is not {y}" for x, y in itertools.zip_longest(new, old) if x != y), None)


def same(name, a, b):
    """Whether bytes a of an output are what the undisturbed run's bytes b say."""
    if name.endswith(".json"):
        return difference(a, b) is None
    if name.endswith((".html", ".xml")):  # they hold times; a page has a line of them for each layer
        return a[:15] == b[:15] and a[-7:] == b[-7:] and abs(len(a) - len(b)) < (len(b) // 5 if name.endswith(".html") else 300)
    return a == b


# ---------------------------------------------------------------- one run


class Place:
    """A folder with the inputs, in which one job runs at a time."""

    def __init__(self, folder, build):
        self.folder, self.build = Path(folder), Path(build)
        self.out, self.log = self.folder / "out", self.folder / "log"
        self.library = self.build / "tests/fault" / "libinterpose.so"

    def binary(self, tool):
        return self.build / "tools" / tool / tool

    def make_inputs(self):
        here = self.folder / "in"
        here.mkdir()
        shutil.copy(DATA / "demo.onnx", here / "m.onnx")
        for name in ("external_data.onnx", "external_data.bin"):
            shutil.copy(DATA / "models" / name, here / name)
        (here / "pictures").mkdir()
        some = sorted((DATA / "images/calib").iterdir())[:4]
        for p in some:
            shutil.copy(p, here / "pictures")
        (here / "list.csv").write_text("file,label\n" + "".join(f"pictures/{p.name},{i}\n" for i, p in enumerate(some)))
        (here / "rules.policy").write_text("op:Gemm  float  -  -  -\n")
        with tarfile.open(here / "s.tar", "w") as t:
            for p in some:
                t.add(p, p.name)
        count = 4 * 3 * 32 * 32
        npy(here / "x.npy", [4, 3, 32, 32], [(i * 7919 % 1009) / 504.5 - 1 for i in range(count)])
        npy(here / "y.npy", [4], [0, 1, 2, 3], "<i8")
        for args in (["qcalib", "in/m.onnx", "--data", "in/x.npy", "-o", "in/t.calib"],
                     ["qcalib", "in/m.onnx", "--data", "in/x.npy", "--shard", "0/2", "-o", "in/0.calib"],
                     ["qcalib", "in/m.onnx", "--data", "in/x.npy", "--shard", "1/2", "-o", "in/1.calib.gz"],
                     ["qconvert", "in/m.onnx", "--calib", "in/t.calib", "-o", "in/q.onnx"]):
            subprocess.run([self.binary(args[0]), *args[1:], "-q"], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        self.out.mkdir()

    def copy_to(self, folder):
        shutil.copytree(self.folder / "in", Path(folder) / "in")
        p = Place(folder, self.build)
        p.out.mkdir()
        return p

    def before(self, job, old):
        """Empties out/ but for older outputs."""
        for p in self.out.iterdir():
            p.unlink()
        for name in job.out if old else []:
            (self.out / name).write_bytes(OLD)

    def start(self, job, fault=None, **kw):
        env = {**os.environ, "LD_PRELOAD": str(self.library), "OCT_FAULT_LOG": str(self.log)} if self.library else dict(os.environ)
        if fault:
            env["OCT_FAULT"] = fault
        self.log.unlink(missing_ok=True)
        kw = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **kw}
        return subprocess.Popen([self.binary(job.tool), *job.args], cwd=self.folder, env=env, **{"preexec_fn": no_core, **kw})

    def run(self, job, fault=None, old=True, **kw):
        """Exit status (None: it hung) and standard error."""
        self.before(job, old)
        p = self.start(job, fault, **kw)
        try:
            err = p.communicate(timeout=SECONDS)[1]
        except subprocess.TimeoutExpired:
            p.kill()
            return None, (p.communicate()[1] or b"").decode(errors="replace")
        return p.returncode, (err or b"").decode(errors="replace")

    def counts(self):
        words = [line.split() for line in self.log.read_text().splitlines()]
        return {c: int(n) for what, c, n in words if what == "count"}

    def written(self):
        return {p.name: p.read_bytes() for p in self.out.iterdir()}

    def reference(self, job):
        """What the undisturbed run writes, and how many calls it makes."""
        code, err = self.run(job, old=False)
        if code != 0:
            raise SystemExit(f"{job.name}: the undisturbed run ends with {code}: {err}")
        want, counts = self.written(), self.counts()
        self.run(job, old=True)
        again = self.written()
        if sorted(want) != sorted(job.out) or any(not same(n, again[n], want[n]) for n in job.out):
            raise SystemExit(f"{job.name}: two undisturbed runs write {sorted(want)} and {sorted(again)}, and differ")
        return want, counts


def no_core():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


# ---------------------------------------------------------------- what must hold


def states(job, found, want, old, left=None):
    """Which outputs are new, as a set; a text instead when something is neither old nor new. left: names that may stay."""
    new = set()
    for name in job.out:
        if name in found and same(name, found[name], want[name]):
            new.add(name)
        elif (name in found) != old or (old and found[name] != OLD):
            if name not in found:
                return f"{name} is gone"
            why = f"; {difference(found[name], want[name])}" if name.endswith(".json") else ""
            return f"{name} is neither old nor new ({len(found[name])} bytes{why})"
    extra = [n for n in found if n not in job.out and not (left and left.search(n))]
    return f"left behind: {' '.join(sorted(extra))}" if extra else new


def judge(job, code, err, found, want, old, allowed):
    """How a run ended: 'same' (it succeeded with the same bytes), 'clean' (a documented error), or what is wrong with it."""
    if code is None:
        return "hangs"
    new = states(job, found, want, old)
    if isinstance(new, str):
        return f"exit {code}: {new}: {err.strip()[:200]}"
    if code == 0:
        return "same" if new == set(job.out) else f"exit 0, but not written: {sorted(set(job.out) - new)}"
    if code not in allowed:
        return f"exit {code}: {err.strip()[:200]}"
    if not re.search(rf"^{job.tool}: ", err, re.M) or not re.search(NEEDS.get(code, "."), err):
        return f"exit {code}, but the message names nothing: '{err.strip()[:200]}'"
    return "clean"


def chosen(count, most, salt=""):
    """At most `most` of the numbers 1 to count, spread, the first and the last among them; another `salt`, others."""
    if not most or count <= most:
        return list(range(1, count + 1))
    if most == 1:
        return [1 + sum(salt.encode()) % count]
    shift = sum(salt.encode()) % 97 / 97 / 2
    inner = {1 + int((i + shift) * count / (most - 1)) for i in range(1, most - 1)}
    return sorted({1, count, *(min(n, count) for n in inner)})


# ---------------------------------------------------------------- sweeps


class Tally:
    """What became of the runs of one kind."""

    def __init__(self):
        self.runs = self.clean = self.same = 0
        self.findings = []

    def add(self, verdict, what):
        self.runs += 1
        if verdict in ("clean", "same"):
            setattr(self, verdict, getattr(self, verdict) + 1)
        else:
            self.findings.append(f"{what}: {verdict}")


def faults_of(job, kind, calls, most):
    """The runs of one class of calls: (fault, allowed exit status or None). `+`: that call and all after it fail."""
    out = []
    for action, code in ACTIONS[kind]:
        out += [(f"{kind}:{n}:{action}", code) for n in chosen(calls, most, job.name + action)]
        if code and action != "EINTR":  # nothing interrupts for ever
            out += [(f"{kind}:{n}+:{action}", code) for n in chosen(calls, most and max(1, most // 2), action + job.name)]
    return out


# Jobs that load libarchive. Its 3.6 does not look at one allocation of archive_read_open1, and the dynamic linker ends a process that has
# no memory while symbols of C++ libraries are bound: what they do to the process is not ours, what is written still is.
ARCHIVES = {"shard", "pipe"}


def not_ours(job, fault, status, err):
    return job.name in ARCHIVES and fault.startswith("alloc:") and (status == -signal.SIGSEGV or (status == 127 and err.strip() == "out of memory"))


def under_fault(place, job, fault, code, want, old):
    """The verdict of a run under a fault."""
    status, err = place.run(job, fault, old)
    found = place.written()
    if not_ours(job, fault, status, err) and states(job, found, want, old) == set():
        return "clean"
    return judge(job, status, err, found, want, old, {code} - {None})


# ---------------------------------------------------------------- signals

LEFT = re.compile(r"^\..*\.octet-\w+$")  # temporary files, which SIGKILL alone may leave


def stopped(place, job, sig, start, want, old):
    """The verdict of a run that a signal ends; start() begins it and returns the process."""
    place.before(job, old)
    p = start()
    try:
        err = p.communicate(timeout=SECONDS)[1].decode(errors="replace")
    except subprocess.TimeoutExpired:
        p.kill()
        p.communicate()
        return "hangs"
    found = place.written()
    new = states(job, found, want, old, LEFT if sig == signal.SIGKILL else None)
    if isinstance(new, str):
        return f"exit {p.returncode}: {new}"
    if p.returncode == 0:
        return "same" if new == set(job.out) else f"exit 0, but not written: {sorted(set(job.out) - new)}"
    if p.returncode != -sig:
        return f"exit {p.returncode}: {err.strip()[:200]}"
    left = [n for n in found if LEFT.search(n)]
    return names_leftovers(place, job, left, want) if left else "clean"


def names_leftovers(place, job, left, want):
    """The run after a killed one succeeds, and warns of what that left."""
    p = place.start(job)
    err = p.communicate()[1].decode(errors="replace")
    found = place.written()
    if p.returncode != 0 or any(not same(n, found.get(n, b""), want[n]) for n in job.out):
        return f"the run after a killed one: exit {p.returncode}: {err.strip()[:200]}"
    missing = [n for n in left if n not in err]
    return f"left and not named by the next run: {missing}" if missing else "clean"


def signal_at(place, job, sig, n, want, old):
    """A signal at the n-th call that is no allocation."""
    return stopped(place, job, sig, lambda: place.start(job, f"any:{n}:{sig.name[3:]}"), want, old)


def signal_after(place, job, sig, seconds, want, old):
    def start():
        p = place.start(job)
        time.sleep(seconds)
        p.send_signal(sig)
        return p
    return stopped(place, job, sig, start, want, old)


# ---------------------------------------------------------------- surroundings


def closed(place, job, which, want, old):
    """Descriptors of `which` are closed at the start."""
    def close():
        no_core()
        for fd in which:
            os.close(fd)
    status, err = place.run(job, None, old, preexec_fn=close)
    return judge(job, status, err, place.written(), want, old, set())


def full_output(place, job, want):
    """The report for people finds no room; what is written to files is whole all the same."""
    loud = copy.copy(job)
    loud.args = [a for a in job.args if a != "-q"]
    with open("/dev/full", "w") as full:
        status, err = place.run(loud, None, True, stdout=full)
    return judge(job, status, err, place.written(), want, True, {3})


def file_limit(place, job, most, want, old):
    """No file may grow beyond `most` bytes."""
    def limit():
        no_core()
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    place.library, kept = "", place.library  # its log counts as well
    status, err = place.run(job, None, old, preexec_fn=limit)
    place.library = kept
    return judge(job, status, err, place.written(), want, old, {3})


def can_mount():
    return shutil.which("unshare") and subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode == 0


def mounted(place, job, options, after, want, old):
    """out/ is a tmpfs of its own, with `after` done to it (as a remount for reading only) before the tool starts."""
    script = f"""mount -t tmpfs -o {options} none out || exit 99
        [ -z "$OLD" ] || for f in $OUT; do printf "%s\\n" "$OLD" > out/$f; done
        {after}
        "$@"; code=$?
        cp -a out/. kept/; exit $code"""
    kept = place.folder / "kept"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir()
    env = {**os.environ, "OLD": OLD.decode().strip() if old else "", "OUT": " ".join(job.out)}
    r = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", place.binary(job.tool), *job.args], cwd=place.folder, env=env,
                       capture_output=True, text=True, timeout=SECONDS)
    found = {p.name: p.read_bytes() for p in kept.iterdir()}
    return judge(job, r.returncode, r.stderr, found, want, old, {3})


def read_only(place, job, want, old):
    if can_mount():
        return mounted(place, job, "size=4m", "mount -o remount,ro out", want, old)
    place.before(job, old)
    place.out.chmod(0o555)
    try:
        p = place.start(job)
        err = p.communicate(timeout=SECONDS)[1].decode(errors="replace")
    finally:
        place.out.chmod(0o755)
    return judge(job, p.returncode, err, place.written(), want, old, {3})


def inputs_change(place, job, name, how, seconds, want, old):
    """The input `name` is cut, overwritten or replaced while the run reads it. What comes of it is an error, or a whole output."""
    path = place.folder / name
    whole = path.read_bytes()
    place.before(job, old)
    p = place.start(job)
    time.sleep(seconds)
    try:
        if how == "replaced":
            other = path.with_name("other")
            other.write_bytes(whole)
            other.rename(path)
        else:
            with open(path, "r+b") as f:
                f.truncate(len(whole) // 3) if how == "cut" else f.write(bytes(len(whole) - 7))
        err = p.communicate(timeout=SECONDS)[1].decode(errors="replace")
    except subprocess.TimeoutExpired:
        p.kill()
        p.communicate()
        return "hangs"
    finally:
        path.unlink(missing_ok=True)
        path.write_bytes(whole)
    found = place.written()
    code = p.returncode
    if code == 0:
        extra = sorted(set(found) - set(job.out))
        if extra or how == "replaced" or job.tool != "qconvert":
            return f"left behind: {extra}" if extra else judge(job, 0, err, found, want, old, set()) if how == "replaced" else "same"
        lint = subprocess.run([place.binary("qconvert"), "lint", "out/m.onnx"], cwd=place.folder, capture_output=True, text=True)
        return "same" if lint.returncode in (0, 1) else f"what was written does not load: {lint.stderr.strip()[:200]}"
    return judge(job, code, err, found, want, old, {3, 4, 5, 6} if how != "replaced" else {3})


def at_once(place, job, n, apart, want):
    """n runs at once, into one output or each into its own."""
    place.before(job, True)
    args = [[a.replace("out/m.", f"out/{i}.") if apart else a for a in job.args] for i in range(n)]
    runs = [subprocess.Popen([place.binary(job.tool), *a], cwd=place.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for a in args]
    errs = [p.communicate(timeout=10 * SECONDS)[1].decode(errors="replace") for p in runs]
    bad = [f"exit {p.returncode}: {e.strip()[:200]}" for p, e in zip(runs, errs) if p.returncode != 0]
    found = place.written()
    names = {f"{i}.onnx" for i in range(n)} if apart else {"m.onnx"}
    if bad:
        return bad[0]
    if set(found) - {"m.onnx"} != names - {"m.onnx"}:
        return f"there is {sorted(found)}"
    wrong = [k for k in names if found[k] != want["m.onnx"]]
    return f"other bytes in {wrong}" if wrong else "same"


# ---------------------------------------------------------------- many runs


class Crew:
    """Places in which runs go on side by side."""

    def __init__(self, folder, build, n):
        self.first = Place(Path(folder) / "0", build)
        self.first.folder.mkdir()
        self.first.make_inputs()
        self.places = queue.Queue()
        self.places.put(self.first)
        for i in range(1, n):
            (Path(folder) / str(i)).mkdir()
            self.places.put(self.first.copy_to(Path(folder) / str(i)))
        self.pool = ThreadPoolExecutor(n)
        self.lock = threading.Lock()

    def do(self, tally, work):
        """work: (name, call of a place that returns a verdict)."""
        def one(item):
            what, call = item
            place = self.places.get()
            try:
                verdict = call(place)
            finally:
                self.places.put(place)
            with self.lock:
                tally.add(verdict, what)
        list(self.pool.map(one, work))
        tally.findings.sort()
        return tally


def fault_work(job, kind, calls, want, most):
    """The runs of one class; most: of each kind of failure, 0 for all."""
    return [(f, lambda p, f=f, code=code, old=i % 2 == 0: under_fault(p, job, f, code, want, old))
            for i, (f, code) in enumerate(faults_of(job, kind, calls, most))]


def signal_work(job, sig, calls, want, most):
    return [(f"{sig.name} at call {n}", lambda p, n=n: signal_at(p, job, sig, n, want, n % 2 == 0))
            for n in chosen(calls, most, job.name + sig.name)]


def random_signal_work(job, sig, n, seconds, want, seed):
    """n runs that a signal meets at a random moment of the first `seconds`."""
    r = random.Random(f"{seed} {job.name} {sig.name}")
    return [(f"{sig.name} after {t * 1e3:.2f} ms", lambda p, i=i, t=t: signal_after(p, job, sig, t, want, i % 2 == 0))
            for i, t in enumerate(r.uniform(0, seconds) for _ in range(n))]


def surroundings_work(job, want):
    sets = [[fd for fd in range(3) if i >> fd & 1] for i in range(1, 8)]
    return ([("standard output full", lambda p: full_output(p, job, want)),
             *((f"closed: {s}", lambda p, s=s: closed(p, job, s, want, True)) for s in sets)] +
            [(f"files of at most {n} bytes", lambda p, n=n: file_limit(p, job, n, want, n % 3 == 0)) for n in (0, 1, 100, 511, 4096)])


def disk_work(job, want):
    disks = (16, 32, 48) if can_mount() else ()
    return ([(f"a disk of {n} KB", lambda p, n=n: mounted(p, job, f"size={n}k", "", want, True)) for n in disks] +
            [(f"a folder for reading only, {'with' if old else 'without'} an old output", lambda p, old=old: read_only(p, job, want, old))
             for old in (True, False)])


def input_work(job, names, n, seconds, want, seed):
    r = random.Random(f"{seed} {job.name}")
    cases = [(name, how, i, r.uniform(0, seconds)) for name in names for how in ("cut", "overwritten", "replaced") for i in range(n)]
    return [(f"{name} {how} after {t * 1e3:.2f} ms",
             lambda p, name=name, how=how, t=t, i=i: inputs_change(p, job, name, how, t, want, i % 2 == 0)) for name, how, i, t in cases]


INPUTS = {  # which inputs of a job change while it runs
    "npy": ["in/m.onnx", "in/x.npy"], "pictures": ["in/pictures/000_disk.png", "in/pictures/001_ring.jpg"], "shard": ["in/s.tar"],
    "calib": ["in/t.calib"], "external": ["in/external_data.bin"], "merge": ["in/0.calib"], "outputs": ["in/q.onnx", "in/x.npy"],
}
