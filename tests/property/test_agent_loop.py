"""Whatever a model says, a run ends by name and every request's history is valid."""

import json
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.agent.workshop import Workshop

from turnout.agent.base import AgentConfig
from turnout.agent.loop.state import MAIN, LoopState
from turnout.agent.tools.bounds import BOUNDS
from turnout.agent.tools.surfaces import SURFACES
from turnout.agent.wire import encode_request
from turnout.core.events import (
    Event,
    ModelCallIntended,
    ToolCallDone,
    ToolCallIntended,
    decode_event,
    encode_event,
)
from turnout.core.inference import ModelRequest
from turnout.core.messages import Message
from turnout.core.runs import Outcome
from turnout.core.tasks import SurfaceName
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.recorded import history_faults
from turnout.testing.sandbox import result
from turnout.testing.turns import Call, Refusal, Turn

TEXT = st.text(alphabet=st.characters(exclude_categories=[]), max_size=12)
NAMES = st.sampled_from(
    [
        "list_files",
        "read_file",
        "run_tests",
        "apply_patch",
        "run",
        "edit_file",
        "finish",
        "write_file",
        "run_command",
        "list_directory",
        "",
        "x",
    ]
)
ARGUMENTS = st.one_of(
    TEXT,
    st.sampled_from(["", "null", "{", "[]", '{"path": "a.py"}', '{"path": "a.py"', '"{}"', "{}}"]),
    st.fixed_dictionaries(
        {},
        optional={
            "path": st.sampled_from(["a.py", "../x", "test_a.py", ".", "big", "output:1"]),
            "old": st.sampled_from(["", "x", "x = 1"]),
            "new": TEXT,
            "command": st.sampled_from(["ls", "long", ""]),
            "diff": st.sampled_from(["--- a/a.py\n+++ b/a.py\n@@ @@\n-x = 1\n+x = 2\n", "no"]),
            "offset": st.one_of(st.integers(-3, 9), TEXT),
            "selector": TEXT,
            "content": TEXT,
        },
    ),
)
CALLS = st.builds(Call, NAMES, ARGUMENTS, st.sampled_from([None, "", "same", "id\0", "\ud800"]))
TURNS = st.builds(
    Turn,
    text=TEXT,
    calls=st.lists(CALLS, max_size=4).map(tuple),
    reasoning=TEXT,
    finish_reason=st.sampled_from([None, None, None, "stop", "length", "content_filter", "odd"]),
)
REFUSALS = st.builds(
    Refusal,
    st.sampled_from([402, 403, 429, 500]),
    code=st.sampled_from(["tool_not_allowed", "session_request_cap", "other"]),
)
MOSTLY_TURNS = st.integers(0, 29).flatmap(lambda n: TURNS if n else REFUSALS)
SURFACE_NAMES = st.sampled_from(["guide", "shell", "files"])


def requests_by_events(events: list[Event], surface: SurfaceName) -> list[tuple[Message, ...]]:
    """Return what each call of the loop's own must have sent, by the record up to its intent."""
    state = LoopState(SURFACES[surface])
    sent = []
    for event in events:
        state.apply(event)
        if isinstance(event, ModelCallIntended) and event.conversation == MAIN:
            sent.append(state.messages)
    return sent


def wire_messages(request: ModelRequest) -> list[dict[str, object]]:
    """Return the messages of a request as they travel."""
    messages: list[dict[str, object]] = json.loads(encode_request(request))["messages"]
    return messages


@settings(max_examples=120, deadline=None)
@given(
    st.lists(MOSTLY_TURNS, min_size=1, max_size=12),
    SURFACE_NAMES,
    MOSTLY_TURNS,
    st.sampled_from([200, 100_000]),
)
async def test_any_conversation_ends_by_name_with_valid_history(
    turns: list[Turn | Refusal], surface: SurfaceName, summary: Turn | Refusal, window: int
) -> None:
    """Every call has one result in order, requests are folds of the record, the end has a name."""
    client = ScriptedModelClient(*turns, others={"summary": summary})
    workshop = Workshop(
        files={"a.py": b"x = 1\n", "big": "y" * 30_000},
        surface=surface,
        config=AgentConfig(max_steps=len(turns), window=window),
        script=lambda sandbox: sandbox.answer("long", result(b"z" * 9_000, code=1)),
    )
    run = await workshop.work(client)

    assert run.end.outcome in get_args(Outcome)
    assert run.end.reason
    assert all(history_faults(wire_messages(request)) == () for request in client.requests)
    stored = [decode_event(encode_event(event)) for event in run.events]
    sent = [request.messages for request in client.asked("act")]
    assert requests_by_events(stored, surface) == sent
    asked = [event.call.id for event in stored if isinstance(event, ToolCallIntended)]
    answered = [event.result.call_id for event in stored if isinstance(event, ToolCallDone)]
    assert asked == answered
    assert all(len(result) <= BOUNDS[workshop.surface].read_cap for result in run.results)
    assert run.sandbox.files.get("test_a.py") is None
