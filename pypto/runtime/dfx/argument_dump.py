"""``args_dump/``: the arguments of every task and the bytes of its tensors (spec runtime 13.6, profiling 5.10)."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pypto.runtime.callable import ChipCallable
from pypto.runtime.dfx.dtype_names import dtype_name
from pypto.runtime.dfx.kernel_names import function_ids, task_tokens
from pypto.runtime.dfx.task_log import ALL, HYBRID, MARKED

if TYPE_CHECKING:
    from pypto.runtime.launch import Launched
    from pypto.sim.task_log import Content, ScalarValue, TaskLog, TensorValue

FOLDER: Final = "args_dump"
MANIFEST: Final = "args_dump.json"
CONTENTS: Final = "args.bin"
_STAGES: Final = ("before_dispatch", "after_completion")
_STAGE_ROLES: Final = (("input", "inout"), ("output", "inout"))


def write_argument_dump(launched: Launched, chip_callable: ChipCallable, level: int, folder: Path) -> Path | None:
    """Write manifest and contents at ``level``; ``None``, and nothing written, when there is nothing to tell."""
    log = launched.log
    if log is None:
        return None
    tokens, ids = task_tokens(launched.known_recording), function_ids(chip_callable)
    entries = [e for task in sorted(log.begun) for e in _entries(log, task, level, tokens[task], ids)]
    if not entries:
        return None
    target = folder / FOLDER
    target.mkdir(parents=True, exist_ok=True)
    has_contents = level != HYBRID or log.content_bytes > 0
    if has_contents:
        with (target / CONTENTS).open("wb") as file:
            log.copy_contents(file)
    else:
        (target / CONTENTS).unlink(missing_ok=True)
    path = target / MANIFEST
    path.write_text(_text(_manifest(entries, level, CONTENTS if has_contents else None)), encoding="utf-8")
    return path


def _manifest(entries: list[dict[str, Any]], level: int, contents: str | None) -> dict[str, Any]:
    count = Counter(entry["stage"] for entry in entries) + Counter(entry["role"] for entry in entries)
    return {
        "run_dir": FOLDER,
        "bin_format": {"type": "logical_contiguous", "byte_order": "little_endian"},
        "dump_args_level": level,
        "total_args": len(entries),
        "before_dispatch": count["before_dispatch"],
        "after_completion": count["after_completion"],
        "input_args": count["input"],
        "output_args": count["output"],
        "inout_args": count["inout"],
        "truncated_args": 0,
        "dropped_records": 0,
        "dropped_overwrite": 0,
        "bin_file": contents,
        "args": entries,
    }


def _text(manifest: dict[str, Any]) -> str:
    """JSON with one line per argument."""
    entries = manifest.pop("args")
    head = json.dumps(manifest, indent=2)[: -len("\n}")]
    lines = ",\n".join("    " + json.dumps(entry) for entry in entries)
    return f'{head},\n  "args": [\n{lines}\n  ]\n}}\n'


def _entries(log: TaskLog, task: int, level: int, token: int, ids: dict[str, int]) -> Iterator[dict[str, Any]]:
    """Entries of one task: by stage, then by index."""
    functions = [ids[name] for name in log.kernels(task) if name in ids]
    contents: dict[tuple[int, str], Content] = {(c.index, c.stage): c for c in log.contents_of(task)}
    for stage, roles in zip(_STAGES, _STAGE_ROLES):
        for tensor in log.tensors(task):
            if tensor.role in roles and (level in (ALL, HYBRID) or tensor.marked):
                content = contents.get((tensor.index, stage))
                place = (content.offset, content.size) if content is not None else (0, 0)
                yield {**_head(token, functions, tensor.index, tensor.role, stage), **_tensor(tensor, *place)}
        if stage == "before_dispatch" and level != MARKED:
            for scalar in log.scalars(task):
                yield {**_head(token, functions, scalar.index, "input", stage), **_scalar(scalar)}


def _head(token: int, functions: list[int], index: int, role: str, stage: str) -> dict[str, Any]:
    return {
        "task_id": f"0x{token:016x}",
        "func_id": functions,
        "arg_index": index,
        "role": role,
        "stage": stage,
    }


def _tensor(tensor: TensorValue, offset: int, size: int) -> dict[str, Any]:
    return {
        "kind": "tensor",
        "dtype": dtype_name(tensor.dtype),
        "is_contiguous": tensor.is_contiguous,
        "shape": list(tensor.shape),
        "strides": list(tensor.strides),
        "start_offset": tensor.start,
        "numel": tensor.elements,
        "bin_offset": offset,
        "bin_size": size,
        "truncated": False,
        "overwritten": False,
    }


def _scalar(scalar: ScalarValue) -> dict[str, Any]:
    return {
        "kind": "scalar",
        "dtype": dtype_name(scalar.dtype),
        "value": _json_number(scalar.value),
        "is_contiguous": True,
        "shape": [],
        "strides": [],
        "start_offset": 0,
        "numel": 1,
        "bin_offset": 0,
        "bin_size": 0,
        "truncated": False,
        "overwritten": False,
    }


def _json_number(value: int | float) -> int | float | str | None:
    """NaN has no number in JSON and becomes null; infinities become ``$Inf`` and ``-$Inf``."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "$Inf" if value > 0 else "-$Inf"
    return value
