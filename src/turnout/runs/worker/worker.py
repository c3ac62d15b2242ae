"""Carries one run from its base commit to its verdict, committing each fact as it happens."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from turnout.agent.approval import Approver, Unattended
from turnout.agent.discreet import DiscreetClient
from turnout.agent.explain import plain_explanation
from turnout.core.events import Explained, Notice, ResourcesUsed, RunEnded
from turnout.core.tasks import Task
from turnout.errors import SandboxError, StaleEpochError, StoreError, TurnoutError
from turnout.runs.intake import Intake
from turnout.runs.ports import Explanation, ModelAccess
from turnout.runs.record import Recorder
from turnout.runs.stop import ParkedError, Stop, StoppedError
from turnout.runs.worker.attempts import Result, attempt_all
from turnout.runs.worker.follow import follow_to_end
from turnout.runs.worker.judging import Opening, look_at_base, prepare
from turnout.runs.worker.past import Past
from turnout.runs.worker.reviewing import review_alone
from turnout.runs.worker.workshop import Job, Site, Workshop
from turnout.sandbox.base import BaseSpec

__all__ = ["RunWorker"]

_ASKED: Final = frozenset({"answered", "step_limit", "stuck"})
"""Outcomes of the loop after which its model can be asked to describe the change."""

_LONGEST: Final = 200
"""Characters of a command that a line shows."""


class RunWorker:
    """Works on one run; its record is the only result."""

    def __init__(
        self,
        workshop: Workshop,
        access: ModelAccess,
        recorder: Recorder,
        stop: Stop,
        approver: Approver | None = None,
        past: Past | None = None,
    ) -> None:
        """Go on from a `past`, as a segment of a run that outlives the process; None: no such."""
        client = DiscreetClient(access.client, workshop.redactor)
        self._job = Job(
            workshop,
            replace(access, client=client),
            recorder,
            stop,
            approver or Unattended(),
            past or Past(),
            durable=past is not None,
        )

    async def work(self, intake: Intake) -> None:
        """Work until the run has ended and say so on record, whatever ended it.

        Errors other than those of the sandbox come out after that, cancellation likewise. What
        outlives the process is not ended by `ParkedError`, cancellation and `StoreError`.
        """
        end: RunEnded | None = RunEnded("failed", "A defect of Turnout ended the run.")
        try:
            end = await self._stages(intake)
        except ParkedError:
            end = None
            await self._job.record.add(*self._used())
            raise
        except StaleEpochError:
            end = None
            raise
        except StoppedError:
            end = RunEnded("cancelled", self._job.stop.why)
        except SandboxError as error:
            end = RunEnded("failed", f"The sandbox failed: {error}")
        except TurnoutError as error:
            lasts = self._job.durable and isinstance(error, StoreError)
            end = None if lasts else RunEnded("failed", str(error))
            raise
        except asyncio.CancelledError:
            end = None if self._job.durable else RunEnded("cancelled", "Given up at once.")
            raise
        finally:
            if end is not None:
                await self._job.record.add(*self._used(), end)
                await self._forget()

    async def _forget(self) -> None:
        """Drop what the run's workspaces held, where it outlived processes."""
        if self._job.durable:
            # What stays is dropped by the next sweep.
            with suppress(StoreError):
                await self._job.shop.checkpoints.forget(self._job.record.run_id)

    def _used(self) -> Sequence[ResourcesUsed]:
        return self._job.meter.take(self._job.shop.rates)

    async def _stages(self, intake: Intake) -> RunEnded:
        job = self._job
        for notice in intake.notices:
            await job.record.add(notice)
        if job.past.segments < 2:
            await job.warn(*job.access.warnings)
        task = intake.task
        if task.review is not None:
            return await review_alone(job, intake)
        spec = BaseSpec(task.repository, intake.commit, task.requirements, setup=task.setup)
        base = await prepare(job, spec)
        if task.setup and job.past.segments < 2:
            await job.record.add(Notice(f"Set up with `{task.setup[:_LONGEST]}`."))
        site = Site(task, spec, base, await job.shop.egress())
        opening = await look_at_base(job, site)
        result = await attempt_all(job, site, opening)
        await self._explain(task, opening, result)
        return RunEnded(result.end.outcome, result.end.reason)

    async def _explain(self, task: Task, opening: Opening, result: Result) -> None:
        """Have the change described; a stop meanwhile leaves the run as it ended.

        A model that only repairs is too small to be believed: the facts describe its change.
        """
        job, tried = self._job, result.chosen
        if not tried.patch or job.past.explained:
            return
        after = tried.closing.report
        repaired = result.strategy != "loop"
        if repaired or result.end.outcome not in _ASKED or job.stop.asked:
            end = result.end
            reason = f"The work ended early ({end.outcome}): {end.reason}"
            if end.outcome == "answered":
                reason = tried.end.reason if repaired else ""
            facts = plain_explanation(
                tried.patch, after, tests_before=opening.report, reason=reason
            )
            await job.record.add(Explained(facts))
            return
        step = job.past.explain_step or result.next_step
        subject = Explanation(job.record.run_id, step, task.prompt, tried.patch, after)
        await follow_to_end(job, job.shop.agent.explain(job.access.client, subject))
