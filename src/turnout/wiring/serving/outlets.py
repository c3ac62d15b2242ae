"""What leaves the service when runs change: notifications, branches, drafts, words to forges."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from turnout.core.clock import Clock, SystemClock
from turnout.core.govern.happenings import Happening
from turnout.core.govern.webhooks import Webhook
from turnout.errors import ConfigError, ForgeError, UsageError
from turnout.gateway.exchange import Caller
from turnout.gateway.keys.ring import KeyRing, no_key
from turnout.gateway.notices.posting import HttpPoster, check_url
from turnout.gateway.notices.sender import WebhookSender
from turnout.gateway.notices.signing import project_secret
from turnout.runs.forges.desk import OpenForge, open_forges
from turnout.runs.publish.publisher import Publisher, Publishing
from turnout.settings import Settings, secret_value
from turnout.store.database import Database, database_at
from turnout.store.keys import KeysStore
from turnout.store.notifications import NotificationsStore
from turnout.store.orders import OrdersStore
from turnout.store.publications import PublicationsStore
from turnout.store.record import RecordStore
from turnout.store.upkeep import stands
from turnout.wiring.serving.forging import check_orders
from turnout.wiring.serving.reach import Reach
from turnout.wiring.state import database_of, discreet_of

__all__ = [
    "ForgeSeen",
    "Outlets",
    "check_draft",
    "check_notify",
    "examine_forges",
    "open_outlets",
]


@dataclass(slots=True)
class Outlets:
    """Those who look for what is to leave the service, and whoever looks on."""

    told: Callable[[Happening], None]
    wakes: list[Callable[[], None]] = field(default_factory=list)

    async def tell(self, happening: Happening) -> None:
        """Tell all that something has happened to a run, so that nobody waits for the next look."""
        self.see(happening)

    def see(self, happening: Happening) -> None:
        """Do the same without waiting."""
        self.told(happening)
        for wake in self.wakes:
            wake()


@asynccontextmanager
async def open_outlets(
    settings: Settings,
    database: Database,
    clock: Clock,
    *,
    publishes: bool,
    told: Callable[[Happening], None],
) -> AsyncIterator[Outlets]:
    """Send notifications, and publish where this process reaches the repositories.

    Any number of processes may do so at once. `told` is told of all that becomes of runs here, and
    must not wait.
    """
    async with AsyncExitStack() as stack:
        outlets = Outlets(told)
        if settings.service.notify.secret_variable:
            poster = await stack.enter_async_context(HttpPoster())
            store = NotificationsStore(database, _hooks(settings))
            sender = WebhookSender(store, poster, _secret_of, clock)
            sender.start()
            stack.push_async_callback(sender.close)
            outlets.wakes.append(sender.wake)
        if publishes:
            forges = await stack.enter_async_context(
                open_forges(settings.service.forges, secret_value)
            )
            parts = Publishing(
                PublicationsStore(database),
                OrdersStore(database),
                RecordStore(database),
                Reach(settings).push,
                forges,
                clock,
                outlets.see,
                discreet_of(settings),
            )
            publisher = Publisher(parts)
            publisher.start()
            stack.push_async_callback(publisher.close)
            outlets.wakes.append(publisher.wake)
        yield outlets


@dataclass(frozen=True, slots=True)
class ForgeSeen:
    """Whether a forge answers us about the repositories that it is set up for."""

    name: str
    ok: bool
    detail: str
    mend: str = ""


async def examine_forges(settings: Settings) -> Sequence[ForgeSeen]:
    """Look at what each forge needs here, and ask it about its repositories, with our token.

    `StoreError` where our keys cannot be read; what holds them is left as it is.
    """
    forges = settings.service.forges
    if not forges:
        return ()
    keys = await _keys_of(settings)
    async with open_forges(forges, secret_value) as opened:
        return await asyncio.gather(*(_seen(one, keys) for one in opened.by_name.values()))


async def _keys_of(settings: Settings) -> KeyRing | None:
    """Return our keys; None where there is nothing yet that could hold one."""
    where = database_of(settings)
    if (await stands(where)).verdict == "empty":
        return None
    database = database_at(where)
    try:
        ring = KeyRing(KeysStore(database), SystemClock())
        await ring.refresh()
        return ring
    finally:
        await database.close()


def _holder(keys: KeyRing | None, name: str) -> Caller:
    if keys is None:
        raise no_key(name)
    return keys.named(name)


async def _seen(opened: OpenForge, keys: KeyRing | None) -> ForgeSeen:
    forge, paths = opened.forge, sorted(opened.forge.repositories)
    if not secret_value(forge.secret_variable):
        detail = f"{forge.secret_variable} is not set: no webhook can be checked"
        return ForgeSeen(forge.name, ok=False, detail=detail, mend="Set it for `turnout serve`.")
    try:
        check_orders(partial(_holder, keys, forge.key), f"service.forges.{forge.name}.key")
    except ConfigError as error:
        return ForgeSeen(forge.name, ok=False, detail=error.message, mend=error.mend)
    for path in paths:
        try:
            await opened.client.main_branch(path)
        except ForgeError as error:
            detail = f"{path}: {error.message}"
            return ForgeSeen(forge.name, ok=False, detail=detail, mend=error.mend)
    return ForgeSeen(forge.name, ok=True, detail=f"{', '.join(paths)} can be read")


def check_notify(settings: Settings, url: str) -> None:
    """Refuse (`UsageError`) an address that no notification is sent to."""
    options = settings.service.notify
    if not options.secret_variable:
        raise UsageError(
            "This service sends no notifications.",
            mend="Leave `notify` out, or have `[service.notify]` set up.",
        )
    try:
        check_url(url, allow_private=options.allow_private)
    except UsageError as error:
        raise UsageError(
            error.message,
            mend="Give a public https address; others take `allow_private = true` under "
            "`[service.notify]` of the service.",
        ) from error


def check_draft(settings: Settings, repository: str) -> None:
    """Refuse (`UsageError`) a draft where no forge is known to have the repository."""
    forges = settings.service.forges.values()
    if not any(forge.path_of(repository) for forge in forges):
        raise UsageError(
            f"No forge of this service has the repository {repository!r}.",
            mend='Order `"publish": "branch"`, or have the repository listed under '
            "`[service.forges]`.",
        )


def _hooks(settings: Settings) -> Callable[[str, str, str], Webhook]:
    options = settings.service.notify

    def hook(target: str, project: str, url: str) -> Webhook:
        return Webhook(
            target,
            url,
            options.secret_variable,
            project=project,
            allow_private=options.allow_private,
        )

    return hook


def _secret_of(webhook: Webhook) -> str | None:
    secret = secret_value(webhook.secret_variable)
    return secret and project_secret(secret, webhook.project)
