"""A chat completions answer that is not streamed."""

import time
from dataclasses import replace

import orjson

from turnout.core.ids import RequestId
from turnout.core.json import JsonObject, JsonValue, as_object
from turnout.gateway.dialog.conversation import Call, Foreign, Reasoning, Refusal
from turnout.gateway.dialog.events import Reply
from turnout.gateway.exchange import Completion, InferenceRequest
from turnout.gateway.wire.chat.free_text import free_text_parts, free_text_tools
from turnout.gateway.wire.chat.usage import read_usage, write_usage
from turnout.gateway.wire.report import write_report

__all__ = ["write_completion"]


def write_completion(
    completion: Completion, request: InferenceRequest, request_id: RequestId
) -> bytes:
    """Return the body: the upstream's, under our request id and with the `routing` report.

    Fields that we do not know are kept; `model` names the catalog's model.
    """
    report, native = completion.report, completion.native
    body: dict[str, JsonValue]
    if native is not None and native.shape == "chat":
        body = dict(native.value)
    else:
        body = {"id": "", "object": "", "created": int(time.time()), "model": "", "choices": []}
        parts = free_text_parts(completion.reply.parts, free_text_tools(request.body))
        body["choices"] = [_choice(replace(completion.reply, parts=parts))]
    body["id"] = request_id
    body["object"] = "chat.completion"
    body["model"] = report.model
    body["routing"] = write_report(report)
    if read_usage(body.get("usage")) is None:
        body["usage"] = write_usage(completion.usage)
    return orjson.dumps(body)


def _call(call: Call) -> dict[str, JsonValue]:
    """Return a call as messages hold it."""
    if call.type == "custom":
        custom: JsonObject = {"name": call.name, "input": call.arguments}
        return {"id": call.id, "type": "custom", "custom": custom}
    function: JsonObject = {"name": call.name, "arguments": call.arguments or "{}"}
    return {"id": call.id, "type": "function", "function": function}


def _choice(reply: Reply) -> JsonObject:
    refusal = "".join(part.text for part in reply.parts if isinstance(part, Refusal))
    thought = "".join(part.text for part in reply.parts if isinstance(part, Reasoning))
    calls: list[JsonValue] = [_call(call) for call in reply.calls]
    message: dict[str, JsonValue] = {
        "role": "assistant",
        "content": reply.text or None,
        "refusal": refusal or None,
    }
    if thought:
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = calls
    for part in reply.parts:
        if isinstance(part, Foreign) and part.shape == "chat":
            message |= as_object(part.value)
    return {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish}
