"""Keys in the console: shown once, changed, revoked, and seen by their holders alone."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape

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


def change(person, opened, **fields):
    """Send the form of a page of a key that was opened before."""
    seen = opened.text.split('name="seen" value="')[1].split('"')[0]
    return person.send("/keys/ci", seen=unescape(seen), **{**FIELDS, **fields})


async def test_a_key_is_shown_once_and_never_again(governed) -> None:
    """Its page and the list have its first and last characters alone; the record has none."""
    boss = governed.person()
    made = make(boss, spend_per_day="2.50", requests_per_minute="60", expires="2099-01-31")
    assert made.headers["cache-control"] == "no-store"
    key = made.text.split('<textarea id="key"')[1].split(">")[1].split("<")[0]
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
        ({"role": "king"}, "Choose one of these roles."),
        ({"spend_per_day": "NaN"}, "an amount in US dollars"),
        ({"spend_per_day": "-1"}, "US dollars above 0"),
        ({"concurrency": "1e3"}, "a whole number above 0"),
        ({"requests_per_minute": "0"}, "a whole number above 0"),
        ({"expires": "soon"}, "This must be a date"),
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


def test_all_that_is_wrong_with_a_key_is_said_at_once_beside_its_fields(governed) -> None:
    """One round for any number of mistakes, when it is made and when it is changed."""
    boss = governed.person()
    wrong = {"requests_per_minute": "x", "concurrency": "0", "spend_per_day": "-3"}
    wrong |= {"expires": "soon", "project": "a b", "policies": ""}
    page = make(boss, "bad name!", **wrong)
    make(boss)
    changed = change(boss, boss.get("/keys/ci"), **wrong)
    for answer, names in ((page, ["name", *wrong]), (changed, list(wrong))):
        assert answer.status_code == 400
        found = re.findall(r'class="error" id="e-([a-z_]+)"', answer.text)
        assert sorted(found) == sorted(names)
        assert "Nothing was saved" in words(answer)
    assert [action for _, action, _ in governed.changes] == ["create_key"]


def test_a_new_key_may_do_the_least_unless_more_is_chosen(governed) -> None:
    """As on the command line."""
    page = governed.person().get("/keys/_new").text
    assert re.findall(r'name="role" value="(\w+)" checked', page) == ["models"]


async def test_a_key_is_changed_and_revoked(governed) -> None:
    """What is emptied goes, and a change of nothing is no change on record."""
    boss = governed.person()
    make(boss, spend_per_day="1", concurrency="2")
    limits = {"concurrency": "2", "spend_per_day": ""}
    for _ in range(2):
        assert change(boss, boss.get("/keys/ci"), **limits, admin="1").status_code == 303
    record = await governed.keys.get("ci")
    assert record.limits == KeyLimits(None, 2, None)
    assert record.admin
    assert boss.send("/keys/ci/revoke").headers["location"] == "/console/keys"
    boss.send("/keys/ci/revoke")
    assert "revoked" in words(boss.get("/keys"))
    did = [action for _, action, _ in governed.changes]
    assert did == ["create_key", "change_key", "revoke_key"]
    assert boss.send("/keys/nobody/revoke").status_code == 404


async def test_a_form_undoes_nothing_that_its_sender_has_not_seen(governed) -> None:
    """It comes back with what is different by now, and is taken once that was seen."""
    boss = governed.person()
    make(boss)
    early = boss.get("/keys/ci")
    assert change(boss, early, spend_per_day="1", policies="team").status_code == 303
    late = change(boss, early, role="viewer")
    assert late.status_code == 409
    assert "Somebody else has changed this key" in words(late)
    assert "policies: team, other → team" in words(late)
    assert "spend per day: none → 1" in words(late)
    record = await governed.keys.get("ci")
    assert (record.role, record.limits.spend_per_day) == ("member", 1_000_000)
    assert change(boss, late, role="viewer").status_code == 303
    assert (await governed.keys.get("ci")).role == "viewer"
    assert [action for _, action, _ in governed.changes].count("change_key") == 2


@pytest.mark.parametrize("seen", ["", "{", "[]", "[" * 5_000, '{"role": 1}'])
async def test_a_form_that_does_not_say_what_it_was_made_from_changes_nothing(
    governed, seen: str
) -> None:
    """Such as one that nobody has opened."""
    boss = governed.person()
    make(boss)
    answer = boss.send("/keys/ci", **FIELDS, seen=seen, spend_per_day="1")
    assert answer.status_code == 409
    assert (await governed.keys.get("ci")).limits == KeyLimits()


@pytest.mark.parametrize("fields", [{"role": ""}, {"admin": ""}, {"admin": "false"}])
async def test_an_empty_field_gives_a_key_no_rights(governed, fields) -> None:
    """Only a tick makes an admin, and no role is not a role."""
    make(governed.person(), **fields)
    keys = {record.name: record for record in await governed.keys.list()}
    assert "ci" not in keys or not keys["ci"].admin
    assert ("ci" in keys) == ("admin" in fields)


async def test_a_revoked_key_stays_as_it_is(governed) -> None:
    """A form that was opened before changes nothing of it."""
    boss = governed.person()
    make(boss)
    opened = boss.get("/keys/ci")
    boss.send("/keys/ci/revoke")
    answer = change(boss, opened, spend_per_day="5")
    assert (answer.status_code, "was revoked" in words(answer)) == (409, True)
    assert (await governed.keys.get("ci")).limits == KeyLimits()


@pytest.mark.parametrize("amount", ["1e999993", "-1e999993", "1e99999999", "9" * 100_000])
def test_an_amount_that_takes_long_to_reckon_with_is_refused_at_once(governed, amount) -> None:
    """It is a few characters, and would keep everybody waiting."""
    answer = make(governed.person(), spend_per_day=amount)
    assert (answer.status_code, "an amount in US dollars" in words(answer)) == (400, True)


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
