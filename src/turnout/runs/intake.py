"""Turns a task into the first event of a run, or says why it cannot be taken in."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from urllib.parse import urlsplit, urlunsplit

from turnout.core.events import Event, LoopEnded, Notice, RunEnded, RunStarted
from turnout.core.tasks import Task
from turnout.errors import UsageError
from turnout.runs.ports import StrategyName
from turnout.sandbox.repository import Resolved

__all__ = ["Intake", "Resolve", "named_as", "take_in", "without_credentials"]

Resolve = Callable[[str, str], Awaitable[Resolved]]
"""Finds the commit that a revision of a repository stands for."""


@dataclass(frozen=True, slots=True)
class Intake:
    """A task that can be worked on."""

    task: Task
    """As it was given; a URL may hold credentials, which never go on record."""
    commit: str
    notices: tuple[Notice, ...]

    def started(self, strategy: StrategyName) -> RunStarted:
        """Return the first event of its run."""
        shown = replace(self.task, repository=without_credentials(self.task.repository))
        return RunStarted(shown, self.commit, strategy)


async def take_in(task: Task, resolve: Resolve) -> Intake:
    """Check a task and find its base commit; `UsageError` or `RepositoryError` where it fails."""
    if not task.prompt.strip():
        raise UsageError("The task is empty.", mend="Say in a sentence what is to be done.")
    for command in (task.test_command, task.setup):
        if command is not None and "\0" in command:
            raise UsageError(
                f"The command {command!r} holds a NUL byte.", mend="Write it without one."
            )
    resolved = await resolve(task.repository, task.base)
    notices = [Notice(text, "warning") for text in resolved.warnings]
    if resolved.dirty:
        notices.append(Notice(_dirty(resolved.dirty, resolved.commit), "warning"))
    return Intake(task, resolved.commit, tuple(notices))


def without_credentials(repository: str) -> str:
    """Return a repository's address without the user and password that its URL may hold."""
    if "://" not in repository:
        return repository
    parts = urlsplit(repository)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def named_as(name: str, place: str) -> Callable[[Event], Event]:
    """Return what makes events call a repository by its name, not by where it is on this machine.

    Those are changed that hold words of ours: what a model or a command saw names no such place.
    """

    def told(event: Event) -> Event:
        match event:
            case RunEnded() | LoopEnded():
                return replace(event, reason=event.reason.replace(place, name))
            case Notice():
                return replace(event, text=event.text.replace(place, name))
            case _:
                return event

    return told


def _dirty(paths: tuple[str, ...], commit: str) -> str:
    shown = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
    return (
        f"The working tree has changes ({shown}); the run starts from {commit[:12]} without them."
    )
