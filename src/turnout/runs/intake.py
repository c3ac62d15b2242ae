"""Turns a task into the first event of a run, or says why it cannot be taken in."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from turnout.core.events import Event, LoopEnded, Notice, Reviewed, RunEnded, RunStarted
from turnout.core.tasks import ReviewAsk, Task
from turnout.errors import RepositoryError, UsageError
from turnout.runs.ports import StrategyName
from turnout.sandbox.repository import Resolved
from turnout.sandbox.workspace.history import Compared

__all__ = [
    "LARGEST_DIFF",
    "NOTHING_SAID",
    "Compare",
    "Intake",
    "Resolve",
    "check_diff",
    "compare_nothing",
    "take_in",
    "told_with",
    "without_credentials",
]

LARGEST_DIFF: Final = 1 << 20
"""Bytes of a change that is reviewed."""
NOTHING_SAID: Final = "Review this change."
"""The task of a review where nobody has said what the change is for."""

_CHANGE: Final = re.compile(rb"^(?:diff --git |--- [^\n]*\n\+\+\+ [^\n]*\n@@ )", re.MULTILINE)
"""How the change of a file begins."""

Resolve = Callable[[str, str], Awaitable[Resolved]]
"""Finds the commit that a revision of a repository stands for."""

Compare = Callable[[str, str, str], Awaitable[Compared]]
"""Returns what a commit (third) of a repository changes since it has left another (second)."""


@dataclass(frozen=True, slots=True)
class Intake:
    """A task that can be worked on."""

    task: Task
    """As it was given; a URL may hold credentials, which never go on record.

    The diff of a change that is to be reviewed is known.
    """
    commit: str
    notices: tuple[Notice, ...]

    def started(self, strategy: StrategyName) -> RunStarted:
        """Return the first event of its run."""
        shown = replace(self.task, repository=without_credentials(self.task.repository))
        return RunStarted(shown, self.commit, strategy)


async def compare_nothing(repository: str, base: str, head: str) -> Compared:
    """Compare no commits: `RepositoryError`."""
    raise RepositoryError(f"{base[:12]} and {head[:12]} of {repository} cannot be compared here.")


async def take_in(task: Task, resolve: Resolve, compare: Compare = compare_nothing) -> Intake:
    """Check a task and find its base commit; `UsageError` or `RepositoryError` where it fails.

    The base of a head that is to be reviewed is the commit at which the two have parted.
    """
    if not task.prompt.strip():
        raise UsageError("The task is empty.", mend="Say in a sentence what is to be done.")
    for command in (task.test_command, task.setup):
        if command is not None and "\0" in command:
            raise UsageError(
                f"The command {command!r} holds a NUL byte.", mend="Write it without one."
            )
    resolved = await resolve(task.repository, task.base)
    if task.review is not None:
        review, commit = await _reviewed(task, task.review, resolved.commit, resolve, compare)
        return Intake(replace(task, review=review), commit, ())
    notices = [Notice(text, "warning") for text in resolved.warnings]
    if resolved.dirty:
        notices.append(Notice(_dirty(resolved.dirty, resolved.commit), "warning"))
    return Intake(task, resolved.commit, tuple(notices))


async def _reviewed(
    task: Task, review: ReviewAsk, commit: str, resolve: Resolve, compare: Compare
) -> tuple[ReviewAsk, str]:
    """Return a change with its diff, and the commit that the diff lies on."""
    if review.head:
        head = await resolve(task.repository, review.head)
        compared = await compare(task.repository, commit, head.commit)
        review, commit = replace(review, diff=compared.diff), compared.base
    check_diff(review.diff)
    return review, commit


def check_diff(diff: bytes) -> None:
    """Refuse (`UsageError`) what is no diff to review, as far as that is seen without its files."""
    if not diff.strip():
        raise UsageError("There is nothing to review: the diff is empty.")
    if len(diff) > LARGEST_DIFF:
        raise UsageError(
            f"The diff is larger than {LARGEST_DIFF >> 20} MiB.",
            mend="Have parts of the change reviewed, each for itself.",
        )
    if not _CHANGE.search(diff):
        raise UsageError(
            "The diff is none: it changes no file.", mend="Send what `git diff` prints."
        )


def without_credentials(repository: str) -> str:
    """Return a repository's address without the user and password that its URL may hold."""
    if "://" not in repository:
        return repository
    parts = urlsplit(repository)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def told_with(hide: Callable[[str], str]) -> Callable[[Event], Event]:
    """Return what makes events call things by their names, not by where they are on this machine.

    Those are changed that hold words of ours: what a model or a command saw names no such place.
    """

    def told(event: Event) -> Event:
        match event:
            case RunEnded() | LoopEnded():
                return replace(event, reason=hide(event.reason))
            case Reviewed(decided=False):
                return replace(event, summary=hide(event.summary))
            case Notice():
                return replace(event, text=hide(event.text))
            case _:
                return event

    return told


def _dirty(paths: tuple[str, ...], commit: str) -> str:
    shown = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
    return (
        f"The working tree has changes ({shown}); the run starts from {commit[:12]} without them."
    )
