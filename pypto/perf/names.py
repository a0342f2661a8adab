"""Span names: families, the four names statistics rest on, retired spellings (``profiling.md`` 1.6, 2.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Family = Literal["chip", "node", "core", "external", "unknown"]

_LEVEL_FAMILY: dict[str, Family] = {
    "chip": "chip",
    "core": "core",
    "node": "node",
    "network1": "node",
    "network2": "node",
    "network3": "node",
    "ext": "external",
}
NO_INVOCATION_PREFIXES = ("l3.", "node.", "network1.", "network2.", "network3.", "ext.")
"""Families whose ``inv`` is no invocation number; views keyed by invocation exclude them."""


@dataclass(frozen=True)
class RunNames:
    """The span names of one generation of the runtime."""

    run: str

    @property
    def wall(self) -> str:
        return f"{self.run}.runner_run.device_wall"

    @property
    def orch(self) -> str:
        return f"{self.wall}.orch"

    @property
    def sched(self) -> str:
        return f"{self.wall}.sched"

    @property
    def bind(self) -> str:
        return f"{self.run}.bind"

    @property
    def runner_run(self) -> str:
        return f"{self.run}.runner_run"

    @property
    def claim_release(self) -> str:
        return f"{self.run}.claim_release"


CURRENT = RunNames("chip.run")
GENERATIONS = (CURRENT, RunNames("simpler_run"), RunNames("run_prepared"))
"""Newest first; a log of an older runtime is read with its own words."""


def family_of(name: str) -> Family:
    """Family of a span name by its first segment; words nobody reserved are ``unknown`` and kept."""
    first, dot, _ = name.partition(".")
    return _LEVEL_FAMILY.get(first, "unknown") if dot or first == "ext" else "unknown"


def external_producer(name: str) -> str | None:
    """Producer of an ``ext.<producer>.<span>`` name, None when a segment is missing or empty."""
    segments = name.split(".")
    if len(segments) < 3 or segments[0] != "ext" or not all(segments):
        return None
    return segments[1]


def has_invocation(name: str) -> bool:
    """Whether ``inv`` of a span with this name numbers a launch (``profiling.md`` 2.3, both filters)."""
    return not name.startswith(NO_INVOCATION_PREFIXES) and family_of(name) not in ("node", "external")


def in_log_tools(name: str) -> bool:
    """The runtime's own filter: node and external spans are no launches, everything else is kept."""
    return family_of(name) not in ("node", "external")


def names_in(present: frozenset[str] | set[str]) -> RunNames:
    """The newest generation whose run root occurs among the given span names, else the current one."""
    for generation in GENERATIONS:
        if generation.run in present:
            return generation
    return CURRENT
