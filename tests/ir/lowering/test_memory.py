"""The memory plan: what is alive together never shares bytes, and what can share does (spec language 7.5)."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto.ir.dtype import FP16, FP32
from pypto.ir.errors import CompileError
from pypto.ir.lowering.instructions import Branch, Instruction, Kernel, Loop, Register, Tile
from pypto.ir.lowering.memory import Space, plan
from pypto.ir.lowering.planners import DEFAULT_PLANNER, PLANNERS
from pypto.ir.span import UNKNOWN_SPAN

SPACES = {"vec": Space("Vec", 1 << 20, 128)}


def tile(name, rows=16, dtype=FP32, **fields):
    return Tile(name, rows, 64, dtype, "vec", **fields)


def op(target, *sources, may_share=True, copy=False):
    return Instruction("op", [target, *sources], writes=(target,), reads=tuple(sources), may_share=may_share, copy=copy)


def planned(tiles, body, spaces=SPACES, planner=DEFAULT_PLANNER):
    kernel = Kernel("k", "aiv", [], body, list(tiles))
    plan(kernel, spaces, UNKNOWN_SPAN, planner)
    return kernel


def overlaps(a, b):
    return a.address < b.address + b.nbytes and b.address < a.address + a.nbytes


def store(*tiles):
    return Instruction("tstore", list(tiles), reads=tuple(tiles))


def test_a_chain_reuses_one_buffer_and_a_fan_does_not():
    a, b, c = tile("a"), tile("b"), tile("c")
    kernel = planned([a, b, c], [op(a), op(b, a), op(c, b), store(c)])
    assert a.address == b.address == c.address and kernel.peaks["Vec"] == a.nbytes
    a, b, c = tile("a"), tile("b"), tile("c")
    planned([a, b, c], [op(a), op(b), op(c, a, b), store(a, b, c)])
    assert not any(overlaps(x, y) for x, y in itertools.combinations((a, b, c), 2))


def test_an_operation_that_may_not_share_keeps_its_operands_apart():
    a, b = tile("a"), tile("b")
    planned([a, b], [op(a), op(b, a, may_share=False), store(b)])
    assert not overlaps(a, b)


def test_another_element_width_never_shares_in_place():
    narrow, wide = tile("narrow", dtype=FP16), tile("wide", dtype=FP32)
    planned([narrow, wide], [op(narrow), op(wide, narrow), store(wide)])
    assert not overlaps(narrow, wide)


def test_a_value_read_after_a_loop_survives_it():
    outer, inner = tile("outer"), tile("inner")
    loop = Loop(Register("i"), 0, 4, 1, [op(inner), store(inner)])
    planned([outer, inner], [op(outer), loop, store(outer)])
    assert not overlaps(outer, inner)


def test_a_carried_value_and_its_update_become_one_buffer():
    start, held, fresh, other = tile("start"), tile("held"), tile("fresh"), tile("other")
    body = [op(other), op(fresh, held, other), op(held, fresh, copy=True)]
    kernel = planned(
        [start, held, fresh, other],
        [op(start), op(held, start, copy=True), Loop(Register("i"), 0, 4, 1, body), store(held)],
    )
    assert start.address == held.address == fresh.address != other.address
    left = [n for n in kernel.body[1].body if isinstance(n, Instruction)] if isinstance(kernel.body[1], Loop) else []
    assert all(not n.copy for n in left), "the copies are identities and disappear"


def test_branches_merge_into_one_place():
    a, b, joined = tile("a"), tile("b"), tile("joined")
    branch = Branch(Register("c"), [op(a), op(joined, a, copy=True)], [op(b), op(joined, b, copy=True)])
    planned([a, b, joined], [branch, store(joined)])
    assert a.address == b.address == joined.address


def test_copies_of_a_pipelined_body_have_buffers_of_their_own():
    first, second = tile("first", stage=((0, 0),)), tile("second", stage=((0, 1),))
    loop = Loop(Register("i"), 0, 4, 2, [op(first), store(first), op(second), store(second)])
    planned([first, second], [loop])
    assert not overlaps(first, second)


def test_stages_share_again_when_memory_is_short():
    first, second = tile("first", stage=((0, 0),)), tile("second", stage=((0, 1),))
    small = {"vec": Space("Vec", first.nbytes, 128)}
    kernel = planned([first, second], [op(first), store(first), op(second), store(second)], small)
    assert kernel.peaks["Vec"] <= first.nbytes


def test_a_shallow_pipeline_beside_a_deep_one_keeps_its_copies_when_room_is_short():
    deep = [tile(f"t{o}{i}", stage=(("outer", o), ("inner", i))) for o in (0, 1) for i in (0, 1)]
    shallow = [tile(f"s{i}", stage=(("before", i),)) for i in (0, 1)]
    small = {"vec": Space("Vec", 2 * deep[0].nbytes, 128)}
    planned([*shallow, *deep], [n for t in (*shallow, *deep) for n in (op(t), store(t))], small)
    assert not overlaps(*shallow) and not overlaps(deep[0], deep[1]) and not overlaps(deep[2], deep[3])


def test_a_tile_of_a_nested_pipeline_rotates_before_it_waits_for_another_tile():
    """Left and right blocks of a matrix product: two buffers each, though four right ones are named in one step."""
    left = [tile(f"left{o}", stage=(("outer", o),), origin="left") for o in (0, 1)]
    right = [tile(f"right{o}{i}", stage=(("outer", o), ("inner", i)), origin="right") for o in (0, 1) for i in (0, 1)]
    body = []
    for o in (0, 1):
        body.append(op(left[o]))
        for one in right[2 * o : 2 * o + 2]:
            body += [op(one), store(left[o], one)]
    planned([*left, *right], body, {"vec": Space("Vec", 4 * left[0].nbytes, 128)})
    assert len({t.address for t in left}) == len({t.address for t in right}) == 2
    assert not {t.address for t in left} & {t.address for t in right}
    assert right[0].address != right[1].address and right[2].address != right[3].address


def test_overflow_names_the_space_the_bytes_and_the_largest_tiles():
    a, b = tile("big", rows=64), tile("small")
    with pytest.raises(CompileError) as e:
        planned([a, b], [op(a), op(b), store(a, b)], {"vec": Space("Vec", 8192, 128)})
    text = str(e.value)
    assert "Vec" in text and "20,480" in text and "8,192" in text and "big" in text


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_what_is_alive_together_never_overlaps(data):
    """Straight-line programs of random shape against a liveness computed the slow way."""
    count = data.draw(st.integers(2, 12))
    tiles = [
        tile(f"t{i}", rows=data.draw(st.sampled_from((8, 16, 32))), dtype=data.draw(st.sampled_from((FP16, FP32))))
        for i in range(count)
    ]
    body, defined = [], []
    for t in tiles:
        sources = data.draw(st.lists(st.sampled_from(defined), max_size=3)) if defined else []
        body.append(op(t, *sources, may_share=data.draw(st.booleans())))
        defined.append(t)
    last = {t: max(i for i, n in enumerate(body) if t in n.reads or t in n.writes) for t in tiles}
    first = {t: i for i, t in enumerate(tiles)}
    kernel = planned(tiles, body, planner=PLANNERS[data.draw(st.sampled_from(sorted(PLANNERS)))])
    for a, b in itertools.combinations(tiles, 2):
        if max(first[a], first[b]) < min(last[a], last[b]):
            assert not overlaps(a, b), (a.name, b.name)
    assert all(t.address % 128 == 0 and t.address + t.nbytes <= kernel.peaks["Vec"] for t in tiles)


def test_a_tile_that_nothing_has_filled_keeps_no_bytes_from_the_one_it_is_copied_into():
    empty, carried, other = tile("empty"), tile("carried"), tile("other")
    loop = Loop(Register("i"), 0, 4, 1, [op(carried, empty, copy=True), op(other, carried, may_share=False)])
    planned([empty, carried, other], [loop, store(carried)])
    assert empty.address == carried.address


def test_copies_of_an_inner_pipeline_stay_apart_when_there_is_no_room_for_those_of_the_outer():
    names = [tile(f"t{o}{i}", stage=(("outer", o), ("inner", i))) for o in (0, 1) for i in (0, 1)]
    body = [node for one in names for node in (op(one), store(one))]
    planned(names, body, {"vec": Space("Vec", 2 * names[0].nbytes, 128)})
    a, b, c, d = (one.address for one in names)
    assert (a, b) == (c, d) and a != b


# --- planners -----------------------------------------------------------------------------------------------------------


def fragmented():
    """A small buffer between two that die before a large one is born."""
    small, big, late = tile("small", rows=8), tile("big", rows=16), tile("late", rows=24)
    body = [op(small), op(big, small, may_share=False), store(small), op(late, big, may_share=False), store(late)]
    return [small, big, late], body


def test_joint_packing_needs_no_more_bytes_than_program_order():
    kernels = {name: planned(*fragmented(), planner=PLANNERS[name]) for name in ("PYPTO", "DSA_RP")}
    peaks = {name: kernel.peaks["Vec"] for name, kernel in kernels.items()}
    assert peaks["DSA_RP"] == (16 + 24) * 64 * 4 < peaks["PYPTO"]


def test_who_works_in_place():
    addresses = {}
    for name, planner in PLANNERS.items():
        a, b = tile("a"), tile("b")
        planned([a, b], [op(a), op(b, a), store(b)], planner=planner)
        addresses[name] = a.address == b.address
    assert addresses == {"PYPTO": True, "DSA_RP": True, "PTOAS": False}


def test_the_assembler_rotates_slots_or_refuses():
    first, second = tile("first", stage=((0, 0),)), tile("second", stage=((0, 1),))
    small = {"vec": Space("Vec", first.nbytes, 128)}
    with pytest.raises(CompileError, match="needs 8,192 bytes of Vec, the chip has 4,096"):
        planned([first, second], [op(first), store(first), op(second), store(second)], small, PLANNERS["PTOAS"])


def test_the_assembler_takes_declared_allocations_of_several_slots_only():
    one, many = tile("one", allocation="room"), tile("many", allocation="ring", slots=2)
    planned([many], [op(many), store(many)], planner=PLANNERS["PTOAS"])
    with pytest.raises(CompileError, match="several slots only; 'room', used by 'one', has one"):
        planned([one], [op(one), store(one)], planner=PLANNERS["PTOAS"])
