"""The task graph of ``deps.json`` (``profiling.md`` 5.7) and the names of its kernels (5.12)."""

from __future__ import annotations

import json
import runpy
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import index
from pathlib import Path
from typing import Any

from pypto.perf.task_id import display_id


class TaskGraphError(ValueError):
    """A graph or name map that cannot be read; the message names the file and the place."""


@dataclass(frozen=True)
class GraphArgument:
    """A tensor argument: extents, offset and strides in elements; ``tensor_id`` is None for a fresh output."""

    kind: str
    tensor_id: int | None = None
    shape: tuple[int, ...] = ()
    start_offset: int = 0
    strides: tuple[int, ...] = ()


@dataclass(frozen=True)
class GraphTask:
    """A submitted task; ``kernel_ids`` are (aic, aiv0, aiv1) with -1 for an inactive one."""

    task_id: int
    kernel_ids: tuple[int, ...]
    block_num: int
    scope: str = "auto"
    arguments: tuple[GraphArgument, ...] = ()

    @property
    def is_dummy(self) -> bool:
        """A dependency-only entry without any kernel."""
        return all(kernel < 0 for kernel in self.kernel_ids)

    def kernel_on(self, core_type: str) -> int:
        """Kernel id on a kind of core, -1 when the task does not run there."""
        if core_type == "aic":
            return self.kernel_ids[0]
        return next((kernel for kernel in self.kernel_ids[1:] if kernel >= 0), -1)


@dataclass(frozen=True)
class GraphEdge:
    """One dependency with the reason it exists; several may join the same pair of tasks."""

    pred: int
    succ: int
    source: str
    arg: int = -1
    tensor_id: int | None = None
    overlap: str | None = None


@dataclass(frozen=True)
class TaskGraph:
    """Tasks by id and the annotated edges between them; ``buffers`` are (address, elements) by tensor id."""

    tasks: dict[int, GraphTask] = field(default_factory=dict)
    edges: list[GraphEdge] = field(default_factory=list)
    tensors: int = 0
    buffers: dict[int, tuple[int, int]] = field(default_factory=dict)

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Distinct (pred, succ), ascending."""
        return sorted({(edge.pred, edge.succ) for edge in self.edges})

    @cached_property
    def preds(self) -> dict[int, list[int]]:
        return _grouped((succ, pred) for pred, succ in self.pairs)

    @cached_property
    def succs(self) -> dict[int, list[int]]:
        return _grouped(self.pairs)

    @cached_property
    def all_ids(self) -> list[int]:
        """Submitted tasks and those that only edges mention, ascending."""
        return sorted({*self.tasks, *(task for pair in self.pairs for task in pair)})


def _grouped(pairs: Any) -> dict[int, list[int]]:
    grouped: dict[int, list[int]] = {}
    for key, value in pairs:
        grouped.setdefault(key, []).append(value)
    return grouped


def read_task_graph(path: str | Path) -> TaskGraph:
    """Read a ``deps.json``.

    Raises:
        OSError: the file cannot be read.
        TaskGraphError: it is no JSON object with tasks and edges.
    """
    try:
        raw = json.loads(Path(path).read_text())
        tasks = [_task(entry) for entry in raw["tasks"]]
        edges = [_edge(entry) for entry in raw["edges"]]
        tensors = raw.get("tensors", ())
        buffers = {int(t["tensor_id"]): (int(t["buffer_addr"]), int(t["buffer_numel"])) for t in tensors}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TaskGraphError(f"{path}: not a task graph (an object with tasks and edges): {error!r}") from None
    return TaskGraph({task.task_id: task for task in tasks}, edges, len(tensors), buffers)


def _task(entry: Mapping[str, Any]) -> GraphTask:
    kernels = tuple(map(index, entry.get("kernel_ids", (-1, -1, -1))))
    arguments = tuple(map(_argument, entry.get("args", ())))
    blocks = index(entry.get("block_num", 1))
    return GraphTask(int(entry["task_id"]), kernels, blocks, entry.get("scope", "auto"), arguments)


def _argument(entry: Mapping[str, Any]) -> GraphArgument:
    shape, strides = tuple(map(index, entry.get("shape", ()))), tuple(map(index, entry.get("strides", ())))
    return GraphArgument(entry["type"], _tensor_id(entry), shape, int(entry.get("start_offset", 0)), strides)


def _edge(entry: Mapping[str, Any]) -> GraphEdge:
    ends = int(entry["pred"]), int(entry["succ"])
    return GraphEdge(*ends, entry["source"], entry.get("arg", -1), _tensor_id(entry), entry.get("overlap"))


def _tensor_id(entry: Mapping[str, Any]) -> int | None:
    return int(entry["tensor_id"]) if "tensor_id" in entry else None


def read_kernel_names(path: str | Path) -> dict[int, str]:
    """Kernel names by id from a name map (JSON) or a ``kernel_config.py``.

    Raises:
        TaskGraphError: the file holds neither.
    """
    path = Path(path)
    try:
        if path.suffix == ".py":
            kernels = _run(path)["KERNELS"]
            return {
                index(entry["func_id"]): str(entry["name"])
                for entry in kernels
                if "func_id" in entry and "name" in entry
            }
        return {int(key): str(name) for key, name in json.loads(path.read_text())["callable_id_to_name"].items()}
    except TaskGraphError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TaskGraphError(
            f"{path}: no kernel names (callable_id_to_name, or KERNELS in Python): {error!r}"
        ) from None


def _run(path: Path) -> dict[str, Any]:
    """Names that a Python file defines; whatever it raises, it is the file that cannot be used."""
    try:
        return runpy.run_path(str(path))
    except OSError:
        raise
    except (Exception, SystemExit) as error:
        raise TaskGraphError(f"{path}: it does not run: {error!r}; give the names as JSON with --func-names") from None


def sibling_name_map(directory: Path) -> tuple[Path | None, str | None]:
    """The unique ``name_map*.json`` beside a records file, or a sentence about several."""
    found = sorted(directory.glob("name_map*.json"))
    if len(found) > 1:
        return None, f"{len(found)} name maps in {directory}: none used, choose one with --func-names"
    return (found[0] if found else None), None


def letters(number: int) -> str:
    """Bijective base 26: 0 is ``a``, 25 ``z``, 26 ``aa``."""
    text = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        text = chr(ord("a") + digit) + text
    return text


def kernel_label(kernel_id: int, names: Mapping[int, str]) -> str:
    """Name of a kernel, ``func_<n>_<letters>`` without one, ``task`` when no kernel is known."""
    if kernel_id < 0:
        return "task"
    return names.get(kernel_id, f"func_{kernel_id}_{letters(kernel_id)}")


def task_label(task_id: int, kernel_id: int, names: Mapping[int, str], *, spmd: bool) -> str:
    """Label of a bar: ``<kernel>[_spmd](<id>)``."""
    name = kernel_label(kernel_id, names)
    suffix = "_spmd" if spmd and "spmd" not in name.lower() else ""
    return f"{name}{suffix}({display_id(task_id)})"
