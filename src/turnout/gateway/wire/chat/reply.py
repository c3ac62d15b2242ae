"""A whole chat completions answer of an upstream, understood."""

from collections.abc import Iterator, Mapping

from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject, as_object, as_objects, as_text
from turnout.gateway.catalog import Deployment
from turnout.gateway.dialog.conversation import Call, Foreign, Reasoning, Refusal, Text
from turnout.gateway.dialog.events import AnswerPart, Native, Reply
from turnout.gateway.exchange import InferenceRequest, UpstreamError
from turnout.gateway.repair import repair_reply
from turnout.gateway.repair.finish import broke
from turnout.gateway.wire.base import ReadReply
from turnout.gateway.wire.chat.reader import READ_FIELDS, REASONING_FIELDS, finish_of
from turnout.gateway.wire.chat.usage import read_usage

__all__ = ["read_reply"]


def read_reply(body: JsonObject, request: InferenceRequest, deployment: Deployment) -> ReadReply:
    """Return a whole answer, its calls mended; `UpstreamError` where it has no choice.

    The parts are those of the first choice, the native body holds them all.
    """
    repaired = repair_reply(body, request, deployment)
    choices = as_objects(repaired.body.get("choices"))
    if not choices:
        raise UpstreamError("answered without a choice", status=None)
    if any(broke(choice.get("finish_reason")) for choice in as_objects(body.get("choices"))):
        raise UpstreamError("gave the answer up before it was finished", status=None)
    message = choices[0].get("message")
    if not isinstance(message, Mapping):
        raise UpstreamError("answered without a message", status=None)
    parts = tuple(_parts(message, deployment))
    finish = finish_of(choices[0].get("finish_reason"))
    reply = Reply(parts, finish, read_usage(repaired.body.get("usage")))
    return ReadReply(reply, Native("chat", repaired.body), repaired.repairs)


def _parts(message: JsonObject, deployment: Deployment) -> Iterator[AnswerPart]:
    thoughts = (deployment.reasoning_field, *REASONING_FIELDS)
    for name in thoughts:
        if thought := as_text(message.get(name)):
            yield Reasoning(thought)
            break
    content = message.get("content")
    said = as_text(content) or "".join(as_text(p.get("text")) for p in as_objects(content))
    if said:
        yield Text(said)
    if refusal := as_text(message.get("refusal")):
        yield Refusal(refusal)
    for call in as_objects(message.get("tool_calls")):
        yield _call(call)
    if legacy := as_object(message.get("function_call")):
        yield Call(ToolCallId("call_0"), as_text(legacy.get("name")), _arguments(legacy))
    rest = {
        name: value
        for name, value in message.items()
        if value and name not in READ_FIELDS and name not in thoughts
    }
    if rest:
        yield Foreign("chat", rest)


def _call(call: JsonObject) -> Call:
    id_ = ToolCallId(as_text(call.get("id")))
    if call.get("type") == "custom":
        custom = as_object(call.get("custom"))
        return Call(id_, as_text(custom.get("name")), as_text(custom.get("input")), "custom")
    function = as_object(call.get("function"))
    return Call(id_, as_text(function.get("name")), _arguments(function))


def _arguments(function: JsonObject) -> str:
    return as_text(function.get("arguments"))
