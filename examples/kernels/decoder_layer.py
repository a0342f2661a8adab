"""One decoder layer at reduced size in BF16: RMS norm, QKV, rotary embedding, paged attention, projection, MLP."""

import math
import time

import torch
from show import check_and_time

import pypto.language as pl

T, H, HEADS, D, INNER = 16, 256, 4, 64, 512
HALF, PAGE, PAGES, MAX_PAGES, EPS = D // 2, 16, 16, 3, 1e-6
SCALE = 1.0 / math.sqrt(D)
BLOCK = 128


@pl.jit.inline
def rms_norm(x: pl.Tensor, weight: pl.Tensor, y: pl.Tensor):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="rms_norm"):
        t = pl.cast(x, pl.FP32)
        root = pl.rsqrt(pl.add(pl.mul(pl.row_sum(pl.mul(t, t)), 1.0 / H), EPS))
        y[:] = pl.cast(pl.col_expand_mul(pl.row_expand_mul(t, root), weight), pl.BF16, mode="rint")
    return y


@pl.jit
def decoder_layer(
    x: pl.Tensor[[T, H], pl.BF16],
    norm1: pl.Tensor[[1, H], pl.FP32],
    w_qkv: pl.Tensor[[H, 3 * H], pl.BF16],
    cos: pl.Tensor[[T, HALF], pl.FP32],
    sin: pl.Tensor[[T, HALF], pl.FP32],
    k_pages: pl.Tensor[[HEADS * PAGES * PAGE, D], pl.BF16],
    v_pages: pl.Tensor[[HEADS * PAGES * PAGE, D], pl.BF16],
    table: pl.Tensor[[1, MAX_PAGES], pl.INT32],
    length: pl.Tensor[[1, 1], pl.INT32],
    w_out: pl.Tensor[[H, H], pl.BF16],
    norm2: pl.Tensor[[1, H], pl.FP32],
    w_gate: pl.Tensor[[H, INNER], pl.BF16],
    w_up: pl.Tensor[[H, INNER], pl.BF16],
    w_down: pl.Tensor[[INNER, H], pl.BF16],
    y: pl.Out[pl.Tensor[[T, H], pl.BF16]],
):
    normed = pl.create_tensor([T, H], dtype=pl.BF16)
    normed = rms_norm(x, norm1, normed)
    qkv = pl.create_tensor([T, 3 * H], dtype=pl.FP32)
    for c in pl.parallel(0, 3 * H, BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="qkv"):
            qkv[:, c : c + BLOCK] = pl.matmul(normed, w_qkv[:, c : c + BLOCK], out_dtype=pl.FP32)
    query = pl.create_tensor([T, H], dtype=pl.BF16)
    for h in pl.parallel(HEADS):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="rotate"):
            first = qkv[:, h * D : h * D + HALF]
            second = qkv[:, h * D + HALF : h * D + D]
            low = pl.sub(pl.mul(first, cos), pl.mul(second, sin))
            high = pl.add(pl.mul(second, cos), pl.mul(first, sin))
            query[:, h * D : h * D + HALF] = pl.cast(low, pl.BF16, mode="rint")
            query[:, h * D + HALF : h * D + D] = pl.cast(high, pl.BF16, mode="rint")
    attended = pl.create_tensor([T, H], dtype=pl.BF16)
    for h in pl.parallel(HEADS):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="attention"):
            q = query[:, h * D : h * D + D]
            top = pl.full([T, 1], dtype=pl.FP32, value=-30000.0)
            total = pl.full([T, 1], dtype=pl.FP32, value=0.0)
            acc = pl.full([T, D], dtype=pl.FP32, value=0.0)
            seen = pl.cast(pl.read(length, [0, 0]), pl.INDEX)
            for page in pl.range((seen + PAGE - 1) // PAGE):
                at = (h * PAGES + pl.cast(pl.read(table, [0, page]), pl.INDEX)) * PAGE
                score = pl.mul(pl.matmul(q, k_pages[at : at + PAGE, :], out_dtype=pl.FP32, b_trans=True), SCALE)
                here = pl.min(seen - page * PAGE, PAGE)
                score = pl.fillpad(pl.set_validshape(score, T, here), pad_value=pl.PadValue.min)
                higher = pl.maximum(top, pl.row_max(score))
                p = pl.exp(pl.row_expand_sub(score, higher))
                shrink = pl.exp(pl.sub(top, higher))
                total = pl.add(pl.mul(total, shrink), pl.row_sum(p))
                part = pl.matmul(pl.cast(p, pl.BF16, mode="rint"), v_pages[at : at + PAGE, :], out_dtype=pl.FP32)
                acc = pl.add(pl.row_expand_mul(acc, shrink), part)
                top = higher
            attended[:, h * D : h * D + D] = pl.cast(pl.row_expand_div(acc, total), pl.BF16, mode="rint")
    residual = pl.create_tensor([T, H], dtype=pl.BF16)
    for c in pl.parallel(0, H, BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="project"):
            out = pl.matmul(attended, w_out[:, c : c + BLOCK], out_dtype=pl.FP32)
            total_out = pl.add(out, pl.cast(x[:, c : c + BLOCK], pl.FP32))
            residual[:, c : c + BLOCK] = pl.cast(total_out, pl.BF16, mode="rint")
    normed2 = pl.create_tensor([T, H], dtype=pl.BF16)
    normed2 = rms_norm(residual, norm2, normed2)
    inner = pl.create_tensor([T, INNER], dtype=pl.BF16)
    for c in pl.parallel(0, INNER, BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="gate_and_up"):
            gate = pl.matmul(normed2, w_gate[:, c : c + BLOCK], out_dtype=pl.FP32)
            up = pl.matmul(normed2, w_up[:, c : c + BLOCK], out_dtype=pl.FP32)
            silu = pl.div(gate, pl.add(pl.exp(pl.neg(gate)), 1.0))
            inner[:, c : c + BLOCK] = pl.cast(pl.mul(silu, up), pl.BF16, mode="rint")
    for c in pl.parallel(0, H, BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="down"):
            down = pl.matmul(inner, w_down[:, c : c + BLOCK], out_dtype=pl.FP32)
            result = pl.add(down, pl.cast(residual[:, c : c + BLOCK], pl.FP32))
            y[:, c : c + BLOCK] = pl.cast(result, pl.BF16, mode="rint")
    return y


def reference(x, n1, w_qkv, cos, sin, k_pages, v_pages, table, length, w_out, n2, w_gate, w_up, w_down):
    """The same layer in torch, with BF16 where the kernel rounds to BF16."""

    def norm(v, w):
        f = v.float()
        return (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + EPS) * w).bfloat16()

    q = (norm(x, n1).float() @ w_qkv.float())[:, :H].view(T, HEADS, 2, HALF)
    a, b = q.unbind(2)
    c, s = cos[:, None], sin[:, None]
    q = torch.stack([a * c - b * s, b * c + a * s], 2).view(T, HEADS, D).bfloat16().float()
    n, heads = int(length), []
    at = torch.cat([torch.arange(PAGE) + int(p) * PAGE for p in table[0]])[:n]
    for h in range(HEADS):
        k, v = (p.view(HEADS, PAGES * PAGE, D)[h][at].float() for p in (k_pages, v_pages))
        heads.append(torch.softmax(q[:, h] @ k.T * SCALE, -1) @ v)
    attended = torch.cat(heads, -1).bfloat16()
    residual = (attended.float() @ w_out.float() + x.float()).bfloat16()
    m = norm(residual, n2).float()
    inner = (torch.nn.functional.silu(m @ w_gate.float()) * (m @ w_up.float())).bfloat16()
    return (inner.float() @ w_down.float() + residual.float()).bfloat16()


def arguments():
    """Random weights and a cache of three pages per head."""
    g = torch.Generator().manual_seed(0)

    def weight(rows, cols):
        return (torch.randn(rows, cols, generator=g) / math.sqrt(rows)).bfloat16()

    angle = torch.arange(T)[:, None] * 10000 ** (-torch.arange(HALF) / HALF)
    pages = [torch.randn(HEADS * PAGES * PAGE, D, generator=g).bfloat16() for _ in range(2)]
    return [
        torch.randn(T, H, generator=g).bfloat16(),
        torch.rand(1, H, generator=g) + 0.5,
        weight(H, 3 * H),
        angle.cos(),
        angle.sin(),
        *pages,
        torch.tensor([[7, 2, 11]], dtype=torch.int32),
        torch.tensor([[41]], dtype=torch.int32),
        weight(H, H),
        torch.rand(1, H, generator=g) + 0.5,
        weight(H, INNER),
        weight(H, INNER),
        weight(INNER, H),
        torch.zeros(T, H, dtype=torch.bfloat16),
    ]


if __name__ == "__main__":
    args = arguments()
    expected = reference(*args[:-1])
    began = time.perf_counter()
    decoder_layer.compile(*args)
    print(f"compiled in {time.perf_counter() - began:.2f} s")
    check_and_time(decoder_layer, args, {14: expected}, 5e-2, 5e-2)
