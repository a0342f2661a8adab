"""The clock against published figures. Rows marked untouched took no part in choosing a constant."""

import pytest

from pypto.sim.chips import chip
from pypto.sim.timing import time_recording
from pypto.sim.timing.banks import sources_clash, write_clashes
from pypto.validation.halves import GROUPS, best_factor
from pypto.validation.operations import precision, precision_of_all, single_operations
from pypto.validation.programs import launched
from pypto.validation.streams import Copies, bank_test, copies

ROWS = single_operations()


def rows_of(family, use=None):
    return [row for row in ROWS if row.family == family and use in (None, row.use)]


@pytest.mark.parametrize("family,least", [("X1", 0.90), ("X3", 0.95)])
def test_single_operations_and_no_worse_on_the_half_that_is_left_out(family, least):
    assert precision(rows_of(family)) >= least
    assert precision(rows_of(family, "untouched")) >= precision(rows_of(family, "fitted")) - 0.05
    assert precision_of_all(rows_of(family, "untouched")) >= precision_of_all(rows_of(family, "fitted")) - 0.05


@pytest.mark.parametrize("use", ["fitted", "untouched"])
def test_either_half_of_the_vector_functions_is_met(use):
    assert precision(rows_of("X3", use)) >= 0.95


def test_every_second_row_of_a_table_is_left_out():
    for family in ("X1", "X3"):
        uses = [row.use for row in rows_of(family)]
        assert uses == [("fitted", "untouched")[i % 2] for i in range(len(uses))]


def test_every_row_is_re_created_and_counts():
    assert all(row.simulated is not None for row in ROWS)
    assert precision_of_all(rows_of("X1")) >= 0.835
    assert not [row for row in ROWS if row.doubt and row.family != "X1"]


def test_a_figure_is_in_doubt_only_when_a_published_limit_forbids_it():
    """More bytes a cycle than any path is said to carry, more repeats than cycles: four of the fifty."""
    doubted = {row.case.split(" T=")[0]: row for row in rows_of("X1") if row.doubt}
    assert sorted(row.published for row in rows_of("X1") if row.doubt) == [5, 5, 2497, 2624]
    assert set(doubted) == {"TLOAD", "TROWMIN"}
    assert "bytes" in doubted["TLOAD"].doubt and "repeats" in doubted["TROWMIN"].doubt


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_the_half_that_is_left_out_asks_for_about_the_same_constants(group):
    fitted, untouched = best_factor(group, "fitted"), best_factor(group, "untouched")
    assert abs(fitted - untouched) <= 0.5
    assert abs(fitted - 1) <= 0.3, "the fitted half is content with the constants in use"


def test_bank_clashes_follow_from_addresses():
    clashes = [
        (sources_clash(0, b), write_clashes(d, [0, b]))
        for b, d in (
            (0x10100, 0x20000),
            (0x4000, 0x10000),
            (0x10000, 0x14100),
            (0x10100, 0x4000),
            (0x10100, 0x4020),
            (0x10100, 0x10100),
        )
    ]
    assert clashes == [(False, False), (True, False), (True, False), (False, False), (False, True), (False, False)]
    free, clash = (vector_us(bank_test(0, b, 0x20000)) for b in (0x10100, 0x4000))
    assert abs(free / 47.8 - 1) < 0.02 and abs(clash / 83.34 - 1) < 0.02


def vector_us(recording):
    return launched(recording, "910B1").pipe_busy_us["V"]


def test_repeated_reads_hit_when_they_fit_and_thrash_when_they_do_not():
    whole = copies(Copies(48, 64, 1024, passes=4))
    quarters = copies(Copies(48, 64, 1024, passes=4, sliced=True))

    def hits(recording):
        records = time_recording(recording, chip("910B1")).records()
        return 1 - sum(r.hbm_bytes for r in records) / sum(r.bytes for r in records)

    assert hits(whole) == 0 and abs(hits(quarters) - 0.75) < 0.01


@pytest.mark.parametrize("platform,part,cores", [("a2a3", "910B1", 24), ("a5", "950PR", 32)])
def test_cores_that_want_the_same_lines_at_a_time_slow_each_other_down(platform, part, cores):
    def busy(order):
        shape = Copies(cores, 256, 64, 2048, 512, order=order, cube=True)
        return launched(copies(shape, platform), part, warm=True).pipe_busy_us["MTE2"]

    assert busy("same") > busy("rotated") * 1.005
