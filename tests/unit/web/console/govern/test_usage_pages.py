"""Usage and events in the console."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.samples import receipt
from tests.unit.web.console.govern.governed import HOSTILE, Governed
from tests.unit.web.console.seen import words

from turnout.core.govern.happenings import Happening
from turnout.core.govern.toolwatch import SeenTool
from turnout.core.ids import RequestId, SessionId
from turnout.core.money import Micros

NOW = datetime.now(UTC)
SHOWN = HOSTILE.replace("\u202e", "\\u202e")


@pytest.fixture
def governed():
    """Return a console with requests of two keys on two days."""
    made = Governed()
    rows = (
        ("r1", "boss", "run-0123456789ab", 2_000_000, 1),
        ("r2", "boss", f"s{HOSTILE}", 500_000, 2),
        ("r3", "red-member", "other", 250_000, 2),
    )
    for name, key, session, cost, days in rows:
        one = receipt(name, key=key, session=session)
        made.books.receipts.receipts[RequestId(name)] = replace(
            one, at=NOW - timedelta(days=days), cost_micros=Micros(cost)
        )
    return made


def test_usage_is_added_up_with_charts_and_tables(governed) -> None:
    """Sessions are told apart by key, a run's links to it, and hostile names are text."""
    page = governed.person().get("/usage")
    said = words(page)
    assert "Spend $2.75" in said
    assert "Requests 3" in said
    assert 'href="/console/runs/run-0123456789ab"' in page.text
    assert SHOWN in said
    assert "<script>alert" not in page.text
    assert page.text.count("<svg viewBox") == 2
    assert "Spend by session and key over time" in said
    assert "style=" not in page.text


def test_usage_is_grouped_and_narrowed(governed) -> None:
    """By what is ticked, three at most, since a moment and for a key."""
    boss = governed.person()
    since = f"{NOW - timedelta(days=1):%Y-%m-%d}"
    by_key = words(boss.get(f"/usage?by=key&by=call_kind&since={since}"))
    assert "By key, call kind" in by_key
    assert "Spend by key, " in by_key
    assert "Spend by model over time" in words(boss.get("/usage?by=day"))
    assert "Spend $2.00" in by_key
    assert "Spend $0.25" in words(boss.get("/usage?key=red-member"))
    assert "There were no such requests." in words(boss.get("/usage?since=1h"))


def test_what_is_wrong_in_a_filter_is_said_beside_the_field(governed) -> None:
    """All at once, with everything that was typed; nothing is counted."""
    boss = governed.person()
    asked = {
        "since": "soon",
        "until": "1999",
        "session": "s9",
        "by": ["key", "model", "day", "task"],
    }
    page = boss.get("/usage", params=asked)
    said = words(page)
    assert page.status_code == 400
    assert "'soon' is no moment. Write 7d" in said
    assert "'1999' is no moment." in said
    assert "Tick 3 at most." in said
    for kept in ('value="soon"', 'value="1999"', 'value="s9"', 'value="task" checked'):
        assert kept in page.text
    assert "Spend" not in said
    events = boss.get("/events", params={"since": "soon", "kind": "run.ended", "key": "boss"})
    assert (events.status_code, "'soon' is no moment." in words(events)) == (400, True)
    assert 'value="run.ended" checked' in events.text
    assert "Nothing of that kind" not in words(events)


def test_one_day_is_not_called_a_time(governed) -> None:
    """A title says what the table is grouped by as it was asked for, and one column its day."""
    said = words(governed.person().get("/usage?since=1h&by=session"))
    assert "By session " in said
    assert "Two keys that use the same session id have two sessions." in said
    two = words(governed.person().get("/usage?since=7d&by=key"))
    assert "Spend by key over time" in two
    assert "Two keys" not in two
    day = f"{NOW - timedelta(days=2):%Y-%m-%d}"
    after = f"{NOW - timedelta(days=1):%Y-%m-%d}"
    one = words(governed.person().get(f"/usage?since={day}&until={after}&by=key"))
    assert f"Requests, {NOW - timedelta(days=2):%b %d}" in one


@pytest.mark.parametrize(("key", "where"), [("boss", "?project=red"), ("red-member", "")])
async def test_links_to_runs_lead_to_the_project_of_the_run(governed, key: str, where: str) -> None:
    """An admin of another project gets there from every page, and by a bare address."""
    console = governed.console
    run_id = await console.service.order(task="Mend it.")
    one = Happening("e1", NOW, "run.started", run_id, "It has begun.", project="red", key=key)
    governed.notices.happenings["e1"] = one
    capped = replace(one, id="e2", kind="session.capped", session=SessionId(run_id))
    governed.notices.happenings["e2"] = capped
    person = governed.person(key)
    place = f'href="/console/runs/{run_id}{where}"'
    assert place in person.get("/events").text
    assert place in person.get("/usage").text
    bare = person.get(f"/runs/{run_id}")
    if where:
        assert (bare.status_code, bare.headers["location"]) == (
            303,
            f"/console/runs/{run_id}{where}",
        )
        person.send(f"/runs/{run_id}/cancel{where}")
        assert f'href="/console/runs/{run_id}"' in person.get("/events/changes").text
    assert "Mend it." in words(person.get(f"/runs/{run_id}{where}"))
    assert person.get("/runs/run-000000000000").status_code == 404
    stranger = governed.person("blue-approver")
    assert stranger.get(f"/runs/{run_id}").status_code == 404
    assert stranger.get(f"/runs/{run_id}?project=red").status_code == 404


def test_a_key_sees_its_own_usage_and_events_alone(governed) -> None:
    """Naming another key is refused."""
    member = governed.person("red-member")
    assert "Spend $0.25" in words(member.get("/usage"))
    assert member.get("/usage?key=boss").status_code == 403
    assert member.get("/events?key=boss").status_code == 403
    assert member.get("/events/changes").status_code == 403


def happened(governed, kind, name, key="boss", **more) -> None:
    """Note that something happened."""
    one = Happening(
        name, NOW, kind, f"subject-{name}", f"It was {HOSTILE} {name}.", key=key, **more
    )
    governed.notices.happenings[name] = one


def test_runs_that_a_cap_stopped_are_listed(governed) -> None:
    """With what reached its cap; runs that ended otherwise are not among them."""
    session = SessionId("run-0123456789ab")
    happened(governed, "run.ended", "a", outcome="capped", session=session)
    happened(governed, "run.ended", "b", outcome="answered")
    happened(governed, "session.capped", "c", session=session)
    stopped = words(governed.person().get("/usage")).split("Stopped by a cap")[1]
    assert f"It was {SHOWN} a." in stopped
    assert f"It was {SHOWN} c." in stopped
    assert f"{SHOWN} b." not in stopped


def test_events_are_listed_by_kind_and_as_a_part(governed) -> None:
    """Each with a way to what it is about."""
    happened(governed, "policy.changed", "a", policy="team")
    happened(governed, "run.started", "b")
    happened(governed, "tool.refused", "c", key="red-member", policy="team")
    boss = governed.person()
    page = boss.get("/events")
    assert "<script>alert" not in page.text
    assert 'href="/console/policies/subject-a"' in page.text
    assert 'href="/console/runs/subject-b"' in page.text
    some = boss.part("/events?kind=run.started&since=1d")
    assert "<html" not in some.text
    assert "subject-b" in some.text
    assert "subject-a" not in some.text
    member = words(governed.person("red-member").get("/events"))
    assert f"{SHOWN} c." in member
    assert f"{SHOWN} b." not in member


def test_declared_tools_are_listed(governed) -> None:
    """With when each was seen first and last; a key sees its own."""
    for key in ("boss", "red-member"):
        governed.notices.seen.append(SeenTool("red", key, f"{key}-{HOSTILE}", NOW, NOW, 3, 1))
    said = words(governed.person().get("/events/tools"))
    assert f"boss-{SHOWN}" in said
    assert f"red-member-{SHOWN}" in said
    assert "boss-" not in words(governed.person("red-member").get("/events/tools"))


def test_changes_are_listed_with_their_authors(governed) -> None:
    """What was done in the console is read back there."""
    boss = governed.person()
    boss.send("/policies/_new", name="fresh", text="", expected=0, is_new="1")
    said = words(boss.get("/events/changes"))
    assert "boss put_policy fresh revision: 1" in said
    assert "Nothing was changed." in words(boss.get("/events/changes?actor=nobody"))
