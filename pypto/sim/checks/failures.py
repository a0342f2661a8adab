"""Findings made from what stops a program: bounds, divisions, queues, waits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from pypto.sim.checks.findings import CheckError, Finding, Location
from pypto.sim.checks.places import location, operation, tensor_operand
from pypto.sim.checks.queue_findings import misused_queue, overdue_finding
from pypto.sim.faults import DeadlockError, ExecutionError, OutOfBoundsError, OversubscribedError
from pypto.sim.queue_faults import QueueError
from pypto.sim.syntax import Instruction

if TYPE_CHECKING:
    from pypto.sim.tile_program import TileProgram


def failure_findings(failure: ExecutionError) -> Iterator[Finding]:
    """The finding that ``failure`` amounts to."""
    if isinstance(failure, CheckError):
        yield from failure.findings
    elif isinstance(failure, OversubscribedError):
        yield _oversubscribed(failure)
    elif isinstance(failure, DeadlockError) and failure.overdue:
        yield from (overdue_finding(failure, queue) for queue in failure.overdue)
    elif isinstance(failure, DeadlockError):
        yield _waiting(failure)
    else:
        yield _fault(failure)


def _fault(failure: ExecutionError) -> Finding:
    lines = str(failure).splitlines() or [""]
    if failure.site is None:
        return Finding("bounds" if isinstance(failure, OutOfBoundsError) else "misuse", str(failure))
    program, index = failure.site
    name = _mnemonic(program, index)
    message = f"{lines[0]} ('{operation(program, index)}' in '{program.name}')"
    if isinstance(failure, QueueError):
        return misused_queue(failure, message)
    kind = "bounds" if isinstance(failure, OutOfBoundsError) else "misuse"
    return Finding(
        kind, message, failure.subject, (program.name,), (location(program, index),), failure.byte_range,
        failure.index_ranges, _repair(kind, name, lines[0]),
    )  # fmt: skip


def _mnemonic(program: TileProgram, index: int) -> str:
    statement = program.statements[index] if 0 <= index < len(program.statements) else None
    return statement.mnemonic if isinstance(statement, Instruction) else ""


def _repair(kind: str, name: str, message: str) -> str:
    if kind != "bounds":
        return _misuse_repair(message)
    if re.search(r"\bindex -", message):
        clamp = "pl.maximum" if name in _INDEX_TILES else "pl.max"
        return f"keep the index at 0 or above, as with {clamp}(index, 0), and below the extent"
    if name.startswith("mgather"):
        return "check the index, or say what an index outside reads: gather_oob='clamp', 'wrap' or 'zero'"
    if "offset -" in message:
        return "keep the offset at 0 or above, as with pl.max(offset, 0)"
    if name in ("tload", "tstore", "tremote_load", "tremote_store"):
        return "keep offset + window inside the extent; a tail is moved with valid_shape=[...] cut at the edge (pl.min)"
    if "peer" in message:
        return "wrap the neighbour around: (rank + 1) % nranks, and (rank - 1 + nranks) % nranks on the other side"
    if name in ("view", "textract", "tinsert"):
        return "keep offset + window inside the extent, as with pl.min(offset, extent - window)"
    clamp = "pl.minimum" if name in _INDEX_TILES else "pl.min"
    return f"keep the index below the extent, as with {clamp}(index, extent - 1)"


_INDEX_TILES: Final = (
    "mgather", "mgather_gm", "mscatter", "tgather_axis", "tscatter", "tscatter_axis", "tscatter_rows",
)  # fmt: skip
"""Instructions that take their indices from a tile."""


def _misuse_repair(message: str) -> str:
    if "division by zero" in message:
        return "keep the divisor away from zero, as with pl.max(divisor, 1)"
    if "step 0" in message:
        return "keep the step away from zero, as with pl.max(step, 1)"
    return ""


def _oversubscribed(failure: OversubscribedError) -> Finding:
    """A synchronous start that would never begin (spec distributed 5.2 D17)."""
    assert failure.site is not None
    program, index = failure.site
    message = (
        f"'{failure.task}' never starts: its {failure.blocks} blocks start together (sync_start), and the chip runs "
        f"{failure.chip} of them at once"
    )
    repair = (
        f"start at most {failure.chip} blocks together, each with more of the work (pl.system.available_aiv_count, "
        "available_cluster_count), or leave sync_start out"
    )
    places = (location(program, index, f"'{failure.task}' is submitted"),)
    return Finding("deadlock", message, "", (failure.task,), places, None, (), repair)


def _waiting(failure: DeadlockError) -> Finding:
    text = str(failure)
    places: list[Location] = []
    tasks: list[str] = []
    names: list[str] = []
    for program, index in failure.waiting:
        places.append(location(program, index, f"'{program.name}' waits"))
        tasks.append(program.name)
        names.append(_mnemonic(program, index))
    operations = ", ".join(dict.fromkeys(names))
    message = text if not operations else f"{text}\n  waiting: {operations}"
    subject = failure.subject or next((n for p, i in failure.waiting if (n := tensor_operand(p, i)) != "?"), "")
    starved = STARVED.findall(text)
    kind, repair = ("starvation", STARVATION_REPAIR) if starved else ("deadlock", _wait_repair(names, failure))
    if starved:
        tasks = [*starved[0].split(", "), *tasks]
    others = [location(*place) for answer in failure.answers for place in answer.places]
    places = list(dict.fromkeys(places[:4])) + list(dict.fromkeys(others))[:4]
    return Finding(kind, message, subject, tuple(dict.fromkeys(tasks)), tuple(dict.fromkeys(places)), None, (), repair)


STARVED: Final = re.compile(r"(?m)^ *(.+) cannot start: blocked waits hold every core")
"""Tasks that the cores of waiting ones are missing for, in the text of a deadlock."""
STARVATION_REPAIR: Final = (
    "wait in a task of its own, which holds no core: 'with pl.at(level=pl.Level.CORE_GROUP) as told:' around "
    "pld.system.defer_wait(...), and deps=[told] on the task that goes on; or start fewer waiting blocks at once than "
    "the chip has cores"
)


def _wait_repair(names: list[str], failure: DeadlockError) -> str:
    advice = list(dict.fromkeys(answer.advice for answer in failure.answers))
    if "syncall" in names:
        advice.append(
            "launch at most as many blocks as run at once (pl.system.available_aiv_count) and with sync_start=True"
            if "cannot start before these end" in str(failure)
            else "let every core of the kind call syncall equally often: outside of conditions on the block or the lane"
        )
    if "syncall_soft" in names:
        advice.append(
            "let exactly used_cores cores call it, equally often, all with the same gm_workspace, and run at once"
        )
    if "sync_wait" in names and not failure.answers:
        advice.append("set the event that is awaited: sync_set with the same number")
    if "signal_wait" in names or "signal_defer" in names:
        advice.append("notify the peers first, before any wait: publish, notify, wait, read")
    return "; ".join(advice)
