"""The scripted model client."""

import pytest

from turnout.core.ids import SessionId
from turnout.core.inference import ModelRequest, RoutingAsk, StepKind
from turnout.core.messages import UserMessage
from turnout.errors import GatewayError
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.turns import Call, Refusal, Turn


def request(kind: StepKind) -> ModelRequest:
    """Return a request of one kind."""
    ask = RoutingAsk("cost", "coding", SessionId("s"))
    return ModelRequest((UserMessage("hi"),), kind, ask, "key")


async def test_act_calls_are_answered_in_order_and_others_by_kind() -> None:
    """Turns serve act calls only; each request is kept."""
    client = ScriptedModelClient(
        Turn(calls=(Call("run", {"command": "ls"}),)),
        lambda asked: Turn(f"asked by {asked.call_kind}"),
        others={"plan": Turn("A plan.")},
    )
    assert (await client.call(request("plan"))).message.content == "A plan."
    first = await client.call(request("act"))
    assert (first.message.tool_calls[0].name, first.finish_reason) == ("run", "tool_calls")
    assert (await client.call(request("act"))).message.content == "asked by act"
    assert (first.routing.objective, first.routing.session) == ("cost", "s")
    assert [len(client.asked(kind)) for kind in ("plan", "act", "summary")] == [1, 2, 0]


async def test_a_refusal_is_raised_as_the_gateway_would() -> None:
    """Status, code and message are those of the script."""
    client = ScriptedModelClient(Refusal(402, "No money.", "session_spend_cap"))
    with pytest.raises(GatewayError, match="No money") as error:
        await client.call(request("act"))
    assert (error.value.status, error.value.code) == (402, "session_spend_cap")


async def test_a_script_that_has_run_out_fails_the_test() -> None:
    """Asking for more than was foreseen is no model failure."""
    with pytest.raises(AssertionError, match="no turn for act call 1"):
        await ScriptedModelClient().call(request("act"))
