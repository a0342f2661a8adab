"""The cache of compiled kernels: several processes, damaged files, folders that cannot be written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pypto.ir.dtype import FP32
from pypto.sim.kernels import cache, catalogue
from pypto.sim.kernels.compilation import load_or_compile

HERE = Path(__file__).parent
PROGRAM = """
import sys
sys.path.insert(0, {here!r})
import numpy as np
from kernel_driver import Tensor, Tile, ok
from pypto.ir.dtype import DataType
from pypto.sim.kernels import compilation
compiled = []
original = compilation.load_or_compile
compilation.load_or_compile = lambda kernel, told: original(kernel, lambda: compiled.append(kernel.name))
for name in sys.argv[1:]:
    dtype = DataType.from_string(name)
    source = np.arange(63).astype(dtype.storage).reshape(7, 9)
    tile = Tile(dtype, 5, 6)
    ok("tload", tile, Tensor(source, dtype), [1, 2], [5, 6], [5, 6])
    assert (tile.array == source[1:6, 2:8]).all(), name
    ok("tadd", tile, tile, tile)
print(",".join(compiled))
"""


def start(folder: Path, *dtypes: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYPTO_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", PROGRAM.format(here=str(HERE)), *dtypes]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def compiled_by(process: subprocess.Popen[str]) -> list[str]:
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return [name for name in output.strip().split(",") if name]


def kept(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_several_processes_fill_one_cache(tmp_path):
    """All get right results; each kernel is compiled by one of them, nothing is torn, nothing else is left behind."""
    crowd = [start(tmp_path, *order) for order in (("int32", "int16"), ("int16", "int32"), ("int32", "int16"))]
    compiled = [name for process in crowd for name in compiled_by(process)]
    assert sorted(compiled) == ["tadd.int16", "tadd.int32", "tload.b16", "tload.b32"]
    assert kept(tmp_path) == ["tadd.int16.kernel", "tadd.int32.kernel", "tload.b16.kernel", "tload.b32.kernel"]
    assert compiled_by(start(tmp_path, "int32", "int16")) == []


def test_kernels_of_different_processes_live_together(tmp_path):
    """One kernel from the cache, its relative compiled beside it: same pieces, other dtype."""
    assert compiled_by(start(tmp_path, "int32")) == ["tload.b32", "tadd.int32"]
    assert compiled_by(start(tmp_path, "int32", "int8")) == ["tload.b8", "tadd.int8"]
    assert compiled_by(start(tmp_path, "int8", "int32")) == []


@pytest.fixture
def place(monkeypatch, tmp_path):
    monkeypatch.setattr(cache, "folder", lambda: tmp_path)
    return tmp_path


def compile_add():
    told = []
    load_or_compile(catalogue.kernel("tadd", [FP32] * 3), lambda: told.append(True))
    return len(told)


DAMAGES = {
    "cut": lambda data: data[:-100],
    "empty": lambda data: b"",
    "flipped": lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_file_is_replaced(place, damage):
    assert compile_add() == 1
    path = place / "tadd.fp32.kernel"
    whole = path.read_bytes()
    path.write_bytes(DAMAGES[damage](whole))
    assert compile_add() == 1
    assert cache.read(path) is not None
    assert compile_add() == 0


def test_without_a_writable_folder_kernels_are_compiled_and_not_kept(monkeypatch, tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("not a folder")
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(blocker))
    assert cache.folder.__wrapped__() is None
    monkeypatch.setattr(cache, "folder", lambda: None)
    assert compile_add() == 1 and not cache.is_kept("tadd.fp32")


def test_a_lock_of_a_process_that_died_holds_nobody_back(place):
    (place / "tadd.fp32.lock").write_bytes(b"")
    assert compile_add() == 1 and kept(place) == ["tadd.fp32.kernel"]


def test_without_locks_everybody_compiles(place, monkeypatch):
    monkeypatch.setattr(cache, "fcntl", None)
    assert compile_add() == 1 and kept(place) == ["tadd.fp32.kernel"]


def test_whoever_waits_is_told(place, monkeypatch, capsys):
    """It never sleeps through: a rank that waits for another one to compile would be taken for one that hangs."""
    import fcntl

    tried = []

    def taken(handle, how):
        tried.append(how)
        if len(tried) < 4:
            raise BlockingIOError

    monkeypatch.setattr(cache.fcntl, "flock", taken)
    monkeypatch.setattr(cache, "_LOOK_AGAIN_S", 0.0)
    monkeypatch.setattr(cache.progress.Progress, "_waits", False)
    assert compile_add() == 1
    assert "waiting for another process" in capsys.readouterr().err
    assert tried == [fcntl.LOCK_EX | fcntl.LOCK_NB] * 4 + [fcntl.LOCK_UN]


def test_a_filled_folder_may_be_read_only(monkeypatch, tmp_path):
    """Only where the user names it: code in a shared temporary folder that somebody else owns is not loaded."""
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path))
    filled = cache.folder.__wrapped__()
    monkeypatch.setattr(cache, "_writable", lambda folder: False)
    assert cache.folder.__wrapped__() == filled
    monkeypatch.delenv("PYPTO_CACHE_DIR")
    monkeypatch.setattr(cache, "_candidates", lambda: [tmp_path])
    assert cache.folder.__wrapped__() is None


def test_full_disk_leaves_no_file_behind(place, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert compile_add() == 1
    assert list(place.iterdir()) == []


def test_default_folder_is_private_to_the_user(monkeypatch, tmp_path):
    monkeypatch.delenv("PYPTO_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = cache.folder.__wrapped__()
    assert found is not None and found.is_relative_to(tmp_path)
    assert found.stat().st_mode & 0o077 == 0


def test_a_new_version_removes_what_was_left_alone_for_a_month(monkeypatch, tmp_path):
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path))
    old, recent = tmp_path / "kernels" / "old", tmp_path / "kernels" / "recent"
    for place in (old, recent):
        place.mkdir(parents=True)
        (place / "tadd.fp32.kernel").write_bytes(b"")
    os.utime(old, (0, 0))
    found = cache.folder.__wrapped__()
    assert sorted(path.name for path in (tmp_path / "kernels").iterdir()) == sorted(["recent", found.name])


@pytest.mark.parametrize("fact", ("numba.__version__", "pypto.__version__", "llvmlite.__version__"))
def test_versions_are_part_of_the_key(monkeypatch, fact):
    before = cache.fingerprint.__wrapped__()
    monkeypatch.setattr(fact, "other")
    assert cache.fingerprint.__wrapped__() != before


def test_processor_and_sources_are_part_of_the_key(monkeypatch, tmp_path):
    before = cache.fingerprint.__wrapped__()
    monkeypatch.setattr(cache.llvm, "get_host_cpu_name", lambda: "other")
    other = cache.fingerprint.__wrapped__()
    assert other != before
    source = tmp_path / "kernel.py"
    source.write_text("changed")
    monkeypatch.setattr(cache, "_sources", lambda: [source])
    assert cache.fingerprint.__wrapped__() not in (before, other)
