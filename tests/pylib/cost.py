"""What a command costs, and on which machine."""
import os
import platform
import subprocess
import sys
import time
from pathlib import Path


class CommandError(Exception):
    pass


# Runs a command and writes what it cost to the descriptor named first: status, peak in KB, processor seconds.
_WATCH = """
import os, sys
child = os.fork()
if not child:
    os.close(int(sys.argv[1]))
    try:
        os.execvp(sys.argv[2], sys.argv[2:])
    except OSError as why:
        os.write(2, f"{sys.argv[2]}: {why.strerror}".encode())
        os._exit(127)
_, status, usage = os.wait4(child, 0)
os.write(int(sys.argv[1]), f"{os.waitstatus_to_exitcode(status)} {usage.ru_maxrss} {usage.ru_utime + usage.ru_stime}".encode())
"""


def measured(command, **more):
    """Runs it; (seconds, peak memory in MB, processor seconds). CommandError with its last words when it fails.

    The peak that the kernel reports of a process is never below that of the one which started it, at that moment. So a small process
    starts the command, and peaks below its 10 MB are not seen."""
    answer, told = os.pipe()
    start = time.monotonic()
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", _WATCH, str(told), *map(str, command)], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, pass_fds=[told], **more) as watch:
        os.close(told)
        said = watch.stderr.read()
    seconds = time.monotonic() - start
    with open(answer) as file:
        status, kilobytes, processor = file.read().split()
    if int(status):
        raise CommandError(f"{' '.join(map(str, command))}\nexit {status}: {said.strip()[-2000:]}")
    return seconds, int(kilobytes) * 1024 / 1e6, float(processor)


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
