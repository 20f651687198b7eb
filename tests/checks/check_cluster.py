#!/usr/bin/env python3
"""The files of share/cluster, each run by its engine on this machine: what is joined has the bytes of one run.

    check_cluster.py parallel|mpi|slurm|kubernetes|streams [--build FOLDER] [-v]

The files are run as they are, but for the names of samples and steps, which users edit, too.
    parallel     GNU parallel, 8 parts, one killed, which goes on from its checkpoint
    mpi          mpirun of Open MPI or MPICH, 4 ranks
    slurm        a controller and two nodes (pylib/slurm.py): an array of 8, one task killed, one node lost; what starts again goes on from its checkpoint
    kubernetes   the manifest as Kubernetes' schema has it, and its command lines as pods run them
    streams      tar files that curl fetches (of this machine), each by one of three parts; one that is not there

Exit: 0 when all hold, 1 when not, 77 without the engine.
"""
import argparse
import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for pylib
from pylib import packages, slurm
from pylib.slurm import wait_for

ROOT = Path(__file__).resolve().parents[2]
SHARE, DATA = ROOT / "share/cluster", ROOT / "testdata"
TOOLS = ("qcalib", "qconvert", "qeval")
STEPS = "mean=127.5:std=127.5"
# The samples of a job: a stream that waits in its midst for as long as there is a file "hold", and says who reads it. The pause before that is longer than
# a calibration goes without its first checkpoint.
FEED = """\
#!/bin/sh
echo "$1 ${SLURM_ARRAY_TASK_ID-${PARALLEL_SEQ-${JOB_COMPLETION_INDEX-${OMPI_COMM_WORLD_RANK-${PMI_RANK-0}}}}}" >> reads
head -c 100000 "$1"
[ ! -e hold ] || sleep 0.3
tail -c +100001 "$1" | head -c 100000
while [ -e hold ]; do sleep 0.05; done
tail -c +200001 "$1"
"""
# A part that asks its engine which one it is.
AUTO = "qcalib model.onnx --data train.tar --preprocess " + STEPS + " -q --shard auto{of} -o auto.${{{rank}}}.calib"


class Skipped(Exception):
    pass


class Job(NamedTuple):
    name: str    # of its script
    stream: str  # its samples
    result: str  # what the merge writes
    one: str     # what one run wrote


class Check:
    """A folder with the files of share/cluster, edited; the bytes of one run; what must hold, counted."""

    def __init__(self, folder, args):
        self.folder, self.verbose, self.failed, self.count = folder, args.verbose, 0, 0
        self.env = os.environ | {"PATH": os.pathsep.join([str(folder / "bin"), os.environ["PATH"]]), "LC_ALL": "C.UTF-8"}
        (folder / "bin").mkdir()
        for tool in TOOLS:
            (folder / "bin" / tool).symlink_to((args.build / "tools" / tool / tool).resolve())
        for path in SHARE.iterdir():
            shutil.copy(path, folder)
        shutil.copy(DATA / "demo.onnx", folder / "model.onnx")
        (folder / "feed").write_text(FEED)
        self.pack("train.tar", [(p.name, p.read_bytes()) for p in sorted((DATA / "images/calib").iterdir())])
        self.jobs = [self.calibration(), self.evaluation()]
        (folder / "reads").unlink()

    def calibration(self):
        """The job of calibrate.sh, and the table of one run."""
        self.edit("calibrate.sh", "'train/*.tar' --preprocess imagenet", f"'pipe:sh feed train.tar' --preprocess {STEPS}")
        said = self.run("qcalib", "model.onnx", "--data", "pipe:sh feed train.tar", "--preprocess", STEPS, "-q", "-o", "one.calib", status=(0, 5))
        if not (self.folder / "one.calib").exists():
            raise Skipped(said.strip())
        return Job("calibrate", "train.tar", "model.calib", "one.calib")

    def evaluation(self):
        """The job of evaluate.sh, and the report of one run, with metrics and all layers."""
        rows = list(csv.DictReader((DATA / "images/eval.csv").open()))
        self.pack("eval.tar", [(f"{k:04d}.{suffix}", data) for k, row in enumerate(rows)
                               for suffix, data in (("png", (DATA / "images" / row["file"]).read_bytes()), ("cls", row["label"].encode()))])
        self.edit("evaluate.sh", "'val/*.tar' --preprocess imagenet", f"'pipe:sh feed eval.tar' --preprocess {STEPS}")
        self.run("qconvert", "model.onnx", "--calib", "one.calib", "-q", "-o", "model.int8.onnx")
        self.run("qeval", "model.onnx", "model.int8.onnx", "--data", "pipe:sh feed eval.tar", "--preprocess", STEPS, "--layers", "-q", "--json", "one.json")
        return Job("evaluate", "eval.tar", "report.json", "one.json")

    def pack(self, name, members):
        with tarfile.open(self.folder / name, "w") as tar:
            for inside, data in members:
                info = tarfile.TarInfo(inside)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))

    def edit(self, name, old, new):
        text = (self.folder / name).read_text()
        if text.count(old) != 1:
            raise RuntimeError(f"{name} has '{old}' {text.count(old)} times")
        (self.folder / name).write_text(text.replace(old, new))

    def hold(self, what, good, detail=""):
        self.count += 1
        self.failed += not good
        if not good or self.verbose:
            print(f"{'ok' if good else 'FAILED'}  {what} {detail}", flush=True)

    def run(self, *command, env=None, status=(0,)):
        """What it prints, in the folder."""
        done = subprocess.run([str(c) for c in command], cwd=self.folder, env=env or self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120)
        if done.returncode not in status:
            raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}")
        return done.stdout

    def reads(self, job):
        """The parts of a job that read its samples, in the order of the begins."""
        path = self.folder / "reads"
        lines = path.read_text().splitlines() if path.exists() else []
        return [part for stream, part in map(str.split, lines) if stream == job.stream]

    def interrupted(self, job):
        """Whether each of the eight parts waits in the midst of its samples; those of a calibration have a checkpoint by then."""
        kept = len(list(self.folder.glob("calibrate.parts/*.checkpoint"))) if job.name == "calibrate" else 8
        return len(self.reads(job)) == 8 and kept == 8

    def resumed(self, engine, said, again):
        """Of the parts of the calibration, those that ran again went on from their checkpoint, and no others; said: what it printed."""
        found = sorted(re.findall(r"going on after [1-9]\d* samples \(calibrate.parts/(\d)", said))
        self.hold(f"{engine}, calibrate: what ran again went on from its checkpoint", found == again, (found, again))

    def auto(self, engine, parts):
        """The files of parts that AUTO computed are all that one run holds."""
        self.run("qcalib", "merge", *sorted(p.name for p in self.folder.glob("auto.*")), "-o", "all.auto")
        self.run("qcalib", "model.onnx", "--data", "train.tar", "--preprocess", STEPS, "-q", "-o", "one.auto")
        one, many = self.folder / "one.auto", self.folder / "all.auto"
        self.hold(f"{engine}: --shard auto", one.read_bytes() == many.read_bytes() and len(list(self.folder.glob("auto.*"))) == parts)

    def same(self, engine, job):
        """What was joined is what one run makes."""
        one, many = self.folder / job.one, self.folder / job.result
        self.hold(f"{engine}, {job.name}: what one run makes", many.exists() and content(one) == content(many))


def content(path):
    """The bytes; of a report all but the machine's state, as its load."""
    return {k: v for k, v in json.loads(path.read_text()).items() if k not in ("environment", "command", "seconds")} if path.suffix == ".json" else path.read_bytes()


def spoil(check, old, new):
    """hopeless.sh: calibrate.sh with a fault."""
    shutil.copy(check.folder / "calibrate.sh", check.folder / "hopeless.sh")
    check.edit("hopeless.sh", old, new)
    check.edit("hopeless.sh", "parts=calibrate.parts", "parts=hopeless.parts")


def need_program(*names):
    for name in names:
        if not shutil.which(name):
            raise Skipped(f"there is no {name}")


def readers(check):
    """Ids of the tools that run in the folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if (place / "exe").readlink().name in TOOLS and (place / "cwd").readlink() == check.folder:
                found.append(int(place.name))
        except OSError:
            pass  # has ended
    return found


def parallel(check):
    need_program("parallel")
    shown = re.findall(r"```text\n(part\(\).*?)```", (ROOT / "docs/cluster.md").read_text(), re.S)
    check.hold("parallel: docs/cluster.md shows the commands of the job", len(shown) == 1 and shown[0] in (SHARE / "calibrate.sh").read_text())
    check.run("parallel", "-N0", AUTO.format(of="/3", rank="PARALLEL_SEQ"), ":::", "a", "b", "c")
    check.auto("parallel", 3)
    for job in check.jobs:
        (check.folder / "hold").touch()
        said = check.folder / f"{job.name}.said"
        with said.open("w") as out:
            run = subprocess.Popen(["sh", "parallel.sh", "8", f"{job.name}.sh", "--jobs", "8"], cwd=check.folder, env=check.env, stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=subprocess.STDOUT)
        wait_for("eight readers", lambda j=job, r=run: check.interrupted(j) or r.poll() is not None)
        os.kill(readers(check)[0], signal.SIGKILL)
        (check.folder / "hold").unlink()
        check.hold(f"parallel, {job.name}: ends well", run.wait(60) == 0)
        check.hold(f"parallel, {job.name}: the part that was killed was computed again", len(check.reads(job)) == 9, check.reads(job))
        check.same("parallel", job)
    calibration = check.jobs[0]
    # Numbers of GNU parallel begin with 1.
    check.resumed("parallel", (check.folder / "calibrate.said").read_text(), [str(int(n) - 1) for n in check.reads(calibration)[8:]])
    resume_parallel(check, calibration)


def resume_parallel(check, job):
    """A job of which each part fails, until its fault is put right: nothing is joined, and what failed is computed."""
    spoil(check, "model.onnx --data", "model.onnx --date")
    (check.folder / job.result).unlink()
    check.run("sh", "parallel.sh", "2", "hopeless.sh", "--halt", "never", status=(1, 2))
    check.hold("parallel: nothing is joined when parts fail", not (check.folder / job.result).exists())
    check.edit("hopeless.sh", "--date", "--data")
    check.run("sh", "parallel.sh", "2", "hopeless.sh", "--resume-failed")
    check.same("parallel --resume-failed", job)


def mpi(check):
    need_program("mpirun")
    version = check.run("mpirun", "--version")
    more = ["--oversubscribe", *(["--allow-run-as-root"] if os.getuid() == 0 else [])] if "Open MPI" in version else []
    check.run("mpirun", *more, "-n", "4", "sh", "-c", AUTO.format(of="", rank="OMPI_COMM_WORLD_RANK-$PMI_RANK"))
    check.auto("mpi", 4)
    for job in check.jobs:
        check.run("sh", "mpi.sh", "4", f"{job.name}.sh", *more)
        check.hold(f"mpi, {job.name}: four ranks", sorted(check.reads(job)) == list("0123"), check.reads(job))
        check.same("mpi", job)


def slurm_array(check):
    if slurm.missing():
        raise Skipped(f"packages are missing: {' '.join(slurm.missing())}")
    if slurm.lacks(check.env):
        raise Skipped(slurm.lacks(check.env))
    place = check.folder / "slurm"
    place.mkdir()
    with slurm.Cluster(place, ["n1", "n2"], check.env) as cluster:
        # Numbers of an array need not begin with 0.
        cluster.run("sbatch", "--array=4-6", "--wrap", AUTO.format(of="", rank="SLURM_ARRAY_TASK_ID"), cwd=check.folder)
        wait_for("an array of three", lambda: len(list(check.folder.glob("auto.*"))) == 3)
        check.auto("slurm", 3)
        disturb(check, cluster)
    check.resumed("slurm", "".join(p.read_text() for p in check.folder.glob("slurm-*.out")), sorted(check.reads(check.jobs[0])[8:]))
    for job in check.jobs:
        check.same("slurm", job)


def disturb(check, cluster):
    """Both nodes are full of tasks that wait; a task is killed of each job that has one on the first node, the second node is lost, and then all may go on."""
    (check.folder / "hold").touch()
    for job in check.jobs:
        cluster.run("sh", "slurm.sh", "8", f"{job.name}.sh", cwd=check.folder)
    wait_for("eight tasks of each job that read", lambda: all(map(check.interrupted, check.jobs)))
    tasks = [t for t in cluster.tasks() if t.program in TOOLS]
    killed = list({t.job: t for t in tasks if t.node == "n1"}.values())
    check.hold("slurm: tasks are on both nodes", killed and any(t.node == "n2" for t in tasks), tasks)
    for task in killed:
        os.kill(task.pid, signal.SIGKILL)
    cluster.stop("n2")
    hopeless = submit_hopeless(check, cluster)
    wait_for("node n2 to be down", lambda: cluster.states().get("n2", "").startswith("down"))
    (check.folder / "hold").unlink()
    wait_for("the merges", lambda: all((check.folder / j.result).exists() for j in check.jobs) or not cluster.run("squeue", "-h"), 60)
    ended = [(job_says(cluster, job, "JobState"), job_says(cluster, job, "Restarts")) for job in hopeless]
    check.hold("slurm: a part with a wrong option fails once, and its merge is cancelled", ended == [("FAILED", "0"), ("CANCELLED", "0")], ended)
    lost = [t for t in tasks if t.node == "n2"] + killed
    for job in check.jobs:
        want = sorted(t.task for t in lost if t.job == f"{job.name}.sh")
        check.hold(f"slurm, {job.name}: the tasks of the lost node and the one that was killed ran again, and no others",
                   sorted(check.reads(job)[8:]) == want and want, (check.reads(job), want))


def submit_hopeless(check, cluster):
    """A job whose part cannot work; the ids of part and merge."""
    spoil(check, "--shard", "--sharp")
    return re.findall(r"job (\d+)", cluster.run("sh", "slurm.sh", "1", "hopeless.sh", cwd=check.folder))


def job_says(cluster, job, what):
    return re.search(rf"{what}=(\w+)", cluster.run("scontrol", "show", "job", job))[1]


def kubernetes(check):
    import yaml
    text = (check.folder / "kubernetes.yaml").read_text()
    for job in check.jobs:
        parts, merge = manifests = list(yaml.safe_load_all(text.replace("calibrate", job.name)))
        spec = parts["spec"]
        check.hold(f"kubernetes, {job.name}: its schema", not any(map(refused, manifests)) and refused(parts | {"spec": spec | {"completion": 8}}))
        check.hold(f"kubernetes, {job.name}: an indexed Job", spec["completionMode"] == "Indexed" and spec["completions"] == 8)
        check.hold(f"kubernetes, {job.name}: the merge waits", merge["spec"]["suspend"] is True)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda i, p=parts: run_pod(check, p, {"JOB_COMPLETION_INDEX": str(i)}), range(spec["completions"])))
        check.hold(f"kubernetes, {job.name}: eight pods", sorted(check.reads(job)) == list("01234567"), check.reads(job))
        run_pod(check, merge, {})
        check.same("kubernetes", job)


def refused(manifest):
    """Whether the schema has something against it."""
    import kubernetes_validate
    try:
        kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
    except kubernetes_validate.ValidationError:
        return True
    return False


def run_pod(check, job, given):
    """The container of a Job, its volume mounted at our folder: $(NAME) in its words is of its environment, as the kubelet has it."""
    pod = job["spec"]["template"]["spec"]
    container, = pod["containers"]
    mount, = container["volumeMounts"]
    if [mount["name"]] != [v["name"] for v in pod["volumes"]] or container["workingDir"] != mount["mountPath"]:
        raise RuntimeError("it does not work in its volume")
    own = {e["name"]: e["value"] for e in container.get("env", [])} | given
    words = [re.sub(r"\$\((\w+)\)", lambda m: own.get(m[1], m[0]), w) for w in container["command"] + container["args"]]
    check.run(*words, env=check.env | own)


def streams(check):
    need_program("parallel", "curl")
    files = [(p.name, p.read_bytes()) for p in sorted((DATA / "images/calib").iterdir())]
    names = [f"train-{k:06d}.tar" for k in range(5)]
    for k, name in enumerate(names):
        check.pack(name, files[k::5])
    check.edit("streams.sh", "files=128", "files=5")
    check.edit("streams.sh", "https://storage.example/", f"file://{check.folder}/")
    check.edit("streams.sh", "imagenet", STEPS)
    check.run("qcalib", "model.onnx", *(w for n in names for w in ("--data", n)), "--preprocess", STEPS, "-q", "-o", "one.calib")
    check.run("sh", "parallel.sh", "3", "streams.sh")
    one, many = ([w for w in (check.folder / n).read_text().splitlines() if not w.startswith("shard ")] for n in ("one.calib", "model.calib"))
    check.hold("streams: the table of one run, but for the names of the samples", one == many and len(one) > 10)
    (check.folder / names[4]).unlink()
    (check.folder / "streams.parts/1.calib").unlink()
    said = check.run("sh", "streams.sh", "part", "1", "3", status=(3,))
    check.hold("streams: a file that is missing is named, and no table is left", names[4] in said and not (check.folder / "streams.parts/1.calib").exists(), said)


ENGINES = {"parallel": parallel, "mpi": mpi, "slurm": slurm_array, "kubernetes": kubernetes, "streams": streams}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    if args.engine == "kubernetes":
        packages.need("yaml", "kubernetes_validate")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that daemons end, too
    with tempfile.TemporaryDirectory(prefix="octet-cluster-") as folder:
        try:
            check = Check(Path(folder).resolve(), args)
            ENGINES[args.engine](check)
        except Skipped as e:
            print(f"skipped: {e}")
            return 77
    print(f"{check.count - check.failed} of {check.count} hold")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
