"""Facts of a mined fix, made whole from a clone: the tests, the fix, and the task in words."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from turnout.errors import ConfigError, RepositoryError
from turnout.evals.instances.clone import Clone
from turnout.evals.instances.rows import Row

__all__ = ["Derived", "TestsOfFix", "derive", "statement", "tests_of", "whole_suite"]

_SHOWN_TESTS = 2
_SHOWN_ERROR = 300


@dataclass(frozen=True, slots=True)
class TestsOfFix:
    """Test files as a fix leaves them."""

    __test__ = False

    texts: Mapping[str, str | None]
    """By path; None: the fix removes the file."""
    patch: str
    """Diff of those that are no text."""


@dataclass(frozen=True, slots=True)
class Derived:
    """What facts and a clone give together."""

    statement: str
    patch: str
    """The fix, without its tests."""
    tests: TestsOfFix
    command: str
    base_commit: str


async def derive(row: Row, clone: Clone, place: str) -> Derived:
    """Read fix and tests from the clone; `ConfigError` names the place where they do not fit."""
    base = await _commit(clone, "base_commit", row.base_commit, place)
    fix = await _commit(clone, "fix_commit", row.fix_commit, place)
    try:
        patch = await clone.diff(base, fix, row.src_files)
        tests = await tests_of(clone, base, fix, row.test_files)
        there = await clone.paths(fix)
    except RepositoryError as error:
        raise ConfigError(f"{place}: {error.message}", mend=error.mend) from None
    if patch is None or tests is None:
        raise ConfigError(f"{place}: fix_commit: the fix is longer than 4 MiB, or no text.")
    if row.src_files and not patch:
        raise ConfigError(f"{place}: src_files: the fix changes none of them.")
    present = tuple(each for each in row.test_args if _is_there(each, there))
    return Derived(
        row.problem_statement or statement(row.title, row.fail_to_pass),
        patch,
        tests,
        row.test_command or whole_suite(present, row.test_opts),
        base,
    )


async def _commit(clone: Clone, field: str, revision: str, place: str) -> str:
    try:
        return await clone.commit_of(revision)
    except RepositoryError as error:
        raise ConfigError(f"{place}: {field}: {error.message}", mend=error.mend) from None


async def tests_of(clone: Clone, base: str, fix: str, paths: Sequence[str]) -> TestsOfFix | None:
    """Return test files as the fix leaves them; None where one is too long."""
    there = await clone.paths(fix)
    texts: dict[str, str | None] = {}
    other: list[str] = []
    for path in paths:
        text = await clone.text(fix, path) if path in there else None
        if text is None and path in there:
            other.append(path)
        else:
            texts[path] = text
    patch = await clone.diff(base, fix, other)
    return None if patch is None else TestsOfFix(texts, patch)


def statement(title: str, failing: Sequence[str], errors: Mapping[str, str] | None = None) -> str:
    """Return a task in words: what the fix says of itself, and what two of its tests say."""
    lines = [title.strip()]
    if failing:
        lines += ["", "What fails now and must pass:"]
    for test in failing[:_SHOWN_TESTS]:
        lines.append(f"- {test}")
        error = (errors or {}).get(test, "")
        if error:
            lines.append(f"    {_one_line(error)}")
    return "\n".join(lines)


def whole_suite(paths: Sequence[str], options: Sequence[str] = ()) -> str:
    """Return the shell command that runs these paths with pytest, whatever its settings add.

    Options that name plugins mean that no other plugin is loaded by itself.
    """
    words = ["python", "-m", "pytest", "-q", "-o", "addopts="]
    alone = ""
    if "-p" in options:
        alone = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 "
        words += ["-p", "turnout_report"]
    return alone + shlex.join([*words, *options, *paths])


def _is_there(path: str, there: frozenset[str]) -> bool:
    path = path.partition("::")[0].rstrip("/")
    return path in there or any(each.startswith(f"{path}/") for each in there)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_ERROR else f"{line[:_SHOWN_ERROR]}…"
