"""``deps.json``: the tasks of a launch, their arguments, and what each waits for (spec runtime 13.5, profiling 5.7).

64-bit numbers are decimal strings. Addresses are those of the recording: the same in every run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pypto.runtime.callable import ChipCallable
from pypto.runtime.dfx.dtype_names import dtype_name
from pypto.runtime.dfx.kernel_names import function_ids, task_tokens
from pypto.runtime.dfx.task_tensors import TaskTensors, overlap

if TYPE_CHECKING:
    from pypto.runtime.launch import Launched
    from pypto.sim.recording import Recording
    from pypto.sim.task_log import TensorValue

_SOURCES: Final = ("tensormap", "explicit", "creator")


def write_task_graph(launched: Launched, chip_callable: ChipCallable, folder: Path) -> Path:
    """Write ``deps.json``; without a log of the launch its tasks have no arguments and its edges no tensors."""
    recording = launched.known_recording
    path = folder / "deps.json"
    tokens, tensors = task_tokens(recording), TaskTensors(launched.log)
    content = {
        "tasks": list(_tasks(recording, tokens, function_ids(chip_callable), tensors)),
        "tensors": tensors.rows(),
        "edges": list(_edges(recording, tokens, tensors)),
    }
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return path


def _tasks(
    recording: Recording, tokens: list[int], ids: dict[str, int], tensors: TaskTensors
) -> Iterator[dict[str, Any]]:
    from pypto.sim.recording import EARLY_RESOLVE

    manual = _manual_scopes(recording)
    for task, token in enumerate(tokens):
        yield {
            "task_id": str(token),
            "scope": "manual" if task in manual else "auto",
            "early_dispatch": bool(recording.task_flags[task] & EARLY_RESOLVE),
            "kernel_ids": _kernel_ids(recording, task, ids),
            "block_num": int(recording.task_blocks[task]),
            "args": tensors.arguments(task),
        }


def _kernel_ids(recording: Recording, task: int, ids: dict[str, int]) -> list[int]:
    """Function ids on the cube core and on the two vector cores, -1 where the task does not run."""
    from pypto.sim.recording import AIC

    kernels = [-1, -1, -1]
    for subtask in range(int(recording.subtask_start[task]), int(recording.subtask_start[task + 1])):
        program = recording.programs[int(recording.subtask_program[subtask])]
        place = 0 if program.core == AIC else 1 + int(recording.subtask_lane[subtask])
        kernels[place] = ids.get(program.name, -1)
    return kernels


def _manual_scopes(recording: Recording) -> set[int]:
    """Tasks submitted inside a manual scope."""
    from pypto.sim.recording import SCOPE_BEGIN, SCOPE_END, SUBMIT

    manual: set[int] = set()
    open_scopes: list[bool] = []
    for kind, first, second, _ in recording.events.tolist():
        if kind == SCOPE_BEGIN:
            open_scopes.append(second == 1)
        elif kind == SCOPE_END:
            open_scopes.pop()
        elif kind == SUBMIT and open_scopes and open_scopes[-1]:
            manual.add(first)
    return manual


def _edges(recording: Recording, tokens: list[int], tensors: TaskTensors) -> Iterator[dict[str, Any]]:
    for task, token in enumerate(tokens):
        for at in range(int(recording.deps_start[task]), int(recording.deps_start[task + 1])):
            source, producer = _SOURCES[int(recording.deps_kind[at])], int(recording.deps[at])
            edge: dict[str, Any] = {
                "pred": str(tokens[producer]),
                "succ": str(token),
                "arg": -1,
                "source": source,
                "flags": ["wait", "retain"] if source == "creator" else ["wait"],
            }
            pair = None if source == "explicit" else tensors.shared(producer, task, created=source == "creator")
            if pair is not None:
                edge.update(_through(tensors, source, *pair))
            yield edge


def _through(tensors: TaskTensors, source: str, written: TensorValue, read: TensorValue) -> dict[str, Any]:
    """What an edge says about the argument it comes from."""
    found: dict[str, Any] = {"arg": read.index}
    if source == "tensormap":
        found["overlap"] = "covered" if overlap(read, written) == "covered" else "other"
    found.update(
        tensor_id=tensors.tensor_id(read),
        consumer_dtype=dtype_name(read.dtype),
        consumer_shape=list(read.shape),
        consumer_start_offset=str(read.start),
        consumer_strides=list(read.strides),
    )
    if source == "tensormap":
        found.update(
            producer_shape=list(written.shape),
            producer_start_offset=str(written.start),
            producer_strides=list(written.strides),
        )
    return found
