"""The service as `turnout serve` opens it, all routes of it, with keys of two projects.

No worker is in it: what is ordered waits, unless a test begins it as a worker would.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from turnout.core.clock import SystemClock
from turnout.core.events import Event, RunStarted
from turnout.core.govern.keys import KeyLimits, KeyRecord, Role
from turnout.core.ids import RunId
from turnout.core.service.orders import OrderedRun
from turnout.gateway.keys.desk import KeyDesk
from turnout.settings import load_settings
from turnout.store.database import Database, open_database
from turnout.store.keys import KeysStore
from turnout.store.orders import OrdersStore
from turnout.store.record import RecordStore
from turnout.testing.model_server import ScriptedModelServer, Turn
from turnout.testing.repositories import TinyRepository
from turnout.wiring.serving.service import Served, open_serving
from turnout.wiring.state import DATABASE

__all__ = ["ROLES", "RealService", "real_service"]

ROLES: Final[tuple[Role, ...]] = ("models", "viewer", "member", "approver", "worker")
_MODEL: Final = {"m": [Turn(text="Done.")] * 5_000}
_FILE: Final = """
[service]
queued_per_project = 100_000

[service.repositories]
shop = "{repository}"

[service.forges.hub]
kind = "github"
api = "https://hub.test/api/v3"
secret_env = "HUB_SECRET"
token_env = "HUB_TOKEN"
key = "red-member"
repositories = {{ "acme/shop" = "shop" }}

[policies.team.tools]
mode = "dry_run"
allow = ["read_file"]
"""


@dataclass(frozen=True, slots=True)
class RealService:
    """A service that listens."""

    url: str
    """With `/v1`."""
    keys: Mapping[str, str]
    """By name: `red-viewer`, `blue-approver`, and so on of each project and role; and `boss`."""
    database: Database

    async def begun(self, run_id: RunId, *events: Event) -> OrderedRun:
        """Begin a run as a worker would, and let these events happen."""
        orders, now = OrdersStore(self.database), SystemClock().now
        run = await orders.claim("w", lambda _: run_id, now())
        assert run is not None, f"{run_id} cannot be begun"
        first = RunStarted(run.order.task, "c" * 40, "loop")
        await RecordStore(self.database).append_all(run_id, run.epoch, (first, *events), now())
        return run


@asynccontextmanager
async def real_service(folder: Path) -> AsyncIterator[RealService]:
    """Open it on a state folder of its own, in front of a scripted model."""
    repository = TinyRepository(folder / "shop", {"a.txt": "a\n"})
    file = folder / "turnout.toml"
    file.write_text(_FILE.format(repository=repository))
    variables = pytest.MonkeyPatch()
    async with AsyncExitStack() as stack:
        stack.callback(variables.undo)
        model = await stack.enter_async_context(ScriptedModelServer(_MODEL))
        environment = {
            "TURNOUT_HOME": str(folder / "state"),
            "LLM_BASE_URL": model.base_url,
            "LLM_MODEL": "m",
            "PATH": "/usr/bin:/bin",
        }
        settings = load_settings(config=file, environment=environment)
        async with open_database(folder / "state" / DATABASE) as database:
            variables.setenv("HUB_SECRET", "hub-secret-0123456789")
            variables.setenv("HUB_TOKEN", "hub-token-0123456789")
            keys = await _keys(database)
            served = Served("127.0.0.1", 0, roles=frozenset({"api", "gateway"}))
            async with open_serving(settings, served, lambda _: None) as gateway:
                yield RealService(f"{gateway.base_url}/v1", keys, database)


async def _keys(database: Database) -> Mapping[str, str]:
    clock = SystemClock()
    desk = KeyDesk(KeysStore(database), clock)

    async def made(name: str, project: str, role: Role, *, admin: bool = False) -> str:
        policies = ("default", "team")
        wanted = KeyRecord(name, project, policies, KeyLimits(), clock.now(), "", admin, role)
        return (await desk.create(wanted)).key

    found = {
        f"{project}-{role}": await made(f"{project}-{role}", project, role)
        for project in ("red", "blue")
        for role in ROLES
    }
    return {**found, "boss": await made("boss", "office", "approver", admin=True)}
