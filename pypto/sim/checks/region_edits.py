"""Edits of the author's source that keep the regions of blocks, or of the two lanes of a block, apart."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final, NamedTuple

from pypto.sim.checks.source_edits import Piece, Source, replaced, source_of

_OFFSETS: Final = {"store": 1, "assemble": 2}
"""Operations that write a window, and the argument with its offsets."""


class Side(NamedTuple):
    """The regions along one axis: ``size`` elements each, ``stride`` from one to the next, in an axis of ``extent``."""

    axis: int
    size: int
    stride: int
    extent: int


def block_edits(store: tuple[str, int], launch: tuple[str, int], side: Side) -> list[str]:
    """The line ``store`` with the stride of its blocks as large as a region; nothing where it cannot be told.

    Where there is no room for that many regions they become as small as the stride.
    ``launch``: the line that says how many blocks there are. Both are (file, line).
    """
    source, blocks = source_of(store[0]), _blocks(*launch)
    if source is None or blocks is None or side.stride <= 0:
        return []
    if blocks * side.size > side.extent:
        smaller = _extents(source, store[1], side)
        fits = blocks * side.stride <= side.extent
        return replaced(source, [Piece.of(size, str(side.stride)) for size in smaller]) if fits else []
    factors = [f for place in _places(source, store[1], side.axis) for f in _factors(place, side.stride)]
    return replaced(source, [Piece.of(factor, str(side.size)) for factor in factors])


def lane_edits(store: tuple[str, int], side: Side) -> list[str]:
    """The line ``store`` with a region for each lane."""
    source = source_of(store[0])
    if source is None or 2 * side.size > side.extent:
        return []
    places, lane = list(_places(source, store[1], side.axis)), _lane(source, store[1])
    return replaced(source, [Piece.of(p, f"{_grouped(p)} + {lane} * {side.size}") for p in places]) if lane else []


def _blocks(file: str, line: int) -> int | None:
    """Number of blocks of the launch at a line."""
    source = source_of(file)
    head = source.head(line) if source is not None and line else None
    count = head.call.args[0] if head is not None and head.call.args else None
    return count.value if isinstance(count, ast.Constant) and isinstance(count.value, int) else None


def _statement(source: Source, line: int) -> ast.stmt | None:
    """The innermost statement at a line."""
    around = [s for s in source.paths if s.lineno <= line <= (s.end_lineno or s.lineno)]
    return max(around, key=lambda s: len(source.paths[s]), default=None)


def _places(source: Source, line: int, axis: int) -> Iterator[ast.expr]:
    """What says where along ``axis`` the only window begins (and ends) that is written at a line."""
    statement = _statement(source, line)
    windows: list[list[ast.expr]] = []
    for node in ast.walk(statement) if statement is not None else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _OFFSETS:
            position = _OFFSETS[node.func.attr]
            offsets = node.args[position] if len(node.args) > position else None
            windows.append(list(offsets.elts) if isinstance(offsets, ast.List | ast.Tuple) else [])
    for target in statement.targets if isinstance(statement, ast.Assign) else ():
        if isinstance(target, ast.Subscript):
            windows.append(list(target.slice.elts) if isinstance(target.slice, ast.Tuple) else [target.slice])
    if len(windows) != 1 or axis >= len(windows[0]):
        return
    place = windows[0][axis]
    if isinstance(place, ast.Slice):
        yield from (end for end in (place.lower, place.upper) if end is not None)
    else:
        yield place


def _extents(source: Source, line: int, side: Side) -> Iterator[ast.expr]:
    """The numbers that say how many elements blocks load, or slices hold, along an axis at a line."""
    statement = _statement(source, line)
    for node in ast.walk(statement) if statement is not None else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "load":
            lists = [a.elts for a in node.args[1:3] if isinstance(a, ast.List | ast.Tuple) and len(a.elts) > side.axis]
            if len(lists) == 2 and any(_factors(lists[0][side.axis], side.stride)):
                yield from _equal(lists[1][side.axis], side.size)
        elif isinstance(node, ast.Subscript):
            places = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            place = places[side.axis] if side.axis < len(places) else None
            upper = place.upper if isinstance(place, ast.Slice) else None
            if isinstance(upper, ast.BinOp) and any(_factors(upper.left, side.stride)):
                yield from _equal(upper.right, side.size)


def _equal(node: ast.expr, value: int) -> Iterator[ast.expr]:
    if isinstance(node, ast.Constant) and node.value == value:
        yield node


def _factors(place: ast.expr, stride: int) -> Iterator[ast.expr]:
    """The numbers by which something is multiplied that are the ``stride``."""
    for node in ast.walk(place):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            for side in (node.left, node.right):
                if isinstance(side, ast.Constant) and side.value == stride:
                    yield side


def _lane(source: Source, line: int) -> str:
    """The variable with the number of the lane at a line."""
    statement = _statement(source, line)
    for around in reversed(source.paths[statement] if statement is not None else ()):
        call = around.iter if isinstance(around, ast.For) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "split_aiv":
            return around.target.id if isinstance(around, ast.For) and isinstance(around.target, ast.Name) else ""
    return ""


def _grouped(place: ast.expr) -> str:
    text = ast.unparse(place)
    return text if isinstance(place, ast.Constant | ast.Name | ast.Call | ast.BinOp) else f"({text})"
