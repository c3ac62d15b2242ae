"""Has a change read by a review agent, in a fresh workspace that already holds it."""

from dataclasses import replace
from typing import Final

from turnout.agent.base import Brief
from turnout.agent.review import ReviewSubject
from turnout.core.events import ReviewDecision, Reviewed, RunEnded, WorkspaceReady
from turnout.core.runs import Outcome, Patch
from turnout.core.tasks import Task
from turnout.errors import SandboxError, SandboxUnavailableError
from turnout.runs.intake import Intake
from turnout.runs.worker.choosing import Tried
from turnout.runs.worker.follow import Follower
from turnout.runs.worker.judging import apply_patch, prepare
from turnout.runs.worker.workshop import Job, Site
from turnout.sandbox.base import NO_EGRESS, BaseSpec, Sandbox

__all__ = ["review_alone", "review_patch"]

_LONGEST: Final = 300
"""Characters of what is said of a diff that does not apply."""
_SAID: Final[dict[ReviewDecision, str]] = {
    "approve": "The review approves the change.",
    "annotate": "The review has remarks, and blocks nothing.",
    "block": "The review blocks the change.",
}


async def review_patch(
    job: Job,
    site: Site,
    follower: Follower,
    brief: Brief,
    tried: Tried,
    first_step: int | None = None,
) -> Reviewed:
    """Return what the review says; one that may block and comes to nothing does block.

    `first_step`: of a review that an earlier segment began. It is done again in the same steps:
    the gateway gives the answers that it gave before.
    """
    brief = replace(
        brief,
        first_step=first_step or follower.step + 1,
        spent=follower.spent,
        seconds=follower.seconds,
    )
    paths = tuple(change.path for change in tried.patch.files)
    subject = ReviewSubject(brief, tried.patch, tried.closing.report, paths=paths)
    why = "It was stopped."
    try:
        async with job.sandbox(site.base, NO_EGRESS) as sandbox:
            await apply_patch(sandbox, tried.patch)
            events = job.shop.agent.review(job.access.client, sandbox, subject, job.approver)
            ended = await follower.follow(events, sandbox)
            if isinstance(ended, Reviewed):
                return ended
    except (SandboxError, SandboxUnavailableError) as error:
        why = f"The sandbox failed: {error}"
    blocked = job.shop.effort.review == "block"
    reviewed = Reviewed(blocked, f"The review came to no decision. {why}", decided=False)
    await job.record.add(reviewed)
    return reviewed


async def review_alone(job: Job, intake: Intake) -> RunEnded:
    """Have the change that a run is about reviewed, and return how the run ends.

    Nothing is run and nothing is installed: the review reads.
    """
    earlier = job.past.attempt(1)
    review = earlier.review if earlier else None
    if review is None:
        review = await _review(job, intake)
    reason = _SAID[review.decision] if review.decision else review.summary
    return RunEnded(review.outcome, reason)


async def _review(job: Job, intake: Intake) -> Reviewed:
    task, began = intake.task, job.shop.clock.monotonic()
    patch = Patch(task.review.diff if task.review else b"", ())
    base = await prepare(job, BaseSpec(task.repository, intake.commit, requirements=()))
    async with job.sandbox(base, NO_EGRESS) as sandbox:
        if job.past.ready is None:
            seconds = job.shop.clock.monotonic() - began
            await job.record.add(WorkspaceReady(sandbox.isolation, None, (), seconds))
        applied = await sandbox.apply_patch(patch.diff)
        if not applied.applied:
            why = f"The diff does not apply to {intake.commit[:12]}: {applied.message[:_LONGEST]}"
            return await _undecided(job, why, "failed")
        reviewed = await _read(job, sandbox, task, patch, applied.files)
    return reviewed or await _undecided(job, "It was stopped.", "cancelled")


async def _read(
    job: Job, sandbox: Sandbox, task: Task, patch: Patch, paths: tuple[str, ...]
) -> Reviewed | None:
    """Return what the review says; None where it was stopped."""
    earlier, follower = job.past.attempt(1), Follower(job, "review")
    record = tuple(earlier.work) if earlier else ()
    brief = Brief(
        run_id=job.record.run_id,
        prompt=task.prompt,
        surface="review",
        test_command=None,
        tests_before=None,
        test_paths=job.shop.test_paths,
        spent=earlier.spent_before if earlier else follower.spent,
        seconds=follower.seconds,
    )
    subject = ReviewSubject(brief, patch, None, asked=True, paths=paths)
    events = job.shop.agent.review(job.access.client, sandbox, subject, job.approver, record)
    ended = await follower.follow(events, sandbox, record)
    return ended if isinstance(ended, Reviewed) else None


async def _undecided(job: Job, why: str, outcome: Outcome) -> Reviewed:
    summary = f"The review came to no decision. {why}"
    reviewed = Reviewed(True, summary, decided=False, outcome=outcome)
    await job.record.add(reviewed)
    return reviewed
