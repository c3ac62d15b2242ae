"""What differs between two policies, field by field."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from turnout.core.json import JsonObject, JsonValue
from turnout.core.policies import Alias, Policy
from turnout.gateway.config.policy_text import whole_table

__all__ = ["FieldChange", "differences", "value_text"]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that differs."""

    field: str
    """As a file of policies names it, such as `session.max_requests`."""
    before: JsonValue
    """None where it was not set."""
    after: JsonValue
    added: tuple[str, ...] = ()
    """Of a list: what is new in it."""
    removed: tuple[str, ...] = ()


def differences(before: Policy, after: Policy) -> tuple[FieldChange, ...]:
    """Return the fields that differ, in the order of the file; names and numbers aside."""
    old, new = dict(_fields(before)), dict(_fields(after))
    changed = (name for name in {**old, **new} if old.get(name) != new.get(name))
    return tuple(_change(name, old.get(name), new.get(name)) for name in changed)


def value_text(value: JsonValue) -> str:
    """Return the value of a field as people read it; None: it was not set."""
    match value:
        case None:
            return "(not set)"
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case [*items]:
            return ", ".join(map(value_text, items)) or "(none)"
        case _:
            return str(value)


def _change(name: str, before: JsonValue, after: JsonValue) -> FieldChange:
    old, new = _texts(before), _texts(after)
    added = tuple(text for text in new if text not in old)
    removed = tuple(text for text in old if text not in new)
    return FieldChange(name, before, after, added, removed)


def _texts(value: JsonValue) -> Sequence[str]:
    listed = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    return [item for item in listed if isinstance(item, str)]


def _fields(policy: Policy) -> Iterator[tuple[str, JsonValue]]:
    # Which alias fits first depends on their order, so that they are one field, a list.
    aliases = [_alias_text(alias) for alias in policy.aliases]
    table = {**whole_table(policy), "aliases": aliases}
    del table["name"]
    yield from _flat(table, "")


def _flat(table: JsonObject, where: str) -> Iterator[tuple[str, JsonValue]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{where}{key}.")
        else:
            yield f"{where}{key}", value


def _alias_text(alias: Alias) -> str:
    aims = [f"for {alias.optimize}"] * (alias.optimize is not None)
    aims += [f"task {alias.task}"] * (alias.task is not None)
    return " ".join([alias.name, "→", alias.model, *aims])
