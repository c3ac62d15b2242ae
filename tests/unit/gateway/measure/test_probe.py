"""A probe finds out what a server does with tools, whatever the server does."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from turnout.core.clock import SystemClock
from turnout.core.ids import ProviderName
from turnout.core.json import as_object
from turnout.gateway.catalog import Provider
from turnout.gateway.evidence import ProbeResult
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.measure.asking import Asking
from turnout.gateway.measure.probe import PROBE_NAME, probe
from turnout.gateway.providers.http import HttpUpstream
from turnout.gateway.wire.chat import ChatShape
from turnout.testing.exchange import deployment
from turnout.testing.model_server import (
    Answer,
    Call,
    RecordedRequest,
    Refusal,
    ScriptedModelServer,
    Turn,
)
from turnout.testing.obedient import obedient

MODEL = deployment("acme/m")


async def probed(answer: Callable[[RecordedRequest], Answer]) -> tuple[ProbeResult, int]:
    """Probe a server that answers so; return the result and the number of requests."""
    async with (
        ScriptedModelServer(answer, answers_probes=False) as server,
        HttpUpstream(SystemClock()) as upstream,
    ):
        provider = Provider(ProviderName("acme"), server.base_url)
        asking = Asking(upstream, ChatShape(), provider, MODEL, SystemClock())
        result = await probe(asking, SystemClock())
        return result, len(server.requests)


async def test_a_server_that_obeys_is_confirmed_in_three_calls() -> None:
    """Native calls, enforced choice, enforced schema."""
    result, requests = await probed(obedient)
    assert (result.tools, result.calls_in_text) == ("confirmed", False)
    assert (result.enforces_tool_choice, result.json_schema) == (True, True)
    assert requests == 3


async def test_calls_left_in_the_text_are_recognised() -> None:
    """Such a server can be used, and cannot be held to a choice."""

    def textual(request: RecordedRequest) -> Turn:
        return replace(obedient(request), fault="call_in_text")

    result, requests = await probed(textual)
    assert (result.tools, result.calls_in_text) == ("confirmed", True)
    assert not result.enforces_tool_choice
    assert requests == 2


async def test_a_choice_that_is_not_enforced_is_noticed() -> None:
    """The model calls when it wants to, not when it must."""

    def willing(request: RecordedRequest) -> Turn:
        named = as_object(request.body.get("tool_choice"))
        return Turn("Hello!") if named else obedient(request)

    result, _ = await probed(willing)
    assert (result.tools, result.enforces_tool_choice) == ("confirmed", False)


@pytest.mark.parametrize("status", [400, 422, 501])
async def test_a_server_that_refuses_required_calls_is_asked_again(status: int) -> None:
    """Knowing tools and enforcing a choice are two things."""

    def picky(request: RecordedRequest) -> Answer:
        if "tool_choice" in request.body or "response_format" in request.body:
            return Refusal(status, "unsupported parameter")
        return obedient(request)

    result, requests = await probed(picky)
    assert (result.tools, result.enforces_tool_choice) == ("confirmed", False)
    assert not result.json_schema
    assert requests == 4


@pytest.mark.parametrize("status", [400, 404, 500])
async def test_a_server_without_tools_says_so_itself(status: int) -> None:
    """Its own words are the detail."""

    def toolless(request: RecordedRequest) -> Answer:
        return Refusal(status, "m does not support tools") if request.tool_names else Turn("?")

    result, _ = await probed(toolless)
    assert result.tools == "absent"
    assert "does not support tools" in result.detail


@pytest.mark.parametrize(
    "turn",
    [
        Turn("I cannot."),
        Turn(calls=(Call(PROBE_NAME, '{"text": "unescaped "yes"'),)),
        Turn(calls=(Call(PROBE_NAME, {"text": "something else"}),)),
        Turn(f'I would call {PROBE_NAME}("yes").'),
    ],
)
async def test_no_usable_call_is_no_support(turn: Turn) -> None:
    """Quotes that break the arguments are the first thing a diff would break too."""
    result, _ = await probed(lambda _: turn)
    assert result.tools == "absent"
    assert not result.json_schema


async def test_a_model_that_thinks_long_gets_more_room() -> None:
    """A limit that ran out while thinking proves nothing."""

    def thoughtful(request: RecordedRequest) -> Turn:
        limit = request.body["max_tokens"]
        assert isinstance(limit, int)
        if limit < 1_000:
            return Turn(reasoning="hm", finish_reason="length")
        return obedient(request)

    result, requests = await probed(thoughtful)
    assert (result.tools, requests) == ("confirmed", 4)


@pytest.mark.faults
@pytest.mark.parametrize("status", [401, 403, 429, 503])
async def test_a_server_that_cannot_be_asked_is_no_result(status: int) -> None:
    """A wrong key or an overload says nothing about tools."""
    with pytest.raises(UpstreamError) as caught:
        await probed(lambda _: Refusal(status))
    assert caught.value.status == status


@pytest.mark.faults
async def test_an_unknown_model_is_no_result() -> None:
    """A 404 that does not speak of tools is about the model."""
    with pytest.raises(UpstreamError):
        await probed(lambda _: Refusal(404, "The model does not exist."))
