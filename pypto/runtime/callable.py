"""What a worker dispatches: a build directory assembled for one platform.

Content decides: two directories with the same texts give the same callable, an edited text gives another one. There is
no binary cache to clear.
"""

from __future__ import annotations

import hashlib
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pypto.backend.platforms import Platform, find_platform
from pypto.runtime import task_names

if TYPE_CHECKING:
    from pypto.backend.soc import Core
    from pypto.sim.manifest import Manifest
    from pypto.sim.program import LoadedProgram

DEFAULT_RUNTIME: Final = "tensormap_and_ringbuffer"
MANIFEST: Final = "kernel_config.py"


@dataclass(frozen=True, eq=False)
class ChipCallable:
    """A program ready to launch on ``platform``; compared by identity.

    ``hid`` is the content hash of the orchestration text (what markers carry on a clocked platform), ``digest`` the
    content hash of all texts, ``runtime_config`` the ``RUNTIME_CONFIG`` of the directory's manifest, ``written`` the
    names of the parameters that tasks may change, whatever their declaration says.
    """

    name: str
    hid: str
    digest: str
    build_dir: Path
    platform: Platform
    program: LoadedProgram
    runtime_config: dict[str, Any]
    written: frozenset[str] = frozenset()

    @property
    def runtime_name(self) -> str:
        """Which task runtime the program was compiled for."""
        return str(self.runtime_config["runtime"])

    @property
    def enable_sdma(self) -> bool:
        """Whether the program prefetches through SDMA."""
        return bool(self.runtime_config.get("enable_sdma", False))


_assembled: weakref.WeakValueDictionary[tuple[str, str, str], ChipCallable] = weakref.WeakValueDictionary()


def assemble(build_dir: str | Path, platform: str) -> ChipCallable:
    """Load ``build_dir`` for ``platform``.

    ``FileNotFoundError`` names what is missing, ``ValueError`` the damaged file and what is wrong with it, also when a
    kernel needs more on-chip memory than the chip has.
    """
    from pypto.sim.manifest import read_manifest
    from pypto.sim.program import load_program

    directory = Path(build_dir).resolve()
    if not directory.is_dir():
        raise FileNotFoundError(f"{directory} is not a build directory: it does not exist")
    if find_platform(platform).clocked:
        from pypto.sim.timing.ahead import compile_ahead

        compile_ahead()
    manifest = read_manifest(directory)
    key = (_content_digest(manifest), str(directory), platform)
    found = _assembled.get(key)
    if found is None:
        program = load_program(directory)
        _check_memory(program, manifest, find_platform(platform))
        found = ChipCallable(
            name=manifest.orchestration.stem,
            hid=task_names.hid_of(manifest.orchestration.read_bytes()),
            digest=key[0],
            build_dir=directory,
            platform=find_platform(platform),
            program=program,
            runtime_config={"runtime": DEFAULT_RUNTIME, **manifest.runtime},
            written=_written(manifest),
        )
        task_names.remember(found.hid, found.name)
        _assembled[key] = found
    return found


def _content_digest(manifest: Manifest) -> str:
    """Content hash of the manifest and of every text it names."""
    digest = hashlib.blake2b(digest_size=16)
    texts = sorted(entry.source for entry in manifest.kernels)
    for path in (manifest.directory / MANIFEST, manifest.orchestration, *texts):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(manifest.directory).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _written(manifest: Manifest) -> frozenset[str]:
    from pypto.sim.syntax import Unit
    from pypto.sim.text import read_unit
    from pypto.sim.writes import written_parameters

    unit = read_unit(manifest.orchestration)
    return written_parameters(unit) if isinstance(unit, Unit) else frozenset()


def _check_memory(program: LoadedProgram, manifest: Manifest, platform: Platform) -> None:
    """``ValueError`` when a kernel text, which may have been edited, does not fit the memories of its core."""
    from pypto.backend.soc import get_backend_instance
    from pypto.sim.layout import SPACES

    names = {code: name for name, code in SPACES.items()}
    cluster = get_backend_instance(platform.backend_type).soc.dies[0].clusters[0]
    cores: dict[str, Core] = {core.kind: core for core in cluster.cores}
    for entry in manifest.kernels:
        memories = {memory.space: memory.capacity_bytes for memory in cores[entry.core].memories}
        for code, needed in program.kernels[entry.name].space_bytes:
            there = memories.get(names[code])
            if there is not None and needed > there:
                raise ValueError(
                    f"{entry.source}: kernel {entry.name!r} needs {needed:,} bytes of {names[code]}, "
                    f"a core of {platform.chip} has {there:,}"
                )
