"""The service as `turnout serve` opens it, with a worker, real sandboxes and the console.

What it works on are repositories without tests, so that a run takes a second; but for one.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from tests.browser.spoken import Spoken

from turnout.core.clock import SystemClock
from turnout.core.govern.keys import KeyLimits, KeyRecord, Role
from turnout.gateway.keys.desk import KeyDesk
from turnout.settings import load_settings
from turnout.store.database import Database, open_database
from turnout.store.keys import KeysStore
from turnout.testing.connections.server import running_tool_server
from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.repositories import TinyRepository, buggy_pagination
from turnout.wiring.serving.service import Served, open_serving
from turnout.wiring.state import DATABASE

__all__ = ["PROJECT", "ConsoleRole", "RealConsole", "real_console"]

ConsoleRole = Literal["viewer", "operator", "admin"]

PROJECT: Final = "shop"
_ROLES: Final[Mapping[ConsoleRole, Role]] = {
    "viewer": "viewer",
    "operator": "approver",
    "admin": "approver",
}
_MODELS: Final = ("small", "large")
_FILE: Final = """
[service]
workers = 2

[service.repositories]
pages = "{pages}"
notes = "{notes}"

[service.repositories.shared]
path = "{shared}"
push = true

[agent]
approvals = ["apply_patch:*gated*"]

[providers.scripted]
base_url = "{model}"

[[deployments]]
model = "small"
provider = "scripted"
tools = "confirmed"
context_window = 100_000
price = {{ input_usd = "1", output_usd = "2" }}

[[deployments]]
model = "large"
provider = "scripted"
tools = "confirmed"
context_window = 200_000
price = {{ input_usd = "10", output_usd = "20" }}

[connections.desk]
url = "{tools}"
allow = ["read_note", "write_note"]

[policies.team.tools]
mode = "dry_run"
allow = ["read_file"]
"""


@dataclass(frozen=True, slots=True)
class RealConsole:
    """A service that listens."""

    url: str
    """Of the console, with a slash at the end."""
    api: str
    """With `/v1`."""
    keys: Mapping[ConsoleRole, str] = field(repr=False)
    """All of one project."""
    spoken: Spoken
    database: Database
    notes: TinyRepository
    """A repository without tests."""
    home: Path
    """The state folder."""
    shared: TinyRepository
    """The same without files of its own, to which branches may be pushed."""


@asynccontextmanager
async def real_console(home: Path) -> AsyncIterator[RealConsole]:
    """Open it on a state folder, in front of a scripted model.

    The folder is not below pytest's own: sandboxes of root run under ids that cannot enter that.
    """
    pages = buggy_pagination(home / "pages")
    notes = TinyRepository(home / "notes", {"notes.txt": "one\n", "gated.txt": "old\n"})
    shared = TinyRepository(home / "shared.git", bare=True)
    notes.git("push", "--quiet", str(shared), "main")
    file, spoken = home / "turnout.toml", Spoken()
    async with (
        ScriptedModelServer(dict.fromkeys(_MODELS, spoken)) as model,
        _tool_server() as tools,
    ):
        known = {"pages": pages, "notes": notes, "shared": shared}
        known |= {"model": model.base_url, "tools": tools}
        file.write_text(_FILE.format(**known))
        environment = {"TURNOUT_HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin"}
        settings = load_settings(config=file, environment=environment)
        async with open_database(home / DATABASE) as database:
            keys = await _keys(database)
            served = Served("127.0.0.1", 0)
            async with open_serving(settings, served, lambda _: None) as opened:
                root = opened.base_url
                yield RealConsole(
                    f"{root}/console/", f"{root}/v1", keys, spoken, database, notes, home, shared
                )


async def _keys(database: Database) -> Mapping[ConsoleRole, str]:
    clock = SystemClock()
    desk = KeyDesk(KeysStore(database), clock)
    found: dict[ConsoleRole, str] = {}
    for name, role in _ROLES.items():
        limits, admin = KeyLimits(), name == "admin"
        policies = ("default", "team")
        wanted = KeyRecord(name, PROJECT, policies, limits, clock.now(), "", admin, role)
        found[name] = (await desk.create(wanted)).key
    return found


@asynccontextmanager
async def _tool_server() -> AsyncIterator[str]:
    """Serve tools until the block ends; yields their address.

    A task of its own opens and closes them, as it must be the same one that does both.
    """
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def served() -> None:
        async with running_tool_server(stateless=True) as tools:
            address.set_result(tools.url)
            await over.wait()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(served())
        yield await address
        over.set()
