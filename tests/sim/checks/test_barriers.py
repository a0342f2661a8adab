"""Barriers that not every block comes to, and blocks that wait beyond the cores there are."""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl

from .programs.case import rnd, zeros
from .test_programs import run


@pl.jit
def not_all(x: pl.Tensor[[96, 32], pl.FP32], y: pl.Out[pl.Tensor[[96, 32], pl.FP32]]):
    for b in pl.spmd(8, name_hint="meet"):
        if b != 3:
            pl.system.syncall(core_type="aiv_only")
        pl.store(pl.neg(pl.load(x, [b * 12, 0], [12, 32])), [b * 12, 0], y)
    return y


@pl.jit
def not_as_often(x: pl.Tensor[[96, 32], pl.FP32], y: pl.Out[pl.Tensor[[96, 32], pl.FP32]]):
    for b in pl.spmd(8, name_hint="meet"):
        for i in pl.range(1 + b // 7):
            pl.system.syncall(core_type="aiv_only")
        pl.store(pl.neg(pl.load(x, [b * 12, 0], [12, 32])), [b * 12, 0], y)
    return y


@pl.jit
def all_of_them(x: pl.Tensor[[96, 32], pl.FP32], y: pl.Out[pl.Tensor[[96, 32], pl.FP32]]):
    for b in pl.spmd(8, name_hint="meet"):
        for i in pl.range(3):
            pl.system.syncall(core_type="aiv_only")
        pl.store(pl.neg(pl.load(x, [b * 12, 0], [12, 32])), [b * 12, 0], y)
    return y


@pl.jit
def in_waves(x: pl.Tensor[[96, 32], pl.FP32], y: pl.Out[pl.Tensor[[96, 32], pl.FP32]]):
    for b in pl.spmd(96, name_hint="meet"):
        pl.system.syncall(core_type="aiv_only")
        pl.store(pl.neg(pl.load(x, [b, 0], [1, 32])), [b, 0], y)
    return y


@pl.jit
def too_many_together(x: pl.Tensor[[96, 32], pl.FP32], y: pl.Out[pl.Tensor[[96, 32], pl.FP32]]):
    for b in pl.spmd(96, sync_start=True, name_hint="meet"):
        pl.store(pl.neg(pl.load(x, [b, 0], [1, 32])), [b, 0], y)
    return y


@pl.jit
def as_many_as_fit(x: pl.Tensor[[96, 32], pl.FP32], y: pl.Out[pl.Tensor[[96, 32], pl.FP32]]):
    for b in pl.spmd(48, sync_start=True, name_hint="meet"):
        pl.system.syncall(core_type="aiv_only")
        pl.store(pl.neg(pl.load(x, [b * 2, 0], [2, 32])), [b * 2, 0], y)
    return y


@pytest.mark.parametrize(
    ("kernel", "says"),
    [
        (not_all, ("to which 7 of 8 cores have come", "meet, block 3, AIV0", "syncall equally often", "syncall(core")),
        (not_as_often, ("to which 1 of 8 cores have come", "meet, block 7, AIV0: waits", "meet, block 0, AIV0")),
        (in_waves, ("48 of 96 cores have come", "48 of the 96 blocks cannot start", "available_aiv_count")),
        (too_many_together, ("'meet' never starts", "96 blocks", "runs 48 of them", "start at most 48 blocks")),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_barrier_that_not_all_come_to(kernel, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (finding,) = run(kernel, [rnd(96, 32), zeros(96, 32)])
    assert finding.kind == "deadlock" and "meet" in finding.tasks and finding.locations
    assert [piece for piece in says if piece not in str(finding)] == [], str(finding)


@pytest.mark.parametrize("kernel", [all_of_them, as_many_as_fit], ids=lambda kernel: kernel.__name__)
def test_a_barrier_that_all_come_to(kernel, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, y = rnd(96, 32), zeros(96, 32)
    assert [str(finding) for finding in run(kernel, [x, y])] == []
    torch.testing.assert_close(y, -x)
