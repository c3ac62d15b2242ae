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
    by_key = words(boss.get("/usage?by=key&by=call_kind&since=36h"))
    assert "By key, call kind" in by_key
    assert "Spend by key over time" in by_key
    assert "Spend by model over time" in words(boss.get("/usage?by=day"))
    assert "Spend $2.00" in by_key
    assert "Spend $0.25" in words(boss.get("/usage?key=red-member"))
    assert "There were no such requests." in words(boss.get("/usage?since=1h"))
    assert boss.get("/usage?by=key&by=model&by=day&by=task").status_code == 400
    assert boss.get("/usage?since=soon").status_code == 400


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
