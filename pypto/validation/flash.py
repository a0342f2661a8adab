"""Flash attention families: A1 and A4 by sequence length, A2 by core count."""

from __future__ import annotations

from functools import cache

from pypto.sim.chips import chip

from .attention import ROWS, Attention, attention
from .programs import Launched, launched
from .rows import Pair, Row
from .tables import table

_CLUSTERS = 24
_LONGEST = 16384  # sequences beyond are timed on one round of queries


@cache
def _run(queries: int, keys: int, clusters: int, part: str) -> Launched:
    return launched(attention(Attention(queries, keys, clusters)), part)


def _task_us(length: int, part: str) -> float:
    if length <= _LONGEST:
        return _run(length, length, _CLUSTERS, part).task_us
    # the cores repeat one round after the other; two runs give the round and what is spent once
    one = _run(ROWS * _CLUSTERS, length, _CLUSTERS, part)
    rounds = -(-length // (ROWS * _CLUSTERS))
    return one.task_us + (rounds - 1) * one.core_us


def _launch_floor_us(part: str) -> float:
    """The host issues launches no faster than this (spec hardware 13, one call of run)."""
    return chip(part).host.run.value / 1000


def rows() -> list[Row]:
    """A1, A2, A4."""
    found = []
    for line in table("A1"):
        length = int(line["seq"])
        found.append(Row("A1", f"S = {length} (910B2)", "us", float(line["pto_us"]), _task_us(length, "910B2")))
    for line in table("A2"):
        cores, keys = int(line["cores"]), int(line["S1"])
        us = max(_run(int(line["S0"]), keys, cores, "910C").task_us, _launch_floor_us("910C"))
        found.append(Row("A2", f"{cores} cores, {keys} keys", "us", float(line["time_us"]), us))
    for line in table("A4"):
        length = int(line["S"])
        us = _task_us(length, "910C")
        note = "" if length <= _LONGEST else ", from one round"
        found.append(Row("A4", f"S = {length}, readme{note}", "us", float(line["readme_dsl_us"]), us))
        floored = max(us, _launch_floor_us("910C"))
        found.append(Row("A4", f"S = {length}, recipe{note}", "us", float(line["recipe_pto_us"]), floored))
    return found


def pairs() -> list[Pair]:
    """The tables compare libraries, not versions of one kernel."""
    return []
