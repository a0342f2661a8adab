"""The instruction table is complete, consistent and says what it means."""

from __future__ import annotations

from importlib import import_module

import pytest

from pypto.ir.instructions import INSTRUCTIONS, UnknownInstruction, lookup, pipe_of
from pypto.ir.instructions.table import Instruction, collect, tiles
from pypto.sim.layout import PIPES

BINARY = ("add", "sub", "mul", "div", "max", "min", "rem", "fmod")
BROADCAST = ("", "add", "sub", "mul", "div", "max", "min", "expdif")
REDUCED = ("sum", "prod", "max", "min", "argmax", "argmin")
SINGLE = """
tload tstore tmov textract tinsert tgather_row taddc tsubc taddsc tsubsc tlrelu tprelu tneg tabs texp tlog tsqrt trsqrt
trecip trelu tnot tsin tcos texpands tcvt tfillpad tfillpad_expand ttrans treshape tconcat tci ttri trandom tgather
tgather_mask tgather_compare tgatherb tscatter tscatter_mask mgather mscatter tsort32 tmrgsort tpush_to_aiv tpush_to_aic
tpop_from_aic tpop_from_aiv tfree_to_aic tfree_to_aiv sync_set sync_wait
"""
REQUIRED = [
    *SINGLE.split(),
    *(f"t{name}{form}" for name in BINARY for form in ("", "s")),
    *(f"t{name}{form}" for name in ("and", "or", "xor", "shl", "shr", "cmp", "sel") for form in ("", "s")),
    *(f"tpart{name}" for name in ("add", "mul", "max", "min")),
    *(f"t{axis}expand{name}" for axis in ("row", "col") for name in BROADCAST),
    *(f"t{axis}{name}" for axis in ("row", "col") for name in REDUCED),
    *(f"t{name}{form}" for name in ("matmul", "gemv", "matmul_mx") for form in ("", "_acc", "_bias")),
]


@pytest.mark.parametrize("mnemonic", REQUIRED)
def test_every_operation_has_its_instruction(mnemonic):
    assert lookup(mnemonic).mnemonic == mnemonic


@pytest.mark.parametrize("row", INSTRUCTIONS.values(), ids=lambda row: row.mnemonic)
def test_row_is_consistent(row):
    names = [operand.name for operand in row.operands] + [attribute.name for attribute in row.attributes]
    assert len(set(names)) == len(names)
    assert row.mnemonic == row.mnemonic.lower() and row.summary
    assert row.pipe in (*PIPES, "space", "attribute")
    assert -1 <= row.work < len(row.operands)
    assert row.work == -1 or row.operands[row.work].kind == "tile"
    for operand in row.operands:
        assert operand.like in ("int", "float", *row.index)
        assert operand.access == "in" or operand.kind in ("tile", "tensor")
    for attribute in row.attributes:
        if not isinstance(attribute.encoding, str) and attribute.default is not None:
            assert attribute.default in attribute.encoding.values()


@pytest.mark.parametrize("row", INSTRUCTIONS.values(), ids=lambda row: row.mnemonic)
def test_destinations_come_first(row):
    written = row.destinations()
    assert written == tuple(range(len(written)))
    assert set(row.sources()) | set(written) == set(range(len(row.operands)))


@pytest.mark.parametrize("row", [row for row in INSTRUCTIONS.values() if row.kernel], ids=lambda row: row.mnemonic)
def test_kernel_of_the_row_exists(row):
    family, factory = row.kernel.split(".")
    assert callable(getattr(import_module(f"pypto.sim.kernels.{family}"), factory))


def test_rows_without_a_kernel_compute_nothing():
    """What the machine executes itself are transfers and waits, never a cost class of a kernel."""
    without = {row.cost for row in INSTRUCTIONS.values() if not row.kernel}
    assert without and not without & {row.cost for row in INSTRUCTIONS.values() if row.kernel}


@pytest.mark.parametrize(
    ("source", "destination", "pipe"),
    (
        ("ddr", "vec", "MTE2"),
        ("ddr", "mat", "MTE2"),
        ("vec", "ddr", "MTE3"),
        ("vec", "mat", "MTE3"),
        ("vec", "vec", "V"),
        ("mat", "left", "MTE1"),
        ("mat", "right", "MTE1"),
        ("mat", "bias", "MTE1"),
        ("mat", "leftscale", "MTE1"),
        ("acc", "ddr", "FIX"),
        ("acc", "vec", "FIX"),
        ("acc", "mat", "FIX"),
        ("mat", "ddr", "MTE3"),
    ),
)
def test_pipes_between_memory_spaces(source, destination, pipe):
    assert pipe_of(lookup("tmov"), source, destination) == pipe


def test_fixed_pipes_stay():
    assert pipe_of(lookup("tadd"), "vec", "vec") == "V"
    assert pipe_of(lookup("tmatmul"), "left", "acc") == "M"


def test_unknown_mnemonic_names_the_nearest():
    with pytest.raises(UnknownInstruction, match="unknown instruction 'trowsun'; the nearest one is 'trowsum'"):
        lookup("trowsun")
    assert issubclass(UnknownInstruction, KeyError)


def test_two_rows_with_one_mnemonic_are_refused():
    row = Instruction("twice", tiles("a"), (), "", "", "V", "none", 0, "")
    with pytest.raises(ValueError, match="'twice' is defined twice"):
        collect([(row,), (row,)])
