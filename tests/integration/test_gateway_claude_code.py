"""Claude Code's own forms of request: what it sends reaches its maker unbent, and others too."""

import asyncio
import os
import re
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from tests.messages_client import KEY, Kind, behind, guarded

from turnout.core.policies import Alias, Policy, ToolRule
from turnout.gateway.config.catalog_file import parse_catalog
from turnout.gateway.config.policy_file import parse_policies
from turnout.testing.exchange import deployment
from turnout.testing.gateway import RunningGateway, catalog_at, running_gateway
from turnout.testing.messages import MessagesTurn, ScriptedMessagesServer, text
from turnout.testing.model_server import Call, Turn

pytestmark = pytest.mark.clients

both = pytest.mark.parametrize("kind", ["chat", "messages"])
DEVICE = "233ac562dcaa1f6d9a2899d94c5f4e3d3c4f525fa3e3649d299b4c240d7f8759"
MARK = {"type": "ephemeral"}
HEADERS = {
    "accept": "application/json",
    "anthropic-beta": "claude-code-20250219,mid-conversation-system-2026-04-07,effort-2025-11-24",
    "anthropic-dangerous-direct-browser-access": "true",
    "anthropic-version": "2023-06-01",
    "authorization": f"Bearer {KEY}",
    "content-type": "application/json",
    "user-agent": "claude-cli/2.1.77 (external, cli)",
    "x-app": "cli",
    "x-claude-code-session-id": "5e55-10",
    "x-stainless-lang": "js",
    "x-stainless-retry-count": "0",
}
ALIASES = Policy(aliases=(Alias("claude-*"),))


def _body(**changes: Any) -> dict[str, Any]:
    """Return a turn of the main loop."""
    return {
        "model": "claude-opus-4-6",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "<system-reminder>Today is Monday.</system-reminder>"},
                    {"type": "text", "text": "Fix the test.", "cache_control": MARK},
                ],
            },
            {"role": "system", "content": "Available agents: Explore."},
        ],
        "system": [
            {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.77; cch=00000;"},
            {"type": "text", "text": "You are Claude Code.", "cache_control": MARK},
            {"type": "text", "text": "Be concise.", "cache_control": MARK},
        ],
        "tools": [
            {
                "name": "Read",
                "description": "Reads a file.",
                "input_schema": {
                    "$schema": "https://json-schema.org/draft/2020-12/schema",
                    "type": "object",
                    "properties": {"file_path": {"type": "string"}},
                    "required": ["file_path"],
                    "additionalProperties": False,
                },
            }
        ],
        "metadata": {"user_id": f'{{"device_id":"{DEVICE}","session_id":"5e55-10"}}'},
        "max_tokens": 32_000,
        "thinking": {"type": "adaptive"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "output_config": {"effort": "medium"},
        "stream": True,
        **changes,
    }


async def _post(
    gateway: RunningGateway, body: Mapping[str, Any], path: str = "/messages?beta=true"
) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{gateway.base_url}{path}", data=orjson.dumps(body), headers=HEADERS
        ) as answer,
    ):
        return answer.status, await answer.text()


async def test_a_turn_reaches_anthropic_as_it_was_sent() -> None:
    """Every byte but the model's name; its headers but the key; its answer but the id."""
    turn = MessagesTurn((text("On it."),))
    async with ScriptedMessagesServer([turn], api_key="sk-ant") as server:
        model = replace(deployment("p/claude-opus"), caching="marks")
        catalog = catalog_at(server.base_url, model, api_key="sk-ant", shape="messages")
        async with running_gateway(catalog, guarded(ALIASES)) as gateway:
            status, answer = await _post(gateway, _body())
    (sent,) = server.requests
    assert sent.raw == orjson.dumps(_body(model="claude-opus"))
    assert sent.headers["anthropic-beta"] == HEADERS["anthropic-beta"]
    assert sent.headers["anthropic-version"] == HEADERS["anthropic-version"]
    assert KEY not in str(sent.headers)
    assert (status, server.faults) == (200, [])
    assert answer.startswith("event: message_start\n")
    assert 'event: ping\ndata: {"type":"ping"}\n\n' in answer
    assert gateway.receipt().session == "5e55-10"
    assert gateway.receipt().asked_model == "claude-opus-4-6"


async def test_a_turn_reaches_another_model_in_its_words() -> None:
    """Instructions without the first line, tools, the question; nothing that is Anthropic's."""
    turn = Turn("Reading.", calls=(Call("Read", {"file_path": "a.py"}),), reasoning="Hm.")
    async with behind("chat", [turn], guarded(ALIASES)) as served:
        status, answer = await _post(served.gateway, _body())
    body: Any = served.bodies[0]
    sent = orjson.dumps(body).decode()
    assert status == 200
    assert "billing" not in sent
    assert "context_management" not in sent
    assert "cache_control" not in sent
    assert body["messages"][0]["role"] == "system"
    assert "You are Claude Code." in str(body["messages"][0]["content"])
    assert "Fix the test." in str(body["messages"])
    assert "Available agents: Explore." in str(body["messages"])
    assert [message["role"] for message in body["messages"]] == ["system", "user", "user"]
    assert len(body.get("user", "")) <= 64
    assert body["tools"][0]["function"]["name"] == "Read"
    assert body["stream_options"] == {"include_usage": True}
    assert '"type":"thinking_delta"' in answer
    assert '"stop_reason":"tool_use"' in answer


@pytest.mark.cases
async def test_a_prompt_that_goes_on_has_the_same_beginning() -> None:
    """The changing first line and ids of the request would spoil every cache behind."""
    async with behind("chat", [Turn("A.")] * 3, guarded(ALIASES)) as served:
        for number in range(3):
            system = _body()["system"]
            system[0] = {"type": "text", "text": f"x-anthropic-billing-header: cch={number:05};"}
            await _post(served.gateway, _body(system=system))
    assert len({orjson.dumps(body) for body in served.bodies}) == 1


@pytest.mark.cases
async def test_identical_requests_are_identical_upstream() -> None:
    """Marks are set by us here: nothing in them may differ."""
    plain = _body(
        system="You are Claude Code.", messages=[{"role": "user", "content": "Hi"}], stream=False
    )
    async with ScriptedMessagesServer([MessagesTurn((text("A."),))] * 3) as server:
        model = replace(deployment("p/claude"), caching="marks")
        catalog = catalog_at(server.base_url, model, shape="messages")
        async with running_gateway(catalog, guarded(ALIASES)) as gateway:
            for _ in range(3):
                await _post(gateway, plain)
    assert len({request.raw for request in server.requests}) == 1
    assert server.requests[0].raw.count(b"cache_control") == 2
    assert server.faults == []


@both
async def test_the_small_requests_beside_the_loop_are_served(kind: Kind) -> None:
    """The test of the quota, a title by schema, a count, the connection test."""
    title = {
        "type": "object",
        "properties": {"title": {"type": "string"}},
        "required": ["title"],
        "additionalProperties": False,
    }
    quota = {
        "model": "claude-haiku-4-5",
        "max_tokens": 1,
        "messages": [{"role": "user", "content": "quota"}],
        "metadata": _body()["metadata"],
    }
    titled = _body(
        model="claude-haiku-4-5",
        tools=[],
        output_config={"format": {"type": "json_schema", "schema": title}},
    )
    del titled["thinking"], titled["context_management"]
    counted = {"model": "claude-opus-4-6", "messages": quota["messages"], "tools": _body()["tools"]}
    turns = [Turn("ok"), Turn('{"title": "Fix"}')]
    async with behind(kind, turns, guarded(ALIASES)) as served:
        status, answer = await _post(served.gateway, quota)
        assert (status, orjson.loads(answer)["usage"]["output_tokens"]) == (200, 20)
        status, answer = await _post(served.gateway, titled)
        assert (status, "text_delta" in answer) == (200, True)
        status, answer = await _post(served.gateway, counted, "/messages/count_tokens?beta=true")
        assert (status, orjson.loads(answer)["input_tokens"] > 0) == (200, True)
        root = served.gateway.base_url.removesuffix("/v1")
        async with aiohttp.ClientSession() as session, session.head(root) as hello:
            assert hello.status == 200
    assert served.faults == []


@both
async def test_a_loop_with_reminders_and_thoughts_goes_on(kind: Kind) -> None:
    """As Claude Code sends it back: results first, reminders behind them, thoughts as they came."""
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "" if kind == "chat" else "sig0"}
    turns = [
        Turn(reasoning="Hm.", calls=(Call("Read", {"file_path": "a.py"}, "toolu_1"),)),
        Turn("Done."),
    ]
    history = [
        *_body()["messages"],
        {
            "role": "assistant",
            "content": [
                thought,
                {"type": "text", "text": ""},
                {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "a"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [{"type": "text", "text": "x = 1"}],
                    "cache_control": MARK,
                },
                {"type": "text", "text": "<system-reminder>Use tasks.</system-reminder>"},
            ],
        },
    ]
    async with behind(kind, turns, guarded(ALIASES)) as served:
        first, _ = await _post(served.gateway, _body())
        second, answer = await _post(served.gateway, _body(messages=history))
    assert (first, second) == (200, 200)
    assert served.faults == []
    assert "Done." in answer
    routing = served.gateway.receipt().routing
    assert routing is not None
    assert routing.sticky


async def test_a_search_that_the_provider_runs_comes_back_whole() -> None:
    """Judged by policy under its type, its blocks and its count untouched."""
    tool = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
    asked = _body(
        tools=[tool],
        tool_choice={"type": "tool", "name": "web_search"},
        messages=[{"role": "user", "content": "Search: turnout"}],
    )
    for name in ("thinking", "context_management", "output_config"):
        del asked[name]
    used = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"q": 1}}
    found = {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [{"type": "web_search_result", "title": "T", "url": "https://example.org"}],
    }
    counts = {
        "input_tokens": 9,
        "output_tokens": 9,
        "server_tool_use": {"web_search_requests": 1},
    }
    turn = MessagesTurn((used, found, text("Found.")), counts)
    policy = replace(ALIASES, tools=ToolRule("enforce", ("web_search",)))
    async with ScriptedMessagesServer([turn]) as server:
        catalog = catalog_at(server.base_url, deployment("p/claude"), shape="messages")
        async with running_gateway(catalog, guarded(policy)) as gateway:
            status, answer = await _post(gateway, asked)
            refused, why = await _post(gateway, _body())
    assert status == 200
    assert '"web_search_requests":1' in answer
    assert orjson.dumps(found).decode() in answer
    assert '"stop_reason":"end_turn"' in answer
    assert (refused, "Read" in why) == (403, True)


PAGE = Path(__file__).parents[2] / "docs/howto/claude-code.md"


def _configuration() -> dict[str, Any]:
    """Return what the page tells its readers to write, as one document."""
    document: dict[str, Any] = {}
    for block in re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        document |= tomllib.loads(block)
    return document


async def test_the_pages_configuration_serves_claude_code() -> None:
    """Word for word, but for the address: names, marks, thinking, what is left out."""
    turn = MessagesTurn((text("On it."),))
    async with ScriptedMessagesServer([turn] * 2, api_key="sk-ant") as server:
        document = _configuration()
        document["providers"]["anthropic"]["base_url"] = server.base_url
        catalog = parse_catalog(document, lambda _: "sk-ant", lambda *_: None)
        (policy,) = parse_policies(document)
        async with running_gateway(catalog, guarded(policy)) as gateway:
            assert (await _post(gateway, _body(model="claude-haiku-4-5")))[0] == 200
            fast = gateway.receipt().routing
            assert (await _post(gateway, _body(temperature=1)))[0] == 200
            good = gateway.receipt().routing
    assert fast is not None
    assert good is not None
    assert (fast.objective, good.objective) == ("latency", "quality")
    assert server.requests[1].raw == orjson.dumps(_body(model="claude-opus-4-8"))
    assert server.faults == []


@pytest.fixture
def claude() -> str:
    """Return the path of Claude Code."""
    found = shutil.which("claude")
    if found is None:
        pytest.skip("Claude Code is not installed")
    return found


@both
async def test_claude_code_itself_reads_a_file(kind: Kind, claude: str, tmp_path: Path) -> None:
    """The program as released: two calls at once, their results, the answer."""
    work, home = tmp_path / "work", tmp_path / "home"
    for folder in (work, home):
        folder.mkdir()
    (work / "a.py").write_text("x = 1\n")
    calls = (
        Call("Read", {"file_path": str(work / "a.py")}, "toolu_1"),
        Call("Glob", {"pattern": "*.py", "path": str(work)}, "toolu_2"),
    )
    turns = [Turn("Looking.", calls=calls, reasoning="Read it."), Turn("It says x = 1.")]
    async with behind(kind, turns, guarded(ALIASES)) as served:
        running = await asyncio.create_subprocess_exec(
            *(claude, "-p", "What does a.py say?", "--allowedTools", "Read,Glob"),
            cwd=work,
            env={
                "PATH": os.defpath,
                "HOME": str(home),
                "ANTHROPIC_BASE_URL": served.gateway.base_url.removesuffix("/v1"),
                "ANTHROPIC_AUTH_TOKEN": KEY,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(90):
                said, _ = await running.communicate()
        finally:
            if running.returncode is None:
                running.kill()
                await running.wait()
    assert said.decode().strip() == "It says x = 1."
    assert served.faults == []
    assert [receipt.tools_called for receipt in served.receipts] == [("Read", "Glob"), ()]
    assert len({receipt.session for receipt in served.receipts}) == 1
