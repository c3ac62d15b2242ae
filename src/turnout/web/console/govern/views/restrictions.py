"""What a policy says, in short: made from its own words, so that no rule of it is left out."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from turnout.core.json import JsonObject, JsonValue
from turnout.core.policies import Policy
from turnout.gateway.config.policy_text import policy_table, whole_table

__all__ = ["restrictions"]

_ELSEWHERE: Final = frozenset({"name", "objective", "tools.mode"})
"""What a list of policies has columns for."""
_SHOWN: Final = 4
"""Names of a list that are told one by one."""
_SAID: Final[Mapping[str, str]] = {
    "pool.models": "only the models {}",
    "pool.exclude": "never {}",
    "pool.providers": "only of {}",
    "pool.regions": "only in {}",
    "pool.labels": "only with the labels {}",
    "pool.min_context": "a window of {} tokens at least",
    "pool.max_input_usd": "at most ${} a million input tokens",
    "pool.max_output_usd": "at most ${} a million output tokens",
    "pool.min_tool_success": "tool success of {} at least",
    "min_quality": "quality of {} at least for latency and cost",
    "tools.allow": "the tools {}",
    "tools.read_only": "where nothing may change the tools {}",
    "tools.by_kind": "tools of their own for steps of {}",
    "session.max_requests": "{} requests a session",
    "session.max_spend_usd": "${} a session",
    "tasks": "models of their own for {}",
    "aliases": "aliases {}",
    "provider_keys": "keys of its own at {}",
    "egress.allow": "sandboxes reach {}",
    "egress.private": "sandboxes reach {} in private networks",
    "egress.secrets": "secrets {} in sandboxes",
}
"""How rules are told; one that is not here is told by the key that it is written with."""


def restrictions(policy: Policy) -> Iterator[str]:
    """Yield all that a policy says otherwise than one that says nothing, a rule each."""
    rules = policy_table(policy)
    if "pool" not in rules:
        yield "every model of the catalog"
    for key, value in _rules("", rules, whole_table(Policy())):
        if key not in _ELSEWHERE:
            yield _SAID.get(key, f"{key.replace('_', ' ')}: {{}}").replace("{}", _value(value))


def _rules(above: str, table: JsonObject, usual: JsonObject) -> Iterator[tuple[str, JsonValue]]:
    """Yield each rule with its key; a table that is empty as a rule holds entries by name."""
    for name, value in table.items():
        key, known = f"{above}{name}", usual.get(name)
        if isinstance(value, Mapping) and isinstance(known, Mapping) and known:
            yield from _rules(f"{key}.", value, known)
        else:
            yield key, value


def _value(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping | Sequence) and not isinstance(value, str):
        names = list(map(str, value))
        left = len(names) - _SHOWN
        return ", ".join(names[:_SHOWN]) + (f" and {left:,} more" if left > 0 else "")
    return str(value)
