"""Runs what an expansion wrote, on NumPy arrays: tiles are arrays, views share memory, updates happen in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pypto.ir.dtype import FP16, FP32, DataType
from pypto.ir.nodes import Assign, Binary, Call, Cast, Const, Evaluate, For, If, Stmt, Var
from pypto.ir.operations import Emitter, build, results, row
from pypto.ir.operations.reach import on_chip

ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "fmod": np.fmod, "and_": np.bitwise_and, "or_": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
COMPARISONS = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
REDUCTIONS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "argmax": np.argmax, "argmin": np.argmin}
SCALARS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "//": lambda a, b: a // b,
           "%": lambda a, b: a % b}  # fmt: skip


def storage(dtype: DataType) -> np.dtype:
    return np.dtype({FP16: "float16", FP32: "float32"}.get(dtype, dtype.storage))


class Evaluator:
    """Values by variable name."""

    def __init__(self, **values: np.ndarray):
        self.values: dict[str, Any] = dict(values)
        self.trace: list[str] = []

    def run(self, statements: list[Stmt]) -> None:
        for stmt in statements:
            if isinstance(stmt, Assign):
                self.values[stmt.target.name] = self.value(stmt.value)
            elif isinstance(stmt, Evaluate):
                self.value(stmt.value)
            elif isinstance(stmt, For):
                for position in range(self.value(stmt.start), self.value(stmt.stop), self.value(stmt.step)):
                    self.values[stmt.var.name] = position
                    self.run(stmt.body)
            elif isinstance(stmt, If):
                self.run(stmt.then_body if self.value(stmt.condition) else stmt.else_body)

    def value(self, item: Any) -> Any:
        match item:
            case Var():
                return self.values[item.name]
            case Const():
                return item.value
            case Binary():
                return SCALARS[item.op](self.value(item.left), self.value(item.right))
            case Cast():
                return self.value(item.operand)
            case Call():
                self.trace.append(item.op.rpartition(".")[2])
                arguments = {name: self.value(argument) for name, argument in item.arguments.items()}
                return self.apply(item.op.rpartition(".")[2], item.type, arguments)
            case tuple():
                return tuple(map(self.value, item))
        return item

    def apply(self, name: str, kind: Any, a: dict[str, Any]) -> Any:
        handler = getattr(self, f"_{name}", None)
        if handler is not None:
            return handler(kind, a)
        base = name.rstrip("s") if name.endswith("s") and "rhs" in a else name
        if base in ELEMENTWISE:
            return ELEMENTWISE[base](a["lhs"], np.asarray(a["rhs"]).astype(a["lhs"].dtype))
        direction, _, rest = name.partition("_")
        if rest.startswith("expand"):
            vector = a[f"{direction}_vec"]
            if rest == "expand":
                return np.broadcast_to(vector, kind.shape).copy()
            return self._named(rest.removeprefix("expand_"), a["tile"], vector)
        axis = 1 if direction == "row" else 0
        return REDUCTIONS[rest](a["tile"], axis=axis, keepdims=True).astype(storage(kind.dtype))

    def _named(self, name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        names = {"max": "maximum", "min": "minimum"}
        return self._div(None, {"lhs": x, "rhs": y}) if name == "div" else ELEMENTWISE[names.get(name, name)](x, y)

    # --- operations with a shape of their own -------------------------------------------------------------------------

    def _div(self, kind: Any, a: dict[str, Any]) -> Any:
        quotient = np.true_divide(a["lhs"], a["rhs"])
        return (np.trunc(quotient) if a["lhs"].dtype.kind == "i" else quotient).astype(a["lhs"].dtype)

    def _create(self, kind: Any, a: dict[str, Any]) -> Any:
        return np.zeros(kind.shape, storage(kind.dtype))

    def _full(self, kind: Any, a: dict[str, Any]) -> Any:
        return np.full(kind.shape, a["value"], storage(kind.dtype))

    def _slice(self, kind: Any, a: dict[str, Any]) -> Any:
        return a["tile"][tuple(slice(o, o + s) for o, s in zip(a["offset"], a["shape"]))]

    def _reshape(self, kind: Any, a: dict[str, Any]) -> Any:
        view = a["tile"].view()
        view.shape = a["shape"]
        return view

    def _assemble(self, kind: Any, a: dict[str, Any]) -> Any:
        source, target = a["source"], a["target"]
        target[tuple(slice(o, o + s) for o, s in zip(a["offset"], source.shape))] = source
        return target

    def _move(self, kind: Any, a: dict[str, Any]) -> Any:
        return a["tile"].copy()

    def _store(self, kind: Any, a: dict[str, Any]) -> Any:
        return self._assemble(kind, {"target": a["output_tensor"], "source": a["tile"], "offset": a["offsets"]})

    def _cast(self, kind: Any, a: dict[str, Any]) -> Any:
        rounded = {"rint": np.rint, "trunc": np.trunc}[a["mode"]](a["tile"].astype(np.float64))
        target = storage(kind.dtype)
        return (rounded if target.kind in "iu" else a["tile"]).astype(target)

    def _transpose(self, kind: Any, a: dict[str, Any]) -> Any:
        return np.swapaxes(a["tile"], a["axis1"], a["axis2"]).copy()

    def _exp(self, kind: Any, a: dict[str, Any]) -> Any:
        return np.exp(a["tile"])

    def _matmul(self, kind: Any, a: dict[str, Any]) -> Any:
        return a["lhs"] @ a["rhs"]

    def _matmul_into(self, kind: Any, a: dict[str, Any]) -> Any:
        a["acc"][...] = a["lhs"] @ a["rhs"]
        return a["acc"]

    def _matmul_acc(self, kind: Any, a: dict[str, Any]) -> Any:
        a["acc"] += a["lhs"] @ a["rhs"]
        return a["acc"]

    def _cmp(self, kind: Any, a: dict[str, Any]) -> Any:
        bits = np.packbits(COMPARISONS[a["cmp_type"]](a["lhs"], a["rhs"]), axis=-1, bitorder="little")
        mask = np.zeros(kind.shape, np.uint8)
        mask[..., : bits.shape[-1]] = bits
        return mask

    _cmps = _cmp

    def _sel(self, kind: Any, a: dict[str, Any]) -> Any:
        bits = np.unpackbits(a["mask"], axis=-1, bitorder="little")[..., : a["lhs"].shape[-1]]
        return np.where(bits, a["lhs"], a["rhs"])

    def _gather_axis(self, kind: Any, a: dict[str, Any]) -> Any:
        rows, cols = a["indices"].shape
        source = a["src"][:rows] if a["axis"] == 1 else a["src"][:, :cols]
        return np.take_along_axis(source, a["indices"], a["axis"])

    def _scatter_axis(self, kind: Any, a: dict[str, Any]) -> Any:
        for at, column in np.ndenumerate(a["indexes"]):
            a["dst"][at[0], column] = a["src"][at]
        return a["dst"]

    def _gather_row(self, kind: Any, a: dict[str, Any]) -> Any:
        window = a["src"][tuple(slice(o, o + s) for o, s in zip(a["src_offset"], a["shapes"]))]
        window = window.T if a["transpose"] else window
        a["dst"][tuple(slice(o, o + s) for o, s in zip(a["dst_offset"], window.shape))] = window
        return a["dst"]

    def _read(self, kind: Any, a: dict[str, Any]) -> Any:
        return int(a["tensor"][a["indices"]])


def expanded(spelling: str, *args: Any, **kwargs: Any) -> tuple[np.ndarray, list[str]]:
    """The value of ``pl.tile.*`` or ``pl.tensor.*`` on arrays, written out and run; and the operations it ran."""
    _, level, name = spelling.split(".")
    values: dict[str, np.ndarray] = {}

    def operand(argument: Any) -> Any:
        if not isinstance(argument, np.ndarray):
            return argument
        dtype = next(d for d in _dtypes() if storage(d) == argument.dtype)
        label = f"v{len(values)}"
        values[label] = argument.copy()
        made: Any = results.tile(argument.shape, dtype) if level == "tile" else results.tensor(argument.shape, dtype)
        return Var(label, made)

    made = build(level, name, [operand(a) for a in args], {key: operand(v) for key, v in kwargs.items()})
    assert isinstance(made, Call)
    statements: list[Stmt] = []
    labels = iter(range(10**6))
    emitter = Emitter(statements, lambda base: f"{base}_{next(labels)}")
    result = emitter.expand(made) if level == "tile" else emitter.in_kernel(on_chip(made, row(made.op).stays_in_memory))
    evaluator = Evaluator(**values)
    evaluator.run(statements)
    return evaluator.value(result), evaluator.trace


def _dtypes() -> list[DataType]:
    return [FP32, FP16, *(DataType.from_string(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64))]
