"""The same program on the same inputs gives the same bits on every platform and for any number of host threads.

The programs are of every family: what they compute is checked against torch once, the bits are compared everywhere.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from pypto.runtime import RunConfig
from pypto.sim import launch

from .same_bits_programs import PROGRAMS, Example

PLATFORMS = ("a2a3", "a2a3sim", "a5", "a5sim")
THREADS = (1, 2, 7)


@pytest.fixture(autouse=True)
def always_worth_a_thread(monkeypatch):
    monkeypatch.setattr(launch, "WORTHWHILE_S", 0.0)


def results(example: Example, platform: str, threads: int | None = None) -> list[torch.Tensor]:
    """The outputs of one run on fresh copies of the inputs."""
    args = [a.clone() if isinstance(a, torch.Tensor) else a for a in example.inputs]
    outputs = [torch.zeros_like(want) for want in example.expected]
    example.kernel(*args, *outputs, config=RunConfig(platform=platform, threads=threads))
    return outputs


def bits(values: Sequence[torch.Tensor]) -> bytes:
    return b"".join(value.contiguous().view(torch.uint8).numpy().tobytes() for value in values)


@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_do_not_depend_on_platform_or_threads(name: str) -> None:
    example = PROGRAMS[name]()
    first = results(example, "a2a3sim", threads=1)
    for found, want in zip(first, example.expected):
        torch.testing.assert_close(found, want, rtol=example.rtol, atol=example.rtol)
    for platform in PLATFORMS:
        for threads in THREADS:
            assert bits(results(example, platform, threads)) == bits(first), f"{platform}, {threads} threads"


DIGESTS = """
import hashlib
from runtime.same_bits_programs import PROGRAMS
from runtime.test_same_bits import bits, results
for name in PROGRAMS:
    print(name, hashlib.sha256(bits(results(PROGRAMS[name](), "a2a3sim"))).hexdigest())
"""


def digests(threads: int) -> str:
    """Digests of every program's outputs from a process whose numerical libraries are told to use ``threads``."""
    variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(variables, str(threads))}
    tests = Path(__file__).resolve().parents[1]
    command = [sys.executable, "-c", DIGESTS]
    return subprocess.run(command, env=environment, cwd=tests, capture_output=True, text=True, check=True).stdout


def test_bits_do_not_depend_on_threads_of_numerical_libraries() -> None:
    alone = digests(1)
    assert len(alone.splitlines()) == len(PROGRAMS)
    assert digests(4) == alone
