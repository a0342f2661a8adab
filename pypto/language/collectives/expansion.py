"""What a transfer or a collective is expanded to."""

from __future__ import annotations

from typing import Any

from pypto.ir import nodes as ir

Expansion = tuple[Any, list[ir.Expr]]
"""An inline function and its arguments."""
