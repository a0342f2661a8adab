"""Every operation in a kernel of its own against torch: name, arguments, lowering and kernel fit together.

A test's id starts with the spelling it checks; the coverage page is made from these ids. Accuracy over dtypes and special
values is the subject of the kernel tests.
"""

from __future__ import annotations

import pytest
import torch

import pypto.language as pl
from pypto import ir

from .kernels import on_tensors, on_tiles
from .program_cases import PROGRAM_CASES, ProgramCase
from .value_cases import CASES, Case


def run(spelling: str, case: Case, like: torch.Tensor, platform: str) -> torch.Tensor:
    kernel = on_tiles if case.level == "tile" else on_tensors
    return kernel(case.lines(spelling), torch.zeros_like(like), platform=platform, **case.inputs)


@pytest.mark.parametrize(("spelling", "case"), CASES)
def test_value(spelling: str, case: Case) -> None:
    expected = case.oracle(*case.inputs.values()).contiguous()
    found = run(spelling, case, expected, case.platform)
    torch.testing.assert_close(found, expected, rtol=case.rtol, atol=case.rtol, equal_nan=True)


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize(("spelling", "case"), PROGRAM_CASES)
def test_program(spelling: str, case: ProgramCase, platform: str) -> None:
    assert f"{spelling}(" in case.text
    a, b = case.inputs
    found = torch.zeros(32, 32)
    ir.compile(pl.parse(case.text), platform=platform, dump_passes=False)(a, b, found)
    torch.testing.assert_close(found, case.oracle(a, b), rtol=1e-4, atol=1e-5)


ON_BOTH = [entry for entry in CASES if entry.values[1].platform == "a2a3sim"]


@pytest.mark.parametrize(("spelling", "case"), ON_BOTH[::11])
def test_generations_agree_to_the_bit(spelling: str, case: Case) -> None:
    like = case.oracle(*case.inputs.values()).contiguous()
    first, second = (run(spelling, case, like, platform) for platform in ("a2a3sim", "a5sim"))
    assert torch.equal(first.view(torch.uint8), second.view(torch.uint8))
