"""Running a build directory as it is now (spec runtime 5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pypto.ir.distributed_compiled_program import HOST_TEXT, execute_distributed_compiled
from pypto.runtime.callable import MANIFEST
from pypto.runtime.debug.pto_rebuild import invalidate_binary_cache, rebuild_kernel_cpp_from_pto
from pypto.runtime.device_runner import validate_golden
from pypto.runtime.dispatch import dispatch_prepared, prepare_directory
from pypto.runtime.golden_runner import load_golden
from pypto.runtime.run_config import RunConfig


def replay(
    work_dir: str | Path,
    *tensors: Any,
    config: RunConfig | None = None,
    recompile: bool = True,
    rebuild_from_pto: bool = True,
    validate: bool = False,
) -> None:
    """Run ``work_dir``, of a chip or of ranks, once with ``tensors`` in parameter order; host tensors change in place.

    ``validate`` compares the outputs named by ``golden.py`` with what its ``compute_golden`` makes of the same inputs;
    ``AssertionError`` when they differ.
    """
    directory = Path(work_dir)
    config = RunConfig() if config is None else config
    distributed = _is_distributed(directory)
    if rebuild_from_pto:
        print(f"[pto->cpp] {len(rebuild_kernel_cpp_from_pto(directory))} units rebuilt")
    if recompile:
        invalidate_binary_cache(directory)
        print("[cpp->.so] the texts are assembled as they are")
    expected = _expected(directory, tensors) if validate else {}
    print(f"[execute] {directory} on {config.platform}, device {config.device_id}")
    if distributed:
        execute_distributed_compiled(directory, tensors, config, platform=config.platform)
    else:
        dispatch_prepared(prepare_directory(directory, config.platform), tensors, config)
    _compare(directory, tensors, expected)


def _is_distributed(directory: Path) -> bool:
    """A directory of ranks has a host program and no kernels of its own; without either it is none of both."""
    manifest, host = directory / MANIFEST, directory / HOST_TEXT
    if not manifest.is_file() and not host.is_file():
        raise FileNotFoundError(f"{directory} is not a build directory: it holds neither {MANIFEST} nor {HOST_TEXT}")
    return not manifest.is_file()


def _named(directory: Path, tensors: Sequence[Any]) -> tuple[Any, dict[str, Any]]:
    """The golden module and the given arguments by the names it uses; their number and kinds must agree."""
    import torch

    golden = load_golden(directory / "golden.py")
    pairs = golden.generate_inputs({"name": "Default"})
    if len(pairs) != len(tensors):
        raise ValueError(f"golden.py expected {len(pairs)} tensors, got {len(tensors)}")
    for (name, wanted), given in zip(pairs, tensors):
        if isinstance(wanted, torch.Tensor) and not isinstance(given, torch.Tensor):
            raise TypeError(f"'{name}' is a tensor in golden.py, got {type(given).__name__}")
    return golden, {name: given for (name, _), given in zip(pairs, tensors)}


def _expected(directory: Path, tensors: Sequence[Any]) -> dict[str, Any]:
    import torch

    golden, named = _named(directory, tensors)
    copies = {n: t.clone() for n, t in named.items() if isinstance(t, torch.Tensor)}
    golden.compute_golden(copies, {"name": "Default"})
    return {name: copies[name] for name in golden.__outputs__}


def _compare(directory: Path, tensors: Sequence[Any], expected: dict[str, Any]) -> None:
    if not expected:
        return
    golden, named = _named(directory, tensors)
    outputs = {name: named[name] for name in expected}
    validate_golden(outputs, expected, getattr(golden, "RTOL", 1e-5), getattr(golden, "ATOL", 1e-5))
