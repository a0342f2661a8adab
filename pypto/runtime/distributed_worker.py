"""A worker of several chips: prepared once, launched on many times (spec distributed 3.3 to 3.8)."""

from __future__ import annotations

import contextlib
import math
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pypto.backend.platforms import find_platform
from pypto.runtime import log_config
from pypto.runtime.arguments import Slot
from pypto.runtime.device_memory import Allocation
from pypto.runtime.dispatch import check_config
from pypto.runtime.distributed_arguments import HostArguments
from pypto.runtime.distributed_crew import Crew, warm
from pypto.runtime.distributed_dfx import clear_diagnostics
from pypto.runtime.distributed_host import HostRun
from pypto.runtime.distributed_inherited import InheritedMemory
from pypto.runtime.distributed_memory import CardMemory
from pypto.runtime.distributed_programs import HostProgram, bind_sub_workers
from pypto.runtime.distributed_run import Execution, RankCheckError
from pypto.runtime.distributed_times import RunTimes
from pypto.runtime.distributed_windows import Windows
from pypto.runtime.interruption import Interruption
from pypto.runtime.orchestration import Orchestration
from pypto.runtime.placement import calling_line
from pypto.runtime.rank_checks import RunChecks, checks_of, effective
from pypto.runtime.registration import CallableId, RegistrationHandle
from pypto.runtime.run_config import RunConfig
from pypto.runtime.run_placement import shared_in_flight, undispatched
from pypto.runtime.stacked_memory import StackedMemory, host_tensor
from pypto.sim.checks.findings import Finding, PlacementError
from pypto.sim.checks.forced import keep

if TYPE_CHECKING:
    import torch

    from pypto.runtime.ranks_explanation import RanksExplanation
    from pypto.sim.checks.selection import Checks

IN_FLIGHT: Final = 2


class DistributedRunHandle:
    """A run that was submitted; its result is ``None`` or the error it failed with, every time it is asked for."""

    # An event, not Thread.join: CPython marks a thread as ended when KeyboardInterrupt cuts its join short.

    def __init__(self, slots: Sequence[Slot] = (), bound: Sequence[Any] = ()):
        self._ended = threading.Event()
        self._uses = slots, bound
        self._awaited = False
        self._error: BaseException | None = None

    @property
    def done(self) -> bool:
        """Whether the run is over."""
        over = self._ended.is_set()
        self._awaited = self._awaited or over
        return over

    def wait(self, timeout: float | None = None) -> None:
        """Wait for the run; ``TimeoutError`` when it takes longer than ``timeout`` seconds (it goes on)."""
        if timeout is not None and (not math.isfinite(timeout) or timeout < 0):
            raise ValueError(f"timeout must be a non-negative finite number of seconds, got {timeout!r}")
        self._ended.wait(timeout)
        if not self.done:
            raise TimeoutError(f"the run is still going on after {timeout:g} s")
        self._awaited = True

    def result(self, timeout: float | None = None) -> None:
        """Wait for the run and raise what it failed with."""
        self.wait(timeout)
        if self._error is not None:
            raise self._error


class DistributedWorker(StackedMemory):
    """Chips for one program or several of the same platform, devices and runtime; open until :meth:`close`.

    One process per chip is forked here. It shares the memory that is shared now: host tensors of later calls must be
    ``.share_memory_()`` and allocated before this point, then reused in place.

    ``values=False``: signals are sent and waited for, everything is recorded and timed, and no tensor is touched; for
    programs in which no value but a signal decides what is done (``ValueError`` for others). Ask for no checks then.
    """

    def __init__(
        self,
        compiled: Any,
        config: RunConfig | None = None,
        *,
        persistent: bool = False,
        reset_persistent_windows: bool | None = None,
        callbacks: Mapping[str, Any] | None = None,
        sub_worker_overrides: Mapping[str, Any] | None = None,
        inherited_host_tensors: Sequence[torch.Tensor] | None = None,
        startup_timeout_s: float | None = None,
        values: bool = True,
    ):
        super().__init__()
        self._closed = True
        programs = list(compiled) if isinstance(compiled, (list, tuple)) else [compiled]
        _check_options(programs, persistent, reset_persistent_windows, startup_timeout_s)
        self._programs = _load(programs, values)
        self._config = config
        first = programs[0]
        self.persistent = persistent
        self._poisoned: Exception | None = None
        subs = bind_sub_workers(self._programs, _callbacks(callbacks, sub_worker_overrides))
        wanted = max((p.distributed_config.num_sub_workers for p in programs), default=0)
        self._inherited = InheritedMemory(inherited_host_tensors or ())
        tasks = [t for p in self._programs for t in p.tasks.values()]
        platform = find_platform(first.platform)
        warm(platform)
        interruption = Interruption()
        with interruption:
            self._crew = Crew(
                first.platform,
                first.distributed_config.device_ids,
                self._programs[0].runtime_name,
                tasks,
                subs,
                max(wanted, len(subs)) if subs or wanted else 0,
                startup_timeout_s,
                interruption,
            )
            self._finalizer = weakref.finalize(self, self._crew.close)
        self._cards = [CardMemory(region) for region in self._crew.cards]
        spaces = [card.space for card in self._cards]
        resets = reset_persistent_windows is not False
        self._windows = Windows(self._crew.windows, spaces, persistent=persistent, resets=resets)
        self._arguments = HostArguments(self._cards, self._inherited)
        self._times = RunTimes(self._crew, log_config.current_level())
        self._created: dict[tuple[int, int], tuple[int, int]] = {}
        self._runs = 0
        self._explains = False
        self._explanation: RanksExplanation | None = None
        self._cells: dict[tuple[int, int], int] = {}
        self._lock = threading.Lock()
        self._pending: deque[DistributedRunHandle] = deque()
        self._orchestrations: weakref.WeakSet[Orchestration] = weakref.WeakSet()
        self._closed = False

    # --- state --------------------------------------------------------------------------------------------------------

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self._crew.world_size

    @property
    def platform(self) -> str:
        return self._crew.platform.name

    @property
    def pids(self) -> list[int]:
        """Process of every rank."""
        return [process.pid for process in self._crew.chips]

    def close(self) -> None:
        """Wait for submitted runs, free everything, end the processes; calling it again does nothing.

        Nor does calling it in a forked copy of the process: ranks and memory are the original's.
        """
        if self._closed:
            return
        if not self._crew.is_own:
            self._closed = True
            return
        try:
            self._drain()
            for orchestration in list(self._orchestrations):
                orchestration.close()
        except BaseException:  # an interruption: the runs that are under way end with their ranks
            self._crew.kill()
            self._drain()
            raise
        finally:
            self._close_owned_tensors()
            self._closed = True
            self._finalizer()

    def _drain(self) -> None:
        """Wait for the submitted runs."""
        while self._pending:
            self._await_first()

    def _await_first(self) -> None:
        """Wait for the oldest submitted run; it stays listed when the wait is interrupted."""
        with contextlib.suppress(IndexError, ValueError):  # another thread waited for it, too
            first = self._pending[0]
            first._ended.wait()
            self._pending.remove(first)

    def __enter__(self) -> DistributedWorker:
        self._require_ready("__enter__")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is not None and not issubclass(kind, Exception):  # interrupted: nobody waits for what is under way
            self._crew.kill()
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a DistributedWorker cannot be pickled: its ranks are children of this process")

    def _require_ready(self, operation: str) -> None:
        if self._closed:
            raise RuntimeError(f"DistributedWorker.{operation}() called after close()")
        self._crew.need_own_process()

    # --- runs ---------------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, config: RunConfig | None = None) -> None:
        """Run the only program and wait for it."""
        self._require_ready("submit")
        if len(self._programs) > 1:
            raise TypeError(
                f"the call is ambiguous: {len(self._programs)} programs are prepared; use run(compiled, ...)"
            )
        self._execute(self._programs[0], args, config)

    def run(self, compiled: Any, *args: Any, config: RunConfig | None = None) -> None:
        """Run one of the prepared programs and wait for it."""
        self._require_ready("submit")
        self._execute(self._program(compiled), args, config)

    def submit(self, compiled: Any, *args: Any, config: RunConfig | None = None) -> DistributedRunHandle:
        """Start a run and return at once; of three runs the first is waited for. Runs execute in order."""
        self._require_ready("submit")
        program = self._program(compiled)
        bound = self._arguments.bind(program, args)
        if len(self._pending) >= IN_FLIGHT:
            self._await_first()
        found = self._shared_in_flight(program, bound, config)
        previous = self._pending[-1] if self._pending else None

        handle = DistributedRunHandle(program.slots, bound)

        def body() -> None:
            try:
                if previous is not None:
                    previous._ended.wait()
                self._run_bound(program, bound, config, found)
            except BaseException as error:  # handed to whoever asks for the result
                handle._error = error
            finally:
                handle._ended.set()

        with self._crew.interruption:  # listed and started, or neither
            threading.Thread(target=body, name="pypto-run", daemon=True).start()
            self._pending.append(handle)
        return handle

    def explain(self, compiled: Any, *args: Any, config: RunConfig | None = None) -> RanksExplanation:
        """Run one of the prepared programs, wait for it, and say what the time of its launches went on.

        ``ValueError`` on a platform without a device clock.
        """
        self._require_ready("explain")
        if not self._crew.platform.clocked:
            raise ValueError(f"{self.platform} has no device clock to explain; compile for {self._crew.platform.chip}")
        self._explains = True
        try:
            self.run(compiled, *args, config=config)
        finally:
            self._explains = False
        explanation, self._explanation = self._explanation, None
        if explanation is None:
            raise RuntimeError("the run was not explained")
        return explanation

    def register(self, compiled: Any) -> RegistrationHandle:
        """A handle that launches ``compiled``, which was loaded when this worker was constructed."""
        self._require_ready("register")
        program = self._program(compiled)
        return RegistrationHandle(self, compiled, CallableId(0, ""), program)

    def dispatch_registered(self, handle: RegistrationHandle, args: tuple[Any, ...], config: RunConfig | None) -> None:
        """Launch the program of ``handle``."""
        self._require_ready("submit")
        self._execute(handle.prepared, args, config)

    def _program(self, compiled: Any) -> HostProgram:
        for program in self._programs:
            if program.compiled is compiled:
                return program
        raise ValueError(f"{compiled} is not among the programs registered when this worker was constructed")

    def _execute(self, program: HostProgram, args: Sequence[Any], config: RunConfig | None) -> None:
        self._drain()
        self._run_bound(program, self._arguments.bind(program, args), config)

    def _shared_in_flight(self, program: HostProgram, bound: list[Any], config: RunConfig | None) -> list[Finding]:
        """Buffers that this run shares with one the caller has not waited for; raised unless findings are gathered."""
        checks = self._checks_of(program, config)
        if not checks.deep or "placement" not in checks.kinds:
            return []
        others = [handle._uses for handle in self._pending if not handle._awaited]
        found = list(shared_in_flight(program.slots, bound, others, calling_line("submit")))
        if found and checks.mode == "raise":
            raise PlacementError(found)
        return found

    def _checks_of(self, program: HostProgram, config: RunConfig | None) -> Checks:
        chosen = effective(config if config is not None else self._config, program.compiled)
        return checks_of(chosen, self._crew.platform.clocked)

    def _run_bound(
        self, program: HostProgram, bound: list[Any], config: RunConfig | None, found: Sequence[Finding] = ()
    ) -> None:
        if config is not None:
            check_config(config)
        if self._poisoned is not None:
            raise self._poisoned
        if self._crew.broken:
            raise RuntimeError(f"this worker cannot run: {self._crew.broken}; close it and open another")
        with self._lock:
            self._runs += 1
            try:
                self._run_once(program, bound, config if config is not None else self._config, found)
            except Exception as error:
                if self.persistent:
                    self._poisoned = error
                raise

    def _run_once(
        self, program: HostProgram, bound: list[Any], config: RunConfig | None, found: Sequence[Finding]
    ) -> None:
        if config is not None and config.any_dfx_enabled():
            clear_diagnostics(program.compiled.output_dir)
        times = self._times.begin()
        config = effective(config, program.compiled)
        checks = checks_of(config, self._crew.platform.clocked)
        self._windows.followed = "unpublished" in checks.kinds
        run = HostRun(program, self._windows, self.world_size, self._create, round_robin=not self.persistent)
        program.entry(run, *bound)
        times.built(run.tasks)
        with self._crew.interruption:
            done = Execution(self._crew, run.tasks, self._runs, _portable(config), self._cards, checks).execute()
            if checks.deep and "placement" in checks.kinds:
                found = [*found, *undispatched(program, bound, run.tasks, self.world_size)]
            self._check(program, run.tasks, done, checks, found)
            writes_files = config is not None and config.any_dfx_enabled()
            self._explanation = times.finish(run.tasks, done, self._runs, writes_files, self._explains)

    def _check(
        self, program: HostProgram, tasks: Sequence[Any], done: Mapping[int, Any], checks: Checks,
        early: Sequence[Finding],
    ) -> None:  # fmt: skip
        """What the checks found on the ranks and between them."""
        cells = self._cells if self._windows.kept else {}
        found = (*early, *RunChecks(checks, cells).findings(tasks, done))
        keep(tuple(early))
        program.compiled.last_findings = list(found)
        if found and checks.mode == "raise":
            raise RankCheckError(found)

    def _create(self, program: int, position: int, nbytes: int) -> int:
        """Memory of an intermediate tensor of the driver, zero at the start of every run."""
        known = self._created.get((program, position))
        if known is None or known[1] != nbytes:
            if known is not None:
                self._crew.host.release(*known)
            known = self._created[program, position] = (self._crew.host.allocate(nbytes), nbytes)
        self._crew.host.view(known[0], max(nbytes, 1))[:] = 0
        return known[0]

    # --- memory -------------------------------------------------------------------------------------------------------

    def release_inherited_host_tensor_refs(self) -> None:
        """Drop the references to host tensors that keep their memory alive."""
        self._inherited.release()

    def malloc(self, nbytes: int, *, worker_id: int = 0) -> int:
        """Address of ``nbytes`` new bytes of device memory on one chip."""
        return self._card("malloc", worker_id).malloc(nbytes).base

    def free(self, ptr: int, *, worker_id: int = 0) -> None:
        """Free the allocation that starts at ``ptr``."""
        self._card("free", worker_id).free(ptr)

    def copy_to(self, dst_dev_ptr: int, src_host_ptr: int, nbytes: int, *, worker_id: int = 0) -> None:
        """Copy host memory to the start of a device allocation."""
        self._card("copy_to", worker_id).copy_to(dst_dev_ptr, src_host_ptr, nbytes)

    def copy_from(self, dst_host_ptr: int, src_dev_ptr: int, nbytes: int, *, worker_id: int = 0) -> None:
        """Copy the start of a device allocation to host memory."""
        self._card("copy_from", worker_id).copy_from(dst_host_ptr, src_dev_ptr, nbytes)

    def committed_device_memory(self, worker_id: int = 0) -> int:
        """Bytes allocated on one chip."""
        return self._card("committed_device_memory", worker_id).committed

    def _card(self, operation: str, worker_id: int) -> CardMemory:
        self._require_ready(operation)
        if not isinstance(worker_id, int) or isinstance(worker_id, bool) or not 0 <= worker_id < len(self._cards):
            raise IndexError(f"worker_id {worker_id!r} is out of range: there are {len(self._cards)} workers")
        return self._cards[worker_id]

    def _buffer_for_ptr(self, ptr: int, *, worker_id: int = 0) -> Allocation:
        return self._card("alloc_tensor", worker_id).at(ptr)

    def _prepare_init(self, tensor: torch.Tensor) -> torch.Tensor:
        return host_tensor("init", tensor)

    # --- channels -----------------------------------------------------------------------------------------------------

    def orchestration(self) -> Orchestration:
        """A context in which channels to the chips are made (spec distributed 2.14); leaving it releases them."""
        self._require_ready("orchestration")
        made = Orchestration(self)
        self._orchestrations.add(made)
        return made

    def _gone(self, rank: int) -> str:
        """What happened to a rank that is no more, "" for one that is."""
        if self._closed or not self._crew.chips:
            return "the worker is closed"
        process = self._crew.chips[rank]
        return "" if process.alive else f"{process.name} {process.end_text()}"


def _check_options(programs: list[Any], persistent: bool, resets: bool | None, timeout: Any) -> None:
    if not programs:
        raise ValueError("DistributedWorker needs at least one compiled program")
    for program in programs:
        if not hasattr(program, "distributed_config"):
            chip = "; ChipWorker launches programs of one chip" if hasattr(program, "output_dir") else ""
            raise AttributeError(f"{type(program).__name__} is no distributed program{chip}")
    first = programs[0]
    for other in programs[1:]:
        if other.platform != first.platform:
            raise ValueError(
                f"multi-program mode requires the same platform, got {first.platform!r} and {other.platform!r}"
            )
        ids = (first.distributed_config.device_ids, other.distributed_config.device_ids)
        if ids[0] != ids[1]:
            raise ValueError(f"multi-program mode requires the same device_ids, got {ids[0]} and {ids[1]}")
    if resets and not persistent:
        raise ValueError("reset_persistent_windows=True requires persistent=True")
    if timeout is not None:
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
            raise TypeError(f"startup_timeout_s is a number of seconds, got {timeout!r}")
        if not math.isfinite(timeout) or timeout <= 0:
            raise ValueError(f"startup_timeout_s must be a positive finite number, got {timeout!r}")


def _load(programs: list[Any], values: bool) -> list[HostProgram]:
    loaded: list[HostProgram] = []
    count = 0
    for index, program in enumerate(programs):
        loaded.append(HostProgram(program, index, count, values))
        count += len(loaded[-1].tasks)
    names = {p.runtime_name for p in loaded}
    if len(names) > 1:
        raise ValueError(f"multi-program mode requires the same runtime, got {', '.join(sorted(names))}")
    return loaded


def _callbacks(callbacks: Mapping[str, Any] | None, overrides: Mapping[str, Any] | None) -> Mapping[str, Any]:
    for name, given in (("callbacks", callbacks), ("sub_worker_overrides", overrides)):
        if given is not None and not isinstance(given, Mapping):
            raise TypeError(f"{name} maps names of sub-workers to callables, got {type(given).__name__}")
    if overrides is None:
        return callbacks or {}
    warnings.warn("sub_worker_overrides is now called callbacks", DeprecationWarning, stacklevel=4)
    return {**overrides, **(callbacks or {})}


def _portable(config: RunConfig | None) -> RunConfig | None:
    """``config`` without what a rank has no use for and a pipe may not take."""
    import dataclasses

    return (
        None
        if config is None
        else dataclasses.replace(config, distributed_config=None, strategy=None, memory_planner=None)
    )
