"""Unmodified clients of all three shapes, before a real model that this machine serves."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import openai
import pytest

from turnout.core.clock import SystemClock
from turnout.gateway.measure.settle import settle
from turnout.gateway.providers.http import HttpUpstream
from turnout.gateway.wire.shapes import SPOKEN
from turnout.localmodel.models import find_installed, models_folder
from turnout.localmodel.serve import LocalServer
from turnout.settings import state_folder
from turnout.testing.gateway import GatewaySetup, RunningGateway, running_gateway
from turnout.testing.stores import MemoryProbesStore
from turnout.wiring.sources import local_catalog

pytestmark = [pytest.mark.localmodel, pytest.mark.clients]

SCHEMA: Any = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}},
    "required": ["colour"],
    "additionalProperties": False,
}
QUESTION: Any = [{"role": "user", "content": "Which colour has the sky at noon?"}]


@pytest.fixture
async def gateway() -> AsyncIterator[RunningGateway]:
    """Serve the local model behind a gateway that has found out what it can do."""
    found = find_installed(models_folder(state_folder()))
    assert found is not None, "fetch the model first: turnout models pull"
    clock = SystemClock()
    async with LocalServer(found.path) as server, HttpUpstream(clock) as upstream:
        catalog = local_catalog(server.model_name, server.base_url, "unknown")
        settled = await settle(catalog, upstream, SPOKEN, MemoryProbesStore(), clock, lambda: None)
        async with running_gateway(settled.catalog, GatewaySetup()) as running:
            yield running


async def test_every_shape_is_answered_by_the_local_model(gateway: RunningGateway) -> None:
    """Whole and streamed; each leaves its receipt with real counts."""
    root = gateway.base_url.removesuffix("/v1")
    chat = openai.AsyncOpenAI(api_key="x", base_url=gateway.base_url, timeout=240)
    claude = anthropic.AsyncAnthropic(api_key="x", base_url=root, timeout=240)
    async with chat, claude:
        formed: Any = {"type": "json_schema", "json_schema": {"name": "sky", "schema": SCHEMA}}
        completion = await chat.chat.completions.create(
            model="auto", messages=QUESTION, max_tokens=40, response_format=formed
        )
        message = await claude.messages.create(model="auto", max_tokens=24, messages=QUESTION)
        response = await chat.responses.create(
            model="auto", input="Say hello.", max_output_tokens=24
        )
        async with claude.messages.stream(model="auto", max_tokens=24, messages=QUESTION) as stream:
            said = "".join([text async for text in stream.text_stream])
    assert json.loads(completion.choices[0].message.content or "") == {"colour": "blue"}
    assert message.content
    assert response.output_text
    assert said
    receipts = list(gateway.receipts.receipts.values())
    assert [receipt.shape for receipt in receipts] == ["chat", "messages", "responses", "messages"]
    assert all(r.usage.output_tokens and not r.usage.estimated for r in receipts)


async def test_a_client_that_goes_away_frees_the_local_model(gateway: RunningGateway) -> None:
    """The next request does not wait for what nobody reads any more."""
    async with openai.AsyncOpenAI(api_key="x", base_url=gateway.base_url, timeout=240) as chat:
        essay: Any = [{"role": "user", "content": "Write a very long essay on trains."}]
        asking = asyncio.create_task(
            chat.chat.completions.create(model="auto", messages=essay, max_tokens=2_000)
        )
        await asyncio.sleep(3)
        asking.cancel()
        async with asyncio.timeout(60):
            await chat.chat.completions.create(model="auto", messages=QUESTION, max_tokens=8)
    assert [r.status for r in gateway.receipts.receipts.values()] == ["cancelled", "ok"]
