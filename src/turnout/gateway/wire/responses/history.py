"""All that a request says, as every shape can say it."""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence

from turnout.core.ids import ToolCallId
from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text
from turnout.gateway.dialog.conversation import (
    Call,
    Conversation,
    Foreign,
    Media,
    Part,
    Refusal,
    Result,
    Sampling,
    Schema,
    Text,
    Turn,
)
from turnout.gateway.wire.fields import invalid
from turnout.gateway.wire.responses.client_tools import BY_CALL, BY_OUTPUT
from turnout.gateway.wire.responses.items import CALLS, OUTPUTS, call_id, input_items, kind
from turnout.gateway.wire.responses.seal import read_reasoning
from turnout.gateway.wire.responses.tools import allowed_names, flat_name, read_choice, read_tools

__all__ = ["read_call", "read_conversation"]

_ELSEWHERE: Mapping[str, str] = {
    "item_reference": "names an item that is kept elsewhere",
    "compaction": "holds a conversation that only its maker can read",
}


def read_conversation(body: JsonObject) -> Conversation:
    """Return what the body of a request says.

    Each answer of the model is one turn, and the results of its calls are the next, in whichever
    order the items came. `GatewayError` (400) names what no other shape can say.
    """
    if body.get("prompt") is not None:
        raise invalid("`prompt` names a prompt that is kept elsewhere.", "prompt")
    given = input_items(body)
    tools = read_tools(body, given)
    allowed = allowed_names(body, tools)
    instructions = as_text(body.get("instructions"))
    standing = (Turn("system", (Text(instructions),)),) if instructions else ()
    wanted = as_object(as_object(body.get("text")).get("format"))
    parallel = body.get("parallel_tool_calls")
    return Conversation(
        turns=(*standing, *_Turns(given).read()),
        tools=tuple(t.spec() for t in tools.declared if allowed is None or t.name in allowed),
        tool_choice=read_choice(body, tools),
        parallel_calls=parallel if isinstance(parallel, bool) else None,
        sampling=_sampling(body),
        schema=_schema(wanted),
        any_json=wanted.get("type") == "json_object",
        effort=as_text(as_object(body.get("reasoning")).get("effort")) or None,
        end_user=as_text(body.get("safety_identifier")) or as_text(body.get("user")) or None,
    )


def read_call(item: JsonObject) -> Call | None:
    """Return the call that an item makes; None where it makes none that the client runs."""
    form = kind(item)
    if form in CALLS:
        name = flat_name(as_text(item.get("namespace")), as_text(item.get("name")))
        said = as_text(item.get(CALLS[form]))
        return Call(
            call_id(item), name, said, "custom" if form == "custom_tool_call" else "function"
        )
    tool = BY_CALL.get(form)
    if tool is None or not call_id(item) or item.get("execution") == "server":
        return None
    return Call(call_id(item), tool.type, tool.read_arguments(item))


class _Turns:
    """Items, put together to turns."""

    def __init__(self, given: Sequence[JsonObject]) -> None:
        self._given = given
        self._results: dict[ToolCallId, deque[Result]] = defaultdict(deque)
        for at, item in enumerate(given):
            if kind(item) in OUTPUTS and call_id(item):
                self._results[call_id(item)].append(_result(item, f"input[{at}]"))

    def read(self) -> Iterator[Turn]:
        """Yield the turns."""
        said: list[Part] = []
        for at, item in enumerate(self._given):
            path = f"input[{at}]"
            form = kind(item)
            part = self._assistant_part(item, form, path)
            if part is not None:
                said += part
            elif form == "message":
                yield from self._answer(said)
                said = []
                yield _message(item, path)
            elif form in OUTPUTS and call_id(item):
                yield from self._answer(said)
                said = []
        yield from self._answer(said)

    def _assistant_part(self, item: JsonObject, form: str, path: str) -> Sequence[Part] | None:
        """Return what an item adds to an answer of the model; None where it is no part of one."""
        if form in _ELSEWHERE:
            raise invalid(
                f"`{path}` {_ELSEWHERE[form]}; no other model can be asked with it.",
                path,
                mend="Send the items themselves.",
            )
        if form == "message":
            return _content(item, path) if item.get("role") == "assistant" else None
        if form == "reasoning":
            thought = read_reasoning(item)
            return (thought,) if thought.text or thought.signature or thought.encrypted else ()
        if form in {"additional_tools", "configuration_update"}:
            return ()
        if form in OUTPUTS and call_id(item):
            return None
        call = read_call(item)
        return (call if call is not None else Foreign("responses", item),)

    def _answer(self, said: Sequence[Part]) -> Iterator[Turn]:
        if not said:
            return
        yield Turn("assistant", tuple(said))
        calls = [part for part in said if isinstance(part, Call)]
        results = [self._results[c.id].popleft() for c in calls if self._results[c.id]]
        if results:
            yield Turn("user", tuple(results))


def _message(item: JsonObject, path: str) -> Turn:
    role = item.get("role")
    return Turn("user" if role == "user" else "system", tuple(_content(item, path)))


def _content(item: JsonObject, path: str) -> Sequence[Text | Media | Refusal]:
    content = item.get("content")
    if isinstance(content, str):
        return (Text(content),) if content else ()
    parts = (_part(p, f"{path}.content[{at}]") for at, p in enumerate(as_objects(content)))
    return [part for part in parts if part != Text("")]


def _result(item: JsonObject, path: str) -> Result:
    found, form = call_id(item), kind(item)
    if form in BY_OUTPUT:
        said = BY_OUTPUT[form].read_result(item)
        return Result(found, (Text(said),), is_error=item.get("status") == "failed")
    output = item.get("output")
    parts: list[Text | Media] = []
    if isinstance(output, str):
        parts.append(Text(output))
    for at, entry in enumerate(as_objects(output)):
        part = _part(entry, f"{path}.output[{at}]")
        parts.append(Text(part.text) if isinstance(part, Refusal) else part)
    return Result(
        found,
        tuple(parts),
        is_error=item.get("status") == "incomplete",
        type="custom" if form == "custom_tool_call_output" else "function",
    )


def _part(part: JsonObject, path: str) -> Text | Media | Refusal:
    marked = part.get("prompt_cache_breakpoint") is not None
    match part.get("type"):
        case "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text":
            return Text(as_text(part.get("text")), marked)
        case "refusal":
            return Refusal(as_text(part.get("refusal")))
        case "input_image" | "computer_screenshot":
            url = as_text(part.get("image_url"))
            return Media("image", _here(url, path), "", as_text(part.get("detail")), marked)
        case "input_audio":
            sound = as_object(part.get("input_audio"))
            data, form = as_text(sound.get("data")), as_text(sound.get("format")) or "wav"
            return Media("audio", f"data:audio/{form};base64,{_here(data, path)}", cached=marked)
        case "input_file":
            url = as_text(part.get("file_data")) or as_text(part.get("file_url"))
            name, detail = as_text(part.get("filename")), as_text(part.get("detail"))
            return Media("file", _here(url, path), name, detail, marked)
        case other:
            raise invalid(f"`{path}` is of the type `{other}`, which no other shape knows.", path)


def _here(content: str, path: str) -> str:
    if not content:
        raise invalid(
            f"`{path}` names a file that is kept elsewhere; no other model can be asked with it.",
            path,
            mend="Send the content itself, or its address.",
        )
    return content


def _sampling(body: JsonObject) -> Sampling:
    return Sampling(
        max_tokens=_whole(body.get("max_output_tokens")),
        temperature=_number(body.get("temperature")),
        top_p=_number(body.get("top_p")),
    )


def _schema(wanted: JsonObject) -> Schema | None:
    if wanted.get("type") != "json_schema":
        return None
    strict = wanted.get("strict")
    return Schema(
        as_text(wanted.get("name")) or "answer",
        as_object(wanted.get("schema")),
        strict if isinstance(strict, bool) else None,
        as_text(wanted.get("description")),
    )


def _number(value: JsonValue) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _whole(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
