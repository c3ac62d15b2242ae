"""An evaluation steers the router: from a results file to who answers, and back."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner
from pydantic import TypeAdapter
from tests.unit.evals.evidence.test_quality import trial

from turnout.cli.eval import command as eval_command
from turnout.cli.keys import command as keys_command
from turnout.cli.models import command as models_command
from turnout.cli.policy import command as policy_command
from turnout.errors import UsageError
from turnout.evals.trials.model import Trial
from turnout.settings import load_settings
from turnout.testing.model_server import ScriptedModelServer, Turn
from turnout.wiring.serving.gateway import open_gateway

TOML = """
[providers.own]
base_url = "{url}"
[[deployments]]
model = "small"
provider = "own"
tools = "confirmed"
price = {{ input_usd = "0.1", output_usd = "0.1" }}
[[deployments]]
model = "large"
provider = "own"
tools = "confirmed"
price = {{ input_usd = "9", output_usd = "9" }}
"""


def write_results(path: Path, *trials: Trial) -> Path:
    """Write a results file."""
    adapter = TypeAdapter(Trial)
    path.write_bytes(b"".join(adapter.dump_json(each) + b"\n" for each in trials))
    return path


def large_wins() -> list[Trial]:
    """Return trials in which the dear model solves all, and the other one little."""
    tasks = [f"bug-{n}" for n in range(12)]
    return [
        *(trial(task, "large") for task in tasks),
        *(trial(task, "small", "unresolved") for task in tasks[1:]),
        trial(tasks[0], "small"),
    ]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder to start commands in, with a configuration of two models."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TURNOUT_HOME", str(tmp_path / "home"))
    (tmp_path / "turnout.toml").write_text(TOML.format(url="http://127.0.0.1:1/v1"))
    return tmp_path


def said(command: Any, *words: str, code: int = 0) -> str:
    """Run a command; return what it has printed."""
    done = CliRunner().invoke(command, words, standalone_mode=False)
    if isinstance(done.exception, Exception):
        raise done.exception
    assert done.return_value == code, done.output
    return done.stdout


def asked_for_quality() -> dict[str, Any]:
    """Return the decision for a request that asks for quality, as the command line explains it."""
    words = ("explain", "--optimize", "quality", "--task", "coding", "--json")
    found: dict[str, Any] = json.loads(said(policy_command, *words))
    return found


def test_the_command_line_applies_explains_and_takes_back(place: Path) -> None:
    """A dry run shows the same and changes nothing; twice is once; the decision cites it."""
    results = str(write_results(place / "bugs.results.jsonl", *large_wins()))
    before = asked_for_quality()
    assert before["deployment"] == "own/small"
    looked = said(eval_command, "apply", results, "--dry-run")
    assert "quality   own/small → own/large" in looked
    assert "cost      own/small, as before" in looked
    assert "Nothing is changed" in looked
    assert asked_for_quality() == before
    first = json.loads(said(eval_command, "apply", results, "--json"))
    id_ = first["evaluation"]["id"]
    assert (first["changed"], first["dry_run"], first["notes"]) == (True, False, [])
    assert "Routing goes by it already." in said(eval_command, "apply", results)
    after = asked_for_quality()
    assert after["deployment"] == "own/large"
    cited = f"evaluation {id_}, hidden tests: bugs.results.jsonl"
    assert f"1.00 over 12 tasks ({cited})" in after["reason"]
    explained = said(policy_command, "explain", "--optimize", "quality", "--task", "coding")
    assert re.search(rf"quality 1\.00 of 12, \d+ days old: {cited}", explained)
    listed = said(models_command, "evidence")
    assert re.search(rf"coding: quality 1\.00 of 12, .*: {cited}; ranks by 0\.76", listed)
    small, large = json.loads(said(models_command, "evidence", "--json"))["deployments"]
    assert (small["deployment"], small["quality"][0]["value"]) == ("own/small", 1 / 12)
    assert (large["quality"][0]["samples"], large["quality"][0]["source"]) == (12, cited)
    assert (large["tools"], large["input_micros_per_million"]) == ("confirmed", 9_000_000)
    assert id_ in said(eval_command, "apply")
    assert "own/large → own/small" in said(eval_command, "apply", "--undo", id_, "--dry-run")
    assert f"{id_} counts no more." in said(eval_command, "apply", "--undo", id_)
    assert asked_for_quality()["deployment"] == before["deployment"]
    assert "No evaluation is applied" in said(eval_command, "apply")


def test_what_rests_on_few_tasks_is_applied_only_by_who_insists(place: Path) -> None:
    """A dry run shows it with the doubts; without --yes nothing is changed."""
    few = [trial(f"bug-{n}", model) for n in range(3) for model in ("large", "small")]
    results = str(write_results(place / "few.results.jsonl", *few))
    looked = said(eval_command, "apply", results, "--dry-run")
    assert "3 tasks are too few to rank models by" in looked
    assert "large cannot be told apart from small (p 1.000)" in looked
    with pytest.raises(UsageError, match="Nothing was changed") as caught:
        said(eval_command, "apply", results)
    assert "--yes" in caught.value.mend
    assert "No evaluation is applied" in said(eval_command, "apply")
    assert "Routing goes by it now." in said(eval_command, "apply", results, "--yes")
    (applied,) = json.loads(said(eval_command, "apply", "--json"))["evaluations"]
    begun = applied["id"][:5]
    assert f"{applied['id']} counts no more." in said(eval_command, "apply", "--undo", begun)


@asynccontextmanager
async def gateway(place: Path) -> AsyncIterator[str]:
    """Serve the two models, and give out the address."""
    async with ScriptedModelServer(lambda _: Turn("Hello"), models=["small", "large"]) as server:
        (place / "turnout.toml").write_text(TOML.format(url=server.base_url))
        settings = load_settings(environment={"TURNOUT_HOME": str(place / "home")}, directory=place)
        opening = open_gateway(settings, host="127.0.0.1", port=0, key="", report=lambda _: None)
        async with opening as served:
            yield served.base_url


async def test_a_gateway_that_runs_routes_by_what_is_applied_over_its_api(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once; and as before once it is taken back."""
    key = await asyncio.to_thread(said, keys_command, "create", "boss", "--admin")
    monkeypatch.setenv("TURNOUT_API_KEY", key.strip())
    results = write_results(place / "bugs.results.jsonl", *large_wins())
    async with gateway(place) as url, aiohttp.ClientSession() as http:

        async def answers() -> str:
            body = {
                "model": "auto",
                "messages": [{"role": "user", "content": "Hello"}],
                "routing": {"optimize": "quality", "task": "coding"},
            }
            headers = {"authorization": f"Bearer {key.strip()}"}
            sending = http.post(f"{url}/v1/chat/completions", json=body, headers=headers)
            async with sending as answer:
                routed: str = (await answer.json())["routing"]["model"]
                return routed

        async def command(*words: str) -> dict[str, Any]:
            def run() -> str:
                return said(eval_command, "apply", *words, "--server", url, "--json")

            found: dict[str, Any] = json.loads(await asyncio.to_thread(run))
            return found

        assert await answers() == "small"
        looked = await command(str(results), "--dry-run")
        assert looked["preview"]["routes"][0]["after"] == "own/large"
        assert await answers() == "small"
        id_ = (await command(str(results)))["evaluation"]["id"]
        assert await answers() == "large"
        assert [each["id"] for each in (await command())["evaluations"]] == [id_]
        await command("--undo", id_)
        assert await answers() == "small"
