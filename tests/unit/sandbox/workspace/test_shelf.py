import asyncio
import os
import time
from pathlib import Path

import pytest

from turnout.errors import UnfitError
from turnout.sandbox.workspace.shelf import Facts, Made, Shelf


class Told(Facts):
    """What is known of a folder of the tests."""

    number: int = 0


class Maker:
    """Makes folders and counts them."""

    def __init__(self, *, lacking: bool = False) -> None:
        self.count = 0
        self.lacking = lacking
        self.error: UnfitError | None = None

    async def __call__(self, folder: Path) -> Told:
        """Fill a folder."""
        if self.error is not None:
            raise self.error
        self.count += 1
        await asyncio.sleep(0)
        (folder / "content").write_text(str(self.count))
        return Told(number=self.count, lacking=self.lacking)


def grow_old(made: Made[Told]) -> None:
    """Let two hours pass."""
    past = time.time() - 7_200
    os.utime(made.folder / "facts.json", (past, past))


async def test_a_folder_is_made_once_for_each_key(tmp_path):
    """Concurrent callers get the same one, and so do later ones."""
    shelf, make = Shelf(tmp_path, "things", Told), Maker()
    made = await asyncio.gather(*(shelf.get("a", make) for _ in range(5)))
    assert {one.folder for one in made} == {made[0].folder}
    assert (await Shelf(tmp_path, "things", Told).get("a", make)) == made[0]
    assert (await shelf.get("b", make)).facts.number == 2
    assert (made[0].folder / "content").read_text() == "1"


async def test_what_was_lacking_is_made_anew_after_a_while(tmp_path):
    """The former folder stays for whoever stands on it."""
    shelf, make = Shelf(tmp_path, "things", Told), Maker(lacking=True)
    first = await shelf.get("a", make)
    assert await shelf.get("a", make) == first
    grow_old(first)
    make.lacking = False
    second = await shelf.get("a", make)
    assert (second.facts.number, second.facts.lacking) == (2, False)
    assert (first.folder / "content").read_text() == "1"
    grow_old(second)
    assert await shelf.get("a", make) == second


async def test_where_it_cannot_be_made_anew_the_former_one_counts(tmp_path):
    """And for another while, nobody tries again."""
    shelf, make = Shelf(tmp_path, "things", Told), Maker(lacking=True)
    first = await shelf.get("a", make)
    grow_old(first)
    make.error = UnfitError("no network")
    assert await shelf.get("a", make) == first
    make.error = None
    assert await shelf.get("a", make) == first
    assert make.count == 1


async def test_a_folder_that_is_not_finished_is_nothing(tmp_path):
    """A failure leaves no folder, and neither does one whose facts cannot be read."""
    shelf, make = Shelf(tmp_path, "things", Told), Maker()
    make.error = UnfitError("no")
    with pytest.raises(UnfitError, match="no"):
        await shelf.get("a", make)
    assert list((tmp_path / "things").iterdir()) == []
    make.error = None
    first = await shelf.get("a", make)
    (first.folder / "facts.json").write_text("{")
    assert (await shelf.get("a", make)).facts.number == 2
