"""Names directly under ``pl.`` that exist for tensors and for tiles: one signature for both (spec ops 1.2)."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from pypto.ir.operations.parameters import REQUIRED


@dataclass(frozen=True)
class Unified:
    """A dispatching name. ``parameters`` pairs each name with its default (``REQUIRED`` without)."""

    name: str
    parameters: tuple[tuple[str, Any], ...]
    keyword_only: frozenset[str]

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(name for name, default in self.parameters if default is REQUIRED)


_SIGNATURES = """
add(lhs, rhs)
sub(lhs, rhs)
mul(lhs, rhs)
div(lhs, rhs, high_precision=False)
part_add(lhs, rhs)
part_mul(lhs, rhs)
part_max(lhs, rhs)
part_min(lhs, rhs)
maximum(lhs, rhs)
minimum(lhs, rhs)
fmod(lhs, rhs)
fmods(lhs, rhs)
cmp(lhs, rhs, cmp_type=0)
and_(lhs, rhs)
ands(lhs, rhs)
or_(lhs, rhs)
ors(lhs, rhs)
xor(lhs, rhs, tmp=None)
xors(lhs, rhs, tmp=None)
shl(lhs, rhs)
shls(lhs, rhs)
shr(lhs, rhs)
shrs(lhs, rhs)
not_(input)
neg(input)
abs(input)
exp(input)
log(input, high_precision=False)
sqrt(input)
rsqrt(input, high_precision=False)
recip(input, high_precision=False)
sin(input)
cos(input)
cast(input, target_type, mode='round')
row_max(input, tmp_tile=None)
row_sum(input, tmp_tile=None)
row_min(input, tmp_tile=None)
row_prod(input, tmp_tile=None)
col_sum(input, tmp_tile=None)
col_max(input)
col_min(input)
col_prod(input)
row_argmax(input, tmp_tile=None)
row_argmin(input, tmp_tile=None)
col_argmax(input, tmp_tile=None)
col_argmin(input, tmp_tile=None)
row_expand(lhs, rhs)
row_expand_add(lhs, rhs, tmp=None)
row_expand_sub(lhs, rhs)
row_expand_mul(lhs, rhs)
row_expand_div(lhs, rhs)
row_expand_max(lhs, rhs)
row_expand_min(lhs, rhs)
row_expand_expdif(lhs, rhs)
col_expand(lhs, rhs)
col_expand_add(lhs, rhs)
col_expand_sub(lhs, rhs)
col_expand_mul(lhs, rhs)
col_expand_div(lhs, rhs)
col_expand_max(lhs, rhs)
col_expand_min(lhs, rhs)
col_expand_expdif(lhs, rhs)
expands(target, scalar)
read(src, offset)
write(dst, offset, value)
slice(input, shape, offset, valid_shape=None, drop_dims=None, pad_value=None, clamp=False)
assemble(target, source, offset, *, atomic=None)
reshape(input, shape)
reinterpret_view(data, dtype, *, shape=None)
transpose(input, axis1, axis2)
concat(src0, src1)
set_validshape(input, valid_rows, valid_cols)
fillpad(value, pad_value=None)
fillpad_expand(value, shape, pad_value=None)
matmul(lhs, rhs, out_dtype=None, a_trans=False, b_trans=False, c_matrix_nz=False)
matmul_acc(acc, lhs, rhs, a_trans=False, b_trans=False, init_cond=None)
batch_matmul(lhs, rhs)
gather_row(dst, src, dst_offset, src_offset, shapes, transpose=False, *, valid_shape=None)
scatter_update(input, dim, index, src)
aiv_shard(x, split=None)
aic_gather(x, split=None)
sort32(src, idx)
mrgsort(src0, src1=None, src2=None, src3=None, tmp=None, *, exhausted=False, block_len=None)
"""


def _parse(line: str) -> Unified:
    function = ast.parse(f"def {line}: pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    spec = function.args
    positional = [a.arg for a in spec.args]
    missing = len(positional) - len(spec.defaults)
    defaults = [REQUIRED] * missing + [ast.literal_eval(d) for d in spec.defaults]
    keywords = [a.arg for a in spec.kwonlyargs]
    defaults += [REQUIRED if d is None else ast.literal_eval(d) for d in spec.kw_defaults]
    return Unified(function.name, tuple(zip([*positional, *keywords], defaults)), frozenset(keywords))


UNIFIED: dict[str, Unified] = {u.name: u for u in map(_parse, _SIGNATURES.strip().splitlines())}
