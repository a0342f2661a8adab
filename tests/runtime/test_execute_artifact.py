"""Running build directories with golden files from the command line (spec runtime 5.6)."""

import json

import pytest
import torch

from pypto.runtime import TensorSpec
from pypto.runtime.execute_artifact import ArtifactSetupError, execute_artifact_dir, main
from pypto.runtime.golden_runner import validate_persisted_outputs
from pypto.runtime.golden_writer import write_golden

from .builds import COLS, ROWS, write_add


def golden_sum(tensors, params):
    tensors["out"][:] = tensors["a"] + tensors["b"]


@pytest.fixture
def artifact(tmp_path):
    """Makes a directory that computes ``operation`` and expects a sum."""

    def make(name, operation="tadd", row=0):
        folder = write_add(tmp_path / name, operation=operation, row=row)
        specs = [TensorSpec(n, [ROWS, COLS], torch.float32, torch.randn) for n in "ab"]
        specs.append(TensorSpec("out", [ROWS, COLS], torch.float32, is_output=True))
        write_golden(specs, golden_sum, folder / "golden.py")
        return folder

    return make


def single(folder, *more):
    return main(["--work-dir", str(folder), "--platform", "a2a3sim", "--device-id", "3", *more])


def test_a_right_artifact_passes_and_its_outputs_are_saved(artifact, capsys):
    folder = artifact("good")
    assert single(folder) == 0
    assert capsys.readouterr().out == "PYPTO_EXEC_RESULT=PASS device=3\n"
    validate_persisted_outputs(folder)


def test_wrong_numbers_and_errors_fail(artifact, capsys):
    wrong = artifact("wrong", operation="tsub")
    assert single(wrong) == 1
    text = capsys.readouterr().out
    assert text.startswith("PYPTO_EXEC_RESULT=FAIL device=3 AssertionError: Output 'out' does not match golden")
    assert single(wrong, "--no-validate") == 0
    assert single(artifact("outside", row=8), "--no-validate") == 1
    assert "PYPTO_EXEC_RESULT=FAIL device=3 OutOfBoundsError" in capsys.readouterr().out


def test_an_unusable_directory_is_not_a_failed_case(artifact, tmp_path, capsys):
    folder = artifact("broken")
    (folder / "kernel_config.py").unlink()
    assert single(folder) == 1 and single(tmp_path / "nowhere") == 1
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("PYPTO_EXEC_RESULT=INFRA device=3 ") for line in lines)
    assert "kernel_config.py" in lines[0] and "golden.py" in lines[1]
    with pytest.raises(ArtifactSetupError, match="kernel_config.py"):
        execute_artifact_dir(folder, "a2a3sim", 0)


def test_a_batch_goes_on_after_a_failure(artifact, tmp_path, capsys):
    folders = [artifact("one"), artifact("two", operation="tmul"), artifact("three")]
    platforms = ["a2a3sim", "a2a3sim", "a5sim"]
    manifest = tmp_path / "batch.json"
    manifest.write_text(json.dumps([{"work_dir": str(f), "platform": p} for f, p in zip(folders, platforms)]))
    assert main(["--batch-manifest", str(manifest), "--device-id", "0"]) == 1
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("PYPTO_EXEC_RESULT=")]
    assert [line.split()[0].partition("=")[2] for line in lines] == ["PASS", "FAIL", "PASS"]
    assert all(f"work_dir={f} device=0" in line for f, line in zip(folders, lines))


@pytest.mark.parametrize("argv", [[], ["--device-id", "0"], ["--work-dir", "x", "--device-id", "0"]])
def test_usage_errors(argv):
    with pytest.raises(SystemExit):
        main(argv)
