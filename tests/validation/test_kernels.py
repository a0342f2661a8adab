"""The kernels of the validation compute what they are said to compute."""

import pytest
import torch

from pypto.validation.attention import Attention, _program
from pypto.validation.gemm import Gemm, _kernel
from pypto.validation.programs import compiled


def run(kernel, folder, *arguments):
    compiled(kernel, *arguments, folder=str(folder))(*arguments)


@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("depth", [(1, 1), (4, 2)])
def test_a_tiled_product_with_ragged_edges(tmp_path, turned, depth):
    m, n, k = 200, 270, 512
    shape = Gemm(m, n, k, (2, 2), (64, 64, 64), *depth, bands=2, turned=turned, out="float32")
    a, b, c = torch.randn(m, k).half() / 8, torch.randn(k, n).half() / 8, torch.zeros(m, n)
    run(_kernel(shape), tmp_path, a, b.T.contiguous() if turned else b, c)
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-3, atol=1e-3)


def test_attention_of_more_blocks_than_clusters(tmp_path):
    queries, keys = 384, 768
    q, k, v = (torch.randn(n, 128).half() / 4 for n in (queries, keys, keys))
    out = torch.zeros(queries, 128).half()
    run(_program(Attention(queries, keys, 2)), tmp_path, q, k, v, out)
    want = torch.softmax(q.float() @ k.float().T, -1) @ v.float()
    torch.testing.assert_close(out.float(), want, rtol=1e-2, atol=2e-3)
