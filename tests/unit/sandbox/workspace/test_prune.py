import asyncio
import os
import time
from pathlib import Path

import pytest

from turnout.sandbox.workspace.building import building
from turnout.sandbox.workspace.folders import traversable
from turnout.sandbox.workspace.locks import locked
from turnout.sandbox.workspace.prune import prune
from turnout.sandbox.workspace.use import give_up, touched

DAY = 86_400


def kept(state: Path, name: str, *, days: float, size: int = 1) -> Path:
    """Make something that was used so many days ago."""
    path = state / name
    if path.suffix == ".json":
        traversable(path.parent)
        path.write_bytes(b"x" * size)
    else:
        traversable(path.parent)
        (path / "deep").mkdir(parents=True)
        (path / "deep" / "file").write_bytes(os.urandom(size))
    past = time.time() - days * DAY
    os.utime(path, (past, past))
    return path


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Fill a state folder with things of every kind."""
    for number, kind in enumerate(("histories", "trees", "environments", "projects", "nodes")):
        kept(tmp_path, f"{kind}/old", days=40 + number)
        kept(tmp_path, f"{kind}/new", days=20)
    kept(tmp_path, "mirrors/old.git", days=40)
    kept(tmp_path, "layers/old.json", days=40)
    return tmp_path


async def test_what_was_not_used_for_long_is_removed(state):
    """Folders, mirrors and notes alike; what was used stays."""
    found = await prune(state, keep_days=30)
    assert set(found.names) == {
        *("histories/old", "trees/old", "environments/old", "projects/old", "nodes/old"),
        *("mirrors/old.git", "layers/old.json"),
    }
    assert found.names[0] == "nodes/old"
    assert found.size_bytes > 0
    left = {path.relative_to(state).as_posix() for path in state.glob("*/*") if path.name == "new"}
    assert len(left) == 5
    assert (await prune(state, keep_days=30)).names == ()


async def test_the_longest_unused_goes_first_where_it_is_too_much(tmp_path):
    """Until what is left fits, and never what a sandbox may stand on."""
    for days in (3, 2, 1.5, 1, 0):
        kept(tmp_path, f"trees/{days}", days=days, size=1 << 20)
    assert (await prune(tmp_path, keep_bytes=3_500_000)).names == ("trees/3", "trees/2")
    assert (await prune(tmp_path, keep_bytes=0, keep_days=0)).names == ("trees/1.5",)


async def test_what_other_drivers_keep_for_themselves_is_looked_at_as_well(state):
    """Each has a folder of its own, some of them one for each image."""
    for root in ("unconfined", "containers/0123"):
        kept(state, f"{root}/layers/old.json", days=40)
        kept(state, f"{root}/trees/old", days=40)
        kept(state, f"{root}/trees/new", days=1)
    kept(state, "trees/new/layers/old", days=40)
    found = {name for name in (await prune(state)).names if name.count("/") > 1}
    assert found == {
        *("unconfined/layers/old.json", "unconfined/trees/old"),
        *("containers/0123/layers/old.json", "containers/0123/trees/old"),
    }


async def test_whoever_uses_something_keeps_it(state):
    """A sign of use is enough, also at the last moment."""
    old = state / "trees" / "old"
    assert touched(state, old)
    assert "trees/old" not in (await prune(state)).names
    assert not give_up(state, old, state / "gone", unused_since=time.time() - DAY)
    assert not touched(state, state / "trees" / "absent")
    assert not give_up(state, state / "absent", state / "gone", unused_since=time.time())


async def test_a_mirror_that_is_fetched_into_stays(state):
    """Its lock is held meanwhile."""
    async with locked(state / "locks" / "mirror-old", timeout=1):
        assert "mirrors/old.git" not in (await prune(state)).names
    assert "mirrors/old.git" in (await prune(state)).names


async def test_half_built_folders_go_with_their_makers(state):
    """One that is being built stays."""
    (state / "trees" / ".dead-0123").mkdir()
    async with building(state / "trees", "alive") as alive:
        await prune(state)
        assert alive.is_dir()
    assert not (state / "trees" / ".dead-0123").exists()


async def test_nothing_is_raised_whoever_prunes_beside(state):
    """Each thing is removed once, by one of them."""
    found = await asyncio.gather(*(prune(state, keep_days=30) for _ in range(4)))
    names = [name for one in found for name in one.names]
    assert len(names) == len(set(names)) == 7
    assert (await prune(state / "absent")).names == ()
