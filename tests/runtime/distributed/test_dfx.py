"""Diagnostics of every rank and dispatch (spec distributed 3.9)."""

from __future__ import annotations

import json

import pytest
import torch

import pypto.language as pl
import pypto.language.distributed as pld

from .programs import config, row_program


@pl.inline
def sum_of_all(inp, out, data, signal):
    data = pl.store(pl.load(inp, [0, 0], [1, 64]), [0, 0], data)
    data = pld.tensor.allreduce(data, signal)
    out = pl.store(pl.load(data, [0, 0], [1, 64]), [0, 0], out)


@pytest.mark.parametrize("platform", ["a2a3", "a2a3sim"])
def test_a_folder_per_rank_and_dispatch(platform):
    x, y = torch.randn(2, 1, 64).share_memory_(), torch.zeros(2, 1, 64).share_memory_()
    program = row_program(2, 64, pl.FP32, [2, 1], sum_of_all).compile(x, y, config=config(2, platform))
    stale = program.output_dir / "dfx_outputs" / "rank9" / "d0"
    stale.mkdir(parents=True)
    options = config(2, platform)
    options.enable_chip_swimlane, options.enable_dep_gen = 4, True
    with program.prepare() as rt:
        rt(x, y, config=options)
    torch.testing.assert_close(y, x.sum(0).expand(2, 1, 64))
    assert not stale.exists()
    for rank in range(2):
        folder = program.output_dir / "dfx_outputs" / f"rank{rank}" / "d0"
        assert json.loads((folder / "dispatch_program.json").read_text()) == {"program": "chip"}
        assert (folder / "chip_swimlane_records.json").is_file() and (folder / "deps.json").is_file()


@pytest.mark.parametrize("platform", ["a2a3", "a2a3sim"])
def test_a_rank_tells_of_its_own_tasks(platform):
    x, y = torch.randn(2, 1, 64).share_memory_(), torch.zeros(2, 1, 64).share_memory_()
    program = row_program(2, 64, pl.FP32, [2, 1], sum_of_all).compile(x, y, config=config(2, platform))
    options = config(2, platform)
    options.enable_dump_args, options.enable_pmu, options.enable_scope_stats = 2, 2, True
    with program.prepare() as rt:
        rt(x, y, config=options)
    for rank in range(2):
        folder = program.output_dir / "dfx_outputs" / f"rank{rank}" / "d0"
        told = json.loads((folder / "args_dump" / "args_dump.json").read_text())
        data = (folder / "args_dump" / "args.bin").read_bytes()
        outputs = [e for e in told["args"] if e["role"] != "input" and e["stage"] == "after_completion"]
        found = [data[e["bin_offset"] :][: e["bin_size"]] for e in outputs]
        assert y[rank].numpy().tobytes() in found
        lines = (folder / "scope_stats" / "scope_stats.jsonl").read_text().splitlines()
        assert json.loads(lines[0])["total"] == len(lines) - 1 >= 2
        assert len((folder / "pmu.csv").read_text().splitlines()) > 1


def test_diagnostics_tell_the_same_with_and_without_a_clock():
    """Without a clock the launches are timed for the files all the same, with the waits for other ranks."""
    told = []
    for platform in ("a2a3", "a2a3sim"):
        x, y = torch.randn(2, 1, 64).share_memory_(), torch.zeros(2, 1, 64).share_memory_()
        program = row_program(2, 64, pl.FP32, [2, 1], sum_of_all).compile(x, y, config=config(2, platform))
        options = config(2, platform)
        options.enable_chip_swimlane = 1
        with program.prepare() as rt:
            rt(x, y, config=options)
        folders = [program.output_dir / "dfx_outputs" / f"rank{rank}" / "d0" for rank in range(2)]
        records = [json.loads((folder / "chip_swimlane_records.json").read_text()) for folder in folders]
        told.append([[row[4] - row[3] for row in one["aicore_tasks"]] for one in records])
    assert told[0] == told[1]
    assert told[0][0] != told[0][1], "the rank that starts first waits for the other"
