"""A chat completions request as a conversation of no shape."""

from collections.abc import Iterator, Mapping, Sequence

from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text
from turnout.gateway.dialog.conversation import (
    Call,
    Conversation,
    Foreign,
    Media,
    Part,
    Reasoning,
    Refusal,
    Result,
    Sampling,
    Schema,
    Text,
    ToolSpec,
    Turn,
)
from turnout.gateway.exchange import InferenceRequest
from turnout.gateway.wire.chat.reader import REASONING_FIELDS
from turnout.gateway.wire.fields import invalid

__all__ = ["read_conversation"]


def read_conversation(request: InferenceRequest) -> Conversation:
    """Return all that a request says; `GatewayError` (400) names what no other shape can say."""
    body = request.body
    _refuse_own(body)
    form = as_object(body.get("response_format"))
    return Conversation(
        turns=tuple(_Turns(as_objects(body.get("messages"))).read()),
        tools=tuple(_allowed(body, _tools(body))),
        tool_choice=request.tool_choice,
        parallel_calls=_flag(body, "parallel_tool_calls"),
        sampling=_sampling(request),
        schema=_schema(as_object(form.get("json_schema"))) if request.wants_json_schema else None,
        any_json=form.get("type") == "json_object",
        effort=as_text(body.get("reasoning_effort")) or None,
        end_user=as_text(body.get("safety_identifier") or body.get("user")) or None,
    )


def _refuse_own(body: JsonObject) -> None:
    """Refuse what would be lost without a word."""
    n = body.get("n")
    if isinstance(n, int) and n > 1:
        raise invalid("No deployment that may serve this gives several choices.", "n")
    if body.get("logprobs"):
        raise invalid("No deployment that may serve this gives log probabilities.", "logprobs")
    modalities = body.get("modalities")
    if isinstance(modalities, list) and any(kind != "text" for kind in modalities):
        raise invalid("No deployment that may serve this answers in sound.", "modalities")


class _Turns:
    """The messages of one body as turns."""

    def __init__(self, messages: Sequence[JsonObject]) -> None:
        self._messages = messages
        self._legacy: ToolCallId | None = None
        """The call that a message of role `function` answers: it names none itself."""

    def read(self) -> Iterator[Turn]:
        """Yield the turns; results that follow one another are one."""
        results: list[Part] = []
        for at, message in enumerate(self._messages):
            role = message.get("role")
            if role in ("tool", "function"):
                results.append(self._result(message))
                continue
            if results:
                yield Turn("user", tuple(results))
                results = []
            yield self._turn(message, at)
        if results:
            yield Turn("user", tuple(results))

    def _result(self, message: JsonObject) -> Result:
        call = ToolCallId(as_text(message.get("tool_call_id"))) or self._legacy
        parts = tuple(p for p in _parts(message.get("content")) if isinstance(p, Text | Media))
        return Result(call or ToolCallId(as_text(message.get("name"))), parts)

    def _turn(self, message: JsonObject, at: int) -> Turn:
        name = as_text(message.get("name"))
        match message.get("role"):
            case "assistant":
                return Turn("assistant", tuple(self._answer(message, at)), name)
            case "system" | "developer":
                return Turn("system", tuple(_parts(message.get("content"))), name)
            case _:
                return Turn("user", tuple(_parts(message.get("content"))), name)

    def _answer(self, message: JsonObject, at: int) -> Iterator[Part]:
        for field in REASONING_FIELDS:
            if thought := as_text(message.get(field)):
                yield Reasoning(thought)
                break
        yield from _parts(message.get("content"))
        if refusal := as_text(message.get("refusal")):
            yield Refusal(refusal)
        if audio := as_object(message.get("audio")):
            yield Foreign("chat", {"audio": audio})
        for call in as_objects(message.get("tool_calls")):
            yield _call(call)
        if legacy := as_object(message.get("function_call")):
            self._legacy = ToolCallId(f"call_{at}")
            name, arguments = as_text(legacy.get("name")), as_text(legacy.get("arguments"))
            yield Call(self._legacy, name, arguments)


def _call(call: JsonObject) -> Call:
    id_ = ToolCallId(as_text(call.get("id")))
    if call.get("type") == "custom":
        custom = as_object(call.get("custom"))
        return Call(id_, as_text(custom.get("name")), as_text(custom.get("input")), "custom")
    function = as_object(call.get("function"))
    return Call(id_, as_text(function.get("name")), as_text(function.get("arguments")))


def _parts(content: JsonValue) -> Iterator[Part]:
    if isinstance(content, str):
        if content:
            yield Text(content)
        return
    for part in as_objects(content):
        yield from _part(part)


def _part(part: JsonObject) -> Iterator[Part]:
    cached = bool(part.get("cache_control"))
    match part.get("type"):
        case "text":
            if text := as_text(part.get("text")):
                yield Text(text, cached)
        case "refusal":
            yield Refusal(as_text(part.get("refusal")))
        case "image_url":
            image = as_object(part.get("image_url"))
            detail = as_text(image.get("detail"))
            yield Media("image", as_text(image.get("url")), detail=detail, cached=cached)
        case "input_audio":
            sound = as_object(part.get("input_audio"))
            kind, data = as_text(sound.get("format")), as_text(sound.get("data"))
            yield Media("audio", f"data:audio/{kind};base64,{data}", cached=cached)
        case "file" if as_object(part.get("file")).get("file_data"):
            file = as_object(part.get("file"))
            name = as_text(file.get("filename"))
            yield Media("file", as_text(file.get("file_data")), name, cached=cached)
        case _:
            yield Foreign("chat", part)


def _tools(body: JsonObject) -> Iterator[ToolSpec]:
    for tool in as_objects(body.get("tools")):
        kind = as_text(tool.get("type"))
        cached = bool(tool.get("cache_control"))
        if kind == "function":
            yield _function(as_object(tool.get("function")), cached)
        elif kind == "custom":
            custom = as_object(tool.get("custom"))
            yield ToolSpec(
                as_text(custom.get("name")),
                as_text(custom.get("description")),
                type="custom",
                cached=cached,
                foreign=Foreign("chat", tool) if custom.get("format") else None,
            )
        else:
            name = as_text(as_object(tool.get(kind)).get("name")) or kind
            yield ToolSpec(name, cached=cached, foreign=Foreign("chat", tool))
    for function in as_objects(body.get("functions")):
        yield _function(function, False)
    if (search := body.get("web_search_options")) is not None:
        yield ToolSpec("web_search", foreign=Foreign("chat", {"web_search_options": search}))


def _function(function: JsonObject, cached: bool) -> ToolSpec:
    parameters = function.get("parameters")
    return ToolSpec(
        as_text(function.get("name")),
        as_text(function.get("description")),
        parameters if isinstance(parameters, Mapping) else None,
        _flag(function, "strict"),
        cached=cached,
    )


def _allowed(body: JsonObject, tools: Iterator[ToolSpec]) -> Iterator[ToolSpec]:
    """Yield the tools that may be called, where the tool choice is a list of them."""
    choice = as_object(body.get("tool_choice"))
    if choice.get("type") != "allowed_tools":
        yield from tools
        return
    listed = as_objects(as_object(choice.get("allowed_tools")).get("tools"))
    kinds = [(tool, as_text(tool.get("type"))) for tool in listed]
    names = {as_text(as_object(tool.get(kind)).get("name")) or kind for tool, kind in kinds}
    yield from (tool for tool in tools if tool.name in names)


def _sampling(request: InferenceRequest) -> Sampling:
    body = request.body
    stop = body.get("stop")
    stops = (stop,) if isinstance(stop, str) else stop if isinstance(stop, list) else ()
    return Sampling(
        max_tokens=request.max_tokens,
        temperature=_number(body, "temperature"),
        top_p=_number(body, "top_p"),
        top_k=_whole(body, "top_k"),
        stop=tuple(s for s in stops if isinstance(s, str)),
        seed=_whole(body, "seed"),
        frequency_penalty=_number(body, "frequency_penalty"),
        presence_penalty=_number(body, "presence_penalty"),
    )


def _schema(wanted: JsonObject) -> Schema:
    return Schema(
        as_text(wanted.get("name")) or "answer",
        as_object(wanted.get("schema")),
        _flag(wanted, "strict"),
        as_text(wanted.get("description")),
    )


def _flag(owner: JsonObject, name: str) -> bool | None:
    value = owner.get(name)
    return value if isinstance(value, bool) else None


def _number(owner: JsonObject, name: str) -> float | None:
    value = owner.get(name)
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return value if known and isinstance(value, int | float) else None


def _whole(owner: JsonObject, name: str) -> int | None:
    value = owner.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
