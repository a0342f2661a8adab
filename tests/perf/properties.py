"""How generated tests run here: the same examples every time, without a stopwatch (kernels compile on first use)."""

from __future__ import annotations

from hypothesis import HealthCheck, settings


def examples(count: int = 100) -> settings:
    """Settings for a test of that many generated examples."""
    return settings(
        max_examples=count, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
