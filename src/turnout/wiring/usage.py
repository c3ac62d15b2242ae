"""Usage, tools, events and webhooks: for the command line, and for a gateway that serves."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from turnout.core.clock import Clock, SystemClock
from turnout.core.govern.webhooks import Webhook
from turnout.gateway.notices.desk import WebhookDesk
from turnout.gateway.notices.notices import Notices
from turnout.gateway.notices.ports import HappeningsReader, ToolsReader, UsageReader
from turnout.gateway.notices.posting import HttpPoster
from turnout.gateway.notices.sender import WebhookSender
from turnout.settings import Settings, secret_value
from turnout.store.audited import AuditedWebhooks
from turnout.store.database import Database, open_database
from turnout.store.happenings import HappeningsStore
from turnout.store.notices import NoticesStore
from turnout.store.tools import ToolsStore
from turnout.store.usage import UsageStore
from turnout.store.webhooks import WebhooksStore
from turnout.wiring.state import database_of, hand_of

__all__ = ["UsageOffice", "open_notices", "open_usage", "usage_office"]


@dataclass(frozen=True, slots=True)
class UsageOffice:
    """What people ask about past requests."""

    usage: UsageReader
    tools: ToolsReader
    happenings: HappeningsReader
    webhooks: WebhookDesk
    clock: Clock


@asynccontextmanager
async def open_usage(settings: Settings) -> AsyncIterator[UsageOffice]:
    """Open what the requests of this machine's gateways left, whether or not one serves."""
    clock = SystemClock()
    async with open_database(database_of(settings)) as database:
        office = usage_office(database, clock)
        webhooks = AuditedWebhooks(database, hand_of(database, clock))
        yield replace(office, webhooks=WebhookDesk(webhooks, clock))


@asynccontextmanager
async def open_notices(database: Database, clock: Clock) -> AsyncIterator[Notices]:
    """Notice what requests show and tell the webhooks, until the block ends."""
    async with AsyncExitStack() as stack:
        poster = await stack.enter_async_context(HttpPoster())
        sender = WebhookSender(WebhooksStore(database), poster, _secret_of, clock)
        notices = Notices(NoticesStore(database), clock, on_new=sender.wake)
        sender.start()
        stack.push_async_callback(sender.close)
        notices.start()
        stack.push_async_callback(notices.close)
        yield notices


def _secret_of(webhook: Webhook) -> str | None:
    return secret_value(webhook.secret_variable)


def usage_office(database: Database, clock: Clock) -> UsageOffice:
    """Return what people ask about; the database is one that no request of a model waits for."""
    return UsageOffice(
        UsageStore(database),
        ToolsStore(database),
        HappeningsStore(database),
        WebhookDesk(WebhooksStore(database), clock),
        clock,
    )
