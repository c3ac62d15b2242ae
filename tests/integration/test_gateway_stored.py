"""Stored responses over HTTP: what a page of items is, and what is refused."""

from typing import Any

import aiohttp
import pytest
from tests.gateways import served

from turnout.testing.gateway import RunningGateway
from turnout.testing.model_server import Call, ScriptedModelServer, Turn

pytestmark = pytest.mark.clients

ITEMS: Any = [{"role": "user", "content": f"{n}"} for n in range(5)]


async def told(gateway: RunningGateway, method: str, path: str, **sent: Any) -> tuple[int, Any]:
    """Return the status and the body of an answer."""
    async with (
        aiohttp.ClientSession() as client,
        client.request(method, f"{gateway.base_url}/{path}", **sent) as answer,
    ):
        return answer.status, await answer.json()


async def made(gateway: RunningGateway, **fields: Any) -> Any:
    """Return a new response."""
    body = {"model": "auto", "input": ITEMS, **fields}
    status, answer = await told(gateway, "POST", "responses", json=body)
    assert status == 200, answer
    return answer


async def test_the_items_before_a_response_come_in_pages():
    """The newest first, each with an id by which the next page is asked for."""
    async with served(ScriptedModelServer([Turn("Done.")])) as (_, gateway):
        path = f"responses/{(await made(gateway))['id']}/input_items"
        _, first = await told(gateway, "GET", f"{path}?limit=2")
        _, rest = await told(gateway, "GET", f"{path}?after={first['last_id']}")
        _, oldest = await told(gateway, "GET", f"{path}?order=asc&limit=1")
    assert [item["content"][0]["text"] for item in first["data"]] == ["4", "3"]
    assert [item["content"][0]["text"] for item in rest["data"]] == ["2", "1", "0"]
    assert (first["has_more"], rest["has_more"]) == (True, False)
    assert oldest["data"] == rest["data"][-1:]
    ids = [item["id"] for item in (*first["data"], *rest["data"])]
    assert len(set(ids)) == 5


@pytest.mark.parametrize(
    ("method", "path", "status", "param"),
    [
        ("GET", "responses/{id}/input_items?limit=0", 400, "limit"),
        ("GET", "responses/{id}/input_items?limit=101", 400, "limit"),
        ("GET", "responses/{id}/input_items?limit=x", 400, "limit"),
        ("GET", "responses/{id}/input_items?after=nobody", 400, "after"),
        ("GET", "responses/{id}?stream=true", 400, "stream"),
        ("POST", "responses/{id}/cancel", 400, None),
        ("GET", "responses/req-unknown", 404, None),
        ("GET", "responses/req-unknown/input_items", 404, None),
        ("DELETE", "responses/req-unknown", 404, None),
        ("POST", "responses/req-unknown/cancel", 404, None),
    ],
)
async def test_what_cannot_be_done_is_said(method, path, status, param):
    """In the error form of the API."""
    async with served(ScriptedModelServer([Turn("Done.")])) as (_, gateway):
        id_ = (await made(gateway))["id"]
        got, error = await told(gateway, method, path.format(id=id_))
    assert (got, error["error"]["param"]) == (status, param)


async def test_a_stored_call_wants_its_output():
    """Going on without it is refused by the id of the call, before anybody is asked."""
    async with served(ScriptedModelServer([Turn(calls=(Call("f", {}, "call_7"),))])) as (
        _,
        gateway,
    ):
        first = await made(gateway, tools=[{"type": "function", "name": "f"}])
        body = {"model": "auto", "input": "And?", "previous_response_id": first["id"]}
        status, error = await told(gateway, "POST", "responses", json=body)
    assert status == 400
    assert "call_7" in error["error"]["message"]


async def test_tools_of_a_stored_conversation_are_judged_again():
    """They came with an item of an earlier request, and count for every later one."""
    tools = [{"type": "custom", "name": "late"}]
    item = {"type": "additional_tools", "role": "developer", "tools": tools}
    async with served(ScriptedModelServer([Turn("One."), Turn("Two.")])) as (server, gateway):
        first = await made(gateway, input=[item, *ITEMS])
        await made(gateway, input="More.", previous_response_id=first["id"])
        receipts = list(gateway.receipts.receipts.values())
    assert [receipt.tools_declared for receipt in receipts] == [("late",), ("late",)]
    assert server.requests[1].tool_names == ("late",)


async def test_instructions_are_of_one_request_alone():
    """The next request brings its own, or none."""
    async with served(ScriptedModelServer([Turn("One."), Turn("Two.")])) as (server, gateway):
        first = await made(gateway, instructions="Be brief.")
        await made(gateway, input="More.", previous_response_id=first["id"])
    assert [m["role"] for m in server.requests[1].messages] == ["user"] * 5 + ["assistant", "user"]


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_is_given_again_can_be_continued_too(stream):
    """Under its own id, as the first one under its."""
    script = [Turn("One."), Turn("Two.")]
    async with served(ScriptedModelServer(script)) as (server, gateway):
        body = {"model": "auto", "input": ITEMS, "stream": stream}
        sent = {"json": body, "headers": {"idempotency-key": "once"}}
        url = f"{gateway.base_url}/responses"
        async with aiohttp.ClientSession() as client:
            for _ in range(2):
                async with client.post(url, **sent) as answer:
                    await answer.read()
                    assert answer.status == 200
        again = answer.headers["x-request-id"]
        _, read = await told(gateway, "GET", f"responses/{again}")
        await made(gateway, input="More.", previous_response_id=again)
    assert read["id"] == again
    assert read["output"][0]["content"][0]["text"] == "One."
    assert len(server.requests) == 2
    assert len(server.requests[1].messages) == 7
