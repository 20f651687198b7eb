#!/usr/bin/env python3
"""The interval that scripts/ give shares of samples is the one of qeval: the values of tests/unit/test_interval.c."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tests"))
try:
    import numpy as np
    from pylib import metrics
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

KNOWN = ((100, 3, 10, -0.151020292381, 0.001914511750), (100, 0, 8, -0.151217892302, -0.038144016551),
         (400, 0, 0, -0.010001348474, 0.010001348474), (2000, 40, 17, 0.004196243305, 0.019476679353),
         (20, 20, 0, 0.669424375939, 1.0))
for n, up, down, low, high in KNOWN:
    a, b = np.zeros(n), np.zeros(n)
    a[:up], b[up:up + down] = 1, 1
    mean, got_low, got_high = metrics.paired_interval(a, b)
    if abs(mean - (up - down) / n) > 1e-12 or abs(got_low - low) > 1e-10 or abs(got_high - high) > 1e-10:
        sys.exit(f"{up} up, {down} down of {n}: {mean}, {got_low} to {got_high}, expected {low} to {high}")
