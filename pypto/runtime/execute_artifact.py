"""``python -m pypto.runtime.execute_artifact``: run build directories that carry a golden file (spec runtime 5.6).

Prints one result marker per directory on standard output: ``PASS``, ``FAIL`` (wrong numbers, an error while running) or
``INFRA`` (the directory cannot be used).
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pypto.runtime.callable import ChipCallable, assemble
from pypto.runtime.golden_runner import execute_on_golden
from pypto.runtime.run_config import SWIMLANE_MAX_LEVEL, DfxOptions, RunConfig
from pypto.runtime.worker import ChipWorker


class ArtifactSetupError(RuntimeError):
    """The directory is not a runnable artifact: something is missing or cannot be assembled."""


@dataclass(frozen=True)
class Artifact:
    """A build directory and the platform to run it on."""

    work_dir: Path
    platform: str


def execute_artifact_dir(
    work_dir: str | Path,
    platform: str,
    device_id: int,
    dfx: DfxOptions = DfxOptions(),  # noqa: B008 - frozen
    validate: bool = True,
) -> None:
    """Run ``work_dir`` on its golden inputs, save the outputs to ``data/actual`` and compare them.

    ``ArtifactSetupError`` when it cannot be run at all, ``AssertionError`` when the numbers differ.
    """
    directory = Path(work_dir)
    chip_callable = _assembled(directory, platform)
    execute_on_golden(
        directory,
        directory / "golden.py",
        chip_callable,
        chip_callable.runtime_name,
        platform,
        device_id,
        dfx,
        validate,
        directory / "data" / "actual",
        chip_callable.enable_sdma,
    )


def _assembled(directory: Path, platform: str) -> ChipCallable:
    try:
        if not (directory / "golden.py").is_file():
            raise FileNotFoundError(f"no golden file {directory / 'golden.py'}")
        return assemble(directory, platform)
    except (OSError, ValueError) as error:
        raise ArtifactSetupError(str(error)) from error


def execute_batch_manifest(
    manifest: str | Path,
    device_id: int,
    dfx: DfxOptions = DfxOptions(),  # noqa: B008 - frozen
    validate: bool = True,
) -> bool:
    """Run every entry of a JSON list of ``{"work_dir", "platform"}``; whether all passed.

    Entries of one platform that follow each other share a worker.
    """
    entries = [Artifact(Path(e["work_dir"]), e["platform"]) for e in json.loads(Path(manifest).read_text())]
    passed = True
    for platform, artifacts in _runs_of_one_platform(entries):
        with _shared_worker(platform, device_id, artifacts):
            for artifact in artifacts:
                passed &= _reported(artifact, device_id, dfx, validate, f" work_dir={artifact.work_dir}")
    return passed


def _runs_of_one_platform(entries: Sequence[Artifact]) -> Iterator[tuple[str, list[Artifact]]]:
    for platform, group in itertools.groupby(entries, key=lambda entry: entry.platform):
        yield platform, list(group)


@contextmanager
def _shared_worker(platform: str, device_id: int, artifacts: Sequence[Artifact]) -> Iterator[None]:
    """A worker around the block, able to prefetch through SDMA when one of the programs needs it."""
    needs_sdma = False
    for artifact in artifacts:
        try:
            needs_sdma |= _assembled(artifact.work_dir, platform).enable_sdma
        except ArtifactSetupError:
            continue  # reported when its turn comes
    with ChipWorker(RunConfig(platform=platform, device_id=device_id), enable_sdma=needs_sdma):
        yield


def _reported(artifact: Artifact, device_id: int, dfx: DfxOptions, validate: bool, place: str = "") -> bool:
    """Run one artifact and print its marker."""
    try:
        execute_artifact_dir(artifact.work_dir, artifact.platform, device_id, dfx, validate)
        outcome, reason = "PASS", ""
    except ArtifactSetupError as error:
        outcome, reason = "INFRA", str(error)
    except Exception as error:  # whatever a kernel or a golden file raises is a failed case, not a failed batch
        outcome, reason = "FAIL", f"{type(error).__name__}: {error}"
    print(f"PYPTO_EXEC_RESULT={outcome}{place} device={device_id}{f' {reason}' if reason else ''}", flush=True)
    return outcome == "PASS"


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; 0 when everything passed."""
    parser = _parser()
    options = parser.parse_args(argv)
    if (options.work_dir is None) == (options.batch_manifest is None):
        parser.error("give either --work-dir with --platform or --batch-manifest")
    if options.work_dir is not None and options.platform is None:
        parser.error("--work-dir needs --platform")
    level = options.enable_chip_swimlane
    dfx = DfxOptions(
        enable_chip_swimlane=SWIMLANE_MAX_LEVEL if options.enable_l2_swimlane and not level else level,
        enable_dump_args=options.dump_args,
        enable_pmu=options.enable_pmu,
        enable_dep_gen=options.enable_dep_gen,
        enable_scope_stats=options.enable_scope_stats,
    )
    validate = not options.no_validate
    if options.batch_manifest is not None:
        return 0 if execute_batch_manifest(options.batch_manifest, options.device_id, dfx, validate) else 1
    artifact = Artifact(Path(options.work_dir), options.platform)
    return 0 if _reported(artifact, options.device_id, dfx, validate) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pypto.runtime.execute_artifact", description="Run build directories.")
    parser.add_argument("--work-dir", metavar="DIR")
    parser.add_argument("--platform")
    parser.add_argument("--batch-manifest", metavar="FILE")
    parser.add_argument("--device-id", type=int, required=True)
    parser.add_argument("--enable-chip-swimlane", type=int, nargs="?", const=SWIMLANE_MAX_LEVEL, default=0)
    parser.add_argument("--enable-l2-swimlane", action="store_true", help="former name of --enable-chip-swimlane")
    parser.add_argument("--dump-args", type=int, nargs="?", const=1, default=0)
    parser.add_argument("--enable-pmu", type=int, nargs="?", const=2, default=0)
    parser.add_argument("--enable-dep-gen", action="store_true")
    parser.add_argument("--enable-scope-stats", action="store_true")
    parser.add_argument("--no-validate", action="store_true", help="run and save the outputs only")
    return parser


if __name__ == "__main__":
    sys.exit(main())
