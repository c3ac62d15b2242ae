"""Mining: real command, real sandboxes, a history of three commits."""

import json
from pathlib import Path

from tests.acceptance.command import Command

from turnout.testing.repositories import PAGINATION_FIXED, PAGINATION_TEST, TinyRepository


def fixed(pages: TinyRepository) -> str:
    """Fix the bug with the test that shows it, after a change that nothing tests."""
    path = Path(str(pages)) / "tests" / "test_pages.py"
    whole = path.read_text()
    name = PAGINATION_TEST.rpartition("::")[2]
    pages.commit("Wait with a test", {"tests/test_pages.py": whole.replace(name, "wait")})
    files = {"pages.py": PAGINATION_FIXED, "tests/test_pages.py": whole}
    return pages.commit("Fix the first page (#3)", files)


async def test_a_fix_in_the_history_becomes_a_task(turnout: Command, pages: TinyRepository) -> None:
    """The same again has nothing left to do, and a run takes what was written."""
    fix = fixed(pages)
    mine = ("eval", "mine", str(pages), "-o", "tasks.jsonl", "--times", "1", "--json")
    done = await turnout(*mine)
    assert done.code == 0, done.err
    assert done.object["sizes"] == {"1": 1}
    assert done.object["dropped"] == {"not_a_fix": 1}
    assert f"kept {fix[:10]} Fix the first page" in done.err
    (line,) = (turnout.folder / "tasks.jsonl").read_text().splitlines()
    row = json.loads(line)
    assert row["FAIL_TO_PASS"] == [PAGINATION_TEST]
    assert len(row["PASS_TO_PASS"]) == 2
    assert "assert [3, 4] == [1, 2]" in row["problem_statement"]
    again = await turnout(*mine)
    assert again.object["rows"] == 1
    assert "kept" not in again.err


async def test_what_cannot_be_mined_is_said(turnout: Command, pages: TinyRepository) -> None:
    """A history without a fix is no error; a revision that is not there is."""
    done = await turnout("eval", "mine", str(pages), "-o", "tasks.jsonl")
    assert done.code == 1
    assert "0 rows in tasks.jsonl" in done.out
    done = await turnout("eval", "mine", str(pages), "-o", "tasks.jsonl", "--rev", "v9")
    assert done.code == 4
    assert "no commit 'v9'" in done.err
