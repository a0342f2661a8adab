"""Small kernels from one expression: compiled and run on the chip, inputs and results as torch tensors."""

from __future__ import annotations

import torch

import pypto.language as pl
from pypto import ir

NAMES = {
    torch.float32: "FP32", torch.float16: "FP16", torch.bfloat16: "BF16", torch.int8: "INT8", torch.int16: "INT16",
    torch.int32: "INT32", torch.int64: "INT64", torch.uint8: "UINT8", torch.uint16: "UINT16", torch.uint32: "UINT32",
    torch.float8_e4m3fn: "FP8E4M3FN", torch.float8_e8m0fnu: "FP8E8M0",
}  # fmt: skip
HEAD = "import pypto.language as pl\n\n@pl.program\nclass Case:\n"


def annotation(value: torch.Tensor) -> str:
    return f"pl.Tensor[{list(value.shape)}, pl.{NAMES[value.dtype]}]"


def on_tiles(lines: str, out: torch.Tensor, *, platform: str = "a2a3sim", **inputs: torch.Tensor) -> torch.Tensor:
    """Run an in-core body: input ``x`` is a tensor parameter and ``x_tile`` its tile; the last line is stored to ``out``."""
    loads = [f"{n}_tile = pl.load({n}, {[0] * v.dim()}, {list(v.shape)})" for n, v in inputs.items() if v.dim() > 1]
    *before, last = lines.strip().split("\n")
    stored = last if last.startswith("out = ") else f"out = pl.store({last}, {[0] * out.dim()}, out)"
    body = "\n        ".join([*loads, *(line.strip("\n") for line in before), stored, "return out"])
    parameters = _parameters(inputs, out)
    names = ", ".join([*inputs, "out"])
    text = (
        f"{HEAD}    @pl.function(type=pl.FunctionType.InCore)\n"
        f"    def kernel(self, {parameters}):\n        {body}\n\n"
        f"    @pl.function(type=pl.FunctionType.Orchestration)\n"
        f"    def main(self, {parameters}):\n"
        f"        out = self.kernel({names})\n        return out\n"
    )
    return _run(text, out, platform, inputs)


def on_tensors(lines: str, out: torch.Tensor, *, platform: str = "a2a3sim", **inputs: torch.Tensor) -> torch.Tensor:
    """Run a tensor-level body in a core scope; the last line is written to ``out``."""
    *before, last = lines.strip().split("\n")
    stored = last if last.startswith("out = ") else f"out[:] = {last}"
    body = "\n            ".join([*(line.strip("\n") for line in before), stored])
    parameters = _parameters(inputs, out)
    text = (
        f"{HEAD}    @pl.function(type=pl.FunctionType.Orchestration)\n"
        f"    def main(self, {parameters}):\n"
        f"        with pl.at(level=pl.Level.CORE_GROUP):\n            {body}\n        return out\n"
    )
    return _run(text, out, platform, inputs)


def _parameters(inputs: dict[str, torch.Tensor], out: torch.Tensor) -> str:
    return ", ".join([*(f"{n}: {annotation(v)}" for n, v in inputs.items()), f"out: pl.Out[{annotation(out)}]"])


def _run(text: str, out: torch.Tensor, platform: str, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    compiled = ir.compile(pl.parse(text), platform=platform)
    result = out.clone()
    compiled(*(value.clone().contiguous() for value in inputs.values()), result)
    return result
