"""The client of the API: what it asks and follows is what the service knows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from tests.unit.web.rooms import ASKED, END, Service, memory_service

from turnout.core.ids import RunId
from turnout.core.service.options import ServiceAddress
from turnout.errors import (
    ConflictError,
    GatewayError,
    NotFoundError,
    RepositoryError,
    UsageError,
)
from turnout.gateway.server import serve
from turnout.web.client import RunsClient

BODY = {"task": "Fix it.", "repo": "shop"}


@asynccontextmanager
async def asking(
    service: Service, key: str = "red-approver", streams: ASGIApp | None = None
) -> AsyncIterator[RunsClient]:
    """Serve, and open a client."""
    app = Starlette(routes=[Mount("/v1", app=streams or service.app)])
    async with (
        service.following,
        serve(app, host="127.0.0.1") as bound,
        RunsClient(ServiceAddress(bound.base_url, key)) as client,
    ):
        yield client


class _Cut:
    """Ends every answer after its third piece."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        left = 3

        async def cut(message: Message) -> None:
            nonlocal left
            if message["type"] == "http.response.body":
                left -= 1
                message = {**message, "more_body": bool(message.get("more_body")) and left > 0}
            if left >= 0:
                await send(message)

        await self._app(scope, receive, cut)


async def test_a_run_is_ordered_followed_and_read() -> None:
    """Its record arrives as it was written, whole and piece by piece."""
    service = memory_service()
    async with asking(service) as client:
        run = await client.order(BODY, once="k")
        assert (await client.order(BODY, once="k"))["id"] == run["id"]
        run_id = RunId(str(run["id"]))
        following = asyncio.ensure_future(_all(client, run_id))
        await service.begun(run_id, ASKED, *END)
        written = list(await service.records.entries(run_id))
        assert await following == written
        assert list(await client.entries(run_id)) == written
        assert (await client.read(run_id))["state"] == "ended"
        listed = await client.page({"limit": 5})
    assert [one["id"] for one in listed["runs"]] == [run_id]


async def test_a_stream_that_breaks_is_taken_up_where_it_was() -> None:
    """Nothing is missed and nothing comes twice."""
    service = memory_service()
    async with asking(service, streams=_Cut(service.app)) as client:
        run_id = RunId(str((await client.order(BODY))["id"]))
        await service.begun(run_id, ASKED, *END)
        assert await _all(client, run_id) == list(await service.records.entries(run_id))


async def test_what_the_service_refuses_is_an_error_of_its_kind() -> None:
    """In its own words."""
    service = memory_service()
    async with asking(service) as client:
        run_id = str((await client.order(BODY))["id"])
        with pytest.raises(NotFoundError, match="There is no run"):
            await client.read("run-0123456789ab")
        with pytest.raises(ConflictError, match="waits for no decision"):
            await client.act(run_id, "approve")
        with pytest.raises(RepositoryError, match="none that this service works on"):
            await client.order({**BODY, "repo": "/etc"})
        with pytest.raises(RepositoryError, match="no commit `nowhere`"):
            await client.order({**BODY, "base": "nowhere"})
        review = {"kind": "review", "repo": "shop", "base": "main", "head": "nowhere"}
        with pytest.raises(RepositoryError, match="no commit `nowhere`"):
            await client.order(review)
        with pytest.raises(UsageError, match="priority"):
            await client.order({**BODY, "priority": 101})
        with pytest.raises(NotFoundError):
            await client.read("../../etc")
        with pytest.raises(NotFoundError):
            await _all(client, RunId("run-0123456789ab"))
    async with asking(service, "red-viewer") as client:
        with pytest.raises(GatewayError, match="viewer") as error:
            await client.act(run_id, "cancel")
    assert error.value.status == 403
    async with asking(service, "") as client:
        with pytest.raises(GatewayError, match="TURNOUT_API_KEY"):
            await client.page({})


async def test_a_service_that_is_not_there_is_named() -> None:
    """With what to do about it."""
    async with RunsClient(ServiceAddress("http://127.0.0.1:9")) as client:
        with pytest.raises(GatewayError, match="cannot be reached"):
            await client.page({})


@pytest.mark.parametrize(
    "answer",
    [
        Response("<html>", 200, media_type="text/html"),
        Response("<html>", 404, media_type="text/html"),
        Response("", 302, headers={"location": "/elsewhere"}),
        Response('{"entries":[{"seq":1,"at":"noon","event":{}}]}', 200),
        Response('{"entries":[{"seq":"1","at":"2026-01-01T00:00:00Z","event":{}}]}', 200),
    ],
)
async def test_what_is_no_service_is_told_as_such(answer: Response) -> None:
    """Rather than taken for one."""
    app = Starlette(routes=[Mount("/", app=answer)])
    async with (
        serve(app, host="127.0.0.1") as bound,
        RunsClient(ServiceAddress(bound.base_url)) as client,
    ):
        with pytest.raises(GatewayError):
            await client.entries("run-0123456789ab")


async def _all(client: RunsClient, run_id: RunId):
    return [entry async for entry in client.follow(run_id)]
