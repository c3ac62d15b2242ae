"""Facts that are proven and made whole, in scripted sandboxes."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.unit.evals.mine.suites import BUGGY, FileSuite, history

from turnout.evals.instances.load import load_instances
from turnout.evals.mine.filling import Facts, fill
from turnout.evals.mine.mining import Told
from turnout.evals.mine.output import MinedFile
from turnout.evals.mine.prove import Prover
from turnout.sandbox.base import Limits
from turnout.testing.repositories import TinyRepository
from turnout.testing.sandbox import ScriptedDriver

ADD, OLD = "tests/test_calc.py::test_add", "tests/test_calc.py::test_old"


async def filled(
    folder: Path,
    repository: TinyRepository | None = None,
    more: Mapping[str, object] | None = None,
) -> tuple[MinedFile, list[Told], ScriptedDriver]:
    """Fill in the facts of one fix."""
    repository = repository or history(folder / "calc")
    row: Mapping[str, object] = {
        "instance_id": "calc-1",
        "repo": "calc",
        "base_commit": repository.git("rev-parse", "HEAD^"),
        "fix_commit": repository.head,
        "title": "Fix add",
        "src_files": ["calc.py"],
        "test_files": ["tests/test_calc.py"],
        "test_args": ["tests"],
        "FAIL_TO_PASS": [ADD],
        "pass_to_pass_count": 1,
        "difficulty": "1",
        "ref": "kept",
        **(more or {}),
    }
    path = folder / "facts.jsonl"
    path.write_text(json.dumps(row))
    (instance,) = await load_instances(path, repositories=folder)
    out = MinedFile(folder / "tasks.jsonl", asked="a")
    told: list[Told] = []
    driver = ScriptedDriver(BUGGY)
    prover = Prover(driver, Limits(), seconds=9, run_tests=FileSuite())
    await fill(
        [Facts(json.loads(path.read_text()), instance)], prover, out, jobs=2, tell=told.append
    )
    return out, told, driver


async def test_a_row_is_whole_once_it_was_proven(tmp_path: Path) -> None:
    """It needs the facts no more; what else they said is still there."""
    out, told, _ = await filled(tmp_path)
    assert [each.verdict for each in told] == ["1"]
    (row,) = (json.loads(line) for line in out.path.read_text().splitlines())
    assert row["ref"] == "kept"
    (instance,) = await load_instances(out.path)
    assert instance.pass_to_pass == (OLD,)
    assert instance.fail_to_pass == (ADD,)
    assert instance.problem_statement.endswith(f"- {ADD}\n    AssertionError: assert {ADD}")
    assert instance.test_command == "python -m pytest -q -o addopts= tests"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"pass_to_pass_count": 2}, "1 other tests pass, the facts say 2"),
        ({"FAIL_TO_PASS": [ADD, "t::x"]}, "not mended here: t::x"),
    ],
)
async def test_facts_that_are_not_so_are_dropped(
    tmp_path: Path, more: dict[str, object], says: str
) -> None:
    """With what was found in their place."""
    out, _, _ = await filled(tmp_path, more=more)
    assert out.kept == 0
    assert json.loads(out.dropped_path.read_text())["detail"] == says


async def test_a_test_may_be_called_otherwise_here(tmp_path: Path) -> None:
    """Versions of pytest name parameters differently: the row has the names of this one."""
    repository = history(tmp_path / "calc", "test_add[p0]")
    out, _, _ = await filled(tmp_path, repository, {"FAIL_TO_PASS": [f"{ADD}[long value]"]})
    (instance,) = await load_instances(out.path)
    assert instance.fail_to_pass == (f"{ADD}[p0]",)


async def test_what_was_decided_is_not_proven_again(tmp_path: Path) -> None:
    """The same again starts no sandbox."""
    repository = history(tmp_path / "calc")
    await filled(tmp_path, repository)
    out, told, driver = await filled(tmp_path, repository)
    assert (told, driver.sandboxes, out.kept) == ([], [], 1)
