"""What the observer must know about each instruction of a program, worked out once from the instruction table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from pypto.ir.instructions import INSTRUCTIONS
from pypto.ir.instructions.table import Instruction as Row
from pypto.sim.checks import words as w
from pypto.sim.recording import Words
from pypto.sim.syntax import Instruction, Register, Statement, TensorParameter
from pypto.sim.tile_program import TileProgram

_RULES: Final = {
    # kernel family of the instruction table: rule
    "elementwise.binary": w.ELEMENTWISE,
    "elementwise.ternary": w.ELEMENTWISE,
    "elementwise.binary_scalar": w.ELEMENTWISE,
    "elementwise.ternary_scalar": w.ELEMENTWISE,
    "elementwise.leaky_scalar": w.ELEMENTWISE,
    "elementwise.bitwise": w.BITWISE,
    "elementwise.bitwise_scalar": w.BITWISE,
    "unary.unary": w.ELEMENTWISE,
    "cast.convert": w.ELEMENTWISE,
    "compare.compare": w.COMPARE,
    "compare.compare_scalar": w.COMPARE,
    "compare.select": w.SELECT,
    "compare.select_scalar": w.SELECT,
    "partial.partial": w.PART,
    "expand.row_expand": w.ROW_EXPAND,
    "expand.col_expand": w.COL_EXPAND,
    "expand.row_combine": w.ROW_COMBINE,
    "expand.col_combine": w.COL_COMBINE,
    "expand.fill": w.FILL,
    "creation.arange": w.FILL,
    "creation.triangle": w.FILL,
    "creation.random": w.FILL,
    "reduction.row_reduce": w.ROW_REDUCE,
    "reduction.row_argument": w.ROW_REDUCE,
    "reduction.col_reduce": w.COL_REDUCE,
    "reduction.col_argument": w.COL_REDUCE,
    "matmul.product": w.MATMUL,
    "matmul.scaled_product": w.WHOLE,
    "movement.load": w.LOAD,
    "movement.save": w.STORE,
    "movement.move": w.MOVE,
    "movement.extract": w.EXTRACT,
    "movement.insert": w.INSERT,
    "movement.gather_row": w.LOAD_ROWS,
    "transform.fill_pad": w.FILL_PAD,
    "transform.transpose": w.TRANSPOSE,
    "transform.reshape": w.RESHAPE,
    "transform.concat": w.CONCAT,
    "gather.flat": w.GATHER,
    "gather.along_axis": w.GATHER_AXIS,
    "gather.masked": w.GATHER_COLUMNS,
    "gather.compared": w.GATHER_MATCHES,
    "gather.blocks": w.GATHER_BLOCKS,
    "scatter.flat": w.SCATTER,
    "scatter.along_axis": w.SCATTER_AXIS,
    "scatter.rows": w.SCATTER_ROWS,
    "scatter.masked": w.SCATTER_COLUMNS,
    "gather_memory.fetch_indexed": w.FETCH,
    "gather_memory.scatter": w.SPREAD,
    "sort.sort_runs": w.SORT,
    "sort.merge_runs": w.MERGE,
    "sort.merge_lists": w.MERGE_LISTS,
}
_COPIES: Final = frozenset(
    (w.LOAD, w.STORE, w.MOVE, w.EXTRACT, w.INSERT, w.LOAD_ROWS, w.TRANSPOSE, w.RESHAPE, w.FILL_PAD, w.FETCH, w.SPREAD)
)
_CONSTANTS: Final = frozenset((w.FILL, w.FILL_PAD, w.LOAD, w.LOAD_ROWS, w.FETCH))
_TAKES_A_CONSTANT: Final = ("tsels", "tmaxs", "tmins")
"""Instructions whose results may be their scalar operand: an infinity that was given."""
_STAYS_IN_RANGE: Final = frozenset(
    (
        "tmax", "tmin", "tmaxs", "tmins", "tneg", "tabs", "trelu", "tsel", "trowexpand", "tcolexpand",
        "trowexpandmax", "trowexpandmin", "tcolexpandmax", "tcolexpandmin", "trowmax", "trowmin", "tcolmax", "tcolmin",
        "tpartmax", "tpartmin", "tsin", "tcos",
    )
)  # fmt: skip
"""Instructions whose results are elements of their sources, or bounded: no infinity comes from finite values."""
_WRAPS: Final = {
    "tadd": w.WRAPS_IN_ADDITION,
    "tadds": w.WRAPS_IN_ADDITION,
    "tsub": w.WRAPS_IN_SUBTRACTION,
    "tsubs": w.WRAPS_IN_SUBTRACTION,
    "tmul": w.WRAPS_IN_PRODUCT,
    "tmuls": w.WRAPS_IN_PRODUCT,
    "tcvt": w.WRAPS_IN_CAST,
    "trowsum": w.WRAPS_IN_SUM,
    "tcolsum": w.WRAPS_IN_SUM,
}
_PADDED_IN: Final = {
    f"t{axis}{name}": how
    for axis in ("row", "col")
    for name, how in (
        ("max", w.PADDED_IN_MAXIMUM), ("argmax", w.PADDED_IN_MAXIMUM),
        ("min", w.PADDED_IN_MINIMUM), ("argmin", w.PADDED_IN_MINIMUM),
        ("sum", w.PADDED_IN_SUM), ("prod", w.PADDED_IN_PRODUCT),
    )
}  # fmt: skip
"""Reductions, and how elements that only fill a tile up may count in them."""
_KEEPS_PLACES: Final = frozenset((w.ELEMENTWISE, w.BITWISE, w.ROW_COMBINE, w.COL_COMBINE, w.SELECT, w.FILL_PAD))
"""Rules by which what fills a source up comes to fill up the result, changed perhaps."""
_PREDICATED: Final = ("compare.select", "compare.select_scalar")


@dataclass(frozen=True)
class Facts:
    """``words``: ``int64[instructions, FACT_WORDS]`` of a program; ``rules``: the rules that occur."""

    words: Words
    rules: frozenset[int]
    address: int  # of the words
    code_address: int  # of the program's code
    observed: bool  # whether it has an instruction that the observer looks at


_KNOWN: Final[WeakKeyDictionary[TileProgram, Facts]] = WeakKeyDictionary()


def instruction_facts(program: TileProgram) -> Facts:
    """The facts about a program."""
    if program not in _KNOWN:
        words = _work_out(program)
        _KNOWN[program] = Facts(
            words, frozenset(words[:, w.FACT_RULE].tolist()), words.ctypes.data, program.code.ctypes.data,
            program.core is not None or any(_touches(statement) for statement in program.statements),
        )  # fmt: skip
    return _KNOWN[program]


def _touches(statement: object) -> bool:
    """Whether a statement of an orchestration touches an element of a tensor."""
    return isinstance(statement, Instruction) and statement.mnemonic in ("sload", "sstore")


def _work_out(program: TileProgram) -> Words:
    roots = _roots(program)
    facts = np.zeros((max(len(program.statements), 1), w.FACT_WORDS), np.int64)
    facts[:, w.FACT_ROOT] = -1
    padded: dict[str, str] = {}
    frees = any(_frees(statement) for statement in program.statements)
    for index, statement in enumerate(program.statements):
        if isinstance(statement, Instruction):
            _fill(facts[index], statement, roots)
            _note_padding(facts[index], statement, padded, program)
            if frees and facts[index, w.FACT_SOURCES]:
                facts[index, w.FACT_FLAGS] |= w.MAY_USE_FREED
    return facts


def _frees(statement: Statement) -> bool:
    """Whether a statement gives back the slot that a tile lies in."""
    is_free = isinstance(statement, Instruction) and statement.mnemonic.startswith("tfree")
    return is_free and not statement.attributes.get("copied")  # type: ignore[union-attr]


def _note_padding(fact: Words, instruction: Instruction, padded: dict[str, str], program: TileProgram) -> None:
    """Reductions over a tile that was filled up; ``padded`` maps such tiles to what was filled up (fillpad).

    Elementwise operations keep the places of the elements, so their results are filled up where a source is.
    """
    name = instruction.mnemonic
    row = INSTRUCTIONS.get(name)
    if row is None:
        return
    sources = [_register(instruction, i) for i in row.sources() if row.operands[i].kind == "tile"]
    targets = [_register(instruction, i) for i in row.destinations()]
    known = {padded[source] for source in sources if source in padded}
    if name in _PADDED_IN and sources and sources[0] in padded and sources[0] not in targets:
        fact[w.FACT_PADDED] = program.offsets.get(padded[sources[0]], 0)
        fact[w.FACT_PADDED_IN] = _PADDED_IN[name]
    fills = name in ("tfillpad", "tfillpad_expand") and sources[0] not in targets
    for tile in [tile for tile, filled in padded.items() if tile in targets or filled in targets]:
        del padded[tile]
    if fills and not known:
        known = {sources[0]}
    if (fills or int(fact[w.FACT_RULE]) in _KEEPS_PLACES) and len(known) == 1 and not known & set(targets):
        padded[targets[0]] = known.pop()


def _fill(fact: Words, instruction: Instruction, roots: dict[str, int]) -> None:
    name = instruction.mnemonic
    if name in ("sload", "sstore"):
        fact[w.FACT_ROOT] = roots.get(_register(instruction, 1 if name == "sload" else 0), -1)
        return
    row = INSTRUCTIONS.get(name)
    if row is None or not row.kernel:
        return
    rule = _RULES.get(row.kernel, w.NOTHING)
    positions, attributes = argument_positions(row, instruction)
    fact[w.FACT_RULE] = rule
    outputs = [i for i in row.destinations() if row.operands[i].kind == "tile"]
    fact[w.FACT_TARGET] = positions[outputs[0]] if outputs else 0
    fact[w.FACT_SECOND] = positions[outputs[1]] if len(outputs) > 1 else 0
    sources = [i for i in _sources(row, rule) if row.operands[i].kind == "tile"][:5]
    fact[w.FACT_SOURCES] = len(sources)
    for k, operand in enumerate(sources):
        fact[w.FACT_SOURCE + k] = positions[operand]
    tensors = [i for i, operand in enumerate(row.operands) if operand.kind == "tensor"]
    if tensors:
        fact[w.FACT_TENSOR] = positions[tensors[0]]
        fact[w.FACT_ROOT] = roots.get(_register(instruction, tensors[0]), -1)
    if "offsets" in row.index:
        fact[w.FACT_LISTS] = positions[row.index["offsets"]]
    fact[w.FACT_FLAGS] = _flags(row, rule, instruction)
    fact[w.FACT_EXTRA] = _extra(row, positions, attributes)
    fact[w.FACT_WRAPS] = _WRAPS.get(name, 0)


def _sources(row: Row, rule: int) -> tuple[int, ...]:
    """Operands whose values matter element by element; the packed mask of a select is left out."""
    if row.kernel in _PREDICATED:
        return tuple(i for i in row.sources() if row.operands[i].name != "mask")
    return row.sources()


def _flags(row: Row, rule: int, instruction: Instruction) -> int:
    flags = 0 if rule in _COPIES else w.COMPUTES
    if instruction.mnemonic == "texp":
        flags |= w.EXPONENTIAL
    flags |= {"tand": w.TAKES_AND, "tor": w.TAKES_OR}.get(instruction.mnemonic.removesuffix("s"), 0)
    if instruction.mnemonic in _STAYS_IN_RANGE:
        flags |= w.STAYS_IN_RANGE
    if rule in _CONSTANTS or instruction.mnemonic in _TAKES_A_CONSTANT:
        flags |= w.MAKES_CONSTANTS
    if rule in (w.STORE, w.SPREAD):
        flags |= w.STORES
    if instruction.attributes.get("atomic") in ("add", 1):
        flags |= w.ADDS
    return flags


def _extra(row: Row, positions: list[int], attributes: dict[str, int]) -> int:
    if "mask" in row.index:
        return positions[row.index["mask"]]
    if "row" in row.index:
        return positions[row.index["row"]]
    if "pattern" in attributes or row.kernel.endswith(".along_axis"):
        return attributes["pattern" if "pattern" in attributes else "axis"]
    for name in ("s", "block_len"):
        if name in row.index:
            return positions[row.index[name]]
    if "exhausted" in attributes:
        return attributes["exhausted"]
    if row.kernel.startswith("matmul.") and "a_trans" in attributes:
        return attributes["a_trans"]
    if row.kernel.startswith("gather_memory.fetch"):
        return attributes["coalesce"]
    return attributes.get("transpose", 0)


def argument_positions(row: Row, instruction: Instruction) -> tuple[list[int], dict[str, int]]:
    """Words of the argument block where the operands and the attributes start (architecture 2)."""
    positions, at = [], 4
    for index, operand in enumerate(row.operands):
        positions.append(at)
        value = instruction.operands[index]
        at += len(value) + 1 if operand.kind == "list" and isinstance(value, tuple) else 1
    return positions, {attribute.name: at + k for k, attribute in enumerate(row.attributes)}


def _register(instruction: Instruction, index: int) -> str:
    operand = instruction.operands[index]
    return operand.name if isinstance(operand, Register) else ""


def _roots(program: TileProgram) -> dict[str, int]:
    """Number of the parameter every tensor register is a view of."""
    roots = {p.name: n for n, p in enumerate(program.parameters) if isinstance(p, TensorParameter)}
    for statement in program.statements:
        view = _view(statement)
        if view is not None and view[1] in roots:
            roots[view[0]] = roots[view[1]]
    return roots


def _view(statement: Statement) -> tuple[str, str] | None:
    if isinstance(statement, Instruction) and statement.mnemonic in _VIEWS:
        return _register(statement, 0), _register(statement, 1)
    return None


_VIEWS: Final = ("view", "reshape", "permute", "reinterpret", "peerview")


def root_names(program: TileProgram) -> dict[str, str]:
    """For every tensor register the parameter or allocation it is a view of."""
    names: dict[str, str] = {}
    for statement in program.statements:
        view = _view(statement)
        if view is not None:
            names[view[0]] = names.get(view[1], view[1])
    return names
