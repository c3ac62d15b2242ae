"""`turnout policy` and the commands that read: history, show, diff, report."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click

from turnout.cli.options import config_option, json_option, read_settings, say_json
from turnout.cli.policy.change import apply, check, rollback
from turnout.cli.policy.explain import explain
from turnout.cli.policy.files import read_file
from turnout.cli.policy.text import diff_text, policy_text, report_text, revision_line
from turnout.core.govern.revisions import DEFAULT_POLICY, PolicyRevision
from turnout.core.policies import Policy
from turnout.errors import UsageError
from turnout.gateway.policy.desk import PolicyDiff
from turnout.gateway.policy.report import PolicyReport, report_on
from turnout.gateway.policy.views import DiffOut, HistoryOut, PoliciesOut, ReportOut, RevisionOut
from turnout.settings import Settings
from turnout.wiring.policies import open_policies

__all__ = ["command"]


@click.group(
    "policy",
    epilog="\b\nExamples:\n"
    "  turnout policy check policies.toml\n"
    '  turnout policy apply policies.toml --note "shell is out"\n'
    "  turnout policy diff default\n"
    "  turnout policy rollback default 3\n"
    "  turnout policy explain --task coding --tool read_file --tool apply_patch",
)
def command() -> None:
    """Check, apply, compare and explain policies.

    A policy lives in a file, [policy] of turnout.toml or [policies.NAME], and, once it was
    applied, in the store as numbered revisions. For `turnout gateway` the store then wins; `turnout
    run` reads the file alone.
    """


for _one in (check, apply, rollback, explain):
    command.add_command(_one)


@command.command("history")
@click.argument("name", required=False)
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@json_option
@config_option
def _history(*, name: str | None, limit: int, as_json: bool, config: Path | None) -> int:
    """List a policy's revisions, newest first; without NAME every policy at its newest."""
    settings = read_settings(config)
    revisions = asyncio.run(_revisions(settings, name, limit))
    kept = {revision.policy.name for revision in revisions}
    filed = [p for p in settings.policies if name is None and p.name not in kept]
    if as_json:
        listed = HistoryOut.of(revisions) if name else PoliciesOut.of(revisions, filed)
        say_json(listed.model_dump(mode="json"))
        return 0
    for revision in revisions:
        click.echo(("" if name else f"{revision.policy.name}: ") + revision_line(revision))
    for policy in filed:
        click.echo(f"{policy.name}: of the configuration file, never applied")
    return 0


@command.command("show")
@click.argument("name", default=DEFAULT_POLICY)
@click.option("--revision", type=click.IntRange(1, 2**31 - 1), metavar="N", help="Another one.")
@json_option
@config_option
def _show(*, name: str, revision: int | None, as_json: bool, config: Path | None) -> int:
    """Print the policy that counts, as a file that can be applied."""
    settings = read_settings(config)
    policy, kept = asyncio.run(_policy(settings, name, revision))
    if as_json:
        shown = RevisionOut.of(kept) if kept else RevisionOut.of_file(policy)
        say_json(shown.model_dump(mode="json"))
    else:
        click.echo(policy_text(policy, kept))
    return 0


@command.command("diff")
@click.argument("name", default=DEFAULT_POLICY)
@click.argument("before", type=click.IntRange(0, 2**31 - 1), required=False, metavar="[FROM]")
@click.argument("after", type=click.IntRange(1, 2**31 - 1), required=False, metavar="[TO]")
@click.option(
    "--file",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Compare the newest revision with a file instead.",
)
@json_option
@config_option
def _diff(
    *,
    name: str,
    before: int | None,
    after: int | None,
    file: Path | None,
    as_json: bool,
    config: Path | None,
) -> int:
    """Compare two revisions of a policy, field by field.

    By default the newest with the one before it. Exit code 0, whether they differ or not.
    """
    if file is not None and before is not None:
        raise UsageError("--file is compared with the newest revision.", mend="Leave FROM out.")
    if file is None:
        diff = asyncio.run(_compared(read_settings(config), name, (before, after)))
    else:
        read = read_file(file, config)
        diff = asyncio.run(_drafted(read.settings, read.named(name)))
    if as_json:
        say_json(DiffOut.of(diff).model_dump(mode="json"))
    else:
        click.echo(diff_text(diff))
    return 0


@command.command("report")
@click.argument("name", default=DEFAULT_POLICY)
@click.option("--days", type=click.IntRange(1, 366), default=30, show_default=True)
@json_option
@config_option
def _report(*, name: str, days: int, as_json: bool, config: Path | None) -> int:
    """Report the tools outside a policy's list, by key, and whether to enforce it."""
    report = asyncio.run(_reported(read_settings(config), name, days))
    if as_json:
        say_json(ReportOut.of(report).model_dump(mode="json"))
    else:
        click.echo(report_text(report))
    return 0


async def _revisions(settings: Settings, name: str | None, limit: int) -> Sequence[PolicyRevision]:
    async with open_policies(settings) as office:
        if name is None:
            return await office.desk.newest()
        return await office.desk.history(name, limit=limit)


async def _policy(
    settings: Settings, name: str, number: int | None
) -> tuple[Policy, PolicyRevision | None]:
    async with open_policies(settings) as office:
        if number is None and await office.desk.newest_of(name) is None:
            return await office.desk.in_force(name), None
        kept = await office.desk.get(name, number)
        return kept.policy, kept


async def _compared(
    settings: Settings, name: str, numbers: tuple[int | None, int | None]
) -> PolicyDiff:
    async with open_policies(settings) as office:
        return await office.desk.diff(name, *numbers)


async def _drafted(settings: Settings, draft: Policy) -> PolicyDiff:
    async with open_policies(settings) as office:
        return await office.desk.compare(draft)


async def _reported(settings: Settings, name: str, days: int) -> PolicyReport:
    async with open_policies(settings) as office:
        return await report_on(office.desk, office.reports, name, days=days, clock=office.clock)
