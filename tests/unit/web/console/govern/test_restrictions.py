"""What lists of policies say of them: every rule, whatever is added to the policy one day."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from turnout.core.policies import Alias, PinnedFallback, Policy, SecretBinding, TaskRule
from turnout.web.console.govern.views.restrictions import restrictions

_ALIKE = {
    "by_kind": (("act", ("read_file",)),),
    "task_rules": (TaskRule("coding", "swift"),),
    "aliases": (Alias("swift"),),
    "secrets": (SecretBinding("TOKEN", "example.org", "SECRET"),),
    "provider_keys": (("near", "KEY"),),
    "pinned": PinnedFallback("model", "swift"),
}
"""Values of the fields that hold more than texts and numbers."""
_COLUMNS = {"name", "revision", "objective", "mode"}
"""What lists have columns for."""


def other(name: str, value: Any) -> Any:
    """Return a value of a field that differs from the one that it has."""
    if name in _ALIKE:
        return _ALIKE[name]
    if isinstance(value, bool):
        return not value
    if isinstance(value, tuple):
        return ("swift",)
    return 2 if value is None else value + 1


def changed(whole: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each field of a policy by its name, with the policy that differs in it alone."""
    for each in fields(whole):
        value, name = getattr(whole, each.name), f"{path}{each.name}"
        if each.name in _COLUMNS:
            continue
        if is_dataclass(value) and each.name not in _ALIKE:
            for inner, part in changed(value, f"{name}."):
                yield inner, replace(whole, **{each.name: part})
        else:
            yield name, replace(whole, **{each.name: other(each.name, value)})


_CHANGED = dict(changed(Policy()))


@pytest.mark.parametrize("name", _CHANGED)
def test_every_rule_of_a_policy_is_told(name: str) -> None:
    """A field that nobody thought of is told by its own name."""
    plain = list(restrictions(Policy()))
    told = [said for said in restrictions(_CHANGED[name]) if said not in plain]
    assert told
    assert all("{}" not in said for said in told)


def test_no_two_rules_are_told_alike() -> None:
    """Whoever reads one knows which it is."""
    told = [" ".join(restrictions(policy)) for policy in _CHANGED.values()]
    assert len(set(told)) == len(told) > 25


def test_a_pool_that_leaves_something_out_is_not_every_model() -> None:
    """Nor is one with a price; long lists are told by their first names and a number."""
    assert list(restrictions(Policy())) == ["every model of the catalog"]
    assert list(restrictions(_CHANGED["pool.exclude"])) == ["never swift"]
    assert list(restrictions(_CHANGED["pool.max_input_price"])) == [
        "at most $0.000002 a million input tokens"
    ]
    long = replace(Policy(), pool=replace(Policy().pool, models=tuple("abcdef")))
    assert list(restrictions(long)) == ["only the models a, b, c, d and 2 more"]
