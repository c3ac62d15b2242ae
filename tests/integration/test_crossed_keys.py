"""Two projects with crossed keys: every route answers as if the other's data did not exist.

The routes are those of the document that the service itself hands out, so that a new one is here as
soon as it is there; what this file must be told of it, it asks for by failing.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
import pytest
import pytest_asyncio
from tests.integration.real_service import ROLES, RealService, real_service
from tests.unit.web.rooms import ASKED, END

from turnout.core.ids import RunId
from turnout.store.orders import OrdersStore

pytestmark = pytest.mark.asyncio(loop_scope="module")

NEVER: Final = {
    "run_id": "run-ffffffffffff",
    "request_id": "req-never",
    "response_id": "resp_never",
    "webhook_id": "hook-never",
    "name": "never",
}
"""Of each kind of thing one that nobody ever made; ids of the other project take their place."""
SHARED: Final = frozenset({"evaluation_id", "model"})
"""Things that are no project's."""
BODIES: Final[Mapping[str, Any]] = {
    "PUT /policies/{name}": {"policy": {}},
    "POST /policies/{name}/check": {"policy": {}},
    "POST /policies/{name}/rollback": {"revision": 1},
    "PATCH /keys/{name}": {"role": "approver"},
    "POST /runs/{run_id}/publish": {"publish": "branch"},
}
"""What fits, where an empty object does not."""
ASK: Final = {
    "model": "auto",
    "messages": [{"role": "user", "content": "blue words"}],
    "tools": [{"type": "function", "function": {"name": "blue_tool", "parameters": {}}}],
}
RUN: Final = {"task": "blue words", "repo": "shop", "labels": ["blue"]}


@dataclass
class Client:
    """Somebody with many keys."""

    service: RealService
    http: aiohttp.ClientSession
    operations: dict[str, Any] = field(default_factory=dict)
    """By method and path, as the document has them."""
    blue: dict[str, str] = field(default_factory=dict)
    """What the project blue has, by the name of the parameter that stands for it."""

    async def call(self, method: str, path: str, key: str, **options: Any) -> tuple[int, str]:
        """Send a request and return its status and text."""
        headers = {"authorization": f"Bearer {self.service.keys[key]}"}
        headers |= options.pop("headers", {})
        url = f"{self.service.url}{path}"
        async with self.http.request(method, url, headers=headers, **options) as answer:
            return answer.status, await answer.text(errors="replace")

    async def json(self, method: str, path: str, key: str, **options: Any) -> Any:
        """Send a request that succeeds and return what it answers."""
        headers = {"authorization": f"Bearer {self.service.keys[key]}"}
        headers |= options.pop("headers", {})
        url = f"{self.service.url}{path}"
        async with self.http.request(method, url, headers=headers, **options) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json()

    def parameters(self, operation: str, place: str) -> list[str]:
        """Return the names of an operation's parameters that stand in its path or its query."""
        found = self.operations[operation].get("parameters", [])
        return [one["name"] for one in found if one["in"] == place]

    async def asked(self, operation: str, things: Mapping[str, str], key: str) -> tuple[int, str]:
        """Call an operation on these things, and return an answer that does not name them."""
        method, path = operation.split()
        body = {"json": BODIES.get(operation, {})} if "requestBody" in self._of(operation) else {}
        named = [things[name] for name in self.parameters(operation, "path")]
        status, text = await self.call(method, path.format(**things), key, **body)
        for name in named:
            text = text.replace(name, "THING")
        return status, text

    def _of(self, operation: str) -> Any:
        return self.operations[operation]

    def things(self, operation: str) -> dict[str, str]:
        """Return what blue has for the path of an operation."""
        kind = "policy" if "/policies/" in operation else "key"
        return {**self.blue, "name": self.blue[kind]}

    def keyed(self) -> list[str]:
        """Return the operations that take a key, not a signature."""
        return [one for one, said in self.operations.items() if said.get("security") != []]

    def on_things(self) -> list[str]:
        """Return the operations on a thing of a project."""
        found = [one for one in self.keyed() if self.parameters(one, "path")]
        for operation in found:
            unknown = set(self.parameters(operation, "path")) - set(NEVER) - SHARED
            assert not unknown, f"{operation}: say in NEVER and Client.blue what {unknown} is"
        return [one for one in found if not SHARED & set(self.parameters(one, "path"))]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    """Serve, and let blue have one of everything."""
    async with (
        real_service(tmp_path_factory.mktemp("crossed")) as service,
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(30)) as http,
    ):
        client = Client(service, http)
        document = await client.json("GET", "/openapi.json", "red-models")
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                client.operations[f"{method.upper()} {path}"] = operation
        await blue_has_one_of_everything(client)
        yield client


async def blue_has_one_of_everything(client: Client) -> None:
    """Order two runs, let one end and one wait; ask a model, make a policy and a webhook."""
    once = {"idempotency-key": "once"}
    run = await client.json("POST", "/runs", "blue-approver", json=RUN, headers=once)
    await client.service.begun(RunId(run["id"]), *END)
    waits = await client.json("POST", "/runs", "blue-approver", json=RUN)
    begun = await client.service.begun(RunId(waits["id"]), ASKED)
    await OrdersStore(client.service.database).wait(RunId(waits["id"]), begun.epoch, ASKED)
    await client.json("PUT", "/policies/blue-policy", "boss", json={"policy": {}})
    granted = {"policies": ["blue-policy", "team"]}
    await client.json("PATCH", "/keys/blue-member", "boss", json=granted)
    hook = {"url": "https://hooks.test/blue", "secret_variable": "BLUE", "project": "blue"}
    webhook = await client.json("POST", "/webhooks", "boss", json=hook)
    answer = await client.json("POST", "/chat/completions", "blue-approver", json=ASK, headers=once)
    body = {"model": "auto", "input": "blue words", "store": True}
    kept = await client.json("POST", "/responses", "blue-approver", json=body)
    client.blue = {
        "run_id": run["id"],
        "waiting": waits["id"],
        "request_id": answer["id"],
        "response_id": kept["id"],
        "webhook_id": webhook["id"],
        "policy": "blue-policy",
        "key": "blue-member",
    }


async def test_what_the_other_has_is_there(client: Client) -> None:
    """Its own key, or an admin's where only those may, reads each thing: the ids below are real."""
    for operation in client.on_things():
        if operation.startswith("GET "):
            things = client.things(operation)
            keys = ("blue-member",) if "policies" in operation else ("blue-approver", "boss")
            answers = [await client.asked(operation, things, key) for key in keys]
            assert min(status for status, _ in answers) < 300, (operation, answers)


async def test_a_thing_of_the_other_is_like_one_that_never_was(client: Client) -> None:
    """Of every operation and every role: the same status and the same words."""
    for operation in client.on_things():
        for role in ROLES:
            key = f"red-{role}"
            crossed = await client.asked(operation, client.things(operation), key)
            nothing = await client.asked(operation, NEVER, key)
            assert crossed == nothing, (operation, key)
            assert crossed[0] in {401, 403, 404}, (operation, key, crossed)
            if "run_id" in client.parameters(operation, "path"):
                waiting = {**client.blue, "run_id": client.blue["waiting"]}
                assert await client.asked(operation, waiting, key) == nothing, (operation, key)


async def test_nothing_of_the_other_was_touched(client: Client) -> None:
    """Not stopped, not decided on, not done again, not changed, not removed."""
    blue, key = client.blue, "blue-approver"
    waiting = await client.json("GET", f"/runs/{blue['waiting']}", key)
    assert (waiting["state"], waiting["cancel_asked"]) == ("waiting", False)
    assert len((await client.json("GET", "/runs", key))["runs"]) == 2
    assert (await client.json("GET", "/keys/blue-member", "boss"))["role"] == "member"
    assert len((await client.json("GET", "/webhooks", "boss"))["webhooks"]) == 1
    assert (await client.json("GET", f"/responses/{blue['response_id']}", key))["id"]


async def test_what_was_changed_is_on_record_and_what_was_refused_is_not(client: Client) -> None:
    """By its own key, with its subject; who crossed over has changed nothing."""
    changes = (await client.json("GET", "/audit", "boss"))["changes"]
    blue = client.blue
    assert [(c["actor"], c["action"], c["subject"]) for c in reversed(changes)] == [
        ("blue-approver", "order_run", blue["run_id"]),
        ("blue-approver", "order_run", blue["waiting"]),
        ("boss", "put_policy", "blue-policy"),
        ("boss", "change_key", "blue-member"),
        ("boss", "add_webhook", blue["webhook_id"]),
    ]
    assert "words" not in str(changes)


async def test_no_list_holds_anything_of_the_other(client: Client) -> None:
    """Whatever is asked for: all, or what the other is called."""
    lists = [
        one
        for one in client.operations
        if one.startswith("GET ") and not client.parameters(one, "path")
    ]
    assert {"GET /runs", "GET /usage", "GET /tools", "GET /audit"} <= set(lists)
    for operation in lists:
        path = operation.split()[1]
        for role in ROLES:
            _, text = await client.call("GET", path, f"red-{role}")
            assert "blue" not in text, (operation, role)
            for name in {"project", "key", "session", "actor", "subject", "label"}:
                if name in client.parameters(operation, "query"):
                    await named(client, path, name, f"red-{role}")


async def named(client: Client, path: str, name: str, key: str) -> None:
    """Ask a list for what the other is called, and for what nobody is."""
    project = await client.call("GET", path, key, params={name: "blue"})
    nobody = await client.call("GET", path, key, params={name: "nope"})
    assert project[0] == nobody[0], (path, name)
    assert project[1].replace("blue", "nope") == nobody[1], (path, name)


async def test_the_same_idempotency_key_is_another_request(client: Client) -> None:
    """Neither the run nor the answer that it made for the other comes back."""
    once = {"idempotency-key": "once"}
    run = await client.json("POST", "/runs", "red-member", json=RUN, headers=once)
    answer = await client.json("POST", "/chat/completions", "red-member", json=ASK, headers=once)
    again = await client.json("POST", "/chat/completions", "red-member", json=ASK, headers=once)
    assert run["id"] != client.blue["run_id"]
    assert run["project"] == "red"
    assert answer["id"] != client.blue["request_id"]
    receipt = await client.json("GET", f"/requests/{again['id']}", "red-member")
    assert (receipt["key"], receipt["project"]) == ("red-member", "red")


async def test_nobody_speaks_for_the_other(client: Client) -> None:
    """What workers send to have a call charged to whoever ordered is theirs alone."""
    headers = {"x-turnout-on-behalf": "blue-approver/blue/"}
    for role in set(ROLES) - {"worker"}:
        for method, path in (("POST", "/chat/completions"), ("GET", "/workers/access")):
            body = {"json": ASK} if method == "POST" else {}
            status, text = await client.call(method, path, f"red-{role}", headers=headers, **body)
            assert status == 403, (role, path)
            assert "blue" not in text, (role, path)
    usage = await client.json("GET", "/usage?by=key", "blue-approver")
    assert usage["total"]["requests"] == 2


async def test_who_has_no_key_learns_nothing(client: Client) -> None:
    """Of no operation, whether the thing is there or not."""

    async def refused(operation: str) -> None:
        method, path = operation.split()
        things = client.things(operation) | dict.fromkeys(SHARED, "m")
        headers = {"authorization": "Bearer tk-nobody"}
        url = f"{client.service.url}{path.format(**things)}"
        async with client.http.request(method, url, headers=headers, json={}) as answer:
            assert answer.status == 401, operation
            assert "blue" not in await answer.text(), operation

    await asyncio.gather(*map(refused, client.keyed()))


async def test_no_name_opens_a_route(client: Client) -> None:
    """What is open to everybody is so by its whole path, not by what a path ends with."""
    ends = ("openapi.json", "forges/hub/webhook", "webhook")
    paths = {one.split()[1] for one in client.keyed()} | {"/nowhere/{name}"}
    named = {path.rpartition("{")[0] + end for path in paths if "{" in path for end in ends}
    assert {"/keys/openapi.json", "/policies/openapi.json"} <= named

    async def refused(method: str, path: str) -> None:
        url = f"{client.service.url}{path.format(**client.blue, name='a', model='m')}"
        async with client.http.request(method, url, json={}) as answer:
            assert answer.status == 401, (method, path)

    methods = ("GET", "POST", "PUT", "PATCH", "DELETE")
    await asyncio.gather(*(refused(method, path) for method in methods for path in named))
