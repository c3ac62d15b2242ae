"""A patch without its changes to what judges it."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from turnout.sandbox.patches import parse_patch
from turnout.sandbox.testrun import USUAL_TESTS, TestPaths

__all__ = ["Kept", "without_tests"]

_CONTROL = frozenset(
    {
        "conftest.py",
        "pytest.ini",
        ".pytest.ini",
        "tox.ini",
        "setup.cfg",
        "pyproject.toml",
        "sitecustomize.py",
        "usercustomize.py",
    }
)
"""Files that decide which tests run and what counts as passing, wherever they are."""

_SECTION = re.compile(rb"^(?=diff --git )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Kept:
    """What is left of a patch."""

    diff: bytes
    dropped: tuple[str, ...]
    """Paths whose changes were left out."""


def without_tests(
    diff: bytes, hidden: frozenset[str] = frozenset(), tests: TestPaths = USUAL_TESTS
) -> Kept:
    """Return `diff`, as git writes it, without changes to tests, to their control and to `hidden`.

    What steers the runner is left out with the tests: it could turn a failure into a pass.
    """
    kept: list[bytes] = []
    dropped: list[str] = []
    for section in _SECTION.split(diff):
        sides = [side for each in parse_patch(section) for side in (each.old, each.new) if side]
        paths = list(dict.fromkeys(side.decode(errors="backslashreplace") for side in sides))
        judging = [path for path in paths if path in hidden or tests.match(path) or _controls(path)]
        if judging:
            dropped += judging
        else:
            kept.append(section)
    return Kept(b"".join(kept), tuple(dropped))


def _controls(path: str) -> bool:
    name = PurePosixPath(path).name
    return name in _CONTROL or name.endswith(".pth")
