"""Findings about parameters used against their declared direction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pypto.sim.checks.findings import Finding
from pypto.sim.checks.places import location

if TYPE_CHECKING:
    from pypto.sim.checks.watch import LaunchWatch


def direction_findings(watch: LaunchWatch) -> Iterator[Finding]:
    """Stores to tensors that the entry declares as inputs: the host never gets them back."""
    for number, written in watch.writers.items():
        memories = watch.memories[number]
        if not memories or any(memory.direction != "in" for memory in memories):
            continue
        nodes = [watch.nodes[node] for node in written if watch.nodes[node].name]
        places = [
            location(watch.programs[program], index, f"'{watch.nodes[node].name}' writes")
            for node, (program, index) in written.items()
        ]
        name = memories[0].name
        tasks = tuple(dict.fromkeys(node.name for node in nodes))
        writers = ", ".join(f"'{task}'" for task in tasks) or f"'{watch.orchestration.name}'"
        message = f"{writers} writes '{name}', which the entry declares as an input: the host never sees the new values"
        repair = f"declare '{name}' as pl.InOut[...] (pl.Out[...] if its old contents do not matter)"
        yield Finding("direction", message, name, tasks, tuple(dict.fromkeys(places[:4])), None, (), repair)
