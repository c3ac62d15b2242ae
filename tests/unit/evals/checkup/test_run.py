"""A check-up goes on as long as time, tokens and money do."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest

from turnout.cli.eval.evidence.checked import checkup_json, checkup_text, expected_text
from turnout.core.events import Entry, Event, ModelCallDone, RunEnded, RunStarted, StepStarted
from turnout.core.ids import RequestId, RunId
from turnout.core.messages import AssistantMessage
from turnout.core.money import Micros, Price
from turnout.core.receipts import Receipt
from turnout.core.tasks import Task
from turnout.core.usage import Usage
from turnout.errors import UsageError
from turnout.evals.checkup.model import (
    CallsSeen,
    Checkup,
    CodeSeen,
    Metered,
    NotesSeen,
)
from turnout.evals.checkup.run import STEPS, CheckupLimits, Tools, check_up, sessions
from turnout.evals.grading.model import Grade
from turnout.evals.instances.model import Instance
from turnout.evals.trials.model import Mode
from turnout.evals.trials.places import Place
from turnout.runs.ports import StrategyName
from turnout.runs.stop import Stop
from turnout.runs.summary import RunResult, fold
from turnout.sandbox.base import BaseSpec
from turnout.testing.exchange import REPORT

AT = datetime(2026, 1, 1, tzinfo=UTC)
WANTED = sessions(links=4, exercises=2)
TEN = Micros(10)


@dataclass
class Room:
    """Everything that a check-up is done with, in memory; each call uses 100 tokens."""

    strategy: StrategyName = "loop"
    calls: int = 2
    """Of each session, unless it is stopped before."""
    cost: Micros | None = TEN
    ends: bool = True
    asked: list[str] = field(default_factory=list)

    async def run(
        self, task: Task, stop: Stop | None = None
    ) -> AsyncGenerator[Entry | RunResult, None]:
        """Work on a task."""
        self.asked.append(task.prompt)
        entries: list[Entry] = []

        def entry(event: Event) -> Entry:
            entries.append(Entry(RunId("run-1"), len(entries) + 1, AT, event))
            return entries[-1]

        yield entry(RunStarted(task, "c0ffee", self.strategy))
        for step in range(1, self.calls + 1):
            if stop is not None and stop.asked:
                break
            yield entry(StepStarted(step, "act", "latency"))
            yield entry(self._done(step))
        yield entry(RunEnded("answered", "It is done."))
        if self.ends:
            yield fold(entries)

    async def of(self, instance: Instance, mode: Mode) -> Place:
        """Return a place."""
        return Place("/repo", "c0ffee")

    async def grade(
        self, instance: Instance, base: BaseSpec, diff: bytes, *, strict: bool
    ) -> Grade:
        """Find everything right."""
        return Grade("resolved", "")

    async def receipts(self, run_id: RunId) -> Sequence[Receipt]:
        """Know of nothing."""
        return ()

    def tools(self) -> Tools:
        """Return it as what a check-up is done with."""
        return Tools(self, self, self, self, "files")

    def _done(self, step: int) -> ModelCallDone:
        return ModelCallDone(
            step=step,
            kind="act",
            conversation="main",
            idempotency_key=f"k{step}",
            request_id=RequestId("req-1"),
            message=AssistantMessage(""),
            finish_reason="stop",
            usage=Usage(90, 10),
            routing=replace(REPORT, cost_micros=self.cost),
            latency_ms=1,
        )


async def checked(room: Room, tokens: int = 10**6, spend: Micros | None = None) -> Checkup:
    """Check a model up."""
    return await check_up("m", WANTED, room.tools(), CheckupLimits(tokens, spend))


async def test_everything_is_tried_and_added_up() -> None:
    """The coding tasks first, which cost less; who is told of it hears every session begin."""
    room, heard = Room(), list[str]()
    limits = CheckupLimits(10**6, None)
    found = await check_up("m", WANTED, room.tools(), limits, heard.append)
    assert heard == ["discount", "settings", "notes"]
    assert (len(found.code), found.cut_short) == (2, "")
    assert found.notes is not None
    assert found.metered == Metered(6, 540, 60, Micros(60), 0.0)


@pytest.mark.parametrize(
    ("tokens", "spend", "why"),
    [(250, None, "250 tokens"), (10**6, Micros(25), "it has spent")],
    ids=["tokens", "money"],
)
async def test_no_more_is_tried_once_it_is_enough(
    tokens: int, spend: Micros | None, why: str
) -> None:
    """The session under way ends after its step."""
    room = Room()
    found = await checked(room, tokens, spend)
    assert found.metered.calls == 3
    assert (len(found.code), found.notes, len(room.asked)) == (2, None, 2)
    assert why in found.cut_short
    assert "not everything was tried" in checkup_text(found, WANTED)


async def test_no_session_goes_on_for_ever() -> None:
    """However many tokens there are: a coding session ends long before the notes must."""
    found = await checked(Room(calls=10**4))
    assert found.metered.calls == 25 + 25 + STEPS


async def test_what_has_no_price_is_not_counted_as_money() -> None:
    """The tokens still are."""
    found = await checked(Room(cost=None), spend=Micros(1))
    assert (found.metered.cost, found.cut_short) == (None, "")
    assert "price unknown" in checkup_text(found, WANTED)


async def test_a_model_that_cannot_call_tools_is_given_no_notes_to_read() -> None:
    """It is told how it works."""
    found = await checked(Room("repair"))
    assert (found.notes, len(found.code)) == (None, 2)
    text = checkup_text(found, WANTED)
    assert "it cannot call tools, and works by `repair`" in text
    assert "not tried" in text


async def test_a_run_that_leaves_nothing_is_an_error() -> None:
    """It says nothing of the model."""
    with pytest.raises(UsageError, match="has left no result"):
        await checked(Room(ends=False))


NOTES = NotesSeen(42, 42, 1, 44, True, False, 1, "answered", "It said that it was done.")
FOUND = Checkup(
    "m",
    "loop",
    CallsSeen(50, 1, 1, 2),
    NOTES,
    (
        CodeSeen("discount", "resolved", "", (), True, 1),
        CodeSeen("spans", "resolved", "", ("plot.py",), True, 3),
        CodeSeen("wrap", "resolved", "", (), True, None),
        CodeSeen("roman", "no_patch", "Nothing was changed.", (), False, 0),
    ),
    Metered(60, 200_000, 9_000, Micros(80_000), 133.0),
)


def test_the_table_says_all_four_things() -> None:
    """And what went wrong, task by task."""
    text = checkup_text(FOUND, sessions())
    assert "60 calls, 200,000 tokens in, 9,000 out, $0.08, 133 s" in text
    assert "48 of 52 well-formed (92%), 1 unusable, 1 mended, 2 missing or written as text" in text
    assert "remembered 44 steps after it was read (42 of 42 notes read, condensed 1 time)" in text
    assert "2 of 4 tasks touched only what was asked, in 1 nothing was changed" in text
    assert "3 of 4 resolved: 1 at the first try, 1 after corrections, 1 by commands" in text
    assert "spans: also changed plot.py" in text
    assert "roman: no_patch. Nothing was changed." in text


@pytest.mark.parametrize(
    ("notes", "said"),
    [
        (replace(NOTES, remembered=False), "forgotten, 44 steps after it was read"),
        (replace(NOTES, looked_again=True), "looked again, 44 steps after it was read"),
        (replace(NOTES, read=7), "not reached: 7 of 42 notes read; It said that it was done."),
        (replace(NOTES, at_once=42), "42 of 42 notes read, up to 42 at once"),
    ],
)
def test_the_table_says_what_became_of_the_memory(notes: NotesSeen, said: str) -> None:
    """Short cuts included: they show nothing of it."""
    assert said in checkup_text(replace(FOUND, notes=notes), sessions())


def test_programs_read_the_same() -> None:
    """With shares where something was tried."""
    shown = checkup_json(FOUND)
    assert shown["tool_calls"]["rate"] == 48 / 52
    assert shown["context"]["retained"] is True
    assert (shown["resolved"], shown["first_try"], shown["kept_to_it"]) == (3, 1, 2)
    nothing = replace(FOUND, calls=CallsSeen(), notes=None, code=())
    assert checkup_json(nothing)["tool_calls"]["rate"] is None
    assert shown["metered"]["cost_micros"] == 80_000


def test_what_it_may_cost_is_said_before() -> None:
    """As far as prices are known."""
    price = Price(Micros(1_000_000), Micros(10_000_000))
    limits = CheckupLimits(1_500_000, Micros(1_000_000))
    text = expected_text(sessions(), [("m", price), ("n", None)], limits)
    assert "7 sessions a model" in text
    assert "at most 1,500,000 tokens or $1.00 each" in text
    assert "n: unknown price" in text
    assert "m: about $" in text
