"""`turnout prune`, on a state folder that past runs have filled."""

import asyncio
import json
import os
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.samples import ENDED, NOON, STARTED, receipt

from turnout.cli.prune import command
from turnout.store.database import open_database
from turnout.store.receipts import ReceiptsStore
from turnout.store.record import RecordStore


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Make a state folder with a tree of long ago, one of today, and a record."""
    old = time.time() - 40 * 86_400
    for name in ("trees/old", "trees/new"):
        (tmp_path / "state" / name).mkdir(parents=True)
        (tmp_path / "state" / name / "file").write_bytes(b"x" * 5000)
    os.utime(tmp_path / "state/trees/old", (old, old))
    (tmp_path / "state/turnout.db").write_bytes(b"record")
    return tmp_path / "state"


def prune(home: Path, *options: str) -> str:
    """Run the command and return what it printed."""
    done = CliRunner().invoke(
        command, options, env={"TURNOUT_HOME": str(home)}, standalone_mode=False
    )
    assert done.return_value == 0, done.output
    return done.output


def test_what_is_long_unused_goes_and_nothing_else(home: Path) -> None:
    """What is gone is named, the rest stays."""
    said = prune(home)
    assert "trees/old" in said
    assert "Removed 1 item" in said
    assert not (home / "trees/old").exists()
    assert (home / "trees/new/file").exists()
    assert (home / "turnout.db").read_bytes() == b"record"


def test_scripts_get_one_object(home: Path) -> None:
    """With names and the size of what is gone."""
    told = json.loads(prune(home, "--json"))
    assert told["removed"] == ["trees/old"]
    assert told["size_bytes"] >= 5000
    assert json.loads(prune(home, "--json"))["removed"] == []


def test_a_longer_time_keeps_more(home: Path) -> None:
    """The number of days is the user's."""
    assert json.loads(prune(home, "--keep-days", "60", "--json"))["removed"] == []


def test_what_the_settings_do_not_keep_is_forgotten(home: Path, tmp_path: Path) -> None:
    """Records and receipts by their age; counted for scripts and for people."""

    async def fill() -> None:
        (home / "turnout.db").unlink()
        async with open_database(home / "turnout.db") as database:
            await RecordStore(database).begin("run-1", STARTED, NOON)
            await RecordStore(database).append("run-1", 1, ENDED, NOON)
            await ReceiptsStore(database).add(receipt())

    asyncio.run(fill())
    config = tmp_path / "turnout.toml"
    config.write_text("[service.retention]\nruns = 1\nreceipts = 0.5\n")
    assert "Forgotten: runs 1, receipts 1." in prune(home, "--config", str(config))
    forgotten = json.loads(prune(home, "--config", str(config), "--json"))["forgotten"]
    assert forgotten == {"runs": 0, "receipts": 0, "events": 0, "audit": 0}
