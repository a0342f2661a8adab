"""Run the program as it was after every pass and compare its results with the expected ones."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pypto.backend.platforms import BackendType, sim_platform_of

if TYPE_CHECKING:
    import torch

    from pypto.ir import nodes

_DUMP_NAME: Final = re.compile(r"(\d\d)_(?:frontend|after_\w+)\.py")


def validate_pass_ir_codegen_results(
    ir_dir: str | Path,
    tensors: Mapping[str, Any],
    expected: Mapping[str, torch.Tensor],
    *,
    rtol: float = 5e-2,
    atol: float = 5e-2,
) -> None:
    """Take every dump of ``ir_dir`` (``passes_dump`` of a build directory) through the passes that follow it, run it.

    ``tensors``: the arguments by parameter name, in call order; they are not changed. ``expected``: the right outputs
    by name. Prints one line per pass and output; ``AssertionError`` names the first pass with a wrong one.
    ``FileNotFoundError``: no dumps.
    """
    folder = Path(ir_dir)
    dumps = sorted(path for path in folder.glob("*.py") if _DUMP_NAME.fullmatch(path.name))
    if not dumps:
        raise FileNotFoundError(f"no pass dumps in {folder}: compile with dump_passes=True (passes_dump)")
    wrong: list[str] = []
    for path in dumps:
        print(f"--- {path.name}")
        results = _run(path, tensors)
        wrong += [f"{path.name}: {name}" for name in expected if not _same(name, results, expected, rtol, atol)]
    if wrong:
        raise AssertionError(f"results differ from the expected ones, first after {wrong[0]} ({len(wrong)} in all)")


def _same(
    name: str, results: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor], rtol: float, atol: float
) -> bool:
    import torch

    actual, wanted = results[name].double(), expected[name].double()
    same = torch.allclose(actual, wanted, rtol=rtol, atol=atol, equal_nan=True)
    print(f"validate tensor: '{name}', max_abs_diff: {(actual - wanted).abs().max().item():.6g}, pass: {same}")
    return same


def _run(dump: Path, tensors: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments after running the program of ``dump`` on copies of them."""
    import torch

    from pypto.runtime.dispatch import dispatch_prepared, prepare_directory
    from pypto.runtime.run_config import RunConfig

    copies = {name: t.clone() if isinstance(t, torch.Tensor) else t for name, t in tensors.items()}
    family = _family(dump)
    platform = sim_platform_of(family)
    with tempfile.TemporaryDirectory(prefix="pypto-pass-") as folder:
        directory = _build(dump, family, platform, Path(folder))
        prepared = prepare_directory(directory, platform)
        dispatch_prepared(prepared, list(copies.values()), RunConfig(platform=platform))
    return copies


def _family(dump: Path) -> BackendType:
    """The chip family the build directory was compiled for."""
    from pypto.ir.artifact import META, read_meta

    directory = dump.parent.parent
    if not (directory / META).is_file():
        return BackendType.Ascend910B
    return BackendType[read_meta(directory)["backend_type"]]


def _build(dump: Path, family: BackendType, platform: str, folder: Path) -> Path:
    """A build directory of ``dump``, made by the passes that follow it; after the last pass, the one it lies in."""
    from pypto.ir.artifact import write_build
    from pypto.ir.enums import FunctionType
    from pypto.ir.lowering.build import build, fitting, spaces_of
    from pypto.ir.passes.pipeline import lowering_passes, placement_passes, run_passes
    from pypto.runtime.callable import DEFAULT_RUNTIME
    from pypto.sim.chips import chip

    description = chip(platform)
    capacity = {name: space.capacity_bytes for name, space in spaces_of(description).items()}
    passes = lowering_passes() + placement_passes(description.generation, capacity, fitting(description))
    left = passes[int(dump.name[:2]) :]
    if not left:
        return dump.parent.parent
    ready = run_passes(_parsed(dump), left)
    entries = [f for f in ready.functions.values() if f.type == FunctionType.Orchestration]
    if len(entries) != 1:
        raise ValueError(f"{dump} has {len(entries)} orchestrations, only programs with one can be validated")
    write_build(folder, build(ready, entries[0], description), entries[0], platform, family.name, DEFAULT_RUNTIME)
    return folder


def _parsed(dump: Path) -> nodes.Program:
    import pypto.language as pl
    from pypto.ir.nodes import Program

    program = pl.parse(dump.read_text(encoding="utf-8"))
    if not isinstance(program, Program):
        raise ValueError(f"{dump} holds a function, not a program")
    return program
