"""What a process serves is what its roles say, and nothing else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from turnout.core.service.options import ServiceRole
from turnout.errors import ConfigError
from turnout.settings import load_settings
from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.turns import Turn
from turnout.wiring.serving.service import Served, open_serving

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
async def serving(folder: Path, *roles: ServiceRole) -> AsyncIterator[Client]:
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
        served = Served("127.0.0.1", 0, roles=frozenset(roles))
        async with (
            open_serving(settings, served, lambda _: None) as gateway,
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(30)) as http,
        ):
            yield Client(http, gateway.base_url)


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
