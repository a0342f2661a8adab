"""Markers as text: grammar, encoding, truncation, identity (spec profiling 1)."""

import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto.runtime import markers
from pypto.runtime.host_clock import ModelledClock
from pypto.runtime.markers import Launch, Span
from pypto.runtime.spans import DEVICE_WALL, PREWARM, SpanLog, depth_of

RECORD = re.compile(
    r"\[mono_ns=(\d+)\]\[T0x[0-9a-f]+\]\[TIMING\] emit_host_span: \[STRACE\] v=1 pid=\d+ tid=\d+ inv=\d+ hid=[0-9a-f]+ "
    r"depth=\d+ name=[!-~]+ ts=\d+ dur=\d+ [ -~]*"
)


def percent_decoded(text: str) -> bytes:
    return re.sub(rb"%([0-9A-F]{2})", lambda m: bytes([int(m[1], 16)]), text.encode())


@given(st.text(max_size=80))
def test_a_name_is_one_token_that_decodes_to_itself(name):
    encoded = markers.encode_name(name)
    assert len(encoded) <= 64 and re.fullmatch(r"[!-~]*", encoded) and not set("[]=") & set(encoded)
    whole = "".join(f"%{b:02X}" if b in b"%[]= " or not 0x20 < b < 0x7F else chr(b) for b in name.encode())
    if len(whole) <= 64:
        assert encoded == whole and percent_decoded(encoded) == name.encode()
    else:
        assert encoded[-1] == "~" and whole.startswith(encoded[:-1]) and len(encoded) > 61
        assert name.encode().startswith(percent_decoded(encoded[:-1])), "no escape is split"


@given(st.text(min_size=1, max_size=200))
def test_any_record_is_one_line_below_the_atomic_limit(attributes):
    span = Span("chip.run", 0, 2**50, 2**50, attributes)
    text = markers.format_spans(Launch(2**40, "ff" * 8), [span], written_ns=1, pid=1, tid=1, thread=2**47)
    assert text.endswith("\n") and text.count("\n") == 1 and len(text) < 512
    assert RECORD.fullmatch(text[:-1])


def test_host_records_close_at_their_end_and_device_records_when_read_out():
    spans = [Span("chip.run", 0, 100, 50), Span(DEVICE_WALL, 2, 0, 30, "clk=dev")]
    text = markers.format_spans(Launch(1, "ab"), spans, written_ns=170, pid=7, tid=8, thread=15)
    identity = "[T0xf][TIMING] emit_host_span: [STRACE] v=1 pid=7 tid=8 inv=1 hid=ab"
    assert text == (
        f"[mono_ns=150]{identity} depth=0 name=chip.run ts=100 dur=50 \n"
        f"[mono_ns=170]{identity} depth=2 name={DEVICE_WALL} ts=0 dur=30 clk=dev\n"
    )


def test_invocations_count_up_and_a_child_process_counts_from_one():
    first = markers.next_invocation()
    assert markers.next_invocation() == first + 1
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, str(markers.next_invocation()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 20) == b"1"
    os.close(reader)
    os.close(writer)


def test_every_log_starts_with_one_clock_anchor(capfd):
    markers.start_log()
    markers.write_spans(Launch(1, "ab"), [Span("chip.run", 0, 1, 2)], written_ns=3)
    markers.write_spans(Launch(2, "ab"), [Span("chip.run", 0, 3, 2)], written_ns=5)
    lines = capfd.readouterr().err.splitlines()
    assert "mono_ns=1 wall_ns=" in lines[0], "nothing of the log lies before its anchor"
    assert ["[CLOCK_ANCHOR] v=1" in line for line in lines] == [True, False, False]
    envelope = r"\[mono_ns=\d+\]\[T0x[0-9a-f]+\]\[TIMING\] clock_anchor: "
    assert re.fullmatch(envelope + r"\[CLOCK_ANCHOR\] v=1 pid=\d+ mono_ns=\d+ wall_ns=\d+", lines[0])
    assert all(RECORD.fullmatch(line) for line in lines[1:])


def test_muted_records_are_not_written(capfd):
    with pytest.raises(KeyError), markers.muted():
        markers.write_spans(Launch(1, "ab"), [Span("chip.run", 0, 1, 2)], written_ns=3)
        os.write(2, b"said\n")
        raise KeyError("stop")
    assert capfd.readouterr().err == "said\n"
    markers.write_spans(Launch(1, "ab"), [Span("chip.run", 0, 1, 2)], written_ns=3)
    assert "[STRACE]" in capfd.readouterr().err


def test_spans_are_noted_in_scope_exit_order_also_when_the_scope_raises():
    clock = ModelledClock(1000)
    log = SpanLog(clock)
    try:
        with log.span("chip.run"):
            with log.span("chip.run.bind"):
                clock.advance(5)
            clock.advance(2)
            raise RuntimeError("stop")
    except RuntimeError:
        pass
    assert log.spans == [Span("chip.run.bind", 1, 1000, 5), Span("chip.run", 0, 1000, 7)]


def test_phases_without_duration_are_left_out_and_slots_come_last():
    log = SpanLog(ModelledClock(0))
    log.device_spans(90, {"orch": (4, 10), "preamble": (0, 4), "so_load": (4, 0)}, {3: (5, 6)})
    assert [(s.name.removeprefix(DEVICE_WALL), s.start_ns, s.duration_ns) for s in log.spans] == [
        ("", 0, 90),
        (".preamble", 0, 4),
        (".orch", 4, 10),
        (".task_slot_3", 5, 6),
    ]
    assert depth_of(PREWARM) == 0 and depth_of(DEVICE_WALL + ".orch") == 3
