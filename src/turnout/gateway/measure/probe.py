"""Asking a deployment, in three short calls, what it does with tools."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from turnout.core.clock import Clock
from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text
from turnout.gateway.catalog import Deployment, Provider, ToolSupport
from turnout.gateway.evidence import ProbeResult
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.ports import Upstream
from turnout.gateway.repair.text_calls import find_calls

__all__ = ["PROBE_NAME", "probe"]

PROBE_NAME = "turnout_probe"
"""Name of the probe's tool, and of its schema."""

_LONGEST = 240.0
_FEW_TOKENS, _MANY_TOKENS = 256, 4_096
"""For an answer; the second where a model thought until the first ran out."""
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


@dataclass(frozen=True, slots=True)
class _ToolSight:
    """How a deployment took a request to call a tool."""

    tools: ToolSupport
    calls_in_text: bool
    detail: str


async def probe(
    upstream: Upstream, provider: Provider, deployment: Deployment, clock: Clock
) -> ProbeResult:
    """Return what the deployment does; `UpstreamError` where it could not be asked.

    Asked are: a call with quotes, a line end and a backslash in its arguments; a named tool
    choice that the prompt speaks against; a JSON schema that the prompt speaks against.
    """
    asking = _Asking(upstream, provider, deployment)
    try:
        async with asyncio.timeout(_LONGEST):
            sight = await asking.tool_call()
            # A server that leaves calls in the text cannot hold a model to one.
            native = sight.tools == "confirmed" and not sight.calls_in_text
            enforces = native and await asking.enforces_tool_choice()
            schema = await asking.enforces_schema()
    except TimeoutError as error:
        message = f"was not done with three short calls after {_LONGEST:g} s"
        raise UpstreamError(message, status=None, timed_out=True) from error
    return ProbeResult(
        deployment=deployment.id,
        at=clock.now(),
        tools=sight.tools,
        calls_in_text=sight.calls_in_text,
        enforces_tool_choice=enforces,
        json_schema=schema,
        detail=sight.detail,
    )


class _Asking:
    """The calls of one probe."""

    def __init__(self, upstream: Upstream, provider: Provider, deployment: Deployment) -> None:
        self._upstream = upstream
        self._provider = provider
        self._deployment = deployment

    async def tool_call(self) -> _ToolSight:
        prompt = f"Call the tool {PROBE_NAME} once. Its text is exactly:\n{_TEXT}"
        try:
            message = await self._ask(prompt, tools=_tools(), tool_choice="required")
        except UpstreamError as error:
            if not _rejects(error):
                raise
            # Some servers know tools and refuse to have them required.
            try:
                message = await self._ask(prompt, tools=_tools())
            except UpstreamError as again:
                if _rejects(again) and "tool" in str(again).lower():
                    return _ToolSight("absent", False, f"{again}.")
                raise
        return _judge(message)

    async def enforces_tool_choice(self) -> bool:
        named: JsonObject = {"type": "function", "function": {"name": PROBE_NAME}}
        try:
            message = await self._ask("Greet me in one word.", tools=_tools(), tool_choice=named)
        except UpstreamError as error:
            if _rejects(error):
                return False
            raise
        calls = as_objects(message.get("tool_calls"))
        return bool(calls) and all(_name(call) == PROBE_NAME for call in calls)

    async def enforces_schema(self) -> bool:
        wanted: JsonObject = {"name": PROBE_NAME, "strict": True, "schema": _SCHEMA}
        form: JsonObject = {"type": "json_schema", "json_schema": wanted}
        try:
            message = await self._ask("Greet me in one word.", response_format=form)
        except UpstreamError as error:
            if _rejects(error):
                return False
            raise
        return _object(as_text(message.get("content"))).get("side") in ("left", "right")

    async def _ask(self, prompt: str, **more: JsonValue) -> JsonObject:
        body: JsonObject = {
            "model": self._deployment.upstream_name,
            "messages": [{"role": "user", "content": prompt}],
            **more,
        }
        message: JsonObject = {}
        for limit in (_FEW_TOKENS, _MANY_TOKENS):
            asked = {**body, "max_tokens": limit}
            reply = await self._upstream.complete(self._provider, self._deployment, asked)
            choice = as_objects(reply.body.get("choices"))[0]
            message = as_object(choice.get("message"))
            said = message.get("tool_calls") or message.get("content")
            if said or choice.get("finish_reason") != "length":
                break
        return message


def _tools() -> JsonValue:
    return [
        {
            "type": "function",
            "function": {"name": name, "description": does, "parameters": _PARAMETERS},
        }
        for name, does in ((PROBE_NAME, "Takes down a text."), (_OTHER, "Throws a text away."))
    ]


def _judge(message: JsonObject) -> _ToolSight:
    calls = as_objects(message.get("tool_calls"))
    if any(_is_usable(as_text(as_object(c.get("function")).get("arguments"))) for c in calls):
        return _ToolSight("confirmed", False, "It calls tools.")
    if calls:
        return _ToolSight("absent", False, "Its tool calls have arguments that are no use.")
    declared: Mapping[str, JsonObject] = {PROBE_NAME: _PARAMETERS, _OTHER: _PARAMETERS}
    found = find_calls(as_text(message.get("content")), declared, expected=True)
    if any(_is_usable(call.arguments) for call in found.calls):
        return _ToolSight("confirmed", True, "Its tool calls come in the text and can be read.")
    return _ToolSight("absent", False, "It was told to call a tool and called none.")


def _is_usable(arguments: str) -> bool:
    text = as_text(_object(arguments).get("text"))
    return '"yes"' in text


def _name(call: JsonObject) -> str:
    return as_text(as_object(call.get("function")).get("name"))


def _object(text: str) -> JsonObject:
    try:
        parsed: JsonValue = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return as_object(parsed)


def _rejects(error: UpstreamError) -> bool:
    """Return whether the request's form was refused, rather than the caller or the moment."""
    return error.status in {400, 404, 405, 422, 500, 501}
