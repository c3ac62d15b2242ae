"""Diffs are read once, one at a time, and beside everything else."""

import asyncio
import threading
from collections.abc import Sequence

import pytest
from tests.unit.web.console.runs.told import END
from tests.unit.web.console.seen import Console

from turnout.errors import GatewayError
from turnout.web.console.runs.diff.keeping import Diffs
from turnout.web.console.runs.diff.reading import DiffFile, read_diff

ONE = b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n"


class Read:
    """Reads diffs, and counts how often."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, diff: bytes) -> Sequence[DiffFile]:
        """Read one."""
        self.times += 1
        return read_diff(diff)


def many(number: int) -> bytes:
    """Return a diff of its own."""
    return ONE.replace(b"+y", b"+%d" % number)


async def test_a_diff_is_read_once_however_often_it_is_shown() -> None:
    """Each of its files, too."""
    read = Read()
    diffs = Diffs(read)
    for _ in range(5):
        assert await diffs.work(ONE, len) == 1
    assert read.times == 1


async def test_those_that_were_looked_at_last_are_kept() -> None:
    """As many as have so many lines together, and one in any case."""
    read = Read()
    diffs = Diffs(read, most_lines=4)
    for number in (1, 2, 1, 2):
        await diffs.work(many(number), len)
    assert read.times == 2
    await diffs.work(many(3), len)
    await diffs.work(many(2), len)
    assert read.times == 3
    await diffs.work(many(1), len)
    assert read.times == 4
    tiny = Diffs(read, most_lines=1)
    for _ in range(2):
        await tiny.work(ONE, len)
    assert read.times == 5


async def test_the_loop_goes_on_while_a_diff_is_worked_on_and_no_other_is() -> None:
    """Others wait for their turn; where too many do, one more is told to come back."""
    diffs = Diffs(most_waiting=2)
    begun, go_on = threading.Event(), threading.Event()
    at_work: list[int] = []

    def make(files: Sequence[DiffFile]) -> int:
        at_work.append(len(files))
        begun.set()
        assert go_on.wait(20)
        return len(at_work)

    first, second = (asyncio.create_task(diffs.work(ONE, make)) for _ in range(2))
    assert await asyncio.to_thread(begun.wait, 20)
    with pytest.raises(GatewayError, match="Too many diffs") as refused:
        await diffs.work(ONE, len)
    assert (refused.value.status, refused.value.retry_after) == (503, 2)
    assert len(at_work) == 1
    go_on.set()
    assert await asyncio.gather(first, second) == [1, 2]
    assert await diffs.work(ONE, len) == 1


async def test_a_page_of_a_diff_is_made_of_what_is_kept() -> None:
    """A file of it that is asked for by itself costs no reading of the others."""
    read = Read()
    console = Console(diffs=Diffs(read))
    run_id = await console.service.order()
    await console.service.begun(run_id, *END)
    person = console.person()
    for path in ("/diff", "/diff?file=0", "/diff?file=1", "/diff?view=unified"):
        assert person.get(f"/runs/{run_id}{path}").status_code == 200
    assert read.times == 1
