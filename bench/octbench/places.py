"""Where things lie."""
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BENCH = ROOT / "bench"
VENV = BENCH / ".venv"
OUT = BENCH / "out"          # models, samples, converted models
BUILD = ROOT / "build-bench"
