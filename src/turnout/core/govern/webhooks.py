"""Who is told of what happens, over HTTP."""

import json
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from pydantic import TypeAdapter

from turnout.core.govern.happenings import Happening, HappeningKind
from turnout.core.json import ascii_json

__all__ = ["Delivery", "Webhook", "WebhookState", "decode_webhook", "encode_webhook"]


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address that is told of happenings."""

    id: str
    url: str
    secret_variable: str
    """Environment variable of the gateway that holds the secret for its signatures."""
    kinds: tuple[HappeningKind, ...] = ()
    """What it is told of; empty: everything."""
    project: str = ""
    """Happenings of one project, and those about everybody; empty: of all."""
    allow_private: bool = False
    """Whether the address may be one of a private network, and may be plain `http`."""
    created_by: str = ""

    def wants(self, happening: Happening) -> bool:
        """Return whether it is told of `happening`."""
        if self.kinds and happening.kind not in self.kinds:
            return False
        return not (self.project and happening.project) or self.project == happening.project


@dataclass(frozen=True, slots=True)
class WebhookState:
    """A webhook, and how its deliveries fare."""

    webhook: Webhook
    created_at: datetime
    delivered_at: datetime | None
    failed_at: datetime | None
    failure: str
    """Of the last delivery that failed; empty where none did."""
    paused_until: datetime | None
    """When it is tried again after a failure; None where the last delivery was taken."""
    waiting: int
    """Deliveries that were not taken yet."""
    dropped: int
    """Deliveries that were given up."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A happening on its way to a webhook."""

    number: int
    webhook: Webhook
    happening: Happening
    failures: int
    """Of the webhook, one after the other, before this."""


@cache
def _adapter() -> TypeAdapter[Webhook]:
    return TypeAdapter(Webhook)


def encode_webhook(webhook: Webhook) -> str:
    """Return `webhook` as one JSON object in ASCII."""
    return ascii_json(_adapter().dump_python(webhook, mode="json"))


def decode_webhook(text: str | bytes) -> Webhook:
    """Return the webhook that `encode_webhook` wrote; ValueError where it is none."""
    return _adapter().validate_python(json.loads(text))
