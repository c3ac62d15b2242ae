"""Programs on the OpenAI Agents SDK, unmodified: only address and key are changed."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import openai
import pytest
from pydantic import BaseModel

from agents import (
    Agent,
    ModelSettings,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    SQLiteSession,
    function_tool,
    handoff,
)
from turnout.core.policies import Policy, SessionCaps, ToolRule
from turnout.core.receipts import Receipt
from turnout.gateway.catalog import Deployment
from turnout.gateway.dialog.conversation import Shape
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, catalog_at, running_gateway
from turnout.testing.model_server import Call, ScriptedModelServer, Turn
from turnout.testing.responses import ResponsesTurn, ScriptedResponsesServer, called, said, thought

pytestmark = pytest.mark.clients

MODEL = deployment("p/m")
QUIET = RunConfig(tracing_disabled=True)


class Place(BaseModel):
    """What an agent with an output type answers."""

    city: str


@function_tool
def read_file(path: str) -> str:
    """Return the text of a file."""
    return f"content of {path}"


class Stage(NamedTuple):
    """A gateway before a scripted server, and the model that an agent is given."""

    server: Any
    gateway: RunningGateway
    model: OpenAIResponsesModel

    def agent(self, **fields: Any) -> Agent[Any]:
        """Return an agent whose model is the gateway."""
        named = {"name": "Reader", "instructions": "Read.", "tools": [read_file]}
        return Agent(model=self.model, **named, **fields)

    def receipts(self) -> list[Receipt]:
        """Return the receipts, oldest first."""
        return list(self.gateway.books.receipts.receipts.values())


@asynccontextmanager
async def stage(
    server: ScriptedModelServer | ScriptedResponsesServer,
    served: Deployment = MODEL,
    setup: GatewaySetup | None = None,
) -> AsyncIterator[Stage]:
    """Serve one model."""
    shape: Shape = "responses" if isinstance(server, ScriptedResponsesServer) else "chat"
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(server)
        catalog = catalog_at(server.base_url, served, shape=shape)
        gateway = await stack.enter_async_context(running_gateway(catalog, setup))
        client = openai.AsyncOpenAI(
            api_key="k",
            base_url=gateway.base_url,
            max_retries=0,
            default_headers={"x-session-id": "run-1"},
        )
        await stack.enter_async_context(client)
        yield Stage(server, gateway, OpenAIResponsesModel(model="auto", openai_client=client))


SCRIPT = [
    Turn(
        calls=(Call("read_file", {"path": "a"}), Call("read_file", {"path": "b"})), reasoning="Hm"
    ),
    Turn("Both read."),
]


async def test_an_agent_runs_its_tools_and_answers():
    """Two calls side by side, the loop on one model, one session on the receipts."""
    async with stage(ScriptedModelServer(SCRIPT)) as on:
        done = await Runner.run(on.agent(), "Read both.", run_config=QUIET)
        assert [r.session for r in on.receipts()] == ["run-1", "run-1"]
        assert on.receipts()[1].decision is not None
        assert on.receipts()[1].decision.sticky
    assert done.final_output == "Both read."
    assert on.server.history_faults == []
    contents = [m["content"] for m in on.server.requests[1].messages if m["role"] == "tool"]
    assert contents == ["content of a", "content of b"]


async def test_a_streamed_run_comes_to_the_same():
    """Every event is understood; the text arrives in pieces."""
    async with stage(ScriptedModelServer(SCRIPT)) as on:
        run = Runner.run_streamed(on.agent(), "Read both.", run_config=QUIET)
        deltas = [
            event.data.delta
            async for event in run.stream_events()
            if event.type == "raw_response_event"
            and event.data.type == "response.output_text.delta"
        ]
    assert "".join(deltas) == run.final_output == "Both read."
    assert run.context_wrapper.usage.total_tokens == 240


async def test_an_agent_goes_on_by_response_id():
    """The SDK sends only what is new; the gateway has the rest."""
    script = [*SCRIPT, Turn("Still here.")]
    async with stage(ScriptedModelServer(script)) as on:
        reader = on.agent()
        first = await Runner.run(
            reader, "Read both.", run_config=QUIET, auto_previous_response_id=True
        )
        again = await Runner.run(
            reader, "And now?", run_config=QUIET, previous_response_id=first.last_response_id
        )
    assert again.final_output == "Still here."
    assert on.server.history_faults == []
    assert [m["role"] for m in on.server.requests[2].messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
    ]


async def test_an_agent_with_a_session_of_its_own_sends_everything(tmp_path):
    """The SDK's own memory of a conversation is read back by the gateway."""
    async with stage(ScriptedModelServer([*SCRIPT, Turn("Yes.")])) as on:
        reader, memory = on.agent(), SQLiteSession("s", tmp_path / "memory.db")
        await Runner.run(reader, "Read both.", session=memory, run_config=QUIET)
        last = await Runner.run(reader, "Sure?", session=memory, run_config=QUIET)
        memory.close()
    assert last.final_output == "Yes."
    assert on.server.history_faults == []


async def test_an_agent_hands_off_to_another():
    """A hand-off is a call like any other."""
    script = [Turn(calls=(Call("transfer_to_reader", {}),)), Turn("Mine.")]
    async with stage(ScriptedModelServer(script)) as on:
        reader = on.agent()
        desk = Agent(name="Desk", model=reader.model, handoffs=[handoff(reader)])
        done = await Runner.run(desk, "Who reads?", run_config=QUIET)
    assert (done.final_output, done.last_agent.name) == ("Mine.", "Reader")
    assert on.server.history_faults == []


async def test_an_agent_with_an_output_type_gets_it():
    """The schema reaches the model, the answer is parsed."""
    async with stage(ScriptedModelServer([Turn('{"city": "Pune"}')])) as on:
        done = await Runner.run(on.agent(output_type=Place), "Where?", run_config=QUIET)
    assert done.final_output == Place(city="Pune")
    assert on.server.requests[0].body["response_format"]["type"] == "json_schema"


async def test_a_tool_outside_the_list_is_refused_by_name():
    """403, before any model is asked."""
    policy = Policy(tools=ToolRule("enforce", ("run_tests",)))
    async with stage(ScriptedModelServer(SCRIPT), setup=GatewaySetup(policy=policy)) as on:
        with pytest.raises(openai.PermissionDeniedError, match="read_file"):
            await Runner.run(on.agent(), "Read.", run_config=QUIET)
    assert on.server.requests == []


async def test_a_run_ends_at_the_session_s_cap():
    """429 that no client retries."""
    policy = Policy(session=SessionCaps(max_requests=1))
    async with stage(ScriptedModelServer(SCRIPT), setup=GatewaySetup(policy=policy)) as on:
        with pytest.raises(openai.RateLimitError):
            await Runner.run(on.agent(), "Read both.", run_config=QUIET)
    assert len(on.server.requests) == 1


@pytest.mark.cases
async def test_thoughts_that_the_model_wants_back_come_back():
    """Whatever the SDK keeps of them, under whichever model name."""
    thinking = replace(MODEL, reasoning_back=True)
    async with stage(ScriptedModelServer(SCRIPT), thinking) as on:
        await Runner.run(on.agent(), "Read both.", run_config=QUIET)
    answers = [m for m in on.server.requests[1].messages if m["role"] == "assistant"]
    assert answers[0]["reasoning_content"] == "Hm"


async def test_an_agent_on_an_upstream_of_the_shape():
    """Reasoning items, stateless: what is encrypted comes back as it was."""
    script = [
        ResponsesTurn((thought("Hm.", "gAAA"), called("read_file", '{"path":"a"}', "call_1"))),
        ResponsesTurn((said("Read."),)),
    ]
    async with stage(ScriptedResponsesServer(script)) as on:
        settings = ModelSettings(store=False, response_include=["reasoning.encrypted_content"])
        reader = on.agent(model_settings=settings)
        done = await Runner.run(reader, "Read.", run_config=QUIET)
    assert done.final_output == "Read."
    assert on.server.faults == []
    sent = on.server.requests[1].items
    kept = [i.get("encrypted_content") for i in sent if i.get("type") == "reasoning"]
    assert kept == ["gAAA"]


async def test_the_program_of_the_docs_runs(tmp_path):
    """As it stands there, in a process of its own."""
    page = Path(__file__).parents[2] / "docs" / "howto" / "openai-agents.md"
    program = page.read_text().split("```python\n")[1].split("```")[0]
    (tmp_path / "program.py").write_text(program)
    (tmp_path / "README.md").write_text("Nothing.")
    script = [Turn(calls=(Call("read_file", {"path": "README.md"}),)), Turn("It promises nothing.")]
    async with stage(ScriptedModelServer(script)) as on:
        running = await asyncio.create_subprocess_exec(
            *(sys.executable, "program.py"),
            cwd=tmp_path,
            env={"TURNOUT_URL": on.gateway.base_url, "TURNOUT_KEY": "k"},
            stdout=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(60):
            printed, _ = await running.communicate()
    assert printed == b"It promises nothing.\n"
    assert [r.session for r in on.receipts()] == ["run-1", "run-1"]
    results = [m["content"] for m in on.server.requests[1].messages if m["role"] == "tool"]
    assert results == ["Nothing."]
