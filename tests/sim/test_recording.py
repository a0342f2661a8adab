"""Recordings as files, and what cannot be recorded or timed: named, with what would be legal."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pypto.language as pl
from pypto import ir
from pypto.sim import Recording, record


@pl.jit
def twice(x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]) -> pl.Tensor[[64, 64], pl.FP32]:
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.store(pl.mul(pl.load(x, [0, 0], [64, 64]), 2.0), [0, 0], y)
    return y


X = torch.ones(64, 64)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return ir.compile(twice.lower(X, X), platform="a2a3", output_dir=tmp_path_factory.mktemp("twice"))


@pytest.fixture(scope="module")
def saved(compiled, tmp_path_factory):
    path = tmp_path_factory.mktemp("recording") / "twice.npz"
    record(compiled, [X, X]).save(path)
    return path


def test_outputs_can_be_left_out_and_rows_need_not_be_contiguous(compiled):
    whole = record(compiled, [X, torch.zeros(64, 64)]).digest()
    assert record(compiled, [X]).digest() == whole
    assert record(compiled, [torch.ones(64, 128)[:, ::2], torch.zeros(64, 64)]).digest() == whole


@pytest.mark.parametrize("values", [True, False])
@pytest.mark.parametrize(("arguments", "said"), [
    ([X.half(), X], "'x' expects dtype torch.float32.*float16"), ([X[:32], X], "'x' expects shape"),
    ([X, X, X], "expects 2"), ([], "expects 2"), ([1.0, X], "'x' is a tensor"),
])  # fmt: skip
def test_arguments_that_a_launch_refuses_are_refused(compiled, arguments, said, values):
    with pytest.raises(TypeError, match=said):
        record(compiled, arguments, values=values)


@pytest.mark.parametrize("program", [None, twice, "a2a3"])
def test_what_is_no_compiled_program_is_named(program):
    with pytest.raises(TypeError, match=rf"compiled program of one chip.*{type(program).__name__}"):
        record(program, [X, X])


def test_a_chip_is_a_description_and_so_is_a_state(compiled):
    with pytest.raises(TypeError, match="description such as.*got 'a5'"):
        record(compiled, [X, X]).time("a5")
    with pytest.raises(TypeError, match="state is a DeviceState.*got 'warm'"):
        record(compiled, [X, X]).time(state="warm")
    with pytest.raises(TypeError, match="values is True or False, got str 'no'"):
        record(compiled, [X, X], values="no")


def outcome(path):
    """Digest of what is read from a file, None when it is refused as it should be."""
    try:
        return Recording.load(path).digest()
    except ValueError as error:
        assert str(path) in str(error)
        return None


@given(cut=st.integers(0, 1 << 14), data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_files_are_refused_by_name(saved, tmp_path, cut, data):
    good, damaged = saved.read_bytes(), tmp_path / "damaged.npz"
    damaged.write_bytes(good[: cut % len(good)])
    assert outcome(damaged) is None
    at = data.draw(st.integers(0, len(good) - 1))
    damaged.write_bytes(good[:at] + bytes([good[at] ^ data.draw(st.integers(1, 255))]) + good[at + 1 :])
    assert outcome(damaged) in (None, outcome(saved))


def test_a_directory_with_any_bit_wrong_is_refused_by_name(saved, tmp_path):
    good, damaged = saved.read_bytes(), tmp_path / "damaged.npz"
    entry = good.index(b"PK\x01\x02")
    for at in range(entry + 4, entry + 14):  # versions, flags, compression
        for bit in range(8):
            damaged.write_bytes(good[:at] + bytes([good[at] ^ 1 << bit]) + good[at + 1 :])
            assert outcome(damaged) in (None, outcome(saved)), (at - entry, bit)


def test_arrays_that_are_missing_or_do_not_fit_are_named(saved, tmp_path):
    with np.load(saved) as archive:
        arrays = dict(archive)
    free = {"facts", "arguments", "allocations", "task_slot", "events"}  # of any length
    for name in arrays:
        if name == "facts":
            continue
        np.savez(tmp_path / "less.npz", **{k: v for k, v in arrays.items() if k != name})
        with pytest.raises(ValueError, match=f"damaged recording.*{name}"):
            Recording.load(tmp_path / "less.npz")
        if len(arrays[name]) and name not in free:
            np.savez(tmp_path / "less.npz", **{**arrays, name: arrays[name][:-1]})
            with pytest.raises(ValueError, match="damaged recording"):
                Recording.load(tmp_path / "less.npz")


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text").write_text("hello")
    (tmp_path / "empty").touch()
    np.save(tmp_path / "one.npy", np.zeros(3))
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    for name in ("text", "empty", "one.npy", "other.npz", ""):
        with pytest.raises(ValueError, match="no recording"):
            Recording.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        Recording.load(tmp_path / "missing.npz")
