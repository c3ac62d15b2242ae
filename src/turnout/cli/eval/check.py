"""`turnout eval check`: whether the instances of a set can judge on this machine."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from turnout.cli.eval.options import (
    beside,
    chosen_options,
    ground_options,
    jobs_option,
    say,
    settings_of,
    tasks_argument,
)
from turnout.cli.options import repos_option, say_json
from turnout.cli.terminal import plural, safe
from turnout.errors import RepositoryError, UsageError
from turnout.evals.grading.health import Checker, Health, add_health, load_health
from turnout.evals.instances.load import load_instances
from turnout.evals.instances.model import Instance
from turnout.evals.instances.sources import check_sources
from turnout.evals.mine.proven import LeftOut
from turnout.settings import DriverName, Settings
from turnout.wiring.evaluation.grading import OpenGrading, open_grading
from turnout.wiring.evaluation.opening import grading_slots
from turnout.wiring.evaluation.proving import proven

__all__ = ["check"]


@dataclass(frozen=True, slots=True)
class _Request:
    """What the command line asks for."""

    settings: Settings
    tasks: Path
    repos: Path | None
    only: tuple[str, ...]
    limit: int | None
    health: Path
    times: int
    jobs: int
    again: bool


@click.command(
    epilog="\b\nExamples:\n"
    "  turnout eval check tasks.jsonl\n"
    "  turnout eval check tasks.jsonl --times 3 --only astropy__astropy-12907\n"
    "\b\nExit codes:\n"
    "  0  every instance is sound\n"
    "  1  some are not\n"
    "  2  wrong usage, or a line of TASKS that is wrong\n"
    "  4  the environment is not fit (sandbox)",
)
@tasks_argument
@chosen_options("Check")
@click.option(
    "--times",
    type=click.IntRange(1, 20),
    default=1,
    show_default=True,
    metavar="N",
    help="Grade each known fix N times, each time with another seed of Python's hashes.",
)
@jobs_option("Instances that are checked")
@repos_option
@click.option(
    "--health",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where what was found is kept; default: TASKS with the ending .health.jsonl, here.",
)
@click.option("--again", is_flag=True, help="Check what was checked before as well.")
@ground_options
def check(
    *,
    tasks: Path,
    only: tuple[str, ...],
    limit: int | None,
    times: int,
    jobs: int | None,
    repos: Path | None,
    health: Path | None,
    again: bool,
    sandbox: DriverName | None,
    as_json: bool,
    config: Path | None,
) -> int:
    """Check that the instances of TASKS can judge a patch here, without asking any model.

    Without a fix the tests that must pass have to fail, and the others to pass; with the known
    fix, where there is one, all have to pass. An instance of which this is not so says nothing
    about a model: reports leave it out of every rate. Rows that are facts of a fix alone are proven
    first, once.
    """
    request = _Request(
        settings_of(config, sandbox),
        tasks,
        repos,
        only,
        limit,
        health or Path(f"{tasks.stem}.health.jsonl"),
        times,
        jobs or grading_slots(),
        again,
    )
    rows = asyncio.run(_check(request))
    sound = sum(row.sound for row in rows)
    if as_json:
        say_json(
            {
                "instances": len(rows),
                "sound": sound,
                "health": str(request.health),
                "rows": [asdict(row) for row in rows],
            }
        )
    else:
        click.echo(safe(f"{sound} of {plural(len(rows), 'instance')} sound; see {request.health}"))
    return 0 if sound == len(rows) else 1


async def _check(request: _Request) -> tuple[Health, ...]:
    """Check what was not checked before, and return a row for every instance that is asked for."""
    instances = await _instances(request)
    ready = await proven(request.settings, instances, beside(request.health, "proven"), say)
    known = load_health(request.health)
    found: dict[str, Health] = {
        each.instance_id: known[each.instance_id]
        for each in ready.instances
        if _is_known(each, known, request)
    }
    for each in ready.left_out:
        found[each.instance.instance_id] = row = _refuted(each)
        add_health(request.health, row)
    todo = [each for each in ready.instances if each.instance_id not in found]
    before = len(found) - len(ready.left_out)
    if before:
        say(f"{plural(before, 'instance')} checked before in {request.health}")
    if todo:
        async with open_grading(request.settings) as opened:
            checker = Checker(opened.grader, times=request.times, jobs=request.jobs)
            tasks = [asyncio.ensure_future(_one(checker, opened, each)) for each in todo]
            try:
                for number, done in enumerate(asyncio.as_completed(tasks), start=1):
                    row = await done
                    add_health(request.health, row)
                    found[row.instance_id] = row
                    mark = "sound" if row.sound else "NOT SOUND"
                    say(f"[{number}/{len(todo)}] {row.instance_id}: {mark}. {row.detail}")
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
    return tuple(found[each.instance_id] for each in instances)


def _refuted(left: LeftOut) -> Health:
    """Return the row of an instance whose facts do not hold on this machine."""
    detail = f"Its facts do not hold here: {left.why}."
    return Health(left.instance.instance_id, left.instance.digest, sound=False, detail=detail)


async def _one(checker: Checker, opened: OpenGrading, instance: Instance) -> Health:
    try:
        base = await opened.base_of(instance, "hidden")
    except RepositoryError as error:
        return Health(instance.instance_id, instance.digest, sound=False, detail=str(error))
    return await checker.check(instance, base)


async def _instances(request: _Request) -> tuple[Instance, ...]:
    instances = await load_instances(request.tasks, repositories=request.repos)
    unknown = set(request.only) - {each.instance_id for each in instances}
    if unknown:
        raise UsageError(
            f"There is no instance {min(unknown)!r} in this file.",
            mend=f"The first is {instances[0].instance_id}.",
        )
    chosen = [each for each in instances if not request.only or each.instance_id in request.only]
    await check_sources(chosen[: request.limit])
    return tuple(chosen[: request.limit])


def _is_known(instance: Instance, known: Mapping[str, Health], request: _Request) -> bool:
    row = known.get(instance.instance_id)
    if row is None or request.again or row.instance_digest != instance.digest:
        return False
    return not instance.patch or row.times >= request.times
