"""Policies change by revisions that follow one another."""

from dataclasses import replace

import pytest

from turnout.core.policies import Alias, PinnedFallback, Policy, PoolRule, SessionCaps, ToolRule
from turnout.errors import ConfigError, ConflictError, NotFoundError, StoreError
from turnout.gateway.catalog import Catalog
from turnout.gateway.policy.desk import PolicyDesk, Signature
from turnout.gateway.policy.diff import FieldChange, differences
from turnout.gateway.policy.findings import findings
from turnout.testing.clock import FrozenClock
from turnout.testing.exchange import deployment
from turnout.testing.stores import MemoryPoliciesStore

CATALOG = Catalog(deployments=(deployment("p/big"), deployment("p/small")))
ANN = Signature("ann", "because")
TEAM = Policy(name="team", tools=ToolRule("dry_run", ("read_file",)))
CHEAP = replace(TEAM, objective="cost")


def desk(**options) -> PolicyDesk:
    """Return a desk on an empty store."""
    return PolicyDesk(MemoryPoliciesStore(), CATALOG, FrozenClock(), **options)


async def test_a_change_is_a_revision_with_author_time_and_note() -> None:
    """The first is 1, and each one after it one more."""
    made = desk()
    (first,) = await made.apply([TEAM], ANN)
    (second,) = await made.apply([CHEAP], Signature("bob"))
    assert first.revision.policy == replace(TEAM, revision=1)
    assert (first.revision.author, first.revision.note) == ("ann", "because")
    assert first.revision.at == FrozenClock().now()
    assert second.revision.policy == replace(CHEAP, revision=2)
    assert [r.author for r in await made.history("team")] == ["bob", "ann"]
    assert await made.newest() == (second.revision,)


async def test_what_did_not_change_is_no_revision() -> None:
    """A file is applied again and again, each time it is deployed."""
    made = desk()
    await made.apply([TEAM], ANN)
    (again,) = await made.apply([replace(TEAM, revision=7)], ANN)
    assert not again.changed
    assert again.revision.policy.revision == 1
    assert again.diff.changes == ()
    assert len(await made.history("team")) == 1


async def test_a_file_is_applied_whole_or_not_at_all() -> None:
    """The second policy names a model that is not there."""
    made = desk()
    wrong = Policy(name="other", pool=PoolRule(("huge",)))
    with pytest.raises(ConfigError, match=r"policies\.other\.pool.*'huge'"):
        await made.apply([TEAM, wrong], ANN)
    assert await made.newest() == ()


async def test_a_rollback_is_a_new_revision_with_the_old_content() -> None:
    """History only grows; rolling back to what is in force changes nothing."""
    made = desk()
    await made.apply([TEAM], ANN)
    await made.apply([CHEAP], ANN)
    outcome = await made.rollback("team", 1, Signature("bob", "too slow"))
    assert outcome.revision.policy == replace(TEAM, revision=3)
    assert outcome.revision.restores == 1
    assert outcome.diff.changes == (FieldChange("objective", "cost", "balanced"),)
    assert not (await made.rollback("team", 1, ANN)).changed
    with pytest.raises(NotFoundError, match=r"no revision 9.*1 to 3"):
        await made.rollback("team", 9, ANN)


async def test_whoever_has_seen_an_older_revision_is_told() -> None:
    """409 over HTTP; nobody's change is undone unawares."""
    made = desk()
    await made.apply([TEAM], replace(ANN, expected=0))
    with pytest.raises(ConflictError, match="at revision 1, not 0"):
        await made.apply([CHEAP], replace(ANN, expected=0))
    with pytest.raises(ConflictError):
        await made.rollback("team", 1, replace(ANN, expected=2))
    (outcome,) = await made.apply([CHEAP], replace(ANN, expected=1))
    assert outcome.revision.policy.revision == 2


async def test_two_revisions_are_compared() -> None:
    """By default the newest with the one before; a draft with the newest."""
    made = desk()
    await made.apply([TEAM], ANN)
    await made.apply([CHEAP], ANN)
    await made.apply([replace(CHEAP, min_quality=0.5)], ANN)
    newest = await made.diff("team")
    assert (newest.before, newest.after) == (2, 3)
    assert [change.field for change in newest.changes] == ["min_quality"]
    assert {c.field for c in (await made.diff("team", 1, 3)).changes} == {
        "min_quality",
        "objective",
    }
    first = await made.diff("team", 0, 1)
    assert (first.before, first.after) == (None, 1)
    assert "tools.allow" in {change.field for change in first.changes}
    draft = await made.compare(TEAM)
    assert (draft.before, draft.after) == (3, None)


async def test_a_policy_of_the_file_alone_has_no_revisions() -> None:
    """The error says how it gets them."""
    made = desk(own=[TEAM])
    assert await made.in_force("team") == TEAM
    with pytest.raises(NotFoundError, match="turnout policy apply"):
        await made.history("team")
    with pytest.raises(NotFoundError, match="no policy 'other'"):
        await made.in_force("other")
    await made.apply([CHEAP], ANN)
    assert await made.in_force("team") == replace(CHEAP, revision=1)


async def test_whoever_serves_here_is_told_of_a_change() -> None:
    """And only of a change; that it could not be told does not undo the change."""
    told = []

    async def changed() -> None:
        told.append(1)
        raise StoreError("The database is gone.")

    made = desk(changed=changed)
    await made.apply([TEAM], ANN)
    await made.apply([TEAM], ANN)
    assert told == [1]
    assert (await made.get("team")).policy.revision == 1


def test_a_list_is_compared_by_what_was_added_and_removed() -> None:
    """Fields have the names that a file gives them."""
    before = Policy(tools=ToolRule("dry_run", ("a", "b")), session=SessionCaps(None, 2_500_000))
    after = Policy(tools=ToolRule("enforce", ("b", "c")), session=SessionCaps(10, None))
    assert differences(before, after) == (
        FieldChange("tools.mode", "dry_run", "enforce"),
        FieldChange("tools.allow", ["a", "b"], ["b", "c"], ("c",), ("a",)),
        FieldChange("session.max_requests", None, 10),
        FieldChange("session.max_spend_usd", "2.50", None),
    )


def test_the_order_of_aliases_is_a_difference() -> None:
    """Which fits first depends on it."""
    one, two = Alias("a*", "big"), Alias("*", "auto", task="coding")
    (change,) = differences(Policy(aliases=(one, two)), Policy(aliases=(two, one)))
    assert change.field == "aliases"
    assert change.after == ["* → auto task coding", "a* → big"]


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        (Policy(tools=ToolRule("any", ("a",))), "tools.mode"),
        (Policy(tools=ToolRule("enforce")), "tools.allow"),
        (Policy(tools=ToolRule("dry_run", ("a",))), "tools.mode"),
        (Policy(pool=PoolRule(exclude=("big", "small"))), "pool"),
        (
            Policy(pool=PoolRule(("small",)), pinned=PinnedFallback("model", "big")),
            "pinned.model",
        ),
        (Policy(aliases=(Alias("a*"), Alias("ab", "big"))), "aliases.ab"),
        (Policy(session=SessionCaps(None, 1)), "session.max_spend_usd"),
    ],
)
def test_what_is_probably_not_meant_stands_out(policy: Policy, field: str) -> None:
    """It is allowed; somebody should look at it."""
    assert field in {finding.field for finding in findings(policy, CATALOG)}


def test_nothing_stands_out_in_a_plain_policy() -> None:
    """A finding means something."""
    sound = Policy(
        pool=PoolRule(("big",)),
        tools=ToolRule("enforce", ("read_file",)),
        aliases=(Alias("gpt-5", "p/big"), Alias("*")),
    )
    assert findings(sound, CATALOG) == ()
    assert findings(Policy(), Catalog()) == ()
