"""Findings about parameters used against their declared direction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pypto.sim.checks import words as w
from pypto.sim.checks.facts import instruction_facts
from pypto.sim.checks.findings import Finding
from pypto.sim.checks.places import first_byte, index_ranges, location, memory_at
from pypto.sim.syntax import Instruction, TensorParameter

if TYPE_CHECKING:
    from pypto.sim.checks.order import Write
    from pypto.sim.checks.watch import LaunchWatch, Memory
    from pypto.sim.tile_program import TileProgram


def direction_findings(watch: LaunchWatch) -> Iterator[Finding]:
    """Stores to tensors that the entry, or the kernel that makes them, declares as inputs."""
    yield from _of_the_entry(watch)
    yield from _of_kernels(watch)


def _of_the_entry(watch: LaunchWatch) -> Iterator[Finding]:
    """Stores to inputs of the entry: the host never gets them back."""
    for number, written in watch.writers.items():
        memories = watch.memories[number]
        if not memories or any(memory.direction != "in" for memory in memories):
            continue
        nodes = [watch.nodes[node] for node in written if watch.nodes[node].name]
        places = [
            location(watch.programs[write.program], write.instruction, f"'{watch.nodes[node].name}' writes")
            for node, write in written.items()
        ]
        name = memories[0].name
        tasks = tuple(dict.fromkeys(node.name for node in nodes))
        writers = ", ".join(f"'{task}'" for task in tasks) or f"'{watch.orchestration.name}'"
        message = f"{writers} writes '{name}', which the entry declares as an input: the host never sees the new values"
        repair = f"declare '{name}' as pl.InOut[...] (pl.Out[...] if its old contents do not matter)"
        yield Finding(
            "direction",
            message,
            name,
            tasks,
            tuple(dict.fromkeys(places[:4])),
            *_written(memories, written.values()),
            repair,
        )


def _of_kernels(watch: LaunchWatch) -> Iterator[Finding]:
    """Stores of a kernel to its own inputs: tasks that use the tensor later do not wait for them. One per store."""
    for number, written in watch.writers.items():
        named = {memory.name for memory in watch.memories[number]}
        stores: dict[tuple[int, int], list[tuple[int, Write]]] = {}
        for node, write in written.items():
            stores.setdefault((write.program, write.instruction), []).append((node, write))
        for (program, index), writes in stores.items():
            kernel, node = watch.programs[program], writes[0][0]
            parameter = _input_written(kernel, index)
            if parameter is None:
                continue
            task, name = watch.nodes[node].name or kernel.name, kernel.author(parameter.name)
            tensors = ", ".join(repr(tensor) for tensor in sorted(named))
            given = "" if name in named else f" (here {tensors})"
            message = (
                f"'{task}' writes its parameter '{name}'{given}, which it declares as an input: tasks that read the "
                "tensor later do not wait for this write"
            )
            repair = f"declare '{name}' as pl.Out[...], or as pl.InOut[...] if it is also read, in '{kernel.name}'"
            place = location(kernel, index, f"'{task}' writes")
            span, ranges = _written(watch.memories[number], (write for _, write in writes))
            yield Finding("direction", message, name, (task,), (place,), span, ranges, repair, len(writes))


def _written(
    memories: Sequence[Memory], writes: Iterable[Write]
) -> tuple[tuple[int, int], tuple[tuple[int, int], ...]]:
    """(bytes, index ranges) of the tensor that the first of ``writes`` goes to."""
    runs = np.array([(write.low, write.high) for write in writes], np.int64)
    memory = memory_at(memories, int(runs[0, 0]))
    runs = np.clip(runs - first_byte(memory, memories), 0, memory.size)
    return (int(runs[:, 0].min()), int(runs[:, 1].max())), index_ranges(memory, runs)


def _input_written(kernel: TileProgram, index: int) -> TensorParameter | None:
    """The parameter of a kernel that the store ``index`` writes although it is declared as an input."""
    if kernel.core is None or not isinstance(kernel.statements[index], Instruction):
        return None
    root = int(instruction_facts(kernel).words[index, w.FACT_ROOT])
    parameter = kernel.parameters[root] if 0 <= root < len(kernel.parameters) else None
    if isinstance(parameter, TensorParameter) and parameter.direction == "in" and not parameter.window:
        return parameter
    return None
