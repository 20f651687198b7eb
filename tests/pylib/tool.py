"""Finds and runs our own command line tools."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
# Trained models and data, which no clone brings.
SHARED = Path(os.environ.get("OCT_SHARED") or ROOT.parent / "shared")
# Without what qemu-user would warn that it does not emulate. CPUs such as `max` gain AVX-512 and VNNI as qemu gets newer.
HASWELL = "Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid"


class ToolError(Exception):
    pass


def find(name, given=None):
    """The path given, $OCT_BUILD, the build folder of this checkout, or $PATH; None when there is none."""
    places = [given] if given else []
    for build in filter(None, (os.environ.get("OCT_BUILD"), ROOT / "build")):
        places += [Path(build) / "tools" / name / name, Path(build) / "tools" / name, Path(build) / name]
    for place in places:
        if Path(place).is_file() and os.access(place, os.X_OK):
            return str(place)
    return None if given else shutil.which(name)


def add_option(parser):
    parser.add_argument("--qeval", help="our qeval [default: $OCT_BUILD or build/, then PATH]")
    parser.add_argument("--qeval-arg", action="append", default=[], metavar="ARG", help="passed on to it, e.g. --isa=scalar")


def run(command):
    """What it prints; ToolError with its last words when it fails."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()
        raise ToolError(f"{Path(command[0]).name} exit {done.returncode}: {said[-1][:300]}")
    return done.stdout


def run_qeval(binary, model, data, out, preprocess="", extra=()):
    """Writes the outputs of `model` for the samples of `data` into `out` and returns them: {name: array}."""
    run([binary, model, "--data", data, "--outputs", out, *extra, *(["--preprocess", preprocess] if preprocess else [])])
    with np.load(out) as arrays:
        return {name: arrays[name] for name in arrays.files}


def run_emulated(*arguments, **env):
    """Runs this script with other arguments on an emulated Haswell, which has AVX2 but neither AVX-512 nor VNNI, so that ONNX Runtime
    takes the kernels that saturate. Programs that it starts still run on the real CPU. Returns its exit code."""
    emulator = shutil.which("qemu-x86_64")
    if not emulator:
        sys.exit(f"{Path(sys.argv[0]).name}: needs qemu-x86_64 (Debian package qemu-user)")
    command = [emulator, "-cpu", HASWELL, sys.executable, sys.argv[0], *map(str, arguments)]
    return subprocess.run(command, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"} | env, check=False).returncode


def run_as_avx2(flag, **env):
    """Runs this script again so, without `flag`."""
    return run_emulated(*(a for a in sys.argv[1:] if a != flag), **env)


def beside(name):
    """A program in PATH, or beside this Python; None where there is none."""
    return shutil.which(name, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
