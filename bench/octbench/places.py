"""Where things lie; puts the project's other Python modules within reach."""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BENCH = ROOT / "bench"
VENV = BENCH / ".venv"
OUT = BENCH / "out"          # models, samples, converted models; may be removed
BUILD = ROOT / "build-bench"

sys.path += [str(ROOT / "tests"), str(ROOT / "tests/generate")]
