"""The kernels of the validation compute what they are said to compute."""

import pytest
import torch

from pypto.validation.attention import Attention, _program
from pypto.validation.gemm import Gemm, _kernel
from pypto.validation.programs import compiled
from pypto.validation.rotary import Rotary, rotary, stream
from pypto.validation.selection import top_k


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


def test_the_largest_of_a_row_with_their_places(tmp_path):
    x = torch.randn(7, 1280).round(decimals=1)
    x[:, 900:] = 100.0  # columns beyond the valid ones must not count
    values, places = torch.zeros(7, 300), torch.zeros(7, 300, dtype=torch.int32)
    run(top_k(7, 900, 300, cores=2), tmp_path, x, values, places)
    want, order = torch.sort(x[:, :900], descending=True, stable=True)
    torch.testing.assert_close(values, want[:, :300], rtol=0, atol=0)
    assert torch.equal(places.long(), order[:, :300])


@pytest.mark.parametrize("neighbours", [False, True])
@pytest.mark.parametrize(("dtype", "kind"), [("fp16", torch.float16), ("bf16", torch.bfloat16)])
def test_rotary_embedding(tmp_path, neighbours, dtype, kind):
    tokens, heads, depth = 3, 8, 64
    x, angles = torch.randn(tokens, heads, depth).to(kind), torch.rand(tokens, depth) * 6
    cosines, sines, y = angles.cos().to(kind), angles.sin().to(kind), torch.zeros(tokens * heads, depth).to(kind)
    kernel = rotary(Rotary(tokens, heads, depth, dtype, neighbours, cores=4))
    run(kernel, tmp_path, x.view(-1, depth), cosines, sines, y)
    wide = x.float()
    if neighbours:
        turned = torch.stack([-wide[..., 1::2], wide[..., ::2]], -1).flatten(-2)
    else:
        turned = torch.cat([-wide[..., depth // 2 :], wide[..., : depth // 2]], -1)
    want = wide * cosines.float()[:, None] + turned * sines.float()[:, None]
    torch.testing.assert_close(y.view(x.shape).float(), want, rtol=1e-2, atol=2e-2)


def test_a_stream_with_a_ragged_end(tmp_path):
    x, y = torch.randn(1, 5000).half(), torch.zeros(1, 5000).half()
    run(stream(5000, cores=3, tile=1024), tmp_path, x, y)
    torch.testing.assert_close(y, x + 1)
