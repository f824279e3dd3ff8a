"""The benchmarks are scripts that import each other by name."""

from __future__ import annotations

import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench"
sys.path.append(str(BENCH))
