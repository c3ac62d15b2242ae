"""A policy as somebody writes it in the editor, before it is applied."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from turnout.core.govern.revisions import PolicyRevision
from turnout.core.policies import Policy
from turnout.core.toml import TomlError, read_toml
from turnout.errors import ConfigError, ConflictError, TurnoutError
from turnout.gateway.config.policy_file import parse_policies, parse_policy
from turnout.gateway.policy.findings import Finding
from turnout.web.console.govern.lines import Line, around, line_of_error
from turnout.web.console.govern.views.policies import DiffView
from turnout.web.console.visits import Form

__all__ = [
    "LONGEST_NOTE",
    "CheckView",
    "ConflictView",
    "EditView",
    "edited_of",
    "number_of",
    "read_draft",
    "refused",
]

LONGEST_NOTE: Final = 2_000
"""Characters of why something was changed."""

_LONGEST_TEXT: Final = 2**16
_LONGEST_NUMBER: Final = 9


@dataclass(frozen=True, slots=True)
class CheckView:
    """What stands out in a draft, or why it is none."""

    findings: Sequence[Finding] = ()
    diff: DiffView | None = None
    error: str = ""
    mend: str = ""
    asked: bool = True
    """False before anything was checked."""
    line: int = 0
    """That the error is about, from 1; 0 where that is not known."""
    excerpt: Sequence[Line] = ()
    """That line, and those beside it."""
    places: Mapping[str, int] = field(default_factory=dict)
    """The line of each field that stands out."""


@dataclass(frozen=True, slots=True)
class ConflictView:
    """What somebody else has saved meanwhile, and what a draft would make of it."""

    newest: PolicyRevision
    theirs: DiffView | None
    """Since the revision that the draft's author has seen; None where that is no revision."""
    mine: DiffView
    """What saving the draft on top of the newest changes, theirs taken back included."""


@dataclass(frozen=True, slots=True)
class EditView:
    """The editor."""

    name: str
    text: str
    note: str
    expected: int
    """The revision that its author has seen; 0 for none."""
    is_new: bool
    check: CheckView
    conflict: ConflictView | None = None


async def read_draft(text: str, name: str) -> Policy:
    """Return the policy that TOML describes: its table alone, or a file with it.

    `ConfigError` says which key is wrong, or on which line it is no TOML. Others are served
    meanwhile.
    """
    if len(text) > _LONGEST_TEXT:
        raise ConfigError(f"A policy has at most {_LONGEST_TEXT:,} characters.")
    return await asyncio.to_thread(_read, text, name)


def _read(text: str, name: str) -> Policy:
    try:
        document = read_toml(text)
    except TomlError as error:
        raise ConfigError(f"This is not valid TOML: {error}.") from error
    if not {"policy", "policies"} & set(document):
        if document.get("name", name) != name:
            raise ConfigError(f"`name` is not {name!r}.", mend="Leave it out.")
        return parse_policy({**document, "name": name})
    for policy in parse_policies(document):
        if policy.name == name:
            return policy
    raise ConfigError(f"There is no policy {name!r} in it.", mend=f"Write [policies.{name}].")


def edited_of(form: Form, name: str) -> EditView:
    """Return the editor as it was sent; nothing is checked yet."""
    return EditView(
        name=name,
        text=form.text("text"),
        note=form.text("note")[:LONGEST_NOTE],
        expected=number_of(form.text("expected")),
        is_new=form.flag("is_new"),
        check=CheckView(asked=False),
    )


def refused(error: TurnoutError, text: str) -> CheckView:
    """Return why a draft is none, or was not applied, and where in its text that stands."""
    line = 0 if isinstance(error, ConflictError) else line_of_error(text, error.message)
    return CheckView(error=error.message, mend=error.mend, line=line, excerpt=around(text, line))


def number_of(text: str) -> int:
    """Return a number of a revision; 0 where the text is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER else 0
