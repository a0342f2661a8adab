"""``kernel_config.py`` of a build directory (spec runtime 3.7), read without being executed."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

MANIFEST = "kernel_config.py"


@dataclass(frozen=True)
class KernelEntry:
    """One kernel: its text, a path under the build directory."""

    func_id: int
    name: str
    source: Path
    core: str


@dataclass(frozen=True)
class GroupEntry:
    """One cluster: the names of its members."""

    name: str
    aic: str | None
    aiv: str | None
    lanes: int


@dataclass(frozen=True)
class ExternalEntry:
    """A hand-written C++ kernel, which cannot run here."""

    name: str
    source: str
    core: str


@dataclass(frozen=True)
class Manifest:
    """What a build directory holds."""

    directory: Path
    runtime: dict[str, Any]
    orchestration: Path
    kernels: tuple[KernelEntry, ...]
    groups: tuple[GroupEntry, ...]
    externals: tuple[ExternalEntry, ...] = ()


def read_manifest(directory: Path) -> Manifest:
    """The manifest of ``directory``.

    Raises ``FileNotFoundError`` when there is none and ``ValueError``, naming file, line and entry, when it is damaged.
    """
    path = directory / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; a build directory holds {MANIFEST} (recompile the program)")
    return _Reader(path).read()


class _Reader:
    def __init__(self, path: Path):
        self.path = path
        self.lines: dict[str, int] = {}

    def complain(self, message: str, line: int = 1) -> NoReturn:
        raise ValueError(f"{self.path}:{line}: {message}")

    def read(self) -> Manifest:
        values = self._assignments()
        for name, kind in (("RUNTIME_CONFIG", dict), ("ORCHESTRATION", dict), ("KERNELS", list)):
            if name not in values:
                self.complain(f"{name} is missing")
            if not isinstance(values[name], kind):
                self.complain(f"{name} is no {kind.__name__}", self.lines[name])
        source = self._text(values["ORCHESTRATION"], "source", "ORCHESTRATION")
        kernels, groups, externals = [], [], []
        for number, entry in enumerate(values["KERNELS"]):
            where = f"KERNELS[{number}]"
            if not isinstance(entry, dict):
                self.complain(f"{where} is no dict", self.lines["KERNELS"])
            if "group" in entry:
                groups.append(self._group(entry, where))
            elif entry.get("external"):
                core = self._core(entry, where)
                externals.append(
                    ExternalEntry(self._text(entry, "name", where), self._text(entry, "source", where), core)
                )
            else:
                kernels.append(self._kernel(entry, where))
        return Manifest(
            self.path.parent,
            values["RUNTIME_CONFIG"],
            self._file(source),
            tuple(kernels),
            tuple(groups),
            tuple(externals),
        )

    def _assignments(self) -> dict[str, Any]:
        try:
            tree = ast.parse(self.path.read_bytes(), str(self.path))
        except (SyntaxError, ValueError) as error:
            self.complain(f"no Python literal: {getattr(error, 'msg', error)}", getattr(error, "lineno", 1) or 1)
        values: dict[str, Any] = {}
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper():
                name = node.targets[0].id
                if name.startswith("_"):
                    continue
                self.lines[name] = node.lineno
                try:
                    values[name] = ast.literal_eval(node.value)
                except (ValueError, TypeError, SyntaxError):
                    self.complain(f"{name} is no plain literal", node.lineno)
        return values

    def _text(self, entry: dict[str, Any], key: str, where: str) -> str:
        value = entry.get(key)
        if not isinstance(value, str):
            self.complain(f'{where} has no text under "{key}"', self.lines[where.partition("[")[0]])
        return value

    def _file(self, name: str) -> Path:
        path = self.path.parent / name
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such file; {self.path} names it (recompile the program)")
        return path

    def _core(self, entry: dict[str, Any], where: str) -> str:
        core = self._text(entry, "core_type", where)
        if core not in ("aic", "aiv"):
            self.complain(f'{where}: core_type "{core}"; legal are "aic" and "aiv"', self.lines["KERNELS"])
        return core

    def _kernel(self, entry: dict[str, Any], where: str) -> KernelEntry:
        source = self._file(self._text(entry, "source", where))
        return KernelEntry(
            int(entry.get("func_id", -1)), self._text(entry, "name", where), source, self._core(entry, where)
        )

    def _group(self, entry: dict[str, Any], where: str) -> GroupEntry:
        group = entry["group"]
        if not isinstance(group, dict) or not (group.get("aic") or group.get("aiv")):
            self.complain(f'{where}: a group names its "aic" and "aiv" kernels', self.lines["KERNELS"])
        lanes = group.get("lanes", 1)
        if lanes not in (1, 2):
            self.complain(f"{where}: {lanes} lanes; legal are 1 and 2", self.lines["KERNELS"])
        return GroupEntry(self._text(entry, "name", where), group.get("aic"), group.get("aiv"), lanes)
