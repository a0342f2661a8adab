"""Why a program over several ranks takes as long as it does: each launch explained, and whom it waited for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pypto.runtime.distributed_clock import ClockedTask

if TYPE_CHECKING:
    import pandas

    from pypto.runtime.run_config import RunConfig
    from pypto.sim.explanation import Explanation


@dataclass(frozen=True)
class RankLaunch:
    """One launch of a run. Times in us; start and end of the device wall from the start of the run.

    ``waited_us``, ``moved_us``: time on its critical path that it waited for a signal of a rank, and that transfers
    to or from a rank took, per rank, most first.
    """

    rank: int
    program: str
    start_us: float
    end_us: float
    explanation: Explanation = field(repr=False)
    waited_us: Mapping[int, float]
    moved_us: Mapping[int, float]

    def __str__(self) -> str:
        return f"rank {self.rank}: {self.explanation}"


@dataclass(frozen=True)
class RanksExplanation:
    """The launches of one run in the order of their submission; ``print`` shows them side by side, the last in full."""

    launches: tuple[RankLaunch, ...]

    @property
    def last(self) -> RankLaunch:
        """The launch that ends last."""
        return max(self.launches, key=lambda launch: launch.end_us)

    def to_pandas(self) -> pandas.DataFrame:
        """One row per launch: rank, program, start_us, end_us, effective_us, ``critical.<class>`` in us."""
        import pandas as pd

        return pd.DataFrame(
            {
                "rank": launch.rank,
                "program": launch.program,
                "start_us": launch.start_us,
                "end_us": launch.end_us,
                "effective_us": launch.explanation.timeline.effective_us,
                **{f"critical.{kind}": us for kind, us in launch.explanation.class_us().items()},
            }
            for launch in self.launches
        )

    def __str__(self) -> str:
        first, last = min(launch.start_us for launch in self.launches), self.last
        ranks = len({launch.rank for launch in self.launches})
        lines = [
            f"{len(self.launches)} launches on {ranks} ranks: {last.end_us - first:.2f} us from the first start to the "
            f"last end, which is that of rank {last.rank}",
            "",
            *(_line(launch) for launch in self.launches),
            "",
            str(last),
        ]
        return "\n".join(lines)


def explain_ranks(compiled: Any, args: Sequence[Any], config: RunConfig | None = None) -> RanksExplanation:
    """Run ``compiled``, a program over several ranks, once and say what the time of every launch went on.

    ``args``: shared host tensors and numbers, as for a call. ``TypeError`` for a program of one chip, ``ValueError``
    for a platform without a device clock.
    """
    from pypto.runtime.distributed_worker import DistributedWorker

    if not hasattr(compiled, "distributed_config"):
        raise TypeError(
            f"explain_ranks takes a compiled program over several ranks, got {type(compiled).__name__}; "
            "pypto.sim.explain explains a recording of one chip"
        )
    with DistributedWorker(compiled, config) as worker:
        return worker.explain(compiled, *args, config=config)


def ranks_explanation(
    clocked: Sequence[ClockedTask],
    senders: Sequence[Sequence[int]],
    explained: Mapping[int, Explanation],
    names: Mapping[int, str],
) -> RanksExplanation:
    """Put the explanations (by number of the launch) together with who ended the waits (``RankClock.senders``)."""
    launches = []
    for task, ended_by in zip(clocked, senders):
        explanation, signals = explained[task.number], task.signals
        from_rank = [clocked[sender].rank if sender >= 0 else task.rank for sender in ended_by]
        waited = _by_rank(explanation, "ranks", dict(zip(signals.wait_row.tolist(), from_rank)))
        moved = _by_rank(explanation, "link", dict(zip(signals.remote_row.tolist(), signals.remote_peer.tolist())))
        start_us = task.device_ns / 1000
        end_us = start_us + task.wall_ns / 1000
        launches.append(RankLaunch(task.rank, names.get(task.number, ""), start_us, end_us, explanation, waited, moved))
    return RanksExplanation(tuple(launches))


def _by_rank(explanation: Explanation, kind: str, rank_of_row: Mapping[int, int]) -> dict[int, float]:
    """Time of a class per rank on the other side, in us, most first."""
    found: dict[int, float] = defaultdict(float)
    for step in explanation.steps:
        if step.kind == kind:
            found[rank_of_row[step.row]] += step.us
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _line(launch: RankLaunch) -> str:
    """One launch in one line."""
    window = f"{launch.start_us:.2f} to {launch.end_us:.2f} us"
    parts = [f"rank {launch.rank} {launch.program}: {window}"]
    for what, sums in (("waits for", launch.waited_us), ("transfers with", launch.moved_us)):
        if sums:
            parts.append(f"{what} " + ", ".join(f"rank {rank} {us:.2f}" for rank, us in sums.items()))
    classes = launch.explanation.class_us()
    most = next((kind for kind in classes if kind not in ("ranks", "link")), "")
    return "; ".join([*parts, f"else mostly {most} {classes[most]:.2f}"] if most else parts)
