"""Workers of the service: what they are made of, and what each order is worked on with."""

import fcntl
import os
import secrets
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

from turnout.agent.base import AgentConfig
from turnout.core.clock import Clock
from turnout.core.events import Entry
from turnout.core.money import Micros
from turnout.core.service.orders import Order, OrderLimits
from turnout.runs.durable.announcing import Announcer, Tell, tell_nobody
from turnout.runs.durable.desk import Desk
from turnout.runs.durable.engine import Pace, TaskEngine, Worker
from turnout.runs.durable.following import Following
from turnout.runs.durable.ports import ModelsFor
from turnout.runs.durable.segment import Outfit, Segments
from turnout.runs.durable.turns import Turns
from turnout.runs.service import check_walls
from turnout.sandbox.base import SandboxDriver
from turnout.sandbox.repository import resolve
from turnout.settings import Settings
from turnout.store.database import Database
from turnout.store.orders import OrdersStore
from turnout.store.record import RecordStore
from turnout.wiring.rooms import workshop_of
from turnout.wiring.sandboxes import check_egress, open_sandboxes

__all__ = ["Durable", "open_durable"]

N = TypeVar("N", int, float)

_LOCK: Final = "workers.lock"


@dataclass(frozen=True, slots=True)
class Durable:
    """The service on a database: its desk, and the worker of this process."""

    desk: Desk
    engine: TaskEngine
    following: Following


@asynccontextmanager
async def open_durable(
    settings: Settings,
    database: Database,
    clock: Clock,
    models: ModelsFor,
    *,
    pace: Pace | None = None,
    tell: Tell = tell_nobody,
) -> AsyncIterator[Durable]:
    """Open the service on a database, with one worker; at the end it is drained.

    `models` gives each order its own way to models; `tell` is told of what becomes of runs. What
    sandboxes of services that died have left behind is cleared away first.
    """
    async with AsyncExitStack() as stack:
        check_egress(settings)
        alone = stack.enter_context(_only_worker(settings.home))
        driver = await stack.enter_async_context(open_sandboxes(settings))
        await check_walls(driver)
        orders, records = OrdersStore(database), RecordStore(database)
        following = await stack.enter_async_context(Following(orders, records, clock))

        def publish(entry: Entry) -> None:
            following.wake(entry.run_id)

        outfits = _Outfits(settings, driver, clock, models)
        locate = settings.service.repositories.located
        segments = Segments(orders, records, outfits.of, resolve, locate, clock, publish)
        options = settings.service
        name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
        engine = TaskEngine(
            orders,
            records,
            Announcer(orders, clock, tell).of(segments.work),
            Turns(options.per_project, options.per_repository).pick,
            clock,
            Worker(name, options.workers, alone, pace or Pace()),
        )
        await stack.enter_async_context(engine)
        yield Durable(Desk(orders, records, engine, following, clock, tell), engine, following)


@contextmanager
def _only_worker(home: Path) -> Iterator[bool]:
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

    @asynccontextmanager
    async def of(self, order: Order) -> AsyncIterator[Outfit]:
        """Open what an order is worked on with."""
        settings = replace(self.settings, agent=_within(self.settings.agent, order.limits))
        async with self.models(order) as access:
            yield Outfit(workshop_of(settings, self.driver, self.clock), access)


def _within(config: AgentConfig, limits: OrderLimits) -> AgentConfig:
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
