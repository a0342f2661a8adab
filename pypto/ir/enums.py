"""Enumerations of the language (spec language 1.4); the integer values are part of the text form."""

from __future__ import annotations

from enum import Enum, IntEnum


class _Named(IntEnum):
    """An ``IntEnum`` that prints as its member name."""

    def __str__(self) -> str:
        return self.name


class FunctionType(_Named):
    """What a function is for (spec language 3.1)."""

    Opaque = 0
    Orchestration = 1
    InCore = 2
    AIC = 3
    AIV = 4
    Group = 5
    Spmd = 6
    Inline = 7
    Graph = 8


class Level(_Named):
    """Place in the machine hierarchy."""

    AIV = 0
    AIC = 1
    CORE_GROUP = 2
    CHIP_DIE = 3
    CHIP = 4
    HOST = 5
    CLUSTER_0 = 6
    CLUSTER_1 = 7
    CLUSTER_2 = 8
    GLOBAL = 9
    L2CACHE = 3
    PROCESSOR = 4
    UMA = 4
    NODE = 5
    POD = 6
    CLOS1 = 7
    CLOS2 = 8

    @property
    def number(self) -> int:
        """The L-number: 0 for cores and core groups, 2 for a chip, 3 for a host."""
        return (0, 0, 0, 1, 2, 3, 4, 5, 6, 7)[int(self)]


class Role(_Named):
    """Who a function works for."""

    Orchestrator = 0
    SubWorker = 1


class ForKind(_Named):
    """Kind of a counted loop."""

    Sequential = 0
    Parallel = 1
    Unroll = 2
    Pipeline = 3


class SplitMode(_Named):
    """How vector work is divided over the two vector cores of a cluster."""

    NONE = 0
    UP_DOWN = 1
    LEFT_RIGHT = 2


class ArgDirection(_Named):
    """How the runtime sees one argument of a launch (spec language 6.4)."""

    Scalar = 0
    Input = 1
    Output = 2
    OutputExisting = 3
    InOut = 4
    NoDep = 5


class ScopeMode(Enum):
    """How a runtime scope finds dependencies."""

    AUTO = 0
    MANUAL = 1


class MemorySpace(_Named):
    """On-chip memories and GM (spec language 7.1)."""

    DDR = 0
    Vec = 1
    Mat = 2
    Left = 3
    Right = 4
    Acc = 5
    Bias = 6
    ScalarLocal = 7
    LeftScale = 8
    RightScale = 9


class TensorLayout(_Named):
    """Order of a tensor's elements in GM."""

    ND = 0
    DN = 1
    NZ = 2
    MX_A_ZZ = 3
    MX_B_NN = 4


class TileLayout(_Named):
    """Order of blocks, or of the elements of a block, in a tile."""

    none_box = 0
    row_major = 1
    col_major = 2


class PadValue(_Named):
    """What fills the elements outside a valid region."""

    null = 0
    zero = 1
    max = 2
    min = 3


class CompactMode(_Named):
    """How a cube tile packs a partial valid shape."""

    null = 0
    normal = 1


class PipeType(_Named):
    """The pipes of a core."""

    MTE1 = 0
    MTE2 = 1
    MTE3 = 2
    M = 3
    V = 4
    S = 5
    FIX = 6
    ALL = 7


class AtomicType(_Named):
    """How a store combines with what is there."""

    None_ = 0
    Add = 1


class NotifyOp(_Named):
    """How a notification changes a signal cell."""

    AtomicAdd = 0
    Set = 1


class WaitCmp(_Named):
    """When a wait is satisfied."""

    Eq = 0
    Ge = 1


class ReduceOp(_Named):
    """What a reduction over ranks computes."""

    Sum = 0
    Max = 1
    Min = 2
    Prod = 3


class ParamDirection(_Named):
    """Direction of a function parameter; the sidecar prints the member name."""

    In = 0
    Out = 1
    InOut = 2


class MaskPattern:
    """Column subsets of the mask forms of gather and scatter (spec ops 14.1)."""

    P0101 = 1
    P1010 = 2
    P0001 = 3
    P0010 = 4
    P0100 = 5
    P1000 = 6
    P1111 = 7


Mem = MemorySpace
