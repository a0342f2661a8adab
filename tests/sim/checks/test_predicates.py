"""Packed predicates that are combined: every element of a byte keeps its own code."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pypto.runtime import RunConfig

SOURCE = """
import pypto.language as pl

@pl.jit
def combined(a: pl.Tensor[[16, 64], pl.FP32], b: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    left = pl.create_tensor([16, 64], dtype=pl.FP32)
    right = pl.create_tensor([16, 64], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="widen"):
        pl.store(pl.load(a, [0, 0], [16, 64], valid_shape=[16, 52]), [0, 0], left)
        pl.store(pl.load(a, [0, 56], [16, 8]), [0, 56], left)
        pl.store(pl.load(b, [0, 0], [16, 64], valid_shape=[16, {known}]), [0, 0], right)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="choose"):
        m = pl.cmps(pl.load(left, [0, 0], [16, 64]), 0.0, cmp_type=4)
        n = pl.cmps(pl.load(right, [0, 0], [16, 64]), 0.0, cmp_type=4)
        tmp = pl.create_tile([16, 64], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        one, two = pl.tile.full([16, 64], dtype=pl.FP32, value=1.0), pl.tile.full([16, 64], dtype=pl.FP32, value=2.0)
        chosen = pl.sel({combination}, one, two, tmp)
        pl.store(chosen, [0, 0], y)
    return y
"""
AND, OR = "pl.and_(m, n)", "pl.or_(n, m)"
XOR = "pl.tile.xor(m, n, pl.create_tile([16, 32], dtype=pl.UINT8, target_memory=pl.Mem.Vec))"
VALUES = {AND: torch.logical_and, OR: torch.logical_or}


@pytest.fixture
def combine(tmp_path, monkeypatch):
    """Findings and the result of ``sel`` by a combination of ``a > 0`` (columns 52..56 unwritten) and ``b > 0``."""
    monkeypatch.chdir(tmp_path)

    def run(combination: str, a: torch.Tensor, b: torch.Tensor, known: int = 64) -> tuple[Any, torch.Tensor]:
        path = tmp_path / "combined.py"
        path.write_text(SOURCE.format(combination=combination, known=known), "utf-8")
        space: dict[str, Any] = {}
        exec(compile(path.read_text("utf-8"), str(path), "exec"), space)
        config = RunConfig(platform="a2a3", checks="all", checks_mode="collect")
        y = torch.zeros(16, 64)
        compiled = space["combined"].compile(a, b, y, config=config)
        compiled(a, b, y, config=config)
        return compiled.last_findings, y

    return run


def signs(seed: int) -> torch.Tensor:
    return torch.randn(16, 64, generator=torch.Generator().manual_seed(seed)).sign()


def test_undefined_elements_of_both_sides_are_told(combine):
    found, _ = combine(XOR, signs(0), signs(1), known=60)
    assert {(f.kind, f.tensor, f.index_ranges) for f in found} == {
        ("uninit", "left", ((0, 16), (52, 56))),
        ("uninit", "right", ((0, 16), (60, 64))),
    }
    reached = {f.tensor: f.message.partition("they reach ")[2] for f in found}
    assert reached == {"left": "rows 0..16, columns 52..56 of 'y'", "right": "rows 0..16, columns 60..64 of 'y'"}


@pytest.mark.parametrize(("combination", "decides"), [(AND, -1.0), (OR, 1.0)])
def test_what_the_other_side_decides_is_defined(combination, decides, combine):
    a, b = signs(0), signs(1)
    b[:, 52:56] = decides
    found, y = combine(combination, a, b)
    assert [str(f) for f in found] == []
    want = VALUES[combination](a > 0, b > 0)
    want[:, 52:56] = decides > 0
    assert torch.equal(y, torch.where(want, 1.0, 2.0))
    b[3, 54] = -decides
    found, _ = combine(combination, a, b)
    assert [(f.kind, f.tensor) for f in found] == [("uninit", "left")]
    assert "they reach rows 3..4, columns 54..55 of 'y'" in found[0].message


@pytest.mark.parametrize(("bits", "silent"), [(0x00, True), (0x0F, True), (0xF0, False)])
def test_a_number_decides_about_bits_too(bits, silent, combine):
    found, _ = combine(f"pl.ands(m, {bits})", signs(0), signs(1))
    assert ([f.tensor for f in found] == []) is silent
