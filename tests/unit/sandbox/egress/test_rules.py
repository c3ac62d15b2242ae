"""Names match as names do; what some program would read as an address never matches."""

import pytest

from turnout.errors import ConfigError
from turnout.sandbox.base import HostRule
from turnout.sandbox.egress.rules import (
    canonical_host,
    check_rule,
    find_rule,
    parse_rule,
    rule_text,
    split_target,
)

ADDRESSES = [
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0X7F.0.0.1",
    "0x7f.1",
    "0x",
    "1.0x",
    "0177.0.0.1",
    "017700000001",
    "1.2.3.4.5",
    "256.256.256.256",
    "host.42",
    "::1",
    "[::1]",
    "::ffff:10.0.0.1",
    "[::ffff:127.0.0.1]",
    "fe80::1%eth0",
    "[fe80::1%25eth0]",
]
NO_NAMES = [
    "",
    ".",
    "..",
    "a..b",
    ".a",
    "a b",
    " a",
    "a\t",
    "a\n",
    "a\0",
    "a/b",
    "a@b",
    "a%2eb",
    "a,b",
    "a*b",
    "*",
    "-a",
    "a-",
    "a" * 64,
    ".".join(["a" * 63] * 4),
    "ex\u00e4mple.org",
    "example\u3002org",
    "\uff11\uff12\uff17.1",
]


@pytest.mark.parametrize("text", ADDRESSES)
def test_no_spelling_of_an_address_is_a_host(text: str) -> None:
    """Whatever a resolver or a URL parser makes of it."""
    with pytest.raises(ValueError, match=r"address|no host name"):
        canonical_host(text)


@pytest.mark.parametrize("text", NO_NAMES)
def test_what_is_no_name_is_no_host(text: str) -> None:
    """Odd bytes, empty parts, too much of it."""
    with pytest.raises(ValueError, match=r"no host name|not ASCII"):
        canonical_host(text)


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("Example.org", "example.org"),
        ("example.org.", "example.org"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("localhost", "localhost"),
        ("_acme.example", "_acme.example"),
        ("1password.com", "1password.com"),
        ("3com", "3com"),
    ],
)
def test_a_name_has_one_form(text: str, host: str) -> None:
    """Case and a final dot do not matter."""
    assert canonical_host(text) == host


@pytest.mark.parametrize(
    ("rule", "host", "matches"),
    [
        ("example.org", "example.org", True),
        ("example.org", "www.example.org", False),
        ("example.org", "badexample.org", False),
        ("example.org", "example.org.evil.test", False),
        ("*.example.org", "www.example.org", True),
        ("*.example.org", "a.b.example.org", True),
        ("*.example.org", "example.org", False),
        ("*.example.org", "badexample.org", False),
        ("*.Example.ORG.", "www.example.org", True),
    ],
)
def test_a_rule_covers_a_host_or_all_below_it(rule: str, host: str, matches: bool) -> None:
    """`*.name` never covers the name itself."""
    assert (find_rule([parse_rule(rule)], host, 443) is not None) is matches


def test_a_rule_without_a_port_is_for_the_usual_ones() -> None:
    """With a port it is for that one alone."""
    assert parse_rule("example.org") == HostRule("example.org", (443, 80))
    assert parse_rule("example.org:8443") == HostRule("example.org", (8443,))
    assert find_rule([parse_rule("example.org:8443")], "example.org", 443) is None
    for text in ("example.org", "example.org:8443", "*.example.org"):
        assert rule_text(parse_rule(text)) == text


def test_a_rule_that_admits_private_addresses_wins() -> None:
    """The operator named the host; a wider rule does not take that back."""
    wide, named = parse_rule("*.corp.test"), parse_rule("mirror.corp.test", private=True)
    assert find_rule([wide, named], "mirror.corp.test", 443) == named
    assert find_rule([wide, named], "other.corp.test", 443) == wide


@pytest.mark.parametrize(
    "text",
    [
        *ADDRESSES,
        *NO_NAMES,
        "*.",
        "*.com",
        "*.*.example.org",
        "a.*.org",
        "https://example.org",
        "example.org/simple",
        "example.org:",
        "example.org:0",
        "example.org:65536",
        "example.org:+1",
        "example.org:08",
        "example.org:https",
        "10.0.0.1:443",
        "[::1]:443",
        "localhost",
        "LocalHost.:8000",
        "app.localhost",
    ],
)
def test_a_bad_rule_is_refused_with_its_mend(text: str) -> None:
    """The operator reads what to write instead."""
    with pytest.raises(ConfigError, match=r"cannot be allowed: .*\. Write a host name such as"):
        parse_rule(text)


def test_almost_everything_is_allowed_only_where_it_is_private() -> None:
    """`*.internal` is a network of one's own, `*.com` is not."""
    assert parse_rule("*.internal", private=True).host == "*.internal"
    with pytest.raises(ConfigError, match="almost everything"):
        parse_rule("*.internal")


@pytest.mark.parametrize("ports", [(), (0,), (443, 65536), (-1,)])
def test_a_rule_has_ports(ports: tuple[int, ...]) -> None:
    """Each of them is one that exists."""
    with pytest.raises(ConfigError, match="ports"):
        check_rule(HostRule("example.org", ports))


@pytest.mark.parametrize(
    ("text", "default", "parts"),
    [
        ("a:443", None, ("a", 443)),
        ("a", 80, ("a", 80)),
        ("[::1]:443", None, ("[::1]", 443)),
        ("[::1]", 80, ("[::1]", 80)),
        ("a b:1", None, ("a b", 1)),
    ],
)
def test_a_target_has_a_host_and_a_port(
    text: str, default: int | None, parts: tuple[str, int]
) -> None:
    """A port that is not said is that of the protocol."""
    assert split_target(text, default_port=default) == parts


@pytest.mark.parametrize(
    "text", ["a", "a:", "a:0", "a:65536", "a: 1", "a:1 ", "a:0x50", "a:\u0661"]
)
def test_a_target_without_a_port_is_none(text: str) -> None:
    """Of a CONNECT, which has no default."""
    with pytest.raises(ValueError, match="port"):
        split_target(text)
