"""`turnout serve`: the whole service in one process."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import click
import uvloop

from turnout.cli.gateway.request_log import RequestLog
from turnout.cli.gateway.serve import report_line, serve_until_stopped
from turnout.cli.options import config_option, read_settings
from turnout.core.receipts import Receipt
from turnout.core.service.repositories import check_name
from turnout.errors import UsageError
from turnout.gateway.server import hold_many_connections
from turnout.settings import Settings, secret_named
from turnout.wiring.serving.service import open_serving

__all__ = ["command", "named_places"]


@click.command(
    "serve",
    epilog="\b\nExamples:\n"
    "  turnout serve --repo .\n"
    "  turnout serve --repo shop=/srv/git/shop --repo api=/srv/git/api\n"
    "  TEAM_KEY=... turnout serve --host 0.0.0.0 --key-env TEAM_KEY",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8700, show_default=True, help="0: a free one."
)
@click.option(
    "--repo",
    "repositories",
    multiple=True,
    metavar="[NAME=]PATH",
    help="A repository that callers may name, beside those of [service]; its name is that of "
    "its folder, or the one given.",
)
@click.option(
    "--key-env",
    metavar="NAME",
    help="Variable that holds one key that callers may send, beside those of `turnout keys`.",
)
@click.option("--quiet", is_flag=True, help="Print no lines for requests and runs.")
@config_option
def command(
    *,
    host: str,
    port: int,
    repositories: tuple[str, ...],
    key_env: str | None,
    quiet: bool,
    config: Path | None,
) -> int:
    """Take in runs over HTTP and work on them, until Ctrl-C.

    One process serves the API of runs (/v1/runs), the model gateway, and a worker. Runs are on
    record from the moment they are taken in: what is under way when the process ends goes on with
    the next one. Callers name repositories by name, never by a path. An address that others can
    reach needs a key: see `turnout keys`.
    """
    key = secret_named(key_env) if key_env is not None else ""
    settings = read_settings(config).with_repositories(named_places(repositories))
    hold_many_connections()

    async def serve(
        on_receipt: Callable[[Receipt], None] | None, on_run: Callable[[str], None] | None
    ) -> None:
        opening = open_serving(
            settings,
            host=host,
            port=port,
            key=key,
            report=report_line,
            on_receipt=on_receipt,
            on_run=on_run,
        )
        await serve_until_stopped(opening, "Service", f"Repositories: {_known(settings)}")

    if quiet:
        uvloop.run(serve(None, None))
        return 0
    with RequestLog(sys.stderr) as log:
        uvloop.run(serve(log.note, log.say))
    return 0


def named_places(given: Iterable[str]) -> dict[str, str]:
    """Return places by name; `UsageError` for a name that cannot be, or two of one name."""
    found: dict[str, str] = {}
    for one in given:
        name, equals, path = one.partition("=")
        place = Path(path if equals else one).resolve()
        name = name if equals else place.name
        check_name(name)
        if name in found:
            raise UsageError(f"Two repositories are called {name!r}.", mend="Write NAME=PATH.")
        found[name] = str(place)
    return found


def _known(settings: Settings) -> str:
    book = settings.service.repositories
    known = [*book.named, *(f"https://{server}/..." for server in book.servers)]
    return ", ".join(known) or "none; name some with --repo, or under [service] in turnout.toml"
