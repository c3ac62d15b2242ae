"""What is shown to a person: text that cannot steer the terminal, and colours where wanted."""

from typing import TextIO

import click

from turnout.core.text import visible

__all__ = ["coloured_diff", "plural", "safe", "takes_colour"]


def safe(text: str) -> str:
    """Return text with every character that could steer a terminal written as an escape.

    Model, repository and test output are hostile: none of it may move the cursor, hide a line of
    a diff, stand where nobody sees it or reach the clipboard.
    """
    return visible(text)


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
