"""Running a build directory as it is: function, command line, generated script (spec runtime 5)."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import pypto.language as pl
from pypto.ir import DistributedConfig
from pypto.ir.dtype import BOOL, FP16, FP32, INT8
from pypto.runtime import RunConfig, TensorSpec
from pypto.runtime.debug import invalidate_binary_cache, rebuild_kernel_cpp_from_pto, replay, write_run_script
from pypto.runtime.debug.replay import main
from pypto.runtime.golden_writer import write_golden

from .builds import COLS, ROWS, SCALAR, Parameter, write_add


@pytest.fixture
def folder(tmp_path):
    return write_add(tmp_path / "build")


def golden_sum(tensors, params):
    tensors["out"][:] = tensors["a"] + tensors["b"]


def golden_difference(tensors, params):
    tensors["out"][:] = tensors["a"] - tensors["b"]


def write_golden_file(folder, function):
    shape = [ROWS, COLS]
    specs = [TensorSpec(n, shape, torch.float32, torch.randn) for n in "ab"] + [
        TensorSpec("out", shape, torch.float32, is_output=True)
    ]
    return write_golden(specs, function, folder / "golden.py")


def test_an_edit_is_seen_with_and_without_the_recipe(folder, tensors):
    a, b, out = tensors
    replay(folder, a, b, out)
    assert torch.equal(out, a + b)
    write_add(folder, operation="tmul")
    replay(folder, a, b, out, recompile=False, rebuild_from_pto=False)
    assert torch.equal(out, a * b)
    write_add(folder, operation="tsub")
    assert rebuild_kernel_cpp_from_pto(folder) == [] and invalidate_binary_cache(folder) is None
    replay(folder, a, b, out, config=RunConfig(platform="a5sim"))
    assert torch.equal(out, a - b)


def test_damage_is_named(folder, tensors):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        replay(folder / "nowhere", *tensors)
    text = folder / "kernels" / "aiv" / "add_0.pto"
    text.write_text(text.read_text().replace("tile %t0 :", "tile %t0"))
    with pytest.raises(ValueError, match=r"add_0.pto:7"):
        replay(folder, *tensors)


def test_validation_against_the_golden_file(folder, tensors):
    a, b, out = tensors
    with pytest.raises(FileNotFoundError, match="golden.py"):
        replay(folder, a, b, out, validate=True)
    write_golden_file(folder, golden_sum)
    replay(folder, a, b, out, validate=True)
    with pytest.raises(ValueError, match="expected 3 tensors, got 2"):
        replay(folder, a, b, validate=True)
    with pytest.raises(TypeError, match="'b' is a tensor"):
        replay(folder, a, 3, out, validate=True)
    write_golden_file(folder, golden_difference)
    with pytest.raises(AssertionError, match="does not match golden"):
        replay(folder, a, b, out, validate=True)


def test_the_command_line(folder, capsys):
    write_golden_file(folder, golden_sum)
    assert main([str(folder), "--validate", "--platform", "a5sim"]) == 0
    text = capsys.readouterr().out
    assert "Replay finished." in text and "Golden validation: PASSED" in text
    assert all(f"[{step}]" in text for step in ("pto->cpp", "cpp->.so", "execute"))
    main([str(folder), "--no-recompile", "--no-rebuild-from-pto"])
    text = capsys.readouterr().out
    assert "[cpp->.so]" not in text and "PASSED" not in text
    with pytest.raises(SystemExit):
        main([str(folder), "--platform", "cpu"])


def test_the_generated_script_runs(folder):
    directions = {"a": "In", "b": "In", "out": "Out"}
    parameters = [Parameter(n, d, "tensor", (ROWS, COLS), FP32) for n, d in directions.items()]
    path = write_run_script(folder, parameters, platform="a2a3sim")
    assert path == folder / "debug" / "run.py"
    text = path.read_text()
    path.write_text(text.replace('"""Look at the arguments after the run."""', "assert (out == a + b).all()"))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "Replay finished." in done.stdout, done.stderr


def test_inline_inputs_of_every_kind(tmp_path, monkeypatch):
    parameters = [
        Parameter("x", "In", "tensor", (-1, 8), FP16),
        Parameter("mask", "In", "tensor", (4,), BOOL),
        Parameter("q", "InOut", "tensor", (4, 4), INT8),
        SCALAR,
        Parameter("y", "Out", "tensor", (2, 8), FP16),
    ]
    lines = write_run_script(tmp_path, parameters).read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if "return [" in line)
    assert [line.strip() for line in lines[at + 1 : at + 6]] == [
        "torch.randn([1, 8]).to(torch.float16),  # x: dynamic extents are 1 here, edit them",
        "torch.randint(0, 2, [4]).to(torch.bool),  # mask",
        "torch.randint(0, 8, [4, 4]).to(torch.int8),  # q",
        "None,  # TODO: value of the scalar n (int32)",
        "torch.zeros([2, 8], dtype=torch.float16),  # y",
    ]
    monkeypatch.setenv("PYPTO_EMIT_DEBUG_RUNNER", "no")
    assert write_run_script(tmp_path / "off", parameters) is None


@pl.jit
def doubled(x: pl.Tensor[[4, 64], pl.FP32], y: pl.Out[pl.Tensor[[4, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:] = pl.mul(x, 2.0)
    return y


@pl.jit.host
def doubled_by_rank(x: pl.Tensor[[2, 4, 64], pl.FP32], y: pl.Out[pl.Tensor[[2, 4, 64], pl.FP32]]):
    for r in pl.range(2):
        doubled(x[r], y[r], device=r)


@pytest.mark.parametrize(("kernel", "kind"), [(doubled, "chip"), (doubled_by_rank, "ranks")])
def test_a_compilation_leaves_a_script_that_runs_it_again(kernel, kind, tmp_path):
    ranks = DistributedConfig(device_ids=[0, 1]) if kind == "ranks" else None
    compiled = kernel.compile(
        config=RunConfig(platform="a2a3", save_kernels_dir=str(tmp_path / "build"), distributed_config=ranks)
    )
    script = Path(compiled.output_dir) / "debug" / "run.py"
    text = script.read_text()
    script.write_text(text.replace('"""Look at the arguments after the run."""', "assert (y == 2 * x).all()"))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0 and "on a2a3, device 0" in done.stdout, done.stderr


def test_what_is_no_build_directory_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds neither kernel_config.py nor orchestration/host_orch.py"):
        replay(tmp_path)
    with pytest.raises(SystemExit, match="holds no golden.py, which gives the inputs"):
        main([str(tmp_path)])
    with pytest.raises(SystemExit, match="no such directory"):
        main([str(tmp_path / "nowhere")])
