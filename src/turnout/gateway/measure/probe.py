"""Asking a deployment, in three short calls, what it does with tools."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

import orjson

from turnout.core.clock import Clock
from turnout.core.json import JsonObject, JsonValue, as_object, as_text
from turnout.gateway.catalog import ToolSupport
from turnout.gateway.dialog.conversation import Conversation, Schema, Text, ToolSpec, Turn
from turnout.gateway.dialog.events import Reply
from turnout.gateway.evidence import ProbeResult
from turnout.gateway.exchange import UpstreamError, UpstreamTimeoutError
from turnout.gateway.measure.asking import READ_FROM_TEXT, Asking, Heard
from turnout.gateway.repair.text_calls import find_calls

__all__ = ["PROBE_NAME", "probe"]

PROBE_NAME = "turnout_probe"
"""Name of the probe's tool, and of its schema."""

_LONGEST = 240.0
_OTHER = f"{PROBE_NAME}_other"
_TEXT = 'He said "yes",\nthen left C:\\temp.'
_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"side": {"type": "string", "enum": ["left", "right"]}},
    "required": ["side"],
    "additionalProperties": False,
}
_TOOLS = (
    ToolSpec(PROBE_NAME, "Takes down a text.", _PARAMETERS),
    ToolSpec(_OTHER, "Throws a text away.", _PARAMETERS),
)


@dataclass(frozen=True, slots=True)
class _ToolSight:
    """How a deployment took a request to call a tool."""

    tools: ToolSupport
    calls_in_text: bool
    detail: str


async def probe(asking: Asking, clock: Clock) -> ProbeResult:
    """Return what the deployment does; `UpstreamError` where it could not be asked.

    Asked are: a call with quotes, a line end and a backslash in its arguments; a named tool
    choice that the prompt speaks against; a JSON schema that the prompt speaks against.
    """
    deployment = asking.deployment
    # Nothing is emulated or read from the text while that is being found out.
    bare = replace(deployment, calls_in_text=False, enforces_tool_choice=True, json_schema=True)
    probing = _Probing(asking.as_if(bare))
    try:
        async with asyncio.timeout(_LONGEST):
            sight = await probing.tool_call()
            # A server that leaves calls in the text cannot hold a model to one.
            native = sight.tools == "confirmed" and not sight.calls_in_text
            enforces = native and await probing.enforces_tool_choice()
            schema = await probing.enforces_schema()
    except TimeoutError as error:
        message = f"was not done with three short calls after {_LONGEST:g} s"
        raise UpstreamTimeoutError(message, status=None) from error
    return ProbeResult(
        deployment=deployment.id,
        at=clock.now(),
        tools=sight.tools,
        calls_in_text=sight.calls_in_text,
        enforces_tool_choice=enforces,
        json_schema=schema,
        detail=sight.detail,
    )


class _Probing:
    """The calls of one probe."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def tool_call(self) -> _ToolSight:
        prompt = f"Call the tool {PROBE_NAME} once. Its text is exactly:\n{_TEXT}"
        said = Conversation(_asked(prompt), _TOOLS, tool_choice="required")
        try:
            heard = await self._asking.ask(said)
        except UpstreamError as error:
            if not _rejects(error):
                raise
            # Some servers know tools and refuse to have them required.
            try:
                heard = await self._asking.ask(replace(said, tool_choice="auto"))
            except UpstreamError as again:
                if _rejects(again) and "tool" in str(again).lower():
                    return _ToolSight("absent", False, f"{again}.")
                raise
        return _judge(heard)

    async def enforces_tool_choice(self) -> bool:
        said = Conversation(_asked("Greet me in one word."), _TOOLS, tool_choice=PROBE_NAME)
        reply = await self._reply(said)
        if reply is None:
            return False
        return bool(reply.calls) and all(call.name == PROBE_NAME for call in reply.calls)

    async def enforces_schema(self) -> bool:
        wanted = Schema(PROBE_NAME, _SCHEMA, strict=True)
        reply = await self._reply(Conversation(_asked("Greet me in one word."), schema=wanted))
        return reply is not None and _object(reply.text).get("side") in ("left", "right")

    async def _reply(self, said: Conversation) -> Reply | None:
        """Return the answer; None where the form of the request was refused."""
        try:
            return (await self._asking.ask(said)).reply
        except UpstreamError as error:
            if _rejects(error):
                return None
            raise


def _asked(prompt: str) -> tuple[Turn, ...]:
    return (Turn("user", (Text(prompt),)),)


def _judge(heard: Heard) -> _ToolSight:
    calls, in_text = heard.reply.calls, READ_FROM_TEXT in heard.repairs
    if not in_text and any(_is_usable(call.arguments) for call in calls):
        return _ToolSight("confirmed", False, "It calls tools.")
    if calls and not in_text:
        return _ToolSight("absent", False, "Its tool calls have arguments that are no use.")
    declared: Mapping[str, JsonObject] = {PROBE_NAME: _PARAMETERS, _OTHER: _PARAMETERS}
    found = find_calls(heard.reply.text, declared)
    written = [*(c.arguments for c in calls), *(c.arguments for c in found.calls)]
    if any(_is_usable(arguments) for arguments in written):
        return _ToolSight("confirmed", True, "Its tool calls come in the text and can be read.")
    return _ToolSight("absent", False, "It was told to call a tool and called none.")


def _is_usable(arguments: str) -> bool:
    text = as_text(_object(arguments).get("text"))
    return '"yes"' in text


def _object(text: str) -> JsonObject:
    try:
        parsed: JsonValue = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return as_object(parsed)


def _rejects(error: UpstreamError) -> bool:
    """Return whether the request's form was refused, rather than the caller or the moment."""
    return error.status in {400, 404, 405, 422, 500, 501}
