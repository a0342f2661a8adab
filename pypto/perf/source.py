"""Where a log comes from: text, bytes, a path or an open file, handed out in pieces of bounded size."""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Union

from pypto.perf.grammar import ANSI_STYLE, ENVELOPE

Source = Union[str, bytes, bytearray, memoryview, "os.PathLike[str]", IO[str], IO[bytes]]
Progress = Callable[[int], None]

PIECE_BYTES = 1 << 20
LONGEST_LINE = 1 << 16
"""A line longer than this is cut in front of a record instead of being kept in memory as a whole."""

LONGEST_RECORD, LONGEST_ENVELOPE = 4096, 512
"""Generous bounds: an emitter writes a record with its envelope in at most 512 bytes."""

_PATH_LIKE = re.compile(r"[^\s\[\]]*[^\s\[\].]\.\w+|[^\s\[\]]*/[^\s\[\]]*")


def describe_source(source: Source) -> str:
    """How messages name a source."""
    if _is_path(source):
        return str(source)
    return str(getattr(source, "name", "text"))


def source_bytes(source: Source) -> int | None:
    """Size of a source in bytes where it is known without reading it."""
    if _is_path(source):
        return os.stat(source).st_size if os.path.isfile(source) else None  # type: ignore[arg-type]
    return len(source) if isinstance(source, (str, bytes, bytearray, memoryview)) else None


def pieces(source: Source, *, piece_bytes: int = PIECE_BYTES, progress: Progress | None = None) -> Iterator[bytearray]:
    """Yield the log in order, cut at line ends (or in front of a record in endless lines).

    Colour sequences are reduced to one escape byte so that the scanner can tell "styled" from "followed by".

    Raises:
        FileNotFoundError: ``source`` is a path, or one word that looks like one, and there is no such file.
        TypeError: ``source`` is none of the supported kinds.
    """
    carry = b""
    for block in _blocks(source, piece_bytes):
        if progress is not None:
            progress(len(block))
        data = carry + block
        cut = _cut(data)
        carry = data[cut:]
        if cut:
            yield _plain(data[:cut])
    if carry:
        yield _plain(carry)


def _plain(data: bytes) -> bytearray:
    return bytearray(ANSI_STYLE.sub(b"\x1b", data) if b"\x1b" in data else data)


def _cut(data: bytes) -> int:
    """Where the last whole line of ``data`` ends; 0 to wait for more.

    An endless line is cut in front of its last record, or, where that record must have ended long ago, shortly before
    the end: the rest is too short to hold the start of another record that has been overlooked.
    """
    cut = data.rfind(b"\n") + 1
    if cut or len(data) < LONGEST_LINE:
        return cut
    head = data.rfind(b"[STRACE]")
    if head < len(data) - LONGEST_RECORD:
        return len(data) - LONGEST_RECORD
    start = max(head - LONGEST_ENVELOPE, data.rfind(b"[STRACE]", 0, head) + 1)
    envelopes = [match.start() for match in ENVELOPE.finditer(data, start, head) if match.end() == head]
    return envelopes[-1] if envelopes else head


def _is_path(source: Source) -> bool:
    if isinstance(source, os.PathLike):
        return True
    if not isinstance(source, str) or not source or len(source) > 4096 or "\n" in source or "\0" in source:
        return False
    return os.path.isfile(source) or _PATH_LIKE.fullmatch(source) is not None


@contextmanager
def _opened(source: Source) -> Iterator[IO[bytes] | IO[str]]:
    if _is_path(source):
        with Path(source).open("rb") as file:  # type: ignore[arg-type]
            yield _decoded(file)
    elif hasattr(source, "read"):
        yield source  # type: ignore[misc]
    else:
        raise TypeError(
            f"cannot read markers from {type(source).__name__}: expected text, bytes, a path or an open file"
        )


def _decoded(file: io.BufferedReader) -> IO[bytes] | IO[str]:
    """The contents of a compressed (gzip) or UTF-16 file as they were written."""
    start = file.peek(2)[:2]
    if start == b"\x1f\x8b":
        import gzip

        return gzip.open(file)  # type: ignore[return-value]
    if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return io.TextIOWrapper(file, "utf-16", errors="replace")
    return file


def _blocks(source: Source, size: int) -> Iterator[bytes]:
    if isinstance(source, str) and not _is_path(source):
        yield from _text_blocks(source, size)
    elif isinstance(source, (bytes, bytearray, memoryview)):
        view = memoryview(source).cast("B")
        yield from (bytes(view[at : at + size]) for at in range(0, len(view), size))
    else:
        with _opened(source) as file:
            while block := file.read(size):
                yield block.encode("utf-8", "surrogateescape") if isinstance(block, str) else block


def _text_blocks(text: str, size: int) -> Iterator[bytes]:
    """A text without any line break is one line: its end is the line's end, not a place where a log was cut."""
    for at in range(0, len(text), size):
        yield text[at : at + size].encode("utf-8", "surrogateescape")
    if text and "\n" not in text:
        yield b"\n"


def read_all(source: Source) -> bytes:
    """The whole source as bytes, for inputs that are small by nature (JSON, device logs)."""
    return b"".join(bytes(block) for block in _blocks(source, PIECE_BYTES))


def stdin_or_path(argument: str) -> Source:
    """``-`` stands for standard input, anything else is a path."""
    return sys.stdin.buffer if argument == "-" else Path(argument)
