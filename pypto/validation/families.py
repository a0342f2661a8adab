"""Every family of published figures: what re-creates it."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache

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


@cache
def begin_ranks() -> Future[list[Row]]:
    """Start the programs of several ranks in a process of their own: ranks are forked, and only a process without
    threads forks safely. They run beside everything else."""
    from .communication import communication

    pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
    future = pool.submit(communication)
    pool.shutdown(wait=False)
    return future


@cache
def _on_ranks() -> tuple[Row, ...]:
    return tuple(begin_ranks().result())


def _several_chips() -> list[Row]:
    return list(_on_ranks())


def parts() -> list[Part]:
    """In the order of the page. What computes values on several ranks comes last: it takes longest."""
    from . import elsewhere, flash, matmuls, memory, operations, operators, registers, rotary, selection, tasks

    return [
        Part("single operations", ("X1", "X2", "X3"), operations.single_operations, _nothing),
        Part("matrix products", ("G1", "G2", "G3", "G8"), matmuls.rows, matmuls.pairs),
        Part("flash attention", ("A1", "A2", "A4"), flash.rows, flash.pairs),
        Part("copies and adds", ("V1", "V2", "V3"), memory.rows, memory.pairs),
        Part("vector functions", ("V4", "V6", "V7"), registers.rows, registers.pairs),
        Part("task graphs and signals", ("R1", "R2", "R3"), tasks.rows, tasks.pairs),
        Part("operators", ("B6",), operators.rows, _nothing),
        Part("selection by sorting", ("V10",), selection.rows, _nothing),
        Part("rotary embedding and streams", ("V13",), rotary.rows, _nothing),
        Part("models and other code bases", ("P1", "P2", "P3"), elsewhere.rows, elsewhere.pairs),
        Part("several chips", ("C1", "C3", "C6"), _several_chips, communication_pairs),
    ]


def communication_pairs() -> list[Pair]:
    """The fused GEMM with AllReduce: sum after product, then overlapped; and its versions."""
    from .elsewhere import history_pairs

    rows = {row.case: row for row in _on_ranks() if row.family == "C1"}
    found = []
    for case, before in rows.items():
        after = rows.get(case.replace("in sequence", "overlapped"))
        if after is not None and after is not before:
            name = case.replace("in sequence", "in sequence -> overlapped")
            figures = before.published, after.published, before.simulated, after.simulated
            found.append(Pair("C1", name, *figures, before.reason))
    return [*found, *history_pairs()]
