"""The catalogue: choice of kernel, its errors, what is shown while compiling."""

from __future__ import annotations

import re

import pytest

from pypto.ir.dtype import FP16, FP32, INDEX, INT32, INT64
from pypto.ir.instructions import INSTRUCTIONS, lookup
from pypto.sim.kernels import catalogue, progress
from pypto.sim.kernels.compilation import load_or_compile
from pypto.sim.kernels.support import UnsupportedDtype


def test_kernels_are_shared_between_dtypes_of_one_width():
    window = [None, None, None]
    assert catalogue.address("tload", [FP32, FP32, *window]) == catalogue.address("tload", [INT32, INT32, *window])
    assert catalogue.address("tadd", [FP32] * 3) != catalogue.address("tadd", [INT32] * 3)
    assert catalogue.address("tadd", [INDEX] * 3) == catalogue.address("tadd", [INT64] * 3)


def test_addresses_of_a_program_keep_their_order():
    requests = [("tadd", [FP32] * 3), (lookup("texp"), [FP32] * 2), ("tadd", [FP32] * 3)]
    first, second, third = catalogue.addresses(requests)
    assert first == third != second


def test_error_names_operands_dtypes_and_legal_ones():
    with pytest.raises(UnsupportedDtype) as caught:
        catalogue.address("tadd", [FP32, FP32, FP16])
    message = "tadd: no kernel for dst: fp32, a: fp32, b: fp16; legal: equal dtypes out of fp32, fp16,"
    assert str(caught.value).startswith(message)
    with pytest.raises(UnsupportedDtype, match="texp: no kernel for dst: int32, a: int32; legal"):
        catalogue.address("texp", [INT32, INT32])
    with pytest.raises(UnsupportedDtype, match="tpush_to_aiv: executed by the machine"):
        catalogue.address("tpush_to_aiv", [FP32])
    with pytest.raises(ValueError, match="tadd: 2 dtypes for 3 operands"):
        catalogue.address("tadd", [FP32, FP32])


def test_names_identify_kernels():
    """Two different bodies under one name would share a cache file."""
    names = {}
    for row in INSTRUCTIONS.values():
        for dtype in (FP32, FP16, INT32):
            try:
                made = catalogue.kernel(row, [None if o.kind in ("scalar", "list") else dtype for o in row.operands])
            except UnsupportedDtype:
                continue
            names.setdefault(made.name, set()).add((row.kernel, row.variant))
    assert len(names) > 150
    assert all(len(origins) == 1 for origins in names.values())


PIECE = re.compile(r"\bcall\b[^@\n]*@\"?([^\"(]+)")


@pytest.mark.parametrize("mnemonic", ("tload", "tmov", "tmatmul", "tcvt"))
def test_no_piece_survives_as_a_call(mnemonic, monkeypatch, tmp_path):
    """Calls between compiled functions would be resolved by symbols that are unique in one process only."""
    monkeypatch.setattr("pypto.sim.kernels.cache.folder", lambda: tmp_path)
    row = lookup(mnemonic)
    dtypes = [None if o.kind in ("scalar", "list") else FP16 for o in row.operands]
    if mnemonic in ("tmatmul", "tcvt"):
        dtypes[0] = FP32 if mnemonic == "tmatmul" else INT32
    compiled = load_or_compile(catalogue.kernel(row, dtypes))
    called = set(PIECE.findall(compiled._library.get_llvm_str()))
    own = f"kernel_{compiled.__name__}"
    runtime = ("llvm.", "NRT_", "Py", "numba_", "pypto_sgemm")
    assert {name for name in called if own not in name and not name.startswith(runtime)} == set()


class Clock:
    def __init__(self):
        self.now = 5.0

    def monotonic(self):
        return self.now


def test_quick_compilations_are_silent_and_slow_ones_take_one_line(monkeypatch, capsys):
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    monkeypatch.setattr(progress.Progress, "_told", False)
    with progress.Progress(12) as shown:
        for _ in range(10):
            shown.compiling("tadd.fp32")
            clock.now += 0.1
    assert capsys.readouterr().err == ""
    with progress.Progress(3) as shown:
        for _ in range(3):
            shown.compiling("tadd.fp32")
            clock.now += 0.7
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and told.startswith("pypto: compiling") and "first use" in told


def test_a_slow_compilation_is_told_before_it_starts(monkeypatch, capsys):
    monkeypatch.setattr(progress.Progress, "_told", False)
    with progress.Progress(1, slow=True) as shown:
        shown.compiling("machine")
        assert "first use" in capsys.readouterr().err


def test_status_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress.Progress(2) as shown:
        shown.compiling("texp.fp32")
        shown.compiling("tlog.fp32")
    assert "2 of 2, tlog.fp32" in capsys.readouterr().err
