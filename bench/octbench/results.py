"""Results as CSV under version control: what is measured anew takes the place of what was there."""
import csv
import datetime
import importlib.metadata
import subprocess

from octbench import tools
from octbench.places import ROOT
from pylib import cost

MACHINE = ("date", "cpu", "class", "features")
PACKAGE = {"onnxruntime": "onnxruntime", "openvino": "openvino", "torch": "torch", "litert": "ai-edge-litert"}


def machine():
    """Of this machine. Virtual CPUs hide their names, so its class, the highest instruction set that our kernels know, is part of it."""
    return {"date": datetime.date.today().isoformat(), "cpu": cost.cpu_name(), "class": tools.peaks()["class"], "features": " ".join(cost.cpu_features())}


def version(peer):
    """Of a group of packages of venv.py; None: ours."""
    if peer:
        return f"{PACKAGE[peer]} {importlib.metadata.version(PACKAGE[peer])}"
    asked = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return f"octet {asked.stdout.strip()}"


class Results:
    def __init__(self, path, fields, key, rank):
        """key: fields that say what a row is of, beside the CPU and its class. rank(row): where it stands among those of its CPU."""
        self.path, self.fields, self.key, self.rank = path, (*fields, *MACHINE), ("cpu", "class", *key), rank

    def read(self):
        if not self.path.exists():
            return []
        with open(self.path, newline="") as file:
            return list(csv.DictReader(file))

    def _key(self, row):
        return tuple(str(row[k]) for k in self.key)

    def keep(self, rows):
        new = {self._key(r) for r in rows}
        both = [r for r in self.read() if self._key(r) not in new] + rows
        both.sort(key=lambda r: (r["cpu"], r["class"], self.rank(r)))
        with open(self.path, "w", newline="") as file:
            out = csv.DictWriter(file, self.fields, lineterminator="\n")
            out.writeheader()
            out.writerows(both)
