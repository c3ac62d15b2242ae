"""Signatures that any library of the specification takes."""

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime

from tests.samples import receipt

from turnout.core.govern.happenings import tool_first_seen
from turnout.gateway.notices.signing import message_of, signed_headers

AT = datetime.fromtimestamp(1614265330, UTC)


def test_the_example_of_the_specification_gets_its_signature():
    """Name, time and body are signed together, with the key that the secret holds in Base64."""
    headers = signed_headers(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        AT,
        b'{"test": 2432232314}',
    )
    assert headers["webhook-id"] == "msg_p5jXN8AQM9LWM0D4loKWxJek"
    assert headers["webhook-timestamp"] == "1614265330"
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_secret_of_any_other_form_is_the_key_itself():
    """Whoever receives it need not decode anything."""
    for secret in ("correct horse", "whsec_not base64!"):
        digest = hmac.new(secret.encode(), b"m.1614265330.{}", hashlib.sha256).digest()
        signature = signed_headers(secret, "m", AT, b"{}")["webhook-signature"]
        assert signature == f"v1,{base64.b64encode(digest).decode()}"


def test_a_message_says_what_happened_and_to_whom():
    """As one JSON object, with nothing of the request but its id."""
    told = json.loads(message_of(tool_first_seen(receipt(), "shell")))
    assert told["type"] == "tool.first_seen"
    assert told["timestamp"] == "2026-01-01T12:00:00+00:00"
    assert told["data"].pop("id").startswith("evt-")
    assert told["data"] == {
        "subject": "shell",
        "text": "Project default declared the tool shell for the first time.",
        "project": "default",
        "key": "k",
        "policy": None,
        "session": "s",
        "request_id": "req-1",
    }
