"""Mining by the command, in real sandboxes: a history of three commits, one of them a fix."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from turnout.cli.eval.mine import mine
from turnout.errors import RepositoryError, UsageError
from turnout.testing.repositories import (
    PAGINATION_FIXED,
    PAGINATION_TEST,
    TinyRepository,
    buggy_pagination,
)


@pytest.fixture
def pages(tmp_path: Path, sandbox_state: Path, monkeypatch: pytest.MonkeyPatch) -> TinyRepository:
    """Make a repository with a bug; commands use the state folder of all tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TURNOUT_HOME", str(sandbox_state))
    return buggy_pagination(tmp_path / "pages")


def fixed(pages: TinyRepository) -> str:
    """Fix the bug with the test that shows it, after a change that nothing tests."""
    whole = (pages.path / "tests" / "test_pages.py").read_text()
    name = PAGINATION_TEST.rpartition("::")[2]
    pages.commit("Wait with a test", {"tests/test_pages.py": whole.replace(name, "wait")})
    files = {"pages.py": PAGINATION_FIXED, "tests/test_pages.py": whole}
    return pages.commit("Fix the first page (#3)", files)


def mined(*words: str) -> Result:
    """Run the command to its end."""
    done = CliRunner().invoke(mine, [*words, "--json"], standalone_mode=False)
    if isinstance(done.exception, Exception):
        raise done.exception
    return done


def test_a_fix_in_the_history_becomes_a_task(pages: TinyRepository) -> None:
    """Its tests were seen to fail and to pass; the same again has nothing left to do."""
    fix = fixed(pages)
    words = (str(pages), "-o", "tasks.jsonl", "--times", "1")
    done = mined(*words)
    assert done.return_value == 0
    assert json.loads(done.stdout)["sizes"] == {"1": 1}
    assert json.loads(done.stdout)["dropped"] == {"not_a_fix": 1}
    assert f"kept {fix[:10]} Fix the first page" in done.stderr
    row = json.loads(Path("tasks.jsonl").read_text())
    assert row["FAIL_TO_PASS"] == [PAGINATION_TEST]
    assert len(row["PASS_TO_PASS"]) == 2
    assert "assert [3, 4] == [1, 2]" in row["problem_statement"]
    again = mined(*words)
    assert json.loads(again.stdout)["rows"] == 1
    assert again.stderr == "3 commits of pages, 1 commit decided before\n"


def test_what_cannot_be_mined_is_said(pages: TinyRepository) -> None:
    """A history without a fix is no error; a revision or a file that cannot be read is."""
    done = mined(str(pages), "-o", "tasks.jsonl")
    assert done.return_value == 1
    assert json.loads(done.stdout)["rows"] == 0
    with pytest.raises(RepositoryError, match="no commit 'v9'"):
        mined(str(pages), "-o", "tasks.jsonl", "--rev", "v9")
    facts = Path("facts.jsonl")
    facts.write_text("{}\n")
    with pytest.raises(UsageError, match="is what is read"):
        mined(str(facts), "-o", "facts.jsonl")
