"""The same program without its values: what a launch does, at the price of its scalars."""

from __future__ import annotations

from dataclasses import replace

from pypto.sim.kernels.catalogue import outlines
from pypto.sim.program import LoadedProgram
from pypto.sim.tile_program import TileProgram


def outlined(program: LoadedProgram) -> LoadedProgram:
    """``program`` with every tile kernel replaced by one that only reports what it would move or multiply.

    Raises ``ValueError`` naming the kernel when what a launch does depends on what it computes: a scalar read from a
    tensor or tile, a transfer to places that a tensor names.
    """
    kernels = {name: _outlined(kernel) for name, kernel in program.kernels.items()}
    _check(program.orchestration)
    return LoadedProgram(program.orchestration, kernels, program.groups, program.manifest)


def _check(program: TileProgram) -> None:
    if program.reads_memory:
        raise ValueError(
            f"{program.name} reads scalars from memory, which only a run with values can tell: record with values=True"
        )


def _outlined(program: TileProgram) -> TileProgram:
    _check(program)
    found = outlines([call.row for call in program.calls])
    code = program.code.copy()
    for call, address in zip(program.calls, found):
        if address is None:
            raise ValueError(
                f"{program.name} uses {call.row.mnemonic}, whose transfers depend on values: record with values=True"
            )
        code[call.at] = address
    return replace(program, code=code)
