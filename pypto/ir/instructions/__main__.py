"""``python -m pypto.ir.instructions``: the table as text, one line per mnemonic."""

from __future__ import annotations

from . import INSTRUCTIONS, Instruction


def line(row: Instruction) -> str:
    """Mnemonic, operands (lists in brackets, written ones with an arrow), attributes, pipe, cost class, meaning."""
    marks = {"in": "", "out": ">", "inout": "<>"}
    names = [marks[o.access] + (f"[{o.name}]" if o.kind == "list" else o.name) for o in row.operands]
    options = " {" + ", ".join(attribute.name for attribute in row.attributes) + "}" if row.attributes else ""
    return f"{row.mnemonic} {', '.join(names)}{options} · {row.pipe} · {row.cost} · {row.summary}"


if __name__ == "__main__":
    for row in INSTRUCTIONS.values():
        print(line(row))
