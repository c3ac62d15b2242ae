"""The greeting of a TLS client is understood exactly, or refused."""

import ssl

import pytest

from turnout.sandbox.egress.wire.hello import HelloError, hello_name


def greeting(name: str | None, **versions: ssl.TLSVersion) -> bytes:
    """Return what Python's own TLS sends first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    for field, version in versions.items():
        setattr(context, field, version)
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def record(payload: bytes, *, kind: int = 22, version: bytes = b"\3\1") -> bytes:
    """Return a TLS record."""
    return bytes([kind]) + version + len(payload).to_bytes(2, "big") + payload


def sized(data: bytes, size: int) -> bytes:
    """Return data after its length."""
    return len(data).to_bytes(size, "big") + data


def hello(*extensions: tuple[int, bytes], after: bytes = b"") -> bytes:
    """Return a ClientHello message with some extensions."""
    fields = b"".join(kind.to_bytes(2, "big") + sized(data, 2) for kind, data in extensions)
    body = b"\3\3" + b"r" * 32 + sized(b"", 1) + sized(b"\x13\1", 2) + sized(b"\0", 1)
    return b"\1" + sized(body + sized(fields, 2) + after, 3)


def names(*hosts: bytes, kind: int = 0) -> tuple[int, bytes]:
    """Return the extension that names hosts."""
    return 0, sized(b"".join(bytes([kind]) + sized(host, 2) for host in hosts), 2)


GOOD = hello((10, b""), names(b"a.test"), (0x0A0A, b"grease"), (0xFE0D, b"encrypted"))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_the_greeting_of_a_real_client_is_read(version: ssl.TLSVersion) -> None:
    """Of both versions of TLS that are in use."""
    data = greeting("www.example.org", minimum_version=version, maximum_version=version)
    assert hello_name(data) == "www.example.org"


def test_a_real_client_without_a_name_is_refused() -> None:
    """What it wants cannot be compared with what it asked for."""
    with pytest.raises(HelloError, match="names no host"):
        hello_name(greeting(None))


def test_unknown_extensions_do_not_matter() -> None:
    """Of an encrypted greeting it is the outer name that counts."""
    assert hello_name(record(GOOD)) == "a.test"


def test_what_follows_the_greeting_is_not_looked_at() -> None:
    """A client may send data early."""
    assert hello_name(record(GOOD) + record(b"early", kind=23)) == "a.test"


def test_every_beginning_of_a_greeting_asks_for_more() -> None:
    """Wherever a segment ends."""
    data = greeting("a.test")
    assert {hello_name(data[:length]) for length in range(len(data))} == {None}
    assert hello_name(data) == "a.test"


def test_a_greeting_may_come_in_several_records() -> None:
    """The message is cut anywhere."""
    for cut in range(1, len(GOOD)):
        assert hello_name(record(GOOD[:cut]) + record(GOOD[cut:])) == "a.test"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"GET / HTTP/1.1\r\n", "does not speak TLS"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak TLS"),
        (record(GOOD, version=b"\2\0"), "does not speak TLS"),
        (record(GOOD, version=b"\3\5"), "does not speak TLS"),
        (record(GOOD, kind=23), "does not speak TLS"),
        (record(b""), "does not speak TLS"),
        (b"\x16\3\1\xff\xff", "does not speak TLS"),
        (record(b"\2" + GOOD[1:]), "does not begin with a TLS greeting"),
        (record(GOOD[:9]) + record(b"alert", kind=21), "does not speak TLS"),
        (record(b"\1\xff\xff\xff"), "too long"),
        (b"".join(record(GOOD[at : at + 1]) for at in range(len(GOOD))), "too many pieces"),
        (record(hello()), "names no host"),
        (record(hello(names())), "malformed"),
        (record(hello(names(b"a.test", b"b.test"))), "not name one host"),
        (record(hello(names(b"a.test", kind=1))), "not name one host"),
        (record(hello(names(b"\xe4.test"))), "not name one host"),
        (record(hello(names(b"a.test"), names(b"b.test"))), "extension twice"),
        (record(hello((0, names(b"a.test")[1] + b"x"))), "malformed"),
        (record(hello((0, b"\0\xff\0\0\1a"))), "malformed"),
        (record(hello(names(b"a.test"), after=b"x")), "malformed"),
        (record(b"\1" + sized(b"\3\3", 3)), "malformed"),
    ],
)
def test_what_is_no_plain_greeting_is_refused(data: bytes, why: str) -> None:
    """No other program can find another name in it."""
    with pytest.raises(HelloError, match=why):
        hello_name(data)
