import asyncio
import signal
import sqlite3
import sys
from contextlib import closing

import pytest
from tests.samples import NOON, STARTED

from turnout.core.events import Notice
from turnout.store.database import open_database
from turnout.store.record import RecordStore

pytestmark = pytest.mark.chaos

WRITER = """
import asyncio, sys
from tests.samples import NOON
from turnout.core.events import Notice
from turnout.store.database import open_database
from turnout.store.record import RecordStore

async def write(record):
    while True:
        entry = await record.append("run-1", 1, Notice("x" * 20_000), NOON)
        print(entry.seq, flush=True)

async def main():
    async with open_database(sys.argv[1]) as database:
        await asyncio.gather(*(write(RecordStore(database)) for _ in range(4)))

asyncio.run(main())
"""


async def write_until_killed(path, lines: int) -> int:
    """Append from another process, kill it after so many, and return the last it said to have."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(path), stdout=asyncio.subprocess.PIPE
    )
    said = [int(await process.stdout.readline()) for _ in range(lines)]
    process.send_signal(signal.SIGKILL)
    rest = (await process.stdout.read()).split(b"\n")[:-1]
    await process.wait()
    return max([*said, *map(int, rest)])


@pytest.mark.parametrize("lines", [1, 7, 60])
async def test_a_killed_writer_leaves_all_that_it_committed(tmp_path, lines):
    """Each append that returned is there, none is torn, and another worker goes on."""
    path = tmp_path / "turnout.db"
    async with open_database(path) as database:
        await RecordStore(database).begin("run-1", STARTED, NOON)
    last = await write_until_killed(path, lines)
    async with open_database(path) as database:
        record = RecordStore(database)
        numbers = [entry.seq for entry in await record.entries("run-1")]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= last
        epoch = await record.take_over("run-1")
        entry = await record.append("run-1", epoch, Notice("here again"), NOON)
        assert entry.seq == len(numbers) + 1
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
