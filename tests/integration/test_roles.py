"""What a process serves is what its roles say, and nothing else."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from turnout.core.clock import SystemClock
from turnout.core.govern.keys import KeyLimits, KeyRecord, Role
from turnout.core.service.options import ServiceRole
from turnout.errors import ConfigError
from turnout.gateway.keys.desk import KeyDesk
from turnout.settings import load_settings
from turnout.store.database import open_database
from turnout.store.keys import KeysStore
from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.turns import Turn
from turnout.wiring.serving.service import Served, open_serving
from turnout.wiring.state import DATABASE

ORDER = {"task": "Fix it.", "repo": "https://git.example.org/team/shop"}
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


class Client:
    """A program of this machine."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http = http
        self._url = url

    async def call(self, method: str, path: str, **options: Any) -> tuple[int, str]:
        """Return the status, and the code of an error."""
        async with self._http.request(method, f"{self._url}{path}", **options) as answer:
            body = await answer.json()
            return answer.status, body.get("error", {}).get("code", "")


@asynccontextmanager
async def serving(
    folder: Path,
    *roles: ServiceRole,
    host: str = "127.0.0.1",
    report: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[Client]:
    """Serve these roles on a free port."""
    (folder / "turnout.toml").write_text('[service]\nservers = ["git.example.org/team"]\n')
    async with ScriptedModelServer([Turn("hello")], models=["m"]) as model:
        environment = {
            "TURNOUT_HOME": str(folder / "home"),
            "LLM_BASE_URL": model.base_url,
            "LLM_API_KEY": "sesame",
            "LLM_MODEL": "m",
        }
        settings = load_settings(environment=environment, directory=folder)
        served = Served(host, 0, roles=frozenset(roles))
        async with (
            open_serving(settings, served, report) as gateway,
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(30)) as http,
        ):
            yield Client(http, gateway.base_url.replace("0.0.0.0", "127.0.0.1"))


async def made(folder: Path, name: str, role: Role) -> dict[str, str]:
    """Make a key as another process does, and return the headers that send it."""
    async with open_database(folder / "home" / DATABASE) as database:
        clock = SystemClock()
        wanted = KeyRecord(name, "web", ("default",), KeyLimits(), clock.now(), "", role=role)
        key = (await KeyDesk(KeysStore(database), clock).create(wanted)).key
    return {"authorization": f"Bearer {key}"}


async def answered(client: Client, method: str, path: str, **options: Any) -> tuple[int, str]:
    """Return what is answered once it is no longer 401; a key that never opens fails the test."""
    async with asyncio.timeout(20):
        while True:
            status, code = await client.call(method, path, **options)
            if status != 401:
                return status, code
            await asyncio.sleep(0.05)


async def test_where_runs_are_taken_in_no_model_is_asked(tmp_path: Path) -> None:
    """Nor is a run worked on: that is left to workers elsewhere."""
    async with serving(tmp_path, "api") as client:
        assert await client.call("POST", "/v1/runs", json=ORDER) == (201, "")
        assert await client.call("GET", "/v1/runs") == (200, "")
        assert await client.call("GET", "/readyz") == (200, "")
        for method, path in (("POST", "/v1/chat/completions"), ("GET", "/v1/workers/access")):
            assert await client.call(method, path, json=CHAT) == (404, "route_not_found")


async def test_where_models_are_asked_no_run_is_taken_in(tmp_path: Path) -> None:
    """Workers learn there how models are worked with."""
    async with serving(tmp_path, "gateway") as client:
        assert await client.call("POST", "/v1/runs", json=ORDER) == (404, "route_not_found")
        assert await client.call("POST", "/v1/chat/completions", json=CHAT) == (200, "")
        behalf = {"x-turnout-on-behalf": "local/default/"}
        asked = await client.call("GET", "/v1/workers/access", headers=behalf)
        assert asked == (200, "")
        asked = await client.call("GET", "/v1/workers/access?max_spend_micros=5", headers=behalf)
        assert asked == (422, "order_not_served")
        assert await client.call("GET", "/v1/policies") == (200, "")


async def test_a_worker_needs_a_gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused at once where none is named."""
    monkeypatch.delenv("TURNOUT_GATEWAY", raising=False)
    with pytest.raises(ConfigError, match="TURNOUT_GATEWAY is not set"):
        async with serving(tmp_path, "api", "worker"):
            pass


async def test_a_front_that_others_reach_is_shut_until_the_first_key_is_made(
    tmp_path: Path,
) -> None:
    """The order in which several machines are set up: the front, its keys, then workers."""
    said: list[str] = []
    roles: tuple[ServiceRole, ...] = ("api", "gateway")
    async with serving(tmp_path, *roles, host="0.0.0.0", report=said.append) as client:
        (line,) = (line for line in said if "turnout keys create" in line)
        assert line.startswith("Others can reach 0.0.0.0, and there is no key: every request is")
        assert await client.call("GET", "/readyz") == (200, "")
        asked = (("POST", "/v1/runs", ORDER), ("POST", "/v1/chat/completions", CHAT))
        for method, path, body in asked:
            for host in ("127.0.0.1", "localhost", "turnout.example.org"):
                refused = await client.call(method, path, json=body, headers={"host": host})
                assert refused == (401, "invalid_api_key")
        for path in ("/v1/workers/access", "/v1/usage", "/v1/keys", "/v1/audit", "/metrics"):
            assert await client.call("GET", path) == (401, "invalid_api_key")
        machines = await made(tmp_path, "machines", "worker")
        mine = await made(tmp_path, "me", "approver")
        assert await answered(client, "POST", "/v1/runs", json=ORDER, headers=mine) == (201, "")
        behalf = {**machines, "x-turnout-on-behalf": "me/web/"}
        asked_for = await answered(client, "GET", "/v1/workers/access", headers=behalf)
        assert asked_for == (200, "")
        assert (await client.call("POST", "/v1/runs", json=ORDER))[0] == 401
