"""What a command costs, and on which machine."""
import os
import platform
import subprocess
import time
from pathlib import Path


class CommandError(Exception):
    pass


def measured(command, **more):
    """Runs it; (seconds, peak memory in MB, processor seconds). CommandError with its last words when it fails."""
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **more)
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise CommandError(f"{' '.join(map(str, command))}\nexit {child.returncode}: {said.strip()[-2000:]}")
    return time.monotonic() - start, usage.ru_maxrss * 1024 / 1e6, usage.ru_utime + usage.ru_stime


def _cpuinfo(*keys):
    """The first line of /proc/cpuinfo with one of these names; "" when there is none."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() in keys:
                return value.strip()
    except OSError:
        pass
    return ""


def cpu_name():
    return f"{_cpuinfo('model name') or platform.machine()}, {os.cpu_count()} threads"


# Features that products use, as Linux names them on x86 and AArch64.
FEATURES = ("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8", "asimd",
            "asimdhp", "asimddp", "i8mm", "bf16", "sve", "sve2")


def cpu_features():
    """Those of FEATURES that the CPU has."""
    have = set(_cpuinfo("flags", "Features").split())
    return [f for f in FEATURES if f in have]
