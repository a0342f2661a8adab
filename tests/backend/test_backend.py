"""Platforms, the selected family, the parts of a chip (spec runtime 1.1)."""

import pytest

from pypto import backend
from pypto.backend import BackendType, find_platform, sim_platform_of


@pytest.fixture(autouse=True)
def unselected():
    backend.reset_for_testing()
    yield
    backend.reset_for_testing()


def test_the_four_platforms_in_canonical_order():
    assert list(backend.PLATFORMS) == ["a2a3sim", "a5sim", "a2a3", "a5"]
    assert [p.clocked for p in backend.PLATFORMS.values()] == [False, False, True, True]
    assert find_platform("a5").backend_type is BackendType.Ascend950 and find_platform("a5").sim_name == "a5sim"
    assert [sim_platform_of(t) for t in BackendType] == ["a2a3sim", "a5sim"]


@pytest.mark.parametrize("name", ["a3", "", None, []])
def test_any_other_platform_is_invalid(name):
    with pytest.raises(ValueError, match="Invalid platform"):
        find_platform(name)


def test_one_family_is_selected_until_reset():
    assert not backend.is_backend_configured()
    with pytest.raises(RuntimeError, match="no backend type is set"):
        backend.get_backend_type()
    backend.set_backend_type(BackendType.Ascend950)
    backend.set_backend_type(BackendType.Ascend950)
    with pytest.raises(ValueError, match="Backend type already set to Ascend950"):
        backend.set_backend_type(BackendType.Ascend910B)
    assert backend.get_backend_instance().name == "Ascend950"
    backend.reset_for_testing()
    backend.set_backend_type(BackendType.Ascend910B)
    assert backend.get_backend_type() is BackendType.Ascend910B
    with pytest.raises(TypeError, match="expects a BackendType"):
        backend.set_backend_type("Ascend950")


@pytest.mark.parametrize(
    "made, arch, clusters, acc_kib", [(backend.Backend910B(), "a2a3", 24, 128), (backend.Backend950(), "a5", 32, 256)]
)
def test_the_parts_of_a_chip(made, arch, clusters, acc_kib):
    (die,) = made.soc.dies
    assert made.arch == made.soc.name == arch and len(die.clusters) == clusters
    assert [core.kind for core in die.clusters[0].cores] == ["aic", "aiv", "aiv"]
    cube, vector, _ = die.clusters[0].cores
    assert cube.memory("acc").capacity_bytes == acc_kib * 1024
    assert vector.memory("vec").capacity_bytes > 180 * 1024
    with pytest.raises(KeyError, match="an aiv core has no memory 'acc'; it has vec"):
        vector.memory("acc")
