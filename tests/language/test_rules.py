"""The rules of the language, each as a small program: legal ones have values, others the error the rule states.

The programs are in ``rules/*.txt``. An entry names the section of the specification and the rule, the form its body
takes (a kernel, a core scope, orchestration code, a whole module), and the outcome: ``equals:`` a torch expression of
``x``, or ``error:`` a class and a phrase of the message.
"""

import importlib.util
import itertools
import re
import textwrap
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from pypto import ir
from pypto.runtime import RunConfig

RULES = Path(__file__).parent / "rules"
HEAD = """\
import math
import torch
import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
WIDTH, FLAG, SCALE, SHAPE = 64, True, 2.0, [32, 64]
"""
PARAMETERS = "x: pl.Tensor[[32, 64], pl.FP32], n: pl.Scalar[pl.INDEX], f: pl.Scalar[pl.FP32]"
OUTPUT = "y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]"
FORMS = {
    "module": "{before}{body}",
    "kernel": f"""{{before}}
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, {PARAMETERS}, {OUTPUT}):
{{body8}}
        return y
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, {PARAMETERS}, {OUTPUT}):
        y = self.k(x, n, f, y)
        return y
""",
    "core scope": """{before}
@pl.jit
def P(x: pl.Tensor, n: pl.Scalar[pl.INDEX], f: pl.Scalar[pl.FP32], y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
{body8}
    return y
""",
    "orchestration": """{before}
@pl.jit.incore
def bump(a: pl.Tensor, b: pl.Out[pl.Tensor]):
    pl.store(pl.add(pl.load(a, [0, 0], [32, 64]), 1.0), [0, 0], b)
    return b
@pl.jit
def P(x: pl.Tensor, n: pl.Scalar[pl.INDEX], f: pl.Scalar[pl.FP32], y: pl.Out[pl.Tensor]):
{body4}
    return y
""",
}
ENTRY = re.compile(
    r"## (?P<rule>.+)\nform: (?P<form>.+)\n(?:before:\n(?P<before>(?: {4}.*\n|\n)+))?"
    r"body:\n(?P<body>(?: {4}.*\n|\n)*)(?P<kind>equals|error): (?P<outcome>.+)\n"
)
NO_PLACE = ("bad dynamic name", "program no methods", "several kernels no orchestration")
"""Rules of objects rather than of text: nothing of a body is wrong yet."""


@dataclass(frozen=True)
class Rule:
    name: str
    text: str
    kind: str
    outcome: str


def _rules(path):
    text = path.read_text(encoding="utf-8")
    found = list(ENTRY.finditer(text))
    assert len(found) == text.count("\n## ") + 1, f"{path.name}: an entry is malformed"
    for match in found:
        body, before = textwrap.dedent(match["body"]), textwrap.dedent(match["before"] or "")
        pieces = {"body": body, "before": before} | {f"body{n}": textwrap.indent(body, " " * n) for n in (4, 8)}
        yield Rule(match["rule"], HEAD + FORMS[match["form"]].format(**pieces), match["kind"], match["outcome"])


ALL = [rule for path in sorted(RULES.glob("*.txt")) for rule in _rules(path)]
LEGAL = [r for r in ALL if r.kind == "equals"]
ILLEGAL = [r for r in ALL if r.kind == "error"]
_numbers = itertools.count()


def _run(rule, directory, platform):
    """``x`` and ``y`` after the program ran; ``None`` when the rule is about its definition alone."""
    path = directory / "rule.py"
    path.write_text(rule.text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"rule_{next(_numbers)}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    program = getattr(module, "P", None)
    if program is None or isinstance(program, ir.Function):
        return None
    x, y = torch.arange(32 * 64).reshape(32, 64).float() / 16 - 60, torch.zeros(32, 64)
    if isinstance(program, ir.Program):
        ir.compile(program, platform=platform, dump_passes=False)(x, 3, 1.5, y)
    else:
        program(x, 3, 1.5, y, config=RunConfig(platform=platform))
    return x, y


@pytest.mark.parametrize("rule", LEGAL, ids=lambda r: r.name)
def test_a_legal_program_has_the_right_values(rule, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for platform in ("a2a3", "a5"):
            found = _run(rule, tmp_path, platform)
            if found is None:
                continue
            x, y = found
            wanted = eval(rule.outcome, {"x": x, "torch": torch})
            if wanted is not None:
                torch.testing.assert_close(y, wanted)


@pytest.mark.parametrize("rule", ILLEGAL, ids=lambda r: r.name)
def test_an_illegal_program_is_refused_where_it_is_wrong(rule, tmp_path):
    wanted, _, phrase = rule.outcome.partition(" ")
    with warnings.catch_warnings(), pytest.raises(Exception) as caught:
        warnings.simplefilter("ignore")
        _run(rule, tmp_path, "a2a3sim")
    error, text = caught.value, str(caught.value)
    assert wanted in [kind.__name__ for kind in type(error).__mro__], repr(error)
    assert re.search(phrase, text, re.IGNORECASE | re.DOTALL), text
    if wanted != "TypeError" and not rule.name.endswith(NO_PLACE):
        assert re.search(r"--> .*rule\.py:\d+:\d+\n", text) and "^" in text, text


def test_there_are_enough_rules():
    assert len(ALL) > 300 and len({rule.name for rule in ALL}) == len(ALL)
