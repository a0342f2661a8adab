"""The layer below compiled programs: assemble a directory, run a callable, compare with expected values.

Test harnesses are written against these names (spec runtime 9.1, 9.4, 16.3).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pypto.runtime.callable import ChipCallable, assemble
from pypto.runtime.dispatch import LEVEL, dispatch_prepared
from pypto.runtime.prepared import PreparedProgram
from pypto.runtime.run_config import RunConfig
from pypto.runtime.text_signature import text_signature

if TYPE_CHECKING:
    import torch

SHOWN_MISMATCHES: Final = 20


def compile_and_assemble(work_dir: str | Path, platform: str) -> tuple[ChipCallable, str, dict[str, Any]]:
    """The callable of a build directory with its runtime's name and configuration."""
    found = assemble(work_dir, platform)
    return found, found.runtime_name, found.runtime_config


def callable_name(chip_callable: ChipCallable) -> str:
    """The orchestration's name."""
    return chip_callable.name


def execute_on_device(
    chip_callable: ChipCallable,
    orch_args: Sequence[Any],
    platform: str,
    runtime_name: str,
    device_id: int,
    *,
    level: int = LEVEL,
    aicpu_thread_num: int | None = None,
    enable_sdma: bool = False,
    output_prefix: str | Path | None = None,
    enable_chip_swimlane: int = 0,
    enable_dump_args: int = 0,
    enable_pmu: int = 0,
    enable_dep_gen: bool = False,
    enable_scope_stats: bool = False,
    runtime_env: Mapping[str, str] | None = None,
) -> None:
    """Launch ``chip_callable`` once with ``orch_args`` in parameter order, on the open worker or on one for the call.

    Diagnostics go to ``output_prefix``, which they require. ``runtime_env`` holds environment variables for the launch.
    """
    if level != LEVEL:
        raise ValueError(f"execute_on_device runs programs of one chip (level 2), got level={level!r}")
    config = RunConfig(
        platform=platform,
        device_id=device_id,
        aicpu_thread_num=aicpu_thread_num,
        enable_chip_swimlane=enable_chip_swimlane,
        enable_dump_args=enable_dump_args,
        enable_pmu=enable_pmu,
        enable_dep_gen=enable_dep_gen,
        enable_scope_stats=enable_scope_stats,
    )
    if config.any_dfx_enabled() and not output_prefix:
        raise ValueError("output_prefix is required when a diagnostic is enabled")
    if runtime_name != chip_callable.runtime_name:
        raise ValueError(
            f"{chip_callable.name} was compiled for runtime {chip_callable.runtime_name!r}, not {runtime_name!r}"
        )
    if chip_callable.enable_sdma and not enable_sdma:
        raise RuntimeError(f"{chip_callable.name} needs SDMA; pass enable_sdma=True")
    folder = Path(output_prefix) if output_prefix else None
    prepared = PreparedProgram(text_signature(chip_callable), chip_callable, folder)
    with _environment(runtime_env or {}):
        dispatch_prepared(prepared, orch_args, config)


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """``variables`` in the environment for the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def build_orch_args_from_inputs(
    pairs: Sequence[tuple[str, Any]], output_names: Sequence[str]
) -> tuple[list[Any], dict[str, torch.Tensor], dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Ordered arguments, and by name: all tensors, the inputs, the outputs.

    A tensor is an output when it is named in ``output_names`` or its name starts with ``out``.
    """
    import torch

    tensors = {name: value for name, value in pairs if isinstance(value, torch.Tensor)}
    outputs = {n: t for n, t in tensors.items() if n in output_names or n.startswith("out")}
    inputs = {n: t for n, t in tensors.items() if n not in outputs}
    return [value for _, value in pairs], tensors, inputs, outputs


def validate_golden(
    outputs: Mapping[str, torch.Tensor], golden: Mapping[str, torch.Tensor], rtol: float = 1e-5, atol: float = 1e-5
) -> None:
    """``AssertionError`` unless every output equals its golden within the tolerances; a NaN golden is a don't-care."""
    import torch

    for name, actual in outputs.items():
        expected = golden[name]
        if actual.shape != expected.shape:
            raise AssertionError(
                f"Output '{name}' does not match golden: shape {tuple(actual.shape)}, golden {tuple(expected.shape)}"
            )
        close = torch.isclose(actual, expected.to(actual.dtype), rtol=rtol, atol=atol)
        if expected.is_floating_point():
            close |= expected.isnan()
        if not bool(close.all()):
            raise AssertionError(_mismatch_text(name, actual, expected, ~close, rtol, atol))


def _mismatch_text(
    name: str, actual: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor, rtol: float, atol: float
) -> str:
    places = wrong.nonzero().tolist()
    lines = [
        f"Output '{name}' does not match golden",
        f"Mismatched elements: {len(places)}/{wrong.numel()} (rtol={rtol}, atol={atol})",
    ]
    for place in places[:SHOWN_MISMATCHES]:
        index = tuple(place)
        lines.append(f"  {list(index)}: {actual[index].item()} golden {expected[index].item()}")
    if len(places) > SHOWN_MISMATCHES:
        lines.append(f"  ... and {len(places) - SHOWN_MISMATCHES} more")
    return "\n".join(lines)
