"""An evaluation: real command, real sandboxes, scripted model."""

import json
from pathlib import Path

from tests.acceptance.command import FIX, Command

from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.repositories import TinyRepository

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
        "problem_statement": "The first page is wrong.",
        "files": {path.relative_to(root).as_posix(): path.read_text() for path in paths},
        "hidden_tests": {"tests/test_hidden.py": hidden},
    }
    return f"{json.dumps(row)}\n"


async def test_hidden_tests_grade_what_the_run_made(
    turnout: Command, pages: TinyRepository
) -> None:
    """The same command again runs nothing and reports the same."""
    wrong = instance(pages, "wrong", HIDDEN.replace("[3, 4]", "[9]"))
    (turnout.folder / "tasks.jsonl").write_text(instance(pages, "right") + wrong)
    async with ScriptedModelServer(FIX * 2, models=["m"]) as server:
        evaluate = turnout.using(server.base_url)
        done = await evaluate("eval", "run", "tasks.jsonl", "--json")
        asked = len(server.requests)
        again = await evaluate("eval", "run", "tasks.jsonl", "--json")
        assert len(server.requests) == asked
    report = done.object
    assert done.code == 0, done.err
    assert [trial["grade"] for trial in report["trials"]] == ["resolved", "unresolved"]
    assert [trial["verdict"] for trial in report["trials"]] == ["resolved", "resolved"]
    assert report["resolved"] == 1
    assert "[1/2] right: resolved (answered, 6 steps" in done.err
    assert "m solved 1 of 2; routing goes by that now" in done.err
    assert "routing goes by" not in again.err
    assert again.object == report


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
