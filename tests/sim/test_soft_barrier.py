"""``pl.system.syncall(mode="soft")``: so many cores meet at a workspace in GM (spec ops 16)."""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl
from pypto.runtime import RunConfig
from pypto.sim.checks.findings import WaitError
from pypto.sim.faults import DeadlockError, ExecutionError

BLOCKS, ROWS, COLS = 8, 8, 32
Data = pl.Tensor[[BLOCKS * ROWS, COLS], pl.FP32]
Words = pl.Tensor[[1, 64], pl.INT32]


def partial(callers, used, rounds=1):
    """``callers`` of the blocks meet; each then reads what the mirrored one wrote, the others copy."""

    @pl.jit
    def kernel(x: Data, ws: pl.InOut[Words], y: pl.Out[Data]):
        mid = pl.create_tensor([BLOCKS * ROWS, COLS], dtype=pl.FP32)
        for b in pl.spmd(BLOCKS, name_hint="meet"):
            if b < callers:
                for step in pl.range(rounds):
                    pl.store(
                        pl.add(pl.load(x, [b * ROWS, 0], [ROWS, COLS]), pl.cast(step, pl.FP32)), [b * ROWS, 0], mid
                    )
                    pl.system.syncall(core_type="aiv_only", mode="soft", gm_workspace=ws, used_cores=used)
                    pl.store(pl.load(mid, [(callers - 1 - b) * ROWS, 0], [ROWS, COLS]), [b * ROWS, 0], y)
                    pl.system.syncall(core_type="aiv_only", mode="soft", gm_workspace=ws, used_cores=used)
            else:
                pl.store(pl.load(x, [b * ROWS, 0], [ROWS, COLS]), [b * ROWS, 0], y)
        return y

    return kernel


def operands(first=0):
    ws = torch.zeros(1, 64, dtype=torch.int32)
    ws[0, 0] = first
    return torch.randn(BLOCKS * ROWS, COLS), ws, torch.zeros(BLOCKS * ROWS, COLS)


def mirrored(x, callers, step):
    head, rest = x[: callers * ROWS], x[callers * ROWS :]
    return torch.cat([(head + step).reshape(callers, ROWS, COLS).flip(0).reshape(-1, COLS), rest])


@pytest.mark.parametrize("platform", ["a2a3", "a2a3sim"])
@pytest.mark.parametrize("callers", [2, 5, BLOCKS])
def test_a_part_of_the_grid_meets(callers, platform):
    """Many barriers on one workspace, and many launches: its count is zero again after each."""
    x, ws, y = operands()
    compiled = partial(callers, callers, 3).compile(x, ws, y, config=RunConfig(platform=platform, checks="all"))
    for _ in range(2):
        y.zero_()
        compiled(x, ws, y)
        torch.testing.assert_close(y, mirrored(x, callers, 2), rtol=0, atol=0)
        assert ws[0, 0] == 0


def test_without_a_number_all_cores_meet():
    x, ws, y = operands()
    partial(BLOCKS, 0)(x, ws, y)
    torch.testing.assert_close(y, mirrored(x, BLOCKS, 0), rtol=0, atol=0)


def test_the_number_of_cores_is_a_run_time_scalar():
    @pl.jit
    def kernel(x: Data, ws: pl.InOut[Words], y: pl.Out[Data], used: pl.Scalar[pl.INT32]):
        mid = pl.create_tensor([BLOCKS * ROWS, COLS], dtype=pl.FP32)
        for b in pl.spmd(BLOCKS):
            pl.store(pl.load(x, [b * ROWS, 0], [ROWS, COLS]), [b * ROWS, 0], mid)
            pl.system.syncall(core_type="aiv_only", mode="soft", gm_workspace=ws, used_cores=used)
            pl.store(pl.load(mid, [(BLOCKS - 1 - b) * ROWS, 0], [ROWS, COLS]), [b * ROWS, 0], y)
        return y

    x, ws, y = operands()
    kernel(x, ws, y, BLOCKS)
    torch.testing.assert_close(y, mirrored(x, BLOCKS, 0), rtol=0, atol=0)


@pytest.mark.parametrize(("callers", "used", "came"), [(7, 8, 7), (4, 3, 2), (2, 8, 2)])
@pytest.mark.parametrize("checks", ["all", "none"])
def test_a_barrier_that_is_never_complete_is_reported(callers, used, came, checks):
    """Too few cores, or more than it is for: those that are left wait for cores that never come."""
    x, ws, y = operands()
    compiled = partial(callers, used).compile(x, ws, y, config=RunConfig(checks=checks))
    with pytest.raises(WaitError if checks == "all" else DeadlockError) as error:
        compiled(x, ws, y)
    assert f"waits at a soft barrier of {used} cores, {came} of which have come to its workspace" in str(error.value)
    if checks == "all":
        assert "let exactly used_cores cores call it" in str(error.value)


def test_two_workspaces_are_two_barriers():
    """Half of the cores wait at the wrong one."""

    @pl.jit
    def kernel(x: Data, one: pl.InOut[Words], two: pl.InOut[Words], y: pl.Out[Data]):
        for b in pl.spmd(BLOCKS):
            if b < 4:
                pl.system.syncall(core_type="aiv_only", mode="soft", gm_workspace=one, used_cores=BLOCKS)
            else:
                pl.system.syncall(core_type="aiv_only", mode="soft", gm_workspace=two, used_cores=BLOCKS)
            pl.store(pl.load(x, [b * ROWS, 0], [ROWS, COLS]), [b * ROWS, 0], y)
        return y

    x, ws, y = operands()
    with pytest.raises(DeadlockError, match="of 8 cores, 4 of which have come"):
        kernel(x, ws, ws.clone(), y)


@pytest.mark.parametrize("first", [3, BLOCKS, -1])
def test_a_workspace_that_is_not_zero(first):
    x, ws, y = operands(first)
    with pytest.raises(
        ExecutionError, match=rf"workspace of a soft barrier of 8 cores starts with {first}; it must be"
    ):
        partial(BLOCKS, BLOCKS)(x, ws, y)


def test_groups_meet_apart_from_each_other_and_do_not_wait_for_each_other():
    """Two groups of four with a workspace each; what one group writes, the other reads unordered: a race."""

    def grouped(mirror_all):
        @pl.jit
        def kernel(x: Data, one: pl.InOut[Words], two: pl.InOut[Words], y: pl.Out[Data]):
            mid = pl.create_tensor([BLOCKS * ROWS, COLS], dtype=pl.FP32)
            for b in pl.spmd(BLOCKS, name_hint="meet"):
                pl.store(pl.load(x, [b * ROWS, 0], [ROWS, COLS]), [b * ROWS, 0], mid)
                if b < 4:
                    pl.system.syncall(core_type="aiv_only", mode="soft", gm_workspace=one, used_cores=4)
                else:
                    pl.system.syncall(core_type="aiv_only", mode="soft", gm_workspace=two, used_cores=4)
                if mirror_all:
                    pl.store(pl.load(mid, [(7 - b) * ROWS, 0], [ROWS, COLS]), [b * ROWS, 0], y)
                else:
                    pl.store(pl.load(mid, [(b // 4 * 4 + 3 - b % 4) * ROWS, 0], [ROWS, COLS]), [b * ROWS, 0], y)
            return y

        return kernel

    x, ws, y = operands()
    config = RunConfig(checks="all")
    grouped(False).compile(x, ws, ws.clone(), y, config=config)(x, ws, ws.clone(), y)
    torch.testing.assert_close(y, x.reshape(2, 4, ROWS, COLS).flip(1).reshape(-1, COLS), rtol=0, atol=0)
    with pytest.raises(Exception, match=r"\[raw\]|\[war\]|race"):
        grouped(True).compile(x, ws, ws.clone(), y, config=config)(x, ws, ws.clone(), y)
