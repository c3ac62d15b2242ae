"""The commands that judge and change policies: check, apply, rollback."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click

from turnout.cli.options import config_option, json_option, read_settings, say_json
from turnout.cli.policy.files import PolicyFile, read_file, user_name
from turnout.cli.policy.text import check_text, outcome_text
from turnout.errors import UsageError
from turnout.gateway.policy.desk import Outcome, PolicyDiff, Signature
from turnout.gateway.policy.findings import Finding
from turnout.gateway.policy.views import CheckOut, OutcomeOut, OutcomesOut
from turnout.settings import Settings
from turnout.wiring.policies import open_policies

__all__ = ["apply", "check", "rollback"]

_file = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
_note = click.option("--note", default="", metavar="TEXT", help="Why; kept with the revision.")
_author = click.option(
    "--author", default="", metavar="NAME", help="Who changes it, in place of your user name."
)
_expect = click.option(
    "--expect",
    type=click.IntRange(0, 2**31 - 1),
    metavar="N",
    help="Refuse unless the newest revision is N (0: there is none).",
)


@click.command("check")
@_file
@json_option
@config_option
def check(*, file: Path, as_json: bool, config: Path | None) -> int:
    """Say whether FILE is sound, what stands out in it, and what it would change.

    FILE is a file of policies or a whole turnout.toml. Nothing is applied.
    """
    read = read_file(file, config)
    checked = asyncio.run(_checked(read))
    if as_json:
        say_json({"policies": [CheckOut.of(*one).model_dump(mode="json") for one in checked]})
    for one in () if as_json else checked:
        click.echo(check_text(*one))
    return 0


@click.command("apply")
@_file
@_note
@_author
@_expect
@json_option
@config_option
def apply(
    *,
    file: Path,
    note: str,
    author: str,
    expect: int | None,
    as_json: bool,
    config: Path | None,
) -> int:
    """Make each policy of FILE that changed a new revision of the store: all or none.

    FILE is a file of policies or a whole turnout.toml. Gateways that run follow within a second.
    """
    read = read_file(file, config)
    if expect is not None and len(read.policies) > 1:
        raise UsageError(
            "--expect is about one policy, and the file has several.", mend="Leave it out."
        )
    outcomes = asyncio.run(_applied(read, Signature(author or user_name(), note, expect)))
    if as_json:
        shown = OutcomesOut(outcomes=[OutcomeOut.of(outcome) for outcome in outcomes])
        say_json(shown.model_dump(mode="json"))
    for outcome in () if as_json else outcomes:
        click.echo(outcome_text(outcome))
    return 0


@click.command("rollback")
@click.argument("name")
@click.argument("revision", type=click.IntRange(1, 2**31 - 1))
@_note
@_author
@_expect
@json_option
@config_option
def rollback(
    *,
    name: str,
    revision: int,
    note: str,
    author: str,
    expect: int | None,
    as_json: bool,
    config: Path | None,
) -> int:
    """Make what REVISION of a policy said a new revision."""
    signed = Signature(author or user_name(), note, expect)
    outcome = asyncio.run(_rolled_back(read_settings(config), name, revision, signed))
    if as_json:
        say_json(OutcomeOut.of(outcome).model_dump(mode="json"))
    else:
        click.echo(outcome_text(outcome))
    return 0


async def _checked(read: PolicyFile) -> Sequence[tuple[Sequence[Finding], PolicyDiff]]:
    async with open_policies(read.settings) as office:
        return [
            (office.desk.check(policy, policy.name), await office.desk.compare(policy))
            for policy in read.policies
        ]


async def _applied(read: PolicyFile, signed: Signature) -> Sequence[Outcome]:
    async with open_policies(read.settings) as office:
        return await office.desk.apply(read.policies, signed)


async def _rolled_back(settings: Settings, name: str, number: int, signed: Signature) -> Outcome:
    async with open_policies(settings) as office:
        return await office.desk.rollback(name, number, signed)
