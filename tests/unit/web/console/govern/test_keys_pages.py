"""Keys in the console: shown once, changed, revoked, and seen by their holders alone."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.samples import receipt
from tests.unit.web.console.govern.governed import Governed
from tests.unit.web.console.seen import words

from turnout.core.govern.keys import KeyLimits
from turnout.core.ids import RequestId
from turnout.core.money import Micros

FIELDS = {"project": "red", "policies": "team, other", "role": "member"}


@pytest.fixture
def governed():
    """Return a console without a key in its store."""
    return Governed()


def make(person, name="ci", **fields):
    """Send the form of a new key."""
    return person.send("/keys/_new", name=name, **{**FIELDS, **fields})


async def test_a_key_is_shown_once_and_never_again(governed) -> None:
    """Its page and the list have its first and last characters alone; the record has none."""
    boss = governed.person()
    made = make(boss, spend_per_day="2.50", requests_per_minute="60", expires="2099-01-31")
    assert made.headers["cache-control"] == "no-store"
    key = made.text.split('id="key" class="mono" value="')[1].split('"')[0]
    assert key.startswith("tk-")
    record = await governed.keys.get("ci")
    assert record.policies == ("team", "other")
    assert record.limits == KeyLimits(60, None, Micros(2_500_000))
    assert f"{record.expires_at:%Y-%m-%d %H:%M:%S}" == "2099-01-31 23:59:59"
    for path in ("/keys", "/keys/ci"):
        page = boss.get(path)
        assert key not in page.text
        assert record.hint in page.text
    (change,) = governed.console.audit.kept
    assert (change.actor, change.action, change.subject) == ("boss", "create_key", "ci")
    assert key not in repr(change)
    assert change.detail["role"] == "member"


def test_a_key_that_cannot_be_is_refused_with_its_form_filled_in(governed) -> None:
    """Nothing is made of it."""
    boss = governed.person()
    for fields, said in (
        ({"name": "-"}, "A name is 1 to 64"),
        ({"role": "king"}, "There is no role"),
        ({"spend_per_day": "NaN"}, "an amount in US dollars"),
        ({"spend_per_day": "-1"}, "must be above 0"),
        ({"concurrency": "1e3"}, "a whole number"),
        ({"expires": "soon"}, "Expiry is a date"),
        ({"expires": "2001-01-01"}, "in the past"),
        ({"policies": " "}, "at least one policy"),
    ):
        answer = make(boss, **fields)
        assert answer.status_code == 400, fields
        assert said in words(answer)
        assert 'value="red"' in answer.text
    make(boss)
    assert make(boss).status_code == 400
    assert [action for _, action, _ in governed.changes] == ["create_key"]


async def test_a_key_is_changed_and_revoked(governed) -> None:
    """What is emptied goes, and a change of nothing is no change on record."""
    boss = governed.person()
    make(boss, spend_per_day="1", concurrency="2")
    limits = {"concurrency": "2", "spend_per_day": ""}
    for _ in range(2):
        assert boss.send("/keys/ci", **{**FIELDS, **limits, "admin": "1"}).status_code == 303
    record = await governed.keys.get("ci")
    assert record.limits == KeyLimits(None, 2, None)
    assert record.admin
    assert boss.send("/keys/ci/revoke").headers["location"] == "/console/keys"
    boss.send("/keys/ci/revoke")
    assert "revoked" in words(boss.get("/keys"))
    did = [action for _, action, _ in governed.changes]
    assert did == ["create_key", "change_key", "revoke_key"]
    assert boss.send("/keys/nobody/revoke").status_code == 404


def test_the_page_of_a_key_says_what_it_used_today(governed) -> None:
    """Beside the cap on spend, if it has one; what it used before is not counted."""
    boss = governed.person()
    make(boss, spend_per_day="1")
    now = datetime.now(UTC)
    for name, at in (("r1", now), ("r2", now - timedelta(days=2))):
        used = replace(receipt(name, key="ci"), at=at, cost_micros=Micros(250_000))
        governed.books.receipts.receipts[RequestId(name)] = used
    assert "Today 1 request, $0.25 of $1.00" in words(boss.get("/keys/ci"))


def test_a_doubt_about_a_cap_is_said_with_the_key() -> None:
    """A cap that shuts every model out is noticed where it is made."""
    governed = Governed(doubted="The price of p/m is unknown.")
    boss = governed.person()
    assert "The price of p/m is unknown." in words(make(boss, spend_per_day="1"))
    assert "The price of p/m is unknown." in words(boss.get("/keys/ci"))


def test_a_holder_sees_its_own_key_alone(governed) -> None:
    """And cannot make or change any."""
    boss = governed.person()
    make(boss, name="red-member")
    make(boss, name="red-viewer", role="viewer")
    member = governed.person("red-member")
    assert "red-viewer" not in words(member.get("/keys"))
    assert member.get("/keys/red-member").status_code == 200
    assert member.get("/keys/red-viewer").status_code == 403
    assert make(member, name="x").status_code == 403
    assert member.send("/keys/red-member", **FIELDS, admin="1").status_code == 403
    assert member.send("/keys/red-viewer/revoke").status_code == 403
    assert member.get("/keys/_new").status_code == 403
