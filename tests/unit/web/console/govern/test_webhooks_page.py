"""Webhooks in the console: who is told, how that fares, and what is done about it."""

from datetime import UTC, datetime, timedelta

from tests.unit.web.console.govern.governed import HOSTILE, Governed
from tests.unit.web.console.seen import words

from turnout.core.govern.webhooks import Webhook

URL = "https://hooks.example.org/in"
NOW = datetime.now(UTC)


def add(person, **fields):
    """Send the form of a new webhook."""
    asked = {"url": URL, "secret_variable": "HOOK_SECRET", **fields}
    return person.send("/events/webhooks", **asked)


def test_a_webhook_is_added_seen_and_removed() -> None:
    """Each change is on record under the name that the API gives it."""
    governed = Governed()
    boss = governed.person()
    added = add(boss, kind=["run.ended", "nothing"], project="shop")
    assert added.headers["location"] == "/console/events/webhooks"
    said = words(boss.get("/events/webhooks"))
    assert f"{URL} hook-" in said
    assert "run.ended, project shop; signed with HOOK_SECRET" in said
    assert "nothing sent yet" in said
    ((_, _, name),) = governed.changes
    boss.send("/events/webhooks/remove", id=name)
    assert "Nobody is told" in words(boss.get("/events/webhooks"))
    assert [action for _, action, _ in governed.changes] == ["add_webhook", "remove_webhook"]
    assert boss.send("/events/webhooks/remove", id=name).status_code == 404


def test_what_cannot_be_one_is_told_and_stays_in_the_form() -> None:
    """Nothing is kept and nothing is on record."""
    governed = Governed()
    answer = add(governed.person(), url="http://127.0.0.1/", kind=["run.ended"])
    assert answer.status_code == 400
    assert 'value="http://127.0.0.1/"' in answer.text
    assert 'value="run.ended" checked' in answer.text
    assert 'role="alert"' in answer.text
    assert governed.changes == []


async def test_one_that_fails_is_tried_at_once() -> None:
    """Its failure is shown as text; a second try of what does not fail changes nothing."""
    governed = Governed()
    await governed.hooks.add(Webhook("hook-1", URL, "HOOK_SECRET", created_by=HOSTILE), NOW)
    later = NOW + timedelta(hours=1)
    governed.hooks.fail("hook-1", f"503: {HOSTILE}", at=NOW, again_at=later)
    boss = governed.person()
    page = boss.get("/events/webhooks")
    assert "fails again at" in words(page)
    assert "503: <script>" in words(page)
    assert "<script>alert" not in page.text
    assert "<html" not in boss.part("/events/webhooks").text
    for _ in range(2):
        assert boss.send("/events/webhooks/retry", id="hook-1").status_code == 303
    assert "Try now" not in boss.get("/events/webhooks").text
    assert governed.changes == [("boss", "retry_webhook", "hook-1")]


def test_addresses_are_for_admins() -> None:
    """They may hold what opens them."""
    member = Governed().person("red-member")
    assert member.get("/events/webhooks").status_code == 403
    assert "Webhooks" not in words(member.get("/events"))
    assert add(member).status_code == 403
