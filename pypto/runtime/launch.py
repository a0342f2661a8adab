"""One launch: bind the arguments, run, validate, and tell about it in markers (spec profiling 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pypto.runtime import markers
from pypto.runtime.arguments import Argument, Slot
from pypto.runtime.callable import ChipCallable
from pypto.runtime.chip_device import ChipDevice, device_spans_enabled
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

if TYPE_CHECKING:
    from pypto.sim.timing import Timeline


def launch(
    device: ChipDevice,
    callable: ChipCallable,
    slots: Sequence[Slot],
    arguments: Sequence[Argument],
    config: RunConfig,
) -> Timeline | None:
    """Run ``callable`` once with ``arguments``, checked before; its timeline on a clocked platform, else ``None``.

    The caller's tensors change only when the launch succeeds. Markers are written either way.
    """
    size = sizing(config, callable.runtime_config, device.platform)
    device.register(callable)
    if config.cold_start:
        device.forget_caches()
    log = SpanLog(device.clock)
    identity = markers.Launch(markers.next_invocation(), device.hid(callable))
    try:
        with log.span(RUN, _run_identity(device, identity.inv)):
            with log.span(BIND):
                operands = _bind(device, log, slots, arguments, size)
            with log.span(RUNNER_RUN):
                timeline = _run(device, callable, operands, size, config.threads)
            with log.span(VALIDATE):
                _validate(device, operands)
            if timeline is not None:
                _note_device(log, timeline)
    finally:
        if device.writes_markers:
            markers.write_spans(identity, log.spans, written_ns=device.clock.now_ns())
    return timeline


def _run_identity(device: ChipDevice, inv: int) -> str:
    """Attributes of the root span of a clocked platform (spec profiling 1.7); the values-only ones write none."""
    if not device.clock.modelled:
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


def _run(
    device: ChipDevice, callable: ChipCallable, operands: Operands, size: Sizing, threads: int | None
) -> Timeline | None:
    """Values, then time: enqueue, the device's wall, drain."""
    device.clock.advance(device.host.enqueue_ns)
    execution = callable.program.execute(
        operands.arguments,
        record=device.platform.clocked,
        clusters=device.clusters,
        threads=threads,
        platform=device.platform.name,
    )
    if execution.recording is None:
        return None
    timeline = device.time(callable, execution.recording, size)
    device.clock.advance(timeline.device_wall_ns + device.host.drain_ns)
    return timeline


def _validate(device: ChipDevice, operands: Operands) -> None:
    """Results back to the host."""
    operands.copy_back()
    device.clock.advance(sum(map(device.host.download_ns, operands.downloads)))


def _note_device(log: SpanLog, timeline: Timeline) -> None:
    if device_spans_enabled():
        log.device_spans(timeline.device_wall_ns, timeline.phases, timeline.task_slots)
    with log.span(CLAIM_RELEASE):
        pass
