"""Scalars: which block, which lane, how many (spec ops 16), and the larger or smaller of two (spec ops 1.14)."""

from __future__ import annotations

from functools import partial
from typing import Any

from pypto.ir.dtype import INDEX, INT32
from pypto.ir.nodes import Expr, ScalarType, Type
from pypto.ir.operations import scalars
from pypto.ir.operations.row import Lowering
from pypto.ir.operations.table import define


def _index() -> Type:
    return ScalarType(INDEX)


def _int32() -> Type:
    return ScalarType(INT32)


def _extremum(_op: str, lhs: Any, rhs: Any) -> Type | Expr:
    return scalars.binary(_op, lhs, rhs)


for _name, _mnemonic, _summary in (
    ("get_block_idx", "sblockidx", "index of this block in its launch; 0 outside one"),
    ("get_block_num", "sblocknum", "number of blocks of the launch; 1 outside one"),
    ("get_subblock_idx", "ssubblock", "index of this vector lane in its cluster; 0 outside a split"),
):
    for _level in ("tensor", "tile"):
        define(
            f"{_level}.{_name}",
            _index,
            promoted=(_name,) if _level == "tensor" else (),
            kind="system",
            spec="16",
            lowering=Lowering(_mnemonic, ()),
            summary=_summary,
        )
for _name, _summary in (
    ("available_cluster_count", "clusters that a launch may use on this device"),
    ("available_aiv_count", "vector cores that a launch may use on this device"),
):
    define(f"system.{_name}", _int32, kind="system", spec="16", summary=_summary)
for _op in ("max", "min"):
    define(
        f"tile.{_op}",
        partial(_extremum, _op),
        promoted=(_op,),
        kind="elementwise",
        spec="4",
        summary=f"the {'larger' if _op == 'max' else 'smaller'} of two scalars",
    )
