"""Types as error messages print them."""

from __future__ import annotations

from pypto.ir.dtype import DataType
from pypto.ir.nodes import ArrayType, OpaqueType, ScalarType, TensorType, TileType, TupleType, Type
from pypto.ir.operations.dims import listing

_NOUNS: dict[type, str] = {
    TensorType: "tensor",
    TileType: "tile",
    ScalarType: "scalar",
    ArrayType: "array",
    TupleType: "tuple",
    OpaqueType: "handle",
    DataType: "dtype",
    int: "integer",
    float: "number",
    str: "string",
    bool: "bool",
}


def noun(cls: type) -> str:
    """What a class of values is called in a sentence."""
    return _NOUNS.get(cls, f"pl.{cls.__name__}")


def with_article(word: str) -> str:
    """``a tile``, ``an integer``, ``an FP32 scalar``."""
    return f"an {word}" if word[0] in "aeiouAEIFHO" else f"a {word}"


def show(value: Type) -> str:
    """A type with its shape and dtype, and its valid shape where that is narrower."""
    if isinstance(value, (TensorType, TileType)):
        text = f"{noun(type(value))} {listing(value.shape)} {value.dtype.constant}"
        return text if value.valid_shape == value.shape else f"{text} valid {listing(value.valid_shape)}"
    if isinstance(value, ScalarType):
        return f"{value.dtype.constant} scalar"
    if isinstance(value, ArrayType):
        return f"array of {value.extent} {value.dtype.constant}"
    if isinstance(value, OpaqueType):
        return f"{value.name} handle"
    return noun(type(value))
