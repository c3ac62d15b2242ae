"""`turnout runs reconcile`: what runs cost, by their record and by the gateway's receipts."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click

from turnout.cli.options import config_option, json_option, read_settings, say_json
from turnout.cli.terminal import plural, safe
from turnout.core.json import JsonObject
from turnout.core.money import format_usd
from turnout.errors import UsageError
from turnout.runs.spend.compare import CallDifference, Reconciled
from turnout.settings import Settings
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
@json_option
@config_option
def reconcile(
    *, run_id: str | None, everything: bool, dry_run: bool, as_json: bool, config: Path | None
) -> int:
    """Compare what a run cost by its record and by the gateway's receipts.

    The receipts are right: where they say something else, a correction goes on record, and from
    then on both agree to the micro-dollar. Without RUN_ID the newest run. A call whose receipt was
    deleted counts as it is on record.
    """
    if everything and run_id is not None:
        raise UsageError("Name a run or give --all, not both.")
    settings = read_settings(config)
    found = asyncio.run(_compared(settings, run_id, everything=everything, write=not dry_run))
    if as_json:
        say_json({"runs": [_object(each) for each in found], "agree": _agree(found)})
    else:
        for each in found:
            if not (everything and each.agrees):
                click.echo(safe(_text(each)))
        if everything:
            differed = sum(not each.agrees for each in found)
            click.echo(f"{plural(len(found), 'run')} compared, {differed} differed.")
    return 0 if _agree(found) else 1


async def _compared(
    settings: Settings, run_id: str | None, *, everything: bool, write: bool
) -> Sequence[Reconciled]:
    async with open_spend(settings) as (records, reconciler):
        if everything:
            return [each async for each in reconciler.all(write=write)]
        (first, *_) = await records.entries(run_id)
        return [await reconciler.run(first.run_id, write=write)]


def _agree(found: Sequence[Reconciled]) -> bool:
    return all(each.agrees for each in found)


def _text(found: Reconciled) -> str:
    head = f"{found.run_id}: {format_usd(found.charged)} by receipts"
    lines = [f"{head} and on record." if found.agrees else f"{head}, {_recorded(found)}"]
    lines += [f"  {_difference(each)}" for each in found.differences]
    if found.unknown:
        lines.append(f"  {plural(found.unknown, 'call')} of unknown cost: the gateway died.")
    if found.unpriced:
        lines.append(f"  {plural(found.unpriced, 'call')} at an unknown price.")
    if not found.agrees and not found.ended:
        lines.append("  The run has not ended: its record stays as it is for now.")
    return "\n".join(lines)


def _recorded(found: Reconciled) -> str:
    now = "; the record was put right." if found.corrected else "."
    if found.recorded == found.charged:
        return f"likewise on record, for other tokens{now}"
    return f"{format_usd(found.recorded)} on record{now}"


def _difference(each: CallDifference) -> str:
    step = "" if each.step is None else f" (step {each.step})"
    amounts = [
        f"{name} {format_usd(amount)}"
        for name, amount in (("record", each.recorded), ("receipt", each.charged))
        if amount is not None
    ]
    return f"{each.request_id}{step}: {_WHY[each.why]}{': ' if amounts else ''}{', '.join(amounts)}"


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
