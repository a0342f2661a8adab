"""Matrix products of which a core holds neither the operands nor the result (spec ops 12.1)."""

import pytest
import torch

import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig, benchmark

PLATFORMS = ("a2a3", "a2a3sim", "a5", "a5sim")


def operands(*shapes, dtype=torch.bfloat16):
    draw = torch.Generator().manual_seed(3)
    if dtype == torch.int8:
        return [torch.randint(-128, 128, shape, generator=draw, dtype=torch.int8) for shape in shapes]
    return [torch.randn(*shape, generator=draw).to(dtype) for shape in shapes]


def agree(found, *terms):
    """``found`` is the sum of products to within FP32 accumulation."""
    wanted = sum(a.double() @ b.double() for a, b in terms)
    bound = sum(a.double().abs() @ b.double().abs() for a, b in terms)
    assert ((found.double() - wanted).abs() <= bound * 2.0**-20 + 1e-30).all()


@pl.jit
def product(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        c[:, :] = pl.matmul(a, b, out_dtype=pl.FP32)
    return c


@pl.jit
def product_left_transposed(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        c[:, :] = pl.matmul(a, b, out_dtype=pl.FP32, a_trans=True)
    return c


@pl.jit
def product_right_transposed(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        c[:, :] = pl.matmul(a, b, out_dtype=pl.FP32, b_trans=True)
    return c


@pl.jit
def integer_product(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        c[:, :] = pl.matmul(a, b, out_dtype=pl.INT32)
    return c


@pl.jit
def stack_product(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        c[:, :, :] = pl.matmul(a, b, out_dtype=pl.FP32)
    return c


@pl.jit
def sum_of_products(a: pl.Tensor, b: pl.Tensor, d: pl.Tensor, e: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.matmul(a, b, out_dtype=pl.FP32)
        acc = pl.matmul_acc(acc, d, e)
        c[:, :] = acc
    return c


SIZES = [(512, 512, 512), (128, 4096, 128), (16, 2048, 1024), (1040, 336, 1040), (300, 1000, 77), (2048, 16, 2048)]


@pytest.mark.parametrize("rows, inner, cols", SIZES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_products_of_any_size(rows, inner, cols, dtype):
    a, b = operands((rows, inner), (inner, cols), dtype=dtype)
    results = []
    for platform in PLATFORMS:
        c = torch.full((rows, cols), 7.0)
        product(a, b, c, config=RunConfig(platform=platform))
        agree(c, (a, b))
        results.append(c)
    assert all(torch.equal(results[0], other) for other in results[1:2])
    assert torch.equal(results[2], results[3])


@pytest.mark.parametrize("rows, inner, cols", [(512, 768, 640), (200, 2000, 300)])
def test_transposed_operands(rows, inner, cols):
    a, b = operands((rows, inner), (inner, cols))
    c = torch.zeros(rows, cols)
    product_left_transposed(a.T.contiguous(), b, c)
    agree(c, (a, b))
    c.zero_()
    product_right_transposed(a, b.T.contiguous(), c)
    agree(c, (a, b))


def test_integers_wrap_nowhere_and_agree_exactly():
    a, b = operands((512, 1024), (1024, 640), dtype=torch.int8)
    c = torch.zeros(512, 640, dtype=torch.int32)
    integer_product(a, b, c)
    assert torch.equal(c.long(), a.long() @ b.long())


def test_a_result_of_narrow_type_is_rounded_once():
    a, b = operands((512, 1024), (1024, 512))
    c = torch.zeros(512, 512, dtype=torch.bfloat16)
    product(a, b, c)
    whole = torch.zeros(512, 512)
    product(a, b, whole)
    assert torch.equal(c, whole.to(torch.bfloat16))


@pytest.mark.parametrize("stack, other", [((8,), (8,)), ((12,), (1,)), ((3,), (3,))])
def test_stacks_of_matrices(stack, other):
    a, b = operands((*stack, 256, 128), (*other, 128, 320))
    c = torch.zeros(*stack, 256, 320)
    stack_product(a, b, c)
    agree(c, (a, b))


def test_a_sum_of_products_reads_every_operand_once_more():
    a, b, d, e = operands((512, 700), (700, 512), (512, 300), (300, 512))
    c = torch.zeros(512, 512)
    sum_of_products(a, b, d, e, c)
    agree(c, (a, b), (d, e))


def test_products_of_windows_in_a_loop():
    @pl.jit
    def kernel(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(2):
                c[i * 128 : i * 128 + 128, :] = pl.matmul(a[i * 128 : i * 128 + 128, :], b, out_dtype=pl.FP32)
        return c

    a, b = operands((256, 2048), (2048, 512))
    c = torch.zeros(256, 512)
    kernel(a, b, c)
    agree(c, (a, b))


def test_the_valid_part_of_an_operand_is_what_counts():
    @pl.jit
    def kernel(a: pl.Tensor, b: pl.Tensor, n: pl.Scalar[pl.INDEX], c: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            left = pl.slice(a, [512, 1024], [0, 0], valid_shape=[n, 900])
            c[:, :] = pl.matmul(left, b, out_dtype=pl.FP32)
        return c

    a, b = operands((512, 1024), (1024, 512))
    for rows in (512, 300, 5):
        c = torch.zeros(512, 512)
        kernel(a, b, rows, c)
        agree(c[:rows], (a[:rows, :900], b[:900]))
        assert not c[rows:].any()


def test_a_run_time_extent_of_k():
    @pl.jit
    def kernel(a: pl.Tensor, b: pl.Tensor, n: pl.Scalar[pl.INDEX], c: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            left = pl.slice(a, [512, 1024], [0, 0], valid_shape=[512, n])
            c[:, :] = pl.matmul(left, b, out_dtype=pl.FP32)
        return c

    a, b = operands((512, 1024), (1024, 512))
    for inner in (1024, 700, 3):
        c = torch.zeros(512, 512)
        kernel(a, b, inner, c)
        agree(c, (a[:, :inner], b[:inner]))


def test_loads_overlap_the_products():
    """The core neither waits for every load nor is its cube idle: less than the sum of both (spec hardware 4)."""
    rows, inner, cols = 512, 2048, 512
    a, b = operands((rows, inner), (inner, cols))
    compiled = ir.compile(product.lower(a, b, torch.zeros(rows, cols)), platform="a2a3", dump_passes=False)
    (wall_us,) = benchmark(compiled, [a, b, torch.zeros(rows, cols)], rounds=1, warmup=0).device_wall_us
    cycles_per_us, products_per_cycle, load_bytes_per_cycle = 1850, 4096, 78.4
    multiplying = rows * inner * cols / products_per_cycle / cycles_per_us
    loading = (rows * (cols // 256) + cols * (rows // 128)) * inner * 2 / load_bytes_per_cycle / cycles_per_us
    assert multiplying < wall_us < 0.9 * (multiplying + loading)


def test_an_operand_overwritten_before_the_product_is_computed_is_refused():
    @pl.jit
    def kernel(a: pl.InOut[pl.Tensor], b: pl.Tensor):
        with pl.at(level=pl.Level.CORE_GROUP):
            a[:, :] = pl.matmul(a, b, out_dtype=pl.FP32)
        return a

    a, b = operands((512, 512), (512, 512), dtype=torch.float32)
    with pytest.raises(ValueError, match=r"reads 'a', which is written here"):
        kernel(a, b)


@pytest.mark.parametrize("rows, inner, cols", [(144, 512, 208), (64, 256, 496), (256, 256, 512), (16, 16, 16)])
def test_bias_is_added_once(rows, inner, cols):
    @pl.jit
    def kernel(a: pl.Tensor, b: pl.Tensor, bias: pl.Tensor, c: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            left = pl.load(a, [0, 0], [rows, inner], target_memory=pl.Mem.Mat)
            right = pl.load(b, [0, 0], [inner, cols], target_memory=pl.Mem.Mat)
            row = pl.load(bias, [0, 0], [1, cols], target_memory=pl.Mem.Mat)
            pl.store(pl.matmul_bias(left, right, row), [0, 0], c)
        return c

    a, b = operands((rows, inner), (inner, cols))
    (bias,) = operands((1, cols), dtype=torch.float32)
    c = torch.zeros(rows, cols)
    kernel(a, b, bias, c)
    agree(c, (a, b), (torch.ones(rows, 1), bias))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize(
    "shape", [(192, 512, 256), (512, 300, 96), (1040, 200, 48), (40, 700, 1024), (300, 2100, 140), (16, 4000, 2048)]
)
def test_generations_with_another_accumulator_add_in_the_same_order(shape, dtype):
    rows, inner, cols = shape
    a, b = operands((rows, inner), (inner, cols), dtype=dtype)
    found = []
    for platform in PLATFORMS[1::2]:
        c = torch.zeros(rows, cols)
        product(a, b, c, config=RunConfig(platform=platform))
        agree(c, (a, b))
        found.append(c)
    assert torch.equal(*found)
