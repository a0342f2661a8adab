"""Random programs of a few stages, as text: SPMD blocks, parallel and serial tasks, pipelines, products, mixed kernels."""

from __future__ import annotations

from hypothesis import strategies as st

ROWS = 128  # every tensor is a square matrix of FP32 with so many rows
_OPERATIONS = (
    "pl.exp({0})",
    "pl.add({0}, {1})",
    "pl.mul({0}, 2.0)",
    "pl.row_expand_sub({0}, pl.row_max({0}))",
)
_HEAD = f"""@pl.program
class P:
    @pl.function
    def main(self, x: pl.Tensor[[{ROWS}, {ROWS}], pl.FP32], w: pl.Tensor[[{ROWS}, {ROWS}], pl.FP32],
             y: pl.Out[pl.Tensor[[{ROWS}, {ROWS}], pl.FP32]]):
"""
_TASK = "with pl.at(level=pl.Level.CORE_GROUP, name_hint='{name}'):"


@st.composite
def stages(draw, number: int, tensors: tuple[str, ...]) -> list[str]:
    """Lines that compute tensor ``t<number>`` of two earlier ones."""
    a, b = draw(st.sampled_from(tensors)), draw(st.sampled_from(tensors))
    parts = draw(st.sampled_from((1, 2, 4, 8, 16, 32, 64)))
    name, target, rows = f"s{number}", f"t{number}", ROWS // parts
    operation = draw(st.sampled_from(_OPERATIONS))
    kind = draw(st.sampled_from(("spmd", "parallel", "range", "pipeline", "product", "mixed")))
    task, at = _TASK.format(name=name), f"[r : r + {rows}, :]"
    assign = f"{target}{at} = {operation.format(a + at, b + at)}"
    if kind == "spmd":
        options = draw(st.sampled_from(("", ", allow_early_resolve=True"))) + (
            draw(st.sampled_from(("", ", sync_start=True"))) if parts <= 8 else ""
        )
        at = f"[i * {rows} : i * {rows} + {rows}, :]"
        body = [f"for i in pl.spmd({parts}, name_hint='{name}'{options}):"]
        body.append(f"    {target}{at} = {operation.format(a + at, b + at)}")
    elif kind in ("parallel", "range"):
        body = [f"for r in pl.{kind}(0, {ROWS}, {rows}):", f"    {task}", f"        {assign}"]
    elif kind == "pipeline":
        stage, rows = draw(st.integers(1, 3)), 16
        at = f"[r : r + {rows}, :]"
        body = [task, f"    for r in pl.pipeline(0, {ROWS}, {rows}, stage={stage}):"]
        body.append(f"        {target}{at} = {operation.format(a + at, b + at)}")
    else:
        product = f"pl.matmul({a}[r : r + 32, :], {b}, out_dtype=pl.FP32)"
        value = product if kind == "product" else f"pl.maximum({product}, 0.0)"
        body = [f"for r in pl.parallel(0, {ROWS}, 32):", f"    {task}", f"        {target}[r : r + 32, :] = {value}"]
    return [f"{target} = pl.create_tensor([{ROWS}, {ROWS}], dtype=pl.FP32)", *body]


@st.composite
def programs(draw, most: int = 5) -> str:
    """Text of a program of at most ``most`` stages from ``x`` and ``w`` to ``y``."""
    tensors, lines = ("x", "w"), []
    for number in range(draw(st.integers(1, most))):
        lines += draw(stages(number, tensors))
        tensors += (f"t{number}",)
    lines += ["for i in pl.spmd(4, name_hint='last'):"]
    lines += [f"    y[i * 32 : i * 32 + 32, :] = pl.mul({tensors[-1]}[i * 32 : i * 32 + 32, :], 1.0)", "return y"]
    return _HEAD + "".join(f"        {line}\n" for line in lines)
