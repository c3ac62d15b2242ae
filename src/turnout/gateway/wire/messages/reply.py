"""A messages answer that is not streamed: read from an upstream, written for a client."""

from collections.abc import Sequence

import orjson

from turnout.core.ids import RequestId, ToolCallId, new_tool_call_id
from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text
from turnout.gateway.dialog.conversation import Call, Foreign, Reasoning, Refusal, Text
from turnout.gateway.dialog.events import AnswerPart, Native, Reply
from turnout.gateway.exchange import Completion, InferenceRequest, UpstreamError
from turnout.gateway.providers.failures import in_band
from turnout.gateway.repair.text_calls import find_calls
from turnout.gateway.wire.base import ReadReply
from turnout.gateway.wire.messages.content.blocks import tool_input, write_thought
from turnout.gateway.wire.messages.content.parts import read_thought
from turnout.gateway.wire.messages.finishing import agreed_reason, finish_of, stop_reason
from turnout.gateway.wire.messages.usage import read_usage, write_usage
from turnout.gateway.wire.report import write_report

__all__ = ["read_message", "shows_thoughts", "write_message"]


def read_message(body: JsonObject, tools_in_text: Sequence[JsonObject] = ()) -> ReadReply:
    """Return an upstream's answer, its calls mended; `UpstreamError` where it is none.

    Where it has none, those of `tools_in_text` are read from the text.
    """
    if body.get("type") == "error" or body.get("error"):
        raise in_band(body, "messages")
    if not isinstance(body.get("content"), list):
        raise UpstreamError("answered without content", status=None)
    mends: dict[str, None] = {}
    blocks = _mended(as_objects(body.get("content")), mends)
    called = any(block.get("type") == "tool_use" for block in blocks)
    if tools_in_text and not called:
        blocks = _read_from_text(blocks, tools_in_text, mends)
        called = any(block.get("type") == "tool_use" for block in blocks)
    said = as_text(body.get("stop_reason")) or "end_turn"
    reason = agreed_reason(said, called=called)
    if reason != said:
        mends[f"stop reason made {reason}"] = None
    stop = body.get("stop_sequence")
    reply = Reply(
        tuple(_part(block) for block in blocks),
        finish_of(reason),
        read_usage(body.get("usage")),
        stop if isinstance(stop, str) else None,
    )
    value = {**body, "type": "message", "content": blocks, "stop_reason": reason}
    return ReadReply(reply, Native("messages", value if mends else body), tuple(mends))


def write_message(completion: Completion, request: InferenceRequest, id_: RequestId) -> bytes:
    """Return the body of an answer: the upstream's where it is of this shape, else a new one."""
    native, report = completion.native, completion.report
    body: dict[str, JsonValue]
    if native is not None and native.shape == "messages":
        body = {**native.value, "id": id_, "model": report.model}
        if read_usage(body.get("usage")) is None:
            body["usage"] = write_usage(completion.usage)
    else:
        reply = completion.reply
        body = {
            "id": id_,
            "type": "message",
            "role": "assistant",
            "model": report.model,
            "content": _blocks(reply.parts, thoughts=shows_thoughts(request)),
            "stop_reason": _reason(reply),
            "stop_sequence": reply.stop_sequence,
            "usage": write_usage(completion.usage),
        }
    body["routing"] = write_report(report)
    return orjson.dumps(body)


def shows_thoughts(request: InferenceRequest) -> bool:
    """Return whether a client expects thinking blocks: others take the first block for text."""
    display = as_object(request.body.get("thinking")).get("display")
    return request.thinking is True and display != "omitted"


def _reason(reply: Reply) -> str:
    refused = not reply.calls and any(isinstance(part, Refusal) for part in reply.parts)
    finish = "content_filter" if refused else reply.finish
    return stop_reason(finish, called=bool(reply.calls), stop_sequence=reply.stop_sequence)


def _blocks(parts: Sequence[AnswerPart], *, thoughts: bool) -> list[JsonValue]:
    blocks: list[JsonValue] = []
    for part in parts:
        match part:
            case Text() | Refusal():
                if part.text:
                    blocks.append({"type": "text", "text": part.text})
            case Reasoning():
                if thoughts and part.text:
                    blocks.append(write_thought(part))
            case Call():
                blocks.append(
                    {
                        "type": "tool_use",
                        "id": part.id,
                        "name": part.name,
                        "input": tool_input(part),
                    }
                )
            case Foreign():
                if part.shape == "messages":
                    blocks.append(part.value)
    return blocks


def _mended(blocks: Sequence[JsonObject], mends: dict[str, None]) -> list[JsonObject]:
    mended: list[JsonObject] = []
    seen: set[str] = set()
    for block in blocks:
        if block.get("type") != "tool_use":
            mended.append(block)
            continue
        if not as_text(block.get("name")):
            mends["call without a name left out"] = None
            continue
        given = as_text(block.get("id"))
        if not given or given in seen:
            mends["duplicate call id replaced" if given else "call id added"] = None
            given = new_tool_call_id()
        seen.add(given)
        arguments = block.get("input")
        if isinstance(arguments, dict):
            mended.append(block if given == block.get("id") else {**block, "id": given})
            continue
        mends["arguments made an object"] = None
        call = Call(ToolCallId(given), as_text(block.get("name")), as_text(arguments))
        mended.append({**block, "id": given, "input": tool_input(call)})
    return mended


def _read_from_text(
    blocks: Sequence[JsonObject], tools: Sequence[JsonObject], mends: dict[str, None]
) -> list[JsonObject]:
    text = "".join(as_text(b.get("text")) for b in blocks if b.get("type") == "text")
    declared = {as_text(tool.get("name")): as_object(tool.get("input_schema")) for tool in tools}
    found = find_calls(text, declared)
    if not found.calls:
        return list(blocks)
    mends["calls read from the text"] = None
    rest: list[JsonObject] = [{"type": "text", "text": found.rest}] if found.rest else []
    made: list[JsonObject] = [
        {
            "type": "tool_use",
            "id": (call_id := new_tool_call_id()),
            "name": call.name,
            "input": tool_input(Call(call_id, call.name, call.arguments)),
        }
        for call in found.calls
    ]
    return [*(block for block in blocks if block.get("type") != "text"), *rest, *made]


def _part(block: JsonObject) -> AnswerPart:
    match block.get("type"):
        case "text":
            return Text(as_text(block.get("text")))
        case "thinking" | "redacted_thinking":
            return read_thought(block)
        case "tool_use":
            arguments = orjson.dumps(as_object(block.get("input"))).decode()
            return Call(ToolCallId(as_text(block.get("id"))), as_text(block.get("name")), arguments)
        case _:
            return Foreign("messages", block)
