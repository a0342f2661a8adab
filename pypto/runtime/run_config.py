"""Options of a compile and of its launches (spec runtime 8)."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from pypto.backend.platforms import DEFAULT_PLATFORM, BackendType, find_platform

if TYPE_CHECKING:
    from pypto.ir.pass_manager import OptimizationStrategy

RING_COUNT: Final = 4
INT32_MAX: Final = 2**31 - 1
SWIMLANE_MAX_LEVEL: Final = 4
DUMP_MAX_LEVEL: Final = 3

Checks = Literal["none", "cheap", "all"] | frozenset[str]
ChecksMode = Literal["raise", "collect"]
Poison = Literal["nan", "pattern", "zero"]


def swimlane_level(value: object) -> int:
    """Normalise ``enable_chip_swimlane``: ``True`` is level 4, ``False`` 0; only 0 to 4 are levels."""
    if value is True:
        return SWIMLANE_MAX_LEVEL
    if value is False:
        return 0
    if not isinstance(value, int):
        raise TypeError(f"enable_chip_swimlane must be an int or a bool, got {type(value).__name__} {value!r}")
    if not 0 <= value <= SWIMLANE_MAX_LEVEL:
        raise ValueError(f"enable_chip_swimlane must be a collection level in [0, {SWIMLANE_MAX_LEVEL}], got {value}")
    return value


def _is_power_of_two(value: int, least: int) -> bool:
    return value >= least and value & (value - 1) == 0


@dataclass(frozen=True)
class _RingRule:
    """What one ring size may be."""

    legal: Callable[[int], bool]
    wording: str


_RING_RULES: Final[dict[str, _RingRule]] = {
    "ring_task_window": _RingRule(lambda v: _is_power_of_two(v, 4), "be a power of 2 >= 4"),
    "ring_heap": _RingRule(lambda v: _is_power_of_two(v, 1024), "be a power of 2 >= 1024"),
    "ring_dep_pool": _RingRule(lambda v: 4 <= v <= INT32_MAX, "be in [4, INT32_MAX]"),
}


def ring_sizes(name: str, value: Any) -> Any:
    """Check one ring option: ``None``, one size for all rings, or four sizes (0 keeps a ring's default)."""
    rule = _RING_RULES[name]
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        if len(value) != RING_COUNT:
            raise ValueError(f"{name} must have exactly {RING_COUNT} entries, got {len(value)}: {list(value)}")
        for entry in value:
            if type(entry) is not int or (entry != 0 and not rule.legal(entry)):
                raise ValueError(f"{name} entries must {rule.wording} (or 0 for the default), got {entry!r}")
        return list(value)
    if type(value) is not int or not rule.legal(value):
        raise ValueError(f"{name} must {rule.wording}, got {value!r}")
    return value


def _one_of(name: str, value: object, legal: tuple[str, ...]) -> None:
    if value not in legal:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, legal))}, got {value!r}")


def _default_strategy() -> OptimizationStrategy:
    from pypto.ir.pass_manager import OptimizationStrategy

    return OptimizationStrategy.Default


@dataclass
class RunConfig:
    """Everything that may be chosen for a compile and its launches; pass it as ``config=``.

    ``platform`` and ``device_id`` bind a worker. ``rtol``, ``atol``, ``save_kernels`` and ``golden_data_dir`` serve
    test harnesses. ``strategy``, ``dump_passes``, ``save_kernels_dir``,
    ``codegen_only``, ``compile_profiling``, ``diagnostic_phase``, ``disabled_diagnostics``, ``distributed_config``,
    ``analyze_auto_scopes_for_deps``, ``memory_planner`` and ``dump_ptoas_passes`` reach the compiler. The rest is
    read at every launch:

    * ``enable_chip_swimlane`` (level 0 to 4), ``enable_dump_args``, ``enable_pmu``, ``enable_dep_gen``,
      ``enable_scope_stats``: diagnostics written to ``<build directory>/dfx_outputs``;
    * ``aicpu_thread_num``, ``ring_task_window`` (slots), ``ring_heap`` (bytes), ``ring_dep_pool`` (entries): sizing
      of the task runtime, one value or four per scope depth;
    * ``checks`` (``None``: ``"cheap"`` with a device clock, ``"none"`` without), ``checks_mode`` and ``poison``: which
      mistakes are looked for, whether they raise, what unwritten memory holds;
    * ``cold_start``: forget the chip's cache contents before the launch;
    * ``threads``: host threads that compute values (``None``: as many as useful); results do not depend on it;
    * ``jitter_seed``: must stay ``None``; the clock has no random part and a launch refuses a seed.
    """

    __test__: ClassVar[bool] = False

    platform: str = DEFAULT_PLATFORM
    device_id: int = 0
    rtol: float = 1e-5
    atol: float = 1e-5
    strategy: Any = field(default_factory=_default_strategy)
    backend_type: BackendType = BackendType.Ascend910B
    dump_passes: Any = False
    save_kernels: bool = False
    save_kernels_dir: str | None = None
    codegen_only: bool = False
    enable_chip_swimlane: int = 0
    enable_dump_args: int = 0
    enable_pmu: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False
    compile_profiling: bool = False
    diagnostic_phase: Any = None
    disabled_diagnostics: Any = None
    golden_data_dir: str | None = None
    aicpu_thread_num: int | None = None
    ring_task_window: int | list[int] | None = None
    ring_heap: int | list[int] | None = None
    ring_dep_pool: int | list[int] | None = None
    distributed_config: Any = None
    analyze_auto_scopes_for_deps: bool = False
    memory_planner: Any = None
    dump_ptoas_passes: bool = False
    checks: Checks | None = None
    checks_mode: ChecksMode = "raise"
    poison: Poison = "nan"
    cold_start: bool = False
    threads: int | None = None
    jitter_seed: int | None = None

    def __post_init__(self) -> None:
        self.backend_type = find_platform(self.platform).backend_type
        self.enable_chip_swimlane = swimlane_level(self.enable_chip_swimlane)
        for name in _RING_RULES:
            setattr(self, name, ring_sizes(name, getattr(self, name)))
        self._check_simulator_options()
        if self.any_dfx_enabled():
            self.save_kernels = True

    def _check_simulator_options(self) -> None:
        if isinstance(self.checks, (set, list, tuple)):
            self.checks = frozenset(self.checks)
        if self.checks is not None and not isinstance(self.checks, frozenset):
            _one_of("checks", self.checks, ("none", "cheap", "all"))
        _one_of("checks_mode", self.checks_mode, ("raise", "collect"))
        _one_of("poison", self.poison, ("nan", "pattern", "zero"))
        for name, least in (("threads", 1), ("jitter_seed", 0)):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < least):
                raise ValueError(f"{name} must be None or an int >= {least}, got {value!r}")

    def any_dfx_enabled(self) -> bool:
        """Whether a launch writes diagnostics."""
        return DfxOptions.from_run_config(self).any()

    def compile_options(self) -> dict[str, Any]:
        """The keyword arguments of ``ir.compile`` this configuration stands for; what is unset is left out."""
        options = {
            "platform": self.platform,
            "strategy": self.strategy,
            "dump_passes": self.dump_passes,
            "dump_ptoas_passes": self.dump_ptoas_passes,
            "profiling": self.compile_profiling,
            "diagnostic_phase": self.diagnostic_phase,
            "disabled_diagnostics": self.disabled_diagnostics,
            "analyze_auto_scopes_for_deps": self.analyze_auto_scopes_for_deps,
            "output_dir": self.save_kernels_dir,
            "distributed_config": self.distributed_config,
            "memory_planner": self.memory_planner,
        }
        return {name: value for name, value in options.items() if value is not None}

    @property
    def enable_l2_swimlane(self) -> int:
        """Former spelling of ``enable_chip_swimlane``."""
        return self.enable_chip_swimlane

    @enable_l2_swimlane.setter
    def enable_l2_swimlane(self, value: int) -> None:
        _warn_alias()
        self.enable_chip_swimlane = swimlane_level(value)


def _warn_alias() -> None:
    warnings.warn("enable_l2_swimlane is now called enable_chip_swimlane", DeprecationWarning, stacklevel=3)


def _accept_alias(init: Callable[..., None]) -> Callable[..., None]:
    """Let the constructor take the former spelling, which is not a field of the dataclass."""

    @functools.wraps(init)
    def accepting(self: RunConfig, *args: Any, **options: Any) -> None:
        if "enable_l2_swimlane" in options:
            _warn_alias()
            if "enable_chip_swimlane" in options:
                raise ValueError("pass only enable_chip_swimlane; enable_l2_swimlane is its former name")
            options["enable_chip_swimlane"] = options.pop("enable_l2_swimlane")
        init(self, *args, **options)

    return accepting


RunConfig.__init__ = _accept_alias(RunConfig.__init__)  # type: ignore[method-assign]


@dataclass(frozen=True)
class DfxOptions:
    """Which diagnostics one launch writes (spec runtime 13.1)."""

    enable_chip_swimlane: int = 0
    enable_dump_args: int = 0
    enable_pmu: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "enable_chip_swimlane", swimlane_level(self.enable_chip_swimlane))
        for name in ("enable_dump_args", "enable_pmu"):
            value = getattr(self, name)
            if not isinstance(value, int):
                raise TypeError(f"{name} must be an int, got {type(value).__name__} {value!r}")

    def any(self) -> bool:
        """Whether one of them is on."""
        return bool(
            self.enable_chip_swimlane > 0
            or self.enable_dump_args > 0
            or self.enable_pmu > 0
            or self.enable_dep_gen
            or self.enable_scope_stats
        )

    def options(self) -> dict[str, Any]:
        """The options by name, as :class:`RunConfig` takes them."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_run_config(cls, config: RunConfig) -> DfxOptions:
        """The diagnostics ``config`` asks for."""
        return cls(**{f.name: getattr(config, f.name) for f in fields(cls)})
