"""Webhooks and what waits for them, on every database."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.samples import NOON, STRANGE, receipt

from turnout.core.govern.happenings import policy_changed, tool_first_seen, tool_refused
from turnout.core.govern.webhooks import Webhook
from turnout.errors import NotFoundError, StoreError
from turnout.store.happenings import HappeningsStore, record
from turnout.store.webhooks import WebhooksStore

HOOK = Webhook("hook-1", "https://example.org/in", "HOOK_SECRET", created_by=STRANGE)
SEEN = tool_first_seen(receipt(), "shell")
REFUSED = tool_refused(receipt(), "rm")
CHANGED = policy_changed(NOON, "default", 3, author="me", note="")
SOON = NOON + timedelta(seconds=5)


@pytest.fixture
def hooks(any_database):
    """Return the webhooks of an empty database."""
    return WebhooksStore(any_database)


@pytest.fixture
def happenings(any_database):
    """Return what happened there."""
    return HappeningsStore(any_database)


async def due(hooks, now=NOON, limit=9):
    """Claim what is due and return it by webhook and happening."""
    claimed = await hooks.claim(now, limit=limit, seconds=60)
    return [(one.webhook.id, one.happening) for one in claimed]


async def test_a_webhook_reads_back_as_it_was_added(hooks):
    """With nothing delivered yet."""
    await hooks.add(HOOK, NOON)
    (state,) = await hooks.all()
    assert (state.webhook, state.created_at) == (HOOK, NOON)
    assert (state.delivered_at, state.failed_at, state.failure) == (None, None, "")
    assert (state.waiting, state.dropped) == (0, 0)
    with pytest.raises(StoreError, match="already is a webhook"):
        await hooks.add(HOOK, NOON)


async def test_each_webhook_is_told_of_what_it_wants_once(hooks, happenings):
    """By kind and by project; what happened before it was added is no news."""
    await happenings.record([REFUSED])
    await hooks.add(HOOK, NOON)
    await hooks.add(replace(HOOK, id="hook-2", kinds=("policy.changed",)), NOON)
    await hooks.add(replace(HOOK, id="hook-3", project="another"), NOON)
    assert await happenings.record([SEEN, CHANGED, REFUSED, SEEN]) == 2
    assert sorted(await due(hooks), key=str) == sorted(
        [("hook-1", SEEN), ("hook-1", CHANGED), ("hook-2", CHANGED), ("hook-3", CHANGED)], key=str
    )


async def test_what_is_claimed_is_nobody_elses_until_its_time_is_over(hooks, happenings):
    """A sender that died leaves it to the next one."""
    await hooks.add(HOOK, NOON)
    await happenings.record([SEEN])
    assert await due(hooks) == [("hook-1", SEEN)]
    assert await due(hooks, NOON + timedelta(seconds=59)) == []
    assert await due(hooks, NOON + timedelta(seconds=60)) == [("hook-1", SEEN)]


async def test_two_senders_claim_nothing_twice(hooks, happenings):
    """At the same moment."""
    await hooks.add(HOOK, NOON)
    many = [tool_first_seen(receipt(), f"t{n}") for n in range(20)]
    await happenings.record(many)
    claims = await asyncio.gather(*(due(hooks, limit=4) for _ in range(6)))
    claimed = [one for claim in claims for _, one in claim]
    assert sorted(claimed, key=str) == sorted(many, key=str)


async def test_what_was_delivered_is_not_sent_again(hooks, happenings):
    """And the webhook counts as one that works."""
    await hooks.add(HOOK, NOON)
    await happenings.record([SEEN])
    (delivery,) = await hooks.claim(NOON, limit=9, seconds=60)
    await hooks.failed(delivery, "it answered 500", NOON, again_at=SOON, oldest=NOON)
    (delivery,) = await hooks.claim(SOON, limit=9, seconds=60)
    await hooks.delivered(delivery, SOON)
    assert await due(hooks, NOON + timedelta(days=9)) == []
    (state,) = await hooks.all()
    assert (state.delivered_at, state.paused_until, state.waiting) == (SOON, None, 0)


async def test_where_one_delivery_fails_all_of_its_webhook_wait(hooks, happenings):
    """Those of others do not, and what happens meanwhile waits too."""
    await hooks.add(HOOK, NOON)
    await hooks.add(replace(HOOK, id="hook-2", kinds=("policy.changed",)), NOON)
    await happenings.record([SEEN])
    (delivery,) = await hooks.claim(NOON, limit=9, seconds=60)
    await hooks.failed(delivery, "it answered 500", NOON, again_at=SOON, oldest=NOON)
    await happenings.record([CHANGED])
    assert await due(hooks, NOON) == [("hook-2", CHANGED)]
    state, _ = await hooks.all()
    assert (state.failure, state.failed_at, state.paused_until) == ("it answered 500", NOON, SOON)
    claimed = await hooks.claim(SOON, limit=9, seconds=60)
    assert [(one.happening, one.failures) for one in claimed] == [(CHANGED, 1), (SEEN, 1)]


async def test_what_is_too_old_is_given_up(hooks, happenings):
    """When it fails once more; the count of the dropped says so."""
    await hooks.add(HOOK, NOON)
    late = replace(CHANGED, at=SOON)
    await happenings.record([SEEN, late])
    first, _ = await hooks.claim(SOON, limit=9, seconds=60)
    await hooks.failed(first, "it answered 500", SOON, again_at=SOON, oldest=SOON)
    (state,) = await hooks.all()
    assert (state.dropped, state.waiting) == (1, 1)
    assert await due(hooks, SOON) == [("hook-1", late)]


async def test_a_webhook_that_is_removed_is_told_nothing_more(hooks, happenings):
    """What waited for it is gone."""
    await hooks.add(HOOK, NOON)
    await happenings.record([SEEN])
    await hooks.remove(HOOK.id)
    assert await hooks.all() == ()
    assert await due(hooks) == []
    with pytest.raises(NotFoundError, match="no webhook 'hook-1'"):
        await hooks.remove(HOOK.id)


async def test_a_webhook_that_never_answers_fills_no_disk(any_database, hooks):
    """What comes beyond the most that may wait is counted, not kept."""
    await hooks.add(HOOK, NOON)
    for some in ([tool_first_seen(receipt(), f"t{n}") for n in range(3)], [SEEN]):
        await any_database.write(lambda c, some=some: record(c, some, most_waiting=2))
    (state,) = await hooks.all()
    assert (state.waiting, state.dropped) == (2, 2)


async def test_what_has_failed_is_sent_again_when_somebody_asks(hooks, happenings):
    """At once; what is on its way meanwhile is left alone."""
    await hooks.add(HOOK, NOON)
    await happenings.record([SEEN])
    assert not await hooks.again(HOOK.id, NOON)
    (delivery,) = await hooks.claim(NOON, limit=9, seconds=60)
    assert not await hooks.again(HOOK.id, NOON)
    assert await due(hooks) == []
    later = NOON + timedelta(hours=1)
    await hooks.failed(delivery, "503", NOON, again_at=later, oldest=NOON - timedelta(days=3))
    assert await due(hooks, SOON) == []
    assert await hooks.again(HOOK.id, SOON)
    (state,) = await hooks.all()
    assert (state.paused_until, state.failure, state.waiting) == (None, "503", 1)
    assert await due(hooks, SOON) == [("hook-1", SEEN)]
    with pytest.raises(NotFoundError, match="no webhook"):
        await hooks.again("hook-9", NOON)
