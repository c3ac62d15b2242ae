"""Orders over HTTP on a real database: once each, and of one project alone."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from tests.unit.web.rooms import END, Service

from turnout.core.ids import RunId
from turnout.gateway.server import serve
from turnout.store.database import open_database
from turnout.store.orders import OrdersStore
from turnout.store.record import RecordStore

BODY = {"task": "Fix it.", "repo": "shop"}


class Client:
    """Somebody with several keys."""

    def __init__(self, service: Service, http: aiohttp.ClientSession, url: str) -> None:
        self.service = service
        self._http = http
        self._url = url

    async def call(self, method: str, path: str, key: str, **options):
        """Send a request and return its status and JSON, if it has any."""
        headers = {"authorization": f"Bearer {key}", **options.pop("headers", {})}
        url = f"{self._url}/runs{path}"
        async with self._http.request(method, url, headers=headers, **options) as answer:
            json = answer.content_type == "application/json"
            return answer.status, await answer.json() if json else await answer.read()


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    """Serve the routes on SQLite."""
    async with open_database(tmp_path / "turnout.db") as database:
        service = Service(OrdersStore(database), RecordStore(database))
        async with (
            service.following,
            serve(service.app, host="127.0.0.1") as bound,
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(60)) as http,
        ):
            yield Client(service, http, bound.base_url)


async def test_fifty_identical_orders_at_once_are_one_run(client: Client) -> None:
    """One of them made it, the others are told of it."""
    once = {"idempotency-key": "k"}
    asked = (client.call("POST", "", "red-member", json=BODY, headers=once) for _ in range(50))
    answers = await asyncio.gather(*asked)
    assert sorted(status for status, _ in answers) == [200] * 49 + [201]
    assert len({run["id"] for _, run in answers}) == 1
    _, listed = await client.call("GET", "", "red-viewer")
    assert len(listed["runs"]) == 1


async def test_two_projects_with_crossed_keys_know_nothing_of_each_other(client: Client) -> None:
    """Every route answers as for a run that never was; each sees its own."""
    runs = {}
    for project in ("red", "blue"):
        key = f"{project}-approver"
        _, run = await client.call("POST", "", key, json=BODY, headers={"idempotency-key": "k"})
        runs[project] = run["id"]
        await client.service.begun(RunId(run["id"]), *END)
    never = "run-0123456789ab"
    for mine, other in (("red", "blue"), ("blue", "red")):
        key = f"{mine}-approver"
        _, listed = await client.call("GET", "", key)
        assert [run["id"] for run in listed["runs"]] == [runs[mine]]
        for method, path in (
            *(("GET", path) for path in ("", "/diff", "/record", "/events")),
            *(("POST", path) for path in ("/cancel", "/retry", "/approve", "/reject")),
        ):
            crossed = await client.call(method, f"/{runs[other]}{path}", key)
            nothing = await client.call(method, f"/{never}{path}", key)
            assert crossed[0] == 404
            assert str(crossed).replace(runs[other], never) == str(nothing), path
            if method == "GET":
                assert (await client.call(method, f"/{runs[mine]}{path}", key))[0] == 200


async def test_text_that_no_database_keeps_as_it_is_comes_back_whole(client: Client) -> None:
    """A NUL and anything beyond ASCII; half a character is refused."""
    words = "a\x00b é 🛤"
    status, run = await client.call("POST", "", "red-member", json={**BODY, "task": words})
    assert status == 201
    _, shown = await client.call("GET", f"/{run['id']}", "red-member")
    assert shown["task"] == words
    half = await client.call("POST", "", "red-member", json={**BODY, "task": "a \udcff"})
    assert (half[0], half[1]["error"]["param"]) == (400, "task")
