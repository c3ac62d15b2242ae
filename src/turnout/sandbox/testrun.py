"""Running the tests of a workspace, by us, and finding out how."""

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from pydantic import BaseModel, ValidationError

from turnout.core.runs import TestReport
from turnout.errors import ConfigError, ToolError
from turnout.sandbox.base import Command, CommandResult, Sandbox
from turnout.sandbox.hearing import hearing
from turnout.sandbox.inside.find import glob_expression

__all__ = [
    "USUAL_TESTS",
    "TestPaths",
    "detect_test_command",
    "list_test_files",
    "run_tests",
]

_PYTEST = "python -m pytest"
_MOST_FILES = 100_000
_MOST_TESTS = 50_000
_HEAD, _TAIL = 8 << 10, 24 << 10
_MOST_SESSIONS = 1_000
_UNDONE = frozenset({2, 3, 4})
"""Statuses of a session of pytest that was broken off, or never began."""
_BAD = ("failed", "forged")

_PYTHON_TEST = re.compile(r"(?:.*/)?(?:test_[^/]*|[^/]*_test)\.py|(?:.*/)?tests/.*\.py")
_TEST_FOLDERS = frozenset({"test", "tests", "__tests__", "spec", "specs"})
_DATA_FOLDERS = frozenset(
    {"fixtures", "__fixtures__", "testdata", "test_data", "test-data", "__snapshots__"}
)
_HELPER_FOLDERS = frozenset({"testing", "testutils", "test_utils"})
_TEST_NAMES = re.compile(
    r"test_.*\.py|.*_tests?\.py|tests?\.py|conftest\.py|pytest\.ini|\.pytest\.ini"
    r"|.*_test\.(?:go|rb|exs|cc|cpp|c|dart)|test_.*\.rb|.*_spec\.rb|.*\.(?:test|spec)\.[cm]?[jt]sx?"
    r"|.*Tests?\.(?:java|kt|scala|php|cs|swift)|.*IT\.java"
)
_MAKE_TARGET = re.compile(r"^test\s*:(?!=)", re.MULTILINE)
_NPM_PLACEHOLDER = "no test specified"

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

_APART = re.compile(r"[;&|\n]+")
_PREPARES = re.compile(r"\s*(?:(?:export|ulimit|cd|set|unset)\b.*)?")
_RUNS_PYTEST = re.compile(
    r"\s*(?:\w+=\S*\s+)*(?:(?:\S*/)?python[\d.]*\s+(?:\S+\s+)*?-m\s+)?(?:\S*/)?pytest\b"
)


class _Line(BaseModel):
    """One line of what our pytest plugin tells, or of who hears it that a session is there."""

    started: int | None = None
    id: str = ""
    outcome: str = ""
    finished: int | None = None
    taken: bool = False


@dataclass(frozen=True, slots=True)
class TestPaths:
    """Which paths of a repository are those of tests, or of what steers them."""

    __test__ = False

    patterns: tuple[str, ...] = ()
    """Globs as `Sandbox.list` takes them, or folders with a slash at the end.

    Without any it is the usual names of files and folders that count.
    """

    def match(self, path: str) -> bool:
        """Say whether a path, relative to the repository, is one of them."""
        if self.patterns:
            return any(re.match(_expression(pattern), path) for pattern in self.patterns)
        pure = PurePosixPath(path)
        in_folder = any(part in _TEST_FOLDERS for part in pure.parts[:-1])
        return in_folder or _TEST_NAMES.fullmatch(pure.name) is not None

    def serve(self, path: str) -> bool:
        """Say whether a file that exists is a test or what tests rely on: their data and helpers.

        Patterns take the place of all of that. A folder of helpers counts at the top alone: below
        a package it may be part of what is tested.
        """
        if self.patterns or self.match(path):
            return self.match(path)
        folders = PurePosixPath(path).parts[:-1]
        return folders[:1] != () and (
            folders[0] in _HELPER_FOLDERS or not _DATA_FOLDERS.isdisjoint(folders)
        )

    def check(self) -> None:
        """Raise `ConfigError` where a pattern is none."""
        for pattern in self.patterns:
            try:
                re.compile(_expression(pattern))
            except re.error as error:
                raise ConfigError(
                    f"{pattern!r} is no pattern of paths: {error}.",
                    mend="Write globs such as `tests/**` or `*_check.py`.",
                ) from None


USUAL_TESTS: Final = TestPaths()


def _expression(pattern: str) -> str:
    return glob_expression(f"{pattern}**" if pattern.endswith("/") else pattern)


async def list_test_files(sandbox: Sandbox, paths: TestPaths = USUAL_TESTS) -> tuple[str, ...]:
    """Return the files of the workspace that are tests or serve them, sorted."""
    listing = await sandbox.list(limit=_MOST_FILES)
    return tuple(path for path in listing.paths if paths.serve(path))


async def detect_test_command(sandbox: Sandbox) -> str | None:
    """Return the shell command that runs the workspace's tests; None where none is found.

    Tests for pytest win over a `test` script of `package.json`, and that over a `test` target of
    a makefile.
    """
    paths = (await sandbox.list(limit=_MOST_FILES)).paths
    if any(_PYTHON_TEST.fullmatch(path) for path in paths):
        return _PYTEST
    if "package.json" in paths and _has_test_script(await _text(sandbox, "package.json")):
        return "npm test"
    for name in ("GNUmakefile", "makefile", "Makefile"):
        if name in paths and _MAKE_TARGET.search(await _text(sandbox, name)):
            return "make test"
    return None


async def _text(sandbox: Sandbox, path: str) -> str:
    try:
        return (await sandbox.read(path)).data.decode(errors="replace")
    except ToolError:
        return ""


def _has_test_script(text: str) -> bool:
    try:
        package = json.loads(text)
    except (ValueError, RecursionError):
        return False
    scripts = package.get("scripts") if isinstance(package, dict) else None
    script = scripts.get("test") if isinstance(scripts, dict) else None
    return isinstance(script, str) and bool(script.strip()) and _NPM_PLACEHOLDER not in script


async def run_tests(
    sandbox: Sandbox, command: str, *, selector: str = "", timeout: float
) -> TestReport:
    """Run the tests with a shell command and report each test where pytest runs them.

    `selector` is split like a shell line would be and appended as arguments: node ids, paths or
    options. Paths take the place of those that a command of pytest names. What became of each test
    comes from a plugin in `/venv`, by way of a process that the tests do not own, never from
    printed text; for other runners the exit status judges. One call at a time for each sandbox.
    """
    words = _words(selector)
    line = f"{command.strip()}{_arguments(command, words)}"
    chosen = json.dumps(words).encode()
    sessions = 1 if _is_one_session(line) else _MOST_SESSIONS
    async with hearing(sandbox, chosen, sessions=sessions, timeout=timeout) as heard:
        result = await sandbox.run(
            Command((), f"exec 2>&1\n{line}", timeout=timeout, head=_HEAD, tail=_TAIL)
        )
    return _report(line, bool(words), result, [*_lines(heard.lines)])


def _is_one_session(line: str) -> bool:
    """Say whether a line starts pytest once and nothing else that could start it.

    Then no other session is heard, whoever says that it is one.
    """
    doing = [part for part in _APART.split(line) if not _PREPARES.fullmatch(part)]
    return len(doing) == 1 and _RUNS_PYTEST.match(doing[0]) is not None


def _words(selector: str) -> list[str]:
    try:
        return shlex.split(selector)
    except ValueError:
        return [selector]


def _arguments(command: str, words: Sequence[str]) -> str:
    if not words:
        return ""
    first = command.split()[0] if command.split() else ""
    if first == "make":
        raise ToolError(
            f"`{command}` runs all tests; single ones cannot be chosen.",
            mend="Leave the selection out.",
        )
    separator = " --" if first in ("npm", "pnpm") else ""
    return f"{separator} {shlex.join(words)}"


def _lines(told: Sequence[bytes]) -> Iterable[_Line]:
    for line in told[: 3 * _MOST_TESTS]:
        try:
            yield _Line.model_validate_json(line)
        except ValidationError:
            continue


def _report(line: str, selected: bool, result: CommandResult, lines: list[_Line]) -> TestReport:
    outcomes = _outcomes(lines)
    counted = Counter(outcomes.values())
    forged = _named("forged", outcomes)
    sessions = sum(told.started is not None for told in lines)
    exited = result.exit.reason == "exited"
    cut_short = exited and _cut_short(lines, sessions, result.exit.code)
    code = result.exit.code if exited and not cut_short else None
    ran = counted["passed"] + counted["failed"] + len(forged) > 0
    output = _shown(result, cut_short=cut_short)
    if forged:
        output += f"\n[copies of tests that must fail were reported as passed: {len(forged)}]"
    return TestReport(
        command=line,
        exit_code=code,
        passed=_named("passed", outcomes),
        failed=_named("failed", outcomes) + forged,
        seconds=result.exit.wall_seconds,
        output=output,
        timed_out=result.exit.reason == "timeout",
        found=ran or not _nothing_found(line, selected, result, sessions, code),
    )


def _outcomes(lines: list[_Line]) -> dict[str, str]:
    """Return what became of each test: its worst, and nothing better from a later session.

    Nobody says anything good of the tests of a file that could not be got into, nor of any after a
    session that was broken off.
    """
    outcomes: dict[str, str] = {}
    settled: frozenset[str] = frozenset()
    broken_off = False
    for told in lines:
        name = told.id[:1_000]
        if told.started is not None or told.finished is not None:
            settled = frozenset(outcomes)
            broken_off = broken_off or told.finished in _UNDONE
        elif name:
            stays = broken_off or name in settled or outcomes.get(name) in _BAD
            if told.outcome in _BAD or not stays:
                outcomes[name] = told.outcome
    shut = {name for name in outcomes if "::" not in name}
    for name in [*outcomes]:
        if outcomes[name] == "passed" and name.partition("::")[0] in shut and "::" in name:
            del outcomes[name]
    return outcomes


def _cut_short(lines: list[_Line], sessions: int, code: int | None) -> bool:
    """Say whether a session vanished, be it before it could tell that it started."""
    vanished = not sessions and code == 0 and any(told.taken for told in lines)
    return vanished or sessions > sum(told.finished is not None for told in lines)


def _named(outcome: str, outcomes: dict[str, str]) -> tuple[str, ...]:
    return tuple(name for name, found in outcomes.items() if found == outcome)[:_MOST_TESTS]


def _nothing_found(
    line: str, selected: bool, result: CommandResult, sessions: int, code: int | None
) -> bool:
    """Say whether a command of which no test was heard has found none, rather than failed."""
    if result.exit.reason == "not_started" or code == 127:
        return True
    if sessions:
        return code in (0, 5) or (code == 4 and selected)
    return code == 5 and "pytest" in line


def _shown(result: CommandResult, *, cut_short: bool) -> str:
    data, omitted = result.stdout, result.exit.stdout_omitted
    if omitted:
        gap = f"\n[… {omitted} bytes left out …]\n".encode()
        data = data[:_HEAD] + gap + data[_HEAD:]
    text = data.decode(errors="backslashreplace")
    text = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    text = _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    if result.exit.error:
        text += f"\n[{result.exit.error}]"
    if cut_short:
        text += "\n[the test session did not come to its end]"
    elif result.exit.reason not in ("exited", "not_started"):
        text += f"\n[ended: {result.exit.reason.replace('_', ' ')}]"
    return text
