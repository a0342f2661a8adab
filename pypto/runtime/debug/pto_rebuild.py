"""The two steps of the edit-and-rerun recipe (spec runtime 4.7, 5.3).

Elsewhere an edited ``.pto`` has to be turned into C++ again and compiled binaries have to be thrown away. Here the
texts themselves are assembled and their content decides, so the steps only check that the edited texts can be read;
scripts that follow the recipe work, and scripts that forget it work too.
"""

from __future__ import annotations

from pathlib import Path


def invalidate_binary_cache(work_dir: str | Path) -> None:
    """Nothing to throw away: an edited text takes effect on the next load. The directory must exist."""
    _existing(work_dir)


def rebuild_kernel_cpp_from_pto(work_dir: str | Path) -> list[str]:
    """Read every kernel text below ``work_dir``; the names of the units rebuilt, of which there are none.

    ``ValueError`` names a text that cannot be read, with its line.
    """
    from pypto.sim.text import read_unit

    for path in sorted(_existing(work_dir).rglob("*.pto")):
        read_unit(path)
    return []


def _existing(work_dir: str | Path) -> Path:
    directory = Path(work_dir)
    if not directory.is_dir():
        raise FileNotFoundError(f"{directory} is not a build directory: it does not exist")
    return directory
