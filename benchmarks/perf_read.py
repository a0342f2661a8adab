"""Reading a large marker log: throughput, memory, statistics of many launches.

The log is generated here. Sizes can be raised: ``python -m benchmarks.perf_read 1000`` reads 1 GB.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

RUN = "chip.run"
WALL = f"{RUN}.runner_run.device_wall"
PHASES = (
    "preamble",
    "so_load",
    "graph_build",
    "config_validate",
    "arena_wire",
    "sm_reset",
    "post_orch",
    "orch",
    "sched",
)
SPANS_PER_LAUNCH = 20
DEFAULT_MB = 128


def launch_text(inv: int) -> str:
    """The 20 records of one onboard launch, as the hardware runtime writes them."""
    start = 969_507_270_210 + inv * 5_000_000
    host = [(2, f"{RUN}.bind.args"), (2, f"{RUN}.bind.prebuilt"), (1, f"{RUN}.bind"), (1, f"{RUN}.runner_run")]
    device = [
        (2, WALL),
        *((3, f"{WALL}.{phase}") for phase in PHASES),
        *((3, f"{WALL}.task_slot_{n}") for n in range(3)),
    ]
    rows = [(depth, name, start + 1_000 * depth, "") for depth, name in (*host, (1, f"{RUN}.validate"))]
    rows += [(depth, name, 1_000 * depth, "clk=dev") for depth, name in device]
    rows.append((1, f"{RUN}.claim_release", start + 900, ""))
    rows.append((0, RUN, start, f"run_id=0 dispatch_id=0 slot_id=0 generation=1 run_epoch={inv}"))
    head = (
        f"[mono_ns={start + 3_000_000}][T0x7fa8e61f4b80][TIMING] emit_host_span: [STRACE] v=1 pid=582 tid=582 inv={inv}"
    )
    longest = 2_000_000 + inv % 977
    return "".join(
        f"{head} hid=3c9e41d07f depth={depth} name={name} ts={ts} dur={longest - 100_000 * depth} {attrs}\n"
        for depth, name, ts, attrs in rows
    )


def write_log(path: Path, megabytes: int) -> int:
    """Write launches until the file has the wanted size; their number is returned."""
    written = launches = 0
    with path.open("w") as file:
        while written < megabytes * 1_000_000:
            launches += 1
            written += file.write(launch_text(launches))
    return launches


def read_once(path: Path) -> dict[str, float]:
    """Figures of one reading in a process of its own, so that the peak memory is its own too."""
    done = subprocess.run([sys.executable, __file__, "--read", str(path)], check=True, capture_output=True, text=True)
    return dict(zip(("seconds", "cpu_seconds", "spans", "peak_bytes"), map(float, done.stdout.split())))


def _read(path: str) -> None:
    from pypto.perf import read_strace

    read_strace("[STRACE] v=1 pid=1\n")
    before = _peak_kib()
    begin, cpu_begin = time.perf_counter(), time.process_time()
    table = read_strace(Path(path))
    seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu_begin
    if table.heads != table.parsed:
        raise SystemExit(f"{table.heads} heads but {table.parsed} spans: {table.warnings}")
    print(seconds, cpu_seconds, table.parsed, (_peak_kib() - before) * 1024)


def _peak_kib() -> int:
    """Peak memory of this program; ``ru_maxrss`` would count what the parent had before it started this one."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1])


def statistics_seconds(launches: int = 10_000) -> dict[str, float]:
    """Seconds to build statistics of that many launches and to format their mean tree."""
    from pypto.perf import BenchmarkStats

    text = "".join(map(launch_text, range(1, launches + 1)))
    begin = time.perf_counter()
    stats = BenchmarkStats.from_strace(text, rounds=launches - 10, warmup=10)
    built = time.perf_counter()
    stats.format_mean_tree(spread="both")
    return {"build": built - begin, "mean_tree": time.perf_counter() - built}


def measure(megabytes: int = DEFAULT_MB) -> list[dict[str, Any]]:
    """Rows of name, value and unit; the best of three readings counts, memory is above the idle interpreter's."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.log")
        write_log(path, megabytes)
        size = path.stat().st_size
        readings = [read_once(path) for _ in range(3)]
    best = min(readings, key=lambda reading: reading["seconds"])
    times = statistics_seconds()
    return [
        {"name": "read_strace", "value": size / 1e6 / best["seconds"], "unit": "MB/s"},
        {"name": "read_strace, processor time only", "value": size / 1e6 / best["cpu_seconds"], "unit": "MB/s"},
        {"name": "read_strace, spans", "value": best["spans"] / 1e6 / best["seconds"], "unit": "million spans/s"},
        {"name": f"read_strace of {size / 1e6:.0f} MB", "value": best["seconds"], "unit": "s"},
        {"name": "read_strace, peak memory", "value": best["peak_bytes"] / size, "unit": "of the file's size"},
        {"name": "statistics of 10,000 launches from text", "value": times["build"], "unit": "s"},
        {"name": f"mean tree, 10,000 launches of {SPANS_PER_LAUNCH} spans", "value": times["mean_tree"], "unit": "s"},
    ]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        _read(sys.argv[2])
    else:
        for row in measure(int(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_MB):
            print(f"{row['name']:<48}{row['value']:>12.3f} {row['unit']}")
