"""The service as its callers meet it: the real command, real sandboxes, a scripted model."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
from tests.acceptance.command import FIX, TASK, Command, ended
from tests.acceptance.forks import Forked

from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.repositories import PAGINATION_FIXED, TinyRepository


class Seen(NamedTuple):
    """An event of a stream."""

    seq: int
    type: str


@dataclass
class Service:
    """A service that listens, and somebody who knows its address."""

    process: Forked
    url: str
    http: aiohttp.ClientSession
    said: str = ""
    """What it wrote on standard error; known once it has ended."""

    async def call(self, method: str, path: str, **options: Any) -> Any:
        """Send a request and return its status and JSON."""
        async with self.http.request(method, f"{self.url}{path}", **options) as answer:
            return answer.status, await answer.json()

    async def events(self, path: str, until: str = "", **headers: str) -> list[Seen]:
        """Follow a run to its end, or until something has happened."""
        seen: list[Seen] = []
        async with self.http.get(f"{self.url}{path}/events", headers=headers) as answer:
            async for line in answer.content:
                name, _, value = line.decode().rstrip().partition(": ")
                if name == "id":
                    seq = int(value)
                elif name == "event":
                    seen.append(Seen(seq, value))
                    if value == until:
                        break
        return seen

    async def bytes(self, path: str) -> bytes:
        """Return what is there."""
        async with self.http.get(f"{self.url}{path}") as answer:
            assert answer.status == 200
            return await answer.read()


@asynccontextmanager
async def serving(turnout: Command, *arguments: str) -> AsyncIterator[Service]:
    """Start the service on a free port, and end it as a machine that shuts down does."""
    process = await turnout.start("serve", "--port", "0", *arguments)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60), aiohttp.ClientSession() as http:
            first = (await process.stdout.readline()).decode()
            assert first.startswith("Service: http://127.0.0.1:"), first
            service = Service(process, first.split()[1], http)
            yield service
        process.send_signal(signal.SIGTERM)
        done = await ended(process, 30)
        service.said = done.err
        assert done.code == 0, done.err
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def refuses_what_cannot_be(service: Service, *, path: str) -> None:
    """Order a run on a path of the machine, and one from a base that is not there."""
    refused, error = await service.call("POST", "/runs", json={"task": "x", "repo": path})
    assert (refused, error["error"]["code"]) == (400, "invalid_request")
    nowhere = {"task": "x", "repo": "pages", "base": "nowhere"}
    refused, error = await service.call("POST", "/runs", json=nowhere)
    assert (refused, error["error"]["param"]) == (400, "base")


async def is_one_truth(command: Command, run: Any, usage: Any) -> None:
    """Compare what a run cost by its record, by usage and by the gateway's receipts."""
    resources = run["result"]["resources"]
    assert resources["cost_micros"] == pytest.approx(resources["wall_seconds"] * 1e6, rel=0.01)
    assert usage["sandboxes"]["cost_micros"] == resources["cost_micros"]
    reconciled = (await command("runs", "reconcile", run["id"], "--json")).object
    assert (reconciled["agree"], reconciled["runs"][0]["differences"]) == (True, [])


async def test_a_task_becomes_a_diff_over_http_and_over_a_restart(
    turnout: Command, pages: TinyRepository, tmp_path: Path
) -> None:
    """Posted, followed, fetched, applied with git; the service is stopped in the run's midst.

    Nothing of the host's is named on the way, and every model call counts as the caller's. A cap on
    spend that no call would count against is refused.
    """
    async with ScriptedModelServer(FIX, models=["m"]) as model:
        rates = '[sandbox.rates]\nsandbox_hour_usd = "3600"\n'
        command, repo = turnout.configured(rates).using(model.base_url), ("--repo", str(pages))
        async with serving(command, *repo) as service:
            await refuses_what_cannot_be(service, path=repo[1])
            root = f"{service.url.removesuffix('/v1')}/readyz"
            async with service.http.get(root) as answer:
                assert (answer.status, await answer.json()) == (200, {"status": "ready"})
            _, earlier = await service.call("GET", "/usage?by=key")
            status, run = await service.call("POST", "/runs", json={"task": TASK, "repo": "pages"})
            assert (status, run["state"]) == (201, "queued")
            path = f"/runs/{run['id']}"
            before = await service.events(path, until="model_call_done")
        assert f"Run {run['id']} of project" in service.said
        assert "was ordered by key local: pages at HEAD." in service.said
        assert " has begun." in service.said
        async with serving(command, *repo) as service:
            after = await service.events(path, **{"last-event-id": str(before[-1].seq)})
            seen = [*before, *after]
            assert [event.seq for event in seen] == list(range(1, len(seen) + 1))
            assert (seen[0].type, seen[-1].type) == ("run_started", "run_ended")
            _, shown = await service.call("GET", path)
            diff = await service.bytes(f"{path}/diff")
            record = await service.bytes(f"{path}/record?limit=1000")
            _, told = await service.call("GET", "/events?kind=run.started&kind=run.ended")
            _, usage = await service.call("GET", "/usage?by=key")
            order = {"task": "x", "repo": "pages", "limits": {"max_spend_micros": 1}}
            status, capped = await service.call("POST", "/runs", json=order)
            assert (status, capped["error"]["code"]) == (403, "price_unknown")
        assert " has ended: answered, resolved." in service.said
        assert model.history_faults == []
    assert (shown["state"], shown["outcome"], shown["verdict"], shown["segments"]) == (
        *("ended", "answered", "resolved"),
        2,
    )
    assert str(pages).encode() not in record
    assert [row["group"]["key"] for row in usage["rows"]] == ["local"]
    mine = [one["kind"] for one in told["events"] if one["subject"] == run["id"]]
    assert mine == ["run.ended", "run.started"]
    assert usage["total"]["requests"] - earlier["total"]["requests"] == len(FIX)
    await is_one_truth(command, shown, usage)
    (tmp_path / "p.diff").write_bytes(diff)
    pages.git("apply", str(tmp_path / "p.diff"))
    assert (pages.path / "pages.py").read_text() == PAGINATION_FIXED
