"""What is compared in an evaluation: each arm works on the same instances."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal

from turnout.errors import UsageError

__all__ = ["Arm", "ArmAsk", "ArmKind", "read_arms"]

ArmKind = Literal["auto", "model", "policy", "command"]
"""auto: routed under the policy in force; model: one model for every call; policy: routed under
another policy; command: a program that gets a checkout and leaves its changes there."""

_ARM: Final = re.compile(
    r"(?:(?P<name>[A-Za-z0-9][\w.@:+-]{0,59})=)?"
    r"(?:(?P<auto>auto)|(?P<kind>model|policy|command):(?P<value>.+))",
    re.DOTALL,
)
_LACKS: Final = {"model": "model", "policy": "policy", "command": "command"}
_ID: Final = re.compile(r"[A-Za-z0-9][\w.@/+-]{0,199}")
_MEND: Final = (
    "Write `auto`, `model:ID`, `policy:NAME`, `policy:NAME@REVISION`, `policy:FILE.toml` or "
    "`NAME=command:COMMAND`; each may have a NAME= before it."
)


@dataclass(frozen=True, slots=True)
class ArmAsk:
    """An arm as it was asked for."""

    name: str
    """What reports call it; no other arm of the evaluation has it."""
    kind: ArmKind
    value: str = ""
    """The model, the policy (`NAME`, `NAME@REVISION` or a file) or the command."""


@dataclass(frozen=True, slots=True)
class Arm:
    """An arm as it is run."""

    name: str
    kind: ArmKind
    digest: str
    """Hash of all that makes its results what they are: a result of another is none of its."""
    command: str = ""
    """Shell command of an arm of that kind."""

    @classmethod
    def of(cls, ask: ArmAsk, facts: Sequence[str]) -> "Arm":
        """Return the arm that was asked for; `facts` are what it was resolved to."""
        written = json.dumps([ask.name, ask.kind, ask.value, *facts])
        command = ask.value if ask.kind == "command" else ""
        return cls(ask.name, ask.kind, sha256(written.encode()).hexdigest(), command)


def read_arms(texts: Sequence[str]) -> tuple[ArmAsk, ...]:
    """Return the arms that were written, `auto` where none was; `UsageError` for a wrong one."""
    asked = tuple(_read(text) for text in texts) or (ArmAsk("auto", "auto"),)
    names = [ask.name for ask in asked]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(
            f"Two arms are named {twice!r}.", mend="Give one of them another name: NAME=…"
        )
    return asked


def _wrong(text: str) -> UsageError:
    """Return what is wrong with an arm, by what it looks like."""
    named, _, rest = text.rpartition("=")
    kind, colon, value = rest.partition(":")
    if colon and kind in _LACKS and not value.strip():
        return UsageError(f"The arm {text!r} names no {_LACKS[kind]}.", mend=_MEND)
    if not colon and not named and _ID.fullmatch(text):
        file = f" Or `policy:{text}`." if not text.endswith(".toml") else ""
        meant = f"policy:{text}" if text.endswith(".toml") else f"model:{text}"
        return UsageError(f"{text!r} is no arm.", mend=f"Did you mean `{meant}`?{file} {_MEND}")
    return UsageError(f"{text!r} is no arm.", mend=_MEND)


def _read(text: str) -> ArmAsk:
    found = _ARM.fullmatch(text.strip())
    if found is None:
        raise _wrong(text.strip())
    name, value = found["name"], (found["value"] or "").strip()
    kind: ArmKind
    match found["kind"]:
        case "model":
            kind = "model"
        case "policy":
            kind = "policy"
        case "command":
            kind = "command"
        case _:
            kind = "auto"
    if kind == "command" and name is None:
        raise UsageError(
            f"The arm {text!r} has no name.", mend="Write NAME=command:…, as reports show it."
        )
    return ArmAsk(name or (kind if kind == "auto" else f"{kind}:{value}"), kind, value)
