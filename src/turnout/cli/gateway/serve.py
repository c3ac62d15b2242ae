"""Serving the gateway until a signal comes."""

import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
import uvloop

from turnout.cli.gateway.request_log import RequestLog
from turnout.cli.options import config_option, read_settings
from turnout.cli.terminal import safe
from turnout.core.receipts import Receipt
from turnout.gateway.server import hold_many_connections
from turnout.settings import Settings, secret_named
from turnout.wiring.serving.gateway import OpenGateway, open_gateway

__all__ = ["command", "report_line", "serve_until_stopped"]

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class _Place:
    host: str
    port: int
    key: str


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
@config_option
def command(*, host: str, port: int, key_env: str | None, quiet: bool, config: Path | None) -> int:
    """Serve the model gateway until Ctrl-C.

    It answers chat completions, responses and messages (/v1/chat/completions, /v1/responses,
    /v1/messages), for the models that turnout.toml, LLM_BASE_URL or the local model give, under
    the policies of the store, else of turnout.toml. An address that others can reach needs a
    key: see `turnout keys`. Each request is one line on standard error: time, id, model or error
    code, status, duration, cost. Prompts and keys are never printed.
    """
    key = secret_named(key_env) if key_env is not None else ""
    settings, place = read_settings(config), _Place(host, port, key)
    hold_many_connections()
    if quiet:
        uvloop.run(_serve(settings, place, None))
        return 0
    with RequestLog(sys.stderr) as log:
        uvloop.run(_serve(settings, place, log.note))
    return 0


async def _serve(
    settings: Settings, place: _Place, on_receipt: Callable[[Receipt], None] | None
) -> None:
    opening = open_gateway(
        settings,
        host=place.host,
        port=place.port,
        key=place.key,
        report=report_line,
        on_receipt=on_receipt,
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
            click.echo(f"{what}: {gateway.base_url}/v1")
            for line in (f"Models: auto, {', '.join(gateway.models)}", *more):
                click.echo(safe(line))
            serving = True
            await asyncio.Event().wait()
    except asyncio.CancelledError:
        if not serving:
            raise KeyboardInterrupt from None


def report_line(text: str) -> None:
    """Tell the person who waits."""
    click.echo(safe(text), err=True)
