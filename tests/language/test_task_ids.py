"""Task ids that a parallel loop of a manual scope rebinds (spec language 6.3)."""

import json

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from round_trip import assert_round_trips, random

import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig

SIM = RunConfig(platform="a2a3sim")


def test_phases():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(
            self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.InOut[pl.Tensor[[64, 64], pl.FP32]], i: pl.Scalar[pl.INDEX]
        ) -> pl.Tensor[[64, 64], pl.FP32]:
            y = pl.store(pl.add(pl.load(x, [i * 16, 0], [16, 64]), 1.0), [i * 16, 0], y)
            return y

        @pl.function(type=pl.FunctionType.InCore)
        def d(
            self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
        ) -> pl.Tensor[[64, 64], pl.FP32]:
            y = pl.store(pl.mul(pl.load(x, [0, 0], [64, 64]), 2.0), [0, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
            t = pl.create_tensor([64, 64], dtype=pl.FP32)
            with pl.manual_scope():
                last = None
                for p in pl.range(3):
                    for i in pl.parallel(2, 6):
                        t, last = pl.submit(self.k, x, t, i - 2, deps=[last])
                y, _ = pl.submit(self.d, t, y, deps=[last])
            return y

    assert_round_trips(P)
    x, y = random(64, 64), torch.zeros(64, 64)
    c = ir.compile(P, platform="a2a3sim")
    c(x, y)
    torch.testing.assert_close(y, (x + 1) * 2)


@pl.jit
def fan(x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    t = pl.create_tensor([64, 64], dtype=pl.FP32)
    with pl.manual_scope():
        last = None
        for i in pl.parallel(4):
            with pl.at(level=pl.Level.CORE_GROUP) as tid:
                t[i * 16 : i * 16 + 16, :] = pl.add(x[i * 16 : i * 16 + 16, :], 1.0)
            last = tid
        with pl.at(level=pl.Level.CORE_GROUP, deps=[last]):
            y[:] = pl.mul(t[:], 2.0)
    return y


def test_fan_at():
    x, y = random(64, 64), torch.zeros(64, 64)
    fan(x, y, config=SIM)
    torch.testing.assert_close(y, (x + 1) * 2)


# --- what a task waits for, against a model of the language ------------------------------------------------------------

SUBMIT, READ, KEEP = "submit", "read", "keep"
SIMPLE = st.sampled_from([SUBMIT, READ, KEEP])


def bodies(below):
    body = st.lists(below, min_size=1, max_size=3)
    loop = st.tuples(st.sampled_from(["parallel", "range"]), st.integers(0, 3), body)
    return loop | st.tuples(st.just("if"), st.integers(0, 1), body)


PROGRAMS = st.lists(st.recursive(SIMPLE, bodies, max_leaves=6), min_size=1, max_size=3)
LINES = {
    SUBMIT: ["y, last = pl.submit(self.k, x, y, deps=[last])"],
    READ: ["y, own = pl.submit(self.k, x, y, deps=[last])"],
    KEEP: ["kept[0] = last", "y, own = pl.submit(self.k, x, y, deps=[kept])"],
}


def written(body, depth=0):
    """The lines of ``body``; a branch is taken where the innermost loop variable has the parity."""
    lines = []
    for item in body:
        if isinstance(item, str):
            lines += LINES[item]
            continue
        kind, number, inner = item
        if kind == "if":
            lines.append(f"if i{depth} % 2 == {number}:")
        else:
            lines.append(f"for i{depth + 1} in pl.{kind}({number}):")
        lines += ["    " + line for line in written(inner, depth + (kind != "if"))]
    return lines


class Model:
    """Tasks in the order of the program with the tasks each waits for; ``last`` stands for a set of tasks."""

    def __init__(self):
        self.waits, self.last = [], frozenset()

    def run(self, body, variable=0):
        for item in body:
            if isinstance(item, str):
                self.waits.append(self.last)
                if item == SUBMIT:
                    self.last = frozenset({len(self.waits) - 1})
            elif item[0] == "if":
                if variable % 2 == item[1]:
                    self.run(item[2], variable)
            elif item[0] == "range":
                for i in range(item[1]):
                    self.run(item[2], i)
            elif item[1]:
                entry, ends = self.last, []
                for i in range(item[1]):
                    self.last = entry
                    self.run(item[2], i)
                    ends.append(self.last)
                self.last = frozenset().union(*ends)


def waits_of(folder):
    """What every kernel task waits for, through dummy tasks, by position."""
    graph = json.loads((folder / "dfx_outputs" / "deps.json").read_text())
    real = {t["task_id"]: None for t in graph["tasks"] if any(k >= 0 for k in t["kernel_ids"])}
    position = {task: i for i, task in enumerate(real)}
    direct = {t["task_id"]: [e["pred"] for e in graph["edges"] if e["succ"] == t["task_id"]] for t in graph["tasks"]}

    def through(task):
        for before in direct[task]:
            yield from [position[before]] if before in position else through(before)

    return [frozenset(through(task)) for task in real]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(PROGRAMS)
def test_a_task_waits_for_the_tasks_its_ids_stand_for(tmp_path_factory, body):
    lines = "\n                ".join(written([*body, READ]))
    program = pl.parse(f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[8, 8], pl.FP32], y: pl.InOut[pl.Tensor[[8, 8], pl.FP32]]) -> pl.Tensor[[8, 8], pl.FP32]:
        y = pl.store(pl.add(pl.load(x, [0, 0], [8, 8]), pl.load(y, [0, 0], [8, 8])), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[8, 8], pl.FP32], y: pl.InOut[pl.Tensor[[8, 8], pl.FP32]]):
        with pl.manual_scope():
            last = None
            kept = pl.array.create(1, pl.TASK_ID)
            for i0 in pl.range(1):
                {lines}
        return y
""")
    model = Model()
    model.run([*body, READ])
    folder = tmp_path_factory.mktemp("program")
    x, y = torch.ones(8, 8), torch.zeros(8, 8)
    compiled = ir.compile(program, platform="a2a3sim", output_dir=str(folder), dump_passes=False)
    compiled(x, y, config=RunConfig(platform="a2a3sim", enable_dep_gen=True))
    assert torch.equal(y, torch.full((8, 8), float(len(model.waits))))
    assert waits_of(folder) == model.waits
