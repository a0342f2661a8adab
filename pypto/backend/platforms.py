"""The four platform names and what each stands for (spec runtime 1.1)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class BackendType(Enum):
    """Chip family a program is compiled for."""

    Ascend910B = "Ascend910B"
    Ascend950 = "Ascend950"


@dataclass(frozen=True)
class Platform:
    """One platform name.

    ``chip`` names the description in :mod:`pypto.sim.chips`; ``clocked`` tells whether launches have a device clock
    (the ``*sim`` platforms compute values only); ``aicpu_threads`` is the default number of control threads.
    """

    name: str
    chip: str
    backend_type: BackendType
    clocked: bool
    aicpu_threads: int

    @property
    def sim_name(self) -> str:
        """The values-only platform of the same chip family."""
        return f"{self.chip}sim"


PLATFORMS: Final[dict[str, Platform]] = {
    p.name: p
    for p in (
        Platform("a2a3sim", "a2a3", BackendType.Ascend910B, False, 4),
        Platform("a5sim", "a5", BackendType.Ascend950, False, 5),
        Platform("a2a3", "a2a3", BackendType.Ascend910B, True, 4),
        Platform("a5", "a5", BackendType.Ascend950, True, 5),
    )
}

DEFAULT_PLATFORM: Final = "a2a3sim"


def find_platform(name: str) -> Platform:
    """The platform called ``name``; ``ValueError`` lists the four there are."""
    try:
        return PLATFORMS[name]
    except (KeyError, TypeError):
        raise ValueError(f"Invalid platform {name!r}: expected one of {', '.join(PLATFORMS)}") from None


def sim_platform_of(backend_type: BackendType) -> str:
    """The platform of a compile that names a chip family only (spec runtime 1.2)."""
    return next(p.name for p in PLATFORMS.values() if p.backend_type is backend_type and not p.clocked)
