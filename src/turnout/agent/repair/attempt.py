"""One candidate: asked for, put in place, judged, and taken back where the tests refuse it."""

import asyncio
import json
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from turnout.agent.base import AgentConfig, ModelClient
from turnout.agent.loop.calls import OUT_OF_TIME, time_is_over
from turnout.agent.loop.state import idempotency_key
from turnout.agent.repair.grafting.graft import Candidate, Place, Rejected, graft
from turnout.agent.repair.grafting.lesser import lesser
from turnout.agent.repair.judge import Judge, Judgement
from turnout.agent.repair.ladder import Rung
from turnout.agent.repair.prompting import Prompter
from turnout.agent.repair.showing.marks import unmarked
from turnout.agent.repair.suspects import Suspects
from turnout.core.clock import Deadline
from turnout.core.events import (
    Event,
    ModelCallDone,
    ModelCallFailed,
    ModelCallIntended,
    Notice,
    StepStarted,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.ids import RunId, SessionId, ToolCallId
from turnout.core.inference import ModelReply, ModelRequest, RoutingAsk
from turnout.core.json import JsonObject
from turnout.core.money import Micros
from turnout.core.runs import TestReport
from turnout.core.tools import ToolCall, ToolResult
from turnout.errors import GatewayError, ToolError
from turnout.sandbox.base import Sandbox

__all__ = ["Attempt", "Kit"]

_TOP_P = 0.95


@dataclass(frozen=True, slots=True)
class Kit:
    """What every attempt of a run works with."""

    run_id: RunId
    client: ModelClient
    sandbox: Sandbox
    config: AgentConfig
    deadline: Deadline
    prompter: Prompter
    suspects: Suspects
    others: Mapping[str, bytes]
    """Files beside the Python modules that an edit may change."""
    judge: Judge
    max_tokens: int
    alternatives: int = 0
    """Of each token, how many the model is asked to tell."""


class Attempt:
    """Yields the events of one candidate; its state is read when they are over."""

    def __init__(self, kit: Kit, step: int, rung: Rung, tried: set[bytes]) -> None:
        self.solved: Candidate | None = None
        """The candidate with which all tests pass; it stays in the workspace."""
        self.progress: TestReport | None = None
        """The whole suite with a candidate that stays, though not all tests pass."""
        self.cost = Micros(0)
        """Known cost of the model call."""
        self.reply: ModelReply | None = None
        """What the model said, unless it went on with something said before."""
        self.unchanged = False
        """Whether the reply repeated the code, or an earlier reply."""
        self.failure: ModelCallFailed | None = None
        """Set where no model answered."""
        self.stuck = ""
        """Why the files could not be put back; nothing can be tried after that."""
        self._kit = kit
        self._step = step
        self._rung = rung
        self._tried = tried
        self._name = f"repair-{step}"
        self._calls: Counter[str] = Counter()
        self._put_last: Candidate | None = None

    @property
    def whole(self) -> bool:
        """Whether a whole reply was asked for, none that goes on with another."""
        return self._rung.fork is None

    async def events(self) -> AsyncIterator[Event]:
        """Ask, edit, test, and restore what was there unless that was progress."""
        objective = self._kit.config.steps["act"].objective
        yield StepStarted(self._step, "act", objective)
        request = self._request()
        yield ModelCallIntended(
            self._step, "act", self._name, request.idempotency_key, request.model, request.messages
        )
        try:
            async with asyncio.timeout(self._kit.deadline.left):
                reply = await self._kit.client.call(request)
        except (GatewayError, TimeoutError) as error:
            self.failure = self._failed(request, error)
            yield self.failure
            return
        self.cost = Micros(reply.routing.cost_micros or 0)
        yield self._done(request, reply)
        candidate = self._graft(reply)
        if isinstance(candidate, Rejected):
            self.unchanged = candidate.why == "unchanged"
            yield Notice(f"Candidate {self._step} is not tried: {candidate.text}")
            return
        async for event in self._try(candidate):
            yield event

    def _request(self) -> ModelRequest:
        step = self._kit.config.steps["act"]
        most = self._kit.prompter.most_tokens(self._rung) or self._kit.max_tokens
        sampled = self._rung.temperature > 0
        fork = self._rung.fork
        return ModelRequest(
            self._kit.prompter.messages(self._rung),
            "act",
            RoutingAsk(step.objective, step.task, SessionId(self._kit.run_id)),
            idempotency_key(self._kit.run_id, self._step),
            model=step.model,
            max_tokens=min(most, self._kit.max_tokens),
            temperature=self._rung.temperature,
            top_p=_TOP_P if sampled else None,
            seed=self._rung.seed,
            thinking=step.thinking,
            stop=fork.stops if fork else (),
            alternatives=0 if fork else self._kit.alternatives,
        )

    def _done(self, request: ModelRequest, reply: ModelReply) -> ModelCallDone:
        return ModelCallDone(
            self._step,
            "act",
            self._name,
            request.idempotency_key,
            reply.request_id,
            reply.message,
            reply.finish_reason,
            reply.usage,
            reply.routing,
            reply.latency_ms,
            reply.alternatives,
        )

    def _failed(self, request: ModelRequest, error: GatewayError | TimeoutError) -> ModelCallFailed:
        key = request.idempotency_key
        if isinstance(error, GatewayError):
            status, code, text = error.status, error.code, str(error)
            return ModelCallFailed(self._step, "act", self._name, key, status, code, text)
        text = time_is_over(self._kit.config)
        return ModelCallFailed(self._step, "act", self._name, key, None, OUT_OF_TIME, text)

    def _graft(self, reply: ModelReply) -> Candidate | Rejected:
        suspects, text = self._kit.suspects, reply.message.content
        if self._rung.fork is None:
            self.reply = reply
        else:
            ended = self._rung.fork.ended(text, cut=reply.finish_reason == "length")
            if ended is None:
                return Rejected("no_code", "It came to no end.")
            text = ended
        result = graft(
            unmarked(text),
            suspects.modules,
            self._kit.others,
            suspects.targets,
            cut=self._rung.fork is None and reply.finish_reason == "length",
            place=self._place(),
        )
        if isinstance(result, Rejected):
            return result
        fresh = next(self._fresh([result]), None)
        return fresh or Rejected("unchanged", "It is the same as an earlier candidate.")

    def _place(self) -> Place | None:
        rung = self._rung
        if rung.target is None or rung.region is None:
            return None
        return Place(rung.target, rung.region)

    async def _try(self, candidate: Candidate) -> AsyncIterator[Event]:
        """Try a candidate; where it does too much, also without one of its changes."""
        waiting = deque([candidate])
        while waiting:
            each = waiting.popleft()
            async for event in self._put(each):
                yield event
            if each is not self._put_last:
                return
            run = self._call("run_tests", {})
            yield ToolCallIntended(self._step, run)
            started = self._kit.deadline.clock.monotonic()
            judgement = await self._judge(each)
            yield self._result(run, started, judgement.text)
            if judgement.stays or self.stuck:
                return
            if judgement.lost and each is candidate:
                waiting.extend(self._fresh(lesser(candidate, self._before())))

    async def _put(self, candidate: Candidate) -> AsyncIterator[Event]:
        """Write a candidate's files; it is then the one that was put last."""
        self._put_last = None
        for number, (path, data) in enumerate(candidate.files.items()):
            names = [each.name for each in candidate.changed if each.path == path and each.name]
            edit = self._call("edit_file", {"path": path, "replaces": names})
            yield ToolCallIntended(self._step, edit)
            started = self._kit.deadline.clock.monotonic()
            try:
                await self._kit.sandbox.write(path, data)
            except ToolError as error:
                await self._restore(list(candidate.files)[:number])
                yield self._result(edit, started, f"Nothing was changed: {error}", is_error=True)
                return
            yield self._result(edit, started, f"Replaced {', '.join(names) or 'text'} in {path}.")
        self._put_last = candidate

    async def _judge(self, candidate: Candidate) -> Judgement:
        judgement = await self._kit.judge.judge()
        if judgement.passed:
            self.solved = candidate
            return judgement
        if judgement.stays:
            self.progress = judgement.progress
            return replace(judgement, text=f"{judgement.text} The candidate stays.")
        await self._restore(candidate.files)
        await self._kit.judge.settle()
        kept = self.stuck or "The files are as they were before."
        return replace(judgement, text=f"{judgement.text} {kept}")

    def _fresh(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """Yield those that were not tried before, which are tried now."""
        for each in candidates:
            parts = (part for item in sorted(each.files.items()) for part in _bytes(item))
            mark = b"\0".join(parts)
            if mark not in self._tried:
                self._tried.add(mark)
                yield each

    def _before(self) -> dict[str, bytes]:
        """Return the files as they were before any candidate."""
        original = {module.path: module.data for module in self._kit.suspects.modules}
        return {**original, **self._kit.others}

    async def _restore(self, paths: Iterable[str]) -> None:
        original = self._before()
        for path in paths:
            try:
                await self._kit.sandbox.write(path, original[path])
            except ToolError as error:
                # Only code that the tests ran can have done this.
                self.stuck = f"{path} could not be put back: {error}"

    def _call(self, name: Literal["edit_file", "run_tests"], arguments: JsonObject) -> ToolCall:
        self._calls[name] += 1
        call_id = ToolCallId(f"{self._name}-{name}-{self._calls[name]}")
        return ToolCall(call_id, name, json.dumps(arguments))

    def _result(
        self, call: ToolCall, started: float, text: str, *, is_error: bool = False
    ) -> ToolCallDone:
        seconds = self._kit.deadline.clock.monotonic() - started
        return ToolCallDone(self._step, ToolResult(call.id, text, is_error), seconds)


def _bytes(item: tuple[str, bytes]) -> tuple[bytes, bytes]:
    return item[0].encode(errors="surrogateescape"), item[1]
