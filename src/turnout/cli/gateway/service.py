"""`turnout serve`: the whole service in one process, or a part of it."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import uvloop

from turnout.cli.gateway.lines import LogFormat, lines_of
from turnout.cli.gateway.request_log import RequestLog
from turnout.cli.gateway.serve import log_format_option, serve_until_stopped
from turnout.cli.options import config_option, read_settings
from turnout.core.service.options import EVERY_ROLE, ServiceRole
from turnout.core.service.repositories import check_name
from turnout.errors import UsageError
from turnout.gateway.server import hold_many_connections
from turnout.settings import Settings, secret_named
from turnout.wiring.serving.service import Served, open_serving

__all__ = ["command", "named_places"]


class _Roles(click.ParamType[frozenset[ServiceRole]]):
    name = "ROLES"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> frozenset[ServiceRole]:
        """Return the roles that a list names."""
        named = {part.strip() for part in value.split(",")}
        roles = frozenset(role for role in EVERY_ROLE if role in named)
        if not named or named - roles:
            self.fail(f"give some of {', '.join(sorted(EVERY_ROLE))}", param, ctx)
        return roles


def _let_pass(_: object) -> None:
    """Tell nobody."""


@click.command(
    "serve",
    epilog="\b\nExamples:\n"
    "  turnout serve --repo .\n"
    "  turnout serve --repo shop=/srv/git/shop --repo api=/srv/git/api\n"
    "  TEAM_KEY=... turnout serve --host 0.0.0.0 --key-env TEAM_KEY\n"
    "  TURNOUT_GATEWAY=https://turnout.example.org turnout serve --roles worker",
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
@click.option(
    "--roles",
    type=_Roles(),
    default=",".join(sorted(EVERY_ROLE)),
    show_default=True,
    help="What this process does of the service's work.",
)
@click.option("--consume", is_flag=True, help="Take orders from the queue of [service.queue], too.")
@click.option("--quiet", is_flag=True, help="Print no lines for requests and runs.")
@log_format_option
@config_option
def command(
    *,
    host: str,
    port: int,
    repositories: tuple[str, ...],
    key_env: str | None,
    roles: frozenset[ServiceRole],
    consume: bool,
    quiet: bool,
    log_format: LogFormat,
    config: Path | None,
) -> int:
    """Take in runs over HTTP and work on them, until Ctrl-C.

    One process serves the API of runs (/v1/runs), the model gateway, and a worker. Runs are on
    record from the moment they are taken in: what is under way when the process ends goes on with
    the next one. Callers name repositories by name, never by a path. An address that others can
    reach needs a key: see `turnout keys`.

    With --roles the work is split among processes that share a database (TURNOUT_DATABASE): `api`
    takes runs in, `gateway` serves models, `worker` works. A worker without a gateway in its
    process asks the one at TURNOUT_GATEWAY, with the key of TURNOUT_GATEWAY_KEY; alone, it says on
    its address no more than that it lives (/healthz, /readyz).
    """
    key = secret_named(key_env, what="the key that callers send") if key_env is not None else ""
    settings = read_settings(config).with_repositories(named_places(repositories))
    hold_many_connections()

    if consume and "api" not in roles:
        raise UsageError("Orders are taken in by the role `api`.", mend="Add it to --roles.")
    served = Served(host, port, key, roles, consume)
    what = "Worker" if roles == {"worker"} else "Service"

    async def serve(log: RequestLog) -> None:
        on_receipt, on_run = (_let_pass, _let_pass) if quiet else (log.note, log.tell)
        opening = open_serving(settings, served, log.say, on_receipt=on_receipt, on_run=on_run)
        await serve_until_stopped(opening, what, f"Repositories: {_known(settings)}")

    words = lines_of(log_format)
    with RequestLog(sys.stderr, words, settings.redactor) as log, log.hearing_loggers():
        uvloop.run(serve(log))
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
