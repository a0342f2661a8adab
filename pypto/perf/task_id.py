"""Task ids of the device runtime: ``(ring << 32) | local`` (``profiling.md`` 0)."""

from __future__ import annotations


def ring_of(task_id: int) -> int:
    """Ring that a task was submitted to."""
    return task_id >> 32


def local_of(task_id: int) -> int:
    """Number of a task within its ring."""
    return task_id & 0xFFFFFFFF


def display_id(task_id: int) -> str:
    """``t<local>`` on ring 0, else ``r<ring>t<local>`` with the ring cut to 8 bits."""
    ring = ring_of(task_id) & 0xFF
    return f"r{ring}t{local_of(task_id)}" if ring else f"t{local_of(task_id)}"
