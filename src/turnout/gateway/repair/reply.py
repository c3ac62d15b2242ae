"""A model's answer with its tool calls mended, each mend named."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from turnout.core.ids import new_tool_call_id
from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text
from turnout.gateway.catalog import Deployment
from turnout.gateway.dialog.events import Reply
from turnout.gateway.exchange import InferenceRequest
from turnout.gateway.repair.finish import agreed
from turnout.gateway.repair.request import emulates_tool_choice
from turnout.gateway.repair.text_calls import find_calls, holds_call_marks

__all__ = ["CallCount", "Repaired", "count_calls", "needs_whole_reply", "repair_reply"]


@dataclass(frozen=True, slots=True)
class Repaired:
    """An answer in the chat shape, and what was mended in it."""

    body: JsonObject
    repairs: tuple[str, ...]
    """One phrase for each kind of mend; empty where the answer was right."""


@dataclass(frozen=True, slots=True)
class CallCount:
    """How well a deployment called tools in one answer."""

    calls: int
    malformed: int
    """Of these: arguments that are no JSON object, or a call left in the text."""


def needs_whole_reply(request: InferenceRequest, deployment: Deployment) -> bool:
    """Return whether calls may have to be read from the text, which a stream cannot take back."""
    may_call = bool(request.tools) and request.tool_choice != "none"
    return may_call and (deployment.calls_in_text or emulates_tool_choice(request, deployment))


def repair_reply(body: JsonObject, request: InferenceRequest, deployment: Deployment) -> Repaired:
    """Return `body` with calls as calls: read from text, with ids, arguments and finish reason.

    Only declared tools are read from text. What the model meant by broken arguments is never
    guessed: they stay as they are.
    """
    repairs: dict[str, None] = {}
    choices: list[JsonValue] = []
    for choice in as_objects(body.get("choices")):
        mended = _Mended(choice, request, deployment)
        choices.append(mended.choice())
        repairs |= dict.fromkeys(mended.repairs)
    return Repaired({**body, "choices": choices} if repairs else body, tuple(repairs))


def count_calls(reply: Reply, request: InferenceRequest) -> CallCount:
    """Judge the calls of an answer, after its repair.

    An answer that should have no calls in its text and shows the marks of one counts as one
    malformed call.
    """
    calls = reply.calls
    malformed = sum(call.type == "function" and not _is_object(call.arguments) for call in calls)
    stray = not calls and bool(request.tools) and holds_call_marks(reply.text)
    return CallCount(len(calls) + stray, malformed + stray)


class _Mended:
    """One choice while it is being mended."""

    def __init__(
        self, choice: JsonObject, request: InferenceRequest, deployment: Deployment
    ) -> None:
        self.repairs: list[str] = []
        self._choice = choice
        self._request = request
        self._deployment = deployment

    def choice(self) -> JsonObject:
        """Return the choice as clients expect it."""
        message = as_object(self._choice.get("message"))
        if message.get("function_call"):
            if self._request.body.get("functions"):
                return self._legacy(message)
            message = self._modern(message)
        calls = list(self._native(as_objects(message.get("tool_calls"))))
        changed: dict[str, JsonValue] = dict(message)
        if not calls and needs_whole_reply(self._request, self._deployment):
            found = find_calls(_text(message), self._declared())
            calls = [_call(call.name, call.arguments) for call in found.calls]
            if calls:
                self.repairs.append("calls read from the text")
                changed["content"] = found.rest or None
        if calls:
            changed["tool_calls"] = calls
        else:
            changed.pop("tool_calls", None)
        finish = self._finish(called=bool(calls))
        return {**self._choice, "message": changed, "finish_reason": finish}

    def _legacy(self, message: JsonObject) -> JsonObject:
        """Return the choice with the one call that the form before `tool_calls` has."""
        call = self._function(as_object(message.get("function_call")))
        finish = self._finish(called=True, legacy=True)
        mended: JsonObject = {**message, "function_call": call}
        return {**self._choice, "message": mended, "finish_reason": finish}

    def _modern(self, message: JsonObject) -> JsonObject:
        """Return a message for a client that declared no tools in the old form."""
        self.repairs.append("call in the old form rewritten")
        rest = {name: value for name, value in message.items() if name != "function_call"}
        call: JsonObject = {"id": new_tool_call_id(), "function": message["function_call"]}
        return {**rest, "tool_calls": [*as_objects(message.get("tool_calls")), call]}

    def _declared(self) -> Mapping[str, JsonObject]:
        tools = as_objects(self._request.body.get("tools"))
        functions = [as_object(tool.get("function")) for tool in tools]
        return {as_text(f.get("name")): as_object(f.get("parameters")) for f in functions}

    def _native(self, calls: Sequence[JsonObject]) -> Iterator[JsonValue]:
        seen: set[str] = set()
        for call in calls:
            function = as_object(call.get("function"))
            if not as_text(function.get("name")) and call.get("type") in (None, "function"):
                self.repairs.append("call without a name left out")
                continue
            given = as_text(call.get("id"))
            if not given or given in seen:
                self.repairs.append("duplicate call id replaced" if given else "call id added")
                given = new_tool_call_id()
            seen.add(given)
            mended = {**call, "id": given, "type": call.get("type") or "function"}
            yield {**mended, "function": self._function(function)} if function else mended

    def _function(self, function: JsonObject) -> JsonObject:
        arguments = function.get("arguments")
        if isinstance(arguments, str) and arguments.strip():
            return function
        if isinstance(arguments, Mapping):
            self.repairs.append("arguments object written as text")
            return {**function, "arguments": orjson.dumps(arguments).decode()}
        self.repairs.append("empty arguments replaced by {}")
        return {**function, "arguments": "{}"}

    def _finish(self, *, called: bool, legacy: bool = False) -> str:
        reason, mend = agreed(self._choice.get("finish_reason"), called=called, legacy=legacy)
        if mend:
            self.repairs.append(mend)
        return reason


def _call(name: str, arguments: str) -> JsonObject:
    function: JsonObject = {"name": name, "arguments": arguments}
    return {"id": new_tool_call_id(), "type": "function", "function": function}


def _text(message: JsonObject) -> str:
    content = message.get("content")
    return as_text(content) or "".join(as_text(part.get("text")) for part in as_objects(content))


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(orjson.loads(arguments), dict)
    except orjson.JSONDecodeError:
        return False
