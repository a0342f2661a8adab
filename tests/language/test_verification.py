"""Rules of whole programs, warnings and performance hints (spec language 8.3, 8.4)."""

from dataclasses import replace

import pytest

import pypto
import pypto.language as pl
from pypto import ir
from pypto.ir import DiagnosticCheck, DiagnosticCheckSet, DiagnosticPhase, PassContext, VerificationLevel, nodes
from pypto.ir.walk import rewrite_body

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


STALE_OUT = """t = pl.create_tensor([32, 64], dtype=pl.FP32)
u = self.copy(x, t)
y = self.copy(t, y)"""
STALE_SUBMIT = """t = pl.create_tensor([32, 64], dtype=pl.FP32, init_value=0.0)
u, first = pl.submit(self.add_to, x, t)
y, second = pl.submit(self.copy, t, y, deps=[first])"""
STALE_NEXT_TIME = """t = pl.create_tensor([32, 64], dtype=pl.FP32, init_value=0.0)
for i in pl.range(4):
    y = self.copy(t, y)
    u = self.add_to(x, t)"""


@pytest.mark.parametrize(
    ("body", "rule"),
    [(body, "InOutUse") for body in (STALE, STALE_OUT, STALE_SUBMIT, STALE_NEXT_TIME)] + [(OUTSIDE, "AivSplitValid")],
)
def test_a_broken_rule_is_named_with_its_place(body, rule, tmp_path):
    with pytest.raises(pypto.Error, match="Verification failed after 'pipeline_input'") as caught:
        ir.compile(program(body), output_dir=tmp_path)
    assert rule in str(caught.value) and "-->" in str(caught.value)


def test_the_value_under_its_new_name_is_fine(tmp_path):
    ir.compile(program(STALE.replace("self.copy(t, y)", "self.copy(u, y)")), output_dir=tmp_path)


OVERWRITTEN = """t = pl.create_tensor([32, 64], dtype=pl.FP32)
u = self.copy(x, t)
w = self.copy(x, t)
y = self.copy(w, y)"""
DISCARDED = """t = pl.create_tensor([32, 64], dtype=pl.FP32)
_, first = pl.submit(self.copy, x, t)
y, second = pl.submit(self.copy, t, y, deps=[first])"""


@pytest.mark.parametrize("body", [OVERWRITTEN, DISCARDED])
def test_what_is_not_a_stale_read(body, tmp_path):
    ir.compile(program(body), output_dir=tmp_path)


def changed(source, change):
    """The program with every expression of its orchestration passed through ``change``."""
    main = source.functions["main"]
    functions = {**source.functions, "main": replace(main, body=rewrite_body(main.body, change))}
    return replace(source, functions=functions)


def other_dtype(expr):
    is_value = isinstance(expr, nodes.Var) and expr.name == "y"
    return replace(expr, type=replace(expr.type, dtype=pl.FP16)) if is_value else expr


def number_as_condition(expr):
    return nodes.index(1) if isinstance(expr, nodes.Binary) and expr.op == ">" else expr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_dtype, "'y' of copy is a tensor [32, 64] FP32 and gets a tensor [32, 64] FP16"),
        (number_as_condition, "the condition is a scalar INDEX, not a BOOL scalar"),
    ],
)
def test_types_of_a_changed_program_are_checked(change, message, tmp_path):
    source = program("if f[0, 0] > 1:\n    y = self.copy(x, y)")
    ir.compile(source, output_dir=tmp_path)
    with pytest.raises(pypto.Error, match="TypeChecked") as caught:
        ir.compile(changed(source, change), output_dir=tmp_path)
    assert message in str(caught.value)


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
WRITTEN = """with pl.at(level=pl.Level.CORE_GROUP):
    x[:] = pl.add(x[:], 1.0)
    pl.store(pl.load(x, [0, 0], [32, 64]), [0, 0], y)"""
UNUSED = """with pl.at(level=pl.Level.CORE_GROUP):
    t = pl.load(x, [0, 0], [32, 64])
    y[:] = pl.add(x[:], 1.0)"""


@pytest.mark.parametrize(
    ("body", "check"), [(DROPPED, "OutParamWriteDropped"), (WRITTEN, "InParamWritten"), (UNUSED, "UnusedVariable")]
)
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


CARRIED = """with pl.at(level=pl.Level.CORE_GROUP):
    n = 0
    m = 0
    for i in pl.range(4):
        n = n + i
        m = m + n
    if m > 3:
        k = 1
    else:
        k = 2
    y[:] = pl.add(x[:], pl.cast(m, pl.FP32))"""
ALL = DiagnosticCheckSet([])


def warned(capfd):
    return [
        line.split("[WARN] ")[1].split(" at ")[0] for line in capfd.readouterr().err.splitlines() if "[WARN]" in line
    ]


def test_unread_results_of_loops_and_branches_are_found_on_request(tmp_path, capfd):
    ir.compile(program(CARRIED), output_dir=tmp_path, disabled_diagnostics=ALL)
    assert warned(capfd) == [
        "UnusedControlFlowResult: 'n' leaves the loop and is never read behind it",
        "UnusedControlFlowResult: 'k' leaves the branch and is never read behind it",
    ]
    ir.compile(program(CARRIED), output_dir=tmp_path)
    assert warned(capfd) == []


ONCE_FOLDED = """with pl.at(level=pl.Level.CORE_GROUP):
    t = pl.mul(x[:], 2.0)
    if 1 > 2:
        y[:] = t
    else:
        y[:] = x"""


@pytest.mark.parametrize(
    ("phase", "says"),
    [("NONE", False), ("PRE_PIPELINE", False), ("POST_PASS", True), ("POST_PIPELINE", False)],
)
def test_when_warnings_are_looked_for(phase, says, tmp_path, capfd):
    """``t`` is read as the program is written, no longer once the branch is gone, and gone itself at the end."""
    ir.compile(program(ONCE_FOLDED), output_dir=tmp_path, diagnostic_phase=DiagnosticPhase[phase])
    assert warned(capfd) == (["UnusedVariable: 't' is never read"] if says else [])


@pytest.mark.parametrize("phase", ["PRE_PIPELINE", "POST_PASS", "POST_PIPELINE"])
def test_a_dropped_write_is_said_once_in_every_phase(phase, tmp_path, capfd):
    ir.compile(program(DROPPED), output_dir=tmp_path, diagnostic_phase=DiagnosticPhase[phase])
    assert [line.split(":")[0] for line in warned(capfd)] == ["OutParamWriteDropped"]


IN_A_TASK = """for i in pl.range(2):
    x = self.add_to(y, x)
y = self.copy(x, y)"""


@pytest.mark.parametrize(
    ("body", "phase"),
    [
        (WRITTEN, "PRE_PIPELINE"),
        (WRITTEN, "POST_PASS"),
        (IN_A_TASK, "PRE_PIPELINE"),
        (IN_A_TASK, "POST_PASS"),
        (IN_A_TASK, "POST_PIPELINE"),
    ],
)
def test_a_written_input_is_said_once(body, phase, tmp_path, capfd):
    ir.compile(program(body), output_dir=tmp_path, diagnostic_phase=DiagnosticPhase[phase])
    (said,) = warned(capfd)
    assert said.startswith("InParamWritten: 'x' is an input of 'main' and is written here")


def test_an_input_that_is_only_read_is_not_spoken_of(tmp_path, capfd):
    ir.compile(program("y = self.copy(x, y)\nz = pl.reshape(x, [64, 32])"), output_dir=tmp_path)
    assert not [line for line in warned(capfd) if "InParamWritten" in line]


IN_PLACE = """for i in pl.parallel(4):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[i * 8 : i * 8 + 8, :] = pl.add(y[i * 8 : i * 8 + 8, :], 1.0)"""
MANUAL = "with pl.manual_scope():\n    " + IN_PLACE.replace("\n", "\n    ")


@pytest.mark.parametrize(
    ("body", "hinted"),
    [
        (IN_PLACE, True),
        (IN_PLACE.replace("pl.parallel", "pl.range"), False),
        (IN_PLACE.replace("CORE_GROUP", "CORE_GROUP, windowize=True"), False),
        (IN_PLACE.replace("pl.add(y[", "pl.add(x["), False),
        (MANUAL, False),
    ],
)
def test_tasks_that_a_whole_tensor_puts_in_a_row_are_hinted_at(body, hinted, tmp_path):
    ir.compile(program(body), output_dir=tmp_path)
    log = (tmp_path / "report/perf_hints.log").read_text()
    assert ("[perf_hint PH002] SerialisedParallelTasks: tasks 'main_incore_0'" in log) == hinted
    assert ("reads and writes 'y' as a whole" in log) == hinted


@pytest.mark.parametrize(
    ("columns", "platform", "hinted"), [(40, "a2a3", True), (48, "a2a3", False), (40, "a5", False)]
)
def test_rows_that_the_way_into_l1_does_not_like_are_hinted_at(columns, platform, hinted, tmp_path):
    text = f"""@pl.program
class P:
    @pl.function
    def main(
        self,
        a: pl.Tensor[[32, 64], pl.FP16],
        b: pl.Tensor[[64, {columns}], pl.FP16],
        c: pl.Out[pl.Tensor[[32, {columns}], pl.FP32]],
    ) -> pl.Tensor[[32, {columns}], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            c[:] = pl.matmul(a, b, out_dtype=pl.FP32)
        return c
"""
    ir.compile(pl.parse(text), output_dir=tmp_path, platform=platform)
    log = (tmp_path / "report/perf_hints.log").read_text()
    assert ("[perf_hint PH003] UnevenMatrixRows" in log) == hinted
    assert ("rows of 80 bytes, no multiple of 32" in log and "pad it to 96 bytes" in log) == hinted
