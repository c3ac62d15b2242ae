"""`turnout eval regrade`: the kept patches of an evaluation graded again."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from turnout.cli.eval.options import beside, ground_options, jobs_option, say, settings_of
from turnout.cli.options import repos_option, say_json
from turnout.cli.terminal import plural, safe
from turnout.errors import UsageError
from turnout.evals.instances.load import load_instances
from turnout.evals.regrade import Regraded, gradable, regrade
from turnout.evals.trials.store import Results
from turnout.settings import DriverName, Settings
from turnout.wiring.evaluation.grading import open_grading
from turnout.wiring.evaluation.opening import grading_slots
from turnout.wiring.evaluation.proving import proven

__all__ = ["command"]


@dataclass(frozen=True, slots=True)
class _Request:
    """What the command line asks for."""

    settings: Settings
    results: Path
    tasks: Path
    repos: Path | None
    jobs: int
    dry_run: bool


@click.command(
    "regrade",
    epilog="\b\nExamples:\n"
    "  turnout eval regrade tasks.results.jsonl --tasks tasks.jsonl --dry-run\n"
    "\b\nExit codes:\n"
    "  0  every patch was graded again\n"
    "  1  some could not be graded\n"
    "  2  wrong usage, or a file that is none of results\n"
    "  4  the environment is not fit (sandbox)",
)
@click.argument("results", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--tasks",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    required=True,
    metavar="FILE",
    help="The instances that the results are of.",
)
@repos_option
@jobs_option("Patches that are graded")
@click.option("--dry-run", is_flag=True, help="Say what would change, and keep nothing.")
@ground_options
def command(
    *,
    results: Path,
    tasks: Path,
    repos: Path | None,
    jobs: int | None,
    dry_run: bool,
    sandbox: DriverName | None,
    as_json: bool,
    config: Path | None,
) -> int:
    """Grade the patches in RESULTS again, as this version does; no model is asked.

    The new grades are appended and stand for the old ones, which stay in the file.
    """
    settings = settings_of(config, sandbox)
    request = _Request(settings, results, tasks, repos, jobs or grading_slots(), dry_run)
    done = asyncio.run(_regrade(request))
    changed = [each for each in done if each.changed]
    if as_json:
        say_json(
            {
                "graded": len(done),
                "kept": not dry_run,
                "changed": [
                    {
                        "instance_id": each.old.instance_id,
                        "arm": each.old.arm,
                        "attempt": each.old.attempt,
                        "old": each.old.grade,
                        "new": each.new.grade,
                        "detail": each.new.detail,
                    }
                    for each in changed
                ],
            }
        )
    else:
        verb = "would be graded" if dry_run else "are graded"
        text = f"{len(changed)} of {plural(len(done), 'trial')} {verb} otherwise"
        click.echo(safe(text))
    return 0 if all(each.new.graded for each in done) else 1


async def _regrade(request: _Request) -> Sequence[Regraded]:
    instances = await load_instances(request.tasks, repositories=request.repos)
    results = Results(request.results)
    tried = {(each.instance_id, each.instance_digest) for each in results.trials}
    wanted = [each for each in instances if (each.instance_id, each.digest) in tried]
    ready = await proven(request.settings, wanted, beside(request.results, "proven"), say)
    pairs = gradable(results.trials, ready.instances)
    left = len(results.trials) - len(pairs)
    if left:
        say(f"{plural(left, 'result')} left out: of another task, or without a run")
    if not pairs:
        raise UsageError(
            f"Nothing in {request.results} is a patch for an instance of {request.tasks}.",
            mend="Name the file of tasks that the results are of, as it was then.",
        )
    done: list[Regraded] = []
    async with open_grading(request.settings) as opened:
        async for each in regrade(pairs, opened.grader, opened.base_of, jobs=request.jobs):
            done.append(each)
            old, new = each.old, each.new
            how = f"{old.grade} -> {new.grade}" if each.changed else new.grade
            say(f"[{len(done)}/{len(pairs)}] {old.instance_id} {old.arm}: {how}. {new.detail}")
    if not request.dry_run:
        with results.writing():
            for each in done:
                # What cannot be graded now is no better known than before.
                if each.new.graded or not each.old.graded:
                    results.add(each.new)
    return done
