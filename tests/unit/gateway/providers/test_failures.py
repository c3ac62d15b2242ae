"""An upstream's failure tells what to do, and never a key."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.core.ids import ProviderName
from turnout.core.json import JsonObject
from turnout.gateway.catalog import Provider
from turnout.gateway.providers.failures import (
    from_status,
    in_band,
    retry_after,
    without_key,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PROVIDER = Provider(ProviderName("acme"), "http://acme.test/v1", api_key="sk-secret")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"Retry-After-Ms": "1500", "Retry-After": "9"}, 1.5),
        ({"Retry-After": "Thu, 01 Jan 2026 00:00:30 GMT"}, 30.0),
        ({"Retry-After": "Wed, 31 Dec 2025 23:00:00 GMT"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "-5"}, None),
        ({}, None),
    ],
)
def test_every_form_of_retry_after_is_read(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, milliseconds and dates give a wait; anything else gives none."""
    assert retry_after(headers, NOW) == seconds


@given(st.text())
def test_no_retry_after_breaks_the_reader(text: str) -> None:
    """Whatever a header holds, the answer is a sane wait or none."""
    wait = retry_after({"Retry-After": text}, NOW)
    assert wait is None or wait >= 0


def test_a_date_far_ahead_is_a_wait_until_then() -> None:
    """The wait is counted from the clock that is handed in."""
    assert retry_after({"Retry-After": "Thu, 01 Jan 2026 01:00:00 GMT"}, NOW) == 3600
    later = NOW + timedelta(minutes=30)
    assert retry_after({"Retry-After": "Thu, 01 Jan 2026 01:00:00 GMT"}, later) == 1800


@pytest.mark.cases
def test_a_rate_limit_keeps_its_wait_and_its_body() -> None:
    """Status, wait, code and wording of an upstream's refusal survive."""
    raw = b'{"error":{"message":"slow down","code":"rate_limit_exceeded"}}'
    error = from_status(429, {"Retry-After": "7", "Server": "x"}, raw, PROVIDER, NOW)
    assert (error.status, error.retry_after, error.body) == (429, 7.0, raw)
    assert error.headers == {"retry-after": "7"}
    assert error.retryable
    assert str(error) == "answered 429: slow down"


@pytest.mark.cases
def test_a_key_that_the_upstream_repeats_is_taken_out() -> None:
    """Neither the message nor the kept body holds the provider's key."""
    raw = b'{"error":{"message":"Incorrect API key: sk-secret"}}'
    error = from_status(401, {}, raw, PROVIDER, NOW)
    assert "sk-secret" not in f"{error} {error.body!r} {PROVIDER!r}"


def test_a_page_is_no_body_of_our_shape() -> None:
    """HTML is named and never forwarded."""
    error = from_status(502, {}, b"<html>Bad gateway</html>", PROVIDER, NOW)
    assert error.body is None
    assert str(error) == "answered 502: a page of HTML"


@pytest.mark.parametrize(("code", "status"), [(503, 503), ("overloaded", None), (7, None)])
def test_an_error_in_a_good_answer_has_its_status(code: object, status: int | None) -> None:
    """Only a code that is an HTTP error status counts as one."""
    body = orjson.loads(orjson.dumps({"error": {"message": "overloaded", "code": code}}))
    assert in_band(body, "chat").status == status


@pytest.mark.parametrize(
    ("kind", "status"),
    [("overloaded_error", 529), ("rate_limit_error", 429), ("api_error", None)],
)
def test_the_type_of_an_error_stands_for_its_status(kind: str, status: int | None) -> None:
    """Anthropic's shape has no numbers in its events."""
    error = in_band({"type": "error", "error": {"type": kind, "message": "No."}}, "messages")
    assert (error.status, error.said, error.shape) == (status, "No.", "messages")
    assert error.body is not None


def test_an_answer_that_holds_an_error_is_no_error_body() -> None:
    """It is never shown to a client as one."""
    body: JsonObject = {"object": "response", "error": {"message": "broke", "code": "server_error"}}
    assert in_band(body, "responses").body is None


@pytest.mark.parametrize(("key", "says"), [("sk-secret", "[key]"), ("any", "any")])
def test_a_key_is_blotted_out_wherever_it_stands(key: str, says: str) -> None:
    """A word that local servers take for a key is none."""
    raw = f"the key {key} is over its limit".encode()
    sent = without_key(raw, replace(PROVIDER, api_key=key))
    assert sent == f"the key {says} is over its limit".encode()


def test_a_key_that_is_no_secret_leaves_the_words_alone() -> None:
    """Local servers want any key, and people send them `x`."""
    raw = b'{"error":{"message":"the context is exceeded"}}'
    error = from_status(400, {}, raw, replace(PROVIDER, api_key="x"), NOW)
    assert str(error) == "answered 400: the context is exceeded"
