"""Diagnostics of a rank's launches: ``dfx_outputs/rank<r>/d<k>`` of the program's directory (spec distributed 3.9)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pypto.runtime.callable import ChipCallable
from pypto.runtime.run_config import RunConfig

if TYPE_CHECKING:
    from pypto.runtime.launch import Launched

FOLDER: Final = "dfx_outputs"
PROGRAM_FILE: Final = "dispatch_program.json"


def clear_diagnostics(output_dir: Path) -> None:
    """Remove what earlier runs of the program wrote about their ranks."""
    for folder in Path(output_dir, FOLDER).glob("rank*"):
        shutil.rmtree(folder, ignore_errors=True)


def write_rank_diagnostics(launched: Launched, program: ChipCallable, config: RunConfig, rank: int, index: int) -> None:
    """Write what ``config`` asks for about dispatch ``index`` of ``rank``, with the name of the chip program."""
    from pypto.runtime.dfx import write_diagnostics

    # The chip program is built in <output directory>/next_levels/<name>.
    folder = program.build_dir.parent.parent / FOLDER / f"rank{rank}" / f"d{index}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PROGRAM_FILE).write_text(json.dumps({"program": program.name}) + "\n", encoding="utf-8")
    write_diagnostics(launched, program, config, folder)
