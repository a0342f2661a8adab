"""RunConfig: defaults, validation, alias, copying (spec runtime 8)."""

import dataclasses
import warnings

import pytest

from pypto.backend import BackendType
from pypto.runtime.run_config import DfxOptions, RunConfig


def test_defaults():
    config = RunConfig()
    assert (config.platform, config.device_id, config.rtol, config.atol) == ("a2a3sim", 0, 1e-5, 1e-5)
    assert not config.any_dfx_enabled() and not config.save_kernels and not config.cold_start
    assert config.strategy.name == "Default" and RunConfig().strategy is config.strategy


@pytest.mark.parametrize("platform, family", [("a2a3", BackendType.Ascend910B), ("a5sim", BackendType.Ascend950)])
def test_the_platform_decides_the_family(platform, family):
    assert RunConfig(platform=platform, backend_type=BackendType.Ascend910B).backend_type is family


@pytest.mark.parametrize(
    "options, error, words",
    [
        ({"platform": "a3"}, ValueError, "Invalid platform 'a3'.*a2a3sim, a5sim, a2a3, a5"),
        ({"platform": None}, ValueError, "Invalid platform"),
        ({"enable_chip_swimlane": "1"}, TypeError, "enable_chip_swimlane"),
        ({"enable_chip_swimlane": 5}, ValueError, r"collection level in \[0, 4\], got 5"),
        ({"ring_task_window": 3}, ValueError, "ring_task_window must be a power of 2 >= 4"),
        ({"ring_task_window": 12}, ValueError, "ring_task_window must"),
        ({"ring_heap": 512}, ValueError, "ring_heap must be a power of 2 >= 1024"),
        ({"ring_heap": 0}, ValueError, "ring_heap must"),
        ({"ring_dep_pool": 2**31}, ValueError, r"ring_dep_pool must be in \[4, INT32_MAX\]"),
        ({"ring_dep_pool": True}, ValueError, "ring_dep_pool must"),
        ({"ring_heap": 1024.0}, ValueError, "ring_heap must"),
        ({"ring_heap": [1024] * 3}, ValueError, "ring_heap must have exactly 4 entries"),
        ({"ring_heap": [1024, 0, False, 0]}, ValueError, "ring_heap entries must"),
        ({"checks": "some"}, ValueError, "checks must be one of"),
        ({"checks_mode": "print"}, ValueError, "checks_mode"),
        ({"poison": "ones"}, ValueError, "poison"),
        ({"threads": 0}, ValueError, "threads"),
        ({"jitter_seed": -1}, ValueError, "jitter_seed"),
        ({"enable_pmu": "2"}, TypeError, "enable_pmu must be an int, got str '2'"),
        ({"enable_dump_args": 2.0}, TypeError, "enable_dump_args must be an int, got float 2.0"),
    ],
)
def test_refused_values_are_named(options, error, words):
    with pytest.raises(error, match=words):
        RunConfig(**options)


def test_ring_lists_are_normalised_and_may_leave_rings_alone():
    assert RunConfig(ring_task_window=(4, 0, 8, 0)).ring_task_window == [4, 0, 8, 0]


@pytest.mark.parametrize("given, level", [(True, 4), (False, 0), (2, 2)])
def test_swimlane_levels(given, level):
    assert RunConfig(enable_chip_swimlane=given).enable_chip_swimlane == level
    assert DfxOptions(enable_chip_swimlane=given).enable_chip_swimlane == level


@pytest.mark.parametrize(
    "option", ["enable_chip_swimlane", "enable_dump_args", "enable_pmu", "enable_dep_gen", "enable_scope_stats"]
)
def test_any_diagnostic_keeps_the_artifacts(option):
    config = RunConfig(**{option: 1})
    assert config.any_dfx_enabled() and config.save_kernels


def test_replace_validates_again_and_assignment_does_not():
    config = RunConfig(platform="a5")
    assert dataclasses.replace(config, device_id=3).platform == "a5"
    config.ring_heap = 3
    with pytest.raises(ValueError, match="ring_heap"):
        dataclasses.replace(config, device_id=1)
    assert {f.name for f in dataclasses.fields(config)} == set(dataclasses.asdict(config))


def test_the_former_swimlane_name():
    with pytest.warns(DeprecationWarning):
        config = RunConfig(enable_l2_swimlane=True)
    assert config.enable_chip_swimlane == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert config.enable_l2_swimlane == 4
    with pytest.warns(DeprecationWarning):
        config.enable_l2_swimlane = 1
    assert config.enable_chip_swimlane == 1
    with pytest.warns(DeprecationWarning), pytest.raises(ValueError, match="pass only enable_chip_swimlane"):
        RunConfig(enable_l2_swimlane=1, enable_chip_swimlane=1)


def test_compile_options_leave_out_what_is_unset():
    options = RunConfig(platform="a5", save_kernels_dir="/tmp/x", dump_passes=True).compile_options()
    assert options["platform"] == "a5" and options["output_dir"] == "/tmp/x" and options["dump_passes"] is True
    assert "diagnostic_phase" not in options
