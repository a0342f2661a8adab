"""The roofline written beside the other diagnostics of a launch."""

from pypto.perf.counters import read_roofline

from .test_dfx import launched


def test_roofline_bounds_the_launch_it_lies_beside(tmp_path):
    _, folder = launched(tmp_path, enable_chip_swimlane=1)
    roofline = read_roofline(folder / "roofline.json")
    resource, bound_ns = roofline.limit
    assert roofline.bounds_ns.keys() >= {"vector", "GM->UB", "UB->GM"}
    assert 0 < bound_ns <= roofline.effective_ns
    assert roofline.bounds_ns[resource] == max(roofline.bounds_ns.values())
