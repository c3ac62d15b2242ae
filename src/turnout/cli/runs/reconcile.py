"""`turnout runs reconcile`: what runs cost, by their record and by the gateway's receipts."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from turnout.cli.options import config_option, json_option, read_settings, say_json
from turnout.cli.runs.remote import remote_run, server_option
from turnout.cli.terminal import plural, safe
from turnout.core.json import JsonObject, JsonValue, as_objects, as_text
from turnout.core.money import Micros, format_usd
from turnout.core.service.options import ServiceAddress
from turnout.errors import NotFoundError, UsageError
from turnout.runs.spend.compare import Reconciled
from turnout.settings import Settings, service_address
from turnout.web.client import RunsClient
from turnout.wiring.state import open_spend

__all__ = ["reconcile"]

_WHY = {
    "amount": "other amounts",
    "not_on_record": "not on record",
    "no_receipt": "no receipt",
}


@click.command(
    "reconcile",
    epilog="\b\nExit codes:\n  0  records and receipts agree\n"
    "  1  they differed, and records of runs that have ended were put right; or no such run\n"
    "  2  wrong usage",
)
@click.argument("run_id", required=False)
@click.option("--all", "everything", is_flag=True, help="Every run that has ended.")
@click.option("--dry-run", is_flag=True, help="Change no record.")
@server_option
@json_option
@config_option
def reconcile(
    *,
    run_id: str | None,
    everything: bool,
    dry_run: bool,
    server: str | None,
    as_json: bool,
    config: Path | None,
) -> int:
    """Compare what a run cost by its record and by the gateway's receipts.

    The receipts are right: where they say something else, a correction goes on record, and from
    then on both agree to the micro-dollar. Without RUN_ID the newest run. A call whose receipt was
    deleted counts as it is on record.
    """
    if everything and run_id is not None:
        raise UsageError("Name a run or give --all, not both.")
    wanted = _Wanted(run_id, everything, write=not dry_run)
    address = service_address(server)
    work = _here(read_settings(config), wanted) if address is None else _there(address, wanted)
    found = asyncio.run(work)
    agree = all(each["agrees"] for each in found)
    if as_json:
        say_json({"runs": found, "agree": agree})
        return 0 if agree else 1
    for each in found:
        if not (everything and each["agrees"]):
            click.echo(safe(_text(each)))
    if everything:
        differed = sum(not each["agrees"] for each in found)
        click.echo(f"{plural(len(found), 'run')} compared, {differed} differed.")
    return 0 if agree else 1


@dataclass(frozen=True, slots=True)
class _Wanted:
    run_id: str | None
    everything: bool
    write: bool


async def _here(settings: Settings, wanted: _Wanted) -> Sequence[JsonObject]:
    async with open_spend(settings) as (records, reconciler):
        if wanted.everything:
            return [_object(each) async for each in reconciler.all(write=wanted.write)]
        (first, *_) = await records.entries(wanted.run_id)
        return [_object(await reconciler.run(first.run_id, write=wanted.write))]


async def _there(address: ServiceAddress, wanted: _Wanted) -> Sequence[JsonObject]:
    async with RunsClient(address) as client:
        if wanted.run_id is not None:
            ids = [as_text((await remote_run(address, wanted.run_id)).get("id"))]
        else:
            ids = [each async for each in _begun(client, everything=wanted.everything)]
        if not (ids or wanted.everything):
            raise NotFoundError("There is no run yet that somebody has begun.")
        if wanted.write:
            return [await client.act(each, "reconcile") for each in ids]
        return [await client.spend(each) for each in ids]


async def _begun(client: RunsClient, *, everything: bool) -> AsyncIterator[str]:
    """Yield every run that has ended and was begun before, or the newest one alone."""
    asked: dict[str, str | int] = {"limit": 1}
    if everything:
        asked = {"state": "ended", "limit": 200}
    cursor: JsonValue = None
    while True:
        page = await client.page({**asked, "cursor": cursor} if isinstance(cursor, int) else asked)
        for run in as_objects(page.get("runs")):
            if run.get("started_at") is not None:
                yield as_text(run.get("id"))
        cursor = page.get("next_cursor")
        if not everything or cursor is None:
            return


def _text(found: JsonObject) -> str:
    head = f"{found['run_id']}: {_usd(found['charged_micros'])} by receipts"
    lines = [f"{head} and on record." if found["agrees"] else f"{head}, {_recorded(found)}"]
    lines += [f"  {_difference(each)}" for each in as_objects(found["differences"])]
    if found["unknown"]:
        lines.append(f"  Calls of unknown cost, because the gateway died: {found['unknown']}.")
    if found["unpriced"]:
        lines.append(f"  Calls at an unknown price: {found['unpriced']}.")
    if not found["agrees"] and not found["ended"]:
        lines.append("  The run has not ended: its record stays as it is for now.")
    return "\n".join(lines)


def _recorded(found: JsonObject) -> str:
    now = "; the record was put right." if found["corrected"] else "."
    if found["recorded_micros"] == found["charged_micros"]:
        return f"likewise on record, for other tokens{now}"
    return f"{_usd(found['recorded_micros'])} on record{now}"


def _difference(each: JsonObject) -> str:
    step = "" if each["step"] is None else f" (step {each['step']})"
    amounts = [
        f"{name} {_usd(each[field])}"
        for name, field in (("record", "recorded_micros"), ("receipt", "charged_micros"))
        if each[field] is not None
    ]
    why = _WHY.get(as_text(each["why"]), "differs")
    return f"{each['request_id']}{step}: {why}{': ' if amounts else ''}{', '.join(amounts)}"


def _usd(amount: JsonValue) -> str:
    return format_usd(Micros(amount)) if isinstance(amount, int) else "an unknown amount"


def _object(found: Reconciled) -> JsonObject:
    return {
        "run_id": found.run_id,
        "agrees": found.agrees,
        "corrected": found.corrected,
        "ended": found.ended,
        "recorded_micros": found.recorded,
        "charged_micros": found.charged,
        "unknown": found.unknown,
        "unpriced": found.unpriced,
        "differences": [
            {
                "request_id": each.request_id,
                "why": each.why,
                "step": each.step,
                "recorded_micros": each.recorded,
                "charged_micros": each.charged,
            }
            for each in found.differences
        ],
    }
