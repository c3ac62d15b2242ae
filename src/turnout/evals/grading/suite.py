"""How tests are run to judge a patch: guarded, within CPU seconds, with what they need in place."""

import json
import re
import shlex
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal

from turnout.core.ids import new_run_id
from turnout.core.runs import TestReport
from turnout.errors import ToolError
from turnout.evals.grading.canary import Canary
from turnout.sandbox.base import (
    VENV,
    BaseRef,
    Command,
    Limits,
    RunTests,
    Sandbox,
    SandboxDriver,
)
from turnout.sandbox.testrun import USUAL_TESTS, TestPaths, run_tests

__all__ = ["Place", "Suite", "Way", "is_pytest", "names_files", "names_nothing", "put"]

Place = Literal["beside", "named", "nowhere"]
"""How the canary is found: as every test is, by name on the command line, or not at all."""

_PLUGIN = "turnout_report"
_MOST_PLUGINS = 50
_NAME = re.compile(r"[\w.-]{1,100}")
_LIST_TIMEOUT = 60.0
_LEAST_SECONDS = 60.0
_TIMES_LONGER = 20.0
_LIST = """
import importlib.metadata as m, json, sysconfig
paths = [sysconfig.get_path("purelib")]
found = [(e.name, e.value) for d in m.distributions(path=paths) for e in d.entry_points
         if e.group == "pytest11"]
print(json.dumps(found))
"""
_APART = re.compile(r"[;&|\n<>]")
_TAKING = frozenset({"-o", "-p", "-k", "-m", "-W", "-c", "-n", "-r", "--tb"})
"""Short options of pytest whose value is a word of its own."""


@dataclass(frozen=True, slots=True)
class Way:
    """What was found out about running the tests of an instance."""

    plugins: tuple[str, ...] | None = ()
    """Those of the environment, by name; no other is loaded. None: pytest is left as it is."""
    canary: Place = "beside"
    modules: tuple[str, ...] = ()
    """What these plugins are imported from, at the top."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Runs tests in sandboxes of their own."""

    driver: SandboxDriver
    limits: Limits
    cpu_seconds: float
    """That each process of the tests may use at most; what the clock says of a busy machine is no
    fault of a patch."""
    patience: float = 3.0
    """How many times that they may take by the clock."""
    run_tests: RunTests = field(default=run_tests)
    test_paths: TestPaths = USUAL_TESTS

    @asynccontextmanager
    async def sandbox(self, base: BaseRef) -> AsyncIterator[Sandbox]:
        """Start a fresh sandbox that reaches nothing, and close it."""
        sandbox = await self.driver.create(new_run_id(), base, self.limits)
        try:
            yield sandbox
        finally:
            await sandbox.close()

    async def run(
        self,
        sandbox: Sandbox,
        command: str,
        way: Way,
        canary: Canary | None = None,
        *,
        only: tuple[str, ...] = (),
        seed: int = 0,
        usual: float | None = None,
    ) -> TestReport:
        """Run the tests; `only` these files, for a command that is pytest's and names none.

        `seed`: of Python's hashes. `usual`: seconds that they have taken before, which many times
        over are enough.
        """
        seconds = self.cpu_seconds
        if usual is not None:
            seconds = min(seconds, max(_LEAST_SECONDS, _TIMES_LONGER * usual))
        words: list[str] = []
        if way.plugins is not None and is_pytest(command):
            # A suite that stops at its first failure would not come to all that judge.
            # Nor one that stops where a file cannot be collected, which is how tests of a new name
            # fail without the fix.
            words += ["--maxfail=0", "--continue-on-collection-errors"]
        if canary is not None:
            await put(sandbox, {canary.path: canary.text.encode()})
            words += [canary.path] * (way.canary == "named")
        words += only
        # Beside what the command names: a selector would take the place of that.
        line = f"{_opening(way, seconds, seed)}{command} {shlex.join(words)}".rstrip()
        return await self.run_tests(sandbox, line, timeout=seconds * self.patience)

    async def plugins(self, sandbox: Sandbox, command: str) -> tuple[tuple[str, str], ...]:
        """Return the plugins of the environment by name, each with the module that it is.

        Those that `command` names by itself are left out.
        """
        argv = (f"{VENV}/bin/python", "-I", "-c", _LIST)
        result = await sandbox.run(Command(argv, timeout=_LIST_TIMEOUT))
        try:
            found = [(str(name), str(value)) for name, value in json.loads(result.stdout)]
        except (ValueError, TypeError, RecursionError):
            return ()
        words = frozenset(command.split())
        return tuple(
            (name, value)
            for name, value in sorted(found)[:_MOST_PLUGINS]
            if name != _PLUGIN and _NAME.fullmatch(name) and words.isdisjoint({name, value})
        )


def _opening(way: Way, cpu_seconds: float, seed: int) -> str:
    """Return the lines of shell before the command."""
    lines = [f"export PYTHONHASHSEED={seed}"]
    if way.plugins is not None:
        # Nobody reads what is printed of a failure, and it costs more than most tests.
        options = " ".join((*(f"-p {name}" for name in (_PLUGIN, *way.plugins)), "--tb=no"))
        lines += [
            "export PYTEST_DISABLE_PLUGIN_AUTOLOAD=1",
            f"export PYTEST_ADDOPTS={shlex.quote(options)}",
        ]
    lines += [f"ulimit -t {max(1, round(cpu_seconds))} 2>/dev/null", ""]
    return "\n".join(lines)


async def put(sandbox: Sandbox, files: Mapping[str, bytes | None]) -> None:
    """Write files into the workspace; those that are None are removed. `ToolError` where not."""
    gone = tuple(path for path, data in files.items() if data is None)
    if gone and not (await sandbox.run(Command(("rm", "-f", "--", *gone)))).ok:
        raise ToolError(f"{gone[0]} could not be removed.")
    for path, data in files.items():
        if data is not None:
            await sandbox.write(path, data)


def is_pytest(command: str) -> bool:
    """Say whether more arguments at the end of a command are pytest's."""
    last = _APART.split(command.strip())[-1]
    names = {PurePosixPath(word).name for word in last.split()}
    return bool(names & {"pytest", "py.test"})


def names_files(command: str) -> bool:
    """Say whether a command of pytest names single files or tests."""
    return any(word.endswith(".py") or "::" in word for word in command.split())


def names_nothing(command: str) -> bool:
    """Say whether a command is pytest with options alone."""
    words = command.split()
    at = next((i for i, word in enumerate(words) if PurePosixPath(word).name == "pytest"), None)
    if at is None or not is_pytest(command):
        return False
    rest = iter(words[at + 1 :])
    for word in rest:
        if word in _TAKING:
            next(rest, "")
        elif not word.startswith("-"):
            return False
    return True
