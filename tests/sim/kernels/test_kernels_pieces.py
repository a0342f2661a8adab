"""Pieces of compiled code: linked into what calls them, whoever that is."""

from __future__ import annotations

import ctypes
import gc

import pytest
from numba import njit
from numba.core.errors import TypingError

from pypto.sim.kernels import cache
from pypto.sim.kernels.compilation import Kernel, load_or_compile
from pypto.sim.kernels.pieces import ScalarCompiler, WholeCompiler, piece

part = piece(error_model="numpy")


@part
def scaled(value, factor):
    return value * factor


@part
def bounded(value, factor):
    return min(max(scaled(value, factor), -50), 50)


@part
def both(value):
    return bounded(value, 3) + scaled(value, 7)


@part
def deep(value):
    """Reaches ``scaled`` on three ways of different length."""
    return scaled(value, 2) + both(value) + bounded(value, 5)


def expected(value: int) -> int:
    def clip(x: int) -> int:
        return min(max(x, -50), 50)

    return 2 * value + clip(3 * value) + 7 * value + clip(5 * value)


def caller(value):
    return deep(value)


@pytest.mark.parametrize("compiler", [WholeCompiler, ScalarCompiler])
@pytest.mark.parametrize("value", [-40, 3, 11])
def test_a_whole_holds_every_piece_that_it_reaches(compiler, value):
    assert njit(pipeline_class=compiler)(caller)(value) == expected(value)


def test_callers_that_know_nothing_of_pieces_get_them_too():
    assert njit(caller)(9) == expected(9)


def test_python_may_call_a_piece_before_and_after_compiled_code_does():
    assert deep(12) == expected(12)
    assert njit(pipeline_class=WholeCompiler)(caller)(12) == expected(12)
    assert [deep(12), bounded(100, 1), bounded(-100, 1)] == [expected(12), 50, -50]


def test_a_piece_is_compiled_once_for_all_constants():
    @part
    def power(base, exponent):
        return base**exponent

    @njit(pipeline_class=ScalarCompiler)
    def several(base):
        return power(base, 2) + power(base, 3) + power(base, base)

    assert several(3) == 9 + 27 + 27
    assert len(power.overloads) == 1


@pytest.mark.parametrize("scalar", [False, True])
def test_no_name_of_a_piece_leaves_its_kernel(tmp_path, monkeypatch, scalar):
    """Names of pieces are unique within one process; kernels of several processes are loaded side by side."""
    monkeypatch.setattr(cache, "folder", lambda: tmp_path)

    def body(words):
        words[0] = deep(words[0])
        return 0

    compiled = load_or_compile(Kernel(f"pieces.{scalar}", body, scalar))
    word = ctypes.c_int64(9)
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(compiled.address)(ctypes.addressof(word)) == 0
    assert word.value == expected(9)
    functions = list(compiled._library._final_module.functions)
    visible = [f.name for f in functions if f.linkage.name != "internal" and not f.is_declaration]
    assert visible and all("kernel_pieces" in name for name in visible)
    assert not [f.name for f in functions if f.is_declaration and "test_kernels_pieces" in f.name]


def test_the_collector_runs_again_whatever_happened_to_a_compilation():
    @njit(pipeline_class=WholeCompiler)
    def wrong(value):
        return value + "text"

    assert gc.isenabled()
    with pytest.raises(TypingError):
        wrong(1)
    assert gc.isenabled()
