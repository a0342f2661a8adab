"""Every dump of a compile gives the right results, and the first one that does not is named (spec runtime 14.2)."""

import pytest
import torch

import pypto.language as pl
from pypto import ir
from pypto.debug import validate_pass_ir_codegen_results
from pypto.runtime import configure_log, log_level


@pl.jit
def scaled_sum(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.range(0, 32, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.add(pl.load(a, [r, 0], [16, 32]), pl.load(b, [r, 0], [16, 32]))
            pl.store(pl.mul(t, 2.0), [r, 0], out)
    return out


@pytest.fixture(autouse=True)
def quiet():
    before = log_level()
    configure_log("error")
    yield
    configure_log(before)


@pytest.fixture
def case(tmp_path):
    a, b = torch.randn(32, 32), torch.randn(32, 32)
    out = torch.zeros(32, 32)
    ir.compile(scaled_sum.lower(a, b, out), platform="a5sim", output_dir=str(tmp_path), dump_passes=True)
    return tmp_path / "passes_dump", {"a": a, "b": b, "out": out}, {"out": 2 * (a + b)}


def test_every_dump_is_run_and_compared(case, capsys):
    folder, tensors, expected = case
    validate_pass_ir_codegen_results(folder, tensors, expected, rtol=1e-5, atol=1e-5)
    lines = capsys.readouterr().out.splitlines()
    assert [line[4:] for line in lines[::2]] == sorted(path.name for path in folder.glob("*.py"))
    assert all(
        line.startswith("validate tensor: 'out', max_abs_diff: ") and "pass: True" in line for line in lines[1::2]
    )
    assert not tensors["out"].any(), "the arguments are left as they are"


def test_the_first_wrong_dump_is_named(case):
    folder, tensors, expected = case
    path = sorted(folder.glob("*.py"))[2]
    path.write_text(path.read_text().replace("2.0", "3.0"))
    with pytest.raises(AssertionError, match=rf"first after {path.name}: out \(1 in all\)"):
        validate_pass_ir_codegen_results(folder, tensors, expected)


def test_a_directory_without_dumps(tmp_path):
    with pytest.raises(FileNotFoundError, match="passes_dump"):
        validate_pass_ir_codegen_results(tmp_path, {}, {})
