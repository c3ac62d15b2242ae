"""How far mining says that it is."""

import asyncio
from pathlib import Path

from tests.unit.evals.mine.test_mining import candidate

from turnout.cli.eval.progress import Progress
from turnout.core.clock import SystemClock
from turnout.core.json import JsonObject
from turnout.evals.mine.candidates import Candidate
from turnout.evals.mine.mining import Told
from turnout.evals.mine.output import MinedFile
from turnout.evals.mine.reasons import Dropped
from turnout.testing.clock import FrozenClock


class Desk:
    """Progress into a list of lines."""

    def __init__(self, folder: Path, wanted: int | None = None) -> None:
        self.clock = FrozenClock()
        self.lines: list[str] = []
        self.out = MinedFile(folder / "t.jsonl", asked="a")
        self.progress = Progress(self.out, self.lines.append, self.clock, wanted, 100)

    def keep(self, number: int) -> None:
        """Keep a row."""
        row: JsonObject = {"instance_id": f"t-{number}", "fix_commit": "", "difficulty": "1"}
        self.out.keep(row)
        self.progress.tell(Told(f"{number:040}", "Fix it", "1"))


def found(number: int) -> Candidate:
    """Return a candidate."""
    made = candidate(number).found
    assert isinstance(made, Candidate)
    return made


def test_each_candidate_is_named_when_it_is_tried_and_when_it_is_dropped(tmp_path: Path) -> None:
    """What most commits are is only counted."""
    desk = Desk(tmp_path)
    desk.progress.began(found(0))
    desk.progress.tell(Told("a" * 40, "Fix 0", Dropped("flaky")))
    desk.progress.ended()
    desk.progress.tell(Told("b" * 40, "Add x", Dropped("not_a_fix")))
    assert desk.lines == [
        "trying 0000000001 Fix 0",
        "left aaaaaaaaaa Fix 0: its tests pass and fail as it comes",
    ]
    assert desk.progress.line() == (
        "2 of 100 commits looked at, 1 candidate tried (0 under way), 0 rows; about 1 min left"
    )


def test_what_is_left_is_told_by_the_commits_or_by_the_rows_that_are_wanted(tmp_path: Path) -> None:
    """Whichever is nearer to its end."""
    desk = Desk(tmp_path, wanted=4)
    assert "left" not in desk.progress.line()
    desk.clock.advance(600.0)
    desk.keep(1)
    assert desk.progress.line().endswith("1 row; about 30 min left")
    for number in range(2, 5):
        desk.keep(number)
    assert desk.progress.line().endswith("4 rows; about 1 min left")


async def test_it_is_said_though_nothing_happens(tmp_path: Path) -> None:
    """With a history that holds no fix nobody else would know that it lives."""

    class Quick(SystemClock):
        async def sleep(self, seconds: float) -> None:
            assert seconds == 30.0
            await asyncio.sleep(0)

    desk = Desk(tmp_path)
    desk.progress.clock = Quick()
    beat = asyncio.create_task(desk.progress.go_on())
    for _ in range(9):
        await asyncio.sleep(0)
    beat.cancel()
    assert len(desk.lines) > 2
    assert set(desk.lines) == {
        "0 of 100 commits looked at, 0 candidates tried (0 under way), 0 rows"
    }
