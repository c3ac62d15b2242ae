"""`/webhooks`: who is told of what happens."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, ConfigDict, Field

from turnout.core.govern.happenings import HappeningKind
from turnout.core.govern.webhooks import Webhook, WebhookState
from turnout.gateway.admin.callers import AdminDep
from turnout.gateway.admin.errors import REFUSALS
from turnout.gateway.notices.desk import WebhookDesk, WebhookOrder

__all__ = ["WebhookIn", "WebhookOut", "WebhooksOut", "webhooks_router"]


class WebhookIn(BaseModel):
    """An address to tell of what happens."""

    model_config = ConfigDict(extra="forbid", strict=True)

    url: Annotated[str, Field(max_length=2_048)]
    """`https`; `http` where private networks are allowed."""
    secret_variable: Annotated[str, Field(max_length=100)]
    """Environment variable of the gateway that holds the secret for the signatures."""
    kinds: Annotated[list[HappeningKind], Field(max_length=10)] = []
    """Empty: everything."""
    project: Annotated[str, Field(max_length=200)] = ""
    allow_private: bool = False
    """Whether the address may be one of a private network."""


class WebhookOut(BaseModel):
    """A webhook, and how its deliveries fare."""

    id: str
    url: str
    secret_variable: str
    kinds: Sequence[HappeningKind]
    project: str
    allow_private: bool
    created_by: str
    created_at: datetime | None = None
    delivered_at: datetime | None = None
    failed_at: datetime | None = None
    failure: str = ""
    paused_until: datetime | None = None
    waiting: int = 0
    dropped: int = 0


class WebhooksOut(BaseModel):
    """All of them, oldest first."""

    webhooks: Sequence[WebhookOut]


def webhooks_router(desk: WebhookDesk) -> APIRouter:
    """Return the routes; each takes an admin key."""
    router = APIRouter(prefix="/webhooks", tags=["events"], responses=REFUSALS)

    @router.get("")
    async def list_webhooks(_: AdminDep) -> WebhooksOut:
        """List the webhooks and how their deliveries fare."""
        return WebhooksOut(webhooks=[_state_out(state) for state in await desk.all()])

    @router.post("", status_code=201)
    async def add_webhook(body: WebhookIn, caller: AdminDep, response: Response) -> WebhookOut:
        """Tell an address of what happens from now on, signed with the secret."""
        order = WebhookOrder(
            url=body.url,
            secret_variable=body.secret_variable,
            kinds=tuple(body.kinds),
            project=body.project,
            allow_private=body.allow_private,
        )
        webhook = await desk.add(order, author=caller.key)
        response.headers["location"] = f"/v1/webhooks/{webhook.id}"
        return _webhook_out(webhook)

    @router.delete("/{webhook_id}", status_code=204)
    async def remove_webhook(
        webhook_id: Annotated[str, Path(min_length=1, max_length=100)], _: AdminDep
    ) -> None:
        """Remove a webhook and what waits for it."""
        await desk.remove(webhook_id)

    @router.post("/{webhook_id}/retry", status_code=204)
    async def retry_webhook(
        webhook_id: Annotated[str, Path(min_length=1, max_length=100)], _: AdminDep
    ) -> None:
        """Send what waits for the webhook now, though it has failed, and not later."""
        await desk.retry(webhook_id)

    return router


def _webhook_out(webhook: Webhook) -> WebhookOut:
    return WebhookOut(
        id=webhook.id,
        url=webhook.url,
        secret_variable=webhook.secret_variable,
        kinds=webhook.kinds,
        project=webhook.project,
        allow_private=webhook.allow_private,
        created_by=webhook.created_by,
    )


def _state_out(state: WebhookState) -> WebhookOut:
    return _webhook_out(state.webhook).model_copy(
        update={
            "created_at": state.created_at,
            "delivered_at": state.delivered_at,
            "failed_at": state.failed_at,
            "failure": state.failure,
            "paused_until": state.paused_until,
            "waiting": state.waiting,
            "dropped": state.dropped,
        }
    )
