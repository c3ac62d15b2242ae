"""In which order units are run, and how many at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence

from turnout.evals.instances.model import Instance
from turnout.evals.trials.arms import Arm
from turnout.evals.trials.model import Mode, Unit

__all__ = ["Planned", "units_of", "work_through"]

Planned = tuple[Unit, Instance, Arm]


def units_of(
    instances: Sequence[Instance],
    arms: Sequence[Arm],
    *,
    mode: Mode,
    strict: bool,
    repeats: int,
) -> Iterator[Planned]:
    """Yield every unit with what it stands for.

    The arms take turns on each instance, each time another one first: a provider that becomes
    slower or better meanwhile does so for all of them alike.
    """
    for attempt in range(1, repeats + 1):
        for number, instance in enumerate(instances):
            first = (number + attempt - 1) % len(arms)
            for arm in (*arms[first:], *arms[:first]):
                unit = Unit(
                    instance.instance_id,
                    instance.digest,
                    arm.name,
                    arm.digest,
                    mode,
                    strict,
                    attempt,
                )
                yield unit, instance, arm


async def work_through(
    planned: Sequence[Planned],
    work: Callable[[Planned], Awaitable[None]],
    *,
    slots: int,
    stopped: Callable[[], bool],
) -> None:
    """Work on all that is planned, in order, `slots` at once, until it is done or `stopped`.

    What is under way when it is stopped is worked on to its end. The first error ends all of it
    and comes out.
    """
    left = iter(planned)

    async def slot() -> None:
        for each in left:
            if stopped():
                return
            await work(each)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(slots, len(planned))):
                group.create_task(slot())
    except BaseExceptionGroup as group:
        raise _first(group) from None


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
