"""Every family of published figures: what re-creates it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .rows import Pair, Row


@dataclass(frozen=True)
class Part:
    """A module that re-creates ``families``; ``pairs`` where changes somebody made are among the figures."""

    title: str
    families: tuple[str, ...]
    rows: Callable[[], list[Row]]
    pairs: Callable[[], list[Pair]]


def _nothing() -> list[Pair]:
    return []


def parts() -> list[Part]:
    """In the order of the page. What computes values on several ranks comes last: it takes longest."""
    from . import communication, elsewhere, flash, matmuls, memory, operations, operators, registers, tasks

    return [
        Part("single operations", ("X1", "X2", "X3"), operations.single_operations, _nothing),
        Part("matrix products", ("G1", "G2", "G3", "G8"), matmuls.rows, matmuls.pairs),
        Part("flash attention", ("A1", "A2", "A4"), flash.rows, flash.pairs),
        Part("copies and adds", ("V1", "V2", "V3"), memory.rows, memory.pairs),
        Part("vector functions", ("V4", "V6", "V7"), registers.rows, registers.pairs),
        Part("task graphs and signals", ("R1", "R2", "R3"), tasks.rows, tasks.pairs),
        Part("operators", ("B6",), operators.rows, _nothing),
        Part("models and other code bases", ("V10", "V13", "P1", "P2", "P3"), elsewhere.rows, elsewhere.pairs),
        Part("several chips", ("C1", "C3", "C6"), communication.communication, communication_pairs),
    ]


def communication_pairs() -> list[Pair]:
    """Steps of the fused GEMM with AllReduce."""
    from .elsewhere import history_pairs

    return history_pairs()
