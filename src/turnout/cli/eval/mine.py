"""`turnout eval mine`: tasks from the history of a repository."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import click

from turnout import __version__
from turnout.cli.eval.options import FiniteRange, ground_options, jobs_option, say, settings_of
from turnout.cli.eval.progress import Progress
from turnout.cli.options import say_json
from turnout.cli.terminal import plural, safe
from turnout.core.clock import SystemClock
from turnout.core.json import JsonObject, as_object
from turnout.errors import UsageError
from turnout.evals.instances.clone import Clone
from turnout.evals.instances.entries import entries
from turnout.evals.instances.load import load_instances
from turnout.evals.mine.candidates import Rules, look_through
from turnout.evals.mine.filling import Facts, fill
from turnout.evals.mine.mining import Miner, Wish
from turnout.evals.mine.output import MinedFile
from turnout.evals.mine.parents import Parents
from turnout.evals.mine.prove import Prover
from turnout.evals.mine.reasons import REASONS
from turnout.evals.mine.record import About, about_clone
from turnout.sandbox.workspace.folders import short_hash
from turnout.settings import DriverName, Settings
from turnout.wiring.evaluation.opening import grading_slots
from turnout.wiring.sandboxes import open_sandboxes
from turnout.wiring.state import state_folder_of

__all__ = ["mine"]


@dataclass(frozen=True, slots=True)
class _Left:
    """What was not decided."""

    failures: tuple[str, ...] = ()
    """What kept commits from it: they are tried again another time."""
    unseen: int = 0
    """Commits that were not looked at, because enough was found."""


@dataclass(frozen=True, slots=True)
class _Request:
    """What the command line asks for."""

    settings: Settings
    source: Path
    out: MinedFile
    rules: Rules
    wish: Wish
    revision: str
    since: str
    times: int
    seconds: float
    requirements: tuple[str, ...] | None
    setup: str | None
    test_command: str | None
    repos: Path | None


@click.command(
    "mine",
    epilog="\b\nExamples:\n"
    "  turnout eval mine . -o tasks.jsonl --limit 20\n"
    "  turnout eval mine ~/src/lib -o tasks.jsonl --since 2025-01-01 --requirement 'attrs>=23'\n"
    "\b\nExit codes:\n"
    "  0  FILE holds rows, and every commit was decided\n"
    "  1  there is no row, or a sandbox failed: the same command again goes on\n"
    "  2  wrong usage\n"
    "  4  the environment is not fit (sandbox, repository)",
)
@click.argument("source", type=click.Path(path_type=Path, exists=True), metavar="REPO")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="Where rows are kept; what was left out goes beside it.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop at N rows.")
@click.option("--since", type=click.DateTime(), metavar="DATE", help="No older commits.")
@click.option("--rev", default="HEAD", metavar="REV", help="Where to begin; default: HEAD.")
@click.option(
    "--max-lines",
    type=click.IntRange(min=1),
    default=80,
    show_default=True,
    metavar="N",
    help="Leave out fixes that change more lines of code.",
)
@click.option("--any-title", is_flag=True, help="Try commits that do not read like a fix, too.")
@click.option(
    "--self-contained", is_flag=True, help="Leave out fixes that only their tests explain."
)
@click.option(
    "--requirement",
    "requirements",
    multiple=True,
    metavar="SPEC",
    help="A package for the tests, in place of what each commit declares; may be repeated.",
)
@click.option("--setup", metavar="COMMAND", help="Sets each checkout up, in place of what is set.")
@click.option(
    "--test-command", metavar="COMMAND", help="Runs all tests; default: pytest where they are."
)
@click.option(
    "--times",
    type=click.IntRange(1, 10),
    default=3,
    show_default=True,
    metavar="N",
    help="How often the whole suite is run before a fix and with it.",
)
@click.option(
    "--seconds",
    type=FiniteRange(min=1),
    default=300.0,
    show_default=True,
    metavar="S",
    help="Leave out fixes whose suite takes more seconds of CPU time.",
)
@jobs_option("Fixes that are tried", "--jobs")
@click.option(
    "--repos",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Folder of clones, where REPO is a file of facts.",
)
@ground_options
def mine(
    *,
    source: Path,
    output: Path,
    limit: int | None,
    since: datetime | None,
    rev: str,
    max_lines: int,
    any_title: bool,
    self_contained: bool,
    requirements: Sequence[str],
    setup: str | None,
    test_command: str | None,
    times: int,
    seconds: float,
    jobs: int | None,
    repos: Path | None,
    sandbox: DriverName | None,
    as_json: bool,
    config: Path | None,
) -> int:
    """Find fixes that came with a test in the history of REPO, and write them as tasks.

    A commit counts once its tests were seen to fail on its parent and to pass with it, while the
    other tests keep passing: several times, in sandboxes without network. REPO is a local clone
    with its history; nothing is fetched and nothing in it is changed. The same command again goes
    on where it stopped.

    REPO may also be a file of facts (rows that name a fix and hold no tests): each is proven the
    same way and written whole.
    """
    if output.exists() and output.samefile(source):
        raise UsageError(f"{output} is what is read.", mend="Name another file with -o.")
    settings = settings_of(config, sandbox)
    rules = Rules(max_lines=max_lines, any_title=any_title, tests=settings.test_paths)
    setup = setup if setup is not None else settings.setup
    asked = [str(rules), self_contained, list(requirements), setup, test_command, times, seconds]
    out = MinedFile(output, asked=_hash([__version__, *asked]))
    request = _Request(
        settings,
        source,
        out,
        rules,
        Wish(limit, jobs or grading_slots(), self_contained),
        rev,
        since.isoformat() if since else "",
        times,
        seconds,
        tuple(requirements) or None,
        setup,
        test_command,
        repos,
    )
    with out.alone():
        try:
            left = asyncio.run(_mine(request))
        except KeyboardInterrupt:
            decided = f"{plural(len(out.commits), 'commit')} decided"
            say(f"{plural(out.kept, 'row')} in {output}, {decided}; the same command goes on.")
            raise
    if as_json:
        say_json(_summary_json(out, output, left))
    else:
        click.echo(safe(_summary(out, output, left)))
    return 0 if out.kept and not left.failures else 1


async def _mine(request: _Request) -> _Left:
    """Mine, and return what was not decided."""
    async with open_sandboxes(request.settings) as driver:
        prover = Prover(
            driver, request.settings.limits, seconds=request.seconds, times=request.times
        )
        if request.source.is_file():
            await _fill(request, prover)
            return _Left()
        clone = await Clone.open(str(request.source.absolute()))
        start = await clone.commit_of(request.revision)
        repo, licence = await about_clone(clone, start)
        about = About(
            repo,
            clone.path,
            licence,
            request.requirements,
            request.setup,
            request.test_command,
        )
        parents = Parents(_parents_folder(request.settings, clone), clone)
        await parents.begin()
        known = request.out.commits
        length = await clone.length(start, since=request.since)
        to_come = max(0, length - len(known))
        progress = Progress(request.out, say, SystemClock(), request.wish.limit, to_come)
        before = f", {plural(len(known), 'commit')} decided before" if known else ""
        say(f"{plural(length, 'commit')} of {repo}{before}")
        miner = Miner(prover, about, request.out, request.wish, progress, parents=parents)
        beat = asyncio.create_task(progress.go_on())
        try:
            await miner.mine(
                look_through(clone, start, request.rules, since=request.since, known=known)
            )
        finally:
            beat.cancel()
            await asyncio.gather(beat, return_exceptions=True)
        # The first commit of all has no parent and is none to look at.
        return _Left(miner.failures, max(0, to_come - progress.looked - 1))


def _parents_folder(settings: Settings, clone: Clone) -> Path:
    return state_folder_of(settings) / "mined" / f"{short_hash(clone.path)}.git"


async def _fill(request: _Request, prover: Prover) -> None:
    """Prove the rows of a file of facts."""
    instances = await load_instances(request.source, repositories=request.repos)
    rows = [_object(entry.text) for entry in entries(request.source)]
    facts = [Facts(row, each) for row, each in zip(rows, instances, strict=True)]
    await fill(
        [each for each in facts if each.commit],
        prover,
        request.out,
        jobs=request.wish.jobs,
        tell=Progress(request.out, say, SystemClock()).tell,
    )


def _object(text: str) -> JsonObject:
    return as_object(json.loads(text))


def _summary(out: MinedFile, path: Path, left: _Left) -> str:
    lines = [f"{plural(out.kept, 'row')} in {path}"]
    lines += [
        f"{out.sizes[each]:7}  with {each} lines of code" for each in sorted(out.sizes, key=_order)
    ]
    if out.reasons:
        lines += ["", "commits  left out because"]
        lines += [
            f"{out.reasons[each]:7}  {REASONS[each]}" for each in REASONS if each in out.reasons
        ]
        lines += [f"         (one by one in {out.dropped_path})"]
    if left.unseen:
        lines += ["", f"{plural(left.unseen, 'older commit')} not looked at: there are enough rows"]
    if left.failures:
        failed = plural(len(left.failures), "commit")
        lines += ["", f"{failed} could not be decided:", *left.failures]
    if out.kept:
        lines += ["", f"next: turnout eval run {path}"]
    return "\n".join(lines)


def _summary_json(out: MinedFile, path: Path, left: _Left) -> JsonObject:
    return {
        "rows": out.kept,
        "sizes": {name: out.sizes[name] for name in sorted(out.sizes, key=_order)},
        "dropped": {each: out.reasons[each] for each in REASONS if each in out.reasons},
        "undecided": list(left.failures),
        "not_looked_at": left.unseen,
        "file": str(path),
        "dropped_file": str(out.dropped_path),
    }


def _order(size: str) -> int:
    return ("1", "2-5", "6-20", ">20").index(size) if size in ("1", "2-5", "6-20", ">20") else 9


def _hash(asked: Sequence[object]) -> str:
    return sha256(json.dumps(asked, default=str).encode()).hexdigest()[:16]
