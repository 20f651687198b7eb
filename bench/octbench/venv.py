"""The virtual environment with the peers. Imports nothing that is not in Python itself: it runs before there is one."""
import os
import subprocess
import sys

from octbench.places import VENV

# The versions that the table in README.md was measured with. What is not asked for or does not install is left out.
GROUPS = {
    "onnxruntime": ["numpy==2.4.6", "onnx==1.23.2", "onnxruntime==1.31.1"],
    "openvino": ["openvino==2026.4.1", "nncf==3.4.0"],
    "openvino-plugin": ["onnxruntime==1.32.0", "onnxruntime-ep-openvino==1.8.1"],
    "torch": ["torch==2.13.0", "torchao==0.18.0"],
    "litert": ["ai-edge-litert==2.3.0", "litert-torch==0.10.0", "ai-edge-quantizer==0.10.0", "torch==2.13.0"],
}
NEEDED = "onnxruntime"
USUAL = ("onnxruntime", "openvino", "torch")
PYTHON = VENV / "bin/python"


def install(group):
    """Whether the group is there; tries once, and again only when its mark is removed."""
    mark, failed = VENV / f"{group}.installed", VENV / f"{group}.failed"
    if mark.exists() or failed.exists():
        return mark.exists()
    print(f"installing {', '.join(GROUPS[group])}", file=sys.stderr, flush=True)
    done = subprocess.run([PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", *GROUPS[group]],
                          capture_output=True, text=True, check=False)
    (failed if done.returncode else mark).write_text(done.stderr)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no message"]
        print(f"{group} is left out: {said[-1]} ({failed} has the rest)", file=sys.stderr)
    return done.returncode == 0


def enter(groups):
    """Makes the environment, installs the groups and goes on inside it. Returns those that are there."""
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    have = [g for g in dict.fromkeys((NEEDED, *groups)) if install(g)]
    if NEEDED not in have:
        sys.exit(f"nothing to compare with: {NEEDED} did not install")
    if os.path.realpath(sys.prefix) != os.path.realpath(VENV):
        os.execv(PYTHON, [str(PYTHON), *sys.argv])
    return have
