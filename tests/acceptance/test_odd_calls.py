"""Odd input and odd surroundings: no traceback, no work lost, and words for what is wrong."""

import asyncio
import json
import os
import sys

import pytest
from tests.acceptance.command import FIX, PATCH, PLAN, TASK, Command, Done, ended

from turnout.testing.model_server import Refusal, ScriptedModelServer, Turn
from turnout.testing.repositories import TinyRepository

TWO_MODELS = """\
[providers.p]
base_url = "{base_url}"

[[deployments]]
model = "strong"
provider = "p"
tools = "confirmed"
"""


async def through_shell(
    command: Command, redirection: str, *arguments: str, typed: bytes = b""
) -> Done:
    """Run the command with its streams as a shell redirects them."""
    process = await asyncio.create_subprocess_exec(
        "sh",
        "-c",
        f'exec "$@" {redirection}',
        "sh",
        sys.executable,
        "-m",
        "turnout",
        *arguments,
        cwd=command.folder,
        env=command.environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(typed)
    process.stdin.close()
    return await ended(process)


async def test_a_task_that_is_no_text_becomes_text(turnout: Command, pages: TinyRepository) -> None:
    """For the model, the commit message, the record and whoever reads the JSON."""
    task = os.fsdecode(b"caf\xe9: the first page fails")
    async with ScriptedModelServer(FIX, models=["m"]) as server:
        command = turnout.using(server.base_url)
        run = ("run", task, "--repo", str(pages), "--branch", "fix", "--json")
        done = await command(*run)
    assert (done.code, done.object["delivery"]["done"]) == (0, True), done.err
    assert done.object["prompt"] == "caf\ufffd: the first page fails"
    assert "first page fails" in pages.git("log", "-1", "--format=%s", "fix")


@pytest.mark.parametrize(
    ("redirection", "typed", "said"),
    [
        ("", b"x" * 300_000, "longer than 256 KiB"),
        ("", b" \n", "The task is empty"),
        ("<&-", b"", "The task is empty"),
    ],
)
async def test_a_task_from_standard_input_may_be_refused(
    turnout: Command, pages: TinyRepository, redirection: str, typed: bytes, said: str
) -> None:
    """Exit code 2, before anything is started."""
    run = ("run", "-", "--repo", str(pages))
    done = await through_shell(turnout, redirection, *run, typed=typed)
    assert done.code == 2, done.err
    assert said in done.err


@pytest.mark.parametrize("redirection", ["2>/dev/full", ">&- 2>&-"])
async def test_a_run_goes_on_when_nobody_listens(
    turnout: Command, pages: TinyRepository, redirection: str
) -> None:
    """What was paid for ends up on record, and the exit code tells how it went."""
    async with ScriptedModelServer(FIX, models=["m"]) as server:
        command = turnout.using(server.base_url)
        run = ("run", TASK, "--repo", str(pages), "--branch", "fix")
        done = await through_shell(command, redirection, *run)
    assert (done.code, done.err) == (0, "")
    assert pages.git("log", "-1", "--format=%s", "fix") == TASK


async def test_a_full_disk_behind_standard_output_is_said(turnout: Command) -> None:
    """In words, and as an exit code that is ours."""
    done = await through_shell(turnout, ">/dev/full", "runs", "list")
    assert done.code == 4
    assert "No space left" in done.err
    assert "Traceback" not in done.err
    assert (await through_shell(turnout, ">/dev/full", "runs", "list", "--json")).code in {1, 4}


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("LLM_API_KEY", "se\ncret"),
        ("LLM_BASE_URL", "http://user:secret@127.0.0.1:1/v1"),
        ("LLM_BASE_URL", "http://127.0.0.1:1/v1?key=secret"),
        ("LLM_BASE_URL", "http://[::1/v1"),
    ],
)
async def test_a_setting_that_cannot_be_sent_is_named_and_not_shown(
    turnout: Command, pages: TinyRepository, variable: str, value: str
) -> None:
    """Exit code 2, on every command that reads it."""
    command = turnout.using("http://127.0.0.1:1/v1").where(**{variable: value})
    for arguments in (("run", TASK, "--repo", str(pages)), ("doctor",), ("init",)):
        done = await command(*arguments)
        assert done.code == 2, done.err
        assert variable in done.err
        assert "cret" not in done.err + done.out


async def test_models_that_are_named_and_not_there_are_wrong_settings(
    turnout: Command, pages: TinyRepository
) -> None:
    """The key that names them is in the error, and so is what there is."""
    run = ("run", TASK, "--repo", str(pages))
    async with ScriptedModelServer([PLAN], models=["m"]) as server:
        pool = turnout.using(server.base_url).configured('[policy]\npool = ["n"]\n')
        of_pool = await pool(*run)
        step = turnout.configured(
            TWO_MODELS.format(base_url=server.base_url) + '[agent.steps.plan]\nmodel = "stong"\n'
        )
        of_step = await step(*run)
        of_option = await step(*run, "--model", "storng")
    assert (of_pool.code, of_step.code, of_option.code) == (2, 2, 2), of_pool.err
    assert "`policy.pool` names the model 'n'" in of_pool.err
    assert "Did you mean `strong`?" in of_step.err
    assert "agent.steps.plan.model" in of_step.err
    assert "--model" in of_option.err


async def test_what_an_endpoint_says_cannot_steer_the_terminal(
    turnout: Command, pages: TinyRepository
) -> None:
    """Before a run as during one."""
    steering = Refusal(400, "\x1b[2Jall is well", "nope")
    async with ScriptedModelServer([steering] * 9, models=["m"], answers_probes=False) as server:
        done = await turnout.using(server.base_url)("run", TASK, "--repo", str(pages))
    assert done.code == 4
    assert "all is well" in done.err
    assert "\x1b" not in done.err


@pytest.mark.cases
async def test_an_endpoint_that_asks_for_hours_is_not_waited_for(
    turnout: Command, pages: TinyRepository
) -> None:
    """The work so far is kept, and the exit code says that a cap has ended it."""
    quota = Refusal(429, "quota used up", headers={"retry-after": "36000"})
    for script in ((PLAN, quota), (PLAN, PATCH, quota)):
        async with ScriptedModelServer([*script, *[quota] * 9], models=["m"]) as server:
            command = turnout.using(server.base_url)
            done = await command("run", TASK, "--repo", str(pages), "--json", timeout=60)
            assert len(server.requests) == len(script)
        assert (done.code, done.object["outcome"]) == (3, "capped"), done.err
        assert "quota used up" in done.object["reason"]


async def test_no_key_is_left_anywhere(turnout: Command, pages: TinyRepository) -> None:
    """Not in the database, the crash files or the output, though the server repeats it."""
    secret = "sk-a-key-that-must-not-be-kept"
    script = [PLAN, Refusal(500, f"{secret} failed"), Turn("x", fault="error_in_band")]
    refused = Refusal(429, f"over quota: {secret}", headers={"retry-after": "99999"})
    async with ScriptedModelServer([*script, *[refused] * 9], models=["m"]) as server:
        command = turnout.using(server.base_url, key=secret)
        done = await command("run", TASK, "--repo", str(pages), "--json")
        shown = await command("runs", "show")
    assert done.code == 3, done.err
    assert json.loads(done.out)["failed_calls"]
    assert secret not in done.out + done.err + shown.out + shown.err
    home = turnout.environment["TURNOUT_HOME"]
    grep = await asyncio.create_subprocess_exec("grep", "-rlaF", secret, home)
    assert await grep.wait() == 1
