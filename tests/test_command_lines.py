"""Every command line answers ``--help`` without doing anything else, and the package lists them."""

from importlib import import_module

import pytest

from pypto import __version__
from pypto.__main__ import COMMANDS, main
from pypto.sim import check


def test_the_package_lists_commands_that_exist(capsys):
    assert main([]) == 0
    said = capsys.readouterr().out
    for module in COMMANDS:
        assert f"python -m {module}" in said
        import_module(module)
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0 and __version__ in capsys.readouterr().out


@pytest.mark.parametrize("module", ["pypto.ir.operations.coverage", "pypto.validation.derivation"])
def test_help_is_all_that_help_does(module, capsys):
    command = import_module(module).main
    with pytest.raises(SystemExit) as left:
        command(argv=["--help"])
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: python -m {module}")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--checks", "wra", "script.py"], "unknown kind of check 'wra'; known: war"),
        (["nowhere.py"], "no such script: nowhere.py"),
        (["--json", "nowhere/found.json", "script.py"], "--json: no such directory"),
    ],
)
def test_a_check_that_cannot_run_says_so_in_a_line(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text("raise SystemExit(3)", "utf-8")
    with pytest.raises(SystemExit) as left:
        check.main(arguments)
    assert left.value.code == 2 and said in capsys.readouterr().err
