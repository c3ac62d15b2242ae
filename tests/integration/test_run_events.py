"""Event streams of runs: as they happen, resumed without a gap, ended with the service."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.unit.web.rooms import ASKED, END, Service, memory_service

from turnout.gateway.delivery import AppLimits
from turnout.gateway.server import serve
from turnout.store.database import open_database
from turnout.store.orders import OrdersStore
from turnout.store.record import RecordStore
from turnout.web.runs.streams import Streams


@dataclass
class Client:
    """Follows runs of a service that listens."""

    service: Service
    http: aiohttp.ClientSession
    base_url: str

    @asynccontextmanager
    async def stream(self, run_id: str, **headers: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """Open the stream of a run."""
        headers = {"authorization": "Bearer red-viewer", **headers}
        url = f"{self.base_url}/runs/{run_id}/events"
        async with self.http.get(url, headers=headers) as answer:
            yield answer

    async def order(self) -> str:
        """Order a run."""
        headers = {"authorization": "Bearer red-member"}
        body = {"task": "Fix it.", "repo": "shop"}
        async with self.http.post(f"{self.base_url}/runs", json=body, headers=headers) as answer:
            return str((await answer.json())["id"])


@asynccontextmanager
async def listening(service: Service) -> AsyncIterator[Client]:
    """Serve, and follow from outside."""
    async with (
        service.following,
        serve(service.app, host="127.0.0.1") as bound,
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(30)) as http,
    ):
        yield Client(service, http, bound.base_url)


@pytest.fixture(params=["memory", "sqlite"])
async def client(request: Any, tmp_path: Path) -> AsyncIterator[Client]:
    """Return a client of a service on each kind of store."""
    if request.param == "memory":
        async with listening(memory_service()) as client:
            yield client
        return
    async with open_database(tmp_path / "turnout.db") as database:
        service = Service(OrdersStore(database), RecordStore(database))
        async with listening(service) as client:
            yield client


async def events(answer: aiohttp.ClientResponse, count: int | None = None) -> list[dict[str, str]]:
    """Read so many events, or all until the stream ends."""
    found: list[dict[str, str]] = []
    fields: dict[str, str] = {}
    while count is None or len(found) < count:
        line = (await answer.content.readline()).decode()
        if not line:
            return found
        name, colon, value = line.rstrip("\n").partition(": ")
        if name and colon:
            fields[name] = value
        elif not name:
            found += [fields] if "data" in fields else []
            fields = {}
    return found


async def status(client: Client, run_id: str) -> int:
    """Open a stream and return what it is answered."""
    async with client.stream(run_id) as answer:
        return answer.status


async def test_events_come_as_they_are_committed_until_the_end(client: Client) -> None:
    """From before anybody has begun, each with its place; the stream ends with the run."""
    run_id = await client.order()
    async with client.stream(run_id) as answer:
        assert answer.status == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        run = await client.service.begun(run_id, ASKED)
        first = await events(answer, 2)
        assert [(e["id"], e["event"]) for e in first] == [
            ("1", "run_started"),
            ("2", "approval_asked"),
        ]
        for event in END:
            # As another process would, which wakes nobody here.
            await client.service.records.append(run_id, run.epoch, event, run.ordered_at)
        assert [e["id"] for e in await events(answer)] == ["3", "4", "5"]


@pytest.mark.parametrize("seen", range(6))
async def test_a_client_that_comes_back_misses_nothing(client: Client, seen: int) -> None:
    """And gets nothing twice; where it has seen the end it need not come again."""
    run_id = await client.order()
    await client.service.begun(run_id, ASKED, *END)
    async with client.stream(run_id, **{"last-event-id": str(seen)}) as answer:
        rest = [int(e["id"]) for e in await events(answer)]
    assert rest == list(range(seen + 1, 6))
    assert answer.status == (204 if seen >= 5 else 200)


async def test_what_ends_before_it_begins_ends_its_streams(client: Client) -> None:
    """A run that is cancelled while it is queued has no entries to wait for."""
    run_id = await client.order()
    async with client.stream(run_id) as answer:
        await answer.content.readline()
        await client.service.desk.cancel("red", run_id)
        assert await events(answer) == []
    async with client.stream(run_id) as answer:
        assert answer.status == 204


@pytest.mark.parametrize("wrong", ["x", "-1", "1.5", "9" * 16, "٣"])
async def test_an_id_that_was_never_sent_is_refused(wrong: str) -> None:
    """400 rather than silence."""
    async with listening(memory_service()) as client:
        run_id = await client.order()
        async with client.stream(run_id, **{"last-event-id": wrong}) as answer:
            assert answer.status == 400


async def test_streams_end_when_the_service_stops() -> None:
    """At once, so that clients go elsewhere; further ones are refused until then."""
    service = memory_service()
    async with listening(service) as client:
        run_id = await client.order()
        async with client.stream(run_id) as answer:
            await answer.content.readline()
            service.streams.close()
            assert await events(answer) == []
        async with client.stream(run_id) as answer:
            assert (answer.status, answer.headers["retry-after"]) == (503, "2")


async def test_no_more_streams_are_opened_than_there_may_be() -> None:
    """One that is closed makes room."""
    service = memory_service()
    service.streams = Streams(AppLimits(keep_alive=0.05), most=1)
    service.__post_init__()
    async with listening(service) as client:
        run_id = await client.order()
        async with client.stream(run_id) as first:
            await first.content.readline()
            await first.content.readuntil(b": keep-alive\n\n")
            async with client.stream(run_id) as second:
                assert second.status == 503
        for _ in range(500):
            if await status(client, run_id) == 200:
                return
            await asyncio.sleep(0.01)
        pytest.fail("the stream that ended made no room")
