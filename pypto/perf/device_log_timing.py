"""``python -m pypto.perf.device_log_timing LOG``: timing of the older device log lines (``profiling.md`` 4.2)."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from pypto.perf.device_log import DeviceLogError, device_log_root, device_report, find_logs, read_device_log, read_lines
from pypto.perf.pipe import survives_closed_pipe


@survives_closed_pipe
def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0, or 1 when no log can be read."""
    parser = argparse.ArgumentParser(prog="device_log_timing", description="Timing of device log lines.")
    parser.add_argument("log", nargs="?", help="device log: file, directory or pattern")
    parser.add_argument("--device-log", metavar="PATH", help="the same as an option")
    parser.add_argument("-d", "--device-id", type=int, help="newest log of this device under the driver's log root")
    options = parser.parse_args(argv)
    place = options.device_log or options.log
    if place is None and options.device_id is None:
        parser.error("a log, --device-log or --device-id is required")
    if os.environ.get("ASCEND_SLOG_PRINT_TO_STDOUT") == "1":
        print("error: ASCEND_SLOG_PRINT_TO_STDOUT=1 keeps device logs out of files; unset it", file=sys.stderr)
        return 1
    try:
        paths = find_logs(place or str(device_log_root() / f"device-{options.device_id}"))
    except DeviceLogError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(device_report(read_device_log(read_lines(paths)), ", ".join(map(str, paths))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
