"""Chip descriptions: provenance, replacement, capacities, pickling."""

import math
import pickle
import re

import pytest

from pypto.sim.chips import SKUS, chip


@pytest.mark.parametrize("name", ["a2a3", "a5", *SKUS])
def test_every_constant_has_unit_source_and_confidence(name):
    table = chip(name).constants()
    assert len(table) > 100
    assert all(row.unit and row.source and row.confidence in "MVFDG" for row in table)
    assert len({row.name for row in table}) == len(table)


@pytest.mark.parametrize(
    "name,space,capacity,alignment",
    [
        ("a2a3", "vec", 188416, 128),
        ("a2a3", "mat", 524288, 128),
        ("a2a3", "left", 65536, 64),
        ("a2a3", "right", 65536, 64),
        ("a2a3", "acc", 131072, 128),
        ("a2a3", "bias", 1024, 64),
        ("a5", "vec", 245760, 128),
        ("a5", "acc", 262144, 128),
        ("a5", "bias", 4096, 64),
        ("a5", "leftscale", 4096, 32),
    ],
)
def test_memory_spaces(name, space, capacity, alignment):
    got = chip(name).space(space)
    assert (got.capacity_bytes, got.alignment_bytes) == (capacity, alignment)


def test_a_space_that_the_chip_has_not_is_named_with_those_it_has():
    with pytest.raises(KeyError, match="leftscale.*vec, mat"):
        chip("a2a3").space("leftscale")


def test_replace_leaves_the_original_alone_and_says_where_the_value_came_from():
    base = chip("a2a3")
    fast = base.replace(clusters=6, clock_mhz=3600)
    assert (fast.clusters, fast.clock_mhz, fast.vector_cores) == (6, 3600, 12)
    assert (base.clusters, base.clock_mhz) == (24, 1800)
    assert "set by the caller" in fast.cores.clusters.source
    assert base.replace(**{"gm_ub.hit_rate": 80}).gm_ub.hit_rate.value == 80
    assert base.replace(**{"vector.ops.exp.slope": 3}).vector.ops["exp"].slope.value == 3


def test_replace_refuses_unknown_and_ambiguous_names():
    with pytest.raises(KeyError, match="near: clusters"):
        chip("a2a3").replace(cluster=6)
    with pytest.raises(KeyError, match="ambiguous.*gm_ub.hit_rate"):
        chip("a2a3").replace(hit_rate=6)


@pytest.mark.parametrize("name", ["a2a3", "a5", *SKUS])
def test_figures_in_use_are_legal_and_negative_ones_are_not(name):
    for row in chip(name).constants():
        chip(name).replace(**{row.name: row.value})
        for wrong in (-1, math.nan, math.inf, -math.inf, 1e30):
            with pytest.raises(ValueError, match=rf"{row.name} is .* from .* to .*{re.escape(row.unit)}"):
                chip(name).replace(**{row.name: wrong})
        for no_number in ("8", None, True):
            with pytest.raises(TypeError, match=f"{row.name} is a number of"):
                chip(name).replace(**{row.name: no_number})


@pytest.mark.parametrize(("figure", "wrong", "said"), [
    ("clusters", 0, "whole number from 1"), ("clusters", 2.5, "whole number"), ("scheduler_threads", 0, "from 1"),
    ("ring_window", 1, "from 2"), ("clock_mhz", 0, "from 1"), ("gm_ub.hit_rate", 0, "from 1e-06"),
    ("unit_flag", 2, "from 0 to 1"), ("l2_line_bytes", 500, "power of two.*256 and 512"),
])  # fmt: skip
def test_figures_that_no_chip_can_have_are_refused_with_what_is_legal(figure, wrong, said):
    with pytest.raises(ValueError, match=f"{figure} is .*{said}"):
        chip("a2a3").replace(**{figure: wrong})


def test_chips_are_values():
    for name in ("a2a3", "a5", "910B4"):
        c = chip(name)
        assert pickle.loads(pickle.dumps(c)) == c and hash(c) == hash(chip(name))
    assert chip("910B4").memory.hbm_gbps.value == chip("a2a3").memory.hbm_gbps.value / 2
    assert chip("a5sim") is chip("a5")


def test_unknown_chip():
    with pytest.raises(ValueError, match="910B1"):
        chip("910B")
    for wrong, near in (("A2A3", "a2a3"), ("910b2", "910B2")):
        with pytest.raises(ValueError, match=f"did you mean '{near}'"):
            chip(wrong)
    with pytest.raises(ValueError, match="unknown chip None"):
        chip(None)
