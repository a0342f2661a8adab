"""Shared by all tests: build directories stay out of the working directory, and every run tries the same examples."""

import pytest
from hypothesis import settings

# A loaded machine must not fail a test, and a failure must come back when it is looked for.
settings.register_profile("same", deadline=None, derandomize=True)
settings.load_profile("same")


@pytest.fixture(autouse=True, scope="session")
def build_directories_in_a_temporary_folder(tmp_path_factory):
    """Programs compiled without an output directory go below the test session's folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path_factory.mktemp("build")))
        yield
