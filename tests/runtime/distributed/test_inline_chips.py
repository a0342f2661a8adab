"""Scopes of level CHIP in a HOST body are chip programs that it dispatches (spec distributed 1.4)."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.ir.errors import CompileError, ParserSyntaxError, ParserTypeError
from pypto.ir.pass_manager import VerificationLevel
from pypto.runtime import benchmark

from .programs import config

ROWS, COLS = 16, 32
NCARD = pl.dynamic("NCARD")
Row = pl.Tensor[[ROWS, COLS], pl.FP32]
Rows = pl.Tensor[[NCARD, ROWS, COLS], pl.FP32]


@pl.jit.incore
def twice(src: Row, dst: pl.Out[Row]):
    tile = pl.load(src, [0, 0], [ROWS, COLS])
    dst = pl.store(pl.add(tile, tile), [0, 0], dst)
    return dst


@pl.jit
def chip(src: Row, dst: pl.Out[Row]):
    dst = twice(src, dst)
    return dst


@pl.jit.host
def core_scopes(x: Rows, y: pl.Out[Rows]):
    for card in pl.range(pl.tensor.dim(x, 0)):
        row, out = x[card], y[card]
        with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):
            middle = pl.create_tensor([ROWS, COLS], dtype=pl.FP32)
            with pl.at(level=pl.Level.CORE_GROUP):
                middle = pl.store(pl.load(row, [0, 0], [ROWS, COLS]), [0, 0], middle)
            with pl.at(level=pl.Level.CORE_GROUP):
                tile = pl.load(middle, [0, 0], [ROWS, COLS])
                out = pl.store(pl.add(tile, tile), [0, 0], out)


@pl.jit.host
def kernel_calls(x: Rows, y: pl.Out[Rows]):
    for card in pl.range(pl.tensor.dim(x, 0)):
        row, out = x[card], y[card]
        with pl.at(level=pl.Level.CHIP):
            out = twice(row, out)


@pl.jit.host
def chip_calls(x: Rows, y: pl.Out[Rows]):
    for card in pl.range(pl.tensor.dim(x, 0)):
        row, out = x[card], y[card]
        with pl.at(level=pl.Level.CHIP, name_hint="on_a_chip"):
            out = chip(row, out)


@pl.jit.host
def whole_tensors(x: Rows, y: pl.InOut[Rows]):
    for card in pl.range(pl.tensor.dim(x, 0)):
        with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):  # noqa: SIM117
            with pl.at(level=pl.Level.CORE_GROUP):
                tile = pl.load(x, [card, 0, 0], [1, ROWS, COLS])
                y = pl.store(pl.add(tile, tile), [card, 0, 0], y)


@pl.jit.host
def core_scope_alone(x: Rows, y: pl.Out[Rows]):
    for card in pl.range(pl.tensor.dim(x, 0)):
        row, out = x[card], y[card]
        with pl.at(level=pl.Level.CORE_GROUP):
            tile = pl.load(row, [0, 0], [ROWS, COLS])
            out = pl.store(pl.add(tile, tile), [0, 0], out)


@pl.jit.host
def blocks_alone(x: Rows, y: pl.Out[Rows]):
    for card in pl.range(pl.tensor.dim(x, 0)):
        row, out = x[card], y[card]
        for block in pl.spmd(2):
            tile = pl.load(row, [block * 8, 0], [8, COLS])
            out = pl.store(pl.add(tile, tile), [block * 8, 0], out)


@pl.jit.host
def in_a_host_scope(x: Rows, y: pl.Out[Rows]):
    with pl.at(level=pl.Level.HOST, role=pl.Role.Orchestrator):
        for card in pl.range(pl.tensor.dim(x, 0)):
            row, out = x[card], y[card]
            with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):
                out = twice(row, out)


@pl.jit.host
def beside_dispatches(x: Rows, y: pl.Out[Rows]):
    middle = pl.create_tensor([2, ROWS, COLS], dtype=pl.FP32)
    for card in pl.range(2):
        row, out = x[card], middle[card]
        with pl.at(level=pl.Level.CHIP):  # noqa: SIM117
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.store(pl.load(row, [0, 0], [ROWS, COLS]), [0, 0], out)
    for card in pl.range(2):
        chip(middle[card], y[card], device=card)


@pl.jit.host
def handed_on(x: Rows, y: pl.Out[Rows]):
    row = x[0]
    with pl.at(level=pl.Level.CHIP):
        middle = pl.create_tensor([ROWS, COLS], dtype=pl.FP32)
        middle = twice(row, middle)
    for card in pl.range(pl.tensor.dim(x, 0)):
        out = y[card]
        with pl.at(level=pl.Level.CHIP):
            out = twice(middle, out)


PROGRAMS = {
    "core_scopes": (core_scopes, ["core_scopes_chip_orch_0"]),
    "kernel_calls": (kernel_calls, ["kernel_calls_chip_0"]),
    "chip_calls": (chip_calls, ["chip", "on_a_chip"]),
    "whole_tensors": (whole_tensors, ["whole_tensors_chip_orch_0"]),
    "core_scope_alone": (core_scope_alone, ["core_scope_alone_chip_orch_0"]),
    "blocks_alone": (blocks_alone, ["blocks_alone_chip_orch_0"]),
    "in_a_host_scope": (in_a_host_scope, ["in_a_host_scope_chip_orch_0"]),
    "beside_dispatches": (beside_dispatches, ["beside_dispatches_chip_0", "chip"]),
    "handed_on": (handed_on, ["handed_on_chip_0", "handed_on_chip_1"]),
}


@pytest.mark.parametrize("name", sorted(PROGRAMS))
@pytest.mark.parametrize("platform", ["a2a3", "a2a3sim"])
def test_a_chip_scope_is_outlined_and_dispatched(name, platform):
    host, names = PROGRAMS[name]
    x, y = torch.randn(2, ROWS, COLS), torch.zeros(2, ROWS, COLS)
    compiled = host.compile(x, y, config=config(2, platform))
    assert sorted(compiled.chip_tasks) == names
    compiled(x, y)
    torch.testing.assert_close(y, x[:1].expand_as(x) * 4 if name == "handed_on" else 2 * x, rtol=0, atol=0)


def test_scopes_go_round_the_chips_and_have_their_time():
    x, y = (torch.zeros(4, ROWS, COLS).share_memory_() for _ in range(2))
    compiled = core_scopes.compile(x, y, config=config(2, "a2a3"))
    stats = benchmark(compiled, (x, y), rounds=2, warmup=1)
    dispatched = core_scopes_by_hand.compile(x, y, config=config(2, "a2a3"))
    expected = benchmark(dispatched, (x, y), rounds=2, warmup=1)
    assert sorted(slot for _, slot in stats.per_dispatch("device")) == [0, 0, 1, 1]
    assert sorted(stats.per_dispatch("device").values()) == sorted(expected.per_dispatch("device").values())
    assert stats.per_round("device") == expected.per_round("device")


@pl.jit
def core_scopes_chip(row: Row, out: pl.Out[Row]):
    middle = pl.create_tensor([ROWS, COLS], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP):
        middle = pl.store(pl.load(row, [0, 0], [ROWS, COLS]), [0, 0], middle)
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(middle, [0, 0], [ROWS, COLS])
        out = pl.store(pl.add(tile, tile), [0, 0], out)
    return out


@pl.jit.host
def core_scopes_by_hand(x: Rows, y: pl.Out[Rows]):
    for card in pl.range(pl.tensor.dim(x, 0)):
        core_scopes_chip(x[card], y[card])


def test_a_function_around_a_host_scope_runs_on_the_host(tmp_path):
    @pl.program
    class Whole:
        @pl.function
        def main(self, x: pl.Tensor[[2, ROWS, COLS], pl.FP32], y: pl.Out[pl.Tensor[[2, ROWS, COLS], pl.FP32]]):
            with pl.at(level=pl.Level.HOST, role=pl.Role.Orchestrator):
                for card in pl.range(pld.world_size()):
                    row, out = x[card], y[card]
                    with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):  # noqa: SIM117
                        with pl.at(level=pl.Level.CORE_GROUP):
                            tile = pl.load(row, [0, 0], [ROWS, COLS])
                            out = pl.store(pl.add(tile, tile), [0, 0], out)

    compiled = ir.compile(
        Whole,
        tmp_path,
        platform="a2a3sim",
        distributed_config=DistributedConfig([0, 1]),
        verification_level=VerificationLevel.ROUNDTRIP,
    )
    x, y = torch.randn(2, ROWS, COLS), torch.zeros(2, ROWS, COLS)
    compiled(x, y)
    torch.testing.assert_close(y, 2 * x, rtol=0, atol=0)


REFUSED = {
    "device=": (
        "with pl.at(level=pl.Level.CHIP, device=card):\n out = twice(row, out)", ParserSyntaxError, "no keyword 'device'",
    ),
    "device= inside": (
        "with pl.at(level=pl.Level.CHIP):\n out = chip(row, out, device=card)",
        ParserTypeError, "does not accept keyword argument 'device'",
    ),
    "role of a core scope": (
        "with pl.at(level=pl.Level.CHIP):\n with pl.at(level=pl.Level.CORE_GROUP, role=pl.Role.SubWorker):\n"
        "  out = pl.store(pl.load(row, [0, 0], [16, 32]), [0, 0], out)",
        ParserSyntaxError, "not legal with CORE_GROUP",
    ),
    "chip sub-worker": (
        "with pl.at(level=pl.Level.CHIP, role=pl.Role.SubWorker):\n out = twice(row, out)",
        ParserSyntaxError, "SubWorker may not be written inline",
    ),
    "host sub-worker": (
        "with pl.at(level=pl.Level.HOST, role=pl.Role.SubWorker):\n out = twice(row, out)",
        ParserSyntaxError, "SubWorker may not be written inline",
    ),
    "a die": ("with pl.at(level=pl.Level.CHIP_DIE):\n out = twice(row, out)", CompileError, "level CHIP_DIE"),
    "task id": ("with pl.at(level=pl.Level.CHIP) as tid:\n out = twice(row, out)", CompileError, "a task id"),
    "world size": (
        "with pl.at(level=pl.Level.CHIP):\n n = pld.world_size()\n out = twice(row, out)",
        ParserSyntaxError, "can only be called in HOST orchestration context",
    ),
    "a window": (
        "w = pld.window(buf, [16, 32], dtype=pl.FP32)\nwith pl.at(level=pl.Level.CHIP):\n w = twice(row, w)",
        CompileError, "'buf' is not consumed by any chip_orch dispatch",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_a_chip_scope_cannot_be(name, tmp_path):
    body, kind, text = REFUSED[name]
    lines = ["buf = pld.alloc_window_buffer([16, 32], dtype=pl.FP32)"] if name == "a window" else []
    lines += ["for card in pl.range(2):", "    row, out = x[card], y[card]", *(f"    {b}" for b in body.split("\n"))]
    source = "@pl.jit.host\ndef host(x: Rows, y: pl.Out[Rows]):\n" + "\n".join(f"    {line}" for line in lines)
    path = tmp_path / "host.py"
    path.write_text(source)
    names = {**globals()}
    exec(compile(path.read_text(), str(path), "exec"), names)
    x = torch.zeros(2, ROWS, COLS)
    with pytest.raises(kind, match=text):
        names["host"].compile(x, x.clone(), config=config(2))


@pl.jit.host
def one_part(x: Rows, y: pl.InOut[Rows]):
    with pl.at(level=pl.Level.CHIP):  # noqa: SIM117
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.store(pl.load(x, [1, 0, 0], [1, ROWS, COLS]), [1, 0, 0], y)


@pl.jit.host
def perhaps(x: Rows, y: pl.InOut[Rows]):
    for card in pl.range(2):
        row, out = x[card], y[card]
        with pl.at(level=pl.Level.CHIP):  # noqa: SIM117
            with pl.at(level=pl.Level.CORE_GROUP):
                if card > 0:
                    out = pl.store(pl.load(row, [0, 0], [ROWS, COLS]), [0, 0], out)


@pl.jit.host
def two_halves(x: Rows, y: pl.InOut[Rows]):
    row, out = x[1], y[1]
    with pl.at(level=pl.Level.CHIP):  # noqa: SIM117
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.load(row, [0, 0], [8, COLS]), [0, 0], out)
            for half in pl.range(1, 2):
                out = pl.store(pl.load(row, [half * 8, 0], [8, COLS]), [half * 8, 0], out)


@pytest.mark.parametrize(
    ("host", "direction"), [(one_part, "inout"), (perhaps, "inout"), (two_halves, "out")], ids=lambda v: str(v)[:12]
)
@pytest.mark.parametrize("checks", ["none", "all"])
def test_what_a_chip_scope_does_not_write_stays(host, direction, checks):
    x, y = torch.randn(2, ROWS, COLS), torch.randn(2, ROWS, COLS)
    before = y[0].clone()
    asked = replace(config(2, "a2a3"), checks=checks)
    compiled = host.compile(x, y, config=asked)
    compiled(x, y, config=asked)
    assert torch.equal(y[0], before) and torch.equal(y[1], x[1])
    text = next(compiled.output_dir.glob("next_levels/*/orchestration/*.orch")).read_text("utf-8")
    assert [
        line.split()[-1] for line in text.splitlines() if line.strip().startswith("param") and "tensor" in line
    ] == [
        "in",
        direction,
    ]
