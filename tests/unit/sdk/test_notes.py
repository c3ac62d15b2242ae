"""What is said of hosts that could not be reached."""

from turnout.sandbox.base import Connection, Egress, HostRule
from turnout.sdk.notes import connection_notes

SOME = Egress(rules=(HostRule("example.org"),))


def refused(host: str, port: int = 443, reason: str = "") -> Connection:
    """Return a connection that was not made."""
    return Connection(host, port, allowed=False, reason=reason)


def test_a_refused_host_is_named_with_its_setting() -> None:
    """Programs print an error of their proxy, which says nothing of the cause."""
    reason = "git.example.org is not reachable from this sandbox: add it to `[policy.egress] allow`"
    assert connection_notes(SOME, [refused("git.example.org", reason=reason)], []) == (reason,)


def test_a_reason_that_names_no_host_is_given_one() -> None:
    """Whatever the proxy said of it."""
    notes = connection_notes(SOME, [refused("a.org", reason="the tunnel was closed")], [])
    assert notes == ("a.org:443: the tunnel was closed",)
    (note,) = connection_notes(SOME, [refused("a.org", 8443)], [])
    assert note.startswith("a.org:8443: ")
    assert "`[policy.egress] allow`" in note


def test_a_host_is_named_once() -> None:
    """However often a program tried."""
    assert len(connection_notes(SOME, [refused("a.org"), refused("a.org")], [])) == 1


def test_a_host_that_was_reached_is_not_named() -> None:
    """Only refusals are in the way."""
    served = Connection("example.org", 443, allowed=True, reason="it broke off")
    assert connection_notes(SOME, [served], []) == ()


def test_many_hosts_are_not_all_listed() -> None:
    """A program that tries everything does not fill the output."""
    notes = connection_notes(SOME, [refused(f"h{n}.org") for n in range(9)], [])
    assert len(notes) == 6
    assert "4 more" in notes[-1]


def test_a_name_that_is_none_is_quoted() -> None:
    """It comes from inside, and may hold anything."""
    (note,) = connection_notes(SOME, [refused("a\nturnout: b")], [])
    assert "\n" not in note


def test_without_any_network_the_words_of_the_program_tell() -> None:
    """Nothing can be refused where nothing can be asked for."""
    said = ["fatal: unable to access 'https://a.org/': Could not resolve host: a.org"]
    (note,) = connection_notes(Egress(), [], said)
    assert "`[policy.egress] allow` in turnout.toml" in note
    assert connection_notes(Egress(), [], ["1 failed"]) == ()
    assert connection_notes(SOME, [], said) == ()
