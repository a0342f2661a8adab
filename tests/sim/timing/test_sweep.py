"""Sweeps over chips: same numbers in this process, in a pool and on Dask."""

import io
import pkgutil
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context

import pandas as pd
import pytest

import pypto.sim
from pypto.sim.chip_sweep import sweep
from pypto.sim.chips import chip
from pypto.sim.timing import time_recording
from pypto.validation.writer import Kernel, Launch


def recording():
    k = Kernel()
    tiles = [k.tile(64, 64) for _ in range(2)]
    for i in range(8):
        k.load(tiles[i % 2], i * 16384).do("texp", [tiles[i % 2]], [tiles[i % 2]]).store(tiles[i % 2], 1 << 24)
    launch = Launch()
    for _ in range(24):
        launch.submit(k)
    return launch.recording()


POINTS = [chip("a2a3").replace(clusters=n, clock_mhz=mhz) for n in (2, 8) for mhz in (1500, 1800)]


def test_rows_hold_what_the_timelines_say():
    table = sweep(recording(), POINTS)
    assert list(table["cores.clusters"]) == [2, 2, 8, 8]
    for row, point in zip(table.to_dict("records"), POINTS):
        t = time_recording(recording(), point)
        assert row["effective_us"] == t.effective_us
        assert sum(v for k, v in row.items() if k.startswith("critical.") and v == v) == pytest.approx(t.effective_us)


def test_a_process_pool_changes_nothing():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        pd.testing.assert_frame_equal(sweep(recording(), POINTS, pool), sweep(recording(), POINTS))


def test_a_dask_client_changes_nothing():
    distributed = pytest.importorskip("distributed")
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        pd.testing.assert_frame_equal(sweep(recording(), POINTS, client), sweep(recording(), POINTS))


class Fails:
    """An executor that begins nothing; the second point fails, or is interrupted."""

    def __init__(self, error):
        self.error, self.futures = error, []

    def submit(self, function, point):
        self.futures.append(future := Future())
        if len(self.futures) == 1:
            future.set_result(function(point))
        if len(self.futures) == 2:
            future.set_exception(self.error)
        return future


@pytest.mark.parametrize("error", [ValueError("no room"), KeyboardInterrupt()])
def test_points_that_have_not_begun_are_cancelled_when_one_fails(error):
    executor = Fails(error)
    with pytest.raises(type(error)):
        sweep(recording(), POINTS, executor)
    assert [future.cancelled() for future in executor.futures] == [False, False, True, True]


def test_a_terminal_shows_how_far_it_is_and_anything_else_sees_nothing(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown, plain = Terminal(), io.StringIO()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", shown)
    table = sweep(recording(), POINTS)
    monkeypatch.setattr("sys.stderr", plain)
    pd.testing.assert_frame_equal(sweep(recording(), POINTS), table)
    assert "chips" in shown.getvalue() and "100%" in shown.getvalue() and not plain.getvalue()


def test_no_module_hides_a_public_name():
    """A module of the same name takes the place of a function as soon as somebody imports it."""
    modules = {module.name for module in pkgutil.iter_modules(pypto.sim.__path__)}
    assert not modules & set(pypto.sim.__all__)
    assert pypto.sim.sweep is sweep


def test_nothing_to_sweep():
    with pytest.raises(ValueError, match="at least one chip"):
        sweep(recording(), [])


@pytest.mark.parametrize(("arguments", "said"), [
    ((recording(), chip("a5")), "several chips"), ((recording(), ["a2a3"]), "descriptions such as.*got 'a2a3'"),
    ((None, POINTS), "takes a Recording.*NoneType"), ((recording(), POINTS, 4), "no submit.*int"),
])  # fmt: skip
def test_what_cannot_be_swept_is_named(arguments, said):
    with pytest.raises(TypeError, match=said):
        sweep(*arguments)
