"""Signatures that any library of the specification takes."""

import base64
import hashlib
import hmac
import json
import re
import runpy
import time
from datetime import UTC, datetime

import pytest
from tests.house.sources import ROOT
from tests.samples import receipt

from turnout.core.govern.happenings import (
    decode_happening,
    encode_happening,
    run_ended,
    tool_first_seen,
)
from turnout.core.ids import RunId
from turnout.core.service.orders import Order, OrderedRun
from turnout.core.tasks import Task
from turnout.gateway.notices.signing import message_of, project_secret, signed_headers

AT = datetime.fromtimestamp(1614265330, UTC)
RUN = OrderedRun(
    run_id=RunId("run-0123456789ab"),
    number=1,
    order=Order(Task("Fix it.", "shop"), "web", "ci"),
    state="ended",
    epoch=1,
    ordered_at=AT,
    outcome="answered",
    verdict="resolved",
)


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
        "outcome": None,
        "verdict": None,
    }


def test_a_message_of_a_run_says_how_it_ended_in_fields_of_their_own():
    """No receiver has to read the sentence for it."""
    happening = run_ended(AT, RUN)
    told = json.loads(message_of(happening))["data"]
    assert (told["outcome"], told["verdict"]) == ("answered", "resolved")
    assert decode_happening(encode_happening(happening)) == happening


def test_what_was_kept_without_these_fields_is_told_all_the_same():
    """As something that has neither."""
    kept = json.loads(encode_happening(tool_first_seen(receipt(), "shell")))
    del kept["outcome"], kept["verdict"]
    assert decode_happening(json.dumps(kept)) == tool_first_seen(receipt(), "shell")


@pytest.mark.parametrize(
    "secret", ["correct horse", project_secret("the service's", "web"), "whsec_MfKQ9r8GKYqrTw=="]
)
def test_the_receiver_that_the_page_shows_takes_what_is_sent(tmp_path, secret):
    """With a secret of either form; what is altered or signed with another one it does not take."""
    page = (ROOT / "docs/howto/usage.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "receiver.py").write_text(program)
    is_ours = runpy.run_path(str(tmp_path / "receiver.py"))["is_ours"]
    headers = signed_headers(secret, "evt-1", datetime.fromtimestamp(time.time(), UTC), b"{}")
    assert is_ours(secret, headers, b"{}")
    assert not is_ours(secret, headers, b"{ }")
    assert not is_ours("another", headers, b"{}")
    old = signed_headers(secret, "evt-1", AT, b"{}")
    assert not is_ours(secret, old, b"{}")
