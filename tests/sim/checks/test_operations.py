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


MERGES = """
import pypto.language as pl

@pl.jit
def kernel(
    x: pl.Tensor[[1, 128], pl.FP32], n: pl.Tensor[[1, 128], pl.INT32], y: pl.Out[pl.Tensor[[1, {cols}], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="task"):
        i = pl.reinterpret_view(pl.load(n, [0, 0], [1, 128]), pl.UINT32)
        all = pl.sort32(pl.load(x, [0, 0], [1, 128]), i)
        a, b, c = (pl.tile.slice(all, [1, 64], [0, 0]), pl.tile.slice(all, [1, 64], [0, 64]),
                   pl.tile.slice(all, [1, 64], [0, 128]))
        tmp = pl.create_tile([1, {wide}], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        merged = {expression}
        y = pl.store({stored}, [0, 0], y)
    return y
"""


def merged(findings: Any, tmp_path: Path, x: torch.Tensor, expression: str, wide: int, kept: int) -> list[Any]:
    stored = "merged" if kept == wide else f"pl.tile.slice(merged, [1, {kept}], [0, 0])"
    path = tmp_path / f"merges_{kept}.py"
    path.write_text(MERGES.format(cols=kept, wide=wide, expression=expression, stored=stored), "utf-8")
    spec = importlib.util.spec_from_file_location("merges", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    index = torch.arange(128, dtype=torch.int32)[None]
    return findings(module.kernel, x, index, torch.zeros(1, kept))


@pytest.mark.parametrize(("lists", "names"), [(2, "a, b"), (3, "a, b, c")])
@pytest.mark.parametrize("seed", range(3))
def test_a_merge_that_stops_early_leaves_the_rest_unwritten(findings, tmp_path, lists, names, seed):
    x = torch.randint(-6, 6, (1, 128), generator=torch.Generator().manual_seed(seed)).float()
    runs = [sorted(x[0, 32 * k : 32 * k + 32].tolist(), reverse=True) for k in range(lists)]
    last, first = max((run[-1], -k) for k, run in enumerate(runs))
    count = 32 + sum(v > last or v == last and k < -first for k, run in enumerate(runs) if k != -first for v in run)
    expression, wide = f"pl.tile.mrgsort({names}, tmp=tmp, exhausted=True)", 64 * lists
    (finding,) = merged(findings, tmp_path, x, expression, wide, wide)
    assert finding.kind == "uninit" and finding.index_ranges == ((0, 1), (2 * count, 2 * count + 1))
    assert "leave exhausted out" in finding.suggestion
    kept = 2 * count // 8 * 8
    assert merged(findings, tmp_path, x, expression, wide, kept) == []
    assert merged(findings, tmp_path, x, expression.replace("True", "False"), wide, wide) == []


@pytest.mark.parametrize(("width", "written"), [(256, 256), (192, 0), (128, 0)])
def test_a_merge_of_runs_writes_whole_groups_of_four(findings, tmp_path, width, written):
    expression = f"pl.tile.mrgsort(pl.tile.slice(all, [1, {width}], [0, 0]), block_len=64)"
    found = merged(findings, tmp_path, rnd_row(), expression, width, width)
    assert [f.kind for f in found] == ([] if width == written else ["uninit"])
    assert all("whole groups of four runs" in f.suggestion and f.index_ranges[1][0] == written for f in found)


def rnd_row() -> torch.Tensor:
    return torch.randn(1, 128, generator=torch.Generator().manual_seed(7))
