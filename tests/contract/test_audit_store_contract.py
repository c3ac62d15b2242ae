"""Who changed what, on each database."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.samples import NOON, STRANGE

from turnout.core.govern.audit import Audited, AuditFilter
from turnout.core.govern.keys import KeyEntry, KeyLimits, KeyRecord
from turnout.store.audit import AuditStore
from turnout.store.audited import AuditedKeys, Hand
from turnout.testing.clock import FrozenClock

CHANGE = Audited(NOON, "boss", "red", "create_key", STRANGE, {"role": STRANGE})


@pytest.fixture
def audit(database):
    """Return an empty one."""
    return AuditStore(database)


async def found(audit, wanted=None, *, before=None, limit=10):
    """Return the subjects of a page and where the next begins."""
    page = await audit.page(wanted or AuditFilter(), before=before, limit=limit)
    return [line.change.subject for line in page.lines], page.before


async def test_a_change_reads_back_as_it_was_written(audit):
    """Whatever its names hold."""
    await audit.add(CHANGE)
    page = await audit.page(AuditFilter(), before=None, limit=10)
    assert [line.change for line in page.lines] == [CHANGE]


async def test_pages_go_on_where_the_one_before_ended(audit):
    """Newest first, each once."""
    for name in "abc":
        await audit.add(replace(CHANGE, subject=name))
    first, cursor = await found(audit, limit=2)
    assert (first, await found(audit, before=cursor)) == (["c", "b"], (["a"], None))


@pytest.mark.parametrize(
    "wanted",
    [
        AuditFilter(actor="boss"),
        AuditFilter(project="red"),
        AuditFilter(action="create_key"),
        AuditFilter(subject="a"),
        AuditFilter(since=NOON),
    ],
)
async def test_what_is_not_wanted_is_left_out(audit, wanted):
    """By each of the fields."""
    await audit.add(replace(CHANGE, subject="a"))
    long_ago = NOON - timedelta(days=1)
    await audit.add(Audited(long_ago, "dev", "blue", "order_run", "b"))
    assert await found(audit, wanted) == (["a"], None)


async def test_what_is_changed_from_the_command_line_is_on_record(audit, database):
    """Keys, with what they may do, and by whom."""
    keys = AuditedKeys(database, Hand(audit, FrozenClock(), "ann@host"))
    record = KeyRecord("ci", "web", ("default",), KeyLimits(), NOON, "tk", role="member")
    await keys.add(KeyEntry("digest", record))
    await keys.put(replace(record, admin=True))
    await keys.put(replace(record, revoked_at=NOON))
    page = await audit.page(AuditFilter(actor="ann@host", subject="ci"), before=None, limit=10)
    assert [line.change.action for line in page.lines] == ["revoke_key", "change_key", "create_key"]
    assert page.lines[1].change.detail["admin"] == "true"
