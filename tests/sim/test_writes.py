"""Which parameters of an orchestration its tasks may change."""

import pytest

from pypto.sim.text import parse
from pypto.sim.writes import written_parameters

HEAD = """orchestration @main {{
  param %a : tensor<8x8xfp32> in
  param %b : tensor<8x8xfp32> out
  param %n : scalar<int32>
  tensor %v : 2 x fp32
  tensor %w : 2 x fp32
  {body}
}}"""


@pytest.mark.parametrize(
    "body, written",
    [
        ("submit %t, @k, [%a, %b, %n], [], [1, 3, 0]", {"b"}),
        ("submit %t, @k, [%a, %b], [], [4, 2]", {"a", "b"}),
        ("view %v, %a, [0, 0], [4, 8], []  submit %t, @k, [%v], [], [2]", {"a"}),
        ("reshape %w, %v, [8, 4]  view %v, %a, [0, 0], [4, 8], []  submit %t, @k, [%w], [], [5]", {"a"}),
        ("for %i = 0 to 4 { if %n { submit %t, @k, [%a], [], [3] } else { sstore %b, [0, 0], %n } }", {"a", "b"}),
        ("alloc %v, [8, 8] {dtype = fp32}  submit %t, @k, [%a, %v], [], [1, 2]", set()),
        (
            "if %n { view %v, %a, [0, 0], [8, 8], [] } else { view %v, %b, [0, 0], [8, 8], [] } "
            "submit %t, @k, [%v], [], [4]",
            {"a", "b"},
        ),
    ],
)
def test_written_parameters(body, written):
    assert written_parameters(parse(HEAD.format(body=body))) == written
