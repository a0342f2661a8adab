"""Valid regions of windows, unions and reshapes against masks of booleans."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto.ir.operations import results, windows
from pypto.ir.operations.errors import OperandValueError
from pypto.ir.operations.reshape import reshaped_valid

from .written import N


def box(shape, valid):
    """A mask that is true in the first ``valid`` cells of each axis."""
    mask = np.zeros(shape, bool)
    mask[tuple(slice(v) for v in valid)] = True
    return mask


def extent_of(mask):
    """The box at the origin that a mask is, or ``None``."""
    if not mask.any():
        return (0,) * mask.ndim
    ends = tuple(int(axis.max()) + 1 for axis in np.nonzero(mask))
    return ends if (box(mask.shape, ends) == mask).all() else None


@st.composite
def windowed(draw, rank=2, largest=7):
    shape = tuple(draw(st.integers(1, largest)) for _ in range(rank))
    valid = tuple(draw(st.integers(0, extent)) for extent in shape)
    offsets = tuple(draw(st.integers(0, extent - 1)) for extent in shape)
    reach = tuple(draw(st.integers(0, extent - at)) for extent, at in zip(shape, offsets))
    return shape, valid, offsets, reach


@given(windowed())
def test_a_read_window_is_valid_where_the_source_is(case):
    shape, valid, offsets, reach = case
    source = results.tensor(shape, results.DataType.from_string("fp32"), valid)
    found = windows.read_valid(source, offsets, reach, None)
    window = box(shape, valid)[tuple(slice(o, o + r) for o, r in zip(offsets, reach))]
    expected = extent_of(window) if reach != (0, 0) and window.size else None
    if expected is not None and window.any():
        assert found == expected
    elif not window.any():
        assert 0 in found or 0 in reach


@given(windowed())
def test_a_written_window_extends_the_valid_region_only_to_a_box(case):
    shape, valid, offsets, reach = case
    mask = box(shape, valid)
    mask[tuple(slice(o, o + r) for o, r in zip(offsets, reach))] = True
    expected = extent_of(mask)
    starts_empty = 0 in valid
    try:
        found = windows.write_union(shape, valid, offsets, reach)
    except OperandValueError:
        assert expected is None or (starts_empty and offsets != (0, 0))
        return
    if 0 in reach:
        assert found == valid
    else:
        assert found == expected


def test_a_gap_and_an_l_shape_are_refused():
    with pytest.raises(OperandValueError, match=r"\[4, 0\] to \[6, 8\] next to the valid region \[2, 8\]"):
        windows.write_union((8, 8), (2, 8), (4, 0), (2, 8))
    with pytest.raises(OperandValueError, match="no box"):
        windows.write_union((8, 8), (4, 4), (4, 0), (2, 8))


def test_an_undecidable_write_keeps_what_is_known():
    assert windows.write_union((8, 8), (N, 8), (4, 0), (2, 8)) == (N, 8)


def test_rows_appended_at_run_time_extend_the_region():
    assert windows.write_union((64, 8), (N, 8), (N, 0), (2, 8))[1] == 8
    assert windows.dims.text(windows.write_union((64, 8), (N, 8), (N, 0), (2, 8))[0]) == "(n + 2)"


def test_clamp_cuts_the_valid_extent_at_the_edge():
    source = results.tensor((64, 32), results.DataType.from_string("fp32"))
    found = windows.read_valid(source, (N, 0), (16, 32), None, clamp=True)
    assert windows.dims.listing(found) == "[min(max((64 - n), 0), 16), 32]"


SHAPES = st.sampled_from([(4, 6), (24,), (2, 12), (2, 2, 6), (1, 4, 6), (4, 1, 6), (8, 3), (3, 8), (6, 4), (4, 6, 1)])


@given(st.data(), SHAPES, SHAPES)
def test_reshape_maps_the_valid_region_or_refuses_it(data, shape, target):
    valid = tuple(data.draw(st.integers(0, extent)) for extent in shape)
    mask = box(shape, valid).reshape(target)
    try:
        found = reshaped_valid(shape, valid, target)
    except OperandValueError as error:
        assert str(list(valid)) in str(error)
        assert valid != shape and 0 not in valid
        return
    assert (box(target, found) == mask).all()


@given(SHAPES, st.data())
def test_reshape_that_moves_unit_axes_is_never_refused(shape, data):
    valid = tuple(data.draw(st.integers(1, extent)) for extent in shape)
    assert reshaped_valid(shape, valid, (1, *shape)) == (1, *valid)
    assert reshaped_valid((*shape, 1), (*valid, 1), shape) == valid


def test_reshape_examples_of_the_reference():
    assert reshaped_valid((16, 64), (8, 64), (32, 32)) == (16, 32)
    with pytest.raises(OperandValueError, match=r"\[8, 40\] of \[16, 64\] is no box in \[32, 32\]"):
        reshaped_valid((16, 64), (8, 40), (32, 32))
    assert reshaped_valid((1, 64), (1, N), (64, 1)) == (N, 1)
