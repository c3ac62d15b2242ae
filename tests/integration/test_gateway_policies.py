"""Policies govern what every request may do, from the moment that they are applied."""

from dataclasses import replace
from typing import Any

import pytest
from tests.integration.governed import governed

from turnout.core.money import Price
from turnout.core.policies import Policy, ToolRule
from turnout.gateway.catalog import Catalog
from turnout.testing.exchange import deployment
from turnout.testing.gateway import catalog_at
from turnout.testing.model_server import ScriptedModelServer, Turn

TURNS = {name: [Turn(text="Done.")] * 12 for name in ("big", "small")}


def tool(name: str) -> dict[str, Any]:
    """Return a function tool."""
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


def catalog(base_url: str) -> Catalog:
    """Return two models of which the small one is cheaper."""
    return catalog_at(
        base_url,
        replace(deployment("p/big"), price=Price(2_000_000, 4_000_000)),
        replace(deployment("p/small"), price=Price(1_000_000, 2_000_000)),
    )


async def test_a_revision_is_in_force_as_soon_as_it_is_applied() -> None:
    """And the one before it as soon as it is brought back; each call says which it was under."""
    async with ScriptedModelServer(TURNS) as server, governed(catalog(server.base_url)) as it:
        await it.apply("team", pool=["big"])
        status, body = await it.chat(tools=[tool("shell")])
        assert (status, body["routing"]["model"]) == (200, "big")
        assert body["routing"]["policy_revision"] == 1
        await it.apply("team", pool=["small"], tools={"mode": "enforce", "allow": ["read_file"]})
        status, body = await it.chat(tools=[tool("read_file"), tool("shell")])
        assert (status, body["error"]["code"]) == (403, "tool_not_allowed")
        assert "`shell`" in body["error"]["message"]
        status, body = await it.chat(tools=[tool("read_file")])
        assert (body["routing"]["model"], body["routing"]["policy_revision"]) == ("small", 2)
        await it.call("POST", "/policies/team/rollback", json={"revision": 1})
        _, body = await it.chat(tools=[tool("shell")])
        assert (body["routing"]["model"], body["routing"]["policy_revision"]) == ("big", 3)
        receipt = it.gateway.receipt()
        assert (receipt.policy, receipt.policy_revision) == ("team", 3)


async def test_a_request_chooses_among_the_policies_of_its_key() -> None:
    """Any other is refused, and no provider is asked."""
    async with ScriptedModelServer(TURNS) as server, governed(catalog(server.base_url)) as it:
        await it.apply("team", pool=["big"])
        await it.apply("other", pool=["small"])
        await it.apply("third", pool=["small"])
        status, body = await it.chat(routing={"policy": "other"})
        assert (status, body["routing"]["model"]) == (200, "small")
        served = len(server.requests)
        for name, refused in (("third", 403), ("default", 403), ("gone", 404)):
            status, body = await it.chat(routing={"policy": name})
            assert status == refused, body
        status, body = await it.chat("plain", routing={"policy": "team"})
        assert (status, body["error"]["code"]) == (403, "policy_not_granted")
        assert len(server.requests) == served


async def test_a_request_may_narrow_and_never_widen() -> None:
    """Fewer tools, read-only tools: in whatever mode the policy is."""
    async with ScriptedModelServer(TURNS) as server, governed(catalog(server.base_url)) as it:
        rule = {"mode": "enforce", "allow": ["read_file", "patch"], "read_only": ["read_file"]}
        await it.apply("team", tools=rule)
        both = [tool("read_file"), tool("patch")]
        assert (await it.chat(tools=both))[0] == 200
        for routing in ({"tools": ["read_file"]}, {"read_only": True}):
            status, body = await it.chat(tools=both, routing=routing)
            assert (status, body["error"]["code"]) == (403, "tool_not_allowed")
            assert "`patch`" in body["error"]["message"]
            assert (await it.chat(tools=both[:1], routing=routing))[0] == 200
        status, body = await it.chat(tools=both[:1], routing={"tools": ["read_file", "shell"]})
        assert (status, "`shell`" in body["error"]["message"]) == (403, True)
        for widening in ({"pool": ["big"]}, {"tools": "all"}, {"read_only": "no"}):
            assert (await it.chat(routing=widening))[0] == 400


async def test_a_review_has_a_list_of_its_own() -> None:
    """The kind of step is said by a header."""
    async with ScriptedModelServer(TURNS) as server, governed(catalog(server.base_url)) as it:
        rule = {"mode": "enforce", "allow": ["patch"], "by_kind": {"review": ["read_file"]}}
        await it.apply("team", tools=rule)
        review = {"x-turnout-call-kind": "review"}
        assert (await it.chat(tools=[tool("patch")]))[0] == 200
        assert (await it.chat(tools=[tool("patch")], headers=review))[0] == 403
        assert (await it.chat(tools=[tool("read_file")], headers=review))[0] == 200


HI = [{"role": "user", "content": "Hi"}]
CHAT = {"messages": HI}
MESSAGE = {"messages": HI, "max_tokens": 9}
FUNCTION = {"type": "function", "name": "shell", "parameters": {"type": "object"}}


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("/chat/completions", {**CHAT, "tools": [{"type": "web_search"}]}, "web_search"),
        ("/chat/completions", {**CHAT, "functions": [{"name": "shell"}]}, "shell"),
        ("/chat/completions", {**CHAT, "web_search_options": {}}, "web_search"),
        (
            "/chat/completions",
            {**CHAT, "tools": [{"type": "custom", "custom": {"name": "shell"}}]},
            "shell",
        ),
        ("/responses", {"input": "Hi", "tools": [{"type": "web_search"}]}, "web_search"),
        ("/responses", {"input": "Hi", "tools": [{"type": "local_shell"}]}, "local_shell"),
        ("/responses", {"input": "Hi", "tools": [{"type": "custom", "name": "shell"}]}, "shell"),
        (
            "/responses",
            {"input": "Hi", "tools": [{"type": "namespace", "name": "n", "tools": [FUNCTION]}]},
            "shell",
        ),
        (
            "/responses",
            {"input": "Hi", "tools": [{"type": "mcp", "server_label": "git"}]},
            "mcp:git",
        ),
        (
            "/messages",
            {**MESSAGE, "tools": [{"type": "web_search_20250305", "name": "web_search"}]},
            "web_search",
        ),
        ("/messages", {**MESSAGE, "tools": [{"type": "bash_20250124", "name": "bash"}]}, "bash"),
        (
            "/messages",
            {
                **MESSAGE,
                "mcp_servers": [{"type": "url", "url": "https://x.example", "name": "git"}],
            },
            "mcp:git",
        ),
    ],
)
async def test_whatever_a_model_could_use_is_judged(path: str, body: Any, named: str) -> None:
    """In every shape: nothing that a request brings along gets past the list."""
    async with ScriptedModelServer(TURNS) as server, governed(catalog(server.base_url)) as it:
        await it.apply("team", tools={"mode": "enforce", "allow": ["read_file"]})
        status, refused = await it.call("POST", path, "dev", json={"model": "auto", **body})
        assert (status, named in str(refused)) == (403, True), refused
        assert server.requests == []


async def test_a_clients_own_name_for_a_model_is_routed() -> None:
    """By an alias of the policy; the receipt keeps the client's word."""
    async with ScriptedModelServer(TURNS) as server, governed(catalog(server.base_url)) as it:
        aliases = {"gpt-5-mini": "big", "gpt-*": {"model": "auto", "optimize": "cost"}}
        await it.apply("team", aliases=aliases)
        _, body = await it.chat(model="gpt-5-mini")
        assert body["routing"]["model"] == "big"
        _, body = await it.chat(model="gpt-5")
        assert (body["routing"]["model"], body["routing"]["objective"]) == ("small", "cost")
        assert it.gateway.receipt().asked_model == "gpt-5"
        assert (await it.chat(model="claude"))[0] == 404


async def test_a_decision_is_explained_without_calling_a_model() -> None:
    """Of any shape, under the policy or under a draft; nothing is counted or written."""
    async with ScriptedModelServer(TURNS) as server, governed(catalog(server.base_url)) as it:
        await it.apply("team", pool=["big"], objective="cost")
        hello = [{"role": "user", "content": "Hi"}]
        chat = {"model": "auto", "messages": hello}
        status, body = await it.call("POST", "/route", "dev", json=chat)
        assert (status, body["deployment"], body["policy_revision"]) == (200, "p/big", 1)
        dropped = {c["deployment"]: c["dropped"] for c in body["candidates"]}
        assert dropped == {"p/big": None, "p/small": "outside the pool"}
        draft = {"request": chat, "policy": {"pool": ["small"]}}
        assert (await it.call("POST", "/route", json=draft))[1]["deployment"] == "p/small"
        for other in ({"model": "auto", "input": "Hi"}, {**chat, "max_tokens": 9, "system": "Be."}):
            assert (await it.call("POST", "/route", "dev", json=other))[1]["order"] == ["p/big"]
        nothing = {"request": chat, "policy": {"pool": {"min_context": 10}}}
        status, body = await it.call("POST", "/route", json=nothing)
        assert (status, body["deployment"], body["order"]) == (200, None, [])
        refused = {
            "request": {**chat, "tools": [tool("x")]},
            "policy": {"tools": {"mode": "enforce"}},
        }
        assert (await it.call("POST", "/route", json=refused))[0] == 403
        assert server.requests == []
        assert it.gateway.receipts.receipts == {}


async def test_a_key_whose_policy_is_gone_gets_nothing() -> None:
    """The default might allow more."""
    filed = Policy(tools=ToolRule("enforce"))
    async with (
        ScriptedModelServer(TURNS) as server,
        governed(catalog(server.base_url), filed) as it,
    ):
        status, body = await it.chat("dev")
        assert (status, body["error"]["code"]) == (404, "policy_not_found")
        assert (await it.chat("plain"))[0] == 200
