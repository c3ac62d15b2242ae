"""The lines of code in which an error was raised, marked by a comment that no file will hold."""

import re
from collections.abc import Mapping, Sequence

from turnout.agent.repair.frames import relative

__all__ = ["errors_by_line", "marked", "unmarked"]

_RAISED = re.compile(r"^([^\s:]{1,300}):(\d{1,7}): (\w{1,80})$")
_ERROR = re.compile(r"^E +(\S.*)$")
_MARK = re.compile(r"[ \t]*# <--[^\n]*")
_MOST = 120
"""Characters of an error that a mark tells."""


def errors_by_line(output: str) -> Mapping[str, Mapping[int, str]]:
    """Return what pytest says was raised, by path and line."""
    found: dict[str, dict[int, str]] = {}
    said = ""
    for line in output.split("\n"):
        if error := _ERROR.match(line):
            said = said or error[1]
        elif place := _RAISED.match(line):
            found.setdefault(relative(place[1]), {})[int(place[2])] = (said or place[3])[:_MOST]
            said = ""
    return found


def marked(lines: Sequence[str], errors: Mapping[int, str]) -> list[str]:
    """Return lines of code, each in which there was an error with that as a comment behind it."""
    return [
        f"{line.rstrip()}  # <-- {errors[number]}\n" if number in errors else line
        for number, line in enumerate(lines, start=1)
    ]


def unmarked(text: str) -> str:
    """Return a reply without the marks that it repeats."""
    return _MARK.sub("", text)
