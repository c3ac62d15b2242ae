"""Faults of upstreams as clients of the messages shape see them: the right answer or a clean error.

Each is followed by a sound request under a key that may have one at a time, so that a slot or a
health that leaked would show.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson
import pytest

from turnout.core.govern.keys import KeyLimits
from turnout.core.usage import Usage
from turnout.gateway.exchange import Caller
from turnout.gateway.stages.attempts.fallback import Limits
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, catalog_at, running_gateway
from turnout.testing.messages import (
    MessagesFault,
    MessagesRefusal,
    MessagesTurn,
    ScriptedMessagesServer,
    text,
    tool_use,
)
from turnout.testing.messages.server import MessagesAnswer, ReceivedRequest
from turnout.testing.model_server import (
    Call,
    Fault,
    RecordedRequest,
    ScriptedModelServer,
    Turn,
    refusing_base_url,
)

pytestmark = pytest.mark.faults

streams = pytest.mark.parametrize("stream", [False, True])
SAID = "One two three four five six seven."
GOOD = "All is well."
USAGE = Usage(100, 20)


def _one_at_a_time(_: Mapping[str, str]) -> Caller:
    return Caller("k", limits=KeyLimits(concurrency=1))


SETUP = GatewaySetup(authenticate=_one_at_a_time, limits=Limits(tries_each=1, backoff=0.01))


@dataclass
class Answer:
    """What a client was sent."""

    status: int
    headers: Mapping[str, str]
    raw: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events of a stream, each named as it says."""
        found = []
        for block in self.raw.split("\n\n"):
            lines = [line for line in block.split("\n") if line and not line.startswith(":")]
            if lines:
                name, data = lines
                found.append(orjson.loads(data.removeprefix("data: ")))
                assert name == f"event: {found[-1]['type']}"
        return found

    @property
    def text(self) -> str:
        """All text, whole or streamed."""
        if self.raw.startswith("{"):
            return "".join(b.get("text", "") for b in orjson.loads(self.raw)["content"])
        return "".join(
            e["delta"].get("text", "") for e in self.events if "index" in e and "delta" in e
        )

    @property
    def error(self) -> dict[str, Any]:
        """The error, as a body or as the last event."""
        body = orjson.loads(self.raw) if self.raw.startswith("{") else self.events[-1]
        assert body["type"] == "error"
        error: dict[str, Any] = body["error"]
        return error

    @property
    def is_whole(self) -> bool:
        """Whether it is an answer to its end."""
        if self.raw.startswith("{"):
            return bool(orjson.loads(self.raw).get("stop_reason"))
        return self.events[-1]["type"] == "message_stop"


async def _ask(gateway: RunningGateway, stream: bool, said: str = "fault") -> Answer:
    body = {
        "model": "auto",
        "max_tokens": 64,
        "stream": stream,
        "messages": [{"role": "user", "content": said}],
    }
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{gateway.base_url}/messages", json=body) as answer,
    ):
        return Answer(answer.status, answer.headers, await answer.text())


@asynccontextmanager
async def _failing(answer: MessagesAnswer, *, rests: bool = False) -> AsyncIterator[RunningGateway]:
    """Serve a gateway whose upstream of this shape fails as `answer` does.

    `rests`: it asked to be left alone for a while.
    """

    def script(request: ReceivedRequest) -> MessagesAnswer:
        return answer if b'"fault"' in request.raw else MessagesTurn((text(GOOD),))

    async with ScriptedMessagesServer(script) as server:
        catalog = catalog_at(server.base_url, deployment("p/m"), shape="messages", idle_timeout=0.4)
        async with running_gateway(catalog, SETUP) as gateway:
            yield gateway
            after = await _ask(gateway, stream=True, said="well?")
            assert after.status == 429 if rests else after.text == GOOD
        assert server.faults == []


@streams
@pytest.mark.parametrize("fault", ["drip", "content_type", "no_stop", "usage_twice", "whole"])
async def test_an_odd_answer_is_a_right_answer(fault: MessagesFault, stream: bool) -> None:
    """Counted once."""
    async with _failing(MessagesTurn((text(SAID),), fault=fault)) as gateway:
        answer = await _ask(gateway, stream)
        receipt = gateway.receipt()
    assert (answer.status, answer.text, answer.is_whole) == (200, SAID, True)
    assert (receipt.status, receipt.usage) == ("ok", USAGE)


@streams
async def test_an_answer_without_counts_is_estimated(stream: bool) -> None:
    """And marked so."""
    async with _failing(MessagesTurn((text(SAID),), fault="no_usage")) as gateway:
        answer = await _ask(gateway, stream)
        receipt = gateway.receipt()
    assert answer.text == SAID
    assert receipt.usage.estimated
    assert receipt.usage.output_tokens > 0


@streams
@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ("reset", 502),
        ("reset_after_headers", 502),
        ("stall", 504),
        ("html", 502),
        ("oversized", 502),
    ],
)
async def test_no_answer_is_a_clean_error(fault: MessagesFault, status: int, stream: bool) -> None:
    """With a status, in this shape, and nothing billed."""
    turn = MessagesTurn((text("x"),), fault=fault)
    async with _failing(turn) as gateway:
        answer = await _ask(gateway, stream)
        receipt = gateway.receipt()
    assert answer.status == status
    assert answer.error["type"] == ("timeout_error" if status == 504 else "api_error")
    assert answer.error["message"]
    assert "<h1>" not in answer.raw
    assert receipt.status == "failed"
    assert receipt.usage == Usage()


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("cut", "api_error"),
        ("stall_midway", "timeout_error"),
        ("bad_json", "api_error"),
        ("error_in_band", "overloaded_error"),
    ],
)
async def test_a_stream_that_breaks_ends_in_an_error_event(fault: MessagesFault, kind: str) -> None:
    """What was said stands, no end is made up, what was used is charged as an estimate."""
    async with _failing(MessagesTurn((text(SAID),), fault=fault)) as gateway:
        answer = await _ask(gateway, stream=True)
        receipt = gateway.receipt()
    assert answer.status == 200
    assert answer.text
    assert SAID.startswith(answer.text)
    assert answer.error["type"] == kind
    assert not any(e["type"] in {"message_delta", "message_stop"} for e in answer.events)
    assert receipt.status == "truncated"
    assert receipt.usage.input_tokens > 0


@pytest.mark.parametrize(
    ("fault", "status"),
    [("cut", 502), ("stall_midway", 504), ("bad_json", 502), ("error_in_band", 529)],
)
async def test_a_whole_answer_that_breaks_is_an_error(fault: MessagesFault, status: int) -> None:
    """Nothing of it was seen."""
    async with _failing(MessagesTurn((text(SAID),), fault=fault)) as gateway:
        answer = await _ask(gateway, stream=False)
    assert answer.status == status
    assert answer.error["message"]


@pytest.mark.cases
async def test_a_call_that_is_cut_is_never_given_an_end() -> None:
    """Half a patch must not be applied."""
    call = tool_use("apply_patch", {"diff": "--- a\n+++ b\n" * 5}, "toolu_1")
    async with _failing(MessagesTurn((call,), fault="cut")) as gateway:
        answer = await _ask(gateway, stream=True)
    assert any(e["type"] == "content_block_start" for e in answer.events)
    assert answer.error["type"] == "api_error"
    assert "tool_use" not in str([e for e in answer.events if e["type"] == "message_delta"])


@streams
@pytest.mark.parametrize(
    ("refusal", "status", "wait"),
    [
        (MessagesRefusal(429, "rate_limit_error", headers={"retry-after": "30"}), 429, "30"),
        (MessagesRefusal(429, "rate_limit_error", headers={"retry-after-ms": "29500"}), 429, "30"),
        (MessagesRefusal(529, "overloaded_error"), 529, None),
        (MessagesRefusal(500, "api_error"), 502, None),
        (MessagesRefusal(400, "invalid_request_error", "prompt is too long: 9 > 8"), 400, None),
        (MessagesRefusal(413, "request_too_large"), 413, None),
    ],
)
async def test_a_refusal_keeps_words_and_wait(
    refusal: MessagesRefusal, status: int, wait: str | None, stream: bool
) -> None:
    """An upstream's own body goes on byte for byte: clients look for its wording."""
    async with _failing(refusal, rests=wait is not None) as gateway:
        answer = await _ask(gateway, stream)
    assert answer.status == status
    assert answer.headers.get("retry-after") == wait
    assert answer.raw.encode() == refusal.payload()


@streams
@pytest.mark.parametrize(
    ("refusal", "status", "code"),
    [
        (MessagesRefusal(402, "billing_error", "sk-theirs owes"), 502, "provider_refused"),
        (MessagesRefusal(401, "authentication_error"), 502, "provider_refused"),
        (MessagesRefusal(503, raw=b"<h1>no</h1>"), 503, "upstream_error"),
    ],
)
async def test_what_is_no_business_of_the_client_stays_here(
    refusal: MessagesRefusal, status: int, code: str, stream: bool
) -> None:
    """Our account at a provider, a proxy's page."""
    async with _failing(refusal) as gateway:
        answer = await _ask(gateway, stream)
    assert answer.status == status
    assert answer.error["type"] == "api_error"
    assert answer.error["details"]["error_code"] == code
    assert "owes" not in answer.raw
    assert "<h1>" not in answer.raw


@streams
async def test_nobody_there_is_a_clean_error(stream: bool) -> None:
    """Connection refused."""
    with refusing_base_url() as base_url:
        catalog = catalog_at(base_url, deployment("p/m"), shape="messages")
        async with running_gateway(catalog, SETUP) as gateway:
            answer = await _ask(gateway, stream)
    assert answer.status == 502
    assert answer.error["type"] == "api_error"


@pytest.mark.cases
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("cut", None),
        ("error_in_band", None),
        ("usage_twice", SAID),
        ("no_done", SAID),
        ("drip", SAID),
    ],
)
async def test_faults_of_chat_upstreams_come_out_in_this_shape(
    fault: Fault, said: str | None, stream: bool
) -> None:
    """The translation hides none of them."""

    def script(request: RecordedRequest) -> Turn:
        faulty = '"fault"' in orjson.dumps(request.body).decode()
        return Turn(SAID, fault=fault) if faulty else Turn(GOOD)

    async with ScriptedModelServer(script) as server:
        catalog = catalog_at(server.base_url, deployment("p/m"), idle_timeout=0.4)
        async with running_gateway(catalog, SETUP) as gateway:
            answer = await _ask(gateway, stream)
            assert (await _ask(gateway, stream=True, said="well?")).text == GOOD
    if said is not None:
        assert (answer.text, answer.is_whole) == (said, True)
    else:
        assert answer.error["message"]
        ends = [e for e in answer.events if e["type"] == "message_stop"] if stream else []
        assert ends == []


@pytest.mark.cases
async def test_a_chat_upstream_that_cuts_a_call_ends_in_an_error() -> None:
    """No stop reason is made up for it."""
    turn = Turn(calls=(Call("apply_patch", {"diff": "--- a\n+++ b\n" * 5}),), fault="cut")
    async with (
        ScriptedModelServer([turn] * 4) as server,
        running_gateway(catalog_at(server.base_url, deployment("p/m")), SETUP) as gateway,
    ):
        answer = await _ask(gateway, stream=True)
    assert answer.error["type"] == "api_error"
    assert "stop_reason" not in str(answer.events[1:])
