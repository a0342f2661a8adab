"""Build directories as callables: what is refused before anything runs."""

import pytest

from pypto.runtime.callable import assemble

from .builds import add_program


@pytest.mark.parametrize("platform, vector_bytes", [("a2a3", 188_416), ("a5sim", 245_760)])
def test_an_edited_text_must_fit_the_chip(tmp_path, platform, vector_bytes):
    """Space by space: the last byte of the memory may be used, one more may not."""
    add_program(tmp_path)
    [kernel] = tmp_path.glob("kernels/aiv/*.pto")
    text, tile = kernel.read_text(), 32 * 256 * 4
    kernel.write_text(text.replace("at 32768", f"at {vector_bytes - tile}"))
    assemble(tmp_path, platform)
    kernel.write_text(text.replace("at 32768", f"at {vector_bytes - tile + 32}"))
    with pytest.raises(ValueError) as error:
        assemble(tmp_path, platform)
    needed = f"needs {vector_bytes + 32:,} bytes of vec, a core of {platform.removesuffix('sim')} has {vector_bytes:,}"
    assert str(kernel) in str(error.value) and needed in str(error.value)
