"""Our programs, built for measuring."""
import functools
import os
import subprocess
from pathlib import Path

from octbench.places import BUILD, ROOT

BUILT = Path(os.environ.get("OCT_BUILD", BUILD))
OURS = {"qconvert": BUILT / "tools/qconvert/qconvert", "runner": BUILT / "bench/runner", "peaks": BUILT / "bench/peaks",
        "provider": BUILT / "provider/libonnxruntime_ep_octet.so"}


def build():
    """Builds what is measured with full optimization; $OCT_BUILD names a build folder to be taken as it is."""
    if "OCT_BUILD" in os.environ:
        return
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["meson", "setup", BUILD, ROOT, "--buildtype=release"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", BUILD, *(str(p.relative_to(BUILD)) for p in OURS.values())], check=True,
                   stdout=subprocess.DEVNULL)


@functools.cache
def peaks(isa=""):
    """{"class": of this CPU, "clock": GHz, "float", "bytes" and "bf16": GMAC/s of one core}, narrowed to an instruction set."""
    said = subprocess.run([OURS["peaks"], "--kinds"], env=os.environ | ({"OCT_ISA": isa} if isa else {}), check=True, capture_output=True,
                          text=True)
    values = dict(line.split("\t") for line in said.stdout.splitlines())
    return {name: value if name == "class" else float(value) for name, value in values.items()}
