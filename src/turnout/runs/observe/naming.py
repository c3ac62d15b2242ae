"""How the parts of a run are named in its trace, and what is said of them there.

Names are those of the GenAI conventions of OpenTelemetry where these have one, `turnout.*` where
they have none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from turnout.core.events import ModelCallDone, ModelCallIntended, ToolCallDone, ToolCallIntended
from turnout.core.ids import RunId
from turnout.core.json import ascii_json
from turnout.core.messages import AssistantMessage, Message
from turnout.core.observe.spans import Attribute, Span, run_span
from turnout.core.tools import ToolCall
from turnout.core.usage import Usage

__all__ = ["AGENT", "Names", "answered", "asked", "lasting", "tokens", "tool_asked", "tool_said"]

AGENT: Final = "turnout"
"""Name of the agent."""

_LONGEST_NAME: Final = 64
"""Characters of a tool's name, as a model wrote it."""
_LONGEST_SECONDS: Final = 1e7
_LONGEST_TEXT: Final = 16_000
"""Characters of what was said, of each part."""


@dataclass(frozen=True, slots=True)
class Names:
    """Makes the spans of one run."""

    run_id: RunId

    def run(self, start: datetime, end: datetime, attributes: Mapping[str, Attribute]) -> Span:
        """Return the span of the run itself."""
        where = run_span(self.run_id)
        said = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": AGENT,
            "gen_ai.conversation.id": self.run_id,
            **attributes,
        }
        name = f"invoke_agent {AGENT}"
        return Span(where.trace_id, where.span_id, "", name, "internal", start, end, said)

    def part(
        self,
        what: str,
        name: str,
        when: tuple[datetime, datetime],
        attributes: Mapping[str, Attribute],
        step: int | None = None,
    ) -> Span:
        """Return the span of a part of a run, or of one of its steps; `what` makes its id."""
        own = run_span(self.run_id, what)
        above = run_span(self.run_id, "" if step is None else f"step {step}").span_id
        said: dict[str, Attribute] = {"gen_ai.conversation.id": self.run_id, **attributes}
        if step is not None:
            said["turnout.step"] = step
        return Span(own.trace_id, own.span_id, above, name, "internal", *when, said)

    def past(
        self,
        what: str,
        at: datetime,
        seconds: float,
        attributes: Mapping[str, Attribute],
        step: int | None = None,
    ) -> Span:
        """Return the span of what is on record once it is over; its name is before any ` #`."""
        start = at - lasting(seconds)
        return self.part(what, what.partition(" #")[0], (start, at), attributes, step)

    def tool(self, place: int, start: datetime, end: datetime, asked: ToolCallIntended) -> Span:
        """Return the span of a tool call whose intent is at `place` of the record."""
        name = asked.call.name[:_LONGEST_NAME]
        said: dict[str, Attribute] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": asked.call.id,
            "gen_ai.tool.type": "function",
        }
        return self.part(f"tool #{place}", f"execute_tool {name}", (start, end), said, asked.step)

    def chat(self, start: datetime, end: datetime, asked: ModelCallIntended) -> Span:
        """Return the span of a model call."""
        said: dict[str, Attribute] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": asked.model,
            "turnout.step.kind": asked.kind,
        }
        name = f"chat {asked.model}"
        span = self.part(asked.idempotency_key, name, (start, end), said, asked.step)
        return replace(span, kind="client")


def lasting(seconds: float) -> timedelta:
    """Return a measured time, within what a record can hold."""
    return timedelta(seconds=min(max(0.0, seconds), _LONGEST_SECONDS))


def tokens(usage: Usage) -> dict[str, Attribute]:
    """Return what was used."""
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_input_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_creation_input_tokens,
    }


def answered(done: ModelCallDone, *, content: bool) -> dict[str, Attribute]:
    """Return what is said of an answer; its words only with `content`."""
    routing = done.routing
    said: dict[str, Attribute] = {
        "gen_ai.provider.name": routing.provider,
        "gen_ai.response.model": routing.model,
        "gen_ai.response.id": done.request_id,
        "gen_ai.response.finish_reasons": (done.finish_reason,),
        **tokens(done.usage),
        "turnout.deployment": routing.deployment,
        "turnout.objective": routing.objective,
        "turnout.fallback": routing.fallback,
    }
    if routing.cost_micros is not None:
        said["turnout.cost_micros"] = routing.cost_micros
    if content:
        said["gen_ai.output.messages"] = _messages((done.message,))
    return said


def asked(intended: ModelCallIntended, *, content: bool) -> dict[str, Attribute]:
    """Return the words that a model call adds to its conversation; nothing without `content`."""
    return {"gen_ai.input.messages": _messages(intended.messages)} if content else {}


def tool_asked(intended: ToolCallIntended, *, content: bool) -> dict[str, Attribute]:
    """Return the arguments of a call; nothing without `content`."""
    return {"gen_ai.tool.call.arguments": _cut(intended.call.arguments)} if content else {}


def tool_said(done: ToolCallDone, *, content: bool) -> dict[str, Attribute]:
    """Return the result of a call; nothing without `content`."""
    return {"gen_ai.tool.call.result": _cut(done.result.content)} if content else {}


def _messages(messages: tuple[Message, ...]) -> str:
    """Return messages as the conventions write them, whole ones as far as there is room."""
    shown: list[str] = []
    room = _LONGEST_TEXT
    for message in messages:
        calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
        text = [{"type": "text", "content": _cut(message.content)}] if message.content else []
        one = ascii_json({"role": message.role, "parts": [*text, *map(_call, calls)]})
        room -= len(one)
        if room < 0 and shown:
            break
        shown.append(one)
    return f"[{','.join(shown)}]"


def _call(call: ToolCall) -> dict[str, str]:
    return {
        "type": "tool_call",
        "id": call.id,
        "name": call.name[:_LONGEST_NAME],
        "arguments": _cut(call.arguments),
    }


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
