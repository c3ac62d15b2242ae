"""Running the tests of a workspace with real pytest, npm-less machines and hostile tests."""

from pathlib import Path

import pytest
from tests.integration.workspaces import opened, shell

from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.sandbox.testrun import detect_test_command, run_tests
from turnout.testing.repositories import (
    PAGINATION_FIXED,
    PAGINATION_TEST,
    TinyRepository,
    buggy_pagination,
)

PYTEST = "python -m pytest -q"


@pytest.fixture(scope="module")
def driver(sandbox_state: Path) -> BubblewrapDriver:
    """One driver on the state folder of all tests."""
    return BubblewrapDriver(sandbox_state)


async def test_each_test_is_reported_before_and_after_a_fix(driver, tmp_path):
    """Node ids come back by outcome, and nothing is left in the workspace but the fix."""
    repository = buggy_pagination(tmp_path / "source")
    async with opened(driver, repository) as sandbox:
        command = await detect_test_command(sandbox)
        assert command is not None
        before = await run_tests(sandbox, command, timeout=60)
        assert (before.failed, len(before.passed)) == ((PAGINATION_TEST,), 2)
        assert (before.found, before.exit_code, before.ok) == (True, 1, False)
        await sandbox.write("pages.py", PAGINATION_FIXED.encode())
        after = await run_tests(sandbox, command, timeout=60)
        assert (after.failed, len(after.passed), after.ok) == ((), 3, True)
        assert await shell(sandbox, "ls -A /tmp/turnout-report 2>&1 || true") != ""
        assert [file.path for file in (await sandbox.diff()).files] == ["pages.py"]


@pytest.mark.parametrize(
    "command", ["PYTHONPATH=. pytest -q", "cd tests && PYTEST_ADDOPTS=-q pytest", "make check"]
)
async def test_a_pytest_that_is_started_any_other_way_reports_too(driver, tmp_path, command):
    """Environment, folder and wrappers of the command do not matter."""
    repository = buggy_pagination(tmp_path / "source")
    repository.commit("make", {"Makefile": "check:\n\tpytest -q\n"})
    async with opened(driver, repository) as sandbox:
        report = await run_tests(sandbox, command, timeout=60)
    assert (len(report.passed), len(report.failed)) == (2, 1)


async def test_a_selector_chooses_and_cannot_command(driver, tmp_path):
    """Chosen tests alone run; what the shell would take as a command is an argument."""
    repository = buggy_pagination(tmp_path / "source")
    async with opened(driver, repository) as sandbox:
        one = await run_tests(sandbox, PYTEST, selector=PAGINATION_TEST, timeout=60)
        assert (one.passed, one.failed) == ((), (PAGINATION_TEST,))
        none = await run_tests(sandbox, PYTEST, selector="tests/none.py", timeout=60)
        assert not none.found
        await run_tests(sandbox, PYTEST, selector="; touch marker; $(touch marker)", timeout=60)
        assert await shell(sandbox, "ls marker 2>/dev/null || true") == ""


@pytest.mark.parametrize(
    "command", [f"{PYTEST} tests", f"{PYTEST} -o addopts= . tests -k 'not absent'"]
)
async def test_what_is_chosen_takes_the_place_of_the_paths_that_a_command_names(
    driver, tmp_path, command
):
    """Else the whole suite would run for one test; options are kept, and all tests run without."""
    repository = buggy_pagination(tmp_path / "source")
    async with opened(driver, repository) as sandbox:
        one = await run_tests(sandbox, command, selector=PAGINATION_TEST, timeout=60)
        assert (one.passed, one.failed) == ((), (PAGINATION_TEST,))
        few = await run_tests(sandbox, command, selector="-k last", timeout=60)
        everything = await run_tests(sandbox, command, timeout=60)
    assert (len(everything.passed), len(everything.failed)) == (2, 1)
    assert 0 < len(few.passed) + len(few.failed) < 3


HOSTILE = {
    "leaves": "import os\nos._exit(0)\n",
    "exits": "import sys\nsys.exit(0)\n",
    "does not import": "import nothing_of_this_name\n",
    "is no Python": "def\n",
}


@pytest.mark.parametrize("module", HOSTILE.values(), ids=HOSTILE)
async def test_a_module_that_cannot_be_collected_is_never_a_pass(driver, tmp_path, module):
    """A session that ends early, whatever its exit status, has not passed."""
    files = {"test_a.py": "def test_a():\n    pass\n", "test_b.py": module}
    async with opened(driver, TinyRepository(tmp_path / "source", files)) as sandbox:
        report = await run_tests(sandbox, PYTEST, timeout=60)
    assert report.found
    assert not report.ok


async def test_an_exit_status_that_was_made_up_is_seen_through(driver, tmp_path):
    """A plugin that turns failure into success does not change what each test reported."""
    conftest = "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"
    files = {"conftest.py": conftest, "test_a.py": "def test_a():\n    assert 0\n"}
    async with opened(driver, TinyRepository(tmp_path / "source", files)) as sandbox:
        report = await run_tests(sandbox, PYTEST, timeout=60)
    assert report.failed == ("test_a.py::test_a",)
    assert not report.ok


async def test_tests_that_run_tests_report_for_themselves_alone(driver, tmp_path):
    """A pytest within a test is the test's own business."""
    inner = "import subprocess, sys\n\ndef test_outer(tmp_path):\n"
    inner += "    (tmp_path / 'test_inner.py').write_text('def test_inner(): assert 0')\n"
    inner += "    done = subprocess.run([sys.executable, '-m', 'pytest', tmp_path])\n"
    inner += "    assert done.returncode == 1\n"
    pytester = "pytest_plugins = ['pytester']\n\ndef test_own(pytester):\n"
    pytester += "    pytester.makepyfile('def test_inner(): assert 0')\n"
    pytester += "    pytester.runpytest().assert_outcomes(failed=1)\n"
    files = {"test_a.py": inner, "test_b.py": pytester}
    async with opened(driver, TinyRepository(tmp_path / "source", files)) as sandbox:
        report = await run_tests(sandbox, PYTEST, timeout=60)
    assert report.passed == ("test_a.py::test_outer", "test_b.py::test_own"), report.output
    assert report.ok


async def test_a_test_without_end_is_ended_and_what_passed_is_kept(driver, tmp_path):
    """The time-out is named, and the tests before it are reported."""
    code = "def test_a():\n    pass\n\ndef test_b():\n    while True:\n        pass\n"
    async with opened(driver, TinyRepository(tmp_path / "source", {"test_a.py": code})) as sandbox:
        report = await run_tests(sandbox, PYTEST, timeout=4)
        assert report.timed_out
        assert report.exit_code is None
        assert report.passed == ("test_a.py::test_a",)
        assert "timeout" in report.output
        assert await shell(sandbox, "echo alive") == "alive"


async def test_a_test_that_asks_reads_the_end_of_its_input(driver, tmp_path):
    """Nobody answers, and nothing hangs."""
    code = "import sys\n\ndef test_a():\n    assert sys.stdin.read() == ''\n"
    async with opened(driver, TinyRepository(tmp_path / "source", {"test_a.py": code})) as sandbox:
        report = await run_tests(sandbox, f"{PYTEST} -s", timeout=60)
    assert report.ok, report.output


async def test_a_repository_without_tests_finds_none(driver, tmp_path):
    """No command is detected; pytest by hand finds nothing, and that is no pass."""
    async with opened(driver, TinyRepository(tmp_path / "source", {"a.py": ""})) as sandbox:
        assert await detect_test_command(sandbox) is None
        report = await run_tests(sandbox, PYTEST, timeout=60)
    assert not report.found
    assert not report.ok


async def test_another_runner_is_judged_by_its_status(driver, tmp_path):
    """A makefile's test target passes and fails by its exit status."""
    makefile = "test:\n\t@printf '\\033[32mran\\033[0m\\n'; test ! -e broken\n"
    async with opened(
        driver, TinyRepository(tmp_path / "source", {"Makefile": makefile})
    ) as sandbox:
        command = await detect_test_command(sandbox)
        assert command == "make test"
        good = await run_tests(sandbox, command, timeout=60)
        assert (good.ok, good.output) == (True, "ran\n")
        await sandbox.write("broken", b"")
        assert not (await run_tests(sandbox, command, timeout=60)).ok
