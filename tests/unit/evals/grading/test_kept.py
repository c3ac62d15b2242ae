"""What is found out once about an instance, kept for whoever comes after this process."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.evals.grading.suites import FILES, INSTANCE, RIGHT, ToySuite

from turnout.evals.grading.before import Before
from turnout.evals.grading.grade import Grader
from turnout.evals.grading.kept import BeforesFolder
from turnout.evals.grading.suite import Way
from turnout.sandbox.base import BaseSpec, Limits
from turnout.testing.sandbox import ScriptedDriver

BASE = BaseSpec("/srv/repo", "abc")
FOUND = Before(
    failed_before=True,
    command="pytest",
    way=Way(("a",), "named"),
    tests={"t.bin": b"\xff\x00", "gone.py": None},
    must=("t::a",),
    keep=("t::b",),
    standing={"s.py": b"x"},
    passed=frozenset({"t::b"}),
    seconds=1.5,
)


@pytest.fixture
def folder(tmp_path: Path) -> BeforesFolder:
    """Return where such things are kept."""
    return BeforesFolder(tmp_path, under="limits")


def test_what_is_kept_is_the_same_again(folder: BeforesFolder, tmp_path: Path) -> None:
    """Whatever bytes files of tests hold; in another process as well."""
    folder.save(INSTANCE, "base", FOUND)
    assert BeforesFolder(tmp_path, under="limits").load(INSTANCE, "base") == FOUND


def test_it_is_of_that_instance_on_that_base_under_those_limits_alone(
    folder: BeforesFolder, tmp_path: Path
) -> None:
    """What any of these is changed in is looked at anew."""
    folder.save(INSTANCE, "base", FOUND)
    assert folder.load(INSTANCE, "other") is None
    assert BeforesFolder(tmp_path, under="more").load(INSTANCE, "base") is None
    for changed in (
        replace(INSTANCE, digest="other"),
        replace(INSTANCE, fail_to_pass=("t::z",)),
        replace(INSTANCE, pass_to_pass=("t::z",)),
        replace(INSTANCE, test_command="pytest -x"),
    ):
        assert folder.load(changed, "base") is None


def test_what_nothing_can_be_judged_by_is_not_kept(folder: BeforesFolder) -> None:
    """A machine that was too busy then may not be so the next time."""
    folder.save(INSTANCE, "base", replace(FOUND, fault="The tests do not end."))
    assert folder.load(INSTANCE, "base") is None


def test_a_file_that_cannot_be_read_is_as_none(folder: BeforesFolder, tmp_path: Path) -> None:
    """A disk that was full has left it so, say."""
    folder.save(INSTANCE, "base", FOUND)
    (path,) = (tmp_path / "befores").iterdir()
    path.write_bytes(path.read_bytes()[:20])
    assert folder.load(INSTANCE, "base") is None


async def test_a_grader_that_comes_again_runs_the_tests_with_the_patch_alone(
    folder: BeforesFolder,
) -> None:
    """The grade is the same."""
    runs, grades = [], []
    for _ in range(2):
        suite = ToySuite()
        walls = ScriptedDriver(FILES)
        grader = Grader(walls, Limits(), test_timeout=9, run_tests=suite, keeper=folder)
        grade = await grader.grade(INSTANCE, BASE, RIGHT)
        grades.append(replace(grade, seconds=0.0))
        runs.append(len(suite.lines))
    assert grades[0] == grades[1]
    assert (grades[0].name, runs) == ("resolved", [2, 1])
