"""The pass pipeline: which passes run in which order, and the dumps between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pypto.ir import nodes as ir
from pypto.ir.lowering.orchestrators import inline_orchestrations
from pypto.ir.passes.entry import with_entry
from pypto.ir.passes.groups import shared_members
from pypto.ir.passes.outline import outline
from pypto.ir.passes.pipeline_loops import pipeline_loops
from pypto.ir.passes.place import place
from pypto.ir.passes.returns import explicit_returns
from pypto.ir.passes.split_lanes import split_lanes
from pypto.ir.passes.task_fans import fan_task_ids
from pypto.ir.passes.unroll import unroll
from pypto.ir.passes.windows import externalise_windows
from pypto.ir.passes.write_back import write_back

ProgramPass = Callable[[ir.Program], ir.Program]


@dataclass(frozen=True)
class NamedPass:
    """A pass under the name its dump carries."""

    name: str
    run: ProgramPass


def lowering_passes() -> list[NamedPass]:
    """Passes that do not depend on the chip: what ``lower()`` runs."""
    return [
        NamedPass("InlineOrchestrations", inline_orchestrations),
        NamedPass("UnrollLoops", unroll),
        NamedPass("WriteBack", write_back),
        NamedPass("OutlineCoreScopes", outline),
        NamedPass("ExternaliseWindows", externalise_windows),
        NamedPass("FanTaskIds", fan_task_ids),
        NamedPass("ShareGroupParameters", shared_members),
        NamedPass("ExplicitReturns", explicit_returns),
        NamedPass("AddEntry", with_entry),
    ]


def placement_passes(
    generation: str, capacity: dict[str, int], fits: Callable[[ir.Function], bool] = lambda function: True
) -> list[NamedPass]:
    """Passes that place data on a chip of ``generation``; ``fits`` says whether a placed kernel's buffers do."""
    return [
        NamedPass("PipelineLoops", pipeline_loops),
        NamedPass("PlaceTensors", lambda program: place(program, generation, capacity, fits)),
        NamedPass("SplitLanes", split_lanes),
    ]


def run_passes(
    program: ir.Program,
    passes: list[NamedPass],
    dump_dir: Path | None = None,
    first: int = 1,
    after: Callable[[str, ir.Program], None] | None = None,
) -> ir.Program:
    """Run ``passes`` in order; with ``dump_dir`` the program after each one is written there, ``after`` sees it."""
    for number, step in enumerate(passes, first):
        program = step.run(program)
        if dump_dir is not None:
            (dump_dir / f"{number:02}_after_{step.name}.py").write_text(program.as_python(), encoding="utf-8")
        if after is not None:
            after(step.name, program)
    return program
