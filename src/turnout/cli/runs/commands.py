"""The commands, each of which reads records."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from turnout.cli.options import config_option, json_option, read_settings, say_json
from turnout.cli.progress import Story
from turnout.cli.report import (
    Screen,
    closing_text,
    exit_code,
    judged_text,
    result_json,
    screen_of,
)
from turnout.cli.run.deliver import Destination
from turnout.cli.runs.export import export
from turnout.cli.runs.full import entry_text
from turnout.cli.runs.published import published_line
from turnout.cli.runs.reading import read_entries
from turnout.cli.runs.reconcile import reconcile
from turnout.cli.runs.remote import (
    approve,
    cancel,
    follow,
    reject,
    remote_rows,
    remote_run,
    retry,
    row_line,
    server_option,
    submit,
)
from turnout.cli.runs.slowest import slowest
from turnout.cli.terminal import coloured_diff, safe, takes_colour
from turnout.core.events import Entry
from turnout.core.json import JsonObject
from turnout.core.runs import RunRow
from turnout.runs.delivery import OutputFolder
from turnout.runs.summary import RunResult, fold
from turnout.settings import Settings, service_address
from turnout.wiring.state import open_records

__all__ = ["command"]

_PROMPT_SHOWN = 60


@click.group(
    "runs",
    epilog="\b\nExamples:\n"
    "  turnout runs list\n"
    "  turnout runs show run-3f\n"
    "  turnout runs show run-3f --full | less\n"
    "  turnout runs diff run-3f | git apply\n"
    '  turnout runs submit "fix the failing test" --repo shop --follow',
)
def command() -> None:
    """List past runs, show one, print its diff; order runs of a service.

    A run is named by its id or by the start of it; for `show`, `slowest`, `reconcile`, `diff`,
    `export` and `follow`, none means the newest. All of these but `follow`, and `list`, read this
    machine's records, or with --server or TURNOUT_SERVER those of a service; the others ask a
    service, by default the one on this machine. The key for it is in TURNOUT_API_KEY.
    """


for _other in (slowest, reconcile, export, submit, follow, cancel, approve, reject, retry):
    command.add_command(_other)


@command.command("list")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@server_option
@json_option
@config_option
def _list(*, limit: int, server: str | None, as_json: bool, config: Path | None) -> int:
    """List the newest runs."""
    address = service_address(server)
    if address is not None:
        listed = asyncio.run(remote_rows(address, limit))
        if as_json:
            say_json({"runs": listed})
        elif not listed:
            click.echo(f"There are no runs at {address.base_url} that you may see.", err=True)
        for one in () if as_json else listed:
            click.echo(row_line(one))
        return 0
    rows = asyncio.run(_rows(read_settings(config), limit))
    if as_json:
        say_json({"runs": [_row_json(row) for row in rows]})
    elif not rows:
        click.echo('There are no runs yet. Start one: turnout run "…" --repo .')
    for row in () if as_json else rows:
        click.echo(_row_text(row))
    return 0


@command.command("show")
@click.argument("run_id", required=False)
@click.option("--full", is_flag=True, help="Show every event with all that it holds.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write patch.diff, explanation.md, record.jsonl and summary.json.",
)
@server_option
@json_option
@config_option
def _show(
    *,
    run_id: str | None,
    full: bool,
    output: Path | None,
    server: str | None,
    as_json: bool,
    config: Path | None,
) -> int:
    """Show what a run did, step by step, and how it ended."""
    settings = read_settings(config)
    entries = asyncio.run(read_entries(settings, run_id, server))
    result = fold(entries)
    if output is not None:
        return asyncio.run(_write(result, entries, output, as_json=as_json))
    if as_json:
        say_json(result_json(result, exit_code(result), None))
    elif full:
        for entry in entries:
            click.echo(f"{entry_text(entry)}\n")
    else:
        _tell(result, entries, screen_of(sys.stdout, colour=settings.colour, server=server))
        address = service_address(server)
        run = {} if address is None else asyncio.run(remote_run(address, result.run_id))
        if line := published_line(run):
            click.echo(line)
    return 0


def _tell(result: RunResult, entries: Sequence[Entry], screen: Screen) -> None:
    click.echo(f"{result.run_id}  {result.started_at:%Y-%m-%d %H:%M:%S} UTC")
    click.echo(safe(f"task: {result.task.prompt.strip()}\nrepository: {result.task.repository}"))
    story = Story()
    lines = [line for entry in entries for line in story.lines(entry.event)]
    for line in (*lines, *story.rest()):
        click.echo(safe(line.text))
    screen.show(f"\n{judged_text(result, screen)}\n\n{closing_text(result, screen)}")


async def _write(
    result: RunResult, entries: Sequence[Entry], folder: Path, *, as_json: bool
) -> int:
    where = Destination("output", folder=OutputFolder(folder))
    await where.check()
    delivered = await where.deliver(result, entries)
    if as_json:
        say_json(result_json(result, exit_code(result), delivered.to_json(where.kind)))
    else:
        click.echo(safe(delivered.text), err=not delivered.done)
    return 0 if delivered.done else 1


@command.command("diff")
@click.argument("run_id", required=False)
@server_option
@json_option
@config_option
def _diff(*, run_id: str | None, server: str | None, as_json: bool, config: Path | None) -> int:
    """Print a run's diff: exact bytes for `git apply`, colours on a terminal."""
    settings = read_settings(config)
    result = fold(asyncio.run(read_entries(settings, run_id, server)))
    data = result.patch.diff
    if not data:
        ended = "changed nothing" if result.outcome else "has no diff yet"
        click.echo(f"Run {result.run_id} {ended}.", err=True)
    if as_json:
        say_json({"run_id": result.run_id, "diff": data.decode(errors="backslashreplace")})
    elif data and sys.stdout.isatty():
        colour = takes_colour(sys.stdout, allowed=settings.colour)
        click.echo(coloured_diff(data.decode(errors="backslashreplace"), colour=colour))
    else:
        sys.stdout.buffer.write(data)
    return 0


async def _rows(settings: Settings, limit: int) -> list[RunRow]:
    async with open_records(settings) as records:
        return list(await records.rows(limit=limit))


def _row_json(row: RunRow) -> JsonObject:
    return {
        "run_id": row.run_id,
        "prompt": row.prompt,
        "repository": row.repository,
        "base_commit": row.base_commit,
        "started_at": row.started_at.isoformat(),
        "ended_at": row.ended_at.isoformat() if row.ended_at else None,
        "outcome": row.outcome,
        "verdict": row.verdict,
    }


def _row_text(row: RunRow) -> str:
    prompt = " ".join(row.prompt.split())
    shown = prompt if len(prompt) <= _PROMPT_SHOWN else f"{prompt[:_PROMPT_SHOWN]}…"
    # What the tests say of a run that goes on is not its verdict yet.
    outcome, verdict = row.outcome or "running", (row.outcome and row.verdict) or "-"
    return safe(f"{row.run_id}  {row.started_at:%Y-%m-%d %H:%M}  {outcome:10} {verdict:13} {shown}")
