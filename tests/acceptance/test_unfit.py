"""What is missing is said in words that name the mend, with exit code 4, and nothing is lost."""

from pathlib import Path

import pytest
from tests.acceptance.command import FIX, KEY, PLAN, TASK, Command, Done

from turnout.testing.model_server import Refusal, ScriptedModelServer, Turn, refusing_base_url
from turnout.testing.repositories import TinyRepository


def says(done: Done, *words: str) -> None:
    """Check for exit code 4 and an error of a few lines that holds these words."""
    assert done.code == 4, done.err
    assert done.out == ""
    assert "Traceback" not in done.err
    for word in words:
        assert word in done.err


async def test_a_wrong_key(turnout: Command, pages: TinyRepository) -> None:
    """The variable that holds it is named; the key itself is not shown."""
    async with ScriptedModelServer(FIX, models=["m"], api_key=KEY) as server:
        command = turnout.using(server.base_url, key="wrong-key-123")
        done = await command("run", TASK, "--repo", str(pages))
    says(done, "LLM_API_KEY", server.base_url)
    assert "wrong-key-123" not in done.err


async def test_an_unreachable_host(turnout: Command, pages: TinyRepository) -> None:
    """The address is named."""
    with refusing_base_url() as base_url:
        done = await turnout.using(base_url, model="m")("run", TASK, "--repo", str(pages))
    says(done, "LLM_BASE_URL", base_url)


async def test_an_endpoint_that_fails(turnout: Command, pages: TinyRepository) -> None:
    """500 from the start means that no run begins."""
    script = [Refusal(500, "out of order")] * 50
    async with ScriptedModelServer(script, models=["m"], answers_probes=False) as server:
        done = await turnout.using(server.base_url)("run", TASK, "--repo", str(pages))
    says(done, "out of order", "LLM_BASE_URL")


async def test_an_endpoint_that_fails_in_the_middle(
    turnout: Command, pages: TinyRepository
) -> None:
    """The run is on record, and the exit code says that the environment failed."""
    script = [*FIX[:2], *[Refusal(500, "out of order")] * 50]
    async with ScriptedModelServer(script, models=["m"]) as server:
        done = await turnout.using(server.base_url)("run", TASK, "--repo", str(pages), "--json")
    result = done.object
    assert (done.code, result["outcome"]) == (4, "failed")
    assert "out of order" in result["reason"]
    assert (await turnout("runs", "show", result["run_id"])).code == 0


async def test_an_endpoint_that_fails_after_the_patch(
    turnout: Command, pages: TinyRepository
) -> None:
    """Nothing is lost: the diff so far is judged, kept, and counts."""
    script = [*FIX[:3], *[Refusal(500, "out of order")] * 50]
    async with ScriptedModelServer(script, models=["m"]) as server:
        done = await turnout.using(server.base_url)("run", TASK, "--repo", str(pages), "--json")
    result = done.object
    assert (done.code, result["outcome"]) == (0, "failed")
    assert result["verdict"]["name"] == "resolved"
    assert (await turnout("runs", "diff", result["run_id"])).out == result["diff"]


async def test_a_model_without_tool_support(turnout: Command, pages: TinyRepository) -> None:
    """Nothing is started that could not work."""
    chatty = [Turn("I would rather talk.")] * 20
    async with ScriptedModelServer(chatty, models=["m"], answers_probes=False) as server:
        done = await turnout.using(server.base_url)("run", TASK, "--repo", str(pages))
    says(done, "cannot call tools", "LLM_MODEL")


async def test_no_model_at_all(turnout: Command, pages: TinyRepository) -> None:
    """All three ways to have one are named."""
    done = await turnout("run", TASK, "--repo", str(pages))
    says(done, "LLM_BASE_URL", "turnout init", "turnout models pull")


async def test_no_bubblewrap(turnout: Command, pages: TinyRepository, tmp_path: Path) -> None:
    """The package to install is named."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("git", "env"):
        (folder / name).symlink_to(f"/usr/bin/{name}")
    async with ScriptedModelServer([PLAN], models=["m"]) as server:
        command = turnout.using(server.base_url).where(PATH=str(folder))
        done = await command("run", TASK, "--repo", str(pages))
    says(done, "bubblewrap", "install")


async def test_not_a_repository(turnout: Command, tmp_path: Path) -> None:
    """The folder is named."""
    (tmp_path / "plain").mkdir()
    done = await turnout("run", TASK, "--repo", str(tmp_path / "plain"))
    says(done, str(tmp_path / "plain"))


async def test_a_folder_that_is_not_there(turnout: Command, tmp_path: Path) -> None:
    """It is not taken for an address."""
    says(await turnout("run", TASK, "--repo", str(tmp_path / "none")), str(tmp_path / "none"))


async def test_an_unknown_base(turnout: Command, pages: TinyRepository) -> None:
    """What there is instead is named."""
    done = await turnout("run", TASK, "--repo", str(pages), "--base", "mian")
    says(done, "mian", "main")


async def test_a_set_up_command_that_fails(turnout: Command, pages: TinyRepository) -> None:
    """Its last words are shown, and no model was asked anything."""
    async with ScriptedModelServer([], models=["m"]) as server:
        command = turnout.using(server.base_url)
        setup = "echo no compiler here >&2; exit 7"
        done = await command("run", TASK, "--repo", str(pages), "--setup", setup)
    says(done, "exit status 7", "no compiler here", "[tests] setup", "turnout runs show run-")
    assert server.requests == []


async def test_errors_are_json_where_json_is_asked_for(
    turnout: Command, pages: TinyRepository
) -> None:
    """A script reads the mend too."""
    done = await turnout("run", TASK, "--repo", str(pages), "--base", "mian", "--json")
    assert done.code == 4
    error = done.object["error"]
    assert (error["kind"], error["exit_code"]) == ("repository", 4)
    assert "main" in error["mend"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "Missing argument"),
        (["run", " ", "--repo", "."], "The task is empty"),
        (["run", "x", "--apply", "--branch", "b"], "only one of"),
        (["run", "x", "--branch", "b", "--repo", "https://h.example/r.git"], "--output"),
        (["run", "x", "--config", "none.toml"], "none.toml"),
        (["rnu"], "No such command"),
        (["gateway", "--key-env", "UNSET"], "UNSET"),
    ],
)
async def test_wrong_usage(turnout: Command, arguments: list[str], said: str) -> None:
    """Exit code 2, and what would be right."""
    done = await turnout(*arguments)
    assert done.code == 2, done.err
    assert said in done.err
    assert "Traceback" not in done.err
