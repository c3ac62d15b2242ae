"""A policy as somebody writes it in the editor, before it is applied."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from turnout.core.policies import Policy
from turnout.errors import ConfigError, TurnoutError
from turnout.gateway.config.policy_file import parse_policies, parse_policy
from turnout.gateway.policy.findings import Finding
from turnout.web.console.govern.views.policies import DiffView
from turnout.web.console.visits import Form

__all__ = [
    "LONGEST_NOTE",
    "CheckView",
    "EditView",
    "edited_of",
    "number_of",
    "read_draft",
    "refused",
]

LONGEST_NOTE: Final = 2_000
"""Characters of why something was changed."""

_LONGEST_TEXT: Final = 2**18
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


def read_draft(text: str, name: str) -> Policy:
    """Return the policy that TOML describes: its table alone, or a file with it.

    `ConfigError` says which key is wrong, or on which line it is no TOML.
    """
    if len(text) > _LONGEST_TEXT:
        raise ConfigError(f"A policy has at most {_LONGEST_TEXT:,} characters.")
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
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


def refused(error: TurnoutError) -> CheckView:
    """Return why a draft is none, or was not applied."""
    return CheckView(error=error.message, mend=error.mend)


def number_of(text: str) -> int:
    """Return a number of a revision; 0 where the text is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER else 0
