"""``pl.parser``: the text entry points and their error base."""

from pypto.ir.errors import ParserError
from pypto.language.program import function, inline, program
from pypto.language.text import loads, loads_program, parse, parse_program

__all__ = ["ParserError", "function", "inline", "loads", "loads_program", "parse", "parse_program", "program"]
