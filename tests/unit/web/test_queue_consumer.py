"""Orders from a queue: acknowledged once they are durable, buried where they are none."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.unit.core.observe.test_metrics import read
from tests.unit.web.rooms import Service, memory_service

from turnout.core.observe.metrics import Metrics
from turnout.core.service.orders import Submitted
from turnout.core.service.repositories import RepositoryBook
from turnout.errors import FullError, GatewayError, QueueError, StoreError, TurnoutError
from turnout.gateway.exchange import Caller
from turnout.testing.clock import FrozenClock
from turnout.web.queue.consumer import Consumer
from turnout.web.queue.letters import Letter, Refused
from turnout.web.runs.callers import member_scope
from turnout.web.runs.intake import take
from turnout.web.runs.orders import RunIn

ORDER = {"task": "Fix it.", "repo": "shop"}
DIFF = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n"
SCOPE = member_scope(Caller("red-member", "red", role="member"))


@dataclass
class Broker:
    """Keeps messages until they are acknowledged, and hands them over again after each opening."""

    waiting: deque[tuple[bytes, str | None]] = field(default_factory=deque)
    happened: list[str] = field(default_factory=list)
    """What became of messages, in order."""
    buried: list[Refused] = field(default_factory=list)
    away: int = 0
    """How often it cannot be connected to, or does not hear an acknowledgement."""
    deaf: int = 0
    some: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while a message waits."""
    none: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once none waits any more."""

    def add(self, order: Any = ORDER, key: str | None = "k-1") -> None:
        """Let a message wait."""
        body = order if isinstance(order, bytes) else json.dumps(order).encode()
        self.waiting.append((body, key))
        self.some.set()

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Broker"]:
        """Connect, or fail as often as was said."""
        await asyncio.sleep(0)
        if self.away:
            self.away -= 1
            raise QueueError("It is away.")
        yield self

    async def next(self) -> Letter:
        """Return the oldest message; it stays."""
        await self.some.wait()
        body, key = self.waiting[0]
        return Letter(body, key, self.acknowledge, self.bury)

    async def acknowledge(self) -> None:
        """Forget the oldest message, unless this is not heard."""
        if self.deaf:
            self.deaf -= 1
            raise QueueError("It is gone.")
        self.happened.append("acknowledged")
        self._forget()

    async def bury(self, refused: Refused) -> None:
        """Keep why, and forget the message."""
        self.buried.append(refused)
        self._forget()

    def _forget(self) -> None:
        self.waiting.popleft()
        if not self.waiting:
            self.some.clear()
            self.none.set()


@dataclass
class Room:
    """A consumer between a broker and the routes of the service."""

    broker: Broker = field(default_factory=Broker)
    service: Service = field(default_factory=memory_service)
    clock: FrozenClock = field(default_factory=FrozenClock)
    failures: list[TurnoutError] = field(default_factory=list)
    """What comes of the first attempts to take an order in."""
    failed: asyncio.Event = field(default_factory=asyncio.Event)
    metrics: Metrics = field(default_factory=Metrics)
    defect: bool = False
    """Whether our own code fails."""

    async def submit(self, order: RunIn, key: str | None) -> Submitted:
        """Take an order in, once nothing fails any more."""
        await asyncio.sleep(0)
        if self.defect:
            self.failed.set()
            raise AssertionError("It is broken.")
        if self.failures:
            self.failed.set()
            raise self.failures.pop(0)
        submitted = await take(self.service._parts(), SCOPE, order, key)
        self.broker.happened.append("durable" if submitted.created else "known")
        return submitted

    def consumer(self) -> Consumer:
        """Return what takes the orders, with metrics of its own."""
        self.metrics = Metrics()
        return Consumer(self.broker.open, self.submit, self.clock, self.metrics)

    async def consume(self, until: asyncio.Event) -> None:
        """Consume until something has happened."""
        async with self.consumer(), asyncio.timeout(10):
            await until.wait()

    async def consume_all(self) -> None:
        """Consume until no message waits."""
        await self.consume(self.broker.none)

    def figure(self, name: str, **labels: str) -> float | None:
        """Return what a metric says; None where it says nothing."""
        return read(self.metrics).get((f"turnout_queue_{name}", tuple(labels.items())))

    def runs(self) -> list[dict[str, Any]]:
        """Return the runs of the project."""
        return self.service.call("GET", "/runs").json()["runs"]


async def test_a_message_is_acknowledged_once_its_run_is_durable() -> None:
    """And is charged to the key of the queue."""
    room = Room()
    room.broker.add({**ORDER, "labels": ["ci"]})
    await room.consume_all()
    assert room.broker.happened == ["durable", "acknowledged"]
    (run,) = room.runs()
    assert (run["task"], run["key"], run["labels"]) == ("Fix it.", "red-member", ["ci"])


async def test_a_message_that_comes_again_is_the_same_run_whatever_has_changed() -> None:
    """It was not heard that its run is durable; its repository has left the book since."""
    room = Room()
    room.broker.add()
    await room.consume_all()
    room.service.use(RepositoryBook({}))
    room.broker.none.clear()
    room.broker.add()
    await room.consume_all()
    assert room.broker.happened == ["durable", "acknowledged", "known", "acknowledged"]
    assert (len(room.runs()), room.broker.buried) == (1, [])


async def test_a_review_is_ordered_by_a_message_too() -> None:
    """It is the same message as over HTTP."""
    room = Room()
    room.broker.add({"kind": "review", "repo": "shop", "diff": DIFF})
    await room.consume_all()
    assert [run["kind"] for run in room.runs()] == ["review"]


async def test_a_message_that_comes_again_is_the_same_run() -> None:
    """After an acknowledgement that nobody heard, by its key."""
    room = Room(Broker(deaf=2))
    room.broker.add()
    await room.consume_all()
    assert room.broker.happened == ["durable", "known", "known", "acknowledged"]
    assert len(room.runs()) == 1


@pytest.mark.parametrize(
    ("order", "key", "code"),
    [
        (b"\xff\xfe", "k", "invalid_request"),
        (b"", "k", "invalid_request"),
        (b"[]", "k", "invalid_request"),
        (b"[" * 100_000, "k", "invalid_request"),
        (b"{" + b" " * (4 << 20) + b"}", "k", "request_too_large"),
        (b'{"task":"Fix it.","repo":"shop","repo":"docs"}', "k", "invalid_request"),
        ({"task": "Fix it."}, "k", "invalid_request"),
        ({**ORDER, "priority": True}, "k", "invalid_request"),
        ({**ORDER, "image": "x"}, "k", "invalid_request"),
        ({**ORDER, "repo": "/etc"}, "k", "invalid_request"),
        ({**ORDER, "base": "nowhere"}, "k", "invalid_request"),
        ({**ORDER, "policy": "other"}, "k", "policy_not_granted"),
        ({**ORDER, "task": " "}, "k", "invalid_request"),
        (ORDER, None, "invalid_request"),
        (ORDER, "two words", "invalid_request"),
        ({**ORDER, "priority": 1}, "k-0", "idempotency_conflict"),
    ],
)
async def test_what_is_no_order_is_buried_and_the_next_goes_on(
    order: Any, key: str | None, code: str
) -> None:
    """With a reason that people can read; it never comes back."""
    room = Room()
    room.broker.add(ORDER, "k-0")
    room.broker.add(order, key)
    room.broker.add(ORDER, "k-2")
    await room.consume_all()
    assert [refused.code for refused in room.broker.buried] == [code]
    assert room.broker.buried[0].message
    assert len(room.runs()) == 2


@pytest.mark.parametrize(
    "failure",
    [
        StoreError("The database is away."),
        FullError("Too many runs wait."),
        GatewayError("Slow down.", status=429, code="too_many_queued", retry_after=30),
        GatewayError("Gone.", status=503, code="repository_unavailable"),
        GatewayError("Revoked.", status=401, code="key_revoked"),
    ],
)
async def test_an_order_that_cannot_be_taken_now_waits(failure: TurnoutError) -> None:
    """It stays in the queue, others wait behind it, and the pauses grow."""
    room = Room(failures=[failure] * 8)
    room.broker.add()
    await room.consume_all()
    assert room.broker.happened == ["durable", "acknowledged"]
    assert room.clock.slept == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert not room.broker.buried


async def test_a_queue_that_is_away_is_waited_for() -> None:
    """Also where it was never there."""
    room = Room(Broker(away=3))
    room.broker.add()
    await room.consume_all()
    assert len(room.runs()) == 1
    assert room.clock.slept[:3] == [0.5, 1.0, 2.0]


async def test_a_consumer_that_ends_leaves_its_message_in_the_queue() -> None:
    """Another one takes it."""
    room = Room(failures=[StoreError("It is away.")] * 10**6)
    room.broker.add()
    await room.consume(room.failed)
    assert (len(room.broker.waiting), room.runs()) == (1, [])


async def test_metrics_say_what_became_of_messages_and_whether_more_can_come() -> None:
    """The broker is away at first, and at the end nobody listens to it."""
    room = Room(Broker(away=2), failures=[StoreError("It is away.")])
    room.broker.add(ORDER, "k-0")
    room.broker.add(b"[]", "k-1")
    room.broker.add(ORDER, "k-2")
    async with room.consumer() as consumer, asyncio.timeout(10):
        assert (room.figure("connected"), room.figure("delayed")) == (0, 0)
        await room.failed.wait()
        assert (room.figure("connected"), room.figure("delayed")) == (1, 1)
        await room.broker.none.wait()
        await asyncio.sleep(0)
        assert (room.figure("connected"), room.figure("delayed")) == (1, 0)
        assert consumer.working
    assert room.figure("messages_total", outcome="taken") == 2
    assert room.figure("messages_total", outcome="refused") == 1
    assert room.figure("connected") == 0


async def test_a_consumer_that_a_defect_has_ended_says_so() -> None:
    """A server that is away is no defect: it is waited for."""
    away = Room(Broker(away=10**6))
    async with away.consumer() as consumer:
        await asyncio.sleep(0)
        assert (consumer.working, away.figure("connected")) == (True, 0)
    broken = Room(defect=True)
    broken.broker.add()
    async with broken.consumer() as consumer, asyncio.timeout(10):
        await broken.failed.wait()
        await asyncio.sleep(0)
        assert not consumer.working
        assert broken.figure("connected") == 0
    assert len(broken.broker.waiting) == 1
