"""A patch without its changes to what judges it."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from turnout.runs.verdict import controls
from turnout.sandbox.patches import parse_patch
from turnout.sandbox.testrun import USUAL_TESTS, TestPaths

__all__ = [
    "Kept",
    "added_lines",
    "judging_paths",
    "may_be_source",
    "patched_paths",
    "sources_among",
    "without_tests",
]

_COMMON_NAMES = frozenset({"test.py", "tests.py"})
"""Of tests in some repositories, and of modules that help others to test in more."""
_SECTION = re.compile(rb"^(?=diff --git )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Kept:
    """What is left of a patch, and which paths had changes that were left out."""

    diff: bytes
    paths: tuple[str, ...] = ()
    """Those that are still changed."""
    tests: tuple[str, ...] = ()
    """Test files that existed, or that are among those that judge."""
    control: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    """New test files."""

    @property
    def touched(self) -> bool:
        """Whether the patch changes what judges it."""
        return bool(self.tests or self.control)


@dataclass(slots=True)
class _Piles:
    kept: list[bytes] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    control: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)


def without_tests(
    diff: bytes,
    judging: Collection[str] = (),
    tests: TestPaths = USUAL_TESTS,
    *,
    steered: Collection[str] = (),
    sources: Collection[str] = (),
    plugins: Collection[str] = (),
) -> Kept:
    """Return `diff`, as git writes it, without changes to tests, to their control and to `judging`.

    `steered`: files in which the patch is known to change what steers the tests. What cannot be
    told by a path alone, such as settings among others in one file, is not seen here. `sources`:
    files that are called as tests are and are none. `plugins`: modules of those of the runner.
    """
    piles = _Piles()
    for section in _SECTION.split(diff):
        sides = [(each.old, each.new) for each in parse_patch(section)]
        old = _names(side for side, _ in sides)
        new = _names(side for _, side in sides)
        paths = tuple(dict.fromkeys((*old, *new)))
        control = [
            path
            for path in paths
            if path in steered or controls(path, added=path not in old, plugins=plugins)
        ]
        judged = [p for p in paths if p in judging or (tests.match(p) and p not in sources)]
        if control:
            piles.control += control
        elif any(path in judging or path in old for path in judged):
            piles.tests += judged
        elif judged:
            piles.added += judged
        else:
            piles.kept.append(section)
            piles.paths += paths
    return Kept(
        b"".join(piles.kept),
        tuple(piles.paths),
        tuple(piles.tests),
        tuple(piles.control),
        tuple(piles.added),
    )


def judging_paths(tests: Collection[str]) -> Iterator[str]:
    """Yield the files of node ids; a docstring's test is part of the code that it describes."""
    for test in tests:
        path, _, name = test.partition("::")
        if name and "." not in name.partition("[")[0]:
            yield path


def patched_paths(diff: bytes) -> frozenset[str]:
    """Return the files that a patch changes, by both names where it renames them."""
    found: set[str] = set()
    for each in parse_patch(diff):
        found.update(_names(side for side in (each.old, each.new)))
    return frozenset(found)


def may_be_source(path: str, tests: TestPaths = USUAL_TESTS) -> bool:
    """Say whether a file that is called as tests are may be none, by its path alone.

    A folder of tests at the top is one, and so is a name that only tests have. Below a package
    `pages/test.py` or `pages/spec/core.py` may be what is tested.
    """
    if tests.patterns or not tests.match(path):
        return False
    pure = PurePosixPath(path)
    own = pure.name not in _COMMON_NAMES and tests.match(pure.name)
    return not own and len(pure.parts) > 1 and not _at_top(_test_folder(path, tests))


def sources_among(
    paths: Collection[str], heard: Collection[str], tests: TestPaths = USUAL_TESTS
) -> frozenset[str]:
    """Return the files of a tree that are called as tests are and are none.

    `heard`: files of which a test was heard. No test lies in the same folder of tests.
    """
    folders = {
        _test_folder(path, tests)
        for path in paths
        if path in heard or (tests.match(path) and not may_be_source(path, tests))
    }
    return frozenset(
        path
        for path in paths
        if path not in heard
        and may_be_source(path, tests)
        and ((folder := _test_folder(path, tests)) == "" or folder not in folders)
    )


def _test_folder(path: str, tests: TestPaths) -> str:
    """Return the uppermost folder of tests that a file lies in; empty where it lies in none."""
    parts = PurePosixPath(path).parts[:-1]
    for number, part in enumerate(parts):
        if tests.match(f"{part}/x"):
            return "/".join(parts[: number + 1])
    return ""


def _at_top(folder: str) -> bool:
    return folder != "" and folder.removeprefix("src/").count("/") == 0


def added_lines(diff: bytes) -> Iterator[tuple[str, str]]:
    """Yield each line that a patch adds, after the path of its file."""
    for each in parse_patch(diff):
        path = each.path.decode(errors="backslashreplace")
        for hunk in each.hunks:
            for line in hunk.lines:
                if line.startswith(b"+"):
                    yield path, line[1:].decode(errors="replace")


def _names(sides: Iterator[bytes | None]) -> tuple[str, ...]:
    return tuple(side.decode(errors="backslashreplace") for side in sides if side)
