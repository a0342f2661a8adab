"""Result types of synchronisation, cross-core transfer, arrays and prefetch (spec ops 16-19)."""

from __future__ import annotations

import pytest

from pypto.ir.dtype import BOOL, FP32, INDEX, INT32, INT64, TASK_ID
from pypto.ir.enums import Mem, PipeType
from pypto.ir.nodes import Const, NoneType, ScalarType
from pypto.ir.operations import dims
from pypto.ir.operations.errors import OperandTypeError, OperandValueError

from .written import N, call, scalar, tensor, tile, typed

T = tile(32, 64)
ARRAY = call("pl.array.create", 4, INT32)
CONTEXT = call("pl.prefetch.make_context")
SESSION = call("pl.prefetch.session", CONTEXT)
EVENT = call("pl.prefetch.async_prefetch", tensor(1, 64), CONTEXT)
WORDS = tensor(16, dtype=INT32)

EFFECTS = [
    ("pl.system.sync_src", (), {"set_pipe": PipeType.MTE2, "wait_pipe": PipeType.V, "event_id": 0}),
    ("pl.system.sync_set", (3,), {"pipe": PipeType.MTE3, "ffts_mode": 2, "core_type": "aic"}),
    ("pl.system.sync_wait", (N,), {"pipe": PipeType.MTE2}),
    ("pl.system.set_ffts", (tensor(256, dtype=INT64),), {}),
    ("pl.system.bar_v", (), {}), ("pl.system.bar_all", (), {}), ("pl.system.fence", (), {}),
    ("pl.system.cacheinvalid", (), {}), ("pl.system.cacheinvalid", (tensor(8, 8), (4, 8), (0, 0)), {}),
    ("pl.system.syncall", (), {}),
    ("pl.system.syncall", (), {"mode": "soft", "gm_workspace": WORDS, "used_cores": 4, "core_type": "aiv_only"}),
    ("pl.tpush_to_aiv", (T,), {"split": 1, "lane_stride": 16}), ("pl.tile.tpush_to_aic", (T,), {"split": 0, "id": 2}),
    ("pl.tfree_to_aic", (T,), {"id": 0}),
    ("pl.aic_initialize_pipe", (), {"dir_mask": 3, "slot_size": 4096}),
    ("pl.aiv_initialize_pipe", (0, scalar(INT32)), {"dir_mask": 1, "slot_size": 4096, "slot_num": 4}),
    ("pl.dump_tag", (tensor(8, 8),), {}),
]  # fmt: skip


@pytest.mark.parametrize(("spelling", "args", "kwargs"), EFFECTS)
def test_an_operation_for_its_effect_has_no_value(spelling, args, kwargs):
    assert call(spelling, *args, **kwargs).type == NoneType()


VALUES = [
    ("pl.get_block_idx", (), {}, "INDEX scalar"), ("pl.tile.get_subblock_idx", (), {}, "INDEX scalar"),
    ("pl.system.available_aiv_count", (), {}, "INT32 scalar"),
    ("pl.reserve_buffer", (), {"name": "ring", "size": 4096}, "INT32 scalar"),
    ("pl.import_peer_buffer", (), {"name": "ring", "peer_func": "cube"}, "INT32 scalar"),
    ("pl.tpop_from_aic", (), {"shape": (16, 64), "dtype": FP32}, "tile [16, 64] FP32"),
    ("pl.tpop_from_aiv", (), {"shape": (16, 64), "dtype": FP32}, "tile [16, 64] FP32 in Mat"),
    ("pl.system.task_dummy", (), {"deps": ()}, "TASK_ID scalar"),
    ("pl.array.get_element", (ARRAY, N), {}, "INT32 scalar"),
    ("pl.array.update_element", (ARRAY, 0, 7), {}, "array of 4 INT32"),
    ("pl.prefetch.wait", (EVENT, SESSION), {}, "BOOL scalar"),
    ("pl.aiv_shard", (tile(32, 64, space=Mem.Acc),), {"split": 1}, "tile [16, 64] FP32"),
    ("pl.aiv_shard", (tile(32, 64, space=Mem.Acc),), {"split": 2}, "tile [32, 32] FP32"),
    ("pl.aiv_shard", (tensor(32, 64),), {"split": 0}, "tensor [32, 64] FP32"),
    ("pl.aic_gather", (tile(16, 64),), {"split": 1}, "tile [32, 64] FP32 in Mat"),
    ("pl.aic_gather", (T,), {"split": 0}, "tile [32, 64] FP32 in Mat"),
]  # fmt: skip


@pytest.mark.parametrize(("spelling", "args", "kwargs", "result"), VALUES)
def test_result_type(spelling, args, kwargs, result):
    assert typed(spelling, *args, **kwargs) == result


ILLEGAL = [
    ("pl.system.sync_set", (14,), {"pipe": PipeType.V}, OperandValueError, "event_id is 14; legal: 0 to 13"),
    ("pl.system.sync_set", (scalar(INT32),), {"pipe": PipeType.V}, OperandValueError,
     "needs a scalar of INDEX, got INT32"),
    ("pl.system.sync_set", (0,), {"pipe": PipeType.V, "ffts_mode": 3}, OperandValueError,
     "ffts_mode is 3; legal: 0, 1, 2"),
    ("pl.system.sync_wait", (0,), {"pipe": PipeType.V, "core_type": "cube"}, OperandValueError,
     "core_type is 'cube'; legal: 'aic'"),
    ("pl.system.set_ffts", (WORDS,), {}, OperandTypeError, "workspace must be an INT64 tensor with one axis"),
    ("pl.system.set_ffts", (tensor(8, dtype=INT64),), {}, OperandValueError, "workspace has 8 words; it needs 256"),
    ("pl.system.syncall", (), {"gm_workspace": WORDS}, OperandValueError, "mode='hard' takes neither"),
    ("pl.system.syncall", (), {"mode": "soft"}, OperandValueError, "mode='soft' needs gm_workspace and used_cores"),
    ("pl.system.syncall", (), {"mode": "soft", "gm_workspace": tensor(8, dtype=INT32),
     "used_cores": 4}, OperandValueError,
     "must hold at least 16 words"),
    ("pl.system.cacheinvalid", (tensor(8, 8), (4,), (0,)), {}, OperandValueError, "must have 2 entries"),
    ("pl.system.cacheinvalid", (tensor(8, 8),), {}, OperandTypeError, "tensor, shapes and offsets together"),
    ("pl.tpush_to_aiv", (T,), {"split": 5}, OperandValueError, "split is 5; legal: 0 whole, 1 rows"),
    ("pl.tpop_from_aic", (), {}, OperandTypeError, "needs shape= and dtype=, or an annotation"),
    ("pl.aic_initialize_pipe", (), {"dir_mask": 4, "slot_size": 8}, OperandValueError,
     "dir_mask is 4; legal: 1 cube to vector"),
    ("pl.aic_initialize_pipe", (), {"dir_mask": 1, "slot_size": 0}, OperandValueError,
     "slot_size is 0; it must be positive"),
    ("pl.aiv_shard", (T,), {}, OperandTypeError, "is legal only inside 'for lane in pl.split_aiv"),
    ("pl.aiv_shard", (tile(2, 32, 64),), {"split": 1}, OperandValueError, "x needs 2 axes"),
    ("pl.aic_gather", (tile(16, 64, valid=(8, 64)),), {"split": 1}, OperandValueError, "the halves do not abut"),
    ("pl.array.create", (0, INT32), {}, OperandValueError, "extent is 0; it must be positive"),
    ("pl.array.create", (4, FP32), {}, OperandValueError, "dtype is FP32; legal: integers, BOOL, TASK_ID"),
    ("pl.array.get_element", (ARRAY, 4), {}, OperandValueError, "index is 4; legal for an array of 4: 0 to 3"),
    ("pl.array.update_element", (ARRAY, 0, scalar(INT64)), {}, OperandValueError,
     "value is INT64, the elements are INT32"),
    ("pl.prefetch.async_prefetch", (tensor(2, 64), CONTEXT), {}, OperandValueError, r"src \[2, 64\] must be static"),
    ("pl.prefetch.wait", (EVENT, CONTEXT), {}, OperandValueError,
     "session_handle is a PrefetchContext; a PrefetchSession"),
]  # fmt: skip


@pytest.mark.parametrize(("spelling", "args", "kwargs", "error", "message"), ILLEGAL)
def test_a_broken_contract_is_named(spelling, args, kwargs, error, message):
    with pytest.raises(error, match=message):
        call(spelling, *args, **kwargs)


def test_lanes_share_an_odd_extent_and_rejoin_to_it():
    whole = tile(31, 64, space=Mem.Acc)
    shard = call("pl.aiv_shard", whole, split=1)
    assert shard.type.shape == (16, 64)
    assert "get_subblock_idx" in dims.text(shard.type.valid_shape[0])
    rejoined = call("pl.aic_gather", shard, split=1)
    assert rejoined.type.shape == (32, 64) and rejoined.type.valid_shape == (31, 64)


def test_task_ids_in_arrays():
    array = call("pl.array.create", 3, TASK_ID)
    assert call("pl.array.update_element", array, 1, scalar(TASK_ID)).type == array.type
    assert call("pl.system.task_is_valid", scalar(TASK_ID)).type == ScalarType(BOOL)
    assert call("pl.array.update_element", ARRAY, N, True).arguments["value"] == Const(1, INT32)
    assert scalar(INDEX).type == ScalarType(INDEX)
