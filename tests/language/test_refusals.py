"""Every refusal of section 4: the class of the error, and that it shows its place (spec language 4, 8.2)."""

import pytest

import pypto
import pypto.language as pl

REFUSED = [
    ("x[0, 0] = 1.0", "UnsupportedFeatureError"),
    ("t = pl.load(x,[0,0],[32,64])\nt[0, 0] = 1.0", "UnsupportedFeatureError"),
    ("t = pl.load(x,[0,0],[32,64])\nu = t[n:n+4, 0:64]", "Error"),
    ("u = x[0:4:2, 0:64]", "UnsupportedFeatureError"),
    ("u = x[..., 0]", "ParserTypeError"),
    ("u = x[-1, 0]", "ParserSyntaxError"),
    ("u = x[0, 0, 0]", "ParserTypeError"),
    ("u = (1, 2)[n]", "UnsupportedFeatureError"),
    ("a = pl.array.create(4, pl.INT32)\nu = a[0, 1]", "ParserTypeError"),
    ("a = pl.array.create(n, pl.INT32)", "ParserTypeError"),
    ("u = n + f", "ParserSyntaxError"),
    ("u = b + 1", "ParserSyntaxError"),
    ("u = 1 < n < 3", "ParserSyntaxError"),
    ("u = n ** 2", "UnsupportedFeatureError"),
    ("u = n & 2", "UnsupportedFeatureError"),
    ("u = +n", "UnsupportedFeatureError"),
    ("u = n in (1, 2)", "UnsupportedFeatureError"),
    ("if n:\n    pass", "ParserTypeError"),
    ("u = 1 if b else 2", "UnsupportedFeatureError"),
    ("u = {1: 2}", "UnsupportedFeatureError"),
    ("u = [i for i in range(3)]", "UnsupportedFeatureError"),
    ("u = len(x)", "UnsupportedFeatureError"),
    ("u = 'text'", "ParserTypeError"),
    ("u = v = 1", "ParserSyntaxError"),
    ("u, v = 1", "ParserSyntaxError"),
    ("u, v = (1, 2, 3)", "ParserSyntaxError"),
    ("x.foo = 1", "ParserSyntaxError"),
    ("for i in range(3):\n    pass", "ParserSyntaxError"),
    ("for i in pl.range():\n    pass", "ParserSyntaxError"),
    ("for i in pl.range(3, chunk=2):\n    pass", "ParserSyntaxError"),
    ("for i in pl.range(f):\n    pass", "Error"),
    ("for i in pl.pipeline(3):\n    pass", "ParserSyntaxError"),
    ("for i in pl.unroll(n):\n    pass", "ParserSyntaxError"),
    ("for i, (a,) in pl.range(3):\n    pass", "ParserSyntaxError"),
    ("for i in pl.range(3, init_values=(1,)):\n    pass", "ParserSyntaxError"),
    ("for i, (a, c) in pl.range(3, init_values=(1,)):\n    pass", "ParserSyntaxError"),
    ("for i, (a,) in pl.range(3, init_values=(1,)):\n    pl.yield_(a)", "ParserSyntaxError"),
    ("for a in pl.while_(init_values=(1,)):\n    pl.cond(a < 3)", "ParserSyntaxError"),
    ("for (a,) in pl.while_(init_values=(1,)):\n    c = pl.yield_(a + 1)", "ParserSyntaxError"),
    ("pl.cond(b)", "Error"),
    ("x += 1", "UnsupportedFeatureError"),
    ("assert b", "UnsupportedFeatureError"),
    ("t: pl.Tile[[32,64],pl.FP16] = pl.load(x,[0,0],[32,64])", "ParserTypeError"),
    ("t: pl.Tile[[16,64],pl.FP32] = pl.load(x,[0,0],[32,64])", "ParserTypeError"),
    ("t: pl.Tile[[32,64],pl.FP32,pl.NZ] = pl.load(x,[0,0],[32,64])", "ParserTypeError"),
    ("t: pl.Tile[[32,64],pl.FP32,pl.MemRef('q')] = pl.load(x,[0,0],[32,64])", "ParserTypeError"),
    ("t: pl.Tile[[32,64],pl.FP32,pl.Mem.Vec,pl.Mem.Mat] = pl.load(x,[0,0],[32,64])", "ParserTypeError"),
    ("t: pl.Tile[[32,64],pl.FP32,pl.MemRef('q',slots=2)[2],pl.Mem.Vec] = pl.load(x,[0,0],[32,64])", "ParserTypeError"),
    ("t: pl.Tile[[32,64],pl.FP32,pl.MemRef('q')[0],pl.Mem.Vec] = pl.load(x,[0,0],[32,64])", "ParserTypeError"),
    ("t: pl.Tile[[32,64],pl.FP32,pl.MemRef('q',slots=0),pl.Mem.Vec] = pl.load(x,[0,0],[32,64])", "ParserTypeError"),
    ("t = pl.load(x,[0,0],[32,64],target_memory=pl.Mem.Left)", "InvalidOperationError"),
    ("t = pl.load(x,[0,0],[32,64])\nu = pl.add(t, x)", "InvalidOperationError"),
    ("t = pl.load(x,[0,0],[32,64])\nt = pl.cast(t, pl.FP16)", "ParserTypeError"),
    ("t = pl.load(x,[0,0],[32,64])\nu = t + t", "ParserSyntaxError"),
    ("u = pl.nosuch(x)", "InvalidOperationError"),
    ("u = nosuch", "UndefinedVariableError"),
    ("u = pl.const(n, pl.INT32)", "ParserTypeError"),
    ("u = pl.const(1)", "ParserTypeError"),
    ("u = pl.INT99.get_byte()", "ParserTypeError"),
    ("pl.func_attr({'a': 1})\npl.func_attr({'a': 2})", "ParserSyntaxError"),
    ("u = 1\npl.func_attr({'a': 1})", "ParserSyntaxError"),
    ("pl.func_attr({'auto_scope': True})", "ParserSyntaxError"),
    ("pl.func_attr({'split': 1})", "ParserSyntaxError"),
    ("pl.func_attr({'a': zork})", "UndefinedVariableError"),
    ("pl.static_assert(n > 1)", "ParserError"),
    ("pl.static_assert(1 > 2, 'no')", "ParserError"),
    ("pl.static_print()", "ParserSyntaxError"),
    ("with pl.at(level=pl.Level.CORE_GROUP):\n    pass", "ParserSyntaxError"),
    ("with open('a'):\n    pass", "UnsupportedFeatureError"),
    ("for l in pl.split_aiv(3, mode=pl.SplitMode.NONE):\n    pass", "ParserSyntaxError"),
    ("for l in pl.split_aiv(2):\n    pass", "ParserSyntaxError"),
    ("for i in pl.unroll(3):\n    break", "InvalidOperationError"),
    ("for i in pl.range(3):\n    z = i\nu = z", "Error"),
    ("a = pl.array.create(4, pl.FP32)", "ParserTypeError"),
    ("t = pl.load(x,[0,0],[32,64])\nu = pl.cast(n, pl.FP32, mode='floor')", "Error"),
]
KERNEL = """@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        x: pl.Tensor[[32, 64], pl.FP32],
        n: pl.Scalar[pl.INT32],
        f: pl.Scalar[pl.FP32],
        b: pl.Scalar[pl.BOOL],
        y: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
    ):
        BODY
        return y
"""


@pytest.mark.parametrize(("body", "kind"), REFUSED)
def test_refusals(body, kind):
    with pytest.raises(pypto.Error) as caught:
        pl.parse(KERNEL.replace("BODY", "\n        ".join(body.splitlines())))
    assert kind in [c.__name__ for c in type(caught.value).__mro__], caught.value
    assert "-->" in str(caught.value)


def test_a_row_of_a_tile_is_padded_to_two_axes():
    body = "t = pl.load(x, [0, 0], [32, 64])\n        y = pl.store(t[1], [0, 0], y)"
    with pytest.warns(UserWarning, match="padded to two"):
        pl.parse(KERNEL.replace("BODY", body))


ORCHESTRATION = """@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def two(
        self,
        x: pl.Tensor[[32, 64], pl.FP32],
        first: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
        second: pl.InOut[pl.Tensor[[32, 64], pl.FP32]],
    ):
        first = pl.store(pl.load(x, [0, 0], [32, 64]), [0, 0], first)
        second = pl.store(pl.load(x, [0, 0], [32, 64]), [0, 0], second)
        return first, second

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
        BODY
        return y
"""
AT = "with pl.at(level=pl.Level.CORE_GROUP):\n    "
SAID = [
    ("y, t = self.two(x, y, y)", "writes parameters 'first' and 'second', and both get the same tensor"),
    ("a = pl.array.create(4, pl.INT32)\n" + AT + "y[:] = pl.add(x, pl.cast(a[0], pl.FP32))", "the array 'a' belongs to orch"),
    ("a = pl.array.create(4, pl.INT32)\n" + AT + "a[0] = 3\n    y[:] = x", "the array 'a' belongs to orchestration code"),
    ("a = pl.array.create(4, pl.INT32)\nfor b in pl.spmd(4):\n    y[:] = pl.add(x, pl.cast(a[b], pl.FP32))", "the array 'a'"),
    (AT + "pl.store(pl.load(x, [0, 0], [32, 64], target_memory=pl.Mem.Vecc), [0, 0], y)", "legal: DDR, Vec, Mat, Left"),
    (AT + "t: pl.Tile[[32, 64], pl.FP32, pl.Mem.Vecc] = pl.load(x, [0, 0], [32, 64])", "MemorySpace has no 'Vecc'"),
    (AT + "y[:] = pl.tile.exp(x)", "pl.load, pl.tile.full and pl.create_tile make tiles"),
    (AT + "pl.store(pl.add(pl.load(x, [0, 0], [32, 64]), pl.full([32, 64], dtype=pl.FP32, value=1.0)), [0, 0], y)",
     "pl.tile.full and pl.create_tile make tiles"),
    (AT + "y[:] = pl.cast(x, pl.FP23)", "did you mean pl.FP32?"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "message"), SAID)
def test_what_a_refusal_says(body, message):
    with pytest.raises(pypto.Error) as caught:
        pl.parse(ORCHESTRATION.replace("BODY", body.replace("\n", "\n        ")))
    assert message in str(caught.value)


def test_elements_of_an_array_may_be_arguments_of_a_launch():
    pl.parse(
        ORCHESTRATION.replace(
            "BODY",
            "ids = pl.array.create(2, pl.TASK_ID)\n        with pl.at(level=pl.Level.CORE_GROUP, deps=[ids]) as t:\n"
            "            y[:] = pl.neg(x)\n        ids[0] = t",
        )
    )
