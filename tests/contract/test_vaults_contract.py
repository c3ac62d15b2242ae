"""Where checkpoints are kept for other machines: in memory, in a database, in a folder."""

from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import func, select
from tests import databases
from tests.samples import ENDED, NOON, STARTED

from turnout.core.ids import RunId
from turnout.core.service.checkpoints import Part
from turnout.errors import NotFoundError, StoreError
from turnout.runs.checkpoints.folder import FolderVault
from turnout.runs.checkpoints.ports import Vault
from turnout.store.checkpoints import CheckpointsStore
from turnout.store.database import Database
from turnout.store.record import RecordStore
from turnout.store.schema import checkpoint_pieces, checkpoints
from turnout.testing.memory.vault import MemoryVault

RUN, OTHER = RunId("run-000000000001"), RunId("run-000000000002")
TEXT = b"".join(b"%d: line %d\n" % (n, n * n) for n in range(20_000))
NOISE = b"".join(sha256(b"%d" % n).digest() for n in range(20_000))


@pytest.fixture(params=["memory", "folder", *databases.KINDS])
async def vault(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Vault]:
    """Hand out an empty one of each kind."""
    if request.param == "memory":
        yield MemoryVault()
    elif request.param == "folder":
        yield FolderVault(tmp_path / "shared")
    else:
        with databases.tables_of(request.param, request, tmp_path) as url:
            async with databases.opened(url) as database:
                yield CheckpointsStore(database)


def part(key: str, epoch: int = 1, run_id: RunId = RUN) -> Part:
    """Return the name of a part."""
    return Part(run_id, epoch, key, "like")


async def pieces(data: bytes, size: int = 100_000) -> AsyncIterator[bytes]:
    """Yield it as a file is read."""
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def read(vault: Vault, key: str, run_id: RunId = RUN) -> bytes:
    """Return a part."""
    return b"".join([piece async for piece in vault.get(run_id, key)])


async def test_a_part_comes_back_byte_for_byte(vault: Vault) -> None:
    """Text, noise that nothing can make smaller, and what repeats itself; the first one stays."""
    for key, data in (("a", TEXT), ("b", NOISE), ("c", bytes(1_000_000)), ("d", b"x")):
        await vault.put(part(key), pieces(data))
        assert await read(vault, key) == data
    assert await vault.likeness(RUN, "a") == "like"
    assert await vault.likeness(RUN, "none") is None
    assert await vault.likeness(OTHER, "a") is None
    with pytest.raises(NotFoundError):
        await read(vault, "a", OTHER)


async def test_of_a_run_only_what_is_needed_stays(vault: Vault) -> None:
    """What later segments have put is none of an earlier one's business, nor are other runs."""
    await vault.put(part("old"), pieces(TEXT))
    await vault.put(part("base"), pieces(TEXT[:-500]))
    await vault.put(part("new", epoch=2), pieces(TEXT + b"more\n"))
    await vault.put(part("old", run_id=OTHER), pieces(TEXT))
    await vault.keep_only(RUN, 1, ("base",))
    assert await vault.likeness(RUN, "old") is None
    assert await read(vault, "base") == TEXT[:-500]
    assert await read(vault, "new") == TEXT + b"more\n"
    assert await read(vault, "old", OTHER) == TEXT
    await vault.forget(RUN)
    assert await vault.likeness(RUN, "new") is None
    assert await vault.likeness(OTHER, "old") == "like"


async def test_a_stream_that_breaks_off_leaves_no_part(vault: Vault) -> None:
    """And the next attempt puts it whole."""

    async def broken() -> AsyncIterator[bytes]:
        yield TEXT
        raise StoreError("The stream broke.")

    with pytest.raises(StoreError, match="broke"):
        await vault.put(part("a"), broken())
    assert await vault.likeness(RUN, "a") is None
    await vault.put(part("a"), pieces(TEXT))
    assert await read(vault, "a") == TEXT


async def test_a_database_keeps_what_two_checkpoints_share_once(any_database: Database) -> None:
    """One more line costs a few pieces; what nothing needs any more is gone to the last one."""
    store = CheckpointsStore(any_database)

    async def kept() -> tuple[int, int]:
        rows = select(func.count()).select_from(checkpoints)
        found = select(func.count()).select_from(checkpoint_pieces)
        return await any_database.read(
            lambda conn: (conn.scalar(rows) or 0, conn.scalar(found) or 0)
        )

    await store.put(part("a"), pieces(TEXT))
    _, first = await kept()
    await store.put(part("b"), pieces(TEXT[:150_000] + b"one more\n" + TEXT[150_000:]))
    both, second = await kept()
    assert (both, first > 5, second - first <= 3) == (2, True, True)
    await store.keep_only(RUN, 1, ("b",))
    one, third = await kept()
    assert (one, third <= second) == (1, True)
    await store.forget(RUN)
    assert await kept() == (0, 0)


async def test_a_sweep_drops_what_runs_that_are_over_have_left(any_database: Database) -> None:
    """Those that have ended and those that are no more; one that is under way stays."""
    store, records = CheckpointsStore(any_database), RecordStore(any_database)
    gone = RunId("run-000000000003")
    for run_id in (RUN, OTHER):
        await records.begin(run_id, STARTED, NOON)
    await records.append(OTHER, 1, ENDED, NOON)
    for run_id in (RUN, OTHER, gone):
        await store.put(part("a", run_id=run_id), pieces(b"x"))
    assert await store.sweep() == 2
    assert await store.sweep() == 0
    assert await store.likeness(RUN, "a") == "like"


async def test_a_folder_takes_no_name_that_leads_elsewhere(tmp_path: Path) -> None:
    """Nor one that is full or gone as anything but a failure of the store."""
    vault = FolderVault(tmp_path / "shared")
    with pytest.raises(StoreError, match="no name"):
        await vault.put(part("../a"), pieces(b"x"))
    with pytest.raises(StoreError, match="no name"):
        await vault.likeness(RunId("../run"), "a")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="failed"):
        await FolderVault(tmp_path / "file").put(part("a"), pieces(b"x"))
