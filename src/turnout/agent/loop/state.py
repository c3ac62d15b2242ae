"""What a loop knows: a fold of its events, one at a time.

A record that ends anywhere goes on from it. What it holds is bounded by the model's window, not by
the length of the run.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from turnout.agent.base import AgentConfig
from turnout.agent.loop.effects import Effects
from turnout.agent.loop.history import History, Outputs
from turnout.agent.loop.repeats import Repeats
from turnout.agent.tools.surfaces import Surface
from turnout.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    Event,
    HistoryCondensed,
    ModelCallDone,
    ModelCallFailed,
    ModelCallIntended,
    PlanMade,
    PlanUpdated,
    StepStarted,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.ids import RunId, ToolCallId
from turnout.core.messages import Message, ToolMessage
from turnout.core.money import Micros
from turnout.core.tools import ToolCall, ToolResult

__all__ = [
    "CONDENSING",
    "MAIN",
    "LoopState",
    "Role",
    "Turn",
    "cut",
    "idempotency_key",
    "main_of",
    "own_steps",
]

MAIN = "main"
"""The conversation of the act steps of a run's first attempt."""

CONDENSING = "condense-"
"""What the conversations that summarise another one begin with."""


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
        self.begun: StepStarted | ModelCallIntended | None = None
        """What has begun of a step whose model call has no reply yet."""
        self.failed: ModelCallFailed | None = None
        """Newest call of the plan or of the conversation, where it came to nothing."""
        self.plan_reply: ModelCallDone | None = None
        self.condensed: ModelCallDone | ModelCallFailed | None = None
        """What came of the call for a summary that does not stand in the conversation yet."""
        self.act_steps = 0
        """Model calls of the conversation."""
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
        self.asked: ApprovalAsked | None = None
        """The question that nobody has answered yet."""
        self.decided: dict[ToolCallId, ApprovalGiven] = {}
        """What people said of calls that have no result yet."""
        self.repeats = Repeats(surface)
        self.effects = Effects(surface)
        self.history = History()
        self.outputs = Outputs()
        self._open: OrderedDict[ToolCallId, ToolCall] = OrderedDict()

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
        return self.history.messages

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """Calls that were begun and have no result: a crash has left them."""
        return tuple(self._open.values())

    def unanswered(self) -> tuple[ToolCall, ...]:
        """Return calls of the newest reply that have no result yet, in order."""
        if self.turn is None:
            return ()
        return self.turn.reply.message.tool_calls[len(self.turn.results) :]

    @property
    def awaits_verdict(self) -> bool:
        """Whether the model has spoken last, or could not, so that a rule says what follows."""
        spoken = self.history.model_spoke_last
        return self.under_way is None and (spoken or self.failed is not None)

    @property
    def under_way(self) -> ModelCallIntended | None:
        """The call of the conversation whose intent is on record and whose reply is not."""
        begun = self.begun
        if isinstance(begun, ModelCallIntended) and begun.conversation == self.role.conversation:
            return begun
        return None

    def refusal(self, call: ToolCall) -> ApprovalGiven | None:
        """Return the decision by which a call must not be carried out; None where there is none."""
        given = self.decided.get(call.id)
        return None if given is None or given.allowed else given

    def apply(self, event: Event) -> None:
        """Take the next event in."""
        match event:
            case StepStarted():
                self.next_step = event.step + 1
                self.begun = event
            case ModelCallIntended():
                self._ask(event)
            case ModelCallDone():
                self._hear(event)
            case ModelCallFailed():
                self._miss(event)
            case ToolCallIntended(call=call) if self._is_of_turn(event.step):
                self.tool_calls += 1
                self._open[call.id] = call
            case ToolCallDone() if self._is_of_turn(event.step):
                self._answer(event)
            case ApprovalAsked():
                self.asked = event
            case ApprovalGiven():
                self.asked = None
                self.decided[event.call_id] = event
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

    def _ask(self, event: ModelCallIntended) -> None:
        self.begun = event
        if event.conversation == self.role.conversation:
            self.act_steps += 1
            self.history.say(event.step, *event.messages)

    def _miss(self, event: ModelCallFailed) -> None:
        self.begun = None
        if event.conversation.startswith(CONDENSING):
            self.condensed = event
        elif self._is_own(event):
            self.failed = event

    def _hear(self, event: ModelCallDone) -> None:
        self.begun = None
        self.spend = Micros(self.spend + (event.routing.cost_micros or 0))
        if event.conversation.startswith(CONDENSING):
            self.condensed = event
        elif self._is_own(event):
            self.failed = None
            if event.kind == "plan":
                self.plan_reply = event
            else:
                self._take_turn(event)

    def _is_own(self, event: ModelCallDone | ModelCallFailed) -> bool:
        planning = event.kind == "plan" and self.role.plans
        return planning or event.conversation == self.role.conversation

    def _take_turn(self, event: ModelCallDone) -> None:
        self.history.say(event.step, event.message)
        self.turn = Turn(event)
        self.condensed_in_a_row = 0
        self.idle = 0 if self.turn.acts else self.idle + 1

    def _answer(self, event: ToolCallDone) -> None:
        result = event.result
        # A summary of what it printed, if one was under way, is of no use any more.
        self.begun = None
        self.results += 1
        self.history.say(event.step, ToolMessage(result.call_id, result.content))
        self.decided.pop(result.call_id, None)
        call = self._open.pop(result.call_id, None)
        if self.turn is not None:
            self.turn.results.append(result)
        if call is not None:
            self.last_called = call.name
            self.repeats.note(event.step, call, result)
            self.effects.note(call, result)
        if result.full:
            self.outputs.keep(self.results, result.full)

    def _condense(self, event: HistoryCondensed) -> None:
        self.history.condense(event)
        self.failed = self.condensed = None
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
