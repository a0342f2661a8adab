"""The processes of a worker and the memory they share."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, Final

from pypto.backend.platforms import Platform, find_platform
from pypto.runtime.distributed_programs import ChipTask, SubWorker
from pypto.runtime.interruption import Interruption
from pypto.runtime.ranks import RankProcess, in_forking_thread, stop_all
from pypto.runtime.ranks_exchange import RankBoard
from pypto.runtime.ranks_pulse import LOOK_S
from pypto.runtime.shared_memory import SharedRegion

STARTUP_TIMEOUT_S: Final = 120.0
GIB: Final = 1 << 30
# Address space, not memory: pages are committed when they are used. A card has 64 GB (spec hardware 1.1).
CARD_BYTES: Final = 64 * GIB
WINDOW_BYTES: Final = 256 * GIB
HOST_BYTES: Final = 64 * GIB
BOARD_BYTES: Final = 1 << 16


class Crew:
    """One process per chip and per sub-worker slot; ``broken`` says what happened to one that is gone.

    To be made within ``interruption``, which is also entered while the processes are spoken to.
    """

    def __init__(
        self,
        platform: str,
        device_ids: Sequence[int],
        runtime: str,
        tasks: Sequence[ChipTask],
        sub_workers: Mapping[str, SubWorker],
        sub_count: int,
        timeout_s: float | None,
        interruption: Interruption,
    ):
        self.platform: Platform = find_platform(platform)
        self.device_ids = tuple(device_ids)
        self.broken = ""
        self.interruption = interruption
        self._pid = os.getpid()
        self.chips: list[RankProcess] = []
        self.subs: list[RankProcess] = []
        self._regions: list[SharedRegion] = []
        self._board: RankBoard | None = None
        try:
            self.windows = self._region(WINDOW_BYTES, "window memory")
            self.host = self._region(HOST_BYTES, "host memory")
            self.cards = [self._region(CARD_BYTES, f"device {number}") for number in self.device_ids]
            self.board = self._board = RankBoard(self._region(BOARD_BYTES, "rank board"), len(self.device_ids))
            limit_s = STARTUP_TIMEOUT_S if timeout_s is None else timeout_s
            in_forking_thread(lambda: self._start(runtime, tasks, sub_workers, sub_count), STARTUP_TIMEOUT_S)
            self._await(limit_s)
        except BaseException:
            self.close()
            raise

    @property
    def world_size(self) -> int:
        return len(self.device_ids)

    def _region(self, size: int, purpose: str) -> SharedRegion:
        region = SharedRegion(size, purpose)
        self._regions.append(region)
        return region

    def _start(
        self, runtime: str, tasks: Sequence[ChipTask], sub_workers: Mapping[str, SubWorker], sub_count: int
    ) -> None:
        from pypto.runtime.ranks_chip import ChipMain, ChipSetup

        callables, stand_ins = tuple(task.callable for task in tasks), tuple(task.stand_ins for task in tasks)
        hids = _hids(tasks, self.platform)
        ends: list[Connection] = []
        for rank, device in enumerate(self.device_ids):
            setup = ChipSetup(rank, device, self.platform, runtime, callables, hids, self.board, stand_ins)

            def chip(connection: Connection, setup: ChipSetup = setup) -> None:
                ChipMain(setup, connection).serve()

            self.chips.append(RankProcess(f"rank {rank} of {self.world_size} on device {device}", chip, list(ends)))
            ends.append(self.chips[-1].connection)
        for number in range(sub_count):

            def sub(connection: Connection) -> None:
                from pypto.runtime.distributed_runner import serve

                serve(sub_workers, connection)

            self.subs.append(RankProcess(f"sub-worker process {number}", sub, list(ends)))
            ends.append(self.subs[-1].connection)

    def _await(self, timeout_s: float) -> None:
        """Every process says that it is ready."""
        deadline = time.monotonic() + timeout_s
        waiting = {process.connection: process for process in (*self.chips, *self.subs)}
        while waiting:
            sources: list[Any] = [*waiting, *(p.sentinel for p in waiting.values()), *self.interruption.sources]
            left_s = deadline - time.monotonic()
            wait(sources, min(LOOK_S, max(0.0, left_s)))
            self.interruption.check()
            if left_s <= 0:
                names = ", ".join(p.name for p in waiting.values())
                raise TimeoutError(f"{names} did not start within {timeout_s:g} s")
            for connection, process in list(waiting.items()):
                if connection.poll():
                    try:
                        connection.recv()
                    except EOFError:
                        raise RuntimeError(f"{process.name} {process.end_text()} while it started") from None
                    del waiting[connection]
                elif not process.alive:
                    raise RuntimeError(f"{process.name} {process.end_text()} while it started")

    @property
    def is_own(self) -> bool:
        """False in a process that was forked from the one that opened the worker."""
        return os.getpid() == self._pid

    def need_own_process(self) -> None:
        """``RuntimeError`` in a forked copy of the process."""
        if not self.is_own:
            raise RuntimeError(
                f"this worker belongs to process {self._pid}, this is process {os.getpid()}; open a worker here"
            )

    def kill(self) -> None:
        """End every process by force; whoever waits for one learns that it is gone."""
        for process in (*self.chips, *self.subs):
            process.kill()

    def close(self) -> None:
        """End every process and give the memory back; in a forked copy of this process, nothing is its to end."""
        if not self.is_own:
            return
        with self.interruption:
            stop_all([*self.chips, *self.subs])
            self.chips.clear()
            self.subs.clear()
            if self._board is not None:
                self._board.close()
            for region in self._regions:
                region.close()
            self._regions.clear()


def _hids(tasks: Sequence[ChipTask], platform: Platform) -> tuple[str, ...]:
    """Identity of every chip program in markers: its content, or its place by name without a device clock (4.2)."""
    if platform.clocked:
        return tuple(task.callable.hid for task in tasks)
    from pypto.runtime import task_names

    order = {name: index for index, name in enumerate(sorted({task.name for task in tasks}))}
    task_names.remember_places({f"{index:x}": name for name, index in order.items()})
    return tuple(f"{order[task.name]:x}" for task in tasks)


def warm(platform: Platform) -> None:
    """Load what every rank would load for itself, so that it is inherited instead."""
    from importlib import import_module

    from pypto.sim.machine import interpreter

    interpreter()
    import_module("pypto.sim.checks.run")
    if platform.clocked:
        from pypto.sim.timing.ahead import load_engine

        load_engine(platform.chip)
