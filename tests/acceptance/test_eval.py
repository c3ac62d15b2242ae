"""An evaluation: real command, real sandboxes, scripted model."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

from tests.acceptance.command import DIFF, Command

from turnout.evals.trials.store import read_trials
from turnout.testing.evaluating.solvers import knowing
from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.recorded import RecordedRequest
from turnout.testing.repositories import TinyRepository
from turnout.testing.turns import Turn

TASK = "The first page is wrong."
RESULTS = "tasks.results.jsonl"
_SECONDS = 60.0

HIDDEN = """\
from pages import page


def test_the_second_page():
    assert page([1, 2, 3, 4, 5], 2, 2) == [3, 4]
"""


def instance(pages: TinyRepository, name: str) -> str:
    """Write an instance that brings the whole tree of a repository."""
    root = Path(str(pages))
    paths = [path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts]
    row = {
        "instance_id": name,
        "problem_statement": TASK,
        "files": {path.relative_to(root).as_posix(): path.read_text() for path in paths},
        "hidden_tests": {"tests/test_hidden.py": HIDDEN},
    }
    return f"{json.dumps(row)}\n"


async def test_a_killed_evaluation_goes_on_with_the_very_run_that_was_under_way(
    turnout: Command, pages: TinyRepository
) -> None:
    """An arm may join later; the tests that grade are in every workspace from the start."""
    (turnout.folder / "tasks.jsonl").write_text(instance(pages, "right"))
    (turnout.folder / "fix.diff").write_text(DIFF)
    mine = f"mine=command:test -e tests/test_hidden.py && git apply {turnout.folder}/fix.diff"
    ask = ["eval", "run", "tasks.jsonl", "--json", "--mode", "visible", "--arm", "auto"]
    knows, reached = knowing({TASK: DIFF}), asyncio.Event()

    def script(request: RecordedRequest) -> Turn:
        if reached.is_set() or not any(each.get("tool_calls") for each in request.messages):
            return knows(request)
        reached.set()
        return replace(knows(request), delay=_SECONDS)

    async with ScriptedModelServer(script, models=["m"]) as server:
        evaluate = turnout.using(server.base_url)
        killed = await evaluate.start(*ask)
        async with asyncio.timeout(_SECONDS):
            await reached.wait()
        killed.kill()
        await killed.communicate()
        done = await evaluate(*ask, "--arm", mine)
        asked = [request.tool_names for request in server.requests]
    assert done.code == 0, done.err
    trials = {trial.arm: trial for trial in read_trials(turnout.folder / RESULTS)}
    for trial in trials.values():
        assert (trial.grade, trial.mode, trial.strict) == ("resolved", "visible", True)
        assert (trial.failed_before, trial.canary_failed) == (True, True)
    assert (trials["auto"].verdict, trials["auto"].models) == ("resolved", ("m",))
    # One that applies the fix, then the one that was held and is answered in the end.
    assert sum("apply_patch" in names for names in asked) == 3
    assert "[2/2] right" in done.err
    assert "mine runs its command on this machine" in done.err
    assert len(done.object["sections"]) == 1


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
