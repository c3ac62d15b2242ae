"""Commits that may become evaluation items, found by reading history alone."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from turnout.evals.instances.clone import Change, Clone, Commit
from turnout.evals.instances.mined import TestsOfFix, tests_of
from turnout.evals.mine.reasons import Dropped
from turnout.evals.mine.size import bucket, changed_lines
from turnout.evals.mine.titles import reads_like_a_fix, title_of
from turnout.sandbox.testrun import USUAL_TESTS, TestPaths

__all__ = ["Candidate", "Looked", "Rules", "look_through", "suite_paths"]

_PAGE: Final = 500
_MOST_SOURCE: Final = 1 << 20
_MOST_HINTS: Final = 20_000
_ASIDE: Final = frozenset(
    {"doc", "docs", "example", "examples", "benchmark", "benchmarks", "bench", "scripts", "tools"}
)
_CONTROL: Final = frozenset(
    {
        "conftest.py",
        "setup.py",
        "setup.cfg",
        "pyproject.toml",
        "tox.ini",
        "pytest.ini",
        "noxfile.py",
    }
)
_WORDS: Final = frozenset({".md", ".rst", ".txt", ".adoc"})
_TEST_FOLDERS: Final = frozenset({"test", "tests", "testing"})


@dataclass(frozen=True, slots=True)
class Rules:
    """Which commits are worth a look at their tests."""

    max_lines: int = 80
    """Lines of code that a fix changes."""
    max_sources: int = 6
    max_files: int = 30
    any_title: bool = False
    """Whether commits count that do not read like a fix."""
    tests: TestPaths = field(default=USUAL_TESTS)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A commit that changes little source, and a test or the data of one."""

    commit: Commit
    title: str
    hints: str
    """What else the commit says."""
    sources: tuple[str, ...]
    patch: str
    """Diff of the sources, and of data that is neither test nor documentation."""
    tests: TestsOfFix
    test_patch: str
    """Diff of all its tests, empty where it is no text."""
    lines: int

    @property
    def base(self) -> str:
        """The parent that it is a change to."""
        return self.commit.parents[0]

    @property
    def kind(self) -> str:
        """`merge` where it brings in other commits, else `commit`."""
        return "merge" if len(self.commit.parents) > 1 else "commit"

    @property
    def difficulty(self) -> str:
        """Class of its size."""
        return bucket(self.lines)

    @property
    def test_files(self) -> tuple[str, ...]:
        """The Python files with tests that it changes; empty where it changes their data alone."""
        texts = self.tests.texts
        return tuple(p for p, text in texts.items() if text is not None and _holds_tests(p))

    @property
    def suite(self) -> tuple[str, ...]:
        """What to run for all tests beside those that it changes."""
        texts = self.tests.texts
        return suite_paths(self.test_files or [p for p in texts if texts[p] is not None])


@dataclass(frozen=True, slots=True)
class Looked:
    """A commit of the main line, and what it looks like."""

    commit: Commit
    title: str
    found: Candidate | Dropped


async def look_through(
    clone: Clone, start: str, rules: Rules, *, since: str = "", known: frozenset[str] = frozenset()
) -> AsyncGenerator[Looked, None]:
    """Yield every commit of the main line from `start` on, newest first, but for `known` ones."""
    skip = 0
    while True:
        page = await clone.line(start, skip=skip, count=_PAGE, since=since)
        for commit in page:
            if commit.parents and commit.name not in known:
                yield await _look(clone, commit, rules)
        if not page:
            return
        skip += len(page)


async def _look(clone: Clone, commit: Commit, rules: Rules) -> Looked:
    title = title_of(commit)
    if not title and len(commit.parents) > 1:
        inner = await clone.line(commit.parents[1], skip=0, count=1)
        title = title_of(commit, inner[0].subject if inner else "")
    if not title or not (rules.any_title or reads_like_a_fix(title)):
        return Looked(commit, title, Dropped("not_a_fix"))
    changes = await clone.changes(commit.parents[0], commit.name)
    if changes is None:
        return Looked(commit, title, Dropped("many_files"))
    tests = tuple(each.path for each in changes if rules.tests.serve(each.path))
    rest = tuple(each for each in changes if each.path not in tests)
    sources = tuple(each.path for each in rest if _is_source(each.path))
    if dropped := _by_files(changes, sources, tests, rules):
        return Looked(commit, title, dropped)
    lines = await _lines(clone, commit, sources)
    if lines is None:
        return Looked(commit, title, Dropped("odd_files"))
    if lines == 0 or lines > rules.max_lines:
        reason = Dropped("too_large", f"{lines} lines") if lines else Dropped("no_code")
        return Looked(commit, title, reason)
    data = tuple(each.path for each in rest if _is_data(each.path))
    return Looked(commit, title, await _read(clone, commit, title, (sources, data, tests, lines)))


def _by_files(
    changes: Sequence[Change], sources: Sequence[str], tests: Sequence[str], rules: Rules
) -> Dropped | None:
    if not sources:
        return Dropped("no_source")
    kept = [each.path for each in changes if each.status != "D" and each.path in tests]
    if not any(_holds_tests(path) or not path.endswith(".py") for path in kept):
        return Dropped("no_test")
    if not all(each.regular for each in changes):
        return Dropped("odd_files")
    if len(sources) > rules.max_sources or len(changes) > rules.max_files:
        return Dropped("many_files", f"{len(sources)} of source, {len(changes)} in all")
    return None


async def _lines(clone: Clone, commit: Commit, sources: Sequence[str]) -> int | None:
    total = 0
    for path in sources:
        old = await clone.text(commit.parents[0], path) or ""
        new = await clone.text(commit.name, path) or ""
        diff = await clone.diff(commit.parents[0], commit.name, [path], context=0)
        if diff is None or max(len(old), len(new)) > _MOST_SOURCE:
            return None
        total += changed_lines(diff, old, new)
    return total


async def _read(
    clone: Clone,
    commit: Commit,
    title: str,
    parts: tuple[Sequence[str], Sequence[str], Sequence[str], int],
) -> Candidate | Dropped:
    sources, data, tests, lines = parts
    base = commit.parents[0]
    patch = await clone.diff(base, commit.name, [*sources, *data])
    files = await tests_of(clone, base, commit.name, tests)
    test_patch = await clone.diff(base, commit.name, tests)
    if patch is None or files is None:
        return Dropped("odd_files")
    said = f"{commit.subject}\n\n{commit.body}".strip()
    hints = "" if said == title else said[:_MOST_HINTS]
    return Candidate(commit, title, hints, tuple(sources), patch, files, test_patch or "", lines)


def suite_paths(tests: Sequence[str]) -> tuple[str, ...]:
    """Return what to run for all tests beside these: the folders of tests that they lie in.

    Files with a name that pytest does not look for are named as well.
    """
    found: dict[str, None] = {}
    for path in tests:
        parts = PurePosixPath(path).parts
        at = next((n for n, part in enumerate(parts[:-1]) if part in _TEST_FOLDERS), None)
        usual = parts[-1].startswith("test_") or parts[-1].endswith("_test.py")
        if at is not None:
            found["/".join(parts[: at + 1])] = None
        elif len(parts) > 1:
            found["/".join(parts[:-1])] = None
        if path.endswith(".py") and ((at is None and len(parts) == 1) or not usual):
            found[path] = None
    return tuple(found)


def _holds_tests(path: str) -> bool:
    name = PurePosixPath(path).name
    return name.endswith(".py") and name not in ("conftest.py", "__init__.py")


def _is_source(path: str) -> bool:
    pure = PurePosixPath(path)
    return pure.suffix == ".py" and pure.name not in _CONTROL and _is_of_the_program(pure)


def _is_data(path: str) -> bool:
    pure = PurePosixPath(path)
    steers = pure.name in _CONTROL or pure.suffix in _WORDS or pure.suffix == ".py"
    return not steers and len(pure.parts) > 1 and _is_of_the_program(pure)


def _is_of_the_program(path: PurePosixPath) -> bool:
    first = path.parts[0]
    return not (len(path.parts) > 1 and (first in _ASIDE or first.startswith(".")))
