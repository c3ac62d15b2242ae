"""A run that reviews a change which is there already."""

from dataclasses import replace

import pytest
from tests.unit.runs.parts import COMMIT, DIFF, TASK, Agent, Driver, Room

from turnout.core.events import (
    LoopEnded,
    PatchMade,
    Reviewed,
    ReviewNote,
    RunStarted,
    TestsRan,
    VerdictGiven,
)
from turnout.core.tasks import ReviewAsk
from turnout.errors import RepositoryError, UsageError
from turnout.runs.intake import LARGEST_DIFF
from turnout.sandbox.workspace.history import Compared

REVIEW = replace(TASK, prompt="It adds b.", surface="review", review=ReviewAsk(DIFF))
NOTE = ReviewNote("pages.py", 1, "Off by one.", True, "error")
FINE = Reviewed(False, "Good.", decision="approve")
BAD = Reviewed(True, "It breaks.", (NOTE,), decision="block")


def room_of(*reviews: Reviewed, **parts: object) -> Room:
    """Return a service whose review agent says these."""
    return Room(agent=Agent(reviews=reviews), **parts)


@pytest.mark.parametrize(("said", "reason"), [(FINE, "approves"), (BAD, "blocks")])
async def test_a_review_reads_the_change_and_does_nothing_else(said: Reviewed, reason: str) -> None:
    """No test is run, no dependency installed, no patch made and no verdict given."""
    room = room_of(said)
    result = await room.run(REVIEW)
    assert (result.review, result.outcome, result.verdict) == (said, "answered", None)
    assert reason in result.reason
    assert (result.workspace is not None, bool(result.patch)) == (True, False)
    (spec,) = room.driver.specs
    assert (spec.commit, spec.requirements) == (COMMIT, ())
    assert room.driver.boxes[0].did == ["apply_patch", "close"]
    (subject,) = room.agent.subjects
    assert (subject.asked, subject.patch.diff, subject.brief.prompt) == (True, DIFF, "It adds b.")
    kinds = (TestsRan, PatchMade, VerdictGiven, LoopEnded)
    assert not any(isinstance(entry.event, kinds) for entry in room.entries)


async def test_a_review_that_comes_to_no_decision_ends_as_its_agent_did() -> None:
    """So that scripts see that a cap has stopped it."""
    capped = Reviewed(True, "It came to none.", decided=False, outcome="capped")
    result = await room_of(capped).run(REVIEW)
    assert (result.outcome, result.reason) == ("capped", "It came to none.")


async def test_a_diff_that_does_not_apply_is_not_reviewed() -> None:
    """The record says why, and no model is asked."""
    room = room_of(driver=Driver(applies=False))
    result = await room.run(REVIEW)
    assert (result.outcome, room.agent.subjects) == ("failed", [])
    assert f"does not apply to {COMMIT[:12]}: hunk 1 failed" in result.reason


async def test_of_a_head_what_it_changes_since_it_left_the_base_is_read() -> None:
    """The record holds the diff and the commit that it lies on, so that it is found once."""
    asked = []

    async def compare(repository: str, base: str, head: str) -> Compared:
        asked.append((repository, base, head))
        return Compared("c" * 40, DIFF)

    room = room_of(FINE, compare=compare)
    await room.run(replace(REVIEW, review=ReviewAsk(head="verbose-flag")))
    assert asked == [(TASK.repository, COMMIT, COMMIT)]
    started = room.entries[0].event
    assert isinstance(started, RunStarted)
    assert started.base_commit == room.driver.specs[0].commit == "c" * 40
    assert started.task.review == ReviewAsk(DIFF, "verbose-flag")


@pytest.mark.parametrize("diff", [b"", b" \n", b"x" * (LARGEST_DIFF + 1)])
async def test_what_cannot_be_reviewed_is_refused_before_anything_is_on_record(diff: bytes) -> None:
    """Nothing at all, and more than a model could read."""
    room = room_of(FINE)
    with pytest.raises(UsageError):
        await room.run(replace(REVIEW, review=ReviewAsk(diff)))
    assert not room.entries


async def test_where_no_commits_can_be_compared_a_head_is_refused() -> None:
    """Instead of reading nothing."""
    with pytest.raises(RepositoryError):
        await room_of(FINE).run(replace(REVIEW, review=ReviewAsk(head="main")))


async def test_a_review_that_is_stopped_comes_to_no_decision() -> None:
    """A change is never let pass because somebody pressed Ctrl-C."""
    room = room_of(FINE)

    async def stop() -> None:
        room.stop.ask()

    async def reviewing(client, sandbox, subject, approver, record=()):
        await stop()
        yield LoopEnded("answered", "never read")

    room.agent.review = reviewing
    result = await room.run(REVIEW)
    assert (result.outcome, result.review.decided, result.blocked) == ("cancelled", False, True)
