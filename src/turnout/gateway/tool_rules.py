"""Which tools a request may declare, before any model is chosen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from turnout.core.policies import ToolRule

__all__ = ["ToolJudgement", "judge"]

_ANY_SUFFIX = "/*"


@dataclass(frozen=True, slots=True)
class ToolJudgement:
    """What a tool rule says of the tools that a request declares."""

    refused: str | None
    """The first tool that may not be declared; None where the request may pass."""
    outside: tuple[str, ...]
    """Every declared tool that the list lacks, each once, as declared; for the receipt."""


def judge(rule: ToolRule, declared: Sequence[str]) -> ToolJudgement:
    """Judge the declared names: exactly as listed, or under a listed `mcp:server/*`."""
    match rule.mode:
        case "any":
            return ToolJudgement(None, ())
        case "dry_run":
            return ToolJudgement(None, _outside(rule, declared))
        case "enforce":
            outside = _outside(rule, declared)
            return ToolJudgement(outside[0] if outside else None, outside)
        case _:
            assert_never(rule.mode)


def _outside(rule: ToolRule, declared: Sequence[str]) -> tuple[str, ...]:
    exact = frozenset(rule.allow)
    servers = tuple(entry[:-1] for entry in rule.allow if _names_a_server(entry))
    return tuple(
        name
        for name in dict.fromkeys(declared)
        if name not in exact and not any(_is_of(name, server) for server in servers)
    )


def _names_a_server(entry: str) -> bool:
    server = entry.removeprefix("mcp:").removesuffix(_ANY_SUFFIX)
    return entry == f"mcp:{server}{_ANY_SUFFIX}" and bool(server) and "/" not in server


def _is_of(name: str, server: str) -> bool:
    return name.startswith(server) and len(name) > len(server)
