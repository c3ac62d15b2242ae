"""One question in each of the three shapes, and what a client of each hears."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import aiohttp
import orjson

from turnout.core.json import JsonObject, as_object, as_objects, as_text
from turnout.testing.gateway import RunningGateway

__all__ = ["SHAPES", "Heard", "ask", "question"]

Spoken = Literal["chat", "messages", "responses"]
SHAPES: tuple[Spoken, ...] = ("chat", "messages", "responses")
_PATHS = {"chat": "/chat/completions", "messages": "/messages", "responses": "/responses"}
_SCHEMA: JsonObject = {"type": "object", "properties": {"path": {"type": "string"}}}


@dataclass(frozen=True)
class Heard:
    """What a client made of an answer."""

    status: int
    headers: dict[str, str]
    raw: bytes
    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    """Name and arguments of each."""
    error: str = ""
    """The message of an error, in the body or in band; empty: none."""
    finish: str = ""
    """In the shape's own words; empty where the answer did not end."""
    usage: tuple[int, int] | None = None
    """Input, cached tokens included, and output."""


def question(shape: Spoken, text: str, *, tools: bool, stream: bool) -> JsonObject:
    """Return a request for any model."""
    asked: JsonObject = {"role": "user", "content": text}
    declared: JsonObject = {"name": "read_file", "description": "Reads."}
    match shape:
        case "chat":
            body: JsonObject = {"messages": [asked], "stream_options": {"include_usage": True}}
            body = body if stream else {"messages": [asked]}
            tool: JsonObject = {"type": "function", "function": {**declared, "parameters": _SCHEMA}}
        case "messages":
            body = {"messages": [asked], "max_tokens": 100}
            tool = {**declared, "input_schema": _SCHEMA}
        case "responses":
            body = {"input": text}
            tool = {"type": "function", **declared, "parameters": _SCHEMA}
    more: JsonObject = {"tools": [tool]} if tools else {}
    return {"model": "auto", "stream": stream, **body, **more}


async def ask(
    http: aiohttp.ClientSession,
    gateway: RunningGateway,
    shape: Spoken,
    *,
    stream: bool,
    tools: bool = False,
    text: str = "Hello",
    more: JsonObject | None = None,
    headers: Mapping[str, str] | None = None,
) -> Heard:
    """Ask and return what was heard; `more`: further fields of the body."""
    body = {**question(shape, text, tools=tools, stream=stream), **(more or {})}
    url = gateway.base_url + _PATHS[shape]
    async with http.post(url, json=body, headers=headers) as answer:
        raw = await answer.read()
        told = {name.lower(): value for name, value in answer.headers.items()}
        status = answer.status
    if told["content-type"].startswith("text/event-stream"):
        heard = _STREAMED[shape](list(_events(raw)))
    else:
        heard = _WHOLE[shape](orjson.loads(raw))
    return Heard(status, told, raw, **heard)


def _events(raw: bytes) -> Iterator[tuple[str, Any]]:
    for block in raw.split(b"\n\n"):
        lines = [line.partition(b": ") for line in block.splitlines()]
        name = b"".join(value for field, _, value in lines if field == b"event").decode()
        data = b"\n".join(value for field, _, value in lines if field == b"data")
        if data:
            yield name, None if data == b"[DONE]" else orjson.loads(data)


def _chat_usage(counts: Any) -> tuple[int, int] | None:
    return (counts["prompt_tokens"], counts["completion_tokens"]) if counts else None


def _chat_whole(body: JsonObject) -> dict[str, Any]:
    if "error" in body:
        return {"error": as_text(as_object(body["error"]).get("message"))}
    choice = as_objects(body.get("choices"))[0]
    message = as_object(choice.get("message"))
    functions = [as_object(call["function"]) for call in as_objects(message.get("tool_calls"))]
    return {
        "text": as_text(message.get("content")),
        "calls": tuple((as_text(f["name"]), as_text(f["arguments"])) for f in functions),
        "finish": choice["finish_reason"],
        "usage": _chat_usage(body.get("usage")),
    }


def _chat_streamed(events: list[tuple[str, Any]]) -> dict[str, Any]:
    heard: dict[str, Any] = {"text": ""}
    calls: dict[int, list[str]] = {}
    for at, (_, chunk) in enumerate(events):
        if chunk is None:
            assert at == len(events) - 1
            break
        if "error" in chunk:
            heard["error"] = chunk["error"]["message"]
            continue
        if chunk.get("usage"):
            assert "usage" not in heard
            heard["usage"] = _chat_usage(chunk["usage"])
        for choice in chunk["choices"]:
            heard["text"] += choice["delta"].get("content") or ""
            heard["finish"] = choice["finish_reason"] or heard.get("finish", "")
            for call in choice["delta"].get("tool_calls", ()):
                if call.get("id"):
                    assert call["index"] == len(calls)
                    calls[call["index"]] = [call["function"]["name"], ""]
                calls[call["index"]][1] += call["function"].get("arguments", "")
    done = events[-1][1] is None
    assert done == bool(heard.get("finish"))
    return {**heard, "calls": tuple((name, text) for name, text in calls.values())}


def _messages_usage(usage: Any) -> tuple[int, int]:
    cached = usage.get("cache_read_input_tokens") or 0
    written = usage.get("cache_creation_input_tokens") or 0
    return usage["input_tokens"] + cached + written, usage["output_tokens"]


def _messages_whole(body: JsonObject) -> dict[str, Any]:
    if body.get("type") == "error":
        return {"error": as_text(as_object(body["error"]).get("message"))}
    blocks = as_objects(body.get("content"))
    return {
        "text": "".join(as_text(block.get("text")) for block in blocks),
        "calls": tuple(
            (as_text(b["name"]), orjson.dumps(b["input"]).decode())
            for b in blocks
            if b["type"] == "tool_use"
        ),
        "finish": body["stop_reason"],
        "usage": _messages_usage(body["usage"]),
    }


def _messages_streamed(events: list[tuple[str, Any]]) -> dict[str, Any]:
    heard: dict[str, Any] = {"text": ""}
    calls: list[list[str]] = []
    open_block: int | None = None
    started: Any = {}
    for name, event in events:
        assert name == event["type"]
        match name:
            case "message_start":
                started = event["message"]["usage"]
                assert started["input_tokens"] > 0
            case "content_block_start":
                assert open_block is None
                open_block = event["index"]
                block = event["content_block"]
                if block["type"] == "tool_use":
                    whole = orjson.dumps(block["input"]).decode() if block["input"] else ""
                    calls.append([block["name"], whole])
            case "content_block_delta":
                assert open_block == event["index"]
                heard["text"] += event["delta"].get("text", "")
                if event["delta"]["type"] == "input_json_delta":
                    calls[-1][1] += event["delta"]["partial_json"]
            case "content_block_stop":
                assert open_block == event["index"]
                open_block = None
            case "message_delta":
                heard["finish"] = event["delta"]["stop_reason"]
                heard["usage"] = _messages_usage({**started, **event["usage"]})
            case "error":
                heard["error"] = event["error"]["message"]
    assert (events[-1][0] == "message_stop") == ("finish" in heard)
    return {**heard, "calls": tuple((name, text or "{}") for name, text in calls)}


def _items(response: Any) -> dict[str, Any]:
    output = response["output"]
    texts = [p.get("text", "") for i in output if i["type"] == "message" for p in i["content"]]
    calls = [(i["name"], i["arguments"]) for i in output if i["type"] == "function_call"]
    usage = response["usage"]
    return {
        "text": "".join(texts),
        "calls": tuple(calls),
        "finish": response["status"],
        "usage": (usage["input_tokens"], usage["output_tokens"]),
    }


def _responses_whole(body: Any) -> dict[str, Any]:
    if body.get("error"):
        return {"error": body["error"]["message"]}
    return _items(body)


def _responses_streamed(events: list[tuple[str, Any]]) -> dict[str, Any]:
    heard: dict[str, Any] = {"text": ""}
    calls: dict[int, list[str]] = {}
    numbers = [event["sequence_number"] for _, event in events if event and "type" in event]
    assert numbers == sorted(set(numbers))
    for name, event in events:
        match name:
            case "response.output_text.delta":
                heard["text"] += event["delta"]
            case "response.output_item.added" if event["item"]["type"] == "function_call":
                calls[event["output_index"]] = [event["item"]["name"], ""]
            case "response.function_call_arguments.delta":
                calls[event["output_index"]][1] += event["delta"]
            case "response.completed" | "response.incomplete":
                told = _items(event["response"])
                assert told["text"] == heard["text"]
                assert told["calls"] == tuple((n, a) for n, a in calls.values())
                return told
            case "response.failed":
                heard["error"] = event["response"]["error"]["message"]
            case "error":
                heard["error"] = event["message"]
    return {**heard, "calls": tuple((name, text) for name, text in calls.values())}


_WHOLE: dict[Spoken, Any] = {
    "chat": _chat_whole,
    "messages": _messages_whole,
    "responses": _responses_whole,
}
_STREAMED: dict[Spoken, Any] = {
    "chat": _chat_streamed,
    "messages": _messages_streamed,
    "responses": _responses_streamed,
}
