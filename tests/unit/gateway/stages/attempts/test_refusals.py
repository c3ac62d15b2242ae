"""A content filter's refusal is told by its codes, never by its words."""

import pytest

from turnout.gateway.exchange import UpstreamError
from turnout.gateway.stages.attempts.refusals import is_refusal


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, b'{"error": {"code": "content_filter"}}'),
        (400, b'{"error": {"code": "content_policy_violation", "type": "image"}}'),
        (400, b'{"error": {"innererror": {"code": "ResponsibleAIPolicyViolation"}}}'),
        (400, b'{"error": {"code": "DataInspectionFailed"}}'),
        (403, b'{"error": {"code": 403, "metadata": {"reasons": [], "flagged_input": "x"}}}'),
        (451, b'{"error": {"type": "moderation_blocked"}}'),
    ],
)
def test_what_filters_say_is_recognised(status: int, body: bytes) -> None:
    """Each provider has its own word for it."""
    assert is_refusal(UpstreamError("x", status=status, body=body))


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, b'{"error": {"code": "invalid_value", "message": "content_filter is no field"}}'),
        (403, b'{"error": {"message": "Your key may not use this model; see our safety page."}}'),
        (503, b'{"error": {"code": "content_filter"}}'),
        (400, b'{"error": "content_filter"}'),
        (400, b"content_filter"),
        (400, None),
        (None, b'{"error": {"code": "content_filter"}}'),
    ],
)
def test_other_errors_are_not(status: int | None, body: bytes | None) -> None:
    """Words of the message, and failures of the server, say nothing about a filter."""
    assert not is_refusal(UpstreamError("x", status=status, body=body))
