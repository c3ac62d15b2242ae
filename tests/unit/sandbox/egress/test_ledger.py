"""What was asked for stays on record, up to a bound."""

import pytest

from turnout.sandbox.egress.ledger import Ledger, noting
from turnout.sandbox.egress.wire.refusal import RefusedError


def test_connections_are_shown_as_they_stand() -> None:
    """Also while they are open, oldest first."""
    ledger = Ledger()
    first = ledger.admit("a.test", 443)
    ledger.refuse("b.test", 80, "not allowed")
    first.sent_bytes += 3
    first.note_secrets(["TOKEN", "TOKEN"])
    one, two = ledger.connections()
    assert (one.host, one.port, one.allowed, one.sent_bytes) == ("a.test", 443, True, 3)
    assert one.secrets == ("TOKEN",)
    assert (two.host, two.allowed, two.reason) == ("b.test", False, "not allowed")


def test_a_host_is_shown_as_text_of_one_line() -> None:
    """Whatever was sent as its name."""
    ledger = Ledger()
    ledger.refuse("a\r\n\x1b[31m\u202e" + "b" * 400, 80, "no")
    (connection,) = ledger.connections()
    assert connection.host == "a???[31m?" + "b" * 244


def test_refusals_cannot_hide_what_was_served() -> None:
    """They take half of the places, and nobody's place: who has read on so far misses nothing."""
    ledger = Ledger()
    for _ in range(6_000):
        ledger.refuse("bad.test", 443, "no")
    known = len(ledger.connections())
    ledger.admit("good.test", 443)
    assert known == 5_000
    assert [each.host for each in ledger.connections()[known:]] == ["good.test"]


def test_what_has_no_place_on_a_full_ledger_is_not_served() -> None:
    """Whatever passes is on record."""
    ledger = Ledger()
    for port in range(10_000):
        ledger.admit("good.test", port)
    ledger.refuse("bad.test", 443, "no")
    with pytest.raises(RefusedError, match="no more pass"):
        ledger.admit("good.test", 10_000)
    assert [each.port for each in ledger.connections()] == list(range(10_000))


@pytest.mark.parametrize(
    ("error", "allowed", "reason"),
    [
        (RefusedError(403, "private"), False, "private"),
        (RefusedError(502, "down", allowed=True), True, "down"),
        (TimeoutError(), True, "nothing was sent for too long"),
        (ConnectionResetError("secret address"), True, "it broke off"),
    ],
)
def test_a_failure_is_noted(error: Exception, allowed: bool, reason: str) -> None:
    """In words that name nothing of the host machine."""
    entry = Ledger().admit("a.test", 443)
    with pytest.raises(type(error)), noting(entry):
        raise error
    assert (entry.allowed, entry.reason) == (allowed, reason)
