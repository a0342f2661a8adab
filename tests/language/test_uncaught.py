"""How an error of a program is shown: carets, labels, colour, and no Python traceback (spec language 8.5)."""

import io
import os
import re
import subprocess
import sys

import pytest

import pypto.language as pl
from pypto.ir.errors import InternalError, ParserSyntaxError
from pypto.ir.uncaught import report, wants_backtrace, wants_colour

SCRIPT = """import pypto.language as pl

@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    tile = pl.load(x, [0, 0], [16, 64])
    pl.store(pl.neg(tiel), [0, 0], y)
    return y
"""


def error_output(tmp_path, script, **environment):
    """Exit code and what the interpreter wrote to stderr for ``script``."""
    path = tmp_path / "wrong.py"
    path.write_text(script, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    return ended.returncode, ended.stderr


def test_an_uncaught_error_shows_the_program_and_nothing_of_the_package(tmp_path):
    code, text = error_output(tmp_path, SCRIPT)
    assert code == 1
    assert text.splitlines()[:2] == ["Error: 'tiel' is not defined", f" --> {tmp_path}/wrong.py:6:21"]
    assert "  |                     ^^^^ 'tiel' is not defined" in text.splitlines()
    assert "Traceback" not in text and "/pypto/" not in text
    assert text.splitlines()[-2:] == [
        "   = help: did you mean 'tile'?",
        "   = note: set PTO_BACKTRACE=1 for the Python traceback",
    ]


def test_the_traceback_is_there_on_request(tmp_path):
    _, text = error_output(tmp_path, SCRIPT, PTO_BACKTRACE="1")
    assert text.startswith("Traceback") and "'tiel' is not defined" in text and "/pypto/" in text


def test_other_exceptions_keep_their_traceback(tmp_path):
    _, text = error_output(tmp_path, "import pypto.language as pl\nraise KeyError('mine')\n")
    assert text.startswith("Traceback") and "KeyError: 'mine'" in text


def test_the_request_is_zero_or_one():
    assert [wants_backtrace({}), wants_backtrace({"PTO_BACKTRACE": "0"}), wants_backtrace({"PTO_BACKTRACE": "1"})] == [
        False,
        False,
        True,
    ]
    with pytest.raises(ValueError, match="PTO_BACKTRACE is 'yes'; legal: 0, 1"):
        wants_backtrace({"PTO_BACKTRACE": "yes"})


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ],
)
def test_colour_follows_the_terminal_and_the_environment(environment, coloured):
    assert wants_colour(Terminal(), environment) is coloured
    assert not wants_colour(io.StringIO(), environment)


def parse(body, options=""):
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return pl.parse(f"@pl.function{options}\ndef k(n: pl.Scalar[pl.INDEX]):\n{lines}\n    return n\n")


def test_colour_adds_nothing_but_colour():
    with pytest.raises(ParserSyntaxError) as caught:
        parse("a = 0 < n < 3")
    plain, coloured = report(caught.value), report(caught.value, colour=True)
    assert coloured != plain and re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_columns_and_carets_count_characters():
    with pytest.raises(ParserSyntaxError) as caught:
        parse("größe = n\na = größe + 1.0")
    assert ":4:9\n" in str(caught.value)
    source, carets = (line for line in str(caught.value).splitlines() if "größe + 1.0" in line or "^" in line)
    assert source.index("größe + 1.0") == carets.index("^") and carets.count("^") == len("größe + 1.0")


def test_a_second_assignment_shows_the_first():
    with pytest.raises(pl.parser.ParserError) as caught:
        parse("first = n + 1\nfirst = n + 2", "(strict_ssa=True)")
    lines = str(caught.value).splitlines()
    first, second = (next(i for i, line in enumerate(lines) if text in line) for text in (":3:5", ":4:5"))
    assert second < first and lines[first].startswith("    ") and "assigned first here" in str(caught.value)
    assert caught.value.previous.line == 3


def test_an_internal_error_is_a_runtime_error():
    assert issubclass(InternalError, RuntimeError)
