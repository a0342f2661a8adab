"""Machine code of the orchestration instructions (docs/architecture.md 1.3): each hands control to the driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, get_args

from pypto.ir.dtype import DataType
from pypto.sim import opcodes as op
from pypto.sim.emitter import Emitter, float_word, round_literal, show
from pypto.sim.recording import EARLY_RESOLVE, SYNC_START
from pypto.sim.scalar_code import TENSORS, attribute_dtype, rank_of
from pypto.sim.syntax import Array, Instruction, KernelName, Operand, Register, TensorRegister
from pypto.sim.tile_program import Allocate, Dependency, Dummy, Predicate, Request, Scope, Submit

Operator = Literal["eq", "ne", "lt", "le", "gt", "ge"]
_SUBMIT_ATTRIBUTES: Final = ("blocks", "early", "sync_start", "pred_op", "pred_value", "dump")


def _request(emitter: Emitter, instruction: Instruction, request: Request) -> None:
    emitter.requests.append(request)
    emitter.emit(op.YIELD, len(emitter.requests) - 1)
    emitter.index_of(instruction)


def _check_attributes(emitter: Emitter, instruction: Instruction, known: tuple[str, ...]) -> None:
    for name in instruction.attributes:
        if name not in known:
            emitter.complain(
                f"'{instruction.mnemonic}' has no attribute '{name}'; known: {', '.join(known)}", instruction.position
            )


def _allocate(emitter: Emitter, instruction: Instruction) -> None:
    emitter.count(instruction, "alloc %v, [dims]", 2)
    _check_attributes(emitter, instruction, ("dtype", "init", "manual"))
    target = emitter.symbol(instruction, 0, TensorRegister, "a tensor register")
    extents = emitter.items(instruction, 1, "the extents")
    dtype = attribute_dtype(emitter, instruction)
    if dtype != DataType.from_string(target.dtype):
        emitter.complain(f"%{target.name} holds {target.dtype}, not {dtype}", instruction.position)
    if len(extents) != rank_of(target):
        emitter.complain(
            f"%{target.name} has rank {rank_of(target)}, found {len(extents)} extents", instruction.operand_position(1)
        )
    initial = instruction.attributes.get("init")
    if initial is not None and not isinstance(initial, (int, float)):
        emitter.complain(f"attribute 'init' is a number, found {initial}", instruction.position)
    word = None if initial is None else _initial_word(emitter, instruction, initial, dtype)
    manual = bool(instruction.attributes.get("manual", 0))
    request = Allocate(emitter.offsets[target.name], extents, dtype.code(), word, manual, len(emitter.statements))
    _request(emitter, instruction, request)


def _initial_word(emitter: Emitter, instruction: Instruction, value: float, dtype: DataType) -> int:
    if dtype.is_float():
        return float_word(round_literal(value, dtype))
    if int(value) != value:
        emitter.complain(f"init = {value} is no value of {dtype}", instruction.position)
    return int(value)


def _dependencies(emitter: Emitter, instruction: Instruction, index: int) -> tuple[Dependency, ...]:
    operand, position = instruction.operands[index], instruction.operand_position(index)
    if not isinstance(operand, tuple):
        emitter.complain(
            f"'{instruction.mnemonic}' needs the dependencies, a list of task ids or arrays, found '{show(operand)}'",
            position,
        )
    found = []
    for item in operand:
        array = emitter.symbols.get(item.name) if isinstance(item, Register) else None
        if isinstance(array, Array):
            found.append(Dependency(emitter.offsets[array.name], array.length))
        else:
            found.append(Dependency(emitter.integer(instruction, item, position), 1))
    return tuple(found)


def _arguments(emitter: Emitter, instruction: Instruction, items: tuple[Operand, ...]) -> tuple[tuple[bool, int], ...]:
    """(is tensor, offset) of every argument. A float literal is held as it is; its parameter's dtype is fp32 or
    wider than what the literal was rounded to by the compiler."""
    position = instruction.operand_position(2)
    found: list[tuple[bool, int]] = []
    for item in items:
        if isinstance(item, Register) and isinstance(emitter.symbols.get(item.name), TENSORS):
            found.append((True, emitter.offsets[item.name]))
        elif isinstance(item, Register):
            wants_float = emitter.is_float.get(item.name, False)
            found.append((False, emitter.scalar_register(instruction, item, position, wants_float=wants_float)))
        elif isinstance(item, (int, float)):
            found.append((False, emitter.constant(float_word(item) if isinstance(item, float) else item)))
        else:
            emitter.complain(f"'submit' takes tensors, scalars and numbers, found '{show(item)}'", position)
    return tuple(found)


def _submit(emitter: Emitter, instruction: Instruction) -> None:
    emitter.count(instruction, "submit %tid, @kernel, [arguments], [deps], [directions]", 5, 6)
    _check_attributes(emitter, instruction, _SUBMIT_ATTRIBUTES)
    kernel, arguments, directions = instruction.operands[1], instruction.operands[2], instruction.operands[4]
    if not isinstance(kernel, KernelName):
        emitter.complain(f"'submit' needs the kernel, '@name', found '{show(kernel)}'", instruction.operand_position(1))
    if not isinstance(arguments, tuple) or not isinstance(directions, tuple):
        emitter.complain("'submit' needs two lists, the arguments and their directions", instruction.position)
    if len(directions) != len(arguments) or not all(isinstance(d, int) and 0 <= d <= 5 for d in directions):
        emitter.complain(
            f"'submit' needs {len(arguments)} directions from 0 to 5, found {show(directions)}",
            instruction.operand_position(4),
        )
    flags = EARLY_RESOLVE * bool(instruction.attributes.get("early", 0))
    flags |= SYNC_START * bool(instruction.attributes.get("sync_start", 0))
    request = Submit(
        emitter.target(instruction),
        kernel.name,
        _arguments(emitter, instruction, arguments),
        _dependencies(emitter, instruction, 3),
        tuple(d for d in directions if isinstance(d, int)),
        _blocks(emitter, instruction),
        flags,
        _predicate(emitter, instruction),
        len(emitter.statements),
        frozenset(position for position, item in enumerate(arguments) if _is_float(emitter, item)),
        _dumped(emitter, instruction, len(arguments)),
    )
    _request(emitter, instruction, request)


def _is_float(emitter: Emitter, item: Operand) -> bool:
    return isinstance(item, float) or (isinstance(item, Register) and emitter.is_float.get(item.name, False))


def _dumped(emitter: Emitter, instruction: Instruction, arguments: int) -> frozenset[int]:
    positions = instruction.attributes.get("dump", ())
    if not isinstance(positions, tuple) or not all(0 <= position < arguments for position in positions):
        emitter.complain(
            f"attribute 'dump' is a list of argument positions from 0 to {arguments - 1}, found {positions}",
            instruction.position,
        )
    return frozenset(positions)


def _blocks(emitter: Emitter, instruction: Instruction) -> int:
    blocks = instruction.attributes.get("blocks", 1)
    if isinstance(blocks, int) and blocks < 1:
        emitter.complain(f"a task has at least one block, found blocks = {blocks}", instruction.position)
    if not isinstance(blocks, (int, Register)):
        emitter.complain(f"attribute 'blocks' is an integer or a register, found {blocks}", instruction.position)
    return emitter.integer(instruction, blocks, instruction.position)


def _predicate(emitter: Emitter, instruction: Instruction) -> Predicate | None:
    if len(instruction.operands) < 6:
        if "pred_op" in instruction.attributes:
            emitter.complain(
                "a predicate needs its element, the list [%x, i, j], after the directions", instruction.position
            )
        return None
    operand, position = instruction.operands[5], instruction.operand_position(5)
    operator, value = instruction.attributes.get("pred_op"), instruction.attributes.get("pred_value", 0)
    if operator not in get_args(Operator) or not isinstance(value, int):
        emitter.complain(
            f"a predicate needs pred_op ({', '.join(get_args(Operator))}) and an integer pred_value",
            instruction.position,
        )
    tensor = (
        emitter.symbols.get(operand[0].name)
        if isinstance(operand, tuple) and operand and isinstance(operand[0], Register)
        else None
    )
    if not isinstance(operand, tuple) or not isinstance(tensor, TENSORS):
        emitter.complain(f"a predicate names one tensor element, [%x, i, j], found '{show(operand)}'", position)
    indices = tuple(emitter.integer(instruction, item, position) for item in operand[1:])
    if len(indices) != rank_of(tensor):
        emitter.complain(f"%{tensor.name} has {rank_of(tensor)} axes, found {len(indices)} indices", position)
    return Predicate(emitter.offsets[tensor.name], indices, operator, value)  # type: ignore[arg-type]


def _dummy(emitter: Emitter, instruction: Instruction) -> None:
    emitter.count(instruction, "dummy %tid, [deps]", 2)
    _request(emitter, instruction, Dummy(emitter.target(instruction), _dependencies(emitter, instruction, 1)))


def _scope(emitter: Emitter, instruction: Instruction) -> None:
    _check_attributes(emitter, instruction, ("mode",))
    mode = instruction.attributes.get("mode", "auto")
    if mode not in ("auto", "manual"):
        emitter.complain(f"scope mode {mode}: legal modes are auto and manual", instruction.position)
    _request(emitter, instruction, Scope(True, mode == "manual", len(emitter.statements)))


def _end_scope(emitter: Emitter, instruction: Instruction) -> None:
    emitter.count(instruction, "endscope", 0)
    _request(emitter, instruction, Scope(False))


REQUEST_INSTRUCTIONS: Final[dict[str, Callable[[Emitter, Instruction], None]]] = {
    "alloc": _allocate,
    "submit": _submit,
    "dummy": _dummy,
    "scope": _scope,
    "endscope": _end_scope,
}
