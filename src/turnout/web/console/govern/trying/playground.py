"""One request, sent or only explained, with the decision about it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from turnout.core.ids import RequestId, new_request_id
from turnout.core.policies import Policy
from turnout.core.receipts import Receipt
from turnout.errors import TurnoutError, UsageError
from turnout.gateway.access import check_role
from turnout.gateway.dialog.conversation import Reasoning, Refusal
from turnout.gateway.exchange import Completion, InferenceRequest, UpstreamError
from turnout.gateway.policy.desk import PolicyDesk
from turnout.web.console.failures import failure_of
from turnout.web.console.govern.drafts import read_draft
from turnout.web.console.govern.parts import Models
from turnout.web.console.govern.trying.asking import (
    Asked,
    Choices,
    asked_of,
    request_of,
    streamed,
)
from turnout.web.console.govern.trying.coming import AnswerView, Coming, Patience, event_of
from turnout.web.console.govern.views.decisions import DecisionView, decision_view
from turnout.web.console.sections import Change, Done, Page, Section
from turnout.web.console.visits import Visit
from turnout.web.runs.streams import Streams

__all__ = [
    "PlaygroundView",
    "RequestView",
    "playground_section",
]

_LONGEST_ID: Final = 100
_SECONDS: Final = 180.0
"""That an answer is waited for where the page cannot tell how it comes."""
_QUICKER: Final = (
    "Ask for a shorter answer, name a quicker model, or look at Models whether its server is well."
)

_Options = Sequence[tuple[str, str]]
"""What is sent and what is shown of each choice."""


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


def playground_section(
    engine: Models, desk: PolicyDesk, streams: Streams, patience: Patience | None = None
) -> Section:
    """Return the pages: what is sent counts on the visitor's key, as any request of it."""
    pages = _Pages(engine, desk, streams, patience or Patience())
    return Section(
        "Playground",
        "/playground",
        pages=(
            Page("/playground", pages.form),
            Page("/playground/request", pages.request),
            Page("/playground/stopped", pages.stopped),
        ),
        changes=(
            Change("/playground", "ask_model", pages.send, "member"),
            Change("/playground/explain", "explain_route", pages.explain, "viewer"),
        ),
    )


class _Pages:
    def __init__(
        self, engine: Models, desk: PolicyDesk, streams: Streams, patience: Patience
    ) -> None:
        self._engine = engine
        self._desk = desk
        self._streams = streams
        self._patience = patience

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

    async def stopped(self, visit: Visit) -> Response:
        """Say that an answer was stopped: the page has closed its stream, and that ends it."""
        return visit.page("govern/playground_stopped.html", None)

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
        view = await self._view(
            visit, asked, decision=decision_view(decision, under, is_draft=draft is not None)
        )
        return Done(_answer(visit, view), changed=False)

    async def send(self, visit: Visit) -> Done:
        """Send a request and show its answer, its decision and what it cost.

        A page that can be told piece by piece is: it ends the request by leaving.
        """
        asked, request_id = asked_of(visit.form), new_request_id()
        try:
            check_role(visit.caller)
            if asked.draft.strip():
                raise UsageError(
                    "Nothing is sent under a draft of a policy.",
                    mend="Empty that field, or press `Explain only`.",
                )
            request = request_of(asked)
            if visit.partial:
                told = self._told(visit, asked, streamed(request), request_id)
                return Done(
                    self._streams.sending(told, _still(visit), visit.caller.key), changed=False
                )
            done = await self._complete(visit, request, request_id)
        except (TurnoutError, UpstreamError, TimeoutError) as error:
            return await self._failed(visit, asked, error, request_id)
        receipt = await self._engine.receipt(visit.caller, request_id)
        view = await self._view(
            visit, asked, decision=_decided(receipt), answer=_answered(done, receipt)
        )
        return Done(_answer(visit, view), changed=False)

    async def _told(
        self, visit: Visit, asked: Asked, request: InferenceRequest, request_id: RequestId
    ) -> AsyncGenerator[bytes, None]:
        """Yield what the page is told: that it is asked, each piece, and the whole in the end."""
        coming = Coming(request_id, self._patience)
        yield event_of(visit.page("govern/playground_begun.html", coming.seen()))
        hearing = asyncio.create_task(
            coming.hear(self._engine.stream(visit.caller, request, request_id))
        )
        try:
            while await coming.moves(hearing):
                yield event_of(visit.page("govern/playground_news.html", coming.seen()))
        finally:
            # Also where the page is left: that ends the request, and is on its receipt.
            hearing.cancel()
            await asyncio.wait([hearing])
        receipt = await self._engine.receipt(visit.caller, request_id)
        error = coming.ended_by(hearing)
        said, mend = ("", "") if error is None else _words(error, self._patience.silent)
        answer = coming.answer(receipt, whole=error is None)
        view = await self._view(
            visit, asked, decision=_decided(receipt), answer=answer, error=said, mend=mend
        )
        yield event_of(visit.page("govern/playground_result.html", view))

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
        said, mend = _words(error, _SECONDS)
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
        return await read_draft(asked.draft, asked.policy or await self._desk.default())

    async def _under(self, visit: Visit, asked: Asked, draft: Policy | None) -> str:
        if draft is not None:
            return f"draft of {draft.name}"
        own = visit.caller.policies[0] if visit.caller.policies else await self._desk.default()
        return asked.policy or own


def _options(none: str, names: Sequence[str]) -> _Options:
    return [("", none), *((name, name) for name in names)]


def _words(error: BaseException, seconds: float) -> tuple[str, str]:
    """Return what is said of an error, and what helps."""
    match error:
        case TurnoutError():
            return error.message, error.mend
        case UpstreamError():
            return error.sentence("The model's server"), ""
        case TimeoutError():
            return str(error) or f"There was no answer within {seconds:.0f} s.", _QUICKER
        case _:
            return failure_of(RuntimeError()).message, ""


def _still(visit: Visit) -> Callable[[], None]:
    def check() -> None:
        check_role(visit.again())

    return check


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
