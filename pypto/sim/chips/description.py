"""The immutable description of a chip: every figure with its unit, source and confidence.

Groups of constants are frozen dataclasses of :class:`Constant`; a :class:`Chip` is a tree of them. The tree is plain
data: it can be compared, hashed, pickled and sent to another process.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from .limits import legal

Confidence = Literal["M", "V", "F", "D", "G"]
"""M measured, V vendor, F fitted by the source, D derived from measurements, G guess (spec hardware, head)."""


@dataclass(frozen=True)
class Constant:
    """One figure. ``source`` names the publication; it is never empty."""

    value: float
    unit: str
    source: str
    confidence: Confidence

    def __post_init__(self) -> None:
        if not self.unit or not self.source:
            raise ValueError(f"a chip constant needs a unit and a source: {self}")


class ConstantRow(NamedTuple):
    """One row of :meth:`Chip.constants`; ``name`` is the dotted path that :meth:`Chip.replace` takes."""

    name: str
    value: float
    unit: str
    source: str
    confidence: Confidence


@dataclass(frozen=True)
class Cores:
    """How many cores there are and how fast they tick."""

    clusters: Constant
    vectors_per_cluster: Constant
    clock_mhz: Constant
    counter_mhz: Constant
    scheduler_threads: Constant
    pipe_queue_depth: Constant


@dataclass(frozen=True)
class Space:
    """One on-chip memory of a core: bytes a kernel may use and the alignment of an allocation."""

    capacity: Constant
    alignment: Constant

    @property
    def capacity_bytes(self) -> int:
        return int(self.capacity.value)

    @property
    def alignment_bytes(self) -> int:
        return int(self.alignment.value)


@dataclass(frozen=True)
class Memory:
    """Global memory and its cache, shared by every core of the die."""

    hbm_gbps: Constant  # sustained read of all cores
    hbm_nd2nz_gbps: Constant  # the same, converting to fractals on the fly
    hbm_write_back_gbps: Constant  # dirty lines leaving the cache
    l2_bytes: Constant
    l2_line_bytes: Constant
    l2_vector_gbps: Constant  # hits, all vector cores
    l2_cube_gbps: Constant  # hits, all cube cores
    same_line_vector: Constant  # slow-down when all cores walk the same addresses together
    same_line_cube: Constant
    same_line_row: Constant  # rows of so many bytes do not slow one another down any more
    same_line_lasts: Constant  # transfers after which a read no longer meets the lines of an earlier one


@dataclass(frozen=True)
class Path:
    """A path between global memory and a core: ``t = latency + max(rows * row, bytes / rate)`` (spec hardware 3.3)."""

    hit_rate: Constant  # bytes per cycle from L2
    miss_rate: Constant  # bytes per cycle from HBM
    row: Constant  # cycles per row
    issue: Constant  # cycles the pipe is taken by one instruction, at least
    fixed: Constant  # cycles the pipe is taken in addition to the transfer
    latency: Constant  # cycles until the data is visible; overlaps the next transfers
    split_lines: Constant  # share of the extra lines that rows across line borders cost
    odd_row: Constant  # cycles per row that does not begin at a 32-byte block, at least


@dataclass(frozen=True)
class Mte1:
    """L1 to L0 and to the small tables: ``t = latency + bytes / rate`` (spec hardware 4.1)."""

    left_rate: Constant
    right_rate: Constant
    latency: Constant
    hidden: Constant  # part of the latency that the next load overlaps
    table_rate: Constant
    table_latency: Constant
    scale_rate: Constant
    slows_loads: Constant  # time of a load from L2 while L1 is read without a pause, against one beside nothing


@dataclass(frozen=True)
class Fixpipe:
    """The way out of L0C (spec hardware 4.2)."""

    on_chip_elements: Constant  # elements per cycle to L1 or to one UB
    split_elements: Constant  # elements per cycle to both UBs
    latency: Constant
    gm_base: Constant
    gm_row: Constant  # least cycles per row
    gm_rate: Constant  # bytes per cycle
    gm_odd: Constant  # cycles per row and odd factor of its blocks, less one
    unit_flag_bytes: Constant  # accumulator granule handed from the cube while it still runs
    unit_flag: Constant  # 1: kernels drain granule by granule, 0: when the last multiply is over


@dataclass(frozen=True)
class Cube:
    """Matrix unit: cycles = head + steps, a step covers 16 x 16 x kf (spec hardware 5)."""

    fp16_macs: Constant
    int8_macs: Constant
    int4_macs: Constant
    fp8_macs: Constant
    fp4_macs: Constant
    fp32_macs: Constant
    back_to_back: Constant
    start: Constant
    drain: Constant


@dataclass(frozen=True)
class RepeatOp:
    """a2a3 vector instruction: cycles = head + slope * repeats + tail (spec hardware 6.1)."""

    head: Constant
    slope: Constant
    tail: Constant


@dataclass(frozen=True)
class RegisterOp:
    """a5 register instruction (spec hardware 7.1), for 32-bit and 16-bit elements."""

    latency: Constant
    latency_half: Constant
    interval: Constant
    interval_half: Constant
    forward: Constant
    forward_half: Constant
    ports: Constant


@dataclass(frozen=True)
class OpTable:
    """Instruction timings by name."""

    rows: tuple[tuple[str, Any], ...]

    def __getitem__(self, name: str) -> Any:
        for key, row in self.rows:
            if key == name:
                return row
        raise KeyError(name)

    def __contains__(self, name: str) -> bool:
        return any(key == name for key, _ in self.rows)

    def names(self) -> list[str]:
        return [key for key, _ in self.rows]


@dataclass(frozen=True)
class RepeatVector:
    """a2a3 vector unit: every instruction goes through UB (spec hardware 6)."""

    repeat_bytes: Constant
    max_repeats: Constant
    bank_groups: Constant
    clash: Constant  # extra cycles per repeat when two sources share a bank group
    write_clash: Constant  # extra cycles per repeat when the result hits a bank being read
    ragged: Constant  # second pass over masked row tails
    chained: Constant  # head of an instruction that follows another one of the same tile operation
    lone_row: Constant  # cycles per repeat to copy the only row of a column reduction
    lone_head: Constant  # the same copy beside its repeats
    masked: Constant  # a reduction over part of a repeat
    fold: Constant  # each fold instruction of a row reduction
    fold_hidden: Constant  # part of head and tail of a column reduction's step that the next step overlaps
    fold_least: Constant  # least cycles of such a step, beyond its repeats
    fold_slope: Constant  # cycles per repeat of such a step
    row_issue: Constant  # cycles between instructions issued row by row
    row_loop: Constant  # scalar multiply and barrier of a loop over rows
    barrier: Constant
    ops: OpTable


@dataclass(frozen=True)
class RegisterVector:
    """a5 vector unit: vector functions over registers (spec hardware 7)."""

    register_bytes: Constant
    startup: Constant
    drain: Constant
    load: Constant
    load_forward: Constant  # a load whose result goes straight to arithmetic
    store: Constant
    barrier: Constant  # from a store to UB to a load of the same bytes
    predicate: Constant  # an instruction on masks
    loop_start: Constant  # from one loop to the dispatch of the next
    overlap: Constant  # stages counted twice when the parts are added up
    dispatch: Constant  # instructions per cycle
    accesses: Constant  # of UB per cycle and bank group: two reads, or a read and a write
    restart: Constant  # from the last step of a row to the first of the next
    widening_loop: Constant  # bytes to 32 bits: cycles per register in a row of several
    narrow_lanes: Constant  # to a quarter: elements per step of a loop over rows
    gather: Constant
    scatter: Constant
    ops: OpTable


@dataclass(frozen=True)
class Scalar:
    """Scalar unit and the issue of instructions to the other pipes (spec hardware 8)."""

    instruction: Constant
    tile_issue: Constant
    gather_row: Constant  # a row copied by its own instruction, address computed by scalar code
    element: Constant  # read-modify-write of one UB element by scalar code
    gm_access: Constant  # scalar load or store that goes to global memory


@dataclass(frozen=True)
class Sync:
    """Flags, barriers and hand-shakes (spec hardware 9)."""

    flag: Constant
    pipe_to_pipe: Constant
    cross_core: Constant
    soft_barrier_ns: Constant


@dataclass(frozen=True)
class Runtime:
    """The task runtime on the AICPU, in nanoseconds (spec hardware 12, distributed 6)."""

    preamble: Constant
    config_validate: Constant
    arena_wire: Constant
    sm_reset: Constant
    post_orch: Constant
    submit: Constant
    submit_lookup: Constant
    submit_insert: Constant
    submit_edge: Constant
    submit_scalar: Constant
    alloc: Constant
    scope_end: Constant
    scope_end_task: Constant
    orchestrator_instruction: Constant
    poll: Constant
    idle_loop: Constant
    complete: Constant
    complete_first: Constant  # its first consumer
    complete_consumer: Constant  # each further one
    dispatch: Constant  # each block claimed
    dispatch_store: Constant
    doorbell: Constant
    core_setup: Constant
    core_setup_staged: Constant  # gated block, released by its doorbell
    core_pickup: Constant  # next task already in the second slot
    core_cold_min: Constant
    core_cold_max: Constant
    core_cold_median: Constant
    finish_visible: Constant
    dummy: Constant
    sync_start: Constant
    ring_window: Constant  # tasks
    ring_heap: Constant  # bytes
    rings: Constant


@dataclass(frozen=True)
class Host:
    """Host link and launch path, in nanoseconds and GB/s (spec hardware 13)."""

    run: Constant
    run_subtask: Constant
    mailbox: Constant
    device_malloc: Constant
    upload_gbps: Constant
    download_gbps: Constant
    launch: Constant
    drain: Constant


@dataclass(frozen=True)
class Link:
    """Chip to chip (spec hardware 13b)."""

    gbps: Constant
    latency_ns: Constant
    staged_gbps: Constant  # one vector core through UB
    staged_ns: Constant
    engine_gbps: Constant  # SDMA
    engine_ns: Constant
    notify_ns: Constant
    idle_gbps: Constant  # a chip's traffic to all peers, its cubes idle
    busy_gbps: Constant  # the same while they multiply
    cube_slowdown: Constant  # of the cube cores while all vector cores move data between chips
    free_cores: Constant  # vector cores that may do so before the cubes notice


@dataclass(frozen=True)
class Spaces:
    """The on-chip memory spaces of a core."""

    vec: Space
    mat: Space
    left: Space
    right: Space
    acc: Space
    bias: Space
    fixpipe: Space
    leftscale: Space | None = None
    rightscale: Space | None = None


@dataclass(frozen=True, repr=False)
class Chip:
    """One die as the simulator knows it; look one up with :func:`pypto.sim.chip`."""

    name: str
    generation: Literal["a2a3", "a5"]
    cores: Cores
    spaces: Spaces
    memory: Memory
    gm_ub: Path
    gm_l1: Path
    gm_l1_nd2nz: Path
    ub_gm: Path
    l0c_gm: Path
    mte1: Mte1
    fixpipe: Fixpipe
    cube: Cube
    vector: RepeatVector | RegisterVector
    scalar: Scalar
    sync: Sync
    runtime: Runtime
    host: Host
    link: Link

    def __repr__(self) -> str:
        return f"Chip({self.name!r}: {self.clusters} clusters at {self.clock_mhz:g} MHz; .constants() has its figures)"

    @property
    def clusters(self) -> int:
        return int(self.cores.clusters.value)

    @property
    def vector_cores(self) -> int:
        return self.clusters * int(self.cores.vectors_per_cluster.value)

    @property
    def clock_mhz(self) -> float:
        return self.cores.clock_mhz.value

    def space(self, name: str) -> Space:
        """Capacity and alignment of memory space ``name`` (text names of the kernel text, spec language 7.1).

        ``KeyError`` lists the spaces of this chip.
        """
        found = getattr(self.spaces, name, None)
        if not isinstance(found, Space):
            known = [f.name for f in dataclasses.fields(self.spaces) if getattr(self.spaces, f.name) is not None]
            raise KeyError(f"{self.name} has no memory space {name!r}; it has {', '.join(known)}")
        return found

    def constants(self) -> list[ConstantRow]:
        """Every figure of the chip, one row each, in the order of the description."""
        return [ConstantRow(path, c.value, c.unit, c.source, c.confidence) for path, c in _walk(self, "")]

    def replace(self, **values: float) -> Chip:
        """A chip with some figures changed.

        Keys are the last part of a constant's name when only one constant has it (``clusters``, ``clock_mhz``), or
        the whole dotted name (``**{"gm_ub.hit_rate": 80}``). ``KeyError`` names the candidates, ``ValueError`` what a
        figure may be: counts are whole, rates above zero, times not below (:func:`pypto.sim.chips.limits.legal`).
        """
        known = dict(_walk(self, ""))
        changed: Any = self
        for key, value in values.items():
            path = _resolve(key, known)
            legal(path, known[path].unit, value)
            new = dataclasses.replace(known[path], value=value, source=f"set by the caller, was: {known[path].source}")
            changed = _with(changed, path.split("."), new)
        return dataclasses.replace(changed, name=_renamed(self.name, values))


def _renamed(name: str, values: dict[str, float]) -> str:
    return name + "".join(f" {key}={value:g}" for key, value in values.items())


def _walk(node: Any, prefix: str) -> Iterator[tuple[str, Constant]]:
    if isinstance(node, Constant):
        yield prefix, node
    elif isinstance(node, OpTable):
        for name, row in node.rows:
            yield from _walk(row, f"{prefix}.{name}")
    elif dataclasses.is_dataclass(node):
        for f in dataclasses.fields(node):
            yield from _walk(getattr(node, f.name), f"{prefix}.{f.name}" if prefix else f.name)


def _resolve(key: str, known: dict[str, Constant]) -> str:
    if key in known:
        return key
    matches = [path for path in known if path.rsplit(".", 1)[-1] == key]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise KeyError(f"{key!r} is ambiguous; write one of {', '.join(matches[:6])}")
    import difflib

    leaves = sorted({path.rsplit(".", 1)[-1] for path in known} | set(known))
    near = difflib.get_close_matches(key, leaves, 3)
    raise KeyError(
        f"no chip constant {key!r}; " + (f"near: {', '.join(near)}" if near else "Chip.constants() lists them")
    )


def _with(node: Any, path: list[str], new: Constant) -> Any:
    if not path:
        return new
    if isinstance(node, OpTable):
        return OpTable(tuple((k, _with(v, path[1:], new) if k == path[0] else v) for k, v in node.rows))
    return dataclasses.replace(node, **{path[0]: _with(getattr(node, path[0]), path[1:], new)})
