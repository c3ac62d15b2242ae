"""A request's body as an upstream of this shape needs it."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text
from turnout.gateway.catalog import Deployment
from turnout.gateway.dialog.conversation import (
    Call,
    Conversation,
    Foreign,
    Media,
    Part,
    Reasoning,
    Refusal,
    Result,
    Text,
    ToolSpec,
    Turn,
)
from turnout.gateway.exchange import InferenceRequest
from turnout.gateway.repair import call_format, emulates_tool_choice
from turnout.gateway.wire.responses.items import kind
from turnout.gateway.wire.responses.seal import unsealed_item

__all__ = ["prepare_body", "write_conversation", "write_items"]

_DATA_AUDIO = "data:audio/"


def prepare_body(
    request: InferenceRequest, deployment: Deployment, said: Conversation | None
) -> JsonObject:
    """Return the body for a deployment; the same request always gives the same bytes."""
    body = _own(request, deployment) if said is None else _written(request, deployment, said)
    body["model"] = deployment.upstream_name
    if request.thinking is not None:
        body |= deployment.thinking_on if request.thinking else deployment.thinking_off
    if emulates_tool_choice(request, deployment):
        body |= _emulated(body, request)
    for name in deployment.leaves_out & body.keys():
        del body[name]
    return body


def write_conversation(said: Conversation, *, marks: bool = False) -> dict[str, JsonValue]:
    """Return a body that says the same; `marks`: with marks for a prompt cache."""
    turns = said.turns
    first = turns[0] if turns else None
    body: dict[str, JsonValue] = {}
    if first is not None and first.role == "system" and _is_plain(first.parts):
        body["instructions"] = "".join(p.text for p in first.parts if isinstance(p, Text))
        turns = turns[1:]
    body["input"] = list(write_items(turns, marks=marks))
    tools: list[JsonValue] = [_tool(tool) for tool in said.tools if _is_ours(tool)]
    if tools:
        body["tools"] = tools
        body["tool_choice"] = _choice(said)
        if said.parallel_calls is not None:
            body["parallel_tool_calls"] = said.parallel_calls
    body |= _options(said)
    return body


def write_items(turns: Sequence[Turn], *, marks: bool = False) -> Iterator[JsonObject]:
    """Yield the input items that say the turns."""
    for turn in turns:
        for is_content, parts in groupby(
            turn.parts, lambda p: isinstance(p, Text | Media | Refusal)
        ):
            if is_content:
                content = [p for p in parts if isinstance(p, Text | Media | Refusal)]
                yield _message(turn, content, marks)
            else:
                yield from filter(None, map(_item, parts))


def _own(request: InferenceRequest, deployment: Deployment) -> dict[str, JsonValue]:
    body = dict(request.body)
    given = body.get("input")
    if isinstance(given, list) and any(kind(item) == "reasoning" for item in given):
        opened = (
            unsealed_item(item, deployment) if kind(item) == "reasoning" else item for item in given
        )
        body["input"] = [item for item in opened if item is not None]
    # The upstream knows nothing of a response that is stored here.
    body.pop("previous_response_id", None)
    return body


def _written(
    request: InferenceRequest, deployment: Deployment, said: Conversation
) -> dict[str, JsonValue]:
    marks = request.caching and deployment.caching == "marks"
    body = write_conversation(said, marks=marks)
    body["store"] = False
    if deployment.reasoning_back:
        body["include"] = ["reasoning.encrypted_content"]
    if request.stream:
        body["stream"] = True
    return body


def _emulated(body: JsonObject, request: InferenceRequest) -> JsonObject:
    """Return the fields by which a schema stands in for a tool choice that is not enforced."""
    callable_ = [
        tool
        for tool in as_objects(body.get("tools"))
        if tool.get("type") == "function"
        and request.tool_choice in {"required", as_text(tool.get("name"))}
    ]
    if not callable_:
        return {}
    wanted = as_object(call_format(callable_)["json_schema"])
    text = as_object(body.get("text"))
    return {"tool_choice": "auto", "text": {**text, "format": {"type": "json_schema", **wanted}}}


def _is_plain(parts: Sequence[Part]) -> bool:
    return len(parts) == 1 and isinstance(parts[0], Text) and not parts[0].cached


def _message(turn: Turn, content: Sequence[Text | Media | Refusal], marks: bool) -> JsonObject:
    item: dict[str, JsonValue] = {"type": "message", "role": turn.role}
    only = content[0]
    if len(content) == 1 and isinstance(only, Text) and not (marks and only.cached):
        return {**item, "content": only.text}
    spoken = "output_text" if turn.role == "assistant" else "input_text"
    return {**item, "content": [_content(part, spoken, marks) for part in content]}


def _content(part: Text | Media | Refusal, spoken: str, marks: bool) -> JsonObject:
    if isinstance(part, Refusal):
        return {"type": "refusal", "refusal": part.text}
    written = {"type": spoken, "text": part.text} if isinstance(part, Text) else _media(part)
    marked: JsonObject = {"prompt_cache_breakpoint": {"mode": "explicit"}}
    return {**written, **marked} if marks and part.cached else written


def _media(part: Media) -> JsonObject:
    if part.kind == "image":
        return {"type": "input_image", "image_url": part.url, "detail": part.detail or "auto"}
    if part.kind == "audio" and part.url.startswith(_DATA_AUDIO):
        head, _, data = part.url.removeprefix(_DATA_AUDIO).partition(",")
        sound: JsonObject = {"data": data, "format": head.partition(";")[0]}
        return {"type": "input_audio", "input_audio": sound}
    place = "file_data" if part.url.startswith("data:") else "file_url"
    named: JsonObject = {"filename": part.name} if part.name else {}
    detailed: JsonObject = {"detail": part.detail} if part.detail else {}
    return {"type": "input_file", place: part.url, **named, **detailed}


def _item(part: Part) -> JsonObject | None:
    match part:
        case Call(type="custom"):
            called: JsonObject = {"type": "custom_tool_call", "call_id": part.id}
            return {**called, "name": part.name, "input": part.arguments}
        case Call():
            called = {"type": "function_call", "call_id": part.id}
            return {**called, "name": part.name, "arguments": part.arguments or "{}"}
        case Result():
            return _output(part)
        case Reasoning():
            return _thought(part)
        case Foreign(shape="responses"):
            return part.value
        case _:
            return None


def _thought(part: Reasoning) -> JsonObject:
    said: list[JsonValue] = [{"type": "summary_text", "text": part.text}] if part.text else []
    if part.encrypted:
        return {"type": "reasoning", "summary": said, "encrypted_content": part.encrypted}
    content: list[JsonValue] = [{"type": "reasoning_text", "text": part.text}]
    return {"type": "reasoning", "summary": [], "content": content}


def _output(result: Result) -> JsonObject:
    form = "custom_tool_call_output" if result.type == "custom" else "function_call_output"
    item: dict[str, JsonValue] = {"type": form, "call_id": result.call_id}
    if all(isinstance(part, Text) for part in result.parts) and len(result.parts) < 2:
        item["output"] = "".join(p.text for p in result.parts if isinstance(p, Text))
    else:
        item["output"] = [_content(part, "input_text", marks=False) for part in result.parts]
    if result.is_error:
        item["status"] = "incomplete"
    return item


def _is_ours(tool: ToolSpec) -> bool:
    return tool.foreign is None or tool.foreign.shape == "responses"


def _tool(tool: ToolSpec) -> JsonObject:
    if tool.foreign is not None:
        return tool.foreign.value
    declared: dict[str, JsonValue] = {"type": tool.type, "name": tool.name}
    if tool.description:
        declared["description"] = tool.description
    if tool.type == "function":
        declared["parameters"] = tool.parameters or {"type": "object", "properties": {}}
        # Unsaid would mean true here, and false wherever the request comes from.
        declared["strict"] = tool.strict or False
    return declared


def _choice(said: Conversation) -> JsonValue:
    if said.tool_choice in {"auto", "required", "none"}:
        return said.tool_choice
    kinds = {tool.name: tool.type for tool in said.tools}
    return {"type": kinds.get(said.tool_choice, "function"), "name": said.tool_choice}


def _options(said: Conversation) -> Mapping[str, JsonValue]:
    sampling = said.sampling
    options: dict[str, JsonValue] = {
        "max_output_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        # Not of the API itself: servers that know them heed them, the others say that they do not.
        "stop": list(sampling.stop) or None,
        "frequency_penalty": sampling.frequency_penalty or None,
        "presence_penalty": sampling.presence_penalty or None,
        "user": said.end_user,
    }
    if said.effort is not None:
        options["reasoning"] = {"effort": said.effort, "summary": "auto"}
    if said.schema is not None:
        wanted: dict[str, JsonValue] = {
            "type": "json_schema",
            "name": said.schema.name,
            "schema": said.schema.schema,
            "strict": said.schema.strict or False,
        }
        if said.schema.description:
            wanted["description"] = said.schema.description
        options["text"] = {"format": wanted}
    elif said.any_json:
        options["text"] = {"format": {"type": "json_object"}}
    return {name: value for name, value in options.items() if value is not None}
