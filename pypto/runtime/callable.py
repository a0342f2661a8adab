"""What a worker dispatches: a build directory assembled for one platform.

Content decides: two directories with the same texts give the same callable, an edited text gives another one. There is
no binary cache to clear.
"""

from __future__ import annotations

import ast
import hashlib
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pypto.backend.platforms import Platform, find_platform
from pypto.runtime import task_names

if TYPE_CHECKING:
    from pypto.sim.program import LoadedProgram

DEFAULT_RUNTIME: Final = "tensormap_and_ringbuffer"
MANIFEST: Final = "kernel_config.py"


@dataclass(frozen=True, eq=False)
class ChipCallable:
    """A program ready to launch on ``platform``; compared by identity.

    ``hid`` is the content hash of the orchestration text (what markers carry on a clocked platform), ``digest`` the
    content hash of all texts, ``runtime_config`` the ``RUNTIME_CONFIG`` of the directory's manifest.
    """

    name: str
    hid: str
    digest: str
    build_dir: Path
    platform: Platform
    program: LoadedProgram
    runtime_config: dict[str, Any]

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

    ``FileNotFoundError`` names what is missing, ``ValueError`` the damaged file and what is wrong with it.
    """
    from pypto.sim.program import load_program

    directory = Path(build_dir).resolve()
    orchestration = orchestration_text(directory)
    key = (_content_digest(directory), str(directory), platform)
    found = _assembled.get(key)
    if found is None:
        content = orchestration.read_bytes()
        found = ChipCallable(
            name=orchestration.stem,
            hid=task_names.hid_of(content),
            digest=key[0],
            build_dir=directory,
            platform=find_platform(platform),
            program=load_program(directory),
            runtime_config=_runtime_config(directory),
        )
        task_names.remember(found.hid, found.name)
        _assembled[key] = found
    return found


def orchestration_text(directory: Path) -> Path:
    """The one orchestration text of ``directory``."""
    if not directory.is_dir():
        raise FileNotFoundError(f"{directory} is not a build directory: it does not exist")
    found = sorted(directory.glob("orchestration/*.orch"))
    if not found:
        raise FileNotFoundError(
            f"{directory} cannot be launched: orchestration/*.orch is missing; was the compile stopped early "
            "(skip_ptoas), or does next_levels/ hold one build per orchestration?"
        )
    if len(found) > 1:
        names = ", ".join(p.name for p in found)
        raise ValueError(f"{directory / 'orchestration'} must hold one orchestration text, found {len(found)}: {names}")
    return found[0]


def _texts(directory: Path) -> Iterator[Path]:
    yield from sorted(directory.glob("orchestration/*.orch"))
    yield from sorted(directory.glob("kernels/**/*.pto"))
    manifest = directory / MANIFEST
    if manifest.is_file():
        yield manifest


def _content_digest(directory: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for path in _texts(directory):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(directory).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _runtime_config(directory: Path) -> dict[str, Any]:
    """``RUNTIME_CONFIG`` of the manifest (spec runtime 3.7), read as a literal, never executed."""
    config: dict[str, Any] = {"runtime": DEFAULT_RUNTIME, "aicpu_thread_num": 0}
    path = directory / MANIFEST
    if not path.is_file():
        return config
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and _assigns(statement, "RUNTIME_CONFIG"):
                config.update(ast.literal_eval(statement.value))
    except (SyntaxError, ValueError, TypeError) as error:
        raise ValueError(f"{path}: RUNTIME_CONFIG is not a literal dict ({error}); compile the program again") from None
    return config


def _assigns(statement: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)
