"""An answer as output items, and output items as an answer."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import orjson

from turnout.core.ids import ModelId, RequestId, new_tool_call_id
from turnout.core.inference import FinishReason
from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text
from turnout.core.usage import Usage
from turnout.gateway.dialog.conversation import (
    Call,
    Foreign,
    Reasoning,
    Refusal,
    Text,
)
from turnout.gateway.dialog.custom import unwrap
from turnout.gateway.dialog.events import AnswerPart
from turnout.gateway.wire.responses.client_tools import CLIENT_TOOLS
from turnout.gateway.wire.responses.history import read_call
from turnout.gateway.wire.responses.items import CALLS, kind
from turnout.gateway.wire.responses.seal import Seal, read_thought
from turnout.gateway.wire.responses.tools import Declared

__all__ = [
    "call_item",
    "content_part",
    "finished_item",
    "id_prefix",
    "item_id",
    "mended_item",
    "parts_of",
    "read_finish",
    "read_usage",
    "reasoning_item",
    "write_output",
    "write_usage",
]

_MOST_TOKENS = 10**9
_PREFIXES: Mapping[str, str] = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "tool_search_call": "tsc",
    "local_shell_call": "lsh",
    "shell_call": "sh",
    "apply_patch_call": "apc",
}


def item_id(request_id: RequestId, at: int, form: str) -> str:
    """Return the id of an answer's item: the same however often the answer is written."""
    return f"{id_prefix(form)}_{request_id.removeprefix('req-')}{at:04x}"


def id_prefix(form: str) -> str:
    """Return how the ids of items of a type begin."""
    return _PREFIXES.get(form, "item")


def write_output(
    parts: Sequence[AnswerPart],
    tools: Callable[[], Mapping[str, Declared]],
    request_id: RequestId,
    model: ModelId,
    *,
    cut: bool = False,
) -> list[JsonValue]:
    """Return an answer's parts as output items; `cut`: the last one is incomplete.

    `tools` are those of the request; they are asked for where the answer has calls.
    """
    output: list[JsonValue] = []
    content: list[JsonValue] = []
    for part in parts:
        if part == Text(""):
            continue
        if isinstance(part, Text | Refusal):
            if not content:
                output.append({"type": "message", "content": content})
            content.append(content_part(part))
            continue
        content = []
        item = _item(part, tools, model)
        if item is not None:
            output.append(item)
    last = len(output) - 1
    return [
        finished_item(as_object(item), request_id, at, cut=cut and at == last)
        for at, item in enumerate(output)
    ]


def content_part(part: Text | Refusal) -> JsonObject:
    """Return one part of a message."""
    if isinstance(part, Refusal):
        return {"type": "refusal", "refusal": part.text}
    return {"type": "output_text", "text": part.text, "annotations": [], "logprobs": []}


def call_item(call: Call, tools: Mapping[str, Declared]) -> dict[str, JsonValue]:
    """Return a call as the client declared the tool, whichever form the model gave it."""
    declared = tools.get(call.name)
    base: dict[str, JsonValue] = {"call_id": call.id}
    if declared is not None and declared.form == "client":
        tool = CLIENT_TOOLS[declared.own_name]
        return {"type": tool.call, **base, **tool.write_call(call.arguments)}
    base["name"] = call.name if declared is None else declared.own_name
    if declared is not None and declared.namespace:
        base["namespace"] = declared.namespace
    if call.type == "custom" or (declared is not None and declared.form == "custom"):
        said = call.arguments if call.type == "custom" else unwrap(call.arguments)
        return {"type": "custom_tool_call", **base, "input": said}
    return {"type": "function_call", **base, "arguments": call.arguments or "{}"}


def reasoning_item(part: Reasoning, model: ModelId) -> dict[str, JsonValue]:
    """Return a thought, sealed for its maker."""
    summary: list[JsonValue] = [{"type": "summary_text", "text": part.text}] if part.text else []
    seal = Seal(model, signature=part.signature, encrypted=part.encrypted)
    return {"type": "reasoning", "summary": summary, "encrypted_content": seal.write()}


def mended_item(item: JsonObject) -> JsonObject:
    """Return an upstream's item with the ids and arguments that clients count on."""
    form = kind(item)
    mended: dict[str, JsonValue] = {**item, "type": form}
    if form in CALLS:
        field = CALLS[form]
        said = item.get(field)
        if said is not None and not isinstance(said, str):
            mended[field] = orjson.dumps(said).decode()
        elif not said:
            mended[field] = "{}" if form == "function_call" else ""
    if form in CALLS and not as_text(item.get("call_id")):
        mended["call_id"] = new_tool_call_id()
    return item if mended == item else mended


def parts_of(item: JsonObject) -> Iterator[AnswerPart]:
    """Yield what an output item says in any shape."""
    form = kind(item)
    if form == "message":
        for part in as_objects(item.get("content")):
            if part.get("type") == "refusal":
                yield Refusal(as_text(part.get("refusal")))
            elif said := as_text(part.get("text")):
                yield Text(said)
        return
    if form == "reasoning":
        yield read_thought(item)
        return
    call = read_call(item)
    yield call if call is not None else Foreign("responses", item)


def read_finish(response: JsonObject, *, called: bool) -> FinishReason:
    """Return why the model stopped."""
    if response.get("status") == "incomplete":
        why = as_object(response.get("incomplete_details")).get("reason")
        return "content_filter" if why == "content_filter" else "length"
    return "tool_calls" if called else "stop"


def read_usage(counts: JsonValue) -> Usage | None:
    """Return the counts of a `usage` object; None where it holds none."""
    if not isinstance(counts, Mapping):
        return None
    sent, generated = _count(counts, "input_tokens"), _count(counts, "output_tokens")
    if sent is None and generated is None:
        return None
    details = as_object(counts.get("input_tokens_details"))
    return Usage(
        input_tokens=sent or 0,
        output_tokens=generated or 0,
        cache_read_input_tokens=min(_count(details, "cached_tokens") or 0, sent or 0),
        cache_creation_input_tokens=_count(details, "cache_write_tokens") or 0,
    )


def write_usage(usage: Usage) -> dict[str, JsonValue]:
    """Return `usage` as a `usage` object; how much of the output was thought is not known."""
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read_input_tokens,
            "cache_write_tokens": usage.cache_creation_input_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _item(
    part: Reasoning | Call | Foreign, tools: Callable[[], Mapping[str, Declared]], model: ModelId
) -> JsonObject | None:
    match part:
        case Call():
            return call_item(part, tools())
        case Reasoning():
            return reasoning_item(part, model)
        case Foreign(shape="responses"):
            return part.value
        case _:
            return None


def finished_item(
    item: JsonObject, request_id: RequestId, at: int, *, cut: bool = False
) -> dict[str, JsonValue]:
    """Return an item with its id, role and status; `at`: its place in the output."""
    form = kind(item)
    done: dict[str, JsonValue] = {"id": item_id(request_id, at, form), **item}
    if "status" not in done:
        done["status"] = "incomplete" if cut else "completed"
    if form == "message":
        done["role"] = "assistant"
    return done


def _count(owner: JsonObject, name: str) -> int | None:
    value = owner.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= _MOST_TOKENS else None
