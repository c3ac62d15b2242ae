"""Facts of a fix, made whole from a clone."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from turnout.errors import ConfigError
from turnout.evals.instances.load import load_instances
from turnout.evals.instances.mined import statement, whole_suite
from turnout.evals.instances.model import Instance
from turnout.testing.repositories import TinyRepository

BEFORE: Mapping[str, str | bytes] = {
    "calc.py": "bug\n",
    "tests/test_calc.py": "old\n",
    "tests/test_gone.py": "gone\n",
}
AFTER: Mapping[str, str | bytes] = {
    "calc.py": "fix\n",
    "tests/test_calc.py": "new\n",
    "tests/data.bin": b"\0\1",
    "NEWS": "x",
}


def facts(folder: Path, **more: object) -> dict[str, Any]:
    """Make a clone with a fix beneath a folder and return the facts of it."""
    repository = TinyRepository(folder / "o__n", BEFORE)
    base = repository.head
    fix = repository.commit("Fix it", AFTER, remove=["tests/test_gone.py"])
    return {
        "instance_id": "o__n-1",
        "repo": "o/n",
        "base_commit": base,
        "fix_commit": fix,
        "title": "Fix it",
        "src_files": ["calc.py"],
        "test_files": ["tests/test_calc.py", "tests/test_gone.py", "tests/data.bin"],
        "test_args": ["tests", "test_calc.py"],
        "test_opts": [],
        "FAIL_TO_PASS": ["tests/test_calc.py::test_a", "t::b", "t::c"],
        "python_requirements": [],
        "difficulty": "1",
        "spec": "needs-tests",
        "pass_to_pass_count": 7,
        "extra_files": [],
        **more,
    }


async def loaded(folder: Path, row: dict[str, Any]) -> Instance:
    """Read one row, with the clone beneath the same folder."""
    path = folder / "mined.jsonl"
    path.write_text(json.dumps(row))
    (instance,) = await load_instances(path, repositories=folder)
    return instance


async def test_patch_tests_and_task_come_from_the_fix(tmp_path: Path) -> None:
    """Tests as the fix leaves them; those that are no text as a patch, and no path that is not."""
    row = facts(tmp_path)
    instance = await loaded(tmp_path, row)
    assert "+fix" in instance.patch
    assert "NEWS" not in instance.patch
    assert instance.hidden_tests == {"tests/test_calc.py": "new\n", "tests/test_gone.py": None}
    assert "b/tests/data.bin" in instance.test_patch
    assert "test_calc" not in instance.test_patch
    assert instance.test_command == "python -m pytest -q -o addopts= tests"
    assert instance.base_commit == row["base_commit"]
    assert instance.problem_statement == (
        "Fix it\n\nWhat fails now and must pass:\n- tests/test_calc.py::test_a\n- t::b"
    )
    assert (instance.requirements, instance.difficulty, instance.spec) == ((), "1", "needs-tests")


async def test_the_clone_is_not_touched(tmp_path: Path) -> None:
    """What is checked out there is the user's."""
    row = facts(tmp_path)
    (tmp_path / "o__n" / "calc.py").write_text("mine\n")
    await loaded(tmp_path, row)
    assert (tmp_path / "o__n" / "calc.py").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"fix_commit": "f" * 40}, "fix_commit: "),
        ({"base_commit": "--output=/tmp/x"}, "base_commit: "),
        ({"src_files": ["other.py"]}, "src_files: the fix changes none"),
        ({"repo": "o/other"}, "repo: no clone of o/other"),
        ({"repo": "https://host.example/n.git"}, "repo: https://host.example/n.git is on another"),
    ],
)
async def test_facts_that_do_not_fit_the_clone_are_errors(
    tmp_path: Path, more: dict[str, object], says: str
) -> None:
    """With the line that they are on."""
    row = facts(tmp_path, **more)
    with pytest.raises(ConfigError) as caught:
        await loaded(tmp_path, row)
    assert f"{tmp_path}/mined.jsonl, line 1: " in str(caught.value)
    assert says in str(caught.value)


def test_a_task_says_what_two_tests_fail_with() -> None:
    """On one line each, cut where it is long."""
    errors = {"a": "x\n" + "y" * 400}
    said = statement(" Fix it ", ["a", "b", "c"], errors).splitlines()
    assert said[:4] == ["Fix it", "", "What fails now and must pass:", "- a"]
    assert said[4] == f"    x {'y' * 298}…"
    assert said[5:] == ["- b"]


def test_names_of_tests_are_quoted_and_plugins_are_loaded_by_name() -> None:
    """Where options name plugins no other is loaded, so that none is loaded twice."""
    assert whole_suite(["a b", "$(c)"]) == "python -m pytest -q -o addopts= 'a b' '$(c)'"
    assert whole_suite(["tests"], ["-p", "some.plugin"]) == (
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python -m pytest -q -o addopts= "
        "-p turnout_report -p some.plugin tests"
    )
