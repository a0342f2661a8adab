"""Options of ``@pl.jit.extern`` (spec language 3.10)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def extern_options(
    function: Callable[..., Any],
    core_type: str,
    source: str | None,
    aic_source: str | None,
    aiv_source: str | None,
    dual_aiv_dispatch: bool,
    include_dirs: Sequence[str] | None,
) -> dict[str, Any]:
    """Checked options; ``ValueError``/``TypeError`` name the argument that is wrong."""
    if core_type not in ("aic", "aiv", "mixed"):
        raise ValueError(f"core_type must be 'aic', 'aiv' or 'mixed', got {core_type!r}")
    if dual_aiv_dispatch and core_type != "mixed":
        raise ValueError("dual_aiv_dispatch requires core_type='mixed'")
    home = Path(inspect.getsourcefile(function) or ".").parent
    return {
        "core_type": core_type,
        "dual_aiv_dispatch": dual_aiv_dispatch,
        "sources": _sources(home, core_type, source, aic_source, aiv_source),
        "include_dirs": _directories(home, include_dirs),
    }


def _sources(home: Path, core_type: str, source: str | None, aic: str | None, aiv: str | None) -> tuple[str, ...]:
    if core_type == "mixed":
        if not aic or not aiv:
            raise ValueError("core_type='mixed' requires both aic_source and aiv_source")
        wanted = [aic, aiv]
    else:
        single = source or (aic if core_type == "aic" else aiv)
        if not single:
            raise ValueError(f"core_type={core_type!r} requires source=")
        wanted = [single]
    found = []
    for name in wanted:
        path = Path(name) if Path(name).is_absolute() else home / name
        if not path.is_file():
            raise ValueError(f"source file not found: {path}")
        found.append(str(path))
    return tuple(found)


def _directories(home: Path, include_dirs: Sequence[str] | None) -> tuple[str, ...]:
    if include_dirs is None:
        return ()
    if isinstance(include_dirs, str) or not isinstance(include_dirs, Sequence):
        raise TypeError("include_dirs must be a sequence of paths, not a plain string")
    found = []
    for name in include_dirs:
        path = Path(name) if Path(name).is_absolute() else home / name
        if not path.is_dir():
            raise ValueError(f"include directory not found: {path}")
        found.append(str(path))
    return tuple(found)
