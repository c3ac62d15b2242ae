"""A request as the scripted model server received it."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from turnout.core.json import JsonObject, as_object, as_objects, as_text
from turnout.gateway.measure.probe import PROBE_NAME

__all__ = ["RecordedRequest", "history_faults"]


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One call of `/v1/chat/completions`."""

    headers: Mapping[str, str]
    """Names in lower case."""
    body: JsonObject
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set where the caller went away before its answer was complete."""

    @property
    def model(self) -> str:
        """The model asked for."""
        return as_text(self.body.get("model"))

    @property
    def stream(self) -> bool:
        """Whether a stream was asked for."""
        return self.body.get("stream") is True

    @property
    def messages(self) -> list[JsonObject]:
        """The conversation sent."""
        return as_objects(self.body.get("messages"))

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The functions declared."""
        tools = as_objects(self.body.get("tools"))
        return tuple(as_text(as_object(tool.get("function")).get("name")) for tool in tools)

    @property
    def is_probe(self) -> bool:
        """Whether the gateway asks what the model can do, rather than for work."""
        wanted = as_object(as_object(self.body.get("response_format")).get("json_schema"))
        names = (as_text(wanted.get("name")), *self.tool_names)
        return any(name.startswith(PROBE_NAME) for name in names)

    @property
    def wants_usage(self) -> bool:
        """Whether a stream's usage chunk was asked for."""
        return as_object(self.body.get("stream_options")).get("include_usage") is True


def history_faults(messages: list[JsonObject]) -> tuple[str, ...]:
    """Return where a conversation breaks the rule that each call has exactly one later result.

    A result must also come before the next message that is no result.
    """
    faults: list[str] = []
    open_calls: Counter[str] = Counter()
    for at, message in enumerate(messages):
        if message.get("role") == "tool":
            answered = as_text(message.get("tool_call_id"))
            if not open_calls[answered]:
                faults.append(f"message {at} answers {answered!r}, which no open call has")
            open_calls[answered] -= 1
            continue
        faults += [f"call {call!r} has no result" for call in (+open_calls)]
        open_calls = Counter(
            as_text(call.get("id")) for call in as_objects(message.get("tool_calls"))
        )
        faults += [f"id {call!r} names {n} calls" for call, n in open_calls.items() if n > 1]
    return (*faults, *(f"call {call!r} has no result" for call in (+open_calls)))
