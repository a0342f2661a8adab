"""Checks forced on from outside a program: ``python -m pypto.sim.check`` and the pytest plugin.

They set two environment variables, so that the processes of the ranks and whatever a script starts are checked too.
Findings of launches are kept here; those of other processes come back inside their ``CheckError``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pypto.sim.checks.findings import Finding

CHECKS: Final = "PYPTO_CHECKS"
MODE: Final = "PYPTO_CHECKS_MODE"
_kept: list[Finding] = []
_in_place: ContextVar[bool] = ContextVar("pypto_results_in_place", default=False)


def asked() -> tuple[str | frozenset[str], str] | None:
    """(checks, mode) that are forced, or ``None``."""
    checks = os.environ.get(CHECKS)
    if not checks:
        return None
    kinds = checks if checks in ("none", "cheap", "all") else frozenset(checks.split(","))
    return kinds, os.environ.get(MODE, "raise")


def keep(findings: tuple[Finding, ...]) -> None:
    """Remember what a launch found while checks are forced."""
    if asked() is not None:
        _kept.extend(findings)


def taken() -> list[Finding]:
    """What was found since the last call."""
    found = list(dict.fromkeys(_kept))
    _kept.clear()
    return found


@contextmanager
def results_in_place() -> Iterator[None]:
    """Launches of the body repeat one call and leave their results in its arguments (handles, benchmarks).

    Forced checks then say nothing about the part of an output that such a call leaves out: the poison stays there for
    whoever reads it. Checks that a configuration asks for are not touched.
    """
    token = _in_place.set(True)
    try:
        yield
    finally:
        _in_place.reset(token)


def whole_outputs() -> bool:
    """Whether every byte of an output must be written where checks are forced."""
    return not _in_place.get()


@contextmanager
def forced(checks: str, mode: str) -> Iterator[None]:
    """Run the body with ``checks`` (as in ``RunConfig``, a set as names with commas) made by every launch."""
    before = {name: os.environ.get(name) for name in (CHECKS, MODE)}
    os.environ[CHECKS], os.environ[MODE] = checks, mode
    _kept.clear()
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
