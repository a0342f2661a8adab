"""The task runtime on the AICPU and the host that starts it: one set of figures for both generations.

No figures of its own are published for the newer one (hardware notes 12.3). Section numbers are those of the hardware
notes.
"""

from __future__ import annotations

from .description import Constant, Host, Runtime

C = Constant

_SIMPLER = "simpler"
_MODEL = "fit to 0.874 us per task over 16704 tasks (distributed notes 6.11)"

RUNTIME = Runtime(
    preamble=C(9000, "ns", f"{_SIMPLER}, preamble now (12.3)", "M"),
    config_validate=C(500, "ns", "sequential check of a few hundred bytes by one AICPU thread", "G"),
    arena_wire=C(3000, "ns", "pointers of four rings written by one AICPU thread", "G"),
    sm_reset=C(2500, "ns", f"{_SIMPLER}, memset of 256 KB (R2y)", "M"),
    post_orch=C(2000, "ns", "tear-down after the last scheduler, exit of four threads", "G"),
    submit=C(260, "ns", _MODEL, "F"),
    submit_lookup=C(100, "ns", _MODEL, "F"),
    submit_insert=C(40, "ns", _MODEL, "F"),
    submit_edge=C(30, "ns", _MODEL, "F"),
    submit_scalar=C(10, "ns", "argument copy, 15 % of a submit (12.2)", "D"),
    alloc=C(42, "ns", f"{_SIMPLER}, heap allocation 701.5 us over 16704 tasks (R1m)", "M"),
    scope_end=C(10, "ns", "one call; the published share is per task", "G"),
    scope_end_task=C(22, "ns", f"{_SIMPLER}, 364 us of scope ends over 16704 tasks (distributed notes 6.9)", "M"),
    orchestrator_instruction=C(1, "ns", "AICPU core near 1 instruction per ns; clock not published", "G"),
    poll=C(100, "ns", f"{_SIMPLER}, load of a core register (12.1)", "M"),
    idle_loop=C(115, "ns", f"{_SIMPLER} (12.2)", "M"),
    complete=C(300, "ns", "resolve cost without consumers (distributed notes 6.11)", "F"),
    complete_first=C(200, "ns", f"{_SIMPLER}, 1-2 consumers resolved in 0.5 us (12.2; distributed notes 6.11)", "M"),
    complete_consumer=C(16, "ns", f"{_SIMPLER}, 1-2 consumers resolved in 0.5 us, 50 in 1.3 us (12.2)", "M"),
    dispatch=C(250, "ns", f"{_SIMPLER}, 24 cores of a thread claimed in 6 us (distributed notes 6.9)", "D"),
    dispatch_store=C(5, "ns", f"{_SIMPLER}, posted register stores in a burst (12.1)", "M"),
    doorbell=C(140, "ns", f"{_SIMPLER}, AICPU store until the core sees it (12.1)", "M"),
    core_setup=C(349, "ns", f"{_SIMPLER}, receive to start (12.2)", "M"),
    core_setup_staged=C(80, "ns", "pre-loaded payload (distributed notes 6.11)", "F"),
    core_pickup=C(400, "ns", f"{_SIMPLER}, pick-up of a pre-staged task without profiling, 0.3-0.4 us (12.2)", "M"),
    core_cold_min=C(360, "ns", f"{_SIMPLER}, first task on a cold core (12.2)", "M"),
    core_cold_max=C(5600, "ns", f"{_SIMPLER}, first task on a cold core (12.2)", "M"),
    core_cold_median=C(2120, "ns", f"{_SIMPLER}, 1.77 us above the steady 0.35 (R3h)", "M"),
    finish_visible=C(180, "ns", f"{_SIMPLER}, condition register, minimum; the poll adds the rest (12.1)", "M"),
    dummy=C(600, "ns", f"{_SIMPLER}, empty marker task (12.2)", "M"),
    sync_start=C(12000, "ns", f"{_SIMPLER}, drain before a synchronised start (12.3)", "M"),
    ring_window=C(16384, "tasks", f"{_SIMPLER} (distributed notes 6.2)", "V"),
    ring_heap=C(256 * 2**20, "bytes", f"{_SIMPLER} (distributed notes 6.2)", "V"),
    rings=C(4, "rings", f"{_SIMPLER} (distributed notes 6.2)", "V"),
)

HOST = Host(
    run=C(43300, "ns", f"{_SIMPLER}, fixed part of run() (13)", "M"),
    run_subtask=C(8080, "ns", f"{_SIMPLER}, per sub-task (13)", "M"),
    mailbox=C(3500, "ns", f"{_SIMPLER}, shared-memory round trip (13)", "M"),
    device_malloc=C(17000, "ns", f"{_SIMPLER}, allocation and small copy (13)", "M"),
    upload_gbps=C(3.85, "GB/s", f"{_SIMPLER}, pageable data of MB size (13)", "M"),
    download_gbps=C(3.85, "GB/s", "as upload; not published (13)", "G"),
    launch=C(150 + 50 + 1000, "ns", "cann-samples: core scheduler, hardware and software initialisation (11)", "V"),
    drain=C(500, "ns", "cann-samples, completion report (11)", "V"),
)
