"""Damaged build directories: the error names the file, whatever happened to it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pypto.language as pl
from pypto import ir
from pypto.runtime import configure_log

SHAPE = (16, 32)


@pl.jit
def double(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.load(a, [0, 0], [16, 32])
        pl.store(pl.add(x, x), [0, 0], out)
    return out


@pytest.fixture(scope="module")
def build(tmp_path_factory) -> Path:
    configure_log("error")
    place = tmp_path_factory.mktemp("build") / "double"
    ir.compile(double.lower(torch.zeros(SHAPE), torch.zeros(SHAPE)), platform="a2a3sim", output_dir=str(place))
    return place


def check(directory: Path) -> None:
    a, out = torch.randn(SHAPE), torch.zeros(SHAPE)
    ir.CompiledProgram.from_dir(directory)(a, out)
    assert torch.equal(out, a + a)


def essential(directory: Path) -> list[Path]:
    """The files a load reads."""
    patterns = ("compiled_meta.json", "kernel_config.py", "kernels/*/*.pto", "orchestration/*.orch")
    return [path for pattern in patterns for path in directory.glob(pattern)]


DAMAGES = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "foreign": lambda path: path.write_text("hello world {[\n"),
    "binary": lambda path: path.write_bytes(bytes(range(256))),
    "folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("number", range(4))
def test_the_damaged_file_is_named(build, tmp_path, number, damage):
    copy = shutil.copytree(build, tmp_path / "copy")
    path = essential(copy)[number]
    DAMAGES[damage](path)
    with pytest.raises((FileNotFoundError, ValueError)) as caught:
        check(copy)
    assert path.name in str(caught.value) and str(copy) in str(caught.value)


def test_what_is_only_for_reading_may_be_lost(build, tmp_path):
    copy = shutil.copytree(build, tmp_path / "copy")
    for folder in ("passes_dump", "report"):
        shutil.rmtree(copy / folder, ignore_errors=True)
    check(copy)


def test_a_build_directory_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(NotADirectoryError, match="output_dir '.*file' is a file; name a directory"):
        ir.compile(double.lower(torch.zeros(SHAPE), torch.zeros(SHAPE)), output_dir=str(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "kept"


def test_a_directory_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere is not a build directory"):
        ir.CompiledProgram.from_dir(tmp_path / "nowhere")


@settings(max_examples=30, deadline=None)
@given(number=st.integers(0, 3), share=st.floats(0, 1, exclude_max=True))
def test_a_cut_file_is_named_or_still_means_the_same(build, tmp_path_factory, number, share):
    """A file may lose its last line break; nothing else."""
    copy = shutil.copytree(build, tmp_path_factory.mktemp("cut") / "copy")
    path = essential(copy)[number]
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    try:
        check(copy)
    except (FileNotFoundError, ValueError) as error:
        assert path.name in str(error)
