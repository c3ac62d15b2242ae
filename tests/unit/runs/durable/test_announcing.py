"""What is told of a run: once each, after it is on record."""

from dataclasses import replace

from tests.samples import NOON

from turnout.core.events import ApprovalAsked, Reviewed, RunEnded, RunStarted
from turnout.core.govern.happenings import Happening
from turnout.core.ids import RunId, ToolCallId
from turnout.core.service.orders import Answer, Order, OrderedRun
from turnout.core.tasks import ReviewAsk, Task
from turnout.core.tools import ToolCall
from turnout.runs.durable.announcing import Announcer
from turnout.runs.durable.desk import Desk
from turnout.runs.durable.following import Following
from turnout.runs.stop import Stop
from turnout.testing.clock import FrozenClock
from turnout.testing.memory.orders import MemoryOrders
from turnout.testing.stores import MemoryRecordStore

RUN = RunId("run-1")
ORDER = Order(Task("Fix it.", "shop"), "red", "ci", policy="team")
ASKED = ApprovalAsked(2, ToolCall(ToolCallId("call-1"), "deploy", "{}"), "deploy")


class Idle:
    """An engine that does nothing."""

    async def enqueue(self, run_id: RunId) -> None:
        """Do nothing."""

    async def cancel(self, run_id: RunId) -> None:
        """Do nothing."""


class Rooms:
    """Stores, what is done with a run, and what was told of it."""

    def __init__(self) -> None:
        clock = FrozenClock()
        self.records = MemoryRecordStore()
        self.orders = MemoryOrders(self.records)
        self.told: list[Happening] = []
        following = Following(self.orders, self.records, clock)
        self.desk = Desk(self.orders, self.records, Idle(), following, clock, self.tell)
        self.announcer = Announcer(self.orders, self.records, clock, self.tell)

    async def tell(self, happening: Happening) -> None:
        """Note it."""
        self.told.append(happening)

    async def work(self, run: OrderedRun, stop: Stop) -> None:
        """Ask a person, and end once there is an answer."""
        if run.started_at is None:
            await self.records.append(
                RUN, run.epoch, RunStarted(ORDER.task, "c" * 40, "loop"), NOON
            )
            await self.orders.wait(RUN, run.epoch, ASKED)
        else:
            await self.records.append(RUN, run.epoch, RunEnded("answered", "Done."), NOON)

    async def segment(self) -> None:
        """Work on the run as a worker does."""
        run = await self.orders.claim("w", lambda _: RUN, NOON)
        assert run is not None
        await self.announcer.of(self.work)(run, Stop())


async def test_a_run_is_told_of_when_it_begins_waits_and_ends():
    """With whose it is; a run that goes on does not begin again."""
    rooms = Rooms()
    await rooms.orders.submit(RUN, ORDER, NOON)
    await rooms.segment()
    await rooms.desk.decide("red", RUN, Answer(True, "me"))
    await rooms.segment()
    assert [one.kind for one in rooms.told] == ["run.started", "run.waiting", "run.ended"]
    assert {(o.subject, o.project, o.key, o.policy, o.session) for o in rooms.told} == {
        (RUN, "red", "ci", "team", RUN)
    }
    assert len({one.id for one in rooms.told}) == 3
    assert rooms.told[1].text.endswith("may it call deploy?")
    assert rooms.told[2].text.endswith("has ended: answered.")
    assert [one.outcome for one in rooms.told] == [None, None, "answered"]


async def test_the_end_of_a_review_says_what_it_has_decided():
    """A verdict of tests it has none."""
    rooms = Rooms()
    order = replace(ORDER, task=replace(ORDER.task, review=ReviewAsk(b"x")))
    await rooms.orders.submit(RUN, order, NOON)
    run = await rooms.orders.claim("w", lambda _: RUN, NOON)
    assert run is not None
    for event in (
        RunStarted(order.task, "c" * 40, "loop"),
        Reviewed(True, "It breaks.", decision="block"),
        RunEnded("answered", "The review blocks the change."),
    ):
        await rooms.records.append(RUN, run.epoch, event, NOON)
    await rooms.announcer.stands(await rooms.orders.get("red", RUN))
    assert rooms.told[-1].text.endswith("has ended: answered, decision block.")


async def test_a_run_that_is_cancelled_before_it_begins_is_told_of_once():
    """Asked to end again, it has ended already."""
    rooms = Rooms()
    await rooms.orders.submit(RUN, ORDER, NOON)
    for _ in range(2):
        await rooms.desk.cancel("red", RUN)
    assert [(one.kind, one.text.rpartition(": ")[2]) for one in rooms.told] == [
        ("run.ended", "cancelled.")
    ]
