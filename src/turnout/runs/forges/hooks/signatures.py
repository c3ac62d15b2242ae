"""Whether a webhook comes from the forge that it claims to come from, whole and fresh."""

import base64
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from turnout.core.service.forges import ForgeKind
from turnout.gateway.notices.signing import signing_key

__all__ = ["genuine"]

_FRESH: Final = 300.0
"""Seconds that a signed moment may be off."""
_MOST_SIGNATURES: Final = 10


def genuine(
    kind: ForgeKind, headers: Mapping[str, str], body: bytes, secret: str, now: datetime
) -> bool:
    """Return whether whoever sent this knows the secret; names of headers are in lower case.

    An empty secret lets nobody through. GitHub signs the body; GitLab signs id, moment and body in
    the form of Standard Webhooks, or sends the secret itself. Nothing is told by how long it takes.
    """
    if not secret:
        return False
    if kind == "github":
        return _hub(headers.get("x-hub-signature-256", ""), body, secret)
    if "webhook-signature" in headers:
        return _standard(headers, body, secret, now)
    return hmac.compare_digest(headers.get("x-gitlab-token", "").encode(), secret.encode())


def _hub(sent: str, body: bytes, secret: str) -> bool:
    wanted = f"sha256={hmac.digest(secret.encode(), body, 'sha256').hex()}"
    return hmac.compare_digest(sent.encode(), wanted.encode())


def _standard(headers: Mapping[str, str], body: bytes, secret: str, now: datetime) -> bool:
    stamp = headers.get("webhook-timestamp", "")
    if not (stamp.isascii() and stamp.isdecimal() and len(stamp) <= 12):
        return False
    if abs(now.timestamp() - int(stamp)) > _FRESH:
        return False
    signed = b".".join((headers.get("webhook-id", "").encode(), stamp.encode(), body))
    digest = hmac.digest(signing_key(secret), signed, "sha256")
    wanted = f"v1,{base64.b64encode(digest).decode()}".encode()
    sent = headers["webhook-signature"].split()[:_MOST_SIGNATURES]
    return any(hmac.compare_digest(one.encode(), wanted) for one in sent)
