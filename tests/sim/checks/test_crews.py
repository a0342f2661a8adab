"""Clocks of cores that wait for each other: queues of any depth, snapshots that come and go."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import pypto.language as pl
from pypto.sim import crosscore, tile_queues
from pypto.sim.checks import words as w
from pypto.sim.checks.clocks import EVENT_PLACES, GLOBAL_PLACES
from pypto.sim.checks.crews import Crew
from pypto.sim.checks.watch import LaunchWatch

M, K, N, TRIPS = 32, 32, 32, 600


@pytest.mark.parametrize("depths", [{0: 8}, {0: 16, 1: 16}, {3: 1, 33: 4, 34: 40}])
def test_every_slot_of_every_queue_has_a_clock_of_its_own(depths):
    channels = np.zeros(crosscore.CLUSTER_WORDS, np.int64)
    queues = channels[tile_queues.QUEUES : tile_queues.QUEUES_END].reshape(-1, tile_queues.QUEUE_WORDS)
    for queue, depth in depths.items():
        queues[queue, tile_queues.DEPTH], queues[queue, tile_queues.SLOT_BYTES] = depth, 64
    crew = Crew(1, 3, 2, channels)
    places = [
        int(crew.words[w.CREW_QUEUES + queue]) + slot for queue, depth in depths.items() for slot in range(depth + 1)
    ]
    assert sorted(places) == list(range(EVENT_PLACES, int(crew.words[w.CREW_PLACES])))
    assert crew.shared.shape == (GLOBAL_PLACES + 2 * int(crew.words[w.CREW_PLACES]), 3)


@pl.jit
def repeated(a: pl.Tensor[[M, K], pl.FP16], b: pl.Tensor[[K, N], pl.FP16], y: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="mixed", optimizations=[pl.cross_core_slot(slot_num=12)]):
        for _ in pl.range(TRIPS):
            y[:, :] = pl.add(pl.matmul(a, b, out_dtype=pl.FP32), 1.0)
    return y


def test_600_trips_through_a_queue_of_12_slots_keep_few_snapshots(findings, monkeypatch):
    crews: list[Crew] = []
    new_crew = LaunchWatch.new_crew

    def note(self: LaunchWatch, *arguments) -> Crew:
        crews.append(new_crew(self, *arguments))
        return crews[-1]

    monkeypatch.setattr(LaunchWatch, "new_crew", note)
    a, b, y = torch.rand(M, K).half(), torch.rand(K, N).half(), torch.zeros(M, N)
    assert findings(repeated, a, b, y) == []
    torch.testing.assert_close(y, a.float() @ b.float() + 1, rtol=1e-3, atol=1e-3)
    assert crews and all(len(crew.snapshots) <= 256 for crew in crews)
