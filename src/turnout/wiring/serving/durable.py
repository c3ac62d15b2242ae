"""Workers of the service: what they are made of, and what each order is worked on with."""

import asyncio
import fcntl
import logging
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Final, TypeVar

from turnout.agent.base import AgentConfig
from turnout.core.clock import Clock
from turnout.core.events import Entry
from turnout.core.money import Micros
from turnout.core.service.orders import Order, OrderLimits
from turnout.core.service.retention import Retention
from turnout.errors import SandboxError
from turnout.runs.checkpoints.ports import Checkpoints
from turnout.runs.durable.announcing import Announcer, Tell, tell_nobody
from turnout.runs.durable.desk import Desk
from turnout.runs.durable.elsewhere import Elsewhere
from turnout.runs.durable.engine import Pace, TaskEngine, Worker
from turnout.runs.durable.following import Following
from turnout.runs.durable.ports import ModelsFor
from turnout.runs.durable.segment import Outfit, Segments
from turnout.runs.durable.turns import Turns
from turnout.runs.observe.tagging import tagged
from turnout.runs.service import check_walls
from turnout.sandbox.base import SandboxDriver
from turnout.sandbox.workspace.prune import prune
from turnout.settings import Settings
from turnout.store.bell import listening
from turnout.store.database import Database
from turnout.store.orders import OrdersStore
from turnout.store.record import RecordStore
from turnout.wiring.rooms import workshop_of
from turnout.wiring.sandboxes import check_egress, open_sandboxes
from turnout.wiring.serving.checkpoints import open_checkpoints
from turnout.wiring.serving.reach import Reach
from turnout.wiring.state import discreet_of, state_folder_of

__all__ = ["Durable", "keep_disk", "only_worker", "open_durable", "within"]

N = TypeVar("N", int, float)

_LOCK: Final = "workers.lock"
_EVERY: Final = 3_600.0
"""Seconds between two looks at the disk."""
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Durable:
    """The service on a database: its desk, and the worker of this process, if it has one."""

    desk: Desk
    engine: TaskEngine | Elsewhere
    following: Following


@asynccontextmanager
async def open_durable(
    settings: Settings,
    database: Database,
    clock: Clock,
    models: ModelsFor | None,
    *,
    pace: Pace | None = None,
    tell: Tell = tell_nobody,
    saw: Callable[[Entry], None] = lambda _: None,
) -> AsyncIterator[Durable]:
    """Open the service on a database, with one worker; at the end it is drained.

    `models` gives each order its own way to models; None: only other processes work. `tell` is told
    of what becomes of runs, `saw` of each entry that the worker has committed, and must not wait.
    What sandboxes of services that died have left behind is cleared away first.
    """
    async with AsyncExitStack() as stack:
        redactor, most = settings.redactor, settings.service.queued_per_project
        records = RecordStore(database, redactor)
        orders = OrdersStore(database, most_queued=most, redactor=redactor)
        following = await stack.enter_async_context(Following(orders, records, clock))
        engine: TaskEngine | Elsewhere = Elsewhere()
        if models is not None:
            stores = _Stores(orders, records, following, saw)
            opening = _open_worker(settings, stores, clock, models, pace or Pace(), tell)
            engine = await stack.enter_async_context(opening)
            await stack.enter_async_context(listening(database, engine.wake))
        yield Durable(Desk(orders, records, engine, following, clock, tell), engine, following)


@dataclass(frozen=True, slots=True)
class _Stores:
    orders: OrdersStore
    records: RecordStore
    following: Following
    saw: Callable[[Entry], None]

    def publish(self, entry: Entry) -> None:
        self.following.wake(entry.run_id)
        self.saw(entry)


@asynccontextmanager
async def _open_worker(
    settings: Settings, stores: _Stores, clock: Clock, models: ModelsFor, pace: Pace, tell: Tell
) -> AsyncIterator[TaskEngine]:
    async with AsyncExitStack() as stack:
        check_egress(settings)
        only = stack.enter_context(only_worker(state_folder_of(settings)))
        # Of a database that is not in the state folder, machines beyond this one may have workers.
        alone = only and settings.database is None
        opening = open_sandboxes(settings, streams=settings.shares_checkpoints)
        driver = await stack.enter_async_context(opening)
        await check_walls(driver)
        checkpoints = await stack.enter_async_context(open_checkpoints(settings, driver))
        outfits = _Outfits(settings, driver, clock, models, checkpoints)
        reach = Reach(settings)
        segments = Segments(
            stores.orders,
            stores.records,
            outfits.of,
            reach.resolve,
            settings.service.repositories.located,
            clock,
            stores.publish,
            reach.fetch,
            discreet_of(settings),
        )
        options = settings.service
        name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
        engine = TaskEngine(
            stores.orders,
            stores.records,
            tagged(Announcer(stores.orders, stores.records, clock, tell).of(segments.work)),
            Turns(options.per_project, options.per_repository).pick,
            clock,
            Worker(name, options.workers, alone, pace),
        )
        keeping = asyncio.create_task(keep_disk(settings.home, clock, options.retention))
        stack.push_async_callback(_ended, keeping)
        yield await stack.enter_async_context(engine)


async def keep_disk(home: Path, clock: Clock, retention: Retention) -> None:
    """Remove what no run has used for long from a worker's disk, now and every hour."""
    while True:
        try:
            await prune(home, keep_days=retention.workspaces / timedelta(days=1))
        except (OSError, SandboxError) as error:
            _LOG.warning("What workspaces were made of stays for now: %s", error)
        await clock.sleep(_EVERY)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})


@contextmanager
def only_worker(home: Path) -> Iterator[bool]:
    """Tell whether no other process of this machine works on the runs of a state folder."""
    descriptor = os.open(home / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class _Outfits:
    settings: Settings
    driver: SandboxDriver
    clock: Clock
    models: ModelsFor
    checkpoints: Checkpoints

    @asynccontextmanager
    async def of(self, order: Order) -> AsyncIterator[Outfit]:
        """Open what an order is worked on with."""
        settings = replace(self.settings, agent=within(self.settings.agent, order.limits))
        async with self.models(order) as access:
            shop = workshop_of(settings, self.driver, self.clock)
            shop = replace(shop, compare=Reach(settings).compare, checkpoints=self.checkpoints)
            yield Outfit(shop, access)


def within(config: AgentConfig, limits: OrderLimits) -> AgentConfig:
    """Return a configuration with the tighter of its own limits and those of an order."""
    spend = _least(config.max_spend, limits.max_spend)
    return replace(
        config,
        max_steps=_least(config.max_steps, limits.max_steps) or config.max_steps,
        max_seconds=_least(config.max_seconds, limits.max_seconds),
        max_spend=None if spend is None else Micros(spend),
    )


def _least(set_: N | None, asked: N | None) -> N | None:
    """Return the tighter of two limits; None is none."""
    if set_ is None or asked is None:
        return asked if set_ is None else set_
    return min(set_, asked)
