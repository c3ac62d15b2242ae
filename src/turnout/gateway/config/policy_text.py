"""A policy in the words in which users write it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

from turnout.core.json import JsonObject, JsonValue
from turnout.core.money import Micros
from turnout.core.policies import Alias, EgressPolicy, Policy, PoolRule, ToolRule

__all__ = ["policy_table", "table_text", "toml_text", "whole_table"]

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_UNSEEN: Final = re.compile("[\x7f-\x9f\xad]")
_MILLION: Final = 1_000_000
_ENTRIES: Final = frozenset({"aliases", "secrets", "tasks"})
"""Tables that hold one entry a line."""


def whole_table(policy: Policy) -> JsonObject:
    """Return the table that `parse_policy` reads back as `policy`, every key of it; null: unset."""
    return {
        "name": policy.name,
        "objective": policy.objective,
        "pool": _pool(policy.pool),
        "min_quality": policy.min_quality,
        "evidence": {
            "min_tool_success": policy.evidence.min_tool_success,
            "min_samples": policy.evidence.min_samples,
            "max_age_days": policy.evidence.max_age_days,
        },
        "tools": _tools(policy.tools),
        "session": {
            "max_requests": policy.session.max_requests,
            "max_spend_usd": _usd(policy.session.max_spend),
        },
        "tasks": {rule.task: {"model": rule.model} for rule in policy.task_rules},
        "pinned": {"fallback": policy.pinned.mode, "model": policy.pinned.model},
        "aliases": {alias.name: _alias(alias) for alias in policy.aliases},
        "caching": policy.caching,
        "provider_keys": dict(policy.provider_keys),
        "reroute_refusals": policy.reroute_refusals,
        "keep_replies_hours": policy.keep_replies_hours,
        "allow_unpriced": policy.allow_unpriced,
        "egress": _egress(policy.egress),
    }


def policy_table(policy: Policy) -> JsonObject:
    """Return the same without what is as in a policy that says nothing."""
    table = _without(whole_table(policy), whole_table(Policy()))
    # A list without a mode would be read as a dry run.
    if "tools" in table:
        table["tools"] = {"mode": policy.tools.mode, **_object(table["tools"])}
    return {"name": policy.name, **table}


def toml_text(policies: Sequence[Policy]) -> str:
    """Return a file of policies that `parse_policies` reads back."""
    lines: list[str] = []
    for policy in policies:
        table = {key: value for key, value in policy_table(policy).items() if key != "name"}
        lines += _section(("policies", policy.name), table, shown=True)
    return "\n".join(lines).strip() + "\n"


def table_text(policy: Policy) -> str:
    """Return one policy's own table as TOML that `parse_policy` reads back, its name aside."""
    head = f"[policies.{_key(policy.name)}"
    lines = [
        f"[{line.removeprefix(f'{head}.')}" if line.startswith(f"{head}.") else line
        for line in toml_text([policy]).split("\n")
        if line != f"{head}]"
    ]
    return "\n".join(lines).strip() + "\n"


def _pool(pool: PoolRule) -> JsonObject:
    return {
        "models": list(pool.models),
        "exclude": list(pool.exclude),
        "providers": list(pool.providers),
        "regions": list(pool.regions),
        "labels": list(pool.labels),
        "min_context": pool.min_context,
        "max_input_usd": _usd(pool.max_input_price),
        "max_output_usd": _usd(pool.max_output_price),
        "min_tool_success": pool.min_tool_success,
    }


def _tools(tools: ToolRule) -> JsonObject:
    return {
        "mode": tools.mode,
        "allow": list(tools.allow),
        "read_only": list(tools.read_only),
        "by_kind": {kind: list(names) for kind, names in tools.by_kind},
    }


def _egress(egress: EgressPolicy) -> JsonObject:
    return {
        "allow": list(egress.allow),
        "private": list(egress.private),
        "packages": egress.packages,
        "secrets": {s.variable: {"host": s.host, "env": s.source} for s in egress.secrets},
    }


def _alias(alias: Alias) -> JsonValue:
    if alias.optimize is None and alias.task is None:
        return alias.model
    said = {"model": alias.model, "optimize": alias.optimize, "task": alias.task}
    return {key: value for key, value in said.items() if value is not None}


def _usd(amount: Micros | int | None) -> str | None:
    if amount is None:
        return None
    text = f"{Decimal(amount) / _MILLION:.6f}".rstrip("0")
    whole, _, cents = text.partition(".")
    return f"{whole}.{cents.ljust(2, '0')}"


def _without(table: JsonObject, plain: JsonObject) -> dict[str, JsonValue]:
    kept: dict[str, JsonValue] = {}
    for key, value in table.items():
        usual = plain.get(key)
        if value is None or value == usual:
            continue
        inner = isinstance(value, Mapping) and isinstance(usual, Mapping)
        kept[key] = _without(_object(value), _object(usual)) if inner else value
    return kept


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, Mapping) else {}


def _section(path: tuple[str, ...], table: JsonObject, *, shown: bool) -> Iterator[str]:
    # The order of aliases counts, so that none of them may become a section behind the others.
    inline = path[-1] in _ENTRIES
    lines = [(k, v) for k, v in table.items() if inline or not isinstance(v, Mapping)]
    if lines or shown:
        yield f"\n[{'.'.join(map(_key, path))}]"
    yield from (f"{_key(key)} = {_value(value)}" for key, value in lines)
    for key, value in () if inline else table.items():
        if isinstance(value, Mapping):
            yield from _section((*path, key), value, shown=False)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quoted(name)


def _value(value: JsonValue) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(k)} = {_value(v)}' for k, v in value.items())} }}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


def _quoted(text: str) -> str:
    # JSON leaves these as they are: TOML takes no DEL, and the others cannot be seen.
    return _UNSEEN.sub(lambda one: f"\\u{ord(one[0]):04x}", json.dumps(text, ensure_ascii=False))
