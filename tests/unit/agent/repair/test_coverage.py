"""What the tracer's word is made into."""

import json
from dataclasses import replace

import pytest

from turnout.agent.repair.tracing.coverage import read_coverage, trace
from turnout.core.runs import TestReport
from turnout.testing.sandbox import ScriptedSandbox, result

FAILING = ("tests/test_a.py::test_x[1 2]", "tests/test_a.py")
BEFORE = TestReport("pytest", 1, ("tests/test_a.py::test_y", "b.py::z"), FAILING, 0.5, "")


def test_a_line_that_failing_tests_alone_run_is_suspected_most() -> None:
    """A line that no failing test runs is not suspected."""
    told = {"failed": 2, "passed": 7, "files": {"a.py": {"3": [2, 0], "4": [2, 6], "5": [0, 7]}}}
    found = read_coverage(json.dumps(told).encode())
    assert found.lines == {"a.py": {3: 1.0, 4: 0.5}}
    assert (found.of("a.py", 1, 9), found.of("a.py", 4, 9), found.of("b.py", 1, 9)) == (1, 0.5, 0)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[" * 100_000,
        b'{"failed": 1, "files": {"a.py": {"x": [1, 1]}}}',
        b'{"failed": 0, "files": {"a.py": {"1": [1, 1]}}}',
        b'{"failed": 1' + b"0" * 400 + b', "files": {"a.py": {"1": [1, 0]}}}',
        b'{"failed": 1, "files": {"a.py": {"1": [1, -1]}}}',
    ],
)
def test_what_the_plugin_would_not_write_counts_as_nothing(data: bytes) -> None:
    """The file was written where the tests could write."""
    assert read_coverage(data).lines == {}


async def test_failing_tests_and_those_beside_them_are_traced() -> None:
    """As arguments that no shell reads anything into; what the tests print is not looked at."""
    sandbox = ScriptedSandbox({})
    sandbox.answer("trace.json", result(b'{"failed": 1, "files": {"a.py": {"1": [1, 0]}}}'))
    found = await trace(sandbox, "pytest -q", BEFORE, 60.0)
    assert found.lines == {"a.py": {1: 1.0}}
    (run,) = (command for command in sandbox.commands if command.shell)
    assert run.shell == "pytest -q 'tests/test_a.py::test_x[1 2]' tests/test_a.py::test_y"
    assert run.env["PYTEST_ADDOPTS"] == "-p turnout_trace"


async def test_a_makefile_takes_no_tests_and_runs_them_all() -> None:
    """The plugin is asked for all the same."""
    sandbox = ScriptedSandbox({})
    await trace(sandbox, "make test", BEFORE, 60.0)
    assert [command.shell for command in sandbox.commands if command.shell] == ["make test"]


@pytest.mark.parametrize(
    "report", [replace(BEFORE, failed=("tests/test_a.py",)), replace(BEFORE, timed_out=True)]
)
async def test_where_nothing_is_to_be_learnt_nothing_is_run(report: TestReport) -> None:
    """Other runners, files that cannot be collected, and tests that hang."""
    sandbox = ScriptedSandbox({})
    assert (await trace(sandbox, "pytest", report, 60.0)).lines == {}
    assert not sandbox.commands


async def test_passing_tests_of_the_same_class_are_traced_first() -> None:
    """They are the most telling, and not all are traced."""
    failing, near = "t.py::B::test_fails", "t.py::B::test_passes"
    passed = (*(f"t.py::A::test_{number}" for number in range(99)), near)
    sandbox = ScriptedSandbox({})
    await trace(sandbox, "pytest", replace(BEFORE, failed=(failing,), passed=passed), 60.0)
    (run,) = (command.shell for command in sandbox.commands if command.shell)
    assert run.split()[1:4] == [failing, near, "t.py::A::test_0"]
    assert "t.py::A::test_98" not in run
