"""Proof that a launch was prepared while its predecessor ran (``profiling.md`` 4.1.7)."""

from __future__ import annotations

from dataclasses import dataclass

from pypto.perf.grammar import parse_attrs
from pypto.perf.grouping import LaunchGroups
from pypto.perf.span import TableInvocation, TraceSpan

IDENTITY = ("run_id", "dispatch_id", "run_epoch", "slot_id", "generation")


class OverlapError(ValueError):
    """The log does not prove overlap; the message says which launches and why."""


@dataclass(frozen=True)
class NativeRun:
    """The spans of one complete launch that the proof looks at."""

    pid: int
    inv: int
    sequence: int
    bind: TraceSpan
    run: TraceSpan
    release: TraceSpan

    def __str__(self) -> str:
        return f"pid {self.pid} inv {self.inv}"


def prove_overlap(groups: LaunchGroups, *, hidden: bool = False) -> int:
    """Number of adjacent launch pairs of which every successor's ``bind`` overlapped its predecessor's run.

    Args:
        hidden: also require that ``bind`` ended before the predecessor's run did.

    Raises:
        OverlapError: some pair did not overlap, or the log is not complete enough to tell.
    """
    runs = _native_runs(groups)
    pairs = 0
    for pid in sorted({run.pid for run in runs}):
        own = sorted((run for run in runs if run.pid == pid), key=lambda run: run.run.ts)
        for before, after in zip(own, own[1:]):
            _check_pair(before, after, hidden=hidden)
            pairs += 1
    if not pairs:
        raise OverlapError(f"at least two complete native runs of one process are needed, found {len(runs)}")
    return pairs


def _native_runs(groups: LaunchGroups) -> list[NativeRun]:
    runs: list[NativeRun] = []
    identities: set[tuple[int | str, ...]] = set()
    for launch in range(len(groups)):
        invocation = TableInvocation(groups.table, groups.of(launch))
        root = invocation.root()
        identity = parse_attrs(root.attrs) if root else {}
        if not any(key in identity for key in IDENTITY):
            continue
        who = f"pid {invocation.pid} inv {invocation.inv}"
        sequence = _sequence(identity, who)
        if sequence == 0:
            continue
        key = (invocation.pid, *(identity[k] for k in IDENTITY))
        if key in identities:
            raise OverlapError(f"duplicate identity {dict(zip(IDENTITY, key[1:]))} at {who}")
        identities.add(key)
        runs.append(_native_run(invocation, sequence, who))
    return runs


def _sequence(identity: dict[str, int | str], who: str) -> int:
    missing = [key for key in IDENTITY if key not in identity]
    if missing:
        raise OverlapError(f"missing identity field(s) {', '.join(missing)} at {who}")
    odd = [f"{key}={identity[key]}" for key in IDENTITY if not isinstance(identity[key], int)]
    if odd:
        raise OverlapError(f"non-integer identity {', '.join(odd)} at {who}")
    return int(identity["dispatch_id"]) or int(identity["run_epoch"])


def _native_run(invocation: TableInvocation, sequence: int, who: str) -> NativeRun:
    words, spans = invocation.run_names, invocation.by_name()
    needed = (words.bind, words.runner_run, words.claim_release)
    missing = [name for name in needed if name not in spans]
    if missing:
        raise OverlapError(f"missing span(s) {', '.join(missing)} at {who}")
    return NativeRun(invocation.pid, invocation.inv, sequence, *(spans[name] for name in needed))


def _check_pair(before: NativeRun, after: NativeRun, *, hidden: bool) -> None:
    pair = f"{before} and inv {after.inv}"
    if after.sequence <= before.sequence:
        raise OverlapError(f"launch order is not monotonic: {before.sequence} then {after.sequence} at {pair}")
    if not (after.bind.ts < before.run.end and after.bind.end > before.run.ts):
        gap = after.bind.ts - before.run.end
        raise OverlapError(f"bind and runner_run did not overlap at {pair}: {gap} ns apart")
    if hidden and after.bind.end > before.run.end:
        late = after.bind.end - before.run.end
        raise OverlapError(f"bind was not fully hidden at {pair}: it ends {late} ns after the run")
    if after.run.ts < before.release.ts:
        early = before.release.ts - after.run.ts
        raise OverlapError(f"runner_run was reordered before the claim release at {pair}: {early} ns too early")
