"""``debug/run.py``: a script in the build directory that runs it again, to be edited by hand (spec runtime 5.4)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pypto.backend.platforms import DEFAULT_PLATFORM
from pypto.runtime.arguments import Parameter, direction_of
from pypto.runtime.torch_dtypes import accepted_torch_dtypes

_TEMPLATE = '''"""Run the program in this build directory again. Edit the inputs and the comparison as needed."""

from pathlib import Path

import torch

from pypto.runtime.debug.replay import main


def inputs():
    torch.manual_seed(0)
    return [
{inputs}
    ]


def compare({names}):
    """Look at the arguments after the run."""


if __name__ == "__main__":
    raise SystemExit(
        main(work_dir=Path(__file__).resolve().parent.parent, inputs=inputs, compare=compare, platform={platform!r})
    )
'''


def write_run_script(
    work_dir: str | Path, param_infos: Sequence[Parameter], *, platform: str | None = None
) -> Path | None:
    """Write ``debug/run.py``; nothing is written when ``PYPTO_EMIT_DEBUG_RUNNER`` is ``0``, ``false`` or ``no``."""
    if os.environ.get("PYPTO_EMIT_DEBUG_RUNNER", "").lower() in ("0", "false", "no"):
        return None
    path = Path(work_dir) / "debug" / "run.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "\n".join(f"        {_maker(p)}" for p in param_infos)
    names = ", ".join(p.name for p in param_infos)
    text = _TEMPLATE.format(inputs=lines, names=names, platform=platform or DEFAULT_PLATFORM)
    path.write_text(text, encoding="utf-8")
    return path


def _maker(parameter: Parameter) -> str:
    """One line that makes the argument."""
    if parameter.kind == "scalar":
        return f"None,  # TODO: value of the scalar {parameter.name} ({parameter.dtype})"
    dynamic = -1 in parameter.shape
    shape = [1 if extent == -1 else extent for extent in parameter.shape]
    note = f"  # {parameter.name}: dynamic extents are 1 here, edit them" if dynamic else f"  # {parameter.name}"
    return f"{_tensor(parameter, shape)},{note}"


def _tensor(parameter: Parameter, shape: list[int]) -> str:
    dtype = accepted_torch_dtypes(parameter.dtype)[0]
    if direction_of(parameter) == "Out":
        return f"torch.zeros({shape}, dtype={dtype})"
    if parameter.dtype.is_float():
        return f"torch.randn({shape}).to({dtype})"
    high = 2 if parameter.dtype.category == "bool" else 8
    return f"torch.randint(0, {high}, {shape}).to({dtype})"
