"""What the figure of a chip may be: checked where a caller sets one, by its unit."""

from __future__ import annotations

import math
from typing import Final

# things that are counted; there is at least one of each
_COUNTS: Final = frozenset({
    "clusters", "cores", "threads", "instructions", "bytes", "repeats", "groups", "tasks", "rings",
})  # fmt: skip
_RATES: Final = frozenset({
    "MHz", "GB/s", "B/cycle", "elements/cycle", "MAC/cycle", "instructions/cycle", "accesses/cycle", "ports",
})  # fmt: skip
_POWERS_OF_TWO: Final = frozenset({"l2_line_bytes", "alignment", "bank_groups"})
_LEAST: Final = {"ring_window": 2, "l2_bytes": 0, "ring_heap": 0, "free_cores": 0}
_LEAST_RATE: Final = 1e-6
_MOST_TIME, _MOST_COUNT, _MOST_RATE, _MOST_ENGINE_CORES = 1e9, 2.0**53, 1e9, 4096  # time in ps has 63 bits


def legal(name: str, unit: str, value: object) -> None:
    """Refuse a figure that no chip can have: ``TypeError`` for no number, ``ValueError`` with the legal range."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} is a number of {unit}, got {type(value).__name__} {value!r}")
    leaf = name.rsplit(".", 1)[-1]
    least, most = _range(leaf, unit)
    whole = unit in _COUNTS or unit == "switch"
    if not math.isfinite(value) or not least <= value <= most or (whole and value != int(value)):
        kind = "a whole number" if whole else "a number"
        raise ValueError(f"{name} is {kind} from {least:g} to {most:g} ({unit}), got {value:g}")
    if leaf in _POWERS_OF_TWO and int(value) & (int(value) - 1):
        lower = 1 << (int(value).bit_length() - 1)
        raise ValueError(f"{name} is a power of two, got {value:g}; the nearest are {lower} and {2 * lower}")


def _range(leaf: str, unit: str) -> tuple[float, float]:
    if unit == "switch":
        return 0, 1
    if unit in ("clusters", "cores", "threads"):
        return _LEAST.get(leaf, 1), _MOST_ENGINE_CORES
    if unit in _COUNTS:
        return _LEAST.get(leaf, 1), _MOST_COUNT
    if unit == "MHz":
        return 1, 1e6
    return (_LEAST_RATE, _MOST_RATE) if unit in _RATES else (0, _MOST_TIME)
