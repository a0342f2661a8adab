"""Machine code of the tile instructions: operands checked against the instruction table, kernels by address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pypto.ir.dtype import DataType
from pypto.ir.instructions import INSTRUCTIONS
from pypto.ir.instructions.table import Attribute as AttributeRow
from pypto.ir.instructions.table import Instruction as Row
from pypto.ir.instructions.table import Operand as OperandRow
from pypto.sim import crosscore, opcodes, tile_queues
from pypto.sim.distributed_code import SIGNALS, emit_signal
from pypto.sim.emitter import Emitter, float_word, show, tile_bytes
from pypto.sim.scalar_code import TENSORS
from pypto.sim.syntax import Instruction, Register, TensorParameter, Tile, walk
from pypto.sim.tile_program import Call, Transfer

_QUEUES: Final = {
    # mnemonic: operation, direction of the queue
    "tpush_to_aiv": (opcodes.PUSH, tile_queues.CUBE_TO_VECTOR),
    "tpop_from_aic": (opcodes.POP, tile_queues.CUBE_TO_VECTOR),
    "tfree_to_aic": (opcodes.FREE, tile_queues.CUBE_TO_VECTOR),
    "tpush_to_aic": (opcodes.PUSH, tile_queues.VECTOR_TO_CUBE),
    "tpop_from_aiv": (opcodes.POP, tile_queues.VECTOR_TO_CUBE),
    "tfree_to_aiv": (opcodes.FREE, tile_queues.VECTOR_TO_CUBE),
}
_SENDER: Final = {
    "tpush_to_aiv": "aic",
    "tpop_from_aiv": "aic",
    "tfree_to_aiv": "aic",
    "tpush_to_aic": "aiv",
    "tpop_from_aic": "aiv",
    "tfree_to_aic": "aiv",
}


def emit_tile_instruction(emitter: Emitter, instruction: Instruction, row: Row) -> None:
    """Code of one tile instruction."""
    _check_count(emitter, instruction, row)
    attributes = attribute_words(emitter, instruction, row)
    _rotate_slots(emitter, instruction, row)
    if row.kernel:
        _emit_call(emitter, instruction, row, attributes)
    else:
        _emit_machine_instruction(emitter, instruction, row, attributes)


def _check_count(emitter: Emitter, instruction: Instruction, row: Row) -> None:
    form = f"{row.mnemonic} " + ", ".join(f"[{o.name}]" if o.kind == "list" else o.name for o in row.operands)
    emitter.count(instruction, form.strip(), len(row.operands))


def attribute_words(emitter: Emitter, instruction: Instruction, row: Row) -> dict[str, int]:
    """The attribute words of the instruction, in the order of its row."""
    known = {attribute.name: attribute for attribute in row.attributes}
    for name in instruction.attributes:
        if name not in known:
            legal = f"; known: {', '.join(known)}" if known else "; it has none"
            emitter.complain(f"'{row.mnemonic}' has no attribute '{name}'{legal}", instruction.position)
    return {name: _attribute_word(emitter, instruction, attribute) for name, attribute in known.items()}


def _attribute_word(emitter: Emitter, instruction: Instruction, attribute: AttributeRow) -> int:
    if attribute.name not in instruction.attributes:
        if attribute.default is None:
            emitter.complain(f"'{instruction.mnemonic}' needs the attribute '{attribute.name}'", instruction.position)
        return attribute.default
    value, encoding = instruction.attributes[attribute.name], attribute.encoding
    if isinstance(encoding, Mapping):
        if isinstance(value, str) and value in encoding:
            return encoding[value]
        if isinstance(value, int) and value in encoding.values():
            return value
        legal = ", ".join(encoding)
        emitter.complain(f"attribute '{attribute.name}' = {value}; legal: {legal}", instruction.position)
    if encoding == "dtype" and isinstance(value, str):
        return _dtype_code(emitter, instruction, value)
    if isinstance(value, int) and encoding in ("int", "float"):
        return value if encoding == "int" else float_word(float(value))
    if not (encoding == "float" and isinstance(value, float)):
        wanted = {"int": "an integer", "float": "a number", "dtype": "a dtype"}[encoding]
        emitter.complain(f"attribute '{attribute.name}' is {wanted}, found {value}", instruction.position)
    return float_word(value)


def _dtype_code(emitter: Emitter, instruction: Instruction, name: str) -> int:
    try:
        return DataType.from_string(name).code()
    except ValueError as error:
        emitter.complain(str(error), instruction.position)


def _rotate_slots(emitter: Emitter, instruction: Instruction, row: Row) -> None:
    """Move every destination with slots, and the views into it, to the slot its register names now."""
    for position in row.destinations():
        operand = instruction.operands[position]
        tile = emitter.symbols.get(operand.name) if isinstance(operand, Register) else None
        if isinstance(tile, Tile) and tile.slots is not None and row.operands[position].access == "out":
            register = emitter.scalar_register(instruction, tile.slots.by, tile.position, wants_float=False)
            for moved in _in_slot_of(tile, emitter):
                emitter.emit(
                    opcodes.SLOT,
                    emitter.offsets[moved.name],
                    emitter.slot_base(moved),
                    tile.slots.pitch,
                    tile.slots.count,
                    register,
                )


def _in_slot_of(tile: Tile, emitter: Emitter) -> Iterator[Tile]:
    """``tile`` and the tiles that lie in its slot and go by the same register."""
    assert tile.slots is not None
    end = tile.offset + tile.slots.pitch
    tiles = (symbol for symbol in emitter.symbols.values() if isinstance(symbol, Tile))
    for other in tiles:
        if other.space == tile.space and other.slots == tile.slots and tile.offset <= other.offset < end:
            yield other


def operand_dtypes(emitter: Emitter, instruction: Instruction, row: Row) -> tuple[DataType | None, ...]:
    """Dtypes of the tile and tensor operands; ``None`` for scalars and lists."""
    dtypes: list[DataType | None] = []
    for index, operand in enumerate(row.operands):
        if operand.kind == "tile":
            dtypes.append(DataType.from_string(emitter.symbol(instruction, index, Tile, "a tile").dtype))
        elif operand.kind == "tensor":
            dtypes.append(DataType.from_string(emitter.symbol(instruction, index, TENSORS, "a tensor").dtype))
        else:
            dtypes.append(None)
    return tuple(dtypes)


def _emit_call(emitter: Emitter, instruction: Instruction, row: Row, attributes: dict[str, int]) -> None:
    dtypes = operand_dtypes(emitter, instruction, row)
    words: list[int] = []
    for index, operand in enumerate(row.operands):
        words.extend(_operand_words(emitter, instruction, row, index, operand, dtypes))
    words.extend(emitter.constant(word) for word in attributes.values())
    if len(words) > opcodes.ARGUMENT_WORDS - 4:
        emitter.complain(
            f"'{row.mnemonic}' has {len(words)} argument words; the machine takes {opcodes.ARGUMENT_WORDS - 4}",
            instruction.position,
        )
    _check_kernel(emitter, instruction, row, dtypes)
    if attributes.get("atomic"):
        emitter.facts.add("atomic")
    tensor = _gm_tensor(emitter, instruction, row)
    window = _window(row, instruction) if tensor else []
    start = emitter.emit(
        opcodes.CALL,
        7 + len(words) + len(window),
        emitter.index_of(instruction),
        0,
        _work_tile(emitter, instruction, row),
        tensor,
        len(words),
        *words,
        *window,
    )
    if window and window[0] < 0:
        emitter.facts.add("unlisted")
    emitter.calls.append(Call(row, dtypes, start + 3))


def _check_kernel(emitter: Emitter, instruction: Instruction, row: Row, dtypes: tuple[DataType | None, ...]) -> None:
    """Complain now, with the line at hand, when there is no kernel for these dtypes."""
    from pypto.sim.kernels.catalogue import kernel

    try:
        kernel(row, dtypes)
    except (KeyError, TypeError, ValueError) as error:
        emitter.complain(str(error.args[0]) if error.args else str(error), instruction.position)


def _operand_words(
    emitter: Emitter,
    instruction: Instruction,
    row: Row,
    index: int,
    operand: OperandRow,
    dtypes: tuple[DataType | None, ...],
) -> list[int]:
    """Argument words: frame offsets, negated for the address of a descriptor."""
    position = instruction.operand_position(index)
    if operand.kind in ("tile", "tensor"):
        symbol = emitter.symbol(instruction, index, Tile if operand.kind == "tile" else TENSORS, f"a {operand.kind}")
        if operand.access != "in" and isinstance(symbol, TensorParameter) and symbol.direction == "in":
            emitter.facts.add(f"writes input {symbol.name}")
        return [-emitter.offsets[symbol.name]]
    if operand.kind == "list":
        items = emitter.items(instruction, index, f"'{operand.name}'")
        return [emitter.constant(len(items)), *items]
    return [_scalar_word(emitter, instruction, row, index, operand, dtypes, position)]


def _scalar_word(
    emitter: Emitter,
    instruction: Instruction,
    row: Row,
    index: int,
    operand: OperandRow,
    dtypes: tuple[DataType | None, ...],
    position: object,
) -> int:
    value, place = instruction.operands[index], instruction.operand_position(index)
    if isinstance(value, tuple):
        emitter.complain(f"'{row.mnemonic}' needs a scalar '{operand.name}' here, found '{show(value)}'", place)
    if operand.like == "int":
        return emitter.integer(instruction, value, place)
    if operand.like == "float":
        return emitter.real(instruction, value, place, DataType.from_string("fp32"))
    dtype = dtypes[row.index[operand.like]]
    assert dtype is not None
    return emitter.number(instruction, value, place, dtype)


def _window(row: Row, instruction: Instruction) -> list[int]:
    """Where the argument block holds the window of GM that a kernel touches; see ``opcodes.CALL``."""
    if "offsets" not in row.index or "valid" not in row.index:
        return [-1, 0, 0, 0]
    starts, at = [], 0
    for index, operand in enumerate(row.operands):
        starts.append(at)
        value = instruction.operands[index]
        at += 1 + len(value) if operand.kind == "list" and isinstance(value, tuple) else 1
    offsets, extents = row.index["offsets"], row.index["valid"]
    axes = instruction.operands[offsets]
    writes = any(operand.kind == "tensor" and operand.access != "in" for operand in row.operands)
    return [len(axes) if isinstance(axes, tuple) else -1, starts[offsets] + 1, starts[extents] + 1, int(writes)]


def _work_tile(emitter: Emitter, instruction: Instruction, row: Row) -> int:
    if row.work < 0 or row.operands[row.work].kind != "tile":
        return 0
    return emitter.offsets[emitter.symbol(instruction, row.work, Tile, "a tile").name]


def _gm_tensor(emitter: Emitter, instruction: Instruction, row: Row) -> int:
    """Descriptor of the tensor whose address the report names: the one written, else the one read."""
    tensors = [index for index, operand in enumerate(row.operands) if operand.kind == "tensor"]
    if not tensors:
        return 0
    chosen = next((i for i in tensors if row.operands[i].access != "in"), tensors[0])
    return emitter.offsets[emitter.symbol(instruction, chosen, TENSORS, "a tensor").name]


def _emit_machine_instruction(emitter: Emitter, instruction: Instruction, row: Row, attributes: dict[str, int]) -> None:
    """Transfers, events and barriers, which the machine executes itself (crosscore.py)."""
    name = row.mnemonic
    if name in _QUEUES:
        _emit_queue(emitter, instruction, row, attributes)
        return
    if name.startswith("ring_"):
        emitter.index_of(instruction)
        return
    if name in SIGNALS:
        emit_signal(emitter, instruction, attributes)
        return
    head = (0, emitter.index_of(instruction), 0)
    if name == "sync_set" or name == "sync_wait":
        event = emitter.integer(instruction, instruction.operands[0], instruction.operand_position(0))
        operands = [event, attributes["ffts_mode"]] if name == "sync_set" else [event]
        if attributes.get("ffts_mode") == 0:
            emitter.facts.add("spans_blocks")
        _emit_sized(emitter, opcodes.SIGNAL if name == "sync_set" else opcodes.WAIT, head, operands)
        emitter.facts.add("waits")
    elif name == "syncall_soft":
        _emit_soft_barrier(emitter, instruction, head, attributes["core_type"])
    elif name == "syncall":
        _emit_sized(emitter, opcodes.BARRIER, head, [attributes["core_type"]])
        emitter.facts.update(("waits", "spans_blocks"))
    else:
        _emit_sized(emitter, opcodes.NOTE, head, [_gm_tensor(emitter, instruction, row)])


def _emit_soft_barrier(emitter: Emitter, instruction: Instruction, head: tuple[int, int, int], kind: int) -> None:
    tensor = emitter.symbol(instruction, 0, TENSORS, "a tensor")
    used = emitter.integer(instruction, instruction.operands[1], instruction.operand_position(1))
    operands = [crosscore.SOFT + kind, emitter.offsets[tensor.name], used]
    _emit_sized(emitter, opcodes.BARRIER, head, operands)
    emitter.facts.update(("waits", "spans_blocks"))


def _emit_sized(emitter: Emitter, operation: int, head: tuple[int, int, int], operands: list[int]) -> None:
    emitter.emit(operation, 4 + len(operands), head[1], head[2], *operands)


def _emit_queue(emitter: Emitter, instruction: Instruction, row: Row, attributes: dict[str, int]) -> None:
    name = row.mnemonic
    if emitter.unit.core != _SENDER[name]:
        emitter.complain(
            f"'{name}' runs on the {_SENDER[name].upper()} side of a cluster; this is "
            f"{'an orchestration' if emitter.unit.core is None else f'an {emitter.unit.core.upper()} kernel'}",
            instruction.position,
        )
    operation, direction = _QUEUES[name]
    tile = emitter.symbol(instruction, 0, Tile, "a tile")
    assert isinstance(tile, Tile)
    channel, split = attributes["id"], attributes["split"]
    if not 0 <= channel < tile_queues.CHANNELS:
        emitter.complain(f"queue id {channel}: legal ids are 0 to {tile_queues.CHANNELS - 1}", instruction.position)
    frees = operation == opcodes.FREE
    if not (-1 if frees else 0) <= split <= 4:
        emitter.complain(f"split {split}: legal codes are 0 to 4", instruction.position)
    index = emitter.index_of(instruction)
    if frees:
        how = opcodes.FREES_BY_NAME if _only_popped(emitter, tile.name) else 0
        how |= opcodes.FREES_A_COPY if attributes["copied"] else 0
        operands = [direction, channel, split, how, emitter.offsets[tile.name]]
    else:
        operands = [direction, channel, split, attributes.get("lane_stride", 0)]
    _emit_sized(emitter, operation, (0, index, 0 if frees else emitter.offsets[tile.name]), operands)
    if not frees:
        slots = attributes.get("slots", 0)
        if slots < 0:
            emitter.complain(f"slots {slots}: a queue holds at least one tile", instruction.position)
        pushes = operation == opcodes.PUSH
        emitter.transfers.append(Transfer(pushes, direction, channel, split, tile_bytes(tile), slots))
    emitter.facts.add("waits")


def _only_popped(emitter: Emitter, name: str) -> bool:
    """Whether pops are all that writes a tile."""
    for statement in walk(emitter.unit.body):
        if isinstance(statement, Instruction) and not statement.mnemonic.startswith("tpop"):
            row = INSTRUCTIONS.get(statement.mnemonic)
            written = row.destinations() if row is not None else ()
            if any(getattr(statement.operands[at], "name", "") == name for at in written):
                return False
    return True
