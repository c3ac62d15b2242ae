"""Codex against the gateway: the forms in which it asks, and where it is installed, itself."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.gateways import served

from turnout.core.policies import Policy, ToolRule
from turnout.testing.gateway import GatewaySetup, RunningGateway
from turnout.testing.model_server import Call, ScriptedModelServer, Turn
from turnout.testing.recorded import RecordedRequest

pytestmark = [pytest.mark.clients, pytest.mark.cases]

GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": 'start: "x"'}
EXEC = {"type": "custom", "name": "exec", "description": "Run it.", "format": GRAMMAR}
SPAWN = {"type": "function", "name": "spawn", "parameters": {"type": "object"}, "strict": False}
SEARCH = {
    "type": "tool_search",
    "execution": "client",
    "description": "Find tools.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
}
FOUND = {"type": "namespace", "name": "mcp__cal__", "tools": [{"type": "function", "name": "add"}]}
DECLARED = {
    "type": "additional_tools",
    "role": "developer",
    "tools": [{"type": "namespace", "name": "functions", "description": "", "tools": [EXEC]}],
}
ASK = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]}
SESSION = "01a229da-3605-72f1-9fdc-17a5c2d34651"
CONFIG = """
model = "auto"
model_provider = "turnout"

[model_providers.turnout]
name = "Turnout"
base_url = "{base_url}"
env_key = "TURNOUT_KEY"
wire_api = "responses"
"""


def request(*items: dict[str, Any]) -> dict[str, Any]:
    """Return a request with everything that Codex sends around its items."""
    developer = {"type": "message", "id": "msg_d", "role": "developer"}
    said = [{"type": "input_text", "text": "You are an agent."}]
    return {
        "model": "auto",
        "stream": True,
        "input": [DECLARED, {**developer, "content": said}, ASK, *items],
        "tools": [
            {"type": "namespace", "name": "agents", "description": "Others.", "tools": [SPAWN]},
            SEARCH,
            {"type": "web_search", "external_web_access": False},
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "reasoning": {"summary": "auto"},
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": SESSION,
        "client_metadata": {"session_id": SESSION},
    }


async def events_of(gateway: RunningGateway, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of the answer, as Codex reads them."""
    headers = {"session-id": SESSION, "accept": "text/event-stream"}
    url = f"{gateway.base_url}/responses"
    async with (
        aiohttp.ClientSession() as client,
        client.post(url, json=body, headers=headers) as answer,
    ):
        raw = await answer.read()
    return [json.loads(line[6:]) for line in raw.split(b"\n") if line.startswith(b"data: ")]


async def test_every_form_of_tool_reaches_the_model_and_comes_back_as_it_was_declared():
    """A custom tool of a namespace in an item, a function of one, a search that the client runs."""
    calls = (
        Call("functions__exec", {"input": "ls -l"}),
        Call("agents__spawn", {"n": 1}),
        Call("tool_search", {"query": "calendar"}),
    )
    async with served(ScriptedModelServer([Turn(calls=calls), Turn("Done.")])) as (server, gateway):
        events = await events_of(gateway, request())
        made = events[-1]["response"]["output"]
        outputs = [
            {"type": "custom_tool_call_output", "call_id": made[0]["call_id"], "output": "a"},
            {"type": "function_call_output", "call_id": made[1]["call_id"], "output": "b"},
            {"type": "tool_search_output", "call_id": made[2]["call_id"], "tools": [FOUND]},
        ]
        last = await events_of(gateway, request(*made, *outputs))
        assert gateway.receipt().session == SESSION
        assert "mcp__cal__add" in gateway.receipt().tools_declared
    assert server.requests[0].tool_names == ("agents__spawn", "tool_search", "functions__exec")
    assert [(i["type"], i.get("namespace"), i.get("name")) for i in made] == [
        ("custom_tool_call", "functions", "exec"),
        ("function_call", "agents", "spawn"),
        ("tool_search_call", None, None),
    ]
    assert made[0]["input"] == "ls -l"
    assert made[2]["arguments"] == {"query": "calendar"}
    assert last[-1]["response"]["output"][0]["content"][0]["text"] == "Done."
    assert server.history_faults == []
    assert "mcp__cal__add" in server.requests[1].tool_names
    described = server.requests[0].body["tools"][2]["function"]["description"]
    assert GRAMMAR["definition"] in described


async def test_tools_in_items_are_judged_by_policy():
    """A list counts for the tools that come with the conversation, too."""
    policy = Policy(tools=ToolRule("enforce", ("agents__spawn", "tool_search", "web_search")))
    setup = GatewaySetup(policy=policy)
    async with served(ScriptedModelServer([Turn("Never.")]), setup=setup) as (server, gateway):
        url = f"{gateway.base_url}/responses"
        async with (
            aiohttp.ClientSession() as client,
            client.post(url, json=request()) as answer,
        ):
            told = await answer.json()
    assert answer.status == 403
    assert "functions__exec" in told["error"]["message"]
    assert server.requests == []


async def test_codex_itself_runs_a_command_and_ends(tmp_path: Path):
    """The program as its makers ship it: only address and key are ours."""
    codex = shutil.which("codex")
    if codex is None:
        pytest.skip("codex is not installed (npm install -g @openai/codex)")

    def script(asked: RecordedRequest) -> Turn:
        if any(message["role"] == "tool" for message in asked.messages):
            return Turn("All done.")
        command = {"cmd": "echo seen > seen.txt", "command": ["sh", "-c", "echo seen > seen.txt"]}
        shell = next(n for n in asked.tool_names if "exec" in n or "shell" in n)
        return Turn("I will look.", calls=(Call(shell, command),), reasoning="Hm.")

    home, work = tmp_path / "home", tmp_path / "work"
    (home / ".codex").mkdir(parents=True)
    work.mkdir()
    options = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    path = f"{Path(codex).parent}:/usr/local/bin:/usr/bin:/bin"
    async with served(ScriptedModelServer(script)) as (server, gateway):
        config = CONFIG.format(base_url=gateway.base_url)
        (home / ".codex" / "config.toml").write_text(config)
        running = await asyncio.create_subprocess_exec(
            *(codex, "exec", *options, "Write a file."),
            cwd=work,
            env={"HOME": str(home), "PATH": path, "TURNOUT_KEY": "k"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(90):
                said, _ = await running.communicate()
        finally:
            if running.returncode is None:
                running.kill()
                await running.wait()
        statuses = [receipt.status for receipt in gateway.receipts.receipts.values()]
    assert running.returncode == 0
    assert b"All done." in said
    assert (work / "seen.txt").read_text() == "seen\n"
    assert statuses == ["ok", "ok"]
    assert server.history_faults == []
