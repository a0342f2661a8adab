"""The parts of a chip as nested descriptions, read from the chip's figures in :mod:`pypto.sim.chips`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from pypto.backend.platforms import PLATFORMS, BackendType

# Spaces of each kind of core, by their names in kernel text.
_SPACES: Final = {
    "aic": ("mat", "left", "right", "acc", "bias", "leftscale", "rightscale"),
    "aiv": ("vec",),
}


@dataclass(frozen=True)
class Mem:
    """One on-chip memory: bytes a kernel may use, alignment of an allocation in bytes."""

    space: str
    capacity_bytes: int
    alignment_bytes: int


@dataclass(frozen=True)
class Core:
    """A cube (``aic``) or vector (``aiv``) core and its memories."""

    kind: Literal["aic", "aiv"]
    memories: tuple[Mem, ...]

    def memory(self, space: str) -> Mem:
        """The memory called ``space``; ``KeyError`` lists those of the core."""
        for memory in self.memories:
            if memory.space == space:
                return memory
        known = ", ".join(m.space for m in self.memories)
        raise KeyError(f"an {self.kind} core has no memory {space!r}; it has {known}")


@dataclass(frozen=True)
class Cluster:
    """One cube core with its vector cores."""

    cores: tuple[Core, ...]


@dataclass(frozen=True)
class Die:
    """Clusters behind one device id."""

    clusters: tuple[Cluster, ...]


@dataclass(frozen=True)
class SoC:
    """A chip: the dies a program may use."""

    name: str
    dies: tuple[Die, ...]


@dataclass(frozen=True)
class Backend:
    """What compiling for one chip family needs to know of the chip."""

    type: BackendType

    @property
    def name(self) -> str:
        """``Ascend910B`` or ``Ascend950``."""
        return self.type.value

    @property
    def arch(self) -> str:
        """The chip's name in platforms: ``a2a3`` or ``a5``."""
        return next(p.chip for p in PLATFORMS.values() if p.backend_type is self.type)

    @property
    def soc(self) -> SoC:
        """The parts of the chip."""
        return _soc(self.arch)


class Backend910B(Backend):
    """Ascend 910B and 910C."""

    def __init__(self) -> None:
        super().__init__(BackendType.Ascend910B)


class Backend950(Backend):
    """Ascend 950."""

    def __init__(self) -> None:
        super().__init__(BackendType.Ascend950)


_BACKENDS: Final = {BackendType.Ascend910B: Backend910B(), BackendType.Ascend950: Backend950()}


def get_backend_instance(backend_type: BackendType | None = None) -> Backend:
    """The backend of ``backend_type``, by default of the selected family."""
    if backend_type is None:
        from pypto.backend.selection import get_backend_type

        backend_type = get_backend_type()
    return _BACKENDS[backend_type]


@cache
def _soc(chip_name: str) -> SoC:
    from pypto.sim.chips import Chip, chip

    def core(description: Chip, kind: Literal["aic", "aiv"]) -> Core:
        present = [name for name in _SPACES[kind] if getattr(description.spaces, name) is not None]
        spaces = ((name, description.space(name)) for name in present)
        return Core(kind, tuple(Mem(name, s.capacity_bytes, s.alignment_bytes) for name, s in spaces))

    description = chip(chip_name)
    vectors = description.vector_cores // description.clusters
    cluster = Cluster((core(description, "aic"), *(core(description, "aiv"),) * vectors))
    return SoC(chip_name, (Die((cluster,) * description.clusters),))
