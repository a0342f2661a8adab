"""What a ``submit`` resolves to: members, where their parameters come from, checked when the program is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pypto.ir.dtype import DataType
from pypto.sim import layout
from pypto.sim.dependencies import SCALAR
from pypto.sim.faults import ExecutionError, where
from pypto.sim.recording import AIC, AIV, MIX, Words
from pypto.sim.syntax import Group, ScalarParameter, TensorParameter
from pypto.sim.tile_program import Binding, Submit, TileProgram

_COPIED = layout.TENSOR_NAME  # a kernel keeps its own name for the tensor; the words before it are the caller's


@dataclass(frozen=True)
class Member:
    """One core type of a task: its program, and the frame words that take the parameters."""

    program: TileProgram
    cores: tuple[int, ...]  # 0 AIC, 1 + lane AIV
    places: Words


@dataclass(frozen=True, eq=False)
class TaskPlan:
    """Everything about a ``submit`` that does not change from one execution to the next.

    ``sources`` are words of the orchestration's frame, in the order of every member's ``places``. ``fixed`` are words
    of the frame that must hold ``extents``: the static extents of the parameters.
    """

    request: Submit
    index: int  # instruction index in the orchestration
    kind: int
    members: tuple[Member, ...]
    sources: Words
    tensors: Words  # rows (direction, frame offset) of the tensor arguments
    scalars: int
    fixed: Words
    extents: Words

    def check_extents(self, orchestration: TileProgram, frame: Words) -> None:
        """Complain when an argument's extents are not those its parameter declares."""
        found = frame[self.fixed]
        if np.array_equal(found, self.extents):
            return
        at = int(np.flatnonzero(found != self.extents)[0])
        word = int(self.fixed[at])
        for (is_tensor, offset), binding in zip(self.request.arguments, self.members[0].program.bindings):
            if is_tensor and offset <= word < offset + layout.TENSOR_WORDS:
                axis = word - offset - layout.TENSOR_EXTENTS
                raise ExecutionError(
                    f"'{binding.parameter.name}' of {self.request.kernel} has extent {int(self.extents[at])} on axis "
                    f"{axis}; the tensor passed has {int(found[at])}\n"
                    f"in {orchestration.name}{where(orchestration, self.index)}"
                )


@dataclass(frozen=True)
class Library:
    """What an orchestration can submit. ``externals``: core type of the kernels that only a stand-in can run."""

    kernels: Mapping[str, TileProgram]
    groups: Mapping[str, Group]
    externals: Mapping[str, str]


def plan(request: Submit, index: int, orchestration: TileProgram, library: Library) -> TaskPlan:
    """Resolve ``request``; ``ValueError`` when a kernel is missing or the arguments do not fit its parameters."""
    members, kind = _members(request, index, orchestration, library)
    for program, _ in members:
        _check(request, index, orchestration, program)
    sources = _words(orchestration, request.arguments)
    tensors = [(d, offset) for d, (is_tensor, offset) in zip(request.directions, request.arguments) if is_tensor]
    bindings = members[0][0].bindings if members else ()
    fixed = [
        (offset + layout.TENSOR_EXTENTS + axis, extent)
        for (_, offset), binding in zip(request.arguments, bindings)
        if isinstance(binding.parameter, TensorParameter)
        for axis, extent in enumerate(binding.parameter.shape)
        if extent >= 0
    ]
    pairs = np.array(fixed, np.int64).reshape(-1, 2)
    return TaskPlan(
        request,
        index,
        kind,
        tuple(Member(program, cores, parameter_words(program.bindings)) for program, cores in members),
        sources,
        np.array(tensors, np.int64).reshape(-1, 2),
        sum(not is_tensor for is_tensor, _ in request.arguments),
        pairs[:, 0].copy(),
        pairs[:, 1].copy(),
    )


def _complain(orchestration: TileProgram, index: int, message: str) -> ValueError:
    line = orchestration.statements[index].position.line
    return ValueError(f"{orchestration.text_file}:{line}: {message}")


def _members(
    request: Submit, index: int, orchestration: TileProgram, library: Library
) -> tuple[list[tuple[TileProgram, tuple[int, ...]]], int]:
    kernels, group = library.kernels, library.groups.get(request.kernel)
    if group is None and request.kernel in library.externals:
        return [], AIC if library.externals[request.kernel] == "aic" else AIV
    if group is None:
        if request.kernel not in kernels:
            known = ", ".join(f"@{name}" for name in (*kernels, *library.groups, *library.externals))
            raise _complain(
                orchestration, index, f"no kernel @{request.kernel} in this build directory; it has {known}"
            )
        program = kernels[request.kernel]
        return [(program, (0,) if program.core == "aic" else (1,))], AIC if program.core == "aic" else AIV
    members: list[tuple[TileProgram, tuple[int, ...]]] = []
    for name, cores in ((group.aic, (0,)), (group.aiv, tuple(range(1, 1 + group.lanes)))):
        if name is not None:
            if name not in kernels:
                raise _complain(orchestration, index, f"no kernel @{name}, a member of group @{group.name}")
            members.append((kernels[name], cores))
    return members, MIX


def _check(request: Submit, index: int, orchestration: TileProgram, program: TileProgram) -> None:
    parameters = program.parameters
    if len(parameters) != len(request.arguments):
        raise _complain(
            orchestration,
            index,
            f"@{program.name} has {len(parameters)} parameters, found {len(request.arguments)} arguments",
        )
    for parameter, (is_tensor, offset), direction in zip(parameters, request.arguments, request.directions):
        if is_tensor != isinstance(parameter, TensorParameter) or is_tensor != (direction != SCALAR):
            kind = "a scalar" if isinstance(parameter, ScalarParameter) else "a tensor"
            raise _complain(
                orchestration,
                index,
                f"'{parameter.name}' of @{program.name} is {kind}; the argument or its direction {direction} is not",
            )
        if isinstance(parameter, TensorParameter):
            words = orchestration.template[offset:]
            rank, dtype = int(words[layout.TENSOR_RANK]), DataType.from_code(int(words[layout.TENSOR_DTYPE]))
            if rank != len(parameter.shape) or dtype.to_string() != parameter.dtype:
                raise _complain(
                    orchestration,
                    index,
                    f"'{parameter.name}' of @{program.name} has rank {len(parameter.shape)} "
                    f"and dtype {parameter.dtype}; %{orchestration.names.get(offset)} has "
                    f"rank {rank} and dtype {dtype}",
                )


def _words(orchestration: TileProgram, arguments: tuple[tuple[bool, int], ...]) -> Words:
    words = [np.arange(offset, offset + (_COPIED if is_tensor else 1)) for is_tensor, offset in arguments]
    return np.concatenate(words or [np.zeros(0, np.int64)]).astype(np.int64)


def parameter_words(bindings: tuple[Binding, ...]) -> Words:
    """Which words of a task's parameters its bindings fill, in order."""
    words = [np.arange(b.offset, b.offset + (_COPIED if b.is_tensor else 1)) for b in bindings]
    return np.concatenate(words or [np.zeros(0, np.int64)]).astype(np.int64)
