"""The service split by roles over three machines that share a PostgreSQL and nothing else."""

import asyncio
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.acceptance.command import Command, ended
from tests.databases import url_of

from turnout.testing.fleet.counting import Counting
from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.repositories import TinyRepository

pytestmark = pytest.mark.chaos

STEPS = 4


@asynccontextmanager
async def process(turnout: Command, *arguments: str) -> AsyncIterator[str]:
    """Serve on a free port as a machine of its own; asked to end, it ends well."""
    started = await turnout.start("serve", "--port", "0", "--quiet", *arguments)
    try:
        assert started.stdout is not None
        async with asyncio.timeout(60):
            first = (await started.stdout.readline()).decode()
        assert first.startswith(("Service: http://", "Worker: http://")), first
        yield first.split()[1].removesuffix("/v1")
        started.send_signal(signal.SIGTERM)
        done = await ended(started, 60)
        assert done.code == 0, done.err
    finally:
        if started.returncode is None:
            started.kill()
            async with asyncio.timeout(10):
                await started.wait()


class Client:
    """Somebody who orders runs with a key."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http = http
        self._url = f"{url}/v1"

    async def call(self, method: str, path: str, **options: Any) -> Any:
        """Send a request and return its JSON, or its text."""
        async with self._http.request(method, f"{self._url}{path}", **options) as answer:
            json = answer.content_type == "application/json"
            return await answer.json() if json else await answer.text()

    async def events(self, path: str, until: str, count: int) -> list[str]:
        """Return the types of a run's events until one has come so often."""
        seen: list[str] = []
        async with self._http.get(f"{self._url}{path}/events") as answer:
            async for line in answer.content:
                if line.startswith(b"event: "):
                    seen.append(line.decode().split()[1])
                if seen.count(until) == count:
                    return seen
        return seen


def furnish(home: Path, other: Path) -> None:
    """Give a machine the environments of another under names of its own, as if it had made them."""
    home.mkdir(mode=0o711)
    home.chmod(0o711)
    subprocess.run(["cp", "-a", other / "environments", home], check=True, timeout=60)
    for folder in (home / "environments").iterdir():
        folder.rename(folder.with_name(f"{folder.name.rpartition('-')[0]}-0000"))


async def key_of(turnout: Command, name: str, role: str) -> str:
    """Make a key."""
    done = await turnout("keys", "create", name, "--role", role)
    assert done.code == 0, done.err
    return done.out.strip()


async def test_a_run_that_began_on_one_machine_ends_on_another(
    turnout: Command, request: pytest.FixtureRequest, tmp_path: Path, state: Path
) -> None:
    """Its workspace comes over with it: no step is done twice, no attempt begins anew.

    Workers have no key of a model: they ask the gateway by a key of theirs, and what they ask
    counts on the key that ordered the run. Such a key orders and reads nothing by itself.
    """
    tiny = TinyRepository(tmp_path / "tiny", {"a.txt": "a\n"})
    config = turnout.folder / "turnout.toml"
    config.write_text(f'[service.repositories]\ntiny = "{tiny}"\n')
    model = Counting(0.02)
    with url_of("postgresql", request, tmp_path) as url:
        async with ScriptedModelServer(model, models=["m"]) as server:
            front = turnout.using(server.base_url).where(
                TURNOUT_DATABASE=url, TURNOUT_HOME=str(tmp_path / "front")
            )
            member = await key_of(front, "ci", "member")
            worker = await key_of(front, "machines", "worker")
            headers = {"authorization": f"Bearer {member}"}
            async with (
                asyncio.timeout(60),
                process(front, "--roles", "api,gateway") as service,
                aiohttp.ClientSession(headers=headers) as http,
            ):
                client = Client(http, service)
                refused = await client.call(
                    "GET", "/runs", headers={"authorization": f"Bearer {worker}"}
                )
                assert refused["error"]["code"] == "role_not_allowed"
                machines = [
                    turnout.where(
                        TURNOUT_DATABASE=url,
                        TURNOUT_HOME=str(home),
                        TURNOUT_GATEWAY=service,
                        TURNOUT_GATEWAY_KEY=worker,
                    )
                    for home in (state, tmp_path / "other")
                ]
                order = {
                    "task": f"Count to {STEPS}.",
                    "repo": "tiny",
                    "surface": "shell",
                    "requirements": [],
                }
                path = f"/runs/{(await client.call('POST', '/runs', json=order))['id']}"
                async with process(machines[0], "--roles", "worker") as health:
                    await client.events(path, "checkpoint_made", 2)
                    async with http.get(f"{health}/readyz") as ready:
                        assert ready.status == 200
                furnish(tmp_path / "other", state)
                async with process(machines[1], "--roles", "worker"):
                    seen = await client.events(path, "run_ended", 1)
                run = await client.call("GET", path)
                diff = await client.call("GET", f"{path}/diff")
                record = await client.call("GET", f"{path}/record?limit=1000")
                usage = await client.call("GET", "/usage?by=key")
    assert (run["state"], run["outcome"], run["segments"]) == ("ended", "answered", 2)
    added = [line[1:] for line in diff.splitlines() if line[:1] == "+" and line[:3] != "+++"]
    assert added == [str(n) for n in range(1, STEPS + 1)]
    assert seen.count("run_resumed") == 1
    warnings = [
        entry["event"]["text"]
        for entry in record["entries"]
        if entry["event"]["type"] == "notice" and entry["event"]["level"] == "warning"
    ]
    assert [text for text in warnings if "machine" in text or "anew" in text] == []
    assert set(model.asked.values()) == {1}
    assert [row["group"]["key"] for row in usage["rows"]] == ["ci"]


async def test_a_worker_says_what_it_lacks(turnout: Command) -> None:
    """The address of a gateway, or one that takes its key: it does not begin."""
    done = await turnout("serve", "--port", "0", "--roles", "worker")
    assert (done.code, "TURNOUT_GATEWAY is not set" in done.err) == (2, True)
    done = await turnout("serve", "--port", "0", "--roles", "api,driver")
    assert (done.code, "give some of api, gateway, worker" in done.err) == (2, True)
