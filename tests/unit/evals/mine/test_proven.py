"""Facts that are proven once for an evaluation, in scripted sandboxes."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.evals.mine.suites import BUGGY, FileSuite, history

from turnout.errors import ConfigError, ConflictError
from turnout.evals.instances.load import load_instances
from turnout.evals.instances.model import Instance
from turnout.evals.mine.prove import Prover
from turnout.evals.mine.proven import LeftOut, ProvenFile, prove_facts
from turnout.sandbox.base import Limits
from turnout.testing.sandbox import ScriptedDriver

ADD, OLD = "tests/test_calc.py::test_add", "tests/test_calc.py::test_old"

Prove = Callable[..., object]


async def facts(folder: Path, **more: object) -> Instance:
    """Return the instance that facts of one fix are read as."""
    place = folder / "calc"
    repository = history(place) if not place.exists() else None
    if repository is not None:
        row = {
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
            **more,
        }
        (folder / "facts.jsonl").write_text(json.dumps(row))
    (instance,) = await load_instances(folder / "facts.jsonl", repositories=folder)
    return instance


async def proven(
    instance: Instance, kept: ProvenFile, suite: FileSuite | None = None
) -> tuple[list[Instance | LeftOut], tuple[LeftOut, ...], ScriptedDriver]:
    """Prove an instance; return what was told, what was refuted, and the sandboxes."""
    driver, told = ScriptedDriver(BUGGY), []
    prover = Prover(driver, Limits(), seconds=9, run_tests=suite or FileSuite())
    with kept.alone():
        refuted = await prove_facts([instance], prover, kept, jobs=2, tell=told.append)
    return told, refuted, driver


async def test_the_tests_that_must_keep_passing_are_found_out_once(tmp_path: Path) -> None:
    """The row is the same row: results of it stay results of it."""
    instance = await facts(tmp_path)
    assert (instance.bare, instance.pass_to_pass, instance.counted) == (True, (), 1)
    path = tmp_path / "tasks.proven.jsonl"
    told, refuted, _ = await proven(instance, ProvenFile(path))
    whole = ProvenFile(path).whole(instance)
    assert [whole] == told
    assert refuted == ()
    assert isinstance(whole, Instance)
    assert (whole.bare, whole.pass_to_pass, whole.fail_to_pass) == (False, (OLD,), (ADD,))
    assert whole.digest == instance.digest
    assert whole.problem_statement.endswith(f"- {ADD}\n    AssertionError: assert {ADD}")
    again, _, driver = await proven(instance, ProvenFile(path))
    assert (again, driver.sandboxes) == ([], [])


async def test_facts_that_do_not_hold_here_leave_their_instance_out(tmp_path: Path) -> None:
    """With the reason, also the next time; a row that was changed is proven anew."""
    instance = await facts(tmp_path, pass_to_pass_count=7)
    path = tmp_path / "tasks.proven.jsonl"
    _, (refuted,), _ = await proven(instance, ProvenFile(path))
    assert refuted.why == (
        "what its tests show is not what the facts say (1 other tests pass, the facts say 7)"
    )
    assert ProvenFile(path).whole(instance) == refuted
    assert ProvenFile(path).whole(replace(instance, digest="other")) is None


async def test_what_may_come_out_otherwise_is_tried_again(tmp_path: Path) -> None:
    """A machine that was too busy is no reason to leave a task out for ever."""
    instance = await facts(tmp_path)
    path = tmp_path / "tasks.proven.jsonl"
    suite = FileSuite(ended=152)
    _, (refuted,), _ = await proven(instance, ProvenFile(path), suite)
    assert refuted.why == "its tests take too long (over 9 s)"
    assert ProvenFile(path).whole(instance) is None


async def test_a_row_that_names_its_tests_or_its_words_keeps_them(tmp_path: Path) -> None:
    """Only what facts do not say is found out."""
    other = tmp_path / "other"
    other.mkdir()
    named = await facts(other, PASS_TO_PASS=[OLD])
    assert named.bare is False
    told = await facts(tmp_path, problem_statement="Sums are wrong.")
    path = tmp_path / "tasks.proven.jsonl"
    await proven(told, ProvenFile(path))
    whole = ProvenFile(path).whole(told)
    assert isinstance(whole, Instance)
    assert whole.problem_statement == "Sums are wrong."


async def test_a_crash_costs_no_more_than_the_line_it_came_in(tmp_path: Path) -> None:
    """What is no proof is named; nobody else proves into the file meanwhile."""
    instance = await facts(tmp_path)
    path = tmp_path / "tasks.proven.jsonl"
    path.write_text('{"instance_id": "calc-1", "inst')
    kept = ProvenFile(path)
    await proven(instance, kept)
    assert len(path.read_text().splitlines()) == 1
    with kept.alone(), pytest.raises(ConflictError), ProvenFile(path).alone():
        pass
    path.write_text('{"a": 1}\n')
    with pytest.raises(ConfigError, match=r"line 1 is no proof"):
        ProvenFile(path)
