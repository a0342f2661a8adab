"""The cost table of a program on a chip: one row of figures per instruction, for ``cycles.py`` and the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pypto.ir.dtype import INDEX, DataType
from pypto.ir.instructions import INSTRUCTIONS
from pypto.sim.chips import Chip
from pypto.sim.chips.description import Constant, Path, RepeatVector
from pypto.sim.layout import SPACES
from pypto.sim.recording import AIC, ProgramRecord

from . import codes as c
from .banks import sources_clash, write_clashes
from .recipes import RECIPES, Recipe, conversion
from .registers import register_costs

CostTable = NDArray[np.float64]
Row = NDArray[np.float64]

_VEC, _MAT, _ACC = SPACES["vec"], SPACES["mat"], SPACES["acc"]
_BIAS = SPACES["bias"]
_SCALES = (SPACES["leftscale"], SPACES["rightscale"])
# columns of ProgramRecord.tiles
_SPACE, _OFFSET, _STRIDE, _DTYPE = 0, 1, 5, 6


def _dtype(code: int) -> DataType:
    """The dtype with descriptor code ``code``; instructions without a tile have none and work on scalar words."""
    return DataType.from_code(code) if code >= 0 else INDEX


class _Instruction:
    """What a rule wants to know about one instruction of a program."""

    def __init__(self, program: ProgramRecord, pc: int) -> None:
        self.mnemonic = program.mnemonics[program.mnemonic[pc]]
        self.core = program.core
        self.pipe = int(program.pipe[pc])
        self.attributes = program.attributes[pc] if pc < len(program.attributes) else {}
        self.dtype = _dtype(int(program.dtype[pc]))
        self.dtype_out = _dtype(int(program.dtype_out[pc]))
        tiles = program.tiles
        self.reads = [tiles[t] for t in program.reads[program.reads_start[pc] : program.reads_start[pc + 1]]]
        self.writes = [tiles[t] for t in program.writes[program.writes_start[pc] : program.writes_start[pc + 1]]]
        self.row = INSTRUCTIONS.get(self.mnemonic)

    @property
    def cost(self) -> str:
        return self.row.cost if self.row else "none"

    def bits(self) -> int:
        """Width of the widest element that goes through the unit; 4-bit values take a byte on chip."""
        return max(self.dtype.get_bit(), self.dtype_out.get_bit(), 8)

    def source_dtype(self) -> DataType:
        """What a conversion reads; its own dtype is that of the result."""
        return DataType.from_code(int(self.reads[0][_DTYPE])) if self.reads else self.dtype

    def work_stride(self) -> int:
        """Elements between rows of the tile whose extents measure the work; 0 when there is none."""
        tile = self._work_tile()
        return 0 if tile is None else int(tile[_STRIDE])

    def _work_tile(self) -> Row | None:
        if self.row is None or self.row.work < 0:
            return None
        operands = self.row.operands
        reading = operands[self.row.work].access != "out"
        same = [o for o in operands[: self.row.work] if o.kind == "tile" and (o.access != "out") == reading]
        tiles = self.reads if reading else self.writes
        return tiles[len(same)] if len(same) < len(tiles) else None

    def source_space(self) -> int:
        return int(self.reads[-1][_SPACE]) if self.reads else 0

    def result_space(self) -> int:
        return int(self.writes[0][_SPACE]) if self.writes else 0


def program_costs(program: ProgramRecord, chip: Chip, known: dict[_Signature, Row] | None = None) -> CostTable:
    """The figures of every instruction of ``program`` on ``chip``: float64[instructions, codes.COST_COLUMNS].

    Equal instructions have equal figures; ``known`` holds those of other programs for the same chip, and takes these.
    """
    table = np.zeros((len(program.mnemonic), c.COST_COLUMNS))
    table[:, c.ELEMENTS_PER_REPEAT] = 1
    table[:, c.RATE] = 1
    known = {} if known is None else known
    for pc, signature in enumerate(_signatures(program)):
        row = known.get(signature)
        if row is None:
            _fill(table[pc], _Instruction(program, pc), chip)
            known[signature] = table[pc]
        else:
            table[pc] = row
    return table


# core, mnemonic, pipe, dtypes, attributes, tiles that are read, tiles that are written
_Signature = tuple[object, ...]


def _signatures(program: ProgramRecord) -> Iterator[_Signature]:
    """What the figures of an instruction follow from, in order of ``pc``."""
    tiles = [tile.tobytes() for tile in program.tiles]
    reads, reads_start = program.reads.tolist(), program.reads_start.tolist()
    writes, writes_start = program.writes.tolist(), program.writes_start.tolist()
    words = zip(program.mnemonic.tolist(), program.pipe.tolist(), program.dtype.tolist(), program.dtype_out.tolist())
    for pc, (mnemonic, *rest) in enumerate(words):
        yield (
            program.core,
            program.mnemonics[mnemonic],
            *rest,
            tuple(program.attributes[pc].items()) if pc < len(program.attributes) else (),
            tuple(tiles[t] for t in reads[reads_start[pc] : reads_start[pc + 1]]),
            tuple(tiles[t] for t in writes[writes_start[pc] : writes_start[pc + 1]]),
        )


def _fill(p: Row, instruction: _Instruction, chip: Chip) -> None:
    p[c.ELEMENT_BITS] = instruction.dtype.get_bit()
    if instruction.mnemonic in ("sload", "sstore"):
        _scalar_access(p, instruction, chip)
    elif instruction.cost in _RULES:
        _RULES[instruction.cost](p, instruction, chip)
    elif instruction.row is not None:
        _vector(p, instruction, chip)
    if instruction.pipe == c.FIX and instruction.source_space() == _ACC and _by_unit_flags(instruction, chip):
        p[c.UNIT_FLAG] = chip.fixpipe.unit_flag_bytes.value


def _by_unit_flags(instruction: _Instruction, chip: Chip) -> bool:
    """The attribute ``unit_flag`` of an instruction says it; without one the chip does."""
    return bool(instruction.attributes.get("unit_flag", chip.fixpipe.unit_flag.value))


def _vector(p: Row, instruction: _Instruction, chip: Chip) -> None:
    recipe = _recipe(instruction)
    if recipe.shape == "nothing":
        return
    p[c.KIND] = c.COMPUTE
    p[c.STRIDE] = instruction.work_stride()
    scalar_code = recipe.shape == "elements" or (recipe.divides and instruction.dtype.is_int())
    if scalar_code and chip.generation == "a2a3":
        # before and after, a flag is set and awaited between the two units
        p[c.KIND], p[c.OVERHEAD] = c.SCALAR_CODE, 4 * chip.sync.flag.value
        p[c.RULE], p[c.SLOPE] = c.SCALAR_ELEMENTS, chip.scalar.element.value
    elif isinstance(chip.vector, RepeatVector):
        _repeat(p, instruction, recipe, chip.vector)
    else:
        bits, sorted_words = instruction.bits(), _sorted_per_repeat(instruction)
        register_costs(p, recipe, bits, chip.vector, sorted_words)


def _recipe(instruction: _Instruction) -> Recipe:
    if instruction.mnemonic == "tcvt":
        source, result = instruction.source_dtype(), instruction.dtype_out
        return conversion(source.get_bit(), result.get_bit(), source.is_float(), result.is_float())
    if instruction.mnemonic == "trecip" and instruction.attributes.get("high_precision"):
        return Recipe("elementwise", ("copy", "div"), ("precise_div",))
    return RECIPES.get(instruction.mnemonic, RECIPES["tmov"])


# a2a3


def _repeat(p: Row, instruction: _Instruction, recipe: Recipe, unit: RepeatVector) -> None:
    bits = instruction.bits()
    if instruction.mnemonic == "tcvt":  # a repeat takes 256 bytes of the wider side
        bits = max(bits, instruction.source_dtype().get_bit())
    variant = "_int" if instruction.dtype.is_int() else ("_half" if bits == 16 else "")
    ops = [unit.ops[f"{op}{variant}" if f"{op}{variant}" in unit.ops else op] for op in recipe.repeat]
    p[c.ELEMENTS_PER_REPEAT] = unit.repeat_bytes.value * 8 // bits
    p[c.MAX_REPEATS] = unit.max_repeats.value
    _REPEAT_SHAPES[recipe.shape](p, instruction, recipe, ops, unit)


def _chain_overhead(ops: list, unit: RepeatVector) -> float:
    """Cycles of a chain of instructions over the same tile beyond their repeats."""
    return ops[0].head.value + sum(op.tail.value for op in ops) + unit.chained.value * (len(ops) - 1)


def _slopes(ops: list, instruction: _Instruction, recipe: Recipe, unit: RepeatVector) -> float:
    """Cycles per repeat. The operands of a repeat take a cycle, and more where they clash in a bank (6.2); an
    instruction that computes for longer than that does not notice."""
    first, *others = [op.slope.value for op in ops]
    clash = _clash(instruction, recipe, unit)
    return (max(first, 1 + clash) if clash else first) + sum(others)


def _clash(instruction: _Instruction, recipe: Recipe, unit: RepeatVector) -> float:
    sources = [int(tile[_OFFSET]) for tile in instruction.reads if tile[_SPACE] == _VEC]
    if recipe.sources < 2 or len(sources) < 2:
        return 0.0
    groups = int(unit.bank_groups.value)
    clash = unit.clash.value if sources_clash(sources[0], sources[1], groups) else 0.0
    if instruction.writes and write_clashes(int(instruction.writes[0][_OFFSET]), sources[:2], groups):
        clash += unit.write_clash.value
    return clash


def _repeat_elementwise(p, instruction, recipe, ops, unit) -> None:
    p[c.RULE] = c.REPEAT_ELEMENTWISE
    p[c.OVERHEAD] = _chain_overhead(ops, unit)
    p[c.SLOPE] = _slopes(ops, instruction, recipe, unit)
    p[c.EXTRA] = unit.ragged.value
    p[c.WHOLE_ROWS] = 1 if recipe.sources >= 2 else 0


def _repeat_row_reduce(p, instruction, recipe, ops, unit) -> None:
    p[c.RULE] = c.REPEAT_ROW_REDUCE
    p[c.OVERHEAD] = ops[0].head.value + ops[0].tail.value + sum(op.tail.value for op in ops[2:])
    p[c.SLOPE] = ops[0].slope.value + sum(op.slope.value for op in ops[2:])
    p[c.ROW] = unit.fold.value
    p[c.EXTRA] = unit.masked.value


def _repeat_col_reduce(p, instruction, recipe, ops, unit) -> None:
    p[c.RULE] = c.REPEAT_COL_REDUCE
    p[c.OVERHEAD] = sum(_step_overhead(op, unit) for op in ops)
    p[c.SLOPE] = unit.fold_slope.value * len(ops)
    # a maximum takes the masked tail of a row in an instruction of its own, a sum does not (6.4: 35 against 21 cycles)
    p[c.ISSUE] = p[c.OVERHEAD] if recipe.repeat == ("max",) else 0
    p[c.EXTRA] = ops[0].tail.value
    p[c.ROW], p[c.LONE] = unit.lone_row.value, unit.lone_head.value


def _step_overhead(op: Any, unit: RepeatVector) -> float:
    """Cycles from one instruction of a dependent chain to the next, beyond the repeats (6.4)."""
    return float(max(op.head.value + op.tail.value - unit.fold_hidden.value, unit.fold_least.value))


def _repeat_row_expand(p, instruction, recipe, ops, unit) -> None:
    p[c.RULE] = c.REPEAT_ROW_EXPAND
    p[c.OVERHEAD] = ops[0].head.value + ops[0].tail.value
    p[c.SLOPE] = ops[0].slope.value
    p[c.EXTRA] = unit.row_issue.value


def _repeat_row_expand_op(p, instruction, recipe, ops, unit) -> None:
    broadcast = unit.ops["brcb"]
    p[c.RULE] = c.REPEAT_ROW_EXPAND_OP
    p[c.OVERHEAD] = _chain_overhead(ops, unit)
    p[c.SLOPE] = _slopes(ops, instruction, recipe, unit)
    p[c.EXTRA], p[c.ISSUE] = broadcast.head.value + broadcast.tail.value, broadcast.slope.value


def _repeat_gather(p, instruction, recipe, ops, unit) -> None:
    p[c.RULE] = c.REPEAT_GATHER
    p[c.OVERHEAD], p[c.SLOPE], p[c.EXTRA] = ops[0].head.value, ops[0].slope.value, unit.row_loop.value


def _repeat_blocks(p, instruction, recipe, ops, unit) -> None:
    p[c.RULE] = c.REPEAT_BLOCKS
    p[c.OVERHEAD], p[c.SLOPE] = ops[0].head.value + ops[0].tail.value, ops[0].slope.value


def _repeat_sort(p, instruction, recipe, ops, unit) -> None:
    _repeat_blocks(p, instruction, recipe, ops, unit)
    p[c.ELEMENTS_PER_REPEAT] = _sorted_per_repeat(instruction)


def _sorted_per_repeat(instruction: _Instruction) -> int:
    """Words of the work tile per repeat: 32 values, or 64 pairs of value and index (6.1)."""
    pair_words = 64 // max(instruction.dtype.get_bit(), 16)
    return 32 if instruction.mnemonic == "tsort32" else 64 * pair_words


_REPEAT_SHAPES: Final = {
    "elementwise": _repeat_elementwise,
    "row_reduce": _repeat_row_reduce,
    "col_reduce": _repeat_col_reduce,
    "row_expand": _repeat_row_expand,
    "row_expand_op": _repeat_row_expand_op,
    "gather": _repeat_gather,
    "transpose": _repeat_blocks,
    "sort": _repeat_sort,
}


# movement, cube, cross-core


def _scalar_access(p: Row, instruction: _Instruction, chip: Chip) -> None:
    tile = instruction.reads or instruction.writes
    p[c.KIND], p[c.RULE] = c.STALL, c.FIXED
    # the published loop reads two elements and writes one
    p[c.OVERHEAD] = chip.scalar.element.value / 3 if tile else chip.scalar.gm_access.value


def _path(p: Row, path: Path, code: int, line: Constant | None = None) -> None:
    """``line``: lines whose cost neighbouring rows share; without it every row has a cost of its own."""
    p[c.KIND], p[c.RULE], p[c.PATH] = c.TRANSFER, c.DMA, code
    p[c.RATE] = 0 if line is None else line.value
    p[c.ISSUE], p[c.ROW], p[c.OVERHEAD] = path.issue.value, path.row.value, path.fixed.value
    p[c.TAIL], p[c.EXTRA], p[c.ODD_ROW] = path.latency.value, path.split_lines.value, path.odd_row.value


def _copy_gm(p: Row, instruction: _Instruction, chip: Chip) -> None:
    if instruction.pipe == c.FIX:
        _drain(p, instruction, chip)
    elif instruction.pipe == c.MTE3:
        _path(p, chip.ub_gm, c.PATH_UB_GM, chip.memory.l2_line_bytes)
    elif instruction.result_space() == _MAT or instruction.core == AIC:
        _path(p, chip.gm_l1_nd2nz, c.PATH_GM_L1)
    else:
        _path(p, chip.gm_ub, c.PATH_GM_UB, chip.memory.l2_line_bytes)


def _drain(p: Row, instruction: _Instruction, chip: Chip) -> None:
    fixpipe = chip.fixpipe
    p[c.KIND], p[c.RULE], p[c.PATH] = c.TRANSFER, c.DRAIN, c.PATH_L0C_GM
    p[c.OVERHEAD], p[c.ROW], p[c.RATE] = fixpipe.gm_base.value, fixpipe.gm_row.value, fixpipe.gm_rate.value
    p[c.EXTRA], p[c.TAIL] = fixpipe.gm_odd.value, chip.l0c_gm.latency.value
    p[c.ELEMENT_BITS] = instruction.dtype_out.get_bit()


def _gather_gm(p: Row, instruction: _Instruction, chip: Chip) -> None:
    """Rows fetched one by one: the scalar unit reads an index, computes an address and issues a copy (3.2)."""
    _copy_gm(p, instruction, chip)
    p[c.ROW], p[c.RATE] = chip.scalar.gather_row.value, 0


def _move(p: Row, instruction: _Instruction, chip: Chip) -> None:
    if instruction.pipe == c.MTE1:
        _load_operand(p, instruction, chip)
    elif instruction.pipe == c.FIX:
        _fixpipe_on_chip(p, chip, 0)
    elif instruction.pipe == c.MTE3:
        p[c.KIND], p[c.RULE], p[c.RATE] = c.COMPUTE, c.BYTES, chip.ub_gm.hit_rate.value
        p[c.OVERHEAD] = chip.ub_gm.issue.value
    else:
        _vector(p, instruction, chip)


def _load_operand(p: Row, instruction: _Instruction, chip: Chip) -> None:
    mte1, space = chip.mte1, instruction.result_space()
    p[c.KIND], p[c.RULE] = c.COMPUTE, c.BYTES
    if space == _BIAS:
        p[c.OVERHEAD], p[c.RATE] = mte1.table_latency.value, mte1.table_rate.value
        return
    p[c.OVERHEAD], p[c.TAIL] = mte1.latency.value - mte1.hidden.value, mte1.hidden.value
    if space in _SCALES:
        p[c.RATE] = mte1.scale_rate.value
    else:
        p[c.RATE] = (mte1.left_rate if space == SPACES["left"] else mte1.right_rate).value


def _fixpipe_on_chip(p: Row, chip: Chip, split: int) -> None:
    p[c.KIND], p[c.RULE], p[c.OVERHEAD] = c.COMPUTE, c.ELEMENTS, chip.fixpipe.latency.value
    p[c.RATE] = (chip.fixpipe.split_elements if split else chip.fixpipe.on_chip_elements).value


def _mmad(p: Row, instruction: _Instruction, chip: Chip) -> None:
    operand = instruction.dtype
    for tile in instruction.reads:
        if tile[_SPACE] == SPACES["left"]:
            operand = DataType.from_code(int(tile[_DTYPE]))
    rate = _mac_rate(operand, chip)
    depth = 256 // max(operand.get_bit(), 4)
    p[c.KIND], p[c.RULE] = c.MMAD, c.CUBE
    p[c.ELEMENTS_PER_REPEAT], p[c.SLOPE] = depth, 256 * depth / rate
    p[c.TAIL] = chip.cube.drain.value


def _mac_rate(operand: DataType, chip: Chip) -> float:
    cube, bits = chip.cube, operand.get_bit()
    if bits >= 32:
        return cube.fp32_macs.value
    if bits == 16:
        return cube.fp16_macs.value
    if bits == 8:
        return (cube.fp8_macs if operand.is_float() else cube.int8_macs).value
    return (cube.fp4_macs if operand.is_float() else cube.int4_macs).value


def _push(p: Row, instruction: _Instruction, chip: Chip) -> None:
    """a2a3 hands tiles over through global memory, a5 on chip (9)."""
    if chip.generation == "a5":
        _move(p, instruction, chip) if instruction.pipe == c.MTE3 else _fixpipe_on_chip(
            p, chip, instruction.attributes.get("split", 0)
        )
        return
    _copy_gm(p, instruction, chip)


def _pop(p: Row, instruction: _Instruction, chip: Chip) -> None:
    if chip.generation == "a5":
        p[c.KIND], p[c.RULE], p[c.OVERHEAD] = c.COMPUTE, c.FIXED, chip.sync.flag.value
        return
    _copy_gm(p, instruction, chip)


def _free(p: Row, instruction: _Instruction, chip: Chip) -> None:
    p[c.KIND], p[c.RULE], p[c.OVERHEAD] = c.COMPUTE, c.FIXED, chip.sync.flag.value


def _event(p: Row, instruction: _Instruction, chip: Chip) -> None:
    p[c.KIND] = c.STALL if instruction.pipe in (c.S, c.PIPE_COUNT) else c.COMPUTE
    p[c.OVERHEAD] = chip.sync.flag.value


def _barrier(p: Row, instruction: _Instruction, chip: Chip) -> None:
    if instruction.mnemonic.startswith("syncall"):
        p[c.KIND], p[c.OVERHEAD] = c.BARRIER, chip.sync.soft_barrier_ns.value * chip.clock_mhz / 1000
        return
    vector = isinstance(chip.vector, RepeatVector) and instruction.pipe == c.V
    p[c.KIND] = c.COMPUTE if instruction.pipe < c.PIPE_COUNT and instruction.pipe != c.S else c.STALL
    p[c.OVERHEAD] = chip.vector.barrier.value if vector else chip.sync.flag.value


def _prefetch(p: Row, instruction: _Instruction, chip: Chip) -> None:
    _path(p, chip.gm_l1, c.PATH_GM_L1 if instruction.core == AIC else c.PATH_GM_UB)
    p[c.KIND] = c.PREFETCH


def _none(p: Row, instruction: _Instruction, chip: Chip) -> None:
    p[c.KIND], p[c.OVERHEAD] = c.STALL, chip.sync.flag.value


def _remote(p: Row, instruction: _Instruction, chip: Chip) -> None:
    """The links between chips decide how long it takes (see ``launch.play``)."""
    p[c.KIND], p[c.RULE] = c.REMOTE, c.FIXED
    p[c.OVERHEAD] = chip.link.staged_ns.value * chip.clock_mhz / 1000


def _signal(p: Row, instruction: _Instruction, chip: Chip) -> None:
    """The scalar unit writes or reads one word of global memory."""
    p[c.KIND], p[c.RULE], p[c.OVERHEAD] = c.STALL, c.FIXED, chip.scalar.gm_access.value


_RULES: Final[dict[str, Callable[[Row, _Instruction, Chip], None]]] = {
    "copy_gm": _copy_gm,
    "gather_gm": _gather_gm,
    "move": _move,
    "mmad": _mmad,
    "mmad_mx": _mmad,
    "push": _push,
    "pop": _pop,
    "free": _free,
    "event": _event,
    "barrier": _barrier,
    "prefetch": _prefetch,
    "none": _none,
    "remote": _remote,
    "notify": _signal,
    "wait": _signal,
}
