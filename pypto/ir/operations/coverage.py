"""The coverage page: every published operation with what it becomes and the test that checks its values.

``python -m pypto.ir.operations.coverage`` rewrites ``docs/coverage.md`` from ``docs/operations.tsv`` (the published
names), the operation table, the kernel table and the tests. Nothing on the page is written by hand.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pypto.ir.dtype import ALL_DTYPES, BOOL, INDEX, TASK_ID, DataType
from pypto.ir.nodes import Call
from pypto.ir.operations import calls, samples
from pypto.ir.operations.reach import reach

CONSTRUCTS = frozenset({"const", "static_print", "static_assert", "no_dep", "dump_tag"})
"""Published names that the parser handles as syntax; they have no row of their own or no value."""

STATES = {
    "runs": "the type rule accepts it and every instruction it becomes has a kernel",
    "placed": "typed; the placement of a kernel or the orchestration decides what it becomes",
    "construct": "syntax handled by the parser",
    "missing": "not there",
}
_DTYPES = tuple(d for d in ALL_DTYPES if d not in (BOOL, INDEX, TASK_ID))
_NAMESPACES = {
    "pl": "pl",
    "pl.tensor": "tensor",
    "pl.tile": "tile",
    "pl.system": "system",
    "pl.array": "array",
    "pl.prefetch": "prefetch",
}


@dataclass(frozen=True)
class Published:
    """One line of the published list: how often public programs call the name."""

    namespace: str
    name: str
    signature: str
    calls: int

    @property
    def spelling(self) -> str:
        return f"{self.namespace}.{self.name}"


@dataclass(frozen=True)
class Coverage:
    """What is known about one published name."""

    published: Published
    state: str
    dtypes: tuple[DataType, ...] = ()
    instructions: tuple[str, ...] = ()
    test: str = ""


def read_published(path: Path) -> list[Published]:
    """The published list; ``ValueError`` names a damaged line."""
    result = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()[1:], start=2):
        fields = line.split("\t")
        if len(fields) != 4 or fields[0] not in _NAMESPACES:
            raise ValueError(f"{path}:{number}: expected namespace, name, signature, calls; got {line!r}")
        result.append(Published(fields[0], fields[1], fields[2], int(fields[3])))
    return result


def cover(published: Published, test: str = "") -> Coverage:
    """Everything the tables say about one name, with the test that checks its values."""
    namespace, name = _NAMESPACES[published.namespace], published.name
    if name in CONSTRUCTS:
        return Coverage(published, "construct", test=test)
    if not calls.exists(namespace, name):
        return Coverage(published, "missing")
    dtypes, instructions, placed = _facts(namespace, name)
    state = "placed" if placed or not dtypes else "runs"
    return Coverage(published, state, dtypes, instructions, test)


def _facts(namespace: str, name: str) -> tuple[tuple[DataType, ...], tuple[str, ...], bool]:
    """Dtypes with a kernel, the instructions for the sample's own dtype, and whether placement decides."""
    found: list[DataType] = []
    instructions: dict[str, None] = {}
    placed = False
    for level in samples.levels(namespace, name):
        for dtype in _DTYPES:
            try:
                call = samples.example(namespace, name, level, dtype)
                done = reach(call, "a2a3") if isinstance(call, Call) else None
            except (TypeError, ValueError):
                continue
            found.append(dtype)
            if done is not None:
                placed = placed or done.placed
                instructions.update(dict.fromkeys(done.instructions))
    return tuple(d for d in _DTYPES if d in found), tuple(instructions), placed


# --- tests ------------------------------------------------------------------------------------------------------------


def value_tests(root: Path) -> dict[str, list[str]]:
    """The tests of each spelling, in the order of their files.

    A test counts when its id names the operation (``test_value[pl.tile.add-tile]``), or when its module writes kernels,
    compares with torch and calls the operation in a kernel that the test uses.
    """
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(root.rglob("test_*.py")):
        place = path.relative_to(root.parent).as_posix()
        if path.name == "test_values.py":
            for test, spelling in _named(path):
                found[spelling].append(f"{place}::{test}")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if {"pypto.language", "torch"} <= set(_imports(tree)):
            for test, spellings in _uses(tree):
                for spelling in spellings:
                    found[spelling].append(f"{place}::{test}")
    return dict(found)


def _named(path: Path) -> Iterator[tuple[str, str]]:
    """Test functions and the operations their collected ids start with."""
    command = [sys.executable, "-m", "pytest", "-o", "addopts=", "--collect-only", "-q", str(path.resolve())]
    listing = subprocess.run(command, capture_output=True, text=True, check=True, cwd=path.parent).stdout
    yield from re.findall(r"::(\w+)\[(pl(?:\.\w+)+)", listing)


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def _uses(tree: ast.Module) -> Iterator[tuple[str, set[str]]]:
    """Test functions with the ``pl.*`` names they reach through the module's own functions and classes."""
    defined = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    for name, node in defined.items():
        if name.startswith("test_"):
            reached, queue = {name}, [node]
            spellings: set[str] = set()
            while queue:
                current = queue.pop()
                spellings |= set(_spellings(current))
                for used in {n.id for n in ast.walk(current) if isinstance(n, ast.Name)} & set(defined) - reached:
                    reached.add(used)
                    queue.append(defined[used])
            yield name, spellings


def _spellings(node: ast.AST) -> Iterator[str]:
    for found in ast.walk(node):
        if isinstance(found, ast.Call):
            text = ast.unparse(found.func)
            if text.startswith("pl."):
                yield text


# --- page -------------------------------------------------------------------------------------------------------------


def page(rows: Iterable[Coverage]) -> str:
    """The page as Markdown."""
    rows = list(rows)
    parts = [
        "# Operation coverage",
        "Written by `python -m pypto.ir.operations.coverage`; do not edit. `calls` counts uses in public programs. The "
        "dtypes are those of the value worked on for which every instruction has a kernel. `test` is a test that "
        "runs the name in a kernel and compares with torch; `test_value` has one case per spelling.",
        _summary(rows),
    ]
    for namespace in _NAMESPACES:
        members = sorted((r for r in rows if r.published.namespace == namespace), key=_rank)
        parts.append(f"## {namespace}\n\n{_table(members)}")
    return "\n\n".join(parts) + "\n"


def _rank(row: Coverage) -> tuple[int, str]:
    return (-row.published.calls, row.published.name)


def _summary(rows: list[Coverage]) -> str:
    lines = ["| state | names | with a value test | meaning |", "| --- | ---: | ---: | --- |"]
    for state, meaning in STATES.items():
        members = [row for row in rows if row.state == state]
        tested = sum(bool(row.test) for row in members)
        lines.append(f"| {state} | {len(members)} | {tested} | {meaning} |")
    return "\n".join(lines)


def _table(rows: list[Coverage]) -> str:
    lines = ["| name | calls | state | dtypes | instructions | test |", "| --- | ---: | --- | --- | --- | --- |"]
    for row in rows:
        name = f"`{row.published.name}{row.published.signature}`".replace("|", "\\|")
        instructions = " ".join(f"`{i}`" for i in row.instructions)
        cells = (name, row.published.calls, row.state, _dtype_list(row.dtypes), instructions, row.test)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _dtype_list(dtypes: tuple[DataType, ...]) -> str:
    return "any" if len(dtypes) == len(_DTYPES) else " ".join(d.constant for d in dtypes)


def claims(text: str) -> dict[str, str]:
    """The test that a written page names for each spelling."""
    result: dict[str, str] = {}
    namespace = ""
    for line in text.splitlines():
        if line.startswith("## "):
            namespace = line[3:]
        elif line.startswith("| `") and (row := re.match(r"\| `(\w+)\(.*\| ([^|]*)\|$", line)):
            result[f"{namespace}.{row[1]}"] = row[2].strip()
    return result


def generate(root: Path, keep: Mapping[str, str] | None = None) -> str:
    """The page for the checkout at ``root``. With ``keep``, claims that still hold stay as they are."""
    tests = value_tests(root / "tests")
    rows = []
    for published in read_published(root / "docs" / "operations.tsv"):
        known = tests.get(published.spelling, [])
        claim = (keep or {}).get(published.spelling)
        test = claim if claim in known or claim == "" else next(iter(known), "")
        rows.append(cover(published, test or ""))
    return page(rows)


def main(argv: Sequence[str] | None = None) -> None:
    """Rewrite ``docs/coverage.md`` of the checkout this package is imported from."""
    argparse.ArgumentParser("python -m pypto.ir.operations.coverage", description=main.__doc__).parse_args(argv)
    root = Path(__file__).resolve().parents[3]
    target = root / "docs" / "coverage.md"
    target.write_text(generate(root), encoding="utf-8")
    sys.stdout.write(f"wrote {target}\n")


if __name__ == "__main__":
    main()
