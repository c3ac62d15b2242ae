"""Errors take the shape that chat completions clients read."""

import orjson
import pytest

from turnout.errors import GatewayError, SandboxError, StoreError
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.wire.chat.errors import write_error


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (402, "insufficient_quota"),
        (403, "permission_error"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (503, "server_error"),
    ],
)
def test_an_error_of_ours_has_message_type_param_and_code(status: int, kind: str) -> None:
    """The SDKs read all four."""
    error = GatewayError("No.", status=status, code="because", mend="Do so.", param="model")
    reply = write_error(error)
    assert reply.status == status
    assert orjson.loads(reply.body) == {
        "error": {"message": "No. Do so.", "type": kind, "param": "model", "code": "because"}
    }


def test_a_session_cap_tells_clients_not_to_retry() -> None:
    """The SDKs retry a 429 otherwise, and every retry would count again."""
    capped = GatewayError("Enough.", status=429, code="session_request_cap")
    assert write_error(capped).headers == {"x-should-retry": "false"}
    limited = GatewayError("Slow down.", status=429, code="rate_limit", retry_after=6.2)
    assert write_error(limited).headers == {"retry-after": "7"}


@pytest.mark.cases
def test_a_wait_of_hours_tells_clients_not_to_retry() -> None:
    """Some SDKs take a long wait for none and come back within seconds."""
    limited = UpstreamError("quota", status=429, retry_after=36_000)
    assert write_error(limited).headers == {"retry-after": "36000", "x-should-retry": "false"}


@pytest.mark.parametrize(
    ("status", "code"), [(502, "provider_refused"), (503, "no_eligible_model")]
)
def test_what_no_retry_can_lift_is_not_retried(status: int, code: str) -> None:
    """A wrong key stays wrong, whatever a status of that number usually means."""
    refused = GatewayError("No.", status=status, code=code)
    assert write_error(refused).headers == {"x-should-retry": "false"}


def test_an_upstreams_own_body_is_forwarded_byte_for_byte() -> None:
    """Clients match the upstream's wording to recover."""
    body = b'{ "error": {"message": "prompt is too long: 9 > 8", "zzz": 1} }\n'
    error = UpstreamError("x", status=400, body=body, retry_after=7.0)
    reply = write_error(error)
    assert (reply.status, reply.body, reply.headers) == (400, body, {"retry-after": "7"})


def test_a_body_of_another_shape_is_rewritten_with_its_words() -> None:
    """The client reads its own shape and the upstream's message."""
    body = b'{"type":"error","error":{"type":"invalid_request_error","message":"too long"}}'
    error = UpstreamError(
        "answered 400: x", status=400, body=body, shape="messages", said="too long"
    )
    said = orjson.loads(write_error(error).body)["error"]
    assert (said["message"], said["type"]) == ("too long", "invalid_request_error")


@pytest.mark.cases
def test_a_rate_limit_keeps_its_wait_and_its_code() -> None:
    """What an upstream says of its limits goes along, its request id does not."""
    headers = {"retry-after": "7", "x-ratelimit-remaining-requests": "0", "x-request-id": "r"}
    limited = UpstreamError("x", status=429, retry_after=7.0, headers=headers, shape="messages")
    reply = write_error(limited)
    assert reply.headers == {"x-ratelimit-remaining-requests": "0", "retry-after": "7"}
    assert orjson.loads(reply.body)["error"]["code"] == "rate_limit_exceeded"


def test_other_errors_become_a_500_in_the_same_shape() -> None:
    """They are our fault and look like it."""
    reply = write_error(SandboxError("It is gone."))
    assert reply.status == 500
    assert orjson.loads(reply.body)["error"]["code"] == "internal_error"


def test_a_store_that_cannot_be_written_may_be_asked_again_later() -> None:
    """A disk can be given room."""
    reply = write_error(StoreError("The disk is full."))
    assert reply.status == 503
    assert orjson.loads(reply.body)["error"]["code"] == "store_unavailable"
