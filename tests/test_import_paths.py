"""Names that scripts and harnesses around kernels import (spec runtime 2, 16), and what the small ones do."""

import importlib
import importlib.util
import subprocess
import sys

import pytest
import torch

import pypto.language as pl
from pypto import ir
from pypto.backend.pto_backend import PartialCodegenError
from pypto.ir.compiled_program import _to_runtime_shape, _to_torch_dtype

NAMES = {
    "pypto": "ir language runtime passes compile_profiling testing DataType DT_FP32 DT_BF16 LogLevel set_log_level "
    "get_log_level log_debug log_info log_warn log_error Error InternalError __version__",
    "pypto.ir": "compile CompiledProgram PassManager OptimizationStrategy PassDumpLevel PassContext VerificationLevel "
    "DiagnosticPhase DiagnosticCheck DiagnosticCheckSet ParamDirection python_print Function Program",
    "pypto.ir.compile": "compile",
    "pypto.ir.printer": "python_print",
    "pypto.ir.pass_manager": "OptimizationStrategy PassManager",
    "pypto.ir.compiled_program": "CompiledProgram ParamInfo _to_torch_dtype _to_runtime_shape _COMPILED_META_FILENAME",
    "pypto.ir.distributed_compiled_program": "DistributedCompiledProgram DistributedConfig _DISTRIBUTED_META_FILENAME",
    "pypto.jit": "jit JITFunction",
    "pypto.jit.decorator": "jit JITFunction",
    "pypto.pypto_core": "passes DataType",
    "pypto.pypto_core.passes": "MemoryPlanner PassContext RuntimeKind VerificationLevel",
    "pypto.runtime": "run benchmark compile_program execute_compiled execute_distributed_compiled configure_log "
    "log_level ensure_pto_isa_root pto_isa_include_dir BenchmarkStats TraceInvocation TraceSpan Worker ChipWorker "
    "DistributedWorker DistributedRunHandle RegistrationHandle DeviceTensor StackedDeviceTensor RunConfig RunResult "
    "TensorSpec ScalarSpec",
    "pypto.runtime.runner": "RunConfig RunResult run compile_program execute_compiled _DfxOpts _execute_on_device "
    "validate_persisted_outputs _SWIMLANE_CLI_HELP _SWIMLANE_FULL_LEVEL _SWIMLANE_MAX_LEVEL",
    "pypto.runtime.worker": "ChipWorker RegistrationHandle",
    "pypto.runtime.device_runner": "compile_and_assemble execute_on_device validate_golden "
    "build_orch_args_from_inputs callable_name",
    "pypto.runtime.bench": "benchmark BenchmarkStats _STRACE_LOG_LEVEL _capture_fd_stderr _parse_stats_from_strace "
    "current_level configure_log",
    "pypto.runtime.log_config": "configure_log current_level",
    "pypto.runtime.golden_writer": "write_golden generate_golden_source",
    "pypto.runtime.distributed_runner": "DistributedWorker execute_distributed execute_distributed_compiled "
    "_tensor_from_continuous",
    "pypto.runtime.debug": "invalidate_binary_cache rebuild_kernel_cpp_from_pto replay write_run_script",
    "pypto.runtime.execute_artifact": "main execute_artifact_dir execute_batch_manifest ArtifactSetupError",
    "pypto.debug": "validate_pass_ir_codegen_results",
    "pypto.backend": "BackendType set_backend_type get_backend_type is_backend_configured reset_for_testing "
    "Backend910B Backend950 SoC Die Cluster Core Mem",
    "pypto.backend.pto_backend": "PartialCodegenError",
    "pypto.compile_profiling": "CompileProfiler get_active_profiler",
}

ABSENT = {
    "pypto": "check internal_check internal_check_span",
    "pypto.ir": "IRBuilder IRMutator IRVisitor VerificationMode make_roundtrip_instrument",
    "pypto.jit": "cache specializer",
    "pypto.runtime": "tensor_arg",
    "pypto.runtime.runner": "_coerced_to_orch_args _build_args_spec _execute_dfx_passes _generate_swimlane "
    "_build_call_config",
    "pypto.runtime.worker": "_SimplerWorker _SimplerCallConfig",
    "pypto.runtime.device_runner": "Worker CallConfig",
    "pypto.runtime.distributed_runner": "_bind_sub_workers _load_orch_entry _make_call_config",
    "pypto.debug": "torch_codegen",
    "pypto.backend.pto_backend": "generate emit_source_loc_default _run_ptoas _preprocess_ptoas_output",
}
"""The rest of the public list: parts of the original compiler, of its assembler and of its device binding, which only
its own tests and generated code use. ``pypto.tools`` is absent as a whole."""


@pytest.mark.parametrize("module", NAMES)
def test_names_are_where_scripts_look_for_them(module):
    found = importlib.import_module(module)
    assert [name for name in NAMES[module].split() if not hasattr(found, name)] == []


@pytest.mark.parametrize("module", ABSENT)
def test_the_table_tells_what_is_absent(module):
    found = importlib.import_module(module)
    assert [name for name in ABSENT[module].split() if hasattr(found, name)] == []
    assert importlib.util.find_spec("pypto.tools") is None


def test_every_module_can_be_the_first_one_imported():
    for module in ("pypto.backend.pto_backend", "pypto.runtime.distributed_runner", "pypto.ir.compiled_program"):
        subprocess.run([sys.executable, "-c", f"import {module}"], check=True)


def test_a_harness_can_put_its_own_function_in_place_of_a_distributed_run(monkeypatch):
    from pypto.ir.distributed_compiled_program import DistributedCompiledProgram
    from pypto.runtime import distributed_runner

    program = object.__new__(DistributedCompiledProgram)
    monkeypatch.setattr(distributed_runner, "execute_distributed", lambda *given: given)
    assert program(1, 2, config="c") == (program, (1, 2), "c")


def test_carriers_of_packed_pairs():
    assert _to_runtime_shape((3, 64), pl.FP4) == [3, 32] and _to_runtime_shape((3, 64), pl.FP16) == [3, 64]
    assert _to_torch_dtype(pl.INDEX) is torch.int64 and _to_torch_dtype(pl.HF8) is None


@pl.jit
def three_kernels(x: pl.Tensor, w: pl.Tensor, y: pl.Out[pl.Tensor], z: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="first"):
        y[:] = pl.add(pl.add(x, w), pl.mul(x, w))
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="second"):
        z[0:16, :] = pl.neg(x[0:16, :])
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="third"):
        z[:] = pl.sub(pl.sub(x, w), pl.mul(x, w))
    return y, z


def test_every_kernel_that_cannot_be_generated_is_named_and_the_others_are_written(tmp_path):
    x = torch.zeros(256, 512)
    program = three_kernels.lower(x, x, x, x)
    with pytest.raises(PartialCodegenError, match="2 functions cannot be generated") as caught:
        ir.compile(program, output_dir=tmp_path, platform="a2a3sim")
    error = caught.value
    assert isinstance(error, RuntimeError) and isinstance(error, ValueError)
    assert set(error.failures) == {"first", "third"} and list(error.files) == ["kernels/aiv/second.pto"]
    assert (tmp_path / "kernels/aiv/second.pto").read_text() == error.files["kernels/aiv/second.pto"]
    report = (tmp_path / "report/codegen_errors.txt").read_text()
    assert "first: kernel 'first' needs" in report and "third: kernel 'third' needs" in report
