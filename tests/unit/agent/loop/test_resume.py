"""A run whose service ended goes on as if it had not: cut after every event of its record."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from tests.unit.agent.resuming import FILES, Gateway, Story, interrupted

from turnout.agent.approval import Unattended
from turnout.agent.base import AgentConfig, StepConfig
from turnout.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    Event,
    HistoryCondensed,
    LoopEnded,
    ModelCallDone,
    ModelCallFailed,
    ModelCallIntended,
    Notice,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.money import Micros
from turnout.errors import GatewayError
from turnout.testing.turns import Call, Refusal, Turn

pytestmark = pytest.mark.cases

CONFLICT = (None, GatewayError("Another request.", status=409, code="idempotency_conflict"))

READ = Call("read_file", {"path": "a.py"})
EDIT = Call("edit_file", {"path": "a.py", "old": "x = 1", "new": "x = 2"})
LOUD = Call("run", {"command": "loud >> log"})
FINISH = Call("finish", {"summary": "Fixed."})
PATCH = Call("apply_patch", {"diff": "--- a/b.py\n+++ b/b.py\n@@ @@\n-y = 1\n+y = 2\n"})
LOUD_TURNS = (
    Turn(calls=(LOUD,)),
    *[Turn(calls=(Call("read_file", {"path": "long.py"}),))] * 2,
    Turn("Hm."),
    Turn(calls=(FINISH,)),
)
TOO_LONG = Refusal(400, "This model's maximum context length is 4096 tokens.", "bad_request")


class Refuses:
    """Lets nothing through but edits."""

    async def decide(self, asked: ApprovalAsked) -> ApprovalGiven:
        """Decide by the name of the tool."""
        return ApprovalGiven(asked.step, asked.call.id, asked.call.name != "run", "ada", "No.")


STORIES: Mapping[str, Story] = {
    "edits, a long output and a text": Story(
        (
            Turn("[1] First.", (READ, EDIT, LOUD)),
            Turn("So."),
            Turn(calls=(READ, replace(READ, arguments={"path": "b.py"}))),
            Turn(calls=(FINISH, READ)),
        )
    ),
    "an answer in text": Story((Turn(calls=(PATCH, READ)), Turn("It was y.")), "guide"),
    "cut, unknown and broken calls": Story(
        (
            Turn(calls=(EDIT, LOUD), finish_reason="length"),
            Turn(calls=(Call("edit_fil", "{"), Call("run", "{"), READ)),
            Turn(calls=(Call("run", {"command": "ls"}),) * 34),
            Turn(calls=(FINISH,)),
        )
    ),
    "a history that is condensed": Story(
        (
            Turn(calls=(EDIT,)),
            *[Turn(calls=(replace(READ, arguments={"path": "long.py"}),))] * 2,
            Turn("Hm."),
            *[Turn(calls=(replace(READ, arguments={"path": "b.py"}),))] * 2,
            Turn(calls=(FINISH,)),
        ),
        config=AgentConfig(window=2_000, output_cap=6_000),
    ),
    "a refusal for length": Story(
        (Turn(calls=(EDIT,)), Turn("Hm."), TOO_LONG, Turn(calls=(READ,)), Turn(calls=(FINISH,)))
    ),
    "a call that fails": Story((Turn(calls=(EDIT,)), Turn("Hm."), Refusal(500, "Oops."))),
    "a step for one tool": Story(
        (
            Turn(calls=(READ,)),
            Turn("I will apply a patch to b.py."),
            Turn(calls=(PATCH,)),
            Turn("It was y."),
        ),
        "guide",
        AgentConfig(tool_steps={"apply_patch": StepConfig("quality", model="pinned")}),
    ),
    "questions to people": Story(
        (Turn(calls=(EDIT, LOUD)), Turn(calls=(FINISH,))),
        config=AgentConfig(approvals=("edit_file", "run")),
        approver=Refuses(),
    ),
    "circles": Story([Turn(calls=(READ,))] * 4),
    "too many steps": Story([Turn("Hm.", (READ,))] * 3, config=AgentConfig(max_steps=3)),
}
"""Every way in which a loop yields events."""


@pytest.mark.parametrize("name", STORIES)
async def test_a_run_goes_on_from_wherever_its_record_ends(name: str) -> None:
    """The same requests under the same keys, the same events, the same files, the same end."""
    story = STORIES[name]
    gateway = Gateway(story.turns)
    whole, seen, _ = await story.told(gateway, FILES)
    assert isinstance(whole[-1], LoopEnded)
    for cut in range(len(whole)):
        record = whole[:cut]
        files = seen[cut - 1] if cut else FILES
        lost = interrupted(record)
        followed, _, sandbox = await story.told(gateway, files, record)
        if lost is None:
            assert [*record, *followed] == whole, cut
            assert (gateway.changed, gateway.faults) == ([], []), cut
            assert sandbox.files == seen[-1], cut
        gateway.changed.clear()


@pytest.mark.parametrize("name", STORIES)
async def test_what_was_under_way_is_never_done_twice(name: str) -> None:
    """A crash while a command or an edit ran, whether it was done by then or not."""
    story = STORIES[name]
    whole, seen, _ = await story.told(Gateway(story.turns), FILES)
    for cut in range(1, len(whole)):
        record, lost = whole[:cut], interrupted(whole[:cut])
        if lost is None:
            continue
        for files in (seen[cut - 1], seen[min(cut, len(seen) - 1)]):
            gateway = Gateway(story.turns[replies(record) :])
            followed, _, sandbox = await story.told(gateway, files, record)
            first = next(event for event in followed if isinstance(event, ToolCallDone))
            assert (first.result.call_id, first.result.is_error) == (lost.call.id, True), cut
            if "Interrupted" in first.result.content:
                assert first.result.unsure, cut
                again = [e.call for e in followed if isinstance(e, ToolCallIntended)]
                assert lost.call not in again, cut
            assert not gateway.faults, cut
            assert sandbox.files["log"].data.count(b"x") <= 1, cut
            assert unended([*record, *followed]) == [], cut
            assert isinstance(followed[-1], LoopEnded), cut


def unended(record: Sequence[Event]) -> list[str]:
    """Return the keys of model calls that do not have one end each."""
    keys = [event.idempotency_key for event in record if isinstance(event, ModelCallIntended)]
    ended = [e.idempotency_key for e in record if isinstance(e, ModelCallDone | ModelCallFailed)]
    return [key for key in keys if ended.count(key) != 1]


def replies(record: Sequence[Event]) -> int:
    """Return how many act calls have an answer on record."""
    ended = [e for e in record if isinstance(e, ModelCallDone | ModelCallFailed)]
    return sum(event.kind == "act" for event in ended)


async def test_a_call_that_can_not_be_sent_again_is_made_anew() -> None:
    """Settings have changed meanwhile: the gateway holds the key for the request of before."""
    story = STORIES["edits, a long output and a text"]
    whole, seen, _ = await story.told(Gateway(story.turns), FILES)
    for cut, event in enumerate(whole, 1):
        if not isinstance(event, ModelCallIntended) or event.kind == "summary":
            continue
        gateway = Gateway(story.turns[replies(whole[:cut]) :])
        gateway.known[event.idempotency_key] = CONFLICT
        followed, _, sandbox = await story.told(gateway, seen[cut - 1], whole[:cut])
        assert isinstance(followed[0], ModelCallFailed), cut
        assert followed[-1] == whole[-1], cut
        assert sandbox.files == seen[-1], cut
        assert not gateway.faults, cut


async def test_a_summary_that_is_no_longer_wanted_is_given_up() -> None:
    """Settings have changed meanwhile: the window is not tight any more."""
    story = STORIES["a history that is condensed"]
    whole, seen, _ = await story.told(Gateway(story.turns), FILES)
    wide = replace(story, config=AgentConfig())
    for cut in range(1, len(whole)):
        record = whole[:cut]
        if getattr(record[-1], "kind", "") != "summary" or "done" in record[-1].type:
            continue
        gateway = Gateway(story.turns[replies(record) :])
        followed, _, _ = await wide.told(gateway, seen[cut - 1], record)
        assert followed[-1] == whole[-1], cut
        assert unended([*record, *followed]) == [], cut
        assert not gateway.faults, cut
        (asked,) = {request.call_kind for request, _ in gateway.known.values() if request}
        assert asked == "act", cut


async def test_an_interrupted_command_is_told_of_in_a_summary() -> None:
    """Nobody knows whether it was done: a summary must not forget that."""
    story = replace(STORIES["a history that is condensed"], turns=LOUD_TURNS)
    whole, seen, _ = await story.told(Gateway(story.turns), FILES)
    cut = next(n for n, event in enumerate(whole, 1) if isinstance(event, ToolCallIntended))
    gateway = Gateway(story.turns[1:])
    followed, _, _ = await story.told(gateway, seen[cut - 1], whole[:cut])
    told = [event.text for event in followed if isinstance(event, HistoryCondensed)]
    assert told
    assert all('[perhaps] run {"command": "loud >> log"}: Interrupted' in text for text in told)


async def test_what_the_service_itself_puts_on_record_changes_nothing() -> None:
    """Notices, connections and the like stand between the loop's own events."""
    story = STORIES["edits, a long output and a text"]
    gateway = Gateway(story.turns)
    whole, seen, _ = await story.told(gateway, FILES)
    for cut in range(1, len(whole)):
        if interrupted(whole[:cut]) is None:
            record = [each for event in whole[:cut] for each in (event, Notice("By the way."))]
            followed, _, _ = await story.told(gateway, seen[cut - 1], record)
            assert [*whole[:cut], *followed] == whole, cut
    assert gateway.changed == []


async def test_no_person_is_asked_twice() -> None:
    """An answer that came while no service ran is on record, and counts."""
    story = STORIES["questions to people"]
    whole, seen, _ = await story.told(Gateway(story.turns), FILES)
    asked = next(n for n, event in enumerate(whole, 1) if isinstance(event, ApprovalAsked))
    question = whole[asked - 1]
    assert isinstance(question, ApprovalAsked)
    given = ApprovalGiven(question.step, question.call.id, True, "ada")
    deaf = replace(story, approver=Unattended(), config=AgentConfig(approvals=("edit_file",)))
    record = [*whole[:asked], given]
    followed, _, sandbox = await deaf.told(Gateway(story.turns[1:]), seen[asked - 1], record)
    assert not any(isinstance(event, ApprovalAsked) for event in followed)
    assert sandbox.files["a.py"].data == b"x = 2\n"


async def test_what_was_spent_and_done_before_counts() -> None:
    """Caps hold over all services that worked on a run."""
    story = STORIES["circles"]
    whole, seen, _ = await story.told(Gateway(story.turns), FILES)
    third = [n for n, e in enumerate(whole, 1) if isinstance(e, ModelCallDone)][2]
    spent = replace(story, config=AgentConfig(max_spend=Micros(300)))
    followed, _, _ = await spent.told(Gateway([]), seen[third - 1], whole[:third])
    assert isinstance(end := followed[-1], LoopEnded)
    assert (end.outcome, "has spent" in end.reason) == ("capped", True)
    late = replace(story, config=AgentConfig(max_seconds=60), seconds=61)
    followed, _, _ = await late.told(Gateway([]), seen[third - 1], whole[:third])
    assert isinstance(end := followed[-1], LoopEnded)
    assert (end.outcome, "seconds are over" in end.reason) == ("capped", True)
