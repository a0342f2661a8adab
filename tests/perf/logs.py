"""Builds marker logs for tests; all numbers are invented."""

from __future__ import annotations

from collections.abc import Sequence

RUN = "chip.run"
WALL = f"{RUN}.runner_run.device_wall"


def record(
    name: str, ts: int, dur: int, *, pid: int = 77, inv: int = 1, hid: str = "ab12", depth: int = 0, attrs: str = "",
    tid: int | None = None, written: int | None = None, version: int = 1,
) -> str:  # fmt: skip
    """One record as the emitter writes it: a blank after ``dur`` even without attributes."""
    return (
        f"[mono_ns={ts + dur + 700 if written is None else written}][T0x7f00][TIMING] emit_host_span: "
        f"[STRACE] v={version} pid={pid} tid={tid or pid} inv={inv} hid={hid} depth={depth} "
        f"name={name} ts={ts} dur={dur} {attrs}\n"
    )


def launch(inv: int, start: int, device_ns: int, *, pid: int = 77, hid: str = "ab12", host_ns: int = 90_000) -> str:
    """Root, ``runner_run``, wall, ``orch`` and ``sched`` of one launch in scope-exit order."""
    end = start + device_ns + host_ns + 10_000
    own = {"pid": pid, "inv": inv, "hid": hid}
    return (
        record(f"{RUN}.runner_run", start + 100, device_ns + host_ns, depth=1, **own)
        + record(WALL, 0, device_ns, depth=2, attrs="clk=dev", written=end, **own)
        + record(f"{WALL}.orch", 3, device_ns // 3, depth=3, attrs="clk=dev", written=end, **own)
        + record(f"{WALL}.sched", 2, device_ns // 2, depth=3, attrs="clk=dev", written=end, **own)
        + record(RUN, start, device_ns + host_ns, **own)
    )


def single_chip(walls_ns: Sequence[int], *, pid: int = 77, first_inv: int = 1, hid: str = "ab12") -> list[str]:
    """One launch per wall, one after the other."""
    start, out = 10_000_000, []
    for inv, wall in enumerate(walls_ns, first_inv):
        out.append(launch(inv, start, wall, pid=pid, hid=hid))
        start += wall + 5_000_000
    return out


def ranks(launches: int, *, order: Sequence[str] = ("aaaa", "bbbb"), pids: Sequence[int] = (501, 502)) -> list[str]:
    """Every rank dispatches ``order`` in every launch; walls differ by rank, launch and slot."""
    out = []
    for rank, pid in enumerate(pids):
        inv, start = 0, 1_000_000_000 + 1_000 * rank
        for k in range(launches):
            for slot, hid in enumerate(order):
                inv += 1
                wall = 1_000_000 * (slot + 1) + 10_000 * k + 100_000 * rank
                out.append(launch(inv, start, wall, pid=pid, hid=hid))
                start += wall + 700_000
    return out


def vector_l2() -> str:
    """The log of ``profiling.md`` 9.1."""
    out = ""
    rows = [
        (2, f"{RUN}.bind.args", 4000, (140000, 101500, 104500)),
        (1, f"{RUN}.bind", 2000, (151000, 120000, 124000)),
        (1, f"{RUN}.runner_run", 160000, (760000, 655000, 649000)),
        (1, f"{RUN}.validate", 900000, (30000, 24000, 26000)),
        (2, WALL, 0, (700000, 600000, 604000)),
        (3, f"{WALL}.graph_build", 0, (690000, 590500, 594000)),
        (3, f"{WALL}.orch", 90000, (210000, 180000, 182000)),
        (3, f"{WALL}.sched", 88000, (590000, 490250, 494750)),
        (0, RUN, 0, (1010000, 840000, 846000)),
    ]
    for inv in (1, 2, 3):
        start = 50_000_000 * inv
        for depth, name, offset, durations in rows:
            device = name.startswith(WALL)
            identity = f"run_id=0 dispatch_id=0 slot_id=0 generation=1 run_epoch={inv}"
            attrs = "clk=dev" if device else identity if depth == 0 else ""
            out += record(
                name, offset if device else start + offset, durations[inv - 1], pid=2207, inv=inv, hid="3c9e41d07f",
                depth=depth, attrs=attrs, written=start + 2_000_000,
            )  # fmt: skip
    return out


def vector_l3(*, swapped_launch: int | None = None) -> list[str]:
    """The log of ``profiling.md`` 9.2, one text per launch, warm-up first."""
    texts, inv = [], {711: 0, 712: 0}
    for k in range(3):
        rows = [(711, "aa01", 0, 40 + k), (711, "bb02", 200_000, 61 + k), (712, "cc03", 7_000, 57 + k)]
        if k == swapped_launch:
            rows[0], rows[1] = (711, "bb02", 0, 61 + k), (711, "aa01", 200_000, 40 + k)
        text = ""
        for pid, hid, offset, wall_us in rows:
            inv[pid] += 1
            start, wall = k * 1_000_000 + offset, wall_us * 1000
            own = {"pid": pid, "inv": inv[pid], "hid": hid, "written": start + 1_000_000}
            text += record(f"{RUN}.runner_run", start + 100, wall + 90_000, depth=1, **own)
            text += record(WALL, 0, wall, depth=2, attrs="clk=dev", **own)
            text += record(f"{WALL}.orch", 3, wall // 3, depth=3, attrs="clk=dev", **own)
            text += record(f"{WALL}.sched", 2, wall // 2, depth=3, attrs="clk=dev", **own)
            text += record(RUN, start, wall + 90_000, **own)
        texts.append(text)
    return texts
