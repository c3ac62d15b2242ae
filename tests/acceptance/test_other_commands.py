"""`init`, `doctor`, `gateway` and the help, as a user meets them."""

import asyncio
import os
import signal
import sys
import tomllib
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest
from tests.acceptance.command import FIX, KEY, TASK, Command, ended
from tests.acceptance.forks import Forked

from turnout import __version__
from turnout.testing.model_server import Call, ScriptedModelServer, Turn
from turnout.testing.repositories import TinyRepository

TWO_MODELS = """
[providers.p]
base_url = "{base_url}"
api_key_env = "P_KEY"
[[deployments]]
model = "strong"
provider = "p"
tools = "confirmed"
ttft_ms = 4000
tokens_per_second = 20
quality = {{ coding = {{ value = 0.8, source = "stated" }} }}
[[deployments]]
model = "fast"
provider = "p"
tools = "confirmed"
ttft_ms = 100
tokens_per_second = 300
quality = {{ coding = {{ value = 0.4, source = "stated" }} }}
"""
USER = {"role": "user", "content": "test_pages fails. Why?"}
READ_FILE = {
    "type": "function",
    "function": {
        "name": "read_file",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}


async def test_init_writes_a_file_that_names_what_was_found(turnout: Command) -> None:
    """Keys are named, never written; an existing file is left alone."""
    async with ScriptedModelServer(models=["m"]) as server:
        command = turnout.using(server.base_url).where(DEEPSEEK_API_KEY="sesame-deep")
        done = await command("init")
    text = (turnout.folder / "turnout.toml").read_text()
    config = tomllib.loads(text)
    assert done.code == 0, done.err
    assert config["policy"]["pool"][0] == "m"
    assert config["providers"]["deepseek"]["api_key_env"] == "DEEPSEEK_API_KEY"
    assert "sesame" not in text + done.out + done.err
    again = await command("init")
    assert again.code == 2
    assert "--force" in again.err
    assert (turnout.folder / "turnout.toml").read_text() == text
    assert (await command("init", "--force", "--json")).object["found"][:2] == [
        "endpoint",
        "deepseek",
    ]


async def test_doctor_finds_this_machine_fit(turnout: Command) -> None:
    """Each part is named with what is right about it."""
    async with ScriptedModelServer(models=["m"]) as server:
        command = turnout.using(server.base_url)
        done = await command("doctor", "--json")
        shown = await command("doctor")
    checks = {check["name"]: check for check in done.object["checks"]}
    assert (done.code, done.object["fit"]) == (0, True), done.out
    assert checks["sandbox"]["ok"]
    assert checks["model: env"]["ok"]
    assert "has 1 model" in checks["model: env"]["detail"]
    assert shown.code == 0
    assert "turnout run can work here" in shown.out


async def test_a_file_that_init_wrote_runs(turnout: Command, pages: TinyRepository) -> None:
    """The endpoint's price is unknown, and the cap of the file does not shut it out."""
    async with ScriptedModelServer(FIX, models=["foo"]) as server:
        wrote = await turnout.using(server.base_url, model="foo")("init", "--output", "t/t.toml")
        options = ("--repo", str(pages), "--config", "t/t.toml", "--json")
        done = await turnout.where(LLM_API_KEY=KEY)("run", TASK, *options)
    assert wrote.code == 0, wrote.err
    assert done.code == 0, done.err
    assert done.object["verdict"]["name"] == "resolved"


async def test_doctor_is_not_content_where_the_policy_lets_no_model_work(
    turnout: Command,
) -> None:
    """It asks the question of a run, and names the same ways out."""
    async with ScriptedModelServer(models=["strong", "fast"]) as server:
        text = TWO_MODELS.format(base_url=server.base_url)
        turnout.configured(f'{text}[policy.session]\nmax_spend_usd = "1"\n')
        done = await turnout.where(P_KEY=KEY)("doctor", "--json")
    checks = {check["name"]: check for check in done.object["checks"]}
    assert done.code == 4
    assert checks["model: p"]["ok"]
    assert "price unknown under a spend cap" in checks["model: choice"]["detail"]
    assert "allow_unpriced" in checks["model: choice"]["mend"]


async def test_a_missing_key_stops_only_what_would_use_it(
    turnout: Command, pages: TinyRepository
) -> None:
    """Past runs are read without it; the check and the run name the variable."""
    turnout.configured(TWO_MODELS.format(base_url="http://127.0.0.1:9/v1"))
    assert (await turnout("runs", "list")).code == 0
    seen = await turnout("doctor")
    ran = await turnout("run", TASK, "--repo", str(pages))
    assert seen.code == 4
    assert "P_KEY is not set" in seen.out
    assert ran.code == 2
    assert "P_KEY is not set" in ran.err


async def test_doctor_names_the_mend_of_what_is_missing(turnout: Command, tmp_path: Path) -> None:
    """Without bubblewrap and without a model: exit code 4 and two mends."""
    (tmp_path / "bin").mkdir()
    done = await turnout.where(PATH=str(tmp_path / "bin"))("doctor")
    assert done.code == 4
    assert "apt-get install git" in done.out
    assert "bubblewrap: not installed. Run `sudo apt-get install bubblewrap`.\n" in done.out
    assert "bubblewrap" in done.out
    assert "LLM_BASE_URL" in done.out


async def test_the_gateway_serves_any_client_with_its_key(turnout: Command) -> None:
    """An address that others can reach asks for the key; the models are listed."""
    async with ScriptedModelServer([Turn("hello")], models=["m"], api_key=KEY) as server:
        command = turnout.using(server.base_url).where(TEAM_KEY="open")
        options = ("--host", "0.0.0.0", "--port", "0", "--key-env", "TEAM_KEY")
        process = await command.start("gateway", *options)
        said = await first_line(process)
        assert await first_line(process) == "Models: auto, m"
        url = said.removeprefix("Gateway: ").replace("0.0.0.0", "127.0.0.1")
        body = {"model": "auto", "messages": [{"role": "user", "content": "hi"}]}
        async with aiohttp.ClientSession() as client:
            async with client.post(f"{url}/chat/completions", json=body) as refused:
                assert refused.status == 401
            headers = {"authorization": "Bearer open"}
            async with client.post(f"{url}/chat/completions", json=body, headers=headers) as reply:
                answer = await reply.json()
        assert answer["choices"][0]["message"]["content"] == "hello"
        assert answer["routing"]["model"] == "m"
        process.send_signal(signal.SIGINT)
        done = await ended(process, timeout=30)
    assert done.code == 0
    refusal, line = [line for line in done.err.splitlines() if "req-" in line]
    assert refusal.split()[2:4] == ["invalid_api_key", "401"]
    assert line.split()[2:4] == ["m", "200"]
    assert line.endswith("unpriced")
    assert KEY not in done.err


async def test_several_models_of_one_server_are_told_apart(turnout: Command) -> None:
    """Which of them can work was tried out, and what would choose one."""
    async with ScriptedModelServer(models=["a", "b"]) as server:
        process = await turnout.using(server.base_url).start("gateway", "--port", "0", "--quiet")
        await first_line(process)
        process.send_signal(signal.SIGINT)
        done = await ended(process, timeout=30)
    assert "models: a, b; set LLM_MODEL to use one only" in done.err


@pytest.mark.clients
async def test_an_unmodified_client_has_its_calls_routed_on_what_they_are(turnout: Command) -> None:
    """The plan goes to the strong model and the tool steps to the fast one, named by neither."""
    reads = Turn(calls=(Call("read_file", {"path": "pages.py"}),))
    scripts = {"strong": [Turn("Read it.")], "fast": [reads, Turn("It counts from 0.")]}
    async with ScriptedModelServer(scripts, api_key=KEY) as server:
        turnout.configured(TWO_MODELS.format(base_url=server.base_url))
        command = turnout.where(P_KEY=KEY)
        process = await command.start("gateway", "--port", "0")
        url = (await first_line(process)).removeprefix("Gateway: ").removesuffix("/v1")
        base_url = f"{url}/api/v1/inference"
        async with openai.AsyncOpenAI(api_key="any", base_url=base_url) as client:
            plan = await ask(client, "quality", [USER])
            call = await ask(client, "latency", [USER], tools=[READ_FILE])
            asked = call.choices[0].message
            result = {"role": "tool", "tool_call_id": asked.tool_calls[0].id, "content": "code"}
            answer = await ask(client, "latency", [USER, asked, result], tools=[READ_FILE])
        process.send_signal(signal.SIGINT)
        assert (await ended(process, timeout=30)).code == 0
    routed = [reply.model_extra["routing"] for reply in (plan, call, answer)]
    assert [routing["model"] for routing in routed] == ["strong", "fast", "fast"]
    assert routed[2]["sticky"]
    assert answer.choices[0].message.content == "It counts from 0."


async def ask(client: openai.AsyncOpenAI, optimize: str, messages: list[Any], **more: Any) -> Any:
    """Make one call of a session, routed for an objective."""
    routing = {"optimize": optimize, "task": "coding", "session": "run-1"}
    return await client.chat.completions.create(
        model="auto", messages=messages, extra_body={"routing": routing}, **more
    )


async def first_line(process: Forked) -> str:
    """Wait for the first line on standard output."""
    assert process.stdout is not None
    return (await asyncio.wait_for(process.stdout.readline(), 60)).decode().strip()


async def test_help_shows_commands_examples_and_exit_codes(turnout: Command) -> None:
    """What the commands say of themselves is what the list says of them."""
    listed = (await turnout("--help")).out
    assert "Exit codes" in listed
    for name in ("run", "runs", "init", "doctor", "gateway", "models"):
        shown = await turnout(name, "--help")
        assert shown.code == 0
        assert name in listed
    assert "Exit codes" in (await turnout("run", "--help")).out
    assert (await turnout("--version")).out == f"turnout, version {__version__}\n"


async def test_a_state_folder_that_cannot_be_used_is_said(turnout: Command, tmp_path: Path) -> None:
    """No traceback, and what to set instead."""
    (tmp_path / "file").write_text("")
    done = await turnout.where(TURNOUT_HOME=str(tmp_path / "file/home"))("runs", "list")
    assert done.code == 4
    assert "TURNOUT_HOME" in done.err
    seen = await turnout.where(TURNOUT_HOME=str(tmp_path / "file/home"))("doctor")
    assert seen.code == 4
    assert "set TURNOUT_HOME" in seen.out


async def test_a_reader_that_leaves_is_no_error(turnout: Command) -> None:
    """`turnout … | true` ends quietly."""
    read, write = os.pipe()
    os.close(read)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "turnout",
        "doctor",
        env=turnout.environment,
        stdout=write,
        stderr=asyncio.subprocess.PIPE,
    )
    os.close(write)
    _, said = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 1
    assert said == b""
