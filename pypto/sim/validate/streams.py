"""Copies and vector kernels that stream through global memory."""

from __future__ import annotations

from pypto.sim.recording import AIC, AIV, Recording

from .writer import Kernel, Launch


def copies(
    cores: int, rows: int, cols: int, matrix: tuple[int, int], passes: int = 1, cube: bool = False,
    sliced: bool = False,
    scalars: int = 4, matrix_cols: int | None = None, together: str = "",
) -> Recording:
    """Read a half matrix once per core share in tiles of ``rows`` x ``cols`` (asc-devkit DMA test).

    ``passes`` repeats it, ``sliced`` repeats each quarter before the next. ``matrix_cols`` is the true row length when
    rows are not whole lines. ``together``: every core reads the whole matrix, in the ``same`` or a ``rotated`` order.
    """
    height, width = matrix
    pitch = (matrix_cols or width) * 2
    tiles = [(r, c) for r in range(0, height, rows) for c in range(0, width, cols)]
    launch = Launch("copies")
    blocks = []
    for core in range(cores):
        if together:
            turn = core * len(tiles) // cores if together == "rotated" else 0
            mine = tiles[turn:] + tiles[:turn]
        else:
            # neighbouring tiles of a band go to neighbouring cores, as the sample walks the matrix
            mine = _ordered(tiles[core::cores], passes, sliced)
        blocks.append(_reader(core, mine, rows, cols, pitch, cube, scalars))
    launch.submit(blocks)
    return launch.recording(memory=height * pitch)


def _ordered(tiles: list[tuple[int, int]], passes: int, sliced: bool) -> list[tuple[int, int]]:
    if not sliced:
        return tiles * passes
    quarter = -(-len(tiles) // 4)
    return [tile for q in range(4) for tile in tiles[q * quarter:(q + 1) * quarter] * passes]


def _reader(
    core: int, tiles: list[tuple[int, int]], rows: int, cols: int, pitch: int, cube: bool, scalars: int
) -> Kernel:
    kernel = Kernel(f"reader{core}", AIC if cube else AIV)
    buffer = kernel.tile(rows, cols, "fp16", "mat" if cube else "vec")
    for r, c in tiles:
        kernel.load(buffer, r * pitch + c * 2, rows=rows, cols=min(cols, pitch // 2 - c), pitch=pitch, scalars=scalars)
    return kernel


def vector_add(cores: int, elements: int, tile: int, buffers: int, apart: int = 0) -> Recording:
    """``elements`` halves added in copies of ``tile`` elements (asc-devkit vector add).

    ``apart``: bytes between the two sources modulo 512; 256 frees them of bank clashes.
    """
    launch = Launch("add")
    share = -(-elements // cores)
    blocks = []
    for core in range(cores):
        kernel = Kernel(f"add{core}")
        x = [kernel.tile(1, tile, "fp16", at=b * 2 * tile) for b in range(buffers)]
        y = [kernel.tile(1, tile, "fp16", at=buffers * 2 * tile + b * 2 * tile + apart) for b in range(buffers)]
        for i, first in enumerate(range(core * share, min((core + 1) * share, elements), tile)):
            b, count = i % buffers, min(tile, elements - first)
            kernel.load(x[b], 2 * first, cols=count, scalars=2).load(y[b], 2 * (elements + first), cols=count,
            scalars=2)
            kernel.do("tadd", [y[b]], [x[b], y[b]], valid=(1, count), scalars=2)
            kernel.store(y[b], 4 * elements + 2 * first, cols=count, scalars=2)
        blocks.append(kernel)
    launch.submit(blocks)
    return launch.recording(memory=6 * elements)


def bank_test(first: int, second: int, result: int, count: int = 1000) -> Recording:
    """``count`` fp32 adds of 4096 elements with operands at given offsets of the unified buffer."""
    kernel = Kernel("banks")
    a, b, d = (kernel.tile(64, 64, "fp32", at=at) for at in (first, second, result))
    for _ in range(count):
        kernel.do("tadd", [d], [a, b])
    launch = Launch("banks")
    launch.submit(kernel)
    return launch.recording()
