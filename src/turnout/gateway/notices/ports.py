"""What noticing, telling and reporting need from outside; `wiring` hands in what satisfies it."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Protocol

from turnout.core.govern.happenings import Happening, HappeningKind
from turnout.core.govern.toolwatch import OutsideTool, SeenTool, ToolReport
from turnout.core.govern.usage import UsageQuery, UsageReport
from turnout.core.govern.webhooks import Delivery, Webhook, WebhookState

__all__ = [
    "DeliveryStore",
    "HappeningsReader",
    "NoticeStore",
    "ToolsReader",
    "UsageReader",
    "WebhookStore",
]


class NoticeStore(Protocol):
    """Takes what requests showed."""

    async def write(
        self,
        seen: Sequence[SeenTool],
        outside: Sequence[OutsideTool],
        happened: Sequence[Happening],
    ) -> int:
        """Add sightings, write what happened and was not known, and return how much that was."""
        ...


class UsageReader(Protocol):
    """Adds usage up."""

    async def usage(self, query: UsageQuery) -> UsageReport:
        """Return the groups of a query and their total, as of one moment."""
        ...


class ToolsReader(Protocol):
    """Reads the inventory of tools."""

    async def inventory(
        self, *, limit: int, project: str | None = None, key: str | None = None
    ) -> Sequence[SeenTool]:
        """Return what was declared, by key: tools that are new to it first."""
        ...

    async def report(self, policy: str, *, since: date, today: date) -> ToolReport:
        """Return how a policy's list fits what was declared from `since` to `today`, UTC."""
        ...


class HappeningsReader(Protocol):
    """Reads what happened."""

    async def newest(
        self,
        *,
        limit: int,
        kinds: Sequence[HappeningKind] = (),
        key: str | None = None,
        since: datetime | None = None,
    ) -> Sequence[Happening]:
        """Return what was written last, newest first; without `kinds` of every kind."""
        ...


class WebhookStore(Protocol):
    """Webhooks by id."""

    async def add(self, webhook: Webhook, at: datetime) -> None:
        """Tell a webhook of what happens from now on; `StoreError` where its id is taken."""
        ...

    async def remove(self, webhook_id: str) -> None:
        """Forget a webhook and what waits for it; `NotFoundError` where there is none."""
        ...

    async def again(self, webhook_id: str, at: datetime) -> bool:
        """Send what waits for a webhook from `at` on; False where it has not failed.

        `NotFoundError` where there is none.
        """
        ...

    async def all(self) -> Sequence[WebhookState]:
        """Return every webhook, oldest first, and how its deliveries fare."""
        ...


class DeliveryStore(Protocol):
    """Deliveries until they are taken or given up."""

    async def claim(self, now: datetime, *, limit: int, seconds: float) -> Sequence[Delivery]:
        """Return deliveries that are due, which for so many seconds are nobody else's."""
        ...

    async def delivered(self, delivery: Delivery, at: datetime) -> None:
        """Note that a delivery was taken."""
        ...

    async def failed(
        self,
        delivery: Delivery,
        failure: str,
        at: datetime,
        *,
        again_at: datetime,
        oldest: datetime,
    ) -> None:
        """Note that a delivery was not taken: its webhook gets nothing until `again_at`.

        What has happened before `oldest` is given up.
        """
        ...
