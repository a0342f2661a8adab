"""Figures that the clock of a launch does not read: memory spaces serve the planner, the host path the host's clock."""

from types import SimpleNamespace

import pytest
import torch

import pypto.language as pl
from pypto.backend.platforms import BackendType
from pypto.ir.compilation import prepared
from pypto.ir.errors import CompileError
from pypto.ir.lowering.build import build
from pypto.runtime.distributed_times import RunTimes
from pypto.runtime.host_model import host_model_of
from pypto.sim.chips import chip

FAMILIES = {"a2a3": BackendType.Ascend910B, "a5": BackendType.Ascend950}
NOT_IN_USE = {
    **dict.fromkeys(
        ("spaces.fixpipe.capacity", "spaces.fixpipe.alignment"), "no instruction of a kernel text is there"
    ),
    **dict.fromkeys(("link.engine_gbps", "link.engine_ns"), "no operation of the language moves data by the engine"),
    "link.latency_ns": "part of what a staged piece and a signal take",
}
# figures of the link that tests/runtime/distributed/test_clock.py and tests/sim/timing/test_busy_chip.py hold
OF_THE_LINK = ("gbps", "staged_gbps", "staged_ns", "notify_ns", "idle_gbps", "busy_gbps", "cube_slowdown", "free_cores")


@pl.jit.incore
def _product(
    a: pl.Tensor[[128, 64], pl.FP16],
    b: pl.Tensor[[64, 128], pl.FP16],
    bias: pl.Tensor[[1, 128], pl.FP32],
    c: pl.Out[pl.Tensor[[128, 128], pl.FP32]],
):
    left = pl.move(pl.load(a, [0, 0], [128, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
    right = pl.move(pl.load(b, [0, 0], [64, 128], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
    row = pl.move(pl.load(bias, [0, 0], [1, 128], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Bias)
    c = pl.store(pl.matmul_bias(left, right, row), [0, 0], c)
    return c


@pl.jit
def product(
    a: pl.Tensor[[128, 64], pl.FP16],
    b: pl.Tensor[[64, 128], pl.FP16],
    bias: pl.Tensor[[1, 128], pl.FP32],
    c: pl.Out[pl.Tensor[[128, 128], pl.FP32]],
):
    c = _product(a, b, bias, c)
    return c


@pl.jit
def elementwise(x: pl.Tensor[[62, 40], pl.FP32], y: pl.Out[pl.Tensor[[62, 40], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0], [62, 40])
        b = pl.exp(a)
        y = pl.store(pl.mul(a, b), [0, 0], y)
    return y


def planned(generation, space, **figures):
    """(offset, bytes) of every tile of ``space`` in a program compiled for the chip with other ``figures``."""
    shapes = ((128, 64), (64, 128), (1, 128), (128, 128))
    kinds = (torch.float16, torch.float16, torch.float32, torch.float32)
    program = (
        elementwise.lower(torch.zeros(62, 40), torch.zeros(62, 40))
        if space == "vec"
        else product.lower(*(torch.zeros(*s, dtype=k) for s, k in zip(shapes, kinds)))
    )
    _, ready = prepared(program, FAMILIES[generation])
    entry = next(f for f in ready.functions.values() if f.type.name == "Orchestration")
    units = build(ready, entry, chip(generation).replace(**figures)).units
    tiles = [tile for unit in units for tile in unit.kernel.tiles if tile.space == space]
    return [(tile.address, tile.nbytes) for tile in tiles]


USED = [(generation, space) for generation in FAMILIES for space in ("vec", "mat", "left", "right", "acc", "bias")]


@pytest.mark.parametrize(("generation", "space"), USED)
def test_a_program_takes_the_capacity_it_needs_and_no_byte_less(generation, space):
    alignment = chip(generation).space(space).alignment_bytes
    end = max(offset + -(-size // alignment) * alignment for offset, size in planned(generation, space))
    assert planned(generation, space, **{f"spaces.{space}.capacity": end}) == planned(generation, space)
    with pytest.raises(CompileError, match=rf"needs {end:,} bytes of (?i:{space}), the chip has {end - 1:,}"):
        planned(generation, space, **{f"spaces.{space}.capacity": end - 1})


@pytest.mark.parametrize(("generation", "space"), USED)
def test_every_allocation_begins_at_a_multiple_of_the_alignment(generation, space):
    usual = chip(generation).space(space).alignment_bytes
    for alignment in (usual, 4 * usual):
        offsets = [at for at, _ in planned(generation, space, **{f"spaces.{space}.alignment": alignment})]
        assert offsets and all(offset % alignment == 0 for offset in offsets)


def host_costs(target):
    """What the host's clock advances by: an allocation, 1 MB there, 1 MB back, a launch, its end (ns)."""
    model = host_model_of(target)
    return (
        model.allocation_ns, model.upload_ns(1 << 20), model.download_ns(1 << 20), model.enqueue_ns, model.drain_ns,
        *run_costs(target),
    )  # fmt: skip


def run_costs(target):
    """A run of several ranks: its fixed part, a task, a hop to a rank (ns)."""
    crew = SimpleNamespace(platform=SimpleNamespace(chip=target.name, clocked=True))
    times = RunTimes(crew, log_level=0)
    return times.run_ns, times.task_ns, times.hop_ns


@pytest.mark.parametrize("generation", FAMILIES)
@pytest.mark.parametrize("factor", [0.5, 2])
def test_a_dearer_host_path_costs_more_host_time_and_nothing_costs_less(generation, factor, monkeypatch):
    target = chip(generation)
    for row in target.constants():
        if not row.name.startswith("host."):
            continue
        other = target.replace(**{row.name: row.value * factor})
        monkeypatch.setattr("pypto.sim.chips.chip", {target.name: target, other.name: other}.__getitem__)
        dearer = (factor > 1) != (row.unit == "GB/s")
        changes = [(b - a) * (1 if dearer else -1) for a, b in zip(host_costs(target), host_costs(other))]
        assert min(changes) >= 0 and max(changes) > 0, row.name


@pytest.mark.parametrize("generation", FAMILIES)
def test_every_figure_of_the_other_layers_is_held_by_a_test_or_said_to_be_unused(generation):
    known = {f"link.{name}" for name in OF_THE_LINK} | set(NOT_IN_USE)
    known |= {f"spaces.{space}.{part}" for _, space in USED for part in ("capacity", "alignment")}
    known |= {f"spaces.{side}scale.{part}" for side in ("left", "right") for part in ("capacity", "alignment")}
    rows = [row.name for row in chip(generation).constants() if row.name.startswith(("spaces.", "link."))]
    assert set(rows) <= known
