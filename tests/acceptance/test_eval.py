"""An evaluation: real command, real sandboxes, scripted model."""

import asyncio
import json
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.acceptance.command import DIFF, Command
from tests.acceptance.forks import Forked

from turnout.evals.trials.store import read_trials
from turnout.testing.evaluating.solvers import knowing
from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.recorded import RecordedRequest
from turnout.testing.repositories import TinyRepository
from turnout.testing.turns import Turn

TASK = "The first page is wrong."
RESULTS = "tasks.results.jsonl"
PRICED = """\
[providers.here]
base_url = "{url}"
api_key_env = "LLM_API_KEY"

[[deployments]]
model = "m"
provider = "here"
price = {{ input_usd = "1", output_usd = "2" }}
"""
_SECONDS = 60.0

HIDDEN = """\
from pages import page


def test_the_second_page():
    assert page([1, 2, 3, 4, 5], 2, 2) == [3, 4]
"""


def instance(pages: TinyRepository, name: str, hidden: str = HIDDEN) -> str:
    """Write an instance that brings the whole tree of a repository."""
    root = Path(str(pages))
    paths = [path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts]
    row = {
        "instance_id": name,
        "problem_statement": TASK,
        "files": {path.relative_to(root).as_posix(): path.read_text() for path in paths},
        "hidden_tests": {"tests/test_hidden.py": hidden},
    }
    return f"{json.dumps(row)}\n"


async def test_arms_are_graded_on_the_same_instances(
    turnout: Command, pages: TinyRepository
) -> None:
    """By tests that none of them saw; the same command again runs nothing and reports the same."""
    wrong = instance(pages, "wrong", HIDDEN.replace("[3, 4]", "[9]"))
    (turnout.folder / "tasks.jsonl").write_text(instance(pages, "right") + wrong)
    (turnout.folder / "fix.diff").write_text(DIFF)
    mine = f"mine=command:test ! -e tests/test_hidden.py && git apply {turnout.folder}/fix.diff"
    ask = ["eval", "run", "tasks.jsonl", "--json", "--arm", "auto", "--arm", mine]
    async with ScriptedModelServer(knowing({TASK: DIFF}), models=["m"]) as server:
        evaluate = turnout.using(server.base_url)
        done = await evaluate(*ask)
        asked = len(server.requests)
        again = await evaluate(*ask)
        assert len(server.requests) == asked
    assert done.code == 0, done.err
    trials = {(t.instance_id, t.arm): t for t in read_trials(turnout.folder / RESULTS)}
    assert {at: trial.grade for at, trial in trials.items()} == {
        ("right", "auto"): "resolved",
        ("right", "mine"): "resolved",
        ("wrong", "auto"): "unresolved",
        ("wrong", "mine"): "unresolved",
    }
    routed = trials["right", "auto"]
    assert (routed.verdict, routed.outcome, routed.models) == ("resolved", "answered", ("m",))
    assert routed.environment
    assert "/4] right, mine: resolved" in done.err
    assert "mine runs its command on this machine" in done.err
    assert "4 results from before" in again.err
    assert again.object == done.object


async def begun_with(turnout: Command, ask: Sequence[str], reached: asyncio.Event) -> Forked:
    """Start a command and wait until it has reached a point."""
    reached.clear()
    process = await turnout.start(*ask)
    async with asyncio.timeout(_SECONDS):
        await reached.wait()
    return process


async def test_an_evaluation_goes_on_with_the_very_runs_that_were_under_way(
    turnout: Command, pages: TinyRepository
) -> None:
    """Interrupted or killed; in visible mode, where the tests that grade can be seen."""
    (turnout.folder / "tasks.jsonl").write_text(instance(pages, "right"))
    ask = ["eval", "run", "tasks.jsonl", "--mode", "visible", "--max-hours", "1", "--budget", "9"]
    knows = knowing({TASK: DIFF})
    reached, held = asyncio.Event(), True

    def script(request: RecordedRequest) -> Turn:
        called = any(message.get("tool_calls") for message in request.messages)
        if not (held and called):
            return knows(request)
        reached.set()
        return replace(knows(request), delay=_SECONDS)

    async with ScriptedModelServer(script, models=["m"]) as server:
        evaluate = turnout.using(server.base_url).configured(PRICED.format(url=server.base_url))
        interrupted = await begun_with(evaluate, ask, reached)
        interrupted.send_signal(signal.SIGINT)
        assert interrupted.stderr is not None
        await interrupted.stderr.readuntil(b"press Ctrl-C again")
        interrupted.send_signal(signal.SIGINT)
        _, said = await interrupted.communicate()
        assert (interrupted.returncode, b"goes on with the same command" in said) == (130, True)
        killed = await begun_with(evaluate, ask, reached)
        killed.kill()
        await killed.communicate()
        held = False
        done = await evaluate(*ask)
        acts = [each for each in server.requests if "apply_patch" in each.tool_names]
    assert done.code == 0, done.err
    (trial,) = read_trials(turnout.folder / RESULTS)
    assert (trial.grade, trial.mode, trial.strict, trial.failed_before) == (
        "resolved",
        "visible",
        True,
        True,
    )
    assert trial.cost_micros
    listed = (await turnout("runs", "list", "--json")).object
    assert [run["run_id"] for run in listed["runs"]] == [trial.run_id]
    assert len(acts) == 4


async def test_a_wrong_line_is_wrong_usage(turnout: Command) -> None:
    """It is named, and nothing is run."""
    (turnout.folder / "tasks.jsonl").write_text('{"instance_id": "a"}\n')
    done = await turnout("eval", "run", "tasks.jsonl")
    assert done.code == 2
    assert "tasks.jsonl, line 1" in done.err


async def test_an_unknown_instance_is_wrong_usage(turnout: Command, pages: TinyRepository) -> None:
    """The ids that are there are named."""
    (turnout.folder / "tasks.jsonl").write_text(instance(pages, "right"))
    done = await turnout("eval", "run", "tasks.jsonl", "--only", "left")
    assert done.code == 2
    assert "'left'" in done.err
    assert "right" in done.err


async def test_without_a_model_the_evaluation_ends_at_once(
    turnout: Command, pages: TinyRepository
) -> None:
    """No instance gets a grade that says something about a model."""
    (turnout.folder / "tasks.jsonl").write_text(instance(pages, "right"))
    done = await turnout("eval", "run", "tasks.jsonl")
    assert done.code == 4
    assert "LLM_BASE_URL" in done.err
