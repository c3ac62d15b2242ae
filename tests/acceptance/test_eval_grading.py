"""Checking a set, and grading kept patches again: real commands, real sandboxes, no model."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.command import DIFF, Command

from turnout.evals.instances.load import load_instances
from turnout.testing.repositories import TinyRepository

GOLD = f"diff --git a/pages.py b/pages.py\n{DIFF}"
HIDDEN = """\
from pages import page


def test_the_second_page():
    assert page([1, 2, 3, 4, 5], 2, 2) == {expected}
"""


def instance(pages: TinyRepository, name: str, expected: str = "[3, 4]") -> dict[str, Any]:
    """Return an instance that brings its tree and the known fix."""
    root = Path(str(pages))
    paths = [path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts]
    return {
        "instance_id": name,
        "problem_statement": "The first page is wrong.",
        "files": {path.relative_to(root).as_posix(): path.read_text() for path in paths},
        "hidden_tests": {"tests/test_hidden.py": HIDDEN.format(expected=expected)},
        "FAIL_TO_PASS": ["tests/test_hidden.py::test_the_second_page"],
        "patch": GOLD,
        "python_requirements": [],
    }


@pytest.mark.cheats
async def test_a_set_is_checked_before_anything_is_measured(
    turnout: Command, pages: TinyRepository
) -> None:
    """What was checked is not checked again; what is not sound is said to be so."""
    rows = [instance(pages, "right"), instance(pages, "wrong", "[9]")]
    (turnout.folder / "tasks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    done = await turnout("eval", "check", "tasks.jsonl", "--json")
    assert done.code == 1, done.err
    assert [row["sound"] for row in done.object["rows"]] == [True, False]
    assert [row["gold"] for row in done.object["rows"]] == ["resolved", "unresolved"]
    assert "wrong: NOT SOUND. The known fix is unresolved: 1 of 1 do not pass" in done.err
    again = await turnout("eval", "check", "tasks.jsonl", "--only", "right")
    assert (again.code, again.out) == (0, "1 of 1 instance sound; see tasks.health.jsonl\n")
    assert "1 instance checked before" in again.err


@pytest.mark.cheats
async def test_kept_patches_are_graded_again_without_any_model(
    turnout: Command, pages: TinyRepository
) -> None:
    """The new grade stands for the old one, which stays in the file."""
    tasks = turnout.folder / "tasks.jsonl"
    tasks.write_text(f"{json.dumps(instance(pages, 'right'))}\n")
    (row,) = await load_instances(tasks)
    old = {
        "schema": 1,
        "instance_id": "right",
        "instance_digest": row.digest,
        "grade": "unresolved",
        "outcome": "answered",
        "diff": GOLD,
    }
    results = turnout.folder / "old.results.jsonl"
    results.write_text(f"{json.dumps(old)}\n")
    done = await turnout("eval", "regrade", results.name, "--tasks", "tasks.jsonl", "--json")
    assert done.code == 0, done.err
    (changed,) = done.object["changed"]
    assert (changed["old"], changed["new"]) == ("unresolved", "resolved")
    newest = json.loads(results.read_text().splitlines()[-1])
    assert (newest["grade"], newest["canary_failed"], newest["bent_failed"]) == (
        ("resolved", True, True)
    )
