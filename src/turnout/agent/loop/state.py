"""What a loop knows: a fold of its events, one at a time.

A record that ends anywhere goes on from it. What it holds is bounded by the model's window, not by
the length of the run.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

from turnout.agent.base import AgentConfig
from turnout.agent.loop.effects import Effects
from turnout.agent.loop.repeats import Repeats
from turnout.agent.tools.output import output_name
from turnout.agent.tools.surfaces import Surface
from turnout.core.events import (
    ApprovalGiven,
    Event,
    HistoryCondensed,
    ModelCallDone,
    ModelCallIntended,
    PlanMade,
    PlanUpdated,
    StepStarted,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.ids import RunId, ToolCallId
from turnout.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from turnout.core.money import Micros
from turnout.core.tools import ToolCall, ToolResult

__all__ = ["MAIN", "LoopState", "Role", "Turn", "cut", "idempotency_key", "main_of", "own_steps"]

MAIN = "main"
"""The conversation of the act steps of a run's first attempt."""

_KEPT_OUTPUT: Final = 4 << 20
"""Characters of whole outputs that a model may read on in; the oldest go first."""

_OPENING: Final = 2
"""Messages that open the conversation and outlive every condensation: instructions and task."""


@dataclass(frozen=True, slots=True)
class Role:
    """What a loop does in a run."""

    kind: Literal["act", "review"] = "act"
    conversation: str = MAIN

    @property
    def plans(self) -> bool:
        """Whether it begins with a plan."""
        return self.kind == "act"


@dataclass(slots=True)
class Turn:
    """The newest reply of the conversation and the results of its calls so far."""

    reply: ModelCallDone
    results: list[ToolResult] = field(default_factory=list)

    @property
    def acts(self) -> bool:
        """Whether it asks for calls that can be carried out."""
        return bool(self.reply.message.tool_calls) and not cut(self.reply)

    @property
    def has_ended(self) -> bool:
        """Whether one of its calls has ended the task."""
        return any(result.ends_run for result in self.results)


class LoopState:
    """Everything that decides how a loop goes on; change it by `apply` alone."""

    def __init__(
        self,
        surface: Surface,
        role: Role | None = None,
        first_step: int = 1,
        spent: Micros | None = None,
    ) -> None:
        self.surface = surface
        self.role = role or Role()
        self.last: Event | None = None
        """The newest event."""
        self.next_step = first_step
        """Number of the step that would start now."""
        self.act_steps = 0
        self.tool_calls = 0
        self.results = 0
        self.spend = spent or Micros(0)
        """Sum of the costs that are known, of the run's earlier attempts too."""
        self.plan: PlanMade | None = None
        self.progress: PlanUpdated | None = None
        self.turn: Turn | None = None
        self.last_called = ""
        """Tool of the newest call that has a result."""
        self.idle = 0
        """Replies in a row that gave nothing to act on."""
        self.condensed_in_a_row = 0
        """Condensations since a reply came."""
        self.condensed_at = 0
        """Act steps before the newest condensation."""
        self.refusals: dict[ToolCallId, ApprovalGiven] = {}
        """Of calls that have no result yet."""
        self.repeats = Repeats(surface)
        self.effects = Effects(surface)
        self._messages: list[Message] = []
        self._steps: list[int] = []
        self._ids: set[ToolCallId] = set()
        self._open: OrderedDict[ToolCallId, ToolCall] = OrderedDict()
        self._outputs: OrderedDict[str, str] = OrderedDict()
        self._output_chars = 0

    @classmethod
    def of(cls, events: Iterable[Event], surface: Surface, role: Role | None = None) -> "LoopState":
        """Fold a record, oldest event first."""
        state = cls(surface, role)
        for event in events:
            state.apply(event)
        return state

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far: what a call would send if it were made now."""
        return tuple(self._messages)

    @property
    def call_ids(self) -> frozenset[ToolCallId]:
        """Ids that calls of the conversation have."""
        return frozenset(self._ids)

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """Calls that were begun and have no result: a crash has left them."""
        return tuple(self._open.values())

    def output(self, name: str) -> str | None:
        """Return the whole output behind a result that was cut; None where it is not kept."""
        return self._outputs.get(name)

    def unanswered(self) -> tuple[ToolCall, ...]:
        """Return calls of the newest reply that have no result yet, in order."""
        if self.turn is None:
            return ()
        return self.turn.reply.message.tool_calls[len(self.turn.results) :]

    @property
    def awaits_verdict(self) -> bool:
        """Whether the model has spoken last, so that a rule says what follows."""
        return bool(self._messages) and not isinstance(self._messages[-1], UserMessage)

    def condensable(self, keep: int) -> tuple[tuple[Message, ...], int] | None:
        """Return what a summary could stand for, and the newest step in it.

        The newest `keep` turns stay as they are. None where nothing is left to condense.
        """
        spoken = [
            step
            for step, message in zip(self._steps, self._messages, strict=True)
            if isinstance(message, AssistantMessage)
        ]
        if keep > len(spoken):
            return None
        # A nudge that opened a kept turn has the turn's step.
        end = self._steps.index(spoken[-keep]) if keep else len(self._steps)
        if end <= _OPENING:
            return None
        return tuple(self._messages[_OPENING:end]), self._steps[end - 1]

    def apply(self, event: Event) -> None:
        """Take the next event in."""
        match event:
            case StepStarted():
                self.next_step = event.step + 1
                self.act_steps += event.kind == self.role.kind
            case ModelCallIntended(conversation=of) if of == self.role.conversation:
                self._say(event.step, *event.messages)
            case ModelCallDone():
                self._hear(event)
            case ToolCallIntended(call=call) if self._is_of_turn(event.step):
                self.tool_calls += 1
                self._open[call.id] = call
            case ToolCallDone() if self._is_of_turn(event.step):
                self._answer(event)
            case ApprovalGiven(allowed=False) if self._is_of_turn(event.step):
                self.refusals[event.call_id] = event
            case PlanMade():
                self.plan = event
            case PlanUpdated():
                self.progress = event
            case HistoryCondensed(conversation=of) if of == self.role.conversation:
                self._condense(event)
            case _:
                pass
        self.last = event

    def _is_of_turn(self, step: int) -> bool:
        return self.turn is not None and self.turn.reply.step == step

    def _say(self, step: int, *messages: Message) -> None:
        self._messages += messages
        self._steps += [step] * len(messages)

    def _hear(self, event: ModelCallDone) -> None:
        self.spend = Micros(self.spend + (event.routing.cost_micros or 0))
        if event.conversation != self.role.conversation:
            return
        self._say(event.step, event.message)
        self._ids.update(call.id for call in event.message.tool_calls)
        self.turn = Turn(event)
        self.condensed_in_a_row = 0
        self.idle = 0 if self.turn.acts else self.idle + 1

    def _answer(self, event: ToolCallDone) -> None:
        result = event.result
        self.results += 1
        self._say(event.step, ToolMessage(result.call_id, result.content))
        self.refusals.pop(result.call_id, None)
        call = self._open.pop(result.call_id, None)
        if self.turn is not None:
            self.turn.results.append(result)
        if call is not None:
            self.last_called = call.name
            self.repeats.note(event.step, call, result)
            self.effects.note(call, result)
        if result.full:
            self._keep(result)

    def _keep(self, result: ToolResult) -> None:
        self._outputs[output_name(self.results)] = result.full
        self._output_chars += len(result.full)
        while self._output_chars > _KEPT_OUTPUT and len(self._outputs) > 1:
            self._output_chars -= len(self._outputs.popitem(last=False)[1])

    def _condense(self, event: HistoryCondensed) -> None:
        after = next(
            (
                at
                for at, step in enumerate(self._steps)
                if at >= _OPENING and step > event.through_step
            ),
            len(self._messages),
        )
        kept, steps = self._messages[after:], self._steps[after:]
        del self._messages[_OPENING:], self._steps[_OPENING:]
        self._say(event.through_step, UserMessage(event.text))
        self._messages += kept
        self._steps += steps
        self._ids = {
            call.id
            for message in self._messages
            if isinstance(message, AssistantMessage)
            for call in message.tool_calls
        }
        self.condensed_in_a_row += 1
        self.condensed_at = self.act_steps
        # What is no longer in view may be looked at again.
        self.repeats.forget()


def cut(reply: ModelCallDone) -> str:
    """Return how a reply was stopped in the middle, so that its calls are not whole, or nothing."""
    match reply.finish_reason:
        case "length":
            return "because it was too long"
        case "content_filter":
            return "by the provider's content filter"
        case "stop" | "tool_calls":
            return ""


def own_steps(state: LoopState, config: AgentConfig) -> tuple[str, ...]:
    """Return the tools at hand that are called in steps of their own, and in no others."""
    if state.role.kind != "act":
        return ()
    return tuple(spec.name for spec in state.surface.specs if spec.name in config.tool_steps)


def idempotency_key(run_id: RunId, step: int) -> str:
    """Return the key of a step's model call: the same however often it is sent."""
    return f"{run_id}-step-{step}"


def main_of(attempt: int) -> str:
    """Return the conversation of an attempt's act steps: each begins one of its own."""
    return MAIN if attempt == 1 else f"{MAIN}-{attempt}"
