"""A run whose service ended goes on as if it had not: cut after every event of its record."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from tests.unit.agent.workshop import RUN

from turnout.agent.approval import Approver, Unattended
from turnout.agent.base import AgentConfig, Brief, StepConfig
from turnout.agent.loop import LoopStrategy
from turnout.agent.wire import encode_request
from turnout.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    Event,
    HistoryCondensed,
    LoopEnded,
    ModelCallDone,
    ModelCallFailed,
    ModelCallIntended,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.inference import ModelReply, ModelRequest
from turnout.core.money import Micros
from turnout.core.tasks import SurfaceName
from turnout.errors import GatewayError
from turnout.sandbox.base import CommandResult
from turnout.testing.clock import FrozenClock
from turnout.testing.model_client import Answer, ScriptedModelClient
from turnout.testing.recorded import history_faults
from turnout.testing.sandbox import FakeFile, ScriptedSandbox, result
from turnout.testing.turns import Call, Refusal, Turn

pytestmark = pytest.mark.cases

CONFLICT = (None, GatewayError("Another request.", status=409, code="idempotency_conflict"))

FILES = {"a.py": "x = 1\n", "b.py": "y = 1\n", "long.py": "z\n" * 2_000, "log": ""}
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


class Gateway:
    """A model behind a gateway, which answers a request as it did when it came before."""

    def __init__(self, turns: Sequence[Answer]) -> None:
        self._client = ScriptedModelClient(*turns)
        self.known: dict[str, tuple[ModelRequest | None, ModelReply | GatewayError]] = {}
        self.changed: list[str] = []
        """Keys that came again with another request."""
        self.faults: list[str] = []
        """Of the histories that were sent."""

    async def call(self, request: ModelRequest) -> ModelReply:
        """Answer; only an answer that is none is not kept."""
        self.faults += history_faults(json.loads(encode_request(request))["messages"])
        known = self.known.get(request.idempotency_key)
        if known is None:
            known = request, await self._ask(request)
            self.known[request.idempotency_key] = known
        if known[0] not in (request, None):
            self.changed.append(request.idempotency_key)
        if isinstance(known[1], GatewayError):
            raise known[1]
        return known[1]

    async def _ask(self, request: ModelRequest) -> ModelReply | GatewayError:
        try:
            return await self._client.call(request)
        except GatewayError as error:
            return error
        except AssertionError:
            # A run that lost a result to a crash may take a step more than the script has.
            return await ScriptedModelClient(Turn("Done.", (FINISH,))).call(
                replace(request, call_kind="act")
            )


class Refuses:
    """Lets nothing through but edits."""

    async def decide(self, asked: ApprovalAsked) -> ApprovalGiven:
        """Decide by the name of the tool."""
        return ApprovalGiven(asked.step, asked.call.id, asked.call.name != "run", "ada", "No.")


@dataclass(frozen=True)
class Story:
    """A run whose record is cut."""

    turns: Sequence[Answer]
    surface: SurfaceName = "shell"
    config: AgentConfig = field(default_factory=AgentConfig)
    approver: Approver | None = None
    seconds: float = 0.0
    """Wall time of its work before."""

    async def told(
        self, gateway: Gateway, files: Mapping[str, FakeFile | str], record: Sequence[Event] = ()
    ) -> tuple[list[Event], list[dict[str, FakeFile]], ScriptedSandbox]:
        """Return what follows a record, the files as each event found them, and the sandbox."""
        sandbox = ScriptedSandbox(files, run_id=RUN)
        sandbox.answer("loud", lambda _: shout(sandbox))
        strategy = LoopStrategy(
            gateway, sandbox, self.config, FrozenClock(), approver=self.approver
        )
        brief = Brief(RUN, "Fix a.py.", self.surface, "pytest", None, ("test_a.py",))
        brief = replace(brief, seconds=self.seconds)
        events: list[Event] = []
        seen: list[dict[str, FakeFile]] = []
        async for event in strategy.run(brief, record):
            events.append(event)
            seen.append(dict(sandbox.files))
        return events, seen, sandbox


def shout(sandbox: ScriptedSandbox) -> CommandResult:
    """Print much, and leave a line in the log."""
    sandbox.files["log"] = FakeFile(sandbox.files["log"].data + b"x\n")
    return result(b"w" * 9_000, code=1)


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


def interrupted(record: Sequence[Event]) -> ToolCallIntended | None:
    """Return the call at the end of a record that may have been made, and has no result."""
    done = {event.result.call_id for event in record if isinstance(event, ToolCallDone)}
    writes = {"edit_file", "apply_patch", "run"}
    left = [
        event
        for event in record
        if isinstance(event, ToolCallIntended)
        and event.call.id not in done
        and event.call.name in writes
    ]
    return left[0] if left else None


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
            assert isinstance(followed[-1], LoopEnded), cut


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
