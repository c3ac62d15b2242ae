"""Serving the gateway until a signal comes."""

import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar, get_args

import click
import uvloop

from turnout.cli.gateway.lines import LogFormat, lines_of
from turnout.cli.gateway.request_log import RequestLog
from turnout.cli.options import config_option, read_settings
from turnout.cli.terminal import safe
from turnout.gateway.server import hold_many_connections
from turnout.settings import Settings, secret_named
from turnout.wiring.serving.gateway import OpenGateway, open_gateway

__all__ = ["command", "log_format_option", "serve_until_stopped"]

Command = TypeVar("Command", bound=Callable[..., Any])

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class _Place:
    host: str
    port: int
    key: str


def log_format_option(command: Command) -> Command:
    """Add `--log-format`."""
    return click.option(
        "--log-format",
        type=click.Choice(get_args(LogFormat)),
        default="text",
        show_default=True,
        help="How lines on standard error are written: for people, or JSON for programs.",
    )(command)


@click.command(
    "gateway",
    epilog="\b\nExamples:\n"
    "  turnout gateway\n"
    "  OPENAI_BASE_URL=http://127.0.0.1:8700/v1 OPENAI_API_KEY=unused my-agent\n"
    "  TEAM_KEY=... turnout gateway --host 0.0.0.0 --key-env TEAM_KEY",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8700, show_default=True, help="0: a free one."
)
@click.option(
    "--key-env",
    metavar="NAME",
    help="Variable that holds one key that callers may send, beside those of `turnout keys`.",
)
@click.option("--quiet", is_flag=True, help="Print no line for each request.")
@log_format_option
@config_option
def command(
    *,
    host: str,
    port: int,
    key_env: str | None,
    quiet: bool,
    log_format: LogFormat,
    config: Path | None,
) -> int:
    """Serve the model gateway until Ctrl-C.

    It answers chat completions, responses and messages (/v1/chat/completions, /v1/responses,
    /v1/messages), for the models that turnout.toml, LLM_BASE_URL or the local model give, under
    the policies of the store, else of turnout.toml. An address that others can reach needs a
    key: see `turnout keys`. Each request is one line on standard error: time, id, model or error
    code, status, duration, cost. Prompts and keys are never printed.
    """
    key = secret_named(key_env, what="the key that callers send") if key_env is not None else ""
    settings, place = read_settings(config), _Place(host, port, key)
    hold_many_connections()
    words = lines_of(log_format)
    with RequestLog(sys.stderr, words, settings.redactor) as log, log.hearing_loggers():
        uvloop.run(_serve(settings, place, log, quiet=quiet))
    return 0


async def _serve(settings: Settings, place: _Place, log: RequestLog, *, quiet: bool) -> None:
    opening = open_gateway(
        settings,
        host=place.host,
        port=place.port,
        key=place.key,
        report=log.say,
        on_receipt=None if quiet else log.note,
    )
    await serve_until_stopped(opening, "Gateway")


async def serve_until_stopped(
    opening: AbstractAsyncContextManager[OpenGateway], what: str, *more: str
) -> None:
    """Serve until a signal comes; one that comes before we serve ends the opening at once.

    `what` is there then; `more` lines are printed below its address.
    """
    serving = False
    main = asyncio.current_task()
    if main is None:
        raise RuntimeError("runs inside a task")
    for number in _STOPPING:
        asyncio.get_running_loop().add_signal_handler(number, main.cancel)
    try:
        async with opening as gateway:
            # A process that only works serves nothing below it.
            click.echo(f"{what}: {gateway.base_url}{'/v1' if gateway.models else ''}")
            models = (f"Models: auto, {', '.join(gateway.models)}",) if gateway.models else ()
            console = (f"Console: {gateway.console}",) if gateway.console else ()
            for line in (*models, *console, *more):
                click.echo(safe(line))
            serving = True
            await asyncio.Event().wait()
    except asyncio.CancelledError:
        if not serving:
            raise KeyboardInterrupt from None
