"""``record``: one launch with its values, kept as a :class:`Recording` that can be timed again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pypto.ir.dtype import DataType

if TYPE_CHECKING:
    from pypto.sim.recording import Recording


def record(compiled: Any, args: Sequence[Any], *, values: bool = True) -> Recording:
    """Run ``compiled`` once on copies of its tensor arguments and return what it did.

    ``compiled``: a compiled program of one chip; ``args``: torch tensors and numbers, one per parameter. The arguments
    are left as they are. ``values=False`` computes nothing and touches no tensor, which takes a hundredth of the time;
    it records the same for programs in which no value decides what is done (``ValueError`` for others).
    Outputs of a program that returns them can be left out. ``TypeError`` and ``ValueError`` name an argument that a
    launch would refuse, and ``compiled`` that is no compiled program of one chip.
    """
    from pypto.sim.chips import chip

    if not isinstance(values, bool):
        raise TypeError(f"values is True or False, got {type(values).__name__} {values!r}")
    bound = bound_arguments(compiled, args, "record")
    program = compiled.chip_callable.program
    if not values:
        from pypto.sim.outline import outlined

        program = outlined(program)
    kept: list[Any] = []
    operands = [_operand(info, value, kept, values) for info, value in zip(compiled.param_infos, bound)]
    name = compiled.platform.removesuffix("sim")
    clusters = int(chip(name).cores.clusters.value)
    stand_ins = compiled._stand_ins if values else dict.fromkeys(program.externals, _compute_nothing)
    execution = program.execute(operands, record=True, clusters=clusters, platform=name, stand_ins=stand_ins)
    return execution.recording


def _compute_nothing(*args: Any) -> None:
    """In place of a C++ kernel, where no value is wanted."""


def bound_arguments(compiled: Any, args: Sequence[Any], caller: str) -> Sequence[Any]:
    """``args`` as a launch of ``compiled`` would take them; ``caller`` is named in the error for what has none."""
    if not hasattr(compiled, "bind_arguments"):
        raise TypeError(
            f"{caller} takes a compiled program of one chip, e.g. ir.compile(kernel.lower(*args), platform='a2a3'), "
            f"got {type(compiled).__name__}"
        )
    bound: Sequence[Any] = compiled.bind_arguments(
        [a.detach().contiguous() if hasattr(a, "detach") else a for a in args]
    )
    return bound


def _operand(info: Any, value: Any, kept: list[Any], copies: bool = True) -> Any:
    """A number, or the memory of a tensor, of a copy if it ``copies``; ``kept`` holds it for the length of the run."""
    if info.kind == "scalar":
        return value
    from pypto.sim.program import TensorArgument

    if not hasattr(value, "detach"):
        raise TypeError(f"argument {info.name!r} is recorded from a torch.Tensor, got {type(value).__name__}")
    copy = (value.detach().clone() if copies else value.detach()).contiguous()
    kept.append(copy)
    dtype: DataType = info.dtype
    shape = tuple(copy.shape)
    if dtype.get_bit() == 4 and shape:
        shape = (*shape[:-1], shape[-1] * 2)
    return TensorArgument(info.name, copy.data_ptr(), shape, dtype)
