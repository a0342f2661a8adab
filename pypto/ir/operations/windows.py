"""Windows into tiles and tensors: legality and the valid region of what is read or written (spec ops 1.10)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from pypto.ir.nodes import Dim
from pypto.ir.operations import dims
from pypto.ir.operations.errors import OperandValueError
from pypto.ir.operations.results import Shaped, fully_valid


def is_one_run(window: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether the rows of a window are consecutive rows of a tile, which holds its leading axes as one."""
    leading = list(zip(window[:-1], shape[:-1]))
    first = next((k for k, (own, _) in enumerate(leading) if own != 1), len(leading))
    return all(own == whole for own, whole in leading[first + 1 :])


def positions(extents: Sequence[int]) -> list[tuple[int, ...]]:
    """Every index of a box, the last axis running fastest."""
    return list(product(*map(range, extents)))


def need_offsets(offsets: Sequence[Dim], rank: int, name: str = "offsets") -> None:
    """``ValueError`` unless there is one offset per axis and none is provably negative."""
    if len(offsets) != rank:
        raise OperandValueError(f"{name} {dims.listing(offsets)} has {len(offsets)} entries for {rank} axes")
    for axis, offset in enumerate(offsets):
        if dims.less(offset, 0):
            raise OperandValueError(f"{name}[{axis}] is {dims.text(offset)}; it must not be negative")


def need_inside(
    offsets: Sequence[Dim],
    reach: Sequence[Dim],
    extents: Sequence[Dim],
    what: str,
    clamp: bool = False,
    remedy: str = "",
) -> None:
    """``ValueError`` when the window ``offsets : offsets + reach`` provably leaves ``extents``.

    ``remedy`` ends the message of a window that fits nowhere.
    """
    for axis, (offset, length, extent) in enumerate(zip(offsets, reach, extents)):
        if dims.less(extent, length) and not clamp:
            raise OperandValueError(
                f"the window spans {dims.text(length)} of axis {axis}, but the {what} has {dims.text(extent)}{remedy}"
            )
        if not clamp and dims.less(extent, dims.add(offset, length)):
            end = dims.text(dims.add(offset, length))
            raise OperandValueError(
                f"the window {dims.text(offset)}:{end} of axis {axis} ends outside the {what}, which has "
                f"{dims.text(extent)}; the last legal offset is {dims.text(dims.sub(extent, length))}"
            )


def read_valid(
    source: Shaped,
    offsets: Sequence[Dim],
    window: Sequence[Dim],
    requested: Sequence[Dim] | None,
    clamp: bool = False,
) -> tuple[Dim, ...]:
    """Valid shape of a window: what was asked for, cut where the source's valid region ends.

    ``offsets`` and ``window`` cover every axis of the source. A fully valid source without ``clamp`` is trusted.
    """
    wanted = tuple(window if requested is None else requested)
    if fully_valid(source) and not clamp:
        return wanted
    result = []
    for valid, offset, extent, ask in zip(source.valid_shape, offsets, window, wanted):
        rest = dims.minimum(dims.maximum(dims.sub(valid, offset), 0), extent)
        result.append(dims.minimum(ask, rest))
    return tuple(result)


def need_request(requested: Sequence[Dim], window: Sequence[Dim]) -> None:
    """``ValueError`` when a requested valid shape has another rank or provably exceeds the window."""
    if len(requested) != len(window):
        raise OperandValueError(
            f"valid_shape {dims.listing(requested)} and window {dims.listing(window)} differ in rank"
        )
    for axis, (ask, extent) in enumerate(zip(requested, window)):
        if dims.less(extent, ask) or dims.less(ask, 0):
            raise OperandValueError(
                f"valid_shape[{axis}] is {dims.text(ask)}; legal: 0 to {dims.text(extent)}, the window's extent"
            )


def write_union(
    shape: Sequence[Dim], valid: Sequence[Dim], offsets: Sequence[Dim], reach: Sequence[Dim]
) -> tuple[Dim, ...]:
    """Valid shape of a destination after ``offsets : offsets + reach`` was written; ``ValueError`` for a gap or an L.

    Only what is provable is refused or narrowed; an undecidable region keeps the destination's valid shape.
    """
    if dims.all_equal(valid, shape) or any(dims.equal(r, 0) for r in reach):
        return tuple(valid)
    if any(dims.equal(v, 0) for v in valid):
        if any(dims.differ(offset, 0) for offset in offsets):
            raise OperandValueError(
                f"the destination is empty, so the first write must start at 0, not at {dims.listing(offsets)}"
            )
        return tuple(reach)
    ends = [dims.add(offset, length) for offset, length in zip(offsets, reach)]
    if all(dims.equal(o, 0) for o in offsets) and all(dims.at_most(v, e) for v, e in zip(valid, ends)):
        return tuple(ends)
    if all(dims.at_most(e, v) for e, v in zip(ends, valid)):
        return tuple(valid)
    return _extended(valid, offsets, ends)


def _extended(valid: Sequence[Dim], offsets: Sequence[Dim], ends: Sequence[Dim]) -> tuple[Dim, ...]:
    whole = [dims.equal(o, 0) and dims.equal(e, v) for o, e, v in zip(offsets, ends, valid)]
    grown = [axis for axis, same in enumerate(whole) if not same]
    if len(grown) == 1 and dims.at_most(offsets[grown[0]], valid[grown[0]]):
        axis = grown[0]
        return tuple(ends[axis] if k == axis else v for k, v in enumerate(valid))
    if _decided(valid, offsets, ends):
        raise OperandValueError(
            f"writing {dims.listing(offsets)} to {dims.listing(ends)} next to the valid region "
            f"{dims.listing(valid)} leaves no box; extend one axis where it ends, or write at 0"
        )
    return tuple(valid)


def _decided(*lists: Sequence[Dim]) -> bool:
    return all(dims.constant(value) is not None for values in lists for value in values)
