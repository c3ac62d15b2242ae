"""Localising in a real sandbox with real pytest: the tracer needs both."""

from pathlib import Path

import pytest
from tests.integration.workspaces import opened, shell

from turnout.agent.repair.tracing.coverage import trace
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.sandbox.testrun import run_tests
from turnout.testing.repositories import TinyRepository

CODE = """\
def common(x):
    return Price(x)

def wrong(x):
    if x > 1:
        return common(x - 1)
    return common(x)

class Price(int):
    def __repr__(self):
        return shown(self)

def shown(x):
    return str(int(x))
"""
TESTS = """\
from importlib import import_module

wrong = import_module("shop.prices").wrong

def test_one(one):
    assert wrong(one) == 1

def test_two():
    assert wrong(2) == 2
"""
FILES = {
    "src/shop/__init__.py": "",
    "src/shop/prices.py": CODE,
    "tests/conftest.py": "import pytest\n\n@pytest.fixture\ndef one():\n    return 1\n",
    "tests/test_prices.py": TESTS,
}


@pytest.fixture(scope="module")
def driver(sandbox_state: Path) -> BubblewrapDriver:
    """One driver on the state folder of all tests."""
    return BubblewrapDriver(sandbox_state)


async def test_lines_that_the_failing_test_alone_runs_are_found(
    driver: BubblewrapDriver, tmp_path: Path
) -> None:
    """Whatever starts pytest; and nothing of the tracer is left behind."""
    repository = TinyRepository(tmp_path / "source", FILES)
    repository.commit("make", {"Makefile": "test:\n\tpython -m pytest -q\n"})
    async with opened(driver, repository) as sandbox:
        for command in ("python -m pytest", "make test"):
            before = await run_tests(sandbox, command, timeout=60)
            assert before.failed == ("tests/test_prices.py::test_two",)
            lines = (await trace(sandbox, command, before, 60)).lines
            # Line 6 is the fault; 2 and 5 are run by both; 11 and 14 only tell of the failure.
            shared = pytest.approx(0.707, abs=0.001)
            assert lines["src/shop/prices.py"] == {2: shared, 5: shared, 6: 1.0}
        assert await shell(sandbox, "ls -d /tmp/turnout-trace 2>/dev/null || true") == ""
        assert not (await sandbox.diff()).files


async def test_of_a_command_that_names_a_folder_the_chosen_tests_alone_are_traced(
    driver: BubblewrapDriver, tmp_path: Path
) -> None:
    """A suite of minutes would cost minutes more; a passing test elsewhere would blur the lines."""
    other = "from shop.prices import wrong\n\ndef test_other():\n    assert wrong(1) == 1\n"
    other += "    wrong(2)\n"
    repository = TinyRepository(tmp_path / "source", {**FILES, "tests/test_other.py": other})
    async with opened(driver, repository) as sandbox:
        before = await run_tests(sandbox, "python -m pytest tests", timeout=60)
        assert "tests/test_other.py::test_other" in before.passed
        lines = (await trace(sandbox, "python -m pytest tests", before, 60)).lines
    assert lines["src/shop/prices.py"][6] == 1.0
