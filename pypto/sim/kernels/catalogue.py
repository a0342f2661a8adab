"""From an instruction and the element types of its operands to the address of a compiled kernel."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pypto.ir.dtype import DataType
from pypto.ir.instructions import Instruction, lookup
from pypto.sim.kernels.progress import Progress
from pypto.sim.kernels.support import Dtypes, UnsupportedDtype, canonical

if TYPE_CHECKING:
    from pypto.sim.kernels.compilation import Kernel

Request = tuple[Instruction | str, Dtypes]

# Compiled functions stay referenced for the life of the process: their addresses are in tile programs.
_compiled: dict[str, Any] = {}
_addresses: dict[tuple[str, tuple[DataType | None, ...]], int] = {}


def kernel(instruction: Instruction | str, dtypes: Dtypes) -> Kernel:
    """The kernel of ``instruction`` for operands of ``dtypes``, not compiled yet.

    ``dtypes`` has one entry per operand of the row, ``None`` for scalars and lists. Errors: :class:`UnsupportedDtype`
    (a ``ValueError``) names the operands, their dtypes and the legal ones.
    """
    row = lookup(instruction) if isinstance(instruction, str) else instruction
    return _made(row.mnemonic, tuple(canonical(d) for d in dtypes))


@cache
def _made(mnemonic: str, dtypes: tuple[DataType | None, ...]) -> Kernel:
    row = lookup(mnemonic)
    if not row.kernel:
        raise UnsupportedDtype(f"{row.mnemonic}: executed by the machine, there is no kernel")
    if len(dtypes) != len(row.operands):
        raise ValueError(f"{row.mnemonic}: {len(dtypes)} dtypes for {len(row.operands)} operands")
    family, factory = row.kernel.split(".")
    module = import_module(f"pypto.sim.kernels.{family}")
    made: Kernel = getattr(module, factory)(row, dtypes)
    return made


def addresses(requests: Iterable[Request]) -> list[int]:
    """Addresses of the kernels of a whole program; missing ones are compiled, with progress on stderr."""
    keys = [(row if isinstance(row, str) else row.mnemonic, tuple(dtypes)) for row, dtypes in requests]
    missing = {key: kernel(*key) for key in keys if key not in _addresses}
    if missing:
        from pypto.sim.kernels.cache import is_kept

        new = {made.name for made in missing.values() if made.name not in _compiled and not is_kept(made.name)}
        with Progress(len(new)) as progress:
            for key, made in missing.items():
                _addresses[key] = _compile(made, progress)
    return [_addresses[key] for key in keys]


def address(instruction: Instruction | str, operand_dtypes: Dtypes) -> int:
    """Address of one kernel (``int64 (*)(int64 *)``, docs/architecture.md 2); see :func:`kernel` for the arguments."""
    return addresses([(instruction, operand_dtypes)])[0]


def _compile(made: Kernel, progress: Progress) -> int:
    from pypto.sim.kernels.compilation import load_or_compile

    if made.name not in _compiled:
        _compiled[made.name] = load_or_compile(made, lambda: progress.compiling(made.name))
    return int(_compiled[made.name].address)


def outlines(instructions: Iterable[Instruction]) -> list[int | None]:
    """Addresses of the stand-ins that compute nothing (outline.py); ``None`` where there is none."""
    from pypto.sim.kernels.cache import is_kept
    from pypto.sim.kernels.outline import outline

    made = [outline(row) for row in instructions]
    new = {one.name for one in made if one and one.name not in _compiled and not is_kept(one.name)}
    with Progress(len(new)) as progress:
        return [None if one is None else _compile(one, progress) for one in made]
