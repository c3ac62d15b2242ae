"""A loop whose models differ in what they want to see of the thoughts before."""

from dataclasses import replace

import pytest

from turnout.agent.base import AgentConfig, Brief, StepConfig
from turnout.agent.client import HttpModelClient
from turnout.agent.loop import LoopStrategy
from turnout.core.clock import SystemClock
from turnout.core.events import LoopEnded, ModelCallDone
from turnout.core.ids import RunId
from turnout.testing.exchange import deployment
from turnout.testing.gateway import catalog_at, running_gateway
from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.recorded import RecordedRequest
from turnout.testing.sandbox import ScriptedSandbox
from turnout.testing.turns import Call, Refusal, Turn

DIFF = "--- a/a.py\n+++ b/a.py\n@@ @@\n-x = 1\n+x = 2\n"
THINKING = (
    Turn("1. Read."),
    Turn(calls=(Call("read_file", {"path": "a.py"}),), reasoning="I had better look."),
    Turn("x must be 2.", reasoning="So it is x."),
    Turn("Fixed.", reasoning="That was it."),
)


def thinks(request: RecordedRequest) -> Turn | Refusal:
    """Refuse a history in which one of its calls has lost its thought."""
    said = [m for m in request.messages if m.get("role") == "assistant"]
    read = [m for m in said if m.get("tool_calls") and "read_file" in str(m)]
    if any(not message.get("reasoning_content") for message in read):
        return Refusal(400, "The `reasoning_content` must be passed back.")
    return THINKING[min(len(said) + ("Plan:" in str(request.messages)), 3)]


def plain(request: RecordedRequest) -> Turn | Refusal:
    """Refuse a history that holds thoughts at all."""
    if any("reasoning_content" in message for message in request.messages):
        return Refusal(400, "There is no field `reasoning_content`.")
    return Turn(calls=(Call("apply_patch", {"diff": DIFF}),))


@pytest.mark.cases
async def test_each_model_gets_the_thoughts_that_it_wants() -> None:
    """One wants its own back, the other none; the run goes from one to the other and back."""
    config = AgentConfig(tool_steps={"apply_patch": StepConfig("quality", model="plain")})
    config = replace(config, steps={k: replace(s, model="thinks") for k, s in config.steps.items()})
    deployments = (replace(deployment("p/thinks"), reasoning_back=True), deployment("p/plain"))
    sandbox = ScriptedSandbox({"a.py": "x = 1\n"}, run_id=RunId("run-1"))
    brief = Brief(RunId("run-1"), "Fix a.py.", "guide", "pytest", None)
    async with (
        ScriptedModelServer({"thinks": thinks, "plain": plain}) as server,
        running_gateway(catalog_at(server.base_url, *deployments)) as gateway,
        HttpModelClient(
            base_url=gateway.base_url, uds=None, api_key="", clock=SystemClock()
        ) as client,
    ):
        strategy = LoopStrategy(client, sandbox, config, SystemClock())
        events = [event async for event in strategy.run(brief)]
    assert isinstance(end := events[-1], LoopEnded)
    assert (end.outcome, end.answer) == ("answered", "Fixed."), end.reason
    used = [event.routing.model for event in events if isinstance(event, ModelCallDone)]
    assert used == ["thinks", "thinks", "thinks", "plain", "thinks"]
    assert sandbox.files["a.py"].data == b"x = 2\n"
    assert not server.history_faults
