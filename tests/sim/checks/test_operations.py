"""Operations one by one: operands that hold nothing, or only a part, and what of the result may be stored."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

TEMPLATE = """
import pypto.language as pl

@pl.jit
def kernel(
    x: pl.Tensor[[16, 32], pl.FP32], w: pl.Tensor[[32, 32], pl.FP32], n: pl.Tensor[[16, 32], pl.INT32],
    y: pl.InOut[pl.Tensor[[16, {cols}], pl.{dtype}]],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="task"):
        b = pl.load(w, [0, 0], [16, 32])
        i = pl.load(n, [0, 0], [16, 32])
        u = pl.reinterpret_view(i, pl.UINT32)
        tmp = pl.create_tile([16, 32], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        a = {operand}
        {result} = {expression}
        pl.store({stored}, [0, 0], y)
    return y
"""
RESERVED = "pl.create_tile([16, 32], dtype=pl.FP32, target_memory=pl.Mem.Vec)"
OPERANDS = {
    "loaded": "pl.load(x, [0, 0], [16, 32])",
    "unwritten": RESERVED,
    "top": f"pl.tile.assemble({RESERVED}, pl.load(x, [0, 0], [8, 32]), (0, 0))",
    "narrow": "pl.load(x, [0, 0], [16, 32], valid_shape=[16, 20])",
}
ROWWISE = {
    # expression: (columns and dtype of the result, whether columns beyond the valid 20 of the operand are in it)
    "pl.tile.gather_mask(a, 1)": (16, "FP32", True),
    "pl.sort32(a, u)": (64, "FP32", True),
    "pl.tile.gather(a, i, pl.create_tile([16, 32], dtype=pl.INT32, target_memory=pl.Mem.Vec))": (32, "FP32", True),
    "pl.sel(pl.cmp(a, b, cmp_type=4), b, b, tmp)": (32, "FP32", True),
    "pl.sels(pl.cmps(a, 0.5, cmp_type=4), b, tmp, 0.0)": (32, "FP32", True),
    "pl.sel(pl.cmp(b, a, cmp_type=4), b, b, tmp)": (32, "FP32", True),
    "pl.tile.gatherb(a, pl.reinterpret_view(pl.mul(pl.load(n, [0, 16], [16, 8]), 4), pl.UINT32))": (64, "FP32", True),
    "pl.add(b, a)": (32, "FP32", True),
    "pl.part_add(b, a)": (32, "FP32", False),
    "pl.row_expand_add(b, pl.row_sum(a, tmp))": (32, "FP32", False),
    "pl.row_argmax(a, tmp)": (1, "INT32", False),
    "pl.matmul(a, pl.load(w, [0, 0], [32, 32]))": (32, "FP32", False),
    "pl.add(pl.matmul(a, pl.load(w, [0, 0], [32, 32])), b)": (32, "FP32", False),
    "pl.cast(a, target_type=pl.FP16)": (32, "FP16", False),
}  # fmt: skip
"""A row of the result depends on the row of ``a`` only. Products take it through a queue between cores, and back."""


def compiled(tmp_path: Path, **parts: Any) -> Any:
    path = tmp_path / "generated.py"
    path.write_text(TEMPLATE.format(**parts), "utf-8")
    spec = importlib.util.spec_from_file_location("generated", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def found(findings: Any, tmp_path: Path, expression: str, operand: str, *, top: bool = False) -> list[str]:
    cols, dtype, _ = ROWWISE[expression]
    kernel = compiled(
        tmp_path, cols=cols, dtype=dtype, operand=OPERANDS[operand], expression=expression, result="r",
        stored=f"pl.tile.slice(r, [8, {cols}], [0, 0])" if top else "r",
    )  # fmt: skip
    x = torch.rand(16, 32, generator=torch.Generator().manual_seed(0)) + 0.1
    index = 32 * torch.arange(16, dtype=torch.int32)[:, None] + torch.arange(32, dtype=torch.int32)
    to = torch.zeros(16, cols, dtype={"FP32": torch.float32, "FP16": torch.float16, "INT32": torch.int32}[dtype])
    return [finding.kind for finding in findings(kernel, x, torch.cat([x, x]), index, to)]


@pytest.mark.parametrize("expression", ROWWISE)
def test_an_operation_and_what_it_is_given(findings, tmp_path, expression):
    assert found(findings, tmp_path, expression, "loaded") == []
    assert found(findings, tmp_path, expression, "unwritten") == ["uninit"]
    assert found(findings, tmp_path, expression, "narrow") == (["out-of-valid"] if ROWWISE[expression][2] else [])


@pytest.mark.parametrize("expression", [e for e in ROWWISE if "gatherb" not in e])
def test_rows_that_nobody_has_written_accuse_no_other_rows(findings, tmp_path, expression):
    assert found(findings, tmp_path, expression, "top", top=True) == []
    assert found(findings, tmp_path, expression, "top") == ["uninit"]


REDUCTIONS = {
    # what is made of a tile filled up: whether what fills it up counts
    "pl.row_max(F, tmp)": True,
    "pl.row_sum(F, tmp)": False,
    "pl.row_prod(F, tmp)": True,
    "pl.row_sum(pl.exp(F), tmp)": True,
    "pl.row_max(pl.mul(F, 2.0), tmp)": True,
    "pl.row_max(pl.abs(F), tmp)": False,
    "pl.row_min(F, tmp)": False,
    "pl.row_sum(pl.mul(F, F), tmp)": False,
    "pl.row_sum(pl.exp(G), tmp)": False,
    "pl.row_max(G, tmp)": False,
    "pl.row_min(G, tmp)": True,
    "pl.row_max(pl.set_validshape(F, 16, 20), tmp)": False,
}


@pytest.mark.parametrize(("expression", "counts"), REDUCTIONS.items())
def test_what_fills_a_tile_up_must_be_neutral_where_it_is_reduced(findings, tmp_path, expression, counts):
    narrow = OPERANDS["narrow"]
    for name, pad in (("F", "zero"), ("G", "min")):
        expression = expression.replace(name, f"pl.fillpad({narrow}, pad_value=pl.PadValue.{pad})")
    kernel = compiled(
        tmp_path, cols=1, dtype="FP32", operand=RESERVED, expression=expression, result="r", stored="r"
    )  # fmt: skip
    x = -torch.rand(16, 32, generator=torch.Generator().manual_seed(0)) - 0.1
    n, y = torch.zeros(16, 32, dtype=torch.int32), torch.zeros(16, 1)
    assert [f.kind for f in findings(kernel, x, torch.cat([x, x]), n, y)] == (["out-of-valid"] if counts else [])


@pytest.mark.parametrize(("covered", "kinds"), [(512, []), (511, ["uninit"])])
def test_a_scatter_defines_what_it_hits(findings, tmp_path, covered, kinds):
    kernel = compiled(
        tmp_path, cols=32, dtype="FP32", operand=RESERVED, expression="pl.tile.scatter(a, b, i)", result="r", stored="r"
    )
    index = torch.randperm(512, generator=torch.Generator().manual_seed(1)).int()
    index[covered:] = index[0]
    x, y = torch.rand(16, 32), torch.zeros(16, 32)
    assert [f.kind for f in findings(kernel, x, torch.rand(32, 32), index.reshape(16, 32), y)] == kinds
