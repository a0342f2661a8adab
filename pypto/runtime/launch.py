"""One launch: bind the arguments, run, validate, and tell about it in markers (spec profiling 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pypto.runtime import markers
from pypto.runtime.arguments import Argument, Slot
from pypto.runtime.callable import ChipCallable
from pypto.runtime.chip_device import ChipDevice, device_spans_enabled
from pypto.runtime.dfx.task_log import log_for
from pypto.runtime.operands import Operands, stage
from pypto.runtime.run_config import RunConfig
from pypto.runtime.spans import (
    BIND,
    BIND_ARGS,
    BIND_PREBUILT,
    CLAIM_RELEASE,
    RUN,
    RUNNER_RUN,
    VALIDATE,
    SpanLog,
)
from pypto.runtime.task_runtime import Sizing, sizing
from pypto.sim.checks.selection import Checks

if TYPE_CHECKING:
    from pypto.sim.checks.findings import Finding
    from pypto.sim.chips import Chip
    from pypto.sim.recording import Recording, Words
    from pypto.sim.task_log import TaskLog
    from pypto.sim.timing import DeviceState, Timeline

T = TypeVar("T")


@dataclass(frozen=True)
class Launched:
    """What is known of a launch afterwards: nothing on a values-only platform, unless diagnostics were asked for.

    ``state_before`` is what earlier launches had left in the caches of ``chip``.
    """

    recording: Recording | None = None
    timeline: Timeline | None = None
    chip: Chip | None = None
    state_before: DeviceState | None = None
    findings: tuple[Finding, ...] = ()
    told: Words | None = None
    """Per trace row, what other chips decide about its time (:func:`pypto.sim.timing.launch.play`)."""
    log: TaskLog | None = None
    sizing: Sizing | None = None

    @property
    def known_recording(self) -> Recording:
        return _known(self.recording)

    @property
    def known_timeline(self) -> Timeline:
        return _known(self.timeline)

    @property
    def known_chip(self) -> Chip:
        return _known(self.chip)


def _known(part: T | None) -> T:
    if part is None:
        raise RuntimeError("the launch was not recorded")
    return part


def launch(
    device: ChipDevice,
    chip_callable: ChipCallable,
    slots: Sequence[Slot],
    arguments: Sequence[Argument],
    config: RunConfig,
    stand_ins: Mapping[str, Callable[..., Any]] | None = None,
) -> Launched:
    """Run ``chip_callable`` once with ``arguments``, which were checked before.

    ``stand_ins`` are Python functions for its hand-written C++ kernels, called with NumPy views of their arguments.
    The caller's tensors change only when the launch succeeds. Markers are written either way.
    """
    size = sizing(config, chip_callable.runtime_config, device.platform)
    device.register(chip_callable)
    if config.cold_start:
        device.forget_caches()
    log = SpanLog(device.clock)
    identity = markers.Launch(markers.next_invocation(), device.hid(chip_callable))
    try:
        with log.span(RUN, _run_identity(device, identity.inv)):
            with log.span(BIND):
                operands = _bind(device, log, slots, arguments, size)
            with log.span(RUNNER_RUN):
                launched = _run(device, chip_callable, operands, size, config, stand_ins or {})
            with log.span(VALIDATE):
                _validate(device, operands)
            if device.clocked and launched.timeline is not None:
                _note_device(log, launched.timeline)
    finally:
        if device.writes_markers:
            markers.write_spans(identity, log.spans, written_ns=device.clock.now_ns())
    return launched


def _run_identity(device: ChipDevice, inv: int) -> str:
    """Attributes of the root span of a clocked platform (spec profiling 1.7); the values-only ones write none."""
    if not device.clocked:
        return ""
    return f"run_id=0 dispatch_id=0 slot_id=0 generation={device.next_generation()} run_epoch={inv}"


def _bind(
    device: ChipDevice, log: SpanLog, slots: Sequence[Slot], arguments: Sequence[Argument], size: Sizing
) -> Operands:
    """Device buffers and uploads, then the runtime's arena."""
    with log.span(BIND_ARGS):
        operands = stage(slots, arguments)
        device.clock.advance(operands.allocations * device.host.allocation_ns)
        device.clock.advance(sum(map(device.host.upload_ns, operands.uploads)))
    with log.span(BIND_PREBUILT):
        device.use_arena(size)
    return operands


def _checks(config: RunConfig, device: ChipDevice, size: Sizing) -> Checks:
    """What is looked for, in rings of which size."""
    checks = Checks.of(config.checks, config.checks_mode, config.poison, clocked=device.clocked)
    return replace(checks, rings=size.capacities(device.platform.name)) if checks else checks


def _run(
    device: ChipDevice,
    chip_callable: ChipCallable,
    operands: Operands,
    size: Sizing,
    config: RunConfig,
    stand_ins: Mapping[str, Callable[..., Any]],
) -> Launched:
    """Values, then time: enqueue, the device's wall, drain."""
    device.clock.advance(device.host.enqueue_ns)
    execution = chip_callable.program.execute(
        operands.arguments,
        record=device.clocked or config.any_dfx_enabled(),
        clusters=device.clusters,
        threads=config.threads,
        platform=device.platform.name,
        stand_ins=stand_ins,
        checks=_checks(config, device, size),
        log=log_for(config),
        behind=device.memory.space.behind,
    )
    if execution.recording is None:
        return Launched(findings=execution.findings)
    timed = device.time(chip_callable, execution.recording, size)
    device.clock.advance(timed.timeline.device_wall_ns + device.host.drain_ns)
    return Launched(
        execution.recording, timed.timeline, timed.chip, timed.state_before, execution.findings,
        log=execution.log, sizing=size,
    )  # fmt: skip


def _validate(device: ChipDevice, operands: Operands) -> None:
    """Results back to the host."""
    operands.copy_back()
    device.clock.advance(sum(map(device.host.download_ns, operands.downloads)))


def _note_device(log: SpanLog, timeline: Timeline) -> None:
    if device_spans_enabled():
        log.device_spans(timeline.device_wall_ns, timeline.phases, timeline.task_slots)
    with log.span(CLAIM_RELEASE):
        pass
