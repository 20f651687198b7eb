"""Our programs, built for measuring."""
import os
import subprocess
from pathlib import Path

from octbench.places import BUILD, ROOT

BUILT = Path(os.environ.get("OCT_BUILD", BUILD))
OURS = {"qconvert": BUILT / "tools/qconvert/qconvert", "runner": BUILT / "bench/runner"}


def build():
    """Builds what is measured with full optimization; $OCT_BUILD names a build folder to be taken as it is."""
    if "OCT_BUILD" in os.environ:
        return
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["meson", "setup", BUILD, ROOT, "--buildtype=release"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", BUILD, *(str(p.relative_to(BUILD)) for p in OURS.values())], check=True,
                   stdout=subprocess.DEVNULL)
