"""Addresses and keys are checked before a header or a socket chokes on them."""

import pytest

from turnout.gateway.config.addresses import http_address, sendable_key


@pytest.mark.parametrize(
    "text", ["http://127.0.0.1:8000/v1", "https://models.example", "http://[::1]:8/v1"]
)
def test_an_address_loses_only_the_slashes_at_its_end(text: str) -> None:
    """People copy them with and without."""
    assert http_address(text) == http_address(f"{text}//") == text


@pytest.mark.parametrize(
    "text",
    [
        "localhost:8000",
        "ftp://h/v1",
        "http://",
        "http://h:99999/v1",
        "http://h:0/v1",
        "http://[::1/v1",
        "http://a b/v1",
        "http://h/v1\nx",
        f"http://{'a' * 64}.example/v1",
        "http://a..b/v1",
    ],
)
def test_what_no_client_could_call_is_no_address(text: str) -> None:
    """The error shows a right one."""
    with pytest.raises(ValueError, match=r"http://127\.0\.0\.1:8000/v1"):
        http_address(text)


@pytest.mark.parametrize("text", ["http://user:pass@h/v1", "http://key@h/v1", "http://h/v1?key=k"])
def test_an_address_holds_no_secret(text: str) -> None:
    """Addresses are shown in errors and reports."""
    with pytest.raises(ValueError, match="no key"):
        http_address(text)


def test_a_key_loses_the_white_space_around_it() -> None:
    """Files end with a line break, on some systems with two characters."""
    assert sendable_key("sk-1\r\n") == "sk-1"
    assert sendable_key("") == ""


@pytest.mark.parametrize("text", ["a\nb", "a b", "schlüssel", "a\x00b", "a\udcff"])
def test_a_key_that_no_header_can_hold_is_refused_unseen(text: str) -> None:
    """The error does not show it."""
    with pytest.raises(ValueError, match="white space or another character") as refused:
        sendable_key(text)
    assert text not in str(refused.value)
