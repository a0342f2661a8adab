"""Programs over several chips behind published timings: a GEMM whose partial results are summed over the ranks.

Parsed when they are called; the shapes are parameters of the functions around them.
"""

# Annotations in here are tensor types of the language, not of Python.
# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pypto.language as pl
import pypto.language.distributed as pld

TILE_ROWS, TILE_COLS, STEP_K, LOAD_K = 256, 128, 64, 256


@dataclass(frozen=True)
class Split:
    """``ranks`` products ``[m, k] x [k, n]`` in FP16 and their sum on every rank.

    The result is cut into tiles of 256 x 128; tile ``t`` belongs to rank ``t % ranks``. A chunk is ``chunk_rows`` rows
    of tiles; ``blocks`` vector cores communicate. ``width``: columns of a product, the last may have 128.
    """

    ranks: int
    m: int
    k: int
    n: int
    chunk_rows: int = 2
    blocks: int = 24
    width: int = TILE_COLS

    @property
    def tile_cols(self) -> int:
        return self.n // TILE_COLS

    @property
    def tiles(self) -> int:
        return self.m // TILE_ROWS * self.tile_cols

    @property
    def chunk_tiles(self) -> int:
        return self.chunk_rows * self.tile_cols


def product_body(k: int, cols: int) -> Any:
    """``cols`` columns of 256 rows of a product over ``k``: double-buffered L1 and L0."""

    @pl.inline
    def product(a, b, part, row, col):
        acc = pl.tile.create([TILE_ROWS, cols], dtype=pl.FP32, target_memory=pl.Mem.Acc)
        for at in pl.pipeline(0, k, LOAD_K, stage=2):
            lhs = pl.load(a, [row, at], [TILE_ROWS, LOAD_K], target_memory=pl.Mem.Mat)
            rhs = pl.load(b, [at, col], [LOAD_K, cols], target_memory=pl.Mem.Mat)
            left_0 = pl.tile.extract(lhs, 0, 0, [TILE_ROWS, STEP_K], target_memory=pl.Mem.Left)
            right_0 = pl.tile.extract(rhs, 0, 0, [STEP_K, cols], target_memory=pl.Mem.Right)
            left_1 = pl.tile.extract(lhs, 0, STEP_K, [TILE_ROWS, STEP_K], target_memory=pl.Mem.Left)
            right_1 = pl.tile.extract(rhs, STEP_K, 0, [STEP_K, cols], target_memory=pl.Mem.Right)
            acc = pl.matmul_acc(acc, left_0, right_0, init_cond=(at == 0))
            left_2 = pl.tile.extract(lhs, 0, 2 * STEP_K, [TILE_ROWS, STEP_K], target_memory=pl.Mem.Left)
            right_2 = pl.tile.extract(rhs, 2 * STEP_K, 0, [STEP_K, cols], target_memory=pl.Mem.Right)
            acc = pl.matmul_acc(acc, left_1, right_1)
            left_3 = pl.tile.extract(lhs, 0, 3 * STEP_K, [TILE_ROWS, STEP_K], target_memory=pl.Mem.Left)
            right_3 = pl.tile.extract(rhs, 3 * STEP_K, 0, [STEP_K, cols], target_memory=pl.Mem.Right)
            acc = pl.matmul_acc(acc, left_2, right_2)
            acc = pl.matmul_acc(acc, left_3, right_3)
        part = pl.store(acc, [row, col], part)

    return product


def product_kernel(s: Split) -> Any:
    """A product of ``s.width`` columns, of a tile's columns where less is left of the row."""
    m, k, n = s.m, s.k, s.n
    wide, wide_body, narrow_body = n // s.width * s.width, product_body(k, s.width), product_body(k, TILE_COLS)

    @pl.jit.incore
    def tile_product(
        a: pl.Tensor[[m, k], pl.FP16],
        b: pl.Tensor[[k, n], pl.FP16],
        part: pl.Out[pl.Tensor[[m, n], pl.FP16]],
        row: pl.Scalar[pl.INDEX],
        col: pl.Scalar[pl.INDEX],
    ):
        if col < wide:
            wide_body(a, b, part, row, col)
        else:
            narrow_body(a, b, part, row, col)
        return part

    return tile_product


def scatter_kernel(s: Split, height: int) -> Any:
    """Add the tiles of ``height`` rows to their owners' windows, a tile per block in turn."""
    n, ranks, cols, blocks = s.n, s.ranks, s.tile_cols, s.blocks
    chunk = height // TILE_ROWS * cols

    @pl.jit.incore
    def scatter(
        part: pl.Tensor[[height, n], pl.FP16],
        data: pl.InOut[pld.DistributedTensor[[height, n], pl.FP16]],
        first: pl.Scalar[pl.INDEX],
    ):
        for at in pl.range(pl.tile.get_block_idx(), chunk, blocks):
            row = at // cols * TILE_ROWS
            col = at % cols * TILE_COLS
            pld.tensor.put(
                data,
                peer=(first + at) % ranks,
                src=part,
                dst_offsets=[row, col],
                src_offsets=[row, col],
                shape=[TILE_ROWS, TILE_COLS],
                atomic=pld.AtomicType.Add,
                chunk_rows=TILE_ROWS,
                chunk_cols=TILE_COLS,
            )
        return data

    return scatter


def meet_kernel(s: Split) -> Any:
    """Every rank has arrived."""
    m, n, ranks = s.m, s.n, s.ranks

    @pl.jit.incore
    def meet(
        data: pl.InOut[pld.DistributedTensor[[m, n], pl.FP16]],
        signal: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]],
    ):
        signal = pld.tensor.barrier(signal)
        return data

    return meet


def gather_kernel(s: Split) -> Any:
    """Send the own tiles to every peer, spread over blocks and peers at once."""
    m, n, ranks, cols, tiles, blocks = s.m, s.n, s.ranks, s.tile_cols, s.tiles, s.blocks

    @pl.jit.incore
    def gather(data: pl.InOut[pld.DistributedTensor[[m, n], pl.FP16]]):
        me = pld.rank(pld.get_comm_ctx(data))
        own = (tiles - me + ranks - 1) // ranks
        for at in pl.range(pl.tile.get_block_idx(), own * (ranks - 1), blocks):
            tile = at // (ranks - 1) * ranks + me
            row = tile // cols * TILE_ROWS
            col = tile % cols * TILE_COLS
            pld.tensor.put(
                data,
                peer=(me + 1 + at % (ranks - 1)) % ranks,
                src=data,
                dst_offsets=[row, col],
                src_offsets=[row, col],
                shape=[TILE_ROWS, TILE_COLS],
                chunk_rows=TILE_ROWS,
                chunk_cols=TILE_COLS,
            )
        return data

    return gather


def multiply_program(s: Split) -> Any:
    """The product on one chip."""
    m, k, n, width = s.m, s.k, s.n, s.width
    tile_product = product_kernel(s)

    @pl.jit
    def multiply(
        a: pl.Tensor[[m, k], pl.FP16], b: pl.Tensor[[k, n], pl.FP16], part: pl.Out[pl.Tensor[[m, n], pl.FP16]]
    ):
        for row in pl.parallel(0, m, TILE_ROWS):
            for col in pl.parallel(0, n, width):
                part = tile_product(a, b, part, row, col)
        return part

    return multiply


def push_program(s: Split) -> Any:
    """The sum over the ranks: every tile is added up at its owner, which then sends it to everybody."""
    m, n, ranks, blocks = s.m, s.n, s.ranks, s.blocks
    scatter, meet, gather = scatter_kernel(s, m), meet_kernel(s), gather_kernel(s)

    @pl.jit
    def all_reduce(
        part: pl.Tensor[[m, n], pl.FP16],
        data: pl.InOut[pld.DistributedTensor[[m, n], pl.FP16]],
        signal: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]],
    ):
        with pl.spmd(blocks):
            data = scatter(part, data, 0)
        data = meet(data, signal)
        with pl.spmd(blocks):
            data = gather(data)
        data = meet(data, signal)
        return data

    return all_reduce


def overlapped_program(s: Split) -> Any:
    """Both in one: while the tiles of a chunk are sent, the next are multiplied."""
    m, k, n, ranks, blocks, chunk = s.m, s.k, s.n, s.ranks, s.blocks, s.chunk_tiles
    height, width = s.chunk_rows * TILE_ROWS, s.width
    tile_product = product_kernel(s)
    scatter, meet, gather = scatter_kernel(s, height), meet_kernel(s), gather_kernel(s)

    @pl.jit
    def multiply_all_reduce(
        a: pl.Tensor[[m, k], pl.FP16],
        b: pl.Tensor[[k, n], pl.FP16],
        part: pl.Out[pl.Tensor[[m, n], pl.FP16]],
        data: pl.InOut[pld.DistributedTensor[[m, n], pl.FP16]],
        signal: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]],
    ):
        for first in pl.parallel(0, m, height):
            for row in pl.parallel(first, first + height, TILE_ROWS):
                for col in pl.parallel(0, n, width):
                    part = tile_product(a, b, part, row, col)
            with pl.spmd(blocks):
                scatter(part[first : first + height, :], data[first : first + height, :], first // height * chunk)
        data = meet(data, signal)
        with pl.spmd(blocks):
            data = gather(data)
        data = meet(data, signal)
        return data

    return multiply_all_reduce


def copy_program(s: Split) -> Any:
    """The result as the host sees it."""
    m, n = s.m, s.n

    @pl.jit
    def take(data: pl.InOut[pld.DistributedTensor[[m, n], pl.FP16]], y: pl.Out[pl.Tensor[[m, n], pl.FP16]]):
        for row in pl.parallel(0, m, TILE_ROWS):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="rows"):
                for col in pl.range(0, n, TILE_COLS):
                    tile = pl.load(data, [row, col], [TILE_ROWS, TILE_COLS])
                    y = pl.store(tile, [row, col], y)
        return y

    return take


def in_sequence(s: Split) -> Any:
    """Host program: dispatches 0, 1, 2 of a rank are the product, the sum and the copy of the result to ``y``."""
    m, k, n, ranks = s.m, s.k, s.n, s.ranks
    multiply, all_reduce, take = multiply_program(s), push_program(s), copy_program(s)

    @pl.jit.host
    def sequential(
        a: pl.Tensor[[ranks, m, k], pl.FP16],
        b: pl.Tensor[[ranks, k, n], pl.FP16],
        part: pl.Out[pl.Tensor[[ranks, m, n], pl.FP16]],
        y: pl.Out[pl.Tensor[[ranks, m, n], pl.FP16]],
    ):
        data_buf = pld.alloc_window_buffer([m, n], dtype=pl.FP16)
        signal_buf = pld.alloc_window_buffer([ranks, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            multiply(a[r], b[r], part[r], device=r)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [m, n], dtype=pl.FP16)
            signal = pld.window(signal_buf, [ranks, 1], dtype=pl.INT32)
            all_reduce(part[r], data, signal, device=r)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [m, n], dtype=pl.FP16)
            take(data, y[r], device=r)

    return sequential


def overlapped(s: Split) -> Any:
    """Host program: dispatch 0 of a rank is product and sum in one, dispatch 1 the copy of the result to ``y``."""
    m, k, n, ranks = s.m, s.k, s.n, s.ranks
    multiply_all_reduce, take = overlapped_program(s), copy_program(s)

    @pl.jit.host
    def pipelined(
        a: pl.Tensor[[ranks, m, k], pl.FP16],
        b: pl.Tensor[[ranks, k, n], pl.FP16],
        part: pl.Out[pl.Tensor[[ranks, m, n], pl.FP16]],
        y: pl.Out[pl.Tensor[[ranks, m, n], pl.FP16]],
    ):
        data_buf = pld.alloc_window_buffer([m, n], dtype=pl.FP16)
        signal_buf = pld.alloc_window_buffer([ranks, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [m, n], dtype=pl.FP16)
            signal = pld.window(signal_buf, [ranks, 1], dtype=pl.INT32)
            multiply_all_reduce(a[r], b[r], part[r], data, signal, device=r)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [m, n], dtype=pl.FP16)
            take(data, y[r], device=r)

    return pipelined


def pull_program(ranks: int, rows: int, cols: int, blocks: int) -> Any:
    """The sum of ``[rows, cols]`` over the ranks by reading: every rank adds up its rows, then reads everybody's."""
    share = rows // ranks

    @pl.jit.incore
    def stage(part: pl.Tensor[[rows, cols], pl.FP16], data: pl.InOut[pld.DistributedTensor[[rows, cols], pl.FP16]]):
        for row in pl.range(pl.tile.get_block_idx(), rows, blocks):
            data = pl.store(pl.load(part, [row, 0], [1, cols]), [row, 0], data)
        return data

    @pl.jit.incore
    def add_up(
        data: pld.DistributedTensor[[rows, cols], pl.FP16],
        sums: pl.InOut[pld.DistributedTensor[[rows, cols], pl.FP16]],
    ):
        block = pl.tile.get_block_idx()
        me = pld.rank(pld.get_comm_ctx(data))
        for at in pl.range(block, share, blocks):
            row = me * share + at
            total = pl.load(data, [row, 0], [1, cols])
            for step in pl.range(ranks - 1):
                peer = (me + 1 + (step + block) % (ranks - 1)) % ranks
                total = pl.add(total, pld.tile.remote_load(data, peer=peer, offsets=[row, 0], shape=[1, cols]))
            sums = pl.store(total, [row, 0], sums)
        return sums

    @pl.jit.incore
    def collect(
        sums: pl.InOut[pld.DistributedTensor[[rows, cols], pl.FP16]], y: pl.Out[pl.Tensor[[rows, cols], pl.FP16]]
    ):
        block = pl.tile.get_block_idx()
        me = pld.rank(pld.get_comm_ctx(sums))
        for at in pl.range(block, share, blocks):
            for step in pl.range(ranks):
                peer = (me + (step + block) % ranks) % ranks
                row = peer * share + at
                y = pl.store(pld.tile.remote_load(sums, peer=peer, offsets=[row, 0], shape=[1, cols]), [row, 0], y)
        return y

    @pl.jit.incore
    def meet(
        data: pl.InOut[pld.DistributedTensor[[rows, cols], pl.FP16]],
        signal: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]],
    ):
        signal = pld.tensor.barrier(signal)
        return data

    @pl.jit
    def sum_by_reading(
        part: pl.Tensor[[rows, cols], pl.FP16],
        y: pl.Out[pl.Tensor[[rows, cols], pl.FP16]],
        data: pl.InOut[pld.DistributedTensor[[rows, cols], pl.FP16]],
        sums: pl.InOut[pld.DistributedTensor[[rows, cols], pl.FP16]],
        signal: pl.InOut[pld.DistributedTensor[[ranks, 1], pl.INT32]],
    ):
        with pl.spmd(blocks):
            data = stage(part, data)
        data = meet(data, signal)
        with pl.spmd(blocks):
            sums = add_up(data, sums)
        sums = meet(sums, signal)
        with pl.spmd(blocks):
            y = collect(sums, y)
        return y

    return sum_by_reading


def pulled_sum(ranks: int, rows: int, cols: int, blocks: int) -> Any:
    """Host program: the sum of ``[rows, cols]`` over the ranks by reading."""
    sum_by_reading = pull_program(ranks, rows, cols, blocks)

    @pl.jit.host
    def pulled(
        part: pl.Tensor[[ranks, rows, cols], pl.FP16],
        y: pl.Out[pl.Tensor[[ranks, rows, cols], pl.FP16]],
    ):
        data_buf = pld.alloc_window_buffer([rows, cols], dtype=pl.FP16)
        sums_buf = pld.alloc_window_buffer([rows, cols], dtype=pl.FP16)
        signal_buf = pld.alloc_window_buffer([ranks, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [rows, cols], dtype=pl.FP16)
            sums = pld.window(sums_buf, [rows, cols], dtype=pl.FP16)
            signal = pld.window(signal_buf, [ranks, 1], dtype=pl.INT32)
            sum_by_reading(part[r], y[r], data, sums, signal, device=r)

    return pulled


def remote_reads(nbytes: int, times: int) -> Any:
    """Host program: a vector core of either rank reads the peer's window ``times`` times, in pieces of 4 KB."""
    rows = nbytes // 4096

    @pl.jit.incore
    def read(data: pl.InOut[pld.DistributedTensor[[rows, 1024], pl.FP32]], y: pl.Out[pl.Tensor[[1, 1024], pl.FP32]]):
        me = pld.rank(pld.get_comm_ctx(data))
        part = pl.tile.full([1, 1024], dtype=pl.FP32, value=0.0)
        for at in pl.range(rows * times):
            part = pld.tile.remote_load(data, peer=1 - me, offsets=[at % rows, 0], shape=[1, 1024])
        y = pl.store(part, [0, 0], y)
        return y

    @pl.jit
    def read_peer(
        data: pl.InOut[pld.DistributedTensor[[rows, 1024], pl.FP32]], y: pl.Out[pl.Tensor[[1, 1024], pl.FP32]]
    ):
        return read(data, y)

    @pl.jit.host
    def readers(y: pl.Out[pl.Tensor[[2, 1, 1024], pl.FP32]]):
        buffer = pld.alloc_window_buffer([rows, 1024], dtype=pl.FP32)
        for r in pl.range(pld.world_size()):
            data = pld.window(buffer, [rows, 1024], dtype=pl.FP32)
            read_peer(data, y[r], device=r)

    return readers
