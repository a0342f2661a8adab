"""Calls as instructions: operand order, lists, in-place destinations, attribute names."""

from __future__ import annotations

import pytest

from pypto.ir.dtype import BF16, FP16, INDEX, INT32
from pypto.ir.enums import AtomicType, Mem, PadValue, PipeType
from pypto.ir.instructions import INSTRUCTIONS
from pypto.ir.nodes import Const, index
from pypto.ir.operations import instruction_of, rows
from pypto.ir.operations.dims import text
from pypto.ir.operations.reach import MACHINE

from .written import N, call, scalar, tensor, tile

T, X, TMP = tile(32, 64, valid=(16, N)), tensor(64, 256), tile(32, 64, name="tmp")
LOWERED = [row for row in rows() if row.lowering is not None]


@pytest.mark.parametrize("row", LOWERED, ids=lambda row: row.name)
def test_every_lowering_fits_its_instruction(row):
    """The mnemonic exists, its operands are as many as the row gives, its attributes are known and complete."""
    rule = row.lowering
    parameters = {p.name for p in row.parameters}
    named = {name.partition(".")[0] for operand in rule.operands for name in operand.split("|")}
    assert named <= parameters | {"result"}
    assert set(rule.scratch) <= parameters and (rule.destination is None or rule.destination in parameters)
    if rule.instruction in MACHINE:
        return
    instruction = INSTRUCTIONS[rule.instruction]
    inputs = len(instruction.operands) - len(instruction.destinations())
    assert len(rule.operands) == inputs
    known = {attribute.name for attribute in instruction.attributes}
    needed = {attribute.name for attribute in instruction.attributes if attribute.default is None}
    assert needed <= set(rule.attributes) <= known


def test_every_row_says_what_it_is():
    for row in rows():
        assert row.summary and row.spec, row.name
        assert row.lowering is None or not row.lowering.scratch or row.namespace == "tile"


def shown(value):
    if isinstance(value, tuple):
        return [text(item) for item in value]
    return text(value)


def lowered(spelling, *args, **kwargs):
    found = instruction_of(call(spelling, *args, **kwargs))
    assert found is not None
    return found.instruction, [shown(operand) for operand in found.operands], found.attributes


def test_a_load_lists_offsets_window_and_valid_extents():
    found = lowered("pl.load", X, (N, 0), (32, 64), valid_shape=(16, N))
    assert found == ("tload", ["x", ["n", "0"], ["32", "64"], ["16", "n"]], {})


def test_a_store_writes_the_valid_extents_of_its_tile():
    made = call("pl.store", T, (N, 0), X, atomic=AtomicType.Add)
    found = instruction_of(made)
    assert lowered("pl.store", T, (N, 0), X, atomic=AtomicType.Add) == (
        "tstore", ["t", ["n", "0"], ["32", "64"], ["16", "n"]], {"atomic": "add"},
    )  # fmt: skip
    assert found.destination == X


def test_scratch_operands_are_left_out():
    assert lowered("pl.row_sum", tile(32, 64), TMP) == ("trowsum", ["t"], {})


def test_an_update_in_place_names_its_destination():
    acc = tile(32, 16, space=Mem.Acc, name="acc")
    found = instruction_of(call("pl.matmul_acc", acc, tile(32, 64), tile(64, 16)))
    assert (found.instruction, found.destination) == ("tmatmul_acc", acc)


def test_offsets_into_a_tile_of_more_axes_fold_into_rows():
    found = lowered("pl.assemble", tile(4, 8, 64), tile(1, 6, 16), (N, 2, 16))
    assert found == ("tinsert", ["t", "((n * 8) + 2)", "16"], {})


def test_attributes_are_written_by_name_where_they_have_one():
    assert lowered("pl.cast", T, FP16, mode=3)[2] == {"mode": "floor"}
    assert lowered("pl.cmp", T, T, cmp_type=2)[2] == {"mode": "lt"}
    assert lowered("pl.fillpad", T, pad_value=PadValue.min)[2] == {"pad": "min"}
    assert lowered("pl.system.bar_v")[2] == {"pipe": "V"}
    assert lowered("pl.system.sync_set", 1, pipe=PipeType.MTE3, core_type="aiv")[2] == {"pipe": "MTE3", "core": "aiv"}
    assert lowered("pl.transpose", tile(2, 3, 8, 64), 2, 3)[2] == {"batch": 6}


def test_a_window_copy_falls_back_to_its_shape():
    short = lowered("pl.gather_row", tile(32, 64), X, (0, 0), (N, 0), (1, 64))
    cut = lowered("pl.gather_row", tile(32, 64), X, (0, 0), (N, 0), (1, 64), valid_shape=(1, N))
    assert short[1][-1] == ["1", "64"] and cut[1][-1] == ["1", "n"]


def test_a_compile_time_number_becomes_a_literal_operand():
    full = instruction_of(call("pl.tile.full", (4, 8), BF16, value=1))
    assert full.operands == (Const(1.0, BF16),)
    assert instruction_of(call("pl.tile.full", (4, 8), INT32, value=2.9)).operands == (Const(2, INT32),)
    assert instruction_of(call("pl.dim", tensor(N, 4), 0)).operands[1] == index(0)


def test_two_results_and_views():
    compared = call("pl.tile.gather_compare", tile(32, 64), 1.0, TMP, out_cols=8)
    assert instruction_of(compared).results == 2
    assert instruction_of(call("pl.reshape", tile(32, 64), (64, 32))) is None
    assert scalar(INDEX).type.dtype == INDEX
