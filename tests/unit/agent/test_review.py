"""A review agent that reads a change."""

import json

import pytest
from tests.unit.agent.workshop import RUN
from tests.unit.runs.parts import PASSING, PATCH

from turnout.agent.base import AgentConfig, Brief
from turnout.agent.review import Judgement, ReviewSubject, read_judgement, review
from turnout.core.events import Event, LoopEnded, ModelCallIntended, Reviewed, ReviewNote
from turnout.core.runs import Patch
from turnout.testing.clock import FrozenClock
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.sandbox import ScriptedSandbox
from turnout.testing.turns import Call, Refusal, Turn

NOTE = {"path": "a.py", "line": 3, "text": "Off by one.", "blocks": True}
BLOCK = json.dumps({"decision": "block", "summary": "It breaks.", "notes": [NOTE]})
READ = ReviewNote("a.py", 3, "Off by one.", True)


async def reviewed(client: ScriptedModelClient, mode: str = "block") -> list[Event]:
    """Return the events of one review."""
    brief = Brief(RUN, "Fix it.", "shell", "pytest", None, attempt=2, first_step=8)
    subject = ReviewSubject(brief, PATCH, PASSING)
    sandbox, config = ScriptedSandbox({"a.py": "x"}, run_id=RUN), AgentConfig(review=mode)
    return [e async for e in review(client, sandbox, config, FrozenClock(), subject)]


async def test_a_review_reads_and_then_says_what_it_holds() -> None:
    """Tools that change nothing, a conversation and steps of its own, and no end of the run."""
    client = ScriptedModelClient(Turn(calls=(Call("read_file", {"path": "a.py"}),)), Turn(BLOCK))
    events = await reviewed(client)
    assert events[-1] == Reviewed(True, "It breaks.", (READ,), decision="block")
    assert not any(isinstance(event, LoopEnded) for event in events)
    first = next(event for event in events if isinstance(event, ModelCallIntended))
    assert (first.step, first.kind, first.conversation) == (8, "review", "review-2")
    request = client.requests[0]
    assert {tool.name for tool in request.tools} == {"list_files", "read_file", "search_files"}
    said = request.messages[-1].content
    assert "Fix it." in said
    assert "+b" in said
    assert request.routing.optimize == "quality"


@pytest.mark.parametrize(("lines", "listed"), [(10, False), (20_000, True)])
async def test_of_a_long_diff_the_files_that_it_changes_are_named(
    lines: int, *, listed: bool
) -> None:
    """The model reads those that it is not shown."""
    patch = Patch(b"+line\n" * lines, ())
    brief = Brief(RUN, "Look.", "review", None, None)
    subject = ReviewSubject(brief, patch, None, asked=True, paths=("a.py", "deep/b.py"))
    client, sandbox = ScriptedModelClient(Turn(BLOCK)), ScriptedSandbox({"a.py": "x"}, run_id=RUN)
    events = [e async for e in review(client, sandbox, AgentConfig(), FrozenClock(), subject)]
    said = client.requests[0].messages[-1].content
    assert ("deep/b.py" in said, len(said) < 30_000) == (listed, True)
    assert events[-1] == Reviewed(True, "It breaks.", (READ,), decision="block")


async def test_a_review_that_may_only_annotate_blocks_nothing() -> None:
    """Its notes are kept as they are."""
    events = await reviewed(ScriptedModelClient(Turn(BLOCK)), "annotate")
    assert events[-1] == Reviewed(False, "It breaks.", (READ,), decision="block")


@pytest.mark.parametrize(("mode", "blocked"), [("block", True), ("annotate", False)])
@pytest.mark.parametrize(
    "turn", [Turn("Looks good to me."), Refusal(status=503, code="upstream", message="Down.")]
)
async def test_a_review_without_a_decision_passes_only_where_it_could_not_block(
    turn: Turn | Refusal, mode: str, *, blocked: bool
) -> None:
    """Prose, or no answer at all."""
    last = (await reviewed(ScriptedModelClient(turn), mode))[-1]
    assert isinstance(last, Reviewed)
    assert (last.blocked, last.decided) == (blocked, False)
    assert "no decision" in last.summary


@pytest.mark.parametrize(
    "text",
    [
        BLOCK,
        f"```json\n{BLOCK}\n```",
        f"I have read it.\n\n{BLOCK}\n\nThat is all.",
        f'The schema was {{"verdict": "approve" | "block"}}.\n{BLOCK}',
        f'{{"verdict": "approve", "summary": "First thought."}} No: {BLOCK}',
        BLOCK.replace('"block"', '" BLOCKED "'),
        BLOCK.replace("3,", '"3",'),
    ],
)
def test_the_last_judgement_counts_whatever_stands_around_it(text: str) -> None:
    """Models wrap it, repeat the instruction, change their mind."""
    assert read_judgement(text) == Judgement("block", "It breaks.", (READ,))


@pytest.mark.parametrize(
    "text",
    ["", "LGTM", "{", '{"verdict": "fine"}', '{"verdict": 3}', "[" * 100_000, "{" * 100_000],
)
def test_what_is_no_judgement_is_none(text: str) -> None:
    """Nothing is read into it, and nothing hangs."""
    assert read_judgement(text) is None


def test_odd_notes_are_bounded_or_left_out() -> None:
    """One without words says nothing; a line that is none is dropped."""
    notes = [{"text": ""}, 3, {"text": "x" * 9_000, "line": -1, "path": 7}, *[NOTE] * 100]
    judgement = read_judgement(json.dumps({"verdict": "annotate", "notes": notes}))
    assert judgement is not None
    assert judgement.notes[0] == ReviewNote("", None, "x" * 2_000, False)
    assert len(judgement.notes) == 50
