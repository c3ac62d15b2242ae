"""`turnout webhooks`: who is told of events."""

import asyncio
import getpass
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import get_args

import click

from turnout.cli.options import config_option, json_option, read_settings, say_json
from turnout.cli.terminal import plural, safe
from turnout.core.govern.happenings import HappeningKind
from turnout.core.govern.webhooks import Webhook, WebhookState
from turnout.core.json import JsonObject
from turnout.errors import UsageError
from turnout.gateway.notices.desk import WebhookOrder
from turnout.gateway.notices.signing import project_secret
from turnout.settings import Settings, secret_named, secret_value
from turnout.wiring.usage import open_usage

__all__ = ["command"]


@click.group(
    "webhooks",
    epilog="\b\nExamples:\n"
    "  turnout webhooks add https://hooks.example.org/turnout --secret-env HOOK_SECRET\n"
    "  turnout webhooks list\n"
    "  turnout webhooks remove hook-1a2b3c4d",
)
def command() -> None:
    """Tell other services of events, over HTTP.

    A running gateway sends each event as signed JSON, again and again until it is taken, for three
    days.
    """


@command.command("add")
@click.argument("url")
@click.option(
    "--secret-env",
    required=True,
    metavar="NAME",
    help="Variable of the gateway that holds the secret for the signatures.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(get_args(HappeningKind)),
    help="Events of this kind only; may be given again.",
)
@click.option("--project", default="", metavar="NAME", help="Events of one project only.")
@click.option("--allow-private", is_flag=True, help="It is on a private network; http will do.")
@json_option
@config_option
def _add(
    *,
    url: str,
    secret_env: str,
    kinds: tuple[HappeningKind, ...],
    project: str,
    allow_private: bool,
    as_json: bool,
    config: Path | None,
) -> int:
    """Tell an address of what happens from now on."""
    order = WebhookOrder(url, secret_env, kinds, project, allow_private)
    added = asyncio.run(_added(read_settings(config), order))
    if secret_value(secret_env) is None:
        click.echo(
            safe(f"warning: {secret_env} is not set here: set it where the gateway is started."),
            err=True,
        )
    if as_json:
        say_json(_object(added))
    else:
        click.echo(safe(f"{added.id} is told of {', '.join(added.kinds) or 'everything'}."))
    return 0


@command.command("list")
@json_option
@config_option
def _list(*, as_json: bool, config: Path | None) -> int:
    """List the webhooks and how their deliveries fare."""
    states = asyncio.run(_states(read_settings(config)))
    if as_json:
        say_json({"webhooks": [_state_object(state) for state in states]})
    elif not states:
        click.echo("There are no webhooks. Add one: turnout webhooks add URL --secret-env NAME")
    for state in () if as_json else states:
        click.echo(safe(_state_text(state)))
    return 0


@command.command("remove")
@click.argument("webhook_id")
@json_option
@config_option
def _remove(*, webhook_id: str, as_json: bool, config: Path | None) -> int:
    """Remove a webhook and what waits for it."""
    asyncio.run(_removed(read_settings(config), webhook_id))
    if as_json:
        say_json({"removed": webhook_id})
    else:
        click.echo(safe(f"Removed {webhook_id}."))
    return 0


@command.command("secret")
@click.option("--project", required=True, metavar="NAME", help="Whose runs are told of.")
@json_option
@config_option
def _secret(*, project: str, as_json: bool, config: Path | None) -> int:
    """Print the secret of a project's notifications, for those who receive them.

    Orders of the service name who is told of their runs. The messages are signed with a secret that
    follows from the service's own, which is in the variable that `[service.notify]` names.
    """
    variable = read_settings(config).service.notify.secret_variable
    if not variable:
        raise UsageError(
            "This service sends no notifications.",
            mend="Name the variable of its secret: `secret_env` under `[service.notify]`.",
        )
    secret = project_secret(secret_named(variable, what="the secret of the service"), project)
    if as_json:
        say_json({"project": project, "secret": secret})
    else:
        click.echo(secret)
    return 0


async def _added(settings: Settings, order: WebhookOrder) -> Webhook:
    async with open_usage(settings) as office:
        return await office.webhooks.add(order, author=_author())


async def _states(settings: Settings) -> Sequence[WebhookState]:
    async with open_usage(settings) as office:
        return await office.webhooks.all()


async def _removed(settings: Settings, webhook_id: str) -> None:
    async with open_usage(settings) as office:
        await office.webhooks.remove(webhook_id)


def _author() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def _object(webhook: Webhook) -> JsonObject:
    return {**asdict(webhook), "kinds": list(webhook.kinds)}


def _state_object(state: WebhookState) -> JsonObject:
    return {
        **_object(state.webhook),
        "created_at": state.created_at.isoformat(),
        "delivered_at": state.delivered_at.isoformat() if state.delivered_at else None,
        "failed_at": state.failed_at.isoformat() if state.failed_at else None,
        "failure": state.failure,
        "paused_until": state.paused_until.isoformat() if state.paused_until else None,
        "waiting": state.waiting,
        "dropped": state.dropped,
    }


def _state_text(state: WebhookState) -> str:
    webhook = state.webhook
    told = ", ".join(webhook.kinds) or "everything"
    parts = [
        webhook.id,
        webhook.url,
        f"{told}{f' of {webhook.project}' if webhook.project else ''}",
    ]
    if state.delivered_at is not None:
        parts.append(f"last taken {state.delivered_at:%Y-%m-%d %H:%M}")
    if state.waiting:
        parts.append(f"{plural(state.waiting, 'event')} waiting")
    if state.dropped:
        parts.append(f"{plural(state.dropped, 'event')} given up")
    if state.paused_until is not None:
        parts.append(f"{state.failure}; again at {state.paused_until:%H:%M} UTC")
    return "  ".join(parts)
