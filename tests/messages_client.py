"""Anthropic's SDK, as released, against a gateway before either kind of upstream."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import anthropic

from turnout.core.json import JsonObject
from turnout.core.policies import Policy
from turnout.core.receipts import Receipt
from turnout.gateway.access import shared_key
from turnout.gateway.catalog import Deployment
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, catalog_at, running_gateway
from turnout.testing.messages import (
    MessagesTurn,
    ScriptedMessagesServer,
    text,
    thinking,
    tool_use,
)
from turnout.testing.model_server import Call, ScriptedModelServer, Turn

__all__ = [
    "HELLO",
    "KEY",
    "TOOLS",
    "Behind",
    "Kind",
    "behind",
    "guarded",
    "with_anthropic",
]

KEY = "tk-a-key-of-the-gateway"
DEPLOYMENT = deployment("p/m")
HELLO: list[Any] = [{"role": "user", "content": "Hello"}]
TOOLS: list[Any] = [
    {
        "name": "read_file",
        "description": "Read a file.",
        "input_schema": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
        },
    },
    {"name": "list_files", "input_schema": {"type": "object", "properties": {}}},
]

Kind = Literal["chat", "messages"]
"""What the upstream speaks."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Behind:
    """A gateway and the scripted server behind it."""

    gateway: RunningGateway
    chat: ScriptedModelServer | None
    messages: ScriptedMessagesServer | None

    @property
    def bodies(self) -> list[JsonObject]:
        """What the upstream was sent."""
        if self.messages is not None:
            return [request.body for request in self.messages.requests]
        return [] if self.chat is None else [request.body for request in self.chat.requests]

    @property
    def receipts(self) -> list[Receipt]:
        """What the gateway wrote down, in order."""
        return list(self.gateway.receipts.receipts.values())

    @property
    def faults(self) -> list[str]:
        """What was wrong with it."""
        if self.messages is not None:
            return self.messages.faults
        return [] if self.chat is None else self.chat.history_faults


@asynccontextmanager
async def behind(
    kind: Kind,
    turns: Sequence[Turn],
    setup: GatewaySetup | None = None,
    *,
    model: Deployment = DEPLOYMENT,
) -> AsyncIterator[Behind]:
    """Serve the same script by a server of either kind."""
    if kind == "chat":
        async with ScriptedModelServer(turns) as chat:
            catalog = catalog_at(chat.base_url, model)
            async with running_gateway(catalog, setup or guarded()) as gateway:
                yield Behind(gateway, chat, None)
        return
    script = [_as_messages(turn, at) for at, turn in enumerate(turns)]
    async with ScriptedMessagesServer(script, api_key="sk-theirs") as messages:
        catalog = catalog_at(messages.base_url, model, api_key="sk-theirs", shape="messages")
        async with running_gateway(catalog, setup or guarded()) as gateway:
            yield Behind(gateway, None, messages)


def guarded(policy: Policy | None = None) -> GatewaySetup:
    """Return a gateway that wants `KEY`."""
    return GatewaySetup(policy=policy or Policy(), authenticate=shared_key(KEY))


async def with_anthropic(
    gateway: RunningGateway,
    program: Callable[[anthropic.Anthropic], Result],
    *,
    prefix: str = "",
) -> Result:
    """Run a program of the blocking SDK beside the gateway, with retries as the SDK has them."""
    root = gateway.base_url.removesuffix("/v1")

    def run() -> Result:
        with anthropic.Anthropic(api_key=KEY, base_url=f"{root}{prefix}") as client:
            return program(client)

    return await asyncio.to_thread(run)


def _as_messages(turn: Turn, number: int) -> MessagesTurn:
    blocks: list[JsonObject] = []
    if turn.reasoning:
        blocks.append(thinking(turn.reasoning, f"sig{number}"))
    if turn.text:
        blocks.append(text(turn.text))
    for at, call in enumerate(turn.calls):
        blocks.append(tool_use(call.name, _arguments(call), call.id or f"toolu_{number}_{at}"))
    usage = turn.usage
    read, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    counts = {
        "input_tokens": usage.input_tokens - read - written,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "output_tokens": usage.output_tokens,
    }
    return MessagesTurn(tuple(blocks), counts, pause=turn.pause)


def _arguments(call: Call) -> JsonObject:
    if isinstance(call.arguments, str):
        raise TypeError("broken arguments cannot be said in this shape")
    return call.arguments
