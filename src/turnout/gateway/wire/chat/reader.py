"""What an upstream's stream of chunks amounts to: pieces now, the rest at the end."""

from collections.abc import Iterator, Sequence
from typing import cast

from turnout.core.inference import FinishReason
from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text
from turnout.core.usage import Usage
from turnout.gateway.catalog import Deployment
from turnout.gateway.dialog.conversation import Foreign
from turnout.gateway.dialog.events import (
    CallDelta,
    Ending,
    Event,
    ForeignPart,
    Native,
    Piece,
    ReasoningDelta,
    RefusalDelta,
    Reply,
    TextDelta,
)
from turnout.gateway.dialog.fold import fold_events
from turnout.gateway.exchange import ServerEvent, UpstreamError
from turnout.gateway.providers.failures import in_band
from turnout.gateway.repair.finish import agreed, broke
from turnout.gateway.wire.chat.calls import CallTable
from turnout.gateway.wire.chat.usage import read_usage

__all__ = ["READ_FIELDS", "REASONING_FIELDS", "ChatReader", "finish_of"]

REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Where servers put a model's thoughts."""

READ_FIELDS = frozenset(
    {"content", "function_call", "reasoning_details", "refusal", "role", "tool_calls"}
)
"""Fields of a message that show nothing by themselves, or that are read one by one."""


class ChatReader:
    """Reads one stream of the chat shape; a whole answer may come as its only event."""

    def __init__(self, deployment: Deployment, *, legacy: bool = False) -> None:
        self._keeps_legacy = legacy
        self._model = deployment.model
        self._thoughts = (deployment.reasoning_field, *REASONING_FIELDS)
        self._usage: Usage | None = None
        self._usage_body: JsonObject | None = None
        self._envelope: dict[str, JsonValue] = {}
        self._finish: dict[int, str] = {}
        self._begun: set[int] = set()
        self._tables: dict[int, CallTable] = {}
        self._legacy: set[int] = set()
        self._events: list[Event] = []
        self._mends: dict[str, None] = {}

    @property
    def usage(self) -> Usage | None:
        """The counts so far; None where the upstream sent none."""
        return self._usage

    @property
    def repairs(self) -> tuple[str, ...]:
        """What was mended so far, one phrase for each kind."""
        mends = dict(self._mends)
        for table in self._tables.values():
            mends |= table.repairs
        return tuple(mends)

    def read(self, event: ServerEvent) -> Sequence[Piece]:
        """Take a chunk in and return what the client may see of it."""
        chunk = event.data
        if chunk.get("error") or "error" in (event.name, chunk.get("object")):
            raise in_band(chunk if chunk.get("error") else {"error": chunk}, "chat")
        self._keep_usage(chunk)
        events: list[Event] = []
        choices: list[JsonValue] = [
            shown
            for choice in as_objects(chunk.get("choices"))
            if (shown := self._choice(choice, events)) is not None
        ]
        self._envelope.update(chunk)
        if not choices:
            return ()
        self._events += events
        return (Piece(tuple(events), Native("chat", self._shown(chunk, choices))),)

    def end(self) -> Ending:
        """Return how the answer ends; `UpstreamError` where the upstream stopped before that."""
        if not self._finish or self._begun - self._finish.keys():
            raise UpstreamError("ended the stream before the answer was finished", status=None)
        if any(broke(reason) for reason in self._finish.values()):
            raise UpstreamError("gave the answer up before it was finished", status=None)
        pieces = tuple(self._filled())
        choices: list[JsonValue] = [
            {"index": index, "delta": {}, "finish_reason": self._reason(index)}
            for index in sorted(self._finish)
        ]
        native = Native("chat", self._shown(self._envelope, choices))
        return Ending(
            finish_of(self._reason(min(self._finish))),
            pieces,
            natives=(native,),
            usage_native=self._usage_body,
        )

    def so_far(self) -> Reply:
        """Return the first choice so far, or whole."""
        finish = finish_of(self._reason(0)) if 0 in self._finish else "stop"
        return Reply(fold_events(self._events), finish, self._usage)

    def _shown(self, chunk: JsonObject, choices: list[JsonValue]) -> JsonObject:
        """Return a chunk with other choices, without its counts, under the catalog's model."""
        shown = dict(chunk)
        shown["choices"] = choices
        shown["model"] = self._model
        shown.pop("usage", None)
        if "x_groq" in shown:
            groq = as_object(shown["x_groq"])
            shown["x_groq"] = {name: groq[name] for name in groq if name != "usage"}
        return shown

    def _choice(self, choice: JsonObject, events: list[Event]) -> JsonObject | None:
        """Return a choice as the client may see it; None where there is nothing to see."""
        number = choice.get("index")
        index = number if isinstance(number, int) else 0
        if reason := as_text(choice.get("finish_reason")):
            self._finish[index] = reason
        self._begun.add(index)
        delta = given = as_object(choice.get("delta") or choice.get("message"))
        called: list[Event] = []
        if delta.get("function_call"):
            delta = self._legacy_call(index, delta, called)
        if "tool_calls" in delta:
            delta = self._calls(index, delta, called)
        if index == 0:
            self._said(delta, events)
        events += called
        if not delta:
            return None
        if delta is given and number == index and _is_open(choice):
            return choice
        shown: dict[str, JsonValue] = {**choice, "index": index, "delta": delta}
        shown["finish_reason"] = None
        shown.pop("message", None)
        return shown

    def _said(self, delta: JsonObject, events: list[Event]) -> None:
        content = delta.get("content")
        said = as_text(content)
        if said and len(delta) == 1:
            events.append(TextDelta(said))
            return
        for name in self._thoughts:
            if thought := as_text(delta.get(name)):
                events.append(ReasoningDelta(thought))
                break
        if said:
            events.append(TextDelta(said))
        texts = [as_text(part.get("text")) for part in as_objects(content)]
        events.extend(TextDelta(text) for text in texts if text)
        if refusal := as_text(delta.get("refusal")):
            events.append(RefusalDelta(refusal))
        rest = {
            name: value
            for name, value in delta.items()
            if value and name not in READ_FIELDS and name not in self._thoughts
        }
        if rest:
            events.append(ForeignPart(Foreign("chat", rest)))

    def _calls(self, index: int, delta: JsonObject, events: list[Event]) -> JsonObject:
        table = self._tables.setdefault(index, CallTable())
        placed: list[JsonValue] = []
        for fragment in as_objects(delta.get("tool_calls")):
            shown, happened = table.add(fragment)
            if shown is not None:
                placed.append(shown)
            if index == 0:
                events.extend(happened)
        rest = {name: value for name, value in delta.items() if name != "tool_calls"}
        return {**rest, "tool_calls": placed} if placed else rest

    def _legacy_call(self, index: int, delta: JsonObject, events: list[Event]) -> JsonObject:
        """Take in a call in the form that came before `tool_calls`; there is one at most.

        A client that declared no tools in that form gets it as one of `tool_calls`.
        """
        fragment: JsonObject = {"index": 0, "function": as_object(delta["function_call"])}
        if not self._keeps_legacy:
            rest = {name: value for name, value in delta.items() if name != "function_call"}
            return {**rest, "tool_calls": [fragment]}
        self._legacy.add(index)
        table = self._tables.setdefault(index, CallTable())
        _, happened = table.add({**fragment, "id": "call_0"})
        if index == 0:
            events.extend(happened)
        return delta

    def _filled(self) -> Iterator[Piece]:
        """Complete calls that came without arguments: clients parse them as JSON."""
        for index, table in self._tables.items():
            if table.unnamed():
                self._mends["call without a name left out"] = None
            for place, call in enumerate(table.calls):
                if call.type == "custom" or call.arguments.strip():
                    continue
                call.arguments = "{}"
                self._mends["empty arguments replaced by {}"] = None
                events: list[Event] = [CallDelta(place, "{}")] if index == 0 else []
                self._events += events
                fragment: JsonObject = {"index": place, "function": {"arguments": "{}"}}
                delta: JsonObject = {"tool_calls": [fragment]}
                if index in self._legacy:
                    delta = {"function_call": {"arguments": "{}"}}
                choice: JsonObject = {"index": index, "delta": delta, "finish_reason": None}
                native = Native("chat", self._shown(self._envelope, [choice]))
                yield Piece(tuple(events), native)

    def _reason(self, index: int) -> str:
        """Return the finish reason, made to agree with the calls."""
        table = self._tables.get(index)
        called = table is not None and bool(table.calls)
        reason, mend = agreed(self._finish[index], called=called, legacy=index in self._legacy)
        if mend:
            self._mends[mend] = None
        return reason

    def _keep_usage(self, chunk: JsonObject) -> None:
        counts = chunk.get("usage") or as_object(chunk.get("x_groq")).get("usage")
        if not counts:
            return
        usage = read_usage(counts)
        if usage is not None:
            self._usage, self._usage_body = usage, as_object(counts)


def _is_open(choice: JsonObject) -> bool:
    return choice.get("finish_reason", "") is None and "message" not in choice


def finish_of(reason: JsonValue) -> FinishReason:
    """Return a finish reason of the wire as one of ours."""
    match reason:
        case "tool_calls" | "length" | "content_filter":
            return cast("FinishReason", reason)
        case "function_call":
            return "tool_calls"
        case _:
            return "stop"
