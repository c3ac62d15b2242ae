import asyncio

import pytest

from turnout.errors import UnfitError
from turnout.sandbox.rooms.disk import within_disk


async def test_work_that_stays_within_bounds_is_passed_through(tmp_path):
    """So is what it raises."""

    async def work(value: int) -> int:
        if value < 0:
            raise ValueError("inside")
        return value

    assert await within_disk(tmp_path, work(3)) == 3
    with pytest.raises(ValueError, match="inside"):
        await within_disk(tmp_path, work(-1))


async def test_work_ends_with_whoever_waits_for_it(tmp_path):
    """Cancelled outside, it comes to its own end first."""
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    task = asyncio.create_task(within_disk(tmp_path, work()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_a_disk_that_fills_up_ends_the_work(small_disk):
    """The error names the folder and what to do."""

    async def work() -> None:
        with (small_disk / "fill").open("wb") as file:
            while True:
                await asyncio.to_thread(file.write, b"x" * (1 << 18))
                await asyncio.sleep(0.15)

    with pytest.raises(UnfitError, match="full") as caught:
        await within_disk(small_disk, work())
    assert str(small_disk) in str(caught.value)
    assert caught.value.mend


async def test_a_disk_without_room_for_more_files_ends_the_work(small_disk):
    """Files without contents fill one as well."""

    async def work() -> None:
        for number in range(10_000):
            (small_disk / str(number)).touch()
            await asyncio.sleep(0.01)

    with pytest.raises(UnfitError, match="full"):
        await within_disk(small_disk, work())
    assert len(list(small_disk.iterdir())) < 395
