"""The command line of a replay (spec runtime 5.5)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pypto.backend.platforms import DEFAULT_PLATFORM, PLATFORMS
from pypto.runtime.debug.replay.run import replay
from pypto.runtime.golden_runner import load_golden
from pypto.runtime.log_config import configure_log
from pypto.runtime.prepared import DFX_FOLDER
from pypto.runtime.run_config import RunConfig


def main(
    argv: Sequence[str] | None = None,
    *,
    work_dir: str | Path | None = None,
    inputs: Callable[[], Sequence[Any]] | None = None,
    compare: Callable[..., None] | None = None,
    platform: str = DEFAULT_PLATFORM,
) -> int:
    """The command line. A generated ``debug/run.py`` fills in its directory, inputs, comparison and platform."""
    arguments = _parser(work_dir is None, platform).parse_args(argv)
    directory = Path(arguments.work_dir if work_dir is None else work_dir)
    if arguments.log_level:
        configure_log(arguments.log_level, sync_pypto=arguments.log_sync_pypto)
    has_golden = (directory / "golden.py").is_file()
    validate = arguments.validate if arguments.validate is not None else (work_dir is not None and has_golden)
    if inputs is None and not has_golden:
        raise SystemExit(_without_inputs(directory))
    if has_golden or inputs is None:
        pairs = load_golden(directory / "golden.py").generate_inputs({"name": "Default"})
        values: Sequence[Any] = [value for _, value in pairs]
    else:
        values = inputs()
    replay(
        directory,
        *values,
        config=_config(arguments),
        recompile=not arguments.no_recompile,
        rebuild_from_pto=not arguments.no_rebuild_from_pto,
        validate=validate,
    )
    if compare is not None:
        compare(*values)
    print(f"Replay finished. Diagnostics: {directory / DFX_FOLDER}")
    if validate:
        print("Golden validation: PASSED")
    return 0


def _without_inputs(directory: Path) -> str:
    if not directory.is_dir():
        return f"error: {directory} is not a build directory: no such directory"
    script = directory / "debug" / "run.py"
    hint = f"; {script} has inputs of its own" if script.is_file() else ""
    return f"error: {directory} holds no golden.py, which gives the inputs{hint}"


def _config(arguments: argparse.Namespace) -> RunConfig:
    level = arguments.swimlane_level
    return RunConfig(
        platform=arguments.platform,
        device_id=arguments.device_id,
        enable_chip_swimlane=arguments.swimlane if level is None else level,
        enable_dump_args=arguments.dump_args,
        enable_pmu=arguments.pmu,
        enable_dep_gen=arguments.dep_gen,
        enable_scope_stats=arguments.scope_stats,
    )


def _parser(takes_directory: bool, platform: str) -> argparse.ArgumentParser:
    description = "Run a build directory as it is now."
    parser = argparse.ArgumentParser(prog="pypto.runtime.debug.replay", description=description)
    if takes_directory:
        parser.add_argument("work_dir", metavar="WORK_DIR")
    parser.add_argument("--platform", default=platform, choices=list(PLATFORMS))
    parser.add_argument("--device-id", type=int, default=0)
    parser.add_argument("--pmu", type=int, default=0, metavar="EVENT")
    parser.add_argument("--swimlane", action="store_true", help="chip swimlane at full level")
    parser.add_argument("--swimlane-level", type=int, choices=range(5), help="chip swimlane at this level")
    parser.add_argument("--dump-args", type=int, nargs="?", const=1, default=0, metavar="LEVEL")
    parser.add_argument("--dep-gen", action="store_true", help="write the dependency graph")
    parser.add_argument("--scope-stats", action="store_true", help="write ring statistics")
    parser.add_argument("--no-recompile", action="store_true")
    parser.add_argument("--no-rebuild-from-pto", action="store_true")
    parser.add_argument("--log-level")
    parser.add_argument("--log-sync-pypto", action="store_true", help="set the compiler's level as well")
    parser.add_argument("--validate", action=argparse.BooleanOptionalAction, help="compare with golden.py")
    return parser
