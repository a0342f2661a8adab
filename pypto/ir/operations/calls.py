"""From a written call to an expression: resolve the name, bind the arguments, apply the type rule (spec ops 1.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.nodes import ArrayType, Call, Expr, ScalarType, TensorType, TileType, Type
from pypto.ir.operations import scalars, table
from pypto.ir.operations.distributed import SHORT_NAMES, canonical
from pypto.ir.operations.errors import OperandTypeError, OperandValueError
from pypto.ir.operations.kinds import Dtype
from pypto.ir.operations.matmul import accumulator_dtype
from pypto.ir.operations.parameters import REQUIRED
from pypto.ir.operations.row import Operation
from pypto.ir.operations.scatter import update_arguments
from pypto.ir.operations.show import show, with_article
from pypto.ir.operations.unified import UNIFIED, Unified
from pypto.ir.span import UNKNOWN_SPAN, Span

NAMESPACES = ("tensor", "tile", "system", "array", "prefetch")
_SCALAR_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_SCALAR_FUNCTIONS = {"neg": "-", "abs": "abs", "not_": "not"}
_INSTEAD_OF_LEFT_SCALAR = {
    "sub": "write pl.neg and pl.add instead",
    "div": "write pl.recip and pl.mul instead",
    "add": "swap the operands",
    "mul": "swap the operands",
}
_ELEMENTS = (TileType, TensorType, ArrayType)
_INDEX_OPERANDS = frozenset({"mask", "tmp"})
_MIXES_LEVELS = frozenset({"gather_row"})


def build(
    namespace: str,
    name: str,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    span: Span = UNKNOWN_SPAN,
) -> Expr:
    """The expression of the call ``pl.<namespace>.<name>(*args, **kwargs)``; ``namespace`` ``"pl"`` is ``pl.`` itself.

    Positional literals arrive as ``Const`` expressions, keyword literals as Python values, lists as tuples. Raises
    :class:`UnknownOperationError`, ``TypeError`` or ``ValueError`` with the spelling of the call in front.
    """
    kwargs = dict(kwargs or {})
    spelling = f"pl.{name}" if namespace == "pl" else f"pl.{namespace}.{name}"
    if "." in namespace or namespace.startswith("pld"):
        spelling = f"{namespace}.{name}"
    try:
        if name == "scatter_update":
            args, kwargs = update_arguments(args, kwargs)
        if namespace == "pl":
            return _build_promoted(name, args, kwargs, span)
        row = table.find(canonical(namespace, name, args[0] if args else None))
        if row is None:
            raise table.unknown(spelling, _spellings())
        return _build_row(row, args, kwargs, span)
    except (OperandTypeError, OperandValueError) as error:
        raise type(error)(f"{spelling}: {error}") from None


def exists(namespace: str, name: str) -> bool:
    """Whether :func:`build` knows the name."""
    if namespace != "pl":
        return table.find(canonical(namespace, name)) is not None
    return name in UNIFIED or name in table.promoted()


def _spellings() -> list[str]:
    levels = [f"pl.{name}" for name in table.names() if name.partition(".")[0] in NAMESPACES]
    ranks = [name for name in table.names() if name.startswith("pld.")] + [f"pld.{name}" for name in SHORT_NAMES]
    return [*levels, *ranks, *(f"pl.{name}" for name in (*UNIFIED, *table.promoted()))]


# --- names under pl. --------------------------------------------------------------------------------------------------


def _build_promoted(name: str, args: Sequence[Any], kwargs: dict[str, Any], span: Span) -> Expr:
    unified = UNIFIED.get(name)
    if unified is not None:
        return _build_unified(unified, args, kwargs, span)
    canonical = table.promoted().get(name)
    if canonical is None:
        raise table.unknown(f"pl.{name}", _spellings())
    return _build_row(table.row(canonical), args, kwargs, span)


def _build_unified(unified: Unified, args: Sequence[Any], kwargs: dict[str, Any], span: Span) -> Expr:
    given = _bind_unified(unified, args, kwargs)
    operands = [given[name] for name in unified.required if isinstance(given.get(name), Expr)]
    levels = {level for level in map(_level, operands) if level}
    if not levels:
        return _build_scalar(unified.name, given, span)
    first = _level(given[unified.parameters[0][0]])
    if first is None:
        other = next(o for o in operands if _level(o))
        instead = _INSTEAD_OF_LEFT_SCALAR.get(unified.name, "the tensor or tile comes first")
        raise OperandTypeError(f"a scalar on the left of a {show(other.type)} is not supported; {instead}")
    if len(levels) > 1 and unified.name not in _MIXES_LEVELS:
        mixed = " and a ".join(show(o.type) for o in operands if _level(o))
        raise OperandTypeError(
            f"got a {mixed} in one call; use pl.load or pl.store to bring both to one level (pl.full and "
            "pl.create_tensor make tensors, pl.tile.full and pl.create_tile make tiles)"
        )
    row = table.find(f"{first}.{unified.name}")
    if row is None:
        level = "tensors" if first == "tensor" else "tiles"
        raise OperandTypeError(f"does not take {level}" + _sibling(unified.name, first))
    row = _scalar_row(row, given.get(unified.parameters[1][0]) if len(unified.parameters) > 1 else None)
    return _build_row(row, (), _rename(unified, row, given), span)


def _sibling(name: str, level: str) -> str:
    return "; for tensors use pl.matmul" if name == "batch_matmul" and level == "tensor" else ""


def _build_scalar(name: str, given: dict[str, Any], span: Span) -> Expr:
    """A unified name with scalars only (spec ops 1.14)."""
    values = list(given.values())
    if name in _SCALAR_OPERATORS and len(given) == 2:
        return scalars.binary(_SCALAR_OPERATORS[name], values[0], values[1], span)
    if name in _SCALAR_FUNCTIONS and len(given) == 1:
        return scalars.unary(_SCALAR_FUNCTIONS[name], values[0], span)
    if name == "cast":
        if given.get("mode", "round") not in ("round", 2):
            raise OperandTypeError(f"mode={given['mode']!r} is for tensors and tiles; a scalar cast truncates as in C")
        return scalars.scalar_cast(given["input"], _dtype(given["target_type"]), span)
    first = values[0] if values else None
    got = with_article(show(first.type)) if isinstance(first, Expr) else repr(first)
    extra = f" with {', '.join(list(given)[2:])}" if name in _SCALAR_OPERATORS else ""
    raise OperandTypeError(f"needs a tensor or tile, got {got}{extra}")


def _dtype(value: Any) -> DataType:
    try:
        return Dtype().read(value, None)
    except (OperandTypeError, OperandValueError) as error:
        raise type(error)(f"target_type {error}") from None


def _level(value: Any) -> str | None:
    if isinstance(value, Expr):
        return "tile" if isinstance(value.type, TileType) else "tensor" if isinstance(value.type, TensorType) else None
    return None


def _rename(unified: Unified, row: Operation, given: dict[str, Any]) -> dict[str, Any]:
    """Required operands go by position, options by name; an option the row lacks belongs to the other level."""
    positional = [p.name for p in row.parameters]
    result = {}
    for position, (name, default) in enumerate(unified.parameters):
        if name not in given:
            continue
        target = positional[position] if default is REQUIRED and position < len(positional) else name
        if row.parameter(target) is None:
            if given[name] is None or given[name] == default:
                continue
            _check_foreign_option(row, name, given)
            continue
        result[target] = given[name]
    return result


def _check_foreign_option(row: Operation, name: str, given: Mapping[str, Any]) -> None:
    """An option of the other level: only ``out_dtype`` of a tile product is legal, when it changes nothing."""
    if row.name == "tile.matmul" and name == "out_dtype":
        deduced = accumulator_dtype(given["lhs"].type.dtype)
        if given[name] == deduced:
            return
        raise OperandTypeError(f"out_dtype={given[name]!r} is for tensors; a tile product is {deduced.constant}")
    level = "tensors" if row.namespace == "tile" else "tiles"
    raise OperandTypeError(f"{name}= is for {level}; {row.name} takes {row.signature()}")


def _bind_unified(unified: Unified, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    names = [name for name, _ in unified.parameters if name not in unified.keyword_only]
    return _bind(names, [name for name, _ in unified.parameters], unified.required, args, kwargs)


# --- rows -------------------------------------------------------------------------------------------------------------


def _build_row(row: Operation, args: Sequence[Any], kwargs: dict[str, Any], span: Span) -> Expr:
    positional = [p.name for p in row.parameters if not p.keyword_only]
    every = [p.name for p in row.parameters]
    if row.scalar_form is not None and len(positional) > 1:
        second = args[1] if len(args) > 1 else kwargs.get(positional[1])
        other = _scalar_row(row, second)
        if other is not row:
            return _build_row(other, args, kwargs, span)
    given = _bind(positional, every, tuple(p.name for p in row.parameters if p.required), args, kwargs)
    return _typed(row, given, span)


def call(row: Operation, given: Mapping[str, Any], span: Span = UNKNOWN_SPAN) -> Expr:
    """The typed call of one row with arguments by parameter name; missing ones take their defaults.

    Raises ``TypeError`` or ``ValueError`` with the row's name in front.
    """
    try:
        return _typed(row, given, span)
    except (OperandTypeError, OperandValueError) as error:
        raise type(error)(f"pl.{row.name}: {error}") from None


def _typed(row: Operation, given: Mapping[str, Any], span: Span) -> Expr:
    stored: dict[str, Any] = {}
    seen: dict[str, Any] = {}
    paired = _paired(row, given)
    for p in row.parameters:
        value = given.get(p.name, p.default)
        if value is REQUIRED:
            raise OperandTypeError(f"needs {p.name}{_scratch(p.name, paired)}")
        stored[p.name] = p.read(value, paired)
        seen[p.name] = p.seen(stored[p.name])
    result = row.infer(**seen)
    return Call(row.name, stored, result, span=span) if isinstance(result, Type) else result


def _scratch(name: str, paired: Type | None) -> str:
    """Advice for a missing scratch operand."""
    if name not in ("tmp", "tmp_tile") or not isinstance(paired, TileType):
        return ""
    shape = ", ".join(map(str, paired.shape))
    return f", a scratch tile such as pl.create_tile([{shape}], dtype=pl.{paired.dtype.constant})"


def _paired(row: Operation, given: Mapping[str, Any]) -> Type | None:
    """The type of the operand whose dtype scalars take: the first tile, tensor or array that holds data."""
    values = [given[p.name] for p in row.parameters if p.name in given and p.name not in _INDEX_OPERANDS]
    return next((v.type for v in values if isinstance(v, Expr) and isinstance(v.type, _ELEMENTS)), None)


def _scalar_row(row: Operation, second: Any) -> Operation:
    is_number = isinstance(second, (int, float))
    is_scalar = isinstance(second, Expr) and isinstance(second.type, ScalarType)
    if row.scalar_form is not None and (is_number or is_scalar):
        return table.row(row.scalar_form)
    return row


def _bind(
    positional: list[str], every: list[str], required: tuple[str, ...], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    if len(args) > len(positional):
        raise OperandTypeError(
            f"takes {len(positional)} positional arguments ({', '.join(positional)}), got {len(args)}"
        )
    given = dict(zip(positional, args))
    for name, value in kwargs.items():
        if name not in every:
            raise OperandTypeError(f"has no parameter {name}; it takes {', '.join(every) or 'none'}")
        if name in given:
            raise OperandTypeError(f"got {name} twice")
        given[name] = value
    missing = [name for name in required if name not in given]
    if missing:
        raise OperandTypeError(f"needs {', '.join(missing)}")
    return {name: given[name] for name in every if name in given}
