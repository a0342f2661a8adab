"""Device cycles to ns, and to the host clock where anchors were captured (``profiling.md`` 5.2.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

METHOD = "nominal_frequency_offset_interp_v1"
PRE, POST = "pre_host_orchestration", "post_device_execution"
UPTIME_UNCERTAINTY_NS = 1000


@dataclass(frozen=True)
class Anchor:
    """The best sample of one position: a device time and the host time in the middle of its round trip."""

    cycles: int
    host_ns: int
    uncertainty_ns: int
    sample_idx: int


@dataclass(frozen=True)
class Alignment:
    """Maps device cycles and host ns onto the trace's axis (ns from its zero)."""

    frequency_hz: int
    zero_cycles: int
    host_origin_ns: int = 0
    seam_ns: int = 0
    start: Anchor | None = None
    end: Anchor | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def device_ns(self, cycles: int) -> int:
        """ns on the trace's axis; 0 for a timestamp that was never taken."""
        if cycles <= 0:
            return 0
        if self.start and self.end:
            return _host_time(self.start, self.end, cycles, self.frequency_hz) - self.host_origin_ns
        return self.seam_ns + _truncated((cycles - self.zero_cycles) * 10**9, self.frequency_hz)

    def host_ns(self, host_ns: int) -> int:
        """ns on the trace's axis."""
        return host_ns - self.host_origin_ns


def _truncated(numerator: int, denominator: int) -> int:
    quotient = abs(numerator) // abs(denominator)
    return quotient if (numerator < 0) == (denominator < 0) else -quotient


def _host_time(start: Anchor, end: Anchor, cycles: int, frequency_hz: int) -> int:
    """Nominal frequency from the first anchor, its error at the second spread evenly."""
    passed, span = cycles - start.cycles, end.cycles - start.cycles
    nominal_end = start.host_ns + _truncated(span * 10**9, frequency_hz)
    drift = _truncated((end.host_ns - nominal_end) * passed, span)
    return start.host_ns + _truncated(passed * 10**9, frequency_hz) + drift


def align(raw: Mapping[str, Any], cycles: Sequence[int], frequency_hz: int, *, host: bool) -> Alignment:
    """Alignment of a swimlane document.

    Device-built graphs start at their smallest timestamp. Host-built ones share the host's axis when two valid anchors
    enclose all device timestamps; otherwise device time follows the last host record, order known and gap unknown.
    """
    zero = min(cycles, default=0)
    if not host:
        return Alignment(frequency_hz, zero)
    metadata = raw["metadata"]
    origin = metadata.get("host_orchestration_origin_ns", 0)
    found = _anchors(metadata, cycles, frequency_hz)
    common = {"host_capture": metadata.get("host_capture"), "relation": metadata.get("timeline_relation")}
    common |= _completeness(raw, metadata)
    if isinstance(found, str):
        seam = max((end - origin for end in _host_ends(raw)), default=0)
        clock: dict[str, Any] = {"status": "unaligned", "method": METHOD, "reason": found}
        described = {"layout": "causal_composite", **common, "clock_alignment": clock, "cross_domain_gap_unknown": True}
        described |= {"logical_seam_us": seam / 1000, "cross_domain_latency_available": False}
        return Alignment(frequency_hz, zero, origin, seam, metadata=described)
    start, end = found
    quantum = metadata.get("host_timestamp_quantization_ns", 0)
    extra = UPTIME_UNCERTAINTY_NS if _raw_unit(metadata) == "device_uptime_us" else 0
    uncertainty = max(start.uncertainty_ns, end.uncertainty_ns) + extra
    clock = {
        "status": "aligned",
        "method": METHOD,
        "anchor_uncertainty_ns": uncertainty,
        "host_timestamp_quantization_ns": quantum,
        "max_uncertainty_ns": uncertainty + quantum,
        "selected_sample_idx": {PRE: start.sample_idx, POST: end.sample_idx},
    }
    complete = common["trace_status"] == "complete"
    described = {"layout": "clock_aligned", **common, "clock_alignment": clock}
    described["cross_domain_latency_available"] = complete
    return Alignment(frequency_hz, zero, origin, 0, start, end, described)


def _completeness(raw: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    capture = metadata.get("host_capture") or {}
    complete = capture.get("status") == "complete"
    entries: dict[str, Any] = {"trace_status": "complete" if complete else "partial", "host_records_complete": complete}
    if not raw.get("host_orchestrator_phases"):
        entries["host_records_missing"] = True
    return entries


def _host_ends(raw: Mapping[str, Any]) -> list[int]:
    ends = [s["end_host_ns"] for thread in raw.get("host_orchestrator_phases", ()) for s in thread]
    return ends + [u["end_host_ns"] for u in raw.get("host_device_uploads", ())]


def _raw_unit(metadata: Mapping[str, Any]) -> object:
    return metadata.get("clock_anchors", {}).get("raw_device_timestamp_unit")


def _anchors(metadata: Mapping[str, Any], cycles: Sequence[int], frequency_hz: int) -> tuple[Anchor, Anchor] | str:
    """The two anchors, or the reason why there are none."""
    anchors = metadata.get("clock_anchors")
    if not anchors:
        return "missing_clock_anchors"
    if not anchors.get("samples"):
        return "missing_clock_anchor_samples"
    if anchors.get("device_timestamp_unit") != "syscnt_cycles":
        return "unsupported_device_timestamp_unit"
    if _raw_unit(metadata) not in ("syscnt_cycles", "device_uptime_us"):
        return "unsupported_raw_device_timestamp_unit"
    quantum = metadata.get("host_timestamp_quantization_ns", 0)
    if not isinstance(quantum, int) or quantum < 0:
        return "invalid_host_timestamp_quantization"
    start, end = (_best(anchors["samples"], position) for position in (PRE, POST))
    if start is None:
        return "no_valid_pre_host_orchestration_anchor"
    if end is None:
        return "no_valid_post_device_execution_anchor"
    if end.host_ns <= start.host_ns:
        return "host_anchor_order_invalid"
    if end.cycles <= start.cycles:
        return "device_anchor_order_invalid"
    if cycles and not (start.cycles <= min(cycles) and max(cycles) <= end.cycles):
        return "device_timestamps_outside_anchor_coverage"
    return start, end


def _best(samples: Sequence[Mapping[str, Any]], position: str) -> Anchor | None:
    """The sample with the smallest round trip, then the smallest index."""
    valid = [
        s
        for s in samples
        if s.get("position") == position and not s.get("error") and isinstance(s.get("device_cycles"), int)
    ]
    if not valid:
        return None
    best = min(valid, key=lambda s: (s["rtt_ns"], s["sample_idx"]))
    middle = best["host_before_ns"] + best["rtt_ns"] // 2
    uncertainty = best.get("uncertainty_ns", (best["rtt_ns"] + 1) // 2)
    return Anchor(best["device_cycles"], middle, uncertainty, best["sample_idx"])
