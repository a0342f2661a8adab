"""Chip descriptions: provenance, replacement, capacities, pickling."""

import pickle

import pytest

from pypto.sim.chips import SKUS, chip


@pytest.mark.parametrize("name", ["a2a3", "a5", *SKUS])
def test_every_constant_has_unit_source_and_confidence(name):
    table = chip(name).constants()
    assert len(table) > 100
    assert all(row.unit and row.source and row.confidence in "MVFDG" for row in table)
    assert len({row.name for row in table}) == len(table)


@pytest.mark.parametrize("name,space,capacity,alignment", [
    ("a2a3", "vec", 188416, 128), ("a2a3", "mat", 524288, 128), ("a2a3", "left", 65536, 64),
    ("a2a3", "right", 65536, 64),
    ("a2a3", "acc", 131072, 128), ("a2a3", "bias", 1024, 64),
    ("a5", "vec", 245760, 128), ("a5", "acc", 262144, 128), ("a5", "bias", 4096, 64), ("a5", "leftscale", 4096, 32),
])
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


def test_chips_are_values():
    for name in ("a2a3", "a5", "910B4"):
        c = chip(name)
        assert pickle.loads(pickle.dumps(c)) == c and hash(c) == hash(chip(name))
    assert chip("910B4").memory.hbm_gbps.value == chip("a2a3").memory.hbm_gbps.value / 2
    assert chip("a5sim") is chip("a5")


def test_unknown_chip():
    with pytest.raises(ValueError, match="910B1"):
        chip("910B")
