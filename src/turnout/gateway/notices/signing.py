"""Signatures of webhooks, in the form of the Standard Webhooks specification.

The receiver knows by them that a message is ours, whole and fresh, and by its id that it is no
second copy.
"""

import base64
import binascii
import hmac
from collections.abc import Mapping
from datetime import datetime

from turnout.core.govern.happenings import Happening
from turnout.core.json import JsonObject, ascii_json

__all__ = ["message_of", "project_secret", "signed_headers", "signing_key"]

_ENCODED = "whsec_"


def message_of(happening: Happening) -> bytes:
    """Return the body that tells a receiver what happened."""
    data: JsonObject = {
        "id": happening.id,
        "subject": happening.subject,
        "text": happening.text,
        "project": happening.project or None,
        "key": happening.key or None,
        "policy": happening.policy or None,
        "session": happening.session,
        "request_id": happening.request_id,
        "outcome": happening.outcome,
        "verdict": happening.verdict,
    }
    told = {"type": happening.kind, "timestamp": happening.at.isoformat(), "data": data}
    return ascii_json(told).encode()


def signed_headers(secret: str, name: str, at: datetime, body: bytes) -> Mapping[str, str]:
    """Return the headers of a message sent at `at`.

    A secret `whsec_…` is the key in Base64, any other one is the key itself.
    """
    stamp = str(int(at.timestamp()))
    signed = b".".join((name.encode(), stamp.encode(), body))
    digest = hmac.digest(signing_key(secret), signed, "sha256")
    return {
        "content-type": "application/json",
        "user-agent": "turnout",
        "webhook-id": name,
        "webhook-timestamp": stamp,
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def project_secret(secret: str, project: str) -> str:
    """Return the secret of one project's notifications, which follows from that of the service.

    Nobody can tell by it what is signed for another project.
    """
    told = f"turnout notifications of {project}".encode()
    digest = hmac.digest(signing_key(secret), told, "sha256")
    return f"{_ENCODED}{base64.b64encode(digest).decode()}"


def signing_key(secret: str) -> bytes:
    """Return the bytes that a secret signs with."""
    if secret.startswith(_ENCODED):
        try:
            return base64.b64decode(secret.removeprefix(_ENCODED), validate=True)
        except binascii.Error:
            pass
    return secret.encode()
