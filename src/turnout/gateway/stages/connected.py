"""Going on with a model that calls tools of connections, until it has an answer for the client."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final, Protocol

from turnout.core.clock import Clock
from turnout.core.govern.closing import Charge
from turnout.core.ids import DeploymentId, ModelId, ToolCallId
from turnout.core.money import Micros
from turnout.errors import GatewayError
from turnout.gateway.catalog import Catalog
from turnout.gateway.connections.chat import ChatWeaver
from turnout.gateway.connections.messages import MessagesWeaver
from turnout.gateway.connections.offer import Offer, make_offer
from turnout.gateway.connections.port import KeptTurns, ToolConnections
from turnout.gateway.connections.responses import ResponsesWeaver
from turnout.gateway.connections.rounds import KeptTurn, Rounds, read_kept
from turnout.gateway.connections.running import RoundBounds, Runner
from turnout.gateway.connections.weaver import Weaver
from turnout.gateway.dialog.conversation import Call, Shape
from turnout.gateway.dialog.events import Ending, Piece, Reply
from turnout.gateway.dialog.fold import events_of
from turnout.gateway.exchange import DeclaredTool, InferenceRequest
from turnout.gateway.stages.answers import Answer
from turnout.gateway.stages.trail import Trail

__all__ = ["ConnectedServing", "Left", "RoundBounds", "Serves"]

_WEAVERS: Final[Mapping[Shape, Weaver]] = {
    "chat": ChatWeaver(),
    "messages": MessagesWeaver(),
    "responses": ResponsesWeaver(),
}


Left = Callable[[Sequence[Charge]], Micros | None]
"""What a request's charges leave to spend, its own reservation taken off; None: no cap."""


class Serves(Protocol):
    """Asks deployments in turn until one answers."""

    async def whole(self, trail: Trail, order: Sequence[DeploymentId]) -> Answer:
        """Return the answer of the first deployment that gives one."""
        ...

    def stream(
        self, trail: Trail, order: Sequence[DeploymentId]
    ) -> AsyncGenerator[Piece | Ending, None]:
        """Yield what the client may see as it comes, and the ending last."""
        ...


@dataclass(frozen=True, slots=True)
class _Parts:
    """What is needed to go on with a model."""

    connections: ToolConnections
    kept: KeptTurns
    catalog: Catalog
    clock: Clock
    bounds: RoundBounds
    left: Left


def _no_cap(_: Sequence[Charge]) -> Micros | None:
    return None


class ConnectedServing:
    """Serves as another does, and runs the tools of the connections that a request names."""

    def __init__(
        self,
        serving: Serves,
        connections: ToolConnections,
        kept: KeptTurns,
        catalog: Catalog,
        clock: Clock,
        bounds: RoundBounds | None = None,
        left: Left = _no_cap,
    ) -> None:
        self._serving = serving
        self._parts = _Parts(connections, kept, catalog, clock, bounds or RoundBounds(), left)

    async def whole(self, trail: Trail, order: Sequence[DeploymentId]) -> Answer:
        """Return the answer that is for the client, with all that the model said on its way there.

        The errors of the serving, and `GatewayError` where a connection cannot be used.
        """
        if not trail.request.connections:
            return await self._serving.whole(trail, order)
        way = await _Way.begin(trail, order, self._parts)
        try:
            while True:
                answer = await self._serving.whole(trail, way.order)
                sight = way.rounds.sight()
                for event in events_of(answer.reply.parts):
                    sight.piece(Piece((event,)))
                done, _ = await way.after_round(answer.reply)
                if done is not None:
                    return answer if way.untouched else Answer(done, None)
                way.go_on()
        finally:
            way.end()

    def stream(
        self, trail: Trail, order: Sequence[DeploymentId]
    ) -> AsyncGenerator[Piece | Ending, None]:
        """Yield what the client may see as it comes, without the calls that are not its own."""
        if not trail.request.connections:
            return self._serving.stream(trail, order)
        return self._streamed(trail, order)

    async def _streamed(
        self, trail: Trail, order: Sequence[DeploymentId]
    ) -> AsyncGenerator[Piece | Ending, None]:
        way = await _Way.begin(trail, order, self._parts)
        try:
            while True:
                sight = way.rounds.sight()
                stop_sequence: str | None = None
                async with aclosing(self._serving.stream(trail, way.order)) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, Ending):
                            stop_sequence = piece.stop_sequence
                        elif (shown := sight.piece(piece)) is not None:
                            yield shown
                if trail.reply is None:
                    raise RuntimeError("the serving leaves no reply")
                done, shows = await way.after_round(trail.reply)
                for shown in shows:
                    yield shown
                if done is not None:
                    yield Ending(done.finish, stop_sequence=stop_sequence)
                    return
                way.go_on()
        finally:
            way.end()


class _Way:
    """One request's way from the first round to the last, noted on its trail."""

    def __init__(
        self, trail: Trail, order: Sequence[DeploymentId], rounds: Rounds, parts: _Parts
    ) -> None:
        self.order = order
        self.rounds = rounds
        self.untouched = False
        """Whether the answer is the first one, and all of it is for the client."""
        self._trail = trail
        self._parts = parts
        self._asked = trail.request
        self._count = 0
        self._last = False
        """Whether the model has to answer now."""
        self._ttft: int | None = None
        self._fallback = False
        self._repairs: tuple[str, ...] = ()
        self._called: list[str] = []
        self._runner = Runner(
            rounds.offer, parts.connections, parts.clock, parts.bounds, trail.connection_calls
        )
        trail.request = rounds.request

    @classmethod
    async def begin(cls, trail: Trail, order: Sequence[DeploymentId], parts: _Parts) -> "_Way":
        """Find out what the model can be offered, and put the request in those terms."""
        request, policy = trail.request, trail.policy
        if policy is None:
            raise RuntimeError("a request is served under a policy")
        copies = request.body.get("n")
        if isinstance(copies, int) and copies > 1:
            raise GatewayError(
                "`n` must be 1 where the request names a connection.",
                status=400,
                code="invalid_request",
                param="n",
            )
        offer = await make_offer(request, policy.tools, parts.connections)
        trail.outside = tuple(dict.fromkeys((*trail.outside, *offer.outside)))
        kept = await _kept(request, _scope(trail), parts.kept)
        weaver = _WEAVERS[request.shape]
        return cls(trail, order, Rounds(offer, weaver, _woven(request, offer, weaver, kept)), parts)

    async def after_round(self, reply: Reply) -> tuple[Reply | None, list[Piece]]:
        """Return the whole answer, None where the model is to be asked again; and what is shown."""
        places = self.rounds.offer.places
        self._count += 1
        self._note_round()
        ours, theirs = self.rounds.ours(reply), self.rounds.theirs(reply)
        if self._last or not ours:
            self._called += [call.name for call in theirs]
            return self._done(reply, theirs), []
        serving = self._trail.serving
        if serving is None:
            raise RuntimeError("nobody answered")
        self._called += [places[c.name].full_name if c in ours else c.name for c in reply.calls]
        ran = await self._runner.run(ours)
        shown = list(self.rounds.show(ran))
        self.rounds.went_on(reply, ran, serving.model)
        if theirs:
            scope = _scope(self._trail)
            await self._parts.kept.keep(scope, theirs[0].id, self.rounds.kept().text())
            return self._done(reply, theirs), shown
        return None, shown

    def end(self) -> None:
        """Leave on the trail what is true of all rounds together."""
        self._note_round()
        trail = self._trail
        trail.request = self._asked
        trail.ttft_ms, trail.fallback = self._ttft, self._fallback
        trail.repairs, trail.tools_called = self._repairs, tuple(self._called)

    def _note_round(self) -> None:
        trail = self._trail
        self._ttft = trail.ttft_ms if self._ttft is None else self._ttft
        self._fallback = self._fallback or trail.fallback
        self._repairs = tuple(dict.fromkeys((*self._repairs, *trail.repairs)))

    def _done(self, last: Reply, theirs: Sequence[Call]) -> Reply:
        whole = self.rounds.reply(last)
        if self._last and len(last.calls) > len(theirs) and not (last.text or theirs):
            raise GatewayError(
                f"The model called tools in {self._count} answers in a row, and answered nothing.",
                status=502,
                code="no_answer",
                mend="Ask for less at once, or name fewer tools in `allowed_tools`.",
            )
        self.untouched = self._count == 1 and len(theirs) == len(last.calls)
        self._trail.reply = last if self.untouched else whole
        self._trail.calls = tuple(call.id for call in theirs)
        return whole

    def go_on(self) -> None:
        """Have the next round follow."""
        trail, parts, serving = self._trail, self._parts, self._trail.serving
        if serving is None:
            raise RuntimeError("nobody answered")
        trail.next_round()
        # A conversation with open calls stays on its model.
        same = [d for d in self.order if self._model(d) == serving.model and d != serving.id]
        self.order = (serving.id, *same)
        self._last = self._count >= parts.bounds.rounds or self._spent()
        if self._last:
            self.rounds.choose("none")
        elif trail.request.tool_choice != "auto":
            # It is satisfied; kept, it would have the model call tools for ever.
            self.rounds.choose("auto")
        trail.request = self.rounds.request

    def _model(self, wanted: DeploymentId) -> ModelId | None:
        found = self._parts.catalog.deployment(wanted)
        return None if found is None else found.model

    def _spent(self) -> bool:
        """Whether the request has used up its tool calls, or what it may cost."""
        most = self._asked.body.get("max_tool_calls")
        if isinstance(most, int) and self.rounds.ran >= most:
            return True
        left = self._parts.left(self._trail.charges)
        cost = self._trail.cost
        return left is not None and cost is not None and cost >= left + self._trail.worst


def _scope(trail: Trail) -> str:
    # Some models number their calls from 0 in every conversation: a session keeps them apart.
    return f"{trail.caller.key}\n{trail.request.session or ''}"


async def _kept(
    request: InferenceRequest, scope: str, kept: KeptTurns
) -> dict[ToolCallId, KeptTurn]:
    if not request.past_calls:
        return {}
    found = await kept.get(scope, request.past_calls)
    return {call: read_kept(text) for call, text in found.items()}


def _woven(
    request: InferenceRequest,
    offer: Offer,
    weaver: Weaver,
    kept: Mapping[ToolCallId, KeptTurn],
) -> InferenceRequest:
    """Return the request as the model's side is to see it: no connections, only functions."""
    body = weaver.restore(request.body, {call: turn.entries for call, turn in kept.items()})
    thoughts = {c: t for turn in kept.values() for c, t in turn.thoughts.items()}
    own = [tool for tool in request.tools if not tool.name.startswith("mcp:")]
    return replace(
        request,
        body=weaver.declare(body, offer),
        tools=(*own, *(DeclaredTool(name) for name in offer.places)),
        thoughts={**request.thoughts, **thoughts},
        connections=(),
    )
