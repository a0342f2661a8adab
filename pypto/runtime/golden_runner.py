"""Run a build directory on the inputs of its golden file and compare (spec runtime 9.4)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pypto.runtime.callable import ChipCallable
from pypto.runtime.device_runner import build_orch_args_from_inputs, execute_on_device, validate_golden
from pypto.runtime.prepared import DFX_FOLDER
from pypto.runtime.run_config import DfxOptions

if TYPE_CHECKING:
    import torch


def load_golden(path: str | Path) -> ModuleType:
    """The golden module at ``path``; ``FileNotFoundError`` names it when it is missing."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no golden file {path}")
    spec = importlib.util.spec_from_file_location("golden", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def execute_on_golden(
    work_dir: str | Path,
    golden_path: str | Path,
    chip_callable: ChipCallable,
    runtime_name: str,
    platform: str,
    device_id: int,
    dfx: DfxOptions = DfxOptions(),  # noqa: B008 - frozen
    validate: bool = True,
    actual_out_dir: str | Path | None = None,
    enable_sdma: bool = False,
) -> None:
    """Launch on the golden inputs; save the outputs to ``actual_out_dir``; ``AssertionError`` when they differ."""
    golden = load_golden(golden_path)
    pairs = golden.generate_inputs({"name": "Default"})
    arguments, tensors, _, outputs = build_orch_args_from_inputs(pairs, golden.__outputs__)
    expected = _expected(golden, Path(work_dir), tensors) if validate else {}
    execute_on_device(
        chip_callable,
        arguments,
        platform,
        runtime_name,
        device_id,
        enable_sdma=enable_sdma,
        output_prefix=Path(work_dir) / DFX_FOLDER,
        **dfx.options(),
    )
    if actual_out_dir is not None:
        _save(outputs, Path(actual_out_dir))
    if validate:
        compared = {name: outputs[name] for name in golden.__outputs__}
        validate_golden(compared, expected, getattr(golden, "RTOL", 1e-5), getattr(golden, "ATOL", 1e-5))


def _expected(golden: ModuleType, work_dir: Path, tensors: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The expected outputs: those saved in ``data/out``, else computed from copies of the inputs."""
    import torch

    saved = {name: work_dir / "data" / "out" / f"{name}.pt" for name in golden.__outputs__}
    if all(path.is_file() for path in saved.values()):
        return {name: torch.load(path) for name, path in saved.items()}
    copies = {name: tensor.clone() for name, tensor in tensors.items()}
    golden.compute_golden(copies, {"name": "Default"})
    return {name: copies[name] for name in golden.__outputs__}


def _save(tensors: dict[str, torch.Tensor], folder: Path) -> None:
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    for name, tensor in tensors.items():
        torch.save(tensor, folder / f"{name}.pt")


def validate_persisted_outputs(work_dir: str | Path, rtol: float = 1e-5, atol: float = 1e-5) -> None:
    """Compare ``data/actual`` of a run with ``data/out``; ``AssertionError`` also for a missing file."""
    import torch

    data = Path(work_dir) / "data"
    expected = {path.stem: torch.load(path) for path in sorted((data / "out").glob("*.pt"))}
    if not expected:
        raise AssertionError(f"no expected outputs in {data / 'out'}")
    missing = [name for name in expected if not (data / "actual" / f"{name}.pt").is_file()]
    if missing:
        raise AssertionError(f"{data / 'actual'} has no output {', '.join(missing)}")
    actual = {name: torch.load(data / "actual" / f"{name}.pt") for name in expected}
    validate_golden(actual, expected, rtol, atol)
