"""One small kernel per published name, with its torch answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import pytest
import torch
import torch.nn.functional as F

Tensor = torch.Tensor
Oracle = Callable[..., Tensor]
I16, I32, U8, HALF = torch.int16, torch.int32, torch.uint8, torch.float16


@dataclass(frozen=True)
class Case:
    """Lines of a kernel: ``{op}`` is the spelling, ``{x}`` the input ``x`` as a value of the level, ``x`` the tensor."""

    level: str
    text: str
    oracle: Oracle
    inputs: Mapping[str, Tensor]
    rtol: float
    platform: str

    def lines(self, spelling: str) -> str:
        """The kernel's lines for one spelling."""
        suffix = "_tile" if self.level == "tile" else ""
        return self.text.format(op=spelling, **{name: f"{name}{suffix}" for name in self.inputs})


CASES: list = []


def case(
    names: str,
    text: str,
    oracle: Oracle,
    levels: str = "tile tensor",
    unified: bool = True,
    rtol: float = 1e-5,
    platform: str = "a2a3sim",
    **inputs: Tensor,
) -> None:
    """Cases for every spelling of ``names``: ``pl.<level>.name`` and, when ``unified``, ``pl.name``.

    A name with a dot is a spelling of its own (``system.bar_all``).
    """
    for name in names.split():
        for level in levels.split():
            own = [f"pl.{name}"] if "." in name else [f"pl.{level}.{name}", *([f"pl.{name}"] if unified else [])]
            for spelling in own:
                made = Case(level, text, oracle, inputs, rtol, platform)
                CASES.append(pytest.param(spelling, made, id=f"{spelling}-{level}"))


def floats(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def integers(*shape: int, low: int = -50, high: int = 50, seed: int = 0, dtype: torch.dtype = I32) -> Tensor:
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def scratch(dtype: str = "FP32", shape: str = "[32, 64]") -> str:
    return f"tmp = pl.create_tile({shape}, dtype=pl.{dtype})\n"


def _position(name: str, axis: int, x: Tensor) -> Tensor:
    return getattr(torch, name)(x, dim=axis, keepdim=True).int()


X, Y, P = floats(32, 64), floats(32, 64, seed=1), floats(32, 64, seed=2).abs() + 0.5
COLUMN, ROW = floats(32, 1, seed=3), floats(1, 64, seed=4)
WHOLE, OTHER, COUNT = integers(32, 64), integers(32, 64, low=1, seed=1), integers(32, 64, low=0, high=8, seed=2)
TMP, TMP_I32 = scratch(), scratch("INT32")
LINE = "line = pl.create_tile([1, 32], dtype=pl.UINT8)\n"

# --- arithmetic, mathematics, bits ------------------------------------------------------------------------------------

for _name, _oracle in (
    ("add", torch.add), ("sub", torch.sub), ("mul", torch.mul), ("maximum", torch.maximum), ("minimum", torch.minimum),
    ("part_add", torch.add), ("part_mul", torch.mul), ("part_max", torch.maximum), ("part_min", torch.minimum),
):  # fmt: skip
    case(_name, "{op}({x}, {y})", _oracle, x=X, y=Y)
for _name, _oracle in (
    ("add", torch.add), ("sub", torch.sub), ("mul", torch.mul), ("div", torch.div), ("fmod", torch.fmod),
):  # fmt: skip
    case(_name, "{op}({x}, 2.5)", lambda x, f=_oracle: f(x, 2.5), x=X)
    case(f"{_name}s", "{op}({x}, 2.5)", lambda x, f=_oracle: f(x, 2.5), unified=_name == "fmod", x=X)
    if _name != "fmod":
        case(_name, "{op}({x}, {y})", _oracle, levels="tensor", x=X, y=P[:, :1].clone())
case("div", "{op}({x}, {y})", torch.div, x=X, y=P)
case("div", "{op}({x}, {y})", lambda x, y: torch.div(x, y, rounding_mode="trunc"), x=WHOLE, y=OTHER)
case("fmod", "{op}({x}, {y})", torch.fmod, x=X, y=P)
case("maximum", "{op}({x}, 0.0)", F.relu, levels="tensor", x=X)
case("maximums", "{op}({x}, 0.0)", F.relu, levels="tile", x=X)
case("minimums", "{op}({x}, 0.0)", lambda x: -F.relu(-x), levels="tile", x=X)
case("rem", TMP + "{op}({x}, {y}, tmp)", torch.remainder, levels="tile", x=X, y=P)
case("rems", TMP + "{op}({x}, 1.5, tmp)", lambda x: torch.remainder(x, 1.5), levels="tile", x=X)
case("addc", "{op}({x}, {y}, {z})", lambda x, y, z: x + y + z, levels="tile", x=X, y=Y, z=P)
case("subc", "{op}({x}, {y}, {z})", lambda x, y, z: x - y - z, levels="tile", x=X, y=Y, z=P)
case("addsc", "{op}({x}, 1.5, {z})", lambda x, z: x + 1.5 + z, levels="tile", x=X, z=P)
case("subsc", "{op}({x}, 1.5, {z})", lambda x, z: x - 1.5 - z, levels="tile", x=X, z=P)
case("neg", "{op}({x})", torch.neg, x=X)
case("abs", "{op}({x})", torch.abs, x=X)
for _name in ("exp", "sin", "cos"):
    case(_name, "{op}({x})", getattr(torch, _name), x=X)
for _name, _oracle in (("log", torch.log), ("sqrt", torch.sqrt), ("rsqrt", torch.rsqrt), ("recip", torch.reciprocal)):
    case(_name, "{op}({x})", _oracle, x=P)
case("rsqrt", TMP + "{op}({x}, tmp)", torch.rsqrt, levels="tile", unified=False, x=P)
case("relu", "{op}({x})", F.relu, levels="tile", x=X)
case("lrelu", "{op}({x}, 0.25)", lambda x: F.leaky_relu(x, 0.25), levels="tile", x=X)
case(
    "prelu",
    scratch("UINT8", "[33, 32]") + "{op}({x}, {y}, tmp)",
    lambda x, y: torch.where(x > 0, x, x * y),
    levels="tile",
    x=X,
    y=Y,
)
for _name, _oracle in (("and_", torch.bitwise_and), ("or_", torch.bitwise_or)):
    case(_name, "{op}({x}, {y})", _oracle, x=WHOLE, y=OTHER)
    case(_name, "{op}({x}, 12)", lambda x, f=_oracle: f(x, 12), x=WHOLE)
    case(f"{_name[:-1]}s", "{op}({x}, 12)", lambda x, f=_oracle: f(x, 12), x=WHOLE)
case("xor", TMP_I32 + "{op}({x}, {y}, tmp)", torch.bitwise_xor, levels="tile", x=WHOLE, y=OTHER)
case("xor", "{op}({x}, {y})", torch.bitwise_xor, levels="tensor", x=WHOLE, y=OTHER)
case("xors", TMP_I32 + "{op}({x}, 12, tmp)", lambda x: x ^ 12, levels="tile", x=WHOLE)
case("xors", "{op}({x}, 12)", lambda x: x ^ 12, levels="tensor", x=WHOLE)
for _name, _oracle in (("shl", torch.bitwise_left_shift), ("shr", torch.bitwise_right_shift)):
    case(_name, "{op}({x}, {y})", _oracle, x=WHOLE, y=COUNT)
    case(f"{_name}s", "{op}({x}, 3)", lambda x, f=_oracle: f(x, 3), x=WHOLE)
case("not_", "{op}({x})", torch.bitwise_not, x=integers(32, 64, dtype=I16))
case("max", "pl.add({x}, pl.cast({op}(3, 5), pl.FP32))", lambda x: x + 5, levels="tile", x=X)
case("min", "pl.add({x}, pl.cast({op}(3, 5), pl.FP32))", lambda x: x + 3, levels="tile", x=X)

# --- comparison, broadcast, reduction, cast ---------------------------------------------------------------------------

for _code, _oracle in enumerate((torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge)):
    _picked = f"mask = {{op}}({{x}}, {{y}}, cmp_type={_code})\n{LINE}pl.sel(mask, {{x}}, {{y}}, line)"
    case("cmp", _picked, lambda x, y, f=_oracle: torch.where(f(x, y), x, y), levels="tile", x=X, y=Y)
    case(
        "cmp",
        f"{{op}}({{x}}, {{y}}, cmp_type={_code})",
        lambda x, y, f=_oracle: f(x, y).float(),
        levels="tensor",
        x=X,
        y=Y,
    )
case(
    "cmps", f"mask = {{op}}({{x}}, 0.0, cmp_type=4)\n{LINE}pl.sels(mask, {{x}}, line, 0.0)", F.relu, levels="tile", x=X
)
case(
    "sel",
    f"mask = pl.cmp({{x}}, {{y}}, cmp_type=2)\n{LINE}{{op}}(mask, {{x}}, {{y}}, line)",
    torch.minimum,
    levels="tile",
    x=X,
    y=Y,
)
case(
    "sels",
    f"mask = pl.cmps({{x}}, 1.0, cmp_type=2)\n{LINE}{{op}}(mask, {{x}}, line, 1.0)",
    lambda x: torch.where(x < 1, x, torch.ones(())),
    levels="tile",
    x=X,
)
for _name, _oracle in (
    ("", lambda x, v: v.expand(32, 64)), ("_add", torch.add), ("_sub", torch.sub), ("_mul", torch.mul),
    ("_div", torch.div), ("_max", torch.maximum), ("_min", torch.minimum), ("_expdif", lambda x, v: torch.exp(x - v)),
):  # fmt: skip
    case(f"row_expand{_name}", "{op}({x}, {v})", _oracle, x=X, v=P[:, :1].clone())
    case(f"col_expand{_name}", "{op}({x}, {v})", _oracle, x=X, v=P[:1].clone())
case("expands", "{op}({x}, 1.5)", lambda x: torch.full_like(x, 1.5), x=X)
for _name, _oracle in (("sum", torch.sum), ("prod", torch.prod), ("max", torch.amax), ("min", torch.amin)):
    case(f"row_{_name}", TMP + "{op}({x}, tmp)", lambda x, f=_oracle: f(x, dim=1, keepdim=True), levels="tile", x=P)
    case(f"row_{_name}", "{op}({x})", lambda x, f=_oracle: f(x, dim=1, keepdim=True), levels="tensor", x=P)
    case(f"col_{_name}", "{op}({x})", lambda x, f=_oracle: f(x, dim=0, keepdim=True), x=P)
case("col_sum", TMP + "{op}({x}, tmp)", lambda x: x.sum(0, keepdim=True), levels="tile", x=X)
for _name in ("argmax", "argmin"):
    for _direction, _dim in (("row", 1), ("col", 0)):
        _found = partial(_position, _name, _dim)
        case(f"{_direction}_{_name}", TMP + "{op}({x}, tmp)", _found, levels="tile", x=X)
        case(f"{_direction}_{_name}", "{op}({x})", _found, levels="tensor", x=X)
case("cast", "{op}({x}, pl.INT32, mode='floor')", lambda x: x.floor().int(), x=X * 10)
case("cast", "{op}({x}, target_type=pl.BF16, mode='rint')", lambda x: x.bfloat16(), x=X)
case("cast", "{op}({x}, pl.INT8, mode='rint')", lambda x: x.half().round().to(torch.int8), x=X * 10)

# --- matrices ---------------------------------------------------------------------------------------------------------

A, B, BIAS = floats(32, 64, seed=5), floats(64, 48, seed=6), floats(1, 48, seed=7)
case("matmul", "{op}({x}, {y})", torch.matmul, rtol=1e-4, x=A, y=B)
case(
    "matmul",
    "{op}({x}, {y}, a_trans=True, b_trans=True)",
    lambda x, y: x.T @ y.T,
    levels="tensor",
    rtol=1e-4,
    x=A.T.clone(),
    y=B.T.clone(),
)
case(
    "matmul",
    "{op}({x}, {y}, out_dtype=pl.INT32)",
    lambda x, y: x.int() @ y.int(),
    levels="tensor",
    x=integers(32, 64, dtype=torch.int8),
    y=integers(64, 48, dtype=torch.int8, seed=1),
)
case("matmul_acc", "acc = pl.matmul({x}, {y})\n{op}(acc, {x}, {y})", lambda x, y: 2 * (x @ y), rtol=1e-4, x=A, y=B)
case("matmul_acc", "acc = pl.matmul({x}, {y})\n{op}(acc, {x}, {y}, init_cond=True)", torch.matmul, rtol=1e-4, x=A, y=B)
case("matmul_bias", "{op}({x}, {y}, {v})", lambda x, y, v: x @ y + v, levels="tile", rtol=1e-4, x=A, y=B, v=BIAS)
case("batch_matmul", "{op}({x}, {y})", torch.matmul, levels="tile", rtol=1e-4, x=floats(3, 16, 32), y=floats(3, 32, 16))
case(
    "batch_matmul_acc",
    "acc = pl.batch_matmul({x}, {y})\n{op}(acc, {x}, {y})",
    lambda x, y: 2 * (x @ y),
    levels="tile",
    unified=False,
    rtol=1e-4,
    x=A,
    y=B,
)
_VECTOR = {"x": floats(1, 64), "y": B}
case("gemv", "{op}({x}, {y})", torch.matmul, levels="tile", rtol=1e-4, **_VECTOR)
case(
    "gemv_acc",
    "acc = pl.gemv({x}, {y})\n{op}(acc, {x}, {y})",
    lambda x, y: 2 * (x @ y),
    levels="tile",
    rtol=1e-4,
    **_VECTOR,
)
case("gemv_bias", "{op}({x}, {y}, {v})", lambda x, y, v: x @ y + v, levels="tile", rtol=1e-4, **_VECTOR, v=BIAS)

_MX = {
    "x": floats(32, 64).to(torch.float8_e4m3fn), "y": floats(64, 32, seed=1).to(torch.float8_e4m3fn),
    "s": (2.0 ** integers(32, 2, low=-2, high=3)).to(torch.float8_e8m0fnu),
    "r": (2.0 ** integers(2, 32, low=-2, high=3, seed=1)).to(torch.float8_e8m0fnu),
}  # fmt: skip
_SCALES = (
    "p = pl.move(pl.load(s, [0, 0], [32, 2], target_memory=pl.Mem.Mat), pl.Mem.LeftScale)\n"
    "q = pl.move(pl.load(r, [0, 0], [2, 32], target_memory=pl.Mem.Mat), pl.Mem.RightScale)\n"
)


def scaled(x: Tensor, y: Tensor, s: Tensor, r: Tensor) -> Tensor:
    """The product with one power of two per 32 elements of K."""
    return (x.float() * s.float().repeat_interleave(32, 1)) @ (y.float() * r.float().repeat_interleave(32, 0))


case("matmul_mx", _SCALES + "{op}({x}, p, {y}, q)", scaled, levels="tile", rtol=1e-4, platform="a5sim", **_MX)
case(
    "matmul_mx_acc",
    _SCALES + "acc = pl.matmul_mx({x}, p, {y}, q)\n{op}(acc, {x}, p, {y}, q)",
    lambda *v: 2 * scaled(*v),
    levels="tile",
    rtol=1e-4,
    platform="a5sim",
    **_MX,
)
case(
    "matmul_mx_bias",
    _SCALES + "{op}({x}, p, {y}, q, {v})",
    lambda *v: scaled(*v[:4]) + v[4],
    levels="tile",
    rtol=1e-4,
    platform="a5sim",
    **_MX,
    v=BIAS[:, :32].clone(),
)

# --- creation, movement, views ----------------------------------------------------------------------------------------

case("full", "{op}([32, 64], pl.FP32, value=1.5)", lambda: torch.full((32, 64), 1.5), unified=False)
case("full", "{op}([32, 64], pl.FP32, value=1.5)", lambda: torch.full((32, 64), 1.5), levels="tensor")
case("ci arange", "{op}(5, [1, 64])", lambda: torch.arange(5, 69, dtype=I32)[None], unified=False)
case("arange", "{op}(5, [1, 64], descending=True)", lambda: torch.arange(5, -59, -1, dtype=I32)[None], levels="tensor")
case("tri", "{op}(1, [32, 64], dtype=pl.FP32)", lambda: torch.ones(32, 64).tril(1), levels="tile")
case("tri", "{op}(-2, [32, 64], upper=True)", lambda: torch.ones(32, 64, dtype=I32).triu(-2), levels="tile")
_WORDS = torch.tensor([[2287000220, 159323540, 1176526268], [3325762723, 0, 0]]).to(I32)
case(
    "random",
    "pl.slice({op}(1, 2, 3, 4, 5, 6, [2, 64], dtype=pl.INT32), [1, 3], [0, 0])",
    lambda: _WORDS[:1].clone(),
    levels="tile",
    unified=False,
)
case(
    "random",
    "pl.slice({op}(1, 2, 3, 4, 5, 6, [2, 64], dtype=pl.INT32), [1, 3], [0, 0])",
    lambda: _WORDS[:1].clone(),
    levels="tensor",
)
case(
    "create create_tile",
    "acc = {op}([32, 64], dtype=pl.FP32)\npl.tile.assemble(acc, {x}, [0, 0])",
    lambda x: x,
    levels="tile",
    unified=False,
    x=X,
)
case(
    "create_tile", "acc = {op}([32, 64], dtype=pl.FP32)\npl.assemble(acc, {x}, [0, 0])", lambda x: x, levels="tile", x=X
)
case(
    "create create_tensor",
    "acc = {op}([32, 64], dtype=pl.FP32)\nacc[:] = {x}\npl.add(acc, acc)",
    lambda x: 2 * x,
    levels="tensor",
    unified=False,
    x=X,
)
case(
    "create_tensor",
    "acc = {op}([32, 64], dtype=pl.FP32, init_value=1.0)\npl.add(acc, {x})",
    lambda x: 1 + x,
    levels="tensor",
    x=X,
)
case("load", "{op}(x, [8, 16], [16, 32])", lambda x: x[8:24, 16:48].clone(), levels="tile", x=X)
case("store", "out = {op}({x}, [8, 0], out)", lambda x: F.pad(x, (0, 0, 8, 8)), levels="tile", x=X)
case("move", "mat = {op}({x}, pl.Mem.Mat)\n{op}(mat, target_memory=pl.Mem.Vec)", lambda x: x, levels="tile", x=X)
case(
    "extract",
    "{op}({x}, 8, 16, [16, 32], target_memory=pl.Mem.Vec)",
    lambda x: x[8:24, 16:48].clone(),
    levels="tile",
    unified=False,
    x=X,
)
case(
    "assemble",
    "{op}({x}, {y}, [8, 16])",
    lambda x, y: torch.cat([x[:8], torch.cat([x[8:24, :16], y, x[8:24, 48:]], 1), x[24:]]),
    levels="tile",
    x=X,
    y=floats(16, 32),
)
case("assemble", "out = {op}(out, {x}, [8, 0])", lambda x: F.pad(x, (0, 0, 8, 8)), levels="tensor", x=X)
case("read", "pl.add({x}, {op}({x}, [3, 5]))", lambda x: x + x[3, 5], x=X)
case(
    "write",
    "changed = {op}({x}, [3, 5], 2.5)\npl.add(changed, 0.0)",
    lambda x: x.index_put((torch.tensor(3), torch.tensor(5)), torch.tensor(2.5)),
    levels="tile",
    x=X,
)
case(
    "write",
    "done = pl.assemble(out, {x}, [0, 0])\nout = {op}(done, [3, 5], 2.5)",
    lambda x: x.index_put((torch.tensor(3), torch.tensor(5)), torch.tensor(2.5)),
    levels="tensor",
    x=X,
)
case("dim", "pl.add({x}, pl.cast({op}(x, -1), pl.FP32))", lambda x: x + 64, levels="tensor", x=X)
case(
    "gather_row",
    "acc = pl.tile.full([4, 64], pl.FP32, value=0.0)\n{op}(acc, x, [1, 0], [7, 0], [2, 64])",
    lambda x: F.pad(x[7:9], (0, 0, 1, 1)),
    levels="tile",
    x=X,
)
case("slice", "pl.add({op}({x}, [16, 32], [8, 16]), 0.0)", lambda x: x[8:24, 16:48].clone(), x=X)
case("reshape", "{op}(pl.add({x}, 0.0), [16, 128])", lambda x: x.reshape(16, 128), x=X)
case("transpose", "{op}({x}, 0, 1)", lambda x: x.T.clone(), x=X)
case(
    "transpose_view",
    "pl.move({op}(pl.move({x}, pl.Mem.Mat)), pl.Mem.Vec)",
    lambda x: x.T.clone(),
    levels="tile",
    unified=False,
    x=X,
)
case("concat", "{op}({x}, {y})", lambda x, y: torch.cat([x, y], 1), x=X, y=Y)
case("reinterpret_view", "{op}({x}, pl.INT16)", lambda x: x.view(I16), x=X)
case("view", "pl.add({op}({x}, [16, 128]), 0.0)", lambda x: x.reshape(16, 128), levels="tensor", unified=False, x=X)
case(
    "set_validshape",
    "pl.fillpad({op}({x}, 16, 48), pad_value=pl.PadValue.zero)",
    lambda x: F.pad(x[:16, :48], (0, 16, 0, 16)),
    x=X,
)
for _name, _extra in (("fillpad", ""), ("fillpad_inplace", ""), ("fillpad_expand", "[40, 72], ")):
    _room = (24, 24) if _extra else (16, 16)
    for _pad, _value in (("zero", 0.0), ("max", float("inf")), ("min", float("-inf"))):
        case(
            _name,
            f"{{op}}(pl.set_validshape({{x}}, 16, 48), {_extra}pad_value=pl.PadValue.{_pad})",
            lambda x, v=_value, r=_room: F.pad(x[:16, :48], (0, r[1], 0, r[0]), value=v),
            levels="tile" if _name == "fillpad_inplace" else "tile tensor",
            unified=_name != "fillpad_inplace",
            x=X,
        )

PAGE_TABLE = torch.tensor([[5, 0, 7, 2, 6, 1, 4, 3]], dtype=I32)
WANTED = integers(1, 16, low=0, high=256)
case(
    "paged_gather",
    "pl.add({op}(x, i, t, block_size=32, size=64, max_indices=16, space=pl.Mem.Vec), 0.0)",
    lambda x, i, t: x[(t[0][(i[0] // 32).long()] * 32 + i[0] % 32).long()],
    levels="tensor",
    x=floats(256, 64),
    i=WANTED,
    t=PAGE_TABLE,
)
case("expand_clone", "{op}(x, out)", lambda x: x.expand(4, 8, 16).clone(), levels="tensor", x=floats(1, 8, 16))

# --- gather, scatter, sort --------------------------------------------------------------------------------------------

PLACES = integers(16, 24, low=0, high=64)
case("gather", "{op}({x}, 1, {y})", lambda x, y: torch.gather(x[:16], 1, y.long()), levels="tensor", x=X, y=PLACES)
case(
    "gather",
    scratch("INT32", "[16, 24]") + "{op}({x}, {y}, tmp)",
    lambda x, y: x.flatten()[y.long()],
    levels="tile",
    unified=False,
    x=X,
    y=PLACES,
)
case("gather_mask", "{op}({x}, mask_pattern=2)", lambda x: x[:, 1::2].clone(), levels="tile", unified=False, x=X)
case("gather", "{op}({x}, mask_pattern=5)", lambda x: x[:, 2::4].clone(), levels="tensor", x=X)
_ABOVE = "found, count = {op}({x}, 1.0, tmp, cmp_mode='gt', out_cols=64)\nfound"
case(
    "gather_compare",
    scratch("UINT8") + _ABOVE,
    lambda x: torch.stack([F.pad(row.nonzero().flatten(), (0, 64 - int(row.sum()))) for row in x > 1]).int(),
    levels="tile",
    unified=False,
    x=X,
)
case(
    "gatherb",
    "{op}({x}, {y})",
    lambda x, y: x.flatten()[(y.long()[:, :, None] // 4 + torch.arange(8)).flatten(1)],
    levels="tile",
    x=X,
    y=(integers(4, 8, low=0, high=256) * 32).to(torch.uint32),
)
case(
    "mgather", "{op}(x, {y})", lambda x, y: x[y.flatten().long()], levels="tile", x=X, y=integers(1, 16, low=0, high=32)
)
case(
    "mgather",
    "{op}(x, {y}, coalesce='elem', gather_oob='wrap')",
    lambda x, y: x.flatten()[y.long() % 2048],
    levels="tile",
    x=X,
    y=integers(16, 24, low=0, high=5000),
)
_SPOTS = torch.randperm(32 * 64, generator=torch.Generator().manual_seed(9)).reshape(32, 64).int()
case(
    "mscatter",
    "out = {op}({x}, {y}, out)",
    lambda x, y: torch.zeros(32, 64).flatten().scatter(0, y.flatten().long(), x.flatten()).reshape(32, 64),
    levels="tile",
    x=X,
    y=_SPOTS,
)
case(
    "scatter",
    "{op}({x}, {y}, {z})",
    lambda x, y, z: x.flatten().scatter(0, z.flatten().long(), y.flatten()).reshape(32, 64),
    levels="tile",
    unified=False,
    x=X,
    y=Y,
    z=_SPOTS,
)
_COLUMNS = torch.stack([torch.randperm(64, generator=torch.Generator().manual_seed(k))[:16] for k in range(32)]).int()
case(
    "scatter",
    "{op}({x}, dim=-1, index={y}, src={z})",
    lambda x, y, z: x.scatter(1, y.long(), z),
    levels="tensor",
    x=X,
    y=_COLUMNS,
    z=floats(32, 16),
)
case(
    "scatter_mask",
    "{op}({x}, {y}, mask_pattern=1)",
    lambda x, y: torch.stack([y, torch.zeros_like(y)], 2).flatten(1),
    levels="tile",
    unified=False,
    x=X,
    y=floats(32, 32),
)
case(
    "scatter",
    "{op}({y}, mask_pattern=1, dst={x})",
    lambda x, y: torch.stack([y, x[:, 1::2]], 2).flatten(1),
    levels="tensor",
    x=X,
    y=floats(32, 32),
)
case(
    "scatter_update",
    "{op}({x}, -2, {y}, {z})",
    lambda x, y, z: x.index_copy(0, y.flatten().long(), z),
    x=X,
    y=torch.tensor([[3, 30, 9, 4]], dtype=I32),
    z=floats(4, 64),
)
_ORDER = torch.arange(128, dtype=torch.int64)[None].to(torch.uint32)
_KEYS = floats(1, 128, seed=11)


def records(values: Tensor, run: int) -> Tensor:
    """Descending (value, index) records of each run, as FP32 columns."""
    pieces = []
    for start in range(0, values.shape[1], run):
        best, place = values[0, start : start + run].sort(descending=True, stable=True)
        pieces.append(torch.stack([best, (place + start).int().view(torch.float32)], 1).flatten())
    return torch.cat(pieces)[None]


case("sort32", "{op}({x}, {y})", lambda x, y: records(x, 32), x=_KEYS, y=_ORDER)
case("mrgsort", "{op}(pl.sort32({x}, {y}), block_len=64)", lambda x, y: records(x, 128), x=_KEYS, y=_ORDER)
case(
    "mrgsort",
    "s = pl.sort32({x}, {y})\n" + scratch(shape="[1, 128]") + "a = pl.slice(s, [1, 64], [0, 0])\n"
    "b = pl.slice(s, [1, 64], [0, 64])\n{op}(a, b, tmp=tmp)",
    lambda x, y: records(x[:, :64], 64),
    levels="tile",
    x=_KEYS,
    y=_ORDER,
)

# --- launch, arrays, synchronisation ----------------------------------------------------------------------------------

for _name, _value in (("get_block_idx", 0), ("get_block_num", 1), ("get_subblock_idx", 0)):
    case(_name, "pl.add({x}, pl.cast({op}(), pl.FP32))", lambda x, v=_value: x + v, levels="tensor", x=X)
    case(_name, "pl.add({x}, pl.cast({op}(), pl.FP32))", lambda x, v=_value: x + v, levels="tile", unified=False, x=X)
case(
    "array.create",
    "a = {op}(4, pl.INT32)\na[2] = 7\npl.add({x}, pl.cast(a[2], pl.FP32))",
    lambda x: x + 7,
    levels="tile",
    x=X,
)
case(
    "array.update_element",
    "a = pl.array.create(4, pl.INT32)\na = {op}(a, 1, 3)\npl.add({x}, pl.cast(a[1], pl.FP32))",
    lambda x: x + 3,
    levels="tile",
    x=X,
)
case(
    "array.get_element",
    "a = pl.array.create(4, pl.INT32)\na[0] = 5\npl.add({x}, pl.cast({op}(a, 0), pl.FP32))",
    lambda x: x + 5,
    levels="tile",
    x=X,
)
for _name in ("bar_v", "bar_m", "bar_all", "fence", "cacheinvalid"):
    case(f"system.{_name}", "{op}()\npl.add({x}, 1.0)", lambda x: x + 1, levels="tile", x=X)
case("system.syncall", "{op}(core_type='aiv_only')\npl.add({x}, 1.0)", lambda x: x + 1, levels="tile", x=X)
