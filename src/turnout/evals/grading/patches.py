"""A patch without its changes to what judges it."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from turnout.runs.verdict import controls
from turnout.sandbox.patches import parse_patch
from turnout.sandbox.testrun import USUAL_TESTS, TestPaths

__all__ = ["Kept", "added_lines", "judging_paths", "without_tests"]

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
) -> Kept:
    """Return `diff`, as git writes it, without changes to tests, to their control and to `judging`.

    `steered`: files in which the patch is known to change what steers the tests. What cannot be
    told by a path alone, such as settings among others in one file, is not seen here.
    """
    piles = _Piles()
    for section in _SECTION.split(diff):
        sides = [(each.old, each.new) for each in parse_patch(section)]
        old = _names(side for side, _ in sides)
        new = _names(side for _, side in sides)
        paths = tuple(dict.fromkeys((*old, *new)))
        control = [p for p in paths if p in steered or controls(p, added=p not in old)]
        judged = [p for p in paths if p in judging or tests.match(p)]
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
