"""Golden files: a module that makes the inputs of a case and its expected outputs (spec runtime 9.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto.runtime.golden_source import standalone_source
from pypto.runtime.specs import ScalarSpec, TensorSpec

if TYPE_CHECKING:
    import torch

GoldenFunction = Callable[..., Any]


def write_golden(
    tensor_specs: Sequence[TensorSpec],
    golden_fn: GoldenFunction,
    output_path: str | Path,
    rtol: float = 1e-5,
    atol: float = 1e-5,
    scalar_specs: Sequence[ScalarSpec] | None = None,
    data_dir: str | Path | None = None,
) -> Path:
    """Write ``golden.py`` to ``output_path`` and its tensors to ``data_dir`` (by default ``data`` beside it).

    ``golden_fn(tensors, params)`` fills the outputs in place. Data files that are all there already are kept.
    """
    path = Path(output_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(data_dir) if data_dir is not None else path.parent / "data"
    if not _data_dir_has_files(folder, tensor_specs):
        _save_data_files(folder, tensor_specs, golden_fn, _params(scalar_specs))
    source = generate_golden_source(
        tensor_specs, golden_fn, rtol, atol, scalar_specs=scalar_specs, data_dir=folder, use_data_files=True
    )
    path.write_text(source, encoding="utf-8")
    return path


def generate_golden_source(
    tensor_specs: Sequence[TensorSpec],
    golden_fn: GoldenFunction,
    rtol: float,
    atol: float,
    *,
    compute_golden_src: str | None = None,
    scalar_specs: Sequence[ScalarSpec] | None = None,
    data_dir: str | Path | None = None,
    use_data_files: bool = False,
) -> str:
    """The text of a golden module; its inputs come from ``data_dir`` or are made anew as the specs say."""
    if use_data_files and data_dir is None:
        raise ValueError("use_data_files=True needs data_dir")
    outputs = [spec.name for spec in tensor_specs if spec.is_output]
    lines = ["import ctypes", "from pathlib import Path", "", "import torch", ""]
    if use_data_files:
        lines.append(f"_DATA_DIR = Path({str(Path(str(data_dir)).resolve())!r})")
    lines += [f"__outputs__ = {outputs!r}", f"RTOL = {rtol!r}", f"ATOL = {atol!r}", "", ""]
    lines += ["def generate_inputs(params):", "    return ["]
    for spec in tensor_specs:
        saved = use_data_files and _is_input(spec)
        made = f"torch.load(_DATA_DIR / 'in' / '{spec.name}.pt')" if saved else _maker(spec)
        lines.append(f"        ({spec.name!r}, {made}),")
    for scalar in scalar_specs or ():
        lines.append(f"        ({scalar.name!r}, ctypes.{type(scalar.to_ctypes()).__name__}({scalar.value!r})),")
    lines += ["    ]", "", ""]
    return "\n".join(lines) + (compute_golden_src or _extract_compute_golden(golden_fn))


def _extract_compute_golden(golden_fn: GoldenFunction) -> str:
    return standalone_source(golden_fn)


def _is_input(spec: TensorSpec) -> bool:
    """Whether the initial contents matter: an input, or an output that is read as well."""
    return not spec.is_output or spec.init_value is not None


def _maker(spec: TensorSpec) -> str:
    """An expression that makes the tensor at the start of a run."""
    shape, value = list(spec.shape), spec.init_value
    if value is None:
        return f"torch.zeros({shape!r}, dtype={spec.dtype})"
    if isinstance(value, (int, float)):
        return f"torch.full({shape!r}, {value!r}, dtype={spec.dtype})"
    if getattr(value, "__name__", "") in ("randn", "rand", "zeros", "ones"):
        return f"torch.{value.__name__}({shape!r}, dtype={spec.dtype})"
    return f"torch.tensor({spec.create_tensor().tolist()!r}, dtype={spec.dtype})"


def _params(scalar_specs: Sequence[ScalarSpec] | None) -> dict[str, Any]:
    return {"name": "Default", **{scalar.name: scalar.value for scalar in scalar_specs or ()}}


def _materialize_tensors(tensor_specs: Sequence[TensorSpec]) -> dict[str, torch.Tensor]:
    return {spec.name: spec.create_tensor() for spec in tensor_specs}


def _data_dir_has_files(data_dir: Path, tensor_specs: Sequence[TensorSpec]) -> bool:
    """Whether every input and every expected output is in ``data_dir``."""
    needed = [data_dir / "in" / f"{s.name}.pt" for s in tensor_specs if _is_input(s)]
    needed += [data_dir / "out" / f"{s.name}.pt" for s in tensor_specs if s.is_output]
    return all(path.is_file() for path in needed)


def _save_data_files(
    data_dir: Path, tensor_specs: Sequence[TensorSpec], golden_fn: GoldenFunction, params: Mapping[str, Any]
) -> None:
    """Make the inputs, compute the outputs, save both."""
    import torch

    tensors = _materialize_tensors(tensor_specs)
    for folder in ("in", "out"):
        (data_dir / folder).mkdir(parents=True, exist_ok=True)
    for spec in tensor_specs:
        if _is_input(spec):
            torch.save(tensors[spec.name], data_dir / "in" / f"{spec.name}.pt")
    golden_fn(tensors, params)
    for spec in tensor_specs:
        if spec.is_output:
            torch.save(tensors[spec.name], data_dir / "out" / f"{spec.name}.pt")
