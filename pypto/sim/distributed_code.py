"""Machine code of the instructions between ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pypto.sim import opcodes as op
from pypto.sim.distributed import CTX_RANK, CTX_RANKS, REACHED_UNSIGNED
from pypto.sim.emitter import Emitter
from pypto.sim.scalar_code import TENSORS, rank_of
from pypto.sim.syntax import Instruction, TensorParameter, TensorRegister

_CONTEXT_WORDS: Final = {"commrank": CTX_RANK, "commsize": CTX_RANKS}


def _context(emitter: Emitter, instruction: Instruction) -> None:
    emitter.count(instruction, "commctx %d, %x", 2)
    tensor = emitter.symbol(instruction, 1, TENSORS, "a tensor")
    emitter.emit(op.COMM_CONTEXT, emitter.target(instruction), emitter.offsets[tensor.name])
    emitter.index_of(instruction)


def _context_word(emitter: Emitter, instruction: Instruction) -> None:
    emitter.count(instruction, f"{instruction.mnemonic} %d, %context", 2)
    context = emitter.integer(instruction, instruction.operands[1], instruction.operand_position(1))
    emitter.emit(op.COMM_WORD, emitter.target(instruction), context, _CONTEXT_WORDS[instruction.mnemonic])
    emitter.index_of(instruction)


def _peer_view(emitter: Emitter, instruction: Instruction) -> None:
    emitter.count(instruction, "peerview %v, %x, peer", 3)
    target = emitter.symbol(instruction, 0, TensorRegister, "a tensor register")
    source = emitter.symbol(instruction, 1, TENSORS, "a tensor")
    assert isinstance(source, (TensorRegister, TensorParameter))
    if rank_of(target) != rank_of(source) or target.dtype != source.dtype:
        emitter.complain(
            f"%{target.name} differs in rank or dtype from %{source.name}", instruction.operand_position(0)
        )
    peer = emitter.integer(instruction, instruction.operands[2], instruction.operand_position(2))
    emitter.emit(
        op.PEER_VIEW, emitter.offsets[target.name], emitter.offsets[source.name], peer, emitter.index_of(instruction)
    )


RANK_INSTRUCTIONS: Final[Mapping[str, Callable[[Emitter, Instruction], None]]] = {
    "commctx": _context,
    "commrank": _context_word,
    "commsize": _context_word,
    "peerview": _peer_view,
}
SIGNALS: Final = ("notify", "signal_wait", "signal_defer")


def emit_signal(emitter: Emitter, instruction: Instruction, attributes: Mapping[str, int]) -> None:
    """Code of ``notify``, ``signal_wait`` and ``signal_defer``; the machine runs them itself."""
    name = instruction.mnemonic
    tensor = emitter.symbol(instruction, 0, TENSORS, "a tensor")
    if tensor.dtype != "int32":
        emitter.complain(
            f"signal cells are int32; %{tensor.name} holds {tensor.dtype}", instruction.operand_position(0)
        )
    index, rank = emitter.index_of(instruction), rank_of(tensor)

    def integer(position: int) -> int:
        return emitter.integer(instruction, instruction.operands[position], instruction.operand_position(position))

    cell = emitter.items(instruction, 2 if name == "notify" else 1, "the cell")
    if len(cell) != rank:
        emitter.complain(f"%{tensor.name} has {rank} axes, found {len(cell)} numbers", instruction.position)
    if name == "notify":
        operands = [integer(1), integer(3), attributes["op"]]
        operation = op.NOTIFY
    else:
        comparison = attributes["cmp"] if name == "signal_wait" else REACHED_UNSIGNED
        operands = [integer(2), comparison]
        operation = op.SIGNAL_WAIT
    words = [emitter.offsets[tensor.name], *operands, len(cell), *cell]
    emitter.emit(operation, 3 + len(words), index, *words)
    emitter.facts.add("signals")


__all__ = ["RANK_INSTRUCTIONS", "SIGNALS", "emit_signal"]
