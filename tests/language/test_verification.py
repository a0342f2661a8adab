"""Rules of whole programs, warnings and performance hints (spec language 8.3, 8.4)."""

import pytest

import pypto
import pypto.language as pl
from pypto import ir
from pypto.ir import DiagnosticCheck, DiagnosticCheckSet, DiagnosticPhase, PassContext, VerificationLevel

TILE = "pl.Tensor[[32, 64], pl.FP32]"
TEMPLATE = f"""@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def copy(self, x: {TILE}, y: pl.Out[{TILE}]) -> {TILE}:
        y = pl.store(pl.load(x, [0, 0], [32, 64]), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.InCore)
    def add_to(self, x: {TILE}, y: pl.InOut[{TILE}]) -> {TILE}:
        y = pl.store(pl.add(pl.load(x, [0, 0], [32, 64]), pl.load(y, [0, 0], [32, 64])), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: {TILE}, y: pl.Out[{TILE}], f: pl.Tensor[[4, 4], pl.INT32]) -> {TILE}:
        BODY
        return y
"""


def program(body):
    """The program with ``body`` as orchestration."""
    return pl.parse(TEMPLATE.replace("BODY", "\n        ".join(body.strip().splitlines())))


STALE = """t = pl.create_tensor([32, 64], dtype=pl.FP32, init_value=0.0)
u = self.add_to(x, t)
y = self.copy(t, y)"""
OUTSIDE = """with pl.at(level=pl.Level.CORE_GROUP):
    t = pl.add(x[:], 1.0)
    for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):
        y[lane * 16 : lane * 16 + 16, :] = pl.mul(x[lane * 16 : lane * 16 + 16, :], 2.0)
    y[:] = t"""


@pytest.mark.parametrize(("body", "rule"), [(STALE, "InOutUse"), (OUTSIDE, "AivSplitValid")])
def test_a_broken_rule_is_named_with_its_place(body, rule, tmp_path):
    with pytest.raises(pypto.Error, match="Verification failed after 'pipeline_input'") as caught:
        ir.compile(program(body), output_dir=tmp_path)
    assert rule in str(caught.value) and "-->" in str(caught.value)


def test_the_value_under_its_new_name_is_fine(tmp_path):
    ir.compile(program(STALE.replace("self.copy(t, y)", "self.copy(u, y)")), output_dir=tmp_path)


def test_verification_can_be_turned_off(tmp_path):
    ir.compile(program(STALE), output_dir=tmp_path, verification_level=VerificationLevel.NONE)


def test_a_region_of_lanes_in_a_declared_kernel():
    text = TEMPLATE.replace("BODY", "y = self.copy(x, y)").replace(
        "        y = pl.store(pl.load(x, [0, 0], [32, 64]), [0, 0], y)",
        "        for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n"
        "            y = pl.store(pl.load(x, [0, 0], [32, 64]), [0, 0], y)",
        1,
    )
    with pytest.raises(pypto.Error, match="AivSplitValid"):
        ir.compile(pl.parse(text))


def test_branches_yield_the_same_names():
    with pytest.raises(pypto.Error, match="one branch yields n, the other m"):
        program("if f[0, 0] > 1:\n    n = pl.yield_(1)\nelse:\n    m = pl.yield_(2)\ny = self.copy(x, y)")


def test_round_trips_between_passes_on_request(tmp_path):
    ir.compile(program("y = self.copy(x, y)"), output_dir=tmp_path, verification_level=VerificationLevel.ROUNDTRIP)


def test_lower_refuses_what_the_context_decides():
    @pl.jit
    def kernel(x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.add(x[:], 1.0)
        return y

    from pypto.runtime import RunConfig

    with PassContext(), pytest.raises(RuntimeError, match=r"lower\(\).*diagnostic_phase"):
        kernel.lower(config=RunConfig(platform="a2a3sim", diagnostic_phase=DiagnosticPhase.NONE))


DROPPED = """t = pl.create_tensor([32, 64], dtype=pl.FP32)
y = self.copy(x, t)"""
UNUSED = """with pl.at(level=pl.Level.CORE_GROUP):
    t = pl.load(x, [0, 0], [32, 64])
    y[:] = pl.add(x[:], 1.0)"""


@pytest.mark.parametrize(("body", "check"), [(DROPPED, "OutParamWriteDropped"), (UNUSED, "UnusedVariable")])
def test_warnings_name_check_and_place(body, check, tmp_path, capfd):
    ir.compile(program(body), output_dir=tmp_path)
    assert f"[WARN] {check}: " in capfd.readouterr().err
    ir.compile(program(body), output_dir=tmp_path, diagnostic_phase=DiagnosticPhase.NONE)
    ir.compile(program(body), output_dir=tmp_path, disabled_diagnostics=DiagnosticCheckSet([DiagnosticCheck[check]]))
    assert check not in capfd.readouterr().err


@pytest.mark.parametrize(("platform", "hinted"), [("a2a3sim", True), ("a5sim", False)])
def test_short_rows_are_hinted_at(platform, hinted, tmp_path):
    ir.compile(program("y = self.copy(x, y)"), output_dir=tmp_path, platform=platform)
    log = tmp_path / "report/perf_hints.log"
    assert log.exists() == hinted
    if hinted:
        assert "[perf_hint PH001] TileInnermostDimGranularity: tile.load moves rows of 256 bytes" in log.read_text()
