"""Follows what works on a run, committing each event before the next is asked for."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import suppress

from turnout.core.clock import Clock
from turnout.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    CheckpointMade,
    ConnectionsAsked,
    Event,
    LoopEnded,
    ModelCallDone,
    ModelCallFailed,
    ModelCallIntended,
    Notice,
    Reviewed,
    StepStarted,
    ToolCallDone,
    ToolCallIntended,
)
from turnout.core.ids import ToolCallId
from turnout.core.money import Micros
from turnout.core.tasks import SurfaceName
from turnout.errors import SandboxError, StoreError
from turnout.runs.stop import ParkedError, StoppedError
from turnout.runs.worker.workshop import Job
from turnout.sandbox.base import LayerRef, Sandbox

__all__ = ["Follower", "close", "follow_to_end"]


class Follower:
    """Commits what a strategy or a review yields, and knows how far the run is."""

    def __init__(self, job: Job, surface: SurfaceName) -> None:
        self._job = job
        self._clock: Clock = job.shop.clock
        self._sandbox: Sandbox | None = None
        self._noted = 0
        self._open = 0
        self._asked_at: float | None = None
        self._tools: dict[ToolCallId, str] = {}
        self._surface = surface
        self._keeps = True
        self._warned = False
        self.step = job.past.step
        """Newest step of the run."""
        self.spent = job.past.spent
        """Known cost of its model calls."""
        self.seconds = job.past.seconds
        """Wall time of its work, without the waiting for people."""
        self.call_failed = job.past.call_failed
        """Whether the newest model call came to nothing."""

    async def follow(
        self,
        events: AsyncIterator[Event],
        sandbox: Sandbox,
        record: Iterable[Event] = (),
        *,
        keeps: bool = True,
    ) -> LoopEnded | Reviewed | None:
        """Commit events until one ends the work and return it; None where it was stopped before.

        A stop that was asked for once lets calls under way end; nobody waits for a person then.
        `record`: what is on record already of the work that these events go on with. It `keeps`
        checkpoints where the work goes on in the workspace that it left.
        """
        self._sandbox, self._noted, self._open, self._asked_at = sandbox, 0, 0, None
        self._keeps = keeps
        for event in record:
            self._note_calls(event)
        started = self._clock.monotonic()
        try:
            return await self._commit_each(events)
        except StoppedError:
            await self._job.record.add(Notice("The step under way was given up."))
            return None
        finally:
            self._end_waiting()
            self.seconds += self._clock.monotonic() - started
            await close(events)

    async def note_rest(self) -> None:
        """Put on record what the followed work asked of the network last, after it has ended."""
        if self._sandbox is not None:
            await self._note_connections(self._sandbox)

    async def _commit_each(self, events: AsyncIterator[Event]) -> LoopEnded | Reviewed | None:
        stop = self._job.stop
        while True:
            waiting = self._asked_at is not None
            unless = stop.unless_asked if waiting else stop.unless_urgent
            event = await unless(_next(events))
            if event is None:
                return None
            await self._commit(event)
            if isinstance(event, LoopEnded | Reviewed):
                return event
            self._note(event)
            if isinstance(event, ToolCallDone) and self._sandbox is not None:
                await self._note_connections(self._sandbox)
            if stop.asked and not self._open:
                return None
            if stop.parked and not self._open:
                raise ParkedError

    async def _commit(self, event: Event) -> None:
        """Commit an event, together with the checkpoint of what it did."""
        job, checkpoints = self._job, self._job.shop.checkpoints
        began = self._clock.monotonic()
        kept = await self._checkpoint(event)
        if kept is None:
            await job.record.add(event)
            return
        why = await checkpoints.keep(job.record.run_id, job.record.epoch, kept)
        seconds = self._clock.monotonic() - began
        made = CheckpointMade(kept.key, kept.base_key, kept.stack, kept.size_bytes, seconds)
        await job.record.add(event, made)
        if why and not self._warned:
            self._warned = True
            await job.warn(f"No other machine can go on with this work: {why}")
        # What stays now goes with the next checkpoint.
        with suppress(StoreError):
            await checkpoints.settle(job.record.run_id, job.record.epoch, kept)

    async def _checkpoint(self, event: Event) -> LayerRef | None:
        """Keep the workspace as a call that may have written left it."""
        keeps = self._job.durable and self._keeps
        if not keeps or not isinstance(event, ToolCallDone) or self._sandbox is None:
            return None
        name = self._tools.get(event.result.call_id, "")
        if not self._job.shop.agent.writes(self._surface, name):
            return None
        try:
            return await self._sandbox.snapshot()
        except SandboxError:
            # Without it a later segment begins the attempt anew; a sandbox that died says so next.
            return None

    async def _note_connections(self, sandbox: Sandbox) -> None:
        asked = sandbox.connections()[self._noted :]
        self._noted += len(asked)
        if asked:
            await self._job.record.add(ConnectionsAsked(asked))

    def _note(self, event: Event) -> None:
        self._note_calls(event)
        match event:
            case StepStarted(step=step):
                self.step = step
            case ModelCallDone(routing=routing):
                self.spent = Micros(self.spent + (routing.cost_micros or 0))
                self.call_failed = False
            case ModelCallFailed():
                self.call_failed = True
            case ApprovalAsked():
                self._asked_at = self._clock.monotonic()
            case ApprovalGiven():
                self._end_waiting()
            case _:
                pass

    def _note_calls(self, event: Event) -> None:
        match event:
            case ModelCallIntended():
                self._open += 1
            case ToolCallIntended(call=call):
                self._open += 1
                self._tools[call.id] = call.name
            case ModelCallDone() | ModelCallFailed() | ToolCallDone():
                # What an earlier segment has begun may not be known here.
                self._open = max(0, self._open - 1)
            case _:
                pass

    def _end_waiting(self) -> None:
        if self._asked_at is not None:
            self.seconds -= self._clock.monotonic() - self._asked_at
            self._asked_at = None


async def follow_to_end(job: Job, events: AsyncIterator[Event]) -> None:
    """Commit all events, or those until a stop is asked for."""
    try:
        while (event := await job.stop.unless_asked(_next(events))) is not None:
            await job.record.add(event)
    except StoppedError:
        return
    finally:
        await close(events)


async def close(events: AsyncIterator[Event]) -> None:
    """End what yields events, so that it cleans up now."""
    if isinstance(events, AsyncGenerator):
        await events.aclose()


async def _next(events: AsyncIterator[Event]) -> Event | None:
    return await anext(events, None)
