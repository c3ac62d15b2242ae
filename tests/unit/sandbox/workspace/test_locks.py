import asyncio

import pytest

from turnout.errors import UnfitError
from turnout.sandbox.workspace.locks import locked


async def test_a_lock_is_held_by_one_at_a_time(tmp_path):
    """Tasks that want the same lock come one after the other."""
    inside = 0

    async def work() -> None:
        nonlocal inside
        async with locked(tmp_path / "locks" / "x", timeout=10):
            inside += 1
            assert inside == 1
            await asyncio.sleep(0.005)
            inside -= 1

    await asyncio.gather(*(work() for _ in range(5)))


async def test_waiting_for_a_lock_ends(tmp_path):
    """Whoever waits too long is told what is held."""
    async with locked(tmp_path / "locks" / "busy", timeout=1):
        with pytest.raises(UnfitError, match="busy") as caught:
            async with locked(tmp_path / "locks" / "busy", timeout=0.01):
                pass
    assert caught.value.mend


async def test_a_lock_is_free_after_a_failure(tmp_path):
    """An error inside does not keep others out."""
    with pytest.raises(ValueError, match="inside"):
        async with locked(tmp_path / "locks" / "x", timeout=1):
            raise ValueError("inside")
    async with locked(tmp_path / "locks" / "x", timeout=0.01):
        pass
