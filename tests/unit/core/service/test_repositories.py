"""A remote caller names what is listed, and nothing else of this machine or its network."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.core.service.repositories import RepositoryBook, check_name, check_server
from turnout.errors import UsageError

BOOK = RepositoryBook(
    {"shop": "/srv/git/shop"}, ("git.example.org/team", "code.example.org:8443", "all.example.org")
)


@pytest.mark.parametrize(
    ("wanted", "place"),
    [
        ("shop", "/srv/git/shop"),
        ("https://git.example.org/team/shop.git", "https://git.example.org/team/shop.git"),
        ("https://code.example.org:8443/a/b", "https://code.example.org:8443/a/b"),
        ("https://all.example.org/a", "https://all.example.org/a"),
        ("https://all.example.org:443/a", "https://all.example.org:443/a"),
    ],
)
def test_what_is_listed_is_found(wanted, place):
    """A name stands for its place, a URL of a listed server for itself."""
    assert BOOK.located(wanted) == place


@pytest.mark.parametrize(
    "wanted",
    [
        "",
        ".",
        "/srv/git/shop",
        "./shop",
        "../shop",
        "~/shop",
        "shop/",
        "file:///srv/git/shop",
        "ssh://git.example.org/team/shop",
        "http://git.example.org/team/shop",
        "HTTPS://git.example.org/team/shop",
        "git@git.example.org:team/shop",
        "ext::sh -c id",
        "https://git.example.org/other/shop",
        "https://git.example.org/team",
        "https://git.example.org/teamwork/shop",
        "https://git.example.org/team/../other/shop",
        "https://git.example.org/team/%2e%2e/other",
        "https://git.example.org/team//shop",
        "https://git.example.org/team/shop?service=x",
        "https://git.example.org/team/shop#x",
        "https://git.example.org:8443/team/shop",
        "https://code.example.org/a/b",
        "https://user:secret@all.example.org/a",
        "https://all.example.org@127.0.0.1/a",
        "https://all.example.org\\@127.0.0.1/a",
        "https://all.example.org.evil.example.net/a",
        "https://127.0.0.1/a",
        "https://[::1]/a",
        "https://all.example.org/a b",
        "https://all.example.org/a\n",
        "https://all.example.org:99999/a",
        "\ud800",
    ],
)
def test_nothing_else_is(wanted):
    """No path, no other scheme, no other server, however it is written."""
    with pytest.raises(UsageError, match="none that this service works on"):
        BOOK.check(wanted)


@given(st.text(max_size=200))
def test_an_empty_book_admits_nothing(wanted):
    """Until somebody lists a repository, none can be named."""
    with pytest.raises(UsageError):
        RepositoryBook().check(wanted)


@pytest.mark.parametrize("wrong", ["", "-x", "a/b", "a b", ".git", "x" * 101, "é"])
def test_a_name_is_plain(wrong):
    """It stands in URLs, logs and lists."""
    check_name("shop-2.api_v1")
    with pytest.raises(UsageError, match="name of a repository"):
        check_name(wrong)


@pytest.mark.parametrize(
    "wrong", ["", "https://git.example.org", "Git.example.org", "a@b", "a/../b", "*", "a:0", "-a"]
)
def test_a_server_is_a_host_with_a_port_or_a_path(wrong):
    """Not a URL, not a pattern."""
    for right in BOOK.servers:
        check_server(right)
    with pytest.raises(UsageError, match="server of repositories"):
        check_server(wrong)
