"""Build directories: what is written where (spec runtime 3.6 to 3.8)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pypto.ir import nodes as ir
from pypto.ir.dtype import FP4, DataType
from pypto.ir.enums import FunctionType, ParamDirection
from pypto.ir.errors import PartialCodegenError
from pypto.ir.lowering.build import Build

SCHEMA = 1
META = "compiled_meta.json"
MANIFEST = "kernel_config.py"
ROOT_MARKERS = (META, "distributed_meta.json", MANIFEST, "orchestration/host_orch.py")


def signature_of(entry: ir.Function) -> dict[str, Any]:
    """The sidecar's view of the parameters and results of ``entry``; results count when ``->`` declares them."""
    params = []
    for p in entry.params:
        kind = p.type
        shape: list[int] | None = None
        dtype = getattr(kind, "dtype", None)
        if isinstance(kind, ir.TensorType):
            shape = [d if isinstance(d, int) else -1 for d in kind.shape]
            if kind.dtype == FP4 and shape and shape[-1] > 0:
                shape[-1] //= 2
        params.append(
            {
                "name": p.name,
                "direction": p.direction.name,
                "shape": shape,
                "dtype": dtype.to_string() if dtype else "index",
                "symbols": _symbols(kind),
            }
        )
    declared = len(entry.return_types) if entry.attrs.get("declares_return") else 0
    return {"params": params, "num_return_types": declared}


def _symbols(kind: ir.Type) -> dict[str, str]:
    """Axis -> name of the dynamic extents of a parameter."""
    if not isinstance(kind, ir.TensorType):
        return {}
    return {str(axis): d.name for axis, d in enumerate(kind.shape) if isinstance(d, ir.Symbol)}


def write_build(directory: Path, build: Build, entry: ir.Function, platform: str, backend: str, runtime: str) -> None:
    """Write the texts, the manifest, the memory plan and the sidecar of one orchestration."""
    for marker in ROOT_MARKERS:
        if marker not in (META, MANIFEST):
            (directory / marker).unlink(missing_ok=True)
    (directory / "orchestration").mkdir(parents=True, exist_ok=True)
    orchestration = f"orchestration/{build.orchestration}.orch"
    _write(directory / orchestration, build.orchestration_text)
    sources = {}
    for unit in build.units:
        sources[unit.name] = unit.path
    _write_files(directory, {unit.path: unit.text for unit in build.units})
    _remove_stale(directory, set(sources.values()) | {orchestration})
    _write(directory / MANIFEST, manifest_text(build, orchestration, sources, entry, runtime))
    write_plan(directory / "report", build)
    write_meta(
        directory / META, {"schema": SCHEMA, **signature_of(entry), "platform": platform, "backend_type": backend}
    )


def write_partial(directory: Path, error: PartialCodegenError) -> None:
    """What could be generated, and the errors of the rest in ``report/codegen_errors.txt``."""
    _write_files(directory, {**error.files, "report/codegen_errors.txt": f"{error}\n"})


def _write_files(directory: Path, texts: Mapping[str, str]) -> None:
    for path, text in texts.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        _write(directory / path, text)


def _remove_stale(directory: Path, current: set[str]) -> None:
    """Texts of an earlier build into the same directory would be read by nobody; they are taken away."""
    for pattern in ("kernels/aiv/*.pto", "kernels/aic/*.pto", "orchestration/*.orch"):
        for path in directory.glob(pattern):
            if path.relative_to(directory).as_posix() not in current:
                path.unlink()


def manifest_text(build: Build, orchestration: str, sources: dict[str, str], entry: ir.Function, runtime: str) -> str:
    """``kernel_config.py``: plain literals, double quotes."""
    signature = [
        ["In", "Out", "InOut"].index(p.direction.name) for p in entry.params if isinstance(p.type, ir.TensorType)
    ]
    kernels: list[dict[str, Any]] = []
    for unit in build.units:
        kernels.append(
            {"func_id": len(kernels), "name": unit.name, "source": sources[unit.name], "core_type": unit.core}
        )
    for name, group in build.groups.items():
        kernels.append({"name": name, "group": group})
    for function in build.external:
        kernels.append(
            {
                "func_id": len(kernels),
                "name": function.name,
                "source": str(_external_source(function)),
                "core_type": "aic" if function.type == FunctionType.AIC else "aiv",
                "external": True,
            }
        )
    config = {"runtime": runtime, "aicpu_thread_num": 0}
    main = {"source": orchestration, "function_name": "aicpu_orchestration_entry", "signature": signature}
    lines = [
        '"""Manifest of a build directory."""',
        "",
        f"RUNTIME_CONFIG = {_literal(config)}",
        "",
        f"ORCHESTRATION = {_literal(main)}",
        "",
        "KERNELS = [",
    ]
    lines += [f"    {_literal(k)}," for k in kernels]
    return "\n".join([*lines, "]", ""])


def _external_source(function: ir.Function) -> Any:
    sources = function.attrs.get("sources")
    return sources[0] if sources else function.attrs.get("external_source", "")


def _literal(value: Any) -> str:
    """A Python literal with double-quoted strings."""
    return json.dumps(value).replace(": null", ": None").replace(": true", ": True").replace(": false", ": False")


def write_plan(directory: Path, build: Build) -> None:
    """``report/memory.txt``: the planner, buffers, addresses, bytes, and the peak of every memory space."""
    directory.mkdir(parents=True, exist_ok=True)
    lines = [f"planner {build.planner.name}", ""]
    for unit in build.units:
        lines.append(f"kernel {unit.name} ({unit.core})")
        lines += [f"  peak {space:<10} {peak:>9,} bytes" for space, peak in unit.kernel.peaks.items()]
        for tile in sorted(unit.kernel.tiles, key=lambda t: (t.space, t.address, t.name)):
            end, shape = tile.address + tile.nbytes, f"[{tile.rows}, {tile.cols}]"
            place = f"{tile.space:<6} {tile.address:>8} .. {end:>8}  {tile.nbytes:>8} bytes"
            lines.append(f"  {place}  {tile.dtype.constant:<6} {shape:<14} {tile.name}")
        lines.append("")
    _write(directory / "memory.txt", "\n".join(lines))


def write_meta(path: Path, content: dict[str, Any]) -> None:
    """Write a sidecar atomically."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    os.replace(temporary, path)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def read_meta(directory: Path) -> dict[str, Any]:
    """The sidecar of a build directory, checked.

    ``FileNotFoundError`` when there is none; ``ValueError`` names the file and what is wrong with it.
    """
    path = directory / META
    if not directory.is_dir():
        raise FileNotFoundError(f"{directory} is not a build directory: no such directory")
    if not path.is_file():
        raise FileNotFoundError(
            f"{directory}: no {META}; the build is older than sidecars, distributed "
            f"(use DistributedCompiledProgram.from_dir), "
            f"or a multi-orch parent (reload one of next_levels/<name>)"
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as e:
        raise ValueError(f"{path} is damaged ({e}); compile the program again") from e
    if not isinstance(content, dict):
        raise ValueError(f"{path} is damaged (not an object); compile the program again")
    if content.get("schema") != SCHEMA:
        raise ValueError(
            f"{path} has schema {content.get('schema')!r}, this version reads schema {SCHEMA}; "
            "compile the program again"
        )
    _check(content, path)
    return content


def _check(content: dict[str, Any], path: Path) -> None:
    def damaged(what: str) -> ValueError:
        return ValueError(f"{path} is damaged ({what}); compile the program again")

    count = content.get("num_return_types")
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise damaged(f"num_return_types is {count!r}")
    if content.get("backend_type") not in ("Ascend910B", "Ascend950"):
        raise damaged(f"unknown backend_type {content.get('backend_type')!r}")
    if not isinstance(content.get("params"), list):
        raise damaged("params is not a list")
    for entry in content["params"]:
        if not isinstance(entry, dict) or entry.get("direction") not in ParamDirection.__members__:
            raise damaged(f"parameter {entry!r} has no known direction")
        try:
            DataType.from_string(entry.get("dtype", ""))
        except (ValueError, TypeError) as e:
            raise damaged(str(e)) from e
        shape = entry.get("shape")
        if shape is not None and not (isinstance(shape, list) and all(type(d) is int for d in shape)):
            raise damaged(f"parameter {entry.get('name')!r} has shape {shape!r}")
        symbols = entry.get("symbols", {})
        axes = [str(axis) for axis in range(len(shape or ()))]
        if not isinstance(symbols, dict) or any(a not in axes or type(n) is not str for a, n in symbols.items()):
            raise damaged(f"parameter {entry.get('name')!r} has symbols {symbols!r}")
