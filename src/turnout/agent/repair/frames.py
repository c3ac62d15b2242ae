"""Places of the workspace that a test output names."""

import re
from dataclasses import dataclass

from turnout.sandbox.base import REPO, WORKSPACE

__all__ = ["Frame", "frames", "relative"]

_FORMS = (
    re.compile(r"^(?:E\s+)?([^\s:\"]{1,300}\.\w{1,9}):(\d{1,7})", re.MULTILINE),
    re.compile(r'File "([^"\n]{1,300})", line (\d{1,7})'),
    re.compile(
        r"(?:^[ \t]{1,40}|[(<\[]|\bat |--> |file://)((?:/|\./)?[\w.@/-]{1,300}\.\w{1,9}):(\d{1,7})",
        re.MULTILINE,
    ),
)
"""Of pytest, of Python, and of most others: `(a.js:3:5)`, `    a_test.go:12:`, `--> a.rs:3:5`."""

_MOST = 200


@dataclass(frozen=True, slots=True)
class Frame:
    """A place that the test output names."""

    path: str
    """Relative to the workspace."""
    line: int


def frames(output: str) -> tuple[Frame, ...]:
    """Return the places that a test output names, in its order; those outside are left out."""
    found = [
        (match.start(1), match[1], int(match[2]))
        for form in _FORMS
        for match in form.finditer(output)
    ]
    inside = (Frame(relative(path), line) for _, path, line in sorted(found))
    known = (each for each in inside if not each.path.startswith(("/", "../", "node:")))
    return tuple(dict.fromkeys(known))[:_MOST]


def relative(path: str) -> str:
    """Return a path as the workspace has it."""
    for root in (f"{REPO}/", f"{WORKSPACE}/", "./"):
        path = path.removeprefix(root)
    return path
