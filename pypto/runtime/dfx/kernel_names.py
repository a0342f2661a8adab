"""Names of kernels by function id, and ids of tasks as the device runtime numbers them (spec runtime 13.3)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pypto.runtime.callable import ChipCallable

if TYPE_CHECKING:
    from pypto.sim.recording import Recording

RINGS: Final = 4


def function_ids(chip_callable: ChipCallable) -> dict[str, int]:
    """Kernel name → function id, from the manifest of the build directory."""
    manifest = chip_callable.program.manifest
    return {} if manifest is None else {entry.name: entry.func_id for entry in manifest.kernels}


def write_name_map(chip_callable: ChipCallable, folder: Path) -> Path:
    """Write ``name_map_<build directory>.json``."""
    path = folder / f"name_map_{chip_callable.build_dir.name}.json"
    names = {str(number): name for name, number in function_ids(chip_callable).items()}
    content = {"level": 2, "orchestrator_name": None, "callable_id_to_name": names}
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
    return path


def task_tokens(recording: Recording) -> list[int]:
    """``(ring << 32) | number within the ring`` per task; the ring is that of the scope's depth."""
    seen: Counter[int] = Counter()
    tokens = []
    for depth in recording.task_scope.tolist():
        ring = min(depth, RINGS - 1)
        tokens.append(ring << 32 | seen[ring])
        seen[ring] += 1
    return tokens
