"""A cluster of Slurm on this machine: munged, slurmctld and a slurmd for each node, from the distribution's packages, in a folder of its own.

The daemons run in the foreground on ports of 127.0.0.1, as whoever starts them, without systemd and without anything in /etc. Several nodes on one
machine need a slurmd that was built for it (MULTIPLE_SLURMD, as Debian's is).
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

PROGRAMS = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client", "setpriv": "util-linux"}

# Nodes claim more processors and memory than the machine has, so that many tasks run side by side. A node that is silent for eight seconds is lost,
# and its tasks may start again five seconds later (both take minutes by default).
CONF = """\
ClusterName=octet
SlurmctldHost={host}({address})
SlurmctldPort={ports[0]}
{where}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/pgid
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=100000
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdTimeout=8
MessageTimeout=3
TCPTimeout=1
SlurmctldTimeout=10
KillWait=2
SlurmdParameters=config_overrides
"""


def searched(env):
    """The PATH of env and where the daemons are, which is not always in it."""
    return os.pathsep.join([env.get("PATH", ""), "/usr/sbin", "/sbin"])


def missing():
    """What has to be installed, as packages of Debian."""
    return sorted(package for program, package in PROGRAMS.items() if not shutil.which(program, path=searched(os.environ)))


def lacks(env):
    """What this machine lacks for a node, in words, or "". Before 23.11 a node insists on control groups; later they can be switched off."""
    return "" if version(env) >= (23, 11) or os.path.ismount("/sys/fs/cgroup") else "this Slurm wants control groups, and nothing is mounted on /sys/fs/cgroup"


def free_ports(count):
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in taken]
    for s in taken:
        s.close()
    return ports


def version(env):
    """(year, month) of Slurm."""
    said = subprocess.run([shutil.which("slurmd", path=searched(env)), "-V"], env=env, capture_output=True, text=True, check=True).stdout
    return tuple(int(n) for n in re.search(r"(\d+)\.(\d+)", said).groups())


def listens(host):
    """(address, line of slurm.conf) of daemons on this machine. They bind to what the host's name leads to, or to all addresses: where that is no loopback
    address, clients still come by that, and munge's key keeps out whoever else may come."""
    try:
        address = socket.gethostbyname(host)
    except OSError:
        address = ""
    return (address, "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny") if address.startswith("127.") else ("127.0.0.1", "")


def wait_for(what, condition, seconds=30):
    """The first answer of condition() that is true; RuntimeError naming `what` when none comes."""
    end = time.monotonic() + seconds
    while not (answer := condition()):
        if time.monotonic() > end:
            raise RuntimeError(f"{what}: not within {seconds} seconds")
        time.sleep(0.05)
    return answer


class Task(NamedTuple):
    """A process of a job."""
    pid: int
    node: str
    job: str
    task: str
    program: str


class Cluster:
    """with Cluster(folder, ["n1", "n2"], os.environ) as c: c.run("sbatch", ...)"""

    def __init__(self, folder, nodes, env, cpus=32):
        self.folder, self.nodes, self.daemons = Path(folder).resolve(), nodes, {}
        self.conf = self.folder / "slurm.conf"
        self.env = env | {"SLURM_CONF": str(self.conf), "PATH": searched(env)}
        host, ports = socket.gethostname().split(".")[0], free_ports(len(nodes) + 1)
        address, where = listens(host)
        lines = [f"NodeName={n} NodeHostname={host} NodeAddr={address} Port={p} CPUs={cpus} RealMemory=1000000" for n, p in zip(nodes, ports[1:], strict=True)]
        lines.append(f"PartitionName=all Nodes={','.join(nodes)} Default=YES MaxTime=INFINITE State=UP")
        for name in ("state", *nodes):
            (self.folder / name).mkdir()
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        if version(self.env) >= (23, 11):  # containers may lack control groups
            (self.folder / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
        self.conf.write_text(CONF.format(host=host, address=address, where=where, ports=ports, folder=self.folder, user=user) + "\n".join(lines) + "\n")

    def __enter__(self):
        try:
            self.start_munge()
            self.start("slurmctld", "slurmctld", "-D", "-f", self.conf)
            for node in self.nodes:
                self.start(node, "slurmd", "-D", "-N", node, "-f", self.conf)
            wait_for("idle nodes", lambda: self.states() == {n: "idle" for n in self.nodes})
        except BaseException as e:
            self.__exit__(e)
            raise
        return self

    def __exit__(self, failed, *_):
        """Ends everything; after a failure with the last words of each daemon."""
        if failed:
            print(*(f"{p.name}: {line}" for p in sorted(self.folder.glob("*.out")) for line in p.read_text().splitlines()[-8:]), sep="\n")
        for node in self.nodes:
            self.stop(node)
        for daemon in reversed(self.daemons.values()):
            daemon.terminate()
            try:
                daemon.wait(3)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def start_munge(self):
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        place = {f"--{what}-file={self.folder}/munge.{what}" for what in ("key", "pid", "log", "seed")}
        # --force: the folders above may be written to by others, as /tmp may.
        self.start("munged", "munged", "--foreground", "--force", f"--socket={self.folder}/munge.socket", *place)
        wait_for("munged's socket", (self.folder / "munge.socket").exists)

    def start(self, name, *command):
        """A daemon that ends when this program does."""
        with open(self.folder / f"{name}.out", "w") as out:
            self.daemons[name] = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *map(str, command)], env=self.env, stdin=subprocess.DEVNULL, stdout=out,
                                                  stderr=subprocess.STDOUT)

    def run(self, *command, **how):
        """What it prints."""
        done = subprocess.run([str(c) for c in command], env=self.env | how.pop("env", {}), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, **how)
        if done.returncode:
            raise RuntimeError(f"{command}: exit {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def states(self):
        """{node: state}, none while slurmctld does not answer."""
        try:
            return dict(line.split() for line in self.run("sinfo", "-h", "-N", "-o", "%N %T").splitlines())
        except RuntimeError:
            return {}

    def tasks(self):
        """[Task] of every process that jobs of this cluster run."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                env = dict(e.split("=", 1) for e in (place / "environ").read_text(errors="replace").split("\0") if "=" in e)
                if env.get("SLURM_CONF") == str(self.conf) and "SLURMD_NODENAME" in env:
                    name = (place / "exe").readlink().name
                    found.append(Task(int(place.name), env["SLURMD_NODENAME"], env.get("SLURM_JOB_NAME"), env.get("SLURM_ARRAY_TASK_ID"), name))
            except OSError:
                pass  # has ended
        return found

    def steps(self, node):
        """Ids of the processes that keep the log of a node open: its slurmd and the slurmstepd of its jobs, whose environment cannot be read."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                if any(os.readlink(fd) == f"{self.folder}/{node}.log" for fd in (place / "fd").iterdir()):
                    found.append(int(place.name))
            except OSError:
                pass
        return found

    def stop(self, node):
        """As when the power of a node fails: all that runs on it is gone at once, and nobody is told."""
        ends = [*self.steps(node), *(t.pid for t in self.tasks() if t.node == node)]
        for pid in ends:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
