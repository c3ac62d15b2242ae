"""What the proxy reads byte by byte: names, greetings, and streams that may hold a secret."""

import re
import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.sandbox.base import HostRule
from turnout.sandbox.egress.rules import canonical_host, check_rule, find_rule
from turnout.sandbox.egress.secret import Scrubber
from turnout.sandbox.egress.wire.hello import HelloError, hello_name

LABELS = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
NAMES = st.lists(LABELS, min_size=1, max_size=4).map(".".join)
SMALL = st.text("ab", min_size=1, max_size=5).map(str.encode)


@given(st.text(max_size=40))
def test_any_text_is_a_canonical_name_or_refused(text: str) -> None:
    """A name that is accepted is in its final form, and is no address."""
    try:
        host = canonical_host(text)
    except ValueError:
        return
    assert canonical_host(host) == host
    assert re.fullmatch(r"[a-z0-9_.-]+", host)
    assert not re.fullmatch(r"[0-9.]+", host)


@given(NAMES, NAMES)
def test_a_rule_covers_exactly_what_it_says(name: str, other: str) -> None:
    """A name covers itself, `*.name` what has a label more."""
    exact, below = (check_rule(HostRule(rule)) for rule in (name, f"*.x.{name}"))
    assert (find_rule([exact], other, 443) is not None) is (other == name)
    assert find_rule([below], f"{other}.x.{name}", 443)
    assert find_rule([below], f"x.{name}", 443) is None
    assert (find_rule([below], other, 443) is not None) is other.endswith(f".x.{name}")


@given(NAMES, st.data())
def test_the_name_in_a_real_greeting_is_read_however_it_is_cut(
    name: str, data: st.DataObject
) -> None:
    """Until the last byte is there, more is asked for."""
    outgoing = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    greeting = outgoing.read()
    cut = data.draw(st.integers(0, len(greeting) - 1))
    assert hello_name(greeting[:cut]) is None
    assert hello_name(greeting) == name


@given(st.binary(max_size=200), st.binary(max_size=100), st.integers(0, 200))
def test_no_bytes_make_the_reader_of_greetings_fail(head: bytes, tail: bytes, at: int) -> None:
    """Whatever they are, it is a name, a refusal or a wish for more."""
    for data in (head, b"\x16\x03\x01" + head, _changed(head, tail, at)):
        try:
            name = hello_name(data)
        except HelloError:
            continue
        assert name is None or name.isascii()


@given(st.lists(SMALL), st.dictionaries(SMALL, st.just(b"-"), min_size=1, max_size=4))
def test_a_stream_is_scrubbed_the_same_whatever_pieces_it_comes_in(
    pieces: list[bytes], replacements: dict[bytes, bytes]
) -> None:
    """As the whole would be: the leftmost match, and there the longest."""
    scrubber = Scrubber(replacements)
    streamed = b"".join([*map(scrubber.feed, pieces), scrubber.finish()])
    longest_first = sorted(replacements, key=len, reverse=True)
    assert streamed == re.sub(b"|".join(longest_first), b"-", b"".join(pieces))


def _changed(head: bytes, tail: bytes, at: int) -> bytes:
    """Return a well-formed greeting with some bytes put over it."""
    host = b"example.org"
    names = b"".join(
        (len(host) + extra).to_bytes(2, "big") + more
        for extra, more in ((5, b""), (3, b"\0"), (0, host))
    )
    body = b"\3\3" + bytes(32) + b"\0\0\2\x13\1\1\0"
    body += (len(names) + 2).to_bytes(2, "big") + b"\0\0" + names
    message = b"\1" + len(body).to_bytes(3, "big") + body
    data = b"\x16\3\1" + len(message).to_bytes(2, "big") + message
    assert hello_name(data) == host.decode()
    at %= len(data)
    return data[:at] + head[:4] + data[at + len(head[:4]) :] + tail
