"""Published workloads against the clock: how far off each family is, and which changes come out the right way."""

from functools import cache

import pytest

from pypto.validation.families import parts
from pypto.validation.report import group_errors, markdown
from pypto.validation.rows import Pair, Row, signs
from pypto.validation.tables import table

QUICK = [part for part in parts() if not {"X1", "C1"} & set(part.families)]
WITHOUT_ROWS = {"P1", "P2", "P3"}


@cache
def rows():
    return [row for part in QUICK for row in part.rows()]


@cache
def pairs():
    return [pair for part in QUICK for pair in part.pairs()]


@pytest.mark.parametrize("group", ["matrix products", "flash attention", "vector and copies", "runtime"])
def test_a_group_of_families_is_as_close_as_asked_for(group):
    error, limit = group_errors(rows())[group]
    assert error <= limit


@pytest.mark.parametrize("families", [("G1", "G2", "G3", "G8"), ("A1", "A2", "A4")])
def test_rows_that_nobody_fitted_are_as_close(families):
    errors = [
        row.error for row in rows() if row.family in families and row.use == "untouched" and row.error is not None
    ]
    assert sum(errors) / len(errors) <= 0.20


def test_nine_in_ten_changes_have_the_right_sign():
    right, wrong, _ = signs(pairs())
    assert right >= 9 * wrong
    assert right + wrong >= 44, "fewer changes are re-created than before"


def test_every_line_of_a_table_has_a_row():
    for part in QUICK:
        for family in part.families:
            found = [row for row in rows() if row.family == family]
            assert len(found) >= len(table(family)), family


def test_what_is_not_re_created_says_why_and_the_rest_is_most():
    assert all(row.reason for row in rows() if row.simulated is None)
    assert all(pair.reason for pair in pairs() if pair.right is None)
    counted = [row for row in rows() if row.family not in WITHOUT_ROWS]
    assert len([row for row in counted if row.simulated is not None]) >= 0.6 * len(counted)


def test_a_sign_is_right_wrong_or_unknown():
    assert Pair("F", "c", 2, 1, 4, 3).right is True
    assert Pair("F", "c", 2, 1, 3, 4).right is False
    assert Pair("F", "c", 2, 1, 3, 3).right is False, "no change where there was one"
    assert Pair("F", "c", 2, 1, 3, None).right is None


def test_the_page_names_every_row_and_every_change():
    few = [Row("G1", "one", "us", 10.0, 11.0), Row("G1", "two", "us", 5.0, reason="too far")]
    page = markdown(few, [Pair("G1", "a -> b", 2, 1, 4, 3), Pair("G1", "c -> d", 2, 1, reason="unknown")])
    assert "| one | us | 10 | 11 | 1.100 | untouched |" in page and "| too far |" in page
    assert "1 of 1 come out with the right sign, 1 are not re-created" in page


def test_the_page_counts_a_doubted_row_and_says_what_the_mean_is_without_it():
    rows = [Row("X1", "a", "cycles", 10.0, 11.0), Row("X1", "b", "cycles", 5.0, 50.0, doubt="too few cycles")]
    page = markdown(rows, [])
    assert "| X1 | untouched | 2 | 0 | 455.0% | 10.0% |" in page
    assert "| b | cycles | 5 | 50 | 10.000 | untouched; doubted: too few cycles |" in page
    assert "X1: mean precision 45.0% over all 2 rows, 90.0% without the 1 doubted ones (asked for 90%" in page
