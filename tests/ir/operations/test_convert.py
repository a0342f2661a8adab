"""Conversion chains against the published tables (spec ops 11)."""

from __future__ import annotations

import pytest

from pypto.ir.dtype import ALL_DTYPES, BY_CONSTANT, FP32, INT8, INT32
from pypto.ir.operations import cast_chain
from pypto.ir.operations.convert import NATIVE, widening_chain
from pypto.ir.operations.errors import OperandValueError

A2A3 = {
    "FP32": {"INT8": 2, "UINT8": 2, "INT4": 2},
    "FP16": {"BF16": 2},
    "BF16": {"FP16": 2, "INT16": 2, "INT8": 3, "UINT8": 3, "INT4": 3},
    "INT32": {"BF16": 2, "INT8": 2, "UINT8": 2, "INT4": 2},
    "INT64": {"FP16": 2, "BF16": 2, "INT16": 2, "INT8": 3, "UINT8": 3, "INT4": 3},
    "INT16": {"BF16": 2, "INT8": 2, "UINT8": 2, "INT4": 2},
    "INT8": {"UINT8": 2, "INT4": 2},
    "UINT8": {"INT8": 2, "INT4": 2},
    "INT4": {"INT8": 2, "UINT8": 2},
}
SMALL_FLOATS = ("FP8E4M3FN", "FP8E5M2", "HF8")
A5 = {
    "FP32": {"INT8": 2, "UINT8": 2, "UINT16": 2, "FP4": 2},
    "FP16": {"BF16": 2, "FP8E4M3FN": 2, "FP8E5M2": 2, "UINT16": 2, "FP4": 3},
    "BF16": {"FP8E4M3FN": 2, "FP8E5M2": 2, "HF8": 2, "INT16": 2, "UINT16": 2, "INT8": 2, "UINT8": 2},
    "INT32": {"FP16": 2, "BF16": 2, "FP8E4M3FN": 2, "FP8E5M2": 2, "HF8": 2, "INT8": 3, "FP4": 3},
    "INT64": {
        "FP16": 2, "BF16": 2, "FP8E4M3FN": 2, "FP8E5M2": 2, "HF8": 2, "INT16": 2, "UINT16": 2, "UINT8": 2, "INT8": 3,
        "FP4": 3,
    },
    "INT16": {"BF16": 2, "FP8E4M3FN": 2, "FP8E5M2": 2, "HF8": 2, "INT8": 2, "UINT16": 2, "FP4": 3},
    "INT8": {"UINT16": 2, "UINT8": 2, "HF8": 2, "FP8E4M3FN": 3, "FP8E5M2": 3, "FP4": 4},
    "UINT8": {"INT8": 2, "HF8": 2, "FP8E4M3FN": 3, "FP8E5M2": 3, "FP4": 4},
    **{
        name: {"BF16": 2, "FP16": 2, "INT16": 2, "INT8": 3, "UINT8": 3, "UINT16": 3, "FP4": 3,
               **dict.fromkeys((f for f in SMALL_FLOATS if f != name), 2)}
        for name in SMALL_FLOATS
    },
    "FP4": {"FP8E4M3FN": 3, "FP8E5M2": 3, "HF8": 3, "INT8": 3, "UINT8": 3},
    "UINT32": {"INT8": 3},
}  # fmt: skip


def chains(table):
    return [(source, target, hops) for source, targets in table.items() for target, hops in targets.items()]


@pytest.mark.parametrize(("source", "target", "hops"), chains(A2A3))
def test_chain_lengths_of_a2a3(source, target, hops):
    assert len(cast_chain(BY_CONSTANT[source], BY_CONSTANT[target], "a2a3")) == hops


@pytest.mark.parametrize(("source", "target", "hops"), chains(A5))
def test_chain_lengths_of_a5(source, target, hops):
    assert len(cast_chain(BY_CONSTANT[source], BY_CONSTANT[target], "a5")) == hops


@pytest.mark.parametrize(
    ("source", "target", "generation", "through"),
    [
        ("FP32", "INT8", "a2a3", ["FP16", "INT8"]), ("FP16", "BF16", "a2a3", ["FP32", "BF16"]),
        ("INT32", "BF16", "a2a3", ["FP32", "BF16"]), ("INT32", "INT8", "a2a3", ["FP16", "INT8"]),
        ("FP32", "UINT16", "a5", ["INT32", "UINT16"]), ("INT16", "FP8E4M3FN", "a5", ["FP32", "FP8E4M3FN"]),
        ("INT16", "HF8", "a5", ["FP16", "HF8"]), ("INT16", "UINT16", "a5", ["UINT32", "UINT16"]),
        ("FP4", "INT8", "a5", ["BF16", "FP16", "INT8"]), ("UINT32", "INT8", "a5", ["INT16", "FP16", "INT8"]),
        ("BF16", "INT8", "a5", ["FP16", "INT8"]), ("FP4", "HF8", "a5", ["BF16", "FP32", "HF8"]),
    ],
)  # fmt: skip
def test_named_intermediates(source, target, generation, through):
    found = cast_chain(BY_CONSTANT[source], BY_CONSTANT[target], generation)
    assert [d.constant for d in found] == through


@pytest.mark.parametrize("generation", ["a2a3", "a5"])
def test_every_hop_is_native_somewhere(generation):
    for source in ALL_DTYPES:
        for target in ALL_DTYPES:
            try:
                chain = cast_chain(source, target, generation)
            except OperandValueError:
                continue
            assert chain[-1] == target
            for before, after in zip([source, *chain], chain):
                assert any(after in table.get(before, ()) for table in NATIVE.values())


@pytest.mark.parametrize(
    ("source", "target", "advice"),
    [
        ("INT8", "FP32", "cast in steps: pl.FP16 then pl.FP32"), ("UINT8", "BF16", "cast in steps"),
        ("INT4", "FP32", "cast in steps: pl.FP16 then pl.FP32"), ("FP4", "FP32", "cast in steps: pl.BF16 then pl.FP32"),
        ("UINT64", "FP32", "FP32 is reached from"), ("FP32", "UINT64", "UINT64 is reached from no dtype"),
        ("BOOL", "FP16", "FP16 is reached from"),
    ],
)  # fmt: skip
def test_a_pair_without_a_chain_says_what_to_write(source, target, advice):
    with pytest.raises(OperandValueError, match=f"a2a3 has no conversion from {source} to {target}; {advice}"):
        cast_chain(BY_CONSTANT[source], BY_CONSTANT[target], "a2a3")


def test_a_pair_of_the_other_generation_is_accepted():
    assert cast_chain(BY_CONSTANT["INT16"], INT32, "a2a3") == [INT32]


def test_promotion_never_loses_a_value():
    assert widening_chain(INT8, FP32) == (BY_CONSTANT["FP16"], FP32)
    assert widening_chain(INT8, INT32) == (INT32,)
    assert widening_chain(INT32, FP32) == (FP32,)
    for source in ALL_DTYPES:
        for target in ALL_DTYPES:
            for step in (widening_chain(source, target) or ())[:-1]:
                assert step.get_bit() >= source.get_bit()
