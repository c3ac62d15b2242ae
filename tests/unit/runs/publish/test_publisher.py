"""Publishing of runs that have ended: each step once, whatever fails in between."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field, replace

import pytest
from tests.samples import NOON

from turnout.core.events import (
    Event,
    Explained,
    PatchMade,
    Reviewed,
    ReviewNote,
    RunEnded,
    RunStarted,
    VerdictGiven,
)
from turnout.core.govern.happenings import Happening
from turnout.core.ids import RunId
from turnout.core.runs import FileChange, Patch, Verdict
from turnout.core.service.forges import Origin
from turnout.core.service.orders import Order
from turnout.core.service.publications import Publication
from turnout.core.tasks import Task
from turnout.errors import DeliveryError, ForgeError, StoreError
from turnout.runs.forges.ports import Draft, Told
from turnout.runs.publish.publisher import Publisher, Publishing
from turnout.runs.publish.push import Change
from turnout.testing.clock import FrozenClock
from turnout.testing.memory.orders import MemoryOrders
from turnout.testing.stores import MemoryRecordStore

RUN = RunId("run-0123456789ab")
TASK = Task("Mend the leap year\n\nIt fails.", "shop", base="release")
ORIGIN = Origin("hub", "acme/shop", "issue", 12, "ann")
WORK: tuple[Event, ...] = (
    RunStarted(TASK, "c" * 40, "loop"),
    PatchMade(Patch(b"the diff", (FileChange("a.py", "modified", 1, 1),))),
    VerdictGiven(Verdict("resolved", True, True, True, detail="All tests pass.")),
    Explained("The century rule was missing."),
)
ANSWERED = RunEnded("answered", "Done.")


class Publications:
    """Those of one run, as a database keeps them."""

    def __init__(self) -> None:
        self.kept = Publication(RUN, "red", NOON)
        self.told: list[Happening] = []
        self.down = False
        self.over = asyncio.Event()

    async def claim(self, now, *, limit, seconds):
        """Return it where it is due."""
        return [self.kept] if self.kept.state == "due" and self.kept.due_at <= now else []

    async def save(self, publication, told=None):
        """Keep it, unless it is over."""
        if self.down:
            raise StoreError("The database is away.")
        if self.kept.state == "due":
            self.kept = publication
            self.told += [told] if told else []
        if self.kept.over:
            self.over.set()


@dataclass
class Outside:
    """A repository and a forge that do as they are told, or fail once for each error."""

    pushed: list[tuple[str, RunId, Change]] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)
    said: list[Told] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)

    async def push(self, name: str, run_id: RunId, change: Change) -> str:
        """Push."""
        self.pushed.append((name, run_id, change))
        self._fail(DeliveryError)
        return "d" * 40

    def draws(self, repository: str) -> bool:
        """Know every repository."""
        return True

    async def open_draft(self, draft: Draft) -> str:
        """Draft."""
        self.drafts.append(draft)
        self._fail(ForgeError)
        return "https://git.example.org/acme/shop/1"

    async def tell(self, run, told: Told) -> None:
        """Comment."""
        self._fail(ForgeError)
        self.said.append(told)

    def _fail(self, kind: type[Exception]) -> None:
        if self.errors and isinstance(self.errors[0], kind):
            raise self.errors.pop(0)


@dataclass
class House:
    """A run that has ended, and all around it."""

    clock: FrozenClock = field(default_factory=lambda: FrozenClock(NOON))
    records: MemoryRecordStore = field(default_factory=MemoryRecordStore)
    publications: Publications = field(default_factory=Publications)
    outside: Outside = field(default_factory=Outside)

    def __post_init__(self) -> None:
        self.orders = MemoryOrders(self.records)
        self.publisher = Publisher(
            Publishing(
                self.publications,
                self.orders,
                self.records,
                self.outside.push,
                self.outside,
                self.clock,
                hide=lambda text: text.replace("/srv/git/", ""),
            )
        )

    async def publish(self) -> Publication:
        """Do what is due, and return how far it is."""
        await self.publisher.publish_due()
        return self.publications.kept


async def ended(order: Order, events: Collection[Event] = (*WORK, ANSWERED)) -> House:
    """Return a house whose run has ended so."""
    house = House()
    await house.orders.submit(RUN, order, NOON)
    if events:
        run = await house.orders.claim("w", lambda _: RUN, NOON)
        for event in events:
            await house.records.append(RUN, run.epoch, event, NOON)
    else:
        await house.orders.cancel("red", RUN, NOON)
    return house


def order(publish="draft", origin=None) -> Order:
    """Return an order whose diff is to be published."""
    return Order(TASK, "red", "key", publish=publish, origin=origin)


async def test_a_finished_run_is_pushed_drafted_and_told_of() -> None:
    """In this order, with what its readers want to know."""
    house = await ended(order(origin=ORIGIN))
    done = await house.publish()
    ((name, run_id, change),) = house.outside.pushed
    assert (name, run_id, done.branch) == ("shop", RUN, f"turnout/{RUN}")
    assert (change.base_commit, change.diff, change.at) == ("c" * 40, b"the diff", NOON)
    assert change.message.startswith("Mend the leap year\n\nThe century rule was missing.\n")
    (draft,) = house.outside.drafts
    assert (draft.branch, draft.base, draft.issue) == (done.branch, "release", 12)
    assert "The century rule was missing." in draft.text
    assert "All tests pass." in draft.text
    assert house.outside.said == [Told("The century rule was missing.", done.link)]
    assert (done.state, done.commit, done.detail) == ("done", "d" * 40, "")
    (told,) = house.publications.told
    assert (told.kind, told.subject) == ("run.published", RUN)
    assert await house.publish() == done
    assert len(house.outside.pushed) == 1


async def test_an_issue_names_the_change_that_it_asked_for() -> None:
    """What the model is asked to do there begins with words of ours."""
    title = "Leap years of centuries"
    house = await ended(order(origin=replace(ORIGIN, title=title)))
    await house.publish()
    assert house.outside.drafts[0].title == title
    assert house.outside.pushed[0][2].message.startswith(f"{title}\n\n")


async def test_a_step_that_works_later_is_done_later_and_those_before_it_are_not_again() -> None:
    """After a pause that grows."""
    house = await ended(order())
    house.outside.errors = [ForgeError("busy", passing=True), ForgeError("busy", passing=True)]
    first = await house.publish()
    assert (first.state, first.detail, first.tries) == ("due", "busy", 1)
    assert (first.commit, first.link) == ("d" * 40, "")
    house.clock.advance((first.due_at - NOON).total_seconds())
    second = await house.publish()
    assert second.due_at - first.due_at > first.due_at - NOON
    house.clock.advance((second.due_at - first.due_at).total_seconds())
    assert (await house.publish()).state == "done"
    assert (len(house.outside.pushed), len(house.outside.drafts)) == (1, 3)


async def test_a_process_that_dies_after_a_push_costs_a_second_one_and_no_more() -> None:
    """The push that is done again is the same commit."""
    house = await ended(order("branch"))
    house.publications.down = True
    await house.publish()
    house.publications.down = False
    assert (await house.publish()).state == "done"
    first, second = house.outside.pushed
    assert first == second


async def test_what_will_never_work_is_said_once() -> None:
    """To whoever asked at a forge, too."""
    house = await ended(order(origin=ORIGIN))
    house.outside.errors = [DeliveryError("/srv/git/shop has such a branch.")]
    over = await house.publish()
    assert (over.state, over.detail, over.branch) == ("failed", "shop has such a branch.", "")
    assert house.outside.drafts == []
    assert house.outside.said[0].text.startswith("shop has such a branch.")
    assert [told.kind for told in house.publications.told] == ["run.not_published"]


async def test_what_did_not_work_for_days_is_given_up() -> None:
    """By its run's end."""
    house = await ended(order())
    house.clock.advance(3 * 86_400)
    house.outside.errors = [DeliveryError("/srv/git/shop does not answer.", passing=True)]
    assert (await house.publish()).state == "failed"


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ((), "no diff"),
        ((WORK[0], ANSWERED), "no diff"),
        ((*WORK, RunEnded("cancelled", "Cancelled.")), "ended as cancelled"),
        ((*WORK, Reviewed(True, "It removes a test."), ANSWERED), "review blocks"),
    ],
)
async def test_what_should_not_be_seen_is_not_pushed(events, why) -> None:
    """It is said why; whoever asked at a forge is told."""
    house = await ended(order(origin=ORIGIN), events)
    over = await house.publish()
    assert house.outside.pushed == []
    assert (over.state, over.branch) == ("done", "")
    assert why in over.detail
    assert why in house.outside.said[0].text


async def test_whoever_asked_at_a_forge_is_told_of_a_run_that_is_not_published() -> None:
    """The findings of a review, say."""
    note = ReviewNote("a.py", 3, "This is never closed.", blocks=False)
    events = (WORK[0], Reviewed(False, "Mostly fine.", (note,), decision="annotate"), ANSWERED)
    house = await ended(order(None, ORIGIN), events)
    assert (await house.publish()).state == "done"
    words = "Review: annotate.\n\nMostly fine.\n\n- a.py:3: This is never closed."
    assert house.outside.said == [Told(words)]
    assert house.publications.told == []


@pytest.mark.parametrize("base", ["HEAD", "0" * 40])
async def test_a_draft_is_for_the_main_branch_where_the_base_is_none(base) -> None:
    """A commit is no branch."""
    wanted = replace(order(), task=replace(TASK, base=base))
    house = await ended(wanted)
    await house.publish()
    assert house.outside.drafts[0].base is None


async def test_a_publisher_that_is_woken_looks_at_once() -> None:
    """And ends when it is closed."""
    house = await ended(order("branch"))
    house.publisher.start()
    house.publisher.wake()
    await asyncio.wait_for(house.publications.over.wait(), 10)
    await house.publisher.close()
    assert house.publications.kept.state == "done"
