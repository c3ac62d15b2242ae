"""Has a patch read by a review agent, in a fresh workspace that already holds it."""

from dataclasses import replace

from turnout.agent.base import Brief
from turnout.agent.review import ReviewSubject
from turnout.core.events import Reviewed
from turnout.errors import SandboxError, SandboxUnavailableError
from turnout.runs.worker.choosing import Tried
from turnout.runs.worker.follow import Follower
from turnout.runs.worker.judging import apply_patch
from turnout.runs.worker.workshop import Job, Site
from turnout.sandbox.base import NO_EGRESS

__all__ = ["review_patch"]


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
    subject = ReviewSubject(brief, tried.patch, tried.closing.report)
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
    reviewed = Reviewed(blocked, f"The review came to no verdict. {why}", decided=False)
    await job.record.add(reviewed)
    return reviewed
