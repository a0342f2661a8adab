"""Golden files: written, loaded, compared (spec runtime 9.3, 9.4)."""

import math

import numpy as np
import pytest
import torch

from pypto.runtime import RunResult, ScalarSpec, TensorSpec
from pypto.runtime.device_runner import build_orch_args_from_inputs, validate_golden
from pypto.runtime.golden_runner import load_golden, validate_persisted_outputs
from pypto.runtime.golden_source import standalone_source
from pypto.runtime.golden_writer import generate_golden_source, write_golden

FACTOR = 3.0


class Case:
    """A golden function as harness cases write it: a method that reads its object and its module."""

    bias = 2
    weights = [1, 2]

    def compute(self, tensors, params=None):
        tensors["out"][:] = tensors["a"] * FACTOR + self.bias + math.sqrt(4) + np.int64(self.weights[1])


SPECS = [
    TensorSpec("a", [2, 3], torch.float32, init_value=torch.randn),
    TensorSpec("acc", [2], torch.int32, init_value=5, is_output=True),
    TensorSpec("out", [2, 3], torch.float32, is_output=True),
]


def test_a_written_golden_file_reproduces_inputs_and_outputs(tmp_path):
    scalars = [ScalarSpec("n", 4, "int32")]
    path = write_golden(SPECS, Case().compute, tmp_path / "golden.py", rtol=1e-3, scalar_specs=scalars)
    golden = load_golden(path)
    assert golden.__outputs__ == ["acc", "out"] and (golden.RTOL, golden.ATOL) == (1e-3, 1e-5)
    pairs = golden.generate_inputs({"name": "Default"})
    assert [name for name, _ in pairs] == ["a", "acc", "out", "n"]
    again = dict(load_golden(path).generate_inputs({}))
    assert torch.equal(again["a"], pairs[0][1]) and again["n"].value == 4
    _, tensors, inputs, outputs = build_orch_args_from_inputs(pairs, golden.__outputs__)
    assert set(inputs) == {"a"} and set(outputs) == {"acc", "out"}
    golden.compute_golden(tensors, {})
    torch.testing.assert_close(tensors["out"], pairs[0][1] * 3.0 + 6)
    saved = torch.load(tmp_path / "data" / "out" / "out.pt")
    torch.testing.assert_close(saved, tensors["out"])


def test_existing_data_is_kept(tmp_path):
    write_golden(SPECS, Case().compute, tmp_path / "golden.py")
    before = torch.load(tmp_path / "data" / "in" / "a.pt")
    write_golden(SPECS, Case().compute, tmp_path / "golden.py")
    assert torch.equal(torch.load(tmp_path / "data" / "in" / "a.pt"), before)


def test_inputs_can_be_made_anew():
    scope: dict = {}
    exec(generate_golden_source(SPECS, Case().compute, 1e-5, 1e-5), scope)
    pairs = dict(scope["generate_inputs"]({}))
    assert pairs["a"].shape == (2, 3) and pairs["acc"].tolist() == [5, 5] and not pairs["out"].any()


def test_a_function_that_cannot_be_carried_over_is_refused():
    class Holder:
        net = torch.nn.Linear(2, 2)

        def compute(self, tensors, params):
            tensors["out"][:] = self.net(tensors["a"])

    with pytest.raises(RuntimeError, match="self.net, a Linear"):
        standalone_source(Holder().compute)
    with pytest.raises(RuntimeError, match="no source is available"):
        standalone_source(eval("lambda tensors, params: None"))


def test_comparison_ignores_nan_goldens_and_lists_mismatches():
    golden = torch.arange(40.0).reshape(5, 8)
    golden[0, 0] = float("nan")
    actual = golden.clone()
    actual[0, 0] = 7
    validate_golden({"y": actual}, {"y": golden, "unused": golden})
    actual[1:] += 1
    with pytest.raises(AssertionError) as error:
        validate_golden({"y": actual}, {"y": golden})
    text = str(error.value)
    assert "Output 'y' does not match golden" in text and "Mismatched elements: 32/40" in text
    assert "[1, 0]: 9.0 golden 8.0" in text and "... and 12 more" in text
    with pytest.raises(AssertionError, match="does not match golden: shape"):
        validate_golden({"y": actual[0]}, {"y": golden})


def test_persisted_outputs(tmp_path):
    with pytest.raises(AssertionError, match="no expected outputs"):
        validate_persisted_outputs(tmp_path)
    for folder in ("out", "actual"):
        (tmp_path / "data" / folder).mkdir(parents=True)
    torch.save(torch.ones(2), tmp_path / "data" / "out" / "y.pt")
    with pytest.raises(AssertionError, match="has no output y"):
        validate_persisted_outputs(tmp_path)
    torch.save(torch.ones(2) + 1e-3, tmp_path / "data" / "actual" / "y.pt")
    validate_persisted_outputs(tmp_path, rtol=1e-2)
    with pytest.raises(AssertionError, match="does not match golden"):
        validate_persisted_outputs(tmp_path)


@pytest.mark.parametrize(
    "value, want",
    [
        (None, torch.zeros(2, 2)),
        (3, torch.full((2, 2), 3.0)),
        (torch.ones(2, 2, dtype=torch.int32), torch.ones(2, 2)),
        (torch.ones, torch.ones(2, 2)),
        (lambda: [[1, 2], [3, 4]], torch.tensor([[1.0, 2.0], [3.0, 4.0]])),
    ],
)
def test_initial_values(value, want):
    assert torch.equal(TensorSpec("x", (2, 2), torch.float32, value).create_tensor(), want)


def test_refused_specs():
    with pytest.raises(TypeError, match="Unsupported init_value type list of tensor 'x'"):
        TensorSpec("x", (1,), torch.float32, [1]).create_tensor()
    with pytest.raises(ValueError, match="Unsupported ctype 'int8'"):
        ScalarSpec("n", 1, "int8")


@pytest.mark.parametrize(
    "result, text",
    [
        (RunResult(True, "add", execution_time=1.234), "PASS: add (1.23s)"),
        (RunResult(True), "PASS"),
        (RunResult(False, "add", "boom"), "FAIL: add - boom"),
        (RunResult(False, error="boom", execution_time=2.0), "FAIL: boom (2.00s)"),
    ],
)
def test_results_as_text(result, text):
    assert str(result) == text
