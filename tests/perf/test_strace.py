"""The reader against generated damage: nothing is miscounted, no value is ever wrong."""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto.perf import read_strace
from pypto.perf.grammar import ANSI_STYLE
from pypto.perf.host_trace import host_trace
from pypto.perf.source import pieces

from .logs import RUN, WALL, launch, record, single_chip
from .properties import examples

HEAD = re.compile(rb"\[STRACE\][ \t\x0b\x0c\x1b]+v=\x1b*[0-9]")


@dataclass(frozen=True)
class Fact:
    """A span as it was written, identified by its invocation number."""

    pid: int
    inv: int
    name: str
    ts: int
    dur: int
    device: bool
    text: str


def fact(inv: int, kind: int, ts: int, dur: int, pid: int) -> Fact:
    if kind % 3 == 0:
        name, attrs, device = f"{WALL}.orch", "clk=dev", True
        written = 10**12 + inv
    else:
        name, attrs, device = (RUN, "", False) if kind % 3 == 1 else (f"{RUN}.bind", "src=x slot_id=12", False)
        written = ts + dur + 500
    text = record(name, ts, dur, pid=pid, inv=inv, attrs=attrs, written=written)
    return Fact(pid, inv, name, ts, dur, device, text)


facts = st.builds(
    lambda kind, ts, dur, pid: (kind, ts, dur, pid),
    st.integers(0, 5),
    st.integers(0, 10**10),
    st.one_of(st.just(0), st.integers(1, 10**8)),
    st.sampled_from([7, 77, 778]),
)
NOISE = [
    "",
    "some progress 50%\r",
    "\x00\x00\x00",
    "[INFO] note: saw '[STRACE] v=1 pid=7 tid=7 inv=1 hid=0 depth=0 name=chip.run ts=1 dur=2' earlier\n",
    "[mono_ns=5][T0x1][WARN] f: [a.cc:3] bad [STRACE] v=1 pid=7 tid=7 inv=1 hid=0 depth=0 name=x ts=1 dur=2 \n",
    "[mono_ns=5][T0x1][TIMING] emit_host_span: [STRACE] v=2 pid=7 tid=7 inv=1 hid=0 depth=0 name=x ts=1 dur=2 \n",
    "[STRACE] v=1 pid=7 tid=7 inv=-1 hid=0 depth=0 name=x ts=1 dur=2 \n",
    "[STRACE] v=1 pid=7 tid=7 inv=1 hid=0x1 depth=0 name=x ts=1 dur=2 \n",
    "[STRACE] no version\n",
    "[mono_ns=9][T0x1][TIMING] clock_anchor: [CLOCK_ANCHOR] v=1 pid=7 mono_ns=100 wall_ns=1700\n",
    "[mono_ns=9][T0x1][TIMING] clock_anchor: [CLOCK_ANCHOR] v=1 pid=77 mono_ns=200 wall_ns=1900\r\n",
    "[STR",
    "\x1b[31mred\x1b[0m\n",
]
damage = st.tuples(
    st.sampled_from(["whole", "glued", "crlf", "colour", "cut", "cut_end", "nested", "twice"]),
    facts,
    st.integers(0, 400),
    st.sampled_from(NOISE),
)


def damaged(index: int, how: str, values: tuple[int, int, int, int], at: int, noise: str) -> tuple[str, list[Fact]]:
    """Text with one kind of damage, and the facts that a reader may report from it."""
    kind, ts, dur, pid = values
    one = fact(2 * index + 1, kind, ts, dur, pid)
    other = fact(2 * index + 2, kind + 1, dur, ts % 10**7, pid)
    at = at % (len(one.text) + 1)
    if how == "glued":
        return noise + one.text[:-1] + other.text, [one, other]
    if how == "crlf":
        return noise + one.text[:-1] + "\r\n", [one]
    if how == "colour":
        return f"\x1b[32m{one.text[:-1]}\x1b[0m\n{noise}", [one]
    if how == "cut":
        return noise + one.text[:at] + "\n", [one]
    if how == "cut_end":
        return noise + one.text[:at], [one]
    if how == "nested":
        return one.text[:at] + other.text + one.text[at:], [one, other]
    if how == "twice":
        return one.text + noise + one.text, [one]
    return noise + one.text, [one]


@examples(10_000)
@given(st.lists(damage, min_size=1, max_size=4), st.sampled_from([1 << 20, 64, 7]))
def test_every_head_is_counted_once_and_every_value_was_written(parts: list, piece_bytes: int) -> None:
    texts, known = [], {}
    for index, part in enumerate(parts):
        text, written = damaged(index, *part)
        texts.append(text)
        known |= {(f.pid, f.inv, f.name): f for f in written}
    data = "".join(texts).encode()
    table = read_strace(data, piece_bytes=piece_bytes)
    assert table.heads == table.parsed + table.torn + table.skipped
    assert table.heads == len(HEAD.findall(ANSI_STYLE.sub(b"\x1b", data)))
    for row in range(len(table)):
        span = table.span(row)
        written = known[span.pid, span.inv, span.name]
        assert (span.ts, span.dur, span.is_device, span.hid) == (written.ts, written.dur, written.device, "ab12")
    if table.torn or table.skipped:
        assert table.warnings


@given(st.lists(facts, min_size=1, max_size=6), st.data())
@examples(200)
def test_intact_records_survive_any_separator(values: list, data: st.DataObject) -> None:
    written = [fact(i + 1, *v) for i, v in enumerate(values)]
    joined = "".join(f.text[:-1] + data.draw(st.sampled_from(["\n", "\r\n", "\n\n", "\nnoise\n", ""])) for f in written)
    table = read_strace(joined + "\n")
    assert (table.parsed, table.torn, table.skipped) == (len(written), 0, 0)
    assert [(s.pid, s.ts, s.dur) for s in table.spans()] == [(f.pid, f.ts, f.dur) for f in written]


@pytest.mark.parametrize(
    ("text", "heads", "spans"),
    [
        ("[STRACE] v=1 pid=4 tid=5 inv=6 hid=Ff depth=1 name=ext.tool.a%20b ts=3 dur=2 k=x%3Dy", 1, 1),
        ("[STRACE] v=9 pid=4 tid=5 inv=6 hid=Ff depth=1 name=ext.tool.a%20b ts=3 dur=2 k=x%3Dy", 1, 0),
        (
            "[STRACE] v=1 pid=4 tid=5 inv=6 hid=ff depth=1 name=chip.ru"
            "[STRACE] v=1 pid=4 tid=5 inv=7 hid=ff depth=0 name=chip.run ts=3 dur=2",
            2,
            1,
        ),
        ("[STRACE] v=1 pid=4 tid=5 inv=4294967311 hid=ff depth=0 name=chip.run ts=-3 dur=2", 1, 0),
        ("[STRACE] v=1 pid=4 tid=5 inv=6 hid=ff depth=0 name= ts=3 dur=2\n", 1, 0),
        ("[STRACE]\tv=1\tpid=4\ttid=5\tinv=6\thid=ff\tdepth=0\tname=x\tts=3\tdur=2\t\n", 1, 1),
        ("[STRACE] v=1 pid=4 tid=5 inv=6 hid=ff depth=0 name=x ts=3 du", 1, 0),
        ("rank0 | [STRACE] v=1 pid=4 tid=5 inv=6 hid=ff depth=0 name=x ts=3 dur=2 \n", 1, 1),
        ("[STRACE] v=1 pid=4 tid=5 inv=18446744073709551615 hid=ff depth=0 name=x ts=3 dur=2 \n", 1, 1),
        ("[STRACE] v=1 pid=4 tid=5 inv=18446744073709551616 hid=ff depth=0 name=x ts=3 dur=2 \n", 1, 0),
    ],
)
def test_edge_cases_of_the_grammar(text: str, heads: int, spans: int) -> None:
    table = read_strace(text)
    assert (table.heads, table.parsed) == (heads, spans)


def test_lines_that_a_container_runtime_wrapped_in_json() -> None:
    lines = "".join(single_chip([1_000, 2_000])).splitlines()
    wrapped = [json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026-01-01T00:00:00Z"}) for line in lines]
    table = read_strace("\n".join(wrapped))
    assert (table.parsed, table.torn, table.skipped) == (10, 0, 0)
    assert [span.attrs for span in table.spans()] == [span.attrs for span in read_strace("\n".join(lines)).spans()]


def test_fields_of_the_edge_case_vectors() -> None:
    (span,) = read_strace(
        "[STRACE] v=1 pid=4 tid=5 inv=6 hid=Ff depth=1 name=ext.tool.a%20b ts=3 dur=2 k=x%3Dy"
    ).spans()
    assert (span.hid, span.name, span.attrs, span.pid, span.tid, span.depth) == (
        "ff",
        "ext.tool.a b",
        "k=x%3Dy",
        4,
        5,
        1,
    )
    table = read_strace("[STRACE] v=1 pid=4 tid=5 inv=18446744073709551615 hid=f depth=0 name=x ts=3 dur=2 \n")
    assert table.span(0).inv == 2**64 - 1
    assert int(table.to_pandas()["inv"][0]) == 2**64 - 1


def test_an_unfinished_number_at_the_end_of_the_input_is_torn_and_a_finished_one_is_not() -> None:
    text = record(RUN, 5_000, 123_456)
    end = text.index(" \n")
    for cut in range(1, 6):
        table = read_strace("\n" + text[: end - cut])
        assert (table.parsed, table.torn) == (0, 1)
    assert read_strace("\n" + text[:end]).spans()[0].dur == 123_456


@pytest.mark.parametrize("tail", ["", " \t\r"])
def test_clock_anchor(tail: str) -> None:
    good = f"x [mono_ns=9][T0x1][TIMING] clock_anchor: [CLOCK_ANCHOR] v=1 pid=4 mono_ns=100 wall_ns=1700{tail}\n"
    (anchor,) = read_strace(good).anchors
    assert anchor.wall_at(250) == 1850
    assert anchor.wall_at(50) is None
    for bad in (good.replace("TIMING", "INFO"), good.replace("1700", "1700 tail"), good.replace("v=1", "v=2")):
        assert read_strace(bad).anchors == []


def test_sources_of_every_kind_read_alike(tmp_path) -> None:  # type: ignore[no-untyped-def]
    text = "".join(single_chip([1000, 2000]))
    path = tmp_path / "run.log"
    path.write_text(text)
    sources = [text, text.encode(), bytearray(text.encode()), memoryview(text.encode()), path, str(path)]
    sources += [io.StringIO(text), io.BytesIO(text.encode())]
    tables = [read_strace(source) for source in sources]
    assert {(t.heads, t.parsed, int(t.dur.sum())) for t in tables} == {(10, 10, int(tables[0].dur.sum()))}
    with pytest.raises(FileNotFoundError):
        read_strace(str(tmp_path / "missing.log"))
    with pytest.raises(TypeError, match="cannot read markers from int"):
        read_strace(7)  # type: ignore[arg-type]


def test_a_log_without_line_ends_is_read_in_bounded_pieces() -> None:
    text = "".join(single_chip(range(1_000_000, 1_000_400))).replace("\n", "")
    table = read_strace(text.encode(), piece_bytes=1 << 16)
    assert (table.heads, table.torn) == (2000, 0)


def test_losses_are_said_once_per_log_with_pid_and_invocation() -> None:
    texts = single_chip([1000, 2000, 3000])
    texts[1] = texts[1].replace("dur=2000 clk=dev", "dur=20", 1)
    table = read_strace("".join(texts).replace("dur=20\n", "dur=20", 1))
    assert table.torn == 1
    assert len(table.warnings) == 1
    assert "pid 77 inv 2" in table.warnings[0]


def test_a_pid_that_counts_from_one_again_is_another_process() -> None:
    first, second = single_chip([1000, 2000, 3000]), single_chip([4000, 5000])
    table = read_strace("".join(first + [t.replace("ts=1", "ts=9") for t in second]))
    assert table.incarnation.tolist() == [0] * 15 + [1] * 10
    assert any("pid 77 stands for 2 processes" in w for w in table.warnings)


def test_a_second_anchor_starts_another_process() -> None:
    anchor = "[mono_ns=9][T0x1][TIMING] clock_anchor: [CLOCK_ANCHOR] v=1 pid=77 mono_ns={} wall_ns=1700\n"
    log = anchor.format(1) + launch(1, 1000, 10) + anchor.format(2) + launch(2, 900_000, 10)
    table = read_strace(log)
    assert table.incarnation.tolist() == [0] * 5 + [1] * 5
    assert (table.anchor_of(77, 0).mono_ns, table.anchor_of(77, 7).mono_ns) == (1, 2)  # type: ignore[union-attr]


def test_pipelined_launches_of_one_process_stay_together() -> None:
    """Launch 2 prepares while launch 1 runs: its records come first, its number is higher; nobody was replaced."""
    log = record(f"{RUN}.bind", 50, 5, inv=2, depth=1) + record(RUN, 0, 100, inv=1) + record(RUN, 50, 100, inv=2)
    late = record(RUN, 40, 300, inv=4) + record(RUN, 30, 400, inv=3)
    assert not read_strace(log + late).incarnation.any()


def test_a_line_without_end_is_handed_out_in_bounded_pieces_and_counted_once() -> None:
    text = (record(RUN, 5_000, 70).rstrip("\n") + "x" * 300_000) * 3
    size = 1 << 16
    assert max(map(len, pieces(text.encode(), piece_bytes=size))) <= 3 * size
    assert (read_strace(text.encode(), piece_bytes=size).heads, text.count("[STRACE]")) == (3, 3)


def test_every_process_of_a_reused_pid_has_its_own_wall_clock() -> None:
    anchor = "[mono_ns=9][T0x1][TIMING] clock_anchor: [CLOCK_ANCHOR] v=1 pid=77 mono_ns=0 wall_ns={}\n"
    log = anchor.format(10**18) + record(RUN, 100, 50) + anchor.format(2 * 10**18) + record(RUN, 100, 50, inv=1)
    walls = [s.args["wall_ts_ns"] for s in host_trace(read_strace(log)).document.slices]
    assert walls == ["1000000000000000100", "2000000000000000100"]
