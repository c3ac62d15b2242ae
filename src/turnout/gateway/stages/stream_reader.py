"""What an upstream's stream amounts to: pieces for the client now, the rest for the end."""

from collections.abc import Iterator

from turnout.core.ids import ModelId
from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text
from turnout.core.usage import Usage
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.stages.call_table import CallTable, StreamedCall
from turnout.gateway.wire.chat_usage import read_usage

__all__ = ["StreamReader"]

_CHARS_PER_TOKEN = 4


class StreamReader:
    """Reads one stream of the chat shape.

    Nothing is handed on before the first piece that a client can see, so that a failure up to
    there leaves the gateway free to ask another deployment.
    """

    def __init__(self, model: ModelId) -> None:
        self.began = False
        """Whether a visible piece was handed on."""
        self.usage: Usage | None = None
        """None where the upstream sent no counts."""
        self.usage_body: JsonObject | None = None
        self._model = model
        self._held: list[JsonObject] = []
        self._envelope: dict[str, JsonValue] = {}
        self._finish: dict[int, str] = {}
        self._tables: dict[int, CallTable] = {}
        self._text: dict[int, list[str]] = {}
        self._chars = 0
        self._mends: dict[str, None] = {}

    @property
    def repairs(self) -> tuple[str, ...]:
        """What was mended so far, one phrase for each kind."""
        return tuple(self._mends)

    @property
    def calls(self) -> list[StreamedCall]:
        """Every tool call so far."""
        return [call for table in self._tables.values() for call in table.calls]

    @property
    def output_estimate(self) -> int:
        """Tokens that the pieces so far amount to, roughly."""
        argued = sum(len(call.name) + len(call.arguments) for call in self.calls)
        return -(-(self._chars + argued) // _CHARS_PER_TOKEN)

    def read(self, chunk: JsonObject) -> Iterator[JsonObject]:
        """Take a chunk in and yield what the client may now see.

        `UpstreamError` where the chunk is an error in band.
        """
        _refuse_error(chunk)
        self._keep_usage(chunk)
        choices = list(self._choices(chunk))
        rest = {name: value for name, value in chunk.items() if name not in {"usage", "choices"}}
        self._envelope |= {**rest, "model": self._model}
        if not choices:
            return
        self._held.append({**rest, "model": self._model, "choices": choices})
        self.began = self.began or any(_is_visible(choice) for choice in choices)
        if self.began:
            yield from self._held
            self._held.clear()

    def end(self) -> list[JsonObject]:
        """Return the pieces still held and, last, the chunk that carries the finish reasons.

        `UpstreamError` where the upstream stopped before it was finished.
        """
        if not self._finish or set(self._text) - set(self._finish):
            raise UpstreamError("ended the stream before the answer was finished", status=None)
        filled = [{**self._envelope, "choices": [choice]} for choice in self._fill_arguments()]
        choices: list[JsonValue] = [
            {"index": index, "delta": {}, "finish_reason": self._reason(index)}
            for index in sorted(self._finish)
        ]
        return [*self._held, *filled, {**self._envelope, "choices": choices}]

    def message(self) -> JsonObject:
        """Return the first choice as the message of a whole answer."""
        table = self._tables.get(0, CallTable())
        calls: list[JsonValue] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in table.calls
        ]
        message: dict[str, JsonValue] = {
            "role": "assistant",
            "content": "".join(self._text.get(0, [])) or None,
        }
        return {**message, "tool_calls": calls} if calls else message

    def _choices(self, chunk: JsonObject) -> Iterator[JsonObject]:
        for choice in as_objects(chunk.get("choices")):
            index = choice.get("index")
            index = index if isinstance(index, int) else 0
            if reason := as_text(choice.get("finish_reason")):
                self._finish[index] = reason
            delta = self._delta(index, as_object(choice.get("delta")))
            if delta:
                yield {**choice, "index": index, "delta": delta, "finish_reason": None}

    def _delta(self, index: int, delta: JsonObject) -> JsonObject:
        said = self._text.setdefault(index, [])
        said.append(as_text(delta.get("content")))
        self._chars += sum(len(value) for value in delta.values() if isinstance(value, str))
        if "tool_calls" not in delta:
            return delta
        table = self._tables.setdefault(index, CallTable())
        placed = [table.add(fragment) for fragment in as_objects(delta.get("tool_calls"))]
        rest = {name: value for name, value in delta.items() if name != "tool_calls"}
        return {**rest, "tool_calls": placed} if placed else rest

    def _fill_arguments(self) -> Iterator[JsonObject]:
        """Complete calls that came without arguments: clients parse them as JSON."""
        for index, table in self._tables.items():
            for place, call in enumerate(table.calls):
                if call.arguments.strip():
                    continue
                call.arguments = "{}"
                self._mends["empty arguments replaced by {}"] = None
                fragment: JsonObject = {"index": place, "function": {"arguments": "{}"}}
                yield {"index": index, "delta": {"tool_calls": [fragment]}, "finish_reason": None}

    def _reason(self, index: int) -> str:
        """Return the finish reason, made to agree with the calls."""
        reason = self._finish[index]
        called = bool(self._tables.get(index, CallTable()).calls)
        if called and reason not in {"tool_calls", "length", "content_filter"}:
            self._mends["finish reason made tool_calls"] = None
            return "tool_calls"
        if not called and reason in {"tool_calls", "function_call"}:
            self._mends["finish reason made stop"] = None
            return "stop"
        return reason

    def _keep_usage(self, chunk: JsonObject) -> None:
        counts = chunk.get("usage") or as_object(chunk.get("x_groq")).get("usage")
        usage = read_usage(counts)
        if usage is not None:
            self.usage, self.usage_body = usage, as_object(counts)


def _is_visible(choice: JsonObject) -> bool:
    delta = as_object(choice.get("delta"))
    return any(value for name, value in delta.items() if name != "role")


def _refuse_error(chunk: JsonObject) -> None:
    error = chunk.get("error")
    if not error:
        return
    detail = as_object(error)
    code = detail.get("code")
    status = code if isinstance(code, int) and 400 <= code < 600 else None
    said = as_text(detail.get("message")) or "no explanation"
    raise UpstreamError(f"failed while answering: {said}", status=status)
