"""Webhooks as forges send them."""

import base64
import hmac
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import orjson

from turnout.core.service.forges import ForgeKind, ThreadKind

__all__ = ["Delivery", "comment", "labelled", "signed"]


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a forge sends."""

    kind: ForgeKind
    event: str
    body: dict[str, Any]

    def with_(self, part: str, **changes: Any) -> "Delivery":
        """Return it with fields of one of its parts changed."""
        return replace(self, body={**self.body, part: {**self.body[part], **changes}})


def comment(
    kind: ForgeKind,
    text: str,
    *,
    thread: ThreadKind = "issue",
    number: int = 12,
    by: tuple[str, int] = ("ann", 7),
    comment_id: int = 501,
) -> Delivery:
    """Return a new comment on an issue or a request."""
    name, account = by
    if kind == "github":
        about = _github_thread(number)
        if thread == "pull":
            about["pull_request"] = {"url": "https://forge.example.org/api"}
        said = {"id": comment_id, "body": text, "user": {"login": name, "id": account}}
        body = {"action": "created", "issue": about, "comment": said, **_github_rest(name, account)}
        return Delivery(kind, "issue_comment", body)
    note = {
        "id": comment_id,
        "note": text,
        "noteable_type": "Issue" if thread == "issue" else "MergeRequest",
        "action": "create",
        "system": False,
    }
    about = _gitlab_thread(number)
    body = {"object_kind": "note", "object_attributes": note, **_gitlab_rest(name, account)}
    body["issue" if thread == "issue" else "merge_request"] = about
    return Delivery(kind, "Note Hook", body)


def labelled(
    kind: ForgeKind,
    label: str,
    *,
    thread: ThreadKind = "issue",
    number: int = 12,
    by: tuple[str, int] = ("ann", 7),
) -> Delivery:
    """Return that an issue or a request was given a label."""
    name, account = by
    if kind == "github":
        part = "issue" if thread == "issue" else "pull_request"
        event = "issues" if thread == "issue" else "pull_request"
        body = {
            "action": "labeled",
            part: _github_thread(number),
            "label": {"name": label},
            **_github_rest(name, account),
        }
        return Delivery(kind, event, body)
    labels = {"previous": [{"title": "bug"}], "current": [{"title": "bug"}, {"title": label}]}
    body = {
        "object_kind": "issue" if thread == "issue" else "merge_request",
        "object_attributes": {**_gitlab_thread(number), "action": "update"},
        "labels": labels["current"],
        "changes": {"labels": labels},
        **_gitlab_rest(name, account),
    }
    return Delivery(kind, "Issue Hook" if thread == "issue" else "Merge Request Hook", body)


def signed(
    delivery: Delivery,
    secret: str,
    at: datetime,
    *,
    delivery_id: str = "d-1",
    standard: bool = True,
) -> tuple[dict[str, str], bytes]:
    """Return the headers and the body that are sent.

    `standard` False: as a GitLab without signatures sends it.
    """
    body = orjson.dumps(delivery.body)
    headers = {"content-type": "application/json"}
    if delivery.kind == "github":
        digest = hmac.digest(secret.encode(), body, "sha256").hex()
        headers |= {"x-github-event": delivery.event, "x-github-delivery": delivery_id}
        return headers | {"x-hub-signature-256": f"sha256={digest}"}, body
    headers |= {"x-gitlab-event": delivery.event, "idempotency-key": delivery_id}
    if not standard:
        return headers | {"x-gitlab-token": secret}, body
    stamp = str(int(at.timestamp()))
    text = b".".join((delivery_id.encode(), stamp.encode(), body))
    digest = base64.b64encode(hmac.digest(secret.encode(), text, "sha256")).decode()
    return headers | {
        "webhook-id": delivery_id,
        "webhook-timestamp": stamp,
        "webhook-signature": f"v1,{digest}",
    }, body


def _github_thread(number: int) -> dict[str, Any]:
    return {
        "number": number,
        "title": "Totals are wrong",
        "body": "The total of an empty basket is 1.",
        "state": "open",
        "updated_at": "2026-01-01T12:00:00Z",
        "user": {"login": "eve", "id": 9},
    }


def _github_rest(name: str, account: int) -> dict[str, Any]:
    return {
        "repository": {"full_name": "acme/shop", "default_branch": "main"},
        "sender": {"login": name, "id": account, "type": "User"},
    }


def _gitlab_thread(number: int) -> dict[str, Any]:
    return {
        "iid": number,
        "title": "Totals are wrong",
        "description": "The total of an empty basket is 1.",
        "state": "opened",
        "updated_at": "2026-01-01 12:00:00 UTC",
        "confidential": False,
    }


def _gitlab_rest(name: str, account: int) -> dict[str, Any]:
    return {
        "user": {"id": account, "username": name},
        "project": {"path_with_namespace": "acme/shop", "default_branch": "main"},
    }
