"""Findings about values that mean nothing, and about values that left the range of their dtype."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from pypto.ir.dtype import BF16, FP16, FP32, DataType
from pypto.sim.checks import words as w
from pypto.sim.checks.core_watch import on_chip_code
from pypto.sim.checks.facts import root_names
from pypto.sim.checks.findings import Finding, Location
from pypto.sim.checks.index_watch import OutsideIndex, outside_finding
from pypto.sim.checks.places import (
    byte_runs,
    cell,
    cells,
    element_register,
    first_byte,
    index_ranges,
    location,
    made_by_exponential,
    memory_at,
    noted_runs,
    operand_at,
    operation,
    ranges_text,
    result_register,
    tile_shape,
)
from pypto.sim.checks.queue_findings import used_after_free
from pypto.sim.recording import Words
from pypto.sim.syntax import Instruction, TensorParameter, Tile

if TYPE_CHECKING:
    from pypto.sim.checks.watch import LaunchWatch, Memory
    from pypto.sim.faults import ExecutionError
    from pypto.sim.tile_program import TileProgram

_LARGEST: Final = {FP16: "65504", BF16: "3.39e38", FP32: "3.40e38"}


def used_at_once(watch: LaunchWatch) -> Iterator[Finding]:
    """Branches, addresses and additions that took what means nothing, whether or not the launch came to its end."""
    for event in watch.events[: int(watch.words[w.EVENT_COUNT])]:
        yield _event(watch, event)


def undefined_index(watch: LaunchWatch, failure: ExecutionError) -> Iterator[Finding]:
    """The index with which a gather or scatter stopped, when it means nothing."""
    if failure.site is None or failure.index is None:
        return
    (program, number), (register, row, col, address) = failure.site, failure.index
    code = on_chip_code(address)
    if watch.asked & w.UNDEFINED and _is_undefined(watch, code):
        what, (kind, why) = program.author(register), _why_undefined(watch, code)
        name = operation(program, number)
        message = f"'{name}' in '{program.name}' takes [{row}, {col}] of '{what}' as an index, {why}"
        place = location(program, number, f"'{name}' in '{program.name}'")
        yield Finding(
            kind, message, what, (program.name,), (place,), *cell(program, register, row, col), _all_indices(what)
        )


def value_findings(watch: LaunchWatch) -> Iterator[Finding]:
    """What reached the host, and what was used at once."""
    yield from used_at_once(watch)
    if "overflow" in watch.checks.kinds:
        yield from _overflows(watch)
    for number, memories in enumerate(watch.memories):
        shadow = watch.shadows[number]
        if shadow is None:
            continue
        base = min(memory.address for memory in memories)
        for memory in memories:
            if memory.direction in ("out", "inout"):
                at = memory.address - base
                if not shadow.is_defined(at, at + memory.size):
                    yield from _host_tensor(watch, number, memory, shadow.read(at, at + memory.size))
    for allocation, low, node in watch.undefined_predicates:
        memory, task = memory_at(watch.memories[allocation], low), watch.nodes[node]
        low -= first_byte(memory, watch.memories[allocation])
        place = location(watch.orchestration, task.site, f"'{task.name}' is submitted")
        message = (
            f"the predicate of '{task.name}' is taken from byte {low} of '{memory.name}', which nobody has written"
        )
        span = low, low + memory.bits // 8
        ranges = index_ranges(memory, np.array([span], np.int64))
        yield Finding(
            "uninit", message, memory.name, (task.name,), (place,), span, ranges,
            f"write '{memory.name}' before the task, and name its writer in deps=[...]",
        )  # fmt: skip


def _host_tensor(watch: LaunchWatch, number: int, memory: Memory, shadow: np.ndarray) -> Iterator[Finding]:
    """Findings about one tensor that the host reads back; ``shadow`` are its codes."""
    told = {int(code): shadow == code for code in np.unique(shadow)}
    for code in [code for code in told if code >= w.FIRST_ORIGIN]:
        codes = int(watch.origins[code - w.FIRST_ORIGIN][w.OR_CODES])
        if codes:  # a packed predicate is read back: named after the elements it is made of
            mask = told.pop(code)
            for element in sorted({codes >> 8 * bit & 0xFF for bit in range(8)} - {0}):
                told[element] = told.get(element, False) | mask
    for code, mask in sorted(told.items()):
        runs = byte_runs(mask)
        if code == w.UNWRITTEN:
            if watch.checks.whole_outputs or (shadow == w.UNWRITTEN).all():
                yield _unwritten(watch, number, memory, runs)
        elif code >= w.FIRST_ORIGIN:
            origin = watch.origins[int(code) - w.FIRST_ORIGIN]
            if int(origin[w.OR_KIND]) == w.FREED_SLOT:
                continue  # its use has been told
            yield _from_origin(watch, origin, memory, runs)


def _unwritten(watch: LaunchWatch, number: int, memory: Memory, runs: Words) -> Finding:
    ranges = index_ranges(memory, runs)
    text = ranges_text(memory, ranges)
    written = watch.writers.get(number, {})
    if not written:
        return _left_out(watch, number, memory, runs)
    tasks = tuple(dict.fromkeys(watch.nodes[node].name for node in written if watch.nodes[node].name))
    places = tuple(
        dict.fromkeys(
            location(watch.programs[write.program], write.instruction, f"'{watch.nodes[node].name}' writes")
            for node, write in list(written.items())[:4]
        )
    )
    span = int(runs[0, 0]), int(runs[-1, 1])
    message = f"{text} of the output '{memory.name}' are never written ({int((runs[:, 1] - runs[:, 0]).sum())} bytes)"
    repair = (
        f"write all of '{memory.name}' {list(memory.shape)}, or declare it pl.InOut if its old "
        "contents are to stay: the "
        "old contents of a pl.Out are dead"
    )
    return Finding("uninit", message, memory.name, tasks, places, span, ranges, repair)


def _left_out(watch: LaunchWatch, number: int, memory: Memory, runs: Words) -> Finding:
    """An output that no task writes: the task that takes it is named, or the entry."""
    node = watch.takers.get(number)
    task, site, what = watch.orchestration.name, 0, "the entry"
    if node is not None:
        task, site = watch.nodes[node].name, watch.nodes[node].site
        what = f"'{task}' takes it"
    place = location(watch.orchestration, site, what)
    ranges = index_ranges(memory, runs)
    message = (
        f"{ranges_text(memory, ranges)} of the output '{memory.name}' are never written "
        f"({int((runs[:, 1] - runs[:, 0]).sum())} bytes): no task stores to it"
    )
    repair = f"write all of '{memory.name}' {list(memory.shape)}, or leave it out of the outputs"
    span = int(runs[0, 0]), int(runs[-1, 1])
    return Finding("uninit", message, memory.name, (task,), (place,), span, ranges, repair)


def _from_origin(watch: LaunchWatch, origin: Words, memory: Memory, runs: Words) -> Finding:
    ranges = index_ranges(memory, runs)
    reached = f"{ranges_text(memory, ranges)} of '{memory.name}'"
    span = int(runs[0, 0]), int(runs[-1, 1])
    kind = int(origin[w.OR_KIND])
    if kind in (w.FROM_UNWRITTEN, w.FROM_PADDING):
        return _undefined(watch, origin, reached)
    return _out_of_range(watch, origin, memory, reached, span, ranges)


def _site(watch: LaunchWatch, origin: Words) -> tuple[TileProgram, int, str, Location]:
    """(program, instruction, task, location) of an origin or event."""
    program, index = watch.programs[int(origin[w.OR_PROGRAM])], int(origin[w.OR_INSTRUCTION])
    node = int(origin[w.OR_NODE])
    task = watch.nodes[node].name if node in watch.nodes else ""
    task = task or watch.orchestration.name
    return program, index, task, location(program, index, f"'{operation(program, index)}' in '{task}'")


def _undefined(watch: LaunchWatch, origin: Words, reached: str) -> Finding:
    program, index, task, place = _site(watch, origin)
    name, register = operation(program, index), operand_at(program, index, int(origin[w.OR_OPERAND]))
    what = program.author(register)
    if int(origin[w.OR_HIGH]) > 0:
        return _read_unwritten(watch, origin, reached)
    row, col = int(origin[w.OR_ROW]), int(origin[w.OR_COL])
    element, (span, ranges) = f"[{row}, {col}]", cell(program, register, row, col)
    if int(origin[w.OR_KIND]) == w.FROM_UNWRITTEN:
        message = (
            f"'{name}' in '{task}' uses {element} of '{what}', which was never written; the result reaches {reached}"
        )
        return Finding("uninit", message, what, (task,), (place,), span, ranges, _start_value(program, index, register))
    shape = tile_shape(program, register) or (0, 0)
    valid = f"{int(origin[w.OR_ROWS])} x {int(origin[w.OR_COLS])}"
    message = (
        f"'{name}' in '{task}' uses {element} of '{what}', outside the part that holds data: {valid} of "
        f"{shape[0]} x {shape[1]} elements are valid; the result reaches {reached}"
    )
    repair = "fill the rest first with pl.fillpad(..., pad_value=...), or narrow the result with pl.set_validshape"
    return Finding("out-of-valid", message, what, (task,), (place,), span, ranges, repair)


_DIVISOR: Final = "keep the divisor away from zero, as with pl.maximum(divisor, 1e-6), or leave empty rows out"
_NAN_REPAIRS: Final = {
    **dict.fromkeys(("log", "sqrt", "rsqrt"), "keep the operand from going below zero, as with pl.maximum(x, 1e-6)"),
    **dict.fromkeys(
        ("div", "divs", "row_expand_div", "col_expand_div", "recip", "rem", "rems", "fmod", "fmods"), _DIVISOR
    ),
}
_POLE_REPAIRS: Final = {
    **dict.fromkeys(("log", "rsqrt"), "keep the operand above zero, as with pl.maximum(x, 1e-6)"),
    **dict.fromkeys(("divs", "recip", "row_expand_div", "col_expand_div"), _DIVISOR),
}


_UNPUBLISHED: Final = (
    "read what was published only: valid_shape=[count, ...] with the count that its sender tells (recv_counts of "
    "all_to_all_v), or write the rest first"
)


def _read_unwritten(watch: LaunchWatch, origin: Words, reached: str) -> Finding:
    """A tile was read from bytes of a tensor that nobody has written."""
    program, index, task, place = _site(watch, origin)
    memories = watch.memories[int(origin[w.OR_ALLOCATION])]
    of = memory_at(memories, int(origin[w.OR_LOW]))
    shift = first_byte(of, memories)
    noted = noted_runs(origin, watch.allocations[int(origin[w.OR_ALLOCATION])])
    runs = _still_unwritten(watch, origin, noted) - shift
    low, span = int(runs[0, 0]), (int(runs[0, 0]), int(runs[-1, 1]))
    ranges = index_ranges(of, runs)
    if of.direction == "window":
        message = (
            f"'{operation(program, index)}' in '{task}' reads {ranges_text(of, ranges)} of the window '{of.name}' that "
            f"no rank has written by then; they reach {reached}"
        )
        return Finding("unpublished", message, of.name, (task,), (place,), span, ranges, _UNPUBLISHED)
    message = (
        f"'{operation(program, index)}' in '{task}' reads bytes of '{of.name}' from {low} on that nobody has written "
        f"({ranges_text(of, ranges)}); they reach {reached}"
    )
    return Finding("uninit", message, of.name, (task,), (place,), span, ranges, _first_write(of))


def _still_unwritten(watch: LaunchWatch, origin: Words, runs: Words) -> Words:
    """The part of byte ``runs`` that nobody had written by the end of the launch; all when all were written since."""
    shadow = watch.shadows[int(origin[w.OR_ALLOCATION])]
    if shadow is None:
        return runs
    low, high = int(runs[0, 0]), int(runs[-1, 1])
    unwritten = shadow.read(low, high) == w.UNWRITTEN
    noted = np.zeros(high - low, bool)
    for start, end in runs.tolist():
        noted[start - low : end - low] = True
    left = byte_runs(noted & unwritten)
    return left + low if len(left) else runs


def _first_write(memory: Memory) -> str:
    """How a tensor comes to hold something before it is read."""
    if memory.direction:
        return f"declare '{memory.name}' as pl.InOut[...] to keep what the host gives, or write it before it is read"
    return f"write '{memory.name}' first, or create it with init_value=0.0"


_PARTLY_MADE: Final = {
    "tmrgsort": (
        "merge whole groups of four runs: columns beyond the last multiple of 4 * block_len are not written; two or "
        "three runs are merged with pl.mrgsort(one, other, tmp=...)"
    ),
    **dict.fromkeys(
        ("tmrgsort2", "tmrgsort3", "tmrgsort4"),
        "the merge ends with the first list that runs out (exhausted=True): use only what it writes by then, or leave "
        "exhausted out",
    ),
}
"""Instructions that leave a part of their result as it was, and how all of it is written."""


def _start_value(program: TileProgram, index: int, name: str) -> str:
    """How the tile ``name``, of which instruction ``index`` takes what was never written, comes to hold something."""
    made = [s for i, s in enumerate(program.statements[:index]) if result_register(program, i) == name]
    if made and isinstance(made[-1], Instruction) and made[-1].mnemonic in _PARTLY_MADE:
        return _PARTLY_MADE[made[-1].mnemonic]
    tile = program.symbols.get(name)
    if isinstance(tile, Tile) and tile.space == "acc":
        return (
            "make the first step a pl.matmul, which starts the accumulator, and accumulate with matmul_acc from then on"
        )
    return "give it a start value, as with pl.full([...], dtype=..., value=0.0): pl.create_tile only reserves memory"


def _dtype_of_result(program: TileProgram, index: int) -> DataType | None:
    """What an instruction writes: elements of a tile, or of a tensor, of which a view may have another name."""
    statement = program.statements[index]
    name = getattr(statement.operands[0], "name", "") if isinstance(statement, Instruction) else ""
    written = program.symbols.get(name) or program.symbols.get(root_names(program).get(name, name))
    return DataType.from_string(written.dtype) if isinstance(written, Tile | TensorParameter) else None


def _out_of_range(
    watch: LaunchWatch, origin: Words, memory: Memory, reached: str, span: tuple[int, int],
    ranges: tuple[tuple[int, int], ...],
) -> Finding:  # fmt: skip
    program, index, task, place = _site(watch, origin)
    name, dtype = operation(program, index), _dtype_of_result(program, index)
    element = f"[{int(origin[w.OR_ROW])}, {int(origin[w.OR_COL])}]"
    limit = _LARGEST.get(dtype, "?") if dtype is not None else "?"
    if int(origin[w.OR_KIND]) == w.OVERFLOWED:
        message = (
            f"'{name}' in '{task}' makes infinity at {element} from finite values: the largest {dtype} is {limit}; it "
            f"reaches {reached}"
        )
    else:
        source = "infinities" if int(origin[w.OR_OPERAND]) else "numbers"
        message = f"'{name}' in '{task}' makes NaN at {element} from {source}; it reaches {reached}"
    made_nan = int(origin[w.OR_KIND]) != w.OVERFLOWED
    repair = _NAN_REPAIRS.get(name, "") if made_nan else _POLE_REPAIRS.get(name, "")
    return Finding(
        "precision", message, memory.name, (task,), (place,), span, ranges, repair or _range_repair(name, dtype)
    )


def _overflows(watch: LaunchWatch) -> Iterator[Finding]:
    """Every operation that made infinity from finite values, whether or not it reached the host."""
    for origin in watch.origins[: int(watch.words[w.ORIGIN_COUNT])]:
        if int(origin[w.OR_KIND]) == w.OVERFLOWED:
            program, index, task, place = _site(watch, origin)
            name, dtype = operation(program, index), _dtype_of_result(program, index)
            row, col, register = int(origin[w.OR_ROW]), int(origin[w.OR_COL]), result_register(program, index)
            message = (
                f"'{name}' in '{task}' makes infinity at [{row}, {col}] from finite values: the largest "
                f"{dtype} is {_LARGEST.get(dtype, '?') if dtype is not None else '?'}"
            )
            yield Finding(
                "overflow", message, program.author(register), (task,), (place,), *cell(program, register, row, col),
                _range_repair(name, dtype),
            )  # fmt: skip


def _range_repair(name: str, dtype: DataType | None) -> str:
    if name in ("exp", "row_expand_expdif", "col_expand_expdif"):
        return "subtract the row maximum (pl.row_max, pl.row_expand_sub) before pl.exp"
    if dtype == FP16:
        return "scale the values into range first, or use BF16 or FP32"
    return "scale the values into the range of the dtype, or compute in a wider one"


def _event(watch: LaunchWatch, event: Words) -> Finding:
    kind = int(event[w.OR_KIND])
    if kind == w.INDEX_OUTSIDE:
        return _index_outside(watch, event)
    if kind == w.ADDED:
        return _added(watch, event)
    if kind == w.WRAPPED:
        return _wrapped(watch, event)
    if kind == w.USED_FREED:
        return used_after_free(watch, event)
    if kind == w.PADDING_COUNTS:
        return _padding_counts(watch, event)
    if kind == w.ADDRESSED:
        return _addressed(watch, event)
    return _branched(watch, event)


def _index_outside(watch: LaunchWatch, event: Words) -> Finding:
    program, index, task, _ = _site(watch, event)
    register = operand_at(program, index, int(event[w.OR_OPERAND]))
    outside = OutsideIndex(*(int(event[word]) for word in (w.OR_VALUE, w.OR_LIMIT, w.OR_ROW, w.OR_COL)))
    return outside_finding(program, index, task, register, outside)


def _wrapped(watch: LaunchWatch, event: Words) -> Finding:
    program, index, task, place = _site(watch, event)
    name, dtype = operation(program, index), _dtype_of_result(program, index)
    row, col, register = int(event[w.OR_ROW]), int(event[w.OR_COL]), result_register(program, index)
    message = (
        f"'{name}' in '{task}' wraps around at [{row}, {col}]: {int(event[w.OR_VALUE])} does not fit "
        f"{dtype} and becomes {int(event[w.OR_LIMIT])}"
    )
    repair = "compute in a wider integer or in FP32, or clamp the operands first"
    span, ranges = cell(program, register, row, col)
    return Finding("wrap", message, program.author(register), (task,), (place,), span, ranges, repair)


def _padding_counts(watch: LaunchWatch, event: Words) -> Finding:
    program, index, task, place = _site(watch, event)
    name, register = operation(program, index), operand_at(program, index, int(event[w.OR_OPERAND]))
    what = program.author(register)
    shape, at = tile_shape(program, register) or (0, 0), int(event[w.OR_ROW])
    data = f"{int(event[w.OR_ROWS])} x {int(event[w.OR_COLS])} of {shape[0]} x {shape[1]} elements are data"
    line, how = ("row" if name.startswith("row") else "column"), int(event[w.OR_VALUE])
    neutral = {w.PADDED_IN_MAXIMUM: "pl.PadValue.min", w.PADDED_IN_MINIMUM: "pl.PadValue.max", w.PADDED_IN_SUM: "0"}
    wanted = neutral.get(how, "1")
    fill = {"0": "pl.PadValue.zero"}.get(wanted, wanted)
    if how == w.PADDED_IN_SUM and made_by_exponential(program, index, register):
        wanted, fill = "0, as the exponential of pl.PadValue.min is", "pl.PadValue.min"
    message = (
        f"'{name}' in '{task}' counts the padding of {line} {at} of '{what}': {data}, and what fills up the rest "
        f"(fillpad) changes the result: it is not the neutral {wanted.replace('pl.', '')}"
    )
    repair = f"fill with the neutral value, pl.fillpad(..., pad_value={fill}), or reduce only what is valid"
    rows, cols = (at, at + 1), (int(event[w.OR_COLS]), shape[1])
    if line == "column":
        rows, cols = (int(event[w.OR_ROWS]), shape[0]), (at, at + 1)
    return Finding("out-of-valid", message, what, (task,), (place,), *cells(program, register, rows, cols), repair)


def _added(watch: LaunchWatch, event: Words) -> Finding:
    _, _, task, place = _site(watch, event)
    memories = watch.memories[int(event[w.OR_ALLOCATION])]
    memory = memory_at(memories, int(event[w.OR_LOW]))
    runs = noted_runs(event, watch.allocations[int(event[w.OR_ALLOCATION])]) - first_byte(memory, memories)
    span, ranges = (int(runs[0, 0]), int(runs[-1, 1])), index_ranges(memory, runs)
    message = (
        f"an atomic add in '{task}' meets {ranges_text(memory, ranges)} of '{memory.name}', which nobody has cleared"
    )
    if memory.direction:
        repair = (
            f"store zeros to '{memory.name}' before the first addition, or declare it pl.InOut to add to what it holds"
        )
    else:
        repair = f"create '{memory.name}' with init_value=0.0, or store zeros to it before the first addition"
    return Finding("uninit", message, memory.name, (task,), (place,), span, ranges, repair)


def _branched(watch: LaunchWatch, event: Words) -> Finding:
    program, index, task, place = _site(watch, event)
    allocation, (kind, why) = int(event[w.OR_ALLOCATION]), _why_undefined(watch, int(event[w.OR_VALUE]))
    if allocation >= 0:
        memory = memory_at(watch.memories[allocation], int(event[w.OR_LOW]))
        shift = first_byte(memory, watch.memories[allocation])
        span = int(event[w.OR_LOW]) - shift, int(event[w.OR_HIGH]) - shift
        ranges = index_ranges(memory, np.array([span], np.int64))
        element = ", ".join(str(at) for at, _ in ranges)
        message = f"'{task}' takes '{memory.name}'[{element}] (bytes {span[0]}..{span[1]}) as a scalar, {why}"
        repair = f"write '{memory.name}' before it is read as a scalar"
        return Finding(kind, message, memory.name, (task,), (place,), span, ranges, repair)
    register, row, col = element_register(program, index), int(event[w.OR_ROW]), int(event[w.OR_COL])
    what = program.author(register)
    if (origin := _origin(watch, event)) is not None:
        reached = f"[{row}, {col}] of '{what}', which '{task}' takes as a scalar"
        return _with_place(_undefined(watch, origin, reached), place)
    message = f"'{task}' takes [{row}, {col}] of '{what}' as a scalar, {why}"
    repair = f"write that element of '{what}' first"
    return Finding(kind, message, what, (task,), (place,), *cell(program, register, row, col), repair)


def _origin(watch: LaunchWatch, event: Words) -> Words | None:
    """Where the value that an event is about lost its meaning, when that was before."""
    code = int(event[w.OR_VALUE])
    return watch.origins[code - w.FIRST_ORIGIN] if code >= w.FIRST_ORIGIN else None


def _with_place(finding: Finding, place: Location) -> Finding:
    return replace(finding, locations=tuple(dict.fromkeys((*finding.locations, place))))


def _is_undefined(watch: LaunchWatch, code: int) -> bool:
    if code >= w.FIRST_ORIGIN:
        return int(watch.origins[code - w.FIRST_ORIGIN][w.OR_KIND]) <= w.FROM_PADDING
    return code in (w.UNWRITTEN, w.PADDING)


def _why_undefined(watch: LaunchWatch, code: int) -> tuple[str, str]:
    """(kind of the finding, words) for a code that says that a value means nothing."""
    padding = code == w.PADDING
    if code >= w.FIRST_ORIGIN:
        padding = int(watch.origins[code - w.FIRST_ORIGIN][w.OR_KIND]) == w.FROM_PADDING
    return ("out-of-valid", "outside its valid region") if padding else ("uninit", "which nobody has written")


def _addressed(watch: LaunchWatch, event: Words) -> Finding:
    program, index, task, place = _site(watch, event)
    register = operand_at(program, index, int(event[w.OR_OPERAND]))
    row, col = int(event[w.OR_ROW]), int(event[w.OR_COL])
    what, (kind, why) = program.author(register), _why_undefined(watch, int(event[w.OR_VALUE]))
    if (origin := _origin(watch, event)) is not None:
        reached = f"[{row}, {col}] of '{what}', which says where '{operation(program, index)}' in '{task}' stores"
        return _with_place(_undefined(watch, origin, reached), place)
    message = f"'{operation(program, index)}' in '{task}' stores where [{row}, {col}] of '{what}' says, {why}"
    return Finding(kind, message, what, (task,), (place,), *cell(program, register, row, col), _all_indices(what))


def _all_indices(what: str) -> str:
    return f"write all indices of '{what}' first, or narrow it to those that are written (valid_shape=[...])"
