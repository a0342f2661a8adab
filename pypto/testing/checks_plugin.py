"""pytest plugin: ``pytest --pypto-checks=all`` runs every test with the checks on; a finding fails the test.

Entry point ``pytest11``: ``pypto_checks = pypto.testing.checks_plugin``.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer ``--pypto-checks``."""
    group = parser.getgroup("pypto")
    group.addoption(
        "--pypto-checks",
        default=None,
        metavar="KINDS",
        help="run every test with these checks on: 'cheap', 'all' or kinds with commas between them",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse kinds that do not exist before any test runs."""
    kinds = config.getoption("--pypto-checks", default=None)
    if kinds and kinds not in ("none", "cheap", "all"):
        from pypto.sim.checks.selection import Checks

        try:
            Checks.of(frozenset(kinds.split(",")))
        except ValueError as error:
            raise pytest.UsageError(f"--pypto-checks: {error}") from None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Check the launches of one test; findings that the test itself caught as an error are its own business.

    A test that fails by itself has its findings in a section of the report: they are often why.
    """
    kinds = item.config.getoption("--pypto-checks", default=None)
    if not kinds:
        return (yield)
    from pypto.sim.checks.forced import forced, taken

    with forced(kinds, "collect"):
        try:
            result = yield
        except Exception:
            if found := taken():
                item.add_report_section("call", "pypto checks", "\n".join(map(str, found)))
            raise
        findings = taken()
    if findings:
        pytest.fail("\n".join(str(finding) for finding in findings), pytrace=False)
    return result
