"""Helpers of the language tests: text between all passes, and one program on every platform."""

import copy

import torch

import pypto.language as pl
from pypto import ir
from pypto.ir.lowering.build import spaces_of
from pypto.ir.passes.pipeline import lowering_passes, placement_passes
from pypto.sim.chips import chip

PLATFORMS = ("a2a3sim", "a2a3", "a5sim", "a5")


def random(*shape, seed=0, dtype=torch.float32):
    """Normal values that depend on ``seed`` alone."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def assert_round_trips(program, generation="a2a3"):
    """The text of ``program``, as written and after every pass, parses back to an equal program."""
    capacity = {name: space.capacity_bytes for name, space in spaces_of(chip(generation)).items()}
    assert pl.parse(program.as_python()) == program
    for step in lowering_passes() + placement_passes(generation, capacity):
        program = step.run(copy.deepcopy(program))
        again = pl.parse(program.as_python())
        assert again == program, f"after {step.name}:\n{program.as_python()}"


def run_everywhere(program, *arguments):
    """The arguments after a run on each platform, which must agree bit for bit; the text must round-trip."""
    assert_round_trips(program)
    results = []
    for platform in PLATFORMS:
        own = [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]
        ir.compile(program, platform=platform, dump_passes=False)(*own)
        results.append(own)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other) if isinstance(a, torch.Tensor))
    return results[0]
