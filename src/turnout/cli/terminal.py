"""What is shown to a person: text that cannot steer the terminal, and colours where wanted."""

import re
from typing import Final, TextIO

import click

__all__ = ["coloured_diff", "plural", "safe", "takes_colour"]

_STEERING: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
"""Control characters but newline and tab, those that turn the direction of writing, and no text."""


def safe(text: str) -> str:
    """Return text with every character that could steer a terminal written as an escape.

    Model, repository and test output are hostile: none of it may move the cursor, hide a line of
    a diff or reach the clipboard.
    """
    return _STEERING.sub(lambda found: ascii(found.group())[1:-1], text)


def takes_colour(stream: TextIO, *, allowed: bool) -> bool:
    """Whether a stream is a terminal and colours were not turned off."""
    return allowed and stream.isatty()


def coloured_diff(diff: str, *, colour: bool) -> str:
    """Return a unified diff for a person."""
    return "\n".join(_coloured(safe(line), colour=colour) for line in diff.split("\n")).rstrip()


def _coloured(line: str, *, colour: bool) -> str:
    if not colour:
        return line
    match line[:1], line[:3]:
        case _, "+++" | "---":
            return click.style(line, bold=True)
        case "d", _ if line.startswith("diff "):
            return click.style(line, bold=True)
        case "+", _:
            return click.style(line, fg="green")
        case "-", _:
            return click.style(line, fg="red")
        case "@", _:
            return click.style(line, fg="cyan")
        case _:
            return line


def plural(number: int, word: str) -> str:
    """Return `1 step`, `2 steps`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
