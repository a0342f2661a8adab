"""What runs in the process of a rank: one simulated chip that takes dispatches from its parent."""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from pypto.backend.platforms import Platform
from pypto.runtime import markers
from pypto.runtime.callable import ChipCallable
from pypto.runtime.chip_device import ChipDevice, device_spans_enabled
from pypto.runtime.dfx.task_log import log_for
from pypto.runtime.distributed_signals import signals_of
from pypto.runtime.distributed_timing import ChipTiming, TimedLaunch
from pypto.runtime.host_clock import ModelledClock
from pypto.runtime.host_model import ARENA_BUILD_NS, ARENA_REUSE_NS
from pypto.runtime.markers import DEVICE_CLOCK
from pypto.runtime.rank_checks import checks_of
from pypto.runtime.ranks import STOP
from pypto.runtime.ranks_exchange import RankBoard, RankExchange, RunAbandoned
from pypto.runtime.ranks_protocol import (
    Abandoned,
    Dispatch,
    Done,
    Explain,
    Explained,
    Failed,
    Finish,
    Recall,
    Recalled,
    TensorWords,
    TimeIt,
)  # fmt: skip
from pypto.runtime.run_config import RunConfig
from pypto.runtime.spans import (
    BIND,
    BIND_ARGS,
    BIND_PREBUILT,
    CLAIM_RELEASE,
    DEVICE_WALL,
    RUN,
    RUNNER_RUN,
    VALIDATE,
    SpanLog,
)
from pypto.runtime.task_runtime import Sizing, sizing
from pypto.sim.chips import chip
from pypto.sim.told_signals import ToldSignals

READY = ("ready",)
_NO_CONFIG = RunConfig()


@dataclass(frozen=True)
class ChipSetup:
    """What a rank is given when it is forked."""

    rank: int
    device_id: int
    platform: Platform
    runtime: str
    callables: tuple[ChipCallable, ...]
    hids: tuple[str, ...]
    board: RankBoard
    stand_ins: tuple[Mapping[str, Any], ...] = ()


@dataclass
class Launched:
    """A dispatch that has run and whose markers are still to be written."""

    dispatch: Dispatch
    arena_ns: int
    transfers: Transfers
    timed: TimedLaunch


@dataclass(frozen=True)
class Transfers:
    """Bytes per copied host tensor, and the number of device buffers."""

    uploads: tuple[int, ...]
    downloads: tuple[int, ...]
    allocations: int


class ChipMain:
    """Serves the parent until told to stop."""

    def __init__(self, setup: ChipSetup, connection: Connection):
        self.setup, self.connection = setup, connection
        self.device = ChipDevice(setup.platform, setup.device_id, setup.runtime)
        self.timing = ChipTiming(setup.platform.chip)
        self._arena: Sizing | None = sizing(RunConfig(platform=setup.platform.name), {}, setup.platform)
        self._launched: dict[int, Launched] = {}
        self._told: list[ToldSignals] = []
        self._told_in = -1
        # The fixed cost of a run is the parent's; what remains here is starting the cores.
        self._launch_ns = round(chip(setup.platform.chip).host.launch.value)

    def serve(self) -> None:
        self.connection.send(READY)
        while True:
            try:
                message = self.connection.recv()
            except (EOFError, OSError):
                return
            if message == STOP:
                return
            if isinstance(message, tuple):
                self._launch(*message)
            elif isinstance(message, TimeIt):
                self.connection.send(self.timing.time([self._launched[n].timed for n in message.dispatches], message))
            elif isinstance(message, Explain):
                self.connection.send(
                    Explained(tuple(self._explained(self._launched[n].timed) for n in message.dispatches))
                )
            elif isinstance(message, Recall):
                self.connection.send(self._recalled(message.run))
            elif isinstance(message, Finish):
                self._finish(message)
                if message.answers:
                    self.connection.send(message)

    # --- values -------------------------------------------------------------------------------------------------------

    def _launch(self, dispatch: Dispatch, in_turns: bool) -> None:
        exchange = RankExchange(
            self.setup.board, self.setup.rank, self.connection, dispatch.number, dispatch.run, in_turns
        )
        if dispatch.run != self._told_in:
            self._told, self._told_in = [], dispatch.run
        self._told.append(exchange.told)
        try:
            answer: Any = self._run(dispatch, exchange)
        except RunAbandoned:
            self.setup.board.fall_asleep(self.setup.rank, 0)
            answer = Abandoned(dispatch.number)
        except Exception as error:  # whatever a kernel raises belongs to the parent
            findings = getattr(error, "findings", ())
            answer = Failed(dispatch.number, type(error).__name__, str(error), traceback.format_exc(), findings)
        self.connection.send(answer)

    def _run(self, dispatch: Dispatch, exchange: RankExchange) -> Done:
        exchange.check()
        config = dispatch.config or _NO_CONFIG
        program = self.setup.callables[dispatch.program]
        size = sizing(config, program.runtime_config, self.setup.platform)
        transfers = _transfers(program, dispatch.arguments)
        arguments = [_argument(p, a) for p, a in zip(program.program.params, dispatch.arguments)]
        arena_ns = ARENA_REUSE_NS if self._arena is not None and self._arena.rings == size.rings else ARENA_BUILD_NS
        self._arena = size
        if config.cold_start:
            self.timing.forget_caches()
        self.timing.forget(dispatch.fresh)
        clocked = self.device.clocked
        started_ns = self.device.clock.now_ns()
        execution = program.program.execute(
            arguments,
            record=clocked or config.any_dfx_enabled(),
            clusters=self.device.clusters,
            threads=config.threads,
            platform=self.setup.platform.name,
            stand_ins=self.setup.stand_ins[dispatch.program],
            exchange=exchange,
            checks=dataclasses.replace(
                checks_of(dispatch.config, clocked), mode="collect", rings=size.capacities(self.setup.platform.name)
            ),
            log=log_for(config),
            behind=dispatch.behind,
        )
        if not clocked:
            self._write_wall(dispatch, started_ns)
            if not config.any_dfx_enabled():
                now_ns = self.device.clock.now_ns()
                return Done(
                    dispatch.number, finished_ns=now_ns, findings=execution.findings, rank_log=execution.rank_log
                )
        recording: Any = execution.recording
        signals = signals_of(recording, arguments)
        timed = TimedLaunch(program, recording, size, signals, log=execution.log)
        self._launched[dispatch.number] = Launched(dispatch, arena_ns, transfers, timed)
        host = self.device.host
        before = (
            transfers.allocations * host.allocation_ns
            + sum(map(host.upload_ns, transfers.uploads))
            + arena_ns
            + self._launch_ns
        )
        after = host.drain_ns + sum(map(host.download_ns, transfers.downloads))
        # without a clock the launch is timed for its diagnostics, beside those of the other ranks
        now_ns = 0 if clocked else self.device.clock.now_ns()
        return Done(
            dispatch.number, timed.digest, before, after, signals, now_ns, execution.findings, execution.rank_log
        )

    def _recalled(self, run: int) -> Recalled:
        """What the dispatches of a run have told other ranks."""
        signals = self._told if run == self._told_in else []
        told = tuple(row for launch in signals for row in launch.rows())
        return Recalled(told, tuple(dict.fromkeys(place for launch in signals for place in launch.ahead)))

    def _explained(self, timed: TimedLaunch) -> Any:
        """What the time of a launch went on."""
        from pypto.sim.explanation.explanation import explanation_of

        state, timeline = timed.state_before, timed.timeline
        if state is None or timeline is None:
            raise RuntimeError("the launch was not timed")
        return explanation_of(timed.recording, self.timing.chip_of(timed), timeline, state.copy(), timed.told)

    def _diagnose(self, dispatch: Dispatch, timed: TimedLaunch) -> None:
        from pypto.runtime.distributed_dfx import write_rank_diagnostics
        from pypto.runtime.launch import Launched as ChipLaunch

        launched = ChipLaunch(
            timed.recording, timed.timeline, self.timing.chip_of(timed), timed.state_before,
            told=timed.told, log=timed.log, sizing=timed.sizing,
        )  # fmt: skip
        write_rank_diagnostics(launched, timed.program, dispatch.config, self.setup.rank, dispatch.index)

    # --- markers ------------------------------------------------------------------------------------------------------

    def _write_wall(self, dispatch: Dispatch, started_ns: int) -> None:
        """Markers of a launch without a device clock: what it really took."""
        if not self.device.writes_markers:
            return
        now = self.device.clock.now_ns()
        took_ns = now - started_ns
        spans = [
            markers.Span(RUNNER_RUN, 1, started_ns, took_ns),
            markers.Span(DEVICE_WALL, 2, 0, 0, DEVICE_CLOCK),
            markers.Span(RUN, 0, started_ns, took_ns),
        ]
        markers.write_spans(
            markers.Launch(markers.next_invocation(), self.setup.hids[dispatch.program]), spans, written_ns=now
        )

    def _finish(self, message: Finish) -> None:
        for number, start_ns in zip(message.dispatches, message.start_ns):
            launched = self._launched.pop(number)
            if self.device.clocked:
                self._write_modelled(launched, start_ns)
            config = launched.dispatch.config
            if config is not None and config.any_dfx_enabled():
                self._diagnose(launched.dispatch, launched.timed)
        self.timing.keep_state()
        self._launched.clear()

    def _write_modelled(self, launched: Launched, start_ns: int) -> None:
        if not self.device.writes_markers:
            return
        clock, host, transfers = ModelledClock(start_ns), self.device.host, launched.transfers
        timeline = launched.timed.timeline
        assert timeline is not None
        log = SpanLog(clock)
        inv = markers.next_invocation()
        sent = launched.dispatch
        identity = f"run_id={sent.run} dispatch_id={sent.index} slot_id=0 generation={inv} run_epoch={inv}"
        with log.span(RUN, identity):
            with log.span(BIND):
                with log.span(BIND_ARGS):
                    clock.advance(
                        transfers.allocations * host.allocation_ns + sum(map(host.upload_ns, transfers.uploads))
                    )
                with log.span(BIND_PREBUILT):
                    clock.advance(launched.arena_ns)
            with log.span(RUNNER_RUN):
                clock.advance(self._launch_ns)
                device_ns = clock.now_ns()
                clock.advance(timeline.device_wall_ns + host.drain_ns)
            with log.span(VALIDATE):
                clock.advance(sum(map(host.download_ns, transfers.downloads)))
            if device_spans_enabled():
                log.device_spans(timeline.device_wall_ns, timeline.phases, timeline.task_slots)
            with log.span(CLAIM_RELEASE):
                pass
        spans = [
            dataclasses.replace(s, attributes=f"{DEVICE_CLOCK} mono={device_ns}") if s.name == DEVICE_WALL else s
            for s in log.spans
        ]
        markers.write_spans(
            markers.Launch(inv, self.setup.hids[launched.dispatch.program]), spans, written_ns=clock.now_ns()
        )


def _transfers(program: ChipCallable, arguments: Sequence[Any]) -> Transfers:
    """What the host copies: inputs up, outputs down; windows and resident tensors stay where they are."""
    uploads, downloads, allocations = [], [], 0
    for parameter, value in zip(program.program.params, arguments):
        if not isinstance(value, TensorWords) or value.resident or value.context:
            continue
        nbytes = _tensor(parameter.name, value).nbytes
        allocations += 1
        if parameter.direction != "out":
            uploads.append(nbytes)
        if parameter.direction != "in":
            downloads.append(nbytes)
    return Transfers(tuple(uploads), tuple(downloads), allocations)


def _argument(parameter: Any, value: Any) -> Any:
    return _tensor(parameter.name, value) if isinstance(value, TensorWords) else value


def _tensor(name: str, value: TensorWords) -> Any:
    from pypto.ir.dtype import DataType
    from pypto.sim.program import TensorArgument

    return TensorArgument(
        name, value.address, value.shape, DataType.from_code(value.dtype), value.resident, value.context, value.device
    )
