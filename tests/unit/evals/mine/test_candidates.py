"""Finding commits that may be fixes, by reading history alone."""

from contextlib import aclosing
from pathlib import Path

from tests.unit.evals.mine.suites import BUGGY, FIXED, history

from turnout.evals.instances.clone import Clone
from turnout.evals.mine.candidates import Candidate, Looked, Rules, look_through, suite_paths
from turnout.evals.mine.reasons import Dropped
from turnout.testing.repositories import TinyRepository


async def looked(repository: TinyRepository, rules: Rules | None = None) -> list[Looked]:
    """Look through all of a history."""
    clone = await Clone.open(str(repository))
    start = await clone.commit_of("HEAD")
    return [each async for each in look_through(clone, start, rules or Rules())]


async def reason(repository: TinyRepository, rules: Rules | None = None) -> str:
    """Return why the newest commit is left out; empty where it is not."""
    clone = await Clone.open(str(repository))
    async with aclosing(look_through(clone, repository.head, rules or Rules())) as commits:
        found = (await anext(commits)).found
    return found.reason if isinstance(found, Dropped) else ""


async def test_a_small_fix_with_a_test_is_a_candidate(tmp_path: Path) -> None:
    """With its source and its tests apart; the first commit of all has nothing to compare with."""
    (found,) = await looked(history(tmp_path / "r"))
    fix = found.found
    assert isinstance(fix, Candidate)
    assert fix.title == "Fix add, which subtracts"
    assert "It was a typo." in fix.hints
    assert (fix.sources, fix.lines, fix.difficulty, fix.kind) == (("calc.py",), 1, "1", "commit")
    assert "+    return a + b" in fix.patch
    assert "test_calc" not in fix.patch
    assert fix.tests.texts == {"tests/test_calc.py": FIXED["tests/test_calc.py"]}
    assert "+# test_add" in fix.test_patch


async def test_what_is_no_fix_has_a_reason(tmp_path: Path) -> None:
    """The first that holds, in the order in which it costs to find out."""
    repository = TinyRepository(tmp_path / "r", BUGGY)
    calc, tests = FIXED["calc.py"], FIXED["tests/test_calc.py"]
    repository.commit("Add a logo", {"logo.txt": "x"})
    assert await reason(repository) == "not_a_fix"
    repository.commit("Fix the words", {"README.md": "more\n"})
    assert await reason(repository) == "no_source"
    repository.commit("Fix add", {"calc.py": calc})
    assert await reason(repository) == "no_test"
    repository.commit("Fix a comment", {"calc.py": f"{calc}# c\n", "tests/test_calc.py": tests})
    assert await reason(repository) == "no_code"
    more = {"calc.py": calc * 9, "tests/test_calc.py": f"{tests}#\n"}
    repository.commit("Fix more", more)
    assert await reason(repository, Rules(max_lines=3)) == "too_large"
    assert await reason(repository) == ""
    many = {f"m{n}.py": "x = 1\n" for n in range(7)}
    repository.commit("Fix many", {**many, "tests/test_m.py": "#\n"})
    assert await reason(repository) == "many_files"
    (repository.path / "link").symlink_to("/etc/passwd")
    repository.commit("Fix links", {"calc.py": "y = 1\n", "tests/test_l.py": "#\n"})
    assert await reason(repository) == "odd_files"


async def test_titles_count_only_if_they_are_asked_for(tmp_path: Path) -> None:
    """Tests show a fix whatever it is called."""
    repository = TinyRepository(tmp_path / "r", BUGGY)
    repository.commit("Addition", FIXED)
    assert await reason(repository) == "not_a_fix"
    assert await reason(repository, Rules(any_title=True)) == ""


async def test_a_merge_stands_for_what_it_brings_in(tmp_path: Path) -> None:
    """Its inner commits are not looked at by themselves."""
    repository = TinyRepository(tmp_path / "r", BUGGY)
    repository.branch("side")
    repository.commit("Fix half", {"calc.py": FIXED["calc.py"]})
    repository.commit("Fix add", {"tests/test_calc.py": FIXED["tests/test_calc.py"]})
    repository.git("switch", "--quiet", "main")
    repository.git("merge", "--quiet", "--no-ff", "--message", "Merge pull request #1", "side")
    (found,) = await looked(repository)
    assert isinstance(found.found, Candidate)
    assert (found.found.kind, found.found.title) == ("merge", "Fix add")


async def test_data_of_the_program_goes_with_the_fix_and_settings_do_not(tmp_path: Path) -> None:
    """What controls tests is the grader's to drop, so a proof must not rest on it."""
    files = {**FIXED, "calc/table.json": "{}", "pyproject.toml": "", "docs/conf.py": "x = 1\n"}
    repository = TinyRepository(tmp_path / "r", BUGGY)
    repository.commit("Fix add", {**files, "tests/data/new.bin": b"\0\1"})
    (found,) = await looked(repository)
    fix = found.found
    assert isinstance(fix, Candidate)
    assert [name for name in files if f"b/{name}" in fix.patch] == ["calc.py", "calc/table.json"]
    assert "tests/data/new.bin" in fix.tests.patch
    assert fix.test_files == ("tests/test_calc.py",)


async def test_a_fix_may_change_the_data_of_tests_alone(tmp_path: Path) -> None:
    """Then all tests of that folder are run."""
    repository = TinyRepository(tmp_path / "r", BUGGY)
    repository.commit("Fix add", {"calc.py": FIXED["calc.py"], "tests/fixtures/sums.md": "2\n"})
    (found,) = await looked(repository)
    assert isinstance(found.found, Candidate)
    assert (found.found.test_files, found.found.suite) == ((), ("tests",))
    repository.commit("Fix sub", {"calc.py": "x = 2\n", "tests/conftest.py": "y = 1\n"})
    assert await reason(repository) == "no_test"


async def test_known_commits_are_passed_over(tmp_path: Path) -> None:
    """So that a second go takes up where the first one ended."""
    repository = history(tmp_path / "r")
    clone = await Clone.open(str(repository))
    known = frozenset({repository.head})
    assert [e async for e in look_through(clone, repository.head, Rules(), known=known)] == []


def test_the_suite_is_the_folders_of_the_tests() -> None:
    """A file that pytest does not find by its name is named as well."""
    assert suite_paths(["tests/a/test_x.py", "tests/test_y.py"]) == ("tests",)
    assert suite_paths(["test_schema.py"]) == ("test_schema.py",)
    assert suite_paths(["pkg/tests/tests.py"]) == ("pkg/tests", "pkg/tests/tests.py")
    assert suite_paths(["pkg/test_x.py"]) == ("pkg",)
