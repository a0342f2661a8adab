"""Matrix multiplication on the cube unit (ops 12)."""

from __future__ import annotations

from .table import Attribute, Instruction, destination, tiles

_TRANSPOSED = (Attribute("a_trans", "int", default=0), Attribute("b_trans", "int", default=0))


def _forms(
    name: str, sources: tuple[str, ...], kernel: str, attributes: tuple[Attribute, ...], product: str, cost: str
) -> tuple[Instruction, ...]:
    return (
        Instruction(
            name,
            (destination(), *tiles(*sources)),
            attributes,
            f"matmul.{kernel}",
            "overwrite",
            "M",
            cost,
            0,
            f"dst = {product}",
        ),
        Instruction(
            f"{name}_acc",
            (destination("acc", "inout"), *tiles(*sources)),
            attributes,
            f"matmul.{kernel}",
            "accumulate",
            "M",
            cost,
            0,
            f"acc += {product}",
        ),
        Instruction(
            f"{name}_bias",
            (destination(), *tiles(*sources, "bias")),
            attributes,
            f"matmul.{kernel}",
            "bias",
            "M",
            cost,
            0,
            f"dst = {product} + bias[0,j]",
        ),
    )


ROWS = (
    *_forms("tmatmul", ("a", "b"), "product", _TRANSPOSED, "a @ b", "mmad"),
    *_forms("tgemv", ("a", "b"), "product", _TRANSPOSED, "a @ b with one row in a", "mmad"),
    *_forms(
        "tmatmul_mx",
        ("a", "a_scale", "b", "b_scale"),
        "scaled_product",
        (),
        "a @ b with one power of two per 32 elements of K",
        "mmad_mx",
    ),
)
