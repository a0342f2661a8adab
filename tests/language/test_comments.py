"""Comments of a body (spec language 4.1)."""

from __future__ import annotations

import warnings

import pytest

import pypto.language as pl

PROGRAM = '''
@pl.program
class Commented:
    # above the function: not part of a body
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        """What it does,
        in two lines."""
        # first
        # second
        x = pl.load(a, [0, 0], [16, 64])  # behind code: not kept
        y = pl.add(
            x,
            # inside an expression: not kept
            x,
        )
        # before the loop
        for i in pl.range(4):
            # in the loop
            y = pl.add(y, x)
            if i > 2:
                # in the branch
                y = pl.mul(y, x)
        "a bare string"
        out = pl.store(y, [0, 0], out)
        # before the return
        return out
'''


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


def test_comments_stand_before_their_statements_and_survive_the_text():
    program = pl.parse(PROGRAM)
    printed = program.as_python()
    lines = _lines(printed)
    comments = [line for line in lines if line.startswith("# ") and not line.startswith("# pypto")]
    assert comments == [
        "# What it does,", "# in two lines.", "# first", "# second", "# before the loop", "# in the loop",
        "# in the branch", "# a bare string", "# before the return",
    ]  # fmt: skip
    for comment, statement in (("# second", "x"), ("# in the loop", "y"), ("# a bare string", "out")):
        assert lines[lines.index(comment) + 1].split(":")[0].split(" ")[0] == statement
    again = pl.parse(printed)
    assert again == program
    assert again.as_python() == printed


@pytest.mark.parametrize("indent", ["        ", "            "])
def test_a_comment_behind_the_last_statement_is_told_with_its_line(indent):
    text = PROGRAM.replace("        # before the return\n        return out\n", f"        return out\n{indent}# lost\n")
    with pytest.warns(UserWarning, match="end of a block") as found:
        program = pl.parse(text)
    assert "lost" not in program.as_python()
    assert text.splitlines()[found[0].lineno - 1].strip() == "# lost"


def test_a_comment_after_a_block_belongs_to_what_follows():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = pl.parse(PROGRAM.replace('        "a bare string"\n', "        # after the loop\n"))
    lines = _lines(program.as_python())
    assert lines[lines.index("# after the loop") + 1].startswith("out")
