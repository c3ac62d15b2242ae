"""A gateway that is away is waited for; anything else is an error at once."""

import pytest

from turnout.core.ids import SessionId
from turnout.core.inference import ModelRequest, RoutingAsk
from turnout.errors import GatewayError
from turnout.runs.durable.patience import PatientClient
from turnout.testing.clock import FrozenClock
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.model_server import Refusal, Turn

REQUEST = ModelRequest(
    messages=(),
    call_kind="act",
    routing=RoutingAsk("latency", "coding", SessionId("run-1")),
    idempotency_key="run-1-step-1",
)


def away(code="store_unavailable"):
    """Return the refusal of a gateway that cannot serve for now."""
    return Refusal(503, "It is away.", code)


async def test_a_call_is_sent_again_under_its_key_until_the_gateway_is_back():
    """Whether it or its database was away."""
    clock = FrozenClock()
    client = ScriptedModelClient(away(), away("gateway_unreachable"), away(), Turn("here"))
    reply = await PatientClient(client, clock).call(REQUEST)
    assert reply.message.content == "here"
    assert {request.idempotency_key for request in client.requests} == {"run-1-step-1"}
    assert clock.slept == [0.5, 1.0, 2.0]


@pytest.mark.parametrize(("status", "code"), [(503, "overloaded"), (402, "session_cap")])
async def test_what_a_model_or_a_policy_refuses_is_not_waited_for(status, code):
    """It would not change."""
    client = ScriptedModelClient(Refusal(status, "No.", code))
    with pytest.raises(GatewayError, match="No"):
        await PatientClient(client, FrozenClock()).call(REQUEST)
    assert len(client.requests) == 1


async def test_a_gateway_that_stays_away_is_an_error_in_the_end():
    """After a quarter of an hour."""
    clock = FrozenClock()
    client = ScriptedModelClient(*[away()] * 200)
    with pytest.raises(GatewayError, match="away"):
        await PatientClient(client, clock).call(REQUEST)
    assert 900 <= clock.monotonic() < 920
