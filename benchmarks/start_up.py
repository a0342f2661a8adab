"""Cold and warm start: imports, and the demo with an empty and with a filled kernel cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

DEMO = Path(__file__).resolve().parent.parent / "examples" / "benchmark_add.py"
CACHE_VARIABLE = "PYPTO_CACHE_DIR"


def _seconds(command: list[str], folder: str, **environment: str) -> float:
    start_s = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, cwd=folder, env={**os.environ, **environment})
    return time.perf_counter() - start_s


def measure() -> list[dict[str, Any]]:
    """Rows of name, value and unit; each start is a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        demo = [sys.executable, str(DEMO)]
        cache = str(Path(folder, "kernels"))
        bare_s = _seconds([sys.executable, "-c", "pass"], folder)
        language_s = _seconds([sys.executable, "-c", "import pypto.language"], folder) - bare_s
        cold_s = _seconds(demo, folder, **{CACHE_VARIABLE: cache})
        warm_s = min(_seconds(demo, folder, **{CACHE_VARIABLE: cache}) for _ in range(3))
    return [
        {"name": "import pypto.language", "value": language_s, "unit": "s"},
        {"name": "demo, empty kernel cache", "value": cold_s, "unit": "s"},
        {"name": "demo, filled kernel cache", "value": warm_s, "unit": "s"},
        {"name": "demo, cold to warm", "value": cold_s / warm_s, "unit": "ratio"},
    ]
