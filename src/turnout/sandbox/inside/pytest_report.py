"""A pytest plugin that tells us what became of each test, one JSON object a line.

It reports only where a key lies in the folder `NAME` among the temporary files, which it takes away
before any code of the repository is imported and puts back at the end: a session that starts
meanwhile was started by a test, and lines that others write lack the key. Each line has it beside
one of `{"started": …}`, `{"id": …, "outcome": …}` and `{"finished": exit status}`.

Tests that were chosen by arguments, which lie in the same folder, run alone: what a command names
beside them, such as the folder of all tests, is left out.

A test that failed and is then reported as passed gives away whoever rewrites reports. So do, at
the end, twins of a test: of the same name, bound to fail in the ways that tests do, and reported as
passed.
"""

from __future__ import annotations

import functools
import json
import os
import random
import tempfile
from collections.abc import Callable, Generator, Iterable
from typing import Any

import pytest
from _pytest.fixtures import FuncFixtureInfo
from _pytest.runner import runtestprotocol

__all__ = [
    "NAME",
    "PARENT",
    "Reporter",
    "chosen_of",
    "failing",
    "kinds_for",
    "passes",
    "pytest_load_initial_conftests",
    "take_key",
    "twin_of",
]

NAME = "turnout-report"
PARENT = "/tmp"
"""Where a sandbox with walls has its temporary files, whatever a command says."""
KEY = "key"
CHOSEN = "chosen"
MOST_TWINS = 2_000
TOLD = "This copy of a test must fail."
KINDS: tuple[type[BaseException], ...] = (
    *(pytest.fail.Exception, TypeError, ValueError, AttributeError, KeyError, IndexError),
    *(NameError, ImportError, NotImplementedError, ZeroDivisionError, RuntimeError, OSError),
    *(RecursionError, UnicodeDecodeError, StopIteration, TimeoutError, Exception),
)
"""What tests fail with beside a plain `AssertionError`."""


def take_key(folder: str) -> str:
    """Return the key and remove it; empty where there is none."""
    path = os.path.join(folder, KEY)
    try:
        with open(path, encoding="ascii") as file:
            key = file.read()
        os.unlink(path)
    except OSError:
        return ""
    return key


def chosen_of(folder: str, arguments: list[str]) -> list[str]:
    """Return those of pytest's paths that were chosen; all of them where none was."""
    try:
        with open(os.path.join(folder, CHOSEN), encoding="utf-8") as file:
            words = frozenset(json.load(file))
    except (OSError, ValueError, TypeError):
        return arguments
    return [argument for argument in arguments if argument in words] or arguments


def failing(kind: type[BaseException]) -> Callable[[], None]:
    """Return a test that fails with an error of this kind."""
    told = ("ascii", b"", 0, 1, TOLD) if kind is UnicodeDecodeError else (TOLD,)

    def must_fail() -> None:
        raise kind(*told)

    return must_fail


def kinds_for(items: int) -> list[list[type[BaseException]]]:
    """Return how the twins of each of so many tests fail.

    All fail plainly. Few tests have twins of each other kind as well, many one of a kind that
    nobody can tell before.
    """
    first = random.SystemRandom().randrange(len(KINDS))
    if items * len(KINDS) <= MOST_TWINS // 4:
        return [[AssertionError, *KINDS]] * items
    kinds = (KINDS[(first + number) % len(KINDS)] for number in range(items))
    return [[AssertionError, kind] for kind in kinds]


def twin_of(item: pytest.Item, kind: type[BaseException]) -> pytest.Function:
    """Return a test of the same name and file that needs nothing and fails."""
    nodeid = item.nodeid[: -len(f"::{item.name}")] or item.nodeid
    module = pytest.Module.from_parent(item.session, path=item.path, nodeid=nodeid)
    nothing = FuncFixtureInfo((), (), [], {})
    return pytest.Function.from_parent(
        module, name=item.name, callobj=failing(kind), fixtureinfo=nothing
    )


def _run_twin(item: pytest.Item, kind: type[BaseException]) -> list[pytest.TestReport]:
    return runtestprotocol(twin_of(item, kind), log=False, nextitem=None)


def passes(item: pytest.Item, kinds: Iterable[type[BaseException]]) -> bool:
    """Say whether a twin of a test is reported as passed; hooks that cannot take it are no sign.

    A hook may raise anything, and pytest catches that for us.
    """
    for kind in kinds:
        run = pytest.CallInfo.from_call(functools.partial(_run_twin, item, kind), when="call")
        reports = [] if run.excinfo else run.result
        if any(report.when == "call" and report.outcome == "passed" for report in reports):
            return True
    return False


class Reporter:
    """Writes a line as soon as something is known, so that a session cut short is told too."""

    def __init__(self, folder: str, key: str) -> None:
        self._folder = folder
        self._key = key
        self._passed: set[str] = set()
        self._made: dict[tuple[str, str], str] = {}
        path = os.path.join(folder, f"{len(os.listdir(folder))}.jsonl")
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)

    def _write(self, facts: dict[str, object]) -> None:
        os.write(self._descriptor, json.dumps({"key": self._key, **facts}).encode() + b"\n")

    def pytest_configure(self, config: pytest.Config) -> None:
        """Tell that a session starts, and let it run what was chosen alone."""
        config.args = chosen_of(self._folder, config.args)
        self._write({"started": os.getpid()})

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, None]:
        """Note how a phase of a test ended when its report was made."""
        outcome = yield
        report = outcome.get_result()
        self._made[report.nodeid, report.when] = report.outcome

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell how a phase of a test ended."""
        passed = report.outcome == "passed"
        if passed and self._made.pop((report.nodeid, report.when), "") == "failed":
            self._write({"id": report.nodeid, "outcome": "forged"})
        if passed and report.when == "call":
            self._passed.add(report.nodeid)
        if not passed or report.when == "call":
            self._write({"id": report.nodeid, "outcome": report.outcome})

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Tell of a file that cannot be collected."""
        if report.outcome == "failed":
            self._write({"id": report.nodeid, "outcome": "failed"})

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Look for forged results, then tell that the session came to its end."""
        items = [item for item in getattr(session, "items", ()) if item.nodeid in self._passed]
        if len(items) > MOST_TWINS:
            items = random.SystemRandom().sample(items, MOST_TWINS)
        kinds = kinds_for(len(items))
        for number, item in enumerate(items):
            if passes(item, kinds[number]):
                self._write({"id": item.nodeid, "outcome": "forged"})
        self._write({"finished": int(exitstatus)})
        with open(os.path.join(self._folder, KEY), "w", encoding="ascii") as file:
            file.write(self._key)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Start to report, where we are asked to."""
    for parent in (PARENT, tempfile.gettempdir()):
        folder = os.path.join(parent, NAME)
        key = take_key(folder)
        if key:
            early_config.pluginmanager.register(Reporter(folder, key), "turnout_reporter")
            return
