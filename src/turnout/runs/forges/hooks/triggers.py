"""What a webhook asks for, whatever the forge."""

from dataclasses import dataclass
from typing import Final, Literal

from turnout.core.service.forges import ThreadKind

__all__ = ["Command", "Ignored", "Person", "Trigger", "Work", "command_in"]

Work = Literal["fix", "review"]
"""A change of the code, or a review of one."""

_NAME: Final = "/turnout"


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with an account at the forge."""

    name: str
    number: int
    """The account's id."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """A person asks for work; whether they may is still to be seen."""

    work: Work
    path: str
    """Of the repository at the forge."""
    thread: ThreadKind
    number: int
    person: Person
    title: str
    body: str
    """Of the issue or request, as anybody may have written it."""
    occasion: str
    """Tells this wish from every other one at the repository, and is the same when it is sent
    again: it is made of what is signed."""
    words: str = ""
    """What the person asks for beside that; empty where a label says it all."""
    comment: int | None = None
    """The comment that asks; None: a label does."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """A webhook that asks for nothing."""

    why: str


@dataclass(frozen=True, slots=True)
class Command:
    """What a comment says to us."""

    work: Work
    words: str


def command_in(comment: str, thread: ThreadKind) -> Command | Ignored:
    """Return what a comment asks of us by its very first word, `/turnout fix …` or `… review`.

    Without a verb it is a fix on an issue and a review on a pull request.
    """
    name, said = _first(comment)
    if name != _NAME:
        return Ignored(f"The comment does not begin with `{_NAME}`.")
    verb, words = _first(said)
    meant: Work = "fix" if thread == "issue" else "review"
    match verb or meant:
        case "fix" if thread == "issue":
            return Command("fix", words)
        case "review" if thread == "pull":
            return Command("review", words)
        case "fix" | "review" as known:
            return Ignored(f"`{_NAME} {known}` is not for a comment here.")
        case other:
            return Ignored(f"`{_NAME} {other[:20]}` is no command.")


def _first(text: str) -> tuple[str, str]:
    """Return the first word of a text, and what follows it."""
    word, *rest = text.split(maxsplit=1) or [""]
    return word, rest[0].strip() if rest else ""
