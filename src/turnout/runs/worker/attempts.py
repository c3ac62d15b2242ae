"""The attempts of a run, each in a workspace and a conversation of its own."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from turnout.agent.base import Brief
from turnout.core.events import (
    AttemptChosen,
    AttemptStarted,
    Event,
    LoopEnded,
    Notice,
    PatchMade,
    VerdictGiven,
)
from turnout.core.runs import Patch
from turnout.errors import SandboxError, SandboxUnavailableError, StoreError
from turnout.runs.ports import StrategyName
from turnout.runs.stop import ParkedError, Stop
from turnout.runs.worker.again import unsaid
from turnout.runs.worker.choosing import Tried, best, is_accepted
from turnout.runs.worker.follow import Follower
from turnout.runs.worker.judging import Opening, test_patch, verdict_on
from turnout.runs.worker.lessons import lessons
from turnout.runs.worker.past import PastAttempt
from turnout.runs.worker.reviewing import review_patch
from turnout.runs.worker.workshop import Effort, Job, Site
from turnout.sandbox.base import NO_EGRESS, Egress, LayerRef, Sandbox
from turnout.sandbox.egress.rules import rule_text

__all__ = ["Result", "attempt_all"]

_NOTHING: Final = Patch(b"", ())
_DIFF_SECONDS: Final = 120.0
"""For comparing the workspace with its base, also after an urgent stop."""


@dataclass(frozen=True, slots=True)
class Result:
    """The attempt that counts, and how the run as a whole ended."""

    chosen: Tried
    end: LoopEnded
    next_step: int
    strategy: StrategyName
    """What the chosen attempt was worked with."""


async def attempt_all(job: Job, site: Site, opening: Opening) -> Result:
    """Attempt the task until our tests accept the result or no attempt is left."""
    attempts = _Attempts(job, site, opening)
    await attempts.work()
    return await attempts.choose()


class _Attempts:
    def __init__(self, job: Job, site: Site, opening: Opening) -> None:
        self._job = job
        self._site = site
        self._opening = opening
        self._effort: Effort = job.shop.effort
        self._follower = Follower(job, site.task.surface)
        self._tried: list[Tried] = []

    async def work(self) -> None:
        for number in range(1, self._effort.attempts + 1):
            earlier = self._job.past.attempt(number)
            if earlier is not None and not await self._can_go_on(earlier):
                await self._job.warn("The work under way is lost; the attempt begins anew.")
                earlier = None
                await self._say_started(number)
            elif earlier is None and self._effort.attempts > 1:
                await self._say_started(number)
            tried = await self._attempt(self._brief(number, earlier), earlier)
            self._tried.append(tried)
            if is_accepted(tried) or not await self._may_go_on(tried):
                return

    async def choose(self) -> Result:
        chosen, why = best(self._tried)
        last = self._tried[-1]
        past = self._job.past
        if self._effort.attempts > 1 and past.chosen is None:
            await self._job.record.add(AttemptChosen(chosen.number, why))
        if not past.judged:
            await self._job.record.add(VerdictGiven(chosen.verdict))
        end = last.end if last.stopped else chosen.end
        return Result(chosen, end, self._follower.step + 1, self._strategy(chosen.number))

    async def _say_started(self, number: int) -> None:
        of, objective = self._effort.attempts, self._effort.objective_of(number)
        told = lessons(self._tried)
        await self._job.record.add(AttemptStarted(number, of, objective, told))

    async def _can_go_on(self, earlier: PastAttempt) -> bool:
        """Whether what an attempt had done is all kept: its workspace and its conversation."""
        if earlier.end is not None and earlier.patch is not None:
            return True
        if not self._keeps(earlier):
            # It goes by its record alone, and begins in a fresh workspace.
            return True
        agent, surface = self._job.shop.agent, self._site.task.surface
        lost = any(agent.writes(surface, tool) for tool in earlier.written)
        if lost or earlier.checkpoint is None:
            return not lost
        try:
            layer = await self._restored(earlier)
            async with self._job.sandbox(self._site.base, NO_EGRESS, layer):
                return True
        except SandboxError as error:
            await self._job.warn(f"The workspace could not be had: {error.message}")
            return False

    async def _restored(self, earlier: PastAttempt | None) -> LayerRef | None:
        """Return the layer that an attempt goes on with; None where it begins at base."""
        if earlier is None or earlier.checkpoint is None or not self._keeps(earlier):
            return None
        job, kept = self._job, earlier.checkpoint
        layer = LayerRef(kept.layer, kept.base, kept.stack, kept.size_bytes)
        return await job.shop.checkpoints.restore(job.record.run_id, self._site.base, layer)

    def _keeps(self, earlier: PastAttempt) -> bool:
        """Whether an attempt goes on in the workspace that it left."""
        return self._strategy(earlier.number) == "loop"

    async def _may_go_on(self, tried: Tried) -> bool:
        """Whether another attempt can come to something else; people are told why it cannot."""
        if tried.number == self._effort.attempts or tried.stopped or self._job.stop.asked:
            return False
        why = ""
        if self._follower.call_failed:
            why = "no model could be reached"
        elif tried.blocked and tried.review is not None and not tried.review.decided:
            why = "the review came to no decision"
        elif self._effort.max_spend is not None and self._follower.spent >= self._effort.max_spend:
            why = "the run has spent what it may"
        elif (most := self._effort.max_seconds) is not None and self._follower.seconds >= most:
            why = "the run's time is over"
        if why:
            await self._job.record.add(Notice(f"No further attempt: {why}."))
        return not why

    def _brief(self, number: int, earlier: PastAttempt | None) -> Brief:
        escalated = number > self._effort.escalate_after
        return Brief(
            run_id=self._job.record.run_id,
            prompt=self._site.task.prompt,
            surface=self._site.task.surface,
            test_command=self._opening.command,
            tests_before=self._opening.report,
            test_files=self._opening.files,
            test_paths=self._job.shop.test_paths,
            reachable=_reachable(self._site.egress.work),
            attempt=number,
            lessons=earlier.lessons if earlier else lessons(self._tried),
            objective=self._effort.objective_of(number) if escalated else None,
            first_step=earlier.first_step if earlier else self._follower.step + 1,
            spent=earlier.spent_before if earlier else self._follower.spent,
            seconds=self._follower.seconds,
        )

    def _strategy(self, number: int) -> StrategyName:
        escalated = number > self._effort.escalate_after
        access = self._job.access
        return access.escalated or access.strategy if escalated else access.strategy

    async def _attempt(self, brief: Brief, earlier: PastAttempt | None) -> Tried:
        """Make one attempt, or the rest of it; whatever ends it, the work is kept and judged."""
        if earlier is not None and earlier.end is not None and earlier.patch is not None:
            end, patch = earlier.end, earlier.patch
        else:
            end, patch = await self._work_on(brief, earlier)
        known = earlier.tests if earlier else None
        closing = await test_patch(self._job, self._site, self._opening, patch, known)
        verdict = verdict_on(patch, self._opening, closing, self._job.shop.test_paths)
        tried = Tried(brief.attempt, end, patch, closing, verdict)
        if self._effort.review == "off" or not is_accepted(tried):
            return tried
        if earlier is not None and earlier.review is not None:
            return replace(tried, review=earlier.review)
        begun = earlier.review_step if earlier else None
        review = await review_patch(self._job, self._site, self._follower, brief, tried, begun)
        return replace(tried, review=review)

    async def _work_on(self, brief: Brief, earlier: PastAttempt | None) -> tuple[LoopEnded, Patch]:
        job, site = self._job, self._site
        try:
            layer = await self._restored(earlier)
            async with job.sandbox(site.base, site.egress.work, layer) as sandbox:
                return await self._work_in(sandbox, brief, earlier)
        except (SandboxError, SandboxUnavailableError) as error:
            if not self._tried:
                raise
            end = LoopEnded("failed", f"The sandbox failed: {error}")
            await job.record.add(end)
            return end, _NOTHING

    async def _work_in(
        self, sandbox: Sandbox, brief: Brief, earlier: PastAttempt | None
    ) -> tuple[LoopEnded, Patch]:
        job, goes_on, patch = self._job, False, _NOTHING
        try:
            end = earlier.end if earlier and self._keeps(earlier) else None
            if end is None:
                end = await self._follow(sandbox, brief, earlier.work if earlier else ())
        except SandboxError as error:
            end = LoopEnded("failed", f"The sandbox failed: {error}")
            await job.record.add(end)
        except (ParkedError, StoreError):
            goes_on = True
            raise
        except asyncio.CancelledError:
            goes_on = job.durable
            raise
        finally:
            if not goes_on:
                patch = await self._diff(sandbox)
                await self._follower.note_rest()
        return end, patch

    async def _follow(self, sandbox: Sandbox, brief: Brief, record: Sequence[Event]) -> LoopEnded:
        job, name = self._job, self._strategy(brief.attempt)
        strategy = job.shop.agent.strategy(name, job.access.client, sandbox, job.approver)
        events = strategy.run(brief, record) if record else strategy.run(brief)
        keeps = name == "loop"
        if record and not keeps:
            events = unsaid(events, record)
        end = await self._follower.follow(events, sandbox, record, keeps=keeps)
        if not isinstance(end, LoopEnded):
            end = _unsaid_end(job.stop)
            await job.record.add(end)
        return end

    async def _diff(self, sandbox: Sandbox) -> Patch:
        try:
            async with asyncio.timeout(_DIFF_SECONDS):
                await sandbox.kill_all()
                patch = await sandbox.diff()
        except (SandboxError, TimeoutError) as error:
            await self._job.warn(f"The work so far could not be read: {error}")
            return _NOTHING
        await self._job.record.add(PatchMade(patch))
        return patch


def _unsaid_end(stop: Stop) -> LoopEnded:
    if stop.asked:
        return LoopEnded("cancelled", stop.why)
    return LoopEnded("failed", "The strategy ended without saying how.")


def _reachable(egress: Egress) -> tuple[str, ...]:
    """Return what a model is told of the hosts that its commands reach, and of secrets for them."""
    hosts = dict.fromkeys(map(rule_text, egress.rules))
    secrets = [
        f"{secret.host}, where over TLS ${secret.variable} in a header becomes a secret"
        for secret in egress.secrets
    ]
    return (*hosts, *secrets)
