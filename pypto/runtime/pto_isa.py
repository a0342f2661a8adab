"""Where the ISA headers for hand-written C++ kernels are, for scripts that ask (spec runtime 15)."""

from __future__ import annotations

import os
from pathlib import Path


def ensure_pto_isa_root() -> str:
    """The header tree that ``PTO_ISA_ROOT`` names.

    Nothing here compiles C++, so no tree is fetched: ``OSError`` when the variable names no directory.
    """
    root = os.environ.get("PTO_ISA_ROOT", "")
    if not root or not Path(root).is_dir():
        raise OSError(
            "PTO-ISA not available: the simulator needs no C++ headers and brings none; "
            f"set PTO_ISA_ROOT to a header tree to use one (now {root!r})"
        )
    return root


def pto_isa_include_dir() -> Path:
    """The ``include`` folder of :func:`ensure_pto_isa_root`."""
    return Path(ensure_pto_isa_root()) / "include"
