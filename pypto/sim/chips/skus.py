"""The chips by name: the two platforms and the parts sold under them (hardware notes 1.1)."""

from __future__ import annotations

import dataclasses
import difflib
from functools import cache

from .a2a3 import A2A3
from .a5 import A5
from .description import Chip, Constant

_INI = "CANN platform ini; asc-devkit (1.1)"

# name: platform, clusters, clock in MHz, share of the platform's HBM rate
SKUS: dict[str, tuple[Chip, int, float, float]] = {
    "910B1": (A2A3, 24, 1850, 1.0),
    "910B2": (A2A3, 24, 1800, 1.0),
    "910B3": (A2A3, 20, 1800, 1.0),
    "910B4": (A2A3, 20, 1500, 0.5),
    "910C": (A2A3, 24, 1800, 1.0),
    "950PR": (A5, 32, 1650, 1.0),
    "950-28": (A5, 28, 1650, 1.0),
    "950-36": (A5, 36, 1650, 1.0),
}


@cache
def chip(name: str) -> Chip:
    """The description of a platform (``a2a3``, ``a5``; a ``sim`` suffix is dropped) or of a part (``910B1`` ...).

    ``ValueError`` lists the known names.
    """
    base = {"a2a3": A2A3, "a2a3sim": A2A3, "a5": A5, "a5sim": A5}.get(name)
    if base is not None:
        return base
    if name in SKUS:
        return _sku(name, *SKUS[name])
    known = {each.lower(): each for each in ("a2a3", "a5", *SKUS)}
    near = [known[each] for each in difflib.get_close_matches(str(name).lower(), known, 1)]
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"unknown chip {name!r}; known: a2a3, a5, {', '.join(SKUS)}{hint}")


def _sku(name: str, base: Chip, clusters: int, clock_mhz: float, hbm_share: float) -> Chip:
    cores = dataclasses.replace(
        base.cores,
        clusters=Constant(clusters, "clusters", _INI, "V"),
        clock_mhz=Constant(clock_mhz, "MHz", _INI, "V"),
    )
    memory = base.memory
    if hbm_share != 1.0:
        memory = dataclasses.replace(
            memory,
            **{
                field: Constant(old.value * hbm_share, old.unit, f"half GM bandwidth, {_INI}", "V")
                for field in ("hbm_gbps", "hbm_nd2nz_gbps", "hbm_write_back_gbps")
                for old in [getattr(memory, field)]
            },
        )
    return dataclasses.replace(base, name=name, cores=cores, memory=memory)
