"""The commands that ask a service, over its API."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

import click

from turnout.cli.keys.values import SPEND
from turnout.cli.options import json_option, say_json
from turnout.cli.progress import Story
from turnout.cli.report import (
    closing_text,
    exit_code,
    judged_text,
    result_json,
    screen_of,
    waiting_text,
)
from turnout.cli.runs.published import publication_line
from turnout.cli.terminal import safe
from turnout.cli.tool_lines import call_block
from turnout.core.events import ApprovalAsked, Entry
from turnout.core.ids import RunId, ToolCallId
from turnout.core.json import JsonObject, as_object, as_objects, as_text
from turnout.core.service.options import ServiceAddress
from turnout.core.tools import ToolCall
from turnout.errors import ConflictError, NotFoundError, UsageError
from turnout.runs.summary import fold
from turnout.settings import service_address, service_here
from turnout.web.client import RunsClient

__all__ = [
    "approve",
    "cancel",
    "follow",
    "order_run",
    "reject",
    "remote_entries",
    "remote_rows",
    "remote_run",
    "retry",
    "row_line",
    "server_option",
    "submit",
]

Command = TypeVar("Command", bound=Callable[..., Any])
T = TypeVar("T")

_LOOKED_AT: Final = 200
"""Newest runs, among which one is found by the start of its id."""
_ID_LENGTH: Final = len("run-0123456789ab")
_SHOWN: Final = 60
_LONGEST: Final = 200_000
"""Characters of a task; the service takes fewer."""


def server_option(command: Command) -> Command:
    """Add `--server URL`."""
    return click.option(
        "--server", metavar="URL", help="A service to ask; else TURNOUT_SERVER says which."
    )(command)


@click.command("submit")
@click.argument("task", metavar="TASK")
@click.option("--repo", required=True, metavar="NAME|URL", help="As the service knows it.")
@click.option(
    "--base",
    default="HEAD",
    metavar="REV",
    help="Branch, tag or commit to start from; default: HEAD.",
)
@click.option(
    "--surface",
    type=click.Choice(["guide", "shell", "files"]),
    help="Tools the model gets; default: as the service is set up.",
)
@click.option("--policy", metavar="NAME", help="Policy of its model calls; default: the key's.")
@click.option(
    "--test-command", metavar="CMD", help="Shell command that runs the tests; default: found."
)
@click.option(
    "--priority",
    type=click.IntRange(-100, 100),
    default=0,
    help="The highest goes first; default: 0.",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="TEXT",
    help="Kept with the run; may be given again.",
)
@click.option(
    "--max-steps",
    type=click.IntRange(min=1),
    metavar="N",
    help="Act steps at most; default: the service's.",
)
@click.option(
    "--max-seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Seconds of work at most; default: the service's.",
)
@click.option(
    "--max-spend",
    type=SPEND,
    help="US dollars that its model calls may cost; default: the service's.",
)
@click.option("--notify", metavar="URL", help="Address that is told when it begins, waits, ends.")
@click.option(
    "--publish",
    type=click.Choice(["branch", "draft"]),
    help="Push its diff as a new branch; draft: and draft a request to merge it.",
)
@click.option("--once", metavar="KEY", help="Sent again with the same key: the same run.")
@click.option("--follow", "and_follow", is_flag=True, help="Show what it does until it ends.")
@server_option
@json_option
def submit(
    *,
    task: str,
    and_follow: bool,
    server: str | None,
    once: str | None,
    as_json: bool,
    **asked: Any,
) -> int:
    """Order a run of TASK and print its id; `-` reads the task from standard input."""
    words = sys.stdin.read(_LONGEST) if task == "-" else task
    spend = asked.pop("max_spend")
    limits = {
        "max_steps": asked.pop("max_steps"),
        "max_seconds": asked.pop("max_seconds"),
        "max_spend_micros": spend if isinstance(spend, int) else None,
    }
    labels = list(asked.pop("labels"))
    given = {name: value for name, value in asked.items() if value is not None}
    body: JsonObject = {"task": words, "labels": labels, "limits": limits, **given}

    return order_run(server, body, once, and_follow=and_follow, as_json=as_json)


def order_run(
    server: str | None, body: JsonObject, once: str | None, *, and_follow: bool, as_json: bool
) -> int:
    """Order a run and print its id, or show what it does until it ends; return the exit code."""

    async def order(client: RunsClient) -> int:
        run = await client.order(body, once=once)
        run_id = as_text(run.get("id"))
        if and_follow:
            click.echo(run_id, err=True)
            return await _follow(client, run_id, server, as_json=as_json)
        if as_json:
            say_json(run)
        else:
            click.echo(run_id)
        return 0

    return _ask(server, order)


@click.command("follow")
@click.argument("run_id", required=False)
@server_option
@json_option
def follow(*, run_id: str | None, server: str | None, as_json: bool) -> int:
    """Show what a run does until it ends; the exit code is that of `turnout run`."""

    async def show(client: RunsClient) -> int:
        return await _follow(client, await _whole_id(client, run_id), server, as_json=as_json)

    return _ask(server, show)


@click.command("cancel")
@click.argument("run_id")
@server_option
@json_option
def cancel(*, run_id: str, server: str | None, as_json: bool) -> int:
    """Stop a run after the step under way."""
    return _act(server, run_id, "cancel", as_json=as_json)


@click.command("retry")
@click.argument("run_id")
@server_option
@json_option
def retry(*, run_id: str, server: str | None, as_json: bool) -> int:
    """Order a run that has ended again."""
    return _act(server, run_id, "retry", as_json=as_json)


@click.command("approve")
@click.argument("run_id")
@click.option("--call", metavar="ID", help="The call that is meant; else it is shown and asked.")
@server_option
@json_option
def approve(*, run_id: str, call: str | None, server: str | None, as_json: bool) -> int:
    """Allow the tool call that a run waits for."""
    return _decide(server, run_id, "approve", {"call_id": call}, as_json=as_json)


@click.command("reject")
@click.argument("run_id")
@click.option("--call", metavar="ID", help="The call that is meant; else it is shown and asked.")
@click.option("--note", default="", metavar="TEXT", help="Why; the model is told.")
@server_option
@json_option
def reject(*, run_id: str, call: str | None, note: str, server: str | None, as_json: bool) -> int:
    """Refuse the tool call that a run waits for; it goes on without."""
    return _decide(server, run_id, "reject", {"call_id": call, "note": note}, as_json=as_json)


async def remote_rows(address: ServiceAddress, limit: int) -> Sequence[JsonObject]:
    """Return the newest runs of the key's project, as the API shows them."""
    async with RunsClient(address) as client:
        found: list[JsonObject] = []
        asked: dict[str, str | int] = {}
        while len(found) < limit:
            part = await client.page({**asked, "limit": min(200, limit - len(found))})
            found += as_objects(part.get("runs"))
            cursor = part.get("next_cursor")
            if not isinstance(cursor, int):
                break
            asked = {"cursor": cursor}
        return found


async def remote_entries(address: ServiceAddress, run_id: str | None) -> Sequence[Entry]:
    """Return the record of a run; `NotFoundError` where nobody has begun it."""
    async with RunsClient(address) as client:
        whole = await _whole_id(client, run_id)
        entries = await client.entries(whole)
        if not entries:
            state = as_text((await client.read(whole)).get("state"))
            raise NotFoundError(f"Run {whole} is {state}; no worker has begun it.")
        return entries


async def remote_run(address: ServiceAddress, run_id: str) -> JsonObject:
    """Return a run by its whole id, as the API shows it."""
    async with RunsClient(address) as client:
        return await client.read(run_id)


def row_line(run: JsonObject) -> str:
    """Return a run as a line of the list."""
    prompt = " ".join(as_text(run.get("task")).split())
    shown = prompt if len(prompt) <= _SHOWN else f"{prompt[:_SHOWN]}…"
    ended = as_text(run.get("outcome"))
    outcome = ended or as_text(run.get("state"))
    at = as_text(run.get("ordered_at"))[:16].replace("T", " ")
    verdict = (ended and as_text(run.get("verdict"))) or "-"
    return safe(f"{as_text(run.get('id'))}  {at}  {outcome:10} {verdict:13} {shown}")


def _act(server: str | None, run_id: str, verb: str, *, as_json: bool) -> int:
    async def act(client: RunsClient) -> int:
        _say(await client.act(await _whole_id(client, run_id), verb), as_json=as_json)
        return 0

    return _ask(server, act)


def _decide(server: str | None, run_id: str, verb: str, body: JsonObject, *, as_json: bool) -> int:
    async def decide(client: RunsClient) -> int:
        whole = await _whole_id(client, run_id)
        call = body["call_id"] or _asked_about(await client.read(whole), verb)
        _say(await client.act(whole, verb, {**body, "call_id": call}), as_json=as_json)
        return 0

    return _ask(server, decide)


def _asked_about(run: JsonObject, verb: str) -> str:
    """Show the call that a run waits for, and return its id once a person has said yes."""
    waits = as_object(run.get("waits_for"))
    if not waits:
        raise ConflictError(f"Run {as_text(run.get('id'))} waits for no decision.")
    call_id = as_text(waits.get("call_id"))
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("Nobody is there to be asked.", mend=f"Name the call: --call {call_id}.")
    name, arguments = as_text(waits.get("tool")), as_text(waits.get("arguments"))
    click.echo(safe(call_block(ToolCall(ToolCallId(call_id), name, arguments))), err=True)
    if not click.confirm(f"{verb.capitalize()} it?", err=True):
        raise click.Abort
    return call_id


async def _follow(client: RunsClient, run_id: str, server: str | None, *, as_json: bool) -> int:
    """Tell a run as it goes on, and return how it ended."""
    entries: list[Entry] = []
    story = Story()
    over = (await client.read(run_id)).get("state") == "ended"
    async for entry in client.follow(run_id):
        entries.append(entry)
        for line in () if as_json else story.lines(entry.event):
            click.echo(safe(line.text), err=True)
        if isinstance(entry.event, ApprovalAsked) and not (as_json or over):
            click.echo(waiting_text(RunId(run_id), entry.event, server), err=True)
    if not entries:
        raise NotFoundError(f"Run {run_id} has ended before anybody began it.")
    result = fold(entries)
    code = exit_code(result)
    if as_json:
        say_json(result_json(result, code, None))
        return code
    screen = screen_of(sys.stdout, colour=True, server=server)
    screen.show(f"{judged_text(result, screen)}\n\n{closing_text(result, screen)}")
    if published := await publication_line(client.read, run_id):
        screen.show(published)
    return code


async def _whole_id(client: RunsClient, run_id: str | None) -> str:
    """Return the id of the one newest run that begins so; None stands for the newest."""
    if run_id is not None and len(run_id) >= _ID_LENGTH:
        return run_id
    page = await client.page({"limit": 1 if run_id is None else _LOOKED_AT})
    ids = [as_text(one.get("id")) for one in as_objects(page.get("runs"))]
    found = [one for one in ids if one.startswith(run_id or "")]
    if len(found) > 1:
        raise NotFoundError(f"Several runs begin with {run_id!r}.", mend="Give more of the id.")
    if not found:
        raise NotFoundError(
            "There are no runs yet." if run_id is None else f"There is no run {run_id!r}."
        )
    return found[0]


def _say(run: JsonObject, *, as_json: bool) -> None:
    if as_json:
        say_json(run)
    else:
        click.echo(row_line(run))


def _ask(server: str | None, work: Callable[[RunsClient], Awaitable[T]]) -> T:
    address = service_address(server) or service_here()

    async def ask() -> T:
        async with RunsClient(address) as client:
            return await work(client)

    return asyncio.run(ask())
