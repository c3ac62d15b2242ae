"""One request, sent or only explained, with the decision about it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from turnout.core.ids import RequestId, new_request_id
from turnout.core.policies import Policy
from turnout.core.receipts import Receipt
from turnout.errors import TurnoutError
from turnout.gateway.access import check_role
from turnout.gateway.dialog.conversation import Call, Reasoning, Refusal
from turnout.gateway.exchange import Completion, InferenceRequest, UpstreamError
from turnout.gateway.policy.desk import PolicyDesk
from turnout.web.console.govern.asking import Asked, Choices, asked_of, request_of
from turnout.web.console.govern.drafts import read_draft
from turnout.web.console.govern.parts import Models
from turnout.web.console.govern.views.decisions import DecisionView, decision_view
from turnout.web.console.sections import Change, Done, Page, Section
from turnout.web.console.visits import Visit

__all__ = [
    "AnswerView",
    "PlaygroundView",
    "RequestView",
    "playground_section",
]

_LONGEST_ID: Final = 100
_SECONDS: Final = 180.0
"""That an answer is waited for: a page is not an agent."""


_Options = Sequence[tuple[str, str]]
"""What is sent and what is shown of each choice."""


@dataclass(frozen=True, slots=True)
class AnswerView:
    """What a model answered."""

    text: str
    thoughts: str
    calls: Sequence[Call]
    finish: str
    receipt: Receipt | None


@dataclass(frozen=True, slots=True)
class PlaygroundView:
    """The form, and what became of it."""

    choices: Choices
    asked: Asked
    decision: DecisionView | None = None
    answer: AnswerView | None = None
    error: str = ""
    mend: str = ""

    @property
    def policy_options(self) -> _Options:
        """The policies that the visitor may choose."""
        return _options("the key's own", self.choices.policies)

    @property
    def objective_options(self) -> _Options:
        """What a request may be routed for."""
        return _options("the policy's", self.choices.objectives)

    @property
    def task_options(self) -> _Options:
        """What a request may be about."""
        return _options("found out", self.choices.tasks)

    @property
    def kind_options(self) -> _Options:
        """The steps of an agent that a request may be for."""
        return _options("not said", self.choices.kinds)


@dataclass(frozen=True, slots=True)
class RequestView:
    """A request that was made, by its receipt."""

    asked: str
    """Id that is looked for; empty: none yet."""
    receipt: Receipt | None
    decision: DecisionView | None

    @property
    def missing(self) -> bool:
        """Whether there is none of that id that the visitor may see."""
        return bool(self.asked) and self.receipt is None


def playground_section(engine: Models, desk: PolicyDesk) -> Section:
    """Return the pages: what is sent counts on the visitor's key, as any request of it."""
    pages = _Pages(engine, desk)
    return Section(
        "Playground",
        "/playground",
        pages=(Page("/playground", pages.form), Page("/playground/request", pages.request)),
        changes=(
            Change("/playground", "ask_model", pages.send, "member"),
            Change("/playground/explain", "explain_route", pages.explain, "viewer"),
        ),
    )


class _Pages:
    def __init__(self, engine: Models, desk: PolicyDesk) -> None:
        self._engine = engine
        self._desk = desk

    async def form(self, visit: Visit) -> Response:
        """Show the form, with what the address fills in."""
        asked = Asked(policy=visit.query("policy"), model=visit.query("model", "auto"))
        return visit.page("govern/playground.html", await self._view(visit, asked))

    async def request(self, visit: Visit) -> Response:
        """Show what became of a request of the visitor's key, or for an admin of any."""
        asked = visit.query("id").strip()[:_LONGEST_ID]
        receipt = await self._engine.receipt(visit.caller, RequestId(asked)) if asked else None
        view = RequestView(asked, receipt, _decided(receipt))
        return visit.page("govern/request.html", view, status=404 if view.missing else 200)

    async def explain(self, visit: Visit) -> Done:
        """Show the decision for a request; no model is called and nothing is counted."""
        asked = asked_of(visit.form)
        try:
            request = request_of(asked)
            draft = await self._draft(asked)
            decision = await self._engine.explain(visit.caller, request, draft)
        except TurnoutError as error:
            return await self._failed(visit, asked, error)
        under = await self._under(visit, asked, draft)
        view = await self._view(visit, asked, decision=decision_view(decision, under))
        return Done(_answer(visit, view), changed=False)

    async def send(self, visit: Visit) -> Done:
        """Send a request and show its answer, its decision and what it cost."""
        asked, request_id = asked_of(visit.form), new_request_id()
        try:
            check_role(visit.caller)
            request = request_of(asked)
            done = await self._complete(visit, request, request_id)
        except (TurnoutError, UpstreamError, TimeoutError) as error:
            return await self._failed(visit, asked, error, request_id)
        receipt = await self._engine.receipt(visit.caller, request_id)
        view = await self._view(
            visit, asked, decision=_decided(receipt), answer=_answered(done, receipt)
        )
        return Done(_answer(visit, view), changed=False)

    async def _complete(
        self, visit: Visit, request: InferenceRequest, request_id: RequestId
    ) -> Completion:
        async with asyncio.timeout(_SECONDS):
            return await self._engine.complete(visit.caller, request, request_id)

    async def _failed(
        self,
        visit: Visit,
        asked: Asked,
        error: TurnoutError | UpstreamError | TimeoutError,
        request_id: RequestId | None = None,
    ) -> Done:
        receipt = await self._engine.receipt(visit.caller, request_id) if request_id else None
        match error:
            case TurnoutError():
                said, mend = error.message, error.mend
            case UpstreamError():
                said, mend = error.sentence("The model's server"), ""
            case _:
                said, mend = f"There was no answer within {_SECONDS:.0f} s.", "Ask for less."
        view = await self._view(visit, asked, decision=_decided(receipt), error=said, mend=mend)
        return Done(_answer(visit, view, status=400), changed=False)

    async def _view(
        self,
        visit: Visit,
        asked: Asked,
        *,
        decision: DecisionView | None = None,
        answer: AnswerView | None = None,
        error: str = "",
        mend: str = "",
    ) -> PlaygroundView:
        return PlaygroundView(await self._choices(visit), asked, decision, answer, error, mend)

    async def _choices(self, visit: Visit) -> Choices:
        caller, default = visit.caller, await self._desk.default()
        named = list(caller.policies or (default,))
        if caller.admin:
            named += [revision.policy.name for revision in await self._desk.newest()]
            named += [policy.name for policy in self._desk.of_file()]
        try:
            models = self._engine.model_names(caller)
        except TurnoutError:
            # The key's own policy is not there: the form says so once it is sent.
            models = ("auto",)
        return Choices(models, tuple(dict.fromkeys(named)))

    async def _draft(self, asked: Asked) -> Policy | None:
        if not asked.draft:
            return None
        return read_draft(asked.draft, asked.policy or await self._desk.default())

    async def _under(self, visit: Visit, asked: Asked, draft: Policy | None) -> str:
        if draft is not None:
            return f"draft of {draft.name}"
        own = visit.caller.policies[0] if visit.caller.policies else await self._desk.default()
        return asked.policy or own


def _options(none: str, names: Sequence[str]) -> _Options:
    return [("", none), *((name, name) for name in names)]


def _decided(receipt: Receipt | None) -> DecisionView | None:
    if receipt is None or receipt.decision is None:
        return None
    return decision_view(receipt.decision, receipt.policy)


def _answered(done: Completion, receipt: Receipt | None) -> AnswerView:
    parts = done.reply.parts
    refused = "".join(part.text for part in parts if isinstance(part, Refusal))
    return AnswerView(
        text=done.reply.text or refused,
        thoughts="".join(part.text for part in parts if isinstance(part, Reasoning)),
        calls=done.reply.calls,
        finish=done.reply.finish,
        receipt=receipt,
    )


def _answer(visit: Visit, view: PlaygroundView, status: int = 200) -> Response:
    template = "govern/playground_result.html" if visit.partial else "govern/playground.html"
    return visit.page(template, view, status=status)
