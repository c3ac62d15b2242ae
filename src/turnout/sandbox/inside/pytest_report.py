"""A pytest plugin that tells us what became of each test, one JSON object a line.

It tells a process of ours that listens at a socket in the folder `NAME` among the temporary files.
It connects when it is imported, which is before any code of the repository is, and is given a word
that each line must begin with. One session is heard at a time: one that starts meanwhile was
started by a test, and is turned away. Each line has one of `{"started": …}`,
`{"id": …, "outcome": …}` and `{"finished": exit status}`; nothing counts after the last.

Tests that were chosen by arguments, which lie in the same folder, run alone: what a command names
beside them, such as the folder of all tests, is left out.

A test that failed and is then reported as passed gives away whoever rewrites reports. So do, at
the end, twins of a test: of the same name, bound to fail in the ways that tests do, and reported as
passed.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import socket
import tempfile
from collections.abc import Callable, Generator, Iterable
from typing import Any

import pytest
from _pytest.fixtures import FuncFixtureInfo
from _pytest.runner import runtestprotocol

__all__ = [
    "NAME",
    "PARENT",
    "Line",
    "Reporter",
    "chosen_of",
    "connected",
    "failing",
    "kinds_for",
    "passes",
    "pytest_load_initial_conftests",
    "twin_of",
]

NAME = "turnout-report"
PARENT = "/tmp"
"""Where a sandbox with walls has its temporary files, whatever a command says."""
SOCKET = "say"
CHOSEN = "chosen"
MOST_TWINS = 2_000
PATIENCE = 10.0
TOLD = "This copy of a test must fail."
KINDS: tuple[type[BaseException], ...] = (
    *(pytest.fail.Exception, TypeError, ValueError, AttributeError, KeyError, IndexError),
    *(NameError, ImportError, NotImplementedError, ZeroDivisionError, RuntimeError, OSError),
    *(RecursionError, UnicodeDecodeError, StopIteration, TimeoutError, Exception),
)
"""What tests fail with beside a plain `AssertionError`."""


class Line:
    """A connection to who hears us."""

    def __init__(self, folder: str, connection: socket.socket, word: bytes) -> None:
        self.folder = folder
        self._connection = connection
        self._word = word

    def tell(self, facts: dict[str, object]) -> None:
        """Tell something; where nobody hears it any more the tests go on all the same."""
        with contextlib.suppress(OSError):
            self._connection.sendall(self._word + b" " + json.dumps(facts).encode() + b"\n")

    def close(self) -> None:
        """Say nothing more, nor anybody who finds this."""
        self._word = b""


def connected() -> Line | None:
    """Connect to who hears us; None where nobody does, or another session is heard."""
    for parent in (PARENT, tempfile.gettempdir()):
        folder = os.path.join(parent, NAME)
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with contextlib.suppress(OSError):
            # The path of a socket must be short, and this one is whatever the folder is called.
            place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                connection.settimeout(PATIENCE)
                connection.connect(f"/proc/self/fd/{place}/{SOCKET}")
                word = connection.recv(64).strip()
                connection.settimeout(None)
            finally:
                os.close(place)
            if word:
                return Line(folder, connection, word)
        connection.close()
    return None


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

    def __init__(self, line: Line) -> None:
        self._line = line
        self._passed: set[str] = set()
        self._made: dict[tuple[str, str], str] = {}

    def _write(self, facts: dict[str, object]) -> None:
        self._line.tell(facts)

    def pytest_configure(self, config: pytest.Config) -> None:
        """Tell that a session starts, and let it run what was chosen alone."""
        config.args = chosen_of(self._line.folder, config.args)
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
        """Tell of a file that cannot be collected, or that leaves itself out."""
        if report.outcome != "passed":
            self._write({"id": report.nodeid, "outcome": report.outcome})

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
        self._line.close()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Start to report, where somebody hears it."""
    if LINES:
        early_config.pluginmanager.register(Reporter(LINES.pop()), "turnout_reporter")


LINES = [line for line in (connected(),) if line is not None]
"""Empty as soon as a session has begun to report."""
