"""Published times of programs over several chips (timings C1, C3, C6), and that the programs compute what they say."""

from __future__ import annotations

import pytest
import torch

from pypto.validation.communication import _FUSED_US, _TICKS, fused_us, product_us, remote_read_us, sum_us
from pypto.validation.rank_programs import Split, in_sequence, overlapped, pulled_sum

from .programs import config

LIMIT = 0.25


@pytest.mark.parametrize("make", [in_sequence, overlapped])
@pytest.mark.parametrize(("platform", "ranks", "width"), [("a2a3", 2, 128), ("a5", 4, 256), ("a2a3sim", 3, 128)])
def test_product_and_sum_over_the_ranks(make, platform, ranks, width):
    s = Split(ranks, 1536, 512, 384, blocks=8, width=width)
    torch.manual_seed(1)
    a, b = ((0.1 * torch.randn(ranks, *shape)).half().share_memory_() for shape in ((s.m, s.k), (s.k, s.n)))
    part, y = (torch.zeros(ranks, s.m, s.n).half().share_memory_() for _ in range(2))
    with make(s).compile(a, b, part, y, config=config(ranks, platform)).prepare() as rt:
        rt(a, b, part, y)
    expected = (a.float() @ b.float()).sum(0)
    torch.testing.assert_close(y.float(), expected.expand(ranks, s.m, s.n), rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize(("platform", "ranks"), [("a2a3", 4), ("a2a3sim", 8)])
def test_sum_by_reading(platform, ranks):
    torch.manual_seed(1)
    x, y = (
        torch.randn(ranks, 4 * ranks, 64).half().share_memory_(),
        torch.zeros(ranks, 4 * ranks, 64).half().share_memory_(),
    )
    with pulled_sum(ranks, 4 * ranks, 64, 3).compile(x, y, config=config(ranks, platform)).prepare() as rt:
        rt(x, y)
    torch.testing.assert_close(y.float(), x.float().sum(0).expand(x.shape), rtol=1e-2, atol=2e-2)


@pytest.mark.parametrize("nbytes", sorted(_TICKS))
def test_remote_reads_of_one_core(nbytes):
    """C3, one vector core reads a peer's memory."""
    assert remote_read_us(nbytes) == pytest.approx(_TICKS[nbytes] * 0.02, rel=LIMIT)


@pytest.mark.parametrize(("part", "ranks"), [("950PR", 2), ("910B", 8)])
def test_gemm_with_all_reduce(part, ranks):
    """C1, every published version: product alone, sum alone, in sequence, overlapped."""
    simulated = fused_us(part, ranks)
    for published in _FUSED_US[part].values():
        assert simulated == pytest.approx(published, rel=LIMIT)
    assert simulated[3] < simulated[2]


def test_matmul_then_all_reduce():
    """C6: M=4096 K=3072 N=8192 on 8 ranks, and the sum of 6 MB."""
    product = product_us()
    assert product == pytest.approx(803, rel=LIMIT)
    assert product + sum_us(4096, 8192) == pytest.approx(1874, rel=LIMIT)
    assert sum_us(384, 8192) == pytest.approx(143, rel=LIMIT)
