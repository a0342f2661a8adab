"""Programs from texts written in the tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from build_directory import arguments, write_build

from pypto.sim.program import LoadedProgram, load_program


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., LoadedProgram]:
    """``load(orchestration, kernel, …, groups=…)``: a loaded program."""

    def load(orchestration: str, *kernels: str, groups: Sequence[dict[str, Any]] = ()) -> LoadedProgram:
        return load_program(write_build(tmp_path, orchestration, *kernels, groups=groups))

    return load


@pytest.fixture
def compute(load: Callable[..., LoadedProgram]) -> Callable[..., list[int | float]]:
    """``compute(body, outputs=n)``: run scalar instructions in a kernel and read n results.

    The body stores results with ``sstore %out, [i], %x`` (int64) or ``sstore %real, [i], %x`` (fp32).
    """

    def compute(body: str, n: int = 0, x: float = 0.0, outputs: int = 1, real: bool = False) -> list[int | float]:
        program = load(
            """orchestration @main {
              param %out : tensor<?xint64> out
              param %real : tensor<?xfp32> out
              param %n : scalar<int64>
              param %x : scalar<fp32>
              submit %t, @k, [%out, %real, %n, %x], [], [3, 3, 0, 0]
            }""",
            f"""kernel @k aiv {{
              file 0 "kernel.py"
              param %out : tensor<?xint64> out
              param %real : tensor<?xfp32> out
              param %n : scalar<int64>
              param %x : scalar<fp32>
              array %a : 4 x int64
              {body}
            }}""",
        )
        integers, reals = np.zeros(outputs, np.int64), np.zeros(outputs, np.float32)
        program.execute(arguments(integers, reals, n, x))
        return (reals if real else integers).tolist()

    return compute
