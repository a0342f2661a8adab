"""Channels between the host and a chip that runs: regions and queues (spec distributed 2.14)."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pypto.language as pl
from pypto.runtime.channel_memory import (
    ChannelAbortedError,
    ChannelError,
    ChannelMemory,
    ChannelPoisonedError,
    ChannelReleasedError,
    ChannelState,
    Descriptor,
    Side,
    SignalCmp,
    SignalOp,
    block_bytes,
    block_layout,
)
from pypto.runtime.channel_queue import COUNTERS, OUT_HEAD, ChipQueue, Opcode, QueueShape, WorkerChipQueue
from pypto.runtime.channel_region import ChipEndpoint, WorkerChipRegion
from pypto.runtime.shared_memory import SharedRegion

from .programs import config

U64 = pl.Scalar[pl.UINT64]
Out = pl.Tensor[[1, 16], pl.INT32]
LIMIT_S = 20.0
LIMIT_NS = int(LIMIT_S * 1e9)


@pytest.fixture(scope="module")
def echo_program(tmp_path_factory):
    """A chip program that is one hand-written kernel, for which a Python stand-in runs on the rank."""
    source = tmp_path_factory.mktemp("extern") / "serve.cpp"
    source.write_text("// runs on the card only\n")

    @pl.jit.extern(core_type="aiv", source=str(source))
    def serve(out: pl.Out[Out], a: U64, b: U64, c: U64, d: U64, e: U64, f: U64, g: U64, h: U64, i: U64): ...

    @pl.jit
    def chip(out: pl.Out[Out], a: U64, b: U64, c: U64, d: U64, e: U64, f: U64, g: U64, h: U64, i: U64):
        out = serve(out, a, b, c, d, e, f, g, h, i)
        return out

    r = pl.RUNTIME

    @pl.jit.host
    def host(
        out: pl.Out[pl.Tensor[[2, 1, 16], pl.INT32]],
        a: U64 = r, b: U64 = r, c: U64 = r, d: U64 = r, e: U64 = r, f: U64 = r, g: U64 = r, h: U64 = r, i: U64 = r,
    ):  # fmt: skip
        chip(out[1], a, b, c, d, e, f, g, h, i, device=1)

    return {platform: host.compile(config=config(2, platform)) for platform in ("a2a3sim", "a2a3")}


def opened(program, platform, stand_in):
    compiled = program[platform]
    compiled.bind_external("serve", stand_in)
    out = torch.zeros(2, 1, 16, dtype=torch.int32).share_memory_()
    return compiled, out


# --- two processes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("platform", ["a2a3sim", "a2a3"])
def test_a_region_while_the_chip_program_runs(echo_program, platform):
    """The host feeds numbers, the chip answers each; both sleep on counters of each other."""

    def stand_in(out, *words):
        end = ChipEndpoint(words[:6])
        for step in range(1, 6):
            assert end.signal_wait(0, step, SignalCmp.GE, LIMIT_NS) == step
            numbers = end.payload_read(0, 64).view(np.int32)
            assert not numbers.flags.writeable
            end.payload_write(64, (3 * numbers).tobytes())
            out[0, :] += numbers
            end.signal_notify(64, 1, SignalOp.Add)

    compiled, out = opened(echo_program, platform, stand_in)
    with compiled.prepare() as worker, worker.orchestration() as orch:
        region = orch.create_worker_chip_region(1, 4096, 128)
        run = worker.submit(compiled, out, *region.descriptor, 0, 0, 0)
        answer = np.zeros(16, np.int32)
        for step in range(1, 6):
            region.payload_write(0, np.arange(16, dtype=np.int32) * step)
            region.counter(0).notify(step)
            assert region.counter(64).wait(step, SignalCmp.EQ, timeout=LIMIT_S) == step
            region.payload_read(64, answer)
            assert answer.tolist() == [3 * step * k for k in range(16)]
        run.result(LIMIT_S)
        assert region.state == ChannelState.LIVE
    assert region.state == ChannelState.RELEASED
    assert out[1, 0].tolist() == [15 * k for k in range(16)]


def test_a_queue_while_the_chip_program_runs(echo_program):
    """More messages than the queue holds, of all sizes, each answered by its reverse; then STOP."""

    def stand_in(out, *words):
        queue, count = ChipQueue(words), 0
        while (message := queue.pop(timeout=LIMIT_S)).opcode != Opcode.STOP:
            queue.push(message.payload[::-1].tobytes(), timeout=LIMIT_S)
            queue.give_back(message)
            count += 1
        queue.push(b"end", Opcode.ERROR, timeout=LIMIT_S)
        out[0, 0] = count

    sizes = [0, 1, 64, 100, 200, 3, 256, 255, 7, 190, 64, 64, 64, 0, 17] * 4
    texts = [bytes((k + n) % 251 for k in range(size)) for n, size in enumerate(sizes)]
    compiled, out = opened(echo_program, "a2a3sim", stand_in)
    with compiled.prepare() as worker, worker.orchestration() as orch:
        queue = orch.create_worker_chip_queue(1, 4, 512, 256)
        run = worker.submit(compiled, out, *queue.descriptor)
        answers, waiting = [], deque(texts)
        while len(answers) < len(texts):
            if waiting and queue.try_push(waiting[0]):
                waiting.popleft()
            elif len(answers) + len(waiting) < len(texts):
                answers.append(queue.pop(timeout=LIMIT_S))
            else:  # all are answered, but not given back yet
                queue.push(waiting.popleft(), timeout=LIMIT_S)
        queue.stop(timeout=LIMIT_S)
        last = queue.pop(timeout=LIMIT_S)
        run.result(LIMIT_S)
    assert [a.payload.tobytes() for a in answers] == [text[::-1] for text in texts]
    assert [a.seq for a in answers] == list(range(len(texts)))
    assert (last.opcode, last.payload.tobytes(), int(out[1, 0, 0])) == (Opcode.ERROR, b"end", len(texts))


def test_a_chip_that_waits_for_a_host_that_says_nothing(echo_program):
    compiled, out = opened(
        echo_program, "a2a3sim", lambda out, *words: ChipEndpoint(words[:6]).signal_wait(4, 1, SignalCmp.EQ, 50_000_000)
    )
    with compiled.prepare() as worker, worker.orchestration() as orch:
        region = orch.create_worker_chip_region(1, 64, 8)
        with pytest.raises(
            RuntimeError, match="rank 1 .* counter 4 of channel region .* holds 0, not EQ 1, after 0.05"
        ):
            worker(out, *region.descriptor, 0, 0, 0)
        assert region.state == ChannelState.LIVE, "a wait in vain does not hurt a region"


def test_a_host_that_waits_for_a_chip_that_died(echo_program):
    def stand_in(out, *words):
        os.kill(os.getpid(), signal.SIGKILL)

    compiled, out = opened(echo_program, "a2a3sim", stand_in)
    with compiled.prepare() as worker, worker.orchestration() as orch:
        region = orch.create_worker_chip_region(1, 64, 64)
        run = worker.submit(compiled, out, *region.descriptor, 0, 0, 0)
        with pytest.raises(ChannelError, match=r"nobody will change counter 0 any more: rank 1 of 2 .*SIGKILL"):
            region.counter(0).wait(1, SignalCmp.GE, timeout=LIMIT_S)
        with pytest.raises(RuntimeError, match="killed by signal 9"):
            run.result(LIMIT_S)


@pytest.mark.parametrize("who", ["host", "chip"])
def test_an_abort_reaches_a_side_that_sleeps(echo_program, who):
    def stand_in(out, *words):
        queue = ChipQueue(words)
        if who == "chip":
            queue.abort(7)
            return
        queue.push(b"here", timeout=LIMIT_S)
        try:
            queue.pop(timeout=LIMIT_S)
        except ChannelAbortedError as error:
            out[0, 0] = error.code

    compiled, out = opened(echo_program, "a2a3sim", stand_in)
    with compiled.prepare() as worker, worker.orchestration() as orch:
        queue = orch.create_worker_chip_queue(1, 2, 64, 64)
        run = worker.submit(compiled, out, *queue.descriptor)
        if who == "host":
            assert queue.pop(timeout=LIMIT_S).payload.tobytes() == b"here"
            queue.abort(9)
        else:
            with pytest.raises(ChannelAbortedError, match="the chip aborted the queue with code 7"):
                queue.pop(timeout=LIMIT_S)
        run.result(LIMIT_S)
        assert queue.state == ChannelState.LIVE
    assert int(out[1, 0, 0]) == (9 if who == "host" else 0)


def test_the_memory_of_a_channel_is_the_cards(echo_program):
    compiled, _ = opened(echo_program, "a2a3sim", lambda *words: None)
    with compiled.prepare() as worker:
        with worker.orchestration() as orch:
            region = orch.create_worker_chip_region(1, 1000, 12)
            queue = orch.create_worker_chip_queue(0, 8, 64, 128)
            assert worker.committed_device_memory(1) >= 1012 and worker.committed_device_memory(0) > 0
            region.free()
            region.free()
            assert worker.committed_device_memory(1) == 0
            again = orch.create_worker_chip_region(1, 1000, 12)
            assert again.region_id != region.region_id
            for use in (lambda: region.counter(0), lambda: region.payload_write(0, b"x")):
                with pytest.raises(ChannelReleasedError, match=f"region {region.region_id} is released"):
                    use()
        assert worker.committed_device_memory(0) == worker.committed_device_memory(1) == 0
        with pytest.raises(ChannelReleasedError):
            queue.try_push(b"x")
        with pytest.raises(RuntimeError, match="this orchestration has ended"):
            orch.create_worker_chip_region(0, 64, 64)
        with pytest.raises(IndexError, match="worker_id 2 is out of range"):
            worker.orchestration().create_worker_chip_region(2, 64, 64)
        left = worker.orchestration()
        kept = left.create_worker_chip_region(0, 64, 64)
    assert kept.state == ChannelState.RELEASED, "closing a worker ends its orchestrations"


# --- both ends in one process -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def memory():
    region = SharedRegion(1 << 28, "channels")
    yield region
    region.close()


def both_ends(memory, payload=256, counters=192):
    address = memory.allocate(block_bytes(payload, counters))
    shared = ChannelMemory(block_layout(address, 5, payload, counters), Side.HOST)
    shared.create()
    host = WorkerChipRegion(shared, 0, lambda: None)
    return host, ChipEndpoint(host.descriptor)


def test_the_descriptor(memory):
    host, _ = both_ends(memory)
    magic, number, payload, payload_bytes, counter, counter_bytes = host.descriptor
    assert magic and number == 5 and (payload_bytes, counter_bytes) == (256, 192)
    assert counter % 64 == 0 and payload >= counter + counter_bytes
    for words, text in (
        ((*host.descriptor, 0), "6 scalars, got 7"),
        ((1, *host.descriptor[1:]), "no channel descriptor"),
        ((magic, 0, *host.descriptor[2:]), "region id other than 0"),
        ((magic, 5, 64, 64, 128, 64), "shares no memory"),
    ):
        with pytest.raises(ValueError, match=text):
            ChipEndpoint(words)
    with pytest.raises(ChannelReleasedError):
        ChipEndpoint((magic, 6, *host.descriptor[2:]))


HOLDS = {"EQ": (0,), "NE": (-1, 1), "GT": (1,), "GE": (0, 1), "LT": (-1,), "LE": (-1, 0)}


@pytest.mark.parametrize("cmp", list(SignalCmp))
def test_comparisons_are_signed(memory, cmp):
    host, chip = both_ends(memory)
    for difference in (-1, 0, 1):
        for base in (-5, 0, 2**31 - 2):
            host.counter(0).notify(base + difference)
            expected = (difference in HOLDS[cmp.name], base + difference)
            assert host.counter(0).test(base, cmp) == expected == chip.signal_test(0, base, cmp)


@given(st.lists(st.tuples(st.sampled_from(list(SignalOp)), st.integers(-(2**31), 2**31 - 1)), max_size=8))
def test_notifies_set_and_add_with_wrap_around(memory, steps):
    host, chip = both_ends(memory)
    expected = 0
    for op, value in steps:
        chip.signal_notify(128, value, op)
        expected = value if op == SignalOp.Set else (expected + value + 2**31) % 2**32 - 2**31
    assert host.counter(128).test(expected, SignalCmp.EQ) == (True, expected)


def test_a_line_of_counters_has_one_writer(memory):
    host, chip = both_ends(memory)
    host.counter(4).notify(1)
    with pytest.raises(ChannelError, match="a line has one writer: keep 64 bytes between"):
        chip.signal_notify(60, 1)
    chip.signal_notify(64, 1)
    assert host.state == ChannelState.LIVE


@pytest.mark.parametrize(
    ("use", "kind", "text"),
    [
        (lambda host, chip: host.payload_write(250, b"1234567"), ValueError, "250..257 are outside the payload of 256"),
        (lambda host, chip: host.payload_write(-1, b"1"), ValueError, "outside the payload"),
        (lambda host, chip: chip.payload_read(0, 257), ValueError, "outside the payload"),
        (lambda host, chip: host.payload_read(0, b"1234"), ValueError, "read-only"),
        (lambda host, chip: host.payload_write(0, 17), TypeError, "must have a buffer"),
        (lambda host, chip: host.payload_write(1.5, b"1"), TypeError, "offset must be an int"),
        (lambda host, chip: host.counter(2), ValueError, "multiple of 4 below 192"),
        (lambda host, chip: host.counter(192), ValueError, "below 192"),
        (lambda host, chip: host.counter(0).notify(2**31), ValueError, "INT32"),
        (lambda host, chip: host.counter(0).wait(1, SignalCmp.EQ, timeout=0), ValueError, "positive and finite"),
        (lambda host, chip: host.counter(0).wait(1, SignalCmp.EQ, timeout=float("inf")), ValueError, "finite"),
        (lambda host, chip: chip.signal_wait(0, 1, SignalCmp.EQ, 0), ValueError, "nanoseconds"),
        (lambda host, chip: host.counter(0).wait(1, SignalCmp.EQ, timeout=0.01), TimeoutError, "holds 0, not EQ 1"),
        (lambda host, chip: block_bytes(0, 64), ValueError, "payload_bytes must be a positive int"),
        (lambda host, chip: block_bytes(64, 6), ValueError, "counter_bytes must be a positive multiple of 4"),
    ],
)
def test_wrong_use_is_refused_and_does_no_harm(memory, use, kind, text):
    host, chip = both_ends(memory)
    with pytest.raises(kind, match=text):
        use(host, chip)
    assert host.state == ChannelState.LIVE


def test_payload_of_any_kind(memory):
    host, chip = both_ends(memory)
    host.payload_write(8, torch.arange(4, dtype=torch.int16))
    assert chip.payload_read(8, 8).view(np.int16).tolist() == [0, 1, 2, 3]
    back = torch.zeros(4, dtype=torch.int16)
    host.payload_read(8, back)
    assert back.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("how", ["free", "poison", "notify"])
def test_a_sleeper_is_woken(memory, how):
    host, chip = both_ends(memory)
    found: list[object] = []

    def sleep():
        try:
            found.append(chip.signal_wait(0, 3, SignalCmp.GE, LIMIT_NS))
        except ChannelError as error:
            found.append(type(error))

    thread = threading.Thread(target=sleep)
    thread.start()
    if how == "free":
        host.free()
    elif how == "poison":
        host._memory.poison("for the test")
    else:
        for value in range(1, 4):
            host.counter(0).notify(value)
    thread.join(LIMIT_S)
    assert found == [{"free": ChannelReleasedError, "poison": ChannelPoisonedError, "notify": 3}[how]]


# --- queues -----------------------------------------------------------------------------------------------------------


def queue_ends(memory, shape):
    host, _ = both_ends(memory, shape.payload_bytes, COUNTERS)
    queue = WorkerChipQueue(host, shape)
    return queue, ChipQueue(queue.descriptor)


@settings(deadline=None)
@given(st.data())
def test_a_queue_is_a_bounded_list_in_order(memory, data):
    """Against a list: every message arrives once, in order, whole; what does not fit waits."""
    shape = QueueShape(
        2 ** data.draw(st.integers(0, 3)), 64 * data.draw(st.integers(1, 4)), 64 * data.draw(st.integers(1, 4))
    )
    host, chip = queue_ends(memory, shape)
    sent: deque[bytes] = deque()
    held: deque = deque()
    for number in range(data.draw(st.integers(0, 30))):
        step = data.draw(st.sampled_from(["push", "pop", "return"]))
        if step == "push":
            text = bytes([number % 256]) * data.draw(st.integers(0, shape.input_arena_bytes))
            fits = len(sent) + len(held) < shape.depth
            done = host.try_push(text)
            assert not done or fits
            assert done or sent or held, "an empty queue takes everything that fits its arena"
            if done:
                sent.append(text)
        elif step == "pop":
            message = chip.try_pop()
            assert (message is None) == (not sent)
            if message is not None:
                assert message.payload.tobytes() == sent[0]
                held.append((message, sent.popleft()))
        elif held:
            message, text = held.popleft()
            assert message.payload.tobytes() == text, "nothing overwrites what is held"
            chip.give_back(message)


def test_exactly_depth_messages(memory):
    host, chip = queue_ends(memory, QueueShape(4, 64, 64))
    assert [host.try_push(b"x") for _ in range(5)] == [True] * 4 + [False]
    message = chip.try_pop()
    assert message is not None and not host.try_push(b"x"), "a message that is held keeps its slot"
    chip.give_back(message)
    assert host.try_push(b"x") and host.try_pop() is None


@pytest.mark.parametrize(
    ("use", "kind", "text"),
    [
        (lambda host, chip: host.push(b"x", timeout=0), ValueError, "timeout must be positive"),
        (lambda host, chip: host.pop(timeout=-1), ValueError, "timeout must be positive"),
        (lambda host, chip: chip.pop(timeout=0), ValueError, "timeout must be positive"),
        (lambda host, chip: host.pop(timeout=0.01), TimeoutError, "after 0.01 s"),
        (lambda host, chip: host.try_push(bytes(65)), ValueError, "does not fit the arena of 64"),
        (lambda host, chip: chip.try_push(b"", Opcode.STOP), ValueError, "STOP cannot be sent this way"),
        (lambda host, chip: host.abort(0), ValueError, "other than 0"),
        (lambda host, chip: ChipQueue(host.descriptor[:6]), ValueError, "9 scalars, got 6"),
        (lambda host, chip: ChipQueue((*host.descriptor[:6], 8, 64, 64)), ValueError, "holds no queue"),
        (lambda host, chip: QueueShape(3, 64, 64), ValueError, "power of two"),
        (lambda host, chip: QueueShape(1 << 31, 64, 64), ValueError, "power of two"),
        (lambda host, chip: QueueShape(4, 65, 64), ValueError, "input_arena_bytes must be a positive multiple of 64"),
        (lambda host, chip: QueueShape(4, 64, 0), ValueError, "output_arena_bytes must be a positive multiple of 64"),
    ],
)
def test_wrong_use_of_a_queue_does_no_harm(memory, use, kind, text):
    host, chip = queue_ends(memory, QueueShape(4, 64, 64))
    with pytest.raises(kind, match=text):
        use(host, chip)
    assert host.state == ChannelState.LIVE and host.try_push(b"fine")


def test_nothing_follows_stop(memory):
    host, chip = queue_ends(memory, QueueShape(4, 64, 64))
    host.stop(timeout=1)
    with pytest.raises(ChannelError, match="nothing can be sent after STOP"):
        host.try_push(b"x")
    message = chip.try_pop()
    assert message is not None and message.opcode == Opcode.STOP


def test_messages_given_back_out_of_order_poison(memory):
    host, chip = queue_ends(memory, QueueShape(4, 64, 64))
    host.try_push(b"a")
    host.try_push(b"b")
    first, second = chip.try_pop(), chip.try_pop()
    with pytest.raises(ChannelPoisonedError, match="message 1 is given back, the oldest one held is 0"):
        chip.give_back(second)
    for use in (lambda: host.try_push(b"c"), lambda: chip.give_back(first), lambda: host.try_pop()):
        with pytest.raises(ChannelPoisonedError):
            use()
    assert host.state == ChannelState.POISONED


@pytest.mark.parametrize(("word", "value"), [(0, 7), (1, 9), (1, 2), (2, 60), (3, 1 << 40)])
def test_a_descriptor_that_does_not_fit_poisons(memory, word, value):
    """Sequence number, opcode (STOP comes from the host only), place and size."""
    host, chip = queue_ends(memory, QueueShape(2, 64, 64))
    chip.try_push(b"answer")
    chip._memory.payload(2 * 32, 32).view(np.uint64)[word] = value
    with pytest.raises(ChannelPoisonedError, match="descriptor 0 is inconsistent"):
        host.try_pop()


def test_counters_that_do_not_fit_poison(memory):
    host, chip = queue_ends(memory, QueueShape(2, 64, 64))
    host._region.counter(OUT_HEAD).notify(3)
    with pytest.raises(ChannelPoisonedError, match="3 messages are given back, 0 were sent"):
        chip.try_push(b"x")


def test_a_descriptor_is_a_value():
    words = block_layout(128, 3, 64, 64).scalars()
    assert Descriptor.from_scalars(words).scalars() == words
