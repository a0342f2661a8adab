"""Programs and tensors shared by the runtime's tests."""

import pytest
import torch

from pypto.runtime import configure_log, log_level

from .builds import COLS, ROWS, add_program


@pytest.fixture
def add(tmp_path):
    """An addition for the values-only platform."""
    return add_program(tmp_path / "add")


@pytest.fixture
def clocked_add(tmp_path):
    """An addition for the platform with a device clock."""
    return add_program(tmp_path / "add", platform="a2a3")


@pytest.fixture
def tensors():
    """Two inputs and an output of ones."""
    generator = torch.Generator().manual_seed(3)
    a, b = (torch.randn(ROWS, COLS, generator=generator) for _ in range(2))
    return a, b, torch.ones(ROWS, COLS)


@pytest.fixture(autouse=True)
def quiet():
    """No markers unless a test asks for them."""
    before = log_level()
    configure_log("error")
    yield
    configure_log(before)
